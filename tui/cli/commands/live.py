"""``tpuprof-tui live [HOST:PORT ...]``: what the runtime reports about its chips right now, and a capture at a key."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable

from tpuprof.parsers.base.errors import EXIT_OK, Cancelled, ProfileError
from tpuprof.parsers.capture.runtime_metrics import Reading, RuntimeMetrics, runtime_addresses
from tpuprof.tui.cli import common
from tpuprof.tui.cli.printing import report_look
from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.output import write_stdout
from tpuprof.tui.terminal.detect import settle_terminal


def run_live(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code, 0 where at least one reading was had.

    Raises:
        ProfileError: no runtime answers (exit code 7).
    """
    metrics = RuntimeMetrics(runtime_addresses(args.addresses))
    try:
        opens = args.format is None and common.opens_screen("readings") and not args.count
        return _screen(args, metrics) if opens else _lines(args, metrics)
    finally:
        metrics.close()


def _lines(args: argparse.Namespace, metrics: RuntimeMetrics) -> int:
    report, look = command_named("live").load_report(), report_look(args)
    write = report.writers[args.format or "text"]
    before: Reading | None = None
    done = 0
    while True:
        began = time.monotonic()
        reading = metrics.read()
        write_stdout(write(report.read(reading, before), look, 0))
        before, done = reading, done + 1
        if done == args.count:
            return EXIT_OK
        time.sleep(max(0.0, args.every - (time.monotonic() - began)))


def _screen(args: argparse.Namespace, metrics: RuntimeMetrics) -> int:
    """Opens the screen; after a capture it opens again, with the readings of before."""
    custom = common.configured(args).custom
    first = metrics.read()  # where nobody answers, that is a sentence and no screen
    addresses = args.addresses or sorted({device.address for device in first.devices}) or ["the runtime"]
    readings: Iterable[Reading] = [first]
    app_class = command_named("live").load_app()
    while True:
        terminal = settle_terminal(args.color, args.ascii, args.mouse, custom)
        app = app_class(addresses, metrics.read, args.every, terminal, readings=readings)
        exit_code: int = app.show(terminal.mouse)
        if app.return_value != "capture":
            return exit_code
        readings = app.readings
        _capture(args)


def _capture(args: argparse.Namespace) -> None:
    """Takes a profile of the program and opens it; what goes wrong is said, and Enter goes on."""
    words = [args.server, "--logdir", args.logdir, "--color", args.color, *(["--ascii"] if args.ascii else [])]
    try:
        capture = COMMANDS["capture"]
        capture.run(capture.parser().parse_args(words))
    except Cancelled:
        return
    except ProfileError as error:
        common.note(error.sentence)
        if error.hint:
            common.note(f"try: {error.hint}")
        common.note("Enter goes back")
        sys.stdin.readline()
