"""XProf's command for each question: the best of its subcommands, as the skills in its wheel recommend them.

Where a subcommand has the answer, it is that; else SQL over the events, written for the question. The reader is kind:
it knows the device's peaks and how many steps and cores a profile has, and does the arithmetic that an engineer would.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.parity.exam.answers.reading import Read, at
from tests.parity.exam.judging import Asked, Reply, Value

V5E_GIB = 15.75
DEMO_STEPS, STEPS, CORES = 20, 12, 4


def _of(command: str, profile: str, read: Read, *options: str) -> Asked:
    return Asked((command, f"{{{profile}}}", *options), read)


def _sql(profile: str, read: Read, text: str) -> Asked:
    return Asked(("query_events_db", f"{{{profile}:file}}", f"--query={text}"), read)


def _first(column: str) -> Read:
    return at(0, column)


def _number(*path: str | int) -> Read:
    """A number that stands there as a text, with or without a sign for percent."""

    def read(reply: Reply) -> Value | None:
        text = str(at(*path)(reply))
        return float(text.rstrip("%")) / (100 if text.endswith("%") else 1)

    return read


_TOTAL = "performance_summary"
_AGGREGATES = ("aggregates", 0)


def _module(key: str) -> Read:
    """Milliseconds of the module that takes most time."""
    return lambda reply: reply.data["aggregates"][0][key] / 1e9


def _stall(reply: Reply) -> Value | None:
    (step,) = reply.data["step_breakdown"]
    return float(step["infeed_time_ms"] + step["idle_time_ms"])


def _category(reply: Reply) -> Value | None:
    """The share of a category, of the time that is not idle."""
    times = {row["category"]: row["total_self_time_ms"] for row in reply.data["category_summary"]}
    return float(times["convolution fusion"] / (sum(times.values()) - times["IDLE"]))


def _collectives(reply: Reply) -> Value | None:
    names = re.compile("all-|reduce-scatter|collective")
    times = [row["total_self_time_ms"] for row in reply.data["category_summary"] if names.match(row["category"])]
    return float(sum(times)) / DEMO_STEPS / CORES


def _far(reply: Reply) -> Value | None:
    """Rows of the roofline below 60 %, but for collectives, with over 1 % of the time of all ops."""
    whole = reply.data["program"]["total_time_ms"]
    return frozenset(
        row["name"]
        for row in reply.data["top_operations"]
        if row["total_self_time_ms"] > 0.01 * whole
        and float(row["roofline_efficiency_percent"].rstrip("%")) < 60
        and not row["category"].startswith("all-")
    )


def _losses(reply: Reply) -> dict[str, float]:
    """Milliseconds that ops lose against their roof."""
    return {
        row["name"]: row["total_self_time_ms"] * (1 - float(row["roofline_efficiency_percent"].rstrip("%")) / 100)
        for row in reply.data["top_operations"]
    }


def _most_lost(reply: Reply) -> Value | None:
    losses = _losses(reply)
    return max(losses, key=losses.__getitem__)


def _share_of_roof(reply: Reply) -> Value | None:
    """None for a custom call that it calls opaque: it says itself that its rates can't be had."""
    row = next(row for row in reply.data["top_operations"] if row["name"] == "custom_attention")
    is_known = row["flops_provenance"] != "opaque_custom_call"
    return float(row["roofline_efficiency_percent"].rstrip("%")) / 100 if is_known else None


def _change(reply: Reply) -> float:
    kpi = reply.data["kpi_metrics"]
    return float(kpi["optimized"]["step_time_ms"]) - float(kpi["baseline"]["step_time_ms"])


def _grown(reply: Reply) -> Value | None:
    """The opcode of the kernel that grew most, of those that are listed."""
    rows = [row for row in reply.data["kernel_diffs"] if (row["delta_duration_us"] or 0) > 0]
    if not rows:
        return None
    name = str(max(rows, key=lambda row: row["delta_duration_us"])["kernel_name"])
    return name.partition(" = ")[0].lstrip("%").partition(".")[0]


def _exposed_by_core(reply: Reply) -> dict[str, float]:
    """Milliseconds a step in which asynchronous ops are not covered, by host and core."""
    planes = reply.data["by_plane"].items()
    return {name.replace("/device:TPU:", ""): plane["exposed_ps"] / STEPS / 1e9 for name, plane in planes}


def _slow_core(reply: Reply) -> Value | None:
    """The core that waits least."""
    waits = _exposed_by_core(reply)
    return min(waits, key=waits.__getitem__)


