"""Where a report goes: standard output, or a file that is whole or not there, and never among the user's profiles.

A report that may be larger than memory is handed over as a function, which is given another one to write with.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, Literal

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.folder_search import is_pprof_name, is_profile
from tpuprof.parsers.files.logdir import Logdir, local_path

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


def check_output(path: str, logdir: Logdir, inputs: Iterable[str | int] = ()) -> None:
    """Sees, before any work, that `path` may be written: it is nothing that is read, and lies in no folder of a run.

    Such is ``plugins/profile`` with all below it, and each folder that the report's own profiles lie in. A folder that
    happens to hold other profiles, such as the current one, takes a report as it takes any file.

    Args:
        inputs: files that are read beside the logdir's profiles, whatever they are called; paths, or open descriptors.

    Raises:
        ProfileError: it may not; exit code 2.
    """
    target, shown = os.path.realpath(path), printable(path)
    folder, name = os.path.split(target)
    of_runs = (path for run in logdir.runs for path in (run.path, *(host.path for host in run.hosts)))
    read = itertools.chain((local_path(logdir.query),), inputs, of_runs)
    if not path or os.path.isdir(target):
        sentence, hint = f"{shown or 'An empty path'} is not a file.", "name a file"
    elif not os.path.isdir(folder):
        sentence = f"The folder {printable(folder)} does not exist, so {shown} can't be written."
        hint = "create it first"
    elif is_profile(name) or (is_pprof_name(name) and os.path.exists(target)):
        sentence = f"{shown} is a profile, or is named like one; a report never overwrites it."
        hint = "give the report another name"
    elif _is_one_of(target, read):
        sentence = f"{shown} is a file that the report reads; a report never overwrites it."
        hint = "give the report another name"
    elif _in_run_folder(folder) or _holds_hosts(folder, logdir):
        sentence = f"{shown} lies in a folder of profiles; reports are not written beside them."
        hint = "write it to another folder"
    else:
        return
    raise ProfileError("output", sentence, hint, EXIT_USAGE)


def _is_one_of(target: str, paths: Iterable[str | int]) -> bool:
    """Whether a file is one of some others, whatever names or links lead to it."""
    try:
        file = os.stat(target)
    except OSError:
        return False  # there is none yet
    for path in paths if stat.S_ISREG(file.st_mode) else ():
        with contextlib.suppress(OSError, ValueError):
            if os.path.samestat(file, os.stat(path)):
                return True
    return False


def _in_run_folder(folder: str) -> bool:
    """Whether ``…/plugins/profile`` is the folder or above it."""
    return ("plugins", "profile") in pairwise(folder.split(os.sep))


def _holds_hosts(folder: str, logdir: Logdir) -> bool:
    """Whether a profile that is read lies in the folder."""
    files = {os.path.dirname(os.path.realpath(host.path)) for run in logdir.runs for host in run.hosts}
    return folder in files


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
    """Writes a report into an open file."""
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
