"""Files that may hold a pprof profile: recognised by their first bytes, found in folders, inflated within bounds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tpuprof.parsers.base import folders
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files.folder_search import is_pprof_name
from tpuprof.parsers.files.inflate import Inflation, content
from tpuprof.parsers.files.logdir import is_remote, local_path
from tpuprof.parsers.formats.xspace.core.api import split_fields
from tpuprof.parsers.formats.xspace.walk import VARINT

CHUNK = 1 << 18
_FIRST = 64  # bytes that identify the format


def is_pprof(path: str) -> bool:
    """Whether a path leads to a regular file on this machine that begins like a pprof profile; never raises.

    Of a URL the name alone decides.
    """
    if is_remote(path):
        return is_pprof_name(path)
    with contextlib.suppress(ProfileError, Inflation), opened(local_path(path)) as descriptor:
        return begins_like_pprof(beginning(content(descriptor, _FIRST, _FIRST)))
    return False


def begins_like_pprof(data: bytes | bytearray) -> bool:
    """Whether the first bytes may be of a pprof profile: a ValueType of two numbers, which an XSpace has not there.

    A profile that begins with its texts, as some writers have it, begins with the empty one.
    """
    if data.startswith(b"\x32\x00"):
        return True
    if len(data) < 4 or data[0] != 0x0A or not 2 <= data[1] <= 22 or len(data) < 2 + data[1]:
        return False
    body = bytes(data[2 : 2 + data[1]])
    fields = split_fields(body)
    numbers = list(zip(fields.number.tolist(), fields.wire.tolist(), strict=True))
    return fields.next == len(body) and numbers in ([(1, VARINT), (2, VARINT)], [(2, VARINT)])


def beginning(pieces: Iterator[bytes]) -> bytes:
    """The first pieces, enough to identify the format: a stream may yield its first bytes one at a time."""
    begin = b""
    while len(begin) < _FIRST and (piece := next(pieces, b"")):
        begin += piece
    return begin


def opened(path: str, is_far: bool = False) -> contextlib.AbstractContextManager[int]:
    """A regular file's descriptor, of a URL that of a copy; raises as `regular_file`."""
    if not is_far:
        return folders.regular_file(path)
    from tpuprof.parsers.files.remote.cache import open_remote  # noqa: PLC0415 - for URLs alone

    return folders.regular_file(path, open_remote)
