"""Buffers grouped by where they come from, source line or scope of the framework op, by category, or by owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, grouped
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.memory.model import CATEGORIES, SpaceMemory

GroupBy = Literal["source", "scope", "category", "owner"]

NO_SOURCE = "(source unknown)"
NO_SCOPE = "(no scope)"
NO_OWNER = "(too small to tell)"

_WRAPPED = pattern(r"([a-z_0-9]+)\((.*)\)\Z")
_CONTROL_FLOW = {
    *("while", "body", "cond", "scan", "closed_call", "core_call"),
    *("checkpoint", "remat", "remat2", "rematted_computation"),
}
_TAIL_KEY = pattern(r"(\[[^\[\]]*\]|\.[A-Za-z_]\w*)\Z")
_MOST_WRAPPERS = 8


@dataclass(frozen=True, slots=True)
class BufferGroup:
    """Buffers that belong together.

    Attributes:
        name: a source line, a scope, a category, or an owner.
        rows: int64, their rows of `SpaceMemory.live_ranges`, ascending.
        size_bytes: all of them together.
        padding_bytes: what they take beyond their elements, of those whose elements are known.
    """

    name: str
    rows: Int64s
    size_bytes: int
    padding_bytes: int


def group_rows(
    page: SpaceMemory, rows: Int64s, by: GroupBy, owners: Mapping[int, str] | None = None
) -> tuple[BufferGroup, ...]:
    """Groups of these rows, the largest first; each row's buffer is described, but for groups by category or owner.

    Args:
        owners: row to whose it is (`SpaceSummary.owners`), for groups by owner.
    """
    if by == "owner":
        names = [(owners or {}).get(row, NO_OWNER) for row in rows.tolist()]
    elif by == "category":
        names = [CATEGORIES[code] for code in page.live_ranges.category[rows].tolist()]
    elif by == "source":
        names = [page.buffers[row].source or NO_SOURCE for row in rows.tolist()]
    else:
        names = [scope_of(page.buffers[row].framework_op or "") or NO_SCOPE for row in rows.tolist()]
    groups = []
    for name, of_name in grouped(zip(names, rows.tolist(), strict=True)).items():
        members = np.array(of_name, np.int64)
        padding = np.maximum(padding_of(page, members), 0)
        groups.append(BufferGroup(name, members, int(page.live_ranges.size_bytes[members].sum()), int(padding.sum())))
    return tuple(sorted(groups, key=lambda group: (-group.size_bytes, group.name)))


def padding_of(page: SpaceMemory, rows: Int64s) -> Int64s:
    """int64[rows]: bytes beyond the elements, -1 where the elements are unknown."""
    size, elements = page.live_ranges.size_bytes[rows], page.live_ranges.unpadded_bytes[rows]
    return np.where(elements < 0, -1, np.maximum(size - elements, 0))


def scope_of(framework_op: str) -> str:
    """The scope of a framework op without what JAX's transformations add, so that a layer's ops meet in one scope.

    ``jit(step)/transpose(jvp(Model))/h_7/attention/while/body/dot_general`` is of ``Model/h_7/attention``, as its
    forward op is. An argument, ``state['params']['embedding']``, is of ``state['params']``.
    """
    name = framework_op.rstrip(":")
    if "/" not in name:
        shorter = _TAIL_KEY.sub("", name)
        return shorter if shorter != name else ""
    return "/".join(filter(None, map(_bare, name.split("/")[:-1])))


def _bare(part: str) -> str:
    """A part of a path without the transformations around it; nothing for control flow and a function's own name."""
    for _ in range(_MOST_WRAPPERS):
        match = _WRAPPED.match(part)
        if match is None:
            break
        if match[1] in ("jit", "pjit", "xla_call"):
            return ""
        part = match[2]
    is_noise = part in _CONTROL_FLOW or part.startswith("branch_") or "->" in part  # einsum's formula
    return "" if is_noise else part
