"""One host's profile; it finds planes and lines at once, and decodes events, stats and metadata on demand.

    trace = Trace.open("host0.xplane.pb")
    for plane in trace.planes:
        for line in plane.lines:
            events = line.events(stats=("device_offset_ps",))

A profile that was cut off at any byte still gives every event before the cut; `Trace.problems` says what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.budget import Budget
from tpuprof.parsers.base.errors import Part, Problem, ProfileError, one_part
from tpuprof.parsers.base.intervals import Bools, Int64s, no_ints
from tpuprof.parsers.base.text import examples
from tpuprof.parsers.files.core_names import told_apart
from tpuprof.parsers.files.file_kinds import of_another_tool
from tpuprof.parsers.files.folder_search import BEGIN_BYTES
from tpuprof.parsers.formats.xspace import metadata, packed
from tpuprof.parsers.formats.xspace.core.api import scan_events
from tpuprof.parsers.formats.xspace.core.types import EVERY_EVENT, FULL, INCOMPLETE, MALFORMED, WIDE_ID
from tpuprof.parsers.formats.xspace.events import EVENTS_FIELD, ColumnRoom, Events, LineHeader, StatColumn
from tpuprof.parsers.formats.xspace.metadata import KIND_BYTES, KIND_REF, KIND_STR, MetadataTable, StatValue
from tpuprof.parsers.formats.xspace.source import ByteSource, MemorySource, OnFetched, begins_like_xspace, open_source
from tpuprof.parsers.formats.xspace.walk import FAR_NS, LEN, VARINT, origin_ns, text, varint, windows

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import xplane_pb2

CHUNK = 1 << 19
"""How many bytes of a line to decode at a time: what fits into a processor's cache."""

HEAD = 1 << 12
"""How many bytes of a line it reads for the line's name."""

_PLANE_BYTES, _LINE_BYTES, _ENTRY_BYTES = 2500, 8000, 130  # what these take, about, with what pages make of them
_IMPLAUSIBLE = 1 << 36

_LEAST_EVENT = 16
"""The fewest bytes of a device's event; where events take fewer, the room for a chunk's events grows."""

ChunkDone = Callable[[int, int], None]
"""Called with the bytes and events of each decoded chunk; may raise `Cancelled`."""


