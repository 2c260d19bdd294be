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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, nesting_order, no_ints, positions, union_length
from tpuprof.parsers.formats.xspace.core.api import self_times, sum_by_key
from tpuprof.parsers.formats.xspace.events import Events, StatColumn
from tpuprof.parsers.formats.xspace.metadata import (
    KIND_BYTES,
    KIND_INT64,
    KIND_REF,
    KIND_STR,
    KIND_UINT64,
    MetadataTable,
)
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.framework_op import FrameworkOp, parse_framework_op
from tpuprof.parsers.ops.host.events import HostThread

STAGE_ID = "_ipl_stage_id"
STAGE_TYPE = "_ipl_stage_cat"
OP_NAME = "tf_op"
IS_EAGER = "is_eager"
INFEED_ENQUEUE = "InfeedEnqueue"
"""Types of ops that hand input to the device's infeed queue begin with this."""

_ITERATOR = "Iterator"
_MEMCPY_LENGTH = len("MemcpyHToD")


@dataclass(frozen=True, slots=True)
class HostOps:
    """Framework ops of host threads, by self time, then name and stage.

    Attributes:
        name, type: as XProf shows them; a type is such as ``Dataset``, ``MatMul`` or a stage's category, empty where
            the profile does not tell. No row stands for idle time.
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

    def __len__(self) -> int:
        return len(self.name)

    @property
    def enqueue_ratio(self) -> float | None:
        """The time share of infeed enqueues (`HostInfeedEnqueueRatio`); None with fewer than two on a thread."""
        return self.enqueue_ps / self.enqueue_interval_ps if self.enqueue_interval_ps > 0 else None


class HostOpsReader:
    """Picks the framework ops out of threads as they are decoded, and adds them up at the end.

    Attributes:
        stats: the stats to decode of each event; none where names and stats rule out framework ops.
    """

    def __init__(self, plane: Plane) -> None:
        self._plan = _plan(plane)
        self._ops = _Ops(list(self._plan.named) if self._plan else [])
        self._taken: list[_Taken] = []
        self.stats = self._plan.stats if self._plan else ()

    def take(self, thread: HostThread, events: Events) -> None:
        """Takes the ops of one thread, and keeps their names."""
        if self._plan is not None:
            self._taken.append(_take(self._plan, thread, events, self._ops))

    def ops(self) -> HostOps:
        """The framework ops of all threads so far."""
        stages = _Stages.of(self._ops)  # only now is it known which stages have a type
        return merge_host_ops([_thread_ops(events, self._ops, stages) for events in self._taken])


def merge_host_ops(parts: Sequence[HostOps]) -> HostOps:
    """Adds up the ops of threads or hosts; rows with the same stage and name become one, with the first known type."""
    names = [name for part in parts for name in part.name]
    types = [kind for part in parts for kind in part.type]
    none = no_ints()
    stages = np.concatenate([none, *(part.stage_id for part in parts)])
    rows: dict[tuple[int, str], int] = {}
    key = np.array([rows.setdefault(pair, len(rows)) for pair in zip(stages.tolist(), names, strict=True)], np.int64)
    kinds = [""] * len(rows)
    for row, kind in zip(key.tolist(), types, strict=True):
        kinds[row] = kinds[row] or kind
    occurrences, total, self_ps = (
        sum_by_key(key, np.concatenate([none, *columns]), len(rows))
        for columns in (
            [part.occurrences for part in parts],
            [part.total_ps for part in parts],
            [part.self_ps for part in parts],
        )
    )
    eager = np.zeros(len(rows), np.bool_)
    eager[key[np.concatenate([np.zeros(0, np.bool_), *(part.is_eager for part in parts)])]] = True
    pairs = list(rows)
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


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to read of a host plane.

    Attributes:
        plane: the host plane.
        stats: the stats to read of each event.
        named_ids: int64[k], ascending; the event metadata that is named like an op.
        named: those ops.
    """

    plane: Plane
    stats: tuple[str, ...]
    named_ids: Int64s
    named: tuple[FrameworkOp, ...]


