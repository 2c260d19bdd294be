"""The page of SparseCores against the XProf that is installed, on composed profiles.

XProf has means over the SparseCores' steps on its page of the input pipeline, and lists what they ran for TensorCores
among the HLO ops. It has no figure for what both kinds of core do at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.parity.ops.test_ops import compare_ops
from tests.parity.oracle.fields import Agrees
from tests.parity.oracle.golden import files_of
from tests.parity.oracle.live import ask
from tests.parity.oracle.op_fields import Cells, summary_of
from tests.support.build import present, session_at
from tests.support.composed.sparse_cores import BOUND, HEALTHY, UNUSED, Shape, sparse_profile
from tpuprof.parsers.base.intervals import Floats, overlap, subtract
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.device import is_sparse_core
from tpuprof.parsers.pages.ops.ops import ops_page
from tpuprof.parsers.pages.sparse_core.page import SPARSE_CORE, SparseCorePage
from tpuprof.parsers.steps.boundaries.sparse_core import sparse_spans

Record = Callable[[str, object], None]

OTHER_NAMES = {"sc_steptime_average": "sc_step_time_ms_average"}
OTHER_NAMES |= {f"sc_{part}_time_avg": f"sc_{part}_ms_average" for part in ("infeed", "outfeed", "idle")}
"""How XProf's overview calls them a second time."""

CASES: dict[str, tuple[tuple[Shape, ...], int]] = {
    "healthy": ((HEALTHY,), 1),
    "bound, two chips": ((BOUND,), 2),
    "several, some idle": ((HEALTHY, BOUND, UNUSED), 2),
}


def figures(page: SparseCorePage) -> dict[str, float]:
    """XProf's properties of SparseCores, out of our page."""
    cores = page.sparse_cores
    parts = [(core.step_ps, core.busy_ps, core.infeed_ps or 0.0, core.outfeed_ps or 0.0) for core in cores]
    return properties_of(*np.array(parts).T)


def properties_of(step: Floats, busy: Floats, infeed: Floats, outfeed: Floats) -> dict[str, float]:
    """XProf's properties in milliseconds: means over steps and SparseCores (rows), but for the least compute."""
    active = busy - infeed - outfeed
    parts = {"infeed": infeed, "outfeed": outfeed, "idle": step - busy, "active": active, "step_time": step}
    parts["compute"] = active.min(axis=0)
    return {f"sc_{name}_ms_average": float(times.mean()) / 1e9 for name, times in parts.items()}


def by_slowest_core(files: Iterable[Path]) -> dict[str, float]:
    """The same by the rules of XProf, which groups no op of a SparseCore that shares its host with several TensorCores.

    It takes what lies in the step of the host's slowest TensorCore, and infeed and outfeed for idle time.
    """
    rows = []
    for path in files:
        steps = present(summary_of(path).steps)
        cell = steps.duration_ps.argmax(axis=0), np.arange(len(steps))
        start, duration = steps.core_start_ps[cell], steps.duration_ps[cell]
        for plane in filter(is_sparse_core, Trace.open(str(path)).planes):
            spans = sparse_spans(plane)
            working = subtract(*subtract(*spans.busy, *spans.infeed), *spans.outfeed)
            rows.append((duration, overlap(start, start + duration, *working)))
    step, busy = (np.array(part, np.float64) for part in zip(*rows, strict=True))
    return properties_of(step, busy, np.zeros_like(busy), np.zeros_like(busy))


def both_ways(shared: Path, name: str) -> tuple[Cells, Cells]:
    """Ours and XProf's by its rules, under all names that XProf has for them."""
    of_page = figures(session_at(shared / "golden" / name).page(SPARSE_CORE))
    rule = by_slowest_core(files_of(shared, name).values())
    ours, theirs = ({**way, **{other: way[key] for other, key in OTHER_NAMES.items()}} for way in (of_page, rule))
    return {**ours}, {**theirs}


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
