"""Runs one SQL query over the tables of a profile with Python's SQLite, in memory and read-only.

Tables are created empty first, so that a wrong name is known before anything is read. Then the columns that the query
names are filled. A callback lets the query read tables and call functions, and nothing else.

SQL is a little closer to that of DuckDB and other column stores, which read Parquet: whole numbers divide to fractions,
and there are the percentiles, deviations and comparisons that SQLite lacks. LIKE takes "A" and "a" alike, as SQLite's.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted, examples, nearest_hint, printable
from tpuprof.parsers.files.core_names import core_named
from tpuprof.parsers.ops.filtering.field_term import meant_columns
from tpuprof.tui.api.profile import Profile
from tpuprof.tui.api.sql.tables import BY_NAME, EventsAsked, SqlTable
from tpuprof.tui.api.table import Table
from tpuprof.tui.report.shared.columns import Column, SqlType, as_text

GRACE_SECONDS = 5.0
"""How long a query that is told to stop may take to do so."""

SCHEMA_HINT = "tpuprof-tui query --schema lists tables and columns"

MIB = 1 << 20
_SLACK = 256 * MIB
"""Of address space, for threads and what the interpreter takes."""

NO_VALUE = "NULL: the profile does not say, or the query has no value for the row"
_OF_QUERY = "a column of the query"
_UNITS: Mapping[SqlType, str] = {
    "VARCHAR": "text",
    "VARCHAR[]": "list of texts",
    "BOOLEAN": "true or false",
    "BIGINT": "count",
}

_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_FORBIDDEN = ("load_extension", "fts3_tokenizer")
_MOST_PATTERN = 200
"""Characters of a pattern of LIKE: what a longer one may cost grows without a bound."""

_STORED: Mapping[SqlType, tuple[str, Callable[[Any], Any]]] = {
    "VARCHAR": ("TEXT", as_text),
    "VARCHAR[]": ("LIST_TEXT", lambda values: json.dumps(list(map(as_text, values)), ensure_ascii=False)),
    "BOOLEAN": ("FLAG", bool),
    "BIGINT": ("INTEGER", int),
    "UBIGINT": ("ID_TEXT", str),
    "DOUBLE": ("REAL", float),
}
"""The declared type of each, and how a value goes in. Lists, flags and ids of 64 bits, which no INTEGER holds, come
back as they were, by their declared types."""

for _name, _converted in (("LIST_TEXT", json.loads), ("FLAG", lambda value: value != b"0"), ("ID_TEXT", int)):
    sqlite3.register_converter(_name, _converted)
_TYPES: Mapping[type, SqlType] = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", list: "VARCHAR[]"}

_DIVISION = pattern(
    r"""(?si)'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|$)|//|/|\b(?:ilike|try_cast)\b"""
)
_DIVIDED = {"/": "*1.0/", "//": "/", "ilike": "LIKE", "try_cast": "CAST"}
_CORE = pattern(r"(?i)(?P<before>\bcore\s*(?:=|==|!=|<>)\s*)'(?P<name>[^']*)'")
_WORDS, _SIGNS = pattern(r"'%?([^'%]{3,})%?'"), pattern(r"[-_. ]+")
_JOINED = pattern(r"(?i)natural|using")
"""Joins whose tables and columns the callback does not hear of."""

_ERRORS = (sqlite3.Error, sqlite3.Warning)
_OTHERS = {"not authorized": "another statement", "You can only execute one statement at a time.": "several statements"}
_NOTHING = pattern(r"(?:[\s;]|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_LISTED = pattern(r"(?i)\s*(?:show\s+tables|\.tables|\.schema|select\b.*\bfrom\s+information_schema\b.*)\W*")
_DESCRIBED = pattern(r"(?i)\s*(?:describe|desc|\.schema|pragma\s+table_info)[\s(]+(\w+)\W*")
_MEANT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("slice", "slices", "span", "spans", "trace", "track", "thread", "timeline"), ("events",)),
    **dict.fromkeys(("kernel", "kernels", "hlo", "instructions", "sources"), ("ops", "events")),
    **dict.fromkeys(("device", "devices", "chips"), ("cores",)),
    **dict.fromkeys(("process", "machines"), ("hosts",)),
    **dict.fromkeys(("programs", "executables"), ("modules",)),
    **dict.fromkeys(("ledger", "iterations"), ("steps",)),
    **dict.fromkeys(("memory", "allocations", "heap"), ("buffers", "allocators")),
    **dict.fromkeys(("communication", "network"), ("collectives", "collective_groups")),
}
"""Tables by the names that they have in other programs' SQL, and on pages."""

