"""The pages against the XProf that is installed: the bundled demo (four cores, loops, async ops) and an odd profile.

Skipped where XProf is not installed: in this interpreter, or in the one that ``TPUPROF_XPROF_PYTHON`` names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.parity.ops.test_framework_ops import compare_framework_ops
from tests.parity.ops.test_op_profile import compare_op_profile
from tests.parity.ops.test_ops import compare_ops
from tests.parity.ops.test_roofline import compare_roofline
from tests.parity.oracle.fields import Agrees, Difference
from tests.parity.oracle.live import ask
from tests.parity.oracle.odd_profile import odd_profile, offload_profile
from tests.parity.oracle.op_fields import host_ops_of, modules_of, summary_of
from tests.parity.pages.test_overview import compare_overview, input_by_host, our_fields
from tests.support.build import present
from tests.support.files.riegeli import CODECS, Writer, chunked
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.ops.framework_ops import framework_ops_page
from tpuprof.parsers.pages.ops.op_profile import GROUPINGS
from tpuprof.parsers.pages.ops.ops import OpsPage, ops_page
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.tui.demo import demo_path

HIGH_CONFIDENCE = "XProf's second duty cycle leaves out custom calls without FLOPs; ours is the first, which is equal"


@dataclass(frozen=True)
class Case:
    """A profile, XProf's answers about it, and our pages."""

    name: str
    path: Path
    answers: dict[str, Any]
    summary: HostSummary
    ops: OpsPage


@pytest.fixture(scope="module", params=["demo", "odd profile"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """One of the profiles, with XProf's answers."""
    folder = tmp_path_factory.mktemp("xprof")
    path = Path(demo_path())
    if request.param == "odd profile":
        path = folder / "odd.xplane.pb"
        path.write_bytes(odd_profile())
    answers, summary = ask(path.read_bytes(), folder / "answers"), summary_of(path)
    return Case(request.param, path, answers, summary, ops_page([summary]))


def test_hlo_ops(case: Case, agrees: Agrees) -> None:
    result = compare_ops(case.answers["hlo_stats"], case.ops)
    assert result.compared == 29 * len(case.ops)
    agrees(result, f"HLO ops, live {case.name}")


def test_ops_that_sparse_cores_run(tmp_path: Path, agrees: Agrees) -> None:
    path = tmp_path / "offload.xplane.pb"
    path.write_bytes(offload_profile())
    answer, page = ask(path.read_bytes(), tmp_path / "answers")["hlo_stats"], ops_page([summary_of(path)])
    result = compare_ops(answer, page)
    assert (len(page), result.compared) == (3, 29 * 7)
    agrees(result, "HLO ops, live SparseCores")


def test_op_profile(case: Case, agrees: Agrees) -> None:
    answers = {by: case.answers[f"op_profile.by_{by}"] for by in GROUPINGS}
    result = compare_op_profile(answers, case.ops, modules_of(case.path))
    assert result.compared > 180 * len(case.ops)
    agrees(result, f"op profile, live {case.name}")


def test_framework_ops(case: Case, agrees: Agrees) -> None:
    page = framework_ops_page(case.ops, [host_ops_of(case.path)])
    result = compare_framework_ops(case.answers["framework_op_stats"], page, case.ops)
    assert result.compared > 18 * 2 * len(page)
    agrees(result, f"framework ops, live {case.name}")


def test_roofline(case: Case, agrees: Agrees) -> None:
    result = compare_roofline(case.answers["roofline_model"], case.ops, [case.summary])
    assert result.compared == 17 + 37 * len(case.answers["roofline_model"][0]["rows"])
    agrees(result, f"roofline, live {case.name}")


def test_overview(case: Case, agrees: Agrees) -> None:
    page = overview([case.summary])
    grid = present(case.summary.steps)
    specific = input_by_host(page, [case.summary]) if grid.input_source == "host" else {}
    if case.name != "demo":
        ours = our_fields(page, [case.summary])
        sure = ("device_duty_cycle_high_confidence_percent", "idle_time_high_confidence_ps")
        specific |= {key: Difference(ours[key], HIGH_CONFIDENCE) for key in sure}
    result = compare_overview(case.answers["overview_page"], page, [case.summary], specific)
    agrees(result, f"overview, live {case.name}")


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_what_xprof_takes_them_for(codec: str, tmp_path: Path) -> None:
    """It reads our chunks, in each compression, as we do."""
    profile = odd_profile()
    whole, writer = ask(profile, tmp_path / "whole"), Writer()
    writer.simple([part.SerializeToString() for part in chunked(XSpace.FromString(profile), 20)], codec)
    in_records = ask(bytes(writer.data), tmp_path / "records")
    for tool in ("overview_page", "hlo_stats", "framework_op_stats", "roofline_model"):  # op profiles vary by the run
        assert in_records[tool] == whole[tool]
