"""The Chrome trace of a timeline: its structure, names, arguments, flows, and what readers could trip over."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from tests.support.build import PlaneBuilder, StatInput
from tpuprof.parsers.formats.proto.xplane_pb2 import XLine, XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.read.flows import FlowKind, read_flows
from tpuprof.parsers.timeline.read.timeline import read_timeline
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages.timeline.report.perfetto import write_hosts
from tpuprof.tui.pages.timeline.report.perfetto_args import LONGEST_TEXT, json_number, stat_flow

Event = dict[str, Any]
ASYNC = get_args(FlowKind).index("async")


def pieces(*profiles: bytes, within: tuple[int | None, int | None] = (None, None)) -> list[bytes]:
    """What is written of the profiles of some hosts, piece by piece."""
    traces = list(map(Trace.from_bytes, profiles))
    out: list[bytes] = []
    write_hosts([(read_timeline(trace, "host0", "test"), trace) for trace in traces], {}, out.append, *within)
    return out


def events_of(written: list[bytes]) -> list[Event]:
    """The events of what was written."""
    events: list[Event] = json.loads(b"".join(written))["traceEvents"]
    return events


def exported(space: XSpace, *within: int) -> list[Event]:
    """The events of the trace of a profile, or of those within an interval."""
    return events_of(pieces(space.SerializeToString(), within=within or (None, None)))  # type: ignore[arg-type]


def slices(space: XSpace, *within: int) -> list[Event]:
    """All but the names of processes and threads."""
    return [event for event in exported(space, *within) if event["ph"] != "M"]


def named(events: Sequence[Event], what: str) -> dict[tuple[int, int], str]:
    """Names by process and thread, 0 for a process."""
    return {(e["pid"], e.get("tid", 0)): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == what}


class Host:
    """A host plane with one thread."""

    def __init__(self) -> None:
        self.space = XSpace()
        self.builder = PlaneBuilder(self.space, "/host:CPU")
        self.line: XLine = self.builder.line("main")

    def event(self, name: str, start: int, duration: int, **stats: StatInput) -> None:
        self.builder.event(self.line, self.builder.event_id(name), start, duration, **stats)


def core(space: XSpace, ordinal: int = 0, plane_id: int = 0) -> tuple[PlaneBuilder, XLine]:
    """A TensorCore's plane and its line of ops."""
    builder = PlaneBuilder(space, f"/device:TPU:{ordinal}", plane_id)
    return builder, builder.line("XLA Ops")


def test_a_device_of_xprofs_range_is_numbered_from_its_plane() -> None:
    space = XSpace()
    for ordinal, plane_id in enumerate((4, 4, 9999, -3)):
        builder, line = core(space, ordinal, plane_id)
        builder.event(line, builder.event_id("op"), 0, 5)
    other = PlaneBuilder(space, "/device:CUSTOM:x", 3)
    other.event(other.line("line"), other.event_id("op"), 0, 5)
    pids = [pid for pid, _ in named(exported(space), "process_name")]
    assert sorted(pids) == [5, 504, 1001, 1002, 1003]  # each its own, also where XProf would have two in one


def test_lines_of_one_id_are_rows_of_their_own() -> None:
    host = Host()
    host.event("a", 0, 5)
    second = host.builder.line("other")
    second.id = host.line.id
    host.builder.event(second, host.builder.event_id("b"), 0, 5)
    found = exported(host.space)
    assert sorted(named(found, "thread_name").values()) == ["main", "other"]
    assert len({(e["pid"], e["tid"]) for e in found if e["ph"] == "X"}) == 2


def test_events_that_overlap_get_rows_of_their_own() -> None:
    host = Host()
    for name, start, end in (("a", 0, 100), ("inside", 10, 20), ("across", 50, 150), ("after", 160, 170)):
        host.event(name, start, end - start)
    found = exported(host.space)
    rows = named(found, "thread_name")
    assert {rows[e["pid"], e["tid"]]: e["name"] for e in found if e["name"] in ("a", "across")} == {
        "main": "a",
        "main row 1": "across",
    }


def test_hidden_events_and_stats_are_left_out() -> None:
    host = Host()
    host.event("MemoryAllocation", 0, 5, bytes=4)
    host.event("work", 0, 5, _r=1, flops=3, raw=b"\x00\x01")
    (event,) = slices(host.space)
    assert event["name"] == "work"
    assert "args" not in event


def test_a_step_name_takes_the_place_of_the_name() -> None:
    host = Host()
    host.event("step", 0, 5, step_name='train "7"')
    host.builder.event(host.line, host.builder.event_id("other", step_name="of all"), 6, 1)
    assert [(e["name"], e["args"]) for e in slices(host.space)] == [
        ('train "7"', {"step_name": 'train "7"'}),
        ("of all", {"step_name": "of all"}),
    ]


