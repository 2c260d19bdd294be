"""The input pipeline tab by itself: what it shows, its cursors, its search, its details."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tests.support.app.stage import LOOK
from tests.support.made.input_pages import apart_page, input_bound_page, no_input_page
from tpuprof.tui.draw.columns import PanelItem
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK, plain
from tpuprof.tui.pages.input.view import InputPipelineTab
from tpuprof.tui.widgets.chrome import Searching, footer


class Stand(App[None]):
    """Nothing but the tab."""

    def compose(self) -> ComposeResult:
        yield InputPipelineTab(LOOK, id="input")


@asynccontextmanager
async def on_tab(width: int, height: int) -> AsyncIterator[tuple[InputPipelineTab, Pilot[None]]]:
    async with Stand().run_test(size=(width, height)) as pilot:
        yield pilot.app.query_one(InputPipelineTab), pilot


def shown(tab: InputPipelineTab) -> str:
    top = tab.scroll_offset.y
    lines = tab.lines[top : top + tab.size.height]
    return "\n".join("".join(text for text, _ in line) for line in lines)


async def test_states_and_pages_replace_each_other() -> None:
    async with on_tab(80, 21) as (tab, pilot):
        tab.show_state(Searching("~/logs"))
        await pilot.pause()
        assert "Looking for profiles" in shown(tab)
        assert not tab.has_page and tab.selection is None and tab.place is None
        tab.show("page", input_bound_page())
        await pilot.pause()
        assert tab.has_page and tab._page is not None
        assert "PARTLY INPUT-BOUND" in shown(tab)
        assert tab.selection == "Iterator::Root::Prefetch"
        assert [key for key, _ in footer(tab.keys)] == ["j k", "h l", "Enter", "i"]


async def test_the_notes_say_what_the_figures_are_of() -> None:
    async with on_tab(80, 21) as (tab, _):
        assert tab.verdict_lines(Pen(200, BLOCK)) == []
        tab.show("page", input_bound_page())
        said = "\n".join(plain(line) for line in tab.verdict_lines(Pen(200, BLOCK)))
        assert "Input wait is 16.4% of all step time" in said
        assert "self % adds up to 100% over the ops that make input" in said


async def test_the_cursors_move_over_ops_and_steps_and_stay_in_sight() -> None:
    async with on_tab(80, 21) as (tab, pilot):
        tab.show("page", input_bound_page())
        await pilot.pause()
        for _ in range(20):
            tab.move(0, 1)
        assert tab.place == PanelItem("ops", 7)
        assert tab.selection == "batched_device_put"
        await pilot.pause()
        assert f"{BLOCK.mark}batched_device_put" in shown(tab)
        tab.ends(-1)
        assert tab.place == PanelItem("ops", 0)
        tab.move(1, 0)
        assert tab.place == PanelItem("steps", 3)  # the one that waits most
        assert tab.selection == "103"
        tab.move(-1, 0)
        assert tab.selection == "102"
        assert "no core waits for input" in plain(tab.detail_line(80))  # type: ignore[arg-type]
        tab.ends(1)
        assert tab.selection == "105"
        assert tab.details is not None and tab.details[0] == "Step"
        await pilot.resize_terminal(120, 40)
        assert tab.selection == "105"


async def test_the_cursor_stays_on_its_op_and_step_when_the_page_changes() -> None:
    async with on_tab(100, 30) as (tab, _):
        page = input_bound_page()
        tab.show("page", page)
        tab.move(1, 0)
        tab.move(0, 2)
        assert tab.selection == "Iterator::Root::Prefetch::BatchV2::ParallelMapV2"
        tab.show("page", replace(page, stages=page.stages[::-1], steps=page.steps[2:]))
        assert tab.selection == "Iterator::Root::Prefetch::BatchV2::ParallelMapV2"
        tab.move(1, 0)
        assert tab.selection == "104"
        tab.show("page", no_input_page())
        assert tab.selection is None
        tab.move(0, 1)
        tab.move(1, 0)
        tab.ends(1)
        assert tab.place is None and tab.details is None


async def test_search_finds_ops_by_name_and_category_and_steps() -> None:
    async with on_tab(100, 30) as (tab, _):
        assert tab.search("x") == "no row"
        tab.show("page", input_bound_page())
        assert tab.search("PREFETCH") == "4 ops"
        assert tab.search("transfer to") == "1 op"
        assert tab.selection == "batched_device_put"
        assert tab.search("103") == "1 step"
        assert tab.selection == "103"
        assert tab.search("10") == "6 steps"
        assert tab.next_match(1) == "match 2 of 6" and tab.selection == "101"
        assert tab.search("nothing") == "no row" and tab.next_match(1) == "no match"
        assert tab.search("") == ""


@pytest.mark.parametrize("width", [50, 80, 120])
async def test_details_say_all_there_is(width: int) -> None:
    async with on_tab(width, 30) as (tab, _):
        tab.show("page", input_bound_page())
        tab.move(0, 3)
        assert tab.details is not None
        title, lines = tab.details
        text = "\n".join(plain(line) for line in lines(Pen(width, BLOCK)))
        assert title == "Input op"
        for words in ("Advanced file read", "1.02 s", "58.6%", "feeds", "24", "42.5 ms each"):
            assert words in text
        tab.show("page", apart_page())
        tab.move(1, 0)
        text = "\n".join(plain(line) for line in tab.detail_lines(Pen(width, BLOCK)))
        assert "unknown: few steps" in " ".join(text.split())
        assert {len(plain(line)) for line in tab.meaning_lines(Pen(width, BLOCK))} == {width}
