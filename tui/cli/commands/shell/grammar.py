"""The command line as data: commands, their arguments and options, read from the parsers that read the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.pages import PAGE_NAMES

_FOLDERS = ("--logdir",)
_FILES = ("--output", "--arrays")


@dataclass(frozen=True)
class Argument:
    """One argument or option of a command.

    Attributes:
        flags: how the option is written; empty for an argument that has a place instead.
        value: the name that its value has in the help; empty where it takes none.
        choices: the words that it takes; empty where it takes any.
        takes: what its value is: ``file``, ``folder``, or empty.
        many: whether more than one may be given.
        needed: whether it has to be given.
        meaning: one line of help.
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
        meaning: what it does, one sentence or more.
        more: what stands at the end of its help; empty where nothing does.
    """

    name: str
    meaning: str
    more: str
    places: tuple[Argument, ...]
    options: tuple[Argument, ...]


def commands() -> tuple[Command, ...]:
    """All commands; the one without a word comes first."""
    return tuple(_command(name, command.parser()) for name, command in COMMANDS.items())


def _command(name: str, parser: argparse.ArgumentParser) -> Command:
    arguments = list(_arguments(parser))
    return Command(
        name,
        parser.description or "",
        parser.epilog or "",
        tuple(argument for argument in arguments if not argument.flags),
        tuple(argument for argument in arguments if argument.flags),
    )


def _arguments(parser: argparse.ArgumentParser) -> Iterator[Argument]:
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        choices = tuple(map(str, action.choices or ()))
        value = "" if action.nargs == 0 else str(action.metavar or "|".join(choices))
        if value == "PAGE":
            choices = PAGE_NAMES
        file = not action.option_strings and not choices and value != "HOST:PORT"
        yield Argument(
            tuple(action.option_strings),
            value,
            choices,
            "folder"
            if set(action.option_strings) & {*_FOLDERS}
            else "file"
            if file or set(action.option_strings) & {*_FILES}
            else "",
            action.nargs in ("*", "+") or isinstance(action, argparse._AppendAction),
            action.required,
            " ".join((action.help or "").replace("%%", "%").split()),
        )
