"""The trace that XProf's viewer gets of a program, where XProf is installed: the same steps, verdict and reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.insight.programs.captures import Program
from tests.parity.oracle.live import ask
from tests.support.build import present
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.session import Session


@pytest.mark.parametrize("way", ["traced", "untraced"])
@pytest.mark.parametrize("name", ["starved", "recompiling", "checkpoint"])
def test_xprofs_trace_says_the_same(name: str, way: str, program: Callable[[str], Program], tmp_path: Path) -> None:
    of = program(name)
    (profile,) = (of.folder / way).rglob("*.xplane.pb")
    (tmp_path / "xprof").mkdir()
    trace = tmp_path / "t.trace.json"
    trace.write_text(json.dumps(ask(profile.read_bytes(), tmp_path / "xprof", ("trace_viewer",))["trace_viewer"]))
    page, expected = Session(open_logdir(str(trace)).find_run(None)).page(OVERVIEW), of.overview(way)
    assert [(step.name, step.duration_ps) for step in page.steps] == [
        (step.name, step.duration_ps) for step in expected.steps
    ]
    assert present(page.account).verdict.kind == present(expected.account).verdict.kind
    assert [finding.title for finding in page.findings] == [finding.title for finding in expected.findings]
