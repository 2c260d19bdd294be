"""What every app of this program does with its terminal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.message import Message

from tpuprof.tui.widgets.chrome import APP_NAME
from tpuprof.tui.widgets.line_canvas import Look

if TYPE_CHECKING:
    from tpuprof.tui.terminal.detect import Terminal


APP_KEYS = ("ctrl+c", "ctrl+q", "ctrl+z")
"""Keys that mean the same whatever is open."""


def hold_terminal(app: App[Any]) -> None:
    """Draws everything when the app comes back from the background, and restores the terminal when a signal ends it.

    Call it when the app is mounted.
    """
    # the terminal comes back empty, and of the size it had, so that nothing else draws it
    app.app_resume_signal.subscribe(app, lambda _: app.screen.refresh())
    if app._driver is not None and not app.is_headless:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, partial(app.exit, return_code=128 + number))


class CommandApp(App[int]):
    """The app around the screens of a command.

    Args:
        terminal: what the terminal can do.
        environ: for the clipboard and the editor.
    """

    TITLE = APP_NAME
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
    ]

    def __init__(self, terminal: Terminal, environ: Mapping[str, str] | None = None) -> None:
        # Native colours: what the palette says goes to the terminal as it is.
        super().__init__(ansi_color=True)
        self.look = Look.of(terminal)
        self._environ = os.environ if environ is None else environ


class Yanked(Message):
    """A text was copied: to tmux too, and to a file (`where`: its path, or why not)."""

    def __init__(self, text: str, in_tmux: bool, where: str) -> None:
        super().__init__()
        self.text = text
        self.in_tmux = in_tmux
        self.where = where

    @property
    def places(self) -> str:
        """Where the text is now, for a sentence."""
        return f"{'tmux, ' if self.in_tmux else ''}the terminal (if it takes OSC 52) and {self.where}"
