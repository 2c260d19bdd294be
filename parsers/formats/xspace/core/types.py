"""What the decoder is given, and what it returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, nesting_order
from tpuprof.parsers.base.record import dataclass

Buffer = bytes | bytearray | memoryview | NDArray[np.uint8]
"""Bytes to decode: contiguous, at most one dimension of single bytes."""

OK = 0
"""The fields end exactly at the end of the bytes, or the last payload reaches past it."""
INCOMPLETE = 1
"""A tag, a length, a varint or a fixed value is cut by the end of the bytes."""
MALFORMED = 2
"""Bytes that are no field: group or unassigned wire type, field number 0 or beyond 29 bits, tag over 5 bytes
(protobuf's own limit), varint over 10 bytes, length or end of the payload beyond int64."""

FULL = 3
"""Scan status: the columns are full; the next event starts at `next`."""
WIDE_ID = 4
"""Scan status: the event at `next` has a metadata id beyond int32, and the columns have none."""

EVERY_EVENT: Bools = np.zeros(0, np.bool_)
"""What chooses no events by their ids, but takes all."""

HAS_OFFSET = 1
"""Event flag: the event has `offset_ps`."""
HAS_OCCURRENCES = 2
"""Event flag: the event has `num_occurrences`, and that is the value in the offset's place."""
EVENT_MALFORMED = 4
"""Event flag: the body breaks off; the values are those before the break."""

HAS_TEXT = 8
"""Scan flag: some wanted stat is text or bytes."""

KIND_ABSENT = 0
"""Stat kind: the message has no such stat. Kinds 2 to 8 are XStat's value field numbers."""
KIND_EMPTY = 1
"""Stat kind: the stat is there and has no value."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one message, in the order of the bytes.

    Attributes:
        number: field numbers.
        wire: wire types: 0 varint, 1 eight bytes, 2 length and payload, 5 four bytes.
        begin, end: where each value lies, as offsets into the bytes: for wire type 2 what follows the length. The last
            payload may end past the bytes.
        next: where the next field's tag would start; past the bytes when the last payload is.
        status: `OK`, `INCOMPLETE` or `MALFORMED`; for the last two `next` is the tag of the unreadable field.
    """

    number: NDArray[np.uint32]
    wire: NDArray[np.uint8]
    begin: Int64s
    end: Int64s
    next: int
    status: int


@dataclass(frozen=True, slots=True)
class StatFields:
    """Chosen stats of many messages: row = wanted stat id, column = message.

    Attributes:
        kind: `KIND_ABSENT`, `KIND_EMPTY`, or the number of XStat's value field: 2 double, 3 uint64, 4 int64, 5 str,
            6 bytes, 7 ref, 8 compressed_str.
        value: the 64 bits of a number; for 5, 6 and 8 the offset of the payload in the bytes.
        length: bytes of the payload for 5, 6 and 8, else 0.
    """

    kind: NDArray[np.uint8]
    value: Int64s
    length: Int64s


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Room for the columns of a line's events, written by `scan_events`; n = capacity, k = wanted stats.

    Attributes:
        metadata_id: int32[n] or int64[n].
        offset_ps: int64[n], start in picoseconds relative to the line's timestamp; or the number of occurrences, as
            `flags` has it.
        duration_ps: int64[n], length in picoseconds.
        flags: uint8[n], sums of `HAS_OFFSET`, `HAS_OCCURRENCES` and `EVENT_MALFORMED`; its length is the capacity.
        begin, length: int64[n] and uint32[n], where each event lies; both empty where the caller does not want that.
        kind, value: uint8[k, n] and int64[k, n], as in `StatFields`; zero before, `value` is written only where a stat
            has one.
        stat_length: uint32[k, n]; zero before, written only for text and bytes.
    """

    metadata_id: NDArray[np.int32] | Int64s
    offset_ps: Int64s
    duration_ps: Int64s
    flags: NDArray[np.uint8]
    begin: Int64s
    length: NDArray[np.uint32]
    kind: NDArray[np.uint8]
    value: Int64s
    stat_length: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Scan:
    """The result of a scan.

    Attributes:
        count: events written.
        next: offset of the field where the scan ended; past the bytes when a payload that is no event is.
        status: `OK`, `INCOMPLETE` (also for an event that reaches past the bytes), `MALFORMED`, `FULL` or `WIDE_ID`.
        seen: flags of the events written, or-ed, with `HAS_TEXT`.
    """

    count: int
    next: int
    status: int
    seen: int


@dataclass(frozen=True, slots=True)
class Nesting:
    """How events of one line contain each other.

    Attributes:
        parent: index of the innermost event that contains each event, -1 at the top level.
        depth: number of events around each event.
        self_ps: duration minus the durations of the direct children, in the unit of the input.
    """

    parent: Int64s
    depth: NDArray[np.int32]
    self_ps: Int64s


class KeyedSpans(NamedTuple):
    """Events with keys.

    Attributes:
        start, end: int64[n], any one unit.
        key: int32[n].
    """

    start: Int64s
    end: Int64s
    key: NDArray[np.int32]

    def take(self, rows: NDArray[np.intp]) -> KeyedSpans:
        return KeyedSpans(self.start.take(rows), self.end.take(rows), self.key.take(rows))


class LanedEvents(NamedTuple):
    """Events in lanes that know their order.

    Attributes:
        start, end, key: int64[n], int64[n], int32[n]; lane by lane, in any one unit.
        lane: int32[n]; the lanes of the first event, the second, and so on in order of time, the outer first. Empty
            where all are in one lane.
        bounds: int64[lanes + 1], where each lane begins.
    """

    start: Int64s
    end: Int64s
    key: NDArray[np.int32]
    lane: NDArray[np.int32]
    bounds: Int64s


class Runs(NamedTuple):
    """Runs of events that merge under one label; nothing may merge across the begin of one that is `apart`."""

    start: Int64s
    end: Int64s
    label: NDArray[np.int32]
    apart: Bools


# --- checks of the arguments ---


def as_bytes(buf: Buffer) -> NDArray[np.uint8]:
    """The buffer as a contiguous array of bytes, without a copy.

    Raises:
        ValueError: not contiguous, or not single bytes.
    """
    if isinstance(buf, np.ndarray):
        if buf.dtype != np.uint8 or buf.ndim != 1 or not buf.flags.c_contiguous:
            raise ValueError("the buffer must be a contiguous array of bytes")
        return buf
    view = memoryview(buf)
    if view.itemsize != 1 or view.ndim != 1 or not view.c_contiguous:
        raise ValueError("the buffer must be contiguous bytes")
    return np.frombuffer(view, np.uint8) if view.nbytes else np.zeros(0, np.uint8)


def as_int64(values: NDArray[np.integer], name: str) -> Int64s:
    """One dimension of aligned, contiguous int64, copied only if needed.

    Raises:
        ValueError: not integers, not of one dimension, or too large for int64.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension")
    if array.dtype != np.int64:
        if array.size and (array.dtype.kind not in "iu" or array.dtype == np.uint64):
            raise ValueError(f"{name} must be int64")
        array = array.astype(np.int64)
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.require(array, requirements=["C", "A"])


def check_start(size: int, start: int) -> None:
    """Raises ValueError unless `start` lies in the bytes or at their end."""
    if not 0 <= start <= size:
        raise ValueError(f"start {start} lies outside the {size} bytes")


def check_spans(size: int, begin: Int64s, end: Int64s) -> None:
    """Raises ValueError unless `0 <= begin <= end <= size` holds for every span."""
    if len(begin) != len(end):
        raise ValueError(f"{len(begin)} begins and {len(end)} ends")
    if len(begin) and (int(begin.min()) < 0 or int(end.max()) > size or bool((begin > end).any())):
        raise ValueError("a span lies outside the bytes, or ends before it begins")


def as_keys(keys: NDArray[np.integer]) -> NDArray[np.integer]:
    """Aligned, contiguous int32 or int64, copied only if needed; see `as_int64`."""
    if isinstance(keys, np.ndarray) and keys.dtype == np.int32 and keys.ndim == 1:
        return np.require(keys, requirements=["C", "A"])
    return as_int64(keys, "keys")


def check_key_count(keys: NDArray[np.integer], values: Int64s, k: int) -> None:
    """Raises ValueError unless every key has a value and the number of groups is possible."""
    if k < 0:
        raise ValueError("the number of keys is negative")
    if len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys and {len(values)} values")


def check_keys(keys: NDArray[np.integer], k: int) -> None:
    """Raises ValueError for a key outside of [0, k)."""
    if len(keys) and not 0 <= int(keys.min()) <= int(keys.max()) < k:
        raise ValueError(f"a key lies outside [0, {k})")


def check_order(start: Int64s, end: Int64s) -> None:
    """Raises ValueError unless events are sorted as nesting needs it."""
    if len(start) != len(end) or nesting_order(start, end) is not None:
        raise ValueError("events must be sorted by start, then by descending end")


def check_columns(columns: EventColumns, stats: int, place: int) -> None:
    """Raises ValueError unless the columns have one capacity, a row for each stat, and `place` in them."""
    n = len(columns.flags)
    lengths = {len(columns.metadata_id), len(columns.offset_ps), len(columns.duration_ps)}
    places = {len(columns.begin), len(columns.length)}
    shapes = {columns.kind.shape, columns.value.shape, columns.stat_length.shape}
    if lengths != {n} or places not in ({0}, {n}) or shapes != {(stats, n)}:
        raise ValueError("columns of different lengths")
    if not 0 <= place <= n:
        raise ValueError(f"place {place} lies outside the {n} of the columns")


def check_wanted(wanted: Int64s) -> None:
    """Raises ValueError when a stat id comes twice."""
    if len(set(wanted.tolist())) != len(wanted):  # numpy.unique would import the masked arrays, 6 ms
        raise ValueError("wanted ids must be distinct")
