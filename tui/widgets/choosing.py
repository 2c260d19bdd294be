"""Lists to choose from, above a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Generic, TypeVar

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import completions_of, has_words, said_of
from tpuprof.tui.draw.layout import clean, cut_middle, cut_words
from tpuprof.tui.draw.spans import line_width
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.terminal.theme import AnyKey, AnyLine, AnySpan
from tpuprof.tui.widgets.asking import LineEditor
from tpuprof.tui.widgets.chrome import KeyRow, act_of, as_many, pad
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.popup import BACK, Lines, Popup, centred_top

T = TypeVar("T")


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


class ListPopup(Popup):
    """A list with a cursor (`listing`), below some lines of head; its row is in the middle of those that show."""

    HEAD: ClassVar[int] = 2
    CHOOSES_AT_ONCE: ClassVar[bool] = True
    """Whether a click chooses a row at once, and not only where the cursor is on it already."""
    listing: Listing

    @property
    def total(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def choose(self) -> None:
        """What Enter and a click do with the row under the cursor."""
        raise NotImplementedError

    @property
    def cursor(self) -> int:
        """The row under the cursor."""
        return self.listing.cursor

    @property
    def place_of_cursor(self) -> object:
        """What a motion changes."""
        return self.cursor

    @property
    def list_room(self) -> int:
        """Rows that fit below the head."""
        return self.room - self.HEAD

    def first(self, room: int) -> int:
        """The first row shown, of as many as fit."""
        return centred_top(self.cursor, self.total, room)

    def point(self, row: int) -> None:
        """Puts the cursor on a row, or on the nearest that there is."""
        self.listing = self.listing.at(row, self.total)

    def step(self, lines: int, screens: float) -> None:
        """Moves the cursor."""
        self.point(self.cursor + lines + round(screens * self.list_room))

    def click(self, row: int) -> None:
        """Puts the cursor on a row, or chooses it."""
        place = row - self.HEAD - 1
        index = self.first(self.list_room) + place
        if not 0 <= place < self.list_room or index >= self.total:
            return
        chooses = self.CHOOSES_AT_ONCE or index == self.cursor
        self.point(index)
        if chooses:
            self.choose()


class FilteredPopup(ListPopup):
    """A list whose rows are those that hold the words typed above them; keys are typed after ``/`` or at once."""

    FILTERS: ClassVar[str] = "Only rows with these words"  # what a filter leaves, for help

    def __init__(self, look: ScreenLook, title: str, about: Lines, typing: bool = False) -> None:
        super().__init__(look, title, about)
        self._editor = LineEditor(complete=self.words_for)
        self.is_typing = self._types_at_once = typing

    @property
    def filter(self) -> str:
        """What is typed."""
        return self._editor.text

    @property
    def searched(self) -> Sequence[str]:
        """What the filter looks at in each row."""
        raise NotImplementedError

    def words_for(self, begun: str) -> Sequence[str]:
        """What a word that is begun in the filter may become."""
        return completions_of(begun, self.searched)

    def filter_line(self, found: str, count: int, width: int) -> AnyLine:
        """The filter, and how much it finds, what it may become, or the nearest that finds something."""
        found = as_many(self._editor.offered, width // 2) or said_of(self.filter, found, count, lambda: self.searched)
        text = clean(self.filter, self.look.glyphs.is_ascii)
        spans: list[AnySpan] = [("/", "panel.key"), (text[-(width - 24) :], "panel.strong")]
        spans += [("_" if self.is_typing else "", "panel.key"), (f"   {found}", "panel.dim")]
        return pad(spans, width, "panel")

    @property
    def leave_key(self) -> KeyRow:
        """Escape ends the filter first."""
        if (self.is_typing or self.filter) and not self._types_at_once:
            return KeyRow("back", "all rows", "End the filter; again: back", {"back": self._end_filter})
        return BACK

    @property
    def filter_key(self) -> KeyRow:
        """Begins to type the filter."""
        return KeyRow("search", "filter", self.FILTERS, {"search": self._begin_filter})

    @property
    def typing_keys(self) -> Sequence[KeyRow]:
        """What moves the cursor while letters are typed."""
        moves = {"typing_down": partial(self.step, 1, 0), "typing_up": partial(self.step, -1, 0)}
        return [KeyRow("typing_down typing_up", "move", "Next, previous row while you type", moves)]

    def _begin_filter(self) -> None:
        self.is_typing = True

    def _end_filter(self) -> None:
        self.is_typing, self._editor = False, LineEditor(complete=self.words_for)
        self.filter_changed()

    def filter_changed(self) -> None:
        """Other rows match."""

    def press(self, key: str, character: str | None) -> str:
        """Types into the filter where typing is on."""
        if self.is_typing and act_of(self.own_keys, key) is None and self._editor.press(key, character):
            self.filter_changed()
            return ""
        return super().press(key, character)


class ChoicePopup(FilteredPopup, Generic[T]):
    """A list to choose from, with a filter.

    Args:
        columns: headings; the first column takes the room that the others leave.
        chosen: called with the value of the row that was chosen; not at all where none was.
        about: what the rows are, for its help.
        start: index of the row under the cursor at first.
    """

    def __init__(
        self,
        look: ScreenLook,
        title: str,
        columns: tuple[str, ...],
        choices: Sequence[Choice[T]],
        chosen: Callable[[T], object],
        about: Lines,
        start: int = 0,
        typing: bool = False,
    ) -> None:
        super().__init__(look, title, about, typing)
        self.columns = columns
        self.choices = tuple(choices)
        self._chosen = chosen
        self.listing = Listing(cursor=start)

    @property
    def matching(self) -> list[Choice[T]]:
        """The rows that hold every word of the filter."""
        is_wanted = has_words(self.filter)
        texts = zip(self.choices, self.searched, strict=True)
        return [one for one, text in texts if is_wanted(text.casefold())]

    @property
    def searched(self) -> Sequence[str]:
        """The cells of each row, and what is wrong with it."""
        return [" ".join((*one.cells, one.warning)) for one in self.choices]

    def row_count(self) -> int:
        """A line for the filter, one of headings, the rows; as many as without a filter, so that the panel stays."""
        return len(self.choices) + 2

    @property
    def own_keys(self) -> Sequence[KeyRow]:
        """It chooses, and takes a filter."""
        choose = KeyRow("open", "choose", "Choose the row under the cursor", {"open": self.choose})
        return [choose, *self.typing_keys] if self.is_typing else [choose, self.filter_key]

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        """The filter, the headings, and the rows around the cursor."""
        glyphs, matching = self.look.glyphs, self.matching
        widths = self._widths(width)
        room, top = count - self.HEAD, self.first(count - self.HEAD)
        filtered = self.filter_line(f"{len(matching)} of {len(self.choices)}", len(matching), width)
        if not self.is_typing and not self.filter:
            filtered = pad([(f"{len(self.choices)} to choose from", "panel.dim")], width, "panel")
        lines = [filtered, self._row_line(self.columns, "", width, widths, "panel.dim", " ")]
        for index, choice in enumerate(matching[top : top + room], top):
            key: AnyKey = "panel.cursor" if index == self.cursor else "panel" if choice.possible else "panel.dim"
            mark = glyphs.mark if index == self.cursor else " "
            lines.append(self._row_line(choice.cells, choice.warning, width, widths, key, mark))
        return lines

    def _widths(self, width: int) -> list[int]:
        """Cells of each column, by its widest cell; the first gives way to the others."""
        columns = zip(self.columns, *(choice.cells for choice in self.choices), strict=True)
        first, *rest = [max(len(clean(cell)) for cell in column) for column in columns]
        first = first if self.choices else max(8, first)
        return [min(first, max(8, width - 2 - sum(rest) - 2 * len(rest))), *rest]

    def _row_line(
        self, cells: Sequence[str], warning: str, width: int, widths: Sequence[int], key: AnyKey, mark: str
    ) -> AnyLine:
        glyphs = self.look.glyphs
        spans: list[AnySpan] = [(f"{mark} ", key)]
        for index, (cell, room) in enumerate(zip(cells, widths, strict=True)):
            text = cut_middle(cell, room, glyphs)
            spans.append((f"{text:<{room}}" if index == 0 else f"  {text:>{room}}", key))
        left = width - line_width(spans)
        if warning and left > 6:
            words = cut_words(warning, left - 2, glyphs)
            spans.append((f"  {words}", "panel.warn" if key == "panel" else key))
        return pad(spans, width, key)

    @property
    def total(self) -> int:
        """How many rows match."""
        return len(self.matching)

    def filter_changed(self) -> None:
        """The first of the rows is under the cursor."""
        self.listing = self.listing.anew(words=self.filter)

    def choose(self) -> None:
        """Answers the row under the cursor, where it can be chosen."""
        matching = self.matching
        if matching and matching[self.cursor].possible:
            self.is_open = False
            self._chosen(matching[self.cursor].value)
