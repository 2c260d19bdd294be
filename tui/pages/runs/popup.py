"""The list of runs above a page: which to open, which two to compare; what is known of them fills in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Run, newest_first
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.pages.runs import drawing, trend_drawing
from tpuprof.tui.pages.runs.drawing import DETAIL_LINES, LEAST_ROWS, ORDERS, RunListing, RunOrder
from tpuprof.tui.pages.runs.fields import RunRow
from tpuprof.tui.pages.runs.trend_drawing import SeriesRow
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.choosing import FilteredPopup
from tpuprof.tui.widgets.chrome import KeyRow, pad
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.popup import centred_top, meanings, on_panel

if TYPE_CHECKING:
    from tpuprof.parsers.session.makers.trend import Judged, TrendPoint
    from tpuprof.parsers.session.run_facts import RunFacts

_NAMES: dict[RunOrder, str] = {"time": "age", "size": "size", "step": "step time"}


_ABOUT = (
    ("", "The runs found at the path. Details of the run under the cursor are below the list."),
    ("*", "the newest run; A and B: the runs to compare."),
    ("age", "since the run's last file was written."),
    ("step", "median of the steps of one core; ~ marks the time between starts of the busiest program."),
    ("problems", "its files that can't be read completely."),
    (
        "+ - o p",
        "in the series: slower or faster than the runs before, beyond the noise; o: only this run differs; p: another "
        "program.",
    ),
)


class Series(Protocol):
    """The runs as a series, which is read when it is shown first."""

    def begin(self, runs: Sequence[Run]) -> None:
        """Reads runs, the oldest first."""

    def point(self, run: Run) -> TrendPoint | str | None:
        """The figures of a run, or why it can't be read; None as long as it has not been read."""

    def judged(self, run: Run) -> Judged | None:
        """What a run is against those before it; None as long as that is unknown."""


