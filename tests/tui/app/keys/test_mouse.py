"""The mouse on every page: rows, keys that are drawn, the wheel, and what it means nothing on."""

from __future__ import annotations

import pytest
from textual.events import MouseScrollDown, MouseScrollUp
from textual.pilot import Pilot

from tests.support.app.scene import after, press, scene
from tests.support.app.stage import frame, make_demo_app, overview_tab, settled, timeline_tab
from tests.support.build import present
from tests.tui.app.keys.test_silent import PAGES
from tpuprof.tui.draw.columns import AXIS, PanelItem, columns_of
from tpuprof.tui.widgets.line_canvas import key_at
from tpuprof.tui.widgets.screen import NOTHING_THERE

LISTS = ("overview", "input", "tree", "ops", "roofline", "memory", "allocators", "hosts", "modules", "measured")


async def click(pilot: Pilot[None], x: int, y: int) -> str:
    await pilot.click(offset=(x, y))
    await settled(pilot)
    return frame(pilot.app)


@pytest.mark.parametrize("name", LISTS)
async def test_a_click_on_a_row_points_and_a_second_one_is_enter_and_the_wheel_moves(name: str) -> None:
    async with scene(make_demo_app(), PAGES[name], 100, 40) as (app, pilot):
        on_next = await after(pilot, "down")
        y = [app.main.look.glyphs.mark in line[:4] for line in on_next.splitlines()].index(True)
        await after(pilot, "up")
        await pilot._post_mouse_events([MouseScrollDown], offset=(20, y), button=0)
        await settled(pilot)
        assert frame(app) == on_next
        opened = await after(pilot, "enter")
    async with scene(make_demo_app(), PAGES[name], 100, 40) as (app, pilot):
        assert await click(pilot, 20, y) == on_next, "as the key leaves it"
        assert await click(pilot, 20, y) == opened


@pytest.mark.parametrize("name", ["input", "tree", "timeline", "memory", "hosts"])
async def test_a_key_that_is_drawn_is_a_button_and_so_are_its_words(name: str) -> None:
    async with scene(make_demo_app(), PAGES[name], 100, 40) as (app, pilot):
        keys = [key_at(app.main.foot.lines[0], x) for x in range(100)]
        assert len(dict.fromkeys(keys)) > 4 and keys[0] is keys[-1] is None
        expected = await after(pilot, str(keys[1]))
    async with scene(make_demo_app(), PAGES[name], 100, 40) as (app, pilot):
        assert await click(pilot, max(x for x in range(100) if keys[x] == keys[1]), 39) == expected
        await after(pilot, "escape", "escape", "2")
        assert "Verdict and notes" in await click(pilot, 96, 1)
        assert "Close this first" in await click(pilot, 1, 0) and NOTHING_THERE in await click(pilot, 50, 20)


async def test_views_and_steps_answer_a_click_and_the_wheel_zooms_at_the_pointer() -> None:
    async with scene(make_demo_app(), ["3"], 120, 40) as (app, pilot):
        line = next(y for y, text in enumerate(frame(app).splitlines()) if "[Profile]" in text)
        assert "[HLO ops]" in await click(pilot, frame(app).splitlines()[line].index("HLO ops"), line)
        await press(pilot, "1", "g", "l", "h")
        tab, before, drawn = overview_tab(app), present(overview_tab(app).place), present(overview_tab(app)._drawn)
        columns = columns_of([0.0] * len(present(tab._page).steps), 120, before.index)
        x = AXIS + (before.index + 1) * columns.pitch(120)
        await click(pilot, x, drawn.first_step_line + 2)
        assert tab.place == PanelItem("steps", before.index + 1)
        await press(pilot, "4")
        page = present(timeline_tab(app)._page)
        there, span = present(page.instant_at(80)), page.view.window.span_ps
        await pilot._post_mouse_events([MouseScrollUp], offset=(80, 10), button=0)
        assert page.view.window.span_ps == span // 2
        assert abs(present(page.instant_at(80)) - there) <= span // page.view.window.cells
