"""The list of runs as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.tui.draw.format import duration, size
from tpuprof.tui.report.markdown import escaped, joined, table
from tpuprof.tui.report.values import utc

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts


def runs_markdown(logdir: Logdir, runs: Sequence[Run], facts: Mapping[str, RunFacts] | None = None) -> str:
    """A table of the runs, then their problems and the logdir's; with facts, by path of the run, more columns."""
    rows = (
        (
            run.name,
            str(len(run.hosts)),
            size(run.size_bytes),
            utc(run.modified) or "?",
            str(len(run.problems) or ""),
            *(() if facts is None else _facts_cells(facts.get(run.path))),
        )
        for run in runs
    )
    more = ("step time", "device", "modules") if facts is not None else ()
    lines = [f"# {counted(len(runs), 'run')} in {escaped(logdir.query)}", ""]
    lines += table(("run", "hosts", "size", "modified", "problems", *more), "lrrlr" + "rll"[: len(more)], rows)
    problems = [*logdir.problems, *(problem for run in runs for problem in run.problems)]
    if problems:
        lines += ["", "## Problems", ""]
        lines += [f"- {escaped(problem.sentence)}" for problem in problems]
    return joined(lines)


def _facts_cells(facts: RunFacts | None) -> tuple[str, str, str]:
    """Step time, device and modules, empty where unknown."""
    if facts is None:
        return "", "", ""
    step = "" if facts.step_time_ps is None else duration(facts.step_time_ps)
    return step, facts.device_type or "", ", ".join(facts.modules or ())
