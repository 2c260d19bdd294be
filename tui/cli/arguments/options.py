"""What the arguments of the commands share: usage errors, and options that several commands have."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from functools import partial
from typing import NoReturn

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import PATHS, nearest
from tpuprof.parsers.base.tpus import generation_named
from tpuprof.tui.report.output import write_stdout
from tpuprof.tui.terminal.custom import THEMES
from tpuprof.tui.terminal.detect import COLOR_CHOICES

PROGRAM = "tpuprof-tui"
DEMO = "demo"  # the path that stands for the bundled demo profile
STREAM = "-"  # the file name that stands for standard input or output
MOST_WIDTH = 10_000  # cells of the widest text report
_MILLISECONDS = pattern(r"(?:[0-9]{1,9}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})")
_PERCENT = pattern(r"([0-9]{1,4}(?:\.[0-9]{1,9})?) ?%?")
_HELP_WIDTH = 80  # cells of a help text where nothing says
HERE = "."  # where profiles are looked for if no path is given

_NO_OPTION = pattern(r"unrecognized arguments: --([\w-]+)")
_NO_CHOICE = pattern(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)\Z")
"""The messages of argparse for an unknown option, and for a value that an option does not take."""


class UsageParser(argparse.ArgumentParser):
    """Raises usage errors like all other errors, with the nearest known option or value as their hint."""

    def _print_message(self, message: str, _: object = None) -> None:
        """Prints the help, whatever argparse would do with an error."""
        write_stdout(message)

    def error(self, message: str) -> NoReturn:
        hint = self._nearest(message) or f"{self.prog} --help"
        raise ProfileError("usage", f"{message[:1].upper()}{message[1:]}.", hint, EXIT_USAGE)

    def _nearest(self, message: str) -> str:
        """The options or values that are nearest to the wrong one; empty if none is near."""
        if (given := _NO_OPTION.match(message)) is not None:
            options = [option[2:] for action in self._actions for option in action.option_strings if option[:2] == "--"]
            return " or ".join(f"--{option}" for option in nearest(given[1], options, 2))
        if (wrong := _NO_CHOICE.match(message)) is None:
            return ""
        choices = [choice.strip(" '") for choice in wrong[3].split(",")]
        near = nearest(wrong[2], choices, 2)
        option = wrong[1].rpartition("/")[2]
        return f"{option} {' or '.join(near)}" if near and option.startswith("-") else ""


class WrappedLines(argparse.HelpFormatter):
    """Keeps the lines of a text, and wraps long ones: a line with columns continues below its last column."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_columns(_HELP_WIDTH) - 2)  # as argparse does, which imports shutil for it

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(line for given in text.splitlines() for line in _wrapped(indent + given, width))


def terminal_columns(fallback: int) -> int:
    """Width of the terminal, by COLUMNS first: as `shutil` has it, which imports compression too."""
    with contextlib.suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with contextlib.suppress(ValueError, OSError):  # closed, or not a terminal
        if sys.__stdout__ is not None:
            return os.get_terminal_size(sys.__stdout__.fileno()).columns or fallback
    return fallback


