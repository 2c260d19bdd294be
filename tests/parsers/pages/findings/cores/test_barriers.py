"""Waits at barriers and for SparseCores: what must be found, and what must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.parsers.pages.findings.build import US, Op, evidence, found, grid, the
from tests.support.build import PlaneBuilder, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.findings.finding import Evidence, JumpTarget


def waiting(first: float, second: float) -> Evidence:
    """Two cores, ten steps of 100 microseconds, of which they wait so many at barriers."""
    steps = grid({"compute": 80, "idle": 20}, barriers=np.minimum([[first], [second]], 20))
    return replace(evidence(steps), barriers={"host0:0": round(first * US * 10), "host0:1": round(second * US * 10)})


def test_cores_that_wait_for_each_other() -> None:
    finding = the("barrier", waiting(10, 8))
    assert finding.title == "Cores wait for each other at barriers" and finding.place == JumpTarget("timeline")
    assert finding.worth_ps == pytest.approx(9 * US)
    assert finding.evidence[1] == "Core host0:0 waits longest, 10.0 µs a step; core host0:1 shortest, 8.00 µs."


def test_the_core_that_all_others_wait_for_is_named() -> None:
    assert the("barrier", waiting(12, 1)).title == "Cores wait for core host0:1 at barriers"


def test_the_idle_time_of_barriers_is_in_no_other_finding_and_no_longer_than_it() -> None:
    assert the("idle", waiting(10, 8)).worth_ps == pytest.approx(11 * US)
    assert the("barrier", waiting(90, 90)).worth_ps == pytest.approx(20 * US)
    assert found("idle", waiting(90, 90)) is None


def test_short_waits_are_none_and_one_core_waits_for_nobody() -> None:
    assert found("barrier", waiting(1.9, 2)) is None
    assert found("barrier", replace(waiting(10, 10), barriers={"host0:0": 100 * US})) is None


def test_waits_at_barriers_are_read_from_the_cores_own_line_and_in_its_steps() -> None:
    space = XSpace()
    for core in range(2):
        plane = PlaneBuilder(space, f"/device:TPU:{core}", core + 1)
        steps, ops = plane.line("Steps"), plane.line("XLA Ops")
        for step in range(3):
            plane.event(steps, plane.event_id(str(step)), (10 + step * 100) * US, 100 * US)
            plane.event(ops, plane.event_id("%fusion.1 = f32[8] fusion()", "fusion.1"), (30 + step * 100) * US, 70 * US)
        if core == 0:
            line = plane.line("XLA TraceMe")
            for begin in (0, 110, 210):
                plane.event(line, plane.event_id("barrier-cores"), begin * US, 15 * US)
            plane.event(line, plane.event_id("dependency-wait"), 110 * US, 90 * US)
    assert dict(summarise(trace_of(space), "host").barriers) == {"host:0": 35 * US}


def offloaded(share: float, name: str = "all-gather.3", category: str = "async-done") -> Evidence:
    """Steps of 100 microseconds, of which the cores wait so many in an op."""
    return evidence(grid({"compute": 100 - share, "collective": share}), [Op(name, category, 20 * share)])


def test_collectives_on_a_sparse_core_are_no_others() -> None:
    finding = the("sparse-core", offloaded(12))
    assert finding.title == "TensorCores wait for SparseCores: all-gather.3"
    assert finding.worth_ps == pytest.approx(12 * US) and finding.place == JumpTarget("timeline", "all-gather.3")
    assert "No run on a SparseCore was traced: these ops are recognised by their names." in finding.evidence
    assert "Untested on hardware" in finding.basis
    assert found("collective", offloaded(12)) is None
    assert found("sparse-core", offloaded(2.9)) is None


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("all-gather-done.3", "all-gather-done"),
        ("async-collective-done.1", "async-done"),
        ("slice-done.2", "async-done"),
    ],
)
def test_other_ends_are_not_of_sparse_cores(name: str, category: str) -> None:
    assert found("sparse-core", offloaded(12, name, category)) is None


def test_an_op_that_began_a_run_on_a_sparse_core_tells_it_too() -> None:
    proof = evidence(grid({"compute": 88, "vector": 12}), [Op("embedding-done.3", "async-done", 240)])
    assert found("sparse-core", proof) is None
    proof = replace(proof, offloaders=frozenset({"embedding-start.3"}))
    assert the("sparse-core", proof).worth_ps == pytest.approx(12 * US)
    assert not any("No run on a SparseCore" in sentence for sentence in the("sparse-core", proof).evidence)
    assert found("copy-wait", proof) is None
