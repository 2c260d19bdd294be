"""A panel with one line to type into."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tpuprof.tui.draw.layout import clean, fit, wrap
from tpuprof.tui.terminal.theme import AnyLine, AnySpan
from tpuprof.tui.widgets.line_canvas import Look
from tpuprof.tui.widgets.popup import Popup, on_panel

LONGEST = 4000
"""Most characters of an answer."""

_STEPS = {
    "left": -1,
    "right": 1,
    "home": -LONGEST,
    "ctrl+a": -LONGEST,
    "end": LONGEST,
    "ctrl+e": LONGEST,
}
"""Keys and by how many characters they move the cursor."""


class Asker(Popup):
    """Asks for a line of text.

    Args:
        explanation: what may be typed, a paragraph each.
        text: what stands there at first.
        answered: called with the text when Enter is pressed; answers what is wrong with it, or nothing.
        foretold: what Enter will do, a sentence below the explanation.

    Attributes:
        text: what is typed.
        at: the character under the cursor, up to one past the last.
    """

    def __init__(
        self,
        look: Look,
        title: str,
        explanation: Sequence[str],
        text: str,
        answered: Callable[[str], str],
        foretold: str = "",
    ) -> None:
        super().__init__(look, title)
        self.text = text
        self.at = len(text)
        self._explanation = tuple(explanation)
        self._foretold = foretold
        self._answered = answered
        self._wrong = ""

    @property
    def is_typing(self) -> bool:
        """Always."""
        return True

    def row_count(self) -> int:
        """Lines of the explanation, the text and what is wrong with it."""
        return len(self._lines(self.inner_width))

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        """Some of them; the last where not all fit, for there is the text."""
        lines = self._lines(width)
        return lines[max(0, len(lines) - count) :]

    def foot(self) -> str:
        """The keys."""
        return "Enter begins   Esc back"

    def press(self, key: str, character: str | None) -> None:
        """Types, or answers."""
        if key == "escape":
            self.is_open = False
        elif key == "enter":
            self._wrong = self._answered(self.text)
            self.is_open = bool(self._wrong)
        elif key in _STEPS:
            self.at = max(0, min(len(self.text), self.at + _STEPS[key]))
        elif key == "backspace":
            self._replace(max(0, self.at - 1), self.at, "")
        elif key == "delete":
            self._replace(self.at, self.at + 1, "")
        elif key == "ctrl+u":
            self._replace(0, len(self.text), "")
        elif character is not None:
            self.paste(character)

    def paste(self, text: str) -> None:
        """Puts a text in at the cursor, on one line: what can't be printed becomes a space."""
        line = "".join(character if character.isprintable() else " " for character in text.strip("\r\n"))
        self._replace(self.at, self.at, line[: LONGEST - len(self.text)])

    def _replace(self, first: int, end: int, text: str) -> None:
        """Puts a text in the place of some characters, and the cursor behind it."""
        self.text = self.text[:first] + text + self.text[end:]
        self.at = first + len(text)

    def _lines(self, width: int) -> list[AnyLine]:
        glyphs = self.look.glyphs
        lines = [on_panel(line) for words in self._explanation for line in wrap(words, width, "dim", glyphs)]
        lines += [on_panel(line) for line in wrap(self._foretold, width, "text", glyphs)] if self._foretold else []
        lines.append(self._typed(width))
        lines += (
            [on_panel(line) for line in wrap(self._wrong, width, "warn", glyphs)]
            if self._wrong
            else [on_panel(fit([], width, glyphs))]
        )
        return lines

    def _typed(self, width: int) -> AnyLine:
        """The text with the cursor in it; of a long one the part before the cursor, and what fits of the rest."""
        before, under, after = (
            clean(part, self.look.glyphs.name == "ascii")
            for part in (self.text[: self.at], self.text[self.at : self.at + 1], self.text[self.at + 1 :])
        )
        room = max(1, width - 4)
        before = before[max(0, len(before) - room) :]
        after = after[: room - len(before)]
        cursor: AnySpan = (under, "panel.cursor") if under else ("_", "panel.key")
        blank = " " * (room - len(before) - len(after))
        return ((" > ", "panel.key"), (before, "panel"), cursor, (after + blank, "panel"))
