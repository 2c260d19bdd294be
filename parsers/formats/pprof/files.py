"""Files that may hold a pprof profile: recognised by their first bytes, found in folders, inflated within bounds."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from itertools import chain

from tpuprof.parsers.base.budget import Budget, inflated_room
from tpuprof.parsers.base.errors import ProfileError, unreadable
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import printable_url
from tpuprof.parsers.files.folder_search import is_pprof_name
from tpuprof.parsers.files.inflate import Inflation, inflated
from tpuprof.parsers.files.logdir import is_remote, local_path
from tpuprof.parsers.formats.pprof.messages import Pprof, begins_like_pprof, read_messages
from tpuprof.parsers.formats.xspace.source import GZIP_MAGIC, MemorySource

LARGEST_BYTES = 256 << 20
"""Inflated; JAX's are some megabytes."""

_FLOOR = 4 << 20  # stacks share most of their frames: they shrink some 3 to 30 times
_CHUNK = 1 << 18
_FIRST = 64  # bytes that identify the format
_AGAIN = "write it again: jax.profiler.save_device_memory_profile(FILE)"


def is_pprof(path: str) -> bool:
    """Whether a path leads to a regular file on this machine that begins like a pprof profile; never raises.

    Of a URL the name alone decides.
    """
    if is_remote(path):
        return is_pprof_name(path)
    with contextlib.suppress(ProfileError, OSError, Inflation), _opened(local_path(path)) as descriptor:
        return begins_like_pprof(_begin(_pieces(descriptor, _FIRST, _FIRST)))
    return False


def read_pprof(path: str) -> Pprof:
    """Reads a profile, compressed or not; a URL is fetched into the cache first.

    Raises:
        ProfileError: `not_found`, `unreadable`, `not_a_file`, `empty_file`, `not_pprof`, `too_large`, `corrupt`; for a
            URL also what `parsers.files.remote.cache.open_remote` raises.
    """
    is_far = is_remote(path)
    name = printable_url(path) if is_far else printable(os.path.basename(path))
    out, notes = bytearray(), []
    with _opened(path if is_far else local_path(path), is_far) as descriptor:
        size = os.fstat(descriptor).st_size
        if not size:
            raise ProfileError("empty_file", f"{name} holds 0 bytes.", _AGAIN)
        most = min(LARGEST_BYTES, inflated_room(size, _FLOOR))
        try:
            pieces = _pieces(descriptor, most, _CHUNK)
            out += _begin(pieces)
            if not begins_like_pprof(out):
                raise ProfileError("not_pprof", f"{name} does not start like a pprof profile.", _AGAIN)
            for piece in pieces:
                out += piece
        except Inflation as stopped:
            if stopped.stop == "too_large":
                sentence = f"{name} inflates to more than {most:,} bytes, too many for a profile of memory."
                raise ProfileError("too_large", sentence, "is it another file?") from stopped
            what = "ends early" if stopped.stop == "cut" else "is damaged"
            notes.append(f"the file's gzip stream {what}, after {stopped.given:,} bytes of the profile")
        except OSError as error:
            raise unreadable(path, error) from error
    profile = read_messages(MemorySource(out, name), name, Budget(size, name))
    return Pprof(profile.types, profile.samples, profile.time_ns, (*notes, *profile.notes))


def _begin(pieces: Iterator[bytes]) -> bytes:
    """The first pieces, enough to identify the format: a stream may yield its first bytes one at a time."""
    begin = b""
    while len(begin) < _FIRST and (piece := next(pieces, b"")):
        begin += piece
    return begin


def _pieces(descriptor: int, most: int, step: int) -> Iterator[bytes]:
    """The content of a file in pieces, inflated where it begins like gzip; at most `most` bytes."""
    chunks = _chunks(descriptor, step)
    first = next(chunks, b"")
    if first.startswith(GZIP_MAGIC):
        yield from inflated(chain([first], chunks), most, step)
        return
    given = 0
    for chunk in chain([first], chunks):
        given += len(chunk)
        if given > most:
            yield chunk[: most - given]
            raise Inflation("too_large", most)
        yield chunk


def _chunks(descriptor: int, step: int) -> Iterator[bytes]:
    offset = 0
    while chunk := os.pread(descriptor, step, offset):
        offset += len(chunk)
        yield chunk


@contextlib.contextmanager
def _opened(path: str, is_far: bool = False) -> Iterator[int]:
    """A regular file's descriptor; it does not wait for a pipe that nobody writes to."""
    try:
        if is_far:
            from tpuprof.parsers.files.remote.cache import open_remote  # noqa: PLC0415 - for URLs alone

            descriptor = open_remote(path)
        else:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ProfileError("not_a_file", f"{printable(path)} is not a regular file.", "name a file, or its folder")
        yield descriptor
    finally:
        os.close(descriptor)
