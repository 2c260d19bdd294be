"""The tools of the server: each is a call of a command of the command line, and a short form of its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Literal

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import nearest_hint, printable
from tpuprof.tui.api.sql.engine import SCHEMA_HINT
from tpuprof.tui.api.sql.tables import TABLES as TABLES_OF_SQL
from tpuprof.tui.cli import common
from tpuprof.tui.cli.arguments.diff import diff_parser
from tpuprof.tui.cli.arguments.options import HERE
from tpuprof.tui.cli.arguments.query import query_parser
from tpuprof.tui.cli.arguments.report import report_parser
from tpuprof.tui.cli.commands.agents import short
from tpuprof.tui.cli.commands.agents.bounded import bounded
from tpuprof.tui.cli.commands.agents.root import Root
from tpuprof.tui.cli.commands.diff.runs import made_diff
from tpuprof.tui.cli.commands.query import made_query
from tpuprof.tui.cli.commands.report import made_report
from tpuprof.tui.pages import PAGES

MOST_BYTES, LEAST_BYTES, LARGEST_BYTES = 8_000, 1_000, 100_000
"""Bytes of an answer where the call doesn't say, and what it may say."""

_LEAST_ROW = 20
"""Bytes of the shortest row: more rows than fit into the answer are not read."""

Arguments = Mapping[str, Any]
Kind = Literal["string", "integer", "number"]


@dataclass(frozen=True)
class Parameter:
    """What a tool takes.

    Attributes:
        name: in the call, and as an option of the command, where `option` is not empty.
        option: of the command; empty for what the tool reads itself.
        default: what the tool takes where a call doesn't give it.
    """

    name: str
    kind: Kind
    meaning: str
    option: str = ""
    needed: bool = False
    default: Any = None


@dataclass(frozen=True)
class Tool:
    """A tool.

    Attributes:
        page: of `report`; empty where the call names it, or where the tool is no page.
        parameters: besides `max_bytes`.
        shorten: makes the answer of the command's JSON; with it, how many entries lists have in all.
        more: how to get what does not fit.
        takes_sql: whether a call may give a query in SQL in place of a page, where DuckDB is installed.
    """

    name: str
    meaning: str
    page: str
    parameters: tuple[Parameter, ...]
    shorten: Callable[[dict[str, Any], Arguments], short.Answer]
    more: str
    takes_sql: bool = False

    @property
    def given(self) -> tuple[Parameter, ...]:
        return (*self.parameters, *(_OF_SQL if self.takes_sql and find_spec("duckdb") is not None else ()), _SIZE)

    @property
    def schema(self) -> dict[str, Any]:
        given = self.given
        properties: dict[str, dict[str, object]] = {
            each.name: {"type": each.kind, "description": each.meaning} for each in given
        }
        if self.page == "" and "page" in properties:
            properties["page"]["enum"] = list(_WITH_ROWS)
        needed = [each.name for each in given if each.needed]
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    def answer(self, arguments: Arguments, root: Root, seconds: int) -> str:
        """What a call is answered, as JSON; in SQL within about so many seconds.

        Raises:
            ProfileError: what it gives does not fit, or can't be read.
        """
        given = self._checked(arguments)
        if given.get("sql") == _SCHEMA:
            tables = {table.name: [column.name for column in table.columns] for table in TABLES_OF_SQL}
            return bounded({"tables": tables}, given["max_bytes"], "max_bytes")
        document = json.loads(self._printed(given, root, seconds))
        answer = short.sql(document) if given.get("sql") else self.shorten(document, given)
        head = {key: root.named(value) if key == "path" else value for key, value in answer.values.items()}
        rows = head.get("runs")
        if isinstance(rows, list):
            head["runs"] = [row | {"path": root.named(row["path"])} for row in rows if root.holds(row["path"])]
        return bounded(head, given["max_bytes"], self.more, answer.whole)

    def _printed(self, given: Arguments, root: Root, seconds: int) -> str:
        if given.get("sql"):
            return _query(given, root, max(1, seconds - _SPARE_SECONDS))
        return _diff(given, root) if self.page == _DIFF else self._report(given, root)

    def _checked(self, arguments: Arguments) -> dict[str, Any]:
        known = {each.name: each for each in self.given}
        for name, value in arguments.items():
            if name not in known:
                hint = nearest_hint(name, tuple(known), f"one of: {', '.join(known)}")
                raise _refused(f"{self.name} takes no {printable(name)[:60]}.", hint)
            _check_kind(known[name], value)
        missing = [each.name for each in known.values() if each.needed and arguments.get(each.name) is None]
        if missing:
            raise _refused(f"{self.name} needs the argument {missing[0]}.", known[missing[0]].meaning)
        given = {each.name: each.default for each in known.values()}
        given |= {name: value for name, value in arguments.items() if value is not None}
        given["max_bytes"] = min(max(given["max_bytes"], LEAST_BYTES), LARGEST_BYTES)
        if "limit" in given:
            most = given["max_bytes"] // _LEAST_ROW
            given["limit"] = min(given["limit"] or most, most)
        return given

    def _report(self, given: Arguments, root: Root) -> str:
        name = self.page or given["page"]
        if name is None:
            other = " or sql" if "sql" in given else ""
            raise _refused(f"{self.name} needs the argument page{other}.", f"one of: {', '.join(_WITH_ROWS)}")
        if not self.page and name not in _WITH_ROWS:
            hint = nearest_hint(name, _WITH_ROWS, f"one of: {', '.join(_WITH_ROWS)}")
            raise _refused(f"There is no page {printable(name)[:60]} with a table.", hint)
        place = root.place(given["path"])
        words = [name, f"--logdir={place}", "--format=json"]
        words += ["--limit=0"] if self.page == _FINDINGS else []  # all reasons: `short.why` is what shortens them
        options = {each.option: given[each.name] for each in self.given if each.option}
        words += [f"{option}={value}" for option, value in options.items() if value is not None]
        made, _ = made_report(report_parser().parse_args(words))
        assert not callable(made), "a function makes traces for Perfetto alone"
        return "".join(made)


