"""Which events of a host feed the device: by name, by thread, by the stats of pipeline stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import StatInput
from tests.support.host_events import host_of
from tpuprof.parsers.base.intervals import union
from tpuprof.parsers.ops.host_events import input_events

Event = tuple[str, int, int] | tuple[str, int, int, Mapping[str, StatInput]]
STAGE: dict[str, StatInput] = {"_ipl_stage_name": "Batch"}


def waits(*threads: Sequence[Event]) -> list[tuple[int, int]]:
    start, end = input_events.input_waits(host_of(*threads, stats=input_events.INPUT_STATS))[0]
    return list(zip(start.tolist(), end.tolist(), strict=True))


def rows(*threads: Sequence[Event]) -> list[tuple[str, str, int, int, int]]:
    found = input_events.input_rows(host_of(*threads, stats=input_events.INPUT_STATS))
    columns = (found.occurrences.tolist(), found.total_ps.tolist(), found.self_ps.tolist())
    return list(zip(found.name, found.category, *columns, strict=True))


@pytest.mark.parametrize(
    ("name", "kind", "category"),
    [
        ("InfeedEnqueue", "InfeedEnqueueTuple", "Enqueue"),
        ("MemcpyHToD", "MemcpyHToD", "Enqueue"),
        ("enqueue it", "EnQueue", "Enqueue"),
        ("a stage", "READ", "Demanded file read"),
        ("a stage", "preprocessing", "Preprocessing"),
        ("a stage", "unknown", "Unknown"),
        ("a stage", "foo", None),
        ("Iterator::Root::TFRecord", "Dataset", "Demanded file read"),
        ("Iterator::Root::ArrayRecord", "Dataset", "Demanded file read"),
        ("Iterator::Root::Prefetch::TFRecord", "Dataset", "Advanced file read"),
        (
            "Iterator::Root::ParallelInterleaveV4::TFRecord",
            "Dataset",
            "Demanded file read",
        ),  # as XProf: no ::Interleave
        ("Iterator::Root::ParallelMapV2::TextLine", "Dataset", "Advanced file read"),
        ("Iterator::Root::TFRecord::Map", "Dataset", "Preprocessing"),
        ("IteratorGetNext", "IteratorGetNext", None),
        ("MatMul", "MatMul", None),
    ],
)
def test_categories_are_xprofs(name: str, kind: str, category: str | None) -> None:
    assert input_events.xprof_category(name, kind) == category


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("IteratorGetNext", input_events.WAIT),
        ("iteratorgetnextsync", input_events.WAIT),
        ("IteratorGetNext:IteratorGetNext", input_events.WAIT),
        ("IteratorGetNextAsOptionalOp::DoCompute", input_events.WAIT),
        ("$loader.py:12 __next__", input_events.WAIT),
        ("$builtins next", input_events.WAIT),
        ("$train.py:3 load_next_batch", input_events.WAIT),
        ("$train.py:3 take_examples", input_events.WAIT),
        ("$feed.py:52 take", input_events.WAIT),
        ("$my_data_loader.py:9 get", input_events.WAIT),
        ("$pipelines/dataset.py:9 fetch", input_events.WAIT),
        ("PrefetchDatasetIterator.__next__", input_events.WAIT),
        ("batched_device_put", input_events.TRANSFER),
        ("DevicePut", input_events.TRANSFER),
        ("Linearize", input_events.TRANSFER),
        ("XlaLinearize", input_events.TRANSFER),
        ("H2D Dispatch", input_events.TRANSFER),
        ("tpu::System::TransferToDevice=>IssueEvent", input_events.TRANSFER),
        ("TransferHostToDevice", input_events.TRANSFER),
        ("TfrtTpuClient::BufferFromHostBuffer::TfrtTpuBuffer", input_events.TRANSFER),
        ("PjRtStreamExecutorClient::LinearizeHostBufferInto", input_events.TRANSFER),
        ("MemcpyH2D", input_events.TRANSFER),
        ("hipMemcpyHtoDAsync", input_events.TRANSFER),
        ("$api.py:2000 device_put", input_events.TRANSFER),
    ],
)
def test_names_of_plain_programs(name: str, category: str) -> None:
    assert rows([(name, 0, 10)]) == [(name, category, 1, 10, 10)]
    assert waits([(name, 0, 10)]) == [(0, 10)]


@pytest.mark.parametrize(
    "name",
    ["InfeedEnqueue:InfeedEnqueueTuple", "MemcpyHToD", "host_compute/InfeedEnqueue_1:InfeedEnqueue", "InfeedEnqueue:"],
)
def test_what_xprof_lists_waits_but_is_no_row_of_its_own(name: str) -> None:
    assert rows([(name, 0, 10)]) == []
    assert waits([(name, 0, 10)]) == [(0, 10)]


@pytest.mark.parametrize(
    "name",
    [
        "Delinearize",
        "LinearizerPass",
        "IteratorGetNextAsOptional_4/_41:_Recv",
        "Iterator::Root::Prefetch",
        "PjitFunction(next)",
        "$contextlib.py:130 __enter__",
        "$module.py:1 nextafter",
        "train",
        "TransferFromDevice",
        "",
    ],
)
def test_other_events_feed_nothing(name: str) -> None:
    assert rows([(name, 0, 10)]) == []
    assert waits([(name, 0, 10)]) == []


def test_leaving_a_with_block_is_no_request_for_input() -> None:
    thread = [("$contextlib.py:140 __exit__", 0, 100), ("$builtins next", 10, 90), ("$builtins next", 200, 210)]
    assert waits(thread) == [(200, 210)]
    assert rows(thread) == [("$builtins next", input_events.WAIT, 1, 10, 10)]


def test_an_iterator_holds_up_only_the_thread_that_drives_the_device() -> None:
    main = [("$loader.py:5 __next__", 0, 10), ("PjitFunction(step)", 10, 20)]
    ahead = [("$loader.py:5 __next__", 0, 300), ("batched_device_put", 310, 320)]
    assert waits(main, ahead) == [(0, 10), (310, 320)]
    assert sorted(rows(main, ahead)) == [
        ("$loader.py:5 __next__", input_events.PRODUCE, 1, 300, 300),
        ("$loader.py:5 __next__", input_events.WAIT, 1, 10, 10),
        ("batched_device_put", input_events.TRANSFER, 1, 10, 10),
    ]
    assert waits(ahead) == [(0, 300), (310, 320)]  # no thread is seen to drive the device


def test_a_pipeline_on_the_steps_own_thread_is_waited_for() -> None:
    assert waits([("Iterator::Root::Map", 0, 10), ("PjitFunction(step)", 10, 20)]) == [(0, 10)]
    assert waits([("Iterator::Root::Map", 0, 10)], [("PjitFunction(step)", 10, 20)]) == []


@pytest.mark.parametrize(
    "call", ["$weights.py:40 push", "$ppo.py:9 sync_weights", "$ckpt.py:2 restore", "$rl.py:1 update_params"]
)
def test_weights_that_are_sent_are_no_input(call: str) -> None:
    assert waits([(call, 0, 100), ("batched_device_put", 10, 90), ("batched_device_put", 110, 120)]) == [(110, 120)]
    assert waits([("$trainer.py:7 put_batch", 0, 100), ("batched_device_put", 10, 90)]) == [(10, 90)]


@pytest.mark.parametrize("name", ["TfrtTpuLoadedExecutable::Execute", "SyncTensorsGraph", "train_step", "FunctionRun"])
def test_threads_that_drive_the_device(name: str) -> None:
    assert waits([(name, 0, 1)], [("$loader.py:5 __next__", 0, 300)]) == []


def test_stages_wait_where_no_other_thread_asked_for_them() -> None:
    main: list[Event] = [
        ("train", 0, 100),
        ("BatchStage", 0, 50, STAGE),
        ("MapStage", 10, 40, {"_ipl_stage_name": "Map", "_pt": 9, "_p": 1}),
    ]
    worker: list[Event] = [("ReadStage", 15, 95, STAGE | {"_ct": 9, "_c": 1}), ("inner", 20, 30, STAGE)]
    assert waits(main, worker) == [(0, 50)]
    assert waits(main[1:], worker) == [(0, 50)]  # only the link shows which thread drives
    assert waits(main[1:], [("ReadStage", 15, 95, STAGE | {"_ct": 9, "_c": 2})]) == [(0, 95)]  # of no producer
    found = {name: (category, total, own) for name, category, _, total, own in rows(main, worker)}
    assert found == {
        "BatchStage": (input_events.WAIT, 50, 20),
        "MapStage": (input_events.WAIT, 30, 30),
        "ReadStage": (input_events.PRODUCE, 80, 70),
        "inner": (input_events.PRODUCE, 10, 10),
    }


def test_stages_with_number_and_category_are_xprofs_rows() -> None:
    stage: dict[str, StatInput] = STAGE | {"_ipl_stage_id": 3, "_ipl_stage_cat": "read"}
    assert rows([("ReadStage", 0, 5, stage), ("OtherStage", 6, 9, STAGE)]) == [
        ("OtherStage", input_events.WAIT, 1, 3, 3)
    ]
    assert waits([("ReadStage", 0, 5, stage)]) == [(0, 5)]


def test_an_empty_stage_name_is_none() -> None:
    assert waits([("A", 0, 5, {"_ipl_stage_name": ""}), ("B", 6, 9, STAGE)]) == [(6, 9)]


def test_rows_nest_within_a_thread_and_add_up_over_hosts() -> None:
    events = [("H2D Dispatch", 0, 100), ("Linearize", 10, 40), ("Linearize", 50, 60)]
    both = input_events.merge_input_rows([input_events.input_rows(host_of(events, stats=input_events.INPUT_STATS))] * 2)
    assert both.name == ("H2D Dispatch", "Linearize")
    assert (both.occurrences.tolist(), both.total_ps.tolist(), both.self_ps.tolist()) == ([2, 4], [200, 80], [120, 80])
    assert len(input_events.merge_input_rows([])) == 0 and input_events.merge_input_rows([]).self_ps.dtype == np.int64


NAMES = ["IteratorGetNext", "DevicePut", "$a.py:1 __next__", "PjitFunction(f)", "other", "$contextlib.py:1 __exit__"]


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(NAMES), st.integers(-50, 200), st.integers(0, 90)), max_size=12), max_size=3
    )
)
def test_waits_are_disjoint_in_order_and_cover_what_waits(spec: list[list[tuple[str, int, int]]]) -> None:
    threads = [[(name, begin, begin + length) for name, begin, length in events] for events in spec]
    found = waits(*threads)
    assert all(begin < end for begin, end in found)
    assert all(a[1] < b[0] for a, b in pairwise(found))
    sure = [event for thread in threads for event in thread if event[0] in NAMES[:2]]
    for _, begin, end in sure:
        assert begin == end or any(a <= begin and end <= b for a, b in found)
    everything = rows(*threads)
    assert sum(row[2] for row in everything if row[0] in NAMES[:2]) == len(sure)
    assert all(row[4] <= row[3] for row in everything)
    fed = [event for thread in threads for event in thread if event[0] in NAMES[:3]]
    starts, ends = union(
        np.array([event[1] for event in fed], np.int64), np.array([event[2] for event in fed], np.int64)
    )
    assert sum(b - a for a, b in found) <= int((ends - starts).sum())
