"""Runs one SQL query over the tables of a profile, in memory and read-only, on Python's SQLite or on DuckDB.

Tables are created empty first, so that a wrong name is known before anything is read. Then the columns that the query
names are filled. Neither engine may write, open a file or a connection, or load code once it sees the query.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Timer
from typing import Any, Literal, Protocol

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.pages.shared.key import Later
from tpuprof.tui.api.profile import Profile
from tpuprof.tui.api.sql.tables import BY_NAME, EventsAsked, SqlTable
from tpuprof.tui.api.table import Table
from tpuprof.tui.report.choice import nearest_or_first
from tpuprof.tui.report.shared.database import Column

EngineName = Literal["auto", "sqlite", "duckdb"]
"""``auto`` is DuckDB where it is installed, else SQLite."""

GRACE_SECONDS = 5.0
"""How long a query that is told to stop may take to do so."""

SCHEMA_HINT = "tpuprof-tui query --schema lists tables and columns"

MIB = 1 << 20
_SLACK = 256 * MIB
"""Of address space, for threads and what the interpreter takes."""

NO_VALUE = "NULL: the profile does not say, or the query has no value for the row"
_OF_QUERY = "a column of the query"
_UNITS = {
    "VARCHAR": "text",
    "VARCHAR[]": "list of texts",
    "BOOLEAN": "true or false",
    "BIGINT": "count",
    "HUGEINT": "count",
}

_NOTHING = pattern(r"(?:[\s;]|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_NO_TABLE = pattern(r"Table with name (\S+) does not exist|no such table: (\S+)")
_NO_COLUMN = pattern(r"""[Cc]olumn (?:named )?"([^"]+)"|no such column: (?:\w+\.)?(\S+)""")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a query may take: seconds, bytes of memory, rows that it gives (0 for all), and processor cores."""

    seconds: int = 30
    memory_bytes: int = 1 << 30
    rows: int = 1000
    jobs: int = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave.

    Attributes:
        names, types: of its columns, no two names alike; types are DuckDB's.
        rows: Python values, None for NULL.
        has_more: whether there are rows beyond the limit.
        tables: names of the tables that were read.
        warnings: what is wrong with the profile, a sentence each.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    has_more: bool
    tables: tuple[str, ...]
    warnings: tuple[str, ...] = ()


class Engine(Protocol):
    """What answers a query."""

    most_events: int
    """The most events that it reads."""
    more_events: str
    """What reads more of them, empty if nothing does."""
    errors: tuple[type[Exception], ...]
    """The exceptions that it raises."""

    def create(self, name: str, columns: Sequence[Column]) -> None:
        """Creates an empty table."""

    def needed(self, sql: str) -> Mapping[str, Collection[str]]:
        """The tables that a query reads, each with at least the columns that it reads, before any has a row.

        Raises:
            ProfileError: it is not one SELECT; and `errors`.
        """

    def insert(self, name: str, columns: Sequence[Column], values: Sequence[Sequence[Any]]) -> None:
        """Puts rows into a table, as `database.insert`."""

    def run(self, sql: str, most: int) -> tuple[Sequence[str], Sequence[str], Sequence[Sequence[Any]]]:
        """Names and types of the columns of a query that `needed` has seen, and its first rows, 0 for all."""

    def interrupt(self) -> None:
        """Stops the query, from another thread."""

    def close(self) -> None: ...

    def why(self, error: Exception) -> str:
        """What one of its errors says; ``time`` or ``memory`` where that was too long or too much."""


_ENGINES: Mapping[str, Callable[[Limits], Engine]] = {
    "sqlite": Later("tpuprof.tui.api.sql.sqlite:Sqlite"),
    "duckdb": Later("tpuprof.tui.api.sql.duck:Duck"),
}


@contextmanager
def _bounded(engine: Engine, limits: Limits, give_up: Callable[[], object]) -> Iterator[None]:
    """Bounds the time of an engine; on Linux, which can, the memory that the process takes besides what it has.

    Args:
        give_up: called from another thread where the engine works on `GRACE_SECONDS` after it was interrupted.
    """
    timers = [Timer(limits.seconds, engine.interrupt), Timer(limits.seconds + GRACE_SECONDS, give_up)]
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
    sql: str,
    opened: Callable[[], Profile],
    limits: Limits,
    asked: EventsAsked,
    give_up: Callable[[], object] = lambda: None,
    engine: EngineName = "auto",
) -> Answer:
    """Answers a query.

    Args:
        sql: one SELECT.
        opened: opens the profile, once it is known that the query can be run.
        asked: which events the table of events holds.
        give_up: called from another thread where a query does not stop although its time is over.

    Raises:
        ProfileError: `usage`, `sql`, `too_long`, `too_large`, `not_installed` (exit code 2), or what the profile
            raises.
    """
    if _NOTHING.fullmatch(sql):
        raise not_one_select("none")
    name = ("sqlite" if find_spec("duckdb") is None else "duckdb") if engine == "auto" else engine
    with closing(_ENGINES[name](limits)) as made, _in_words(made, sql, limits):
        for table in _said(sql):  # others it can't name
            made.create(table.name, table.columns)
        with _bounded(made, limits, give_up):
            needed = made.needed(sql)
        warnings = _fill(made, needed, opened, asked)
        with _bounded(made, limits, give_up):
            names, types, rows = made.run(sql, limits.rows and limits.rows + 1)
    shown = rows[: limits.rows or None]
    return Answer(_distinct(names), tuple(types), shown, len(shown) < len(rows), tuple(sorted(needed)), warnings)


def table_of(sql: str, profile: Profile, engine: EngineName, most: int, seconds: int) -> Table:
    """The answer of a query as a table of at most so many rows, 0 for all; raises as `query`."""
    answer = query(sql, lambda: profile, Limits(seconds, rows=0), EventsAsked(), engine=engine)
    rows = answer.rows[: most or None]
    values = {name: [row[place] for row in rows] for place, name in enumerate(answer.names)}
    columns = [
        Column(name, _UNITS.get(kind, "number"), _OF_QUERY, NO_VALUE)
        for name, kind in zip(answer.names, answer.types, strict=True)
    ]
    return Table("query", columns, values, len(answer.rows) - len(rows), answer.warnings)


def not_one_select(what: str) -> ProfileError:
    """The error of what is not one SELECT."""
    return ProfileError("usage", f"A query is one SELECT; this is {what}.", "SELECT name FROM ops", EXIT_USAGE)


def whole(tables: Mapping[str, Sequence[Column]]) -> Mapping[str, Collection[str]]:
    """All columns of some tables, where an engine can't say which of them a query reads."""
    return {name: {column.name for column in columns} for name, columns in tables.items()}


