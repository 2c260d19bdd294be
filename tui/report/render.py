"""Picks the format of a report; each format's module is imported when it is asked for, a tenth of a short run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.pages.overview.report_csv import limited

if TYPE_CHECKING:  # it needs numpy, which a list of runs does without
    from tpuprof.parsers.session.run_facts import RunFacts

Format = Literal["text", "json", "csv", "md"]
FORMATS: tuple[Format, ...] = ("text", "json", "csv", "md")


@dataclass(frozen=True, slots=True)
class Look:
    """How a text report looks: its width in cells, its characters, and whether it has ANSI colours."""

    width: int
    ascii_only: bool
    color: bool


def overview_report(page: Overview, run: Run, form: Format, look: Look, limit: int = 0) -> str:
    """The overview in a format; at most `limit` top ops, or all of them for 0."""
    page = limited(page, limit)
    if form == "json":
        from tpuprof.tui.pages.overview.report_json import overview_json  # noqa: PLC0415

        return overview_json(page, run)
    if form == "csv":
        from tpuprof.tui.pages.overview.report_csv import overview_csv  # noqa: PLC0415

        return overview_csv(page)
    if form == "md":
        from tpuprof.tui.pages.overview.report_markdown import overview_markdown  # noqa: PLC0415

        return overview_markdown(page, run)
    from tpuprof.tui.pages.overview.report_text import overview_text  # noqa: PLC0415
    from tpuprof.tui.report.text_report import glyphs_for  # noqa: PLC0415

    return overview_text(page, run, look.width, glyphs_for(look.ascii_only, look.color), look.color)


def runs_report(
    logdir: Logdir, runs: Sequence[Run], form: Format, look: Look, facts: Mapping[str, RunFacts] | None = None
) -> str:
    """Runs in a format, with what is known of each, by its path, where `facts` are given."""
    if form == "json":
        from tpuprof.tui.pages.runs.report_json import runs_json  # noqa: PLC0415

        return runs_json(logdir, runs, facts)
    if form == "csv":
        from tpuprof.tui.pages.runs.report_csv import runs_csv  # noqa: PLC0415

        return runs_csv(runs, facts)
    if form == "md":
        from tpuprof.tui.pages.runs.report_markdown import runs_markdown  # noqa: PLC0415

        return runs_markdown(logdir, runs, facts)
    from tpuprof.tui.pages.runs.report_text import runs_text  # noqa: PLC0415
    from tpuprof.tui.report.text_report import glyphs_for  # noqa: PLC0415

    return runs_text(logdir, runs, look.width, glyphs_for(look.ascii_only, look.color), look.color, facts)
