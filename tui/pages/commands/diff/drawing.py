"""A comparison in cells: the verdict, how sure it is, then the changes or the steps; `compose` fits it to a screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, examples, has_words
from tpuprof.parsers.session.diff.model import Diff, Side
from tpuprof.tui.draw.format import duration
from tpuprof.tui.draw.pen import LOW, NARROW, TALL, Composed, Pen, cut_middle, cut_words
from tpuprof.tui.draw.spans import Line, Span, line_width, plain
from tpuprof.tui.draw.table import Listing, chosen_columns, header_line, row_lines
from tpuprof.tui.pages.commands.diff import changes
from tpuprof.tui.pages.commands.diff.changes import ChangeRow, ViewName
from tpuprof.tui.pages.commands.diff.fields import CHANGES, OP_COLUMNS
from tpuprof.tui.pages.commands.diff.verdict import headline_mark, verdict
from tpuprof.tui.pages.commands.diff.words import MARKS, noise_words, per_unit, relative, signed
from tpuprof.tui.report.fields import screen_columns, searched_texts

_TITLES = ("Ops", "Categories", "Where time goes", "Steps", "Memory", "Figures", "Phases", "Setup")
VIEW_TITLES: dict[ViewName, str] = dict(zip(changes.VIEWS, _TITLES, strict=True))
_SHORT_TITLES: dict[ViewName, str] = {**VIEW_TITLES, "categories": "Categ.", "time": "Time", "memory": "Mem"}
_ALL_TITLES, _GAPS = 118, 84  # cells from which the views' whole titles fit, and from which they stand further apart


@dataclass(frozen=True, slots=True)
class DiffView(Listing):
    """What the screen shows.

    Attributes:
        phase: the program whose changes show where a view has them; empty for all together.
        hides_same: only what has changed; apart: each clone of an op is a row of its own.
    """

    name: ViewName = "ops"
    sort: str = "change"
    hides_same: bool = True
    apart: bool = False
    phase: str = ""


_IN_REPORTS = DiffView(cursor=-1)


def head_line(diff: Diff, pen: Pen) -> Line:
    """Both runs' names."""
    lead = " tpuprof-tui  DIFF  " if pen.width >= NARROW else " DIFF  "
    tail = "? help "
    room = pen.width - len(lead) - len(tail) - 8
    names = [pen.text(side.name) for side in (diff.before, diff.after)]
    if len(names[0]) + len(names[1]) > room:
        names = [cut_middle(name, max(6, room // 2), pen.glyphs) for name in names]
    spans: list[Span] = [(lead, "dim"), ("A ", "key"), (names[0], "strong"), (f" {pen.glyphs.arrow} ", "dim")]
    spans += [("B ", "key"), (names[1], "strong")]
    gap = pen.width - line_width(tuple(spans)) - len(tail)
    return pen.fit([*spans, (" " * max(0, gap), "text"), (tail, "dim")])


def verdict_lines(diff: Diff, pen: Pen, most: int | None = None) -> list[Line]:
    """The verdict in a word and a sentence; at most so many lines."""
    look = MARKS[headline_mark(diff)]
    badge: Span = (f" {look.headline.upper()} ", look.headline_style)
    if diff.different:
        badge = (" DIFFERENT ", "warn")
    lines = pen.wrap(verdict(diff, pen.glyphs.is_ascii), "text", [badge], 1)
    if most is not None and len(lines) > most:
        rest = " ".join(plain(line).strip() for line in lines[most - 1 :])
        lines = [*lines[: most - 1], pen.fit([(f" {cut_words(rest, pen.width - 1, pen.glyphs)}", "text")])]
    return lines


def sides_lines(diff: Diff, pen: Pen) -> list[Line]:
    """What each run is: steps, cores, device."""
    lines = []
    for name, side in zip("AB", (diff.before, diff.after), strict=True):
        words = [pen.text(side.device_type or "no device"), counted(side.core_count, "core")]
        words.append(counted(len(side.hosts), "host"))
        words.append(counted(len(side.step_ps), "step") if side.step_ps else "steps unknown")
        if side.odd_count:
            words.append(f"{side.odd_count} of them odd, left out")
        run = cut_middle(side.name, max(12, pen.width // 3), pen.glyphs)
        badge: list[Span] = [("  ", "text"), (" SIMULATED ", "badge")] if side.simulated else []
        lines.append(pen.fit([(f" {name} ", "key"), (run, "strong"), *badge, (f"  {', '.join(words)}", "dim")]))
    return lines


def view_line(view: DiffView, pen: Pen) -> Line:
    """The views by number, the one that shows in brackets."""
    titles = VIEW_TITLES if pen.width >= _ALL_TITLES else _SHORT_TITLES
    spans: list[Span] = [(" ", "text")]
    gap: list[Span] = [(" ", "text")] if pen.width >= _GAPS else []
    for number, name in enumerate(changes.VIEWS, 1):
        title = titles[name] if pen.width >= NARROW else titles[name][:4].rstrip(".")
        if name == view.name:
            spans += [(f"[{number} {title}]", "title"), *gap]
        else:
            spans += [(f" {number}", "key"), (f" {title} ", "dim"), *gap]
    return pen.fit(spans)


def apart_lines(diff: Diff, pen: Pen) -> list[Line]:
    """A line of how each program changed by itself, where there are several."""
    if len(diff.phases) < 2 or diff.different:
        return []
    spans: list[Span] = [(" a run of ", "dim")]
    for phase in diff.phases:
        look = MARKS[phase.time.mark]
        words = f"{look.word} {relative(phase.time)}".strip()
        spans += [(f"{phase.name} ", "text"), (f"{words}  ", look.style)]
    return [pen.fit(spans)]


def compose(diff: Diff, view: DiffView, rows: tuple[ChangeRow, ...], total: int, pen: Pen, height: int) -> Composed:
    """The page below the header line, with the rows of the view that show, of `total` with those that are hidden."""
    lines = verdict_lines(diff, pen, None if height >= TALL else 3 if height > LOW or pen.width < NARROW else 2)
    if height > LOW:
        lines += sides_lines(diff, pen) + apart_lines(diff, pen)
    cautions = pen.notes(diff.warnings, ())
    lines += cautions if height >= TALL else cautions[: 2 if height > LOW else 1]
    lines += [view_line(view, pen), _table_rule(diff, view, len(rows), total, pen)]
    if view.name == "steps":
        body = steps_lines(diff, pen)
        room = max(1, height - len(lines))
        first = max(0, min(view.first, len(body) - room))
        return Composed(tuple(lines + body[first : first + room]), -1, first, room)
    room = max(1, height - len(lines) - 1)
    first = view.shown_first(room, len(rows))
    if not rows:
        lines += pen.wrap(_nothing(diff, view, total), "dim", [(" ", "dim")])
        return Composed(tuple(lines), -1, 0, room)
    table = table_lines(rows, range(first, min(len(rows), first + room)), pen, view)
    remarks = remark_lines(diff, view.name, pen)[: max(0, room - len(rows))]
    return Composed((*lines, *table, *remarks), len(lines) + 1, first, room)


def remark_lines(diff: Diff, name: ViewName, pen: Pen) -> list[Line]:
    """What is below a table: why memory or settings are unknown, and where the ops of phases are from."""
    problems = [("", module.problem) for module in diff.modules if module.problem and name == "memory"]
    if name == "setup" and "settings" in diff.unknown:
        problems.append(("", diff.unknown["settings"]))
    if name == "phases":
        late = [phase.name for phase in diff.phases if not phase.in_steps]
        where = "ops of the whole capture, whose noise is unknown: it ran outside of steps"
        problems += [("", f"{examples(late)}: {where}")] if late else []
        renamed = [f"{phase.name} is {phase.old_name} in A" for phase in diff.phases if phase.old_name]
        problems += [("", f"{examples(renamed)}: it contains most of its ops")] if renamed else []
    return pen.notes((), problems, between="")


def _table_rule(diff: Diff, view: DiffView, count: int, total: int, pen: Pen) -> Line:
    if view.name == "steps":
        return pen.rule("Step times")
    words = f"{count:,} of {total:,}" if count < total else f"{total:,}"
    if view.words:
        words += f" with {view.words}"
    if view.hides_same and count < total:
        words += ", same hidden (x)"
    if view.name == "ops" and changes.has_clones(changes.part_of(diff, view.name, view.phase)):
        words += ", clones apart (b)" if view.apart else ", clones together (b)"
    if view.name in changes.HIDING and view.name != "setup" and pen.width >= 100:
        words += f", by {view.in_words(view.sort)}"
    return pen.rule(table_title(changes.part_of(diff, view.name, view.phase), view.name), words)


def table_title(diff: Diff, name: ViewName) -> str:
    """What the figures of a view are."""
    titles: dict[ViewName, str] = {
        "memory": "HBM of compiled modules",
        "phases": "One run of each program, on its slowest core",
        "setup": "Versions, flags, profiler's options",
        "figures": "Figures of the overview",
    }
    if diff.steps is not None:
        titles["time"] = "Where the mean step goes, and what changed"
    return titles.get(name, f"Change {per_unit(diff)}, on the mean core")


def _nothing(diff: Diff, view: DiffView, total: int) -> str:
    if not total:
        key = {"memory": "modules", "figures": "figures", "phases": "phases", "setup": "settings"}.get(view.name, "ops")
        return diff.unknown.get(key) or "The profiles have none of it."
    if view.words:
        return "No row has these words; Esc clears the filter."
    return f"All {total:,} are the same within the noise; x shows them."


# --- tables


def shown(rows: Sequence[ChangeRow], view: DiffView) -> tuple[ChangeRow, ...]:
    """The rows that hold all words of the view, without those that are the same where it hides them, in order.

    Sums that add up keep their order.
    """
    kept, is_wanted = list(rows), has_words(view.words)
    if view.words.strip():
        kept = [row for row, text in zip(rows, searched_texts(CHANGES, rows), strict=True) if is_wanted(text)]
    if view.hides_same and view.name in changes.HIDING:
        kept = [row for row in kept if row.change.mark != "same"]
    if is_sortable(rows):
        kept.sort(key=lambda row: (ORDERS[view.sort](row), row.name), reverse=view.is_reversed)
    return tuple(kept)


def changed(diff: Diff, name: ViewName) -> tuple[ChangeRow, ...]:
    """The rows of a view as a report has them, in which nothing brings back what it hides."""
    return shown(changes.entries(diff, name), DiffView(name=name))


def is_sortable(rows: Sequence[ChangeRow]) -> bool:
    """Whether the rows are ops or categories, which are in no order of their own."""
    return bool(rows) and all(row.op_class is not None for row in rows)


def _by_relative(row: ChangeRow) -> tuple[bool, float, float]:
    """What is in one run only comes first."""
    change = row.change
    is_one_sided = change.mark in ("new", "gone")
    return not is_one_sided, 0.0 if is_one_sided else -abs(change.relative or 0.0), -abs(change.delta or 0.0)


_TEXTS = {"category": "category", "name in A": "old_name", "program": "program", "framework op": "framework_op"}
_TEXTS["matched by"] = "matched_by"
"""What of an op the columns of texts are of; what has none comes last."""


def _by_text(attribute: str, row: ChangeRow) -> str:
    return getattr(row.op, attribute, None) or "\uffff"


ORDERS: dict[str, Callable[[ChangeRow], Any]] = {
    "change": lambda row: -abs(row.change.delta or 0.0),
    "slower": lambda row: -(row.change.delta or 0.0),
    "faster": lambda row: row.change.delta or 0.0,
    "relative": _by_relative,
    "A": lambda row: -(row.change.before or 0.0),
    "B": lambda row: -(row.change.after or 0.0),
    "what": lambda _: 0,
    "noise": lambda row: -(row.change.noise or 0.0),
    "count": lambda row: -((row.op and (row.op.count.after or row.op.count.before)) or 0.0),
    **{title: partial(_by_text, attribute) for title, attribute in _TEXTS.items()},
}
"""What rows are sorted by, mostly titles of columns, and where that is equal by their names."""


def table_lines(rows: Sequence[ChangeRow], those: range, pen: Pen, view: Listing = _IN_REPORTS) -> list[Line]:
    """Headings, and those of the rows that are to show."""
    key = {"slower": "change", "faster": "change"}.get(view.sort, view.sort)
    columns = screen_columns(CHANGES, rows, pen.glyphs, _looks(rows, pen.width))
    columns = chosen_columns(columns, pen.width, sort=key if is_sortable(rows) else "")
    is_down = (view.sort not in ("faster", "what", *_TEXTS)) != view.is_reversed
    heading = header_line(columns, pen, key if is_sortable(rows) else "", is_down)
    return [heading, *row_lines(columns, those, view.cursor, pen)]


def _looks(rows: Sequence[ChangeRow], width: int) -> dict[str, Mapping[str, Any]]:
    """The columns of some rows, the most important first, and what of them is as wide, or called, as the rows ask."""
    kinds = {row.kind for row in rows}
    if "text" in kinds:
        longest = max(len(text or "") for row in rows for text in row.texts or ())
        each: Mapping[str, Any] = {"width": max(6, min(longest, (width - 36) // 2)), "is_left": True}
        return {"mark": {}, "name": {"title": "setting"}, "before": each, "after": each}
    has_ops = any(row.op is not None for row in rows)
    size = 9 if "bytes" in kinds else 8
    looks: dict[str, Mapping[str, Any]] = {"letter": {}} if any(row.op_class is not None for row in rows) else {}
    if "percent" not in kinds:
        looks["mark"] = {}
    looks |= {"change": {"width": size + 1}, "relative": {}, "name": {"title": "op" if has_ops else "what"}}
    looks |= {"before": {"width": size}, "after": {"width": size}}
    if any(row.phase is not None for row in rows):
        return looks | {"note": {"title": "runs, of op time", "width": 21}, "noise": {}}
    if "time" in kinds:
        looks["noise"] = {}
    if any(row.note for row in rows):
        looks["note"] = {"title": "category" if has_ops else ""}
    return looks | {key: {} for key in OP_COLUMNS if has_ops}


# --- steps

_LABEL = 4
_NARROW = 64
_REACH = 0.25  # of the typical steps' range, what the distribution shows beyond it on either side


def steps_lines(diff: Diff, pen: Pen) -> list[Line]:
    """Everything on steps; one sentence where they are unknown."""
    if diff.steps is None:
        return pen.wrap(diff.unknown.get("steps", "steps are unknown"), "dim", [(" ", "dim")])
    lines = metric_lines(diff, pen)
    lines += [pen.fit([]), pen.rule("Step by step", "from 0 to the longest")]
    longest = max((*diff.before.step_ps, *diff.after.step_ps, 1))
    lines += [_spark(name, side, longest, pen) for name, side in zip("AB", (diff.before, diff.after), strict=True)]
    lines += [pen.fit([]), pen.rule("How long steps take")]
    return lines + histogram_lines(diff, pen)


def metric_lines(diff: Diff, pen: Pen) -> list[Line]:
    """Typical, median, mean, shortest and longest step, where steps are known."""
    lines = [pen.fit([(f" {'':<9}{'A':>9} {'B':>9} {'change':>10} {'':>7} {'noise':>7}", "dim")])]
    for row in changes.step_changes(diff):
        change, look = row.change, MARKS[row.change.mark]
        before, after = duration(change.before, pen.glyphs.is_ascii, 4), duration(change.after, pen.glyphs.is_ascii, 4)
        times = f" {row.name:<9}{before:>9} {after:>9}"
        spans: list[Span] = [(times, "strong" if row.name == "typical" else "text")]
        spans.append((f" {signed(change.delta, 'time', pen.glyphs.is_ascii):>10} {relative(change):>7}", look.style))
        if change.noise is not None:
            word = f" {look.word}" if pen.width >= _NARROW else ""
            spans += [(f" {noise_words(change, pen.glyphs.is_ascii):>7}", "dim"), (word, look.style)]
        lines.append(pen.fit(spans))
    numbers = f"{'steps':<9}{len(diff.before.step_ps):>9,} {len(diff.after.step_ps):>9,}"
    odd = f"   odd, not typical: {diff.before.odd_count} and {diff.after.odd_count}"
    return [*lines, pen.fit([(f" {numbers}", "text"), (odd, "dim")])]


def _spark(name: str, side: Side, longest: int, pen: Pen) -> Line:
    """A run's steps in order, one column each, or the longest of several where there are more than columns."""
    room = max(8, pen.width - _LABEL - 2 - 24)
    values = np.array(side.step_ps, np.float64)
    typical = np.array(side.typical, np.bool_)
    cells = min(len(values), room)
    index = np.arange(len(values)) * cells // max(1, len(values))
    heights, odd = np.zeros(cells), np.zeros(cells, np.bool_)
    np.maximum.at(heights, index, values)
    np.logical_or.at(odd, index, ~typical)
    spans: list[Span] = [(f" {name:<{_LABEL - 2}} ", "dim")]
    for height, is_odd in zip(heights.tolist(), odd.tolist(), strict=True):
        spans.append((pen.glyphs.column[max(1, round(8 * height / longest))], "warn" if is_odd else "busy"))
    words = f"  {counted(len(values), 'step')}"
    return pen.fit([*spans, (words + (f", {side.odd_count} odd" if side.odd_count else ""), "dim")])


def histogram_lines(diff: Diff, pen: Pen) -> list[Line]:
    """Two rows over one axis: how many steps of each run take how long; outside of it, how many lie beyond."""
    sides = (diff.before, diff.after)
    usual = [np.array(side.step_ps, np.float64)[np.array(side.typical, np.bool_)] for side in sides]
    low, high = min(part.min() for part in usual), max(part.max() for part in usual)
    margin = max(_REACH * (high - low), 0.005 * high)
    low, high = max(0.0, low - margin), high + margin
    room = max(8, pen.width - _LABEL - 14)
    lines = []
    for name, side in zip("AB", sides, strict=True):
        values = np.array(side.step_ps, np.float64)
        # 0 is for what lies below, 1 to `room` for a bin, `room` + 1 for what lies above
        bins = np.floor((values - low) / max(high - low, 1.0) * room).astype(np.int64) + 1
        counts = np.bincount(np.clip(bins, 0, room + 1), minlength=room + 2)
        most = max(1, int(counts[1:-1].max()))
        eighths = [max(1, round(8 * number / most)) if number else 0 for number in counts[1:-1].tolist()]
        beyond = [f"{int(counts[index])} {word}" for index, word in ((0, "below"), (-1, "above")) if counts[index]]
        cells = "".join(pen.glyphs.column[height] for height in eighths)
        spans: list[Span] = [(f" {name:<{_LABEL - 2}} ", "dim"), (cells, "busy"), (f"  {', '.join(beyond)}", "warn")]
        lines.append(pen.fit(spans))
    first, last = duration(low, pen.glyphs.is_ascii, 4), duration(high, pen.glyphs.is_ascii, 4)
    gap = " " * max(1, room - len(first) - len(last))
    return [*lines, pen.fit([(" " * _LABEL + first + gap + last, "dim")])]
