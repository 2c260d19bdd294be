"""The op profile's tree in cells: a row a node, the time it takes, how well it uses the device, and its name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpuprof.tui.draw.bars import CLASS_STYLE, small_bar
from tpuprof.tui.draw.format import count, duration, share
from tpuprof.tui.draw.layout import clean, cut_middle, fit
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Line, Span, StyleKey
from tpuprof.tui.pages.ops.fields.common import bandwidth_style, flops_style, short_program, used

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import Instruction
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage, OpTree, SortBy

BAR_WIDTH = 8
WIDE = 86
"""Cells from which on the tree shows average time and occurrences."""

_TIME, _SHARE = 9, 6


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
    """

    node: int
    depth: int
    is_open: bool | None
    hidden: int = 0
    instruction: Instruction | None = None
    path: tuple[str, ...] = ()


def tree_header(width: int, glyphs: Glyphs, sort: SortBy) -> Line:
    """The headings; an arrow stands at the one that rows are sorted by."""

    def title(text: str, cells: int, key: str) -> Span:
        shown = text + (glyphs.down if key == sort else "")
        return f"{shown:>{cells}} ", "strong" if key == sort else "dim"

    spans: list[Span] = [("   ", "dim"), title("time", _SHARE, "time"), (" " * (BAR_WIDTH + 1), "dim")]
    spans += [title("wasted", _SHARE + 1, "wasted"), title("FLOPS", _SHARE, ""), title("HBM", _SHARE, "")]
    if width >= WIDE:
        spans += [title("average", _TIME, ""), title("count", 8, "")]
    return fit([*spans, (" op", "dim")], width, glyphs)


def tree_row(page: OpProfilePage, tree: OpTree, row: TreeRow, selected: bool, width: int, glyphs: Glyphs) -> Line:
    """One row."""
    ascii_only = glyphs.name == "ascii"
    if row.hidden:
        return _hidden_row(row, selected, width, glyphs)
    if row.instruction is not None:
        return _instruction_row(row, selected, width, glyphs)
    node = row.node
    fraction, wasted = float(tree.time_fraction[node]), float(tree.wasted_fraction[node])
    is_idle = tree.kind[node] == "idle"
    filled, _ = small_bar(fraction if math.isfinite(fraction) else 0.0, BAR_WIDTH, glyphs)
    letter, bar_style = _sign(page, tree, node)
    under: StyleKey = "cursor" if selected else "text"
    spans: list[Span] = [
        (glyphs.mark if selected else " ", "mark" if selected else "text"),
        (letter, bar_style),
        (" ", "text"),
        (f"{share(fraction):>{_SHARE}} ", under),
        (f"{filled:<{BAR_WIDTH + 1}}", bar_style),
        (f"{share(wasted):>{_SHARE + 1}} ", under),
    ]
    flops, hbm = float(tree.rates.flops_utilization[node]), float(tree.rates.bandwidth_utilization[node, 0])
    if is_idle:
        spans.append((" " * (2 * _SHARE + 2), under))
    else:
        spans.append((f"{used(flops):>{_SHARE}} ", "cursor" if selected else flops_style(flops)))
        spans.append((f"{used(hbm):>{_SHARE}} ", "cursor" if selected else bandwidth_style(hbm)))
    if width >= WIDE:
        number = int(tree.occurrences[node])
        is_op = tree.kind[node] in ("op", "duplicates")
        average = duration(int(tree.time_ps[node]) / number, ascii_only) if is_op and number else ""
        spans.append((f"{average:>{_TIME}} {count(number) if is_op else '':>8} ", under))
    room = max(8, width - sum(len(text) for text, _ in spans))
    name = _name(tree, row, glyphs)
    key: StyleKey = "cursor" if selected else "strong" if tree.kind[node] in ("program", "category") else "text"
    return fit([*spans, (f"{cut_middle(name, room, glyphs):<{room}}", key)], width, glyphs)


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
    return CLASS_LETTER[kind] if tree.kind[node] in ("op", "duplicates", "category") else " ", CLASS_STYLE[kind]


def _name(tree: OpTree, row: TreeRow, glyphs: Glyphs) -> str:
    """The node's name, indented, with a sign that tells whether it is open."""
    sign = " " if row.is_open is None else (glyphs.open if row.is_open else glyphs.closed)
    name = tree.name[row.node]
    if tree.kind[row.node] == "program":
        name = short_program(name, glyphs)
    return f"{'  ' * row.depth}{sign} {clean(name, glyphs.name == 'ascii')}"


def _hidden_row(row: TreeRow, selected: bool, width: int, glyphs: Glyphs) -> Line:
    mark: Span = (glyphs.mark if selected else " ", "mark" if selected else "text")
    before = " " * (name_column(width) - 1 + 2 * row.depth)
    words = f"{before}+ {count(row.hidden)} more"
    return fit([mark, (f"{words:<{width - 1}}", "cursor" if selected else "dim")], width, glyphs)


def _instruction_row(row: TreeRow, selected: bool, width: int, glyphs: Glyphs) -> Line:
    instruction = row.instruction
    assert instruction is not None
    ascii_only = glyphs.name == "ascii"
    sign = " " if row.is_open is None else (glyphs.open if row.is_open else glyphs.closed)
    mark: Span = (glyphs.mark if selected else " ", "mark" if selected else "text")
    before = " " * (name_column(width) - 1 + 2 * row.depth)
    name = f"{before}{sign} {clean(instruction.name, ascii_only)}"
    rest = f"  {clean(instruction.shape, ascii_only)}"
    key: StyleKey = "cursor" if selected else "text"
    spans: list[Span] = [mark, (name, key), (rest, "cursor" if selected else "dim")]
    return fit(spans, width, glyphs)


def name_column(width: int) -> int:
    """The cell at which names begin."""
    return 3 + (_SHARE + 1) + (BAR_WIDTH + 1) + (_SHARE + 2) + 2 * (_SHARE + 1) + (_TIME + 10 if width >= WIDE else 0)


def whole_tree(page: OpProfilePage, tree: OpTree, width: int, glyphs: Glyphs, limit: int = 0) -> list[Line]:
    """The tree with every node open, for a report: at most `limit` children a node (0: all)."""
    rows: list[TreeRow] = []
    stack: list[TreeRow] = _level(tree, 0, 0, limit)[::-1]
    while stack:
        row = stack.pop()
        rows.append(row)
        if not row.hidden:
            stack += _level(tree, row.node, row.depth + 1, limit)[::-1]
    lines = [tree_header(width, glyphs, "time")]
    return lines + [tree_row(page, tree, row, False, width, glyphs) for row in rows]


def _level(tree: OpTree, node: int, depth: int, limit: int) -> list[TreeRow]:
    shown, hidden = tree.top_children(node, limit=limit)
    rows = [TreeRow(child, depth, True if tree.child_count(child) else None) for child in shown.tolist()]
    return rows + ([TreeRow(node, depth, None, hidden)] if hidden else [])
