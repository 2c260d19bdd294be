"""Archives of a logdir: ``.zip``, ``.tar`` and ``.tar.gz``, read in place.

What may be a profile, a trace, or a compiled module by its name is unpacked into the user's cache folder, once for each
state of the archive; nothing is ever written beside it, and what was used longest ago leaves first. Only regular files
are unpacked, under names that lead nowhere else; links, devices and archives within are left out. Whatever an archive
claims, it is inflated in steps, and to no more than `_RATIO` times its size.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import struct
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import BinaryIO, NamedTuple

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, Problem, ProfileError
from tpuprof.parsers.base.folders import cache_folder
from tpuprof.parsers.base.inflate import Inflation, inflated
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.files.folder_search import is_pprof_name, kind_of
from tpuprof.parsers.files.recognise import GZIP, ZIP

BOUND_BYTES = 20_000_000_000
"""That all unpacked archives may take together."""

_LEFT_SECONDS = 24 * 3600  # nobody unpacks for so long
_RATIO, _FLOOR = 100, 64 << 20  # gzip makes a profile some 5 times smaller
_CHUNK = 1 << 18
_MOST_MEMBERS, _MOST_DEPTH, _MOST_NAME = 200_000, 32, 255
_BLOCK, _LONGEST_HEADER = 512, 1 << 20
_MODULES = re.compile(r".+\.(?:hlo|hlo_snapshot|hlo_module)\.pb(?:\.gz)?|module_\d+\..+\.txt", re.DOTALL)
_INSIDE = (".zip", ".tar", ".tgz", ".tar.gz")
_NO_DATA = b"123456"  # types of tar members that are nothing but a header: links, devices, folders, pipes
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
    left_out, seen, files = Counter[str](), list[str](), 0
    most = min(BOUND_BYTES, max(_FLOOR, _RATIO * size))
    try:
        with open(path, "rb") as file:
            for member in _members(file, most, left_out):
                if len(seen) >= _MOST_MEMBERS:
                    left_out["what follows the first 200,000 files"] += 1
                    break
                seen.append(member.name)
                if _is_wanted(member.name):
                    files += _written(member, folder, left_out)
    except _Broken as broken:
        left_out[str(broken)] += 1
    if not files and not seen:
        why = examples([what for what, count in left_out.items() if count], 1) or "it is empty"
        raise ProfileError("corrupt", f"Nothing can be read of the archive {printable(path)}: {why}.", _HINT)
    if not files:
        sentence = f"The archive {printable(path)} holds no profile (*.xplane.pb), only {examples(seen)}."
        raise ProfileError("not_found", sentence, _HINT, EXIT_NOT_FOUND)
    problems = [f"Left out of {printable(path)}: {what} ({count:,})." for what, count in left_out.items() if count]
    with open(os.path.join(begun, "whole", "told.json"), "w", encoding="utf-8") as told:
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
        _Broken: it is damaged, or holds more than `most` bytes; members before that were given.
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
    given = 0

    def pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
        nonlocal given
        try:
            with archive.open(entry) as member:
                while piece := member.read(_CHUNK):
                    given += len(piece)
                    if given > most:
                        raise _Broken("more than a hundred times its size")
                    yield piece
        except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, NotImplementedError):
            left_out["the ends of damaged files"] += 1

    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, struct.error, ValueError, NotImplementedError, EOFError, OverflowError) as error:
        raise _Broken("its table of files is damaged or cut off") from error
    for entry in archive.infolist():
        if entry.flag_bits & 1:
            left_out["files behind a password"] += 1
        elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            left_out["files that are packed in an uncommon way"] += 1
        elif not entry.filename.endswith("/") and (entry.external_attr >> 28) in (
            0,
            8,
        ):  # as Unix says it: unknown, or regular
            yield _Member(
                _noted(entry.filename, left_out), _local_time(entry.date_time), partial(pieces, archive, entry)
            )


def _local_time(date: tuple[int, int, int, int, int, int]) -> float:
    """Seconds since 1970 of a time that zip gives without a zone; 0 for what is none."""
    try:
        return datetime(*date).timestamp()
    except (ValueError, OverflowError, OSError, TypeError):
        return 0.0


def _noted(name: str, left_out: Counter[str]) -> str:
    """A member's name; takes note of an archive within."""
    left_out["archives within"] += name.lower().endswith(_INSIDE)
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
                raise _Broken(whys.get(stopped.stop, f"more than {_RATIO} times its size")) from stopped
            if not data:
                raise _Broken("its end is missing")
            piece, self._rest = data[:size], data[size:]
            size -= len(piece)
            yield piece

    def read(self, size: int) -> bytes:
        """The next bytes at once; only for few."""
        return b"".join(self.pieces(size))

    def skip(self, size: int) -> None:
        """Passes over bytes."""
        for _ in self.pieces(size):
            pass


