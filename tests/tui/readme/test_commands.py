"""Every command of the README and the manual, run as it stands there: in a terminal, or here if it prints."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.imports import ROOT
from tests.tui.readme.commands import read
from tests.tui.readme.world import RUNS, build, make_programs
from tests.tui.terminal.pty.pty_app import PtyApp
from tpuprof.tui.cli import main as cli

README = read()
COMMANDS = README.commands()

NAMES = {"PAGE": "overview", "PATH": "logs", "LOG": "train.log", "A": f"logs/*/*/{RUNS[0]}", "B": f"logs/*/*/{RUNS[1]}"}
"""What stands for words that the README leaves to the reader."""

INSTEAD = {
    "tpuprof-tui report kernels PATH --dump DIR": (
        *("tpuprof-tui report kernels --help", "no run here has a kernel; tests/tui/pages/ops/kernels/test_dump.py"),
    ),
    "tpuprof-tui verify A B": ("tpuprof-tui verify --help", "the runs are the same, so that no promise is kept"),
    "tpuprof-tui verify A B --claim collective --format json": ("tpuprof-tui verify --help", "likewise"),
    "tpuprof-tui verify A B --expect 'no f32[8192,*]' --expect 'custom-call splash*' --expect 'while = 1'": (
        *("tpuprof-tui verify --help", "no run here has such a kernel; tests/tui/pages/commands/test_programs.py"),
    ),
    "python -m tests.insight": ("python -m tests.insight --help", "it simulates for minutes"),
    "python -m tests.parity.exam": ("python -m tests.parity.exam --help", "tests/parity/exam/test_exam.py asks it all"),
    "python -m tests.fuzz --minutes 60 --asan": ("python -m tests.fuzz --help", "it takes an hour"),
    "tpuprof-tui mcp --root ~/logs": ("tpuprof-tui mcp --root ~/logs < /dev/null", "it waits for a client"),
    **{
        f"tpuprof-tui try 'python train.py{words}": ("tpuprof-tui try --help", "there is no compiler here")
        for words in (
            " -b {b}' --set b=8,16,32 --module jit_train_step",
            " -b {b}' --set b=8..512 --module jit_train_step",
            "' --flag xla_tpu_scoped_vmem_limit_kib=16384,65536",
        )
    },
    "tpuprof-tui watch @workers:9012 >> slow.jsonl": ("tpuprof-tui watch --help", "it has no end"),
}
"""What runs instead of a command, and why; its help has to know the command's options."""

SEEN = {
    "tpuprof-tui ~/logs": "Why is it slow?",
    "tpuprof-tui ~/logs --no-cache": "Why is it slow?",
    "tpuprof-tui --latest ~/logs": "Why is it slow?",
    "tpuprof-tui gs://bucket/logs": "Why is it slow?",
    "ssh -t my-tpu tpuprof-tui logs": "Why is it slow?",
    "tpuprof-tui demo --ascii --color 16": "Why is it slow?",
    "tpuprof-tui capture localhost:9012": "STEP TIME",
    "tpuprof-tui capture @workers:9012 --no-open": "kB in",
    "tpuprof-tui capture --continuous on localhost:9012": "keeps its last seconds",
    "tpuprof-tui capture --snapshot localhost:9012": "STEP TIME",
    "tpuprof-tui oom train.log": "OVER BY 12.06 GiB",
    "python train.py 2>&1 | tpuprof-tui oom -": "OVER BY 12.06 GiB",
    "tpuprof-tui oom train.log memory.prof": "OVER BY 12.06 GiB",
    "tpuprof-tui oom train.log ~/xla_dump": "The dump is left out",  # in the place of the keys
    "tpuprof-tui memory ~/xla_dump --device v5e": "capacity 15.75 GiB",
    "tpuprof-tui memory.prof": "LIVE ARRAYS",
    "tpuprof-tui diff ~/logs": "DIFF",
    "tpuprof-tui diff ~/logs --fail-on-regression 5% --md": "noise",
    "tpuprof-tui doctor ~/logs": "searched",
    "tpuprof-tui doctor ~/logs --md": "```",
    "tpuprof-tui doctor": "decoding core",
    "tpuprof-tui report runs ~/logs": RUNS[0],
    "tpuprof-tui report runs --facts": "246 ms",
    "tpuprof-tui report overview ~/logs": "245.7 ms",
    "tpuprof-tui report findings ~/logs": "saves 36.8 ms per step",
    "tpuprof-tui report findings ~/logs --format json": '"schema": "tpuprof.findings/',
    "tpuprof-tui report overview ~/logs --format json": '"unknown": {',
    "tpuprof-tui report overview --describe": "step_time",
    "tpuprof-tui report framework-ops ~/logs": "dot_general",
    "tpuprof-tui report hosts ~/logs": "there is nothing to compare it with",
    'tpuprof-tui report timeline ~/logs --from 300 --to 400 --track "XLA Ops"': "fusion",
    "tpuprof-tui skill": "name: tpuprof-tui",
}
"""What a command has to show; of others it is enough that they end well."""

