"""The tools of the server: each is a call of a command of the command line, and a short form of its answer."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Literal

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.text import nearest_hint, printable
from tpuprof.tui.api.sql.tables import TABLES as TABLES_OF_SQL
from tpuprof.tui.cli.arguments.itself import REQUIRED
from tpuprof.tui.cli.arguments.options import PROGRAM, meaning_of
from tpuprof.tui.cli.commands.agents import short
from tpuprof.tui.cli.commands.agents.root import Root
from tpuprof.tui.cli.commands.diff import made_diff, made_verify
from tpuprof.tui.cli.commands.doctor.command import made_doctor
from tpuprof.tui.cli.commands.oom.command import made_oom
from tpuprof.tui.cli.commands.query import made_query
from tpuprof.tui.cli.commands.report import made_report
from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.pages import COMMAND_PAGES, PAGES, CommandPage, Page
from tpuprof.tui.report.describe import described
from tpuprof.tui.report.output import LEAST_BYTES, whole
from tpuprof.tui.report.shared.bounded import LEAST_ROW, bounded_json, changed, compact

_OF_SENTENCES = ("advice", "basis", "evidence", "how", "missing", "next", "notes", "sentence", "why", "why_none")
_OF_OURS = frozenset((*_OF_SENTENCES, "hint", "more", "problem", "problems", "reason", "unknown", "warnings"))
"""Keys below which an answer's texts are this program's own; other texts are data of the profile."""

_OPTION = re.compile(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*(?![\w-])")
"""An option of a command; those of the compiler have underscores."""

_COMMAND = re.compile(rf"(?:\b{PROGRAM} )?\breport ([a-z-]+)(?!\w)|\b{PROGRAM} ([a-z-]+)(?![\w/.])")
_GROUP = re.compile(r"--group ([A-Z0-9]+)(?![\w-])")
_CLAUSE = re.compile(r"(?<=[,;:.]) | (?=\()")


@dataclass(frozen=True)
class Speech:
    """Rewrites what is said of commands and their options.

    Attributes:
        arguments: of tools, by options: ``--from`` is ``from_ms``.
        tools: names of tools by those of pages and commands.
        named: how an answer names a path.
    """

    arguments: Mapping[str, str]
    tools: Mapping[str, str]
    named: Callable[[str], str]

    def answer(self, value: Any, key: str = "", is_ours: bool = False) -> Any:  # noqa: ANN401 - what JSON holds
        """An answer with its sentences rewritten and its paths named."""
        if isinstance(value, dict):
            return {name: self.answer(item, name, is_ours or name in _OF_OURS) for name, item in value.items()}
        if isinstance(value, list):
            return [self.answer(item, key, is_ours) for item in value]
        if isinstance(value, str) and (is_ours or value.startswith(PROGRAM)):
            return self.said(value)
        return self.named(value) if isinstance(value, str) and key == "path" else value

    def said(self, text: str) -> str:
        """A text without words of the command line; clauses on what no tool does are left out."""
        if PROGRAM not in text and "--" not in text and "report " not in text:
            return text
        if text.startswith(PROGRAM) and (call := self._call(text)):
            return call
        text = _COMMAND.sub(lambda found: self._tool(found[1] or found[2]) or found[0], text)
        text = _GROUP.sub(r"core 'group \1'", text)
        text = _OPTION.sub(lambda found: self.arguments.get(found[0], found[0]), text)
        clauses = _CLAUSE.split(text)
        kept = [clause for clause in clauses if PROGRAM not in clause and not _OPTION.search(clause)]
        return text if len(kept) == len(clauses) else " ".join(kept).rstrip(",;:").removeprefix("or ")

    def _tool(self, name: str) -> str:
        tool = self.tools.get(name, "")
        return f"{tool} with page {name}" if tool == "query" != name else tool

    def _call(self, command: str) -> str:
        """The call of a tool that does what a whole command does; empty where there is none."""
        words = shlex.split(command)[1:]
        words = words[1:] if words[:1] == ["report"] else words
        tool = self.tools.get(words[0], "") if words else ""
        given: dict[str, object] = {"page": words[0]} if tool == "query" else {}
        rest = iter(words[1:])
        for word in rest:
            name = self.arguments.get(word, "" if word.startswith("-") or "path" in given else "path")
            value = next(rest, "") if word in self.arguments else self.named(word)
            if not name:
                return ""
            given[name] = json.loads(value) if name.endswith("_ms") else value
        return f"{tool} {json.dumps(given, ensure_ascii=False)}" if tool else ""


MOST_BYTES, LARGEST_BYTES = 8_000, 100_000
"""Bytes of an answer where the call doesn't say, and the most that it may ask for."""

