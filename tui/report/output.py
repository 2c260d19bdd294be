"""All that headless commands write: to standard output and standard error, or to a file that is whole or not there.

Python's own streams lose bytes without a word where they are unbuffered and the system takes less than it is given:
here every byte is written, or an error is raised.

A report that may be larger than memory is handed over as a function, which is given another one to write with.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable

Write = Callable[[bytes], object]
Produce = Callable[[Write], None]  # makes a report: calls what it is given with piece after piece
LEAST_BYTES = 1_000
"""The smallest bound that a report can be given."""

Made = str | Iterable[str] | Produce
"""What a writer makes of a page: a text, its pieces one after the other, or a function that writes it."""

_COMPRESSION = 6
_GZIP = 31  # zlib's number for gzip with the largest window
_GATHERED = 1 << 16  # bytes that are kept until they are written together
_FOR_ME = 0o600


class NobodyReads(Exception):
    """The reader of a pipe has stopped reading, as `head` does; nothing is wrong."""


def text_pieces(pieces: Iterable[str]) -> Produce:
    """What makes a report of pieces of text, in UTF-8; no character makes it fail."""

    def produce(write: Write) -> None:
        for piece in pieces:
            write(piece.encode("utf-8", "backslashreplace"))

    return produce


def whole(made: Made) -> str:
    """A page as one text."""
    if callable(made):
        pieces: list[bytes] = []
        made(pieces.append)
        return b"".join(pieces).decode("utf-8")
    return made if isinstance(made, str) else "".join(made)


def write_stdout(text: str) -> None:
    """Writes a text to standard output, as `stream_stdout` does."""
    stream_stdout(text_pieces((text,)))


def stream_stdout(produce: Produce) -> None:
    """Writes a report to standard output piece by piece, in UTF-8 whatever the locale.

    Raises:
        NobodyReads: nobody reads it any more.
        ProfileError: it can't be written otherwise, as on a full disk.
    """
    with _telling("Standard output"):
        descriptor = _descriptor(sys.stdout)
    if descriptor is None:
        produce(lambda piece: sys.stdout.write(piece.decode("utf-8")))
        return
    with _gathering(descriptor, "Standard output") as write:
        produce(write)


def write_stderr(text: str) -> None:
    """Writes a text to standard error, in its encoding; where it can't be written, nobody can be told so."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = _descriptor(sys.stderr)
        if descriptor is None:
            sys.stderr.write(text)
        else:
            _write_all(descriptor, text.encode(sys.stderr.encoding or "utf-8", "backslashreplace"))


def stream_file(path: str, produce: Produce, compressed: bool = False, *, is_private: bool = False) -> None:
    """Writes a file in one move: a reader sees the old one or the whole new one. Devices and pipes are written into.

    Args:
        compressed: with gzip, without time and name, so that the same report is the same file.
        is_private: for this user's eyes alone.

    Raises:
        NobodyReads: it is a pipe that nobody reads any more.
        ProfileError: it can't be written; nothing is left behind, whatever goes wrong.
    """
    target, shown = os.path.realpath(path), printable(path)
    produce = _compressed(produce) if compressed else produce
    if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
        _fill(target, os.O_TRUNC, shown, produce)
        return
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:50]}.{os.urandom(4).hex()}.tmp")
    with _gone_unless_done(temporary):
        _fill(temporary, os.O_CREAT | os.O_EXCL, shown, produce, _FOR_ME if is_private else 0o666)
        with _telling(shown):
            if os.path.exists(target) and not is_private:
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
            os.replace(temporary, target)


def _fill(path: str, flags: int, shown: str, produce: Produce, mode: int = 0) -> None:
    """Opens a file and writes into it; what is a file on a disk is on it then."""
    with _telling(shown):
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, mode)
    try:
        with _gathering(descriptor, shown) as write:
            produce(write)
        if flags & os.O_CREAT:
            with _telling(shown):
                os.fsync(descriptor)
    finally:
        with _telling(shown):
            os.close(descriptor)


def _compressed(produce: Produce) -> Produce:
    """The same, with gzip."""

    def packed(write: Write) -> None:
        packer = zlib.compressobj(_COMPRESSION, wbits=_GZIP)
        produce(lambda piece: write(packer.compress(piece)))
        write(packer.flush())

    return packed


@contextlib.contextmanager
def _gone_unless_done(path: str) -> Iterator[None]:
    """A file that is written inside is removed if that fails, and if a signal ends the process."""

    def end(number: int, _: object) -> None:
        with contextlib.suppress(OSError):
            os.unlink(path)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    handled = []
    with contextlib.suppress(ValueError):  # not on the main thread, which alone gets signals
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, end)
                handled.append(number)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def _gathering(descriptor: int, what: str) -> Iterator[Write]:
    """What takes pieces and writes them, small ones together; at its end all are written."""
    kept: list[bytes] = []
    size = 0

    def write(piece: bytes) -> None:
        nonlocal size
        kept.append(piece)
        size += len(piece)
        if size >= _GATHERED:
            flush()

    def flush() -> None:
        nonlocal size
        with _telling(what):
            _write_all(descriptor, b"".join(kept))
        kept.clear()
        size = 0

    yield write
    flush()


def _write_all(descriptor: int, data: bytes) -> None:
    """Writes every byte, waiting for a reader where the descriptor does not block.

    The system may take a part: before a disk is full, at a limit, or where a signal comes.

    Raises:
        OSError: the rest can't be written.
    """
    rest = memoryview(data)
    while rest:
        try:
            taken = os.write(descriptor, rest)
        except BlockingIOError:
            select.select((), (descriptor,), ())
            continue
        if not taken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rest = rest[taken:]


def _descriptor(stream: Any) -> int | None:  # noqa: ANN401 - whatever stands for a standard stream
    """The descriptor of a stream, after all that Python holds back for it; None where it only stands for one."""
    try:
        descriptor: int = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None
    stream.flush()
    return descriptor


@contextlib.contextmanager
def _telling(what: str) -> Iterator[None]:
    """Says of what the system refuses that it can't be written; a reader that stopped reading is another matter."""
    try:
        yield
    except BrokenPipeError as error:
        raise NobodyReads from error
    except OSError as error:
        sentence = f"{what} can't be written: {printable((error.strerror or str(error)).lower())}."
        raise ProfileError("output", sentence, "write it somewhere else", EXIT_USAGE) from error
