"""Waiting for input, gaps between ops, and compilation: what must be found, and what must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.parsers.pages.findings.build import US, Op, evidence, found, grid, the, with_
from tpuprof.parsers.ops.host_events.activity import Activity, Compilation, IdleTime
from tpuprof.parsers.pages.findings.finding import JumpTarget


def test_a_little_waiting_for_input_is_none() -> None:
    assert found("input", evidence(grid({"compute": 95.1, "host": 4.9}, waits=4.9, input_source="infeed"))) is None


def test_nobody_knows_what_time_is_input_where_nothing_tells() -> None:
    assert found("input", evidence(grid({"compute": 80, "idle": 20}, waits=20, input_source=None))) is None


def test_the_same_waits_without_a_pattern_are_too_little() -> None:
    waits = [15.0 if step in (0, 1, 7) else 0.1 for step in range(12)]
    proof = evidence(grid({"compute": 85, "host": waits}, steps=12, waits=waits, input_source="infeed"))
    assert found("input", proof) is None


def test_infeed_counts_without_steps() -> None:
    finding = the("input", evidence(None, [Op("infeed.1", "infeed", 300), Op("fusion", "loop fusion", 1600)]))
    assert (finding.worth_ps, finding.per, finding.worth_fraction) == (150 * US, "capture", 0.15)
    assert finding.evidence == ("Infeed ops take 150 µs (15.0%), most of it in infeed.1.",)
    assert found("input", evidence(None, [Op("infeed.1", "infeed", 90)])) is None


# --- gaps ----------------------------------------------------------------------------------------------------------

GAPS = IdleTime(
    activities=(
        Activity("main/1", "Condition.wait", 95 * US, 3),
        Activity("main/2", "$train.py:10 log_metrics", 70 * US, 12),
    ),
    longest=(20 * US, 34 * US),
    count=10,
    gap_ps=100 * US,
)


SAVES = "$checkpoint_manager.py:1320 wait_until_finished"


@pytest.mark.parametrize(
    ("thread", "name", "is_told"),
    [
        ("main", SAVES, True),
        ("main", "$multihost_utils.py:88 wait_for_hosts", True),
        ("saver", SAVES, False),  # parked beside the one that launches
        ("main", "$threading.py:323 wait", False),
        ("main", "Condition::Wait", False),
        ("main", "$array.py:631 block_until_ready", False),  # it reads a result, which is told as that
    ],
)
def test_a_function_in_which_the_launching_thread_waits_is_what_the_host_does(
    thread: str, name: str, is_told: bool
) -> None:
    launches = Activity("main", "PjRtCApiLoadedExecutable::Execute", 20 * US, 10)
    gaps = replace(GAPS, activities=(Activity(thread, name, 75 * US, 3), launches))
    proof = with_(evidence(grid({"compute": 90, "idle": 10})), gaps=gaps)
    titles = [each.title for kind in ("host", "idle") if (each := found(kind, proof)) is not None]
    function = name.rpartition(" ")[2]  # all that a title has room for
    assert titles[0].endswith(f"Device idle while the host runs {function}") == is_told


def test_an_annotation_of_the_step_is_no_cause_but_what_runs_inside_it() -> None:
    train, read = Activity("main", "train", 60 * US, 10, marks_step=True), Activity("main", "read", 25 * US, 10)
    nothing = IdleTime(activities=(train, read), gap_ps=100 * US)
    proof = evidence(grid({"compute": 90, "idle": 10}))
    finding = the("idle", with_(proof, gaps=nothing))
    assert finding.title == "Device idle between its ops"
    assert finding.evidence[-2:] == (
        "Meanwhile main is in read for 25.0% of the idle time (10 times).",
        "For 60.0% of the idle time, nothing was traced inside train, which marks the step.",
    )
    held = replace(
        nothing, inside=(Activity("main", "PjitFunction(f)", 90 * US, 9), Activity("main", "load", 80 * US, 9))
    )
    assert the("idle", with_(proof, gaps=held)).title == "Device idle while the host runs load"


def test_a_host_that_only_waits_explains_nothing() -> None:
    waiting = IdleTime(activities=GAPS.activities[:1], gap_ps=100 * US)
    finding = the("idle", with_(evidence(grid({"compute": 90, "idle": 10})), gaps=waiting))
    assert finding.title == "Device idle between its ops"
    assert finding.evidence[-1] == "The host's threads only wait, so its events do not say why."


def test_an_async_op_under_way_explains_idle_time() -> None:
    flying = IdleTime(in_flight={"all-gather.3": 60 * US}, gap_ps=100 * US)
    finding = the("idle", with_(evidence(grid({"compute": 90, "idle": 10})), gaps=flying))
    assert finding.title == "Device idle while all-gather.3 is in flight"
    assert finding.place == JumpTarget("timeline", "all-gather.3")
    assert "Asynchronous op all-gather.3 is in flight for 60.0% of the idle time." in finding.evidence
    short = IdleTime(in_flight={"all-gather.3": 20 * US}, gap_ps=100 * US)
    assert the("idle", with_(evidence(grid({"compute": 90, "idle": 10})), gaps=short)).place == JumpTarget(
        "timeline", "0"
    )


def test_little_idle_time_is_none() -> None:
    assert found("idle", with_(evidence(grid({"compute": 97.1, "idle": 2.9})), gaps=GAPS)) is None


def test_an_op_that_goes_on_in_the_next_step_makes_no_idle_time() -> None:
    """Where modules overlap, inferred steps are too long and too short in turn; the device was never idle."""
    busy = grid({"compute": 100}, steps=10, source="modules")
    long_and_short = np.tile([120 * US, 80 * US], 5)
    class_ps = busy.class_ps.copy()
    class_ps[:, :, -1] = np.maximum(long_and_short - 100 * US, 0)  # idle, as it is measured: 10 % of the time
    proof = evidence(replace(busy, duration_ps=np.stack([long_and_short] * 2), class_ps=class_ps))
    assert found("idle", proof) is None
    assert found("slow-step", proof) is None


# --- compilation ---------------------------------------------------------------------------------------------------


def compiled(start: float, duration: float, idle: float, name: str = "backend_compile") -> Compilation:
    return Compilation(name, round(start * US), round(duration * US), round(idle * US))


def test_compilation_that_the_device_does_not_notice_is_none() -> None:
    steps = grid({"compute": 100})
    assert found("compilation", with_(evidence(steps), compilations=(compiled(310, 400, 5),))) is None


def test_compilation_before_the_first_step_is_no_recompilation() -> None:
    steps = replace(grid({"compute": 100}), start_ps=np.arange(10) * 100 * US + 5000 * US)
    assert found("compilation", with_(evidence(steps), compilations=(compiled(100, 4000, 4000),))) is None


def launching(*activities: tuple[str, str, int, int]) -> IdleTime:
    """Gaps of 100 us, in ten places, in which threads did something: thread, name, us, times."""
    named = tuple(Activity(thread, name, us * US, times) for thread, name, us, times in activities)
    return IdleTime(100 * US, 10, (0, 10 * US), named, unlaunched_ps=100 * US)


LAUNCH = ("main", "PjRtCApiLoadedExecutable::Execute", 30, 10)


def test_input_is_sent_late_too_by_a_host_that_reads_a_result_and_does_more_work_before_it_launches() -> None:
    proof = evidence(grid({"compute": 90, "idle": 12}, waits=2, input_source="host"))
    reads = ("main", "np.asarray(jax.Array)", 8, 10)
    finding = the("host", with_(proof, gaps=launching(("main", "$bar.py:3 update", 60, 10), LAUNCH, reads)))
    assert finding.title == "Device idle while the host runs $bar.py:3 update"
    assert finding.worth_ps == 12 * US
    assert finding.evidence[1:3] == (
        "For another 2.00 µs, the host sends input that it could send ahead.",
        "The host launches a step only after np.asarray(jax.Array), 10 times.",
    )
    # a result that is there when the host asks for it holds nothing up
    at_once = ("main", "np.asarray(jax.Array)", 2, 10)
    early = the("host", with_(proof, gaps=launching(("main", "$bar.py:3 update", 60, 10), LAUNCH, at_once)))
    assert early.worth_ps == 10 * US and "asarray" not in "".join(early.evidence[:2])


def test_compilation_counts_without_steps() -> None:
    proof = with_(evidence(None, [Op("fusion", "loop fusion", 1400)]), compilations=(compiled(0, 300, 250),))
    finding = the("compilation", proof)
    assert (finding.title, finding.worth_ps) == ("The host compiles during the capture (1 time)", 250 * US)
    assert the("idle", proof).worth_ps == 50 * US
    assert "250 µs counted by other findings is left out" in the("idle", proof).basis
