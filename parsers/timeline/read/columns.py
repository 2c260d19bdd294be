"""The columns of one line's events, at their final size: a line is decoded piece by piece, and only these are kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, no_ints
from tpuprof.parsers.formats.xspace.core.types import EVENT_MALFORMED, HAS_OCCURRENCES
from tpuprof.parsers.formats.xspace.events import ColumnRoom
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line
from tpuprof.parsers.ops.core.ops import Keys

_FIRST_ROOM = 1 << 9

_SHORT = 1 << 16
"""Room that nobody wrote takes memory in columns of fewer events than this."""


class LineColumns:
    """The events of a line that have a place in time, in the order of the file.

    Attributes:
        count: how many there are.
        offset_ps, duration_ps: int64[count].
        ids: int32[count], or int64 where an id needs it; metadata ids.
        place: uint32[count], or int64 in a line of more than 4 GB; where each event lies in the line.
        malformed, aggregated: events with damaged bytes, and those without a place in time, which are left out.
        end: where in the file the last event ends; the line's begin without events.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self.count = self.malformed = self.aggregated = 0
        self.end = line.begin
        self.offset_ps, self.duration_ps = no_ints(), no_ints()
        self.ids: Keys = np.zeros(0, np.int32)
        self.place: NDArray[np.uint32] | Int64s = np.zeros(0, np.uint32) if line.size < 1 << 32 else no_ints()

    def append(self, room: ColumnRoom, done: float) -> None:
        """Adds decoded events; with them this share (0-1) of the line is decoded."""
        n, columns = room.count, room.columns
        if not n:
            return
        self.end = int(columns.begin[n - 1]) + int(columns.length[n - 1])
        chosen: NDArray[np.intp] | slice = slice(n)
        if room.seen & HAS_OCCURRENCES:
            chosen = np.flatnonzero((columns.flags[:n] & HAS_OCCURRENCES) == 0)
            self.aggregated += n - len(chosen)
        if room.seen & EVENT_MALFORMED:
            self.malformed += int(((columns.flags[:n] & EVENT_MALFORMED) != 0).sum())
        first, last = self.count, self.count + (n if isinstance(chosen, slice) else len(chosen))
        if last > len(self.ids):
            self._grow(max(_FIRST_ROOM, last, int(last / max(done, 1e-6) * 1.02) + 64))
        if room.wide and self.ids.dtype != np.int64:
            self.ids = self.ids.astype(np.int64)
        self.offset_ps[first:last] = columns.offset_ps[chosen]
        self.duration_ps[first:last] = columns.duration_ps[chosen]
        self.ids[first:last] = columns.metadata_id[chosen]
        self.place[first:last] = columns.begin[chosen] - self._line.begin
        self.count = last

    def _grow(self, capacity: int) -> None:
        """Makes room; what nobody writes takes no memory."""
        for name in ("offset_ps", "duration_ps", "ids", "place"):
            old = getattr(self, name)
            new = np.empty(capacity, old.dtype)
            new[: self.count] = old[: self.count]
            setattr(self, name, new)

    def trim(self) -> None:
        """Cuts the columns to the events that there are; those of a short line keep no room."""
        for name in ("offset_ps", "duration_ps", "ids", "place"):
            column = getattr(self, name)[: self.count]
            setattr(self, name, column.copy() if self.count < _SHORT else column)


def line_columns(line: Line, room: ColumnRoom, on_chunk: ChunkDone | None) -> LineColumns:
    """Decodes a line.

    Args:
        room: for the events of a chunk, with places and without stats; it is empty again afterwards.
    """
    columns = LineColumns(line)
    room.clear()
    for at in line.scan(no_ints(), room, on_chunk):
        columns.append(room, (at - line.begin) / line.size)
        room.clear()
    columns.trim()
    return columns
