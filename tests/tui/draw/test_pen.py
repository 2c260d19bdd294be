"""What a pen puts into lines is fit for cells, whatever the profile says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.tui.draw.pen import Pen, clean, cut, cut_begin, cut_middle
from tpuprof.tui.draw.spans import ASCII, BLOCK, Glyphs, Line, line_width, plain

EVIL = "\x1b]0;owned\x07\u202e\nevil\t\x9b31m\udcff日本\u0301é"
TEXTS = st.one_of(st.text(max_size=40), st.just(EVIL), st.text("ab\x1b\u202e\n─█…é\u0301日⣿µ", max_size=40))
SETS = st.sampled_from([BLOCK, ASCII])

DRAWN: dict[str, Callable[[Pen, str], list[Line]]] = {
    "fit": lambda pen, text: [pen.fit([(text, "text"), (text, "dim")])],
    "wrap": lambda pen, text: pen.wrap(text, "text", [(text[:4], "dim")]),
    "rule": lambda pen, text: [pen.rule(text), pen.rule(text, text)],
    "entry": lambda pen, text: pen.entry("label", text),
    "labelled": lambda pen, text: pen.labelled([(text[:8], text), ("label", text)]),
    "notes": lambda pen, text: pen.notes([text], [(text, text)]),
}


@pytest.mark.parametrize("name", DRAWN)
@given(TEXTS, st.integers(40, 90), SETS)
def test_whatever_goes_through_a_pen_is_fit_for_cells(name: str, text: str, width: int, glyphs: Glyphs) -> None:
    for line in DRAWN[name](Pen(width, glyphs), text):
        assert plain(line).isprintable() and line_width(line) == width
        assert plain(line).isascii() or not glyphs.is_ascii
        assert not set(plain(line)) & set("日本\u0301")


@given(TEXTS, st.integers(1, 50), SETS, st.sampled_from([cut, cut_begin, cut_middle]))
def test_what_is_cut_is_fit_for_cells(
    text: str, cells: int, glyphs: Glyphs, cut_it: Callable[[str, int, Glyphs], str]
) -> None:
    found = cut_it(text, cells, glyphs)
    assert len(found) <= cells and found.isprintable() and (found.isascii() or not glyphs.is_ascii)


@given(TEXTS, st.booleans())
def test_cleaning_twice_changes_nothing(text: str, ascii_only: bool) -> None:
    assert clean(clean(text, ascii_only), ascii_only) == clean(text, ascii_only)


def test_the_short_cut_is_for_characters_that_are_kept_anyway() -> None:
    for code in range(0x20, 0x3000):
        assert len(clean(chr(code))) != 1 or clean(f"日{chr(code)}") == f"?{clean(chr(code))}"
