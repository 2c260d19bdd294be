"""What one host adds to the pages: sums by op and by step, never events, and the metadata with the ops' texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.device import DeviceInfo, device_info, is_gpu, is_sparse_core, is_tensor_core, merge_devices
from tpuprof.parsers.errors import Problem
from tpuprof.parsers.intervals import Int64s, is_sorted, subtract, union, union_length
from tpuprof.parsers.opstats import (
    OPS_LINE,
    STEPS_LINE,
    core_ops,
    device_spans,
    event_spans,
)
from tpuprof.parsers.optable import OpTable, merge_tables
from tpuprof.parsers.pages.overview_page import StepSource
from tpuprof.parsers.steps import (
    CoreSteps,
    CoreStepTimes,
    ModuleRuns,
    StepGrid,
    align,
    busiest_module,
    core_step_times,
    inferred_steps,
    marked_steps,
    module_runs,
)
from tpuprof.parsers.xspace.trace import ChunkDone, Line, Plane, Trace

HOST_PLANE = "/host:CPU"
ENVIRONMENT_PLANE = "Task Environment"
SPARSE_OPS_LINE = "Sparse Core Ops"
SPARSE_MODULES_LINE = "Sparse Core Modules"

_MODULE_NAME = re.compile(r"(.*)\((\d{1,20})\)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CoreSummary:
    """One TensorCore's totals.

    Attributes:
        name: plane name.
        info: what the plane says of its device.
        table: time by op.
        op_events: number of op events.
        total_ps: from the first to the last op or step (device time); 0 without any.
        span: hull of op and module events (host-aligned time), for the duty cycle; None without any.
        active_ps: time in which the core works (`on_duty`); unset for a chip with several cores.
        active: the same as disjoint intervals, for a chip with several cores; None for a chip with one.
        step_times: self time by step and part.
    """

    name: str
    info: DeviceInfo
    table: OpTable
    op_events: int
    total_ps: int
    span: tuple[int, int] | None
    active_ps: int
    active: tuple[Int64s, Int64s] | None
    step_times: CoreStepTimes


@dataclass(frozen=True, slots=True)
class ChipDuty:
    """Time in which at least one core of a chip works, and the whole time it was watched, in picoseconds."""

    active_ps: int
    total_ps: int


@dataclass(frozen=True, slots=True)
class HostSummary:
    """What the overview and the op pages need of one host.

    Attributes:
        host: name of the host.
        core_count, gpu_count: TensorCore and GPU planes.
        device: what the cores' planes say of them, None without a device plane.
        table: time by op over the host's cores.
        op_events: op events over the host's cores.
        self_ps: self time of all ops; total_ps: the cores' whole time, idle included.
        duty: one a chip.
        programs: program id to the name of its HLO module.
        steps: the steps that the host's cores share, None where there are none.
        step_note: how inferred steps were found, or why there are none.
        profile_duration_ps: as the profiler recorded it, else the hull of the device's events, else None.
        mxu_percent, hbm_percent: counters that the host plane may hold.
        simulated: the profile says that its times are not measured.
        warnings: what the profiler itself reported.
        remarks: what is odd about the devices.
        problems: what is wrong with the file.
    """

    host: str
    core_count: int
    gpu_count: int
    device: DeviceInfo | None
    table: OpTable
    op_events: int
    self_ps: int
    total_ps: int
    duty: tuple[ChipDuty, ...]
    programs: Mapping[int, str]
    steps: StepGrid | None
    step_note: str
    profile_duration_ps: int | None
    mxu_percent: float | None
    hbm_percent: float | None
    simulated: bool
    warnings: tuple[str, ...]
    remarks: tuple[str, ...]
    problems: tuple[Problem, ...]


def needed_bytes(trace: Trace) -> int:
    """Bytes of the lines that `summarise` decodes."""
    return sum(line.size for plane in trace.planes for line in plane.lines if _is_needed(plane, line))


def _is_needed(plane: Plane, line: Line) -> bool:
    if is_tensor_core(plane):
        return line.name == OPS_LINE
    return is_sparse_core(plane) and line.name == SPARSE_OPS_LINE


def summarise(trace: Trace, host: str, on_chunk: ChunkDone | None = None, workers: int = 1) -> HostSummary:
    """Decodes what the overview needs of one host and adds it up.

    Args:
        workers: threads over the cores; they help where the decoding core releases the interpreter lock.
    """
    cores = [plane for plane in trace.planes if is_tensor_core(plane)]
    runs = [module_runs(plane) for plane in cores]
    step_lists, source, note = _find_steps(cores, runs)
    infos = [device_info(plane) for plane in cores]
    crowded = _crowded_chips([*infos, *(device_info(plane) for plane in trace.planes if is_sparse_core(plane))])
    work = partial(_summarise_core, crowded=crowded, on_chunk=on_chunk)
    summaries = _run(work, list(zip(cores, infos, step_lists, runs, strict=True)), workers)
    device, remarks = merge_devices(infos)
    steps = align([core.step_times for core in summaries], source)
    if steps is None and not note:
        note = "the cores share no step"
    host_stats = _plane_stats(trace, HOST_PLANE)
    environment = _plane_stats(trace, ENVIRONMENT_PLANE)
    return HostSummary(
        host=host,
        core_count=len(cores),
        gpu_count=sum(is_gpu(plane) for plane in trace.planes),
        device=device,
        table=merge_tables([core.table for core in summaries]),
        op_events=sum(core.op_events for core in summaries),
        self_ps=sum(int(core.table.self_ps.sum()) for core in summaries),
        total_ps=sum(max(core.total_ps, int(core.table.self_ps.sum())) for core in summaries),
        duty=_duty(summaries, trace, on_chunk),
        programs=_programs_that_ran(runs),
        steps=steps,
        step_note=note,
        profile_duration_ps=_profile_duration(environment, summaries),
        mxu_percent=_percent(host_stats.get("matrix_unit_utilization_percent")),
        hbm_percent=_percent(host_stats.get("hbm_utilization_percent")),
        simulated=bool(environment.get("tpuprof_simulated")),
        warnings=(*trace.errors, *trace.warnings),
        remarks=remarks,
        problems=trace.problems,
    )


_Item = tuple[Plane, DeviceInfo, CoreSteps, ModuleRuns]


def _crowded_chips(infos: Sequence[DeviceInfo]) -> frozenset[str]:
    """Chips with several cores: their duty cycle needs the union of their cores' intervals, the others' just a sum."""
    chips = [info.chip for info in infos]
    return frozenset(chip for chip in chips if chips.count(chip) > 1)


def _run(work: Callable[[_Item], CoreSummary], items: Sequence[_Item], workers: int) -> list[CoreSummary]:
    if workers <= 1 or len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(workers, len(items))) as pool:
        return _in_order(pool, work, items)


def _in_order(pool: Executor, work: Callable[[_Item], CoreSummary], items: Iterable[_Item]) -> list[CoreSummary]:
    futures = [pool.submit(work, item) for item in items]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _plane_stats(trace: Trace, name: str) -> dict[str, object]:
    plane = trace.plane(name)
    return {} if plane is None else dict(plane.stats)


def _programs_that_ran(runs: Sequence[ModuleRuns]) -> dict[int, str]:
    """Names of programs by the events of the cores' `XLA Modules` lines, ``jit_step(7)``."""
    names = {name for core in runs for name in core.name}
    found = (_MODULE_NAME.match(name) for name in names)
    return {int(match[2]): match[1] for match in found if match}