_DIGITS = 6  # of a number that is not a whole one
_LONGEST_CALL = 300  # characters of the call that `next` names

Arguments = Mapping[str, Any]
Kind = Literal["string", "integer", "number"]


@dataclass(frozen=True)
class Tool:
    """A tool.

    Attributes:
        page: of `report`, or a command; empty where the call names the page.
        takes: names of its parameters, besides `max_bytes`.
        needs: the one that a call has to give; empty without.
        defaults: what the tool takes where a call doesn't give it.
        example: arguments of a call.
        shorten: makes the answer of the command's JSON.
        places: where keys of the page stand in an answer, by their beginnings; others are not in it.
    """

    name: str
    meaning: str
    page: str
    takes: str
    example: Arguments
    shorten: Callable[[dict[str, Any], Arguments], short.Document] = short.page
    defaults: Arguments = field(default_factory=dict)
    needs: str = ""
    places: tuple[tuple[str, str], ...] = (("", ""),)

    @property
    def given(self) -> tuple[str, ...]:
        """Names of what it takes."""
        return *self.takes.split(), "max_bytes"

    @property
    def description(self) -> str:
        return f"{self.meaning} Example: {json.dumps(self.example)}"

    @property
    def schema(self) -> dict[str, Any]:
        properties: dict[str, dict[str, object]] = {
            name: {"type": _kind(name), "description": _meaning(name)} for name in self.given
        }
        if "page" in properties:
            properties["page"]["enum"] = list(_WITH_ROWS)
        needed = [self.needs] if self.needs else []
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    @property
    def output_schema(self) -> dict[str, Any]:
        """What its answers hold, as far as a page says it."""
        pages: list[Page | CommandPage] = [*PAGES, *COMMAND_PAGES]
        reports = [described(page.load_report()) for page in pages if page.name == self.page and page.report]
        return short.schema_of(reports[0] if reports else (), (*_HEAD, *self.places))

    @property
    def more(self) -> str:
        """What narrows the question where an answer does not fit."""
        return ", ".join(name for name in _NARROWING if name in self.given)

    def _rest(self, arguments: Arguments) -> str:
        """The call that gives more, and what narrows the question."""
        kept = {name: value for name, value in arguments.items() if name not in ("limit", "max_bytes")}
        call = f"{self.name} {compact({**kept, 'max_bytes': LARGEST_BYTES})}"
        call = call if len(call) < _LONGEST_CALL else f"{self.name} with max_bytes {LARGEST_BYTES}"
        return f"{call}, or narrow it by {self.more}" if self.more else call

    def answer(self, arguments: Arguments, root: Root, seconds: int) -> str:
        """What a call is answered, as JSON; in SQL within about so many seconds.

        Raises:
            ProfileError: what it gives does not fit, or can't be read.
        """
        speech = Speech(_ARGUMENTS, _OF_PAGES, root.named)
        try:
            given = self._checked(arguments)
            if given.get("sql") == _SCHEMA:
                tables = {table.name: [column.name for column in table.columns] for table in TABLES_OF_SQL}
                return bounded_json({"tables": tables}, given["max_bytes"], self._rest(arguments), compact)
            document = json.loads(self._printed(given, root, seconds))
        except ProfileError as error:
            hint = speech.said(error.hint) or (f"{self.name} {json.dumps(self.example)}" if error.hint else "")
            raise ProfileError(error.code, speech.said(error.sentence), hint, error.exit_code) from error
        answer = short.sql(document) if given.get("sql") else self.shorten(document, given)
        if self.name == "runs":
            answer["runs"] = [row for row in answer["runs"] if root.holds(row["path"])]
        said = speech.answer(changed(_rounded, answer))
        said |= {"next": self._rest(arguments)} if "next" in said else {}
        return bounded_json(said, given["max_bytes"], self._rest(arguments), compact)

    def _printed(self, given: Arguments, root: Root, seconds: int) -> str:
        """The JSON of the command."""
        values = {name: value for name, value in given.items() if value is not None}
        values |= {name: root.place(values[name]) for name in _PATHS if name in values}
        command = _AS_COMMANDS.get(self.page, self.page if self.page in _COMMANDS else "report")
        if "sql" in values:
            if other := [name for name, value in values.items() if value and name not in _WITH_SQL]:
                raise _refused(f"A query in SQL takes no {other[0]}.", "sql alone, or page with filter, sort, columns")
            command = "query"
            del values["filter"]
        elif command == "report":
            values = {"page": self._page(given), **values}
        options = [f"{option}={value}" for name, value in values.items() if (option := _option(name))]
        options += [f"--time-limit={max(1, seconds - _SPARE_SECONDS)}"] if command == "query" else []
        options += ["--program"] if self.page in _AS_COMMANDS else []
        words = [*options, "--", *(value for name, value in values.items() if name in _IN_PLACE)]
        args = COMMANDS[command].parser(words).parse_args(words)
        args.format = "json"
        return _COMMANDS[command](args)

    def _page(self, given: Arguments) -> str:
        name: str = self.page or given["page"] or ""
        if not self.page and name not in _WITH_ROWS:
            other = f"There is no page {printable(name)[:60]} with a table."
            hint = nearest_hint(name, _WITH_ROWS, f"one of: {', '.join(_WITH_ROWS)}")
            raise _refused(other if name else f"{self.name} needs the argument page or sql.", hint)
        return name

    def _checked(self, arguments: Arguments) -> dict[str, Any]:
        known = self.given
        for name, value in arguments.items():
            if name not in known:
                hint = nearest_hint(name, known, f"one of: {', '.join(known)}")
                raise _refused(f"{self.name} takes no {printable(name)[:60]}.", hint)
            _check_kind(name, value)
        if self.needs and arguments.get(self.needs) is None:
            raise _refused(f"{self.name} needs the argument {self.needs}.", _meaning(self.needs))
        given = {name: self.defaults.get(name, _DEFAULTS.get(name)) for name in known}
        given |= {name: value for name, value in arguments.items() if value is not None}
        given["max_bytes"] = min(max(given["max_bytes"], LEAST_BYTES), LARGEST_BYTES)
        if "limit" in given:
            most = given["max_bytes"] // LEAST_ROW
            given["limit"] = min(given["limit"] or most, most)
        return given


