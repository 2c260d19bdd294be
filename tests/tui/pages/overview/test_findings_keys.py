"""Keys on the findings: jumps to where to look, and the cursor's way over findings, ops and steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.support.app.scene import after, press, scene
from tests.support.app.stage import ReadyPages, frame, input_tab, make_app, ops_tab, overview_tab, timeline_tab
from tests.support.made.pages import training_overview, two_findings
from tpuprof.parsers.pages.findings.finding import JumpTarget as Where
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.draw.columns import PanelItem

TARGETS = {
    "an op": Where("op-profile", "fusion.3"),
    "a step that waits": Where("input", "104"),
    "a step of the page": Where("timeline", "101"),
    "a tab": Where("memory"),
}


def app_with_findings() -> TpuprofApp:
    base = two_findings()[0]
    findings = tuple(dataclasses.replace(base, title=title, place=place) for title, place in TARGETS.items())
    return make_app(ReadyPages(dataclasses.replace(training_overview(), findings=findings)))


@pytest.mark.parametrize(
    ("row", "tab", "chosen", "shown"),
    [
        (0, "op-profile", lambda app: ops_tab(app).selection == "fusion.3", "[HLO ops]"),
        (1, "input", lambda app: input_tab(app).place == PanelItem("steps", 4), ""),
        (2, "timeline", lambda app: timeline_tab(app).selection == "101", "▼ step 101"),
    ],
)
async def test_o_on_a_finding_opens_what_it_names_in_its_tab_and_escape_comes_back(
    row: int, tab: str, chosen: Callable[[TpuprofApp], bool], shown: str
) -> None:
    async with scene(app_with_findings(), [*"j" * row, "o"]) as (app, pilot):
        assert app.main.tab_name == tab and chosen(app) and shown in frame(app)
        await pilot.press("escape")
        assert app.main.tab_name == "overview" and overview_tab(app).place == PanelItem("findings", row)


async def test_o_finds_the_op_behind_a_filter_that_hides_it() -> None:
    async with scene(app_with_findings(), ["3", "v", "/", *"fusion.11", "enter", "1", "o"]) as (app, _):
        assert app.main.tab_name == "op-profile" and ops_tab(app).selection == "fusion.3"


async def test_the_footer_says_where_o_goes() -> None:
    async with scene(app_with_findings()) as (app, pilot):
        assert "o go there" in frame(app)
        assert "o go there" in await after(pilot, "j", "j", "j", "j"), "on the bar of the step"
        assert "o in ops" in await after(pilot, "G")


async def test_from_the_steps_up_and_down_go_on_where_the_cursor_was() -> None:
    async with scene(app_with_findings(), ["j", "l", "k"]) as (app, pilot):
        assert overview_tab(app).place == PanelItem("findings", 0)
        await pilot.press("l", "h", "j", "j")
        assert overview_tab(app).place == PanelItem("findings", 2)
        await pilot.press("j", "j", "l", "k")
        assert overview_tab(app).place == PanelItem("findings", 3), "the first op is below the last finding"


async def test_on_a_small_screen_a_step_shows_its_graph_with_what_stands_below_it() -> None:
    async with scene(app_with_findings(), ["l"], 60, 15) as (app, pilot):
        assert "361 ms │" in frame(app) and "step 103  361 ms" in frame(app)
        await press(pilot, "2")
        await pilot.press("G", "l")
        assert "60% │" in frame(app) and "step 103  361 ms" in frame(app)


async def test_home_goes_back_to_the_top_of_the_page() -> None:
    async with scene(app_with_findings(), (), 60, 15) as (app, pilot):
        assert "STEP TIME" not in await after(pilot, "G")
        await pilot.press("home")
        assert "STEP TIME" in frame(app) and "▸1 an op" in frame(app)
        await press(pilot, "2")
        assert "STEP TIME" not in await after(pilot, "G")
        assert app.main.look.glyphs.mark in await after(pilot, "home", "j")


async def test_keys_that_come_at_once_all_count() -> None:
    async with scene(app_with_findings(), ["j", "o", "escape", "k", "o"]) as (app, pilot):
        assert app.main.tab_name == "op-profile" and ops_tab(app).selection == "fusion.3"
        await press(pilot, "escape", "2")
        assert input_tab(app).place == PanelItem("steps", 4), "the step that was wanted while the page was loading"
