"""Cores and hosts that are late: what must be found, and what must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.parsers.pages.findings.build import US, Op, Times, evidence, found, grid, the, with_
from tpuprof.parsers.base.intervals import medians
from tpuprof.parsers.ops.core.times import CoreOpTimes
from tpuprof.parsers.ops.host_events.activity import Activity, IdleTime
from tpuprof.parsers.pages.findings.cores.late import RankedTimes
from tpuprof.parsers.pages.findings.finding import Evidence

EACH = slice(None)


def cores(busy: Times, whole: float = 120, count: int = 8, hosts: int = 1, waits: str = "collective") -> Evidence:
    """Cores that compute so long and wait for the rest of the step."""
    times = np.broadcast_to(np.asarray(busy, np.float64).T, (10, count)).T
    return evidence(grid({"compute": times, waits: whole - times}, cores=count, hosts=hosts))  # type: ignore[dict-item]


def some(*late: tuple[int | NDArray[np.intp], slice | list[int] | NDArray[np.intp], float]) -> NDArray[np.float64]:
    """100 microseconds for eight cores in ten steps, and more for some cores in some steps."""
    times = np.full((8, 10), 100.0)
    for core, steps, extra in late:
        times[core, steps] += extra
    return times


def one(extra: float, count: int = 8, at: int = 3) -> Times:
    """100 microseconds for all cores, more for one of them."""
    times = np.full((count, 10), 100.0)
    times[at] += extra
    return times


@pytest.mark.parametrize(
    "proof",
    [
        pytest.param(cores(one(1.9)), id="hardly later"),
        pytest.param(cores(some((3, EACH, 4), (5, EACH, 2))), id="a little later, and the others are unlike"),
        pytest.param(cores(some((np.arange(10) % 8, np.arange(10), 12))), id="each now and then"),
        pytest.param(cores(some((3, slice(0, 10, 2), 12), (5, slice(1, 10, 2), 12))), id="two in turns"),
        pytest.param(
            evidence(grid({"compute": one(12), "collective": 10, "host": 12 - some((3, EACH, 12)) + 100}, cores=8)),
            id="nobody waits: it has another task",
        ),
        pytest.param(cores(np.repeat([[100.0], [118.0], [80.0], [110.0]], 10, axis=1), count=4), id="four stages"),
        pytest.param(cores(np.repeat([[100.0], [130.0]] * 20, 10, axis=1), 140, 40), id="every other of forty stages"),
        pytest.param(
            evidence(grid({"compute": some((3, EACH, 12))[:, :2], "idle": 120 - some((3, EACH, 12))[:, :2]}, 8, 2)),
            id="two steps say nothing",
        ),
    ],
)
def test_cores_that_are_no_stragglers(proof: Evidence) -> None:
    assert found("straggler", proof) is None


@pytest.mark.parametrize(
    ("proof", "core", "longer", "worth"),
    [
        (cores(one(4)), 3, "4.0%", 4),
        (cores(one(12, 2, 0), count=2), 0, "12.0%", 12),
        (cores(one(12), hosts=2), 3, "12.0%", 12),
        (cores(some((3, [2, 5, 7, 8], 12))), 3, "12.0%", 4.8),
    ],
    ids=["a little, the others are alike", "one of two", "one of a host", "without a rhythm, nobody else"],
)
def test_a_core_is_late_by_what_it_takes_longer(proof: Evidence, core: int, longer: str, worth: float) -> None:
    finding = the("straggler", proof)
    assert finding.title == f"Core host0:{core} computes {longer} longer than the others"
    assert finding.worth_ps == pytest.approx(worth * US)


@given(st.data())
def test_the_median_of_the_others_is_theirs_alone(data: st.DataObject) -> None:
    """Ranks give what leaving out the rows and sorting again would; ties and several rows included."""
    count, steps = data.draw(st.integers(2, 9)), data.draw(st.integers(1, 4))
    values = np.array(data.draw(st.lists(st.integers(0, 5), min_size=count * steps, max_size=count * steps)), float)
    values = values.reshape(count, steps)
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count - 1))))
    assert RankedTimes(values).others(rows).tolist() == medians(np.delete(values, rows, axis=0)).tolist()


# --- the chip, or the host -----------------------------------------------------------------------------------------

OPS = [Op(f"fusion.{number}", "loop fusion", 300) for number in range(6)]


def slower(factors: list[float]) -> Evidence:
    """Eight cores, one of which takes these multiples of the others' time for six ops alike."""
    extra = 100 * (sum(factors) / len(factors) - 1)
    busy = np.asarray(one(extra))
    proof = evidence(grid({"vector": busy, "collective": 120 - busy}, cores=8), OPS)
    times = np.full((8, 6), 1000)
    times[3] = np.rint(np.array(factors) * 1000).astype(int)
    names = tuple(f"host0:{core}" for core in range(8))
    ops = tuple((7, op.name) for op in OPS)
    return with_(proof, core_ops=CoreOpTimes(names, ops, times, np.full((8, 6), 10)))


