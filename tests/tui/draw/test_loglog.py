"""The roofline plot in cells: committed frames, and where points, roofs and marks must lie."""

from __future__ import annotations

import math
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.golden import check_lines
from tpuprof.tui.draw.loglog import LEAST, MARKER, roofline_plot
from tpuprof.tui.draw.loglog_scene import DECADES, LEFT, TOP, Axes, Point, Roof, scene_of
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, Key, Line, StyleKey, plain

HBM = Roof("HBM", 1.64e12)
VMEM = Roof("VMEM", 22e12)
PEAK = 918e12


def point(intensity: float, rate: float, letter: str = "C", weight: float = 0.1) -> Point:
    keys: dict[str, StyleKey] = {"C": "class.compute", "V": "class.vector", "N": "class.collective", "H": "class.host"}
    return Point(intensity, rate, keys.get(letter, "text"), letter, weight)


SAMPLE = (
    point(608, 612e12, "C", 0.31),
    point(420, 388e12, "C", 0.12),
    point(96, 70e12, "C", 0.06),
    point(0.25, 3.9e11, "V", 0.11),
    point(0.42, 5.5e11, "V", 0.05),
    point(1.5, 2.1e12, "V", 0.04),
    point(0.083, 9e10, "V", 0.02),
    point(12, 3e12, "N", 0.08),
    point(6.1e3, 8.3e14, "C", 0.03),
    point(0.02, 2.2e9, "H", 0.01),
    point(181, 232e12, "P", 1.0),
)


def cells(lines: list[Line]) -> list[str]:
    return [plain(line) for line in lines]


def cell_of(axes: Axes, intensity: float, rate: float) -> tuple[int, int]:
    """Line and column of a figure, from nothing but the axes' ends and size."""
    across = (math.log10(intensity) - axes.x_low) / (axes.x_high - axes.x_low)
    down = (axes.y_high - math.log10(rate)) / (axes.y_high - axes.y_low)
    return (
        TOP + math.floor(min(max(down, 0), 1) * (axes.rows - 1) + 0.5),
        LEFT + math.floor(min(max(across, 0), 1) * (axes.columns - 1) + 0.5),
    )


def on_edge(axes: Axes, each: Point) -> bool:
    """Whether a point is so near to the border of two cells that rounding may put it on either."""
    across = (math.log10(each.intensity) - axes.x_low) / (axes.x_high - axes.x_low) * (axes.columns - 1)
    down = (axes.y_high - math.log10(each.flops_per_second)) / (axes.y_high - axes.y_low) * (axes.rows - 1)
    return any(abs(value % 1 - 0.5) < 1e-9 for value in (across, down))


def key_at(line: Line, column: int) -> Key:
    return [key for text, key in line for _ in text][column]


ANY = st.one_of(st.floats(), st.sampled_from([0.0, -1.0, 5e-324, 1.7e308, 1.0]), st.floats(1e-4, 1e16))
POINTS = st.lists(st.builds(point, ANY, ANY, st.text(max_size=2), ANY), max_size=12)
ROOFS = st.lists(st.builds(Roof, st.text(max_size=20), ANY), max_size=4)
SETS = st.sampled_from([BLOCK, PLAIN, ASCII])


@given(POINTS, ROOFS, st.one_of(st.none(), ANY), st.integers(0, 130), st.integers(0, 30), SETS, st.integers(-1, 12))
@settings(max_examples=4 * EXAMPLES)
def test_every_frame_has_exactly_the_size_asked_for(
    points: list[Point], roofs: list[Roof], peak: float | None, width: int, height: int, glyphs: Glyphs, cursor: int
) -> None:
    lines = roofline_plot(points, roofs, peak, Pen(width, glyphs), height, cursor)
    assert len(lines) == height
    text = check_lines(lines, width, glyphs)
    assert all(unicodedata.east_asian_width(character) not in "WF" for character in set(text))


METRICS = st.lists(st.tuples(st.floats(-3, 5), st.floats(6, 15), st.floats(0, 1)), min_size=1, max_size=40)


@given(METRICS, st.integers(24, 130), st.integers(6, 40), st.sampled_from([BLOCK, ASCII]))
@settings(max_examples=2 * EXAMPLES)
def test_the_heaviest_point_of_every_cell_shows_where_the_axes_say(
    metrics: list[tuple[float, float, float]], width: int, height: int, glyphs: Glyphs
) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    points = [Point(10**x, 10**y, "text", letters[n], weight) for n, (x, y, weight) in enumerate(metrics)]
    axes = scene_of(points, [HBM], PEAK, width, height).axes
    assert (axes.columns, axes.rows) == (width - LEFT - 1, height - TOP - 2)
    points = [each for each in points if not on_edge(axes, each)]
    rows = cells(roofline_plot(points, [HBM], PEAK, Pen(width, glyphs), height))
    if axes != scene_of(points, [HBM], PEAK, width, height).axes:
        return  # without the points on borders it is another plot
    heaviest: dict[tuple[int, int], Point] = {}
    for each in points:
        cell = cell_of(axes, each.intensity, each.flops_per_second)
        if cell not in heaviest or each.weight > heaviest[cell].weight:
            heaviest[cell] = each
    for (line, column), each in heaviest.items():
        assert rows[line][column] == (each.letter if glyphs.letters else MARKER)
    if not glyphs.letters:
        assert sum(row.count(MARKER) for row in rows) == len(heaviest)


