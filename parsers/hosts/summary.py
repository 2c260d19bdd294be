"""What one host adds to the pages: sums by op and by step, never events, and the metadata with the ops' texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import Intervals, no_ints, overlap, subtract, union
from tpuprof.parsers.base.record import dataclass, fields, replace
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.files.places import HostFile, TimePart
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.thread_pool import ThreadPool
from tpuprof.parsers.formats.xspace.core.api import trim
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane, Trace
from tpuprof.parsers.hosts import step_summary
from tpuprof.parsers.hosts.core_summary import LEAST_FED, CoreSummary, OfCore, has_infeed, serving, summarise_core
from tpuprof.parsers.hosts.framework_summary import FRAMEWORK_OPS_OF_HOST, FrameworkOpsSummary
from tpuprof.parsers.hosts.op_summary import of_file, op_summary
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.hosts.step_summary import HostGroup, HostSide
from tpuprof.parsers.ops import device as devices
from tpuprof.parsers.ops.core.calls import CallRuns, core_calls, has_waits, merged_calls
from tpuprof.parsers.ops.core.kernel_work import KernelWorks
from tpuprof.parsers.ops.core.ops import ASYNC_OPS_LINE, OPS_LINE, SPARSE_OPS_LINE, as_interval, event_spans
from tpuprof.parsers.ops.core.times import CoreOpTimes, core_op_times
from tpuprof.parsers.ops.host_events import activity
from tpuprof.parsers.ops.host_events.events import HOST_PLANE, thread_lines
from tpuprof.parsers.ops.host_events.input_events import InputRows
from tpuprof.parsers.ops.host_events.memory_use import fullest_memory
from tpuprof.parsers.steps.accounts.causes import IdleCauses, barriers, causes_of_core, meets
from tpuprof.parsers.steps.aligned import AlignedSteps, InputSource, align, without_unseen_waits
from tpuprof.parsers.steps.boundaries.core_groups import joined_cores
from tpuprof.parsers.steps.boundaries.duty import ChipDuty, chip_duty
from tpuprof.parsers.steps.boundaries.markers import CoreSteps
from tpuprof.parsers.steps.boundaries.observed import Capture, Observed, capture_of, without_record
from tpuprof.parsers.steps.boundaries.outside import Outside, outside_of
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns
from tpuprof.parsers.steps.boundaries.sparse_core import sparse_core_times
from tpuprof.parsers.steps.groups.groups import has_step_numbers
from tpuprof.parsers.steps.launches import ClockLead
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.permutes import SlowLink, slow_link
from tpuprof.parsers.steps.requests.requests import HostRequests, host_requests

if TYPE_CHECKING:
    from tpuprof.parsers.steps.accounts.cpu import HostOnCpu
    from tpuprof.parsers.steps.generic.step_events import GenericSummary


@dataclass(frozen=True, slots=True)
class HostSummary(FrameworkOpsSummary):
    """What all pages of a profile need of one host, but for the timeline and memory.

    Attributes:
        clocks: sentences on clocks that differ.
        duty: the duty cycle of each chip.
        steps: the steps that the host's cores share, and what these do in them; None where there are none. Where cores
            form several groups, these are the steps of the first.
        step_note: how the steps were inferred, or why there are none.
        groups: the cores that depend on each other, the largest group first.
        input_rows: what the host did for input that is no framework op.
        requests: the requests that the host served, and the runs of its cores' modules.
        generic: what its GPUs did, or its own CPU in a profile without a device; None with TPUs, or without either.
        observed: what was observed of each of its cores, or GPUs.
        slow_link: the link between its cores that is slower than the others and costs most; None where none is.
        silence: the longest time of the capture in which a core ran nothing, although it ran something at another; None
            where none is long.
        idle: the long gaps of the core that is idle most; None where no core is idle for long.
        outside: what lies before its first whole step, and after its last one, where that is much.
        barriers: of each core with a line for them, how long it waited for other cores at barriers; in its steps where
            it has any.
        compilations: programs that the host compiled during the profile.
        core_ops: the largest ops by core.
        cores: each of its cores, ``host:2``, and its chip's number, None where the profile does not record it.
        memory: bytes in use in the device memory that was fullest, and its capacity; None where no event records them.
        has_step_numbers: whether annotations of the host number steps.
        launched: how often the host launched a program, counted only where no core ran an op; None without a host.
        ran_on_cpu: how often it ran one on its own CPU, counted likewise.
        profile_start_ns: when the profiler began, in nanoseconds since 1970; None where it did not record that.
        profile_duration_ps: how long the host was profiled; None where neither the profiler nor any event shows it.
        mxu_percent, hbm_percent: hardware counters that the host plane may hold.
        hlo_programs: program id to the name of each compiled HLO module that the profile holds.
        calls: kernels of which the profile has the spans inside, over the host's cores.
    """

    clocks: tuple[str, ...]
    duty: tuple[ChipDuty, ...]
    steps: AlignedSteps | None
    step_note: str
    groups: tuple[HostGroup, ...]
    input_rows: InputRows
    requests: HostRequests
    generic: GenericSummary | None
    observed: tuple[Observed, ...]
    slow_link: SlowLink | None
    silence: activity.IdleTime | None
    idle: activity.IdleTime | None
    outside: tuple[Outside, ...]
    barriers: Mapping[str, int]
    compilations: tuple[activity.Compilation, ...]
    core_ops: CoreOpTimes
    cores: Mapping[str, int | None]
    memory: tuple[int, int] | None
    has_step_numbers: bool
    launched: int | None
    ran_on_cpu: int
    profile_start_ns: int | None
    profile_duration_ps: int | None
    mxu_percent: float | None
    hbm_percent: float | None
    hlo_programs: Mapping[int, str]
    calls: tuple[CallRuns, ...]

    @property
    def generics(self) -> tuple[GenericSummary, ...]:
        """What each group of its GPUs did, or of the devices of its CPU; none with TPUs."""
        return tuple(of for of in (self.generic, *(group.generic for group in self.groups[1:])) if of is not None)

    @property
    def on_cpu(self) -> HostOnCpu | None:
        """The steps on its own CPU; None with a device, without steps, and where neither ops nor functions ran."""
        steps = None if self.generic is None or self.generic.device_count else self.generic.account
        return steps if self.thread_count or len(self.host_ops) else None


def duty_of_capture(summaries: Sequence[HostSummary]) -> float | None:
    """The share of the capture in which a chip runs an op on duty; None where ops of a core were not recorded."""
    if any(of.lost_ps is None for summary in summaries if summary.duty for of in summary.observed):
        return None
    active = sum(chip.active_ps + chip.lost_ps for summary in summaries for chip in summary.duty)
    watched = 0
    for summary in summaries:
        whole = summary.profile_duration_ps or 0
        are_whole = all(of.capture.length_ps == whole for of in summary.observed)
        watched += whole * len(summary.duty) if are_whole else sum(chip.total_ps for chip in summary.duty)
    return None if not watched else min(100.0, 100.0 * active / watched)


def needed_bytes(trace: Trace) -> int:
    """Bytes of the lines that `summarise` decodes."""
    host = trace.plane(HOST_PLANE)
    threads = sum(line.size for line in thread_lines(host)) if host is not None else 0
    return threads + sum(line.size for plane in trace.planes for line in plane.lines if _is_needed(plane, line))


def _is_needed(plane: Plane, line: Line) -> bool:
    if devices.is_tensor_core(plane):
        return line.name == OPS_LINE
    if devices.is_gpu(plane):
        return True
    return devices.is_sparse_core(plane) and line.name == SPARSE_OPS_LINE


def summarise(
    trace: Trace,
    host: str,
    on_chunk: ChunkDone | None = None,
    workers: int = 1,
    more: OfCore | None = None,
    part: TimePart | None = None,
) -> HostSummary:
    """Decodes what the overview needs of one host and adds it up.

    Args:
        workers: how many threads decode cores; they help where the decoding releases the interpreter lock.
        more: what else is taken from the pass over each core's ops.
        part: the part of the capture whose events the trace has; None for all of it.
    """
    cores = devices.tensor_cores(trace)
    streams, side = step_summary.streams_and_host(trace, on_chunk)
    found = step_summary.find_steps(trace, cores, side.events)
    launched, runs, step_lists, lead = found.launched, found.runs, found.of_cores, found.lead
    shift = 0 if lead is None else lead.shift_ps
    waits = _shifted(side.waits, -shift)
    is_fed, none = _is_fed_by_host(waits, step_lists), (no_ints(), no_ints())
    causes = IdleCauses(
        input=waits if is_fed else none,
        compiling=_shifted(activity.compiling(side.events), -shift),
        reading=_shifted(activity.reading(side.events), -shift),
    )
    at_barriers = [barriers(plane) for plane in cores]
    infos = [devices.device_info(plane) for plane in cores]
    beside = [devices.device_info(plane) for plane in trace.planes if devices.is_sparse_core(plane)]
    chips = Counter(info.chip for info in (*infos, *beside))
    modules = HloModules.of(trace)
    works = KernelWorks(lambda: modules)

    def work(index: int) -> CoreSummary:
        shares_chip = chips[infos[index].chip] > 1  # its duty cycle needs the union of its cores' intervals
        ran = found.all_runs[index].within(() if part is None else part.of_core(devices.device_ordinal(cores[index])))
        core = cores[index], infos[index], step_lists[index], ran
        others = [*runs[:index], *runs[index + 1 :]]
        of_all = replace(causes, unasked=found.origins[index].unasked)
        of_core = causes_of_core(of_all, launched[index], at_barriers[index], shift, others)
        made = summarise_core(*core, shares_chip, waits, of_core, modules, works, on_chunk, more)
        if more is not None:
            trim()  # of what more was made of, else the next core's comes on top
        return made

    with ThreadPool(workers) as pool:
        summaries = pool.map(work, range(len(cores)))
    most = max(range(len(cores)), key=lambda index: summaries[index].gap_ps, default=None)
    ops = op_summary(trace, host, infos, summaries, {name for core in runs for name in core.names}, streams)
    names = [core_label(host, devices.device_ordinal(plane)) for plane in cores]
    input_source: InputSource | None = "infeed" if has_infeed(ops.table) else "host" if is_fed else None
    of_devices, generics = step_summary.devices_without_tpus(trace, streams, side)
    generic = generics[0]
    capture = _capture(trace, summaries, side, generic, part)
    observed = () if capture is None else tuple(_observed(names, summaries, generic, host, capture))

    def steps_of(chosen: Sequence[int]) -> tuple[AlignedSteps | None, str]:
        origin = found.origins[chosen[0]]
        of_cores = [names[core] for core in chosen], [summaries[core] for core in chosen]
        grid = _grid(trace, *of_cores, origin.source, input_source, side, shift)
        if grid is None:
            return None, origin.note or step_summary.NOTHING_SHARED
        return replace(grid, is_numbered=origin.is_numbered, incomplete=found.incomplete(grid, names)), origin.note

    tables, processes = [core.table for core in summaries], [plane.profile for plane in cores]
    joined = joined_cores(runs, tables, lambda core: meets(at_barriers[core]), processes)
    busy_ps = [core.ran_ps for core in summaries]
    steps, note = steps_of(joined[0].cores) if joined else (None, step_summary.NO_RUNS)
    served = launched or [of.ran for group in of_devices for of in group.members if of.device.is_host]
    run_ps = [core.run_ps for core in summaries] or None
    host_stats = {} if (plane := trace.plane(HOST_PLANE)) is None else plane.stats
    calls = [call for plane in cores if has_waits(plane) for call in core_calls(plane)]  # few record what is inside
    return HostSummary(
        **{field.name: getattr(ops, field.name) for field in fields(ops)},
        clocks=_of_clocks(lead),
        duty=chip_duty([core.duty for core in summaries], trace, on_chunk),
        steps=steps,
        step_note=note,
        groups=step_summary.host_groups(joined, names, runs, busy_ps, steps_of)
        or step_summary.groups_without_tpus(host, of_devices, generics),
        host_ops=side.ops,
        input_rows=side.input_rows,
        requests=host_requests(side.events, found.groups, cores, served, run_ps, shift),
        generic=generic,
        observed=observed,
        slow_link=slow_link(names, [core.permutes for core in summaries]),
        silence=_silence(observed, side, shift),
        idle=None if most is None else _idle_time(cores[most], summaries[most], runs[most], side, shift),
        outside=outside_of(
            side.events, [of.runs for of in served], *step_summary.spans_of_steps(steps, generic), shift, capture
        ),
        barriers={
            name: waited
            for name, spans, steps in zip(names, at_barriers, step_lists, strict=True)
            if (waited := _waited(spans, steps)) is not None
        },
        compilations=()
        if side.events is None
        else activity.compilations(side.events, none if most is None else _shifted(summaries[most].gaps, shift)),
        has_step_numbers=side.events is not None and has_step_numbers(side.events),
        memory=fullest_memory(side.events),
        launched=None if side.events is None or len(ops.table) else activity.launches(side.events),
        ran_on_cpu=0 if side.events is None or len(ops.table) else activity.launches_on_cpu(side.events),
        core_ops=core_op_times(names, [core.table for core in summaries], ops.table),
        cores={name: devices.chip_number(plane) for name, plane in zip(names, cores, strict=True)},
        profile_start_ns=devices.capture_start_ns(trace.plane(devices.ENVIRONMENT_PLANE)),
        profile_duration_ps=None if capture is None else capture.length_ps,
        mxu_percent=_percent(host_stats.get("matrix_unit_utilization_percent")),
        hbm_percent=_percent(host_stats.get("hbm_utilization_percent")),
        hlo_programs=dict(modules.names),
        calls=tuple(call for call in merged_calls(calls) if call.traced_ps),
    )


def _summarise_host(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> HostSummary:
    return of_file(summarise(trace, file.host, on_chunk, threads, part=file.part), file)


SUMMARY_OF_HOST = Reduction(
    "summary",
    HostSummary,
    needed_bytes,
    _summarise_host,
    tables=("table",),
    includes=FRAMEWORK_OPS_OF_HOST,
    given_by=("collectives", "steps"),
)
"""What all pages need of a host, but for those that have a reduction of their own."""


_AROUND = 1.1
"""Where the profiler noted no capture, events of the host around the ops count from this multiple of their span on."""


def _is_of_cores(capture: Capture, cores: Sequence[CoreSummary]) -> bool:
    """Whether only what cores ran shows how long the capture was."""
    spans = [core.duty.span for core in cores if core.duty.span is not None]
    if capture.is_noted or not spans:
        return False
    return capture.length_ps <= _AROUND * (max(end for _, end in spans) - min(start for start, _ in spans))


def _observed(
    names: Sequence[str], cores: Sequence[CoreSummary], generic: GenericSummary | None, host: str, capture: Capture
) -> Iterator[Observed]:
    """What was observed of a host's cores, or GPUs."""
    is_of_cores = _is_of_cores(capture, cores)
    for name, core in zip(names, cores, strict=True):
        lost_ps = core.lost_ps if core.is_recorded else None
        span = core.duty.span if is_of_cores else None  # cores need not have been traced for as long as each other
        own = capture if span is None else Capture(span, False)
        yield Observed(name, own, core.ran, core.ran_ps, lost_ps)
    for device in () if generic is None else generic.busy:
        yield Observed(core_label(host, device.number), capture, device.ran, device.busy_ps, device.lost_ps)


