"""The timelines of several hosts as one: their times on one axis, their sections below one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import time
from tpuprof.parsers.files.core_names import label_of_plane
from tpuprof.parsers.steps.boundaries.matching import HostSteps, matched
from tpuprof.parsers.timeline.durations import Durations
from tpuprof.parsers.timeline.model import Clock, CounterTrack, HostPart, Section, StepSpan, Timeline, Track

_WHY_LOST = 20
"""Hosts of which what their files lack is listed; a sentence stands for the others."""

_OWN = "aligned by the hosts' own time"


class HostRead(NamedTuple):
    """A host of a run, as far as it is read.

    Attributes:
        host, path: its name, and the path of its file.
        timeline: with its times on the axis (`shifted`); None where nothing of it is here.
        clock: None where it was never read.
        is_whole: whether all its sections are here, rather than the first one alone.
        problem: why it can't be read; empty where it can, or nobody has tried.
    """

    host: str
    path: str
    timeline: Timeline | None = None
    clock: Clock | None = None
    is_whole: bool = False
    problem: str = ""


def shifted(timeline: Timeline, by_ps: int) -> Timeline:
    """The timeline with all its times so much later."""
    if not by_ps:
        return timeline
    return replace(
        timeline,
        sections=tuple(_shifted_section(section, by_ps) for section in timeline.sections),
        first_ps=timeline.first_ps + by_ps,
        last_ps=timeline.last_ps + by_ps,
        steps=tuple(StepSpan(step.name, step.start_ps + by_ps, step.end_ps + by_ps) for step in timeline.steps),
    )


def _shifted_section(section: Section, by_ps: int) -> Section:
    tracks = [replace(each, start_ps=each.start_ps + by_ps) for each in section.tracks]
    counters = [CounterTrack(each.name, each.time_ps + by_ps, each.value, each.unit) for each in section.counters]
    return with_tracks(section, tracks, counters)


def with_tracks(section: Section, tracks: Sequence[Track], counters: Sequence[CounterTrack]) -> Section:
    """A section with other tracks in the places of its own; its rates are of these then."""
    places = {id(track): place for place, track in enumerate(section.tracks)}
    rates = tuple(replace(rate, ops=tracks[places[id(rate.ops)]]) for rate in section.rates)
    return replace(section, tracks=tuple(tracks), rates=rates, counters=tuple(counters))


def named(timeline: Timeline, host: str) -> Timeline:
    """The timeline as that of one of several hosts: its sections have the host's name in their labels."""
    return replace(timeline, sections=tuple(replace(section, host=host) for section in timeline.sections))


def with_core_names(timeline: Timeline, host: str) -> Timeline:
    """The timeline with the names of its cores, as cores of a host."""
    sections = (replace(section, core=label_of_plane(host, section.plane)) for section in timeline.sections)
    return replace(timeline, sections=tuple(sections))


def first_section(timeline: Timeline) -> Timeline:
    """The timeline with its first section alone, which stands for the host where that is folded."""
    return replace(timeline, sections=timeline.sections[:1])


def joined(hosts: Sequence[HostRead]) -> Timeline:
    """The hosts below one another, in their order; times are those of the axis.

    Steps are those of the first host that has any, each as long as on all hosts that have it.
    """
    sections: list[Section] = []
    parts = []
    for each in hosts:
        own = () if each.timeline is None else named(each.timeline, each.host).sections
        first = len(sections)
        sections += own
        began_ns = None if each.timeline is None else each.timeline.began_ns
        part = HostPart(each.host, each.path, first, len(sections), each.clock, each.is_whole, each.problem, began_ns)
        parts.append(part)
    read = [each.timeline for each in hosts if each.timeline is not None]
    with_events = [timeline for timeline in read if timeline.first_ps < timeline.last_ps]
    steps, inferred = _steps(read)
    first_read = next((each for each in hosts if each.timeline is not None), hosts[0])
    return Timeline(
        host=first_read.host,
        path=first_read.path,
        sections=tuple(sections),
        first_ps=min((timeline.first_ps for timeline in with_events), default=0),
        last_ps=max((timeline.last_ps for timeline in with_events), default=0),
        steps=steps,
        steps_are_inferred=inferred,
        lost=_named(hosts, "lost"),
        warnings=_named(hosts, "warnings"),
        hosts=tuple(parts),
    )


