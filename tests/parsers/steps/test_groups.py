"""Groups: what belongs to which root, against hand-known answers, XProf's, and a plain account of the algorithm.

XProf 2.24.2 gives every answer written down here for the same profile; its trace viewer shows them as `group_id`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.build import PlaneBuilder, StatInput, present, trace_of
from tests.support.host_events import read_host
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.host_events.events import read_threads
from tpuprof.parsers.steps.groups.graph import first_greater
from tpuprof.parsers.steps.groups.groups import GROUP_STATS, EventGroups, event_groups, grouping_line, is_grouped

US = 1_000_000
Spec = tuple[str, int, int, Mapping[str, StatInput]]
"""Name, start and end in microseconds, and stats."""

Threads = Sequence[Sequence[Spec]]


def add_lines(space: XSpace, plane_name: str, lines: Sequence[tuple[str, Sequence[Spec]]]) -> PlaneBuilder:
    plane = PlaneBuilder(space, plane_name, len(space.planes) + 1)
    for name, events in lines:
        plane.spans(name, events, US)
    return plane


def space_of(threads: Threads, *cores: Sequence[tuple[str, Sequence[Spec]]], kind: str = "TPU") -> XSpace:
    """A host with these threads, and cores with these lines."""
    space = XSpace()
    add_lines(space, "/host:CPU", [(f"thread {at}", events) for at, events in enumerate(threads)])
    for ordinal, lines in enumerate(cores):
        add_lines(space, f"/device:{kind}:{ordinal}", lines)
    return space


def grouped(space: XSpace) -> EventGroups:
    trace = trace_of(space)
    host = present(read_host(trace, GROUP_STATS))
    cores = [plane for plane in trace.planes if plane.name.startswith("/device:TPU:")]
    gpus = [plane for plane in trace.planes if plane.name.startswith("/device:GPU:")]
    streams = [thread for plane in gpus for thread in read_threads(plane, GROUP_STATS)]
    return event_groups(host, cores, streams, is_grouped(trace))


def of_threads(groups: EventGroups) -> list[list[int]]:
    return [thread.of_events().tolist() for thread in groups.threads]


def of_cores(groups: EventGroups) -> list[list[int]] | None:
    return None if groups.cores is None else [core.tolist() for core in groups.cores]


def makes(kind: int, number: int) -> dict[str, int]:
    return {"_pt": kind, "_p": number}


def uses(kind: int, number: int) -> dict[str, int]:
    return {"_ct": kind, "_c": number}


def modules(*spans: tuple[int, int, dict[str, int]]) -> list[tuple[str, list[Spec]]]:
    return [("XLA Modules", [("jit_step", start, end, stats) for start, end, stats in spans])]


def test_steps_group_before_modules_and_take_the_links_of_what_they_hold() -> None:
    python = [("train", 0, 100, {"_r": 1}), ("Execute", 10, 20, {**makes(5, 1)}), ("more", 200, 210, uses(7, 7))]
    steps: tuple[str, list[Spec]] = ("Steps", [("0", 50, 100, {}), ("1", 100, 150, {}), ("2", 150, 200, {})])
    inside = [("jit_step", 60, 90, {}), ("jit_step", 110, 120, uses(5, 1)), ("jit_step", 149, 151, uses(5, 1))]
    marks = ("XLA TraceMe", [("mark", 160, 170, {}), ("mark", 130, 140, makes(7, 7))])
    groups = grouped(space_of([python], [("XLA Modules", inside), steps, marks]))
    assert of_cores(groups) == [[-1, 0, -1]]
    # a line's events are taken in order, so the second mark is looked for in the last step only
    assert of_threads(groups) == [[0, 0, -1]]


def test_batches_are_roots_by_name() -> None:
    python = [
        ("TraceContext", 0, 100, {}),
        ("ProcessBatch", 10, 20, {}),
        ("BatchingSessionRun", 30, 40, {"_r": 5}),
        ("TraceContext", 110, 120, {"_r": 9}),
    ]
    groups = grouped(space_of([python]))
    assert [root.name for root in groups.roots] == ["TraceContext", "ProcessBatch", "TraceContext"]
    assert of_threads(groups) == [[2, 1, 2, 0]]


def test_iterations_of_a_loop_are_the_groups() -> None:
    def process(start: int, end: int, step: int, iteration: int) -> Spec:
        return "ExecutorState::Process", start, end, {"id": step, "iter_num": iteration}

    first = [("train", 0, 50, {"_r": 1}), process(60, 90, 1, 1), process(100, 120, 1, 0), process(130, 140, 2, 0)]
    second = [process(10, 20, 1, 1), ("work", 11, 12, {}), process(95, 99, 1, 0), process(200, 210, 3, 4)]
    wait: Spec = ("IteratorGetNextOp::DoCompute", 300, 310, {"id": 1, "iter_num": 0})
    data: Spec = ("InstantiatedCapturedFunction::Run", 400, 410, {"id": 3})
    groups = grouped(space_of([first, second, [wait, data]]))
    assert [(root.step_num, root.thread, root.start_ps // US) for root in groups.roots] == [(1, 1, 10), (0, 1, 95)]
    assert of_threads(groups) == [[-1, 0, 1, -1], [0, 0, 1, -1], [1, -1]]


def test_groups_of_the_profile_stay_where_nothing_else_is_known() -> None:
    python = [("train", 0, 100, {"_r": 1, "group_id": 50}), ("other", 200, 300, {"group_id": 42})]
    space = space_of([python], modules((10, 20, {})))
    assert of_threads(grouped(space)) == [[0, 42]]
    for plane in space.planes:  # now every plane knows the stat, so the profile counts as grouped
        if plane.name != b"/host:CPU":
            plane.stat_metadata[99].id, plane.stat_metadata[99].name = 99, b"group_id"
    assert of_threads(grouped(space)) == [[50, 42]]
    assert grouped(space).roots == ()
    add_lines(space, "Task Environment", [])
    assert of_threads(grouped(space)) == [[50, 42]]
    add_lines(space, "/host:metadata", [])
    assert of_threads(grouped(space)) == [[0, 42]]


def test_kernels_belong_to_what_launched_them() -> None:
    python = [
        ("launch", 0, 5, {"correlation_id": 1}),
        ("train", 10, 50, {"_r": 1}),
        ("launch", 20, 25, {"correlation_id": 1}),
        ("launch", 30, 35, {"correlation_id": 2}),
        ("launch", 60, 65, {"correlation_id": 2}),
    ]
    stream = [("Stream #1", [("k", 40, 50, {"correlation_id": 1}), ("k", 60, 70, {"correlation_id": 2})])]
    groups = grouped(space_of([python], stream, kind="GPU"))  # the viewer fills gaps with the last group of the GPU
    assert [line.of_events().tolist() for line in groups.streams] == [[0, -1]]


def test_a_core_without_events_has_no_grouping_line() -> None:
    space = space_of([], [("Steps", []), ("XLA Modules", []), ("XLA Ops", [("op", 0, 1, {})])], [])
    planes = trace_of(space).planes
    assert [grouping_line(plane) for plane in planes] == [None, None, None]


@given(st.lists(st.integers(0, 6), max_size=40), st.data())
def test_first_greater(values: list[int], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=10)) if values else []
    expected = [
        next((later for later in range(at + 1, len(values)) if values[later] > values[at]), len(values))
        for at in places
    ]
    assert first_greater(np.array(values, np.int64), np.array(places, np.int64)).tolist() == expected


@dataclass
class Node:
    """An event of the plain account of XProf's algorithm."""

    start: int
    end: int
    stats: dict[str, int]
    is_host: bool
    group: int = -1
    children: list[Node] = field(default_factory=list)
    parents: list[Node] = field(default_factory=list)

    @property
    def level(self) -> int | None:
        return self.stats.get("_r") if self.is_host else None

    def add(self, child: Node) -> None:
        self.children.append(child)
        child.parents.append(self)


