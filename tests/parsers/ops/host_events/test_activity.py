"""What the host did while the device was idle, against hand-known answers and unit cells. Times are in picoseconds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.host_events import host_of
from tpuprof.parsers.base.intervals import union
from tpuprof.parsers.ops.host_events.activity import (
    MOST_ACTIVITIES,
    Activity,
    Compilation,
    activities,
    compilations,
    host_during,
    in_flight,
)

Event = tuple[str, int, int]
"""Name, start and end."""

Gaps = tuple[NDArray[np.int64], NDArray[np.int64]]


def gaps_of(*spans: tuple[int, int]) -> Gaps:
    columns = np.array(spans, np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


# --- activities ----------------------------------------------------------------------------------------------------


def test_annotations_that_number_steps_are_marked() -> None:
    host = host_of([("train", 0, 100, {"step_num": 7}), ("load", 20, 50)], stats=("step_num",))
    found = activities(host, gaps_of((0, 100)))
    assert found == (Activity("thread 0", "train", 70, 1, marks_step=True), Activity("thread 0", "load", 30, 1))


@pytest.mark.parametrize(
    ("begins", "ends", "spans"),
    [([0], [500], True), ([0], [350], True), ([0], [300], False), ([0, 100], [100, 500], False)],
)
def test_an_event_through_most_gaps_and_runs_is_no_cause_of_them(
    begins: list[int], ends: list[int], spans: bool
) -> None:
    """Where nothing is launched: work that begins anew, or ends long before the last gap, may be one."""
    host = host_of([("work", begin, end) for begin, end in zip(begins, ends, strict=True)])
    found = activities(host, gaps_of(*((at, at + 50) for at in range(0, 500, 100))))
    assert [each.marks_step for each in found] == [spans]


def loop(name: str, covers: int = 100) -> list[Event]:
    """Five steps of 100: an annotation around so much of each, in which the program is launched, and then work."""
    of_step = [(name, 0, covers), ("PjitFunction(step)", 0, 10), ("load", 20, 70), ("read", 20, 40), ("parse", 45, 70)]
    return [(event, at * 100 + start, at * 100 + end) for at in range(5) for event, start, end in of_step]


@pytest.mark.parametrize(
    ("name", "covers", "spans"),
    [("train", 100, True), ("train", 75, False), ("$loop.py:7 train", 100, False), ("PjitFunction(f)", 100, False)],
)
def test_an_annotation_around_whole_steps_marks_them(name: str, covers: int, spans: bool) -> None:
    gaps = gaps_of(*((at * 100 + 15, at * 100 + 75) for at in range(5)))
    did, inside = host_during(host_of(loop(name, covers)), gaps)
    assert [(each.name, each.overlap_ps, each.marks_step) for each in did] == [
        ("parse", 125, False),
        ("read", 100, False),
        (name, 50, spans),
        ("load", 25, False),
    ]
    assert inside == ((Activity("thread 0", "load", 250, 5),) if spans else ())


SAVES = [
    ("PjitFunction(step)", 0, 10),
    ("$manager.py:10 wait_until_finished", 20, 90),
    ("$threading.py:637 wait", 25, 85),
    ("$_thread.lock acquire", 30, 80),
]


def test_what_the_launching_thread_waits_for_in_pythons_library_is_its_callers_time_where_somebody_calls() -> None:
    (found,) = activities(host_of(SAVES), gaps_of((15, 95)))
    assert found == Activity("thread 0", "$manager.py:10 wait_until_finished", 70, 1)
    (found,) = activities(host_of([SAVES[0], *SAVES[2:]]), gaps_of((15, 95)))
    assert found == Activity("thread 0", "$threading.py:637 wait", 60, 1)


def test_a_thread_that_launches_nothing_waits_in_pythons_library() -> None:
    found = activities(host_of(SAVES[:1], SAVES[1:]), gaps_of((15, 95)))
    assert [(one.name, one.overlap_ps) for one in found] == [
        ("$_thread.lock acquire", 50),
        ("$manager.py:10 wait_until_finished", 10),
        ("$threading.py:637 wait", 10),
    ]


def test_no_more_than_the_longest_are_kept_and_ties_go_by_thread_and_name() -> None:
    threads = [[(f"{name}{at}", at * 10, at * 10 + 5) for at in range(10)] for name in "ba"]
    found = activities(host_of(*threads), gaps_of((0, 1000)))
    assert len(found) == MOST_ACTIVITIES
    assert [one.name for one in found] == [f"b{at}" for at in range(10)] + ["a0", "a1"]


_EVENTS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 30)), max_size=12)
_GAPS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 15)), max_size=5)


@given(st.lists(_EVENTS, max_size=2), _GAPS)
def test_each_moment_in_gaps_counts_for_the_innermost_event_of_each_thread(
    threads: list[list[tuple[str, int, int]]], spans: list[tuple[int, int]]
) -> None:
    nested = []
    for events in threads:  # such that events nest: one that would reach beyond the one around it ends with it
        kept: list[Event] = []
        open_ends: list[int] = []
        for name, start, length in sorted(events, key=lambda event: (event[1], -event[2])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            end = min([start + length, *open_ends[-1:]])
            open_ends.append(end)
            kept.append((name, start, end))
        nested.append(kept)
    gaps = union(*gaps_of(*((start, start + length) for start, length in spans)))
    idle = {cell for a, b in zip(*(column.tolist() for column in gaps), strict=True) for cell in range(a, b)}
    expected: dict[tuple[str, str], list[int]] = {}
    for number, events in enumerate(nested):
        innermost: dict[int, str] = {}
        for name, start, end in events:
            own = idle & {*range(start, end)}
            innermost |= dict.fromkeys(own, name)
            expected.setdefault((f"thread {number}", name), [0, 0])[1] += bool(own)
        for name in innermost.values():
            expected[f"thread {number}", name][0] += 1
    found = activities(host_of(*nested), gaps)
    assert {(one.thread, one.name): [one.overlap_ps, one.occurrences] for one in found} == {
        key: of for key, of in expected.items() if of[0]
    }
    assert len({(one.thread, one.name) for one in found}) == len(found)


# --- compilations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("lower_sharding_computation", True),
        ("trace_to_jaxpr", True),
        ("XlaCompilationCache::Lookup", True),
        ("CompileAndLoad", True),
        ("TpuCompileOp", True),
        ("GpuCompiler::CompileToTargetBinary", True),
        ("$compiler.py:318 backend_compile_and_load", True),
        ("$_src/compiler.py:700 compile_or_get_cached", True),
        ("$train.py:3 backend_compiled", False),
        ("backend_compiled", False),
        ("compiler", False),
        ("PjitFunction(backend_compile)", False),
        ("a/backend_compile", False),
        ("", False),
    ],
)
def test_which_events_compile(name: str, is_one: bool) -> None:
    found = compilations(host_of([(name, 0, 10)]), gaps_of())
    assert found == ((Compilation(name, 0, 10, 0),) if is_one else ())


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), max_size=10), _GAPS)
def test_compilations_of_a_thread_are_apart_and_cover_their_events(
    spec: list[tuple[int, int]], spans: list[tuple[int, int]]
) -> None:
    gaps = union(*gaps_of(*((start, start + length) for start, length in spans)))
    idle = {cell for a, b in zip(*(column.tolist() for column in gaps), strict=True) for cell in range(a, b)}
    found = compilations(host_of([(f"XlaCompile{at}", a, a + n) for at, (a, n) in enumerate(spec)]), gaps)
    places = [range(one.start_ps, one.start_ps + one.duration_ps) for one in found]
    assert sorted(cell for place in places for cell in place) == sorted(
        {cell for a, n in spec for cell in range(a, a + n)}
    )
    assert [one.idle_ps for one in found] == [len(idle & {*place}) for place in places]


# --- asynchronous ops ----------------------------------------------------------------------------------------------


def test_async_ops_count_for_the_gaps_that_they_are_under_way_in() -> None:
    starts, ends = gaps_of((0, 100), (100, 200), (10, 30), (500, 600), (15, 20))
    names = ["copy-start.1", "copy-start.1", "all-gather-start.2", "never", "b"]
    found = in_flight(names, starts, ends, gaps_of((10, 20), (90, 130)))
    assert list(found.items()) == [("copy-start.1", 50), ("all-gather-start.2", 10), ("b", 5)]
    assert in_flight([], *gaps_of(), gaps_of((0, 5))) == {}
    assert in_flight(names, starts, ends, gaps_of()) == {}


@given(st.integers(2, 6), st.integers(1, 9), st.booleans())
def test_what_a_function_sends_is_its_time_unless_it_launches_too(count: int, long: int, launches: bool) -> None:
    events: list[Event] = [("PjitFunction(step)", 1000 * at, 1000 * at + 5) for at in range(count + 1)]
    events += [("$loop.py:9 run", 0, 1000 * (count + 1))] if launches else []
    around = "$loop.py:9 run" if launches else "$lora.py:40 swap"
    for at in range(count):
        begin = 1000 * at + 100
        events += [] if launches else [("$lora.py:40 swap", begin, begin + 10 * long + 20)]
        events += [("DevicePut", begin + 10, begin + 10 + 10 * long), ("BufferFromHostBuffer", begin + 11, begin + 15)]
    events.sort(key=lambda event: (event[1], -event[2]))
    found = {each.name: each.overlap_ps for each in activities(host_of(events), gaps_of((50, 1000 * count + 50)))}
    sent = {name for name in found if name in ("DevicePut", "BufferFromHostBuffer")}
    assert sent == ({"DevicePut", "BufferFromHostBuffer"} if launches else set())
    assert found[around] == (1000 * count - count * 10 * long - 5 * count if launches else count * (10 * long + 20))
