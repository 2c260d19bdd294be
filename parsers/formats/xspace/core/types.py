"""The arguments and results of the wire-decoding cores, the same for both."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals
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
class EventFields:
    """The plain fields of XEvent messages, one entry per event, 0 where a field is absent.

    Attributes:
        metadata_id: ids into the plane's event metadata.
        offset_ps: start in picoseconds relative to the line's timestamp, or the number of occurrences, see `flags`.
        duration_ps: length in picoseconds.
        flags: sum of `HAS_OFFSET`, `HAS_OCCURRENCES` and `EVENT_MALFORMED`.
    """

    metadata_id: Int64s
    offset_ps: Int64s
    duration_ps: Int64s
    flags: NDArray[np.uint8]


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
        offset_ps, duration_ps: int64[n], as in `EventFields`.
        flags: uint8[n]; its length is the capacity.
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
        """Some of them, in the order given."""
        return KeyedSpans(self.start[rows], self.end[rows], self.key[rows])


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


@dataclass(frozen=True, slots=True)
class StepCells:
    """Sums by step and op; a step and op may have several entries, which add up.

    Attributes:
        step, row: int32[n]; which step, and which op.
        self_ps: int64[n], the self time of the op's events that start in the step; count: int32[n], how many they are.
    """

    step: NDArray[np.int32]
    row: NDArray[np.int32]
    self_ps: Int64s
    count: NDArray[np.int32]


class CellSums(NamedTuple):
    """What cells add up to by step.

    Attributes:
        by_kind: int64[steps, kinds], self time by the kind of each op; it wraps around where int64 ends.
        weighted: float64[steps], self time multiplied by each op's weight, added up in the order of the cells.
        events: int64[steps].
        by_op: float64[steps, ops], the events of each op; None where nobody asked for them.
    """

    by_kind: Int64s
    weighted: Floats
    events: Int64s
    by_op: Floats | None


class Core(Protocol):
    """The functions of a core; see `tpuprof.parsers.formats.xspace.core.api` for what they do."""

    def split_fields(self, buf: Buffer, start: int = 0) -> Fields:
        """The fields of a message."""

    def decode_events(self, buf: Buffer, begin: Int64s, end: Int64s) -> EventFields:
        """The plain fields of events."""

    def stat_columns(self, buf: Buffer, begin: Int64s, end: Int64s, stats_field: int, wanted: Int64s) -> StatFields:
        """Chosen stats of messages."""

    def scan_events(
        self, buf: Buffer, base: int, start: int, wanted: Int64s, columns: EventColumns, place: int, chosen: Bools
    ) -> Scan:
        """The events of a stretch of a line, all or those of some ids, into columns."""

    def nest(self, start: Int64s, end: Int64s) -> Nesting:
        """How events contain each other."""

    def lanes(self, start: Int64s, end: Int64s) -> NDArray[np.int32]:
        """Rows in which events do not overlap."""

    def by_lane(self, lane: NDArray[np.int32], bounds: Int64s, *columns: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Columns lane by lane."""

    def busy(self, start: Int64s, end: Int64s, bounds: Int64s) -> int:
        """The time that some lanes cover."""

    def in_order(self, ops: LanedEvents) -> LanedEvents:
        """The same events, perhaps in one lane."""

    def runs(self, ops: LanedEvents, label: NDArray[np.int32], groups: Intervals, gap: int, nests: bool) -> Runs:
        """Events in a row that have one label."""

    def self_sums(self, ops: LanedEvents, keys: int) -> Int64s:
        """Self times by key."""

    def duration_sums(self, spans: KeyedSpans, classes: NDArray[np.uint8], count: int, block: int) -> Int64s:
        """Durations by block and class."""

    def work_sums(self, key: NDArray[np.int32], work: Floats, block: int) -> Floats:
        """Work by block."""

    def cell_sums(
        self, cells: StepCells, kind: Int64s, kinds: int, weight: Floats, steps: int, by_op: bool
    ) -> CellSums:
        """Sums by step of what is known by step and op."""

    def op_pass(
        self,
        off_duty: Bools,
        code: NDArray[np.uint8],
        step_start: Int64s,
        step_end: Int64s,
        times: Int64s,
        room: int,
        spans: bool,
        time_span: Int64s | None,
    ) -> object:  # an `OpPass`, which imports these types, or None
        """A pass over the ops of a line."""

    def sum_by_key(self, keys: NDArray[np.integer], values: Int64s, k: int) -> Int64s:
        """Sums of groups."""

    def subtract(self, start: Int64s, end: Int64s, less_start: Int64s, less_end: Int64s) -> Intervals:
        """Intervals without others."""

    def until(self, times: Int64s, intervals: Int64s) -> Int64s:
        """Time of weighted intervals."""

    def trim(self) -> None:
        """Gives free memory back."""

    def min_by_key(self, keys: NDArray[np.integer], values: Int64s, k: int) -> Int64s:
        """Minima of groups."""

    def hash_packets(self, data: Buffer, state: NDArray[np.uint64]) -> None:
        """The inner step of a checksum."""


# --- checks of the arguments, the same for both cores ---


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


def as_int32(values: NDArray[np.integer], name: str) -> NDArray[np.int32]:
    """One dimension of aligned, contiguous int32, copied only if needed.

    Raises:
        ValueError: not integers, not of one dimension, or outside of int32.
    """
    if values.dtype == np.int32 and values.ndim == 1:
        return np.ascontiguousarray(values)
    wide = as_int64(values, name)
    if wide.size and (wide.min() < -(1 << 31) or wide.max() >= 1 << 31):
        raise ValueError(f"{name} lies outside of int32")
    return wide.astype(np.int32)


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
