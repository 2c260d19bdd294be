"""The memory page as plain text, drawn by the functions that draw the screen."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.memory.model import MemoryPage, SpaceMemory, space_name
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.layout import clean, fit, wrap
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.memory.draw.graph import graph_lines
from tpuprof.tui.pages.memory.draw.header import header_lines
from tpuprof.tui.pages.memory.draw.listed import memory_list
from tpuprof.tui.pages.memory.draw.table import heading as table_heading
from tpuprof.tui.pages.memory.draw.table import table_lines
from tpuprof.tui.pages.memory.report.rows import page_warnings
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render

GRAPH_HEIGHT = 14
_NO_CURSOR = -1
_MOST_MODULES = 20


def memory_text(
    page: MemoryPage,
    space: SpaceMemory | None,
    problem: str | None,
    run: Run,
    width: int,
    glyphs: Glyphs,
    limit: int = 0,
    color: bool = False,
) -> str:
    """A memory space: its figures, the working set, its buffers at the peak; at most `limit` of them, 0 for all."""
    width = max(width, LEAST_WIDTH)
    lines = [heading(f"Memory of {run.name}", page.device_type or ", ".join(page.hosts), width, glyphs)]
    if space is None:
        why = problem or page.why_no_modules or "No module has figures."
        lines += wrap(why, width, "text", glyphs, [(" ", "text")])
    else:
        lines += header_lines(space, str(space.module), width, glyphs)
        if space.points > 1:
            nothing = np.zeros(0, np.int64)
            lines += graph_lines(space, space.peak_position, nothing, width, GRAPH_HEIGHT, glyphs)
        listed = memory_list(space, space.peak_position, "size", "none")
        shown = min(len(listed), limit or len(listed))
        lines.append(table_heading(space, listed, width, glyphs))
        lines += table_lines(space, listed, _NO_CURSOR, 0, width, shown + 1, glyphs)
        if shown < len(listed):
            lines.append(fit([(f" and {counted(len(listed) - shown, 'more buffer')}", "dim")], width, glyphs))
    for warning in page_warnings(page, space):
        lines += wrap(warning, width, "text", glyphs, [(" ! ", "warn")])
    if len(page.modules) > 1:
        lines += _modules(page, width, glyphs)
    return render(lines, color)


def _modules(page: MemoryPage, width: int, glyphs: Glyphs) -> list[Line]:
    """The other modules there are, for `--module`."""
    lines = [fit([(f"Modules ({len(page.modules)}), the largest HBM peak first", "title")], width, glyphs)]
    ascii_only = glyphs.name == "ascii"
    for module in page.modules[:_MOST_MODULES]:
        spaces = "  ".join(f"{space_name(at)} {binary_size(peak)}" for at, peak in sorted(module.peaks.items()) if peak)
        words = clean(module.problem, ascii_only) if module.problem else spaces
        name = clean(str(module.module), ascii_only)
        lines.append(fit([(f" {name}", "text"), (f"  {words}", "warn" if module.problem else "dim")], width, glyphs))
    left = len(page.modules) - _MOST_MODULES
    return [*lines, fit([(f" and {left} more", "dim")], width, glyphs)] if left > 0 else lines
