"""The memory page as GitHub-flavoured Markdown: what a module needs, and its buffers at the peak."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.memory.model import Buffer, MemoryPage, SpaceMemory, space_name
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.format import UNKNOWN, percent
from tpuprof.tui.pages.memory.draw.figures import figures
from tpuprof.tui.pages.memory.report.rows import ordered_rows, page_warnings
from tpuprof.tui.report.markdown import escaped, joined, table

_BUFFERS = ("", "size", "of peak", "padding", "category", "shape", "buffer", "framework op", "source")


def memory_markdown(page: MemoryPage, space: SpaceMemory | None, problem: str | None, run: Run, limit: int = 0) -> str:
    """The modules, a memory space, and its buffers at the peak; at most `limit` of them, 0 for all."""
    lines = [f"# Memory of {escaped(run.name)}", ""]
    lines += [f"- {escaped(warning)}" for warning in page_warnings(page, space)]
    if space is None:
        return joined([*lines, "", escaped(problem or page.why_no_modules or "No module has figures.")])
    name = space.name
    lines += ["", f"## {name} of {escaped(str(space.module))}", "", *table(("", ""), "lr", figures(space))]
    rows = [row for row in ordered_rows(space) if space.buffers[row].at_peak]
    shown = rows[:limit] if limit else rows
    title = f"{len(shown)} of {len(rows)}" if len(shown) < len(rows) else f"{len(rows)}"
    lines += ["", f"## Buffers at the peak ({title})", ""]
    lines += table(_BUFFERS, "rrrrlllll", (_row(rank, space.buffers[row], space) for rank, row in enumerate(shown, 1)))
    if len(page.modules) > 1:
        lines += ["", f"## Modules ({len(page.modules)})", "", *table(("module", "peaks"), "ll", _modules(page))]
    return joined(lines)


def _row(rank: int, buffer: Buffer, space: SpaceMemory) -> Sequence[str]:
    padding = UNKNOWN if buffer.expansion is None else f"{buffer.expansion:.1f}x" if buffer.padding_bytes else ""
    return (
        str(rank),
        binary_size(buffer.size_bytes),
        percent(100 * buffer.size_bytes / max(1, space.peak_bytes)),
        padding,
        buffer.category,
        buffer.shape or UNKNOWN,
        buffer.name,
        buffer.framework_op or UNKNOWN,
        buffer.source or UNKNOWN,
    )


def _modules(page: MemoryPage) -> list[tuple[str, str]]:
    return [
        (
            str(module.module),
            module.problem
            or ", ".join(f"{space_name(space)} {binary_size(peak)}" for space, peak in sorted(module.peaks.items())),
        )
        for module in page.modules
    ]
