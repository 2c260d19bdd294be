"""Arguments of the command `watch`."""

from __future__ import annotations

from tpuprof.tui.cli.arguments import options, values
from tpuprof.tui.cli.arguments.capture import add_asking
from tpuprof.tui.cli.arguments.options import UsageParser, add

_CALLS = (
    "watch @workers:9012 >> slow.jsonl",
    "watch localhost:9012 --slower 1.5 --disk-limit 1GB --for 12h",
    "watch localhost:9012 --once",
)
_EPILOG = "It contacts only the addresses given, and removes no file from --output."


def watch_parser() -> UsageParser:
    """The command's options."""
    what = "Watches a running program for days: if a step is slow or no step ends, it keeps the profile of "
    what += "that moment, and prints a line of JSON: which step, how slow, where and why."
    parser = options.new_parser("watch", what, _CALLS, _EPILOG)
    parser.add_argument("addresses", nargs="+", metavar="HOST:PORT", help="profiler servers, such as @workers:9012")
    looks = parser.part("looks")
    slower = "a step is slow at so many medians (default: 1.2)"
    looks.add_argument("--slower", type=values.ratio, default=1.2, metavar="TIMES", help=slower)
    every = "time between two looks (default: 60s, or 19 times a look)"
    looks.add_argument("--every", type=values.seconds, metavar="TIME", help=every)
    until = "end after this time, such as 12h (default: SIGTERM, SIGHUP or ctrl+C)"
    looks.add_argument("--for", dest="length", type=values.any_time, metavar="TIME", help=until)
    add_asking(looks)
    once = "one look, for CI: exit code 6 if a step is slower than the others, 7 if no server answers"
    looks.add_argument("--once", action="store_true", help=once)
    profiles = parser.part("profiles")
    where = "where profiles are kept (default: a folder of its own in $XDG_STATE_HOME/tpuprof-tui/watch)"
    add(profiles, "--output", metavar="DIR", help=where)
    space = "how much that folder may hold; a full one gets no profile (default: 100MB)"
    profiles.add_argument("--disk-limit", type=values.size, default=100 * 10**6, metavar="SIZE", help=space)
    options.add_common(parser, look=False)
    return parser
