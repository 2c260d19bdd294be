"""One op or one step in full: the line below the page, and what Enter opens. Pure drawing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import medians
from tpuprof.parsers.pages.overview.model import Overview, Step, TopOp
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, Owner
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.tui.draw.format import count, duration, flop_rate, percent, with_unit
from tpuprof.tui.draw.pen import Pen, cut_middle
from tpuprof.tui.draw.spans import CLASS_LETTER, CLASS_STYLE, Line, Span, line_width
from tpuprof.tui.pages.overview.ledger.bars import OWNER_CLASS, OWNER_LETTER
from tpuprof.tui.pages.overview.steps import median_ps

WHY_NOT = {
    "view": "No latencies: this program serves no requests that the profile shows.",
    "sort": "Reasons are sorted by saving, ops by self time.",
    "timeline": "Only an op has a longest run; o goes to the page with more on it.",
}


def op_line(op: TopOp, pen: Pen) -> Line:
    """An op's full name in one line, as far as it fits, and what kind of op it is."""
    kind = pen.text(op.hlo_category or "category unknown")
    head: list[Span] = [(" op ", "dim")]
    room = pen.width - 4 - len(kind) - 4
    if room < 24:
        return pen.fit([*head, (cut_middle(op.name, pen.width - 5, pen.glyphs), "strong")])
    name = cut_middle(op.name, room, pen.glyphs)
    return pen.fit([*head, (name, "strong"), (f"  {pen.glyphs.dot} {kind}", "dim")])


def step_line(index: int, page: Overview, pen: Pen) -> Line:
    """When a step began and whose its time is, the largest owners first, as many as there is room for."""
    step = page.steps[index]
    spans: list[Span] = [(" step ", "dim"), (step.name, "strong"), ("  starts at ", "dim")]
    spans.append((duration(step.start_ps, pen.glyphs.is_ascii), "text"))
    for owner, ps, _ in _owners_of(index, page):
        more: Line = ((f"  {OWNER_TITLES[owner]} ", "dim"), (percent(100 * ps / step.duration_ps), "text"))
        if line_width((*spans, *more)) > pen.width:
            break
        spans += more
    return pen.fit(spans)


def _owners_of(index: int, page: Overview) -> list[tuple[Owner, float, float]]:
    """The owners of a step with their times there and in the median step, the largest first; none without an account.

    The times add up to the step.
    """
    if page.account is None:
        return []
    every = [of_step.owner_ps for of_step in page.account.steps]
    middle = medians(np.array(every, np.float64)).tolist()
    owners = [of for of in zip(OWNERS, every[index], middle, strict=True) if of[1] > 0]
    return sorted(owners, key=lambda of: -of[1])


def op_details(op: TopOp, page: Overview, pen: Pen) -> list[Line]:
    """All that the overview knows of an op."""
    rows = [
        ("rank", f"{page.top_ops.index(op) + 1} of the top {len(page.top_ops)}, by self time"),
        ("class", f"{CLASS_LETTER[op.op_class]} {op.op_class}"),
        ("HLO category", op.hlo_category or "not in the profile"),
        ("framework op type", op.category),
        ("self time", f"{duration(op.self_time_ps, pen.glyphs.is_ascii)}, over all cores"),
        ("share of op time", f"{percent(op.self_time_percent)}, with all above it {percent(op.cumulative_percent)}"),
        ("occurrences", count(op.occurrences)),
        ("rate", _rate(op.gflops_per_second)),
    ]
    blank = pen.fit([])
    in_ops = pen.fit([("o ", "key"), ("shows it in tab 3, ops", "text")])
    on_timeline = pen.fit([("O ", "key"), ("shows its longest run in tab 4, timeline", "text")])
    return [*pen.wrap(op.name, "strong"), blank, *pen.labelled(rows), blank, in_ops, on_timeline]


def step_details(index: int, page: Overview, pen: Pen) -> list[Line]:
    """A step's time by owner, which adds up to it, and how it compares with the others."""
    step, is_ascii = page.steps[index], pen.glyphs.is_ascii
    rows = [
        ("duration", f"{duration(step.duration_ps, is_ascii)}, of its {_measured_by(page, step)}"),
        ("median of all steps", duration(median_ps(page.steps), is_ascii)),
        ("starts at", f"{duration(step.start_ps, is_ascii)} in the profile"),
    ]
    time = page.performance.step_time
    if time is not None and time.source != "steps":
        rows.append(("inferred", time.note))
    owners = _owners_of(index, page)
    if not owners:
        rows.append(("where its time went", "the profile does not say"))
    if step.sparse_core is not None:
        times = (duration(ps, is_ascii) for ps in (step.sparse_core.compute_ps, step.sparse_core.idle_ps))
        rows.append(("SparseCores beside", "{} compute, {} idle".format(*times)))
    head = pen.fit([("Step ", "dim"), (step.name, "strong")])
    lines = [head, pen.fit([]), *pen.labelled(rows)]
    if owners:
        lines += [pen.fit([]), *_owner_table(step, owners, pen)]
    return [*lines, pen.fit([]), pen.fit([("o ", "key"), ("shows it in tab 4, timeline", "text")])]


def _owner_table(step: Step, owners: Sequence[tuple[Owner, float, float]], pen: Pen) -> list[Line]:
    """A row an owner: its time, its share of the step, and what the median step has of it."""
    lines = [pen.fit([(f"{'where its time goes':<24}{'time':>10}{'share':>9}{'usually':>11}", "dim")])]
    for owner, ps, usual in owners:
        times = (duration(ps, pen.glyphs.is_ascii), percent(100 * ps / step.duration_ps))
        spans: list[Span] = [
            (OWNER_LETTER[owner], CLASS_STYLE[OWNER_CLASS[owner]]),
            (f" {OWNER_TITLES[owner]:<22}", "text"),
        ]
        spans += [(f"{times[0]:>10}", "strong"), (f"{times[1]:>9}", "text")]
        lines.append(pen.fit([*spans, (f"{duration(usual, pen.glyphs.is_ascii):>11}", "dim")]))
    return lines


def _measured_by(page: Overview, step: Step) -> str:
    if not isinstance(step.breakdown, GenericBreakdown):
        return "slowest core"
    return "slowest GPU" if page.environment.device_core_count else "annotation on the host"


def _rate(gflops_per_second: float | None) -> str:
    text = flop_rate(gflops_per_second)
    if gflops_per_second is None:
        return "the profile has no FLOPs for it"
    return "no FLOPs" if text == "-" else with_unit(text, "FLOP/s")
