"""The view of the model on tab 1: there and back, over blocks, to an op, and what it says where it can't be read."""

from __future__ import annotations

from tests.support.app.scene import after, scene
from tests.support.app.stage import ReadyPages, answer, check_golden, demo_session, frame, make_app, overview_tab
from tests.support.imports import loaded_by
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.overview.model_use.page import MODEL
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.widgets.tab import Jump


def app_of_demo() -> TpuprofApp:
    """The app over the demo's overview and model, read once."""
    session = demo_session()
    return make_app(ReadyPages(session.page(OVERVIEW), session.page(MODEL)))


async def test_looks() -> None:
    async with scene(app_of_demo(), ("v",)) as (app, _):
        check_golden("model-80x24", frame(app))


async def test_the_cursor_goes_over_blocks_and_search_finds_them() -> None:
    async with scene(app_of_demo(), ("v",)) as (app, pilot):
        tab = overview_tab(app)
        assert tab.selection == "embedding forward"
        await after(pilot, "/", *"loss b", "enter")
        assert tab.selection == "loss backward"
        shown = await after(pilot, "enter")
        assert "logits and the loss" in shown and "by name" in shown and "─ Ops" in shown
        assert "Where a step goes" in await after(pilot, "escape", "escape", "escape"), "and Esc leads back"


async def test_o_leads_to_the_op_with_most_of_the_time() -> None:
    async with scene(app_of_demo(), ("v",)) as (app, _):
        tab = overview_tab(app)
        jump = answer(tab, "o")
        assert isinstance(jump, Jump) and (jump.tab, jump.what) == ("op-profile", "op")
        tab.ends(1)
        assert tab.selection == "no op" and answer(tab, "o") is None


async def test_figures_and_meanings_are_those_of_the_view() -> None:
    async with scene(app_of_demo(), ("v",)) as (app, pilot):
        assert "by name" in dict(overview_tab(app).meanings)
        assert "All figures" in await after(pilot, "i")
        assert "MFU" in frame(app)


def test_the_tab_imports_nothing_of_the_view_before_it_is_shown() -> None:
    loaded = loaded_by("tpuprof.tui.pages.overview.view")
    assert "tui.pages.overview.ledger.drawing" in loaded
    assert not [
        name
        for name in loaded
        if name.startswith(("tui.pages.overview.ledger.model_use", "parsers.pages.overview.model_use"))
    ]
