"""What the wire carries draws the screen that whole frames draw, in a terminal emulator, and no more than that."""

from __future__ import annotations

import re

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import get_character_cell_size

from tests import EXAMPLES
from tpuprof.tui.terminal.wire import SYNC_END, SYNC_START, Wire

WIDTH, HEIGHT = 18, 5
_STYLES = (
    *("0", "1", "2", "3", "4", "7", "9", "31", "1;97", "44", "7;31;44", "38;5;252;48;5;233", "1;38;5;74;48;5;233"),
    *("4;38;5;74;48;5;237", "38;2;1;2;3;48;2;4;5;6", "1;2;38;2;1;2;3;48;2;9;9;9", "107", "2;95"),
)
_TEXTS = st.just(" ").map(lambda blank: blank * 15) | st.text(
    st.sampled_from("ab ─█▏ñ    "), min_size=1, max_size=WIDTH
)
_WIDE = st.sampled_from(("漢", "a漢字", "🙂", "e\u0301x"))
_SILENT = (
    "\x1b]52;c;YWI=\x07",
    "\x07",
    "\x1b[?1000h",
    "\x1b[?2026$p",
    "\x1b[>1u",
    "\x1b[<u",
    "\x1b]0;title\x1b\\",
    "\x1b[6n",
)
_UNREAD = (
    "\x1b[2J",
    "\x1b[K",
    "\x1b[3;4r\x1b[r",
    "\x1b[4:3m",
    "\r",
    "\x1b[2;2f",
    "\x1b(0\x1b(B",
    "\x1b[?1049h",
    "\x1b[99;99H",
    "\x1b[58;5;1m",
)


@st.composite
def _segments(draw: st.DrawFn, texts: st.SearchStrategy[str] = _TEXTS) -> str:
    """Pieces of text from some cell on, each in a look of its own, within their row."""
    x, y = draw(st.integers(0, WIDTH - 1)), draw(st.integers(0, HEIGHT - 1))
    out, room = f"\x1b[{y + 1};{x + 1}H", WIDTH - x
    for style, text in draw(st.lists(st.tuples(st.sampled_from(_STYLES), texts), min_size=1, max_size=4)):
        fits = text
        while sum(map(get_character_cell_size, fits)) > room:
            fits = fits[:-1]
        room -= sum(map(get_character_cell_size, fits))
        out += f"\x1b[{style}m{fits}\x1b[0m" if fits else ""
    return out + ("\n" if y < HEIGHT - 1 and draw(st.booleans()) else "")


_WRITES = st.lists(
    st.lists(st.one_of(_segments(), _segments(), _segments(), st.sampled_from(_SILENT)), max_size=8).map("".join),
    max_size=8,
)


class Emulator:
    """A terminal, as it is seen."""

    def __init__(self) -> None:
        self.screen = pyte.Screen(WIDTH, HEIGHT)
        self.screen.reset_mode(pyte.modes.DECAWM)  # as Textual does
        self.stream = pyte.Stream(self.screen)

    def feed(self, text: str) -> None:
        """Takes a text, of which the terminal's driver makes a line feed two characters, as it does for Textual."""
        # pyte takes the end of these for text, or stumbles over them
        known = re.sub(
            r"\x1b\[[<>=]\d*u|\x1b\[\?\d+\$p|\x1b\[\d*n|\x1b\[[0-9]*;?[0-9]*r|\x1b\[58;5;1m|\x1b\[4:3m", "", text
        )
        self.stream.feed(known.replace("\n", "\r\n"))

    @property
    def cells(self) -> list[list[tuple[object, ...]]]:
        """Each cell as it looks: ink and boldness of a blank are not seen."""
        return [[_seen(self.screen.buffer[y][x]) for x in range(WIDTH)] for y in range(HEIGHT)]


def _seen(cell: pyte.screens.Char) -> tuple[object, ...]:
    if cell.data == " " and not (cell.reverse or cell.underscore or cell.strikethrough or cell.blink):
        return (" ", cell.bg)
    return tuple(cell)


