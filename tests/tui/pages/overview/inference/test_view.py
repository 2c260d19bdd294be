"""Keys on the latencies of tab 1: there and back, over modules, and the steps that give way to them."""

from __future__ import annotations

import dataclasses

from tests.support.app.scene import after, scene
from tests.support.app.stage import ReadyPages, frame, make_app, overview_tab
from tests.support.made.pages import annotated_overview, requests_overview, serving_overview, training_overview
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.draw.columns import PanelItem


def words(app: TpuprofApp) -> str:
    """The text of a popup, wherever its lines break."""
    return " ".join(frame(app).replace("│", " ").split())


async def test_the_cursor_goes_over_modules_and_search_finds_them() -> None:
    async with scene(make_app(ReadyPages(serving_overview()))) as (app, pilot):
        tab = overview_tab(app)
        await pilot.press("v", "j")
        names = [row.name for row in serving_overview().inference.modules]  # type: ignore[union-attr]
        assert tab.selection == names[1] and tab.place == PanelItem("ops", 1)
        await pilot.press("/", *"prefill", "enter")
        assert tab.selection == "jit_prefill(9)"
        assert "6 runs of jit_prefill, by latency" in frame(app)
        assert "13 runs of jit_decode, by latency" in await after(pilot, "escape", "G", "l")
        assert tab.selection == names[-1], "there are no steps to move over"
        await pilot.press("enter")
        assert names[-1] in frame(app) and "of the modules' time over all cores" in frame(app)


async def test_notes_and_help_are_those_of_the_view() -> None:
    async with scene(make_app(ReadyPages(serving_overview())), ["v", "W"]) as (app, pilot):
        assert "one run of jit_prefill, from its first core's start" in words(app)
        await pilot.press("escape", "?", "pagedown", "pagedown")
        assert "Tokens a second are unknown" in words(app)


async def test_a_program_that_trains_keeps_its_steps_and_has_latencies_on_request() -> None:
    page = dataclasses.replace(training_overview(), inference=serving_overview().inference, infers=False)
    async with scene(make_app(ReadyPages(page))) as (app, pilot):
        assert "─ Steps" in frame(app) and "LATENCY" not in frame(app)
        assert "The model can't be read." in await after(pilot, "l", "v")
        assert "Histogram" in await after(pilot, "v")
        assert "─ Steps" in await after(pilot, "v")


async def test_b_takes_the_spans_of_an_annotation_for_requests_and_again_none() -> None:
    async with scene(make_app(ReadyPages(annotated_overview())), ("v",)) as (app, pilot):
        assert "NO REQUESTS" in frame(app) and "b requests" in frame(app)
        assert "27 spans of request" in await after(pilot, "b")
        assert "9 spans of health" in await after(pilot, "b")
        assert "NO REQUESTS" in await after(pilot, "b")


async def test_without_sessions_there_is_no_such_view() -> None:
    async with scene(make_app(ReadyPages(training_overview()))) as (app, pilot):
        assert "v latencies" not in frame(app)
        assert "Top ops" in await after(pilot, "v", "v")


async def test_the_view_stays_where_another_page_has_latencies_too() -> None:
    async with scene(make_app(ReadyPages(serving_overview()))) as (app, pilot):
        tab = overview_tab(app)
        await pilot.press("v")
        tab.show("page", requests_overview())
        await pilot.pause()
        assert "REQUESTS A session is a request" in frame(app)
        tab.show("page", dataclasses.replace(requests_overview(), inference=None))
        await pilot.pause()
        assert "Top ops" in frame(app)
