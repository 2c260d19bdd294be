"""The report on the memory of compiled modules: one memory space of one of them, its buffers, and which others are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.memory.model import SPACE_NAMES, MemoryPage, SpaceMemory, space_name
from tpuprof.parsers.pages.memory import CompiledModules, first_space
from tpuprof.parsers.session import pages
from tpuprof.parsers.session.hlo import HloSession, unreadable_modules
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.memory.draw.graph import graph_lines
from tpuprof.tui.pages.memory.draw.header import header_lines
from tpuprof.tui.pages.memory.draw.table import list_heading, memory_list, table_lines
from tpuprof.tui.pages.memory.fields.module import BUFFERS, DEVICE, MODULES, SPACE, readable_metrics
from tpuprof.tui.pages.memory.modules import SpaceRequest, space_of
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import first, markdown_rows, metric_reasons, metric_values, reasons, table_records
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, fields_table, joined, main_table, not_shown, table
from tpuprof.tui.report.page import Report, ReportRequest
from tpuprof.tui.report.shared.buffers import BufferRows
from tpuprof.tui.report.text import heading, page_text

GRAPH_HEIGHT = 14
_NO_CURSOR = -1
_MOST_MODULES = 20


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """The page, and the memory space that is asked for.

    Attributes:
        space: None where no module has figures, and `problem` or the page says why.
        problem: why the module that was asked for has no figures.
    """

    page: MemoryPage
    space: SpaceMemory | None
    problem: str | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the run's modules, and with the one that is shown."""
        return (*self.page.warnings, *(self.space.warnings if self.space is not None else ()))

    def why_none(self, otherwise: str) -> str:
        """Why there are no figures."""
        return self.problem or self.page.why_no_modules or otherwise

    def buffers(self, rows: Sequence[int]) -> BufferRows:
        """Buffers of the memory space, by row of its `live_ranges`."""
        if self.space is None:
            return BufferRows((), None)
        return BufferRows([self.space.buffers[row] for row in rows], max(1, self.space.peak_bytes))

    def rows(self, limit: int, only_at_peak: bool = False) -> Sequence[int]:
        """Rows of the buffers: those in memory at the peak first, then by size; at most `limit`, 0 for all."""
        if self.space is None:
            return ()
        live_ranges, peak = self.space.live_ranges, self.space.peak_position
        is_at_peak = (live_ranges.born <= peak) & (peak < live_ranges.dies)
        order = np.lexsort((np.arange(len(live_ranges)), -live_ranges.size_bytes, ~is_at_peak))
        shown = order[: int(is_at_peak.sum())] if only_at_peak else order
        rows: list[int] = (shown[:limit] if limit else shown).tolist()
        return rows


def asked_space(
    page: MemoryPage, compiled: CompiledModules, module: str | None, space: str | None
) -> tuple[SpaceMemory | None, str | None]:
    """The memory space that is asked for, or None and why there is none.

    Args:
        module: name, or name(program id); None for the one with the largest peak.
        space: in lower case; None for HBM, or the first that the module uses where it uses none.

    Raises:
        ProfileError: there is no such module.
    """
    if not page.modules:
        return None, page.why_no_modules
    label = (page.first or page.modules[0]).module if module is None else compiled.find(module)
    peaks = compiled.peaks(label)
    if peaks.problem is not None:
        return None, peaks.problem
    numbers = {name.lower(): number for number, name in SPACE_NAMES.items()}
    wanted = SpaceRequest(label, first_space(peaks.peaks) if space is None else numbers[space])
    made = space_of(compiled, wanted)
    return (None, made) if isinstance(made, str) else (made, None)


def read(request: ReportRequest) -> ModuleReport:
    """Reads the modules of a profile, or of HLO files."""
    options, run = request.options, request.run
    of_files = HloSession(run, options.get("device")) if request.only_hlo else None
    compiled = (
        of_files.page(pages.MEMORY) if of_files is not None else request.session(run).page(pages.MEMORY, request.host)
    )
    page = compiled.page()
    if request.only_hlo and page.first is None:
        raise unreadable_modules(page)
    return ModuleReport(page, *asked_space(page, compiled, options.get("module"), options.get("space")))


