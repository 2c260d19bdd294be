"""What stands where a page will be: searching, decoding, cancelled, or why there is no page. Pure drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpuprof.tui.draw.format import count, size
from tpuprof.tui.draw.layout import fit, wrap
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey
from tpuprof.tui.widgets.chrome import events, wait

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
    match state:
        case Searching(path):
            lines = [_head("Looking for profiles", "title", width, glyphs), _blank(width)]
            return lines + wrap(path, width, "text", glyphs) + _keys((("Esc", "stop"),), width, glyphs)
        case Decoding(run, progress, left):
            lines = [_head("Reading the profile", "title", width, glyphs), _blank(width)]
            lines += wrap(run, width, "strong", glyphs)
            return lines + _progress(progress, left, width, glyphs) + _keys((("Esc", "cancels"),), width, glyphs)
        case Stopped(run, progress):
            return _stopped(run, progress, width, glyphs)
        case Failed(error, searched, other_runs):
            return _failed(error, searched, other_runs, width, glyphs)


def _progress(progress: Progress | None, seconds_left: float | None, width: int, glyphs: Glyphs) -> list[Line]:
    bar = min(50, width - 2)
    if progress is None:
        return [_blank(width), fit([(glyphs.light * bar, "rule")], width, glyphs), _blank(width)]
    done, total = progress.bytes_done, progress.bytes_total
    filled = min(bar, round(bar * done / total)) if total else 0
    figures: list[Span] = [
        (f"host {progress.host_index + 1} of {progress.host_count}", "text"),
        (f"   {size(done)}", "strong"),
        (f" of {size(total)}", "dim"),
        (f"   {events(progress.events_done)}", "strong"),
        (" events", "dim"),
    ]
    if seconds_left is not None:
        figures += [(f"   {wait(seconds_left)}", "strong"), (" left", "dim")]
    return [
        *wrap(progress.host, width, "dim", glyphs),
        fit([(glyphs.full * filled, "key"), (glyphs.light * (bar - filled), "rule")], width, glyphs),
        fit(figures, width, glyphs),
    ]


def _stopped(run: str, progress: Progress | None, width: int, glyphs: Glyphs) -> list[Line]:
    lines = [_head("Cancelled", "warn", width, glyphs), _blank(width)]
    if progress is not None:
        far = f"{size(progress.bytes_done)} of {size(progress.bytes_total)}, {count(progress.events_done)} events"
        lines += wrap(f"Stopped reading {run} at {far}.", width, "text", glyphs)
    elif run:
        lines += wrap(f"Stopped before anything of {run} was read.", width, "text", glyphs)
    else:
        lines += wrap("Stopped looking for profiles.", width, "text", glyphs)
    keys = [("r", "load again"), *([("R", "choose another run")] if run else [])]
    return lines + _keys((*keys, ("q", "quit")), width, glyphs)


def _failed(error: ProfileError, searched: Sequence[str], other_runs: int, width: int, glyphs: Glyphs) -> list[Line]:
    lines = [_head("Nothing to show", "bad", width, glyphs), _blank(width)]
    lines += wrap(error.sentence, width, "text", glyphs)
    if error.hint:
        lines += [_blank(width), *wrap(error.hint, width, "text", glyphs, [("try: ", "key")])]
    if searched:
        lines += [_blank(width), fit([("Searched", "dim")], width, glyphs)]
        for line in searched:
            lines += wrap(line, width, "dim", glyphs, [(f"{glyphs.dot} ", "dim")])
    keys = [("r", "look again"), *([("R", f"choose among {other_runs} runs")] if other_runs > 1 else [])]
    return lines + _keys((*keys, ("q", "quit")), width, glyphs)


def _head(text: str, key: StyleKey, width: int, glyphs: Glyphs) -> Line:
    return fit([(text, key)], width, glyphs)


def _keys(keys: Sequence[tuple[str, str]], width: int, glyphs: Glyphs) -> list[Line]:
    spans: list[Span] = []
    for key, label in keys:
        spans += [(key, "key"), (f" {label}    ", "dim")]
    return [_blank(width), fit(spans, width, glyphs)]


def _blank(width: int) -> Line:
    return ((" " * width, "text"),)