def dots_of(rows: list[str]) -> set[tuple[int, int]]:
    """Row and column of every braille dot of a frame."""
    bits = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
    found = set()
    for line, row in enumerate(rows):
        for column, character in enumerate(row):
            code = ord(character) - 0x2800
            if 0 <= code < 256:
                found |= {(4 * line + y, 2 * column + x) for x in (0, 1) for y in range(4) if code & bits[x][y]}
    return found


@given(st.floats(0, 1), st.integers(24, 130), st.integers(6, 60), st.sampled_from([None, PEAK]))
@settings(max_examples=2 * EXAMPLES)
def test_a_point_on_the_roof_lies_on_its_line(along: float, width: int, height: int, peak: float | None) -> None:
    axes = scene_of([], [HBM], peak, width, height).axes
    log_x = axes.x_low + along * (axes.x_high - axes.x_low)
    log_y = log_x + math.log10(HBM.bytes_per_second)
    log_y = log_y if peak is None else min(log_y, math.log10(peak))
    if not axes.y_low <= log_y <= axes.y_high:
        return  # the slope leaves the plot
    down = (axes.y_high - log_y) / (axes.y_high - axes.y_low) * (axes.rows - 1)
    dot_row = 4 * TOP + math.floor((down + 0.5) * 4)
    dot_column = 2 * LEFT + math.floor((along * (axes.columns - 1) + 0.5) * 2)
    around = {(dot_row + y, dot_column + x) for y in (-1, 0, 1) for x in (-1, 0, 1)}
    assert around & dots_of(cells(roofline_plot([], [HBM], peak, Pen(width, BLOCK), height)))


@given(st.integers(24, 130), st.integers(6, 60), st.sampled_from([BLOCK, ASCII]))
def test_a_roof_has_no_gaps(width: int, height: int, glyphs: Glyphs) -> None:
    unnamed = Roof("", HBM.bytes_per_second)
    rows = [row[LEFT:] for row in cells(roofline_plot([], [unnamed], PEAK, Pen(width, glyphs), height))[TOP:-2]]
    rows = [row.replace("1.64 TB/s", " " * 9) for row in rows]
    line = {
        (y, x)
        for y, row in enumerate(rows)
        for x, character in enumerate(row)
        if character in ".-'/" or ("\u2800" < character <= "\u28ff" and character not in "⡂⢐")
    }
    columns = sorted({x for _, x in line})
    assert columns[-1] == width - LEFT - 2
    for left, right in pairwise(columns):
        assert right == left + 1
        assert min(abs(a - b) for a, x in line if x == left for b, z in line if z == right) <= 1


@given(METRICS)
def test_the_axes_hold_whole_decades_around_everything(metrics: list[tuple[float, float, float]]) -> None:
    points = [Point(10**x, 10**y, "text", "x", weight) for x, y, weight in metrics]
    axes = scene_of(points, [HBM, VMEM], PEAK, 80, 24).axes
    ridges = [math.log10(PEAK / roof.bytes_per_second) for roof in (HBM, VMEM)]
    assert axes.x_low < min([*ridges, *(x for x, _, _ in metrics)])
    assert axes.x_high > max([*ridges, *(x for x, _, _ in metrics)])
    assert axes.y_low < min(y for _, y, _ in metrics)
    assert axes.y_high > math.log10(PEAK)
    assert axes.x_high - axes.x_low <= DECADES
    assert axes.y_high - axes.y_low <= DECADES


def test_points_beyond_the_axes_are_arrows_on_the_edge() -> None:
    left, down, right = point(1e-30, 1e12), point(10.0, 1.0), point(1e30, 1e14)
    for glyphs, below in ((BLOCK, "▼"), (ASCII, "v")):
        points = [*SAMPLE, left, down, right]
        axes = scene_of(points, [HBM], PEAK, 76, 18).axes
        assert axes.x_high - axes.x_low == axes.y_high - axes.y_low == DECADES
        rows = cells(roofline_plot(points, [HBM], PEAK, Pen(76, glyphs), 18))
        for each, arrow, edge in ((left, "<", LEFT), (right, ">", LEFT + axes.columns - 1)):
            line, column = cell_of(axes, each.intensity, each.flops_per_second)
            assert (rows[line][column], column) == (arrow, edge)
        line, column = cell_of(axes, down.intensity, down.flops_per_second)
        assert (rows[line][column], line) == (below, TOP + axes.rows - 1)
        assert "3 outside" in rows[0]
        assert "peak 918T" in "".join(rows)  # the roof stays in sight


