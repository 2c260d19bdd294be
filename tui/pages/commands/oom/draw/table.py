"""The largest buffers as a table: sorted, filtered, grouped by the source line that they come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.base.text import has_words
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.triage import Triage, Trial
from tpuprof.tui.draw.buffers.words import CATEGORY, CATEGORY_WORDS, expansion_style, expansion_words, short_shape
from tpuprof.tui.draw.format import UNKNOWN, binary_short, percent
from tpuprof.tui.draw.pen import NARROW, WIDE, Pen, cut_begin
from tpuprof.tui.draw.spans import ASCII, Glyphs, Line, Span
from tpuprof.tui.draw.table import Cells, Column, Listing, each, header_line, row_lines
from tpuprof.tui.pages.commands.oom.fields import BUFFERS, SEARCHED, SOURCE_LINES, SourceLines
from tpuprof.tui.report.fields import ColumnSpec, Field, Rows, Table, in_order, order, screen_columns
from tpuprof.tui.report.shared.buffers import EXPANSION, SIZE_LOOK, BufferRows, rank_field, searched
from tpuprof.tui.report.units import BYTES, PERCENT, VERBATIM

_LEAST_OP = 6  # cells of an op's name below which it is left out
_SHAPE = 24  # cells that a shape may take from the names of ops, but not from their lines of code
_MEASURED = 200  # rows whose shapes decide how wide their column is


@dataclass(frozen=True, slots=True)
class BufferRow:
    """A row: one buffer, or all of a source line.

    Attributes:
        buffers: indices, the largest first.
        size, after: of them together in bytes, and with the chosen toggles; `after` is None without.
        unpadded: bytes of their elements; None where one is unknown.
        title: the source line of a group; empty for one buffer.
    """

    buffers: tuple[int, ...]
    size: int
    unpadded: int | None
    after: int | None
    title: str = ""

    @property
    def expansion(self) -> float | None:
        return self.size / self.unpadded if self.unpadded else None

    @property
    def padding(self) -> int:
        """Bytes of padding, 0 where unknown."""
        return 0 if self.unpadded is None else max(0, self.size - self.unpadded)


@dataclass(frozen=True, slots=True)
class OomView(Listing):
    """What the user looks at.

    Attributes:
        advice: the advice that was chosen.
        is_trying, tries: toggles stand in the place of the advice, and the cursor over them.
        grouped: a row for each source line.
    """

    cursor: int = -1
    advice: int | None = None
    is_trying: bool = False
    tries: Listing = Listing()
    sort: str = "size"
    grouped: bool = False


def rows_of(triage: Triage, trial: Trial | None, view: OomView) -> tuple[BufferRow, ...]:
    """The rows to show, in order: those of buffers that hold each of the view's words in what is known of them."""
    buffers, is_wanted = triage.need.buffers, has_words(view.words)
    texts = searched_texts(triage) if view.words.strip() else [""] * len(buffers)
    chosen = [index for index, text in enumerate(texts) if is_wanted(text)]
    sizes = trial.estimate.sizes if trial is not None and trial.chosen else None
    if view.grouped:
        places: dict[str, list[int]] = {}
        for index in chosen:
            places.setdefault(buffers[index].source or "", []).append(index)
        rows = [_row(triage, tuple(members), sizes, place or "source unknown") for place, members in places.items()]
    else:
        rows = [_row(triage, (index,), sizes) for index in chosen]
    rows.sort(key=lambda row: (-row.size, row.buffers))
    sorted_rows = order(ROWS, ShownRows(triage, rows), view.sort, ROWS.is_down(view))
    return tuple(rows[index] for index in sorted_rows.tolist())


def searched_texts(triage: Triage) -> list[str]:
    """What a filter looks at in each buffer."""
    return searched(BUFFERS, BufferRows(triage.need.buffers, None), SEARCHED)


def rows_to_write(triage: Triage, rows: Sequence[BufferRow], grouped: bool) -> tuple[Table[Any], BufferRows]:
    """The fields of the rows for a file, and what they read: buffers, or the source lines that they come from."""
    if not grouped:
        return BUFFERS, BufferRows([triage.need.buffers[row.buffers[0]] for row in rows], triage.wanted_bytes)
    lines = [Buffer(row.title, "temporary", row.size, row.unpadded) for row in rows]  # no column has the category
    return SOURCE_LINES, SourceLines(lines, triage.wanted_bytes, [len(row.buffers) for row in rows])


