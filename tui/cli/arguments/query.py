"""Arguments of the command `query`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tpuprof.tui.cli.arguments import options, values
from tpuprof.tui.cli.arguments.options import PROGRAM, UsageParser, add
from tpuprof.tui.report.page import FORMATS

_CALL = 'query demo "SELECT name, self_time_ps FROM ops ORDER BY 2 DESC"'  # an example
EXAMPLE = f"{PROGRAM} {_CALL}"
_MOST_MIB = 1 << 20


def example_queries() -> Mapping[str, str]:
    """Queries by what they ask; each line fits a terminal."""
    queries = Path(__file__).parents[1].joinpath("examples.sql").read_text("utf-8").split("-- ")[1:]
    return {title: sql.strip().rstrip(";") for title, _, sql in (query.partition("\n") for query in queries)}


def query_parser() -> UsageParser:
    """The command's options."""
    what = "Answers a question in SQL about a profile: its events, ops, steps, cores, hosts, modules, buffers, "
    what += "allocators, collectives, copies, findings."
    calls = (
        _CALL,
        'query demo "SELECT core, name, start_ps FROM events" --from 300',
        "query --schema",
        "query --examples",
    )
    parser = options.new_parser("query", what, calls, f"Tables for other engines: {PROGRAM} man sql")
    options.add_choice_of_profile(parser, several=False)
    parser.add_argument("sql", nargs="?", metavar="SQL", help="one SELECT; a single argument is the query")
    add(parser.part("which events the table events has"), "--from", "--to", "--track")
    output = options.add_output(parser, FORMATS)
    add(output, "--limit", help=f"rows; {options.ALL_ROWS}")
    schema = "print tables and columns: type, unit, meaning"
    output.add_argument("--schema", action="store_true", help=schema)
    output.add_argument("--examples", action="store_true", help="print ten queries, from gaps to percentiles")
    bounds = parser.part("bounds")
    add(bounds, "--time-limit", default=30, help="of the query (default: 30s)")
    mib = partial(values.whole_number, least=16, most=_MOST_MIB)
    memory = "memory of the query (default: 1024)"
    bounds.add_argument("--memory-limit", type=mib, default=1024, metavar="MIB", help=memory)
    return options.add_common(parser, reads=True, width=True)
