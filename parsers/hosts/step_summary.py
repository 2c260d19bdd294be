"""The steps of a host, and its cores that depend on each other.

The steps of each core come from its markers, from what the host launched, or from the runs of its busiest module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, median, no_ints, totals
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import examples
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.ops import device as devices
from tpuprof.parsers.ops.core.ops import STEPS_LINE
from tpuprof.parsers.ops.host_events.events import HOST_PLANE, HostEvents, HostThread, read_threads
from tpuprof.parsers.ops.host_events.input_events import (
    INPUT_STATS,
    InputRows,
    input_rows,
    input_waits,
    merge_input_rows,
)
from tpuprof.parsers.ops.host_events.memory_use import memory_stats
from tpuprof.parsers.ops.host_events.ops import HostOps, HostOpsReader, merge_host_ops
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.boundaries import markers
from tpuprof.parsers.steps.boundaries.core_groups import LOST_NAME, JoinedCores, by_program
from tpuprof.parsers.steps.boundaries.cycles import marks_each_run
from tpuprof.parsers.steps.boundaries.markers import CoreSteps, LaunchingSteps
from tpuprof.parsers.steps.boundaries.runs import MINIMUM_RUNS, ModuleRuns, busiest_module, module_runs
from tpuprof.parsers.steps.boundaries.unrecorded import runs_on_all
from tpuprof.parsers.steps.groups.groups import (
    GROUP_STATS,
    EventGroups,
    event_groups,
    grouping_line,
    has_step_numbers,
    is_grouped,
)
from tpuprof.parsers.steps.launches import ClockLead, LaunchedRuns, Launches, annotated_steps, clock_lead
from tpuprof.parsers.steps.requests.inferred import FoundSteps, steps_of_programs
from tpuprof.parsers.steps.requests.requests import REQUEST_STATS, has_requests

if TYPE_CHECKING:
    from tpuprof.parsers.ops.streams.devices import StreamDevice
    from tpuprof.parsers.steps.generic.device_groups import DeviceGroup
    from tpuprof.parsers.steps.generic.step_events import GenericSummary

NOTHING_SHARED = "the cores share no step"
BESIDE = "no Steps line; a run is in the step in which a core with such a line has the same run"
NO_RUNS = "no Steps line and no XLA Modules in this profile"

_MOST_PROGRAMS = 4


@dataclass(frozen=True, slots=True)
class HostGroup:
    """The cores of one host that depend on each other.

    Attributes:
        core_names: ``host:ordinal`` of each core.
        programs: the programs that they run, most time first, without the numbers that compilers give them.
        devices: how many devices the largest of their collectives needs; 0 where that is unknown, None where no op or
            barrier joins them to cores of other hosts.
        sends: whether they send to other cores or receive from these, which may run other programs.
        busy_ps: self time of their ops.
        run_ps, run_count: the median run of the first program, and how many runs there are on all cores.
        steps: the steps that they share; None without any, and for a host's first group, whose steps are the host's.
        step_note: how these were inferred, or why there are none; of the first group it is the host's.
        generic: what GPUs or devices of the host's CPU did; None for TPUs, and for a host's first group, whose is the
            host's.
    """

    core_names: tuple[str, ...]
    programs: tuple[str, ...]
    devices: int | None
    sends: bool
    busy_ps: int
    run_ps: int
    run_count: int
    steps: AlignedSteps | None
    step_note: str = ""
    generic: GenericSummary | None = None


# --- the host's threads ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostSide:
    """What one pass over a host's threads gives.

    Attributes:
        events: the events of all threads; None without a host plane.
        ops: framework ops.
        waits: disjoint intervals in order in which a thread waited for input or sent it; waiting: the threads that did.
        input_rows: what the host did for input that is no framework op.
    """

    events: HostEvents | None
    ops: HostOps
    waits: Intervals
    waiting: Sequence[HostThread]
    input_rows: InputRows


def read_host_side(trace: Trace, on_chunk: ChunkDone | None = None, more: Sequence[str] = ()) -> HostSide:
    """Decodes the host's threads once, for all that needs them.

    Args:
        more: stats to read besides.
    """
    plane = trace.plane(HOST_PLANE)
    none = no_ints()
    if plane is None:
        return HostSide(None, merge_host_ops([]), (none, none), (), merge_input_rows([]))
    reader = HostOpsReader(plane)
    wanted = (*reader.stats, *GROUP_STATS, *INPUT_STATS, *REQUEST_STATS, *memory_stats(plane), *more)
    stats = tuple(dict.fromkeys(wanted))
    events = HostEvents(plane, tuple(read_threads(plane, stats, on_chunk)))
    for thread in events.threads:
        reader.take(thread)
    return HostSide(events, reader.ops(), *input_waits(events), input_rows(events))


def streams_and_host(trace: Trace, on_chunk: ChunkDone | None) -> tuple[Sequence[StreamDevice], HostSide]:
    """The GPUs of a profile, or the CPU of a host without a device where it ran ops; and the host's threads."""
    if any(devices.is_tensor_core(plane) or devices.is_sparse_core(plane) for plane in trace.planes):
        return (), read_host_side(trace, on_chunk)
    from tpuprof.parsers.ops.streams import devices as streams  # noqa: PLC0415 - for profiles without TPUs only
    from tpuprof.parsers.ops.streams.attribution import OP_STATS  # noqa: PLC0415
    from tpuprof.parsers.steps.generic.gpu import STREAM_STATS  # noqa: PLC0415

    plane = streams.runs_on_cpu(trace)
    side = read_host_side(trace, on_chunk, OP_STATS if plane is not None else ())
    if plane is None or side.events is None:
        return streams.read_gpus(trace, STREAM_STATS, on_chunk), side
    cpu = streams.cpu_device(trace, plane, side.events.threads)
    return (cpu,) if cpu is not None else (), side


