"""Many hosts over processes and threads: the same pages, progress, cancelling, workers that die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.hosts.workers.jobs import ends_itself, fails, looks_up, never_begins, takes_forever
from tests.support.build import host_bytes, session_at, write_run
from tpuprof.parsers.base.errors import EXIT_UNREADABLE, EXIT_USAGE, FAILED, Cancelled, ProfileError
from tpuprof.parsers.files.logdir import HostFile, open_logdir
from tpuprof.parsers.hosts import plan as host_plan
from tpuprof.parsers.hosts.plan import JOBS_VARIABLE, MOST_THREADS, WORKERS_VARIABLE, decoding_threads, worker_count
from tpuprof.parsers.hosts.progress import Meter, Progress, ProgressReceiver
from tpuprof.parsers.hosts.workers import pool as host_pool
from tpuprof.parsers.hosts.workers.pool import PoolMeter, SharedProgress, Task, over_processes
from tpuprof.parsers.ops.table import TEXTS
from tpuprof.parsers.pages.hosts.hosts import HOSTS
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.pages.shared import partials
from tpuprof.parsers.pages.shared.key import SUMMARIES


def logdir(folder: Path, hosts: int = 4, *broken: str) -> Path:
    """A logdir with a run of so many hosts, each a little slower than the one before, and broken ones."""
    whole = {f"host{number}": host_bytes(1000 + number) for number in range(hosts)}
    return write_run(folder, **whole, **dict.fromkeys(broken, b"\xff" * 300))


@pytest.fixture
def two_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every run is read by two processes; none of them is left."""
    monkeypatch.setenv(WORKERS_VARIABLE, "2")
    before = set(multiprocessing.active_children())
    yield
    until = time.monotonic() + 20
    while set(multiprocessing.active_children()) - before and time.monotonic() < until:
        time.sleep(0.01)
    assert not set(multiprocessing.active_children()) - before


def files(folder: Path) -> tuple[HostFile, ...]:
    return open_logdir(str(folder)).find_run(None).hosts


# --- processes -----------------------------------------------------------------------------------------------------


