"""Compares two device memory profiles: what holds more memory in the second."""

from __future__ import annotations

import argparse

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_REGRESSION
from tpuprof.parsers.memory.live_arrays import read_live_arrays
from tpuprof.parsers.session.diff.live_arrays import LiveArraysDiff, growth
from tpuprof.parsers.session.live_arrays import open_arrays
from tpuprof.tui.cli import common, printing
from tpuprof.tui.cli.common import note
from tpuprof.tui.pages import command_named


def compare_arrays(args: argparse.Namespace, paths: tuple[str, str]) -> int:
    """Shows or prints the comparison; see `run_diff`."""
    printing.check_output(args, *map(open_arrays, paths))
    diff = LiveArraysDiff(*map(read_live_arrays, paths))
    if not common.wants_report(args) and common.opens_screen("the report"):
        return common.show(args, "live-arrays", diff)
    judged = None if args.fail_on_regression is None else growth(diff, args.fail_on_regression)
    report = command_named("live-arrays").load_report()
    writer = report.writers[args.format or "text"]
    printing.write_report(args, writer(report.read(diff, judged), printing.report_look(args), args.limit))
    if judged is None or not judged.is_beyond:
        return EXIT_OK
    note(judged.sentence)
    return EXIT_REGRESSION
