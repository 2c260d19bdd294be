"""The command ``capture``: its options, what it prints where, ctrl+C, and the screen after it."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.servers.listening import LONGEST_SECONDS
from tests.support.servers.profiler_server import FakeProfiler, fails, free_port, hangs, profile
from tests.tui.cli.calls import Call
from tests.tui.terminal.pty.pty_app import PtyApp
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_INTERRUPTED, EXIT_OK, Problem, ProfileError
from tpuprof.parsers.capture.errors import failure
from tpuprof.parsers.capture.model import (
    CaptureOptions,
    CaptureProgress,
    CaptureResult,
    CaptureStage,
    HostCapture,
    WrittenFile,
)
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.cli.arguments.capture import capture_parser
from tpuprof.tui.cli.commands.capture.command import CountDown, countdown, outcome, run_capture, tried_again

START = """
import sys
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.tui.cli.arguments.capture import capture_parser
from tpuprof.tui.cli.commands.capture.command import run_capture
try:
    sys.exit(run_capture(capture_parser().parse_args(sys.argv[1:])))
except Cancelled:
    sys.exit(130)
"""


def run(*arguments: str) -> int:
    return run_capture(capture_parser().parse_args(arguments))


def test_the_path_goes_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeProfiler() as server:
        assert run(server.address, "--duration", "30ms", "--output", str(tmp_path)) == EXIT_OK
    shown = capsys.readouterr()
    (path,) = shown.out.splitlines()
    assert Path(path).parent == tmp_path / "plugins" / "profile"
    assert f"tracing {server.address} for 0.03 s" in shown.err and "worker-0.xplane.pb" in shown.err
    assert server.requests[0].opts.duration_ms == 30


def test_the_logdir_is_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeProfiler() as server:
        assert run(server.address, "--duration", "1ms") == EXIT_OK
    assert len(list(tmp_path.glob("plugins/profile/*/worker-0.xplane.pb"))) == 1


def test_options_reach_the_server(tmp_path: Path) -> None:
    levels = ["--host-tracer-level", "1", "--device-tracer-level", "0", "--python-tracer-level", "1"]
    options = ["--option", "a=1", "--option", "b=x", "--option", "a=true"]
    with FakeProfiler() as server:
        run(server.address, "--duration", "20ms", "--delay", "5ms", "--output", str(tmp_path), *levels, *options)
    opts = server.requests[0].opts
    assert (opts.host_tracer_level, opts.device_tracer_level, opts.python_tracer_level) == (1, 0, 1)
    assert {name: str(entry).strip() for name, entry in opts.advanced_configuration.items()} == {
        "a": "bool_value: true",
        "b": 'string_value: "x"',
    }


def test_defaults_are_those_of_the_library() -> None:
    args = capture_parser().parse_args(["localhost:9012"])
    defaults = CaptureOptions()
    assert (args.duration, args.wait, args.delay, args.option) == (2, defaults.grace_seconds, 0, [])
    assert (args.host_tracer_level, args.device_tracer_level, args.python_tracer_level) == (2, 1, 0)


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "a:1 --duration 0",
        "a:1 --duration 601s",
        "a:1 --duration 0.5ms",
        "a:1 --option x",
        "a:1 --wait 0",
        "a:1 --delay=-1",
    ]
    + [f"a:1 --{name}-tracer-level {level}" for name, level in (("host", -1), ("device", "x"), ("python", 10))],
)
def test_usage(arguments: str) -> None:
    with pytest.raises(ProfileError) as caught:
        run(*arguments.split())
    assert caught.value.exit_code == 2 and caught.value.hint == "tpuprof-tui capture --help"


def test_patience_bounds_the_first_call_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[CaptureOptions] = []

    def capture(_addresses: object, options: CaptureOptions, *_: object) -> CaptureResult:
        asked.append(options)
        return CaptureResult(str(tmp_path), (), 0.0)

    monkeypatch.setattr("tpuprof.tui.cli.commands.capture.command.capture", capture)
    for wait in ("2", "300"):
        run("a:1", "--wait", wait, "--no-open")
    assert [(options.connect_seconds, options.grace_seconds) for options in asked] == [(2, 2), (10, 300)]


def test_some_servers_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = f"127.0.0.1:{free_port()}"
    with FakeProfiler() as server, FakeProfiler(fails("INTERNAL", "Another profiling session active.")) as busy:
        assert run(server.address, gone, busy.address, "--duration", "30ms", "--output", str(tmp_path)) == EXIT_OK
    shown = capsys.readouterr()
    assert shown.out.count("\n") == 1
    assert f"warning: No profiler server listens at {gone}." in shown.err and "jax.profiler.start_server" in shown.err
    assert f"warning: Another profile is being taken at {busy.address}." in shown.err


def test_no_server_gives_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ProfileError) as caught:
        run(f"127.0.0.1:{free_port()}", "--output", str(tmp_path))
    assert caught.value.exit_code == EXIT_CAPTURE_FAILED and capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("tty", "term", "no_open", "opens"),
    [
        (True, "xterm", False, True),
        (True, "xterm", True, False),
        (True, "dumb", False, False),
        (False, "xterm", False, False),
    ],
)
def test_the_run_opens_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tty: bool, term: str, no_open: bool, opens: bool
) -> None:
    opened: list[tuple[str, AppOptions]] = []

    def run_app(path: str, *, options: AppOptions) -> int:
        opened.append((path, options))
        return 0

    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return tty

    monkeypatch.setattr("tpuprof.tui.app.start.run_app", run_app)
    monkeypatch.setenv("TERM", term)
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, Stream())
    with FakeProfiler() as server:
        arguments = [server.address, "--duration", "30ms", "--output", str(tmp_path), "--ascii", "--color", "16"]
        assert run(*arguments, *(["--no-open"] if no_open else [])) == EXIT_OK
    (path,) = [str(found) for found in tmp_path.glob("plugins/profile/*")]
    assert opened == ([(path, AppOptions(ascii=True, color="16"))] if opens else [])


def test_what_may_pass_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    codes = ["no_server", "another_session"]

    def once() -> CaptureResult:
        if codes:
            raise failure(codes.pop(0), "Not now.")
        return CaptureResult("x", (), 1.0)

    assert tried_again(once, 2).run_path == "x" and pauses == [2.0, 2.0]
    for codes[:], retries in ((["no_server", "no_server"], 1), (["disk_full"], 9)):
        with pytest.raises(ProfileError):
            tried_again(once, retries)


def test_the_last_seconds_that_a_server_keeps(tmp_path: Path, call: Call) -> None:
    with FakeProfiler() as server:
        assert "keeps its last seconds from now on" in call("capture", "--continuous", "on", server.address).err
        out = call("capture", "--snapshot", server.address, "--output", tmp_path, "--no-open").out
        assert list(Path(out.strip()).glob("*.xplane.pb"))
        call("capture", "--continuous", "off", server.address)
        assert not server.kept
    call("capture", "--continuous", "on", f"127.0.0.1:{free_port()}", code=EXIT_CAPTURE_FAILED)


# --- ctrl+C


def started(*arguments: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", START, *arguments], stdout=pipe, stderr=pipe, text=True)


def wait_until(server: FakeProfiler, what: str) -> None:
    """Waits for the server to have got a request, or a word to end it."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while not getattr(server, what):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_twice_or_a_signal_lets_the_profiler_go(number: signal.Signals, tmp_path: Path) -> None:
    with FakeProfiler(hangs) as server:
        process = started(server.address, "--duration", "600000ms", "--output", str(tmp_path))
        wait_until(server, "requests")
        process.send_signal(number)
        wait_until(server, "terminated")
        if number == signal.SIGINT:
            process.send_signal(number)
        out, err = process.communicate(timeout=LONGEST_SECONDS)
        assert server.terminated == [server.requests[0].session_id]
    assert (process.returncode, out) == (EXIT_INTERRUPTED if number == signal.SIGINT else -number, "")
    assert "Traceback" not in err and list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the server has threads, the child none
