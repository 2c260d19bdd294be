"""A line that is typed into, and a panel that asks for one.

A `LineEditor` takes the keys of Textual's `Input`, and is none, for two reasons. Textual gives a key to the widget that
has the focus when the key is read, and the focus moves only when an earlier key has been handled: of keys that come at
once, as in a paste, those behind ``/`` would still be commands, and ``/q`` would quit. And an `Input` writes 170 to 190
bytes to the terminal for each character that is typed (120 columns, 256 colours, without blinking), where the footer's
prompt writes 100 and the question 145.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tpuprof.tui.draw.pen import Pen, clean
from tpuprof.tui.terminal.theme import AnyLine, AnySpan
from tpuprof.tui.widgets.chrome import KeyRow
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.popup import BACK, Lines, Popup, meanings, on_panel

LONGEST = 4000  # most characters of a line
MOST_HISTORY = 100  # lines that are kept
LINE_KEYS = (
    KeyRow("ctrl+a ctrl+e", title="To the start, the end of the line"),
    KeyRow("ctrl+w ctrl+u ctrl+k", title="Delete the word before, everything before, everything after the cursor"),
    KeyRow("Up Down", title="An earlier line, a later one"),
)
"""What help says of any line; a prompt has completion on the key of tabs besides."""
_WORD_BEHIND = re.compile(r"\s*[^\s]*")

Complete = Callable[[str], Sequence[str]]
"""Given the word before the cursor, the words that it may become."""


class LineEditor:
    """Takes keys into a line of text; whoever owns it draws it.

    Attributes:
        cursor: index of the character under the cursor, up to one past the last.
        offered: what the word before the cursor may become, after the key that completes it.

    Args:
        history: earlier lines, the latest last; of a list's filter, where up and down move over its rows, None.
        complete: what completes a word.
    """

    def __init__(self, text: str = "", history: Sequence[str] | None = None, complete: Complete = lambda _: ()) -> None:
        self.text = text
        self.cursor = len(text)
        self.offered: Sequence[str] = ()
        self._history, self._at = history, 0 if history is None else len(history)
        self._draft = text
        self._complete = complete

    def press(self, key: str, character: str | None) -> bool:
        """One key; False where it means nothing here."""
        self.offered, act = (), _EDITS.get(key)
        if act is not None:
            act(self)
        elif self._history is not None and key in ("up", "down", "ctrl+p", "ctrl+n"):
            self._recall(-1 if key in ("up", "ctrl+p") else 1)
        elif self._history is not None and key in ("home", "end"):
            self.cursor = 0 if key == "home" else len(self.text)
        elif key == "tab":
            self.complete()
        elif character and character.isprintable():
            self.paste(character)
        else:
            return False
        return True

    def paste(self, text: str) -> None:
        """Puts a text in at the cursor, on one line: what can't be printed becomes a space."""
        line = "".join(character if character.isprintable() else " " for character in text.strip("\r\n"))
        self.replace(self.cursor, self.cursor, line[: LONGEST - len(self.text)])

    def replace(self, first: int, end: int, text: str) -> None:
        """Puts a text in the place of some characters, and the cursor behind it."""
        self.text = self.text[:first] + text + self.text[end:]
        self.cursor = first + len(text)

    def complete(self) -> None:
        """Makes the word before the cursor as long as all that it may become agree; offers these where they differ."""
        begin = max(self.text.rfind(" ", 0, self.cursor), self.text.rfind("!", 0, self.cursor)) + 1
        words = self._complete(self.text[begin : self.cursor])
        if words:
            common = common_prefix(words)
            self.replace(begin, self.cursor, common if len(common) >= self.cursor - begin else words[0])
        self.offered = words if len(words) > 1 else ()

    def _recall(self, by: int) -> None:
        history = self._history or ()
        if self._at == len(history):
            self._draft = self.text
        self._at = max(0, min(self._at + by, len(history)))
        self.text = history[self._at] if self._at < len(history) else self._draft
        self.cursor = len(self.text)

    @property
    def word_before(self) -> int:
        return self.text[: self.cursor].rstrip().rfind(" ") + 1

    @property
    def word_behind(self) -> int:
        found = _WORD_BEHIND.match(self.text, self.cursor)
        return self.cursor if found is None else found.end()

    def to(self, cursor: int) -> None:
        self.cursor = max(0, min(cursor, len(self.text)))


