"""The footer has whole words, and of the keys those that come first."""

from __future__ import annotations

import pytest

from tests.support.app.scene import scene
from tests.support.app.stage import make_demo_app
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import as_many, message_line

TABS_AND_VIEWS = [("1",), ("1", "v"), ("2",), ("3",), ("3", "v"), ("3", "v", "v"), ("4",), ("5",), ("5", "v")]


def text_of(line: AnyLine) -> str:
    return "".join(text for text, _ in line)


@pytest.mark.parametrize("keys", TABS_AND_VIEWS, ids="".join)
async def test_what_does_not_fit_is_left_out_whole(keys: tuple[str, ...]) -> None:
    async with scene(make_demo_app(), keys) as (app, _):
        every = text_of(app.main.foot_line(400)).split("  ")
        every = [pair.strip() for pair in every if pair.strip()]
        for width in (60, 80, 100):
            line = text_of(app.main.foot_line(width))
            shown = [pair.strip() for pair in line.split("  ") if pair.strip()]
            assert len(line) == width and shown[-2:] == every[-2:], "help and the way out show in any case"
            assert shown[:-2] == every[: len(shown) - 2] and len(shown) > 3, "pairs of a key and what it does, in order"


def test_a_sentence_of_the_last_line_is_cut_between_words() -> None:
    pen = Pen(24, BLOCK)
    assert (
        text_of(message_line("A sentence of several long words", pen)).rstrip()
        == f" A sentence of several{BLOCK.ellipsis}"
    )
    assert text_of(message_line("Wrote /a/path/of/many/folders/and/a/file.csv", pen)).rstrip().endswith("a/file.csv")
    assert as_many(["one", "two", "three"], 8) == "one  two" and not as_many(["three"], 4)