def _rounded(value: object) -> object:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) and isfinite(value) else value


def _check_kind(name: str, value: object) -> None:
    kind = _kind(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, _KINDS[kind])):
        article = "an integer" if kind == "integer" else f"a {kind}"
        raise _refused(f"{name} has to be {article}.", _meaning(name))


def _kind(name: str) -> Kind:
    """The type of what is given by a name."""
    if name in ("limit", "max_bytes"):
        return "integer"
    return "number" if name == "tokens" or name.endswith("_ms") else "string"


def _option(name: str) -> str:
    """The option of the command that takes what is given by a name; empty where none does."""
    return "" if name in _WITHOUT_OPTION else f"--{name.removesuffix('_ms')}"


def _meaning(name: str) -> str:
    return _MEANINGS.get(name) or meaning_of(_option(name))


def _refused(sentence: str, hint: str) -> ProfileError:
    return ProfileError("usage", sentence, hint, EXIT_USAGE)


# --- the table

_FINDINGS = "findings"
_KINDS: Mapping[Kind, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float)}
_COMMANDS: Mapping[str, Callable[[argparse.Namespace], str]] = {
    "report": lambda args: whole(made_report(args)[0]),
    "query": made_query,
    "diff": made_diff,
    "verify": made_verify,
    "oom": made_oom,
    "doctor": made_doctor,
}
"""What makes the text that a command prints."""

