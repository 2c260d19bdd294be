"""What one host adds to pages that place ops in steps: sums by op, and when its cores run the steps that they share.

The steps of each core come from its markers, from what the host launched, or from the runs of its busiest module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, distinct, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.crew import Crew
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.hosts.framework_summary import FRAMEWORK_OPS_OF_HOST, FrameworkOpsSummary, needed_bytes
from tpuprof.parsers.hosts.op_summary import CoreTotals, of_file, op_summary, whole_time
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.ops import device as devices
from tpuprof.parsers.ops.core.kernel_work import KernelWorks
from tpuprof.parsers.ops.core.ops import STEPS_LINE
from tpuprof.parsers.ops.core.sums import step_sums
from tpuprof.parsers.ops.host.events import HOST_PLANE, HostEvents, read_threads
from tpuprof.parsers.ops.host.input_events import INPUT_STATS, InputRows, input_rows, input_waits, merge_input_rows
from tpuprof.parsers.ops.host.memory_use import memory_stats
from tpuprof.parsers.ops.host.ops import HostOps, HostOpsReader, merge_host_ops
from tpuprof.parsers.steps.aligned import StepSpans, align_spans
from tpuprof.parsers.steps.groups.groups import (
    GROUP_STATS,
    EventGroups,
    event_groups,
    grouping_line,
    has_step_numbers,
    is_grouped,
)
from tpuprof.parsers.steps.launches import LaunchedRuns, Launches, annotated_steps
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.requests.requests import REQUEST_STATS, has_requests
from tpuprof.parsers.steps.spans import markers
from tpuprof.parsers.steps.spans.markers import CoreSteps, LaunchingSteps
from tpuprof.parsers.steps.spans.runs import MINIMUM_RUNS, ModuleRuns, busiest_module, module_runs
from tpuprof.parsers.steps.times import on_device_clock

if TYPE_CHECKING:
    from tpuprof.parsers.ops.streams.devices import StreamDevice

NOTHING_SHARED = "the cores share no step"


@dataclass(frozen=True, slots=True)
class StepSpansSummary(FrameworkOpsSummary):
    """What pages that place ops in steps need of one host.

    Attributes:
        steps: the steps that the host's cores share, None where there are none; step_note: how they were inferred, or
            why there are none; step_module: the module whose periods they are, None where they are other ones.
    """

    steps: StepSpans | None
    step_note: str
    step_module: str | None


def _reduce(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> StepSpansSummary:
    cores = devices.tensor_cores(trace)
    streams, side = streams_and_host(trace, on_chunk)
    found = find_steps(trace, cores, side.events)
    works = KernelWorks(lambda: HloModules.of(trace))

    def work(index: int) -> tuple[CoreTotals, CoreSteps, Int64s]:
        plane, steps = cores[index], found.of_cores[index]
        times = distinct(np.concatenate([steps.start_ps, steps.end_ps]))
        sums = step_sums(plane, (steps.start_ps, steps.end_ps), times, on_chunk, crew)
        totals = CoreTotals(works.applied(sums.table), sums.op_events, whole_time(plane, sums))
        return totals, on_device_clock(steps, times, sums.device_times), sums.op_count

    with Crew(threads) as crew:
        parts = crew.map(work, range(len(cores)))
    infos = [devices.device_info(plane) for plane in cores]
    modules = {name for runs in found.runs for name in runs.names}
    ops = op_summary(trace, file.host, infos, [totals for totals, _, _ in parts], modules, streams)
    names = [core_label(file.host, devices.device_ordinal(plane)) for plane in cores]
    spans = align_spans([steps for _, steps, _ in parts], [count for _, _, count in parts], found.source, names)
    made = StepSpansSummary(
        **{field.name: getattr(ops, field.name) for field in fields(ops)},
        host_ops=side.ops,
        steps=None if spans is None else replace(spans, is_numbered=found.module is None),
        step_note=found.note or ("" if spans is not None else NOTHING_SHARED),
        step_module=found.module,
    )
    return of_file(made, file)


STEP_SPANS_OF_HOST = Reduction(
    "step-spans",
    StepSpansSummary,
    needed_bytes,
    _reduce,
    tables=("table",),
    includes=FRAMEWORK_OPS_OF_HOST,
    given_by=("summary", "collectives", "steps"),
)
"""What pages that place ops in steps need of a host."""


# --- the host's threads ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostSide:
    """What one pass over a host's threads gives.

    Attributes:
        events: the events of all threads; None without a host plane.
        ops: framework ops.
        waits: disjoint intervals in order in which a thread waited for input or sent it.
        input_rows: what the host did for input that is no framework op.
    """

    events: HostEvents | None
    ops: HostOps
    waits: Intervals
    input_rows: InputRows


def read_host_side(trace: Trace, on_chunk: ChunkDone | None = None, more: Sequence[str] = ()) -> HostSide:
    """Decodes the host's threads once, for all that needs them.

    Args:
        more: stats to read besides.
    """
    plane = trace.plane(HOST_PLANE)
    none = no_ints()
    if plane is None:
        return HostSide(None, merge_host_ops([]), (none, none), merge_input_rows([]))
    reader = HostOpsReader(plane)
    wanted = (*reader.stats, *GROUP_STATS, *INPUT_STATS, *REQUEST_STATS, *memory_stats(plane), *more)
    stats = tuple(dict.fromkeys(wanted))
    events = HostEvents(plane, tuple(read_threads(plane, stats, on_chunk)))
    for thread in events.threads:
        reader.take(thread)
    return HostSide(events, reader.ops(), input_waits(events), input_rows(events))


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
class FoundSteps:
    """The steps of a host's cores, each core's own.

    Attributes:
        launched: each core's runs of modules, and what launched them.
        groups: the events that belong together, where markers of steps or requests need it.
        of_cores: each core's steps.
        source: where they come from; note: what to say about them; module: the one whose periods they are.
    """

    launched: Sequence[LaunchedRuns]
    groups: EventGroups | None
    of_cores: Sequence[CoreSteps]
    source: StepSource
    note: str
    module: str | None

    @property
    def runs(self) -> list[ModuleRuns]:
        """Each core's runs of modules."""
        return [core.runs for core in self.launched]


