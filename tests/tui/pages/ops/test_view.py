"""The ops tab over the demo profile: its views, what keys do in them, and what the screen shows."""

from __future__ import annotations

import pytest
from textual.events import Key

from tests.support.app.scene import Scene, after, press, scene
from tests.support.app.stage import (
    ParkedPages,
    check_cells,
    check_golden,
    frame,
    make_app,
    make_demo_app,
    op_pages,
    ops_tab,
    settled,
    until,
)
from tests.support.build import present
from tpuprof.parsers.base import regex
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.pages.ops.table_views import RooflineView, TableView
from tpuprof.tui.pages.ops.tree_view import TreeView
from tpuprof.tui.pages.ops.view import FRAMEWORK, HLO, ROOFLINE, TREE

VIEWS = {
    "profile": [],
    "profile-open": ["j", "l"],
    "source": ["b", "b", "b", "j"],
    "hlo-ops": ["v"],
    "hlo-last-columns": ["v", *"l" * 40],
    "hlo-groups": ["v", "b"],
    "framework-ops": ["v", "v"],
    "framework-types": ["v", "v", "b"],
    "roofline": [*"vvv"],
}


def play(*keys: str, app: TpuprofApp | None = None, width: int = 80, height: int = 24) -> Scene:
    """The ops tab over the demo profile after some keys."""
    return scene(app or make_demo_app(), ("3", *keys), width, height)


def tree(app: TpuprofApp) -> TreeView:
    view = ops_tab(app).view
    assert isinstance(view, TreeView)
    return view


def table(app: TpuprofApp) -> TableView:
    view = ops_tab(app).view
    assert isinstance(view, TableView)
    return view


@pytest.mark.parametrize("name", VIEWS)
async def test_every_view_shows(name: str) -> None:
    async with play(*VIEWS[name], "j", "j") as (app, _):
        check_cells(app)
        check_golden(f"ops-{name}_80x24", frame(app))


@pytest.mark.parametrize("name", VIEWS)
async def test_every_view_in_ascii_and_without_colours(name: str) -> None:
    async with play(app=make_demo_app(ascii=True, color="never")) as (_, pilot):
        assert (await after(pilot, *VIEWS[name])).isascii()


@pytest.mark.parametrize("size", [(60, 15), (66, 18), (100, 30), (200, 60)])
async def test_every_size(size: tuple[int, int]) -> None:
    async with play(width=size[0], height=size[1]) as (app, pilot):
        for _ in range(4):
            await press(pilot, "v", "j")
            check_cells(app)


async def test_the_tab_shown_while_the_overview_is_decoded_gets_its_page_afterwards() -> None:
    pages = ParkedPages()
    app = make_app(pages)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, pages.started.is_set)
        await pilot.press("3")
        assert not ops_tab(app).has_page
        assert "train_b" in frame(app)
        pages.let_go.set()
        await until(pilot, lambda: ops_tab(app).has_page)
        assert not pages.was_cancelled.is_set()  # the decoding under way is not thrown away
        assert app.main.tab_name == "op-profile"


# --- the tree


async def test_opening_and_closing() -> None:
    async with play() as (app, pilot):
        view = tree(app)
        first = len(view.rows)
        assert view.rows[0].is_open  # the program that took most time
        await pilot.press("j", "l")
        assert len(view.rows) > first
        assert view.cursor == 1
        await pilot.press("l")  # into it
        assert view.cursor == 2
        await pilot.press("h")  # back to its parent
        assert view.cursor == 1
        await pilot.press("h")
        assert len(view.rows) == first
        await pilot.press("enter")
        assert app.main.popups.popup is not None  # the whole card


async def test_enter_on_hidden_nodes_shows_them_and_goes_to_the_first() -> None:
    async with play() as (app, pilot):
        view = tree(app)
        at = next(at for at, row in enumerate(view.rows) if row.hidden)
        last = view.tree.name[view.rows[at - 1].node]
        await pilot.press(*["j"] * at, "enter")
        assert view.cursor == at
        assert not view.rows[at].hidden
        assert view.tree.name[view.rows[at - 1].node] == last


async def test_keys_that_come_at_once_are_taken_in_order() -> None:
    async with play() as (app, pilot):
        for key in ("v", "slash", "q", "s", "o"):  # a terminal hands on a paste in one go
            app.screen.post_message(Key(key, None if len(key) > 1 else key))
        await pilot.pause()
        assert app.main.prompt is not None and app.main.prompt.text == "qso"
        assert not app._exit


async def test_a_fusion_opens_to_what_it_holds() -> None:
    async with play("j", "l", "l", "l", height=40) as (app, pilot):  # the longest op, a fusion
        view = tree(app)
        inside = [row for row in view.rows if row.instruction is not None]
        assert inside
        op = op_pages(app).ops.table.name[0]
        assert all(row.path[0] == row.instruction.name for row in inside if row.instruction and len(row.path) == 1)
        assert "part of the fusion's" in await after(pilot, "j")
        assert op_pages(app).ops.table.name[present(view.op_row)] == op


async def test_grouping_keeps_the_op() -> None:
    async with play("j", "l", "j", "j") as (app, pilot):
        name = tree(app).selection
        seen = []
        for _ in range(4):
            await press(pilot, "b")
            seen.append(tree(app).tree.by)
            assert tree(app).selection == name
        assert seen == ["category", "provenance", "source", "program"]


async def test_sorting_by_waste_puts_idle_before_small_programs() -> None:
    async with play("s", "w") as (app, pilot):
        view = tree(app)
        assert "wasted▼" in frame(app)
        found = view.tree.wasted_fraction[view.tree.children(0, "wasted")]
        assert (found[:-1] >= found[1:]).all()
        assert "time▼" in await after(pilot, "s", "t")


