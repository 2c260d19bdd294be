"""Asks commands: runs them, and keeps what they print, how much that is, and how long it takes."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from tests.parity.exam.judging import Reply
from tests.parity.exam.profiles import Made
from tpuprof.tui.cli.main import main

Runner = Callable[[Sequence[str]], Reply]

_PATH = re.compile(r"\{([\w-]+?)(:file)?\}")


def words_of(command: Sequence[str], made: Mapping[str, Made]) -> list[str]:
    """A command's words with paths in place of the profiles' names: ``{demo}`` a logdir, ``{demo:file}`` its file."""

    def path(found: re.Match[str]) -> str:
        profile = made[found[1]]
        return str(profile.files[0] if found[2] else profile.logdir)

    return [_PATH.sub(path, word) for word in command]


def profiles_of(command: Sequence[str]) -> set[str]:
    """The names of the profiles in a command."""
    return {found[1] for word in command for found in _PATH.finditer(word)}


def in_this_process(words: Sequence[str]) -> Reply:
    """What our command prints, run here."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(words))
    printed = out.getvalue().encode()
    return Reply(code, len(printed), _json(printed), error=err.getvalue())


def by_program(program: Sequence[str], made: Mapping[str, Made]) -> Runner:
    """Runs commands in processes of their own, each of which finds an empty cache, and the profiles as they were."""

    def run(words: Sequence[str]) -> Reply:
        with tempfile.TemporaryDirectory() as cache:
            begun = time.perf_counter()
            done = subprocess.run(
                [*program, *words],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "XDG_CACHE_HOME": cache, "TMPDIR": cache},
                check=False,
            )
            seconds = time.perf_counter() - begun
            for profile in made.values():
                profile.tidy()
            saved = _saved(done.stdout)
            size = len(done.stdout) + len(saved)
            return Reply(
                done.returncode, size, _json(saved or done.stdout), seconds, done.stderr.decode("utf-8", "replace")
            )

    return run


def _saved(out: bytes) -> bytes:
    """The file of JSON that a command names as its answer, which has to be read too; nothing where it printed one."""
    data = _json(out)
    path = data.get("path", data.get("file_path")) if isinstance(data, dict) else None
    return Path(path).read_bytes() if isinstance(path, str) and path.endswith(".json") else b""


def _json(out: bytes) -> Any:
    try:
        return json.loads(out)
    except ValueError:
        return None
