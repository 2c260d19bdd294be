"""The hosts of a run and their cores compared, for a popup: which one delays the others, and which to open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.pages.hosts.model import HostsPage
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.pages.hosts import drawing
from tpuprof.tui.pages.hosts.fields import HOSTS, LISTED, with_cores
from tpuprof.tui.report.fields import help_rows
from tpuprof.tui.widgets.chrome import KeyRow
from tpuprof.tui.widgets.lists.popup import PanelList
from tpuprof.tui.widgets.popup import BACK, Lines, meanings

_LEAST_ROWS = 8
_MOST_ROWS = 64  # the cores stand below their hosts from the beginning where all these are no more rows

_SHOWN = (
    "The hosts of the run, and their cores, side by side: which one delays the others, and by how much. Below the "
    "list is the one under the cursor: where its mean step goes, or one of its steps (h l)."
)
_ABOUT = meanings(
    ("", _SHOWN),
    (
        "late",
        "one column per step: how far the host was behind in it; a full column is the most that any host was behind.",
    ),
)


class HostsList(PanelList[int | None]):
    """A table of hosts, the one under the cursor taken apart below it. Below the hosts are those left out, and notes.

    Args:
        page: the hosts compared.
        open_host: called with the name of the host that was chosen, or with None for all of them merged; or with None
            and a core, ``host:2``.
        shown: name of the host, or the core, whose page is open; None for all.
    """

    about: Lines = staticmethod(lambda pen: [*_ABOUT(pen), *meanings(*help_rows(HOSTS, "host"))(pen)])
    widest = 144
    takes_filter = False
    sorts = LISTED
    listing: drawing.HostsState
    composed: drawing.ComposedHosts | None = None

    def __init__(
        self, page: HostsPage, open_host: Callable[[str | None, str | None], object], shown: str | None = None
    ) -> None:
        self._page = page
        self._open_host = open_host
        self._listed = with_cores(page)
        self.listing = drawing.HostsState(with_cores=len(self._listed.rows) <= _MOST_ROWS)
        self.listing = replace(self.listing, cursor=self._first(shown))

    @property
    def rows(self) -> Sequence[int | None]:
        key = self.listing.sort, self.listing.is_reversed, self.listing.with_cores
        return self.kept(key, lambda: drawing.listed_order(self._page, self._listed, self.listing))

    def _first(self, shown: str | None) -> int:
        """The row that the cursor begins on: what is shown, else the slowest host or core, else the first."""
        page, order = self._page, self.rows
        labels = [None if row is None else self._listed.rows[row].label for row in order]
        if shown in labels and shown is not None:
            return labels.index(shown)
        slowest = page.straggler
        if drawing.is_of_one_host(page) and page.slowest_core is not None:
            slowest = len(page.rows) + page.slowest_core
        return order.index(slowest) if slowest in order and slowest is not None else len(order) and order[0] is None

    @property
    def most_lines(self) -> int:
        entries = len(self._listed.rows if self.listing.with_cores else self._page.rows) + len(self._page.left_out)
        return max(_LEAST_ROWS, entries + 16)

    @property
    def count(self) -> int:
        entries = len(self.rows) + len(self._page.left_out)
        return entries if self.composed is None else self.composed.positions

    def compose(self, pen: Pen, height: int) -> drawing.ComposedHosts:
        return drawing.compose_hosts(self._page, self.listing, pen, height)

    @property
    def selection(self) -> str | None:
        return None if self.row is None else self._listed.rows[self.row].label

    @property
    def keys(self) -> Sequence[KeyRow]:
        rows = [
            KeyRow("open", "open", "Narrow every page to the host, group or core", {"open": self.enter}),
            KeyRow("whole", "all", "Merge all hosts again", {"whole": partial(self._leave_for, None, None)}),
        ]
        if self._page.cores:
            cores = {"group": self._group}
            rows.append(KeyRow("group", "cores", "The cores of each host below it, or not", cores))
        if self._page.every_step:
            before, after = partial(self._next_step, -1), partial(self._next_step, 1)
            steps = {"left": before, "right": after}
            rows.append(KeyRow("left right", "step", "Show another step; Esc: all steps", steps))
        return rows

    @property
    def leave_key(self) -> KeyRow:
        all_steps = KeyRow("back", "all steps", "All steps again", {"back": self._to_all_steps})
        return BACK if self.listing.step is None else all_steps

    def _to_all_steps(self) -> None:
        self.listing = replace(self.listing, step=None)

    def _group(self) -> None:
        self.listing = self.listing.anew(with_cores=not self.listing.with_cores)

    def _next_step(self, by: int) -> None:
        number, step = max(map(len, self._page.every_step), default=0), self.listing.step
        if number:
            first = 0 if by > 0 else number - 1
            self.listing = replace(self.listing, step=first if step is None else (step + by) % number)

    def step(self, rows: int, screens: float = 0.0) -> None:
        room, place = 1 if self.composed is None else max(1, self.composed.room - 1), self.cursor
        row = place + rows + round(screens * room)
        last = len(self.rows) + len(self._page.left_out) - 1
        self.point(last if place < last < row else row)

    def enter(self) -> bool:
        if self.cursor >= len(self.rows):  # below are hosts that can't be read, and notes
            return True
        place = self.rows[self.cursor]
        row = None if place is None else self._listed.rows[place]
        if row is None or (row.core is None and drawing.is_of_one_host(self._page)):
            self._leave_for(None, None)
        elif row.core is None:
            self._leave_for(*((None, f"group {row.group}") if row.of_several else (row.host, None)))
        else:
            self._leave_for(None, row.label)
        return True

    def _leave_for(self, host: str | None, core: str | None) -> None:
        self.is_left = True
        self._open_host(host, core)
