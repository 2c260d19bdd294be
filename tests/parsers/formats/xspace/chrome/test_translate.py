"""A trace is read as the profile that it was made from: planes, lines, events, stats, metadata, to the picosecond."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.files.chrome import Event, events_of, read, trace_of
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.xspace.chrome import threads, translate


def named(pid: object, name: str, **threads_: str) -> list[Event]:
    """Names of a process and of its threads, ``t7`` for thread 7."""
    out: list[Event] = [{"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}]
    for tid, thread in threads_.items():
        out.append({"ph": "M", "pid": pid, "tid": int(tid[1:]), "name": "thread_name", "args": {"name": thread}})
    return out


def slice_(ts: object, dur: object, name: object = "e", tid: object = 3, pid: object = 3, **args: object) -> Event:
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, **({"args": args} if args else {})}


OP = {
    "long_name": "%fusion.1 = f32[8]{0} fusion(%p)",
    "hlo_category": "loop fusion",
    "tf_op": "jit(f)/add:",
    "model_flops": "64",
    "bytes_accessed": "96",
    "memory_access_breakdown": "<opaque bytes>",
    "device_offset_ps": "1000",
}


def test_an_op_has_its_own_stats_in_its_metadata_and_those_of_an_occurrence_in_its_event() -> None:
    head = named(3, "/device:TPU:0", t2="XLA Modules", t3="XLA Ops")
    ops = [slice_(at, 2, "fusion.1", **{**OP, "device_offset_ps": str(at)}) for at in (12, 22, 31, 45)]
    runs = [slice_(at, 8, f"jit_f({program})", tid=2, run_id=at) for at, program in ((10, 7), (20, 2**64 - 1), (30, 7))]
    (plane,) = trace_of(*head, *ops, *runs).planes  # runs stand behind the ops here
    assert (plane.name, plane.id, [(line.name, line.id) for line in plane.lines]) == (
        "/device:TPU:0",
        2,
        [("XLA Ops", 3), ("XLA Modules", 2)],
    )
    found = [event for event in events_of(plane) if event[0] == "XLA Ops"]
    assert [event[1:] for event in found] == [
        (OP["long_name"], at * 10**6, 2 * 10**6, {"device_offset_ps": at}) for at in (12, 22, 31, 45)
    ]
    ids = plane.lines[0].events().metadata_id.tolist()
    assert ids[0] == ids[2] and len(set(ids)) == 3  # one op a program, and one outside of any
    told = []
    for number in (ids[0], ids[1], ids[3]):
        row = plane.event_metadata.row(number)
        assert row is not None and plane.event_metadata.display_name(row) == "fusion.1"
        found_stats = plane.event_metadata.message(row).stats
        told.append({plane.stat_name(stat.metadata_id): plane.stat_value(stat) for stat in found_stats})
    assert [stats.pop("program_id", None) for stats in told] == [7, 2**64 - 1, None]
    symbols = [stats.pop("symbol_id", None) for stats in told]
    assert symbols[0] == symbols[1] is not None and symbols[2] is None
    own = {"hlo_category": "loop fusion", "tf_op": "jit(f)/add:", "model_flops": 64, "flops": 64, "bytes_accessed": 96}
    for stats in told:  # bytes by memory were there, and are unknown
        assert stats.pop("memory_access_breakdown") == b"\xff"
        assert stats == own


@given(st.integers(-(2**45), 2**58), st.integers(0, 2**50))
def test_times_are_exact(start: int, duration: int) -> None:
    """Also those that a double does not hold; an event of one picosecond is XProf's way to write one of none."""
    micros = [f"{'-' if ps < 0 else ''}{abs(ps) // 10**6}.{abs(ps) % 10**6:06}" for ps in (start, duration)]
    text = f'{{"traceEvents":[{{"ph":"X","pid":1,"tid":1,"ts":{micros[0]},"dur":{micros[1]},"name":"e"}}]}}'
    ((_, _, at, lasts, _),) = events_of(read(text.encode()).planes[0])
    assert (at, lasts) == (start, duration if duration > 1 else 0)


@given(st.integers(0, 10**15), st.integers(2, 10**14))
def test_times_as_xprof_writes_them(start: int, duration: int) -> None:
    """As doubles of 17 digits."""
    text = f'[{{"ph":"X","pid":1,"tid":1,"ts":{start / 1e6:.17g},"dur":{duration / 1e6:.17g}}}]'
    ((_, _, at, lasts, _),) = events_of(read(text.encode()).planes[0])
    assert (at, lasts) == (start, duration)


def test_times_since_1970_begin_at_the_first() -> None:
    events = [slice_(1_760_000_000_000_000.0 + at, 1, f"e{at}") for at in (0, 5, 3)]
    assert [event[1:4] for event in events_of(trace_of(*events).planes[0])] == [
        ("e0", 0, 10**6),
        ("e3", 3 * 10**6, 10**6),
        ("e5", 5 * 10**6, 10**6),
    ]


