"""Puts spans together: cutting, padding, wrapping and joining lines of an exact width."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.tui.draw.spans import Glyphs, Key, Line, Span, StyleKey, line_width, plain

WIDE = 110
"""Cells from which on the page shows more columns."""

NARROW = 72
"""Cells below which a table gives up columns for the names."""

LOW = 21
"""Rows up to which the verdict is cut to three lines."""

TALL = 30
"""Rows from which on the page has air and every line of the verdict."""


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


def clean(text: str, ascii_only: bool = False) -> str:
    """Text of a profile, fit for cells: nothing but one-cell characters, all else shown by a placeholder."""
    text = printable(text)
    return text if text.isascii() else "".join(_one_cell(character, ascii_only) for character in text)


def _one_cell(character: str, ascii_only: bool) -> str:
    """The character itself where every terminal draws it in one cell, left to right; else a question mark.

    That is so up to the end of Cyrillic and Armenian (without marks that go over a neighbour) and for punctuation,
    arrows, mathematical signs and block characters.
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
    if 0x2010 <= code < 0x2600 and unicodedata.east_asian_width(character) not in "WF":
        return character
    return "?"


def cut(text: str, width: int, glyphs: Glyphs) -> str:
    """The beginning of a text, with an ellipsis where it is longer than `width`."""
    return text if len(text) <= width else text[: max(0, width - 1)] + glyphs.ellipsis[:width]


def cut_middle(text: str, width: int, glyphs: Glyphs) -> str:
    """A path's beginning and, longer, its end: the last parts of a framework op's name say most."""
    if len(text) <= width:
        return text
    tail = max(0, width - 1) if width <= 8 else (width - 1) * 2 // 3
    return text[: max(0, width - 1 - tail)] + glyphs.ellipsis[:width] + text[len(text) - tail :]


def cut_begin(text: str, width: int, glyphs: Glyphs) -> str:
    """The end of a text, with an ellipsis before it where it is longer than `width`."""
    return text if len(text) <= width else glyphs.ellipsis[:width] + text[len(text) - max(0, width - 1) :]


def fit(spans: Iterable[Span], width: int, glyphs: Glyphs) -> Line:
    """A line of exactly `width` cells: padded, or cut with an ellipsis."""
    spans = tuple(span for span in spans if span[0])
    left = width - line_width(spans)
    if left >= 0:
        return (*spans, (" " * left, "text")) if left else spans
    out: list[Span] = []
    left = width
    for text, key in spans:
        if len(text) >= left:
            out.append((text[: max(0, left - 1)] + glyphs.ellipsis[:left], key))
            break
        out.append((text, key))
        left -= len(text)
    return tuple(out)


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
    """Cells that are written on at any place.

    Attributes:
        cells, keys: the character and the style of each cell, line by line.
    """

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
        """What is written, neighbours of one style joined."""
        return [joined(zip(cells, keys, strict=True)) for cells, keys in zip(self.cells, self.keys, strict=True)]


def shown_top(row: int, top: int, rows: int, entries: int) -> int:
    """The first entry to show, the one nearest to `top` that keeps the cursor among `rows` entries."""
    rows = max(1, rows)
    return max(0, min(max(top, row - rows + 1), row, max(0, entries - rows)))


def beside(blocks: Sequence[Sequence[Line]], widths: Sequence[int]) -> list[Line]:
    """Blocks side by side; shorter ones are filled with blank lines."""
    height = max(map(len, blocks), default=0)
    whole = (filled(block, width, height) for block, width in zip(blocks, widths, strict=True))
    return [tuple(chain.from_iterable(row)) for row in zip(*whole, strict=True)]


def gutter_lines(height: int, glyphs: Glyphs) -> list[Line]:
    """The rule between a list and what stands beside it."""
    return [((f" {glyphs.vertical} ", "rule"),)] * height


def filled(lines: Sequence[Line], width: int, height: int) -> list[Line]:
    """Exactly so many lines: cut, or filled up with blank ones."""
    blank: Line = ((" " * width, "text"),)
    return [*lines[:height], *[blank] * (height - len(lines))]


