"""Pictures of screens as SVG: one screen, or several after each other, without a font or a script from elsewhere."""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

CELL, LINE, SIZE = 12.2, 24.4, 20
"""Width and height of a cell and of its signs, in the exporter's units."""

FONTS = "Fira Code,Menlo,Consolas,DejaVu Sans Mono,monospace"
"""Whichever the reader has."""

LEFT, TOP, BOTTOM = 9, 41, 10
CAPTION_LINES = 2
CHROME, INK, KEY = "#292929", "fill: #c5c8c6", "fill: #ffaf00;font-weight: bold"

_STYLE = re.compile(r"\.terminal-\d+-(r\d+) \{ (.*?) \}")
_BACK = re.compile(r'<rect fill="(#\w+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="[\d.]+" shape-rendering')
_TEXT = re.compile(
    r'<text class="terminal-\d+-(r\d+)" x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"[^>]*>([^<\n]*)</text>'
)


@dataclass(frozen=True)
class Words:
    """Some signs of a line in one style.

    Attributes:
        style: CSS.
        x, length: where they begin and how wide they are.
    """

    style: str
    x: float
    length: float
    text: str


@dataclass(frozen=True)
class Back:
    """Some cells of a line with one background."""

    fill: str
    x: float
    length: float


Row = tuple[Back | Words, ...]


@dataclass(frozen=True)
class Frame:
    """A screen.

    Attributes:
        rows: what is on its lines, by their numbers.
        seconds: how long it stays.
        key, caption: what was pressed, and what that shows: a line below the screen.
    """

    rows: Mapping[int, Row]
    seconds: float = 0
    key: str = ""
    caption: str = ""


def words(x: float, style: str, text: str) -> Words:
    """A text of narrow signs, from a cell on."""
    return Words(style, round(x * CELL, 1), round(len(text) * CELL, 1), text.replace(" ", "\xa0"))


def rows_of(exported: str) -> dict[int, Row]:
    """What Textual's picture of a screen holds; blanks at the ends of a text are left out."""
    styles = dict(_STYLE.findall(exported))
    rows: dict[int, list[Back | Words]] = defaultdict(list)
    for fill, *place in _BACK.findall(exported):
        x, y, width = map(float, place)
        row = rows[int(y / LINE)]
        last = row[-1] if row else None
        if isinstance(last, Back) and last.fill == fill and abs(last.x + last.length - x) < 0.1:
            row[-1] = Back(fill, last.x, round(last.length + width, 1))
        else:
            row.append(Back(fill, x, width))
    for name, *place, text in _TEXT.findall(exported):
        x, y, length = map(float, place)
        plain = html.unescape(text)
        inner = plain.strip("\xa0 ")
        if inner:
            before = len(plain) - len(plain.lstrip("\xa0 "))
            blanks = len(plain) - len(inner)
            x, length = round(x + before * CELL, 1), round(length - blanks * CELL, 1)
            rows[int(y / LINE)].append(Words(styles[name], x, length, inner))
    return {number: tuple(row) for number, row in rows.items()}


def picture(rows: Mapping[int, Row], columns: int, lines: int) -> str:
    return film([Frame(rows)], columns, lines)


