"""The graph in cells: operands, the op and its users side by side; below, the way to it; or its computation's text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.hlo.printing import head_line as computation_head
from tpuprof.parsers.formats.hlo.printing import instruction_line
from tpuprof.parsers.formats.hlo.shapes import is_in_host_memory
from tpuprof.parsers.pages.graph.model import Neighbour, Node
from tpuprof.parsers.pages.graph.neighbourhood import Neighbourhood, Side, neighbour
from tpuprof.tui.draw.buffers.words import short_shape
from tpuprof.tui.draw.format import binary_size, count, duration, intensity, share
from tpuprof.tui.draw.pen import Pen, cut_begin, cut_middle, filled, gutter_lines, hstack, label_span
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width
from tpuprof.tui.draw.table import Listing

SIDES: tuple[Side, Side] = ("operands", "users")

GAP = 3  # cells of the rule between two columns
LABEL = 9
_DETAIL_LINES, _MOST_ANSWER_LINES = 3, 3
_SHAPE_LINES, _INSIDE_LINES = 3, 3
_LEAST_SHARE = 0.0005


@dataclass(frozen=True, slots=True)
class GraphView:
    """What the user looks at.

    Attributes:
        side: the column that the cursor is in.
        operands, users, text: the columns, and the lines of the text.
        is_direct: the columns hold operands and users; else what stands behind those that only hand values on.
        is_text: the computation's text shows in place of the columns.
        shift: cells of the text that are left out at the left.
        words: what is searched for.
    """

    side: Side = "operands"
    operands: Listing = Listing()
    users: Listing = Listing()
    text: Listing = Listing()
    is_direct: bool = False
    is_text: bool = False
    shift: int = 0
    words: str = ""

    @property
    def number(self) -> int:
        """Which of the columns that is: 0 or 1."""
        return 0 if self.side == "operands" else 1

    @property
    def listing(self) -> Listing:
        return self.text if self.is_text else self.operands if self.side == "operands" else self.users

    def scrolled(self, top: tuple[int, int]) -> GraphView:
        """With the first rows that show in each column, or the first line of the text."""
        if self.is_text:
            return replace(self, text=replace(self.text, first=top[0]))
        operands, users = (replace(each, first=at) for each, at in zip((self.operands, self.users), top, strict=True))
        return replace(self, operands=operands, users=users)

    def with_listing(self, listing: Listing) -> GraphView:
        """With that list in the place of the one that the cursor is in."""
        if self.is_text:
            return replace(self, text=listing)
        return replace(self, operands=listing) if self.side == "operands" else replace(self, users=listing)


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    """The page in lines.

    Attributes:
        first_row_line: the line on which the columns, or the text's lines, begin.
        room: how many lines they have.
        entry: lines of a neighbour in each column.
        top: the first neighbour that shows in each column, or the first line of the text.
        widths: cells of the three columns.
    """

    lines: tuple[Line, ...]
    first_row_line: int
    room: int
    entry: tuple[int, int] = (1, 1)
    top: tuple[int, int] = (0, 0)
    widths: tuple[int, int, int] = (0, 0, 0)


def compose(here: Neighbourhood, trail: Sequence[str], view: GraphView, pen: Pen, height: int) -> DrawnGraph:
    """The page; only what shows is decoded."""
    head = answer_lines(here, pen, _MOST_ANSWER_LINES if height >= 20 else 2)
    foot = path_lines(here, trail, pen)
    if view.is_text:
        return _text_page(here, view, head, foot, pen, height)
    at, there = view.listing.cursor, len(here.rows(view.side, view.is_direct))
    chosen = neighbour(here, view.side, at, view.is_direct) if at < there else None
    detail = _detail_lines(chosen, view.side, pen) if height >= 16 else []
    widths = _widths(pen.width)
    rows = max(1, height - len(head) - len(foot) - len(detail) - 1)
    entry, top = [1, 1], [0, 0]
    columns: list[list[Line]] = []
    for number, side in enumerate(SIDES):
        total = len(here.rows(side, view.is_direct))
        entry[number] = 2 if 2 * total <= rows else 1
        room = rows // entry[number]
        listing = view.operands if side == "operands" else view.users
        top[number] = listing.at(listing.cursor, total).shown_first(room, total)
        cursor = listing.cursor if view.side == side else None
        shown = range(top[number], min(total, top[number] + room))
        columns.append(_column(here, side, shown, cursor, entry[number], pen.at(widths[2 * number]), view.is_direct))
    middle = pen.at(widths[1]).cut_after(centre_lines(here, pen.at(widths[1])), rows, "i")
    heads = [*head, _heads(here, view, widths, pen.glyphs)]
    body = _beside(columns, middle, widths, rows, pen.glyphs)
    lines = filled([*heads, *body, *foot, *detail], pen.width, height)
    fitted = tuple(pen.fit(line) for line in lines)
    return DrawnGraph(fitted, len(heads), rows, (entry[0], entry[1]), (top[0], top[1]), widths)


def sections(here: Neighbourhood, pen: Pen, limit: int = 0) -> list[Line]:
    """The three columns as high as they are, or with so many neighbours at most, and the way to the op."""
    widths = _widths(pen.width)
    columns = []
    for side, width in zip(SIDES, widths[::2], strict=True):
        total = len(here.rows(side))
        shown = range(min(total, limit) if limit else total)
        column = _column(here, side, shown, None, 2, pen.at(width))
        if len(shown) < total:
            column.append(pen.at(width).fit([(f"  and {count(total - len(shown))} more", "dim")]))
        columns.append(column)
    middle = centre_lines(here, pen.at(widths[1]))
    body = _beside(columns, middle, widths, max(len(middle), *map(len, columns)), pen.glyphs)
    return [_heads(here, None, widths, pen.glyphs), *body, *path_lines(here, (), pen)]


# --- parts


def _widths(width: int) -> tuple[int, int, int]:
    room = width - 2 * GAP - 1  # text ends before the edge
    side = min(44, room * 31 // 100) if width >= 100 else room * 32 // 100
    return side, room - 2 * side, side


def _heads(here: Neighbourhood, view: GraphView | None, widths: tuple[int, int, int], glyphs: Glyphs) -> Line:
    """The columns' titles, with how many neighbours there are; that of the cursor marked."""
    spans: list[Span] = []
    for number, side in enumerate((SIDES[0], None, SIDES[1])):
        words, is_direct = "this op", view is None or view.is_direct
        if side is not None:
            title = side if is_direct else _ROLES[side][-1]
            words = f"{title} {count(len(here.rows(side, is_direct)))}"
        is_marked = view is not None and view.side == side
        line = glyphs.horizontal
        own: list[Span] = [(f"{line} ", "rule"), (words, "strong" if is_marked else "title"), (" ", "rule")]
        own.append((line * max(0, widths[number] - line_width(tuple(own))), "rule"))
        spans += own if number == 0 else [(line * GAP, "rule"), *own]
    return tuple(spans)


