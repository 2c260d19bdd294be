"""The largest buffers as a table: sorted, filtered, grouped by the source line that they come from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.triage import Triage, Trial
from tpuprof.tui.draw.buffers.sizes import binary_short
from tpuprof.tui.draw.buffers.words import CATEGORY, CATEGORY_WORDS, expansion_style, expansion_words, short_shape
from tpuprof.tui.draw.format import UNKNOWN, percent
from tpuprof.tui.draw.layout import NARROW, WIDE, clean, cut_begin
from tpuprof.tui.draw.spans import Glyphs, Line, Span
from tpuprof.tui.draw.table import Column, each, header_line, row_lines

Sort = Literal["size", "padding", "category", "source", "shape"]
SORTS: tuple[Sort, ...] = get_args(Sort)

_LEAST_OP = 6
"""Cells of an op's name below which it is left out."""

_SHAPE = 24
"""Cells that a shape may take from the names of ops, but not from their lines of code."""

_MEASURED = 200
"""Rows whose shapes decide how wide their column is."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row: one buffer, or all of a source line.

    Attributes:
        buffers: indices, the largest first.
        size: of them together, in bytes.
        unpadded: of their elements; None where one is unknown.
        after: size with the chosen toggles; None without.
        title: the source line of a group; empty for one buffer.
    """

    buffers: tuple[int, ...]
    size: int
    unpadded: int | None
    after: int | None
    title: str = ""

    @property
    def expansion(self) -> float | None:
        """Size over unpadded size."""
        return self.size / self.unpadded if self.unpadded else None

    @property
    def padding(self) -> int:
        """Bytes of padding, 0 where unknown."""
        return 0 if self.unpadded is None else max(0, self.size - self.unpadded)


def rows_of(
    triage: Triage, trial: Trial | None, sort: Sort = "size", words: str = "", grouped: bool = False
) -> tuple[Row, ...]:
    """The rows to show, in order.

    Args:
        words: only buffers that hold each of these in what is known of them.
    """
    buffers = triage.need.buffers
    wanted = words.casefold().split()
    chosen = [at for at, buffer in enumerate(buffers) if all(word in _searched(buffer) for word in wanted)]
    sizes = trial.estimate.sizes if trial is not None and trial.chosen else None
    if not grouped:
        rows = [_row(triage, (at,), sizes) for at in chosen]
    else:
        places: dict[str, list[int]] = {}
        for at in chosen:
            places.setdefault(buffers[at].source or "", []).append(at)
        rows = [_row(triage, tuple(found), sizes, place or "source unknown") for place, found in places.items()]
    return tuple(sorted(rows, key=lambda row: _order(row, sort, buffers)))


def place_of(buffer: Buffer, folder: bool = False) -> tuple[str, str]:
    """Where a buffer comes from, in brief: ``models.py:53`` and ``attention/sub``; else its instruction.

    Args:
        folder: the source with its folders.
    """
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
    triage: Triage,
    rows: Sequence[Row],
    width: int,
    glyphs: Glyphs,
    cursor: int = -1,
    marked: frozenset[int] = frozenset(),
    sort: Sort | None = "size",
    first: int = 0,
    room: int | None = None,
) -> list[Line]:
    """Headings and rows.

    Args:
        cursor: index of the row under the cursor, -1 for none.
        marked: buffers that the chosen advice is about.
        sort: what to say that the rows are sorted by; None for nothing, as in reports, where no key changes it.
        first: the first row shown.
        room: how many rows fit; None for all.
    """
    last = len(rows) if room is None else min(len(rows), first + room)
    columns = _columns(triage, rows, width, glyphs, marked)
    key = "pad" if sort == "padding" else sort or ""
    lines = [header_line(columns, width, glyphs, key, sort in ("size", "padding"))]
    return lines + row_lines(columns, range(first, last), cursor, width, glyphs)


# --- rows ----------------------------------------------------------------------------------------------------------


def _row(triage: Triage, found: tuple[int, ...], sizes: Sequence[int] | None, title: str = "") -> Row:
    buffers = [triage.need.buffers[at] for at in found]
    unpadded = [buffer.unpadded_bytes for buffer in buffers]
    known = [size for size in unpadded if size is not None]
    after = None if sizes is None else sum(sizes[at] for at in found if at < len(sizes))
    total = sum(buffer.size_bytes for buffer in buffers)
    return Row(found, total, sum(known) if len(known) == len(unpadded) else None, after, title)


def _order(row: Row, sort: Sort, buffers: Sequence[Buffer]) -> tuple[object, ...]:
    first = buffers[row.buffers[0]]
    if sort == "padding":
        return (-row.padding, -row.size, row.buffers)
    if sort == "size":
        return (-row.size, row.buffers)
    text = {"category": first.category, "source": first.source or "\uffff", "shape": first.shape or "\uffff"}[sort]
    return (text, -row.size, row.buffers)


