"""``tpuprof-tui capture ADDRESS``: asks a running program for a profile, and opens it.

Nothing here imports Textual before the screen is to open, nor gRPC before a server is to be called.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TextIO, get_args

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.capture import model
from tpuprof.parsers.capture.model import CaptureOptions, CaptureProgress, CaptureResult, CaptureStop, Stage
from tpuprof.tui.cli import common
from tpuprof.tui.cli.commands import repeated
from tpuprof.tui.cli.common import PROGRAM, whole_number
from tpuprof.tui.cli.progress import RedrawnLine

if TYPE_CHECKING:
    from types import FrameType

    from tpuprof.tui.app.options import AppOptions

_ENDS = "ctrl+C ends it and keeps what was traced"
_GIVES_UP = "ctrl+C again gives up"
_EPILOG = f"""the program starts the server, once, before its training loop:
  JAX          jax.profiler.start_server(9012)
  PyTorch/XLA  import torch_xla.debug.profiler as xp; server = xp.start_server(9012)
  TensorFlow   tf.profiler.experimental.server.start(9012)

examples:
  {PROGRAM} capture localhost:9012
  {PROGRAM} capture host0:9012 host1:9012 --ms 5000 --logdir gs-mount/run1
  {PROGRAM} capture @workers:9012           every worker in TPU_WORKER_HOSTNAMES, as a slice sets it
  {PROGRAM} capture --continuous on localhost:9012
  {PROGRAM} capture --snapshot --every 1m --when 'step>1.2x' localhost:9012

It asks the addresses given and nothing else, without encryption; reach another machine's server with ssh -L.
"""


def capture_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The command's options."""
    what = "Asks running JAX, PyTorch/XLA or TensorFlow programs for a profile, writes it as a new run of the "
    what += "logdir, prints the run's path and opens it."
    parser = common.new_parser(parser_class, "capture", what, _EPILOG)
    defaults = CaptureOptions()
    parser.add_argument("addresses", nargs="+", metavar="HOST:PORT", help="profiler servers; all into one run")
    length = f"how long to trace, in milliseconds (default: {defaults.duration_ms})"
    to_trace = partial(whole_number, least=1, most=model.LONGEST_MS)
    parser.add_argument("--ms", type=to_trace, default=defaults.duration_ms, metavar="MS", help=length)
    where = "a local folder; the run lands in DIR/plugins/profile, where XProf looks for it (default: .)"
    parser.add_argument("--logdir", default=".", metavar="DIR", help=where)
    parser.add_argument("--no-open", action="store_true", help="only write the run and print its path")
    delay = "wait so long before tracing, once the servers were reached"
    to_wait = partial(whole_number, most=model.LONGEST_MS)
    parser.add_argument("--delay-ms", type=to_wait, default=0, metavar="MS", help=delay)
    patience = f"how long the data may take after that (default: {defaults.grace_seconds:g} s), and a server to answer "
    patience += f"at first, {defaults.connect_seconds:g} s at most"
    in_a_day, grace = partial(whole_number, least=1, most=86_400), int(defaults.grace_seconds)
    parser.add_argument("--wait", type=in_a_day, default=grace, metavar="SECONDS", help=patience)
    tracers = parser.add_argument_group("tracers", "What is traced, as in XProf's dialogue:")
    level = partial(whole_number, most=model.HIGHEST_LEVEL)
    for name, default, levels in (
        ("host", defaults.host_tracer_level, "0 off, 1 annotations, 2 costly runtime calls too, 3 all"),
        ("device", defaults.device_tracer_level, "0 off, 1 on"),
        ("python", defaults.python_tracer_level, "0 off, 1 every Python call, which slows the program"),
    ):
        meaning = f"{levels} (default: {default})"
        tracers.add_argument(f"--{name}-tracer-level", type=level, default=default, metavar="N", help=meaning)
    option = "an option of the profiler's own, such as tpu_trace_mode=TRACE_COMPUTE_AND_SYNC; true, false and whole "
    option += "numbers are taken as such, key:string=5 as text"
    tracers.add_argument("--option", action="append", type=_option, default=[], metavar="KEY=VALUE", help=option)
    _add_watching(parser)
    look = parser.add_argument_group("look", "Of the screen that opens:")
    common.add_screen(look)
    common.add_debug(parser)
    return parser


