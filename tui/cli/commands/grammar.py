"""The command line as data: commands, their arguments and options, read from the parsers that read the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.cli.table import COMMANDS


@dataclass(frozen=True)
class Argument:
    """One argument or option of a command.

    Attributes:
        flags: how the option is written; empty for an argument that has a place instead.
        value: the name that its value has in the help; empty where it takes none.
    """

    flags: tuple[str, ...]
    value: str
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
        value = "" if action.nargs == 0 else str(action.metavar or "|".join(map(str, action.choices or ())))
        meaning = " ".join((action.help or "").replace("%%", "%").split())
        yield Argument(tuple(action.option_strings), value, action.required, meaning)
