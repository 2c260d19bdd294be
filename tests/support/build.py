"""Builds small profiles with known contents, and opens them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st

from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.formats.proto.xplane_pb2 import XEvent, XLine, XPlane, XSpace, XStat
from tpuprof.parsers.formats.xspace.events import Events
from tpuprof.parsers.formats.xspace.metadata import StatValue
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.hosts.summary import HostSummary, summarise
from tpuprof.parsers.session.session import Session

T = TypeVar("T")
StatInput = int | float | str | bytes
Span = tuple[str, int, int] | tuple[str, int, int, Mapping[str, StatInput]]
"""Name, start and end of an event, and its stats if it has any."""


def present(value: T | None) -> T:
    """The value, which must be there."""
    assert value is not None
    return value


def nested_spans(
    draw: st.DrawFn, end: int, most: int, gap: int, lengths: tuple[int, int], deepest: int
) -> Iterator[tuple[int, int]]:
    """Begin and length of at most so many spans that nest properly: a parent's gaps are filled from left to right."""
    left = most

    def fill(begin: int, end: int, depth: int) -> Iterator[tuple[int, int]]:
        nonlocal left
        at = begin
        while at < end and left > 0:
            at += draw(st.integers(0, gap))
            length = draw(st.integers(*lengths))
            if at + length > end:
                return
            left -= 1
            yield at, length
            if depth < deepest and draw(st.booleans()):
                yield from fill(at, at + length, depth + 1)
            at += length

    return fill(0, end, 0)


def event_stats(plane: Plane, events: Events, index: int) -> dict[str, StatValue]:
    """Every stat of one event, by name."""
    event = event_message(plane, events, index)
    return {plane.stat_name(stat.metadata_id): plane.stat_value(stat) for stat in event.stats}


def event_message(plane: Plane, events: Events, index: int) -> XEvent:
    return XEvent.FromString(plane.source.read(int(events.begin[index]), int(events.length[index])))


def fill_value(stat: XStat, value: StatInput) -> None:
    """Sets the value of a stat alone."""
    if isinstance(value, str):
        stat.str_value = value.encode()
    elif isinstance(value, bytes):
        stat.bytes_value = value
    elif isinstance(value, float):
        stat.double_value = value
    else:
        stat.int64_value = value


class PlaneBuilder:
    """A plane whose metadata ids are handed out as names are used."""

    def __init__(self, space: XSpace, name: str, plane_id: int = 0) -> None:
        self.space = space
        self.plane: XPlane = space.planes.add(name=name.encode(), id=plane_id)
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}

    @classmethod
    def alone(cls, name: str, plane_id: int = 1) -> PlaneBuilder:
        """The first plane of a new profile."""
        return cls(XSpace(), name, plane_id)

    def stat_id(self, name: str) -> int:
        if name not in self._stats:
            self._stats[name] = len(self._stats) + 1
            entry = self.plane.stat_metadata[self._stats[name]]
            entry.id, entry.name = self._stats[name], name.encode()
        return self._stats[name]

    def fill(self, stat: XStat, name: str, value: StatInput) -> None:
        """Sets a stat, choosing the field by the value's type (an int is an int64)."""
        stat.metadata_id = self.stat_id(name)
        fill_value(stat, value)

    def stat(self, name: str, value: StatInput) -> None:
        self.fill(self.plane.stats.add(), name, value)

    def event_id(self, name: str, display_name: str = "", **stats: StatInput) -> int:
        """Id of an event's metadata; stats are those of the first call with this name."""
        if name not in self._events:
            self._events[name] = len(self._events) + 1
            entry = self.plane.event_metadata[self._events[name]]
            entry.id, entry.name, entry.display_name = self._events[name], name.encode(), display_name.encode()
            for key, value in stats.items():
                self.fill(entry.stats.add(), key, value)
        return self._events[name]

    def line(self, name: str, timestamp_ns: int = 0) -> XLine:
        return self.plane.lines.add(name=name.encode(), id=len(self.plane.lines) + 1, timestamp_ns=timestamp_ns)

    def event(self, line: XLine, metadata_id: int, offset_ps: int, duration_ps: int, **stats: StatInput) -> None:
        event = line.events.add(metadata_id=metadata_id, offset_ps=offset_ps, duration_ps=duration_ps)
        for key, value in stats.items():
            self.fill(event.stats.add(), key, value)

    def spans(self, line: str, events: Iterable[Span], unit_ps: int = 1, timestamp_ns: int = 0) -> XLine:
        """Adds a line of events, whose starts and ends are in this unit, counted from where the line's clock begins."""
        made = self.line(line, timestamp_ns)
        for name, start, end, *stats in events:
            self.event(
                made, self.event_id(name), start * unit_ps, (end - start) * unit_ps, **(stats[0] if stats else {})
            )
        return made

    def threads(self, threads: Iterable[Iterable[Span]], unit_ps: int = 1) -> PlaneBuilder:
        """Adds a line for each of these threads: ``thread 0``, ``thread 1``, …"""
        for at, events in enumerate(threads):
            self.spans(f"thread {at}", events, unit_ps)
        return self

    def read(self) -> Plane:
        """The plane as it is read from a profile of its own."""
        return trace_of(XSpace(planes=[self.plane])).planes[0]


