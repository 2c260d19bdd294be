"""A screen with one page, most often a list: what ``oom``, ``diff`` and the like show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.text import completions_of
from tpuprof.parsers.base.urls import printable_url
from tpuprof.tui.draw.format import count as counted
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.terminal.detect import Terminal
from tpuprof.tui.terminal.grammar import BY_NAME, Opened, Verb, verbs_of
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import HELPS, LAST, KeyRow, act_of, footer, key_lines, keys_line
from tpuprof.tui.widgets.line_canvas import LineCanvas, ScreenLook
from tpuprof.tui.widgets.lists.popup import Named, SortPopup, command_list, sort_rows
from tpuprof.tui.widgets.lists.view import ListView, SortWanted
from tpuprof.tui.widgets.popup import ABOUT_HELP, MOTIONS, MOVES, Lines, TextPopup
from tpuprof.tui.widgets.screen import AppScreen, ScreenApp
from tpuprof.tui.widgets.tab import Jump

if TYPE_CHECKING:
    from tpuprof.tui.report.shared.exporting import ShownTable


class PageScreen(AppScreen):
    """A screen with one page. Leaving it ends the app where it `is_alone`.

    Args:
        note: a sentence that the footer shows at first.
        is_alone: it is the whole app, so that leaving it ends the app.

    Attributes:
        lead: goes to where a tab or a graph has more; None where there are no tabs.
    """

    content: Any
    lead: Callable[[Jump], object] | None = None

    DEFAULT_CSS = """
    PageScreen > #body { height: 1fr; }
    """

    def __init__(
        self,
        content: Any,  # noqa: ANN401 - a subclass says what it is
        look: ScreenLook,
        *,
        environ: Mapping[str, str] | None = None,
        note: str = "",
        is_alone: bool = False,
    ) -> None:
        super().__init__(look, environ, note)
        self.content = content
        self._is_alone = is_alone
        self._open_order = Opened()
        self.body = LineCanvas(
            look, lambda *size: self.draw_page(Pen(size[0], self.look.glyphs), size[1]), self.click_on, id="body"
        )

    # --- what a kind of page says

    @property
    def keys(self) -> Sequence[KeyRow]:
        """The keys that the page takes now, before those that move the cursor."""
        raise NotImplementedError

    @property
    def page_keys(self) -> Sequence[KeyRow]:
        return self.keys

    def last_keys(self, leave: str = "") -> Sequence[KeyRow]:
        """The last rows of every table: colours, help, and the ways back; `leave` is what help says of ``q``."""
        way, about = "quit" if self._is_alone else "back", TextPopup(self.look, "Help", self.help_lines, ABOUT_HELP)
        return (
            KeyRow("background", title="Light or dark background", acts={"background": self.swap_background}),
            KeyRow("palette", title="All commands that work now", acts={"palette": self._open_palette}),
            KeyRow("export", title="Write the screen to a file", acts={"export": self._ask_export}),
            KeyRow("help", "help", acts={"help": partial(self.open, about)}, rank=HELPS),
            KeyRow("back", title="Back one level", acts={"back": self.back}),
            KeyRow("quit", way, leave or way.capitalize(), {"quit": self.leave}, rank=LAST),
        )

    def meaning_lines(self, pen: Pen) -> list[Line]:
        """What the figures mean, and what else help says below the keys."""
        raise NotImplementedError

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        return {}

    def back(self) -> None:
        """Closes what was opened last; if nothing is open, closes the screen unless it is alone."""
        if self._open_order.close(self.opened):
            return
        if self._is_alone:
            self.flash = BY_NAME["back"].absent
        else:
            self.leave()

    def head_line(self, pen: Pen) -> AnyLine:
        raise NotImplementedError

    def draw_page(self, pen: Pen, height: int) -> Sequence[AnyLine]:
        raise NotImplementedError

    def move(self, rows: int, screens: float) -> None:
        raise NotImplementedError

    @property
    def place_of_cursor(self) -> object:
        raise NotImplementedError

    # --- drawing

    @property
    def page_canvases(self) -> Sequence[LineCanvas]:
        return (self.body,)

    def lay_out_page(self, width: int, height: int) -> None:
        self.body.prepare(width, height - 2)

    def draw_head(self, width: int, height: int) -> Sequence[AnyLine]:
        return [self.head_line(Pen(width, self.look.glyphs))]

    def foot_line(self, width: int) -> AnyLine:
        return keys_line(footer(self.keys), width)

    # --- keys and mouse

    def act(self, key: str) -> bool:
        act, verbs = act_of(self.keys, key), verbs_of(key)
        if act is not None:
            self._say(act)
        elif key in MOVES:
            before = self.place_of_cursor
            self.move(*MOVES[key])
            self.flash = verbs[0].absent if self.place_of_cursor == before else self.flash
        elif verbs:
            self.flash = self.why_not(verbs[0])
        self._open_order.note(self.opened)
        self.redraw()
        return True

    def why_not(self, verb: Verb) -> str:
        """What the last line says of a key that does nothing here."""
        return verb.absent

    def _open_palette(self) -> None:
        moves = {name: partial(self.move, *step) for name, step in MOTIONS.items()}
        keys = (*self.keys, KeyRow("down up", acts=moves))
        say = partial(self.call_later, self._say)
        self.open(command_list(self.look, keys, self.act, say, named=self.named, why_not=self.why_not))

    named: Named = staticmethod(lambda _: ())
    """What ctrl+p finds by name besides what keys do."""

    def _say(self, act: Callable[[], object]) -> None:
        answer = act()
        said = self.leave_for(answer) if isinstance(answer, Jump) else answer
        if isinstance(said, SortWanted):
            self.open(SortPopup(self.look, said.listed, self._say))
        elif isinstance(said, str):
            self.flash = said
        self.redraw()

    def _ask_export(self) -> None:
        name = type(self).__name__.removesuffix("Screen").lower()
        self.ask_export(self.export_of(name, self.shown_table, None))

    @property
    def shown_table(self) -> ShownTable | None:
        return None

    def help_lines(self, pen: Pen) -> list[Line]:
        return [*key_lines(self.keys, pen), pen.fit([]), *self.meaning_lines(pen)]

    @property
    def searched(self) -> Sequence[str]:
        return ()

    def words_for(self, begun: str) -> Sequence[str]:
        return completions_of(begun, self.searched)

    def click_on(self, x: int, y: int, again: bool) -> str | None:
        """Takes a click on the page (`tui.widgets.line_canvas.Clicked`)."""
        raise NotImplementedError

    def leave_for(self, jump: Jump) -> str:
        """Goes to where a tab has more; where there are no tabs, says what shows them."""
        if self.lead is None:
            return f"Its other pages: tpuprof-tui {printable_url(jump.run)}"
        self.app.call_later(self.lead, jump)
        return "Its graph opens when it is read." if jump.tab == "graph" else ""

    def leave(self) -> None:
        if self._is_alone:
            self.app.exit()
        else:
            self.dismiss()


class ListScreen(PageScreen):
    """A screen with a list."""

    @cached_property
    def listed(self) -> ListView[Any]:
        raise NotImplementedError

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        listed = self.listed
        words: dict[str, Callable[[], object]] = {"filter": self.end_search} if listed.listing.words else {}
        return words | {name: partial(self._say, close) for name, close in listed.opened.items()}

    @property
    def named(self) -> Named:  # type: ignore[override]
        return partial(sort_rows, self.listed)

    def draw_page(self, pen: Pen, height: int) -> Sequence[AnyLine]:
        return self.listed.draw(pen, height)

    def move(self, rows: int, screens: float) -> None:
        self.listed.step(rows, screens)

    @property
    def place_of_cursor(self) -> object:
        return self.listed.listing

    @property
    def shown_table(self) -> ShownTable | None:
        return self.listed.shown_table

    def enter(self) -> None:
        if not self.listed.enter() and (card := self.card_of_row) is not None:
            title, lines, about = card
            self.open(TextPopup(self.look, title, lines, about, is_card=True))

    @property
    def card_of_row(self) -> tuple[str, Lines, Lines] | None:
        """Title and text of what there is to say about the row under the cursor, and what its help says."""
        return None

    def begin_filter(self) -> None:
        self.open_prompt(self.listed.listing.words, f"{counted(self.listed.count)} found")

    @property
    def searched(self) -> Sequence[str]:
        return self.listed.searched

    def search(self, text: str) -> str:
        return self.listed.search(text)

    def keep_search(self, text: str) -> bool:
        return not (text and self.listed.is_filter_wrong)

    def end_search(self) -> None:
        self.listed.search("")

    def click_on(self, x: int, y: int, again: bool) -> str | None:
        return self.listed.clicked(x, y, again)


class PageApp(ScreenApp):
    """The app around one page: a screen made of what it shows."""

    def __init__(
        self,
        screen: Callable[..., PageScreen],
        content: object,
        terminal: Terminal,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(terminal, environ)
        self._screen_made = screen(content, self.look, environ=self.environ, is_alone=True)

    def get_default_screen(self) -> PageScreen:
        return self._screen_made