def film(frames: Sequence[Frame], columns: int, lines: int, poster: int = 0) -> str:
    """Screens after each other, over and over; what several of them show stands there once.

    Args:
        poster: the frame that shows where nothing moves.
    """
    is_moving = len(frames) > 1
    width = round(columns * CELL + 2 * LEFT, 1)
    height = round((lines + is_moving * CAPTION_LINES) * LINE + TOP + BOTTOM, 1)
    ground = Counter(
        part.fill for frame in frames for row in frame.rows.values() for part in row if isinstance(part, Back)
    ).most_common(1)[0][0]
    shown: dict[tuple[int, Row], set[int]] = defaultdict(set)
    for number, frame in enumerate(frames):
        for line, row in frame.rows.items():
            shown[line, row].add(number)
        if frame.caption:
            shown[lines, caption_row(frame)].add(number)
    names: dict[str, str] = {}
    groups: dict[frozenset[int], list[str]] = defaultdict(list)
    for (line, row), numbers in sorted(shown.items(), key=lambda item: (min(item[1]), item[0][0])):
        y = line * LINE + (LINE if line >= lines else 0) * 0.4
        groups[frozenset(numbers)].append(
            f'<g transform="translate(0,{y:g})">{"".join(elements(row, ground, names))}</g>'
        )
    moves = "".join(movement(numbers, frames, poster) for numbers in groups if len(numbers) < len(frames))
    style = f"text{{font-family:{FONTS};font-size:{SIZE}px}}rect{{shape-rendering:crispEdges}}{moves}"
    style += "".join(f".{name}{{{css}}}" for css, name in names.items())
    if is_moving:
        style += "@media (prefers-reduced-motion:reduce){g{animation:none!important}}"
    dots = "".join(
        f'<circle cx="{26 + 22 * n}" cy="22" r="7" fill="{fill}"/>'
        for n, fill in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    body = "\n".join(
        f"<g{named(numbers) if len(numbers) < len(frames) else ''}>\n" + "\n".join(parts) + "\n</g>"
        for numbers, parts in groups.items()
    )
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" xmlns="http://www.w3.org/2000/svg">\n<style>{style}</style>\n'
        f'<path fill="{CHROME}" d="{rounded(width, height)}"/>{dots}\n'
        f'<rect fill="{ground}" x="{LEFT}" y="{TOP}" width="{columns * CELL:g}" height="{lines * LINE:g}"/>\n'
        f'<g transform="translate({LEFT},{TOP})">\n{body}\n</g>\n</svg>\n'
    )


def caption_row(frame: Frame) -> Row:
    """The line below the screen."""
    return (words(1, KEY, frame.key), words(len(frame.key) + 3, INK, frame.caption))


def elements(row: Row, ground: str, names: dict[str, str]) -> Iterator[str]:
    """A line; names for its styles are added."""
    for part in row:
        if isinstance(part, Words):
            name = names.setdefault(part.style, f"s{len(names)}")
            text = html.escape(part.text, quote=False)
            yield f'<text class="{name}" x="{part.x:g}" y="{SIZE - 1.5:g}" textLength="{part.length:g}">{text}</text>'
        elif part.fill != ground:
            yield f'<rect fill="{part.fill}" x="{part.x:g}" width="{part.length:g}" height="{LINE + 0.25:g}"/>'


def name_of(numbers: Iterable[int]) -> str:
    """The class of what these frames show."""
    return "f" + "-".join(map(str, sorted(numbers)))


def named(numbers: Iterable[int]) -> str:
    return f' class="{name_of(numbers)}"'


def movement(numbers: frozenset[int], frames: Sequence[Frame], poster: int) -> str:
    """When what these frames show is seen."""
    total = sum(frame.seconds for frame in frames)
    steps, at, before = [], 0.0, None
    for number, frame in enumerate(frames):
        if (number in numbers) != before:
            before = number in numbers
            steps.append(f"{100 * at / total:.4g}%{{opacity:{before:d}}}")
        at += frame.seconds
    name = name_of(numbers)
    opacity = f"opacity:{poster in numbers:d};"
    return f".{name}{{{opacity}animation:{name} {total:g}s step-end infinite}}@keyframes {name}{{{''.join(steps)}}}"


def rounded(width: float, height: float, radius: int = 8) -> str:
    """A window's outline."""
    w, h, r = width - 2 * radius, height - 2 * radius, radius
    arc = f"a{r},{r} 0 0 1"
    return f"M{r},0h{w:g}{arc} {r},{r}v{h:g}{arc} -{r},{r}h-{w:g}{arc} -{r},-{r}v-{h:g}{arc} {r},-{r}z"
