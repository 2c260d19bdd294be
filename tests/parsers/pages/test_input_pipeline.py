"""The input pipeline page: what waits, what the host does, the tree of stages, and what it advises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import OpSpec, PlaneBuilder, bare_host, present, summary_of, tpu_plane
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.host_events.input_events import TRANSFER, WAIT, InputRows, merge_input_rows
from tpuprof.parsers.ops.host_events.ops import HostOps, merge_host_ops
from tpuprof.parsers.pages.input.input import NO_EVENTS, NO_HOST_EVENTS, input_pipeline_page, page_of, stages_of
from tpuprof.parsers.pages.input.model import InputOp, InputPipelinePage
from tpuprof.parsers.pages.overview.overview import overview

US = 1_000_000
HostSpec = tuple[str, int, int]


def profile(ops: Sequence[Sequence[OpSpec]], host: Sequence[Sequence[HostSpec]] = (), steps: int = 4) -> XSpace:
    """Cores with steps of 100 µs and a host whose threads ran events of a name, start and end in µs."""
    space = XSpace()
    marks = [(str(100 + n), n * 100 * US, (n + 1) * 100 * US) for n in range(steps)]
    for ordinal, spec in enumerate(ops):
        core = [(name, category, at * US, length * US) for name, category, at, length in spec]
        tpu_plane(space, ordinal, core, steps=marks)
    if host:
        PlaneBuilder(space, "/host:CPU").threads(host, US)
    return space


def page(*spaces: XSpace) -> InputPipelinePage:
    summaries = [summary_of(space, f"host{at}") for at, space in enumerate(spaces)]
    return input_pipeline_page(summaries, overview(summaries))


def with_infeed(waits: Sequence[int]) -> list[OpSpec]:
    """Steps of 100 µs that begin with an infeed of so many µs and compute for 50."""
    ops: list[OpSpec] = []
    for n, wait in enumerate(waits):
        ops += [("infeed.1", "infeed", n * 100, wait)] if wait else []
        ops.append(("fusion.1", "convolution fusion", n * 100 + wait, 50))
    return ops


def test_each_step_counts_with_the_core_that_waits_most() -> None:
    found = page(profile([with_infeed([10, 20, 0, 0]), with_infeed([5, 40, 0, 30])]))
    assert found.source == "infeed"
    assert [(step.name, step.wait_ps, step.core) for step in found.steps] == [
        ("100", 10 * US, "host0:0"),
        ("101", 40 * US, "host0:1"),
        ("102", 0, None),
        ("103", 30 * US, "host0:1"),
    ]
    assert [step.percent_average for step in found.steps] == pytest.approx([7.5, 30.0, 0.0, 15.0])
    assert [step.percent_minimum for step in found.steps] == pytest.approx([5.0, 20.0, 0.0, 0.0])
    assert found.infeed_percent is not None
    assert found.infeed_percent.average == pytest.approx(20.0)
    assert found.infeed_percent.median == pytest.approx(20.0)
    assert (found.infeed_percent.minimum, found.infeed_percent.maximum) == pytest.approx((0.0, 40.0))
    assert found.infeed_percent.standard_deviation == pytest.approx(np.std([10, 40, 0, 30], ddof=1))
    assert found.worst_step == 1
    assert found.unknown.keys() == {"breakdown_us"}
    assert found.next_steps == NO_HOST_EVENTS


def test_a_profile_without_input_events_says_so_and_what_to_turn_on() -> None:
    found = page(bare_host())
    assert not found.has_input_events
    assert found.next_steps == NO_EVENTS
    assert set(found.unknown) >= {"device.step_time_ms", "device.infeed_percent", "breakdown_us"}
    assert (found.step_time, found.infeed_percent, found.breakdown, found.steps, found.ops) == (
        None,
        None,
        None,
        (),
        (),
    )
    assert found.worst_step is None


def test_a_program_that_computes_all_the_time_has_little_to_gain() -> None:
    found = page(profile([[("fusion.1", "convolution fusion", n * 100, 100) for n in range(4)]]))
    assert found.bottleneck.classification == "device"
    assert found.next_steps[0].startswith(f"Little to gain here. {found.bottleneck.statement}")
    assert found.infeed_percent is None and [step.wait_ps for step in found.steps] == [None] * 4


def test_one_step_that_waits_long_among_others_is_named() -> None:
    found = page(profile([with_infeed([1, 1, 1, 40, 1, 1, 1, 1, 1, 1, 1, 1, 1])], steps=13))
    assert found.bottleneck.classification == "device"
    assert "Step 103 stands out: it waits 40.0% of its time (median step: 1.0%)." in found.next_steps[1]


# --- the host


def host_ops(rows: Sequence[tuple[str, str, int, int, int]], enqueue: tuple[int, int] = (0, 0)) -> HostOps:
    """Framework ops of name, type, count, total and self time; the sums that the enqueue ratio is of."""
    ordered = sorted(rows, key=lambda row: (-row[4], row[0]))
    columns = [np.array([row[at] for row in ordered], np.int64) for at in (2, 3, 4)]
    empty = merge_host_ops([])
    return replace(
        empty,
        name=tuple(row[0] for row in ordered),
        type=tuple(row[1] for row in ordered),
        stage_id=np.zeros(len(rows), np.int64),
        occurrences=columns[0],
        total_ps=columns[1],
        self_ps=columns[2],
        is_eager=np.zeros(len(rows), np.bool_),
        enqueue_ps=enqueue[0],
        enqueue_interval_ps=enqueue[1],
    )


BOUND = overview([summary_of(profile([with_infeed([40, 40, 40, 40])]))])
GRID = summary_of(profile([with_infeed([40, 40, 40, 40])])).steps


def of(ops: HostOps, rows: Sequence[tuple[str, str, int]] = ()) -> InputPipelinePage:
    """The page of a program that waits for input 40 % of the time, with such a host."""
    numbers = np.array([row[2] for row in rows], np.int64)
    found = InputRows(tuple(r[0] for r in rows), tuple(r[1] for r in rows), numbers, numbers, numbers)  # type: ignore[misc]
    return page_of(BOUND, GRID, ops, merge_input_rows([found]))


def sizes(found: InputPipelinePage) -> tuple[float, ...]:
    parts = present(found.breakdown)
    return (
        parts.enqueue_ps,
        parts.demanded_file_read_ps,
        parts.advanced_file_read_ps,
        parts.preprocessing_ps,
        parts.unclassified_ps,
    )


READ = ("Iterator::Root::TFRecord", "Dataset", 5, 30, 30)
AHEAD = ("Iterator::Root::Prefetch::TFRecord", "Dataset", 5, 20, 20)
MAP = ("Iterator::Root::Prefetch::Map", "Dataset", 5, 10, 10)
ENQUEUE = ("InfeedEnqueue", "InfeedEnqueueTuple", 5, 10, 10)
OTHER = ("MatMul", "MatMul", 5, 1000, 1000)
ODD = ("stage", "unknown", 5, 40, 40)


def test_without_enqueues_the_parts_are_plain_self_time() -> None:
    assert sizes(of(host_ops([READ, AHEAD, MAP, OTHER, ODD]))) == (0, 30, 20, 10, 0)


def test_enqueues_keep_their_share_of_time() -> None:
    found = sizes(of(host_ops([READ, AHEAD, MAP, ENQUEUE], (10, 100))))  # 10 of 100: the rest is 90
    assert found == pytest.approx((10, 45, 30, 15, 0))
    assert sizes(of(host_ops([ENQUEUE], (10, 100)))) == pytest.approx((10, 0, 0, 0, 90))
    assert sizes(of(host_ops([READ, ENQUEUE], (500, 100)))) == (10, 0, 0, 0, 0)  # enqueues all the time
    assert sizes(of(host_ops([READ, ENQUEUE], (0, 100)))) == (10, 30, 0, 0, 0)


def test_percentages_are_of_the_ops_of_their_group() -> None:
    found = of(host_ops([READ, MAP, OTHER]), [("DevicePut", TRANSFER, 7), ("IteratorGetNext", WAIT, 21)])
    assert [(op.name, op.group, op.self_percent) for op in found.ops] == [
        ("Iterator::Root::TFRecord", "input_op", 75.0),
        ("Iterator::Root::Prefetch::Map", "input_op", 25.0),
        ("IteratorGetNext", "device_feed", 75.0),
        ("DevicePut", "device_feed", 25.0),
    ]
    assert found.totals() == {"Demanded file read": 30, "Preprocessing": 10, WAIT: 21, TRANSFER: 7}


@pytest.mark.parametrize(
    ("ops", "rows", "words"),
    [
        ([READ], [], ("asked for", "Iterator::Root::TFRecord", "prefetch(tf.data.AUTOTUNE)")),
        ([AHEAD], [], ("ahead", "Iterator::Root::Prefetch::TFRecord", "cycle_length")),
        ([MAP], [], ("Preprocessing", "Iterator::Root::Prefetch::Map", "num_parallel_calls")),
        ([("Iterator::Root::Prefetch", "Dataset", 1, 99, 99), MAP], [], ("Iterator::Root::Prefetch::Map",)),  # it waits
        ([("Iterator::Root::ParallelMapV2", "Dataset", 1, 9, 9)], [], ("ParallelMapV2", "parallel already")),
        ([("Iterator::Root::Generator", "Dataset", 1, 9, 9)], [], ("Generator", "generators")),
        ([ENQUEUE], [], ("device", "InfeedEnqueue", "larger")),
        ([ODD], [], ("No op says",)),
        ([], [("DevicePut", TRANSFER, 7), ("IteratorGetNext", WAIT, 3)], ("DevicePut", "device_put one step ahead")),
        ([MAP], [("DevicePut", TRANSFER, 7), ("IteratorGetNext", WAIT, 30)], ("Iterator::Root::Prefetch::Map",)),
        ([], [("IteratorGetNext", WAIT, 30)], ("waits in IteratorGetNext",)),
        ([], [("X.__next__", "Produce input", 30)], ("X.__next__", "workers")),
    ],
)
def test_advice_is_about_the_largest_part(
    ops: Sequence[tuple[str, str, int, int, int]], rows: Sequence[tuple[str, str, int]], words: Sequence[str]
) -> None:
    found = of(host_ops(ops), rows)
    assert found.bottleneck.classification == "host"
    assert all(word in found.next_steps[0] for word in words)


def test_a_long_name_is_cut_in_advice_and_braces_stay() -> None:
    found = of(host_ops([("Iterator::" + "x" * 1000 + "::{op}Map", "Dataset", 1, 9, 9)]))
    assert len(found.next_steps[0]) < 400
    assert "xx::{op}Map" in found.next_steps[0]


# --- stages


def op(name: str, total: int = 1, group: str = "input_op") -> InputOp:
    return InputOp(name, "Preprocessing", group, 0, 1, total, 1, 0.0, 0.0)  # type: ignore[arg-type]


def test_stages_stand_below_the_nearest_stage_that_is_there() -> None:
    names = ["Iterator::A::B::C::D", "Iterator::A", "enqueue", "Iterator::A::B", "Iterator::AB", "Iterator::A::E"]
    ops = [op(name, total) for total, name in enumerate(names)]
    found = stages_of([*ops, op("Iterator::A::E::F", 100, "device_feed")])
    assert [(stage.depth, stage.label, stage.parent) for stage in found] == [
        (0, "Iterator::AB", -1),
        (0, "enqueue", -1),
        (0, "Iterator::A", -1),
        (1, "E", 2),
        (1, "B", 2),
        (2, "C::D", 4),
        (0, "Iterator::A::E::F", -1),
    ]


@given(st.lists(st.lists(st.sampled_from(["A", "B", "", ":"]), max_size=5), max_size=12))
def test_any_names_make_a_forest(spec: list[list[str]]) -> None:
    ops = [op("::".join(["Iterator", *parts]), at) for at, parts in enumerate(spec)]
    found = stages_of(ops)
    assert sorted(stage.op for stage in found) == list(range(len(ops)))
    for at, stage in enumerate(found):
        assert stage.parent < at
        if stage.parent >= 0:
            around = found[stage.parent]
            assert stage.depth == around.depth + 1
            assert ops[stage.op].name == f"{ops[around.op].name}::{stage.label}"


def test_a_name_of_a_million_parts_is_no_matter() -> None:
    assert len(stages_of([op("Iterator" + "::A" * 300_000), op("Iterator::A")])) == 2
