"""What one host adds to the pages: sums by op and by step, never events, and the metadata with the ops' texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import Intervals, no_ints, overlap, subtract, union
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.crew import Crew
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.core.api import trim
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane, Trace
from tpuprof.parsers.hosts.core_summary import CoreBusy, CoreSummary, OfCore, has_infeed, summarise_core
from tpuprof.parsers.hosts.op_summary import of_file, op_summary
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.hosts.step_summary import (
    NOTHING_SHARED,
    STEP_SPANS_OF_HOST,
    HostSide,
    StepSpansSummary,
    find_steps,
    streams_and_host,
)
from tpuprof.parsers.ops import device as devices
from tpuprof.parsers.ops.core.calls import CallRuns, core_calls, has_waits, merged_calls
from tpuprof.parsers.ops.core.kernel_work import KernelWorks
from tpuprof.parsers.ops.core.ops import ASYNC_OPS_LINE, OPS_LINE, SPARSE_OPS_LINE, event_spans
from tpuprof.parsers.ops.core.times import CoreOpTimes, core_op_times
from tpuprof.parsers.ops.host.activity import (
    Compilation,
    IdleTime,
    activities,
    compilations,
    compiling,
    in_flight,
    launches,
    launches_on_cpu,
    reading,
)
from tpuprof.parsers.ops.host.events import HOST_PLANE, thread_lines
from tpuprof.parsers.ops.host.input_events import InputRows
from tpuprof.parsers.ops.host.memory_use import fullest_memory
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.steps.accounts.causes import IdleCauses, barriers, causes_of_core
from tpuprof.parsers.steps.aligned import AlignedSteps, InputSource, align
from tpuprof.parsers.steps.groups.groups import (
    has_step_numbers,
)
from tpuprof.parsers.steps.launches import ClockLead, clock_lead
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.requests.requests import HostRequests, host_requests
from tpuprof.parsers.steps.spans.duty import ChipDuty, chip_duty
from tpuprof.parsers.steps.spans.markers import CoreSteps
from tpuprof.parsers.steps.spans.runs import ModuleRuns
from tpuprof.parsers.steps.spans.sparse_core import sparse_core_times

if TYPE_CHECKING:
    from tpuprof.parsers.ops.streams.devices import StreamDevice
    from tpuprof.parsers.steps.generic.step_events import GenericSummary


@dataclass(frozen=True, slots=True)
class HostSummary(StepSpansSummary):
    """What all pages of a profile need of one host, but for the timeline and memory.

    Attributes:
        clocks: sentences on clocks that differ.
        duty: the duty cycle of each chip.
        steps: the steps that the host's cores share, and what these do in them; None where there are none.
        input_rows: what the host did for input that is no framework op.
        requests: the requests that the host served, and the runs of its cores' modules.
        generic: what its GPUs did, or its own CPU in a profile without a device; None with TPUs, or without either.
        idle: the long gaps of the core that is idle most; None where no core is idle for long.
        barriers: of each core with a line for them, how long it waited for other cores at barriers; in its steps where
            it has any.
        compilations: programs that the host compiled during the profile.
        core_ops: the largest ops by core.
        cores: how busy each core was.
        memory: bytes in use in the device memory that was fullest, and its capacity; None where no event records them.
        has_step_numbers: whether annotations of the host number steps.
        launched: how often the host launched a program, counted only where no core ran an op; None without a host.
        ran_on_cpu: how often it ran one on its own CPU, counted likewise.
        profile_start_ns: when the profiler began, in nanoseconds since 1970; None where it did not record that.
        profile_duration_ps: the duration that the profiler recorded, else from the first to the last device event,
            else None.
        mxu_percent, hbm_percent: hardware counters that the host plane may hold.
        hlo_programs: program id to the name of each compiled HLO module that the profile holds.
        calls: kernels of which the profile has the spans inside, over the host's cores.
    """

    clocks: tuple[str, ...]
    duty: tuple[ChipDuty, ...]
    steps: AlignedSteps | None
    input_rows: InputRows
    requests: HostRequests
    generic: GenericSummary | None
    idle: IdleTime | None
    barriers: Mapping[str, int]
    compilations: tuple[Compilation, ...]
    core_ops: CoreOpTimes
    cores: tuple[CoreBusy, ...]
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
    trace: Trace, host: str, on_chunk: ChunkDone | None = None, workers: int = 1, more: OfCore | None = None
) -> HostSummary:
    """Decodes what the overview needs of one host and adds it up.

    Args:
        workers: how many threads decode cores; they help where the decoding releases the interpreter lock.
        more: what else is taken from the pass over each core's ops.
    """
    cores = devices.tensor_cores(trace)
    streams, side = streams_and_host(trace, on_chunk)
    found = find_steps(trace, cores, side.events)
    launched, runs, step_lists, note = found.launched, found.runs, found.of_cores, found.note
    if more is not None:
        more.begin(step_lists)
    lead = clock_lead(launched)
    shift = 0 if lead is None else lead.shift_ps
    waits = _shifted(side.waits, -shift)
    causes = IdleCauses(
        input=waits if _is_fed_by_host(waits, step_lists) else (no_ints(), no_ints()),
        compiling=_shifted(compiling(side.events), -shift),
        reading=_shifted(reading(side.events), -shift),
    )
    at_barriers = [barriers(plane) for plane in cores]
    infos = [devices.device_info(plane) for plane in cores]
    beside = [devices.device_info(plane) for plane in trace.planes if devices.is_sparse_core(plane)]
    chips = Counter(info.chip for info in (*infos, *beside))
    modules = HloModules.of(trace)
    works = KernelWorks(lambda: modules)

    def work(index: int) -> CoreSummary:
        shares_chip = chips[infos[index].chip] > 1  # its duty cycle needs the union of its cores' intervals
        core = cores[index], infos[index], step_lists[index], runs[index]
        others = [*runs[:index], *runs[index + 1 :]]
        of_core = causes_of_core(causes, launched[index], at_barriers[index], shift, others)
        made = summarise_core(*core, shares_chip, waits, of_core, modules, works, on_chunk, more, crew)
        if more is not None:
            trim()  # of what more was made of, else the next core's comes on top
        return made

    with Crew(workers) as crew:
        summaries = crew.map(work, range(len(cores)))
    most = max(range(len(cores)), key=lambda index: summaries[index].gap_ps, default=None)
    ops = op_summary(trace, host, infos, summaries, {name for core in runs for name in core.names}, streams)
    names = [core_label(host, devices.device_ordinal(plane)) for plane in cores]
    steps = _grid(trace, names, summaries, found.source, _input_source(ops.table, waits, step_lists))
    if steps is not None:
        steps = replace(steps, is_numbered=found.module is None)
    if steps is None and not note:
        note = NOTHING_SHARED
    host_stats, environment = (_plane_stats(trace, name) for name in (HOST_PLANE, devices.ENVIRONMENT_PLANE))
    return HostSummary(
        **{field.name: getattr(ops, field.name) for field in fields(ops)},
        clocks=_of_clocks(lead),
        duty=chip_duty([core.duty for core in summaries], trace, on_chunk),
        steps=steps,
        step_note=note,
        step_module=found.module,
        host_ops=side.ops,
        input_rows=side.input_rows,
        requests=host_requests(side.events, found.groups, cores, launched, [core.run_ps for core in summaries], shift),
        generic=_generic(trace, streams, side) if not cores and not beside else None,
        idle=None if most is None else _idle_time(cores[most], summaries[most], runs[most], side, shift),
        barriers={
            name: waited
            for name, spans, steps in zip(names, at_barriers, step_lists, strict=True)
            if (waited := _waited(spans, steps)) is not None
        },
        compilations=()
        if side.events is None
        else compilations(
            side.events, (no_ints(), no_ints()) if most is None else _shifted(summaries[most].gaps, shift)
        ),
        has_step_numbers=side.events is not None and has_step_numbers(side.events),
        memory=fullest_memory(side.events),
        launched=None if side.events is None or len(ops.table) else launches(side.events),
        ran_on_cpu=0 if side.events is None or len(ops.table) else launches_on_cpu(side.events),
        core_ops=core_op_times(names, [core.table for core in summaries], ops.table),
        cores=tuple(map(_core_busy, names, cores, summaries)),
        profile_start_ns=devices.capture_start_ns(trace.plane(devices.ENVIRONMENT_PLANE)),
        profile_duration_ps=_profile_duration(environment, summaries),
        mxu_percent=_percent(host_stats.get("matrix_unit_utilization_percent")),
        hbm_percent=_percent(host_stats.get("hbm_utilization_percent")),
        hlo_programs=dict(modules.names),
        calls=tuple(call for call in merged_calls(_traced_calls(cores)) if call.traced_ps),
    )


def _traced_calls(cores: Sequence[Plane]) -> Iterator[CallRuns]:
    """The kernels of cores that record what goes on inside them: few profiles have any."""
    for plane in cores:
        if has_waits(plane):
            yield from core_calls(plane)


def _summarise_host(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> HostSummary:
    return of_file(summarise(trace, file.host, on_chunk, threads), file)


SUMMARY_OF_HOST = Reduction(
    "summary",
    HostSummary,
    needed_bytes,
    _summarise_host,
    tables=("table",),
    includes=STEP_SPANS_OF_HOST,
    given_by=("collectives", "steps"),
)
"""What all pages need of a host, but for those that have a reduction of their own."""


def _core_busy(name: str, plane: Plane, core: CoreSummary) -> CoreBusy:
    busy = int(core.table.self_ps.sum())
    return CoreBusy(name, devices.chip_number(plane), busy, max(core.total_ps, busy))


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


def _generic(trace: Trace, streams: Sequence[StreamDevice], side: HostSide) -> GenericSummary | None:
    """The steps as streams show them, or the host alone; None without any."""
    if any(devices.is_gpu(plane) for plane in trace.planes):
        from tpuprof.parsers.steps.generic.gpu import gpu_summary  # noqa: PLC0415 - for GPUs only

        return gpu_summary(trace, side.events, streams, side.waits)
    if side.events is None:
        return None
    from tpuprof.parsers.steps.generic.cpu import cpu_summary  # noqa: PLC0415 - for profiles without a device only

    return cpu_summary(trace, side.events, next(iter(streams), None), side.waits)


def _plane_stats(trace: Trace, name: str) -> dict[str, object]:
    plane = trace.plane(name)
    return {} if plane is None else dict(plane.stats)


def _percent(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 100 else None


# --- steps ---------------------------------------------------------------------------------------------------------


def _input_source(table: OpTable, waits: Intervals, cores: Sequence[CoreSteps]) -> InputSource | None:
    """What the time that steps wait for input is measured by; None without infeed ops and with few input events on the
    host.

    The host's input events count if at least every other step has one: transfers while a program starts up say nothing
    about its steps.
    """
    if has_infeed(table):
        return "infeed"
    return "host" if _is_fed_by_host(waits, cores) else None


def _is_fed_by_host(waits: Intervals, cores: Sequence[CoreSteps]) -> bool:
    """Whether the host waits for input, or sends it, in at least every other step."""
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
) -> AlignedSteps | None:
    grid = align([core.step_times for core in summaries], source, names, input_source)
    if grid is None:
        return None
    return replace(grid, sparse_core=sparse_core_times(trace, grid.names, grid.start_ps, grid.longest_ps))


# --- idle time -----------------------------------------------------------------------------------------------------


def _shifted(spans: Intervals, shift_ps: int) -> Intervals:
    return spans[0] + shift_ps, spans[1] + shift_ps


def _idle_time(plane: Plane, core: CoreSummary, runs: ModuleRuns, side: HostSide, shift_ps: int) -> IdleTime | None:
    """The long gaps of a core, without those in which the host waited for input.

    Args:
        shift_ps: what to add to the device's times to compare them with the host's.
    """
    gaps = subtract(*core.gaps, *_shifted(side.waits, -shift_ps))
    if not len(gaps[0]):
        return None
    length = gaps[1] - gaps[0]
    longest = int(length.argmax())
    return IdleTime(
        core=devices.device_ordinal(plane),
        gap_ps=int(length.sum()),
        unlaunched_ps=_outside(gaps, union(runs.start_ps, runs.end_ps)),
        count=len(length),
        longest=(int(gaps[0][longest]), int(gaps[1][longest])),
        activities=activities(side.events, _shifted(gaps, shift_ps)) if side.events is not None else (),
        in_flight=_in_flight(plane, gaps),
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
        times |= in_flight(names, start[near], end[near], gaps)
    return times


def _op_name(plane: Plane, row: int) -> str:
    if row < 0:
        return "async op"
    return plane.event_metadata.name(row).partition(" = ")[0].lstrip("%") or plane.event_metadata.display_name(row)


def _profile_duration(environment: dict[str, object], cores: Sequence[CoreSummary]) -> int | None:
    start, stop = environment.get("profile_start_time"), environment.get("profile_stop_time")
    if isinstance(start, int) and isinstance(stop, int) and 0 < start < stop:
        return (stop - start) * 1000
    spans = [core.duty.span for core in cores if core.duty.span is not None]
    return max(last for _, last in spans) - min(first for first, _ in spans) if spans else None
