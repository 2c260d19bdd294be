"""Which events of a trace cause which others, as XProf reads it from stats before it groups events.

A producer names what it starts by a type and an id (stats `_pt` and `_p`); a consumer names what started it (`_ct` and
`_c`). For some events of the TPU's runtime XProf makes up both from other stats (`preprocess_xplane.cc`), and so does
this module. XProf also makes tasks of thread pools from pairs of `ThreadpoolListener` events, but links them to nothing
(as of 2.24.2), so this module does not make them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, distinct, no_ints
from tpuprof.parsers.formats.xspace.events import StatColumn
from tpuprof.parsers.formats.xspace.trace import Line, Plane
from tpuprof.parsers.ops.core_ops import MODULES_LINE, event_spans
from tpuprof.parsers.ops.device import device_ordinal, is_tensor_core
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.host.events import HostEvents, HostThread, integers_at

LINK_STATS = (
    *("_pt", "_p", "_ct", "_c", "_r", "_a", "id", "iter_num"),
    *("request_id", "queue_addr", "device_ordinal", "queue_id", "run_id", "core_type", "correlation_id"),
)
"""Stats of host events that tell what causes what."""

_CORE_STATS = ("_pt", "_p", "_ct", "_c", "run_id", "queue_id", "core_type", "group_id")

_LEGACY, _STREAM, _LAUNCH = 1, 11, 12  # types of links (tsl's ContextType)
_EXECUTOR, _KERNEL, ITERATION = ((1 << 40) + index for index in range(3))  # types of our own, no profile has such

_RUN_ID_BITS = (1 << 27) - 1
"""The device keeps these bits of a run id, so the host's run ids are cut to them."""

PROCESS = "ExecutorState::Process"
_NEXT = ("IteratorGetNextOp::DoCompute", "IteratorGetNextAsOptionalOp::DoCompute")
_LAUNCHER, _FINISHER = "DoEnqueueProgram", "CompleteCallbacks"
_RUN_IDS_CUT = (_LAUNCHER, _FINISHER, "DoEnqueueContinuationProgram")
_ROOT_LEVELS = (("TraceContext", 1), ("ProcessBatch", 2), ("OrbaxServing::ProcessBatch", 2), ("BatchingSessionRun", 1))
_TF_DATA = tuple(
    f"InstantiatedCapturedFunction::{run}" for run in ("Run", "RunAsync", "RunInstantiated", "RunWithBorrowedArgs")
)
_LOOPS = ("WhileOp-EvalCond", "WhileOp-StartBody", "ForOp", "ParallelForOp", "ForeverOp")
_QUEUED = (
    *("RunProgramRequest", "HostCallbackRequest", "TransferH2DRequest", "TransferPreprocessedH2DRequest"),
    *("TransferD2HRequest", "OnDeviceSendRequest", "OnDeviceRecvRequest", "OnDeviceSendRecvLocalRequest"),
    *("CustomWait", "OnDeviceSendRequestMulti", "OnDeviceRecvRequestMulti", "PjrtAsyncWait"),
)

Names: TypeAlias = Mapping[str, int]
"""Metadata ids of the events that matter, by name; those that the profile lacks are missing."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Events that are linked where their stats have the same values.

    Attributes:
        kind: type of the links.
        producer, consumers: names of the events.
        stats: what both need to have.
        optional: a stat that is 0 where it is missing.
    """

    kind: int
    producer: str
    consumers: tuple[str, ...]
    stats: tuple[str, ...]
    optional: str | None = None


_LAUNCH_RULE = _Rule(_LAUNCH, _LAUNCHER, (_FINISHER,), ("device_ordinal", "queue_id", "run_id"), "core_type")
_RULES = (
    _Rule(_LEGACY, PROCESS, ("TpuExecuteOp",), ("id", "iter_num")),
    _Rule(_STREAM, "EnqueueRequestLocked", _QUEUED, ("request_id", "queue_addr")),
    _LAUNCH_RULE,
)


@dataclass(frozen=True, slots=True)
class Ends:
    """Ends of links: event `rows[i]` of a line belongs to the link of type `kind[i]` and id `id[i]`. int64[n] each."""

    rows: Int64s
    kind: Int64s
    id: Int64s

    def take(self, chosen: Bools | Int64s) -> Ends:
        """Some of the ends."""
        return Ends(self.rows[chosen], self.kind[chosen], self.id[chosen])


