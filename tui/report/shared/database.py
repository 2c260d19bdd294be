"""Columns of tables in SQL: the types that units have there, by DuckDB's names, and how rows get into DuckDB.

A type follows from the unit alone, so that a table has the same columns for every profile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.tui.report.fields import Field

SqlType = Literal["VARCHAR", "VARCHAR[]", "BOOLEAN", "BIGINT", "UBIGINT", "DOUBLE"]

_BY_UNIT: Mapping[str, SqlType] = {
    **dict.fromkeys(("count", "ps", "bytes"), "BIGINT"),
    **dict.fromkeys(("list of texts", "list of problems"), "VARCHAR[]"),
    **dict.fromkeys(("list of objects", "objects", "object", "bytes by name"), "VARCHAR"),
    "true or false": "BOOLEAN",
}
_BY_KEY: Mapping[str, SqlType] = {
    "program_id": "UBIGINT",
    **dict.fromkeys(("depth", "born", "dies", "logical_buffer"), "BIGINT"),
    **dict.fromkeys(("average_time_ps", "average_self_time_ps", "flops", "model_flops"), "DOUBLE"),
    **dict.fromkeys(("bytes_accessed", "hbm_bytes", "step_time_ps"), "DOUBLE"),
}
"""Of numbers without a unit; and means, and amounts of work that are stored as doubles."""

_APART = "\x1f"  # between the texts of a list; no text has it once it is fit to print


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column of a table in SQL.

    Attributes:
        name: its key with underscores for dots.
        type: of its values there.
        unit, meaning, unknown_when: as of a `Field`; what is unknown is NULL.
    """

    name: str
    type: SqlType
    unit: str
    meaning: str
    unknown_when: str = ""


def sql_type(key: str, unit: str) -> SqlType:
    """The type of a quantity, by its key and the name of its unit."""
    return "VARCHAR" if unit == "text" else _BY_KEY.get(key, _BY_UNIT.get(unit, "DOUBLE"))


def sql_column(field: Field[Any]) -> SqlColumn:
    """The column of a quantity."""
    kind = sql_type(field.key, field.unit.name)
    return SqlColumn(field.key.replace(".", "_"), kind, field.unit.name, field.meaning, field.null)


def is_plain(field: Field[Any]) -> bool:
    """Whether a quantity is one value, and not objects."""
    return not field.unit.parts and "object" not in field.unit.name


def fitting(column: SqlColumn, values: Sequence[Any]) -> SqlColumn:
    """The column with a type that loses nothing of some values, where that of its unit would."""
    kinds = {type(value) for value in values if value is not None}
    if column.type in ("BIGINT", "UBIGINT", "DOUBLE") and not kinds <= {int, float, bool}:
        return replace(column, type="VARCHAR")
    if column.type in ("BIGINT", "UBIGINT") and float in kinds:
        is_whole = all(type(value) is not float or value.is_integer() for value in values)
        return column if is_whole else replace(column, type="DOUBLE")
    return column


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def create(connection: Any, name: str, columns: Sequence[SqlColumn]) -> None:  # noqa: ANN401 - DuckDB's
    """Creates an empty table."""
    made = ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)
    connection.execute(f"CREATE TABLE {quoted(name)} ({made})")


def insert(connection: Any, name: str, columns: Sequence[SqlColumn], values: Sequence[Sequence[Any]]) -> None:  # noqa: ANN401
    """Puts rows into some columns of a table.

    Args:
        values: of each column, as JSON has them; None where unknown.
    """
    arrays: dict[str, NDArray[Any]] = {}
    parts = []
    for number, (column, of_column) in enumerate(zip(columns, values, strict=True)):
        value, known = f"v{number}", f"k{number}"
        stored, expression = _STORED[column.type]
        arrays[value] = stored(of_column)
        arrays[known] = np.array([each is not None for each in of_column], np.bool_)
        parts.append(f"CASE WHEN {known} THEN {expression.format(value)} END")
    connection.register("given", arrays)
    names = ", ".join(quoted(column.name) for column in columns)
    connection.execute(f"INSERT INTO {quoted(name)} ({names}) SELECT {', '.join(parts)} FROM given")  # noqa: S608 - names of ours
    connection.unregister("given")


def _numbers(kind: type[np.generic]) -> Callable[[Sequence[Any]], NDArray[Any]]:
    return lambda values: np.array([0 if value is None else value for value in values], kind)


def _texts(values: Sequence[Any]) -> NDArray[Any]:
    return _objects(["" if value is None else as_text(value) for value in values])


def _lists(values: Sequence[Any]) -> NDArray[Any]:
    return _objects([_APART.join(map(as_text, value or ())) for value in values])


def as_text(value: object) -> str:
    """Text fit to print, as in JSON; of objects their JSON."""
    if isinstance(value, Problem):
        value = value.sentence
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def _objects(values: Sequence[str]) -> NDArray[Any]:
    made = np.empty(len(values), object)
    made[:] = values
    return made


_STORED: Mapping[SqlType, tuple[Callable[[Sequence[Any]], NDArray[Any]], str]] = {
    "VARCHAR": (_texts, "{}"),
    "VARCHAR[]": (_lists, f"CASE WHEN {{0}} = '' THEN [] ELSE string_split({{0}}, '{_APART}') END"),
    "BOOLEAN": (_numbers(np.bool_), "{}"),
    "BIGINT": (_numbers(np.int64), "{}"),
    "UBIGINT": (_numbers(np.uint64), "{}"),
    "DOUBLE": (_numbers(np.float64), "{}"),
}
"""How values of each type go in: an array, and what of it is the value in SQL."""
