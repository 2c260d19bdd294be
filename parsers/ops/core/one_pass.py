"""The pass of the compiled core over the op line of one core: all of it in a row, or in pieces on several threads.

In pieces, a thread decodes one and looks at what it leaves for the next: which of its events are still open, and which
is the last. Piece after piece, in the line's order, this gives what is open when each begins. With that the thread adds
up its piece as the pass in a row does; what its events take from the self time of those that began in earlier pieces is
subtracted when the pieces are put together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.crew import ALONE, Crew
from tpuprof.parsers.formats.xspace import pieces
from tpuprof.parsers.formats.xspace.core.api import op_pass
from tpuprof.parsers.formats.xspace.core.types import HAS_OCCURRENCES
from tpuprof.parsers.formats.xspace.events import ColumnRoom, StatColumn
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane
from tpuprof.parsers.ops.core import ops as core_ops
from tpuprof.parsers.ops.core.traced import Codes, Coding
from tpuprof.parsers.ops.device import OFF_DUTY
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource, is_count

if TYPE_CHECKING:
    from tpuprof.parsers.formats.xspace.core.op_pass import Before, OpPass, PassSums

_MOST_IDS = 1 << 20
"""The most metadata ids that the pass has sums for; a plane with higher ids goes by columns."""

_MOST_SUMS = 1 << 21
"""So many sums by metadata id the threads have together: each has its own."""

_BYTES_AN_EVENT = 32
"""About how many bytes an event takes, for a first guess at how many there are."""

_MOST_ROOM = 1 << 22
"""The most rows that the outputs have room for before anything is written."""

_MOST_OPEN = 1 << 12
"""A line with more events inside one another is not divided: each piece would begin with all of them."""

_MOST_EXACT = 1 << 53
"""Whole numbers up to this one add up the same in any order."""


@dataclass(frozen=True, slots=True)
class _Task:
    """What there is to add up.

    Attributes:
        shift: when the line's clock starts.
        stat_ids: int64[k], ids of the stats to decode.
        rows: which of them are the device offset, the device duration and the all-reduce id; -1 for none.
        others: which are the other stats.
        room: how many rows the outputs have at first.
        spans: whether the unions are wanted.
    """

    plane: Plane
    line: Line
    names: tuple[str, ...]
    shift: int
    stat_ids: Int64s
    rows: tuple[int, int, int]
    others: Mapping[str, int]
    off_duty: Bools
    codes: Codes
    steps: Intervals
    times: Int64s
    room: int
    spans: bool

    def new_pass(self, share: int = 1, time_span: Int64s | None = None) -> OpPass | None:
        """A pass that has taken nothing; None without the compiled core."""
        room = self.room // share
        return op_pass(self.off_duty, self.codes, *self.steps, self.times, room, self.spans, time_span)


def in_one_pass(
    plane: Plane,
    steps: Intervals,
    times: Int64s,
    progress: Progress,
    spans: bool,
    coding: Coding | None = None,
    crew: Crew = ALONE,
) -> tuple[PassSums, core_ops.OpTotals] | None:
    """The pass over a core's op line, and its sums by op; None where the pass can't make them.

    Args:
        spans: whether it is wanted when the core worked.
        progress: receives the progress; the others are those of `sums.core_sums`.
    """
    lines = [line for line in plane.lines if line.name == core_ops.OPS_LINE]
    metadata = plane.event_metadata
    ids = int(metadata.ids[-1]) + 1 if len(metadata) else 0
    if len(lines) != 1 or not 0 < ids <= _MOST_IDS or int(metadata.ids[0]) < 0:
        return None
    line = lines[0]
    names = core_ops.event_stats(plane)
    known = plane.stat_ids(names)
    offset, duration, reduce = (
        list(known).index(name) if name in known else -1 for name in (*core_ops.DEVICE_SPAN, core_ops.ALL_REDUCE_ID)
    )
    task = _Task(
        plane=plane,
        line=line,
        names=names,
        shift=core_ops.line_start(line),
        stat_ids=np.array(list(known.values()), np.int64),
        rows=(offset, duration, reduce),
        others={name: row for row, name in enumerate(known) if row not in (offset, duration, reduce)},
        off_duty=_off_duty(plane, ids),
        codes=np.zeros(0, np.uint8) if coding is None else _codes(plane, ids, coding),
        steps=steps,
        times=times,
        room=min(line.size // _BYTES_AN_EVENT, _MOST_ROOM) if spans or len(steps[0]) else 0,
        spans=spans,
    )
    if ids * crew.threads <= _MOST_SUMS and pieces.is_worth_it(line, crew):
        done = _InPieces(task, crew, progress.again()).sums()
        if done is not None:
            return done
    return _in_a_row(task, progress.again())


class Progress:
    """Passes progress on; it does not report bytes that are decoded a second time."""

    def __init__(self, on_chunk: ChunkDone | None) -> None:
        self._on_chunk = on_chunk
        self._size = self._events = 0

    def again(self) -> ChunkDone:
        """What receives the chunks of a line from its begin on; it reports them as far as nobody did before."""
        size = events = 0

        def chunk(more_size: int, more_events: int) -> None:
            nonlocal size, events
            size, events = size + more_size, events + more_events
            new_size, new_events = max(0, size - self._size), max(0, events - self._events)
            self._size, self._events = self._size + new_size, self._events + new_events
            if self._on_chunk is not None:
                self._on_chunk(new_size, new_events)

        return chunk


def _in_a_row(task: _Task, on_chunk: ChunkDone) -> tuple[PassSums, core_ops.OpTotals] | None:
    sums = task.new_pass()
    if sums is None:
        return None
    figures = _Figures(task, is_watched=False)
    for block in task.line.blocks(task.names, on_chunk):
        is_taken = sums.take(block.columns, block.count, task.shift, task.rows)
        if block.seen & HAS_OCCURRENCES or not is_taken:
            return None
        figures.take(block, sums.device_duration)
    return (sums.sums(), figures.totals(sums)) if sums.end() else None


# --- in pieces -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece that is added up.

    Attributes:
        hand: who did.
        first, last: how many rows each output had before and after.
        inherited_self: see `OpPass.end_piece`; still_open: how many of them are open behind the piece.
        opened: int64[n, 6]: the events of the piece that are open behind it, as there, and `hand`'s number.
    """

    hand: _OpHand
    first: list[int]
    last: list[int]
    inherited_self: Int64s
    still_open: int
    opened: Int64s


