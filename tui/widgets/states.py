"""What stands where a page will be: searching, decoding, cancelled, or why there is no page. Pure drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.format import count, size
from tpuprof.tui.draw.layout import fit, wrap
from tpuprof.tui.draw.spans import Glyphs, Line, Span
from tpuprof.tui.widgets.chrome import events, progress_bar, wait

if TYPE_CHECKING:
    from tpuprof.parsers.base.errors import ProfileError
    from tpuprof.parsers.hosts.progress import Progress

_WIDEST = 88


@dataclass(frozen=True, slots=True)
class Searching:
    """Folders are being looked through for runs."""

    path: str


@dataclass(frozen=True, slots=True)
class Decoding:
    """A run is being read; no progress yet where `progress` is None."""

    run: str
    progress: Progress | None = None
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """The user cancelled; `run` is empty where it was the search."""

    run: str
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no page, for this reason; `searched` says what was looked for where."""

    error: ProfileError
    searched: tuple[str, ...] = ()
    other_runs: int = 0


State = Searching | Decoding | Stopped | Failed


def state_lines(state: State, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """A state in the middle of the page, a third down."""
    inner = min(width - 4, _WIDEST)
    block = _block(state, inner, glyphs)
    left = (width - inner) // 2
    above = max(0, (height - len(block)) // 3)
    blank: Line = ((" " * width, "text"),)
    body: list[Line] = [((" " * left, "text"), *line, (" " * (width - left - inner), "text")) for line in block]
    return [*([blank] * above), *body, *([blank] * (height - above - len(body)))]


def _block(state: State, width: int, glyphs: Glyphs) -> list[Line]:
    """A heading, what there is to say, and the keys that do something about it."""
    match state:
        case Searching(path):
            head: Span = ("Looking for profiles", "title")
            body, keys = wrap(path, width, "text", glyphs), [("Esc", "stop")]
        case Decoding(run, progress, left):
            head, keys = ("Reading the profile", "title"), [("Esc", "cancels")]
            body = wrap(run, width, "strong", glyphs) + _progress(progress, left, width, glyphs)
        case Stopped(run, progress):
            head, words = ("Cancelled", "warn"), "Stopped looking for profiles."
            if progress is not None:
                far = (
                    f"{size(progress.bytes_done)} of {size(progress.bytes_total)}, {count(progress.events_done)} events"
                )
                words = f"Stopped reading {run} at {far}."
            elif run:
                words = f"Stopped before anything of {run} was read."
            body = wrap(words, width, "text", glyphs)
            keys = [("r", "load again"), *([("R", "choose another run")] if run else []), ("q", "quit")]
        case Failed(error, searched, runs):
            head, body = ("Nothing to show", "bad"), _why(error, searched, width, glyphs)
            keys = [("r", "look again"), *([("R", f"choose among {runs} runs")] if runs > 1 else []), ("q", "quit")]
    foot: list[Span] = [span for key, label in keys for span in ((key, "key"), (f" {label}    ", "dim"))]
    blank = fit([], width, glyphs)
    return [fit([head], width, glyphs), blank, *body, blank, fit(foot, width, glyphs)]


def _progress(progress: Progress | None, seconds_left: float | None, width: int, glyphs: Glyphs) -> list[Line]:
    bar, blank = min(50, width - 2), fit([], width, glyphs)
    if progress is None:
        return [blank, fit([(glyphs.light * bar, "rule")], width, glyphs), blank]
    done, total = progress.bytes_done, progress.bytes_total
    figures: list[Span] = [
        (f"host {progress.host_index + 1} of {progress.host_count}", "text"),
        (f"   {size(done)}", "strong"),
        (f" of {size(total)}", "dim"),
        (f"   {events(progress.events_done)}", "strong"),
        (" events", "dim"),
    ]
    if seconds_left is not None:
        figures += [(f"   {wait(seconds_left)}", "strong"), (" left", "dim")]
    full, rest = progress_bar(done, total, bar, glyphs)
    drawn: list[Span] = [(full, "key"), (rest, "rule")]
    return [*wrap(progress.host, width, "dim", glyphs), fit(drawn, width, glyphs), fit(figures, width, glyphs)]


def _why(error: ProfileError, searched: Sequence[str], width: int, glyphs: Glyphs) -> list[Line]:
    lines, blank = wrap(error.sentence, width, "text", glyphs), fit([], width, glyphs)
    if error.hint:
        lines += [blank, *wrap(error.hint, width, "text", glyphs, [("try: ", "key")])]
    if searched:
        lines += [blank, fit([("Searched", "dim")], width, glyphs)]
        for line in searched:
            lines += wrap(line, width, "dim", glyphs, [(f"{glyphs.dot} ", "dim")])
    return lines
