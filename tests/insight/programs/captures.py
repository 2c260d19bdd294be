"""Runs the programs, each once for all tests, in the interpreter that has JAX."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.insight.programs.scripts.harness import Planted
from tests.support.servers.jax_server import has_jax, interpreter
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.session.session import Session

ROOT = Path(__file__).parents[3]
LONGEST_SECONDS = 180

NOT_THERE = 3
"""The status of a script whose library is missing."""

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "starved": ("starved",),
    "prefetched": ("starved", "--healthy"),
    "starved between": ("starved", "--between"),
    "launched only": ("asynchronous",),
    "waited for": ("asynchronous", "--healthy"),
    "recompiling": ("recompiling",),
    "of one shape": ("recompiling", "--healthy"),
    "eight devices": ("eight_devices",),
    "queue": ("loaders",),
    "grain": ("loaders", "--grain"),
    "checkpoint": ("on_the_host", "--kind", "checkpoint"),
    "log": ("on_the_host", "--kind", "log"),
    "garbage": ("on_the_host", "--kind", "garbage"),
    "slow host": ("on_the_host", "--kind", "slow"),
    "serving": ("serving",),
}
"""Name of each program of one process, its script and what that is called with."""


@dataclass(frozen=True)
class Program:
    """A program that ran.

    Attributes:
        folder: what it wrote; a folder of profiles below it for each way of capturing.
        truth: what was planted.
    """

    folder: Path
    truth: Planted

    @classmethod
    def at(cls, folder: Path) -> Program:
        """Reads the truth beside the profiles."""
        return cls(folder, Planted(**json.loads((folder / "truth.json").read_text())))

    @property
    def function(self) -> str:
        """The planted function as reports name it."""
        return f"{self.truth.function} ({self.truth.file}:{self.truth.line})"

    def session(self, way: str) -> Session:
        return Session(open_logdir(str(self.folder / way)).find_run(None))

    def overview(self, way: str) -> Overview:
        return self.session(way).page(OVERVIEW)

    def trace(self, way: str) -> Path:
        """The trace viewer's JSON that JAX wrote beside the profile."""
        (found,) = (self.folder / way).rglob("*.trace.json.gz")
        return found


def ran(folder: Path, script: str, *arguments: str) -> Path:
    """Runs a script, unless another worker of the tests did so or does; skips where JAX or its library is absent."""
    if not has_jax():
        pytest.skip(f"no JAX in {interpreter()}: TPUPROF_JAX_PYTHON may name an interpreter that has it")
    folder.mkdir(exist_ok=True)
    with _alone(folder):
        done = folder / "status"
        if not done.exists():
            command = [interpreter(), "-m", f"tests.insight.programs.scripts.{script}", str(folder), *arguments]
            result = subprocess.run(
                command,
                cwd=ROOT,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=LONGEST_SECONDS,
                check=False,
            )
            assert result.returncode in (0, NOT_THERE), result.stderr[-2000:]
            done.write_text(str(result.returncode))
    if done.read_text() == str(NOT_THERE):
        pytest.skip(f"no library for {script} {' '.join(arguments)} in {interpreter()}")
    return folder


def environment() -> dict[str, str]:
    """The variables that a program runs with."""
    return {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
