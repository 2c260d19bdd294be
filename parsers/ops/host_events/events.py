"""The events of a host's threads, decoded once for every page that looks at the host.

Times are on the trace's clock, which device planes use too. Few of a host's events carry stats, so a stat is kept only
for the rows that have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Columns, Int64s, no_ints, positions
from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.formats.xspace.events import Events, StatColumn
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane
from tpuprof.parsers.ops.core.ops import Keys, event_spans

HOST_PLANE = "/host:CPU"
"""Its stats describe the capture, such as when it began."""

_REGION = ("ThreadpoolListener::StartRegion", "ThreadpoolListener::StopRegion")
"""Instants at which a thread of a pool begins a piece of work, and ends it."""

# Lines that the profiler derives from others have ids from here on; of a line's id the low 32 bits count.
_DERIVED_LINES = range(0xDEADBEEF, 0xDEADBEEF + 290)


@dataclass(frozen=True, slots=True)
class SparseStat:
    """A stat of the events that have it.

    Attributes:
        rows: int64[m], ascending; the events that have it.
        values: their values, in that order.
    """

    rows: Int64s
    values: StatColumn

    def integers_at(self, rows: Int64s) -> tuple[Int64s, Bools]:
        """Integer values for some events, and which of these have one; 0 for those without."""
        if not len(self.rows):
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        place = positions(rows, self.rows)
        return np.where(place >= 0, self.values.integers()[place], 0), place >= 0


_ABSENT = SparseStat(no_ints(), StatColumn(np.zeros(0, np.uint8), no_ints(), np.zeros(0, np.uint32)))


@dataclass(frozen=True, slots=True)
class Ends(Columns):
    """Ends of links: event `rows[i]` of a line belongs to the link of type `kind[i]` and id `id[i]`. int64[n] each."""

    rows: Int64s
    kind: Int64s
    id: Int64s


@dataclass(frozen=True, slots=True)
class HostThread(Sized):
    """The events of one line with their few stats: those of a thread, or also of a GPU's stream or a core.

    Attributes:
        metadata_id: int32[n] or int64[n].
        start_ps, end_ps: int64[n], in file order, which need not be that of time.
        stats: stats by name; a stat that no event of the thread has is missing.
    """

    sized_by = "start_ps"
    line: Line
    metadata_id: Keys
    start_ps: Int64s
    end_ps: Int64s
    stats: Mapping[str, SparseStat]

    @classmethod
    def of(cls, line: Line, events: Events) -> HostThread:
        return cls(line, events.metadata_id, *event_spans(line, events), _sparse_stats(events))

    def stat(self, name: str) -> SparseStat:
        """A stat, without rows where no event has it."""
        return self.stats.get(name, _ABSENT)

    def integers(self, name: str, missing: int) -> Int64s:
        """int64[n]: integer values of a stat, `missing` for events that have none."""
        stat, out = self.stat(name), np.full(len(self), missing)
        out[stat.rows] = stat.values.integers(missing)
        return out

    def rows_of(self, metadata_ids: Int64s | Sequence[int]) -> Int64s:
        """int64[k]: the events with some of these metadata ids."""
        return np.flatnonzero(np.isin(self.metadata_id, metadata_ids)).astype(np.int64)

    def producers(self) -> Ends:
        """Ends of the links that events begin: those that name a type and an id of what they start."""
        return self._ends("_pt", "_p")

    def consumers(self) -> Ends:
        return self._ends("_ct", "_c")

    def _ends(self, kind: str, number: str) -> Ends:
        kinds = self.stat(kind)
        ids, has = self.stat(number).integers_at(kinds.rows)
        return Ends(kinds.rows, kinds.values.integers(), ids).take(has)


@dataclass(frozen=True, slots=True)
class HostEvents:
    """All threads of a host."""

    plane: Plane
    threads: tuple[HostThread, ...]

    def ids_named(self, is_wanted: Callable[[str], bool]) -> Int64s:
        """int64[k], ascending: metadata ids of the events whose names are wanted. It asks about each name once."""
        table = self.plane.event_metadata
        return table.ids[[row for row in range(len(table)) if is_wanted(table.name(row))]]

    def name(self, metadata_id: int) -> str:
        """Name of an event; its number where the profile has lost its metadata."""
        return self.plane.event_metadata.label(metadata_id)


def thread_lines(plane: Plane) -> tuple[Line, ...]:
    """The lines of a host plane that hold what its threads did, without empty and derived lines."""
    return tuple(line for line in plane.lines if line.size and line.id & 0xFFFFFFFF not in _DERIVED_LINES)


def read_threads(plane: Plane, stats: Sequence[str], on_chunk: ChunkDone | None = None) -> Iterator[HostThread]:
    """Decodes thread after thread.

    Args:
        stats: names of the stats to keep.
    """
    regions = region_ids(plane)
    for line in thread_lines(plane):
        thread = HostThread.of(line, line.events(stats, on_chunk, places=False))
        yield replace(thread, end_ps=region_ends(thread.metadata_id, thread.start_ps, thread.end_ps, regions))


def region_ids(plane: Plane) -> tuple[int, int] | None:
    """Metadata ids of the instants at which threads of a pool begin and end pieces of work; None without them."""
    borders = plane.event_metadata.find_names(_REGION)
    return (borders[_REGION[0]], borders[_REGION[1]]) if len(borders) == len(_REGION) else None


def region_ends(ids: Keys, start_ps: Int64s, end_ps: Int64s, regions: tuple[int, int] | None) -> Int64s:
    """The ends of a line's events, where an instant at which a piece of work begins lasts until it ends.

    XProf adds an event from one to the other (`ThreadpoolLineMutator` in `preprocess_xplane.h`), so that what lies
    between them belongs to the one that handed the work over. A beginning counts with the next end behind it.

    Args:
        regions: as of `region_ids`.
    """
    if regions is None:
        return end_ps
    first, last = (np.flatnonzero(ids == of) for of in regions)
    if not len(first) or not len(last):
        return end_ps
    first = first[np.argsort(start_ps[first], kind="stable")]
    begun, ended = start_ps[first], np.sort(start_ps[last])
    place = np.searchsorted(ended, begun)
    follows = place < len(ended)
    until = ended[np.minimum(place, len(ended) - 1)]
    paired = follows & (until <= np.append(begun[1:], until[-1:]))
    out = end_ps.copy()
    out[first[paired]] = until[paired]
    return out


def _sparse_stats(events: Events) -> dict[str, SparseStat]:
    """The stats of decoded events, by name; a stat that no event has is missing."""
    rows = {name: np.flatnonzero(column.kind).astype(np.int64) for name, column in events.stats.items()}
    return {name: SparseStat(of, events.stats[name].take(of)) for name, of in rows.items() if len(of)}
