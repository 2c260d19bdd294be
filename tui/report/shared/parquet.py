"""A table as a Parquet file, which DuckDB writes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.tui.report.choice import choose
from tpuprof.tui.report.fields import Table, columns
from tpuprof.tui.report.output import Produce, Write
from tpuprof.tui.report.page import Content, Report, ReportRequest, TableOptions
from tpuprof.tui.report.shared.database import column_of, create, fitting_type, insert
from tpuprof.tui.report.shared.optional import package

_PIECE = 1 << 20


def report_parquet(
    report: Report[Content], content: Content, asked: ReportRequest, choice: TableOptions | None
) -> Produce:
    """What writes the main table of a page, or the rows and columns of it that a call chooses.

    Raises:
        ProfileError: the page has no table; a column or a filter is none; DuckDB is not installed.
    """
    tables = () if report.sections is None else report.sections(content, replace(asked, limit=0))
    if not tables:
        raise ProfileError("usage", "This page is no table.", "--format json has all of it", EXIT_USAGE)
    listed = tables[0]
    chosen = choose(listed, choice or TableOptions(), asked.most_rows, listed.table.json)
    return table_parquet(listed.table, listed.source, chosen.shown, chosen.keys)


def table_parquet(table: Table[Any], source: object, rows: Sequence[int], keys: Sequence[str]) -> Produce:
    """What writes some rows of a table as Parquet, a column a key: dots as in CSV, objects as their JSON.

    Raises:
        ProfileError: DuckDB is not installed.
    """
    duckdb = package("duckdb")
    values = columns(table, source, rows, keys)
    types = {of.key: fitting_type(values[of.key], of.type) for of in map(column_of, table.chosen(keys))}

    def produce(write: Write) -> None:
        with TemporaryDirectory(prefix="tpuprof-") as folder, duckdb.connect(":memory:") as connection:
            path = os.path.join(folder, "table.parquet")
            create(connection, table.key, types)
            insert(connection, table.key, types, list(map(values.__getitem__, types)))
            try:
                connection.table(table.key).write_parquet(path)
            except duckdb.Error as error:
                raise _no_room(os.path.dirname(folder)) from error
            with open(path, "rb") as file:
                while piece := file.read(_PIECE):
                    write(piece)

    return produce


def _no_room(folder: str) -> ProfileError:
    """The folder for temporary files does not take the table."""
    sentence = f"The table can't be written to the folder for temporary files, {printable(folder)}."
    return ProfileError("output", sentence, "free space there, or set TMPDIR to another folder", EXIT_USAGE)
