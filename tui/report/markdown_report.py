"""Pages as GitHub-flavoured Markdown, to paste into an issue; nothing in a profile's strings is taken as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.parsers.pages.overview.model import Environment, Overview
from tpuprof.parsers.steps.model import StepTime
from tpuprof.tui.draw.format import count, duration, flop_rate, percent, size
from tpuprof.tui.pages.overview.findings import findings_heading, worth
from tpuprof.tui.report.values import utc

if TYPE_CHECKING:
    from tpuprof.parsers.pages.findings.finding import Finding
    from tpuprof.parsers.session.run_facts import RunFacts

# An underscore inside a word is no markup, and names of ops are full of them.
_MARKUP = re.compile(r"[\\`|*<>\[\]~&#$]|(?<![^\W_])_|_(?![^\W_])")

_HEADLINES = (
    ("device duty cycle", "device_duty_cycle_percent"),
    ("device idle", "device_idle_percent"),
    ("host idle", "host_idle_percent"),
    ("FLOPS utilization, of peak", "flops_utilization_percent"),
    ("memory bandwidth utilization, of peak", "memory_bandwidth_utilization_percent"),
    ("roofline efficiency", "roofline_efficiency_percent"),
    ("MXU utilization, counter", "mxu_utilization_percent"),
    ("HBM utilization, counter", "hbm_utilization_percent"),
    ("ops on the host", "host_op_percent"),
    ("ops on the device", "device_op_percent"),
    ("run eagerly, of host op time", "eager_host_percent"),
    ("run eagerly, of device op time", "eager_device_percent"),
    ("16-bit operands, of matrix op time", "bits16_percent"),
    ("32-bit operands, of matrix op time", "bits32_percent"),
)


def overview_markdown(page: Overview, run: Run) -> str:
    """Headline figures, step time, bottleneck, device time by class, top ops, and what is unknown with the reasons."""
    lines = [f"# Overview of {escaped(run.name)}", ""]
    lines += [f"- hosts: {escaped(', '.join(page.hosts))}", f"- ran on: {escaped(_machine(page.environment))}"]
    lines += ["- **the times of this profile are simulated, not measured**"] if page.environment.simulated else []
    lines += [f"- warning: {escaped(warning)}" for warning in page.warnings]
    lines += ["", "## Figures", "", *_figures(page)]
    lines += ["", "## Bottleneck", "", escaped(page.bottleneck.statement), ""]
    lines += [f"{number}. {escaped(step)}" for number, step in enumerate(page.bottleneck.next_steps, 1)]
    if page.findings:
        lines += ["", "## Why is it slow?", "", *_findings(page.findings)]
    if page.shares:
        rows = ((share.op_class, percent(share.fraction * 100), duration(share.time_ps)) for share in page.shares)
        lines += ["", "## Device time", "", *table(("class", "share", "time over all cores"), "lrr", rows)]
    if page.top_ops:
        lines += ["", "## Top ops", "", *_top_ops(page)]
    if page.unknown:
        lines += ["", "## Unknown", ""]
        lines += [f"- {escaped(key)}: {escaped(reason)}" for key, reason in page.unknown.items()]
    return joined(lines)


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


def _machine(environment: Environment) -> str:
    parts = [environment.device_type or "an unknown device"]
    parts.append(counted(environment.device_core_count, "core"))
    parts.append(counted(environment.host_count, "host"))
    if environment.is_training is not None:
        parts.append("training" if environment.is_training else "inference")
    if environment.profile_duration_ps is not None:
        parts.append(f"{duration(environment.profile_duration_ps)} captured")
    return ", ".join(parts)


def _figures(page: Overview) -> list[str]:
    rows = [*_step_rows(page.performance.step_time)]
    rows += [(label, percent(getattr(page.performance, name))) for label, name in _HEADLINES]
    parts = page.bottleneck
    rows += [
        ("waiting for input, of step time", percent(parts.input_percent)),
        ("output, of step time", percent(parts.output_percent)),
        ("idle, of step time", percent(parts.idle_percent)),
    ]
    return list(table(("figure", "value"), "lr", rows))


def _findings(findings: Sequence[Finding]) -> list[str]:
    """A table of the findings, and below what each rests on."""
    heading = findings_heading(findings)
    rows = (
        (str(rank), found.title, worth(found, False), percent(100 * found.worth_fraction), found.place.tab)
        for rank, found in enumerate(findings, 1)
    )
    lines = [*table(("", "finding", heading, "share", "where"), "rlrrl", rows), ""]
    for rank, found in enumerate(findings, 1):
        lines.append(f"{rank}. {' '.join(map(escaped, found.evidence))} {escaped(found.basis)}")
    return lines


def _step_rows(time: StepTime | None) -> list[tuple[str, str]]:
    if time is None:
        return [("step time", duration(None))]
    rows = [
        ("step time, median", duration(time.median_ps)),
        ("step time, average", f"{duration(time.average_ps)} ± {duration(time.standard_deviation_ps)}"),
        ("step time, range", f"{duration(time.minimum_ps)} – {duration(time.maximum_ps)}"),
        ("steps", count(time.count)),
    ]
    return [*rows, ("step time is inferred", time.note)] if time.source == "modules" else rows


def _top_ops(page: Overview) -> list[str]:
    head = ("", "op", "category", "class", "self", "cumulative", "self time", "count", "FLOP/s")
    rows = (
        (
            str(rank),
            op.name,
            op.hlo_category or op.category,
            op.op_class,
            percent(op.self_time_percent),
            percent(op.cumulative_percent),
            duration(op.self_time_ps),
            count(op.occurrences),
            flop_rate(op.gflops_per_second),
        )
        for rank, op in enumerate(page.top_ops, 1)
    )
    return table(head, "rlllrrrrr", rows)


def table(head: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; `sides` has an `l` or an `r` a column."""
    ruler = ["---:" if side == "r" else "---" for side in sides]
    return [_row(head), _row(ruler), *(_row([escaped(cell) for cell in row]) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Text that reads as itself: on one line, no character of it markup."""
    return _MARKUP.sub(r"\\\g<0>", printable(text))


def joined(lines: Sequence[str]) -> str:
    """The document without empty lines next to each other, and with a newline at its end."""
    kept = [line for at, line in enumerate(lines) if line or (at and lines[at - 1])]
    return "\n".join(kept).rstrip("\n") + "\n"
