"""The command `watch` at a profiler server: what it asks for, and how it ends."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.profiler_server import FakeProfiler, fails, free_port
from tests.tui.cli.calls import Call
from tests.tui.cli.commands.capture.test_slow_steps import SLOW, STEADY
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE, ProfileError
from tpuprof.tui.cli.arguments.values import seconds
from tpuprof.tui.cli.commands.capture.watch.command import own_folder


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


def begun(server: FakeProfiler, out: Path) -> subprocess.Popen[bytes]:
    """A watch that has begun, as a program of its own."""
    command = f"-m tpuprof.tui watch {server.address} --every 1h --output {out}".split()
    watch = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watch.stderr is not None
    assert b"watching 1 server" in watch.stderr.readline(), "it has begun"
    return watch


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_exit_code_0(number: signal.Signals, tmp_path: Path) -> None:
    with FakeProfiler(data=STEADY) as server, begun(server, tmp_path) as watch:
        watch.send_signal(number)
        out, err = watch.communicate(timeout=60)
        assert (watch.returncode, out, err) == (EXIT_OK, b"", b"")
        assert not server.kept
