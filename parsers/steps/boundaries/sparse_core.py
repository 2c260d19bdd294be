"""The SparseCores' time in the steps of the TensorCores beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base import intervals
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.ops.core.ops import CATEGORY, SPARSE_OPS_LINE, event_spans
from tpuprof.parsers.ops.device import is_sparse_core
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource
from tpuprof.parsers.steps.boundaries.markers import CoreSteps, marked_steps

SPARSE_STEPS_LINE = "Sparse Core Steps"


@dataclass(frozen=True, slots=True)
class SparseSpans:
    """What a SparseCore did: disjoint times in order in which it ran ops, infeed ops, and outfeed ops."""

    busy: intervals.Intervals
    infeed: intervals.Intervals
    outfeed: intervals.Intervals


def sparse_spans(plane: Plane, on_chunk: ChunkDone | None = None) -> SparseSpans:
    """Decodes the ops of a SparseCore."""
    spans: dict[str, list[intervals.Intervals]] = {"": [], "infeed": [], "outfeed": []}
    for line in plane.lines:
        if line.name != SPARSE_OPS_LINE:
            continue
        events = line.events((), on_chunk, places=False)
        start, end = event_spans(line, events)
        ids = events.metadata_id.astype(np.int64)
        used = intervals.distinct(ids)
        source = OpSource(plane.event_metadata, plane.stat_metadata)
        categories = MetadataStats(source, plane.event_metadata.rows(used), (CATEGORY,)).texts(CATEGORY)
        for kind, parts in spans.items():
            of_kind = np.array([(category or "").endswith(kind) for category in categories], np.bool_)
            chosen = intervals.is_among(ids, used[of_kind]) if kind else np.ones(len(ids), np.bool_)
            parts.append((start[chosen], end[chosen]))
    return SparseSpans(*map(intervals.union_of, spans.values()))


def sparse_core_times(
    trace: Trace, names: Sequence[str], start_ps: intervals.Int64s, duration_ps: intervals.Int64s
) -> intervals.Floats | None:
    """float64[3, steps]: mean time, least compute and mean idle time of the SparseCores that have each step.

    As in XProf, a SparseCore computes whenever it is neither idle nor in infeed or outfeed ops. NaN for a step that no
    SparseCore has.

    Args:
        names, start_ps, duration_ps: the TensorCores' steps, in order of time.

    Returns:
        The times; None where no SparseCore has steps.
    """
    end_ps = step_ends(start_ps, duration_ps)
    rows = []
    for plane in trace.planes:
        steps = marked_steps(plane, line_name=SPARSE_STEPS_LINE) if is_sparse_core(plane) else None
        if steps is not None and len(steps):
            rows_of_steps = _same_steps(steps, names, start_ps, end_ps)
            rows.append(np.where(rows_of_steps >= 0, _times(plane, steps)[:, rows_of_steps], np.nan))
    return joined_times(rows)


def step_ends(start_ps: intervals.Int64s, duration_ps: intervals.Int64s) -> intervals.Int64s:
    """int64[steps]: where steps in order of time end, the next one's begin at the latest."""
    end_ps = start_ps + duration_ps
    cut: intervals.Int64s = np.minimum(end_ps, np.append(start_ps[1:], end_ps[-1:]))
    return cut


def joined_times(parts: Sequence[intervals.Floats]) -> intervals.Floats | None:
    """Joins such times of several SparseCores or hosts; None without any."""
    if not parts:
        return None
    every = np.stack(parts)
    known = np.isfinite(every)
    count = known.sum(axis=0)
    means = np.where(known, every, 0.0).sum(axis=0) / np.maximum(count, 1)
    means[1] = np.where(known[:, 1], every[:, 1], np.inf).min(axis=0)
    return np.where(count > 0, means, np.nan)


def _times(plane: Plane, steps: CoreSteps) -> intervals.Floats:
    """float64[3, steps]: time, compute and idle time of one SparseCore in its own steps."""
    spans = sparse_spans(plane)
    parts = spans.busy, spans.infeed, spans.outfeed
    busy, infeed, outfeed = (intervals.overlap(steps.start_ps, steps.end_ps, *part) for part in parts)
    return np.stack([steps.duration_ps, np.maximum(busy - infeed - outfeed, 0), steps.duration_ps - busy]).astype(
        np.float64
    )


def _same_steps(
    steps: CoreSteps, names: Sequence[str], start_ps: intervals.Int64s, end_ps: intervals.Int64s
) -> NDArray[np.intp]:
    """Where a SparseCore has each step, -1 for nowhere: by name where that fits in time, else by time.

    A TensorCore's steps have the numbers that the program gave them, where it gave any, and not their markers' names.
    """
    where = {name: index for index, name in enumerate(steps.names)}
    index = np.array([where.get(name, -1) for name in names], np.intp)
    apart = (index >= 0) & ((steps.start_ps[index] >= end_ps) | (steps.end_ps[index] <= start_ps))
    is_unique = len(where) == len(steps) and len(set(names)) == len(names)
    if is_unique and (index >= 0).any() and not apart.any():
        return index
    step = intervals.interval_index(steps.start_ps + (steps.end_ps - steps.start_ps) // 2, start_ps, end_ps)
    index[:] = -1
    index[step[step >= 0]] = np.flatnonzero(step >= 0)
    return index
