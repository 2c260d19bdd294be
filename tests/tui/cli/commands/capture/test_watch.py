"""The command `watch` at a profiler server: what it asks for, and how it ends."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.servers.listening import LONGEST_SECONDS
from tests.support.servers.profiler_server import FakeProfiler, fails, free_port
from tests.tui.cli.calls import Call
from tests.tui.cli.commands.capture.test_slow_steps import SLOW, STEADY
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.folders import state_folder
from tpuprof.parsers.capture import leases
from tpuprof.parsers.capture.model import CaptureOptions, CaptureStop
from tpuprof.parsers.capture.session import capture
from tpuprof.tui.cli.arguments.values import seconds
from tpuprof.tui.cli.commands.capture.watch.command import own_folder
from tpuprof.tui.cli.commands.capture.watch.slow_steps import Servers

SHORT = CaptureOptions(duration_ms=10, grace_seconds=20)


def servers(*given: FakeProfiler, is_continuous: bool = True) -> Servers:
    return Servers([server.address for server in given], SHORT, CaptureStop(), is_continuous)


@pytest.mark.parametrize("kept_before", [False, True])
def test_servers_keep_their_last_seconds_until_it_ends_or_as_before(kept_before: bool, tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as server:
        server.kept = kept_before
        source = servers(server)
        assert "last seconds" in source.begin() and server.kept and source.keeps
        assert Path(source.look(None, str(tmp_path)).run_path).is_dir()
        server.kept = False  # it started again
        with pytest.raises(ProfileError) as error:
            source.look(None, str(tmp_path))
        assert error.value.code == "nothing_kept"
        server.kept = True
        source.end()
        assert server.kept == kept_before


def test_where_one_server_cannot_all_are_captured(tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as new, FakeProfiler(data=STEADY, continuous=False) as old:
        source = servers(new, old)
        assert source.begin().startswith("short captures") and not source.keeps and not new.kept
        assert servers(new, is_continuous=False).begin().startswith("short captures") and not new.kept
        assert len(source.look(None, str(tmp_path)).files) == 2 and new.requests[-1].opts.duration_ms == 10
        source.look(50e9, str(tmp_path))
        assert new.requests[-1].opts.duration_ms == 200, "four steps of 50 ms"


@pytest.mark.parametrize("is_continuous", [True, False])
def test_the_programs_own_trace_is_not_ended_by_either(is_continuous: bool, tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as server, server.own_trace():
        source = servers(server, is_continuous=is_continuous)
        with pytest.raises(ProfileError) as error:
            print(source.begin(), source.look(None, str(tmp_path)))
        assert error.value.code == "another_session"
        source.end()
        assert server.is_tracing and not server.kept


@pytest.mark.parametrize(("data", "code", "lines"), [(SLOW, EXIT_REGRESSION, 1), (STEADY, EXIT_OK, 0)])
def test_once_for_ci(data: bytes, code: int, lines: int, call: Call, tmp_path: Path) -> None:
    with FakeProfiler(data=data) as server:
        done = call("watch", server.address, "--once", "--duration", "10ms", "--output", str(tmp_path), code=code)
        assert len(done.out.splitlines()) == lines and "watching 1 server" in done.err
        assert not server.kept and len(server.requests) == 1
    for line in done.out.splitlines():
        told = json.loads(line)
        assert (told["schema"], told["step"], told["host"]) == ("tpuprof.watch/1", "2", "worker-0")
        assert Path(told["profile"]).is_dir() and told["profile"].startswith(str(tmp_path))


def test_a_full_folder_is_said_at_the_start(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(bytes(1_100_000))
    with FakeProfiler(data=SLOW) as server:
        words = ("--once", "--duration", "10ms", "--disk-limit", "1MB", "--output", str(tmp_path))
        done = call("watch", server.address, *words, code=EXIT_REGRESSION)
    full = "holds 1.10 MB, and --disk-limit is 1.00 MB; remove runs from it"
    assert full in done.err and full in json.loads(done.out)["unknown"]["profile"]


def test_what_is_wrong_is_said(call: Call, tmp_path: Path) -> None:
    port = free_port()
    done = call("watch", f"127.0.0.1:{port}", "--once", "--output", str(tmp_path), code=EXIT_CAPTURE_FAILED)
    assert "No profiler server listens" in done.err and not done.out
    for words in (["--slower", "1"], ["--disk-limit", "10"], ["--for", "soon"], ["--every", "0s"]):
        call.error(EXIT_USAGE, "watch", "a:1", *words)
    call.error(EXIT_USAGE, "watch", "a:1", "--output", "gs://bucket/x")
    with FakeProfiler(fails("PERMISSION_DENIED")) as server:
        call("watch", server.address, "--output", str(tmp_path), code=EXIT_CAPTURE_FAILED)


def test_profiles_lie_in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert own_folder(["host-0:9012", "[::1]:1"]) == "/state/tpuprof-tui/watch/host-0_9012__1_1"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "nowhere")
    with pytest.raises(ProfileError, match="there is no home folder"):
        own_folder(["a:1"])


def test_times() -> None:
    assert [seconds(text, 0) for text in ("30", "30s", "10m", "2h", "500ms")] == [30, 30, 600, 7200, 0.5]
    for text in ("", "0s", "10x", "1d", "-1s", "1e3"):
        with pytest.raises(argparse.ArgumentTypeError):
            seconds(text)


def begun(server: FakeProfiler, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """A watch that has begun, as a program of its own."""
    command = f"-m tpuprof.tui watch {server.address} --every 1h --output {out}".split()
    watch = subprocess.Popen([sys.executable, *command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watch.stderr is not None
    assert b"watching 1 server" in watch.stderr.readline(), "it has begun"
    return watch


def left() -> list[int]:
    """Processes whose leases are there."""
    folder = Path(state_folder(), leases.FOLDER)
    return [int(path.name.partition("-")[0]) for path in folder.iterdir()] if folder.is_dir() else []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("options", [(), ("--continuous",)])
def test_a_signal_ends_it_with_exit_code_0(number: signal.Signals, options: tuple[str, ...], tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as server, begun(server, tmp_path, *options) as watch:
        assert server.kept == bool(options) and (watch.pid in left()) == bool(options)
        watch.send_signal(number)
        out, err = watch.communicate(timeout=60)
        assert (watch.returncode, out, err) == (EXIT_OK, b"", b"")
        assert not server.kept and watch.pid not in left()


def test_a_watch_that_is_killed_leaves_nothing_on(tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as server:
        with begun(server, tmp_path, "--continuous") as watch:
            watch.kill()
        deadline = time.monotonic() + LONGEST_SECONDS
        while server.kept or watch.pid in left():
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.parametrize("finder", ["capture", "watch", "doctor"])
def test_what_a_watch_and_its_watchdog_left_on_is_found(
    finder: str, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "begin_watchdog", lambda _path: SimpleNamespace(wait=lambda _seconds: 0))
    with FakeProfiler(data=STEADY) as server, FakeProfiler(data=STEADY) as other:
        dead, living = (servers(each) for each in (server, other))
        dead.begin()
        living.begin()
        with monkeypatch.context() as another_user:
            another_user.setattr(os, "geteuid", lambda: -1)
            assert not leases.clear() and leases.holder(server.address) is None, "a lease of somebody else"
        elsewhere = Path(state_folder(), leases.FOLDER, "1-00000000.json")
        elsewhere.write_text(f'{{"machine": "another", "addresses": ["{server.address}"]}}')
        assert not leases.clear() and elsewhere.exists() and server.kept, "a lease of another machine"
        elsewhere.unlink()
        with pytest.raises(ProfileError, match=f"process {os.getpid()}") as caught:
            capture([server.address], SHORT, str(tmp_path))
        assert f"capture --continuous off {server.address}" in caught.value.hint
        assert isinstance(dead._lease, leases.Lease)
        os.close(dead._lease._lease)  # as the system does when it is killed
        words = {
            "capture": ("capture", server.address, "--duration", "10ms", "--no-open", "--output", str(tmp_path)),
            "watch": ("watch", server.address, "--once", "--duration", "10ms", "--output", str(tmp_path)),
        }.get(finder, ("doctor",))
        done = call(*words)
        assert "had left continuous profiling on; it is off now" in " ".join((done.out + done.err).split())
        assert not server.kept and other.kept, "that of a watch that lives stays"
        living.end()
        assert not other.kept and os.getpid() not in left()