def _query(given: Arguments, root: Root, seconds: int) -> str:
    if other := [name for name in ("page", "step", "filter", "sort", "columns") if given[name]]:
        raise _refused(f"A query in SQL takes no {other[0]}.", "sql alone, or page with filter, sort, columns")
    place = root.place(given["path"])
    words = [f"--logdir={place}", "--format=json", f"--limit={given['limit']}", f"--time-limit={seconds}"]
    options = {each.option: given[each.name] for each in (*_OF_RUN[1:], *_OF_SQL) if each.option}
    words += [f"{option}={value}" for option, value in options.items() if value is not None]
    try:
        return made_query(query_parser().parse_args([*words, "--", HERE, given["sql"]]))
    except ProfileError as error:
        hint = _HINTS.get(error.code, error.hint).replace(SCHEMA_HINT, f"sql: {_SCHEMA} lists tables and columns")
        raise ProfileError(error.code, error.sentence, hint, error.exit_code) from error


def _diff(given: Arguments, root: Root) -> str:
    words = ["--json"]
    for path, run in (("before", "run_before"), ("after", "run_after")):
        if given[path] is not None:
            place = root.place(given[path])
            words.append(place)
        if given[run] is not None:
            words.append(f"--run-{'a' if path == 'before' else 'b'}={given[run]}")
    args = diff_parser().parse_args(words)
    return made_diff(args, common.configured(args))


def _check_kind(parameter: Parameter, value: object) -> None:
    fits = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int),
        "number": isinstance(value, int | float),
    }
    if value is not None and (isinstance(value, bool) or not fits[parameter.kind]):
        article = "an integer" if parameter.kind == "integer" else f"a {parameter.kind}"
        raise _refused(f"{parameter.name} has to be {article}.", parameter.meaning)


def _refused(sentence: str, hint: str) -> ProfileError:
    return ProfileError("usage", sentence, hint, EXIT_USAGE)


# --- the table

_DIFF = "diff"
_FINDINGS = "findings"
_WITH_ROWS = tuple(page.name for page in PAGES if not page.is_of_arrays and page.name != "timeline")
"""Pages whose table `query` filters: the timeline has a tool of its own, and live arrays are of no profile."""

