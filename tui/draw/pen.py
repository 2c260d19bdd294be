"""What a drawing is made with: the cells it may take, its characters, and the lines that every page is made of.

Texts of a profile are hostile: a pen makes whatever it puts into a line fit for cells, so that nobody else has to.
Functions beside it cut texts, and join lines of an exact width.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain, takewhile
from typing import TYPE_CHECKING

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import by_reason, printable
from tpuprof.tui.draw.spans import CLASS_LETTER, CLASS_STYLE, Glyphs, Key, Line, Span, StyleKey, line_width, plain

if TYPE_CHECKING:
    from tpuprof.parsers.files.source_lines import SourceExcerpt

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


_LABEL = 22


class _Wrapper(textwrap.TextWrapper):
    """Parts a word that is longer than a line after a slash, a comma or a hyphen, where there is one."""

    def _handle_long_word(self, reversed_chunks: list[str], cur_line: list[str], cur_len: int, width: int) -> None:
        room = max(width - cur_len, 1)
        word = reversed_chunks[-1]
        end = max(word.rfind(sign, 0, room) for sign in "/,-") + 1
        if cur_line and 3 * end < width:  # it begins the next line
            return
        end = end or room
        cur_line.append(word[:end])
        reversed_chunks[-1] = word[end:]


@dataclass(frozen=True, slots=True)
class Pen:
    """Draws lines of `width` cells with one set of characters, its `glyphs`."""

    width: int
    glyphs: Glyphs

    def at(self, width: int) -> Pen:
        return Pen(width, self.glyphs)

    def narrower(self, by: int) -> Pen:
        return Pen(self.width - by, self.glyphs)

    def text(self, text: str) -> str:
        """A text of the profile as its cells show it, for what measures or cuts it before a line is made of it."""
        return clean(text, self.glyphs.is_ascii)

    def spans(self, spans: Iterable[Span]) -> Line:
        """Spans fit for cells, without empty ones."""
        ascii_only = self.glyphs.is_ascii
        return tuple((clean(text, ascii_only), key) for text, key in spans if text)

    def fit(self, spans: Iterable[Span]) -> Line:
        """A line of exactly this width, fit for cells: padded, or cut with an ellipsis."""
        spans = self.spans(spans)
        left = self.width - line_width(spans)
        if left >= 0:
            return (*spans, (" " * left, "text")) if left else spans
        out: list[Span] = []
        left = self.width
        for text, key in spans:
            if len(text) >= left:
                out.append((text[: max(0, left - 1)] + self.glyphs.ellipsis[:left], key))
                break
            out.append((text, key))
            left -= len(text)
        return tuple(out)

    def rule(self, title: str, right: str = "") -> Line:
        """A section's heading: ``─ Steps ──────────── 20 steps ─``; the right part is left out if there is no room."""
        horizontal, right = self.glyphs.horizontal, self.text(right)
        head: list[Span] = [(horizontal + " ", "rule"), (self.text(title), "title"), (" ", "rule")]
        tail: list[Span] = [(" ", "rule"), (right, "dim"), (" " + horizontal, "rule")] if right else []
        room = self.width - line_width(tuple(head + tail))
        if room < 0:
            return self.fit([*head, (horizontal * max(0, self.width - line_width(tuple(head))), "rule")])
        return (*head, (horizontal * room, "rule"), *tail)

    def wrap(self, text: str, key: StyleKey, first: Sequence[Span] = (), indent: int | None = None) -> list[Line]:
        """A paragraph; `first` stands before its first line, the others are indented by `indent` or by that much.

        Names, options and numbers stay whole; what is longer than a line is parted after a slash, comma or hyphen.
        """
        first = self.spans(first)
        lead = line_width(first)
        wrapper = _Wrapper(
            max(lead + 8, self.width),
            initial_indent=" " * lead,
            subsequent_indent=" " * (lead if indent is None else indent),
            break_on_hyphens=False,
        )
        pieces = wrapper.wrap(self.text(text))
        head = pieces[0][lead:] if pieces else ""
        return [self.fit([*first, (head, key)]), *(self.fit([(piece, key)]) for piece in pieces[1:])]

    def wrap_all(self, texts: Iterable[str], key: StyleKey, first: Sequence[Span] = ()) -> list[Line]:
        """Paragraphs, each as by `wrap`."""
        return [line for text in texts for line in self.wrap(text, key, first)]

    def notes(self, warnings: Iterable[str], unknown: Iterable[tuple[str, str]], between: str = ": ") -> list[Line]:
        """Warnings, then what is unknown, grouped by the reason.

        Args:
            unknown: names of figures, each with the reason.
            between: stands between names and their reason.
        """
        lines = self.wrap_all(warnings, "text", [(" ! ", "warn")])
        return [*lines, *self.wrap_all(by_reason(unknown, between), "dim", [(" ? ", "dim")])]

    def shortened(self, lines: Sequence[Line], height: int) -> list[Line]:
        """At most `height` lines; the last one says how many more there are, and the key that shows them."""
        if len(lines) <= height:
            return list(lines)
        if height < 1:
            return []
        rest = len(lines) - height + 1
        more = f"{self.glyphs.ellipsis} {rest} more line{'s' * (rest != 1)}: Enter"
        return [*lines[: height - 1], self.fit([(" " * max(0, self.width - len(more) - 1), "text"), (more, "dim")])]

    def cut_after(self, lines: Sequence[Line], most: int, key: str = "") -> list[Line]:
        """At most `most` lines of a text; the end of the last one says how many more there are, and their key."""
        if len(lines) <= most:
            return list(lines)
        if most < 1:
            return []
        hidden = len(lines) - most
        more = f"{self.glyphs.ellipsis} (+{hidden} more line{'s' * (hidden != 1)}{key and f', {key}'})"
        last, room = plain(lines[most - 1]).rstrip(), self.width - len(more) - 1
        if len(last) > room:
            last = last[: max(last.rfind(" ", 0, room + 1), 0) or room].rstrip()
        return [*lines[: most - 1], self.fit([(f"{last} ", "text"), (more, "dim")])]

    def labelled(self, rows: Sequence[tuple[str, str]], label_width: int = _LABEL) -> list[Line]:
        """Values with their labels before them; a long label makes room for itself, up to half of the width."""
        longest = max((len(label) + 1 for label, _ in rows), default=0)
        column = max(label_width, min(longest, self.width // 2))
        return [line for label, value in rows for line in self.entry(label, value, label_width=column)]

    def entry(self, label: str, text: str, key: StyleKey = "text", label_width: int = _LABEL) -> list[Line]:
        return self.wrap(text, key, [label_span(label, label_width)])

    def excerpt(self, excerpt: SourceExcerpt) -> list[Line]:
        """Lines of a source file with their numbers; the one that was asked for stands out."""
        lines = []
        for index, text in enumerate(excerpt.lines):
            here = index == excerpt.marked
            mark: Span = (self.glyphs.mark if here else " ", "mark")
            code: Span = (text, "strong" if here else "dim")
            lines.append(self.fit([mark, (f"{excerpt.first_line + index:>6} ", "dim"), code]))
        return lines


@dataclass(slots=True)
class Card:
    """All about one thing, while it is written: its name, then what is known of it under labels; or a text with titles.

    Labels take `label` cells, with the blank behind them.
    """

    pen: Pen
    label: int = 10
    lines: list[Line] = field(default_factory=list)

    def head(self, name: str, words: Sequence[str] = (), op_class: OpClass | None = None) -> None:
        self.lines += self.pen.wrap(name, "strong")
        if words:
            self.kind(words, op_class)

    def kind(self, words: Sequence[str], op_class: OpClass | None = None) -> None:
        letter: list[Span] = [(f"{CLASS_LETTER[op_class]} ", CLASS_STYLE[op_class])] if op_class is not None else []
        self.lines += self.pen.wrap(f" {self.pen.glyphs.dot} ".join(words), "dim", letter, indent=0)

    def title(self, title: str) -> None:
        """The heading of a part, below a blank line where it is not the first."""
        self.lines += [*([self.pen.fit([])] if self.lines else []), self.pen.fit([(title, "title")])]

    def paragraphs(self, *texts: str) -> None:
        self.lines += self.pen.wrap_all(texts, "text")

    def more(self, number: int) -> None:
        if number > 0:
            self.lines.append(self.pen.fit([(f"and {number:,} more", "dim")]))

    def entry(self, label: str, text: str, key: StyleKey = "text") -> None:
        self.lines += self.pen.entry(label, text, key, self.label)

    def known(self, label: str, text: str | None, key: StyleKey = "text") -> None:
        """The same, nothing where it is not known."""
        if text:
            self.entry(label, text, key)