class _InPieces:
    """The pass over a line in pieces."""

    def __init__(self, task: _Task, crew: Crew, on_chunk: ChunkDone) -> None:
        self.task, self.crew = task, crew
        self.time_span = np.zeros((len(task.times), 4), np.int64)
        self.before: Before | None = None
        self.hands: list[_OpHand] = []
        self.count = 0
        self.done: dict[int, _Piece] = {}
        self._on_chunk = on_chunk

    def sums(self) -> tuple[PassSums, core_ops.OpTotals] | None:
        """The sums of all pieces; None where only those of the line in a row are sound."""
        task = self.task
        if task.new_pass() is None:
            return None
        if not pieces.decode_in_pieces(task.line, task.stat_ids, self.crew, self._new_hand, self._on_chunk):
            return None
        self.hands = [hand for hand in self.hands if hand.took]
        first = self.hands[0]
        for number, hand in enumerate(self.hands):
            hand.number = number
        extra = self._close_open()
        is_sound = all([hand.sums.end_line(self.before if hand is first else None) for hand in self.hands])
        for hand in self.hands[1:]:
            is_sound = first.sums.absorb(hand.sums) and is_sound
            first.figures.absorb(hand.figures)
        if not is_sound or not first.figures.are_exact:
            return None
        outputs = self._outputs(extra)
        totals = first.figures.totals(first.sums)
        self.done = {}
        return first.sums.sums(outputs), totals

    def _new_hand(self) -> _OpHand:
        hand = _OpHand(self)
        self.hands.append(hand)
        return hand

    def _close_open(self) -> Int64s:
        """Closes the events that are open behind a piece, in their order; returns their rows of `cells`."""
        open_events = np.zeros((0, 6), np.int64)
        extra = []
        for _, piece in sorted(self.done.items()):
            open_events[:, 3] += piece.inherited_self
            extra.append(self._close(open_events[piece.still_open :]))
            number = np.full((len(piece.opened), 1), piece.hand.number)
            opened = np.concatenate([piece.opened, number], axis=1)
            open_events = np.concatenate([open_events[: piece.still_open], opened])
        return np.concatenate([*extra, self._close(open_events)])

    def _close(self, events: Int64s) -> Int64s:
        """Adds the self times of events; returns their rows of `cells`."""
        _, ids, step, own, traced, number = events.T
        own = np.maximum(own, 0)
        np.add.at(self.hands[0].sums.self_ps, ids, own)
        for row in np.flatnonzero(traced >= 0).tolist():
            self.hands[number[row]].sums.set_traced_self(int(traced[row]), int(own[row]))
        cells: Int64s = np.stack([step << 32 | ids, own, np.zeros(len(own), np.int64)], axis=1)
        in_steps: Int64s = cells[step >= 0]
        return in_steps

    def _outputs(self, extra: Int64s) -> list[list[Int64s]]:
        """The outputs' rows in the line's order; those of `cells` in any."""
        rows = {hand.number: hand.sums.hand_over() for hand in self.hands}
        pieces_in_order = [piece for _, piece in sorted(self.done.items())]
        return [
            [*(outputs[0] for outputs in rows.values()), extra],
            *(
                [rows[piece.hand.number][which][piece.first[which] : piece.last[which]] for piece in pieces_in_order]
                for which in range(1, len(rows[0]))
            ),
        ]