def _percent(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 100 else None


def _find_steps(cores: Sequence[Plane], runs: Sequence[ModuleRuns]) -> tuple[list[CoreSteps], StepSource, str]:
    """Each core's steps, where they come from, and what to say about them."""
    marked = [marked_steps(plane) for plane in cores]
    if any(len(steps) for steps in marked):
        return marked, "steps", ""
    return _infer_steps(runs, marked)


def _infer_steps(runs: Sequence[ModuleRuns], none: list[CoreSteps]) -> tuple[list[CoreSteps], StepSource, str]:
    found = busiest_module(runs)
    if found is None:
        if not any(core.name for core in runs):
            return none, "modules", "no Steps line and no XLA Modules in this profile"
        return none, "modules", "no Steps line, and no HLO module ran at least 3 times on every core"
    module, share = found
    name = module.partition("(")[0]
    note = f"no Steps line: a step is taken as the time from one start of {name} to the next; "
    note += f"{name} takes {100 * share:.1f}% of the modules' time"
    return [inferred_steps(core, module) for core in runs], "modules", note


def _summarise_core(item: _Item, crowded: frozenset[str], on_chunk: ChunkDone | None) -> CoreSummary:
    plane, info, steps, runs = item
    ops = core_ops(plane, on_chunk)
    events = ops.events
    first, last = _hull([(events.start_ps, events.end_ps), *_line_spans(plane, STEPS_LINE, device=True)])
    duty_first, duty_last = _hull([(ops.event_start_ps, ops.event_end_ps), (runs.start_ps, runs.end_ps)])
    active, active_ps = None, 0
    if ops.off_duty.any():
        active = on_duty(ops.event_start_ps, ops.event_end_ps, ops.off_duty[events.key])
        active_ps = int((active[1] - active[0]).sum())
    elif info.chip in crowded:
        active = union(ops.event_start_ps, ops.event_end_ps)
    else:
        active_ps = union_length(ops.event_start_ps, ops.event_end_ps)
    return CoreSummary(
        name=plane.name,
        info=info,
        table=ops.table,
        op_events=len(events.key),
        total_ps=last - first,
        span=(duty_first, duty_last) if duty_last > duty_first else None,
        active_ps=active_ps,
        active=active if info.chip in crowded else None,
        step_times=core_step_times(steps, ops),
    )


def on_duty(start: Int64s, end: Int64s, is_off: NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """When a core works: an op runs, and the one that began last is none that waits or moves data for the host.

    So a loop does not work while an `async-done` inside it waits, as in XProf; ops inside a waiting op do.

    Args:
        start, end: int64[n], of the core's op events.
        is_off: bool[n], which of them are off duty.

    Returns:
        Disjoint intervals in order.
    """
    working_start, working_end = start[~is_off], end[~is_off]
    waits = union(start[is_off], end[is_off])
    works = subtract(*union(working_start, working_end), *waits)
    order = None if is_sorted(working_start) else np.argsort(working_start, kind="stable")
    begins = working_start if order is None else working_start[order]
    first, last = np.searchsorted(begins, waits[0], side="right"), np.searchsorted(begins, waits[1], side="left")
    count = np.maximum(last - first, 0)
    if not count.any():
        return works
    inside = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
    inside = inside if order is None else order[inside]
    return union(np.concatenate([works[0], working_start[inside]]), np.concatenate([works[1], working_end[inside]]))


def _line_spans(plane: Plane, name: str, device: bool) -> list[tuple[Int64s, Int64s]]:
    spans = []
    for line in plane.lines:
        if line.name == name:
            events = line.events(("device_offset_ps", "device_duration_ps") if device else ())
            start, end = event_spans(line, events)
            spans.append(device_spans(events, start, end) if device else (start, end))
    return spans


def _hull(spans: Sequence[tuple[Int64s, Int64s]]) -> tuple[int, int]:
    filled = [(start, end) for start, end in spans if len(start)]
    if not filled:
        return 0, 0
    return min(int(start.min()) for start, _ in filled), max(int(end.max()) for _, end in filled)


def _duty(cores: Sequence[CoreSummary], trace: Trace, on_chunk: ChunkDone | None) -> tuple[ChipDuty, ...]:
    """Duty cycle by chip (`duty_cycle_tracker.cc`): what at least one of the chip's cores works on, over their hull."""
    chips: dict[str, list[tuple[tuple[Int64s, Int64s], tuple[int, int] | None]]] = {}
    duty = []
    for core in cores:
        if core.active is not None:
            chips.setdefault(core.info.chip, []).append((core.active, core.span))
        elif core.span is not None:
            duty.append(ChipDuty(core.active_ps, core.span[1] - core.span[0]))
    for plane in trace.planes:
        if is_sparse_core(plane):
            chips.setdefault(device_info(plane).chip, []).append(_sparse_activity(plane, on_chunk))
    for parts in chips.values():
        starts = np.concatenate([active[0] for active, _ in parts])
        ends = np.concatenate([active[1] for active, _ in parts])
        spans = [span for _, span in parts if span is not None]
        if spans:
            whole = max(last for _, last in spans) - min(first for first, _ in spans)
            duty.append(ChipDuty(union_length(starts, ends), whole))
    return tuple(duty)


def _sparse_activity(plane: Plane, on_chunk: ChunkDone | None) -> tuple[tuple[Int64s, Int64s], tuple[int, int] | None]:
    """Active intervals and hull of a SparseCore; all its ops count as work."""
    ops = []
    for line in plane.lines:
        if line.name == SPARSE_OPS_LINE:
            ops.append(event_spans(line, line.events(on_chunk=on_chunk)))
    first, last = _hull([*ops, *_line_spans(plane, SPARSE_MODULES_LINE, device=False)])
    none = np.zeros(0, np.int64)
    starts = np.concatenate([start for start, _ in ops]) if ops else none
    ends = np.concatenate([end for _, end in ops]) if ops else none
    return union(starts, ends), (first, last) if last > first else None


def _profile_duration(environment: dict[str, object], cores: Sequence[CoreSummary]) -> int | None:
    start, stop = environment.get("profile_start_time"), environment.get("profile_stop_time")
    if isinstance(start, int) and isinstance(stop, int) and 0 < start < stop:
        return (stop - start) * 1000
    spans = [core.span for core in cores if core.span is not None]
    return max(last for _, last in spans) - min(first for first, _ in spans) if spans else None
