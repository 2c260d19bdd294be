"""The one kind of widget this app draws with: a list of lines, repainted only where it changed.

A page is drawn by pure functions into lines of spans. `LineCanvas` turns each line into a strip of cells once, keeps it
for as long as the line is shown, and on a redraw compares old and new lines and repaints the cells that differ: a
cursor step sends one to four kilobytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME
from textual.binding import BindingType
from textual.events import Resize
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs
from tpuprof.tui.terminal.detect import Terminal
from tpuprof.tui.terminal.grammar import typed_name, verbs_of
from tpuprof.tui.terminal.theme import AnyKey, AnyLine, Palette, palette


@dataclass(frozen=True, slots=True)
class ScreenLook:
    """What everything is drawn with."""

    palette: Palette
    glyphs: Glyphs

    @classmethod
    def of(cls, terminal: Terminal) -> ScreenLook:
        glyphs = (PLAIN if terminal.color == "mono" else BLOCK) if terminal.unicode else ASCII
        return cls(palette(terminal.color, terminal.light, terminal.theme), glyphs)


Drawing = Callable[[int, int], Sequence[AnyLine]]
Clicked = Callable[[int, int, bool], "str | None"]
"""Takes a click in a column of a line, and whether the one before it was at the same place. Returns the key that it
stands for, by Textual's name; empty where it has done something itself; None where nothing is there to do."""


