"""Calls of the command line, in this process and in ones of their own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.build import tpu_plane
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.tui.cli import main as cli

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


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def run(*args: str, program: str = PROGRAM, **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-W", "error", "-c", program, *args]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, env=os.environ | env, check=False)


def expect_error(capsys: pytest.CaptureFixture[str], args: list[str], exit_code: int) -> tuple[str, str]:
    """The sentence and the hint of an error, which is two lines on standard error and nothing else."""
    assert cli.main(args) == exit_code
    out, err = capsys.readouterr()
    assert out == ""
    sentence, hint = err.splitlines()
    assert sentence.endswith(".") and hint.startswith("try: ")
    return sentence, hint


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True
