"""The exported trace against XProf's `trace_viewer`: every event, its names, times, rows and arguments."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.parity.oracle.fields import Agrees, Comparison, Difference, Value, compare
from tests.parity.oracle.golden import GPUS, RUNS, files_of, golden_answer
from tests.parity.oracle.live import ask
from tests.parity.oracle.odd_profile import odd_profile
from tests.parity.oracle.op_fields import summary_of
from tests.tui.pages.timeline.test_perfetto import events_of, pieces
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.core.ops import ASYNC_OPS_LINE, STEPS_LINE
from tpuprof.tui.demo import demo_path

SHRUNK = "XProf cuts scopes of one span by 1 ns a level, so that its viewer stacks them in order; ours are as measured"
NUMBERED = "XProf calls a step by its group's number, and adds it to a root's name; ours are as the program named them"
GROUP = "what XProf adds to events when it groups them by steps; the steps are a row of their own"
OPAQUE = "bytes, of which XProf says no more than that they are"
OF_THE_OP = "of the ops that start and end the copy, where it stands too"
UNDIRECTED = "XProf leaves out asynchronous ops with a flow; one whose flow has no direction is a slice of ours"
UNJOINED = "XProf finds no other end of this arrow, ours joins the events that name one id"
RENUMBERED = "XProf numbers the rows of GPUs anew, with room for those that it draws beside them"
NO_EVENTS = "a row without any event"

Fields = dict[str, Value]
Events = list[dict[str, Any]]

_ADDED = ("group_id", "step_name", "step_idle_time_ps", "is_eager")
_LEFT_OUT = dict.fromkeys(_ADDED, GROUP) | {"memory_access_breakdown": OPAQUE}
_LEFT_OUT_OF_OFFLOADS = dict.fromkeys(("_a", "long_name", "raw_bytes_accessed", "shape_with_layout"), OF_THE_OP)


def our_events(path: Path) -> Events:
    """The trace that we export of a profile."""
    return events_of(pieces(path.read_bytes()))


def rows_of(events: Events) -> dict[tuple[int, int], str]:
    """Names of the rows by process and thread; the rows of offloads, which are handed out differently, have one."""
    named = [event for event in events if event.get("name") == "thread_name"]
    names = {(event["pid"], event["tid"]): str(event["args"]["name"]) for event in named}
    return {key: name.partition(" row ")[0] if "Offload" in name else name for key, name in names.items()}


def unnumbered(row: str, event: dict[str, Any]) -> str:
    """A slice's name without the number that XProf gives it: all of a step's name, the end of that of a step's root."""
    number = event.get("args", {}).get("step_num", event.get("args", {}).get("iter_num"))
    return "" if row == STEPS_LINE else str(event["name"]).removesuffix(f" {number}")


def slices(events: Events) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The slices: key, name of the row, event.

    Slices of one name that begin at one instant in one row are distinguished by number.
    """
    rows = rows_of(events)
    seen: Counter[str] = Counter()
    found = [event for event in events if event.get("ph") in ("X", "i")]
    for event in sorted(found, key=lambda event: (event["ts"], -event.get("dur", 0.0))):
        row = rows[event["pid"], event["tid"]]
        key = f"{event['pid']}/{row}/{unnumbered(row, event)}@{event['ts']!r}"
        seen[key] += 1
        yield f"{key}#{seen[key]}", row, event


def drawn_of_gpus(events: Events, summary: HostSummary) -> Events:
    """What XProf draws beside the streams of GPUs: steps, and the ops and modules that our kernels name."""
    rows, program = rows_of(events), dict(zip(summary.table.name, summary.table.program_id.tolist(), strict=True))
    launched = {event["bind_id"]: event["ts"] for event in events if event.get("flow_out")}
    annotated = [event["ts"] for event in events if "step_num" in event.get("args", {})]
    made: list[tuple[int, str, str, float, float, Fields]] = []
    spans: dict[tuple[int, str, str, float], list[float]] = {}
    for event in (event for event in events if event.get("flow_in")):
        pid, begin, op = event["pid"], event["ts"], event["args"].get("hlo_op")
        step, stream = max(at for at in annotated if at <= launched[event["bind_id"]]), rows[pid, event["tid"]]
        of = [(STEPS_LINE, "")]
        if op is not None:
            number, origin = program[op], f"from {stream.partition('(')[0].removeprefix('Stream ')}"
            args: Fields = {"long_name": f"{number}/{op}"}
            made.append((pid, f"XLA Ops - {origin}", op, begin, event["dur"], args))
            of.append((f"XLA Modules - {origin}", f"{event['args']['hlo_module']}({number})"))
        for row, name in of:
            span = spans.setdefault((pid, row, name, step), [begin, begin])
            span[:] = min(span[0], begin), max(span[1], round(begin + event["dur"], 6))
    made += [(pid, row, name, begin, end - begin, {}) for (pid, row, name, _), (begin, end) in spans.items()]
    drawn = {(pid, row) for pid, row, *_ in made}
    named = [{"ph": "M", "name": "thread_name", "pid": pid, "tid": row, "args": {"name": row}} for pid, row in drawn]
    return named + [
        {"ph": "X", "pid": pid, "tid": row, "name": name, "ts": begin, "dur": duration, "args": args}
        for pid, row, name, begin, duration, args in made
    ]


def metadata(events: Events) -> Fields:
    """Names and places of processes and threads that have events; the rows of offloads are one for all."""
    out: Fields = {}
    rows = rows_of(events)
    for event in events:
        if event.get("ph") == "M" and "Offload" not in rows.get((event["pid"], event.get("tid", -1)), ""):
            row = rows.get((event["pid"], event.get("tid", -1)), "")
            place = row if "#" in row or row == STEPS_LINE else event.get("tid", "")
            out[f"{event['pid']}/{place}: {event['name']}"] = next(iter(event["args"].values()))
    return out


def arrow(event: dict[str, Any], known: dict[int, int]) -> str | None:
    """The arrow that ends or begins at a slice; arrows are numbered as they occur, as their own ids are arbitrary.

    XProf packs it into a number: two bits of direction, 56 of id, six of category. Ours is a flow of the format.
    """
    packed = event.get("args", {}).get("flow")
    if packed is not None:
        number, into, out = (int(packed) >> 2) & ((1 << 56) - 1), bool(int(packed) & 1), bool(int(packed) & 2)
    elif "bind_id" in event:
        number, into, out = event["bind_id"], event.get("flow_in", False), event.get("flow_out", False)
    else:
        return None
    return f"{known.setdefault(number, len(known))} in {into} out {out}"


def event_flow(event: dict[str, Any]) -> int:
    """XProf's number of the arrow at an event without its direction, -1 without one."""
    return int(event.get("args", {}).get("flow", -4)) >> 2


