"""What opens above a page: a framed panel, as a text to read (`TextPopup`).

Every popup names its keys for the footer, and says what it shows; ``?`` opens a text of both above it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, get_args

from textual.geometry import Region, Size

from tpuprof.parsers.base.record import replace
from tpuprof.tui.draw.pen import Pen, cut
from tpuprof.tui.draw.spans import CLASS_STYLE, Fill, Ink, Line
from tpuprof.tui.terminal.grammar import BY_NAME, KEEP_CARD, OF_ROW, Verb, verbs_of
from tpuprof.tui.terminal.theme import KEYS, AnyKey, AnyLine, AnySpan, PanelKey, PanelPair
from tpuprof.tui.widgets.chrome import ROW_KEYS, KeyRow, act_of, key_lines
from tpuprof.tui.widgets.line_canvas import LineCanvas, ScreenLook

Lines = Callable[[Pen], list[Line]]  # draws a text for so many cells
Keys = Callable[[], Sequence[KeyRow]]  # those that work now
HELP = KeyRow("help", "help")
CLOSE = KeyRow("back", "close", "Close (q does too)")
BACK = KeyRow("back", "back", "Back")

_ON_PANEL: dict[str, AnyKey | PanelPair] = {
    **{key.removeprefix("panel."): key for key in get_args(PanelKey)},
    **{key: key for key in KEYS if key.startswith("on.") or key == "badge"},
    **{key: (name, "panel") for name, key in CLASS_STYLE.items()},
    **dict.fromkeys(("mark", "title"), "panel.key"),
}


def on_panel(line: Line) -> AnyLine:
    """A line of a page, in the styles of a panel."""
    return tuple(
        (text, _ON_PANEL.get(key, "panel") if isinstance(key, str) else _pair_on_panel(*key)) for text, key in line
    )


def _pair_on_panel(ink: Ink, ground: Fill) -> PanelPair:
    return "panel" if ink == "page" else ink, "panel" if ground == "page" else ground


def meanings(*rows: tuple[str, str], cells: int = 13) -> Lines:
    """A text that says what each of some names, in so many cells, means; one without a name is a paragraph."""

    def lines(pen: Pen) -> list[Line]:
        drawn: list[Line] = []
        for name, meaning in rows:
            drawn += pen.wrap(meaning, "text", [(f"{name:<{cells}} ", "strong")] if name else [])
        return drawn

    return lines


def framed(title: str, body: Sequence[AnyLine], foot: str, pen: Pen) -> list[AnyLine]:
    """Lines of `width` - 4 cells in a frame, with a title above and a text below."""
    corners = "╭╮╰╯" if pen.glyphs.name == "block" else "++++"
    side: AnySpan = (pen.glyphs.vertical, "panel.rule")
    head, tail = (cut(text, pen.width - 6, pen.glyphs) for text in (title, foot))

    def edge(left: str, before: int, words: AnySpan, after: int, right: str) -> AnyLine:
        rule = pen.glyphs.horizontal
        return (left + rule * before, "panel.rule"), words, (rule * after + right, "panel.rule")

    words: AnySpan = (f" {tail} ", "panel.dim") if tail else (pen.glyphs.horizontal * 2, "panel.rule")
    top = edge(corners[0], 1, (f" {head} ", "panel.key"), pen.width - len(head) - 5, corners[1])
    bottom = edge(corners[2], pen.width - len(words[0]) - 3, words, 1, corners[3])
    return [top, *((side, (" ", "panel"), *line, (" ", "panel"), side) for line in body), bottom]


class Popup:
    """A framed panel in the middle of the screen, which gets every key while it is open.

    Attributes:
        is_card: it is the card of the row under the page's cursor, whose keys work on it too.
        passes: those of the row's keys that do something.
        listed: the list that it shows.
        about: what it shows and what its figures mean, for its help.
        resizes: a key may change how many rows it has.
        is_typing: keys are typed into it as text.
    """

    resizes: ClassVar[bool] = False
    is_typing: bool = False
    is_card: bool = False
    passes: Sequence[KeyRow] = ()
    listed: Any = None
    widest: int = 100  # cells of the panel on a wide screen
    moves: ClassVar[tuple[str, str]] = ("Next, previous row", "One screen down, up; first, last")
    """What the keys of motion do, for help."""

    def __init__(self, look: ScreenLook, title: str, about: Lines | None = None) -> None:
        self.look = look
        self.title = title
        self.about = about
        self.top = 0
        self.is_open = True
        self.screen_size = Size(80, 24)

    # --- what a kind of popup says

    def row_count(self) -> int:
        raise NotImplementedError

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        raise NotImplementedError

    @property
    def own_keys(self) -> Sequence[KeyRow]:
        """What its keys do now, but for help and Escape, the most useful first."""
        return ()

    @property
    def leave_key(self) -> KeyRow:
        return CLOSE

    @property
    def keys(self) -> Sequence[KeyRow]:
        return [*self.passes, *self.own_keys, *([HELP] if self.about is not None else []), self.leave_key]

    def edge(self) -> str:
        """A text in the frame's lower edge: how far what it shows goes, where it doesn't fit."""
        return ""

    def help_lines(self, pen: Pen) -> list[Line]:
        moves = (replace(key, title=title) for key, title in zip(ROW_KEYS, self.moves, strict=True))
        lines = key_lines((*self.passes, *self.own_keys, *moves, self.leave_key), pen, 20)
        lines += [pen.fit([]), pen.fit([("What this is", "title")])]
        return lines + (self.about(pen) if self.about is not None else [])

    # --- keys and mouse

    def press(self, key: str, character: str | None) -> str | Popup:
        """One key: what its tables say, else what it does in every popup; says why it does nothing.

        A popup that it returns is opened above this one.
        """
        act, motion = act_of((*self.own_keys, self.leave_key), key), MOVES.get(key)
        if act is not None:
            said = act()
            return said if isinstance(said, str | Popup) else ""
        if key in ("escape", "q"):
            self.is_open = False
        elif motion is not None:
            before = self.place_of_cursor
            self.step(*motion)
            return verbs_of(key)[0].absent if self.place_of_cursor == before else ""
        elif verbs := verbs_of(key):
            return self.why_not(verbs[0], key)
        return ""

    @property
    def place_of_cursor(self) -> object:
        return self.top

    def why_not(self, verb: Verb, typed: str) -> str:
        """What the last line says of a key that does nothing here."""
        if verb.name == "open":
            return f"Lines {self.edge()}; j k scroll." if self.edge() else "This is all of it; Esc closes it."
        if verb.name in ("help", "palette", *OF_ROW):
            return verb.absent
        words = "may work on the page below" if not verb.page else f"works on the {verb.page}"
        key = typed if typed.isdigit() else verb.key
        return f"Not here: Esc closes this, {key} {words}."

    def clicked(self, x: int, y: int, again: bool) -> str | None:
        """Takes a click in a column of a line of the panel (`tui.widgets.line_canvas.Clicked`)."""
        return None

    def step(self, lines: int, screens: float) -> None:
        self.top = self._within(self.top + lines + round(screens * self.room))

    # --- its place and look

    @property
    def inner_width(self) -> int:
        """Cells of a row."""
        width = self.screen_size.width
        return max(8, (self.widest if width > self.widest + 8 else width) - 4)

    @property
    def room(self) -> int:
        return max(1, min(self.row_count(), self.screen_size.height - 4))

    def place(self, screen: Size) -> Region:
        self.screen_size = screen
        width, height = self.inner_width + 4, self.room + 2
        self.top = self._within(self.top)
        return Region((screen.width - width) // 2, max(0, (screen.height - height) // 2), width, height)

    def draw(self, width: int, height: int) -> list[AnyLine]:
        inner = width - 4
        body = self.rows(self.top, height - 2, inner)
        body += [((" " * inner, "panel"),)] * (height - 2 - len(body))
        return framed(self.title, body, self.edge(), Pen(width, self.look.glyphs))

    def _within(self, top: int) -> int:
        return max(0, min(top, self.row_count() - self.room))


class PopupLayer(LineCanvas):
    """Where popups appear: a canvas on a layer of its own, so that opening and closing paints the panel's cells only.

    While nothing is open it stands outside the screen: if it came and went, Textual would number all widgets anew and
    paint the whole screen.
    """

    DEFAULT_CSS = """
    PopupLayer { layer: above; position: absolute; width: 1; height: 1; offset: 0 -1; }
    """

    def __init__(self, look: ScreenLook, turned: Callable[[], object] = lambda: None, *, id: str) -> None:
        super().__init__(look, background="panel", id=id)
        self._turned = turned
        self.popup: Popup | None = None  # the open one: what gets the keys
        self._under: list[Popup] = []  # what the open one is the help of, or chooses the order of

    @property
    def below(self) -> Popup | None:
        """The lowest popup below the open one."""
        return self._under[0] if self._under else None

    def open(self, popup: Popup, screen: Size, keys: Sequence[KeyRow] = (), *, above: bool = False) -> None:
        """Opens a popup, in the place of the one that is open or `above` it, to which Escape then leads back.

        Args:
            keys: those of the page, of which a card has those of its row.
        """
        popup.passes = [replace(key, rank=0) for key in keys if not {*OF_ROW}.isdisjoint(key.acts)]
        self._under = [*self._under, self.popup] if above and self.popup is not None else []
        self._show(popup, screen)

    def press_on_row(self, key: str, keys: Keys, act: Callable[[str], object], copy: Callable[[str], object]) -> bool:
        """Does what a key, one of the page's `keys`, does with the row that the popup is about; False without one."""
        popup, verb = self.popup, next((verb.name for verb in verbs_of(key) if verb.name in OF_ROW), "")
        if popup is None or not verb or popup.is_typing or act_of(popup.own_keys, key) is not None:
            return False
        listed = popup.listed
        if verb == "copy" and listed is not None and listed.selection is not None:
            copy(listed.selection)
            return True
        if not popup.is_card and (listed is None or not listed.point_page()):
            return False
        if verb not in KEEP_CARD and act_of(keys(), key) is not None:
            self.press("q", None)
        act(key)
        return True

    def _show(self, popup: Popup, screen: Size) -> None:
        self.popup = popup
        self._turned()
        self.fit(screen)
        if self.size == popup.place(screen).size:  # as large as the last one, so that no change of size draws it
            self.redraw()

    def fit(self, screen: Size) -> None:
        if self.popup is not None:
            place = self.popup.place(screen)
            self.prepare(place.width, place.height)
            self.styles.width, self.styles.height = place.width, place.height
            self.styles.offset = (place.x, place.y)

    def press(self, key: str, character: str | None) -> str:
        """Gives a key to the popup; `?` opens its help above it. Says why it does nothing."""
        popup = self.popup
        if popup is None:
            return ""
        answer: str | Popup = TextPopup(popup.look, f"Help: {popup.title}", popup.help_lines, None)
        if key != "question_mark" or popup.about is None:
            answer = popup.press(key, character)
            self._after(popup)
        if isinstance(answer, str):
            return answer
        self._under.append(popup)
        self._show(answer, popup.screen_size)
        return ""

    def draw(self, width: int, height: int) -> Sequence[AnyLine]:
        return () if self.popup is None or width < self.popup.inner_width else self.popup.draw(width, height)

    def clicked(self, x: int, y: int, again: bool) -> str | None:
        return None if self.popup is None else self.popup.clicked(x, y, again)

    def _after(self, popup: Popup) -> None:
        """Draws what a key has changed; a popup that opened another one is gone already."""
        if popup is not self.popup:
            return
        if popup.is_open:
            self._turned()
            self.redraw()
            if popup.resizes:
                self.fit(popup.screen_size)
            return
        self.popup = None
        if self._under:
            self._show(self._under.pop(), popup.screen_size)
        else:
            self.styles.offset = (0, -self.size.height)
            self._turned()  # now that nothing is open: the footer has the page's keys again


