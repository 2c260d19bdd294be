"""The op profile's tree in cells: a row a node, the time it takes, how well it uses the device, and its name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.bars import CLASS_STYLE, small_bar
from tpuprof.tui.draw.format import count, duration, share
from tpuprof.tui.draw.layout import cut, cut_begin, cut_middle
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Line, Span, StyleKey, line_width
from tpuprof.tui.pages.ops.fields.common import bandwidth_style, flops_style, short_program, used

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import Instruction
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage, OpTree, SortBy

BAR_WIDTH = 8
WIDE = 86
"""Cells from which on the tree shows average time and occurrences."""

LEAST_CODE, LEAST_BESIDE, MOST_BESIDE = 34, 12, 28
"""Cells that a line of code takes before scopes have room beside it, and the least and the most that these take."""

LEAST_NAME, LEAST_FRAMEWORK_OP = 20, 14
"""Cells that names take at least, and framework ops beside them."""

_TIME, _SHARE = 9, 6


NodePath = tuple[int, tuple[str, ...]]
"""A node, and for an instruction inside a fusion the names on the way to it."""


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One row of the tree as it is shown.

    Attributes:
        node: the node; for a row of hidden children their parent, for a fused instruction its op.
        depth: levels below the root's children.
        is_open: its children are shown below it; None for a row without any.
        hidden: number of children that are not shown; 0 for an ordinary row.
        instruction: an instruction inside a fusion; None for an ordinary row.
        path: names of the fusions around that instruction, outermost first, and its own.
        offloaded: what a SparseCore ran for the node's op: row among the ops that are listed; None for other rows.
        label, beside: what it is called, and what stands beside that, where it is not what the tree says of the node.
    """

    node: int
    depth: int
    is_open: bool | None
    hidden: int = 0
    instruction: Instruction | None = None
    path: tuple[str, ...] = ()
    label: str = ""
    beside: str = ""
    offloaded: int | None = None

    @property
    def place(self) -> NodePath:
        """Its node, or that of its op, and the names on the way to its instruction."""
        return self.node, self.path


def depth_first(first: Sequence[TreeRow], under: Callable[[TreeRow], Sequence[TreeRow]]) -> list[TreeRow]:
    """Rows, and after each of them, at any depth, those `under` it."""
    rows: list[TreeRow] = []
    stack = list(first)[::-1]
    while stack:
        rows.append(stack.pop())
        stack += under(rows[-1])[::-1]
    return rows


@dataclass(frozen=True, slots=True)
class TreeColumns:
    """How a width is divided.

    Attributes:
        has_bar, has_counts: there is room for the bar of time, and for average time and occurrences.
        name: cells of the names; framework_op: those of the framework ops beside them, 0 where these have none.
    """

    has_bar: bool
    has_counts: bool
    name: int
    framework_op: int = 0

    @property
    def before(self) -> int:
        """The cell at which names begin."""
        metrics = 3 + (_SHARE + 1) + (_SHARE + 2) + 2 * (_SHARE + 1)
        return metrics + (BAR_WIDTH + 1) * self.has_bar + (_TIME + 10) * self.has_counts


def plain_columns(width: int) -> TreeColumns:
    """The columns without framework ops."""
    columns = TreeColumns(True, width >= WIDE, 0)
    return replace(columns, name=max(8, width - columns.before))