# --- steps ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepsOfCores:
    """The steps of a host's cores. Each sequence has an item a core.

    Attributes:
        launched: its runs of modules, and what launched them; all_runs: these, and those that were not recorded.
        lead: how far the cores' clocks run ahead of the host's, see `clock_lead`.
        groups: the events that belong together, where markers of steps or requests need it.
        of_cores: its steps; origins: those of the cores that share its programs.
    """

    launched: Sequence[LaunchedRuns]
    all_runs: Sequence[ModuleRuns]
    lead: ClockLead | None
    groups: EventGroups | None
    of_cores: Sequence[CoreSteps]
    origins: Sequence[FoundSteps]

    @property
    def runs(self) -> list[ModuleRuns]:
        return [core.runs for core in self.launched]

    def incomplete(self, grid: AlignedSteps, names: Sequence[str]) -> tuple[str, ...]:
        """What is missing in steps, cores without markers too; `names` are those of all cores."""
        which = zip(names, self.origins, strict=True)
        unmarked = [name for name, origin in which if origin.note == BESIDE and name in grid.core_names]
        return (*grid.incomplete, *[f"{examples(unmarked)}: {BESIDE}"] * bool(unmarked))


def find_steps(trace: Trace, cores: Sequence[Plane], host: HostEvents | None) -> StepsOfCores:
    """Finds the steps of a host's cores, apart for cores that run no program of each other."""
    of_host = Launches.of(host)
    launched = [of_host.of_runs(module_runs(plane)) for plane in cores]
    groups = _groups(trace, cores, host)
    marking, launching = _host_steps(cores, groups), _host_steps(cores, groups, marked=False)
    lead = clock_lead(launched)
    shift_ps = 0 if lead is None else lead.shift_ps
    all_runs = runs_on_all(cores, [core.runs for core in launched])
    found: dict[int, tuple[CoreSteps, FoundSteps]] = {}
    for part in by_program([core.runs for core in launched]):
        marked = [markers.marked_steps(cores[core], marking[core]) for core in part]
        is_numbered = any((of := marking[core]) is not None and of.step_numbers for core in part)
        here = [launched[core] for core in part]
        numbered = [] if any(map(len, marked)) else _numbered_steps([launching[core] for core in part], here, host)
        runs = [core.runs for core in here]
        origin = _steps_of_part(marked, is_numbered, numbered, [all_runs[core] for core in part], host, shift_ps)
        for core, own in zip(part, origin.of_cores, strict=True):
            is_marked = len(own) > 0 or origin.source != "steps"
            beside = () if is_marked else map(partial(markers.steps_beside, launched[core].runs), origin.of_cores, runs)
            found[core] = max(beside, key=len, default=own), origin if is_marked else replace(origin, note=BESIDE)
    every = [found[core] for core in range(len(cores))]
    of_cores, origins = [steps for steps, _ in every], [origin for _, origin in every]
    return StepsOfCores(launched, all_runs, lead, groups, of_cores, origins)


