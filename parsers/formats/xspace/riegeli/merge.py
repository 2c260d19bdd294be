"""One profile out of the records of a Riegeli file, each an XSpace of its own, as XProf merges them.

The profiler writes a profile in records that repeat the names of a plane's events: it splits planes between lines, and
lines between events. Planes are one by their name, lines of a plane by their id. Metadata keep their ids where no other
entry has them; where one does, they are found by name. Nothing is copied but what must be rewritten: a line whose
clock begins elsewhere, or whose ids mean something else (`xla/tsl/profiler/utils/xplane_utils.cc`, MergePlanes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b

import numpy as np
from google.protobuf.message import DecodeError

from tpuprof.parsers.base.budget import Budget, TooLarge
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.formats.proto.xplane_pb2 import XEventMetadata, XLine, XStat, XStatMetadata
from tpuprof.parsers.formats.xspace.riegeli.records import spool_records
from tpuprof.parsers.formats.xspace.source import ByteSource, MemorySource
from tpuprof.parsers.formats.xspace.spool import Spool, SpoolSource
from tpuprof.parsers.formats.xspace.walk import LEN, VARINT, encoded, header, varint, windows

_PLANES, _TEXTS = 1, (2, 3, 4)  # fields of XSpace
_NAME, _LINES, _EVENT_METADATA, _STAT_METADATA, _STATS = 2, 3, 4, 5, 6  # of XPlane
_LINE_ID, _TIMESTAMP, _EVENTS = 1, 3, 4  # of XLine
_HEAD = 1 << 12
_PS = 1000  # in a nanosecond
_FIELD_BYTES, _STEPS_OF_FIELD = 600, 10  # what a field and an entry made of it take, about

Span = tuple[int, int]
Ids = dict[int, int]
"""Ids of a record, and what they are in the merged plane; those that stay as they are stand for themselves."""


def riegeli_source(source: ByteSource) -> SpoolSource:
    """The profile in a Riegeli file as the bytes of one XSpace.

    Raises:
        ProfileError: `corrupt` where no record can be read, `disk_full`.
    """
    spool = Spool()
    try:
        budget = Budget(source.size, source.name)
        records, note = spool_records(source, spool, budget)
        whole = SpoolSource(spool, [(0, spool.size)], source.name, "")
        spans, broken = _merged(whole, spool, records, budget)
        if broken:
            what = "a record is damaged" if broken == 1 else f"{broken:,} records are damaged"
            note = f"{note}; {what}" if note else what
        if not spans:
            sentence = f"{source.name} is a Riegeli file without a profile: {note or 'its chunks hold nothing'}."
            raise ProfileError("corrupt", sentence, "copy or capture it again")
    except BaseException:
        spool.close()
        raise
    return SpoolSource(spool, spans, source.name, note)


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a message: number and wire type, where it begins with its tag, and where its payload lies."""

    number: int
    wire: int
    tag: int
    begin: int
    end: int


def _fields(source: ByteSource, begin: int, end: int) -> Iterator[_Field]:
    """The fields of a message that are whole."""
    for window in windows(source, begin, end):
        columns = (window.number, window.wire, window.tag, window.begin, window.end)
        for row in zip(*(column.tolist() for column in columns), strict=True):
            if row[-1] <= end:
                yield _Field(*row)


def _merged(source: ByteSource, spool: Spool, records: list[Span], budget: Budget) -> tuple[list[Span], int]:
    """Spans of the spool that are one XSpace, and how many places in the records could not be taken apart."""
    planes: dict[bytes, list[_Field]] = {}
    texts: dict[bytes, Span] = {}
    broken = 0
    for begin, end in records:
        at, share = begin, budget.part(end - begin, source.size)
        for part in _fields(source, begin, end):
            if not share.affords(1, _FIELD_BYTES, steps=1):
                break
            at = part.end
            if (part.number, part.wire) == (_PLANES, LEN):
                planes.setdefault(_name_of(source, part), []).append(part)
            elif part.number in _TEXTS:  # every record repeats the host's name, errors and warnings
                texts.setdefault(source.read(part.tag, part.end - part.tag), (part.tag, part.end))
        broken += at != end
    spans: list[Span] = []
    for parts in planes.values():
        merged = _merged_plane(source, spool, parts, budget) if len(parts) > 1 else None
        broken += merged is None and len(parts) > 1
        spans += [(part.tag, part.end) for part in parts] if merged is None else merged
    return _joined([*spans, *texts.values()]), broken


def _merged_plane(source: ByteSource, spool: Spool, parts: list[_Field], budget: Budget) -> list[Span] | None:
    """Spans that are one plane; None where a part is damaged, too large, or has numbers that no profile has."""
    size = sum(part.end - part.tag for part in parts)
    merge = _PlaneMerge(source, spool, budget.part(size, source.size))
    try:
        for part in parts:
            merge.add(part)
        return merge.spans()
    except (DecodeError, ValueError, TooLarge):
        return None


