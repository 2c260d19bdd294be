"""Hosts and cores side by side above the page, and every tab narrowed to the core that was chosen there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.app.scene import after, list_above, press, scene
from tests.support.app.stage import check_cells, check_golden, frame, make_demo_app, ops_tab
from tpuprof.tui.pages.hosts.popup import HostsList


@pytest.mark.parametrize(
    ("name", "options", "width", "height"),
    [("80x24", {}, 80, 24), ("120x40", {}, 120, 40), ("80x24-ascii", {"ascii": True, "color": "16"}, 80, 24)],
)
async def test_the_cores_of_one_host(name: str, options: dict[str, Any], width: int, height: int) -> None:
    async with scene(make_demo_app(**options), ["H"], width, height) as (app, _):
        check_cells(app)
        assert not options or frame(app).isascii()
        check_golden(f"cores-{name}", frame(app))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
async def test_one_core_and_back(width: int, height: int) -> None:
    async with scene(make_demo_app(), (), width, height) as (app, pilot):
        whole = frame(app)
        await press(pilot, "H", "G", "enter")
        assert app.main.current_run.core == "demo:3" and "ONLY CORE demo:3, H: all" in frame(app)
        check_golden(f"one-core-{width}x{height}", frame(app))
        await press(pilot, "H")
        assert list_above(app, HostsList).cursor == 4, "the cursor is on the core that is shown"
        await press(pilot, "g", "enter")
        assert app.main.current_run.core is None and frame(app) == whole


async def test_every_tab_is_of_the_core() -> None:
    async with scene(make_demo_app(core="demo:1"), (), 120, 40) as (app, pilot):
        assert "245.7 ms" in await after(pilot, "2")
        assert "1 core" in await after(pilot, "3", "v")
        assert ops_tab(app).has_page
        words = await after(pilot, "4")
        assert "Chip 1: TPU core 0" in words and "Chip 2" not in words and "demo:1" in words
        assert "ONLY CORE demo:1" in await after(pilot, "5", "v")
        assert "only demo:1 is shown" in " ".join((await after(pilot, "W")).split())


@pytest.mark.parametrize("views", [0, 1, 2])
async def test_the_order_stays_where_another_core_is_chosen(views: int) -> None:
    async with scene(make_demo_app(), ["3", *["v"] * views], 120, 40) as (app, pilot):
        shown = ops_tab(app).view
        assert shown is not None
        shown.sort_by([*shown.orders][-1])
        shown.reverse()
        before = shown.listing.sort, shown.listing.is_reversed
        await press(pilot, "H", "G", "enter")
        there = ops_tab(app).view
        assert there is not None and there is not shown and app.main.current_run.core == "demo:3"
        assert (there.listing.sort, there.listing.is_reversed) == before
        await press(pilot, "H", "g", "enter")
        there = ops_tab(app).view
        assert there is not None and (there.listing.sort, there.listing.is_reversed) == before


async def test_a_core_that_is_not_there_says_which_are() -> None:
    async with scene(make_demo_app(core="7")) as (app, _):
        assert "Host demo has no core 7: its cores are 0, 1, 2, 3" in " ".join(frame(app).replace("│", " ").split())
