"""``tpuprof-tui oom FILE``: what ran out of memory in a log, on the screen or as a report.

Nothing here imports Textual before the screen is to open.
"""

from __future__ import annotations

import argparse
import io
import os
import stat
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, cast

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_UNREADABLE, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import counted, printable
from tpuprof.tui.cli.common import (
    PROGRAM,
    STREAM,
    add_debug,
    add_report,
    add_screen,
    add_width,
    can_redraw,
    line_width,
    note,
    output_file,
    report_look,
    whole_number,
    why_no_screen,
    write_report,
)
from tpuprof.tui.cli.progress import RedrawnLine
from tpuprof.tui.pages import command_named
from tpuprof.tui.terminal.detect import settle_terminal

if TYPE_CHECKING:
    from tpuprof.parsers.memory.oom.model import OomLog

OOM_FORMATS = ("text", "json", "md")
"""Formats of the report."""

AT_ONCE_BYTES = 24_000_000
"""A log up to this size is read before the screen opens: that takes less time than importing it."""
PACKED_AT_ONCE_BYTES = 2_000_000
"""And a compressed one up to this."""

_GZIP = b"\x1f\x8b"


def oom_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The command's options."""
    parser = parser_class(
        prog=f"{PROGRAM} oom",
        description="Finds out-of-memory errors of TPU programs in a log, and says what to do about them.",
        epilog=f"python train.py 2>&1 | {PROGRAM} oom -",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="the log, compressed or not; - for standard input")
    add_report(parser, parser.add_mutually_exclusive_group(), OOM_FORMATS)
    parser.add_argument("--limit", type=whole_number, default=0, metavar="N", help="buffers of each error; 0: all")
    add_width(parser)
    add_screen(parser)
    add_debug(parser)
    return parser


