"""Waiting for input, gaps between ops, and compilation: what must be found, and what must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.parsers.pages.findings.build import US, Op, evidence, found, grid, the, with_
from tpuprof.parsers.ops.host_events.activity import Activity, Compilation, IdleTime
from tpuprof.parsers.pages.findings.finding import JumpTarget
from tpuprof.parsers.steps.accounts.owners import owner_index


def test_steps_that_wait_for_infeed_are_found() -> None:
    finding = the("input", evidence(grid({"compute": 80, "host": 20}, waits=20, input_source="infeed")))
    assert finding.title == "Steps wait for input"
    assert (finding.worth_ps, finding.worth_fraction, finding.per) == (20 * US, 0.2, "step")
    assert not finding.is_estimate
    assert finding.basis == "Mean over cores and complete steps of time in infeed ops."
    assert finding.evidence == ("The device waits for input 20.0 µs a step (20.0%), mean over cores and steps.",)
    assert finding.place == JumpTarget("input", "0")


def test_a_little_waiting_for_input_is_none() -> None:
    assert found("input", evidence(grid({"compute": 95.1, "host": 4.9}, waits=4.9, input_source="infeed"))) is None


def test_nobody_knows_what_time_is_input_where_nothing_tells() -> None:
    assert found("input", evidence(grid({"compute": 80, "idle": 20}, waits=20, input_source=None))) is None


def test_idle_time_while_the_host_waited_for_input_is_input_and_not_idle_too() -> None:
    proof = evidence(grid({"compute": 80, "idle": 20}, waits=18, input_source="host"))
    finding = the("input", proof)
    assert finding.worth_ps == 18 * US
    assert finding.is_estimate
    assert "inferred from what the host did" in finding.evidence[-1]
    assert found("idle", proof) is None  # 2 % are left


def test_every_fourth_step_that_waits_is_a_pattern() -> None:
    waits = [15.0 if step % 4 == 3 else 0.1 for step in range(12)]
    proof = evidence(grid({"compute": 85, "host": waits}, steps=12, waits=waits, input_source="infeed"))
    finding = the("input", proof)
    assert finding.title == "Every 4th step waits for input"
    assert finding.worth_ps == pytest.approx(np.mean(waits) * US)
    assert finding.worth_fraction is not None and finding.worth_fraction < 0.05
    assert "Every 4th step the device waits for 15.0 µs, in the other steps 100 ns." in finding.evidence
    assert finding.place == JumpTarget("input", "3")


def test_the_same_waits_without_a_pattern_are_too_little() -> None:
    waits = [15.0 if step in (0, 1, 7) else 0.1 for step in range(12)]
    proof = evidence(grid({"compute": 85, "host": waits}, steps=12, waits=waits, input_source="infeed"))
    assert found("input", proof) is None


def test_few_steps_that_wait_long_are_counted() -> None:
    waits = [60.0 if step in (2, 3) else 0.0 for step in range(12)]
    proof = evidence(grid({"compute": 85, "host": waits}, steps=12, waits=waits, input_source="infeed"))
    assert the("input", proof).title == "2 of 12 steps wait for input"


def test_what_the_others_wait_for_the_core_with_the_late_input_is_its_and_no_collective() -> None:
    waits = np.zeros((4, 10))
    waits[2] = 20
    rest = 20 - waits
    proof = evidence(
        grid({"compute": 80, "host": waits, "collective": rest}, cores=4, waits=waits, input_source="infeed")
    )
    finding = the("input", proof)
    assert finding.worth_ps == pytest.approx(20 * US)  # 5 on average, and 15 that three of four wait in collectives
    assert "and their wait for the last core (15.0 µs)" in finding.basis
    assert "Core host0:2 waits most, 20.0 µs a step (20.0%)." in finding.evidence
    assert found("collective", proof) is None


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


def test_idle_gaps_say_what_the_host_did() -> None:
    finding = the("host", with_(evidence(grid({"compute": 90, "idle": 10})), gaps=GAPS))
    assert finding.title == "Device idle while the host runs $train.py:10 log_metrics"
    assert (finding.worth_ps, finding.worth_fraction) == (10 * US, 0.1)
    assert finding.evidence == (
        "The device is idle between its ops for 10.0 µs a step (10.0%), without waits for input.",
        "10 long gaps on the core that is idle most; the longest is 14.0 µs.",
        "Meanwhile main/2 is in $train.py:10 log_metrics for 70.0% of the idle time (12 times).",
    )
    assert finding.place == JumpTarget("timeline", "0")


def test_a_step_that_is_idle_longer_than_the_others_is_named() -> None:
    idle = [30.0 if step == 6 else 5.0 for step in range(10)]
    waits = [0.0 if step == 6 else 4.0 for step in range(10)]  # step 6 has the gaps, the others wait for input
    finding = the("idle", evidence(grid({"compute": 90, "idle": idle}, waits=waits, input_source="host")))
    assert finding.worth_ps == pytest.approx(3.9 * US)
    assert finding.evidence[-1] == "Step 6 has 30.0 µs of idle time, the median step 1.00 µs."
    assert finding.place == JumpTarget("timeline", "6")


def test_steady_gaps_between_steps_name_no_step() -> None:
    steps = grid({"compute": 80})
    steps.between_ps[:, :-1, owner_index("host")] = 20 * US
    finding = the("idle", evidence(steps))
    assert not [words for words in finding.evidence if words.startswith("Step ")]


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


def test_what_happened_in_gaps_outside_the_steps_is_not_said() -> None:
    outside = IdleTime(1000 * US, 1, (0, 900 * US), GAPS.activities)
    finding = the("idle", with_(evidence(grid({"compute": 90, "idle": 10})), gaps=outside))
    assert finding.title == "Device idle between its ops"
    assert len(finding.evidence) == 1


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


def test_idle_time_of_a_capture_without_steps() -> None:
    finding = the("idle", evidence(None, [Op("fusion", "loop fusion", 1800)]))
    assert (finding.worth_ps, finding.per) == (100 * US, "capture")


# --- compilation ---------------------------------------------------------------------------------------------------


def compiled(start: float, duration: float, idle: float, name: str = "backend_compile") -> Compilation:
    return Compilation(name, round(start * US), round(duration * US), round(idle * US))


def test_compilation_between_steps_costs_what_the_device_was_idle() -> None:
    compiling = [0.0, 0, 0, 40, 0, 0, 30, 0, 0, 0]
    steps = grid({"compute": 100, "idle": [0.0, 0, 0, 50, 0, 0, 30, 0, 0, 0]}, compiling=compiling)
    compilations = (
        compiled(310, 48, 40),
        compiled(305, 20, 18, "trace_to_jaxpr_dynamic"),  # on another thread, meanwhile
        compiled(660, 30, 30),
    )
    proof = with_(evidence(steps), compilations=compilations)
    finding = the("compilation", proof)
    assert finding.title == "The host compiles during the steps (2 times)"
    assert finding.worth_ps == pytest.approx(7 * US)  # 40 and 30 in ten steps
    assert finding.place == JumpTarget("timeline", "3")
    assert finding.evidence[0] == "2 compilations took 83.0 µs; meanwhile the device was idle for 70.0 µs."
    assert finding.evidence[1] == "The worst is backend_compile, 53.0 µs, in step 3."
    assert found("idle", proof) is None  # 8 of 108, of which 7 are the compiler's
    assert found("slow-step", proof) is None  # they have nothing else


def test_a_pause_beside_compilations_has_its_own_cause() -> None:
    compiling = [0.0, 0, 0, 400, 0, 0, 300, 0, 0, 0]
    steps = grid({"compute": 100, "idle": [0.0, 150, 0, 400, 0, 0, 300, 0, 0, 0]}, compiling=compiling)
    doing = (Activity("main/1", "backend_compile", 690 * US, 2), Activity("main/1", "$io.py:9 save", 140 * US, 1))
    gaps = IdleTime(gap_ps=850 * US, count=3, longest=(310 * US, 710 * US), activities=doing)
    proof = with_(evidence(steps), compilations=(compiled(310, 410, 400), compiled(660, 300, 300)), gaps=gaps)
    finding = the("host", proof)
    assert finding.title == "In 1 of 10 steps the device is idle while the host runs $io.py:9 save"
    assert finding.worth_ps == pytest.approx(15 * US)
    assert "Meanwhile main/1 is in $io.py:9 save for 93.3% of the idle time (1 time)." in finding.evidence
    assert not any("backend_compile" in sentence for sentence in finding.evidence)


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


LOADER = ("loader", "$dataset.py:7 make_batch", 80, 10)
LAUNCH = ("main", "PjRtCApiLoadedExecutable::Execute", 30, 10)


def test_a_host_that_reads_each_result_before_it_launches_is_told_so_and_not_what_a_loader_did() -> None:
    steps = grid({"compute": 90, "idle": 10})
    gaps = launching(LOADER, LAUNCH, ("main", "$api.py:3 block_until_ready", 40, 10))
    finding = the("host", with_(evidence(steps), gaps=gaps))
    assert finding.title == "Device idle after the host reads results: $api.py:3 block_until_ready"
    assert finding.evidence[1] == "The host launches a step only after $api.py:3 block_until_ready, 10 times."
    assert "earlier step" in finding.advice and "make_batch" not in "".join(finding.evidence)


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


def test_without_a_thread_that_launches_any_thread_may_be_the_reason() -> None:
    finding = the("host", with_(evidence(grid({"compute": 90, "idle": 10})), gaps=launching(LOADER)))
    assert finding.title == "Device idle while the host runs $dataset.py:7 make_batch"


def test_compilation_counts_without_steps() -> None:
    proof = with_(evidence(None, [Op("fusion", "loop fusion", 1400)]), compilations=(compiled(0, 300, 250),))
    finding = the("compilation", proof)
    assert (finding.title, finding.worth_ps) == ("The host compiles during the capture (1 time)", 250 * US)
    assert the("idle", proof).worth_ps == 50 * US
    assert "250 µs counted by other findings is left out" in the("idle", proof).basis


@pytest.mark.parametrize("makes", [0.4, 0.9])
def test_the_thread_that_makes_the_input_is_named_before_the_loop_that_waits_for_it(makes: float) -> None:
    feeding = (
        Activity("python", "$train.py:1 fit", 100 * US, 1),
        Activity("python", "PjitFunction(step)", 1 * US, 9),
        Activity("pool", "$queue.py:17 get", 100 * US, 9),
        Activity("tokens", "$tokens.py:4 encode", round(makes * 100 * US), 9),
    )
    launched = (Activity("python", "PjitFunction(step)", 1 * US, 9),)
    gaps = IdleTime(activities=launched, feeding=feeding, feeding_ps=100 * US)
    finding = the("input", with_(evidence(grid({"compute": 80, "idle": 20}, waits=18, input_source="host")), gaps=gaps))
    assert finding.title == "Steps wait for input" + ": $tokens.py:4 encode" * (makes > 0.5)
    assert [words for words in finding.evidence if "tokens is in $tokens.py:4 encode" in words]
    assert not [words for words in finding.evidence if "queue" in words]
