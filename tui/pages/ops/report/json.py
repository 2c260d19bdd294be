"""The pages of ops, framework ops and the roofline as JSON: one object, a row of the main table on a line of its own.

Beside what the documentation fixes: `op_count` is the number of ops before any limit, and `device` is one object on all
op pages. `flops` and bytes are over all occurrences, `average_time_ps` is the total time by occurrence.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.ops.roofline import RooflinePage, RooflinePoints
from tpuprof.tui.pages.ops.report.rows import (
    device,
    device_reasons,
    first,
    framework_op_columns,
    framework_rows,
    op_columns,
    reasons_of,
    records,
    roofline_op_columns,
    roofline_point_columns,
    roofline_rows,
)
from tpuprof.tui.report.json_report import document, head

OPS_SCHEMA = "tpuprof.ops/1"
FRAMEWORK_OPS_SCHEMA = "tpuprof.framework-ops/1"
ROOFLINE_SCHEMA = "tpuprof.roofline/1"

HOST_DOES_NO_WORK = "no FLOPs or bytes are counted for host ops"
NO_STEPS = "there are no steps"

_OF_WORK = (
    "gflops_per_second",
    "flops_utilization",
    "hbm_bandwidth_utilization",
    "operational_intensity",
    "hbm_intensity",
    "bound_by",
    "roofline_efficiency",
)


def ops_json(page: OpsPage, run: Run, limit: int = 0) -> str:
    """HLO ops by self time as JSON text, at most `limit` of them, 0 for all."""
    body = {
        **whole_time(page),
        "time_scale": page.time_scale,
        "simulated": page.simulated,
        "device": device(page),
        "op_count": len(page),
        "ops": records(op_columns(page, first(len(page), limit))),
    }
    reasons = {**time_reasons(page.unknown), **page.unknown, **reasons_of(page.unknown, "ops[]"), **device_reasons()}
    return document(head(OPS_SCHEMA, run, page.hosts, page.warnings), body, reasons)


def framework_ops_json(page: FrameworkOpsPage, ops: OpsPage, run: Run, limit: int = 0) -> str:
    """Framework ops as JSON text, those of the device first; at most `limit` of each side, 0 for all.

    Args:
        ops: the ops page that `page` was made of, for the names of main ops.
    """
    rows = framework_rows(page, limit)
    columns = framework_op_columns(page, ops, rows)
    hosts = int(page.is_host.sum())
    body = {
        "device_total_time_ps": page.device_total_ps or None,
        "device_idle_time_ps": page.device_idle_ps if page.device_total_ps else None,
        "host_total_time_ps": page.host_total_ps or None,
        "host_idle_time_ps": page.host_idle_ps if page.host_total_ps else None,
        "device": device(ops),
        "device_op_count": len(page) - hosts,
        "host_op_count": hosts,
        "ops": records(columns),
    }
    by_row = reasons_of(page.unknown, "ops[]")
    sides = page.is_host[rows].tolist()
    for key in _OF_WORK:
        unknown = {is_host for is_host, value in zip(sides, columns[key], strict=True) if value is None}
        parts = [by_row[f"ops[].{key}"]] * (False in unknown) + [HOST_DOES_NO_WORK] * (True in unknown)
        by_row[f"ops[].{key}"] = "; ".join(parts)
    no_host = page.unknown.get("host_idle_time_ps", "no host thread ran a framework op")
    reasons = {
        "device_total_time_ps": page.unknown.get("ops", "no op ran on the device"),
        "device_idle_time_ps": page.unknown.get("ops", "no op ran on the device"),
        "host_total_time_ps": no_host,
        "host_idle_time_ps": no_host,
        **by_row,
        **device_reasons(),
    }
    return document(head(FRAMEWORK_OPS_SCHEMA, run, page.hosts, page.warnings), body, reasons)


def roofline_json(page: RooflinePage, run: Run, limit: int = 0) -> str:
    """The roofline as JSON text: peaks, program, steps, and at most `limit` ops, 0 for all."""
    ops = page.ops
    no_steps = page.unknown.get("steps", NO_STEPS)
    body = {
        "device": device(ops),
        "with_infeed": page.with_infeed,
        "simulated": ops.simulated,
        "program": _point(page.program),
        "average_step": _point(page.average_step) if len(page.average_step) else None,
        "step_source": page.step_source,
        "steps": records(roofline_point_columns(page.steps)),
        "op_count": int(page.counts.sum()),
        "ops": records(roofline_op_columns(page, roofline_rows(page, limit))),
    }
    reasons = {"average_step": no_steps, "step_source": no_steps, **device_reasons()}
    for prefix in ("program", "average_step", "steps[]", "ops[]"):
        reasons.update(reasons_of(page.unknown, prefix))
    if "ops" in page.unknown:
        reasons["program.total_time_ps"] = page.unknown["ops"]
    return document(head(ROOFLINE_SCHEMA, run, ops.hosts, ops.warnings), body, reasons)


def whole_time(page: OpsPage) -> dict[str, object]:
    """The cores' whole time, and what of it is idle; unknown without any."""
    return {
        "total_time_ps": page.total_ps or None,
        "idle_time_ps": page.idle_ps if page.total_ps else None,
    }


def time_reasons(unknown: Mapping[str, str]) -> dict[str, str]:
    """Why `whole_time` is null."""
    return dict.fromkeys(("total_time_ps", "idle_time_ps"), unknown.get("ops", "no op took any time"))


def _point(points: RooflinePoints) -> dict[str, object]:
    return records(roofline_point_columns(points))[0]
