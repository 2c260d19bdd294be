"""The ops tab: which ops cost what, and why. Views of the same ops and of pages near them, and a card on one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from textual import work
from textual.timer import Timer

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.ops.filtering.filter import HELP
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.tui.draw.pen import Pen, cut_words
from tpuprof.tui.draw.spans import Glyphs, Line, plain
from tpuprof.tui.draw.table import Listing, views_line
from tpuprof.tui.pages import TabView, views_of
from tpuprof.tui.pages.ops.details.card import CARD
from tpuprof.tui.pages.ops.details.card_cache import CardCache, Key, OpPages, fetch
from tpuprof.tui.pages.ops.fields.common import machine_line
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.pages.ops.panes import GUTTER, LOW, WIDE, card_width, panes
from tpuprof.tui.pages.ops.searching_view import SearchingTab
from tpuprof.tui.pages.ops.table_views import FrameworkView, HloView, KernelView, RooflineView, TableView
from tpuprof.tui.pages.ops.tree_view import TreeView
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import Failed, KeyRow, State, state_lines, verb_row
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.lists.table import RowsView
from tpuprof.tui.widgets.tab import CursorMoved, Jump, Payload, jump_row

TREE, HLO, FRAMEWORK, ROOFLINE, KERNELS = "tree", "hlo", "framework_ops", "roofline", "gpu_kernels"
TITLES = {TREE: "Profile", HLO: "HLO ops", FRAMEWORK: "Framework ops", ROOFLINE: "Roofline", KERNELS: "Kernels"}
"""Titles of the views of ops, by name; views of other pages have the names and titles of those pages."""
_SAME_OP = {HLO: "in tree", ROOFLINE: "in tree", FRAMEWORK: "in HLO ops", KERNELS: "in HLO ops"}
"""Where each view shows the same op, in words for the footer."""
_WHY_NOT = {
    "exclude": "{} has nothing to leave out; the profile's tree and the roofline have.",
    "top": "Only the profile's tree is cut to ten of each.",
    "group": "Rows of {} have no groups.",
    "figures": "All figures of a row are on its card: Enter.",
    "there": "The row is not one op of the table.",
    "timeline": "This row of {} is not one op: none of its runs is the longest.",
}
_READ_LATER = "Framework ops are read from the host threads' lines, which takes longer. After Esc, r reads them."
_SEE_INSTEAD = "Tab 1, overview, says how to capture them; tab 4, timeline, shows the events that there are."
_NO_OP = "no single op under the cursor"
HEADLINE_LINES = 3  # most lines above list and card: two of the headline, one of the views
WHOLE = 20  # rows from which on the headline may take two lines
CARD_DELAY_SECONDS = 0.08  # rest of the cursor after which the card follows it


class OpsTab(SearchingTab):
    """Shows the ops of a run, or the state of loading them.

    Attributes:
        at: name of the view that is shown. Behind those of the ops come other pages' views (`tui.pages.TabView`),
            which are read when they are shown first.
        cards: has what is shown, and fetches what takes a while; None as long as there are no ops.
        card_is_late: the card still shows what the cursor has left.
    """

    CARD = CARD
    MEANINGS: ClassVar[dict[str, str]] = {
        "IDLE": "time in which a core runs no op, of the cores' whole time: first op or step to last, not the capture.",
        "clones": "copies that the compiler made of one op: the same code. Also ops of one program that differ only by "
        "numbers in name and framework op.",
        "padding": "the bytes that tiling adds: an array's last two dimensions are rounded up to its tile.",
        "matrix": "the part of the matrix unit that dimensions fill; an estimate from shapes, not measured.",
        "by source": "ops by their file and line: all of a fusion counts for one line, as in XProf.",
        "n/a": "the profile has no count for it; unknown is never shown as 0.",
    }
    NAME_CELLS = 14

    def __init__(self, look: ScreenLook, *, id: str) -> None:
        super().__init__(look, id=id)
        self.at = TREE
        self.cards: CardCache | None = None
        self.card_is_late = False
        self._before: str | None = None  # the view that was left for the same op in another
        self._others: tuple[TabView, ...] = ()
        self._are_others_known = False
        self._views: dict[str, TreeView | RowsView] = {}
        self._listings: dict[str, Listing] = {}  # as the views before these were listed, for their order
        self._wanted: dict[str, str] = {}  # what to go to in a view when it is there
        self._wanted_program: int | None = None  # that of the op to go to
        self._wanted_page = ""  # the other page to show when it is known which of them there are
        self._failures: dict[str, ProfileError] = {}
        self._status_drawn = ""
        self._rest: Timer | None = None
        self._card_drawn: tuple[tuple[str, int, Glyphs], list[Line]] = (("", 0, look.glyphs), [])

    # --- what it shows

    def show(self, part: str, payload: Payload) -> str | None:
        said: str | None
        if part == "ops":
            said = self._show_ops(payload)
        elif part == "views":
            said = self._show_others(payload) or None
        else:
            said = self._show_view(part, payload) or None
        self.redraw()
        return said

    def _show_ops(self, pages: OpPages) -> str:
        """Shows the ops of a run in the same view, from the top or at the op asked for; says what is missing."""
        self._forget()
        cards = self.cards = CardCache(pages, self._fetch)
        self._views = {TREE: TreeView(cards), HLO: HloView(cards), ROOFLINE: RooflineView(cards)}
        if pages.ops.kernels:
            self._views[KERNELS] = KernelView(cards)
        for name in self._views:
            self._sort_as_before(name)
        self._stay()
        wanted = self._wanted.pop(HLO, "")
        return self._go_to_op(wanted) if wanted else ""

    def _show_others(self, others: tuple[TabView, ...]) -> str:
        """Adds views of other pages, which are read when they are shown; says what is missing of what was asked for."""
        self._others, self._are_others_known = others, True
        self._stay()
        page, self._wanted_page = self._wanted_page, ""
        said = self._go_to_page(page, self._wanted.pop(page, "")) if page else ""
        self.ask_for_page()
        return said

    def _show_view(self, name: str, page: Payload) -> str:
        """Adds the framework ops or another page; says what is missing of what was asked for in it."""
        if self.cards is None:
            return ""
        if name == FRAMEWORK:
            view: RowsView = FrameworkView(self.cards, page)
        else:
            view = next(view for view in self._others if view.name == name).load_view()(page)
        self._views[name], wanted = view, self._wanted.pop(name, "")
        self._sort_as_before(name)
        return view.show_named(wanted) if wanted else ""

    def _sort_as_before(self, name: str) -> None:
        """The order that was chosen in a view stays, whatever other run or core it shows."""
        if name in self._listings:
            self._views[name].sort_like(self._listings[name])

    def _stay(self) -> None:
        self.at = self.at if self.at in self.titles else TREE

    @property
    def wanted(self) -> str:
        return self._other if self.view is None and self._other not in self._failures else ""

    def show_failure(self, page: str, error: ProfileError) -> None:
        self._failures[page] = error
        self.redraw()

    def show_state(self, state: State) -> None:
        self._forget()
        self._state = state
        self.redraw()

    def _forget(self) -> None:
        """Drops what was shown, and all that is still on its way for it."""
        self._listings |= {name: view.listing for name, view in self._views.items()}
        self.cards, self._before, self._views, self._failures = None, None, {}, {}
        self._are_others_known = self.card_is_late = False

    # --- its views

    @property
    def pages(self) -> OpPages | None:
        """The pages of the ops, once they are there."""
        return None if self.cards is None else self.cards.pages

    @property
    def has_page(self) -> bool:
        return self.cards is not None

    @property
    def is_ready(self) -> bool:
        return self.has_page and (self.view is not None or self._has_no_ops or self._other in self._failures)

    @property
    def _has_no_ops(self) -> bool:
        """Whether one of the views of ops is shown, and there is no op."""
        return self.pages is not None and not len(self.pages.listed) and not self._other

    @property
    def view(self) -> TreeView | RowsView | None:
        return None if self._has_no_ops else self._views.get(self.at)

    @property
    def every_view(self) -> Sequence[TreeView | RowsView]:
        return tuple(self._views.values())

    @property
    def view_name(self) -> str:
        return self.at

    @property
    def views(self) -> Mapping[str, str]:
        others = {} if self._are_others_known else {view.name: view.title for view in views_of("op-profile")}
        return self.titles | others

    @property
    def names(self) -> Mapping[tuple[str, str], Sequence[str]]:
        ops = () if self.pages is None else self.pages.listed.table.name
        return {("op-profile", "op"): ops}

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the views, by name; kernels are those of GPUs."""
        absent = set(TITLES) - {TREE} if self._has_no_ops else {KERNELS} - set(self._views)
        own = {name: title for name, title in TITLES.items() if name not in absent}
        return own | {view.name: view.title for view in self._others}

    @property
    def _other(self) -> str:
        """Name of the other page whose view is shown; empty where that is one of the ops."""
        return "" if self.at in TITLES else self.at

    @property
    def other_view(self) -> RowsView | None:
        view = self._views.get(self._other)
        return view if isinstance(view, RowsView) else None

    @property
    def headline(self) -> str:
        """The answer of the view that is shown, in a sentence; else that of the op profile."""
        own = "" if self.view is None else self.view.headline
        return own or (self.pages.profile.headline if self.pages is not None else "")

    @property
    def note(self) -> str:
        other = self.other_view
        return other.note if other is not None and other.note else self.headline

    @property
    def meanings(self) -> Iterable[tuple[str, str]]:
        return super().meanings if self.other_view is None else self.other_view.meanings

    def meaning_lines(self, pen: Pen) -> list[Line]:
        lines = super().meaning_lines(pen)
        for example, meaning in HELP:
            lines += pen.wrap(meaning, "text", [(f"{f'/{example}':<{self.NAME_CELLS}} ", "strong")])
        return lines

    # --- drawing

    def draw(self, width: int, height: int) -> Sequence[AnyLine]:
        pen, view = Pen(width, self.look.glyphs), self.view
        if not self.has_page:
            return state_lines(self._state, pen, height)
        inner = pen.narrower(1)
        lines = [pen.fit([(f" {cut_words(self.headline, inner.width, pen.glyphs)}", "text")])]
        if height >= WHOLE or (self.other_view is not None and height >= LOW):  # other pages' rows are few
            lines = inner.wrap(self.headline, "text", [(" ", "text")])
            rest = " ".join(plain(line).strip() for line in lines[1:])
            lines[1:] = [inner.fit([(f" {cut_words(rest, inner.width - 1, pen.glyphs)}", "text")])] if rest else []
        if not self.card_is_late:
            self._status_drawn = "" if view is None else view.status()
        lines.append(views_line(self.titles, self.at, self._status_drawn, pen))
        self.view_line = len(lines)
        if view is None:
            return [*lines, *self._missing(pen, height - len(lines))]
        places = panes(pen, height - len(lines), view.has_low_card)
        rows = view.draw(places.list_pen, places.list_height)
        card_pen, card_height = places.card_pen, places.card_height
        card = card_pen.shortened(self._card(view, card_pen), card_height) if card_height else []
        return [pen.fit(line) for line in (*lines, *places.joined(rows, card, pen))]

    def _missing(self, pen: Pen, height: int) -> list[Line]:
        """What stands for a view that is not read yet, or cannot be."""
        failure = self._failures.get(self._other)
        if failure is not None:
            return state_lines(Failed(failure), pen, height)
        if self._has_no_ops:
            return pen.wrap(_SEE_INSTEAD, "text", [(f" {pen.glyphs.arrow} ", "key")])
        one = f"{self.titles[self.at]}: being read now. After Esc, r reads it again."
        words = _READ_LATER if self.at == FRAMEWORK else one
        return pen.wrap(words, "dim", [("  ", "dim")])

    def rule_place(self, width: int) -> tuple[int, int] | None:
        is_there = self.has_page and self.view is not None and width >= WIDE
        return (width - card_width(width) - GUTTER, HEADLINE_LINES) if is_there else None

    def _card(self, view: TreeView | RowsView, pen: Pen) -> list[Line]:
        """The card, or the one before it while the cursor is on its way; nothing while it is open in full."""
        if self.card_is_open:
            return []
        if not (self.card_is_late and self._card_drawn[0] == (self.at, pen.width, pen.glyphs)):
            self._card_drawn = ((self.at, pen.width, pen.glyphs), view.card(pen))
        return self._card_drawn[1]

    @property
    def details(self) -> tuple[str, Callable[[Pen], list[Line]]] | None:
        def card(pen: Pen) -> list[Line]:
            return self.view.card(pen) if self.view is not None else []

        title = self.titles[self.at] if self._other else "Op"
        return (title, card) if self.selection is not None else None

    def detail_line(self, width: int) -> AnyLine:
        pages, pen = self.pages, Pen(width - 1, self.look.glyphs)
        return super().detail_line(width) if pages is None else ((" ", "dim"), *machine_line(pages.ops, pen))

    @work(thread=True, group="details", description="fetch")  # else Textual spells out every argument, at length
    def _fetch(self, cards: CardCache, key: Key) -> None:
        self.call_later(self._fetched, cards, key, fetch(key, cards.pages))

    def _fetched(self, cards: CardCache, key: Key, value: object) -> None:
        """Draws with what has come, unless other ops are shown by now."""
        cards.found[key] = value
        if cards is not self.cards:
            return
        tree = self._views[TREE]
        if isinstance(tree, TreeView) and not isinstance(key, str):  # lines around a place make no more rows
            tree.refresh()
        self.redraw()
        if key is None:
            self.post_message(CursorMoved("grouped by source line"))

    # --- the op under the cursor

    @property
    def op_row(self) -> int | None:
        shown = self.view
        if isinstance(shown, TreeView | TableView):
            return shown.op_row
        return None if shown is None or self.cards is None else self.cards.row_of(shown.op_name)

    @property
    def listed_row(self) -> int | None:
        """The same in the table of ops, which has those of SparseCores too."""
        return self.view.own_row if isinstance(self.view, HloView) else self.op_row

    @property
    def source(self) -> str | None:
        own = "" if self.view is None else self.view.source_line
        return own or (None if self.op_row is None else self._source_of(self.op_row) or None)

    def source_of(self, op: str) -> str:
        if self.cards is None:
            return ""
        row = self.cards.row_of(op)
        if row is None:
            texts = enumerate(self.cards.pages.ops.table.framework_op)  # ops come by self time
            row = next((row for row, text in texts if text and parse_framework_op(text).name == op), None)
        return "" if row is None else self._source_of(row)

    def _source_of(self, row: int) -> str:
        return "" if self.pages is None else str(HLO_OPS.by_key["source"].read(self.pages.ops, [row])[0] or "")

    # --- keys

    @property
    def keys(self) -> Sequence[KeyRow]:
        if not self.has_page:
            return super().keys
        title = "Next view: profile, HLO ops, framework ops, roofline, kernels"
        views = self.view_keys(title, "view") if len(self.views) > 1 else ()
        return (*views, *(() if self.view is None else (*self.view.keys, *self._op_keys)))

    @property
    def _op_keys(self) -> Sequence[KeyRow]:
        """What keys do with the op under the cursor, or with what another page's view shows."""
        other, has_op = self.other_view, self.op_row is not None
        same_op = verb_row("there", self._same_op, short=_SAME_OP.get(self.at, ""))
        words, on_timeline = ("", None) if other is None else (other.timeline_words, other.on_timeline)
        op = None if self.view is None else self.view.op_name
        may_run = has_op or (other is None and self.at != TREE)  # of SparseCores; a group of the tree has no run
        if on_timeline is None and op is not None and may_run:
            listed = self._of_op("timeline", self.listed_row)
            on_timeline = listed if listed is not None and listed.name == op else Jump("timeline", "op", op)
        return (
            *((same_op,) if has_op else ()),
            *jump_row("timeline", on_timeline, words, 1),
            *jump_row("graph", self._of_op("graph", self.listed_row)),
            *jump_row("buffers", self._of_op("memory", self.op_row)),
        )

    def _of_op(self, tab: str, row: int | None) -> Jump | None:
        if row is None or self.pages is None:
            return None
        name = self.selection if tab == "graph" and self.at == TREE else None  # it may be one inside a fusion
        table = self.pages.listed.table
        return Jump(tab, "op", name or table.name[row], int(table.program_id[row]) or None)

    def do(self, act: Callable[[], object]) -> object:
        self.card_is_late = False
        return super().do(act)

    def why_not(self, verb: str) -> str:
        if self._has_no_ops:
            return self.headline
        return _WHY_NOT.get(verb, "").format(self.titles.get(self.at, "")) if self.has_page else ""

    @property
    def syntax(self) -> str:
        return "fusion  !copy  cat:conv  >1ms  >5%  occurrences>=10  ~a.*b   Tab completes"

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        before = {} if self._before is None else {f"same op in {self.at}": self._go_back}
        return {**super().opened, **before}

    def _go_back(self) -> None:
        if self._before is not None:
            self.at, self._before = self._before, None

    def _same_op(self) -> str:
        """From a table to the op in the tree, from the tree to the op in the table."""
        row, before = self.op_row, self.at
        if row is None:
            return _NO_OP
        self._show_op(row, TREE if self.at in (HLO, ROOFLINE) else HLO)
        self._before = before
        return f"the same op in {TITLES[self.at]}"

    def _show_op(self, row: int, at: str) -> None:
        self.at, view = at, self._views[at]
        if isinstance(view, TreeView | TableView):
            view.show_op(row)

    # --- moving

    def move(self, across: int, down: int) -> None:
        if self.view is None:
            return
        self.card_is_late = True
        super().move(across, down)
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(CARD_DELAY_SECONDS, self._rested)

    def _rested(self) -> None:
        self.card_is_late, self._rest = False, None
        self.redraw()

    def enter(self) -> str:
        if self._has_no_ops or (self.view is not None and not self.view.enter()):
            return "details"
        self.find_asked()
        self.redraw()
        return ""

    def go_to(self, what: str, name: str, program: int | None = None) -> str:
        self._before, self._wanted_program = None, program
        if what in self.views:
            said = self._go_to_page(what, name)
            self.ask_for_page()
        elif what == "framework_op":
            said = self._go_to_framework_op(name)
        else:
            said = self._go_to_op(name)
        self.redraw()
        return said

    def _go_to_page(self, page: str, name: str) -> str:
        """Shows another page's view, and in it what has that name, now or when it is read; says what there is not."""
        if page not in self.titles:
            if self._are_others_known or page == FRAMEWORK:
                return f"this profile has nothing for {page}"
            self._wanted_page, self._wanted[page] = page, name
            return ""
        self.at, shown = page, self._views.get(page)
        if isinstance(shown, RowsView):
            return shown.show_named(name) if name else ""
        self._wanted[page] = name
        return ""

    def _go_to_op(self, name: str) -> str:
        """Shows the HLO op of that name in the table, now or when the ops are there; else the framework op.

        Says where there is neither.
        """
        if self.cards is None:
            self._wanted[HLO] = name
            return ""
        row = self.cards.row_of(name, self._wanted_program)
        if row is None:
            return self._go_to_framework_op(name)
        self._show_op(row, HLO)
        return ""

    def _go_to_framework_op(self, name: str) -> str:
        """Shows a framework op, now or when the framework ops are there; says where there is none."""
        before, said = self.at, self._go_to_page(FRAMEWORK, name)
        self.at = before if said else FRAMEWORK
        return said
