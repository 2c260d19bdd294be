"""The members of a ``.zip``, ``.tar`` or ``.tar.gz``, one after the other, within bounds that no header can lift."""

from __future__ import annotations

import os
import re
import struct
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import BinaryIO, NamedTuple

from tpuprof.parsers.base.budget import INFLATED_PER_BYTE
from tpuprof.parsers.files.file_kinds import GZIP, ZIP
from tpuprof.parsers.files.inflate import Inflation, inflated

_CHUNK = 1 << 18
_BLOCK, _LONGEST_HEADER = 512, 1 << 16
_INSIDE = (".zip", ".tar", ".tgz", ".tar.gz")
_NO_DATA = tuple(b"%d" % kind for kind in range(1, 7))  # nothing but a header: links, devices, folders, pipes
_OLD_GNU = b"ustar  "  # where POSIX has the beginning of the name, it has times
_SIZE = re.compile(r"[0-9]{1,18}")
_RECORD = re.compile(rb"([0-9]{1,7}) ")


class Broken(Exception):
    """An archive that can't be read on; says why."""


class Member(NamedTuple):
    """A regular file in an archive: its name, when it was modified (seconds since 1970), and what gives its content,
    to be asked before the next member is.
    """

    name: str
    modified: float
    pieces: Callable[[], Iterator[bytes]]


def members(file: BinaryIO, most: int, left_out: Counter[str]) -> Iterator[Member]:
    """The regular files of an archive, in order.

    Raises:
        Broken: it is damaged, or grows to more than `most` bytes; members before that were given.
    """
    begin = file.read(2 * _BLOCK)
    file.seek(0)
    if begin.startswith(ZIP):
        yield from _of_zip(file, most, left_out)
        return
    chunks = iter(lambda: file.read(_CHUNK), b"")
    packed = begin.startswith(GZIP)
    yield from _of_tar(_Stream(inflated(chunks, most, _CHUNK) if packed else chunks), left_out)


def _of_zip(file: BinaryIO, most: int, left_out: Counter[str]) -> Iterator[Member]:
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
        raise Broken("its table of files is damaged or cut off") from error
    for entry in archive.infolist():
        if entry.flag_bits & 1:
            left_out["files behind a password"] += 1
        elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            left_out["files with an unsupported compression"] += 1
        elif not entry.filename.endswith("/") and (entry.external_attr >> 28) in (
            0,
            8,
        ):  # as Unix says it: unknown, or regular
            yield Member(
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
    left_out["archives inside it"] += name.lower().endswith(_INSIDE)
    return name


class _Stream:
    """Bytes that come in pieces, read in the sizes that are asked for."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def pieces(self, size: int) -> Iterator[bytes]:
        """The next bytes, some at a time.

        Raises:
            Broken: they end before.
        """
        while size:
            try:
                data = self._rest or next(self._chunks, b"")
            except Inflation as stopped:
                whys = {"cut": "its end is missing", "damaged": "it is damaged from some place on"}
                raise Broken(whys.get(stopped.stop, f"more than {INFLATED_PER_BYTE} times its size")) from stopped
            if not data:
                raise Broken("its end is missing")
            piece, self._rest = data[:size], data[size:]
            size -= len(piece)
            yield piece

    def read(self, size: int) -> bytes:
        return b"".join(self.pieces(size))

    def skip(self, size: int) -> None:
        for _ in self.pieces(size):
            pass


def _of_tar(stream: _Stream, left_out: Counter[str]) -> Iterator[Member]:
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
            raise Broken("it is damaged from some place on") from error
        if info.size < 0:
            raise Broken("it is damaged from some place on")
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
            yield Member(_noted(name, left_out), info.mtime, partial(_content, stream, rest))
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
