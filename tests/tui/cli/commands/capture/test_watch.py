"""The command `watch` at a profiler server: what it asks for, and how it ends."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.profiler_server import FakeProfiler, fails, free_port
from tests.tui.cli.calls import Call
from tests.tui.cli.commands.capture.test_slow_steps import SLOW, STEADY
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE, ProfileError
from tpuprof.parsers.capture.model import CaptureOptions, CaptureStop
from tpuprof.tui.cli.arguments.watch import seconds_of
from tpuprof.tui.cli.commands.capture.watch.command import own_folder
from tpuprof.tui.cli.commands.capture.watch.slow_steps import Servers

SHORT = CaptureOptions(duration_ms=10, grace_seconds=20)


def servers(logdir: Path, *given: FakeProfiler, only_captures: bool = False) -> Servers:
    return Servers([server.address for server in given], SHORT, str(logdir), CaptureStop(), only_captures)


def test_servers_that_can_keep_their_last_seconds_and_no_longer_when_it_ends(tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as server:
        source = servers(tmp_path, server)
        assert "last seconds" in source.begin() and server.kept and source.keeps
        assert Path(source.look(None).run_path).is_dir()
        source.end()
        assert not server.kept


def test_a_server_that_kept_them_before_goes_on_when_it_ends(tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as server:
        server.kept = True
        source = servers(tmp_path, server)
        source.begin()
        source.end()
        assert server.kept


def test_where_one_server_cannot_all_are_captured(tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as new, FakeProfiler(data=STEADY, continuous=False) as old:
        source = servers(tmp_path, new, old)
        assert source.begin() == "short captures" and not source.keeps and not new.kept
        assert len(source.look(None).files) == 2 and new.requests[-1].opts.duration_ms == 10
        source.look(50e9)
        assert new.requests[-1].opts.duration_ms == 200, "four steps of 50 ms"


def test_only_captures_asks_nobody_to_keep_anything(tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as server:
        assert servers(tmp_path, server, only_captures=True).begin() == "short captures"
        assert not server.kept and not server.requests


def test_a_server_that_started_again_keeps_nothing(tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as server:
        source = servers(tmp_path, server)
        source.begin()
        server.kept = False
        with pytest.raises(ProfileError) as error:
            source.look(None)
        assert error.value.code == "nothing_kept"


@pytest.mark.parametrize(("data", "code", "lines"), [(SLOW, EXIT_REGRESSION, 1), (STEADY, EXIT_OK, 0)])
def test_once_for_ci(data: bytes, code: int, lines: int, call: Call, tmp_path: Path) -> None:
    with FakeProfiler(data=data) as server:
        done = call("watch", server.address, "--once", "--ms", "10", "--out", str(tmp_path), code=code)
        assert len(done.out.splitlines()) == lines and "watching 1 server" in done.err
        assert not server.kept and len(server.requests) == 1
    for line in done.out.splitlines():
        told = json.loads(line)
        assert (told["schema"], told["step"], told["host"]) == ("tpuprof.watch/1", "2", "worker-0")
        assert Path(told["profile"]).is_dir() and told["profile"].startswith(str(tmp_path))


def test_what_is_wrong_is_said(call: Call, tmp_path: Path) -> None:
    port = free_port()
    done = call("watch", f"127.0.0.1:{port}", "--once", "--out", str(tmp_path), code=EXIT_CAPTURE_FAILED)
    assert "No profiler server listens" in done.err and not done.out
    for words in (["--slower", "1"], ["--space", "10"], ["--for", "soon"], ["--every", "0s"]):
        call.error(EXIT_USAGE, "watch", "a:1", *words)
    call.error(EXIT_USAGE, "watch", "a:1", "--out", "gs://bucket/x")
    with FakeProfiler(fails("PERMISSION_DENIED")) as server:
        call("watch", server.address, "--captures", "--out", str(tmp_path), code=EXIT_CAPTURE_FAILED)


def test_profiles_lie_in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert own_folder(["host-0:9012", "[::1]:1"]) == "/state/tpuprof-tui/watch/host-0_9012__1_1"


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("10m", 600), ("2h", 7200)])
def test_times(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "10", "1d", "-1s"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        seconds_of(text)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_exit_code_0(number: signal.Signals, tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as server:
        command = [
            sys.executable,
            "-m",
            "tpuprof.tui",
            "watch",
            server.address,
            "--every",
            "1h",
            "--out",
            str(tmp_path),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)) as watch:
            assert watch.stderr is not None
            assert b"watching 1 server" in watch.stderr.readline(), "it has begun"
            watch.send_signal(number)
            out, err = watch.communicate(timeout=60)
        assert (watch.returncode, out, err) == (EXIT_OK, b"", b"")
        assert not server.kept