_AS_COMMANDS = {"diff-program": "diff"}
"""Commands of which a tool has one report alone."""

_WITH_ROWS = tuple(page.name for page in PAGES if not page.is_of_arrays and page.name != "timeline")
"""Pages whose table `query` filters: the timeline and live arrays have tools of their own."""

_SCHEMA = "schema"
_SPARE_SECONDS = 2  # of a call: a query is stopped before it is ended, as it can say more then
_SQL = "one SELECT instead of page, filter, sort and columns, over tables such as ops, events, steps, "
_SQL += f"cores, buffers, findings; {_SCHEMA}: all tables and columns"
_BY = (
    "a row for each of these: layer or block of model, kind of collectives, source, function, stack or device of arrays"
)
_MEANINGS: Mapping[str, str] = {
    "page": "whose table",
    "path": "a logdir, a run or a file below the root",
    "before": "path below the root: the run before",
    "after": "path below the root: the run after; else the newest runs of before",
    "claim": "name of a reason of the run before",
    "expect": "what the program after has: no f32[8192,*], custom-call splash*, dot bf16*, while = 1, donated = 3",
    "run": "name of a run, or its beginning; the newest without it",
    "host": "only this host",
    "core": "only this core, as host:2",
    "filter": "terms that must all match: fusion !copy >1ms roofline_efficiency<60%",
    "by": _BY,
    "reason": "name of one reason, for all about it",
    "op": "name of an HLO op, kernel or framework op",
    "require": f"any of {', '.join(REQUIRED)}, separated by commas",
    "sql": _SQL,
    "limit": "number of rows; without it all that fit",
    "max_bytes": f"size of the answer, {LEAST_BYTES:,} to {LARGEST_BYTES:,}",
}
"""What tools take, by name, as far as no option of the command line says it."""

_PATHS = ("path", "before", "after")
_IN_PLACE = ("page", "path", "sql")
"""What the command takes without an option, in this order."""

_WITHOUT_OPTION = (*_IN_PLACE, "reason", "max_bytes")

_WITH_SQL = ("path", "run", "host", "core", "from_ms", "to_ms", "track", "sql", "limit", "max_bytes")
_NARROWING = ("reason", "step", "core", "track", "filter", "columns")
_DEFAULTS = {"path": ".", "filter": "", "max_bytes": MOST_BYTES}
_RUN, _IN_TIME, _ROWS = "path run host core", "step from_ms to_ms", "filter sort columns"
_TWO = {"before": "plugins/profile/2026_11_19_03_00_00", "after": "plugins/profile/2026_11_20_03_00_00"}

