"""What the commands share: options that several have, what standard error says, and where reports go.

Nothing heavy is imported before it is needed, and Textual not at all.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.tui.app.options import COLOR_CHOICES, AppOptions
from tpuprof.tui.terminal.custom import THEMES, VARIABLE, Config, config_path
from tpuprof.tui.terminal.detect import detect

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Logdir
    from tpuprof.parsers.hosts.cache import HostCache
    from tpuprof.parsers.hosts.progress import Progress
    from tpuprof.tui.report.output import Produce
    from tpuprof.tui.report.page import Look

PROGRAM = "tpuprof-tui"
DEMO = "demo"
"""The path that stands for the bundled demo profile."""
STREAM = "-"
"""The file name that stands for standard input or output."""
PIPE_WIDTH = 110
"""Cells of a text report where neither `--width`, a terminal nor COLUMNS says: room for every column."""

MOST_WIDTH = 10_000
"""Cells of the widest text report."""

_HERE = "."
"""Where profiles are looked for if no path is given."""

_LINE_WIDTH = 80
"""Cells of a line on standard error where nothing says."""

# --- options


class UsageParser(argparse.ArgumentParser):
    """Raises usage errors in the form of all others."""

    def error(self, message: str) -> NoReturn:
        """A usage error."""
        raise ProfileError("usage", f"{message[:1].upper()}{message[1:]}.", f"{self.prog} --help", EXIT_USAGE)


def new_parser(
    kind: type[argparse.ArgumentParser], command: str, description: str, more: str = ""
) -> argparse.ArgumentParser:
    """A command's parser; what more there is stands as it is at the end of its help."""
    form = argparse.RawDescriptionHelpFormatter if more else argparse.HelpFormatter
    return kind(f"{PROGRAM} {command}", None, description, more or None, formatter_class=form, allow_abbrev=False)


def add_look(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Characters and colours, of a report or the screen."""
    parser.add_argument("--ascii", action="store_true", default=None, help="draw with ASCII characters only")
    parser.add_argument("--color", choices=COLOR_CHOICES, default="auto", help="default: auto")


def add_screen(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """How the screen looks, and whether it follows the mouse."""
    add_look(parser)
    colours = "default: auto, dark or light by the terminal; or by the file of tpuprof-tui config"
    parser.add_argument("--theme", choices=THEMES, help=colours)
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


def add_debug(parser: argparse.ArgumentParser) -> None:
    """Tracebacks; `cli` itself looks for it."""
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")


def add_device(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """For which TPU compiled modules are."""
    device = "the TPU that HLO files are for, such as v5e or v6e; a profile says it itself"
    parser.add_argument("--device", metavar="TPU", type=_device, help=device)


def _device(text: str) -> str:
    """A type of TPU as profiles write it, of ``v5e`` or ``TPU v5e``."""
    from tpuprof.parsers.memory.modules.capacity import generation_of  # noqa: PLC0415

    generation = generation_of(text) or generation_of(f"TPU {text}")
    if generation is None:
        raise argparse.ArgumentTypeError(f"no memory is known of {text!r}; one of: v2 v3 v4 v5e v5p v6e 7x")
    return generation


class _Path(argparse.Action):
    """The path, in its place or behind `--logdir`; argparse hands over the default where none stands in its place."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        _: str | None = None,
    ) -> None:
        if values == _HERE:
            return
        if namespace.path != _HERE:
            parser.error(f"two paths were given: {namespace.path} and {values}")
        namespace.path = values


def add_choice_of_profile(
    parser: argparse.ArgumentParser, where: str = "logdir, any folder above it, run, file or glob (default: .)"
) -> None:
    """Which profile, and of which run and host."""
    parser.add_argument("path", nargs="?", default=_HERE, metavar="PATH", action=_Path, help=where)
    parser.add_argument("--logdir", dest="path", metavar="DIR", default=_HERE, action=_Path, help="the same as PATH")
    parser.add_argument("--run", metavar="RUN", help="name of a run, or its beginning (default: the newest)")
    parser.add_argument("--host", metavar="HOST", help="one host only (default: all merged; of the timeline the first)")
    add_core(parser)


def add_core(parser: argparse.ArgumentParser) -> None:
    """Of which core."""
    core = "one core only, HOST:2, or one chip, HOST:chip1; with one host 2 will do (default: all)"
    parser.add_argument("--core", metavar="CORE", help=core)


def add_reading(
    parser: argparse.ArgumentParser,
    workers: str = "read the hosts on the workers of a Dask cluster, host:port; they must see the same paths",
) -> None:
    """Who reads the hosts, and whether what was read is kept."""
    parser.add_argument("--scheduler", metavar="ADDRESS", help=workers)
    again = "read the files again, and keep nothing of them in the user's cache folder"
    parser.add_argument("--no-cache", dest="cache", action="store_false", help=again)


def whole_number(text: str, least: int = 0, most: int | None = None) -> int:
    """A whole number of an option, in a range."""
    if text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= (most or int(text)):
        return int(text)
    bounds = f"{least} on" if most is None else f"{least} to {most:,}"
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {bounds}")


def existing(path: str) -> str:
    """Where the bundled demo lies, for its name; any other path as it is."""
    if path != DEMO:
        return path
    from tpuprof.tui.demo import demo_path  # noqa: PLC0415 - only here

    return demo_path()


