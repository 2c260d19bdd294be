"""The command line as data: commands, their arguments and options, read from the parsers that read the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.pages import PAGE_NAMES

_FOLDERS, _FILES = {"--logdir", "--root"}, {"--output", "--arrays"}


@dataclass(frozen=True)
class Argument:
    """One argument or option of a command.

    Attributes:
        flags: how the option is written; empty for an argument that has a place instead.
        value: the name that its value has in the help; empty where it takes none.
        choices: the words that it takes; empty where it takes any.
        takes: what its value is: ``file``, ``folder``, or empty.
    """

    flags: tuple[str, ...]
    value: str
    choices: tuple[str, ...]
    takes: str
    many: bool
    needed: bool
    meaning: str


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        name: its word; empty for what runs without one.
    """

    name: str
    meaning: str
    places: tuple[Argument, ...]
    options: tuple[Argument, ...]


def commands() -> tuple[Command, ...]:
    """All commands; the one without a word comes first."""
    return tuple(_command(name, command.parser()) for name, command in COMMANDS.items())


def _command(name: str, parser: argparse.ArgumentParser) -> Command:
    arguments = list(_arguments(parser))
    places = tuple(argument for argument in arguments if not argument.flags)
    options = tuple(argument for argument in arguments if argument.flags)
    return Command(name, parser.description or "", places, options)


def _arguments(parser: argparse.ArgumentParser) -> Iterator[Argument]:
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        choices = tuple(map(str, action.choices or ()))
        value = "" if action.nargs == 0 else str(action.metavar or "|".join(choices))
        if value == "PAGE":
            choices = PAGE_NAMES
        flags, many = tuple(action.option_strings), isinstance(action, argparse._AppendAction)
        is_file = not _FILES.isdisjoint(flags) if flags else not choices and value != "HOST:PORT"
        takes = "folder" if not _FOLDERS.isdisjoint(flags) else "file" if is_file else ""
        meaning = " ".join((action.help or "").replace("%%", "%").split())
        yield Argument(flags, value, choices, takes, many or action.nargs in ("*", "+"), action.required, meaning)
