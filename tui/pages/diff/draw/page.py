"""A comparison in cells: the verdict, how sure it is, then the changes; `compose` fits it to a screen."""

from __future__ import annotations

from dataclasses import dataclass

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.diff.model import Diff, Mark, Side
from tpuprof.tui.draw.layout import LOW, NARROW, TALL, clean, cut, cut_middle, fit, rule, shown_top, wrap
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width
from tpuprof.tui.pages.diff.draw.steps import steps_lines
from tpuprof.tui.pages.diff.draw.table import SORT_WORDS, VIEWS, Entry, Sort, ViewName, table_lines
from tpuprof.tui.pages.diff.draw.verdict import headline_mark, verdict
from tpuprof.tui.pages.diff.draw.words import per_unit

VIEW_TITLES: dict[ViewName, str] = {
    "ops": "Ops",
    "categories": "Categories",
    "time": "Where time goes",
    "steps": "Steps",
    "memory": "Memory",
    "figures": "Figures",
}
_SHORT_TITLES: dict[ViewName, str] = {**VIEW_TITLES, "categories": "Categ.", "time": "Time", "memory": "Mem"}

_WORDS: dict[Mark, tuple[str, StyleKey]] = {
    "same": ("SAME", "strong"),
    "more": ("SLOWER", "bad"),
    "less": ("FASTER", "good"),
    "new": ("NEW", "bad"),
    "gone": ("GONE", "good"),
    "unknown": ("CAN'T TELL", "warn"),
}
_DIFFERENT: tuple[str, StyleKey] = ("DIFFERENT", "warn")
"""Of runs of different programs."""


@dataclass(frozen=True, slots=True)
class View:
    """What the screen shows.

    Attributes:
        name: of the view; cursor, first: index of the row under the cursor, and of the first one that shows.
        words: the filter; hides_same: only what has changed.
    """

    name: ViewName = "ops"
    cursor: int = 0
    first: int = 0
    sort: Sort = "change"
    words: str = ""
    hides_same: bool = True


@dataclass(frozen=True, slots=True)
class Composed:
    """The page's lines; where the table's rows begin (-1 without), the first row shown and how many fit."""

    lines: tuple[Line, ...]
    first_row_line: int
    first: int
    room: int


