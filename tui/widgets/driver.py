"""The terminal's driver, which sends only the cells that changed."""

from __future__ import annotations

import curses
from threading import RLock
from typing import Any

from rich.cells import get_character_cell_size
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

from tpuprof.tui.terminal.wire import Wire


class ThriftyDriver(LinuxDriver):
    """Textual's own, but for what it writes: `Wire` says which cells of it the terminal does not show yet."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._wire = Wire(*self._get_terminal_size(), get_character_cell_size, _erases())
        self._lock = RLock()  # modes are set on the thread that reads keys

    def write(self, data: str) -> None:
        """Sends what differs from what the terminal shows."""
        with self._lock:
            out = self._wire.sent(data)
            if out:
                super().write(out)

    def forget(self, width: int, height: int) -> None:
        """Counts no cell of a terminal of this size as known any more: it may have been cleared or written to."""
        with self._lock:
            self._wire.resize(width, height)

    def start_application_mode(self) -> None:
        """Takes the terminal, whose other screen may show anything."""
        self.forget(*self._get_terminal_size())
        super().start_application_mode()  # type: ignore[no-untyped-call]


def _erases() -> bool:
    """Whether the terminal gives erased cells the ground that it writes with, as its description has it."""
    try:
        curses.setupterm()
    except curses.error:  # nobody has described it
        return False
    return curses.tigetflag("bce") > 0 and curses.tigetstr("ech") is not None