def _add_watching(parser: argparse.ArgumentParser) -> None:
    watching = parser.add_argument_group("watching", "A long job, and the seconds before a slowdown:")
    kept = "take what the server has kept of its last seconds, instead of tracing from now on"
    watching.add_argument("--snapshot", action="store_true", help=kept)
    switch = "have the servers keep their last seconds from now on, or no longer; no other capture goes meanwhile"
    watching.add_argument("--continuous", choices=("on", "off"), help=switch)
    again = "capture again after this time, such as 30s, 10m or 2h, until ctrl+C"
    watching.add_argument("--every", type=repeated.seconds_of, metavar="TIME", help=again)
    most = "of the runs that --every writes keep the newest N (default: all)"
    watching.add_argument("--keep", type=partial(whole_number, least=1), default=0, metavar="N", help=most)
    when = "with --every: keep only the run whose step is longer, 'step>1.2x' the usual or 'step>250ms', and open it"
    watching.add_argument("--when", type=repeated.condition_of, metavar="CONDITION", help=when)
    retries = "try again so often where no server is there yet, or another capture is on (default: 0)"
    watching.add_argument("--retries", type=partial(whole_number, most=1000), default=0, metavar="N", help=retries)


def run_capture(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code: 0 where at least one server gave a profile, else that of the screen.

    Raises:
        ProfileError: no server gave one (exit code 7), or the logdir is a URL (exit code 2).
        Cancelled: ctrl+C, before anything was traced or twice.
    """
    from tpuprof.parsers.capture.session import capture  # noqa: PLC0415 - numpy and protobuf, not for --help
    from tpuprof.tui.report.output import write_stdout  # noqa: PLC0415

    options = CaptureOptions(
        duration_ms=args.ms,
        host_tracer_level=args.host_tracer_level,
        device_tracer_level=args.device_tracer_level,
        python_tracer_level=args.python_tracer_level,
        advanced=tuple(dict(args.option).items()),
        delay_ms=args.delay_ms,
        connect_seconds=min(args.wait, CaptureOptions().connect_seconds),
        grace_seconds=args.wait,
        is_snapshot=args.snapshot,
    )
    if args.continuous is not None:
        return _switch(args, options)
    if (args.keep or args.when) and args.every is None:
        raise ProfileError("usage", "--keep and --when go with --every.", "--every 10m", EXIT_USAGE)

    look = None if args.no_open or common.why_no_screen() else common.app_options(args)

    def once() -> CaptureResult:
        stop = CaptureStop()
        line = CountDown(sys.stderr, common.can_redraw(), common.line_width())
        with _ctrl_c(stop.request):
            try:
                return capture(args.addresses, options, args.logdir, line, stop)
            finally:
                line.clear()

    def told(result: CaptureResult) -> None:
        for sentence in outcome(result):
            common.note(sentence)
        if args.every is not None:
            write_stdout(f"{result.run_path}\n")

    if args.every is None:
        result = repeated.tried(once, args.retries)
        told(result)
        write_stdout(f"{result.run_path}\n")
        return _opened(look, result.run_path)
    path = repeated.repeated(lambda: repeated.tried(once, args.retries), args.every, args.keep, args.when, told)
    return EXIT_OK if path is None else _opened(look, path)


def _switch(args: argparse.Namespace, options: CaptureOptions) -> int:
    """Turns continuous profiling on or off."""
    from tpuprof.parsers.capture.continuous import switch  # noqa: PLC0415 - protobuf

    done = switch(args.addresses, args.continuous == "on", options)
    for address, problem in done:
        if problem is None:
            then = f"; {PROGRAM} capture --snapshot {address} takes them" if args.continuous == "on" else ""
            keeps = "keeps its last seconds from now on" if then else "keeps nothing any more"
            common.note(f"{address} {keeps}{then}")
    failed = [problem for _, problem in done if problem is not None]
    if failed:
        raise failed[0]
    return EXIT_OK


def _opened(options: AppOptions | None, path: str) -> int:
    """Opens the run where there is a terminal to do so."""
    if options is None:
        return EXIT_OK
    from tpuprof.tui.app.start import run_app  # noqa: PLC0415 - Textual, for the screen only

    return run_app(path, options=options)


def outcome(result: CaptureResult) -> list[str]:
    """What came of a capture, a sentence a server, the failures last."""
    lines = []
    for host in result.written:
        took = "" if host.seconds is None else f" in {host.seconds:.1f} s"
        lines.append(f"{host.address}: {_amount(host.size_bytes or 0)}{took}, {os.path.basename(host.path or '')}")
    lines += [f"note: the profile of {host.address} {note}" for host in result.written for note in host.notes]
    if result.is_stopped:
        lines.append("note: ended early; what was traced until then is kept")
    for host in result.failed:
        if host.problem is not None:
            lines.append(f"warning: {host.problem.sentence}")
            lines += [f"try: {host.problem.hint}"] if host.problem.hint else []
    return lines


class CountDown(RedrawnLine):
    """How far the servers are: a line drawn over itself or, where that `is_drawn` not, one when the tracing begins."""

    EVERY_SECONDS = 0.1

    def __init__(self, stream: TextIO, is_drawn: bool, width: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream, width)
        self._is_drawn, self._clock = is_drawn, clock
        self._servers: dict[str, CaptureProgress] = {}
        self._drawn: tuple[Stage, ...] = ()
        self._due = clock()
        self._is_told = False

    def __call__(self, progress: CaptureProgress) -> None:
        """Takes note of progress and draws it; never called from two threads at once."""
        self._servers[progress.address] = progress
        if progress.sentence and progress.stage != "failed":
            self.clear()
            self._stream.write(f"{printable(progress.sentence)}\n")
        if not self._is_drawn:
            self._tell(progress)
            return
        stages = tuple(server.stage for server in self._servers.values())
        if stages == self._drawn and self._clock() < self._due:
            return
        self._due, self._drawn = self._clock() + self.EVERY_SECONDS, stages
        self.draw(countdown(list(self._servers.values())))

    def _tell(self, progress: CaptureProgress) -> None:
        if progress.stage == "tracing" and not self._is_told:
            self._is_told = True
            count = sum(server.stage != "failed" for server in self._servers.values())
            who = printable(progress.address) if count == 1 else counted(count, "server")
            self._stream.write(f"tracing {who} for {progress.duration_ms / 1000:g} s\n")
            self._stream.flush()


def countdown(servers: list[CaptureProgress]) -> str:
    """``localhost:9012: tracing, 1.4 s left  (ctrl+C ends it …)``; several servers are counted by stage."""
    left = max((server.left_ms for server in servers if server.left_ms is not None), default=None)
    stages = [server.stage for server in servers]
    if len(servers) == 1:
        size = servers[0].size_bytes
        where = f"{printable(servers[0].address)}: {stages[0]}{'' if size is None else f' {_amount(size)}'}"
    else:
        parts = [f"{stages.count(stage)} {stage}" for stage in get_args(Stage) if stage in stages]
        where = f"{counted(len(servers), 'server')}: {', '.join(parts)}"
    if left is not None:
        where += f", {left / 1000:.1f} s left"
    if set(stages) <= {"written", "failed"}:
        return where
    return f"{where}  ({_GIVES_UP if 'stopping' in stages else _ENDS if 'tracing' in stages else 'ctrl+C ends it'})"


@contextlib.contextmanager
def _ctrl_c(act: Callable[[], None]) -> Iterator[None]:
    """Has ctrl+C call a function instead of raising, as long as this lasts; only the main thread may do so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        act()

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _amount(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e6 else f"{size_bytes / 1e3:.1f} kB"


def _option(text: str) -> tuple[str, model.OptionValue]:
    try:
        return model.parse_option(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(printable(str(error))) from None
