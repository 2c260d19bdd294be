"""The input pipeline page as plain text, drawn by the functions that draw the screen."""

from __future__ import annotations

from dataclasses import replace

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.tui.draw.spans import Glyphs
from tpuprof.tui.pages.input.drawing import input_pipeline
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render


def input_text(
    page: InputPipelinePage, run: Run, width: int, glyphs: Glyphs, limit: int = 0, color: bool = False
) -> str:
    """The whole page under a line that names the run and its hosts; at most `limit` rows of ops, 0 for all."""
    width = max(width, LEAST_WIDTH)
    hosts = counted(len(page.hosts), "host") if len(page.hosts) > 3 else ", ".join(page.hosts)
    shown = replace(page, stages=page.stages[:limit]) if limit else page
    head = heading(f"Input pipeline of {run.name}", hosts, width, glyphs)
    return render([head, *input_pipeline(shown, width, None, glyphs)], color)