def _of_tar(stream: _Stream, left_out: Counter[str]) -> Iterator[_Member]:
    """Members by POSIX's and GNU's headers: a long name or size stands in a header of its own before the member's."""
    told: dict[str, str] = {}
    while True:
        header = stream.read(_BLOCK)
        if not any(header):
            return
        kind, size = header[156:157], _number(header[124:136])
        if not _sum_fits(header) or size is None:
            raise _Broken("it is damaged from some place on")
        if kind in b"LxgK" and kind:
            told |= _further(kind, stream, size)
            continue
        size = int(told["size"]) if told.get("size", "").isdecimal() and len(told["size"]) < 19 else size
        prefix = header[345:500] if header[257:263] == b"ustar\0" else b""
        name = told.get("path") or "/".join(filter(None, (_text(prefix), _text(header[:100]))))
        is_sparse = kind == b"S" or any(key.startswith("GNU.sparse") for key in told)
        told = {}
        if kind == b"S" and header[482]:
            while stream.read(_BLOCK)[504]:
                pass
        if kind and kind in _NO_DATA:
            left_out["links and devices"] += kind != b"5"
            continue
        rest = [size]
        if kind in (b"0", b"\0", b"7") and not is_sparse and not name.endswith("/"):
            modified = _number(header[136:148]) or 0
            yield _Member(_noted(name, left_out), modified, partial(_content, stream, rest))
        stream.skip(rest[0])
        stream.skip(-size % _BLOCK)


def _content(stream: _Stream, rest: list[int]) -> Iterator[bytes]:
    """A member's bytes; notes how many are left to pass over."""
    for piece in stream.pieces(rest[0]):
        rest[0] -= len(piece)
        yield piece


def _further(kind: bytes, stream: _Stream, size: int) -> dict[str, str]:
    """What a header tells of the member behind it: its name and size."""
    if size > _LONGEST_HEADER or kind in b"gK":
        stream.skip(size + -size % _BLOCK)
        return {}
    data = stream.read(size)
    stream.skip(-size % _BLOCK)
    if kind == b"L":
        return {"path": _text(data)}
    told = {}
    while match := re.match(rb"([0-9]{1,7}) ", data):
        record, data = data[match.end() : int(match[1])], data[max(int(match[1]), match.end()) :]
        key, _, value = record.rstrip(b"\n").partition(b"=")
        if key in (b"path", b"size", b"GNU.sparse.major", b"GNU.sparse.size"):
            told[_text(key)] = _text(value)
    return told


def _number(field: bytes) -> int | None:
    """A size: octal digits, or where it is large the bytes themselves; None for what is neither."""
    if field[0] == 0x80:
        return int.from_bytes(field[4:], "big")
    digits = field.rstrip(b" \0").lstrip(b" ") or b"0"
    return int(digits, 8) if re.fullmatch(rb"[0-7]+", digits) else None


def _sum_fits(header: bytes) -> bool:
    """Whether a header's checksum is that of its bytes; old writers added signed ones."""
    told = _number(header[148:156])
    blank = header[:148] + b" " * 8 + header[156:]
    return told in (sum(blank), sum(byte - 256 * (byte > 127) for byte in blank))


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
