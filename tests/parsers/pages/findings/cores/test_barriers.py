"""Waits at barriers and for SparseCores: what must be found, and what must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.parsers.pages.findings.build import US, Op, evidence, found, grid, the
from tpuprof.parsers.pages.findings.finding import Evidence, JumpTarget


def waiting(first: float, second: float) -> Evidence:
    """Two cores, ten steps of 100 microseconds, of which they wait so many at barriers."""
    steps = grid({"compute": 80, "idle": 20}, barriers=np.minimum([[first], [second]], 20))
    return replace(evidence(steps), barriers={"host0:0": round(first * US * 10), "host0:1": round(second * US * 10)})


def test_short_waits_are_none_and_one_core_waits_for_nobody() -> None:
    assert found("barrier", waiting(1.9, 2)) is None
    assert found("barrier", replace(waiting(10, 10), barriers={"host0:0": 100 * US})) is None


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
