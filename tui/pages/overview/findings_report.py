"""The report on findings alone: all of them with what they rest on, and the kinds that were looked for."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import join

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import by_reason, printable
from tpuprof.parsers.base.words import NO_FLOPS_OR_BYTES
from tpuprof.parsers.pages.findings.figures import Figure
from tpuprof.parsers.pages.findings.finding import Finding, names_of
from tpuprof.parsers.pages.findings.subject import MOST_LISTED, SubjectOp, SubjectPart
from tpuprof.parsers.pages.findings.why_slow import KINDS
from tpuprof.parsers.pages.overview.ledger import explained
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.overview.fields import FINDING, FINDINGS
from tpuprof.tui.pages.overview.findings import finding_details
from tpuprof.tui.report.choice import filtered
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, declared
from tpuprof.tui.report.fields import Metric, Rows, Table, attribute, listed, metric_reasons, nested, object_table
from tpuprof.tui.report.markdown import escaped
from tpuprof.tui.report.page import Check, Head, ReportRequest, page_of
from tpuprof.tui.report.shared.quantities import STEP_TIME
from tpuprof.tui.report.units import COUNT, NUMBER, SHARE, TEXT, TIME_MS, VERBATIM

_TOLD = "the profile has the data for it"


@dataclass(frozen=True)
class _Sought:
    """A kind of finding: how many there are, and why it can't be detected."""

    kind: str
    found: int
    undetectable: str | None


@dataclass(frozen=True)
class Interval:
    """When a step ran."""

    step: str | None
    begin_ps: int
    end_ps: int


@dataclass(frozen=True)
class Found:
    """A finding, and where the run lies that it is of, which the command for more names."""

    finding: Finding
    name: str
    path: str
    options: tuple[str, ...] = ()

    @property
    def interval(self) -> Interval | None:
        """When the step with most of it ran; None without steps."""
        subject = self.finding.subject
        return None if subject.interval_ps is None else Interval(subject.step, *subject.interval_ps)

    @property
    def source(self) -> str | None:
        return next((op.source for op in self.finding.subject.ops if op.source), None)

    @property
    def next(self) -> str:
        page, *options = self._words()
        which = () if page == _OF_ALL_CORES else self.options
        return printable(join(["tpuprof-tui", "report", page, self.path, *which, *options]))

    def _words(self) -> list[str]:
        finding, ops, interval = self.finding, self.finding.subject.ops, self.interval
        if KINDS[finding.kind].page:
            return [KINDS[finding.kind].page]
        if finding.place.view and finding.place.target is not None:
            return [finding.place.view, "--op", finding.place.target]
        if ops:
            return ["op", "--op", ops[0].name]
        if interval is not None:
            begin, end = interval.begin_ps // _PS_PER_US, interval.end_ps // _PS_PER_US + 1
            return ["timeline", "--from", f"{begin / 1000:.3f}", "--to", f"{end / 1000:.3f}"]
        return [_TABS.get(finding.place.tab, finding.place.tab)]


_TABS = {"op-profile": "ops", "memory": "memory-profile"}
_PS_PER_US = 10**6
_OF_ALL_CORES = "cores"

_A_STEP = "a mean over cores, of a step where there are steps, else of the capture"
_NO_STEP = "it claims the same time in every step, or none in any"
_SUBJECT_OPS: Table[Sequence[SubjectOp]] = object_table(
    "ops",
    (
        attribute("name", TEXT, "the HLO op"),
        attribute("program_id", NUMBER, "of its module", null="the profile does not say which program it belongs to"),
        attribute("time_ms", TIME_MS, f"its time, {_A_STEP}"),
        attribute("claimed_ms", TIME_MS, "the part of that time claimed by the finding"),
        attribute("bound_by", VERBATIM, "what bounds it", null=NO_FLOPS_OR_BYTES),
        attribute(
            "roofline_efficiency", SHARE, "how close it is to the roof", null="nothing bounds it", name="efficiency"
        ),
        attribute("source", VERBATIM, "its source line", null="the profile names no source line for it"),
    ),
)


