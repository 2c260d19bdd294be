"""What a host's threads did to feed the device: which events wait for input, send it, or make it.

XProf knows two kinds. Some events delay a step (`ClassifyCpuEvent`): ``IteratorGetNext…``, the outermost stages of an
input pipeline (stat `_ipl_stage_name`), infeed enqueues and host-to-device copies. Other events are ops that make
input: framework ops of tf.data and of pipelines that name their stages (see `parsers.ops.host_events.ops`);
`xprof_category` sorts those.

A plain JAX or PyTorch/XLA program has neither, but its profile shows the same by other names: the runtime's transfers,
Grain's iterators, and with the Python tracer on the loader's ``__next__``. This module recognises them by name; where a
thread that drives the device has none of these, a function that returns right before each batch is sent, with what
another thread has just made, is what gets it.

A thread that fetches ahead is always inside some iterator, so iterators and stages delay a step only on a thread that
drives the device (launches programs or marks steps), as long as the profile shows such a thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import add
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import (
    Bools,
    Int64s,
    Intervals,
    in_nesting_order,
    interval_index,
    no_ints,
    positions,
    union,
    union_of,
)
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.xspace.core.api import self_times, sum_by_key
from tpuprof.parsers.formats.xspace.metadata import KIND_BYTES, KIND_REF, KIND_STR
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.host_events.activity import LAUNCHES, READS, is_compilation, is_of_program, waits_for_python
from tpuprof.parsers.ops.host_events.events import Ends, HostEvents, HostThread
from tpuprof.parsers.ops.host_events.ops import INFEED_ENQUEUE, STAGE_ID, STAGE_TYPE

XprofCategory = Literal["Enqueue", "Demanded file read", "Advanced file read", "Preprocessing", "Unknown"]

InputCategory = Literal["Wait for input", "Transfer to device", "Produce input"]
"""Wait for input: a thread that drives the device stands in an iterator. Produce input: another thread does."""

WAIT: InputCategory = "Wait for input"
TRANSFER: InputCategory = "Transfer to device"
PRODUCE: InputCategory = "Produce input"

STAGE_NAME = "_ipl_stage_name"

INPUT_STATS = (STAGE_NAME, STAGE_ID, "_pt", "_p", "_ct", "_c")
"""Stats of host events that `input_waits` and `input_rows` look at."""

_STAGE_CATEGORIES: Mapping[str, XprofCategory] = {
    "enqueue": "Enqueue",
    "read": "Demanded file read",
    "preprocessing": "Preprocessing",
    "unknown": "Unknown",
}
_READERS = ("TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "RecordIO", "ArrayRecord")
_AHEAD = ("MemoryReader", "MemoryWriter", "Interleave", "Prefetch", "ParallelMap")

_Role = Literal["get_next", "iterator", "transfer", "drives", "manager", "queue", "stage"]

# What names of events mean; the first that fits counts. get_next waits on any thread, iterator on one that drives the
# device, and makes input on others. manager: `with` blocks are generators, so a `next` inside of these asks for no
# input, nor does one inside compilation. queue: waits for another thread on one that drives the device; on others it
# says nothing. stage: of a tf.data pipeline, which is made on the step's own thread where that drives the device.
_SCOPE = r"(?:\w+::)*"
_FEEDS = (
    r"(?:(?:in)?feed(?:er|ing)?|(?:data_?)?loaders?|data_?sets?|data|inputs?|(?:input|data)_pipeline|batch(?:es|er)?)"
)
_NAMES: tuple[tuple[_Role, str], ...] = (
    # TensorFlow; what sends the element on, IteratorGetNext/_5:_Recv, waits for no input (XProf counts it).
    ("get_next", r"(?i:IteratorGetNext[^:]*(?:\Z|::|:IteratorGetNext))"),
    # The Python tracer's `$file.py:12 name` and `$module name`; Grain's own.
    ("iterator", r"\$.+[ .](?:__next__|next|_?get_next|_next_internal|_next_data)\Z"),
    ("iterator", r"\$.+[ .]_?(?:get|take|fetch|load|read|pull|pop|next)_(?:next_)?(?:batch|example|sample)(?:es|s)?\Z"),
    ("iterator", r"\$.+[ .]next_batch\Z"),
    # A file of the user's that is named for feeding a device, and a function that gets the next of something there.
    ("iterator", rf"\$(?:.*[/_])?{_FEEDS}\.py:\d+ _?(?:get|take|fetch|load|read|pull|pop)\Z"),
    ("iterator", r"(?:enumerate\(\w+\)#)?\w+\.__next__\Z"),  # with PyTorch's loader too
    # Functions of a loader written in Python, by what such functions are called.
    (
        "iterator",
        r"\$[^:]+:\d+ _?(?:load|read|fetch|take|make|prepare|next)_(?:next_)?(?:batch|example|sample)(?:es|s)?\Z",
    ),
    (
        "iterator",
        r"\$(?!pxla\.)[^:]+:\d+ _?(?:load|load_data|fetch_data|read_data|load_images?|read_records?|batches)\Z",
    ),
    ("iterator", r"\$[^:]+:\d+ _?(?:\w+_)?(?:gen|generator|batches|data_?loader|data_?iter(?:ator)?)\Z"),
    ("iterator", r"\$[^:]+:\d+ _?(?:augment|collate(?:_fn)?|decode_(?:image|jpeg|example|record)s?)\Z"),
    ("stage", r"Iterator::"),
    ("queue", r"\$queue\.py:\d+ get\Z"),
    ("manager", r"\$contextlib\.py:\d+ __(?:enter|exit)__\Z"),
    # XProf's copies and those of GPU runtimes.
    ("transfer", r"(?i:(?:cu|hip|cuda)?Memcpy(?:HtoD|H2D))"),
    # TPU runtimes, JAX, PyTorch/XLA.
    ("transfer", r"(?:[^:]*:)?InfeedEnqueue|H2D Dispatch|(?:Xla)?Linearize(?:\Z|[^a-z])"),
    ("transfer", _SCOPE + r"Transfer(?:Literal)?(?:HostToDevice|To(?:Device|Infeed|Server))"),
    ("transfer", _SCOPE + r"(?:BufferFromHost|CopyFromHost|LinearizeHostBuffer|LinearizeInto)"),
    ("transfer", r"(?:batched_)?device_put\b|DevicePut|\$.+ (?:(?:batched_)?device_put|send_cpu_data_to_device)\Z"),
    # What launches programs: JAX, PyTorch/XLA, TensorFlow; and marks of steps.
    ("drives", _SCOPE + r"(?:\w*LoadedExecutable::Execute\Z|(?:Schedule)?SyncTensorsGraph|ExecuteComputation)"),
    (
        "drives",
        r"PjitFunction\(|ExecuteReplicated|MarkStep|StepMarker|ProfilerStep|FunctionRun|SessionRun|EagerLocalExecute",
    ),
    ("drives", r"(?:train|test|TraceContext)[^/]*\Z"),
)
_OF_DATA = "InstantiatedCapturedFunction::"
"""Events in which tf.data runs a function of its pipeline."""

_OF_WEIGHTS = pattern(
    r"\$.*(?:weight|param(?:eter)?s?(?:_|\b)|checkpoint|restore|load_state|state_dict|sync_model|model_sync|adapter|lora)",
    re.IGNORECASE,
)
"""Calls that send weights and not input: those of a trainer to its sampler, out of a checkpoint, or of an adapter."""

_ROLES: tuple[_Role, ...] = get_args(_Role)
_GET_NEXT, _ITERATOR, _TRANSFER, _DRIVES, _MANAGER, _QUEUE, _STAGE = range(len(_ROLES))
_CATEGORIES: tuple[InputCategory, ...] = get_args(InputCategory)
_WAIT, _TRANSFERS, _PRODUCE = range(len(_CATEGORIES))

_COMPILED = tuple((role, pattern(words)) for role, words in _NAMES)
_SCOPED = "|".join(pattern.removeprefix(_SCOPE) for _, pattern in _NAMES if pattern.startswith(_SCOPE))
_PLAIN = "|".join(pattern for _, pattern in _NAMES if not pattern.startswith(_SCOPE))
_ANY = pattern(f"{_PLAIN}|{_SCOPE}(?:{_SCOPED})")  # one look at a name's scope, not one for each pattern
_LONGEST_NAME = 1000
"""Characters of a name that are looked at; those of events that feed the device are short."""


@dataclass(frozen=True, slots=True)
class InputRows(Sized):
    """What a host did for input besides XProf's input ops, by name and category, most self time first.

    Attributes:
        name, category: name and category of each row.
        occurrences, total_ps, self_ps: int64[n]; self time is without such events inside.
    """

    name: tuple[str, ...]
    category: tuple[InputCategory, ...]
    occurrences: Int64s
    total_ps: Int64s
    self_ps: Int64s


def xprof_category(name: str, kind: str) -> XprofCategory | None:
    """The category of a host's framework op on XProf's input pipeline page; None for an op that is no input op.

    Args:
        name, kind: as in `HostOps`. Of an op named ``Iterator::…`` that reads files it counts as read in advance if a
            stage around it caches, prefetches or runs in parallel (`CategorizeInputOp`).
    """
    if kind.lower() in _STAGE_CATEGORIES:
        return _STAGE_CATEGORIES[kind.lower()]
    if kind.startswith((INFEED_ENQUEUE, "MemcpyHToD")):
        return "Enqueue"
    if kind != "Dataset":
        return None
    if not name.endswith(tuple(f"::{reader}" for reader in _READERS)):
        return "Preprocessing"
    return "Advanced file read" if any(f"::{stage}" in name for stage in _AHEAD) else "Demanded file read"


@dataclass(frozen=True, slots=True)
class _Fed:
    """The events of a thread that feed the device.

    Attributes:
        rows: int64[k], ascending; the events.
        category: int8[k], indices of `_CATEGORIES`.
        is_known: bool[k]; whether XProf has it as an input op.
    """

    thread: HostThread
    rows: Int64s
    category: NDArray[np.int8]
    is_known: Bools


def input_waits(host: HostEvents) -> tuple[Intervals, tuple[HostThread, ...]]:
    """When a thread of the host waited for input, or sent it to the device, and the threads that did.

    Returns:
        Start and end of disjoint intervals in order, in picoseconds on the trace's clock; the threads.
    """
    spans, threads = [], []
    for fed in _feeding(host):
        rows = fed.rows[fed.category != _PRODUCE]
        spans.append((fed.thread.start_ps[rows], fed.thread.end_ps[rows]))
        threads += [fed.thread] * (len(rows) > 0)
    return union_of(spans), tuple(threads)


def input_rows(host: HostEvents) -> InputRows:
    """Adds up by name the events that feed the device and are no input ops of XProf."""
    return merge_input_rows([_thread_rows(host, fed) for fed in _feeding(host)])


def merge_input_rows(parts: Sequence[InputRows]) -> InputRows:
    """Adds up the rows of several threads or hosts; most self time first, then by name."""
    sums: dict[tuple[str, InputCategory], list[int]] = {}
    for part in parts:
        columns = (part.occurrences.tolist(), part.total_ps.tolist(), part.self_ps.tolist())
        for name, category, *values in zip(part.name, part.category, *columns, strict=True):
            known = sums.setdefault((name, category), [0, 0, 0])
            known[:] = map(add, known, values)
    rows = sorted(sums, key=lambda row: (-sums[row][2], row))
    counts, totals, owns = (_int64s([sums[row][column] for row in rows]) for column in range(3))
    return InputRows(tuple(name for name, _ in rows), tuple(category for _, category in rows), counts, totals, owns)


def _int64s(sums: Sequence[int]) -> Int64s:
    """The sums as a column; sums that are too large for it, as in a damaged profile, are cut."""
    limits = np.iinfo(np.int64)
    return np.array([max(limits.min, min(value, limits.max)) for value in sums], np.int64)


def _thread_rows(host: HostEvents, fed: _Fed) -> InputRows:
    rows, category = fed.rows[~fed.is_known], fed.category[~fed.is_known].astype(np.int64)
    start, end, rows, category = in_nesting_order(fed.thread.start_ps[rows], fed.thread.end_ps[rows], rows, category)
    ids, which = np.unique(fed.thread.metadata_id[rows], return_inverse=True)
    pairs, key = np.unique(which * len(_CATEGORIES) + category, return_inverse=True)
    return InputRows(
        name=tuple(host.name(int(ids[pair // len(_CATEGORIES)])) for pair in pairs.tolist()),
        category=tuple(_CATEGORIES[pair % len(_CATEGORIES)] for pair in pairs.tolist()),
        occurrences=np.bincount(key, minlength=len(pairs)).astype(np.int64),
        total_ps=sum_by_key(key, end - start, len(pairs)),
        self_ps=sum_by_key(key, self_times(start, end), len(pairs)),
    )


def _feeding(host: HostEvents) -> Iterator[_Fed]:
    """Yields the events of each thread that feed the device; leaves out threads without any."""
    ids = host.ids_named(lambda name: _ANY.match(name, 0, _LONGEST_NAME) is not None)
    names = [host.name(number) for number in ids.tolist()]
    # the last ones are for events of other names
    role_of_id = np.array([*map(_role, names), -1], np.int8)
    known_id = np.array([*map(_is_input_op, names), False], np.bool_)
    places = [positions(thread.metadata_id, ids) for thread in host.threads]
    of_data = host.ids_named(lambda name: name.startswith(_OF_DATA))
    drives = [
        _drives(thread, np.flatnonzero(role_of_id[position] == _DRIVES), of_data)
        for thread, position in zip(host.threads, places, strict=True)
    ]
    has_stage_ops = len(host.plane.stat_ids((STAGE_ID, STAGE_TYPE))) == 2
    producers = _producers(host)
    compiles = host.ids_named(is_compilation)
    of_weights = host.ids_named(lambda name: _OF_WEIGHTS.match(name, 0, _LONGEST_NAME) is not None)
    for thread, position, is_driver in zip(host.threads, places, drives, strict=True):
        holds_up = is_driver or not any(drives)
        role = role_of_id[position]
        category = np.full(len(thread), -1, np.int8)
        category[_iterators(thread, role, compiles)] = _WAIT if holds_up else _PRODUCE
        if is_driver:
            category[(role == _QUEUE) | (role == _STAGE)] = _WAIT
        stages, is_linked = _stages(thread, producers)
        category[stages] = np.where(is_linked | (not holds_up), _PRODUCE, _WAIT)
        category[role == _GET_NEXT] = _WAIT
        sent = _transfers(thread, role, of_weights)
        if is_driver and len(sent) and not (category == _WAIT).any():
            others = [each for each, drives_too in zip(host.threads, drives, strict=True) if not drives_too]
            gets = _handed_over(thread, sent, others, lambda number: _may_hand_over(host.name(number)))
            if not _holds_any(thread, gets, np.flatnonzero(role == _DRIVES)):
                category[gets] = _WAIT
        category[sent] = _TRANSFERS
        rows = np.flatnonzero(category >= 0)
        if len(rows):
            known = known_id[position[rows]]
            if has_stage_ops:
                known |= thread.stat(STAGE_ID).integers_at(rows)[1]
            yield _Fed(thread, rows, category[rows], known)


def _drives(thread: HostThread, rows: NDArray[np.intp], of_data: Int64s) -> bool:
    """Whether a thread drives the device: it launches something that is no function of tf.data."""
    if not len(of_data) or not len(rows):
        return len(rows) > 0
    around = thread.rows_of(of_data)
    return bool(
        (interval_index(thread.start_ps[rows], *union(thread.start_ps[around], thread.end_ps[around])) < 0).any()
    )


# --- batches of loaders without a name ---------------------------------------------------------------------------

_LEAST_SENT = 3
"""Fewer batches show no habit."""

_LONG = 100
"""Events that take less than one part in so many of the time between batches are not looked at."""

_MOSTLY = 2 / 3
"""A function hands batches over if it comes right before at least this share of them."""

_WAITS = 0.5
"""It waits for another thread if this makes the batch for at least this share of its time."""

_JUST = 0.1
"""The other thread has just ended its work where no more than this share of the function's time is left."""


