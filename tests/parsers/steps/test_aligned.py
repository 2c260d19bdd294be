"""Steps of several cores and hosts together: what the capture cut into, what is numbered anew, what adds up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.parsers.pages.findings.build import grid
from tests.support.build import present
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.ops.roofline import WORK_COUNT
from tpuprof.parsers.steps import aligned as module
from tpuprof.parsers.steps import times as step_times
from tpuprof.parsers.steps import xprof_view
from tpuprof.parsers.steps.accounts.owners import OWNERS
from tpuprof.parsers.steps.aligned import AlignedSteps, InputSource, LostOps, align, join_hosts
from tpuprof.parsers.steps.boundaries.markers import CoreSteps
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.xprof_view import xprof_breakdowns

AllReduce = tuple[int, int, int]
"""Step, id and duration."""


def int64s(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def core(
    ops: Sequence[int],
    lengths: Sequence[int],
    names: Sequence[str] | None = None,
    all_reduces: Sequence[AllReduce] = (),
    waits: int = 0,
    slow_ops: tuple[step_times.SlowOp, ...] = (),
) -> step_times.CoreStepTimes:
    """A core with steps of so many ops and such durations, which wait for the host for so long each."""
    end, duration = np.cumsum(lengths), int64s(lengths)
    part_ps = np.zeros((len(ops), step_times.PART_COUNT), np.int64)
    part_ps[:, step_times.COMPUTE] = duration - waits
    class_ps = np.zeros((len(ops), len(OP_CLASSES)), np.int64)
    class_ps[:, OP_CLASSES.index("compute")] = duration - waits
    class_ps[:, OP_CLASSES.index("idle")] = waits
    work = np.ones((len(ops), WORK_COUNT))
    owner_ps = np.zeros((len(ops), len(OWNERS)), np.int64)
    owner_ps[:, OWNERS.index("ideal")] = duration - waits
    owner_ps[:, OWNERS.index("input")] = waits
    return step_times.CoreStepTimes(
        steps=CoreSteps(tuple(names or map(str, range(len(ops)))), end - duration, end, duration),
        part_ps=part_ps,
        class_ps=class_ps,
        input_ps=np.full(len(ops), waits, np.int64),
        op_count=int64s(ops),
        work=work,
        feed_work=work,
        all_reduce_step=int64s([step for step, _, _ in all_reduces]),
        all_reduce_id=int64s([number for _, number, _ in all_reduces]),
        all_reduce_ps=int64s([duration for _, _, duration in all_reduces]),
        collective_names=(),
        collective_ps=np.zeros((len(ops), 0), np.int64),
        hops=np.zeros((3, 0), np.int64),
        slow_ops=slow_ops,
        owner_ps=owner_ps,
        between_ps=np.zeros_like(owner_ps),
    )


def aligned(
    *cores: step_times.CoreStepTimes, source: StepSource = "steps", input_source: InputSource | None = None
) -> AlignedSteps | None:
    names = [f"host0:{at}" for at in range(len(cores))]
    return align(cores, source, names, input_source)


def the_grid(*cores: step_times.CoreStepTimes, source: StepSource = "steps") -> AlignedSteps:
    return present(aligned(*cores, source=source))


# --- steps that the capture cut into -------------------------------------------------------------------------------


def test_first_and_last_step_may_both_be_cut_on_all_cores_together() -> None:
    cores = [core([7, 10, 10, 10, 2], [50, 100, 100, 100, 9]), core([8, 10, 10, 10, 0], [49, 100, 90, 100, 1])]
    found = the_grid(*cores)
    assert found.names == ("1", "2", "3")
    assert found.duration_ps.tolist() == [[100, 100, 100], [100, 90, 100]]
    assert [sentence.partition(":")[0] for sentence in found.incomplete] == [
        "step 0 was left out",
        "step 4 was left out",
    ]
    assert "the capture began inside it (15 ops; the median step has 20)" in found.incomplete[0]
    assert "the capture ended inside it (2 ops; the median step has 20)" in found.incomplete[1]


SIZES = st.sampled_from([1, 2, 25, 50, 89, 90, 91, 100, 101, 300])


@given(
    st.lists(st.lists(st.tuples(SIZES, SIZES), min_size=6, max_size=6), min_size=1, max_size=2),
    st.integers(1, 6),
    st.sampled_from(["steps", "steps", "modules"]),
)
@example([[(100, 100), (100, 100), (100, 100), (89, 89)]], 4, "steps")
def test_a_marked_step_at_the_ends_is_cut_if_it_is_small_beside_steady_ones(
    cores: list[list[tuple[int, int]]], count: int, source: StepSource
) -> None:
    """Of sizes in ops and time, on all cores together, both lie below nine tenths of those of the median step."""
    columns = [([ops for ops, _ in of[:count]], [length for _, length in of[:count]]) for of in cores]
    found = the_grid(*(core(*of) for of in columns), source=source)
    ops = [sum(of[step][0] for of in cores) for step in range(count)]
    lengths = [max(of[step][1] for of in cores) for step in range(count)]
    usual_ops, usual_time = (sorted(of)[count // 2] for of in (ops, lengths))
    may_be_cut = source == "steps" and count >= 4 and min(ops[1:-1]) >= 0.9 * usual_ops
    is_cut = [may_be_cut and ops[step] < 0.9 * usual_ops and lengths[step] < 0.9 * usual_time for step in (0, -1)]
    expected = list(range(count))[int(is_cut[0]) : count - int(is_cut[1])]
    assert (found.names, found.longest_ps.tolist()) == (tuple(map(str, expected)), [lengths[at] for at in expected])
    assert (len(found.incomplete), found.dropped) == (sum(is_cut), 0)


# --- one host ------------------------------------------------------------------------------------------------------


def test_nothing_to_match_gives_no_grid() -> None:
    one = core([5], [10])
    assert aligned() is None
    assert aligned(core([], []), core([], [])) is None
    assert aligned(one, core([5], [10], names=["other"])) is None


@pytest.mark.parametrize("unused", [core([], []), core([0, 0], [10, 10])], ids=["no steps", "no ops"])
def test_a_core_that_ran_nothing_takes_no_part(unused: step_times.CoreStepTimes) -> None:
    one = the_grid(unused, core([5, 5], [9, 9]), unused)
    assert (one.core_names, one.duration_ps.tolist()) == (("host0:1",), [[9, 9]])
    assert one.incomplete == (
        "cores host0:0, host0:2 are left out of the steps: they have no ops in them, or no Steps line",
    )
    two = the_grid(core([5, 5], [9, 9]), core([5, 5], [9, 8]), unused)
    assert two.core_names == ("host0:0", "host0:1")
    assert two.incomplete == ("core host0:2 is left out of the steps: it has no ops in them, or no Steps line",)
    assert two.dropped == 0


def test_cores_of_which_none_has_ops_all_take_part() -> None:
    found = the_grid(core([0, 0], [9, 9]), core([0, 0], [9, 8]))
    assert (len(found.core_names), len(found), found.incomplete) == (2, 2, ())


def test_steps_whose_ops_some_core_lost_are_left_out() -> None:
    found = the_grid(*[core([5, 5, 0, 5, 0], [10] * 5), core([5, 0, 5, 5, 0], [10] * 5)])
    assert found.names == ("0", "3", "4")  # in the last one nothing ran anywhere
    assert found.incomplete == ("2 steps were left out: cores host0:0, host0:1 lost ops in 1, 2",)
    assert found.lost == (LostOps("host0:0", ("2",)), LostOps("host0:1", ("1",)))
    one = the_grid(core([5, 5, 0, 5], [10] * 4), core([5] * 4, [10] * 4), source="modules")
    assert one.incomplete == ("1 step was left out: core host0:0 lost ops in 2",)
    never = the_grid(core([5, 0], [10] * 2), core([0, 5], [10] * 2))  # that would leave none
    assert (never.names, never.incomplete, never.lost) == (("0", "1"), (), ())


def test_a_step_in_which_a_core_s_ops_end_is_left_out_too() -> None:
    """The profiler's buffer of a core was full amid step 3, or held only what came after the middle of step 1."""
    whole = core([20] * 6, [10] * 6)
    ended = the_grid(whole, core([20, 20, 20, 8, 0, 0], [10] * 6), whole)
    assert (ended.names, ended.lost) == (("0", "1", "2"), (LostOps("host0:1", ("3", "4", "5")),))
    assert ended.incomplete == ("3 steps were left out: core host0:1 lost ops in 3 to 5",)
    begun = the_grid(whole, core([0, 8, 20, 20, 20, 20], [10] * 6))
    assert (begun.names, begun.lost) == (("2", "3", "4", "5"), (LostOps("host0:1", ("0", "1")),))
    both = the_grid(whole, core([20, 20, 20, 8, 0, 0], [10] * 6), core([20, 20, 20, 20, 9, 0], [10] * 6))
    assert both.names == ("0", "1", "2")