def test_chips_that_are_slow_beside_the_slowest_are_named_with_what_it_costs_alone() -> None:
    busy = np.full((8, 10), 100.0)
    busy[3], busy[5] = 130, 112
    proof = evidence(grid({"vector": busy, "collective": 130 - busy}, cores=8), OPS)
    times = np.full((8, 6), 1000)
    times[3], times[5] = 1300, 1120
    known = slower([1.3] * 6).core_ops
    assert known is not None
    known = replace(known, self_ps=times)
    finding = the("slow-core", with_(proof, core_ops=known))
    assert finding.title == "Cores host0:3 and host0:5 are up to 30.0% slower than the others at the same ops"
    said = "Slow too: host0:5 by 12.0%. Without core host0:3 alone, a step takes 18.0 µs less."
    assert finding.evidence[-1] == said


def test_ops_that_take_no_time_do_not_clear_a_slow_chip() -> None:
    proof = slower([1.03] * 6)
    known = proof.core_ops
    assert known is not None
    times = known.self_ps.copy()
    times[:, 5] = 1  # a loop beside its body takes as long on all cores
    finding = the("slow-core", with_(proof, core_ops=CoreOpTimes(known.cores, known.ops, times, known.occurrences)))
    assert "It is slower at 5 of the 6 largest ops: the chip is slow, its work is the same." in finding.evidence


LAUNCHES, MAKES = "TfrtTpuLoadedExecutable::Execute", "$rows.py:3 make"


def made_by(thread: str) -> IdleTime:
    """A host's gaps, in which a thread makes something."""
    made = Activity(thread, MAKES, 90 * US, 10), Activity("main", LAUNCHES, 20 * US, 10)
    return IdleTime(gap_ps=100 * US, count=10, activities=made)


@pytest.mark.parametrize(
    ("first", "others", "hosts"), [("pool", 5.0, 0), ("main", 5.0, 1), ("pool", 1.0, 1), ("other", 5.0, 1)]
)
def test_hosts_that_all_wait_for_the_same_work_of_a_pool_are_one_reason(first: str, others: float, hosts: int) -> None:
    late = np.full((8, 10), others)
    late[4:] = 10.0
    proof = evidence(grid({"compute": 100, "idle": late, "collective": 12 - late}, cores=8, hosts=2))
    gaps = {"host0": IdleTime() if first == "other" else made_by(first), "host1": made_by("pool")}
    finding = the("host", with_(proof, host_gaps=gaps, gaps=made_by("pool")))
    assert finding.title.startswith("Host host1 starts its cores late") == bool(hosts)
    if not hosts:
        assert finding.worth_ps == pytest.approx(10 * US)  # 7.5 on average, and 2.5 that others wait for the last
        assert "For another 2.50 µs, cores wait for the core that is idle longest." in finding.evidence


def pausing(places: list[int], busy: IdleTime | None = None) -> Evidence:
    """Two hosts, of which the second gives its cores nothing to do for 100 microseconds in some steps."""
    late = np.zeros((8, 12))
    late[4:, places] = 100.0
    waits = np.zeros((8, 12))
    waits[:4, places] = 100.0
    proof = evidence(grid({"compute": 100, "idle": late, "collective": waits}, cores=8, steps=12, hosts=2))
    return with_(proof, host_gaps={} if busy is None else {"host1": busy})


def test_what_a_late_host_does_in_few_of_the_steps_is_not_why_it_is_late() -> None:
    collects = IdleTime(gap_ps=300 * US, count=3, activities=(Activity("python", "$gc collect", 290 * US, 1),))
    assert "collect" not in the("host", pausing([2, 6, 10], collects)).title


def test_the_annotation_of_a_step_is_not_what_a_late_host_is_in() -> None:
    marks = IdleTime(gap_ps=300 * US, count=3, activities=(Activity("python", "train", 290 * US, 3, marks_step=True),))
    finding = the("host", pausing([2, 6, 10], marks))
    assert finding.title == "Host host1 starts its cores later than the others every 4th step"
    assert not any("train" in sentence for sentence in finding.evidence)


def test_a_late_host_is_as_late_where_all_hosts_pause_as_it_is_elsewhere() -> None:
    late = np.zeros((8, 12))
    late[4:] = 10.0
    late[:, [2, 6, 10]] += 300
    late[4:, [2, 6, 10]] += 40  # it saves for longer, which is the saving's
    waits = late.max(axis=0) - late
    finding = the(
        "host", evidence(grid({"compute": 100, "idle": late, "collective": waits}, steps=12, cores=8, hosts=2))
    )
    assert finding.title == "Host host1 starts its cores later than the others"
    assert finding.worth_ps == pytest.approx(10 * US)
    assert finding.evidence[:3] == (
        "Its cores are idle for 10.0 µs a step, those of the others for 0; this holds for 9 of 12 steps.",
        "In 3 more, all hosts pause: there its delay counts for no more than in the others.",
        "Meanwhile the others spend 10.0 µs more in collectives.",
    )


def test_hosts_that_pause_in_turns_are_none() -> None:
    idle = np.zeros((8, 12))
    idle[4:, 1::4] = 100.0
    idle[:4, 3::4] = 100.0
    proof = evidence(grid({"compute": 100, "idle": idle, "collective": idle[::-1]}, cores=8, steps=12, hosts=2))
    assert found("host", proof) is None


def test_a_host_that_pauses_once_is_what_the_others_wait_for() -> None:
    proof = pausing([6])
    assert the("host", proof).title == "Host host1 starts its cores later than the others in 1 of 12 steps"
    assert [found(kind, proof) for kind in ("collective", "imbalance", "slow-step")] == [None] * 3
