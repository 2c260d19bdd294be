"""The screen of ``tpuprof-tui live``: asks the runtime every so often, on a thread, and shows what it reports."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

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
from tpuprof.tui.widgets.lists.screen import ListScreen
from tpuprof.tui.widgets.lists.view import ListView
from tpuprof.tui.widgets.screen import ScreenApp

Read = Callable[[], Reading]  # asks the runtime once
MOST_READINGS = 3_600  # that are kept: an hour at one a second
_CAPTURES = "Capture a profile of the program and open it; closing it returns here"


class DeviceList(ListView[Device]):
    """The devices as they were read last."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self.readings, self.problem = tuple(readings), ""
        self.listing = LiveView()

    @property
    def rows(self) -> Sequence[Device]:
        return self.readings[-1].devices if self.readings else ()

    def compose(self, pen: Pen, height: int) -> Composed:
        return compose(self.readings, self.problem, self.listing, pen, height)


class LiveScreen(ListScreen):
    """Shows the readings."""

    content: deque[Reading]

    def __init__(
        self,
        addresses: Sequence[str],
        every_seconds: float,
        readings: deque[Reading],
        look: ScreenLook,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(readings, look, environ=environ, is_alone=True)
        self.addresses, self.every_seconds = tuple(addresses), every_seconds

    @cached_property
    def listed(self) -> DeviceList:
        return DeviceList(self.content)

    @property
    def keys(self) -> Sequence[KeyRow]:
        *colors, about, _, leave = self.last_keys()
        return (
            replace(ROW_KEYS[0], short="device", title="Next, previous device"),
            KeyRow("capture", "capture", _CAPTURES, {"capture": lambda: self.app.exit("capture", return_code=EXIT_OK)}),
            KeyRow("hold", "pause", "Freeze the figures; readings continue", {"hold": self._pause}),
            KeyRow("copy", "copy", "Copy the sentence at the top", {"copy": self._copy}),
            *(*colors, about, leave),
        )

    def take(self, reading: Reading | None, problem: str) -> None:
        """Takes note of a reading, or of why there is none."""
        if reading is not None:
            self.content.append(reading)
        self.listed.problem = problem
        if not self.listed.listing.is_paused:
            self.listed.readings = tuple(self.content)
            self.redraw()

    def head_line(self, pen: Pen) -> AnyLine:
        return head_line(self.addresses, self.every_seconds, self.listed.listing, pen)

    def meaning_lines(self, pen: Pen) -> list[Line]:
        readings = self.listed.readings
        return meaning_lines(readings[-1].unknown if readings else {}, pen)

    def _pause(self) -> None:
        self.listed.listing = replace(self.listed.listing, is_paused=not self.listed.listing.is_paused)
        self.listed.readings = tuple(self.content)

    def _copy(self) -> None:
        if self.listed.readings:
            self.copy(headline(self.listed.readings[-1]))


class LiveApp(ScreenApp):
    """Shows the chips right now; its result is ``capture`` where the user asks for one.

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
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(terminal, environ)
        self.readings = deque(readings, maxlen=MOST_READINGS)
        self._screen_made = LiveScreen(addresses, every_seconds, self.readings, self.look, self.environ)
        self._read = read
        self._every_seconds = every_seconds
        self._ended = threading.Event()

    def get_default_screen(self) -> LiveScreen:
        return self._screen_made

    def on_mount(self) -> None:
        self.call_after_refresh(self._go_on_asking)

    def on_unmount(self) -> None:
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
