"""A cycle of programs is found wherever the capture cuts it, and its steps are as long as the cycle takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import present, tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.step_summary import find_steps
from tpuprof.parsers.steps.boundaries.cycles import Cycle, repeating
from tpuprof.parsers.steps.boundaries.runs import module_runs

Blocks = list[tuple[int, int]]
"""A number and how often it stands in a row."""


def blocks_of(sequence: Sequence[int]) -> Blocks:
    return [(value, len(list(run))) for value, run in groupby(sequence)]


def goes_on(found: Blocks, cycle: Blocks) -> bool:
    """Whether some blocks are a cycle again and again, the first and the last one maybe cut."""
    for turn in range(len(cycle)):
        expected = [cycle[(turn + at) % len(cycle)] for at in range(len(found))]
        edges = {0, len(found) - 1}
        if all(
            own == other or (at in edges and own[0] == other[0] and own[1] <= other[1])
            for at, (own, other) in enumerate(zip(found, expected, strict=True))
        ):
            return True
    return False


_CYCLES = st.lists(st.integers(0, 3), min_size=2, max_size=7).filter(lambda cycle: len(set(cycle)) > 1)


@given(_CYCLES, st.integers(4, 6), st.integers(0, 6), st.integers(0, 6))
def test_what_is_found_is_the_shortest_that_goes_on(cycle: list[int], times: int, begin: int, end: int) -> None:
    begin, end = min(begin, len(cycle) - 1), min(end, len(cycle) - 1)
    sequence = (cycle * times)[begin : len(cycle) * times - end]
    what, size = present(repeating(np.array(sequence, np.int64)))
    blocks, found = blocks_of(sequence), list(zip(what.tolist(), size.tolist(), strict=True))
    assert goes_on(blocks, found)
    inner = blocks[1:-1]
    assert not any(goes_on(blocks, inner[:shorter]) for shorter in range(2, len(found)))


@given(st.lists(st.integers(0, 2), max_size=40))
def test_what_repeats_is_in_the_sequence(sequence: list[int]) -> None:
    found = repeating(np.array(sequence, np.int64))
    if found is not None:
        blocks, cycle = blocks_of(sequence), list(zip(*(column.tolist() for column in found), strict=True))
        assert cycle in [blocks[at : at + len(cycle)] for at in range(len(blocks))]


# --- programs ------------------------------------------------------------------------------------------------------


def cores_that_run(programs: Sequence[tuple[str, int]], are_named: bool = True) -> Trace:
    """Two cores that run programs for such times, one right after the other; their names may be lost."""
    space, ends = XSpace(), np.cumsum([length for _, length in programs]).tolist()
    runs = [(f"{name}(7)", end - length, end) for (name, length), end in zip(programs, ends, strict=True)]
    for ordinal in range(2):
        plane = tpu_plane(space, ordinal, [], (), runs).plane
        if not are_named:
            plane.event_metadata.clear()
    return trace_of(space)


ACT, UPDATE, GRAD, APPLY = ("jit_act", 5), ("jit_update", 60), ("jit_grad", 50), ("jit_apply_gradients", 3)
STEP, EVAL, GRAPHS = (
    ("jit_train_step", 50),
    ("jit_evaluate", 40),
    [("SyncTensorsGraph.1", 80), ("SyncTensorsGraph.2", 20)],
)


@pytest.mark.parametrize(
    ("programs", "words", "step"),
    [
        ([*([ACT] * 16), UPDATE] * 5, "16 x jit_act, jit_update", 140),
        (([*([ACT] * 16), UPDATE] * 5)[7:-9], "16 x jit_act, jit_update", 140),
        ([*([ACT] * 6), UPDATE, *([ACT] * 4), UPDATE] * 3, "about 4 x jit_act, jit_update", 80),
        (GRAPHS * 5, "SyncTensorsGraph.2, SyncTensorsGraph.1", 100),
        ([*([GRAD] * 8), APPLY] * 4, "8 x jit_grad, jit_apply_gradients", 403),
        ([GRAD, GRAD, APPLY] * 3 + [EVAL] * 2 + [GRAD, GRAD, APPLY] * 4, "2 x jit_grad, jit_apply_gradients", 103),
        (([*([ACT] * 4), *([UPDATE] * 3)] * 5)[:-1], "4 x jit_act, 3 x jit_update", 200),
        ([("jit_generate", 90), UPDATE] * 4, "jit_update, jit_generate", 150),
        ([*([STEP] * 10), EVAL] * 4, None, 50),
        ([*([STEP] * 10), ("jit_forward", 40)] * 4, None, 50),
        ([("jit_prefill", 90), *([("jit_decode", 5)] * 32)] * 4, None, 5),
    ],
    ids=[
        "act",
        "cut",
        "varies",
        "graphs",
        "accumulated",
        "evaluated",
        "several",
        "rollout",
        "eval",
        "forward",
        "serving",
    ],
)
def test_programs_that_take_turns_are_one_step(programs: list[tuple[str, int]], words: str | None, step: int) -> None:
    trace = cores_that_run(programs)
    found = find_steps(trace, trace.planes, None)
    assert found.origins[0].source == ("modules" if words is None else "cycle")
    assert words is None or found.origins[0].note.endswith(f"the cycle of programs {words}")
    for core in found.of_cores:
        assert np.median(core.duration_ps) == step
        assert (core.start_ps[1:] == core.end_ps[:-1]).all()


def test_a_program_that_marks_steps_leaves_others_beside_it_theirs() -> None:
    space = XSpace()
    marks = [(str(step), 100 * step, 100 * step + 90) for step in range(4)]
    tpu_plane(space, 0, [], marks, [("jit_train(1)", start, end) for _, start, end in marks])
    tpu_plane(space, 1, [], (), [("jit_decode(2)", 30 * run, 30 * run + 9) for run in range(12)])
    tpu_plane(
        space, 2, [], (), [(("jit_act(3)", "jit_update(4)")[run % 2], 20 * run, 20 * run + 9) for run in range(16)]
    )
    trace = trace_of(space)
    found = find_steps(trace, trace.planes, None)
    assert [origin.source for origin in found.origins] == ["steps", "modules", "cycle"]
    assert [np.median(steps.duration_ps) for steps in found.of_cores] == [90, 30, 40]


def test_a_core_without_the_cycle_has_no_steps_of_it() -> None:
    cycle = Cycle((("jit_act(7)", 4), ("jit_update(7)", 2)))
    assert not len(cycle.steps(module_runs(cores_that_run([STEP] * 4).planes[0])))


def test_programs_whose_names_are_lost_stay_apart_and_too_few_runs_are_no_steps() -> None:
    for programs, is_cycle in (([("f", 50), ("g", 50)] * 4, True), ([("f", 50)] * 2, False)):
        trace = cores_that_run(programs, are_named=False)
        found = find_steps(trace, trace.planes, None)
        words = "the cycle of programs event 1, event 2" if is_cycle else "no HLO module ran at least 3 times"
        assert words in found.origins[0].note
        assert set(found.of_cores[0].duration_ps.tolist()) == ({100} if is_cycle else set())
