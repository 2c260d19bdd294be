"""The view of the allocators: memory in use over time, and what it is made of at its peak."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import has_words, said_of
from tpuprof.parsers.memory.allocators import model
from tpuprof.tui.draw.format import binary_size, count
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.memory.draw import profile
from tpuprof.tui.pages.memory.draw.graph import AXIS
from tpuprof.tui.pages.memory.fields.allocators import AT_PEAK, SEARCHED, fragmentation_words
from tpuprof.tui.report.fields import help_rows
from tpuprof.tui.report.shared.buffers import searched
from tpuprof.tui.report.shared.exporting import ShownTable
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import TABS_KEY, KeyRow, verb_row
from tpuprof.tui.widgets.lists.popup import ChoiceRow
from tpuprof.tui.widgets.lists.view import ListView

Details = tuple[str, Callable[[Pen], list[Line]]]


class AllocatorsView(ListView[model.ActiveAllocation]):
    """The allocators on the screen, one at a time: a list of what each holds at its peak."""

    source: str | None = None  # no allocation has a source line
    other, choice = "buffers", "allocator"  # the other view and what is chosen, for the footer
    listing: profile.MemoryProfileState
    composed: profile.ComposedMemoryProfile | None = None

    def __init__(self, page: model.MemoryProfilePage, runs: Sequence[model.DeviceModuleRuns]) -> None:
        self._page = page
        self._runs = runs
        self.listing = profile.MemoryProfileState()

    # --- what it shows

    def help_rows(self) -> Sequence[tuple[str, str]]:
        return help_rows(AT_PEAK)

    def show(self, index: int) -> None:
        self.listing = profile.MemoryProfileState(allocator=index)

    def compose(self, pen: Pen, height: int) -> profile.ComposedMemoryProfile:
        return profile.compose_memory_profile(self._page, self._runs, self.listing, pen, height)

    @property
    def _allocator(self) -> model.AllocatorProfile | None:
        allocators = self._page.allocators
        return allocators[self.listing.allocator] if allocators else None

    @property
    def rows(self) -> Sequence[model.ActiveAllocation]:
        return () if self._allocator is None else self._allocator.at_peak

    @property
    def selection(self) -> str | None:
        return None if self.row is None else self.row.framework_op

    @property
    def notes(self) -> tuple[str, ...]:
        allocator = self._allocator
        if allocator is None:
            return self._page.warnings
        own = (fragmentation_words(allocator), allocator.flat, *allocator.unknown.values())
        return (*self._page.warnings, *filter(None, own))

    @property
    def details(self) -> Details | None:
        selected = self.row
        return None if selected is None else ("Memory in use at the peak", lambda pen: _row_lines(selected, pen))

    def detail_line(self, pen: Pen) -> AnyLine:
        return pen.fit([])

    @property
    def has_choices(self) -> bool:
        return bool(self._page.allocators)

    @property
    def keys(self) -> Sequence[KeyRow]:
        if not self._page.allocators:
            return (TABS_KEY,)
        whole = verb_row("whole", self.to_peak, "Back to the highest peak")
        return (KeyRow("left right", "time"), KeyRow("down up", "rows"), whole)

    # --- moving

    def move(self, across: int, down: int) -> None:
        """Across moves the cursor over time, down over the table."""
        allocator, drawn = self._allocator, self.composed
        if allocator is None:
            return
        if across and drawn is not None and drawn.edges:
            there = profile.columns_between(drawn, self.listing.cursor_ps, across, allocator.peak_time_ps)
            self.listing = replace(self.listing, cursor_ps=there)
        self.step(down)

    def clicked(self, x: int, y: int, again: bool) -> str | None:
        drawn, column = self.composed, x - AXIS
        if drawn is None or not drawn.graph_line <= y < drawn.graph_line + drawn.graph_rows:
            return super().clicked(x, y, again)
        if not 0 <= column < len(drawn.edges) - 1:
            return None
        self.listing = replace(self.listing, cursor_ps=(drawn.edges[column] + drawn.edges[column + 1]) // 2)
        return ""

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        return {} if self.listing.cursor_ps is None else {"instant": self.to_peak}

    @property
    def shown_table(self) -> ShownTable | None:
        allocator = self._allocator
        if allocator is None:
            return None
        return ShownTable("memory-profile", AT_PEAK, allocator, range(len(allocator.at_peak)), (), "", "")

    def why_not(self, verb: str) -> str:
        words = {
            "figures": "All figures of the allocators are shown.",
            "advice": "Advice needs a module's buffers: v shows them.",
            "sort": "Allocations at the peak are always sorted by size.",
            "group": "Allocations at the peak have no groups.",
            "next_step": "Each allocator has one memory space; m chooses another allocator.",
            "next_peak": "Only the highest peak of an allocator is known.",
            "edit": "No allocation has a source line.",
            "buffers": "An allocation has no op.",
        }
        return words.get(verb, "")

    @property
    def searched(self) -> list[str]:
        return [] if self._allocator is None else searched(AT_PEAK, self._allocator, SEARCHED, " ")

    def search(self, text: str) -> str:
        """Moves to the next row whose op, region or shape has every word; says how many have."""
        allocator = self._allocator
        if allocator is None or not text:
            return ""
        texts, is_wanted = self.searched, has_words(text)
        rows = [row for row, words in enumerate(texts) if is_wanted(words)]
        if not rows:
            return said_of(text, "", 0, lambda: texts)
        self.point(rows[bisect_left(rows, self.cursor) % len(rows)])
        return f"{len(rows)} of {len(allocator.at_peak)} rows"

    def to_peak(self) -> str:
        if self.listing.cursor_ps is None:
            return "this is the peak"
        self.listing = replace(self.listing, cursor_ps=None)
        return ""

    def choices(self) -> tuple[tuple[str, ...], list[ChoiceRow[object]], int]:
        """The allocators to choose from: headings, rows and the row of the shown one."""
        rows: list[ChoiceRow[object]] = [
            ChoiceRow(
                (allocator.label, binary_size(allocator.peak_bytes), binary_size(allocator.capacity_bytes)), index
            )
            for index, allocator in enumerate(self._page.allocators)
        ]
        return ("allocator", "peak", "capacity"), rows, self.listing.allocator


def _row_lines(row: model.ActiveAllocation, pen: Pen) -> list[Line]:
    facts = (
        ("op", row.framework_op),
        ("how many", count(row.occurrences)),
        ("each takes", binary_size(row.allocated_bytes)),
        ("each asked for", binary_size(row.requested_bytes)),
        ("together", binary_size(row.total_bytes)),
        ("region", row.region),
        ("data type", row.data_type),
        ("shape", row.shape),
    )
    return pen.labelled([(label, words or "not in the profile") for label, words in facts], 16)
