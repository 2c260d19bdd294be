"""Pictures as data, rectangles and words, and as SVG within a page: text of a profile is words, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Literal

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.tui.html.blocks import Masking

Paint = OpClass | Literal["step", "module", "rule"]
"""What an area stands for; the page's style has a colour for each."""

WIDTH = 1000.0
"""Of every picture, in its own units."""

CHARACTER = 6.2
"""Width of a character of the small words, at most."""


@dataclass(frozen=True)
class Area:
    """Rectangles of one colour: left, top, width and height of each."""

    paint: Paint
    boxes: Sequence[tuple[float, float, float, float]]


@dataclass(frozen=True)
class Words:
    """A text.

    Attributes:
        x, y: where its baseline begins, or ends where `anchor` says so.
        room: width that it may take; what is longer is cut.
        look: ``label``, ``dim``, ``head``, or ``on`` for words on an area.
    """

    x: float
    y: float
    text: str
    room: float
    look: Literal["label", "dim", "head", "on"] = "label"
    anchor: Literal["start", "end", "middle"] = "start"


@dataclass(frozen=True)
class Picture:
    """A picture.

    Attributes:
        title: above it; note: below it, empty for none.
        height: in its own units.
        legend: classes whose colours it has, and what each stands for.
    """

    title: str
    height: float
    areas: Sequence[Area]
    words: Sequence[Words]
    note: str = ""
    legend: Sequence[tuple[OpClass, str]] = ()


def picture_html(picture: Picture, mask: Masking) -> str:
    """A picture with its title, note and legend."""
    title, note = (escape(mask(printable(text))) for text in (picture.title, picture.note))
    drawn = "".join((*map(_area, picture.areas), *(_words(each, mask) for each in picture.words)))
    svg = f'<svg viewBox="0 0 {WIDTH:g} {picture.height:g}" role="img" aria-label="{title}">{drawn}</svg>'
    legend = "".join(
        f'<span><i class="k-{kind}"></i>{escape(mask(printable(means)))}</span>' for kind, means in picture.legend
    )
    below = (f'<p class="legend">{legend}</p>' if legend else "") + (f"<p>{note}</p>" if note else "")
    return f'<figure><figcaption>{title}</figcaption><div class="t">{svg}</div>{below}</figure>'


def _area(area: Area) -> str:
    boxes = "".join(
        f"M{_number(x)} {_number(y)}h{_number(width)}v{_number(height)}h{_number(-width)}z"
        for x, y, width, height in area.boxes
    )
    return f'<path class="k-{area.paint}" d="{boxes}"/>' if boxes else ""


def _words(words: Words, mask: Masking) -> str:
    text = _cut(mask(printable(words.text)), max(int(words.room / CHARACTER), 1))
    place = f'x="{_number(words.x)}" y="{_number(words.y)}"'
    side = "" if words.anchor == "start" else f' text-anchor="{words.anchor}"'
    return f'<text class="w-{words.look}" {place}{side}>{escape(text)}</text>'


def _cut(text: str, most: int) -> str:
    """The text, its middle left out where it is longer: names differ at their ends."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}" if most > 2 else text[:most]


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
