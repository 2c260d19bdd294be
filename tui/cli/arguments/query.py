"""Arguments of the command `query`."""

from __future__ import annotations

from functools import partial

from tpuprof.tui.cli.arguments import options, values
from tpuprof.tui.cli.arguments.options import PROGRAM, UsageParser, add
from tpuprof.tui.report.page import FORMATS

_CALL = 'query demo "SELECT name, self_time_ps FROM ops ORDER BY 2 DESC"'  # an example
EXAMPLE = f"{PROGRAM} {_CALL}"
_MOST_MIB = 1 << 20
_EPILOG = """The query is one SELECT in DuckDB's SQL (pip install 'tpuprof-tui[sql]'). It can
neither write nor open a file or a connection. Only the tables that it names are
read."""


def query_parser() -> UsageParser:
    """The command's options."""
    what = "Answers a SQL query over a profile: its events, ops, steps, cores, hosts, modules, buffers, collectives, "
    what += "findings."
    calls = (_CALL, 'query demo "SELECT core, name, start_ps FROM events" --from 300', "query --schema")
    parser = options.new_parser("query", what, calls, _EPILOG)
    options.add_choice_of_profile(parser, several=False)
    parser.add_argument("sql", nargs="?", metavar="SQL", help="one SELECT; a single argument is the query")
    add(parser.part("which events the table events has"), "--from", "--to", "--track")
    output = options.add_output(parser, FORMATS)
    add(output, "--limit", default=1000, help="rows to print; 0: all (default: 1000)")
    schema = "print tables and columns: type, unit, meaning"
    output.add_argument("--schema", action="store_true", help=schema)
    bounds = parser.part("bounds")
    add(bounds, "--time-limit", default=30, help="of the query (default: 30s)")
    mib = partial(values.whole_number, least=16, most=_MOST_MIB)
    memory = "memory of the query (default: 1024)"
    bounds.add_argument("--memory-limit", type=mib, default=1024, metavar="MIB", help=memory)
    options.add_common(parser, reads=True, width=True)
    return parser
