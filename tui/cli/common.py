"""What the commands share: the user's settings, what standard error says, and whether there is a screen.

Every command imports it, `--help` and `--version` too: it loads nothing that reads a profile, draws one or prints one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import masked
from tpuprof.tui.cli.arguments.help import terminal_columns
from tpuprof.tui.cli.arguments.options import DEMO, MOST_WIDTH
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.output import write_stderr
from tpuprof.tui.terminal.detect import Config, detect, read_config, settle_terminal

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.hosts.progress import Progress
    from tpuprof.parsers.session.session import Session
    from tpuprof.tui.app.options import AppOptions
    from tpuprof.tui.terminal.progress import ProgressLine

_LINE_WIDTH = 80  # cells of a line on standard error where nothing says


def existing(path: str) -> str:
    """Where the bundled demo lies, for its name; any other path as it is."""
    return demo_path() if path == DEMO else path


def version_of(distribution: str) -> str:
    """The installed version of a distribution, read without importing it."""
    from importlib import metadata  # noqa: PLC0415 - slow

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def with_own_pip(hint: str) -> str:
    """A hint whose `pip install` reaches the environment of this program, also where that has no pip of its own."""
    python = shlex.quote(sys.executable)
    has_pip = import_module("importlib.util").find_spec("pip") is not None
    return hint.replace("pip install", f"{python} -m pip install" if has_pip else f"uv pip install --python {python}")


# --- the user's settings


def configured(args: argparse.Namespace) -> Config:
    """What the environment sets, with what the command line says in its place.

    Raises:
        ProfileError: see `read_config`.
    """
    return read_config(os.environ, getattr(args, "theme", None))


def app_options(args: argparse.Namespace) -> AppOptions:
    """How the app is to look and to read.

    Raises:
        ProfileError: see `read_config`.
    """
    config = configured(args)
    made: AppOptions = import_module("tpuprof.tui.app.options").AppOptions(
        ascii=args.ascii,
        color=args.color,
        mouse=args.mouse,
        cache=getattr(args, "cache", True) and config.cache,
        cache_bytes=config.cache_bytes,
        theme=config.theme,
    )
    return made


def session_of(run: Run, args: argparse.Namespace, config: Config, on_progress: Callable[[Progress], None]) -> Session:
    """What reads a run, with the workers that were asked for, and with what the user has set of the cache."""
    from tpuprof.parsers.session.opening import open_run  # noqa: PLC0415 - numpy

    cache = args.cache and config.cache
    return open_run(run, on_progress, lambda: False, cache=cache, cache_bytes=config.cache_bytes, jobs=args.jobs)


def core_of(logdir: Logdir, args: argparse.Namespace) -> str | None:
    """The one name of the core that is asked for, ``host:2``, by whichever of its names that is; None for all cores."""
    if args.core is None:
        return None
    found: Run = import_module("tpuprof.parsers.session.one_core").narrowed(
        logdir.find_run(args.run), args.core, args.host
    )
    return found.core


# --- standard error


def note(sentence: str) -> None:
    """One line on standard error, without secrets; on a terminal it is wrapped between words."""
    line = printable(masked(sentence))
    if sys.stderr.isatty():
        begin = line.index(": ") + 2 if line.startswith(("try: ", "note: ")) else 0
        after = " " * begin
        line = textwrap.fill(
            line, line_width(), subsequent_indent=after, break_long_words=False, break_on_hyphens=False
        )
    write_stderr(f"{line}\n")


def can_redraw() -> bool:
    """Whether standard error is a terminal on which a line can be drawn over itself."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def line_width() -> int:
    """Cells of a line on standard error."""
    return columns(_LINE_WIDTH)


@contextlib.contextmanager
def decoding_shown() -> Iterator[Callable[[Progress], None]]:
    """What to report to how far decoding is: a line on standard error where that is a terminal, else nothing."""
    if not can_redraw():
        yield lambda _: None
        return
    line: ProgressLine = import_module("tpuprof.tui.terminal.progress").ProgressLine(write_stderr, width=line_width())
    try:
        yield line
    finally:
        line.clear()


# --- the screen, or a report in its place


def why_no_screen() -> str:
    """Why no screen can be drawn here, as a sentence; empty where one can."""
    return detect(os.environ, is_tty=on_terminal()).obstacle


def wants_report(args: argparse.Namespace) -> bool:
    """Whether a report is asked for, or a check, and not the screen."""
    asks = ("format", "output", "fail_on_regression", "filter", "sort", "columns")
    return any(getattr(args, name, None) is not None for name in asks)


def opens_screen(called: str) -> bool:
    """Whether a screen can be drawn; says why not, and what is printed instead."""
    obstacle = why_no_screen()
    if obstacle:
        note(f"{obstacle} Printing {called} instead of opening the screen.")
    return not obstacle


def show(args: argparse.Namespace, page: str, *content: object, **more: object) -> int:
    """Shows what a command has read, on a screen of its own, which may take more besides; the exit code."""
    terminal = settle_terminal(args.color, args.ascii, args.mouse, configured(args).theme)
    exit_code: int = command_named(page).load_app()(*content, terminal, **more).show(terminal.mouse)
    return exit_code


def on_terminal() -> bool:
    """Whether standard input and output are a terminal; a closed one is None."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def columns(fallback: int) -> int:
    """Width of the terminal, by COLUMNS first."""
    return min(terminal_columns(fallback), MOST_WIDTH)