class Line:
    """One line of a plane: a sequence of events on one clock.

    Attributes:
        plane: the plane it belongs to.
        begin, end: its bytes in the file; `end` may lie before the declared end in a truncated file.
        lost_bytes: declared bytes that the file does not have.
    """

    def __init__(self, plane: Plane, begin: int, end: int) -> None:
        self.plane = plane
        self.begin = begin
        self.end = min(end, plane.source.size)
        self.lost_bytes = max(0, end - max(begin, plane.source.size))

    @property
    def size(self) -> int:
        """Bytes of the line in the file."""
        return max(0, self.end - self.begin)

    @cached_property
    def _head(self) -> LineHeader:
        return self._read_header(self.begin, min(self.end, self.begin + HEAD))

    @cached_property
    def header(self) -> LineHeader:
        """Every scalar field. It walks over the whole line, since some stand behind the events, without decoding it."""
        return self._head if self.size <= HEAD else self._read_header(self.begin, self.end)

    def tail(self, at: int) -> LineHeader:
        """The scalar fields from an offset in the file on: display name and id stand behind the events."""
        return self._read_header(at, self.end)

    def _read_header(self, begin: int, end: int) -> LineHeader:
        numbers: dict[int, int] = {}
        texts: dict[int, str] = {}
        for window in windows(self.plane.source, begin, end):
            for index in np.flatnonzero(window.number != EVENTS_FIELD).tolist():
                number, wire = int(window.number[index]), int(window.wire[index])
                if wire == VARINT:
                    numbers[number] = varint(window.payload(index))
                elif wire == LEN and number in (2, 11):
                    texts[number] = text(window.payload(index))
        return LineHeader(
            id=numbers.get(1, 0),
            display_id=numbers.get(10, 0),
            name=texts.get(2, ""),
            display_name=texts.get(11, ""),
            timestamp_ns=numbers.get(3, 0),
            duration_ps=numbers.get(9, 0),
        )

    @property
    def id(self) -> int:
        """Line id, unique within the plane."""
        return self._head.id

    @property
    def name(self) -> str:
        """Line name, such as ``XLA Ops`` or a thread's name; read from the line's first bytes, where writers put it."""
        return self._head.name

    @property
    def timestamp_ns(self) -> int:
        """Start of the line's clock in nanoseconds; an event starts at ``timestamp_ns * 1000 + offset_ps``."""
        at = self._head.timestamp_ns
        return at - self.plane.origin_ns if at >= FAR_NS else at

    def events(self, stats: Sequence[str] = (), on_chunk: ChunkDone | None = None, places: bool = True) -> Events:
        """Decodes the line's events, with a column for each of the stats asked for.

        Args:
            stats: names of stats; `Events.stats` lacks those that the plane does not define.
            on_chunk: receives the progress; an exception from it ends the decoding.
            places: whether to keep where each event lies in the file (12 bytes an event).

        It does not cache them: the caller decides how long the columns live.
        """
        ids = self.plane.stat_ids(stats)
        room = ColumnRoom(len(ids), places)
        for _ in self.scan(np.array(list(ids.values()), np.int64), room, on_chunk):
            pass
        return room.events(list(ids))

    def blocks(
        self, stats: Sequence[str] = (), on_chunk: ChunkDone | None = None, chosen: Bools = EVERY_EVENT
    ) -> Iterator[ColumnRoom]:
        """Decodes the line's events a chunk of its bytes at a time, for sums that need no event twice.

        Args:
            stats, on_chunk: as for `events`; a row for each of `Plane.stat_ids(stats)`. chosen: see `scan_events`.

        Yields:
            The same room each time, with the events of the next chunk. It stays in the processor's cache.
        """
        ids = self.plane.stat_ids(stats)
        room = ColumnRoom(len(ids), places=False, capacity=CHUNK // _LEAST_EVENT)
        for _ in self.scan(np.array([*ids.values()], np.int64), room, on_chunk, chosen):
            yield room
            room.columns.kind[:, : room.count] = 0
            room.count = 0

    def scan(
        self, wanted: Int64s, room: ColumnRoom, on_chunk: ChunkDone | None, chosen: Bools = EVERY_EVENT
    ) -> Iterator[int]:
        """Decodes the line into a room, up to its first unreadable byte; yields where it has come, after each chunk."""
        begin, end = self.begin, self.end
        offset, window = begin, CHUNK
        while offset < end:
            data = self.plane.source.read(offset, min(window, end - offset))
            last = offset + len(data) >= end
            start, before, status = 0, room.count, FULL
            while status in (FULL, WIDE_ID):
                scan = scan_events(data, offset, start, wanted, room.columns, room.count, chosen)
                room.count += scan.count
                room.seen |= scan.seen
                start, status = scan.next, scan.status
                if status == FULL:
                    room.grow((offset + start - begin) / (end - begin))
                elif status == WIDE_ID:
                    room.widen()
            if on_chunk is not None:
                on_chunk(min(start, len(data)), room.count - before)
            yield offset + start
            if status == MALFORMED or (status == INCOMPLETE and last) or not data:
                return
            window = CHUNK if start else 2 * window  # an event larger than the window
            offset += start


class Plane:
    """One plane: a device, the host's threads, or metadata.

    Attributes:
        trace: the trace it belongs to.
        index: position in the file.
        id: the plane's id (0 where absent).
        name: such as ``/device:TPU:0`` or ``/host:CPU``.
        lines: in file order; a line that the file cuts off is the last one.
        lost_bytes: declared bytes that the file does not have.
        profile: which of several profiles that were joined into one file it is of, from 0 on (`told_apart`).
        origin_ns: what the clocks of its lines count from where they have the time since 1970, see `origin_ns`.
        broken_at: file offset at which the plane becomes unreadable, or takes more than a plane of its size may, or -1.
    """

    def __init__(self, source: ByteSource, index: int, begin: int, end: int, budget: Budget) -> None:
        self.source = source
        self.index = index
        self.begin = begin
        self.end = min(end, source.size)
        self.lost_bytes = end - self.end
        self.id = 0
        self.name = ""
        self.profile = 0
        self.origin_ns = 0
        self.broken_at = -1
        self.cut = False
        lines: list[Line] = []
        self._entries: dict[int, list[tuple[Int64s, Int64s]]] = {4: [], 5: [], 6: []}
        for window in windows(source, begin, self.end):
            is_len = window.wire == LEN
            of_lines = np.flatnonzero(is_len & (window.number == 3)).tolist()
            entries = int(np.count_nonzero(is_len & np.isin(window.number, list(self._entries))))
            if not budget.affords(1, len(of_lines) * _LINE_BYTES + entries * _ENTRY_BYTES):
                self.broken_at = int(window.tag[0])
                break
            for field_index in of_lines:
                lines.append(Line(self, int(window.begin[field_index]), int(window.end[field_index])))
            for field, spans in self._entries.items():
                chosen = is_len & (window.number == field)
                if chosen.any():
                    spans.append((window.begin[chosen], window.end[chosen]))
            for field_index in np.flatnonzero(window.number <= 2).tolist():
                if window.number[field_index] == 1 and window.wire[field_index] == VARINT:
                    self.id = varint(window.payload(field_index))
                elif window.number[field_index] == 2 and window.wire[field_index] == LEN:
                    at, to = int(window.begin[field_index]), int(window.end[field_index])
                    self.name = text(source.read(at, to - at))
            self.broken_at, self.cut = window.broken_at, window.cut
        self.lines = tuple(lines)

    @property
    def is_cut(self) -> bool:
        """Whether the file ends inside this plane. A length that no profile can have is damage, not a cut."""
        return self.cut or 0 < self.lost_bytes < _IMPLAUSIBLE

    @property
    def holds_something(self) -> bool:
        """Whether the plane's name is text and it has a line, metadata or a stat."""
        entries = any((end <= self.end).any() for spans in self._entries.values() for _, end in spans)
        return bool(self.name) and self.name.isprintable() and (bool(self.lines) or entries)

    def _spans(self, field: int) -> tuple[Int64s, Int64s]:
        spans = self._entries[field]
        if not spans:
            return no_ints(), no_ints()
        return np.concatenate([a for a, _ in spans]), np.concatenate([b for _, b in spans])

    def _bytes_of(self, field: int) -> tuple[bytes, Int64s, Int64s]:
        """The payloads of a repeated field that are complete in the file, read in as few pieces as their gaps allow."""
        begin, end = self._spans(field)
        whole = end <= self.end
        begin, end = begin[whole], end[whole]
        if not len(begin):
            return b"", begin, end
        far = np.flatnonzero(begin[1:] - end[:-1] > HEAD) + 1
        pieces, shift, size = [], np.zeros(len(begin), np.int64), 0
        for first, last in zip([0, *far.tolist()], [*far.tolist(), len(begin)], strict=True):
            start, stop = int(begin[first]), int(end[last - 1])
            pieces.append(self.source.read(start, stop - start))
            shift[first:last] = size - start
            size += stop - start
        body = b"".join(pieces)
        return body, begin + shift, end + shift

    @cached_property
    def event_metadata(self) -> MetadataTable:
        return metadata.read_table(*self._bytes_of(4))

    @cached_property
    def stat_metadata(self) -> MetadataTable:
        """Names and descriptions of the stats, by metadata id; `display_name` is the description."""
        return metadata.read_table(*self._bytes_of(5), display_field=3)

    @cached_property
    def stats(self) -> dict[str, StatValue]:
        """The plane's own stats, by name; the first one where a name stands twice."""
        body, begin, end = self._bytes_of(6)
        out: dict[str, StatValue] = {}
        for a, b in zip(begin.tolist(), end.tolist(), strict=True):
            stat = metadata.decode_stat(body[a:b])
            if stat is not None:
                out.setdefault(self.stat_name(stat[0]), self._stat_value(*stat[1:]))
        return out

    def stat_name(self, metadata_id: int) -> str:
        """Name of a stat; ``stat 17`` where the profile does not name it."""
        row = self.stat_metadata.row(metadata_id)
        return f"stat {metadata_id}" if row is None else self.stat_metadata.name(row)

    def stat_ids(self, names: Sequence[str]) -> dict[str, int]:
        """Metadata ids of the stats with these names, in their order, without unknown names."""
        return self.stat_metadata.ids_of(names) if names else {}

    def _stat_value(self, kind: int, value: int | float | bytes) -> StatValue:
        """Value of a stat by its kind; a reference becomes the text it stands for."""
        if kind == KIND_STR and isinstance(value, bytes):
            return text(value)
        if kind == KIND_REF and isinstance(value, int):
            return self._referenced(value)
        return value if kind else None

    def stat_value(self, stat: xplane_pb2.XStat) -> StatValue:
        """Value of a decoded stat; a reference becomes the text it stands for."""
        kind = stat.WhichOneof("value")
        return self._stat_value(stat.DESCRIPTOR.fields_by_name[kind].number, getattr(stat, kind)) if kind else None

    def _referenced(self, metadata_id: int) -> str | None:
        row = self.stat_metadata.row(metadata_id) if metadata_id < 2**63 else None
        return None if row is None else self.stat_metadata.name(row)

    def texts(self, column: StatColumn) -> list[str | None]:
        """Text of each event's stat (text, bytes as text, or reference), None elsewhere; it reads each text once."""
        out: list[str | None] = [None] * len(column.kind)
        known: dict[tuple[int, int], str | None] = {}
        for row in np.flatnonzero((column.kind == KIND_REF) | (column.kind == KIND_STR) | (column.kind == KIND_BYTES)):
            value = int(column.value[row])
            length = int(column.length[row]) if len(column.length) else 0
            key = (-1, value) if column.kind[row] == KIND_REF else (length, value)
            if key not in known:
                known[key] = self._referenced(value) if key[0] < 0 else text(self.source.read(value, length))
            out[row] = known[key]
        return out

    def line(self, name: str) -> Line | None:
        """The first line with this name."""
        return next((line for line in self.lines if line.name == name), None)


class Trace:
    """One XSpace: the planes of one host and what the profiler said about the capture.

    Attributes:
        source: where the bytes come from.
        planes: in file order; see `keep`.
        devices: numbers of the devices of the host's CPU that are looked at, which have no planes; empty for all.
        hostnames, errors, warnings: texts that the profiler recorded.
        problems: what is wrong with the file, as far as known.
        failed: the parts that could not be made use of (`optional`).
    """

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        planes, budget = list[Plane](), Budget(source.file_size, source.name)
        texts: dict[int, list[str]] = {2: [], 3: [], 4: []}
        self._broken_at, self._cut, self._lost_bytes = -1, False, 0
        for window in windows(source, 0, source.size):
            for index in np.flatnonzero((window.number <= 4) & (window.wire == LEN)):
                number, begin, end = int(window.number[index]), int(window.begin[index]), int(window.end[index])
                self._lost_bytes = max(0, end - source.size)
                budget.takes(1, _PLANE_BYTES)
                if number == 1:
                    share = budget.part(min(end, source.size) - begin, source.size)
                    planes.append(Plane(source, len(planes), begin, end, share))
                else:
                    texts[number].append(text(source.read(begin, end - begin)))
            self._broken_at, self._cut = window.broken_at, window.cut
        self._renamed = list[str]()
        seen: Counter[str] = Counter()
        for plane, name in zip(planes, told_apart([plane.name for plane in planes]), strict=True):
            if name != plane.name:
                self._renamed.append(f"{name} was {plane.name}")
                plane.profile = seen[plane.name]
            seen[plane.name] += 1
            plane.name = name
        if any(plane.lines[0]._head.timestamp_ns >= FAR_NS for plane in planes if plane.lines):
            noted = next((of.stats.get("profile_start_time") for of in planes if of.name == "Task Environment"), None)
            far = origin_ns([line._head.timestamp_ns for plane in planes for line in plane.lines], noted)
            for plane in planes:
                plane.origin_ns = far
        self.planes = self._found = tuple(planes)
        self.devices: frozenset[int] = frozenset()
        self.failed: list[ProfileError] = []
        self.errors, self.warnings, self.hostnames = (tuple(texts[field]) for field in (2, 3, 4))
        self._check_is_profile()

    @classmethod
    def open(cls, path: str, on_fetched: OnFetched | None = None) -> Trace:
        """Opens a profile file (plain, gzip or Riegeli), or a Chrome trace that was made from one.

        The trace that lies beside a damaged profile is opened in its place, and `problems` says so.

        Args:
            on_fetched: called while a file behind a URL is fetched; may raise `parsers.base.errors.Cancelled`.

        Raises:
            ProfileError: `not_found`, `unreadable`, `empty_file`, or `corrupt` for bytes that are no profile; for a
                packed file also `disk_full`.
        """
        source = open_source(path, on_fetched)
        try:
            trace = cls(source if begins_like_xspace(source) else packed.unpacked(source))
        except ProfileError as error:
            return cls(packed.instead_of(path, error))
        if losses := trace.losses:
            other = packed.stand_in(path, losses[0].sentence, source.size)
            trace = trace if other is None else cls(other)
        return trace

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "memory") -> Trace:
        return cls(MemorySource(data, name))

    def _check_is_profile(self) -> None:
        if self.source.size == 0:
            hint = "capture again for a shorter time: a profile over protobuf's 2 GB limit leaves an empty file"
            raise ProfileError("empty_file", f"{self.source.name} is empty (0 bytes).", hint)
        whole = (
            self._broken_at < 0
            and (self.planes or self.hostnames or self.errors or self.warnings)
            and all(plane.name and not plane.lost_bytes for plane in self.planes)
        )
        if not whole and not any(plane.holds_something for plane in self.planes):
            if self.planes and self.planes[0].name.startswith("/") and self.planes[0].is_cut:
                cut = f"is cut off after {self.source.size:,} bytes, before its first line of events"
                raise ProfileError("corrupt", f"{self.source.name} {cut}.", "copy or capture it again")
            if (found := of_another_tool(self.source.read(0, min(self.source.size, BEGIN_BYTES)))) is not None:
                raise found.error(self.source.name)
            sentence = f"{self.source.name} is not a profile: its bytes do not read as an XSpace."
            hint = "a profile's name ends in .xplane.pb; a copy that went through a text conversion cannot be repaired"
            raise ProfileError("corrupt", sentence, hint)

    def optional(self, what: str, part: Callable[[], Part]) -> Part | None:
        """What is made of a part of the file that can be missing; None if that fails, and `failed` has the error."""
        try:
            with one_part(what):
                return part()
        except ProfileError as error:
            self.failed.append(error)
            return None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was lost; whether this is a trace that was made from a profile; whether several profiles were joined."""
        hint = "open the HOST.xplane.pb of the same capture, if there is one"
        viewer = (Problem("viewer_trace", self.source.name, self.source.origin, hint),) if self.source.origin else ()
        sentence = (
            f"{self.source.name} is several profiles joined into one file: planes of the later ones have new numbers "
            f"({examples(self._renamed)}), and host events are those of the first."
        )
        joined = (Problem("joined_profiles", self.source.name, sentence),) if self._renamed else ()
        return viewer + joined + self.losses

    @property
    def losses(self) -> tuple[Problem, ...]:
        """What was lost: a cut file, damaged bytes, damaged metadata (as far as it has been decoded)."""
        problems: list[Problem] = []
        name, size = self.source.name, self.source.size
        if self.source.note:
            problems.append(Problem("truncated", name, f"{name}: {self.source.note}."))
        for plane in self._found:
            if plane.is_cut:
                problems.append(_cut_problem(name, size, plane))
            elif plane.broken_at >= 0 or plane.lost_bytes:
                lost = plane.end - max(plane.broken_at, plane.begin)
                sentence = f"Plane {plane.name or plane.index} is damaged: its last {lost:,} bytes can't be read."
                problems.append(Problem("damaged", f"{name}, plane {plane.name}", sentence))
        if self._lost_bytes and not (self._found and self._found[-1].lost_bytes):
            sentence = f"{name} is cut off after {size:,} bytes: the last text in it is incomplete."
            problems.append(Problem("truncated", name, sentence))
        if self._broken_at >= 0:
            what = "ends in the middle of a field" if self._cut else "is damaged"
            sentence = f"{name} {what}: the last {size - self._broken_at:,} of {size:,} bytes can't be read."
            problems.append(Problem("truncated" if self._cut else "damaged", name, sentence))
        return tuple(problems)

    def keep(self, is_wanted: Callable[[Plane], bool]) -> None:
        """Leaves the other planes out from now on: an empty one without a name stands in the place of each."""
        source, none = self.source, Budget(0, self.source.name)
        empty = ((plane, Plane(source, plane.index, plane.begin, plane.begin, none)) for plane in self.planes)
        self.planes = tuple(plane if is_wanted(plane) else instead for plane, instead in empty)

    @property
    def left_out(self) -> tuple[Plane, ...]:
        """The planes that `keep` left out."""
        return tuple(plane for plane in self._found if plane not in self.planes)

    def plane(self, name: str) -> Plane | None:
        """The first plane with this name."""
        return next((plane for plane in self.planes if plane.name == name), None)

    def close(self) -> None:
        """Closes the file; after that it decodes nothing more."""
        self.source.close()


def _cut_problem(name: str, size: int, plane: Plane) -> Problem:
    """A sentence on what a truncated file still has and what it lacks."""
    sentence = f"{name} is cut off after {size:,} bytes, inside plane {plane.name or plane.index}."
    lost = [f"at least {plane.lost_bytes:,} bytes"] if plane.lost_bytes else []
    last = plane.lines[-1] if plane.lines else None
    if last is not None and last.lost_bytes:
        lost = [f"at least {plane.lost_bytes:,} bytes ({last.lost_bytes:,} of line {last.name or last.id})"]
    lost += [] if plane._spans(4)[0].size else ["all event names of the plane"]
    sentence += f" Lost: {' and '.join(lost)}." if lost else ""
    return Problem("truncated", name, sentence, "everything before the cut is shown; copy or capture it again")
