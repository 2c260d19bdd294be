"""``tpuprof-tui watch ADDRESS``: a line of JSON for each slow step of a running program, and its profile."""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Mapping
from datetime import datetime, timezone

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_REGRESSION
from tpuprof.parsers.base.folders import state_folder
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.urls import scheme_of
from tpuprof.parsers.capture import errors
from tpuprof.parsers.capture.files import safe_name
from tpuprof.parsers.capture.model import CaptureOptions, CaptureResult, CaptureStop, parse_addresses
from tpuprof.parsers.capture.session import capture
from tpuprof.tui.cli.commands.capture.signals import on_signals
from tpuprof.tui.cli.commands.capture.watch.judged import Event
from tpuprof.tui.cli.commands.capture.watch.kept import KeptRuns
from tpuprof.tui.cli.commands.capture.watch.slow_steps import Clock, Plan, SlowSteps
from tpuprof.tui.cli.common import note
from tpuprof.tui.report import json
from tpuprof.tui.report.output import write_stdout

_PS_PER_MS = 1e9
_EVERY_SECONDS = 60
_RESTS = 19.0
"""Short captures hold the profiler for a twentieth of the time at most, unless --every says otherwise."""


def run_watch(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code: 0 also if SIGTERM, SIGHUP or ctrl+C ended it; 6 if the one look of ``--once`` has a slow step.

    Raises:
        ProfileError: an address is wrong, no profile can be written, or nothing came of the one look (exit code 7).
    """
    addresses = [str(address) for address in parse_addresses(args.addresses)]
    folder = own_folder(addresses) if args.output is None else args.output
    if scheme_of(folder):
        raise errors.not_local(folder)
    options = CaptureOptions(duration_ms=round(args.duration * 1000), grace_seconds=args.wait)
    clock, stop = Clock(args.length), CaptureStop()
    kept = KeptRuns(os.path.expanduser(folder), args.disk_limit)
    if full := kept.why_full():
        note(f"{full}; no profile is kept until then")
    every, rests = args.every or _EVERY_SECONDS, 0.0 if args.every else _RESTS
    plan = Plan(args.slower, options.duration_ms, every, args.once, rests)

    def look(folder: str, duration_ms: int) -> CaptureResult:
        return capture(addresses, replace(options, duration_ms=duration_ms), folder, stop=stop)

    slow = SlowSteps(look, plan, kept, clock, _print, note)
    size = f"{args.disk_limit / 1e6:,.0f} MB"
    about = f"watching {counted(len(addresses), 'server')}: keeps profiles of slow steps in {folder}, {size} at most; "
    about += f"looking {_how_often(plan)} at short captures; a trace that the program itself begins during one fails"

    def end() -> None:
        clock.end()
        stop.give_up()

    with on_signals(end, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        note(about)
        slow.watch()
    return EXIT_REGRESSION if args.once and slow.events else EXIT_OK


def own_folder(addresses: list[str]) -> str:
    """Where profiles of some servers are kept without ``--output``.

    Raises:
        ProfileError: `state_folder`: there is no home folder.
    """
    folder = state_folder()
    if not os.path.isabs(folder):
        sentence = f"Nothing can be kept in {folder}: there is no home folder."
        raise errors.failure("state_folder", sentence, "--output DIR")
    return os.path.join(folder, "watch", safe_name("_".join(addresses)) or "servers")


def _how_often(plan: Plan) -> str:
    if plan.once:
        return "once"
    return f"every {plan.every_seconds:g} s{' or less often' if plan.rests else ''}"


def _print(event: Event, path: str | None) -> None:
    write_stdout(json.line(line_of(event, path, time.time()), event.unknown))


def line_of(event: Event, path: str | None, now: float) -> Mapping[str, object]:
    """The fields of a line; `Event.unknown` says why some are null."""
    step_ms = event.step_ps / _PS_PER_MS
    usual_ms = None if event.usual_ps is None else event.usual_ps / _PS_PER_MS
    return {
        "schema": json.schema("watch"),
        "time": datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "kind": event.kind,
        "step": event.step,
        "step_ms": step_ms,
        "usual_ms": usual_ms,
        "times": step_ms / usual_ms if usual_ms else None,
        "slow_steps": event.slow_steps,
        "steps": event.steps,
        "lasts": event.lasts,
        "host": event.host,
        "core": event.core,
        "owner": event.owner,
        "why": event.why,
        "worth_ms": None if event.worth_ps is None else event.worth_ps / _PS_PER_MS,
        "profile": path,
    }