def _said(sql: str) -> list[SqlTable]:
    """The tables whose names stand somewhere in a text."""
    words = sql.casefold()
    return [table for table in BY_NAME.values() if table.name in words]


def _fill(
    engine: Engine, needed: Mapping[str, Collection[str]], opened: Callable[[], Profile], asked: EventsAsked
) -> tuple[str, ...]:
    """Reads columns of the profile's tables, at least one of each table; what there is to warn of."""
    profile, warnings = opened() if needed else None, dict[str, None]()
    bounded = replace(asked, most=engine.most_events, more=engine.more_events)
    for table in (BY_NAME[name] for name in sorted(needed)):
        assert profile is not None, "it is opened for the first one"
        wanted = [column for column in table.columns if column.name in needed[table.name]] or table.columns[:1]
        values, of_table = table.read(table, profile, [column.name for column in wanted], bounded)
        engine.insert(table.name, wanted, [values[column.name] for column in wanted])
        warnings |= dict.fromkeys(of_table)
    return tuple(each for each in warnings if not any(each != other and each in other for other in warnings))


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names of which no two are alike: the second ``name`` is ``name_1``."""
    made: list[str] = []
    for name in map(printable, names):
        numbered = (f"{name}_{number}" for number in count(1))
        made.append(next(each for each in numbered if each not in made) if name in made else name)
    return tuple(made)


@contextmanager
def _in_words(engine: Engine, sql: str, limits: Limits) -> Iterator[None]:
    """Says what the engine refuses, in a sentence."""
    try:
        yield
    except MemoryError as error:
        raise _refused("memory", sql, limits) from error
    except engine.errors as error:
        raise _refused(engine.why(error), sql, limits) from error


def _refused(why: str, sql: str, limits: Limits) -> ProfileError:
    """The error of a query that can't be run or took too much, with names that come near."""
    kind, sentence = "sql", f"The query can't be run: {printable(why.splitlines()[0]).rstrip('.!')}."
    hint, known = SCHEMA_HINT, [column.name for table in _said(sql) for column in table.columns]
    if why == "time":
        kind, sentence = "too_long", f"The query was stopped after {counted(limits.seconds, 'second')}."
        hint = "--time-limit SECONDS, or fewer rows to join"
    elif why == "memory":
        most = f"{limits.memory_bytes / MIB:,.0f} MiB"
        kind, sentence = "too_large", f"The query needs more memory than the {most} that it may use."
        hint = "--memory-limit MIB, or fewer rows to join"
    elif (table := _NO_TABLE.search(why)) is not None:
        name = table[table.lastindex or 1]
        sentence, hint = f"There is no table {printable(name)}.", _near(name, list(BY_NAME))
    elif (column := _NO_COLUMN.search(sentence)) is not None and known:
        hint = _near(column[column.lastindex or 1], known)
    elif "no such function" in why:
        hint = "DuckDB has more functions: pip install 'tpuprof-tui[sql]'"
    return ProfileError(kind, sentence, hint, EXIT_USAGE)


def _near(name: str, known: Sequence[str]) -> str:
    return f"one of: {', '.join(nearest_or_first(name.casefold(), list(dict.fromkeys(known))))}"