def rule(title: str, width: int, glyphs: Glyphs, right: str = "") -> Line:
    """A section's heading: ``─ Steps ──────────── 20 steps ─``; the right part is left out for want of room."""
    head: list[Span] = [(glyphs.horizontal + " ", "rule"), (title, "title"), (" ", "rule")]
    tail: list[Span] = [(" ", "rule"), (right, "dim"), (" " + glyphs.horizontal, "rule")] if right else []
    room = width - line_width(tuple(head + tail))
    if room < 0:
        return fit([*head, (glyphs.horizontal * max(0, width - line_width(tuple(head))), "rule")], width, glyphs)
    return (*head, (glyphs.horizontal * room, "rule"), *tail)


def wrap(
    text: str,
    width: int,
    key: StyleKey,
    glyphs: Glyphs,
    first: Sequence[Span] = (),
    indent: int | None = None,
    *,
    keeps_names: bool = False,
) -> list[Line]:
    """A paragraph; `first` stands before its first line, the others are indented by `indent` or by that much.

    Args:
        keeps_names: a name with hyphens in it is not parted at one.
    """
    lead = line_width(tuple(first))
    pieces = textwrap.wrap(
        clean(text, glyphs.is_ascii),
        max(lead + 8, width),
        initial_indent=" " * lead,
        subsequent_indent=" " * (lead if indent is None else indent),
        break_on_hyphens=not keeps_names,
    )
    head = pieces[0][lead:] if pieces else ""
    return [fit([*first, (head, key)], width, glyphs), *(fit([(piece, key)], width, glyphs) for piece in pieces[1:])]


def note_lines(
    warnings: Iterable[str], unknown: Iterable[tuple[str, str]], width: int, glyphs: Glyphs, between: str = ": "
) -> list[Line]:
    """Warnings, then what is unknown, grouped by the reason.

    Args:
        unknown: names of figures, each with the reason.
        between: stands between names and their reason.
    """
    lines: list[Line] = []
    for warning in warnings:
        lines += wrap(warning, width, "text", glyphs, [(" ! ", "warn")])
    by_reason: dict[str, dict[str, None]] = {}
    for name, reason in unknown:
        by_reason.setdefault(reason, {})[name] = None
    for reason, names in by_reason.items():
        lines += wrap(f"{', '.join(names)}{between}{reason}", width, "dim", glyphs, [(" ? ", "dim")])
    return lines


def shortened(lines: Sequence[Line], height: int, width: int, glyphs: Glyphs) -> list[Line]:
    """At most so many lines; the last one says how many more there are, and the key that shows them."""
    if len(lines) <= height:
        return list(lines)
    if height < 1:
        return []
    rest = len(lines) - height + 1
    more = f"{glyphs.ellipsis} {rest} more line{'s' * (rest != 1)}: Enter"
    return [*lines[: height - 1], fit([(" " * max(0, width - len(more) - 1), "text"), (more, "dim")], width, glyphs)]


def cut_after(lines: Sequence[Line], most: int, width: int, glyphs: Glyphs, key: str = "") -> list[Line]:
    """At most so many lines of a text; the end of the last one says how many more there are, and the key for them."""
    if len(lines) <= most:
        return list(lines)
    if most < 1:
        return []
    hidden = len(lines) - most
    more = f"{glyphs.ellipsis} (+{hidden} more line{'s' * (hidden != 1)}{key and f', {key}'})"
    last = plain(lines[most - 1])[: width - len(more) - 1].rstrip()
    return [*lines[: most - 1], fit([(f"{last} ", "text"), (more, "dim")], width, glyphs)]


def rows_around(cursor: int | None, count: int, most: int | None) -> range:
    """At most so many of the rows of a list: the first ones, or those up to the cursor."""
    shown = count if most is None else min(most, count)
    begin = max(0, min(cursor or 0, count - 1) - shown + 1)
    return range(begin, begin + shown)


def label_span(label: str, width: int, key: StyleKey = "dim") -> Span:
    """A label in a column of so many cells; whatever its length, a blank parts it from what comes next."""
    return f"{label:<{width - 1}} ", key


_LABEL = 22


def labelled(rows: Sequence[tuple[str, str]], width: int, glyphs: Glyphs, label_width: int = _LABEL) -> list[Line]:
    """Values with their labels before them; a long label makes room for itself, up to half of the width."""
    longest = max((len(label) + 1 for label, _ in rows), default=0)
    column = max(label_width, min(longest, width // 2))
    lines: list[Line] = []
    for label, value in rows:
        lines += wrap(value, width, "text", glyphs, [label_span(label, column)])
    return lines
