"""The overview page in cells: what an engineer needs within a minute, the answer first.

From the top: headline figures, the verdict, why it is slow, where a step goes, the steps, the top ops, and what this
profile does not provide. `compose` fits the page to a screen; the report draws it without a height. Enter opens one
op or one step in full.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Floats, medians
from tpuprof.parsers.pages.overview.model import Overview, Step, TopOp
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, Owner
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.tui.draw.columns import ComposedGraph, Cursor, rows_from
from tpuprof.tui.draw.format import UNKNOWN, count, duration, flop_rate, percent, with_unit
from tpuprof.tui.draw.pen import LOW, NARROW, TALL, WIDE, Pen, cut_middle, rows_around, shared_prefix
from tpuprof.tui.draw.spans import CLASS_LETTER, CLASS_STYLE, Line, Span, line_width, small_bar
from tpuprof.tui.pages.overview.fields import METRICS, TOP_OPS, findings_heading, machine
from tpuprof.tui.pages.overview.findings import findings_table
from tpuprof.tui.pages.overview.headline import capture_line, group_lines, headline, latency_line, verdict
from tpuprof.tui.pages.overview.inference import drawing
from tpuprof.tui.pages.overview.ledger import drawing as ledger
from tpuprof.tui.pages.overview.ledger.drawing import OWNER_CLASS, OWNER_LETTER, Bar, shown_bars
from tpuprof.tui.pages.overview.steps import are_alike, median_ps, parts_legend, step_detail, step_graph, step_parts
from tpuprof.tui.report.fields import row_words, short_names


def class_bar(page: Overview, pen: Pen, compact: bool = False) -> list[Line]:
    """The cores' time by class of op, where the profile has no steps; see `stacked_bar`."""
    if not page.shares:
        reason = page.unknown.get("performance.device_duty_cycle_percent", "no device ops")
        return [pen.fit([(f" {UNKNOWN}: {reason}", "dim")])]
    parts = [ledger.Part(of.op_class, CLASS_LETTER[of.op_class], of.op_class, of.fraction) for of in page.shares]
    return ledger.stacked_bar(parts, pen, compact)


def _where_time_goes(page: Overview, pen: Pen, height: int | None, cursor: int | None) -> list[Line]:
    """One bar of the mean step, in a report its waterfall; without steps the time by class of op."""
    account = page.account
    if account is None:
        return class_bar(page, pen, height is not None)
    if height is not None:
        return ledger.stacked_bar(ledger.owner_parts(account), pen, compact=True, cursor=cursor)
    return [*ledger.waterfall(account, pen), *ledger.shares_line(page, pen), *ledger.between_line(account, pen)]


def top_ops_table(top_ops: Sequence[TopOp], pen: Pen, cursor: int | None = None, most: int | None = None) -> list[Line]:
    """A heading and a row an op: class, share of op time with a bar, rate, name; in a report self time and count too.

    Args:
        most: rows of a screen, the first ones or those up to the cursor; None in a report, which has all ops.
    """
    columns = _op_columns(pen.width, most is None)
    heading = " ".join(f"{title:>{cells}}" for title, cells in columns.values())
    heading += f"  {'category':<20}" if pen.width >= WIDE else ""
    lines = [pen.fit([(f"   {'':<8}{heading}  op", "dim")])]
    largest = max(op.self_time_percent for op in top_ops) or 1.0
    prefix = shared_prefix([op.name for op in top_ops])
    for row in rows_around(cursor, len(top_ops), most):
        words = row_words(TOP_OPS, tuple(columns), top_ops, row, pen.glyphs.is_ascii)
        metrics = " ".join(f"{text:>{cells}}" for text, (_, cells) in zip(words, columns.values(), strict=True))
        name = top_ops[row].name.removeprefix(prefix)
        lines.append(_op_row(top_ops[row], metrics, name, largest, row == cursor, pen))
    return lines


def _op_columns(width: int, with_totals: bool) -> dict[str, tuple[str, int]]:
    """Title and cells of the figures that a line of this width has room for, by key."""
    totals = {"self_time_ps": ("self time", 9), "occurrences": ("count", 7)} if with_totals else {}
    rates = {"gflops_per_second": ("FLOP/s", 6)} if width >= NARROW else {}
    return {"self_time_percent": ("of ops", 6), **totals, **rates}


def _op_row(op: TopOp, metrics: str, name: str, largest: float, selected: bool, pen: Pen) -> Line:
    filled, _ = small_bar(op.self_time_percent / largest, 7, pen.glyphs)
    metrics += "  "
    if pen.width >= WIDE:
        metrics += f"{cut_middle(op.hlo_category or 'unknown', 20, pen.glyphs):<20}  "
    room = max(1, pen.width - 12 - len(metrics))
    clones = _clones(op, pen)
    name = cut_middle(name, max(1, room - len(clones)), pen.glyphs) + clones
    style = CLASS_STYLE[op.op_class]
    spans: list[Span] = [(pen.glyphs.mark if selected else " ", "mark"), (CLASS_LETTER[op.op_class], style)]
    spans += [(" ", "text"), (f"{filled:<8}", style), (metrics, "cursor" if selected else "text")]
    return pen.fit([*spans, (f"{name:<{room}}", "cursor" if selected else "strong")])


