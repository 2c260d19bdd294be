"""Arguments of the command `capture`, and of what `watch` asks servers too."""

from __future__ import annotations

import argparse
from functools import partial

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.capture import model
from tpuprof.parsers.capture.model import CaptureOptions
from tpuprof.tui.cli.arguments import options, values
from tpuprof.tui.cli.arguments.options import UsageParser, add

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


def capture_parser() -> UsageParser:
    """The command's options."""
    what = "Asks running JAX, PyTorch/XLA or TensorFlow programs for a profile, writes it as a new run of a logdir, "
    what += "prints the run's path and opens it."
    parser = options.new_parser("capture", what, _CALLS, _EPILOG)
    parser.add_argument("addresses", nargs="+", metavar="HOST:PORT", help="profiler servers; all into one run")
    capture = parser.part("capture")
    add_asking(capture)
    to_wait = partial(values.seconds, least=0, most=_LONGEST)
    delay = "before tracing, once the servers have answered"
    capture.add_argument("--delay", type=to_wait, default=0.0, metavar="TIME", help=delay)
    where = "the logdir; it gets a run (default: .)"
    add(capture, "--output", metavar="DIR", default=".", help=where)
    capture.add_argument("--no-open", action="store_true", help="only write the run and print its path")
    tracers = parser.part("what is traced, as in XProf's dialogue")
    defaults, level = CaptureOptions(), partial(values.whole_number, most=model.HIGHEST_LEVEL)
    for name, default, levels in (
        ("host", defaults.host_tracer_level, "0 off, 1 annotations, 2 costly calls, 3 all"),
        ("device", defaults.device_tracer_level, "0 off, 1 on"),
        ("python", defaults.python_tracer_level, "0 off, 1 every Python call, which is slow"),
    ):
        meaning = f"{levels} (default: {default})"
        tracers.add_argument(f"--{name}-tracer-level", type=level, default=default, metavar="N", help=meaning)
    option = "of the profiler: tpu_trace_mode=TRACE_COMPUTE; key:string=5"
    tracers.add_argument("--option", action="append", type=_option, default=[], metavar="KEY=VALUE", help=option)
    watching = parser.part("long jobs, and the seconds before a slowdown")
    kept = "fetch the last seconds that the server has kept"
    watching.add_argument("--snapshot", action="store_true", help=kept)
    switch = "make the servers keep them; other traces fail then"
    watching.add_argument("--continuous", choices=("on", "off"), metavar="on|off", help=switch)
    retries = "if no server answers yet, or another traces"
    most = partial(values.whole_number, most=1000)
    watching.add_argument("--retries", type=most, default=0, metavar="N", help=retries)
    options.add_common(parser)
    options.add_screen(parser)
    return parser


def add_asking(part: argparse._ArgumentGroup) -> None:
    """How long to trace, and how long to wait for what was traced."""
    defaults = CaptureOptions()
    trace = partial(values.seconds, least=0.001, most=_LONGEST)
    length = f"how long to trace (default: {defaults.duration_ms / 1000:g}s)"
    part.add_argument("--duration", type=trace, default=defaults.duration_ms / 1000, metavar="TIME", help=length)
    wait = f"for the data after that (default: {defaults.grace_seconds:g}s)"
    part.add_argument("--wait", type=values.seconds, default=defaults.grace_seconds, metavar="TIME", help=wait)


def _option(text: str) -> tuple[str, model.OptionValue]:
    try:
        return model.parse_option(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(printable(str(error))) from None
