"""The main table of a page as CSV: a header line, then a line a row; an empty cell where a figure is unknown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from tpuprof.parsers.base.text import printable

Cell = str | int | float | None


def table(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A header line, then a line a row, every cell made safe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([cell(value) for value in row] for row in rows)
    return out.getvalue()


def cell(value: Cell) -> Cell:
    """Text made safe for terminals and spreadsheets, which run a cell that begins with one of these as a formula."""
    if isinstance(value, str):
        text = printable(value)
        return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
