"""What keys do on the tabs: what is searched for in each view, what Escape closes, and what keys wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tpuprof.parsers.base.text import NO_ROW
from tpuprof.tui.app.context import AppContext
from tpuprof.tui.app.current_run import CurrentRun
from tpuprof.tui.terminal.grammar import READING, KeysAhead, Opened, verbs_of
from tpuprof.tui.widgets.chrome import act_of
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
        self._said = ""
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
        if not self.is_filter and text:
            self._texts[self._place] = text
        elif not self.is_filter:
            self._texts.pop(self._place, None)
        self._said = (self._tab.filter if self.is_filter else self._tab.search)(text)
        return self._said

    def keep(self, text: str) -> bool:
        """Keeps what was found, unless that is nothing or the text is wrong, as the words beside it say."""
        if text and (self._tab.search_failed or self._said.startswith(NO_ROW)):
            return False
        if not text and not self.is_filter:
            self.forget()
        if not self.is_filter and (found := self._tab.found_list) is not None:
            self._screen.open(found)
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


# --- keys that wait for what is still being read: for the shown tab, or for what opens above the tabs

_ABOVE = "above"  # what is typed ahead of what opens above the tabs is kept under
_AT_ONCE = {
    *("pick", "next_tab", "previous_tab", "runs", "hosts", "compare", "capture", "notes", "reload"),
    *("back", "background", "help", "palette", "quit", "leave"),
}
"""Verbs that wait for no page."""


class KeysStage(AppContext, Protocol):
    """The main screen, as far as keys wait for it."""

    ahead: KeysAhead

    @property
    def tab(self) -> Tab: ...

    def type_kept(self, page: str) -> None: ...

    def press_above(self, key: str, character: str | None) -> None:
        """Presses a key on what has opened above the tabs, once it stands."""


class Waiting:
    """Says which keys of the main screen have to wait, and does them when what they are for is there.

    Attributes:
        has_begun: whether the first load has begun.
    """

    def __init__(self, screen: KeysStage, loads: CurrentRun) -> None:
        self.has_begun = False
        self._screen = screen
        self._loads = loads

    @property
    def awaited(self) -> str:
        """What is still being read before keys can mean anything on it: what opens above the tabs, or the shown tab."""
        screen, loads = self._screen, self._loads
        if loads.is_loading_above:
            return _ABOVE
        is_coming = loads.is_loading or not self.has_begun
        return screen.tab_name if is_coming and not screen.tab.is_ready else ""

    def waits(self, key: str) -> bool:
        """Whether a key is of what is awaited: any key of what opens above, else what the tab itself does."""
        verbs = {verb.name for verb in verbs_of(key) if verb not in READING}
        if self.awaited == _ABOVE:
            return bool(verbs)
        return bool(verbs) and not verbs & _AT_ONCE and act_of(self._screen.tab.keys, key) is None

    def tab_turned(self) -> None:
        """Does what was typed ahead of the shown tab, where that is read; forgets it where nothing is read any more."""
        screen = self._screen
        if screen.tab.is_ready and screen.tab_name != self.awaited:
            screen.type_kept(screen.tab_name)
        elif not self.awaited:
            screen.ahead.forget()

    def opened_above(self) -> None:
        for key, character in self._screen.ahead.take(_ABOVE):
            self._screen.press_above(key, character)
