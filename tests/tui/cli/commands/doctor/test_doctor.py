"""The doctor: what it says of an installation, a terminal and a logdir, and what it keeps to itself."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from tests.parsers.session.test_run_facts import MS, old_folder, old_gpu, training, written
from tests.support.golden import check_golden
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.session import run_facts as facts_module
from tpuprof.parsers.session.run_facts import RunFacts
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.commands.doctor import command, machine
from tpuprof.tui.cli.commands.doctor.command import doctor_report
from tpuprof.tui.cli.commands.doctor.content import MOST_RUNS, lacking
from tpuprof.tui.cli.commands.doctor.parts import WIDTH, DoctorLine, Mask, fenced
from tpuprof.tui.demo import demo_path

ENVIRONMENT = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": "/home/somebody"}


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders are those of this process, and not of the environment that the doctor is given."""
    monkeypatch.setenv("HOME", ENVIRONMENT["HOME"])
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


def doctor_text(env: Mapping[str, str], path: str | None = None, form: str = "text") -> str:
    return doctor_report(env, path, form=form)[0]


def told(env: Mapping[str, str] = ENVIRONMENT, path: str | None = None) -> dict[str, Any]:
    """What JSON has."""
    found: dict[str, Any] = json.loads(doctor_report(env, path, "json")[0])
    return found


def logdir_lines(path: Path | str, environment: Mapping[str, str] = ENVIRONMENT) -> str:
    text = doctor_text(environment, str(path))
    assert all(len(line) <= WIDTH and line.isprintable() for line in text.splitlines())
    return " ".join(text.split("\nLogdir ", 1)[1].split())


def words_of(text: str) -> str:
    return " ".join(text.split())


# --- installation


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_nothing_wrong_is_said_first(form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machine, "core", lambda: (DoctorLine("decoding core", "compiled"), "c"))
    text = doctor_text(ENVIRONMENT, form=form)
    assert '"problems": []' in text if form == "json" else ": nothing is wrong\n" in text
    assert "\n!" not in text


def test_a_core_that_is_slow_or_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpuprof.parsers.formats.xspace.core.api.core_name", lambda: "python")
    monkeypatch.setitem(sys.modules, "tpuprof.parsers.formats.xspace.core._core", None)
    text = doctor_text(ENVIRONMENT)
    assert "! decoding core Python, some 50 times slower than the compiled one: " in text
    assert "1 problem, marked with !" in text
    assert machine.core()[1] == "python"
    monkeypatch.setitem(sys.modules, "tpuprof.parsers.formats.xspace.core.api", None)
    assert "! decoding core none: " in doctor_text(ENVIRONMENT)


def test_extras_are_those_of_the_package() -> None:
    """All that are for users, with their packages."""
    text = (Path(__file__).parents[5] / "pyproject.toml").read_text()
    listed = text.split("[project.optional-dependencies]")[1].split("[project.scripts]")[0]
    offered = dict(re.findall(r"^(\w+) = \[(.*)\]", listed, re.MULTILINE))
    for_users = {name: words for name, words in offered.items() if name not in ("test", "xprof", "jax", "dev")}
    assert for_users.keys() == machine.EXTRAS.keys()
    for name, (packages, _) in machine.EXTRAS.items():
        assert all(package in for_users[name] for package in packages)


# --- the terminal


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"TMUX": "/tmp/tmux-1/secret,1,0"}, ("inside tmux", "tmux's buffer, the terminal (OSC 52), ~/.local")),
        ({"STY": "1.pts"}, ("inside screen", "mouse off, since this is GNU screen")),
        ({"SSH_TTY": "/dev/pts/7"}, ("inside no multiplexer, over SSH", "mouse off, since this is SSH")),
        ({"LANG": "C"}, ("characters ASCII: the locale 'C' is not UTF-8; try LANG=C.UTF-8",)),
        ({"LANG": ""}, ("characters ASCII: no locale is set",)),
        ({"TERM": "linux"}, ("characters ASCII: the Linux console",)),
        ({"NO_COLOR": "1"}, ("colours none: only bold and reverse, on the terminal's background", "NO_COLOR='1'")),
        ({"COLORTERM": "truecolor", "COLORFGBG": "0;15"}, ("colours 16 million, on a light background",)),
        ({}, ("colours 256", "TERM='xterm-256color', LANG='C.UTF-8'")),
    ],
)
def test_the_terminal(extra: dict[str, str], words: tuple[str, ...]) -> None:
    text = words_of(doctor_text({**ENVIRONMENT, **extra}))
    for word in words:
        assert word in text
    everything = text + json.dumps(told({**ENVIRONMENT, **extra}))
    assert "secret" not in everything and "pts" not in everything


