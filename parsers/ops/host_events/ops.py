"""Framework ops that a host's threads ran: TensorFlow ops, tf.data iterators, input pipeline stages, host copies.

An event of a thread line of `/host:CPU` counts once, as the first of these that applies:

1. an input pipeline stage: it has the stat `_ipl_stage_id`, and some event of that stage has `_ipl_stage_cat`, the
   stage's type; all events of a stage are one row, named by the first of them that has a name and a type;
2. a framework op by its name: ``name:Type``, ``Iterator::…``, ``MemcpyHToD…`` (`parsers.ops.framework_op`);
3. the op that its stat `tf_op` names, type or not. (JAX's allocator writes the placeholder ``dummy`` there.)

Events nest by containment within their thread; self time is the duration minus that of direct children. A thread's
total is the time from its first such event to its last; its idle time is the part that no such event covers. Rows of
all threads add up by (stage id, name). All this is XProf's (`xplane_to_op_metrics_db.cc`), except where its stack loses
events:

- It puts begins and ends in order of time, and an end discards every open op above its own; an end whose begin is gone
  discards all that are open. So of events that overlap in part, that share their end with an event listed before them,
  or that carry both a name and a `tf_op`, the later one is lost, and with it every op around it. Here each counts.
  Where events do overlap in part, neither is the other's child: both keep their whole duration as self time, so that
  self times may add up to more than the thread's busy time.
- It keeps stage ids and event metadata ids in one table, where they collide: events that are no op turn into a stage
  whose id happens to be their metadata id. Here they are apart.
- It reads ids and flags written as uint64 as 0.

XProf also derives `is_eager` for ops that TensorFlow runs inside `EagerKernelExecute`; here only the stat counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, coded, in_nesting_order, no_ints, positions, union_length
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.formats.xspace import metadata
from tpuprof.parsers.formats.xspace.core.api import self_times, sum_by_key
from tpuprof.parsers.formats.xspace.events import StatColumn
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.framework_op import FrameworkOp, parse_framework_op
from tpuprof.parsers.ops.host_events.events import HostThread

STAGE_ID = "_ipl_stage_id"
STAGE_TYPE = "_ipl_stage_cat"
OP_NAME = "tf_op"
IS_EAGER = "is_eager"
INFEED_ENQUEUE = "InfeedEnqueue"
"""Types of ops that hand input to the device's infeed queue begin with this."""

_ITERATOR = "Iterator"
_MEMCPY_LENGTH = len("MemcpyHToD")


@dataclass(frozen=True, slots=True)
class HostOps(Sized):
    """Framework ops of host threads, by self time, then name and stage.

    Attributes:
        name, type: as XProf shows them; a type is such as ``Dataset``, ``MatMul`` or a stage's category, empty where
            the profile does not record it. No row stands for idle time.
        stage_id: int64[n]; input pipeline stage, 0 where none.
        occurrences, total_ps, self_ps: int64[n]; total includes the ops inside.
        is_eager: bool[n]; whether at least one occurrence is marked as run eagerly.
        marks_eager: whether any op says if it ran eagerly.
        whole_ps: time from each thread's first op to its last, summed over threads; shares are of it.
        idle_ps: the part of it that no op covers.
        enqueue_ps: durations of infeed enqueues, without each thread's last one.
        enqueue_interval_ps: time from the start of each thread's first infeed enqueue to that of its last, summed.
        threads: number of threads that ran at least one op.
    """

    name: tuple[str, ...]
    type: tuple[str, ...]
    stage_id: Int64s
    occurrences: Int64s
    total_ps: Int64s
    self_ps: Int64s
    is_eager: Bools
    marks_eager: bool
    whole_ps: int
    idle_ps: int
    enqueue_ps: int
    enqueue_interval_ps: int
    threads: int

    @property
    def enqueue_ratio(self) -> float | None:
        """The time share of infeed enqueues (`HostInfeedEnqueueRatio`); None with fewer than two on a thread."""
        return self.enqueue_ps / self.enqueue_interval_ps if self.enqueue_interval_ps > 0 else None


