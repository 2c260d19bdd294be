"""The screen of ``tpuprof-tui oom``: reads a log with progress, then shows its errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key, Resize
from textual.screen import Screen

from tpuprof.parsers.base.errors import EXIT_INTERRUPTED, EXIT_OK, Cancelled, ProfileError
from tpuprof.parsers.memory.live_arrays import LiveArrays
from tpuprof.parsers.memory.oom.model import OomLog, OomReport
from tpuprof.parsers.memory.oom.triage import Triage, triage_of_report
from tpuprof.tui.draw.format import size
from tpuprof.tui.draw.layout import cut_middle
from tpuprof.tui.pages.commands.oom.screen import TriageScreen
from tpuprof.tui.terminal.detect import Terminal
from tpuprof.tui.terminal.theme import AnyLine, AnySpan
from tpuprof.tui.widgets.chrome import keys_line, pad, wait
from tpuprof.tui.widgets.line_canvas import LineCanvas, ScreenLook
from tpuprof.tui.widgets.screen import ScreenApp

Scan = Callable[[Callable[[int], None], Callable[[], bool]], "OomLog"]
"""Reads the log, given a function that takes the bytes read so far, and one that says whether to stop."""

EVERY_SECONDS = 0.1


class ScanScreen(Screen[None]):
    """What shows while a log is read."""

    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    ScanScreen > #scan-page { height: 1fr; }
    ScanScreen > #scan-foot { height: 1; }
    """

    def __init__(self, name: str, total: int, look: ScreenLook) -> None:
        super().__init__(id="_default")
        self.look = look
        self._log_name = name
        self._total = total
        self._bytes_read, self._seconds = 0, 0.0
        self.page = LineCanvas(look, self._draw_page, id="scan-page")
        self.foot = LineCanvas(look, self._draw_foot, background="bar", id="scan-foot")

    def compose(self) -> ComposeResult:
        """Progress, and the keys."""
        yield from (self.page, self.foot)

    def on_mount(self) -> None:
        """Draws the first frame."""
        self.on_resize(Resize(self.app.size, self.app.size))

    def on_resize(self, event: Resize) -> None:
        """Draws for the new size."""
        self.page.prepare(event.size.width, event.size.height - 1)
        self.foot.prepare(event.size.width, 1)

    def show(self, bytes_read: int, seconds: float) -> None:
        """Shows how far it is."""
        self._bytes_read, self._seconds = bytes_read, seconds
        self.page.redraw()

    def on_key(self, event: Key) -> None:
        """Escape stops the reading."""
        if self.look.keys.meant(event.key) in ("escape", "q", "Q"):
            event.stop()
            self.app.exit(EXIT_INTERRUPTED, return_code=EXIT_INTERRUPTED)

    def _draw_page(self, width: int, height: int) -> list[AnyLine]:
        glyphs, done, total = self.look.glyphs, self._bytes_read, self._total
        name = cut_middle(self._log_name, max(8, width - 12), glyphs)
        cells = max(8, min(40, width - 40))
        filled = min(cells, cells * done // total) if total else 0
        metrics = f"  {size(done)} of {size(total)}"
        if 0 < done < total and self._seconds > 1:
            metrics += f"  {wait(self._seconds * (total - done) / done)} left"
        bar: list[AnySpan] = [(glyphs.full * filled, "key"), (glyphs.light * (cells - filled), "rule")]
        lines: list[AnyLine] = [((" " * width, "text"),)] * max(0, height // 2 - 2)
        lines.append(pad([("  reading ", "dim"), (name, "strong")], width, "text"))
        return [*lines, pad([("  ", "text"), *bar, (metrics, "text")], width, "text")]

    def _draw_foot(self, width: int, height: int) -> list[AnyLine]:
        return [keys_line([("Esc", "stop")], width)]


class Triages:
    """The errors of a log, each with its advice once that is asked for: of many a user looks at a few."""

    def __init__(self, reports: Sequence[OomReport], where: str) -> None:
        self._count = len(reports)
        self._triage = cache(lambda place: triage_of_report(reports[place], where))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int, /) -> Triage:
        return self._triage(place)


class OomApp(ScreenApp):
    """Shows the errors of a log.

    Args:
        log, scan: what was read already or, where that is None, what reads the log of `total` bytes, on a thread.
        arrays: the device memory profile that was given with it.

    Attributes:
        oom_log, problem: what the log holds, once it is read, or why it could not be read.
    """

    def __init__(
        self,
        name: str,
        terminal: Terminal,
        *,
        log: OomLog | None = None,
        scan: Scan | None = None,
        total: int = 0,
        arrays: LiveArrays | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(terminal, environ)
        self.log_name = name
        self.oom_log = log
        self.problem: ProfileError | None = None
        self._scan = scan
        self._scanning = ScanScreen(name, total, self.look)
        self._arrays = arrays
        self._stops = False

    def get_default_screen(self) -> Screen[None]:
        """Progress, below the page."""
        return self._scanning

    def on_mount(self) -> None:
        """Shows the errors, or begins to read."""
        if self.oom_log is not None:
            self._shown(self.oom_log)
        else:
            self.call_after_refresh(self._read)

    def on_unmount(self) -> None:
        """Lets the reading thread end at its next chunk, so that leaving does not wait for it."""
        self._stops = True

    @work(thread=True, group="scan", description="scan")
    def _read(self) -> None:
        assert self._scan is not None
        began = due = time.monotonic()

        def on_progress(bytes_read: int) -> None:
            nonlocal due
            now = time.monotonic()
            if now >= due and self.is_running:
                due = now + EVERY_SECONDS
                self.call_later(self._scanning.show, bytes_read, now - began)

        try:
            log = self._scan(on_progress, lambda: self._stops)
        except Cancelled:
            return
        except ProfileError as error:
            self.problem = error
            self.call_from_thread(self.exit, error.exit_code, error.exit_code)
            return
        if self.is_running:
            self.call_later(self._shown, log)

    def _shown(self, log: OomLog) -> None:
        """Shows the errors of a log that was read; ends where it has none."""
        self.oom_log = log
        if not log.reports:
            self.exit(EXIT_OK)
            return
        triages, note = Triages(log.reports, self.log_name), "".join(log.notes[:1])
        self.push_screen(
            TriageScreen(triages, self.look, environ=self.environ, note=note, is_alone=True, arrays=self._arrays)
        )


APP = OomApp
