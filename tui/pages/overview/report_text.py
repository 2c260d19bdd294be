"""The overview as plain text."""

from __future__ import annotations

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.draw.spans import Glyphs
from tpuprof.tui.pages.overview.drawing import overview as draw_overview
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render


def overview_text(page: Overview, run: Run, width: int, glyphs: Glyphs, color: bool = False) -> str:
    """The whole overview page under a line that names the run and its hosts; `width` is in cells."""
    width = max(width, LEAST_WIDTH)
    hosts = counted(len(page.hosts), "host") if len(page.hosts) > 3 else ", ".join(page.hosts)
    head = heading(f"Overview of {run.name}", hosts, width, glyphs)
    return render([head, *draw_overview(page, width, None, glyphs)], color)