def test_the_whole_loop_in_a_terminal(tmp_path: Path) -> None:
    with FakeProfiler(data=profile("tpu-worker-7")) as server:
        arguments = [server.address, "--duration", "600000ms", "--output", str(tmp_path)]
        with PtyApp(*arguments, program=(sys.executable, "-c", START)) as app:
            app.wait_for_text("s left  (ctrl+C ends it and keeps the profile so far)")
            app.press("\x03")
            app.wait_for(lambda at: "Top ops" in at.text and "fusion.1" in at.text)
            app.press("q")
            assert app.wait_for_exit() == EXIT_OK
    (found,) = tmp_path.glob("plugins/profile/*/tpu-worker-7.xplane.pb")
    assert found.read_bytes() == server.profile and b"ended early" in app.written


# --- the line


def at(
    stage: CaptureStage, address: str = "tpu:9012", left_ms: int | None = None, size: int | None = None
) -> CaptureProgress:
    return CaptureProgress(address, stage, left_ms, 2000, size)


def test_the_line_counts_down() -> None:
    keeps, again = "(ctrl+C ends it and keeps the profile so far)", "(ctrl+C again discards it)"
    assert countdown([at("tracing", left_ms=1449)]) == f"tpu:9012: tracing, 1.4 s left  {keeps}"
    assert countdown([at("stopping")]) == f"tpu:9012: stopping  {again}"
    assert countdown([at("connecting")]) == "tpu:9012: connecting  (ctrl+C ends it)"
    assert countdown([at("written", size=2_500_000)]) == "tpu:9012: written 2.5 MB"
    several = [at("tracing", "a", 900), at("written", "b", size=5), at("failed", "c"), at("tracing", "d", 1200)]
    assert countdown(several) == f"4 servers: 2 tracing, 1 written, 1 failed, 1.2 s left  {keeps}"