_SIZE = Parameter(
    "max_bytes", "integer", f"size of the answer, {LEAST_BYTES:,} to {LARGEST_BYTES:,}", default=MOST_BYTES
)
_PATH = Parameter("path", "string", "a logdir, a run or a file below the root", default=".")
_RUN = Parameter("run", "string", "name of a run, or its beginning; the newest without it", "--run")
_HOST = Parameter("host", "string", "only this host", "--host")
_CORE = Parameter("core", "string", "only this core, as host:2", "--core")
_OF_RUN = (_PATH, _RUN, _HOST, _CORE)
_STEP = Parameter("step", "string", "only this step, or these: 104-108", "--step")
_FILTER = Parameter(
    "filter", "string", "terms that must all match: fusion !copy >1ms roofline_efficiency<60%", "--filter", default=""
)
_SORT = Parameter("sort", "string", "key of a column, key:asc or key:desc", "--sort")
_COLUMNS = Parameter("columns", "string", "keys of columns, separated by commas", "--columns")
_SCHEMA = "schema"
_SPARE_SECONDS = 2  # of a call: a query is stopped before it is ended, as it can say more then
_HINTS = dict.fromkeys(("too_long", "too_large"), "fewer rows to join")
_SQL = "one SELECT in DuckDB's SQL instead of page, filter, sort and columns, over tables such as ops, events, steps, "
_SQL += f"cores, buffers, findings; {_SCHEMA}: all tables and columns"
_OF_SQL = (
    Parameter("sql", "string", _SQL),
    Parameter("from_ms", "number", "only events from this instant on, on the trace's clock", "--from"),
    Parameter("to_ms", "number", "only events up to this instant", "--to"),
    Parameter("track", "string", "with sql: only events of tracks with this in their section / name", "--track"),
)
_OF_OPS = "name,self_time_ps,self_time_percent,occurrences,bound_by,roofline_efficiency,source"


def _limit(most: int) -> Parameter:
    return Parameter("limit", "integer", "number of rows, 0 for all that fit", "--limit", default=most)


TOOLS: tuple[Tool, ...] = (
    Tool(
        "runs",
        "Which runs (profiles) lie below a path, the newest first, with hosts and size.",
        "runs",
        (_PATH,),
        short.runs,
        "a path closer to the run, or max_bytes",
    ),
    Tool(
        "why",
        "Why the program is slow: reasons by name, in ms a step, the largest saving first. With a reason's name: its "
        "evidence, ops, cores, figures, and what to try.",
        _FINDINGS,
        (*_OF_RUN, Parameter("reason", "string", "name of one reason, for all about it")),
        short.why,
        "why with the name of one reason, or max_bytes",
    ),
    Tool(
        "ops",
        "HLO ops by self time over the whole capture, or a step, and all cores: how far from the roof, what bounds "
        "them, which source line.",
        "ops",
        (*_OF_RUN, _STEP, _FILTER, _SORT, replace(_COLUMNS, default=_OF_OPS), _limit(20)),
        short.rows,
        "filter, columns, limit or max_bytes",
    ),
    Tool(
        "op",
        "All about one op or kernel: its runs (min, median, p90, max) by core and step, its rates, what bounds it, "
        "who feeds it and who waits for it.",
        "op",
        (
            *_OF_RUN,
            Parameter("op", "string", "name of an HLO op, kernel or framework op", "--op", needed=True),
            Parameter("module", "string", "name of its program, if several have such an op", "--module"),
        ),
        short.op,
        "core or host for a smaller answer, or max_bytes",
    ),
    Tool(
        "query",
        "The table of any page, filtered, sorted, with chosen columns: collectives, cores, hosts, ledger, sources, "
        "framework-ops, input, memory (buffers at the peak), and so on.",
        "",
        (Parameter("page", "string", "whose table"), *_OF_RUN, _STEP, _FILTER, _SORT, _COLUMNS, _limit(20)),
        short.rows,
        "filter, columns, limit or max_bytes",
        takes_sql=True,
    ),
    Tool(
        "timeline",
        "Without from_ms and to_ms the tracks of the timeline; with them what ran in the interval, and its events.",
        "timeline",
        (
            _PATH,
            _RUN,
            _HOST,
            Parameter("from_ms", "number", "start on the trace's clock", "--from"),
            Parameter("to_ms", "number", "end on the trace's clock", "--to"),
            Parameter("track", "string", "tracks with this in their section / name", "--track"),
            _limit(50),
        ),
        short.timeline,
        "a shorter interval, track, limit or max_bytes",
    ),
    Tool(
        "diff",
        "What changed between two runs, and how much of it is noise.",
        _DIFF,
        (
            Parameter("before", "string", "path below the root: the run before", needed=True),
            Parameter("after", "string", "path below the root: the run after; else the newest runs of before"),
            Parameter("run_before", "string", "name of the run before"),
            Parameter("run_after", "string", "name of the run after"),
        ),
        short.diff,
        "max_bytes, or ops of each run",
    ),
)
"""All tools, in the order in which a client lists them."""
