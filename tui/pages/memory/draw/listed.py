"""What the memory tab's list shows: the buffers in memory at a point, in order, or groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.memory.model import Buffer, SpaceMemory
from tpuprof.parsers.memory.modules.groups import Group, group_rows, padding_of

Order = Literal["size", "padding", "program"]
Grouping = Literal["none", "source", "scope", "category"]

ORDERS: tuple[Order, ...] = ("size", "padding", "program")
GROUPINGS: tuple[Grouping, ...] = ("none", "source", "scope", "category")


@dataclass(frozen=True, slots=True)
class MemoryList:
    """The list, made once for a point, an order, a grouping and a filter.

    Attributes:
        entries: rows of `SpaceMemory.stays`, or groups of them.
        point: whose buffers these are.
        in_memory_bytes: all that is in memory at the point, whatever the filter leaves.
        in_memory_count: buffers in memory at the point.
        shown_bytes: what the filter leaves of these bytes.
        shown_count: buffers that the filter leaves.
        most_bytes: the largest entry's size.
        order, grouping, wanted: as asked for.
    """

    entries: tuple[int, ...] | tuple[Group, ...]
    point: int
    in_memory_bytes: int
    in_memory_count: int
    shown_bytes: int
    shown_count: int
    most_bytes: int
    order: Order = "size"
    grouping: Grouping = "none"
    wanted: str = ""

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def rows(self) -> Int64s:
        """int64: the buffers' rows in order; none for a list of groups."""
        return np.array([entry for entry in self.entries if isinstance(entry, int)], np.int64)

    def rows_of(self, at: int) -> Int64s:
        """int64: rows of `SpaceMemory.stays` behind an entry; none for an index that the list does not have."""
        if not 0 <= at < len(self.entries):
            return np.zeros(0, np.int64)
        entry = self.entries[at]
        return entry.rows if isinstance(entry, Group) else np.array([entry], np.int64)

    def row_of(self, at: int) -> int | None:
        """The buffer's row; None for a group and for an index that the list does not have."""
        entry = self.entries[at] if 0 <= at < len(self.entries) else None
        return entry if isinstance(entry, int) else None

    def group_of(self, at: int) -> Group | None:
        """The group; None for a buffer and for an index that the list does not have."""
        entry = self.entries[at] if 0 <= at < len(self.entries) else None
        return entry if isinstance(entry, Group) else None


def memory_list(page: SpaceMemory, point: int, order: Order, grouping: Grouping, wanted: str = "") -> MemoryList:
    """The buffers in memory at a point.

    Args:
        wanted: keeps what has this text, in any case, in its name, shape, framework op or source; each buffer in
            memory is described for that, as it is for a grouping by source or scope.
    """
    rows = page.at(min(max(point, 0), page.points - 1))
    size = page.stays.size_bytes[rows]
    total, count = int(size.sum()), len(rows)
    if wanted:
        needle = wanted.casefold()
        kept = [at for at, row in enumerate(rows.tolist()) if _matches(page.buffers[row], needle)]
        rows, size = rows[kept], size[kept]
    entries: tuple[int, ...] | tuple[Group, ...]
    if grouping == "none":
        rows = rows[_order(page, rows, order)]
        entries = tuple(rows.tolist())
        most = int(size.max(initial=0))
    else:
        entries = _ordered(page, group_rows(page, rows, grouping), order)
        most = max((group.size_bytes for group in entries), default=0)
    return MemoryList(
        entries=entries,
        point=point,
        in_memory_bytes=total,
        in_memory_count=count,
        shown_bytes=int(size.sum()),
        shown_count=len(rows),
        most_bytes=most,
        order=order,
        grouping=grouping,
        wanted=wanted,
    )


def _matches(buffer: Buffer, needle: str) -> bool:
    texts = (buffer.name, buffer.shape, buffer.framework_op, buffer.source)
    return any(text is not None and needle in text.casefold() for text in texts)


def _order(page: SpaceMemory, rows: Int64s, order: Order) -> Int64s:
    """The order of rows; what is equal stays in program order."""
    stays = page.stays
    if order == "program":
        return np.argsort(stays.born[rows], kind="stable")
    if order == "padding":
        return np.lexsort((-stays.size_bytes[rows], -padding_of(page, rows)))
    return np.argsort(-stays.size_bytes[rows], kind="stable")


def _ordered(page: SpaceMemory, groups: tuple[Group, ...], order: Order) -> tuple[Group, ...]:
    """Groups in an order; they come by size."""
    if order == "padding":
        return tuple(sorted(groups, key=lambda group: -group.padding_bytes))
    if order == "program":
        return tuple(sorted(groups, key=lambda group: int(page.stays.born[group.rows].min())))
    return groups