class HostOpsReader:
    """Picks the framework ops out of threads as they are decoded, and adds them up at the end.

    Attributes:
        has_ops: whether the threads may have framework ops, by the names and stats that the profile defines.
        stats: the stats to decode of each event; none where they have no framework ops.
    """

    def __init__(self, plane: Plane) -> None:
        stats = plane.stat_ids((STAGE_ID, STAGE_TYPE, OP_NAME, IS_EAGER))
        has_stages = STAGE_ID in stats and STAGE_TYPE in stats
        table = plane.event_metadata
        named = [(row, op) for row in _possible_ops(table) if (op := _known_op(table.name(row))) is not None]
        self._plane = plane
        self._named_ids = table.ids[[row for row, _ in named]]
        # the ops by number: those with names first, stages and `tf_op`s as they are met
        self._ops = [op for _, op in named]
        self._stages: dict[int, int] = {}
        self._texts: dict[str, int] = {}
        self._taken: list[_Taken] = []
        self.has_ops = bool(named) or has_stages or OP_NAME in stats
        kept = [name for name in stats if has_stages or name not in (STAGE_ID, STAGE_TYPE)]
        self.stats = tuple(kept) if self.has_ops else ()

    def take(self, thread: HostThread) -> None:
        """Takes the events of one thread that may be ops, and keeps their names."""
        if not self.has_ops:
            return
        op = positions(thread.metadata_id, self._named_ids)
        stage, eager = thread.stat(STAGE_ID), thread.stat(IS_EAGER)
        in_stage, is_eager = np.zeros(len(thread), np.bool_), np.zeros(len(thread), np.bool_)
        in_stage[stage.rows[np.isin(stage.values.kind, (metadata.KIND_UINT64, metadata.KIND_INT64))]] = True
        is_eager[eager.rows] = eager.values.integers() != 0
        is_eager &= (op >= 0) | in_stage
        stage_id = thread.integers(STAGE_ID, 0)
        self._define_stages(thread, stage_id, in_stage)
        self._fill_by_text(thread, op)
        is_op = (op >= 0) | in_stage
        start, end, marks_eager = thread.start_ps[is_op], thread.end_ps[is_op], bool(is_op[eager.rows].any())
        taken = _Taken(start, end, op[is_op], stage_id[is_op], in_stage[is_op], is_eager[is_op], marks_eager)
        self._taken.append(taken)

    def _define_stages(self, thread: HostThread, stage_id: Int64s, in_stage: Bools) -> None:
        """Notes name and type of a thread's new stages, from the first event that has both."""
        kinds, table = thread.stat(STAGE_TYPE), self._plane.event_metadata
        defining = np.flatnonzero(_is_text(kinds.values) & in_stage[kinds.rows])
        rows = table.rows(thread.metadata_id[kinds.rows[defining]].astype(np.int64))
        is_named = rows >= 0
        is_named[is_named] = (table.name_end > table.name_begin)[rows[is_named]]
        defining, rows = defining[is_named], rows[is_named]
        stage_ids, first = np.unique(stage_id[kinds.rows[defining]], return_index=True)
        texts = self._plane.texts(kinds.values.take(defining[first]))
        for stage, row, kind in zip(stage_ids.tolist(), rows[first].tolist(), texts, strict=True):
            if stage not in self._stages and kind is not None:
                name = table.name(row)
                self._stages[stage] = len(self._ops)
                self._ops.append(FrameworkOp(name, kind) if kind else parse_framework_op(name))

    def _fill_by_text(self, thread: HostThread, op: Int64s) -> None:
        """Fills in `op` where it is -1, by the `tf_op` stat. It resolves each reference, the common form, once."""
        stat = thread.stat(OP_NAME)
        rest = np.flatnonzero((op[stat.rows] < 0) & _is_text(stat.values))
        is_ref = stat.values.kind[rest] == metadata.KIND_REF
        refs, others = rest[is_ref], rest[~is_ref]
        _, first, which = np.unique(stat.values.value[refs], return_index=True, return_inverse=True)
        op[stat.rows[refs]] = self._numbers(stat.values.take(refs[first]))[which]
        op[stat.rows[others]] = self._numbers(stat.values.take(others))

    def _numbers(self, column: StatColumn) -> Int64s:
        """Numbers of the ops that texts name, -1 for none."""
        out = []
        for text in self._plane.texts(column):
            if text and text not in self._texts:
                self._texts[text] = len(self._ops)
                self._ops.append(parse_framework_op(text))
            out.append(self._texts[text] if text else -1)
        return np.array(out, np.int64)

    def ops(self) -> HostOps:
        return merge_host_ops([self._of_thread(taken) for taken in self._taken])

    def _of_thread(self, taken: _Taken) -> HostOps:
        """Nests the ops of one thread and adds them up. Only now is it known which stages have a type."""
        stages = sorted(self._stages)
        stage = positions(taken.stage_id, np.array(stages, np.int64))
        number_of_stage = np.array([self._stages[stage_id] for stage_id in stages] or [-1], np.int64)
        op = np.where(taken.in_stage & (stage >= 0), number_of_stage[stage], taken.op)
        chosen = np.flatnonzero(op >= 0)
        if not len(chosen):
            return merge_host_ops([])
        start, end, chosen = in_nesting_order(taken.start_ps[chosen], taken.end_ps[chosen], chosen)
        used, key = np.unique(op[chosen], return_inverse=True)
        used_ops, n = [self._ops[number] for number in used.tolist()], len(used)
        stage_of = {number: stage_id for stage_id, number in self._stages.items()}
        is_eager = np.zeros(n, np.bool_)
        is_eager[key[taken.eager[chosen]]] = True
        total = int(end.max()) - int(start[0])
        is_enqueue = np.array([op.type.startswith(INFEED_ENQUEUE) for op in used_ops], np.bool_)[key]
        enqueue_start, enqueue_ps = start[is_enqueue], (end - start)[is_enqueue]
        return HostOps(
            name=tuple(op.name for op in used_ops),
            type=tuple(op.type for op in used_ops),
            stage_id=np.array([stage_of.get(number, 0) for number in used.tolist()], np.int64),
            occurrences=np.bincount(key, minlength=n).astype(np.int64),
            total_ps=sum_by_key(key, end - start, n),
            self_ps=sum_by_key(key, self_times(start, end), n),
            is_eager=is_eager,
            marks_eager=taken.marks_eager,
            whole_ps=total,
            idle_ps=total - union_length(start, end),
            enqueue_ps=int(enqueue_ps[:-1].sum()),
            enqueue_interval_ps=int(enqueue_start[-1]) - int(enqueue_start[0]) if len(enqueue_start) else 0,
            threads=1,
        )


