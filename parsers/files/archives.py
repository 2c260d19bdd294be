"""Archives of a logdir: ``.zip``, ``.tar`` and ``.tar.gz``, read in place.

What may be a profile, a trace, or a compiled module by its name is unpacked into the user's cache folder, once for each
state of the archive; nothing is ever written beside it, and what was used longest ago leaves first. Where that folder
can't be written, a temporary one serves as long as this process lasts. Only regular files
are unpacked, under names that lead nowhere else; links, devices and archives within are left out. Whatever an archive
claims, it is inflated in steps, and to no more than `parsers.base.budget` allows.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import weakref
from collections import Counter
from functools import lru_cache

from tpuprof.parsers.base.budget import inflated_room
from tpuprof.parsers.base.cache import CacheFolder, is_unwritable
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, Problem, ProfileError
from tpuprof.parsers.base.folders import content_below, opened, status
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.files.archive_members import Broken, Member, members
from tpuprof.parsers.files.folder_search import is_pprof_name, kind_of

_FLOOR = 64 << 20  # bytes that any archive may be inflated to: they go to the disk
BOUND_BYTES = 20_000_000_000
"""That all unpacked archives may take together."""

_MOST_MEMBERS, _MOST_DEPTH, _MOST_NAME = 200_000, 32, 255
_EXAMPLES, _SHOWN_NAME = 3, 255  # of what an archive without a profile holds instead
_MODULES = re.compile(r".+\.(?:hlo|hlo_module)\.pb(?:\.gz)?|module_\d+\..+\.txt", re.DOTALL)
_INSIDE = "in"  # the folder of an entry above what was unpacked
_DESCRIPTION = "told.json"  # beside it: what to know of that
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
    """Unpacks what is of interest in an archive, unless it is there already; waits while another process does so.

    Raises:
        ProfileError: `not_found`, exit code 3, where nothing in it is of interest; `corrupt` where nothing of it can
            be read; `unreadable`, `disk_full`.
    """
    shown, cache = printable(path), CacheFolder("archives", BOUND_BYTES)
    try:
        identity = _identity(path)
        key = hashlib.sha256(repr(identity).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        kept = _kept(cache, key, path)
        if kept is None:
            with cache.begun(key) as (begun, descriptor):
                kept = _kept(cache, key, path)
                if kept is None:
                    cache.remove(key)  # it is damaged
                    _unpack(path, begun)
                    cache.make_room(content_below(begun)[0], key)
                    cache.finish(begun, descriptor, key)
                    kept = _kept(cache, key, path)
    except OSError as error:
        if is_unwritable(error):
            with contextlib.suppress(OSError):
                return _described(_for_now(path, _identity(path)).folder, path)
        is_full = error.errno in (28, 122)
        folder = printable(cache.folder)
        sentence = f"{shown} can't be unpacked into {folder}: {(error.strerror or str(error)).lower()}."
        hint = "free some room, or set XDG_CACHE_HOME to a folder on a larger disk" if is_full else _HINT
        raise ProfileError("disk_full" if is_full else "unreadable", sentence, hint) from error
    if kept is None:  # what has its name there is another user's
        return _described(_for_now(path, _identity(path)).folder, path)
    return kept


def _identity(path: str) -> tuple[str | int, ...]:
    """Which state of which file a path leads to; one that replaces another has another inode, or a later change."""
    state = status(path)
    return os.path.realpath(path), state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


@lru_cache(maxsize=64)  # an app opens few archives
def _for_now(path: str, identity: tuple[str | int, ...]) -> _Temporary:
    """A folder into which an archive is unpacked, for the cache folder can't be written.

    Args:
        identity: which state of which file it is.
    """
    temporary = _Temporary()
    _unpack(path, temporary.folder)
    return temporary


def _kept(cache: CacheFolder, key: str, path: str) -> Archive | None:
    """What was unpacked before, which stays until this process ends."""
    try:
        descriptor = cache.open(key, is_folder=True)
    except OSError:
        return None
    try:
        archive = _described(cache.place(key), path)
        _in_use(key, os.fstat(descriptor).st_ino)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        os.close(descriptor)
    return archive


def _described(place: str, path: str) -> Archive:
    """What was unpacked into a folder, by the description beside it.

    Raises:
        OSError, ValueError, KeyError, TypeError: it was not, or it was damaged since.
    """
    with open(os.path.join(place, _DESCRIPTION), encoding="utf-8") as file:
        told = json.load(file)
    problems = [Problem("archive", printable(path), str(sentence)) for sentence in told["problems"]]
    return Archive(os.path.join(place, _INSIDE, os.path.basename(path)), int(told["files"]), tuple(problems))


class _Temporary:
    """A folder that goes with this object, or when the process ends."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="tpuprof-tui-")
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


class _Use:
    """Keeps what was unpacked from being removed, as long as this object is there."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __del__(self) -> None:
        os.close(self._descriptor)


@lru_cache(maxsize=64)  # an app opens few archives, and their locks go when its process ends
def _in_use(key: str, inode: int) -> _Use:
    """The lock on what was unpacked; `inode` distinguishes it from what lay there before."""
    return _Use(CacheFolder("archives", BOUND_BYTES).open(key, is_folder=True))


def _unpack(path: str, begun: str) -> None:
    """Unpacks into a folder below another, under the archive's name, with a description of it beside that."""
    folder = os.path.join(begun, _INSIDE, os.path.basename(path))
    os.makedirs(folder, mode=0o700)
    left_out, first, seen, files = Counter[str](), list[str](), 0, 0
    try:
        with open(opened(path), "rb") as file:
            most = min(BOUND_BYTES, inflated_room(os.fstat(file.fileno()).st_size, _FLOOR))
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
        raise ProfileError("corrupt", f"Nothing can be read from the archive {printable(path)}: {why}.", _HINT)
    if not files:
        sentence = f"The archive {printable(path)} holds no profile (*.xplane.pb), only {examples(first, total=seen)}."
        raise ProfileError("not_found", sentence, _HINT, EXIT_NOT_FOUND)
    problems = [f"Left out of {printable(path)}: {what} ({count:,})." for what, count in left_out.items() if count]
    with open(os.path.join(begun, _DESCRIPTION), "w", encoding="utf-8") as told:
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
        file = open(path, "xb")  # noqa: SIM115 - closed below; failures here and there are reported differently
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        left_out["files whose names were there before"] += 1
        return False
    with file:
        for piece in member.pieces():
            file.write(piece)
    with contextlib.suppress(OSError, OverflowError, ValueError):
        os.utime(path, (member.modified, member.modified))  # by which runs without a time in their names are ordered
    return True