@dataclass(frozen=True, slots=True)
class LineLinks:
    """The links of one line with others.

    Attributes:
        start_ps, end_ps: int64[n]: spans of the line's events.
        apart: which of them do not nest (asynchronous ones); None where all nest.
        produced, consumed: the links' ends.
        roots, level: int64[r]: the events that groups begin with, and their levels.
    """

    start_ps: Int64s
    end_ps: Int64s
    apart: Bools | None
    produced: Ends
    consumed: Ends
    roots: Int64s
    level: Int64s


def joined(ends: Sequence[Ends], shift: Sequence[int] | None = None) -> Ends:
    """Joins the ends of several lines; `shift` is added to each line's rows."""
    if not ends:
        return Ends(no_ints(), no_ints(), no_ints())
    by = shift if shift is not None else [0] * len(ends)
    return Ends(
        np.concatenate([end.rows + first for end, first in zip(ends, by, strict=True)]),
        np.concatenate([end.kind for end in ends]),
        np.concatenate([end.id for end in ends]),
    )


def known_names(host: HostEvents) -> Names:
    """The host's events that matter for groups."""
    wanted = [PROCESS, *_NEXT, *_RUN_IDS_CUT, *_TF_DATA, *_LOOPS, *(name for name, _ in _ROOT_LEVELS)]
    wanted += [name for rule in _RULES for name in (rule.producer, *rule.consumers)]
    return host.plane.event_metadata.find_names(wanted)


def has_loop_ops(names: Names) -> bool:
    """Whether TensorFlow ran ops of a loop; XProf groups nothing then."""
    return any(name in names for name in _LOOPS)


def thread_links(thread: HostThread, names: Names) -> LineLinks:
    """The links of a host thread."""
    produced, consumed = _plain(thread, "_pt", "_p"), _plain(thread, "_ct", "_c")
    for rule in _RULES:
        produced = _replaced(produced, _by_rule(thread, rule, names, (rule.producer,)))
        consumed = _replaced(consumed, _by_rule(thread, rule, names, rule.consumers))
    apart = _asynchronous(thread)
    return LineLinks(thread.start_ps, thread.end_ps, apart, produced, consumed, *_roots(thread, names))


def _plain(thread: HostThread, kind: str, number: str) -> Ends:
    """The ends of events that have a type and an id."""
    stat = thread.stats.get(kind)
    if stat is None or number not in thread.stats:
        return joined([])
    ids, has = integers_at(thread.stats[number], stat.rows)
    return Ends(stat.rows, _narrow(stat.values.integers()), ids).take(has)


def _narrow(values: Int64s) -> Int64s:
    """The low 32 bits, with their sign: types and levels are no longer in XProf."""
    return values.astype(np.int32).astype(np.int64)


def _by_rule(thread: HostThread, rule: _Rule, names: Names, events: Sequence[str]) -> Ends:
    """The ends that a rule makes of other stats. Only events that have all of these count."""
    ids = [names[name] for name in events if name in names]
    if not ids or any(stat not in thread.stats for stat in rule.stats):
        return joined([])
    rows = thread.stats[rule.stats[0]].rows
    rows = rows[np.isin(thread.metadata_id[rows], ids)]
    columns, have = [], np.ones(len(rows), np.bool_)
    for stat in rule.stats:
        values, has = integers_at(thread.stats[stat], rows)
        columns.append(values & _RUN_ID_BITS if stat == "run_id" else values)
        have &= has
    if rule.optional is not None:
        columns.append(integers_at(thread.stats.get(rule.optional), rows)[0])
    return Ends(rows, np.full(len(rows), rule.kind, np.int64), _mixed(columns)).take(have)


