"""Puts spans together: cutting, padding, wrapping and joining lines of an exact width."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain, takewhile

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.tui.draw.spans import Glyphs, Key, Line, Span, StyleKey

WIDE = 110  # cells from which on the page shows more columns
NARROW = 72  # cells below which a table gives up columns for the names
LOW = 21  # rows up to which the verdict is cut to three lines
TALL = 30  # rows from which on the page has air and every line of the verdict


@dataclass(frozen=True, slots=True)
class Composed:
    """A page with a table, in lines.

    Attributes:
        first_row_line: line of the first row that shows; -1 where none does.
        first, room: the first row that shows, and how many fit.
    """

    lines: tuple[Line, ...]
    first_row_line: int
    first: int
    room: int


_DRAWN = pattern("[ -~\u00a1-\u00ac\u00ae-\u02ff\u03b1-\u03c9\u2010-\u2027\u2190-\u22ff\u2500-\u25fc\u2800-\u28ff]*")
"""Characters that every terminal draws in one cell: the most frequent of those that `_one_cell` keeps."""


def clean(text: str, ascii_only: bool = False) -> str:
    """Text of a profile, fit for cells: nothing but one-cell characters, all else shown by a placeholder.

    It returns its own results unchanged. What is drawn passes through it with every frame, so that plain text, and
    text with the signs that drawings are made of, returns at once.
    """
    if (text.isascii() and text.isprintable()) or (not ascii_only and _DRAWN.fullmatch(text)):
        return text
    text = printable(text)
    return text if text.isascii() else "".join(_one_cell(character, ascii_only) for character in text)


def _one_cell(character: str, ascii_only: bool) -> str:
    """The character itself where every terminal draws it in one cell, left to right; else a question mark.

    That is so up to the end of Cyrillic and Armenian (without marks that go over a neighbour) and for punctuation,
    arrows, mathematical signs, block characters and Braille, of which curves are made.
    """
    code = ord(character)
    if code < 0x7F:
        return character
    if ascii_only:
        return "u" if character in "µμ" else "?"  # both signs for micro
    if not character.isprintable():
        return "?"
    if code < 0x590:
        return "" if unicodedata.combining(character) or unicodedata.category(character) == "Me" else character
    if (0x2010 <= code < 0x2600 and unicodedata.east_asian_width(character) not in "WF") or 0x2800 <= code < 0x2900:
        return character
    return "?"


_LONG_WORD = 20  # cells of a word that is cut rather than left out


def cut(text: str, cells: int, glyphs: Glyphs) -> str:
    """The beginning of a text, fit for cells, with an ellipsis where it is longer than so many."""
    text = clean(text, glyphs.is_ascii)
    return text if len(text) <= cells else text[: max(0, cells - 1)] + glyphs.ellipsis[:cells]


def cut_words(text: str, cells: int, glyphs: Glyphs) -> str:
    """The words of a text that fit, with an ellipsis after them; of one that is long as much as there is room for."""
    text = clean(text, glyphs.is_ascii)
    if len(text) <= cells:
        return text
    room = max(0, cells - len(glyphs.ellipsis))
    is_whole = text[:room][-1:].isalpha() and text[room : room + 2] in (": ", "; ", ", ", ". ")
    end = room if is_whole else text.rfind(" ", 0, room + 1)
    if text[end - 1 : end].isdigit():  # with the ellipsis at it, a number would look like the beginning of another
        end = text.rfind(" ", 0, room)
        return cut(text, cells, glyphs) if end <= 0 else f"{text[:end]} {glyphs.ellipsis}"
    return cut(text, cells, glyphs) if end <= 0 or cells - end > _LONG_WORD else f"{text[:end]}{glyphs.ellipsis}"


def cut_middle(text: str, cells: int, glyphs: Glyphs) -> str:
    """A path's beginning and, longer, its end: the last parts of a framework op's name say most."""
    text = clean(text, glyphs.is_ascii)
    if len(text) <= cells:
        return text
    tail = max(0, cells - 1) if cells <= 8 else (cells - 1) * 2 // 3
    return text[: max(0, cells - 1 - tail)] + glyphs.ellipsis[:cells] + text[len(text) - tail :]


def cut_begin(text: str, cells: int, glyphs: Glyphs) -> str:
    """The end of a text, fit for cells, with an ellipsis before it where it is longer than so many."""
    text = clean(text, glyphs.is_ascii)
    return text if len(text) <= cells else glyphs.ellipsis[:cells] + text[len(text) - max(0, cells - 1) :]


def joined(spans: Iterable[Span]) -> Line:
    """The spans, neighbours of one key as one."""
    out: list[Span] = []
    for text, key in spans:  # a good deal faster than `groupby` where most neighbours differ, as on the timeline
        if out and out[-1][1] == key:
            out[-1] = (out[-1][0] + text, key)
        else:
            out.append((text, key))
    return tuple(out)


class Canvas:
    """Cells that are written on at any place: `cells` and `keys` hold their characters and styles, line by line."""

    def __init__(self, width: int, height: int = 1, ground: str = " ", key: StyleKey = "text") -> None:
        self.width, self.height = width, height
        self.cells = [[ground] * width for _ in range(height)]
        self.keys: list[list[Key]] = [[key] * width for _ in range(height)]

    def put(self, line: int, column: int, text: str, key: StyleKey) -> None:
        """Writes over the cells from a line and column on; what lies outside is left out."""
        if 0 <= line < self.height:
            text = text[max(0, -column) : max(0, self.width - column)]
            cells = slice(max(0, column), max(0, column) + len(text))
            self.cells[line][cells], self.keys[line][cells] = text, [key] * len(text)

    def lines(self) -> list[Line]:
        return [joined(zip(cells, keys, strict=True)) for cells, keys in zip(self.cells, self.keys, strict=True)]


def shown_top(row: int, top: int, rows: int, entries: int) -> int:
    """The first entry to show, the one nearest to `top` that keeps the cursor among `rows` entries."""
    rows = max(1, rows)
    return max(0, min(max(top, row - rows + 1), row, max(0, entries - rows)))


def hstack(blocks: Sequence[Sequence[Line]], widths: Sequence[int]) -> list[Line]:
    """Blocks side by side; shorter ones are filled with blank lines."""
    height = max(map(len, blocks), default=0)
    whole = (filled(block, width, height) for block, width in zip(blocks, widths, strict=True))
    return [tuple(chain.from_iterable(row)) for row in zip(*whole, strict=True)]


def gutter_lines(height: int, glyphs: Glyphs) -> list[Line]:
    """The rule between a list and what stands beside it."""
    return [((f" {glyphs.vertical} ", "rule"),)] * height


def filled(lines: Sequence[Line], width: int, height: int) -> list[Line]:
    """Exactly `height` lines: cut, or filled up with blank ones."""
    blank: Line = ((" " * width, "text"),)
    return [*lines[:height], *[blank] * (height - len(lines))]


def rows_around(cursor: int | None, count: int, most: int | None) -> range:
    """At most `most` of the rows of a list: the first ones, or those up to the cursor."""
    shown = count if most is None else min(most, count)
    begin = max(0, min(cursor or 0, count - 1) - shown + 1)
    return range(begin, begin + shown)


def label_span(label: str, width: int, key: StyleKey = "dim") -> Span:
    """A label in a column of `width` cells; whatever its length, a blank separates it from what comes next."""
    return f"{label:<{width - 1}} ", key


def shared_prefix(names: Sequence[str]) -> str:
    """What the framework names among these all begin with, whole parts only: ``jit(train_step)/``."""
    folders = [name.rpartition("/")[0] for name in names if "/" in name]
    if len(folders) < 2:
        return ""
    shared = takewhile(lambda column: len(set(column)) == 1, zip(*(name.split("/") for name in folders), strict=False))
    return "".join(f"{column[0]}/" for column in shared)
