"""One event of the timeline in full: what it is, when it ran, every stat, and what leads to it or from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files.source_lines import SourceExcerpt, source_excerpt
from tpuprof.parsers.formats.xspace.metadata import StatValue
from tpuprof.parsers.timeline.details import EventStats, op_facts, read_event_stats, self_time
from tpuprof.parsers.timeline.model import EventId, Timeline, Track
from tpuprof.parsers.timeline.part import plain_value
from tpuprof.parsers.timeline.read.flows import Flow
from tpuprof.tui.draw.format import count, duration, percent, size
from tpuprof.tui.draw.pen import Card, Pen, cut_middle
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Line
from tpuprof.tui.pages.timeline.draw.cells import fill_of

_LONGEST = 4000  # characters of a text that are shown
_NAME_SEEN = 200  # characters of a name that is but part of a line
_MOST_FLOWS, _MOST_STATS, _MOST_ENTRIES = 40, 400, 50  # how many are listed
_LABEL = 24


def read_event(timeline: Timeline, event: EventId, flows: Sequence[Flow]) -> Callable[[Pen], list[Line]]:
    """Reads the stats of an event, and its source where that is on this machine; draws everything about it."""
    track, index = timeline.track(event), event[2]
    stats: EventStats | str
    try:
        stats = read_event_stats(timeline.path_of(event[0]), timeline.sections[event[0]], track, index)
    except ProfileError as error:
        stats = error.sentence
    source = op_facts(track, index).source
    return partial(event_lines, timeline, event, stats, flows, source_excerpt(source) if source else None)


def event_lines(
    timeline: Timeline,
    event: EventId,
    stats: EventStats | str,
    flows: Sequence[Flow],
    excerpt: SourceExcerpt | None,
    pen: Pen,
) -> list[Line]:
    """Everything about an event.

    Args:
        event: section, track and index.
        stats: or a sentence that says why they can't be read.
        flows: what leads to it or from it.
        excerpt: lines of its source, where the file is on this machine.
    """
    card, track, index = Card(pen), timeline.track(event), event[2]
    where = _place(timeline, event) + (f", lane {track.lane_of(index)}" * (track.depth > 1))
    card.head(track.label(index)[:_LONGEST])
    card.lines.append(pen.fit([]))
    device_ps = None if isinstance(stats, str) else stats.device_ps
    _write(card, [("on", where), *_times(timeline, track, index, device_ps, pen.glyphs)])
    for flow in flows[:_MOST_FLOWS]:
        label = timeline.track((flow.section, flow.track)).label(flow.event)[:_NAME_SEEN]
        words = f"{flow.kind}: {label} on {_place(timeline, (flow.section, flow.track))}"
        card.lines += pen.wrap(words, "text", [("> " if flow.direction == "out" else "< ", "key")])
    card.more(len(flows) - _MOST_FLOWS)
    if excerpt is not None:
        card.lines += [pen.fit([]), *pen.wrap(excerpt.path[:_LONGEST], "title"), *pen.excerpt(excerpt)]
    if isinstance(stats, str):
        return [*card.lines, pen.fit([]), *pen.wrap(stats, "warn")]
    for title, pairs in (("Stats of the event", stats.of_event), ("Stats of its metadata", stats.of_metadata)):
        if pairs:
            card.title(title)
            _write(card, [(name, _value(name, value)) for name, value in pairs[:_MOST_STATS]])
            card.more(len(pairs) - _MOST_STATS)
    text = track.names.long_name(int(track.key[index]))
    if text:
        card.title("HLO text" if track.kind in ("ops", "async") else "Name")
        card.paragraphs(text[:_LONGEST])
    return card.lines


def _place(timeline: Timeline, place: tuple[int, ...]) -> str:
    return f"{timeline.sections[place[0]].label[:_NAME_SEEN]}, {timeline.track(place).name[:_NAME_SEEN]}"


def _times(
    timeline: Timeline, track: Track, index: int, device_ps: int | None, glyphs: Glyphs
) -> list[tuple[str, str]]:
    ascii_only = glyphs.is_ascii
    start, end = int(track.start_ps[index]), int(track.end_ps[index])
    rows = [
        ("starts at", f"{duration(start, ascii_only, 9)} in the profile"),
        ("duration", f"{duration(end - start, ascii_only, 6)}   {count(end - start)} ps"),
    ]
    if device_ps is not None and device_ps != end - start:
        rows.append(("by the device's clock", f"{duration(device_ps, ascii_only, 6)}   {count(device_ps)} ps"))
    if track.depth > 1:
        own = self_time(track, index)
        part = f", {percent(100 * own / (end - start))}" if end > start else ""
        rows.append(("self time", duration(own, ascii_only, 6) + part))
    number = timeline.step_at(start)
    if number is not None:
        step = timeline.steps[number]
        rows.append(("in step", f"{step.name[:_NAME_SEEN]}, from {duration(start - step.start_ps, ascii_only, 6)} on"))
    occurrences = int(track.counts[int(track.key[index])])
    rows.append(("occurrences", f"{count(occurrences)} of this name on the track"))
    if fill_of(track.kind) is None:
        name = track.event_class(index)
        rows.append(("class", f"{CLASS_LETTER[name]} {name}"))
    return rows


def _write(card: Card, rows: Sequence[tuple[str, str]]) -> None:
    """Names and values; a long value goes on below itself."""
    for name, value in rows:
        label = cut_middle(name[:_NAME_SEEN], max(_LABEL, card.pen.width // 2), card.pen.glyphs)
        for part in value.splitlines() or ("",):
            card.lines += card.pen.wrap(part, "text", [(f"{label:<{_LABEL}} ", "dim")])
            label = ""


def _value(name: str, value: StatValue) -> str:
    """A stat's value for reading, with its unit where the name says it."""
    if value is None:
        return "n/a"
    if isinstance(value, bytes):
        parts = plain_value(name, value)
        if isinstance(parts, list):
            return ", ".join(map(_memory_access, parts[:_MOST_ENTRIES])) or "none"
        return str(parts) if "damaged" in str(parts) else f"{count(len(value))} bytes"
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, int) and name.endswith("_ps"):
        return f"{duration(value, False, 6)}   {count(value)} ps"
    if isinstance(value, int) and "bytes" in name:
        return f"{size(value)}   {count(value)}"
    return str(value) if isinstance(value, float) or name.endswith("_id") or name.startswith("_") else f"{value:,}"


def _memory_access(part: Mapping[str, Any]) -> str:
    """``HBM 5.37 GB read``."""
    space, way = str(part["memory"]), str(part["operation"]).replace("write", "written").replace("unknown", "moved")
    return f"{space.upper() if space in ('hbm', 'cmem', 'vmem') else space} {size(part['bytes'])} {way}"
