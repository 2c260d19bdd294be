"""Why is it slow? One row a finding: what it is, what it is worth, where to look; and all of one in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.tui.draw.format import duration
from tpuprof.tui.draw.layout import clean, cut, fit, rows_around, wrap
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey
from tpuprof.tui.pages import TABS
from tpuprof.tui.pages.overview.fields import share, worth

if TYPE_CHECKING:
    from tpuprof.parsers.pages.findings.finding import Finding
    from tpuprof.parsers.pages.overview.model import Overview

TAB_KEYS = {tab.name: (str(number), tab.short_title.lower()) for number, tab in enumerate(TABS, 1)}
"""The key of each tab, and its name in a word."""

SEVERE = 0.10
"""Share of the time from which on a finding is marked as a large one."""

_WORTH, _SHARE = 9, 7

_NARROW = 72
"""Cells below which a row gives the number of the tab alone."""


def goes_somewhere(finding: Finding) -> bool:
    """Whether there is more to show than the overview itself does."""
    return finding.place.tab != "overview" or finding.place.target is not None


def _where(finding: Finding, page: Overview, width: int, glyphs: Glyphs) -> str:
    """Where to look in a word: a tab with its key, or a step of this page; nothing where it is all here."""
    place = finding.place
    if not goes_somewhere(finding):
        return ""
    if place.tab == "overview":
        what, name = "step", cut(clean(place.target or "", glyphs.is_ascii), 8, glyphs)
    else:
        what, name = TAB_KEYS[place.tab]
    return f"{glyphs.arrow} {what}" + (f" {name}" if width >= _NARROW else "")


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
    places = [_where(finding, page, width, glyphs) for finding in findings]
    room = max(map(len, places), default=0)
    lines: list[Line] = []
    for row in rows_around(cursor, len(findings), most):
        finding = findings[row]
        lines.append(_row(row, finding, f"  {places[row]:<{room}}", row == cursor, width, glyphs))
        if with_evidence:
            for sentence in finding.evidence:
                lines += wrap(sentence, width, "dim", glyphs, [("     ", "text")])
    return lines


def _row(place: int, finding: Finding, where: str, selected: bool, width: int, glyphs: Glyphs) -> Line:
    fraction = finding.worth_fraction
    key: StyleKey = "key" if fraction is None else "bad" if fraction >= SEVERE else "warn"
    figures = f"{worth(finding, glyphs.is_ascii):>{_WORTH}}{share(finding):>{_SHARE}}"
    room = max(1, width - 5 - len(figures) - len(where))
    title = cut(clean(finding.title, glyphs.is_ascii), room, glyphs)
    spans: list[Span] = [(glyphs.mark if selected else " ", "mark"), (f"{place + 1} ", key)]
    spans.append((f"{title:<{room}} ", "cursor" if selected else "strong"))
    return fit([*spans, (figures, "cursor" if selected else key), (f"{where} ", "dim")], width, glyphs)


def finding_line(finding: Finding, width: int, glyphs: Glyphs) -> Line:
    """The first piece of evidence in one line."""
    text = finding.evidence[0] if finding.evidence else finding.basis
    return fit([(" ", "text"), (clean(text, glyphs.is_ascii), "dim")], width, glyphs)


def finding_details(finding: Finding, page: Overview, width: int, glyphs: Glyphs, with_key: bool = True) -> list[Line]:
    """All of a finding: worth, how that was computed, evidence, what to try, and where to look.

    Args:
        with_key: whether there is a key that goes there.
    """
    lines = [*wrap(finding.title, width, "strong", glyphs), *_worth_line(finding, width, glyphs)]
    lines.append(fit([], width, glyphs))
    for sentence in finding.evidence:
        lines += wrap(sentence, width, "text", glyphs, [(f" {glyphs.dot} ", "key")])
    lines += [fit([], width, glyphs), *wrap(finding.basis, width, "dim", glyphs)]
    lines += [fit([], width, glyphs), *wrap(finding.advice, width, "text", glyphs, [(f"{glyphs.arrow} ", "key")])]
    words = _jump(finding, page, glyphs.is_ascii)
    if words:
        key: list[Span] = [(glyphs.keyed("`o` shows "), "key")] if with_key else [("see ", "dim")]
        lines += [fit([], width, glyphs), *wrap(words, width, "text", glyphs, key)]
    return lines


def _worth_line(finding: Finding, width: int, glyphs: Glyphs) -> list[Line]:
    """What it is worth and what would be left of the step; nothing where that can't be told."""
    if finding.after_ps is None or finding.worth_ps is None:
        return []
    per = "a step" if finding.per == "step" else "of the capture"
    kind = "estimate" if finding.is_estimate else "measured"
    now, then = (duration(ps, glyphs.is_ascii) for ps in (finding.after_ps + finding.worth_ps, finding.after_ps))
    head: list[Span] = [("worth ", "dim"), (worth(finding, glyphs.is_ascii), "strong")]
    head.append((f" {per}, {share(finding)}, {kind}: ", "dim"))
    head += [(f"{now} {glyphs.arrow} ", "dim"), (then, "strong")]
    return [fit(head, width, glyphs)]


def _jump(finding: Finding, page: Overview, ascii_only: bool) -> str:
    """What `o` shows, in words; nothing where it is all here."""
    place = finding.place
    if not goes_somewhere(finding):
        return ""
    number, name = TAB_KEYS[place.tab]
    where = f"tab {number}, {name}"
    if place.target is None:
        return where
    is_step = any(step.name == place.target for step in page.steps)
    return f"{'step ' * is_step}{clean(place.target, ascii_only)} in {where}"
