"""What the SparseCores of one host do beside its TensorCores, step by step: who works, who waits for whom.

All times are on the trace's clock, as on the timeline. A TensorCore *works* while an op of it runs that does not wait
for a SparseCore; it *waits* in an op that does (see `_waiting`). A SparseCore works while an op of it runs; several
beside one TensorCore count as one where their times are compared with its.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base import intervals
from tpuprof.parsers.base.intervals import Int64s, Intervals, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.core_names import core_label, label_of_plane
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.ops.core import ops as core_ops
from tpuprof.parsers.ops.device import device_ordinal, is_sparse_core, is_tensor_core
from tpuprof.parsers.ops.offload import STARTED_BY, sparse_ops
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.steps.boundaries.markers import marked_steps
from tpuprof.parsers.steps.boundaries.sparse_core import SPARSE_STEPS_LINE, SparseSpans, sparse_spans, step_ends

SYNCS_LINE = "Sparse Core Syncs"

WORK, SPARSE, BOTH, WAIT, WAIT_BESIDE = range(5)
"""Parts of a step on a TensorCore: it works; a SparseCore works; both do; it waits; so long a SparseCore works."""

BUSY, BESIDE, INFEED, OUTFEED, SYNC = range(5)
"""Parts of a step on a SparseCore: it works, the TensorCore does too, it runs infeed and outfeed ops, a sync event."""

STRIP_CELLS = 120
"""Into how many parts of one length a step is cut to be drawn."""

MOST_STRIPS = 2000
"""Further steps are not drawn."""

_START = re.compile(r"-start\b")
_DONE = re.compile(r"-done\b")
_ON_SPARSE_CORE = 'async_execution_thread="sparsecore"'
_FED_BY_SPARSE_CORE = "sparsecorev0 infeed"
_OPERAND = re.compile(r"-done\((?:[^%()]*\s)?%?([\w.\-]+)")


@dataclass(frozen=True, slots=True)
class SparseWait:
    """A TensorCore's op that waits for a SparseCore, on all cores of a host, within the steps.

    Attributes:
        op: its name; started_by: of the op that began what it waits for, where the profile records it.
        occurrences: how often it ran; wait_ps: for how long; beside_ps: for how long of that a SparseCore worked.
    """

    op: str
    started_by: str
    occurrences: int
    wait_ps: int
    beside_ps: int


@dataclass(frozen=True, slots=True)
class SparseHost:
    """What one host's SparseCores did, and the TensorCores beside them.

    Attributes:
        host: its name.
        step_names, start_ps, duration_ps: the steps, in order of time; int64[steps].
        step_source: where they come from.
        cores: ``host:ordinal`` of each TensorCore that has SparseCores beside it.
        has_tensor_core: bool[cores]; whether the profile has that TensorCore's ops.
        times: int64[cores, steps, 5]; `WORK` and the following.
        sparse_cores: name of each SparseCore, ``host:0 SparseCore 1``.
        beside: int64[SparseCores]; which of `cores` each is beside.
        sparse_times: int64[SparseCores, steps, 5]; `BUSY` and the following.
        has_feeds, has_syncs: whether any SparseCore ran infeed or outfeed ops, or has sync events.
        waits: the ops in which TensorCores wait, longest first.
        ops: the ops of all SparseCores; `OpTable.parent` is the TensorCore's op that each ran for, where it is known.
        strip_core: which of `cores` the strips are of: the one that a SparseCore works longest beside while it does
            not; -1 without any.
        strips: uint8[steps, 3, STRIP_CELLS]; percent of each part of the step that this core works, that it waits, and
            that a SparseCore works.
    """

    host: str
    step_names: tuple[str, ...]
    start_ps: Int64s
    duration_ps: Int64s
    step_source: str
    cores: tuple[str, ...]
    has_tensor_core: NDArray[np.bool_]
    times: Int64s
    sparse_cores: tuple[str, ...]
    beside: Int64s
    sparse_times: Int64s
    has_feeds: bool
    has_syncs: bool
    waits: tuple[SparseWait, ...]
    ops: OpTable
    strip_core: int
    strips: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class StepSpans:
    """Steps in order of time that do not overlap: names, and int64[n] starts and ends; see `SparseHost.step_source`."""

    names: tuple[str, ...]
    start_ps: Int64s
    end_ps: Int64s
    source: str


@dataclass(frozen=True, slots=True)
class _Tensor:
    """What a TensorCore did: disjoint times at work and waiting, and its events that wait, by the op's name."""

    working: Intervals
    waiting: Intervals
    wait_names: tuple[str, ...]
    started_by: tuple[str, ...]
    wait_of: Int64s
    wait_start: Int64s
    wait_end: Int64s


