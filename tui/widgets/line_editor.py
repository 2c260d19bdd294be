"""One line of text that is typed into: the prompts in the footer, and the question above the page.

It is no `Input` of Textual's, for two reasons. Textual gives a key to the widget that has the focus when the key is
read, and the focus moves only when an earlier key has been handled: of keys that come at once, as in a paste, those
behind ``/`` would still be commands, and ``/q`` would quit. And an `Input` writes 170 to 190 bytes to the terminal for
each character that is typed (120 columns, 256 colours, without blinking), where the footer's prompt writes 100 and the
question 145.
"""

from __future__ import annotations

LONGEST = 4000
"""Most characters of a line."""

_STEPS = {"left": -1, "right": 1, "home": -LONGEST, "ctrl+a": -LONGEST, "end": LONGEST, "ctrl+e": LONGEST}
"""Keys and by how many characters they move the cursor."""


class LineEditor:
    """Takes keys into a line of text; whoever owns it draws it.

    Args:
        moves: whether keys move the cursor; without, it stays behind the last character.

    Attributes:
        text, cursor: what is typed, and the index of the character under the cursor, up to one past the last.
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
