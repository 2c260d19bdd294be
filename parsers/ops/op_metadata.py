"""The stats of HLO ops in a plane's event metadata, as columns over chosen rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, distinct, positions
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.metadata import (
    KIND_BYTES,
    KIND_DOUBLE,
    KIND_INT64,
    KIND_REF,
    KIND_STR,
    KIND_UINT64,
    MetadataTable,
    split_all,
)
from tpuprof.parsers.formats.xspace.walk import LEN, text

_HBM, _CMEM, _VMEM = 1, 2, 3
_READ, _WRITE = 1, 2

TRAFFIC = ("hbm", "on_chip_read", "on_chip_write", "cmem_read", "cmem_write", "vmem_read", "vmem_write")
"""Columns of memory traffic. On-chip is every memory except HBM, so CMEM and VMEM are parts of it."""

_MOST = float(2**64)


def is_count(values: Floats) -> Bools:
    """bool[n]: which values can count FLOPs or bytes: not negative, and no more than 64 bits hold."""
    return (values >= 0) & (values <= _MOST)


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
        ids = source.stats.ids_of(names)
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

    def has(self, name: str) -> Bools:
        """bool[n]: which rows have the stat, whatever its value."""
        out = np.zeros(self._n, np.bool_)
        out[self._known] = self._column(name)[0] > 0
        return out

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

    def raw(self, name: str) -> list[bytes | None]:
        """The bytes of each row; None where the stat is missing or a number."""
        out: list[bytes | None] = [None] * self._n
        kind, value, length = self._column(name)
        body = self._source.events.body
        for row in np.flatnonzero((kind == KIND_STR) | (kind == KIND_BYTES)):
            begin = int(value[row])
            out[self._known[row]] = body[begin : begin + int(length[row])]
        return out

    def texts(self, name: str) -> list[str | None]:
        out = [None if raw is None else text(raw) for raw in self.raw(name)]
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
        references = distinct(value[kind == KIND_REF])
        entries = zip(references.tolist(), stats.rows(references).tolist(), strict=True)
        chosen = [reference for reference, entry in entries if entry >= 0 and stats.name(entry) in words]
        known = (kind == KIND_REF) & (positions(value, np.array(chosen, np.int64)) >= 0)
        for row in np.flatnonzero((kind == KIND_STR) | (kind == KIND_BYTES)).tolist():
            begin = int(value[row])
            known[row] = body[begin : begin + int(length[row])] in wanted
        out = np.zeros(self._n, np.bool_)
        out[self._known] = known
        return out

    def memory_access(self) -> Floats:
        """float64[n, len(TRAFFIC)]: bytes of one occurrence by memory, NaN where there is no breakdown."""
        out = np.full((self._n, len(TRAFFIC)), np.nan)
        raws = self.raw("memory_access_breakdown")
        distinct_raws = dict.fromkeys(raw for raw in raws if raw is not None)
        number = {raw: place for place, raw in enumerate(distinct_raws)}
        rows = [row for row, raw in enumerate(raws) if raw is not None]
        if rows:
            out[rows] = _traffic(list(number))[[number[raw] for raw in raws if raw is not None]]
        return out


def _traffic(raws: Sequence[bytes]) -> Floats:
    """float64[n, len(TRAFFIC)]: what these breakdowns say; NaN for a damaged one."""
    borders = np.cumsum([0, *map(len, raws)])
    messages = split_all(b"".join(raws), borders[:-1], borders[1:])
    chosen = (messages.number == 1) & (messages.wire == LEN)
    accesses = split_all(messages.body, messages.begin[chosen], messages.end[chosen])
    of_each = np.flatnonzero(messages.kept)[messages.owner[chosen]]
    owner = of_each[accesses.kept]
    operation, memory, size = accesses.integers(1), accesses.integers(2), accesses.integers(3)
    size = size.view(np.uint64).astype(np.float64)
    ways = (operation & 0xFFFFFFFF == _READ, operation & 0xFFFFFFFF == _WRITE)
    # neither read nor write: HBM has one peak for both, so it counts there and nowhere else
    on_chip = [(memory != _HBM) & way for way in ways]
    columns = (memory == _HBM, *on_chip, *(way & (memory == of) for of in (_CMEM, _VMEM) for way in on_chip))
    sums = [np.bincount(owner[of], size[of], minlength=len(raws)) for of in columns]
    out = np.stack(sums, axis=1).astype(np.float64)
    out[~messages.kept] = np.nan
    out[of_each[~accesses.kept]] = np.nan
    return out