def place_of(buffer: Buffer, folder: bool = False) -> tuple[str, str]:
    """Where a buffer comes from: ``models.py:53`` and ``attention/sub``; else its instruction. `folder` keeps those."""
    op = op_tail(buffer.framework_op or "")
    source = (buffer.source or "") if folder else os.path.basename(buffer.source or "")
    return (source, op) if source or op else ("", instruction_of(buffer) or UNKNOWN)


def op_tail(name: str) -> str:
    """The last two parts of a framework op's name."""
    return "/".join(name.rstrip(":").split("/")[-2:])


def instruction_of(buffer: Buffer) -> str:
    """Name of the instruction, of an error's text the beginning of its label."""
    return buffer.name or (buffer.label or "").lstrip("%").partition(" ")[0]


def table_lines(
    triage: Triage, rows: Sequence[BufferRow], shown: range, pen: Pen, view: OomView | None = None
) -> list[Line]:
    """Headings and some rows; in reports, where no key changes what is shown, without a view."""
    if view is None:
        columns = _columns(triage, rows, pen, frozenset())
        return [header_line(columns, pen, "", False), *row_lines(columns, shown, None, pen)]
    chosen = triage.advice[view.advice : view.advice + 1] if view.advice is not None else ()
    columns = _columns(triage, rows, pen, frozenset(index for advice in chosen for index in advice.buffers))
    return [header_line(columns, pen, view.sort, ROWS.is_down(view)), *row_lines(columns, shown, view.cursor, pen)]


def _row(triage: Triage, members: tuple[int, ...], sizes: Sequence[int] | None, title: str = "") -> BufferRow:
    buffers = [triage.need.buffers[index] for index in members]
    known = [buffer.unpadded_bytes for buffer in buffers if buffer.unpadded_bytes is not None]
    after = None if sizes is None else sum(sizes[index] for index in members if index < len(sizes))
    total = sum(buffer.size_bytes for buffer in buffers)
    return BufferRow(members, total, sum(known) if len(known) == len(buffers) else None, after, title)


@dataclass(frozen=True, slots=True)
class ShownRows(Sized):
    """The table's rows, and the cells of those columns that are more than a value.

    Attributes:
        pen: of the table; place_width: cells of the column of source lines.
        marked: buffers that the chosen advice is about.
    """

    sized_by = "rows"
    triage: Triage
    rows: Sequence[BufferRow]
    pen: Pen = Pen(0, ASCII)
    marked: frozenset[int] = frozenset()
    place_width: int = 0

    def buffers(self, index: int) -> list[Buffer]:
        return [self.triage.need.buffers[member] for member in self.rows[index].buffers]

    def number(self, index: int) -> Span:
        """The place of the buffer in the list, of a group that in the table."""
        row = self.rows[index]
        number = index + 1 if row.title else row.buffers[0] + 1
        return (f"{number}", "dim" if self.marked.isdisjoint(row.buffers) else "key")

    def after(self, index: int) -> Span:
        """The size with the chosen toggles, where that is less."""
        row = self.rows[index]
        changed = row.after is not None and row.after < row.size
        return (binary_short(row.after) if changed else "", "good")

    def category(self, index: int) -> Span:
        words = {CATEGORY_WORDS[buffer.category] for buffer in self.buffers(index)}
        return (words.pop() if len(words) == 1 else "mixed", "text")

    def shape(self, index: int) -> Span:
        buffers = self.buffers(index)
        if not self.rows[index].title:
            text = buffers[0].shape or UNKNOWN
            return ((text if self.pen.width >= 2 * NARROW else short_shape(text)), "text")
        shapes = {short_shape(buffer.shape) for buffer in buffers}
        words = f"{len(buffers)} {self.pen.glyphs.times} " if len(buffers) > 1 else ""
        return (words + (shapes.pop() if len(shapes) == 1 else f"({len(shapes)} shapes)"), "text")

    def place(self, index: int) -> tuple[str, str]:
        """The line of code and the op; of a group the op where all its buffers have one."""
        title, buffers, folder = self.rows[index].title, self.buffers(index), self.pen.width >= WIDE
        place, op = place_of(buffers[0], folder)
        if title:
            place = title if folder or " " in title else os.path.basename(title)
            ops = {op_tail(buffer.framework_op or "") for buffer in buffers}
            op = ops.pop() if len(ops) == 1 else f"({len(ops)} ops)"
        return self.pen.text(place), self.pen.text(op)

    def source(self, index: int) -> Span:
        place, op = self.place(index)
        left = self.place_width - len(place) - bool(place)
        if place and left < min(len(op), _LEAST_OP):  # the line of code says more than a bit of an op
            return (cut_begin(place, self.place_width, self.pen.glyphs), "text")
        return (f"{place} {cut_begin(op, left, self.pen.glyphs)}".strip(), "text")