def _slow_core_worth(reply: Reply) -> Value | None:
    waits = sorted(_exposed_by_core(reply).values())
    return waits[len(waits) // 2] - waits[0]


def _largest(reply: Reply) -> Value | None:
    buffers = reply.data["modules"][0]["top_buffers"]
    return max(float(row["size_mib"]) for row in buffers if not row["instruction"].startswith("Others"))


def _worst_function(reply: Reply) -> Value | None:
    """The function that took most time among those that run in every step."""
    return str(reply.data[0]["kernel_name"])


_PER_STEP = "(SELECT count(*) FROM Events WHERE category = 'Steps')"
_FUSION = ("--event_regex=^%?fusion\\.397( |$)",)
_MODULES = '--filter=line == "XLA Modules"'
_DIFF = ("diff_sessions", "--baseline_session_id={before}", "--optimized_session_id={exposed}")

ANSWERS: Mapping[str, Asked] = {
    "step-time": _of("get_overview", "demo", _number(_TOTAL, "steptime_ms_average")),
    "slowest-step": _sql(
        "demo",
        lambda reply: str(reply.data[0]["kernel_name"]).removeprefix("step:"),
        "SELECT kernel_name, max(end_ns - start_ns) AS ns FROM Events WHERE category = 'Steps' GROUP BY 1 "
        "ORDER BY 2 DESC LIMIT 1",
    ),
    "stall": _of("get_step_trace", "demo", _stall, "--step_num=13"),
    "real-step-time": _of("aggregate_xplane_events", "real-v6e", _module("avg_duration_ps"), _MODULES),
    "latency": _of(
        "aggregate_xplane_events", "serving", _module("p99_duration_ps"), "--event_regex=jit_decode", _MODULES
    ),
    "top-op": _of("get_hlo_stats", "demo", at("records", 0, "op_name"), "--limit=1"),
    "how-often": _of("get_hlo_stats", "demo", at("records", 0, "occurrences"), "--limit=1"),
    "longest-run": _of(
        "aggregate_xplane_events", "demo", lambda reply: reply.data["aggregates"][0]["max_duration_ps"] / 1e6, *_FUSION
    ),
    "in-a-step": _sql(
        "before",
        _first("hlo_op"),
        "SELECT e.hlo_op, sum(e.self_time_ns) AS ns FROM Events e JOIN Events s ON s.device = e.device "
        "AND e.start_ns >= s.start_ns AND e.start_ns < s.end_ns WHERE s.category = 'Steps' "
        "AND s.kernel_name = 'step:104' AND e.category = 'XLA Ops' AND e.device = 'TPU:1' GROUP BY 1 "
        "ORDER BY 2 DESC LIMIT 1",
    ),
    "matrix-share": _of("get_hlo_op_profile", "demo", _category, "--view=category"),
    "block": _sql(
        "demo",
        _first("ms"),
        f"SELECT sum(self_time_ns) / 1e6 / {_PER_STEP} AS ms FROM Events WHERE category = 'XLA Ops' "
        "AND tf_op_name LIKE '%/mlp/%'",
    ),
    "host-transfers": _sql(
        "real-v6e",
        _first("ms"),
        "SELECT sum(self_time_ns) / 1e6 / (SELECT count(*) FROM Events WHERE category = 'XLA Ops' "
        "AND hlo_op = 'copy-done') AS ms FROM Events WHERE category = 'XLA Ops' AND hlo_op LIKE 'copy-done%'",
    ),
    "callback": _sql(
        "recomputes",
        _first("ms"),
        f"SELECT sum(self_time_ns) / 1e6 / {_PER_STEP} AS ms FROM Events WHERE category = 'XLA Ops' "
        "AND (hlo_op LIKE 'send%' OR hlo_op LIKE 'recv%')",
    ),
    "why": _of(
        "get_step_trace",
        "late-input",
        lambda reply: "input" if "nput" in reply.data["summary"]["primary_bottleneck"] else "compute",
        "--limit=1",
    ),
    "worth": _of("get_step_trace", "late-input", at("summary", "idle_time_ms_average"), "--limit=1"),
    "who-is-late": _sql(
        "late-input",
        _worst_function,
        "SELECT kernel_name, sum(end_ns - start_ns) / 1e6 AS ms, count(*) AS n FROM Events WHERE category = 'host' "
        "GROUP BY 1 HAVING count(*) >= 12 ORDER BY 2 DESC LIMIT 3",
    ),
    "healthy": _of(
        "check_host_boundness", "before", lambda reply: {"NOT_HOST_BOUND": False}.get(reply.data["status"], True)
    ),
    "kernel-worth": _of(
        "get_roofline_model", "slow-kernel", lambda reply: max(_losses(reply).values()) / 72, "--top_n=3"
    ),
    "print": _sql(
        "recomputes",
        _first("source_line"),
        "SELECT source_line, sum(self_time_ns) AS ns FROM Events WHERE category = 'XLA Ops' "
        "AND (hlo_op LIKE 'send%' OR hlo_op LIKE 'recv%') GROUP BY 1 ORDER BY 2 DESC LIMIT 1",
    ),
    "compilations": _of("aggregate_xplane_events", "serving", at(*_AGGREGATES, "count"), "--event_regex=XlaCompile"),
    "change": Asked(_DIFF, _change),
    "what-grew": Asked(_DIFF, _grown),
    "regressed": Asked(_DIFF, lambda reply: bool(reply.data["total_device_duration_delta_pct"] > 5)),
    "share-of-peak": _of(
        "get_roofline_model", "demo", _number("top_operations", 0, "compute_efficiency_percent"), "--top_n=1"
    ),
    "mfu": _of("get_overview", "before", _number(_TOTAL, "flop_rate_utilization_relative_to_roofline")),
    "mfu-without": _sql(
        "recomputes",
        _first("share"),
        "SELECT (SELECT sum(flops) FROM Events WHERE category = 'XLA Ops' "
        "AND tf_op_name NOT LIKE '%rematted_computation%') / (sum(end_ns - start_ns) * 197e3) AS share FROM Events "
        "WHERE category = 'Steps'",
    ),
    "recomputed": _sql(
        "recomputes",
        _first("ms"),
        f"SELECT sum(self_time_ns) / 1e6 / {_PER_STEP} AS ms FROM Events WHERE category = 'XLA Ops' "
        "AND tf_op_name LIKE '%rematted_computation%'",
    ),
    "worst-kernel": _of("get_roofline_model", "slow-kernel", _most_lost, "--top_n=3"),
    "share-of-roof": _of("get_roofline_model", "slow-kernel", _share_of_roof, "--top_n=3"),
    "below-the-roof": _of("get_roofline_model", "demo", _far, "--top_n=30"),
    "memory-left": _of(
        "get_peak_allocations",
        "demo",
        lambda reply: V5E_GIB - reply.data["modules"][0]["total_hbm_mib"] / 1024,
        "--limit=1",
        "--min_size_mib=1000",
    ),
    "largest-buffer": _of("get_peak_allocations", "demo", _largest, "--limit=1", "--min_size_mib=1000"),
    "allocated": _of(
        "get_memory_profile", "slow-kernel", lambda reply: reply.data["peak_usage_details"]["utilization_percent"] / 100
    ),
    "slow-core": _of("analyze_async_overlap", "slow-core", _slow_core, "--top_k=1"),
    "slow-core-worth": _of("analyze_async_overlap", "slow-core", _slow_core_worth, "--top_k=1"),
    "waits-in": _of("analyze_async_overlap", "slow-core", at("top_exposed", 0, "name"), "--top_k=1"),
    "exposed": _of("get_hlo_op_profile", "demo", _collectives, "--view=category"),
    "idle": _of("get_step_trace", "late-input", lambda reply: reply.data["summary"]["idle_percent"] / 100, "--limit=1"),
    "cut": _sql(
        "cut",
        lambda reply: str(reply.data[0]["device"]).replace("TPU:", "host-0:"),
        "SELECT device, count(*) AS n, max(end_ns) / 1e6 AS last_ms FROM Events WHERE category = 'XLA Ops' "
        "GROUP BY 1 ORDER BY 2",
    ),
    "cut-since": _sql(
        "cut",
        lambda reply: str(reply.data[0]["kernel_name"]).removeprefix("step:"),
        "SELECT kernel_name FROM (SELECT s.kernel_name, s.device, (SELECT count(*) FROM Events e "
        "WHERE e.device = s.device AND e.category = 'XLA Ops' AND e.start_ns BETWEEN s.start_ns AND s.end_ns) AS n "
        "FROM Events s WHERE s.category = 'Steps') GROUP BY 1 HAVING min(n) = max(n) ORDER BY 1 DESC LIMIT 1",
    ),
}
"""By the question's key."""
