"""Arguments of the command `capture`."""

from __future__ import annotations

import argparse
from functools import partial

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.capture import model
from tpuprof.parsers.capture.model import CaptureOptions
from tpuprof.tui.cli.arguments import options
from tpuprof.tui.cli.arguments.options import PROGRAM, UsageParser, whole_number

_EPILOG = f"""the program starts the server, once, before its training loop:
  JAX          jax.profiler.start_server(9012)
  PyTorch/XLA  import torch_xla.debug.profiler as xp; server = xp.start_server(9012)
  TensorFlow   tf.profiler.experimental.server.start(9012)

examples:
  {PROGRAM} capture localhost:9012
  {PROGRAM} capture host0:9012 host1:9012 --ms 5000 --logdir gs-mount/run1
  {PROGRAM} capture @workers:9012           every worker in TPU_WORKER_HOSTNAMES, as set on a slice
  {PROGRAM} capture --continuous on localhost:9012
  {PROGRAM} capture --snapshot localhost:9012

It contacts only the addresses given, without encryption; use ssh -L to reach a server on another machine.
"""


def capture_parser() -> UsageParser:
    """The command's options."""
    what = "Asks running JAX, PyTorch/XLA or TensorFlow programs for a profile, writes it as a new run of the "
    what += "logdir, prints the run's path and opens it."
    parser = options.new_parser("capture", what, _EPILOG)
    defaults = CaptureOptions()
    parser.add_argument("addresses", nargs="+", metavar="HOST:PORT", help="profiler servers; all into one run")
    length = f"how long to trace, in milliseconds (default: {defaults.duration_ms})"
    to_trace = partial(whole_number, least=1, most=model.LONGEST_MS)
    parser.add_argument("--ms", type=to_trace, default=defaults.duration_ms, metavar="MS", help=length)
    where = "a local folder; the run is written to DIR/plugins/profile, where XProf finds it (default: .)"
    parser.add_argument("--logdir", default=".", metavar="DIR", help=where)
    parser.add_argument("--no-open", action="store_true", help="only write the run and print its path")
    delay = "time to wait before tracing, after the servers have answered"
    to_wait = partial(whole_number, most=model.LONGEST_MS)
    parser.add_argument("--delay-ms", type=to_wait, default=0, metavar="MS", help=delay)
    patience = f"time limit for the data after that (default: {defaults.grace_seconds:g} s); a server has to answer "
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
    option = "an option of the profiler, such as tpu_trace_mode=TRACE_COMPUTE_AND_SYNC; true, false and whole "
    option += "numbers keep their type, key:string=5 is text"
    tracers.add_argument("--option", action="append", type=_option, default=[], metavar="KEY=VALUE", help=option)
    _add_watching(parser)
    look = parser.add_argument_group("look", "The screen that opens:")
    options.add_screen(look)
    options.add_debug(parser)
    return parser


def _add_watching(parser: argparse.ArgumentParser) -> None:
    watching = parser.add_argument_group("watching", "Long jobs, and the seconds before a slowdown:")
    kept = "fetch the last seconds that the server has kept, instead of tracing from now on"
    watching.add_argument("--snapshot", action="store_true", help=kept)
    switch = "make the servers keep their last seconds, or stop doing so; other captures and the program's own traces "
    switch += "fail while this is on"
    watching.add_argument("--continuous", choices=("on", "off"), help=switch)
    retries = "number of retries if no server answers yet, or another capture is on (default: 0)"
    watching.add_argument("--retries", type=partial(whole_number, most=1000), default=0, metavar="N", help=retries)


def _option(text: str) -> tuple[str, model.OptionValue]:
    try:
        return model.parse_option(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(printable(str(error))) from None
