"""The pages against the XProf that is installed, for the bundled demo profile: four cores, loops, fusions, async ops.

Skipped where XProf is not installed: in this interpreter, or in the one that ``TPUPROF_XPROF_PYTHON`` names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity.live import PYTHON, ask, has_xprof
from tests.parity.op_fields import summary_of
from tests.parity.test_framework_ops import compare_framework_ops, host_ops_of
from tests.parity.test_op_profile import compare_op_profile
from tests.parity.test_ops import compare_ops
from tests.parity.test_roofline import compare_roofline
from tpuprof.parsers.pages.framework_ops import framework_ops_page
from tpuprof.parsers.pages.op_profile import GROUPINGS
from tpuprof.parsers.pages.ops import OpsPage, ops_page
from tpuprof.parsers.summary import HostSummary
from tpuprof.tui.demo import demo_path

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """XProf's answers for the demo."""
    if not has_xprof():
        pytest.skip(f"XProf is not installed here, and {PYTHON} names no interpreter that has it")
    return ask(Path(demo_path()).read_bytes(), tmp_path_factory.mktemp("xprof"))


@pytest.fixture(scope="module")
def ours() -> tuple[HostSummary, OpsPage]:
    """Our summary and page of ops of the demo."""
    summary = summary_of(Path(demo_path()))
    return summary, ops_page([summary])


def test_hlo_ops(answers: dict[str, Any], ours: tuple[HostSummary, OpsPage], record_property: Record) -> None:
    result = compare_ops(answers["hlo_stats"], ours[1])
    assert result.unexplained == []
    assert result.compared == 29 * len(ours[1]) == 29 * 490
    record_property("parity", ("HLO ops, live", result.compared, result.equal, result.explained))


def test_op_profile(answers: dict[str, Any], ours: tuple[HostSummary, OpsPage], record_property: Record) -> None:
    summary, page = ours
    result = compare_op_profile({by: answers[f"op_profile.by_{by}"] for by in GROUPINGS}, page, summary)
    assert result.unexplained == []
    assert result.compared > 90_000
    record_property("parity", ("op profile, live", result.compared, result.equal, result.explained))


def test_framework_ops(answers: dict[str, Any], ours: tuple[HostSummary, OpsPage], record_property: Record) -> None:
    page = framework_ops_page(ours[1], [host_ops_of(Path(demo_path()))])
    result = compare_framework_ops(answers["framework_op_stats"], page, ours[1])
    assert result.unexplained == []
    assert result.compared > 11_000
    record_property("parity", ("framework ops, live", result.compared, result.equal, result.explained))


def test_roofline(answers: dict[str, Any], ours: tuple[HostSummary, OpsPage], record_property: Record) -> None:
    summary, page = ours
    result = compare_roofline(answers["roofline_model"], page, summary)
    assert result.unexplained == []
    assert result.compared == 17 + 37 * len(answers["roofline_model"][0]["rows"]) > 37_000
    record_property("parity", ("roofline, live", result.compared, result.equal, result.explained))
