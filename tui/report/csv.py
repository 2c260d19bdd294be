"""The main table of a page as CSV: a header line, then a line a row; an empty cell where a figure is unknown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.base.text import printable
from tpuprof.tui.report.fields import RowColumns, Rows, Source, Table, columns
from tpuprof.tui.report.units import Value


def table_csv(fields: Table[Source], source: Source, rows: Rows, keys: Sequence[str] = ()) -> str:
    """Some rows of a table; the headings are the keys of JSON, dotted for objects within objects."""
    shown = columns(fields, source, rows, keys or fields.csv or fields.json)
    return table(tuple(shown), zip(*shown.values(), strict=True))


def parts_csv(keys: Sequence[str], parts: Sequence[tuple[str, RowColumns]]) -> str:
    """Several tables below each other; the first key is of the column that distinguishes them; a part may lack
    others.
    """
    rows = (
        (part, *row)
        for part, shown in parts
        for row in zip(*(shown.get(key) or [None] * len(shown["name"]) for key in keys[1:]), strict=True)
    )
    return table(keys, rows)


def table(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    """A header line, then a line a row, every cell made safe."""
    return "".join(row_texts((header, *rows)))


def row_texts(rows: Iterable[Sequence[Value]]) -> Iterator[str]:
    """A line a row, one after the other, every cell made safe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([value if type(value) is float and isfinite(value) else _cell(value) for value in row])
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def _cell(value: Value) -> Value:
    """A value, a list joined with semicolons; nothing for what is unknown.

    Text is made safe for terminals and spreadsheets, which run a cell that begins with one of these as a formula.
    """
    if isinstance(value, list):
        value = "; ".join(item.sentence if isinstance(item, Problem) else str(item) for item in value)
    if isinstance(value, str):
        text = printable(value)
        return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
    return None if isinstance(value, float) and not isfinite(value) else value