def _searched(buffer: Buffer) -> str:
    texts = (
        buffer.name,
        buffer.category,
        buffer.shape,
        buffer.framework_op,
        buffer.source,
        buffer.allocation_type,
        buffer.operator,
        buffer.tag,
        buffer.label,
    )
    return "\n".join(text for text in texts if text).casefold()


# --- columns -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cells:
    """The table's cells, each a text and its style."""

    triage: Triage
    rows: Sequence[Row]
    width: int
    glyphs: Glyphs
    marked: frozenset[int]
    place_width: int = 0

    def _clean(self, text: str) -> str:
        return clean(text, self.glyphs.name == "ascii")

    def _buffer(self, at: int) -> Buffer:
        return self.triage.need.buffers[self.rows[at].buffers[0]]

    def number(self, at: int) -> Span:
        row = self.rows[at]
        number = at + 1 if row.title else row.buffers[0] + 1
        return (f"{number}", "dim" if self.marked.isdisjoint(row.buffers) else "key")

    def size(self, at: int) -> Span:
        return (binary_short(self.rows[at].size), "strong")

    def after(self, at: int) -> Span:
        row = self.rows[at]
        changed = row.after is not None and row.after < row.size
        return (binary_short(row.after) if changed else "", "good")

    def share(self, at: int) -> Span:
        whole = self.triage.wanted_bytes
        return (percent(100 * self.rows[at].size / whole, 0) if whole else UNKNOWN, "text")

    def padding(self, at: int) -> Span:
        expansion = self.rows[at].expansion
        return (expansion_words(expansion), expansion_style(expansion))

    def category(self, at: int) -> Span:
        words = {CATEGORY_WORDS[self.triage.need.buffers[index].category] for index in self.rows[at].buffers}
        return (words.pop() if len(words) == 1 else "mixed", "text")

    def shape(self, at: int) -> Span:
        row = self.rows[at]
        if not row.title:
            text = self._buffer(at).shape or UNKNOWN
            return (self._clean(text if self.width >= 2 * NARROW else short_shape(text)), "text")
        shapes = {short_shape(self.triage.need.buffers[index].shape) for index in row.buffers}
        words = f"{len(row.buffers)} {self.glyphs.times} " if len(row.buffers) > 1 else ""
        return (self._clean(words + (shapes.pop() if len(shapes) == 1 else f"({len(shapes)} shapes)")), "text")

    def place(self, at: int) -> tuple[str, str]:
        """The line of code and the op."""
        row, folder = self.rows[at], self.width >= WIDE
        found = _group_place(row, self.triage.need.buffers, folder) if row.title else place_of(self._buffer(at), folder)
        return self._clean(found[0]), self._clean(found[1])

    def source(self, at: int) -> Span:
        place, op = self.place(at)
        left = self.place_width - len(place) - bool(place)
        if place and left < min(len(op), _LEAST_OP):  # the line of code says more than a bit of an op
            return (cut_begin(place, self.place_width, self.glyphs), "text")
        return (f"{place} {cut_begin(op, left, self.glyphs)}".strip(), "text")


def _columns(triage: Triage, rows: Sequence[Row], width: int, glyphs: Glyphs, marked: frozenset[int]) -> list[Column]:
    cells = _Cells(triage, rows, width, glyphs, marked)
    digits = max(2, len(str(len(triage.need.buffers))))
    left = [
        Column("#", "#", digits, each(cells.number), fixed=True),
        Column("size", "size", 6, each(cells.size), fixed=True),
    ]
    if any(row.after is not None for row in rows):
        left.append(Column("after", "est.", 6, each(cells.after), fixed=True))
    if width >= NARROW:
        left.append(Column("share", "%", 4, each(cells.share), fixed=True))
    left.append(Column("pad", "pad", 5, each(cells.padding), fixed=True))
    if width >= NARROW:
        left.append(Column("category", CATEGORY, 6, each(cells.category), right=False, fixed=True))
    room = width - 1 - sum(column.width + 1 for column in left)
    measured = range(min(len(rows), _MEASURED))
    widest = max((len(cells.shape(at)[0]) for at in measured), default=0)
    places = [cells.place(at) for at in measured]
    beside_all = room - 2 - max((len(place) + 1 + len(op) for place, op in places), default=0)
    beside_lines = room - 2 - max((len(place) for place, _ in places), default=0)
    shape = max(8, min(widest, max(room // 2, beside_all, min(beside_lines, _SHAPE))))
    place = max(8, room - shape - 2)
    cells = replace(cells, place_width=place)
    return [
        *left,
        Column("shape", "shape", shape, each(cells.shape), right=False),
        Column("source", "source", place, each(cells.source), right=False, grows=True),
    ]


def _group_place(row: Row, buffers: Sequence[Buffer], folder: bool) -> tuple[str, str]:
    """A group's source line, and the op where all its buffers have one."""
    place = row.title if folder or " " in row.title else os.path.basename(row.title)
    ops = {op_tail(buffers[index].framework_op or "") for index in row.buffers}
    return place, ops.pop() if len(ops) == 1 else f"({len(ops)} ops)"
