"""The command `report`: pages, files, the timeline, memory."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.demo.profile.hlo_module import Module
from tests.support.build import host_bytes, write_run
from tests.tui.cli.calls import RUN, Call, Terminal, content
from tpuprof.parsers.base.errors import (
    EXIT_INTERRUPTED,
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_UNREADABLE,
    EXIT_USAGE,
    ProfileError,
)
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.cli import main as cli
from tpuprof.tui.demo import demo_path

OLDER = "2025_01_01_00_00_00"

# --- reports


def test_run_and_host_are_chosen(call: Call, logdir: Path) -> None:
    write_run(logdir, OLDER, host0=host_bytes(400))
    older = call.json("report", "overview", logdir, "--run", "2025", "--format", "json")
    assert older["steps"][0]["duration_ms"] == 4e-7
    document = call.json("report", "overview", logdir, "--host", "host0", "--format", "json")
    assert document["run"] == {**document["run"], "name": RUN, "hosts": ["host0"]}
    for words, names in (([], [RUN, OLDER]), (["--limit", "1"], [RUN])):
        runs = call.json("report", "runs", logdir, "--format", "json", *words)["runs"]
        assert [item["name"] for item in runs] == names
    (facts,) = call.json("report", "runs", logdir, "--format", "json", "--limit", "1", "--facts")["runs"]
    assert facts["name"] == RUN and facts["core_step_ps"] > 0
    assert cli.main(["report", "overview", str(logdir), "--facts"]) == EXIT_USAGE
    assert cli.main(["report", "runs", str(logdir), "--host", "host0"]) == EXIT_USAGE


# --- files


def test_output_goes_into_a_file_at_once(call: Call, logdir: Path, tmp_path: Path) -> None:
    before = content(logdir)
    file = tmp_path / "report.json"
    file.write_text("old")
    file.chmod(0o640)
    command = ["report", "overview", str(logdir), "--format", "json", "--output"]
    assert call(*command, file) == ("", "")
    assert json.loads(file.read_text())["schema"] == "tpuprof.overview/1"
    assert file.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "report.json"]
    assert content(logdir) == before
    assert call(*command, "-").out == file.read_text()


def test_a_link_is_followed_and_a_device_written_into(logdir: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    link.symlink_to(target)
    command = ["report", "runs", str(logdir), "--format", "json", "--output"]
    assert cli.main([*command, str(link)]) == EXIT_OK
    assert link.is_symlink() and json.loads(target.read_text())["schema"] == "tpuprof.runs/1"
    assert cli.main([*command, os.devnull]) == EXIT_OK
    assert Path(os.devnull).is_char_device()


def test_nothing_is_written_among_profiles(call: Call, logdir: Path, tmp_path: Path) -> None:
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
        tmp_path / "new.xplane.pb",
        alias,
        folder,
        tmp_path / "nowhere" / "report.json",
    ):
        call.error(EXIT_USAGE, "report", "overview", logdir, "--output", file)
    call.error(EXIT_USAGE, "report", "overview", odd, "--output", odd)
    call.error(EXIT_USAGE, "report", "overview", loose, "--output", loose / "report.json")
    call.error(EXIT_USAGE, "report", "overview", logdir, "--output", "")
    assert content(tmp_path) == before


def test_a_folder_that_happens_to_hold_another_profile_takes_a_report(call: Call, logdir: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.xplane.pb"
    other.write_bytes(host_bytes())
    call("report", "overview", logdir, "--output", tmp_path / "report.json", "--format", "json")
    assert json.loads((tmp_path / "report.json").read_text())["schema"] == "tpuprof.overview/1"
    assert other.read_bytes() == host_bytes()


def test_runs_that_cannot_be_read_show_in_the_exit_code(call: Call, logdir: Path) -> None:
    """What could be read is listed all the same."""
    call("report", "runs", logdir)
    write_run(logdir, OLDER, host0=b"")
    listed = json.loads(call("report", "runs", logdir, "--format", "json", code=EXIT_UNREADABLE).out)["runs"]
    assert [len(run["hosts"]) for run in listed] == [2, 0]
    assert "0 bytes" in listed[1]["problems"][0]["sentence"]
    write_run(logdir, OLDER, host0=b"\n\x05no, it is none" * 9)
    call("report", "runs", logdir)  # nobody has looked into it
    assert "not a profile" in call("report", "runs", logdir, "--facts", "--format", "json", code=EXIT_UNREADABLE).out


def test_runs_that_would_take_too_much_or_fail_while_they_are_read_show_in_the_exit_code(
    call: Call, logdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("report", "runs", logdir, "--facts")
    large = logdir / "plugins" / "profile" / "2020_01_01_00_00_00"
    large.mkdir()
    (large / "host0.xplane.pb.gz").write_bytes(gzip.compress(b"\n\0" * 4_000_000))  # planes without end
    listed = call("report", "runs", logdir, "--facts", "--format", "json", code=EXIT_UNREADABLE).out
    assert "would take more than" in json.loads(listed)["unknown"]["runs[].device_type"]
    shutil.rmtree(large)
    call("report", "runs", logdir, "--facts")

    def refused(*_: object) -> Trace:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Trace, "open", refused)
    monkeypatch.setenv("XDG_CACHE_HOME", str(logdir / "another cache"))
    refusal = call("report", "runs", logdir, "--facts", "--format", "json", code=EXIT_UNREADABLE).out
    assert "host0.xplane.pb: permission denied" in refusal


def test_the_empty_file_that_xprof_leaves_beside_a_profile_is_no_module(call: Call, logdir: Path) -> None:
    before = call.json("report", "memory", logdir, "--format", "json")
    (logdir / "plugins" / "profile" / RUN / "NO_MODULE.hlo_proto.pb").write_bytes(b"")
    assert before["run"]["hosts"] == ["host0", "host1"]
    assert call.json("report", "memory", logdir, "--format", "json") == before


def test_a_file_that_cannot_be_written_leaves_nothing(
    call: Call, monkeypatch: pytest.MonkeyPatch, logdir: Path, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    sentence, _ = call.error(EXIT_USAGE, "report", "runs", logdir, "--output", tmp_path / "r.txt")
    assert "no space left" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


# --- the timeline


def test_an_interval_is_milliseconds(call: Call, logdir: Path) -> None:
    command = ["report", "timeline", str(logdir), "--host", "host0", "--format", "json"]
    for part, interval in (
        (["--from", "0.0000001", "--to", ".000000250"], (100, 250)),  # picoseconds
        (["--from", "0.00000010099"], (100, 400)),
        (["--to", "9."], (0, 9 * 10**9)),
    ):
        document = call.json(*command, *part)
        assert (document["interval"]["from_ps"], document["interval"]["to_ps"]) == interval


def test_no_such_track_or_host(call: Call, logdir: Path) -> None:
    sentence, hint = call.error(EXIT_NOT_FOUND, "report", "timeline", logdir, "--track", "ops\x1b")
    assert "ops␛" in sentence and "XLA Ops" in hint
    call.error(EXIT_NOT_FOUND, "report", "timeline", logdir, "--host", "host7")


def test_a_trace_for_perfetto(call: Call, logdir: Path, tmp_path: Path) -> None:
    command = ["report", "timeline", str(logdir), "--host", "host0", "--format", "perfetto"]
    whole, err = call(*command)
    assert err == "" and sum(event["ph"] == "X" for event in json.loads(whole)["traceEvents"]) >= 8
    assert len(call(*command, "--from", "0.0000001", "--to", "0.0000002").out) < len(whole)
    plain, packed, again = tmp_path / "a.json", tmp_path / "a.json.gz", tmp_path / "b.json.GZ"
    for file in (plain, packed, again):
        assert call(*command, "--output", file) == ("", "")
    assert plain.read_text() == gzip.decompress(packed.read_bytes()).decode() == whole
    assert packed.read_bytes() == again.read_bytes() and packed.read_bytes()[3:8] == bytes(5)  # no name, no time
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.json.gz", "b.json.GZ", "logs"]


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
    def breaks_off(hosts: object, metadata: object, write: Callable[[bytes], object], *_: object) -> None:
        write(b"{" * 1_000_000)
        raise error

    file = tmp_path / name
    file.write_text("old")
    monkeypatch.setattr("tpuprof.tui.pages.timeline.report.perfetto.write_hosts", breaks_off)
    code = cli.main(["report", "timeline", str(logdir), "--format", "perfetto", "--output", str(file)])
    assert code == (EXIT_INTERRUPTED if isinstance(error, KeyboardInterrupt) else EXIT_UNREADABLE)
    assert file.read_text() == "old" and sorted(path.name for path in tmp_path.iterdir()) == ["logs", name]


# --- memory


@pytest.mark.parametrize("command", [["memory"], ["report", "memory"]])
def test_memory_of_hlo_files(call: Call, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "jit_eval_step(5).hlo_proto.pb").write_bytes(Module("jit_eval_step").proto_bytes)
    before = content(tmp_path)
    out = call(*command, tmp_path, "--device", "v5e").out
    assert "jit_eval_step(5)" in out
    assert "capacity 15.75 GiB" in out
    assert "capacity unknown" in call(*command, tmp_path).out
    assert content(tmp_path) == before
    call.error(EXIT_USAGE, *command, tmp_path, "--device", "h100")
    call.error(EXIT_NOT_FOUND, *command, tmp_path / "nowhere")
    (tmp_path / "cut.hlo.pb").write_bytes(Module("jit_eval_step").proto_bytes[:5000])
    sentence, _ = call.error(EXIT_UNREADABLE, "report", *command[-1:], tmp_path / "cut.hlo.pb")
    assert "is damaged or not an HLO module" in sentence
    sentence, _ = call.error(EXIT_NOT_FOUND, "report", "memory-profile", tmp_path)
    assert "nothing about memory over time" in sentence


def test_the_memory_command_opens_the_tab(opened: list[tuple[str, AppOptions]]) -> None:
    assert cli.main(["memory", "demo"]) == EXIT_OK
    assert opened[0][0] == demo_path()
    assert (opened[0][1].tab, opened[0][1].only_hlo) == (4, False)


# --- one core


@pytest.mark.parametrize("name", ["/device:TPU:1", "demo /device:TPU:1", "Chip 1: TPU core 0"])
def test_a_core_by_the_names_that_the_timeline_prints(call: Call, name: str) -> None:
    whole = call("report", "overview", "demo", "--core", "demo:1", "--format", "json").out
    assert call("report", "overview", "demo", "--core", name, "--format", "json").out == whole
    part = ("timeline", "demo", "--from", "1000", "--to", "1001", "--limit", "1", "--format", "json", "--track")
    tracks = call.json("report", *part, name)["summary"]
    assert {(row["section"], row["core"]) for row in tracks} == {("Chip 1: TPU core 0", "demo:1")}
    assert call.json("report", *part, f"{name} / XLA Modules")["summary"][0]["track"] == "XLA Modules"
    assert tracks == call.json("report", *part, "demo:1")["summary"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["report", "ops", "demo", "--core", "Chip 9: TPU core 0"], EXIT_NOT_FOUND, "has no core Chip 9: TPU core 0."),
        (["report", "overview", "demo", "--core", "4"], EXIT_NOT_FOUND, "Host demo has no core 4: its cores are 0, 1"),
        (["report", "memory", "demo", "--core", "chip9"], EXIT_NOT_FOUND, "Host demo has no chip9"),
        (["report", "ops", "demo", "--core", "b:0"], EXIT_NOT_FOUND, "has no host b"),
        (["report", "ops", "demo", "--core", "x"], EXIT_USAGE, "'x' is not a core."),
        (["report", "hosts", "demo", "--core", "1"], EXIT_USAGE, "The page hosts compares all hosts of a run."),
        (["report", "cores", "demo", "--core", "1"], EXIT_USAGE, "The page cores compares all cores of a run."),
        (["diff", "demo", "demo", "--core", "1"], EXIT_USAGE, "same run"),
    ],
)
def test_a_core_that_can_not_be_shown(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert cli.main(arguments) == code
    out, err = capsys.readouterr()
    assert not out and words in err and "\ntry: " in err


def test_two_runs_are_compared_by_one_core(call: Call, logdir: Path) -> None:
    write_run(logdir, OLDER, host0=host_bytes(400))
    document = call.json("diff", logdir, "--core", "host0:0", "--json")
    assert "host0:0" in json.dumps(document)
    assert "Host host0 has no core 8" in call("diff", logdir, "--core", "host0:8", "--json", code=EXIT_NOT_FOUND).err