def test_pages_are_the_same_over_processes(tmp_path: Path, two_workers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = logdir(tmp_path, 5, "broken")
    seen: list[Progress] = []
    pooled = session_at(folder, on_progress=seen.append)
    page, ops, hosts = pooled.page(OVERVIEW), pooled.page(OPS), pooled.page(HOSTS)
    monkeypatch.setenv(WORKERS_VARIABLE, "1")
    alone = session_at(folder)
    assert page == alone.page(OVERVIEW)
    assert hosts.rows == alone.page(HOSTS).rows and hosts.left_out == alone.page(HOSTS).left_out
    assert ops.table.name == alone.page(OPS).table.name
    assert ops.table.self_ps.tolist() == alone.page(OPS).table.self_ps.tolist()
    assert page.hosts == ("host0", "host1", "host2", "host3", "host4")
    assert any("broken" in warning and "left out" in warning for warning in page.warnings)
    tables = [one.table for one in pooled.page(SUMMARIES)]
    assert len({id(source) for table in tables for source in table.sources}) == 1
    assert all(len({id(getattr(table, name)) for table in tables}) == 1 for name in TEXTS)
    last = seen[-1]
    assert (last.host_count, last.events_done, last.bytes_done) == (6, 20, last.bytes_total)
    assert [one.host_index for one in seen] == sorted(one.host_index for one in seen)


def test_a_run_of_broken_hosts_is_the_first_ones_error(tmp_path: Path, two_workers: None) -> None:
    with pytest.raises(ProfileError) as caught:
        session_at(logdir(tmp_path, 0, "one", "two")).page(OVERVIEW)
    assert caught.value.exit_code == EXIT_UNREADABLE and "one.xplane.pb" in caught.value.sentence


def outcomes(
    folder: Path, work: Callable[[HostFile, None, ProgressReceiver, int], int]
) -> dict[str, int | ProfileError]:
    """What comes of some work over two processes."""
    found = files(folder)
    task = Task(work, found, PoolMeter(found, range(len(found)), lambda _: None, lambda: False).poll)
    return {found[at].host: one for at, one in over_processes(task, 2, lambda file: -1)}


def test_a_worker_that_dies_is_one_failed_host(tmp_path: Path, two_workers: None) -> None:
    found = outcomes(logdir(tmp_path, 5), ends_itself)
    dead, starved = found.pop("host1"), found.pop("host2")
    assert found == {"host0": 1, "host3": 1, "host4": 1}
    assert isinstance(dead, ProfileError) and isinstance(starved, ProfileError)
    assert "host1" in dead.sentence and "ended from outside" in dead.sentence
    assert "host2" in starved.sentence and "memory" in starved.sentence


def test_without_processes_the_work_is_done_here(
    tmp_path: Path, two_workers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = logdir(tmp_path)
    monkeypatch.setattr(host_pool, "_processes", lambda shared, workers: None)
    assert outcomes(folder, never_begins) == {f"host{at}": -1 for at in range(4)}
    assert session_at(folder).page(OVERVIEW).hosts == ("host0", "host1", "host2", "host3")

    def broken(shared: SharedProgress, workers: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), os._exit, (3,))

    monkeypatch.setattr(host_pool, "_processes", broken)
    assert outcomes(folder, never_begins) == {f"host{at}": -1 for at in range(4)}


@pytest.mark.parametrize("work", [takes_forever, looks_up])
def test_cancelling_ends_the_workers(
    tmp_path: Path, two_workers: None, work: Callable[[HostFile, None, ProgressReceiver, int], int]
) -> None:
    found = files(logdir(tmp_path))
    seen: list[Progress] = []
    meter = PoolMeter(found, range(len(found)), seen.append, lambda: bool(seen and len(seen[-1].at_work) == 2))
    with pytest.raises(Cancelled):
        list(over_processes(Task(work, found, meter.poll), 2, lambda file: -1))
    assert {one.host for one in seen[-1].at_work} == {"host0", "host1"}
    if work is takes_forever:
        assert seen[-1].bytes_total >= 1000


def test_cancelling_a_session_leaves_it_usable(
    tmp_path: Path, two_workers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled = threading.Event()
    cancelled.set()
    session = session_at(logdir(tmp_path), is_cancelled=cancelled.is_set)
    with pytest.raises(Cancelled):
        session.page(OVERVIEW)
    cancelled.clear()
    assert len(session.page(OVERVIEW).hosts) == 4


SCRIPT = """
import sys, time
from tpuprof.parsers.hosts.workers.pool import Task, over_processes
from tpuprof.parsers.files.logdir import open_logdir
from tests.parsers.hosts.workers.jobs import looks_up
def poll(board):
    if board.process(0) and board.process(1):
        print(board.process(0), board.process(1), flush=True)
if __name__ == "__main__":
    files = open_logdir(sys.argv[1]).find_run(None).hosts
    list(over_processes(Task(looks_up, files, poll), 2, lambda file: -1))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-c", SCRIPT, str(logdir(tmp_path / "logs"))]
    root = Path(__file__).parents[4]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=root, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(word) for word in parent.stdout.readline().split()]
        assert len(workers) == 2
        parent.send_signal(how)
        errors = parent.communicate(timeout=30)[1]
    assert parent.returncode != 0
    if how is signal.SIGINT:
        assert errors.count("KeyboardInterrupt") == 1  # of the parent alone
    until = time.monotonic() + 20
    while any(map(is_alive, workers)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(is_alive, workers))


HIDDEN = """
import io, sys
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.pages.hosts.hosts import HOSTS
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.key import SUMMARIES
class Screen(io.StringIO):
    def fileno(self):
        return -1
if __name__ == "__main__":
    real, sys.stderr = sys.stderr, Screen()
    hosts = Session(open_logdir(sys.argv[1]).find_run(None)).page(OVERVIEW).hosts
    assert isinstance(sys.stderr, Screen) and not sys.stderr.getvalue(), sys.stderr.getvalue()
    sys.stderr = real
    print(len(hosts))
"""


def test_processes_start_below_a_screen_that_hides_standard_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HIDDEN, str(logdir(tmp_path / "logs"))]
    environment = {**os.environ, WORKERS_VARIABLE: "2"}
    root = Path(__file__).parents[4]
    done = subprocess.run(command, check=False, cwd=root, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("4\n", "")


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_an_error_of_the_work_costs_its_host(tmp_path: Path, two_workers: None) -> None:
    found = outcomes(logdir(tmp_path), fails)
    assert found and all(isinstance(each, ProfileError) and each.code == FAILED for each in found.values())


# --- partial pages -------------------------------------------------------------------------------------------------


def test_pages_over_the_first_hosts_come_while_others_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partials, "PARTIAL_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(partials, "PARTIAL_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(partials, "_PARTIAL_REST", 0)
    folder = logdir(tmp_path, 4, "a_broken_one")
    seen: list[tuple[Overview, int, int]] = []
    page = session_at(folder).page_as_read(OVERVIEW, None, lambda *found: seen.append(found))
    assert [(done, total) for _, done, total in seen] == [(2, 5), (3, 5), (4, 5)]  # the first one is the broken one
    assert [len(one.hosts) for one, _, _ in seen] == [1, 2, 3]
    assert seen[0][0].warnings[0] == "2 of 5 hosts so far: the others are still being read"
    assert any("a_broken_one" in warning for warning in seen[0][0].warnings)
    assert not any("so far" in warning for warning in page.warnings)
    assert seen[0][0].steps == session_at(folder).page(OVERVIEW, "host0").steps


@pytest.mark.parametrize(("after", "expected"), [(1e9, []), (0.0, [1])])
def test_partial_pages_come_late_and_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: float, expected: list[int]
) -> None:
    monkeypatch.setattr(partials, "PARTIAL_AFTER_SECONDS", after)
    monkeypatch.setattr(partials, "PARTIAL_EVERY_SECONDS", 1e9)
    seen: list[int] = []
    session_at(logdir(tmp_path)).page_as_read(OVERVIEW, None, lambda page, done, total: seen.append(done))
    assert seen == expected


# --- what crosses, and how many workers ----------------------------------------------------------------------------


def host_file(size: int, packed: bool = False) -> HostFile:
    return HostFile("host", "/logs/host.xplane.pb", size, 0.0, packed)


def test_workers_are_as_many_as_cores_and_memory_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WORKERS_VARIABLE, raising=False)
    monkeypatch.setattr(host_plan, "available_cores", lambda: 8)
    monkeypatch.setattr(host_plan, "available_memory", lambda: 100 * 10**9)
    large = host_file(300 * 10**6)
    assert worker_count([large] * 64) == 8
    assert worker_count([large] * 3) == 3
    assert worker_count([large]) == 1
    assert worker_count([host_file(10**6)] * 64) == 1
    assert worker_count([host_file(40 * 10**6, packed=True)] * 2) == 2
    monkeypatch.setattr(host_plan, "available_memory", lambda: 2 * 10**9)
    assert worker_count([large] * 64) == 2
    monkeypatch.setattr(host_plan, "available_memory", lambda: 0)
    assert worker_count([large] * 64) == 1
    monkeypatch.setattr(host_plan, "available_memory", lambda: None)
    assert worker_count([large] * 64) == 8


def test_the_user_says_how_many_cores_reading_keeps_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WORKERS_VARIABLE, raising=False)
    monkeypatch.setenv(JOBS_VARIABLE, "3")
    monkeypatch.setattr(host_plan, "available_cores", lambda: 200)
    monkeypatch.setattr(host_plan, "available_memory", lambda: None)
    large = host_file(300 * 10**6)
    assert (decoding_threads(), worker_count([large] * 64)) == (3, 3)
    assert (decoding_threads(7), worker_count([large] * 64, 7)) == (7, 7)
    monkeypatch.delenv(JOBS_VARIABLE)
    assert (decoding_threads(), decoding_threads(10**6)) == (MOST_THREADS, MOST_THREADS)


@pytest.mark.parametrize(
    ("texts", "cores"),
    [
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "250000 100000"}, 3),
        ({"cpu.max": "1000 100000"}, 1),
        ({"cpu.max": "1600000 100000"}, 8),
        ({"cpu.cfs_quota_us": "200000", "cpu.cfs_period_us": "100000"}, 2),
        ({"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, 8),
        ({"cpu.max": "1 0"}, 8),
        ({"cpu.max": "what"}, 8),
        ({}, 8),
    ],
)
def test_cores_are_those_of_the_control_group(
    texts: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in texts.items():
        (tmp_path / name).write_text(text + "\n")
    quotas = (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    monkeypatch.setattr(host_plan, "_QUOTAS", [[str(tmp_path / name) for name in names] for names in quotas])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert host_plan.available_cores() == cores


@pytest.mark.parametrize(("value", "workers"), [("3", 3), (" 3 ", 3), ("99999", 4), ("9", 4), ("", 1)])
def test_the_environment_sets_the_number_of_workers(value: str, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WORKERS_VARIABLE, value)
    assert worker_count([host_file(1)] * 4) == workers


@pytest.mark.parametrize("value", ["0", "000", "-1", "x", "²", "1.5", "2 3", "9" * 5000, "\x1b[2J"])
@pytest.mark.parametrize("variable", [WORKERS_VARIABLE, JOBS_VARIABLE])
def test_a_number_of_workers_that_is_none_is_a_usage_error(
    value: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ProfileError) as caught:
        worker_count([host_file(10**9)] * 2)
    assert caught.value.exit_code == EXIT_USAGE and variable in str(caught.value) and caught.value.hint
    assert caught.value.sentence.startswith(f"{variable} is ") and caught.value.sentence.isprintable()
    assert len(caught.value.sentence) < 120


def test_memory_is_known_on_this_machine_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    known = host_plan.available_memory()
    assert known is None or known >= 0
    lines = {"/proc/meminfo": ["MemTotal: 9 kB", "MemAvailable:  7 kB"]}
    monkeypatch.setattr(host_plan, "_lines", lambda path: lines.get(path, []))
    assert host_plan.available_memory() == 7 * 1024
    lines["/sys/fs/cgroup/memory.max"], lines["/sys/fs/cgroup/memory.current"] = ["5000"], ["1000"]
    assert host_plan.available_memory() == 4000
    lines["/sys/fs/cgroup/memory.max"] = ["max"]
    assert host_plan.available_memory() == 7 * 1024


def test_the_meter_names_the_host_at_work() -> None:
    seen: list[Progress] = []
    meter = Meter((host_file(100), host_file(50)), seen.append, lambda: False)
    meter.begin(1)
    meter.opened(40)
    meter.chunk(10, 3)
    assert (seen[-1].host_index, seen[-1].bytes_done, seen[-1].bytes_total, seen[-1].events_done) == (1, 110, 140, 3)
    assert [(one.bytes_done, one.bytes_total) for one in seen[-1].at_work] == [(10, 40)]


@given(st.lists(st.tuples(st.sampled_from(["begin", "end", "report"]), st.integers(0, 2), *[st.integers(1, 9)] * 3)))
def test_what_is_written_of_a_host_is_read_of_it_alone(calls: list[tuple[str, int, int, int, int]]) -> None:
    shared, process, known = SharedProgress(3), [0] * 3, [(0, 0, 0)] * 3
    for name, host, needed, size, events in calls:
        if name == "report":
            shared.report(host, needed, size, events, needed > 5)
            known[host] = needed, size, events
        elif name == "begin":
            shared.begin(host, size)
            process[host], known[host] = size, (0, 0, 0)
        else:
            shared.end(host)
            process[host] = 0
    assert [shared.so_far(host) for host in range(3)] == known
    assert [shared.process(host) for host in range(3)] == process and not shared.is_cancelled
    assert [shared.is_fetching(host) for host in range(3)] == [of[0] > 5 for of in known]
