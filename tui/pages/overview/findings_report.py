"""The report on findings alone: all of them with what they rest on, and the kinds that were looked for."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.draw.layout import fit, note_lines, rule, wrap
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.overview.fields import FINDINGS
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import (
    Figure,
    Table,
    attribute,
    figure_reasons,
    figure_values,
    first,
    listed,
    object_table,
    reasons,
    table_records,
)
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, joined, main_table, page_head
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.shared.quantities import STEP_TIME
from tpuprof.tui.report.text import covered, titled_text
from tpuprof.tui.report.units import COUNT, VERBATIM

_TOLD = "the profile has what it takes to tell"


@dataclass(frozen=True)
class _Sought:
    """A kind of finding: how many there are, and why it can't be told."""

    kind: str
    found: int
    untold: str | None


SOUGHT: Table[Sequence[_Sought]] = object_table(
    "kinds",
    (
        attribute("kind", VERBATIM, "what findings of this kind are about", "kind"),
        attribute("found", COUNT, "how many there are", "found"),
        attribute("untold", VERBATIM, "why this profile can't tell", "can't be told, because", null=_TOLD),
    ),
    markdown=("kind", "found", "untold"),
)


def _sought(page: Overview) -> tuple[_Sought, ...]:
    from tpuprof.parsers.pages.findings.finding import KINDS  # noqa: PLC0415 - `--describe` starts without

    counts = [finding.kind for finding in page.findings]
    return tuple(_Sought(kind, counts.count(kind), page.untold.get(kind)) for kind in KINDS)


FIGURES: tuple[Figure[Overview], ...] = (
    attribute(
        "step_time_ms", STEP_TIME, "times of the steps", null="the profile has no steps", name="performance.step_time"
    ),
    Figure("kinds", listed(SOUGHT), _sought, "all kinds that were looked for"),
)


def _nothing(page: Overview) -> str:
    """What to say where there are no findings."""
    can_tell = any(kind.untold is None for kind in _sought(page))
    return "Nothing stands out." if can_tell else "No finding of any kind can be told of this profile."


def json(page: Overview, asked: Asked) -> str:
    """All findings, then the kinds."""
    shown = first(len(page.findings), asked.most_rows)
    body = {"findings": table_records(FINDINGS, page.findings, shown), **figure_values(FIGURES, page)}
    why = {**figure_reasons(FIGURES), **reasons(FINDINGS.fields, "findings[]", {})}
    return document(head("findings", asked.run, page.hosts, page.warnings), body, why)


def csv(page: Overview, asked: Asked) -> str:
    """The findings."""
    return table_csv(FINDINGS, page.findings, first(len(page.findings), asked.most_rows))


def markdown(page: Overview, asked: Asked) -> str:
    """The findings, what each rests on and what to try, and the kinds that can't be told."""
    simulated, warnings = page.environment.simulated, page.warnings
    lines = page_head(f"Findings of {asked.run.name}", page.hosts, simulated=simulated, warnings=warnings)
    shown = first(len(page.findings), asked.most_rows)
    lines += main_table("Why is it slow?", FINDINGS, page.findings, shown, len(page.findings))
    lines += [] if page.findings else ["", _nothing(page)]
    for rank in shown:
        finding = page.findings[rank]
        lines += ["", f"### {rank + 1}. {escaped(finding.title)}", ""]
        lines += [f"- {escaped(sentence)}" for sentence in (*finding.evidence, finding.basis)]
        lines += ["", escaped(finding.advice)]
    sought = [kind for kind in _sought(page) if kind.untold]
    return joined(
        [*lines, *main_table("What this profile can't tell", SOUGHT, sought, range(len(sought)), len(sought))]
    )


def text(page: Overview, asked: Asked) -> str:
    """The findings one after the other, as their details are on the screen."""
    title, most = f"Findings of {asked.run.name}", asked.limit or len(page.findings)
    return titled_text(title, covered(page.hosts), lambda width, glyphs: _drawn(page, most, width, glyphs), asked.look)


def _drawn(page: Overview, most: int, width: int, glyphs: Glyphs) -> list[Line]:
    from tpuprof.tui.pages.overview.findings import finding_details  # noqa: PLC0415 - for text alone

    lines: list[Line] = []
    for rank, finding in enumerate(page.findings[:most], 1):
        lines += [rule(f"{rank}  {finding.kind}", width, glyphs), *finding_details(finding, page, width, glyphs, False)]
    if not page.findings:
        lines += wrap(_nothing(page), width, "strong", glyphs)
    if len(page.findings) > most:
        lines.append(fit([(f"and {len(page.findings) - most} more", "dim")], width, glyphs))
    sought = _sought(page)
    absent = [kind.kind for kind in sought if not kind.found and not kind.untold]
    lines.append(rule("Looked for", width, glyphs))
    lines += wrap(f"Not found: {', '.join(absent)}.", width, "text", glyphs) if absent else []
    by_reason: dict[str, list[str]] = {}
    for kind in sought:
        if kind.untold and not kind.found:
            by_reason.setdefault(kind.untold, []).append(kind.kind)
    for why, kinds in by_reason.items():
        lines += wrap(f"Can't be told: {', '.join(kinds)}: {why}.", width, "dim", glyphs)
    return [*lines, *note_lines(page.warnings, (), width, glyphs)]


REPORT = Report(
    read=lambda asked: asked.session(asked.run).overview(asked.host),
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(FINDINGS,),
    figures=FIGURES,
    csv_table=FINDINGS,
    warnings=lambda page: page.warnings,
)
