"""The screen for memory that is full: of the errors of a log, or of a module that is nearly as large as the memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.files.source_lines import SourceExcerpt, source_excerpt
from tpuprof.parsers.memory.live_arrays import holders_of
from tpuprof.parsers.memory.oom.model import OomLog, OomReport
from tpuprof.parsers.memory.oom.triage import Triage, Trial, triage_of_report
from tpuprof.parsers.memory.oom.triage import trial as try_out
from tpuprof.tui.draw.pen import Composed, Pen, cut_words
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.pages import load_above
from tpuprof.tui.pages.commands.oom.draw import table as buffer_table
from tpuprof.tui.pages.commands.oom.draw.card import advice_card, buffer_card, meaning_lines, summary
from tpuprof.tui.pages.commands.oom.draw.page import compose as drawn
from tpuprof.tui.pages.commands.oom.draw.page import head_line as drawn_head
from tpuprof.tui.pages.commands.oom.draw.page import why_nothing_to_try
from tpuprof.tui.report.shared import holders
from tpuprof.tui.report.shared.exporting import ShownTable, order_text, run_of_file
from tpuprof.tui.terminal.detect import Terminal
from tpuprof.tui.terminal.grammar import BY_NAME
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import HELPS, ROW_KEYS, KeyRow
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.lists.screen import ListScreen, PageApp
from tpuprof.tui.widgets.lists.view import ListView
from tpuprof.tui.widgets.popup import Lines, TextPopup, meanings

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
    ("", "One of the buffers in memory at the peak, or all buffers of one source line (b)."),
    ("size", "bytes in memory, with padding."),
    ("padding", "the empty part of the tiles of 8 by 128 elements (of 32 bits); none if the shape fills them."),
    ("source", "the line that made it; e opens it in $EDITOR from the list below."),
)


class TriageList(ListView[buffer_table.BufferRow]):
    """The buffers of what is too large, below what to do about it: advice, or changes to try.

    Args:
        triages: one for each error; each is asked for when it is shown, and only then.
        arrays: a device memory profile that says who holds the memory.
        try_out: what toggles come to; a test puts its own here.
    """

    listing: buffer_table.OomView
    sorts = buffer_table.ROWS

    def __init__(
        self, triages: SupportsLenAndGetItem[Triage], arrays: LiveArrays | None = None, try_out: Try = try_out
    ) -> None:
        self.triages, self.arrays = triages, arrays
        self.at = 0
        self.listing = buffer_table.OomView(cursor=0)
        self.trial: Trial | None = None
        self._try = try_out
        self._excerpt_of = cache(source_excerpt)

    @property
    def triage(self) -> Triage:
        return self.triages[self.at]

    @property
    def rows(self) -> tuple[buffer_table.BufferRow, ...]:
        view = self.listing
        chosen = self.trial.chosen if self.trial is not None else frozenset()
        key = (self.at, view.sort, view.is_reversed, view.words, view.grouped, chosen)
        return self.kept(key, lambda: buffer_table.rows_of(self.triage, self.trial, view))

    @property
    def searched(self) -> Sequence[str]:
        return buffer_table.searched_texts(self.triage)

    @property
    def shown_table(self) -> ShownTable | None:
        triage, view = self.triage, self.listing
        if not triage.need.buffers:
            return None
        order = order_text(buffer_table.ROWS, view)
        table, source = buffer_table.rows_to_write(triage, self.rows, view.grouped)
        run = run_of_file(triage.where, triage.where)
        return ShownTable("oom", table, source, range(len(self.rows)), (), view.words, order, run)

    @property
    def buffer(self) -> Buffer | None:
        return self.triage.need.buffers[self.row.buffers[0]] if self.row is not None else None

    @property
    def source(self) -> str | None:
        """Where that buffer comes from; None where it is unknown."""
        return self.buffer.source if self.buffer is not None else None

    @property
    def excerpt(self) -> SourceExcerpt | None:
        """Lines around that place, where that file is here."""
        return self._excerpt_of(self.source, 3) if self.source else None

    def compose(self, pen: Pen, height: int) -> Composed:
        excerpt = self.excerpt if pen.width >= 100 else None
        return drawn(self.triage, self.trial, self.listing, pen, height, self.rows, excerpt, self._holders(pen))

    def _holders(self, pen: Pen) -> list[Line]:
        """Who holds the memory, in a line and as a section; nothing without a device memory profile."""
        if self.arrays is None:
            return []
        held = holders_of(self.arrays, self.triage.device)
        words = f" Who holds it (L): {holders.in_a_line(held, pen.glyphs.is_ascii)}"
        line = pen.fit([(cut_words(words, pen.width - 1, pen.glyphs), "key")])
        return [line, *holders.lines(held, "", pen)]

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        opened: dict[str, Callable[[], object]] = {}
        if self.listing.advice is not None:
            opened["advice"] = partial(self._look, advice=None)
        if self.trial is not None and self.trial.chosen and not self.listing.is_trying:
            opened["ticks"] = self._untick
        if self.listing.is_trying:
            opened["trying"] = partial(self._look, is_trying=False)
        return opened

    def _look(self, **changes: Any) -> None:  # noqa: ANN401 - attributes of the view
        self.listing = replace(self.listing, **changes)

    def _untick(self) -> None:
        self.trial = None

    def step(self, rows: int, screens: float = 0.0) -> None:
        if self.listing.is_trying:
            tries = self.listing.tries
            self._look(tries=tries.at(tries.cursor + self.rows_in(rows, screens), len(self.triage.toggles)))
        else:
            super().step(rows, screens)

    def choose_advice(self, index: int) -> None:
        self._look(advice=index)
        about = self.triage.advice[index].buffers
        row = next((place for place, row in enumerate(self.rows) if about and about[0] in row.buffers), None)
        if row is not None:
            self.point(row)

    def tick_number(self, number: int) -> str:
        numbers = self.triage.toggle_numbers
        if number in numbers:
            self._look(tries=Listing(numbers.index(number)))
            self.tick()
            return ""
        if number <= len(self.triage.advice):
            return f"Advice {number} can't be tried: its saving is not known buffer by buffer."
        return f"There is no change {number}."

    def tick(self) -> None:
        """Tries the change under the cursor, or takes it back."""
        if self.trial is None or not self.triage.toggles:
            return
        key = self.triage.toggles[self.listing.tries.cursor].key
        self.trial = self._try(self.triage, self.trial.chosen ^ {key})

    def enter(self) -> bool:
        if self.listing.is_trying:
            self.tick()
        return self.listing.is_trying

    def group(self) -> None:
        self.listing = self.listing.anew(grouped=not self.listing.grouped)

    def what_if(self) -> str:
        """Begins to try, or goes back to the advice; what is ticked stays ticked."""
        if not self.triage.toggles:
            return why_nothing_to_try(self.triage)
        if self.trial is None:
            self.trial = self._try(self.triage, frozenset())
        self._look(is_trying=not self.listing.is_trying)
        return ""

    def show(self, by: int) -> str:
        total = len(self.triages)
        if total < 2:
            return "There is only one error." if self.triage.kind != "module" else BY_NAME["next_step"].absent
        self.at = (self.at + by) % total
        self.listing = buffer_table.OomView(cursor=0, sort=self.listing.sort, grouped=self.listing.grouped)
        self.trial = None
        return ""


class TriageScreen(ListScreen):
    """The screen for what is too large; the arguments are those of its list."""

    content: SupportsLenAndGetItem[Triage]

    def __init__(
        self,
        triages: SupportsLenAndGetItem[Triage],
        look: ScreenLook,
        *,
        arrays: LiveArrays | None = None,
        try_out: Try = try_out,
        **options: Any,  # noqa: ANN401 - those of every page
    ) -> None:
        super().__init__(triages, look, **options)
        self._arguments = arrays, try_out

    @cached_property
    def listed(self) -> TriageList:
        return TriageList(self.content, *self._arguments)

    def head_line(self, pen: Pen) -> AnyLine:
        return drawn_head(self.listed.triage, self.listed.at, len(self.content), pen)

    def meaning_lines(self, pen: Pen) -> list[Line]:
        return meaning_lines(self.listed.triage, pen)

    def click_on(self, x: int, y: int, again: bool) -> str | None:
        """Takes a click on a buffer, as every list does; one on advice or a change to try is its number."""
        number = "".join(text for text, _ in self.body.lines[y])[1:3].strip()
        is_number = self.listed.row_at(y) is None and number in BY_NAME["pick"].keys
        return number if is_number else super().click_on(x, y, again)

    @property
    def keys(self) -> Sequence[KeyRow]:
        rows = replace(ROW_KEYS[0], title="Next, previous buffer")
        moves = (rows, *ROW_KEYS[1:])
        table = (self._advice_key, *moves, *self._table_keys(), *self._log_keys(), *self.last_keys())
        if not self.listed.listing.is_trying:
            return table
        shown = {"view": "advice", "help": "help", "quit": self.last_keys()[-1].short, rows.verbs: "move"}
        tick = KeyRow("mark", "try", acts={"mark": self.listed.tick})
        return (tick, *(replace(key, short=shown.get(key.verbs, "")) for key in table))

    @property
    def _advice_key(self) -> KeyRow:
        count = min(9, len(self.listed.triage.advice))
        sentence = "Choose advice: its arithmetic, its buffer; again: all of it"
        foot = f"1-{count}" if count > 1 else "1"
        return KeyRow("pick", "advice" if count else "", sentence, {"pick": self._number}, foot)

    def _table_keys(self) -> Sequence[KeyRow]:
        listed, after = self.listed, HELPS + 1
        has_buffers = bool(listed.triage.need.buffers)
        filters = {"search": self.begin_filter} if has_buffers else {}
        opens = {"open": self.enter} if listed.listing.is_trying or listed.row is not None else {}
        edit = partial(self.edit_source, listed.source)
        rows = (
            KeyRow("open", "details", "All about the buffer, and its source lines", opens, rank=1),
            KeyRow("edit", "edit source", "Open the source line in $EDITOR", {"edit": edit}, rank=after + 2),
            listed.sorting_key(rank=after + 1),
            KeyRow("group", "by source", "Group by source line", {"group": listed.group}, rank=after),
            KeyRow("search", "filter", "Only buffers with these words", filters, rank=after + 1),
        )
        return rows if has_buffers else [replace(key, short="") for key in rows]

    def _log_keys(self) -> Sequence[KeyRow]:
        listed, has_more = self.listed, len(self.content) > 1
        has_arrays = listed.arrays is not None
        words = "Who holds the memory: the device memory profile" if has_arrays else ""
        steps = "next error", "Next, previous error of the log"
        errors = {"next_step": partial(listed.show, 1), "previous_step": partial(listed.show, -1)}
        holds, opens = "who holds it" if has_arrays else "", {"live_arrays": self._open_arrays}
        return (
            KeyRow("view", "what if" if listed.triage.toggles else "", _WHAT_IF, {"view": listed.what_if}, rank=2),
            KeyRow("live_arrays", holds, words, opens, rank=2),
            KeyRow("next_step previous_step", *(steps if has_more else ("", "")), errors, "]", 3),
            KeyRow("copy", "copy", _SUMMARY, {"copy": lambda: self.copy(summary(listed.triage))}, rank=4),
        )

    def _number(self, number: int) -> str:
        """Chooses advice; again: opens all of it. While trying, ticks a toggle."""
        listed, index = self.listed, number - 1
        if listed.listing.is_trying:
            return listed.tick_number(number)
        if index >= len(listed.triage.advice):
            return f"There is no advice {number}."
        if listed.listing.advice == index:
            lines = partial(advice_card, listed.triage, index)
            self.open(TextPopup(self.look, f"Advice {number}", lines, ABOUT_ADVICE))
        else:
            listed.choose_advice(index)
        return ""

    @property
    def card_of_row(self) -> tuple[str, Lines, Lines] | None:
        listed = self.listed
        if listed.row is None or listed.buffer is None:
            return None
        lines = partial(buffer_card, listed.triage, listed.row, excerpt=listed.excerpt)
        return listed.row.title or buffer_table.instruction_of(listed.buffer) or "Buffer", lines, ABOUT_BUFFER

    def _open_arrays(self) -> str:
        if self.listed.arrays is None:
            return "There is no device memory profile: tpuprof-tui oom LOG memory.prof"
        self.app.push_screen(load_above("live-arrays")(self.listed.arrays, self.look, environ=self.environ))
        return ""


class Triages:
    """The errors of a log, each with its advice once that is asked for: of many a user looks at a few."""

    def __init__(self, reports: Sequence[OomReport], where: str) -> None:
        self._count = len(reports)
        self._triage = cache(lambda place: triage_of_report(reports[place], where))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int, /) -> Triage:
        return self._triage(place)


def oom_app(
    log: OomLog,
    name: str,
    terminal: Terminal,
    *,
    arrays: LiveArrays | None = None,
    environ: Mapping[str, str] | None = None,
) -> PageApp:
    """The app that shows the errors of a log with that name; `arrays` is the device memory profile given with it."""
    screen = partial(TriageScreen, note="".join(log.notes[:1]), arrays=arrays)
    return PageApp(screen, Triages(log.reports, name), terminal, environ=environ)


APP = oom_app
