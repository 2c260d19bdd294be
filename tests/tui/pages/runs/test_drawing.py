"""The list of runs in cells: committed frames, and what must hold for any runs, facts and width."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.golden import check_lines, frame
from tests.support.made.runs import NOW, RUNS, facts_of, known
from tpuprof.parsers.files.logdir import Run, newest_first
from tpuprof.parsers.session.run_facts import RunFacts, nothing_known
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, Glyphs, Line, plain
from tpuprof.tui.pages.runs import drawing
from tpuprof.tui.pages.runs.fields import NOT_YET, RunRow, short_age


def rows_of(facts: bool = True) -> list[RunRow]:
    rows = [RunRow(run, facts_of(run) if facts else None, run == RUNS[0], run == RUNS[1]) for run in RUNS]
    return drawing.ordered([replace(rows[0], mark="A"), *rows[1:]], drawing.RunListing())


def drawn(rows: list[RunRow], cursor: int, width: int, glyphs: Glyphs, order: str = "age") -> list[Line]:
    lines = drawing.list_lines(rows, cursor, 0, len(rows), drawing.RunListing(sort=order), NOW, Pen(width, glyphs))
    return lines + drawing.detail_lines(rows[cursor] if rows else None, Pen(width, glyphs))


def test_before_anything_is_known() -> None:
    lines = drawn(rows_of(False), 0, 96, BLOCK)
    assert plain(lines[1]).count(NOT_YET) == 3
    assert "reading what it holds..." in frame(lines)
    assert "n/a" not in frame(lines)


def test_what_is_unknown_says_why() -> None:
    row = RunRow(RUNS[0], nothing_known("the disk is on fire"))
    assert "no step time: the disk is on fire" in frame(drawing.detail_lines(row, Pen(80, BLOCK)))
    assert plain(drawing.list_lines([row], 0, 0, 1, drawing.RunListing(), NOW, Pen(96, BLOCK))[1]).count("n/a") == 3


def test_versions_of_the_software_stand_with_the_capture() -> None:
    row = RunRow(RUNS[1], known(device_type="TPU v5", core_count=1, versions=("libtpu_version 0.0.21",)))
    assert f"TPU v5 {BLOCK.dot} libtpu_version 0.0.21" in frame(drawing.detail_lines(row, Pen(80, BLOCK)))


def test_orders() -> None:
    rows = rows_of()
    by_step = drawing.RunListing(sort="step")
    assert [row.run for row in drawing.ordered(rows, drawing.RunListing())] == [*newest_first(RUNS[::-1])]
    times = [facts_of(row.run).core_step_ps for row in drawing.ordered(rows, by_step)]
    assert times == [784 * 10**9, 246 * 10**9, None, None]
    assert [row.facts for row in drawing.ordered(rows_of(False), by_step)] == [None] * 4


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", [0, 1, 2, 3]),
        ("NEWEST", [0]),
        ("v6 jit_f", [1]),
        ("train_step v5", [0]),
        ("host2", [0]),
        ("2 GB limit", [2, 3]),
        ("nothing like it", []),
    ],
)
def test_the_filter(words: str, found: list[int]) -> None:
    rows = rows_of()
    assert [rows.index(row) for row in drawing.matching(rows, words, NOW)] == found


def test_no_row_matches() -> None:
    assert "no run has all these words" in frame(drawn([], 0, 60, BLOCK))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "now"), (300, "5 min"), (7200, "2 h"), (86400 * 12, "12 d"), (-100, "future"), (86400 * 12345, "12345 d")],
)
def test_ages(seconds: float, words: str) -> None:
    run = Run("a", "/a", (), (), NOW - seconds)
    shown = short_age(run, NOW)
    assert len(shown) <= 6 and shown in (words, ">99 y")
    assert short_age(replace(run, folder_modified=0.0), NOW) == "n/a"


texts = st.text(max_size=40)


@settings(max_examples=2 * EXAMPLES)
@given(
    st.lists(st.tuples(texts, texts, st.none() | st.integers(0, 2**62), st.lists(texts, max_size=3)), max_size=5),
    st.integers(20, 220),
    st.sampled_from([BLOCK, ASCII]),
)
def test_every_line_fits_whatever_the_names(
    content: list[tuple[str, str, int | None, list[str]]], width: int, glyphs: Glyphs
) -> None:
    rows = [
        RunRow(
            replace(RUNS[at % 4], name=name),
            known(device_type=device, core_step_ps=step, modules=tuple(modules), step_source="steps", step_count=step),
        )
        for at, (name, device, step, modules) in enumerate(content)
    ]
    lines = drawn(rows, 0, width, glyphs)
    assert len(lines) == 1 + max(1, len(rows)) + drawing.DETAIL_LINES
    check_lines(lines, width, glyphs)


def test_facts_of_no_host() -> None:
    assert "v5" not in frame(drawn([RunRow(RUNS[2], RunFacts())], 0, 140, ASCII))