def _named(hosts: Sequence[HostRead], what: str) -> tuple[str, ...]:
    """Sentences on the hosts, behind their names; what all say alike only once."""
    of: dict[str, list[str]] = {}
    for each in hosts:
        sentences: tuple[str, ...] = () if each.timeline is None else getattr(each.timeline, what)
        for sentence in sentences:
            of.setdefault(sentence, []).append(each.host)
    read = sum(each.timeline is not None for each in hosts)
    out = []
    for sentence, names in of.items():
        whose = names[0] if len(names) == 1 else counted(len(names), "host")
        out.append(sentence if len(names) == read else f"{whose}: {sentence}")
    more = len(out) - _WHY_LOST
    return tuple(out if more <= 0 else [*out[:_WHY_LOST], f"hosts report {more:,} more like these"])


def _steps(read: Sequence[Timeline]) -> tuple[tuple[StepSpan, ...], bool]:
    """The steps of the first host that has any, each from its earliest begin to its last end on any host."""
    having = [timeline for timeline in read if timeline.steps]
    if not having:
        return (), False
    chief = having[0]
    mine = _as_steps(chief)
    start, end = mine.start_ps.copy(), mine.end_ps.copy()
    for other in having[1:]:
        if other.steps_are_inferred == chief.steps_are_inferred:
            its = _as_steps(other)
            rows, of = matched([mine, its])
            start[rows], end[rows] = np.minimum(start[rows], its.start_ps[of]), np.maximum(end[rows], its.end_ps[of])
    spans = tuple(map(StepSpan, mine.names, start.tolist(), end.tolist()))
    return tuple(sorted(spans, key=lambda step: step.start_ps)), chief.steps_are_inferred


def _as_steps(timeline: Timeline) -> HostSteps:
    names, start, end = zip(*((step.name, step.start_ps, step.end_ps) for step in timeline.steps), strict=True)
    return HostSteps(names, not timeline.steps_are_inferred, np.array(start, np.int64), np.array(end, np.int64))


def clock_words(clock: Clock) -> str:
    """How a host's clock was brought to the axis: ``aligned by 412 collectives within 3.10 µs``."""
    said = counted(clock.collectives, "collective")
    if clock.source == "axis":
        return "its own clock is the time axis"
    if clock.source == "none":
        return "not aligned: the profiles do not show how far apart they are"
    if clock.error_ps is None:
        return f"{_OWN}, which no collective confirms"
    error = time(clock.error_ps)
    if clock.source == "collectives":
        return f"aligned by {said} within {error}"
    return f"{_OWN}, which {said} confirm within {error}"


def clocks_sentence(timeline: Timeline) -> str:
    """How the clocks of a timeline's hosts were aligned, as far as they are read; nothing for a single one.

    Of hosts that were aligned in one way the least number of collectives stands there, and the largest error.
    """
    groups: dict[tuple[str, bool], list[HostPart]] = {}
    for part in timeline.hosts:
        if part.clock is not None and part.clock.source != "axis":
            groups.setdefault((part.clock.source, part.clock.error_ps is None), []).append(part)
    words = []
    for parts in groups.values():
        clocks = [part.clock for part in parts if part.clock is not None]
        worst = replace(
            clocks[0],
            collectives=min(clock.collectives for clock in clocks),
            error_ps=None if clocks[0].error_ps is None else max(clock.error_ps or 0 for clock in clocks),
        )
        whose = parts[0].host if len(parts) == 1 else counted(len(parts), "host")
        words.append(f"clocks{'' if len(groups) == 1 else f' of {whose}'} {clock_words(worst)}")
    return "; ".join(words)


# --- what of a timeline a report is about

Wanted = Callable[[Section, Track], bool]


def cut(timeline: Timeline, start_ps: int | None, end_ps: int | None, wanted: Wanted) -> Timeline:
    """The timeline with the events of some tracks that reach into a time, and no others.

    Its own times, its counters and all tracks stay, those that are not wanted without events; steps keep theirs.

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
        is_kept = wanted(section, track) or track.kind == "steps" or any(track is ops for ops in of_rates)
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