def test_a_step_with_fewer_ops_on_every_core_is_not_cut() -> None:
    """A step beside those that lost ops may be a shorter one: then all cores have fewer ops in it."""
    short = the_grid(core([20, 20, 20, 8, 20, 20], [10] * 6), core([20, 20, 20, 8, 0, 0], [10] * 6))
    assert short.names == ("0", "1", "2", "3")


def test_many_cores_and_steps_are_named_in_part() -> None:
    """A sentence names four cores, and four steps that do not follow each other."""
    fine = core([5] * 12, [10] * 12)
    lost = core([0, 5] * 6, [10] * 12)
    found = the_grid(fine, *[lost] * 5)
    whose = "cores host0:1, host0:2, host0:3, host0:4 and 1 more"
    assert found.incomplete == (f"6 steps were left out: {whose} lost ops in 0, 2, 4, 6 and 2 more",)


def test_all_reduces_follow_their_steps() -> None:
    reduces = [(0, 11, 5), (1, 12, 6), (1, 13, 7), (3, 14, 8)]
    cores = [
        core([5] * 4, [10] * 4, names=["a", "b", "c", "d"], all_reduces=reduces),
        core([5] * 3, [10] * 3, names=["b", "c", "d"], all_reduces=[(0, 12, 4), (2, 14, 9)]),
    ]
    found = the_grid(*cores)
    assert (found.names, found.dropped) == (("b", "c", "d"), 1)
    assert [[part.tolist() for part in one] for one in found.all_reduce] == [
        [[0, 0, 2], [12, 13, 14], [6, 7, 8]],
        [[0, 2], [12, 14], [4, 9]],
    ]
    rows = xprof_breakdowns(found)
    # of core 0, which takes 13 in step b: 12 is done after 4 on core 1, 13 is on no other core
    assert [(row.all_reduce_compute_ps, row.all_reduce_sync_ps) for row in rows] == [(4 + 7, 2), (0, 0), (8, 1)]


