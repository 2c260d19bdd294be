"""Sorts the events of a Chrome trace into threads, as columns; what events of an op have in common is kept once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from struct import pack, unpack
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, no_ints
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.formats.xspace.chrome.torch import device_of, translated
from tpuprof.parsers.formats.xspace.metadata import KIND_DOUBLE, KIND_INT64, KIND_REF, KIND_UINT64

ThreadId: TypeAlias = tuple[object, object]
"""Process and thread, by what the trace calls them."""

COUNTERS = "counters"
"""Stands for the thread of a process's counters, which lie on none."""

_OF_EVENT = frozenset(
    {
        *("device_offset_ps", "device_duration_ps", "run_id", "replica_id", "queue_id", "core_type", "group_id"),
        *("all_reduce_id", "all_reduce_unique_id", "Time Scale Multiplier", "dma_stall_duration_ps", "correlation_id"),
        *("min_duration_ps", "self_duration_ps", "step_name", "id", "hlo_op", "is_root", "offload_core_id"),
        *("tc_offload_start_id", "offload_execution_index", "scope_range_id", "flow", "_a"),
    }
)
"""Arguments of an op's event that belong to the one occurrence; the others are the op's own."""

_TEXTS = frozenset(
    {
        *("tf_op", "source", "source_stack", "hlo_op", "hlo_module", "hlo_category", "long_name", "step_name", "name"),
        *("shape_with_layout", "deduplicated_name", "model_id", "equation", "details", "annotation", "shape", "layout"),
        *("tensor_shapes", "stage_name", "region_type", "kernel_details"),
    }
)
"""Arguments that are text even where they look like a number."""

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,19})", re.ASCII)
_DECIMAL = re.compile(r"-?\d{1,40}\.\d{1,40}(?:[eE][+-]?\d{1,4})?|-?\d{1,40}[eE][+-]?\d{1,4}", re.ASCII)
_OPAQUE = "<opaque bytes>"
"""What XProf writes for bytes."""

_PENDING = 1 << 15
"""How many events are Python objects before they go into columns."""

ROOM = 768 << 20
"""Bytes that columns and texts may take; the five million events that XProf writes at most take half."""

_MOST_THREADS = 4096  # no program has as many, and a line of a few bytes takes a millisecond to make
_THREAD, _COLUMN, _OP, _EVENT, _VALUE = 4000, 1000, 1500, 32, 24  # about what one takes

_EXACT_MICROS = 1 << 30
"""A double holds that many microseconds to the picosecond."""

_FAR_MICROS, _FAR_PS = 1e30, 1 << 60
_MICRO = 10**6
_DEEPEST = 1000

_NO_ARGS: dict[str, Any] = {}


class TooMuch(Exception):
    """The trace holds more than there is room for."""


class Values(NamedTuple):
    """An argument of a thread's events, in the order of the trace.

    Attributes:
        rows: int64[k]; the events that have it.
        kind, value: uint8[k], int64[k]; which field of XStat holds it, and the number: a double by its bits, a text by
            its index in `Threads.texts`.
    """

    rows: Int64s
    kind: NDArray[np.uint8]
    value: Int64s


class _Begun(NamedTuple):
    """An event that has yet to end."""

    thread: Thread
    start: object
    key: int
    args: dict[str, Any]


@dataclass(slots=True)
class Thread:
    """The events of one thread: those yet to be put into columns, and columns."""

    count: int = 0
    start: list[object] = field(default_factory=list)
    duration: list[object] = field(default_factory=list)
    key: list[int] = field(default_factory=list)
    args: dict[str, tuple[list[int], list[Any]]] = field(default_factory=dict)
    own: dict[str, None] = field(default_factory=dict)
    begun: list[_Begun] = field(default_factory=list)
    parts: list[tuple[Int64s, Int64s, Int64s]] = field(default_factory=list)
    value_parts: dict[str, list[Values]] = field(default_factory=dict)

    def columns(self) -> tuple[Int64s, Int64s, Int64s]:
        """int64[n] each: start and duration in picoseconds, -1 for an event without a time, and index of the key."""
        none = (no_ints(),) * 3
        start, duration, key = (np.concatenate(column) for column in zip(none, *self.parts, strict=True))
        return start, duration, key

    def values(self) -> dict[str, Values]:
        """Arguments of the single events, by name."""
        return {
            name: Values(*(np.concatenate(column) for column in zip(*parts, strict=True)))
            for name, parts in self.value_parts.items()
        }


