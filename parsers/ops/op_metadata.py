"""The stats of HLO ops in a plane's event metadata, as columns over chosen rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, distinct
from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.metadata import (
    KIND_BYTES,
    KIND_DOUBLE,
    KIND_INT64,
    KIND_REF,
    KIND_STR,
    KIND_UINT64,
    MetadataTable,
)
from tpuprof.parsers.formats.xspace.walk import text

_HBM, _CMEM, _VMEM = 1, 2, 3
_READ, _WRITE = 1, 2

TRAFFIC = ("hbm", "on_chip_read", "on_chip_write", "cmem_read", "cmem_write", "vmem_read", "vmem_write")
"""Columns of memory traffic. On-chip is every memory except HBM, so CMEM and VMEM are parts of it."""


_MOST = float(2**64)


def is_count(values: Floats) -> Bools:
    """bool[n]: which values can count FLOPs or bytes: not negative, and no more than 64 bits hold."""
    counts: Bools = (values >= 0) & (values <= _MOST)
    return counts


@dataclass(frozen=True, slots=True)
class OpSource:
    """The metadata of one plane's events, and the names of their stats. It outlives the trace that it comes from."""

    events: MetadataTable
    stats: MetadataTable


class MetadataStats:
    """Columns of event-metadata stats for chosen rows.

    Args:
        source: the plane's metadata.
        rows: int64[n], rows of `source.events`, -1 for an op without metadata.
        names: the stats to read.
    """

    def __init__(self, source: OpSource, rows: Int64s, names: Sequence[str]) -> None:
        self._source = source
        self._known = np.flatnonzero(rows >= 0)
        self._n = len(rows)
        ids = source.stats.find_names(names)
        self._at = {name: place for place, name in enumerate(ids)}
        self._fields = source.events.stats(np.array(list(ids.values()), np.int64), rows[self._known])

    def _column(self, name: str) -> tuple[NDArray[np.uint8], Int64s, Int64s]:
        index = self._at.get(name)
        if index is None:
            empty = np.zeros(len(self._known), np.int64)
            return np.zeros(len(self._known), np.uint8), empty, empty
        return self._fields.kind[index], self._fields.value[index], self._fields.length[index]

    def unsigned(self, name: str) -> tuple[NDArray[np.uint64], Bools]:
        """uint64[n] ids, and bool[n], which of them are there and not 0."""
        kind, value, _ = self._column(name)
        out = np.zeros(self._n, np.uint64)
        out[self._known] = np.where((kind == KIND_UINT64) | (kind == KIND_INT64), value, 0).view(np.uint64)
        return out, out != 0

    def number(self, name: str) -> Floats:
        """float64[n] counts; NaN where the stat is missing, of another type or no count (see `is_count`)."""
        kind, value, _ = self._column(name)
        out = np.full(self._n, np.nan)
        known = np.full(len(self._known), np.nan)
        for code, dtype in ((KIND_DOUBLE, np.float64), (KIND_UINT64, np.uint64), (KIND_INT64, np.int64)):
            chosen = kind == code
            known[chosen] = value[chosen].view(dtype)
        known[~is_count(known)] = np.nan
        out[self._known] = known
        return out

    def _bytes(self, name: str) -> list[bytes | None]:
        out: list[bytes | None] = [None] * self._n
        kind, value, length = self._column(name)
        body = self._source.events.body
        for row in np.flatnonzero((kind == KIND_STR) | (kind == KIND_BYTES)):
            begin = int(value[row])
            out[self._known[row]] = body[begin : begin + int(length[row])]
        return out

    def texts(self, name: str) -> list[str | None]:
        """The text of each row; it resolves references."""
        out = [None if raw is None else text(raw) for raw in self._bytes(name)]
        kind, value, _ = self._column(name)
        names: dict[int, str | None] = {}
        for chosen_row in np.flatnonzero(kind == KIND_REF):
            reference = int(value[chosen_row])
            if reference not in names:
                row = self._source.stats.row(reference)
                names[reference] = None if row is None else self._source.stats.name(row)
            out[self._known[chosen_row]] = names[reference]
        return out

    def is_one_of(self, name: str, words: Collection[str]) -> Bools:
        """bool[n]: whether each row's text is one of some words."""
        kind, value, length = self._column(name)
        body, stats = self._source.events.body, self._source.stats
        wanted = {word.encode() for word in words}
        known = np.zeros(len(self._known), np.bool_)
        for reference in distinct(value[kind == KIND_REF]).tolist():
            entry = stats.row(reference)
            if entry is not None and stats.name(entry) in words:
                known |= (kind == KIND_REF) & (value == reference)
        for row in np.flatnonzero((kind == KIND_STR) | (kind == KIND_BYTES)).tolist():
            begin = int(value[row])
            known[row] = body[begin : begin + int(length[row])] in wanted
        out = np.zeros(self._n, np.bool_)
        out[self._known] = known
        return out

    def memory_access(self) -> Floats:
        """float64[n, len(TRAFFIC)]: bytes of one occurrence by memory, NaN where there is no breakdown."""
        out = np.full((self._n, len(TRAFFIC)), np.nan)
        parsed: dict[bytes, tuple[int, ...] | None] = {}
        for row, raw in enumerate(self._bytes("memory_access_breakdown")):
            if raw is None:
                continue
            if raw not in parsed:
                parsed[raw] = _traffic(raw)
            traffic = parsed[raw]
            if traffic is not None:
                out[row] = traffic
        return out


def _traffic(raw: bytes) -> tuple[int, ...] | None:
    """Reads one breakdown, in the order of TRAFFIC; None where it is damaged."""
    try:
        access = xplane_pb2.MemoryAccessBreakdown.FromString(raw).memory_accessed
    except DecodeError:
        return None
    hbm = 0
    on_chip, cmem, vmem = [0, 0, 0], [0, 0, 0], [0, 0, 0]
    for entry in access:
        # neither read nor write: HBM has one peak for both, so it counts there and nowhere else
        direction = entry.operation_type if entry.operation_type in (_READ, _WRITE) else 0
        if entry.memory_space == _HBM:
            hbm += entry.bytes_accessed
            continue
        on_chip[direction] += entry.bytes_accessed
        if entry.memory_space in (_CMEM, _VMEM):
            (cmem if entry.memory_space == _CMEM else vmem)[direction] += entry.bytes_accessed
    return hbm, on_chip[_READ], on_chip[_WRITE], cmem[_READ], cmem[_WRITE], vmem[_READ], vmem[_WRITE]