def needs_group(root: Node) -> bool:
    """Whether no other root of its level leads to a root."""
    waiting = list(root.parents)
    seen = {id(root), *(id(node) for node in waiting)}
    while waiting:
        node = waiting.pop()
        if node.level is not None and node.level == root.level:
            return False
        waiting += [parent for parent in node.parents if id(parent) not in seen]
        seen |= {id(parent) for parent in node.parents}
    return root.group < 0


def plain_groups(threads: list[list[Node]], cores: list[list[Node]]) -> int:
    """Sets the groups of all nodes, an event at a time; returns how many there are."""
    makers: dict[tuple[int, int], list[Node]] = {}
    users: dict[tuple[int, int], list[Node]] = {}
    for nodes in [*threads, *cores]:
        around: list[Node] = []
        for node in nodes:
            if "_p" in node.stats:
                makers.setdefault((node.stats["_pt"], node.stats["_p"]), []).append(node)
            if "_c" in node.stats:
                users.setdefault((node.stats["_ct"], node.stats["_c"]), []).append(node)
            if node.is_host and not node.stats.get("_a"):
                while around and not around[-1].start <= node.start <= node.end <= around[-1].end:
                    around.pop()
                if around:
                    around[-1].add(node)
                around.append(node)
    for key, found in makers.items():
        for maker in found:
            for user in users.get(key, []):
                maker.add(user)
    roots = [node for nodes in threads for node in nodes if node.level is not None]
    roots.sort(key=lambda node: (-(node.level or 0), node.start))
    count = 0
    for root in roots:
        if not needs_group(root):
            continue
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.group < 0:
                node.group = count
                waiting += node.children
        count += 1
    return count


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[list[Node]], list[list[Node]]]:
    """Threads and cores whose events nest, overlap and link at random. No two roots begin at one time."""
    small = st.integers(0, 3)

    def nodes(is_host: bool, most: int) -> list[Node]:
        spans = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40)), max_size=most))
        out = []
        for start, length in sorted(spans, key=lambda span: (span[0], -span[1])):
            stats: dict[str, int] = {}
            if draw(st.booleans()):
                stats |= {"_pt": 5, "_p": draw(small)}
            if draw(st.booleans()):
                stats |= {"_ct": 5, "_c": draw(small)}
            if is_host and draw(small) == 0:
                stats["_r"] = draw(st.integers(0, 2))
            if is_host and draw(small) == 0:
                stats["_a"] = draw(st.integers(0, 1))
            out.append(Node(start, start + length, stats, is_host))
        return out

    threads = [nodes(True, 8) for _ in range(draw(st.integers(1, 3)))]
    cores = [nodes(False, 5) for _ in range(draw(st.integers(0, 2)))]
    taken: set[int] = set()
    for node in (node for thread in threads for node in thread if "_r" in node.stats):
        if node.start in taken:
            del node.stats["_r"]
        taken.add(node.start)
    return threads, cores


@given(forests())
@settings(max_examples=3 * EXAMPLES)
def test_groups_are_those_of_the_plain_account(forest: tuple[list[list[Node]], list[list[Node]]]) -> None:
    threads, cores = forest

    def specs(nodes: list[Node]) -> list[Spec]:
        return [("e", node.start, node.end, dict(node.stats)) for node in nodes]

    on_cores = [[("XLA Modules", specs(nodes))] for nodes in cores]
    groups = grouped(space_of([specs(nodes) for nodes in threads], *on_cores))
    count = plain_groups(threads, cores)
    assert len(groups.roots) == count
    assert of_threads(groups) == [[node.group for node in nodes] for nodes in threads]
    expected = [[node.group for node in nodes] for nodes in cores]
    assert of_cores(groups) == (expected if any(group >= 0 for core in expected for group in core) else None)