def has_sparse_cores(trace: Trace) -> bool:
    """Whether a profile has SparseCores."""
    return any(map(is_sparse_core, trace.planes))


def needed_bytes(trace: Trace) -> int:
    """Bytes of the lines that `sparse_host` decodes."""
    beside = {device_ordinal(plane) for plane in trace.planes if is_sparse_core(plane)}
    planes = [plane for plane in trace.planes if device_ordinal(plane) in beside]
    lines = [line for plane in planes if is_tensor_core(plane) or is_sparse_core(plane) for line in plane.lines]
    return sum(line.size for line in lines if line.name in (core_ops.OPS_LINE, core_ops.SPARSE_OPS_LINE, SYNCS_LINE))


def sparse_host(trace: Trace, host: str, steps: StepSpans | None, on_chunk: ChunkDone | None = None) -> SparseHost:
    """Decodes what a host's SparseCores did, and the TensorCores beside them.

    Args:
        steps: the TensorCores' steps; None where they have none: then the SparseCores' own, else the whole time is one.
    """
    sparse_planes = [plane for plane in trace.planes if is_sparse_core(plane)]
    ordinals = intervals.distinct(np.array([device_ordinal(plane) for plane in sparse_planes], np.int64)).tolist()
    found = {device_ordinal(plane): plane for plane in trace.planes if is_tensor_core(plane)}
    tensors = [_tensor(found[number], on_chunk) if number in found else None for number in ordinals]
    sparse = [sparse_spans(plane, on_chunk) for plane in sparse_planes]
    syncs = [intervals.union_of(core_ops.line_spans(plane, SYNCS_LINE)) for plane in sparse_planes]
    beside = np.array([ordinals.index(device_ordinal(plane)) for plane in sparse_planes], np.int64)
    together = [
        intervals.union_of([part.busy for part, of in zip(sparse, beside, strict=True) if of == place])
        for place in range(len(ordinals))
    ]
    steps = steps or _own_steps(sparse_planes) or _whole(tensors, sparse)
    times = np.zeros((len(ordinals), len(steps.names), 5), np.int64)
    for place, (tensor, busy) in enumerate(zip(tensors, together, strict=True)):
        times[place] = _times(tensor, busy, steps)
    sparse_times = np.zeros((len(sparse), len(steps.names), 5), np.int64)
    for place, (part, of) in enumerate(zip(sparse, beside.tolist(), strict=True)):
        tensor = tensors[of]
        both = intervals.intersect(*part.busy, *tensor.working) if tensor is not None else (no_ints(), no_ints())
        parts = (part.busy, both, part.infeed, part.outfeed, syncs[place])
        sparse_times[place] = np.stack([_within(spans, steps) for spans in parts], axis=-1)
    alone = (times[:, :, SPARSE] - times[:, :, BOTH]).sum(axis=1)
    worst = int(alone.argmax()) if len(alone) else -1
    return SparseHost(
        host=host,
        step_names=steps.names,
        start_ps=steps.start_ps,
        duration_ps=steps.end_ps - steps.start_ps,
        step_source=steps.source,
        cores=tuple(core_label(host, number) for number in ordinals),
        has_tensor_core=np.array([tensor is not None for tensor in tensors], np.bool_),
        times=times,
        sparse_cores=tuple(label_of_plane(host, plane.name) for plane in sparse_planes),
        beside=beside,
        sparse_times=sparse_times,
        has_feeds=any(len(part.infeed[0]) or len(part.outfeed[0]) for part in sparse),
        has_syncs=any(line.name == SYNCS_LINE for plane in sparse_planes for line in plane.lines),
        waits=_wait_rows(tensors, together, steps),
        ops=sparse_ops(trace.planes),
        strip_core=worst,
        strips=_strips(tensors[worst], together[worst], steps)
        if worst >= 0
        else np.zeros((0, 3, STRIP_CELLS), np.uint8),
    )


