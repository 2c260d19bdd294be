"""The duty cycle: the share of a chip's time in which at least one of its cores works (`duty_cycle_tracker.cc`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tpuprof.parsers.base.intervals import (
    Bools,
    Int64s,
    Intervals,
    is_sorted,
    no_ints,
    ranges,
    subtract,
    union,
    union_length,
)
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.ops.core_ops import DEVICE_SPAN, CoreOps, device_spans, event_spans
from tpuprof.parsers.ops.device import device_info, is_sparse_core
from tpuprof.parsers.steps.markers import ModuleRuns

SPARSE_OPS_LINE = "Sparse Core Ops"
SPARSE_MODULES_LINE = "Sparse Core Modules"


@dataclass(frozen=True, slots=True)
class CoreDuty:
    """What a core adds to its chip's duty cycle.

    Attributes:
        chip: the chip.
        span: from the first op or module event to the last (host-aligned time); None without any.
        active_ps: time in which the core works (`on_duty`); unset for a chip with several cores.
        active: the same as disjoint intervals, for a chip with several cores; None for a chip with one core.
    """

    chip: str
    span: tuple[int, int] | None
    active_ps: int
    active: Intervals | None


@dataclass(frozen=True, slots=True)
class ChipDuty:
    """Time in which at least one core of a chip works, and the whole time that the profile covers, in picoseconds."""

    active_ps: int
    total_ps: int


def core_duty(chip: str, ops: CoreOps, runs: ModuleRuns, is_crowded: bool) -> CoreDuty:
    """What a core adds to its chip's duty cycle.

    Args:
        is_crowded: whether the chip has several cores, and needs the union of their intervals and not just a sum.
    """
    first, last = hull([(ops.event_start_ps, ops.event_end_ps), (runs.start_ps, runs.end_ps)])
    active: Intervals | None = None
    active_ps = 0
    if ops.off_duty.any():
        active = on_duty(ops.event_start_ps, ops.event_end_ps, ops.off_duty[ops.events.key])
        active_ps = int((active[1] - active[0]).sum())
    elif is_crowded:
        active = union(ops.event_start_ps, ops.event_end_ps)
    else:
        active_ps = union_length(ops.event_start_ps, ops.event_end_ps)
    return CoreDuty(chip, (first, last) if last > first else None, active_ps, active if is_crowded else None)


def on_duty(start: Int64s, end: Int64s, is_off: Bools) -> Intervals:
    """When a core works: an op runs, and the op that began last neither waits nor moves data for the host.

    So a loop does not work while an `async-done` inside it waits, as in XProf; ops inside a waiting op do work.

    Args:
        start, end: int64[n], spans of the core's op events.
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
    _, inside = ranges(first, last)
    if not len(inside):
        return works
    inside = inside if order is None else order[inside]
    return union(np.concatenate([works[0], working_start[inside]]), np.concatenate([works[1], working_end[inside]]))


def line_spans(plane: Plane, name: str, device: bool = False, on_chunk: ChunkDone | None = None) -> list[Intervals]:
    """Spans of the events of each line of that name; with `device` by the device's clock."""
    spans = []
    for line in plane.lines:
        if line.name == name:
            events = line.events(DEVICE_SPAN if device else (), on_chunk)
            start, end = event_spans(line, events)
            spans.append(device_spans(events, start, end) if device else (start, end))
    return spans


def hull(spans: Sequence[Intervals]) -> tuple[int, int]:
    """From the first start to the last end; zeros without any event."""
    filled = [(start, end) for start, end in spans if len(start)]
    if not filled:
        return 0, 0
    return min(int(start.min()) for start, _ in filled), max(int(end.max()) for _, end in filled)


def union_of(spans: Sequence[Intervals]) -> Intervals:
    """When an event of any of these lines ran: disjoint intervals in order."""
    none = no_ints()
    starts = np.concatenate([none, *(start for start, _ in spans)])
    ends = np.concatenate([none, *(end for _, end in spans)])
    return union(starts, ends)


def chip_duty(cores: Sequence[CoreDuty], trace: Trace, on_chunk: ChunkDone | None) -> tuple[ChipDuty, ...]:
    """The duty cycle of each chip, over the hull of its cores' events; SparseCores count as cores."""
    chips: dict[str, list[tuple[Intervals, tuple[int, int] | None]]] = {}
    duty = []
    for core in cores:
        if core.active is not None:
            chips.setdefault(core.chip, []).append((core.active, core.span))
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


def _sparse_activity(plane: Plane, on_chunk: ChunkDone | None) -> tuple[Intervals, tuple[int, int] | None]:
    """A SparseCore's active intervals and hull; all its ops count as work."""
    ops = line_spans(plane, SPARSE_OPS_LINE, on_chunk=on_chunk)
    first, last = hull([*ops, *line_spans(plane, SPARSE_MODULES_LINE)])
    return union_of(ops), (first, last) if last > first else None