def _clones(op: TopOp, pen: Pen) -> str:
    """How many clones a row adds up, after a name; nothing of one op."""
    return f" {pen.glyphs.times}{op.clones}" if op.clones > 1 else ""


def notes(page: Overview, pen: Pen) -> list[Line]:
    """Warnings, how steps were inferred, and the unknown figures, grouped by reason."""
    time, names = page.performance.step_time, short_names(METRICS)
    remarks = [*page.warnings, *([time.note] if time is not None and time.note else [])]
    return pen.notes(remarks, ((names.get(key, key), why) for key, why in page.unknown.items()))


def compose(page: Overview, pen: Pen, height: int | None, cursor: Cursor) -> ComposedGraph:
    """Puts the page together, to fit a height or (None) as a whole.

    Notes may lie below the screen's end; everything else fits from 80x20 on.
    """
    tall = height is None or height >= TALL
    lines: list[Line] = headline(page, pen)
    if tall:
        lines += [*capture_line(page, pen), pen.fit([])]
    lines += group_lines(page, pen, height)
    # on a low screen the findings stand for the advice, of which they are the better half
    most = None if height is None or height >= TALL else 2 if page.findings else 4 if height > LOW else 3
    lines += verdict(page, pen, most, height is None or not page.findings)
    lines += latency_line(page, pen) if not page.serves else []
    reasons = _why_slow(page, pen, height, cursor)
    listed = rows_from(len(lines) + 1, "findings", rows_around(cursor.finding, len(page.findings), len(reasons) - 1))
    lines += reasons
    lines.append(_device_rule(page, pen, height, cursor.owner))
    crowded = height is not None and height <= LOW and bool(page.findings)
    lines += _where_time_goes(page, pen, height, cursor.owner)
    first_step = last_step = -1
    rows = 8 if height is None else max(2 if crowded else 3, min(10, height - len(lines) - len(page.top_ops) - 5))
    if page.serves:
        lines += _latencies(page, pen, rows + 2, height is not None)
    elif page.steps:
        parts = step_parts(page.steps, page.account)
        rows = 1 if height is not None and are_alike(parts) else rows
        lines.append(_steps_rule(page, parts, pen))
        first_step = len(lines)
        lines += step_graph(page.steps, parts, pen, rows, cursor.step)
        lines.append(step_detail(page.steps, parts, cursor.step, pen))
        last_step = len(lines) - 1
    if page.top_ops:
        least = _LEAST_OP * page.top_ops[0].self_time_percent
        large = sum(op.self_time_percent >= least for op in page.top_ops)
        room = max(1 if crowded else 2, (height or 0) - len(lines) - 2)
        shown = len(page.top_ops) if height is None else min(len(page.top_ops), max(large, 2), room)
        lines.append(pen.rule("Top ops", _ops_title(page, shown, pen)))
        listed |= rows_from(len(lines) + 1, "ops", rows_around(cursor.op, len(page.top_ops), shown))
        lines += top_ops_table(page.top_ops, pen, cursor.op, None if height is None else shown)
    remarks = notes(page, pen)
    if remarks and (height is None or len(lines) + 1 < height):
        lines += [pen.rule("Notes, and what this profile cannot show"), *remarks]
    return ComposedGraph(tuple(pen.fit(line) for line in lines), first_step, last_step, listed)


def _ops_title(page: Overview, shown: int, pen: Pen) -> str:
    """How many ops there are and are shown, and what their names begin with."""
    title = f"{count(page.op_count)} HLO ops"
    if shown < len(page.top_ops):
        title = f"{shown} of the top {len(page.top_ops)}; {title}"
    if any(op.clones > 1 for op in page.top_ops):
        title = f"clones are one row; {title}"
    prefix = pen.text(shared_prefix([op.name for op in page.top_ops]))
    with_prefix = f"names in {prefix}; {title}"
    return with_prefix if prefix and len(with_prefix) + 16 < pen.width else title


