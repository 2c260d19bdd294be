"""Slow steps: what must be found, and what must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.parsers.pages.findings.build import US, Op, evidence, found, grid, the, with_
from tests.support.build import OpSpec, present, summary_of, tpu_plane
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.findings.finding import JumpTarget
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.steps.times import SlowOp


def slower(extra: float, *steps: int, count: int = 10) -> list[float]:
    return [extra if step in steps else 0.0 for step in range(count)]


def test_a_slow_step_is_found_with_what_differs_in_it() -> None:
    ops = (SlowOp("7", "fusion.3", 35 * US), SlowOp("7", "copy.1", 1 * US), SlowOp("2", "fusion.9", 40 * US))
    more = np.array(slower(40, 7))
    finding = the("slow-step", evidence(grid({"compute": 80 + more, "vector": 20 + more / 4}, slow_ops=ops)))
    assert finding.title == "Step 7 takes 1.50 times the median step"
    assert (finding.worth_ps, finding.is_estimate, finding.place) == (5 * US, False, JumpTarget("timeline", "7"))
    assert finding.basis == "What the slow steps take beyond the median, divided by the number of steps."
    assert finding.evidence == (
        "Step 7 takes 150 µs (median 100 µs); 1 of 10 steps is slow.",
        "It takes 50.0 µs longer than the median step, all in below the roof.",
        "Ops that take longer there: fusion.3 35.0 µs.",
    )


@pytest.mark.parametrize(
    ("extra", "slow", "count"),
    [
        (14, [7], 10),  # they vary little
        (40, [1, 4, 6], 10),  # many are slow
        (40, [2], 3),  # too few steps to tell
        (50, [7], 100),  # one of very many is no loss
    ],
)
def test_steps_of_which_none_is_called_slow(extra: float, slow: list[int], count: int) -> None:
    times = 100 + np.array(slower(extra, *slow, count=count))
    assert found("slow-step", evidence(grid({"compute": times}, steps=count))) is None


def test_a_step_that_only_waits_for_input_is_left_to_input() -> None:
    waits = slower(80, 7)
    proof = evidence(grid({"compute": 100, "host": waits}, waits=waits, input_source="infeed"))
    assert the("input", proof).worth_ps == 8 * US
    assert found("slow-step", proof) is None


def test_a_step_that_waits_too_little_for_an_input_finding_is_slow() -> None:
    waits = slower(40, 7)
    proof = evidence(grid({"compute": 100, "host": waits}, waits=waits, input_source="infeed"))
    assert found("input", proof) is None
    finding = the("slow-step", proof)
    assert finding.place == JumpTarget("input", "7")
    assert finding.evidence[1] == "It takes 40.0 µs longer than the median step, all in input wait."


def test_what_other_findings_count_of_a_slow_step_is_left_out() -> None:
    collective = 10 + np.array(slower(30, 7))
    proof = evidence(
        grid({"compute": 90 + np.array(slower(30, 7)), "collective": collective}), [Op("all-reduce.1", "all-reduce", 9)]
    )
    assert the("collective", proof).worth_ps == 13 * US
    finding = the("slow-step", proof)
    assert finding.worth_ps == pytest.approx(3 * US)
    assert "; 3.00 µs a step counted by other findings is left out" in finding.basis


def test_an_inferred_step_that_began_early_is_not_slow() -> None:
    """The step before it is as much shorter: the module was launched while the one before still ran."""
    times = 100 + np.array(slower(30, 7)) - np.array(slower(30, 6))
    assert found("slow-step", evidence(grid({"compute": times}, source="modules"))) is None
    assert found("slow-step", evidence(grid({"compute": times}, source="steps"))) is not None
    alone = 100 + np.array(slower(30, 7))
    assert the("slow-step", evidence(grid({"compute": alone}, source="modules"))).worth_ps == 3 * US


def evaluating(other: str = "jit_eval_step(9)", **more: object) -> Any:
    """Every third step takes 140 microseconds in place of 100, because a second module runs in it."""
    times = 100 + np.array(slower(40, 2, 5, 8))
    steps = grid({"compute": times}, steps=10)
    trains = steps.start_ps, np.full(10, 100 * US)
    evaluates = steps.start_ps[2::3] + 100 * US, np.full(3, 40 * US)
    runs = {"jit_train_step(7)": trains, other: evaluates}
    return with_(evidence(steps), runs=runs, **more)


def test_slow_steps_at_a_rhythm_are_named_by_it_and_by_the_module_that_runs_in_them() -> None:
    finding = the("slow-step", evaluating())
    assert finding.title == "Every 3rd step takes 1.40 times the median: it runs jit_eval_step"
    assert finding.worth_ps == pytest.approx(12 * US)
    assert "It is the only one that runs jit_eval_step." in finding.evidence
    assert "Every 3rd step takes longer than the median by 40.0 µs, in the other steps 0." in finding.evidence
    other_shape = the("slow-step", evaluating("jit_train_step(8)"))
    assert other_shape.title.endswith("it runs jit_train_step(8)")


def test_prefill_between_runs_of_decode_is_what_a_server_is_for() -> None:
    assert found("slow-step", evaluating(serves=(("jit_decode(7)", 10, 100.0), ("jit_prefill(9)", 3, 40.0)))) is None


def test_what_little_a_pause_leaves_of_its_steps_is_no_other_reason() -> None:
    pause, after = (np.array(slower(extra, 1, 5, 9, count=12)) for extra in (400, 60))
    few = evidence(grid({"compute": 100 + after, "idle": pause}, steps=12))
    assert the("idle", few).title.startswith("Every 4th step the device is idle")
    assert found("slow-step", few) is None
    finding = the("slow-step", evidence(grid({"compute": 100 + 3 * after, "idle": pause}, steps=12)))
    assert finding.worth_ps == pytest.approx(45 * US)
    assert finding.title == "Every 4th step takes 2.80 times the median step"
    words = "takes longer than the median, without time counted by other findings, by 180 µs, in the other steps 0."
    assert f"Every 4th step {words}" in finding.evidence


def test_steps_that_are_idle_do_not_make_the_usual_step_longer() -> None:
    """Half of twelve steps are longer: the median of all lies between them and the others."""
    idle = np.array(slower(90, 1, 5, 9, count=12))
    steps = grid({"compute": 100 + np.array(slower(60, 2, 6, 10, count=12)), "idle": idle}, steps=12)
    finding = the("slow-step", evidence(steps))
    assert finding.worth_ps == pytest.approx(15 * US)
    assert "median 100 µs of the steps that no other finding counts as longer" in finding.evidence[0]


@pytest.mark.parametrize("module", ["jit_eval_step(9)", ""])
def test_what_runs_between_steps_is_a_reason_with_its_rhythm(module: str) -> None:
    space, ops, steps, modules, at = XSpace(), list[OpSpec](), list[tuple[str, int, int]](), [], 0
    for step in range(12):
        steps.append((str(step), at, at + 100 * US))
        modules.append(("jit_train_step(7)", at, at + 100 * US))
        ops.append(("fusion.1", "loop fusion", at, 100 * US))
        at += 100 * US
        if step % 3 == 2:
            modules += [(module, at, at + 60 * US)] if module else []
            ops.append(("fusion.9", "loop fusion", at, 60 * US))
            at += 60 * US
    tpu_plane(space, 0, ops, steps, modules)
    finding = present(next((of for of in overview([summary_of(space)]).findings if of.kind == "between-steps"), None))
    assert finding.title == f"{'jit_eval_step' if module else 'What is outside steps'} runs after every 3rd step"
    assert finding.worth_ps == pytest.approx(3 * 60 * US / 11)
    assert ("jit_eval_step runs 3 times between steps, for 60.0 µs each." in finding.evidence) == bool(module)
