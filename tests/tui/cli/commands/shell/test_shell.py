"""What shells complete: made from the parsers, and read by the shells themselves."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tui.cli.calls import Call
from tpuprof.tui.cli.arguments.itself import SHELLS
from tpuprof.tui.cli.commands.shell.completion import completion
from tpuprof.tui.cli.commands.shell.grammar import Argument, Command, commands
from tpuprof.tui.cli.table import COMMANDS, WITHOUT_WORD
from tpuprof.tui.pages import PAGE_NAMES

HARMFUL = 'it\'s [a] `b` $(touch owned); \\ : "c" *'
"""A text that each shell would read as its own if it were not quoted."""

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tpuprof_tui; printf '%s\\n' "${COMPREPLY[@]}"
"""


def asked(folder: Path, *words: str, known: tuple[Command, ...] | None = None) -> list[str]:
    """What bash would offer for the last of some words."""
    script = folder / "completion.bash"
    script.write_text(completion("bash", known or commands()), "utf-8")
    bash = shutil.which("bash")
    assert bash is not None
    command = [bash, "-uc", ASK, "bash", str(script), "tpuprof-tui", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_offers_what_goes_there(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    assert set(asked(tmp_path, "")) == {"demo", *COMMANDS} - {WITHOUT_WORD}
    assert asked(tmp_path, "report", "over") == ["overview"]
    assert asked(tmp_path, "report", "") == list(PAGE_NAMES)
    assert asked(tmp_path, "report", "ops", "--format", "") == [
        "text",
        "json",
        "csv",
        "md",
        "html",
        "perfetto",
        "hlo",
        "proto",
        "parquet",
    ]
    assert asked(tmp_path, "diff", "--fail") == ["--fail-on-regression"]
    assert asked(tmp_path, "--color", "2") == ["256"]
    assert asked(tmp_path, "completion", "") == list(SHELLS)
    assert asked(tmp_path, "--logdir", "l") == ["logs"]
    assert asked(tmp_path, "report", "ops", "--limit", "") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_read_their_script(tmp_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    place = Argument(("--harm",), HARMFUL, (), "", many=False, needed=False, meaning=HARMFUL)
    for number, known in enumerate((commands(), (*commands(), Command("x", HARMFUL, (), (place,))))):
        script = tmp_path / str(number)
        script.write_text(completion(shell, known), "utf-8")
        done = subprocess.run([program, "-n", str(script)], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_is_completed(shell: str, call: Call) -> None:
    script = call("completion", shell).out
    flags = {flag for command in commands() for option in command.options for flag in option.flags}
    assert {"--logdir", "--format", "--no-cache", "--fail-on-regression", "-h"} <= flags
    for flag in flags:
        written = flag if shell != "fish" else f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
        assert written in script
