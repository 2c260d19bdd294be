"""One bar of the waterfall in full: what its owner is, where it has most, which ops are behind it, where to look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget
from tpuprof.parsers.pages.findings.ops.losses import CAUSE_TITLES
from tpuprof.parsers.pages.overview.ledger import MeanStep, OwnerTime
from tpuprof.parsers.pages.overview.owner_ops import NO_OPS
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNER_WORDS, WAITS, Owner, owner_index
from tpuprof.parsers.steps.step_account import AccountRow
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.pen import Pen, cut_middle
from tpuprof.tui.draw.spans import Line, Span
from tpuprof.tui.pages.overview.ledger.drawing import Bar

_IN_OPS: frozenset[Owner] = frozenset(("collective_transfer", "host_transfer", "copy", "loss", "uncounted", "ideal"))
"""Owners whose largest op is where to look; of the others it is the step that has most of them."""

_MOST = 3  # steps and cores that are named

_NAME, _TIME, _SHARE = 32, 11, 9


def place_of(bar: Bar, account: MeanStep) -> JumpTarget:
    """Where to look for a bar: the largest op, the step that waits most for input, or the worst step's timeline."""
    of = bar.owners[0]
    largest = account.ops.get(of.owner, NO_OPS).largest
    if of.owner == "input":
        return JumpTarget("input", of.worst_step)
    if of.owner in _IN_OPS and largest:
        return JumpTarget("op-profile", largest[0].name)
    return JumpTarget("timeline", of.worst_step)


def bar_line(bar: Bar, pen: Pen) -> Line:
    """What an owner is, or which owners are put together, in one line."""
    if len(bar.owners) > 1:
        return pen.fit([(" ", "text"), (", ".join(OWNER_TITLES[each.owner] for each in bar.owners), "dim")])
    owner = bar.owners[0].owner
    return pen.fit([(f" {OWNER_TITLES[owner]}", "strong"), (f"  {OWNER_WORDS[owner]}", "dim")])


def bar_details(bar: Bar, account: MeanStep, reasons: Sequence[Finding], jump: str, pen: Pen) -> list[Line]:
    """All about a bar."""
    lines = _of_several(bar, pen) if len(bar.owners) > 1 else _of_one(bar.owners[0], account, reasons, pen)
    return [*lines, pen.fit([]), *pen.wrap(jump, "text", [("o shows ", "key")])]


def _of_one(of: OwnerTime, account: MeanStep, reasons: Sequence[Finding], pen: Pen) -> list[Line]:
    is_ascii = pen.glyphs.is_ascii
    share = f"{percent(100 * of.fraction)} of the mean step of {duration(account.step_ps, is_ascii)}"
    rows = [("a step", f"{duration(of.time_ps, is_ascii)}, {share}"), *_times(of, account, is_ascii)]
    claims = claims_on(of.owner, reasons)
    if claims or (of.owner != "ideal" and any(reason.claims for reason in reasons)):
        rows.append(("findings", _claimed(of, claims, is_ascii)))
    lines = [
        *pen.wrap(OWNER_TITLES[of.owner], "strong"),
        *pen.wrap(f"{OWNER_WORDS[of.owner]}.", "dim"),
        pen.fit([]),
        *pen.labelled(rows),
    ]
    if claims:
        lines += [pen.fit([]), _head("findings that explain a part", "a step", pen)]
        whole = of.claimed_ps + of.unclaimed_ps
        lines += [
            _row(f"{rank}  {reasons[rank - 1].title}", ps, percent(100 * ps / whole if whole else None), pen)
            for rank, ps in claims
        ]
    if of.owner == "loss" and account.losses:
        lines += [pen.fit([]), _head("why", "a step", pen)]
        lost = sum(loss.time_ps for loss in account.losses) or 1.0
        lines += [
            _row(CAUSE_TITLES[loss.cause], loss.time_ps, percent(100 * loss.time_ps / lost), pen)
            for loss in account.losses
        ]
    lines += [pen.fit([]), *_ops(of.owner, account, pen)]
    for kind, accounts in (("step", account.steps), ("core", account.cores)):
        if len(accounts) > 1:
            lines += [pen.fit([]), *_most_of(of.owner, kind, accounts, pen)]
    return lines


def _times(of: OwnerTime, account: MeanStep, is_ascii: bool) -> list[tuple[str, str]]:
    """What else there is to say of an owner's time: between steps, for whom, in which steps."""
    rows = []
    if of.between_ps > 0:
        rows.append(("between steps", f"{duration(of.between_ps, is_ascii)} more, between a step and the next"))
    if of.owner in WAITS and account.waited_for:
        rows.append(("for whom", account.waited_for))
    if of.timing:
        there, elsewhere = duration(of.timing_ps, is_ascii), duration(of.elsewhere_ps, is_ascii)
        rows.append(("since when", f"{of.timing}: {there}, in the other steps {elsewhere} on average"))
    elif len(account.steps) > 1:
        rows.append(("since when", "no pattern over the steps"))
    return rows


