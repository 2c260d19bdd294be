"""XEvent bytes from numpy columns: millions of events without one Python object each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.support.files.wire import varint

Column = npt.NDArray[np.uint64]
CHUNK = 1 << 16

UINT64_VALUE = 3
INT64_VALUE = 4
REF_VALUE = 7


@dataclass(frozen=True, slots=True)
class StatColumn:
    """One stat of every event: its metadata id, the field of its value (`UINT64_VALUE` …) and the values.

    `present` leaves it out of the events where it is False.
    """

    metadata_id: int
    field: int
    values: Column
    present: npt.NDArray[np.bool_] | None = None


class _Rows:
    """A table of bytes, one row an event, grown column by column; unused cells are masked."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.cells: list[npt.NDArray[np.uint8]] = []
        self.used: list[npt.NDArray[np.bool_]] = []
        self.length = np.zeros(count, np.uint64)

    def _push(self, cells: npt.NDArray[np.uint8], used: npt.NDArray[np.bool_]) -> None:
        self.cells.append(cells)
        self.used.append(used)
        self.length += used.sum(axis=1, dtype=np.uint64)

    def constant(self, data: bytes, present: npt.NDArray[np.bool_] | None = None) -> None:
        cells = np.broadcast_to(np.frombuffer(data, np.uint8), (self.count, len(data)))
        where = np.ones(self.count, np.bool_) if present is None else present
        self._push(cells, np.broadcast_to(where[:, None], cells.shape))

    def varint(self, values: Column, present: npt.NDArray[np.bool_] | None = None) -> None:
        top = int(values.max()) if len(values) else 0
        width = max(1, (top.bit_length() + 6) // 7)
        shifts = np.arange(width, dtype=np.uint64) * np.uint64(7)
        groups = values[:, None] >> shifts
        used = groups > 0
        used[:, 0] = True
        cells = (groups & np.uint64(127)).astype(np.uint8)
        cells[:, :-1][used[:, 1:]] |= np.uint8(128)
        self._push(cells, used if present is None else used & present[:, None])

    def append(self, other: _Rows) -> None:
        self.cells += other.cells
        self.used += other.used
        self.length += other.length

    def to_bytes(self) -> bytes:
        cells, used = np.concatenate(self.cells, axis=1), np.concatenate(self.used, axis=1)
        return cells[used].tobytes()


def events(metadata: Column, offset: Column, duration: Column, stats: Sequence[StatColumn] = ()) -> list[bytes]:
    """Events of a line, encoded as `XLine.events` fields, in chunks of bytes."""
    return [
        _chunk(slice(begin, begin + CHUNK), metadata, offset, duration, stats)
        for begin in range(0, len(metadata), CHUNK)
    ]


def _chunk(at: slice, metadata: Column, offset: Column, duration: Column, stats: Sequence[StatColumn]) -> bytes:
    count = len(metadata[at])
    body = _Rows(count)
    for tag, values in ((b"\x08", metadata), (b"\x10", offset), (b"\x18", duration)):
        body.constant(tag)
        body.varint(values[at])
    for stat in stats:
        present = None if stat.present is None else stat.present[at]
        inner = _Rows(count)
        inner.constant(b"\x08" + varint(stat.metadata_id) + varint(stat.field << 3), present)
        inner.varint(stat.values[at], present)
        body.constant(b"\x22", present)
        body.varint(inner.length, present)
        body.append(inner)
    rows = _Rows(count)
    rows.constant(b"\x22")
    rows.varint(body.length)
    rows.append(body)
    return rows.to_bytes()
