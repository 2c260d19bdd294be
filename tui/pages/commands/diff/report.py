"""The report on a comparison, in every format.

JSON has the schema ``tpuprof.diff/1``; beside the fields and figures it holds `before` and `after`, the two runs, and
where it is asked for `regression`: `{allowed_fraction, outcome, sentence}`. The owners add up to the mean step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.session.diff.model import Diff
from tpuprof.parsers.session.diff.regression import Regression
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.diff import changes, drawing, fields
from tpuprof.tui.pages.commands.diff.changes import ChangeRow, ViewName
from tpuprof.tui.pages.commands.diff.verdict import headline_mark, verdict
from tpuprof.tui.pages.commands.diff.words import MARKS, per_unit
from tpuprof.tui.report.choice import SCHEMA, report_of
from tpuprof.tui.report.csv import table as csv_table
from tpuprof.tui.report.declared import Metrics, Section, check_writers, values_of
from tpuprof.tui.report.fields import columns, first, markdown_rows, metric_reasons
from tpuprof.tui.report.json import document, left_out
from tpuprof.tui.report.markdown import comparison_head, escaped, fields_table, joined, not_shown, table
from tpuprof.tui.report.page import Check, CommandReport, Head, ReportRequest, TableOptions, TextLook, step_check
from tpuprof.tui.report.text import titled_text

_TABLES: tuple[ViewName, ...] = ("time", "categories", "ops", "phases", "memory", "figures", "setup")
_TITLES: dict[ViewName, str] = {"categories": "Categories", "ops": "Ops"}
"""Tables of what changed only, under a title of their own."""


@dataclass(frozen=True, slots=True)
class JudgedDiff:
    """A comparison, and what is said of a regression where that is asked for."""

    diff: Diff
    regression: Regression | None = None


# --- JSON and CSV


def json(content: JudgedDiff, _: TextLook, limit: int) -> str:
    """All of the comparison; at most `limit` ops and groups of them, 0 for all."""
    diff, regression = content.diff, content.regression
    limits = {fields.OPS.key: limit, fields.GROUPS.key: limit}
    tables = [Section(rows, getattr(diff, rows.key), limit=limits.get(rows.key, 0)) for rows in fields.TABLES]
    head, held = fields.head("diff", diff), values_of((Metrics(fields.METRICS, diff), *tables))
    body: dict[str, Any] = {**held.values, **({"steps": None} if diff.steps is None else {})}
    counts = dict(held.rows)
    for phase in body["phases"]:
        every, here = counts.get("phases[].ops", (0, 0))
        counts["phases[].ops"] = every + len(phase["ops"]), here + len(phase["ops"][: limit or None])
        phase["ops"] = phase["ops"][: limit or None]
    if regression is not None:
        outcome, sentence = regression.outcome, regression.sentence
        body["regression"] = {"allowed_fraction": regression.allowed, "outcome": outcome, "sentence": sentence}
    values = {**head.values, **left_out(counts, "--limit 0 has all")}
    return document(values, body, {**diff.unknown, **head.reasons, **_reasons(diff)})


def _reasons(diff: Diff) -> dict[str, str]:
    """Why a figure or something in a row is null, by dotted key."""
    why = metric_reasons(fields.METRICS)
    for rows in fields.TABLES:
        why |= {f"{rows.key}[].{key}": reason for key, reason in metric_reasons(rows.fields).items()}
    no_ops = diff.unknown.get("ops", fields.ONE_SIDED)
    problem = next((module.problem for module in diff.modules if module.problem), fields.ONE_SIDED)
    for key, reason in why.items():
        if key.startswith("modules[]"):
            why[key] = problem
        elif reason == fields.ONE_SIDED and key.endswith("_ms"):
            why[key] = no_ops
    for name in ("before", "after"):
        of_side = {why for key, why in diff.unknown.items() if re.fullmatch(rf"figures\..*\.{name}", key)}
        if of_side:
            why[f"figures[].{name}_percent"] = "; ".join(sorted(of_side))
    return why


def csv(content: JudgedDiff, _: TextLook, limit: int) -> str:
    """A line an op, the largest change first; at most `limit`, 0 for all."""
    shown_columns = columns(fields.OPS, content.diff.ops, first(len(content.diff.ops), limit), fields.OPS.csv)
    shown_columns["hlo_changed"] = ["yes" if is_changed else "no" for is_changed in shown_columns["hlo_changed"]]
    return csv_table(tuple(shown_columns), zip(*shown_columns.values(), strict=True))


# --- Markdown


def markdown(content: JudgedDiff, _: TextLook, limit: int) -> str:
    """The verdict, a table of steps, what changed; at most `limit` ops, 0 for all."""
    diff, regression = content.diff, content.regression
    title = "Different programs" if diff.different else MARKS[headline_mark(diff)].headline
    judged = "" if regression is None else regression.sentence
    lines = comparison_head(title, diff.before.name, diff.after.name, verdict(diff), diff.warnings, judged)
    for name, side in (("A", diff.before), ("B", diff.after)):
        what = [side.device_type or "no device", counted(side.core_count, "core"), counted(len(side.hosts), "host")]
        what.append(counted(len(side.step_ps), "step") + (f", {side.odd_count} odd" if side.odd_count else ""))
        simulated = ", **times are simulated**" if side.simulated else ""
        lines.append(f"- {name}: {escaped(side.name)} ({escaped(', '.join(what))}){simulated}")
    lines += ["", *_steps(diff)]
    where = f"Where time goes, {per_unit(diff)} on the mean core" if diff.steps is None else "Where the mean step goes"
    lines += _section(where, changes.entries(diff, "time"))
    ops = drawing.changed(diff, "ops")
    together = ", clones as one row" if changes.has_clones(diff) else ""
    lines += _section(f"Ops that changed{together}", ops, limit)
    if len(diff.phases) > 1:
        lines += _section("One run of each program", changes.entries(diff, "phases"))
        for phase in diff.phases:
            of_phase = drawing.changed(phase.ops, "ops")
            lines += _section(f"Ops that changed, {per_unit(phase.ops)}", of_phase, limit)
    lines += _section("Versions and flags that differ", drawing.changed(diff, "setup"))
    memory = [row for row in changes.entries(diff, "memory") if {row.change.before, row.change.after} != {None}]
    lines += _section("HBM of compiled modules", memory)
    lines += _section("Figures", changes.entries(diff, "figures"))
    unknown = [f"{key}: {why}" for key, why in diff.unknown.items()]
    unknown += [f"HBM of {module.name}: {module.problem}" for module in diff.modules if module.problem]
    lines += ["", "Unknown:", ""] if unknown else []
    return joined([*lines, *(f"- {escaped(sentence)}" for sentence in unknown)])


def _steps(diff: Diff) -> list[str]:
    steps = changes.step_changes(diff)
    if not steps:
        return []
    (typical, *metrics), *others = markdown_rows(fields.CHANGES, steps, range(len(steps)), fields.STEP_COLUMNS)
    cells = [[f"{typical} step", *metrics], *others]
    return table(("steps", "A", "B", "change", "", "noise", ""), "lrrrrrl", cells)


def _section(title: str, rows: Sequence[ChangeRow], limit: int = 0) -> list[str]:
    """A table of at most `limit` rows (0 for all) under its title; nothing for no rows."""
    cells = markdown_rows(fields.CHANGES, rows, first(len(rows), limit))
    lines = ["", f"**{escaped(title)}**", "", *fields_table(fields.CHANGES, cells), *not_shown(len(rows) - len(cells))]
    return lines if rows else []


# --- text


def text(content: JudgedDiff, look: TextLook, limit: int) -> str:
    """The whole comparison; at most `limit` of the ops that changed, 0 for all."""
    diff = content.diff

    def lines(pen: Pen) -> list[Line]:
        lines = drawing.verdict_lines(diff, pen)
        lines += drawing.sides_lines(diff, pen) + pen.notes(diff.warnings, ())
        if diff.steps is not None:
            lines += [pen.rule("Steps"), *drawing.metric_lines(diff, pen)]
            lines += drawing.histogram_lines(diff, pen)
        for name in _TABLES:
            lines += _table(diff, name, pen, limit)
            for phase in diff.phases if name == "phases" and len(diff.phases) > 1 else ():
                lines += _table(phase.ops, "ops", pen, limit)
        notes = [(letter, note) for letter, side in (("A", diff.before), ("B", diff.after)) for note in side.warnings]
        if notes or diff.unknown:
            lines.append(pen.rule("Notes, and what the profiles cannot show"))
            for letter, note in notes:
                lines += pen.wrap(note, "text", [(f" {letter} ", "warn")])
            for key, why in diff.unknown.items():
                lines += pen.wrap(f"{key}: {why}", "dim", [(" ? ", "dim")])
        return lines

    title = f"{diff.before.name} {look.glyphs.arrow} {diff.after.name}"
    return titled_text(title, "B compared with A", lines, look)


def _table(diff: Diff, name: ViewName, pen: Pen, limit: int) -> list[Line]:
    """A table under its heading: of ops and categories only what changed; none at all for an empty one."""
    every = changes.entries(diff, name)
    if not every:
        return []
    rows = drawing.changed(diff, name)
    kept = rows[:limit] if limit and name == "ops" else rows
    words = [f"{len(kept):,} of {len(rows):,} changed"] if len(kept) < len(rows) else []
    same = "the same" if name == "setup" else "the same within the noise"
    words += [f"{len(every) - len(rows):,} {same}"] if len(rows) < len(every) else []
    words += ["clones are one row"] if name == "ops" and changes.has_clones(diff) else []
    of_phase = f"Ops, {per_unit(diff)}" if diff.basis == "module run" and name == "ops" else ""
    title = pen.rule(of_phase or _TITLES.get(name) or drawing.table_title(diff, name), ", ".join(words))
    if not kept:
        return [title, pen.fit([(" none changed", "dim")])]
    return [title, *drawing.table_lines(kept, range(len(kept)), pen), *drawing.remark_lines(diff, name, pen)]


def sections(content: JudgedDiff) -> list[Section[Any]]:
    """Its tables, that of the ops, which CSV has, first."""
    tables = sorted(fields.TABLES, key=lambda table: table is not fields.OPS)
    return [Section(table, getattr(content.diff, table.key)) for table in tables]


def choose(content: JudgedDiff, request: ReportRequest, choice: TableOptions) -> str:
    """The ops that a call chooses, each clone as a row, with the columns that it chooses."""
    diff = content.diff
    title = f"{diff.before.name} {request.look.glyphs.arrow} {diff.after.name}"
    both = fields.head(SCHEMA, diff)
    head = Head(title, request.run, diff.after.hosts, diff.warnings, values=(both.values, both.reasons))
    return report_of("diff", head, Section(fields.OPS, diff.ops), choice, request, lambda: fields.NO_OPS)


def checks(content: JudgedDiff, _: TextLook, __: int) -> list[Check]:
    """The step, and what changed most of it."""
    return [step_check(content.regression, verdict(content.diff))]


_FORMATS = {"json": json, "csv": csv, "md": markdown, "text": text, **check_writers("diff", checks)}
REPORT = CommandReport(
    JudgedDiff, _FORMATS, fields.TABLES, (*fields.SIDES, *fields.METRICS), sections=sections, choose=choose
)
