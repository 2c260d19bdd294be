"""The overview in cells: committed frames, and what must hold for every page and width."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.golden import check_lines
from tests.support.made.pages import MS, device_less_overview, inference_overview, training_overview
from tests.support.made.serving import five_requests, read_requests, serving_profile
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.pages.overview.model import Overview, Share, Step
from tpuprof.parsers.pages.shared.latencies import Latency, Percentile, latencies
from tpuprof.parsers.steps.accounts.owners import OWNERS
from tpuprof.tui.draw.columns import AXIS, Cursor, PanelItem, columns_of
from tpuprof.tui.draw.pen import Pen, shared_prefix
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, line_width, plain, small_bar, whole_cells
from tpuprof.tui.pages.overview.drawing import class_bar, compose, step_line, top_ops_table
from tpuprof.tui.pages.overview.headline import headline, latency_line, verdict
from tpuprof.tui.pages.overview.steps import GROUPS, are_alike, parts_legend, step_detail, step_graph, step_parts

PAGES = {"training": training_overview, "inference": inference_overview, "no-device": device_less_overview}


def hostile(name: str) -> Overview:
    """A page on which everything that the profile names has this name."""
    page = training_overview()
    ops = tuple(dataclasses.replace(op, name=name, hlo_category=name) for op in page.top_ops)
    environment = dataclasses.replace(page.environment, device_type=name)
    return dataclasses.replace(page, top_ops=ops, environment=environment, warnings=(name,), unknown={"a": name})


@given(
    st.sampled_from(sorted(PAGES)) | st.text(max_size=60).map(hostile),
    st.integers(40, 220),
    st.one_of(st.none(), st.integers(15, 80)),
    st.sampled_from([BLOCK, PLAIN, ASCII]),
    st.integers(-1, 9),
    st.integers(-1, 98),
)
@settings(max_examples=4 * EXAMPLES)
def test_every_line_is_exactly_as_wide_as_asked_whatever_the_names(
    shown: str | Overview, width: int, height: int | None, glyphs: Glyphs, op: int, step: int
) -> None:
    page = PAGES[shown]() if isinstance(shown, str) else shown
    cursor = Cursor(step if 0 <= step < len(page.steps) else None, op if 0 <= op < len(page.top_ops) else None)
    drawn = compose(page, Pen(width, glyphs), height, cursor)
    check_lines(drawn.lines, width, glyphs)
    first = next((line for line, row in drawn.rows.items() if row == PanelItem("ops", 0)), None)
    if first is not None and width >= 70 and cursor.op is None and isinstance(shown, str):
        assert page.top_ops[0].name[-6:] in plain(drawn.lines[first])


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=7), st.integers(8, 200))
def test_the_cells_of_a_bar_add_up_and_follow_the_shares(times: list[int], width: int) -> None:
    total = sum(times)
    shares = [Share(kind, time, time / total) for kind, time in zip(OP_CLASSES, times, strict=False)]
    cells = whole_cells([share.fraction for share in shares], width)
    assert sum(cells) == width
    assert min(cells) >= 1
    for share, count in zip(shares, cells, strict=True):
        assert abs(count - share.fraction * width) <= len(shares) + 1


@given(st.floats(0, 1), st.integers(1, 40), st.sampled_from([BLOCK, ASCII]))
def test_a_small_bar_keeps_its_width_and_shows_what_is_not_zero(share: float, width: int, glyphs: Glyphs) -> None:
    filled, empty = small_bar(share, width, glyphs)
    assert len(filled) + len(empty) == width
    assert bool(filled) == (share > 0)
    assert glyphs is not ASCII or not {*filled} & {*" ."}, "it has no holes"


@given(
    st.lists(st.tuples(*[st.integers(0, 10**12)] * len(GROUPS)), min_size=1, max_size=120),
    st.integers(AXIS + 4, 160),
    st.integers(1, 10),
    st.sampled_from([BLOCK, PLAIN, ASCII]),
    st.data(),
)
def test_step_graph_columns_grow_with_the_steps(
    spec: list[tuple[int, ...]], width: int, height: int, glyphs: Glyphs, data: st.DataObject
) -> None:
    parts = np.array(spec, np.float64)
    steps = [Step(str(n), n, 0, max(1, sum(sizes)), None) for n, sizes in enumerate(spec)]
    cursor = data.draw(st.one_of(st.none(), st.integers(0, len(steps) - 1)))
    lines = step_graph(steps, parts, Pen(width, glyphs), height, cursor)
    assert len(lines) == height + 1
    assert {line_width(line) for line in [*lines, step_detail(steps, parts, cursor, Pen(width, glyphs))]} == {width}
    assert line_width(parts_legend(parts, glyphs, width)) <= width
    columns = columns_of([step.duration_ps for step in steps], width, cursor)
    assert cursor is None or columns.column_of(cursor) is not None
    if cursor is None:  # no step is left out, and the slowest one is drawn
        assert all(columns.column_of(at) is not None for at in range(len(steps)))
        longest = max(step.duration_ps for step in steps)
        assert longest in {steps[at].duration_ps for at in columns.shown}
    pitch = max(1, min(14, (width - AXIS) // len(columns.shown)))
    rows = [plain(line)[AXIS:] for line in lines[:height]]
    known = [at for at, step in enumerate(columns.shown) if sum(spec[step]) > 0]
    filled = {at: sum(row[at * pitch] != " " for row in rows) for at in known}
    for a in known:
        for b in known:
            if steps[columns.shown[a]].duration_ps <= steps[columns.shown[b]].duration_ps:
                assert filled[a] <= filled[b]


def test_the_groups_of_a_step_hold_every_owner_once_and_add_up_to_it() -> None:
    assert sorted(owner for group in GROUPS for owner in group.owners) == sorted(OWNERS)
    page = training_overview()
    parts = step_parts(page.steps, page.account)
    assert parts.sum(axis=1).tolist() == [step.duration_ps for step in page.steps]
    slow = dict(zip([group.word for group in GROUPS], (parts[3] / MS).tolist(), strict=True))
    assert slow == {"busy": 146, "collectives": 18, "waiting": 4, "host transfers": 0, "input wait": 180, "idle": 13}
    without = step_parts(page.steps, None)
    assert without[:, 0].tolist() == [step.duration_ps for step in page.steps] and not without[:, 1:].any()


def test_the_legend_names_groups_that_are_there_each_with_its_colour_or_letter() -> None:
    page = training_overview()
    parts = step_parts(page.steps, page.account)
    assert plain(parts_legend(parts, BLOCK, 80)) == "█ busy  █ collectives  █ waiting  █ input wait  █ idle  "
    assert plain(parts_legend(parts, ASCII, 80)) == "B busy  N collectives  W waiting  I input wait  . idle  "
    assert plain(parts_legend(parts, ASCII, 40)) == "B busy  N collectives  I input wait  "
    assert parts_legend(step_parts(page.steps, None), BLOCK, 80) == ()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_line_below_the_page_has_the_largest_owners_of_a_step(width: int) -> None:
    text = plain(step_line(3, training_overview(), Pen(width, BLOCK))).rstrip()
    assert text.startswith(" step 103  starts at 546 ms  input wait 49.9%") and text.endswith("%")


def test_the_selected_rows_are_marked_by_more_than_colour() -> None:
    page = training_overview()
    lines = top_ops_table(page.top_ops, Pen(80, BLOCK), cursor=2)
    assert [at for at, line in enumerate(lines) if plain(line).startswith(BLOCK.mark)] == [3]
    assert any(key == "cursor" for _, key in lines[3])


def test_without_colours_the_bar_spells_its_classes() -> None:
    text = plain(class_bar(training_overview(), Pen(80, PLAIN))[0])
    for letter in "CVDNH?.":
        assert letter in text


def test_steady_steps_are_called_steady() -> None:
    steps = [Step(str(n), n, 0, 100 + n % 2, None) for n in range(5)]
    assert "steady" in plain(step_detail(steps, step_parts(steps, None), None, Pen(100, BLOCK)))


def test_what_all_names_begin_with_is_said_once() -> None:
    names = ["jit(f)/jit(main)/a/add", "jit(f)/jit(main)/mul", "copy.1"]
    assert shared_prefix(names) == "jit(f)/jit(main)/"
    assert shared_prefix(["jit(f)/add", "copy.1"]) == ""
    assert shared_prefix(["a/add", "b/add"]) == ""


def test_a_short_screen_keeps_advice_and_says_what_is_left_out() -> None:
    page = training_overview()
    bottleneck = dataclasses.replace(
        page.bottleneck, statement="word " * 60, next_steps=("First.", "Second.", "Third.")
    )
    long = dataclasses.replace(page, bottleneck=bottleneck, account=None)
    text = [plain(line) for line in verdict(long, Pen(80, BLOCK), 4)]
    assert len(text) == 4
    assert "First." in text[-1] and "+2 more" in text[-1]
    assert "more line" in text[2]
    assert len(verdict(long, Pen(80, BLOCK))) > 6


def test_a_slow_step_shows_among_more_steps_than_columns() -> None:
    steps = [Step(str(n), n, 0, 400 if n == 150 else 100, None) for n in range(200)]
    lines = [plain(line) for line in step_graph(steps, step_parts(steps, None), Pen(80, BLOCK), 4)]
    assert sum(character != " " for character in lines[0][AXIS:]) == 1
    assert "max/3" in lines[-1]
    assert "150" in lines[-1]


def test_a_short_table_follows_the_cursor() -> None:
    ops = training_overview().top_ops
    rows = [plain(line) for line in top_ops_table(ops, Pen(80, BLOCK), cursor=6, most=3)][1:]
    assert len(rows) == 3
    assert rows[-1].startswith(BLOCK.mark)
    assert "adam/mul" in rows[-1]
    assert "copy.812" in rows[0]


@pytest.mark.parametrize("width", range(60, 121, 10))
def test_the_line_on_a_step_has_whole_figures_only(width: int) -> None:
    page = training_overview()
    text = plain(step_detail(page.steps, step_parts(page.steps, page.account), 3, Pen(width, BLOCK))).rstrip()
    assert "…" not in text and text.endswith(("ms", "µs"))


@pytest.mark.parametrize(("width", "count"), [(60, 2), (80, 3), (120, 5)])
def test_a_narrow_latency_line_spares_percentiles_but_not_what_they_are_of(width: int, count: int) -> None:
    rows = tuple(Percentile(at, Latency(10.0 * MS, None, None, None)) for at in (50.0, 75.0, 90.0, 99.0, 99.9))
    page = latencies([read_requests(serving_profile(five_requests()))], ["server-0"], is_training=False)
    served = dataclasses.replace(page, percentiles=rows, source="module runs", subject="jit_step(7)", sessions=5)
    text = plain(
        latency_line(dataclasses.replace(training_overview(), inference=served), Pen(width, BLOCK))[0]
    ).rstrip()
    assert text.endswith("of 5 runs of jit_step")
    assert text.count("10.0 ms") == count and "p50" in text and "p99" in text


def test_a_narrow_table_of_ops_gives_its_cells_to_the_names() -> None:
    page = training_overview()
    narrow, wide = (plain(top_ops_table(page.top_ops, Pen(width, BLOCK))[0]) for width in (60, 80))
    assert "FLOP/s" in wide and "FLOP/s" not in narrow and "self time" in narrow
    assert {line_width(line) for line in top_ops_table(page.top_ops, Pen(60, BLOCK))} == {60}


def test_steps_that_are_alike_are_one_row_on_a_screen() -> None:
    page = training_overview()
    assert not are_alike(step_parts(page.steps, page.account))
    alike = np.full((6, len(GROUPS)), 100.0)
    assert are_alike(alike)
    alike[3, 0] += 0.02 * alike[0].sum()
    assert not are_alike(alike)


def test_nothing_is_green_above_a_reason_that_is_worth_half_of_the_step() -> None:
    page = training_overview()
    metrics = dataclasses.replace(page.performance, device_duty_cycle_percent=99.0, device_idle_percent=1.0)
    for worth, is_green in ((0.1, True), (0.6, False)):
        findings = (dataclasses.replace(page.findings[0], worth_fraction=worth),)
        lines = headline(dataclasses.replace(page, performance=metrics, findings=findings), Pen(120, BLOCK))
        assert any(key == "good" for line in lines for _, key in line) == is_green
