"""Python's SQLite as an engine: a callback allows it to read tables and to call functions, and nothing else.

The same SQL has the same answers as on DuckDB: whole numbers divide to fractions, LIKE minds upper and lower case, and
there are the percentiles, deviations and comparisons that SQLite lacks, under DuckDB's names.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from tpuprof.parsers.base.regex import pattern
from tpuprof.tui.api.sql.engine import Limits, not_one_select
from tpuprof.tui.report.shared.database import Column, SqlType, as_text, quoted

_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_FORBIDDEN = ("load_extension", "fts3_tokenizer")
_MOST_PATTERN = 200
"""Characters of a pattern of LIKE: what a longer one may cost grows without a bound."""

_DECLARED: Mapping[SqlType, str] = {
    "VARCHAR": "TEXT",
    "VARCHAR[]": "LIST_TEXT",
    "BOOLEAN": "FLAG",
    "BIGINT": "INTEGER",
    "UBIGINT": "ID_TEXT",
    "DOUBLE": "REAL",
}
"""Declared types, by which lists, flags and ids of 64 bits, which no INTEGER holds, come back as they went in."""

_STORED: Mapping[SqlType, Callable[[Any], Any]] = {
    "VARCHAR": as_text,
    "VARCHAR[]": lambda values: json.dumps(list(map(as_text, values)), ensure_ascii=False),
    "BOOLEAN": bool,
    "BIGINT": int,
    "UBIGINT": str,
    "DOUBLE": float,
}
_TYPES: Mapping[frozenset[type], str] = {
    frozenset((bool,)): "BOOLEAN",
    frozenset((int,)): "BIGINT",
    frozenset((float,)): "DOUBLE",
    frozenset((int, float)): "DOUBLE",
    frozenset((list,)): "VARCHAR[]",
}
for _name, _converted in (("LIST_TEXT", json.loads), ("FLAG", lambda value: value != b"0"), ("ID_TEXT", int)):
    sqlite3.register_converter(_name, _converted)

_DIVISION = pattern(r"""(?s)'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|$)|//|/""")
_DIVIDED = {"/": "*1.0/", "//": "/"}


