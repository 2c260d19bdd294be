"""A card, all about one thing: its name, then what is known of it under labels; or a text with titles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.bars import CLASS_STYLE
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import CLASS_LETTER, Line, Span, StyleKey


@dataclass(slots=True)
class Card:
    """The card while it is written; labels take `label` cells, with the blank behind them."""

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
