"""``tpuprof-tui live [HOST:PORT ...]``: what the runtime tells of its chips right now, and a capture at a key.

Nothing here imports Textual before the screen is to open.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import EXIT_OK, Cancelled, ProfileError
from tpuprof.tui.cli import common
from tpuprof.tui.cli.common import PROGRAM, whole_number
from tpuprof.tui.pages import command_named

if TYPE_CHECKING:
    from tpuprof.parsers.capture.runtime_metrics import Reading, RuntimeMetrics

_SLOWEST_SECONDS = 3_600
_EPILOG = f"""without an address it asks localhost:8431, or the ports in TPU_RUNTIME_METRICS_PORTS: the service that
tpu-info reads, which every TPU program serves on its own machine. C takes a profile of the program at --server:

  {PROGRAM} live
  {PROGRAM} live --server localhost:9012 --logdir ~/logs
  {PROGRAM} live --format json --count 60 > duty.jsonl
"""


def live_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The command's options."""
    what = "Shows how busy the chips of a running program are and what memory they use; C captures a profile."
    parser = common.new_parser(parser_class, "live", what, _EPILOG)
    parser.add_argument("addresses", nargs="*", metavar="HOST:PORT", help="metric services of runtimes")
    seconds = partial(whole_number, least=1, most=_SLOWEST_SECONDS)
    parser.add_argument("--every", type=seconds, default=1, metavar="SECONDS", help="between readings (default: 1)")
    lines = "print a reading after the other instead of opening the screen; text and JSON are a line each"
    parser.add_argument("--format", choices=("text", "json", "md"), help=lines)
    parser.add_argument(
        "--count", type=whole_number, default=0, metavar="N", help="print so many lines (default: no end)"
    )
    server = "the program's profiler server, for C (default: localhost:9012)"
    parser.add_argument("--server", default="localhost:9012", metavar="HOST:PORT", help=server)
    parser.add_argument("--logdir", default=".", metavar="DIR", help="where a capture lands (default: .)")
    common.add_width(parser)
    common.add_screen(parser)
    common.add_debug(parser)
    parser.set_defaults(output=None)
    return parser


def run_live(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code, 0 where at least one reading was had.

    Raises:
        ProfileError: no runtime answers (exit code 7).
    """
    from tpuprof.parsers.capture.runtime_metrics import (  # noqa: PLC0415 - protobuf, not for --help
        RuntimeMetrics,
        runtime_addresses,
    )

    metrics = RuntimeMetrics(runtime_addresses(args.addresses))
    try:
        obstacle = common.why_no_screen()
        if args.format is None and not args.count and not obstacle:
            return _screen(args, metrics)
        if obstacle and args.format is None:
            common.note(f"{obstacle} Printing readings instead of opening the screen.")
        return _lines(args, metrics)
    finally:
        metrics.close()


def _lines(args: argparse.Namespace, metrics: RuntimeMetrics) -> int:
    """Prints a reading after the other."""
    from tpuprof.tui.report.output import write_stdout  # noqa: PLC0415

    report, look = command_named("live").load_report(), common.report_look(args)
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
    from tpuprof.tui.terminal.detect import settle_terminal  # noqa: PLC0415

    custom = common.configured(args).custom
    first = metrics.read()  # where nobody answers, that is a sentence and no screen
    addresses = args.addresses or sorted({device.address for device in first.devices}) or ["the runtime"]
    readings: Iterable[Reading] = [first]
    captures: list[float] = []
    app_class = command_named("live").load_app()
    while True:
        terminal = settle_terminal(args.color, args.ascii, args.mouse, custom)
        app = app_class(addresses, metrics.read, args.every, terminal, readings=readings, captures=captures)
        exit_code: int = app.show(terminal.mouse)
        if app.return_value != "capture":
            return exit_code
        readings = app.readings
        captures.append(time.time())
        _capture(args)


def _capture(args: argparse.Namespace) -> None:
    """Takes a profile of the program and opens it; what goes wrong is said, and Enter goes on."""
    from tpuprof.tui.cli.commands.capture import capture_parser, run_capture  # noqa: PLC0415

    words = [args.server, "--logdir", args.logdir, "--color", args.color, *(["--ascii"] if args.ascii else [])]
    try:
        run_capture(capture_parser(common.UsageParser).parse_args(words))
    except Cancelled:
        return
    except ProfileError as error:
        common.note(error.sentence)
        if error.hint:
            common.note(f"try: {error.hint}")
        common.note("Enter goes back")
        sys.stdin.readline()
