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
import struct
import tarfile
import tempfile
import weakref
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import lru_cache, partial
from typing import BinaryIO, NamedTuple

from tpuprof.parsers.base.budget import INFLATED_PER_BYTE, inflated_room
from tpuprof.parsers.base.cache import CacheFolder, is_unwritable
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, Problem, ProfileError
from tpuprof.parsers.base.folders import opened, status
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.files.file_kinds import GZIP, ZIP
from tpuprof.parsers.files.folder_search import is_pprof_name, kind_of
from tpuprof.parsers.files.inflate import Inflation, inflated

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
    """Unpacks what is of interest in an archive, unless it is there already.

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
            with cache.new_folder(key) as begun:
                cache.remove(key)  # it is damaged
                _unpack(path, begun)
                cache.finish(begun, key)
                kept = _kept(cache, key, path)
            cache.make_room()
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
            for member in _members(file, most, left_out):
                if seen >= _MOST_MEMBERS:
                    left_out["what follows the first 200,000 files"] += 1
                    break
                first += [member.name[:_SHOWN_NAME]] if seen < _EXAMPLES else []
                seen += 1
                if _is_wanted(member.name):
                    files += _written(member, folder, left_out)
    except _Broken as broken:
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


def _written(member: _Member, folder: str, left_out: Counter[str]) -> bool:
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


# --- the members of an archive, one after the other, within bounds that no header can lift

_CHUNK = 1 << 18
_BLOCK, _LONGEST_HEADER = 512, 1 << 16
_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz")
_UNKNOWN_OR_REGULAR = (0, 8)  # kinds of files in a zip, as Unix says them
_NO_DATA = tuple(b"%d" % kind for kind in range(1, 7))  # nothing but a header: links, devices, folders, pipes
_OLD_GNU = b"ustar  "  # where POSIX has the beginning of the name, it has times
_SIZE = re.compile(r"[0-9]{1,18}")
_RECORD = re.compile(rb"([0-9]{1,7}) ")


class _Broken(Exception):
    """An archive that can't be read on; says why."""


class _Member(NamedTuple):
    """A regular file in an archive: its name, when it was modified (seconds since 1970), and what gives its content,
    to be asked before the next member is.
    """

    name: str
    modified: float
    pieces: Callable[[], Iterator[bytes]]


def _members(file: BinaryIO, most: int, left_out: Counter[str]) -> Iterator[_Member]:
    """The regular files of an archive, in order.

    Raises:
        _Broken: it is damaged, or grows to more than `most` bytes; members before that were given.
    """
    begin = file.read(2 * _BLOCK)
    file.seek(0)
    if begin.startswith(ZIP):
        yield from _of_zip(file, most, left_out)
        return
    chunks = iter(lambda: file.read(_CHUNK), b"")
    packed = begin.startswith(GZIP)
    yield from _of_tar(_Stream(inflated(chunks, most, _CHUNK) if packed else chunks), left_out)


def _of_zip(file: BinaryIO, most: int, left_out: Counter[str]) -> Iterator[_Member]:
    packed = file.seek(0, os.SEEK_END)
    spare = most - INFLATED_PER_BYTE * packed  # beyond what their own bytes justify

    def pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
        nonlocal most, packed, spare
        own = min(entry.compress_size, packed)
        packed -= own
        given, room = 0, min(most, INFLATED_PER_BYTE * own + max(0, spare) // 2)
        try:
            with archive.open(entry) as member:
                while piece := member.read(min(_CHUNK, room + 1 - given)):
                    given += len(piece)
                    if given > room:
                        left_out[f"the ends of files that grow to more than {INFLATED_PER_BYTE} times their size"] += 1
                        break
                    yield piece
        except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, NotImplementedError):
            left_out["the ends of damaged files"] += 1
        finally:
            most -= given
            spare -= max(0, given - INFLATED_PER_BYTE * own)

    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, struct.error, ValueError, NotImplementedError, EOFError, OverflowError) as error:
        raise _Broken("its table of files is damaged or cut off") from error
    for entry in archive.infolist():
        if entry.flag_bits & 1:
            left_out["files behind a password"] += 1
        elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            left_out["files with an unsupported compression"] += 1
        elif not entry.filename.endswith("/") and (entry.external_attr >> 28) in _UNKNOWN_OR_REGULAR:
            name = _noted(entry.filename, left_out)
            yield _Member(name, _local_time(entry.date_time), partial(pieces, archive, entry))