def test_events_lie_in_order_with_their_own_stats() -> None:
    events = [slice_(at, lasts, f"e{at}", n=str(at * lasts)) for at, lasts in ((5, 1), (1, 9), (1, 20), (3, 1))]
    assert [(event[1], event[3], event[4]) for event in events_of(trace_of(*events).planes[0])] == [
        ("e1", 20 * 10**6, {"n": 20}),
        ("e1", 9 * 10**6, {"n": 9}),
        ("e3", 10**6, {"n": 3}),
        ("e5", 10**6, {"n": 5}),
    ]


@pytest.mark.parametrize(
    ("value", "read_as"),
    [
        *(("12", 12), (12, 12), ("-3", -3), (2**63, 2**63), ("18446744073709551615", 2**64 - 1), ("012", "012")),
        *((1.5, 1.5), ("0.25", 0.25), ("1e3", 1000.0), ("12 B", "12 B"), ("", ""), (True, 1), ([1, "a"], '[1, "a"]')),
        *((2**70, str(2**70)), ("é\ud800", "é?"), ("<opaque bytes>", None), (None, None), ("١", "١")),
    ],
)
def test_an_argument_is_a_number_where_it_reads_as_one(value: object, read_as: object) -> None:
    ((*_, stats),) = events_of(trace_of(slice_(0, 1, **{"what": value})).planes[0])
    assert stats == ({} if read_as is None else {"what": read_as})
    ((*_, stats),) = events_of(trace_of(slice_(0, 1, step_name="12")).planes[0])
    assert stats == {"step_name": "12"}


def test_other_kinds_of_events() -> None:
    def event(kind: str, ts: float, name: str = "e", **more: object) -> Event:
        return {"ph": kind, "pid": 1, "tid": 1, "ts": ts, "name": name, **more}

    trace = trace_of(
        *(event("B", 1, "outer", args={"x": 1}), event("B", 2, "inner"), event("E", 3), event("E", 9), event("E", 10)),
        *(event("i", 4, "instant", s="t"), event("B", 20, "open")),
        *(event("b", 5, "copy", id=9, cat="async", args={"n": 1}), event("e", 8, "copy", id=9, cat="async")),
        event("X", 30, "launch", dur=1, bind_id=12, cat="tpu_launch", flow_out=True),
        {"ph": "C", "pid": 1, "ts": 6, "name": "Power(W)", "args": {"W": 2.5}},
    )
    assert sorted(events_of(trace.planes[0]), key=lambda found: found[2]) == [
        ("thread 1", "outer", 10**6, 8 * 10**6, {"x": 1}),
        ("thread 1", "inner", 2 * 10**6, 10**6, {}),
        ("thread 1", "instant", 4 * 10**6, 0, {}),
        ("thread 1", "copy", 5 * 10**6, 3 * 10**6, {"n": 1, "flow": 9 << 2 | 3, "_a": 1}),
        ("_counters_", "Power(W)", 6 * 10**6, 0, {"W": 2.5}),
        ("thread 1", "open", 20 * 10**6, 0, {}),
        ("thread 1", "launch", 30 * 10**6, 10**6, {"flow": 12 << 58 | 12 << 2 | 2}),
    ]


def test_rows_that_viewers_derive_are_left_out() -> None:
    """Of a TPU with ops, whose rows follow from them again; where nothing else is left, they are kept."""
    first = 0xDEADBEEF
    rows = [slice_(0, 1, tid=first + 3), slice_(0, 1, tid=first + 7)]
    head = named(1, "/device:TPU:0", t3="XLA Ops", **{f"t{first + 3}": "Framework Ops"})
    assert [
        line.name for line in trace_of(*head, slice_(0, 1, pid=1), *[{**r, "pid": 1} for r in rows]).planes[0].lines
    ] == ["XLA Ops"]
    head = named(3, "/device:TPU:0", **{f"t{first + 3}": "Framework Ops"})
    assert [line.name for line in trace_of(*head, *rows).planes[0].lines] == ["Framework Ops", f"thread {first + 7}"]


def test_what_a_trace_lacks_is_said() -> None:
    trace = trace_of(*named(3, "/device:TPU:0", t3="XLA Ops"), slice_(0, 1, "fusion.1", **OP))
    (problem,) = trace.problems
    assert (problem.code, problem.subject, trace.losses) == ("viewer_trace", "/logs/h.trace.json", ())
    assert problem.sentence == (
        "h.trace.json is a trace for a viewer, not the profile: it has no HLO modules, memory events, asynchronous "
        "ops, bytes by memory, or type and peaks of the device; figures that need them are unknown, FLOPs are the "
        "model's"
    )
    assert trace_of(slice_(0, 1)).problems[0].sentence.endswith("of the device; figures that need them are unknown")


