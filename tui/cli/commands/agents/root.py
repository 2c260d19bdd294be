"""The folder below which a server reads, and nowhere else: links are resolved before anything is opened."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import PATHS, printable
from tpuprof.parsers.base.urls import scheme_of
from tpuprof.parsers.files.logdir import Run, open_logdir
from tpuprof.parsers.files.places import is_archive
from tpuprof.parsers.session import hlo


@dataclass(frozen=True)
class Root:
    """A folder.

    Attributes:
        path: where it lies, without links.
    """

    path: str

    @classmethod
    def of(cls, folder: str) -> Root:
        """The folder of a name.

        Raises:
            ProfileError: there is none.
        """
        path = os.path.realpath(os.path.expanduser(folder))
        if not os.path.isdir(path):
            sentence = f"{printable(folder)} is not a folder."
            raise ProfileError("not_found", sentence, "--root with a folder that holds profiles", EXIT_NOT_FOUND)
        return cls(path)

    def place(self, given: str) -> str:
        """Where a path that was asked for leads.

        Raises:
            ProfileError: it leads out of the folder, or to an address.
        """
        path = os.path.join(self.path, given)
        if scheme_of(given) or not _may_be_named(given) or not self.holds(path):
            raise self._outside(given)
        return os.path.realpath(path)

    def holds(self, path: str) -> bool:
        """Whether a path lies in the folder once its links are resolved."""
        real = os.path.realpath(path)
        return real == self.path or real.startswith(os.path.join(self.path, ""))

    def named(self, path: str) -> str:
        real = os.path.realpath(path)
        return os.path.relpath(real, self.path) if self.holds(real) else path

    def check(self, place: str, run: str | None, all_runs: bool, with_modules: bool) -> None:
        """Sees, before anything is read, that a place leads to no file outside.

        Args:
            place: what `place` gave.
            run: which run of it is read.
            all_runs: whether all of them are.
            with_modules: whether compiled modules without a profile are read too.

        Raises:
            ProfileError: it does, or to no profile.
        """
        if is_archive(place):  # what is in one is unpacked into the cache, without the links in it
            return
        if with_modules and hlo.leads_to_hlo(place):
            self._check_all(iter(hlo.files_read(place)))
            return
        logdir = open_logdir(place)
        for each in logdir.runs if all_runs else (logdir.find_run(run),):
            self._check_all(_files(each))

    def _check_all(self, files: Iterator[str]) -> None:
        for file in files:
            if not self.holds(file):
                raise self._outside(file)

    def _outside(self, path: str) -> ProfileError:
        sentence = f"{printable(path)} is outside the folder that this server reads."
        return ProfileError("outside", sentence, "a path below it; . is all of it", EXIT_USAGE)


def _may_be_named(path: str) -> bool:
    """Whether a file can have this path at all, and only one."""
    try:
        return PATHS.encode() not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _files(run: Run) -> Iterator[str]:
    """The files of a run, and the links beside them, which may stand in for a file that can't be read."""
    yield run.path
    yield from (host.path for host in run.hosts)
    folder = run.path if os.path.isdir(run.path) else os.path.dirname(run.path)
    with os.scandir(folder) as entries:
        yield from (entry.path for entry in entries if entry.is_symlink() and entry.is_file())
