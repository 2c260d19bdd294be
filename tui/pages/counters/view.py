"""Units and counters as a view of the ops tab: the units of one core at a time, or the counters themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy

from tpuprof.parsers.pages.counters import CounterRow, CountersPage, UnitRow, core_of, main_core
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.pages.counters.drawing import counter_card, unit_card
from tpuprof.tui.pages.counters.fields import SOURCES, UNITS, on_screen
from tpuprof.tui.report.fields import Table
from tpuprof.tui.widgets.chrome import KeyRow, motion_keys
from tpuprof.tui.widgets.rows import LIST_KEYS, RowsView
from tpuprof.tui.widgets.tab import Jump

_KEYS = (
    ("b", "shows the counters themselves, or again the units of a core."),
    ("O", "goes to the track of a counter that was sampled over time."),
)
"""What keys mean here that mean something else in other views."""


class UnitsView(RowsView):
    """The page of counters: rows of one core's units, or of all counters."""

    commands = ("group", "sort", "reverse")
    FIRST_SORT = "use"
    page_name = "counters"
    NO_ROWS = "no unit is known: `b` shows the counters"
    TIMES: ClassVar[tuple[str, str]] = ("", "use_percent")
    KEYS: ClassVar[tuple[KeyRow, ...]] = (
        KeyRow("group", "counters"),
        *motion_keys(across="Next, previous core; among counters, other columns", short=("", "core", "")),
        *LIST_KEYS,
    )

    def __init__(self, page: CountersPage) -> None:
        self._page = page
        cores: dict[tuple[object, ...], list[UnitRow]] = {}
        for row in page.units:
            cores.setdefault(core_of(row), []).append(row)
        self._cores: list[Sequence[UnitRow]] = list(cores.values())
        busiest = main_core(page.units)
        self._core = list(cores).index(core_of(busiest[0])) if busiest else 0
        self._is_raw = not page.units
        super().__init__()
        self.listing = Listing()  # the order of the page

    @property
    def meanings(self) -> Iterable[tuple[str, str]]:
        """What XProf and the compiler count, and which of it is untested on hardware."""
        known = ((name, f"{words}.") for name, words in SOURCES.items())
        return (*_KEYS, *known, *(("note", note) for note in self._page.notes))

    def table(self) -> tuple[Table[Any], Any]:
        """The fields of the rows, and the rows."""
        return (on_screen(self._page.counters), self._page.counters) if self._is_raw else (UNITS, self._units)

    @property
    def _units(self) -> Sequence[UnitRow]:
        return self._cores[self._core] if self._cores else ()

    @property
    def headline(self) -> str:
        """What the program uses of the machine."""
        return self._page.statement

    @property
    def note(self) -> str:
        """The same, and where the figures come from."""
        return " ".join((self._page.statement, *self._page.notes))

    def status(self) -> str:
        """Which core's units these are."""
        if self._is_raw or not self._units:
            return f"counters, {super().status()}"
        first = self._units[0]
        kernel = f" {first.use.kernel}" if first.use.kernel else ""
        reading = f" #{first.use.sample}" if first.use.source == "reading" and len(self._cores) > 1 else ""
        return f"{first.core}{kernel}{reading}, {super().status()}"

    def move(self, across: int, down: int) -> None:
        """Down by rows; across by cores, or by the columns of the counters."""
        if across and not self._is_raw and self._cores:
            at, number = self.listing.cursor, (self._core + across) % len(self._cores)
            self._show(core=number)
            self.listing = self.listing.at(at, len(self.rows))
        else:
            super().move(across, down)

    def command(self, name: str) -> str:
        """Does one of `commands`; says what came of it."""
        if name != "group" and not self.listing.sort:  # from the page's own order to that of the most important column
            self.listing = self.listing.anew(sort="value" if self._is_raw else "use")
            self._arrange()
            return f"sorted by {self.listing.sort}, largest first"
        if name != "group":
            return super().command(name)
        self._show(is_raw=not self._is_raw)
        return "the counters themselves" if self._is_raw else "units by core"

    def _show(self, *, core: int | None = None, is_raw: bool | None = None) -> None:
        """Other rows, in their own order where the column is another table's; the filter stays."""
        self._core = self._core if core is None else core
        self._is_raw = self._is_raw if is_raw is None else is_raw
        self.shift = 0
        self._read_anew("")

    def _arrange(self) -> None:
        if self.listing.sort:
            super()._arrange()
            return

        table, source = self.table()
        rows = numpy.arange(table.length(source), dtype=numpy.int64)
        self.rows = rows if self._kept is None else rows[self._kept]
        self.listing = self.listing.anew()

    @property
    def _under_cursor(self) -> UnitRow | CounterRow | None:
        return None if self.row is None else self.table()[1][self.row]

    def card(self, pen: Pen) -> list[Line]:
        """What the figure under the cursor means, and when it was sampled."""
        row = self._under_cursor
        if row is None:
            return []
        if isinstance(row, CounterRow):
            return counter_card(self._page, row, pen)
        return unit_card(self._page, row, pen)

    @property
    def selection(self) -> str | None:
        """The unit's or the counter's name."""
        row = self._under_cursor
        return None if row is None else row.name

    def jumps(self) -> dict[str, Jump]:
        """To the track of what was sampled over time."""
        row = self._under_cursor
        return {} if row is None or not row.track else {"on_timeline": Jump("timeline", "counter", row.track)}

    def show_named(self, name: str) -> str:
        """Goes to a unit or a counter of that name, of the core shown first."""
        for is_raw in (False, True):
            self._show(is_raw=is_raw)
            names = [row.name for row in self.table()[1]]
            if name in names:
                self._go_to(names.index(name))
                return ""
        return f"no counter {name}"
