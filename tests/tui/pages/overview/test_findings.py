"""Why it is slow, in cells: committed frames, and what the rows promise."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.golden import check_lines, frame
from tests.support.made.pages import MS, device_less_overview, training_overview, two_findings
from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.draw.columns import Cursor
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, plain
from tpuprof.tui.pages.overview.drawing import compose
from tpuprof.tui.pages.overview.findings import finding_details, findings_table

GLYPHS = {"block": BLOCK, "plain": PLAIN, "ascii": ASCII}


def several_findings() -> tuple[Finding, ...]:
    """One of each way to look on: another tab with and without a target, an op, a step, and nowhere."""
    base = two_findings()[0]
    reduce = JumpTarget("timeline", "all-reduce.65")
    rows: list[tuple[str, float, float, bool, JumpTarget]] = [
        ("Collectives not hidden by compute, all-reduce.65 most", 36.8, 0.144, False, reduce),
        ("1 of 6 steps waits for input", 30.0, 0.1415, False, JumpTarget("input", "103")),
        ("Device idle while the host runs \x1b[31mnext\x1b[0m", 9.4, 0.044, False, JumpTarget("timeline", "104")),
        ("copy.44 changes a layout", 0.0123, 0.00006, True, JumpTarget("op-profile", "copy.44")),
        ("The program was compiled 3 times in the capture", 0.5, 0.002, True, JumpTarget("timeline")),
        ("Steps wait for input", 0.25, 0.001, True, JumpTarget("input")),
    ]
    return tuple(
        dataclasses.replace(
            base, title=title, worth_ps=worth * MS, worth_fraction=part, is_estimate=is_estimate, place=place
        )
        for title, worth, part, is_estimate, place in rows
    )


def page_with_findings() -> Overview:
    return dataclasses.replace(training_overview(), findings=several_findings())


@given(
    st.integers(40, 220),
    st.sampled_from([BLOCK, PLAIN, ASCII]),
    st.one_of(st.none(), st.integers(0, 5)),
    st.one_of(st.none(), st.integers(1, 7)),
    st.booleans(),
)
@settings(max_examples=60)
def test_every_line_is_exactly_as_wide_as_asked(
    width: int, glyphs: Glyphs, cursor: int | None, most: int | None, with_evidence: bool
) -> None:
    page = page_with_findings()
    lines = findings_table(page, Pen(width, glyphs), cursor, most)
    assert len(lines) == min(6, most or 6)
    assert sum(line[0][0] == glyphs.mark for line in lines) == (cursor is not None)
    lines += findings_table(page, Pen(width, glyphs), cursor, most, with_evidence=with_evidence)
    for finding in page.findings:
        lines += finding_details(finding, page, Pen(width, glyphs))
    check_lines(lines, width, glyphs)


def test_a_row_says_where_to_look_only_where_there_is_more() -> None:
    page = page_with_findings()
    rows = [plain(line).rstrip() for line in findings_table(page, Pen(100, BLOCK))]
    assert [row.partition("→ ")[2] for row in rows] == [
        "4 timeline",
        "2 input",
        "4 timeline",
        "3 ops",
        "4 timeline",
        "2 input",
    ]
    for finding in page.findings:
        assert "o shows" in frame(finding_details(finding, page, Pen(100, BLOCK)))


def test_the_details_of_a_finding_say_whether_the_timeline_shows_a_step_or_an_op() -> None:
    idle = several_findings()[2]
    assert idle.place == JumpTarget("timeline", "104")
    assert "shows step 104 in tab 4" in frame(finding_details(idle, page_with_findings(), Pen(100, BLOCK)))
    assert "shows 104 in tab 4" in frame(finding_details(idle, device_less_overview(), Pen(100, BLOCK)))


def test_a_narrow_row_gives_its_cells_to_the_title() -> None:
    page = page_with_findings()
    narrow, wide = (plain(findings_table(page, Pen(width, BLOCK))[0]).rstrip() for width in (60, 80))
    assert narrow.endswith("→ 4") and wide.endswith("→ 4 timeline")
    assert "Collectives not hidden by compute…" in narrow and "not hidden by compute,…" in wide


@pytest.mark.parametrize("glyphs", GLYPHS)
def test_figures_stand_below_each_other_with_their_units(glyphs: str) -> None:
    rows = [plain(line) for line in findings_table(page_with_findings(), Pen(80, GLYPHS[glyphs]))]
    ends = {row.index("%") for row in rows}
    assert len(ends) == 1
    micro = "us" if glyphs == "ascii" else "µs"
    assert f"~12.3 {micro}" in rows[3] and "<0.1%" in rows[3]


def test_the_graph_says_where_it_ends_so_that_it_is_scrolled_to_as_a_whole() -> None:
    frame = compose(page_with_findings(), Pen(60, BLOCK), 12, Cursor(step=3))
    assert frame.last_step_line > frame.first_step_line
    assert "step 103" in plain(frame.lines[frame.last_step_line])