def _handed_over(
    thread: HostThread, sent: Int64s, others: Iterable[HostThread], is_function: Callable[[int], bool]
) -> Int64s:
    """int64[k], ascending: the events in which a thread waits for what it sends to the device next.

    Args:
        thread: the one that drives the device.
        sent: rows of the events in which it sends something.
        others: the other threads.
        is_function: whether the event of a metadata id is a function of the program.
    """
    start, end = np.sort(thread.start_ps[sent]), np.sort(thread.end_ps[sent])
    if len(sent) < _LEAST_SENT:
        return no_ints()
    least = max(1, int(start[-1] - start[0]) // (len(sent) - 1) // _LONG)
    rows = _lasting(thread, least)
    rows = rows[~np.isin(rows, sent)]
    # of events that end together the outermost comes last
    rows = rows[np.lexsort((-thread.start_ps[rows], thread.end_ps[rows]))]
    at = np.searchsorted(thread.end_ps[rows], start, "right") - 1
    chosen = rows[at[at >= 0]]
    before = np.append(np.iinfo(np.int64).min, end[:-1])[at >= 0]
    took = thread.end_ps[chosen] - thread.start_ps[chosen]
    is_next = (thread.start_ps[chosen] >= before) & (start[at >= 0] - thread.end_ps[chosen] <= took)
    chosen = chosen[is_next]
    if len(chosen) < _LEAST_SENT:
        return no_ints()
    ids, counts = np.unique(thread.metadata_id[chosen], return_counts=True)
    most = int(ids[counts.argmax()])
    if counts.max() < _MOSTLY * len(chosen) or not is_function(most):
        return no_ints()
    chosen = np.unique(chosen[thread.metadata_id[chosen] == most]).astype(np.int64)
    took = thread.end_ps[chosen] - thread.start_ps[chosen]
    waits = max(
        (float(took[_waits_for(thread, chosen, other, least, is_function)].sum()) for other in others), default=0.0
    )
    return chosen if waits >= _WAITS * float(took.sum()) else no_ints()


def _lasting(thread: HostThread, least: int) -> Int64s:
    return np.flatnonzero(thread.end_ps - thread.start_ps >= least).astype(np.int64)


def _waits_for(
    thread: HostThread, rows: Int64s, other: HostThread, least: int, is_function: Callable[[int], bool]
) -> Bools:
    """bool[rows]: which of some events end just after an event of another thread has, that filled most of them."""
    made = _lasting(other, least)
    made = made[
        np.isin(other.metadata_id[made], [of for of in np.unique(other.metadata_id[made]) if is_function(int(of))])
    ]
    made = made[np.argsort(other.end_ps[made], kind="stable")]
    if not len(made):
        return np.zeros(len(rows), np.bool_)
    start, end = thread.start_ps[rows], thread.end_ps[rows]
    at = np.searchsorted(other.end_ps[made], end, "right") - 1
    last = made[np.maximum(at, 0)]
    filled = other.end_ps[last] - np.maximum(other.start_ps[last], start)
    return (at >= 0) & (end - other.end_ps[last] <= _JUST * (end - start)) & (filled >= _WAITS * (end - start))


def _holds_any(thread: HostThread, rows: Int64s, inner: NDArray[np.intp]) -> bool:
    """Whether any event of `inner` lies in one of the others: what launches a program does not get a batch alone."""
    spans = union(thread.start_ps[rows], thread.end_ps[rows])
    span = interval_index(thread.start_ps[inner], *spans)
    return bool((thread.end_ps[inner[span >= 0]] <= spans[1][span[span >= 0]]).any())


def _may_hand_over(name: str) -> bool:
    """Whether an event is a function of the program that may get a batch, or make one."""
    is_known = any(pattern.search(name, 0, _LONGEST_NAME) for pattern in (READS, LAUNCHES, _OF_WEIGHTS))
    is_known |= is_compilation(name) or waits_for_python(name)
    return name.startswith("$") and is_of_program(name) and not is_known


def _role(name: str) -> int:
    return next((_ROLES.index(role) for role, pattern in _COMPILED if pattern.match(name, 0, _LONGEST_NAME)), -1)


def _is_input_op(name: str) -> bool:
    op = parse_framework_op(name)
    return xprof_category(op.name, op.type) is not None


def _iterators(thread: HostThread, role: NDArray[np.int8], compiles: Int64s) -> Int64s:
    """Events in which a thread asks an iterator for its next element: none of a `with` block, or of compilation."""
    rows, managers = (np.flatnonzero(role == of) for of in (_ITERATOR, _MANAGER))
    if len(compiles) and len(rows):
        managers = np.concatenate([managers, thread.rows_of(compiles)])
    return rows[interval_index(thread.start_ps[rows], *union(thread.start_ps[managers], thread.end_ps[managers])) < 0]


def _transfers(thread: HostThread, role: NDArray[np.int8], of_weights: Int64s) -> Int64s:
    """Events in which a thread sends input to the device: not those inside a call that sends weights."""
    rows = np.flatnonzero(role == _TRANSFER)
    around = thread.rows_of(of_weights) if len(of_weights) and len(rows) else no_ints()
    return rows[interval_index(thread.start_ps[rows], *union(thread.start_ps[around], thread.end_ps[around])) < 0]


def _stages(thread: HostThread, producers: NDArray[np.void]) -> tuple[Int64s, Bools]:
    """Events that are stages of an input pipeline, and which of them serve a stage or an op of another thread.

    As in XProf an event serves another thread where it, or one around it, consumes what another event produced.
    """
    stat = thread.stat(STAGE_NAME)
    if not len(stat.rows):
        return stat.rows, np.zeros(0, np.bool_)
    text = stat.values
    is_text = np.isin(text.kind, (KIND_STR, KIND_BYTES)) & (text.length > 0 if len(text.length) else False)
    rows = stat.rows[is_text | (text.kind == KIND_REF)]
    consumers = thread.consumers()
    linked = consumers.rows[np.isin(_pairs(consumers), producers)]
    spans = union(thread.start_ps[linked], thread.end_ps[linked])
    span = interval_index(thread.start_ps[rows], *spans)
    inside = span >= 0
    inside[inside] = thread.end_ps[rows[inside]] <= spans[1][span[inside]]
    return rows, inside


_PAIR = np.dtype([("type", np.int64), ("id", np.int64)])


def _producers(host: HostEvents) -> NDArray[np.void]:
    """Type and id of everything that events produce for others; empty without stages, which alone need it."""
    if not any(STAGE_NAME in thread.stats for thread in host.threads):
        return np.zeros(0, _PAIR)
    return np.unique(_pairs(Ends.joined([thread.producers() for thread in host.threads])))


def _pairs(ends: Ends) -> NDArray[np.void]:
    """Types and ids as one column."""
    pairs = np.zeros(len(ends), _PAIR)
    pairs["type"], pairs["id"] = ends.kind, ends.id
    return pairs
