"""Why is it slow? One row a finding: what it is, what it is worth, where to look; and all of one in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.layout import clean, cut, fit, wrap
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey

if TYPE_CHECKING:
    from tpuprof.parsers.findings.finding import Finding, Place, Tab
    from tpuprof.parsers.pages.overview_page import Overview

TAB_KEYS: dict[Tab, tuple[int, str]] = {
    "overview": (1, "overview"),
    "input": (2, "input"),
    "op-profile": (3, "ops"),
    "timeline": (4, "timeline"),
    "memory": (5, "memory"),
}
"""The key of each tab, and its name in a word."""

SEVERE = 0.10
"""Share of the time from which on a finding is marked as a large one."""

_WORTH, _SHARE, _WHERE = 9, 8, 14


def findings_heading(findings: Sequence[Finding]) -> str:
    """What the figures are of: a step, or the capture where there are no steps."""
    return "worth a step" if all(finding.per == "step" for finding in findings) else "worth in the capture"


def place_of(finding: Finding, page: Overview) -> Place:
    """Where to look now: until there is a timeline, an op in the op profile and a step on the overview."""
    place = finding.place
    if place.tab != "timeline":
        return place
    is_step = any(step.name == place.target for step in page.steps)
    return replace(place, tab="overview" if is_step or place.target is None else "op-profile")


def findings_table(
    page: Overview,
    width: int,
    glyphs: Glyphs,
    cursor: int | None = None,
    most: int | None = None,
    with_evidence: bool = False,
) -> list[Line]:
    """A row a finding; where fewer rows are wanted than there are findings, those around the cursor.

    Args:
        with_evidence: what each rests on stands below it.
    """
    findings = page.findings
    shown = len(findings) if most is None else min(most, len(findings))
    first = max(0, min(cursor or 0, len(findings) - 1) - shown + 1)
    lines: list[Line] = []
    for at, finding in enumerate(findings[first : first + shown], first):
        lines.append(_row(at, finding, page, at == cursor, width, glyphs))
        if with_evidence:
            for sentence in finding.evidence:
                lines += wrap(sentence, width, "dim", glyphs, [("     ", "text")])
    return lines


def _row(at: int, finding: Finding, page: Overview, selected: bool, width: int, glyphs: Glyphs) -> Line:
    ascii_only = glyphs.name == "ascii"
    key: StyleKey = "bad" if finding.worth_fraction >= SEVERE else "warn"
    number, name = TAB_KEYS[place_of(finding, page).tab]
    figures = f"{worth(finding, ascii_only):>{_WORTH}}{percent(100 * finding.worth_fraction):>{_SHARE}}"
    where = f"  {glyphs.arrow} {number} {name}"
    room = max(1, width - 4 - len(figures) - _WHERE)
    title = cut(clean(finding.title, ascii_only), room, glyphs)
    return fit(
        [
            (glyphs.mark if selected else " ", "mark"),
            (f"{at + 1} ", key),
            (f"{title:<{room}}", "cursor" if selected else "strong"),
            (" ", "text"),
            (figures, "cursor" if selected else key),
            (f"{where:<{_WHERE}}", "dim"),
        ],
        width,
        glyphs,
    )


def worth(finding: Finding, ascii_only: bool) -> str:
    """What a finding is worth; ``~`` marks an estimate."""
    return ("~" if finding.is_estimate else "") + duration(finding.worth_ps, ascii_only)


def finding_line(finding: Finding, width: int, glyphs: Glyphs) -> Line:
    """The first piece of evidence in one line."""
    text = finding.evidence[0] if finding.evidence else finding.basis
    return fit([(" ", "text"), (clean(text, glyphs.name == "ascii"), "dim")], width, glyphs)


def finding_details(finding: Finding, page: Overview, width: int, glyphs: Glyphs) -> list[Line]:
    """All of a finding: worth, how that was computed, evidence, and where to look."""
    ascii_only = glyphs.name == "ascii"
    number, name = TAB_KEYS[place_of(finding, page).tab]
    kind = "estimate" if finding.is_estimate else "measured"
    per = "a step" if finding.per == "step" else "of the capture"
    head: list[Span] = [("worth ", "dim"), (worth(finding, ascii_only), "strong")]
    head.append((f" {per}, {percent(100 * finding.worth_fraction)}, {kind}", "dim"))
    lines = [*wrap(finding.title, width, "strong", glyphs), fit(head, width, glyphs), fit([], width, glyphs)]
    for sentence in finding.evidence:
        lines += wrap(sentence, width, "text", glyphs, [(f" {glyphs.dot} ", "key")])
    lines += [fit([], width, glyphs), *wrap(finding.basis, width, "dim", glyphs), fit([], width, glyphs)]
    target = f", {clean(finding.place.target, ascii_only)}" if finding.place.target else ""
    lines += wrap(f"goes to tab {number}, {name}{target}", width, "text", glyphs, [("o ", "key")])
    return lines
