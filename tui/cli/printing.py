"""Where reports go, and how wide and in which characters they are."""

from __future__ import annotations

import argparse
import os
import shlex
import stat
import sys
from collections.abc import Iterable

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import masked
from tpuprof.parsers.files.logdir import Logdir
from tpuprof.tui.cli.arguments.options import PROGRAM, STREAM
from tpuprof.tui.cli.common import columns, note
from tpuprof.tui.report import output
from tpuprof.tui.report.declared import drawn_by
from tpuprof.tui.report.output import Made
from tpuprof.tui.report.page import FORMATS, OF_PEOPLE, PIPE_BYTES, TextLook
from tpuprof.tui.report.shared import target
from tpuprof.tui.terminal.detect import detect

_picked = drawn_by("tpuprof.tui.report.shared.keys:picked")
_bounded = drawn_by("tpuprof.tui.report.shared.bounded:bounded")
"""Imported when they are called: few ask for keys, or for less than all."""

_BOUNDS = ("--limit", "-n", "--max-bytes")

MOST_SUMMARY = 1 << 20  # bytes of the summary of a step: GitHub shows nothing of a larger one

PIPE_WIDTH = 110  # cells of a text report where neither `--width`, a terminal nor COLUMNS says: room for every column


def output_file(args: argparse.Namespace) -> str | None:
    """The file that a report is to be written to; None for standard output."""
    file: str | None = args.output
    return None if file == STREAM else file


def is_pipe(args: argparse.Namespace) -> bool:
    """Whether a report goes to another program: to standard output, where that is a pipe or a socket."""
    if output_file(args) is not None:
        return False
    try:
        kind = os.fstat(sys.stdout.fileno()).st_mode
    except (OSError, ValueError):  # closed, or no file
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)


def most_bytes(args: argparse.Namespace) -> int | None:
    """How large a report may be: as asked for, or what a pipe is given of text unasked; None without a bound.

    Raises:
        ProfileError: a bound is asked for in a format that is of use only as a whole.
    """
    most, form = args.max_bytes, args.format or "text"
    if most is not None and form not in FORMATS:
        sentence = f"--max-bytes does not work with --format {form}."
        raise ProfileError("usage", sentence, f"--format {' or '.join(FORMATS)}", EXIT_USAGE)
    is_cut_unasked = most is None and getattr(args, "limit", 0) is None and form in OF_PEOPLE and is_pipe(args)
    return PIPE_BYTES if is_cut_unasked else most


def rest(args: argparse.Namespace) -> str:
    """The command that prints what a limit or a bound leaves out."""
    given = getattr(args, "words", ())
    bounds = {at for at, word in enumerate(given) if word.partition("=")[0] in _BOUNDS}
    bounds |= {at + 1 for at in bounds if given[at] in _BOUNDS}
    words = [printable(masked(word, given)) for at, word in enumerate(given) if at not in bounds]
    is_cut_unasked = hasattr(args, "limit") and (args.format or "text") in OF_PEOPLE
    return shlex.join([PROGRAM, *words, *(["--limit", "0"] if is_cut_unasked else [])])


def write_report(args: argparse.Namespace, report: Made, compressed: bool = False, most: int | None = None) -> None:
    """Writes a report to where it was asked for, of JSON the keys that were asked for.

    Args:
        compressed: a file, with gzip.
        most: bytes of a report of text, None for all of it; standard error says what is left out.
    """
    file, keys = output_file(args), getattr(args, "keys", None)
    if keys is not None:
        report = _picked(output.whole(report), keys)
    if most is not None:
        report, left_out = _bounded(output.whole(report), args.format or "text", most, rest(args))
        if left_out:
            note(f"note: {left_out}")
    produce = report if callable(report) else output.text_pieces((report,) if isinstance(report, str) else report)
    if file is None:
        output.stream_stdout(produce)
    else:
        output.stream_file(file, produce, compressed)


def append_summary(markdown: Made) -> None:
    """Appends a report to the summary that GitHub shows of a step, as many lines as there is room for.

    Raises:
        OSError: the file can't be written.
    """
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if not file:
        return
    with open(file, "ab") as summary:
        room = MOST_SUMMARY - summary.tell()
        if room >= output.LEAST_BYTES:
            text, _ = _bounded(output.whole(markdown), "md", room, "--format md")
            summary.write(text.encode("utf-8", "backslashreplace"))


def check_output(args: argparse.Namespace, *logdirs: Logdir, inputs: Iterable[str | int] = ()) -> None:
    """Sees, before any work, that the report may be written to where it was asked for.

    Args:
        inputs: files that are read beside the logdirs' profiles: paths, or open descriptors.
    """
    file = output_file(args)
    read = tuple(inputs)
    for logdir in logdirs if file is not None else ():
        target.check_output(file or "", logdir, read)


def report_look(args: argparse.Namespace) -> TextLook:
    """Width, characters and colours of a text report: as asked for, else by what standard output is."""
    shown = output_file(args) is None and sys.stdout.isatty()
    terminal = detect(os.environ, color=args.color, ascii_only=args.ascii, is_tty=shown)
    forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0") and not os.environ.get("NO_COLOR")
    color = forced or (not terminal.obstacle and terminal.color != "mono")
    color = color if args.color == "auto" else args.color != "never"
    width = args.width or (columns(PIPE_WIDTH) if args.format in (None, "text") else PIPE_WIDTH)
    return TextLook(width, not terminal.unicode, color, is_bounded=shown or args.width > 0)
