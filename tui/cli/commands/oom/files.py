"""What the files given to ``tpuprof-tui oom`` are, in any order: logs, dumps, a device memory profile."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.pprof.files import is_pprof
from tpuprof.tui.cli.arguments.options import PROGRAM, STREAM

_OF_DUMPS = re.compile(r"(?:\.hlo(?:_proto)?\.pb(?:\.gz)?|-memory-usage-report\.(?:pb|txt)|-buffer-assignment\.txt)$")
_STEMS = re.compile(r"module_\d+\..+\.pb$")


@dataclass(frozen=True, slots=True)
class OomFiles:
    """The files by what they are.

    Attributes:
        logs: paths, ``-`` for standard input.
        dumps: folders, and files of dumps.
        arrays: a device memory profile; None without one.
    """

    logs: tuple[str, ...]
    dumps: tuple[str, ...]
    arrays: str | None


def sorted_files(paths: Sequence[str], arrays: str | None) -> OomFiles:
    """Sorts paths by their names and first bytes; `arrays` is one that was called a device memory profile.

    Raises:
        ProfileError: there are two device memory profiles, or standard input twice.
    """
    logs, dumps, profiles = [], [], [] if arrays is None else [arrays]
    for path in dict.fromkeys(paths):
        name = os.path.basename(path)
        if path == STREAM:
            logs.append(path)
        elif os.path.isdir(path) or _OF_DUMPS.search(name) or _STEMS.match(name):
            dumps.append(path)
        elif is_pprof(path):
            profiles.append(path)
        else:
            logs.append(path)
    if len(profiles) > 1:
        raise ProfileError("usage", "Two device memory profiles are given.", f"{PROGRAM} oom --help", EXIT_USAGE)
    if profiles and not logs and not dumps:
        sentence = f"{printable(profiles[0])} is a device memory profile: it shows who holds memory, and has no error."
        raise ProfileError("no_oom", sentence, f"{PROGRAM} {printable(profiles[0])}", EXIT_NOT_FOUND)
    return OomFiles(tuple(logs), tuple(dumps), profiles[0] if profiles else None)


def named_dumps(names: Iterable[str], log: str) -> tuple[str, ...]:
    """The folders of dumps that a log's flags name and that are here: as they are named, or beside the log."""
    beside = "" if log == STREAM else os.path.dirname(log)
    found = dict[str, None]()
    for name in names:
        for path in (
            os.path.expanduser(name),
            os.path.join(beside, name),
            os.path.join(beside, os.path.basename(name)),
        ):
            if os.path.isdir(path):
                found[path] = None
                break
    return tuple(found)
