"""Our command for each question: what the skill for agents names, with the rows, columns or keys that answer it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.parity.exam.answers.reading import Read, at, in_total, of_row, share_at
from tests.parity.exam.judging import Asked, Reply, Value

_FAR = (
    "SELECT name FROM ops WHERE class <> 'collective' AND roofline_efficiency < 0.6 "
    "AND self_time_ps > 0.01 * (SELECT sum(self_time_ps) FROM ops)"
)


def _report(page: str, profile: str, read: Read, *options: str) -> Asked:
    return Asked(("report", page, f"{{{profile}}}", "--format", "json", *options), read)


def _keys(page: str, profile: str, read: Read, keys: str, *options: str) -> Asked:
    return _report(page, profile, read, *options, "--keys", keys)


def _rows(page: str, profile: str, read: Read, columns: str, *options: str) -> Asked:
    return _report(page, profile, read, *options, "--columns", columns)


def _sql(profile: str, read: Read, text: str) -> Asked:
    return Asked(("query", f"{{{profile}}}", text, "--format", "json"), read)


def _diff(read: Read, *options: str) -> Asked:
    return Asked(("diff", "{before}", "{exposed}", "--format", "json", *options), read)


def _reason(profile: str, read: Read, key: str, *options: str) -> Asked:
    """What the findings say, those that are worth most first."""
    return _keys("findings", profile, read, f"findings.cause,findings.{key}", *options)


def _of_cause(cause: str, key: str) -> Read:
    """What a finding of a cause has at a key; None where there is no such finding."""
    return lambda reply: next((each[key] for each in reply.data["findings"] if each["cause"] == cause), None)


def _stall(reply: Reply) -> Value | None:
    """Time of a step in which no op runs, whoever owns it."""
    return sum(at("rows", 0, key)(reply) or 0.0 for key in ("input_ms", "host_ms", "dispatch_ms"))  # type: ignore[misc]


def _most_gib(reply: Reply) -> Value | None:
    return int(reply.data["headroom_bytes"]) / 2**30


def _compilations(reply: Reply) -> Value | None:
    """The figure that counts them; no compilation is 0, since the reason would be there."""
    figures = [figure for each in reply.data["findings"] for figure in each["figures"]]
    return next((figure["value"] for figure in figures if figure["name"].startswith("# compilation")), None)


def _cut(reply: Reply) -> Value | None:
    return next((row["core"] for row in reply.data["rows"] if row["lost_steps"]), None)


_OP = ("--op", "fusion.397")
_OF_HOST = ("--filter", "owner=host_transfer")

ANSWERS: Mapping[str, Asked] = {
    "step-time": _keys("overview", "demo", at("performance", "step_time_ms", "average"), "performance.step_time_ms"),
    "slowest-step": _rows(
        "ledger", "demo", of_row("name"), "name,time_ms", "--by", "step", "--sort", "time_ms", "--limit", "1"
    ),
    "stall": _report("ledger", "demo", _stall, "--by", "step", "--filter", "name=113"),
    "real-step-time": _keys(
        "overview", "real-v6e", at("performance", "step_time_ms", "average"), "performance.step_time_ms"
    ),
    "latency": _rows("inference", "serving", of_row("total_ms"), "percentile,total_ms", "--filter", "percentile=99"),
    "top-op": _rows("ops", "demo", of_row("name"), "name,self_time_ps,source", "--limit", "1"),
    "how-often": _keys("op", "demo", at("runs", "count"), "runs", *_OP),
    "longest-run": _keys("op", "demo", lambda reply: reply.data["runs"]["maximum_ps"] / 1e6, "runs", *_OP),
    "in-a-step": _rows(
        "ops", "before", of_row("name"), "name,self_time_ps", "--step", "104", "--core", "1", "--limit", "1"
    ),
    "matrix-share": _sql(
        "demo",
        of_row("share"),
        "SELECT sum(self_time_ps) FILTER (WHERE category = 'convolution fusion') / sum(self_time_ps) AS share FROM ops",
    ),
    "block": _rows("ledger", "demo", in_total("time_ms"), "name,time_ms", "--by", "scope", "--filter", "/mlp"),
    "host-transfers": _rows("ledger", "real-v6e", of_row("time_ms"), "owner,time_ms", *_OF_HOST),
    "callback": _rows("ledger", "recomputes", of_row("time_ms"), "owner,time_ms", *_OF_HOST),
    "why": _reason("late-input", at("findings", 0, "cause"), "title", "--limit", "1"),
    "worth": _reason("late-input", at("findings", 0, "worth_ms"), "worth_ms", "--limit", "1"),
    "who-is-late": _rows("input", "late-input", of_row("name"), "name,self_time_ms", "--limit", "1"),
    "healthy": _reason(
        "before",
        lambda reply: any((each["worth_fraction"] or 0) > 0.03 for each in reply.data["findings"]),
        "worth_fraction",
    ),
    "kernel-worth": _reason("slow-kernel", _of_cause("slow-kernel", "worth_ms"), "worth_ms"),
    "print": _reason("recomputes", _of_cause("debug-print", "source"), "source"),
    "compilations": _reason("serving", _compilations, "figures", "--limit", "1"),
    "change": _diff(at("steps", "mean", "change_ms"), "--keys", "steps.mean"),
    "what-grew": _diff(of_row("name", "categories"), "--keys", "categories.name,categories.change_ms"),
    "regressed": _diff(
        lambda reply: {0: False, 6: True}.get(reply.code), "--fail-on-regression", "5%", "--keys", "verdict"
    ),
    "share-of-peak": _rows(
        "ops", "demo", of_row("flops_utilization"), "name,flops_utilization", "--filter", "name=fusion.397"
    ),
    "mfu": _keys("model", "before", share_at("hfu_percent"), "hfu_percent,mfu_percent"),
    "mfu-without": _keys("model", "recomputes", share_at("mfu_percent"), "hfu_percent,mfu_percent"),
    "recomputed": _reason("recomputes", _of_cause("recomputation", "worth_ms"), "worth_ms"),
    "worst-kernel": _reason("slow-kernel", at("findings", 0, "target"), "target"),
    "share-of-roof": _rows(
        "ops",
        "slow-kernel",
        of_row("roofline_efficiency"),
        "name,roofline_efficiency",
        "--filter",
        "name=custom_attention",
    ),
    "below-the-roof": _sql("demo", lambda reply: frozenset(row["name"] for row in reply.data["rows"]), _FAR),
    "memory-left": _keys("memory", "demo", _most_gib, "headroom_bytes,peak_bytes,capacity_bytes"),
    "largest-buffer": _rows(
        "memory",
        "demo",
        lambda reply: reply.data["rows"][0]["size_bytes"] / 2**20,
        "name,size_bytes",
        "--sort",
        "size_bytes",
        "--limit",
        "1",
    ),
    "allocated": _rows(
        "memory-profile",
        "slow-kernel",
        lambda reply: max(row["peak_bytes"] / row["capacity_bytes"] for row in reply.data["rows"]),
        "label,peak_bytes,capacity_bytes",
    ),
    "slow-core": _keys("cores", "slow-core", at("slowest"), "slowest,statement"),
    "slow-core-worth": _reason("slow-core", at("findings", 0, "worth_ms"), "worth_ms", "--limit", "1"),
    "waits-in": _keys(
        "collectives",
        "slow-core",
        of_row("name", "collectives"),
        "collective_groups.late_core,collectives.name,collectives.waiting_time_ms",
        "--limit",
        "3",
    ),
    "exposed": _rows("ledger", "demo", in_total("time_ms"), "owner,time_ms", "--filter", "owner:collective"),
    "idle": _keys(
        "overview",
        "late-input",
        lambda reply: sum(reply.data["bottleneck"].values()) / 100,
        "bottleneck.input_percent,bottleneck.idle_percent",
    ),
    "cut": _rows("cores", "cut", _cut, "core,lost_steps"),
    "cut-since": _keys("overview", "cut", at("steps", -1, "name"), "steps.name"),
}
"""By the question's key."""
