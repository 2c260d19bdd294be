"""The input pipeline page in cells: committed frames, and what must hold for every page and width."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.golden import check_golden, check_lines, frame
from tests.support.made.input_pages import INPUT_PAGES, input_bound_page
from tpuprof.parsers.pages.input.input import stages_of
from tpuprof.parsers.pages.input.model import InputPipelinePage, StepWait
from tpuprof.tui.draw.columns import AXIS, Cursor, PanelItem, columns_of
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, line_width, plain
from tpuprof.tui.pages.input.drawing import (
    axis_top,
    compose_input,
    input_verdict,
    wait_detail,
    wait_graph,
)

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("page", INPUT_PAGES)
def test_frames(page: str) -> None:
    lines = compose_input(INPUT_PAGES[page](), Pen(80, BLOCK), 21, Cursor()).lines
    check_golden(GOLDEN / f"input-{page}-block-80x21.txt", frame(lines))


def test_a_frame_with_both_cursors() -> None:
    drawn = compose_input(input_bound_page(), Pen(120, BLOCK), 36, Cursor(step=1, op=3))
    check_golden(GOLDEN / "input-cursor-block-120x36.txt", frame(list(drawn.lines)))
    assert plain(drawn.lines[{row: line for line, row in drawn.rows.items()}[PanelItem("ops", 3)]])[0] == BLOCK.mark
    assert any(plain(line).startswith(" step 101 ") for line in drawn.lines[drawn.first_step_line :])


def hostile(name: str) -> InputPipelinePage:
    """A page on which everything that the profile names has this name."""
    page = input_bound_page()
    ops = tuple(replace(op, name=name) for op in page.ops)
    steps = tuple(replace(step, name=name, core=name or None) for step in page.steps)
    page = replace(page, ops=ops, stages=stages_of(ops), steps=steps, warnings=(name,), next_steps=(name,))
    return replace(page, unknown={"breakdown_us": name}, breakdown=None)


@given(
    st.sampled_from(sorted(INPUT_PAGES)).map(lambda name: INPUT_PAGES[name]()) | st.text(max_size=60).map(hostile),
    st.integers(40, 220),
    st.one_of(st.none(), st.integers(15, 80)),
    st.sampled_from([BLOCK, PLAIN, ASCII]),
    st.integers(-1, 7),
    st.integers(-1, 5),
)
@settings(max_examples=3 * EXAMPLES)
def test_every_line_is_exactly_as_wide_as_asked_whatever_the_names(
    page: InputPipelinePage, width: int, height: int | None, glyphs: Glyphs, op: int, step: int
) -> None:
    cursor = Cursor(step if 0 <= step < len(page.steps) else None, op if 0 <= op < len(page.stages) else None)
    drawn = compose_input(page, Pen(width, glyphs), height, cursor)
    check_lines(drawn.lines, width, glyphs)
    marked = [plain(line) for line in drawn.lines if plain(line).startswith(glyphs.mark + " ") and line[0][1] == "mark"]
    assert len(marked) <= 1
    if cursor.op is not None and width >= 70:
        rows = [line for line in drawn.rows if drawn.lines[line][0] == (glyphs.mark, "mark")]
        assert len(rows) == 1


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.floats(0, 100)).map(lambda pair: (min(pair), max(pair))),
        min_size=1,
        max_size=150,
    ),
    st.integers(AXIS + 4, 160),
    st.integers(1, 10),
    st.sampled_from([BLOCK, PLAIN, ASCII]),
    st.data(),
)
def test_columns_grow_with_the_waiting(
    spec: list[tuple[float, float]], width: int, height: int, glyphs: Glyphs, data: st.DataObject
) -> None:
    steps = [StepWait(str(n), 10**9, 1, mean, 0.0, most, "a:0") for n, (mean, most) in enumerate(spec)]
    cursor = data.draw(st.one_of(st.none(), st.integers(0, len(steps) - 1)))
    lines = wait_graph(steps, Pen(width, glyphs), height, cursor)
    assert len(lines) == height + 1
    assert {line_width(line) for line in [*lines, wait_detail(steps, 0, True, Pen(width, glyphs))]} == {width}
    columns = columns_of([step.percent_maximum or 0.0 for step in steps], width, cursor)
    assert max(most for _, most in spec) <= axis_top(steps) <= 100
    pitch = max(1, min(14, (width - AXIS) // len(columns.shown)))
    rows = [plain(line)[AXIS:] for line in lines[:height]]
    filled = {at: sum(row[at * pitch] != " " for row in rows) for at in range(len(columns.shown))}
    for at, step in enumerate(columns.shown):
        assert bool(filled[at]) == (spec[step][1] > 0)
        high = spec[step][1] / axis_top(steps) * height
        assert high - 1 <= filled[at] <= high + 1 or filled[at] == 1
    if cursor is None:
        worst = max(range(len(steps)), key=lambda n: round(spec[n][1] * 10**9))
        assert round(spec[worst][1] * 10**9) in {round(spec[at][1] * 10**9) for at in columns.shown}


def test_steps_that_do_not_wait_say_so() -> None:
    page = input_bound_page()
    steps = tuple(
        replace(step, percent_average=0.0, percent_minimum=0.0, percent_maximum=0.0, core=None) for step in page.steps
    )
    assert page.infeed_percent is not None
    calm = replace(page, steps=steps, infeed_percent=replace(page.infeed_percent, average=0.0, maximum=0.0))
    text = frame(compose_input(calm, Pen(100, BLOCK), 30, Cursor()).lines)
    assert "no step waits for input" in text and "none waits" in text
    assert "no core waits for input" in plain(wait_detail(steps, 2, True, Pen(100, BLOCK)))


@pytest.mark.parametrize("height", [26, 36])
def test_all_ops_come_before_more_than_a_good_height_of_the_graph(height: int) -> None:
    page = input_bound_page()
    found = compose_input(page, Pen(120, BLOCK), height, Cursor())
    rows = found.last_step_line - found.first_step_line - 1
    shown = sum("batched_device_put" in plain(line) for line in found.lines[:height])
    assert rows >= 4 and (shown or rows == 4)


@pytest.mark.parametrize(
    ("percent", "sign"), [(4.9, "NOT INPUT-BOUND"), (5.0, "PARTLY INPUT-BOUND"), (20.0, "INPUT-BOUND")]
)
def test_the_sign_says_what_the_figure_says(percent: float, sign: str) -> None:
    page = input_bound_page()
    bound = replace(page, bottleneck=replace(page.bottleneck, input_percent=percent, classification="host"))
    assert plain(input_verdict(bound, Pen(120, BLOCK))[0]).startswith(
        f" {sign} Input wait is {percent:.1f}% of all step"
    )


def test_a_graph_of_nothing_is_low() -> None:
    page = input_bound_page()
    calm = replace(page, steps=tuple(replace(step, percent_maximum=0.0, core=None) for step in page.steps))
    found = compose_input(calm, Pen(120, BLOCK), None, Cursor())
    assert found.last_step_line - found.first_step_line == 3