HOSTILE = ('"},{"ph":"X', "\x00\x1b[31m\x07", "\\u0000\\", "</script>", "\u2028\ud7ff\U0001f600", "\x7f\x9b")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_breaks_out_of_its_string(text: str) -> None:
    host = Host()
    host.line.name = text.encode()
    host.builder.event(host.line, host.builder.event_id(text, **{text: text}), 0, 5, **{text: text})
    written = pieces(host.space.SerializeToString())
    assert all(piece.isascii() for piece in written)
    assert not any(byte < 0x20 and byte != 0x0A for piece in written for byte in piece)
    events = events_of(written)
    (event,) = (e for e in events if e["ph"] == "X")
    assert event["name"] == text
    assert event["args"] == {text: text}
    assert text in named(events, "thread_name").values()


def test_bytes_that_are_no_text_are_written_all_the_same() -> None:
    host = Host()
    entry = host.builder.plane.event_metadata[1]
    entry.id, entry.name = 1, b"bad \xff\xed\xa0\x80 end"
    host.builder.event(host.line, 1, 0, 5)
    (event,) = slices(host.space)
    assert event["name"].startswith("bad \ufffd")


def test_long_texts_are_cut() -> None:
    host = Host()
    long = "x" * 1_000_000
    host.builder.event(host.line, host.builder.event_id(long, "short"), 0, 5, note=long)
    host.event(long + "y", 6, 1)
    assert sum(map(len, pieces(host.space.SerializeToString()))) < 5 * LONGEST_TEXT
    cut = "x" * LONGEST_TEXT + "...<truncated>"
    first, second = slices(host.space)
    assert (first["name"], first["args"]) == ("short", {"long_name": cut, "note": cut})
    assert second["name"] == cut


def test_numbers_that_no_double_holds_are_text() -> None:
    host = Host()
    stats: dict[str, StatInput] = {"big": 2**53 + 1, "small": -(2**63), "fits": 2**53, "nan": float("nan")}
    host.event("a", 0, 5, **stats, inf=float("inf"), less=float("-inf"), part=0.1)
    (event,) = slices(host.space)
    assert event["args"] == {
        **{"big": "9007199254740993", "small": "-9223372036854775808", "fits": 2**53},
        **{"nan": "NaN", "inf": "Infinity", "less": "-Infinity", "part": 0.1},
    }
    assert json_number(-(2**53)) == "-9007199254740992"


def test_values_by_reference_and_without_sign() -> None:
    host = Host()
    host.event("a", 0, 5)
    event = host.line.events[0]
    event.stats.add(metadata_id=host.builder.stat_id("kind"), ref_value=host.builder.stat_id("the kind"))
    event.stats.add(metadata_id=host.builder.stat_id("lost"), ref_value=999)
    event.stats.add(metadata_id=host.builder.stat_id("most"), uint64_value=2**64 - 1)
    event.stats.add(metadata_id=host.builder.stat_id("none"))
    event.stats.add(metadata_id=777, int64_value=3)
    (found,) = slices(host.space)
    assert found["args"] == {"kind": "the kind", "most": "18446744073709551615", "stat 777": 3}


def launched() -> XSpace:
    """A launch of a kernel, and the kernel."""
    host = Host()
    host.event("cuLaunchKernel", 0, 5, correlation_id=9)
    builder = PlaneBuilder(host.space, "/device:GPU:0", 1)
    builder.event(builder.line("Stream"), builder.event_id("gemm"), 20, 5, correlation_id=9)
    return host.space


