"""What is searched for in each view of the tabs, and what is open on them, in the order in which Escape closes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tpuprof.tui.app.context import AppContext
from tpuprof.tui.terminal.pressed import Opened
from tpuprof.tui.widgets.tab import Tab


class Searches:
    """Searches and filters of the shown tab; each view keeps its own while others are shown.

    Attributes:
        is_filter: what is typed filters the tab instead of searching it.
    """

    def __init__(self, screen: AppContext) -> None:
        self.is_filter = False
        self._screen = screen
        self._texts: dict[tuple[str, str], str] = {}
        self._before = ""  # what was searched for before something else is typed
        self._opened: dict[str, Opened] = {}

    @property
    def _tab(self) -> Tab:
        return self._screen.tabs[self._screen.tab_name]

    @property
    def _place(self) -> tuple[str, str]:
        return self._screen.tab_name, self._tab.view_name

    @property
    def is_searched(self) -> bool:
        return self._place in self._texts

    def begin(self, ask: Callable[[], object], *, is_filter: bool) -> None:
        self.is_filter, self._before = is_filter, self._texts.get(self._place, "")
        ask()

    @property
    def syntax(self) -> str:
        return "" if self.is_filter else self._tab.syntax

    def words_for(self, begun: str) -> Sequence[str]:
        return () if self.is_filter else self._tab.words_for(begun)

    def search(self, text: str) -> str:
        """Searches or filters the tab; says what that finds."""
        if self.is_filter:
            return self._tab.filter(text)
        if text:
            self._texts[self._place] = text
        else:
            self._texts.pop(self._place, None)
        return self._tab.search(text)

    def keep(self, text: str) -> bool:
        """Keeps what was found, unless there is something wrong with the text, which stands beside it."""
        if text and self._tab.search_failed:
            return False
        if not text and not self.is_filter:
            self.forget()
        self.note()
        return True

    def give_up(self) -> None:
        """Gives up what is typed: what was searched for before it is searched for again."""
        if self.is_filter:
            self._tab.filter("")
        elif self._before:
            self.search(self._before)
        else:
            self.forget()

    def forget(self) -> None:
        self._texts.pop(self._place, None)
        self._tab.end_search()

    # --- what Escape closes

    def note(self) -> None:
        self._order.note(self._things)

    def close_last(self) -> bool:
        """Closes what was opened last on the shown tab; False where nothing is open."""
        is_closed = self._order.close(self._things)
        self._tab.redraw()
        return is_closed

    @property
    def _order(self) -> Opened:
        return self._opened.setdefault(self._screen.tab_name, Opened())

    @property
    def _things(self) -> dict[str, Callable[[], object]]:
        searched: dict[str, Callable[[], object]] = {"search": self.forget} if self.is_searched else {}
        return {**searched, **self._tab.opened}
