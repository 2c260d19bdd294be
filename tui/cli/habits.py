"""Words that people bring from other programs: what is meant by them here, and which call comes nearest to a wrong one.

A word with one meaning here is taken for it; another leads on to what comes nearest. Nobody loads this who types the
program's own words.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import nearest, printable
from tpuprof.tui.cli.arguments.options import PROGRAM, may_be_path
from tpuprof.tui.cli.arguments.values import FILE_FORMATS
from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.pages import PAGE_NAMES

_COMMANDS: Mapping[str, str] = {
    "top": "report ops",
    "version": "--version",
    "install-skills": "skill",
    "errors": "oom",
    **dict.fromkeys(("compare", "diff_sessions"), "diff"),
    **dict.fromkeys(("record", "profile"), "capture"),
    **dict.fromkeys(("sql", "query_events_db", "trace_processor"), "query"),
    **dict.fromkeys(("ls", "list", "log", "ps", "sessions"), "report runs"),
    **dict.fromkeys(("info", "summary", "stats", "stat", "show"), "report overview"),
    **dict.fromkeys(("analyze", "check_host_boundness"), "report findings"),
    **dict.fromkeys(("get", "describe", "print"), "report"),
    **dict.fromkeys(("check", "status", "config", "inspect", "inspect_capture"), "doctor"),
    **dict.fromkeys(("open", "view", "serve", "server", "run", "xprof", "tensorboard"), ""),
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
    **{"--query": "--filter", "--to-csv": "--format csv --output", "--to-json": "--format json"},
    **{"--stdio": "--format text", "--text": "--format text", "--tag": "--run"},
    **{"--csv": "--format csv", "--html": "--format html", "--since": "--from", "--until": "--to"},
}
_NEAR: Mapping[str, str] = {
    **{"cost": "ops", "flops": "ops", "top": "ops", "fusion": "ops", "hotspots": "ops", "time": "ledger"},
    **{"bandwidth": "roofline", "hbm": "memory", "oom": "memory", "peak": "memory", "utilization": "counters"},
    **{"stalls": "findings", "bottlenecks": "findings", "problems": "findings", "idle": "ledger", "waits": "ledger"},
    **{"gpu": "kernels", "tpu": "cores", "cpu": "hosts", "devices": "cores", "stragglers": "cores"},
    **{"network": "collectives", "ici": "collectives", "allreduce": "collectives", "code": "sources"},
    **{"annotate": "sources", "blame": "sources", "script": "timeline", "export": "timeline", "dump": "timeline"},
    **{"logs": "oom", "convert": "timeline", **dict.fromkeys(("to-csv", "to-json"), "ops")},
    **dict.fromkeys(("upload", "dev", "publish"), "share"),
    **{"aggregate-xplane-events": "timeline", "search-xplane-events": "timeline", "histogram": "inference"},
    **dict.fromkeys(("--event-regex", "--regex", "--pattern", "--match"), "--filter"),
    **{"--start": "--from", "--begin": "--from", "--end": "--to", "--line": "--track", "--print-summary": "--by"},
    **{"--file": 'tpuprof-tui query PATH "$(cat FILE.sql)"'},
    **dict.fromkeys(("--percentile", "--percentiles", "--p50", "--p90", "--p99"), "tpuprof-tui report inference PATH"),
    **{"-f": "--format or --filter", "-s": "--sort or --step", "-v": "--debug", "--verbose": "--debug"},
    **{"-c": "--columns or --core", "--indent": "--json", "--pretty": "--json", "--jq": "--keys"},
    **{"--run-a": "--before", "--run-b": "--after", "--out": "--output", "--space": "--disk-limit"},
    **{"--inspect": "tpuprof-tui doctor PATH", "--type": "--format"},
    **{"-k": "--filter", "-d": "--duration", "-q": "tpuprof-tui query PATH SQL", "--stat": "--md"},
    **dict.fromkeys(("--pid", "--rate"), "tpuprof-tui watch HOST:PORT"),
    **{"--grep": "--filter", "--device-id": "--core", "--rank": "--core or --host", "--name": "--op or --filter"},
    **dict.fromkeys(("--port", "--bind-all", "--host-port"), "ssh -t HOST tpuprof-tui PATH"),
}

_CORES = ("--device", "--device-id", "--plane", "--plane-regex", "--core")
_CORE = pattern(r"(?:/?device:)?TPU:([0-9]+)")
_INSTANTS = {"--start-time-ps": "--from", "--end-time-ps": "--to"}
_PATHS = ("--logdir", "--session-id", "--baseline-session-id", "--optimized-session-id", "--input", "-i")
"""Options of other programs that name a profile."""


def meant(words: Sequence[str]) -> list[str]:
    """The words of a call, as this program has them where another's have one meaning here."""
    if words[0] == "help":
        return [*words[1:], "--help"]
    left = _in_order([*words])
    if left[0] not in COMMANDS:
        is_page = left[0] in PAGE_NAMES or _page_word(left[0]) in {*PAGE_NAMES, *_PAGES} - {*_COMMANDS}
        left[:1] = ["report", left[0]] if is_page else _COMMANDS.get(left[0], left[0]).split()
    if left[:1] == ["report"] and left[1:]:
        page = _page_word(left[1])
        left[1:2] = _PAGES.get(page, page if page in PAGE_NAMES else left[1]).split()
        left = left[1:] if left[1] in COMMANDS and left[1] not in PAGE_NAMES else left
    if left[:1] == ["diff"]:
        left = [side for word in left for side in _sides(word)]
    return _options(left, "--output" if left[:1] == ["capture"] else "")


