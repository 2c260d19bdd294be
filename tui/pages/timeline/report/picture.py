"""The timeline as pictures: all of it, or an interval; and the step in the middle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.timeline.model import CLASSES, Section, Timeline, Track
from tpuprof.parsers.timeline.part import TimelineContent
from tpuprof.parsers.timeline.windows import cell_edges, track_window
from tpuprof.tui.draw.axis import equal_runs, ticks
from tpuprof.tui.draw.format import duration
from tpuprof.tui.html.picture import CHARACTER, WIDTH, Area, Paint, Picture, Words

_LEFT = 190.0
_CELLS = 400
_ROW, _BAR = 15.0, 11.0
_HEAD = 22.0
_MOST_SECTIONS, _MOST_THREADS = 10, 6
_NAMED = 120  # events that a window may show one by one, with their names
_LEAST_NAME = 60.0  # width from which on a name is cut to its room, and not left out
_CELL = (WIDTH - _LEFT) / _CELLS
Boxes = dict[Paint, list[tuple[float, float, float, float]]]
"""Areas by their colour."""

Drawn = tuple[Section, list[Track]]
"""A section, and its tracks that are drawn."""

_KINDS = ("steps", "modules", "ops", "async", "stream")
"""Tracks of a device that are drawn: those that are derived show the same time again."""


def pictures(content: TimelineContent) -> list[Picture]:
    """What is asked for: an interval, or all that the devices did and one step of it."""
    timeline, part = content.part.timeline, content.part
    if content.selection is not None:
        return [_picture(timeline, part.start_ps, part.end_ps, "What ran")]
    begin, end = timeline.worked_ps or (timeline.first_ps, timeline.last_ps)
    if end <= begin:
        return []
    whole = _picture(timeline, begin, end, "What ran when")
    step = _middle_step(timeline)
    return [whole] if step is None else [whole, _picture(timeline, *step[1:], f"Step {step[0]}")]


def _middle_step(timeline: Timeline) -> tuple[str, int, int] | None:
    """The step of the first core that is as long as half of them: its name, begin and end."""
    for _, _, track in timeline.tracks():
        if track.kind == "steps" and len(track) > 1:
            index = int(np.argsort(track.lasting[:], kind="stable")[len(track) // 2])
            return track.label(index), int(track.start_ps[index]), int(track.end_ps[index])
    return None


def _picture(timeline: Timeline, start_ps: int, end_ps: int, title: str) -> Picture:
    """A row a track, on one time axis; a row is as full as its track is busy."""
    edges = cell_edges(start_ps, end_ps, _CELLS)
    boxes: Boxes = {}
    (words, axis), top, seen = _axis(start_ps, end_ps), _HEAD, set[int]()
    drawn = [(section, tracks) for section in timeline.sections if (tracks := list(_shown(section, start_ps, end_ps)))]
    chosen = _of_all_hosts(drawn)
    for section, tracks in chosen:
        words.append(Words(0, top + _BAR, section.label, WIDTH, "head"))
        top += _ROW
        for track in tracks:
            words.append(Words(8, top + _BAR - 2, track.name, _LEFT - 16))
            _draw(track, edges, top, boxes, words, seen)
            top += _ROW
        top += 4
    areas = [axis, *(Area(paint, some) for paint, some in boxes.items())]
    left = len(drawn) - len(chosen)
    threads = sum(len(section.tracks) - len(tracks) for section, tracks in chosen if section.kind == "host")
    notes = [f"{duration(end_ps - start_ps)}; in the file are {counted(timeline.event_count, 'event')}"]
    notes += [f"not drawn: {counted(threads, 'more thread')} of hosts"] * (threads > 0)
    notes += [f"not drawn: {counted(left, 'more section', 'more sections')}"] * (left > 0)
    legend = tuple((name, name) for number, name in enumerate(CLASSES) if number in seen)
    return Picture(title, top, areas, words, "; ".join(notes), legend)


def _of_all_hosts(sections: list[Drawn]) -> list[Drawn]:
    """As many sections as are drawn, in their order: the first of each host, then the second of each, and so on."""
    seen: Counter[str] = Counter()
    places = []
    for place, (section, _) in enumerate(sections):
        places.append((seen[section.host], place))
        seen[section.host] += 1
    return [sections[place] for place in sorted(place for _, place in sorted(places)[:_MOST_SECTIONS])]


def _shown(section: Section, start_ps: int, end_ps: int) -> Iterator[Track]:
    """The tracks that are drawn: those of a device by kind, and the busiest threads of a host."""
    having = [track for track in section.tracks if not track.is_derived and _has_any(track, start_ps, end_ps)]
    if section.kind in ("core", "sparse_core", "gpu"):
        yield from (track for track in having if track.kind in _KINDS)
        return
    busiest = sorted(having, key=lambda track: -track.busy_ps)[:_MOST_THREADS]
    yield from (track for track in having if any(track is each for each in busiest))


def _has_any(track: Track, start_ps: int, end_ps: int) -> bool:
    return bool(((track.end_ps[:] >= start_ps) & (track.start_ps <= end_ps)).any())


def _draw(track: Track, edges: Int64s, top: float, boxes: Boxes, words: list[Words], seen: set[int]) -> None:
    """A track's events one by one where there are few in one lane, else its busy time by cells."""
    paint: Paint | None = "step" if track.kind == "steps" else "module" if track.kind == "modules" else None
    start_ps, end_ps = int(edges[0]), int(edges[-1])
    inside = np.flatnonzero((track.end_ps[:] > start_ps) & (track.start_ps < end_ps))
    if track.depth == 1 and len(inside) <= _NAMED:
        scale = (WIDTH - _LEFT) / (end_ps - start_ps)
        for index in inside.tolist():
            begin, end = (min(max(int(at[index]), start_ps), end_ps) for at in (track.start_ps, track.end_ps))
            x, width = _LEFT + (begin - start_ps) * scale, max((end - begin) * scale, 0.4)
            kind = int(track.names.classes[int(track.key[index])])
            boxes.setdefault(paint or CLASSES[kind], []).append((x, top, width - min(0.6, width / 4), _BAR))
            seen |= set() if paint else {kind}
            name = track.label(index)
            if width - 4 >= min(len(name) * CHARACTER, _LEAST_NAME):
                words.append(Words(x + 2, top + _BAR - 2, name, width - 4, "label" if paint else "on"))
        return
    window = track_window(track, edges)
    busy = window.busy_ps.sum(axis=1)
    kinds, shares = window.busy_ps.argmax(axis=1), np.minimum(busy / np.diff(edges), 1.0)
    fill = np.ceil(shares * 4) / 4  # heights of a quarter, so that neighbours are often alike and one box
    for first, last in equal_runs(np.where(busy > 0, kinds * 8 + (fill * 4).astype(np.int64), -1)):
        if busy[first] > 0:
            kind, height = int(kinds[first]), _BAR * float(fill[first])
            place = (_LEFT + first * _CELL, top + _BAR - height, (last - first) * _CELL, height)
            boxes.setdefault(paint or CLASSES[kind], []).append(place)
            seen |= set() if paint else {kind}


def _axis(start_ps: int, end_ps: int) -> tuple[list[Words], Area]:
    """Labels and ticks of the time axis, from the picture's begin on."""
    axis = ticks(start_ps, end_ps, start_ps, int((WIDTH - _LEFT) / CHARACTER))
    scale = (WIDTH - _LEFT) / (end_ps - start_ps)
    places = [(_LEFT + (at - start_ps) * scale, label) for at, label in zip(axis.at_ps, axis.labels, strict=True)]
    words = [Words(x, 12, label, 90, "dim") for x, label in places if x + len(label) * CHARACTER <= WIDTH]
    return words, Area("rule", [(x, 15.0, 0.8, 5.0) for x, _ in places])
