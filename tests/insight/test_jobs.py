"""What must hold of the jobs, and of the parts of programs that they brought into the simulator."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.insight.cases.all import CASES, HALF_OF, SHOWN
from tests.insight.cases.case import CODEBASES, DOMAINS, JOBS, LABS
from tests.insight.cases.shapes.codebases.parts import (
    Frozen,
    LazyGraph,
    Losses,
    Permuted,
    Repeated,
    Selected,
    Streamed,
)
from tests.insight.cases.shapes.labs.domains.parts import (
    BetweenSpaceAndTime,
    Edges,
    OnAxis,
    OneByOne,
    Rotations,
    Rounded,
    ShiftedByOne,
    axis_groups,
)
from tests.insight.cases.shapes.labs.parts import Associative, Fourier, Halo
from tests.insight.simulator.code import (
    DCN_BYTES,
    DCN_LATENCY_PS,
    LINK_LATENCY_PS,
    PCIE_BYTES,
    US,
    V4,
    V5E,
    V5P,
    V6E,
    V7X,
)
from tests.insight.simulator.parts import Part
from tests.insight.simulator.play import MS, Chips, Launch, Loop, Played
from tests.insight.simulator.scene import Scene, compiled, play
from tests.insight.simulator.schedules import AcrossSlices, Dispatched, OneForwardOneBackward, Windowed, WithinSlices
from tests.insight.simulator.stack import Gemms, Stack
from tests.insight.simulator.tensors import Kept, RandomBits, RunningSum, Sort, Summed

CASES_OF_JOBS = [case for case in CASES if case.later == JOBS]
CASES_OF_CODEBASES = [case for case in CASES if case.later == CODEBASES]
CASES_OF_LABS = [case for case in CASES if case.later == LABS]
CASES_OF_DOMAINS = [case for case in CASES if case.later == DOMAINS]
MULTIPLIES = Gemms(((0, 0, 0),) * 2, "dot_general")
QUIET = Chips(jitter=0)


def _played(*parts: Part, cores: int = 4, chips: Chips = QUIET) -> Played:
    """A step of two products and these parts, of cores without noise."""
    stack = Stack(8192, 4096, 1, (MULTIPLIES,), once=parts)
    return play(Scene((stack,), V5P, cores=cores, steps=4, chips=chips))


def _costs(part: Part) -> float:
    """Picoseconds a step of a part."""
    return _played(part).step_ps - _played().step_ps


def _of(launch: Launch, word: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Durations [event, core] of a run's ops whose scope has a word."""
    scopes = [launch.program.ops[op].op.instruction.metadata.op_name.decode() for op in launch.ops.tolist()]
    return launch.durations[[word in scope for scope in scopes]]


def test_jobs_are_many_of_all_chips_and_held_back_until_they_are_shown() -> None:
    counts = Counter(len(case.planted) for case in CASES_OF_JOBS)
    assert counts[1] >= 32
    assert counts[2] >= 16
    assert counts[0] >= 24
    assert {HALF_OF[case.name] for case in CASES_OF_JOBS if case.name not in SHOWN} == {"held"}
    assert {case.scene.device for case in CASES_OF_JOBS} == {V4, V5E, V5P, V6E, V7X}


def test_codebases_are_many_of_all_chips_and_held_back_until_they_are_shown() -> None:
    counts = Counter(len(case.planted) for case in CASES_OF_CODEBASES)
    assert counts[1] >= 45
    assert counts[2] >= 24
    assert counts[0] >= 18
    assert {HALF_OF[case.name] for case in CASES_OF_CODEBASES if case.name not in SHOWN} == {"held"}
    assert {case.scene.device for case in CASES_OF_CODEBASES} == {V4, V5E, V5P, V6E, V7X}


def test_labs_are_many_of_all_chips_and_held_back_until_they_are_shown() -> None:
    counts = Counter(len(case.planted) for case in CASES_OF_LABS)
    assert counts[1] >= 49
    assert counts[2] >= 16
    assert counts[0] >= 17
    assert {HALF_OF[case.name] for case in CASES_OF_LABS if case.name not in SHOWN} == {"held"}
    assert {case.scene.device for case in CASES_OF_LABS} == {V4, V5E, V5P, V6E, V7X}


