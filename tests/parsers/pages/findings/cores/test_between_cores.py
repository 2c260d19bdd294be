"""Collectives that nothing hides, and cores and hosts that are late: what must be found, and what must not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.pages.findings.build import US, Op, Times, evidence, found, grid, the
from tpuprof.parsers.base.intervals import medians
from tpuprof.parsers.pages.findings.cores.late import RankedTimes
from tpuprof.parsers.pages.findings.finding import Evidence, Place

COLLECTIVES = [
    Op("all-gather-done.3", "async-done", 300),
    Op("all-reduce.1", "all-reduce fusion", 100),
    Op("fusion.1", "loop fusion", 1600),
]

ONLY = Op("all-reduce.1", "all-reduce fusion", 400)


def test_exposed_collectives_are_found() -> None:
    finding = the("collective", evidence(grid({"vector": 80, "collective": 20}), COLLECTIVES))
    assert finding.title == "Exposed collectives, all-gather-done.3 most"
    assert (finding.worth_ps, finding.worth_fraction, finding.is_estimate) == (20 * US, 0.2, False)
    assert finding.place == Place("timeline", "all-gather-done.3")
    assert finding.evidence == (
        "Cores do nothing but collectives for 20.0 µs a step (20.0%).",
        "Most of it: all-gather-done.3 15.0 µs a step (15.0%), all-reduce.1 5.00 µs a step (5.0%).",
        "The largest of 2 ops is all-gather-done.3 (jit(step)/all-gather-done.3, model.py:1), 15.0 µs a step (15.0%).",
        "all-gather-done.3 waits for a transfer that runs by itself: there is too little to compute meanwhile.",
    )


def test_collectives_that_compute_hides_are_none() -> None:
    """The asynchronous transfer itself is no op of the core; its done takes next to nothing."""
    assert found("collective", evidence(grid({"vector": 96, "collective": 4}), COLLECTIVES)) is None


def test_one_collective_is_named_in_full() -> None:
    finding = the("collective", evidence(grid({"vector": 80, "collective": 20}), COLLECTIVES[1:]))
    assert finding.title == "all-reduce.1 is not hidden by compute"


def test_collectives_of_a_capture_without_steps() -> None:
    finding = the("collective", evidence(None, COLLECTIVES))
    assert (finding.worth_ps, finding.per) == (200 * US, "capture")


def all_reduces(first: int, second: int) -> Evidence:
    """Two cores whose all-reduce takes so many microseconds each, in every step."""
    times = np.array([[first], [second]], np.float64)
    of = {"all-reduce.1": times}
    return evidence(grid({"vector": 80, "collective": times.mean()}, collectives=of), [ONLY])


def test_waiting_for_the_last_core_is_told_from_the_transfer() -> None:
    finding = the("collective", all_reduces(36, 4))
    assert finding.title == "Cores wait for each other in all-reduce.1"
    words = "16.0 µs of it is waiting for the last core to arrive, 4.00 µs the transfer, as the shortest time over the "
    assert f"{words}cores tells." in finding.evidence


def test_all_reduces_that_start_together_do_not_wait() -> None:
    finding = the("collective", all_reduces(20, 20))
    assert finding.title == "all-reduce.1 is not hidden by compute"
    assert finding.evidence[-1] == "The cores arrive at the same time: none waits for another, all of it is transfer."


# --- stragglers ----------------------------------------------------------------------------------------------------


def cores(busy: Times, whole: float = 120, count: int = 8, hosts: int = 1, waits: str = "collective") -> Evidence:
    """Cores that compute so long and wait for the rest of the step."""
    times = np.broadcast_to(np.asarray(busy, np.float64).T, (10, count)).T
    return evidence(grid({"compute": times, waits: whole - times}, cores=count, hosts=hosts))  # type: ignore[dict-item]


def one(extra: float, count: int = 8, at: int = 3) -> Times:
    """100 microseconds for all cores, more for one of them."""
    times = np.full((count, 10), 100.0)
    times[at] += extra
    return times


def test_a_core_that_computes_longer_while_the_others_wait_is_found() -> None:
    proof = cores(one(12))
    finding = the("straggler", proof)
    assert finding.title == "Core host0:3 computes 12.0% longer than the others"
    assert (finding.worth_ps, finding.is_estimate, finding.place) == (12 * US, True, Place("timeline", "0"))
    assert finding.evidence == (
        "It computes 112 µs a step, the median of the others 100 µs; so in 10 of 10 steps.",
        "The others are 12.0 µs longer in collectives, 0 longer idle.",
        "It has most more of compute ops, 12.0 µs a step.",
    )
    # 18.5 of 120 are collectives on average; seven of eight cores wait 12 of them for the late one
    rest = the("collective", proof)
    assert rest.worth_ps == pytest.approx((18.5 - 12 * 7 / 8) * US)
    assert "10.5 µs of waiting that other findings count is left out" in rest.basis


def test_a_core_that_is_hardly_later_is_none() -> None:
    assert found("straggler", cores(one(4.9))) is None


def test_a_core_that_is_late_now_and_then_is_none() -> None:
    times = np.asarray(one(12))
    times[3, ::2] = 100
    assert found("straggler", cores(times)) is None


def test_a_core_for_which_nobody_waits_is_none() -> None:
    times = np.asarray(one(12))
    everywhere = np.full_like(times, 10.0)
    assert found("straggler", evidence(grid({"compute": times, "collective": everywhere}, cores=8))) is None


def test_cores_that_differ_by_design_are_none() -> None:
    """A pipeline of four stages of unlike size."""
    assert found("straggler", cores(np.repeat([[100.0], [118.0], [80.0], [110.0]], 10, axis=1), count=4)) is None


def test_two_cores_can_have_a_straggler() -> None:
    assert the("straggler", cores(one(12, 2, 0), count=2)).title == "Core host0:0 computes 12.0% longer than the others"


def test_a_host_whose_cores_are_all_late_is_found() -> None:
    times = np.full((8, 10), 100.0)
    times[4:] = 110
    proof = cores(times, hosts=2, waits="idle")
    finding = the("straggler", proof)
    assert finding.title == "Host host1 computes 10.0% longer than the others"
    assert finding.worth_ps == 10 * US
    assert the("idle", proof).worth_ps == pytest.approx((15 - 10 / 2) * US)  # half of the cores wait 10 for the others


def test_a_host_with_one_late_core_is_not_late_itself() -> None:
    assert the("straggler", cores(one(12), hosts=2)).title == "Core host0:3 computes 12.0% longer than the others"


def test_two_steps_tell_nothing() -> None:
    times = np.asarray(one(12))[:, :2]
    assert found("straggler", evidence(grid({"compute": times, "idle": 120 - times}, cores=8, steps=2))) is None


@given(st.data())
def test_the_median_of_the_others_is_theirs_alone(data: st.DataObject) -> None:
    """Ranks give what leaving out the rows and sorting again would; ties and several rows included."""
    count, steps = data.draw(st.integers(2, 9)), data.draw(st.integers(1, 4))
    values = np.array(data.draw(st.lists(st.integers(0, 5), min_size=count * steps, max_size=count * steps)), float)
    values = values.reshape(count, steps)
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count - 1))))
    assert RankedTimes(values).others(rows).tolist() == medians(np.delete(values, rows, axis=0)).tolist()


def test_half_of_the_cores_busier_by_design_are_no_stragglers() -> None:
    """Two stages of a pipeline: each busy core is later than the median of the others."""
    assert found("straggler", cores(np.repeat([[100.0], [130.0]] * 20, 10, axis=1), whole=140, count=40)) is None
