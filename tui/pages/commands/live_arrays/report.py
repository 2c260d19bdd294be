"""The report on live arrays, in every format."""

from __future__ import annotations

from collections.abc import Sequence
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
from tpuprof.tui.report.declared import Declared, Figures, Head, Section, declared
from tpuprof.tui.report.fields import Figure, figure_rows
from tpuprof.tui.report.page import Asked
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


def declare(content: Asking, asked: Asked) -> Declared:
    """The totals, devices, groups and allocations; at most `--limit` of the last two."""
    page, most, view = content.page, asked.most_rows, View(cursor=-1, by=content.by)
    groups = Section(GROUPS, content.rows, BY_TITLES[content.by], most)

    def text(pen: Pen) -> Sequence[Line]:
        every = listed(page, view)
        return compose(page, view, replace(every, rows=every.rows[: most or None]), pen, None).lines

    return Declared(
        Head("Live arrays", asked.run, (), page.warnings, [f"file: {page.name}"], covers=page.name),
        statement=totals_words(page),
        figures=figure_rows(FIGURES, page),
        parts=(
            Figures(FIGURES, page),
            Figures((_BY,), content),
            Section(DEVICES, page.devices, "Devices"),
            groups,
            Section(ALLOCATIONS, page.allocations, limit=most),
        ),
        csv=groups,
        text=text,
    )


REPORT = declared(
    "live-arrays",
    read,
    declare,
    tables=(DEVICES, GROUPS, ALLOCATIONS),
    figures=(*FIGURES, _BY),
    csv_table=GROUPS,
    warnings=lambda content: content.page.warnings,
)
