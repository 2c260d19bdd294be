"""GPUs: steps and parts of steps. XProf 2.24.2 gives the same answers, but for what the host did: it has none of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import build
from tests.support.build import PlaneBuilder, StatInput, present, trace_of
from tests.support.host_events import read_host
from tpuprof.parsers.base.intervals import Intervals, no_ints
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.device import gpu_type
from tpuprof.parsers.ops.streams.devices import read_gpus
from tpuprof.parsers.pages.hosts.hosts import hosts_page
from tpuprof.parsers.steps.generic import gpu
from tpuprof.parsers.steps.generic.gpu import STREAM_STATS, gpu_summary
from tpuprof.parsers.steps.generic.step_events import DeviceBusy, EventType, GenericStep, GenericSummary, sweep
from tpuprof.parsers.steps.groups.groups import GROUP_STATS
from tpuprof.parsers.steps.step_account import cpu_account

US = 1_000_000
NO_WAITS = no_ints(), no_ints()
Kernel = tuple[str, int, int, Mapping[str, StatInput]]
"""Name, start and end in microseconds, and stats."""

Gpus = Sequence[Sequence[Sequence[Kernel]]]
"""The streams of each GPU."""


def space_of(steps: Sequence[tuple[int, int, Sequence[int]]], gpus: Gpus, beside: Sequence[Kernel] = ()) -> XSpace:
    """A host whose steps, from 10 on, launch the kernels with these correlation ids, with events beside; and GPUs."""
    host = PlaneBuilder.alone("/host:CPU")
    line = host.line("python")
    for number, (start, end, launches) in enumerate(steps, 10):
        host.event(line, host.event_id("train"), start * US, (end - start) * US, _r=1, step_num=number)
        for at, correlation in enumerate(launches, start + 1):
            host.event(line, host.event_id("launch"), at * US, US // 2, correlation_id=correlation)
    for name, begin, finish, stats in beside:
        host.event(line, host.event_id(name), begin * US, (finish - begin) * US, **stats)
    for ordinal, streams in enumerate(gpus):
        plane = PlaneBuilder(host.space, f"/device:GPU:{ordinal}", ordinal + 1)
        for number, kernels in enumerate(streams):
            plane.spans(f"Stream #{number}(Compute)", kernels, US)
    return host.space


def found(trace: Trace, waits: Intervals = NO_WAITS) -> GenericSummary | None:
    return gpu_summary(trace, read_host(trace, GROUP_STATS), read_gpus(trace, STREAM_STATS), waits)


def summary_of(space: XSpace, waits: Intervals = NO_WAITS) -> GenericSummary:
    return present(found(trace_of(space), waits))


def of(*correlation: int) -> dict[str, int]:
    return {"correlation_id": correlation[0]} if correlation else {}


PARTS = "device_compute device_to_device device_collectives host_compute kernel_launch input output compile all_other"


def parts(step: GenericStep) -> list[int]:
    """Group, start, duration and XProf's nine parts in microseconds."""
    times = [int(getattr(step.breakdown, f"{part}_ps")) // US for part in PARTS.split()]
    assert sum(times) == step.duration_ps // US
    return [step.group_id, step.start_ps // US, step.duration_ps // US, *times]


def test_gpus_are_taken_together_and_the_longest_span_is_the_step() -> None:
    first = [[("half", 10, 30, of(1)), ("half", 70, 80, of(3))]]
    second = [[("half", 5, 15, of(1)), ("half", 40, 45, of(2)), ("half", 60, 75, of(3))]]
    before = [[("half", 1, 3, of(8))]]
    summary = summary_of(space_of([(0, 4, [1, 2]), (50, 55, [3])], [first, second, before]))
    assert [parts(step) for step in summary.steps] == [
        [0, 5, 40, 30, 0, 0, 0, 0, 0, 0, 0, 10],
        [1, 60, 15, 15, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
    assert summary.compute_16bit_ps == 50 * US  # what lies outside of a step counts for precision
    assert summary.device_count == 3
    assert present(present(summary.account).of_devices).numbers == (0, 1)  # the third ran outside of the steps


@pytest.mark.parametrize("as_reference", [False, True])
def test_precision_is_told_by_shapes_then_names(as_reference: bool) -> None:
    shapes = ["(half[2,3])", "(float[8])", "", "(float[2],half[4])", "(float[1])"]
    names = ["kernel", "gemm_fp16", "half_kernel", "MemcpyDtoH", "kernel"]
    stream: list[Kernel] = [
        (name, at * 10, at * 10 + at + 1, {"correlation_id": at, "shape": shape})
        for at, (name, shape) in enumerate(zip(names, shapes, strict=True))
    ]
    space = space_of([(0, 9, range(5))], [[stream]])
    plane = space.planes[1]
    for number, event in enumerate(plane.lines[0].events if as_reference else (), 60):
        plane.stat_metadata[number].id, plane.stat_metadata[number].name = number, event.stats[-1].str_value
        event.stats[-1].ref_value = number
    summary = summary_of(space)
    assert (summary.compute_16bit_ps, summary.compute_32bit_ps) == ((1 + 3) * US, (2 + 5) * US)


def test_time_without_a_gpu_at_work_counts_for_what_the_host_did() -> None:
    beside: list[Kernel] = [
        ("load", 15, 50, {}),
        ("backend_compile", 22, 30, {}),
        ("train again", 50, 58, {}),
        ("EagerExecute: x", 52, 55, {}),
        ("launch", 33, 37, of(99)),
    ]
    kernels = [[[("kernel", 10, 20, of(1)), ("kernel", 60, 70, of(2))]]]
    space = space_of([(0, 80, [1, 2])], kernels, beside)
    waits = np.array([40 * US, 68 * US]), np.array([45 * US, 75 * US])
    [step] = summary_of(space, waits).steps
    #                         compute d2d collectives host launch input output compile other
    assert parts(step) == [0, 10, 60, 20, 0, 0, 13, 4, 5, 0, 8, 10]


def test_eager_time_is_known_where_events_tell() -> None:
    stream: list[Kernel] = [("a", 0, 10, {"is_eager": 1}), ("b", 10, 30, {"is_eager": 0}), ("c", 30, 31, {})]
    assert summary_of(space_of([], [[stream]])).eager_ps == 10 * US
    assert summary_of(space_of([], [[stream[2:]]])).eager_ps is None


def test_a_profile_without_gpus_or_with_tpus_has_no_summary() -> None:
    space = space_of([], [])
    assert found(trace_of(space)) is None
    space = space_of([], [[]])
    expected = GenericSummary(1, "GPU", (), busy=(DeviceBusy(0, 0, None, 0),))
    assert found(trace_of(space)) == expected
    PlaneBuilder(space, "/device:TPU:0", 5)
    assert found(trace_of(space)) is None


@pytest.mark.parametrize(
    ("vendor", "capability", "name", "expected"),
    [
        ("Nvidia", (2, 0), "", "Nvidia GPU (Fermi)"),
        ("Nvidia", (3, 5), "", "Nvidia GPU (Kepler)"),
        ("Nvidia", (4, 0), "", "Nvidia GPU"),
        ("Nvidia", (7, 0), "", "Nvidia GPU (Volta)"),
        ("Nvidia", (7, 5), "Tesla T4", "Nvidia GPU (Turing)"),
        ("Nvidia", (8, 9), "", "Nvidia GPU (Ada Lovelace)"),
        ("Nvidia", (9, 0), "", "Nvidia GPU (Hopper)"),
        ("Nvidia", (12, 0), "", "Nvidia GPU"),
        ("AMD", (9, 0), "gfx90a", "AMD GPU - gfx90a"),
        ("AMD", (9, 4), "", "AMD GPU - gfx942"),
        ("AMD", (9, 0), "MI", "AMD GPU - gfx-9XX series"),
        ("AMD", (12, 0), "", "AMD GPU"),
        ("another", (9, 0), "", "GPU"),
        ("", (7, 0), "", "GPU"),
    ],
)
def test_types_of_gpus(vendor: str, capability: tuple[int, int], name: str, expected: str) -> None:
    plane = PlaneBuilder.alone("/device:GPU:0")
    for stat, value in (("device_vendor", vendor), ("gpu_device_name", name)):
        if value:
            plane.stat(stat, value)
    plane.stat("compute_cap_major", capability[0])
    plane.stat("compute_cap_minor", capability[1])
    assert gpu_type(plane.read()) == expected


spans = st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 8), st.integers(0, 10))


@given(
    st.lists(spans, max_size=12), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 10)), min_size=3, max_size=3)
)
def test_the_sweep_counts_each_moment_once(
    events: list[tuple[int, int, int, int]], steps: list[tuple[int, int]]
) -> None:
    step, start, length, kind = (np.array([event[at] for event in events], np.int64) for at in range(4))
    begin = np.array([first for first, _ in steps], np.int64)
    stop = np.array([first + long for first, long in steps], np.int64)
    inside, whole = sweep(step, start, start + length, kind, begin, stop)
    expected, everywhere = np.zeros((3, len(EventType)), np.int64), np.zeros(len(EventType), np.int64)
    for number in range(3):
        for moment in range(30):
            tops = [k for s, a, d, k in events if s == number and a <= moment < a + d]
            if tops:
                everywhere[max(tops)] += 1
                expected[number, max(tops)] += begin[number] <= moment < stop[number]
    assert inside.tolist() == expected.tolist()
    assert whole.tolist() == everywhere.tolist()


