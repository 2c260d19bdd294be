"""Compares two device memory profiles: what holds more memory in the second."""

from __future__ import annotations

import argparse

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_REGRESSION
from tpuprof.parsers.memory.live_arrays import read_live_arrays
from tpuprof.parsers.session.diff.live_arrays import LiveArraysDiff, growth
from tpuprof.parsers.session.live_arrays import open_arrays
from tpuprof.tui.cli import common, printing
from tpuprof.tui.cli.commands.arrays import show
from tpuprof.tui.cli.common import note
from tpuprof.tui.pages import command_named


def compare_arrays(args: argparse.Namespace, paths: tuple[str, str]) -> int:
    """Shows or prints the comparison; see `run_diff`."""
    printing.check_output(args, *map(open_arrays, paths))
    diff = LiveArraysDiff(*map(read_live_arrays, paths))
    allowed = args.fail_on_regression
    wants_report = args.format is not None or args.output is not None or allowed is not None
    obstacle = common.why_no_screen()
    if not wants_report and not obstacle:
        return show(args, diff)
    if not wants_report:
        note(f"{obstacle} Printing the report instead of opening the screen.")
    judged = None if allowed is None else growth(diff, allowed)
    report = command_named("live-arrays").load_report()
    writer = report.writers[args.format or "text"]
    printing.write_report(args, writer(report.read(diff, judged), printing.report_look(args), args.limit))
    if judged is None or not judged.is_beyond:
        return EXIT_OK
    note(judged.sentence)
    return EXIT_REGRESSION
