"""Log folders of every shape, for tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tpuprof.parsers.base.errors import Problem, ProfileError
from tpuprof.parsers.files.folder_search import DEFAULT_LIMITS, SearchLimits
from tpuprof.parsers.files.logdir import Logdir, Run, open_logdir

CONTENT = b"\x0a\x02\x08\x01"
NOON = 1_700_000_000.0


def put(path: Path, content: bytes = CONTENT, modified: float = NOON) -> Path:
    """Writes a file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (modified, modified))
    return path


def run_folder(root: Path, name: str = "2026_11_20_18_04_33", hosts: Iterable[str] = ("host0",)) -> Path:
    """A run in TensorBoard's layout below `root`."""
    folder = root / "plugins" / "profile" / name
    for host in hosts:
        put(folder / f"{host}.xplane.pb")
    return folder


LAYOUTS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("layouts.json").read_text("utf-8"))
"""Folders by what they show: the paths that are asked for, and the files by path, DIR for the folder itself.

A file is a profile unless its content is given, or what else it is: a link, a pipe, or another name of a file. A path
that ends in a slash is an empty folder.
"""


def lay_out(folder: Path, files: dict[str, Any]) -> None:
    """Makes the files of one of `LAYOUTS`."""
    for name, said in files.items():
        path, of = folder / name, said if isinstance(said, dict) else {"content": said}
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        elif "link" in of:
            path.symlink_to(of["link"].replace("DIR", str(folder)))
        elif "pipe" in of:
            os.mkfifo(path)
        elif "same" in of:
            os.link(folder / of["same"], path)
        else:
            content = CONTENT if of.get("content") is None else of["content"].encode("latin-1")
            put(path, b"x" * of["size"] if "size" in of else content, of.get("time", NOON))
    for path in folder.rglob("*"):
        if path.is_dir():
            os.utime(path, (NOON, NOON))


def names(found: Logdir) -> list[str]:
    return [run.name for run in found.runs]


def hosts(run: Run) -> list[str]:
    return [host.host for host in run.hosts]


def codes(problems: Iterable[Problem]) -> list[str]:
    return [problem.code for problem in problems]


def refused(path: str | Path, limits: SearchLimits = DEFAULT_LIMITS) -> ProfileError:
    """The error of a path that leads nowhere; its text is one printable line."""
    with pytest.raises(ProfileError) as caught:
        open_logdir(str(path), limits)
    assert caught.value.sentence.isprintable()
    assert caught.value.hint.isprintable()
    return caught.value