def find_steps(trace: Trace, cores: Sequence[Plane], host: HostEvents | None) -> FoundSteps:
    """Finds the steps of a host's cores."""
    of_host = Launches.of(host)
    launched = [of_host.of_runs(module_runs(plane)) for plane in cores]
    groups = _groups(trace, cores, host)
    return FoundSteps(launched, groups, *_steps_of_cores(cores, launched, groups, host))


def _steps_of_cores(
    cores: Sequence[Plane], launched: Sequence[LaunchedRuns], groups: EventGroups | None, host: HostEvents | None
) -> tuple[list[CoreSteps], StepSource, str, str | None]:
    """Each core's steps, where they come from, what to say about them, and the module whose periods they are."""
    host_steps = _host_steps(cores, groups)
    marked = [markers.marked_steps(plane, of) for plane, of in zip(cores, host_steps, strict=True)]
    if any(map(len, marked)):
        return marked, "steps", "", None
    numbered = _numbered_steps(cores, launched, groups, host)
    if min(map(len, numbered), default=0) >= MINIMUM_RUNS - 1:
        note = "no Steps line: a step is taken as the time from the end of the last run that one step of the host "
        return numbered, "modules", note + "(step_num) launched to the end of the next one's", None
    runs = [core.runs for core in launched]
    busiest = busiest_module(runs)
    if busiest is None:
        if not any(map(len, runs)):
            return marked, "modules", "no Steps line and no XLA Modules in this profile", None
        return marked, "modules", "no Steps line, and no HLO module ran at least 3 times on every core", None
    note = f"no Steps line: a step is taken as the time from one end of {busiest.partition('(')[0]} to the next"
    return [markers.inferred_steps(core, busiest) for core in runs], "modules", note, busiest


def _numbered_steps(
    cores: Sequence[Plane], launched: Sequence[LaunchedRuns], groups: EventGroups | None, host: HostEvents | None
) -> list[CoreSteps]:
    """The steps that annotations of the host number: by what they lead to, else by when they launched it."""
    if host is None or not has_step_numbers(host):
        return []
    linked = _host_steps(cores, groups, marked=False)
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
