"""The graph in cells: operands, the op and its users side by side; below, the way to it; or its computation's text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.printing import head_line as computation_head
from tpuprof.parsers.formats.hlo.printing import instruction_line
from tpuprof.parsers.pages.graph.model import Neighbour, Neighbourhood, Node
from tpuprof.parsers.pages.graph.neighbourhood import behind, operand, user
from tpuprof.parsers.pages.graph.programs import Program
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.buffers.words import short_shape
from tpuprof.tui.draw.format import count, duration, intensity, share
from tpuprof.tui.draw.layout import (
    cut_begin,
    cut_middle,
    filled,
    gutter_lines,
    hstack,
    label_span,
)
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Line, Span, line_width
from tpuprof.tui.draw.table import Listing

Side = Literal["operands", "users"]

GAP = 3
"""Cells of the rule between two columns."""

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
        """The list that the cursor is in."""
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

    @property
    def first(self) -> int:
        """The first line of the text that shows."""
        return self.top[0]


def number_of(here: Neighbourhood, side: Side, is_direct: bool = True) -> int:
    """How many neighbours there are on a side."""
    if not is_direct:
        return len(here.sources if side == "operands" else here.sinks)
    if side == "operands":
        return len(here.operands) + len(here.operand_controls)
    return len(here.users) + len(here.user_controls)


def neighbour_at(
    program: Program, here: Neighbourhood, side: Side, at: int, is_direct: bool = True
) -> Neighbour | None:
    """A neighbour; None where there is none of that number."""
    if not 0 <= at < number_of(here, side, is_direct):
        return None
    if not is_direct:
        return behind(program, here, at, is_user=side == "users")
    return operand(program, here, at) if side == "operands" else user(program, here, at)


def compose(
    program: Program, here: Neighbourhood, trail: Sequence[str], view: GraphView, pen: Pen, height: int
) -> DrawnGraph:
    """The page; only what shows is decoded."""
    head = answer_lines(here, pen, _MOST_ANSWER_LINES if height >= 20 else 2)
    foot = path_lines(program, here, trail, pen)
    if view.is_text:
        return _text_page(program, here, view, head, foot, pen, height)
    chosen = neighbour_at(program, here, view.side, view.listing.cursor, view.is_direct)
    detail = _detail_lines(chosen, view.side, pen) if height >= 16 else []
    widths = _widths(pen.width)
    rows = max(1, height - len(head) - len(foot) - len(detail) - 1)
    entry, top = [1, 1], [0, 0]
    columns: list[list[Line]] = []
    sides: tuple[Side, Side] = ("operands", "users")
    for number, side in enumerate(sides):
        total = number_of(here, side, view.is_direct)
        entry[number] = 2 if 2 * total <= rows else 1
        room = rows // entry[number]
        listing = view.operands if side == "operands" else view.users
        top[number] = listing.at(listing.cursor, total).shown_first(room, total)
        cursor = listing.cursor if view.side == side else None
        shown = range(top[number], min(total, top[number] + room))
        drawn = neighbour_lines(
            program, here, side, shown, cursor, entry[number], pen.at(widths[2 * number]), view.is_direct
        )
        columns.append(drawn)
    middle = pen.at(widths[1]).cut_after(centre_lines(program, here, pen.at(widths[1])), rows, "i")
    edge = gutter_lines(rows, pen.glyphs)
    body = hstack(
        [filled(part, size, rows) for part, size in ((columns[0], widths[0]), (edge, GAP), (middle, widths[1]))]
        + [filled(edge, GAP, rows), filled(columns[1], widths[2], rows)],
        (widths[0], GAP, widths[1], GAP, widths[2]),
    )
    heads = [*head, _heads(here, view, widths, pen.glyphs)]
    lines = filled([*heads, *body, *foot, *detail], pen.width, height)
    return DrawnGraph(
        tuple(pen.fit(line) for line in lines),
        len(heads),
        rows,
        (entry[0], entry[1]),
        (top[0], top[1]),
        widths,
    )


def sections(program: Program, here: Neighbourhood, pen: Pen, limit: int = 0) -> list[Line]:
    """The three columns as high as they are, or with so many neighbours at most, and the way to the op."""
    widths = _widths(pen.width)
    sides: tuple[Side, Side] = ("operands", "users")
    columns = []
    for number, side in enumerate(sides):
        total = number_of(here, side)
        shown = range(min(total, limit) if limit else total)
        column = neighbour_lines(program, here, side, shown, None, 2, pen.at(widths[2 * number]))
        if len(shown) < total:
            column.append(pen.at(widths[2 * number]).fit([(f"  and {count(total - len(shown))} more", "dim")]))
        columns.append(column)
    middle = centre_lines(program, here, pen.at(widths[1]))
    rows = max(len(middle), *map(len, columns))
    edge = gutter_lines(rows, pen.glyphs)
    body = hstack((columns[0], edge, middle, edge, columns[1]), (widths[0], GAP, widths[1], GAP, widths[2]))
    return [_heads(here, None, widths, pen.glyphs), *body, *path_lines(program, here, (), pen)]


# --- parts


def _widths(width: int) -> tuple[int, int, int]:
    room = width - 2 * GAP
    side = min(44, room * 31 // 100) if width >= 100 else room * 32 // 100
    return side, room - 2 * side, side


def _heads(here: Neighbourhood, view: GraphView | None, widths: tuple[int, int, int], glyphs: Glyphs) -> Line:
    """The columns' titles, with how many neighbours there are; that of the cursor marked."""
    spans: list[Span] = []
    sides: tuple[Side, None, Side] = ("operands", None, "users")
    for number, side in enumerate(sides):
        words, is_direct = "this op", view is None or view.is_direct
        if side is not None:
            title = side if is_direct else "made by" if side == "operands" else "used by"
            words = f"{title} {count(number_of(here, side, is_direct))}"
        is_marked = view is not None and view.side == side
        line = glyphs.horizontal
        own: list[Span] = [(f"{line} ", "rule"), (words, "strong" if is_marked else "title"), (" ", "rule")]
        own.append((line * max(0, widths[number] - line_width(tuple(own))), "rule"))
        spans += own if number == 0 else [(line * GAP, "rule"), *own]
    return tuple(spans)


