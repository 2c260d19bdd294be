"""The overview as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.overview.model import Environment, Overview
from tpuprof.parsers.steps.model import StepTime
from tpuprof.tui.draw.format import count, duration, flop_rate, percent
from tpuprof.tui.pages.overview.findings import findings_heading, worth
from tpuprof.tui.report.markdown import escaped, joined, table

if TYPE_CHECKING:
    from tpuprof.parsers.pages.findings.finding import Finding


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
