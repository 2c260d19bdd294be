"""Arguments of the commands `capture`, `watch` and `try`."""

from __future__ import annotations

import argparse
from functools import partial

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.capture import model
from tpuprof.parsers.capture.model import CaptureOptions
from tpuprof.tui.cli.arguments import options, values
from tpuprof.tui.cli.arguments.options import UsageParser, add, switch, value

_CALLS = (
    "capture localhost:9012",
    "capture host0:9012 host1:9012 --duration 5s -o gs-mount/run1",
    "capture @workers:9012  # of a slice, as in TPU_WORKER_HOSTNAMES",
    "capture --continuous on localhost:9012",
)
_EPILOG = """the program starts the server, once, before its training loop:
  JAX          jax.profiler.start_server(9012)
  PyTorch/XLA  torch_xla.debug.profiler.start_server(9012)
  TensorFlow   tf.profiler.experimental.server.start(9012)
It contacts only the addresses given, without encryption; ssh -L reaches others.
"""
_LONGEST = model.LONGEST_MS / 1000
_TRACED = partial(values.seconds, least=0.001, most=_LONGEST)
_TRACERS = {
    "host": "0 off, 1 annotations, 2 costly calls, 3 all",
    "device": "0 off, 1 on",
    "python": "0 off, 1 every Python call, which is slow",
}


def capture_parser() -> UsageParser:
    """The command's options."""
    what = "Asks running JAX, PyTorch/XLA or TensorFlow programs for a profile, writes it as a new run of a logdir, "
    what += "prints the run's path and opens it."
    parser = options.new_parser("capture", what, _CALLS, _EPILOG)
    parser.add_argument("addresses", nargs="+", metavar="HOST:PORT", help="profiler servers; all into one run")
    part = parser.part("capture")
    _add_asking(part)
    delay = partial(values.seconds, least=0, most=_LONGEST)
    part.add_argument("--delay", **value("TIME", "before tracing, once the servers have answered", delay, default=0.0))
    add(part, "--output", metavar="DIR", default=".", help="the logdir; it gets a run (default: .)")
    part.add_argument("--no-open", **switch("only write the run and print its path"))
    part = parser.part("what is traced, as in XProf's dialogue")
    level = partial(values.whole_number, most=model.HIGHEST_LEVEL)
    for name, levels in _TRACERS.items():
        default = getattr(CaptureOptions(), f"{name}_tracer_level")
        part.add_argument(
            f"--{name}-tracer-level", **value("N", f"{levels} (default: {default})", level, default=default)
        )
    of_profiler = "of the profiler: tpu_trace_mode=TRACE_COMPUTE; key:string=5"
    part.add_argument("--option", **value("KEY=VALUE", of_profiler, _option, action="append", default=[]))
    part = parser.part("long jobs, and the seconds before a slowdown")
    part.add_argument("--snapshot", **switch("fetch the last seconds that the server has kept"))
    kept = "make the servers keep them; other traces fail then"
    part.add_argument("--continuous", **value("on|off", kept, choices=("on", "off")))
    again = partial(values.whole_number, most=1000)
    part.add_argument("--retries", **value("N", "if no server answers yet, or another traces", again, default=0))
    options.add_common(parser)
    return options.add_screen(parser)


def try_parser() -> UsageParser:
    """The options of the command `try`."""
    what = "Runs a command once for each variant, until its program is compiled, and says which fit, what each needs, "
    what += "and how long its program takes by the compiler's tiles. It needs the compiler, and no chip."
    calls = (
        "try 'train.py -b {b}' --set b=8,16,32 --module jit_step",
        "try 'train.py -b {b}' --set b=8..512 --module jit_step",
        "try train.py --flag xla_tpu_scoped_vmem_limit_kib=16384,65536",
    )
    more = "a range is searched for the largest value that fits; everything that it started is ended"
    parser = options.new_parser("try", what, calls, more)
    parser.add_argument("command", metavar="COMMAND", help="for the shell; {name} is where a value goes")
    part = parser.part("variants")
    lists = (
        ("--set", "NAME=VALUES", "of {name}: 8,16,32, or 8..512"),
        ("--flag", "FLAG=VALUES", "of libtpu: 16384,65536"),
    )
    for name, metavar, meaning in lists:
        part.add_argument(name, action="append", default=[], metavar=metavar, help=f"{meaning}; may be given again")
    part = parser.part("when it ends, and what is left")
    add(part, "--module", help="ends when this one is compiled (default: when the command ends)")
    add(part, "--time-limit", help="of each variant (default: 600s)", default=600)
    part.add_argument("--keep", metavar="DIR", help="a new folder that keeps the dumps (default: none)")
    part.add_argument("--yes", action="store_true", help="do not ask before running it")
    output = options.add_output(parser, ("text", "json", "md"))
    add(output, "--limit", help="variants; 0: all (default: all)")
    add(output, "--keys")
    return options.add_common(parser, width=True)


def _add_asking(part: argparse._ArgumentGroup) -> None:
    """How long to trace, and how long to wait for what was traced."""
    for name, meaning, seconds, default in (
        ("--duration", "how long to trace", _TRACED, CaptureOptions().duration_ms / 1000),
        ("--wait", "for the data after that", values.seconds, CaptureOptions().grace_seconds),
    ):
        part.add_argument(name, **value("TIME", f"{meaning} (default: {default:g}s)", seconds, default=default))


def _option(text: str) -> tuple[str, model.OptionValue]:
    try:
        return model.parse_option(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(printable(str(error))) from None


_WATCH_CALLS = (
    "watch @workers:9012 >> slow.jsonl",
    "watch localhost:9012 --slower 1.5 --disk-limit 1GB --for 12h",
    "watch localhost:9012 --once",
)
_WATCH_EPILOG = "It contacts only the addresses given, and removes no file from --output."


def watch_parser() -> UsageParser:
    """The command's options."""
    what = "Watches a running program for days: if a step is slow or no step ends, it keeps the profile of "
    what += "that moment, and prints a line of JSON: which step, how slow, where and why."
    parser = options.new_parser("watch", what, _WATCH_CALLS, _WATCH_EPILOG)
    parser.add_argument("addresses", nargs="+", metavar="HOST:PORT", help="profiler servers, such as @workers:9012")
    looks = parser.part("looks")
    slower = "a step is slow at so many medians (default: 1.2)"
    looks.add_argument("--slower", type=values.ratio, default=1.2, metavar="TIMES", help=slower)
    every = "time between two looks (default: 60s, or 19 times a look)"
    looks.add_argument("--every", type=values.seconds, metavar="TIME", help=every)
    until = "end after this time, such as 12h (default: SIGTERM, SIGHUP or ctrl+C)"
    looks.add_argument("--for", dest="length", type=values.any_time, metavar="TIME", help=until)
    _add_asking(looks)
    once = "one look, for CI: exit code 6 if a step is slower than the others, 7 if no server answers"
    looks.add_argument("--once", action="store_true", help=once)
    profiles = parser.part("profiles")
    where = "where profiles are kept (default: a folder of its own in $XDG_STATE_HOME/tpuprof-tui/watch)"
    add(profiles, "--output", metavar="DIR", help=where)
    space = "how much that folder may hold; a full one gets no profile (default: 100MB)"
    profiles.add_argument("--disk-limit", type=values.size, default=100 * 10**6, metavar="SIZE", help=space)
    return options.add_common(parser, look=False)
