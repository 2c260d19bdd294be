"""``tpuprof-tui capture ADDRESS``: asks a running program for a profile, and opens it."""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Callable
from typing import get_args

from tpuprof.parsers.base.errors import EXIT_OK, ProfileError
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.capture.errors import PASSING
from tpuprof.parsers.capture.model import CaptureOptions, CaptureProgress, CaptureResult, CaptureStage, CaptureStop
from tpuprof.parsers.capture.session import capture, switch
from tpuprof.tui.app import start
from tpuprof.tui.cli import common
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.commands.capture.signals import on_signals
from tpuprof.tui.report.output import write_stderr, write_stdout
from tpuprof.tui.terminal.progress import RedrawnLine, Say

PAUSE_SECONDS = 2.0  # before another try
_ON = (
    f"keeps its last seconds from now on; {PROGRAM} capture --snapshot {{0}} takes them. The program's own traces and "
    f"other captures fail until: {PROGRAM} capture --continuous off {{0}}"
)
_OFF = "no longer keeps anything"
_ENDS = "ctrl+C ends it and keeps the profile so far"
_GIVES_UP = "ctrl+C again discards it"


def run_capture(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code: 0 where at least one server gave a profile, else that of the screen.

    Raises:
        ProfileError: no server gave one (exit code 7), or the logdir is a URL (exit code 2).
        Cancelled: ctrl+C, before anything was traced or twice.
    """
    options = CaptureOptions(
        duration_ms=round(args.duration * 1000),
        host_tracer_level=args.host_tracer_level,
        device_tracer_level=args.device_tracer_level,
        python_tracer_level=args.python_tracer_level,
        advanced=tuple(dict(args.option).items()),
        delay_ms=round(args.delay * 1000),
        connect_seconds=min(args.wait, CaptureOptions().connect_seconds),
        grace_seconds=args.wait,
        is_snapshot=args.snapshot,
    )
    if args.continuous is not None:
        return _switch(args, options)
    look = None if args.no_open or common.why_no_screen() else common.app_options(args)

    def once() -> CaptureResult:
        stop = CaptureStop()
        line = CountDown(write_stderr, common.can_redraw(), common.line_width())
        with (
            on_signals(stop.give_up, signal.SIGTERM, signal.SIGHUP, ends=True),
            on_signals(stop.request, signal.SIGINT),
        ):
            try:
                return capture(args.addresses, options, args.output, line, stop)
            finally:
                line.clear()

    result = tried_again(once, args.retries)
    for sentence in outcome(result):
        common.note(sentence)
    write_stdout(f"{result.run_path}\n")
    return EXIT_OK if look is None else start.run_app(result.run_path, options=look)


def tried_again(once: Callable[[], CaptureResult], retries: int) -> CaptureResult:
    """Captures; after a failure that may pass it waits and tries again, so many times at most.

    Raises:
        ProfileError: why the last try failed.
    """
    for left in range(retries, 0, -1):
        try:
            return once()
        except ProfileError as error:
            if error.code not in PASSING:
                raise
            common.note(f"{error.sentence} Trying again, {left} left.")
            time.sleep(PAUSE_SECONDS)
    return once()


def _switch(args: argparse.Namespace, options: CaptureOptions) -> int:
    done = switch(args.addresses, args.continuous == "on", options)
    for address, problem in done:
        if problem is None:
            common.note(f"{address} {_ON.format(address) if args.continuous == 'on' else _OFF}")
    failed = [problem for _, problem in done if problem is not None]
    if failed:
        raise failed[0]
    return EXIT_OK


def outcome(result: CaptureResult) -> list[str]:
    """What came of a capture, a sentence a server, the failures last."""
    lines = []
    for host in result.written:
        took = "" if host.seconds is None else f" in {host.seconds:.1f} s"
        if host.file is not None:
            amount, name = _amount(host.file.size_bytes), os.path.basename(host.file.path)
            lines.append(f"{host.address}: {amount}{took}, {name}")
    lines += [f"note: the profile of {host.address} {note}" for host in result.written for note in host.notes]
    if result.is_stopped:
        lines.append("note: ended early; the profile so far is kept")
    for host in result.failed:
        if host.problem is not None:
            lines.append(f"warning: {host.problem.sentence}")
            lines += [f"try: {host.problem.hint}"] if host.problem.hint else []
    return lines


class CountDown(RedrawnLine):
    """How far the servers are: a line drawn over itself or, where that `is_drawn` not, one when the tracing begins."""

    EVERY_SECONDS = 0.1

    def __init__(self, write: Say, is_drawn: bool, width: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(write, width)
        self._is_drawn, self._clock = is_drawn, clock
        self._servers: dict[str, CaptureProgress] = {}
        self._drawn: tuple[CaptureStage, ...] = ()
        self._due = clock()
        self._is_told = False

    def __call__(self, progress: CaptureProgress) -> None:
        """Takes note of progress and draws it; never called from two threads at once."""
        self._servers[progress.address] = progress
        if progress.sentence and progress.stage != "failed":
            self.clear()
            self._write(f"{printable(progress.sentence)}\n")
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
            self._write(f"tracing {who} for {progress.duration_ms / 1000:g} s\n")


def countdown(servers: list[CaptureProgress]) -> str:
    """``localhost:9012: tracing, 1.4 s left  (ctrl+C ends it …)``; several servers are counted by stage."""
    left = max((server.left_ms for server in servers if server.left_ms is not None), default=None)
    stages = [server.stage for server in servers]
    if len(servers) == 1:
        size = servers[0].size_bytes
        where = f"{printable(servers[0].address)}: {stages[0]}{'' if size is None else f' {_amount(size)}'}"
    else:
        parts = [f"{stages.count(stage)} {stage}" for stage in get_args(CaptureStage) if stage in stages]
        where = f"{counted(len(servers), 'server')}: {', '.join(parts)}"
    if left is not None:
        where += f", {left / 1000:.1f} s left"
    if set(stages) <= {"written", "failed"}:
        return where
    return f"{where}  ({_GIVES_UP if 'stopping' in stages else _ENDS if 'tracing' in stages else 'ctrl+C ends it'})"


def _amount(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e6 else f"{size_bytes / 1e3:.1f} kB"
