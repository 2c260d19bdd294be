"""The command line: finds the command, runs it, and says what went wrong.

Nothing heavy is imported until a command needs it: neither Textual nor gRPC by a headless command, and not even numpy
for `--help` and `--version`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tpuprof.parsers.base import errors
from tpuprof.parsers.base.text import nearest, printable
from tpuprof.parsers.base.urls import masked
from tpuprof.tui.cli.arguments.options import PROGRAM, STREAM, may_be_path
from tpuprof.tui.cli.common import note, with_own_pip
from tpuprof.tui.cli.table import COMMANDS, VERSION, WITHOUT_WORD, Command
from tpuprof.tui.report.output import NobodyReads, write_stderr


def main(argv: list[str] | None = None) -> int:
    """Runs one command, by the arguments of the process where none are given.

    Returns:
        The exit code, one of `tpuprof.parsers.base.errors.EXIT_*`.
    """
    arguments = sys.argv[1:] if argv is None else argv
    _open_closed_streams()
    try:
        with _debugging(arguments):
            return _run(arguments)
    except SystemExit as stop:  # argparse after --help and --version
        return stop.code if isinstance(stop.code, int) else errors.EXIT_OK
    except NobodyReads:
        return errors.EXIT_OK
    except (KeyboardInterrupt, errors.Cancelled):
        return errors.EXIT_INTERRUPTED
    except errors.ProfileError as error:
        return _fail(arguments, error.sentence, error.hint, error.exit_code)
    except MemoryError:
        return _fail(arguments, "There is not enough memory for this.", "try one host: --host", errors.EXIT_UNREADABLE)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _fail(arguments, f"The system refused: {reason}.", f"{PROGRAM} --debug ...", errors.EXIT_UNREADABLE)


def failed() -> int:
    """Says which error in this program just ended it, without secrets, and how to report it; the exit code."""
    please = import_module("tpuprof.tui.terminal.ending").PLEASE_REPORT
    write_stderr(f"{_traceback(sys.argv)}{please}\n")
    return 1


def _open_closed_streams() -> None:
    """Puts something in the place of standard streams that were closed, so that no file gets their descriptors.

    What goes to standard error is lost then; what goes to standard output fails, as nobody would get it.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            raw: Any = io.FileIO(descriptor, "r" if name == "stdin" else "w", closefd=False)  # keeps nothing for later
            stream = io.BufferedReader(raw) if name == "stdin" else raw
            setattr(sys, name, io.TextIOWrapper(stream, "utf-8", write_through=True))


def _debugging(arguments: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    """With `--debug`, what prints the tracebacks of optional parts that fail."""
    if "--debug" not in arguments:
        return contextlib.nullcontext()
    handler: contextlib.AbstractContextManager[None] = import_module("tpuprof.tui.cli.debug").FailedParts(arguments)
    return handler


def _run(arguments: Sequence[str]) -> int:
    # Before numpy is imported: its threads would only cost start-up time and memory here. And helper threads take
    # memory from one arena: what one of them freed, the others get. A library sets none of these for its process.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX"):
        os.environ.setdefault(name, "1")
    words = [word for word in arguments if word != "--debug"]
    try:
        command, args = _parsed(words)
    except errors.ProfileError:
        words = list(_meant(words))
        command, args = _mended(words)
    args.words = words
    if getattr(args, "path", None) != STREAM:
        return command.run(args)
    with import_module("tpuprof.tui.cli.spool").spooled(args):
        return command.run(args)


def _meant(words: Sequence[str]) -> Sequence[str]:
    """The words of a call; those of other programs as they are called here."""
    meant: list[str] = import_module("tpuprof.tui.cli.habits").meant(words)
    return meant


def _mended(words: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    """As `_parsed`, of the words that are meant where those that were typed are wrong.

    Raises:
        ProfileError: these are wrong too; its hint is the call that comes nearest, where one does.
    """
    try:
        return _parsed(words)
    except errors.ProfileError as error:
        near: str = import_module("tpuprof.tui.cli.habits").nearest_call(words, _parsed)
        raise errors.ProfileError(error.code, error.sentence, near or error.hint, error.exit_code) from None


def _parsed(words: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    """The command of some words, and what they ask of it.

    Raises:
        ProfileError: they are wrong.
    """
    if words and words[0] != WITHOUT_WORD and words[0] in COMMANDS:
        command = COMMANDS[words[0]]
        return command, command.parsed(words[1:])
    command = COMMANDS[WITHOUT_WORD]
    if words and not words[0].startswith("-") and not may_be_path(words[0]):
        _check_word(words)
    args = command.parsed(words)
    return (VERSION if args.version else command), args


def _check_word(words: Sequence[str]) -> None:
    """Sees that the first word may be a path that does not exist yet, and is not meant as a command.

    Raises:
        ProfileError: a path follows it, or it is a command of another program.
    """
    is_before_path = len(words) > 1 and not words[1].startswith("-")
    if is_before_path or _meant(words) != words:
        near = nearest(words[0], filter(None, COMMANDS)) if is_before_path else []
        hint = " or ".join(f"{PROGRAM} {each}" for each in near or ["--help"])
        raise errors.ProfileError("usage", f"There is no command {printable(words[0])}.", hint, errors.EXIT_USAGE)


def _fail(arguments: Sequence[str], sentence: str, hint: str, exit_code: int) -> int:
    """Says what went wrong on standard error, with the traceback where `--debug` asks for it, and without secrets."""
    if "--debug" in arguments:
        write_stderr(_traceback(arguments))
    note(masked(sentence, arguments))
    if hint:
        note(masked(f"try: {with_own_pip(hint)}", arguments))
    return exit_code


def _traceback(arguments: Sequence[str]) -> str:
    """Where the error that is being handled came from, without secrets of the arguments."""
    return masked(import_module("traceback").format_exc(), arguments)
