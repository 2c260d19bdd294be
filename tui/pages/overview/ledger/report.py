"""The report on where a step goes: the owners of its time as the main table, then steps, cores and hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.ops.parts import steps_asked
from tpuprof.parsers.pages.overview.ledger import owners_without
from tpuprof.parsers.pages.overview.model import LEDGER, OP_ACCOUNTS, OVERVIEW, Overview
from tpuprof.parsers.steps.step_account import AccountRow
from tpuprof.parsers.steps.what_if import OWNERS_BY_NAME, KnownOwners, Without, owners_named, without
from tpuprof.tui.pages.overview.ledger.fields import (
    ACCOUNTS,
    BY,
    CORES,
    HOSTS,
    LOSSES,
    METRICS,
    OWNER_TIMES,
    STEPS,
    UNKNOWN_ACCOUNTS,
    WITHOUT,
    WITHOUT_PARTS,
    By,
    accounts_by,
)
from tpuprof.tui.report.declared import Declared, Metrics, Part, Section, declared, drawn_by
from tpuprof.tui.report.fields import metric_rows
from tpuprof.tui.report.page import Format, Head, ReportRequest, page_of

_pictures = drawn_by("tpuprof.tui.pages.overview.ledger.picture:pictures")
_report_lines = drawn_by("tpuprof.tui.pages.overview.ledger.report_lines:report_lines")
_without_lines = drawn_by("tpuprof.tui.pages.overview.ledger.without:without_lines")


@dataclass(frozen=True)
class AccountContent:
    """What is printed."""

    page: Overview
    without: Without | None
    accounts: Sequence[AccountRow] | None = None


def read(request: ReportRequest, known: KnownOwners = OWNERS_BY_NAME) -> AccountContent:
    """Reads the overview, and the account by core and step only where owners are taken away, or that by op."""
    page, names = page_of(OVERVIEW)(request), request.options.get("without")
    accounts = _read_accounts(page, request)
    if names is None or (of := page_of(LEDGER)(request)) is None:
        return AccountContent(page, None, accounts)
    return AccountContent(page, without(of, owners_named(names, known)), accounts)


def _by(request: ReportRequest) -> By | None:
    """What the account is divided by: by steps where some are asked for."""
    by: By | None = request.options.get("by") if request.options.get("step") is None else "step"
    return by


def _read_accounts(page: Overview, request: ReportRequest) -> Sequence[AccountRow] | None:
    by, account, steps = request.options.get("by"), page.account, request.options.get("step")
    if steps is not None:
        names = steps_asked(request.session(request.run), request.host, steps).names
        return [each for each in (account.steps if account is not None else ()) if each.name in names]
    if by is None or account is None:
        return None
    if by in ("step", "core", "host"):
        found: Sequence[AccountRow] = getattr(account, f"{by}s")
        return found
    of_ops = page_of(OP_ACCOUNTS)(request)
    return None if of_ops is None else of_ops.by(by)


def check(options: Mapping[str, Any], _: Format, __: int | None, known: KnownOwners = OWNERS_BY_NAME) -> None:
    """Sees that what is to be taken away is there, and that steps are divided by nothing else."""
    if options.get("without") is not None:
        owners_named(options["without"], known)
    by = options.get("by")
    if by not in (None, "step") and options.get("step") is not None:
        sentence = f"--step shows the account of each step: --by {by} does not work with it."
        raise ProfileError("usage", sentence, "leave out --by or --step", EXIT_USAGE)


def taken_away(content: AccountContent, request: ReportRequest) -> tuple[Metrics[Any], ...]:
    """What JSON has of the steps without some owners, where that is asked for."""
    return () if request.options.get("without") is None else (Metrics((WITHOUT,), content.without),)


def declare(content: AccountContent, request: ReportRequest) -> Declared:
    """The mean step by owner, the verdict, what some owners leave, and its account by what is asked for, or by most."""
    page, account, most, taken = content.page, content.page.account, request.most_rows, content.without
    rows = () if account is None else account.owners if taken is None else owners_without(account.owners, taken)
    keys = OWNER_TIMES.markdown if taken is None else (*OWNER_TIMES.markdown, "without_ms")
    owners = Section(OWNER_TIMES, rows, "Owners" if account else "", keys=keys)
    by = _by(request)
    divided = () if by is None else _divided(content, by, most)
    others = (
        Section(table, () if account is None else getattr(account, table.key), title, limit)
        for table, title, limit in (
            (LOSSES, "Below the roof, by cause", 0),
            (HOSTS, "Hosts", 0),
            (CORES, "Cores", 0),
            (STEPS, "Steps", most),
        )
        for title in (title if account and by is None else "",)
    )
    why = page.unknown.get(STEP_TIME)
    return Declared(
        Head(f"Steps of {request.run.name}", request.run, page.hosts, page.warnings, (), page.environment.simulated),
        statement="" if account is None else account.verdict.statement,
        metrics=lambda: metric_rows(METRICS[:2], page) + ([] if taken is None else metric_rows(WITHOUT_PARTS, taken)),
        parts=(Metrics(METRICS, page), *taken_away(content, request), owners, *divided, *others),
        csv=Section(OWNER_TIMES, rows) if by is None else Section(accounts_by(by), content.accounts or (), limit=most),
        text=lambda pen: [
            *(() if taken is None else [*_without_lines(taken, pen), pen.rule("The step as it is")]),
            *_report_lines(page, pen, most, *(() if by is None else ((by, content.accounts),))),
        ],
        unknown={"step_time_ms": why, "period_ms": why, "verdict": why} if why else {},
    )


def _divided(content: AccountContent, by: By, most: int) -> tuple[Part, ...]:
    """What JSON and Markdown have of the account by what is asked for."""
    if content.accounts is None and content.page.account is not None:
        return Metrics((BY,), by), Metrics((UNKNOWN_ACCOUNTS,), None)
    title = f"By {by}" if content.accounts else ""
    return Metrics((BY,), by), Section(accounts_by(by), content.accounts or (), title, most)


STEP_TIME = "performance.step_time_ms"
REPORT = declared(
    "ledger",
    read,
    declare,
    (OWNER_TIMES, ACCOUNTS, LOSSES, HOSTS, CORES, STEPS),
    (*METRICS, WITHOUT, BY),
    warnings=lambda content: content.page.warnings,
    check=check,
    pictures=lambda content: _pictures(content.page) if content.without is None else (),
)
