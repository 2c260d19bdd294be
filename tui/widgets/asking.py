"""A line that is typed into, and a panel that asks for one.

A `LineEditor` is no `Input` of Textual's, for two reasons. Textual gives a key to the widget that has the focus when
the key is read, and the focus moves only when an earlier key has been handled: of keys that come at once, as in a
paste, those behind ``/`` would still be commands, and ``/q`` would quit. And an `Input` writes 170 to 190 bytes to the
terminal for each character that is typed (120 columns, 256 colours, without blinking), where the footer's prompt writes
100 and the question 145.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tpuprof.tui.draw.layout import clean
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.terminal.theme import AnyLine, AnySpan
from tpuprof.tui.widgets.chrome import KeyRow
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.popup import BACK, Lines, Popup, on_panel

LONGEST = 4000  # most characters of a line
_STEPS = {"left": -1, "right": 1, "home": -LONGEST, "ctrl+a": -LONGEST, "end": LONGEST, "ctrl+e": LONGEST}
"""Keys and by how many characters they move the cursor."""


class LineEditor:
    """Takes keys into a line of text; whoever owns it draws it.

    Its `cursor` is the index of the character under the cursor, up to one past the last, where it stays if keys do not
    move it (`moves`).
    """

    def __init__(self, text: str = "", *, moves: bool = True) -> None:
        self.text = text
        self.cursor = len(text)
        self._moves = moves

    def press(self, key: str, character: str | None) -> bool:
        """One key; False where it means nothing here."""
        if key == "backspace":
            self._replace(max(0, self.cursor - 1), self.cursor, "")
        elif self._moves and key in _STEPS:
            self.cursor = max(0, min(len(self.text), self.cursor + _STEPS[key]))
        elif self._moves and key == "delete":
            self._replace(self.cursor, self.cursor + 1, "")
        elif self._moves and key == "ctrl+u":
            self._replace(0, len(self.text), "")
        elif character and character.isprintable():
            self.paste(character)
        else:
            return False
        return True

    def paste(self, text: str) -> None:
        """Puts a text in at the cursor, on one line: what can't be printed becomes a space."""
        line = "".join(character if character.isprintable() else " " for character in text.strip("\r\n"))
        self._replace(self.cursor, self.cursor, line[: LONGEST - len(self.text)])

    def _replace(self, first: int, end: int, text: str) -> None:
        """Puts a text in the place of some characters, and the cursor behind it."""
        self.text = self.text[:first] + text + self.text[end:]
        self.cursor = first + len(text)


class PromptPopup(Popup):
    """Asks for a line of text.

    Args:
        explanation, text: what may be typed, a paragraph each, and what stands there at first.
        answered: called with the text when Enter is pressed; answers what is wrong with it, or nothing.
        about: what comes of it, for its help.
        foretold: what Enter will do, a sentence below the explanation.

    Attributes:
        editor: what is typed.
    """

    resizes = True
    is_typing = True

    def __init__(
        self,
        look: ScreenLook,
        title: str,
        explanation: Sequence[str],
        text: str,
        answered: Callable[[str], str],
        about: Lines,
        foretold: str = "",
    ) -> None:
        super().__init__(look, title, about)
        self.editor = LineEditor(text)
        self._explanation = tuple(explanation)
        self._foretold = foretold
        self._answered = answered
        self._wrong = ""

    def row_count(self) -> int:
        """Lines of the explanation, the text and what is wrong with it."""
        return len(self._lines(self.inner_width))

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        """Some of them; the last where not all fit, for there is the text."""
        lines = self._lines(width)
        return lines[max(0, len(lines) - count) :]

    @property
    def own_keys(self) -> Sequence[KeyRow]:
        """Enter, beside the keys of any line."""
        return [KeyRow("open", self._does, self._does.capitalize()), *LINE_KEYS]

    @property
    def leave_key(self) -> KeyRow:
        """Nothing comes of it."""
        return BACK

    def press(self, key: str, character: str | None) -> str:
        """Types, or answers."""
        if key == "escape":
            self.is_open = False
        elif key == "enter":
            self._wrong = self._answered(self.editor.text)
            self.is_open = bool(self._wrong)
        elif not self.editor.press(key, character) and character:
            self.editor.paste(character)
        return ""

    def _lines(self, width: int) -> list[AnyLine]:
        glyphs = self.look.glyphs
        above = [line for words in self._explanation for line in Pen(width, glyphs).wrap(words, "dim")]
        above += Pen(width, glyphs).wrap(self._foretold, "text") if self._foretold else []
        below = Pen(width, glyphs).wrap(self._wrong, "warn") if self._wrong else [Pen(width, glyphs).fit([])]
        return [*map(on_panel, above), self._typed(width), *map(on_panel, below)]

    def _typed(self, width: int) -> AnyLine:
        """The text with the cursor in it; of a long one the part before the cursor, and what fits of the rest."""
        text, cursor = self.editor.text, self.editor.cursor
        parts = text[:cursor], text[cursor : cursor + 1], text[cursor + 1 :]
        before, under, after = (clean(part, self.look.glyphs.is_ascii) for part in parts)
        room = max(1, width - 4)
        before = before[max(0, len(before) - room) :]
        after = after[: room - len(before)]
        marked: AnySpan = (under, "panel.cursor") if under else ("_", "panel.key")
        blank = " " * (room - len(before) - len(after))
        return ((" > ", "panel.key"), (before, "panel"), marked, (after + blank, "panel"))
