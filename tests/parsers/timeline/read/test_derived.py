"""Derived tracks: which ops are one event, names, classes, lanes, and offloads; also against a plain reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.timeline.build import track
from tests.support.build import PlaneBuilder
from tpuprof.parsers.formats.xspace.core.types import LanedEvents
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.timeline.model import Track
from tpuprof.parsers.timeline.read.classes import event_names
from tpuprof.parsers.timeline.read.derived import MOST_LEVELS, derived_tracks

OpEvent = tuple[int, int, str]
"""Start, end and name of an op."""

Span = tuple[int, int, str]


@dataclass(frozen=True)
class Op:
    """What the metadata says of an op."""

    tf_op: str = ""
    source: str = ""
    category: str = "loop fusion"
    text: str = ""


def plane_of(ops: dict[str, Op]) -> Plane:
    """A core's plane that knows these ops, and has no events."""
    builder = PlaneBuilder.alone("/device:TPU:0")
    for name, op in ops.items():
        stats = {"hlo_category": op.category, "tf_op": op.tf_op, "source": op.source}
        builder.event_id(op.text or f"%{name} = f32[8] {name}()", name, **{k: v for k, v in stats.items() if v})
    return Trace(MemorySource(builder.space.SerializeToString(), "test")).planes[0]


def derive(
    ops: dict[str, Op], lanes: Sequence[Sequence[OpEvent]], groups: Sequence[tuple[int, int]] = ((0, 10**9),)
) -> dict[str, Track]:
    """The derived tracks by name; ops by lane, all in one step unless groups are given."""
    names = event_names(plane_of(ops), "core", ())
    keys = {name: at for at, name in enumerate(ops)}
    events = [(lane, start, end, keys[name]) for lane, part in enumerate(lanes) for start, end, name in part]
    grouping = track([(0, start, end, 0) for start, end in groups], kind="steps") if groups else None
    return {one.name: one for one in derived_tracks(names, in_order(track(events)), grouping)}


def in_order(ops: Track) -> LanedEvents:
    """Ops in order of time, the outer first, as one lane."""
    start, end, key = ops.start_ps, ops.end_ps[:], ops.key.astype(np.int32)
    order = np.lexsort((-end, start))
    return LanedEvents(start[order], end[order], key[order], np.zeros(0, np.int32), np.array([0, len(ops)], np.int64))


def spans(found: Track | None) -> list[list[Span]]:
    """The events of each lane."""
    if found is None:
        return []
    lanes = [range(*found.lane(lane).indices(len(found))) for lane in range(found.depth)]
    return [[(int(found.start_ps[at]), int(found.end_ps[at]), found.label(at)) for at in lane] for lane in lanes]


SCOPES, FRAMEWORK_OPS, SOURCE, OFFLOADS = "Framework Name Scope", "Framework Ops", "Source code", "Host Offload Ops"

LAYERS = {
    "a": Op("jit(f)/layer_0/dot_general:", "model.py:3", "convolution fusion"),
    "b": Op("jit(f)/layer_0/add:", "model.py:3"),
    "c": Op("jit(f)/layer_1/add:", "model.py:4"),
    "d": Op("jit(f)/mul:", "model.py:4"),
    "bare": Op(),
}


def test_names_are_op_types_and_long_names_are_whole() -> None:
    ops = {
        "a": Op("jit(f)/layer/dot_general[dims=1]:"),
        "b": Op("model/dense/MatMul:MatMul"),
        "c": Op("no colon here "),
        "d": Op("jit(f)/layer/add_12:"),
    }
    found = derive(ops, [[(at, at + 1, name) for at, name in enumerate(ops)]])[FRAMEWORK_OPS]
    names = found.names
    assert [found.label(at) for at in range(4)] == ["dot_general", "MatMul", "no colon here", "add"]
    assert [names.long_name(int(key)) for key in found.key] == [op.tf_op for op in ops.values()]


def test_a_scopes_long_name_is_its_path() -> None:
    found = derive(LAYERS, [[(0, 1, "b")]])[SCOPES]
    assert [found.names.long_name(int(key)) for key in found.key] == ["", "jit(f)/layer_0"]
    assert derive(LAYERS, [[(0, 1, "b")]])[SOURCE].names.long_name(0) == ""


def test_an_op_of_no_time_has_ended_when_another_begins() -> None:
    start, end, key = (
        np.array(column) for column in ((0, 5, 9, 5), (5, 9, 12, 5), (0, 2, 1, 1))
    )  # a, c, b, and b in c
    lane, step = np.array([0, 0, 1, 0], np.int32), track([(0, 0, 100, 0)], kind="steps")
    ops = LanedEvents(start, end, key.astype(np.int32), lane, np.array([0, 3, 4]))
    [scopes, *_] = derived_tracks(event_names(plane_of(LAYERS), "core", ()), ops, step)
    assert spans(scopes)[1] == [(0, 5, "layer_0"), (5, 9, "layer_1"), (9, 12, "layer_0")]


def test_very_deep_paths_are_cut() -> None:
    found = derive({"a": Op("/".join(["x"] * 5000) + "/add:")}, [[(0, 1, "a")]])[SCOPES]
    assert found.depth == MOST_LEVELS
    assert found.label(len(found) - 1).count("x") == 5000 - MOST_LEVELS + 1


