"""The pass of the compiled core over the op line of one core.

Where it can't take the events as they come (several op lines, events out of order, absurd times or ids), these are
decoded and sorted first, and added up by numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals, nesting_order, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import core_name
from tpuprof.parsers.formats.xspace.core.op_pass import OpPass
from tpuprof.parsers.formats.xspace.core.pass_sums import PassSums
from tpuprof.parsers.formats.xspace.core.types import HAS_OCCURRENCES, EventColumns
from tpuprof.parsers.formats.xspace.events import StatColumn
from tpuprof.parsers.formats.xspace.metadata import KIND_INT64
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane
from tpuprof.parsers.ops.core import ops as core_ops
from tpuprof.parsers.ops.core.plain_pass import plain_pass
from tpuprof.parsers.ops.core.traced import OTHER, OpRoles, Roles
from tpuprof.parsers.ops.device import OFF_DUTY
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource


@dataclass(frozen=True, slots=True)
class OrderedEvents:
    """The op events of a core, by the device's clock: those that start first come first, of these the longer ones.

    Attributes:
        ids: int64[k], the metadata ids that have events, ascending.
        columns: the events. The metadata id of each is its row in `ids`, its offset its start on the trace's clock.
        stats: the names of the rows of stats. The first two hold start and duration by the device's clock, as integers.
    """

    ids: Int64s
    columns: EventColumns
    stats: tuple[str, ...]


def ordered_events(plane: Plane, on_chunk: ChunkDone | None) -> OrderedEvents:
    """Decodes the events of all op lines of a core, most of which have one, and sorts them."""
    names = core_ops.event_stats(plane)
    stats = tuple(name for name in plane.stat_ids(names) if name not in core_ops.DEVICE_SPAN)
    lines = [line for line in plane.lines if line.name == core_ops.OPS_LINE]
    parts = [_columns(line, names, stats, on_chunk) for line in lines]
    none = no_ints()
    metadata_id = np.concatenate([none, *(part.metadata_id for part in parts)])
    offset, own = (
        np.concatenate([none, *(getattr(part, name) for part in parts)]) for name in ("offset_ps", "duration_ps")
    )
    kind = np.concatenate([np.zeros((2 + len(stats), 0), np.uint8), *(part.kind for part in parts)], axis=1)
    value = np.concatenate([np.zeros((2 + len(stats), 0), np.int64), *(part.value for part in parts)], axis=1)
    value[1] = _together(value[1])
    own = _together(own)
    order = nesting_order(value[0], value[0] + value[1])
    if order is not None:
        metadata_id, offset, own = metadata_id[order], offset[order], own[order]
        kind, value = kind.take(order, axis=1), value.take(order, axis=1)
    ids, row = np.unique(metadata_id, return_inverse=True)
    return OrderedEvents(ids, _events(row.astype(np.int32), offset, own, kind, value), (*core_ops.DEVICE_SPAN, *stats))


def _columns(line: Line, names: Sequence[str], stats: Sequence[str], on_chunk: ChunkDone | None) -> EventColumns:
    events = line.events(names, on_chunk, places=False)
    own_start, own_end = core_ops.event_spans(line, events)
    start, end = core_ops.device_spans(events, own_start, own_end)
    integer = np.full(len(start), KIND_INT64, np.uint8)
    others = [events.stats[name] for name in stats]
    kind = np.stack([integer, integer, *(column.kind for column in others)])
    value = np.stack([start, end - start, *(column.value for column in others)])
    return _events(events.metadata_id, own_start, own_end - own_start, kind, value)


def _together(durations: Int64s) -> Int64s:
    """Cuts durations of several lines so that they add up within reason too; those of one line do already."""
    total = float(durations.sum(dtype=np.float64))
    return durations if 2 * total <= core_ops.MOST_PS else np.minimum(durations, core_ops.MOST_PS // len(durations))


def _events(
    metadata_id: core_ops.Keys, offset_ps: Int64s, duration_ps: Int64s, kind: NDArray[np.uint8], value: Int64s
) -> EventColumns:
    flags, lengths = np.zeros(len(metadata_id), np.uint8), np.zeros((len(kind), 0), np.uint32)
    return EventColumns(metadata_id, offset_ps, duration_ps, flags, no_ints(), lengths[0], kind, value, lengths)


_MOST_IDS = 1 << 20
"""The most metadata ids that the pass has sums for; those of a plane with higher ids are numbered first."""

_BYTES_AN_EVENT = 32
"""About how many bytes an event takes, for a first guess at how many there are."""

_MOST_ROOM = 1 << 22
"""The most rows that the outputs have room for before anything is written."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of a core's ops.

    Attributes:
        steps: where the core's steps begin and end on the trace's clock, in order, not overlapping.
        times: int64[n], ascending; times on the trace's clock whose device times are wanted.
        spans: whether it is wanted when the core worked.
        roles: what ops count as, where the events of some are wanted one by one.
    """

    steps: Intervals
    times: Int64s
    spans: bool
    roles: OpRoles | None = None


@dataclass(frozen=True, slots=True)
class _Task:
    """What there is to add up.

    Attributes:
        ids: int64[ids], the metadata ids that the pass counts by.
        rows: which stats of the events are the device offset, the device duration and the all-reduce id; -1 for none.
        others: which are the other stats.
        off_duty: bool[ids], which of them are ops during which the core waits or moves data for the host.
        roles: uint8[ids], what each counts as; empty where no single events are wanted.
        room: how many rows the outputs have at first.
    """

    ids: Int64s
    rows: tuple[int, int, int]
    others: Mapping[str, int]
    off_duty: Bools
    roles: Roles
    room: int

    @classmethod
    def of(cls, plane: Plane, wanted: Wanted, ids: Int64s, stats: Sequence[str], size: int = 0) -> _Task:
        """The task for a core whose events have these metadata ids and stats, and take `size` bytes."""
        offset, duration, reduce = (
            stats.index(name) if name in stats else -1 for name in (*core_ops.DEVICE_SPAN, core_ops.ALL_REDUCE_ID)
        )
        metadata = plane.event_metadata
        categories = MetadataStats(OpSource(metadata, plane.stat_metadata), metadata.rows(ids), (core_ops.CATEGORY,))
        return cls(
            ids=ids,
            rows=(offset, duration, reduce),
            others={name: row for row, name in enumerate(stats) if row not in (offset, duration, reduce)},
            off_duty=categories.is_one_of(core_ops.CATEGORY, OFF_DUTY),
            roles=np.zeros(0, np.uint8) if wanted.roles is None else _roles(plane, ids, categories, wanted.roles),
            room=min(size // _BYTES_AN_EVENT, _MOST_ROOM) if wanted.spans or len(wanted.steps[0]) else 0,
        )


def in_one_pass(plane: Plane, wanted: Wanted, on_chunk: ChunkDone | None) -> tuple[PassSums, core_ops.OpTotals]:
    """The pass over a core's ops, and its sums by op."""
    progress = _Progress(on_chunk)
    lines = [line for line in plane.lines if line.name == core_ops.OPS_LINE]
    made = None
    if len(lines) == 1 and core_name() == "c":
        made = _as_it_comes(plane, lines[0], wanted, progress.again())
    return made or _sorted(plane, wanted, progress.again())