MOTIONS: dict[str, tuple[int, float]] = {
    **{"down": (1, 0), "up": (-1, 0), "first": (-(10**9), 0), "last": (10**9, 0)},
    **{"page_down": (0, 1), "page_up": (0, -1), "half_down": (0, 0.5), "half_up": (0, -0.5)},
}
"""Verbs that move the cursor, in the order of the command list, and by how many lines and screens they move it."""
MOVES = {typed: step for name, step in MOTIONS.items() for typed in BY_NAME[name].typed}
"""Keys, by Textual's names of them, and by how many lines and screens they move."""


class TextPopup(Popup):
    """A text to read, which `lines` draws for a width."""

    moves = ("Scroll by a line", "One screen down, up; begin, end; space: one screen on")

    def __init__(self, look: ScreenLook, title: str, lines: Lines, about: Lines | None, is_card: bool = False) -> None:
        super().__init__(look, title, about)
        self.is_card = is_card
        self._make = lines
        self._made: tuple[int, list[Line]] = (0, [])

    def row_count(self) -> int:
        return len(self._text(self.inner_width))

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        return [on_panel(line) for line in self._text(width)[first : first + count]]

    @property
    def own_keys(self) -> Sequence[KeyRow]:
        return [KeyRow("down up", "scroll")] if self.row_count() > self.room else []

    def press(self, key: str, character: str | None) -> str | Popup:
        return super().press("pagedown" if key == "space" else key, character)

    @property
    def leave_key(self) -> KeyRow:
        return CLOSE if self.about is not None else BACK

    def edge(self) -> str:
        total = self.row_count()
        return "" if total <= self.room else f"{self.top + 1}-{min(total, self.top + self.room)} of {total}"

    def _text(self, width: int) -> list[Line]:
        if self._made[0] != width:
            self._made = (width, self._make(Pen(width, self.look.glyphs)))
        return self._made[1]


_OF_HELP = "The keys of the page below, then the meaning of its figures. Popups have their own help on the same key."
ABOUT_HELP = meanings(("", _OF_HELP))
"""What a page's help is."""
