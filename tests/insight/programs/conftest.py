"""The programs, captured once for all workers of a test run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.insight.programs.captures import PROGRAMS, Program, ran


@pytest.fixture(scope="session")
def captures(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all workers share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "programs"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def program(captures: Path) -> Callable[[str], Program]:
    """Runs a program of `PROGRAMS`."""
    return lambda name: Program.at(ran(captures / name.replace(" ", "_"), *PROGRAMS[name]))


@pytest.fixture(scope="session")
def processes(captures: Path) -> tuple[Program, Program]:
    """Two processes of one program; the second is late."""
    folder = ran(captures / "two_processes", "two_processes")
    return Program.at(folder / "0"), Program.at(folder / "1")