def test_ids_of_arrows_mean_something_within_a_host_alone() -> None:
    written = pieces(*[launched().SerializeToString()] * 2)
    ends = [(event["bind_id"], event["pid"]) for event in events_of(written) if "bind_id" in event]
    assert len(ends) == 4 and len({number for number, _ in ends}) == 2
    assert len({(number, pid // 10_000) for number, pid in ends}) == 2


def test_asynchronous_ops_are_pairs_of_begin_and_end() -> None:
    builder = PlaneBuilder(space := XSpace(), "/device:TPU:0", 0)
    line = builder.line("Async XLA Ops")
    copy = builder.event_id("copy-start")
    for at, flow in enumerate((5 << 2 | 3, 6 << 2 | 3)):
        builder.event(line, copy, at * 10, 100, flow=flow, _a=1, id=at)
    builder.event(line, builder.event_id("begun"), 300, 10, flow=7 << 2 | 2, _a=1)
    builder.event(line, builder.event_id("ended"), 310, 10, flow=7 << 2 | 1, _a=1)
    found = slices(space)
    assert [(e["name"], e["ph"], e["id"], e["ts"]) for e in found] == [
        *(("copy-start", "b", 5, 0.0), ("copy-start", "e", 5, 1e-4)),
        *(("copy-start", "b", 6, 1e-5), ("copy-start", "e", 6, 1.1e-4)),
        *(("begun", "b", 7, 3e-4), ("ended", "e", 7, 3.1e-4)),
    ]
    assert found[0]["args"] == {"id": 0}
    assert "args" not in found[1]
    assert named(exported(space), "thread_name") == {(1, 1): "Async XLA Ops"}


def test_the_arrows_are_those_that_one_follows_on_the_timeline_but_for_asynchronous_ops() -> None:
    check_arrows(demo_path())


@pytest.mark.shared
def test_so_are_those_of_a_real_profile(shared: Path) -> None:
    check_arrows(str(next((shared / "profiles" / "tpu-v6e-inference").rglob("*.xplane.pb"))))


def check_arrows(path: str) -> None:
    """Follows every arrow of a profile, and looks for it in the trace; and the other way round."""
    out: list[bytes] = []
    with closing(Trace.open(path)) as trace:
        timeline = read_timeline(trace, "host0", path)
        flows = read_flows(trace, timeline)
        write_hosts([(timeline, trace)], {}, out.append)
    follow: Counter[tuple[float, float]] = Counter()
    for number, leads_to in enumerate(flows.target.tolist()):
        if flows.kind[number] == ASYNC:
            continue
        ends = []
        for node in (int(flows.source[number]), leads_to):
            place = flows.places[int(np.searchsorted(flows.first, node, side="right")) - 1]
            ends.append(int(timeline.track(place).start_ps[int(flows.events[node])]) / 1e6)
        follow[ends[0], ends[1]] += 1
    assert follow == drawn(events_of(out))


def drawn(events: Sequence[Event]) -> Counter[tuple[float, float]]:
    """Begin of the slice where an arrow begins, and of that where it ends."""
    arrows: Counter[tuple[float, float]] = Counter()
    ends: dict[object, tuple[list[float], list[float]]] = {}
    for event in events:
        if "bind_id" in event:
            outs, ins = ends.setdefault(event["bind_id"], ([], []))
            if event.get("flow_out"):
                outs.append(event["ts"])
            if event.get("flow_in"):
                ins.append(event["ts"])
    for outs, ins in ends.values():
        for end in ins:
            begin = max((begin for begin in outs if begin <= end), default=min(outs, default=None))
            if begin is not None:
                arrows[begin, end] += 1
    return arrows


def test_a_packed_flow() -> None:
    flow = stat_flow((12 << 58) | (34 << 2) | 1)
    assert (flow.id, flow.category, flow.begins, flow.ends) == (34, "tpu_launch", False, True)
    large = stat_flow(-1)  # all bits set, as in an int64
    assert large.id < 2**53
    assert (large.begins, large.ends, large.category) == (True, True, "")


def test_counters() -> None:
    builder = PlaneBuilder(space := XSpace(), "/device:TPU:0", 0)
    line = builder.line("_counters_")
    for at in range(5):
        builder.event(line, builder.event_id("Power(W)"), at * 10_000_000, 0, power=at * 1.5)
    found = slices(space)
    assert [(e["ph"], e["name"], e["ts"], e["args"]) for e in found] == [
        ("C", "Power(W)", at * 10.0, {"W": at * 1.5}) for at in range(5)
    ]
    # the value that holds where the interval begins is in it
    assert [e["ts"] for e in slices(space, 15_000_000, 30_000_000)] == [10.0, 20.0, 30.0]


def test_an_interval_has_what_reaches_into_it() -> None:
    host = Host()
    host.event("outer", 0, 100)
    for at in range(10):
        host.event(f"in {at}", at * 10, 5)
    found = [event["name"] for event in slices(host.space, 25, 42)]
    assert sorted(found) == ["in 2", "in 3", "in 4", "outer"]
    assert slices(host.space, 500, 600) == []


def test_times_before_the_clock_began_are_negative() -> None:
    host = Host()
    host.event("a", -1, 5)
    host.event("b", -2_500_000, 5)
    assert sorted((e["name"], e["ts"]) for e in slices(host.space)) == [("a", -1e-06), ("b", -2.5)]


def test_a_damaged_event_spoils_no_other() -> None:
    host = Host()
    for at in range(30):
        host.event("a", at * 10, 5, number=at)
    data = bytearray(host.space.SerializeToString())
    whole = Trace.from_bytes(bytes(data))
    first = whole.planes[0].lines[0].events()
    at = int(first.begin[10] + first.length[10]) - 3
    data[at] = 0xFF
    events = [e for e in events_of(pieces(bytes(data))) if e["ph"] == "X"]
    assert len(events) == 30
    assert sum(e.get("args") == {"number": int(e["ts"] * 1e5 + 0.5)} for e in events) >= 29


def test_many_events_come_in_pieces_and_always_the_same() -> None:
    host = Host()
    for at in range(20_000):
        host.event(f"event {at % 7}", at * 10, 5, number=at, text=f"text {at % 11}")
    written = pieces(host.space.SerializeToString())
    assert len(written) > 3
    assert max(map(len, written)) < 1 << 20
    assert written == pieces(host.space.SerializeToString())
    found = slices(host.space)
    assert [event["args"]["number"] for event in found] == list(range(20_000))
    assert all(event["args"]["text"] == f"text {at % 11}" for at, event in enumerate(found))


def test_a_profile_without_events_is_an_empty_trace() -> None:
    space = XSpace()
    PlaneBuilder(space, "/host:CPU").line("main")
    assert exported(space) == []
