"""The overview as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.overview.model import Bottleneck, Environment, Overview, Performance, Step, TopOp
from tpuprof.parsers.steps.model import GenericBreakdown, SparseCoreTime, StepBreakdown
from tpuprof.tui.report.json import document, head, step_time_record
from tpuprof.tui.report.units import milliseconds

if TYPE_CHECKING:
    from tpuprof.parsers.pages.findings.finding import Finding
    from tpuprof.parsers.pages.inference import InferencePage


_ELEMENT_REASONS = {
    "steps[].breakdown_ms": "these steps are not marked in the profile, so their time cannot be taken apart",
    "steps[].sparse_core_ms": "the profile has no SparseCores with steps",
    "steps[].breakdown_ms.host_compute": "what the host did is part of all other time",
    "steps[].breakdown_ms.kernel_launch": "what the host did is part of all other time",
    "steps[].breakdown_ms.compile": "what the host did is part of all other time",
    "inference": "a training program, or one without requests and runs of modules",
    "inference.percentiles[].host_ms": "no request events tell what the host did for a session",
    "inference.percentiles[].device_ms": "no run of a module is linked to a session",
    "inference.percentiles[].communication_ms": "no request events tell which transfers belong to a session",
    "top_ops[].gflops_per_second": "the profile has no FLOPs for these ops",
    "findings[].target": "the finding is about the tab as a whole",
    "top_ops[].hlo_category": "the profile has no HLO category for these ops",
}
"""In lists one reason stands for every element that is null: `[]` is any index."""


def overview_json(page: Overview, run: Run) -> str:
    """The overview as JSON text, with a newline at the end; `run.hosts` are the hosts that the figures cover."""
    body = {
        "environment": _environment(page.environment),
        "performance": _performance(page.performance),
        "shares": [
            {"class": share.op_class, "time_ps": share.time_ps, "fraction": share.fraction} for share in page.shares
        ],
        "steps": [_step(step) for step in page.steps],
        "findings": [_finding(finding) for finding in page.findings],
        "top_ops": [_top_op(op) for op in page.top_ops],
        "bottleneck": _bottleneck(page.bottleneck),
        "inference": _inference(page.inference),
        "op_count": page.op_count,
        "op_event_count": page.op_event_count,
    }
    return document(head("overview", run, page.hosts, page.warnings), body, {**_ELEMENT_REASONS, **page.unknown})


def _environment(environment: Environment) -> dict[str, object]:
    return {
        "host_count": environment.host_count,
        "task_count": environment.task_count,
        "device_type": environment.device_type,
        "device_core_count": environment.device_core_count,
        "is_training": environment.is_training,
        "profile_duration_ms": milliseconds(environment.profile_duration_ps),
        "simulated": environment.simulated,
    }


def _performance(performance: Performance) -> dict[str, object]:
    return {
        "step_time_ms": step_time_record(performance.step_time),
        "device_duty_cycle_percent": performance.device_duty_cycle_percent,
        "device_idle_percent": performance.device_idle_percent,
        "host_idle_percent": performance.host_idle_percent,
        "mxu_utilization_percent": performance.mxu_utilization_percent,
        "hbm_utilization_percent": performance.hbm_utilization_percent,
        "flops_utilization_percent": performance.flops_utilization_percent,
        "roofline_efficiency_percent": performance.roofline_efficiency_percent,
        "memory_bandwidth_utilization_percent": performance.memory_bandwidth_utilization_percent,
        "op_placement": {
            "host_percent": performance.host_op_percent,
            "device_percent": performance.device_op_percent,
        },
        "eager_percent": {"host": performance.eager_host_percent, "device": performance.eager_device_percent},
        "compute_precision": {
            "bits16_percent": performance.bits16_percent,
            "bits32_percent": performance.bits32_percent,
        },
    }


def _step(step: Step) -> dict[str, object]:
    return {
        "name": step.name,
        "group_id": step.group_id,
        "start_ps": step.start_ps,
        "duration_ms": milliseconds(step.duration_ps),
        "breakdown_ms": _breakdown(step.breakdown),
        "sparse_core_ms": _sparse_core(step.sparse_core),
    }


def _sparse_core(time: SparseCoreTime | None) -> dict[str, object] | None:
    if time is None:
        return None
    return {
        "step": milliseconds(time.step_ps),
        "compute": milliseconds(time.compute_ps),
        "idle": milliseconds(time.idle_ps),
    }


def _breakdown(parts: StepBreakdown | GenericBreakdown | None) -> dict[str, object] | None:
    if parts is None:
        return None
    if isinstance(parts, GenericBreakdown):
        host: dict[str, object] = dict.fromkeys(("host_compute", "kernel_launch", "compile"))
        return {
            "device_compute": milliseconds(parts.device_compute_ps),
            "device_to_device": milliseconds(parts.device_to_device_ps),
            "device_collectives": milliseconds(parts.device_collectives_ps),
            "input": milliseconds(parts.input_ps),
            "output": milliseconds(parts.output_ps),
            **host,
            "all_other": milliseconds(parts.all_other_ps),
        }
    return {
        "compute": milliseconds(parts.compute_ps),
        "active": milliseconds(parts.active_ps),
        "infeed": milliseconds(parts.infeed_ps),
        "outfeed": milliseconds(parts.outfeed_ps),
        "idle": milliseconds(parts.idle_ps),
        "host_transfer": milliseconds(parts.host_transfer_ps),
        "all_reduce_compute": milliseconds(parts.all_reduce_compute_ps),
        "all_reduce_sync": milliseconds(parts.all_reduce_sync_ps),
        "sparse_core": milliseconds(parts.sparse_core_ps),
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "kind": finding.kind,
        "title": finding.title,
        "worth_ms": milliseconds(finding.worth_ps),
        "per": finding.per,
        "worth_fraction": finding.worth_fraction,
        "is_estimate": finding.is_estimate,
        "basis": finding.basis,
        "evidence": list(finding.evidence),
        "tab": finding.place.tab,
        "target": finding.place.target,
    }


def _top_op(op: TopOp) -> dict[str, object]:
    return {
        "name": op.name,
        "category": op.category,
        "class": op.op_class,
        "hlo_category": op.hlo_category,
        "self_time_percent": op.self_time_percent,
        "cumulative_percent": op.cumulative_percent,
        "self_time_ps": op.self_time_ps,
        "occurrences": op.occurrences,
        "gflops_per_second": op.gflops_per_second,
    }


def _inference(page: InferencePage | None) -> dict[str, object] | None:
    if page is None:
        return None
    rows = [
        {
            "percentile": row.percentile,
            "total_ms": milliseconds(row.latency.total_ps),
            "host_ms": milliseconds(row.latency.host_ps),
            "device_ms": milliseconds(row.latency.device_ps),
            "communication_ms": milliseconds(row.latency.communication_ps),
        }
        for row in page.percentiles
    ]
    return {"source": page.source, "subject": page.subject, "sessions": page.sessions, "percentiles": rows}


def _bottleneck(bottleneck: Bottleneck) -> dict[str, object]:
    return {
        "classification": bottleneck.classification,
        "input_percent": bottleneck.input_percent,
        "output_percent": bottleneck.output_percent,
        "idle_percent": bottleneck.idle_percent,
        "statement": bottleneck.statement,
        "next_steps": list(bottleneck.next_steps),
    }
