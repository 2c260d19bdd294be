"""Clocks of hosts are aligned by collectives, and the error that is named holds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.composed.aligned_hosts import MS, US, profiles, timelines
from tpuprof.parsers.base.intervals import no_ints
from tpuprof.parsers.timeline.hosts.clocks import CollectiveRuns, HostClocks, clock_of
from tpuprof.parsers.timeline.hosts.joined import clock_words
from tpuprof.parsers.timeline.model import Clock

NS = 1000


def clocks(*made: bytes) -> list[Clock]:
    axis = HostClocks()
    return [axis.clock(timeline) for timeline in timelines(made)]


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(
    st.lists(st.tuples(st.integers(4, 60), st.integers(4, 60)), min_size=4, max_size=12, unique_by=max),
    st.integers(-9_000 * US, 9_000 * US),
    st.booleans(),
    st.integers(0, 3 * US),
)
def test_the_clock_is_off_by_no_more_than_the_error(
    busy: list[tuple[int, int]], ahead: int, is_async: bool, jitter: int
) -> None:
    hosts = [[50 * units for units in times] for times in zip(*busy, strict=True)]
    made = profiles(hosts, [0, ahead], is_async=is_async, jitter_ps=jitter)
    clock = clocks(*made)[1]
    assert clock.source == "collectives" and clock.error_ps is not None
    assert abs(clock.shift_ps + ahead) <= clock.error_ps + jitter  # nobody can know who of them left late


def test_where_one_host_is_always_late_there_are_bounds_and_its_own_clock_may_lie_in_them() -> None:
    busy = [[1000] * 12, [9000] * 12]
    alone = clocks(*profiles(busy, [0, -4 * MS], is_async=True))[1]
    assert alone.source == "collectives" and alone.error_ps is not None and alone.error_ps > 100 * US
    assert abs(alone.shift_ps - 4 * MS) <= alone.error_ps
    known = clocks(*profiles(busy, [0, -4 * MS], is_async=True, began_ns=[10**18, 10**18 + 4 * MS // NS]))[1]
    assert (known.source, known.shift_ps, known.error_ps) == ("start times", 4 * MS, known.error_ps)
    assert clock_words(known).startswith("aligned by the hosts' own time, which ")
    wrong = clocks(*profiles(busy, [0, -4 * MS], is_async=True, began_ns=[10**18, 10**18 + 30 * MS // NS]))[1]
    assert wrong.source == "collectives"


def test_collectives_overrule_own_clocks() -> None:
    made = profiles([[1000] * 9, [1100] * 9], [0, 2 * MS], began_ns=[10**18, 10**18 + 7 * MS // NS])
    clock = clocks(*made)[1]
    assert clock.source == "collectives" and clock.shift_ps == -2 * MS


def test_hosts_without_steps_are_matched_by_their_collectives() -> None:
    busy = [[1000 + 37 * (number * number % 11) for number in range(30)] for _ in range(2)]
    clock = clocks(*profiles(busy, [0, 5 * MS], has_steps=False))[1]
    assert (clock.source, clock.shift_ps) == ("collectives", -5 * MS)


def test_hosts_without_collectives_go_by_their_own_clocks_or_not_at_all() -> None:
    busy = [[1000], [1000]]  # one collective may agree by chance
    own = clocks(*profiles(busy, [0, 0], began_ns=[10**18, 10**18 + 500]))[1]
    assert own == Clock("start times", 500 * NS) and "no collective confirms" in clock_words(own)
    apart = clocks(*profiles(busy, [0, 0], began_ns=[10**18, 10**18 + 10**12]))[1]
    assert apart == Clock("none") and "not aligned" in clock_words(apart)
    assert clocks(*profiles(busy, [0, 0]))[1] == Clock("none")


def test_a_first_host_without_collectives_is_the_axis_all_the_same() -> None:
    first, *others = timelines(profiles([[1000] * 8] * 3, [0, 3 * MS, 5 * MS]))
    axis = HostClocks()
    empty = axis.clock(type(first)("coordinator", "coordinator", (), 0, 0))
    found = [axis.clock(timeline) for timeline in others]
    assert (empty.source, found[0].source, found[1].source) == ("axis", "none", "collectives")
    assert found[1].shift_ps - found[0].shift_ps == -2 * MS


def test_only_what_all_take_part_in_counts() -> None:
    runs = CollectiveRuns.of(timelines(profiles([[1000] * 3], [0], is_async=True))[0])
    assert runs.names == ("all-reduce-done.1",) and len(runs) == 3
    assert (runs.arrive_ps < runs.end_ps - 500 * US).all(), "it came when it started the op"


@given(*[st.integers(1, 9)] * 4, st.integers(-20, 20))
def test_captures_that_began_by_their_own_clocks_met_if_they_overlap(
    first: int, length: int, its_first: int, its_length: int, later: int
) -> None:
    none = no_ints()

    def capture(first_ns: int, length_ns: int, began_ns: int) -> CollectiveRuns:
        return CollectiveRuns((), none, none, none, none, None, first_ns * NS, (first_ns + length_ns) * NS, began_ns)

    shifted = range(its_first + later, its_first + its_length + later)
    met = max(first, shifted.start) < min(first + length, shifted.stop)
    axis = capture(first, length, 50)
    assert clock_of(axis, capture(its_first, its_length, 50 + later), axis) == (
        Clock("start times", later * NS) if met else Clock("none")
    )