def test_domains_are_many_of_all_chips_and_held_back_until_they_are_shown() -> None:
    counts = Counter(len(case.planted) for case in CASES_OF_DOMAINS)
    assert counts[1] >= 38
    assert counts[2] >= 12
    assert counts[0] >= 16
    assert {HALF_OF[case.name] for case in CASES_OF_DOMAINS if case.name not in SHOWN} == {"held"}
    assert {case.scene.device for case in CASES_OF_DOMAINS} == {V4, V5E, V5P, V6E, V7X}
    assert len({case.kind for case in CASES_OF_DOMAINS if not case.is_healthy}) >= 25


def test_problems_of_labs_and_domains_are_worth_4_to_60_percent_of_a_step() -> None:
    chosen = (*CASES_OF_LABS, *CASES_OF_DOMAINS)
    worths = {f"{case.name} {each.kind}": each.truth.fraction for case in chosen for each in case.planted}
    assert not {name: worth for name, worth in worths.items() if not 0.04 <= worth <= 0.6}


def test_stages_work_on_each_microbatch_forward_and_backward_once() -> None:
    even = OneForwardOneBackward(6, (MULTIPLIES,), (MULTIPLIES,) * 2)
    launches = [
        play(Scene((work,), V5P, cores=4, steps=2, chips=QUIET)).launches[0]
        for work in (even, replace(even, bubbles=True))
    ]
    for launch in launches:
        assert ((_of(launch, "body/stage") > 0).sum(axis=0) == 6 * 2).all()
        assert ((_of(launch, "transpose(stage)") > 0).sum(axis=0) == 6 * 4).all()
    whole, waiting = (int((launch.end - launch.begin).max()) for launch in launches)
    stage = (_of(launches[0], "stage").sum(axis=0) / 6).max()
    assert 3 * stage <= waiting - whole <= 6 * stage


@pytest.mark.parametrize("scatters", [False, True])
def test_products_in_windows_are_the_whole_product(scatters: bool) -> None:
    window = Windowed((8192,), scatters=scatters)
    blocks, whole = (_played(replace(window, bad=bad)).launches[0] for bad in (False, True))
    flops = [
        sum(launch.program.ops[op].op.flops for op in launch.ops.tolist() if "fusion" in _name(launch, op))
        for launch in (blocks, whole)
    ]
    assert flops[0] == flops[1]
    moved = 8192 * 4096 * 2 * 3 / 4 / (2 * V5P.link_bytes) * 1e12
    assert _costs(replace(window, bad=True)) - _costs(window) == pytest.approx(moved, rel=0.1)


def _name(launch: Launch, op: int) -> str:
    return launch.program.ops[op].op.instruction.name.decode()


def test_an_exchange_between_slices_beside_enough_work_costs_nothing() -> None:
    on_the_way = (4 << 20) / DCN_BYTES * 1e12 + DCN_LATENCY_PS
    work = (MULTIPLIES,) * 8
    assert _costs(AcrossSlices(4, work)) - _costs(AcrossSlices(0, work)) <= 0.01 * on_the_way
    assert _costs(AcrossSlices(4, bad=True)) == pytest.approx(on_the_way, rel=0.02)


def test_a_slice_waits_for_the_other_only_where_they_exchange() -> None:
    slow = Chips(jitter=0, speed=((3, 1.5),))
    within = _played(WithinSlices("reduce-scatter", 4096, bad=True), chips=slow)
    ends = within.launches[0].end - within.launches[0].begin
    assert ends[0] == ends[1] < ends[2] == ends[3]
    across = _played(AcrossSlices(4, bad=True), chips=slow)
    ends = across.launches[0].end - across.launches[0].begin
    assert ends[0] == ends[2] < ends[1] <= ends[3]


def test_uneven_experts_have_as_many_tokens_as_even_ones() -> None:
    uneven = Dispatched((0.6, 1.6, 0.9, 0.9), hidden=8192)
    lengths = [_of(_played(replace(uneven, bad=bad)).launches[0], "experts")[0] for bad in (True, False)]
    assert lengths[0].sum() == pytest.approx(lengths[1].sum(), rel=1e-6)
    assert lengths[0].max() == pytest.approx(1.6 * lengths[1].max(), rel=1e-6)


@pytest.mark.parametrize(
    "part", [Sort(length=1 << 20), RunningSum(), RandomBits(), Kept()], ids=lambda part: type(part).__name__
)
def test_what_is_done_badly_takes_more_than_twice_as_long(part: Sort | RunningSum | RandomBits | Kept) -> None:
    assert _costs(part) > 2 * max(_costs(replace(part, bad=False)), 0)


def test_a_running_sum_by_windows_grows_with_the_square_of_its_length() -> None:
    short, long = (_costs(RunningSum(rows=64, length=length)) for length in (8192, 16_384))
    assert long / short == pytest.approx(4, rel=0.05)