def _joined(spans: list[Span]) -> list[Span]:
    """Spans with those put together that touch."""
    out: list[Span] = []
    for begin, end in spans:
        if out and out[-1][1] == begin:
            out[-1] = (out[-1][0], end)
        elif end > begin:
            out.append((begin, end))
    return out


def _name_of(source: ByteSource, plane: _Field) -> bytes:
    """The name of a plane; it stands before what is large."""
    for part in _fields(source, plane.begin, plane.end):
        if part.number == _NAME:
            return source.read(part.begin, part.end - part.begin)
    return b""


@dataclass(frozen=True, slots=True)
class _LinePart:
    """What one record has of a line: its body, the clock's begin, and what ids in it become."""

    begin: int
    end: int
    timestamp_ns: int
    has_events: bool
    events: Ids
    stats: Ids


@dataclass(slots=True)
class _Table:
    """Metadata of a merged plane, of events or of stats.

    Attributes:
        number: the field of the plane.
        bodies: where each entry's body lies, by id.
        names: hash of each entry's name, by id; and the first id that has it, by the hash.
        seen: hashes of entries that are there as they are.
        added: entries that no record has so, as they are to be written.
        largest: id.
    """

    number: int
    bodies: dict[int, Span] = field(default_factory=dict)
    names: dict[int, bytes] = field(default_factory=dict)
    by_name: dict[bytes, int] = field(default_factory=dict)
    seen: set[bytes] = field(default_factory=set)
    added: list[Span] = field(default_factory=list)
    largest: int = 0

    def put(self, key: int, name: bytes, body: Span) -> None:
        self.bodies[key], self.names[key] = body, name
        self.by_name.setdefault(name, key)
        self.largest = max(self.largest, key)

    def target(self, key: int, name: bytes) -> int:
        """Under which id an entry of another record goes: its own, that of the same name, or a free one."""
        if self.names.get(key) == name:
            return key
        if name in self.by_name:
            return self.by_name[name]
        return self.largest + 1 if key in self.bodies else key


