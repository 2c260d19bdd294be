"""DuckDB as an engine: it may open no file, load no extension and see no variable of Python."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

from tpuprof.tui.api.sql.engine import MIB, Limits, not_one_select, whole
from tpuprof.tui.api.sql.sqlite import Sqlite
from tpuprof.tui.report.shared.database import Column, create, insert
from tpuprof.tui.report.shared.optional import package

_LOCKED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
_AS_SQLITE = {
    "default_null_order": "'nulls_first_on_asc_last_on_desc'",
    "ieee_floating_point_ops": "false",
    "error_on_division_by_zero": "false",
}
"""NULL is the least value, and a division by zero is NULL; not every version has each of these."""


class Duck:
    """A database in memory, whose configuration is locked before it sees a query; see `engine.Engine`.

    Raises:
        ProfileError: DuckDB is not installed.
    """

    most_events, more_events = 5_000_000, ""

    def __init__(self, limits: Limits) -> None:
        duckdb = package("duckdb")
        memory = {"threads": str(limits.jobs), "memory_limit": f"{max(limits.memory_bytes // MIB, 1)}MiB"}
        self._duckdb, self._limits = duckdb, limits
        self._connection = duckdb.connect(":memory:", config={**_LOCKED, **memory})
        for name, value in _AS_SQLITE.items():
            with suppress(duckdb.Error):
                self._connection.execute(f"SET {name}={value}")
        self._connection.execute("SET enable_progress_bar=false; SET lock_configuration=true")
        self._tables: dict[str, Sequence[Column]] = {}
        self.errors: tuple[type[Exception], ...] = (duckdb.Error,)
        self.interrupt, self.close = self._connection.interrupt, self._connection.close

    def create(self, name: str, columns: Sequence[Column]) -> None:
        self._tables[name] = columns
        create(self._connection, name, {column.name: column.type for column in columns})

    def needed(self, sql: str) -> Mapping[str, Collection[str]]:
        """See `engine.Engine`: what SQLite says; of what SQLite does not know, all of the tables."""
        found = self._connection.extract_statements(sql)
        if len(found) != 1 or found[0].type.name != "SELECT":
            raise not_one_select("another statement" if len(found) == 1 else "several statements")
        self._connection.execute(f"EXPLAIN {sql}")
        with closing(Sqlite(self._limits)) as other, suppress(*other.errors):
            for name, columns in self._tables.items():
                other.create(name, columns)
            return other.needed(sql)
        return whole(self._tables)

    def insert(self, name: str, columns: Sequence[Column], values: Sequence[Sequence[Any]]) -> None:
        insert(self._connection, name, {column.name: column.type for column in columns}, values)

    def run(self, sql: str, most: int) -> tuple[Sequence[str], Sequence[str], Sequence[Sequence[Any]]]:
        self._connection.execute("BEGIN TRANSACTION READ ONLY")
        self._connection.execute(sql)
        names, types = ([str(column[at]) for column in self._connection.description] for at in (0, 1))
        return names, types, self._connection.fetchmany(most) if most else self._connection.fetchall()

    def why(self, error: Exception) -> str:
        if isinstance(error, self._duckdb.InterruptException):
            return "time"
        words = str(error)
        return "memory" if isinstance(error, self._duckdb.OutOfMemoryException) else words.partition(": ")[2] or words
