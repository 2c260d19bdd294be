"""The report on the memory of compiled modules: one memory space of one of them, its buffers, and which others are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.memory.account.need import MARGIN
from tpuprof.parsers.memory.batch.fit import BatchFit, BatchNeed
from tpuprof.parsers.memory.model import MemoryPage, SpaceMemory, space_name
from tpuprof.parsers.memory.summary import SpaceSummary
from tpuprof.parsers.pages.memory.key import MEMORY
from tpuprof.parsers.session.hlo import HloSession, unreadable_modules
from tpuprof.tui.draw.format import binary_size
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, Span
from tpuprof.tui.pages.memory.draw.graph import graph_lines
from tpuprof.tui.pages.memory.draw.header import header_lines
from tpuprof.tui.pages.memory.draw.table import Grouping, MemoryState, list_heading, memory_list, table_lines
from tpuprof.tui.pages.memory.fields.module import BUFFERS, DEVICE, GROUPS, MODULES, SPACE, ListedRows, readable_metrics
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, Values, declared, drawn_by
from tpuprof.tui.report.fields import (
    Metric,
    Table,
    attribute,
    first,
    markdown_rows,
    metric_reasons,
    metric_values,
    object_table,
)
from tpuprof.tui.report.markdown import escaped, fields_table, not_shown, table
from tpuprof.tui.report.page import Head, ReportRequest
from tpuprof.tui.report.shared.buffers import BufferRows
from tpuprof.tui.report.units import BYTES, BYTES_BY_NAME, COUNT, FLAG, VERBATIM, Unit

GRAPH_HEIGHT = 14
_NO_CURSOR = -1
_MOST_MODULES = 20
_MOST_INPUTS = 4


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """The page, and the memory space that is asked for.

    Attributes:
        space: None where no module has figures, and `problem` or the page says why.
        problem: why the module that was asked for has no figures.
        summary: what the space comes to; None without one.
        only_fit: the text is to say how large the batch may be, and nothing else.
    """

    page: MemoryPage
    space: SpaceMemory | None
    problem: str | None
    summary: SpaceSummary | None = None
    only_fit: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.page.warnings, *(self.space.warnings if self.space is not None else ()))

    @property
    def fit(self) -> BatchFit:
        return self.summary.fit if self.summary is not None else BatchFit(unknown=self.why_none("No figures."))

    def why_none(self, otherwise: str) -> str:
        return self.problem or self.page.why_no_modules or otherwise

    def buffers(self, limit: int, only_at_peak: bool = False) -> BufferRows:
        """Its buffers: those in memory at the peak first, then by size; at most `limit`, 0 for all."""
        if self.space is None:
            return BufferRows((), None)
        live_ranges, at_peak = self.space.live_ranges, self.space.at(self.space.peak_position)
        is_at_peak = np.isin(np.arange(len(live_ranges)), at_peak)
        order = np.lexsort((np.arange(len(live_ranges)), -live_ranges.size_bytes, ~is_at_peak))
        shown = order[: len(at_peak)] if only_at_peak else order
        rows = shown[: limit or None].tolist()
        return BufferRows([self.space.buffers[row] for row in rows], max(1, self.space.peak_bytes))


def _of_fit(key: str, unit: Unit, name: str, meaning: str, null: str = "fit_unknown says why") -> Metric[ModuleReport]:
    return attribute(key, unit, meaning, null=null, name=f"fit.{name}")


_NO_PLAN = "it fits as it is, or the limit is unknown"
_ADDS_UP = "bytes at the peak by owner, which add up to the peak"
_CHEAPEST = "the cheapest combination of changes that fits, or the one that comes closest"

FIT: tuple[Metric[ModuleReport], ...] = (
    attribute("owners_bytes", BYTES_BY_NAME, _ADDS_UP, null="no module has figures", name="summary.account.owners"),
    attribute("plan", VERBATIM, _CHEAPEST, null=_NO_PLAN, name="summary.plan.sentence"),
    _of_fit("fit_batch", COUNT, "batch", "the batch as it is compiled, on one device"),
    Metric(
        "fit_inputs", VERBATIM, lambda of: list(of.fit.inputs), "the arguments whose leading dimension is the batch"
    ),
    _of_fit("fit_growing_bytes", BYTES, "growing_bytes", "the part of the peak that grows with the batch"),
    _of_fit("fit_largest_batch", COUNT, "largest", "the largest batch that fits, by arithmetic over shapes"),
    _of_fit("fit_largest_bytes", BYTES, "largest_bytes", "the peak at that batch"),
    _of_fit("fit_next_batch", COUNT, "next", "the next round batch, which does not fit"),
    _of_fit("fit_next_bytes", BYTES, "next_bytes", "the peak at that batch"),
    _of_fit("fit_may_recompute", FLAG, "may_recompute", "the compiler may make it fit by recomputing", ""),
    Metric("fit_unknown", VERBATIM, lambda of: of.fit.unknown or None, "why that is unknown", "it is known"),
)

BATCHES: Table[Sequence[BatchNeed]] = object_table(
    "batches",
    (
        attribute("batch", COUNT, "a batch, on one device"),
        attribute("peak_bytes", BYTES, "the peak at that batch, by arithmetic over shapes"),
        attribute("over_bytes", BYTES, "how much too large that is; negative if it fits"),
        attribute("what", VERBATIM, "which batch it is"),
    ),
)


def read(request: ReportRequest) -> ModuleReport:
    """Reads the modules of a profile, or of HLO files."""
    options, run = request.options, request.run
    of_files = HloSession(run, options.get("device")) if request.only_hlo else None
    compiled = of_files.page(MEMORY) if of_files is not None else request.session(run).page(MEMORY, request.host)
    page = compiled.page()
    if request.only_hlo and page.first is None:
        raise unreadable_modules(page)
    made = compiled.asked(options.get("module"), options.get("space"))
    if isinstance(made, str):
        return ModuleReport(page, None, made)
    return ModuleReport(page, made, None, compiled.summary(made), bool(options.get("fit")))


def declare(memory: ModuleReport, request: ReportRequest) -> Declared:
    """A memory space and its buffers, those in memory at the peak first; and the modules."""
    page, space, most = memory.page, memory.space, request.most_rows
    title, covers = f"Memory of {request.run.name}", page.device_type or ", ".join(page.hosts)
    modules = Section(MODULES, page.modules, f"Modules ({len(page.modules)})")

    def buffers() -> Section[BufferRows]:
        return Section(BUFFERS, memory.buffers(most))

    def rows() -> Section[Any]:
        by = request.options.get("by")
        return buffers() if by is None or space is None else _groups(memory, space, by, most)

    return Declared(
        Head(title, request.run, page.hosts, facts=memory.warnings, covers=covers, lists_hosts=False),
        statement="" if space is not None else memory.why_none("No module has figures."),
        parts=(
            Metrics((DEVICE,), page),
            Section(MODULES, page.modules),
            Block(lambda: _values(memory, most), lambda: _tables(memory, space, most) if space is not None else ()),
            Metrics(FIT, memory),
            Section(BATCHES, memory.fit.batches),
            Block(markdown=modules.markdown if space is not None and len(page.modules) > 1 else tuple),
        ),
        csv=Block(csv=lambda: rows().csv(), table=rows),
        text=lambda pen: _text(memory, most, pen),
    )


def _groups(memory: ModuleReport, space: SpaceMemory, by: Grouping, most: int) -> Section[Any]:
    owners = {} if memory.summary is None else memory.summary.owners
    listed = memory_list(space, MemoryState(point=space.peak_position, grouping=by), owners=owners)
    source = ListedRows.of(space, listed.groups, max(1, space.peak_bytes), listed.most_bytes)
    return Section(GROUPS, source, f"Buffers at the peak by {by}", most)


def _values(memory: ModuleReport, most: int) -> Values:
    space = memory.space
    if space is None:
        keys = [*(figure.key for figure in SPACE), BUFFERS.key]
        why = memory.why_none("no module of the run has figures")
        return Values(dict.fromkeys(keys), dict.fromkeys(keys, why), memory.warnings)
    buffers, unknown = Section(BUFFERS, memory.buffers(0), limit=most).json(), dict(space.unknown)
    if "capacity" in unknown:
        unknown |= dict.fromkeys(("capacity_bytes", "headroom_bytes", "capacity_source"), unknown["capacity"])
    values = {**metric_values(SPACE, space), **buffers.values}
    return Values(values, {**metric_reasons(SPACE), **unknown, **buffers.reasons}, memory.warnings, buffers.rows)


def _tables(memory: ModuleReport, space: SpaceMemory, most: int) -> list[str]:
    lines = [
        "",
        f"## {space.name} of {escaped(str(space.module))}",
        "",
        *table(("", ""), "lr", readable_metrics(space)),
    ]
    number, buffers = len(space.at(space.peak_position)), memory.buffers(most, only_at_peak=True)
    cells = markdown_rows(BUFFERS, buffers, range(len(buffers)))
    lines += ["", f"## Buffers at the peak ({number})", "", *fields_table(BUFFERS, cells)]
    return lines + not_shown(number - len(buffers))


def _text(memory: ModuleReport, most: int, pen: Pen) -> list[Line]:
    if memory.space is None:
        lines = pen.wrap(memory.why_none("No module has figures."), "text", [(" ", "text")])
    else:
        lines = header_lines(memory.space, str(memory.space.module), pen, memory.summary)
        lines += _fit_lines(memory.fit, pen) if memory.only_fit else _space_lines(memory.space, most, pen)
    lines += pen.notes(memory.warnings, ())
    return (
        lines if memory.only_fit else lines + (_module_lines(memory.page, pen) if len(memory.page.modules) > 1 else [])
    )


def _space_lines(space: SpaceMemory, limit: int, pen: Pen) -> list[Line]:
    lines: list[Line] = []
    if space.points > 1:
        nothing = np.zeros(0, np.int64)
        lines += graph_lines(space, space.peak_position, nothing, pen, GRAPH_HEIGHT)
    listed = memory_list(space, MemoryState(point=space.peak_position))
    shown = len(first(len(listed), limit))
    lines.append(list_heading(space, listed, pen))
    lines += table_lines(space, listed, _NO_CURSOR, 0, pen, shown + 1)
    if shown < len(listed):
        lines.append(pen.fit([(f" and {counted(len(listed) - shown, 'more buffer')}", "dim")]))
    return lines


def _fit_lines(fit: BatchFit, pen: Pen) -> list[Line]:
    lines = [pen.fit([])]
    for each in fit.batches:
        fits = each.over_bytes <= 0
        words = f"{binary_size(abs(each.over_bytes))} {'free' if fits else 'over'}"
        spans: list[Span] = [(f" batch {each.batch:>9,}  {binary_size(each.peak_bytes):>9}  ", "text")]
        lines.append(pen.fit([*spans, (f"{words:<16}", "good" if fits else "bad"), (each.what, "dim")]))
    if not fit.unknown:
        inputs = ", ".join(fit.inputs[:_MOST_INPUTS]) + (" ..." if len(fit.inputs) > _MOST_INPUTS else "")
        basis = (
            f"The batch is the leading dimension of {inputs}; {binary_size(fit.growing_bytes)} of the peak grow with "
        )
        basis += f"it, by the shapes in the compiled HLO. {100 * MARGIN:.0f}% stay free for another layout."
        again = " The compiler may make more fit by recomputing activations." if fit.may_recompute else ""
        lines += [pen.fit([]), *pen.wrap(basis + again, "dim", [(" ", "text")])]
    return lines


def _module_lines(page: MemoryPage, pen: Pen) -> list[Line]:
    lines = [pen.fit([(f"Modules ({len(page.modules)}), the largest HBM peak first", "title")])]
    for module in page.modules[:_MOST_MODULES]:
        peaks = (f"{space_name(space)} {binary_size(peak)}" for space, peak in sorted(module.peaks.items()) if peak)
        words = module.problem if module.problem else "  ".join(peaks)
        name = str(module.module)
        lines.append(pen.fit([(f" {name}", "text"), (f"  {words}", "warn" if module.problem else "dim")]))
    left = len(page.modules) - _MOST_MODULES
    return [*lines, pen.fit([(f" and {left} more", "dim")])] if left > 0 else lines


REPORT = declared(
    "memory",
    read,
    declare,
    tables=(MODULES, BUFFERS, BATCHES),
    metrics=(DEVICE, *SPACE, *FIT),
    csv_table=BUFFERS,
    warnings=lambda memory: (*memory.warnings, *filter(None, (memory.problem,))),
    pictures=drawn_by("tpuprof.tui.pages.memory.report.picture:pictures"),
)
