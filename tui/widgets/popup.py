"""What opens above a page: a framed panel, as a text to read (`Reader`) or a list to choose from (`Chooser`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual.geometry import Region, Size

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.layout import clean, cut, cut_middle
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.terminal.theme import AnyKey, AnyLine, AnySpan
from tpuprof.tui.widgets.chrome import pad
from tpuprof.tui.widgets.line_canvas import LineCanvas, Look
from tpuprof.tui.widgets.line_editor import LineEditor

T = TypeVar("T")

_ON_PANEL: dict[str, AnyKey] = {
    "text": "panel",
    "dim": "panel.dim",
    "strong": "panel.strong",
    "title": "panel.title",
    "rule": "panel.frame",
    "good": "panel",
    "warn": "panel.warn",
    "bad": "panel.warn",
    "key": "panel.key",
    "cursor": "panel.cursor",
    "mark": "panel.key",
}


def centred_top(cursor: int, total: int, room: int) -> int:
    """The first of so many rows to show where there is room for some, with the cursor in their middle."""
    return max(0, min(cursor - room // 2, total - room))


def on_panel(line: Line) -> AnyLine:
    """A line of a page, in the styles of a panel."""
    return tuple((text, _ON_PANEL.get(key, "panel") if isinstance(key, str) else "panel") for text, key in line)


def framed(title: str, body: Sequence[AnyLine], foot: str, width: int, glyphs: Glyphs) -> list[AnyLine]:
    """Lines of `width` - 4 cells in a frame, with a title above and keys below."""
    block = glyphs.name == "block"
    corners = ("╭", "╮", "╰", "╯") if block else ("+", "+", "+", "+")
    side: AnySpan = (glyphs.vertical, "panel.frame")
    head = cut(clean(title, not block), width - 6, glyphs)
    tail = cut(foot, width - 6, glyphs)
    top: AnyLine = (
        (corners[0] + glyphs.horizontal, "panel.frame"),
        (f" {head} ", "panel.title"),
        (glyphs.horizontal * (width - len(head) - 5) + corners[1], "panel.frame"),
    )
    bottom: AnyLine = (
        (corners[2] + glyphs.horizontal * (width - len(tail) - 5), "panel.frame"),
        (f" {tail} ", "panel.dim"),
        (glyphs.horizontal + corners[3], "panel.frame"),
    )
    return [top, *((side, (" ", "panel"), *line, (" ", "panel"), side) for line in body), bottom]


class Popup:
    """A framed panel in the middle of the screen, which gets every key while it is open.

    Attributes:
        passes: keys that close it and mean what they mean on the page.
        resizes: a key may change how many rows it has.
        is_typing: keys are typed into it as text.
    """

    resizes: ClassVar[bool] = False
    is_typing: bool = False
    widest: ClassVar[int] = 100
    """Cells of the panel on a wide screen."""

    def __init__(self, look: Look, title: str, passes: tuple[str, ...] = ()) -> None:
        self.look = look
        self.title = title
        self.passes = passes
        self.top = 0
        self.is_open = True
        self.screen_size = Size(80, 24)

    # --- what a kind of popup says

    def row_count(self) -> int:
        """Rows of the whole body, at the present width."""
        raise NotImplementedError

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        """Some rows of the body."""
        raise NotImplementedError

    def foot(self) -> str:
        """The keys, for the frame's lower edge."""
        return "Esc closes"

    # --- keys and mouse

    def press(self, key: str, character: str | None) -> None:
        """One key."""
        motion = MOVES.get(key)
        if key in ("escape", "q"):
            self.is_open = False
        elif motion is not None:
            self.step(*motion)

    def click(self, row: int) -> None:
        """A click on a line of the panel, counted from its upper edge."""

    def step(self, lines: int, screens: float) -> None:
        """Scrolls by lines and screens."""
        self.top = self._within(self.top + lines + round(screens * self.room))

    # --- its place and look

    @property
    def inner_width(self) -> int:
        """Cells of a row."""
        width = self.screen_size.width
        return max(8, (self.widest if width > self.widest + 8 else width) - 4)

    @property
    def room(self) -> int:
        """Rows that fit."""
        return max(1, min(self.row_count(), self.screen_size.height - 4))

    def place(self, screen: Size) -> Region:
        """Its place in the middle of a screen of this size."""
        self.screen_size = screen
        width, height = self.inner_width + 4, self.room + 2
        self.top = self._within(self.top)
        return Region((screen.width - width) // 2, max(0, (screen.height - height) // 2), width, height)

    def draw(self, width: int, height: int) -> list[AnyLine]:
        """The frame and the rows in it."""
        inner = width - 4
        body = self.rows(self.top, height - 2, inner)
        body += [((" " * inner, "panel"),)] * (height - 2 - len(body))
        return framed(self.title, body, self.foot(), width, self.look.glyphs)

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

    def __init__(self, look: Look, *, id: str) -> None:
        super().__init__(look, clicked=self._click, scrolled=self._wheel, background="panel", id=id)
        self.popup: Popup | None = None
        """The open one."""

    def open(self, popup: Popup, screen: Size) -> None:
        """Shows a popup, instead of the one that may be open."""
        self.popup = popup
        self.fit(screen)
        if self.size == popup.place(screen).size:  # as large as the last one, so that no change of size draws it
            self.redraw()

    def fit(self, screen: Size) -> None:
        """Takes its place on a screen of this size."""
        if self.popup is not None:
            place = self.popup.place(screen)
            self.prepare(place.width, place.height)
            self.styles.width, self.styles.height = place.width, place.height
            self.styles.offset = (place.x, place.y)

    def press(self, key: str, character: str | None) -> None:
        """Gives a key to the popup."""
        if self.popup is not None:
            self.popup.press(key, character)
            self._after(self.popup)

    def draw(self, width: int, height: int) -> Sequence[AnyLine]:
        """The popup; nothing as long as its panel has not got its size."""
        if self.popup is None or width < self.popup.inner_width:
            return ()
        return self.popup.draw(width, height)

    def _click(self, _: int, row: int) -> None:
        if self.popup is not None:
            self.popup.click(row)
            self._after(self.popup)

    def _wheel(self, by: int) -> None:
        self.press("down" if by > 0 else "up", None)

    def _after(self, popup: Popup) -> None:
        """Draws what a key has changed; a popup that opened another one is gone already."""
        if popup is not self.popup:
            return
        if popup.is_open:
            self.redraw()
            if popup.resizes:
                self.fit(popup.screen_size)
        else:
            self.popup = None
            self.styles.offset = (0, -self.size.height)


MOVES: dict[str, tuple[int, float]] = {
    **dict.fromkeys(("j", "down"), (1, 0)),
    **dict.fromkeys(("k", "up"), (-1, 0)),
    **dict.fromkeys(("pagedown", "space"), (0, 1)),
    **{"pageup": (0, -1), "ctrl+d": (0, 0.5), "ctrl+u": (0, -0.5)},
    **dict.fromkeys(("g", "home"), (-(10**9), 0)),
    **dict.fromkeys(("G", "end"), (10**9, 0)),
}
"""Keys and by how many lines and screens they move."""


class Reader(Popup):
    """A text to read, which `lines` draws for a width."""

    def __init__(
        self, look: Look, title: str, lines: Callable[[int, Glyphs], list[Line]], passes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(look, title, passes)
        self._make = lines
        self._made: tuple[int, list[Line]] = (0, [])

    def row_count(self) -> int:
        """Lines of the text."""
        return len(self._text(self.inner_width))

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        """Some lines of the text."""
        return [on_panel(line) for line in self._text(width)[first : first + count]]

    def foot(self) -> str:
        """How far the text goes, where it doesn't fit."""
        total = self.row_count()
        if total <= self.room:
            return "Esc closes"
        return f"{self.top + 1}-{min(total, self.top + self.room)} of {total}   j k scroll   Esc closes"

    def _text(self, width: int) -> list[Line]:
        if self._made[0] != width:
            self._made = (width, self._make(width, self.look.glyphs))
        return self._made[1]


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    """One row of a list.

    Attributes:
        cells, value: one text a column, and what choosing it answers.
        warning: a text after the columns that says what is wrong with it.
        possible: whether it can be chosen.
    """

    cells: tuple[str, ...]
    value: T
    warning: str = ""
    possible: bool = True


class FilteredPopup(Popup):
    """A list whose rows are those that hold the words typed above them; keys are typed after ``/`` or at once."""

    def __init__(self, look: Look, title: str, typing: bool = False) -> None:
        super().__init__(look, title)
        self._editor = LineEditor(moves=False)
        self.is_typing = self._types_at_once = typing

    @property
    def filter(self) -> str:
        """What is typed."""
        return self._editor.text

    def filter_line(self, found: str, width: int) -> AnyLine:
        """The filter, and how much it finds."""
        text = clean(self.filter, self.look.glyphs.is_ascii)
        spans: list[AnySpan] = [("/", "panel.key"), (text[-(width - 24) :], "panel.strong")]
        spans += [("_" if self.is_typing else "", "panel.key"), (f"   {found}", "panel.dim")]
        return pad(spans, width, "panel")

    def filter_changed(self) -> None:
        """Other rows match."""

    def press(self, key: str, character: str | None) -> None:
        """Types into the filter where typing is on; Escape ends the filter first."""
        if key == "escape" and (self.is_typing or self.filter) and not self._types_at_once:
            self.is_typing, self._editor = False, LineEditor(moves=False)
            self.filter_changed()
        elif self.is_typing and key in ("ctrl+n", "ctrl+p"):
            self.step(1 if key == "ctrl+n" else -1, 0)
        elif self.is_typing and self._editor.press(key, character):
            self.filter_changed()
        elif key == "slash":
            self.is_typing = True
        else:
            super().press(key, character)


class Chooser(FilteredPopup, Generic[T]):
    """A list to choose from, with a filter.

    Args:
        columns: headings; the first column takes the room that the others leave.
        chosen: called with the value of the row that was chosen; not at all where none was.
        start: index of the row under the cursor at first.
    """

    def __init__(
        self,
        look: Look,
        title: str,
        columns: tuple[str, ...],
        choices: Sequence[Choice[T]],
        chosen: Callable[[T], object],
        start: int = 0,
        typing: bool = False,
    ) -> None:
        super().__init__(look, title, typing)
        self.columns = columns
        self.choices = tuple(choices)
        self._chosen = chosen
        self.cursor = start

    @property
    def matching(self) -> list[Choice[T]]:
        """The rows that hold every word of the filter."""
        words = self.filter.casefold().split()
        texts = (" ".join((*choice.cells, choice.warning)).casefold() for choice in self.choices)
        rows = zip(self.choices, texts, strict=True)
        return [choice for choice, text in rows if all(word in text for word in words)]

    def row_count(self) -> int:
        """A line for the filter, one of headings, the rows; as many as without a filter, so that the panel stays."""
        return len(self.choices) + 2

    def foot(self) -> str:
        """The keys."""
        return "Enter chooses   Esc back" if self.is_typing else "Enter chooses   / filter   Esc back"

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        """The filter, the headings, and the rows around the cursor."""
        glyphs, matching = self.look.glyphs, self.matching
        widths = self._widths(width)
        room, top = count - 2, self._first(count - 2)
        filtered = self.filter_line(f"{len(matching)} of {len(self.choices)}", width)
        if not self.is_typing and not self.filter:
            filtered = pad([(f"{len(self.choices)} to choose from", "panel.dim")], width, "panel")
        lines = [filtered, self._row_line(self.columns, "", width, widths, "panel.dim", " ")]
        for index, choice in enumerate(matching[top : top + room], top):
            key: AnyKey = "panel.cursor" if index == self.cursor else "panel" if choice.possible else "panel.dim"
            mark = glyphs.mark if index == self.cursor else " "
            lines.append(self._row_line(choice.cells, choice.warning, width, widths, key, mark))
        return lines

    def _widths(self, width: int) -> list[int]:
        """Cells of each column but the first, by its widest cell."""
        rest = [
            max(len(clean(row[index])) for row in (self.columns, *(choice.cells for choice in self.choices)))
            for index in range(1, len(self.columns))
        ]
        return [max(8, width - 2 - sum(rest) - 2 * len(rest)), *rest]

    def _row_line(
        self, cells: Sequence[str], warning: str, width: int, widths: Sequence[int], key: AnyKey, mark: str
    ) -> AnyLine:
        glyphs = self.look.glyphs
        ascii_only = glyphs.is_ascii
        longest = max((len(clean(choice.cells[0])) for choice in self.choices), default=8)
        first = min(widths[0], max(longest, len(self.columns[0])))
        spans: list[AnySpan] = [(f"{mark} ", key)]
        for index, cell in enumerate(cells):
            room = first if index == 0 else widths[index]
            text = cut_middle(clean(cell, ascii_only), room, glyphs)
            spans.append((f"{text:<{room}}" if index == 0 else f"  {text:>{room}}", key))
        left = width - sum(len(text) for text, _ in spans)
        if warning and left > 6:
            words = cut(clean(warning, ascii_only), left - 2, glyphs)
            spans.append((f"  {words}", "panel.warn" if key == "panel" else key))
        return pad(spans, width, key)

    # --- keys

    def press(self, key: str, character: str | None) -> None:
        """Enter chooses; the rest is the filter's."""
        if key == "enter":
            self._choose()
        else:
            super().press(key, character)

    def step(self, lines: int, screens: float) -> None:
        """Moves the cursor."""
        self._point(self.cursor + lines + round(screens * (self.room - 2)))

    def click(self, row: int) -> None:
        """Chooses a row."""
        index = self._first(self.room - 2) + row - 3
        if 3 <= row < self.room + 1 and index < len(self.matching):
            self._point(index)
            self._choose()

    def _first(self, room: int) -> int:
        """The first row shown, of as many as fit: the cursor stays in the middle."""
        return centred_top(self.cursor, len(self.matching), room)

    def filter_changed(self) -> None:
        """The first of the rows is under the cursor."""
        self.cursor = 0

    def _point(self, index: int) -> None:
        self.cursor = max(0, min(index, len(self.matching) - 1))

    def _choose(self) -> None:
        matching = self.matching
        if matching and matching[self.cursor].possible:
            self.is_open = False
            self._chosen(matching[self.cursor].value)