def answer_lines(here: Neighbourhood, pen: Pen, most: int) -> list[Line]:
    """What the graph answers, in sentences."""
    words = " ".join(here.answers)
    return pen.narrower(1).cut_after(pen.narrower(1).wrap(words, "text", [(" ", "text")]), most, "i")


def _beside(
    columns: Sequence[list[Line]], middle: list[Line], widths: tuple[int, int, int], rows: int, glyphs: Glyphs
) -> list[Line]:
    """The op in the middle between its operands and its users."""
    edge = gutter_lines(rows, glyphs)
    return hstack((columns[0], edge, middle, edge, columns[1]), (widths[0], GAP, widths[1], GAP, widths[2]))


def _column(
    here: Neighbourhood, side: Side, shown: range, cursor: int | None, lines: int, pen: Pen, is_direct: bool = True
) -> list[Line]:
    """Some neighbours of a side, one or two lines each."""
    drawn: list[Line] = []
    for at in shown:
        drawn += _entry(neighbour(here, side, at, is_direct), side, at == cursor, pen)[:lines]
    if not len(shown):
        words = "none: it is a parameter" if here.op.opcode in ("parameter", "constant") else "none"
        drawn.append(pen.fit([(f"  {words if side == 'operands' else 'none'}", "dim")]))
    return drawn


def _entry(one: Neighbour, side: Side, is_marked: bool, pen: Pen) -> list[Line]:
    """A neighbour: its name and its share of the time or its size; below, its shape, or what is behind it."""
    node = one.node
    figure = _figure(node)
    badge = "!" if node.changes_layout else "order" if one.is_control else ""
    mark = pen.glyphs.mark if is_marked else " "
    room = pen.width - 2 - len(figure) - (len(badge) + 1 if badge else 0) - (1 if figure else 0)
    name = cut_middle(short_name(pen.text(node.name), room), max(4, room), pen.glyphs)
    first: list[Span] = [(f"{mark}", "mark"), (f" {name}", "cursor" if is_marked else "text")]
    first.append((" " * max(0, pen.width - line_width(tuple(first)) - len(badge) - len(figure) - bool(badge)), "text"))
    first += [(f"{badge} ", "warn" if node.changes_layout else "dim")] if badge else []
    first.append((figure, "strong" if node.fraction is not None else "dim"))
    below = pen.fit([("    ", "dim"), (_second(one, side, pen.narrower(4)), "dim")])
    return [pen.fit(first), below]