def test_all_reduces_without_ids_are_unknown() -> None:
    for name, expected in (("all-reduce.1", None), ("all-gather.1", 0.0)):
        (row, *_) = xprof_breakdowns(grid({"compute": 90, "collective": 10}, collectives={name: 10}))
        assert (row.all_reduce_compute_ps, row.all_reduce_sync_ps) == (expected, expected)


def test_time_that_the_host_waits_counts_as_infeed_where_there_is_none() -> None:
    cores = [core([5, 5], [10, 10], waits=2), core([5, 5], [10, 10], waits=4)]
    by_host = present(aligned(*cores, input_source="host"))
    assert by_host.part_ps[:, :, step_times.INFEED].tolist() == [[2, 2], [4, 4]]
    assert [(row.infeed_ps, row.infeed_percent_maximum, row.idle_ps) for row in xprof_breakdowns(by_host)] == [
        (4, 40, 0)
    ] * 2
    assert not the_grid(*cores).part_ps[:, :, step_times.INFEED].any()


def test_no_part_is_more_than_the_step_although_an_op_outlasts_it() -> None:
    parts = np.array([[25, 12, 3, 0, 0, 0, 0], [4, 4, 0, 0, 0, 11, 0]])
    found = the_grid(replace(core([5, 5], [10, 10]), part_ps=parts))
    assert found.part_ps.tolist() == [[[10, 10, 3, 0, 0, 0, 0], [4, 4, 0, 0, 0, 10, 0]]]
    assert [row.infeed_percent_maximum for row in xprof_breakdowns(found)] == [100, 40]


def test_slow_ops_are_those_of_the_core_with_the_most() -> None:
    one, other = (step_times.SlowOp("1", "a", 5), step_times.SlowOp("1", "b", 4)), (step_times.SlowOp("1", "a", 8),)
    cores = [core([5, 5], [10, 20], slow_ops=other), core([5, 5], [10, 20], slow_ops=one)]
    assert the_grid(*cores).slow_ops == one


# --- breakdown -----------------------------------------------------------------------------------------------------

_PARTS = st.lists(st.integers(0, 20), min_size=step_times.PART_COUNT, max_size=step_times.PART_COUNT)


