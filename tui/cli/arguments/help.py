"""The help of a command, on one screen: what it does, examples, and its options by parts."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence

_WIDTH, _MOST_WIDTH = 80, 120  # cells of a help text where nothing says, and at most
_MOST_FLAGS = 22  # cells of what is typed, beside which its meaning stands

WHICH_RUN, COMMON = "which run", "common"
_PARAGRAPHS = (WHICH_RUN, COMMON)
"""Parts that many commands have: paragraphs, as whoever reads them has read them before."""


def help_text(parser: argparse.ArgumentParser, examples: Sequence[str]) -> str:
    """The help of a parser.

    Args:
        examples: commands, which it begins with.
    """
    width = min(terminal_columns(_WIDTH), _MOST_WIDTH)
    words = " ".join(["usage:", parser.prog, *_positionals(parser), "[options]"])
    lines = [*_wrapped(words, width), "", *_wrapped(parser.description or "", width)]
    lines += ["", *(f"  {example}" for example in examples), ""]
    parts = [(group, _shown(group)) for group in parser._action_groups]
    flags = [_flags(action) for group, actions in parts for action in actions if group.title not in _PARAGRAPHS]
    column = max((len(each) for each in flags if len(each) <= _MOST_FLAGS), default=0) + 4
    for group, actions in parts:
        if not actions and not group.description:
            continue
        if group.title in _PARAGRAPHS:
            lines += _wrapped(f"{group.title}: {', '.join(map(_brief, actions))}", width, "  ")
            continue
        lines += [f"{group.title}:"] if group is not parser._positionals else []
        for action in actions:
            lines += _entry(_flags(action), action.help or "", column, width)
        lines += [line for given in (group.description or "").splitlines() for line in _wrapped(f"  {given}", width)]
    more = [line for given in (parser.epilog or "").splitlines() for line in _wrapped(given, width)]
    return "\n".join([*lines, *([""] if more else []), *more]) + "\n"


def _positionals(parser: argparse.ArgumentParser) -> Iterator[str]:
    forms = {"?": "[{0}]", "*": "[{0} ...]", "+": "{0} ..."}
    for action in _shown(parser._positionals):
        nargs = getattr(action, "save_nargs", action.nargs)  # while options and paths are parsed in any order
        yield forms.get(str(nargs), "{0}").format(action.metavar)


def _shown(group: argparse._ArgumentGroup) -> list[argparse.Action]:
    hidden = argparse.SUPPRESS
    return [each for each in group._group_actions if each.help != hidden and "--help" not in each.option_strings]


def _flags(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 or not action.option_strings else f" {action.metavar}"
    several = " ..." if action.option_strings and action.nargs == "+" else ""
    return (", ".join(action.option_strings) or str(action.metavar)) + value + several


def _brief(action: argparse.Action) -> str:
    return f"{_flags(action)} ({action.help})" if action.help else _flags(action)


def _entry(flags: str, meaning: str, column: int, width: int) -> list[str]:
    if len(flags) + 4 > column:
        return [f"  {flags}", *_wrapped(f"{'':{column}}{meaning}", width)]
    return _wrapped(f"  {flags:{column - 2}}{meaning}", width, " " * column)


def _wrapped(line: str, width: int, hanging: str | None = None) -> list[str]:
    """A line in several; they continue where its last column begins, unless `hanging` says where."""
    if len(line) <= width:
        return [line]
    if hanging is None:
        gaps = [gap.end() for gap in re.finditer(r"\S {2,}(?=\S)", line)]
        hanging = " " * (gaps[-1] if gaps else len(line) - len(line.lstrip()))
    return textwrap.wrap(line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)


def terminal_columns(fallback: int) -> int:
    """Width of the terminal, by COLUMNS first: as `shutil` has it, which imports compression too."""
    with contextlib.suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with contextlib.suppress(ValueError, OSError):  # closed, or not a terminal
        if sys.__stdout__ is not None:
            return os.get_terminal_size(sys.__stdout__.fileno()).columns or fallback
    return fallback
