"""The events of one line as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.proto import xplane_pb2
from tpuprof.parsers.xspace.core import EVENT_MALFORMED, HAS_OCCURRENCES, decode_events, stat_columns
from tpuprof.parsers.xspace.metadata import (
    KIND_DOUBLE,
    KIND_INT64,
    KIND_REF,
    KIND_STR,
    KIND_UINT64,
    STATS_OF_EVENT,
)
from tpuprof.parsers.xspace.source import ByteSource
from tpuprof.parsers.xspace.walk import LEN, Window

EVENTS_FIELD = 4


@dataclass(frozen=True, slots=True)
class StatColumn:
    """One stat of every event of a line, in the order of the events.

    Attributes:
        kind: uint8[n]; the value's field number in XStat (2 double, 3 uint64, 4 int64, 5 str, 6 bytes, 7 ref,
            8 compressed str), 1 for a stat without a value, 0 where the event has no such stat.
        value: int64[n]; the raw 64 bits of a number or reference; for text and bytes the offset in the file.
        length: uint32[n]; bytes of text and bytes values, else 0. Empty when no event has such a value.
    """

    kind: NDArray[np.uint8]
    value: NDArray[np.int64]
    length: NDArray[np.uint32]

    @property
    def is_number(self) -> NDArray[np.bool_]:
        """bool[n]: the stat is there and holds a number (double, uint64 or int64)."""
        return (self.kind >= KIND_DOUBLE) & (self.kind <= KIND_INT64)

    def integers(self, missing: int = 0) -> NDArray[np.int64]:
        """int64[n]: integer values, doubles cut to integers, `missing` elsewhere. A uint64 past 2^63 wraps.

        May be the column itself, so it is not to be written to.
        """
        if bool(((self.kind == KIND_UINT64) | (self.kind == KIND_INT64)).all()):
            return self.value
        out = np.where((self.kind == KIND_UINT64) | (self.kind == KIND_INT64), self.value, np.int64(missing))
        doubles = self.kind == KIND_DOUBLE
        if doubles.any():
            as_float = np.nan_to_num(self.value[doubles].view(np.float64), nan=missing, posinf=0, neginf=0)
            out[doubles] = np.clip(as_float, -(2.0**63), 2.0**63 - 1024).astype(np.int64)
        return out

    def floats(self, missing: float = float("nan")) -> NDArray[np.float64]:
        """float64[n]: numbers of any kind, `missing` elsewhere."""
        out = np.full(len(self.kind), missing)
        for kind, dtype in ((KIND_DOUBLE, np.float64), (KIND_UINT64, np.uint64), (KIND_INT64, np.int64)):
            chosen = self.kind == kind
            if chosen.any():
                out[chosen] = self.value[chosen].view(dtype)
        return out


@dataclass(frozen=True, slots=True)
class Events:
    """Columns over the n events of a line, in file order.

    Attributes:
        metadata_id: int32[n], or int64[n] where an id needs it.
        offset_ps: int64[n], from the line's timestamp; 0 for aggregated events, which have no place in time.
        duration_ps: int64[n], as recorded; may be 0, negative only in a damaged profile.
        begin, length: int64[n], uint32[n]: where each event lies in the file, for stats on demand; empty when the
            events were decoded without their places.
        num_occurrences: int64[n] for lines that hold aggregated events, else None.
        stats: columns of the stats that were asked for, by name; a name that the plane does not know is missing.
        malformed: events with damaged bytes; what came before the damage is kept.
    """

    metadata_id: NDArray[np.int32] | NDArray[np.int64]
    offset_ps: NDArray[np.int64]
    duration_ps: NDArray[np.int64]
    begin: NDArray[np.int64]
    length: NDArray[np.uint32]
    num_occurrences: NDArray[np.int64] | None
    stats: Mapping[str, StatColumn]
    malformed: int

    def __len__(self) -> int:
        return len(self.offset_ps)

    def message(self, source: ByteSource, index: int) -> xplane_pb2.XEvent:
        """One event as protobuf, every stat included.

        Raises:
            IndexError: there is no such event.
            google.protobuf.message.DecodeError: the event is damaged.
        """
        return xplane_pb2.XEvent.FromString(source.read(int(self.begin[index]), int(self.length[index])))


@dataclass(frozen=True, slots=True)
class Chunk:
    """Columns of the events in one stretch of a line; see `Events` and `StatColumn`.

    `begin` and `length` are empty when places were not asked for; `stat_length` is None without text or bytes.
    """

    metadata_id: NDArray[np.int32] | NDArray[np.int64]
    value: NDArray[np.int64]
    duration_ps: NDArray[np.int64]
    flags: NDArray[np.uint8]
    begin: NDArray[np.int64]
    length: NDArray[np.uint32]
    kind: NDArray[np.uint8]
    stat: NDArray[np.int64]
    stat_length: NDArray[np.uint32] | None


def _narrow(ids: NDArray[np.int64]) -> NDArray[np.int32] | NDArray[np.int64]:
    """Metadata ids in 32 bits where they fit, which they do in every profile seen."""
    fits = not len(ids) or (int(ids.min()) >= -(2**31) and int(ids.max()) < 2**31)
    return ids.astype(np.int32) if fits else ids


def decode_window(window: Window, stat_ids: NDArray[np.int64], places: bool) -> tuple[Chunk, int]:
    """Decodes the events that lie whole in a window.

    Returns:
        The chunk, and the file offset of the first event that reaches past the window, or -1.
    """
    chosen = (window.number == EVENTS_FIELD) & (window.wire == LEN)
    whole = window.end <= window.base + len(window.data)
    beyond = np.flatnonzero(chosen & ~whole)
    resume = int(window.tag[beyond[0]]) if len(beyond) else -1
    chosen &= whole
    every = bool(chosen.all())
    begin = (window.begin if every else window.begin[chosen]) - window.base
    end = (window.end if every else window.end[chosen]) - window.base
    columns = decode_events(window.data, begin, end)
    stats = stat_columns(window.data, begin, end, STATS_OF_EVENT, stat_ids)
    in_file = (stats.kind >= KIND_STR) & (stats.kind != KIND_REF)
    textual = bool(in_file.any())
    return (
        Chunk(
            metadata_id=_narrow(columns.metadata_id),
            value=columns.offset_ps,
            duration_ps=columns.duration_ps,
            flags=columns.flags,
            begin=begin + window.base if places else _NO_INTS,
            length=(end - begin).astype(np.uint32) if places else _NO_LENGTHS,
            kind=stats.kind,
            stat=np.where(in_file, stats.value + window.base, stats.value) if textual else stats.value,
            stat_length=stats.length.astype(np.uint32) if textual else None,
        ),
        resume,
    )


def join_chunks(chunks: Sequence[Chunk], stat_names: Sequence[str]) -> Events:
    """Puts chunks together; `stat_names` are the names of the stat rows, in order."""
    if not chunks:
        chunks, stat_names = [_EMPTY], ()
    flags = [chunk.flags for chunk in chunks]
    value = np.concatenate([chunk.value for chunk in chunks])
    occurrences = None
    if any((part & HAS_OCCURRENCES).any() for part in flags):
        aggregated = (np.concatenate(flags) & HAS_OCCURRENCES) != 0
        occurrences = np.where(aggregated, value, 0)
        value = np.where(aggregated, 0, value)
    textual = any(chunk.stat_length is not None for chunk in chunks)
    stats = {}
    for row, name in enumerate(stat_names):
        stats[name] = StatColumn(
            kind=np.concatenate([chunk.kind[row] for chunk in chunks]),
            value=np.concatenate([chunk.stat[row] for chunk in chunks]),
            length=np.concatenate([_lengths(chunk, row) for chunk in chunks]) if textual else _NO_LENGTHS,
        )
    return Events(
        metadata_id=np.concatenate([chunk.metadata_id for chunk in chunks]),
        offset_ps=value,
        duration_ps=np.concatenate([chunk.duration_ps for chunk in chunks]),
        begin=np.concatenate([chunk.begin for chunk in chunks]),
        length=np.concatenate([chunk.length for chunk in chunks]),
        num_occurrences=occurrences,
        stats=stats,
        malformed=sum(int(((part & EVENT_MALFORMED) != 0).sum()) for part in flags),
    )


def _lengths(chunk: Chunk, row: int) -> NDArray[np.uint32]:
    if chunk.stat_length is None:
        return np.zeros(len(chunk.value), np.uint32)
    row_lengths: NDArray[np.uint32] = chunk.stat_length[row]
    return row_lengths


_NO_INTS = np.zeros(0, np.int64)
_NO_LENGTHS = np.zeros(0, np.uint32)
_EMPTY = Chunk(
    metadata_id=np.zeros(0, np.int32),
    value=_NO_INTS,
    duration_ps=_NO_INTS,
    flags=np.zeros(0, np.uint8),
    begin=_NO_INTS,
    length=_NO_LENGTHS,
    kind=np.zeros((0, 0), np.uint8),
    stat=np.zeros((0, 0), np.int64),
    stat_length=None,
)