def test_without_ops_or_metadata_there_is_nothing() -> None:
    assert derive(LAYERS, []) == {}
    of_nothing = track([(0, 0, 1, 0)])
    assert derived_tracks(of_nothing.names, in_order(of_nothing), None) == ()
    assert derive({"a": Op()}, [[(0, 1, "a")]]) == {}


# --- offloads

HOST = "f32[8]{0:T(8,128)S(5)}"


def offload_ops(*names: str) -> dict[str, Op]:
    """Ops that move data to or from the host's memory."""
    return {name: Op(text=f"%{name} = {HOST} {name}()") for name in names}


def test_a_copy_lasts_from_its_start_to_its_done() -> None:
    ops = offload_ops("copy-start.1", "copy-done.1", "copy-start", "copy-done") | {"copy-start.7": Op()}
    events = [
        *((0, 1, "copy-start.1"), (1, 2, "copy-start"), (3, 4, "copy-start.7"), (5, 9, "copy-done.1")),
        *((20, 25, "copy-done"), (30, 31, "copy-start.1"), (31, 35, "copy-done.1"), (40, 41, "copy-start")),
    ]
    found = derive(ops, [events])[OFFLOADS]
    assert spans(found) == [[(0, 9, "offload-copy.1"), (30, 35, "offload-copy.1")], [(1, 25, "offload-copy.0")]]
    assert found.event_class(0) == "copy"
    assert found.kind == "async"


# --- against a plain reference

PATHS = ("f/a/add:", "f/a/mul:", "f/b/add:", "f/add:", "g/a/add:", "add:", "")


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[OpEvent], list[tuple[int, int]]]:
    """Ops in a row that do not overlap, and steps."""
    at, events = 0, []
    for path in draw(st.lists(st.integers(0, len(PATHS) - 1), max_size=25)):
        at += draw(st.integers(0, 9))
        end = at + draw(st.integers(1, 4))
        events.append((at, end, str(path)))
        at = end
    borders = sorted(set(draw(st.lists(st.integers(0, 90), max_size=4))))
    return events, list(pairwise(borders))[:: draw(st.sampled_from((1, 2)))]


def reference(events: Sequence[OpEvent], groups: Sequence[tuple[int, int]]) -> tuple[dict[int, list[Span]], list[Span]]:
    """Scopes by level and framework ops, op by op as XProf's line builder goes about it."""
    scopes: dict[int, list[Span]] = {}
    flat: list[tuple[int, int, str, str]] = []
    before: tuple[list[str], int, int, int] | None = None
    flat_before: tuple[int, int, int] | None = None

    def group_of(time: int) -> int:
        return next((at for at, (a, b) in enumerate(groups) if a <= time < b), -1)

    def may_merge(last: tuple[int, int, int], start: int) -> bool:
        group = group_of(start)
        return group == last[2] and (group >= 0 or start - last[1] <= 2 * (last[1] - last[0]))

    for start, end, name in events:
        full = PATHS[int(name)]
        if not full:
            continue
        path = full.split("/")[:-1]
        merges = before is not None and may_merge(before[1:], start)
        shared = 0
        while before is not None and merges and shared < min(len(path), len(before[0])):
            if path[shared] != before[0][shared]:
                break
            shared += 1
        for level, scope in enumerate(path):
            row = scopes.setdefault(level, [])
            if level < shared:
                row[-1] = (row[-1][0], end, scope)
            else:
                row.append((start, end, scope))
        if path:
            before = (path, start, end, group_of(start))
        if flat and flat[-1][3] == full and flat_before is not None and may_merge(flat_before, start):
            flat[-1] = (flat[-1][0], end, flat[-1][2], full)
        else:
            flat.append((start, end, full.split("/")[-1].rstrip(":"), full))
        flat_before = (start, end, group_of(start))
    return scopes, [one[:3] for one in flat]


@settings(max_examples=3 * EXAMPLES)
@given(cases())
def test_derived_events_are_those_of_a_plain_loop(case: tuple[list[OpEvent], list[tuple[int, int]]]) -> None:
    events, groups = case
    found = derive({str(at): Op(path) for at, path in enumerate(PATHS)}, [events], groups)
    scopes, flat = reference(events, groups)
    assert spans(found.get(SCOPES)) == list(scopes.values())
    assert spans(found.get(FRAMEWORK_OPS)) == ([flat] if flat else [])


NAMES = st.sampled_from(["0", "2", "4"])


@st.composite
def nested_ops(draw: st.DrawFn) -> list[list[OpEvent]]:
    """Ops in two lanes, the second's inside of the first's."""
    outer = [(at * 20, at * 20 + 20, draw(NAMES)) for at in range(draw(st.integers(1, 4)))]
    inner = []
    for start, _, _ in outer:
        borders = sorted(set(draw(st.lists(st.integers(start, start + 20), max_size=6))))
        inner += [(a, b, str(draw(st.integers(0, 6)))) for a, b in zip(borders[::2], borders[1::2], strict=False)]
    return [outer, inner]


@settings(max_examples=2 * EXAMPLES)
@given(nested_ops())
def test_no_two_derived_events_of_a_lane_overlap(lanes: list[list[OpEvent]]) -> None:
    found = derive({str(at): Op(path, source=path) for at, path in enumerate(PATHS)}, lanes)
    for one in found.values():
        for lane in spans(one):
            assert all(a[1] <= b[0] for a, b in pairwise(lane))
        assert one.lanes[-1] == len(one)
        assert (np.diff(one.lanes) > 0).all()
    assert found[SCOPES].busy_ps == sum(end - start for start, end, _ in lanes[0])
