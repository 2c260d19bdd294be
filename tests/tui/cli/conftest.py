"""Fixtures of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.cli.calls import write_logdir
from tpuprof.parsers.base.errors import EXIT_OK
from tpuprof.tui.app.options import AppOptions


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    return write_logdir(tmp_path / "logs")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, AppOptions]]:
    """What the app was opened with, on a terminal that can draw."""
    calls: list[tuple[str, AppOptions]] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def run_app(path: str, options: AppOptions) -> int:
        calls.append((path, options))
        return EXIT_OK

    monkeypatch.setattr("tpuprof.tui.app.start.run_app", run_app)
    return calls