def _mixed(columns: Sequence[Int64s]) -> Int64s:
    """Makes one number of several; different numbers give different ones, but for one case in 2^64."""
    out = np.full(len(columns[0]), 0x243F6A8885A308D3, np.uint64)
    for column in columns:
        out = (out ^ column.astype(np.int64).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        out ^= out >> np.uint64(29)
    return out.view(np.int64)


def _replaced(ends: Ends, by: Ends) -> Ends:
    """Replaces the ends of the events that have new ones."""
    if not len(by.rows):
        return ends
    return joined([ends.take(~np.isin(ends.rows, by.rows)), by])


def _asynchronous(thread: HostThread) -> Bools | None:
    stat = thread.stats.get("_a")
    if stat is None:
        return None
    apart = np.zeros(len(thread), np.bool_)
    apart[stat.rows] = stat.values.integers() != 0
    return apart


def _roots(thread: HostThread, names: Names) -> tuple[Int64s, Int64s]:
    """Rows and levels of the events that groups begin with."""
    stat = thread.stats.get("_r")
    own = _narrow(stat.values.integers()) if stat is not None else no_ints()
    rows, level = (stat.rows if stat is not None else no_ints()), own
    for name, of_name in _ROOT_LEVELS:
        if name in names:
            named = np.flatnonzero(thread.metadata_id == names[name]).astype(np.int64)
            if name == _ROOT_LEVELS[0][0]:  # the others' levels replace the events' own
                named = named[~np.isin(named, rows)]
            kept = ~np.isin(rows, named)
            rows = np.concatenate([rows[kept], named])
            level = np.concatenate([level[kept], np.full(len(named), of_name)])
    order = np.argsort(rows)
    return rows[order], level[order]


def tf_data_steps(threads: Sequence[HostThread], names: Names) -> Int64s:
    """Ids of the steps that run functions of tf.data; none of their events begins a group."""
    ids = [names[name] for name in _TF_DATA if name in names]
    steps = [no_ints()]
    for thread in threads if ids else ():
        stat = thread.stats.get("id")
        if stat is not None:
            steps.append(stat.values.integers()[np.isin(thread.metadata_id[stat.rows], ids)])
    return distinct(np.concatenate(steps))


def last_of_each(ends: Ends) -> Ends:
    """The last of the ends with the same type and id."""
    order = np.lexsort((np.arange(len(ends.rows)), ends.id, ends.kind))
    kind, ids = ends.kind[order], ends.id[order]
    last = np.append((kind[1:] != kind[:-1]) | (ids[1:] != ids[:-1]), True)[: len(order)]
    return ends.take(order[last])


def executor_ends(thread: HostThread, names: Names) -> tuple[Ends, Ends]:
    """Links TensorFlow's executors to the iterators that they wait for, by step and iteration."""
    if not any(name in names for name in _NEXT):
        return joined([]), joined([])
    rule = _Rule(_EXECUTOR, PROCESS, _NEXT, ("id", "iter_num"))
    return _by_rule(thread, rule, names, (PROCESS,)), _by_rule(thread, rule, names, _NEXT)


def correlated(thread: HostThread) -> Ends:
    """Kernels of a GPU, or the calls of the host that launched them; a TensorFlow op is neither."""
    stat = thread.stats.get("correlation_id")
    if stat is None:
        return joined([])
    table = thread.line.plane.event_metadata
    ids, which = np.unique(thread.metadata_id[stat.rows], return_inverse=True)
    rows = table.rows(ids.astype(np.int64)).tolist()
    is_call = np.array([row < 0 or not _is_tensorflow_op(table.name(row)) for row in rows], np.bool_)[which]
    return Ends(stat.rows, np.full(len(stat.rows), _KERNEL), stat.values.integers()).take(is_call)


def _is_tensorflow_op(name: str) -> bool:
    """Whether an event's name is that of an op of TensorFlow or tf.data."""
    op = parse_framework_op(name)
    kind = name.partition(":")[2]
    return op.type == "Dataset" or (bool(kind) and op.type == kind and not kind[0].islower())


def loop_iterations(
    threads: Sequence[HostThread], names: Names, left_out: Int64s
) -> tuple[Int64s, Int64s, Int64s] | None:
    """The iterations of TensorFlow's loops: executors of one step that have several, or one with a number.

    Args:
        left_out: ids of steps that do not count.

    Returns:
        None where there are none. Else int64[n] each, ordered by the iterations' first starts and then by start: the
        thread's index, the event's row, and the iteration's number, counted from 0.
    """
    columns: list[list[Int64s]] = [[] for _ in range(6)]
    for number_of_thread, thread in enumerate(threads if PROCESS in names else ()):
        stat = thread.stats.get("id")
        if stat is None or "iter_num" not in thread.stats:
            continue
        rows = stat.rows[thread.metadata_id[stat.rows] == names[PROCESS]]
        iteration, has = integers_at(thread.stats["iter_num"], rows)
        rows, iteration = rows[has], iteration[has]
        step, _ = integers_at(stat, rows)
        parts = (
            np.full(len(rows), number_of_thread, np.int64),
            rows,
            step,
            iteration,
            thread.start_ps[rows],
            thread.end_ps[rows],
        )
        for column, part in zip(columns, parts, strict=True):
            column.append(part)
    if not columns[0]:
        return None
    of_thread, rows, step, iteration, start, end = (np.concatenate(column) for column in columns)
    loops = np.setdiff1d(step[iteration != 0], left_out)
    chosen = np.flatnonzero(np.isin(step, loops))
    if not len(chosen):
        return None
    by_iteration = chosen[np.lexsort((-end[chosen], start[chosen], iteration[chosen], step[chosen]))]
    step, iteration = step[by_iteration], iteration[by_iteration]
    opens = np.append(True, (step[1:] != step[:-1]) | (iteration[1:] != iteration[:-1]))
    first = by_iteration[opens]
    rank = np.empty(len(first), np.int64)
    rank[np.lexsort((-end[first], start[first]))] = np.arange(len(first))
    number = rank[np.cumsum(opens) - 1]
    order = by_iteration[np.argsort(number, kind="stable")]
    return of_thread[order], rows[order], np.sort(number)


@dataclass(frozen=True, slots=True)
class CoreLinks:
    """The links between the events of a core's grouping line and those of the host.

    Attributes:
        produced, consumed: the links' ends, including those of other lines' events inside an event.
        own: int64[n]; the group that the profile gives to each event of the grouping line, -1 for none.
        start_ps, end_ps: int64[n]; the events' spans.
    """

    produced: Ends
    consumed: Ends
    own: Int64s
    start_ps: Int64s
    end_ps: Int64s


def core_links(plane: Plane, grouping: Line, others: Sequence[Line]) -> CoreLinks:
    """The links of a core.

    Args:
        grouping: the line that groups the core's events.
        others: lines whose events may have links too; an event of `grouping` gets the links of events inside it.
    """
    produced, consumed, own, start, end = _core_line(plane, grouping)
    produced_ends, consumed_ends = [produced], [consumed]
    reach = np.maximum.accumulate(end)
    for line in others:
        produced, consumed, _, begins, ends = _core_line(plane, line)
        if not len(produced.rows) and not len(consumed.rows):
            continue
        # the first grouping event that ends later than any event of the line so far begins
        holding = np.searchsorted(reach, np.maximum.accumulate(begins), side="right")
        holder = np.minimum(holding, len(start) - 1)
        inside = (holding < len(start)) & (start[holder] <= begins) & (end[holder] >= ends)
        for kept, of_line in ((produced_ends, produced), (consumed_ends, consumed)):
            within = of_line.take(inside[of_line.rows])
            kept.append(Ends(holder[within.rows], within.kind, within.id))
    return CoreLinks(joined(produced_ends), joined(consumed_ends), own, start, end)


def _core_line(plane: Plane, line: Line) -> tuple[Ends, Ends, Int64s, Int64s, Int64s]:
    """Ends, own groups and spans of a line of a core."""
    events = line.events(_CORE_STATS, places=False)
    start, end = event_spans(line, events)
    ends = []
    for kind, number in (("_pt", "_p"), ("_ct", "_c")):
        kinds, ids = events.stats.get(kind), events.stats.get(number)
        rows = no_ints()
        if kinds is not None and ids is not None:
            rows = np.flatnonzero((kinds.kind != 0) & (ids.kind != 0)).astype(np.int64)
        ends.append(Ends(rows, _narrow(_values(kinds, rows)), _values(ids, rows)))
    run, queue = events.stats.get("run_id"), events.stats.get("queue_id")
    if line.name == MODULES_LINE and is_tensor_core(plane) and run is not None and queue is not None:
        rows = np.flatnonzero((run.kind != 0) & (queue.kind != 0)).astype(np.int64)
        ordinal = np.full(len(rows), device_ordinal(plane), np.int64)
        core_type = events.stats.get("core_type")
        ids_of = _mixed([ordinal, _values(queue, rows), _values(run, rows), _values(core_type, rows)])
        ends[1] = _replaced(ends[1], Ends(rows, np.full(len(rows), _LAUNCH), ids_of))
    every = np.arange(len(events))
    group = events.stats.get("group_id")
    own = group.integers(-1) if group is not None else np.full(len(every), -1)
    return ends[0], ends[1], own, start, end


def _values(column: StatColumn | None, rows: Int64s) -> Int64s:
    return column.take(rows).integers() if column is not None else np.zeros(len(rows), np.int64)
