"""``tpuprof-tui man``: the manual page, from the same parsers that read the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator

from tpuprof.parsers.base import errors
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.commands.shell.grammar import Argument, Command, commands
from tpuprof.tui.cli.common import version_of
from tpuprof.tui.report.output import write_stdout
from tpuprof.tui.terminal.grammar import GROUPS, written

EXIT_CODES = {
    errors.EXIT_OK: "success; also for a salvaged file, with a warning",
    errors.EXIT_USAGE: "the command line is wrong",
    errors.EXIT_NOT_FOUND: "nothing was found at that path",
    errors.EXIT_UNREADABLE: "the file is unreadable or corrupt",
    errors.EXIT_NO_TERMINAL: "--latest or --mouse without a terminal",
    errors.EXIT_REGRESSION: (
        "slower than --fail-on-regression allows; for verify, a promise that was not kept; "
        "for watch --once, a slow step"
    ),
    errors.EXIT_CAPTURE_FAILED: "nothing was captured, or a profile lacks what doctor --require names",
    errors.EXIT_INTERRUPTED: "interrupted; 128 and the number of any other signal that ended it",
}


def run_man(_: argparse.Namespace) -> int:
    """Prints the page."""
    write_stdout(manual(commands(), version_of(PROGRAM)))
    return errors.EXIT_OK


def manual(known: Iterable[Command], version: str) -> str:
    """The manual page in roff."""
    return "\n".join(_lines(list(known), version)) + "\n"


def _lines(known: list[Command], version: str) -> Iterator[str]:
    app = known[0]
    yield f'.TH {PROGRAM.upper().replace("-", chr(92) + "-")} 1 "" "{_escaped(PROGRAM)} {_escaped(version)}"'
    yield ".SH NAME"
    yield f"{_escaped(PROGRAM)} \\- {_escaped(app.meaning[:1].lower() + app.meaning[1:].rstrip('.'))}"
    yield ".SH SYNOPSIS"
    for command in known:
        yield from ("." + f"B {_escaped(f'{PROGRAM} {command.name}'.strip())}", _synopsis(command), ".br")
    yield ".SH DESCRIPTION"
    yield _text(app.meaning)
    yield from _options(app)
    for command in known[1:]:
        yield f".SH {command.name.upper()}"
        yield _text(command.meaning)
        yield from _options(command)
        if command.more:
            yield from (".PP", ".nf", *map(_text, command.more.strip("\n").splitlines()), ".fi")
    yield ".SH KEYS"
    yield _text("Keys on the screen. ? shows the keys of a page, ctrl+p finds commands by words.")
    for title, verbs in GROUPS:
        yield f".SS {_escaped(title)}"
        for verb in verbs:
            yield from (".TP", f".B {_escaped(' '.join(written(verb)))}", _text(f"{verb.meaning}."))
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_CODES.items():
        yield from (".TP", f".B {code}", _text(meaning))


def _synopsis(command: Command) -> str:
    places = [place.value + ("..." if place.many else "") for place in command.places]
    shown = [text if place.needed else f"[{text}]" for text, place in zip(places, command.places, strict=True)]
    return _text(" ".join(["[options]", *shown]))


def _options(command: Command) -> Iterator[str]:
    for argument in (*command.places, *command.options):
        yield ".TP"
        yield f".B {_escaped(_head(argument))}"
        words = f" One of: {', '.join(argument.choices)}." if argument.choices else ""
        yield _text((argument.meaning or argument.value) + ("." if words else "") + words)


def _head(argument: Argument) -> str:
    flags = ", ".join(argument.flags)
    return f"{flags} {argument.value}".strip()


def _text(text: str) -> str:
    """One line of text that roff can't take for a request."""
    escaped = _escaped(text)
    return re.sub(r"^(?=[.'])", r"\\&", escaped)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")
