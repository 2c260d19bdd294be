"""Out-of-memory errors of a log as text, JSON and Markdown."""

from __future__ import annotations

from typing import Any

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.memory.live_arrays import LiveArrays, holders_of
from tpuprof.parsers.memory.oom.model import OomLog
from tpuprof.parsers.memory.oom.triage import Triage, triage_of_report
from tpuprof.tui.draw.format import binary_size, limit_size
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, Line, plain
from tpuprof.tui.pages.commands.oom.draw.bars import KIND_WORDS, holders_remark, verdict_line
from tpuprof.tui.pages.commands.oom.draw.card import SUMMARY_WIDTH
from tpuprof.tui.pages.commands.oom.draw.page import compose
from tpuprof.tui.pages.commands.oom.draw.table import OomView, rows_of, table_lines
from tpuprof.tui.pages.commands.oom.fields import ADVICE, BUFFERS, ERRORS, LOG, OomErrors
from tpuprof.tui.report.declared import Section
from tpuprof.tui.report.fields import metric_values, reasons, table_records
from tpuprof.tui.report.json import document, head, left_out
from tpuprof.tui.report.markdown import escaped, joined, not_shown, notes_block, table
from tpuprof.tui.report.page import CommandReport, TextLook
from tpuprof.tui.report.shared import holders
from tpuprof.tui.report.shared.buffers import BufferRows
from tpuprof.tui.report.text import heading, page_text

_ADVICE = 3
_MOST_WHOLE = 3
"""Errors that Markdown shows whole. Of more it shows a line each, and whole the one that is furthest over its limit."""


def read(log: OomLog, path: str, name: str, arrays: LiveArrays | None = None) -> OomErrors:
    """What the errors of a log come to; `path` is ``-`` for standard input, `name` what people call the log."""
    return OomErrors(log, [triage_of_report(report, name) for report in log.reports], path, arrays)


def json(errors: OomErrors, _: TextLook, limit: int) -> str:
    """The errors; at most `limit` buffers each, 0 for all."""
    records = table_records(ERRORS, errors, range(len(errors)))
    counts = {"reports[].buffers": (0, 0)}
    for record, triage in zip(records, errors.triages, strict=True):
        buffers = Section(BUFFERS, BufferRows(triage.need.buffers, None), limit=limit)
        record.update(Section(ADVICE, triage.advice).json().values)
        record.update(buffers.json().values)
        every, here = counts["reports[].buffers"]
        counts["reports[].buffers"] = every + buffers.whole, here + len(buffers.shown)
    why = reasons(ERRORS.fields, "reports[]", {})
    why |= reasons(ADVICE.fields, "reports[].advice[]", {})
    why |= reasons(BUFFERS.fields, "reports[].buffers[]", {})
    for report in errors.log.reports:
        for key, reason in report.unknown.items():
            why[f"reports[].{'outputs_bytes' if key == 'output_bytes' else key}"] = reason
    name = errors.path.rstrip("/").rpartition("/")[2] or errors.path
    body = {**metric_values(LOG, errors), ERRORS.key: records}
    if errors.arrays is not None:
        held = holders_of(errors.arrays, _device(errors))
        groups = Section(holders.HOLDERS, held.groups, limit=limit).json()
        body["live_arrays"] = {**metric_values(holders.METRICS, held), **groups.values}
        counts |= {f"live_arrays.{key}": rows for key, rows in groups.rows.items()}
        why |= {f"live_arrays.{key}": reason for key, reason in groups.reasons.items()}
    values = head("oom", Run(name, errors.path, (), ()), (), errors.log.notes)
    return document({**values, **left_out(counts, "--limit 0 has all")}, body, why)


def _device(errors: OomErrors) -> str | None:
    return next((triage.device for triage in errors.triages if triage.device), None)


def markdown(errors: OomErrors, _: TextLook, limit: int) -> str:
    """Of each error a dozen lines for a chat: its figures, what to do first, and its largest buffers."""
    numbered = list(enumerate(errors.triages, 1))
    lines: list[str] = []
    if len(errors) > _MOST_WHOLE:
        numbered.sort(key=lambda item: -(item[1].over_bytes or 0))
        lines += [f"### {len(errors)} different errors, the furthest over its limit first", ""]
        lines += [f"- error {number}: {_short(triage)}" for number, triage in numbered]
        lines += ["", "The first of these; `--format text` shows each of them whole.", ""]
        numbered = numbered[:1]
    for number, triage in numbered:
        lines += _markdown_error(triage, number, len(errors), limit)
    if errors.arrays is not None:
        held = holders_of(errors.arrays, _device(errors))
        lines += [f"### Who holds it: {escaped(held.page.name)}", "", f"{escaped(holders.totals(held))}.", ""]
        rows = holders.markdown_rows(held, limit)
        lines += table(("size", "of it", "buffers", "where it was made"), "rrrl", rows)
        lines += [*not_shown(len(held.groups) - len(rows)), ""]
    return joined([*lines, *notes_block(errors.log.notes)])


