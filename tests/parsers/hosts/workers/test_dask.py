"""Many hosts over a Dask cluster: the same pages, and an address that is no scheduler's is reported soon, plainly and
alone.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.parsers.hosts.workers.test_pool import files, logdir
from tests.support.build import session_at
from tests.support.servers.listening import accepting
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, Cancelled, ProfileError
from tpuprof.parsers.hosts.reduction import reduce_host
from tpuprof.parsers.hosts.summary import SUMMARY_OF_HOST
from tpuprof.parsers.hosts.workers import dask as host_dask
from tpuprof.parsers.hosts.workers.dask import SchedulerAddress, over_dask, scheduler_address
from tpuprof.parsers.hosts.workers.pool import Task
from tpuprof.parsers.hosts.workers.work import SharedProgress
from tpuprof.parsers.session.pages import OVERVIEW


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_reads_the_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is an extra: pip install distributed")
    folder = logdir(tmp_path / "logs", 5, "broken")
    monkeypatch.chdir(tmp_path)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path / "dask")
    )
    with cluster:
        address = cluster.scheduler_address
        page = session_at(Path("logs"), scheduler=address).page(OVERVIEW)
        with pytest.raises(Cancelled):
            session_at(folder, scheduler=address, is_cancelled=lambda: True).page(OVERVIEW)
    assert page.hosts == ("host0", "host1", "host2", "host3", "host4")
    alone = session_at(folder).page(OVERVIEW)
    assert (page.performance, page.steps, page.top_ops) == (alone.performance, alone.steps, alone.top_ops)
    assert any("broken" in warning and "left out" in warning for warning in page.warnings)


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_not_there_is_a_plain_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is an extra: pip install distributed")
    monkeypatch.setattr(host_dask, "_connected", None)  # a port that refuses has no client made
    with pytest.raises(ProfileError) as caught:
        session_at(logdir(tmp_path), scheduler="127.0.0.1:9").page(OVERVIEW)
    assert caught.value.exit_code == EXIT_NOT_FOUND and "127.0.0.1:9: connection refused" in caught.value.sentence


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1:8786", ("10.0.0.1:8786", "tcp", "10.0.0.1", 8786)),
        (" tcp://head/ ", None),
        (" tcp://head:1/ ", ("tcp://head:1", "tcp", "head", 1)),
        ("tls://[::1]:8786", ("tls://[::1]:8786", "tls", "::1", 8786)),
        ("wss://head:443/ws/", ("wss://head:443/ws/", "wss", "head", 443)),
        ("tcp://head:1/path", None),
        ("nonsense", None),
        ("", None),
        ("head:0", None),
        ("head:65536", None),
        ("head:²", None),
        ("::1:8786", None),
        ("http://head:8787", None),
        ("inproc://x:1", None),
        ("two words:1", None),
    ],
)
def test_the_form_of_a_schedulers_address(text: str, expected: tuple[str, str, str, int] | None) -> None:
    if expected is not None:
        assert scheduler_address(text) == SchedulerAddress(*expected)
        return
    with pytest.raises(ProfileError) as caught:
        scheduler_address(text)
    assert caught.value.exit_code == EXIT_USAGE and "HOST:PORT" in caught.value.hint


@pytest.mark.parametrize("text", ["me:hunter2@head:1", "tcp://me:hun/ter2@head:1", "http://head:1/a?token=hunter2"])
def test_a_schedulers_address_is_told_without_its_login(text: str) -> None:
    with pytest.raises(ProfileError) as caught:
        scheduler_address(text)
    assert "ter2" not in caught.value.sentence and "head:1" in caught.value.sentence


@pytest.fixture
def listener() -> Iterator[tuple[str, list[bytes | None]]]:
    """An address where something listens that is no scheduler, and what it says: None for hanging up."""
    says: list[bytes | None] = []

    def answer(connection: socket.socket) -> None:
        for text in says:
            if text is None:
                connection.close()
            else:
                connection.sendall(text)

    with accepting(answer) as (address, _):
        yield address, says


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([], "does not answer"),
        ([None], "it closes the connection"),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "something else listens"),
        ([b"\0" * 400], "something else listens"),
    ],
)
def test_what_listens_and_is_no_scheduler(
    said: list[bytes | None],
    reason: str,
    tmp_path: Path,
    listener: tuple[str, list[bytes | None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("distributed", reason="Dask is an extra: pip install distributed")
    address, says = listener
    says += said
    monkeypatch.setattr(host_dask, "CONNECT_SECONDS", 0.3)
    with pytest.raises(ProfileError) as caught:
        session_at(logdir(tmp_path), scheduler=address).page(OVERVIEW)
    assert caught.value.exit_code == EXIT_NOT_FOUND and reason in caught.value.sentence


def test_waiting_for_a_scheduler_can_be_cancelled(tmp_path: Path, listener: tuple[str, list[bytes | None]]) -> None:
    pytest.importorskip("distributed", reason="Dask is an extra: pip install distributed")
    polled: list[object] = []

    def poll(shared: SharedProgress | None) -> None:
        polled.append(shared)
        if len(polled) > 1:
            raise Cancelled

    with pytest.raises(Cancelled):
        list(over_dask(Task(partial(reduce_host, SUMMARY_OF_HOST), files(logdir(tmp_path)), poll), listener[0]))


def test_dask_prints_nothing_about_what_is_no_scheduler(
    tmp_path: Path, listener: tuple[str, list[bytes | None]]
) -> None:
    pytest.importorskip("distributed", reason="Dask is an extra: pip install distributed")
    address, says = listener
    says += [b"\x20" + b"\0" * 7, b"\xff" * 64, None]  # begins as a scheduler does
    command = [sys.executable, "-m", "tpuprof.tui", "report", "overview", str(logdir(tmp_path)), "--scheduler", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = done.stderr.splitlines()
    assert done.returncode == EXIT_NOT_FOUND and len(lines) == 2, done.stderr
    assert lines[0].startswith(f"No Dask scheduler answers at {address}") and lines[1].startswith("try: ")


def test_without_dask_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ProfileError) as caught:
        session_at(logdir(tmp_path), scheduler="127.0.0.1:9").page(OVERVIEW)
    assert caught.value.exit_code == EXIT_USAGE and "[dask]" in caught.value.hint
