"""Writes captured profiles where XProf looks for them. Each appears in one move; a failure leaves nothing behind.

The layout is ``LOGDIR/plugins/profile/YYYY_MM_DD_HH_MM_SS/HOST.xplane.pb``, in local time.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.capture.errors import failure, unwritable
from tpuprof.parsers.capture.model import WrittenFile

SUFFIX = ".xplane.pb"
RUN_TIME = "%Y_%m_%d_%H_%M_%S"
_LONGEST_NAME = 100
_PIECE = 1 << 20
_MOST_RUNS_A_SECOND = 1000
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)


def safe_name(text: str) -> str:
    """Turns a host's name into a file's: short ASCII without separators, no dot or dash in front; may be empty."""
    return _UNSAFE.sub("_", text[: 4 * _LONGEST_NAME]).lstrip("._-")[:_LONGEST_NAME]


def run_name(began: float) -> str:
    """The name of a run that began so many seconds after 1970."""
    return time.strftime(RUN_TIME, time.localtime(began))


class RunFolder:
    """The folder of a run that is being captured; thread-safe.

    The first profile creates it, so that nobody who watches the logdir sees an empty run. The logdir, which XProf is
    given, is created where it is missing.

    Args:
        logdir: where XProf looks for runs.
        name: that of the run; `run_name` gives it.
        other: how to name another folder, for a hint.

    Raises:
        ProfileError: from any method: the system refuses; nothing of a file is left then.
    """

    def __init__(self, logdir: str, name: str, other: str = "--output DIR") -> None:
        self.parent = os.path.abspath(os.path.join(os.path.expanduser(logdir), "plugins", "profile"))
        self.name, self._other = name, other
        self.path: str | None = None
        self._made: list[str] = []
        self._names: set[str] = set()
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Checks before any work that profiles may be written there."""
        if "\0" in self.parent:
            raise failure("unwritable", f"{printable(self.parent)} cannot be the name of a folder.", self._other)
        with self._telling():
            missing = self.parent
            while not os.path.lexists(missing):
                self._made.append(missing)
                missing = os.path.dirname(missing)
            os.makedirs(self.parent, exist_ok=True)
            os.rmdir(tempfile.mkdtemp(prefix=".capture-", dir=self.parent))

    def write(self, names: Iterable[str], pieces: Iterable[bytes | memoryview]) -> WrittenFile:
        """Writes a profile's bytes under one of the names, which need not be safe, the first choice first."""
        with self._telling():
            folder, host = self._folder(), self._claim(names)
            path = os.path.join(folder, host + SUFFIX)
            temporary = os.path.join(folder, f".{host}.{secrets.token_hex(4)}.tmp")
            try:
                with open(temporary, "xb") as file:
                    for piece in pieces:
                        file.write(piece)
                    file.flush()
                    os.fsync(file.fileno())
                    size = file.tell()
                os.replace(temporary, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
            _sync(folder)
            return WrittenFile(path, host, size)

    def copy(self, path: str, names: Iterable[str]) -> WrittenFile:
        """Writes a copy of a profile, as `write` does."""
        with self._telling(), open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return self.write(names, iter(lambda: file.read(_PIECE), b""))

    def take(
        self, folder: str, names: Iterable[str], check: Callable[[str], object] = lambda path: None
    ) -> WrittenFile | None:
        """Moves the profile from an old server's own folder into this run, and removes that folder.

        Args:
            check: raises for a file that is not a profile; it stays where it is then.

        Returns:
            The file; None where no profile is there.
        """
        with self._telling():
            profile = _largest_profile(folder)
            if profile is None:
                return None
            check(profile)
            written = self.copy(profile, names)
            shutil.rmtree(folder, ignore_errors=True)
            return written

    def tidy(self) -> None:
        """Removes the folders that it created and that are still empty."""
        for folder in (*([] if self.path is None else [self.path]), *self._made):
            try:
                os.rmdir(folder)  # refused where something is in it
            except FileNotFoundError:
                continue
            except OSError:
                return

    def _folder(self) -> str:
        """Creates the run's folder; a second run of the same second gets a number behind its name."""
        with self._lock:
            number = 1
            while self.path is None:
                path = os.path.join(self.parent, self.name if number == 1 else f"{self.name}_{number}")
                try:
                    os.mkdir(path)
                    self.path = path
                except FileExistsError:
                    number += 1
                    if number > _MOST_RUNS_A_SECOND:
                        raise
            return self.path

    def _claim(self, names: Iterable[str]) -> str:
        """Picks a name that no other host of this run has, not even in other letter case."""
        choices = [safe for name in names if (safe := safe_name(name))] or ["host"]
        with self._lock:
            for name in (*choices, *(f"{choices[-1]}_{number}" for number in range(2, 10_000))):
                if name.casefold() not in self._names:
                    self._names.add(name.casefold())
                    return name
        raise failure("unwritable", "Too many servers have the same name.", "")

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise unwritable(self.path or self.parent, error, self._other) from error


def _largest_profile(folder: str) -> str | None:
    """The path of the largest profile in a folder; None where it holds none, is missing or leads elsewhere."""
    profiles: list[tuple[int, str]] = []
    if os.path.islink(folder):
        return None
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX) and stat.S_ISREG((facts := entry.stat(follow_symlinks=False)).st_mode):
                profiles.append((facts.st_size, entry.path))
    return max(profiles)[1] if profiles else None


def _sync(folder: str) -> None:
    """Writes the folder's new entry to disk; not every file system can do that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