def _steps_of_part(
    marked: list[CoreSteps],
    is_numbered: bool,
    numbered: list[CoreSteps],
    runs: Sequence[ModuleRuns],
    host: HostEvents | None,
    shift_ps: int,
) -> FoundSteps:
    """The steps of each of some cores that share programs, and where they come from.

    Args:
        marked: the steps of their markers; is_numbered: whether the program numbers these.
        numbered: the steps that annotations of the host number, where no core has markers.
        host, shift_ps: as of `steps_of_programs`.
    """
    why = "no Steps line"
    if any(map(len, marked)):
        if is_numbered or not any(map(marks_each_run, marked, runs)):
            return FoundSteps(marked, "steps")
        why = "the Steps line marks each run of a program"
    elif min(map(len, numbered), default=0) >= MINIMUM_RUNS - 1:
        note = f"{why}: a step is taken as the time from the end of the last run that one step of the host "
        return FoundSteps(numbered, "annotations", note + "(step_num) launched to the end of the next one's")
    found = steps_of_programs(runs, host, why, shift_ps)
    if found is not None and found.source == "cycle":
        return found
    if any(map(len, marked)):
        return FoundSteps(marked, "steps")
    if found is not None:
        return replace(found, note=found.note + _share_in_words(runs))
    rarely = "no Steps line, and no HLO module ran at least 3 times on every core"
    return FoundSteps(marked, "modules", rarely if any(map(len, runs)) else NO_RUNS)


def _share_in_words(runs: Sequence[ModuleRuns]) -> str:
    """What part of the modules' time the one behind inferred steps takes, as the end of a note; empty without one."""
    busiest, whole = busiest_module(runs), sum(int(core.module_ps.sum()) for core in runs)
    if busiest is None or not whole:
        return ""
    of_it = sum(int(core.module_ps[core.names.index(busiest)]) for core in runs if busiest in core.names)
    name, share = busiest.partition("(")[0], of_it / whole
    return f"; {name} takes {100 * share:.1f}% of module time on these cores"


def _numbered_steps(
    linked: Sequence[LaunchingSteps | None], launched: Sequence[LaunchedRuns], host: HostEvents | None
) -> list[CoreSteps]:
    """The steps that annotations of the host number: by what they lead to, else by when they launched it."""
    if host is None or not has_step_numbers(host):
        return []
    if not all(of is not None and (of.group >= 0).any() for of in linked):
        linked = [annotated_steps(host, core) for core in launched]
    return [markers.numbered_steps(core.runs, of) for core, of in zip(launched, linked, strict=True) if of is not None]


def _groups(trace: Trace, cores: Sequence[Plane], host: HostEvents | None) -> EventGroups | None:
    """Groups the events that belong together, where markers of steps or requests need it."""
    if host is None or not (any(map(_has_markers, cores)) or has_requests(host) or has_step_numbers(host)):
        return None
    return event_groups(host, cores, grouped=is_grouped(trace))


def _has_markers(plane: Plane) -> bool:
    line = grouping_line(plane)
    return line is not None and line.name == STEPS_LINE


def _host_steps(cores: Sequence[Plane], groups: EventGroups | None, marked: bool = True) -> list[LaunchingSteps | None]:
    """For each core with markers (or without any), which host step launched each of them, or of its modules' runs."""
    if groups is None or groups.cores is None:
        return [None] * len(cores)
    numbers = {root.group: root.step_num for root in groups.roots if root.step_num is not None}
    return [
        LaunchingSteps(group, numbers) if _has_markers(plane) == marked else None
        for plane, group in zip(cores, groups.cores, strict=True)
    ]


# --- groups of cores ------------------------------------------------------------------------------------------------


