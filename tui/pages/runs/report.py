"""The report on the runs of a log folder; a format's module is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.tui.report.page import Asked, Report

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of a log folder, and by path of the run what is known of each; None where nobody asked for that."""

    logdir: Logdir
    runs: Sequence[Run]
    facts: Mapping[str, RunFacts] | None


def read(asked: Asked) -> Runs:
    """Chooses the runs, and looks into each where facts are asked for."""
    logdir = asked.logdir
    runs = (logdir.runs if asked.run_name is None else (asked.run,))[: asked.limit or None]
    if not asked.options.get("facts"):
        return Runs(logdir, runs, None)
    from tpuprof.parsers.session.run_facts import run_facts  # noqa: PLC0415 - numpy, which a list of runs does without

    return Runs(logdir, runs, {run.path: run_facts(run) for run in runs})


def json(page: Runs, _: Asked) -> str:
    """The runs as JSON."""
    from tpuprof.tui.pages.runs.report_json import runs_json  # noqa: PLC0415

    return runs_json(page.logdir, page.runs, page.facts)


def csv(page: Runs, _: Asked) -> str:
    """The runs as CSV."""
    from tpuprof.tui.pages.runs.report_csv import runs_csv  # noqa: PLC0415

    return runs_csv(page.runs, page.facts)


def markdown(page: Runs, _: Asked) -> str:
    """The runs as Markdown."""
    from tpuprof.tui.pages.runs.report_markdown import runs_markdown  # noqa: PLC0415

    return runs_markdown(page.logdir, page.runs, page.facts)


def text(page: Runs, asked: Asked) -> str:
    """The runs as plain text."""
    from tpuprof.tui.pages.runs.report_text import runs_text  # noqa: PLC0415

    return runs_text(page.logdir, page.runs, asked.look.width, asked.look.glyphs, asked.look.color, page.facts)


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    warnings=lambda page: [problem.sentence for problem in page.logdir.problems],
)