def _verdict(triage: Triage) -> str:
    """How much is needed, of how much, and by how much that is over."""
    pieces = plain(verdict_line(triage, None, Pen(2 * SUMMARY_WIDTH, ASCII))).split("   ")
    return escaped("; ".join(piece.strip() for piece in pieces if piece.strip()))


def _what(triage: Triage) -> str:
    """The program, and when its memory ran out."""
    return f"`{_code(triage.title)}`, {KIND_WORDS[triage.kind]}" if triage.title else KIND_WORDS[triage.kind]


def _times(triage: Triage) -> str:
    return f", {triage.count:,} times in the log" if triage.count > 1 else ""


def _short(triage: Triage) -> str:
    """An error on one line."""
    return f"{_verdict(triage)} ({_what(triage)}, `{_code(triage.where)}`{_times(triage)})"


def _markdown_error(triage: Triage, number: int, total: int, limit: int) -> list[str]:
    place = f" ({number} of {total})" if total > 1 else ""
    lines = [f"### Out of memory{place}: {_what(triage)}", "", f"**{_verdict(triage)}**"]
    lines.append(f"`{_code(triage.where)}`{_times(triage)}")
    if triage.wanted_bytes is None and triage.sentence:
        lines.append(escaped(triage.sentence))
    if len(triage.parts) > 1 or triage.padding_bytes:
        parts = [f"{part.name} {limit_size(part.size_bytes)}" for part in triage.parts]
        parts += [f"of that padding {limit_size(triage.padding_bytes)}"] if triage.padding_bytes else []
        lines.append(", ".join(parts))
    lines += [f"Plan: {escaped(triage.plan.sentence)}"] if triage.plan is not None else []
    lines += [f"Note: {escaped(note)}" for note in triage.notes]
    lines.append("")
    for rank, advice in enumerate(triage.advice[:_ADVICE], 1):
        saving = f"**-{binary_size(advice.saving_bytes)}** (estimate): " if advice.saving_bytes else ""
        source = f" (`{_code(advice.source)}`)" if advice.source else ""
        lines.append(f"{rank}. {saving}{escaped(advice.sentence)}{source}: {escaped(advice.how)}")
    rows = rows_of(triage, None, OomView())
    if rows:
        shown = rows[: limit or None]
        drawn = table_lines(triage, shown, range(len(shown)), Pen(SUMMARY_WIDTH, ASCII))
        lines += ["", "```", *(plain(line).rstrip() for line in drawn)]
        lines += [f" and {len(rows) - len(shown)} more"] if len(rows) > len(shown) else []
        lines.append("```")
        is_known = any(buffer.source for buffer in triage.need.buffers)
        lines += [] if is_known else ["Nothing here names a line of source."]
    return [*lines, ""]


def _code(text: str | None) -> str:
    return escaped(text or "").replace("\\", "").replace("`", "'")


def text(errors: OomErrors, look: TextLook, limit: int) -> str:
    """Every error, drawn as on the screen, under a line that says where it stands."""
    return page_text(lambda pen: _text_lines(errors, limit, pen), look)


def _text_lines(errors: OomErrors, limit: int, pen: Pen) -> list[Line]:
    lines: list[Line] = []
    for index, triage in enumerate(errors.triages):
        words = [f"{triage.where}: out of memory", KIND_WORDS[triage.kind], triage.title, triage.device]
        times = f"{triage.count:,} times" if triage.count > 1 else ""
        number = f"{index + 1} of {len(errors)}" if len(errors) > 1 else ""
        place = ", ".join(filter(None, (times, number))) or "once"
        lines += [pen.fit([])] if index else []
        lines.append(heading(", ".join(filter(None, words)), place, pen))
        rows = rows_of(triage, None, OomView())
        lines += compose(triage, None, OomView(), pen, None, rows[:limit] if limit else rows).lines
        if limit and len(rows) > limit:
            lines.append(pen.fit([(f"   and {len(rows) - limit} more", "dim")]))
    if errors.arrays is not None:
        held = holders_of(errors.arrays, _device(errors))
        remark = holders_remark(errors.triages)
        lines += [pen.fit([]), *holders.lines(held, remark, pen)]
    return lines + pen.wrap_all(errors.log.notes, "warn", [(" ! ", "warn")])


def sections(errors: OomErrors) -> tuple[Section[Any], ...]:
    """The errors, and the advice and the buffers of the first one."""
    first = errors.triages[0]
    buffers = BufferRows(first.need.buffers, None)
    return Section(ERRORS, errors), Section(ADVICE, first.advice), Section(BUFFERS, buffers)


_FORMATS = {"text": text, "json": json, "md": markdown}
REPORT = CommandReport(read, _FORMATS, (ERRORS, ADVICE, BUFFERS), LOG, sections=sections)
