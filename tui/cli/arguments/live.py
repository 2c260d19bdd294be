"""Arguments of the command `live`."""

from __future__ import annotations

from functools import partial

from tpuprof.tui.cli.arguments import options
from tpuprof.tui.cli.arguments.options import PROGRAM, UsageParser, whole_number

_SLOWEST_SECONDS = 3_600
_EPILOG = f"""Without an address it asks localhost:8431, or the ports in TPU_RUNTIME_METRICS_PORTS: the service \
that tpu-info reads, which every TPU program serves on its own machine. C captures a profile from --server:

  {PROGRAM} live
  {PROGRAM} live --server localhost:9012 --logdir ~/logs
  {PROGRAM} live --format json --count 60 > duty.jsonl
"""


def live_parser() -> UsageParser:
    """The command's options."""
    what = "Shows how busy the chips of a running program are and what memory they use; C captures a profile."
    parser = options.new_parser("live", what, _EPILOG)
    parser.add_argument("addresses", nargs="*", metavar="HOST:PORT", help="metric services of runtimes")
    seconds = partial(whole_number, least=1, most=_SLOWEST_SECONDS)
    parser.add_argument("--every", type=seconds, default=1, metavar="SECONDS", help="between readings (default: 1)")
    lines = "print one reading after the other instead of opening the screen, one line each in text and JSON"
    parser.add_argument("--format", choices=("text", "json", "md"), help=lines)
    parser.add_argument(
        "--count", type=whole_number, default=0, metavar="N", help="number of lines to print (default: no limit)"
    )
    server = "the program's profiler server, for C (default: localhost:9012)"
    parser.add_argument("--server", default="localhost:9012", metavar="HOST:PORT", help=server)
    parser.add_argument("--logdir", default=".", metavar="DIR", help="folder for captures (default: .)")
    options.add_width(parser)
    options.add_screen(parser)
    options.add_debug(parser)
    parser.set_defaults(output=None)
    return parser
