"""What must hold of the shapes: each is in both halves, pairs add up, rhythms and onsets are where they say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.insight.cases.all import CASES as ALL
from tests.insight.cases.all import SHAPES, SPLIT
from tests.insight.cases.case import HALVES, LATER, Case
from tests.insight.cases.reader import VOCABULARY
from tests.insight.cases.shape import Plant
from tests.insight.simulator.code import V5E, V5P
from tests.insight.simulator.play import MS, Chips, Chore, Launch, Loop, Played
from tests.insight.simulator.scene import Scene, compiled, play
from tests.insight.simulator.stack import Beside, Gemms, Stack
from tests.support.golden import check_golden

CASES = [case for case in ALL if case.shape]
MULTIPLIES = Gemms(((0, 0, 0),), "dot_general")
PLAIN = Scene((Stack(8192, 4096, 2, (MULTIPLIES,), (MULTIPLIES,)),), V5E, cores=2, chips=Chips(jitter=0))


def _steps(played: Played) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Picoseconds of each step, on its slowest core."""
    return np.asarray((played.step_ends - played.step_begins).max(axis=1))


def test_each_shape_was_in_both_halves_when_it_was_made() -> None:
    """Cases of the held-back half that were shown since count as tuned; newer ones took their places."""
    shapes = {case.shape for case in CASES if case.later not in LATER}
    assert len(shapes) >= 16
    for shape in shapes:
        for count, what in enumerate(("healthy", "problem", "pair")):
            alike = [case for case in CASES if case.shape == shape and len(case.planted) == count]
            halves = Counter(SPLIT[case.name] for case in alike)
            assert all(halves[half] for half in HALVES), (shape, what)


PAIRS = {
    f"{shape.name}-{'-and-'.join(names)}": shape.done_well(shape.problems[names[0]][0], names)
    for shape in SHAPES
    for names in shape.pairs
}
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


def test_a_pause_of_one_host_holds_up_all_cores_in_its_step_alone() -> None:
    pause = Chore("$gc collect", 40 * MS, every=4, offset=1, hosts=(1,), before=True)
    work = (replace(PLAIN.work[0], once=(Beside("all-reduce", 1024, bad=True),)),)  # type: ignore[type-var]
    played = play(replace(PLAIN, work=work, hosts=2, steps=12, loop=Loop(ahead=0, chores=(pause,))))
    steps = played.step_ends - played.step_begins
    assert [int(step) for step in np.flatnonzero((steps > 30 * MS).all(axis=1))] == [1, 5, 9]
    assert (np.delete(steps, [1, 5, 9], axis=0) < 12 * MS).all()
    assert sum(event.name == pause.name for event in played.events[0]) == 0


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


def test_programs_of_one_name_have_ids_of_their_own() -> None:
    stack = Stack(512, 512, 1, (MULTIPLIES,), name="jit_step_fun")
    first, second = compiled(Scene((replace(stack, variant="32"), replace(stack, variant="64"))))
    assert first.module.name == second.module.name
    assert first.module.program_id != second.module.program_id


def test_a_loader_is_slow_until_its_last_slow_step_alone() -> None:
    stack = Stack(512, 512, 1, (MULTIPLIES,))
    loop = Loop(slow_every=1, slow_ps=20 * MS, slow_since=4, slow_until=8)
    played = play(Scene((stack,), V5E, cores=1, steps=16, loop=loop))
    steps = (played.step_ends - played.step_begins).max(axis=1)
    assert [int(step) for step in np.flatnonzero(steps > 10 * MS)] == [4, 5, 6, 7]


GIVEN: Mapping[str, object] = {
    **{"int": 2, "float": 100.0, "str": "all-gather", "source": "layers.py:1"},
    **{"Part": MULTIPLIES, "tuple[Part, ...]": (MULTIPLIES,)},
    **{"tuple[int, ...]": (8192,), "tuple[float, ...]": (0.6, 1.6, 0.9, 0.9)},
    **{"tuple[tuple[int, int], ...]": ((0, 8192),), "tuple[tuple[int, int, int], ...]": ((0, 0, 0),)},
}
"""What parts are made with, by the types or names of their fields without a default."""


def test_parts_of_programs_take_as_long_as_they_did_and_have_the_same_ops() -> None:
    """Each part, done well and badly, once a step of four cores without noise."""
    parts: list[Any] = [part for part in VOCABULARY.values() if is_dataclass(part) and hasattr(part, "emit")]
    lines = []
    for part in sorted(parts, key=lambda part: str(part.__name__)):
        types = {field.name: str(field.type) for field in fields(part) if field.default is MISSING}
        made: Any = part(**{name: GIVEN.get(name, GIVEN[kind]) for name, kind in types.items()})
        for each in [replace(made, bad=bad) for bad in (False, True)] if hasattr(made, "bad") else [made]:
            scene = Scene((Stack(8192, 4096, 1, (MULTIPLIES,), once=(each,)),), V5P, steps=2, chips=Chips(jitter=0))
            (program,), launch = compiled(scene), play(scene).launches[0]
            lengths = (launch.end - launch.begin) / 1e6
            values = [timed.op.instruction for timed in program.ops]
            names = sha256(b" ".join(name for of in values for name in (of.name, of.opcode, of.metadata.op_name)))
            took = f"{lengths.min():.6g} to {lengths.max():.6g} µs, {len(values)} ops {names.hexdigest()[:6]}"
            lines.append(f"{part.__name__}{' badly' * getattr(each, 'bad', False)}: {took}\n")
    check_golden(Path(__file__).parent / "cases" / "parts.txt", "".join(lines))
