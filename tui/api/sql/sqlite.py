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
from tpuprof.tui.api.sql.engine import Limits, not_one_select, whole
from tpuprof.tui.report.shared.database import Column, SqlType, as_text, quoted

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
_TYPES: Mapping[type, str] = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", list: "VARCHAR[]"}

_DIVISION = pattern(r"""(?s)'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|$)|//|/""")
_DIVIDED = {"/": "*1.0/", "//": "/"}
_JOINED = pattern(r"(?i)natural|using")
"""Joins whose tables and columns the callback does not hear of."""

_OTHERS = {
    "not authorized": "another statement",
    "You can only execute one statement at a time.": "several statements",
}


def _divided(sql: str) -> str:
    """The query with DuckDB's two divisions."""
    return _DIVISION.sub(lambda found: _DIVIDED.get(found[0], found[0]), sql)


class Sqlite:
    """A database in memory; see `engine.Engine`."""

    most_events, more_events = 2_000_000, "pip install 'tpuprof-tui[sql]', with which it reads 5,000,000"
    errors: tuple[type[Exception], ...] = (sqlite3.Error, sqlite3.Warning)

    def __init__(self, _: Limits) -> None:
        made = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES, check_same_thread=False)
        made.executescript("PRAGMA case_sensitive_like = ON; PRAGMA temp_store = MEMORY")
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
        made = ", ".join(f"{quoted(column.name)} {_STORED[column.type][0]}" for column in columns)
        self._connection.execute(f"CREATE TABLE {quoted(name)} ({made})")
        self._tables[name] = columns

    def needed(self, sql: str) -> Mapping[str, Collection[str]]:
        self._is_query = True
        try:
            self._connection.execute(f"EXPLAIN {_divided(sql)}")
        except self.errors as error:
            if (what := _OTHERS.get(str(error))) is not None:
                raise not_one_select(what) from error
            raise
        if not self._is_select:
            raise not_one_select("another statement")
        self._is_query = False
        return whole(self._tables) if _JOINED.search(sql) else self._reads

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
        names, places = ", ".join(quoted(column.name) for column in columns), ", ".join("?" * len(columns))
        stored = [
            [None if value is None else _STORED[column.type][1](value) for value in of_column]
            for column, of_column in zip(columns, values, strict=True)
        ]
        sql = f"INSERT INTO {quoted(name)} ({names}) VALUES ({places})"  # noqa: S608 - names of ours
        self._connection.executemany(sql, zip(*stored, strict=True))

    def run(self, sql: str, most: int) -> tuple[Sequence[str], Sequence[str], Sequence[Sequence[Any]]]:
        self._is_query = True
        cursor = self._connection.execute(_divided(sql))
        rows = list(islice(cursor, most or None))
        names = [str(column[0]) for column in cursor.description]
        types = [self._type(name, [row[place] for row in rows]) for place, name in enumerate(names)]
        return names, types, rows

    def _type(self, name: str, values: Sequence[Any]) -> str:
        """DuckDB's name for what a column of an answer holds; where all of it is NULL, that of the table's column."""
        found = {_TYPES.get(type(value), "VARCHAR") for value in values if value is not None}
        of_tables = {column.name: column.type for columns in self._tables.values() for column in columns}
        declared = of_tables.get(name, "VARCHAR")
        if not found or (found, declared) == ({"BIGINT"}, "UBIGINT"):
            return declared
        return "DOUBLE" if found == {"BIGINT", "DOUBLE"} else found.pop() if len(found) == 1 else "VARCHAR"

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
    ("stddev", 1): _deviation,
    ("stddev_samp", 1): _deviation,
    ("stddev_pop", 1): lambda numbers, _: float(np.std(numbers)),
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
    create = getattr(connection, "create_window_function", connection.create_aggregate)  # by Python 3.10
    for (name, arguments), make in _AGGREGATES.items():
        create(name, arguments, type(name, (_Numbers,), {"make": staticmethod(make)}))
