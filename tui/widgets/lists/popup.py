"""Lists above a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, islice, starmap
from operator import attrgetter
from string import ascii_letters
from typing import Any, ClassVar, Generic, TypeVar

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import completions_of, has_words, said_of
from tpuprof.tui.draw.pen import Composed, Pen, clean, cut_middle, cut_words
from tpuprof.tui.draw.spans import Line, Span, StyleKey, line_width
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.terminal.grammar import BY_NAME, VERBS, Verb
from tpuprof.tui.terminal.theme import AnyLine, AnySpan
from tpuprof.tui.widgets.asking import LineEditor
from tpuprof.tui.widgets.chrome import KeyRow, act_of, as_many, pad
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.lists.view import ListView, Row
from tpuprof.tui.widgets.popup import BACK, Lines, Popup, meanings, on_panel

T = TypeVar("T")
_WORD = pattern(r"[\w.-]+")


class PanelList(ListView[Row]):
    """A list for a popup.

    Attributes:
        about: what it shows and what its figures mean, for its help.
        widest: cells of the panel on a wide screen.
        filters: what a filter leaves, for help.
        is_left: something was chosen, which closes the popup.
    """

    about: Lines
    widest: ClassVar[int] = 100
    filters: ClassVar[str] = "Only rows with these words"
    is_left = False

    def sort_by(self, order: str) -> str:
        super().sort_by(order)
        return ""  # its caption says it

    @property
    def most_lines(self) -> int:
        raise NotImplementedError

    @property
    def total(self) -> int:
        """How many rows there are, whatever the filter leaves."""
        return self.count

    @property
    def takes_filter(self) -> bool:
        return True

    @property
    def leave_key(self) -> KeyRow:
        return BACK

    def point_page(self) -> bool:
        """Puts the page's cursor on what the row is of; False where the page does not have that."""
        return False


