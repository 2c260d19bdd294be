"""The profiles that `watch` keeps within its space: it removes its own oldest ones, and nothing else.

A list in the user's state folder says what it wrote, so that a later watch counts and removes these files too; several
watches may share a folder. Nothing that lies beside the profiles is believed. A file is removed only if it is still
what was written: the same file, with the same bytes (`parsers.capture.written`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.capture.errors import failure
from tpuprof.parsers.capture.files import SUFFIX
from tpuprof.parsers.capture.state import open_record, read_record, records, write_record
from tpuprof.parsers.capture.written import WrittenFile, WrittenRun

LISTS = "watched"


class KeptRuns:
    """The runs of a folder, the oldest first.

    Args:
        folder: the logdir where they lie; links in its path are followed now, and never again.
        space: bytes that they may take together.

    Raises:
        ProfileError: from any method too: the state folder is not the user's own, or nothing can be written there.
    """

    def __init__(self, folder: str, space: int) -> None:
        self._folder, self._space = os.path.realpath(os.path.join(folder, "plugins", "profile")), space
        self._list = f"{hashlib.sha256(os.fsencode(self._folder)).hexdigest()[:32]}.json"
        self._largest = 0
        self._last: WrittenRun | None = None
        with self._runs():
            pass

    def add(self, path: str, files: Sequence[WrittenFile]) -> None:
        """Lists a look that was written, until `keep` or `drop`: if the program is killed before, the next one knows
        the look.

        Raises:
            ProfileError: `unwritable`: it lies elsewhere, because somebody moved a folder of its path.
        """
        folder, name = os.path.split(path)
        if os.path.realpath(folder) != self._folder:
            sentence = f"{printable(folder)} is no longer the folder that it was."
            raise failure("unwritable", sentence, "somewhere else: --out DIR")
        self._last = WrittenRun(name, os.lstat(path).st_ino, tuple(files))
        self._largest = max(self._largest, self._last.size_bytes)
        with self._runs() as runs:
            self._trim(runs)
            runs.append(self._last)

    def drop(self) -> None:
        """Removes the last look."""
        with self._runs() as runs:
            self._drop(runs)

    def keep(self) -> bool:
        """Keeps the last look, and removes the oldest ones beyond the space; False if the look alone exceeds it and is
        removed.
        """
        with self._runs() as runs:
            if self._last is None or self._last.size_bytes > self._space:
                self._drop(runs)
                return False
            older = [run for run in runs if run != self._last]
            self._trim(older, self._last.size_bytes)
            runs[:] = [*older, self._last]
        return True

    def _drop(self, runs: list[WrittenRun]) -> None:
        if self._last is not None and self._last in runs:
            runs.remove(self._last)
            self._last.remove(self._folder)

    def _trim(self, runs: list[WrittenRun], more: int = 0) -> None:
        """Removes the oldest until the rest, so many bytes more, and a further look of the largest size fit."""
        room = self._space - min(self._largest, self._space) - more
        while runs and sum(run.size_bytes for run in runs) > room:
            runs.pop(0).remove(self._folder)

    @contextlib.contextmanager
    def _runs(self) -> Iterator[list[WrittenRun]]:
        """The runs that watches kept here and that are there, to be changed; none if the list is missing or damaged."""
        with records(LISTS) as folder:
            runs: list[WrittenRun] = []
            with contextlib.suppress(FileNotFoundError), open(open_record(folder, self._list), "rb") as file:
                runs = self._listed(read_record(file.fileno()))
            before = list(runs)
            yield runs
            if runs != before:
                noted = [[run.name, run.inode, list(map(_note, run.files))] for run in runs]
                os.close(write_record(folder, self._list, {"folder": self._folder, "runs": noted}))

    def _listed(self, record: Any) -> list[WrittenRun]:  # noqa: ANN401 - JSON
        runs = []
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            for run, inode, files in record["runs"]:
                path = os.path.join(self._folder, _name(run))
                runs.append(WrittenRun(run, int(inode), tuple(_file(path, *file) for file in files)))
        return [run for run in runs if any(os.path.lexists(file.path) for file in run.files)]


def _note(file: WrittenFile) -> tuple[str, int, int, str]:
    return file.name, file.inode, file.size_bytes, file.sha256.hex()


def _file(folder: str, name: str, inode: int, size: int, digest: str) -> WrittenFile:
    return WrittenFile(os.path.join(folder, _name(name, SUFFIX)), int(inode), int(size), bytes.fromhex(digest))


def _name(text: str, ending: str = "") -> str:
    """The name of a file or folder.

    Raises:
        ValueError: it is a path that leads elsewhere, or ends otherwise.
    """
    if text in ("", os.curdir, os.pardir) or os.sep in text or not text.endswith(ending):
        raise ValueError
    return text