@given(st.lists(st.lists(_PARTS, min_size=3, max_size=3), min_size=1, max_size=4), st.integers(0, 30))
def test_a_breakdown_adds_up_to_the_step_where_it_fits(cores: list[list[list[int]]], idle: int) -> None:
    parts = np.array(cores, np.int64)
    duration = parts.sum(axis=2) + idle
    found = the_grid(
        *(replace(core([0] * 3, lengths.tolist()), part_ps=one) for one, lengths in zip(parts, duration, strict=True))
    )
    for at, row in enumerate(xprof_breakdowns(found)):
        step = int(found.longest_ps[at])
        assert step == int(duration[:, at].max())
        used = row.compute_ps + row.infeed_ps + row.outfeed_ps + row.sparse_core_ps
        assert row.idle_ps == pytest.approx(max(0.0, step - used))
        assert (
            row.compute_ps
            == parts[:, at, [step_times.COMPUTE, step_times.MEGACORE, step_times.ASYNC_DONE]].sum(axis=1).min()
        )
        assert row.active_ps == pytest.approx(parts[:, at, step_times.COMPUTE].mean())
        assert row.infeed_ps == parts[:, at, step_times.INFEED].max()
        assert row.outfeed_ps == pytest.approx(parts[:, at, step_times.OUTFEED].mean())
        assert row.host_transfer_ps == parts[:, at, step_times.HOST_TRANSFER].max()
        assert row.sparse_core_ps == parts[:, at, step_times.SPARSE_CORE_WAIT].max()
        assert 0 <= row.infeed_percent_minimum <= row.infeed_percent_average + 1e-9
        assert row.infeed_percent_average <= row.infeed_percent_maximum + 1e-9 <= 100 + 1e-6


_REDUCES = st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 2), st.integers(0, 9)), max_size=8)


@given(st.lists(_REDUCES, min_size=1, max_size=5), st.sampled_from([1, 10, 1 << 16]))
def test_all_reduces_are_those_of_the_core_where_they_take_longest(cores: list[list[AllReduce]], block: int) -> None:
    """However many cores are looked at in one go."""
    shortest: dict[tuple[int, int], int] = {}
    for step, number, duration in (each for one in cores for each in one):
        shortest[step, number] = min(duration, shortest.get((step, number), duration))
    expected = []
    for step in range(3):
        of_cores = [[each for each in one if each[0] == step] for one in cores]
        longest = max(of_cores, key=lambda one: sum(duration for *_, duration in one))
        compute = sum(shortest[step, number] for _, number, _ in longest)
        expected.append((compute, sum(duration for *_, duration in longest) - compute))
    parts = [tuple(int64s([each[at] for each in sorted(one)]) for at in range(3)) for one in cores]
    found = replace(grid({"compute": 100}, cores=1, steps=3), all_reduce=tuple(parts))  # type: ignore[arg-type]
    with patch.object(xprof_view, "_BLOCK", block):
        compute_ps, sync_ps = xprof_view.all_reduce_times(found)
    assert list(zip(compute_ps.tolist(), sync_ps.tolist(), strict=True)) == expected


# --- several hosts -------------------------------------------------------------------------------------------------


def shifted(one: AlignedSteps, first: int, host: str, **fields: object) -> AlignedSteps:
    """The same steps of 100 µs, numbered from `first` on and begun as much later, of another host."""
    names = tuple(str(first + at) for at in range(len(one)))
    cores = tuple(f"{host}:{at}" for at in range(len(one.core_names)))
    later = first * 100_000_000
    times = {name: getattr(one, name) + later for name in ("start_ps", "core_start_ps", "core_end_ps")}
    return replace(one, names=names, core_names=cores, **times, **fields)  # type: ignore[arg-type]


def host_grid(reduces: Sequence[AllReduce], first: int, host: str, steps: int = 4, **fields: object) -> AlignedSteps:
    return shifted(grid({"compute": 100}, cores=1, steps=steps, all_reduce=[reduces]), first, host, **fields)