@given(
    st.lists(st.sampled_from(["", "h", "ha", "alf", "half", "xhalf", "halfx"]), max_size=8).flatmap(
        lambda of: st.permutations([*enumerate(of)])
    )
)
def test_a_word_is_found_in_texts_anywhere_in_a_file_that_is_read_in_pieces(texts: list[tuple[int, str]]) -> None:
    source = MemorySource("".join(text for _, text in sorted(texts)).encode())
    length = np.array([len(text) for _, text in texts], np.int64)
    begin = np.array([sum(len(text) for other, text in texts if other < at) for at, _ in texts], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu, "_READ_BYTES", 6)
        assert gpu._holding(source, b"half", begin, length).tolist() == ["half" in text for _, text in texts]


@given(st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=4), max_size=3))
def test_a_gpu_is_busy_whenever_a_stream_is_from_the_first_start_to_the_last_end(
    streams: list[list[tuple[int, int]]],
) -> None:
    kernels = [[("kernel", at, at + long, of(1)) for at, long in sorted(stream)] for stream in streams]
    busy = {us for stream in kernels for _, start, end, _ in stream for us in range(start, end)}
    [of_gpu] = summary_of(space_of([(0, 9, [1])], [kernels])).busy
    assert of_gpu.busy_ps == len(busy) * US
    assert of_gpu.ran is None if not busy else present(of_gpu.ran).span == (min(busy) * US, (max(busy) + 1) * US)