class Threads:
    """All threads of a trace.

    Attributes:
        threads: by process and thread.
        processes, names: names of processes and threads, by id.
        labels: what PyTorch's profiler calls processes, ``GPU 0``.
        keys: name and arguments of what events have in common, by index.
        texts: texts of single events' arguments, by index.
        slices: how many events of a begin and a duration the trace has.
        unread: how many that are none, or have no time.
        host: of which host the trace says it is; empty where it does not.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.threads: dict[ThreadId, Thread] = {}
        self.processes: dict[object, str] = {}
        self.names: dict[ThreadId, str] = {}
        self.labels: dict[object, str] = {}
        self.slices = self.unread = 0
        self._room = room
        self._pending = 0
        self._base: int | None = None
        self._keys: dict[tuple[Any, ...], int] = {}
        self._texts: dict[str, int] = {}
        self._last: dict[object, tuple[dict[str, Any], int]] = {}
        """The op that was the last of its name: nearly always the next one too, and quicker to compare than to find."""
        self._typed: dict[Any, tuple[int, int]] = {}
        self._async: dict[tuple[object, ...], _Begun] = {}

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """Of each key the name, then names and values of arguments in turn."""
        return list(self._keys)

    @property
    def texts(self) -> list[str]:
        return list(self._texts)

    def read(self, events: Iterable[object]) -> None:
        """Takes all events.

        Raises:
            TooMuch: there is no room for more; what came before is there, after `finish`.
        """
        for event in events:
            try:
                if type(event) is not dict:
                    self.unread += 1
                elif event.get("ph") == "X":
                    self._take_slice(event)
                else:
                    self._take_other(event)
            except TypeError:  # what should be a number or a text is a list or an object
                self.unread += 1
            if self._pending >= _PENDING:
                self._settle()

    def finish(self) -> None:
        """Puts what is left into columns; an event that never ended lasts no time."""
        self._room = ROOM  # what is left is little
        for begun in [*self._async.values(), *(begun for thread in self.threads.values() for begun in thread.begun)]:
            self._put(begun.thread, begun.start, 0, begun.key, begun.args)
        self._async.clear()
        self._settle()

    def typed(self, name: str, value: object) -> tuple[int, int]:
        """Which field of XStat holds an argument's value, and the number there (see `Values`)."""
        known = self._typed.get((name in _TEXTS, value))
        if known is None:
            if len(self._typed) > _PENDING:
                self._typed.clear()
            known = self._typed[name in _TEXTS, value] = self._type(value, name in _TEXTS)
        return known

    # --- events by what they are

    def _take_slice(self, event: dict[str, Any]) -> None:
        self.slices += 1
        if self.labels:
            event = translated(event)
        pid, tid = event.get("pid"), event.get("tid")
        thread = self.threads.get((pid, tid)) or self._thread(pid, tid)
        args = event.get("args")
        if args is None and "bind_id" not in event:
            key, own = self._key((event.get("name"),)), _NO_ARGS
        else:
            args = args if isinstance(args, dict) else {}
            if "bind_id" in event:
                args = _with_flow(event, args)
            key, own = self._told(event.get("name"), args, thread.own)
        self._put(thread, event.get("ts"), event.get("dur", 0), key, own)

    def _take_other(self, event: dict[str, Any]) -> None:
        """An event that is no whole slice: a name, an instant, a counter, a begin or an end."""
        kind, pid, tid, name = event.get("ph"), event.get("pid"), event.get("tid"), event.get("name")
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        if kind == "M":
            self._take_name(name, pid, tid, args)
        elif kind in ("i", "I", "R", "C"):
            thread = self._thread(pid, COUNTERS if kind == "C" else tid)
            self._put(thread, event.get("ts"), 0, *self._told(name, args, thread.own))
        elif kind == "B":
            thread = self._thread(pid, tid)
            if len(thread.begun) < _DEEPEST:
                thread.begun.append(_Begun(thread, event.get("ts"), *self._told(name, args, thread.own)))
        elif kind == "E":
            thread = self._thread(pid, tid)
            if thread.begun:
                self._end(thread.begun.pop(), event.get("ts"))
        elif kind in ("b", "e"):
            self._take_async(event, args)

    def _take_name(self, name: object, pid: object, tid: object, args: dict[str, Any]) -> None:
        """What a process, a thread or, in PyTorch's traces, a device is called."""
        shown, labels = args.get("name"), args.get("labels")
        if name == "process_name" and isinstance(shown, str):
            self.processes[pid] = shown
        elif name == "thread_name" and isinstance(shown, str):
            self.names[pid, tid] = shown
        elif name == "process_labels" and isinstance(labels, str) and device_of(labels) is not None:
            self.labels[pid] = labels
        else:
            return
        self._spend(_THREAD)

    def _take_async(self, event: dict[str, Any], args: dict[str, Any]) -> None:
        link = event.get("id"), event.get("cat"), event.get("pid"), event.get("name")
        begun, begins = self._async.pop(link, None), event.get("ph") == "b"
        if begun is not None:
            self._end(begun, event.get("ts"))
        if begins or begun is None:
            thread = self._thread(event.get("pid"), event.get("tid"))
            flow = {"flow": _packed(event.get("id"), event.get("cat"), 3 if begins else 1), "_a": 1}
            made = _Begun(thread, event.get("ts"), *self._told(event.get("name"), {**args, **flow}, thread.own))
            self._spend(_OP)
            if begins:
                self._async[link] = made
            else:
                self._put(thread, made.start, 0, made.key, made.args)

    def _end(self, begun: _Begun, end: object) -> None:
        duration: object = None
        if isinstance(end, str | int) and isinstance(begun.start, str | int):
            try:
                duration = str(Decimal(end) - Decimal(begun.start))
            except ArithmeticError:
                duration = None
        self._put(begun.thread, begun.start, duration, begun.key, begun.args)

    def _thread(self, pid: object, tid: object) -> Thread:
        thread = self.threads.get((pid, tid))
        if thread is None:
            if len(self.threads) == _MOST_THREADS:
                raise TooMuch
            self._spend(_THREAD)
            thread = self.threads[pid, tid] = Thread()
        return thread

    def _told(self, name: object, args: dict[str, Any], own: dict[str, None]) -> tuple[int, dict[str, Any]]:
        """The key of an event, and the arguments that are its own.

        Args:
            args: of an event; those of an op lose the event's own.
            own: names of arguments that events of ops in this thread were seen to have for themselves.
        """
        if "hlo_category" not in args and "long_name" not in args:
            return self._key((name,)), args
        taken = {}
        for argument in own:
            if argument in args:
                taken[argument] = args.pop(argument)
        last = self._last.get(name)
        if last is None or last[0] != args:
            own |= dict.fromkeys(new := args.keys() & _OF_EVENT)
            taken |= {argument: args.pop(argument) for argument in new}
            last = self._last[name] = args, self._key((name, *args, *map(_plain, args.values())))
        return last[1], taken

    def _key(self, ident: tuple[Any, ...]) -> int:
        known = self._keys.get(ident)
        if known is None:
            self._spend(_OP + sum(len(part) for part in ident if isinstance(part, str)))
            known = self._keys[ident] = len(self._keys)
        return known

    def _put(self, thread: Thread, start: object, duration: object, key: int, args: dict[str, Any]) -> None:
        row = thread.count
        thread.count = row + 1
        thread.start.append(start)
        thread.duration.append(duration)
        thread.key.append(key)
        columns = thread.args
        for name, value in args.items():
            if name in columns:
                rows, values = columns[name]
            else:
                self._spend(_COLUMN + len(name))
                rows, values = columns[name] = ([], [])
            rows.append(row)
            values.append(value)
        self._pending += 1 + len(args)

    # --- from Python objects to columns

    def _settle(self) -> None:
        self._pending = 0
        for thread in self.threads.values():
            if thread.start:
                self._spend(_EVENT * len(thread.start))
                columns = self._picos(thread.start, True), self._picos(thread.duration, False)
                bad = (columns[0] == -_FAR_PS) | (columns[1] == -_FAR_PS)
                self.unread += int(bad.sum())
                # XProf gives an event of no duration a picosecond
                duration = np.where(bad, -1, np.where(columns[1] <= 1, 0, columns[1]))
                thread.parts.append((columns[0], duration, np.array(thread.key, np.int64)))
                thread.start, thread.duration, thread.key = [], [], []
            for name, (rows, values) in thread.args.items():
                if rows:
                    self._spend(_VALUE * len(rows))
                    kind, value = self._columns(name, values)
                    thread.value_parts.setdefault(name, []).append(Values(np.array(rows, np.int64), kind, value))
                    rows.clear()
                    values.clear()

    def _picos(self, values: Sequence[Any], is_time: bool) -> Int64s:
        """int64[n] picoseconds of microseconds; `-_FAR_PS` for what is no time."""
        micros = np.array(list(map(_float, values)), np.float64)
        good = np.abs(micros) < _FAR_MICROS
        if is_time and self._base is None and good.any():
            first = float(micros[good].min())
            self._base = 0 if abs(first) * _MICRO < _FAR_PS else int(first) * _MICRO
        base = (self._base or 0) if is_time else 0
        near = good & (np.abs(micros) < _EXACT_MICROS)
        out: Int64s = np.rint(np.where(near, micros, 0.0) * _MICRO).astype(np.int64)
        for row in np.flatnonzero(~near | (base != 0)).tolist():
            exact = round(Decimal(values[row]) * _MICRO) - base if good[row] else -_FAR_PS
            out[row] = exact if abs(exact) < _FAR_PS else -_FAR_PS
        return out

    def _columns(self, name: str, values: Sequence[Any]) -> tuple[NDArray[np.uint8], Int64s]:
        typed = [self.typed(name, value if isinstance(value, str | int) else _plain(value)) for value in values]
        kinds, numbers_of = zip(*typed, strict=True)
        return np.array(kinds, np.uint8), np.array(numbers_of, np.int64)

    def _type(self, value: object, is_text: bool) -> tuple[int, int]:
        if value is None or value == _OPAQUE:
            return 0, 0
        if not is_text:
            if isinstance(value, bool):
                return KIND_INT64, int(value)
            if isinstance(value, int) or _INTEGER.fullmatch(str(value)):
                number = int(str(value))
                if -(1 << 63) <= number < 1 << 63:
                    return KIND_INT64, number
                if number < 1 << 64:
                    return KIND_UINT64, number - (1 << 64)
            elif _DECIMAL.fullmatch(str(value)):
                return KIND_DOUBLE, int(unpack("<q", pack("<d", float(str(value))))[0])
        text = str(value)
        index = self._texts.get(text)
        if index is None:
            self._spend(_OP + len(text))
            index = self._texts[text] = len(self._texts)
        return KIND_REF, index

    def _spend(self, size: int) -> None:
        """Takes `size` bytes of the room.

        Raises:
            TooMuch: there are no more.
        """
        self._room -= size
        if self._room < 0:
            raise TooMuch