def _plan(plane: Plane) -> _Plan | None:
    """What to read; None where names and stats rule out framework ops."""
    stats = plane.stat_ids((STAGE_ID, STAGE_TYPE, OP_NAME, IS_EAGER))
    has_stages = STAGE_ID in stats and STAGE_TYPE in stats
    table = plane.event_metadata
    named = [(row, op) for row, op in ((row, _known_op(table.name(row))) for row in _possible_ops(table)) if op]
    if not named and not has_stages and OP_NAME not in stats:
        return None
    return _Plan(
        plane=plane,
        stats=tuple(name for name in stats if has_stages or name not in (STAGE_ID, STAGE_TYPE)),
        named_ids=table.ids[[row for row, _ in named]],
        named=tuple(op for _, op in named),
    )


def _possible_ops(table: MetadataTable) -> list[int]:
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
    rows: list[int] = np.flatnonzero((has_colon & (typed | iterator)) | memcpy).tolist()
    return rows


def _known_op(name: str) -> FrameworkOp | None:
    """The op that an event is named after; None for an annotation, which has no type. ``name:`` is an untyped op."""
    op = parse_framework_op(name)
    return op if op.type or name.partition(":")[1:] == (":", "") else None


@dataclass(slots=True)
class _Ops:
    """The ops found so far, by number: those with names first, stages and `tf_op`s as they are met.

    Attributes:
        ops: name and type of each.
        stage: stage id to number.
        text: a `tf_op` stat's text to number.
    """

    ops: list[FrameworkOp]
    stage: dict[int, int] = field(default_factory=dict)
    text: dict[str, int] = field(default_factory=dict)

    def add(self, op: FrameworkOp) -> int:
        """Number of a new op."""
        self.ops.append(op)
        return len(self.ops) - 1


@dataclass(frozen=True, slots=True)
class _Stages:
    """All stages, known once every line has been read: their ids, ascending, and the number of each one's op."""

    ids: Int64s
    number: Int64s
    by_number: Mapping[int, int]

    @classmethod
    def of(cls, ops: _Ops) -> _Stages:
        """The stages among some ops."""
        pairs = sorted(ops.stage.items())
        ids, number = (np.array([pair[item] for pair in pairs], np.int64) for item in (0, 1))
        return cls(ids, number, {number: stage for stage, number in pairs})


@dataclass(frozen=True, slots=True)
class _Taken:
    """The events of a line that may be ops.

    Attributes:
        start_ps, end_ps: int64[m].
        op: int64[m]; number by name, else by `tf_op`, or -1.
        stage_id: int64[m]; of the events with `in_stage`.
        in_stage: bool[m]; the event has a stage id.
        eager: bool[m].
        marks_eager: whether an op of the line says whether it ran eagerly.
    """

    start_ps: Int64s
    end_ps: Int64s
    op: Int64s
    stage_id: Int64s
    in_stage: Bools
    eager: Bools
    marks_eager: bool


def _take(plan: _Plan, thread: HostThread, events: Events, ops: _Ops) -> _Taken:
    """Picks the events of a thread that may be ops; adds their names to `ops`."""
    stage, text, eager = (events.stats.get(name) for name in (STAGE_ID, OP_NAME, IS_EAGER))
    op = positions(events.metadata_id, plan.named_ids)  # the ops with names have the first numbers
    in_stage = np.zeros(len(events), np.bool_) if stage is None else _is_integer(stage)
    if stage is not None:
        _define_stages(plan.plane, events, in_stage, ops)
    is_eager = (op >= 0) | in_stage if eager is not None else np.zeros(len(events), np.bool_)
    if eager is not None:
        is_eager &= eager.integers() != 0
    if text is not None:
        _by_stat(plan.plane, text, op, ops)
    chosen = np.flatnonzero((op >= 0) | in_stage)
    return _Taken(
        start_ps=thread.start_ps[chosen],
        end_ps=thread.end_ps[chosen],
        op=op[chosen],
        stage_id=np.zeros(len(chosen), np.int64) if stage is None else stage.integers()[chosen],
        in_stage=in_stage[chosen],
        eager=is_eager[chosen],
        marks_eager=eager is not None and bool((eager.kind[chosen] != 0).any()),
    )


def _is_integer(column: StatColumn) -> Bools:
    return np.isin(column.kind, (KIND_UINT64, KIND_INT64))


def _is_text(column: StatColumn) -> Bools:
    return np.isin(column.kind, (KIND_STR, KIND_BYTES, KIND_REF))


