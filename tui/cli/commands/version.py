"""``tpuprof-tui --version``, and as JSON what a bug report needs to know beside it."""

from __future__ import annotations

import argparse

from tpuprof.parsers.base.errors import EXIT_OK
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.common import version_of
from tpuprof.tui.report.output import write_stdout


def run_version(args: argparse.Namespace) -> int:
    """Prints the version."""
    if args.json:
        from tpuprof.tui.cli.commands.doctor.machine import version_json  # noqa: PLC0415 - numpy

        write_stdout(version_json())
    else:
        write_stdout(f"{PROGRAM} {version_of(PROGRAM)}\n")
    return EXIT_OK
