"""Event metadata and stat metadata of a plane; it reads names at once and everything else on demand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from struct import unpack
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, positions
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.formats.xspace.core.api import split_fields, stat_columns
from tpuprof.parsers.formats.xspace.core.types import StatFields
from tpuprof.parsers.formats.xspace.walk import FIXED64, LEN, VARINT, text, varint, varints

if TYPE_CHECKING:  # protobuf takes 15 ms to import
    from tpuprof.parsers.formats.proto import xplane_pb2

StatValue: TypeAlias = int | float | str | bytes | None
"""A decoded stat: double, uint64, int64, text (a reference is resolved to its text), bytes, or None without a value."""

STATS_OF_EVENT = 4
STATS_OF_EVENT_METADATA = 5

# XStat's value fields
KIND_DOUBLE, KIND_UINT64, KIND_INT64, KIND_STR, KIND_BYTES, KIND_REF, KIND_COMPRESSED = range(2, 9)


def decode_stat(payload: bytes) -> tuple[int, int, int | float | bytes] | None:
    """Reads one XStat: its metadata id, kind (0 without a value) and value; None where it is damaged."""
    fields = split_fields(payload)
    if fields.status or fields.next != len(payload):
        return None
    stat_id, kind = 0, 0
    out: int | float | bytes = 0
    spans = (column.tolist() for column in (fields.number, fields.wire, fields.begin, fields.end))
    for number, wire, begin, end in zip(*spans, strict=True):
        data = payload[begin:end]
        if (number, wire) == (1, VARINT):
            stat_id = varint(data)
        elif (number, wire) == (KIND_DOUBLE, FIXED64):
            kind, out = number, float(unpack("<d", data)[0])
        elif wire == VARINT and number in (KIND_UINT64, KIND_INT64, KIND_REF):
            kind, out = number, varint(data, signed=number == KIND_INT64)
        elif wire == LEN and number in (KIND_STR, KIND_BYTES, KIND_COMPRESSED):
            kind, out = number, data
    return stat_id, kind, out


@dataclass(frozen=True)
class MetadataTable(Sized):
    """The entries of one metadata map (event or stat metadata), still encoded.

    Attributes:
        body: the encoded messages, one after the other.
        ids: metadata ids, ascending, int64[n].
        begin, end: where each message lies in `body`, int64[n].
        name_begin, name_end: where each message's name (field 2) lies, int64[n]; equal where it has none.
        display_begin, display_end: the same for the display name (field 4; description of stat metadata is field 3).
    """

    sized_by = "ids"
    body: bytes
    ids: Int64s
    begin: Int64s
    end: Int64s
    name_begin: Int64s
    name_end: Int64s
    display_begin: Int64s
    display_end: Int64s

    def row(self, metadata_id: int) -> int | None:
        """Row of a metadata id, or None when the profile has no such entry."""
        row = int(np.searchsorted(self.ids, metadata_id))
        return row if row < len(self.ids) and self.ids[row] == metadata_id else None

    def rows(self, metadata_ids: Int64s) -> Int64s:
        """Rows of many ids, -1 where there is no entry."""
        return positions(metadata_ids, self.ids)

    def name(self, row: int) -> str:
        """Name of a row (for an HLO op: its full text)."""
        return text(self.body[self.name_begin[row] : self.name_end[row]])

    def label(self, metadata_id: int) -> str:
        """Name of an entry; ``event 17`` where the profile has lost it, or never had it."""
        row = self.row(metadata_id)
        return (self.name(row) if row is not None else "") or f"event {metadata_id}"

    def labels(self, metadata_ids: Int64s) -> list[str]:
        rows = self.rows(metadata_ids)
        known = rows[rows >= 0]
        spans = zip(self.name_begin[known].tolist(), self.name_end[known].tolist(), strict=True)
        names = iter([text(self.body[begin:end]) for begin, end in spans])
        each = zip(metadata_ids.tolist(), rows.tolist(), strict=True)
        return [(next(names) if row >= 0 else "") or f"event {number}" for number, row in each]

    def display_name(self, row: int) -> str:
        """Display name of a row (for an HLO op: its short name), often empty."""
        return text(self.body[self.display_begin[row] : self.display_end[row]])

    def find_names(self, names: Sequence[str]) -> dict[str, int]:
        """Ids of the entries with these names; the lowest id where a name stands twice."""
        wanted = {name.encode(): name for name in names}
        lengths = self.name_end - self.name_begin
        ids: dict[str, int] = {}
        for length in {len(key) for key in wanted}:
            rows = np.flatnonzero(lengths == length)
            for begin, number in zip(self.name_begin[rows].tolist(), self.ids[rows].tolist(), strict=True):
                name = wanted.get(self.body[begin : begin + length])
                if name is not None:
                    ids.setdefault(name, number)
        return ids

    @cached_property
    def _ids_by_name(self) -> dict[bytes, int]:
        spans = zip(self.name_begin[::-1].tolist(), self.name_end[::-1].tolist(), strict=True)
        return dict(zip([self.body[begin:end] for begin, end in spans], self.ids[::-1].tolist(), strict=True))

    def ids_of(self, names: Sequence[str]) -> dict[str, int]:
        """As `find_names`, in the order of the names: for tables of short names, which are kept."""
        encoded = [(name, name.encode()) for name in names]
        return {name: self._ids_by_name[key] for name, key in encoded if key in self._ids_by_name}

    def stats(self, wanted: Int64s, rows: Int64s | None = None) -> StatFields:
        """Columns of the stats of event metadata: arrays [k, n] for k stat ids over all rows, or over `rows`."""
        begin = self.begin if rows is None else self.begin[rows]
        end = self.end if rows is None else self.end[rows]
        return stat_columns(self.body, begin, end, STATS_OF_EVENT_METADATA, wanted)

    def message(self, row: int) -> xplane_pb2.XEventMetadata:
        """One entry of event metadata as protobuf: every field, stats and child ids included.

        Raises:
            google.protobuf.message.DecodeError: the entry is damaged.
        """
        from tpuprof.parsers.formats.proto import xplane_pb2  # noqa: PLC0415

        return xplane_pb2.XEventMetadata.FromString(self.body[self.begin[row] : self.end[row]])


def _joined(body: bytes, begin: Int64s, end: Int64s) -> tuple[bytes, Int64s]:
    """Copies spans one after the other; returns the bytes and the n + 1 borders."""
    borders = np.zeros(len(begin) + 1, np.int64)
    np.cumsum(end - begin, out=borders[1:])
    joined = b"".join([body[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)])
    return joined, borders


def _intact(body: bytes, begin: Int64s, end: Int64s) -> Bools:
    """Which messages can be split to their end; slow (one call per message), so only for joined messages that fail."""
    good = np.zeros(len(begin), np.bool_)
    for row, (a, b) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        fields = split_fields(body[a:b])
        good[row] = fields.status == 0 and fields.next == b - a
    return good


@dataclass(frozen=True, slots=True)
class Messages:
    """The fields of many messages, each copied behind the other.

    Attributes:
        body: the intact messages; message i lies at `borders[i]:borders[i + 1]`.
        borders: int64[n + 1].
        number, wire, begin, end: the fields of all messages, as in `core.Fields`.
        owner: int64; the message of each field.
        kept: bool; which of the requested messages are intact.
    """

    body: bytes
    borders: Int64s
    number: NDArray[np.uint32]
    wire: NDArray[np.uint8]
    begin: Int64s
    end: Int64s
    owner: Int64s
    kept: Bools

    def last(self, number: int) -> tuple[Int64s, Int64s]:
        """Span of each message's last length-delimited field of that number; empty where it has none."""
        n = len(self.borders) - 1
        begin, end = np.zeros(n, np.int64), np.zeros(n, np.int64)
        chosen = (self.number == number) & (self.wire == LEN)
        begin[self.owner[chosen]] = self.begin[chosen]  # of repeated owners numpy keeps the last, as protobuf does
        end[self.owner[chosen]] = self.end[chosen]
        return begin, end

    def parts(self, number: int) -> list[bytes]:
        """The payloads of all length-delimited fields of that number, in their order."""
        rows = np.flatnonzero((self.number == number) & (self.wire == LEN))
        return [self.body[a:b] for a, b in zip(self.begin[rows].tolist(), self.end[rows].tolist(), strict=True)]

    def integers(self, number: int, default: int = 0) -> Int64s:
        """int64[n]: each message's last varint of that number; `default` where it has none."""
        chosen = (self.number == number) & (self.wire == VARINT)
        out = np.full(len(self.borders) - 1, default, np.int64)
        out[self.owner[chosen]] = varints(self.body, self.begin[chosen], self.end[chosen])
        return out


