"""Keys that wait for what is still being read: for the shown tab, or for what opens above the tabs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tpuprof.tui.app.keys.actions import ACTIONS_BY_KEY, is_of_tab
from tpuprof.tui.widgets.screen import AppScreen

if TYPE_CHECKING:
    from tpuprof.tui.app.app import MainScreen

_ABOVE = "above"  # what is typed ahead of what opens above the tabs is kept under


class Waiting:
    """Says which keys of the main screen have to wait, and does them when what they are for is there.

    Attributes:
        has_begun: whether the first load has begun.
    """

    def __init__(self, screen: MainScreen) -> None:
        self.has_begun = False
        self._screen = screen

    @property
    def awaited(self) -> str:
        """What is still being read before keys can mean anything on it: what opens above the tabs, or the shown tab."""
        screen = self._screen
        if screen.current_run.is_loading_above:
            return _ABOVE
        is_coming = screen.current_run.is_loading or not self.has_begun
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
            self._screen.call_later(self._press_above, key, character)

    def _press_above(self, key: str, character: str | None) -> None:
        screen = self._screen.app.screen
        if isinstance(screen, AppScreen):
            screen.press(key, character)
