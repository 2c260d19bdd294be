"""How answers are read out of JSON."""

from __future__ import annotations

from collections.abc import Callable

from tests.parity.exam.judging import Reply, Value

Read = Callable[[Reply], Value | None]


def at(*path: str | int) -> Read:
    """Reads what stands at these keys; None where nothing does."""

    def read(reply: Reply) -> Value | None:
        value = reply.data
        for key in path:
            if value is None or (isinstance(value, list) and not value):
                return None
            value = value.get(key) if isinstance(value, dict) else value[key]
        found: Value | None = value
        return found

    return read


def of_row(column: str, rows: str = "rows") -> Read:
    """Reads a column of the first row."""
    return at(rows, 0, column)


def share_at(*path: str | int) -> Read:
    """Reads a percentage as a share of 1."""

    def read(reply: Reply) -> Value | None:
        value = at(*path)(reply)
        return float(value) / 100 if isinstance(value, int | float) else None

    return read


def in_total(column: str, rows: str = "rows") -> Read:
    """Reads the sum of a column; None without rows."""
    return lambda reply: sum(row[column] for row in reply.data[rows]) if reply.data[rows] else None
