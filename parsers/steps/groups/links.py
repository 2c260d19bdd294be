"""Which events of a trace cause which others, as XProf reads it from stats before it groups events.

A producer names what it starts by a type and an id (stats `_pt` and `_p`); a consumer names what started it (`_ct` and
`_c`). For some events of the TPU's runtime XProf makes up both from other stats (`preprocess_xplane.cc`), and so does
this module. XProf also makes tasks of thread pools from pairs of `ThreadpoolListener` events, but links them to nothing
(as of 2.24.2), so this module does not make them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, distinct, is_among, no_ints, opens, without
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.xspace.trace import Line, Plane
from tpuprof.parsers.ops.core.ops import MODULES_LINE
from tpuprof.parsers.ops.device import device_ordinal, is_tensor_core
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.host_events.events import Ends, HostEvents, HostThread

LINK_STATS = (
    *("_pt", "_p", "_ct", "_c", "_r", "_a", "id", "iter_num"),
    *("request_id", "queue_addr", "device_ordinal", "queue_id", "run_id", "core_type", "correlation_id"),
)
"""Stats of host events that say what causes what."""

_CORE_STATS = ("_pt", "_p", "_ct", "_c", "run_id", "queue_id", "core_type", "group_id")

_LEGACY, _STREAM, _LAUNCH = 1, 11, 12  # types of links (tsl's ContextType)
_EXECUTOR, _KERNEL, ITERATION = ((1 << 40) + index for index in range(3))  # types of our own, no profile has such

RUN_ID_BITS = (1 << 27) - 1
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
    optional: str = ""


_RULES = (
    _Rule(_LEGACY, PROCESS, ("TpuExecuteOp",), ("id", "iter_num")),
    _Rule(_STREAM, "EnqueueRequestLocked", _QUEUED, ("request_id", "queue_addr")),
    _Rule(_LAUNCH, _LAUNCHER, (_FINISHER,), ("device_ordinal", "queue_id", "run_id"), "core_type"),
)
_EXECUTOR_RULE = _Rule(_EXECUTOR, PROCESS, _NEXT, ("id", "iter_num"))


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


def by_key(ends: Iterable[Ends], first: Iterable[int]) -> Ends:
    """Joins the ends of several lines: the key of a line's first event is added to its rows."""
    return Ends.joined([Ends(end.rows + key, end.kind, end.id) for end, key in zip(ends, first, strict=True)])


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
    produced, consumed = _narrow(thread.producers()), _narrow(thread.consumers())
    for rule in _RULES:
        produced = _replaced(produced, _by_rule(thread, rule, names, (rule.producer,)))
        consumed = _replaced(consumed, _by_rule(thread, rule, names, rule.consumers))
    is_async, apart = thread.stat("_a"), None
    if len(is_async.rows):
        apart = np.zeros(len(thread), np.bool_)
        apart[is_async.rows] = is_async.values.integers() != 0
    return LineLinks(thread.start_ps, thread.end_ps, apart, produced, consumed, *_roots(thread, names))


def _narrow(ends: Ends) -> Ends:
    """Cuts types to the low 32 bits, with their sign: they are no longer in XProf."""
    return Ends(ends.rows, ends.kind.astype(np.int32).astype(np.int64), ends.id)


def _by_rule(thread: HostThread, rule: _Rule, names: Names, events: Sequence[str]) -> Ends:
    """The ends that a rule makes of other stats. Only events that have all of these count."""
    ids = [names[name] for name in events if name in names]
    rows = thread.stat(rule.stats[0]).rows
    rows = rows[is_among(thread.metadata_id[rows], ids)]
    columns, have = [], np.ones(len(rows), np.bool_)
    for stat in rule.stats:
        values, has = thread.stat(stat).integers_at(rows)
        columns.append(values & RUN_ID_BITS if stat == "run_id" else values)
        have &= has
    if rule.optional:
        columns.append(thread.stat(rule.optional).integers_at(rows)[0])
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
    return Ends.joined([ends.take(~is_among(ends.rows, by.rows)), by]) if len(by) else ends


def _roots(thread: HostThread, names: Names) -> tuple[Int64s, Int64s]:
    """Rows and levels of the events that groups begin with."""
    stat = thread.stat("_r")
    rows, level = stat.rows, stat.values.integers().astype(np.int32).astype(np.int64)
    for name, of_name in _ROOT_LEVELS:
        if name in names:
            named = thread.rows_of([names[name]])
            if name == _ROOT_LEVELS[0][0]:  # the others' levels replace the events' own
                named = named[~is_among(named, rows)]
            kept = ~is_among(rows, named)
            rows = np.concatenate([rows[kept], named])
            level = np.concatenate([level[kept], np.full(len(named), of_name)])
    order = np.argsort(rows)
    return rows[order], level[order]


