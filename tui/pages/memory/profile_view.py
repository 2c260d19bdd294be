"""The view of the allocators: memory in use over time, and what it is made of at its peak."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace

from tpuprof.parsers.base.text import has_words, said_of
from tpuprof.parsers.memory.allocators import model
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.format import count
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.memory.draw import profile
from tpuprof.tui.pages.memory.draw.profile_graph import AXIS
from tpuprof.tui.pages.memory.fields.allocators import AT_PEAK, SEARCHED, fragmentation_words
from tpuprof.tui.report.fields import help_rows
from tpuprof.tui.report.shared.buffers import searched
from tpuprof.tui.report.shared.exporting import Shown
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.choosing import Choice
from tpuprof.tui.widgets.chrome import TABS_KEY, KeyRow

Details = tuple[str, Callable[[Pen], list[Line]]]


class AllocatorsView:
    """The allocators on the screen, one at a time; `composed` is what was drawn last."""

    source: str | None = None  # no allocation has a source line

    def __init__(self, page: model.MemoryProfilePage, runs: Sequence[model.DeviceModuleRuns]) -> None:
        self._page = page
        self._runs = runs
        self._state = profile.MemoryProfileState()
        self.composed: profile.ComposedMemoryProfile | None = None

    # --- what it shows

    def column_help(self) -> Sequence[tuple[str, str]]:
        """What the columns of the table mean."""
        return help_rows(AT_PEAK)

    def show(self, index: int) -> None:
        """Shows an allocator, by index."""
        self._state = profile.MemoryProfileState(allocator=index)

    def draw(self, pen: Pen, height: int) -> list[Line]:
        """The allocator, or why there is none."""
        composed = profile.compose_memory_profile(self._page, self._runs, self._state, pen, height)
        self._state = replace(self._state, first=composed.first)
        self.composed = composed
        return list(composed.lines)

    @property
    def _allocator(self) -> model.AllocatorProfile | None:
        allocators = self._page.allocators
        return allocators[self._state.allocator] if allocators else None

    @property
    def _selected(self) -> model.ActiveAllocation | None:
        allocator, row = self._allocator, self._state.cursor
        return allocator.at_peak[row] if allocator is not None and row < len(allocator.at_peak) else None

    @property
    def selection(self) -> str | None:
        """The op that allocated what is under the cursor."""
        return self._selected.framework_op if self._selected is not None else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What else to know of the page and of the allocator."""
        allocator = self._allocator
        if allocator is None:
            return self._page.warnings
        own = (fragmentation_words(allocator), allocator.flat, *allocator.unknown.values())
        return (*self._page.warnings, *filter(None, own))

    @property
    def details(self) -> Details | None:
        """The row in full."""
        selected = self._selected
        return None if selected is None else ("Memory in use at the peak", lambda pen: _row_lines(selected, pen))

    def detail_line(self, pen: Pen) -> AnyLine:
        """Nothing beyond what the table says."""
        return pen.fit([])

    @property
    def commands(self) -> tuple[str, ...]:
        """What keys do."""
        return ("module", "at_peak") if self._page.allocators else ()

    @property
    def keys(self) -> tuple[KeyRow, ...]:
        """Its own keys, for the footer."""
        if not self._page.allocators:
            return (KeyRow("view", "buffers"), TABS_KEY)
        return (
            *(KeyRow("view", "buffers"), KeyRow("module", "allocator")),
            *(KeyRow("left right", "time"), KeyRow("down up", "rows")),
        )

    # --- moving

    def move(self, across: int, down: int) -> None:
        """Across moves the cursor over time, down over the table."""
        allocator, drawn = self._allocator, self.composed
        if allocator is None:
            return
        if across and drawn is not None and drawn.edges:
            there = profile.columns_between(drawn, self._state.cursor_ps, across, allocator.peak_time_ps)
            self._state = replace(self._state, cursor_ps=there)
        if down:
            self._state = self._state.at(self._state.cursor + down, len(allocator.at_peak))

    def click(self, x: int, y: int) -> None:
        """Points at a row, or at an instant."""
        drawn = self.composed
        if drawn is None:
            return
        if 0 <= drawn.first_row_line <= y < drawn.first_row_line + drawn.room:
            self._state = replace(self._state, cursor=drawn.first + y - drawn.first_row_line)
        column, is_graph = x - AXIS, drawn.graph_line <= y < drawn.graph_line + drawn.graph_rows
        if is_graph and 0 <= column < len(drawn.edges) - 1:
            self._state = replace(self._state, cursor_ps=(drawn.edges[column] + drawn.edges[column + 1]) // 2)

    def enter(self) -> bool:
        """There is nothing to open but the details."""
        return False

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        """Another instant than the peak."""
        return {} if self._state.cursor_ps is None else {"instant": self._to_peak}

    def _to_peak(self) -> None:
        self._state = replace(self._state, cursor_ps=None)

    @property
    def shown_table(self) -> Shown | None:
        """What is in use at the peak."""
        allocator = self._allocator
        if allocator is None:
            return None
        return Shown("memory-profile", AT_PEAK, allocator, range(len(allocator.at_peak)), (), "", "")

    def why_not(self, verb: str) -> str:
        """Why a verb does nothing here."""
        words = {
            "figures": "All figures of the allocators are shown.",
            "advice": "Advice needs a module's buffers: `v` shows them.",
            "sort": "Allocations at the peak are always sorted by size.",
            "group": "Allocations at the peak have no groups.",
            "next_step": "Each allocator has one memory space; `m` chooses another allocator.",
            "next_peak": "Only the highest peak of an allocator is known.",
            "edit": "No allocation has a source line.",
            "buffers": "An allocation has no op.",
        }
        return words.get(verb, "")

    @property
    def searched(self) -> list[str]:
        """What a search looks at in each row."""
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
        self._state = replace(self._state, cursor=rows[bisect_left(rows, self._state.cursor) % len(rows)])
        return f"{len(rows)} of {len(allocator.at_peak)} rows"

    def command(self, name: str, by: int) -> str:
        """Does one of `commands`."""
        if name == "at_peak":
            if self._state.cursor_ps is None:
                return "this is the peak"
            self._to_peak()
        return ""

    def choices(self) -> tuple[tuple[str, ...], list[Choice[object]], int]:
        """The allocators to choose from: headings, rows and the row of the shown one."""
        rows: list[Choice[object]] = [
            Choice((allocator.label, binary_size(allocator.peak_bytes), binary_size(allocator.capacity_bytes)), index)
            for index, allocator in enumerate(self._page.allocators)
        ]
        return ("allocator", "peak", "capacity"), rows, self._state.allocator


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