def merge_host_ops(parts: Sequence[HostOps]) -> HostOps:
    """Adds up the ops of threads or hosts; rows with the same stage and name become one, with the first known type."""
    key, pairs = coded(pair for part in parts for pair in zip(part.stage_id.tolist(), part.name, strict=True))
    kinds = [""] * len(pairs)
    for row, kind in zip(key.tolist(), (kind for part in parts for kind in part.type), strict=True):
        kinds[row] = kinds[row] or kind
    occurrences, total, self_ps = (
        sum_by_key(key, np.concatenate([no_ints(), *(getattr(part, name) for part in parts)]), len(pairs))
        for name in ("occurrences", "total_ps", "self_ps")
    )
    eager = np.zeros(len(pairs), np.bool_)
    eager[key[np.concatenate([np.zeros(0, np.bool_), *(part.is_eager for part in parts)])]] = True
    order = sorted(range(len(pairs)), key=lambda row: (-int(self_ps[row]), pairs[row][1], pairs[row][0]))
    return HostOps(
        name=tuple(pairs[row][1] for row in order),
        type=tuple(kinds[row] for row in order),
        stage_id=np.array([pairs[row][0] for row in order], np.int64),
        occurrences=occurrences[order],
        total_ps=total[order],
        self_ps=self_ps[order],
        is_eager=eager[order],
        marks_eager=any(part.marks_eager for part in parts),
        whole_ps=sum(part.whole_ps for part in parts),
        idle_ps=sum(part.idle_ps for part in parts),
        enqueue_ps=sum(part.enqueue_ps for part in parts),
        enqueue_interval_ps=sum(part.enqueue_interval_ps for part in parts),
        threads=sum(part.threads for part in parts),
    )


def _possible_ops(table: metadata.MetadataTable) -> list[int]:
    """Rows whose names may be those of ops. It looks at few bytes, as profiles hold many names of functions."""
    body = np.frombuffer(table.body, np.uint8)
    if not len(body):
        return []
    begin, end = table.name_begin, table.name_end
    colons = np.append(np.flatnonzero(body == ord(":")), len(body))
    colon = colons[np.searchsorted(colons, begin)]
    has_colon = colon < end
    after = body[np.minimum(colon + 1, len(body) - 1)]
    # A type begins with a letter or an underscore: neither file.py:12 nor Class::method has one.
    typed = (colon + 1 == end) | (after == ord("_")) | ((after | 0x20) - ord("a") < 26)
    iterator = colon - begin == len(_ITERATOR)
    first = body[np.minimum(begin, len(body) - 1)] | 0x20
    memcpy = ~has_colon & (end - begin >= _MEMCPY_LENGTH) & (first == ord("m"))
    return np.flatnonzero((has_colon & (typed | iterator)) | memcpy).tolist()


def _known_op(name: str) -> FrameworkOp | None:
    """The op that an event is named after; None for an annotation, which has no type. ``name:`` is an untyped op."""
    op = parse_framework_op(name)
    return op if op.type or name.partition(":")[1:] == (":", "") else None


@dataclass(frozen=True, slots=True)
class _Taken:
    """The events of a line that may be ops, a row each.

    Attributes:
        op: number by name, else by `tf_op`, or -1.
        stage_id: of the events `in_stage`.
        marks_eager: whether an op of the line says whether it ran eagerly.
    """

    start_ps: Int64s
    end_ps: Int64s
    op: Int64s
    stage_id: Int64s
    in_stage: Bools
    eager: Bools
    marks_eager: bool


def _is_text(column: StatColumn) -> Bools:
    return np.isin(column.kind, (metadata.KIND_STR, metadata.KIND_BYTES, metadata.KIND_REF))
