"""The folder below which a server reads, and nowhere else: what its calls name, and how an answer names files."""

from __future__ import annotations

import os

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.folders import is_below
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import PATHS, printable
from tpuprof.parsers.base.urls import scheme_of


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
            sentence = f"{printable(given)} is outside the folder that this server reads."
            raise ProfileError("outside", sentence, "a path below it; . is all of it", EXIT_USAGE)
        return os.path.realpath(path)

    def holds(self, path: str) -> bool:
        """Whether a path lies in the folder once its links are resolved."""
        return is_below(os.path.realpath(path), self.path)

    def named(self, path: str) -> str:
        real = os.path.realpath(path)
        return os.path.relpath(real, self.path) if self.holds(real) else path


def _may_be_named(path: str) -> bool:
    """Whether a file can have this path at all, and only one."""
    try:
        return PATHS.encode() not in os.fsencode(path)
    except UnicodeEncodeError:
        return False