_TOP = pattern(r"(?i)\btop\s*\(?([0-9]{1,9})\)?")
_LACKS = pattern(r"(?i)\b(?:qualify|rollup|cube)\b")
_WHOLE = "UNION ALL with a SELECT that has no GROUP BY"
_INSTEAD = {"qualify": "SELECT * FROM (SELECT …, row_number() OVER … AS place FROM …) WHERE place = 1"}
_NO_TABLE = pattern(r"no such table: (\S+)")
_NO_COLUMN = pattern(r"no such column: (?:\w+\.)?(\S+)")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a query may take: seconds, bytes of memory, and rows that it gives, 0 for all."""

    seconds: int = 30
    memory_bytes: int = 1 << 30
    rows: int = 1000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave.

    Attributes:
        names, types: of its columns, no two names alike.
        rows: Python values, None for NULL.
        has_more: whether there are rows beyond the limit.
        tables: names of the tables that were read.
        warnings: what is wrong with the profile, a sentence each.
    """

    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    rows: Sequence[Sequence[Any]]
    has_more: bool
    tables: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def _divided(sql: str) -> str:
    """The query with words of DuckDB: ``/`` has fractions, ``//`` has none, ILIKE is LIKE, and CAST never fails."""
    return _DIVISION.sub(lambda found: _DIVIDED.get(found[0].casefold(), found[0]), sql)


