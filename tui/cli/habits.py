"""Words that people bring from other programs: what is meant by them here.

A word with one meaning here is taken for it; another leads on to what comes nearest. Nobody loads this who types the
program's own words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.pages import PAGE_NAMES

_COMMANDS: Mapping[str, str] = {
    "sql": "query",
    "compare": "diff",
    "ls": "report runs",
    "list": "report runs",
    "info": "report overview",
    "summary": "report overview",
    "stats": "report overview",
    "show": "report overview",
    "analyze": "report findings",
    "top": "report ops",
    "record": "capture",
    "profile": "capture",
    "version": "--version",
    "install-skills": "skill",
    "diff_sessions": "diff",
    "check_host_boundness": "report findings",
    **dict.fromkeys(("query_events_db", "trace_processor"), "query"),
    **dict.fromkeys(("log", "ps"), "report runs"),
    "errors": "oom",
    **dict.fromkeys(("get", "describe", "print"), "report"),
    **dict.fromkeys(("check", "status", "config", "inspect", "inspect_capture"), "doctor"),
    **dict.fromkeys(("open", "view", "serve", "run", "xprof", "tensorboard"), ""),
}
_PAGES: Mapping[str, str] = {
    **{"summary": "overview", "overview-page": "overview", "info": "overview"},
    **{"latency": "inference", "latencies": "inference", "percentiles": "inference", "inference-profile": "inference"},
    **{"layers": "model --by layer", "mfu": "model", "steps": "ledger --by step"},
    **{"events": "timeline", "trace": "timeline", "trace-viewer": "timeline"},
    **{"hlo-stats": "ops", "hlo-ops": "ops", "framework-op-stats": "framework-ops", "kernel-stats": "kernels"},
    **{"memory-viewer": "memory", "buffers": "memory", "graph-viewer": "graph", "roofline-model": "roofline"},
    **{"top-hlo-ops": "ops", "hlo-op-profile": "op-profile", "hlo-modules": "memory", "peak-allocations": "memory"},
    **{"profile-summary": "overview", "kpi-metrics": "overview", "step-trace": "ledger --by step"},
    **{"xplane-events": "timeline", "input-pipeline": "input", "input-pipeline-analyzer": "input"},
    **{"pod-viewer": "cores"},
    **{"why": "findings", "reasons": "findings", "communication": "collectives", "arrays": "live-arrays"},
}
"""Pages of XProf, and words with one meaning, with the page that they are here."""

_OPTIONS: Mapping[str, str] = {
    **{"--top": "--limit", "--head": "--limit", "--fields": "--columns", "--select": "--columns"},
    **{"--where": "--filter", "--order-by": "--sort", "--sort-by": "--sort", "--group-by": "--by", "--groupby": "--by"},
    **{"--query": "--filter", "--to-csv": "--format csv --output"},
    **{"--csv": "--format csv", "--html": "--format html", "--since": "--from", "--until": "--to"},
}
_NEAR: Mapping[str, str] = {
    **{"cost": "ops", "flops": "ops", "top": "ops", "fusion": "ops", "hotspots": "ops", "time": "ledger"},
    **{"bandwidth": "roofline", "hbm": "memory", "oom": "memory", "peak": "memory", "utilization": "counters"},
    **{"stalls": "findings", "bottlenecks": "findings", "problems": "findings", "idle": "ledger", "waits": "ledger"},
    **{"gpu": "kernels", "tpu": "cores", "cpu": "hosts", "devices": "cores", "stragglers": "cores"},
    **{"network": "collectives", "ici": "collectives", "allreduce": "collectives", "code": "sources"},
    **dict.fromkeys(("--percentile", "--percentiles", "--p50", "--p90", "--p99"), "tpuprof-tui report inference PATH"),
    **{"-f": "--format or --filter", "-s": "--sort or --step", "-v": "--debug", "--verbose": "--debug"},
    **{"-c": "--core or --columns", "--indent": "--json", "--pretty": "--json", "--jq": "--keys"},
    **dict.fromkeys(("--ms", "--duration-ms"), "--duration 500ms"),
    **{"--run-a": "--before RUN", "--run-b": "--after RUN", "--out": "--output", "--space": "--disk-limit"},
    **{"--inspect": "tpuprof-tui doctor PATH", "--report": "tpuprof-tui report PAGE PATH", "--type": "--format"},
    **{"-k": "--filter", "-d": "--duration", "-q": "tpuprof-tui query PATH SQL", "--stat": "--md"},
    **dict.fromkeys(("--pid", "--rate"), "tpuprof-tui watch HOST:PORT"),
    **{"--grep": "--filter", "--device-id": "--core", "--rank": "--core or --host", "--name": "--op or --filter"},
    **dict.fromkeys(("--port", "--bind-all", "--host-port"), "ssh -t HOST tpuprof-tui PATH"),
}


def meant(words: Sequence[str]) -> list[str]:
    """The words of a call, as this program has them where another's have one meaning here."""
    if words[0] == "help":
        return [*words[1:], "--help"]
    left = [*words]
    if left[0] not in {*COMMANDS, *_COMMANDS} and left[1:] and left[1] in {*COMMANDS, *PAGE_NAMES}:
        left = [*left[1:], left[0]]  # the path came first
    if left[0] not in COMMANDS:
        is_page = left[0] in PAGE_NAMES or _page_word(left[0]) in {*PAGE_NAMES, *_PAGES} - {*_COMMANDS}
        left[:1] = ["report", left[0]] if is_page else _COMMANDS.get(left[0], left[0]).split()
    if left[:1] == ["report"] and left[1:]:
        page = _page_word(left[1])
        left[1:2] = _PAGES.get(page, page if page in PAGE_NAMES else left[1]).split()
        left = left[1:] if left[1] in COMMANDS and left[1] not in PAGE_NAMES else left
    return _options(left, "--output" if left[:1] == ["capture"] else "")


def _page_word(word: str) -> str:
    """A word that may mean a page, without what XProf puts in front of the names of its commands."""
    return word.replace("_", "-").removeprefix("get-").removeprefix("list-")


def _options(words: Sequence[str], logdir: str) -> list[str]:
    """Options by the names that they have here; a logdir's path stands at the end, or behind its name."""
    made, last = list[str](), list[str]()
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        name = name.replace("_", "-") if name.startswith("--") else name
        if name == "--logdir":
            last += [logdir] if logdir else []
            last += [value if equals else next(left, "")]
        elif equals:
            made.append(f"{_OPTIONS.get(name, name)}={value}" if name.startswith("--") else word)
        else:
            made += _OPTIONS.get(name, name).split() if name.startswith("--") else [word]
    return [*made, *last]


def nearest_in_meaning(name: str) -> str:
    """The page, or the option, that comes nearest to another program's by what it means; empty where none does."""
    name = name.replace("_", "-")
    return _NEAR.get(name) or _NEAR.get(name.lower(), "")
