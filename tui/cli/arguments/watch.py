"""Arguments of the command `watch`."""

from __future__ import annotations

import argparse
import re
from functools import partial

from tpuprof.parsers.capture import model
from tpuprof.parsers.capture.model import CaptureOptions
from tpuprof.tui.cli.arguments import options
from tpuprof.tui.cli.arguments.options import PROGRAM, UsageParser, whole_number

_DURATION = re.compile(r"([0-9]{1,6})(s|m|h)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?(kB|MB|GB)", re.IGNORECASE)
_BYTES = {"kb": 10**3, "mb": 10**6, "gb": 10**9}
_RATIO = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,6})?")
_LEAST_SPACE = 10**6
_MOST_SLOWER = 100.0
_EPILOG = f"""Prints a line of JSON for each slow step, with the profile that shows why:

  {PROGRAM} watch @workers:9012 >> slow.jsonl
  {PROGRAM} watch localhost:9012 --slower 1.5 --space 1GB --for 12h
  {PROGRAM} watch localhost:9012 --once

It contacts only the addresses given, and removes no file from --out.
"""


def watch_parser() -> UsageParser:
    """The command's options."""
    what = "Watches a running program for days: if a step is slow or no step ends, it keeps the profile of "
    what += "that moment, and prints a line of JSON: which step, how much slower, which host, why, and the saving."
    parser = options.new_parser("watch", what, _EPILOG)
    defaults = CaptureOptions()
    parser.add_argument("addresses", nargs="+", metavar="HOST:PORT", help="profiler servers, such as @workers:9012")
    slower = "a step is slow at this multiple of the running median (default: 1.2)"
    parser.add_argument("--slower", type=ratio_of, default=1.2, metavar="TIMES", help=slower)
    every = "time between two looks, such as 30s or 5m; short captures do not see what happens between (default: 60s, "
    every += "or 19 times a look if that is longer; 30s with --continuous)"
    parser.add_argument("--every", type=seconds_of, metavar="TIME", help=every)
    length = f"length of a short capture, in milliseconds (default: {defaults.duration_ms}); longer if four steps take "
    length += "longer"
    to_trace = partial(whole_number, least=1, most=model.LONGEST_MS)
    parser.add_argument("--ms", type=to_trace, default=defaults.duration_ms, metavar="MS", help=length)
    kept = "make the servers keep their last seconds, so that fewer steps are missed; the program's own traces fail "
    kept += "while it watches; without --continuous, only those that begin during a short capture fail"
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--continuous", action="store_true", help=kept)
    until = "end after this time, such as 12h; without it until SIGTERM, SIGHUP or ctrl+C"
    parser.add_argument("--for", dest="length", type=seconds_of, metavar="TIME", help=until)
    once = "one look, for CI: exit code 6 if a step is slower than the others, 7 if no server answers"
    either.add_argument("--once", action="store_true", help=once)
    space = "how much --out may hold, whoever wrote it; once that is full, no profile is kept until you remove runs "
    space += "(default: 100MB)"
    parser.add_argument("--space", type=size_of, default=100 * 10**6, metavar="SIZE", help=space)
    out = "where profiles are kept (default: a folder of its own in $XDG_STATE_HOME/tpuprof-tui/watch)"
    parser.add_argument("--out", metavar="DIR", help=out)
    patience = f"time limit for the data after the tracing (default: {defaults.grace_seconds:g} s)"
    in_a_day = partial(whole_number, least=1, most=86_400)
    parser.add_argument("--wait", type=in_a_day, default=int(defaults.grace_seconds), metavar="SECONDS", help=patience)
    options.add_debug(parser)
    return parser


def seconds_of(text: str) -> int:
    """Seconds of ``30s``, ``10m`` or ``2h``."""
    match = _DURATION.fullmatch(text)
    if not match or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 30s, 10m or 2h")
    return int(match[1]) * _SECONDS[match[2]]


def ratio_of(text: str) -> float:
    """A ratio above 1, such as ``1.2`` or ``1.2x``."""
    number = text.strip().removesuffix("x")
    if not _RATIO.fullmatch(number) or not 1 < float(number) <= _MOST_SLOWER:
        raise argparse.ArgumentTypeError(f"{text!r} is not a ratio above 1, such as 1.2")
    return float(number)


def size_of(text: str) -> int:
    """Bytes of ``100MB`` or ``2GB``; at least one MB."""
    match = _SIZE.fullmatch(text.strip())
    size = round(float(match[1]) * _BYTES[match[2].lower()]) if match else 0
    if size < _LEAST_SPACE:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size of 1 MB or more, such as 100MB or 2GB")
    return size
