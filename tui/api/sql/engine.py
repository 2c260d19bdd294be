"""Runs one SQL query over the tables of a profile, in memory and read-only.

DuckDB may open no file, load no extension and see no variable of Python; its configuration is locked before it sees the
query. Tables are created empty first, so that a wrong name is known before anything is read; then those that the query
names are filled.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, printable
from tpuprof.tui.api.profile import Profile
from tpuprof.tui.api.sql.tables import BY_NAME, EventsAsked, SqlTable
from tpuprof.tui.report.choice import nearest_or_first
from tpuprof.tui.report.shared.database import create, insert
from tpuprof.tui.report.shared.optional import package

GRACE_SECONDS = 5.0
"""How long a query that is told to stop may take to do so."""

_MIB = 1 << 20
_SLACK = 256 * _MIB
"""Of address space, for threads and what the interpreter takes."""


@contextlib.contextmanager
def within(seconds: float, interrupt: Callable[[], object], give_up: Callable[[], object]) -> Iterator[None]:
    """Interrupts what runs inside after some time; gives up where that does not help.

    Args:
        interrupt: called from another thread once the time is over.
        give_up: called from another thread where the work goes on after `GRACE_SECONDS` more.
    """
    timers = [threading.Timer(seconds, interrupt), threading.Timer(seconds + GRACE_SECONDS, give_up)]
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()


@contextlib.contextmanager
def in_memory(most_bytes: int) -> Iterator[None]:
    """Lets the process take so much more memory than it has, where the system can bound that."""
    try:
        resource = import_module("resource")  # not on every system
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
    except (ImportError, OSError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + most_bytes + _SLACK
    bounds = [bound for bound in (soft, hard, most) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(bounds), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


SCHEMA_HINT = "tpuprof-tui query --schema lists tables and columns"

_LOCKED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
_SPACE = r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*"
_EXPLAIN = re.compile(rf"{_SPACE}explain\b{_SPACE}(?:analy[sz]e\b{_SPACE})?(?:\([^()]*\))?", re.IGNORECASE)
_PRAGMA = re.compile(rf"{_SPACE}pragma\b", re.IGNORECASE)
"""What some versions of DuckDB count among the statements that read."""

_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")
_NO_COLUMN = re.compile(r'[Cc]olumn (?:named )?"([^"]+)"')


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


def query(
    sql: str,
    opened: Callable[[], Profile],
    limits: Limits,
    asked: EventsAsked,
    give_up: Callable[[], object] = lambda: None,
) -> Answer:
    """Answers a query.

    Args:
        sql: one SELECT, or EXPLAIN of one.
        opened: opens the profile, once it is known that the query can be run.
        asked: which events the table of events holds.
        give_up: called from another thread where a query does not stop although its time is over.

    Raises:
        ProfileError: `usage`, `sql`, `too_long`, `too_large` (exit code 2), or what the profile raises.
    """
    duckdb = package("duckdb")
    settings = {**_LOCKED, "threads": str(limits.jobs), "memory_limit": f"{max(limits.memory_bytes // _MIB, 1)}MiB"}
    with _in_words(duckdb, sql, limits), duckdb.connect(":memory:", config=settings) as connection:
        connection.execute("SET enable_progress_bar=false; SET lock_configuration=true")
        statement, select = _only_statement(connection, sql)
        for table in _said(sql) or BY_NAME.values():  # others it can't name
            create(connection, table.name, table.columns)
        with within(limits.seconds, connection.interrupt, give_up), in_memory(limits.memory_bytes):
            names = tuple(sorted(name.casefold() for name in connection.get_table_names(select)))
            connection.execute(f"EXPLAIN {select}")
        warnings = _fill(connection, names, opened, asked)
        with within(limits.seconds, connection.interrupt, give_up), in_memory(limits.memory_bytes):
            connection.execute("BEGIN TRANSACTION READ ONLY")
            connection.execute(statement)
            described = connection.description
            rows = connection.fetchmany(limits.rows + 1) if limits.rows else connection.fetchall()
    shown = rows[: limits.rows] if limits.rows else rows
    return Answer(
        _distinct([str(column[0]) for column in described]),
        tuple(str(column[1]) for column in described),
        shown,
        len(shown) < len(rows),
        names,
        warnings,
    )


def _said(sql: str) -> list[SqlTable]:
    """The tables whose names stand somewhere in a text."""
    words = sql.casefold()
    return [table for table in BY_NAME.values() if table.name in words]


def _fill(connection: Any, names: Sequence[str], opened: Callable[[], Profile], asked: EventsAsked) -> tuple[str, ...]:  # noqa: ANN401 - DuckDB's
    """Reads tables of the profile; what there is to warn of."""
    profile, warnings = opened() if names else None, dict[str, None]()
    for table in (BY_NAME[name] for name in names):
        assert profile is not None, "it is opened for the first one"
        rows = table.read(table, profile, asked)
        insert(connection, table.name, table.columns, rows.values)
        warnings |= dict.fromkeys(rows.warnings)
    return tuple(each for each in warnings if not any(each != other and each in other for other in warnings))


def _only_statement(connection: Any, sql: str) -> tuple[Any, str]:  # noqa: ANN401 - DuckDB's
    """The statement, and the SELECT that it is or explains."""
    statements = connection.extract_statements(sql)
    select, explained = sql, ""
    if len(statements) == 1 and statements[0].type.name == "EXPLAIN" and (explain := _EXPLAIN.match(sql)):
        select, explained = sql[explain.end() :], "EXPLAIN of "
    of_select = connection.extract_statements(select) if explained else statements
    if len(of_select) == 1 and of_select[0].type.name == "SELECT" and not _PRAGMA.match(select):
        return statements[0], of_select[0].query
    what = "several statements" if len(statements) > 1 else f"{explained}another statement" if statements else "none"
    raise ProfileError("usage", f"A query is one SELECT; this is {what}.", "SELECT name FROM ops", EXIT_USAGE)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names of which no two are alike: the second ``name`` is ``name_1``."""
    made: list[str] = []
    for name in map(printable, names):
        number, distinct = 0, name
        while distinct in made:
            number += 1
            distinct = f"{name}_{number}"
        made.append(distinct)
    return tuple(made)


