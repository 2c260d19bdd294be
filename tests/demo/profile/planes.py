"""Planes whose names turn into metadata ids as they are used, and the wire bytes of planes too large for objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.support.build import fill_value
from tests.support.files.wire import field, varint
from tpuprof.parsers.formats.proto.xplane_pb2 import XEventMetadata, XLine, XPlane, XStat, XStatMetadata

Value = int | float | str | bytes


@dataclass(frozen=True, slots=True)
class Uint:
    """A stat value to store as uint64."""

    value: int


@dataclass(frozen=True, slots=True)
class Ref:
    """A stat value to store as a reference to a string."""

    text: str


StatValue = Value | Uint | Ref


@dataclass(frozen=True, slots=True)
class Tables:
    """The metadata that a plane had at some time: ids by name, how many event entries, and both tables' bytes."""

    events: dict[tuple[str, str], int]
    stats: dict[str, int]
    event_count: int
    entries: tuple[bytes, bytes]


NO_TABLES = Tables({}, {}, 0, (b"", b""))


class PlaneWriter:
    """A plane under construction; lines are either objects (`line`) or bytes (`add_line_bytes`).

    It goes on from the metadata of another plane whose names are the same, if `tables` are given.
    """

    def __init__(self, name: str, plane_id: int = 0, tables: Tables = NO_TABLES) -> None:
        self.head = XPlane(name=name.encode(), id=plane_id)
        self.tail = XPlane()
        self._lines: list[bytes] = []
        self._objects: list[XLine] = []
        self._tables = tables
        self._events = dict(tables.events)
        self._stats = dict(tables.stats)

    def tables(self) -> Tables:
        """The metadata so far."""
        count = self._tables.event_count + len(self.tail.event_metadata)
        return Tables(dict(self._events), dict(self._stats), count, self._entries())

    def stat_id(self, name: str) -> int:
        """Metadata id of a stat or of a referenced string."""
        if name not in self._stats:
            key = self._stats[name] = len(self._stats) + 1
            self.tail.stat_metadata[key].id = key
            self.tail.stat_metadata[key].name = name.encode()
        return self._stats[name]

    def fill(self, stat: XStat, name: str, value: StatValue) -> None:
        """Sets a stat; the value's type chooses the field."""
        stat.metadata_id = self.stat_id(name)
        if isinstance(value, Uint):
            stat.uint64_value = value.value
        elif isinstance(value, Ref):
            stat.ref_value = self.stat_id(value.text)
        else:
            fill_value(stat, value)

    def plane_stats(self, values: dict[str, StatValue]) -> None:
        for name, value in values.items():
            self.fill(self.tail.stats.add(), name, value)

    def event_id(self, name: str, display_name: str = "") -> int:
        key = (name, display_name)
        if key not in self._events:
            self._events[key] = self.new_metadata(name, display_name).id
        return self._events[key]

    def new_metadata(
        self, name: str, display_name: str = "", stats: dict[str, StatValue] | None = None, key: int | None = None
    ) -> XEventMetadata:
        """Adds an event metadata entry, under the next free id unless `key` says otherwise."""
        number = self._tables.event_count + len(self.tail.event_metadata) + 1 if key is None else key
        entry = self.tail.event_metadata[number]
        entry.id, entry.name, entry.display_name = number, name.encode(), display_name.encode()
        for stat, value in (stats or {}).items():
            self.fill(entry.stats.add(), stat, value)
        return entry

    def line(self, name: str, line_id: int, display_name: str = "", timestamp_ns: int = 0) -> XLine:
        """Adds a line of objects."""
        line = XLine(name=name.encode(), id=line_id, display_name=display_name.encode(), timestamp_ns=timestamp_ns)
        self._objects.append(line)
        return line

    def event(
        self, line: XLine, name: str, begin_ps: int, end_ps: int, stats: dict[str, StatValue] | None = None
    ) -> None:
        """Adds an event; times are picoseconds of the profile's clock."""
        event = line.events.add(
            metadata_id=self.event_id(name),
            offset_ps=begin_ps - line.timestamp_ns * 1000,
            duration_ps=end_ps - begin_ps,
        )
        for stat, value in (stats or {}).items():
            self.fill(event.stats.add(), stat, value)

    def add_line_bytes(self, name: str, line_id: int, events: Sequence[bytes]) -> None:
        """Adds a line whose events are encoded already (`encode.events`)."""
        head = XLine(name=name.encode(), id=line_id).SerializeToString(deterministic=True)
        size = len(head) + sum(map(len, events))
        self._lines += [varint(3 << 3 | 2) + varint(size) + head, *events]

    def chunks(self) -> Iterable[bytes]:
        """The plane as an `XSpace.planes` field, in pieces to write one after the other."""
        for line in self._objects:
            line.events.sort(key=lambda event: (event.offset_ps, -event.duration_ps))
        objects = [field(3, line.SerializeToString(deterministic=True)) for line in self._objects]
        head = self.head.SerializeToString(deterministic=True)
        stats = [field(6, stat.SerializeToString(deterministic=True)) for stat in self.tail.stats]
        body = [head, *self._lines, *objects, *self._entries(), *stats]
        yield varint(1 << 3 | 2) + varint(sum(map(len, body)))
        yield from body

    def _entries(self) -> tuple[bytes, bytes]:
        """Both metadata maps, by id: libraries differ in the order that they give maps."""
        events, stats = self._tables.entries
        return events + _entries(4, self.tail.event_metadata), stats + _entries(5, self.tail.stat_metadata)


def _entries(number: int, table: Mapping[int, XEventMetadata] | Mapping[int, XStatMetadata]) -> bytes:
    values = ((key, table[key].SerializeToString(deterministic=True)) for key in sorted(table))
    return b"".join(field(number, b"\x08" + varint(key) + field(2, value)) for key, value in values)