def answer_lines(here: Neighbourhood, pen: Pen, most: int) -> list[Line]:
    """What the graph answers, in sentences."""
    words = " ".join(here.answers)
    return pen.narrower(1).cut_after(pen.narrower(1).wrap(words, "text", [(" ", "text")], keeps_names=True), most, "i")


def neighbour_lines(
    program: Program,
    here: Neighbourhood,
    side: Side,
    shown: range,
    cursor: int | None,
    lines: int,
    pen: Pen,
    is_direct: bool = True,
) -> list[Line]:
    """Some neighbours of a side, one or two lines each."""
    drawn: list[Line] = []
    for at in shown:
        one = neighbour_at(program, here, side, at, is_direct)
        if one is not None:
            drawn += _entry(one, side, at == cursor, pen)[:lines]
    if not len(shown):
        words = "none: it is given" if here.op.opcode in ("parameter", "constant") else "none"
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
    """What stands below a neighbour's name."""
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


def centre_lines(program: Program, here: Neighbourhood, pen: Pen, is_whole: bool = False) -> list[Line]:
    """The op: its name, what it is, its time and what bounds it, its shape, what is inside it, where it comes from.

    Args:
        is_whole: nothing of it is cut.
    """
    op, page = here.op, program.times.page
    lines = pen.wrap(op.name, "strong")

    def entry(label: str, words: str, key: Literal["text", "dim", "strong", "warn"] = "text", most: int = 99) -> None:
        nonlocal lines
        lines += pen.cut_after(pen.wrap(words, key, [label_span(label, LABEL)], keeps_names=True), most)

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
        work, near = float(page.rates.operational_intensity[op.op]), float(page.rates.efficiency[op.op])
        flops = f", {intensity(work)} FLOP/B" if math.isfinite(work) and work > 0 else ""
        at = f" {share(near)}" if math.isfinite(near) else ""
        entry("bound by", f"{bound}{at}{flops}")
    entry("size", binary_size(op.size_bytes) if op.size_bytes is not None else "n/a")
    if op.moves:
        entry("copies", op.moves, "warn" if op.changes_layout else "text")
    if op.partner:
        entry("pair", op.partner)
    is_tuple = op.shape.startswith("(") and not is_whole
    shape = f"tuple of {short_shape(op.shape)}" if is_tuple else op.shape
    entry("shape", shape, "strong", 99 if is_whole else _SHAPE_LINES)
    for one in here.called:
        inside = ", ".join(one.first)
        more = f" and {count(one.more)} more" if one.more else ""
        entry(
            one.role if one.role != "calls" else "inside",
            f"{inside}{more}" if inside else one.name,
            most=99 if is_whole else _INSIDE_LINES,
        )
    for number, reason in enumerate(here.why_not_fused):
        entry("" if number else "alone", reason)
    if op.source:
        entry("source", op.source)
    if op.framework_op:
        entry("op", op.framework_op.rstrip(":"))
    return lines


def path_lines(program: Program, here: Neighbourhood, trail: Sequence[str], pen: Pen) -> list[Line]:
    """The computations from the program's own to the op's; and where one has been."""
    steps = [step.computation if step.caller is None else f"{step.caller}/{step.role}" for step in here.path]
    loops = f"in {count(here.in_loops)} loop{'s' * (here.in_loops != 1)} {pen.glyphs.dot} " if here.in_loops else ""
    right = f"{loops}{count(here.instructions)} instructions "
    lines = [_way("path", [*steps, here.op.name], right, pen)]
    return [*lines, _way("been", [*trail, here.op.name], "", pen)] if trail else lines