class Database:
    """Tables in memory, and one query over them."""

    def __init__(self) -> None:
        made = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES, check_same_thread=False)
        made.executescript("PRAGMA temp_store = MEMORY")
        if sys.version_info >= (3, 12):
            made.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MOST_PATTERN)
            made.setconfig(sqlite3.SQLITE_DBCONFIG_DQS_DML, False)  # a wrong name in double quotes is no text
        _add_functions(made)
        self._connection, self._tables = made, dict[str, Sequence[Column]]()
        self._reads: dict[str, set[str]] = {}
        self._is_query = self._is_select = False
        made.set_authorizer(self._authorized)
        self.interrupt, self.close = made.interrupt, made.close

    def create(self, name: str, columns: Sequence[Column]) -> None:
        """Creates an empty table."""
        made = ", ".join(f'"{column.name}" {_STORED[column.type][0]}' for column in columns)
        self._connection.execute(f'CREATE TABLE "{name}" ({made})')
        self._tables[name] = columns

    def needed(self, sql: str) -> Mapping[str, Collection[str]]:
        """The tables that a query reads, each with at least the columns that it reads, before any has a row.

        Raises:
            ProfileError: it is not one SELECT; SQLite's errors: it can't be run.
        """
        self._is_query = True
        try:
            self._connection.execute(f"EXPLAIN {_divided(sql)}")
        except _ERRORS as error:
            if (what := _OTHERS.get(str(error))) is not None:
                raise _not_one_select(what) from error
            raise
        if not self._is_select:
            raise _not_one_select("another statement")
        self._is_query = False
        if _JOINED.search(sql):
            return {name: {column.name for column in columns} for name, columns in self._tables.items()}
        return self._reads

    def _authorized(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        """Whether a statement may do something; keeps the tables and columns that a query reads."""
        if not self._is_query:
            return sqlite3.SQLITE_OK
        self._is_select |= action == sqlite3.SQLITE_SELECT
        if action == sqlite3.SQLITE_READ and (name := (first or "").casefold()) in self._tables:
            self._reads.setdefault(name, set()).add(second or "")
        is_allowed = action in _ALLOWED and second not in _FORBIDDEN
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    def insert(self, name: str, columns: Sequence[Column], values: Sequence[Sequence[Any]]) -> None:
        """Puts rows into some columns of a table.

        Args:
            values: of each column, as JSON has them; None where unknown.
        """
        names, places = ", ".join(f'"{column.name}"' for column in columns), ", ".join("?" * len(columns))
        stored = [
            [None if value is None else _STORED[column.type][1](value) for value in of_column]
            for column, of_column in zip(columns, values, strict=True)
        ]
        sql = f'INSERT INTO "{name}" ({names}) VALUES ({places})'  # noqa: S608 - names of ours
        self._connection.executemany(sql, zip(*stored, strict=True))

    def known(self, needed: Mapping[str, Collection[str]], *columns: str) -> dict[str, list[str]]:
        """What the columns of these names hold that a query reads, by their names with their tables'."""
        made = dict[str, list[str]]()
        for table, name in ((table, name) for table in needed for name in columns if name in needed[table]):
            sql = f'SELECT DISTINCT "{name}" FROM "{table}" WHERE "{name}" NOT NULL ORDER BY 1'  # noqa: S608 - names of ours
            made[f"{table}.{name}"] = [str(row[0]) for row in self._connection.execute(sql)]
        return made

    def run(self, sql: str, most: int) -> tuple[Sequence[str], Sequence[SqlType], Sequence[Sequence[Any]]]:
        """Names and types of the columns of a query that `needed` has seen, and its first rows, 0 for all."""
        self._is_query = True
        cursor = self._connection.execute(_divided(sql))
        rows = list(islice(cursor, most or None))
        names = [str(column[0]) for column in cursor.description]
        types = [self._type(name, [row[place] for row in rows]) for place, name in enumerate(names)]
        return names, types, rows

    def _type(self, name: str, values: Sequence[Any]) -> SqlType:
        """The type of a column of an answer: of its values, or where all are NULL, of the table's column."""
        found = {_TYPES.get(type(value), "VARCHAR") for value in values if value is not None}
        of_tables = {column.name: column.type for columns in self._tables.values() for column in columns}
        declared = of_tables.get(name, "VARCHAR")
        if not found or (found, declared) == ({"BIGINT"}, "UBIGINT"):
            return declared
        return "DOUBLE" if found == {"BIGINT", "DOUBLE"} else found.pop() if len(found) == 1 else "VARCHAR"


@contextmanager
def _bounded(database: Database, limits: Limits, give_up: Callable[[], object]) -> Iterator[None]:
    """Bounds the time of a query; on Linux, which can, the memory that the process takes besides what it has.

    Args:
        give_up: called from another thread where the query runs on for `GRACE_SECONDS` after it was interrupted.
    """
    timers = [Timer(limits.seconds, database.interrupt), Timer(limits.seconds + GRACE_SECONDS, give_up)]
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        with _in_memory(limits.memory_bytes) if sys.platform == "linux" else nullcontext():
            yield
    finally:
        for timer in timers:
            timer.cancel()


@contextmanager
def _in_memory(most_bytes: int) -> Iterator[None]:
    resource = import_module("resource")  # not on every system
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + most_bytes + _SLACK
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def query(
    sql: str, profile: Profile, limits: Limits, asked: EventsAsked, give_up: Callable[[], object] = lambda: None
) -> Answer:
    """Answers a query.

    Args:
        sql: one SELECT.
        asked: which events the table of events holds.
        give_up: called from another thread where a query does not stop although its time is over.

    Raises:
        ProfileError: `usage`, `sql`, `too_long`, `too_large`, `too_many` (exit code 2), or what the profile raises.
    """
    if _NOTHING.fullmatch(sql):
        raise _not_one_select("none")
    sql = _as_select(sql)
    with closing(Database()) as database, _in_words(sql, limits):
        for table in _said(sql):  # others it can't name
            database.create(table.name, table.columns_in(sql))
        with _bounded(database, limits, give_up):
            needed = database.needed(sql)
        warnings = _fill(database, needed, profile, asked)
        with _bounded(database, limits, give_up):
            if _CORE.search(sql):
                sql = _with_cores(sql, {core for of in database.known(needed, "core").values() for core in of})
            names, types, rows = database.run(sql, limits.rows and limits.rows + 1)
        if not rows:
            for name, there in database.known(needed, "core", "track").items():
                warnings += (f"{name} is one of: {examples([*map(printable, there)], 12) or 'none'}",)
            for name, there in database.known(needed, "name").items():
                if near := [of for of in there if any(_plain(word) in _plain(of) for word in _WORDS.findall(sql))]:
                    warnings += (f"{name} has {examples([*map(printable, near)], 8)}",)
    shown = rows[: limits.rows or None]
    return Answer(_distinct(names), tuple(types), shown, len(shown) < len(rows), tuple(sorted(needed)), warnings)


def table_of(sql: str, profile: Profile, most: int, seconds: int) -> Table:
    """The answer of a query as a table of at most so many rows, 0 for all; raises as `query`."""
    answer = query(sql, profile, Limits(seconds, rows=0), EventsAsked())
    rows = answer.rows[: most or None]
    values = {name: [row[place] for row in rows] for place, name in enumerate(answer.names)}
    columns = [
        Column(name, _UNITS.get(kind, "number"), _OF_QUERY, NO_VALUE)
        for name, kind in zip(answer.names, answer.types, strict=True)
    ]
    return Table("query", columns, values, len(answer.rows) - len(rows), answer.warnings)


def _not_one_select(what: str) -> ProfileError:
    """The error of what is not one SELECT."""
    return ProfileError("usage", f"A query is one SELECT; this is {what}.", "SELECT name FROM ops", EXIT_USAGE)


def _said(sql: str) -> list[SqlTable]:
    """The tables whose names stand somewhere in a text; all where it asks which there are."""
    words = sql.casefold()
    return [table for table in BY_NAME.values() if table.name in words or "sqlite_" in words]


def _as_select(sql: str) -> str:
    """What other shells list and describe tables with, as one SELECT; other queries as they are."""
    if _LISTED.fullmatch(sql):
        return "SELECT name FROM sqlite_master"
    described = _DESCRIBED.fullmatch(sql)
    return sql if described is None else f"SELECT sql FROM sqlite_master WHERE name = '{described[1].casefold()}'"  # noqa: S608 - a word


def _plain(name: str) -> str:
    """A name without what programs write differently: ``all-gather``, ``all_gather``, ``AllGather``."""
    return _SIGNS.sub("", name).casefold()


def _with_cores(sql: str, cores: Collection[str]) -> str:
    """The query with cores by their one name where it has another, `core = 'TPU:2'`, that one core alone can have."""

    def as_known(found: re.Match[str]) -> str:
        named = None if found["name"] in cores else core_named(found["name"])
        if named is None or not named.core:
            return found[0]
        meant = [core for core in cores if core.startswith(named.host) and core.endswith(f":{named.core}")]
        return f"{found['before']}'{meant[0]}'" if len(meant) == 1 and "'" not in meant[0] else found[0]

    return _CORE.sub(as_known, sql)


def _fill(
    database: Database, needed: Mapping[str, Collection[str]], profile: Profile, asked: EventsAsked
) -> tuple[str, ...]:
    """Reads columns of the profile's tables, at least one of each table; what there is to warn of."""
    warnings = dict[str, None]()
    for table in (BY_NAME[name] for name in sorted(needed)):
        wanted = [column for column in table.columns if column.name in needed[table.name]] or table.columns[:1]
        values, of_table = table.read(table, profile, [column.name for column in wanted], asked)
        database.insert(table.name, wanted, [values[column.name] for column in wanted])
        warnings |= dict.fromkeys(of_table)
    return tuple(each for each in warnings if not any(each != other and each in other for other in warnings))


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names of which no two are alike: the second ``name`` is ``name_1``."""
    made: list[str] = []
    for name in (printable(name).replace(_DIVIDED["/"], "/") for name in names):
        numbered = (f"{name}_{number}" for number in count(1))
        made.append(next(each for each in numbered if each not in made) if name in made else name)
    return tuple(made)


@contextmanager
def _in_words(sql: str, limits: Limits) -> Iterator[None]:
    """Says what SQLite refuses, in a sentence."""
    try:
        yield
    except MemoryError as error:
        raise _too_large(limits) from error
    except _ERRORS as error:
        raise _refused(str(error), sql, limits) from error


def _too_large(limits: Limits) -> ProfileError:
    sentence = f"The query needs more memory than the {limits.memory_bytes / MIB:,.0f} MiB that it may use."
    return ProfileError("too_large", sentence, "--memory-limit MIB, or fewer rows to join", EXIT_USAGE)


def _refused(why: str, sql: str, limits: Limits) -> ProfileError:
    """The error of a query that can't be run or took too much, by SQLite's words, with names that come near."""
    if why == "interrupted":
        sentence = f"The query was stopped after {counted(limits.seconds, 'second')}."
        return ProfileError("too_long", sentence, "--time-limit SECONDS, or fewer rows to join", EXIT_USAGE)
    if "too big" in why or "out of memory" in why:
        return _too_large(limits)
    why = "a function does not take these values: median and the like take numbers" if "user-defined" in why else why
    sentence = f"The query can't be run: {printable(why.splitlines()[0]).rstrip('.!')}."
    hint, known = SCHEMA_HINT, [*dict.fromkeys(column.name for table in _said(sql) for column in table.columns)]
    if (table := _NO_TABLE.search(why)) is not None:
        tables = _MEANT.get(table[1].casefold(), tuple(BY_NAME))
        sentence = f"There is no table {printable(table[1])}."
        hint = nearest_hint(table[1].casefold(), tables, f"one of: {', '.join(tables)}")
    elif (column := _NO_COLUMN.search(why)) is not None and known:
        near = meant_columns(column[1], known)
        hint = f"one of: {', '.join(near)}" if near else nearest_hint(column[1].casefold(), known, SCHEMA_HINT)
    elif (first := _TOP.search(sql)) is not None:
        hint = f"LIMIT {first[1]} at the end in the place of {first[0]}"
    elif sql.startswith("@"):
        hint = f'"$(cat {printable(sql[1:])})" gives what is in the file'
    elif (word := _LACKS.search(sql)) is not None:
        hint = _INSTEAD.get(word[0].casefold(), _WHOLE)
    elif "no such function" in why:
        hint = f"those of SQLite, and {', '.join(name for name, _ in (*_AGGREGATES, *_CHOSEN, *_FUNCTIONS))}"
    return ProfileError("sql", sentence, hint, EXIT_USAGE)


# --- functions that SQLite lacks


class _Numbers:
    """An aggregate of numbers, or of a window of them: `make` makes its value of these and of the second argument."""

    make: Callable[[Any, float], float]

    def __init__(self) -> None:
        self._numbers, self._second = array("d"), 0.0

    def step(self, number: float | None, second: float = 0.0) -> None:
        self._second = second
        if number is not None:
            self._numbers.append(number)

    def inverse(self, number: float | None, *_: float) -> None:
        """Takes out the number that came first."""
        del self._numbers[: number is not None]

    def value(self) -> float | None:
        made = type(self).make(np.array(self._numbers), self._second) if self._numbers else np.nan
        return float(made) if np.isfinite(made) else None

    finalize = value


def _deviation(numbers: Any, _: float = 0.0) -> float:  # noqa: ANN401 - an array of numpy
    return float(np.std(numbers, ddof=1)) if len(numbers) > 1 else np.nan


_AGGREGATES: Mapping[tuple[str, int], Callable[[Any, float], float]] = {
    ("median", 1): lambda numbers, _: float(np.median(numbers)),
    ("quantile_cont", 2): lambda numbers, share: float(np.quantile(numbers, share)),
    ("quantile", 2): lambda numbers, share: float(np.quantile(numbers, share, method="inverted_cdf")),
    ("stddev", 1): _deviation,
    ("stddev_samp", 1): _deviation,
    ("stddev_pop", 1): lambda numbers, _: float(np.std(numbers)),
}


class _Chosen:
    """An aggregate that is one of its values: the first, or that of the row where `sign` times another is largest."""

    sign = 0

    def __init__(self) -> None:
        self._value, self._by = None, None

    def step(self, value: Any, by: Any = 0) -> None:  # noqa: ANN401 - what SQL has
        by = None if by is None or value is None else by * self.sign
        if by is not None and (self._by is None or by > self._by):
            self._value, self._by = value, by

    def finalize(self) -> Any:  # noqa: ANN401 - what SQL has
        return self._value


_CHOSEN = {("any_value", 1): 0, ("arg_max", 2): 1, ("max_by", 2): 1, ("arg_min", 2): -1, ("min_by", 2): -1}


def _extract(text: str, regex: str, number: int = 0) -> str:
    found = re.search(regex, text)
    return (found[number] or "") if found else ""


def _of_known(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is NULL where any of its values is."""
    return lambda *values: None if None in values else make(*values)


def _known(choose: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the values that are not NULL."""
    return lambda *values: choose((value for value in values if value is not None), default=None)


_FUNCTIONS: Mapping[tuple[str, int], Callable[..., Any]] = {
    ("greatest", -1): _known(max),
    ("least", -1): _known(min),
    ("concat", -1): lambda *values: "".join(str(value) for value in values if value is not None),
    ("starts_with", 2): _of_known(str.startswith),
    ("contains", 2): _of_known(str.__contains__),
    ("strpos", 2): _of_known(lambda whole, part: whole.find(part) + 1),
    ("split_part", 3): _of_known(lambda whole, by, at: dict(enumerate(whole.split(by), 1)).get(at, "")),
    ("regexp_matches", 2): _of_known(lambda text, regex: re.search(regex, text) is not None),
    ("regexp_extract", -1): _of_known(_extract),
    ("regexp_replace", 3): _of_known(lambda text, regex, other: re.sub(regex, other, text, count=1)),
}


def _add_functions(connection: sqlite3.Connection) -> None:
    for (name, arguments), function in _FUNCTIONS.items():
        connection.create_function(name, arguments, function, deterministic=True)
    for (name, arguments), sign in _CHOSEN.items():
        connection.create_aggregate(name, arguments, type(name, (_Chosen,), {"sign": sign}))
    create = getattr(connection, "create_window_function", connection.create_aggregate)  # by Python 3.10
    for (name, arguments), make in _AGGREGATES.items():
        create(name, arguments, type(name, (_Numbers,), {"make": staticmethod(make)}))
