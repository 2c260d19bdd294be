"""The report on the runs of a log folder, with the facts on each where they are asked for."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import FAILED
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.tui.draw.format import UNKNOWN, local_minute, size
from tpuprof.tui.draw.pen import Pen, cut
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.runs.fields import CSV_FACTS, FACTS, MARKDOWN_FACTS, RUNS, ListedRuns, RunRow, step_words
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, Values, declared
from tpuprof.tui.report.fields import Metric
from tpuprof.tui.report.json import head
from tpuprof.tui.report.markdown import escaped
from tpuprof.tui.report.page import Check, Head, ReportRequest
from tpuprof.tui.report.text import cut_name
from tpuprof.tui.report.units import TEXTS

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of a log folder, and by path of the run what is known of each; None where nobody asked for that."""

    logdir: Logdir
    runs: Sequence[Run]
    facts: Mapping[str, RunFacts] | None

    @property
    def warnings(self) -> list[str]:
        problems = [problem.sentence for problem in self.logdir.problems]
        if not any(run.beside for run in self.runs):
            return problems
        from tpuprof.parsers.pages.shared.split_runs import capture_words  # noqa: PLC0415 - numpy

        return [*problems, *capture_words(self.runs)]

    @property
    def listed(self) -> ListedRuns:
        facts = self.facts or {}
        return ListedRuns([RunRow(run, facts.get(run.path)) for run in self.runs])


# the table with the facts
EVERYTHING = replace(
    RUNS, json=(*RUNS.json, *FACTS), csv=(*RUNS.csv, *CSV_FACTS), markdown=(*RUNS.markdown, *MARKDOWN_FACTS)
)

METRICS: tuple[Metric[Runs], ...] = (
    Metric("searched", TEXTS, lambda page: page.logdir.searched, "where runs were searched, one sentence each"),
)


def read(request: ReportRequest) -> Runs:
    """Chooses the runs, and looks into each where facts are asked for."""
    logdir = request.logdir
    runs = (logdir.runs if request.run_name is None else (request.run,))[: request.limit or None]
    if not request.options.get("facts"):
        return Runs(logdir, runs, None)
    from tpuprof.parsers.session.known_runs import KnownRuns  # noqa: PLC0415 - numpy, which a list of runs does without

    known = KnownRuns(request.session(runs[0]).cache if runs else None, logdir.query)
    facts = {run.path: known.facts(run) for run in runs}
    known.keep()
    return Runs(logdir, runs, facts)


_CANT_BE_READ = frozenset(
    (
        *("unreadable", "unreadable_folder", "empty_file", "not_a_file", "dangling_link", "corrupt"),
        *("too_large", "changed", "not_found", FAILED),
    )
)
"""Codes of problems that leave a file or a folder unread; those of damaged files of which a part is read are others."""


def checks(page: Runs, _: ReportRequest) -> list[Check]:
    """What was found and can't be read, though all that can be is listed."""
    problems = itertools.chain(page.logdir.problems, *(row.problems for row in page.listed.rows))
    return [Check("file", "unknown", each.sentence) for each in problems if each.code in _CANT_BE_READ]


def declare(page: Runs, request: ReportRequest) -> Declared:
    """The runs, then their problems; `run` of JSON is the first of them."""
    first = page.runs[0] if page.runs else Run("", "", (), ())
    number = counted(len(page.runs), "run")
    runs = Section(RUNS if page.facts is None else EVERYTHING, page.listed, "Runs")
    of_run = head("runs", first, [file.host for file in first.hosts], ())["run"]
    return Declared(
        Head(f"Runs in {page.logdir.query}", first, (), page.warnings, [number], covers=number),
        parts=(
            Block(lambda: Values({"run": of_run})),
            runs,
            Metrics(METRICS, page),
            Block(markdown=lambda: _problems(page.listed.rows)),
        ),
        csv=runs,
        text=lambda pen: _text(page, pen),
        reasons=_unknown_facts(page.listed),
    )


def _problems(rows: Sequence[RunRow]) -> list[str]:
    problems = [f"- {escaped(problem.sentence)}" for row in rows for problem in row.problems]
    return ["", "## Problems", "", *problems] if problems else []


def _unknown_facts(listed: ListedRuns) -> dict[str, str]:
    """Why a fact is unknown, by dotted key: one reason a key, of the first run that lacks it."""
    why: dict[str, str] = {}
    for row in listed.rows:
        for key, attribute in FACTS.items():
            if row.facts is None:
                why.setdefault(f"runs[].{key}", "not read")
            elif getattr(row.facts, attribute) is None:
                why.setdefault(f"runs[].{key}", row.facts.unknown.get(attribute, ""))
    return why


def _text(page: Runs, pen: Pen) -> list[Line]:
    """A table of the runs, newest first, with the problems of each below its row; facts as far as there is room."""
    names = [pen.text(run.name) for run in page.runs]
    room = max(8, min(max(map(len, names), default=3), pen.width - 38))
    left = pen.width - room - 38 if page.facts is not None else 0
    facts = _cut_end(f"  {'step':>8}  {'device':<16}  modules", pen.at(left))
    lines: list[Line] = [((f" {'run':<{room}}  {'modified':<16}  {'hosts':>5}  {'size':>8}{facts}", "dim"),)]
    for row, name in zip(page.listed.rows, names, strict=True):
        run, facts = row.run, _cut_end(_fact_words(row.facts, pen), pen.at(left))
        metrics = f"  {local_minute(run.modified):<16}  {len(run.hosts):>5}  {size(run.size_bytes):>8}{facts}"
        lines.append(((f" {cut_name(name, room, pen.glyphs):<{room}}", "strong"), (metrics, "text")))
        for problem in row.problems:
            lines += _remark(problem.sentence, pen)
    for sentence in page.warnings:
        lines += _remark(sentence, pen)
    return lines


def _fact_words(facts: RunFacts | None, pen: Pen) -> str:
    """Step time (``~`` where it was inferred), device and modules; ``n/a`` where unknown."""
    step = step_words(facts, pen.glyphs.is_ascii)
    device = facts.device_type if facts is not None and facts.device_type else UNKNOWN
    modules = ", ".join(facts.modules) if facts is not None and facts.modules else UNKNOWN
    return f"  {step:>8}  {cut_name(pen.text(device), 16, pen.glyphs):<16}  {pen.text(modules)}"


def _cut_end(text: str, pen: Pen) -> str:
    """The columns that fit: whole, but for the last one."""
    step, device = 10, 28  # cells up to the end of each
    if pen.width >= device + 12:
        return cut(text, pen.width, pen.glyphs)
    return text[: device if pen.width >= device else step if pen.width >= step else 0]


def _remark(sentence: str, pen: Pen) -> list[Line]:
    pieces = textwrap.wrap(pen.text(sentence), pen.width - 5) or [""]
    first: Line = (("   ! ", "warn"), (pieces[0], "text"))
    return [first, *((("     " + piece, "text"),) for piece in pieces[1:])]


REPORT = declared(
    "runs", read, declare, tables=(EVERYTHING,), metrics=METRICS, warnings=lambda page: page.warnings, checks=checks
)
