"""The app around the comparison of two runs, for ``tpuprof-tui diff``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tpuprof.tui.pages.diff.screen import DiffScreen
from tpuprof.tui.widgets.terminal_app import CommandApp, hold_terminal

if TYPE_CHECKING:
    from tpuprof.parsers.diff.model import Diff
    from tpuprof.tui.terminal.detect import Terminal


class DiffApp(CommandApp):
    """Shows a comparison.

    Args:
        diff: the comparison.
        terminal: what the terminal can do.
        environ: for the clipboard.
    """

    def __init__(self, diff: Diff, terminal: Terminal, *, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(terminal, environ)
        self.diff = diff

    def get_default_screen(self) -> DiffScreen:
        """The comparison."""
        return DiffScreen(self.diff, self.look, environ=self._environ, is_alone=True)

    def on_mount(self) -> None:
        """Lets the terminal be restored whatever ends the app."""
        hold_terminal(self)