def _why_slow(page: Overview, pen: Pen, height: int | None, cursor: Cursor) -> list[Line]:
    """The findings, as many as there is room for; a report gives the evidence too."""
    if not page.findings:
        return []
    most = None if height is None else 3 if height <= LOW else 4 if height < TALL else 5
    shown = len(page.findings) if most is None else min(most, len(page.findings))
    more = f"{shown} of {len(page.findings)}, " if shown < len(page.findings) else ""
    needed = max(_WIDE_REASONS, _BESIDE_TITLE + max(len(finding.title) for finding in page.findings))
    near = pen if height is None else pen.at(min(pen.width, needed))  # what a reason is worth stands near it
    title = near.rule("Why is it slow?", more + findings_heading(page, pen.glyphs.is_ascii))
    rows = findings_table(page, near, cursor.finding, most, with_evidence=height is None)
    return [(*title, (pen.glyphs.horizontal * (pen.width - near.width), "rule")), *rows]


def _latencies(page: Overview, pen: Pen, height: int, on_screen: bool) -> list[Line]:
    """Latency at percentiles, taken apart, and where there is room for it a histogram; so many lines and a heading.

    Of runs that all take the same a screen shows the median alone.
    """
    if page.inference is None or page.inference.source is None:
        return []
    times = [row.latency.total_ps for row in page.inference.percentiles]
    if on_screen and (not times or max(times) - min(times) <= _ALIKE * min(times)):
        return drawing.session_latencies(page.inference, pen, 1)
    whole = len(page.inference.percentiles) + 2
    lines = drawing.session_latencies(page.inference, pen, min(height, whole) - 1)
    room = height - whole - 2
    return lines + (drawing.histogram(page.inference, pen, room) if room >= 2 else [])


def _device_rule(page: Overview, pen: Pen, height: int | None, cursor: int | None) -> Line:
    """The heading of the device section, with the machine, or the part of the bar under the cursor.

    In a report it has a badge where the times are simulated; a screen has it above all pages.
    """
    badge: list[Span] = [(" SIMULATED ", "badge")] if page.environment.simulated and height is None else []
    room = pen.width - line_width(tuple(badge))
    phrase = machine(page.environment, pen.glyphs.is_ascii)
    if len(phrase) + 20 > room:
        phrase = phrase.removesuffix(" captured").removesuffix(" of events")
    on_host = page.shares and not page.environment.device_core_count
    title = "Time on the host's CPU" if on_host else "Device time"
    if page.account is not None:
        title = "Where a step goes"
    stands_out = False
    if cursor is not None and height is not None:
        shown = shown_bars(page.account)
        phrase = _named(shown[min(cursor, len(shown) - 1)], page, pen) if shown else phrase
        stands_out = bool(shown)
    rule = pen.at(room).rule(title, phrase)
    return (*((text, "strong" if stands_out and text == phrase else key) for text, key in rule), *badge)


def _named(bar: Bar, page: Overview, pen: Pen) -> str:
    """A part of the one bar: its name, its time, and its share of the step."""
    whole = page.account.step_ps if page.account is not None else 0.0
    share = percent(100 * bar.time_ps / whole) if whole else percent(None)
    return f"{bar.label} {duration(bar.time_ps, pen.glyphs.is_ascii)} {share}"


def _steps_rule(page: Overview, parts: Floats, pen: Pen) -> Line:
    """The heading of the step graph, with the legend of its colours."""
    time = page.performance.step_time
    kind = "step" if time is None or time.source != "modules" else "module period"
    title = f"{len(page.steps)} {kind}{'s' * (len(page.steps) != 1)}"
    legend = parts_legend(parts, pen.glyphs, pen.width - _STEPS_TITLE)
    return (*pen.narrower(line_width(legend)).rule("Steps", title), *legend)


_WIDE_REASONS, _BESIDE_TITLE = 120, 40  # cells of the reasons on a wide screen, and those beside the longest title
_LEAST_OP = 0.05  # of the first op's self time: a screen has no smaller op among the top ones
_ALIKE = 0.01  # of the shortest latency: percentiles differ by no more than this where runs are alike
_STEPS_TITLE = 11  # cells of the heading without the legend


WHY_NOT = {
    "view": "No latencies: this program serves no requests that the profile shows.",
    "sort": "Reasons are sorted by saving, ops by self time.",
    "timeline": "Only steps, modules and ops have a place on the timeline.",
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
        *([("clones", f"{count(op.clones)} ops that differ only by numbers, added up")] if op.clones > 1 else []),
        ("self time", f"{duration(op.self_time_ps, pen.glyphs.is_ascii)}, over all cores"),
        ("share of op time", f"{percent(op.self_time_percent)}, with all above it {percent(op.cumulative_percent)}"),
        ("occurrences", count(op.occurrences)),
        ("rate", _rate(op.gflops_per_second)),
    ]
    blank = pen.fit([])
    which, whose = ("the longest of them", "that op's") if op.clones > 1 else ("it", "its")
    in_ops = pen.fit([("o ", "key"), (f"shows {which} in tab 3, ops", "text")])
    on_timeline = pen.fit([("O ", "key"), (f"shows {whose} longest run in tab 4, timeline", "text")])
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
