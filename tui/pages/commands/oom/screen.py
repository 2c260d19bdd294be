"""The screen for memory that is full: of the errors of a log, or of a module that is nearly as large as the memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.files.source_lines import SourceExcerpt, source_excerpt
from tpuprof.parsers.memory.live_arrays import holders_of
from tpuprof.parsers.memory.oom.triage import Triage, Trial
from tpuprof.parsers.memory.oom.triage import trial as try_out
from tpuprof.tui.draw.layout import Composed, cut_words
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.pages import load_above
from tpuprof.tui.pages.commands.oom.draw.advice import why_nothing_to_try
from tpuprof.tui.pages.commands.oom.draw.card import advice_card, buffer_card, meaning_lines, summary
from tpuprof.tui.pages.commands.oom.draw.page import compose as drawn
from tpuprof.tui.pages.commands.oom.draw.page import head_line as drawn_head
from tpuprof.tui.pages.commands.oom.draw.table import (
    SORTS,
    BufferRow,
    OomView,
    instruction_of,
    is_down,
    rows_of,
    rows_to_write,
    searched_texts,
)
from tpuprof.tui.report.choice import sort_text
from tpuprof.tui.report.shared import holders
from tpuprof.tui.report.shared.exporting import Shown, run_of_file
from tpuprof.tui.terminal.grammar import BY_NAME
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import ROW_KEYS, KeyRow
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.page_screen import HELPS, PageScreen
from tpuprof.tui.widgets.popup import TextPopup, meanings

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

    from tpuprof.parsers.memory.live_arrays import LiveArrays
    from tpuprof.parsers.memory.model import Buffer

Try = Callable[[Triage, frozenset[str]], Trial]


_WHAT_IF = "What if: try changes (space, or their numbers); back to the advice"
_SUMMARY = "Copy a summary of twelve lines"

ABOUT_ADVICE = meanings(
    ("", "What to change, how, and what that would save, with the arithmetic and the buffers behind it."),
    ("saves", "an estimate from the listed buffers, before the compiler has seen the change; advice may overlap."),
)
ABOUT_BUFFER = meanings(
    ("", "One of the buffers in memory at the peak, or all buffers of one source line (`b`)."),
    ("size", "bytes in memory, with padding."),
    ("padding", "the empty part of the tiles of 8 by 128 elements (of 32 bits); none if the shape fills them."),
    ("source", "the line that made it; `e` opens it in $EDITOR from the list below."),
)


class TriageScreen(PageScreen[BufferRow]):
    """Shows what is too large and what to do about it.

    Args:
        triages: one for each error; each is asked for when it is shown, and only then.
        arrays: a device memory profile that says who holds the memory.
        try_out: what toggles come to; a test puts its own here.
    """

    content: SupportsLenAndGetItem[Triage]

    def __init__(
        self,
        triages: SupportsLenAndGetItem[Triage],
        look: ScreenLook,
        *,
        environ: Mapping[str, str] | None = None,
        note: str = "",
        is_alone: bool = False,
        arrays: LiveArrays | None = None,
        try_out: Try = try_out,
    ) -> None:
        super().__init__(triages, look, environ=environ, note=note, is_alone=is_alone)
        self.at = 0
        self.view: OomView = OomView(cursor=0)
        self.trial: Trial | None = None
        self._try = try_out
        self._arrays = arrays
        self._excerpt_of = cache(source_excerpt)

    @property
    def triage(self) -> Triage:
        """What is shown."""
        return self.content[self.at]

    @property
    def rows(self) -> tuple[BufferRow, ...]:
        """The table's rows."""
        view = self.view
        chosen = self.trial.chosen if self.trial is not None else frozenset()
        key = (self.at, view.sort, view.is_reversed, view.words, view.grouped, chosen)
        return self.kept(key, lambda: rows_of(self.triage, self.trial, view))

    @property
    def searched(self) -> Sequence[str]:
        """What a filter looks at in each buffer."""
        return searched_texts(self.triage)

    @property
    def shown_table(self) -> Shown | None:
        """The buffers as they are filtered and sorted, or what those of one source line are together."""
        triage, view = self.triage, self.view
        if not triage.need.buffers:
            return None
        order = sort_text(view.sort, is_down(view))
        table, source = rows_to_write(triage, self.rows, view.grouped)
        run = run_of_file(triage.where, triage.where)
        return Shown("oom", table, source, range(len(self.rows)), (), view.words, order, run)

    @property
    def buffer(self) -> Buffer | None:
        """The largest buffer of the row under the cursor."""
        return self.triage.need.buffers[self.row.buffers[0]] if self.row is not None else None

    @property
    def source(self) -> str | None:
        """Where that buffer comes from; None where it is unknown."""
        return self.buffer.source if self.buffer is not None else None

    def head_line(self, pen: Pen) -> AnyLine:
        """Which error it is."""
        return drawn_head(self.triage, self.at, len(self.content), pen)

    def compose_page(self, pen: Pen, height: int) -> Composed:
        """What is too large, the advice or the toggles, and the table."""
        excerpt = self._excerpt() if pen.width >= 100 else None
        held = self._holders(pen)
        return drawn(self.triage, self.trial, self.view, pen, height, self.rows, excerpt, held)

    def meaning_lines(self, pen: Pen) -> list[Line]:
        """What the numbers mean, and what is unknown."""
        return meaning_lines(self.triage, pen)

    def _excerpt(self) -> SourceExcerpt | None:
        """Lines around the place that the buffer under the cursor comes from, where that file is here."""
        return self._excerpt_of(self.source, 3, 3) if self.source else None

    @property
    def keys(self) -> Sequence[KeyRow]:
        """The keys of what is shown; while changes are tried, the footer has those alone that matter then."""
        rows = replace(ROW_KEYS[0], title="Next, previous buffer")
        moves = (rows, *ROW_KEYS[1:])
        table = (*self._advice_keys(), *moves, *self._table_keys(), *self._log_keys(), *self.last_keys())
        if not self.view.is_trying:
            return table
        shown = {"view": "advice", "help": "help", "quit": self.last_keys()[-1].short, rows.verbs: "move"}
        tick = KeyRow("mark", "try", acts={"mark": self._tick})
        return (tick, *(replace(key, short=shown.get(key.verbs, "")) for key in table))

    def _advice_keys(self) -> Sequence[KeyRow]:
        count = min(9, len(self.triage.advice))
        sentence = "Choose advice: its arithmetic, its buffer; again: all of it"
        return [
            KeyRow(
                "pick", "advice" if count else "", sentence, {"pick": self._number}, f"1-{count}" if count > 1 else "1"
            )
        ]

    def _table_keys(self) -> Sequence[KeyRow]:
        has_buffers = bool(self.triage.need.buffers)
        after = HELPS + 1
        filters = {"search": self.begin_filter} if has_buffers else {}
        opens = {"open": self.enter} if self.view.is_trying or self.row is not None else {}
        rows = (
            KeyRow("open", "details", "All about the buffer, and its source lines", opens, rank=1),
            KeyRow("edit", "edit source", "Open the source line in $EDITOR", {"edit": self._edit}, rank=after + 2),
            self.sorting_key("Sort by the next column; reverse", "sort", after + 1),
            KeyRow("group", "by source", "Group by source line", {"group": self._group}, rank=after),
            KeyRow("search", "filter", "Only buffers with these words", filters, rank=after + 1),
        )
        return rows if has_buffers else [replace(key, short="") for key in rows]

    def _log_keys(self) -> Sequence[KeyRow]:
        has_arrays, has_more = self._arrays is not None, len(self.content) > 1
        words = "Who holds the memory: the device memory profile" if has_arrays else ""
        steps = "next error", "Next, previous error of the log"
        after, before = partial(self._show, 1), partial(self._show, -1)
        errors = {"next_step": after, "previous_step": before}
        return (
            KeyRow("view", "what if" if self.triage.toggles else "", _WHAT_IF, {"view": self._what_if}, rank=2),
            KeyRow(
                "live_arrays", "who holds it" if has_arrays else "", words, {"live_arrays": self._open_arrays}, rank=2
            ),
            KeyRow("next_step previous_step", *(steps if has_more else ("", "")), errors, "]", 3),
            KeyRow("copy", "copy", _SUMMARY, {"copy": lambda: self.copy(summary(self.triage))}, rank=4),
        )

    def move(self, rows: int, screens: float) -> None:
        """Moves the cursor, over the toggles while trying."""
        if self.view.is_trying:
            tries = self.view.tries
            tries = tries.at(tries.cursor + self.rows_in(rows, screens), len(self.triage.toggles))
            self.view = replace(self.view, tries=tries)
        else:
            super().move(rows, screens)

    def _number(self, number: int) -> None:
        """Chooses advice and goes to its largest buffer; again: opens all of it. While trying, ticks a toggle."""
        if self.view.is_trying:
            self._tick_number(number)
            return
        index = number - 1
        if index >= len(self.triage.advice):
            self.flash = f"There is no advice {number}."
            return
        if self.view.advice == index:
            lines = partial(advice_card, self.triage, index)
            self.open(TextPopup(self.look, f"Advice {number}", lines, ABOUT_ADVICE))
            return
        self.view = replace(self.view, advice=index)
        about = self.triage.advice[index].buffers
        row = next((place for place, row in enumerate(self.rows) if about and about[0] in row.buffers), None)
        if row is not None:
            self.point(row)

    def _tick_number(self, number: int) -> None:
        numbers = self.triage.toggle_numbers
        if number in numbers:
            self.view = replace(self.view, tries=Listing(numbers.index(number)))
            self._tick()
        elif number <= len(self.triage.advice):
            self.flash = f"Advice {number} can't be tried: its saving is not known buffer by buffer."
        else:
            self.flash = f"There is no change {number}."

    def enter(self) -> None:
        """All of the buffer under the cursor; ticks the toggle while trying."""
        if self.view.is_trying:
            self._tick()
        elif self.row is not None and self.buffer is not None:
            lines = partial(buffer_card, self.triage, self.row, excerpt=self._excerpt())
            title = self.row.title or instruction_of(self.buffer) or "Buffer"
            self.open(TextPopup(self.look, title, lines, ABOUT_BUFFER))

    @property
    def orders(self) -> Mapping[str, str]:
        """The columns."""
        return {sort: sort for sort in SORTS}

    def _group(self) -> None:
        self.view = self.view.anew(grouped=not self.view.grouped)

    def _what_if(self) -> None:
        """Begins to try, or goes back to the advice; what is ticked stays ticked."""
        if not self.triage.toggles:
            self.flash = why_nothing_to_try(self.triage)
            return
        if self.trial is None:
            self.trial = self._try(self.triage, frozenset())
        self.view = replace(self.view, is_trying=not self.view.is_trying)

    def _tick(self) -> None:
        if self.trial is None or not self.triage.toggles:
            return
        key = self.triage.toggles[self.view.tries.cursor].key
        self.trial = self._try(self.triage, self.trial.chosen ^ {key})

    def _show(self, by: int) -> None:
        """The next or previous error."""
        total = len(self.content)
        if total < 2:
            self.flash = "There is only one error." if self.triage.kind != "module" else BY_NAME["next_step"].absent
            return
        self.at = (self.at + by) % total
        self.view = OomView(cursor=0, sort=self.view.sort, grouped=self.view.grouped)
        self.trial = None

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        """The filter, chosen advice, what is ticked, and trying itself."""
        opened = dict(super().opened)
        if self.view.advice is not None:
            opened["advice"] = lambda: self._look(advice=None)
        if self.trial is not None and self.trial.chosen and not self.view.is_trying:
            opened["ticks"] = self._untick
        if self.view.is_trying:
            opened["trying"] = lambda: self._look(is_trying=False)
        return opened

    def _look(self, **changes: Any) -> None:  # noqa: ANN401 - attributes of the view
        self.view = replace(self.view, **changes)

    def _untick(self) -> None:
        self.trial = None

    def _holders(self, pen: Pen) -> list[Line]:
        """Who holds the memory, in a line and as a section; nothing without a device memory profile."""
        if self._arrays is None:
            return []
        held = holders_of(self._arrays, self.triage.device)
        words = f" {pen.glyphs.keyed('Who holds it (`L`)')}: {holders.in_a_line(held, pen.glyphs.is_ascii)}"
        line = pen.fit([(cut_words(words, pen.width - 1, pen.glyphs), "key")])
        return [line, *holders.lines(held, "", pen)]

    def _open_arrays(self) -> None:
        """The device memory profile, above this screen."""
        if self._arrays is None:
            self.flash = "There is no device memory profile: tpuprof-tui oom LOG memory.prof"
        else:
            self.app.push_screen(load_above("live-arrays")(self._arrays, self.look, environ=self.environ))

    def _edit(self) -> None:
        """Opens the user's editor at the source line, where that file is here."""
        self.flash = self.edit_source(self.source) if self.source else BY_NAME["edit"].absent
