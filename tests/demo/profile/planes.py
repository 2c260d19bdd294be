"""Planes whose names turn into metadata ids as they are used, and the wire bytes of planes too large for objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.support.files.wire import field, varint
from tpuprof.parsers.formats.proto.xplane_pb2 import XEventMetadata, XLine, XPlane, XStat

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


class PlaneWriter:
    """A plane under construction; lines are either objects (`line`) or bytes (`add_line_bytes`)."""

    def __init__(self, name: str, plane_id: int = 0) -> None:
        self.head = XPlane(name=name.encode(), id=plane_id)
        self.tail = XPlane()
        self._lines: list[bytes] = []
        self._objects: list[XLine] = []
        self._events: dict[tuple[str, str], int] = {}
        self._stats: dict[str, int] = {}

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
        elif isinstance(value, str):
            stat.str_value = value.encode()
        elif isinstance(value, bytes):
            stat.bytes_value = value
        elif isinstance(value, float):
            stat.double_value = value
        else:
            stat.int64_value = value

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
        number = len(self.tail.event_metadata) + 1 if key is None else key
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

    def _entries(self) -> Iterable[bytes]:
        """Both metadata maps, by id: libraries differ in the order that they give maps."""
        for number, table in ((4, self.tail.event_metadata), (5, self.tail.stat_metadata)):
            for key in sorted(table):
                value = table[key].SerializeToString(deterministic=True)
                yield field(number, b"\x08" + varint(key) + field(2, value))
