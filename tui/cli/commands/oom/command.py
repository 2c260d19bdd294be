"""``tpuprof-tui oom FILE``: what ran out of memory in a log, on the screen or as a report."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, cast

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_OK, EXIT_UNREADABLE, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.folder_search import is_pprof_name, is_profile
from tpuprof.parsers.files.logdir import Logdir
from tpuprof.parsers.formats.hlo.files import module_files
from tpuprof.parsers.formats.pprof.files import is_pprof
from tpuprof.parsers.memory.live_arrays import read_live_arrays
from tpuprof.parsers.memory.oom.dumps import Dumped, read_dumps, with_dumps
from tpuprof.parsers.memory.oom.model import OomLog
from tpuprof.parsers.memory.oom.read.scan import joined, scan_log
from tpuprof.tui.cli import common, printing
from tpuprof.tui.cli.arguments.options import PROGRAM, STREAM
from tpuprof.tui.cli.common import note, why_no_screen
from tpuprof.tui.cli.progress import RedrawnLine
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.output import write_stderr

EVERY_SECONDS = 0.5  # how often the line that says how far reading is is drawn
WORD_SECONDS = 5.0  # after which a log without a byte is named, where no line is drawn
_STDIN = 0  # its descriptor, whatever file it was redirected to


def run_oom(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code, 0 where the log holds an error that this understands.

    Raises:
        ProfileError: there is no such log (exit code 3), no TPU out-of-memory error in it (3), or it can't be read (4).
    """
    given = sorted_files(args.files, args.arrays_file)
    args.arrays = None if given.arrays is None else read_live_arrays(given.arrays)
    args.file = (given.logs or given.dumps)[0]
    _check_output(args, given)
    is_shown = sys.stdout.isatty() and not common.wants_report(args)
    dumps = read_dumps(given.dumps)
    if STREAM in given.logs:
        logs: list[OomLog] = [_scan_stdin() if path == STREAM else _scan_file(path) for path in given.logs]
        log = _whole(given, logs, dumps)
        needs_keys = is_shown and log.reports and not sys.stdin.isatty()
        return _finish(args, given, log, is_shown and (not needs_keys or _take_keys_from_terminal()))
    sizes = [_checked_size(path) for path in given.logs]
    size = None if None in sizes else sum(filter(None, sizes))
    with _reading_shown(shown_name(args.file), size) as on_progress:
        logs = []
        for path in given.logs:

            def counted_on(taken: int, before: int = sum(log.bytes_read for log in logs)) -> None:
                on_progress(before + taken)

            logs.append(_scan_file(path, counted_on))
    return _finish(args, given, _whole(given, logs, dumps), is_shown)


def _check_output(args: argparse.Namespace, given: OomFiles, named: Iterable[str] = ()) -> None:
    """Sees that the report is written over nothing that is read; `named` are dumps that the logs name."""
    logs = (_STDIN if path == STREAM else path for path in given.logs)
    of_dumps = (file for dump in (*given.dumps, *named) for file in (dump, *module_files(os.path.expanduser(dump))))
    inputs = (*logs, *of_dumps, *(() if given.arrays is None else (given.arrays,)))
    printing.check_output(args, Logdir(args.file, (), (), ()), inputs=inputs)


def _whole(given: OomFiles, logs: Sequence[OomLog], dumps: Sequence[Dumped]) -> OomLog:
    """The logs as one, each error with the buffers of the dump that is given, or that its log's flags name."""
    found = list(dumps)
    notes: list[str] = []
    for path, log in zip(given.logs, logs, strict=True):
        for folder in named_dumps(log.dumps, path) if log.reports and not dumps else ():
            try:
                found += read_dumps((folder,))
            except ProfileError as error:
                notes.append(f"The log names the dump {printable(folder)}, which is not read: {error.sentence}")
    log = joined([shown_name(path) for path in given.logs], logs)
    whole = with_dumps(log, found)
    return replace(whole, notes=(*whole.notes, *notes))