def host_groups(
    found: Sequence[JoinedCores],
    names: Sequence[str],
    runs: Sequence[ModuleRuns],
    busy_ps: Sequence[int],
    steps: Callable[[Sequence[int]], tuple[AlignedSteps | None, str]],
) -> tuple[HostGroup, ...]:
    """What pages need of a host's groups.

    Args:
        names, runs, busy_ps: of all cores: name, runs, and self time of its ops.
        steps: gives the steps that some cores share, and the note on them.
    """
    groups = []
    for index, group in enumerate(found):
        of_cores = [(names[core], runs[core], busy_ps[core]) for core in group.cores]
        made = _group(of_cores, group.devices, group.sends)
        shared, note = (None, "") if index == 0 else steps(group.cores)
        groups.append(replace(made, steps=shared, step_note=note))
    return tuple(groups)


def _group(cores: Sequence[tuple[str, ModuleRuns, int]], devices: int | None, sends: bool = False) -> HostGroup:
    """Cores of a group by name, runs and self time of ops; without their steps."""
    names, runs, busy_ps = zip(*cores, strict=True)
    programs = _programs(runs)
    durations = _durations(runs, programs[:1])
    run_ps = int(median(durations.astype(np.float64))) if len(durations) else 0
    return HostGroup(names, programs[:_MOST_PROGRAMS], devices, sends, sum(busy_ps), run_ps, len(durations), None)


def devices_without_tpus(
    trace: Trace, streams: Sequence[StreamDevice], side: HostSide
) -> tuple[Sequence[DeviceGroup], list[GenericSummary | None]]:
    """The groups of a host's GPUs, or of the devices of its CPU, and what each did: at least one, None with TPUs."""
    if any(devices.is_tensor_core(plane) or devices.is_sparse_core(plane) for plane in trace.planes):
        return (), [None]
    from tpuprof.parsers.steps.generic import device_groups  # noqa: PLC0415 - for profiles without TPUs only

    modules, found = HloModules.of(trace), list[device_groups.DeviceGroup]()
    if streams and side.events is not None and streams[0].is_host:
        found = device_groups.cpu_groups(side.events, streams[0], modules)
    elif streams:
        found = device_groups.gpu_groups(trace, side.events, streams, modules)
    return found, device_groups.generic_of_groups(trace, streams, side.events, side.waits, found)


def spans_of_steps(steps: AlignedSteps | None, generic: GenericSummary | None) -> Intervals:
    """Start and end of the steps that a host's cores share, else of those of its CPU."""
    if steps is not None:
        return steps.start_ps, steps.end_ps
    return (no_ints(), no_ints()) if generic is None else generic.cpu_steps


def groups_without_tpus(
    host: str, found: Sequence[DeviceGroup], generic: Sequence[GenericSummary | None]
) -> tuple[HostGroup, ...]:
    """What pages need of the groups of a host's GPUs, or of the devices of its CPU, given what each did."""
    cores = [[(core_label(host, of.number), of.ran.runs, of.busy_ps) for of in group.members] for group in found]
    groups = [_group(of_cores, group.devices) for of_cores, group in zip(cores, found, strict=True)]
    return (*groups[:1], *(replace(group, generic=of) for group, of in zip(groups[1:], generic[1:], strict=True)))


def _programs(runs: Sequence[ModuleRuns]) -> tuple[str, ...]:
    of_cores = (pair for core in runs for pair in zip(core.names, core.module_ps.tolist(), strict=True))
    named = ((name.partition("(")[0], ps) for name, ps in of_cores)
    times = totals((name, ps) for name, ps in named if not LOST_NAME.fullmatch(name))
    return tuple(sorted(times, key=lambda name: -times[name]))


def _durations(runs: Sequence[ModuleRuns], programs: Sequence[str]) -> Int64s:
    """int64[n]: the runs of some programs on all cores."""
    parts = [np.zeros(0, np.int64)]
    for core in runs:
        of = [at for at, name in enumerate(core.names) if name.partition("(")[0] in programs]
        rows = np.isin(core.module, of)
        parts.append(core.end_ps[rows] - core.start_ps[rows])
    return np.concatenate(parts)
