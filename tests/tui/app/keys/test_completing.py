"""In every list that is filtered or searched Tab completes a word, and words that no row has name the nearest."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.parsers.session.diff.build import MS, diff_of, layers
from tests.support.app.scene import after, press, scene
from tests.support.app.stage import ENVIRONMENT, LOOK, demo_session, make_demo_app
from tests.support.app.stand import on_stand
from tests.support.made.oom import made_up_triage
from tests.tui.app.test_popups import held_arrays
from tpuprof.parsers.pages.graph.programs import GRAPHS
from tpuprof.tui.pages.commands.diff.screen import DiffScreen
from tpuprof.tui.pages.commands.live_arrays.screen import LiveArraysScreen
from tpuprof.tui.pages.commands.oom.screen import TriageScreen
from tpuprof.tui.pages.graph.screen import GraphScreen
from tpuprof.tui.widgets.lists.screen import PageScreen
from tpuprof.tui.widgets.screen import AppScreen
from tpuprof.tui.widgets.tab import Jump

OF_TABS = {
    "overview": ("1",),
    "input": ("2",),
    "op profile": ("3",),
    "ops": ("3", "v"),
    "timeline": ("4",),
    "buffers": ("5",),
    "allocators": ("5", "v"),
}


def mistyped(word: str) -> str:
    """The word with its last two letters the other way round, or another one behind it."""
    return word[:-2] + word[-1] + word[-2] if word[-1] != word[-2] else f"{word}x"


async def completes_and_names_the_nearest(screen: AppScreen, pilot: Pilot[None], word: str) -> None:
    """Types into the prompt that is open: the begin of a word and the key that completes it, then a mistyped word."""
    await press(pilot, *word[:3], "tab")
    assert screen.prompt is not None
    assert screen.prompt.text != word[:3] or len(screen.prompt.offered) > 1, "it is longer, or several are offered"
    await press(pilot, "ctrl+u", *mistyped(word), "enter")
    assert screen.prompt is not None, "Enter does not keep what finds nothing"
    assert screen.matches.startswith("no row; ") and screen.matches.endswith(" has some"), screen.matches
    near = screen.matches.removeprefix("no row; ").removesuffix(" has some")
    await press(pilot, "ctrl+u", *near)
    assert screen.matches and not screen.matches.startswith("no "), "what it names has rows"


def a_word(screen: AppScreen) -> str:
    """A word of the rows that the prompt completes."""
    begins = (word for letter in "acdefgilmnoprst" for word in screen.words_for(letter))
    return next(word for word in begins if len(word) > 4 and word.isalpha())


@pytest.mark.parametrize("name", OF_TABS)
async def test_of_every_tab(name: str) -> None:
    async with scene(make_demo_app(), [*OF_TABS[name], "slash"]) as (app, pilot):
        has_columns = name in ("op profile", "ops")  # whose keys come before the words of rows
        await completes_and_names_the_nearest(app.main, pilot, "convolution" if has_columns else a_word(app.main))


def screens(tmp_path: Path) -> dict[str, PageScreen]:
    graph = (demo_session().page(GRAPHS), Jump("graph"), None)
    of_diff = diff_of(tmp_path, layers(4, MS), layers(4, 2 * MS))
    return {
        "oom": TriageScreen((made_up_triage(),), LOOK, environ=ENVIRONMENT),
        "diff": DiffScreen(of_diff, LOOK, environ=ENVIRONMENT),
        "graph": GraphScreen(graph, LOOK, environ=ENVIRONMENT),
        "live arrays": LiveArraysScreen(held_arrays(), LOOK, environ=ENVIRONMENT),
    }


@pytest.mark.parametrize("name", ["oom", "diff", "graph", "live arrays"])
async def test_of_every_screen(name: str, tmp_path: Path) -> None:
    screen = screens(tmp_path)[name]
    async with on_stand(screen) as (_, pilot):
        await press(pilot, "slash")
        word = a_word(screen)
        await completes_and_names_the_nearest(screen, pilot, word)


async def test_of_lists_above_a_page() -> None:
    async with scene(keys=["R", "slash"]) as (_, pilot):
        assert "/train_" in await after(pilot, *"tr", "tab"), "as far as all of them agree"
        assert "no row; train_b has some" in await after(pilot, "ctrl+u", *"trian_b")
