"""The buffers of a memory space as CSV; the headings are the keys of JSON."""

from __future__ import annotations

from typing import cast

from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.tui.pages.memory.report.rows import BUFFER_KEYS, buffer_record, ordered_rows
from tpuprof.tui.report.csv import Cell, table


def memory_csv(space: SpaceMemory | None, limit: int = 0) -> str:
    """The buffers, those in memory at the peak first, by size; only the headings where no module has figures."""
    rows = () if space is None else ordered_rows(space, limit)
    records = (buffer_record(space.buffers[row]).values() for row in rows) if space is not None else ()
    return table(BUFFER_KEYS, (cast("tuple[Cell, ...]", tuple(record)) for record in records))
