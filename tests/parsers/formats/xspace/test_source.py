"""Tests of `parsers.formats.xspace.source`: what is said of a file that gets shorter, or fails, while it is read."""

from __future__ import annotations

import errno
import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_UNREADABLE
from tpuprof.tui.cli.main import main
from tpuprof.tui.demo import demo_path

PREAD = os.pread
READS = int(os.environ.get("TPUPROF_FAULTS", "8"))
"""It injects faults at so many reads of each page."""


@pytest.fixture(scope="module")
def content() -> bytes:
    """A profile of 5 MB, not compressed: it is read in many pieces."""
    return gzip.decompress(Path(demo_path()).read_bytes())


class Faults:
    """Stands for `os.pread`; does something to the file before a read."""

    def __init__(self, at: int = -1, fault: Callable[[int], None] = lambda descriptor: None) -> None:
        self.reads, self._at, self._fault = 0, at, fault

    def __call__(self, descriptor: int, length: int, offset: int) -> bytes:
        self.reads += 1
        if self.reads == self._at:
            self._fault(descriptor)
        return PREAD(descriptor, length, offset)


def fail(descriptor: int) -> None:
    """A disk or network that fails."""
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("page", ["overview", "ops", "timeline", "memory"])
def test_a_file_that_changes_while_it_is_read_is_one_sentence(
    page: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "host0.xplane.pb"
    command = ["report", page, str(path), "--format", "json", "--no-cache"]

    def outcome(faults: Faults) -> tuple[int, str]:
        path.write_bytes(content)
        monkeypatch.setattr(os, "pread", faults)
        exit_code = main(command)
        monkeypatch.setattr(os, "pread", PREAD)
        return exit_code, capsys.readouterr().err

    whole = Faults()
    assert outcome(whole)[0] == EXIT_OK
    said = set()
    chance = random.Random(page)
    for at in chance.sample(range(2, whole.reads), min(READS, whole.reads - 2)):
        size = chance.randrange(len(content))
        for fault in (lambda _, size=size: os.truncate(path, size), fail):
            exit_code, errors = outcome(Faults(at, fault))
            said.add(errors.partition("\n")[0].removeprefix(str(path)))
            assert exit_code in (EXIT_OK, EXIT_UNREADABLE), errors
            assert "Traceback" not in errors and ("try: " in errors) == (exit_code == EXIT_UNREADABLE)
    assert " cannot be read: input/output error." in said
    assert f" got shorter than {len(content):,} bytes while it was read." in said
