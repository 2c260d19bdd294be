"""The doctor's part on a logdir: which runs are there, what they hold, and what they lack for which page."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import EXIT_OK, ProfileError
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.folder_search import files_beside
from tpuprof.parsers.files.logdir import Logdir, Run, open_logdir
from tpuprof.tui.draw.format import duration, size, utc

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts

MOST_RUNS = 10
"""Runs that are described; the others are counted."""

MOST_PROBLEMS = 5
WIDTH = 110

Row = tuple[str, str]


def logdir_section(path: str, shorten: Callable[[str], str] = lambda line: line) -> tuple[str, int]:
    """What a path leads to, as lines, and the exit code of the error where that is no profile.

    Args:
        shorten: goes over each text before it is wrapped.
    """
    try:
        logdir = open_logdir(path)
    except ProfileError as error:
        rows = [("nothing", error.sentence), *([("try", error.hint)] if error.hint else [])]
        return _laid_out(rows, 2, shorten), error.exit_code
    lines = _laid_out(_summary(logdir), 2, shorten)
    for run in logdir.runs[:MOST_RUNS]:
        lines += f"\n  {printable(run.name)}\n" + _laid_out(_described(run), 4, shorten)
    if len(logdir.runs) > MOST_RUNS:
        lines += f"\n  and {counted(len(logdir.runs) - MOST_RUNS, 'older run')}\n"
    return lines, EXIT_OK


def _summary(logdir: Logdir) -> list[Row]:
    total = sum(run.size_bytes for run in logdir.runs)
    files = sum(len(run.hosts) for run in logdir.runs)
    unreadable = sum(not run.hosts for run in logdir.runs)
    none = f"; {counted(unreadable, 'run')} without anything readable" if unreadable else ""
    rows = [("holds", f"{counted(len(logdir.runs), 'run')}, {counted(files, 'profile')}, {size(total)}{none}")]
    rows += [("searched", line) for line in logdir.searched]
    return rows + [("problem", problem.sentence) for problem in logdir.problems]


def _described(run: Run) -> list[Row]:
    """What a run holds, what it lacks, and what is wrong with it."""
    hosts = counted(len(run.hosts), "host") if run.hosts else "none that can be read"
    rows = [("hosts", f"{hosts}, {size(run.size_bytes)}"), ("written", utc(run.modified) or "unknown")]
    try:
        from tpuprof.parsers.session.run_facts import run_facts  # noqa: PLC0415 - numpy may be missing

        facts = run_facts(run)
    except (ImportError, ProfileError) as error:  # the very thing that a doctor is called for
        return [*rows, ("content", f"not looked at: {error}")]
    if run.hosts and facts.host is not None:
        rows += _content(facts, len(run.hosts))
    elif run.hosts:
        rows.append(("content", f"unknown: {facts.unknown['device_type']}"))
    beside = [f"{files.kind}: {files.count:,}, such as {files.example}" for files in files_beside(run.path)]
    rows += [("beside", line) for line in beside]
    rows += [("lacks", line) for line in (lacking(facts) if facts.host is not None else [])]
    problems = [*run.problems, *facts.problems]
    rows += [("problem", problem.sentence) for problem in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        rows.append(("problem", f"and {len(problems) - MOST_PROBLEMS:,} more"))
    return rows


def _content(facts: RunFacts, hosts: int) -> list[Row]:
    kind = facts.device_type or "unknown type"
    cores = counted(facts.core_count or 0, "GPU" if "GPU" in kind else "core")
    rows = [("device", f"{kind}, {cores} on {'the first of the hosts' if hosts > 1 else 'the host'}")]
    if facts.core_count == 0:
        rows = [("device", "none")]
    if facts.step_time_ps is not None:
        what = "marked" if facts.step_source == "steps" else "from the periods of a module"
        steps = counted(facts.step_count or 0, "step")
        rows.append(("steps", f"{duration(facts.step_time_ps, True)}, median of {steps}, {what}"))
    if facts.modules:
        more = (facts.module_count or 0) - len(facts.modules)
        rows.append(("modules", ", ".join(facts.modules) + (f" and {more:,} more" if more else "")))
    if facts.duration_ps is not None:
        rows.append(("profiled", duration(facts.duration_ps, True)))
    if facts.has_hlo:
        rows.append(("HLO", "compiled modules are in the profile"))
    tracing = {
        "annotations": "on (annotations and the runtime's own; level 1 or more), Python tracer off",
        "python": "on, with Python calls",
    }
    if facts.host_tracing in tracing:
        rows.append(("host tracer", tracing[facts.host_tracing]))
    if facts.simulated:
        rows.append(("times", "SIMULATED, as the profile says of itself"))
    return rows


def lacking(facts: RunFacts) -> list[str]:
    """What a profile does not hold, what that costs, and how to have it the next time."""
    lines = []
    if facts.core_count == 0:
        lines.append(
            "device events: no op, step or utilization can be told; did the program run on a device meanwhile?"
        )
    elif facts.step_time_ps is None:
        lines.append(
            f"steps ({facts.unknown.get('step_time_ps', 'unknown')}): "
            "jax.profiler.StepTraceAnnotation around each step marks them"
        )
    elif facts.step_source == "modules":
        lines.append(
            "step markers: step time is inferred; jax.profiler.StepTraceAnnotation around each step marks them"
        )
    if facts.has_hlo is False:
        lines.append("compiled HLO: no memory page, and no sources of ops; --xla_dump_to saves the modules themselves")
    if facts.host_tracing == "off":
        lines.append("host events: what a step waits for on the host stays unknown; host_tracer_level was 0")
    if facts.duration_ps is None:
        lines.append("start and stop of the capture: older profilers record none")
    return lines


def _laid_out(rows: Sequence[Row], indent: int, shorten: Callable[[str], str]) -> str:
    """A row a line, wrapped behind its name."""
    lead = indent + 13
    lines = []
    for name, value in rows:
        pieces = textwrap.wrap(shorten(printable(value)), WIDTH - lead, break_on_hyphens=False) or [""]
        lines.append(f"{' ' * indent}{name:<12} {pieces[0]}")
        lines += [" " * lead + piece for piece in pieces[1:]]
    return "".join(f"{line}\n" for line in lines)
