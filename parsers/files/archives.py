"""Archives of a logdir: ``.zip``, ``.tar`` and ``.tar.gz``, read in place.

What may be a profile, a trace, or a compiled module by its name is unpacked into the user's cache folder, once for each
state of the archive; nothing is ever written beside it, and what was used longest ago leaves first. Only regular files
are unpacked, under names that lead nowhere else; links, devices and archives within are left out. Whatever an archive
claims, it is inflated in steps, and to no more than `archive_members.RATIO` times its size.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections import Counter

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, Problem, ProfileError
from tpuprof.parsers.base.folders import cache_folder
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.files.archive_members import RATIO, Broken, Member, members
from tpuprof.parsers.files.folder_search import is_pprof_name, kind_of

BOUND_BYTES = 20_000_000_000
"""That all unpacked archives may take together."""

_LEFT_SECONDS = 24 * 3600  # nobody unpacks for so long
_FLOOR = 64 << 20  # bytes that any archive may be inflated to, however small it is
_MOST_MEMBERS, _MOST_DEPTH, _MOST_NAME = 200_000, 32, 255
_EXAMPLES, _SHOWN_NAME = 3, 255  # of what an archive without a profile holds instead
_MODULES = re.compile(r".+\.(?:hlo|hlo_snapshot|hlo_module)\.pb(?:\.gz)?|module_\d+\..+\.txt", re.DOTALL)
_HINT = "unpack it, and name the folder"


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that was unpacked.

    Attributes:
        folder: where its members lie, in the cache folder.
        files: how many were unpacked.
        problems: what was left out or lost, a sentence each.
    """

    folder: str
    files: int
    problems: tuple[Problem, ...]


def unpacked(path: str) -> Archive:
    """Unpacks what is of interest in an archive, unless it is there already.

    Raises:
        ProfileError: `not_found`, exit code 3, where nothing in it is of interest; `corrupt` where nothing of it can
            be read; `unreadable`, `disk_full`, `cache`.
    """
    shown, root = printable(path), os.path.join(cache_folder(), "archives")
    try:
        status = os.stat(path)
        identity = (os.path.realpath(path), status.st_size, status.st_mtime_ns)
        key = hashlib.sha256(repr(identity).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        kept = _kept(os.path.join(root, key), path)
        if kept is not None:
            return kept
        os.makedirs(root, mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(suffix=".part", dir=root, ignore_cleanup_errors=True) as begun:
            _unpack(path, status.st_size, begun)
            _make_room(root)
            with contextlib.suppress(FileExistsError):  # another process was quicker
                os.rename(os.path.join(begun, "whole"), os.path.join(root, key))
        kept = _kept(os.path.join(root, key), path)
    except OSError as error:
        is_full = error.errno in (28, 122)
        sentence = f"{shown} can't be unpacked into {printable(root)}: {(error.strerror or str(error)).lower()}."
        hint = "free some room, or set XDG_CACHE_HOME to a folder on a larger disk" if is_full else _HINT
        raise ProfileError("disk_full" if is_full else "unreadable", sentence, hint) from error
    if kept is None:
        raise ProfileError("cache", f"What was unpacked of {shown} has gone from {printable(root)}.", "open it again")
    return kept


def _kept(place: str, path: str) -> Archive | None:
    """What was unpacked before; notes that it was used."""
    try:
        with open(os.path.join(place, "told.json"), encoding="utf-8") as file:
            told = json.load(file)
        os.utime(place)
        problems = [Problem("archive", printable(path), str(sentence)) for sentence in told["problems"]]
        return Archive(os.path.join(place, os.path.basename(path)), int(told["files"]), tuple(problems))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _make_room(root: str) -> None:
    """Removes what was used longest ago until all of it fits, and what a killed process left behind."""
    total, now = 0, time.time()
    with os.scandir(root) as entries:
        found = sorted(((entry.stat().st_mtime, entry.path) for entry in entries), reverse=True)
    for modified, path in found:
        is_begun = path.endswith(".part")
        total += 0 if is_begun else _size(path)
        if (now - modified > _LEFT_SECONDS) if is_begun else total > BOUND_BYTES:
            shutil.rmtree(path, ignore_errors=True)


def _size(folder: str) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def _unpack(path: str, size: int, begun: str) -> None:
    """Unpacks into the folder ``whole`` below another, under the archive's name, with what is to be told of it."""
    folder = os.path.join(begun, "whole", os.path.basename(path))
    os.makedirs(folder, mode=0o700)
    left_out, first, seen, files = Counter[str](), list[str](), 0, 0
    most = min(BOUND_BYTES, max(_FLOOR, RATIO * size))
    try:
        with open(path, "rb") as file:
            for member in members(file, most, left_out):
                if seen >= _MOST_MEMBERS:
                    left_out["what follows the first 200,000 files"] += 1
                    break
                first += [member.name[:_SHOWN_NAME]] if seen < _EXAMPLES else []
                seen += 1
                if _is_wanted(member.name):
                    files += _written(member, folder, left_out)
    except Broken as broken:
        left_out[str(broken)] += 1
    if not files and not seen:
        why = examples([what for what, count in left_out.items() if count], 1) or "it is empty"
        raise ProfileError("corrupt", f"Nothing can be read of the archive {printable(path)}: {why}.", _HINT)
    if not files:
        sentence = f"The archive {printable(path)} holds no profile (*.xplane.pb), only {examples(first, total=seen)}."
        raise ProfileError("not_found", sentence, _HINT, EXIT_NOT_FOUND)
    problems = [f"Left out of {printable(path)}: {what} ({count:,})." for what, count in left_out.items() if count]
    with open(os.path.join(begun, "whole", "told.json"), "w", encoding="utf-8") as told:
        json.dump({"files": files, "problems": problems}, told)


def _is_wanted(name: str) -> bool:
    base = name.replace("\\", "/").rpartition("/")[2]
    return kind_of(base) in ("profile", "hlo", "trace") or is_pprof_name(base) or bool(_MODULES.fullmatch(base))


def _written(member: Member, folder: str, left_out: Counter[str]) -> bool:
    """Writes a member below a folder; whether it did."""
    parts = [part for part in member.name.replace("\\", "/").split("/") if part not in ("", ".")]
    too_long = len(parts) > _MOST_DEPTH or any(len(os.fsencode(part)) > _MOST_NAME for part in parts)
    if ".." in parts or "\0" in member.name or too_long:
        left_out["files whose names lead elsewhere, or are too long"] += 1
        return False
    path = os.path.join(folder, *parts)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        file = open(path, "xb")  # noqa: SIM115 - closed below; what fails here is told apart from what fails there
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        left_out["files whose names were there before"] += 1
        return False
    with file:
        for piece in member.pieces():
            file.write(piece)
    with contextlib.suppress(OSError, OverflowError, ValueError):
        os.utime(path, (member.modified, member.modified))  # by which runs without a time in their names are ordered
    return True