class RunsPopup(FilteredPopup):
    """A list of runs to open one of, or to compare two.

    Keys: j, k and the like move, Enter opens, ``/`` filters, ``s`` changes the order, ``c`` marks a run and, on another
    one, compares both; Escape ends the filter, takes the mark back, then closes.

    Args:
        runs: in any order.
        facts: what is known of a run, None as long as nothing is.
        open_run: called with the run that was chosen; the popup is closed then.
        compare: called with the older (the baseline) and the newer of two runs; None where that can't be done.
        now: seconds since 1970.
        shown: the run that is open; the cursor is on it at first, else on the newest.
        closed: called when a key or a click closed the popup, whatever the reason.
        marked: the run that is marked for comparing already.
        series: the runs as a series; None where there is no such view.
    """

    widest = 144
    FILTERS = "Only runs with these words"
    listing: RunListing

    def __init__(
        self,
        look: ScreenLook,
        title: str,
        runs: Sequence[Run],
        facts: Callable[[Run], RunFacts | None],
        open_run: Callable[[Run], object],
        compare: Callable[[Run, Run], object] | None,
        now: Callable[[], float],
        shown: Run | None = None,
        closed: Callable[[], object] = lambda: None,
        marked: Run | None = None,
        series: Series | None = None,
    ) -> None:
        super().__init__(look, title, meanings(*_ABOUT))
        self._runs = newest_first(runs)
        self._facts = facts
        self._open_run = open_run
        self._compare = compare
        self._now = now
        self._shown = shown
        self._closed = closed
        self._marked = marked
        self._series = series
        self._is_trend = False
        self.listing = RunListing()
        paths = [run.path for run in self._runs]
        self._cursor_path = shown.path if shown is not None and shown.path in paths else "".join(paths[:1])

    def list_rows(self) -> list[RunRow]:
        """The rows that match the filter, in order."""
        letter = self._letter()
        rows = [
            RunRow(run, self._facts(run), place == 0, run == self._shown, letter if run == self._marked else "")
            for place, run in enumerate(self._runs)
        ]
        rows = drawing.ordered(rows, self.listing.sort, self.listing.is_reversed)
        return drawing.matching(rows, self.filter, self._now())

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

    def cursor_in(self, rows: Sequence[RunRow]) -> int:
        """Where the cursor is: on the run that it was put on, whatever comes or is sorted around it."""
        return next((place for place, row in enumerate(rows) if row.run.path == self._cursor_path), 0)

    def row_count(self) -> int:
        """The filter, headings, the rows and the lines below them; the same with a filter, so that the panel stays."""
        return 2 + max(LEAST_ROWS, len(self._runs)) + DETAIL_LINES

    @property
    def own_keys(self) -> Sequence[KeyRow]:
        """Opening, comparing, order and filter."""
        keys = [KeyRow("open", "open", "Open the run", {"open": self.choose})]
        if self.is_typing:
            return [*keys, *self.typing_keys]
        words = "compare" if self._marked is None else f"compare with {self._letter()}"
        sentence = "Mark a run; on another one: compare both, A the older"
        if self._compare is not None and len(self._runs) > 1:
            keys.append(KeyRow("compare_ops", words, sentence, {"compare_ops": self._mark}))
        if self._is_trend:
            along = {"left": partial(self._along, -1), "right": partial(self._along, 1)}
            keys.append(KeyRow("left right", "run", "The run before, the next one", along))
            return [*keys, KeyRow("view", "list", "The list of runs again", {"view": self._turn})]
        by_next, turned = self.listing.sorted_by_next(ORDERS), self.listing.turned_round()
        orders = {"sort": partial(self._sort, by_next), "reverse": partial(self._sort, turned)}
        if self._series is not None:
            series = "The runs as a series: step time, MFU, memory, idle"
            keys.append(KeyRow("view", "trend", series, {"view": self._turn}))
        return [
            *keys,
            KeyRow("sort reverse", "order", "By age, size, step time; reverse", orders, "s"),
            self.filter_key,
        ]

    @property
    def leave_key(self) -> KeyRow:
        """It takes the mark back first."""
        if self._marked is not None and not (self.is_typing or self.filter):
            return KeyRow("back", "unmark", "Take the mark back", {"back": self._unmark})
        if self._is_trend:
            return KeyRow("back", "list", "The list of runs again", {"back": self._turn})
        return super().leave_key

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        """The filter, headings, rows around the cursor, and what is known of the run under it; or the series."""
        if self._is_trend:
            return self._trend_rows(count, width)
        listed = self.list_rows()
        cursor = self.cursor_in(listed)
        room = self._room(count)
        top = centred_top(cursor, len(listed), room)
        glyphs, now = self.look.glyphs, self._now()
        lines = [self._first_line(len(listed), width)]
        lines += map(on_panel, drawing.list_lines(listed, cursor, top, room, self.listing, now, Pen(width, glyphs)))
        lines += [((" " * width, "panel"),)] * (2 + room - len(lines))
        if room + 2 < count:
            lines += map(on_panel, drawing.detail_lines(listed[cursor] if listed else None, Pen(width, glyphs)))
        return lines[:count]

    # --- the series

    def _turn(self) -> None:
        """To the series, which begins to be read, or back to the list."""
        self._is_trend = not self._is_trend
        if self._is_trend:
            self._begin_series()

    def _begin_series(self) -> None:
        if self._series is not None:
            self._series.begin(self._runs[::-1])

    def _along(self, by: int) -> None:
        """To the run before, or the next one, by their times."""
        paths = [run.path for run in self._runs[::-1]]
        if self._cursor_path in paths:
            self._cursor_path = paths[min(max(0, paths.index(self._cursor_path) + by), len(paths) - 1)]

    def _trend_rows(self, count: int, width: int) -> list[AnyLine]:
        series, pen = self._series, Pen(width, self.look.glyphs)
        rows = [SeriesRow(run, series.point(run), series.judged(run)) for run in self._runs[::-1]] if series else []
        cursor = next((place for place, row in enumerate(rows) if row.run.path == self._cursor_path), 0)
        lines: list[AnyLine] = [pad([(trend_drawing.head_words(rows), "panel.dim")], width, "panel")]
        lines += map(on_panel, trend_drawing.trend_lines(rows, cursor, count - 1, pen))
        lines += [((" " * width, "panel"),)] * (count - len(lines))
        return lines[:count]

    @staticmethod
    def _room(count: int) -> int:
        """Rows of the list, of so many lines in all."""
        room = count - 2 - DETAIL_LINES
        return room if room >= LEAST_ROWS else max(1, count - 2)

    def _first_line(self, shown: int, width: int) -> AnyLine:
        count = len(self._runs)
        if not self.is_typing and not self.filter:
            by = self.listing.in_words(_NAMES[self.listing.sort])
            words = f"{counted(count, 'run')}, by {by}; * is the newest"
            if self._marked is not None:
                name = Pen(width, self.look.glyphs).text(self._marked.name)
                words = f"{name}: {self.look.glyphs.keyed('`c`')} on another run compares, with A the older"
                return pad([(f"{self._letter()} ", "panel.key"), (words, "panel")], width, "panel")
            return pad([(words, "panel.dim")], width, "panel")
        return self.filter_line(f"{shown:,} of {count:,}", shown, width)

    @property
    def searched(self) -> list[str]:
        """What the filter looks at in each run."""
        rows = [RunRow(run, self._facts(run), False, False, "") for run in self._runs]
        return drawing.searched_texts(rows, self._now())

    def press(self, key: str, character: str | None) -> str:
        """One key; says where the popup is closed by it."""
        said = super().press(key, character)
        if not self.is_open:
            self._closed()
        return said

    def click(self, row: int) -> None:
        """Opens a run."""
        super().click(row)
        if not self.is_open:
            self._closed()

    @property
    def total(self) -> int:
        """How many runs match the filter."""
        return len(self.list_rows())

    @property
    def cursor(self) -> int:
        """Where the cursor is: on the run that it was put on, whatever comes or is sorted around it."""
        return self.cursor_in(self.list_rows())

    @property
    def list_room(self) -> int:
        """Rows of the list above the lines on one run."""
        return self._room(self.room)

    def point(self, row: int) -> None:
        """Puts the cursor on the run of a row."""
        rows = self.list_rows()
        if rows:
            self._cursor_path = rows[self.listing.at(row, len(rows)).cursor].run.path

    def _under_cursor(self) -> Run | None:
        rows = self.list_rows()
        return rows[self.cursor_in(rows)].run if rows else None

    def choose(self) -> None:
        """Opens the run under the cursor, what is wrong with it included: its page says what that is."""
        run = self._under_cursor()
        if run is not None:
            self.is_open = False
            self._open_run(run)

    def _sort(self, listing: RunListing) -> None:
        self.listing = listing

    def _unmark(self) -> None:
        self._marked = None

    def _mark(self) -> None:
        """Marks a run, takes the mark back, or compares the marked run with another one; both need to be readable."""
        run = self._under_cursor()
        if self._compare is None or run is None or not run.hosts:
            return
        if self._marked is None or self._marked.path == run.path:
            self._marked = run if self._marked is None else None
            return
        self.is_open = False
        older, newer = newest_first((self._marked, run))[::-1]
        self._compare(older, newer)
