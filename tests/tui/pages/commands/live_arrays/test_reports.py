"""The reports on live arrays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.files.pprof import BATCH, Made, buffer, pprof, written
from tests.support.golden import check_golden
from tests.tui.cli.calls import Call

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file, in the current folder, so that no path is in the reports."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "after.prof", step=12)


@pytest.mark.parametrize("by", ["source", "function", "stack", "device", "kind"])
def test_texts(by: str, call: Call) -> None:
    text = call("report", "live-arrays", "after.prof", "--by", by, "--width", "80").out
    assert all(len(line) <= 80 for line in text.splitlines())
    check_golden(GOLDEN / f"report-{by}.txt", text)


@pytest.mark.parametrize("form", ["md", "csv", "json"])
def test_other_formats(form: str, call: Call) -> None:
    words = ("report", "live-arrays", "after.prof", "--limit", "3", "--format", form)
    check_golden(GOLDEN / f"report.{form}.txt", call(*words).out)


def test_hostile_names_are_shown_and_not_obeyed(tmp_path: Path, call: Call) -> None:
    evil = (("f\x1b[2J", "/home/ada/\x1b]0;x\x07|*_a\n.py", 3),)
    path = tmp_path / "evil.prof"
    path.write_bytes(pprof([buffer(1, 8, evil), Made((1, 8), BATCH, {"kind": "\x1b[31mk", "device": "\u202edev"})]))
    for form in ("text", "json", "csv", "md"):
        text = call("report", "live-arrays", "evil.prof", "--format", form).out
        assert not set(text) & set("\x1b\x07\u202e")


def test_without_anything_alive(tmp_path: Path, call: Call) -> None:
    (tmp_path / "empty.prof").write_bytes(pprof([]))
    text = call("report", "live-arrays", "empty.prof").out
    assert "0 B live: 0 buffers 0 B." in text and "the file lists no live arrays" in text
    assert call("report", "live-arrays", "empty.prof", "--format", "md").out