def _parts(key: str, what: str) -> Table[Sequence[SubjectPart]]:
    time = attribute("time_ms", TIME_MS, "the time claimed there, mean over steps")
    return object_table(key, (attribute("name", TEXT, f"the {what}, as all pages name it"), time))


_FIGURE = "what the figure is: words of the evidence, # for the number; or a name that all findings share"
_FIGURES: Table[Sequence[Figure]] = object_table(
    "figures",
    (
        attribute("name", VERBATIM, _FIGURE),
        attribute("value", NUMBER, "the figure"),
        attribute("unit", VERBATIM, "ms, count, fraction (0-1), bytes, or step (its name)"),
    ),
)
_INTERVAL: tuple[Metric[Interval], ...] = (
    attribute("from", TIME_MS, "its start on the trace's clock, as --from takes it", name="begin_ps"),
    attribute("to", TIME_MS, "its end, as --to takes it", name="end_ps"),
    attribute("step", VERBATIM, "the step's name"),
)
_MOST = f"those with most of it, at most {MOST_LISTED}"
_CORES = f"cores: {_MOST}; none where all have the same"
OF_FINDING: tuple[Metric[Found], ...] = (
    Metric("cause", VERBATIM, lambda found: found.finding.kind, "the kind of finding; the same as kind"),
    attribute(
        "name", VERBATIM, "what it is called, as verify --claim takes it: the kind, with a number if several are of it"
    ),
    Metric("ops", listed(_SUBJECT_OPS), lambda found: found.finding.subject.ops, f"HLO ops that it is about: {_MOST}"),
    Metric("op_count", COUNT, lambda found: found.finding.subject.op_count, "how many these are in all"),
    Metric("hosts", listed(_parts("hosts", "host")), lambda found: found.finding.subject.hosts, f"hosts: {_MOST}"),
    Metric("host_count", COUNT, lambda found: found.finding.subject.host_count, "hosts that have any of it"),
    Metric("cores", listed(_parts("cores", "core")), lambda found: found.finding.subject.cores, _CORES),
    Metric("core_count", COUNT, lambda found: found.finding.subject.core_count, "cores that have any of it"),
    attribute("interval_ms", nested(_INTERVAL), "when the step with most of it ran", null=_NO_STEP, name="interval"),
    attribute("source", VERBATIM, "the source line of its largest op", null="it is about no op with a source line"),
    Metric("figures", listed(_FIGURES), lambda found: found.finding.subject.figures, "its evidence as figures"),
    attribute("next", VERBATIM, "the command that shows more"),
)
"""What the report on findings has of each beside what the overview has."""

_REASONS = {f"findings[].{key}": why for key, why in metric_reasons(OF_FINDING).items()}


def _of(metric: Metric[Finding]) -> Metric[Found]:
    return Metric(
        metric.key, metric.unit, lambda found: metric.read(found.finding), metric.meaning, metric.null, metric.heading
    )


FOUND: Table[Sequence[Found]] = object_table(
    "findings", (*map(_of, FINDING), *OF_FINDING), csv=(*FINDINGS.csv, "source", "next"), markdown=FINDINGS.markdown
)