PRINTS = ("report", "query", "doctor", "skill")
OF_SHELL = re.compile(r"[|<>&*$]")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("home")
    build(made)
    return made


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """Addresses of what serves."""
    command = [sys.executable, "-m", "tests.tui.readme.world"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        process.communicate("")


def environment(home: Path) -> dict[str, str]:
    """A home folder of its own, with the stand-ins first among programs."""
    folders = {f"XDG_{kind}_HOME": str(home / f".{kind.lower()}") for kind in ("CACHE", "STATE")}
    return {"HOME": str(home), "PATH": f"{home / 'bin'}:{os.environ['PATH']}", **folders}


def to_run(command: str, request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """A command with its words and addresses filled in, and what it finds in the environment."""
    command = INSTEAD.get(command, (command,))[0]
    command = re.sub(r"(?<!\S)(?:PAGE|PATH|LOG|A|B)(?!\S)", lambda word: NAMES[word[0]], command)
    if command.startswith(("ssh", "gcloud")) or not re.search(r"localhost:|@workers|gs://", command):
        return command, {}
    served: Mapping[str, str] = request.getfixturevalue("servers")
    port = served["keeping" if "--snapshot" in command else "profiler"]
    command = command.replace("localhost:9012", f"127.0.0.1:{port}").replace("@workers:9012", f"@workers:{port}")
    command = command.replace("gs://bucket/logs", f"{served['web']}/host0.xplane.pb.gz")
    return command, {"TPU_WORKER_HOSTNAMES": "127.0.0.1"}


def needs_terminal(command: str) -> bool:
    """Whether it opens a screen, or is more than one call of ours."""
    program, *words = command.split()
    prints = bool(words) and (words[0] in PRINTS or not {"--md", "--json", "--format"}.isdisjoint(words))
    return program != "tpuprof-tui" or not prints or OF_SHELL.search(command) is not None


def print_here(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints, run in this process."""
    arguments = [os.path.expanduser(word) for word in shlex.split(command)[1:]]
    assert cli.main(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def is_settled(last_line: str, seen: str) -> bool:
    """Whether a screen is whole: its last line has the keys, or what is to be seen in their place."""
    return last_line.rstrip().endswith("quit") or (bool(seen) and seen in last_line)


def show_in_terminal(command: str, environ: Mapping[str, str], seen: str) -> str:
    """What a command shows in a terminal; a screen that it opens is left again."""
    opened = b"\x1b[?1049h"
    with PtyApp("-c", command, program=("/bin/bash",), width=80, height=24, environ=environ) as app:
        app.wait_for(lambda at: opened in at.written or at.has_ended())
        if opened in app.written:
            app.wait_for(lambda at: seen in at.text and is_settled(at.lines[-1], seen))
        shown = app.text
        if app.exit_code is None:
            app.press("Q")
        assert app.wait_for_exit() == 0, app.text.strip()
        return shown if opened in app.written else app.text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_does_what_it_says(
    command: str,
    home: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, environ = to_run(command, request)
    if " capture " in run:  # what it writes is not for the others
        home = tmp_path
        make_programs(home / "bin")
    environ |= environment(home)
    seen = SEEN.get(command, "")
    monkeypatch.chdir(ROOT if "tests." in run else home)
    if needs_terminal(run):
        shown = show_in_terminal(run, environ, seen)
    else:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        shown = print_here(run, capsys)
    assert seen in shown and "Traceback" not in shown
    if command in INSTEAD:
        options = re.findall(r"--[a-z-]+", command)
        assert all(option in shown or option in run for option in options)


def test_what_is_said_about_commands_is_said_of_the_readme() -> None:
    assert not {*INSTEAD, *SEEN} - set(COMMANDS), "these commands left the texts"


def test_the_example_of_a_library_runs(home: Path) -> None:
    environ = {**os.environ, **environment(home)}
    command = [sys.executable, "-W", "error", "-c", README.block("python")]
    done = subprocess.run(command, cwd=home / "host", env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ms a step:" in done.stdout
