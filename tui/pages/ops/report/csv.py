"""The main tables of the op pages as CSV; the headings are the keys of JSON, dotted for objects within objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.op_profile import OpProfilePage, OpTree
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.ops.roofline import RooflinePage
from tpuprof.tui.pages.ops.report.rows import (
    Columns,
    first,
    framework_op_columns,
    framework_rows,
    node_columns,
    op_columns,
    roofline_op_columns,
    roofline_point_columns,
    roofline_rows,
)
from tpuprof.tui.report.csv_report import Cell, table

PATH_SEPARATOR = " / "


def ops_csv(page: OpsPage, limit: int = 0) -> str:
    """HLO ops by self time, at most `limit` of them, 0 for all."""
    columns = op_columns(page, first(len(page), limit))
    return table(("rank", *columns), _ranked(columns))


def framework_ops_csv(page: FrameworkOpsPage, ops: OpsPage, limit: int = 0) -> str:
    """Framework ops, those of the device first; at most `limit` of each side, 0 for all."""
    columns = framework_op_columns(page, ops, framework_rows(page, limit))
    return table(tuple(columns), _rows(columns))


def roofline_csv(page: RooflinePage, limit: int = 0) -> str:
    """The program, the average step, the steps, and at most `limit` ops, 0 for all; `kind` tells them apart."""
    ops = roofline_op_columns(page, roofline_rows(page, limit))
    parts: list[tuple[str, Columns]] = [("program", roofline_point_columns(page.program))]
    parts += [("average step", roofline_point_columns(page.average_step))]
    parts += [("step", roofline_point_columns(page.steps)), ("op", ops)]
    rows = ((kind, *row) for kind, columns in parts for row in _rows({key: _column(columns, key) for key in ops}))
    return table(("kind", *ops), rows)


def op_profile_csv(page: OpProfilePage, limit: int = 0) -> str:
    """The tree by program, a line a node below the root, depth first; at most `limit` children a node, 0 for all."""
    tree = page.by_program
    columns = node_columns(page.ops, tree)
    row_of = [*_rows(columns)]
    rows = ((path, depth, *row_of[node], hidden) for node, depth, path, hidden in walk(tree, limit))
    return table(("path", "depth", *columns, "hidden_children"), rows)


def walk(tree: OpTree, limit: int = 0) -> Iterator[tuple[int, int, str, int]]:
    """Nodes below the root, depth first, at most `limit` children each (0: all).

    Yields:
        The node, its depth (0 for the root's children), the names on the way to it, and how many of its children are
        left out.
    """
    stack = [(child, 0, "") for child in tree.top_children(0, limit=limit)[0][::-1].tolist()]
    while stack:
        node, depth, above = stack.pop()
        path = f"{above}{PATH_SEPARATOR}{tree.name[node]}" if above else tree.name[node]
        children, hidden = tree.top_children(node, limit=limit)
        yield node, depth, path, hidden
        stack += [(child, depth + 1, path) for child in children[::-1].tolist()]


def _rows(columns: Columns) -> Iterator[Sequence[Cell]]:
    yield from zip(*columns.values(), strict=True)


def _ranked(columns: Columns) -> Iterator[Sequence[Cell]]:
    for rank, row in enumerate(_rows(columns), 1):
        yield rank, *row


def _column(columns: Mapping[str, Sequence[Cell]], key: str) -> Sequence[Cell]:
    """A column, empty where a part of the table does not have it."""
    return columns[key] if key in columns else [None] * len(columns["name"])