@given(
    cycle=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=1, max_size=4),
    pauses=st.lists(st.integers(1, 40), min_size=4, max_size=6),
    annotates=st.booleans(),
)
def test_programs_make_the_steps_of_gpus_unless_the_host_marks_some(
    cycle: list[list[int]], pauses: list[int], annotates: bool
) -> None:
    cycle[-1][0] += 99  # a cycle ends with the program that takes longest
    kernels, ends, now = [], [], 10
    for number, pause in enumerate(pauses):
        for program, times in enumerate(cycle, 1):
            for at, time in enumerate(times):
                stats: dict[str, StatInput] = {"hlo_module": f"jit_p{program}", "hlo_op": f"op.{program}{at}"}
                kernels.append((f"k{program}{at}", now, now + time, {**stats, **of(number)}))
                now += time
        ends.append(now)
        now += pause
    space = space_of([(0, 9, range(len(pauses)))] if annotates else [], [[kernels]])
    summary = summary_of(space)
    if annotates:
        assert (summary.source, len(summary.steps)) == ("steps", 1)
        return
    assert summary.source == ("modules" if len(cycle) == 1 else "cycle")
    expected = list(pairwise(ends))
    assert [(step.start_ps // US, (step.start_ps + step.duration_ps) // US) for step in summary.steps] == expected
    assert {step.breakdown.device_compute_ps for step in summary.steps} == {sum(map(sum, cycle)) * US}
    assert summary.compute_16bit_ps + summary.compute_32bit_ps == 0, "no event tells types"


@given(lost=st.sets(st.integers(1, 6), max_size=2), pause=st.integers(1, 9))
def test_steps_that_lack_kernels_of_a_program_are_left_out_and_not_idle(lost: set[int], pause: int) -> None:
    program: dict[str, StatInput] = {"hlo_module": "jit_step"}
    kernels = [
        (op, at, at + time, {**program, "hlo_op": op, **of(step)})
        for step in range(8)
        for op, at, time in (("gemm", step * (30 + pause), 20), ("tanh", step * (30 + pause) + 20, 10))
        if op == "gemm" or step not in lost
    ]
    steps = [(step * (30 + pause), step * (30 + pause) + 5, [step]) for step in range(8)]
    summary = summary_of(space_of(steps, [[kernels]]))
    assert [step.group_id for step in summary.steps] == [at for at in range(1, 7) if at not in lost]
    assert {step.duration_ps for step in summary.steps} == {30 * US}
    assert summary.lost_steps == len(lost)
    assert present(summary.busy[0].lost_ps) == pytest.approx(len(lost) * 10 * US, rel=1e-6)


def trained(lags: Sequence[int], shown: set[tuple[int, int]], period: int = 60) -> XSpace:
    """GPUs that compute for 10 us and a lag, and meet in collectives until 50 us; kernels of those steps and GPUs."""
    of_gpus = [
        [
            kernel
            for step in (step for step in range(11) if (step, which) in shown)
            for kernel in (
                ("gemm", step * period, step * period + 10 + lag, of(100 * step + 2 * which)),
                ("ncclSum", step * period + 10 + lag, step * period + 50, of(100 * step + 2 * which + 1)),
            )
        ]
        for which, lag in enumerate(lags)
    ]
    launched = [(at * period, at * period + 54, range(100 * at, 100 * at + 2 * len(lags))) for at in range(11)]
    return space_of(launched, [[kernels] for kernels in of_gpus])


@given(lost=st.sets(st.integers(1, 10), max_size=6), of_both=st.booleans(), period=st.integers(55, 70))
def test_lost_kernels_are_told_and_are_no_time_between_steps(lost: set[int], of_both: bool, period: int) -> None:
    """Those at the end too, after which the host goes on for as long as kernels take."""
    shown = {(step, gpu) for step in range(11) for gpu in range(2) if step not in lost or (gpu == 0 and not of_both)}
    summary = summary_of(trained([0, 5], shown, period))
    assert (summary.lost_launches, summary.launches) == (2 * (1 + of_both) * len(lost), 44)
    whole = [step.group_id for step in summary.steps]
    account = None if summary.account is None else cpu_account([("host", summary.account)])
    if any(after - before == 1 for before, after in pairwise(whole)):
        assert present(account).mean_period_ps == pytest.approx(period * US)
    assert not lost & set(whole)


@given(
    periods=st.lists(st.integers(10, 40), min_size=2, max_size=3, unique=True),
    joined=st.sampled_from(["", "thread", "nccl"]),
)
def test_gpus_are_one_group_unless_their_runs_are_apart(periods: list[int], joined: str) -> None:
    program: dict[str, StatInput] = {"hlo_module": "jit_serve", "hlo_op": "dot.1"}
    gpus, launches = list[list[list[Kernel]]](), list[int]()
    for which, period in enumerate(periods):
        numbers = [1000 * which + at for at in range(1200 // period)]
        kernels: list[Kernel] = [
            ("dot", at * period + which, at * period + which + 7, {**program, **of(of_run)})
            for at, of_run in enumerate(numbers)
        ]
        gpus.append([kernels, [("ncclSum", at, at + 5, {}) for at in range(0, 1200, 50)] if joined == "nccl" else []])
        launches += numbers
    summary = build.summary_of(space_of([(0, 1, launches)] if joined == "thread" else [], gpus))
    assert len(summary.groups) == (1 if joined else len(periods))
    if not joined:
        page = hosts_page([summary])
        assert [present(core.step_time).median_ps for core in page.cores] == [period * US for period in periods]


@pytest.mark.parametrize("apart_us", [0, 7])
def test_hosts_whose_collectives_end_together_are_compared(apart_us: int) -> None:
    spaces = [trained(lags, {(step, gpu) for step in range(11) for gpu in range(2)}) for lags in ([0, 5], [0, 9])]
    for space, later in zip(spaces, (0, apart_us), strict=True):
        environment = PlaneBuilder(space, "Task Environment", 9)
        environment.stat("profile_start_time", 10**18 + 1000 * later)
        environment.stat("profile_stop_time", 10**18 + 1000 * later + 10**6)
    page = hosts_page([build.summary_of(space, host) for space, host in zip(spaces, "ab", strict=True)])
    waits = [core.wait_percent and core.wait_percent * 50 / 100 for core in page.cores]
    assert waits == ([None] * 4 if apart_us else pytest.approx([9, 4, 9, 0]))
    assert apart_us == 0 or page.cores_statement == "Steps can't be compared: nothing shows that the hosts keep step."
