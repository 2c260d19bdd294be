"""Calls of the command line, in this process and in ones of their own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.build import host_bytes, write_run
from tpuprof.parsers.base.errors import EXIT_OK
from tpuprof.tui.cli import main as cli

RUN = "2026_11_21_03_00_00"
PROGRAM = "import sys; from tpuprof.tui.cli.main import main; sys.exit(main())"
FORKS = """
import json, os, sys
from tpuprof.tui.cli.main import main
def run_each(commands):
    for name, args in commands.items():
        if os.fork() == 0:
            os.dup2(os.open(f"{name}.out", os.O_WRONLY | os.O_CREAT), 1)
            code = main(args)
            sys.stdout.flush()
            with open(f"{name}.json", "w") as file:
                json.dump([code, list(sys.modules)], file)
            os._exit(0)
        os.wait()
bare, others = json.loads(sys.argv[1])
run_each(bare)
import numpy, google.protobuf.message
run_each(others)
"""
"""Runs each command in a copy of its own of a process that has imported nothing yet, or what takes longest."""


class Done(NamedTuple):
    """What a command has returned, its output's bytes, and the modules that it has imported."""

    code: int
    out: bytes
    modules: frozenset[str]


def write_logdir(path: Path) -> Path:
    """A logdir with a run of two hosts."""
    return write_run(path, RUN, host0=host_bytes(), host1=host_bytes(200))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def run(*args: str, program: str = PROGRAM, **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-W", "error", "-c", program, *args]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, env=os.environ | env, check=False)


def modules_of(bare: Mapping[str, Sequence[str]], others: Mapping[str, Sequence[str]], folder: Path) -> dict[str, Done]:
    """Runs commands in processes of their own, which leave files in a folder.

    Args:
        bare: commands by name that begin with no module imported.
        others: those that have numpy and protobuf already, which take most of the time of a process that reads.
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # numpy's threads would not be copied
    command = [sys.executable, "-W", "error", "-c", FORKS, json.dumps([bare, others])]
    subprocess.run(command, stdin=subprocess.DEVNULL, cwd=folder, env=environment, check=True)
    found = {}
    for name in (*bare, *others):
        code, modules = json.loads((folder / f"{name}.json").read_text())
        found[name] = Done(code, (folder / f"{name}.out").read_bytes(), frozenset(modules))
    return found


class Printed(NamedTuple):
    """What a command prints on standard output and standard error."""

    out: str
    err: str


class Ended(NamedTuple):
    """What a command has returned, and printed."""

    code: int
    out: str
    err: str


def ended(*words: str) -> Ended:
    """Runs a command in this process, where there is no `Call`."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([*words])
    out.seek(0)
    return Ended(code, out.read(), err.getvalue())


class Call:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object, code: int = EXIT_OK) -> Printed:
        """What a command prints, which exits with a code."""
        exit_code = cli.main([str(word) for word in words])
        printed = Printed(*self._capsys.readouterr())
        assert exit_code == code, printed.err
        return printed

    def json(self, *words: object) -> Any:
        return json.loads(self(*words).out)

    def error(self, code: int, *words: object) -> tuple[str, str]:
        """The sentence and the hint of an error, which is two lines on standard error and nothing else."""
        out, err = self(*words, code=code)
        assert out == ""
        sentence, hint = err.splitlines()
        assert sentence.endswith(".") and hint.startswith("try: ")
        return sentence, hint


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True
