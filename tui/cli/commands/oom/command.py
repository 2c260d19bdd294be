"""``tpuprof-tui oom FILE``: what ran out of memory in a log, on the screen or as a report."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, cast

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_UNREADABLE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Logdir
from tpuprof.parsers.formats.hlo.files import module_files
from tpuprof.parsers.memory.live_arrays import read_live_arrays
from tpuprof.parsers.memory.oom import files
from tpuprof.parsers.memory.oom.dumps import read_dumps
from tpuprof.parsers.memory.oom.model import OomLog
from tpuprof.parsers.memory.oom.read.scan import scan_log
from tpuprof.tui.cli import common, printing
from tpuprof.tui.cli.arguments.options import PROGRAM, STREAM
from tpuprof.tui.cli.common import note, why_no_screen
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.output import write_stderr
from tpuprof.tui.report.shared.bounded import fitting
from tpuprof.tui.terminal.progress import RedrawnLine

EVERY_SECONDS = 0.5  # how often the line that says how far reading is is drawn
WORD_SECONDS = 5.0  # after which a log without a byte is named, where no line is drawn
_ROWS_OF_CHAT = 8  # buffers in Markdown, which is for a chat, where no limit says how many
_STDIN = 0  # its descriptor, whatever file it was redirected to


def run_oom(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code, 0 where the log holds an error that this understands.

    Raises:
        ProfileError: there is no such log (exit code 3), no TPU out-of-memory error in it (3), or it can't be read (4).
    """
    given = _sorted(args)
    _check_output(args, given)
    is_shown = sys.stdout.isatty() and not common.wants_report(args)
    dumps = read_dumps(given.dumps)
    if STREAM in given.logs:
        logs: list[OomLog] = [_scan_stdin() if path == STREAM else files.scan_file(path) for path in given.logs]
        log = files.whole_log(given, logs, dumps)
        needs_keys = is_shown and log.reports and not sys.stdin.isatty()
        return _finish(args, given, log, is_shown and (not needs_keys or _take_keys_from_terminal()))
    size = sum(map(os.path.getsize, given.logs)) if all(map(os.path.isfile, given.logs)) else None
    with _reading_shown(files.shown_name(args.file), size) as on_progress:
        logs = []
        for path in given.logs:

            def counted_on(taken: int, before: int = sum(log.bytes_read for log in logs)) -> None:
                on_progress(before + taken)

            logs.append(files.scan_file(path, counted_on))
    return _finish(args, given, files.whole_log(given, logs, dumps), is_shown)


def made_oom(args: argparse.Namespace) -> str:
    """What is printed of the errors in files; see `run_oom`."""
    return _printed(args, files.errors_of(_sorted(args)))


def _sorted(args: argparse.Namespace) -> files.OomFiles:
    given = files.sorted_files(args.files, args.arrays_file)
    args.arrays = None if given.arrays is None else read_live_arrays(given.arrays)
    args.file = given.first
    return given


def _check_output(args: argparse.Namespace, given: files.OomFiles, named: Iterable[str] = ()) -> None:
    """Sees that the report is written over nothing that is read; `named` are dumps that the logs name."""
    logs = (_STDIN if path == STREAM else path for path in given.logs)
    of_dumps = (file for dump in (*given.dumps, *named) for file in (dump, *module_files(os.path.expanduser(dump))))
    inputs = (*logs, *of_dumps, *(() if given.arrays is None else (given.arrays,)))
    printing.check_output(args, Logdir(args.file, (), (), ()), inputs=inputs)


def _finish(args: argparse.Namespace, given: files.OomFiles, log: OomLog, is_shown: bool) -> int:
    if not log.reports:
        raise files.nothing_found(args.file, log)
    obstacle = why_no_screen()
    if is_shown and not obstacle:
        return common.show(args, "oom", log, files.shown_name(args.file), arrays=args.arrays)
    if not common.wants_report(args):
        note(f"{obstacle or 'There is no terminal for input.'} Printing the report instead of opening the screen.")
    _check_output(args, given, (folder for path in given.logs for folder in files.named_dumps(log.dumps, path)))
    printing.write_report(args, _printed(args, log), most=printing.most_bytes(args))
    return EXIT_OK


def _printed(args: argparse.Namespace, log: OomLog) -> str:
    report = command_named("oom").load_report()
    errors = report.read(log, args.file, files.shown_name(args.file), args.arrays)
    form = args.format or "text"

    def made(limit: int | None) -> str:
        return str(report.writers[form](errors, printing.report_look(args), limit or 0))

    if form != "md" or args.limit is not None:
        return made(args.limit)
    longest = max(len(triage.need.buffers) for triage in errors.triages)
    return made(_ROWS_OF_CHAT) if args.max_bytes is None else fitting(made, longest, args.max_bytes)[0]


def _scan_stdin() -> OomLog:
    """Reads standard input to its end; ctrl+C ends it too, so that a hanging program can be left."""
    if sys.stdin is None or sys.stdin.closed:
        raise ProfileError("unreadable", "There is no standard input.", f"{PROGRAM} oom LOG", EXIT_UNREADABLE)
    if sys.stdin.isatty():
        note("Paste the log here and end it with ctrl+D on a line of its own.")
    files.refuse_device(sys.stdin.buffer, "Standard input")
    piped = _Piped(sys.stdin.buffer)
    try:
        with _reading_shown("standard input", None) as on_progress:
            log = scan_log(cast(BinaryIO, piped), on_progress)
    except OSError as error:
        raise files.unreadable_log("Standard input", error) from error
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


def _take_keys_from_terminal() -> bool:
    """Puts the terminal in the place of standard input, which has been read to its end."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return False
    os.dup2(terminal, 0)
    os.close(terminal)
    return True
