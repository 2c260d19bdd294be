"""The account of the steps as a report's text: the waterfall, why ops take longer than at their roof, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.findings.ops.losses import CAUSE_TITLES
from tpuprof.parsers.pages.overview.accounts_of_ops import NOT_IN_STEPS
from tpuprof.parsers.pages.overview.ledger import MeanStep
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, Owner
from tpuprof.parsers.steps.step_account import AccountRow
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.pen import Pen, cut_middle, shared_prefix
from tpuprof.tui.draw.spans import Line, Span, StyleKey
from tpuprof.tui.pages.overview.ledger.drawing import between_line, shares_line, waterfall

_LABEL, _TIME, _SHARE = 21, 9, 7

Divided = tuple[str, "Sequence[AccountRow] | None"]
"""What the account of the mean step is divided by, and the accounts; None where these are unknown."""


def report_lines(page: Overview, pen: Pen, most: int, divided: Divided | None = None) -> list[Line]:
    """The verdict, the waterfall, and the accounts that are asked for, or those of hosts, cores and steps."""
    account = page.account
    if account is None:
        return pen.wrap(page.unknown.get("performance.step_time_ms", "The steps have no duration."), "strong")
    lines = [*pen.wrap(account.verdict.statement, "strong"), *waterfall(account, pen)]
    lines += [*shares_line(page, pen), *between_line(account, pen)]
    if divided is not None:
        by, found = divided
        if found is None:
            return [*lines, pen.rule(f"By {by}"), *pen.wrap(f"Unknown: {NOT_IN_STEPS}.", "text", [(" ", "text")])]
        prefix = shared_prefix([each.name for each in found]) if by == "scope" else ""
        about = f"{f'names in {prefix}; ' * bool(prefix)}{len(found)}, {_MEANS[by]}"
        named = [replace(each, name=each.name.removeprefix(prefix)) for each in found]
        return [*lines, pen.rule(f"By {by}", about), *_accounts(named, account, pen, most)]
    lines += loss_lines(account, pen)
    for title, accounts in (("Hosts", account.hosts), ("Cores", account.cores), ("Steps", account.steps)):
        if len(accounts) > 1:
            lines += [pen.rule(title, f"{len(accounts)}, means in each"), *_accounts(accounts, account, pen, most)]
    return lines


_MEANS = {
    **dict.fromkeys(("step", "core", "host"), "means in each"),
    **dict.fromkeys(("module", "scope", "op"), "which add up to the mean step"),
}


def loss_lines(account: MeanStep, pen: Pen) -> list[Line]:
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


def _accounts(accounts: Sequence[AccountRow], whole: MeanStep, pen: Pen, most: int) -> list[Line]:
    """A row an account: its time, then the owners that have most time, as many as there is room for."""
    owners = sorted((each for each in whole.owners if each.time_ps > 0), key=lambda each: -each.time_ps)
    longest = max((len(pen.text(account.name)) for account in accounts), default=0)
    names = max(_NAME, min(longest, pen.width - _OF_TIMES))
    room = max(1, (pen.width - names - _OF_NAME) // _OF_OWNER)
    chosen = [each.owner for each in owners[:room]]
    titles = [_SHORT.get(owner, OWNER_TITLES[owner]) for owner in chosen]
    lines = [_cells("", "time", titles, names, pen, "dim")]
    for account in accounts[: most or None]:
        times = [duration(account.owner_ps[OWNERS.index(owner)], pen.glyphs.is_ascii) for owner in chosen]
        lines.append(_cells(account.name, duration(account.time_ps, pen.glyphs.is_ascii), times, names, pen, "text"))
    rest = len(accounts) - len(accounts[: most or None])
    return lines + ([pen.fit([(f" and {rest} more", "dim")])] if rest else [])


_NAME, _OF_NAME, _OF_OWNER = 19, 13, 13
_OF_TIMES = _OF_NAME + 3 * _OF_OWNER
"""Cells of the shortest column of names, of what stands around it, of an owner, and that long names leave to times."""

_SHORT: Mapping[Owner, str] = {
    "collective_wait": "coll. waits",
    "collective_transfer": "coll. moves",
    "host_transfer": "host transf.",
    "loss": "below roof",
}
"""Titles that are too long for a column."""


def _cells(name: str, time: str, times: list[str], names: int, pen: Pen, style: StyleKey) -> Line:
    label = f" {cut_middle(pen.text(name), names, pen.glyphs):<{names + 1}}{time:>10}"
    return pen.fit([(label, style), *((f"{text:>{_OF_OWNER}}", style) for text in times)])
