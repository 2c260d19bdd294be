"""The page of SparseCores against the XProf that is installed, on composed profiles.

XProf has means over the SparseCores' steps on its page of the input pipeline, and lists what they ran for TensorCores
among the HLO ops. It has no figure for what both kinds of core do at once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity.ops.test_ops import compare_ops
from tests.parity.oracle.fields import Agrees
from tests.parity.oracle.live import ask
from tests.parity.oracle.op_fields import summary_of
from tests.support.build import session_at
from tests.support.composed.sparse_cores import BOUND, HEALTHY, UNUSED, Shape, sparse_profile
from tpuprof.parsers.pages.ops.ops import ops_page
from tpuprof.parsers.pages.sparse_core.page import SPARSE_CORE, SparseCorePage

Record = Callable[[str, object], None]

CASES: dict[str, tuple[tuple[Shape, ...], int]] = {
    "healthy": ((HEALTHY,), 1),
    "bound, two chips": ((BOUND,), 2),
    "several, some idle": ((HEALTHY, BOUND, UNUSED), 2),
}


def figures(page: SparseCorePage) -> dict[str, float]:
    """XProf's properties of SparseCores in milliseconds, means over steps and SparseCores but for the least compute."""
    cores = page.sparse_cores
    infeed = [core.infeed_ps or 0.0 for core in cores]
    outfeed = [core.outfeed_ps or 0.0 for core in cores]
    idle = [core.step_ps - core.busy_ps for core in cores]
    active = [core.busy_ps - fed - sent for core, fed, sent in zip(cores, infeed, outfeed, strict=True)]
    means = {"infeed": infeed, "outfeed": outfeed, "idle": idle, "active": active}
    means["step_time"], means["compute"] = [core.step_ps for core in cores], [min(active)]
    return {f"sc_{name}_ms_average": sum(times) / len(times) / 1e9 for name, times in means.items()}


def properties(answer: list[Any]) -> dict[str, float]:
    """The same as XProf has them, with two decimals."""
    found = {key: value for table in answer for key, value in table.get("p", {}).items() if key.startswith("sc_")}
    return {key: float(value) for key, value in found.items()}


@pytest.mark.parametrize("name", CASES)
def test_steps_of_sparse_cores(name: str, tmp_path: Path, record_property: Record) -> None:
    shapes, chips = CASES[name]
    content = sparse_profile(shapes, chips).SerializeToString()
    path = tmp_path / "host0.xplane.pb"
    path.write_bytes(content)
    theirs = properties(ask(content, tmp_path / "answers")["input_pipeline_analyzer"])
    ours = figures(session_at(tmp_path).page(SPARSE_CORE))
    assert set(theirs) == set(ours) and len(ours) == 6
    for key, value in theirs.items():
        assert value == pytest.approx(ours[key], abs=0.00501), key
    record_property("parity", (f"SparseCore steps, live {name}", len(theirs), len(theirs), 0))


@pytest.mark.parametrize("shape", [HEALTHY, BOUND])
def test_ops_of_sparse_cores(shape: Shape, tmp_path: Path, agrees: Agrees) -> None:
    """One step and one chip: of further ones XProf shows what the first has begun."""
    path = tmp_path / "sparse.xplane.pb"
    path.write_bytes(sparse_profile((shape,), step_count=1).SerializeToString())
    answer, page = ask(path.read_bytes(), tmp_path / "answers")["hlo_stats"], ops_page([summary_of(path)])
    result = compare_ops(answer, page)
    assert result.compared == 29 * (len(page) + len(page.offloaded)) and len(page.offloaded) == 4
    agrees(result, "HLO ops, live SparseCores of a training")
