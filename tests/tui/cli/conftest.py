"""Fixtures of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.cli.calls import write_logdir


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    return write_logdir(tmp_path / "logs")
