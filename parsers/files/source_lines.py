"""Reads a few lines around a place in the user's source, where the file that a profile names is on this machine.

The name comes from an untrusted profile: only regular files with the suffix of a source file are read, a bounded part
of them, and nothing leaves but text that is safe to print.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import regular_file
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable

SUFFIXES = (".py", ".pyi", ".cc", ".cpp", ".h", ".cu", ".jl", ".rs", ".mlir")
"""Of files that are shown. A notebook's lines are not those of its file."""
MOST_BYTES = 4_000_000  # how far into a file it looks
LONGEST_LINE = 400  # most characters of a line
_LONGEST_NAME = 4096
_MOST_TAILS = 32
_TAB = 4
_PLACE = pattern(r"(.+?):([0-9]{1,9})(?::[0-9]{1,9})?", re.DOTALL)
# Not for a profile to touch: kernel files, devices, and folders whose lookup opens a network connection.
_FORBIDDEN = ("/dev/", "/net/", "/proc/", "/sys/")


@dataclass(frozen=True, slots=True)
class SourceExcerpt:
    """Some lines of a source file, safe to print.

    Attributes:
        path: of the file that was read, safe to print.
        first_line: number of the first of `lines`, from 1.
        lines: without line ends, tabs as blanks.
        marked: index in `lines` of the line that was asked for.
    """

    path: str
    first_line: int
    lines: tuple[str, ...]
    marked: int


def source_excerpt(source: str, around: int = 2, roots: Sequence[str] = (os.curdir,)) -> SourceExcerpt | None:
    """The lines around ``path:line`` or ``path:line:column``; None where there is no such file or line here.

    An absolute path is taken as it is. A relative one is looked for in each root and each folder that Python imports
    from, then the same without its first folders (``third_party/py/absl/app.py`` as ``absl/app.py``), but never by the
    file's name alone if the profile gives a folder. The first regular file decides. Never raises.

    Args:
        source: the place as the profile writes it.
        around: lines above it, and below it; fewer at the ends of the file.
        roots: folders to look in first.
    """
    place = _PLACE.fullmatch(source) if len(source) <= _LONGEST_NAME else None
    if place is None or not place[1].endswith(SUFFIXES) or "\0" in source:
        return None
    for path in _candidates(place[1], roots):
        data = _read(path)
        if data is not None:
            return _excerpt(path, data, int(place[2]), around)
    return None


def _candidates(name: str, roots: Sequence[str]) -> Iterator[str]:
    """Where the file could be, the likeliest first."""
    if name.startswith("/"):
        path = "/" + os.path.normpath(name).lstrip("/")
        if not path.startswith(_FORBIDDEN):
            yield path
        return
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        return
    folders = dict.fromkeys((*roots, *(entry or os.curdir for entry in sys.path if isinstance(entry, str))))
    for start in range(min(max(1, len(parts) - 1), _MOST_TAILS)):
        for folder in folders:
            yield os.path.normpath(os.path.join(folder, *parts[start:]))


def _read(path: str) -> bytes | None:
    """The file's first `MOST_BYTES` in whole lines, None where it is no regular file that can be read."""
    with (
        contextlib.suppress(ProfileError),
        regular_file(path) as descriptor,
        open(descriptor, "rb", closefd=False) as file,
    ):
        data = file.read(MOST_BYTES + 1)
        return data if len(data) <= MOST_BYTES else data[: data.rfind(b"\n", 0, MOST_BYTES) + 1]
    return None


def _excerpt(path: str, data: bytes, line: int, around: int) -> SourceExcerpt | None:
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    if not 1 <= line <= len(lines):
        return None
    first = max(1, line - around)
    shown = tuple(map(_shown, lines[first - 1 : line + around]))
    return SourceExcerpt(printable(path), first, shown, line - first)


def _shown(line: bytes) -> str:
    # A character takes at most 4 bytes, so this much decodes to all that is kept.
    text = line[: 4 * LONGEST_LINE].decode("utf-8", "replace").expandtabs(_TAB)
    return printable(text[:LONGEST_LINE])[:LONGEST_LINE]
