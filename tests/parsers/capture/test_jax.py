"""Captures from a real JAX program on the CPU, started here.

The interpreter that has JAX is this one, or the one that TPUPROF_JAX_PYTHON names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.servers.jax_server import has_jax, interpreter, jax_program
from tests.support.servers.profiler_server import free_port
from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.capture.model import CaptureOptions, CaptureProgress, CaptureStop, OnProgress
from tpuprof.parsers.capture.session import capture, switch
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.session import Session

LONG = CaptureOptions(duration_ms=60_000)
PS = 10**12


def after(milliseconds: int, act: Callable[[], None]) -> OnProgress:
    """A listener that does something once, when so much of the time to trace is over."""
    done: list[bool] = []

    def on_progress(progress: CaptureProgress) -> None:
        if progress.left_ms is not None and progress.left_ms < progress.duration_ms - milliseconds and not done:
            done.append(True)
            act()

    return on_progress


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not has_jax():
        pytest.skip(f"no JAX in {interpreter()}: TPUPROF_JAX_PYTHON may name an interpreter that has it")
    port = free_port()
    with jax_program(port):
        yield f"localhost:{port}"


def test_a_capture_opens(address: str, tmp_path: Path) -> None:
    seen: list[CaptureProgress] = []
    result = capture([address], CaptureOptions(duration_ms=500), str(tmp_path), seen.append)
    (host,) = result.hosts
    assert host.problem is None and host.seconds is not None and host.seconds >= 0.5
    assert list(dict.fromkeys(item.stage for item in seen))[:2] == ["connecting", "tracing"]
    (run,) = open_logdir(str(tmp_path)).runs
    assert run.path == result.run_path and [item.host for item in run.hosts] == [file.host for file in result.files]
    session = Session(run)
    timeline = session.timeline()
    span = (timeline.last_ps - timeline.first_ps) / PS
    assert 0.1 < span < host.seconds + 0.1 and timeline.event_count > 20
    traced_ps = session.page(OVERVIEW).environment.profile_duration_ps
    assert traced_ps is not None and 0.4 < traced_ps / PS < host.seconds + 0.1


def test_a_second_capture_is_refused_while_one_is_on(address: str, tmp_path: Path) -> None:
    stop, errors = CaptureStop(), list[str]()

    def meanwhile() -> None:
        with pytest.raises(ProfileError) as caught:
            capture([address], CaptureOptions(duration_ms=50), str(tmp_path / "second"))
        errors.append(caught.value.code)
        stop.request()

    result = capture([address], LONG, str(tmp_path / "first"), after(500, meanwhile), stop)
    assert errors == ["another_session"] and result.written and not (tmp_path / "second").exists()


def test_given_up_and_asked_again(address: str, tmp_path: Path) -> None:
    stop = CaptureStop()

    def twice() -> None:
        stop.request()
        stop.request()

    with pytest.raises(Cancelled):
        capture([address], LONG, str(tmp_path / "none"), after(300, twice), stop)
    assert not (tmp_path / "none").exists()
    deadline = time.monotonic() + 30
    while True:  # the server ends a session a moment after it was asked to
        try:
            assert capture([address], CaptureOptions(duration_ms=100), str(tmp_path)).written
            return
        except ProfileError as error:
            if error.code != "another_session" or time.monotonic() > deadline:
                raise


def test_an_advanced_option_is_taken(address: str, tmp_path: Path) -> None:
    options = CaptureOptions(100, advanced=(("tpu_trace_mode", "TRACE_ONLY_XLA"), ("n", 3), ("yes", True)))
    assert capture([address], options, str(tmp_path)).written


def test_snapshots_of_what_a_program_did_before(address: str, tmp_path: Path) -> None:
    snapshot = CaptureOptions(is_snapshot=True)
    with pytest.raises(ProfileError) as caught:
        capture([address], snapshot, str(tmp_path))
    assert caught.value.code == "nothing_kept"
    assert [problem for _, problem in switch([address], True, CaptureOptions())] == [None]
    assert [problem for _, problem in switch([address], True, CaptureOptions())] == [None]  # it is on already
    time.sleep(1.0)
    try:
        for _ in range(2):
            (run,) = open_logdir(capture([address], snapshot, str(tmp_path)).run_path).runs
            assert Session(run).timeline().event_count > 20
            time.sleep(0.5)
    finally:
        assert [problem for _, problem in switch([address], False, CaptureOptions())] == [None]