def _of_rows(name: str) -> Callable[[ShownRows, Rows], list[Any]]:
    return lambda source, rows: [getattr(source.rows[row], name) for row in rows]


def _shares(source: ShownRows, rows: Rows) -> list[float | None]:
    whole = source.triage.wanted_bytes
    return [100 * source.rows[row].size / whole if whole else None for row in rows]


def _drawn(
    key: str,
    title: str,
    width: int,
    meaning: str,
    cell: Callable[[ShownRows, int], Span],
    fixed: bool = False,
    grows: bool = False,
) -> Field[ShownRows]:
    """A text of each row's largest buffer, of which cells say more; unknown ones are the last in the alphabet."""

    def read(source: ShownRows, rows: Rows) -> list[str]:
        return [getattr(source.buffers(row)[0], key) or "\uffff" for row in rows]

    def cells(source: ShownRows, _: Glyphs) -> Cells:
        return each(lambda row: cell(source, row))

    return Field(key, VERBATIM, read, meaning, screen=ColumnSpec(title, width, cells=cells, fixed=fixed, grows=grows))


_RANK: ColumnSpec[ShownRows] = ColumnSpec("#", 2, cells=lambda source, _: each(source.number), fixed=True)
_AFTER: ColumnSpec[ShownRows] = ColumnSpec("est.", 6, cells=lambda source, _: each(source.after), fixed=True)
_SHARE: ColumnSpec[ShownRows] = ColumnSpec("%", 4, words=lambda value, _: percent(value, 0), fixed=True)
_EXPANSION: ColumnSpec[ShownRows] = ColumnSpec(
    "pad", 5, expansion_style, lambda value, _: expansion_words(value), fixed=True
)

ROWS: Table[ShownRows] = Table(
    "rows",
    (
        replace(rank_field(2), screen=_RANK),
        Field("size_bytes", BYTES, _of_rows("size"), "its size", screen=replace(SIZE_LOOK, fixed=True)),
        Field("after_bytes", BYTES, _of_rows("after"), "its size with the chosen changes", screen=_AFTER),
        Field("share_percent", PERCENT, _shares, "its share of all that is needed", screen=_SHARE),
        Field(
            "expansion",
            EXPANSION,
            _of_rows("expansion"),
            "size over unpadded size",
            screen=_EXPANSION,
            sort=lambda source: [row.padding for row in source.rows],
        ),
        _drawn("category", CATEGORY, 6, "what holds it", ShownRows.category, fixed=True),
        _drawn("shape", "shape", 8, "its shape", ShownRows.shape),
        _drawn("source", "source", 8, "where it comes from", ShownRows.source, grows=True),
    ),
    len,
    json=(),
    screen=in_order("rank size_bytes after_bytes share_percent expansion category shape source"),
)


def _columns(triage: Triage, rows: Sequence[BufferRow], pen: Pen, marked: frozenset[int]) -> list[Column]:
    shown = ShownRows(triage, rows, pen, marked)
    left_out = {"shape", "source"} | ({"share_percent", "category"} if pen.width < NARROW else set())
    if all(row.after is None for row in rows):
        left_out.add("after_bytes")
    looks: dict[str, Mapping[str, Any]] = {key: {} for key in ROWS.screen if key not in left_out}
    looks["rank"] = {"width": max(2, len(str(len(triage.need.buffers))))}
    left = screen_columns(ROWS, shown, pen.glyphs, looks)
    room = pen.width - 1 - sum(column.width + 1 for column in left)
    measured = range(min(len(rows), _MEASURED))
    widest = max((len(shown.shape(row)[0]) for row in measured), default=0)
    places = [shown.place(row) for row in measured]
    beside_all = room - 2 - max((len(place) + 1 + len(op) for place, op in places), default=0)
    beside_lines = room - 2 - max((len(place) for place, _ in places), default=0)
    shape = max(8, min(widest, max(room // 2, beside_all, min(beside_lines, _SHAPE))))
    place = max(8, room - shape - 2)
    looks = {
        "shape": {"width": shape},
        "source": {"width": place, "title": "source" if any(line for line, _ in places) else "op"},
    }
    return left + screen_columns(ROWS, replace(shown, place_width=place), pen.glyphs, looks)