def test_sums_in_f32_take_bf16_operands() -> None:
    launch = _played(Summed(((0, 8192),))).launches[0]
    (op,) = [op for op in launch.ops.tolist() if "convolution_fusion" in _name(launch, op)]
    value = launch.program.ops[op].op.instruction
    kinds = [operand.shape.element_type for operand in launch.program.module.operands(value)]
    assert kinds == [16, 16]
    assert value.shape.element_type == 11


def test_programs_of_one_name_have_ids_of_their_own() -> None:
    stack = Stack(512, 512, 1, (MULTIPLIES,), name="jit_step_fun")
    first, second = compiled(Scene((replace(stack, variant="32"), replace(stack, variant="64"))))
    assert first.module.name == second.module.name
    assert first.module.program_id != second.module.program_id


@pytest.mark.parametrize(
    ("part", "size"),
    [
        (Repeated(rows=8192, width=1024, times=4, count=1), 2 * 5 * 8192 * 1024),
        (Selected(slots=8, length=2048, width=1024, count=1), 4 * 8 * 2048 * 1024),
        (Permuted(rows=8192, width=2048, count=1), 4 * 8192 * 2048),
        (Losses(tokens=1024, outputs=32_768), 22 * 1024 * 32_768),
    ],
    ids=lambda given: type(given).__name__,
)
def test_bytes_that_need_not_move_cost_what_moving_them_takes(part: Part, size: int) -> None:
    moved = size / V5P.hbm_bytes * 1e12
    assert moved < _costs(part) - _costs(replace(part, bad=False)) < 1.8 * moved  # type: ignore[type-var]


@pytest.mark.parametrize(("how", "size"), [("packed", 3 * 4096 * 4096), ("adapted", 2 * 3 * 8192 * 4096)])
def test_frozen_weights_and_their_adapters_cost_what_moving_them_takes(how: str, size: int) -> None:
    plain = Frozen(((0, 0, 0),), "dot_general", "layers.py:1")
    moved = size / V5P.hbm_bytes * 1e12
    assert _costs(plain) == pytest.approx(_costs(MULTIPLIES) / 2, rel=0.01)
    assert moved < _costs(replace(plain, **{how: True})) - _costs(plain) < 1.8 * moved  # type: ignore[arg-type]


def test_arrays_of_the_hosts_memory_come_as_fast_as_its_bus_lets_them() -> None:
    assert _costs(Streamed(rows=8192, width=2048)) == pytest.approx(8192 * 2048 * 2 / PCIE_BYTES * 1e12, rel=0.02)


def test_ops_of_pytorch_have_the_names_of_its_functions_alone() -> None:
    parts = (Gemms(((0, 0, 0),), "aten__mm"), Permuted(), Gemms(((0, 0, 0),), "logits/dot_general"))
    (program,) = compiled(Scene((LazyGraph(512, 512, 1, parts),)))
    names = [timed.op.instruction.metadata.op_name for timed in program.ops]
    assert names == [b"aten__mm", b"aten__permute", b"aten__permute", b"dot_general"]
    assert program.module.proto.hlo_module == program.module.module


def test_a_loader_is_slow_until_its_last_slow_step_alone() -> None:
    stack = Stack(512, 512, 1, (MULTIPLIES,))
    loop = Loop(slow_every=1, slow_ps=20 * MS, slow_since=4, slow_until=8)
    played = play(Scene((stack,), V5E, cores=1, steps=16, loop=loop))
    steps = (played.step_ends - played.step_begins).max(axis=1)
    assert [int(step) for step in np.flatnonzero(steps > 10 * MS)] == [4, 5, 6, 7]


def test_a_loop_launches_under_the_name_that_it_gives() -> None:
    stack = Stack(512, 512, 1, (MULTIPLIES,), name="jit_step")
    for launcher, name in (("PjitFunction({})", "PjitFunction(step)"), ("Client::Execute", "Client::Execute")):
        (events,) = play(Scene((stack,), steps=3, loop=Loop(call="", launcher=launcher))).events
        assert sum(event.name == name for event in events) == 3


def test_halos_cost_nothing_beside_the_interior_and_their_way_ahead_of_it() -> None:
    on_the_way = 2 * 8192 * 4096 * 2 / (2 * V5P.link_bytes) * 1e12
    beside, ahead = (_costs(Halo(8192, (MULTIPLIES,), bad=bad)) for bad in (False, True))
    assert beside - _costs(MULTIPLIES) <= 0.01 * on_the_way
    assert ahead - beside == pytest.approx(on_the_way, rel=0.02)