def _capture(
    trace: Trace, cores: Sequence[CoreSummary], side: HostSide, generic: GenericSummary | None, part: TimePart | None
) -> Capture | None:
    """When a host was profiled: as long as the part of its capture that is looked at."""
    if part is not None and part.spans:
        return Capture((min(start for start, _ in part.spans), max(end for _, end in part.spans)), True)
    spans = [core.duty.span for core in cores if core.duty.span is not None]
    spans += [gpu.ran.span for gpu in (() if generic is None else generic.busy) if gpu.ran is not None]
    threads = () if side.events is None else side.events.threads
    spans += [(int(of.start_ps.min()), int(of.end_ps.max())) for of in threads if len(of)]
    return capture_of(trace.plane(devices.ENVIRONMENT_PLANE), spans)


_LONG_SILENCE = 0.05
"""A silence is looked at from this share of the capture on."""


def _silence(observed: Sequence[Observed], side: HostSide, shift_ps: int) -> activity.IdleTime | None:
    """The longest silence of the cores that ran something, and what the host did in it; None where none is long."""
    known = [(of, span) for of in observed if (span := of.silence) is not None]
    of, span = max(known, key=lambda each: each[1][1] - each[1][0], default=(None, (0, 0)))
    length = span[1] - span[0]
    if of is None or length < _LONG_SILENCE * of.capture.length_ps or not length:
        return None
    gaps = as_interval((span[0] + shift_ps, span[1] + shift_ps))
    return activity.IdleTime(
        gap_ps=length,
        count=1,
        longest=span,
        activities=() if side.events is None else activity.activities(side.events, gaps),
        core=int(of.name.rpartition(":")[2]),
    )


