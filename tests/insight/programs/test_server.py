"""A program that serves a profiler, captured by our own command: the same verdict as by JAX's own trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.build import present
from tests.support.servers.jax_server import has_jax, interpreter, jax_program
from tests.support.servers.profiler_server import free_port
from tpuprof.parsers.capture.model import CaptureOptions
from tpuprof.parsers.capture.session import capture
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.session import Session


@pytest.mark.parametrize(("level", "expected"), [(1, "input-bound"), (0, "untraced")])
def test_a_starved_program_is_captured_while_it_runs(level: int, expected: str, tmp_path: Path) -> None:
    if not has_jax():
        pytest.skip(f"no JAX in {interpreter()}: TPUPROF_JAX_PYTHON may name an interpreter that has it")
    port, script = free_port(), "tests.insight.programs.scripts.starved"
    with jax_program(port, "-m", script, str(tmp_path / "program"), "--port", str(port)):
        options = CaptureOptions(duration_ms=1500, python_tracer_level=level)
        result = capture([f"localhost:{port}"], options, str(tmp_path / "captured"))
    page = Session(open_logdir(result.run_path).runs[0]).page(OVERVIEW)
    assert present(page.account).verdict.kind == expected
    assert (" in load (starved.py:" in page.findings[0].title) == bool(level)