def _as_it_comes(
    plane: Plane, line: Line, wanted: Wanted, on_chunk: ChunkDone
) -> tuple[PassSums, core_ops.OpTotals] | None:
    """The pass over the one op line of a core; None where the pass can't take its events so."""
    metadata = plane.event_metadata
    ids = int(metadata.ids[-1]) + 1 if len(metadata) else 0
    if not 0 < ids <= _MOST_IDS or int(metadata.ids[0]) < 0:
        return None
    names = core_ops.event_stats(plane)
    task = _Task.of(plane, wanted, np.arange(ids), list(plane.stat_ids(names)), line.size)
    figures = _Figures(task)
    sums = OpPass(task.off_duty, task.roles, *wanted.steps, wanted.times, task.room, wanted.spans)
    for block in line.blocks(names, on_chunk):
        is_taken = sums.take(block.columns, block.count, core_ops.line_start(line), task.rows)
        if block.seen & HAS_OCCURRENCES or not is_taken:
            return None
        figures.take(block.columns, block.count, sums.device_duration)
    if not sums.end():
        return None
    made = sums.sums()
    return made, figures.totals(made)


def _sorted(plane: Plane, wanted: Wanted, on_chunk: ChunkDone) -> tuple[PassSums, core_ops.OpTotals]:
    """The pass over all op events of a core, whatever they are like."""
    events = ordered_events(plane, on_chunk)
    task, columns = _Task.of(plane, wanted, events.ids, events.stats), events.columns
    figures = _Figures(task)
    figures.take(columns, len(columns.flags), columns.value[task.rows[1]])
    made = plain_pass(columns, task.rows, task.off_duty, task.roles, wanted.steps, wanted.times)
    return made, figures.totals(made)


