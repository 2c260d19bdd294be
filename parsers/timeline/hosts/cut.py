"""What of a timeline a report is about, without the rest: of many hosts memory has no room for all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tpuprof.parsers.timeline.durations import Durations
from tpuprof.parsers.timeline.hosts.joined import with_tracks
from tpuprof.parsers.timeline.model import Section, Timeline, Track

Wanted = Callable[[Section, Track], bool]


def cut(timeline: Timeline, start_ps: int | None, end_ps: int | None, wanted: Wanted) -> Timeline:
    """The timeline with the events of some tracks that reach into a time, and no others.

    Its own times, its counters and all tracks stay, those that are not wanted without events.

    Args:
        start_ps, end_ps: None for no bound.
    """
    first = timeline.first_ps if start_ps is None else start_ps
    last = timeline.last_ps + 1 if end_ps is None else end_ps
    sections = [_cut_section(section, first, last, wanted) for section in timeline.sections]
    return replace(timeline, sections=tuple(sections))


def _cut_section(section: Section, first: int, last: int, wanted: Wanted) -> Section:
    of_rates = [rate.ops for rate in section.rates]
    tracks: list[Track] = []
    for track in section.tracks:
        is_kept = wanted(section, track) or any(track is ops for ops in of_rates)
        spans = [slice(*track.between(lane, first, last)) for lane in range(track.depth)] if is_kept else []
        tracks.append(_with_events(track, spans))
    return with_tracks(section, tracks, section.counters)


def _with_events(track: Track, spans: Sequence[slice]) -> Track:
    """The track with some events of each lane, or with none where it has no lanes then."""
    rows = np.concatenate([np.zeros(0, np.int64), *(np.arange(span.start, span.stop) for span in spans)])
    if len(rows) == len(track):
        return track
    sizes = [span.stop - span.start for span in spans]
    has_places = len(track.place) == len(track)
    return replace(
        track,
        start_ps=track.start_ps[rows],
        lasting=Durations.of(track.lasting[rows]),
        key=track.key[rows],
        lanes=np.cumsum([0, *sizes]).astype(np.int64),
        place=track.place[rows] if has_places else track.place,
    )
