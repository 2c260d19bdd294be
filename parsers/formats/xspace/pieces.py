"""A line's events in pieces: a long line's on several threads, and those that start in some intervals alone.

Threads decode pieces at once, which are taken in the line's order.

Nothing marks where an event begins, so a piece begins where a chain of fields looks like events, and a thread decodes
it at once. Its turn comes when the piece before it has had its own: where that one ended elsewhere, the piece is
decoded again from there. So the events are always those of the line.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import cached_property
from threading import Condition
from typing import Protocol

import numpy as np

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.intervals import Bools, Int64s
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.crew import ALONE, Crew
from tpuprof.parsers.formats.xspace.core.types import EVERY_EVENT
from tpuprof.parsers.formats.xspace.events import ColumnRoom, Events, LineHeader
from tpuprof.parsers.formats.xspace.source import ByteSource
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane

_LOOK = 1 << 16
"""How many bytes it looks at for the border of an event."""

_CHAIN = 32
"""So many fields in a row that look like events: more than an event has stats, which look the same."""

_EVENT_TAG = 0x22

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
        """Bytes of its events."""
        return sum(end - begin for begin, end in self.pieces)

    @cached_property
    def _head(self) -> LineHeader:
        return self._line._head

    @cached_property
    def header(self) -> LineHeader:
        """See `Line.header`."""
        return self._line.header

    def tail(self, at: int) -> LineHeader:
        """See `Line.tail`: the events end elsewhere, so it walks over the whole line."""
        return self._line.header

    def scan(
        self,
        wanted: Int64s,
        room: ColumnRoom,
        on_chunk: ChunkDone | None,
        begin: int,
        end: int,
        chosen: Bools = EVERY_EVENT,
    ) -> Generator[int, None, tuple[int, bool]]:
        """See `Line.scan`: piece by piece."""
        done = begin, True
        for first, last in self.pieces:
            if done[1] and first < end and last > begin:
                done = yield from super().scan(wanted, room, on_chunk, max(first, begin), min(last, end), chosen)
        return done


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


class Hand(Protocol):
    """What one thread does with the pieces that it decodes, one after the other.

    Attributes:
        room: where the events of a piece are put.
    """

    room: ColumnRoom

    def look(self) -> None:
        """Looks at the events of a piece, which may yet turn out to begin elsewhere."""

    def turn(self, done: float) -> bool:
        """Takes the piece in its turn, while no other thread takes one; returns False to end the decoding.

        Args:
            done: the share of the line's bytes (0-1) up to the end of the piece.
        """

    def work(self) -> bool:
        """Does the rest, while other pieces have their turn; returns False to end the decoding."""


def is_worth_it(line: Line, crew: Crew) -> bool:
    """Whether a line is long enough to decode it in pieces, and a thread may be free for them."""
    is_whole = not isinstance(line, PartOfLine) or len(line.pieces) <= 1
    return is_whole and line.size >= 2 * crew.piece_bytes and crew.has_help


def decode_in_pieces(
    line: Line,
    stat_ids: Int64s,
    crew: Crew,
    make_hand: Callable[[], Hand],
    on_chunk: ChunkDone | None = None,
) -> bool:
    """Decodes a line's events in pieces on the threads of a crew.

    Args:
        stat_ids: ids of the stats that the hands' rooms have rows for.
        make_hand: makes what a thread works with; called on each thread once.
        on_chunk: receives the progress, on any of the threads.

    Returns:
        False where a hand ended the decoding, or where the line can't be divided; then what the hands took is void.

    Raises:
        Exception: what the source, a hand or `on_chunk` raised.
    """
    work = _Pieces(line, stat_ids, on_chunk, crew.piece_bytes)
    crew.share(lambda: work.take_part(make_hand))
    return work.is_whole


class _Pieces:
    """The pieces of a line and whose turn it is.

    Attributes:
        is_whole: whether all pieces were taken.
    """

    def __init__(self, line: Line, stat_ids: Int64s, on_chunk: ChunkDone | None, size: int) -> None:
        self._line, self._stat_ids, self._on_chunk, self._size = line, stat_ids, on_chunk, size
        self._turn = Condition()
        self._begun = self._taken = 0  # pieces that a thread decodes or has decoded, and those that had their turn
        self._next = line.begin  # where the next piece begins that no thread has yet
        self._at = line.begin  # where the events that had their turn end
        self._is_over = self._is_void = False

    @property
    def is_whole(self) -> bool:
        return self._is_over and not self._is_void

    def take_part(self, make_hand: Callable[[], Hand]) -> None:
        """Decodes pieces as long as there are any that no other thread has."""
        try:
            piece = self._new_piece()
            hand = make_hand() if piece is not None else None
            while piece is not None and hand is not None:
                self._take(hand, *piece)
                piece = self._new_piece()
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        with self._turn:
            self._is_void = True
            self._turn.notify_all()

    def _new_piece(self) -> tuple[int, int, int] | None:
        """The number, the begin and the end of a piece that no thread has; None when there is none."""
        with self._turn:
            begin, end = self._next, self._line.end
            if begin >= end or self._is_over or self._is_void:
                return None
            stop, border = begin + self._size, None
            while border is None and stop + self._size < end:
                border = event_border(self._line.plane.source, stop, end)
                stop += self._size
            self._next = end if border is None else border
            self._begun += 1
            return self._begun - 1, begin, self._next

    def _take(self, hand: Hand, number: int, begin: int, end: int) -> None:
        room, line = hand.room, self._line
        room.clear()
        at, is_over = _decode(line, self._stat_ids, room, begin, end)
        hand.look()
        with self._turn:
            self._turn.wait_for(lambda: self._taken == number or self._is_over or self._is_void)
            if self._is_over or self._is_void:
                return
            if self._at != begin:
                room.clear()
                at, is_over = _decode(line, self._stat_ids, room, self._at, end)
                hand.look()
            self._is_void = (at == self._at and not is_over) or not hand.turn((at - line.begin) / line.size)
            if self._on_chunk is not None:
                self._on_chunk(min(at, line.end) - self._at, room.count)
            self._at, self._is_over = at, is_over
            self._taken += 1
            self._turn.notify_all()
        if not self._is_void and not hand.work():
            self._end()


def _decode(line: Line, stat_ids: Int64s, room: ColumnRoom, begin: int, end: int) -> tuple[int, bool]:
    """Decodes a stretch of a line; returns where its events end, and whether those of the line end there."""
    scan = line.scan(stat_ids, room, None, begin, end)
    while True:
        try:
            next(scan)
        except StopIteration as over:
            at, is_sound = over.value
            return at, not is_sound or end >= line.end


def event_border(source: ByteSource, at: int, end: int) -> int | None:
    """Where an event of a line probably begins, at or behind an offset; None where nothing there looks like events."""
    data = source.read(at, min(_LOOK, end - at))
    start = data.find(_EVENT_TAG)
    while start >= 0:
        place, fields = start, 0
        while place + 2 < len(data) and data[place] == _EVENT_TAG:
            if fields == _CHAIN:
                return at + place
            length, second = data[place + 1], data[place + 2]
            if length < 0x80:
                place += 2 + length
            elif second < 0x80:
                place += 3 + (length & 0x7F | second << 7)
            else:
                break
            fields += 1
        start = data.find(_EVENT_TAG, start + 1)
    return None


# --- columns -------------------------------------------------------------------------------------------------------


def line_events(
    line: Line,
    stats: Sequence[str] = (),
    on_chunk: ChunkDone | None = None,
    places: bool = True,
    room: ColumnRoom | None = None,
    crew: Crew = ALONE,
) -> Events:
    """Decodes a line's events as `Line.events` does, on the threads of a crew."""
    ids = line.plane.stat_ids(stats)
    room = room or ColumnRoom(len(ids), places)
    if is_worth_it(line, crew):
        wanted = np.array(list(ids.values()), np.int64)
        if decode_in_pieces(line, wanted, crew, lambda: Appending(room, ColumnRoom(len(ids), places)), on_chunk):
            return room.events(list(ids))
        room.clear()
        on_chunk = None  # it has received the bytes
    return line.events(stats, on_chunk, places, room)


class Appendable(Protocol):
    """What takes the events of pieces, in the order of the line."""

    def append(self, room: ColumnRoom, done: float, /) -> None:
        """Takes the events of one piece; `done` is the share of the line (0-1) that is read with it."""


class Appending:
    """A `Hand` that puts the events of its pieces behind those of the pieces before.

    Args:
        to: what they are put into; room: where one piece's are put.
    """

    def __init__(self, to: Appendable, room: ColumnRoom) -> None:
        self.room, self._to = room, to

    def look(self) -> None:
        """See `Hand`."""

    def turn(self, done: float) -> bool:
        """See `Hand`."""
        self._to.append(self.room, done)
        return True

    def work(self) -> bool:
        """See `Hand`."""
        return True
