"""A table of a page as columns: numpy arrays by key, and data frames where their packages are installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, printable
from tpuprof.tui.draw.format import UNKNOWN
from tpuprof.tui.report.choice import nearest_or_first
from tpuprof.tui.report.fields import records
from tpuprof.tui.report.shared.optional import package

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_MOST_SHOWN = 50

_LARGEST_EXACT = 2**53
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        key: its name, the same as in JSON and CSV; a dot stands for an object within an object there.
        unit: of its values.
        meaning: what it says, in a sentence.
        unknown_when: why a value may be unknown; empty if it never is.
    """

    key: str
    unit: str
    meaning: str
    unknown_when: str = ""


class Table:
    """Rows of a page's table, by column.

    ``table["self_time_ps"]`` is a numpy array with an entry a row, ``len(table)`` the number of rows, and iterating
    gives the keys. Numbers are int64 or float64, unknown ones NaN; flags are bool; texts, lists and other values are
    objects, None where unknown.

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

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def keys(self) -> tuple[str, ...]:
        return tuple(self._values)

    def __getitem__(self, key: str) -> NDArray[Any]:
        """A column.

        Raises:
            ProfileError: no column has that key.
        """
        if key not in self._arrays:
            self._arrays[key] = as_array(self.values(key))
        return self._arrays[key]

    def values(self, key: str) -> Sequence[Any]:
        """A column as in JSON, None where a value is unknown.

        Raises:
            ProfileError: no column has that key.
        """
        if key not in self._values:
            near = f"one of: {', '.join(nearest_or_first(key, self.keys()))}"
            raise ProfileError("usage", f"There is no column {printable(key)}.", near, EXIT_USAGE)
        return self._values[key]

    def to_dicts(self) -> list[dict[str, object]]:
        """The rows as in the JSON of reports: a key with a dot makes an object within the row."""
        return records(self._values)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame with the numpy columns.

        Raises:
            ProfileError: pandas is not installed.
        """
        made: pandas.DataFrame = package("pandas").DataFrame({key: self[key] for key in self._values})
        return made

    def to_polars(self) -> polars.DataFrame:
        """A Polars data frame; unknown values are null.

        Raises:
            ProfileError: Polars is not installed.
        """
        made: polars.DataFrame = package("polars").DataFrame(
            {key: list(values) for key, values in self._values.items()}, strict=False, infer_schema_length=None
        )
        return made

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table; unknown values are null.

        Raises:
            ProfileError: PyArrow is not installed.
        """
        arrow = package("pyarrow")
        made: pyarrow.Table = arrow.table({key: arrow.array(_alike(values)) for key, values in self._values.items()})
        return made

    def __repr__(self) -> str:
        return f"<Table {self.name}: {counted(len(self), 'row')}, {', '.join(self._values)}>"

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
        return f"<table><caption>{note}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _alike(values: Sequence[Any]) -> Sequence[Any]:
    """Values that are all whole numbers, or all floats: Arrow mixes none."""
    kinds = {type(value) for value in values}
    return [float(value) if type(value) is int else value for value in values] if {int, float} <= kinds else values


def _cell(value: object) -> str:
    if value is None:
        return f"<td>{UNKNOWN}</td>"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    text = f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
    return f"<td{' align=right' if is_number else ''}>{escape(printable(text))}</td>"


def as_array(values: Sequence[Any]) -> NDArray[Any]:
    """A column as numpy has it; see `tpuprof.Table`."""
    kinds = {type(value) for value in values}
    known = kinds - {type(None)}
    if kinds and kinds <= {bool}:
        return np.array(values, np.bool_)
    if known and known <= {int, float}:
        sizes = [abs(value) for value in values if type(value) is int]
        largest = max(sizes, default=0)
        if kinds == {int} and largest <= _INT64.max:
            return np.array(values, np.int64)
        if largest <= _LARGEST_EXACT:
            return np.array([np.nan if value is None else value for value in values], np.float64)
    made = np.empty(len(values), object)
    made[:] = values if not kinds & {list, tuple} else None
    if kinds & {list, tuple}:  # which numpy would take for rows
        for row, value in enumerate(values):
            made[row] = value
    return made
