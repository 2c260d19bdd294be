"""The profiles that `watch` keeps within its space: it removes its own oldest ones, and nothing else.

A file in the folder lists what it wrote, so that a later watch counts and removes these files too. A file is removed
only if it is still what was written: the same file, with the same bytes (`parsers.capture.written`).
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.capture.written import WrittenFile, remove_written

NOTED = ".tpuprof-watch.json"
_MOST_NOTED = 100_000
_LONGEST_NOTE = 64 << 20


@dataclass(frozen=True, slots=True)
class Kept:
    """A run that is kept: its folder and the files written into it."""

    path: str
    files: tuple[WrittenFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


class KeptRuns:
    """The runs of a folder, the oldest first.

    Args:
        folder: where they lie.
        space: bytes that they may take together.
    """

    def __init__(self, folder: str, space: int) -> None:
        self._folder, self._space = os.path.abspath(folder), space
        self._runs = self._noted()
        self._largest = 0

    def add(self, path: str, files: Sequence[WrittenFile]) -> None:
        """Lists a look that was written, until `keep` or `drop`: if the program is killed before, the next one knows
        the look.
        """
        look = Kept(path, tuple(files))
        self._largest = max(self._largest, look.size_bytes)
        self._trim()
        self._runs.append(look)
        self._write()

    def drop(self) -> None:
        remove_written(self._runs.pop().files)
        self._write()

    def keep(self) -> bool:
        """Keeps the last look, and removes the oldest ones beyond the space; False if the look alone exceeds it and is
        removed.
        """
        if self._runs[-1].size_bytes > self._space:
            self.drop()
            return False
        last = self._runs.pop()
        self._trim(last.size_bytes)
        self._runs.append(last)
        self._write()
        return True

    def _trim(self, more: int = 0) -> None:
        """Removes the oldest until the rest, so many bytes more, and a further look of the largest size fit."""
        room = self._space - min(self._largest, self._space) - more
        while self._runs and sum(run.size_bytes for run in self._runs) > room:
            remove_written(self._runs.pop(0).files)

    def _noted(self) -> list[Kept]:
        """The runs that an earlier watch kept here; none if the list is missing or damaged."""
        try:
            with open(os.path.join(self._folder, NOTED), "rb") as file:
                noted = json.loads(file.read(_LONGEST_NOTE))
            runs = [Kept(str(run["path"]), tuple(map(_file, run["files"]))) for run in noted["runs"][:_MOST_NOTED]]
        except (OSError, ValueError, KeyError, TypeError):
            return []
        inside = self._folder + os.sep
        of_here = [run for run in runs if all(os.path.abspath(file.path).startswith(inside) for file in run.files)]
        return [run for run in of_here if any(os.path.lexists(file.path) for file in run.files)]

    def _write(self) -> None:
        runs = [{"path": run.path, "files": [_note(file) for file in run.files]} for run in self._runs]
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, NOTED)
        temporary = f"{path}.{secrets.token_hex(4)}"
        try:
            with open(temporary, "x", encoding="utf-8") as file:
                json.dump({"runs": runs}, file)
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _note(file: WrittenFile) -> dict[str, object]:
    facts = {"path": file.path, "device": file.device, "inode": file.inode, "size_bytes": file.size_bytes}
    return {**facts, "sha256": file.sha256.hex()}


def _file(noted: dict[str, object]) -> WrittenFile:
    device, inode, size = (noted[key] for key in ("device", "inode", "size_bytes"))
    if not isinstance(device, int) or not isinstance(inode, int) or not isinstance(size, int):
        raise TypeError
    return WrittenFile(str(noted["path"]), device, inode, size, bytes.fromhex(str(noted["sha256"])))