def short_name(name: str, room: int) -> str:
    """A name with its longest part as people abbreviate it, where it does not fit."""
    return name if len(name) <= room else name.replace("get-tuple-element", "gte")


def _figure(node: Node) -> str:
    if node.fraction is not None and node.fraction >= _LEAST_SHARE:
        return share(node.fraction)
    return binary_size(node.size_bytes) if node.size_bytes else ""


def _second(one: Neighbour, side: Side, pen: Pen) -> str:
    node = one.node
    if one.behind:
        arrow = "<" if side == "operands" else ">"
        more = "" if one.is_all_behind and len(one.behind) == 1 else f" +{len(one.behind) - 1}"
        more += "" if one.is_all_behind else " or more"
        room = max(4, pen.width - len(more) - 2)
        return f"{arrow} {cut_middle(one.behind[0], room, pen.glyphs)}{more}"
    if node.moves:
        return cut_middle(node.moves, pen.width, pen.glyphs)
    size = binary_size(node.size_bytes) if node.size_bytes and _figure(node).endswith("%") else ""
    shape = cut_middle(short_shape(node.shape), max(4, pen.width - len(size) - 1), pen.glyphs)
    return f"{shape} {size}".rstrip()


def centre_lines(here: Neighbourhood, pen: Pen, is_whole: bool = False) -> list[Line]:
    """The op: its name, what it is, its time and what bounds it, its shape, what is inside it, where it comes from.

    Nothing of it is cut if `is_whole`.
    """
    op, page = here.op, here.program.times.page
    lines = pen.wrap(op.name, "strong")

    def entry(label: str, words: str | None, key: StyleKey = "text", most: int = 99) -> None:
        if words:
            lines.extend(pen.cut_after(pen.wrap(words, key, [label_span(label, LABEL)]), most))

    category = page.table.category[op.op] if page is not None and op.op is not None else None
    kind = op.opcode if category in (None, op.opcode) else f"{category} {pen.glyphs.dot} {op.opcode}"
    lines.append(pen.fit([(kind, "dim")]))
    if op.self_ps is not None and op.occurrences:
        each = duration(op.self_ps / op.occurrences)
        part = f"{share(op.fraction)}: " if op.fraction is not None else ""
        entry("time", f"{part}{count(op.occurrences)} {pen.glyphs.times} {each}", "strong")
    else:
        entry("time", f"n/a: {op.why_untimed}", "dim")
    if page is not None and op.op is not None and (bound := page.rates.bound_name(op.op)) != "unknown":
        is_of_host = bound == "HBM" and is_in_host_memory(page.table.expression(op.op))
        work, near = float(page.rates.operational_intensity[op.op]), float(page.rates.efficiency[op.op])
        flops = f", {intensity(work)} FLOP/B" if math.isfinite(work) and work > 0 else ""
        at = f" {share(near)}" if math.isfinite(near) else ""
        entry("bound by", "unknown: S(5) is host memory" if is_of_host else f"{bound}{at}{flops}")
    entry("size", binary_size(op.size_bytes) if op.size_bytes is not None else "n/a")
    entry("copies", op.moves, "warn" if op.changes_layout else "text")
    entry("pair", op.partner)
    is_tuple = op.shape.startswith("(") and not is_whole
    shape = f"tuple of {short_shape(op.shape)}" if is_tuple else op.shape
    entry("shape", shape, "strong", 99 if is_whole else _SHAPE_LINES)
    for one in here.called:
        more = f" and {count(one.more)} more" if one.more else ""
        inside = f"{', '.join(one.first)}{more}" if one.first else one.name
        entry("inside" if one.role == "calls" else one.role, inside, most=99 if is_whole else _INSIDE_LINES)
    for number, reason in enumerate(here.why_not_fused):
        entry("" if number else "alone", reason)
    entry("source", op.source)
    entry("op", op.framework_op and op.framework_op.rstrip(":"))
    return lines


def path_lines(here: Neighbourhood, trail: Sequence[str], pen: Pen) -> list[Line]:
    """The computations from the program's own to the op's; and where one has been."""
    steps = [step.computation if step.caller is None else f"{step.caller}/{step.role}" for step in here.path]
    loops = f"in {count(here.in_loops)} loop{'s' * (here.in_loops != 1)} {pen.glyphs.dot} " if here.in_loops else ""
    right = f"{loops}{count(here.instructions)} instructions "
    lines = [_way("path", [*steps, here.op.name], right, pen)]
    return [*lines, _way("been", [*trail, here.op.name], "", pen)] if trail else lines