def _define_stages(plane: Plane, events: Events, in_stage: Bools, ops: _Ops) -> None:
    """Notes name and type of this line's new stages, from the first event that has both."""
    kinds = events.stats.get(STAGE_TYPE)
    if kinds is None:  # the plane has no such stat
        return
    rows = plane.event_metadata.rows(events.metadata_id.astype(np.int64))
    named = rows >= 0
    named[named] = (plane.event_metadata.name_end > plane.event_metadata.name_begin)[rows[named]]
    defining = np.flatnonzero(in_stage & _is_text(kinds) & named)
    stage_ids, first = np.unique(events.stats[STAGE_ID].integers()[defining], return_index=True)
    definitions = defining[first]
    texts = plane.texts(kinds.take(definitions))
    for stage_id, row, kind in zip(stage_ids.tolist(), rows[definitions].tolist(), texts, strict=True):
        if stage_id not in ops.stage and kind is not None:
            name = plane.event_metadata.name(row)
            ops.stage[stage_id] = ops.add(FrameworkOp(name, kind) if kind else parse_framework_op(name))


def _by_stat(plane: Plane, column: StatColumn, op: Int64s, ops: _Ops) -> None:
    """Fills in `op` where it is -1, by the `tf_op` stat. It resolves each reference, the common form, once."""
    rest = np.flatnonzero((op < 0) & _is_text(column))
    is_ref = column.kind[rest] == KIND_REF
    refs, first, which = np.unique(column.value[rest[is_ref]], return_index=True, return_inverse=True)
    numbers = _numbers(plane.texts(column.take(rest[is_ref][first])), ops)
    op[rest[is_ref]] = numbers[which] if len(refs) else numbers
    op[rest[~is_ref]] = _numbers(plane.texts(column.take(rest[~is_ref])), ops)


def _numbers(texts: Iterable[str | None], ops: _Ops) -> Int64s:
    """Numbers of the ops that texts name, -1 for none."""
    out = []
    for text in texts:
        if text and text not in ops.text:
            ops.text[text] = ops.add(parse_framework_op(text))
        out.append(ops.text[text] if text else -1)
    return np.array(out, np.int64)


def _thread_ops(taken: _Taken, ops: _Ops, stages: _Stages) -> HostOps:
    """Nests the ops of one thread and adds them up."""
    op = _with_stages(taken, stages)
    chosen = np.flatnonzero(op >= 0)
    if not len(chosen):
        return merge_host_ops([])
    start, end = taken.start_ps[chosen], taken.end_ps[chosen]
    order = nesting_order(start, end)
    if order is not None:
        chosen, start, end = chosen[order], start[order], end[order]
    used, key = np.unique(op[chosen], return_inverse=True)
    n = len(used)
    used_ops = [ops.ops[number] for number in used.tolist()]
    eager = np.zeros(n, np.bool_)
    eager[key[taken.eager[chosen]]] = True
    total = int(end.max()) - int(start[0])
    is_enqueue = np.array([item.type.startswith(INFEED_ENQUEUE) for item in used_ops], np.bool_)[key]
    enqueue_start, enqueue_ps = start[is_enqueue], (end - start)[is_enqueue]
    return HostOps(
        name=tuple(item.name for item in used_ops),
        type=tuple(item.type for item in used_ops),
        stage_id=np.array([stages.by_number.get(number, 0) for number in used.tolist()], np.int64),
        occurrences=np.bincount(key, minlength=n).astype(np.int64),
        total_ps=sum_by_key(key, end - start, n),
        self_ps=sum_by_key(key, self_times(start, end), n),
        is_eager=eager,
        marks_eager=taken.marks_eager,
        whole_ps=total,
        idle_ps=total - union_length(start, end),
        enqueue_ps=int(enqueue_ps[:-1].sum()),
        enqueue_interval_ps=int(enqueue_start[-1]) - int(enqueue_start[0]) if len(enqueue_start) else 0,
        threads=1,
    )


def _with_stages(taken: _Taken, stages: _Stages) -> Int64s:
    """int64[m]: number of each event's op, its stage's where the stage is known, -1 for none."""
    if not len(stages.ids) or not taken.in_stage.any():
        return taken.op
    stage = positions(taken.stage_id, stages.ids)
    return np.where(taken.in_stage & (stage >= 0), stages.number[stage], taken.op)