def tf_data_steps(threads: Sequence[HostThread], names: Names) -> Int64s:
    """Ids of the steps that run functions of tf.data; none of their events begins a group."""
    ids = [names[name] for name in _TF_DATA if name in names]
    steps = [no_ints()]
    for thread in threads if ids else ():
        stat = thread.stat("id")
        steps.append(stat.values.integers()[is_among(thread.metadata_id[stat.rows], ids)])
    return distinct(np.concatenate(steps))


def last_of_each(ends: Ends) -> Ends:
    """The last of the ends with the same type and id."""
    ordered = ends.take(np.lexsort((ends.id, ends.kind)))
    return ordered.take(np.append(opens(ordered.kind, ordered.id)[1:], True)[: len(ordered)])


def executor_ends(thread: HostThread, names: Names) -> tuple[Ends, Ends]:
    """Links TensorFlow's executors to the iterators that they wait for, by step and iteration."""
    if not any(name in names for name in _NEXT):
        return Ends.joined([]), Ends.joined([])
    return _by_rule(thread, _EXECUTOR_RULE, names, (PROCESS,)), _by_rule(thread, _EXECUTOR_RULE, names, _NEXT)


def correlated(thread: HostThread) -> Ends:
    """Kernels of a GPU, or the calls of the host that launched them; a TensorFlow op is neither."""
    stat, table = thread.stat("correlation_id"), thread.line.plane.event_metadata
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
    parts = [(no_ints(),) * 6]
    for index, thread in enumerate(threads if PROCESS in names else ()):
        stat = thread.stat("id")
        rows = stat.rows[thread.metadata_id[stat.rows] == names[PROCESS]]
        iteration, has = thread.stat("iter_num").integers_at(rows)
        rows, iteration = rows[has], iteration[has]
        step, _ = stat.integers_at(rows)
        parts.append((np.full(len(rows), index), rows, step, iteration, thread.start_ps[rows], thread.end_ps[rows]))
    of_thread, rows, step, iteration, start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    loops = without(step[iteration != 0], left_out)
    chosen = np.flatnonzero(is_among(step, loops))
    if not len(chosen):
        return None
    by_iteration = chosen[np.lexsort((-end[chosen], start[chosen], iteration[chosen], step[chosen]))]
    begins = opens(step[by_iteration], iteration[by_iteration])
    first = by_iteration[begins]
    rank = np.empty(len(first), np.int64)
    rank[np.lexsort((-end[first], start[first]))] = np.arange(len(first))
    number = rank[np.cumsum(begins) - 1]
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
    links = _core_line(plane, grouping)
    produced, consumed = [links.produced], [links.consumed]
    reach = np.maximum.accumulate(links.end_ps)
    for line in others:
        of_line = _core_line(plane, line)
        if not len(of_line.produced) and not len(of_line.consumed):
            continue
        # the first grouping event that ends later than any event of the line so far begins
        holding = np.searchsorted(reach, np.maximum.accumulate(of_line.start_ps), side="right")
        holder = np.minimum(holding, len(reach) - 1)
        inside = holding < len(reach)
        inside &= (links.start_ps[holder] <= of_line.start_ps) & (links.end_ps[holder] >= of_line.end_ps)
        for kept, ends in ((produced, of_line.produced), (consumed, of_line.consumed)):
            within = ends.take(inside[ends.rows])
            kept.append(Ends(holder[within.rows], within.kind, within.id))
    return replace(links, produced=Ends.joined(produced), consumed=Ends.joined(consumed))


def _core_line(plane: Plane, line: Line) -> CoreLinks:
    """The links, own groups and spans of one line of a core."""
    events = HostThread.of(line, line.events(_CORE_STATS, places=False))
    consumed, run = _narrow(events.consumers()), events.stat("run_id")
    if line.name == MODULES_LINE and is_tensor_core(plane):
        queue, has = events.stat("queue_id").integers_at(run.rows)
        core_type, _ = events.stat("core_type").integers_at(run.rows)
        launch = _mixed([np.full(len(run.rows), device_ordinal(plane)), queue, run.values.integers(), core_type])
        consumed = _replaced(consumed, Ends(run.rows, np.full(len(run.rows), _LAUNCH), launch).take(has))
    own = events.integers("group_id", -1)
    return CoreLinks(_narrow(events.producers()), consumed, own, events.start_ps, events.end_ps)
