"""Capturing from within the app: asks for addresses, shows the count-down, ends it early, opens the new run."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.base.urls import printable_url, scheme_of
from tpuprof.parsers.capture.model import CaptureOptions, CaptureProgress, CaptureResult, CaptureStop, parse_addresses
from tpuprof.parsers.files.folder_search import Folder
from tpuprof.tui.app.context import AppContext
from tpuprof.tui.app.current_run import CurrentRun
from tpuprof.tui.app.loader import Request
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.widgets.asking import PromptPopup
from tpuprof.tui.widgets.popup import TextPopup, meanings

ASKED_AT_FIRST = "localhost:9012 2000"
EXPLANATION = (
    "Address of a running program's profiler server, host:port; several are captured at once into one run. A "
    "number at the end is the time to trace in milliseconds. Tracer levels may follow: host=0 to 3, device=0 or 1, "
    "python=0 or 1; snapshot fetches what the server has kept, if continuous profiling is on.",
    "The program starts the server: jax.profiler.start_server(9012), xp.start_server(9012) in PyTorch/XLA, "
    "tf.profiler.experimental.server.start(9012) in TensorFlow.",
)

_ABOUT = meanings(
    ("", "A capture asks the profiler in a running program to trace it for a while, and writes the profile."),
    ("address", "host:port of the profiler's server. Several addresses are traced at once, as the hosts of one run."),
    ("time", "milliseconds, the last number; 2000 by default."),
    ("meanwhile", "the footer counts down. Esc ends the tracing and keeps the profile so far; again discards it."),
    (
        "nothing",
        "a program that has nothing to trace answers with an empty profile; it runs one profiling session at a time.",
    ),
)

DEFAULT_MS = 2000
PROGRESS_SECONDS = 0.1
_MOST_DIGITS = 20  # of a time that are looked at; it is too long before that


@dataclass(frozen=True, slots=True)
class CaptureEnded:
    """A capture is over: a new run, or why there is none; None where it was given up."""

    result: CaptureResult | ProfileError | None
    logdir: str


class Captures:
    """Captures profiles, one at a time, beside what the tabs show, and opens them."""

    def __init__(self, context: AppContext, current_run: CurrentRun, is_demo: bool, is_of_hlo: bool) -> None:
        self._context = context
        self._current_run = current_run
        self._shows_demo = is_demo
        self._is_of_hlo = is_of_hlo
        self._stop: CaptureStop | None = None
        self._captured: dict[str, CaptureProgress] = {}
        self._asked = ASKED_AT_FIRST
        self._has_warned = False  # whether it was said that leaving now ends the capture

    @property
    def is_under_way(self) -> bool:
        return self._stop is not None

    @property
    def where_to_write(self) -> tuple[str, str]:
        """Where a captured run goes, and what there is to say of it, for the end of a sentence.

        That is the logdir of the run that is shown, else the working folder.
        """
        run = self._current_run.run
        path = self._current_run.path if run is None else run.path
        here = ", in the working folder"
        if self._shows_demo:
            return os.curdir, f"{here}, and shows that folder instead of the demo"
        if scheme_of(path):
            return os.curdir, f"{here}, and shows that folder: {printable_url(path)} is not a local one"
        if run is None or self._is_of_hlo:
            return os.curdir, here
        is_folder = os.path.isdir(path)
        folder = os.path.abspath(path if is_folder else os.path.dirname(path))
        if Folder(folder).is_run_folder():
            folder = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
        words = "" if is_folder else f", where {printable_url(os.path.basename(path))} is"
        return folder if os.path.isabs(path) else os.path.relpath(folder), words

    def ask(self) -> None:
        """Asks which servers to capture from, and says before where the run will lie."""
        logdir, words = self.where_to_write
        folder = os.path.abspath(os.path.join(os.path.expanduser(logdir), "plugins", "profile"))
        where, answered = f"Writes to {_shortened(folder)}{words}.", partial(self.begin, logdir)
        look = self._context.look
        self._context.open(PromptPopup(look, "Capture a profile", EXPLANATION, self._asked, answered, _ABOUT, where))

    def begin(self, logdir: str, text: str) -> str:
        """Begins a capture; says what is wrong with the text.

        The text has addresses, then milliseconds, else `DEFAULT_MS`; tracer levels (``python=1``) or ``snapshot``.
        """
        words = text.replace(",", " ").split()
        tracers = [words.pop(at) for at in range(len(words) - 1, -1, -1) if "=" in words[at] or words[at] == "snapshot"]
        levels, wrong = _levels(tracers)
        if wrong:
            return wrong
        # A number alone is a port without its host rather than a time for addresses of old.
        has_time = len(words) > 1 and words[-1].isascii() and words[-1].isdecimal()
        digits = words.pop().lstrip("0")[:_MOST_DIGITS] or "0" if has_time else str(DEFAULT_MS)
        try:
            addresses = [str(address) for address in parse_addresses(words)]
            options = replace(CaptureOptions(duration_ms=int(digits), is_snapshot="snapshot" in tracers), **levels)
        except ProfileError as error:
            return f"{error.sentence} Try {error.hint}." if error.hint else error.sentence
        self._asked = text
        self._stop, self._captured, self._has_warned = CaptureStop(), {}, False
        self._context.work("capture", partial(self._capture, addresses, options, logdir, self._stop))
        self._context.redraw()
        return ""

    def warns(self, has_room: bool) -> bool:
        """Whether to leave only when asked again: the first time during a capture, where there is room to say why."""
        if self._stop is None or self._has_warned or not has_room:
            return False
        self._has_warned = True
        self._context.flash = "Capturing: q again leaves without it, Esc ends and keeps it"
        self._context.redraw()
        return True

    def _capture(self, addresses: list[str], options: CaptureOptions, logdir: str, stop: CaptureStop) -> None:
        from tpuprof.parsers.capture.session import capture  # noqa: PLC0415 - numpy and protobuf

        told: dict[str, tuple[str, float]] = {}

        def tell(progress: CaptureProgress) -> None:
            stage, seconds = told.get(progress.address, ("", 0.0))
            if progress.stage != stage or time.monotonic() - seconds >= PROGRESS_SECONDS:
                told[progress.address] = (progress.stage, time.monotonic())
                self._context.post_news(self, progress)

        result: CaptureResult | ProfileError | None
        try:
            result = capture(addresses, options, logdir, tell, stop)
        except ProfileError as error:
            result = error
        except Cancelled:
            result = None
        self._context.post_news(self, CaptureEnded(result, logdir))

    def stop(self) -> None:
        """Ends the tracing and keeps what was traced; the second time gives up."""
        if self._stop is not None:
            self._stop.request()
            self._context.redraw()

    def end(self) -> None:
        if self._stop is not None:
            self._stop.give_up()

    def take(self, news: CaptureProgress | CaptureEnded) -> None:
        """Keeps how far it is; at the end opens the new run, or says why there is none."""
        if isinstance(news, CaptureEnded):
            self._stop, self._has_warned = None, False
            self._open(news.result, news.logdir)
        elif self._stop is not None:
            self._captured[news.address] = news
        self._context.redraw()

    def _open(self, result: CaptureResult | ProfileError | None, logdir: str) -> None:
        if result is None:
            self._context.flash = "The capture was discarded"
        elif isinstance(result, ProfileError):
            lines = partial(_error_lines, result)
            self._context.open(TextPopup(self._context.look, "Nothing was captured", lines, _ABOUT))
        else:
            self._current_run.path, self._shows_demo = logdir, False
            self._current_run.load(Request(logdir, os.path.basename(result.run_path)))
            failed = f"; {counted(len(result.failed), 'address', 'addresses')} gave none" if result.failed else ""
            captured = f"Captured {counted(len(result.written), 'host')}{failed}"
            self._context.flash = f"{captured} into {_shortened(result.run_path)}"

    @property
    def words(self) -> str:
        moved = self._captured.values()
        traced = [server.left_ms for server in moved if server.stage == "tracing" and server.left_ms is not None]
        stages = [progress.stage for progress in moved if progress.stage not in ("written", "failed")]
        hosts = f" {counted(len(moved), 'address', 'addresses')}" if len(moved) > 1 else ""
        if self._stop is not None and self._stop.is_requested:
            return "Ending the capture; Esc again discards it"
        if traced:
            return f"Tracing{hosts}, {max(traced) / 1000:.1f} s left; Esc ends it and keeps the profile so far"
        words = stages[0].capitalize() if stages else "Writing" if moved else "Connecting"
        is_traced = words in ("Receiving", "Writing")
        return f"{words}{hosts}; Esc {'twice ' if is_traced else ''}discards it"


def _levels(words: list[str]) -> tuple[dict[str, Any], str]:
    """Tracer levels by the names of `CaptureOptions`, or a sentence on what is wrong with a word."""
    levels: dict[str, Any] = {}
    for name, _, level in (word.partition("=") for word in words if word != "snapshot"):
        if name not in ("host", "device", "python") or not (level.isascii() and level.isdecimal() and len(level) == 1):
            return {}, f"{printable(name)}={printable(level)} is not a tracer level. Try host=2, device=1 or python=1."
        levels[f"{name}_tracer_level"] = int(level)
    return levels, ""


def _shortened(path: str) -> str:
    """A path as people write it: with ``~`` for the home folder."""
    home = os.path.expanduser("~").rstrip("/")
    return printable_url(f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path)


def _error_lines(error: ProfileError, pen: Pen) -> list[Line]:
    lines = pen.wrap(error.sentence, "text")
    return lines + pen.wrap(error.hint, "dim", [("try: ", "key")]) if error.hint else lines