async def test_hidden_children_are_counted_and_can_be_shown() -> None:
    async with play(height=50) as (app, pilot):
        view = tree(app)
        program = view.rows[0].node
        hidden = next(row for row in view.rows if row.hidden and row.node == program)
        shown = sum(int(view.tree.parent[row.node]) == program and not row.hidden for row in view.rows)
        assert hidden.hidden + shown == view.tree.child_count(program)
        assert f"+ {hidden.hidden} more" in frame(app)
        await pilot.press("t", "t")
        assert not any(row.hidden for row in view.rows)
        await pilot.press("t", "t")
        kept = [row.node for row in view.rows if int(view.tree.parent[row.node]) == program and not row.hidden]
        times = view.tree.time_ps
        assert times[kept].sum() >= 0.9 * times[program] > times[kept[:-1]].sum()


async def test_idle_can_be_left_out() -> None:
    async with play(height=50) as (app, pilot):
        assert "IDLE" in frame(app)
        await pilot.press("j", "j")
        row = tree(app).row
        await pilot.press("x")
        assert tree(app).row == row
        assert "IDLE" not in frame(app)
        fractions = tree(app).tree.time_fraction[tree(app).tree.children(0)]
        assert fractions.sum() == pytest.approx(1.0)
        assert "IDLE" in await after(pilot, "x")


async def test_searching_the_tree_opens_what_hides_the_match() -> None:
    async with play("/", *"reduce.65", "enter") as (app, pilot):
        assert "reduce.65" in tree(app).tree.name[present(tree(app).row).node]
        assert "no match" in await after(pilot, "/", *"nosuchop", "enter") or tree(app).next_match(1) == "no match"


# --- tables


async def test_a_filter_stays_in_its_view_while_others_are_shown() -> None:
    async with play("v", width=100) as (app, pilot):
        view = table(app)
        every = len(view.rows)
        await pilot.press("/", *"cat:all-reduce", "enter", "v")
        assert table(app) is not view
        await pilot.press("escape")
        assert len(view.rows) < every and ops_tab(app).at == FRAMEWORK
        await pilot.press("4", "3", "V")
        assert table(app) is view and len(view.rows) < every, "another tab and back"
        await pilot.press("escape")
        assert len(view.rows) == every and app.main.tab_name == "op-profile"


async def test_an_invalid_filter_says_so_and_keeps_the_rows() -> None:
    async with play("v") as (app, pilot):
        every = len(table(app).rows)
        await pilot.press("/", "~", "(")
        assert len(table(app).rows) == every
        assert "not a regex" in app.main.matches
        await pilot.press("enter")  # the prompt stays, with what is wrong
        assert "not a regex" in frame(app)
        await pilot.press("escape")
        assert len(table(app).rows) == every


async def test_a_regex_is_searched_for_beside_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "SEARCH_SECONDS", 0.5)
    async with play("v", width=120) as (app, pilot):
        view = table(app)
        every = len(view.rows)
        await pilot.press("/", *"~all-reduce[.]")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert 0 < len(view.rows) < every
        found = f"{len(view.rows)} rows"
        assert found in frame(app)  # beside what is typed
        await pilot.press("enter", "s", "h")
        assert f"{len(view.rows)} rows" == found, "sorted, and not searched again"
        await pilot.press("/", *"~((.*.*.*.*.*)*!!)", "enter")  # the prompt closes, the rows stay
        assert f"{len(view.rows)} rows" == found
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "the regex finds nothing: it takes longer" in frame(app)
        assert f"{len(view.rows)} rows" == found
        await pilot.press("escape", "escape")  # the line, where it was refused before Enter, and the filter
        assert len(view.rows) == every


async def test_the_same_op_in_tree_and_table() -> None:
    async with play("v", *["j"] * 30) as (app, pilot):
        name = table(app).selection
        await pilot.press("o")
        assert ops_tab(app).at == TREE
        assert tree(app).selection == name
        await pilot.press("o")
        assert ops_tab(app).at == HLO
        assert table(app).selection == name
        await pilot.press("v")
        assert ops_tab(app).at == FRAMEWORK
        await pilot.press("o")
        assert ops_tab(app).at == HLO


async def test_infeed_and_outfeed_can_leave_the_roofline() -> None:
    async with play(*"vvv", width=120) as (app, pilot):
        assert ops_tab(app).at == ROOFLINE
        view = ops_tab(app).view
        assert isinstance(view, RooflineView)
        await pilot.press("x")
        assert not view.page.with_infeed
        assert len(view.rows) == int(view.page.counts.sum())
        assert "without infeed and outfeed" in frame(app)


async def test_the_op_profile_opens_as_far_as_there_are_rows_until_a_key_is_pressed() -> None:
    async with play(width=120, height=40) as (app, pilot):
        many = len(tree(app).rows)
        assert many > 20 and not tree(app).open.isdisjoint({(row.node, ()) for row in tree(app).rows if row.depth})
        await pilot.resize_terminal(120, 24)
        await settled(pilot)
        assert len(tree(app).rows) == many, "nothing closes"
    async with play(width=120, height=24) as (app, pilot):
        few = len(tree(app).rows)
        assert few < many
        await press(pilot, "j")
        await pilot.resize_terminal(120, 40)
        await settled(pilot)
        assert len(tree(app).rows) == few, "and nothing opens under the hand"


async def test_the_place_of_a_card_that_is_open_in_full_is_blank() -> None:
    async with play() as (app, pilot):
        below = frame(app).splitlines()[18:22]
        assert all(line.strip() for line in below)
        assert not any(line.strip() for line in (await after(pilot, "enter")).splitlines()[19:22])
        assert (await after(pilot, "escape")).splitlines()[18:22] == below