def test_xprofs_cut_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert translate.MOST_EVENTS == (1_000_000, 5_000_000)
    monkeypatch.setattr(translate, "MOST_EVENTS", (3, 5))
    for count, said in ((2, False), (3, True), (4, False), (5, True)):
        losses = trace_of(*(slice_(at, 1) for at in range(count)), {}).losses
        assert len(losses) == said
        if said:
            assert losses[0].sentence == (
                f"/logs/h.trace.json: it holds {count} events, the most that the profiler writes: later events are "
                "missing."
            )


def test_more_than_there_is_room_for_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_PENDING", 10)
    ways: list[Any] = [
        lambda n: slice_(n, 1, f"name {n}"),
        lambda n: slice_(n, 1, tid=n),
        lambda n: slice_(n, 1, **{f"argument {n}": 1}),
        lambda n: slice_(n, 1, text=f"text {n} " * 50),
        lambda n: slice_(n, 1, "op", long_name=f"%op = f32[{n}] " * 50),
        lambda n: {"ph": "b", "pid": 1, "tid": 1, "ts": n, "name": "x", "id": n},
    ]
    for way in ways:
        few = [way(n) for n in range(40)]
        assert trace_of(*few).losses == ()
        monkeypatch.setattr(translate, "ROOM", 60_000)
        trace = trace_of(*few, *(way(n) for n in range(40, 400)))
        monkeypatch.setattr(translate, "ROOM", threads.ROOM)
        assert "more than a profile can; nothing is read" in trace.losses[0].sentence
        assert 5 < len(events_of(trace.planes[0])) < 300


def test_memory_goes_with_what_is_kept() -> None:
    """Text of 12 MB that repeats itself takes less."""
    one = json.dumps(slice_(5, 1, "fusion.1", **OP)) + ","
    count = 40_000
    text = (one * 100).encode()

    def pieces() -> Any:
        yield b'{"traceEvents":['
        for _ in range(count // 100):
            yield text
        yield b"{}]}"

    tracemalloc.start()
    source = translate.chrome_source(pieces(), "x", lambda: "")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert source.size > count * 10
    assert peak < len(text) * count // 100 == 12_120_000


# --- hostile traces


@pytest.mark.parametrize(
    "event",
    [
        *(5, "text", None, [], [[]], {"ph": 5}, {"ph": ["X"]}, {"ph": "X"}, {"ph": "X", "ts": None, "dur": 1}),
        *({"ph": "X", "ts": "NaN", "dur": 1}, {"ph": "X", "ts": 1e999, "dur": 1}, {"ph": "X", "ts": 1, "dur": "x"}),
        *(slice_(1, 1, pid=[]), slice_(1, 1, tid={}), slice_("1e30", 1), slice_(10**400, 1), slice_(1, 10**40)),
        *({"ph": "M", "name": "thread_name", "tid": []}, {"ph": "M", "name": "process_name", "args": 3}),
        *({"ph": "b", "id": []}, {"ph": "e", "id": {}}, {"ph": "B", "tid": []}, {"ph": "C", "args": 7, "pid": []}),
    ],
)
def test_an_event_that_is_none_spoils_no_other(event: Any) -> None:
    trace = trace_of(slice_(2, 1, "good", n=1), event, slice_(3, 1, "good", n=2), {})
    found = [event for plane in trace.planes for event in events_of(plane) if event[1] == "good"]
    assert [(event[2], event[4]) for event in found] == [(2 * 10**6, {"n": 1}), (3 * 10**6, {"n": 2})]


@pytest.mark.parametrize(
    "event",
    [
        *(
            slice_(1, 1, None),
            slice_(1, 1, 5),
            slice_(1, 1, {"a": 1}),
            slice_(1, 1, "x", pid=None, tid="a"),
            slice_(1, -5),
        ),
        *({**slice_(1, 1), "args": [1]}, slice_(1, 1, "op", long_name=5, hlo_category=[1, {"a": None}])),
        *({**slice_(1, 1), "bind_id": "0x1", "flow_in": True}, {**slice_(1, 1), "bind_id": -1, "flow_out": True}),
        slice_(1, 1, "op", long_name="a", device_offset_ps="x", device_duration_ps=[]),
    ],
)
def test_odd_events_are_read_as_far_as_they_go(event: Event) -> None:
    trace = trace_of(slice_(2, 1, "good", pid=9), event)
    assert sum(len(events_of(plane)) for plane in trace.planes) >= 1
    assert trace.losses == ()


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"traceEvents": []}', '{"a": 1}', "[5]", '{"traceEvents": [{}, {}]}', "{,"]
)
def test_json_without_events_is_no_trace(text: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read(text.encode())
    assert caught.value.code == "corrupt"
    assert "is JSON, but not a trace of a profiler" in caught.value.sentence
    assert "HOST.trace.json.gz" in caught.value.hint
