"""What surrounds a page: the header line, the tabs and the footer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpuprof.tui.draw.format import size
from tpuprof.tui.draw.layout import clean, cut_middle, wrap
from tpuprof.tui.draw.spans import Glyphs
from tpuprof.tui.terminal.theme import AnyKey, AnyLine, AnySpan
from tpuprof.tui.widgets.actions import TAB_NAMES

if TYPE_CHECKING:
    from tpuprof.parsers.hosts.progress import Progress

APP_NAME = "tpuprof-tui"

SMALLEST = (60, 15)
"""Columns and rows below which there is a sentence instead of a page."""

_LEAST_BAR = 12
"""Cells of a progress bar beside which the hosts at work are named."""

_SHORT_TAB_NAMES = ("Overview", "Input", "Ops", "Timeline", "Memory")


@dataclass(frozen=True, slots=True)
class Heading:
    """What the header says.

    Attributes:
        run: the run's name, or the path that was asked for.
        facts: short phrases on run, host and device; the first ones stay longest when there is little room.
        badge: a warning in capitals, or empty.
        note_count: notes and problems.
        tab: index of the tab that is shown.
        notes_key: opens the notes.
    """

    run: str
    facts: tuple[str, ...] = ()
    badge: str = ""
    note_count: int = 0
    tab: int = 0
    notes_key: str = "w"


def is_too_small(width: int, height: int) -> bool:
    """Whether a terminal has too few cells for a page."""
    return width < SMALLEST[0] or height < SMALLEST[1]


def too_small_lines(width: int, height: int, glyphs: Glyphs) -> list[AnyLine]:
    """What stands in the place of a page then."""
    words = f"{APP_NAME} needs {SMALLEST[0]}x{SMALLEST[1]} cells; this terminal has {width}x{height}. q quits."
    return list(wrap(words, width, "text", glyphs))


def header_lines(heading: Heading, width: int, glyphs: Glyphs) -> list[AnyLine]:
    """The two lines on top: where we are; then the tabs and, at the right, what to be aware of."""
    return [_place(heading, width, glyphs), _tabs(heading, width)]


def _place(heading: Heading, width: int, glyphs: Glyphs) -> AnyLine:
    ascii_only = glyphs.name == "ascii"
    left: list[AnySpan] = [(f" {APP_NAME}  ", "bar.dim")] if width >= 70 else [(" ", "bar")]
    room = width - 1
    name = cut_middle(clean(heading.run, ascii_only), max(8, min(48, room - _width(left))), glyphs)
    left.append((name, "bar.strong"))
    for fact in heading.facts:
        words = f"  {glyphs.dot}  {clean(fact, ascii_only)}"
        if _width(left) + len(words) <= room:
            left.append((words, "bar"))
    return pad(left, width, "bar")


def _tabs(heading: Heading, width: int) -> AnyLine:
    left = [span for _, spans in _tab_spans(heading.tab, width) for span in spans]
    badge: list[AnySpan] = [(f" {heading.badge} ", "badge"), (" ", "tab")] if heading.badge else []
    count, word = heading.note_count, "note" if heading.note_count == 1 else "notes"
    long: list[AnySpan] = [(f" {heading.notes_key}", "key"), (f" {count} {word} ", "warn")] if count else []
    short: list[AnySpan] = [(f" {heading.notes_key}", "key"), (f" {count} ", "warn")] if count else []
    for right in ([*badge, *long], [*badge, *short], badge or short):
        gap = width - _width(left) - _width(right)
        if gap >= 0:
            return pad([*left, (" " * gap, "tab"), *right], width, "tab")
    return pad(left, width, "tab")


def tab_at(x: int, tab: int, width: int) -> int | None:
    """Index of the tab in column `x`."""
    begin = 0
    for index, spans in _tab_spans(tab, width):
        end = begin + _width(spans)
        if begin <= x < end and index is not None:
            return index
        begin = end
    return None


def _tab_spans(tab: int, width: int) -> list[tuple[int | None, list[AnySpan]]]:
    names = TAB_NAMES if width >= 100 else _SHORT_TAB_NAMES
    parts: list[tuple[int | None, list[AnySpan]]] = [(None, [(" ", "tab")])]
    for index, name in enumerate(names):
        if index == tab:
            parts.append((index, [(f" {index + 1} {name} ", "tab.active")]))
        else:
            parts.append((index, [(f" {index + 1}", "tab.key"), (f" {name} ", "tab")]))
        parts.append((None, [(" ", "tab")]))
    return parts


@dataclass(frozen=True, slots=True)
class FootKey:
    """One key of the footer and what it does."""

    key: str
    label: str


def keys_line(keys: Sequence[FootKey], width: int) -> AnyLine:
    """The footer: as many of the keys as fit, the last one always."""
    spans: list[AnySpan] = []
    tail = [] if not keys else [(" ", "bar"), (keys[-1].key, "bar.key"), (f" {keys[-1].label} ", "bar.dim")]
    last: list[AnySpan] = [(text, key) for text, key in tail]  # type: ignore[misc]
    for at in keys[:-1]:
        group: list[AnySpan] = [(" ", "bar"), (at.key, "bar.key"), (f" {at.label} ", "bar.dim")]
        if _width(spans) + _width(group) + _width(last) > width:
            break
        spans += group
    return pad([*spans, *last], width, "bar")


def message_line(text: str, width: int, glyphs: Glyphs, key: AnyKey = "bar") -> AnyLine:
    """The footer while it says something."""
    words = clean(text, glyphs.name == "ascii")
    return pad([(" " + cut_middle(words, width - 2, glyphs), key)], width, "bar")


def prompt_line(text: str, found: str, width: int, glyphs: Glyphs) -> AnyLine:
    """The footer while a search is typed: the text, a cursor, what it finds so far."""
    room = max(8, width - len(found) - 28)
    shown = text if len(text) < room else glyphs.ellipsis + text[-(room - 2) :]
    left: list[AnySpan] = [(" /", "bar.key"), (clean(shown, glyphs.name == "ascii"), "input"), ("_", "bar.key")]
    right: list[AnySpan] = [(f"{found}  ", "bar"), ("Enter", "bar.key"), (" keep ", "bar.dim"), ("Esc", "bar.key")]
    right.append((" cancel ", "bar.dim"))
    gap = max(1, width - _width(left) - _width(right))
    return pad([*left, (" " * gap, "bar"), *right], width, "bar")


def progress_line(progress: Progress, seconds_left: float | None, width: int, glyphs: Glyphs) -> AnyLine:
    """The footer while something loads: which host, how far, how long yet, and how to stop it."""
    done, total = progress.bytes_done, progress.bytes_total
    host = f"host {progress.host_index + 1}/{progress.host_count} "
    sizes = f"  {size(done)} of {size(total)}"
    figures = f"{sizes}  {events(progress.events_done)} events"
    left = "" if seconds_left is None else f"  {wait(seconds_left)} left"
    tail: list[AnySpan] = [("  Esc", "bar.key"), (" cancels ", "bar.dim")]
    room = width - len(host) - len(figures) - len(left) - _width(tail) - 1
    if room < 0:
        figures, room = sizes, room + len(figures) - len(sizes)
    each = _hosts_at_work(progress, room - _LEAST_BAR, glyphs)
    bar = max(0, min(30, room - len(each)))
    filled = min(bar, round(bar * done / total)) if total else 0
    track = "." if glyphs.name == "ascii" else glyphs.light
    spans: list[AnySpan] = [
        (" ", "bar"),
        (host, "bar"),
        (glyphs.full * filled, "bar.key"),
        (track * (bar - filled), "bar.dim"),
        (figures, "bar"),
        (left, "bar.strong"),
        (each, "bar.dim"),
        *tail,
    ]
    return pad(spans, width, "bar")


def _hosts_at_work(progress: Progress, room: int, glyphs: Glyphs) -> str:
    """How far each host is that is read side by side with others, as many as there is room for."""
    words = ""
    for at in progress.at_work if len(progress.at_work) > 1 else ():
        percent = 100 * at.bytes_done // at.bytes_total if at.bytes_total else 0
        more = f"  {clean(at.host, glyphs.name == 'ascii')} {percent}%"
        if len(words) + len(more) > room:
            break
        words += more
    return words


def events(number: int) -> str:
    """A count of events in few characters: ``512``, ``48 k``, ``4.1 M``."""
    if number >= 999_500:
        return f"{number / 1e6:.1f} M"
    return f"{number / 1e3:.0f} k" if number >= 10_000 else f"{number:,}"


def wait(seconds: float) -> str:
    """A time to wait, roughly: ``1 s``, ``45 s``, ``3 min``."""
    return f"{max(1, round(seconds))} s" if seconds < 99.5 else f"{seconds / 60:.0f} min"


def pad(spans: Sequence[AnySpan], width: int, key: AnyKey) -> AnyLine:
    """A line of exactly `width` cells."""
    line: list[AnySpan] = []
    left = width
    for text, style in spans:
        if not text or left <= 0:
            continue
        line.append((text[:left], style))
        left -= len(text)
    if left > 0:
        line.append((" " * left, key))
    return tuple(line)


def _width(spans: Sequence[AnySpan]) -> int:
    return sum(len(text) for text, _ in spans)
