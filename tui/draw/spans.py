"""The common currency of every drawing: lines of spans, each a text and the key of its style.

A drawing function takes numbers, a width and a glyph set and returns lines; it knows no colour and no widget. The
screen turns style keys into colours (`tui.terminal.theme`), the text report drops them. Where areas of colour meet, a
pair of fills is the key. Bars in cells, and the colours of the classes of ops, are what all of them share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass, replace

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

CLASS_STYLE: dict[OpClass, StyleKey] = dict(zip(get_args(OpClass), get_args(ClassStyle), strict=True))
ON_CLASS_STYLE: dict[OpClass, StyleKey] = dict(zip(get_args(OpClass), get_args(OnClassStyle), strict=True))
CLASS_LETTER: dict[OpClass, str] = dict(zip(get_args(OpClass), "CVDNH.?", strict=True))
"""One letter a class of op, for screens without colour: D for DMA, N for network."""
_ASCII_LEAST = 3  # eighths from which on a cell of an ASCII bar differs from its empty part


def line_width(line: Iterable[tuple[str, object]]) -> int:
    """Width of a line in cells (every character that a drawing emits is one cell wide)."""
    return sum(len(text) for text, _ in line)


def plain(line: Line) -> str:
    """The line's text without its styles."""
    return "".join(text for text, _ in line)


def small_bar(share: float, cells: int, glyphs: Glyphs) -> tuple[str, str]:
    """The filled and the empty part of a small horizontal bar for a share of 0-1; what is not zero shows."""
    filled = bare_bar(share, cells, glyphs)
    empty = "." if glyphs.is_ascii else glyphs.horizontal
    return filled, empty * (cells - len(filled))


def bare_bar(share: float, cells: int, glyphs: Glyphs) -> str:
    """A bar for a share of 0-1 of so many cells, to an eighth of a cell; what is not zero shows."""
    eighths = max(1, round(min(1.0, share) * cells * 8)) if share > 0 else 0
    full, rest = divmod(eighths, 8)
    if glyphs.is_ascii and rest < _ASCII_LEAST:
        rest = 0 if full or not rest else _ASCII_LEAST
    return glyphs.full * full + (glyphs.bar[rest] if rest else "")


def whole_cells(sizes: Sequence[float], width: int) -> list[int]:
    """Whole cells for each size by largest remainder; what is not zero has one where there is room for all."""
    filled = [size for size in sizes if size > 0]
    least = 1 if len(filled) <= width else 0
    room, whole = width - least * len(filled), sum(filled)
    exact = [size / whole * room if whole > 0 and size > 0 else 0.0 for size in sizes]
    cells = [int(value) for value in exact]
    behind = sorted(range(len(sizes)), key=lambda index: (cells[index] - exact[index], index))
    for index in behind[: max(0, room - sum(cells)) if whole > 0 else 0]:
        cells[index] += 1
    return [value + (least if size > 0 else 0) for value, size in zip(cells, sizes, strict=True)]
