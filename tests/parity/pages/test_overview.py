"""The overview against XProf 2.24.2's answers for the golden profiles: every field of its JSON but the fixed texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.parity.ops.test_sparse_core import both_ways
from tests.parity.oracle.fields import Agrees, Comparison, Difference, Value, compare
from tests.parity.oracle.golden import RUNS, golden_answer
from tests.parity.oracle.op_fields import Cells, explained, rules_of, summaries_of, table_fields
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.pages.shared.steps import common_steps
from tpuprof.parsers.steps.xprof_view import XprofBreakdown

MS = 1e9

PRINTED = "XProf prints this for every profile alike, or says other cells once more in words; ours has words of its own"
CONSTANT = ("step_time_graph_column_ids", "hardware_type", "remark_color", "remark_text", "host_trace_level", "tooltip")
TEXTS = ("tip_type", "link", "description", "severity", "message")

HOST_OPS = "no host thread ran a framework op, so this is unknown; XProf prints 0.0%, for the host's idle time 100.0%"
EAGER = "no event says whether its op ran eagerly, so this is unknown; XProf prints 0.0%"
HOST_INPUT = (
    "without infeed ops XProf takes as much idle time for input as the host waits for it in events of the step's group"
    ", even while the device is busy; here it is the idle time in which the host waits for input or transfers it"
)
NO_FLOPS = "the profile has no FLOPs for this op; XProf shows 0"
LIMITS = "XProf's overview passes no device limits, so it prints 0.0% for every profile"
COUNTER = "XProf prints 0.0% where the profile holds no counter"
WORDS = "our own wording; the percentage is of step time, XProf's of step time plus all-reduce time"
TOUCHING = "XProf counts ops that start at a step's end for the step before: the first gets them twice, the last none"
BLANK = "XProf can't unpack its own TPU step breakdown here and leaves the recommendation blank"
TRAINING = "no op has a framework name, so nothing tells training from inference"
BY_NAME = "told by the framework ops' names; XProf looks at compiled modules alone, and this profile has none"
SPARSE = (
    "XProf takes what a SparseCore does in the step of the host's slowest TensorCore, so that some counts for two steps"
    ", and infeed and outfeed for idle time; ours is in the steps of the TensorCore beside it"
)
UNDERFLOW = "XProf's smallest double stands for a maximum over nothing"


def different(page: Overview) -> dict[str, Difference]:
    """In what our page differs from XProf's for any profile, and what it must say instead."""
    statement, advice = page.bottleneck.statement, " ".join(page.bottleneck.next_steps)
    performance = page.performance
    unknown = {
        "host_idle_time_percent": (performance.host_idle_percent, HOST_OPS),
        "host_tf_op_percent": (performance.host_op_percent, HOST_OPS),
        "device_tf_op_percent": (performance.device_op_percent, HOST_OPS),
        "host_op_time_eager_percent": (performance.eager_host_percent, EAGER),
        "device_op_time_eager_percent": (performance.eager_device_percent, EAGER),
        "hbm_utilization_percent": (performance.hbm_utilization_percent, COUNTER),
        "mxu_utilization_percent": (performance.mxu_utilization_percent, COUNTER),
    }
    return {
        **{key: Difference(None, why) for key, (value, why) in unknown.items() if value is None},
        **{
            f"top.{row}.flopRate": Difference(None, NO_FLOPS)
            for row, op in enumerate(page.top_ops)
            if op.gflops_per_second is None
        },
        "flop_rate_utilization_relative_to_roofline": Difference(performance.flops_utilization_percent, LIMITS),
        "memory_bw_utilization_relative_to_hw_limit": Difference(
            performance.memory_bandwidth_utilization_percent, LIMITS
        ),
        "input_conclusion": Difference(statement, WORDS),
        "summary_nextstep": Difference(advice, WORDS),
        "recommendation.statement": Difference(statement, WORDS),
        "recommendation.bottleneck": Difference(page.bottleneck.classification, BLANK),
    }


SPECIFIC: dict[str, dict[str, Difference]] = {
    "synthetic-a": {
        "infeed_percent_maximum": Difference(20.0, TOUCHING),
        "infeed_percent_minimum": Difference(20.0, TOUCHING),
        "infeed_percent_standard_deviation": Difference(0.0, TOUCHING),
        "tc_idle_ms_average": Difference(1.3, TOUCHING),
        "step.0.tcInfeedTimeMs": Difference(2.0, TOUCHING),
        "step.0.tcIdleTimeMs": Difference(1.5, TOUCHING),
        "step.0.infeedPercentAverage": Difference(15.0, TOUCHING),
        "step.0.infeedPercentMin": Difference(10.0, TOUCHING),
        "step.0.infeedPercentMax": Difference(20.0, TOUCHING),
        "step.4.tcInfeedTimeMs": Difference(2.0, TOUCHING),
        "step.4.tcIdleTimeMs": Difference(1.1, TOUCHING),
        "step.4.infeedPercentAverage": Difference(15.0, TOUCHING),
        "step.4.infeedPercentMin": Difference(10.0, TOUCHING),
        "step.4.infeedPercentMax": Difference(20.0, UNDERFLOW),
    },
    "synthetic-b": {"is_training": Difference("none", TRAINING)},
    "synthetic-c": {"is_training": Difference("none", TRAINING)},
    "synthetic-h1": {"is_training": Difference("none", TRAINING)},
    "synthetic-k1": {"is_training": Difference("true", BY_NAME)},
    "synthetic-k4": {"is_training": Difference("true", BY_NAME)},
    "tpu-v6e-inference": {},
}


