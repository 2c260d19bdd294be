"""The screen of ``tpuprof-tui live``: asks the runtime every so often, on a thread, and shows what it reports."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from textual import work

from tpuprof.parsers.base.errors import EXIT_OK, ProfileError
from tpuprof.parsers.capture.runtime_metrics import Device, Reading, headline
from tpuprof.tui.draw.layout import Composed
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.live.drawing import LiveView, compose, head_line, meaning_lines
from tpuprof.tui.terminal.detect import Terminal
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import ROW_KEYS, KeyRow
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.page_screen import PageScreen
from tpuprof.tui.widgets.screen import ScreenApp

Read = Callable[[], Reading]  # asks the runtime once
MOST_READINGS = 3_600  # that are kept: an hour at one a second
_CAPTURES = "Capture a profile of the program and open it; closing it returns here"


class LiveScreen(PageScreen[Device]):
    """Shows the readings."""

    content: deque[Reading]

    def __init__(
        self,
        addresses: Sequence[str],
        every_seconds: float,
        readings: deque[Reading],
        captures: Sequence[float],
        look: ScreenLook,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(readings, look, environ=environ, is_alone=True)
        self.addresses, self.every_seconds = tuple(addresses), every_seconds
        self.problem = ""
        self.view: LiveView = LiveView(captures=tuple(captures))
        self._shown: tuple[Reading, ...] = tuple(readings)

    @property
    def rows(self) -> Sequence[Device]:
        """The devices."""
        return self._shown[-1].devices if self._shown else ()

    @property
    def keys(self) -> Sequence[KeyRow]:
        """The keys of this screen."""
        *colors, about, _, leave = self.last_keys()
        return (
            replace(ROW_KEYS[0], short="device", title="Next, previous device"),
            KeyRow("capture", "capture", _CAPTURES, {"capture": self._capture}),
            KeyRow("hold", "pause", "Freeze the figures; readings continue", {"hold": self._pause}),
            KeyRow("copy", "copy", "Copy the sentence at the top", {"copy": self._copy}),
            *(*colors, about, leave),
        )

    def take(self, reading: Reading | None, problem: str) -> None:
        """Takes note of a reading, or of why there is none."""
        if reading is not None:
            self.content.append(reading)
        self.problem = problem
        if not self.view.is_paused:
            self._shown = tuple(self.content)
            self.redraw()

    def head_line(self, pen: Pen) -> AnyLine:
        """Who is asked, and how often."""
        return head_line(self.addresses, self.every_seconds, self.view, pen)

    def compose_page(self, pen: Pen, height: int) -> Composed:
        """The answer, the devices and the last minutes."""
        return compose(self._shown, self.problem, self.view, pen, height)

    def meaning_lines(self, pen: Pen) -> list[Line]:
        """What the figures mean."""
        return meaning_lines(self._shown[-1].unknown if self._shown else {}, pen)

    def _capture(self) -> None:
        self.app.exit("capture", return_code=EXIT_OK)

    def _pause(self) -> None:
        self.view = replace(self.view, is_paused=not self.view.is_paused)
        self._shown = tuple(self.content)

    def _copy(self) -> None:
        if self._shown:
            self.copy(headline(self._shown[-1]))


class LiveApp(ScreenApp):
    """Shows the chips right now; its result is ``capture`` where the user asks for one.

    Args:
        every_seconds: from one reading to the next.
        captures: when captures were taken.

    Attributes:
        readings: those of before and the new ones, at most `MOST_READINGS`.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        read: Read,
        every_seconds: float,
        terminal: Terminal,
        *,
        readings: Iterable[Reading] = (),
        captures: Sequence[float] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(terminal, environ)
        self.readings = deque(readings, maxlen=MOST_READINGS)
        self._screen_made = LiveScreen(addresses, every_seconds, self.readings, captures, self.look, self.environ)
        self._read = read
        self._every_seconds = every_seconds
        self._ended = threading.Event()

    def get_default_screen(self) -> LiveScreen:
        """The chips."""
        return self._screen_made

    def on_mount(self) -> None:
        """Begins to ask."""
        self.call_after_refresh(self._go_on_asking)

    def on_unmount(self) -> None:
        """Lets the asking thread end."""
        self._ended.set()

    @work(thread=True, group="live", description="live")
    def _go_on_asking(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            reading, problem = None, ""
            try:
                reading = self._read()
            except ProfileError as error:
                problem = f"{error.sentence} Try: {error.hint}."
            if self.is_running and not self._ended.is_set():
                self.call_later(self._screen_made.take, reading, problem)
            self._ended.wait(max(0.05, self._every_seconds - (time.monotonic() - began)))


APP = LiveApp
