"""The memory tab: what a compiled module's buffers take at every point of the program, and the allocators over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import work

from tpuprof.parsers.files.source_lines import source_excerpt
from tpuprof.tui.draw.pen import WIDE, Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages import load_above
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import TABS_KEY, KeyRow, State, motion_keys, state_lines, verb_row
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.lists.popup import ChoiceList, ListPopup
from tpuprof.tui.widgets.lists.view import ViewsTab
from tpuprof.tui.widgets.popup import TextPopup, meanings
from tpuprof.tui.widgets.tab import CursorMoved, Jump, OpenPopup, OpenScreen, Payload, jump_row, op_rows

if TYPE_CHECKING:  # numpy comes with the page, not with the first frame
    from tpuprof.parsers.memory.model import SpaceMemory
    from tpuprof.parsers.memory.summary import SpaceSummary
    from tpuprof.tui.pages.memory.load import MemoryPages, SiblingArrays, SpaceRequest
    from tpuprof.tui.pages.memory.module_view import BuffersView
    from tpuprof.tui.pages.memory.profile_view import AllocatorsView


_LISTED = (
    "The compiled modules of the run, each with its peak in each memory space; or, in the view of allocators, the "
    "allocators that reported events, with their peaks."
)
_ABOUT_CHOICES = meanings(("", _LISTED))


class MemoryTab(ViewsTab):
    """Shows the memory of a run, or the state of loading it. Two views: a module's buffers, and the allocators."""

    CARD = (
        ("size", "bytes in memory, with padding, and their share of the peak."),
        ("padding", "the empty part of the tiles: arrays are stored in tiles of 8 by 128 elements of 32 bits."),
        ("in memory", "when the buffer is in memory, in program order; the bar is the whole program."),
        ("born, dies", "the op that creates it, and the last op that uses it."),
        ("allocated", "by the runtime, at the moment of the peak."),
    )
    MEANINGS: ClassVar[dict[str, str]] = {
        "Peak": "the most memory that the module uses at once; figures are the compiler's, for one device.",
        "Headroom": "capacity less what is needed: the peak and, in HBM, the gaps between buffers. Other memory on the "
        "device (arguments of other programs, prefetched batches) is shown by the allocators' view, if known.",
        "Working set": "memory in use in program order, several instructions per cell; the axis is not time.",
        "Band": "how long the buffer under the cursor stays in memory.",
        "arguments": "arguments of the program, in memory throughout; outputs reuse donated ones.",
        "temporaries": "the part of the peak that is allocated and freed.",
        "Padding": "a buffer's size beyond its elements: the layout's tiles round its last dimensions up. The "
        "unpadded peak is the peak without padding.",
        "Fragmentation": "the share of the memory for temporaries that is unused at the peak.",
        "Allocators": "stack: reserved for programs that are loaded; heap: arrays; free: the rest.",
        "frag": "of an allocator: the share of free memory outside its largest piece, as the allocator reports it. "
        "An array larger than that piece fails, even if enough memory is free in total.",
        "L": "live arrays: a device memory profile (*.prof) beside this one shows which source lines hold memory.",
        "n/a": "unknown, which is never shown as 0.",
    }
    NAME_CELLS = 14

    def __init__(self, look: ScreenLook, *, id: str) -> None:
        super().__init__(look, id=id)
        self._pages: MemoryPages | None = None
        self._buffers: BuffersView | None = None
        self._allocators: AllocatorsView | None = None
        self._arrays: SiblingArrays | None = None
        self._is_profile = False
        self._wanted_op: tuple[str, int | None] | None = None
        self._awaited: SpaceRequest | None = None

    # --- what it shows

    def show(self, part: str, payload: Payload) -> str | None:
        if part == "modules":
            return self._show_modules(payload)
        if part == "summary":
            self._show_summary(*payload)
            return None
        if part == "arrays":
            self._arrays = payload
        else:
            from tpuprof.tui.pages.memory.profile_view import AllocatorsView  # noqa: PLC0415

            self._allocators = AllocatorsView(*payload)
            if self._pages is not None and not self._pages.page.modules and payload[0].allocators:
                self._is_profile = True  # there is no module to show
        self.redraw()
        return None

    def _show_summary(self, space: SpaceMemory, summary: SpaceSummary | None) -> None:
        if self._buffers is not None and self._buffers.space is space:
            self._buffers.summarise(summary)
            self.redraw()

    def _show_modules(self, pages: MemoryPages) -> str:
        """Shows the compiled modules; goes to the buffers that were asked for while they were not there."""
        from tpuprof.tui.pages.memory.module_view import BuffersView  # noqa: PLC0415

        self._pages, self._buffers, self._allocators, self._is_profile = pages, BuffersView(pages), None, False
        self._arrays = None
        wanted, self._wanted_op = self._wanted_op, None
        self.redraw()
        return self.go_to("op", *wanted) if wanted is not None else ""

    def show_state(self, state: State) -> None:
        self._pages, self._buffers, self._allocators, self._state = None, None, None, state
        self.redraw()

    def draw(self, width: int, height: int) -> Sequence[AnyLine]:
        pen, view = Pen(width, self.look.glyphs), self.view
        if self._pages is None:
            return state_lines(self._state, pen, height)
        if view is None:
            return pen.wrap("The allocators are being read now. After Esc, r reads them again.", "dim", [("  ", "dim")])
        if self._arrays is None:
            return view.draw(pen, height)
        words = self._arrays.words(pen.glyphs.is_ascii)
        return [*view.draw(pen, height - 1), pen.fit([(f" {words}", "key")])]

    @property
    def view(self) -> BuffersView | AllocatorsView | None:
        return self._allocators if self._is_profile else self._buffers

    @property
    def space_shown(self) -> SpaceMemory | None:
        return self._buffers.space if self._buffers is not None and not self._is_profile else None

    @property
    def has_page(self) -> bool:
        return self._pages is not None

    @property
    def op_name(self) -> str | None:
        return self._buffers.op_name if self._buffers is not None and not self._is_profile else None

    @property
    def _graph_of(self) -> Jump | None:
        """To the graph of what makes the buffer under the cursor; without one, of the module that is shown."""
        label = self._buffers.module if self._buffers is not None and not self._is_profile else None
        if label is None or self._buffers is None:
            return None
        return Jump("graph", "op", self._buffers.instruction, label.program_id, label.origin)

    @property
    def keys(self) -> Sequence[KeyRow]:
        if self._pages is None:
            return super().keys
        view, buffers, op, space, graph = self.view, self._buffers, self.op_name, self.space_shown, self._graph_of
        title = "Next view: buffers of a module, allocators over time, the map of a module"
        has_room = space is None or self.size.width >= WIDE
        other = view.other if view is not None and has_room else ""
        rows = [*self.view_keys(title, other, 0 if space is None else 4)]
        if view is not None and view.has_choices:
            rows.append(verb_row("module", self._choose, "Choose a module, or an allocator", view.choice))
        if buffers is not None and space is not None and len(buffers.spaces()) > 1:
            title = "Next memory space: HBM, VMEM, SMEM, ..."
            rows.append(verb_row("next_step", partial(self._next_space, 1), title))
            rows.append(verb_row("previous_step", partial(self._next_space, -1), "Previous memory space"))
        rows += [TABS_KEY] if view is None else view.keys
        if buffers is not None and space is not None:
            named = f"{space.name} of {space.module}"
            figures = OpenPopup(TextPopup(self.look, named, buffers.metric_lines, self.meaning_lines))
            rows.append(verb_row("figures", partial(self.post_message, figures)))
        if self._arrays is not None and self._arrays.page is not None:
            title = "Live arrays: who holds the memory, from the file beside"
            arrays = OpenScreen("live-arrays", self._arrays.page)
            rows.append(verb_row("live_arrays", partial(self.post_message, arrays), title))
        if buffers is not None and space is not None:
            title = "What to do first: suggestions, and what-if"
            rows.append(verb_row("advice", partial(self._work_out, space), title, "what to do"))
        across = "Another point of the program, or another time"
        enter = "Everything about the buffer; a group's buffers"
        return (
            *rows,
            *motion_keys(row="buffer", across=across, enter=enter, halves=False),
            *op_rows(op, None if graph is None else graph.program, but=("graph", "program", "buffers")),
            *jump_row("graph", graph),
        )

    @property
    def note(self) -> str:
        return "\n".join(f"{note.rstrip('.')}." for note in self.view.notes) if self.view is not None else ""

    @property
    def details(self) -> tuple[str, Callable[[Pen], list[Line]]] | None:
        return self.view.details if self.view is not None else None

    def detail_line(self, width: int) -> AnyLine:
        glyphs = self.look.glyphs
        return self.view.detail_line(Pen(width, glyphs)) if self.view is not None else Pen(width, glyphs).fit([])

    # --- moving

    def enter(self) -> str:
        view = self.view
        if view is None or view.enter():
            self.redraw()
        elif view.details is not None:
            if view.source is None:
                return "details"
            self._open_with_source(view.details, view.source)
        return ""

    @work(thread=True, exclusive=True, group="source", description="source")
    def _open_with_source(self, details: tuple[str, Callable[[Pen], list[Line]]], source: str) -> None:
        title, drawn = details
        excerpt = source_excerpt(source)

        def lines(pen: Pen) -> list[Line]:
            return [*drawn(pen), *pen.excerpt(excerpt)] if excerpt else drawn(pen)

        self.post_message(OpenPopup(TextPopup(self.look, title, lines, self.card_help_lines, is_card=True)))

    @property
    def view_name(self) -> str:
        return "allocators" if self._is_profile else "buffers"

    @property
    def source(self) -> str | None:
        return (self.view.source or None) if self.view is not None else None

    @property
    def op_elsewhere(self) -> str | None:
        return self.op_name

    @property
    def searched(self) -> Sequence[str]:
        return self.view.searched if self.view is not None else ()

    @property
    def syntax(self) -> str:
        return "words of the name, shape, framework op or source; all have to match"

    def why_not(self, verb: str) -> str:
        if self._pages is None:
            return ""
        own = self.view.why_not(verb) if self.view is not None else ""
        if verb == "buffers" and self.op_name is not None:
            return "These are its buffers."
        return own or ("No op creates it, so no other page has more on it." if verb == "there" else "")

    def next_match(self, direction: int) -> str:
        self.move(0, direction)
        return ""

    def _next_space(self, by: int) -> str:
        return "" if self._buffers is None else self._ask(self._buffers.next_space(self._awaited, by))

    @property
    def views(self) -> Mapping[str, str]:
        if self._buffers is None:
            return {}
        views = {"buffers": "Buffers", "allocators": "Allocators over time", "map": "Map of the buffers"}
        return views if self._buffers.space is not None else {name: views[name] for name in ("buffers", "allocators")}

    @property
    def shown_view(self) -> str:
        is_map = self._buffers is not None and self._buffers.shows_map
        return "map" if is_map and not self._is_profile else self.view_name

    @property
    def names(self) -> Mapping[tuple[str, str], Sequence[str]]:
        modules = () if self._pages is None else self._pages.page.modules
        return {("memory", "module"): [str(each.module) for each in modules if each.problem is None]}

    @work(thread=True, exclusive=True, group="triage", description="triage")
    def _work_out(self, space: SpaceMemory) -> None:
        from tpuprof.parsers.memory.oom.triage import triage_of_memory  # noqa: PLC0415

        load_above("oom")  # read here, and not on the screen's thread
        summary = self._buffers.summary if self._buffers is not None and self._buffers.space is space else None
        self.post_message(
            OpenScreen("oom", [triage_of_memory(space, *(() if summary is None else (summary.fit, summary.known)))])
        )

    # --- other modules and spaces

    def _choose(self) -> None:
        if self.view is None:
            return
        columns, choices, start = self.view.choices()
        title = "Allocators" if self._is_profile else "Modules, the largest peak first"
        listed = ChoiceList(columns, choices, self._chosen, _ABOUT_CHOICES, start)
        self.post_message(OpenPopup(ListPopup(self.look, title, listed)))

    def _chosen(self, value: object) -> None:
        if isinstance(value, int) and self._allocators is not None:
            self._allocators.show(value)
            self.redraw()
            self.post_message(CursorMoved())
        elif self._buffers is not None and (wanted := self._buffers.request(value)) is not None:
            self._ask(wanted)

    def _ask(self, wanted: SpaceRequest) -> str:
        """Begins to make a memory space's figures; says so, until they are there."""
        if self._pages is not None:
            self._awaited = wanted
            self._fetch(self._pages, wanted)
        return f"Reading {wanted.module.name}"

    @work(thread=True, exclusive=True, group="space", description="space")
    def _fetch(self, pages: MemoryPages, wanted: SpaceRequest) -> None:
        space = pages.compiled.figures(wanted.module, wanted.space)
        self.call_later(self._show_space, pages, wanted, space)
        if not isinstance(space, str):
            self.call_later(self._show_summary, space, pages.compiled.summary(space))

    def _show_space(self, pages: MemoryPages, wanted: SpaceRequest, space: SpaceMemory | str) -> None:
        """Shows what has come, unless another run is shown by now."""
        if pages is self._pages and self._buffers is not None and wanted == self._awaited:
            self._awaited = None
            answer = self._buffers.show(wanted, space)
            self.redraw()
            self.post_message(CursorMoved(answer))

    def go_to(self, what: str, name: str, program: int | None = None) -> str:
        if self._pages is None or self._buffers is None:
            self._wanted_op = (name, program)
            return ""
        self._is_profile = what == "allocators"
        if what in self.views:
            self._buffers.show_map(what == "map")
            self.redraw()
            return ""
        if what == "module":
            self._chosen(next((each for each in self._pages.page.modules if str(each.module) == name), None))
            return ""
        if (wanted := self._buffers.elsewhere(name, program)) is not None:
            return self._ask(wanted)
        answer = self._buffers.go_to(name)
        self.redraw()
        return answer