def xprof_fields(page: Any) -> dict[str, Value]:
    """Flattens XProf's overview JSON; table cells become ``top.0.operation`` and ``step.3.tcIdleTimeMs``."""
    top, steps, environment, advice, latencies, _, diagnostics = page
    fields = table_fields(top, "top") | table_fields(steps, "step") | table_fields(environment, "host")
    fields |= {f"recommendation.{key}": value for key, value in table_fields(advice, "tip").items()}
    fields |= table_fields(diagnostics, "diagnostic")
    return fields | {"diagnostics": len(diagnostics["rows"]), "latencies": len(latencies["rows"])}


def our_fields(page: Overview, summaries: Sequence[HostSummary]) -> dict[str, Value]:
    """The same fields out of our page."""
    p, env = page.performance, page.environment
    is_marked = p.step_time is not None and p.step_time.source == "steps"
    fields: dict[str, Value] = {
        "device_duty_cycle_percent": p.xprof_duty_cycle_percent,
        "device_duty_cycle_high_confidence_percent": p.xprof_duty_cycle_percent,
        "device_idle_time_percent": p.xprof_idle_percent,
        "idle_time_high_confidence_ps": float(
            sum(chip.total_ps - chip.active_ps for summary in summaries for chip in summary.duty)
        ),
        "host_idle_time_percent": p.host_idle_percent,
        "mxu_utilization_percent": p.mxu_utilization_percent,
        "hbm_utilization_percent": p.hbm_utilization_percent,
        "flop_rate_utilization_relative_to_roofline": p.flops_utilization_percent,
        "memory_bw_utilization_relative_to_hw_limit": p.memory_bandwidth_utilization_percent,
        "device_op_time_eager_percent": p.eager_device_percent,
        "host_op_time_eager_percent": p.eager_host_percent,
        "device_tf_op_percent": p.device_op_percent,
        "host_tf_op_percent": p.host_op_percent,
        "device_core_count": str(env.device_core_count),
        "device_type": env.device_type,
        "host_count": str(env.host_count),
        "is_training": str(env.is_training).lower(),
        "task_count": f"{env.task_count} (num tasks per host = 1)",
        "input_conclusion": page.bottleneck.statement,
        "output_conclusion": "",
        "summary_nextstep": " ".join(page.bottleneck.next_steps),
        "recommendation.bottleneck": page.bottleneck.classification,
        "recommendation.statement": page.bottleneck.statement,
        "diagnostics": int(not is_marked) + sum(len(summary.warnings) for summary in summaries),
        "latencies": int(page.inference is not None and page.inference.source == "requests"),
    }
    for key in ("all_other_bottleneck", "device_collectives_bottleneck", "kernel_launch_bottleneck"):
        fields[f"recommendation.{key}"] = "" if is_marked else "no"
    for key in ("all_other", "device_collectives", "kernel_launch", "precision"):
        fields[f"recommendation.{key}_statement"] = ""
    fields["recommendation.non_bottleneck_tip_types"] = ""
    for row, op in enumerate(page.top_ops):
        fields[f"top.{row}.selfTimePercent"] = op.self_time_percent / 100
        fields[f"top.{row}.cumulativeTimePercent"] = op.cumulative_percent / 100
        fields[f"top.{row}.category"] = op.category
        fields[f"top.{row}.operation"] = op.name
        fields[f"top.{row}.flopRate"] = op.gflops_per_second
    return fields | step_fields(page)