def common_prefix(words: Sequence[str]) -> str:
    """What all of some words begin with."""
    first, last = min(words), max(words)
    return first[: next((at for at, letter in enumerate(first) if last[at : at + 1] != letter), len(first))]


def remembered(history: list[str], line: str) -> None:
    """Puts a line at the end of a history, once."""
    if line in history:
        history.remove(line)
    if line:
        history.append(line)
    del history[:-MOST_HISTORY]


_Edit = Callable[[LineEditor], object]
_EDITS: dict[str, _Edit] = {
    **dict.fromkeys(("left", "ctrl+b"), lambda line: line.to(line.cursor - 1)),
    **dict.fromkeys(("right", "ctrl+f"), lambda line: line.to(line.cursor + 1)),
    **dict.fromkeys(("ctrl+left", "alt+b"), lambda line: line.to(line.word_before)),
    **dict.fromkeys(("ctrl+right", "alt+f"), lambda line: line.to(line.word_behind)),
    "ctrl+a": lambda line: line.to(0),
    "ctrl+e": lambda line: line.to(len(line.text)),
    **dict.fromkeys(("backspace", "ctrl+h"), lambda line: line.replace(max(0, line.cursor - 1), line.cursor, "")),
    **dict.fromkeys(("delete", "ctrl+d"), lambda line: _forwards(line, line.cursor + 1)),
    **dict.fromkeys(("ctrl+w", "alt+backspace"), lambda line: line.replace(line.word_before, line.cursor, "")),
    "ctrl+u": lambda line: line.replace(0, line.cursor, ""),
    "ctrl+k": lambda line: _forwards(line, len(line.text)),
}
"""The keys of any line, as Textual's `Input` and every shell have them."""


def _forwards(line: LineEditor, end: int) -> None:
    """Deletes from the cursor on; it stays."""
    line.replace(line.cursor, end, "")


TABLE_WORDS = (
    "The end of the name chooses the format: .csv, .json, .md the table as it is filtered and sorted; .svg, .html, "
    ".txt the screen.",
)
SCREEN_WORDS = ("It never overwrites a file, and writes nothing among profiles.",)
ABOUT_EXPORT = meanings(
    ("", "Writes what is shown to a file; the end of its name chooses the format."),
    (".csv .json", "the rows that show, in their order, with the keys and units of `report`."),
    (".md", "the same as a Markdown table."),
    (".svg .html", "the screen with its colours; .txt without."),
    ("where", "in the working folder, or in a folder of this program if the working folder has profiles."),
)


class PromptPopup(Popup):
    """Asks for a line of text.

    Args:
        explanation, text: what may be typed, a paragraph each, and what stands there at first.
        answered: called with the text when Enter is pressed; answers what is wrong with it, or nothing.
        about: what comes of it, for its help.
        foretold: what Enter will do, a sentence below the explanation.
        does: the same in a word, for the footer.
        history: earlier answers, to which this one is added.

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
        does: str = "begin",
        history: list[str] | None = None,
    ) -> None:
        super().__init__(look, title, about)
        self._history = [] if history is None else history
        self.editor = LineEditor(text, self._history)
        self._does = does
        self._explanation = tuple(explanation)
        self._foretold = foretold
        self._answered = answered
        self._wrong = ""

    def row_count(self) -> int:
        return len(self._lines(self.inner_width))

    def rows(self, first: int, count: int, width: int) -> list[AnyLine]:
        lines = self._lines(width)
        return lines[max(0, len(lines) - count) :]

    @property
    def own_keys(self) -> Sequence[KeyRow]:
        return [KeyRow("open", self._does, self._does.capitalize()), *LINE_KEYS]

    @property
    def leave_key(self) -> KeyRow:
        return BACK

    def press(self, key: str, character: str | None) -> str:
        if key == "escape":
            self.is_open = False
        elif key == "enter":
            self._wrong = self._answered(self.editor.text)
            remembered(self._history, self.editor.text)
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
