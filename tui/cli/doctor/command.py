"""``tpuprof-tui doctor [PATH]``: what is installed, what the terminal can do, what a logdir holds and lacks."""

from __future__ import annotations

import argparse
import os

from tpuprof.tui.cli.common import PROGRAM, add_debug


def doctor_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The command's options."""
    parser = parser_class(
        prog=f"{PROGRAM} doctor",
        description="Prints what is installed, what this terminal can do, and what the profiles at PATH hold and lack.",
        epilog="The text is for pasting: it shows no secrets, no machine's address, and the home folder as ~.",
        allow_abbrev=False,
    )
    parser.add_argument("path", metavar="PATH", nargs="?", help="a logdir, a run or a profile")
    parser.add_argument("--md", action="store_true", help="as a fenced block of Markdown, for an issue")
    add_debug(parser)
    return parser


def run_doctor(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        0; or 3 or 4 where PATH leads to no profile, after the report.
    """
    from tpuprof.tui.cli.doctor.report import doctor_report  # noqa: PLC0415 - importlib.metadata is slow
    from tpuprof.tui.report.output import write_stdout  # noqa: PLC0415

    text, exit_code = doctor_report(os.environ, args.path, args.md)
    write_stdout(text)
    return exit_code