def step_fields(page: Overview) -> dict[str, Value]:
    """Step table and its averages; only for marked steps, XProf infers none."""
    time = page.performance.step_time
    steps = page.steps if time is not None and time.source == "steps" else ()
    rows = [step.breakdown for step in steps if isinstance(step.breakdown, XprofBreakdown)]
    fields: dict[str, Value] = {}
    percent = [row.infeed_percent_maximum for row in rows]
    mean = sum(percent) / len(percent) if percent else 0.0
    spread = (sum((value - mean) ** 2 for value in percent) / (len(percent) - 1)) ** 0.5 if len(percent) > 1 else 0.0
    means = {part.name: part.average_ps / MS for part in page.step_parts} if rows else {}
    averages = {
        "active_steptime": "active",
        "tc_active": "active",
        "tc_compute": "compute",
        "tc_infeed": "infeed",
        "tc_outfeed": "outfeed",
        "tc_idle": "idle",
        "host_transfer": "host_transfer",
    }
    fields |= {f"{name}_ms_average": means.get(part, 0.0) for name, part in averages.items()}
    fields |= dict.fromkeys(("scv0_compute_ms_average", "scv0_infeed_ms_average"), 0.0)
    fields |= {
        "steptime_ms_average": time.average_ps / MS if time and rows else 0.0,
        "steptime_ms_maximum": time.maximum_ps / MS if time and rows else 0.0,
        "steptime_ms_minimum": time.minimum_ps / MS if time and rows else 0.0,
        "steptime_ms_standard_deviation": time.standard_deviation_ps / MS if time and rows else 0.0,
        "infeed_percent_average": mean,
        "infeed_percent_standard_deviation": spread,
        "infeed_percent_maximum": max(percent, default=0.0),
        "infeed_percent_minimum": min(percent, default=0.0),
    }
    for at, (step, row) in enumerate(zip(steps, rows, strict=False)):
        fields |= {
            f"step.{at}.stepnum": str(step.group_id),
            f"step.{at}.tcComputeTimeMs": row.compute_ps / MS,
            f"step.{at}.scv0ComputeTimeMs": 0.0,
            f"step.{at}.scv0InfeedTimeMs": 0.0,
            f"step.{at}.tcInfeedTimeMs": row.infeed_ps / MS,
            f"step.{at}.tcOutfeedTimeMs": row.outfeed_ps / MS,
            f"step.{at}.tcIdleTimeMs": row.idle_ps / MS,
            f"step.{at}.hostTransferTimeMs": row.host_transfer_ps / MS,
            f"step.{at}.infeedPercentAverage": row.infeed_percent_average,
            f"step.{at}.infeedPercentMin": row.infeed_percent_minimum,
            f"step.{at}.infeedPercentMax": row.infeed_percent_maximum,
        }
    return fields


def compare_overview(
    answer: Any,
    page: Overview,
    summaries: Sequence[HostSummary],
    specific: dict[str, Difference],
    more: Mapping[str, Value] = MappingProxyType({}),
) -> Comparison:
    """All fields of XProf's overview against ours, `more` of which are of another page."""
    theirs, ours = xprof_fields(answer), {**our_fields(page, summaries), **more}
    expected = {key: value for key, value in different(page).items() if key in theirs} | printed(theirs, ours)
    result = compare(theirs, ours, expected | specific)
    assert result.compared == len(theirs) > 90
    return result


def of_sparse_cores(shared: Path, name: str, theirs: Cells) -> tuple[Cells, dict[str, Difference]]:
    """Our means over SparseCores, of their own page, and in which of them XProf differs."""
    if not any(key.startswith("sc_") for key in theirs):
        return {}, {}
    ours, rule = both_ways(shared, name)
    return ours, explained(theirs, ours, rule, SPARSE)


def printed(theirs: Mapping[str, Value], ours: dict[str, Value]) -> dict[str, Difference]:
    """What XProf prints that is no result: None in `ours`."""
    found = {key: Difference(None, PRINTED) for key in theirs if key.rpartition(".")[2] in (*CONSTANT, *TEXTS)}
    ours |= dict.fromkeys(found)
    return found


def waits_of_host(page: Overview, summaries: Sequence[HostSummary]) -> dict[str, Difference]:
    """`input_by_host`, where that is how the time waiting for input is known."""
    grid = common_steps(summaries).grid
    return input_by_host(page, summaries) if grid is not None and grid.input_source == "host" else {}


def input_by_host(page: Overview, summaries: Sequence[HostSummary]) -> dict[str, Difference]:
    """The fields that differ where the time waiting for input comes from what the host did."""
    ours = our_fields(page, summaries)
    parts = ("tcInfeedTimeMs", "tcIdleTimeMs", "infeedPercentAverage", "infeedPercentMin", "infeedPercentMax")
    keys = [f"step.{at}.{part}" for at in range(len(page.steps)) for part in parts]
    keys += [f"infeed_percent_{what}" for what in ("average", "maximum", "minimum", "standard_deviation")]
    keys += ["tc_infeed_ms_average", "tc_idle_ms_average"]
    return {key: Difference(ours[key], HOST_INPUT) for key in keys}


@pytest.mark.shared
@pytest.mark.parametrize("name", RUNS)
def test_every_field_is_xprofs_or_differs_for_a_reason(shared: Path, name: str, agrees: Agrees) -> None:
    summaries, rules = summaries_of(shared, name), rules_of(shared, name)
    answer, page = golden_answer(shared, name, "overview_page"), overview(summaries)
    theirs, ours, by_rule = xprof_fields(answer), our_fields(page, summaries), our_fields(overview(rules), rules)
    sparse, stated = of_sparse_cores(shared, name, theirs)
    stated |= waits_of_host(page, summaries) | explained(theirs, ours, by_rule)
    result = compare_overview(answer, page, summaries, stated | SPECIFIC[name], sparse)
    assert result.unused_specific(SPECIFIC[name]) == []
    agrees(result, "overview")
