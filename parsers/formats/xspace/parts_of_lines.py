"""A part of a line: the events that start in some intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.intervals import Bools, Int64s
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.xspace.core.types import EVERY_EVENT
from tpuprof.parsers.formats.xspace.events import ColumnRoom, LineHeader
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane

_NEVER = np.iinfo(np.int64).max

_MOST_PIECES = 10_000
"""A line whose events are left out here and there is read in so many pieces at most."""


class PartOfLine(Line):
    """A line with fewer events, in its place.

    Attributes:
        pieces: where the bytes of its events begin and end in the file.
    """

    def __init__(self, line: Line, pieces: Sequence[tuple[int, int]]) -> None:
        self.plane, self.lost_bytes = line.plane, line.lost_bytes
        self.begin, self.end = (pieces[0][0], pieces[-1][1]) if pieces else (line.begin, line.begin)
        self.pieces = pieces
        self._line = line

    @property
    def size(self) -> int:
        return sum(end - begin for begin, end in self.pieces)

    @cached_property
    def _head(self) -> LineHeader:
        return self._line._head

    @cached_property
    def header(self) -> LineHeader:
        return self._line.header

    def tail(self, at: int) -> LineHeader:
        """See `Line.tail`: the events end elsewhere, so it walks over the whole line."""
        return self._line.header

    def scan(
        self, wanted: Int64s, room: ColumnRoom, on_chunk: ChunkDone | None, chosen: Bools = EVERY_EVENT
    ) -> Iterator[int]:
        for piece in self.pieces:
            yield from Line(self.plane, *piece).scan(wanted, room, on_chunk, chosen)


def keep_started(plane: Plane, spans: Sequence[tuple[int, int]]) -> None:
    """Leaves out, from now on, the events of a plane that start in none of some intervals of the trace's clock.

    An event that others of its line begin in after the interval is left out too: its own time would hold theirs.

    Args:
        spans: in picoseconds, in order and disjoint; ends are outside.

    Raises:
        ProfileError: `unordered`, where the events of a line are not in the order of their starts, or nearly all of
            them overlap.
    """
    plane.lines = tuple(PartOfLine(line, _pieces_in(line, spans)) for line in plane.lines)


def _pieces_in(line: Line, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where the bytes of the events lie that start in the intervals."""
    events = line.events()
    if events.num_occurrences is not None or not len(events) or not spans:  # sums of events have no place in time
        return []
    starts = line.timestamp_ns * 1000 + events.offset_ps
    if (np.diff(starts) < 0).any():
        sentence = f"The events of line {printable(line.name)} are not in the order of time: a part of it is unknown."
        raise ProfileError("unordered", sentence, "leave out --step, --from and --to")
    kept = np.zeros(len(starts), bool)
    for first, last in np.searchsorted(starts, np.array(spans, np.int64)).tolist():
        after = starts[last] if last < len(starts) else np.int64(_NEVER)
        kept[first:last] = starts[first:last] + events.duration_ps[first:last] <= after
    borders = np.flatnonzero(np.diff(np.concatenate(([False], kept, [False])))).reshape(-1, 2)
    if len(borders) > _MOST_PIECES:
        sentence = f"The events of line {printable(line.name)} overlap too much: a part of it is unknown."
        raise ProfileError("unordered", sentence, "leave out --step, --from and --to")
    ends = np.concatenate(([line.begin], events.begin + events.length))
    return [(int(ends[first]), int(ends[last])) for first, last in borders.tolist()]
