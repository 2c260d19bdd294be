"""Flows: what leads to what, against going through all pairs of events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.timeline.build import track
from tests.support.build import PlaneBuilder, StatInput, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.parsers.timeline.read.async_ops import latest
from tpuprof.parsers.timeline.read.flows import Flow, Flows, event_indices, read_flows
from tpuprof.parsers.timeline.read.timeline import read_timeline

Spec = tuple[str, int, int, dict[str, StatInput]]
"""Name, start, duration and stats of an event."""

IN, OUT, BOTH = 1, 2, 3


def add_line(plane: PlaneBuilder, name: str, events: Sequence[Spec], texts: dict[str, str] | None = None) -> None:
    line = plane.line(name)
    for event, start, duration, stats in events:
        text = (texts or {}).get(event)
        number = plane.event_id(text, event) if text else plane.event_id(event)
        plane.event(line, number, start, duration, **stats)


def read(space: XSpace) -> tuple[Timeline, Flows]:
    trace = trace_of(space)
    timeline = read_timeline(trace, "host0", "host0.xplane.pb")
    return timeline, read_flows(trace, timeline)


def named(timeline: Timeline, flow: Flow) -> tuple[str, str, str, int]:
    """Direction and kind of a flow, and name and start of its other end."""
    one = timeline.sections[flow.section].tracks[flow.track]
    return flow.direction, flow.kind, one.label(flow.event), int(one.start_ps[flow.event])


def of_all(timeline: Timeline, flows: Flows) -> dict[tuple[str, int], list[tuple[str, str, str, int]]]:
    """The flows of every event that has some, by its name and start."""
    out = {}
    for at, section in enumerate(timeline.sections):
        for number, one in enumerate(section.tracks):
            for event in range(len(one)):
                found = flows.of(at, number, event)
                assert bool(found) == (event in flows.events[flows._events_of(at, number)])
                if found:
                    out[one.label(event), int(one.start_ps[event])] = [named(timeline, flow) for flow in found]
    return out


def test_a_launch_is_known_by_run_and_queue_where_it_has_no_id() -> None:
    core = PlaneBuilder.alone("/device:TPU:3")
    add_line(core, "XLA Modules", [("jit_f", at, 5, {"run_id": at, "queue_id": 0}) for at in (50, 60)])
    host = PlaneBuilder(core.space, "/host:CPU", 2)
    runs: list[Spec] = [
        ("DoEnqueueProgram", at - 40, 4, {"run_id": at, "queue_id": 0, "device_ordinal": 3}) for at in (60, 50)
    ]
    add_line(host, "main", [*runs, ("DoEnqueueProgram", 30, 4, {"run_id": 50, "queue_id": 0, "device_ordinal": 2})])
    assert of_all(*read(core.space)) == {
        ("jit_f", 50): [("in", "launch", "DoEnqueueProgram", 10)],
        ("jit_f", 60): [("in", "launch", "DoEnqueueProgram", 20)],
        ("DoEnqueueProgram", 10): [("out", "launch", "jit_f", 50)],
        ("DoEnqueueProgram", 20): [("out", "launch", "jit_f", 60)],
    }


def test_flows_go_from_event_to_event_in_order_of_time() -> None:
    core = PlaneBuilder.alone("/device:TPU:0")
    one, other = 5 << 2, 6 << 2
    events: list[Spec] = [
        ("begin", 10, 2, {"flow": one | OUT}),
        ("early", 5, 2, {"flow": one | IN}),  # nothing leads to it
        ("middle", 20, 2, {"flow": one | BOTH}),
        ("end", 30, 2, {"flow": one | IN}),
        ("unsaid", 35, 1, {"flow": one}),
        ("alone", 40, 2, {"flow": other | OUT}),
        ("async", 50, 2, {"flow": one | IN, "_a": 1}),
    ]
    add_line(core, "XLA TraceMe", events)
    assert of_all(*read(core.space)) == {
        ("begin", 10): [("out", "flow", "middle", 20)],
        ("middle", 20): [("in", "flow", "begin", 10), ("out", "flow", "end", 30)],
        ("end", 30): [("in", "flow", "middle", 20)],
    }


def test_asynchronous_events_go_from_begin_to_end_and_whole_ones_nowhere() -> None:
    core = PlaneBuilder.alone("/device:TPU:0")
    category = 9 << 58
    events: list[Spec] = [
        ("begin", 10, 2, {"flow": category | 20 | OUT, "_a": 1}),
        ("end", 30, 2, {"flow": category | 20 | IN, "_a": 1}),
        ("of another kind", 40, 2, {"flow": 20 | IN, "_a": 1}),
        ("whole", 50, 2, {"flow": 40 | BOTH, "_a": 1}),
        ("again", 60, 2, {"flow": 40 | BOTH, "_a": 1}),
    ]
    add_line(core, "XLA TraceMe", events)
    assert of_all(*read(core.space)) == {
        ("begin", 10): [("out", "async", "end", 30)],
        ("end", 30): [("in", "async", "begin", 10)],
    }


TEXTS = {
    "copy-start.1": "%copy-start.1 = (f32[8], f32[8], u32[]) copy-start(f32[8] %p)",
    "copy-done.7": "%copy-done.7 = f32[8] copy-done((f32[8], f32[8], u32[]) %copy-start.1)",
    "fusion": "%fusion = f32[8] fusion(f32[8] %copy-done.7)",
}


def test_an_asynchronous_op_goes_from_start_over_its_span_to_done() -> None:
    core = PlaneBuilder.alone("/device:TPU:0")
    add_line(
        core,
        "XLA Ops",
        [
            *(("copy-start.1", at, 2, {}) for at in (10, 110)),
            *(("fusion", at, 30, {}) for at in (12, 112)),
            *(("copy-done.7", at, 8, {}) for at in (42, 142, 200)),
        ],
        TEXTS,
    )
    line = core.line("Async XLA Ops")
    span = core.event_id(TEXTS["copy-start.1"] + ", metadata={}", "async-copy")
    core.event(line, span, 10, 40, hlo_op="copy-done.7")
    core.event(line, span, 110, 40, hlo_op="copy-done.7")
    found = of_all(*read(core.space))
    for at in (0, 100):
        start, done = ("async", "copy-start.1", 10 + at), ("async", "copy-done.7", 42 + at)
        over = ("async", "async-copy", 10 + at)
        assert Counter(found.pop(start[1:])) == Counter([("out", *over), ("out", *done)])
        assert Counter(found.pop(over[1:])) == Counter([("in", *start), ("out", *done)])
        assert Counter(found.pop(done[1:])) == Counter([("in", *start), ("in", *over)])
    assert found == {}


def test_ops_far_from_a_span_are_not_its_ends() -> None:
    core = PlaneBuilder.alone("/device:TPU:0")
    add_line(core, "XLA Ops", [("send-start", 10, 2, {}), ("send-done", 90, 5, {})])
    add_line(core, "Async XLA Ops", [("send-start", 20, 30, {})])
    assert len(read(core.space)[1]) == 0


def test_a_profile_without_links_has_no_flows() -> None:
    space = XSpace()
    add_line(PlaneBuilder(space, "/device:TPU:0", 1), "XLA Ops", [("dot", 0, 5, {})])
    timeline, flows = read(space)
    assert len(flows) == 0
    assert flows.of(0, 0, 0) == flows.of(7, 7, 7) == ()
    assert flows.events[flows._events_of(7, 7)].tolist() == []
    assert len(read_flows(trace_of(space), replace(timeline, sections=()))) == 0


ENDS: st.SearchStrategy[dict[str, StatInput]] = st.one_of(
    st.just({}),
    st.tuples(st.sampled_from([7, 12]), st.integers(0, 2)).map(lambda end: {"_pt": end[0], "_p": end[1]}),
    st.tuples(st.sampled_from([7, 12]), st.integers(0, 2)).map(lambda end: {"_ct": end[0], "_c": end[1]}),
)


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), ENDS), max_size=8), min_size=1, max_size=3))
def test_flows_are_symmetric_and_follow_the_last_producer(
    threads: list[list[tuple[int, dict[str, StatInput]]]],
) -> None:
    host = PlaneBuilder.alone("/host:CPU")
    ends: dict[int, dict[str, StatInput]] = {}
    for number, events in enumerate(threads):
        specs: list[Spec] = []
        for tick, stats in events:
            start = tick * 100 + len(ends)  # no two start together
            ends[start] = stats
            specs.append(("event", start, 50, stats))
        add_line(host, f"thread {number}", specs)
    found = {start: flows for (_, start), flows in of_all(*read(host.space)).items()}
    links = Counter((start, at) for start, flows in found.items() for way, _, _, at in flows if way == "out")
    assert links == Counter((at, start) for start, flows in found.items() for way, _, _, at in flows if way == "in")
    assert set(links.values()) <= {1}
    expected = set()
    for user, stats in ends.items():
        makers = [at for at, one in ends.items() if "_ct" in stats and one.get("_pt") == stats["_ct"]]
        makers = [at for at in makers if ends[at]["_p"] == stats["_c"]]
        if makers:
            expected.add((max((at for at in makers if at <= user), default=min(makers)), user))
    led = {maker for maker, _ in expected}
    for maker, stats in ends.items():
        users = [at for at, one in ends.items() if "_pt" in stats and one.get("_ct") == stats["_pt"]]
        users = [at for at in users if ends[at]["_c"] == stats["_p"] and at >= maker]
        if users and maker not in led:
            expected.add((maker, min(users)))
    assert set(links) == expected


SPOTS = st.lists(st.tuples(st.integers(0, 2), st.integers(-4, 4)), max_size=12)


@given(SPOTS, SPOTS)
def test_the_latest_item_is_the_last_of_its_group_by_then(
    items: list[tuple[int, int]], questions: list[tuple[int, int]]
) -> None:
    columns = [np.array([spot[at] for spot in spots], np.int64) for spots in (items, questions) for at in (0, 1)]
    expected = []
    for group, time in questions:
        earlier = [(when, at) for at, (of, when) in enumerate(items) if of == group and when <= time]
        expected.append(max(earlier)[1] if earlier else -1)
    assert latest(*columns).tolist() == expected


@given(st.permutations(range(12)), st.lists(st.integers(0, 15), max_size=10))
def test_events_are_found_by_their_places_in_the_file(order: list[int], wanted: list[int]) -> None:
    one = track([(at % 3, at, at + 1, 0) for at in range(12)])
    one = replace(one, place=np.array(order, np.uint32))
    expected = [order.index(place) if place < 12 else -1 for place in wanted]
    assert event_indices(one, np.array(wanted, np.int64)).tolist() == expected
