"""What the pass over a core's ops makes of ordered events, without the compiled core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals, interval_index, is_sorted, no_ints, union
from tpuprof.parsers.formats.xspace.core.api import min_by_key, self_times, sum_by_key
from tpuprof.parsers.formats.xspace.core.pass_sums import PassSums, StepCells
from tpuprof.parsers.formats.xspace.core.types import EventColumns
from tpuprof.parsers.formats.xspace.metadata import KIND_INT64, KIND_UINT64
from tpuprof.parsers.ops.core.traced import TRACED, Roles, times_by_role


def plain_pass(
    events: EventColumns, rows: tuple[int, int, int], off_duty: Bools, roles: Roles, steps: Intervals, times: Int64s
) -> PassSums:
    """The sums of ordered events (`ordered.ordered_events`); arguments as for `OpPass`."""
    ids, own_start, own_end = events.metadata_id, events.offset_ps, events.offset_ps + events.duration_ps
    start, duration = events.value[rows[0]], events.value[rows[1]]
    end, self_ps = start + duration, self_times(start, start + duration)
    step = interval_index(own_start, *steps)
    in_step = np.flatnonzero(step >= 0)
    is_off = off_duty[ids]
    on = np.flatnonzero(~is_off)
    on = on[np.argsort(own_start[on], kind="stable")]
    kind, reduce = (no_ints(), no_ints()) if rows[2] < 0 else (events.kind[rows[2]], events.value[rows[2]])
    reducing = np.flatnonzero(((kind == KIND_UINT64) | (kind == KIND_INT64)) & (reduce != 0))
    reducing = reducing[step[reducing] >= 0]
    role = roles[ids] if len(roles) else np.zeros(len(ids), np.uint8)
    traced = np.flatnonzero(role == TRACED)
    work, within = times_by_role(start, end, role)
    has_two_clocks = len(start) > 1 and is_sorted(own_start) and not np.array_equal(start, own_start)
    return PassSums(
        occurrences=np.bincount(ids, minlength=len(off_duty)).astype(np.int64),
        total_ps=sum_by_key(ids, duration, len(off_duty)),
        self_ps=sum_by_key(ids, self_ps, len(off_duty)),
        minimum_ps=min_by_key(ids, duration, len(off_duty)),
        events=len(start),
        span=_span(start, end),
        own_span=_span(own_start, own_end),
        has_two_clocks=has_two_clocks,
        times=times,
        time_span=around(times, (own_start, own_end), (start, end)) if has_two_clocks else no_ints().reshape(0, 4),
        cells=StepCells(step[in_step], ids[in_step], self_ps[in_step], np.ones(len(in_step), np.int32)),
        busy=union(own_start, own_end),
        working=union(own_start[on], own_end[on]),
        off=(own_start[is_off], own_end[is_off]),
        inside=(own_start[on], own_end[on]),
        reduces=np.stack([step[reducing], reduce[reducing], duration[reducing]], axis=1),
        traced=np.stack([column[traced] for column in (ids, start, end, self_ps, own_start)], axis=1).astype(np.int64),
        work=work,
        within=within,
    )


def _span(start: Int64s, end: Int64s) -> tuple[int, int] | None:
    return (int(start.min()), int(end.max())) if len(start) else None


def around(times: Int64s, own: Intervals, device: Intervals) -> NDArray[np.int64]:
    """See `OpPass.time_span`; of events in order on both clocks."""
    latest = np.maximum.accumulate(own[1])
    outer = np.flatnonzero(np.append(True, own[1][1:] > latest[:-1]))  # not inside an earlier one
    starts, ends = own[0][outer], own[1][outer]
    op = np.maximum(np.searchsorted(starts, times, side="right") - 1, 0)
    after = np.minimum(op + 1, len(outer) - 1)
    inside = (times <= ends[op]) | (after == op)
    columns = [
        np.where(inside, of[which][outer][op], of[1][outer][op] if which == 0 else of[0][outer][after])
        for of in (own, device)
        for which in (0, 1)
    ]
    return np.stack(columns, axis=1)


def device_times(times: Int64s, time_span: NDArray[np.int64]) -> Int64s:
    """int64[n]: device times of times on the trace's clock: by the op that runs then, else between the ops around.

    Args:
        time_span: int64[n, 4], see `OpPass.time_span`.
    """
    left, right, left_device, right_device = time_span.T
    length = np.maximum(right - left, 1)
    share = np.clip((times - left) / length, 0.0, 1.0)
    beyond = np.where(times > right, times - right, np.where(times < left, times - left, 0))  # outside all ops
    out: Int64s = left_device + np.rint(share * (right_device - left_device)).astype(np.int64) + beyond
    return out
