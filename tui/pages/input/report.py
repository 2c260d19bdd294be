"""Picks the format of the input pipeline's report; each format's module is imported when it is asked for."""

from __future__ import annotations

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.tui.report.render import Format, Look


def input_report(page: InputPipelinePage, run: Run, form: Format, look: Look, limit: int = 0) -> str:
    """The input pipeline in a format; at most `limit` ops, or all of them for 0."""
    if form == "json":
        from tpuprof.tui.pages.input.report_json import input_json  # noqa: PLC0415

        return input_json(page, run, limit)
    if form == "csv":
        from tpuprof.tui.pages.input.report_csv import input_csv  # noqa: PLC0415

        return input_csv(page, limit)
    if form == "md":
        from tpuprof.tui.pages.input.report_markdown import input_markdown  # noqa: PLC0415

        return input_markdown(page, run, limit)
    from tpuprof.tui.pages.input.report_text import input_text  # noqa: PLC0415
    from tpuprof.tui.report.text_report import glyphs_for  # noqa: PLC0415

    return input_text(page, run, look.width, glyphs_for(look.ascii_only, look.color), limit, look.color)
