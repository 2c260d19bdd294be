"""The common currency of every drawing: lines of spans, each a text and the key of its style.

A drawing function takes numbers, a width and a glyph set and returns lines; it knows no colour and no widget. The
screen turns style keys into colours (`tui.terminal.theme`), the text report drops them. Where areas of colour meet, a
pair of fills is the key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, get_args

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass

ClassStyle = Literal[
    "class.compute", "class.vector", "class.copy", "class.collective", "class.host", "class.idle", "class.unknown"
]
OnClassStyle = Literal["on.compute", "on.vector", "on.copy", "on.collective", "on.host", "on.idle", "on.unknown"]
"""Words on a class's colour."""

StyleKey = Literal[
    "text",  # ordinary words
    "dim",  # units, labels, what matters less
    "strong",  # the figure that the eye should find
    "title",  # a section's heading
    "rule",  # lines between sections
    "good",
    "warn",
    "bad",
    "key",  # a key to press
    "cursor",  # the row under the cursor (also marked with a character)
    "mark",  # the character that marks it
    "badge",  # a short warning that must be seen
    "busy",  # a step's time that is neither input, communication nor idle
    ClassStyle,
    OnClassStyle,
    "on.step",  # words on a slice that is of no class
    "on.module",
    "on.selected",
    "on.match",
    "on.view",
]

Fill = Literal[
    OpClass,  # in the order of `parsers.timeline.model.CLASSES`
    "step",  # two neutral tones, for slices that are of no class
    "module",
    "selected",  # the slice under the cursor
    "match",  # what was searched for
    "view",  # the part of a graph that is looked at
    "page",  # nothing
]
"""What an area stands for. Areas meet within a cell: one is its ink, the other its ground."""

Ink = Fill | Literal["words", "words.odd"]
"""`words`: letters that can be read on the ground; `words.odd` separates a slice from its neighbour where colours
can't.
"""

Pair = tuple[Ink, Fill]  # ink and ground of a cell
Key = StyleKey | Pair

Span = tuple[str, Key]
Line = tuple[Span, ...]

FILLS: tuple[Fill, ...] = get_args(Fill)


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of characters, each one cell wide.

    Attributes:
        name: `block` (eighth blocks and box lines) or `ascii`.
        bar: nine fills of a cell from empty to full, growing from the left.
        column: nine fills of a cell from empty to full, growing from the bottom.
        light: a cell of a track that is not filled.
        horizontal, vertical: rules.
        ellipsis, arrow, up, down, mark: what their names say; `mark` stands before the selected row.
        open, closed: stand before a node of a tree whose children are shown, or not.
        sigma, times, dash, dot: signs between figures.
        letters: fill areas with their class's letter, for output without colours.
    """

    name: Literal["block", "ascii"]
    bar: tuple[str, ...]
    column: tuple[str, ...]
    full: str
    light: str
    horizontal: str
    vertical: str
    ellipsis: str
    arrow: str
    up: str
    down: str
    mark: str
    open: str
    closed: str
    sigma: str
    times: str
    dash: str
    dot: str
    letters: bool

    @property
    def is_ascii(self) -> bool:
        """Whether it has no character but those of ASCII."""
        return self.name == "ascii"


BLOCK = Glyphs(
    name="block",
    bar=(" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"),
    column=(" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"),
    full="█",
    light="░",
    horizontal="─",
    vertical="│",
    ellipsis="…",
    arrow="→",
    up="▲",
    down="▼",
    mark="▸",
    open="▾",
    closed="▹",
    sigma="σ",
    times="×",
    dash="–",
    dot="·",
    letters=False,
)

PLAIN = replace(BLOCK, letters=True)  # `BLOCK` for output without colours: areas are filled with letters

ASCII = Glyphs(
    name="ascii",
    bar=(" ", " ", ".", "-", "-", "=", "=", "#", "#"),
    column=(" ", ".", ".", ":", ":", "-", "=", "#", "#"),
    full="#",
    light=".",
    horizontal="-",
    vertical="|",
    ellipsis="~",
    arrow=">",
    up="^",
    down="v",
    mark=">",
    open="-",
    closed="+",
    sigma="sd",
    times="x",
    dash="-",
    dot="|",
    letters=True,
)

CLASS_LETTER: dict[OpClass, str] = dict(zip(get_args(OpClass), "CVDNH.?", strict=True))
"""One letter a class of op, for screens without colour: D for DMA, N for network."""


def line_width(line: Iterable[tuple[str, object]]) -> int:
    """Width of a line in cells (every character that a drawing emits is one cell wide)."""
    return sum(len(text) for text, _ in line)


def plain(line: Line) -> str:
    """The line's text without its styles."""
    return "".join(text for text, _ in line)
