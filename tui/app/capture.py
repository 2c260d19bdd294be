"""Capturing from within the app: asks for addresses, shows the count-down, ends it early, opens the new run."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING

from textual import work
from textual.events import Paste
from textual.geometry import Size
from textual.message import Message

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.remote.urls import scheme_of, shown
from tpuprof.tui.app.jumps import JumpingApp
from tpuprof.tui.app.loader import Request
from tpuprof.tui.draw.layout import wrap
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.widgets.asking import Asker
from tpuprof.tui.widgets.chrome import is_too_small
from tpuprof.tui.widgets.popup import PopupLayer
from tpuprof.tui.widgets.tab import OpenText

if TYPE_CHECKING:
    from tpuprof.parsers.capture.model import CaptureOptions, CaptureProgress, CaptureResult, CaptureStop

ASKED_AT_FIRST = "localhost:9012 2000"
EXPLANATION = (
    "Address of a running program's profiler server, host:port; several are captured at once into one run. A number "
    "at the end is the time to trace in milliseconds.",
    "The program starts the server: jax.profiler.start_server(9012), xp.start_server(9012) in PyTorch/XLA, "
    "tf.profiler.experimental.server.start(9012) in TensorFlow.",
)

DEFAULT_MS = 2000
PROGRESS_SECONDS = 0.1
_MOST_DIGITS = 20
"""Of a time that are looked at; it is too long before that."""


class CaptureMoved(Message):
    """Where one server's capture stands."""

    def __init__(self, progress: CaptureProgress) -> None:
        super().__init__()
        self.progress = progress


class CaptureEnded(Message):
    """A capture is over: a new run, or why there is none; None where it was given up."""

    def __init__(self, result: CaptureResult | ProfileError | None, logdir: str) -> None:
        super().__init__()
        self.result = result
        self.logdir = logdir


