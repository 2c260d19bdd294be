"""The events of one line as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.formats.xspace.core.types import EVENT_MALFORMED, HAS_OCCURRENCES, HAS_TEXT, EventColumns
from tpuprof.parsers.formats.xspace.metadata import KIND_DOUBLE, KIND_INT64, KIND_UINT64

EVENTS_FIELD = 4

FIRST_ROOM = 1 << 12
"""How many events a line has room for at first."""


@dataclass(frozen=True, slots=True)
class StatColumn:
    """One stat of every event of a line, in the order of the events.

    Attributes:
        kind: uint8[n]; the value's field number in XStat (2 double, 3 uint64, 4 int64, 5 str, 6 bytes, 7 ref,
            8 compressed str), 1 for a stat without a value, 0 where the event has no such stat.
        value: int64[n]; the raw 64 bits of a number or reference; for text and bytes the offset in the file.
        length: uint32[n]; bytes of text and bytes values, else 0. Empty when no event has such a value.
    """

    kind: NDArray[np.uint8]
    value: Int64s
    length: NDArray[np.uint32]

    @property
    def is_number(self) -> Bools:
        """bool[n]: whether the stat is there and holds a number (double, uint64 or int64)."""
        return (self.kind >= KIND_DOUBLE) & (self.kind <= KIND_INT64)

    def take(self, rows: Int64s) -> StatColumn:
        length = self.length[rows] if len(self.length) else self.length
        return StatColumn(self.kind[rows], self.value[rows], length)

    @property
    def uniform_kind(self) -> int | None:
        """The kind of every event's stat where all are the same, as for most stats."""
        if not len(self.kind):
            return None
        lowest = int(self.kind.min())
        return lowest if lowest == int(self.kind.max()) else None

    def integers(self, missing: int = 0) -> Int64s:
        """int64[n]: integer values, doubles cut to integers, `missing` elsewhere. A uint64 past 2^63 wraps.

        May be the column itself, so callers must not write to it.
        """
        if self.uniform_kind in (KIND_UINT64, KIND_INT64):
            return self.value
        out = np.where((self.kind == KIND_UINT64) | (self.kind == KIND_INT64), self.value, np.int64(missing))
        doubles = self.kind == KIND_DOUBLE
        if doubles.any():
            as_float = np.nan_to_num(self.value[doubles].view(np.float64), nan=missing, posinf=0, neginf=0)
            out[doubles] = np.clip(as_float, -(2.0**63), 2.0**63 - 1024).astype(np.int64)
        return out

    def floats(self) -> Floats:
        """float64[n]: numbers of any kind, NaN elsewhere."""
        out = np.full(len(self.kind), np.nan)
        for kind, dtype in ((KIND_DOUBLE, np.float64), (KIND_UINT64, np.uint64), (KIND_INT64, np.int64)):
            chosen = self.kind == kind
            if chosen.any():
                out[chosen] = self.value[chosen].view(dtype)
        return out


@dataclass(frozen=True, slots=True)
class Events(Sized):
    """Columns over the n events of a line, in file order.

    Attributes:
        metadata_id: int32[n], or int64[n] where an id needs it.
        offset_ps: int64[n], from the line's timestamp; 0 for aggregated events, which have no place in time.
        duration_ps: int64[n], as recorded; may be 0, negative only in a damaged profile.
        begin, length: int64[n], uint32[n]: where each event lies in the file, for stats on demand; empty when the
            events were decoded without their places.
        num_occurrences: int64[n] for lines that hold aggregated events, else None.
        stats: columns of the requested stats, by name, without names that the plane does not know.
        malformed: events with damaged bytes; each keeps what came before the damage.
    """

    sized_by = "offset_ps"
    metadata_id: NDArray[np.int32] | Int64s
    offset_ps: Int64s
    duration_ps: Int64s
    begin: Int64s
    length: NDArray[np.uint32]
    num_occurrences: Int64s | None
    stats: Mapping[str, StatColumn]
    malformed: int


