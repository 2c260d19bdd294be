"""Out-of-memory errors of a log as a report; each format's part is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tpuprof.parsers.memory.oom.model import OomLog
    from tpuprof.parsers.memory.oom.triage import Triage
    from tpuprof.tui.report.page import Look

OomFormat = Literal["text", "json", "md"]
OOM_FORMATS: tuple[OomFormat, ...] = ("text", "json", "md")


def oom_report(log: OomLog, path: str, form: OomFormat, look: Look, limit: int = 0) -> str:
    """The errors in a format.

    Args:
        path: of the log, for people; ``-`` for standard input.
        look: of a text report.
        limit: buffers of each error at most; 0 for all.
    """
    from tpuprof.parsers.memory.oom.triage import triage_of_report  # noqa: PLC0415 - brings numpy

    triages: Sequence[Triage] = [triage_of_report(report, shown_name(path)) for report in log.reports]
    if form == "json":
        from tpuprof.tui.pages.oom.report.json import oom_json  # noqa: PLC0415

        return oom_json(log, triages, path, limit)
    if form == "md":
        from tpuprof.tui.pages.oom.report.markdown import oom_markdown  # noqa: PLC0415

        return oom_markdown(log, triages, limit)
    from tpuprof.tui.pages.oom.report.text import oom_text  # noqa: PLC0415

    return oom_text(log, triages, look.width, look.glyphs, limit, look.color)


def shown_name(path: str) -> str:
    """A log's name before a line number: its last part, ``stdin`` for standard input."""
    return "stdin" if path == "-" else path.rstrip("/").rpartition("/")[2] or path
