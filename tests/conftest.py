"""Fixtures that all tests share."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import EXAMPLES

pytest.register_assert_rewrite(*(f"tests.{name}" for name in ("fuzz", "parity", "parsers", "support", "tui")))
"""Helpers beside the tests say as much of a failed assertion as the tests themselves."""

settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
)
settings.load_profile("any machine")
"""Examples are the same in each run, and take as long as they take: no test depends on luck or on the machine."""

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests send it; `nohup` would leave it ignored

sys.dont_write_bytecode = False
"""Collecting tests compiles them, with what they assert, in each worker: a second run finds them compiled."""

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""As the command line does: threads that wait for each other's small products take the time of all tests."""

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with reference data beside the repository."""
    if not SHARED.is_dir():
        pytest.skip("no reference data: there is no folder shared beside the repository")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test copies or keeps is written to no home folder; processes of tests need not compile all each."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for folder in ("STATE", "CACHE"):
            monkeypatch.setenv(f"XDG_{folder}_HOME", str(tmp_path_factory.mktemp(folder.lower())))
        monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """`-n auto` is a worker more than there are cores: a fifth of the time tests wait for processes and timers."""
    cores = yield
    return cores if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else cores + 1


def pytest_configure() -> None:
    """Collecting tests makes no garbage worth the name, and looking for it would take a third of the time.

    A run that a script puts in the background ignores ctrl+C, and so would each program that a test starts.
    """
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collects garbage again, but only what tests make, and less often than every 700 objects."""
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints how many fields the parity tests compared, a line a page.

    It stands here for xdist, whose main process reads no conftest further down; reports carry the properties to it.
    """
    totals: dict[str, list[int]] = {}
    reports: list[Any] = terminalreporter.stats.get("passed", [])
    for report in reports:
        for key, value in report.user_properties:
            if key == "parity" and report.when == "call":
                page, *counts = value
                sums = totals.setdefault(page, [0, 0, 0])
                totals[page] = [a + b for a, b in zip(sums, counts, strict=True)]
    for page, (compared, equal, explained) in sorted(totals.items()):
        terminalreporter.write_line(
            f"parity with XProf, {page}: {compared} fields compared, {equal} equal, {explained} differ and say why"
        )