def json(memory: ModuleReport, request: ReportRequest) -> str:
    """The modules, and a memory space of one of them with its buffers."""
    page, space = memory.page, memory.space
    body: dict[str, object] = {
        **metric_values((DEVICE,), page),
        MODULES.key: table_records(MODULES, page.modules, range(len(page.modules))),
    }
    why = metric_reasons((DEVICE,))
    if space is None:
        keys = [*(figure.key for figure in SPACE), BUFFERS.key]
        body |= dict.fromkeys(keys)
        why |= dict.fromkeys(keys, memory.why_none("no module of the run has figures"))
    else:
        buffers = memory.buffers(memory.rows(request.most_rows))
        body |= {**metric_values(SPACE, space), BUFFERS.key: table_records(BUFFERS, buffers, range(len(buffers)))}
        why |= {**metric_reasons(SPACE), **space.unknown}
        if "capacity" in space.unknown:
            why |= dict.fromkeys(("capacity_bytes", "headroom_bytes", "capacity_source"), space.unknown["capacity"])
    why |= {**reasons(MODULES.fields, "modules[]", {}), **reasons(BUFFERS.fields, "buffers[]", {})}
    return document(head("memory", request.run, page.hosts, memory.warnings), body, why)


def csv(memory: ModuleReport, request: ReportRequest) -> str:
    """The buffers, those in memory at the peak first, by size; only the headings where no module has figures."""
    buffers = memory.buffers(memory.rows(request.most_rows))
    return table_csv(BUFFERS, buffers, range(len(buffers)))


def markdown(memory: ModuleReport, request: ReportRequest) -> str:
    """A memory space, its buffers at the peak, and the modules."""
    page, space = memory.page, memory.space
    lines = [f"# Memory of {escaped(request.run.name)}", ""]
    lines += [f"- {escaped(warning)}" for warning in memory.warnings]
    if space is None:
        return joined([*lines, "", escaped(memory.why_none("No module has figures."))])
    lines += ["", f"## {space.name} of {escaped(str(space.module))}", ""]
    lines += table(("", ""), "lr", readable_metrics(space))
    rows = memory.rows(0, only_at_peak=True)
    buffers = memory.buffers(rows[: request.most_rows or None])
    cells = markdown_rows(BUFFERS, buffers, range(len(buffers)))
    lines += ["", f"## Buffers at the peak ({len(rows)})", "", *fields_table(BUFFERS, cells)]
    lines += not_shown(len(rows) - len(buffers))
    if len(page.modules) > 1:
        every = range(len(page.modules))
        lines += main_table(f"Modules ({len(page.modules)})", MODULES, page.modules, every, len(every))
    return joined(lines)


def text(memory: ModuleReport, request: ReportRequest) -> str:
    """A memory space: its figures, the working set, its buffers at the peak; then the modules."""
    page, space = memory.page, memory.space

    def lines(pen: Pen) -> list[Line]:
        title = f"Memory of {request.run.name}"
        drawn = [heading(title, page.device_type or ", ".join(page.hosts), pen)]
        if space is None:
            drawn += pen.wrap(memory.why_none("No module has figures."), "text", [(" ", "text")])
        else:
            drawn += _space_lines(space, request.most_rows, pen)
        drawn += pen.notes(memory.warnings, ())
        return drawn + (_module_lines(page, pen) if len(page.modules) > 1 else [])

    return page_text(lines, request.look)


def _space_lines(space: SpaceMemory, limit: int, pen: Pen) -> list[Line]:
    lines = header_lines(space, str(space.module), pen)
    if space.points > 1:
        nothing = np.zeros(0, np.int64)
        lines += graph_lines(space, space.peak_position, nothing, pen, GRAPH_HEIGHT)
    listed = memory_list(space, space.peak_position, "size", "none")
    shown = len(first(len(listed), limit))
    lines.append(list_heading(space, listed, pen))
    lines += table_lines(space, listed, _NO_CURSOR, 0, pen, shown + 1)
    if shown < len(listed):
        lines.append(pen.fit([(f" and {counted(len(listed) - shown, 'more buffer')}", "dim")]))
    return lines


def _module_lines(page: MemoryPage, pen: Pen) -> list[Line]:
    """The other modules there are, for `--module`."""
    lines = [pen.fit([(f"Modules ({len(page.modules)}), the largest HBM peak first", "title")])]
    for module in page.modules[:_MOST_MODULES]:
        peaks = (f"{space_name(space)} {binary_size(peak)}" for space, peak in sorted(module.peaks.items()) if peak)
        words = module.problem if module.problem else "  ".join(peaks)
        name = str(module.module)
        lines.append(pen.fit([(f" {name}", "text"), (f"  {words}", "warn" if module.problem else "dim")]))
    left = len(page.modules) - _MOST_MODULES
    return [*lines, pen.fit([(f" and {left} more", "dim")])] if left > 0 else lines


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(MODULES, BUFFERS),
    csv_table=BUFFERS,
    metrics=(DEVICE, *SPACE),
    warnings=lambda memory: (*memory.warnings, *filter(None, (memory.problem,))),
)