def test_the_line_is_drawn_over_itself_and_not_too_often() -> None:
    stream, now = io.StringIO(), [0.0]
    line = CountDown(stream.write, True, 40, lambda: now[0])
    for _ in range(50):
        line(at("tracing", left_ms=1000))
    assert stream.getvalue().count("\r\x1b[K") == 1
    now[0] = 0.2
    line(at("tracing", left_ms=800))
    line(at("writing"))
    line.clear()
    drawn = stream.getvalue().split("\r\x1b[K")
    assert [text[:18] for text in drawn] == ["", "tpu:9012: tracing,", "tpu:9012: tracing,", "tpu:9012: writing ", ""]
    assert max(map(len, drawn)) == 39


def test_no_line_is_drawn_off_a_terminal() -> None:
    stream = io.StringIO()
    line = CountDown(stream.write, False, 80)
    for progress in (at("connecting"), at("failed", "b"), at("tracing", left_ms=5), at("tracing", left_ms=1)):
        line(progress)
    line(CaptureProgress("tpu:9012", "waiting", None, 2000, None, "asked\x1b again"))
    line.clear()
    assert stream.getvalue() == "tracing tpu:9012 for 2 s\nasked␛ again\n"


def test_what_came_of_it() -> None:
    good = HostCapture(
        "a:1", WrittenFile("/logs/run/w.xplane.pb", "w", 1_500_000), 2.04, None, ("holds no device",), True
    )
    bad = HostCapture("b:1", None, None, Problem("no_server", "b:1", "Nothing at b:1.", "start one"))
    assert outcome(CaptureResult("/logs/run", (bad, good), 2.5)) == [
        "a:1: 1.5 MB in 2.0 s, w.xplane.pb",
        "note: the profile of a:1 holds no device",
        "note: ended early; the profile so far is kept",
        "warning: Nothing at b:1.",
        "try: start one",
    ]