SOUGHT: Table[Sequence[_Sought]] = object_table(
    "kinds",
    (
        attribute("kind", VERBATIM, "what findings of this kind are about", "kind"),
        attribute("found", COUNT, "how many there are", "found"),
        attribute(
            "untold", VERBATIM, "why this profile can't show it", "unknown, because", null=_TOLD, name="undetectable"
        ),
    ),
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
    can_tell = any(kind.undetectable is None for kind in _sought(page))
    return "Nothing stands out." if can_tell else "This profile lacks the data for every kind of finding."


def _found(page: Overview, request: ReportRequest) -> list[Found]:
    which = (("--host", request.host), ("--core", request.run.core))
    options = tuple(word for name, value in which if value for word in (name, value))
    named = zip(page.findings, names_of(page.findings), strict=True)
    return [Found(finding, name, request.run.path, options) for finding, name in named]


def declare(page: Overview, request: ReportRequest) -> Declared:
    """The findings, their evidence and what to try, and the kinds that can't be detected."""
    head = Head(f"Findings of {request.run.name}", request.run, page.hosts, page.warnings)
    found = _found(page, request)
    findings = Section(FOUND, found, "Why is it slow?", request.most_rows)
    return Declared(
        replace(head, simulated=page.environment.simulated),
        parts=(
            findings,
            Block(markdown=lambda: [*_details(page, found, findings.shown), *_unknown_as_list(page)]),
            Metrics(METRICS, page),
        ),
        csv=findings,
        reasons=_REASONS,
        text=lambda pen: _drawn(page, request.limit or len(page.findings), pen),
    )


def checks(page: Overview, request: ReportRequest) -> list[Check]:
    """Each finding, which fails if ``--fail-on`` matches it; without any, whether there could be some."""
    found, forbidden = _found(page, request), request.options.get("fail_on")
    failed = filtered(FOUND, found, range(len(found)), forbidden, "--fail-on") if forbidden else []
    made = []
    for row, each in enumerate(found):
        finding = each.finding
        words = " ".join((f"{finding.title}.", *finding.evidence, finding.basis, finding.advice))
        made.append(Check(each.name, "failed" if row in failed else "ok", words, each.source or ""))
    is_open = forbidden and all(kind.undetectable for kind in _sought(page))
    return made or [Check("findings", "unknown" if is_open else "ok", _nothing(page))]


def _explained(page: Overview) -> list[str]:
    """A sentence on how much of the step the findings explain; nothing where none claims any of it."""
    if page.account is None or not any(finding.claims for finding in page.findings):
        return []
    return [explained(page.account)]


def _details(page: Overview, found: Sequence[Found], shown: Rows) -> list[str]:
    lines = [] if page.findings else ["", _nothing(page)]
    for rank, finding in ((row + 1, page.findings[row]) for row in shown):
        lines += ["", f"### {rank}. {escaped(finding.title)}", ""]
        lines += [f"- {escaped(sentence)}" for sentence in (*finding.evidence, finding.basis)]
        lines += ["", escaped(finding.advice), "", f"More: {escaped(found[rank - 1].next)}"]
    return [*lines, *(part for sentence in _explained(page) for part in ("", escaped(sentence)))]


def _drawn(page: Overview, most: int, pen: Pen) -> list[Line]:
    lines: list[Line] = []
    named = zip(page.findings[:most], names_of(page.findings), strict=False)
    for rank, (finding, name) in enumerate(named, 1):
        lines += [pen.rule(f"{rank}  {name}"), *finding_details(finding, page, pen, False)]
    if not page.findings:
        lines += pen.wrap(_nothing(page), "strong")
    if len(page.findings) > most:
        lines.append(pen.fit([(f"and {len(page.findings) - most} more", "dim")]))
    lines += pen.wrap_all(_explained(page), "text")
    sought = _sought(page)
    absent = [KINDS[kind.kind].title for kind in sought if not kind.found and not kind.undetectable]
    lines.append(pen.rule("Looked for"))
    lines += pen.wrap(f"Checked, not found: {', '.join(absent)}.", "text") if absent else []
    unknown = (f"Not checked: {line}." for line in _unknown(sought))
    return [*lines, *pen.wrap_all(unknown, "dim"), *pen.notes(page.warnings, ())]


def _unknown(sought: Sequence[_Sought]) -> list[str]:
    """The kinds that were not found because the profile can't show them, a line for each reason."""
    told = ((KINDS[kind.kind].title, kind.undetectable) for kind in sought if kind.undetectable and not kind.found)
    return by_reason(told, ", as ")


def _unknown_as_list(page: Overview) -> list[str]:
    lines = [f"- {escaped(line)}" for line in _unknown(_sought(page))]
    return ["", "## What this profile can't show", "", *lines] if lines else []


REPORT = declared("findings", page_of(OVERVIEW), declare, (FOUND,), METRICS, checks=checks)
