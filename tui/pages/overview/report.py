"""The report on the overview; a format's module is imported when it is asked for."""

from __future__ import annotations

from dataclasses import replace

from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.report.page import Asked, Report


def read(asked: Asked) -> Overview:
    """Reads the page."""
    return asked.session(asked.run).overview(asked.host)


def _limited(page: Overview, asked: Asked) -> Overview:
    """The page with as many rows in its main table, the top ops, as are asked for."""
    return replace(page, top_ops=page.top_ops[: asked.limit]) if asked.limit else page


def json(page: Overview, asked: Asked) -> str:
    """The overview as JSON."""
    from tpuprof.tui.pages.overview.report_json import overview_json  # noqa: PLC0415

    return overview_json(_limited(page, asked), asked.run)


def csv(page: Overview, asked: Asked) -> str:
    """The top ops as CSV."""
    from tpuprof.tui.pages.overview.report_csv import overview_csv  # noqa: PLC0415

    return overview_csv(_limited(page, asked))


def markdown(page: Overview, asked: Asked) -> str:
    """The overview as Markdown."""
    from tpuprof.tui.pages.overview.report_markdown import overview_markdown  # noqa: PLC0415

    return overview_markdown(_limited(page, asked), asked.run)


def text(page: Overview, asked: Asked) -> str:
    """The overview as plain text."""
    from tpuprof.tui.pages.overview.report_text import overview_text  # noqa: PLC0415

    look = asked.look
    return overview_text(_limited(page, asked), asked.run, look.width, look.glyphs, look.color)


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    warnings=lambda page: page.warnings,
)
