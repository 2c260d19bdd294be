"""The view of a module's buffers: which memory space, which point of the program, what is in memory there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.memory.model import HBM, VMEM, Buffer, ModuleLabel, ModulePeaks, SpaceMemory
from tpuprof.parsers.memory.modules.groups import BufferGroup
from tpuprof.parsers.memory.modules.landmarks import backward_from, live_ranges_of, next_peak
from tpuprof.parsers.memory.summary import SpaceSummary
from tpuprof.parsers.pages.memory.compiled import first_space
from tpuprof.tui.draw.format import binary_size
from tpuprof.tui.draw.pen import Pen, cut_middle, filled
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.memory.draw import table
from tpuprof.tui.pages.memory.draw.graph import AXIS, column_of, point_at
from tpuprof.tui.pages.memory.draw.page import ComposedMemory, compose_memory, entry_card
from tpuprof.tui.pages.memory.fields.module import BUFFERS, GROUPS, OF_GROUPS, ListedRows, readable_metrics
from tpuprof.tui.pages.memory.load import MemoryPages, SpaceRequest
from tpuprof.tui.report.fields import help_rows
from tpuprof.tui.report.shared.exporting import ShownTable, order_text
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import TABS_KEY, KeyRow, verb_row
from tpuprof.tui.widgets.lists.popup import ChoiceRow
from tpuprof.tui.widgets.lists.view import ListView

Details = tuple[str, Callable[[Pen], list[Line]]]


class BuffersView(ListView["int | BufferGroup"]):
    """A module's memory `space` on the screen: a list of buffers, or of groups; None where no module has figures."""

    choice = "module"  # what is chosen, for the footer
    listing: table.MemoryState
    composed: ComposedMemory | None = None

    def __init__(self, pages: MemoryPages) -> None:
        self._pages = pages
        self.space: SpaceMemory | None = None
        self.summary: SpaceSummary | None = None
        self._problem: str | None = None
        self._backward: int | None = None
        self._shown: SpaceRequest | None = None
        self.listing = table.MemoryState()
        self._group: tuple[table.MemoryState, Int64s] | None = None  # what was shown before; the group's rows
        self._listed: table.MemoryList | None = None
        if isinstance(pages.first, str):
            self._problem = pages.first
        else:
            self.show(SpaceRequest(pages.first.module, pages.first.space), pages.first)

    # --- what it shows

    def help_rows(self) -> Sequence[tuple[str, str]]:
        """What the columns of the list mean, the one that it is sorted by first."""
        return help_rows(table.table_of(self.listing), self.listing.sort)

    def show(self, wanted: SpaceRequest, space: SpaceMemory | str) -> str:
        """Shows a memory space, at its peak or at the buffer wanted, or why there are no figures; says what is not."""
        self._shown = wanted
        self.summary = None
        self.space, self._problem = (None, space) if isinstance(space, str) else (space, None)
        self._backward = backward_from(self.space) if self.space is not None else None
        point = self.space.peak_position if self.space is not None else 0
        self.listing = self.listing.anew(point=point, words="")
        self._group, self._listed, self.composed = None, None, None
        return self.go_to(wanted.instruction) if wanted.instruction and self.space is not None else ""

    def summarise(self, summary: SpaceSummary | None) -> None:
        self.summary = summary
        if self.listing.grouping == "owner":
            self._listed = None

    def compose(self, pen: Pen, height: int) -> ComposedMemory:
        space = self.space
        assert space is not None
        kept, title = self.composed.painted if self.composed is not None else None, self._title(space)
        return compose_memory(space, self.listed, self.listing, title, pen, height, kept, self._backward, self.summary)

    def draw(self, pen: Pen, height: int) -> list[Line]:
        if self.space is not None:
            return super().draw(pen, height)
        page = self._pages.page
        why = self._problem or page.why_no_modules or "No module of this run has figures."
        blank = pen.fit([])
        lines = [blank, pen.fit([("  No buffers to show", "title")]), blank]
        lines += pen.narrower(2).wrap(why, "text", [("  ", "text")])
        lines += pen.narrower(2).wrap_all(page.warnings, "text", [("  ! ", "warn")])
        lines += [blank, pen.fit([("  v", "key"), (" shows what the allocators reported", "dim")])]
        return filled(lines, pen.width, height)

    @property
    def _shown_index(self) -> int | None:
        shown = self._shown.module if self._shown is not None else None
        return next((index for index, other in enumerate(self._pages.page.modules) if other.module == shown), None)

    def _title(self, space: SpaceMemory) -> str:
        modules = self._pages.page.modules
        place = f"number {self._shown_index + 1} by peak" if self._shown_index else "the largest peak"
        host = f" of {space.module.origin}" if len(self._pages.page.hosts) > 1 else ""
        return f"{space.module}{host}" + (f" ({place} of {len(modules)})" if len(modules) > 1 else "")

    @property
    def listed(self) -> table.MemoryList:
        """The list, made anew where what it depends on has changed; an empty one without figures."""
        if self.space is None:
            return table.NOTHING_LISTED
        if self._listed is None or self._listed.state != self.listing.of_list:
            owners = None if self.summary is None else self.summary.owners
            self._listed = table.memory_list(
                self.space, self.listing, None if self._group is None else self._group[1], owners
            )
        return self._listed

    @property
    def rows(self) -> Sequence[BufferGroup] | Int64s:
        return self.listed.groups or self.listed.rows

    @property
    def entry_row(self) -> int | None:
        """The row of the buffer under the cursor; None on a group and where the list is empty."""
        return self.listed.row_of(self.listing.cursor)

    @property
    def buffer(self) -> Buffer | None:
        row = self.entry_row
        return self.space.buffers[row] if self.space is not None and row is not None else None

    @property
    def selection(self) -> str | None:
        return None if (buffer := self.buffer) is None else buffer.name

    @property
    def op_name(self) -> str | None:
        """The instruction that defines it; None for parameters and constants, which no op on the timeline makes."""
        buffer = self.buffer
        if buffer is None or buffer.opcode in (None, "parameter", "constant"):
            return None
        return buffer.name.partition("{")[0]

    @property
    def module(self) -> ModuleLabel | None:
        """The module that is shown, or can't be; None where there is none."""
        if self._shown is not None:
            return self._shown.module
        modules = self._pages.page.modules
        return modules[0].module if modules else None

    @property
    def instruction(self) -> str:
        """The instruction that defines the buffer under the cursor; empty on a group, and without one."""
        return (self.selection or "").partition("{")[0]

    @property
    def source(self) -> str | None:
        """``file:line`` of it."""
        return None if (buffer := self.buffer) is None else buffer.source

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._pages.page.warnings, *(self.space.warnings if self.space is not None else ()))

    @property
    def details(self) -> Details | None:
        space, listed, entry, summary = self.space, self.listed, self.listing.cursor, self.summary
        if space is None or not len(listed):
            return None
        title = "Buffer" if listed.row_of(entry) is not None else "Group"
        return title, lambda pen: entry_card(space, listed, entry, pen, summary)

    def detail_line(self, pen: Pen) -> AnyLine:
        buffer = self.buffer
        if buffer is None:
            return pen.fit([])
        name = pen.text(buffer.name)
        where = cut_middle(buffer.framework_op or buffer.shape or "", pen.width - len(name) - 3, pen.glyphs)
        return pen.fit([(f" {name}  ", "strong"), (where, "dim")])

    @property
    def other(self) -> str:
        """What the footer calls the next view."""
        return "allocators" if self.space is None else "view"

    @property
    def has_choices(self) -> bool:
        return bool(self._pages.page.modules)

    @property
    def keys(self) -> Sequence[KeyRow]:
        if self.space is None:
            return (TABS_KEY,)
        return (
            KeyRow("left right", "point"),
            self.sorting_key(),
            verb_row("group", self.group, "Group by source line, framework scope, category"),
            verb_row("previous_peak", partial(self.to_next_peak, -1), "Previous peak"),
            verb_row("next_peak", partial(self.to_next_peak, 1), "Next peak"),
            verb_row("whole", self.to_peak, "Back to the highest peak"),
        )

    def metric_lines(self, pen: Pen) -> list[Line]:
        return pen.labelled(readable_metrics(self.space), 26) if self.space is not None else []

    # --- moving

    def move(self, across: int, down: int) -> None:
        """Across moves the point by cells of the graph, down the cursor by rows."""
        here, columns = self.listing.point, self.composed.columns if self.composed is not None else 1
        if across and self.space is not None:
            there = point_at(self.space, columns, column_of(self.space, columns, here) + across)
            self._to_point(there if (there - here) * across > 0 else here + across)  # by one point at least
        self.step(down)

    def _to_point(self, point: int) -> None:
        """Looks at another point; the cursor stays with its buffer where that is in memory there too."""
        space, row = self.space, self.entry_row
        if space is not None:
            self.listing = replace(self.listing, point=max(0, min(point, space.points - 1)))
            self.point(self._entry_of(row, self.listing.cursor))

    def _entry_of(self, row: int | None, otherwise: int = 0) -> int:
        entries = np.flatnonzero(self.listed.rows == (-1 if row is None else row))
        return int(entries[0]) if len(entries) else otherwise

    def clicked(self, x: int, y: int, again: bool) -> str | None:
        drawn, space = self.composed, self.space
        if drawn is None or space is None:
            return None
        if drawn.graph_line <= y < drawn.graph_line + drawn.graph_lines and x >= AXIS:
            self._to_point(point_at(space, drawn.columns, x - AXIS))
            return ""
        return super().clicked(x, y, again) if x < drawn.list_cells else "enter"

    def enter(self) -> bool:
        """Opens a group: the list is then of its buffers."""
        group = self.listed.group_of(self.listing.cursor)
        if group is None:
            return False
        self._group, self._listed = (self.listing, group.rows), None
        self._regroup("none")
        return True

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        group: dict[str, Callable[[], object]] = {} if self._group is None else {"group": self._close_group}
        return group | ({"map": partial(self.show_map, False)} if self.shows_map else {})

    def _close_group(self) -> None:
        if self._group is not None:
            self.listing, self._group, self._listed = replace(self._group[0], point=self.listing.point), None, None

    @property
    def shows_map(self) -> bool:
        """Whether the allocation map stands in the place of the working set."""
        return self.listing.show_map

    def show_map(self, wanted: bool) -> None:
        self.listing = replace(self.listing, show_map=wanted)

    @property
    def shown_table(self) -> ShownTable | None:
        space, state, listed = self.space, self.listing, self.listed
        if space is None:
            return None
        order = order_text(table.table_of(state), state)
        if state.grouping != "none":
            groups = ListedRows.of(space, listed.groups, listed.in_memory_bytes)
            return ShownTable("memory", GROUPS, groups, range(len(groups)), OF_GROUPS, state.words, order)
        rows = ListedRows.of(space, listed.rows, max(1, space.peak_bytes))
        return ShownTable("memory", BUFFERS, rows, range(len(rows)), (), state.words, order)

    def why_not(self, verb: str) -> str:
        if self.space is None:
            return "There is no module with buffers; v shows the allocators."
        words = {
            "next_step": f"This module has only the memory space {self.space.name}.",
            "module": "There is only one module.",
        }
        return words.get(verb, "")

    def filter(self, words: str) -> None:
        row = self.entry_row
        super().filter(words)
        self.point(self._entry_of(row))

    @property
    def found(self) -> str:
        listed = self.listed
        found = f"{listed.shown_count} of {listed.in_memory_count}, {binary_size(listed.shown_bytes)}"
        return found if self.listing.words else ""

    @property
    def searched(self) -> list[str]:
        """What a filter looks at in each buffer that is in memory at the point."""
        space = self.space
        if space is None:
            return []
        every = replace(self.listing, words="", grouping="none")
        listed = table.memory_list(space, every, None if self._group is None else self._group[1])
        return table.searched_texts(space, listed.rows)

    @property
    def orders(self) -> Mapping[str, str]:
        named = {"group": table.GROUP_TITLES.get(self.listing.grouping, "")}
        return {title: named.get(title, title) for title in table.table_of(self.listing).sorted_by}

    def group(self) -> str:
        self._group, self._listed = None, None
        grouping = table.GROUPINGS[(table.GROUPINGS.index(self.listing.grouping) + 1) % len(table.GROUPINGS)]
        self._regroup(grouping)
        return "" if grouping == "none" else f"by {grouping}"

    def _regroup(self, grouping: table.Grouping) -> None:
        """Other rows; by size where they have not the column that the ones before were sorted by."""
        self.listing = self.listing.anew(grouping=grouping)
        if self.listing.sort not in self.orders:
            self.listing = self.listing.sorted_by("size")

    def to_peak(self) -> str:
        """Goes to the highest peak; says where that is shown already."""
        if self.space is None or self.listing.point == self.space.peak_position:
            return "this is the highest peak"
        self._to_point(self.space.peak_position)
        return ""

    def to_next_peak(self, by: int) -> str:
        """Goes to the next or previous peak; says which, or that there is none."""
        space = self.space
        point = None if space is None else next_peak(space.heap_bytes, self.listing.point, by)
        if space is None or point is None:
            return f"no {'later' if by > 0 else 'earlier'} peak"
        self._to_point(point)
        return f"{binary_size(int(space.heap_bytes[point]))} at point {point:,}"

    # --- other modules and spaces

    def spaces(self) -> list[int]:
        shown = self._shown_index
        return sorted(self._pages.page.modules[shown].peaks) if shown is not None else []

    def next_space(self, awaited: SpaceRequest | None, by: int = 1) -> SpaceRequest:
        """The shown module's next or previous memory space, from the one on that is awaited already."""
        assert self._shown is not None
        spaces, space = self.spaces(), (awaited or self._shown).space
        at = bisect_right(spaces, space) - 1
        return SpaceRequest(self._shown.module, spaces[(at + by) % len(spaces)] if spaces else space)

    def choices(self) -> tuple[tuple[str, ...], list[ChoiceRow[object]], int]:
        """The modules to choose from: headings, rows and the row of the shown one."""
        rows: list[ChoiceRow[object]] = []
        for module in self._pages.page.modules:
            sizes = (binary_size(module.peaks[space]) if module.peaks.get(space) else "" for space in (HBM, VMEM))
            rows.append(ChoiceRow((str(module.module), *sizes), module, module.problem or "", module.problem is None))
        return ("module", "HBM", "VMEM"), rows, self._shown_index or 0

    def request(self, value: object) -> SpaceRequest | None:
        return SpaceRequest(value.module, first_space(value.peaks)) if isinstance(value, ModulePeaks) else None

    def elsewhere(self, op: str, program: int | None) -> SpaceRequest | None:
        """What asks for an op in the module of a program id, if that is not the one that is shown."""
        shown = self._shown.module.program_id if self._shown is not None else None
        for peaks in self._pages.page.modules if program not in (None, shown) else ():
            if peaks.module.program_id == program and peaks.problem is None:
                return SpaceRequest(peaks.module, first_space(peaks.peaks), op)
        return None

    def go_to(self, op: str) -> str:
        """Goes to the largest buffer of an op, at its first point; says where there is none."""
        space = self.space
        if space is None:
            return "no module of this run has figures"
        rows = live_ranges_of(space, op)
        if not len(rows):
            return f"{op} defines no buffer in {space.name} of {space.module}"
        row, here = int(rows[0]), self.listing.point
        self._group, self._listed = None, None
        point = here if row in space.at(here) else int(space.live_ranges.born[row])
        self.listing = replace(self.listing, point=point, grouping="none", words="")
        self.point(self._entry_of(row))
        return ""
