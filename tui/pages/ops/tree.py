"""The op profile's tree in cells: a row a node, the time it takes, how well it uses the device, and its name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.bars import CLASS_STYLE, small_bar
from tpuprof.tui.draw.format import count, duration, share
from tpuprof.tui.draw.layout import clean, cut_middle, fit
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Line, Span, StyleKey, line_width
from tpuprof.tui.pages.ops.fields.common import bandwidth_style, flops_style, short_program, used

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import Instruction
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage, OpTree, SortBy

BAR_WIDTH = 8
WIDE = 86
"""Cells from which on the tree shows average time and occurrences."""

_TIME, _SHARE = 9, 6


Place = tuple[int, tuple[str, ...]]
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
    """

    node: int
    depth: int
    is_open: bool | None
    hidden: int = 0
    instruction: Instruction | None = None
    path: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
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
    mark: Span = (glyphs.mark if selected else " ", "mark" if selected else "text")
    under: StyleKey = "cursor" if selected else "text"
    node, sign = row.node, " " if row.is_open is None else glyphs.open if row.is_open else glyphs.closed
    if row.hidden or row.instruction is not None:
        before = " " * (name_column(width) - 1 + 2 * row.depth)
        if row.instruction is None:
            words = f"{before}+ {count(row.hidden)} more"
            return fit([mark, (f"{words:<{width - 1}}", "cursor" if selected else "dim")], width, glyphs)
        ascii_only = glyphs.is_ascii
        shape = f"  {clean(row.instruction.shape, ascii_only)}"
        name = f"{before}{sign} {clean(row.instruction.name, ascii_only)}"
        return fit([mark, (name, under), (shape, "cursor" if selected else "dim")], width, glyphs)
    fraction = float(tree.time_fraction[node])
    filled, _ = small_bar(fraction if math.isfinite(fraction) else 0.0, BAR_WIDTH, glyphs)
    letter, bar_style = _sign(page, tree, node)
    spans: list[Span] = [
        *(mark, (letter, bar_style), (" ", "text"), (f"{share(fraction):>{_SHARE}} ", under)),
        (f"{filled:<{BAR_WIDTH + 1}}", bar_style),
        (f"{share(float(tree.wasted_fraction[node])):>{_SHARE + 1}} ", under),
    ]
    flops, hbm = float(tree.rates.flops_utilization[node]), float(tree.rates.bandwidth_utilization[node, 0])
    if tree.kind[node] == "idle":
        spans.append((" " * (2 * _SHARE + 2), under))
    else:
        spans.append((f"{used(flops):>{_SHARE}} ", "cursor" if selected else flops_style(flops)))
        spans.append((f"{used(hbm):>{_SHARE}} ", "cursor" if selected else bandwidth_style(hbm)))
    if width >= WIDE:
        number = int(tree.occurrences[node]) if tree.kind[node] in ("op", "duplicates") else None
        average = duration(int(tree.time_ps[node]) / number, glyphs.is_ascii) if number else ""
        spans.append((f"{average:>{_TIME}} {'' if number is None else count(number):>8} ", under))
    room = max(8, width - line_width(tuple(spans)))
    kind, text = tree.kind[node], tree.name[node]
    text = clean(short_program(text, glyphs) if kind == "program" else text, glyphs.is_ascii)
    name = cut_middle(f"{'  ' * row.depth}{sign} {text}", room, glyphs)
    key: StyleKey = "cursor" if selected else "strong" if kind in ("program", "category") else "text"
    return fit([*spans, (f"{name:<{room}}", key)], width, glyphs)


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


def name_column(width: int) -> int:
    """The cell at which names begin."""
    return 3 + (_SHARE + 1) + (BAR_WIDTH + 1) + (_SHARE + 2) + 2 * (_SHARE + 1) + (_TIME + 10 if width >= WIDE else 0)


def whole_tree(page: OpProfilePage, tree: OpTree, width: int, glyphs: Glyphs, limit: int = 0) -> list[Line]:
    """The tree with every node open, for a report: at most `limit` children a node (0: all)."""
    rows = depth_first(
        _level(tree, 0, 0, limit), lambda row: [] if row.hidden else _level(tree, row.node, row.depth + 1, limit)
    )
    return [tree_header(width, glyphs, "time"), *(tree_row(page, tree, row, False, width, glyphs) for row in rows)]


def _level(tree: OpTree, node: int, depth: int, limit: int) -> list[TreeRow]:
    shown, hidden = tree.top_children(node, limit=limit)
    rows = [TreeRow(child, depth, True if tree.child_count(child) else None) for child in shown.tolist()]
    return rows + ([TreeRow(node, depth, None, hidden)] if hidden else [])
