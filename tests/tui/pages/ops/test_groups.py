"""Groups of clones in the table of HLO ops: what `b` and Enter do, with filters and orders."""

from __future__ import annotations

from tests.support.app.stage import op_pages, ops_tab, until
from tests.tui.pages.ops.test_view import play, table
from tpuprof.parsers.pages.ops.op_groups import op_groups
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII
from tpuprof.tui.pages.ops.table_views import HloView


async def test_hlo_ops_are_grouped_with_their_clones() -> None:
    async with play("v") as (app, pilot):
        view, pages = table(app), op_pages(app)
        assert isinstance(view, HloView)
        groups = op_groups(pages.ops)
        at = next(row for row, number in enumerate(groups.op_count.tolist()) if number > 1)
        members = (groups.group == at).nonzero()[0].tolist()
        view.show_op(members[-1])
        await pilot.press("b")
        assert len(view.rows) == len(groups) < len(pages.ops)
        assert view.row == at  # the group of the op that the cursor was on
        assert view.op_row == members[0]
        assert ops_tab(app).selection == pages.ops.table.name[members[0]]
        assert f"{len(members)} clones, added up" in "".join(
            text for line in view.card(Pen(80, ASCII)) for text, _ in line
        )
        await pilot.press("enter")
        assert view.rows.tolist() == members
        assert "one group" in view.status()
        await pilot.press("/", *">1000s", "enter", "escape")
        assert view.rows.tolist() == members
        await pilot.press("b")
        assert (view.row, len(view.rows)) == (at, len(groups))
        await pilot.press("b")
        assert (view.row, len(view.rows)) == (members[0], len(pages.ops))


async def test_a_regex_filters_groups_too() -> None:
    async with play("v", "/", *"~^fusion", "enter") as (app, pilot):
        view, pages = table(app), op_pages(app)
        await until(pilot, lambda: view.asked is None)
        await pilot.press("b")
        await until(pilot, lambda: view.asked is None)
        names = op_groups(pages.ops).page.table.name
        assert sorted(view.rows.tolist()) == [at for at, name in enumerate(names) if name.startswith("fusion")]
        await pilot.press("o", "o")  # to the op in the tree and back: neither group nor filter hides it
        assert (len(view.rows), view.listing.words) == (len(pages.ops), "")


async def test_groups_of_ops_are_sorted_and_left() -> None:
    async with play("v", "b") as (app, pilot):
        view, pages = table(app), op_pages(app)
        counts = op_groups(pages.ops).op_count
        view.sort_by("ops")
        assert view.rows.tolist()[0] == counts.argmax()
        await pilot.press("b")  # single ops have no such column
        assert view.listing.sort == "time"
        single = int((op_groups(pages.ops).op_count == 1).argmax())
        await pilot.press("b", "home", *["j"] * single, "enter")
        assert app.main.popups.popup is not None  # of one op the card
        await pilot.press("escape", "o", "o")
        assert len(view.rows) == len(pages.ops)  # the op itself is shown, not its group
