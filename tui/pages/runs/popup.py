"""The list of runs for a popup: which to open, which two to compare; what is known of them fills in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.logdir import Run, newest_first
from tpuprof.tui.draw.pen import Composed, Pen, filled
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import chosen_columns, header_line, row_lines
from tpuprof.tui.pages.runs import drawing
from tpuprof.tui.pages.runs.drawing import DETAIL_LINES, LEAST_ROWS, RunListing
from tpuprof.tui.pages.runs.fields import RUNS, ListedRuns, RunRow
from tpuprof.tui.report.fields import screen_columns
from tpuprof.tui.terminal.grammar import BY_NAME
from tpuprof.tui.widgets.chrome import KeyRow
from tpuprof.tui.widgets.lists.popup import PanelList, centred_top
from tpuprof.tui.widgets.popup import meanings

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts
    from tpuprof.parsers.session.trend import Judged, TrendPoint
    from tpuprof.tui.report.fields import Table

_TREND = "tpuprof.tui.pages.runs.trend"  # imported when the series is shown: the list stands before numpy is imported

_ABOUT = meanings(
    ("", "The runs found at the path. Details of the run under the cursor are below the list."),
    ("*", "the newest run; A and B: the runs to compare."),
    ("age", "since the run's last file was written."),
    ("step", "median of the steps of one core; ~ marks the time between ends of the busiest program."),
    ("problems", "its files that can't be read completely."),
    ("verdict", "in the series: slower or faster than the runs before, beyond the noise; odd: only this run differs."),
)


class Series(Protocol):
    """The runs as a series, which is read when it is shown first."""

    def begin(self, runs: Sequence[Run]) -> None: ...

    def point(self, run: Run) -> TrendPoint | str | None:
        """The figures of a run, or why it can't be read; None as long as it has not been read."""

    def judged(self, run: Run) -> Judged | None:
        """What a run is against those before it; None as long as that is unknown."""


