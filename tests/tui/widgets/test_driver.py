"""What the bytes of a terminal mean, however they are cut and whatever they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.events import Event, Key, MouseEvent, Paste
from textual.message import Message

from tests.tui.terminal.pty.hostile import PIECES
from tpuprof.tui.widgets.driver import Background, Input


def said(messages: list[Message]) -> list[tuple[object, ...]]:
    """What of messages an app can see."""
    return [
        (message.key, message.character)
        if isinstance(message, Key)
        else ("paste", message.text)
        if isinstance(message, Paste)
        else (type(message).__name__, message.x, message.y, message.button)
        if isinstance(message, MouseEvent)
        else ("light" if message.is_light else "dark",)
        if isinstance(message, Background)
        else (type(message).__name__,)
        for message in messages
        if isinstance(message, (Event, Background))
    ]


def read(*parts: bytes) -> list[tuple[object, ...]]:
    of_terminal = Input()
    return said([message for part in parts for message in of_terminal.read(part)])


CLICK = [("MouseDown", 143.0, 4.0, 1), ("MouseUp", 143.0, 4.0, 1)]
MEANT = {
    "a letter in Latin-1": (b"\xe9a", [("replacement_character", "\ufffd"), ("a", "a")]),
    "a click far to the right, in the old form": (b"\x1b[M \xb0%\x1b[M#\xb0%", CLICK),
    "the same in the new form": (b"\x1b[<0;144;5M\x1b[<0;144;5m", CLICK),
    "a click beyond what a byte can say": (b"\x1b[M \x00%q", [("q", "q")]),
    "a paste with an escape sequence": (b"\x1b[200~\xe9\x1b[A\x1bQ\0\x1b[201~", [("paste", "\ufffd\x1b[A\x1bQ")]),
    "a sequence without an end": (b"\x1b[" + b"9" * 5000 + b"q\x1b[A", [("up", None)]),
    "answers to another program": (b"\x1b[>1;4000;30c\x1b[5;9R\x1b]11;rgb:1e1e/1e1e\x1b\\\x1bP1+r\x1b\\", []),
    "its background": (b"\x1b]11;rgb:ff/FF/d\x07\x1b]11;rgba:2e/1e/0/f\x1b\\", [("light",), ("dark",)]),
    "numbers that are none": (b"\x1b[1:2;3u\x1b[1;1;99999999999u\x1b[48;0;0;0;0t\x1b[A", [("up", None)]),
    "a sequence that another cuts off": (b"\x1b[12\x1b[A", [("up", None)]),
    "a key of the Linux console": (b"\x1b[[A", [("f1", None)]),
}


@pytest.mark.parametrize("what", MEANT)
def test_bytes_mean_what_a_terminal_means_by_them(what: str) -> None:
    data, expected = MEANT[what]
    assert read(data) == read(*(data[at : at + 1] for at in range(len(data)))) == expected


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=3), st.text(max_size=3).map(str.encode))))
def test_nothing_depends_on_where_the_bytes_are_cut(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    assert read(*parts) == read(whole)
    ends = b"\x1b[201~\x1b\\\x1b[A"
    assert read(whole + ends + "\x1b[Bé".encode())[-2:] == [("down", None), ("é", "é")]
