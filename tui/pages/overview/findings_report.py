"""The report on findings alone: all of them with what they rest on, and the kinds that were looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.findings.finding import KIND_OWNERS, KINDS
from tpuprof.parsers.pages.overview.ledger import explained
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.overview.fields import FINDINGS
from tpuprof.tui.pages.overview.findings import finding_details
from tpuprof.tui.pages.overview.ledger.fields import WITHOUT, WITHOUT_PARTS
from tpuprof.tui.pages.overview.ledger.report import Content, check, read, taken_away
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import Metric, Table, attribute, listed, metric_rows, object_table
from tpuprof.tui.report.markdown import escaped
from tpuprof.tui.report.page import Head, ReportRequest
from tpuprof.tui.report.shared.quantities import STEP_TIME
from tpuprof.tui.report.units import COUNT, VERBATIM

if TYPE_CHECKING:
    from tpuprof.tui.report.fields import Rows

_without_lines = drawn_by("tpuprof.tui.pages.overview.ledger.without:without_lines")
_TOLD = "the profile has what it takes to tell"


@dataclass(frozen=True)
class _Sought:
    """A kind of finding: how many there are, and why it can't be detected."""

    kind: str
    found: int
    undetectable: str | None


SOUGHT: Table[Sequence[_Sought]] = object_table(
    "kinds",
    (
        attribute("kind", VERBATIM, "what findings of this kind are about", "kind"),
        attribute("found", COUNT, "how many there are", "found"),
        attribute(
            "untold", VERBATIM, "why this profile can't tell", "can't be told, because", null=_TOLD, name="undetectable"
        ),
    ),
    markdown=("kind", "found", "untold"),
)


def _sought(page: Overview) -> tuple[_Sought, ...]:
    counts = [finding.kind for finding in page.findings]
    return tuple(_Sought(kind, counts.count(kind), page.undetectable.get(kind)) for kind in KINDS)


METRICS: tuple[Metric[Overview], ...] = (
    attribute(
        "step_time_ms", STEP_TIME, "times of the steps", null="the profile has no steps", name="performance.step_time"
    ),
    Metric("kinds", listed(SOUGHT), _sought, "all kinds that were looked for"),
)


def _nothing(page: Overview) -> str:
    """What to say where there are no findings."""
    can_tell = any(kind.undetectable is None for kind in _sought(page))
    return "Nothing stands out." if can_tell else "No finding of any kind can be told of this profile."


def declare(content: Content, request: ReportRequest) -> Declared:
    """The findings, what each rests on and what to try, the kinds that can't be detected, and the step without some."""
    page, taken = content.page, content.without
    head = Head(f"Findings of {request.run.name}", request.run, page.hosts, page.warnings)
    findings = Section(FINDINGS, page.findings, "Why is it slow?", request.most_rows)
    untold = [kind for kind in _sought(page) if kind.undetectable]
    return Declared(
        replace(head, simulated=page.environment.simulated),
        parts=(
            findings,
            Block(markdown=lambda: _details(page, findings.shown)),
            Block(markdown=Section(SOUGHT, untold, "What this profile can't tell").markdown),
            Metrics(METRICS, page),
            *taken_away(content, request),
        ),
        metrics=lambda: [] if taken is None else metric_rows(WITHOUT_PARTS, taken),
        csv=findings,
        text=lambda pen: [
            *(() if taken is None else _without_lines(taken, pen)),
            *_drawn(page, request.limit or len(page.findings), pen),
        ],
    )


def _explained(page: Overview) -> list[str]:
    """A sentence on how much of the step the findings explain; nothing where none claims any of it."""
    if page.account is None or not any(finding.claims for finding in page.findings):
        return []
    return [explained(page.account)]


def _details(page: Overview, shown: Rows) -> list[str]:
    """What each finding rests on, and what to try."""
    lines = [] if page.findings else ["", _nothing(page)]
    for rank, finding in ((row + 1, page.findings[row]) for row in shown):
        lines += ["", f"### {rank}. {escaped(finding.title)}", ""]
        lines += [f"- {escaped(sentence)}" for sentence in (*finding.evidence, finding.basis)]
        lines += ["", escaped(finding.advice)]
    return [*lines, *(part for sentence in _explained(page) for part in ("", escaped(sentence)))]


def _drawn(page: Overview, most: int, pen: Pen) -> list[Line]:
    lines: list[Line] = []
    for rank, finding in enumerate(page.findings[:most], 1):
        lines += [pen.rule(f"{rank}  {finding.kind}"), *finding_details(finding, page, pen, False)]
    if not page.findings:
        lines += pen.wrap(_nothing(page), "strong")
    if len(page.findings) > most:
        lines.append(pen.fit([(f"and {len(page.findings) - most} more", "dim")]))
    for sentence in _explained(page):
        lines += pen.wrap(sentence, "text")
    sought = _sought(page)
    absent = [kind.kind for kind in sought if not kind.found and not kind.undetectable]
    lines.append(pen.rule("Looked for"))
    lines += pen.wrap(f"Not found: {', '.join(absent)}.", "text") if absent else []
    by_reason: dict[str, list[str]] = {}
    for kind in sought:
        if kind.undetectable and not kind.found:
            by_reason.setdefault(kind.undetectable, []).append(kind.kind)
    for why, kinds in by_reason.items():
        lines += pen.wrap(f"Can't be told: {', '.join(kinds)}: {why}.", "dim")
    return [*lines, *pen.notes(page.warnings, ())]


REPORT = declared(
    "findings",
    partial(read, known=KIND_OWNERS),
    declare,
    (FINDINGS,),
    (*METRICS, WITHOUT),
    warnings=lambda content: content.page.warnings,
    check=partial(check, known=KIND_OWNERS),
)
