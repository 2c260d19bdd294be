"""The roofline plot: FLOP/s against FLOP/byte on two logarithmic axes, roofs as lines, ops as points."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from tpuprof.tui.draw.format import byte_rate, flop_rate, intensity, with_unit
from tpuprof.tui.draw.loglog_scene import (
    LEFT,
    RIGHT,
    TOP,
    Axes,
    Cell,
    Point,
    Roof,
    Scene,
    Slope,
    heaviest_points,
    outside,
    place_of,
    scene_of,
)
from tpuprof.tui.draw.pen import Canvas, Pen, clean, cut, cut_words
from tpuprof.tui.draw.spans import Glyphs, Line, StyleKey

LEAST = (24, 6)  # width and height of the smallest plot
MARKER = "◉"
"""A point where colours distinguish points.

U+25C9 is of neutral width, so that every terminal draws it in one cell; a bullet and a black circle (U+2022, U+25CF)
are of ambiguous width, two cells in some East Asian settings, and a small black square may become a picture.
"""

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # Braille's bits by column and row of a cell
_PREFIX = ("", "k", "M", "G", "T", "P", "E")


class _Canvas(Canvas):
    """A frame while it is drawn; `busy` are the plot's cells that a label must keep off."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__(width, height)
        self.busy: set[Cell] = set()


def roofline_plot(
    points: Sequence[Point],
    roofs: Sequence[Roof],
    peak_flops_per_second: float | None,
    pen: Pen,
    height: int,
    cursor: int | None = None,
) -> list[Line]:
    """The plot in exactly `height` lines of `width` cells.

    A roof is ``min(peak, bytes/s * FLOP/byte)`` (Williams, Waterman and Patterson 2009), the slope alone where the peak
    is not known. The axes hold whole decades around all points, ridges and the peak, `DECADES` at most; a point beyond
    them stands on the edge as an arrow. `cursor` is an index of `points`; that point shows in brackets and with a mark
    on either axis. Figures that are not finite or not above zero are left out.
    """
    if pen.width < LEAST[0] or height < LEAST[1]:
        return _sentence("Too small for a roofline.", pen, height)
    scene = scene_of(points, roofs, peak_flops_per_second, pen.width, height)
    if not scene.slopes and not len(scene.cloud.at):
        return _sentence("Nothing to plot: no op has FLOPs and bytes, and no roof is known.", pen, height)
    canvas = _Canvas(pen.width, height)
    lines = _draw_roofs(canvas, scene, pen.glyphs)
    shown = heaviest_points(scene)
    own = place_of(scene, cursor)
    canvas.busy |= shown.keys()
    if own is not None:
        row, column = own[1]
        canvas.busy |= {(row, column + by) for by in (-1, 0, 1)}
    _draw_axes(canvas, scene.axes, pen.glyphs)
    left_out = _draw_labels(canvas, scene, lines, pen.glyphs)
    _draw_title(canvas, left_out, outside(scene), pen.glyphs)
    for (row, column), place in shown.items():
        canvas.put(TOP + row, LEFT + column, *_marker(scene, points, place, pen.glyphs))
    if own is not None:
        place, (row, column) = own
        character, _ = _marker(scene, points, place, pen.glyphs)
        canvas.put(TOP + row, LEFT - 1, pen.glyphs.mark, "mark")
        canvas.put(TOP + scene.axes.rows, LEFT + column, pen.glyphs.up, "mark")
        canvas.put(TOP + row, LEFT + column - 1, f"[{character}]", "cursor")
    return canvas.lines()


def _sentence(text: str, pen: Pen, height: int) -> list[Line]:
    pieces = textwrap.wrap(text, pen.width) if pen.width >= 8 else []
    if len(pieces) > height:
        pieces = [cut_words(text, pen.width, pen.glyphs)][:height]
    above = (height - len(pieces)) // 2
    shown = [""] * above + pieces + [""] * (height - above - len(pieces))
    return [pen.fit([(piece.center(pen.width) if piece else "", "dim")]) for piece in shown]


# Points


def _beyond(axes: Axes, x: float, y: float, glyphs: Glyphs) -> str:
    """An arrow to a point beyond the axes, nothing for one within."""
    if not axes.x_low <= x <= axes.x_high:
        return "<" if x < axes.x_low else ">"
    if not axes.y_low <= y <= axes.y_high:
        return glyphs.down if y < axes.y_low else glyphs.up
    return ""