@pytest.mark.parametrize(
    ("columns", "lines", "term", "row"),
    [
        (120, 40, "xterm", "  screen        can be drawn, 120x40"),
        (59, 40, "xterm", "! screen        can be drawn, 59x40, too small: the screen needs 60x15"),
        (0, 0, "xterm", "  screen        can be drawn, size unknown"),
        (80, 24, "dumb", "! screen        The terminal can't place text (TERM is dumb). Reports are"),
    ],
)
def test_a_screen(columns: int, lines: int, term: str, row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "on_terminal", lambda: True)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_, **__: os.terminal_size((columns, lines)))
    env = {**ENVIRONMENT, "TERM": term}
    assert row in doctor_text(env)
    name, text = told(env)["terminal"]["rows"][0]
    assert name == "screen" and text.startswith(row[16:])


def test_a_closed_standard_input_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert "  screen        Input or output is not a terminal." in doctor_text(ENVIRONMENT)


# --- what is kept


def test_the_cache_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = tmp_path / "cache" / "tpuprof-tui" / "remote"
    copies.mkdir(parents=True)
    (copies / "one").write_bytes(bytes(1500))
    (copies / "two").write_bytes(bytes(500))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    env = {**ENVIRONMENT, "HOME": str(tmp_path)}
    text = words_of(doctor_text(env))
    assert "folder ~/cache/tpuprof-tui, can be written, " in text and " free summaries nothing; at most 1.00 GB" in text
    assert "remote copies 2.00 KB in 2 files; at most 20.0 GB" in text
    assert "archives nothing; at most 20.0 GB state ~/.local/state/tpuprof-tui, nothing" in text
    assert len(list(copies.iterdir())) == 2
    monkeypatch.setattr(machine, "_MOST_FILES", 1)
    assert "remote copies more than 2.00 KB in 1 files" in words_of(doctor_text(env))


def test_a_cache_that_can_not_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(dir: str) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    monkeypatch.setenv("TPUPROF_CACHE_BYTES", "much")
    text, exit_code = doctor_report(ENVIRONMENT)
    assert "can't be written: no space left on device" in words_of(text) and "\n! folder " in text
    assert "! remote copies TPUPROF_CACHE_BYTES is much, which is not a number of bytes." in text
    assert exit_code == EXIT_USAGE
    monkeypatch.setenv("HOME", "relative")
    assert "can't be written: there is no home folder" in words_of(doctor_text(ENVIRONMENT))


def test_the_variables() -> None:
    text = words_of(doctor_text({**ENVIRONMENT, "TPUPROF_THEME": "light", "TPUPROF_CACHE": "off"}))
    assert "variables TPUPROF_THEME='light', TPUPROF_CACHE='off'" in text
    assert "summaries nothing; off, by TPUPROF_CACHE" in text
    assert "summaries nothing; at most 2.00 MB" in words_of(doctor_text({**ENVIRONMENT, "TPUPROF_CACHE": "2 MB"}))


# --- what is not for others


def test_the_home_folder_is_shortened(tmp_path: Path) -> None:
    home = tmp_path / "jane.doe"
    run = written(home / "logs", host0=b"")
    link = tmp_path / "link"
    link.symlink_to(home)
    for named in (home, link):
        env = {**ENVIRONMENT, "HOME": str(named)}
        text = doctor_text(env, str(home / "logs"))
        assert "jane.doe" not in text and "Logdir ~/logs" in text
        assert "jane.doe" not in json.dumps(told(env, str(home / "logs")))
    assert run.problems[0].code == "empty_file"


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("/home/a/x and /home/a", "~/x and ~"),
        ("/home/ab/x", "/home/ab/x"),
        ("/home/a.old/x", "/home/a.old/x"),
        ("'/home/a'", "'~'"),
        ("/data/jane/logs", "/data/<user>/logs"),
        ("/data/janet/jane.d", "/data/janet/jane.d"),
        ("jane", "jane"),
        ("on node-7 and node-77", "on <this machine> and node-77"),
        ("node-7.xplane.pb", "<this machine>.xplane.pb"),
        ("s3://key:word@bucket/x and ?token=word", "s3://bucket/x and ?token=…"),
    ],
)
def test_people_machines_and_secrets_are_taken_out(text: str, short: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "node-7")
    mask = Mask({"HOME": "/home/a", "USER": "jane", "LOGNAME": "root"})
    assert mask.text(text) == short
    assert mask.value([{text: (text, 1, None)}]) == [{short: [short, 1, None]}]
    for home in ("", "/", "relative"):
        assert Mask({"HOME": home}).text("/home/a/x of 'a'") == Mask({}).text("/home/a/x of 'a'") == "/home/a/x of 'a'"


@pytest.mark.parametrize(("text", "fence"), [("a\n", "```"), ("``` b\n", "````"), ("`````\n", "``````")])
def test_the_fence_is_longer_than_what_is_within(text: str, fence: str) -> None:
    assert fenced(text) == f"{fence}text\n{text}{fence}\n"
    assert doctor_text(ENVIRONMENT, form="md") == fenced(doctor_text(ENVIRONMENT))


def test_hostile_names_do_no_harm(tmp_path: Path) -> None:
    space = training()
    space.planes[0].stats[0].str_value = b"TPU\x1b[31m\nv9"
    run = written(tmp_path, **{"host\x1b[31m": space})
    text = doctor_text({**ENVIRONMENT, "TERM": "a\x1bb"}, run.path)
    assert "\x1b" not in text and "TPU␛[31m␊v9" in text


