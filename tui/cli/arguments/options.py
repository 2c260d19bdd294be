"""What the arguments of the commands share: the parser, usage errors, and options that several commands have.

An option that several commands or pages take stands in the vocabulary: one name, one grammar, one meaning.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import takewhile
from typing import Any, NoReturn

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import PATHS, nearest
from tpuprof.tui.cli.arguments import values
from tpuprof.tui.cli.arguments.help import COMMON, WHICH_RUN, help_text
from tpuprof.tui.report.output import LEAST_BYTES, write_stdout
from tpuprof.tui.terminal.detect import COLOR_CHOICES, THEMES

PROGRAM = "tpuprof-tui"
DEMO = "demo"  # the path that stands for the bundled demo profile
STREAM = "-"  # the file name that stands for standard input or output
MOST_WIDTH = 10_000  # cells of the widest text report
HERE = "."  # where profiles are looked for if no path is given

SPACES = ("hbm", "vmem", "smem", "cmem", "sflag", "sparsecore", "host")
"""Memory spaces, `parsers.memory.model.SPACE_NAMES` in lower case."""

NO_OPTION = pattern(r"unrecognized arguments: (--?[\w-]+)")
_LIKE_OPTION = pattern(r"-[^\s\d][^\s]*\Z")
_NO_CHOICE = pattern(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)\Z")
_MISSING = pattern(r"the following arguments are required: ([^,]+)")
_NO_VALUE = pattern(r"argument (\S+): expected (?:one|at least one) argument")
"""The messages of argparse for an unknown option, a wrong value, and what is missing."""

ALL_ROWS = "0: all (default: all; of text in a pipe 20 KB)"
"""What a limit is where a call gives none."""

_SHORT: Mapping[str, tuple[str, ...]] = {"--output": ("-o",), "--limit": ("-n",)}


def value(metavar: str, meaning: str = "", kind: Callable[[str], object] = str, **more: object) -> Mapping[str, Any]:
    """An option with a value, as `argparse` takes it."""
    return {"metavar": metavar, "help": meaning, "type": kind, **more}


def switch(meaning: str = "", **more: object) -> Mapping[str, Any]:
    """An option without a value."""
    return {"action": "store_true", "help": meaning, **more}


_LATER, _UP_TO = "only events from this instant on, on the trace's clock", "only events up to this instant"
_REGRESSION = "exit code 6 if steps got slower by more than that and noise, 4 if unknown"
_VOCABULARY: Mapping[str, Mapping[str, Any]] = {
    # which run, and which part of it
    "--run": value("RUN", "its beginning is enough"),
    "--host": value("HOST", "its beginning is enough"),
    "--core": value("CORE", "2, HOST:2, HOST:chip1"),
    "--group": value("N", "of report cores", values.group, dest="core"),
    "--step": value("STEP", "only this step, by its name, or these: 104-108"),
    "--from": value("MS", _LATER, values.milliseconds, dest="from_ps"),
    "--to": value("MS", _UP_TO, values.milliseconds, dest="to_ps"),
    "--track": value("NAME", "only tracks with NAME in their section / name"),
    "--op": value("NAME", "an HLO op, kernel or framework op (default: the longest)"),
    "--module": value("MODULE", "name, or name(program id) (default: the largest HBM peak)"),
    "--space": value("SPACE", f"{', '.join(SPACES)} (default: hbm)", choices=SPACES),
    "--device": value("TPU", "the TPU that HLO files are for: v5e, v6e-8, trillium", values.device),
    # what is made of it
    "--by": value("BY"),
    "--facts": switch("step time, device and modules too; some 10 ms a run"),
    "--fit": switch("how large the batch may be"),
    "--around": value("N", "steps over operands and users (default: 1)", values.whole_number),
    "--model-flops": value("N", "of a step, on all cores (default: what the compiler counts)", values.amount),
    "--tokens": value("N", "tokens, or samples, in a step", values.amount),
    "--requests": value("NAME", "the host annotation whose spans are the requests"),
    "--dump": value("DIR", "schedules: LIBTPU_INIT_ARGS=--xla_jf_dump_to=DIR"),
    "--fail-on-regression": value("PERCENT", _REGRESSION, values.percent),
    "--fail-on": value("TEXT", "exit code 6 if a finding matches: >5%, kind=collective; 4 if unknown"),
    "--require": value("TEXT", "exit code 6 if a figure does not match: mfu>40%; 4 if unknown", action="append"),
    # rows, and what is printed of them
    "--filter": value("TEXT", "rows that match: KEY>1ms, KEY=text, KEY:part, word, !word"),
    "--sort": value("KEY", "by a column; KEY:asc or KEY:desc sets the direction"),
    "--columns": value("KEYS", "these columns, separated by commas"),
    "--limit": value("N", kind=values.whole_number),
    "--max-bytes": value("N", "at most", partial(values.whole_number, least=LEAST_BYTES)),
    "--keys": value("KEYS", "of JSON only these keys; a.b is b in a"),
    "--output": value("FILE", "write to FILE instead of standard output", values.file_name),
    "--mask": switch("of HTML: replace names of people, machines, runs and files"),
    "--time-limit": value("TIME", kind=values.whole_seconds),
    # what every command has
    "--width": value("CELLS", "of text", partial(values.whole_number, most=MOST_WIDTH), default=0),
    "--ascii": switch(default=None),
    "--color": value("WHEN", ", ".join(COLOR_CHOICES), choices=COLOR_CHOICES, default="auto"),
    "--theme": value("THEME", ", ".join(THEMES), choices=THEMES),
    "--mouse": switch("over SSH too", default=None),
    "--no-mouse": {"dest": "mouse", "action": "store_false"},
    "--jobs": value("N", "cores", partial(values.whole_number, least=1)),
    "--no-cache": {"dest": "cache", "action": "store_false", "help": "read the files again"},
    "--debug": switch("traceback"),
}
"""Options by name, as `argparse` takes them; `add` adds them."""


class UsageParser(argparse.ArgumentParser):
    """A command's options, in the parts of its help; raises usage errors like all others, with a hint.

    Attributes:
        examples: what the help begins with: calls of the program, without its name.
    """

    examples: tuple[str, ...] = ()

    def part(self, title: str) -> argparse._ArgumentGroup:
        """The part of the help with a title, made where it is first asked for."""
        found = (group for group in self._action_groups if group.title == title)
        return next(found, None) or self.add_argument_group(title)

    def format_help(self) -> str:
        """The help, one screen of it."""
        return help_text(self, [f"{PROGRAM} {example}" for example in self.examples])

    def _print_message(self, message: str, _: object = None) -> None:
        """Prints the help, whatever argparse would do with an error."""
        write_stdout(message)

    def parse_known_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - as argparse
        """Parses; an unknown option is named before what else is wrong, which its value may be behind.

        Raises:
            ProfileError: the words are wrong.
        """
        known = self._option_string_actions
        options = filter(_LIKE_OPTION.match, takewhile("--".__ne__, args))
        unknown = [word for word in options if word.partition("=")[0] not in known and word[:2] not in known]
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return super().parse_known_intermixed_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        hint = self._nearest(message) or f"{self.prog} --help"
        if (missing := _MISSING.match(message)) is not None:
            message = f"{self.prog} needs {missing[1]}"
        elif (bare := _NO_VALUE.match(message)) is not None:
            message = f"{bare[1].rpartition('/')[2]} needs a value"
        else:
            message = f"{message[:1].upper()}{message[1:]}"
        raise ProfileError("usage", f"{message}.", hint, EXIT_USAGE)

    def _nearest(self, message: str) -> str:
        """The options or values that are nearest to the wrong one; empty if none is near."""
        if (given := NO_OPTION.match(message)) is not None:
            if near := import_module("tpuprof.tui.cli.habits").nearest_in_meaning(given[1]):
                return str(near)
            known = [option for action in self._actions for option in action.option_strings if option[:2] == "--"]
            return " or ".join(nearest(given[1], known, 2))
        if (wrong := _NO_CHOICE.match(message)) is None:
            return ""
        choices = [choice.strip(" '") for choice in wrong[3].split(",")]
        near = nearest(wrong[2], choices, 2)
        option = wrong[1].rpartition("/")[2]
        return f"{option} {' or '.join(near)}" if near and option.startswith("-") else ""


def new_parser(
    command: str,
    description: str,
    examples: Sequence[str] = (),
    more: str = "",
    of: Callable[..., UsageParser] = UsageParser,
) -> UsageParser:
    """A command's parser.

    Args:
        examples: calls of it, without the name of the program; the help begins with them.
        more: the end of its help, line by line.
        of: makes it.
    """
    name = f"{PROGRAM} {command}".strip()
    parser = of(name, "", description, more, formatter_class=lambda prog: _FORMATTER, allow_abbrev=False)
    parser.examples = tuple(examples)
    return parser


_FORMATTER = argparse.HelpFormatter("", width=80)
"""One for all: argparse makes one for each option that is added, and our help is not written by it."""


# --- the vocabulary: what several commands or pages take has one name and one meaning


def meaning_of(flag: str) -> str:
    """What the help says of an option."""
    return str(_VOCABULARY[flag]["help"])


def add(part: argparse._ActionsContainer, *flags: str, **instead: Any) -> None:  # noqa: ANN401 - as `add_argument`
    """Adds options of the vocabulary; `instead` says what is different here."""
    for flag in flags:
        part.add_argument(*_SHORT.get(flag, ()), flag, **{**_VOCABULARY[flag], **instead})


def add_choice_of_profile(
    parser: UsageParser, where: str = "logdir, run, file, glob, - for standard input (default: .)", several: bool = True
) -> None:
    """Which profile, and of which run and host; `several` paths may lead to the hosts of one capture."""
    parser.add_argument("path", nargs="*" if several else "?", default=HERE, metavar="PATH", action=Paths, help=where)
    add(parser.part(WHICH_RUN), "--run", "--host", "--core", "--group")


def add_output(
    parser: UsageParser, formats: Sequence[str], known: Sequence[str] = (), screen: bool = False
) -> argparse._ArgumentGroup:
    """In which format, and to where.

    Args:
        formats: those of the help.
        known: what is taken besides, to be refused with a better sentence.
        screen: whether a screen is opened where no format is named.
    """
    part = parser.part("output")
    shown = f"{', '.join(formats)} (default: {'the screen' if screen else 'text'})"
    default = None if screen else "text"
    part.add_argument(
        "--format", type=str.lower, choices=known or formats, default=default, metavar="FORMAT", help=shown
    )
    part.add_argument("--json", "--md", dest="format", action=_Form, nargs=0, help="short for two of these")
    add(part, "--output")
    return part


def add_common(parser: UsageParser, *, reads: bool = False, width: bool = False, look: bool = True) -> UsageParser:
    """How what is printed looks; who reads the hosts, and whether it is kept; tracebacks. Returns the parser."""
    part = parser.part(COMMON)
    add(part, *(["--max-bytes", "--width"] if width else []), *(["--ascii", "--color"] if look else []))
    add(part, *(["--jobs", "--no-cache"] if reads else []), "--debug")
    return parser


def add_screen(parser: UsageParser) -> UsageParser:
    """How the screen looks, and whether it follows the mouse. Returns the parser."""
    add(parser.part(COMMON), "--theme", "--mouse", "--no-mouse")
    return parser


class _Form(argparse.Action):
    """A format by an option of its name."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option: str | None = None
    ) -> None:
        form, given = (option or "").removeprefix("--"), getattr(namespace, self.dest)
        if given not in (self.default, form, parser.get_default(self.dest)):
            parser.error(f"two formats were given: {given} and {form}")
        setattr(namespace, self.dest, form)


def may_be_path(word: str) -> bool:
    """Whether a word looks like a path, or is one: neither a page nor an op has such a name."""
    return word == DEMO or not {*"/\\~*?[:"}.isdisjoint(word) or os.path.lexists(word)


class Paths(argparse.Action):
    """One path or several, in their place or behind an option; where none stands argparse hands over the default.

    On a page of one op the last word may be its name.
    """

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
        if getattr(namespace, "op", "") is None and not may_be_path(paths[-1]):
            namespace.op = paths.pop()
            paths = paths or [HERE]
        if len(paths) > 1 and not all(os.path.lexists(os.path.expanduser(path)) for path in paths):
            parser.error(f"unrecognized arguments: {' '.join(paths[1:])}")
        setattr(namespace, self.dest, PATHS.join(paths))