def _finish(args: argparse.Namespace, given: OomFiles, log: OomLog, is_shown: bool) -> int:
    if not log.reports:
        raise nothing_found(args.file, log)
    obstacle = why_no_screen()
    if is_shown and not obstacle:
        return common.show(args, "oom", log, shown_name(args.file), arrays=args.arrays)
    if not common.wants_report(args):
        note(f"{obstacle or 'There is no terminal for input.'} Printing the report instead of opening the screen.")
    _check_output(args, given, (folder for path in given.logs for folder in named_dumps(log.dumps, path)))
    report = command_named("oom").load_report()
    errors = report.read(log, args.file, shown_name(args.file), args.arrays)
    writer = report.writers[args.format or "text"]
    printing.write_report(args, writer(errors, printing.report_look(args), args.limit))
    return EXIT_OK


def nothing_found(path: str, log: OomLog) -> ProfileError:
    """There is no error in the log that this understands."""
    name = "Standard input" if path == STREAM else printable(path)
    sentence = f"{name} holds no out-of-memory error of a TPU program ({counted(log.lines, 'line')} read)."
    if log.notes:
        sentence += f" {log.notes[0]}"
    hint = "the log of the process that failed, with its standard error: python train.py 2>&1 | tpuprof-tui oom -"
    if os.path.isdir(path):
        sentence = f"No compile of the dump {name} ran out of memory."
        hint = f"{PROGRAM} {printable(path)}"
    elif is_profile(path) or is_pprof_name(path):
        hint = f"{PROGRAM} {printable(path)}"
    return ProfileError("no_oom", sentence, hint, EXIT_NOT_FOUND)


def shown_name(path: str) -> str:
    """A log's name before a line number: its last part, ``stdin`` for standard input."""
    return "stdin" if path == STREAM else path.rstrip("/").rpartition("/")[2] or path


def _checked_size(path: str) -> int | None:
    """Size of a log; None where it is no regular file, such as a pipe.

    Raises:
        ProfileError: it can't be read, or is none.
    """
    shown, hint = printable(path), f"{PROGRAM} oom LOG"
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ProfileError("not_found", f"There is no file {shown}.", hint, EXIT_NOT_FOUND) from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if stat.S_ISCHR(status.st_mode):
        with _opened(path) as file:
            _refuse_device(file, shown)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _refuse_device(file: BinaryIO, shown: str) -> None:
    """Refuses what never ends, such as /dev/zero; a terminal and /dev/null do."""
    with contextlib.suppress(OSError, ValueError):  # what stands for standard input has no descriptor
        status = os.fstat(file.fileno())
        if stat.S_ISCHR(status.st_mode) and not file.isatty() and status.st_rdev != os.stat(os.devnull).st_rdev:
            raise ProfileError("not_a_file", f"{shown} is a device, not a log.", f"{PROGRAM} oom LOG", EXIT_UNREADABLE)


def _scan_file(path: str, on_progress: Callable[[int], None] | None = None) -> OomLog:
    try:
        with _opened(path) as file:
            return scan_log(file, on_progress)
    except OSError as error:
        raise _unreadable(path, error) from error


def _scan_stdin() -> OomLog:
    """Reads standard input to its end; ctrl+C ends it too, so that a hanging program can be left."""
    if sys.stdin is None or sys.stdin.closed:
        raise ProfileError("unreadable", "There is no standard input.", f"{PROGRAM} oom LOG", EXIT_UNREADABLE)
    if sys.stdin.isatty():
        note("Paste the log here and end it with ctrl+D on a line of its own.")
    _refuse_device(sys.stdin.buffer, "Standard input")
    piped = _Piped(sys.stdin.buffer)
    try:
        with _reading_shown("standard input", None) as on_progress:
            log = scan_log(cast(BinaryIO, piped), on_progress)
    except OSError as error:
        raise _unreadable("Standard input", error) from error
    if piped.stopped:
        note("Stopped reading; this is the result so far.")
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