def head_line(diff: Diff, width: int, glyphs: Glyphs) -> Line:
    """Both runs' names."""
    ascii_only = glyphs.name == "ascii"
    lead = " tpuprof-tui  DIFF  " if width >= NARROW else " DIFF  "
    tail = "? help "
    room = width - len(lead) - len(tail) - 8
    names = [clean(side.name, ascii_only) for side in (diff.before, diff.after)]
    if len(names[0]) + len(names[1]) > room:
        names = [cut_middle(name, max(6, room // 2), glyphs) for name in names]
    spans: list[Span] = [(lead, "dim"), ("A ", "key"), (names[0], "strong"), (f" {glyphs.arrow} ", "dim")]
    spans += [("B ", "key"), (names[1], "strong")]
    gap = width - line_width(tuple(spans)) - len(tail)
    return fit([*spans, (" " * max(0, gap), "text"), (tail, "dim")], width, glyphs)


def verdict_lines(diff: Diff, width: int, glyphs: Glyphs, most: int | None = None) -> list[Line]:
    """The verdict in a word and a sentence; at most so many lines."""
    word, style = _DIFFERENT if diff.different else _WORDS[headline_mark(diff)]
    lines = wrap(verdict(diff, glyphs), width, "text", glyphs, [(f" {word} ", style)], 1)
    if most is not None and len(lines) > most:
        last = "".join(text for text, _ in lines[most - 1]).rstrip()
        lines = [*lines[: most - 1], fit([(cut(f"{last} ...", width, glyphs), "text")], width, glyphs)]
    return lines


def sides_lines(diff: Diff, width: int, glyphs: Glyphs) -> list[Line]:
    """What each run is: steps, cores, device."""
    return [_side_line(name, side, width, glyphs) for name, side in (("A", diff.before), ("B", diff.after))]


def _side_line(name: str, side: Side, width: int, glyphs: Glyphs) -> Line:
    ascii_only = glyphs.name == "ascii"
    words = [clean(side.device_type or "no device", ascii_only), counted(side.core_count, "core")]
    words.append(counted(len(side.hosts), "host"))
    words.append(counted(len(side.step_ps), "step") if side.step_ps else "steps unknown")
    if side.odd_count:
        words.append(f"{side.odd_count} of them odd, left out")
    run = cut_middle(clean(side.name, ascii_only), max(12, width // 3), glyphs)
    badge: list[Span] = [(" SIMULATED ", "badge")] if side.simulated else []
    return fit([(f" {name} ", "key"), (run, "strong"), (f"  {', '.join(words)}  ", "dim"), *badge], width, glyphs)


def caution_lines(diff: Diff, width: int, glyphs: Glyphs) -> list[Line]:
    """What makes the runs hard to compare."""
    lines: list[Line] = []
    for sentence in diff.warnings:
        lines += wrap(sentence, width, "text", glyphs, [(" ! ", "warn")])
    return lines


def view_line(view: View, width: int, glyphs: Glyphs) -> Line:
    """The views by number, the one that shows in brackets."""
    titles = VIEW_TITLES if width >= 90 else _SHORT_TITLES
    spans: list[Span] = [(" ", "text")]
    for number, name in enumerate(VIEWS, 1):
        if name == view.name:
            spans += [(f"[{number} {titles[name]}]", "title"), (" ", "text")]
        else:
            spans += [(f" {number}", "key"), (f" {titles[name]} ", "dim"), (" ", "text")]
    return fit(spans, width, glyphs)


def compose(
    diff: Diff, view: View, rows: tuple[Entry, ...], total: int, width: int, height: int, glyphs: Glyphs
) -> Composed:
    """The page below the header line.

    Args:
        rows: those of the view that show, in order.
        total: rows of the view with those that are hidden.
    """
    lines = verdict_lines(diff, width, glyphs, None if height >= TALL else 3 if height > LOW or width < NARROW else 2)
    if height > LOW:
        lines += sides_lines(diff, width, glyphs)
    cautions = caution_lines(diff, width, glyphs)
    lines += cautions if height >= TALL else cautions[: 2 if height > LOW else 1]
    lines += [view_line(view, width, glyphs), _table_rule(diff, view, len(rows), total, width, glyphs)]
    if view.name == "steps":
        body = steps_lines(diff, width, glyphs)
        room = max(1, height - len(lines))
        first = max(0, min(view.first, len(body) - room))
        return Composed(tuple(lines + body[first : first + room]), -1, first, room)
    room = max(1, height - len(lines) - 1)
    first = shown_top(view.cursor, view.first, room, len(rows))
    if not rows:
        lines += wrap(_nothing(diff, view, total), width, "dim", glyphs, [(" ", "dim")])
        return Composed(tuple(lines), -1, 0, room)
    table = table_lines(diff, rows, width, glyphs, view.cursor, view.sort, first, room)
    remarks = remark_lines(diff, view.name, width, glyphs)[: max(0, room - len(rows))]
    return Composed((*lines, *table, *remarks), len(lines) + 1, first, room)


def remark_lines(diff: Diff, name: ViewName, width: int, glyphs: Glyphs) -> list[Line]:
    """What is below a table: why memory is unknown."""
    if name != "memory":
        return []
    lines: list[Line] = []
    for problem in dict.fromkeys(module.problem for module in diff.modules if module.problem):
        lines += wrap(problem, width, "dim", glyphs, [(" ? ", "dim")])
    return lines


def _table_rule(diff: Diff, view: View, count: int, total: int, width: int, glyphs: Glyphs) -> Line:
    if view.name == "steps":
        return rule("Step times", width, glyphs)
    words = f"{count:,} of {total:,}" if count < total else f"{total:,}"
    if view.words:
        words += f" with {clean(view.words, glyphs.name == 'ascii')}"
    if view.hides_same and count < total:
        words += ", same hidden (i)"
    title = table_title(diff, view.name)
    if view.name in ("ops", "categories"):
        words += f", by {SORT_WORDS[view.sort]}" if width >= 100 else ""
    return rule(title, width, glyphs, words)


def table_title(diff: Diff, name: ViewName) -> str:
    """What the figures of a view are."""
    if name == "memory":
        return "HBM of compiled modules"
    return "Figures of the overview" if name == "figures" else f"Change {per_unit(diff)}, on the mean core"


def _nothing(diff: Diff, view: View, total: int) -> str:
    """Why there are no rows."""
    if not total:
        keys = {"ops": "ops", "categories": "ops", "time": "ops", "memory": "modules", "figures": "figures"}
        return diff.unknown.get(keys.get(view.name, ""), "") or "The profiles hold none of it."
    if view.words:
        return "Nothing holds these words; Esc clears the filter."
    return f"All {total:,} are the same within the noise; i shows them."