def test_all_reduces_of_hosts_meet_under_the_shared_steps_numbers() -> None:
    a = host_grid([(0, 1, 5), (2, 3, 20), (3, 4, 30)], 0, "a")
    found = join_hosts([a, host_grid([(0, 3, 50), (1, 4, 10), (3, 6, 7)], 2, "b")])
    assert (found.names, found.dropped, found.core_names) == (("2", "3"), 2, ("a:0", "b:0"))
    assert [[part.tolist() for part in one] for one in found.all_reduce] == [
        [[0, 1], [3, 4], [20, 30]],
        [[0, 1], [3, 4], [50, 10]],
    ]
    rows = xprof_breakdowns(found)
    assert [(row.all_reduce_compute_ps, row.all_reduce_sync_ps) for row in rows] == [(20, 30), (10, 20)]
    assert found.hosts.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [((None, "host"), "host"), (("host", "infeed"), "infeed"), (("infeed", None), "infeed"), ((None, None), None)],
)
def test_infeed_of_any_host_tells_more_than_what_hosts_do(
    sources: tuple[InputSource | None, InputSource | None], expected: InputSource | None
) -> None:
    grids = [host_grid([], 0, name, input_source=source) for name, source in zip("ab", sources, strict=True)]
    assert join_hosts(grids).input_source == expected


def test_sparse_cores_of_hosts_are_taken_together_in_the_shared_steps() -> None:
    of_a, of_b = np.arange(12).reshape(3, 4), 10 * np.arange(12).reshape(3, 4)
    found = join_hosts([host_grid([], 0, "a", sparse_core=of_a), host_grid([], 1, "b", sparse_core=of_b)])
    assert found.names == ("1", "2", "3")
    assert found.sparse_core is not None
    # mean time, least compute, mean idle time of a's steps 1 to 3 and b's steps 0 to 2
    assert found.sparse_core.tolist() == [[0.5, 6.0, 11.5], [5, 6, 7], [44.5, 50.0, 55.5]]
    one = join_hosts([host_grid([], 0, "a", sparse_core=of_a), host_grid([], 0, "b")])
    assert one.sparse_core is not None
    assert one.sparse_core.tolist() == of_a.tolist()


def test_steps_cut_on_several_hosts_are_named_once() -> None:
    cut = ("step 4 was left out: the capture ended inside it (1 ops; the median step has 9)",)
    found = join_hosts([host_grid([], 0, "a", incomplete=cut), host_grid([], 0, "b", incomplete=cut)])
    assert found.incomplete == cut


def test_names_that_repeat_are_matched_by_time() -> None:
    a = host_grid([], 0, "a")
    b = replace(host_grid([], 1, "b"), names=("train",) * 4)
    found = join_hosts([replace(a, names=("train",) * 4), b])
    assert (found.names, found.dropped) == (("train",) * 3, 1)
    assert found.start_ps.tolist() == [100_000_000, 200_000_000, 300_000_000]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 6), st.integers(1, 3)), min_size=1, max_size=4))
@example([(0, 4, 1), (4, 4, 1)])
def test_hosts_share_what_all_of_them_have(spec: list[tuple[int, int, int]]) -> None:
    grids = [
        shifted(grid({"compute": 90, "idle": 10}, cores=cores, steps=count), first, f"host{at}")
        for at, (first, count, cores) in enumerate(spec)
    ]
    found = join_hosts(grids)
    shared = set.intersection(*({*range(first, first + count)} for first, count, _ in spec))
    assert found.names == tuple(map(str, sorted(shared)))
    assert found.duration_ps.shape == (sum(cores for _, _, cores in spec), len(shared))
    assert found.dropped == max(count for _, count, _ in spec) - len(shared)
    assert found.hosts.tolist() == [at for at, (_, _, cores) in enumerate(spec) for _ in range(cores)]
    assert (found.class_ps.sum(axis=2) == found.duration_ps).all()
    assert found.start_ps.tolist() == [step * 100_000_000 for step in sorted(shared)]


@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=6), min_size=1, max_size=3))
def test_steps_at_once_are_those_in_whose_middle_each_core_is_in_one_unless_they_are_few(spec: list[list[int]]) -> None:
    cores = [core([1] * len(lengths), lengths).steps for lengths in spec]
    fewest = min(cores, key=len)
    found, before = list[list[int]](), [-1] * len(cores)
    for start, end in zip(fewest.start_ps.tolist(), fewest.end_ps.tolist(), strict=True):
        row = [int((of.end_ps <= (start + end) // 2).sum()) for of in cores]
        if all(last < at < len(of) for last, at, of in zip(before, row, cores, strict=True)):
            found.append(row)
        before = row
    if 2 * len(found) < len(fewest):
        found = [[at] * len(cores) for at in range(len(fewest))]
    assert np.transpose(module._at_once(cores)).tolist() == found
