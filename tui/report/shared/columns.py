"""The types of columns in SQL, numpy, Arrow (so Parquet too) and Polars; columns as a table of Arrow or Parquet.

In SQL a type follows from the unit alone, so that a table has the same columns for every profile. Elsewhere a column
has the type of its unit where that holds every value. Objects are their JSON as text. Arrow and Polars are packages
that a user may lack: a missing one is an error in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np

from tpuprof.parsers.base.errors import EXIT_USAGE, Problem, ProfileError
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import printable
from tpuprof.tui.report.choice import choose
from tpuprof.tui.report.fields import Field, columns
from tpuprof.tui.report.output import Produce, Write
from tpuprof.tui.report.page import Content, Report, ReportRequest, TableOptions
from tpuprof.tui.report.units import LARGEST_EXACT

SqlType = Literal["VARCHAR", "VARCHAR[]", "BOOLEAN", "BIGINT", "UBIGINT", "DOUBLE"]
NUMBERS: tuple[SqlType, ...] = ("BIGINT", "UBIGINT", "DOUBLE")


@dataclass(frozen=True, slots=True)
class TypeNames:
    """A type in numpy, where unknown values have none of their own, and its names in PyArrow and Polars.

    Of a list they are those of its items.
    """

    numpy: type[Any]
    arrow: str
    polars: str


TYPES: Mapping[SqlType, TypeNames] = {
    **dict.fromkeys(("VARCHAR", "VARCHAR[]"), TypeNames(object, "string", "String")),
    "BOOLEAN": TypeNames(np.bool_, "bool_", "Boolean"),
    "BIGINT": TypeNames(np.int64, "int64", "Int64"),
    "UBIGINT": TypeNames(np.uint64, "uint64", "UInt64"),
    "DOUBLE": TypeNames(np.float64, "float64", "Float64"),
}
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

_INT64, _UINT64 = np.iinfo(np.int64), np.iinfo(np.uint64)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        key: its name, the same as in JSON and CSV; a dot stands for an object within an object there.
        unit: of its values; empty where it has none.
        meaning: what it says, in a sentence.
        unknown_when: why a value may be unknown; empty if it never is.
    """

    key: str
    unit: str
    meaning: str
    unknown_when: str = ""

    @property
    def name(self) -> str:
        """Its name in SQL."""
        return self.key.replace(".", "_")

    @property
    def type(self) -> SqlType:
        """Its type in SQL, by its key and its unit."""
        return "VARCHAR" if self.unit == "text" else _BY_KEY.get(self.key, _BY_UNIT.get(self.unit, "DOUBLE"))


def column_of(field: Field[Any]) -> Column:
    """The column of a quantity."""
    return Column(field.key, field.unit.name, field.meaning, field.null)


def is_plain(field: Field[Any]) -> bool:
    """Whether a quantity is one value, and not objects."""
    return not field.unit.parts and "object" not in field.unit.name


def fitting_type(values: Sequence[Any], of_unit: SqlType | None = None) -> SqlType:
    """The type that loses nothing of some values: the type of their unit, or one that fits them.

    Args:
        values: None where unknown.
        of_unit: None where they have no unit.
    """
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds or of_unit == "VARCHAR":
        return of_unit or "VARCHAR"
    if kinds <= {int, float}:
        return _of_numbers(values, float in kinds, of_unit)
    if kinds <= {list, tuple} and (of_unit == "VARCHAR[]" or all(type(i) is str for v in values for i in v or ())):
        return "VARCHAR[]"
    return "BOOLEAN" if kinds == {bool} else "VARCHAR"


def _of_numbers(values: Sequence[Any], has_floats: bool, of_unit: SqlType | None) -> SqlType:
    whole = [value for value in values if type(value) is int]
    low, high = min(whole, default=0), max(whole, default=0)
    if has_floats or (of_unit == "DOUBLE" and max(-low, high) <= LARGEST_EXACT):
        return "DOUBLE"
    if low >= 0 and (of_unit == "UBIGINT" or high > _INT64.max):
        return "UBIGINT" if high <= _UINT64.max else "VARCHAR"
    return "BIGINT" if _INT64.min <= low and high <= _INT64.max else "VARCHAR"


def stored(values: Sequence[Any], kind: SqlType) -> Sequence[Any]:
    """Values as those of a type: texts fit to print, floats of whole numbers, None where unknown."""
    if kind == "VARCHAR":
        return [None if value is None else as_text(value) for value in values]
    if kind == "VARCHAR[]":
        return [None if value is None else [as_text(item) for item in value] for value in values]
    return [None if value is None else float(value) for value in values] if kind == "DOUBLE" else values


_NAMES = {"pandas": "pandas", "polars": "Polars", "pyarrow": "PyArrow", "pyarrow.parquet": "PyArrow"}
_INSTALLED_BY = {"pyarrow.parquet": "pip install 'tpuprof-tui[parquet]'"}


def package(name: str) -> Any:  # noqa: ANN401 - a module of somebody else
    """An optional package.

    Raises:
        ProfileError: `not_installed`, exit code 2, with the command that installs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        sentence = f"This needs {_NAMES[name]}, which is not installed here."
        hint = _INSTALLED_BY.get(name, f"pip install {name}")
        raise ProfileError("not_installed", sentence, hint, EXIT_USAGE) from error


def arrow_table(columns: Mapping[str, Sequence[Any]], types: Mapping[str, SqlType]) -> Any:  # noqa: ANN401 - of PyArrow
    """Columns as an Arrow table, whose unknown values are null.

    Raises:
        ProfileError: PyArrow is not installed.
    """
    library = package("pyarrow")
    arrays = {}
    for key, values in columns.items():
        kind = types[key]
        of_items = getattr(library, TYPES[kind].arrow)()
        arrays[key] = library.array(stored(values, kind), library.list_(of_items) if "[]" in kind else of_items)
    return library.table(arrays)


def report_parquet(
    report: Report[Content], content: Content, asked: ReportRequest, choice: TableOptions | None
) -> Produce:
    """What writes the main table of a page as Parquet, or the rows and columns of it that a call chooses.

    It has a column a key: dots as in CSV, objects as their JSON.

    Raises:
        ProfileError: the page has no table; a column or a filter is none; PyArrow is not installed.
    """
    tables = () if report.sections is None else report.sections(content, replace(asked, limit=0))
    if not tables:
        raise ProfileError("usage", "This page is no table.", "--format json has all of it", EXIT_USAGE)
    listed = tables[0]
    chosen = choose(listed, choice or TableOptions(), asked.most_rows, listed.table.json)
    writer, library = package("pyarrow.parquet"), package("pyarrow")
    values = columns(listed.table, listed.source, chosen.shown, chosen.keys)
    types = {of.key: fitting_type(values[of.key], of.type) for of in map(column_of, chosen.fields)}

    def produce(write: Write) -> None:
        file = library.BufferOutputStream()
        writer.write_table(arrow_table(values, types), file)
        write(file.getvalue().to_pybytes())

    return produce


def as_text(value: object) -> str:
    """Text fit to print, as in JSON; of objects their JSON."""
    if isinstance(value, Problem):
        value = value.sentence
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
