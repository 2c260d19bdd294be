"""Writes stats, and the events of a line from columns, as protobuf messages of an XSpace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import pack, unpack
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.formats.proto.xplane_pb2 import XLine, XStat
from tpuprof.parsers.formats.xspace.metadata import KIND_DOUBLE, KIND_REF, KIND_UINT64

_AT_ONCE = 1 << 14
_FIELDS = {number: field.name for number, field in XStat.DESCRIPTOR.fields_by_number.items()}


class Column(NamedTuple):
    """A stat of a line's events.

    Attributes:
        number: its metadata id.
        rows: int64[k]; the events that have it, ascending.
        kind: uint8[k]; which field of XStat holds it: a double, an integer or a reference.
        value: int64[k]; a double by its bits.
    """

    number: int
    rows: Int64s
    kind: NDArray[np.uint8]
    value: Int64s


def set_value(stat: XStat, kind: int, value: int | bytes) -> None:
    """Gives a stat its value: a text, an integer by the 64 bits that hold it, or a double by its bits."""
    held: float | bytes = value
    if isinstance(value, int) and kind == KIND_DOUBLE:
        held = unpack("<d", pack("<q", value))[0]
    elif isinstance(value, int) and kind in (KIND_UINT64, KIND_REF):
        held = value & (1 << 64) - 1
    setattr(stat, _FIELDS[kind], held)


def events(ids: Int64s, offset_ps: Int64s, duration_ps: Int64s, columns: Sequence[Column]) -> Iterator[bytes]:
    """The events of a line, some thousand at a time."""
    for first in range(0, len(ids), _AT_ONCE):
        chosen = slice(first, first + _AT_ONCE)
        times = (column[chosen].tolist() for column in (ids, offset_ps, duration_ps))
        line = XLine()
        made = [
            line.events.add(metadata_id=number, offset_ps=offset, duration_ps=duration)
            for number, offset, duration in zip(*times, strict=True)
        ]
        for column in columns:
            part = slice(*np.searchsorted(column.rows, (first, first + len(made))).tolist())
            cells = ((column.rows[part] - first).tolist(), column.kind[part].tolist(), column.value[part].tolist())
            for row, kind, value in zip(*cells, strict=True):
                set_value(made[row].stats.add(metadata_id=column.number), kind, value)
        yield line.SerializeToString()
