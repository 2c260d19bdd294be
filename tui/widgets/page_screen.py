"""A screen with one page with rows, a cursor over them and a filter: what ``oom``, ``diff`` and the like show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tpuprof.parsers.base.text import completions_of, said_of
from tpuprof.tui.draw.format import count as counted
from tpuprof.tui.draw.layout import Composed
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.terminal.detect import Terminal
from tpuprof.tui.terminal.grammar import BY_NAME, Verb, verbs_of
from tpuprof.tui.terminal.pressed import Opened
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.choosing import Choice, ChoicePopup
from tpuprof.tui.widgets.chrome import KeyRow, act_of, footer, key_lines, keys_line
from tpuprof.tui.widgets.line_canvas import LineCanvas, ScreenLook
from tpuprof.tui.widgets.popup import ABOUT_HELP, MOVES, TextPopup, meanings
from tpuprof.tui.widgets.screen import AppScreen, ScreenApp

if TYPE_CHECKING:
    from tpuprof.tui.report.shared.exporting import Shown

_MOTIONS = ("down", "up", "first", "last", "page_down", "page_up", "half_down", "half_up")
_LISTED_NOT = ("palette", "pick")  # what a list of commands leaves out
ABOUT_COMMANDS = meanings(
    ("", "All commands of this screen, with their keys. Type a part of a name, then Enter."),
)
HELPS, LAST = 5, 9  # the rank in the footer of the key of help, and of the one that shows whatever room there is
_Row = TypeVar("_Row")
_Made = TypeVar("_Made")


class PageScreen(AppScreen, Generic[_Row]):
    """A screen with one page with rows; what they are, a subclass says. Leaving it ends the app where it `is_alone`.

    Args:
        note: a sentence that the footer shows at first.
        is_alone: it is the whole app, so that leaving it ends the app.

    Attributes:
        content: what it shows.
        view: what the user looks at, a `Listing`; the graph has one for each of its columns.
        composed: the page that was drawn last.
    """

    view: Any
    content: Any

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
        self.composed: Composed | None = None
        self._kept: tuple[object, Any] | None = None
        self.body = LineCanvas(look, self._draw_body, self.point_at, self._wheel, id="body")

    # --- what a kind of page says

    @property
    def rows(self) -> Sequence[_Row]:
        """The rows that pass the filter."""
        raise NotImplementedError

    @property
    def row(self) -> _Row | None:
        """The row under the cursor."""
        return self.rows[self.view.cursor] if 0 <= self.view.cursor < len(self.rows) else None

    def kept(self, key: object, make: Callable[[], _Made]) -> _Made:
        """What depends on the view, such as the rows: made anew where the key, which says on what, is another one."""
        if self._kept is None or self._kept[0] != key:
            self._kept = (key, make())
        made: _Made = self._kept[1]
        return made

    @property
    def keys(self) -> Sequence[KeyRow]:
        """The page's table of keys, as things are; they go before those that move the cursor."""
        raise NotImplementedError

    def last_keys(self, leave: str = "") -> Sequence[KeyRow]:
        """The last rows of every table: colours, help, and the ways back; `leave` is what help says of ``q``."""
        way = "quit" if self._is_alone else "back"
        return (
            KeyRow("background", title="Light or dark background", acts={"background": self.swap_background}),
            KeyRow("palette", title="All commands that work now", acts={"palette": self._open_palette}),
            KeyRow("export", title="Write the screen to a file", acts={"export": self._ask_export}),
            KeyRow("help", "help", acts={"help": self._help}, rank=HELPS),
            KeyRow("back", title="Back one level", acts={"back": self.back}),
            KeyRow("quit", way, leave or way.capitalize(), {"quit": self.leave}, rank=LAST),
        )

    def meaning_lines(self, pen: Pen) -> list[Line]:
        """What the figures mean, and what else help says below the keys."""
        raise NotImplementedError

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        """What is open, by its name: how to close it."""
        return {"filter": partial(self.filter, "")} if self.view.words else {}

    def back(self) -> None:
        """Closes what was opened last, at last the screen, where one is below."""
        if self._open_order.close(self.opened):
            return
        if self._is_alone:
            self.flash = BY_NAME["back"].absent
        else:
            self.leave()

    def head_line(self, pen: Pen) -> AnyLine:
        """The line on top."""
        raise NotImplementedError

    def compose_page(self, pen: Pen, height: int) -> Composed:
        """The page."""
        raise NotImplementedError

    def move(self, rows: int, screens: float) -> None:
        """Moves the cursor by rows and screens."""
        self.point(self.view.cursor + self.rows_in(rows, screens))

    def rows_in(self, rows: int, screens: float) -> int:
        """How many rows these are together, by how many fit."""
        return rows + round(screens * (self.composed.room if self.composed is not None else 1))

    def point(self, row: int) -> None:
        """Puts the cursor on a row, or on the nearest that there is."""
        self.view = self.view.at(row, len(self.rows))

    def enter(self) -> None:
        """What a click on the row under the cursor does, as Enter does; nothing where it has no more to show."""

    @property
    def orders(self) -> Mapping[str, str]:
        """What the rows can be sorted by in a few words each, first what they are sorted by at first; may be none."""
        return {}

    def sorting_key(self, title: str, short: str, rank: int) -> KeyRow:
        """The keys that sort."""
        return KeyRow(
            "sort reverse", short, title, {"sort": self._sort, "reverse": lambda: self._sort(reverse=True)}, "s", rank
        )

    def _sort(self, reverse: bool = False) -> None:
        """In the next order, or the other way round."""
        if not self.orders:
            self.flash = BY_NAME["sort"].absent
            return
        view = replace(self.view, sort=self.view.sort or next(iter(self.orders)))
        self.view = view.turned_round() if reverse else view.sorted_by_next(list(self.orders))
        self.flash = f"Sorted by {self.view.in_words(self.orders[self.view.sort])}."

    def filter(self, words: str) -> None:
        """Shows the rows that hold all words."""
        self.view = self.view.anew(words=words)

    # --- drawing

    @property
    def page_canvases(self) -> Sequence[LineCanvas]:
        """The page."""
        return (self.body,)

    def _draw_body(self, width: int, height: int) -> Sequence[AnyLine]:
        return self.draw_page(Pen(width, self.look.glyphs), height)

    def draw_page(self, pen: Pen, height: int) -> Sequence[AnyLine]:
        """The page, with the cursor in sight."""
        self.composed = self.compose_page(pen, height)
        self.view = replace(self.view, first=self.composed.first)
        return self.composed.lines

    def lay_out_page(self, width: int, height: int) -> None:
        """Prepares the page."""
        self.body.prepare(width, height - 2)

    def draw_head(self, width: int, height: int) -> Sequence[AnyLine]:
        """The line on top."""
        return [self.head_line(Pen(width, self.look.glyphs))]

    def foot_line(self, width: int) -> AnyLine:
        """The keys."""
        return keys_line(self.look.keys.shown_pairs(footer(self.keys)), width)

    # --- keys and mouse

    def act(self, key: str) -> bool:
        """Does what a key means; no key gets past the page."""
        act, verbs = act_of(self.keys, key), verbs_of(key)
        if act is not None:
            act()
        elif key in MOVES:
            before = self.view
            self.move(*MOVES[key])
            self.flash = verbs[0].absent if self.view == before else self.flash
        elif verbs:
            self.flash = self.why_not(verbs[0])
        self._open_order.note(self.opened)
        self.redraw()
        return True

    def why_not(self, verb: Verb) -> str:
        """What the last line says of a key that does nothing here."""
        return verb.absent

    def _help(self) -> None:
        self.open(TextPopup(self.look, "Help", self.help_lines, ABOUT_HELP))

    def _open_palette(self) -> None:
        """Lists all that a key does here, to be found by words."""
        acts = [(verb, act, row) for row in self.keys for verb, act in row.acts.items() if verb not in _LISTED_NOT]
        titles = [row.title if len(row.acts) == 1 and row.title else BY_NAME[verb].meaning for verb, _, row in acts]
        keys = [self.look.keys.shown(BY_NAME[verb].key) for verb, _, _ in acts]
        moves = {name: partial(self.move, *MOVES[BY_NAME[name].typed[0]]) for name in _MOTIONS}
        titles += [BY_NAME[name].meaning for name in moves]
        keys += [self.look.keys.shown(BY_NAME[name].key) for name in moves]
        does = [*(act for _, act, _ in acts), *moves.values()]
        choices = [Choice((title, key), place) for place, (title, key) in enumerate(zip(titles, keys, strict=True))]

        def chosen(place: int) -> None:
            self.call_later(self._do, does[place])

        columns, about = ("action", "key"), ABOUT_COMMANDS
        self.open(ChoicePopup(self.look, "Commands", columns, choices, chosen, about, typing=True))

    def _do(self, act: Callable[[], object]) -> None:
        act()
        self.redraw()

    def _ask_export(self) -> None:
        self.ask_export(self.export_of(self.export_name, self.shown_table, None))

    @property
    def shown_table(self) -> Shown | None:
        """The rows as they are filtered and sorted; None where they are no table of a report."""
        return None

    @property
    def export_name(self) -> str:
        """What a file is called that the screen is written to."""
        return type(self).__name__.removesuffix("Screen").lower()

    def help_lines(self, pen: Pen) -> list[Line]:
        """The keys that do something here, and what the figures mean."""
        return [*key_lines(self.keys, pen), pen.fit([]), *self.meaning_lines(pen)]

    def begin_filter(self) -> None:
        """Begins to take keys into the filter."""
        self.open_prompt(self.view.words, f"{counted(len(self.rows))} found")

    @property
    def searched(self) -> Sequence[str]:
        """What a filter looks at in each row that can show."""
        return ()

    def words_for(self, begun: str) -> Sequence[str]:
        """What a word that is begun in the filter may become."""
        return completions_of(begun, self.searched)

    def search(self, text: str) -> str:
        """Filters the rows; says how many are left, or the nearest filter that leaves some."""
        self.filter(text)
        count = len(self.rows)
        return said_of(text, f"{counted(count)} found", count, lambda: self.searched)

    def end_search(self) -> None:
        """Shows all rows."""
        if self.view.words:
            self.filter("")

    def _wheel(self, by: int) -> None:
        self.press("down" if by > 0 else "up", None)

    def point_at(self, x: int, y: int) -> None:
        """A click on a line of the page."""
        composed = self.composed
        if composed is None or self.popups.popup is not None or composed.first_row_line < 0:
            return
        row = y - composed.first_row_line + composed.first
        if composed.first <= row < min(len(self.rows), composed.first + composed.room):
            if row == self.view.cursor:
                self.enter()
            self.point(row)
            self.redraw()

    def leave(self) -> None:
        """Ends the app, or goes back to the screen below."""
        if self._is_alone:
            self.app.exit()
        else:
            self.dismiss()


class PageApp(ScreenApp):
    """The app around one page: a screen of that type, with what it shows."""

    def __init__(
        self,
        screen: type[PageScreen[Any]],
        content: object,
        terminal: Terminal,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(terminal, environ)
        self._screen_made = screen(content, self.look, environ=self.environ, is_alone=True)

    def get_default_screen(self) -> PageScreen[Any]:
        """The page."""
        return self._screen_made
