"""Fixtures of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.cli.calls import RUN, host_bytes


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "plugins" / "profile" / RUN
    folder.mkdir(parents=True)
    (folder / "host0.xplane.pb").write_bytes(host_bytes())
    (folder / "host1.xplane.pb").write_bytes(host_bytes(200))
    return tmp_path / "logs"
