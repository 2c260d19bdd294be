"""What a failure says: a golden names its file and shows what differs."""

from __future__ import annotations

from pathlib import Path

import pytest

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