class LineCanvas(ScrollView, inherit_bindings=False):
    """Shows the lines that `draw` returns.

    Subclasses override `draw` or hand in a function; whoever changes what it draws from calls `redraw`. The lines may
    be more than fit: the canvas then scrolls (`scroll_to_line`), without scroll bars.

    Args:
        drawing: takes width and height and returns the lines, for canvases that are no subclass.
        clicked: takes clicks on canvases that are no subclass.
        background: the style key of cells that no line covers.
    """

    BINDINGS: ClassVar[list[BindingType]] = []
    DEFAULT_CSS = """
    LineCanvas {
        overflow: hidden hidden;
        scrollbar-size: 0 0;
    }
    """

    def __init__(
        self,
        look: ScreenLook,
        drawing: Drawing | None = None,
        clicked: Clicked | None = None,
        *,
        background: AnyKey = "text",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._clicked = clicked
        self.look = look
        self._drawing = drawing
        self._background = background
        self.lines: tuple[AnyLine, ...] = ()  # as last drawn
        self._strips: dict[AnyLine, Strip] = {}
        self._drawn_width = 0

    def draw(self, width: int, height: int) -> Sequence[AnyLine]:
        """The lines to show on `width` by `height` cells; each should be `width` cells wide."""
        return self._drawing(width, height) if self._drawing else ()

    def cover_card(self, is_open: bool) -> None:
        """A card that it has on a row is open in full, or no longer."""

    def redraw(self) -> None:
        """Draws again and repaints the cells that differ from what is shown."""
        width, height = self.size
        if not width or not height:
            return
        old, new = self.lines, tuple(self.draw(width, height))
        self.lines = new
        if width != self._drawn_width or not old:
            self._drawn_width = width
            self._strips.clear()
            self._set_line_count(width, len(new))
            self.refresh()
            return
        shown = set(new)
        self._strips = {line: strip for line, strip in self._strips.items() if line in shown}
        self._set_line_count(width, len(new))
        top = self.scroll_offset.y
        regions = [
            Region(begin, y - top, end - begin, 1)
            for y in range(max(len(old), len(new)))
            if top <= y < top + height
            for begin, end in [self._changed(old[y] if y < len(old) else (), new[y] if y < len(new) else (), width)]
            if begin < end
        ]
        if regions:
            self.refresh(*regions)

    def prepare(self, width: int, height: int) -> None:
        """Draws for a size that it is going to have, so that its first paint already shows the lines.

        Without a cell there is nothing to draw: a screen that is being built anew has no size for a moment.
        """
        if width and height and self.size != (width, height):
            self.lines = tuple(self.draw(width, height))
            self._drawn_width = width
            self._strips.clear()

    def set_look(self, look: ScreenLook) -> None:
        """Changes palette or glyphs and paints everything anew."""
        self.look = look
        self.lines = ()
        self.redraw()

    def scroll_to_line(self, y: int) -> None:
        """Scrolls as little as needed to show line `y`."""
        self.scroll_lines_to(max(y - self.size.height + 1, min(self.scroll_offset.y, y)))

    def scroll_lines_to(self, top: int) -> None:
        """Shows the lines from `top` on, as far as there are any."""
        top = max(0, min(top, len(self.lines) - self.size.height))
        self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        return self._strip(self.lines[index] if index < len(self.lines) else (), self.size.width)

    def on_resize(self, event: Resize) -> None:
        self.redraw()

    def clicked(self, x: int, y: int, again: bool) -> str | None:
        """Takes a click (`Clicked`); one on a key that is drawn is that key."""
        key = None if self._clicked is None else self._clicked(x, y, again)
        return key_at(self.lines[y], x) if key is None and y < len(self.lines) else key

    def _set_line_count(self, width: int, count: int) -> None:
        """Tells Textual how far there is to scroll, without the layout (and repaint) of the screen that it would do."""
        self.set_reactive(LineCanvas.virtual_size, Size(width, count))
        if self.scroll_offset.y > max(0, count - self.size.height):
            self.scroll_lines_to(count)

    def _strip(self, line: AnyLine, width: int) -> Strip:
        strip = self._strips.get(line)
        if strip is None or strip.cell_length != width:
            strip = self._strips[line] = strip_of(line, width, self.look.palette, self._background)
        return strip

    def _changed(self, old: AnyLine, new: AnyLine, width: int) -> tuple[int, int]:
        """First and last-but-one column in which two lines look different."""
        if old == new:
            return 0, 0
        before, after = self._strip(old, width), self._strip(new, width)
        a, b = _cells(before), _cells(after)
        if a is None or b is None:
            return 0, width
        differ = [column for column in range(width) if a[column] != b[column]]
        return (differ[0], differ[-1] + 1) if differ else (0, 0)


def strip_of(line: AnyLine, width: int, colors: Palette, background: AnyKey = "text") -> Strip:
    """A line as exactly `width` cells, every one of them styled.

    Neighbouring spans that look alike are joined, and blanks take the style before them where only ink differs: each
    change of style sends some twenty bytes.
    """
    segments: list[Segment] = []
    ground = colors.style(background)
    for text, style in _words(line, colors):
        if segments:
            last = segments[-1]
            assert last.style is not None
            blank = not text.strip(" ") and last.style.bgcolor == style.bgcolor
            if last.style == style or (blank and not _is_marked(style) and not _is_marked(last.style)):
                segments[-1] = Segment(last.text + text, last.style)
                continue
        segments.append(Segment(text, style))
    strip = Strip(segments)
    return strip if strip.cell_length == width else strip.adjust_cell_length(width, ground)


def _words(line: AnyLine, colors: Palette) -> Iterator[tuple[str, Style]]:
    """Texts and their styles; where words are underlined, the blanks that align them are not."""
    for text, key in line:
        style, words = colors.style(key), text.strip(" ")
        if style.underline and words != text and isinstance(key, str) and not key.startswith("on."):
            begin, blank = len(text) - len(text.lstrip(" ")), style + Style(underline=False)
            parts = ((text[:begin], blank), (words, style), (text[begin + len(words) :], blank))
            yield from (part for part in parts if part[0])
        else:
            yield text, style


BUTTONS: frozenset[AnyKey] = frozenset(("key", "bar.key", "tab.key", "tab.active"))
"""Styles of keys that a click presses, as one on the words behind them does."""


def key_at(line: AnyLine, x: int) -> str | None:
    """The key that is drawn in a column of a line, or before the words there, as Textual calls it."""
    begin, keys, is_label = 0, dict[int, str](), False
    for text, style in line:
        is_key = style in BUTTONS
        keys = {begin + at: key for at, key in _keys_in(text)} if is_key else keys if is_label else {}
        begin, is_label = begin + len(text), is_key
        if x < begin:
            first = next(iter(keys.values()), None)
            return next((key for at, key in reversed(keys.items()) if is_key and at <= x), first)
    return None


def _keys_in(text: str) -> Iterator[tuple[int, str]]:
    """The keys that a text begins with, and where each stands."""
    for found in re.finditer(r"[wasd](?=[wasd]*$)|\d|[^ \d-][^ ]*", text):
        key = typed_name(found.group())
        if not verbs_of(key):
            return
        yield found.start(), key


def _is_marked(style: Style) -> bool:
    """Whether a blank in this style can be seen apart from its background."""
    return bool(style.reverse or style.underline)


def _cells(strip: Strip) -> list[tuple[str, Style | None]] | None:
    """Character and style of each cell; None where a character is not one cell wide."""
    cells = [(character, segment.style) for segment in strip for character in segment.text]
    return cells if len(cells) == strip.cell_length else None


def picture_of(lines: Sequence[Strip], width: int, is_light: bool | None, form: str, title: str) -> str:
    """Lines of a screen as a picture (``svg``), a page (``html``) or text (``txt``); around them it is as light."""
    if form == "txt":
        return "".join(f"{line.text.rstrip()}\n" for line in lines)
    console = Console(
        width=width,
        file=io.StringIO(),
        record=True,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    for line in lines:
        console.print(Segments([*line, Segment.line()]), end="")
    theme = DEFAULT_TERMINAL_THEME if is_light else SVG_EXPORT_THEME
    if form == "svg":
        return console.export_svg(title=title, theme=theme)
    return console.export_html(theme=theme, inline_styles=True)