class CapturingApp(JumpingApp):
    """The part of the app that captures profiles."""

    popups: PopupLayer
    size: Size
    _capture_stop: CaptureStop | None = None
    _captured: dict[str, CaptureProgress]
    _asked = ASKED_AT_FIRST
    _has_moved = False
    """A capture was written, and its logdir is shown since."""
    _is_told = False
    """Whether it was said that leaving now ends the capture."""

    @property
    def is_capturing(self) -> bool:
        """Whether a capture is under way."""
        return self._capture_stop is not None

    @property
    def where_to_write(self) -> tuple[str, str]:
        """Where a captured run goes, and what there is to say of it, for the end of a sentence.

        That is the logdir of the run that is shown, else the working folder.
        """
        from tpuprof.parsers.files.folder_search import Folder  # noqa: PLC0415

        run = self.run_shown
        path = self.path if run is None else run.path
        if self._shows_demo:
            return os.curdir, ", in the working folder, and shows that folder instead of the demo"
        if scheme_of(path):
            return os.curdir, f", in the working folder, and shows that folder: {shown(path)} is not a local one"
        if run is None or self.options.only_hlo:
            return os.curdir, ", in the working folder"
        is_folder = os.path.isdir(path)
        folder = os.path.abspath(path if is_folder else os.path.dirname(path))
        if Folder(folder).is_run_folder():
            folder = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
        words = "" if is_folder else f", for {shown(os.path.basename(path))} lies there"
        return folder if os.path.isabs(path) else os.path.relpath(folder), words

    @property
    def _shows_demo(self) -> bool:
        return self.options.demo and not self._has_moved

    def action_capture(self) -> None:
        """Asks which servers to capture from, and says before where the run will lie."""
        logdir, words = self.where_to_write
        where = f"Writes to {_run_parent(logdir)}{words}."
        answered = partial(self._begin_or_refuse, logdir)
        asker = Asker(self.look, "Capture a profile", EXPLANATION, self._asked, answered, where)
        self.popups.open(asker, self.size)

    def _begin_or_refuse(self, logdir: str, text: str) -> str:
        """Begins the capture; answers what is wrong with the text, for which the panel grows."""
        wrong = self.begin_capture(text, logdir)
        if wrong:
            self.call_later(self.popups.fit, self.size)
        return wrong

    def begin_capture(self, text: str, logdir: str) -> str:
        """Begins a capture from addresses and a time, as typed; says what is wrong with them.

        Args:
            text: the addresses, and behind them the time in milliseconds, or none for `DEFAULT_MS`.
            logdir: where the run goes.
        """
        from tpuprof.parsers.capture.model import CaptureOptions, CaptureStop, parse_addresses  # noqa: PLC0415

        words = text.replace(",", " ").split()
        # A number alone is a port without its host rather than a time for addresses of old.
        has_time = len(words) > 1 and words[-1].isascii() and words[-1].isdecimal()
        digits = words.pop().lstrip("0")[:_MOST_DIGITS] or "0" if has_time else str(DEFAULT_MS)
        try:
            addresses = [str(address) for address in parse_addresses(words)]
            options = CaptureOptions(duration_ms=int(digits))
        except ProfileError as error:
            return f"{error.sentence} Try {error.hint}." if error.hint else error.sentence
        self._asked = text
        self._capture_stop, self._captured, self._is_told = CaptureStop(), {}, False
        self._capture(addresses, options, logdir, self._capture_stop)
        self.redraw_chrome()
        return ""

    def on_paste(self, event: Paste) -> None:
        """Puts a text of the clipboard into the line that is open, if one is."""
        popup = self.popups.popup
        if isinstance(popup, Asker):
            popup.paste(event.text)
            self.popups.redraw()

    async def action_quit(self) -> None:
        """Leaves; the first time during a capture it says only what that would cost, where there is room to."""
        if self.is_capturing and not self._is_told and not is_too_small(*self.size):
            self._is_told = True
            self._flash = "Capturing: q again leaves without it, Esc ends and keeps it"
            self.redraw_chrome()
        else:
            await super().action_quit()

    @work(thread=True, exclusive=True, group="capture", description="capture")
    def _capture(self, addresses: list[str], options: CaptureOptions, logdir: str, stop: CaptureStop) -> None:
        from tpuprof.parsers.capture.session import capture  # noqa: PLC0415 - brings gRPC

        told: dict[str, tuple[str, float]] = {}

        def tell(progress: CaptureProgress) -> None:
            stage, at = told.get(progress.address, ("", 0.0))
            if progress.stage != stage or time.monotonic() - at >= PROGRESS_SECONDS:
                told[progress.address] = (progress.stage, time.monotonic())
                self._post_if_running(CaptureMoved(progress))

        result: CaptureResult | ProfileError | None
        try:
            result = capture(addresses, options, logdir, tell, stop)
        except ProfileError as error:
            result = error
        except Cancelled:
            result = None
        self._post_if_running(CaptureEnded(result, logdir))

    def stop_capture(self) -> None:
        """Ends the tracing and keeps what was traced; the second time gives up."""
        if self._capture_stop is not None:
            self._capture_stop.request()
            self.redraw_chrome()

    def on_capture_moved(self, message: CaptureMoved) -> None:
        """Draws how far it is."""
        if self.is_capturing:
            self._captured[message.progress.address] = message.progress
            self.redraw_chrome()

    def on_capture_ended(self, message: CaptureEnded) -> None:
        """Opens the new run, or says why there is none."""
        self._capture_stop, self._is_told = None, False
        result = message.result
        if result is None:
            self._flash = "The capture was given up"
        elif isinstance(result, ProfileError):
            self.post_message(OpenText("Nothing was captured", partial(_error_lines, result)))
        else:
            self.path, self._has_moved = message.logdir, True
            self.load(Request(message.logdir, os.path.basename(result.run_path)))
            failed = f"; {counted(len(result.failed), 'address', 'addresses')} gave none" if result.failed else ""
            self._flash = f"Captured {counted(len(result.written), 'host')}{failed} into {_shortened(result.run_path)}"
        self.redraw_chrome()

    @property
    def capture_words(self) -> str:
        """The count-down, for the footer."""
        moved = self._captured.values()
        traced = [
            progress.left_ms for progress in moved if progress.stage == "tracing" and progress.left_ms is not None
        ]
        stages = [progress.stage for progress in moved if progress.stage not in ("written", "failed")]
        hosts = f" {counted(len(moved), 'address', 'addresses')}" if len(moved) > 1 else ""
        if self._capture_stop is not None and self._capture_stop.is_requested:
            return "Ending the capture; Esc again gives it up"
        if traced:
            return f"Tracing{hosts}, {max(traced) / 1000:.1f} s left; Esc ends it and keeps what was traced"
        words = stages[0].capitalize() if stages else "Writing" if moved else "Connecting"
        is_traced = words in ("Receiving", "Writing")
        return f"{words}{hosts}; Esc {'twice ' if is_traced else ''}gives it up"


def _run_parent(logdir: str) -> str:
    """The folder that a run of a logdir goes into, to read."""
    return _shortened(os.path.abspath(os.path.join(os.path.expanduser(logdir), "plugins", "profile")))


def _shortened(path: str) -> str:
    """A path as people write it: with ``~`` for the home folder."""
    home = os.path.expanduser("~").rstrip("/")
    return shown(f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path)


def _error_lines(error: ProfileError, width: int, glyphs: Glyphs) -> list[Line]:
    """What went wrong, and what to try."""
    lines = wrap(error.sentence, width, "text", glyphs)
    return lines + wrap(error.hint, width, "dim", glyphs, [("try: ", "key")]) if error.hint else lines
