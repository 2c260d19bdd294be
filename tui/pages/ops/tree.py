"""The op profile's tree in cells: a row a node, the time it takes, how well it uses the device, and its name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.hlo.modules import Instruction
from tpuprof.parsers.pages.ops.op_profile import NodeKind, OpProfilePage, OpTree
from tpuprof.tui.draw.format import count, duration, share
from tpuprof.tui.draw.pen import Pen, cut, cut_begin, cut_middle
from tpuprof.tui.draw.spans import CLASS_LETTER, CLASS_STYLE, Glyphs, Line, Span, StyleKey, line_width, small_bar
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.pages.ops.fields.common import roof_style, short_program, used

BAR_WIDTH = 8
WIDE = 86  # cells from which on the tree shows average time and occurrences
LEAST_CODE, LEAST_BESIDE, MOST_BESIDE = 34, 12, 28
"""Cells that a line of code takes before scopes have room beside it, and the least and the most that these take."""

LEAST_NAME, LEAST_FRAMEWORK_OP = 20, 14  # cells that names take at least, and framework ops beside them
_TIME, _SHARE = 9, 6

NodePath = tuple[int, tuple[str, ...]]  # a node, and for an instruction inside a fusion the names on the way to it


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
        width: all cells.
        has_bar, has_counts: there is room for the bar of time, and for average time and occurrences.
        framework_op: cells of the framework ops beside the names, 0 where these have none.
    """

    width: int
    has_bar: bool
    has_counts: bool
    framework_op: int = 0

    @property
    def before(self) -> int:
        metrics = 3 + (_SHARE + 1) + (_SHARE + 2) + 2 * (_SHARE + 1)
        return metrics + (BAR_WIDTH + 1) * self.has_bar + (_TIME + 10) * self.has_counts

    @property
    def room(self) -> int:
        """Cells that are left for names."""
        return self.width - self.before - (self.framework_op + 2 if self.framework_op else 0)

    @property
    def name(self) -> int:
        """Cells of the names, a few in any case."""
        return max(8, self.room)


def _plain_columns(width: int) -> TreeColumns:
    """The columns without framework ops."""
    return TreeColumns(width, True, width >= WIDE)


