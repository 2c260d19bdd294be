"""Tables of more rows than the screen's thread sorts or filters by itself."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.support.app.scene import after
from tests.support.app.stage import answer, ops_tab, until
from tests.support.made.big_table import big_page
from tests.support.made.op_views import pages_of
from tests.tui.pages.ops.test_view import play, table
from tpuprof.tui.pages.ops.details.card_cache import CardCache
from tpuprof.tui.pages.ops.table_views import TableView
from tpuprof.tui.report.fields import Table, order
from tpuprof.tui.widgets.lists.table import Sorting


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpuprof.tui.widgets.lists.table.MANY_ROWS", 3)


async def test_sorting_many_rows_leaves_the_screens_thread_and_the_old_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    made, go, here = Sorting.rows, threading.Event(), threading.get_ident()
    threads: list[int] = []

    def held(self: Sorting) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        threads.append(threading.get_ident())
        go.wait(timeout=60)
        return made(self)

    async with play("v") as (app, pilot):
        view = table(app)
        before, sort = view.rows, view.listing.sort
        monkeypatch.setattr(Sorting, "rows", held)
        assert "sorting by" in str(answer(ops_tab(app), "S"))
        wanted = view.sorting
        assert wanted is not None and view.rows is before and view.listing.sort == sort
        go.set()
        await until(pilot, lambda: view.sorting is None)
        assert view.listing.sort == wanted.listing.sort == sort
        assert view.rows.tolist() == made(wanted).tolist()
        assert threads and here not in threads


async def test_an_order_that_comes_after_another_was_asked_for_is_dropped() -> None:
    async with play("v") as (app, _):
        view = table(app)
        view.sort_by("HBM")
        first = view.sorting
        view.sort_by("HBM")  # from the one that is being made on, not from the one that is shown
        second = view.sorting
        assert first is not None and second is not None and first.listing.is_reversed != second.listing.is_reversed
        before = view.rows
        ops_tab(app)._sorted(view, first, first.rows())
        assert view.rows is before and view.sorting is second
        ops_tab(app)._sorted(view, second, second.rows())
        assert view.listing.sort == second.listing.sort and view.sorting is None


@pytest.mark.parametrize("sorts", [0, 2])
async def test_a_plain_filter_of_many_rows_is_found_beside_the_screen_too(sorts: int) -> None:
    async with play("v") as (app, pilot):
        view = table(app)
        for _ in range(sorts):
            await pilot.press("s", "h")
            await until(pilot, lambda: view.sorting is None)
        every = view.rows.tolist()
        text = await after(pilot, "/", *"fusion", "enter")
        await until(pilot, lambda: view.asked is None)
        assert "fusion" in text
        kept = [row for row in every if "fusion" in view.names[row]]
        assert kept and [row for row in view.rows.tolist() if "fusion" in view.names[row]] == kept
        assert len(view.rows) < len(every)


def test_an_order_is_made_once_for_a_filter_and_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(table: Table[Any], source: Any, name: str, descending: bool) -> np.ndarray[Any, np.dtype[np.int64]]:
        made.append(name)
        return order(table, source, name, descending)

    monkeypatch.setattr("tpuprof.tui.widgets.lists.table.order", counted)
    view = TableView(CardCache(pages_of(big_page(20)), lambda _, __: None))
    for number in range(3):
        view.keep(f"{number}", np.arange(20) % 3 == number)
        assert (view.rows % 3 == number).all()
    assert made == ["time"]
