"""Keys that wait for what is still being read: for the shown tab, or for what opens above the tabs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from tpuprof.tui.app.keys.actions import ACTIONS_BY_KEY, ScreenState, is_of_tab
from tpuprof.tui.terminal.pressed import KeysAhead
from tpuprof.tui.widgets.tab import Tab

_ABOVE = "above"  # what is typed ahead of what opens above the tabs is kept under


class Loads(Protocol):
    """What reads pages."""

    @property
    def is_loading(self) -> bool:
        """Whether a load is running."""

    @property
    def is_loading_above(self) -> bool:
        """Whether it is of what opens above the tabs."""


class HasTabs(Protocol):
    """A screen with tabs, as far as keys wait for it."""

    tab_name: str
    ahead: KeysAhead

    @property
    def tab(self) -> Tab:
        """The tab that is shown."""

    @property
    def situation(self) -> ScreenState:
        """What the screen is at."""

    def type_kept(self, page: str) -> None:
        """Does what was typed ahead of a page."""

    def press_above(self, key: str, character: str | None) -> None:
        """Presses a key on what has opened above the tabs, once it stands."""


class Waiting:
    """Says which keys of the main screen have to wait, and does them when what they are for is there.

    Attributes:
        has_begun: whether the first load has begun.
    """

    def __init__(self, screen: HasTabs, loads: Callable[[], Loads]) -> None:
        self.has_begun = False
        self._screen = screen
        self._loads = loads

    @property
    def awaited(self) -> str:
        """What is still being read before keys can mean anything on it: what opens above the tabs, or the shown tab."""
        screen, loads = self._screen, self._loads()
        if loads.is_loading_above:
            return _ABOVE
        is_coming = loads.is_loading or not self.has_begun
        return screen.tab_name if is_coming and not screen.tab.is_ready else ""

    def waits(self, key: str) -> bool:
        """Whether a key is of what is awaited: any key of what opens above, else what the tab itself does."""
        if self.awaited == _ABOVE:
            return key in ACTIONS_BY_KEY
        tab = self._screen.tab
        commands = tab.commands if tab.has_page else ()
        return is_of_tab(key, replace(self._screen.situation, commands=commands))

    def tab_turned(self) -> None:
        """Does what was typed ahead of the shown tab, where that is read; forgets it where nothing is read any more."""
        screen = self._screen
        if screen.tab.is_ready and screen.tab_name != self.awaited:
            screen.type_kept(screen.tab_name)
        elif not self.awaited:
            screen.ahead.forget()

    def opened_above(self) -> None:
        """Does what was typed ahead of what has opened above the tabs."""
        for key, character in self._screen.ahead.take(_ABOVE):
            self._screen.press_above(key, character)
