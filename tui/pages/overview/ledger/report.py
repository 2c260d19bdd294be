"""The report on where a step goes, and its quantities: the owners of its time, then steps, cores and hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.findings.ops.losses import CAUSE_TITLES, CAUSE_WORDS, Loss
from tpuprof.parsers.pages.ops.parts import steps_asked
from tpuprof.parsers.pages.overview.accounts_of_ops import NOT_IN_STEPS, OpGrouping
from tpuprof.parsers.pages.overview.ledger import OwnerTime
from tpuprof.parsers.pages.overview.model import OP_ACCOUNTS, OVERVIEW, Overview
from tpuprof.parsers.pages.shared.steps import chosen_steps
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNER_WORDS, OWNERS
from tpuprof.parsers.steps.step_account import AccountRow
from tpuprof.tui.report.declared import Declared, Metrics, Part, Section, declared, drawn_by
from tpuprof.tui.report.fields import NO_REASON, Metric, Table, attribute, in_order, metric_rows, nested, object_table
from tpuprof.tui.report.page import Format, Head, ReportRequest, page_of
from tpuprof.tui.report.units import COUNT, PERCENT, TEXT, TIME_MS, VERBATIM

_NO_CAUSE = "the profile does not show who or what causes it"
VERDICT: tuple[Metric[Any], ...] = (
    attribute(
        "kind",
        VERBATIM,
        "the largest cause of lost time in a step and up to the next one; memory-bound or compute-bound where ops "
        "lose more against their roof than any cause takes",
    ),
    Metric(
        "percent",
        PERCENT,
        lambda verdict: None if verdict.fraction is None else 100 * verdict.fraction,
        "its part of that time, with other cores' waits for those that it delays; for a program bound by memory or "
        "compute, the part at the roof",
        "the verdict is unknown",
    ),
    Metric("by", TEXT, lambda verdict: verdict.by or None, "the core, host or host event that causes it", _NO_CAUSE),
    attribute("statement", VERBATIM, "the verdict in a sentence"),
)

_NO_PATTERN = "it is in most steps, or nothing distinguishes the steps that have it"
_OWNER_COLUMNS = in_order("time_ms percent between_ms worst_step worst_step_ms worst_core worst_core_ms timing")
_WHOLE = "its time in a step, and up to the next one where there is time between steps"
_CLAIMS = in_order("claimed_ms unclaimed_ms")
OWNER_TIMES: Table[Sequence[OwnerTime]] = object_table(
    "owners",
    (
        attribute("owner", VERBATIM, "; ".join(f"{owner}: {OWNER_WORDS[owner]}" for owner in OWNERS)),
        attribute("time_ms", TIME_MS, "of the mean step; over all owners they add up to it", "of a step"),
        Metric("percent", PERCENT, lambda of: 100 * of.fraction, "of the mean step", heading="share"),
        attribute("between_ms", TIME_MS, "between a step and the next, in none", "between steps"),
        attribute("worst_step", VERBATIM, "the step in which it has most", "most in step"),
        attribute("worst_step_ms", TIME_MS, "its time there, mean over cores", "there"),
        attribute("worst_core", VERBATIM, "the core on which it has most", "most on core"),
        attribute("worst_core_ms", TIME_MS, "its time there, mean over steps", "there, a step"),
        attribute("claimed_ms", TIME_MS, f"the part claimed by findings, of {_WHOLE}", "explained"),
        attribute("unclaimed_ms", TIME_MS, f"the part claimed by no finding, of {_WHOLE}", "unexplained"),
        attribute("timing", TEXT, "in which steps it is: every 4th step, from step 106 on", "when", null=_NO_PATTERN),
    ),
    (Metric("title", VERBATIM, lambda of: OWNER_TITLES[of.owner], "its name on the page", heading="owner"),),
    csv=("owner", *_OWNER_COLUMNS, *_CLAIMS),
    markdown=("title", *_OWNER_COLUMNS),
)


def _of_owner(column: int) -> Metric[AccountRow]:
    owner = OWNERS[column]
    return Metric(
        f"{owner}_ms", TIME_MS, lambda account: account.owner_ps[column], OWNER_WORDS[owner], "", OWNER_TITLES[owner]
    )


def _accounts(key: str, name: str, when: str = "") -> Table[Sequence[AccountRow]]:
    """A table of accounts: of steps, cores, hosts, or ops put together."""
    metrics = (
        attribute("name", VERBATIM, f"{when}of the {name}", f"{name} name" if name in OWNERS else name),
        attribute("time_ms", TIME_MS, f"{when}of the step, which the owners' times add up to", "time"),
        *map(_of_owner, range(len(OWNERS))),
    )
    return object_table(key, metrics, markdown=tuple(metric.key for metric in metrics))


LOSSES: Table[Sequence[Loss]] = object_table(
    "losses",
    (
        attribute("cause", VERBATIM, "; ".join(f"{cause}: {words}" for cause, words in CAUSE_WORDS.items())),
        attribute("time_ms", TIME_MS, "of the mean step; over all causes they add up to the owner loss", "of a step"),
        attribute("op", VERBATIM, "the op that loses most to it", "most in"),
        attribute("ops", COUNT, "how many ops lose time to it", "ops"),
    ),
    (Metric("title", VERBATIM, lambda of: CAUSE_TITLES[of.cause], "its name on the page", heading="cause"),),
    csv=("cause", "time_ms", "op", "ops"),
    markdown=("title", "time_ms", "op", "ops"),
)

STEPS = _accounts("steps", "step")
CORES = _accounts("cores", "core")
HOSTS = _accounts("hosts", "host")

By = Literal["step", "core", "host", OpGrouping]
"""What the account of the mean step is divided by."""

_WITH_BY = "with --by only: "
_SUBJECT = f"{_WITH_BY}the subject of the accounts; modules, scopes and ops add up to the mean step"
BY: Metric[By] = Metric("by", VERBATIM, lambda by: by, _SUBJECT)
ACCOUNTS = _accounts("accounts", "step, core, host, module, scope or op", _WITH_BY)
UNKNOWN_ACCOUNTS: Metric[None] = Metric("accounts", VERBATIM, lambda _: None, "accounts of ops", NOT_IN_STEPS)


def accounts_by(by: By) -> Table[Sequence[AccountRow]]:
    """The table of what the account is divided by."""
    return _accounts(ACCOUNTS.key, by)


_STEP_TIME = "mean duration of a step on its slowest core, which the owners' times add up to"


_PERIOD = "the same with the time up to the next step"
METRICS: tuple[Metric[Overview], ...] = (
    attribute("step_time_ms", TIME_MS, _STEP_TIME, "mean step", null=NO_REASON, name="account.step_ps"),
    attribute("period_ms", TIME_MS, _PERIOD, "a step every", null=NO_REASON, name="account.period_ps"),
    attribute("verdict", nested(VERDICT), "what bounds the program", null=NO_REASON, name="account.verdict"),
    Metric(
        "waited_for",
        TEXT,
        lambda page: (page.account.waited_for if page.account is not None else "") or None,
        "the core or host that the others wait for, in collectives, at barriers and at the end of steps",
        "cores hardly wait for each other, or no core or host waits much less than the others",
        "cores wait for",
    ),
)


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


def _by(request: ReportRequest) -> By | None:
    """What the account is divided by: by steps where some are asked for."""
    by: By | None = request.options.get("by") if request.options.get("step") is None else "step"
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
    owners = Section(OWNER_TIMES, rows, "Owners" if account else "")
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
        metrics=lambda: metric_rows(METRICS[:2], page),
        parts=(Metrics(METRICS, page), owners, *divided, *others),
        csv=Section(OWNER_TIMES, rows) if by is None else Section(accounts_by(by), content.accounts or (), limit=most),
        text=lambda pen: _report_lines(page, pen, most, *(() if by is None else ((by, content.accounts),))),
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
    _read,
    declare,
    (OWNER_TIMES, ACCOUNTS, LOSSES, HOSTS, CORES, STEPS),
    (*METRICS, BY),
    warnings=lambda content: content.page.warnings,
    check=_check,
    pictures=lambda content: _pictures(content.page),
)
