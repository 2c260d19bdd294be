"""The report on live arrays, in every format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.live_arrays import By, Group, LiveArrays, groups, read_live_arrays
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.live_arrays.drawing import View, compose, listed
from tpuprof.tui.pages.commands.live_arrays.fields import (
    ALLOCATIONS,
    BY_TITLES,
    DEVICES,
    FIGURES,
    GROUPS,
    GroupRows,
    totals_words,
)
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import Figure, figure_reasons, figure_values, first, reasons, table_records
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, figures_table, joined, main_table
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import titled_text
from tpuprof.tui.report.units import VERBATIM


@dataclass(frozen=True, slots=True)
class Asking:
    """A page, and what it is to be grouped by."""

    page: LiveArrays
    by: By

    @property
    def groups(self) -> tuple[Group, ...]:
        """The rows of the table."""
        return groups(self.page, self.by)

    @property
    def rows(self) -> GroupRows:
        """What the table's fields read."""
        return GroupRows(self.groups, self.page.total.size_bytes, self.by)


_BY: Figure[Any] = Figure("by", VERBATIM, lambda asking: asking.by, "what the groups have in common")


def read(asked: Asked) -> Asking:
    """Reads the file."""
    return Asking(read_live_arrays(asked.run.path), asked.options.get("by") or "source")


def json(content: Asking, asked: Asked) -> str:
    """The totals, groups and allocations; at most `--limit` of the two."""
    page, rows = content.page, content.rows
    body: dict[str, object] = figure_values(FIGURES, page) | figure_values((_BY,), content)
    body[DEVICES.key] = table_records(DEVICES, page.devices, range(len(page.devices)))
    body[GROUPS.key] = table_records(GROUPS, rows, first(len(rows), asked.most_rows))
    body[ALLOCATIONS.key] = table_records(ALLOCATIONS, page.allocations, first(len(page.allocations), asked.most_rows))
    return document(head("live-arrays", asked.run, (), page.warnings), body, _reasons())


def _reasons() -> Mapping[str, str]:
    why = figure_reasons(FIGURES)
    for table in (DEVICES, GROUPS, ALLOCATIONS):
        why |= reasons(table.fields, f"{table.key}[]", {})
    return why


def csv(content: Asking, asked: Asked) -> str:
    """The groups, the largest first."""
    return table_csv(GROUPS, content.rows, first(len(content.groups), asked.most_rows))


def markdown(content: Asking, asked: Asked) -> str:
    """The totals, the devices and the groups."""
    page, rows = content.page, content.rows
    lines = [f"# Live arrays: {escaped(page.name)}", "", escaped(totals_words(page))]
    lines += ["", *(f"- warning: {escaped(text)}" for text in page.warnings)]
    figures = [(one.heading, one.unit.words(one.read(page), False)) for one in FIGURES if one.heading]
    lines += figures_table(figures)
    lines += main_table("Devices", DEVICES, page.devices, range(len(page.devices)), len(page.devices))
    lines += main_table(BY_TITLES[content.by], GROUPS, rows, first(len(rows), asked.most_rows), len(rows))
    return joined(lines)


def text(content: Asking, asked: Asked) -> str:
    """The page as the screen draws it."""
    page, limit = content.page, asked.most_rows
    view = View(cursor=-1, by=content.by)

    def lines(pen: Pen) -> list[Line]:
        every = listed(page, view)
        shown = replace(every, rows=every.rows[: limit or None])
        return list(compose(page, view, shown, pen, None).lines)

    return titled_text("Live arrays", page.name, lines, asked.look)


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(DEVICES, GROUPS, ALLOCATIONS),
    figures=(*FIGURES, _BY),
    warnings=lambda content: content.page.warnings,
    csv_table=GROUPS,
)
