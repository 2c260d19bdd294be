"""The hosts of a run and their cores compared, above the page: which one delays the others, and which to open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tpuprof.parsers.pages.hosts.model import HostsPage
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.hosts import drawing
from tpuprof.tui.pages.hosts.fields import HOSTS, with_cores
from tpuprof.tui.report.fields import help_rows
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import KeyRow
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.popup import BACK, Popup, meanings, on_panel

WIDEST_HOSTS = 144  # cells of the panel on a wide screen
_LEAST_ROWS = 8
_MOST_ROWS = 64  # the cores stand below their hosts from the beginning where all these are no more rows


_SHOWN = (
    "The hosts of the run, and their cores, side by side: which one delays the others, and by how much. Below the "
    "list is the one under the cursor: where its mean step goes, or one of its steps (`h` `l`)."
)
_ABOUT = meanings(
    ("", _SHOWN),
    (
        "late",
        "one column per step: how far the host was behind in it; a full column is the most that any host was behind.",
    ),
)


def _about(pen: Pen) -> list[Line]:
    """What the table shows, and what its columns mean."""
    return [*_ABOUT(pen), *meanings(*help_rows(HOSTS, "host"))(pen)]


class HostsPopup(Popup):
    """A table of hosts, the one under the cursor taken apart below it.

    Args:
        page: the hosts compared.
        open_host: called with the name of the host that was chosen, or with None for all of them merged; or with None
            and a core, ``host:2``.
        shown: name of the host, or the core, whose page is open; None for all.
    """

    def __init__(
        self,
        look: ScreenLook,
        title: str,
        page: HostsPage,
        open_host: Callable[[str | None, str | None], object],
        shown: str | None = None,
    ) -> None:
        super().__init__(look, title, _about)
        self._page = page
        self._open_host = open_host
        self._composed: drawing.ComposedHosts | None = None
        self._listed = with_cores(page)
        self.state = drawing.HostsState(with_cores=len(self._listed.rows) <= _MOST_ROWS)
        self.state = replace(self.state, cursor=self._first(shown))

    def _first(self, shown: str | None) -> int:
        """The row that the cursor begins on: what is shown, else the slowest host or core, else the first."""
        page, order = self._page, drawing.listed_order(self._page, self._listed, self.state)
        labels = [None if row is None else self._listed.rows[row].label for row in order]
        if shown in labels and shown is not None:
            return labels.index(shown)
        slowest = page.straggler
        if drawing.is_of_one_host(page) and page.slowest_core is not None:
            slowest = len(page.rows) + page.slowest_core
        return order.index(slowest) if slowest in order and slowest is not None else len(order) and order[0] is None

    @property
    def inner_width(self) -> int:
        """Wider than other panels: it is a table of many columns."""
        return max(8, min(self.screen_size.width, WIDEST_HOSTS) - 4)

    def row_count(self) -> int:
        """Rows that the page would like to have."""
        entries = len(self._listed.rows if self.state.with_cores else self._page.rows) + len(self._page.left_out)
        return max(_LEAST_ROWS, min(entries + 16, self.screen_size.height - 4))

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        """The page in so many rows."""
        self._composed = drawing.compose_hosts(self._page, self.state, Pen(width, self.look.glyphs), count)
        self.state = replace(self.state, first=self._composed.top)
        return [on_panel(line) for line in self._composed.lines]

    @property
    def own_keys(self) -> Sequence[KeyRow]:
        """Opening, sorting, and the step that is taken apart."""
        rows = [
            KeyRow("open", "open", "Narrow every page to the host, or the core", {"open": self._open_row}),
            KeyRow("whole", "all", "Merge all hosts again", {"whole": self._open_all}),
        ]
        state, look = self.state, self._look
        if self._page.cores:
            cores = {"group": partial(look, state.anew(with_cores=not state.with_cores))}
            rows.append(KeyRow("group", "cores", "The cores of each host below it, or not", cores))
        sorting = {
            "sort": partial(look, state.sorted_by_next(drawing.SORTS)),
            "reverse": partial(look, state.turned_round()),
        }
        rows.append(KeyRow("sort reverse", "sort", "Sort by the next column; reverse", sorting))
        if self._page.steps is not None:
            before, after = partial(self._next_step, -1), partial(self._next_step, 1)
            steps = {"left": before, "right": after}
            rows.append(KeyRow("left right", "step", "Show another step; Esc: all steps", steps))
        return rows

    @property
    def leave_key(self) -> KeyRow:
        """From a step, to all of them."""
        leave = partial(self._look, replace(self.state, step=None))
        all_steps = KeyRow("back", "all steps", "All steps again", {"back": leave})
        return BACK if self.state.step is None else all_steps

    def _open_all(self) -> None:
        self.is_open = False
        self._open_host(None, None)

    def _look(self, state: drawing.HostsState) -> None:
        self.state = state

    def _next_step(self, by: int) -> None:
        number, step = len(self._page.steps or ()), self.state.step
        if number:
            first = 0 if by > 0 else number - 1
            self.state = replace(self.state, step=first if step is None else (step + by) % number)

    def step(self, lines: int, screens: float) -> None:
        """Moves the cursor: over the hosts, those that are left out, and on through the notes."""
        drawn, place = self._composed, self.state.cursor
        if drawn is None:
            return
        row = place + lines + round(screens * max(1, drawn.list_rows - 1))
        last = len(drawn.order) + len(self._page.left_out) - 1
        if place < last < row:
            row = last  # a long way down ends at the last host first
        self.state = self.state.at(row, drawn.positions)

    @property
    def place_of_cursor(self) -> object:
        """What a motion changes."""
        return self.state

    def click(self, row: int) -> None:
        """A click puts the cursor on a host; on the cursor's it opens it."""
        drawn = self._composed
        if drawn is None:
            return
        place = row - 1 - drawn.first_list_line + drawn.top
        if drawn.first_list_line <= row - 1 < drawn.first_list_line + drawn.list_rows:
            if place == self.state.cursor:
                self._open_row()
            self.state = replace(self.state, cursor=place)

    def _open_row(self) -> None:
        order = drawing.listed_order(self._page, self._listed, self.state)
        if self.state.cursor >= len(order):  # below are hosts that can't be read, and notes
            return
        place = order[self.state.cursor]
        row = None if place is None else self._listed.rows[place]
        self.is_open = False
        if row is None or (row.core is None and drawing.is_of_one_host(self._page)):
            self._open_host(None, None)
        elif row.core is None:
            self._open_host(row.host, None)
        else:
            self._open_host(None, row.label)