def _way(label: str, names: Sequence[str], right: str, pen: Pen) -> Line:
    """Names one after the other, of a long way its end."""
    room = pen.width - 7 - len(right) - 1
    words = cut_begin(f" {pen.glyphs.mark} ".join(names), max(8, room), pen.glyphs)
    gap = " " * max(1, pen.width - 7 - len(words) - len(right))
    return pen.fit([(f" {label}  ", "dim"), (words, "text"), (gap, "text"), (right, "dim")])


_ROLES: dict[Side, tuple[str, str, str, str]] = {
    "operands": ("producer", "only runs before it", "operand", "produced by"),
    "users": ("user", "only runs after it", "takes it as operand", "used by"),
}
"""What a neighbour of each side is to the op: behind others, without a value, as an operand, and in a heading."""


def _detail_lines(one: Neighbour | None, side: Side, pen: Pen) -> list[Line]:
    """The neighbour under the cursor in full, as far as three lines go."""
    if one is None:
        return filled([], pen.width, _DETAIL_LINES)
    node = one.node
    numbers = ", ".join(map(str, one.places[:8])) + (", ..." if len(one.places) > 8 else "")
    made, before, operand, by = _ROLES[side]
    through = f"{made} (via tuple, loop or call)"
    parts = [f"{operand} {numbers}" if one.places else before if one.is_control else through, node.opcode]
    parts += [f"{share(node.fraction)} of the time"] if node.fraction is not None else []
    parts += [binary_size(node.size_bytes)] if node.size_bytes else []
    parts += [f"copies {node.moves}"] if node.moves else []
    parts += [f"{count(node.inside)} inside"] if node.inside else []
    if one.behind:
        more = "" if one.is_all_behind else " and more"
        parts.append(f"{by} {', '.join(one.behind)}{more}")
    dot = f" {pen.glyphs.dot} "
    words = f"{dot.join(parts)}{dot}{node.shape}" + (f"{dot}{node.source}" if node.source else "")
    lines = pen.narrower(1).wrap(words, "dim", [(f" {node.name}  ", "strong")], 2)
    return filled(pen.narrower(1).cut_after(lines, _DETAIL_LINES), pen.width, _DETAIL_LINES)


# --- the text


def text_length(here: Neighbourhood) -> int:
    """Lines of the op's computation, with its head and its closing brace."""
    graph = here.program.graph
    return graph.size(graph.computation(here.op.row)) + 2


def row_at(here: Neighbourhood, line: int) -> int | None:
    """The instruction on a line of the text; None on the first and the last one."""
    graph = here.program.graph
    rows = graph.rows(graph.computation(here.op.row))
    return rows[line - 1] if 0 < line <= len(rows) else None


def line_of(here: Neighbourhood) -> int:
    """The line of the text that the op stands on."""
    return here.program.graph.position(here.op.row) + 1


def text_line(here: Neighbourhood, line: int) -> str:
    """One line of the text."""
    graph, row = here.program.graph, row_at(here, line)
    if row is not None:
        return f"  {instruction_line(graph, row)}"
    return computation_head(graph, graph.computation(here.op.row)) if line == 0 else "}"


def _text_page(
    here: Neighbourhood, view: GraphView, head: list[Line], foot: list[Line], pen: Pen, height: int
) -> DrawnGraph:
    total = text_length(here)
    under = text_line(here, view.text.cursor).strip()
    detail = pen.narrower(1).cut_after(pen.narrower(1).wrap(under, "text", [(" ", "text")]), max(2, height // 4))
    rows = max(1, height - len(head) - len(foot) - len(detail) - 2)
    first = view.text.shown_first(rows, total)
    own = line_of(here)
    lines = [*head, pen.rule(f"line {count(view.text.cursor + 1)} of {count(total)}")]
    for line in range(first, min(total, first + rows)):
        shown = pen.text(text_line(here, line))[view.shift :]
        mark = pen.glyphs.mark if line == view.text.cursor else " "
        key: StyleKey = "cursor" if line == view.text.cursor else "strong" if line == own else "text"
        lines.append(pen.fit([(mark, "mark"), (shown[: pen.width - 1], key)]))
    lines = filled(lines, pen.width, len(head) + 1 + rows)
    lines += [((pen.glyphs.horizontal * pen.width, "rule"),), *detail, *foot]
    return DrawnGraph(
        tuple(pen.fit(one) for one in filled(lines, pen.width, height)), len(head) + 1, rows, top=(first, first)
    )
