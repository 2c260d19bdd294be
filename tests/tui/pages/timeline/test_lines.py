"""Graphs, minimap, gutter and detail pane of the timeline."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcwidth

from tests import EXAMPLES
from tests.parsers.timeline.build import track
from tests.support.golden import check_golden
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.timeline.model import CounterTrack
from tpuprof.parsers.timeline.windows import cell_edges, counter_window, track_window
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, Line, line_width, plain
from tpuprof.tui.pages.timeline.draw.frame import Label, LabelKind, gutter_line
from tpuprof.tui.pages.timeline.draw.lanes import counter_line, minimap_line, range_label, rate_line
from tpuprof.tui.pages.timeline.draw.panel import EventFacts, panel_lines

GOLDEN = Path(__file__).parent / "golden"
LOOKS = [BLOCK, PLAIN, ASCII]
BUSY = track([(0, 0, 400, 0), (0, 450, 500, 0), (0, 900, 1000, 0)])

FACTS = EventFacts(
    name="fusion.1234",
    where="Chip 0: TPU core 0, XLA Ops",
    op_class="compute",
    category="convolution fusion",
    start_ps=2_566_981_234_567,
    base="step 110",
    duration_ps=71_504_000,
    self_ps=35_752_000,
    step="110",
    step_fraction=0.031,
    occurrences=1234,
    is_op=True,
    flops=(57.1e12, 0.29),
    hbm_bytes=(819e9, 1.2),
    framework_op="jit(train_step)/jit(main)/transpose(jvp(mlp))/dot_general",
    source="/home/user/model.py:123",
)
TEXTS = st.one_of(
    st.text(max_size=60), st.sampled_from(["", "x" * 5000, "\x1b[31m", "日本語", "a\u0301b", "[red]x[/]"])
)


def check(line: Line, width: int, glyphs: Glyphs) -> None:
    """A line is as wide as asked, in one-cell characters, ASCII where that is wanted."""
    text = plain(line)
    assert line_width(line) == width
    assert all(wcwidth(character) == 1 for character in set(text))
    assert glyphs is not ASCII or text.isascii()
    assert all(part for part, _ in line)


# --- graphs


def test_a_rate_is_drawn_as_a_share_of_its_peak() -> None:
    values = np.array([0.0, 0.001, 25.0, 50.0, 100.0, 250.0, np.nan])
    line = rate_line(values, 100.0, BLOCK)
    assert plain(line) == " ▁▂▄██ ", "what is not zero shows"
    assert line[2] == ("█", "warn"), "more than the peak"
    assert plain(rate_line(values, None, BLOCK)) == " ▁▁▂▃█ ", "without a peak the highest is full"
    assert plain(rate_line(values, 100.0, ASCII)).isascii()


def test_a_cell_without_a_value_of_its_own_has_the_last_ones() -> None:
    counter = CounterTrack("power", np.array([5], np.int64), np.array([7.0]))
    assert plain(counter_line(counter, cell_edges(0, 4, 4), BLOCK)) == "    "
    assert plain(counter_line(counter, cell_edges(100, 104, 4), BLOCK)) == "▅▅▅▅", "one that never changes is half high"
    assert range_label(counter, BLOCK) == "7"


@pytest.mark.parametrize("odd", [[np.nan, np.inf], [np.nan, np.inf, 3.0], [-1.7e308, 1.7e308], []])
def test_odd_values_of_a_counter(odd: list[float]) -> None:
    counter = CounterTrack("x", np.arange(len(odd), dtype=np.int64) * 10, np.array(odd, np.float64))
    for glyphs in LOOKS:
        line = counter_line(counter, cell_edges(0, 30, 6), glyphs)
        assert line_width(line) == 6
        assert range_label(counter, glyphs)


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=30).map(sorted),
    st.integers(-50, 300),
    st.integers(1, 300),
    st.data(),
)
def test_a_counters_cells_are_their_greatest_values(
    times: list[int], start: int, span: int, data: st.DataObject
) -> None:
    values = data.draw(st.lists(st.integers(-9, 9), min_size=len(times), max_size=len(times)))
    counter = CounterTrack("x", np.array(times, np.int64), np.array(values, np.float64))
    edges = cell_edges(start, start + span, 7)
    for cell, seen in enumerate(counter_window(counter, edges).tolist()):
        low, high = int(edges[cell]), int(edges[cell + 1])
        held = [value for time, value in zip(times, values, strict=True) if time <= low][-1:]
        held += [value for time, value in zip(times, values, strict=True) if low < time < high]
        assert seen == max(held) if held else np.isnan(seen)


# --- minimap


def test_the_minimap_brackets_what_is_on_screen() -> None:
    window = track_window(BUSY, cell_edges(0, 1000, 20))
    line = minimap_line(window, BLOCK, view=(200, 400))
    assert plain(line) == "███[████]█        ██"
    assert ("████", ("compute", "view")) in line
    assert plain(minimap_line(window, BLOCK, view=(0, 1000))) == "[███████ █        █]"
    assert plain(minimap_line(window, BLOCK, view=(990, 991))) == "████████ █        []"


def test_matches_leave_marks_on_the_minimap() -> None:
    window = track_window(BUSY, cell_edges(0, 1000, 20))
    found = np.zeros(20, np.bool_)
    found[[3, 12]] = True
    line = minimap_line(window, BLOCK, view=(900, 1000), match_cells=found)
    assert ("█", ("match", "page")) in line
    assert ("·", ("match", "page")) in line, "a match on another track"
    for glyphs in (PLAIN, ASCII):
        assert plain(minimap_line(window, glyphs, view=(900, 1000), match_cells=found)).count("*") == 2


def test_what_is_lost_is_hatched_on_the_minimap() -> None:
    window = track_window(BUSY, cell_edges(0, 2000, 20))
    assert plain(minimap_line(window, BLOCK, view=(0, 300), lost_from_ps=1000)).endswith("╱" * 10)
    assert plain(minimap_line(window, ASCII, view=(0, 300), lost_from_ps=1000)).endswith("/" * 10)


@given(st.integers(1, 60), st.integers(-200, 1200), st.integers(1, 1500), st.sampled_from(LOOKS))
def test_minimaps_are_as_wide_as_asked(cells: int, start: int, span: int, glyphs: Glyphs) -> None:
    window = track_window(BUSY, cell_edges(0, 1000, cells))
    check(minimap_line(window, glyphs, view=(start, start + span)), cells, glyphs)


# --- gutter


KINDS: st.SearchStrategy[LabelKind] = st.sampled_from(["section", "track", "lane", "graph"])
IS_OPEN = st.sampled_from([None, True, False])
LABELS = st.builds(Label, KINDS, TEXTS, IS_OPEN, st.booleans(), st.booleans(), st.tuples(TEXTS))


@settings(max_examples=2 * EXAMPLES)
@given(LABELS, st.integers(1, 40), st.sampled_from(LOOKS))
def test_labels_are_as_wide_as_asked(label: Label, width: int, glyphs: Glyphs) -> None:
    check(gutter_line(label, Pen(width, glyphs)), width, glyphs)


def test_labels() -> None:
    labels = [
        Label("section", "Chip 0: TPU core 0", True),
        Label("track", "Steps"),
        Label("track", "Framework Name Scope", False, is_pinned=True),
        Label("track", "XLA Ops", True, is_current=True, notes=("93%",)),
        Label("lane", "1", is_current=True),
        Label("graph", "MXU", notes=("29%",)),
        Label("graph", "HBM FW Power Meter PL2(W)", notes=("61-143 W",)),
        Label("section", "Host threads", False, is_current=True),
    ]
    lines = [
        plain(gutter_line(label, Pen(width, glyphs)))
        for glyphs in (BLOCK, ASCII)
        for width in (24, 14)
        for label in labels
    ]
    check_golden(GOLDEN / "timeline-gutter.txt", "\n".join(lines) + "\n")


# --- the detail pane


MAYBE_TIME = st.none() | st.integers(-(2**63), 2**63)
MAYBE_RATE = st.none() | st.floats()
MAYBE_RATES = st.tuples(MAYBE_RATE, MAYBE_RATE)
MAYBE_COUNT = st.none() | st.integers(0, 2**63)
OP_CLASSES: st.SearchStrategy[OpClass | None] = st.sampled_from([None, "compute", "idle"])
ANY_FACTS = st.builds(
    EventFacts,
    op_class=OP_CLASSES,
    occurrences=MAYBE_COUNT,
    is_op=st.booleans(),
    **dict.fromkeys(("name", "where", "base", "step", "framework_op", "source"), TEXTS),
    **dict.fromkeys(("start_ps", "duration_ps", "self_ps"), MAYBE_TIME),
    **dict.fromkeys(("flops", "hbm_bytes"), MAYBE_RATES),
    step_fraction=MAYBE_RATE,
)
MARKS = st.lists(st.integers(-(2**63), 2**63), max_size=2)


@settings(max_examples=2 * EXAMPLES)
@given(st.data(), st.integers(1, 200), st.integers(0, 8), st.sampled_from(LOOKS))
def test_panes_have_the_size_asked_for(data: st.DataObject, width: int, height: int, glyphs: Glyphs) -> None:
    facts = data.draw(ANY_FACTS)
    shown = facts if data.draw(st.booleans()) else None
    lines = panel_lines(shown, Pen(width, glyphs), height, data.draw(MARKS), data.draw(TEXTS), hint=data.draw(TEXTS))
    assert len(lines) == height
    for line in lines:
        check(line, width, glyphs)


def test_rates_that_one_expects_to_read_are_not_left_out() -> None:
    op = plain(panel_lines(EventFacts("dot", is_op=True, duration_ps=5), Pen(120, BLOCK), 3)[2])
    assert "n/a FLOP/s" in op
    assert "n/a B/s HBM" in op
    step = panel_lines(EventFacts("110", duration_ps=5), Pen(120, BLOCK), 3)
    assert "n/a" not in "".join(plain(line) for line in step)


def test_a_marked_interval_always_has_its_line() -> None:
    for height in (1, 2, 3, 6):
        last = plain(panel_lines(FACTS, Pen(120, BLOCK), height, (5_000_000, 2_000_000), "step 7")[-1])
        assert last.startswith(" m…m 3.00000 µs   from 2.00 µs to 5.00 µs of step 7")
    assert "space again" in plain(panel_lines(FACTS, Pen(120, BLOCK), 4, (5,))[-1])


def test_a_rate_above_the_peak_is_a_warning() -> None:
    spans = [span for line in panel_lines(FACTS, Pen(160, BLOCK), 4) for span in line]
    assert (" 120.0%", "warn") in spans
    assert (" 29.0%", "text") in spans


def test_panes_of_many_sizes() -> None:
    lines = []
    for width, height, marks in ((140, 4, ()), (140, 3, (0, 10**6)), (80, 3, ()), (80, 6, (0, 10**9))):
        lines.append(f"--- {width} by {height}")
        lines += [plain(line) + "|" for line in panel_lines(FACTS, Pen(width, BLOCK), height, marks)]
    lines.append("--- nothing")
    lines += [
        plain(line) + "|" for line in panel_lines(None, Pen(80, BLOCK), 3, hint="no event here: . goes to the next one")
    ]
    check_golden(GOLDEN / "timeline-panel-block.txt", "\n".join(lines) + "\n")


def test_a_line_that_is_left_below_has_the_colours() -> None:
    *_, last = panel_lines(None, Pen(80, BLOCK), 3, hint="no event here")
    assert ("█", "class.compute") in [(text.strip(), key) for text, key in last] and "collective" in plain(last)
    assert "C compute" in plain(panel_lines(None, Pen(80, ASCII), 3)[-1])
    assert "compute " not in plain(panel_lines(FACTS, Pen(60, BLOCK), 3)[-1]), "what is known of an event goes first"