def test_a_transform_moves_its_complex_array_in_and_out() -> None:
    moved = 2 * 8192 * 2048 * 8 / V5P.hbm_bytes * 1e12
    assert moved < _costs(Fourier(8192, 2048)) < 1.5 * moved


def test_a_recurrence_by_levels_reads_what_the_level_before_wrote() -> None:
    by_levels = Associative(rows=8192, width=2048, levels=3)
    assert _costs(by_levels) > 3 * _costs(replace(by_levels, bad=False))
    (program,) = compiled(Scene((Stack(8192, 2048, 1, (by_levels,)),)))
    ops = [timed.op.instruction for timed in program.ops]
    assert len(ops) == 3 * 3
    for level in range(1, 3):
        assert {value.id for value in ops[2 * level - 2 : 2 * level]} == set(ops[2 * level + 1].operand_ids)
    assert ops[-1].operand_ids[0] == ops[-2].id


def test_axes_of_a_mesh_are_its_rows_and_its_columns() -> None:
    assert axis_groups(6, 3, along_rows=True) == ((0, 1, 2), (3, 4, 5))
    assert axis_groups(6, 3, along_rows=False) == ((0, 3), (1, 4), (2, 5))


def test_a_core_waits_only_for_those_of_its_axis() -> None:
    slow = Chips(jitter=0, speed=((3, 1.5),))
    for along_rows, others in ((True, [2]), (False, [1])):
        played = _played(OnAxis("all-reduce", 64, 2, along_rows, bad=True), chips=slow)
        ends = played.launches[0].end - played.launches[0].begin
        waiting = [core for core in range(3) if ends[core] > 1.2 * ends.min()]
        assert waiting == others


def test_a_collective_of_an_axis_beside_enough_work_costs_nothing() -> None:
    beside = OnAxis("all-gather", 2048, 2, parts=(MULTIPLIES,))
    on_the_way = 2048 * 4096 * 2 / (2 * V5P.link_bytes) * 1e12
    assert _costs(beside) - _costs(MULTIPLIES) <= 0.01 * on_the_way
    assert _costs(replace(beside, bad=True)) - _costs(beside) == pytest.approx(on_the_way, rel=0.1)


def test_each_core_gives_its_edges_to_four_neighbours() -> None:
    launch = _played(Edges(64, 2, (MULTIPLIES,))).launches[0]
    starts = [op for op in launch.ops.tolist() if "permute-start" in _name(launch, op)]
    routes = [launch.program.ops[op].route for op in starts]
    assert len(routes) == 4
    for route in routes:
        assert sorted(target for _, target in route) == [0, 1, 2, 3]
    assert _costs(Edges(64, 2, (MULTIPLIES,))) == pytest.approx(_costs(MULTIPLIES), rel=0.01)


def test_collectives_one_by_one_take_the_latency_of_each() -> None:
    many = OneByOne(50, parts=(MULTIPLIES,))
    each = 8 * 4096 * 4 * 2 * 3 / 4 / (2 * V5P.link_bytes) * 1e12 + 4 * LINK_LATENCY_PS
    assert _costs(many) - _costs(replace(many, bad=False)) == pytest.approx(50 * each, rel=0.02)


def test_rotations_are_a_loop_within_a_loop() -> None:
    rotations = Rotations(sweeps=3, pairs=20, us=2)
    launch = _played(rotations).launches[0]
    assert len(_of(launch, "inverse_root")) == 1 + 3 + 3 * 20 * 3
    assert 3 * 20 * 3 * 2 * US < _costs(rotations) < 1.1 * 3 * 20 * 3 * 2 * US


@pytest.mark.parametrize(
    ("part", "size"),
    [
        (Rounded(rows=8192, width=2048, count=1), 2 * 3 * 2 * 8192 * 2048),
        (ShiftedByOne(rows=8192, width=2048, count=1), 2 * 2 * 2 * 8192 * 2048),
        (BetweenSpaceAndTime(frames=8, patches=512, width=2048, count=1), 2 * 2 * 8 * 512 * 2048),
    ],
    ids=lambda given: type(given).__name__,
)
def test_passes_that_need_not_be_cost_what_they_move(part: Part, size: int) -> None:
    moved = size / V5P.hbm_bytes * 1e12
    assert moved < _costs(part) - _costs(replace(part, bad=False)) < 2 * moved  # type: ignore[type-var]
