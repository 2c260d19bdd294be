"""The command line: exit codes, the screen's command, what is installed, pipes and progress."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tests.support.build import host_bytes
from tests.support.made.oom import MESSAGE
from tests.tui.cli.calls import RUN, Call, Done, Terminal, modules_of, run, write_logdir
from tpuprof.parsers.base.errors import (
    EXIT_INTERRUPTED,
    EXIT_NO_TERMINAL,
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_UNREADABLE,
    EXIT_USAGE,
)
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.session.session import Session
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.cli import main as cli
from tpuprof.tui.cli.arguments.options import DEMO, MOST_WIDTH
from tpuprof.tui.cli.common import note
from tpuprof.tui.demo import demo_path
from tpuprof.tui.terminal.progress import ProgressLine

# --- exit codes and errors


@pytest.mark.parametrize(
    "args",
    [
        ["--no-such-flag"],
        ["a", "b"],
        ["--color", "purple"],
        ["report"],
        ["report", "nonsense"],
        ["report", "overview", "--limit", "-1"],
        ["report", "overview", "--limit", "many"],
        ["report", "overview", "--format", "xml"],
        ["report", "overview", "--format", "perfetto"],
        ["report", "overview", "--from", "1"],
        ["report", "ops", "--track", "x"],
        ["report", "timeline", "--from", "-1"],
        ["report", "timeline", "--from", "1e3"],
        ["report", "timeline", "--from", "."],
        ["report", "timeline", "--to", "٣"],
        ["report", "timeline", "--to", "12345678901"],
        ["report", "timeline", "--from", "2", "--to", "1.999"],
        ["report", "timeline", "--from", "2", "--to", "2.0"],
        ["report", "timeline", "--format", "perfetto", "--track", "x"],
        ["report", "timeline", "--format", "perfetto", "--limit", "3"],
        ["report", "overview", "--lim", "3"],
        ["report", "overview", "--module", "jit_step"],
        ["report", "memory-profile", "--space", "vmem"],
        ["report", "memory", "--space", "l2"],
        ["--json"],
    ],
)
def test_usage_errors(call: Call, args: list[str]) -> None:
    call.error(EXIT_USAGE, *args)


@pytest.mark.parametrize(
    "words", [["report", "overview", DEMO, "--width", "999999999"], ["diff", "x", "--width", "10001"]], ids=" ".join
)
def test_a_width_has_a_bound(call: Call, words: list[str]) -> None:
    assert "is not a whole number from 0 to 10,000" in call.error(EXIT_USAGE, *words)[0]


def test_a_terminal_of_a_width_that_none_has(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "999999999")
    assert max(map(len, call("report", "overview", DEMO).out.splitlines())) <= MOST_WIDTH


def test_a_device_that_never_ends_is_no_log(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call.error(EXIT_UNREADABLE, "oom", "/dev/zero")
    with open("/dev/zero", encoding="ascii") as zeros:
        monkeypatch.setattr(sys, "stdin", zeros)
        call.error(EXIT_UNREADABLE, "oom", "-")
        call.error(EXIT_UNREADABLE, "oom")
    call.error(EXIT_NOT_FOUND, "oom", os.devnull)
    call.error(EXIT_UNREADABLE, "report", "overview", "/dev/zero")


@pytest.mark.parametrize("modules", [0, 20, 60, 120, 200, 280])
def test_ctrl_c_at_any_moment_leaves_no_traceback(modules: int) -> None:
    """The signal comes when so many modules are imported, counted from the first one of the command line.

    Before that Python itself is starting, and says what it likes.
    """
    command = [sys.executable, "-X", "importtime", "-m", "tpuprof.tui", "report", "overview", "demo"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.rstrip().endswith(" tpuprof.tui.cli"):
                break
        for _ in islice(process.stderr, modules):
            pass
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode in (-signal.SIGINT, EXIT_OK, EXIT_INTERRUPTED)
    assert "Traceback" not in errors


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("words", "exit_code"),
    [("--version", EXIT_OK), ("doctor", EXIT_OK), ("report runs demo", EXIT_OK), ("oom nowhere", EXIT_NOT_FOUND)],
)
def test_closed_streams(words: str, exit_code: int, closed: str, tmp_path: Path) -> None:
    """No traceback; no error on standard output; no profile opened as one of the streams."""
    out, errors = tmp_path / "out", tmp_path / "errors"
    shell = f"exec {sys.executable} -m tpuprof.tui {words} >{out} 2>{errors} {closed}"
    done = subprocess.run(["/bin/sh", "-c", shell], check=False, stdin=subprocess.DEVNULL)
    lost = exit_code == EXIT_OK and ">&-" in closed.split()
    assert done.returncode == (EXIT_USAGE if lost else exit_code)
    said = errors.read_text()
    assert "Traceback" not in said and "Exception" not in said
    assert bool(out.read_text()) == (exit_code == EXIT_OK and not lost)
    assert bool(said) == ("2>&-" not in closed and (lost or exit_code != EXIT_OK))


def test_a_traceback_only_where_it_is_asked_for(call: Call, tmp_path: Path) -> None:
    assert "Traceback" in call("report", "overview", tmp_path / "nowhere", "--debug", code=EXIT_NOT_FOUND).err
    assert "Traceback" in call("--debug", "report", "overview", tmp_path / "nowhere", code=EXIT_NOT_FOUND).err


@pytest.mark.parametrize("words", [["report", "overview"], ["report", "runs"], ["doctor"], ["report", "overview", "x"]])
def test_no_secret_of_a_url_is_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'tpuprof-tui[remote]'")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    url = "http://user:hunter2@127.0.0.1:9/host.xplane.pb?token=SECRET"
    assert cli.main([*words, url, "--debug"]) != EXIT_OK
    out, err = capsys.readouterr()
    assert "hunter2" not in out + err and "SECRET" not in out + err
    assert "http://127.0.0.1:9/host.xplane.pb?…" in out + err
    assert ("Traceback" in err) == (words[0] == "report")


@pytest.mark.parametrize(
    "words",
    [
        ["report", "runs"],
        ["doctor"],
        ["capture"],
        ["diff"],
        ["oom"],
        ["memory"],
        [],
        ["--run"],
        ["report", "ops", "--host"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "url",
    [
        "s3://user:hunter2@bucket/x?token=hunter2",
        "gs://bucket/x?sv=1&sig=hunter2",
        "https:/user:hunter2@host/x",
        "//user:hunter2@host/x;jsessionid=hunter2",
        "simplecache::s3://user:hunter2@bucket/x",
        "/nowhere/x?X-Amz-Security-Token=hunter2",
    ],
)
def test_no_secret_stands_in_a_sentence_a_hint_or_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], url: str
) -> None:
    for driver in ("s3fs", "gcsfs"):  # they would look for a login elsewhere
        monkeypatch.setitem(sys.modules, driver, None)
    assert cli.main([*words, url, "--debug"]) != EXIT_OK
    out, err = capsys.readouterr()
    assert "hunter2" not in out + err
    assert out + err


@pytest.mark.parametrize(
    ("error", "exit_code", "says"),
    [
        (KeyboardInterrupt(), EXIT_INTERRUPTED, ""),
        (MemoryError(), EXIT_UNREADABLE, "There is not enough memory for this."),
        (PermissionError(13, "Permission denied", "/x\x1b"), EXIT_UNREADABLE, "/x␛: Permission denied"),
    ],
)
def test_what_the_system_does_is_told_plainly(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    logdir: Path,
    error: BaseException,
    exit_code: int,
    says: str,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Session, "page", fail)
    assert cli.main(["report", "overview", str(logdir)]) == exit_code
    out, err = capsys.readouterr()
    assert out == "" and says in err and bool(err) == bool(says)


# --- the screen's command


def test_without_a_terminal_the_overview_is_printed(call: Call, logdir: Path) -> None:
    out, err = call(logdir, "--host", "host1")
    assert "host1" in out and "host0" not in out
    assert err == "Input or output is not a terminal. Printing the overview instead of opening the screen.\n"


@pytest.mark.parametrize("option", ["--latest", "--mouse"])
def test_what_only_a_screen_does_needs_a_terminal(call: Call, tmp_path: Path, option: str) -> None:
    sentence, hint = call.error(EXIT_NO_TERMINAL, option, tmp_path / "not there yet")
    assert sentence == f"{option} needs a screen. Input or output is not a terminal."
    assert hint == "try: tpuprof-tui report overview PATH"


@pytest.mark.parametrize("term", ["", "dumb"])
def test_a_terminal_that_cannot_place_text_gets_the_overview(
    monkeypatch: pytest.MonkeyPatch, logdir: Path, term: str
) -> None:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", term)
    assert cli.main([str(logdir)]) == EXIT_OK
    assert RUN in out.getvalue() and "\x1b" not in out.getvalue()
    assert "TERM" in err.getvalue() and " ".join(err.getvalue().split()).count(". ") == 1


def test_what_is_said_on_a_terminal_is_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    said = {is_terminal: Terminal() if is_terminal else io.StringIO() for is_terminal in (True, False)}
    sentence = "try: a profile's name ends in .xplane.pb; /a/path/that/is/longer/than/a/line/of/it/is whole"
    for stream in said.values():
        monkeypatch.setattr(sys, "stderr", stream)
        note(sentence)
    assert said[False].getvalue() == f"{sentence}\n"
    lines = said[True].getvalue().splitlines()
    assert " ".join(line.strip() for line in lines) == sentence
    assert all(line.startswith(" " * len("try: ")) for line in lines[1:]) and len(lines) > 2
    assert all(len(line) <= 40 or len(line.split()) == 1 for line in lines)


def test_the_screen_gets_path_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def run_app(path: str, options: AppOptions) -> int:
        calls.append((path, options))
        return 7

    monkeypatch.setattr("tpuprof.tui.app.start.run_app", run_app)
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    assert cli.main([]) == 7
    assert cli.main(["logs", "--ascii", "--color", "256", "--no-mouse", "--run", "r", "--host", "h", "--no-cache"]) == 7
    assert cli.main(["demo", "--mouse"]) == 7
    assert calls == [
        (".", AppOptions()),
        ("logs", AppOptions(ascii=True, color="256", mouse=False, run="r", host="h", cache=False)),
        (demo_path(), AppOptions(mouse=True, demo=True)),
    ]


# --- doctor, version, help


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    folder = tmp_path_factory.mktemp("modules")
    logdir = str(write_logdir(folder / "logs"))
    bare = {"--help": ["--help"], "--version": ["--version"], "runs": ["report", "runs", logdir]}
    perfetto = ["report", "timeline", logdir, "--format", "perfetto", "--from", "0"]
    (folder / "train.log").write_text(MESSAGE)
    special = {
        "doctor": ["doctor"],
        "no terminal": [logdir],
        "perfetto": perfetto,
        "memory": ["report", "memory", "demo"],
        "diff": ["diff", "demo", logdir, "--format", "text"],
        "oom": ["oom", str(folder / "train.log"), "--json"],
    }
    pages = {page: ["report", page, logdir] for page in ("overview", "input", "inference", "timeline")}
    return modules_of(bare, {**special, **pages}, folder)


def test_the_version_as_json(call: Call) -> None:
    told = call.json("--version", "--json")
    assert told["schema"] == "tpuprof.version/1"
    assert told["decoding_core"] in ("c", "python")
    assert told["packages"]["numpy"] == np.__version__
    assert call("--version").out == f"tpuprof-tui {told['version']}\n"


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_import_next_to_nothing(flag: str, modules: dict[str, Done]) -> None:
    assert modules[flag].out.startswith((b"usage: tpuprof-tui", b"tpuprof-tui "))
    assert not modules[flag].modules & {"numpy", "google.protobuf"}


def test_headless_commands_import_no_screen_and_no_network(modules: dict[str, Done]) -> None:
    for command, done in modules.items():
        assert done.code == EXIT_OK and done.out, command
        assert "tpuprof.tui.cli.main" in done.modules, command
        assert not done.modules & {"textual", "rich", "grpc"}, command
    assert "numpy" not in modules["runs"].modules


# --- pipes and processes


def test_any_locale_can_print_any_name(logdir: Path) -> None:
    folder = logdir / "plugins" / "profile" / RUN
    (folder / "wüst\udcff.xplane.pb").write_bytes(host_bytes())
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    result = run("report", "overview", str(logdir), "--format", "json", **ascii_only)
    assert result.returncode == EXIT_OK
    assert "w\\xc3\\xbcst\\xff" in json.loads(result.stdout)["run"]["hosts"]  # bytes that ASCII has no characters for
    result = run("report", "overview", str(logdir), **ascii_only)
    assert result.returncode == EXIT_OK and result.stdout.isascii()
    result = run("report", "overview", str(logdir / "wüst"), **ascii_only)
    assert result.returncode == EXIT_NOT_FOUND and b"Traceback" not in result.stderr


# --- progress


def test_progress_is_one_line_now_and_then_and_goes_away() -> None:
    stream, now = io.StringIO(), [0.0]
    progress = ProgressLine(stream.write, lambda: now[0], width=60)
    for tick in range(1001):
        now[0] = tick / 1000  # a second in a thousand calls
        progress(Progress("host\x1b0", 1, 4, tick, 1000, tick * 1000))
    written = stream.getvalue()
    assert written.count("\r\x1b[K") == 8  # not before 0.3 s, then every 0.1 s
    assert "reading host␛0 (2 of 4): 30%, 300,000 events" in written
    assert all(len(part) < 60 for part in written.split("\r\x1b[K"))
    progress.clear()
    assert stream.getvalue() == written + "\r\x1b[K"
    progress.clear()
    assert stream.getvalue() == written + "\r\x1b[K"


def test_progress_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, call: Call, logdir: Path) -> None:
    monkeypatch.setattr("tpuprof.tui.terminal.progress.FIRST_AFTER_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    assert call("report", "overview", logdir).err == ""
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    assert cli.main(["report", "overview", str(logdir)]) == EXIT_OK
    assert "reading host0" in err.getvalue() and err.getvalue().endswith("\r\x1b[K")
