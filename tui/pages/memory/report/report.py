"""The memory page in every format."""

from __future__ import annotations

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.memory.model import MemoryPage, SpaceMemory
from tpuprof.tui.report.render import Format, Look


def memory_report(
    page: MemoryPage,
    space: SpaceMemory | None,
    problem: str | None,
    run: Run,
    form: Format,
    look: Look,
    limit: int = 0,
) -> str:
    """The report.

    Args:
        space: the memory space to report on; None where no module has figures, and `problem` or the page says why.
        limit: most buffers, 0 for all.
    """
    if form == "json":
        from tpuprof.tui.pages.memory.report.json import memory_json  # noqa: PLC0415

        return memory_json(page, space, problem, run, limit)
    if form == "csv":
        from tpuprof.tui.pages.memory.report.csv import memory_csv  # noqa: PLC0415

        return memory_csv(space, limit)
    if form == "md":
        from tpuprof.tui.pages.memory.report.markdown import memory_markdown  # noqa: PLC0415

        return memory_markdown(page, space, problem, run, limit)
    from tpuprof.tui.pages.memory.report.text import memory_text  # noqa: PLC0415
    from tpuprof.tui.report.text_report import glyphs_for  # noqa: PLC0415

    glyphs = glyphs_for(look.ascii_only, look.color)
    return memory_text(page, space, problem, run, look.width, glyphs, limit, look.color)
