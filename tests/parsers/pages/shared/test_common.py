"""What pages say of a run: which steps its hosts share, their summary, and what is odd about the profile."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.pages.findings.build import grid
from tests.support.build import PlaneBuilder, bare_host, present, summary_of, tpu_plane
from tpuprof.parsers.base.words import NO_DEVICE
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.shared.common import NO_OPS, device_of, warnings_of, why_no_ops
from tpuprof.parsers.pages.shared.steps import common_steps, step_time
from tpuprof.parsers.steps.aligned import AlignedSteps


def host_alone(host: str = "idle") -> HostSummary:
    return summary_of(bare_host(), host)


def with_steps(steps: AlignedSteps | None, host: str, note: str = "") -> HostSummary:
    return replace(host_alone(host), steps=steps, step_note=note)


def steps_of(first: int, count: int, host: str, **fields: object) -> AlignedSteps:
    """Steps of 100 µs, numbered from `first` on and begun as much later."""
    one = grid({"compute": 100}, cores=1, steps=count)
    return replace(
        one,
        names=tuple(str(first + at) for at in range(count)),
        start_ps=one.start_ps + first * 100_000_000,
        core_names=(f"{host}:0",),
        **fields,  # type: ignore[arg-type]
    )


def test_why_there_are_no_ops() -> None:
    space = XSpace()
    PlaneBuilder(space, "/device:TPU:0").line("Steps")
    no_ops = summary_of(space)
    space = tpu_plane(XSpace(), 0, [("f", "copy", 0, 5)]).space
    assert why_no_ops([host_alone()]) == NO_DEVICE
    assert why_no_ops([host_alone(), no_ops]) == NO_OPS
    assert why_no_ops([no_ops, summary_of(space)]) == ""


def test_markers_of_one_host_beat_inferred_steps_of_another() -> None:
    """Unless they are as long, and go on at once: then the hosts keep step, from end to end."""
    inferred = with_steps(steps_of(0, 9, "a", source="modules"), "a", "no Steps line: inferred")
    marked = steps_of(0, 3, "b")
    longer = replace(marked, duration_ps=2 * marked.duration_ps, names=("7", "8", "9"))
    found = common_steps([inferred, with_steps(longer, "b"), host_alone()])
    assert found.grid is not None and found.grid.is_partial and "how long cores wait is unknown" in found.note
    assert (found.grid.source, found.grid.core_names, len(found.grid)) == ("steps", ("b:0",), 3)
    found = common_steps([inferred, with_steps(marked, "b"), host_alone()])
    assert found.grid is not None and found.note.startswith("no Steps line on a: ")
    assert (found.grid.core_names, found.grid.names) == (("a:0", "b:0"), ("1", "2"))
    assert {at: rows.tolist() for at, rows in found.rows.items()} == {0: [1, 2], 1: [1, 2]}
    alone = common_steps([inferred, host_alone()])
    assert alone.grid is not None
    assert (alone.grid.source, alone.note) == ("modules", "no Steps line: inferred")


def test_without_any_step_the_first_reason_is_given() -> None:
    found = common_steps([with_steps(None, "a"), with_steps(None, "b", "no Steps line and no XLA Modules")])
    assert (found.grid, found.note, found.remarks) == (None, "no Steps line and no XLA Modules", ())
    assert common_steps([with_steps(None, "a")]).note == "no step"


@pytest.mark.parametrize(
    ("counts", "remarks"),
    [
        ((5, 5), ()),
        ((5, 4), ("1 step was left out: not every core has it",)),
        ((5, 2), ("3 steps were left out: not every core has them",)),
    ],
)
def test_steps_that_some_core_lacks_are_counted(counts: Sequence[int], remarks: tuple[str, ...]) -> None:
    cut = ("step 9 was left out: the capture ended inside it (1 ops; the median step has 9)",)
    hosts = [with_steps(steps_of(0, count, name), name) for count, name in zip(counts, "ab", strict=True)]
    assert common_steps(hosts).remarks == remarks
    hosts[1] = with_steps(steps_of(0, counts[1], "b", incomplete=cut), "b")
    assert common_steps(hosts).remarks == (*remarks, *cut)


def test_hosts_that_share_no_step_show_the_first_ones() -> None:
    cut = ("step 4 was left out: the capture ended inside it (1 ops; the median step has 9)",)
    first = with_steps(steps_of(0, 4, "my:host", incomplete=cut), "my:host")
    found = common_steps([first, with_steps(steps_of(50, 4, "b"), "b")])
    assert found.grid is first.steps
    assert found.remarks == ("the hosts share no step: the steps shown are those of my:host", *cut)


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=12))
def test_step_times_summary_is_that_of_the_sample(durations: list[int]) -> None:
    found = step_time(np.array(durations, np.float64), "steps")
    assert (found.count, found.source, found.note) == (len(durations), "steps", "")
    assert found.average_ps == pytest.approx(statistics.fmean(durations))
    assert found.median_ps == pytest.approx(statistics.median(durations))
    assert (found.minimum_ps, found.maximum_ps) == (min(durations), max(durations))
    spread = statistics.stdev(durations) if len(durations) > 1 else 0.0
    assert found.standard_deviation_ps == pytest.approx(spread, rel=1e-6, abs=1e-3)


def test_each_figure_of_the_device_is_the_first_hosts_that_has_it() -> None:
    summaries = []
    for at, (kind, peak) in enumerate([(None, 0.0), ("TPU v5p", 459.0), ("TPU v5p", 100.0)]):
        plane = PlaneBuilder.alone(f"/device:TPU:{at}")
        plane.stat("peak_teraflops_per_second", peak)
        if kind:
            plane.stat("device_type_string", kind)
        plane.line("XLA Ops")
        summaries.append(summary_of(plane.space, f"host{at}"))
    device = present(device_of([host_alone(), *summaries]))
    assert (device.device_type, device.peaks.flops_per_second) == ("TPU v5p", 459e12)
    assert device_of([host_alone()]) is None
    different = "the cores give different peaks (flops_per_second); utilizations are against the first"
    assert different in warnings_of(summaries)
    assert different not in warnings_of(summaries[:2])


def test_warnings_are_said_once_each() -> None:
    space = XSpace(warnings=[b"dropped events"], errors=[b"no disk"])
    tpu_plane(space, 0, [("f", "copy", 0, 5)])
    hosts = [summary_of(space, "a"), summary_of(space, "b"), host_alone("c"), host_alone("d")]
    found = warnings_of(hosts, ("1 step was left out", "1 step was left out"))
    assert found == (
        "the profiler reports: no disk",
        "the profiler reports: dropped events",
        "1 step was left out",
        "no device plane on c, d: no accelerator there, or the device tracer was off",
    )
