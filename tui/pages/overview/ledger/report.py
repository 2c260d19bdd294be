"""The report on where a step goes: the owners of its time as the main table, then steps, cores and hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.overview.ledger import owners_without
from tpuprof.parsers.session import pages
from tpuprof.parsers.steps.what_if import OWNERS_BY_NAME, KnownOwners, Without, owners_named, without
from tpuprof.tui.pages.overview.ledger.fields import (
    CORES,
    HOSTS,
    LOSSES,
    METRICS,
    OWNER_TIMES,
    STEPS,
    WITHOUT,
    WITHOUT_PARTS,
)
from tpuprof.tui.report.declared import Declared, Head, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import metric_rows
from tpuprof.tui.report.page import Format, ReportRequest, page_of

if TYPE_CHECKING:
    from tpuprof.parsers.pages.overview.model import Overview
    from tpuprof.tui.draw.pen import Pen
    from tpuprof.tui.draw.spans import Line

_report_lines = drawn_by("tpuprof.tui.pages.overview.ledger.report_lines:report_lines")
_without_lines = drawn_by("tpuprof.tui.pages.overview.ledger.without:without_lines")


@dataclass(frozen=True)
class Content:
    """The overview, whose account it prints, and the steps without some owners where these are named."""

    page: Overview
    without: Without | None


def read(request: ReportRequest, known: KnownOwners = OWNERS_BY_NAME) -> Content:
    """Reads the overview, and the account by core and step only where owners are taken away.

    Args:
        known: what names of ``--without`` stand for.
    """
    page, names = page_of(pages.OVERVIEW)(request), request.options.get("without")
    if names is None or (of := page_of(pages.LEDGER)(request)) is None:
        return Content(page, None)
    return Content(page, without(of, owners_named(names, known)))


def check(options: Mapping[str, Any], _: Format, __: int | None, known: KnownOwners = OWNERS_BY_NAME) -> None:
    """Sees that what is to be taken away is there."""
    if options.get("without") is not None:
        owners_named(options["without"], known)


def taken_away(content: Content, request: ReportRequest) -> tuple[Metrics[Any], ...]:
    """What JSON has of the steps without some owners, where that is asked for."""
    return () if request.options.get("without") is None else (Metrics((WITHOUT,), content.without),)


def declare(content: Content, request: ReportRequest) -> Declared:
    """The mean step by owner, the verdict, what some owners leave, and the accounts of hosts, cores and steps."""
    page, account, most, taken = content.page, content.page.account, request.most_rows, content.without
    rows = () if account is None else account.owners if taken is None else owners_without(account.owners, taken)
    keys = OWNER_TIMES.markdown if taken is None else (*OWNER_TIMES.markdown, "without_ms")
    owners = Section(OWNER_TIMES, rows, "Owners" if account else "", keys=keys)
    others = (
        Section(table, () if account is None else getattr(account, table.key), title if account else "", limit)
        for table, title, limit in (
            (LOSSES, "Below the roof, by cause", 0),
            (HOSTS, "Hosts", 0),
            (CORES, "Cores", 0),
            (STEPS, "Steps", most),
        )
    )
    why = page.unknown.get(STEP_TIME)
    return Declared(
        Head(f"Steps of {request.run.name}", request.run, page.hosts, page.warnings, (), page.environment.simulated),
        statement="" if account is None else account.verdict.statement,
        metrics=lambda: metric_rows(METRICS[:2], page) + ([] if taken is None else metric_rows(WITHOUT_PARTS, taken)),
        parts=(Metrics(METRICS, page), *taken_away(content, request), owners, *others),
        csv=Section(OWNER_TIMES, rows),
        text=lambda pen: [*(() if taken is None else _both(taken, pen)), *_report_lines(page, pen, most)],
        unknown={"step_time_ms": why, "period_ms": why, "verdict": why} if why else {},
    )


def _both(taken: Without, pen: Pen) -> list[Line]:
    return [*_without_lines(taken, pen), pen.rule("The step as it is")]


STEP_TIME = "performance.step_time_ms"
REPORT = declared(
    "ledger",
    read,
    declare,
    (OWNER_TIMES, LOSSES, HOSTS, CORES, STEPS),
    (*METRICS, WITHOUT),
    warnings=lambda content: content.page.warnings,
    check=check,
)
