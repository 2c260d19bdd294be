"""What takes a while is searched and sorted beside the screen's thread: the old rows stay until then."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from textual import work

from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.ops.filtering.filter import Filter, FilterError, Mask
from tpuprof.tui.pages.ops.tree_view import TreeView
from tpuprof.tui.widgets.lists.table import Filterable, RowsView, Sorting
from tpuprof.tui.widgets.lists.view import ViewsTab
from tpuprof.tui.widgets.tab import CursorMoved


class SearchingTab(ViewsTab):
    """A tab of views that take filters."""

    @property
    def view(self) -> TreeView | RowsView | None:
        raise NotImplementedError

    @property
    def every_view(self) -> Sequence[TreeView | RowsView]:
        raise NotImplementedError

    def words_for(self, begun: str) -> Sequence[str]:
        return () if self.view is None else self.view.words_for(begun)

    def search(self, text: str) -> str:
        said = super().search(text)
        self.find_asked()
        return said

    def next_match(self, direction: int) -> str:
        said = "" if self.view is None else self.view.next_match(direction)
        self.redraw()
        return said

    def do(self, act: Callable[[], object]) -> object:
        answer = super().do(act)
        self.find_asked()
        return answer

    def find_asked(self) -> None:
        """Begins to look for what a filter of the view keeps, and to sort its rows, where that takes a while."""
        view = self.view
        if view is not None and view.asked is not None:
            self._find(view, view.asked)
        if view is not None and view.sorting is not None:
            self._sort(view, view.sorting)

    @work(thread=True, exclusive=True, group="filter", description="filter")
    def _find(self, view: Filterable[Any], asked: tuple[str, Filter]) -> None:
        def poll() -> None:
            if view.asked is not asked or not self.is_running:
                raise Cancelled

        with contextlib.suppress(Cancelled):
            try:
                found: Mask | FilterError = asked[1].mask(view.search_columns, poll)
                view.prepare()
            except FilterError as error:
                found = error
            self.call_later(self._filtered, view, asked, found)

    @work(thread=True, exclusive=True, group="sort", description="sort")
    def _sort(self, view: Filterable[Any], sorting: Sorting) -> None:
        self.call_later(self._sorted, view, sorting, sorting.rows())

    def _sorted(self, view: Filterable[Any], sorting: Sorting, rows: NDArray[np.int64]) -> None:
        """Shows the rows in their order, unless another one was asked for since."""
        if view.sorting is sorting and view in self.every_view:
            said = view.show_sorted(sorting, rows)
            self.redraw()
            self.post_message(CursorMoved(said))

    def _filtered(self, view: Filterable[Any], asked: tuple[str, Filter], found: Mask | FilterError) -> None:
        """Shows what a filter has kept, unless another one was asked for since."""
        if view.asked is asked and view in self.every_view:
            said = view.refuse(found) if isinstance(found, FilterError) else view.keep(asked[0], found)
            self.redraw()
            self.post_message(CursorMoved(said))