def _in_order(words: list[str]) -> list[str]:
    """The words with the command first, then the page, then the path; without a verb that says it twice."""
    ours, second = {*COMMANDS, *PAGE_NAMES}, words[1] if words[1:] else ""
    if may_be_path(words[0]) and second in ours:
        return [*words[1:], words[0]]
    if words[0] == "report" and may_be_path(second) and words[2:] and words[2] in PAGE_NAMES:
        return ["report", words[2], second, *words[3:]]
    if words[0] in _COMMANDS and words[0] not in ours and second in PAGE_NAMES:
        words = ["report", *words[1:]]
    elif words[0] in _COMMANDS and _COMMANDS.get(second) == _COMMANDS[words[0]] and not may_be_path(second):
        words = [words[0], *words[2:]]
    if words[:2] == ["report", "op"] and words[3:] and not may_be_path(words[2]) and may_be_path(words[3]):
        return ["report", "op", words[3], words[2], *words[4:]]
    return words


def _sides(word: str) -> Sequence[str]:
    """The two runs of ``A..B``; else the word itself."""
    sides = word.split("..") if not os.path.lexists(word) else []
    return sides if len(sides) == 2 and all(map(os.path.lexists, sides)) else [word]


def _page_word(word: str) -> str:
    """A word that may mean a page, without what XProf puts in front of the names of its commands."""
    return word.rstrip("@").replace("_", "-").removeprefix("get-").removeprefix("list-")


def _options(words: Sequence[str], logdir: str) -> list[str]:
    """Options by the names that they have here; a logdir's path stands at the end, or behind its name."""
    made, last = list[str](), list[str]()
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        name = name.replace("_", "-") if name.startswith("--") else name
        if name in (*_INSTANTS, *_CORES, "-o", "--output", "--ms"):
            made += _translated(name, value if equals else next(left, ""))
        elif name in _PATHS:
            path = value if equals else next(left, "")
            is_run = name == "--session-id" and not may_be_path(path)
            last += ["--run", path] if is_run else [*filter(None, [logdir]), path]
        elif equals:
            made.append(f"{_OPTIONS.get(name, name)}={value}" if name.startswith("--") else word)
        else:
            made += _OPTIONS.get(name, name).split() if name.startswith("--") else [word]
    return [*made, *last]


def _translated(name: str, value: str) -> list[str]:
    """An option and its value, where other programs write the value in another way."""
    if name in _INSTANTS and value.isdigit():
        return [_INSTANTS[name], f"{int(value) / 1e9:.12g}ms"]
    if name == "--ms":
        return ["--duration", f"{value}ms"]
    if name in _CORES and (core := _CORE.search(value)) is not None:
        return ["--core", core[1]]
    if name in ("-o", "--output") and value in (*FILE_FORMATS, "yaml", "wide"):
        return ["--format", value]
    return [name, value]


def nearest_in_meaning(name: str) -> str:
    """The page, or the option, that comes nearest to another program's by what it means; empty where none does."""
    name = name.replace("_", "-")
    return _NEAR.get(name) or _NEAR.get(name.lower(), "")


# --- the call that comes nearest to a wrong one

