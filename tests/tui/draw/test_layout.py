"""Labels before their values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tpuprof.tui.draw.pen import Pen, cut_words, label_span
from tpuprof.tui.draw.spans import ASCII, BLOCK, Glyphs, line_width, plain

NAMES = st.text("abc -", min_size=1, max_size=60).map(str.strip).filter(bool)


@given(st.lists(NAMES, min_size=1, max_size=5), st.integers(30, 120), st.sampled_from([BLOCK, ASCII]))
def test_no_label_touches_its_value(names: list[str], width: int, glyphs: Glyphs) -> None:
    for label_width in (4, 16, 22, 26):
        lines = Pen(width, glyphs).labelled([(name, "0") for name in names], label_width)
        for line in lines:
            assert line_width(line) == width
        text = "".join(plain(line) for line in lines)
        for name in names:
            assert len(name) >= width - 2 or f"{name} " in text


@given(NAMES, st.integers(1, 30))
def test_a_label_ends_with_a_blank_and_fills_its_column(name: str, width: int) -> None:
    text, _ = label_span(name, width)
    assert text.rstrip() == name and text.endswith(" ") and len(text) == max(width, len(name) + 1)


def test_a_long_label_makes_room_for_itself_and_the_others() -> None:
    rows = [("idle", "5 ms"), ("waiting for SparseCore", "0")]
    assert [plain(line).rstrip() for line in Pen(60, BLOCK).labelled(rows)] == [
        "idle                   5 ms",
        "waiting for SparseCore 0",
    ]


@given(st.lists(st.text("ab1,.%", min_size=1, max_size=9), min_size=1, max_size=9), st.integers(24, 60))
def test_a_text_is_cut_after_a_word(words: list[str], cells: int) -> None:
    shown = cut_words(" ".join(words), cells, BLOCK)
    assert len(shown) <= cells
    kept = shown.removesuffix("…").split()
    expected = [word.rstrip(".,") if place == len(kept) - 1 else word for place, word in enumerate(words[: len(kept)])]
    assert kept in (words[: len(kept)], expected) and (len(kept) == len(words) or shown.endswith("…"))
    assert len(kept) == len(words) or not shown[-2].isdigit(), "no number looks cut"
    assert len(kept) == len(words) or len(shown) + len(words[len(kept)]) >= cells - 1, "what fits is kept"


def test_a_word_that_is_too_long_is_cut() -> None:
    assert cut_words("see transpose(jvp(layers))/while/body", 30, BLOCK) == "see transpose(jvp(layers))/wh…"
