"""A table as a Parquet file, which PyArrow writes."""

from __future__ import annotations

from dataclasses import replace

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.tui.report.choice import choose
from tpuprof.tui.report.fields import columns
from tpuprof.tui.report.output import Produce, Write
from tpuprof.tui.report.page import Content, Report, ReportRequest, TableOptions
from tpuprof.tui.report.shared.columns import arrow_table, column_of, fitting_type
from tpuprof.tui.report.shared.optional import package


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
