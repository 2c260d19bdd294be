"""The time axis: round ticks, one unit, and labels that can be added up to the instant they stand for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcwidth

from tests import EXAMPLES
from tpuprof.parsers.timeline.model import StepSpan
from tpuprof.parsers.timeline.windows import cell_edges
from tpuprof.tui.draw.axis import cells_at, mark_line, tick_line, ticks
from tpuprof.tui.draw.spans import ASCII, BLOCK, Glyphs, line_width, plain

PS = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3, "ps": 1}


def picoseconds(label: str) -> int:
    if label in ("", "0"):
        return 0
    number, unit = label.split(" ")
    whole, _, digits = number.lstrip("+-").partition(".")
    value = int(whole) * PS[unit] + (int(digits) * PS[unit] // 10 ** len(digits) if digits else 0)
    return -value if number.startswith("-") else value


def spans() -> st.SearchStrategy[int]:
    """Windows from some picoseconds to hours."""
    return st.builds(
        lambda digits, power: max(digits * 10**power // 1000, 160), st.integers(1000, 9999), st.integers(0, 15)
    )


@settings(max_examples=4 * EXAMPLES)
@given(st.integers(-(10**15), 10**16), spans(), st.integers(-(10**14), 10**14), st.integers(40, 200))
def test_ticks_are_round_and_their_labels_exact(start: int, span: int, base: int, cells: int) -> None:
    made = ticks(start, start + span, base, cells, ascii_only=True)
    assert made.at_ps
    assert all(start <= at < start + span for at in made.at_ps)
    apart = set(np.diff(np.array(made.at_ps, object)).tolist())
    assert len(apart) <= 1
    for step in apart:
        assert str(step).rstrip("0") in ("1", "2", "5")
    labels = [picoseconds(label) + picoseconds(made.offset) for label in made.labels]
    assert labels == [at - base for at in made.at_ps]
    shapes = {
        (label.split(" ")[1], len(label.split(" ")[0].partition(".")[2])) for label in made.labels if label != "0"
    }
    assert len(shapes) <= 1, "one unit, so many decimals"
    assert all(len(label.lstrip("-")) <= 11 for label in made.labels)


@settings(max_examples=2 * EXAMPLES)
@given(st.integers(0, 10**14), spans(), st.integers(20, 200), st.sampled_from([BLOCK, ASCII]), st.booleans())
def test_labels_stand_apart(start: int, span: int, cells: int, glyphs: Glyphs, with_offset: bool) -> None:
    span = max(span, cells)
    edges = cell_edges(start, start + span, cells)
    made = ticks(start, start + span, 0, cells, glyphs is ASCII)
    line = tick_line(made, edges, glyphs, with_offset)
    text = plain(line)
    assert line_width(line) == cells
    assert all(wcwidth(character) == 1 for character in set(text))
    assert glyphs is not ASCII or text.isascii()
    at = cells_at(edges, made.at_ps)
    shown = [label for cell, label in zip(at, made.labels, strict=True) if text[cell + 1 :].startswith(label)]
    covered = sum(cell <= len(made.offset) + 1 for cell in at) if with_offset else 0
    assert len(shown) >= len(made.labels) - covered - 1, "only the last may be cut, and what the offset covers"
    for one, other in pairwise(at):
        assert other - one >= 11


def test_the_cursor_covers_marks_and_marks_cover_steps() -> None:
    edges = cell_edges(0, 100, 20)
    steps = (StepSpan("3", 10, 50), StepSpan("4", 50, 90))
    assert plain(mark_line(edges, BLOCK)) == "─" * 20
    assert plain(mark_line(edges, BLOCK, steps=steps)) == "──┬ 3 ────┬ 4 ────┬─"
    assert plain(mark_line(edges, BLOCK, steps=steps, marks=(45, 20))) == "──┬ m════m┬ 4 ────┬─"
    assert plain(mark_line(edges, BLOCK, steps=steps, marks=(20, 45), cursor_ps=45)) == "──┬ m════▼┬ 4 ────┬─"
    assert plain(mark_line(edges, ASCII, steps=steps, marks=(20,), cursor_ps=99)) == "--+ m ----+ 4 ----+v"


def test_an_interval_reaches_beyond_the_window() -> None:
    edges = cell_edges(100, 200, 10)
    assert plain(mark_line(edges, ASCII, marks=(0, 150))) == "=====m----"
    assert plain(mark_line(edges, ASCII, marks=(0, 1000))) == "=========="
    assert plain(mark_line(edges, ASCII, marks=(0, 50))) == "----------"
    assert plain(mark_line(edges, ASCII, marks=(300, 500))) == "----------"


def test_step_names_fit_or_are_left_out() -> None:
    edges = cell_edges(0, 1000, 50)
    steps = tuple(StepSpan(str(1000 + at), at * 100, at * 100 + 100) for at in range(10))
    assert "1003" not in plain(mark_line(edges, BLOCK, steps=steps))
    assert " step 1003 " in plain(mark_line(cell_edges(290, 410, 50), BLOCK, steps=steps))
    odd = (StepSpan("\x1b[2J" + "x" * 1_000_000, 0, 1000),)
    line = mark_line(edges, ASCII, steps=odd)
    assert line_width(line) == 50
    assert plain(line).isprintable()


def test_more_steps_than_can_be_told_apart_are_not_drawn() -> None:
    steps = tuple(StepSpan(str(at), at * 10, at * 10 + 10) for at in range(5000))
    assert plain(mark_line(cell_edges(0, 50_000, 50), BLOCK, steps=steps)) == "─" * 50
