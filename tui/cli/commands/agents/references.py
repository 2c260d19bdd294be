"""The references of the skill, each written from the tables that the program itself reads."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping

from tpuprof.parsers.base import errors
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.filtering.filter import HELP as FILTER_TERMS
from tpuprof.parsers.pages.findings.why_slow import KINDS
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNER_WORDS
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.commands.agents.questions import OF_PAGES
from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.pages import PAGES, Page
from tpuprof.tui.report.describe import Described, described


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


_KEYS_OF = ("overview", "findings")
"""Pages whose keys of JSON stand in a reference; those of the others are a command away."""

_EXIT_CODES = {
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


def references() -> dict[str, str]:
    """The text of each reference by its file name."""
    return {name: "\n".join(make()) + "\n" for name, make in _MADE.items()}


def _commands() -> Iterator[str]:
    yield "# Commands"
    yield f"\n`{PROGRAM} COMMAND --help` prints the same. Without a command it opens a screen, which needs a terminal."
    for command in commands():
        if command.name:
            yield f"\n## {command.name}\n\n{command.meaning}\n"
            places = [place.value if place.needed else f"[{place.value}]" for place in command.places]
            yield f"    {' '.join([PROGRAM, command.name, *places, '[options]'])}\n"
            yield from (
                f"- `{_head(argument)}`: {argument.meaning}" for argument in (*command.places, *command.options)
            )
    yield "\n## Exit codes\n"
    yield from (f"- {code}: {meaning}" for code, meaning in _EXIT_CODES.items())


def _head(argument: Argument) -> str:
    return f"{', '.join(argument.flags)} {argument.value}".strip()


def _pages() -> Iterator[str]:
    yield "# Pages"
    yield f"\n`{PROGRAM} report PAGE PATH` prints a page, `{PROGRAM} report PAGE --describe` what its keys mean."
    yield "`--columns`, `--sort` and `--filter` take the columns of a page's table; a key ends in its unit."
    for page in PAGES:
        yield f"\n## {page.name}\n\n{OF_PAGES[page.name]}\n"
        if page.options:
            yield f"- options of its own: {', '.join(f'`{option}`' for option in page.options.values())}"
        if page.formats:
            yield f"- formats besides text, json, csv, md: {', '.join(page.formats)}"
        yield from _columns(page)


def _columns(page: Page) -> Iterator[str]:
    report = page.load_report()
    keys = [key.csv_column for key in described(report) if key.csv_column is not None]
    if keys:
        yield f"- columns: {', '.join(f'`{key}`' for key in keys)}"
    if report.choose is None:
        yield "- `--filter`, `--sort` and `--columns` do not work with it"


def _keys() -> Iterator[str]:
    yield "# Keys of JSON"
    yield f"\n`[]` is any element of a list. For other pages: `{PROGRAM} report PAGE --describe`."
    seen: set[Described] = set()
    for page in PAGES:
        if page.name in _KEYS_OF:
            keys = [key for key in described(page.load_report()) if key not in seen]
            yield f"\n## {page.name}\n"
            yield from map(_key, keys)
            seen.update(keys)


def _key(key: Described) -> str:
    null = f" Null: {key.null_when}." if key.null_when else ""
    return f"- `{key.key}` ({key.unit}): {key.meaning}.{null}"


def _findings() -> Iterator[str]:
    yield "# Findings and owners"
    yield "\n## Kinds of findings, and what to try\n"
    for kind in KINDS.values():
        owners = ", ".join(f"`{owner}`" for owner in kind.owners)
        yield f"- `{kind.name}`{f' (time of {owners})' if owners else ''}: {kind.advice}"
    yield "\n## Owners of a step's time\n"
    yield "Every picosecond of each core's steps has one owner; together they are the step.\n"
    yield from (f"- `{owner}` ({OWNER_TITLES[owner]}): {words}" for owner, words in OWNER_WORDS.items())


def _filter() -> Iterator[str]:
    yield "# Filter"
    yield "\nFor `--filter`, on every page with a table. Quote it for the shell. Terms:\n"
    yield from (f"- `{example}`: {meaning}" for example, meaning in FILTER_TERMS)


_MADE: Mapping[str, Callable[[], Iterator[str]]] = {
    "commands.md": _commands,
    "pages.md": _pages,
    "keys.md": _keys,
    "findings.md": _findings,
    "filter.md": _filter,
}