@given(METRICS, st.integers(24, 130), st.integers(6, 40), SETS, st.data())
@settings(max_examples=2 * EXAMPLES)
def test_the_cursor_is_always_visible(
    metrics: list[tuple[float, float, float]], width: int, height: int, glyphs: Glyphs, data: st.DataObject
) -> None:
    points = [Point(10**x, 10**y, "class.vector", "V", weight) for x, y, weight in metrics]
    cursor = data.draw(st.integers(0, len(points) - 1))
    axes = scene_of(points, [HBM, VMEM], PEAK, width, height).axes
    if on_edge(axes, points[cursor]):
        return
    line, column = cell_of(axes, points[cursor].intensity, points[cursor].flops_per_second)
    lines = roofline_plot(points, [HBM, VMEM], PEAK, Pen(width, glyphs), height, cursor)
    rows = cells(lines)
    assert rows[line][column - 1 : column + 2] == f"[{'V' if glyphs.letters else MARKER}]"
    assert {key_at(lines[line], at) for at in (column - 1, column, column + 1)} == {"cursor"}
    assert (rows[-2][column], key_at(lines[-2], column)) == (glyphs.up, "mark")
    assert rows[line][LEFT - 1] == ("[" if column == LEFT else glyphs.mark)
    assert all(key_at(each, at) != "cursor" for n, each in enumerate(lines) for at in range(width) if n != line)


@pytest.mark.parametrize("cursor", [-1, 99, 0])
def test_a_cursor_on_nothing_marks_nothing(cursor: int) -> None:
    points = [point(0.0, 1e12), point(1.0, 1e12)]
    lines = roofline_plot(points, [HBM], PEAK, Pen(76, BLOCK), 18, cursor)
    assert lines == roofline_plot(points, [HBM], PEAK, Pen(76, BLOCK), 18)


def test_figures_that_are_none_change_nothing() -> None:
    bad = [point(x, y) for x, y in ((math.nan, 1e12), (math.inf, 1e12), (-1.0, 1e12), (1.0, 0.0), (1.0, math.inf))]
    roofs = [HBM, Roof("bad", 0.0), Roof("bad", math.nan), Roof("bad", math.inf), Roof("bad", -1.0)]
    usual = roofline_plot(SAMPLE, [HBM], PEAK, Pen(76, BLOCK), 18)
    assert roofline_plot([*SAMPLE, *bad], roofs, PEAK, Pen(76, BLOCK), 18) == usual
    unknown = roofline_plot(SAMPLE, [HBM], None, Pen(76, BLOCK), 18)
    for peak in (math.nan, math.inf, 0.0, -1.0):
        assert roofline_plot(SAMPLE, [HBM], peak, Pen(76, BLOCK), 18) == unknown


def test_without_a_peak_there_are_slopes_alone() -> None:
    text = "".join(cells(roofline_plot(SAMPLE, [HBM, VMEM], None, Pen(76, BLOCK), 18)))
    assert "HBM 1.64 TB/s" in text
    assert "VMEM 22.0 TB/s" in text
    assert "peak" not in text
    assert "ridge" not in text


def test_words_that_find_no_room_stand_in_the_title() -> None:
    points = [point(10 ** (x / 20), 10 ** (y / 10), "V") for x in range(-77, 98) for y in range(62, 151)]
    rows = cells(roofline_plot(points, [HBM, VMEM], PEAK, Pen(116, BLOCK), 28))
    for word in ("HBM 1.64 TB/s", "VMEM 22.0 TB/s", "ridge 560"):
        assert sum(row.count(word) for row in rows) == 1
        assert word in rows[0]


@pytest.mark.parametrize("letter", ["", " ", "\n", "é", "界"])
def test_a_letter_that_is_no_ascii_character_is_a_question_mark(letter: str) -> None:
    rows = cells(roofline_plot([Point(1.0, 1e12, "text", letter, 1.0)], [], None, Pen(40, ASCII), 10))
    assert sum(row.count("?") for row in rows) == 1


def test_many_points_touch_each_point_once_and_each_cell_once() -> None:
    """The work besides numpy's is bounded by the cells: letters are read for shown points alone."""
    reads = 0

    class Counted(str):
        __slots__ = ()

        def __getitem__(self, key: object) -> str:
            nonlocal reads
            reads += 1
            return "V"

    points = [
        Point(10 ** (n % 317 / 60), 10 ** (8 + n % 613 / 100), "text", Counted("V"), n / 50_000) for n in range(50_000)
    ]
    rows = cells(roofline_plot(points, [HBM], PEAK, Pen(76, PLAIN), 18))
    assert 0 < reads <= 67 * 15
    assert sum(row.count("V") for row in rows) == reads


def test_nothing_to_plot_and_too_little_room_are_one_sentence() -> None:
    for peak in (None, PEAK):
        rows = cells(roofline_plot([], [], peak, Pen(80, BLOCK), 9))
        assert "Nothing to plot" in rows[4]
        assert not "".join(rows[:4] + rows[5:]).strip()
    small = cells(roofline_plot(SAMPLE, [HBM], PEAK, Pen(30, BLOCK), LEAST[1] - 1))
    assert "".join(small).strip() == "Too small for a roofline."
