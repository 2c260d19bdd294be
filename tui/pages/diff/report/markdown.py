"""A comparison as GitHub-flavoured Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.diff.model import Diff
from tpuprof.parsers.diff.regression import Regression
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.pages.diff.draw.table import Entry, ViewName, entries, shown
from tpuprof.tui.pages.diff.draw.verdict import headline_mark, verdict
from tpuprof.tui.pages.diff.draw.words import MARK_WORDS, figure, noise_words, per_unit, relative, side_figure, signed
from tpuprof.tui.report.markdown import escaped, joined, table

MOST_OPS = 20
"""Ops in a comment where nothing else is asked for."""

_TITLES = {"same": "Same", "more": "Slower", "less": "Faster", "unknown": "Can't tell", "new": "New", "gone": "Gone"}


def diff_markdown(diff: Diff, limit: int = 0, regression: Regression | None = None) -> str:
    """The verdict, a table of steps, what changed; at most `limit` ops, 20 for 0."""
    title = "Different programs" if diff.different else _TITLES[headline_mark(diff)]
    lines = [f"### {title}: {escaped(diff.before.name)} → {escaped(diff.after.name)}", ""]
    lines += [escaped(verdict(diff)), ""]
    if regression is not None and regression.sentence:
        lines += [f"**{escaped(regression.sentence)}**", ""]
    lines += [f"- warning: {escaped(sentence)}" for sentence in diff.warnings]
    for name, side in (("A", diff.before), ("B", diff.after)):
        what = [side.device_type or "no device", counted(side.core_count, "core"), counted(len(side.hosts), "host")]
        what.append(counted(len(side.step_ps), "step") + (f", {side.odd_count} odd" if side.odd_count else ""))
        simulated = ", **times are simulated**" if side.simulated else ""
        lines.append(f"- {name}: {escaped(side.name)} ({escaped(', '.join(what))}){simulated}")
    lines += ["", *_steps(diff)]
    lines += _section(f"Where time goes, {per_unit(diff)} on the mean core", _rows(diff, "time", False))
    ops = _rows(diff, "ops", True)
    kept = ops[: limit or MOST_OPS]
    title = f"Ops that changed ({len(kept)} of {len(ops)})" if len(kept) < len(ops) else "Ops that changed"
    lines += _section(title, kept)
    memory = [row for row in _rows(diff, "memory", False) if {row.change.before, row.change.after} != {None}]
    lines += _section("HBM of compiled modules", memory)
    lines += _section("Figures", _rows(diff, "figures", False))
    unknown = [f"{key}: {why}" for key, why in diff.unknown.items()]
    unknown += [f"HBM of {module.name}: {module.problem}" for module in diff.modules if module.problem]
    lines += ["", "Unknown:", ""] if unknown else []
    lines += [f"- {escaped(sentence)}" for sentence in unknown]
    return joined(lines)


def _rows(diff: Diff, view: ViewName, hides_same: bool) -> tuple[Entry, ...]:
    return shown(diff, entries(diff, view), hides_same=hides_same)


def _steps(diff: Diff) -> list[str]:
    """A table of the step times; nothing without steps."""
    steps = diff.steps
    if steps is None:
        return []
    figures = {
        "typical step": steps.typical,
        "median": steps.median,
        "mean": steps.mean,
        "shortest": steps.minimum,
        "longest": steps.maximum,
    }
    rows = (
        (
            name,
            figure(change.before, "time", False),
            figure(change.after, "time", False),
            signed(change.delta, "time", False),
            relative(change),
            "" if change.noise is None else noise_words(change, BLOCK),
            "" if change.noise is None else MARK_WORDS[change.mark],
        )
        for name, change in figures.items()
    )
    return table(("steps", "A", "B", "change", "", "noise", ""), "lrrrrrl", rows)


def _section(title: str, rows: Sequence[Entry]) -> list[str]:
    """A table under its title; nothing for no rows."""
    if not rows:
        return []
    cells = (
        (
            "" if row.kind == "percent" else MARK_WORDS[row.change.mark],
            signed(row.change.delta, row.kind, False),
            "" if row.kind == "percent" else relative(row.change),
            _side(row, row.change.before),
            _side(row, row.change.after),
            row.name + (f" ({row.note})" if row.note and row.op is not None else ""),
        )
        for row in rows
    )
    return ["", f"**{escaped(title)}**", "", *table(("", "change", "", "A", "B", "what"), "lrrrrl", cells)]


def _side(row: Entry, value: float | None) -> str:
    return side_figure(row.change, value, row.kind, False, "")