def _way(label: str, names: Sequence[str], right: str, pen: Pen) -> Line:
    """Names one after the other, of a long way its end."""
    room = pen.width - 7 - len(right) - 1
    words = f" {pen.glyphs.mark} ".join(name for name in names)
    words = cut_begin(words, max(8, room), pen.glyphs)
    gap = " " * max(1, pen.width - 7 - len(words) - len(right))
    return pen.fit([(f" {label}  ", "dim"), (words, "text"), (gap, "text"), (right, "dim")])


def _detail_lines(one: Neighbour | None, side: Side, pen: Pen) -> list[Line]:
    """The neighbour under the cursor in full, as far as three lines go."""
    if one is None:
        return filled([], pen.width, _DETAIL_LINES)
    node = one.node
    made = "makes what it takes" if side == "operands" else "uses its result"
    role = f"{made}, through a tuple, loop or call"
    if one.is_control:
        role = "only runs before it" if side == "operands" else "only runs after it"
    if one.places:
        numbers = ", ".join(str(place) for place in one.places[:8]) + (", ..." if len(one.places) > 8 else "")
        role = f"operand {numbers}" if side == "operands" else f"takes it as operand {numbers}"
    parts = [role, node.opcode]
    parts += [f"{share(node.fraction)} of the time"] if node.fraction is not None else []
    parts += [binary_size(node.size_bytes)] if node.size_bytes else []
    parts += [f"copies {node.moves}"] if node.moves else []
    parts += [f"{count(node.inside)} inside"] if node.inside else []
    if one.behind:
        by = "made by" if side == "operands" else "used by"
        more = "" if one.is_all_behind else " and more"
        parts.append(f"{by} {', '.join(one.behind)}{more}")
    dot = f" {pen.glyphs.dot} "
    words = f"{dot.join(parts)}{dot}{node.shape}" + (f"{dot}{node.source}" if node.source else "")
    lines = pen.narrower(1).wrap(words, "dim", [(f" {node.name}  ", "strong")], 2, keeps_names=True)
    return filled(pen.narrower(1).cut_after(lines, _DETAIL_LINES), pen.width, _DETAIL_LINES)


# --- the text


def text_length(program: Program, here: Neighbourhood) -> int:
    """Lines of the op's computation, with its head and its closing brace."""
    return program.graph.size(program.graph.computation(here.op.row)) + 2


def row_at(program: Program, here: Neighbourhood, line: int) -> int | None:
    """The instruction on a line of the text; None on the first and the last one."""
    rows = program.graph.rows(program.graph.computation(here.op.row))
    return rows[line - 1] if 0 < line <= len(rows) else None


def line_of(program: Program, row: int) -> int:
    """The line of the text that an instruction stands on."""
    return program.graph.position(row) + 1


def text_line(program: Program, here: Neighbourhood, line: int) -> str:
    """One line of the text."""
    graph = program.graph
    row = row_at(program, here, line)
    if row is not None:
        return f"  {instruction_line(graph, row)}"
    return computation_head(graph, graph.computation(here.op.row)) if line == 0 else "}"


def _text_page(
    program: Program, here: Neighbourhood, view: GraphView, head: list[Line], foot: list[Line], pen: Pen, height: int
) -> DrawnGraph:
    total = text_length(program, here)
    under = text_line(program, here, view.text.cursor).strip()
    detail = pen.narrower(1).cut_after(pen.narrower(1).wrap(under, "text", [(" ", "text")]), max(2, height // 4))
    rows = max(1, height - len(head) - len(foot) - len(detail) - 2)
    first = view.text.shown_first(rows, total)
    own = line_of(program, here.op.row)
    lines = [*head, pen.rule(f"line {count(view.text.cursor + 1)} of {count(total)}")]
    for line in range(first, min(total, first + rows)):
        shown = pen.text(text_line(program, here, line))[view.shift :]
        mark = pen.glyphs.mark if line == view.text.cursor else " "
        key: Literal["cursor", "strong", "text"] = (
            "cursor" if line == view.text.cursor else "strong" if line == own else "text"
        )
        lines.append(pen.fit([(mark, "mark"), (shown[: pen.width - 1], key)]))
    lines = filled(lines, pen.width, len(head) + 1 + rows)
    lines += [((pen.glyphs.horizontal * pen.width, "rule"),), *detail, *foot]
    return DrawnGraph(
        tuple(pen.fit(one) for one in filled(lines, pen.width, height)), len(head) + 1, rows, top=(first, first)
    )
