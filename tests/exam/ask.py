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

from tests.exam.profiles import Made
from tests.exam.question import Reply
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
    return _reply(code, out.getvalue().encode(), err.getvalue())


def by_program(program: Sequence[str], environment: Mapping[str, str]) -> Runner:
    """Runs commands in processes of their own, each of which finds an empty cache."""

    def run(words: Sequence[str]) -> Reply:
        with tempfile.TemporaryDirectory() as cache:
            begun = time.perf_counter()
            done = subprocess.run(
                [*program, *words],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **environment, "XDG_CACHE_HOME": cache, "TMPDIR": cache},
                check=False,
            )
            seconds = time.perf_counter() - begun
            return _reply(done.returncode, _printed(done.stdout), done.stderr.decode(errors="replace"), seconds)

    return run


def _printed(out: bytes) -> bytes:
    """What a command printed; where that only names a file of JSON, this."""
    data = _json(out)
    path = data.get("path", data.get("file_path")) if isinstance(data, dict) else None
    is_named = isinstance(path, str) and path.endswith(".json") and set(data) <= {"path", "skipped", "capture"}
    return Path(str(path)).read_bytes() if is_named else out


def _reply(code: int, out: bytes, error: str, seconds: float = 0.0) -> Reply:
    return Reply(code, len(out), _json(out), seconds, error)


def _json(out: bytes) -> Any:
    try:
        return json.loads(out)
    except ValueError:
        return None
