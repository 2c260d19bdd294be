"""The profiles that `watch` keeps, as long as their folder has room; it never removes one."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import content_below
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.capture.errors import unwritable
from tpuprof.parsers.capture.files import RunFolder
from tpuprof.parsers.capture.model import CaptureResult

_MOST_FILES = 100_000
"""More files in the folder are not counted: it is full."""

_OTHER = "--output DIR"


def temporary() -> TemporaryDirectory[str]:
    """A folder for a look, which is removed whole.

    Raises:
        ProfileError: there can be none.
    """
    try:
        return TemporaryDirectory(prefix="tpuprof-", ignore_cleanup_errors=True)
    except OSError as error:
        raise unwritable("a temporary folder", error) from error


class KeptRuns:
    """The runs of a folder.

    Args:
        folder: the logdir where they lie; it is made where it is missing.
        space: bytes that the folder may hold, whoever wrote them.

    Raises:
        ProfileError: nothing can be written there.
    """

    def __init__(self, folder: str, space: int) -> None:
        self._folder, self._space = folder, space
        RunFolder(folder, "", _OTHER).prepare()

    def why_full(self, size: int = 0) -> str:
        """Why there is no room for a profile of a size, and what to do; empty where there is."""
        held, files = content_below(self._folder, _MOST_FILES)
        name, hint = printable(self._folder), "remove runs from it, or raise --disk-limit"
        if files > _MOST_FILES:
            return f"{name} holds more than {_MOST_FILES:,} files; remove runs from it"
        if held + size <= self._space:
            return ""
        this = f"this profile has {_mb(size)}; " if size else ""
        return f"{this}{name} holds {_mb(held)}, and --disk-limit is {_mb(self._space)}; {hint}"

    def keep(self, look: CaptureResult) -> tuple[str | None, dict[str, str]]:
        """Copies a look's files into a run of the folder; its path, or why there is none."""
        if why := self.why_full(sum(file.size_bytes for file in look.files)):
            return None, {"profile": why}
        run = RunFolder(self._folder, os.path.basename(look.run_path), _OTHER)
        try:
            run.prepare()
            for file in look.files:
                run.copy(file.path, [file.host])
        except ProfileError as error:
            return None, {"profile": f"{error.sentence.rstrip('.')}; {error.hint}"}
        finally:
            run.tidy()
        return run.path, {}


def _mb(size: int) -> str:
    return f"{size / 1e6:,.2f} MB"
