"""The types of columns in numpy, Arrow and Polars: the type of the unit where it holds every value.

So a column in which nothing is known has its type too. Objects are their JSON as text, as in Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.tui.report.shared.database import SqlType, as_text

ARROW: Mapping[SqlType, Callable[[Any], Any]] = {
    "VARCHAR": lambda arrow: arrow.string(),
    "VARCHAR[]": lambda arrow: arrow.list_(arrow.string()),
    "BOOLEAN": lambda arrow: arrow.bool_(),
    "BIGINT": lambda arrow: arrow.int64(),
    "UBIGINT": lambda arrow: arrow.uint64(),
    "DOUBLE": lambda arrow: arrow.float64(),
}
POLARS: Mapping[SqlType, Callable[[Any], Any]] = {
    "VARCHAR": lambda polars: polars.String,
    "VARCHAR[]": lambda polars: polars.List(polars.String),
    "BOOLEAN": lambda polars: polars.Boolean,
    "BIGINT": lambda polars: polars.Int64,
    "UBIGINT": lambda polars: polars.UInt64,
    "DOUBLE": lambda polars: polars.Float64,
}
"""Each type in PyArrow and in Polars, given the package."""

_LARGEST_EXACT = 2**53
_INT64, _UINT64 = np.iinfo(np.int64), np.iinfo(np.uint64)


def fitting_type(values: Sequence[Any], of_unit: SqlType | None) -> SqlType:
    """The type that loses nothing of some values: the type of their unit, or one that fits them.

    Args:
        values: None where unknown.
        of_unit: None where they have no unit.
    """
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return of_unit or "VARCHAR"
    if kinds <= {int, float}:
        return _of_numbers(values, float in kinds, of_unit)
    if kinds <= {list, tuple} and (of_unit == "VARCHAR[]" or all(type(i) is str for v in values for i in v or ())):
        return "VARCHAR[]"
    return "BOOLEAN" if kinds == {bool} else "VARCHAR"


def _of_numbers(values: Sequence[Any], has_floats: bool, of_unit: SqlType | None) -> SqlType:
    whole = [value for value in values if type(value) is int]
    low, high = min(whole, default=0), max(whole, default=0)
    if has_floats or (of_unit == "DOUBLE" and max(-low, high) <= _LARGEST_EXACT):
        return "DOUBLE"
    if low >= 0 and (of_unit == "UBIGINT" or high > _INT64.max):
        return "UBIGINT" if high <= _UINT64.max else "VARCHAR"
    return "BIGINT" if _INT64.min <= low and high <= _INT64.max else "VARCHAR"


def stored(values: Sequence[Any], kind: SqlType) -> list[Any]:
    """Values as a data frame of a type takes them: texts fit to print, floats of whole numbers, None where unknown."""
    if kind == "VARCHAR":
        return [None if value is None else as_text(value) for value in values]
    if kind == "VARCHAR[]":
        return [None if value is None else [as_text(item) for item in value] for value in values]
    return [None if value is None else float(value) for value in values] if kind == "DOUBLE" else list(values)


def as_array(values: Sequence[Any], of_unit: SqlType | None = None) -> NDArray[Any]:
    """A column as numpy has it; see `tpuprof.Table`."""
    kind, is_known = fitting_type(values, of_unit), None not in values
    if is_known and kind in ("BOOLEAN", "BIGINT", "UBIGINT"):
        return np.array(values, {"BOOLEAN": np.bool_, "BIGINT": np.int64}.get(kind, np.uint64))
    largest = max((abs(value) for value in values if type(value) is int), default=0)
    if kind in ("BIGINT", "UBIGINT", "DOUBLE") and largest <= _LARGEST_EXACT:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    made = np.empty(len(values), object)
    for row, value in enumerate(values):  # one by one: numpy would take lists for rows
        made[row] = value
    return made