def _check(writes: list[str], erases: bool) -> None:
    whole, thrifty, wire = Emulator(), Emulator(), Wire(WIDTH, HEIGHT, get_character_cell_size, erases)
    for data in writes:
        whole.feed(data)
        thrifty.feed(wire.sent(data))
        assert thrifty.cells == whole.cells


@given(_WRITES, st.booleans())
@settings(max_examples=2 * EXAMPLES, deadline=None)
def test_the_screen_is_that_of_whole_writes(writes: list[str], erases: bool) -> None:
    _check(writes, erases)


@given(
    st.lists(
        st.lists(
            st.one_of(_segments(), _segments(), st.sampled_from((*_SILENT, *_UNREAD)), _segments(_WIDE)), max_size=6
        ).map("".join),
        max_size=6,
    )
)
@settings(max_examples=2 * EXAMPLES, deadline=None)
def test_so_it_is_after_what_can_not_be_read_and_with_wide_characters(writes: list[str]) -> None:
    _check(writes, False)


@given(_WRITES, st.integers(0, 7))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_terminal_that_was_cleared_gets_what_is_written_whole(writes: list[str], at: int) -> None:
    wire, thrifty, whole = Wire(WIDTH, HEIGHT, get_character_cell_size), Emulator(), Emulator()
    for place, data in enumerate(writes):
        if place == at:
            wire.resize(WIDTH, HEIGHT)
            thrifty, whole = Emulator(), Emulator()
        thrifty.feed(wire.sent(data))
        whole.feed(data)
        assert thrifty.cells == whole.cells


def _written(*rows: str, style: str = "38;5;252;48;5;233") -> str:
    return (
        "\n".join(f"\x1b[{y + 1};1H\x1b[{style}m{row.ljust(WIDTH)}\x1b[0m" for y, row in enumerate(rows)) + "\x1b[1;1H"
    )


def _wire(*rows: str) -> Wire:
    wire = Wire(WIDTH, HEIGHT, get_character_cell_size)
    wire.sent(_written(*rows))
    return wire


def test_a_cell_that_changed_goes_alone() -> None:
    wire = _wire("one", "two", "three")
    assert wire.sent(_written("one", "twO", "three")) == "\x1b[2;3HO", "its look is the one that was written last"
    assert wire.sent(_written("one", "twO", "three")) == ""
    assert wire.sent(_written("one", "twOs", "three")) == "s", "the cursor stands there"
    assert wire.sent(_written("one", "twOs", "shree")) == "\r\vs", "a line feed a terminal may take to the left"


def test_an_update_that_changes_nothing_is_not_begun() -> None:
    wire = _wire("one")
    assert [wire.sent(data) for data in (SYNC_START, _written("one"), SYNC_END)] == ["", "", ""]
    assert [wire.sent(data) for data in (SYNC_START, _written("onE"), SYNC_END)] == [
        "",
        f"{SYNC_START}\r\x1b[2CE",
        SYNC_END,
    ]


def test_only_what_changes_of_a_look_is_set() -> None:
    wire = _wire("one")
    assert wire.sent(_written("one", style="1;38;5;252;48;5;233")) == "\r\x1b[1mone"
    assert wire.sent(_written("one", style="38;5;74;48;5;233")) == "\r\x1b[22;38;5;74mone", "its blanks look the same"
    assert wire.sent(_written("one", style="0")) == "\r\x1b[mone\x1b[K"


@pytest.mark.parametrize("data", _SILENT)
def test_what_draws_nothing_passes(data: str) -> None:
    wire = _wire("one")
    assert wire.sent(data) == data
    assert wire.sent(_written("one")) == "", "the screen is still known"


@pytest.mark.parametrize("data", _UNREAD)
def test_what_is_not_known_passes_and_the_next_frame_is_whole(data: str) -> None:
    wire = _wire("one")
    assert data in wire.sent(data)
    assert "one" in wire.sent(_written("one"))