class _OpHand:
    """What one thread does with its pieces, see `pieces.Hand`."""

    def __init__(self, whole: _InPieces) -> None:
        task = whole.task
        self.room = ColumnRoom(len(task.stat_ids), places=False, capacity=whole.crew.piece_bytes // _BYTES_AN_EVENT)
        sums = task.new_pass(whole.crew.threads, whole.time_span)
        assert sums is not None, "there was one before"
        self.sums, self.figures = sums, _Figures(task, is_watched=True)
        self.number, self.took = 0, False
        self._whole, self._task, self._border = whole, task, sums.border()
        self._before: Before | None = None
        self._index = 0

    def look(self) -> None:
        """See `pieces.Hand`."""
        self._border.look(self.room.columns, self.room.count, self._task.shift, self._task.rows, self._task.off_duty)

    def turn(self, done: float) -> bool:
        """See `pieces.Hand`."""
        whole, task = self._whole, self._task
        if self.room.seen & HAS_OCCURRENCES or self.room.columns.metadata_id.dtype != np.int32:
            return False
        self._before = whole.before or self._border.before_all
        self._index = whole.count
        whole.before = self._border.behind(self._before, *task.steps, task.times)
        whole.count += 1
        return len(whole.before.open) <= _MOST_OPEN

    def work(self) -> bool:
        """See `pieces.Hand`."""
        assert self._before is not None, "it had its turn"
        sums, task, room = self.sums, self._task, self.room
        first, self.took = sums.counts(), True
        sums.begin_piece(self._before)
        if not sums.take(room.columns, room.count, task.shift, task.rows):
            return False
        self.figures.take(room, sums.device_duration)
        left = sums.end_piece()
        self._whole.done[self._index] = _Piece(self, first, sums.counts(), *left)
        return self.figures.are_exact


# --- figures -------------------------------------------------------------------------------------------------------


def _off_duty(plane: Plane, ids: int) -> Bools:
    """bool[ids]: which metadata ids are ops during which the core waits or moves data for the host."""
    metadata = plane.event_metadata
    stats = MetadataStats(OpSource(metadata, plane.stat_metadata), np.arange(len(metadata)), (core_ops.CATEGORY,))
    out = np.zeros(ids, np.bool_)
    out[metadata.ids] = stats.is_one_of(core_ops.CATEGORY, OFF_DUTY)
    return out


def _codes(plane: Plane, ids: int, coding: Coding) -> Codes:
    """uint8[ids]: what each metadata id counts as."""
    metadata = plane.event_metadata
    stats = MetadataStats(OpSource(metadata, plane.stat_metadata), np.arange(len(metadata)), (core_ops.CATEGORY,))
    categories = [category or None for category in stats.texts(core_ops.CATEGORY)]
    known = {category: coding.of_category(category) for category in set(categories)}
    codes = np.array([-1 if (code := known[category]) is None else code for category in categories], np.int64)
    open_ids = metadata.ids[codes < 0]
    one = np.ones(len(open_ids), np.int64)
    if len(open_ids):
        table = core_ops.op_table(plane, core_ops.OpTotals(open_ids, one, one, one, one, None, {}))
        codes[codes < 0] = coding.of_ops(table)
    out = np.zeros(ids, np.uint8)
    out[metadata.ids] = codes
    return out


class _Figures:
    """Sums of stats of single events that few profiles have, and the compiled core leaves to numpy.

    Attributes:
        are_exact: whether they are whole numbers, which add up the same in any order; where they are watched.
    """

    def __init__(self, task: _Task, is_watched: bool) -> None:
        ids = len(task.off_duty)
        self.are_exact, self._is_watched = True, is_watched
        self._rows, self._ids = task.others, ids
        self._stat_sums: dict[str, core_ops.StatSum] = {}
        self._normalized = np.zeros(ids if core_ops.TIME_SCALE in task.others else 0, np.float64)

    def take(self, room: ColumnRoom, duration: Int64s) -> None:
        """Adds the stats of a block's events.

        Args:
            duration: how long the events took by the device's clock.
        """
        n, columns = room.count, room.columns
        ids = columns.metadata_id[:n]
        nominal: NDArray[np.generic] = duration[:n]
        for name, row in self._rows.items():
            column = StatColumn(columns.kind[row, :n], columns.value[row, :n], np.zeros(0, np.uint32))
            if column.kind.any() and column.is_number.any():
                values = column.floats()
                self._add(name, core_ops.stat_sum(ids, values, self._ids))
                self._see(values)
                if name == core_ops.TIME_SCALE:
                    nominal = core_ops.scaled(duration[:n], values)
                    self._see(nominal)
        if len(self._normalized):
            self._normalized += np.bincount(ids, nominal, minlength=len(self._normalized))

    def absorb(self, other: _Figures) -> None:
        """Adds those of other events."""
        for name, part in other._stat_sums.items():
            self._add(name, part)
        self._normalized += other._normalized
        self.are_exact = self.are_exact and other.are_exact
        sums = [self._normalized, *(figure.total for figure in self._stat_sums.values())]
        self.are_exact = self.are_exact and all(float(part.max(initial=0)) < _MOST_EXACT for part in sums)

    def _add(self, name: str, part: core_ops.StatSum) -> None:
        so_far = self._stat_sums.get(name)
        if so_far is not None:
            part = core_ops.StatSum(so_far.count + part.count, so_far.total + part.total)
        self._stat_sums[name] = part

    def _see(self, values: Floats) -> None:
        if not self._is_watched:
            return
        known = values[is_count(values)]
        self.are_exact = self.are_exact and bool((known == np.rint(known)).all())

    def totals(self, sums: OpPass) -> core_ops.OpTotals:
        """The sums of the metadata ids that have events."""
        ids = np.flatnonzero(sums.occurrences).astype(np.int64)
        return core_ops.OpTotals(
            ids=ids,
            occurrences=sums.occurrences[ids],
            total_ps=sums.total_ps[ids],
            self_ps=sums.self_ps[ids],
            minimum_ps=sums.minimum_ps[ids],
            normalized_ps=self._normalized[ids] if core_ops.TIME_SCALE in self._stat_sums else None,
            stat_sums={
                name: core_ops.StatSum(figure.count[ids], figure.total[ids]) for name, figure in self._stat_sums.items()
            },
        )
