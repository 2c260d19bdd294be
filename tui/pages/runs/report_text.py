"""The list of runs as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.tui.draw.format import UNKNOWN, duration, size
from tpuprof.tui.draw.layout import cut
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.report.text import LEAST_WIDTH, cut_name, fit_for_cells, heading, render
from tpuprof.tui.report.values import local_minute

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts


def runs_text(
    logdir: Logdir,
    runs: Sequence[Run],
    width: int,
    glyphs: Glyphs,
    color: bool = False,
    facts: Mapping[str, RunFacts] | None = None,
) -> str:
    """A table of the runs, newest first, with the problems of each below its row.

    Args:
        width: in cells.
        facts: by path of the run, for further columns as far as there is room.
    """
    width = max(width, LEAST_WIDTH)
    lines = [heading(f"Runs in {logdir.query}", counted(len(runs), "run"), width, glyphs)]
    names = [fit_for_cells(run.name, glyphs) for run in runs]
    room = max(8, min(max(map(len, names), default=3), width - 38))
    left = width - room - 38
    head = "" if facts is None else _cut_end(f"  {'step':>8}  {'device':<16}  modules", left, glyphs)
    lines.append(((f" {'run':<{room}}  {'modified':<16}  {'hosts':>5}  {'size':>8}{head}", "dim"),))
    for run, name in zip(runs, names, strict=True):
        more = "" if facts is None else _cut_end(_facts_words(facts.get(run.path), glyphs), left, glyphs)
        figures = f"  {local_minute(run.modified):<16}  {len(run.hosts):>5}  {size(run.size_bytes):>8}{more}"
        lines.append(((f" {cut_name(name, room, glyphs):<{room}}", "strong"), (figures, "text")))
        for problem in run.problems:
            lines += _remark(problem.sentence, width, glyphs)
    for problem in logdir.problems:
        lines += _remark(problem.sentence, width, glyphs)
    return render(lines, color)


def _facts_words(facts: RunFacts | None, glyphs: Glyphs) -> str:
    """Step time (``~`` where it was inferred), device and modules; ``n/a`` where unknown."""
    time = None if facts is None else facts.step_time_ps
    inferred = "~" if facts is not None and facts.step_source == "modules" and time is not None else ""
    device = facts.device_type if facts is not None and facts.device_type else UNKNOWN
    modules = ", ".join(facts.modules) if facts is not None and facts.modules else UNKNOWN
    step = inferred + duration(time, glyphs.name == "ascii")
    return f"  {step:>8}  {cut_name(fit_for_cells(device, glyphs), 16, glyphs):<16}  {fit_for_cells(modules, glyphs)}"


def _cut_end(text: str, width: int, glyphs: Glyphs) -> str:
    """The columns that fit: whole, but for the last one."""
    step, device = 10, 28  # cells up to the end of each
    if width >= device + 12:
        return cut(text, width, glyphs)
    return text[: device if width >= device else step if width >= step else 0]


def _remark(sentence: str, width: int, glyphs: Glyphs) -> list[Line]:
    """A sentence under a row, marked and wrapped."""
    pieces = textwrap.wrap(fit_for_cells(sentence, glyphs), width - 5) or [""]
    first: Line = (("   ! ", "warn"), (pieces[0], "text"))
    return [first, *((("     " + piece, "text"),) for piece in pieces[1:])]