def _plain(value: object) -> str | int | None:
    """A JSON value as a number or a text."""
    return value if value is None or isinstance(value, str | int) else json.dumps(value)


def _float(value: object) -> float:
    """A number; NaN for what is none."""
    try:
        return float(value) if isinstance(value, str | int | float) else np.nan
    except (ValueError, OverflowError):
        return np.nan


CATEGORIES = (
    *("", "", "tf_exec", "tfrt_exec", "batch_sched", "PjRt", "as_batch_sched", "tfrt_rt", "tpu_embed"),
    *("gpu_launch", "batcher", "tpu_stream", "tpu_launch", "pathways_exec", "pjrt_library_call", "threadpool_event"),
)
"""Names of XProf's contexts, by their number (`context_types.cc`)."""


def _with_flow(event: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    """An event's arguments, and the end of an arrow that it is, as the stat that it was."""
    ways = 2 * (event.get("flow_out") is True) | (event.get("flow_in") is True)
    return {**args, "flow": _packed(event["bind_id"], event.get("cat"), ways)} if ways else args


def _packed(number: object, category: object, ways: int) -> int | None:
    """An arrow's id, category and direction in 64 bits, as XProf packs them; None for another kind of id."""
    if not isinstance(number, int) or not 0 <= number < 1 << 56:
        return None
    kind = CATEGORIES.index(category) if isinstance(category, str) and category in CATEGORIES else 0
    return kind << 58 | number << 2 | ways