class ListPopup(Popup):
    """A list above a page. Keys are typed into its filter after ``/``, or at once where it `types`.

    Args:
        closed: called when it closes, whatever the reason.
    """

    def __init__(
        self,
        look: ScreenLook,
        title: str,
        shown: PanelList[Any],
        *,
        types: bool = False,
        closed: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(look, title, shown.about)
        self.listed: PanelList[Any] = shown
        self.widest = shown.widest
        self.is_typing = self._types_at_once = types
        self._editor, self._closed = self._new_editor(), closed

    def _new_editor(self) -> LineEditor:
        return LineEditor(complete=lambda begun: completions_of(begun, self.listed.searched))

    def row_count(self) -> int:
        return self.listed.most_lines

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        lines = [on_panel(line) for line in self.listed.draw(Pen(width, self.look.glyphs), count)]
        filtered = [self._filter_line(width)] if self.is_typing or self._editor.text else lines[:1]
        return [*filtered, *lines[1:]]

    def _filter_line(self, width: int) -> AnyLine:
        """The filter's text, and what completes it, how many rows it finds, or the nearest text that finds some."""
        shown, typed = self.listed, self._editor.text
        found = f"{shown.count:,} of {shown.total:,}"
        found = as_many(self._editor.offered, width // 2) or said_of(
            typed, found, shown.count * (not shown.is_filter_wrong), lambda: shown.searched
        )
        text = clean(typed, self.look.glyphs.is_ascii)
        spans: list[AnySpan] = [("/", "panel.key"), (text[-(width - 24) :], "panel.strong")]
        spans += [("_" if self.is_typing else "", "panel.key"), (f"   {found}", "panel.dim")]
        return pad(spans, width, "panel")

    @property
    def own_keys(self) -> Sequence[KeyRow]:
        if self.is_typing:
            moves = {"typing_down": partial(self.listed.step, 1), "typing_up": partial(self.listed.step, -1)}
            return [self.listed.keys[0], KeyRow(" ".join(moves), "move", "Next, previous row while you type", moves)]
        search = KeyRow("search", "filter", self.listed.filters, {"search": self._begin_filter})
        ask = partial(SortPopup, self.look, self.listed)
        sort = [self.listed.sorting_key(ask=ask)] if self.listed.orders else []
        return [*self.listed.keys, *sort, *([search] if self.listed.takes_filter else [])]

    @property
    def leave_key(self) -> KeyRow:
        if (self.is_typing or self._editor.text) and not self._types_at_once:
            return KeyRow("back", "all rows", "End the filter; again: back", {"back": self._end_filter})
        return self.listed.leave_key

    def _begin_filter(self) -> None:
        self.is_typing = True

    def _end_filter(self) -> None:
        self.is_typing, self._editor = False, self._new_editor()
        self.listed.search("")

    @property
    def place_of_cursor(self) -> object:
        return self.listed.cursor, self.listed.listing

    def press(self, key: str, character: str | None) -> str | Popup:
        said: str | Popup = ""
        key = "escape" if self.is_typing and key == "backspace" and not self._editor.text else key  # as on a page
        if self.is_typing and key == "enter" and self.listed.is_filter_wrong:
            said = "No row has these words."
        elif self.is_typing and act_of(self.own_keys, key) is None and self._editor.press(key, character):
            self.listed.search(self._editor.text)
        else:
            said = super().press(key, character)
        self._close_where_left()
        return said

    def step(self, lines: int, screens: float) -> None:
        self.listed.step(lines, screens)

    def clicked(self, x: int, y: int, again: bool) -> str | None:
        return self.listed.clicked(x - 2, y - 1, again)

    def _close_where_left(self) -> None:
        self.is_open = self.is_open and not self.listed.is_left
        if not self.is_open:
            self._closed()


@dataclass(frozen=True, slots=True)
class ChoiceRow(Generic[T]):
    """One row of a list.

    Attributes:
        cells, value: one text a column, and what choosing it answers.
        warning: a text after the columns that says what is wrong with it.
        possible: whether it can be chosen.
        synonyms: words that find it and that it does not show.
    """

    cells: tuple[str, ...]
    value: T
    warning: str = ""
    possible: bool = True
    synonyms: str = ""


class ChoiceList(PanelList[ChoiceRow[T]]):
    """Rows to choose from: only those that match what is typed, or none.

    Args:
        columns: headings; the first column takes the room that the others leave.
        chosen: called with the value of the row that was chosen; not at all where none was.
        start: index of the row under the cursor at first.
    """

    keeps_last = False

    def __init__(
        self,
        columns: tuple[str, ...],
        choices: Sequence[ChoiceRow[T]],
        chosen: Callable[[T], object],
        about: Lines,
        start: int = 0,
    ) -> None:
        self.about = about
        self.columns, self.choices = columns, tuple(choices)
        self._chosen = chosen
        self.listing = Listing(cursor=start)

    @property
    def rows(self) -> Sequence[ChoiceRow[T]]:
        return self.kept(self.listing.words, self._matching)

    def _matching(self) -> list[ChoiceRow[T]]:
        is_wanted = has_words(self.listing.words)
        texts = zip(self.choices, self.searched, strict=True)
        return [one for one, text in texts if is_wanted(text.casefold())]

    @property
    def selection(self) -> str | None:
        return self.row.cells[0] if self.row is not None else None

    @property
    def searched(self) -> Sequence[str]:
        return [" ".join((*one.cells, one.warning, one.synonyms)) for one in self.choices]

    @property
    def total(self) -> int:
        return len(self.choices)

    @property
    def most_lines(self) -> int:
        return self.total + 2

    @property
    def keys(self) -> Sequence[KeyRow]:
        return [KeyRow("open", "choose", "Choose the row under the cursor", {"open": self.enter})]

    def enter(self) -> bool:
        if self.row is not None and self.row.possible:
            self.is_left = True
            self._chosen(self.row.value)
        return True

    def compose(self, pen: Pen, height: int) -> Composed:
        widths, room = self._widths(pen.width), height - 2
        top = centred_top(self.cursor, self.count, room)
        lines = [pen.fit([(f"{self.total} to choose from", "dim")])]
        lines.append(_row_line(self.columns, "", widths, "dim", " ", pen))
        for index, choice in enumerate(self.rows[top : top + room], top):
            key: StyleKey = "cursor" if index == self.cursor else "text" if choice.possible else "dim"
            mark = pen.glyphs.mark if index == self.cursor else " "
            lines.append(_row_line(choice.cells, choice.warning, widths, key, mark, pen))
        return Composed(tuple(lines), 2, top, room)

    def _widths(self, width: int) -> list[int]:
        """Cells of each column, by its widest cell; the first gives way to the others."""
        columns = zip(self.columns, *(choice.cells for choice in self.choices), strict=True)
        first, *rest = [max(len(clean(cell)) for cell in column) for column in columns]
        first = first if self.choices else max(8, first)
        return [min(first, max(8, width - 2 - sum(rest) - 2 * len(rest))), *rest]


def centred_top(cursor: int, total: int, room: int) -> int:
    """The first of so many rows to show where there is room for some, with the cursor in their middle."""
    return max(0, min(cursor - room // 2, total - room))


def _row_line(cells: Sequence[str], warning: str, widths: Sequence[int], key: StyleKey, mark: str, pen: Pen) -> Line:
    spans: list[Span] = [(f"{mark} ", key)]
    for index, (cell, room) in enumerate(zip(cells, widths, strict=True)):
        text = cut_middle(cell, room, pen.glyphs)
        spans.append((f"{text:<{room}}" if index == 0 else f"  {text:>{room}}", key))
    left = pen.width - line_width(spans)
    if warning and left > 6:
        words = cut_words(warning, left - 2, pen.glyphs)
        spans.append((f"  {words}", "warn" if key == "text" else key))
    return pen.fit([*spans, (" " * (pen.width - line_width(spans)), key)])


Act = Callable[[], object]


def letters_of(titles: Iterable[str]) -> list[str]:
    """A letter for each title: the first of its own that is free, else any; letters that mean something stay free."""
    letters: list[str] = []
    for title in titles:
        free = {*ascii_letters} - {*letters, *"gjkqGQS"}
        letters.append(next(filter(free.__contains__, f"{title.lower()}{title.upper()}{ascii_letters}")))
    return letters


ABOUT_SORT = meanings(
    ("", "The columns of the list: a letter sorts by its column, S turns the order round; now: the present one.")
)


def sort_rows(of: ListView[Any], is_wanted: Callable[[str], bool] = bool) -> list[ChoiceRow[Act]]:
    """What sorts a list: a row for each column, with its title, its keys and the mark of the present order."""
    keys, at = letters_of(of.orders.values()), of.listing.sort
    rows: list[ChoiceRow[Act]] = [
        ChoiceRow((f"Sort by {title}", f"s {key}"), partial(of.sort_by, order), "now" if order == at else "")
        for key, (order, title) in zip(keys, of.orders.items(), strict=True)
    ]
    return [row for row in rows if is_wanted(f"{row.cells[0]} order column".casefold())]


class SortPopup(ListPopup):
    """The columns that a list can be sorted by, each with a letter that does it.

    Args:
        do: does what was chosen.
    """

    def __init__(self, look: ScreenLook, of: ListView[Any], do: Callable[[Act], object] = lambda act: act()) -> None:
        rows = [
            replace(row, cells=(title, row.cells[1]))
            for row, title in zip(sort_rows(of), of.orders.values(), strict=True)
        ]
        start = next((at for at, row in enumerate(rows) if row.warning), 0)
        super().__init__(look, "Sort by", ChoiceList(("column", "keys"), rows, do, ABOUT_SORT, start))
        self._letters, self._reverse, self.widest = [row.cells[1][-1] for row in rows], partial(do, of.reverse), 44

    @property
    def own_keys(self) -> Sequence[KeyRow]:
        return [*self.listed.keys, KeyRow("reverse", "turn round", "Turn the order round", {"reverse": self._reverse})]

    def press(self, key: str, character: str | None) -> str | Popup:
        if character in self._letters:
            self.listed.point(self._letters.index(character))
        return super().press("enter" if character in self._letters else key, character)


Named = Callable[[Callable[[str], bool]], Iterable[ChoiceRow[Act]]]
_MOST_NAMED = 40
ABOUT_COMMANDS = meanings(("", "What can be done now, and its keys. Type words or the begin of a name, then Enter."))


class CommandList(ChoiceList[Act]):
    """What can be done now. Typed words find names too, and rows with whole words come first, then synonyms."""

    named: Named = staticmethod(lambda _: ())

    def _matching(self) -> list[ChoiceRow[Act]]:
        typed = self.listing.words.casefold().split()

        def rank(row: ChoiceRow[Act]) -> tuple[bool, bool, int]:
            words = _WORD.findall(f"{row.synonyms} {row.cells[0]}".casefold())
            begins = [at for at, word in enumerate(words) if word.startswith(typed[0])]
            return not {*typed} <= {*words}, bool(row.warning), min(begins, default=len(words))

        named = islice(self.named(has_words(self.listing.words)), _MOST_NAMED) if typed else ()
        return sorted([*super()._matching(), *named], key=rank) if typed else super()._matching()


def command_list(
    look: ScreenLook,
    keys: Iterable[KeyRow],
    press: Callable[[str], object],
    do: Callable[[Act], object],
    first: Iterable[ChoiceRow[Act]] = (),
    named: Named = lambda _: (),
    why_not: Callable[[Verb], str] = attrgetter("absent"),
) -> ListPopup:
    """A list of what keys do now, and `first`. Typed words find what they can't do, `why_not`, and what is `named`."""

    def row(verb: Verb, title: str, absent: str = "") -> ChoiceRow[Act]:
        words = f"{verb.name.replace('_', ' ')} {verb.words} {verb.meaning}".casefold()
        return ChoiceRow((title or verb.meaning, verb.key), partial(press, verb.typed[0]), absent, synonyms=words)

    of_rows = {name: key.title if len(key.acts) == 1 else "" for key in keys for name in key.acts}
    titles = {BY_NAME[name]: title for name, title in of_rows.items() if name not in ("palette", "pick")}
    taken = {verb.key for verb in titles}
    absent = [row(verb, "", why_not(verb)) for verb in VERBS if verb.absent and not verb.page and verb.key not in taken]
    listed = CommandList(("action", "key"), [*first, *starmap(row, titles.items())], do, ABOUT_COMMANDS)
    listed.named = lambda is_wanted: chain((one for one in absent if is_wanted(one.synonyms)), named(is_wanted))
    return ListPopup(look, "Commands", listed, types=True)
