"""Keys that wait for what is still being read: for the shown tab, or for what opens above the tabs."""

from __future__ import annotations

from typing import Protocol

from tpuprof.tui.app.context import AppContext
from tpuprof.tui.app.current_run import CurrentRun
from tpuprof.tui.terminal.grammar import READING, verbs_of
from tpuprof.tui.terminal.pressed import KeysAhead
from tpuprof.tui.widgets.chrome import act_of
from tpuprof.tui.widgets.tab import Tab

_ABOVE = "above"  # what is typed ahead of what opens above the tabs is kept under
_AT_ONCE = frozenset(
    (
        *("pick", "next_tab", "previous_tab", "runs", "hosts", "compare", "capture", "notes", "reload"),
        *("back", "background", "help", "palette", "quit", "leave"),
    )
)
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