def fields(events: Events) -> Fields:
    """Every field of every slice."""
    out: Fields = {}
    arrows: dict[int, int] = {}
    for key, _, event in slices(events):
        if (end := arrow(event, arrows)) is not None:
            out[f"{key}: args.flow"] = end
        out |= {f"{key}: name": event["name"], f"{key}: ts": event["ts"]}
        if event["ph"] == "X":
            out[f"{key}: dur"] = event["dur"]
        args = event.get("args", {})
        out |= {f"{key}: args.{name}": value for name, value in args.items() if name != "flow"}
    return out


def differences_of(theirs: Events, ours: Fields) -> dict[str, Difference]:
    """The fields that differ on purpose; what we leave out is set to None in `ours`."""
    out: dict[str, Difference] = {}
    ends = Counter(event_flow(event) for event in theirs)
    for key, row, event in slices(theirs):
        left_out: Mapping[str, str] = _LEFT_OUT | (_LEFT_OUT_OF_OFFLOADS if "Offload" in row else {})
        for name in left_out.keys() & event.get("args", {}).keys():
            field = f"{key}: args.{name}"
            if field not in ours:
                ours[field] = None
                out[field] = Difference(None, left_out[name])
        if event["name"] != ours.get(f"{key}: name") and unnumbered(row, event) != event["name"]:
            out[f"{key}: name"] = Difference(ours.get(f"{key}: name"), NUMBERED)
        if row == STEPS_LINE and f"{key}: args.step_name" in ours:
            out[f"{key}: args.step_name"] = Difference(ours[f"{key}: args.step_name"], NUMBERED)
        if ends[event_flow(event)] == 1:
            out[f"{key}: args.flow"] = Difference(ours.get(f"{key}: args.flow"), UNJOINED)
        dur = ours.get(f"{key}: dur")
        if row == "Framework Name Scope" and isinstance(dur, float):
            cut = round((dur - event.get("dur", 0.0)) * 1e3, 6)
            if cut in range(1, 64):
                out[f"{key}: dur"] = Difference(dur, SHRUNK)
    return out


def compare_traces(theirs: Events, ours: Events) -> Comparison:
    """Every field of XProf's slices, processes and threads."""
    mine = fields(ours)
    differences = differences_of(theirs, mine)
    result = compare(fields(theirs), mine, differences)
    named, our_names = metadata(theirs), metadata(ours)
    filled = {f"{event['pid']}/{place}" for _, row, event in slices(theirs) for place in ("", event["tid"], row)}
    empty = {key for key in named if key.partition(":")[0] not in filled and key not in our_names}
    our_names |= dict.fromkeys(empty)
    stated = dict.fromkeys(empty, Difference(None, NO_EVENTS))
    moved = [key for key in named if key.endswith("thread_sort_index") and ("#" in key or f"/{STEPS_LINE}:" in key)]
    stated |= {key: Difference(our_names.setdefault(key), RENUMBERED) for key in moved}
    result.add(compare(named, our_names, stated))
    return result


@pytest.mark.shared
@pytest.mark.parametrize("name", [*RUNS, GPUS])
def test_every_event_is_xprofs_or_differs_for_a_reason(shared: Path, name: str, agrees: Agrees) -> None:
    for host, path in files_of(shared, name).items():
        theirs, ours = golden_answer(shared, name, "trace_viewer", host)["traceEvents"], our_events(path)
        ours += drawn_of_gpus(ours, summary_of(path)) if name == GPUS else []
        result = compare_traces(theirs, ours)
        of_xprof = {key for key, _, _ in slices(theirs)}
        undirected = {key for key, row, event in slices(ours) if row == ASYNC_OPS_LINE and "bind_id" not in event}
        assert of_xprof == {key for key, _, _ in slices(ours)} - (undirected - of_xprof)  # UNDIRECTED
        assert result.compared > 200
        agrees(result, "trace")


@pytest.mark.parametrize(("name", "least"), [("demo", 500_000), ("odd profile", 500)])
def test_every_event_is_that_of_the_xprof_that_is_installed(
    tmp_path: Path, name: str, least: int, agrees: Agrees
) -> None:
    content = gzip.decompress(Path(demo_path()).read_bytes()) if name == "demo" else odd_profile()
    theirs = ask(content, tmp_path, ("trace_viewer",))["trace_viewer"]["traceEvents"]
    ours = our_events(tmp_path / "host0.xplane.pb")
    result = compare_traces(theirs, ours)
    assert {key for key, _, _ in slices(ours)} == {key for key, _, _ in slices(theirs)}
    assert result.compared > least
    agrees(result, f"trace, live {name}")