_MOST_CHANGES = 8
_UNKNOWN = pattern(r"(?i)unrecognized arguments: (.*)\.\Z")
_WRONG_VALUE = pattern(r"Argument (-\S+): ")
_NO_WORD = pattern(r"There is no (?:command|page) ([^;]+?)(?:;.*)?\.\Z")
_NO_PAGE = pattern(r"(.+) is not a page\.\Z")
_Parse = Callable[[Sequence[str]], object]


def nearest_call(words: Sequence[str], parse: _Parse) -> str:
    """The call that comes nearest to a wrong one and can be parsed; empty where there is none.

    Args:
        parse: raises ProfileError where words are wrong.
    """
    left = [*words]
    if left and left[0][:1] != "-" and left[0] not in COMMANDS and not may_be_path(left[0]):
        left = _with_word(left, 0)
    for _ in range(_MOST_CHANGES):
        wrong = _error(parse, left)
        if wrong is None:
            return f"{PROGRAM} {' '.join(map(_quoted, left))}" if left and left != [*words] else ""
        changed = _changed(left, wrong, parse)
        if isinstance(changed, str) or changed == left:
            return changed if isinstance(changed, str) else ""
        left = meant(changed) if changed else []
    return ""


def _error(parse: _Parse, words: Sequence[str]) -> ProfileError | None:
    """What is wrong with some words; asking for help is not, and would print it."""
    try:
        parse([word for word in words if word not in ("-h", "--help")])
    except ProfileError as error:
        return error
    return None


def _quoted(word: str) -> str:
    """A word as a shell takes it and a terminal may show it."""
    shown = printable(word)
    return shown if pattern(r"[\w./:=,@%+~-]+").fullmatch(shown) else "'" + shown.replace("'", "'\\''") + "'"


def _changed(words: list[str], wrong: ProfileError, parse: _Parse) -> list[str] | str:
    """Words with one error less; the same ones where it can't be mended; another call as text where that is meant."""
    if (found := _UNKNOWN.match(wrong.sentence)) is not None:
        unknown = found[1].split()[0]
        at = next((at for at, word in enumerate(words) if word.partition("=")[0] == unknown.partition("=")[0]), None)
        return words if at is None else _without(words, at, wrong.hint, parse)
    if (found := _WRONG_VALUE.match(wrong.sentence)) is not None:
        at = next((at for at, word in enumerate(words) if word.partition("=")[0] in found[1].split("/")), None)
        if at is None:
            return words
        rest = words[at + (1 if "=" in words[at] else 2) :]
        return [*words[:at], *(wrong.hint.split(" or ")[0].split() if wrong.hint.startswith("--") else []), *rest]
    if (found := _NO_WORD.match(wrong.sentence)) is not None and found[1] in words:
        return _with_word(words, words.index(found[1]))
    if (found := _NO_PAGE.match(wrong.sentence)) is not None and words[1:]:
        return ["report", "overview", *words[1:]]
    return words


def _with_word(words: list[str], at: int) -> list[str]:
    """Words with the command or page that comes nearest in the place of an unknown one."""
    name, rest = nearest_in_meaning(words[at]), words[at + 1 :]
    near = [name] if name else nearest(words[at], PAGE_NAMES if at else filter(None, COMMANDS), 1)
    if name and rest and nearest_in_meaning(rest[0]) == name:
        del rest[0]  # it means the same
    if near and near[0] in COMMANDS:
        return [near[0], *rest]
    return [*words[:at], *([] if at else ["report"]), *near, *rest] if near else words


def _without(words: list[str], at: int, hint: str, parse: _Parse) -> list[str] | str:
    """Words with another option, or none, in the place of an unknown one; or the call that a hint names."""
    name, equals, value = words[at].partition("=")
    for option in hint.split(" or ") if hint.startswith("--") else []:
        changed = [*words[:at], f"{option}={value}" if equals else option, *words[at + 1 :]]
        if (wrong := _error(parse, changed)) is None or not any(each in wrong.sentence for each in (name, option)):
            return changed
    paths = [word for word in words[1:] if may_be_path(word)] or [word for word in words[:1] if may_be_path(word)]
    if "PATH" in hint:
        return hint.replace("PATH", _quoted(paths[0]) if paths else "PATH")
    end = at + 1
    if not equals and name.startswith("-") and end < len(words) and words[end][:1] != "-" and words[end] not in paths:
        end += 1
    return [*words[:at], *words[end:]]
