"""Esc closes one thing at a time, the last first; what was set stays; keys wait for a page that is still being read."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
from textual.pilot import Pilot

from tests.support.app.scene import after, press, scene
from tests.support.app.stage import ReadyPages, frame, make_app, ops_tab, settled, until
from tests.support.made.pages import serving_overview, training_overview
from tests.tui.pages.ops.test_view import table
from tpuprof.parsers.pages.shared.key import PageKey
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.pages.ops.view import FRAMEWORK, HLO, TREE

Page = TypeVar("Page")
AT_THE_BOTTOM = "Nothing is open; q quits."

OPENED: dict[str, list[str]] = {
    "latencies": ["v"],
    "search": ["slash", *"dot", "enter"],
    "same op in the tree": ["3", "v", "j", "o"],
    "filter of ops": ["3", "v", "slash", *"fusion", "enter"],
    "group of ops": ["3", "v", "b", "enter"],
    "search of the tree": ["3", "slash", *"fusion", "enter"],
    "filter of tracks": ["4", "F", *"xla", "enter"],
    "mark of time": ["4", "j", "j", "space"],
    "search of events": ["4", "slash", *"fusion", "enter", "enter"],
    "filter of buffers": ["5", "slash", *"adam", "enter"],
    "group of buffers": ["5", "b", "enter"],
    "map": ["5", "v", "v"],
}
"""What one thing opens on each tab."""


@pytest.mark.parametrize("name", OPENED)
async def test_esc_closes_what_is_open_and_stays_on_the_tab(name: str) -> None:
    keys, page = OPENED[name], serving_overview() if name == "latencies" else training_overview()
    async with scene(make_app(ReadyPages(page)), keys) as (app, pilot):
        tab = app.main.tab_name
        assert app.main.tab.opened or app.main.searches.is_searched, "it is open"
        shown = await after(pilot, "escape")
        assert app.main.tab_name == tab and AT_THE_BOTTOM not in shown
        assert not app.main.searches.is_searched and not set(app.main.tab.opened) - {"group"}
        for _ in range(3):  # of a group that was opened only the rows by group are left
            shown = await after(pilot, "escape")
        assert app.main.tab_name == tab and AT_THE_BOTTOM in shown


async def test_what_was_opened_last_is_closed_first() -> None:
    async with scene(keys=["3", "v", "v", "o", "slash", *"fusion", "enter", "j", "enter"]) as (app, pilot):
        view = table(app)
        assert app.main.popup is not None
        await press(pilot, "escape")
        assert app.main.popup is None and view.listing.words == "fusion"
        await press(pilot, "escape")
        assert view.listing.words == "" and ops_tab(app).at == HLO
        await press(pilot, "slash", *"dot", "enter", "escape", "escape")
        assert ops_tab(app).at == FRAMEWORK


async def test_giving_up_what_is_typed_leaves_what_was_searched_for_before() -> None:
    async with scene(keys=["3", "v", "slash", *"fusion", "enter"]) as (app, pilot):
        view = table(app)
        rows = len(view.rows)
        assert "no row" in await after(pilot, "slash", *"zzz", "enter")
        assert len(view.rows) == rows, "what matches none leaves the rows, and what is typed"
        await press(pilot, "escape")
        assert len(view.rows) == rows and view.listing.words == "fusion"


@pytest.mark.parametrize("away", [["O", "escape"], ["4", "3"], ["tab", "shift+tab"], ["enter", "escape"]])
async def test_filter_order_group_and_cursor_stay(away: Sequence[str]) -> None:
    async with scene(keys=["3", "v", "S", "slash", *"fusion", "enter", "j", "j", "j"]) as (app, pilot):
        view = table(app)
        before = view.listing, view.rows.tolist()
        assert before[0].words == "fusion" and before[0].is_reversed and before[0].cursor == 3
        await press(pilot, *away)
        assert app.main.tab_name == "op-profile" and ops_tab(app).view is view
        assert (view.listing, view.rows.tolist()) == before


# --- typed ahead


class SlowPages(ReadyPages):
    """Pages that are read when that is allowed."""

    def __init__(self) -> None:
        super().__init__(training_overview())
        self.allowed = threading.Event()

    def page(self, key: PageKey[Page], host: str | None = None) -> Page:
        """A page, once that is allowed."""
        assert self.allowed.wait(20)
        return super().page(key, host)


@asynccontextmanager
async def typed_ahead(*keys: str, shown: str, tab: str) -> AsyncIterator[tuple[TpuprofApp, Pilot[None]]]:
    """The app once a page is read, of which keys came before and some words were on the screen then."""
    pages = SlowPages()
    app = make_app(pages)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.tabs["memory"] is not app.main.tabs["overview"])
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        assert shown in frame(app) and app.main.current_run.is_loading
        pages.allowed.set()
        await until(pilot, lambda: app.main.tabs[tab].is_ready)
        await settled(pilot)
        yield app, pilot


KEPT = "Kept until the page is read: "


async def test_keys_typed_ahead_of_a_page_are_done_when_it_is_there() -> None:
    keys = ("3", "v", "slash", *"fusion4", "backspace", "enter", "j")
    async with typed_ahead(*keys, shown=KEPT, tab="op-profile") as (app, _):
        listing = table(app).listing
        assert app.main.tab_name == "op-profile"
        assert listing.words == "fusion" and listing.cursor == 1, "digits were typed, too"


async def test_keys_of_another_tab_wait_for_that_tab_alone() -> None:
    async with typed_ahead("3", "v", "1", "j", shown=KEPT, tab="overview") as (app, pilot):
        assert app.main.tab_name == "overview" and ops_tab(app).at == TREE
        await press(pilot, "3")
        assert ops_tab(app).at == HLO


async def test_esc_forgets_what_was_typed_ahead() -> None:
    async with typed_ahead("3", "v", "escape", shown="forgotten", tab="op-profile") as (app, _):
        assert ops_tab(app).at == TREE
