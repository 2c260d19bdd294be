"""The report on the input pipeline; a format's module is imported when it is asked for."""

from __future__ import annotations

from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.tui.report.page import Asked, Report


def read(asked: Asked) -> InputPipelinePage:
    """Reads the page."""
    return asked.session(asked.run).input_pipeline(asked.host)


def json(page: InputPipelinePage, asked: Asked) -> str:
    """The input pipeline as JSON."""
    from tpuprof.tui.pages.input.report_json import input_json  # noqa: PLC0415

    return input_json(page, asked.run, asked.most_rows)


def csv(page: InputPipelinePage, asked: Asked) -> str:
    """The input ops as CSV."""
    from tpuprof.tui.pages.input.report_csv import input_csv  # noqa: PLC0415

    return input_csv(page, asked.most_rows)


def markdown(page: InputPipelinePage, asked: Asked) -> str:
    """The input pipeline as Markdown."""
    from tpuprof.tui.pages.input.report_markdown import input_markdown  # noqa: PLC0415

    return input_markdown(page, asked.run, asked.most_rows)


def text(page: InputPipelinePage, asked: Asked) -> str:
    """The input pipeline as plain text."""
    from tpuprof.tui.pages.input.report_text import input_text  # noqa: PLC0415

    look = asked.look
    return input_text(page, asked.run, look.width, look.glyphs, asked.most_rows, look.color)


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    warnings=lambda page: page.warnings,
)
