"""Files that are kept, such as what was copied."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tpuprof.parsers.base.folders import write_state


@pytest.mark.parametrize("kind", ["nothing", "file", "link", "pipe"])
def test_whatever_has_its_name_is_replaced(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path, victim = tmp_path / "tpuprof-tui" / "yank.txt", tmp_path / "victim"
    path.parent.mkdir()
    victim.write_text("theirs")
    if kind == "file":
        path.write_text("before")
    elif kind == "link":
        path.symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(path)
    assert write_state("yank.txt", "fusion.1") == str(path)
    assert path.read_text() == "fusion.1\n" and stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert victim.read_text() == "theirs" and os.listdir(path.parent) == ["yank.txt"]


def test_without_a_home_it_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "relative")
    monkeypatch.chdir(tmp_path)
    assert "no home folder" in write_state("yank.txt", "fusion.1")
    assert os.listdir(tmp_path) == []