def claims_on(owner: Owner, reasons: Sequence[Finding]) -> list[tuple[int, float]]:
    """The place of each reason that claims time of an owner, from 1 on, and how much; no two claim the same time."""
    claimed = (sum(claim.time_ps for claim in reason.claims if claim.owner == owner) for reason in reasons)
    return [(rank, ps) for rank, ps in enumerate(claimed, 1) if ps > 0]


def _claimed(of: OwnerTime, claims: Sequence[tuple[int, float]], is_ascii: bool) -> str:
    """``2 and 4 explain 46.0 ms of 71.4 ms, none the other 25.4 ms``."""
    if not claims:
        return "none"
    *others, last = [str(rank) for rank, _ in claims]
    ranks = f"{', '.join(others)} and {last} explain" if others else f"{last} explains"
    left, whole = of.unclaimed_ps, of.claimed_ps + of.unclaimed_ps
    words = f"{ranks} {duration(of.claimed_ps, is_ascii)} of {duration(whole, is_ascii)}"
    return f"{words}, none the other {duration(left, is_ascii)}" if left >= _LEAST_LEFT * whole else words


_LEAST_LEFT = 0.0005
"""What findings leave of an owner is told from this share of its time on."""


def _most_of(owner: Owner, kind: str, accounts: Sequence[AccountRow], pen: Pen) -> list[Line]:
    """The steps or cores that have most of an owner, and what part of their time that is."""
    column = owner_index(owner)
    largest = sorted(accounts, key=lambda account: -account.owner_ps[column])[:_MOST]
    lines = [_head(f"{kind}s with most of it", "a step", pen)]
    for account in largest:
        ps = account.owner_ps[column]
        share = percent(100 * ps / account.time_ps) if account.time_ps else ""
        name = f"step {account.name}" if kind == "step" else account.name
        lines.append(_row(name, ps, share, pen))
    return lines


def _ops(owner: Owner, account: MeanStep, pen: Pen) -> list[Line]:
    """The largest ops of an owner over the capture, or that there are none."""
    ops = account.ops.get(owner, NO_OPS)
    if not ops.largest:
        return pen.wrap("It is time without an op.", "dim")
    title = "largest ops" if len(ops.largest) < ops.count else "ops"
    lines = [_head(title, "self time", pen)]
    lines += [_row(op.label, op.time_ps, percent(100 * op.fraction), pen) for op in ops.largest]
    number, time = counted(ops.count, "op"), duration(ops.time_ps, pen.glyphs.is_ascii)
    words = f"All cores, whole capture, also between steps: {number}, {time}{_PART_OF.get(owner, '')}."
    return [*lines, *pen.wrap(words, "dim")]


_PART_OF: Mapping[Owner, str] = {
    "ideal": " at the roof",
    "loss": " below the roof",
    "collective_wait": ", waiting and moving together",
    "collective_transfer": ", waiting and moving together",
}
"""Which part of its ops' time an owner has, where that is not all."""


def _of_several(bar: Bar, pen: Pen) -> list[Line]:
    lines = [*pen.wrap(bar.label, "strong"), *pen.wrap("The smallest parts of a step; i lists all of them.", "dim")]
    for of in bar.owners:
        spans: list[Span] = [(f"{OWNER_TITLES[of.owner]:<{_NAME}}", "text")]
        spans.append((f"{duration(of.time_ps, pen.glyphs.is_ascii):>{_TIME}}", "strong"))
        lines += [pen.fit([]), pen.fit([*spans, (f"{percent(100 * of.fraction):>{_SHARE}}", "text")])]
        lines += pen.wrap(f"{OWNER_WORDS[of.owner]}.", "dim", [("  ", "text")])
    return lines


def _head(name: str, time: str, pen: Pen) -> Line:
    room = _name_cells(pen)
    return pen.fit([(f"{name:<{room}}{time:>{_TIME}}{'share':>{_SHARE}}", "dim")])


def _row(name: str, ps: float, share: str, pen: Pen) -> Line:
    room = _name_cells(pen)
    label = cut_middle(pen.text(name), room - 1, pen.glyphs)
    time = f"{duration(ps, pen.glyphs.is_ascii):>{_TIME}}"
    return pen.fit([(f"{label:<{room}}", "text"), (time, "strong"), (f"{share:>{_SHARE}}", "text")])


def _name_cells(pen: Pen) -> int:
    return max(_NAME, min(60, pen.width - _TIME - _SHARE))