def _columns_for(width: int, names: Sequence[int]) -> TreeColumns:
    """The columns with framework ops beside names of so many cells, if there is room, for which the bar gives way."""
    for columns in (_plain_columns(width), TreeColumns(width, False, width >= WIDE)):
        beside = columns.room - min(max(names, default=0), max(LEAST_NAME, columns.room // 2)) - 2
        if beside >= LEAST_FRAMEWORK_OP:
            return replace(columns, framework_op=beside)
    return _plain_columns(width)


def _columns_for_code(width: int, names: Sequence[int], beside: int) -> TreeColumns:
    """The columns of a tree by line of code, with `names` and the longest text `beside` them in cells.

    The code goes before what stands beside it, and that before counts.
    """
    needed, beside = min(LEAST_CODE, max(names, default=0)), min(max(beside, LEAST_BESIDE), MOST_BESIDE)
    with_bar = ((True, beside), (False, beside), (False, 0))
    choices = (TreeColumns(width, True, has_counts, other) for has_counts, other in with_bar)
    return next((columns for columns in choices if columns.room >= needed), TreeColumns(width, False, False))


def _header(columns: TreeColumns, pen: Pen, sort: Listing, beside: str) -> Line:
    arrow = pen.glyphs.up if sort.is_reversed else pen.glyphs.down

    def title(text: str, cells: int) -> Span:
        is_sorted = text == sort.sort
        shown = text + (arrow if is_sorted else "")
        return f"{shown:>{cells}} ", "strong" if is_sorted else "dim"

    spans: list[Span] = [("   ", "dim"), title("time", _SHARE)]
    spans += [(" " * (BAR_WIDTH + 1), "dim")] if columns.has_bar else []
    spans += [title("wasted", _SHARE + 1), title("FLOPS", _SHARE), title("HBM", _SHARE)]
    if columns.has_counts:
        spans += [title("average", _TIME), title("count", 8)]
    heading = f"{' op':<{columns.name + 2}}{beside}" if columns.framework_op else " op"
    return pen.fit([*spans, (heading, "dim")])


def _name(tree: OpTree, row: TreeRow, glyphs: Glyphs) -> str:
    sign = " " if row.is_open is None else glyphs.open if row.is_open else glyphs.closed
    if row.label or row.instruction is not None:
        text = row.label if row.instruction is None else row.instruction.name
    else:
        text, kind = tree.name[row.node], tree.kind[row.node]
        text = short_program(text, glyphs) if kind == "program" else text
    return f"{'  ' * row.depth}{sign} {text}"


def _framework_op(page: OpProfilePage, tree: OpTree, row: TreeRow) -> str:
    """The framework op of an op or its duplicates, without its type; empty for other rows."""
    if row.offloaded is not None:
        return ""
    if row.hidden or row.instruction is not None or row.label:
        return row.beside
    op = int(tree.row[row.node])
    full = page.ops.table.framework_op[op] if op >= 0 else ""
    return full.rpartition(":")[0] or full


def _row_line(page: OpProfilePage, tree: OpTree, row: TreeRow, selected: bool, columns: TreeColumns, pen: Pen) -> Line:
    mark: Span = (pen.glyphs.mark if selected else " ", "mark" if selected else "text")
    under: StyleKey = "cursor" if selected else "text"
    beside: StyleKey = "cursor" if selected else "dim"
    node, name, before = row.node, _name(tree, row, pen.glyphs), " " * (columns.before - 1)
    if row.offloaded is not None:
        return pen.fit([mark, (f"{pen.text(row.beside):>{columns.before - 2}} ", beside), (name, under)])
    if row.instruction is not None:
        return pen.fit([mark, (before + name, under), (f"  {row.instruction.shape}", beside)])
    if row.hidden:
        words = f"{before}{'  ' * row.depth}+ {count(row.hidden)} more"
        return pen.fit([mark, (f"{words:<{pen.width - 1}}", beside)])
    cells = columns.framework_op
    op = cut_begin(_framework_op(page, tree, row), cells, pen.glyphs) if cells else ""
    ending: list[Span] = [(f"  {op:<{cells}}", beside)] if op else []  # without one the name may be longer
    fraction = float(tree.time_fraction[node])
    filled, _ = small_bar(fraction if math.isfinite(fraction) else 0.0, BAR_WIDTH, pen.glyphs)
    kind = class_of(page, tree, node)
    letter, bar_style = _sign(kind, tree.kind[node])
    spans: list[Span] = [mark, (letter, bar_style), (" ", "text"), (f"{share(fraction):>{_SHARE}} ", under)]
    spans += [(f"{filled:<{BAR_WIDTH + 1}}", bar_style)] if columns.has_bar else []
    spans.append((f"{share(float(tree.wasted_fraction[node])):>{_SHARE + 1}} ", under))
    flops, hbm = float(tree.rates.flops_utilization[node]), float(tree.rates.bandwidth_utilization[node, 0])
    if tree.kind[node] == "idle":
        spans.append((" " * (2 * _SHARE + 2), under))
    else:
        spans.append(
            (f"{used(flops):>{_SHARE}} ", "cursor" if selected else roof_style(tree.rates, node, "compute", kind))
        )
        spans.append((f"{used(hbm):>{_SHARE}} ", "cursor" if selected else roof_style(tree.rates, node, "HBM", kind)))
    if columns.has_counts:
        number = int(tree.occurrences[node]) if tree.kind[node] in ("op", "duplicates") else None
        average = duration(int(tree.time_ps[node]) / number, pen.glyphs.is_ascii) if number else ""
        spans.append((f"{average:>{_TIME}} {'' if number is None else count(number):>8} ", under))
    room = columns.name if ending else max(8, pen.width - line_width(tuple(spans)))
    key: StyleKey = "cursor" if selected else "strong" if tree.kind[node] in ("program", "category", "file") else "text"
    return pen.fit(
        [*spans, (f"{_cut_name(name, tree.kind[node], bool(row.label), room, pen.glyphs):<{room}}", key), *ending]
    )


def _cut_name(name: str, kind: NodeKind, is_labelled: bool, cells: int, glyphs: Glyphs) -> str:
    """A name fit for cells: of code its beginning; ``fusion.1 +2`` for ``fusion.1 and 2 clones``."""
    if kind == "line" and is_labelled:
        return cut(name, cells, glyphs)
    if kind == "duplicates" and len(name) > cells:
        op, _, others = name.rpartition(" and ")
        number = f" +{others.partition(' ')[0]}"
        return cut_middle(op, cells - len(number), glyphs) + number
    return cut_middle(name, cells, glyphs)


def class_of(page: OpProfilePage, tree: OpTree, node: int) -> OpClass | None:
    """The class of a node's longest op; None where no op is known."""
    index = node
    while int(tree.row[index]) < 0 and tree.child_count(index):
        index = int(tree.order[tree.begin[index]])
    row = int(tree.row[index])
    if row < 0:
        return "idle" if tree.kind[index] == "idle" else None
    return page.ops.op_class[row]


def _sign(kind: OpClass | None, of: NodeKind) -> tuple[str, StyleKey]:
    if kind is None or kind == "idle":
        return " " if kind is None else CLASS_LETTER["idle"], "class.idle"
    return CLASS_LETTER[kind] if of in ("op", "duplicates", "category", "line") else " ", CLASS_STYLE[kind]


def tree_lines(
    page: OpProfilePage, tree: OpTree, rows: Sequence[TreeRow], cursor: int, sort: Listing, pen: Pen
) -> list[Line]:
    """The headings and some rows, one of them under the `cursor`, in the columns that leave most room for the names."""
    of_code, beside = tree.by == "source", [_framework_op(page, tree, row) for row in rows]
    names = [len(_name(tree, row, pen.glyphs)) for row, op in zip(rows, beside, strict=True) if op or of_code]
    if of_code:
        columns = _columns_for_code(pen.width, names, max(map(len, beside), default=0))
    else:
        columns = _columns_for(pen.width, names) if names else _plain_columns(pen.width)
    drawn = (_row_line(page, tree, row, place == cursor, columns, pen) for place, row in enumerate(rows))
    return [_header(columns, pen, sort, "scope" if of_code else "framework op"), *drawn]


def whole_tree(page: OpProfilePage, tree: OpTree, pen: Pen, limit: int = 0) -> list[Line]:
    """The tree with every node open, for a report: at most `limit` children a node (0: all)."""
    rows = depth_first(
        _level(tree, 0, 0, limit), lambda row: [] if row.hidden else _level(tree, row.node, row.depth + 1, limit)
    )
    columns = _plain_columns(pen.width)
    drawn = (_row_line(page, tree, row, False, columns, pen) for row in rows)
    return [_header(columns, pen, Listing(sort="time"), ""), *drawn]


def _level(tree: OpTree, node: int, depth: int, limit: int) -> list[TreeRow]:
    shown, hidden = tree.top_children(node, limit=limit)
    rows = [TreeRow(child, depth, True if tree.child_count(child) else None) for child in shown.tolist()]
    return rows + ([TreeRow(node, depth, None, hidden)] if hidden else [])
