"""Where a report goes: standard output, or a file that is whole or not there.

A report that may be larger than memory is handed over as a function, which is given another one to write with.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO, Literal

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable

if TYPE_CHECKING:
    import gzip  # only for files that are to be compressed

Write = Callable[[bytes], object]
Produce = Callable[[Write], None]  # makes a report: calls what it is given with piece after piece
_COMPRESSION = 6
_FOR_ME = 0o600


def text_pieces(pieces: Iterable[str]) -> Produce:
    """What makes a report of pieces of text, in UTF-8; no character makes it fail."""

    def produce(write: Write) -> None:
        for piece in pieces:
            write(piece.encode("utf-8", "backslashreplace"))

    return produce


def write_stdout(text: str) -> None:
    """Writes a text to standard output, as `stream_stdout` does."""
    stream_stdout(text_pieces((text,)))


def stream_stdout(produce: Produce) -> None:
    """Writes a report to standard output piece by piece, in UTF-8 whatever the locale.

    Raises:
        BrokenPipeError: nobody reads it any more.
        ProfileError: it can't be written otherwise, as on a full disk.
    """
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(encoding="utf-8", errors="backslashreplace")

    def write(piece: bytes) -> None:
        with _telling("Standard output"):
            out.write(piece.decode("utf-8"))

    produce(write)
    with _telling("Standard output"):
        out.flush()


def stream_file(path: str, produce: Produce, compressed: bool = False, *, is_private: bool = False) -> None:
    """Writes a file in one move: a reader sees the old one or the whole new one. Devices and pipes are written into.

    Args:
        compressed: with gzip, without time and name, so that the same report is the same file.
        is_private: for this user's eyes alone.

    Raises:
        ProfileError: it can't be written; nothing is left behind, whatever goes wrong.
    """
    target, shown = os.path.realpath(path), printable(path)
    if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
        with _opened(target, "wb", shown) as device:
            _fill(device, produce, compressed, shown)
        return
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{os.getpid()}.tmp")
    try:
        with _opened(temporary, "xb", shown) as file:
            if is_private:
                os.fchmod(file.fileno(), _FOR_ME)
            _fill(file, produce, compressed, shown)
            with _telling(shown):
                os.fsync(file.fileno())
        with _telling(shown):
            if os.path.exists(target) and not is_private:
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _opened(path: str, mode: Literal["wb", "xb"], shown: str) -> BinaryIO:
    with _telling(shown):
        return open(path, mode)


def _fill(file: BinaryIO, produce: Produce, compressed: bool, shown: str) -> None:
    out: BinaryIO | gzip.GzipFile = file
    if compressed:
        import gzip  # noqa: PLC0415 - only here

        out = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=_COMPRESSION)

    def write(piece: bytes) -> None:
        with _telling(shown):
            out.write(piece)

    try:
        produce(write)
        with _telling(shown):
            if out is not file:
                out.close()  # of the compression only
            file.flush()
    except BaseException:
        with contextlib.suppress(OSError):  # what could not be written would be tried again
            out.close()
        with contextlib.suppress(OSError):
            file.close()
        raise


@contextlib.contextmanager
def _telling(what: str) -> Iterator[None]:
    """Says of what the system refuses that it can't be written; a reader that stopped reading is another matter."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        sentence = f"{what} can't be written: {printable((error.strerror or str(error)).lower())}."
        raise ProfileError("output", sentence, "write it somewhere else", EXIT_USAGE) from error