@dataclass(frozen=True, slots=True)
class LineHeader:
    """The scalar fields of an XLine, as in the file; text fields empty and numbers 0 where absent."""

    id: int = 0
    display_id: int = 0
    name: str = ""
    display_name: str = ""
    timestamp_ns: int = 0
    duration_ps: int = 0


class ColumnRoom:
    """Room for the columns of one line, which grows as events come.

    The first stretch of a line shows how dense its events are; the room for the rest is then made at once. Parts of it
    that nobody writes take no memory.

    Attributes:
        wide: whether metadata ids take 64 bits.
    """

    def __init__(self, stats: int, places: bool, capacity: int = FIRST_ROOM) -> None:
        self._stats = stats
        self._places = places
        self.wide = False
        self.columns = self._allocate(capacity)
        self.count = 0
        self.seen = 0

    def _allocate(self, capacity: int) -> EventColumns:
        shape = (self._stats, capacity)
        placed = capacity if self._places else 0
        return EventColumns(
            metadata_id=np.empty(capacity, np.int64) if self.wide else np.empty(capacity, np.int32),
            offset_ps=np.empty(capacity, np.int64),
            duration_ps=np.empty(capacity, np.int64),
            flags=np.empty(capacity, np.uint8),
            begin=np.empty(placed, np.int64),
            length=np.empty(placed, np.uint32),
            kind=np.zeros(shape, np.uint8),
            value=np.zeros(shape, np.int64),
            stat_length=np.zeros(shape, np.uint32),
        )

    def clear(self) -> None:
        """Holds no events again, for another line; what was made of the last ones is void."""
        written = slice(self.count + 1)  # the last one perhaps in part
        if self.wide:
            self.wide = False
            self.columns = self._allocate(len(self.columns.flags))
        self.columns.kind[:, written] = 0
        if self.seen & HAS_TEXT:
            self.columns.stat_length[:, written] = 0
        self.count = self.seen = 0

    def widen(self) -> None:
        """Makes room for metadata ids of 64 bits."""
        self.wide = True
        self._move(len(self.columns.flags))

    def grow(self, done: float) -> None:
        """Makes room for the whole line, of which this share (0-1) is decoded; at least by a quarter."""
        expected = int(self.count / max(done, 1e-6) * 1.02) + 64
        self._move(max(expected, len(self.columns.flags) * 5 // 4))

    def _move(self, capacity: int) -> None:
        old, n = self.columns, self.count
        self.columns = self._allocate(capacity)
        for name in ("metadata_id", "offset_ps", "duration_ps", "flags", "begin", "length"):
            getattr(self.columns, name)[:n] = getattr(old, name)[:n]
        for name in ("kind", "value", "stat_length"):
            getattr(self.columns, name)[:, :n] = getattr(old, name)[:, :n]

    def events(self, stat_names: Sequence[str]) -> Events:
        """The events so far; `stat_names` are the names of the stat rows, in order."""
        columns, n = self.columns, self.count
        flags = columns.flags[:n]
        value = columns.offset_ps[:n]
        occurrences = None
        if self.seen & HAS_OCCURRENCES:
            aggregated = (flags & HAS_OCCURRENCES) != 0
            occurrences, value = np.where(aggregated, value, 0), np.where(aggregated, 0, value)
        lengths = columns.stat_length if self.seen & HAS_TEXT else np.zeros((self._stats, 0), np.uint32)
        return Events(
            metadata_id=columns.metadata_id[:n],
            offset_ps=value,
            duration_ps=columns.duration_ps[:n],
            begin=columns.begin[:n],
            length=columns.length[:n],
            num_occurrences=occurrences,
            stats={
                name: StatColumn(columns.kind[row, :n], columns.value[row, :n], lengths[row, :n])
                for row, name in enumerate(stat_names)
            },
            malformed=int(((flags & EVENT_MALFORMED) != 0).sum()) if self.seen & EVENT_MALFORMED else 0,
        )
