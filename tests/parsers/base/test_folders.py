"""Files of others are opened in one place, which can be held below a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tpuprof.parsers.base.folders import ONLY_BELOW, OUTSIDE, listed, opened, status


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file, beside one that is of nobody's concern; the process is held in it."""
    for folder in ("root", "elsewhere"):
        (tmp_path / folder / "run").mkdir(parents=True)
        (tmp_path / folder / "run" / "host").write_text(folder)
    monkeypatch.setenv(ONLY_BELOW, str(tmp_path / "root"))
    return tmp_path / "root"


def test_links_may_lead_around_inside(root: Path) -> None:
    (root / "again").symlink_to(root / "run")
    with open(opened(str(root / "again" / "host"))) as file:
        assert file.read() == "root"
    with listed(str(root / "again")) as entries:
        assert [entry.name for entry in entries] == ["host"]
    assert status(str(root / "again" / "host")).st_ino == (root / "run" / "host").stat().st_ino


@pytest.mark.parametrize("place", ["out/host", "../elsewhere/run/host", "../root2", "/dev/null"])
def test_what_lies_outside_is_not_opened(place: str, root: Path) -> None:
    (root / "out").symlink_to(root.parent / "elsewhere" / "run")
    (root.parent / "root2").write_text("its name begins alike")
    for way in (opened, status):
        with pytest.raises(PermissionError, match=OUTSIDE):
            way(str(root / place))
    with pytest.raises(PermissionError, match=OUTSIDE), listed(str(root / "out")):
        pass


@pytest.mark.parametrize("part", ["run/host", "run", "."])
def test_a_link_put_there_between_look_and_open_is_not_followed(
    part: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.path.realpath

    def look(path: str) -> str:
        found = real(path)
        if path.endswith("host") and not (swapped := root / part).is_symlink():
            swapped.rename(root.parent / "away")
            swapped.symlink_to(root.parent / "elsewhere" / part)
        return found

    monkeypatch.setattr(os.path, "realpath", look)
    with pytest.raises(OSError, match=r"Too many levels|Not a directory"):
        opened(str(root / "run" / "host"))
    assert (root / "run" / "host").read_text() == "elsewhere", "the link is there"
