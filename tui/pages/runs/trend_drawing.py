"""The runs of a log folder as a series: a row of columns for each figure, the oldest run at the left, and changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.format import UNKNOWN, duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, Span, StyleKey

if TYPE_CHECKING:  # the list stands before numpy is imported
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.makers.trend import Judged, TrendPoint

_NAME, _VALUE = 11, 11
_TALL = 16
"""From this many lines on, a column has two lines."""

MARKS = {"slower": "+", "faster": "-", "odd": "o", "other program": "p"}
"""The marks of runs that differ from those before them."""


@dataclass(frozen=True)
class SeriesRow:
    """A run of the series.

    Attributes:
        point: its figures, or why it can't be read; None until it has been read.
        judged: how it compares with the level before; None until all runs have been read.
    """

    run: Run
    point: TrendPoint | str | None
    judged: Judged | None

    @property
    def known(self) -> TrendPoint | None:
        """Its figures, where they are known."""
        return None if isinstance(self.point, str) else self.point


_Figure = tuple[str, Callable[["TrendPoint"], "float | None"], Callable[["float | None", bool], str], StyleKey]
_FIGURES: tuple[_Figure, ...] = (
    ("step time", lambda of: of.step_ps, duration, "busy"),
    ("MFU", lambda of: of.mfu, lambda value, _: percent(None if value is None else 100 * value), "class.compute"),
    ("memory", lambda of: of.memory_bytes, lambda value, _: _size(value), "class.copy"),
    ("idle", lambda of: of.idle_percent, lambda value, _: percent(value), "class.idle"),
)


def _size(value: float | None) -> str:
    return UNKNOWN if value is None else binary_size(int(value))


def window(count: int, cursor: int, room: int) -> range:
    """The runs that are shown, as many as there is room for, with the cursor in the middle where possible."""
    first = min(max(0, cursor - room // 2), max(0, count - room))
    return range(first, min(count, first + room))


def trend_lines(rows: Sequence[SeriesRow], cursor: int, count: int, pen: Pen) -> list[Line]:
    """At most `count` lines: figures from 0 on, marks of changes, and the run under the cursor.

    Args:
        rows: the oldest first.
    """
    room = max(pen.width - _NAME - _VALUE - 2, 1)
    shown = window(len(rows), cursor, room)
    here = rows[cursor] if cursor < len(rows) else None
    height = 2 if count >= _TALL else 1
    lines: list[Line] = []
    for title, read, words, style in _FIGURES:
        values = [None if (point := rows[at].known) is None else read(point) for at in shown]
        value = None if here is None or here.known is None else read(here.known)
        text = UNKNOWN if value is None else words(value, pen.glyphs.is_ascii)
        lines += _columns(title, values, text, style, height, pen)
    marks = "".join(MARKS.get("" if (of := rows[at].judged) is None else of.verdict, " ") for at in shown)
    lines.append(pen.fit([(f" {'change':<{_NAME}}", "dim"), (marks, "warn")]))
    pointer = " " * (cursor - shown.start) + pen.glyphs.up if here is not None else ""
    lines.append(pen.fit([(" " * (_NAME + 1), "dim"), (pointer, "mark")]))
    lines += detail_lines(here, pen)
    return lines[:count]


def _columns(
    title: str, values: Sequence[float | None], text: str, style: StyleKey, height: int, pen: Pen
) -> list[Line]:
    """One figure of all runs that show: columns from 0 to the largest, and that of the run under the cursor."""
    glyphs = pen.glyphs.column
    top = len(glyphs) - 1
    most = max((value for value in values if value is not None), default=0.0)
    lines = []
    for row in range(height):
        cells = []
        for value in values:
            filled = 0 if value is None or not most else max(1, round(value / most * top * height))
            cells.append(" " if value is None else glyphs[min(max(filled - top * (height - 1 - row), 0), top)])
        is_last = row == height - 1
        head: Span = (f" {title if is_last else '':<{_NAME}}", "dim")
        last: Span = (f"{text if is_last else '':>{_VALUE}}", "text")
        lines.append(pen.fit([head, ("".join(cells), style), last]))
    return lines


def detail_lines(row: SeriesRow | None, pen: Pen) -> list[Line]:
    """The run under the cursor, and how it compares with those before it."""
    if row is None:
        return [pen.rule(""), pen.fit([])]
    return [pen.rule(row.run.name), *pen.wrap(verdict_words(row), "text", [(" ", "text")])]


def verdict_words(row: SeriesRow) -> str:
    """How a run compares with the level before it, a sentence."""
    if row.point is None:
        return "It is being read."
    if isinstance(row.point, str):
        return row.point
    if row.point.step_ps is None:
        return f"Its step time is unknown: {row.point.why_no_step}."
    of = row.judged
    if of is None:
        return "It is compared with the runs before it once all are read."
    change, noise = (None if value is None else f"{100 * value:.1f}%" for value in (_absolute(of.change), of.noise))
    if of.verdict == "first":
        return "It is the first run with a step time."
    if of.verdict == "other program":
        return "It runs another program than the run before it: a new level begins."
    if change is None or noise is None:
        return "Its noise is unknown, so a change may be noise."
    before = f"than the runs before it ({duration(of.before_ps)})"
    if of.verdict == "noise":
        return f"No change: its step differs by {change} from the runs before it, and up to {noise} is noise."
    faster = (of.change or 0.0) < 0
    words = f"Its step is {change} {'shorter' if faster else 'longer'} {before}; noise is {noise}."
    if of.verdict == "odd":
        return f"{words} Only this run differs: the next ones are like those before it."
    return f"{words} A new level begins."


def _absolute(value: float | None) -> float | None:
    return None if value is None else abs(value)


def head_words(rows: Sequence[SeriesRow]) -> str:
    """How many runs there are, how many are read, and what the marks mean."""
    read = sum(row.point is not None for row in rows)
    so_far = "" if read == len(rows) else f", {read:,} read"
    marks = ", ".join(f"{mark} {word}" for word, mark in MARKS.items())
    return f"{counted(len(rows), 'run')}{so_far}, oldest first; {marks}"
