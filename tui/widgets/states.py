"""What stands where a page will be: searching, decoding, cancelled, or why there is no page. Pure drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.format import count, size
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, Span
from tpuprof.tui.widgets.chrome import fetched_or_events, progress_bar, wait

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


def state_lines(state: State, pen: Pen, height: int) -> list[Line]:
    """A state in the middle of the page, a third down."""
    inner = min(pen.width - 4, _WIDEST)
    block = _block(state, pen.at(inner))
    left = (pen.width - inner) // 2
    above = max(0, (height - len(block)) // 3)
    blank: Line = ((" " * pen.width, "text"),)
    body: list[Line] = [((" " * left, "text"), *line, (" " * (pen.width - left - inner), "text")) for line in block]
    return [*([blank] * above), *body, *([blank] * (height - above - len(body)))]


def _block(state: State, pen: Pen) -> list[Line]:
    """A heading, what there is to say, and the keys that do something about it."""
    match state:
        case Searching(path):
            head: Span = ("Looking for profiles", "title")
            body, keys = pen.wrap(path, "text"), [("Esc", "stop")]
        case Decoding(run, progress, left):
            head, keys = ("Reading the profile", "title"), [("Esc", "cancels")]
            body = pen.wrap(run, "strong") + _progress(progress, left, pen)
        case Stopped(run, progress):
            head, words = ("Cancelled", "warn"), "Stopped looking for profiles."
            if progress is not None:
                read = f"{size(progress.bytes_done)} of {size(progress.bytes_total)}"
                words = f"Stopped reading {run} at {read}, {count(progress.events_done)} events."
            elif run:
                words = f"Stopped before any of {run} was read."
            body = pen.wrap(words, "text")
            keys = [("r", "load again"), *([("R", "choose another run")] if run else []), ("q", "quit")]
        case Failed(error, searched, runs):
            head, body = ("Nothing to show", "bad"), _why(error, searched, pen)
            keys = [("r", "look again"), *([("R", f"choose among {runs} runs")] if runs > 1 else []), ("q", "quit")]
    foot: list[Span] = [span for key, label in keys for span in ((key, "key"), (f" {label}    ", "dim"))]
    blank = pen.fit([])
    return [pen.fit([head]), blank, *body, blank, pen.fit(foot)]


def _progress(progress: Progress | None, seconds_left: float | None, pen: Pen) -> list[Line]:
    bar, blank = min(50, pen.width - 2), pen.fit([])
    if progress is None:
        return [blank, pen.fit([(pen.glyphs.light * bar, "rule")]), blank]
    done, total = progress.bytes_done, progress.bytes_total
    metrics: list[Span] = [
        (f"host {progress.host_index + 1} of {progress.host_count}", "text"),
        (f"   {size(done)}", "strong"),
        (f" of {size(total)}", "dim"),
        (f"   {fetched_or_events(progress)}", "strong" if progress.is_fetching else "text"),
    ]
    if seconds_left is not None:
        metrics += [(f"   {wait(seconds_left)}", "strong"), (" left", "dim")]
    full, rest = progress_bar(done, total, bar, pen.glyphs)
    drawn: list[Span] = [(full, "key"), (rest, "rule")]
    return [*pen.wrap(progress.host, "dim"), pen.fit(drawn), pen.fit(metrics)]


def _why(error: ProfileError, searched: Sequence[str], pen: Pen) -> list[Line]:
    lines, blank = pen.wrap(error.sentence, "text"), pen.fit([])
    if error.hint:
        lines += [blank, *pen.wrap(error.hint, "text", [("try: ", "key")])]
    if searched:
        places = pen.wrap_all(searched, "dim", [(f"{pen.glyphs.dot} ", "dim")])
        lines += [blank, pen.fit([("Searched", "dim")]), *places]
    return lines