def split_all(body: bytes, begin: Int64s, end: Int64s) -> Messages:
    """Fields of many messages in one call: a row of message bodies is itself a valid message body.

    One damaged message would spoil the ones behind it, so it finds damaged messages and leaves them out.
    """
    joined, borders = _joined(body, begin, end)
    fields = split_fields(joined)
    kept = np.ones(len(begin), np.bool_)
    ends = np.append(np.int64(0), fields.end)
    nearest = ends[np.minimum(np.searchsorted(ends, borders), len(ends) - 1)]
    if fields.status or fields.next != len(joined) or not np.array_equal(nearest, borders):
        kept = _intact(joined, borders[:-1], borders[1:])
        joined, borders = _joined(joined, borders[:-1][kept], borders[1:][kept])
        fields = split_fields(joined)
    # a field's tag lies inside its message even where its payload is empty and ends it
    tag = np.append(np.int64(0), fields.end[:-1])[: len(fields.end)]
    owner = np.searchsorted(borders, tag, side="right") - 1
    return Messages(joined, borders, fields.number, fields.wire, fields.begin, fields.end, owner, kept)


def read_table(body: bytes, begin: Int64s, end: Int64s, display_field: int = 4) -> MetadataTable:
    """Reads the map entries at `body[begin:end]` (key = 1, message = 2).

    Args:
        display_field: field number of the second text of the message: 4 for event metadata, 3 for stat metadata.

    Later entries with the same key win, as in protobuf. It leaves out damaged entries.
    """
    entries = split_all(body, begin, end)
    keys = entries.integers(1)
    order = np.argsort(keys, kind="stable")
    if len(order):
        order = order[np.append(np.diff(keys[order]) != 0, True)]
    value_begin, value_end = entries.last(2)
    messages = split_all(entries.body, value_begin[order], value_end[order])
    return MetadataTable(
        messages.body,
        keys[order][messages.kept],
        messages.borders[:-1],
        messages.borders[1:],
        *messages.last(2),
        *messages.last(display_field),
    )
