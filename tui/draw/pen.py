"""What a drawing is made with: the cells it may take, its characters, and the lines that every page is made of.

Texts of a profile are hostile: a pen makes whatever it puts into a line fit for cells, so that nobody else has to.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.layout import clean, label_span
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width, plain

if TYPE_CHECKING:
    from tpuprof.parsers.files.source_lines import SourceExcerpt

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
        by_reason: dict[str, dict[str, None]] = {}
        for name, reason in unknown:
            by_reason.setdefault(reason, {})[name] = None
        untold = (f"{', '.join(names)}{between}{reason}" for reason, names in by_reason.items())
        return [*self.wrap_all(warnings, "text", [(" ! ", "warn")]), *self.wrap_all(untold, "dim", [(" ? ", "dim")])]

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