def _local_time(date: tuple[int, int, int, int, int, int]) -> float:
    """Seconds since 1970 of a time that zip gives without a zone; 0 for what is none."""
    try:
        return datetime(*date).timestamp()
    except (ValueError, OverflowError, OSError, TypeError):
        return 0.0


def _noted(name: str, left_out: Counter[str]) -> str:
    """A member's name; takes note of an archive within."""
    left_out["archives inside it"] += name.lower().endswith(_ARCHIVES)
    return name


class _Stream:
    """Bytes that come in pieces, read in the sizes that are asked for."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def pieces(self, size: int) -> Iterator[bytes]:
        """The next bytes, some at a time.

        Raises:
            _Broken: they end before.
        """
        while size:
            try:
                data = self._rest or next(self._chunks, b"")
            except Inflation as stopped:
                whys = {"cut": "its end is missing", "damaged": "it is damaged from some place on"}
                raise _Broken(whys.get(stopped.stop, f"more than {INFLATED_PER_BYTE} times its size")) from stopped
            if not data:
                raise _Broken("its end is missing")
            piece, self._rest = data[:size], data[size:]
            size -= len(piece)
            yield piece

    def read(self, size: int) -> bytes:
        return b"".join(self.pieces(size))

    def skip(self, size: int) -> None:
        for _ in self.pieces(size):
            pass


def _of_tar(stream: _Stream, left_out: Counter[str]) -> Iterator[_Member]:
    """Members by POSIX's and GNU's headers: a long name or size stands in a header of its own before the member's.

    `tarfile` decodes each header, a block at a time. What leads from one to the next stays here: `tarfile` reads a
    header as long as it claims to be, searches it in quadratic time before Python 3.12.6, and recurses once for each.
    """
    further: dict[str, str] = {}
    while True:
        header = stream.read(_BLOCK)
        if not any(header):
            return
        try:
            info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as error:
            raise _Broken("it is damaged from some place on") from error
        if info.size < 0:
            raise _Broken("it is damaged from some place on")
        kind = header[156:157]
        if kind in (b"L", b"K", b"x", b"g"):
            further |= _further(kind, stream, info.size)
            continue
        size = int(further["size"]) if _SIZE.fullmatch(further.get("size", "")) else info.size
        name = further.get("path") or (_text(header[:100]) if header.startswith(_OLD_GNU, 257) else info.name)
        is_sparse = kind == b"S" or any(key.startswith("GNU.sparse") for key in further)
        further = {}
        if kind == b"S" and header[482]:
            while stream.read(_BLOCK)[504]:
                pass
        if kind in _NO_DATA:
            left_out["links and devices"] += kind != b"5"
            continue
        rest = [size]
        if kind in (b"0", b"\0", b"7") and not is_sparse and not name.endswith("/") and not info.isdir():
            yield _Member(_noted(name, left_out), info.mtime, partial(_content, stream, rest))
        stream.skip(rest[0])
        stream.skip(-size % _BLOCK)


def _content(stream: _Stream, rest: list[int]) -> Iterator[bytes]:
    """A member's bytes; notes how many are left to pass over."""
    for piece in stream.pieces(rest[0]):
        rest[0] -= len(piece)
        yield piece


def _further(kind: bytes, stream: _Stream, size: int) -> dict[str, str]:
    """What a header says about the member that follows: its name and size."""
    if size > _LONGEST_HEADER or kind in b"gK":
        stream.skip(size + -size % _BLOCK)
        return {}
    data = stream.read(size)
    stream.skip(-size % _BLOCK)
    return {"path": _text(data)} if kind == b"L" else _records(data)


def _records(data: bytes) -> dict[str, str]:
    """The records of a pax header that matter here, each ``length key=value`` and a newline; up to a damaged one."""
    found, begin = {}, 0
    while match := _RECORD.match(data, begin):
        end = begin + int(match[1])
        key, equals, value = data[match.end() : end].partition(b"=")
        if end <= match.end() or not equals:
            break
        if key in (b"path", b"size", b"GNU.sparse.major", b"GNU.sparse.size"):
            found[_text(key)] = _text(value.rstrip(b"\n"))
        begin = end
    return found


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
