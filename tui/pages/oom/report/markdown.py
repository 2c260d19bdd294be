"""Out-of-memory errors as Markdown: a dozen lines for a chat, and the largest buffers in a fenced block."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.memory.oom.model import OomLog
from tpuprof.parsers.memory.oom.triage import Triage
from tpuprof.tui.draw.buffers.sizes import binary_size, limit_size
from tpuprof.tui.draw.spans import ASCII, plain
from tpuprof.tui.pages.oom.draw.bars import KIND_WORDS, verdict_line
from tpuprof.tui.pages.oom.draw.card import SUMMARY_WIDTH
from tpuprof.tui.pages.oom.draw.table import rows_of, table_lines
from tpuprof.tui.report.markdown import escaped, joined

_ROWS = 8
"""Buffers where no limit says how many: the message is for a chat."""

_ADVICE = 3


def oom_markdown(log: OomLog, triages: Sequence[Triage], limit: int = 0) -> str:
    """Each error: its figures, what to do first, and its largest buffers."""
    lines: list[str] = []
    for at, triage in enumerate(triages):
        lines += _error(triage, at, len(triages), limit or _ROWS)
    lines += [f"- note: {escaped(note)}" for note in log.notes]
    return joined(lines)


def _error(triage: Triage, at: int, total: int, limit: int) -> list[str]:
    number = f" ({at + 1} of {total})" if total > 1 else ""
    what = f"`{_code(triage.title)}`, " if triage.title else ""
    times = f", {triage.count:,} times in the log" if triage.count > 1 else ""
    lines = [f"### Out of memory{number}: {what}{KIND_WORDS[triage.kind]}", ""]
    lines.append(f"**{escaped(_squeezed(plain(verdict_line(triage, None, 2 * SUMMARY_WIDTH, ASCII))))}**")
    lines.append(f"`{_code(triage.where)}`{times}")
    if triage.wanted_bytes is None and triage.sentence:
        lines.append(escaped(triage.sentence))
    if len(triage.parts) > 1 or triage.padding_bytes:
        parts = [f"{part.name} {limit_size(part.size_bytes)}" for part in triage.parts]
        parts += [f"of that padding {limit_size(triage.padding_bytes)}"] if triage.padding_bytes else []
        lines.append(", ".join(parts))
    lines += [f"Note: {escaped(note)}" for note in triage.notes]
    lines.append("")
    for place, advice in enumerate(triage.advice[:_ADVICE], 1):
        saving = f"**-{binary_size(advice.saving_bytes)}** (estimate): " if advice.saving_bytes else ""
        source = f" (`{_code(advice.source)}`)" if advice.source else ""
        lines.append(f"{place}. {saving}{escaped(advice.sentence)}{source}: {escaped(advice.how)}")
    rows = rows_of(triage, None)
    if rows:
        table = table_lines(triage, rows[:limit], SUMMARY_WIDTH, ASCII, sort=None)
        lines += ["", "```", *(plain(line).rstrip() for line in table)]
        lines += [f" and {len(rows) - limit} more"] if len(rows) > limit else []
        lines.append("```")
    return [*lines, ""]


def _squeezed(text: str) -> str:
    return "; ".join(piece.strip() for piece in text.split("   ") if piece.strip())


def _code(text: str | None) -> str:
    """Text inside backticks."""
    return escaped(text or "").replace("\\", "").replace("`", "'")