class _PlaneMerge:
    """Merges what several records have of one plane."""

    def __init__(self, source: ByteSource, spool: Spool, budget: Budget) -> None:
        self._source = source
        self._budget = budget
        self._spool = spool
        self._kept: list[Span] = []
        self._lines: dict[int, list[_LinePart]] = {}
        self._stats: dict[int, Span] = {}
        self._stat_table, self._event_table = _Table(_STAT_METADATA), _Table(_EVENT_METADATA)

    def add(self, plane: _Field) -> None:
        """Takes what a record has.

        Raises:
            DecodeError, ValueError: something in it is damaged.
        """
        is_first = not self._kept
        parts: dict[int, list[_Field]] = {_LINES: [], _STATS: [], _STAT_METADATA: [], _EVENT_METADATA: []}
        for part in _fields(self._source, plane.begin, plane.end):
            self._budget.takes(1, _FIELD_BYTES, steps=_STEPS_OF_FIELD)
            if part.wire == LEN and part.number in parts:
                parts[part.number].append(part)
            if is_first and part.number not in (_LINES, _STATS):
                self._kept.append((part.tag, part.end))
        stats = self._take_entries(self._stat_table, parts[_STAT_METADATA], is_first, {})
        events = self._take_entries(self._event_table, parts[_EVENT_METADATA], is_first, stats)
        for part in parts[_STATS]:
            self._take_stat(part, stats)
        for part in parts[_LINES]:
            numbers, has_events = self._line_head(part)
            line = _LinePart(part.begin, part.end, numbers.get(_TIMESTAMP, 0), has_events, events, stats)
            self._lines.setdefault(numbers.get(_LINE_ID, 0), []).append(line)

    def _take_entries(self, table: _Table, parts: list[_Field], is_first: bool, stats: Ids) -> Ids:
        """Takes a record's entries of a table; returns which ids they get where that is another than theirs.

        Args:
            table: what earlier records have.
            parts: the entries.
            is_first: whether there are no earlier ones.
            stats: what ids of stats in these entries become.
        """
        ids: Ids = {}
        for part in parts:
            payload = self._source.read(part.begin, part.end - part.begin)
            seen = _hash(payload)
            if not stats and seen in table.seen:
                continue
            key, begin, end = _entry(payload)
            body = payload[begin:end]
            name = _hash(_name_in(body))
            target = key if is_first else table.target(key, name)
            if target != key:
                ids[key] = target
            elif not stats:
                table.seen.add(seen)
            if is_first:
                table.put(key, name, (part.begin + begin, part.begin + end))
            else:
                self._merge_entry(table, target, name, body, stats)
        return ids

    def _merge_entry(self, table: _Table, key: int, name: bytes, body: bytes, stats: Ids) -> None:
        message: XStatMetadata | XEventMetadata
        if table.number == _STAT_METADATA:
            message = XStatMetadata.FromString(body)
        else:
            message = XEventMetadata.FromString(body)
            for stat in message.stats:
                _rename(stat, stats)
        message.id = key
        if key in table.bodies:
            begin, end = table.bodies[key]
            known = type(message).FromString(self._spool.read(begin, end - begin))
            if not _fill(known, message):
                return
            message = known
        new = message.SerializeToString()
        head = b"\x08" + encoded(key & (1 << 64) - 1) + b"\x12" + encoded(len(new))
        entry = self._spool.append(header(table.number, len(head) + len(new)) + head + new)
        table.added.append(entry)
        table.put(key, name, (entry[1] - len(new), entry[1]))

    def _take_stat(self, part: _Field, stats: Ids) -> None:
        """Takes a stat of the plane; the last record's counts."""
        stat = XStat.FromString(self._source.read(part.begin, part.end - part.begin))
        span = (part.tag, part.end)
        if stats:
            _rename(stat, stats)
            body = stat.SerializeToString()
            span = self._spool.append(header(_STATS, len(body)) + body)
        self._stats[stat.metadata_id] = span

    def _line_head(self, line: _Field) -> tuple[dict[int, int], bool]:
        """Numbers in the first bytes of a line, where writers put its id and the begin of its clock, and before events.

        Returns also whether there are any events.
        """
        numbers: dict[int, int] = {}
        has_events = False
        for window in windows(self._source, line.begin, min(line.end, line.begin + _HEAD)):
            for index in np.flatnonzero(window.wire == VARINT).tolist():
                numbers[int(window.number[index])] = varint(window.payload(index))
            has_events |= bool((window.number == _EVENTS).any())
        return numbers, has_events

    def spans(self) -> list[Span]:
        """Spans of the spool that are the plane, its tag and length included."""
        body = [*self._kept, *self._stats.values()]
        body += [*self._stat_table.added, *self._event_table.added]
        for parts in self._lines.values():
            spans = self._line_spans(parts)
            size = sum(end - begin for begin, end in spans)
            body += [self._spool.append(header(_LINES, size)), *spans]
        size = sum(end - begin for begin, end in body)
        return [self._spool.append(header(_PLANES, size)), *body]

    def _line_spans(self, parts: list[_LinePart]) -> list[Span]:
        """The body of a line. A row of bodies is a body: events follow each other, and of other fields the last counts.

        The earliest begin of a clock counts, of those with events.
        """
        start = min(part.timestamp_ns for part in [part for part in parts if part.has_events] or parts)
        spans = []
        for part in parts:
            if part.timestamp_ns == start and not part.events and not part.stats:
                spans.append((part.begin, part.end))
            else:
                spans += self._rewritten(part, start)
        return spans

    def _rewritten(self, part: _LinePart, start: int) -> list[Span]:
        """A part of a line with its events on the line's clock, and with the plane's ids; a window at a time."""
        spans = []
        shift = (part.timestamp_ns - start) * _PS
        for window in windows(self._source, part.begin, part.end):
            whole = int((window.end <= part.end).sum())
            if not whole:
                continue
            begin, end = int(window.tag[0]), int(window.end[whole - 1])
            line = XLine.FromString(self._source.read(begin, end - begin))
            if line.timestamp_ns:
                line.timestamp_ns = start
            for event in line.events:
                event.metadata_id = part.events.get(event.metadata_id, event.metadata_id)
                if shift and event.WhichOneof("data") != "num_occurrences":
                    event.offset_ps += shift
                for stat in event.stats if part.stats else ():
                    _rename(stat, part.stats)
            spans.append(self._spool.append(line.SerializeToString()))
        return spans


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _entry(payload: bytes) -> tuple[int, int, int]:
    """Key of a map entry, and where its value begins and ends."""
    key = begin = end = 0
    for part in _fields(MemorySource(payload), 0, len(payload)):
        if (part.number, part.wire) == (1, VARINT):
            key = varint(payload[part.begin : part.end])
        elif (part.number, part.wire) == (2, LEN):
            begin, end = part.begin, part.end
    return key, begin, end


def _name_in(body: bytes) -> bytes:
    """The name in metadata of an event or a stat."""
    parts = [part for part in _fields(MemorySource(body), 0, len(body)) if (part.number, part.wire) == (_NAME, LEN)]
    return body[parts[-1].begin : parts[-1].end] if parts else b""


def _fill(known: XStatMetadata | XEventMetadata, other: XStatMetadata | XEventMetadata) -> bool:
    """Puts into event metadata what it lacks and another has; whether that was anything."""
    if not isinstance(known, XEventMetadata) or not isinstance(other, XEventMetadata):
        return False
    before = known.ByteSize()
    known.display_name = known.display_name or other.display_name
    known.metadata = known.metadata or other.metadata
    if not known.stats:
        known.stats.extend(other.stats)
    return known.ByteSize() != before


def _rename(stat: XStat, ids: Mapping[int, int]) -> None:
    """Gives a stat the ids of the merged plane."""
    stat.metadata_id = ids.get(stat.metadata_id, stat.metadata_id)
    if stat.WhichOneof("value") == "ref_value":
        stat.ref_value = ids.get(stat.ref_value, stat.ref_value)