@contextlib.contextmanager
def _reading_shown(name: str, size: int | None) -> Iterator[Callable[[int], None]]:
    """What to report to how many bytes are read: a line on standard error where that is a terminal and it takes long.

    Elsewhere it is a word, once, where nothing comes.

    A thread draws it: a pipe in which nothing comes for hours still shows that it is waited for.
    """
    began, done, taken = time.monotonic(), threading.Event(), 0

    def draw() -> None:
        if not common.can_redraw():
            if not done.wait(WORD_SECONDS) and not taken:
                note(f"Nothing has come from {printable(name)} for {WORD_SECONDS:g} s; still waiting for it.")
            return
        line = RedrawnLine(write_stderr, common.line_width())
        while not done.wait(EVERY_SECONDS):
            amount = f"{taken / 1e6:.1f} MB" + (f" of {size / 1e6:.1f} MB" if size else "")
            minutes, seconds = divmod(int(time.monotonic() - began), 60)
            line.draw(f"reading {printable(name)}: {amount}, {minutes}:{seconds:02}  (ctrl+C ends)")
        line.clear()

    def on_progress(bytes_read: int) -> None:
        nonlocal taken
        taken = bytes_read

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    try:
        yield on_progress
    finally:
        done.set()
        thread.join()


def _opened(path: str) -> BinaryIO:
    """A log; one that waits for more though it is a file, as /proc/kmsg does, ends where that begins."""
    try:
        waits = not stat.S_ISREG(os.stat(path).st_mode)
        flags = os.O_RDONLY | os.O_CLOEXEC | (0 if waits else os.O_NONBLOCK)
        return cast(BinaryIO, open(path, "rb", buffering=0, opener=lambda name, _: os.open(name, flags)))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: Exception) -> ProfileError:
    reason = printable(getattr(error, "strerror", None) or str(error)).lower()
    return ProfileError("unreadable", f"{printable(path)} can't be read: {reason}.", "", EXIT_UNREADABLE)


def _take_keys_from_terminal() -> bool:
    """Puts the terminal in the place of standard input, which has been read to its end."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return False
    os.dup2(terminal, 0)
    os.close(terminal)
    return True


# --- what the files are

_OF_DUMPS = re.compile(r"(?:\.hlo(?:_proto)?\.pb(?:\.gz)?|-memory-usage-report\.(?:pb|txt)|-buffer-assignment\.txt)$")
_STEMS = re.compile(r"module_\d+\..+\.pb$")


@dataclass(frozen=True, slots=True)
class OomFiles:
    """The files by what they are.

    Attributes:
        logs: paths, ``-`` for standard input.
        dumps: folders, and files of dumps.
        arrays: a device memory profile; None without one.
    """

    logs: tuple[str, ...]
    dumps: tuple[str, ...]
    arrays: str | None


def sorted_files(paths: Sequence[str], arrays: str | None) -> OomFiles:
    """Sorts paths by their names and first bytes; `arrays` is one that was called a device memory profile.

    Raises:
        ProfileError: there are two device memory profiles, or standard input twice.
    """
    logs, dumps, profiles = [], [], [] if arrays is None else [arrays]
    for path in dict.fromkeys(paths):
        name = os.path.basename(path)
        if path == STREAM:
            logs.append(path)
        elif os.path.isdir(path) or _OF_DUMPS.search(name) or _STEMS.match(name):
            dumps.append(path)
        elif is_pprof(path):
            profiles.append(path)
        else:
            logs.append(path)
    if len(profiles) > 1:
        raise ProfileError("usage", "Two device memory profiles are given.", f"{PROGRAM} oom --help", EXIT_USAGE)
    if profiles and not logs and not dumps:
        sentence = f"{printable(profiles[0])} is a device memory profile: it shows who holds memory, and has no error."
        raise ProfileError("no_oom", sentence, f"{PROGRAM} {printable(profiles[0])}", EXIT_NOT_FOUND)
    return OomFiles(tuple(logs), tuple(dumps), profiles[0] if profiles else None)


def named_dumps(names: Iterable[str], log: str) -> tuple[str, ...]:
    """The folders of dumps that a log's flags name and that are here: as they are named, or beside the log."""
    beside = "" if log == STREAM else os.path.dirname(log)
    found = dict[str, None]()
    for name in names:
        for path in (
            os.path.expanduser(name),
            os.path.join(beside, name),
            os.path.join(beside, os.path.basename(name)),
        ):
            if os.path.isdir(path):
                found[path] = None
                break
    return tuple(found)
