"""The doctor: what it says of an installation, a terminal and a logdir, and what it keeps to itself."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.parsers.session.test_run_facts import MS, old_folder, old_gpu, training, written
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.session import run_facts as facts_module
from tpuprof.parsers.session.run_facts import RunFacts
from tpuprof.tui.cli.doctor import (
    MOST_RUNS,
    WIDTH,
    doctor_parser,
    doctor_report,
    fenced,
    lacking,
    run_doctor,
    without_home,
)
from tpuprof.tui.demo import demo_path

ENVIRONMENT = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": "/home/somebody"}


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders are those of this process, and not of the environment that the doctor is told of."""
    monkeypatch.setenv("HOME", ENVIRONMENT["HOME"])
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)


def logdir_lines(path: Path | str, environment: Mapping[str, str] = ENVIRONMENT) -> str:
    text = doctor_text(environment, str(path))
    content = text.split("\nLogdir ", 1)[1]
    assert all(len(line) <= WIDTH and line.isprintable() for line in content.splitlines()[1:])
    return " ".join(content.split())


# --- installation and terminal


def doctor_text(env: Mapping[str, str], path: str | None = None, markdown: bool = False) -> str:
    return doctor_report(env, path, markdown)[0]


def test_sections_without_a_path() -> None:
    text = doctor_text(ENVIRONMENT)
    titles = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert titles == ["Installed", "Decoding core", "Terminal", "Folders", "Config file"]
    for name in ("tpuprof-tui", "python", "textual", "rich", "numpy", "protobuf", "grpcio", "fsspec", "gcsfs"):
        assert f"  {name:<12} " in text
    assert "TERM         'xterm-256color'" in text and "colours      256" in text


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"TMUX": "/tmp/tmux-1/secret,1,0"}, ("inside       tmux", "tmux's buffer, the terminal (OSC 52), ~/.local")),
        ({"STY": "1.pts"}, ("inside       screen",)),
        ({"SSH_TTY": "/dev/pts/7"}, ("SSH          yes", "mouse        off")),
        ({"LANG": "C"}, ("characters   ASCII",)),
        ({"NO_COLOR": "1"}, ("colours      mono",)),
    ],
)
def test_the_terminal(extra: dict[str, str], words: tuple[str, ...]) -> None:
    text = doctor_text({**ENVIRONMENT, **extra})
    for word in words:
        assert word in text
    assert "secret" not in text and "pts" not in text


def test_a_closed_standard_input_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert "screen       Input or output is not a terminal." in doctor_text(ENVIRONMENT)


def test_folders_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = tmp_path / "cache" / "tpuprof-tui" / "remote"
    copies.mkdir(parents=True)
    (copies / "one").write_bytes(bytes(1500))
    (copies / "two").write_bytes(bytes(500))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = doctor_text({**ENVIRONMENT, "HOME": str(tmp_path)})
    assert "cache        ~/cache/tpuprof-tui, 2.00 KB in 2 files" in text
    assert "state        ~/.local/state/tpuprof-tui, not there" in text


# --- what is not for others


def test_the_home_folder_is_shortened(tmp_path: Path) -> None:
    home = tmp_path / "jane.doe"
    run = written(home / "logs", host0=b"")
    link = tmp_path / "link"
    link.symlink_to(home)
    for named in (home, link):
        text = doctor_text({**ENVIRONMENT, "HOME": str(named)}, str(home / "logs"))
        assert "jane.doe" not in text and "Logdir ~/logs" in text
    assert run.problems[0].code == "empty_file"


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("/home/a/x and /home/a", "~/x and ~"),
        ("/home/ab/x", "/home/ab/x"),
        ("/home/a.old/x", "/home/a.old/x"),
        ("'/home/a'", "'~'"),
    ],
)
def test_only_the_home_folder_is(text: str, short: str) -> None:
    assert without_home(text, {"HOME": "/home/a"}) == short
    for home in ("", "/", "relative"):
        assert without_home(text, {"HOME": home}) == text
    assert without_home(text, {}) == text


@pytest.mark.parametrize(("text", "fence"), [("a\n", "```"), ("``` b\n", "````"), ("`````\n", "``````")])
def test_the_fence_is_longer_than_what_is_within(text: str, fence: str) -> None:
    assert fenced(text) == f"{fence}text\n{text}{fence}\n"
    assert doctor_text(ENVIRONMENT, None, True) == fenced(doctor_text(ENVIRONMENT))