def run_oom(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code, 0 where the log holds an error that this understands.

    Raises:
        ProfileError: there is no such log (exit code 3), no TPU out-of-memory error in it (3), or it can't be read (4).
    """
    file = output_file(args)
    if file is not None:
        _check_output(file, args.file)
    wants_report = args.format is not None or args.output is not None
    is_shown = sys.stdout.isatty() and not wants_report
    if args.file == STREAM:
        log = _scan_stdin()
        if is_shown and log.reports and not sys.stdin.isatty() and not _take_keys_from_terminal():
            is_shown = False
        return _finish(args, log, is_shown)
    size = _checked_size(args.file)
    if is_shown and not why_no_screen() and size is not None and size > _at_once_bytes(args.file):
        return _screen(args, None, size)
    return _finish(args, _scan_file(args.file, size), is_shown)


def _finish(args: argparse.Namespace, log: OomLog, is_shown: bool) -> int:
    """Opens the screen, or writes the report."""
    if not log.reports:
        raise nothing_found(args.file, log)
    obstacle = why_no_screen()
    if is_shown and not obstacle:
        return _screen(args, log, 0)
    if args.format is None and args.output is None:
        note(f"{obstacle or 'No terminal to take keys from.'} Printing the report instead of opening the screen.")
    report = command_named("oom").load_report()
    errors = report.read(log, args.file, shown_name(args.file))
    write_report(args, report.writers[args.format or "text"](errors, report_look(args), args.limit))
    return EXIT_OK


def nothing_found(path: str, log: OomLog) -> ProfileError:
    """There is no error in the log that this understands."""
    name = "Standard input" if path == STREAM else printable(path)
    sentence = f"{name} holds no out-of-memory error of a TPU program ({counted(log.lines, 'line')} read)."
    if log.notes:
        sentence += f" {log.notes[0]}"
    hint = "the log of the process that failed, with its standard error: python train.py 2>&1 | tpuprof-tui oom -"
    if path.endswith(".xplane.pb"):
        hint = f"{PROGRAM} {printable(path)}"
    return ProfileError("no_oom", sentence, hint, EXIT_NOT_FOUND)


def shown_name(path: str) -> str:
    """A log's name before a line number: its last part, ``stdin`` for standard input."""
    return "stdin" if path == STREAM else path.rstrip("/").rpartition("/")[2] or path


# --- reading


def _checked_size(path: str) -> int | None:
    """Size of a log; None where it is no regular file, such as a pipe.

    Raises:
        ProfileError: it can't be read, or is none.
    """
    shown = printable(path)
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ProfileError("not_found", f"There is no file {shown}.", f"{PROGRAM} oom LOG", EXIT_NOT_FOUND) from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if stat.S_ISDIR(found.st_mode):
        raise ProfileError("not_found", f"{shown} is a folder, not a log.", f"{PROGRAM} oom LOG", EXIT_NOT_FOUND)
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_size


def _at_once_bytes(path: str) -> int:
    """Size up to which the log is read before the screen opens."""
    with _opened(path) as file:
        return PACKED_AT_ONCE_BYTES if file.read(len(_GZIP)) == _GZIP else AT_ONCE_BYTES


def _scan_file(
    path: str,
    size: int | None,
    on_progress: Callable[[int], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> OomLog:
    from tpuprof.parsers.memory.oom.read.scan import scan_log  # noqa: PLC0415 - only here

    line = _ProgressLine(shown_name(path), size) if on_progress is None else None
    try:
        with _opened(path) as file:
            return scan_log(file, on_progress or line or _nothing, is_cancelled or _never)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        if line is not None:
            line.clear()


def _scan_stdin() -> OomLog:
    """Reads standard input to its end; ctrl+C ends it too, so that a hanging program can be left."""
    from tpuprof.parsers.memory.oom.read.scan import scan_log  # noqa: PLC0415 - only here

    if sys.stdin is None or sys.stdin.closed:
        raise ProfileError("unreadable", "There is no standard input.", f"{PROGRAM} oom LOG", EXIT_UNREADABLE)
    if sys.stdin.isatty():
        note("Paste the log here and end it with ctrl+D on a line of its own.")
    line = _ProgressLine("standard input", None)
    piped = _Piped(sys.stdin.buffer)
    try:
        log = scan_log(cast(BinaryIO, piped), line, _never)
    except OSError as error:
        raise _unreadable("Standard input", error) from error
    finally:
        line.clear()
    if piped.stopped:
        note("Stopped reading; this is what came so far.")
    return log


class _Piped:
    """Standard input: what has come, without waiting for a full chunk."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.stopped = False

    def read(self, size: int) -> bytes:
        """What there is, at most so much; nothing at the end."""
        if self.stopped:
            return b""
        try:
            return self._stream.read1(size) if isinstance(self._stream, io.BufferedReader) else self._stream.read(size)
        except KeyboardInterrupt:
            self.stopped = True
            return b""


class _ProgressLine:
    """A line on standard error that says how far reading is, where that is a terminal and it takes long.

    A thread draws it: a pipe in which nothing comes for hours still shows that it is waited for.
    """

    FIRST_AFTER = 0.5
    EVERY = 0.5

    def __init__(self, name: str, size: int | None) -> None:
        self._name, self._size = printable(name), size
        self._bytes = 0
        self._began = time.monotonic()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        if can_redraw():
            self._thread = threading.Thread(target=self._draw, daemon=True)
            self._thread.start()

    def __call__(self, bytes_read: int) -> None:
        self._bytes = bytes_read

    def clear(self) -> None:
        """Takes the line away."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _draw(self) -> None:
        line = RedrawnLine(sys.stderr, line_width())
        pause = self.FIRST_AFTER
        while not self._done.wait(pause):
            amount = f"{self._bytes / 1e6:.1f} MB"
            if self._size:
                amount += f" of {self._size / 1e6:.1f} MB"
            minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
            line.draw(f"reading {self._name}: {amount}, {minutes}:{seconds:02}  (ctrl+C ends)")
            pause = self.EVERY
        line.clear()


def _opened(path: str) -> BinaryIO:
    try:
        return cast(BinaryIO, open(path, "rb", buffering=0))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: Exception) -> ProfileError:
    reason = printable(getattr(error, "strerror", None) or str(error)).lower()
    return ProfileError("unreadable", f"{printable(path)} can't be read: {reason}.", "", EXIT_UNREADABLE)


def _nothing(_: int) -> None:
    """Tells nobody."""


def _never() -> bool:
    return False


def _take_keys_from_terminal() -> bool:
    """Puts the terminal in the place of standard input, which has been read to its end."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return False
    os.dup2(terminal, 0)
    os.close(terminal)
    return True


# --- showing and writing


def _screen(args: argparse.Namespace, log: OomLog | None, size: int) -> int:
    """Opens the screen; reads the log there where it was not read yet."""
    terminal = settle_terminal(args.color, args.ascii, args.mouse)
    app = command_named("oom").load_app()(
        shown_name(args.file),
        terminal,
        log=log,
        scan=lambda on_progress, is_cancelled: _scan_file(args.file, size, on_progress, is_cancelled),
        total=size,
    )
    app.run(mouse=terminal.mouse)
    if app.problem is not None:
        raise app.problem
    if app.oom_log is not None and not app.oom_log.reports:
        raise nothing_found(args.file, app.oom_log)
    return int(app.return_code or EXIT_OK)


def _check_output(path: str, log: str) -> None:
    """Sees, before any work, that the report may be written there."""
    from tpuprof.parsers.files.logdir import Logdir  # noqa: PLC0415
    from tpuprof.tui.report.output import check_output  # noqa: PLC0415

    if log != STREAM and os.path.realpath(path) == os.path.realpath(log):
        sentence = f"{printable(path)} is the log itself; a report is not written over it."
        raise ProfileError("output", sentence, "give the report another name", EXIT_USAGE)
    check_output(path, Logdir(log, (), (), ()))