def _of_clocks(lead: ClockLead | None) -> tuple[str, ...]:
    """What to say of clocks that differ."""
    if lead is None:
        return ()
    bounds = f"at least {lead.least_ps / 1e9:.2f}"
    bounds += "" if lead.most_ps is None else f" and at most {lead.most_ps / 1e9:.2f}"
    return (
        f"the devices' clocks run ahead of the host's, by {bounds} ms: runs start before their own launch; host "
        f"events are looked up {lead.shift_ps / 1e9:.2f} ms later",
    )


def _percent(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 100 else None


# --- steps ---------------------------------------------------------------------------------------------------------


def _is_fed_by_host(waits: Intervals, cores: Sequence[CoreSteps]) -> bool:
    """Whether the host waits for input, or sends it, in at least every other step: transfers while a program starts up
    say nothing about its steps.
    """
    steps = next((steps for steps in cores if len(steps)), None)
    if steps is None:
        return False
    inside = overlap(steps.start_ps, steps.end_ps, *waits)
    return bool(2 * np.count_nonzero(inside) >= len(steps))


def _grid(
    trace: Trace,
    names: Sequence[str],
    summaries: Sequence[CoreSummary],
    source: StepSource,
    input_source: InputSource | None,
    side: HostSide,
    shift_ps: int,
) -> AlignedSteps | None:
    grid = align([core.step_times for core in summaries], source, names, input_source)
    if grid is None:
        return None
    if input_source == "host":
        spans = grid.start_ps + shift_ps, grid.end_ps + shift_ps
        unseen = without_record([(of.start_ps, of.end_ps) for of in side.waiting], spans)
        grid = without_unseen_waits(grid, unseen & (overlap(*spans, *side.waits) == 0))
    return replace(grid, sparse_core=sparse_core_times(trace, grid.names, grid.start_ps, grid.longest_ps))


# --- idle time -----------------------------------------------------------------------------------------------------


def _shifted(spans: Intervals, shift_ps: int) -> Intervals:
    return spans[0] + shift_ps, spans[1] + shift_ps


def _idle_time(
    plane: Plane, core: CoreSummary, runs: ModuleRuns, side: HostSide, shift_ps: int
) -> activity.IdleTime | None:
    """The long gaps of a core, apart from those in which the host waited for input.

    Args:
        shift_ps: what to add to the device's times to compare them with the host's.
    """
    gaps = subtract(*core.gaps, *_shifted(side.waits, -shift_ps))
    fed = subtract(*core.gaps, *gaps)
    length, fed_ps = gaps[1] - gaps[0], int((fed[1] - fed[0]).sum())
    served = serving(plane, core.table, side.events, shift_ps)
    if not len(length) and not fed_ps and not served[1]:
        return None
    longest = int(length.argmax()) if len(length) else 0
    did, inside = ((), ()) if side.events is None else activity.host_during(side.events, _shifted(gaps, shift_ps))
    is_fed = side.events is not None and fed_ps >= LEAST_FED * int((core.gaps[1] - core.gaps[0]).sum())
    return activity.IdleTime(
        core=devices.device_ordinal(plane),
        gap_ps=int(length.sum()),
        unlaunched_ps=_outside(gaps, union(runs.start_ps, runs.end_ps)),
        count=len(length),
        longest=(int(gaps[0][longest]), int(gaps[1][longest])) if len(length) else (0, 0),
        feeding=activity.activities(side.events, _shifted(fed, shift_ps)) if is_fed and side.events is not None else (),
        feeding_ps=fed_ps,
        serving=served[0],
        serving_ps=served[1],
        activities=did,
        inside=inside,
        in_flight=_in_flight(plane, gaps) if len(length) else {},
    )


def _waited(inside: Intervals | None, steps: CoreSteps) -> int | None:
    """The time that a core waits at barriers, in its steps where it has any; None where nothing shows it."""
    if inside is None:
        return None
    if len(steps):
        within = int(steps.start_ps.min()), int(steps.end_ps.max())
        inside = np.clip(inside[0], *within), np.clip(inside[1], *within)
    return int((inside[1] - inside[0]).sum())


def _outside(gaps: Intervals, spans: Intervals) -> int:
    """The part of some gaps that lies in none of some disjoint spans in order; 0 where there are no spans."""
    inside = overlap(*gaps, *spans)
    return int((gaps[1] - gaps[0] - inside).sum()) if len(spans[0]) else 0


def _in_flight(plane: Plane, gaps: Intervals) -> dict[str, int]:
    """Asynchronous ops under way during gaps."""
    times: dict[str, int] = {}
    for line in plane.lines:
        if line.name != ASYNC_OPS_LINE:
            continue
        events = line.events()
        start, end = event_spans(line, events)
        gap = np.minimum(np.searchsorted(gaps[1], start, side="right"), len(gaps[1]) - 1)  # the first that ends later
        near = np.flatnonzero((gaps[0][gap] < end) & (gaps[1][gap] > start) & (end > start))
        rows = plane.event_metadata.rows(events.metadata_id[near].astype(np.int64))
        names = [_op_name(plane, row) for row in rows.tolist()]
        times |= activity.in_flight(names, start[near], end[near], gaps)
    return times


def _op_name(plane: Plane, row: int) -> str:
    if row < 0:
        return "async op"
    return plane.event_metadata.name(row).partition(" = ")[0].lstrip("%") or plane.event_metadata.display_name(row)
