"""A table of a page as columns: numpy arrays by key, and data frames where their packages are installed."""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.ops.filtering.field_term import meant_columns
from tpuprof.tui.api.arguments import Guiding
from tpuprof.tui.draw.format import UNKNOWN
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import Column as Drawn
from tpuprof.tui.draw.table import chosen_columns, first_rows
from tpuprof.tui.report.choice import nearest_or_first, text_column
from tpuprof.tui.report.fields import records
from tpuprof.tui.report.page import TextLook
from tpuprof.tui.report.shared.columns import (
    NUMBERS,
    TYPES,
    Column,
    SqlType,
    arrow_table,
    fitting_type,
    package,
    stored,
)
from tpuprof.tui.report.text import titled_text
from tpuprof.tui.report.units import LARGEST_EXACT

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_MOST_SHOWN, _MOST_IN_TEXT = 50, 10
"""Rows of a notebook's table, and of a text."""

_OF_PANDAS = ("head", "tail", "sort_values", "groupby", "merge", "nlargest", "describe", "loc", "iloc", "plot")

LOOK = TextLook(110, ascii_only=False, color=False)
"""How text looks that Python asks for."""


class Table(Guiding):
    """Rows of a page's table, by column.

    ``table["self_time_ps"]`` is a numpy array with an entry a row: numbers are int64, uint64 or float64, unknown ones
    NaN; flags are bool; texts, lists and other values are objects, None where unknown. ``len(table)`` is the number of
    rows, and iterating gives them: tuples whose values are attributes too, ``row.self_time_ps``, with an underscore for
    a dot, None where unknown.

    ``pl.DataFrame(table)``, ``pa.table(table)`` and, with PyArrow, a query of DuckDB take a table as it is. So does
    ``pd.DataFrame(table)``, row by row: `to_pandas` is faster, and keeps the columns of a table without rows.
    ``pl.from_arrow`` makes a Series of objects of anything but a ``pa.Table``: `to_arrow` gives one.

    Args:
        name: of the table.
        columns: the description of each column.
        values: by key, one value per row as in JSON; None if it is unknown.
        left_out: how many more rows there are beyond the limit.
        warnings: what is wrong with the profile, one sentence each.
    """

    def __init__(
        self,
        name: str,
        columns: Sequence[Column],
        values: Mapping[str, Sequence[Any]],
        left_out: int = 0,
        warnings: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.columns = tuple(columns)
        self.left_out = left_out
        self.warnings = tuple(warnings)
        self._values = {column.key: values[column.key] for column in columns}
        self._arrays: dict[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(next(iter(self._values.values()), ()))

    def __iter__(self) -> Iterator[Any]:
        """The rows, as named tuples; their `_fields` are the keys as they are, which pandas takes for its columns."""
        return self._rows(self._values.values())

    def _rows(self, columns: Iterable[Sequence[Any]]) -> Iterator[Any]:
        names = [key.replace(".", "_") for key in self._values]
        row = namedtuple("Row", names, rename=True)  # type: ignore[misc]
        row._fields = self.keys()  # type: ignore[assignment]
        row.__getattr__ = _no_attribute  # type: ignore[attr-defined]
        return map(row._make, zip(*columns, strict=True))

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def keys(self) -> tuple[str, ...]:
        return tuple(self._values)

    def __getitem__(self, key: str | int | slice) -> Any:  # noqa: ANN401 - a column as an array, a row or a list of rows
        """A column by its key, where it raises as `values`; a row by its number, or some of them."""
        if isinstance(key, slice):
            return list(self._rows(values[key] for values in self._values.values()))
        if isinstance(key, int):
            return self[key : key + 1 or None][0]
        values = self.values(key)
        if key not in self._arrays:
            self._arrays[key] = as_array(values, self._type(key))
        return self._arrays[key]

    def values(self, key: str) -> Sequence[Any]:
        """A column as in JSON, None where a value is unknown.

        Raises:
            ProfileError: no column has that key.
        """
        if not isinstance(key, str):
            sentence = f"A column has a key, such as {next(iter(self._values), 'name')!r}, not {printable(repr(key))}."
            raise ProfileError("usage", sentence, "table[0] is a row, table[:3] are rows", EXIT_USAGE)
        if key not in self._values:
            near = f"one of: {', '.join(nearest_or_first(key, self.keys()))}"
            raise ProfileError("usage", f"There is no column {printable(key)}.", near, EXIT_USAGE)
        return self._values[key]

    def to_dicts(self) -> list[dict[str, object]]:
        """The rows as in the JSON of reports: a key with a dot makes an object within the row."""
        return records(self._values)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame with the numpy columns; a `ProfileError` where pandas is not installed."""
        made: pandas.DataFrame = package("pandas").DataFrame({key: self[key] for key in self._values})
        return made

    def to_polars(self) -> polars.DataFrame:
        """A Polars data frame, null where unknown; a `ProfileError` where Polars is not installed."""
        library, columns = package("polars"), []
        for key, values in self._values.items():
            kind = self._type(key)
            of_items = getattr(library, TYPES[kind].polars)
            of_column = library.List(of_items) if "[]" in kind else of_items
            columns.append(library.Series(key, stored(values, kind), of_column))
        made: polars.DataFrame = library.DataFrame(columns)
        return made

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table, null where unknown; a `ProfileError` where PyArrow is not installed."""
        made: pyarrow.Table = arrow_table(self._values, {key: self._type(key) for key in self._values})
        return made

    def fetchall(self) -> list[Any]:
        """The rows."""
        return list(self)

    df = as_pandas_dataframe = to_pandas  # as answers of DuckDB and Perfetto have them
    pl, arrow = to_polars, to_arrow

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What Polars, PyArrow, DuckDB and others read a table by; see `to_arrow`."""
        try:
            return self.to_arrow().__arrow_c_stream__(requested_schema)
        except ProfileError:  # Polars does without PyArrow
            if "polars" not in sys.modules:
                raise
            return self.to_polars().__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        """The same for what reads data frames by the older protocol."""
        return self.to_arrow().__dataframe__(nan_as_null, allow_copy)

    def _type(self, key: str) -> SqlType:
        column = next(column for column in self.columns if column.key == key)
        return fitting_type(self._values[key], column.type if column.unit else None)

    def _way_to(self, name: str) -> str:
        if name in _OF_PANDAS:
            return f"to_pandas().{name}"
        if keys := meant_columns(name, self.keys()):
            return f'table["{keys[0]}"]'
        return "to_pandas(), to_polars() or to_arrow(), and keys() for its columns"

    def __repr__(self) -> str:
        title, right = f"{self.name}: {counted(len(self), 'row')}", counted(len(self._values), "column")
        return titled_text(title, right, self._lines, LOOK).rstrip("\n")

    def _lines(self, pen: Pen) -> list[Line]:
        """The first rows in the columns that fit, then the keys of the other columns, and warnings."""
        shown, drawn = range(min(len(self), _MOST_IN_TEXT)), list[Drawn]()
        for key, values in self._values.items():
            texts = {row: pen.text(_words(values[row])) for row in shown}
            right, is_first = self._type(key) in NUMBERS, not drawn
            drawn.append(text_column(key, pen.text(key), texts, right=right, is_first=is_first, grows=False))
        rest = ", ".join(self.keys()[len(chosen_columns(drawn, pen.width)) :])
        notes = [*([f"more columns: {rest}"] if rest else []), *self.warnings]
        return [*first_rows(drawn, range(len(self) + self.left_out), len(shown), pen), *pen.notes(notes, ())]

    def _repr_html_(self) -> str:
        """The first rows for a notebook; names of a profile stand in it as text, never as markup."""
        head = "".join(
            f'<th title="{escape(f"{each.meaning} ({each.unit})")}">{escape(printable(each.key))}</th>'
            for each in self.columns
        )
        shown = [values[:_MOST_SHOWN] for values in self._values.values()]
        rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in zip(*shown, strict=True))
        more = len(self) - _MOST_SHOWN + self.left_out if len(self) > _MOST_SHOWN else self.left_out
        note = f"{escape(printable(self.name))}: {counted(len(self), 'row')}"
        note += f", {counted(more, 'more row')} not shown" if more else ""
        note += "".join(f"<br>{escape(printable(warning))}" for warning in self.warnings)
        return f"<table><caption>{note}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _no_attribute(row: Any, name: str) -> NoReturn:  # noqa: ANN401 - a named tuple
    """The error for an unknown attribute of a row."""
    keys = meant_columns(name, row._fields) or row._fields[:3]
    raise AttributeError(f"A row has no {printable(name)}. Try one of: {', '.join(keys).replace('.', '_')}.")


def _words(value: object) -> str:
    if value is None:
        return UNKNOWN
    return printable(
        f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
    )


def _cell(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"<td{' align=right' if is_number else ''}>{escape(_words(value))}</td>"


def as_array(values: Sequence[Any], kind: SqlType) -> NDArray[Any]:
    """A column of a type as numpy has it; see `Table`."""
    is_known, largest = None not in values, max((abs(value) for value in values if type(value) is int), default=0)
    if is_known and kind in ("BOOLEAN", "BIGINT", "UBIGINT"):
        return np.array(values, TYPES[kind].numpy)
    if kind in ("BIGINT", "UBIGINT", "DOUBLE") and largest <= LARGEST_EXACT:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    made = np.empty(len(values), object)
    for row, value in enumerate(values):  # one by one: numpy would take lists for rows
        made[row] = value
    return made
