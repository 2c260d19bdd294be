"""Units and counters as a view of the ops tab: the units of one core at a time, or the counters themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tpuprof.parsers.pages.counters.page import CounterRow, CountersPage, UnitRow, core_of, main_core
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.counters.drawing import counter_card, unit_card
from tpuprof.tui.pages.counters.fields import SOURCES, UNITS, on_screen
from tpuprof.tui.report.fields import Table
from tpuprof.tui.widgets.chrome import KeyRow, motion_keys, verb_row
from tpuprof.tui.widgets.lists.table import PageView
from tpuprof.tui.widgets.tab import Jump

_KEYS = (
    ("b", "shows the counters themselves, or again the units of a core."),
    ("O", "goes to the track of a counter that was sampled over time."),
)
"""What keys mean here that mean something else in other views."""


class UnitsView(PageView):
    """The page of counters: rows of one core's units, or of all counters."""

    FIRST_SORT = ""  # the order of the page
    page_name = "counters"
    ABSENT = "no counter {}"
    NO_ROWS = "no unit is known: b shows the counters"
    TIMES: ClassVar[tuple[str, str]] = ("", "use_percent")
    MOTIONS = motion_keys(across="Next, previous core; among counters, other columns", short=("", "core", "details"))

    _page: CountersPage

    def __init__(self, page: CountersPage) -> None:
        cores: dict[tuple[object, ...], list[UnitRow]] = {}
        for row in page.units:
            cores.setdefault(core_of(row), []).append(row)
        self._cores: list[Sequence[UnitRow]] = list(cores.values())
        busiest = main_core(page.units)
        self._core = list(cores).index(core_of(busiest[0])) if busiest else 0
        self._is_raw = not page.units
        super().__init__(page)

    @property
    def meanings(self) -> Iterable[tuple[str, str]]:
        known = ((name, f"{words}.") for name, words in SOURCES.items())
        return (*_KEYS, *known, *(("note", note) for note in self._page.notes))

    def table(self) -> tuple[Table[Any], Any]:
        return (on_screen(self._page.counters), self._page.counters) if self._is_raw else (UNITS, self._units)

    @property
    def _units(self) -> Sequence[UnitRow]:
        return self._cores[self._core] if self._cores else ()

    @property
    def names(self) -> Sequence[str]:
        return [row.name for row in self.table()[1]]

    def status(self) -> str:
        if self._is_raw or not self._units:
            return f"counters, {super().status()}"
        first = self._units[0]
        kernel = f" {first.use.kernel}" if first.use.kernel else ""
        reading = f" #{first.use.sample}" if first.use.source == "reading" and len(self._cores) > 1 else ""
        return f"{first.core}{kernel}{reading}, {super().status()}"

    def move(self, across: int, down: int) -> None:
        if across and not self._is_raw and self._cores:
            at, number = self.listing.cursor, (self._core + across) % len(self._cores)
            self._show(core=number)
            self.listing = self.listing.at(at, len(self.rows))
        else:
            super().move(across, down)

    @property
    def keys(self) -> Sequence[KeyRow]:
        return (verb_row("group", self.group, short="counters"), *super().keys)

    def group(self) -> str:
        """The counters themselves, or the units of each core; says which."""
        self._show(is_raw=not self._is_raw)
        return "the counters themselves" if self._is_raw else "units by core"

    def _show(self, *, core: int | None = None, is_raw: bool | None = None) -> None:
        """Other rows, in their own order where the column is another table's; the filter stays."""
        self._core = self._core if core is None else core
        self._is_raw = self._is_raw if is_raw is None else is_raw
        self.shift = 0
        self._read_anew("")

    @property
    def _under_cursor(self) -> UnitRow | CounterRow | None:
        return None if self.row is None else self.table()[1][self.row]

    def card(self, pen: Pen) -> list[Line]:
        row = self._under_cursor
        if row is None:
            return []
        if isinstance(row, CounterRow):
            return counter_card(self._page, row, pen)
        return unit_card(self._page, row, pen)

    @property
    def on_timeline(self) -> Jump | None:
        row = self._under_cursor
        return None if row is None or not row.track else Jump("timeline", "counter", row.track)

    def show_named(self, name: str) -> str:
        for is_raw in (False, True):
            self._show(is_raw=is_raw)
            if name in self.names:
                break
        return super().show_named(name)
