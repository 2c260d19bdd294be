"""The account of the steps as a report's text: the waterfall, why ops take longer than at their roof, and tables."""

from __future__ import annotations

from collections.abc import Mapping

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.findings.ops.losses import CAUSE_TITLES
from tpuprof.parsers.pages.overview.ledger import Account, StepAccount
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, Owner
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, Span, StyleKey
from tpuprof.tui.pages.overview.ledger.drawing import between_line, shares_line, waterfall

_LABEL, _TIME, _SHARE = 21, 9, 7


def report_lines(page: Overview, pen: Pen, most: int) -> list[Line]:
    """The verdict, the waterfall, and the accounts of hosts, cores and steps."""
    account = page.account
    if account is None:
        return pen.wrap(page.unknown.get("performance.step_time_ms", "The steps take no time."), "strong")
    lines = [*pen.wrap(account.verdict.statement, "strong"), *waterfall(account, pen), *between_line(account, pen)]
    lines += [*shares_line(page, pen), *loss_lines(account, pen)]
    for title, accounts in (("Hosts", account.hosts), ("Cores", account.cores), ("Steps", account.steps)):
        if len(accounts) > 1:
            lines += [pen.rule(title, f"{len(accounts)}, means in each"), *_accounts(accounts, account, pen, most)]
    return lines


def loss_lines(account: StepAccount, pen: Pen) -> list[Line]:
    """What computing ops lose against their roof, by cause, with the op that loses most for each."""
    if not account.losses:
        return []
    lost = duration(sum(loss.time_ps for loss in account.losses), pen.glyphs.is_ascii)
    lines = [pen.rule("Below the roof, by cause", f"{lost} of a step")]
    for loss in account.losses:
        spans: list[Span] = [(f" {CAUSE_TITLES[loss.cause]:<{_LABEL - 1}}", "text")]
        spans.append((f"{duration(loss.time_ps, pen.glyphs.is_ascii):>{_TIME}}", "strong"))
        fraction = loss.time_ps / account.step_ps if account.step_ps else 0.0
        spans.append((f"{percent(100 * fraction):>{_SHARE}}", "text"))
        lines.append(pen.fit([*spans, (f"  {counted(loss.ops, 'op')}, most in {loss.op}", "dim")]))
    return lines


def _accounts(accounts: tuple[Account, ...], whole: StepAccount, pen: Pen, most: int) -> list[Line]:
    """A row an account: its time, then the owners that have most time, as many as there is room for."""
    owners = sorted((each for each in whole.owners if each.time_ps > 0), key=lambda each: -each.time_ps)
    room = max(1, (pen.width - 32) // 13)
    chosen = [each.owner for each in owners[:room]]
    lines = [_cells("", "time", [_SHORT.get(owner, OWNER_TITLES[owner]) for owner in chosen], pen, "dim")]
    for account in accounts[: most or None]:
        times = [duration(account.owner_ps[OWNERS.index(owner)], pen.glyphs.is_ascii) for owner in chosen]
        lines.append(_cells(account.name, duration(account.time_ps, pen.glyphs.is_ascii), times, pen, "text"))
    rest = len(accounts) - len(accounts[: most or None])
    return lines + ([pen.fit([(f" and {rest} more", "dim")])] if rest else [])


_SHORT: Mapping[Owner, str] = {
    "collective_wait": "coll. waits",
    "collective_transfer": "coll. moves",
    "host_transfer": "host transf.",
    "loss": "below roof",
}
"""Titles that are too long for a column."""


def _cells(name: str, time: str, times: list[str], pen: Pen, style: StyleKey) -> Line:
    return pen.fit([(f" {pen.text(name)[:19]:<20}{time:>10}", style), *((f"{text:>13}", style) for text in times)])
