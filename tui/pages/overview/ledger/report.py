"""The report on where a step goes: the owners of its time as the main table, then steps, cores and hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.session import pages
from tpuprof.tui.pages.overview.ledger.fields import CORES, HOSTS, METRICS, OWNER_TIMES, STEPS
from tpuprof.tui.report.declared import Declared, Head, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import metric_rows
from tpuprof.tui.report.page import ReportRequest, page_of

if TYPE_CHECKING:
    from tpuprof.parsers.pages.overview.model import Overview

_report_lines = drawn_by("tpuprof.tui.pages.overview.ledger.drawing:report_lines")


def declare(page: Overview, request: ReportRequest) -> Declared:
    """The mean step by owner, the verdict, and the accounts of hosts, cores and steps."""
    account, most = page.account, request.most_rows
    owners = Section(OWNER_TIMES, () if account is None else account.owners, "Owners" if account else "")
    others = (
        Section(table, () if account is None else getattr(account, table.key), title if account else "", limit)
        for table, title, limit in ((HOSTS, "Hosts", 0), (CORES, "Cores", 0), (STEPS, "Steps", most))
    )
    unknown = {name: why for name, why in page.unknown.items() if name == STEP_TIME}
    return Declared(
        Head(f"Steps of {request.run.name}", request.run, page.hosts, page.warnings, (), page.environment.simulated),
        statement="" if account is None else account.verdict.statement,
        metrics=lambda: metric_rows(METRICS[:2], page),
        parts=(Metrics(METRICS, page), owners, *others),
        csv=owners,
        text=lambda pen: _report_lines(page, pen, most),
        unknown={"step_time_ms": why, "period_ms": why, "verdict": why} if (why := unknown.get(STEP_TIME)) else {},
    )


STEP_TIME = "performance.step_time_ms"
REPORT = declared("ledger", page_of(pages.OVERVIEW), declare, (OWNER_TIMES, HOSTS, CORES, STEPS), METRICS)