class Sqlite:
    """A database in memory; see `engine.Engine`."""

    most_events, more_events = 2_000_000, "pip install 'tpuprof-tui[sql]', with which it reads 5,000,000"
    errors: tuple[type[Exception], ...] = (sqlite3.Error, sqlite3.Warning)

    def __init__(self, limits: Limits) -> None:
        of_tables = sqlite3.PARSE_DECLTYPES
        made = sqlite3.connect(":memory:", isolation_level=None, detect_types=of_tables, check_same_thread=False)
        made.executescript("PRAGMA case_sensitive_like = ON; PRAGMA temp_store = MEMORY")
        if sys.platform != "linux":  # which bounds the process; this bound holds for it as long as it lives
            made.execute(f"PRAGMA hard_heap_limit = {limits.memory_bytes:d}")
        if sys.version_info >= (3, 11):
            made.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(limits.memory_bytes, 1_000_000_000))
            made.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MOST_PATTERN)
        if sys.version_info >= (3, 12):  # a wrong name in double quotes is no text
            made.setconfig(sqlite3.SQLITE_DBCONFIG_DQS_DML, False)
        _add_functions(made)
        self._connection, self._statement = made, ""
        self._declared: dict[str, SqlType] = {}
        self._reads: dict[str, set[str]] = {}
        self._is_select = False
        self.interrupt, self.close = made.interrupt, made.close

    def create(self, name: str, columns: Sequence[Column]) -> None:
        made = ", ".join(f"{quoted(column.name)} {_DECLARED[column.type]}" for column in columns)
        self._connection.execute(f"CREATE TABLE {quoted(name)} ({made})")
        self._declared |= {column.name: column.type for column in columns}

    def needed(self, sql: str, is_explained: bool) -> Mapping[str, Collection[str]]:
        """See `engine.Engine`. The callback hears of all columns but those of NATURAL, which the program reads too."""
        sql = _DIVISION.sub(lambda found: _DIVIDED.get(found[0], found[0]), sql)
        tables = self._connection.execute("SELECT rootpage, name FROM sqlite_master").fetchall()
        names = {page: (name, self._names(name)) for page, name in tables}
        self._connection.set_authorizer(self._authorized)
        self._statement = f"EXPLAIN QUERY PLAN {sql}" if is_explained else sql
        try:
            program = self._connection.execute(f"EXPLAIN {sql}").fetchall()
        except (sqlite3.Error, sqlite3.Warning) as error:
            if "one statement at a time" in str(error):
                raise not_one_select("several statements") from error
            if "not authorized" in str(error):
                raise not_one_select("EXPLAIN of another statement" if is_explained else "another statement") from error
            raise
        if not self._is_select:
            raise not_one_select("another statement")
        opened = {cursor: names[page] for _, name, cursor, page, *_ in program if name == "OpenRead" and page in names}
        for table, _ in opened.values():
            self._reads.setdefault(table, set())
        for _, name, cursor, place, *_ in program:
            if name == "Column" and cursor in opened:
                table, columns = opened[cursor]
                self._reads[table].add(columns[place])
        return self._reads

    def _names(self, table: str) -> list[str]:
        return [row[1] for row in self._connection.execute(f"PRAGMA table_info({quoted(table)})")]

    def _authorized(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        """Whether a query may do something; keeps the columns that it reads."""
        self._is_select |= action == sqlite3.SQLITE_SELECT
        if action == sqlite3.SQLITE_READ and first is not None and not first.startswith("sqlite_"):
            self._reads.setdefault(first, set()).add(second or "")
        is_allowed = action in _ALLOWED and second not in _FORBIDDEN
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    def insert(self, name: str, columns: Sequence[Column], values: Sequence[Sequence[Any]]) -> None:
        self._connection.set_authorizer(None)
        stored = [
            [None if value is None else _STORED[column.type](value) for value in of_column]
            for column, of_column in zip(columns, values, strict=True)
        ]
        names, places = ", ".join(quoted(column.name) for column in columns), ", ".join("?" * len(columns))
        sql = f"INSERT INTO {quoted(name)} ({names}) VALUES ({places})"  # noqa: S608 - names of ours
        self._connection.execute("BEGIN")
        self._connection.executemany(sql, zip(*stored, strict=True))
        self._connection.execute("COMMIT")
        self._connection.set_authorizer(self._authorized)

    def run(self, most: int) -> tuple[Sequence[str], Sequence[str], Sequence[Sequence[Any]]]:
        cursor = self._connection.execute(self._statement)
        rows = list(islice(cursor, most or None))
        names = [str(column[0]) for column in cursor.description]
        types = [self._type(name, [row[place] for row in rows]) for place, name in enumerate(names)]
        return names, types, rows

    def _type(self, name: str, values: Sequence[Any]) -> str:
        """DuckDB's name for what a column of an answer holds; where all of it is NULL, that of the table's column."""
        kinds = frozenset(type(value) for value in values if value is not None)
        found = _TYPES.get(kinds, "VARCHAR")
        declared = self._declared.get(name, found)
        return declared if not kinds or (found, declared) == ("BIGINT", "UBIGINT") else found

    def why(self, error: Exception) -> str:
        words = str(error)
        if words == "interrupted":
            return "time"
        if "user-defined" in words:
            return "median, quantile_cont and the like take numbers"
        return "memory" if "too big" in words or "out of memory" in words else words


# --- functions that SQLite lacks


class _Numbers:
    """An aggregate of numbers, or of a window of them: `make` makes its value of these and of the second argument."""

    make: Callable[[Any, float], float]

    def __init__(self) -> None:
        self._numbers, self._first, self._second = array("d"), 0, 0.0

    def step(self, number: float | None, second: float = 0.0) -> None:
        if number is not None:
            self._numbers.append(number)
        self._second = second

    def inverse(self, number: float | None, *_: float) -> None:
        """Takes out the number that came first."""
        self._first += number is not None

    def value(self) -> float | None:
        numbers = np.array(self._numbers)[self._first :]
        made = type(self).make(numbers, self._second) if len(numbers) else np.nan
        return float(made) if np.isfinite(made) else None

    finalize = value


def _deviation(numbers: Any, of_all: int) -> float:  # noqa: ANN401 - an array of numpy
    return float(np.std(numbers, ddof=1 - of_all)) if len(numbers) > 1 or of_all else np.nan


_AGGREGATES: Mapping[tuple[str, int], Callable[[Any, float], float]] = {
    ("median", 1): lambda numbers, _: float(np.median(numbers)),
    ("quantile_cont", 2): lambda numbers, share: float(np.quantile(numbers, share)),
    ("stddev", 1): lambda numbers, _: _deviation(numbers, 0),
    ("stddev_samp", 1): lambda numbers, _: _deviation(numbers, 0),
    ("stddev_pop", 1): lambda numbers, _: _deviation(numbers, 1),
}


def _known(choose: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the values that are not NULL."""
    return lambda *values: choose((value for value in values if value is not None), default=None)


_FUNCTIONS: Mapping[tuple[str, int], Callable[..., Any]] = {
    ("greatest", -1): _known(max),
    ("least", -1): _known(min),
    ("starts_with", 2): lambda whole, part: None if None in (whole, part) else whole.startswith(part),
    ("contains", 2): lambda whole, part: None if None in (whole, part) else part in whole,
}


def _add_functions(connection: sqlite3.Connection) -> None:
    for (name, arguments), function in _FUNCTIONS.items():
        connection.create_function(name, arguments, function, deterministic=True)
    for (name, arguments), make in _AGGREGATES.items():
        made = type(name, (_Numbers,), {"make": staticmethod(make)})
        if sys.version_info >= (3, 11):
            connection.create_window_function(name, arguments, made)
        else:
            connection.create_aggregate(name, arguments, made)