def version_of(distribution: str) -> str:
    """The installed version of a distribution, read without importing it."""
    from importlib import metadata  # noqa: PLC0415 - slow

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


# --- the user's file


def configured(args: argparse.Namespace) -> Config:
    """What the user's file sets, with what the command line says in its place.

    Raises:
        ProfileError: see `read_config`.
    """
    config = Config(config_path(os.environ))
    if os.environ.get(VARIABLE) or os.path.exists(config.path):
        from tpuprof.tui.app.config import read_config  # noqa: PLC0415 - for those who have a file

        config = read_config(os.environ)
    if config.remote_bytes is not None:  # for worker processes too
        os.environ.setdefault("TPUPROF_CACHE_BYTES", str(config.remote_bytes))
    asked = getattr(args, "theme", None)
    return config if asked is None else replace(config, custom=replace(config.custom, theme=asked))


def app_options(args: argparse.Namespace) -> AppOptions:
    """How the app is to look and to read.

    Raises:
        ProfileError: see `read_config`.
    """
    config = configured(args)
    return AppOptions(
        ascii=args.ascii,
        color=args.color,
        mouse=args.mouse,
        cache=getattr(args, "cache", True) and config.cache,
        cache_bytes=config.cache_bytes,
        custom=config.custom,
    )


def host_cache(args: argparse.Namespace, config: Config) -> HostCache | None:
    """Where what is read of hosts is kept; None where it is not to be kept."""
    from tpuprof.parsers.hosts.cache import HostCache  # noqa: PLC0415 - numpy

    return HostCache(bound=config.cache_bytes) if args.cache and config.cache else None


# --- standard error


def note(sentence: str) -> None:
    """One line on standard error, without secrets."""
    from tpuprof.parsers.base.urls import masked  # noqa: PLC0415 - not by every command

    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    line = printable(masked(sentence)).encode(encoding, "backslashreplace").decode(encoding)
    print(line, file=sys.stderr)  # noqa: T201 - this is what a command line is for


def can_redraw() -> bool:
    """Whether standard error is a terminal on which a line can be drawn over itself."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def line_width() -> int:
    """Cells of a line on standard error."""
    return _columns(_LINE_WIDTH)


@contextlib.contextmanager
def decoding_shown() -> Iterator[Callable[[Progress], None]]:
    """What to tell how far decoding is: a line on standard error where that is a terminal, else nobody."""
    if not can_redraw():
        yield lambda _: None
        return
    from tpuprof.tui.cli.progress import ProgressLine  # noqa: PLC0415

    line = ProgressLine(sys.stderr, width=line_width())
    try:
        yield line
    finally:
        line.clear()


# --- the screen


def why_no_screen() -> str:
    """Why no screen can be drawn here, as a sentence; empty where one can."""
    return detect(os.environ, is_tty=on_terminal()).obstacle


def on_terminal() -> bool:
    """Whether standard input and output are a terminal; a closed one is None."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def open_arrays_screen(args: argparse.Namespace, content: object) -> int:
    """Shows a device memory profile, or two that are compared; the exit code."""
    from tpuprof.tui.pages import command_named  # noqa: PLC0415
    from tpuprof.tui.terminal.detect import settle_terminal  # noqa: PLC0415

    terminal = settle_terminal(args.color, args.ascii, args.mouse, configured(args).custom)
    exit_code: int = command_named("live-arrays").load_app()(content, terminal).show(terminal.mouse)
    return exit_code


# --- reports


def output_file(args: argparse.Namespace) -> str | None:
    """The file that a report is to be written to; None for standard output."""
    file: str | None = args.output
    return None if file == STREAM else file


def write_report(args: argparse.Namespace, report: str | Iterable[str] | Produce, compressed: bool = False) -> None:
    """Writes a report to where it was asked for; a file may be compressed."""
    from tpuprof.tui.report.output import stream_file, stream_stdout, text_pieces  # noqa: PLC0415

    file = output_file(args)
    produce = report if callable(report) else text_pieces((report,) if isinstance(report, str) else report)
    if file is None:
        stream_stdout(produce)
    else:
        stream_file(file, produce, compressed)


def check_output(args: argparse.Namespace, *logdirs: Logdir) -> None:
    """Sees, before any work, that the report may be written to where it was asked for."""
    from tpuprof.tui.report import output  # noqa: PLC0415

    file = output_file(args)
    for logdir in logdirs if file is not None else ():
        output.check_output(file or "", logdir)


def report_look(args: argparse.Namespace) -> Look:
    """Width, characters and colours of a text report: as asked for, else by what standard output is."""
    from tpuprof.tui.report.page import Look  # noqa: PLC0415

    shown = output_file(args) is None and sys.stdout.isatty()
    terminal = detect(os.environ, color=args.color, ascii_only=args.ascii, is_tty=shown)
    color = args.color != "never" if args.color != "auto" else not terminal.obstacle and terminal.color != "mono"
    width = args.width or (_columns(PIPE_WIDTH) if args.format in (None, "text") else PIPE_WIDTH)
    return Look(width, not terminal.unicode, color)


def _columns(fallback: int) -> int:
    """Width of the terminal, by COLUMNS first."""
    import shutil  # noqa: PLC0415 - brings three compression libraries along

    return min(shutil.get_terminal_size((fallback, 24)).columns, MOST_WIDTH)
