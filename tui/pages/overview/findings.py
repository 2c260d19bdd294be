"""Why is it slow? One row a finding: what it is, what it is worth, where to look; and all of one in full."""

from __future__ import annotations

from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.draw.format import duration
from tpuprof.tui.draw.pen import Pen, cut_words, rows_around
from tpuprof.tui.draw.spans import Line, Span, StyleKey
from tpuprof.tui.pages import TABS, views_of
from tpuprof.tui.pages.overview.fields import share, worth

TAB_KEYS = {tab.name: (str(number), tab.short_title.lower()) for number, tab in enumerate(TABS, 1)}
"""The key of each tab, and its name in a word."""

SEVERE = 0.10  # share of the time from which on a finding is marked as a large one
_WORTH, _SHARE = 9, 7

_NARROW = 72  # cells below which a row gives the number of the tab alone


def _where(finding: Finding, pen: Pen) -> str:
    number, name = TAB_KEYS[finding.place.tab]
    return f"{pen.glyphs.arrow} {number}" + (f" {name}" if pen.width >= _NARROW else "")


def findings_table(
    page: Overview, pen: Pen, cursor: int | None = None, most: int | None = None, with_evidence: bool = False
) -> list[Line]:
    """A row a finding, or those around the cursor where fewer are wanted; below each its evidence where that is."""
    findings = page.findings
    places = [_where(finding, pen) for finding in findings]
    room = max(map(len, places), default=0)
    lines: list[Line] = []
    for row in rows_around(cursor, len(findings), most):
        finding = findings[row]
        lines.append(_row(row, finding, f"  {places[row]:<{room}}", row == cursor, pen))
        if with_evidence:
            lines += pen.wrap_all(finding.evidence, "dim", [("     ", "text")])
    return lines


def _row(place: int, finding: Finding, where: str, selected: bool, pen: Pen) -> Line:
    fraction = finding.worth_fraction
    key: StyleKey = "key" if fraction is None else "bad" if fraction >= SEVERE else "warn"
    metrics = f"{worth(finding, pen.glyphs.is_ascii):>{_WORTH}}{share(finding):>{_SHARE}}"
    room = max(1, pen.width - 5 - len(metrics) - len(where))
    title = cut_words(finding.title, room, pen.glyphs)
    spans: list[Span] = [(pen.glyphs.mark if selected else " ", "mark"), (f"{place + 1} ", key)]
    spans.append((f"{title:<{room}} ", "cursor" if selected else "strong"))
    return pen.fit([*spans, (metrics, "cursor" if selected else key), (f"{where} ", "dim")])


def finding_line(finding: Finding, pen: Pen) -> Line:
    """What to try, in one line."""
    return pen.fit([(f" {pen.glyphs.arrow} ", "key"), (cut_words(finding.advice, pen.width - 3, pen.glyphs), "text")])


def finding_details(finding: Finding, page: Overview, pen: Pen, with_key: bool = True) -> list[Line]:
    """All of a finding: worth, how that was computed, evidence, what to try, and where to look, with its key."""
    lines = [*pen.wrap(finding.title, "strong"), *_worth_line(finding, pen)]
    lines += [pen.fit([]), *pen.wrap_all(finding.evidence, "text", [(f" {pen.glyphs.dot} ", "key")])]
    lines += [pen.fit([]), *pen.wrap(finding.basis, "dim")]
    lines += [pen.fit([]), *pen.wrap(finding.advice, "text", [(f"{pen.glyphs.arrow} ", "key")])]
    key: list[Span] = [("o shows ", "key")] if with_key else [("see ", "dim")]
    return [*lines, pen.fit([]), *pen.wrap(jump_words(finding.place, page), "text", key)]


def _worth_line(finding: Finding, pen: Pen) -> list[Line]:
    """What it is worth and what would be left of the step; nothing where that is unknown."""
    if finding.after_ps is None or finding.worth_ps is None:
        return []
    per = (
        f"per {finding.unit.name if finding.unit is not None else 'step'}"
        if finding.per == "step"
        else "of the capture"
    )
    kind = "estimate" if finding.is_estimate else "measured"
    times = finding.after_ps + finding.worth_ps, finding.after_ps
    now, then = (duration(finding.told_ps(ps), pen.glyphs.is_ascii) for ps in times)
    head: list[Span] = [("saves ", "dim"), (worth(finding, pen.glyphs.is_ascii), "strong")]
    head.append((f" {per}, {share(finding)}, {kind}: ", "dim"))
    head += [(f"{now} {pen.glyphs.arrow} ", "dim"), (then, "strong")]
    return [pen.fit(head)]


def jump_words(place: JumpTarget, page: Overview) -> str:
    """What `o` shows, in words."""
    number, name = TAB_KEYS[place.tab]
    where = f"tab {number}, {name}"
    if place.target is None:
        return where
    if place.view:
        title = next(view.title for view in views_of(place.tab) if view.name == place.view)
        return f"{place.target} in {where}, view {title}"
    is_step = any(step.name == place.target for step in page.steps)
    return f"{'step ' * is_step}{place.target} in {where}"


def jump_to(page: Overview, place: JumpTarget) -> tuple[str, str, str]:
    """Where a finding leads: a tab, what to go to there, and its name; both empty where the tab itself is all."""
    if place.target is None:
        return place.tab, "", ""
    if place.view:
        return place.tab, place.view, place.target
    is_step = any(step.name == place.target for step in page.steps)
    is_of_step = place.tab == "input" or (place.tab == "timeline" and is_step)
    return place.tab, "step" if is_of_step else "op", place.target