def _reduce(trace: Trace, file: HostFile, steps: StepSpans | None, on_chunk: ChunkDone, threads: int) -> SparseHost:
    return sparse_host(trace, file.host, steps, on_chunk)


SPARSE_CORES_OF_HOST = Reduction("sparse_core", SparseHost, needed_bytes, _reduce, tables=("ops",))
"""What a host's SparseCores did; it is given the steps of its TensorCores, as `sparse_host` is."""


# --- what cores did


def _tensor(plane: Plane, on_chunk: ChunkDone | None) -> _Tensor:
    """Decodes a TensorCore's ops; of those that wait it keeps the events."""
    stats = STARTED_BY if len(plane.stat_ids(STARTED_BY)) == len(STARTED_BY) else ()
    spans: list[Intervals] = []
    ids: list[Int64s] = []
    starters: list[Int64s] = []
    for line in plane.lines:
        if line.name != core_ops.OPS_LINE:
            continue
        events = line.events(stats, on_chunk, places=False)
        spans.append(core_ops.event_spans(line, events))
        ids.append(events.metadata_id.astype(np.int64))
        columns = [events.stats.get(name) for name in stats]
        if stats and columns[0] is not None and columns[1] is not None:
            starters.append(intervals.distinct(ids[-1][columns[0].is_number & columns[1].is_number]))
    every = np.concatenate([no_ints(), *ids])
    start, end = (np.concatenate([no_ints(), *(span[side] for span in spans)]) for side in (0, 1))
    waiting = _waiting(plane, intervals.distinct(every), np.concatenate([no_ints(), *starters]))
    names, of = list(waiting), np.full(len(every), -1, np.int64)
    for place, number in enumerate(names):
        of[every == number] = place
    chosen = np.flatnonzero(of >= 0)
    waits = intervals.union(start[chosen], end[chosen])
    return _Tensor(
        working=intervals.subtract(*intervals.union(start, end), *waits),
        waiting=waits,
        wait_names=tuple(waiting[number][0] for number in names),
        started_by=tuple(waiting[number][1] for number in names),
        wait_of=of[chosen],
        wait_start=start[chosen],
        wait_end=end[chosen],
    )


def _waiting(plane: Plane, ids: Int64s, starters: Int64s) -> dict[int, tuple[str, str]]:
    """The ops that wait for a SparseCore, by metadata id: name, and that of the op which began what they wait for.

    These are the ``done`` ops of calls that a SparseCore runs (the compiler's text says so, or the op that began the
    call has both stats of `STARTED_BY`), other ops with these stats that are no ``start``, and ops of the category
    ``sparsecorev0 infeed``.
    """
    metadata = plane.event_metadata
    has_text = b"sparsecore" in metadata.body or b"sparsecore" in plane.stat_metadata.body
    if not (has_text or len(starters)):
        return {}
    rows = metadata.rows(ids)
    categories = MetadataStats(OpSource(metadata, plane.stat_metadata), rows, (core_ops.CATEGORY,)).texts(
        core_ops.CATEGORY
    )
    texts = ["" if row < 0 else metadata.name(row) for row in rows.tolist()]
    names = [core_ops.op_name(metadata, row, number) for row, number in zip(rows.tolist(), ids.tolist(), strict=True)]
    begun = set(starters.tolist())
    is_started = [number in begun for number in ids.tolist()]
    starts = {
        name
        for name, text, started in zip(names, texts, is_started, strict=True)
        if started or (_ON_SPARSE_CORE in text and "-start(" in text)
    }
    found: dict[int, tuple[str, str]] = {}
    for number, name, text, category, started in zip(ids.tolist(), names, texts, categories, is_started, strict=True):
        operand = _OPERAND.search(text)
        begun_by = operand[1] if operand is not None else ""
        is_done = bool(_DONE.search(name) or _DONE.search(category or "") or operand is not None)
        if (
            category == _FED_BY_SPARSE_CORE
            or (is_done and (begun_by in starts or _ON_SPARSE_CORE in text))
            or (started and not _START.search(name) and not _START.search(category or ""))
        ):
            found[number] = name, begun_by
    return found


