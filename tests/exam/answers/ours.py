"""Our command for each question: what the skill for agents names, with rows and columns chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.exam.question import Asked, Reply, Value

Rows = list[dict[str, Any]]


def _json(*words: str) -> tuple[str, ...]:
    return (*words, "--format", "json")


def _report(page: str, profile: str, *options: str) -> tuple[str, ...]:
    return _json("report", page, f"{{{profile}}}", *options)


def _sql(profile: str, text: str) -> tuple[str, ...]:
    return _json("query", f"{{{profile}}}", text)


def _at(*path: str | int) -> Callable[[Reply], Value | None]:
    """Reads what stands at these keys."""

    def read(reply: Reply) -> Value | None:
        value = reply.data
        for key in path:
            if value is None or (isinstance(key, int) and len(value) <= key):
                return None
            value = value[key]
        return value

    return read


def _share(*path: str | int) -> Callable[[Reply], Value | None]:
    """The same of percent, as a share of 1."""
    return lambda reply: None if (found := _at(*path)(reply)) is None else float(found) / 100  # type: ignore[arg-type]


def _sum(key: str) -> Callable[[Reply], Value | None]:
    """The sum of a column."""
    return lambda reply: sum(row[key] for row in reply.data["rows"])


def _idle(reply: Reply) -> Value | None:
    busy = [row["busy_percent"] for row in reply.data["rows"]]
    return 1 - sum(busy) / len(busy) / 100


ANSWERS: Mapping[str, Asked] = {
    "step-time": Asked(_report("overview", "demo"), _at("performance", "step_time_ms", "average")),
    "slowest-step": Asked(
        _report("ledger", "demo", "--by", "step", "--sort", "time_ms", "--columns", "name,time_ms", "--limit", "1"),
        _at("rows", 0, "name"),
    ),
    "stall": Asked(
        _report("ledger", "demo", "--by", "step", "--filter", "name=113"),
        lambda reply: sum(reply.data["rows"][0][key] for key in ("input_ms", "host_ms", "dispatch_ms", "barrier_ms")),
    ),
    "real-step-time": Asked(_report("overview", "real-v6e"), _at("performance", "step_time_ms", "average")),
    "latency": Asked(
        _report("inference", "serving"),
        lambda reply: next(
            each["total_ms"] for each in reply.data["rows"][0]["percentiles"] if each["percentile"] == 99
        ),
    ),
    "top-op": Asked(
        _report("ops", "demo", "--limit", "1", "--columns", "name,self_time_ps,source"), _at("rows", 0, "name")
    ),
    "how-often": Asked(_report("op", "demo", "--op", "fusion.397"), _at("runs", "count")),
    "longest-run": Asked(
        _report("op", "demo", "--op", "fusion.397"), lambda reply: reply.data["runs"]["maximum_ps"] / 1e6
    ),
    "in-a-step": Asked(
        _sql(
            "before",
            "SELECT e.name, sum(e.duration_ps) FROM events e, events s WHERE e.core = 'host-0:1' AND s.core = e.core "
            "AND e.track = 'XLA Ops' AND s.track = 'Steps' AND s.name = '104' AND e.start_ps >= s.start_ps "
            "AND e.start_ps < s.start_ps + s.duration_ps GROUP BY 1 ORDER BY 2 DESC LIMIT 1",
        ),
        _at("rows", 0, "name"),
    ),
    "matrix-share": Asked(
        _sql(
            "demo",
            "SELECT sum(self_time_ps) FILTER (category = 'convolution fusion') / sum(self_time_ps) AS share FROM ops",
        ),
        _at("rows", 0, "share"),
    ),
    "block": Asked(
        _report("ledger", "demo", "--by", "scope", "--filter", "/mlp", "--columns", "name,time_ms"), _sum("time_ms")
    ),
    "host-transfers": Asked(
        _report("ledger", "real-v6e", "--filter", "owner=host_transfer", "--columns", "owner,time_ms"),
        _at("rows", 0, "time_ms"),
    ),
    "callback": Asked(
        _report("ledger", "recomputes", "--filter", "owner=host_transfer", "--columns", "owner,time_ms"),
        _at("rows", 0, "time_ms"),
    ),
    "why": Asked(_report("findings", "late-input", "--limit", "3"), _at("findings", 0, "cause")),
    "worth": Asked(_report("findings", "late-input", "--limit", "3"), _at("findings", 0, "worth_ms")),
    "who-is-late": Asked(_report("input", "late-input", "--limit", "10"), _at("ops", 0, "name")),
    "healthy": Asked(
        _report("findings", "before", "--limit", "3"),
        lambda reply: any(each["worth_fraction"] > 0.03 for each in reply.data["findings"]),
    ),
    "kernel-worth": Asked(_report("findings", "slow-kernel", "--limit", "3"), _at("findings", 0, "worth_ms")),
    "print": Asked(
        _report("findings", "recomputes", "--limit", "3"),
        lambda reply: next(each["source"] for each in reply.data["findings"] if each["cause"] == "debug-print"),
    ),
    "compilations": Asked(
        _report("findings", "serving", "--limit", "3"),
        lambda reply: next(
            (f["value"] for each in reply.data["findings"] for f in each["figures"] if f["name"] == "compilations"),
            None,
        ),
    ),
    "change": Asked(_json("diff", "{before}", "{exposed}"), _at("steps", "mean", "change_ms")),
    "what-grew": Asked(_json("diff", "{before}", "{exposed}"), _at("categories", 0, "name")),
    "regressed": Asked(
        _json("diff", "{before}", "{exposed}", "--fail-on-regression", "5%"),
        lambda reply: {0: False, 6: True}.get(reply.code),
    ),
    "share-of-peak": Asked(
        _report("ops", "demo", "--filter", "name=fusion.397", "--columns", "name,flops_utilization"),
        _at("rows", 0, "flops_utilization"),
    ),
    "mfu": Asked(_report("model", "before"), _share("hfu_percent")),
    "mfu-without": Asked(_report("model", "recomputes"), _share("mfu_percent")),
    "recomputed": Asked(
        _report("findings", "recomputes", "--limit", "3"),
        lambda reply: next(each["worth_ms"] for each in reply.data["findings"] if each["cause"] == "recomputation"),
    ),
    "worst-kernel": Asked(_report("findings", "slow-kernel", "--limit", "3"), _at("findings", 0, "ops", 0, "name")),
    "share-of-roof": Asked(
        _report("ops", "slow-kernel", "--filter", "name=custom_attention", "--columns", "name,roofline_efficiency"),
        _at("rows", 0, "roofline_efficiency"),
    ),
    "below-the-roof": Asked(
        _report(
            "ops", "demo", "--filter", "roofline_efficiency<60% >1%", "--columns", "name,class,roofline_efficiency"
        ),
        lambda reply: frozenset(row["name"] for row in reply.data["rows"] if row["class"] != "collective"),
    ),
    "memory-left": Asked(
        _report("memory", "demo", "--limit", "20"), lambda reply: reply.data["headroom_bytes"] / 2**30
    ),
    "largest-buffer": Asked(
        _report("memory", "demo", "--sort", "size_bytes", "--columns", "name,size_bytes", "--limit", "1"),
        lambda reply: reply.data["rows"][0]["size_bytes"] / 2**20,
    ),
    "allocated": Asked(
        _report("memory-profile", "slow-kernel"),
        lambda reply: max(each["peak_bytes"] / each["capacity_bytes"] for each in reply.data["allocators"]),
    ),
    "slow-core": Asked(
        _report("cores", "slow-core", "--sort", "own_time_ms", "--columns", "core,own_time_ms", "--limit", "2"),
        _at("rows", 0, "core"),
    ),
    "slow-core-worth": Asked(_report("findings", "slow-core", "--limit", "3"), _at("findings", 0, "worth_ms")),
    "waits-in": Asked(_report("collectives", "slow-core", "--limit", "10"), _at("collectives", 0, "name")),
    "exposed": Asked(
        _report("ledger", "demo", "--filter", "owner:collective", "--columns", "owner,time_ms"), _sum("time_ms")
    ),
    "idle": Asked(_report("cores", "late-input", "--columns", "core,busy_percent"), _idle),
    "cut": Asked(_report("findings", "cut", "--limit", "3"), lambda reply: None),
    "cut-since": Asked(_report("overview", "cut"), lambda reply: str(reply.data["steps"][-1]["name"])),
}
"""By the question's key."""
