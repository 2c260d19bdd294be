"""Jumps: from an op, a step or a finding on one tab to where another tab has more on it."""

from __future__ import annotations

from tpuprof.tui.app.shown import FIRST
from tpuprof.tui.app.stage import Stage


class Jumps:
    """Does what keys do on one tab alone, which may lead to another one, and finds the way back."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._came_from = FIRST

    def command(self, name: str, by: int = 1) -> None:
        """Does a command of the shown tab."""
        stage, before = self._stage, self._stage.tab_name
        jump = stage.tabs[before].jump(name)
        if jump is None:
            stage.flash = stage.tabs[before].command(name, by)
        else:
            stage.show_tab(jump.tab)
            if jump.what:
                stage.flash = stage.tabs[jump.tab].go_to(jump.what, jump.name, jump.program)
        if stage.tab_name != before:
            self._came_from = before

    def forget(self) -> None:
        """A tab was shown that no jump led to, or a jump begins."""
        self._came_from = FIRST

    def back(self) -> None:
        """Back to where the last jump came from, else to the first tab."""
        self._stage.show_tab(self._came_from)
