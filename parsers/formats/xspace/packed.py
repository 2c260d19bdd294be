"""Files that are no XSpace as they lie on disk: gzip, Riegeli, Chrome traces. They are unpacked into a spool.

Whatever a file claims, its first bytes are looked at before more is inflated, it is inflated in steps, and to no more
than `parsers.base.budget` allows. The file that was unpacked last is kept for those who open it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from threading import Lock

from tpuprof.parsers.base.budget import INFLATED_PER_BYTE, inflated_room, memory_room
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files.inflate import GZIP_MAGIC, Inflation, Stop, inflated
from tpuprof.parsers.formats.xspace.source import RIEGELI_MAGIC, XSPACE_BEGINS, ByteSource, FileSource, open_source
from tpuprof.parsers.formats.xspace.spool import Spool, SpoolSource

_STEP = 1 << 18
_HEAD = 256
_PROFILES, _TRACES = (".xplane.pb", ".xplane.pb.gz"), (".trace.json.gz", ".trace.json")


class _Last:
    """Keeps the file that was unpacked last; the bytes go when another takes its place and nobody reads them.

    Attributes:
        key: `FileSource.identity` and name of the file.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.key: object = None
        self.source: SpoolSource | None = None


_LAST = _Last()


def unpacked(source: FileSource) -> ByteSource:
    """The bytes of the XSpace in a file: the file itself, or, where it is packed, what is in it; the file is closed.

    Raises:
        ProfileError: `corrupt`, `disk_full`: it can't be unpacked.
    """
    head = source.read(0, _HEAD)
    is_riegeli = bool(head) and source.name.endswith(".riegeli")
    if not (is_riegeli or head.startswith((GZIP_MAGIC, RIEGELI_MAGIC)) or _is_trace(head)):
        return source
    with _LAST.lock:  # two who want the same file wait for one of them
        try:
            key, inside = (source.identity, source.name), _LAST.source
            if inside is None or _LAST.key != key:
                _LAST.source = inside = None  # never two at once
                inside = _unpack(source, head)
                inside.file_size = source.size
                _LAST.key, _LAST.source = key, inside
            return inside.shared()
        finally:
            source.close()


def instead_of(path: str, error: ProfileError) -> SpoolSource:
    """What is read in place of a file that is not a profile.

    Raises:
        ProfileError: the error, where nothing can stand in for it.
    """
    is_none = error.code in ("corrupt", "empty_file")
    other = stand_in(path, error.sentence) if is_none else None
    if other is None:
        raise error
    return other


def stand_in(path: str, why: str, size: int = 0) -> SpoolSource | None:
    """The trace for a viewer beside a damaged profile, where there is one that can be read.

    Args:
        path: of the profile.
        why: a sentence on what is wrong with it.
        size: bytes that are left of it; a compressed trace that is smaller holds less.
    """
    host = next((path.removesuffix(end) for end in _PROFILES if path.endswith(end)), "")
    for other in (f"{host}{end}" for end in _TRACES if host and os.path.isfile(f"{host}{end}")):
        if os.path.getsize(other) < size:
            continue
        try:
            source = unpacked(open_source(other))
        except ProfileError:
            continue
        if isinstance(source, SpoolSource) and source.origin:
            return source.instead_of(why)
        source.close()
    return None


def _is_trace(head: bytes) -> bool:
    """Whether a file begins like a Chrome trace; nobody else needs the module that knows."""
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return False
    from tpuprof.parsers.formats.xspace.chrome.document import begins_like_trace  # noqa: PLC0415 - for these alone

    return begins_like_trace(head)


def _unpack(source: FileSource, head: bytes) -> SpoolSource:
    if head.startswith(GZIP_MAGIC):
        stream = _Inflated(source)
        pieces = iter(stream)
        first = next(pieces, b"")
        if _is_trace(first):
            return _traced(source, chain([first], pieces), stream)
        if not first and stream.note("it"):
            sentence = f"{source.name} can't be inflated: {stream.note('it')}."
            raise ProfileError("corrupt", sentence, "copy or capture it again")
        spool = Spool()
        if first[:1] in (b"", *XSPACE_BEGINS):
            for piece in chain([first], pieces):
                spool.append(piece)
        else:
            spool.append(first[:_HEAD])  # whoever reads it says that it is not a profile
        return SpoolSource(spool, [(0, spool.size)] if spool.size else [], source.name, stream.note("profile"))
    if _is_trace(head):
        return _traced(source, _pieces(source), None)
    from tpuprof.parsers.formats.xspace.riegeli.merge import riegeli_source  # noqa: PLC0415 - for these alone

    return riegeli_source(source)


def _traced(source: FileSource, pieces: Iterator[bytes], stream: _Inflated | None) -> SpoolSource:
    """The XSpace that a Chrome trace was made from."""
    from tpuprof.parsers.formats.xspace.chrome.translate import chrome_source  # noqa: PLC0415 - for these alone

    why_cut = (lambda: "") if stream is None else lambda: stream.note("trace")
    return chrome_source(pieces, source.name, why_cut, memory_room(source.size))


def _pieces(source: FileSource) -> Iterator[bytes]:
    for offset in range(0, source.size, _STEP):
        yield source.read(offset, _STEP)


_WHY: dict[Stop, str] = {
    "cut": "the gzip stream ends early, after {size} bytes of {what}",
    "damaged": "the gzip stream is damaged after {size} bytes of {what}",
    "too_large": f"the gzip stream grows past {INFLATED_PER_BYTE} times its size; the rest is not read",
}


class _Inflated:
    """The bytes in a gzip file, some at a time."""

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self._why = ""
        self._size = 0

    def note(self, what: str) -> str:
        """What is missing of a profile or a trace; empty where nothing is, as far as it was read."""
        return self._why.format(size=f"{self._size:,}", what=what)

    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in inflated(_pieces(self._source), inflated_room(self._source.size), 4 * _STEP):
                self._size += len(piece)
                yield piece
        except Inflation as inflation:
            self._why = _WHY[inflation.stop]
