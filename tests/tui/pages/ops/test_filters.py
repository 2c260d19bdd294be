"""Filters in the tree and in every table, and types of framework ops."""

from __future__ import annotations

import pytest

from tests.parity.oracle.odd_profile import offload_profile
from tests.support.app.scene import after
from tests.support.app.stage import check_golden, op_pages, until
from tests.support.made.op_views import pages_of
from tests.tui.pages.ops.test_view import play, table, tree
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.ops.filtering.filter import parse_filter
from tpuprof.parsers.pages.ops.ops import ops_page
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK, plain
from tpuprof.tui.pages.ops.details.card_cache import CardCache
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.pages.ops.table_views import FrameworkView, HloView
from tpuprof.tui.report.choice import op_columns


@pytest.mark.parametrize("text", ["hlo:all-gather", "model.py:6 !cat:fusion", "~^all-.*[.]6", ">2% shape:bf16"])
async def test_a_filter_in_the_tree_goes_from_op_to_op(text: str) -> None:
    async with play("/", *text, "enter") as (app, pilot):
        await until(pilot, lambda: tree(app).asked is None)
        pages = op_pages(app)
        wanted = parse_filter(text).mask(op_columns(HLO_OPS, pages.ops)).nonzero()[0].tolist()
        assert len(wanted) > 1, "the demo has such ops"
        found = [tree(app).op_row]
        for _ in wanted[1:]:
            await pilot.press("n")
            found.append(tree(app).op_row)
        assert found == wanted  # all of them, the longest first
        await pilot.press("n")
        assert tree(app).op_row == wanted[0]


async def test_what_is_no_filter_is_said_in_the_tree_too() -> None:
    async with play() as (_, pilot):
        assert "remat: takes yes or no" in await after(pilot, "/", *"remat:perhaps", "enter")
        await pilot.press("escape")


# --- tables


@pytest.mark.parametrize("keys", [[], ["b"]], ids=["ops", "groups"])
@pytest.mark.parametrize("views", [["v"], ["v", "v"], [*"vvv"]], ids=["hlo", "framework", "roofline"])
async def test_every_table_takes_every_term(views: list[str], keys: list[str]) -> None:
    async with play(*views, *keys) as (app, pilot):
        view = table(app)
        every = len(view.rows)
        for text in ("hlo:fusion(", "shape:bf16", "model.py", "side:device", "remat:no", "!remat:yes"):
            await pilot.press("/", *text, "enter")
            await until(pilot, lambda: view.asked is None)
            assert 0 < len(view.rows) <= every, text
            await pilot.press("escape")
        await pilot.press("/", *"side:sparse")
        await until(pilot, lambda: view.asked is None)
        assert view.is_filter_wrong and len(view.rows), "while it is typed the last good rows stay"


async def test_framework_ops_of_a_type_are_one_row() -> None:
    async with play("v", "v") as (app, pilot):
        view = table(app)
        assert isinstance(view, FrameworkView)
        every = len(view.rows)
        await pilot.press("b")
        groups = view.shown_groups
        assert groups is not None and len(view.rows) == len(groups) < every
        assert int(groups.op_count.sum()) == every
        number = int(groups.op_count[view.row])
        await pilot.press("enter")
        assert len(view.rows) == number > 1
        assert len({view._page.type[row] for row in view.rows.tolist()}) == 1
        await pilot.press("b", "b")
        assert len(view.rows) == every


def test_what_sparse_cores_ran_is_listed_last_with_its_parent() -> None:
    page = ops_page([summarise(Trace.from_bytes(offload_profile()), "host0")])
    view = HloView(CardCache(pages_of(page), lambda _, __: None))
    view.shift = 22
    check_golden("ops-sparse-cores_120", "\n".join(plain(line).rstrip() for line in view.draw(Pen(120, BLOCK), 10)))
    view.step(3)
    assert (view.selection, view.op_row) == ("gather_fusion.1", None)
    text = " ".join(" ".join(plain(line).split()) for line in view.card(Pen(100, BLOCK)))
    assert "core SparseCore, for call-start.1 of the TensorCore;" in text and "energy 0.5 J" in text
    view.search("side:sparse")
    assert view.asked is not None
    view.keep("side:sparse", view.asked[1].mask(view.search_columns))
    assert len(view.rows) == 4
