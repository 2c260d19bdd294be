"""The report on where a step goes: the owners of its time as the main table, then steps, cores and hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.ops.parts import steps_asked
from tpuprof.parsers.pages.overview.model import OP_ACCOUNTS, OVERVIEW, Overview
from tpuprof.parsers.pages.shared.steps import chosen_steps
from tpuprof.parsers.steps.step_account import AccountRow
from tpuprof.tui.pages.overview.ledger import fields
from tpuprof.tui.report.declared import Declared, Metrics, Part, Section, declared, drawn_by
from tpuprof.tui.report.fields import metric_rows
from tpuprof.tui.report.page import Format, Head, ReportRequest, page_of

_pictures = drawn_by("tpuprof.tui.pages.overview.ledger.picture:pictures")
_report_lines = drawn_by("tpuprof.tui.pages.overview.ledger.drawing:report_lines")


@dataclass(frozen=True)
class AccountContent:
    """What is printed."""

    page: Overview
    accounts: Sequence[AccountRow] | None


def _read(request: ReportRequest) -> AccountContent:
    """Reads the overview, and the account by op only where that is asked for."""
    page = page_of(OVERVIEW)(request)
    return AccountContent(page, _read_accounts(page, request))


def _by(request: ReportRequest) -> fields.By | None:
    """What the account is divided by: by steps where some are asked for."""
    by: fields.By | None = request.options.get("by") if request.options.get("step") is None else "step"
    return by


def _read_accounts(page: Overview, request: ReportRequest) -> Sequence[AccountRow] | None:
    by, account, steps = request.options.get("by"), page.account, request.options.get("step")
    if steps is not None:
        rows = () if account is None else account.steps
        names = [each.name for each in rows] or steps_asked(request.session(request.run), request.host, steps).names
        return rows[chosen_steps(steps, names)]
    if by is None or account is None:
        return None
    if by in ("step", "core", "host"):
        found: Sequence[AccountRow] = getattr(account, f"{by}s")
        return found
    of_ops = page_of(OP_ACCOUNTS)(request)
    return None if of_ops is None else of_ops.by(by)


def _check(options: Mapping[str, Any], _: Format, __: int | None) -> None:
    """Sees that steps are divided by nothing else."""
    by = options.get("by")
    if by not in (None, "step") and options.get("step") is not None:
        sentence = f"--step shows the account of each step: --by {by} does not work with it."
        raise ProfileError("usage", sentence, "leave out --by or --step", EXIT_USAGE)


def declare(content: AccountContent, request: ReportRequest) -> Declared:
    """The mean step by owner, the verdict, and its account by what is asked for, or by most."""
    page, account, most = content.page, content.page.account, request.most_rows
    rows = () if account is None else account.owners
    owners = Section(fields.OWNER_TIMES, rows, "Owners" if account else "")
    by = _by(request)
    divided = () if by is None else _divided(content, by, most)
    others = (
        Section(table, () if account is None else getattr(account, table.key), title, limit)
        for table, title, limit in (
            (fields.LOSSES, "Below the roof, by cause", 0),
            (fields.HOSTS, "Hosts", 0),
            (fields.CORES, "Cores", 0),
            (fields.STEPS, "Steps", most),
        )
        for title in (title if account and by is None else "",)
    )
    why = page.unknown.get(STEP_TIME)
    return Declared(
        Head(f"Steps of {request.run.name}", request.run, page.hosts, page.warnings, (), page.environment.simulated),
        statement="" if account is None else account.verdict.statement,
        metrics=lambda: metric_rows(fields.METRICS[:2], page),
        parts=(Metrics(fields.METRICS, page), owners, *divided, *others),
        csv=Section(fields.OWNER_TIMES, rows)
        if by is None
        else Section(fields.accounts_by(by), content.accounts or (), limit=most),
        text=lambda pen: _report_lines(page, pen, most, *(() if by is None else ((by, content.accounts),))),
        unknown={"step_time_ms": why, "period_ms": why, "verdict": why} if why else {},
    )


def _divided(content: AccountContent, by: fields.By, most: int) -> tuple[Part, ...]:
    """What JSON and Markdown have of the account by what is asked for."""
    if content.accounts is None and content.page.account is not None:
        return Metrics((fields.BY,), by), Metrics((fields.UNKNOWN_ACCOUNTS,), None)
    title = f"By {by}" if content.accounts else ""
    return Metrics((fields.BY,), by), Section(fields.accounts_by(by), content.accounts or (), title, most)


STEP_TIME = "performance.step_time_ms"
REPORT = declared(
    "ledger",
    _read,
    declare,
    (fields.OWNER_TIMES, fields.ACCOUNTS, fields.LOSSES, fields.HOSTS, fields.CORES, fields.STEPS),
    (*fields.METRICS, fields.BY),
    warnings=lambda content: content.page.warnings,
    check=_check,
    pictures=lambda content: _pictures(content.page),
)
