"""``tpuprof-tui try COMMAND``: runs a command for each variant until its program is compiled, and compares them."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import NoReturn

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_UNREADABLE, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.pages.program.trials import UNKNOWN, Plan, plan_of, trials
from tpuprof.tui.cli import printing
from tpuprof.tui.cli.commands.capture.signals import on_signals
from tpuprof.tui.cli.common import note
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.output import write_stderr
from tpuprof.tui.report.page import check_keys

_SHOWN = 8  # variants that the question names


def run_try(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code: 0 where the compiler said something of every variant, else 4.

    Raises:
        ProfileError: the variants are wrong, or nobody agreed to run the command (exit code 2).
        KeyboardInterrupt: ctrl+C; what ran is ended.
    """
    check_keys(args.keys, args.format)
    plan = plan_of(args.command, args.set, args.flag, args.module, args.time_limit)
    _agree(plan, is_agreed=args.yes)
    made = []
    with _folder(args.keep) as folder, on_signals(_stop, signal.SIGTERM, signal.SIGHUP):
        for trial in trials(plan, folder, os.environ):
            made.append(trial)
            note(f"{trial.label}: {trial.verdict}{f' ({trial.reason})' if trial.reason else ''}")
    if (name := plan.searched) is not None:
        made.sort(key=lambda trial: int(dict(trial.variant.values)[name]))
    report = command_named("try").load_report()
    content, look = report.read(plan, made), printing.report_look(args)
    printing.write_report(args, report.writers[args.format](content, look, args.limit or 0))
    return EXIT_UNREADABLE if any(trial.verdict == UNKNOWN for trial in made) else EXIT_OK


def _stop() -> NoReturn:
    raise KeyboardInterrupt


def _agree(plan: Plan, *, is_agreed: bool) -> None:
    """Says what is about to run, and asks whether it may.

    Raises:
        ProfileError: nobody can be asked, or the answer is no; nothing was run.
    """
    lines = [f"  {printable(variant.command(plan.command))}   [{variant.label}]" for variant in plan.variants]
    until = "it ends" if plan.module is None else f"{printable(plan.module)} is compiled"
    what = (
        f"Runs a command {counted(len(plan.variants), 'time')}, each until {until}, for {plan.seconds:.0f} s at most:"
    )
    rest = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    rest += [f"  and values of {plan.searched} between these"] if plan.searched is not None else []
    write_stderr("".join(f"{line}\n" for line in (what, *lines[:_SHOWN], *rest)))
    if is_agreed:
        return
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        raise ProfileError("usage", "Nothing was run: there is no terminal to ask on.", "--yes runs it", EXIT_USAGE)
    write_stderr("Run it? [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ProfileError("usage", "Nothing was run.", "answer y, or call it with --yes", EXIT_USAGE)


@contextlib.contextmanager
def _folder(kept: str | None) -> Iterator[str]:
    """A new folder for the dumps: of its own and gone afterwards, or one that is kept."""
    if kept is not None:
        try:
            os.mkdir(kept, 0o700)
        except FileExistsError:
            sentence = f"{printable(kept)} is there already, and nothing is written into it."
            raise ProfileError("usage", sentence, "--keep a new folder", EXIT_USAGE) from None
        yield os.path.abspath(kept)
        return
    folder = tempfile.mkdtemp(prefix="tpuprof-try-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