def _wrapped(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    gaps = [gap.end() for gap in re.finditer(r"\S {2,}(?=\S)", line)]
    hanging = " " * (gaps[-1] if gaps else len(line) - len(line.lstrip()))
    return textwrap.wrap(line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)


def new_parser(command: str, description: str, more: str = "") -> UsageParser:
    """A command's parser; `more` is the end of its help, line by line."""
    name = f"{PROGRAM} {command}".strip()
    return UsageParser(name, None, description, more or None, formatter_class=WrappedLines, allow_abbrev=False)


def add_look(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Characters and colours, of a report or the screen."""
    parser.add_argument("--ascii", action="store_true", default=None, help="draw with ASCII characters only")
    parser.add_argument("--color", choices=COLOR_CHOICES, default="auto", help="default: auto")


def add_screen(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """How the screen looks, and whether it follows the mouse."""
    add_look(parser)
    colours = f"{', '.join(THEMES)} (default: TPUPROF_THEME, else auto: dark or light, like the terminal)"
    parser.add_argument("--theme", choices=THEMES, metavar="THEME", help=colours)
    parser.add_argument("--mouse", action="store_true", default=None, help="follow the mouse, over SSH too")
    parser.add_argument("--no-mouse", dest="mouse", action="store_false", help="leave the mouse to the terminal")


def add_width(parser: argparse.ArgumentParser) -> None:
    """How wide a text report is."""
    cells = partial(whole_number, most=MOST_WIDTH)
    parser.add_argument("--width", type=cells, default=0, metavar="CELLS", help="width of a text report")


def add_report(
    parser: argparse.ArgumentParser, forms: argparse.ArgumentParser | argparse._ArgumentGroup, formats: Sequence[str]
) -> None:
    """A report instead of the screen: its format, to `forms`, and where it goes."""
    forms.add_argument("--format", choices=formats, help="print a report instead of opening the screen")
    for form in ("json", "md"):
        forms.add_argument(f"--{form}", dest="format", action="store_const", const=form, help=f"--format {form}")
    parser.add_argument("--output", metavar="FILE", help="write the report to FILE instead of standard output")


def add_keys(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Which keys of JSON."""
    keys = "with --format json: only these keys, separated by commas; a.b is b in a, or in each element of the list a"
    parser.add_argument("--keys", metavar="KEYS", help=keys)


def add_debug(parser: argparse.ArgumentParser) -> None:
    """Tracebacks; `cli` itself looks for it."""
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")


def add_mask(parser: argparse.ArgumentParser, when: str = "") -> None:
    """Whether names of people, machines and places are masked."""
    words = f"{when}replace hosts, runs, files, folders, threads, addresses and logins by host1, file2.py and the like,"
    words += " and values of settings and the profiler's warnings by …; names of ops, modules, framework ops, events"
    words += " and functions stay"
    parser.add_argument("--mask", action="store_true", help=words)


FIT_HELP = "how large the batch may be, instead of the buffers: the memory that the module needs at several batch sizes"


def add_device(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """For which TPU compiled modules are."""
    device = "the TPU that HLO files are for, such as v5e, v6e-8 or trillium; a profile says it itself"
    parser.add_argument("--device", metavar="TPU", type=_device, help=device)


def _device(text: str) -> str:
    """A type of TPU as profiles write it, of what people call it."""
    generation = generation_named(text)
    if generation is None:
        raise argparse.ArgumentTypeError(f"the memory of {text!r} is unknown; one of: v2 v3 v4 v5e v5p v6e 7x")
    return generation


class Paths(argparse.Action):
    """One path or several, in their place or behind an option; where none stands argparse hands over the default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        _: str | None = None,
    ) -> None:
        if values == self.default:
            return
        if (given := getattr(namespace, self.dest)) != self.default:
            parser.error(f"two paths were given: {given} and {values}")
        paths = [values] if isinstance(values, str) else list(map(str, values or ()))
        if len(paths) > 1 and not all(os.path.lexists(os.path.expanduser(path)) for path in paths):
            parser.error(f"unrecognized arguments: {' '.join(paths[1:])}")
        setattr(namespace, self.dest, PATHS.join(paths))


def add_choice_of_profile(
    parser: argparse.ArgumentParser,
    where: str = "logdir, any folder above it, run, file or glob (default: .)",
    several: bool = True,
) -> None:
    """Which profile, and of which run and host; `several` paths may lead to the hosts of one capture."""
    where += "; several are one run if they are hosts of one capture" if several else ""
    parser.add_argument("path", nargs="*" if several else "?", default=HERE, metavar="PATH", action=Paths, help=where)
    parser.add_argument("--logdir", dest="path", metavar="DIR", default=HERE, action=Paths, help="the same as PATH")
    parser.add_argument("--run", metavar="RUN", help="name of a run, or its beginning (default: the newest)")
    parser.add_argument(
        "--host", metavar="HOST", help="only this host (default: all merged; the first for the timeline)"
    )
    add_core(parser)


def add_core(parser: argparse.ArgumentParser) -> None:
    """Of which core."""
    core = (
        "only this core, HOST:2, or this chip, HOST:chip1; with one host 2 is enough; other names of a core work too: "
    )
    core += "/device:TPU:2, 'Chip 2: TPU core 0' (default: all)"
    parser.add_argument("--core", metavar="CORE", help=core)
    group = "only this group of cores that depend on each other, by its number in report cores (default: all)"
    parser.add_argument("--group", dest="core", type=_group, metavar="N", help=group)


def _group(text: str) -> str:
    return f"group {whole_number(text, least=1)}"


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Who reads the hosts, and whether what was read is kept."""
    cores = "read with at most N cores (default: TPUPROF_JOBS, else all that this process may use)"
    parser.add_argument("--jobs", metavar="N", type=partial(whole_number, least=1), help=cores)
    again = "read the files again, and do not write to the user's cache folder"
    parser.add_argument("--no-cache", dest="cache", action="store_false", help=again)


def add_interval(group: argparse._ArgumentGroup, which: str = "") -> None:
    """From when to when on the timeline."""
    begin = f"only events from this instant on, in milliseconds on the trace's clock{f': {which}' if which else ''}"
    group.add_argument("--from", dest="from_ps", type=_milliseconds, metavar="MS", help=begin)
    group.add_argument("--to", dest="to_ps", type=_milliseconds, metavar="MS", help="only events up to this instant")


def add_track(group: argparse._ArgumentGroup) -> None:
    """Which tracks of the timeline."""
    group.add_argument("--track", metavar="NAME", help="only tracks with NAME in their section / name")


def _milliseconds(text: str) -> int:
    """Milliseconds as picoseconds, exactly; what is finer is cut."""
    if not _MILLISECONDS.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of milliseconds from 0 on, such as 12.5")
    whole, _, part = text.partition(".")
    return int(whole or "0") * 10**9 + int(part[:9].ljust(9, "0"))


def whole_number(text: str, least: int = 0, most: int | None = None) -> int:
    """A whole number of an option, in a range."""
    if text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= (most or int(text)):
        return int(text)
    bounds = f"{least} on" if most is None else f"{least} to {most:,}"
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {bounds}")


def percent(text: str) -> float:
    """A fraction, of ``5%`` or ``5``."""
    percentage = _PERCENT.fullmatch(text)
    if percentage is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0 on, such as 5%")
    return float(percentage[1]) / 100