# --- the logdir


def test_what_is_lacking() -> None:
    bare = RunFacts(host="h", core_count=2, has_hlo=False, host_tracing="off", unknown={"core_step_ps": "no line"})
    assert [line.split(":")[0].split(" (")[0] for line in lacking(bare)] == [
        "steps",
        "compiled HLO",
        "host events",
        "start and stop of the capture",
    ]
    inferred = RunFacts(core_count=1, core_step_ps=MS, step_source="modules", has_hlo=True, duration_ps=1)
    assert [line.split(":")[0] for line in lacking(inferred)] == ["step markers"]
    assert lacking(RunFacts(core_count=0, duration_ps=1))[0].startswith("device events")
    assert lacking(RunFacts(core_count=1, core_step_ps=MS, step_source="steps", has_hlo=True, duration_ps=1)) == []


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
    assert "1 run without readable files" in words and "hosts none that can be read, 0 B" in words
    assert "content unknown: see the problem" in words and words.count("is not a profile") == 1
    found = told(ENVIRONMENT, str(tmp_path))["logdir"]
    assert (found["run_count"], found["unreadable_run_count"], len(found["runs"])) == (2, 1, 2)
    assert {problem["code"] for run in found["runs"] for problem in run["problems"]} >= {"empty_file"}
    assert len(told(ENVIRONMENT, str(tmp_path))["problems"]) == 2


def test_many_runs_are_counted(tmp_path: Path) -> None:
    run = written(tmp_path, host0=XSpace(hostnames=[b"h"]))
    for at in range(MOST_RUNS + 2):
        shutil.copytree(run.path, f"{run.path}_{at}")
    assert f"described the newest {MOST_RUNS} runs; 3 are older" in logdir_lines(tmp_path)
    assert len(told(ENVIRONMENT, str(tmp_path))["logdir"]["runs"]) == MOST_RUNS


def test_without_numpy_the_rest_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, host0=training())

    def missing(*_: object) -> RunFacts:
        raise ImportError("No module named numpy")

    monkeypatch.setattr(facts_module, "run_facts", missing)
    assert "content not read: No module named numpy" in logdir_lines(tmp_path)
    (run,) = told(ENVIRONMENT, str(tmp_path))["logdir"]["runs"]
    assert run["unknown"] == {"content": "No module named numpy"}


# --- the command


def test_the_exit_code_tells_of_nothing_found(tmp_path: Path, call: Call) -> None:
    nowhere = tmp_path / "nowhere"
    text = call("doctor", nowhere, "--md", code=EXIT_NOT_FOUND).out
    assert text.startswith(f"```text\n{PROGRAM} ") and "! nothing " in text and "  try  " in text
    found = told(path=str(nowhere))["logdir"]
    assert found["kind"] is None and found["unknown"]["kind"] and found["hint"]
    for path in (demo_path(), "demo"):
        assert "SIMULATED, according to the profile" in call("doctor", path).out
    assert "Logdir" not in call("doctor").out
    (run,) = call.json("doctor", "demo", "--json")["logdir"]["runs"]
    assert run["is_simulated"] and run["step_count"] == 20 and run["lacks"] == []
    assert run["versions"] is None and run["unknown"]["versions"]


def test_the_whole_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As people paste it: one thing wrong in most parts, on a machine where everything is as it is written here."""
    env = {**ENVIRONMENT, "HOME": str(tmp_path), "USER": "jane", "TMUX": "/tmp/tmux-7/default,1,0"}
    env["TPUPROF_THEME"] = "pink"
    monkeypatch.setenv("HOME", str(tmp_path))
    system = SimpleNamespace(system="Linux", release="6.8.0-1015-gcp", machine="x86_64")
    monkeypatch.setattr(platform, "uname", lambda: system)
    monkeypatch.setattr(platform, "node", lambda: "node-7")
    monkeypatch.setattr(platform, "python_version", lambda: "3.12.7")
    monkeypatch.setattr(sys, "executable", f"{tmp_path}/venv/bin/python")
    monkeypatch.setattr(os, "cpu_count", lambda: 224)
    monkeypatch.setattr(machine, "available_cores", lambda: 8)
    monkeypatch.setattr(machine, "version_of", lambda name: "not installed" if name in MISSING else "2.1.0")
    monkeypatch.setattr(command, "version_of", lambda _: "0.1.0")
    monkeypatch.setattr(machine, "core", lambda: (DoctorLine("decoding core", "compiled"), "c"))
    monkeypatch.setattr(machine, "on_terminal", lambda: True)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_, **__: os.terminal_size((120, 40)))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=41_000_000_000))
    run = written(tmp_path / "logs", host0=training(), host1=training(), host2=b"")
    for host in run.hosts:
        os.utime(host.path, (1_700_000_000, 1_700_000_000))
    text, exit_code = doctor_report(env, str(tmp_path / "logs"))
    assert exit_code == EXIT_USAGE
    check_golden(Path(__file__).parent / "golden" / "doctor.txt", text)


MISSING = ("gcsfs", "s3fs", "adlfs")
