"""Arguments of the command `query`."""

from __future__ import annotations

from functools import partial

from tpuprof.tui.cli.arguments import options
from tpuprof.tui.cli.arguments.options import PROGRAM, UsageParser
from tpuprof.tui.report.page import FORMATS

EXAMPLE = f'{PROGRAM} query demo "SELECT name, self_time_ps FROM ops ORDER BY 2 DESC"'  # noqa: S608 - an example
_MOST_SECONDS = 86_400
_MOST_MIB = 1 << 20
_EPILOG = f"""The query is one SELECT in DuckDB's SQL (pip install 'tpuprof-tui[sql]'). It can neither write nor open \
a file or a connection. Only the tables that it names are read. For example:
  {EXAMPLE}
  {PROGRAM} query demo "SELECT core, name, start_ps FROM events" --from 300
"""  # noqa: S608 - an example


def query_parser() -> UsageParser:
    """The command's options."""
    what = "Answers a SQL query over a profile: its events, ops, steps, cores, hosts, modules, buffers, collectives, "
    what += "findings."
    parser = options.new_parser("query", what, _EPILOG)
    options.add_choice_of_profile(parser, several=False)
    parser.add_argument("sql", nargs="?", metavar="SQL", help="one SELECT; a single argument is the query")
    parser.add_argument("--schema", action="store_true", help="print tables and columns: type, unit, meaning")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    rows = "rows to print, 0: all (default: 1000)"
    parser.add_argument("--limit", type=options.whole_number, default=1000, metavar="N", help=rows)
    seconds = "time limit of the query (default: 30)"
    whole = partial(options.whole_number, least=1, most=_MOST_SECONDS)
    parser.add_argument("--time-limit", type=whole, default=30, metavar="SECONDS", help=seconds)
    mib = partial(options.whole_number, least=16, most=_MOST_MIB)
    parser.add_argument(
        "--memory-limit", type=mib, default=1024, metavar="MIB", help="memory limit of the query (default: 1024)"
    )
    events = parser.add_argument_group("events", "Which events the table events has:")
    options.add_interval(events)
    options.add_track(events)
    options.add_reading(parser)
    parser.add_argument("--output", metavar="FILE", help="write to FILE instead of standard output")
    options.add_width(parser)
    options.add_look(parser)
    options.add_debug(parser)
    return parser
