"""A run of the fuzzer: what it keeps of a fault, and until when."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import __main__ as fuzzer
from tests.fuzz.measured.costs import Worst
from tests.fuzz.targets import Target
from tests.fuzz.trial import Outcome


def test_a_fault_is_a_file_until_it_is_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, "")  # a run sets them
    keep, is_mended = tmp_path / "new" / "faults", False

    def read(_: Path, data: bytes, __: object) -> Outcome:
        (file,) = keep.glob(f"*-{data.decode()}")  # it lies there while it is read: a crash would leave it
        assert file.read_bytes() == data
        return Outcome("raised" if data == b"7" and not is_mended else "read")

    target = Target("some-reader", lambda: (), read)
    target.__dict__["case"] = lambda number: b"%d" % number

    def run(begin: int) -> int:
        return fuzzer.run([target], begin, 0.05, keep, Worst())

    assert run(5) == 1
    (fault,) = keep.iterdir()
    assert fault.name == "some-reader-7" and fault.read_bytes() == b"7"
    assert f"{fault}: the next commit must turn it into a test" in capsys.readouterr().out
    assert run(100) == 1  # the same one again, before any new
    is_mended = True
    assert run(100) == 0 and not [*keep.iterdir()]


def test_each_target_runs_for_itself_and_says_where_it_began(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--each", "0.01", "--only", "products,cache", "--keep"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("inputs from number ") and not [*tmp_path.iterdir()]
    assert all(f"\n{name}: " in done.stdout for name in ("products", "cache"))
