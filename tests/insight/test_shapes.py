"""What must hold of the shapes: each is in both halves, pairs add up, rhythms and onsets are where they say."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.insight.cases.all import HALF_OF, SPLIT
from tests.insight.cases.case import CODEBASES, DOMAINS, HALVES, JOBS, LABS, TRIALS, Case
from tests.insight.cases.shapes.all import CASES, SHAPES
from tests.insight.cases.shapes.models import block, decoder, sharded
from tests.insight.cases.shapes.shape import Plant
from tests.insight.simulator.code import V5E, V5P
from tests.insight.simulator.parts import Activations
from tests.insight.simulator.play import MS, Chips, Chore, Launch, Loop, Played
from tests.insight.simulator.scene import Scene, play
from tests.insight.simulator.stack import Beside, Cast, Gemms, Ring, Scores, Stack, Uneven

MULTIPLIES = Gemms(((0, 0, 0),), "dot_general")
PLAIN = Scene((Stack(8192, 4096, 2, (MULTIPLIES,), (MULTIPLIES,)),), V5E, cores=2, chips=Chips(jitter=0))


def _steps(played: Played) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Picoseconds of each step, on its slowest core."""
    return np.asarray((played.step_ends - played.step_begins).max(axis=1))


def _of(launch: Launch, word: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Durations [event, core] of a run's ops whose name has a word."""
    names = [launch.program.ops[op].op.instruction.name.decode() for op in launch.ops.tolist()]
    return launch.durations[[word in name for name in names]]


def test_each_shape_was_in_both_halves_when_it_was_made() -> None:
    """Cases of the held-back half that were shown since count as tuned; newer ones took their places."""
    shapes = {case.shape for case in CASES if case.later not in (JOBS, CODEBASES, LABS, DOMAINS, TRIALS)}
    assert len(shapes) >= 16
    for shape in shapes:
        for count, what in enumerate(("healthy", "problem", "pair")):
            alike = [case for case in CASES if case.shape == shape and len(case.planted) == count]
            halves = Counter(SPLIT[case.name] for case in alike)
            assert all(halves[half] for half in HALVES), (shape, what)


def test_each_half_has_a_third_of_the_cases() -> None:
    for parts in (("shapes", "jobs"), ("pairs", "pairs of jobs")):
        halves = Counter(HALF_OF[case.name] for case in CASES if case.part in parts)
        assert 3 * min(halves[half] for half in HALVES) >= halves.total()


PAIRS = {f"{shape.name}-{'-and-'.join(names)}": shape.done_well(names) for shape in SHAPES for names in shape.pairs}
"""The scenes of pairs with neither problem."""


@pytest.mark.parametrize("case", [case for case in CASES if case.name in PAIRS], ids=lambda case: case.name)
def test_problems_of_a_pair_add_up_and_stand_apart(case: Case) -> None:
    """Each costs what it costs without the other, within 20 % of the lesser one, and their order is clear."""
    more, less = (planted.truth.step_ps for planted in case.planted)
    assert more >= 1.3 * less
    both = case.played.step_ps - play(PAIRS[case.name]).step_ps
    assert abs(both - more - less) <= 0.2 * less


HEALTHY = [case for case in CASES if case.is_healthy]


@pytest.mark.parametrize("case", HEALTHY, ids=lambda case: case.name)
def test_healthy_shapes_neither_idle_nor_wait(case: Case) -> None:
    """What can be said against a program without knowing it: devices without work, and waits for others."""
    played = case.played
    span = float((played.step_ends[-1] - played.step_begins[0]).mean())
    busy = sum(float((launch.end - launch.begin).mean()) for launch in played.launches)
    waits = sum(
        float(launch.durations[row].mean())
        for launch in played.launches
        for row, op in enumerate(launch.ops.tolist())
        if _is_wait(launch, op)
    )
    assert busy >= 0.97 * span
    assert waits <= 0.03 * span


def _is_wait(launch: Launch, op: int) -> bool:
    timed = launch.program.ops[op]
    value = timed.op.instruction
    ends = value.opcode.endswith(b"-done") or b"-done" in value.name
    return ends or bool(timed.op.groups and not value.opcode.endswith(b"-start") and b"-start" not in value.name)


def test_a_stack_takes_the_time_of_its_parts() -> None:
    def step(**changes: object) -> float:
        return play(replace(PLAIN, work=(replace(PLAIN.work[0], **changes),))).step_ps  # type: ignore[type-var]

    one, tolerance = step(layers=1), 0.01 * step()
    assert step() - one > 0
    assert abs(step(layers=5) - one - 4 * (step() - one)) <= tolerance
    assert abs(step(scanned=True) - step()) <= tolerance
    assert abs(step(micro=4) - 4 * step()) <= 4 * tolerance
    assert abs(step(turn=(MULTIPLIES,), micro=4) - step(once=(MULTIPLIES,) * 4, micro=4)) <= 4 * tolerance
    assert step(rows=4096) > step()


@pytest.mark.parametrize("opcode", ["all-gather", "reduce-scatter", "all-to-all", "all-reduce"])
def test_a_collective_beside_enough_work_costs_nothing(opcode: str) -> None:
    bare = Stack(4096, 2048, 2, (Gemms(((0, 0, 8192),) * 4, "dot_general"),))
    beside = Beside(opcode, 1024, bare.each)
    times = [
        play(replace(PLAIN, work=(replace(bare, each=each),), cores=4)).step_ps
        for each in (bare.each, (beside,), (replace(beside, bad=True),))
    ]
    assert times[1] - times[0] <= 0.001 * times[0]
    late = play(replace(PLAIN, work=(replace(bare, each=(replace(beside, bad=True),)),), cores=4))
    waits = _of(late.launches[0], opcode).sum(axis=0)
    assert abs(times[2] - times[0] - waits.max()) <= 0.02 * waits.max()


def test_uneven_work_is_as_much_as_even_work() -> None:
    for bad in (False, True):
        played = play(replace(PLAIN, work=(replace(PLAIN.work[0], once=(Uneven((0.5, 1.5), Scores(False), bad),)),)))  # type: ignore[type-var]
        lengths = _of(played.launches[0], "splash_attention")
        assert np.allclose(lengths / lengths.mean(), (0.5, 1.5) if bad else 1, rtol=1e-6)


def test_blocks_go_around_a_ring_once() -> None:
    work = (MULTIPLIES,) * 3
    whole, late = (
        play(replace(PLAIN, cores=4, work=(Stack(8192, 4096, 2, (Ring(1024, work, bad),)),))) for bad in (False, True)
    )
    assert len(_of(whole.launches[0], "collective-permute-start")) == 2 * 3
    assert len(_of(whole.launches[0], "fusion")) == 2 * 4 * len(work)
    on_the_way = 1024 * 4096 * 2 / (2 * V5E.link_bytes) * 1e12
    assert abs(late.step_ps - whole.step_ps - 2 * 3 * on_the_way) <= 0.1 * 2 * 3 * on_the_way


def test_scores_that_go_through_hbm_cost_more_than_a_kernel() -> None:
    good, bad = (play(replace(PLAIN, work=(Stack(1024, 1024, 3, (Scores(bad=bad),)),))) for bad in (False, True))
    moved = 4 * 2 * 32 * 2048 * 2048
    assert bad.step_ps - good.step_ps > 0
    assert bad.step_ps >= 3 * moved / V5E.hbm_bytes * 1e12


def test_weights_are_cast_as_fast_as_memory_allows() -> None:
    plain, cast = (play(replace(PLAIN, work=(replace(PLAIN.work[0], once=(Cast(bad),)),))) for bad in (False, True))  # type: ignore[type-var]
    moved = 32_768 * 4096 * 6 / V5E.hbm_bytes * 1e12
    assert moved <= cast.step_ps - plain.step_ps <= 1.2 * moved


def test_gradients_are_exchanged_and_weights_gathered_once_a_layer() -> None:
    trains = play(Scene((decoder(layers=3),), V5E)).launches[0]
    assert len(_of(trains, "all-reduce-start")) == 3
    shards = play(Scene((sharded(layers=2),), V5P, cores=8)).launches[0]
    assert len(_of(shards, "all-gather-start")) == 2 * 2
    assert len(_of(shards, "reduce-scatter-start")) == 2
    assert len(_of(play(Scene((decoder(exchange=""),), V5E)).launches[0], "all-reduce")) == 0


def test_a_chip_is_slow_from_its_step_on() -> None:
    scene = replace(PLAIN, steps=10)
    steps = _steps(play(replace(scene, chips=Chips(jitter=0, speed=((1, 1.5),), since=6))))
    even = _steps(play(scene))
    assert np.array_equal(steps[:6], even[:6])
    assert (steps[6:] > 1.4 * even[6:]).all()


def test_a_chore_begins_with_its_step_and_comes_at_its_rhythm() -> None:
    chore = Chore("$checks.py:1 check", 5 * MS, since=4, every=3, offset=1)
    (events,) = play(replace(PLAIN, steps=12, loop=Loop(ahead=0, chores=(chore,)))).events
    done = [event for event in events if event.name == chore.name]
    begins = [event.begin for event in events if event.name == "train"]
    assert [sum(begin <= event.begin for begin in begins) - 1 for event in done] == [4, 7, 10]


def test_input_is_slow_from_its_step_on() -> None:
    loop = Loop(slow_every=1, slow_ps=20 * MS, slow_since=5)
    steps = _steps(play(replace(PLAIN, steps=12, loop=loop)))
    assert steps[:4].max() < 8 * MS
    assert np.median(steps[7:]) > 15 * MS


def test_a_pause_of_one_host_holds_up_all_cores_in_its_step_alone() -> None:
    pause = Chore("$gc collect", 40 * MS, every=4, offset=1, hosts=(1,), before=True)
    work = (replace(PLAIN.work[0], once=(Beside("all-reduce", 1024, bad=True),)),)  # type: ignore[type-var]
    played = play(replace(PLAIN, work=work, hosts=2, steps=12, loop=Loop(ahead=0, chores=(pause,))))
    steps = played.step_ends - played.step_begins
    assert [int(step) for step in np.flatnonzero((steps > 30 * MS).all(axis=1))] == [1, 5, 9]
    assert (np.delete(steps, [1, 5, 9], axis=0) < 12 * MS).all()
    assert sum(event.name == pause.name for event in played.events[0]) == 0


def test_a_call_is_named_as_its_program_where_the_loop_gives_no_name() -> None:
    other = Stack(512, 512, 1, block(512, 512, 1024, 2), name="jit_eval_step")
    scene = replace(PLAIN, work=(*PLAIN.work, other), turns=((0,), (0, 1)), steps=4, loop=Loop(call=""))
    calls = Counter(event.name for event in play(scene).events[0] if event.name.startswith("PjitFunction"))
    assert calls == {"PjitFunction(step)": 4, "PjitFunction(eval_step)": 2}


@pytest.mark.parametrize(
    ("plant", "text", "says"),
    [
        (Plant("host", (), every=8), "Every 8th step, `jit_eval_step`", True),
        (Plant("host", (), every=8), "In every 8 steps", True),
        (Plant("host", (), every=8), "in 8 of 24 steps", False),
        (Plant("host", (), every=2), "in every other step", True),
        (Plant("host", (), since=6), "from step 106 on", True),
        (Plant("host", (), since=6), "from step 6 on", True),
        (Plant("host", (), since=6), "from step 116 on", False),
        (Plant("host", (), since=6), "6 steps are slow", False),
    ],
)
def test_when_a_problem_comes_is_told_by_its_rhythm_or_its_first_step(plant: Plant, text: str, says: bool) -> None:
    assert bool(re.search(plant.when, text)) == says


def test_what_is_done_well_differs_from_the_scene_by_the_part_alone() -> None:
    plant = Plant("memory-bound", (), part=Activations(rows=4096), into="each")
    bad, good = (plant.into_scene(PLAIN, bad) for bad in (True, False))
    assert bad.work[0].each[:-1] == good.work[0].each[:-1] == PLAIN.work[0].each  # type: ignore[attr-defined]
    assert replace(bad, work=()) == replace(good, work=()) == replace(PLAIN, work=())
    removed = replace(plant, instead=())
    assert removed.into_scene(PLAIN, bad=False) == PLAIN