TOOLS: tuple[Tool, ...] = (
    Tool(
        "runs",
        "Which runs (profiles) lie below a path, the newest first, with hosts and size.",
        "runs",
        "path",
        {"path": "."},
        short.runs,
        places=(("runs[]", "runs[]"),),
    ),
    Tool(
        "doctor",
        "What a path holds, by run: hosts, device, steps, what it lacks, what is wrong with it; and whether the newest "
        "run has what is required.",
        "doctor",
        "path require",
        {"require": "device,steps,hlo"},
    ),
    Tool(
        "why",
        "Why the program is slow: reasons by name, in ms a step, the largest saving first. With a reason's name: its "
        "evidence, ops, cores, figures, and what to try.",
        _FINDINGS,
        f"{_RUN} reason",
        {"reason": "collective"},
        short.why,
        places=(("findings[]", "reasons[]"), ("findings[]", "finding"), ("step_time_ms", "step_time_ms")),
    ),
    Tool(
        "ops",
        "HLO ops by self time over the whole capture, or a part of it, and all cores: how far from the roof, what "
        "bounds them, which source line.",
        "ops",
        f"{_RUN} {_IN_TIME} {_ROWS} limit",
        {"filter": "roofline_efficiency<60% >1%", "limit": 10},
        short.rows,
        {"columns": "name,self_time_ps,self_time_percent,occurrences,bound_by,roofline_efficiency,source"},
        places=(("ops[]", "rows[]"),),
    ),
    Tool(
        "op",
        "All about one op or kernel: its runs (min, median, p90, max) by core and step, its rates, what bounds it, "
        "who feeds it and who waits for it.",
        "op",
        f"{_RUN} {_IN_TIME} op module",
        {"op": "fusion.397"},
        needs="op",
    ),
    Tool(
        "query",
        "The table of any page, filtered, sorted, with chosen columns: collectives, cores, hosts, ledger, sources, "
        "framework-ops, input, memory (buffers at the peak), inference (latencies), model, kernels, and so on.",
        "",
        f"page {_RUN} {_IN_TIME} track {_ROWS} by module requests tokens device limit sql",
        {"page": "collectives", "sort": "exposed_time_ms", "limit": 5},
        short.rows,
    ),
    Tool(
        "timeline",
        "Without a step or an interval the tracks of the timeline; with one what ran in it, and its events.",
        "timeline",
        f"{_RUN} {_IN_TIME} track limit",
        {"step": "104", "core": "0", "track": "XLA Ops", "limit": 10},
        short.timeline,
    ),
    Tool(
        "diff",
        "What changed between two runs, and how much of it is noise.",
        "diff",
        "before after",
        _TWO,
        short.diff,
        needs="before",
    ),
    Tool(
        "verify",
        "Whether a change kept the promise of a reason: the saving in the run before, how much shorter a step is in "
        "the run after, and what took its place. With expect: whether the compiled program of after is so.",
        "verify",
        "before after claim expect",
        {**_TWO, "claim": "collective"},
        short.diff,
        needs="before",
    ),
    Tool(
        "program",
        "A compiled program before it runs, of a profile, a compiler's dump, HLO or its text: how long it takes at "
        "least, what its tiles tell, what each op and array moves through HBM, and its fingerprint.",
        "program",
        "path run module device limit",
        {"path": "dump", "device": "v6e", "limit": 5},
        needs="path",
    ),
    Tool(
        "program_diff",
        "Whether a change reached the compiler, from two dumps, HLO files, texts of programs or profiles: same "
        "program, text only, tiles only or changed, with memory first, then what costs most.",
        "diff-program",
        "before after device limit",
        {"before": "dump", "after": "dump", "limit": 10},
        short.diff,
        needs="before",
    ),
    Tool(
        "oom",
        "What ran out of memory, from a log with an out-of-memory error of a TPU program or a dump of the compiler: "
        "what was needed, by which buffers, and what to do first.",
        "oom",
        "path limit",
        {"path": "train.log"},
        needs="path",
    ),
    Tool(
        "live_arrays",
        "Who holds the memory of the devices, from a file of jax.profiler.save_device_memory_profile: by source line, "
        "function, stack, device or kind.",
        "live-arrays",
        "path by limit",
        {"path": "memory.prof", "by": "function"},
        needs="path",
    ),
)
"""All tools, in the order in which a client lists them."""

_HEAD = (("warnings[]", "warnings[]"), ("run.name", "run"), ("run.", ""))
"""Where answers have what pages begin with."""

_ARGUMENTS = {_option(name): name for tool in TOOLS for name in tool.given}
_ARGUMENTS |= {"--group": "core", "--schema": f"with sql: {_SCHEMA}"}
_OF_PAGES: dict[str, str] = {
    **dict.fromkeys(_WITH_ROWS, "query"),
    **{tool.page or tool.name: tool.name for tool in TOOLS},
}
"""The tool that has a page, or does what a command does."""
