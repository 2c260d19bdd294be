"""The ops tab: which ops cost what, and why. Views of the same ops and of pages near them, and a card on one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar

from textual import work
from textual.timer import Timer

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.ops.filtering.filter import HELP
from tpuprof.tui.draw.layout import cut_words, filled, gutter_lines, hstack
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Line, Span, line_width, plain
from tpuprof.tui.pages import views_of
from tpuprof.tui.pages.ops.details.card import CARD
from tpuprof.tui.pages.ops.details.card_cache import CardCache, Key, fetch
from tpuprof.tui.pages.ops.details.compare import ABOUT, comparison_lines
from tpuprof.tui.pages.ops.fields.device import machine_line
from tpuprof.tui.pages.ops.searching_view import SearchingTab
from tpuprof.tui.pages.ops.switcher import FRAMEWORK, HLO, KERNELS, TREE, View, Views
from tpuprof.tui.report.shared.exporting import Shown
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import KeyRow, motion_keys
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.popup import TextPopup, meanings
from tpuprof.tui.widgets.rows import LIST_KEYS, Filterable
from tpuprof.tui.widgets.states import Failed, State, state_lines
from tpuprof.tui.widgets.tab import CursorMoved, Jump, OpenPopup, PageWanted, Payload

_READ_LATER = "Framework ops are read from the host threads' lines, which takes longer. After Esc, `r` reads them."
WIDE = 112  # cells from which on the card stands beside the list
HEADLINE_LINES = 3  # most lines above list and card: two of the headline, one of the views
TALL = 24  # rows from which on the card takes a third of them
WHOLE = 20  # rows from which on the headline may take two lines
CARD_DELAY_SECONDS = 0.08  # rest of the cursor after which the card follows it
GUTTER = 3  # cells between list and card
LOW = 14  # Rows of the list and card below which there is no card; Enter opens it.


def _card_width(width: int) -> int:
    """Cells of the card beside the list."""
    return min(60, width * 2 // 5)


class OpsTab(SearchingTab):
    """Shows the ops of a run, or the state of loading them.

    While `card_is_late` the card still shows what the cursor has left.
    """

    CARD = CARD
    MEANINGS: ClassVar[dict[str, str]] = {
        "IDLE": "time in which a core runs no op.",
        "duplicates": "ops that the compiler made of one: the same code, several times.",
        "clones": "duplicates, and ops of one program that differ only by numbers in name and framework op.",
        "padding": "the bytes that tiling adds: an array's last two dimensions are rounded up to its tile.",
        "matrix": "the part of the matrix unit that dimensions fill; an estimate from shapes, not measured.",
        "by source": "ops by their file and line: all of a fusion counts for one line, as in XProf.",
        "n/a": "the profile has no count for it; unknown is never shown as 0.",
    }
    NAME_CELLS = 14

    @property
    def meanings(self) -> Iterable[tuple[str, str]]:
        """What the figures of the view are called and mean."""
        return super().meanings if self.views.other_view is None else self.views.other_view.meanings

    def __init__(self, look: ScreenLook, *, id: str) -> None:
        super().__init__(look, id=id)
        self.views = Views(self._fetch, look.custom.columns)
        self._failures: dict[str, ProfileError] = {}
        self._list_height = 1
        self.card_is_late = False
        self._status_drawn = ""
        self._rest: Timer | None = None
        self._card_drawn: tuple[tuple[str, int, Glyphs], list[Line]] = (("", 0, look.glyphs), [])

    # --- what it shows

    def show(self, part: str, payload: Payload) -> str | None:
        """Shows the HLO ops, or the framework ops beside them; says what is not there of what was asked for."""
        said: str | None = None
        if part == "ops":
            self._forget()
            said = self.views.show_ops(payload)
        elif part == "views":
            said = self.views.show_others(payload) or None
            self._ask()
        else:
            said = self.views.show_other(part, payload) or None
        self.redraw()
        return said

    @property
    def wanted(self) -> str:
        """The other page whose view is shown, where that is not read yet and could be."""
        return self.views.other if self.view is None and self.views.other not in self._failures else ""

    def show_failure(self, page: str, error: ProfileError) -> None:
        """Shows in the view of another page why it could not be read."""
        self._failures[page] = error
        self.redraw()

    def show_state(self, state: State) -> None:
        """Shows what is going on instead of the ops."""
        self._forget()
        self._state = state
        self.redraw()

    def _forget(self) -> None:
        """Drops what was shown, and all that is still on its way for it."""
        self.views.forget()
        self._failures = {}
        self.card_is_late = False

    def draw(self, width: int, height: int) -> Sequence[AnyLine]:
        """Headline, views, list and card; or the state."""
        pen = Pen(width, self.look.glyphs)
        if not self.has_page:
            return state_lines(self._state, pen, height)
        inner = pen.narrower(1)
        lines = [pen.fit([(f" {cut_words(self.views.headline, inner.width, pen.glyphs)}", "text")])]
        if height >= WHOLE or (self.views.other_view is not None and height >= LOW):  # other pages' rows are few
            lines = inner.wrap(self.views.headline, "text", [(" ", "text")])
            rest = " ".join(plain(line).strip() for line in lines[1:])
            lines[1:] = [inner.fit([(f" {cut_words(rest, inner.width - 1, pen.glyphs)}", "text")])] if rest else []
        lines.append(self._views_line(pen))
        body = height - len(lines)
        view = self.view
        if view is None:
            return [*lines, *self._missing(pen, body)]
        draw = self._side_by_side if width >= WIDE else self._one_below_the_other
        return [pen.fit(line) for line in [*lines, *draw(view, pen, body)]]

    def _missing(self, pen: Pen, height: int) -> list[Line]:
        """What stands for a view that is not read yet, or cannot be."""
        failure = self._failures.get(self.views.other)
        if failure is not None:
            return state_lines(Failed(failure), pen, height)
        one = f"{self.views.titles[self.views.at]}: being read now. After Esc, `r` reads it again."
        words = _READ_LATER if self.views.at == FRAMEWORK else one
        return pen.wrap(pen.glyphs.keyed(words), "dim", [("  ", "dim")])

    def _side_by_side(self, view: View, pen: Pen, height: int) -> list[Line]:
        card_width = _card_width(pen.width)
        list_width = pen.width - card_width - GUTTER
        self._list_height = height - 1
        rows = view.lines(pen.at(list_width), height)
        card = pen.at(card_width).shortened(self._card(view, pen.at(card_width)), height)
        return hstack((rows, gutter_lines(height, pen.glyphs), card), (list_width, GUTTER, card_width))

    def rule_place(self, width: int) -> tuple[int, int] | None:
        """Where the rule between list and card begins, below the highest headline; None where there is none."""
        is_there = self.has_page and self.view is not None and width >= WIDE
        return (width - _card_width(width) - GUTTER, HEADLINE_LINES) if is_there else None

    def _one_below_the_other(self, view: View, pen: Pen, height: int) -> list[Line]:
        card_height = 6 if height < TALL else height // 3
        if height < LOW or (height < TALL and not view.has_low_card):
            card_height = 0
        list_height = height - card_height - (1 if card_height else 0)
        self._list_height = list_height - 1
        rows = view.lines(pen, list_height)
        if not card_height:
            return rows
        card = pen.narrower(1).shortened(self._card(view, pen.narrower(1)), card_height)
        ruled: Line = ((pen.glyphs.horizontal * pen.width, "rule"),)
        return [*filled(rows, pen.width, list_height), ruled, *(((" ", "text"), *line) for line in card)]

    def _card(self, view: View, pen: Pen) -> list[Line]:
        """The card, or the one before it while the cursor is on its way; nothing while it is open in full."""
        if self.card_is_open:
            return []
        if not (self.card_is_late and self._card_drawn[0] == (self.views.at, pen.width, pen.glyphs)):
            self._card_drawn = ((self.views.at, pen.width, pen.glyphs), view.card(pen))
        return self._card_drawn[1]

    def _moved(self) -> None:
        """Draws the rows at once and the card when the cursor rests: a held key then costs two lines a step."""
        self.card_is_late = True
        self.redraw()
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(CARD_DELAY_SECONDS, self._rested)

    def _rested(self) -> None:
        self.card_is_late, self._rest = False, None
        self.redraw()

    def _views_line(self, pen: Pen) -> Line:
        """The views' names, the shown one marked, and how it is sorted; that needs the room of names passed by more."""
        at, names = self.views.at, self.views.titles
        if not self.card_is_late:
            self._status_drawn = self.views.status
        spans: list[Span] = [(f" {name} ", "dim") for name in names.values()]
        key: Span = (" v ", "key")
        passed, before = 0, list(names).index(at)
        spans[before] = (f"[{names[at]}]", "strong")

        def room() -> int:
            return pen.width - line_width((key, *spans)) - len(self._status_drawn) - 1

        while room() < 1 and passed < before:
            spans[: 1 + bool(passed)] = [(f" {pen.glyphs.ellipsis} ", "dim")]
            passed += 1
        return pen.fit([key, *spans, (" " * max(1, room()), "text"), (self._status_drawn, "dim")])

    @property
    def view(self) -> View | None:
        """The view that is shown; None where it is not there yet."""
        return self.views.shown

    @property
    def every_view(self) -> Sequence[Filterable]:
        """All views that are there."""
        return self.views.all

    @property
    def has_page(self) -> bool:
        """Whether ops are shown, rather than a state."""
        return self.views.pages is not None

    @property
    def is_ready(self) -> bool:
        """Whether the view that is shown is there, or can't be."""
        return self.has_page and (self.view is not None or self.views.other in self._failures)

    @property
    def view_name(self) -> str:
        """Name of the view that is shown."""
        return self.views.at

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        """What is open in the view: a group, a mark, the same op in another view."""
        return {name: partial(self._close, close) for name, close in self.views.opened.items()}

    def _close(self, close: Callable[[], object]) -> None:
        close()
        self.redraw()

    @property
    def source(self) -> str | None:
        """The source line of the op under the cursor."""
        return self.views.source or None

    def source_of(self, op: str) -> str:
        """The source line of an op; of a framework op that of its longest HLO op."""
        return self.views.source_of(op)

    @property
    def shown_table(self) -> Shown | None:
        """The rows of the view as they stand."""
        return None if self.view is None else self.view.shown_table

    @property
    def syntax(self) -> str:
        """What may be typed into a filter."""
        return "fusion  !copy  cat:conv  >1ms  >5%  occurrences>=10  ~a.*b   Tab completes"

    def words_for(self, begun: str) -> Sequence[str]:
        """What a word that is begun in a filter may become."""
        return () if self.view is None else self.view.words_for(begun)

    def why_not(self, verb: str) -> str:
        """Why a verb does nothing in the view that is shown."""
        return self.views.why_not(verb) if self.has_page else ""

    @property
    def commands(self) -> tuple[str, ...]:
        """What keys do here besides moving."""
        if not self.has_page:
            return ()
        other, of_op = self.views.other_view, self.views.op_row is not None
        jumps: tuple[str, ...] = ("buffers",) if of_op else ()
        jumps += ("graph",) if self.views.listed_row is not None else ()
        if other is not None:
            op: tuple[str, ...] = ("same_op", "on_timeline") if of_op else ()
            return ("view", *dict.fromkeys((*op, *jumps, *other.jumps())), *other.commands)
        if self.views.other:
            return ("view",)
        jumps = ("on_timeline", *jumps) if self.views.op_name is not None else jumps
        return ("view", "same_op", "compare_op", *jumps, *(self.view.commands if self.view is not None else ()))

    def jump(self, command: str) -> Jump | None:
        """To the op's longest run on the timeline, its buffers, its graph, or to where another page's view leads."""
        other = self.views.other_view
        if other is not None and command in (jumps := other.jumps()):
            return jumps[command]
        if command == "on_timeline" and self.views.op_name is not None:
            return Jump("timeline", "op", self.views.op_name)
        row, pages = self.views.listed_row if command == "graph" else self.views.op_row, self.views.pages
        if command not in ("buffers", "graph") or row is None or pages is None:
            return None
        table, tab = pages.listed.table, "memory" if command == "buffers" else "graph"
        name = self.selection if tab == "graph" and self.views.at == TREE else None  # it may be one inside a fusion
        return Jump(tab, "op", name or table.name[row], int(table.program_id[row]) or None)

    @property
    def keys(self) -> Sequence[KeyRow]:
        """The view's, after the key that changes views."""
        views, view = self.views, KeyRow("view", "view")
        if not self.has_page:
            return super().keys
        if views.other_view is not None:
            return (view, *views.other_view.KEYS)
        enter = "The whole card; of hidden nodes and groups, all of them"
        if views.at == TREE:
            motions = motion_keys("row", "Open, close a node; into it, out of it", enter, short=("", "close, open", ""))
            return (view, KeyRow("group", "group by"), KeyRow("sort", "sort"), *motions)
        motions = motion_keys(enter=enter)
        if views.other:
            return (view, *motions)
        where = KeyRow("there", "in HLO ops" if views.at in (FRAMEWORK, KERNELS) else "in tree")
        sort, details, search = LIST_KEYS
        if views.at in (HLO, FRAMEWORK, KERNELS):
            return (view, KeyRow("group", "group"), sort, where, details, search, *motions)
        return (view, sort, where, details, *motions)

    @property
    def note(self) -> str:
        """The headline in full, and what else the view has to say."""
        other = self.views.other_view
        return other.note if other is not None and other.note else self.views.headline

    @property
    def search_failed(self) -> bool:
        """Whether the last text was no filter."""
        return self.view is not None and self.view.is_filter_wrong

    @property
    def selection(self) -> str | None:
        """The full name under the cursor."""
        return self.view.selection if self.view is not None else None

    def detail_line(self, width: int) -> AnyLine:
        """The machine, where there is a line for it."""
        pages, pen = self.views.pages, Pen(width - 1, self.look.glyphs)
        return super().detail_line(width) if pages is None else ((" ", "dim"), *machine_line(pages.ops, pen))

    @property
    def details(self) -> tuple[str, Callable[[Pen], list[Line]]] | None:
        """Title and text of what Enter opens: the card in full."""

        def card(pen: Pen) -> list[Line]:
            return self.view.card(pen) if self.view is not None else []

        title = self.views.titles[self.views.at] if self.views.other else "Op"
        return (title, card) if self.selection is not None else None

    # --- fetching

    @work(thread=True, group="details", description="fetch")  # else Textual spells out every argument, at length
    def _fetch(self, cards: CardCache, key: Key) -> None:
        self.call_later(self._fetched, cards, key, fetch(key, cards.pages))

    def _fetched(self, cards: CardCache, key: Key, value: object) -> None:
        """Draws with what has come, unless other ops are shown by now."""
        cards.found[key] = value
        if cards is not self.views.cards:
            return
        if not isinstance(key, str):  # lines around a place make no more rows
            self.views.refresh()
        self.redraw()
        if key is None:
            self.post_message(CursorMoved("grouped by source line"))

    # --- moving

    def move(self, across: int, down: int) -> None:
        """Down moves over rows; across opens and closes in the tree, and shifts the columns of a table."""
        if self.view is not None:
            self.view.move(across, down)
            self._moved()

    def ends(self, direction: int) -> None:
        """First or last row."""
        self.move(0, direction * (1 << 40))

    def page(self, screens: float) -> None:
        """Moves the cursor by `screens` screens of rows."""
        self.move(0, round(screens * max(1, self._list_height - 1)) or (1 if screens > 0 else -1))

    def enter(self) -> str:
        """Opens or closes a node of the tree; "details" where the card is to be opened."""
        if self.view is not None and not self.view.enter():
            return "details"
        self.find_asked()
        self.redraw()
        return ""

    def command(self, name: str, by: int = 1) -> str:
        """Does one of `commands`; says what came of it."""
        self.card_is_late = False
        if not self.has_page:
            return ""
        message = ""
        if name == "view":
            self.views.turn(by)
            self._ask()
        elif name == "same_op":
            message = self.views.same_op()
        elif name == "compare_op":
            message = self._compare()
        elif self.view is not None and name in self.view.commands:
            message = self.view.command(name)
            self.find_asked()  # an order of many rows, or what a filter keeps of other rows
        self.redraw()
        return message

    def _compare(self) -> str:
        """Marks the op under the cursor, or opens the comparison with the marked one; says what came of it."""
        pair = self.views.compare()
        if isinstance(pair, str):
            return pair

        self.post_message(OpenPopup(TextPopup(self.look, "Two ops", partial(comparison_lines, pair), meanings(*ABOUT))))
        return ""

    def _ask(self) -> None:
        """Asks for the page whose view is shown, where that is not read yet."""
        if self.wanted:
            self.post_message(PageWanted())

    def go_to(self, what: str, name: str, program: int | None = None) -> str:
        """Shows an op, a framework op, or another page's view and in it what has that name."""
        if any(view.name == what for view in views_of("op-profile")):
            said = self.views.show_page(what, name)
            self._ask()
        elif what == "framework_op":
            said = self.views.show_framework_op(name)
        else:
            said = self.views.show_named_op(name)
        self.redraw()
        return said

    # --- searching

    def search(self, text: str) -> str:
        """Filters a table; in the tree, moves to the first node with that name."""
        message = self.view.search(text) if self.view is not None else ""
        self.find_asked()
        self.redraw()
        return message

    def end_search(self) -> None:
        """Forgets the text searched for in the view."""
        if self.view is not None:
            self.view.search("")
        self.redraw()

    def next_match(self, direction: int) -> str:
        """Next match in the tree, next row in a table."""
        message = self.view.next_match(direction) if self.view is not None else ""
        self.redraw()
        return message

    def column_help(self) -> Sequence[tuple[str, str]]:
        """What the columns of the shown view mean."""
        return self.view.help_rows() if self.view is not None else ()

    def meaning_lines(self, pen: Pen) -> list[Line]:
        """What the columns mean, and the filter's language."""
        lines = super().meaning_lines(pen)
        for example, meaning in HELP:
            lines += pen.wrap(meaning, "text", [(f"{f'/{example}':<{self.NAME_CELLS}} ", "strong")])
        return lines