def columns_for(width: int, names: Sequence[int]) -> TreeColumns:
    """The columns with framework ops beside the names, as far as there is room, for which the bar gives way.

    Args:
        names: cells of the names that have one.
    """
    widest = max(names, default=0)
    for has_bar in (True, False):
        columns = TreeColumns(has_bar, width >= WIDE, 0)
        room = width - columns.before
        name = min(widest, max(LEAST_NAME, room // 2))
        if room - name - 2 >= LEAST_FRAMEWORK_OP:
            return replace(columns, name=name, framework_op=room - name - 2)
    return plain_columns(width)


def columns_for_code(width: int, names: Sequence[int], beside: int) -> TreeColumns:
    """The columns of a tree by line of code: the code goes before what stands beside it, and that before counts.

    Args:
        names: cells of the names.
        beside: cells of the longest text beside them.
    """
    needed = min(LEAST_CODE, max(names, default=0))
    beside = min(max(beside, LEAST_BESIDE), MOST_BESIDE)
    for has_bar, has_counts, other in ((True, True, beside), (True, False, beside), (True, False, 0)):
        columns = TreeColumns(has_bar, has_counts, 0)
        name = width - columns.before - (other + 2 if other else 0)
        if name >= needed:
            return replace(columns, name=name, framework_op=other)
    columns = TreeColumns(False, False, 0)
    return replace(columns, name=max(8, width - columns.before))


def tree_header(columns: TreeColumns, pen: Pen, sort: SortBy, beside: str = "framework op") -> Line:
    """The headings, the last one `beside` that of the names; an arrow stands at the one that rows are sorted by."""

    def title(text: str, cells: int, key: str) -> Span:
        shown = text + (pen.glyphs.down if key == sort else "")
        return f"{shown:>{cells}} ", "strong" if key == sort else "dim"

    spans: list[Span] = [("   ", "dim"), title("time", _SHARE, "time")]
    spans += [(" " * (BAR_WIDTH + 1), "dim")] if columns.has_bar else []
    spans += [title("wasted", _SHARE + 1, "wasted"), title("FLOPS", _SHARE, ""), title("HBM", _SHARE, "")]
    if columns.has_counts:
        spans += [title("average", _TIME, ""), title("count", 8, "")]
    heading = f"{' op':<{columns.name + 2}}{beside}" if columns.framework_op else " op"
    return pen.fit([*spans, (heading, "dim")])


def shown_name(tree: OpTree, row: TreeRow, glyphs: Glyphs) -> str:
    """The name of a row as it is shown, indented by its depth."""
    sign = " " if row.is_open is None else glyphs.open if row.is_open else glyphs.closed
    if row.label or row.instruction is not None:
        text = row.label if row.instruction is None else row.instruction.name
    else:
        text, kind = tree.name[row.node], tree.kind[row.node]
        text = short_program(text, glyphs) if kind == "program" else text
    return f"{'  ' * row.depth}{sign} {text}"


def framework_op(page: OpProfilePage, tree: OpTree, row: TreeRow) -> str:
    """The framework op of an op or its duplicates, without its type; empty for other rows."""
    if row.offloaded is not None:
        return ""
    if row.hidden or row.instruction is not None or row.label:
        return row.beside
    op = int(tree.row[row.node])
    full = page.ops.table.framework_op[op] if op >= 0 else ""
    return full.rpartition(":")[0] or full


def tree_row(page: OpProfilePage, tree: OpTree, row: TreeRow, selected: bool, columns: TreeColumns, pen: Pen) -> Line:
    """One row."""
    mark: Span = (pen.glyphs.mark if selected else " ", "mark" if selected else "text")
    under: StyleKey = "cursor" if selected else "text"
    node, behind = row.node, _framework_cells(page, tree, row, columns, pen.glyphs)
    ending: list[Span] = [(behind, "cursor" if selected else "dim")] if behind else []
    if row.hidden or row.instruction is not None or row.offloaded is not None:
        before = " " * (columns.before - 1)
        spans: list[Span]
        if row.offloaded is not None:
            note = f"{pen.text(row.beside):>{columns.before - 2}} "
            spans = [mark, (note, "cursor" if selected else "dim")]
            return pen.fit([*spans, (shown_name(tree, row, pen.glyphs), under)])
        if row.instruction is None:
            words = f"{before}{'  ' * row.depth}+ {count(row.hidden)} more"
            return pen.fit([mark, (f"{words:<{pen.width - 1}}", "cursor" if selected else "dim")])
        name = shown_name(tree, row, pen.glyphs)
        shape = f"  {row.instruction.shape}"
        return pen.fit([mark, (before + name, under), (shape, "cursor" if selected else "dim")])
    fraction = float(tree.time_fraction[node])
    filled, _ = small_bar(fraction if math.isfinite(fraction) else 0.0, BAR_WIDTH, pen.glyphs)
    letter, bar_style = _sign(page, tree, node)
    spans = [mark, (letter, bar_style), (" ", "text"), (f"{share(fraction):>{_SHARE}} ", under)]
    spans += [(f"{filled:<{BAR_WIDTH + 1}}", bar_style)] if columns.has_bar else []
    spans.append((f"{share(float(tree.wasted_fraction[node])):>{_SHARE + 1}} ", under))
    flops, hbm = float(tree.rates.flops_utilization[node]), float(tree.rates.bandwidth_utilization[node, 0])
    if tree.kind[node] == "idle":
        spans.append((" " * (2 * _SHARE + 2), under))
    else:
        spans.append((f"{used(flops):>{_SHARE}} ", "cursor" if selected else flops_style(flops)))
        spans.append((f"{used(hbm):>{_SHARE}} ", "cursor" if selected else bandwidth_style(hbm)))
    if columns.has_counts:
        number = int(tree.occurrences[node]) if tree.kind[node] in ("op", "duplicates") else None
        average = duration(int(tree.time_ps[node]) / number, pen.glyphs.is_ascii) if number else ""
        spans.append((f"{average:>{_TIME}} {'' if number is None else count(number):>8} ", under))
    room = columns.name if ending else max(8, pen.width - line_width(tuple(spans)))
    name, is_code = shown_name(tree, row, pen.glyphs), row.label and tree.kind[node] == "line"
    name = cut(name, room, pen.glyphs) if is_code else cut_middle(name, room, pen.glyphs)
    key: StyleKey = "cursor" if selected else "strong" if tree.kind[node] in ("program", "category", "file") else "text"
    return pen.fit([*spans, (f"{name:<{room}}", key), *ending])


def _framework_cells(page: OpProfilePage, tree: OpTree, row: TreeRow, columns: TreeColumns, glyphs: Glyphs) -> str:
    """The framework op in its column, its end where it is longer; empty where there is none: the name may be longer."""
    full = framework_op(page, tree, row) if columns.framework_op else ""
    if not full:
        return ""
    text = cut_begin(full, columns.framework_op, glyphs)
    return f"  {text:<{columns.framework_op}}"


def _sign(page: OpProfilePage, tree: OpTree, node: int) -> tuple[str, StyleKey]:
    """The letter and the colour of a node: its op's class, else that of its longest op."""
    if tree.kind[node] == "idle":
        return CLASS_LETTER["idle"], "class.idle"
    index = node
    while int(tree.row[index]) < 0 and tree.child_count(index):
        index = int(tree.order[tree.begin[index]])
    row = int(tree.row[index])
    if row < 0:
        return CLASS_LETTER["idle"] if tree.kind[index] == "idle" else " ", "class.idle"
    kind = page.ops.op_class[row]
    return CLASS_LETTER[kind] if tree.kind[node] in ("op", "duplicates", "category", "line") else " ", CLASS_STYLE[kind]


def whole_tree(page: OpProfilePage, tree: OpTree, pen: Pen, limit: int = 0) -> list[Line]:
    """The tree with every node open, for a report: at most `limit` children a node (0: all)."""
    rows = depth_first(
        _level(tree, 0, 0, limit), lambda row: [] if row.hidden else _level(tree, row.node, row.depth + 1, limit)
    )
    columns = plain_columns(pen.width)
    drawn = (tree_row(page, tree, row, False, columns, pen) for row in rows)
    return [tree_header(columns, pen, "time"), *drawn]


def _level(tree: OpTree, node: int, depth: int, limit: int) -> list[TreeRow]:
    shown, hidden = tree.top_children(node, limit=limit)
    rows = [TreeRow(child, depth, True if tree.child_count(child) else None) for child in shown.tolist()]
    return rows + ([TreeRow(node, depth, None, hidden)] if hidden else [])
