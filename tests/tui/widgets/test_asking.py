"""A line that is typed into: the keys of every line, its history and what completes it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.widgets.asking import MOST_HISTORY, LineEditor, common_prefix, remembered
from tpuprof.tui.widgets.chrome import prompt_line


def typed(*keys: str, text: str = "", history: Sequence[str] | None = (), words: Sequence[str] = ()) -> LineEditor:
    line = LineEditor(text, history, lambda begun: [word for word in words if word.startswith(begun)])
    for key in keys:
        line.press(key, key if len(key) == 1 else " " if key == "space" else None)
    return line


@pytest.mark.parametrize(
    ("keys", "text", "cursor"),
    [
        (["ctrl+a", "x"], "xone two", 1),
        (["ctrl+a", "ctrl+e", "x"], "one twox", 8),
        (["ctrl+w"], "one ", 4),
        (["ctrl+w", "ctrl+w"], "", 0),
        (["left", "left", "ctrl+u"], "wo", 0),
        (["ctrl+left", "ctrl+k"], "one ", 4),
        (["ctrl+a", "ctrl+right", "x"], "onex two", 4),
        (["home", "delete", "ctrl+d"], "e two", 0),
        (["alt+b", "alt+b", "alt+f", "backspace"], "on two", 2),
        (["ctrl+a", "left", "backspace", "end", "right"], "one two", 7),
        (["ctrl+a", "alt+backspace"], "one two", 0),
    ],
)
def test_the_keys_of_a_line(keys: list[str], text: str, cursor: int) -> None:
    line = typed(*keys, text="one two")
    assert (line.text, line.cursor) == (text, cursor)


def test_earlier_lines_come_back_and_what_was_begun_too() -> None:
    history = ["first", "second"]
    assert [typed(*["up"] * count, text="new", history=history).text for count in range(4)] == [
        *("new", "second", "first", "first"),
    ]
    assert typed("up", "up", "down", "down", text="new", history=history).text == "new"
    assert typed("ctrl+p", "!", history=history).text == "second!"
    line = typed(text="new", history=None)
    assert not line.press("up", None) and not line.press("home", None), "of a list they move over its rows"


def test_a_history_has_each_line_once_and_ends() -> None:
    lines: list[str] = []
    for text in ("a", "b", "a", ""):
        remembered(lines, text)
    assert lines == ["b", "a"]
    for number in range(2 * MOST_HISTORY):
        remembered(lines, str(number))
    assert len(lines) == MOST_HISTORY and lines[-1] == str(2 * MOST_HISTORY - 1)


def test_a_word_is_completed_as_far_as_all_agree() -> None:
    words = ["category", "cat:", "occurrences"]
    line = typed("x", "space", "c", "tab", words=words)
    assert line.text == "x cat" and list(line.offered) == ["category", "cat:"]
    assert typed("!", "o", "tab", words=words).text == "!occurrences"
    assert not line.press("tab", None) or line.text == "x cat"
    assert typed("z", "tab", words=words).text == "z"
    assert common_prefix(["one"]) == "one" and common_prefix(["ab", "ac", "a"]) == "a"


def test_the_prompt_shows_the_cursor_and_what_may_be_typed() -> None:
    def shown(text: str, cursor: int, width: int = 60) -> str:
        line = prompt_line(text, "3 rows", Pen(width, BLOCK), cursor, "fusion  >1ms")
        assert sum(len(part) for part, _ in line) == width
        return "".join(part for part, _ in line)

    assert shown("", 0).startswith(" /_ fusion  >1ms") and "fusion" not in shown("x", 1)
    assert shown("abc", 1).startswith(" /abc ") and shown("abc", 3).startswith(" /abc_")
    assert "…" in shown("a" * 200, 200) and "aaab" in shown("a" * 200 + "b" + "a" * 50, 201)