OpSpec = tuple[str, str, int, int]
"""Name, HLO category, offset and duration of an op event, in picoseconds."""


def tpu_plane(
    space: XSpace,
    ordinal: int,
    ops: Sequence[OpSpec],
    steps: Sequence[tuple[str, int, int]] = (),
    modules: Sequence[tuple[str, int, int]] = (),
    framework_ops: dict[str, str] | None = None,
) -> PlaneBuilder:
    """Adds a TensorCore plane; ops of one name share flops 1000 and 500 bytes of HBM reads an occurrence."""
    plane = PlaneBuilder(space, f"/device:TPU:{ordinal}", ordinal + 1)
    plane.stat("device_type_string", "TPU test")
    plane.stat("peak_teraflops_per_second", 100.0)
    plane.stat("peak_hbm_bw_gigabytes_per_second", 1000.0)
    for line_name, spans in (("Steps", steps), ("XLA Modules", modules)):
        if spans:
            line = plane.line(line_name)
            for name, begin, end in spans:
                plane.event(line, plane.event_id(name), begin, end - begin)
    line = plane.line("XLA Ops")
    for name, category, offset, duration in ops:
        stats: dict[str, StatInput] = {
            "program_id": 7,
            "symbol_id": sum(name.encode()) + 1,
            "hlo_category": category,
            "flops": 1000,
            "memory_access_breakdown": b"\n\x07\x08\x01\x10\x01\x18\xf4\x03",
        }
        if framework_ops and name in framework_ops:
            stats["tf_op"] = framework_ops[name]
        plane.event(line, plane.event_id(f"%{name} = f32[8] {name}()", name, **stats), offset, duration)
    return plane


def host_bytes(step_ps: int = 100, count: int = 4) -> bytes:
    """A host with one core and some steps, of one op each."""
    space = XSpace()
    ops = [("fusion.1", "loop fusion", n * step_ps, step_ps // 2) for n in range(count)]
    tpu_plane(space, 0, ops, steps=[(str(n), n * step_ps, (n + 1) * step_ps) for n in range(count)])
    return space.SerializeToString()


def bare_host() -> XSpace:
    """A profile of a host with a thread that ran nothing, and without a device."""
    host = PlaneBuilder.alone("/host:CPU")
    host.line("main")
    return host.space


def trace_of(space: XSpace) -> Trace:
    """A made profile, as it is read."""
    return Trace.from_bytes(space.SerializeToString())


def summary_of(space: XSpace, host: str = "host0") -> HostSummary:
    """What a host adds to the pages."""
    return summarise(trace_of(space), host)


def write_run(folder: Path, name: str = "run", /, **hosts: XSpace | bytes) -> Path:
    """A logdir with one run of these hosts, in TensorBoard's layout."""
    run = folder / "plugins" / "profile" / name
    run.mkdir(parents=True, exist_ok=True)
    for host, content in hosts.items():
        (run / f"{host}.xplane.pb").write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    return folder


def session_at(path: Path | str, **options: Any) -> Session:
    """The newest run of a logdir, with options of a session."""
    return Session(open_logdir(str(path)).find_run(None), **options)