class _Progress:
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


# --- figures -------------------------------------------------------------------------------------------------------


def _roles(plane: Plane, ids: Int64s, stats: MetadataStats, known: OpRoles) -> Roles:
    """uint8[ids]: what each metadata id counts as; `stats` has their categories. Empty where all are `OTHER`."""
    categories = [category or None for category in stats.texts(core_ops.CATEGORY)]
    of_category = {category: known.of_category(category) for category in set(categories)}
    roles = np.array([-1 if (role := of_category[category]) is None else role for category in categories], np.int64)
    is_open = roles < 0
    if is_open.any():
        one = np.ones(int(is_open.sum()), np.int64)
        table = core_ops.op_table(plane, core_ops.OpTotals(ids[is_open], one, one, one, one, None, {}))
        roles[is_open] = known.of_ops(table)
    return roles.astype(np.uint8) if (roles != OTHER).any() else np.zeros(0, np.uint8)


class _Figures:
    """Sums of stats of single events that few profiles have, and the compiled core leaves to numpy."""

    def __init__(self, task: _Task) -> None:
        self._rows, self._ids = task.others, task.ids
        self._stat_sums: dict[str, core_ops.StatSum] = {}
        self._normalized = np.zeros(len(task.ids) if core_ops.TIME_SCALE in task.others else 0, np.float64)

    def take(self, columns: EventColumns, n: int, duration: Int64s) -> None:
        """Adds the stats of the first n events of a block.

        Args:
            duration: how long the events took by the device's clock.
        """
        ids = columns.metadata_id[:n]
        nominal: NDArray[np.generic] = duration[:n]
        for name, row in self._rows.items():
            column = StatColumn(columns.kind[row, :n], columns.value[row, :n], np.zeros(0, np.uint32))
            if column.kind.any() and column.is_number.any():
                values = column.floats()
                self._add(name, core_ops.stat_sum(ids, values, len(self._ids)))
                if name == core_ops.TIME_SCALE:
                    nominal = core_ops.scaled(duration[:n], values)
        if len(self._normalized):
            self._normalized += np.bincount(ids, nominal, minlength=len(self._normalized))

    def _add(self, name: str, part: core_ops.StatSum) -> None:
        so_far = self._stat_sums.get(name)
        if so_far is not None:
            part = core_ops.StatSum(so_far.count + part.count, so_far.total + part.total)
        self._stat_sums[name] = part

    def totals(self, sums: PassSums) -> core_ops.OpTotals:
        """The sums of the metadata ids that have events."""
        rows = np.flatnonzero(sums.occurrences)
        return core_ops.OpTotals(
            ids=self._ids[rows],
            occurrences=sums.occurrences[rows],
            total_ps=sums.total_ps[rows],
            self_ps=sums.self_ps[rows],
            minimum_ps=sums.minimum_ps[rows],
            normalized_ps=self._normalized[rows] if core_ops.TIME_SCALE in self._stat_sums else None,
            stat_sums={
                name: core_ops.StatSum(figure.count[rows], figure.total[rows])
                for name, figure in self._stat_sums.items()
            },
        )
