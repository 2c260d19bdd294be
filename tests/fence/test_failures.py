"""What a failure says: which file or which reports differ, how they do, or which command shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fence.__main__ import differences
from tests.fence.reports import check
from tests.support.golden import check_golden, difference


@pytest.fixture(autouse=True)
def _golden_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UPDATE_GOLDEN", raising=False)


def test_a_difference_names_the_file_and_shows_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "frame.txt"
    path.write_text("one\ntwo\nthree\n")
    check_golden(path, "one\ntwo\nthree\n")
    with pytest.raises(pytest.fail.Exception) as failed:
        check_golden(path, "one\ntwo  \nthree")
    lines = str(failed.value).splitlines()
    assert lines[0].startswith(f"{path} differs")
    assert lines[4:] == [" one", "-two", "-three", r"+two\x20\x20", "+three (no newline)"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"frame\.txt is missing"):
        check_golden(tmp_path / "frame.txt", "")


def test_a_long_difference_is_cut_and_counted() -> None:
    lines = difference("", "".join(f"{number}\n" for number in range(50)), most=10).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "… and 43 more lines"


def test_reports_that_differ_are_named_with_the_command_that_shows_how(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    hashes, calls = tmp_path / "some.json", [("report", "overview", name) for name in ("a", "b", "c")]
    with pytest.raises(pytest.fail.Exception, match=r"some\.json is missing"):
        check(hashes, calls, root)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("UPDATE_GOLDEN", "1")
        check(hashes, calls, root)
    check(hashes, calls, root)
    stored = json.loads(hashes.read_text())
    hashes.write_text(json.dumps({**stored, "report overview b": "0", "report overview gone": "0"}))
    with pytest.raises(pytest.fail.Exception) as failed:
        check(hashes, calls, root)
    lines = str(failed.value).splitlines()
    assert lines[0].startswith("some: 2 of 3 reports")
    assert lines[1:3] == ["  report overview b", "  report overview gone"]  # the last is no longer made
    assert "python -m tests.fence --against HEAD some" in lines[3]


def test_reports_of_two_revisions_are_compared_by_lines(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, texts in ((before, {"same": "1", "old": "2", "cut/long": "3"}), (after, {"same": "1", "new": "4"})):
        for name, text in texts.items():
            path = folder / (name if "/" in name else f"demo/{name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"0.1234567890123{text}\n{text}\n")
    lines = list(differences(before, after, ["demo"]))
    assert lines == [
        *("--- before/demo/new", "+++ after/demo/new", "@@ -0,0 +1,2 @@", "+0.123456789012", "+4"),
        *("--- before/demo/old", "+++ after/demo/old", "@@ -1,2 +0,0 @@", "-0.123456789012", "-2"),
    ]
    assert any(line.startswith("--- before/cut/long") for line in differences(before, after))