def test_hostile_names_do_no_harm(tmp_path: Path) -> None:
    space = training()
    space.planes[0].stats[0].str_value = b"TPU\x1b[31m\nv9"
    run = written(tmp_path, **{"host\x1b[31m": space})
    text = doctor_text({**ENVIRONMENT, "TERM": "a\x1bb"}, run.path)
    assert "\x1b" not in text and "TPU␛[31m␊v9" in text


# --- the logdir


def test_a_training_run(tmp_path: Path) -> None:
    written(tmp_path, host0=training(), host1=training())
    words = logdir_lines(tmp_path)
    for part in (
        "holds 1 run, 2 profiles",
        "device TPU test, 2 cores on the first of the hosts",
        "steps 9.00 ms, median of 5 steps, marked",
        "modules jit_step",
        "profiled 2.00 s",
        "HLO compiled modules are in the profile",
        "host tracer on (annotations",
    ):
        assert part in words
    assert "lacks" not in words and "problem" not in words


def test_what_is_lacking() -> None:
    bare = RunFacts(host="h", core_count=2, has_hlo=False, host_tracing="off", unknown={"step_time_ps": "no line"})
    assert [line.split(":")[0].split(" (")[0] for line in lacking(bare)] == [
        "steps",
        "compiled HLO",
        "host events",
        "start and stop of the capture",
    ]
    inferred = RunFacts(core_count=1, step_time_ps=MS, step_source="modules", has_hlo=True, duration_ps=1)
    assert [line.split(":")[0] for line in lacking(inferred)] == ["step markers"]
    assert lacking(RunFacts(core_count=0, duration_ps=1))[0].startswith("device events")
    assert lacking(RunFacts(core_count=1, step_time_ps=MS, step_source="steps", has_hlo=True, duration_ps=1)) == []


def test_a_run_of_tensorflow_2_3(tmp_path: Path) -> None:
    old_folder(tmp_path, old_gpu())
    words = logdir_lines(tmp_path)
    assert "device GPU, 1 GPU on the host" in words
    assert "beside pages that TensorFlow computed: 5, such as worker0.input_pipeline.pb" in words
    assert "beside traces for a viewer: 1, such as worker0.trace.json.gz" in words
    assert "lacks start and stop of the capture: older profilers record none" in words


def test_problems_are_there_but_bounded(tmp_path: Path) -> None:
    whole = training().SerializeToString()
    written(tmp_path, **{f"host{at}": b"" for at in range(8)}, whole=whole[:-20])
    words = logdir_lines(tmp_path)
    assert words.count(" holds 0 bytes") == 5 and "problem and 4 more" in words


def test_a_run_without_anything_readable(tmp_path: Path) -> None:
    written(tmp_path / "a", host0=b"")
    written(tmp_path / "b", host0=b"no profile")
    words = logdir_lines(tmp_path)
    assert "1 run without anything readable" in words and "hosts none that can be read, 0 B" in words
    assert "content unknown: " in words and "is not a profile" in words


def test_many_runs_are_counted(tmp_path: Path) -> None:
    run = written(tmp_path, host0=XSpace(hostnames=[b"h"]))
    for at in range(MOST_RUNS + 2):
        shutil.copytree(run.path, f"{run.path}_{at}")
    assert doctor_text(ENVIRONMENT, str(tmp_path)).endswith("\n  and 3 older runs\n")


def test_without_numpy_the_rest_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, host0=training())

    def missing(*_: object) -> RunFacts:
        raise ImportError("No module named numpy")

    monkeypatch.setattr(facts_module, "run_facts", missing)
    assert "content not looked at: No module named numpy" in logdir_lines(tmp_path)


# --- the command


def test_the_exit_code_tells_of_nothing_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, exit_code = doctor_report(ENVIRONMENT, str(tmp_path / "nowhere"))
    assert exit_code == EXIT_NOT_FOUND and "Installed" in text and "nothing      " in text and "  try  " in text
    arguments = doctor_parser().parse_args([str(tmp_path / "nowhere"), "--md"])
    assert run_doctor(arguments) == EXIT_NOT_FOUND
    assert capsys.readouterr().out.startswith("```text\nInstalled\n")
    assert run_doctor(argparse.Namespace(path=demo_path(), md=False)) == EXIT_OK
    assert "SIMULATED, as the profile says of itself" in capsys.readouterr().out
    assert run_doctor(doctor_parser().parse_args([])) == EXIT_OK
    assert "Logdir" not in capsys.readouterr().out