def _marker(scene: Scene, points: Sequence[Point], place: int, glyphs: Glyphs) -> tuple[str, StyleKey]:
    """The character and the style of a point, by its place in the cloud."""
    point = points[int(scene.cloud.at[place])]
    arrow = _beyond(scene.axes, float(scene.cloud.x[place]), float(scene.cloud.y[place]), glyphs)
    if arrow or not (glyphs.letters or point.is_spelt):
        return arrow or MARKER, point.key
    letter = point.letter[:1]
    return letter if letter.isascii() and letter.isprintable() and letter.strip() else "?", point.key


# Roofs


def _draw_roofs(canvas: _Canvas, scene: Scene, glyphs: Glyphs) -> list[set[Cell]]:
    """Draws the roofs, the first one last and strongest, and the first ridge's way down; each roof's slope's cells."""
    ascii_only = glyphs.is_ascii
    lines: list[tuple[dict[Cell, str], StyleKey]] = []
    slopes: list[set[Cell]] = []
    flat = () if scene.peak is None else (Slope("", math.inf),)
    for index, slope in enumerate(scene.slopes or flat):
        drawn = _ascii_roof(scene, slope) if ascii_only else _braille(_roof_dots(scene, slope), scene.axes)
        lines.append((drawn, "text" if index else "strong"))
        ridge = math.inf if scene.peak is None else scene.axes.column(scene.peak - slope.log)
        slopes.append({cell for cell in drawn if cell[1] < ridge})
    for drawn, key in [(_ridge_line(scene, ascii_only), "rule"), *reversed(lines)]:
        canvas.busy |= drawn.keys()
        for (row, column), character in drawn.items():
            canvas.put(TOP + row, LEFT + column, _merged(canvas.cells[TOP + row][LEFT + column], character), key)
    return slopes[: len(scene.slopes)]


def _merged(old: str, new: str) -> str:
    """Both characters' dots, where both are braille; else the new one."""
    return chr(ord(old) | ord(new)) if min(old, new) >= "\u2800" else new


def _roof_dots(scene: Scene, slope: Slope) -> Iterator[Cell]:
    """A roof's dots (row and column in dots): one in each column, or one in each row where it is steep."""
    axes = scene.axes
    ridge = math.inf if scene.peak is None else scene.peak - slope.log
    steep = 4 * abs(axes.row(1.0) - axes.row(0.0)) > 2 * abs(axes.column(1.0) - axes.column(0.0))
    for dot in range(2 * axes.columns):
        log_x = axes.log_x((dot + 0.5) / 2 - 0.5)
        if not (steep and log_x < ridge):
            yield math.floor((axes.row(scene.roof(slope, log_x)) + 0.5) * 4), dot
    for dot in range(4 * axes.rows if steep else 0):
        log_x = axes.log_y((dot + 0.5) / 4 - 0.5) - slope.log
        if log_x < ridge:
            yield dot, math.floor((axes.column(log_x) + 0.5) * 2)


