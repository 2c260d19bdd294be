"""The command line: exit codes, formats, which stream gets what, what is never imported, where nothing is written."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.demo.profile.hlo_module import Module
from tests.support.build import tpu_plane
from tpuprof.parsers.base.errors import (
    EXIT_INTERRUPTED,
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_UNREADABLE,
    EXIT_USAGE,
    ProfileError,
)
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.session.session import Session
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.cli import main as cli
from tpuprof.tui.cli.common import PIPE_WIDTH
from tpuprof.tui.demo import demo_path
from tpuprof.tui.report.progress import ProgressLine

RUN = "2026_11_21_03_00_00"
PROGRAM = "import sys; from tpuprof.tui.cli.main import main; sys.exit(main())"
MODULES = (
    "import sys; from tpuprof.tui.cli.main import main; code = main(); print(*sys.modules, file=sys.stderr);"
    " sys.exit(code)"
)


def host_bytes(step_ps: int = 100, count: int = 4) -> bytes:
    space = XSpace()
    ops = [("fusion.1", "loop fusion", n * step_ps, step_ps // 2) for n in range(count)]
    tpu_plane(space, 0, ops, steps=[(str(n), n * step_ps, (n + 1) * step_ps) for n in range(count)])
    return space.SerializeToString()


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "plugins" / "profile" / RUN
    folder.mkdir(parents=True)
    (folder / "host0.xplane.pb").write_bytes(host_bytes())
    (folder / "host1.xplane.pb").write_bytes(host_bytes(200))
    return tmp_path / "logs"


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def run(*args: str, program: str = PROGRAM, **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-W", "error", "-c", program, *args]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, env=os.environ | env, check=False)


# --- exit codes and errors


def expect_error(capsys: pytest.CaptureFixture[str], args: list[str], exit_code: int) -> tuple[str, str]:
    """The sentence and the hint of an error, which is two lines on standard error and nothing else."""
    assert cli.main(args) == exit_code
    out, err = capsys.readouterr()
    assert out == ""
    sentence, hint = err.splitlines()
    assert sentence.endswith(".") and hint.startswith("try: ")
    return sentence, hint


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
        ["--ascii", "report", "overview"],
    ],
)
def test_usage_errors(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    expect_error(capsys, args, EXIT_USAGE)


def test_nothing_there(capsys: pytest.CaptureFixture[str], tmp_path: Path, logdir: Path) -> None:
    expect_error(capsys, ["report", "overview", str(tmp_path / "nowhere")], EXIT_NOT_FOUND)
    expect_error(capsys, ["report", "runs", str(tmp_path / "nowhere")], EXIT_NOT_FOUND)
    expect_error(capsys, ["report", "overview", str(logdir), "--run", "1999"], EXIT_NOT_FOUND)
    _, hint = expect_error(capsys, ["report", "overview", str(logdir), "--host", "host7"], EXIT_NOT_FOUND)
    assert "host0" in hint and "host1" in hint


def test_an_unreadable_profile(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "host0.xplane.pb").write_bytes(b"\xff" * 300)
    expect_error(capsys, ["report", "overview", str(tmp_path)], EXIT_UNREADABLE)


def test_a_traceback_only_where_it_is_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["report", "overview", str(tmp_path / "nowhere"), "--debug"]) == EXIT_NOT_FOUND
    assert "Traceback" in capsys.readouterr().err
    assert cli.main(["--debug", "report", "overview", str(tmp_path / "nowhere")]) == EXIT_NOT_FOUND
    assert "Traceback" in capsys.readouterr().err


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


def test_a_salvaged_file_is_fine_with_a_warning(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = host_bytes(count=400)
    (tmp_path / "host0.xplane.pb").write_bytes(data[: len(data) * 2 // 3])
    assert cli.main(["report", "overview", str(tmp_path), "--format", "json"]) == EXIT_OK
    out, err = capsys.readouterr()
    assert any("cut off" in warning for warning in json.loads(out)["warnings"])
    assert err == ""
    assert cli.main(["report", "overview", str(tmp_path), "--format", "csv"]) == EXIT_OK
    out, err = capsys.readouterr()
    assert err.startswith("note: ") and "cut off" in err
    assert "cut off" not in out


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

    monkeypatch.setattr(Session, "overview", fail)
    assert cli.main(["report", "overview", str(logdir)]) == exit_code
    out, err = capsys.readouterr()
    assert out == "" and says in err and bool(err) == bool(says)


# --- reports


def test_formats(capsys: pytest.CaptureFixture[str], logdir: Path) -> None:
    outputs = {}
    for form in ("text", "json", "csv", "md"):
        assert cli.main(["report", "overview", str(logdir), "--format", form]) == EXIT_OK
        outputs[form], err = capsys.readouterr()
        assert err == ""
    document = json.loads(outputs["json"])
    assert document["run"]["name"] == RUN and document["run"]["hosts"] == ["host0", "host1"]
    assert [step["duration_ms"] for step in document["steps"]] == [2e-7] * 4
    assert next(csv.DictReader(io.StringIO(outputs["csv"])))["name"] == "fusion.1"
    assert outputs["md"].startswith(f"# Overview of {RUN}\n")
    assert RUN in outputs["text"] and "fusion.1" in outputs["text"]
    assert "\x1b" not in outputs["text"]


def test_run_and_host_are_chosen(capsys: pytest.CaptureFixture[str], logdir: Path) -> None:
    older = logdir / "plugins" / "profile" / "2025_01_01_00_00_00"
    older.mkdir()
    (older / "host0.xplane.pb").write_bytes(host_bytes(400))
    assert cli.main(["report", "overview", str(logdir), "--run", "2025", "--format", "json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out)["steps"][0]["duration_ms"] == 4e-7
    assert cli.main(["report", "overview", str(logdir), "--host", "host0", "--format", "json"]) == EXIT_OK
    document = json.loads(capsys.readouterr().out)
    assert document["run"] == {**document["run"], "name": RUN, "hosts": ["host0"]}
    assert cli.main(["report", "runs", str(logdir), "--format", "json"]) == EXIT_OK
    assert [item["name"] for item in json.loads(capsys.readouterr().out)["runs"]] == [RUN, older.name]
    assert cli.main(["report", "runs", str(logdir), "--format", "json", "--limit", "1"]) == EXIT_OK
    assert [item["name"] for item in json.loads(capsys.readouterr().out)["runs"]] == [RUN]
    assert cli.main(["report", "runs", str(logdir), "--format", "json", "--limit", "1", "--facts"]) == EXIT_OK
    (facts,) = json.loads(capsys.readouterr().out)["runs"]
    assert facts["name"] == RUN and facts["step_time_ps"] > 0
    assert cli.main(["report", "overview", str(logdir), "--facts"]) == EXIT_USAGE
    assert cli.main(["report", "runs", str(logdir), "--host", "host0"]) == EXIT_USAGE


def test_the_look_of_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, logdir: Path) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.delenv("COLUMNS", raising=False)
    command = ["report", "overview", str(logdir)]
    texts = {}
    for look in ([], ["--ascii"], ["--color", "16"], ["--width", "80"]):
        assert cli.main([*command, *look]) == EXIT_OK
        texts["".join(look)] = capsys.readouterr().out
    assert max(map(len, texts[""].splitlines())) <= PIPE_WIDTH
    assert not texts[""].isascii() and texts["--ascii"].isascii()
    assert "\x1b[" in texts["--color16"]
    assert max(map(len, texts["--width80"].splitlines())) <= 80
    monkeypatch.setenv("LC_ALL", "C")
    assert cli.main(command) == EXIT_OK
    assert capsys.readouterr().out.isascii()


# --- files


def test_output_goes_into_a_file_at_once(capsys: pytest.CaptureFixture[str], logdir: Path, tmp_path: Path) -> None:
    before = content(logdir)
    file = tmp_path / "report.json"
    file.write_text("old")
    file.chmod(0o640)
    command = ["report", "overview", str(logdir), "--format", "json", "--output"]
    assert cli.main([*command, str(file)]) == EXIT_OK
    assert capsys.readouterr() == ("", "")
    assert json.loads(file.read_text())["schema"] == "tpuprof.overview/1"
    assert file.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "report.json"]
    assert content(logdir) == before
    assert cli.main([*command, "-"]) == EXIT_OK
    assert capsys.readouterr().out == file.read_text()


def test_a_link_is_followed_and_a_device_written_into(logdir: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    link.symlink_to(target)
    command = ["report", "runs", str(logdir), "--format", "json", "--output"]
    assert cli.main([*command, str(link)]) == EXIT_OK
    assert link.is_symlink() and json.loads(target.read_text())["schema"] == "tpuprof.runs/1"
    assert cli.main([*command, os.devnull]) == EXIT_OK
    assert Path(os.devnull).is_char_device()


def test_nothing_is_written_among_profiles(capsys: pytest.CaptureFixture[str], logdir: Path, tmp_path: Path) -> None:
    folder = logdir / "plugins" / "profile" / RUN
    loose = tmp_path / "loose"
    loose.mkdir()
    (loose / "host0.xplane.pb").write_bytes(host_bytes())
    odd = tmp_path / "odd.bin"
    odd.write_bytes(host_bytes())
    alias = tmp_path / "alias.json"
    alias.symlink_to(folder / "report.json")
    before = content(tmp_path)
    for file in (
        folder / "host0.xplane.pb",
        folder / "report.json",
        folder.parent / "report.json",
        loose / "report.json",
        tmp_path / "new.xplane.pb",
        alias,
        folder,
        tmp_path / "nowhere" / "report.json",
    ):
        expect_error(capsys, ["report", "overview", str(logdir), "--output", str(file)], EXIT_USAGE)
    expect_error(capsys, ["report", "overview", str(odd), "--output", str(odd)], EXIT_USAGE)
    expect_error(capsys, ["report", "overview", str(logdir), "--output", ""], EXIT_USAGE)
    assert content(tmp_path) == before


def test_a_file_that_cannot_be_written_leaves_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, logdir: Path, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    sentence, _ = expect_error(capsys, ["report", "runs", str(logdir), "--output", str(tmp_path / "r.txt")], EXIT_USAGE)
    assert "no space left" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


# --- the timeline


def test_the_timeline_in_every_format(capsys: pytest.CaptureFixture[str], logdir: Path) -> None:
    for form in ("text", "md", "csv", "json"):
        for part in ([], ["--from", "0", "--to", "0.0000002"], ["--track", "XLA ops"]):
            assert cli.main(["report", "timeline", str(logdir), "--format", form, *part]) == EXIT_OK
            out, err = capsys.readouterr()
            assert "XLA Ops" in out
            assert (form == "csv") == ("note: this is host0, one of 2 hosts" in err) == ("2 hosts" not in out)
    assert cli.main(["report", "timeline", str(logdir), "--format", "json", "--host", "host1"]) == EXIT_OK
    document = json.loads(capsys.readouterr().out)
    assert document["run"]["hosts"] == ["host1"] and document["warnings"] == []
    assert [track["events"] for track in document["tracks"] if not track["is_derived"]] == [4, 4]


def test_an_interval_is_milliseconds(capsys: pytest.CaptureFixture[str], logdir: Path) -> None:
    command = ["report", "timeline", str(logdir), "--format", "json"]
    for part, interval in (
        (["--from", "0.0000001", "--to", ".000000250"], (100, 250)),  # picoseconds
        (["--from", "0.00000010099"], (100, 400)),
        (["--to", "9."], (0, 9 * 10**9)),
    ):
        assert cli.main([*command, *part]) == EXIT_OK
        document = json.loads(capsys.readouterr().out)
        assert (document["interval"]["from_ps"], document["interval"]["to_ps"]) == interval


def test_the_events_of_a_limit(capsys: pytest.CaptureFixture[str], logdir: Path) -> None:
    command = ["report", "timeline", str(logdir), "--format", "json", "--from", "0", "--limit"]
    for limit, count in (("3", 3), ("0", 8)):
        assert cli.main([*command, limit]) == EXIT_OK
        document = json.loads(capsys.readouterr().out)
        assert (len(document["events"]), document["event_count"]) == (count, 8)


def test_no_such_track_or_host(capsys: pytest.CaptureFixture[str], logdir: Path) -> None:
    sentence, hint = expect_error(capsys, ["report", "timeline", str(logdir), "--track", "ops\x1b"], EXIT_NOT_FOUND)
    assert "ops␛" in sentence and "XLA Ops" in hint
    expect_error(capsys, ["report", "timeline", str(logdir), "--host", "host7"], EXIT_NOT_FOUND)


def test_a_trace_for_perfetto(capsys: pytest.CaptureFixture[str], logdir: Path, tmp_path: Path) -> None:
    command = ["report", "timeline", str(logdir), "--host", "host0", "--format", "perfetto"]
    assert cli.main(command) == EXIT_OK
    whole, err = capsys.readouterr()
    assert err == "" and sum(event["ph"] == "X" for event in json.loads(whole)["traceEvents"]) >= 8
    assert cli.main([*command, "--from", "0.0000001", "--to", "0.0000002"]) == EXIT_OK
    assert len(capsys.readouterr().out) < len(whole)
    plain, packed, again = tmp_path / "a.json", tmp_path / "a.json.gz", tmp_path / "b.json.GZ"
    for file in (plain, packed, again):
        assert cli.main([*command, "--output", str(file)]) == EXIT_OK
        assert capsys.readouterr() == ("", "")
    assert plain.read_text() == gzip.decompress(packed.read_bytes()).decode() == whole
    assert packed.read_bytes() == again.read_bytes() and packed.read_bytes()[3:8] == bytes(5)  # no name, no time
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.json.gz", "b.json.GZ", "logs"]


def test_a_trace_for_perfetto_is_of_one_host(capsys: pytest.CaptureFixture[str], logdir: Path) -> None:
    assert cli.main(["report", "timeline", str(logdir), "--format", "perfetto"]) == EXIT_OK
    assert capsys.readouterr().err == "note: this is host0, one of 2 hosts; --host shows another one\n"


def test_a_trace_for_perfetto_is_not_for_a_terminal(monkeypatch: pytest.MonkeyPatch, logdir: Path) -> None:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    for output in ([], ["--output", "-"]):
        assert cli.main(["report", "timeline", str(logdir), "--format", "perfetto", *output]) == EXIT_USAGE
    assert out.getvalue() == "" and "--output trace.json.gz" in err.getvalue()


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ProfileError("changed", "It changed.", "again")])
def test_a_trace_that_breaks_off_leaves_nothing(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    logdir: Path,
    tmp_path: Path,
    name: str,
    error: BaseException,
) -> None:
    def breaks_off(timeline: object, trace: object, write: Callable[[bytes], object], *_: object) -> None:
        write(b"{" * 1_000_000)
        raise error

    file = tmp_path / name
    file.write_text("old")
    monkeypatch.setattr("tpuprof.tui.pages.timeline.report.perfetto.write_perfetto", breaks_off)
    code = cli.main(["report", "timeline", str(logdir), "--format", "perfetto", "--output", str(file)])
    assert code == (EXIT_INTERRUPTED if isinstance(error, KeyboardInterrupt) else EXIT_UNREADABLE)
    assert file.read_text() == "old" and sorted(path.name for path in tmp_path.iterdir()) == ["logs", name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("form", ["perfetto", "json"])
def test_a_full_device_is_one_plain_error(capsys: pytest.CaptureFixture[str], logdir: Path, form: str) -> None:
    command = ["report", "timeline", str(logdir), "--host", "host0", "--format", form, "--output", "/dev/full"]
    sentence, _ = expect_error(capsys, command, EXIT_USAGE)
    assert sentence == "/dev/full can't be written: no space left on device."


# --- the screen's command


def test_without_a_terminal_the_overview_is_printed(capsys: pytest.CaptureFixture[str], logdir: Path) -> None:
    assert cli.main([str(logdir), "--host", "host1"]) == EXIT_OK
    out, err = capsys.readouterr()
    assert "host1" in out and "host0" not in out
    assert err == "Input or output is not a terminal. Printing the overview instead of opening the screen.\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
    assert len(err.getvalue().splitlines()) == 1 and "TERM" in err.getvalue()


def test_the_screen_gets_path_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    class App:
        @staticmethod
        def run_app(path: str, options: AppOptions) -> int:
            calls.append((path, options))
            return 7

    monkeypatch.setitem(sys.modules, "tpuprof.tui.app.start", App)
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    assert cli.main([]) == 7
    assert cli.main(["logs", "--ascii", "--color", "256", "--no-mouse", "--run", "r", "--host", "h"]) == 7
    assert cli.main(["demo", "--mouse"]) == 7
    assert calls == [
        (".", AppOptions()),
        ("logs", AppOptions(ascii=True, color="256", mouse=False, run="r", host="h")),
        (demo_path(), AppOptions(mouse=True, demo=True)),
    ]


def test_reports_take_the_demo_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "overview", "demo", "--format", "json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out)["environment"]["simulated"] is True


def test_the_demo_lies_beside_its_package() -> None:
    path = Path(demo_path())
    assert path.name == "demo.xplane.pb.gz" and (path.parent / "__init__.py").is_file()


# --- doctor, version, help


def test_doctor_is_fit_for_pasting(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm\x1b[31m")
    monkeypatch.setenv("TMUX", "/tmp/tmux-1000/secret")
    monkeypatch.setenv("SSH_CONNECTION", "203.0.113.9 1 2 3")
    assert cli.main(["doctor"]) == EXIT_OK
    out, err = capsys.readouterr()
    assert err == ""
    for word in ("python", "textual", "numpy", "protobuf", "grpcio", "in use", "compiled", "TERM", "COLORTERM", "SSH"):
        assert f"  {word} " in out
    assert "secret" not in out and "203.0.113.9" not in out and "\x1b" not in out


def test_doctor_survives_a_core_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    result = run("doctor", TPUPROF_CORE="fortran")
    assert result.returncode == EXIT_OK
    assert b"none: TPUPROF_CORE=fortran" in result.stdout


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_import_next_to_nothing(flag: str) -> None:
    result = run(flag, program=MODULES)
    assert result.returncode == EXIT_OK and result.stdout.startswith((b"usage: tpuprof-tui", b"tpuprof-tui "))
    modules = set(result.stderr.decode().split())
    assert "tpuprof.tui.cli.main" in modules
    assert not modules & {"numpy", "google.protobuf", "textual", "rich", "grpc"}


@pytest.mark.parametrize(
    "command", ["overview", "input", "inference", "timeline", "perfetto", "runs", "doctor", "no terminal"]
)
def test_headless_commands_import_no_screen_and_no_network(command: str, logdir: Path) -> None:
    perfetto = ["report", "timeline", str(logdir), "--format", "perfetto", "--from", "0"]
    special = {"doctor": ["doctor"], "no terminal": [str(logdir)], "perfetto": perfetto}
    args = special.get(command, ["report", command, str(logdir)])
    result = run(*args, program=MODULES)
    assert result.returncode == EXIT_OK and result.stdout
    modules = set(result.stderr.decode().split())
    assert "tpuprof.tui.cli.main" in modules
    assert not modules & {"textual", "rich", "grpc"}
    assert command != "runs" or "numpy" not in modules


# --- pipes and processes


def test_a_reader_that_stops_reading_is_no_error(logdir: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-c", PROGRAM, "report", "overview", str(logdir), "--format", "json"]
    try:
        result = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write_end)
    assert (result.returncode, result.stderr) == (EXIT_OK, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_plain_error(logdir: Path) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-c", PROGRAM, "report", "overview", str(logdir)]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == EXIT_USAGE
    sentence, hint = result.stderr.decode().splitlines()
    assert sentence == "Standard output can't be written: no space left on device." and hint.startswith("try: ")


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


def test_exit_codes_of_processes(logdir: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.xplane.pb"
    bad.write_bytes(gzip.compress(b"\xff" * 300))
    codes = [
        run("report", "overview", str(logdir)).returncode,
        run("report", "nothing", str(logdir)).returncode,
        run("report", "overview", str(tmp_path / "nowhere")).returncode,
        run("report", "overview", str(bad)).returncode,
    ]
    assert codes == [EXIT_OK, EXIT_USAGE, EXIT_NOT_FOUND, EXIT_UNREADABLE]


# --- progress


def test_progress_is_one_line_now_and_then_and_goes_away() -> None:
    stream, now = io.StringIO(), [0.0]
    progress = ProgressLine(stream, lambda: now[0], width=60)
    for tick in range(1001):
        now[0] = tick / 1000  # a second in a thousand calls
        progress(Progress("host\x1b0", 1, 4, tick, 1000, tick * 1000))
    written = stream.getvalue()
    assert written.count("\r\x1b[K") == 8  # not before 0.3 s, then every 0.1 s
    assert "reading host␛0 (2 of 4): 30 %, 300,000 events" in written
    assert all(len(part) < 60 for part in written.split("\r\x1b[K"))
    progress.clear()
    assert stream.getvalue() == written + "\r\x1b[K"
    progress.clear()
    assert stream.getvalue() == written + "\r\x1b[K"


def test_progress_is_shown_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], logdir: Path
) -> None:
    monkeypatch.setattr("tpuprof.tui.report.progress.FIRST_AFTER_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    assert cli.main(["report", "overview", str(logdir)]) == EXIT_OK
    assert capsys.readouterr().err == ""
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    assert cli.main(["report", "overview", str(logdir)]) == EXIT_OK
    assert "reading host0" in err.getvalue() and err.getvalue().endswith("\r\x1b[K")


# --- memory


def test_memory_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "memory", "demo", "--format", "json", "--module", "jit_eval_step", "--limit", "1"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["module"].startswith("jit_eval_step(")
    assert document["run"]["hosts"] == ["demo"]
    assert cli.main(["report", "memory-profile", "demo", "--format", "json"]) == EXIT_OK
    document = json.loads(capsys.readouterr().out)
    assert [allocator["id"] for allocator in document["allocators"]] == ["0", "1", "2", "3"]
    sentence, hint = expect_error(capsys, ["report", "memory", "demo", "--module", "jit_step"], EXIT_NOT_FOUND)
    assert sentence == "There is no module jit_step."
    assert "jit_train_step(" in hint


def test_memory_of_a_profile_without_hlo(capsys: pytest.CaptureFixture[str], logdir: Path) -> None:
    assert cli.main(["report", "memory", str(logdir), "--format", "csv"]) == EXIT_OK
    out, err = capsys.readouterr()
    assert out.startswith("name,category,size_bytes")
    assert "no compiled HLO" in err
    assert cli.main(["report", "memory-profile", str(logdir), "--format", "csv"]) == EXIT_OK
    assert "no events of the host" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["memory"], ["report", "memory"]])
def test_memory_of_hlo_files(capsys: pytest.CaptureFixture[str], tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "jit_eval_step(5).hlo_proto.pb").write_bytes(Module("jit_eval_step").proto_bytes)
    before = content(tmp_path)
    assert cli.main([*command, str(tmp_path), "--device", "v5e"]) == EXIT_OK
    out = capsys.readouterr().out
    assert "jit_eval_step(5)" in out
    assert "capacity 15.75 GiB" in out
    assert cli.main([*command, str(tmp_path)]) == EXIT_OK
    assert "capacity unknown" in capsys.readouterr().out
    assert content(tmp_path) == before
    expect_error(capsys, [*command, str(tmp_path), "--device", "h100"], EXIT_USAGE)
    expect_error(capsys, [*command, str(tmp_path / "nowhere")], EXIT_NOT_FOUND)
    (tmp_path / "cut.hlo.pb").write_bytes(Module("jit_eval_step").proto_bytes[:5000])
    sentence, _ = expect_error(capsys, ["report", *command[-1:], str(tmp_path / "cut.hlo.pb")], EXIT_UNREADABLE)
    assert "is damaged or no HLO module" in sentence
    sentence, _ = expect_error(capsys, ["report", "memory-profile", str(tmp_path)], EXIT_NOT_FOUND)
    assert "nothing of memory over time" in sentence


def test_the_memory_command_opens_the_tab(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, AppOptions]] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def run_app(path: str, options: AppOptions) -> int:
        opened.append((path, options))
        return 0

    monkeypatch.setattr("tpuprof.tui.app.start.run_app", run_app)
    assert cli.main(["memory", "demo"]) == EXIT_OK
    assert opened[0][0] == demo_path()
    assert (opened[0][1].tab, opened[0][1].only_hlo) == (4, False)


def test_memory_reports_load_no_textual(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "Ran out of memory in memory space hbm. Used 20.00G of 15.75G hbm. Exceeded hbm capacity by 4.25G.\n"
    )
    for args in (["report", "memory", "demo"], ["report", "memory-profile", "demo"], ["oom", str(log), "--json"]):
        result = run(*args, program=MODULES)
        assert result.returncode == EXIT_OK, result.stderr
        names = result.stderr.decode().split()
        assert not [name for name in names if name.split(".")[0] in ("textual", "grpc")]


def test_oom(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "Ran out of memory in memory space hbm. Used 20.00G of 15.75G hbm. Exceeded hbm capacity by 4.25G.\n"
    )
    assert cli.main(["oom", str(log), "--json"]) == EXIT_OK
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    assert report["used_bytes"] == 20 << 30
    log.write_text("all is well\n")
    expect_error(capsys, ["oom", str(log)], EXIT_NOT_FOUND)
    expect_error(capsys, ["oom", str(tmp_path / "nowhere")], EXIT_NOT_FOUND)
    expect_error(capsys, ["oom"], EXIT_USAGE)
