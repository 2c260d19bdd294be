"""Prints pages as the command `report` does, without a profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.tui.report.page import Format, Report, ReportRequest, TextLook

LOOK = TextLook(width=100, ascii_only=False, color=False)


def _no_session(run: Run) -> Any:
    raise AssertionError(f"nothing is read of {run.name}: the page is there")


def asked_of(
    run: Run,
    form: Format,
    look: TextLook = LOOK,
    limit: int | None = None,
    host: str | None = None,
    session: Callable[[Run], Any] = _no_session,
    **options: Any,
) -> ReportRequest:
    """What a call of `report` for that run asks for."""
    logdir = Logdir("/logs", (run,), (), ())
    return ReportRequest(logdir, None, host, session, form, look, limit, options)


def printed(report: Report[Any], content: Any, run: Run, form: Format, look: TextLook = LOOK, limit: int = 0) -> str:
    made = report.writers[form](content, asked_of(run, form, look, limit))
    assert not callable(made)
    return made if isinstance(made, str) else "".join(made)
