"""Out-of-memory errors as plain text, drawn by the functions that draw the screen."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.memory.oom.model import OomLog
from tpuprof.parsers.memory.oom.triage import Triage
from tpuprof.tui.draw.layout import fit, wrap
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.oom.draw.bars import KIND_WORDS
from tpuprof.tui.pages.oom.draw.page import View, compose
from tpuprof.tui.pages.oom.draw.table import rows_of
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render


def oom_text(
    log: OomLog, triages: Sequence[Triage], width: int, glyphs: Glyphs, limit: int = 0, color: bool = False
) -> str:
    """Every error under a line that says where it stands; `width` is in cells."""
    width = max(width, LEAST_WIDTH)
    lines: list[Line] = []
    for at, triage in enumerate(triages):
        lines += [fit([], width, glyphs)] if at else []
        lines.append(heading(_title(triage), _place(triage, at, len(triages)), width, glyphs))
        rows = rows_of(triage, None)
        lines += compose(triage, None, View(), width, None, glyphs, rows[:limit] if limit else rows).lines
        if limit and len(rows) > limit:
            lines.append(fit([(f"   and {len(rows) - limit} more", "dim")], width, glyphs))
    for note in log.notes:
        lines += wrap(note, width, "warn", glyphs, [(" ! ", "warn")])
    return render(lines, color)


def _title(triage: Triage) -> str:
    words = [f"{triage.where}: out of memory", KIND_WORDS[triage.kind], triage.title, triage.device]
    return ", ".join(word for word in words if word)


def _place(triage: Triage, at: int, total: int) -> str:
    times = f"{triage.count:,} times" if triage.count > 1 else ""
    number = f"{at + 1} of {total}" if total > 1 else ""
    return ", ".join(filter(None, (times, number))) or "once"
