"""The input pipeline page as GitHub-flavoured Markdown."""

from __future__ import annotations

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.tui.draw.format import UNKNOWN, count, duration, percent
from tpuprof.tui.report.markdown import escaped, joined, table


def input_markdown(page: InputPipelinePage, run: Run, limit: int = 0) -> str:
    """Verdict and what to do, waiting, the host's time by part, the ops (at most `limit`, 0 for all), the unknown."""
    lines = [f"# Input pipeline of {escaped(run.name)}", "", f"- hosts: {escaped(', '.join(page.hosts))}"]
    lines += [f"- warning: {escaped(warning)}" for warning in page.warnings]
    lines += ["", escaped(page.bottleneck.statement), ""]
    lines += [f"{number}. {escaped(step)}" for number, step in enumerate(page.next_steps, 1)]
    lines += ["", "## Waiting for input", "", *table(("figure", "value"), "lr", _figures(page))]
    if page.breakdown is not None:
        parts = page.breakdown
        rows = (
            ("enqueue", duration(parts.enqueue_ps)),
            ("on-demand file read", duration(parts.demanded_file_read_ps)),
            ("advanced file read", duration(parts.advanced_file_read_ps)),
            ("preprocessing", duration(parts.preprocessing_ps)),
            ("unclassified", duration(parts.unclassified_ps)),
        )
        lines += ["", "## Host time", "", *table(("part", "time over all threads"), "lr", rows)]
    if page.ops:
        lines += ["", "## Input ops", "", *_ops(page, limit)]
    if page.unknown:
        lines += ["", "## Unknown", ""]
        lines += [f"- {escaped(key)}: {escaped(reason)}" for key, reason in page.unknown.items()]
    return joined(lines)


def _figures(page: InputPipelinePage) -> list[tuple[str, str]]:
    time, found, worst = page.step_time, page.infeed_percent, page.worst_step
    rows = [("step time, median", duration(None if time is None else time.median_ps))]
    if found is None:
        return [*rows, ("share of step time", UNKNOWN)]
    rows += [
        ("share of step time, average", f"{percent(found.average)} ± {percent(found.standard_deviation)}"),
        ("share of step time, range", f"{percent(found.minimum)} – {percent(found.maximum)}"),
    ]
    if worst is not None:
        step = page.steps[worst]
        rows.append(("worst step", f"{step.name}: {percent(step.percent_maximum)} on {step.core}"))
    return rows


def _ops(page: InputPipelinePage, limit: int) -> list[str]:
    head = ("op", "category", "count", "total", "total %", "self", "self %")
    rows = (
        (
            op.name,
            op.category,
            count(op.occurrences),
            duration(op.total_ps),
            percent(op.total_percent),
            duration(op.self_ps),
            percent(op.self_percent),
        )
        for op in page.ops[: limit or None]
    )
    return table(head, "llrrrrr", rows)
