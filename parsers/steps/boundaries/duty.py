"""The duty cycle: the share of a chip's time in which at least one of its cores works (`duty_cycle_tracker.cc`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Intervals, subtract, union_length, union_of
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.ops.core import ops as core_ops
from tpuprof.parsers.ops.core.sums import CoreSums
from tpuprof.parsers.ops.device import OFF_DUTY, device_info, is_sparse_core
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource
from tpuprof.parsers.steps.boundaries.recorded import Recorded
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns


@dataclass(frozen=True, slots=True)
class CoreDuty:
    """What a core adds to its chip's duty cycle.

    Attributes:
        chip: the chip.
        span: from the first op or module event to the last (host-aligned time); None without any.
        active_ps: time in which the core works (`on_duty`).
        active: the same as disjoint intervals, for a chip with several cores; None for a chip with one core.
        lost_ps: how long more its ops ran that were not recorded.
    """

    chip: str
    span: tuple[int, int] | None
    active_ps: int
    active: Intervals | None
    lost_ps: int


@dataclass(frozen=True, slots=True)
class ChipDuty:
    """How long at least one core of a chip works, in picoseconds.

    Attributes:
        active_ps: for so long, as its ops show.
        total_ps: of the time from the first event of its cores to the last.
        lost_ps: for so long more, in ops that were not recorded.
        chip: as `DeviceInfo` has it.
    """

    active_ps: int
    total_ps: int
    lost_ps: int = 0
    chip: str = ""


def core_duty(chip: str, sums: CoreSums, runs: ModuleRuns, shares_chip: bool, recorded: Recorded) -> CoreDuty:
    """What a core adds to its chip's duty cycle.

    Args:
        shares_chip: whether the chip has several cores, and needs the union of their intervals and not just a sum.
    """
    ops = [] if sums.own_span is None else [core_ops.as_interval(sums.own_span)]
    first, last = core_ops.time_span([*ops, (runs.start_ps, runs.end_ps)])
    active = on_duty(sums)
    length = int((active[1] - active[0]).sum())
    span, lost_ps = (first, last) if last > first else None, int(recorded.lost_ps.sum())
    return CoreDuty(chip, span, length, active if shares_chip else None, lost_ps)


def on_duty(sums: CoreSums) -> Intervals:
    """When a core works: an op runs, and the op that began last neither waits nor moves data for the host.

    So a loop does not work while an `async-done` inside it waits, as in XProf; ops inside a waiting op do work.

    Returns:
        Disjoint intervals in order.
    """
    works = subtract(*sums.working, *sums.waiting)
    if not len(sums.inside_waits[0]):
        return works
    return union_of((works, sums.inside_waits))


def chip_duty(cores: Sequence[CoreDuty], trace: Trace, on_chunk: ChunkDone | None) -> tuple[ChipDuty, ...]:
    """The duty cycle of each chip, over the hull of its cores' events; SparseCores count as cores."""
    chips: dict[str, list[tuple[Intervals, tuple[int, int] | None]]] = {}
    duty, lost_ps = [], dict[str, int]()
    for core in cores:
        if core.active is not None:
            chips.setdefault(core.chip, []).append((core.active, core.span))
            lost_ps[core.chip] = max(core.lost_ps, lost_ps.get(core.chip, 0))
        elif core.span is not None:
            duty.append(ChipDuty(core.active_ps, core.span[1] - core.span[0], core.lost_ps, core.chip))
    for plane in trace.planes:
        if is_sparse_core(plane):
            chips.setdefault(device_info(plane).chip, []).append(_sparse_activity(plane, on_chunk))
    for chip, parts in chips.items():
        starts = np.concatenate([active[0] for active, _ in parts])
        ends = np.concatenate([active[1] for active, _ in parts])
        spans = [span for _, span in parts if span is not None]
        if spans:
            whole = max(last for _, last in spans) - min(first for first, _ in spans)
            duty.append(ChipDuty(union_length(starts, ends), whole, lost_ps.get(chip, 0), chip))
    return tuple(duty)


def _sparse_activity(plane: Plane, on_chunk: ChunkDone | None) -> tuple[Intervals, tuple[int, int] | None]:
    """A SparseCore's active intervals and hull; ops that wait or move data for the host are no work."""
    metadata = plane.event_metadata
    ops: list[Intervals] = []
    active: list[Intervals] = []
    for line in plane.lines:
        if line.name == core_ops.SPARSE_OPS_LINE:
            events = line.events((), on_chunk)
            start, end = core_ops.event_spans(line, events)
            stats = MetadataStats(
                OpSource(metadata, plane.stat_metadata),
                metadata.rows(events.metadata_id.astype(np.int64)),
                (core_ops.CATEGORY,),
            )
            works = ~stats.is_one_of(core_ops.CATEGORY, OFF_DUTY)
            ops.append((start, end))
            active.append((start[works], end[works]))
    first, last = core_ops.time_span([*ops, *core_ops.line_spans(plane, core_ops.SPARSE_MODULES_LINE)])
    return union_of(active), (first, last) if last > first else None