# --- steps


def steps_of(names: Sequence[str], start_ps: Int64s, duration_ps: Int64s, source: str) -> StepSpans:
    """Steps in order of time, cut where the next one begins."""
    return StepSpans(tuple(names), start_ps, step_ends(start_ps, duration_ps), source)


def _own_steps(planes: Sequence[Plane]) -> StepSpans | None:
    """The steps that the first SparseCore with any has."""
    for plane in planes:
        steps = marked_steps(plane, line_name=SPARSE_STEPS_LINE)
        if len(steps):
            return StepSpans(steps.names, steps.start_ps, steps.end_ps, "Sparse Core Steps")
    return None


def _whole(tensors: Sequence[_Tensor | None], sparse: Sequence[SparseSpans]) -> StepSpans:
    """The time from the first op to the last as one step; no step without any op."""
    spans = [part.busy for part in sparse]
    spans += [span for tensor in tensors if tensor is not None for span in (tensor.working, tensor.waiting)]
    first, last = core_ops.time_span(spans)
    if last <= first:
        return StepSpans((), no_ints(), no_ints(), "whole profile")
    return StepSpans(("whole profile",), np.array([first]), np.array([last]), "whole profile")


def _within(spans: Intervals, steps: StepSpans) -> Int64s:
    """int64[steps]: the part of each step that disjoint times cover."""
    return intervals.overlap(steps.start_ps, steps.end_ps, *spans)


def _times(tensor: _Tensor | None, sparse: Intervals, steps: StepSpans) -> Int64s:
    """int64[steps, 5]: see `WORK`."""
    none = no_ints(), no_ints()
    working, waiting = (none, none) if tensor is None else (tensor.working, tensor.waiting)
    parts = (working, sparse, intervals.intersect(*working, *sparse), waiting, intervals.intersect(*waiting, *sparse))
    return np.stack([_within(spans, steps) for spans in parts], axis=-1)


def _wait_rows(
    tensors: Sequence[_Tensor | None], sparse: Sequence[Intervals], steps: StepSpans
) -> tuple[SparseWait, ...]:
    """The time of each op that waits, as far as it lies in a step, over all cores."""
    rows: dict[tuple[str, str], list[int]] = {}
    inside = steps.start_ps, steps.end_ps
    for tensor, busy in zip(tensors, sparse, strict=True):
        if tensor is None or not len(tensor.wait_of):
            continue
        working = intervals.intersect(*busy, *inside)
        long, beside = (intervals.overlap(tensor.wait_start, tensor.wait_end, *spans) for spans in (inside, working))
        for place, key in enumerate(zip(tensor.wait_names, tensor.started_by, strict=True)):
            mine = (tensor.wait_of == place) & (long > 0)
            row = rows.setdefault(key, [0, 0, 0])
            for index, value in enumerate((mine.sum(), long[mine].sum(), beside[mine].sum())):
                row[index] += int(value)
    made = [SparseWait(*key, *row) for key, row in rows.items() if row[0]]
    return tuple(sorted(made, key=lambda wait: (-wait.wait_ps, wait.op)))


def _strips(tensor: _Tensor | None, sparse: Intervals, steps: StepSpans) -> NDArray[np.uint8]:
    """uint8[steps, 3, STRIP_CELLS]: see `SparseHost.strips`."""
    count = min(len(steps.names), MOST_STRIPS)
    start, long = steps.start_ps[:count, None], (steps.end_ps - steps.start_ps)[:count, None]
    edges = start + (long.astype(np.float64) * np.arange(STRIP_CELLS + 1) / STRIP_CELLS).astype(np.int64)
    none = no_ints(), no_ints()
    spans = (none, none, sparse) if tensor is None else (tensor.working, tensor.waiting, sparse)
    strips = [np.diff(intervals.covered(edges.ravel(), *part).reshape(edges.shape), axis=1) for part in spans]
    percent = 100 * np.stack(strips, axis=1) / np.maximum(np.diff(edges, axis=1), 1)[:, None]
    return np.clip(np.ceil(percent), 0, 100).astype(np.uint8)