def _braille(dots: Iterable[Cell], axes: Axes) -> dict[Cell, str]:
    """The cells that dots fall on, with their characters; dots beyond the axes are left out."""
    bits: dict[Cell, int] = {}
    for y, x in dots:
        if 0 <= y < 4 * axes.rows and 0 <= x < 2 * axes.columns:
            bits[y // 4, x // 2] = bits.get((y // 4, x // 2), 0) | _DOTS[x % 2][y % 4]
    return {cell: chr(0x2800 + bit) for cell, bit in bits.items()}


def _ascii_roof(scene: Scene, slope: Slope) -> dict[Cell, str]:
    """A roof in ASCII: dashes where it is flat, ``.-'`` up a gentle slope, strokes up a steep one."""
    axes = scene.axes
    rise = abs(axes.row(1.0) - axes.row(0.0)) / abs(axes.column(1.0) - axes.column(0.0))
    peak = math.inf if scene.peak is None else scene.peak
    ridge = peak - slope.log
    cells: dict[Cell, str] = {}
    for column in range(axes.columns):
        flat = column > axes.column(ridge) - (0.5 if rise > 1 else 0)  # a steep slope leaves the ridge's cell free
        at = axes.row(peak if flat else slope.log + axes.log_x(column)) + 0.5
        row = math.floor(at) if math.isfinite(at) else -1
        if 0 <= row < axes.rows and (flat or rise <= 1):
            gentle = "'-."[math.floor(3 * (at - row))] if rise <= 0.75 else "/"
            cells[row, column] = "-" if flat else gentle
    for row in range(axes.rows if rise > 1 else 0):
        log_x = axes.log_y(row) - slope.log
        column = math.floor(axes.column(log_x) + 0.5) if log_x < ridge and math.isfinite(log_x) else -1
        if 0 <= column < axes.columns:
            cells[row, column] = "/"
    return cells


def _ridge(scene: Scene) -> float | None:
    """The logarithm of the first roof's ridge, `None` where there is none on the axis."""
    if scene.peak is None or not scene.slopes:
        return None
    ridge = scene.peak - scene.slopes[0].log
    return ridge if scene.axes.x_low <= ridge <= scene.axes.x_high else None


def _ridge_line(scene: Scene, ascii_only: bool) -> dict[Cell, str]:
    """The way from the first ridge down to the axis."""
    ridge, axes = _ridge(scene), scene.axes
    if ridge is None or scene.peak is None:
        return {}
    begin, column = axes.row(scene.peak) + 0.5, axes.column(ridge) + 0.5
    if ascii_only:
        return {(row, math.floor(column)): ":" for row in range(max(0, math.floor(begin) + 1), axes.rows)}
    dots = range(max(0, math.floor(begin * 4) + 2), 4 * axes.rows)
    return _braille(((dot, math.floor(column * 2)) for dot in dots if dot % 2), axes)


# Words and axes


def _decade(exponent: int) -> str:
    """A power of ten: ``100T``, ``1k``, ``0.01``, and ``1e24`` where there is no usual prefix."""
    if 0 <= exponent < 3 * len(_PREFIX):
        return f"{10 ** (exponent % 3)}{_PREFIX[exponent // 3]}"
    return f"{10.0**exponent:.{-exponent}f}" if -3 <= exponent < 0 else f"1e{exponent}"


def _rate(log: float) -> str:
    """FLOP/s from a logarithm: ``918T``."""
    return flop_rate(10 ** (log - 9)) if 6 <= log < 18 else _number(log)


def _number(log: float) -> str:
    return f"{10**log:.3g}" if abs(log) < 300 else f"1e{log:.0f}"


def _roof_words(slope: Slope, glyphs: Glyphs) -> list[str]:
    """A roof's name with its bandwidth, and without."""
    name = cut(clean(slope.name, glyphs.is_ascii).strip(), 16, glyphs)
    figure = with_unit(byte_rate(10**slope.log), "B/s") if 6 <= slope.log < 18 else f"{_rate(slope.log)} B/s"
    return [f"{name} {figure}".strip(), *([name] if name else [])]


def _draw_axes(canvas: _Canvas, axes: Axes, glyphs: Glyphs) -> None:
    """Both axes with a tick a decade, figures where they do not touch, and the lower axis's title."""
    ascii_only = glyphs.is_ascii
    bottom = TOP + axes.rows
    for row in range(axes.rows):
        canvas.put(TOP + row, LEFT - 1, glyphs.vertical, "rule")
    canvas.put(bottom, LEFT - 1, ("+" if ascii_only else "└") + glyphs.horizontal * axes.columns, "rule")
    step = math.ceil((axes.y_high - axes.y_low) / (axes.rows - 1))
    for decade in range(axes.y_low, axes.y_high + 1):
        line = TOP + math.floor(axes.row(decade) + 0.5)
        canvas.put(line, LEFT - 1, "+" if ascii_only else "┤", "rule")
        if decade % step == 0:
            canvas.put(line, 0, f"{_decade(decade):>{LEFT - 2}}", "dim")
    title = "FLOP/byte"
    room = canvas.width - len(title)
    canvas.put(bottom + 1, room, title, "dim")
    longest = max(len(_decade(decade)) for decade in range(axes.x_low, axes.x_high + 1))
    step = math.ceil((longest + 2) * (axes.x_high - axes.x_low) / (axes.columns - 1))
    for decade in range(axes.x_low, axes.x_high + 1):
        column = LEFT + math.floor(axes.column(decade) + 0.5)
        canvas.put(bottom, column, "|" if ascii_only else "┬", "rule")
        begin = column - (len(_decade(decade)) - 1) // 2
        if decade % step == 0 and begin + len(_decade(decade)) < room:
            canvas.put(bottom + 1, begin, _decade(decade), "dim")


def _draw_labels(canvas: _Canvas, scene: Scene, slopes: Sequence[set[Cell]], glyphs: Glyphs) -> list[str]:
    """Names the peak, the slopes and the ridge where nothing is; those that found no room."""
    axes, left_out = scene.axes, []
    if scene.peak is not None:
        word = f"peak {_rate(scene.peak)}"
        if not _write(canvas, axes, word, "strong", _along_peak(scene, len(word))):
            left_out.append(word)
    for at, (slope, cells) in enumerate(zip(scene.slopes, slopes, strict=True)):
        words = _roof_words(slope, glyphs)
        key: StyleKey = "text" if at else "strong"
        uppermost = slope.log == max(other.log for other in scene.slopes)
        if not any(_write(canvas, axes, word, key, _along_slope(cells, len(word), uppermost)) for word in words):
            left_out.append(words[0])
    ridge = _ridge(scene)
    if ridge is not None:
        column = math.floor(axes.column(ridge) + 0.5)
        crossing = canvas.cells[TOP + axes.rows][LEFT + column] == "┬"
        sign = "+" if glyphs.is_ascii else "┼" if crossing else "┴"
        canvas.put(TOP + axes.rows, LEFT + column, sign, "strong")
        word = f"ridge {intensity(10**ridge) if -3 <= ridge < 9 else _number(ridge)}"
        beside = [(axes.rows - 1, column + 2), (axes.rows - 1, column - 1 - len(word))]
        if not _write(canvas, axes, word, "text", beside):
            left_out.append(word)
    return left_out


def _write(canvas: _Canvas, axes: Axes, word: str, key: StyleKey, places: Iterable[Cell]) -> bool:
    """Writes a word at the first place where its cells and their neighbours are free; whether there was one."""
    for row, begin in places:
        cells = {(row, at) for at in range(begin, begin + len(word))}
        inside = 0 <= row < axes.rows and begin >= 0 and begin + len(word) <= axes.columns
        if inside and not canvas.busy & (cells | {(row, begin - 1), (row, begin + len(word))}):
            canvas.put(TOP + row, LEFT + begin, word, key)
            canvas.busy |= cells
            return True
    return False


def _along_peak(scene: Scene, size: int) -> Iterator[Cell]:
    """Places of the peak's name: above the flat part from the right end on, then below."""
    axes = scene.axes
    if scene.peak is None:
        return
    row = math.floor(axes.row(scene.peak) + 0.5)
    ridges = [axes.column(scene.peak - slope.log) for slope in scene.slopes]
    begin = max(0, math.floor(min(ridges)) if ridges else 0)
    for line in (row - 1, row + 1):
        for at in range(axes.columns - size, begin - size, -1):
            yield line, at


def _along_slope(cells: set[Cell], size: int, uppermost: bool) -> Iterator[Cell]:
    """Places of a roof's name, from the middle row outwards: first on the side away from the higher roofs.

    That is the right side but for the uppermost roof, which has nothing to its left and points to its right.
    """
    rows = sorted({row for row, _ in cells})
    middle = rows[len(rows) // 2] if rows else 0
    rows.sort(key=lambda row: abs(row - middle))
    left = [(row, min(column for at, column in cells if at == row) - 1 - size) for row in rows]
    right = [(row, max(column for at, column in cells if at == row) + 2) for row in rows]
    yield from (*left, *right) if uppermost else (*right, *left)


def _draw_title(canvas: _Canvas, left_out: Sequence[str], outside: int, glyphs: Glyphs) -> None:
    """The upper axis's title, and what the plot has no room for."""
    canvas.put(0, 0, "FLOP/s", "dim")
    words = [*left_out, *([f"{outside:,} outside"] if outside else [])]
    text = cut_words(", ".join(words), canvas.width - LEFT - RIGHT, glyphs)
    canvas.put(0, canvas.width - RIGHT - len(text), text, "text")