class RunsList(PanelList[RunRow]):
    """A list of runs to open one of, or to compare two. The cursor is on a run, whatever comes or is sorted around it.

    Args:
        runs: in any order.
        facts: what is known of a run, None as long as nothing is.
        open_run: called with the run that was chosen.
        compare: called with the older (the baseline) and the newer of two runs; None where that can't be done.
        now: seconds since 1970.
        shown: the run that is open; the cursor is on it at first, else on the newest.
        marked: the run that is marked for comparing already.
        series: the runs as a series; None where there is no such view.
    """

    about = staticmethod(_ABOUT)
    widest = 144
    filters = "Only runs with these words"
    listing: RunListing

    def __init__(
        self,
        runs: Sequence[Run],
        facts: Callable[[Run], RunFacts | None],
        open_run: Callable[[Run], object],
        compare: Callable[[Run, Run], object] | None,
        now: Callable[[], float],
        shown: Run | None = None,
        marked: Run | None = None,
        series: Series | None = None,
    ) -> None:
        self._runs = newest_first(runs)
        self._facts = facts
        self._open_run = open_run
        self._compare = compare
        self._now = now
        self._shown = shown
        self._marked = marked
        self._series = series
        self._is_trend = False
        self.listing = RunListing()
        paths = [run.path for run in self._runs]
        self._cursor_path = shown.path if shown is not None and shown.path in paths else "".join(paths[:1])
        if marked is not None and self._cursor_path == marked.path and paths[1:]:  # that before it, else that after
            self._cursor_path = (paths[paths.index(marked.path) :] + paths[-2:-1])[1]

    @property
    def rows(self) -> list[RunRow]:
        letter = self._letter()
        rows = [
            RunRow(run, self._facts(run), place == 0, run == self._shown, letter if run == self._marked else "")
            for place, run in enumerate(self._runs)
        ]
        if self._is_trend:
            return rows[::-1]
        rows = drawing.ordered(rows, self.listing)
        return drawing.matching(rows, self.listing.words, self._now())

    def _letter(self) -> str:
        """What the marked run is beside the one under the cursor: A, the older of the two, or B."""
        if self._marked is None:
            return ""
        paths = [run.path for run in self._runs]
        marked = paths.index(self._marked.path)
        other = paths.index(self._cursor_path) if self._cursor_path in paths else marked
        return "A" if marked > other or marked == other != 0 else "B"

    def set_runs(self, runs: Sequence[Run]) -> None:
        """Shows other runs; the cursor stays on its run where that is still there."""
        self._runs = newest_first(runs)
        if self._marked not in self._runs:
            self._marked = None
        if self._is_trend:
            self._begin_series()

    @property
    def cursor(self) -> int:
        return self._cursor_in(self.rows)

    def _cursor_in(self, rows: Sequence[RunRow]) -> int:
        return next((place for place, row in enumerate(rows) if row.run.path == self._cursor_path), 0)

    def point(self, row: int) -> None:
        rows = self.rows
        if rows:
            self._cursor_path = rows[self.listing.at(row, len(rows)).cursor].run.path

    @property
    def total(self) -> int:
        return len(self._runs)

    @property
    def most_lines(self) -> int:
        return 2 + max(LEAST_ROWS, self.total) + DETAIL_LINES

    @property
    def takes_filter(self) -> bool:
        return not self._is_trend

    @property
    def searched(self) -> list[str]:
        rows = [RunRow(run, self._facts(run), False, False, "") for run in self._runs]
        return drawing.searched_texts(rows, self._now())

    @property
    def sorts(self) -> Table[ListedRuns] | None:
        return None if self._is_trend else RUNS

    @property
    def keys(self) -> Sequence[KeyRow]:
        acts, words = {"open": self._open}, "compare"
        keys = [KeyRow("open", "open", "Open the run", acts)]
        if self._marked is not None:
            keys, words = [KeyRow("open", f"compare with {self._letter()}", "Compare it with the marked run", acts)], ""
        sentence = "Mark a run; on another one: compare both, A the older"
        if self._compare is not None and self.total > 1:
            keys.append(KeyRow("compare_runs", words, sentence, {"compare_runs": self._mark}))
        if self._is_trend:
            return [*keys, KeyRow("view", "list", "The list of runs again", {"view": self._turn})]
        if self._series is not None:
            series = "The runs as a series: step time and how it changed, MFU, idle, memory"
            keys.append(KeyRow("view", "trend", series, {"view": self._turn}))
        return keys

    @property
    def leave_key(self) -> KeyRow:
        if self._marked is not None:
            return KeyRow("back", "unmark", "Take the mark back", {"back": self._unmark})
        if self._is_trend:
            return KeyRow("back", "list", "The list of runs again", {"back": self._turn})
        return super().leave_key

    def compose(self, pen: Pen, height: int) -> Composed:
        if self._is_trend:
            return self._composed_series(pen, height)
        listed, room = self.rows, self._room(height)
        cursor = self._cursor_in(listed)
        top = centred_top(cursor, len(listed), room)
        lines = [self._caption(pen), *drawing.list_lines(listed, cursor, top, room, self.listing, self._now(), pen)]
        lines = filled(lines, pen.width, 2 + room)
        if room + 2 < height:
            lines += drawing.detail_lines(listed[cursor] if listed else None, pen)
        return Composed(tuple(lines[:height]), 2, top, room)

    # --- the series

    def _turn(self) -> None:
        """To the series, which begins to be read, or back to the list."""
        self._is_trend = not self._is_trend
        if self._is_trend:
            self._begin_series()

    def _begin_series(self) -> None:
        if self._series is not None:
            self._series.begin(self._runs[::-1])

    def _composed_series(self, pen: Pen, height: int) -> Composed:
        trend, series = import_module(_TREND), self._series
        rows = [trend.row_of(run, series.point(run), series.judged(run)) for run in self._runs[::-1]] if series else []
        page = trend.Trend("", tuple(rows), None)
        above, cursor = trend.head_lines(page, pen), self.cursor
        room = max(1, height - len(above) - 1)
        top = centred_top(cursor, len(page), room)
        columns = chosen_columns(screen_columns(trend.RUNS, page, pen.glyphs), pen.width)
        shown = row_lines(columns, range(top, min(len(page), top + room)), cursor, pen)
        lines = filled([*above, header_line(columns, pen), *shown], pen.width, height)
        return Composed(tuple(lines[:height]), len(above) + 1, top, room)

    @staticmethod
    def _room(height: int) -> int:
        room = height - 2 - DETAIL_LINES
        return room if room >= LEAST_ROWS else max(1, height - 2)

    def _caption(self, pen: Pen) -> Line:
        by = self.listing.in_words(self.listing.sort)
        if self._marked is None:
            return pen.fit([(f"{counted(self.total, 'run')}, by {by}; * is the newest", "dim")])
        words = f"{self._marked.name}: Enter on another run compares, with A the older"
        return pen.fit([(f"{self._letter()} ", "key"), (words, "text")])

    def _open(self) -> str:
        """Opens the run under the cursor, or compares it with the marked one; says why it can't."""
        row, marked = self.row, self._marked
        if row is None:
            return BY_NAME["open"].absent
        if marked is not None:
            if row.run != marked:
                self._mark()
            return "" if self.is_left else "Enter on another run that can be read compares the two."
        self.is_left = True
        if row.run == self._shown:
            return f"{printable(row.run.name)} is shown already; r reads it again."
        self._open_run(row.run)
        return ""

    @property
    def selection(self) -> str | None:
        return None if self.row is None else self.row.run.name

    def _unmark(self) -> None:
        self._marked = None

    def _mark(self) -> None:
        """Marks a run, takes the mark back, or compares the marked run with another one; both need to be readable."""
        row = self.row
        if self._compare is None or row is None or not row.run.hosts:
            return
        if self._marked is None or self._marked.path == row.run.path:
            self._marked = row.run if self._marked is None else None
            return
        self.is_left = True
        older, newer = newest_first((self._marked, row.run))[::-1]
        self._compare(older, newer)