@contextmanager
def _in_words(duckdb: Any, sql: str, limits: Limits) -> Iterator[None]:  # noqa: ANN401 - the module
    """Says what DuckDB refuses, in a sentence."""
    try:
        yield
    except duckdb.InterruptException as error:
        sentence = f"The query was stopped after {counted(limits.seconds, 'second')}."
        raise ProfileError("too_long", sentence, "--time-limit SECONDS, or fewer rows to join", EXIT_USAGE) from error
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        sentence = f"The query needs more memory than the {limits.memory_bytes / _MIB:,.0f} MiB that it may use."
        raise ProfileError("too_large", sentence, "--memory-limit MIB, or fewer rows to join", EXIT_USAGE) from error
    except duckdb.Error as error:
        raise _refused(sql, str(error)) from error


def _refused(sql: str, words: str) -> ProfileError:
    """What DuckDB says of a query, with names that come near."""
    first, hint = printable(words.splitlines()[0]), SCHEMA_HINT
    if (table := _NO_TABLE.search(words)) is not None:
        near = ", ".join(nearest_or_first(table[1].casefold(), list(BY_NAME)))
        return ProfileError("sql", f"There is no table {printable(table[1])}.", f"one of: {near}", EXIT_USAGE)
    if (column := _NO_COLUMN.search(first)) is not None:
        known = dict.fromkeys(each.name for of in _said(sql) for each in of.columns)
        hint = f"one of: {', '.join(nearest_or_first(column[1].casefold(), list(known)))}" if known else hint
    said = first.partition(": ")[2] or first
    return ProfileError("sql", f"The query can't be run: {said.rstrip('.!')}.", hint, EXIT_USAGE)
