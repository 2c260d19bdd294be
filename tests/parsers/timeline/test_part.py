"""What a timeline and a part of it hold, against going through all events and values; and in which order links come."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.timeline.build import LaneEvent, loose_events, nested_events, timeline, track
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.timeline import model
from tpuprof.parsers.timeline.hosts.joined import clock_words, clocks_sentence
from tpuprof.parsers.timeline.measure import measure
from tpuprof.parsers.timeline.part import (
    Interval,
    counter_ranges,
    part_of,
    select,
    summaries,
    time_decimals,
    track_rows,
)
from tpuprof.parsers.timeline.read.timeline import _time_span

EVENTS = st.one_of(nested_events(), loose_events())
KINDS: tuple[model.SectionKind, ...] = ("core", "sparse_core", "gpu", "host", "other")
TRACKS: tuple[model.TrackKind, ...] = ("steps", "modules", "ops", "stream", "thread")
VALUES = st.lists(st.tuples(st.integers(0, 60), st.sampled_from([math.nan, 1.0, -2.0, 5.5])), max_size=5)


@st.composite
def tracks(draw: st.DrawFn) -> model.Track:
    """A track of any kind."""
    events: list[LaneEvent] = draw(EVENTS)
    return track(events, kind=draw(st.sampled_from(TRACKS)), is_derived=draw(st.booleans()))


@st.composite
def timelines(draw: st.DrawFn) -> model.Timeline:
    """Sections of any kind with their tracks and counters."""
    sections = []
    for number in range(draw(st.integers(0, 3))):
        named = [replace(each, name=f"row {place}") for place, each in enumerate(draw(st.lists(tracks(), max_size=3)))]
        counters = []
        for place, values in enumerate(draw(st.lists(VALUES, max_size=2))):
            times = sorted(dict(values).items())
            columns = np.array([time for time, _ in times], np.int64), np.array([value for _, value in times], float)
            counters.append(model.CounterTrack(f"counter {place}", *columns))
        kind = draw(st.sampled_from(KINDS))
        sections.append(
            model.Section(f"Chip {number}", f"/device:{number}", kind, tuple(named), counters=tuple(counters))
        )
    first, last = _time_span(sections)
    return replace(timeline(), sections=tuple(sections), first_ps=first, last_ps=last)


def events_of(one: model.Track) -> list[tuple[int, int]]:
    return list(zip(one.start_ps.tolist(), one.end_ps[:].tolist(), strict=True))


@given(timelines())
def test_a_timeline_is_what_its_events_are(whole: model.Timeline) -> None:
    of_tracks = [event for section in whole.sections for each in section.tracks for event in events_of(each)]
    times = [int(time) for section in whole.sections for counter in section.counters for time in counter.time_ps]
    times += [time for event in of_tracks for time in event]
    assert (whole.first_ps, whole.last_ps) == ((min(times), max(times)) if times else (0, 0))
    own = [each for section in whole.sections for each in section.tracks if not each.is_derived]
    assert whole.event_count == sum(len(events_of(each)) for each in own)
    worked: list[tuple[int, int]] = []
    for section in whole.sections[: None if whole.sections else 0]:
        for kind in ("stream", "ops", "modules", "steps"):
            events = [event for each in section.tracks if each.kind == kind for event in events_of(each)]
            if events and section.kind not in ("host", "other"):
                worked += events
                break
    expected = (min(start for start, _ in worked), max(end for _, end in worked)) if worked else None
    assert whole.worked_ps == expected


@given(timelines(), st.integers(-5, 65), st.integers(1, 70), st.sampled_from(["", "row 1", "CHIP 0", "chip 1 / row"]))
def test_a_part_holds_the_events_and_values_that_lie_in_it(
    whole: model.Timeline, first: int, span: int, name: str
) -> None:
    interval = Interval(first, first + span, name)
    wanted: list[model.Track | model.CounterTrack] = []
    for section in whole.sections:
        rows: tuple[model.Track | model.CounterTrack, ...] = (*section.tracks, *section.counters)
        for row in rows:
            is_part = name.lower() in f"{section.title} / {row.name}".lower()
            wanted += [row] if (is_part if name else not getattr(row, "is_derived", False)) else []
    if name and not wanted:
        with pytest.raises(ProfileError):
            part_of(whole, interval)
        return
    part = part_of(whole, interval)
    own = [whole.track(place) for place in part.places]
    assert [*map(id, own), *(id(counter) for _, counter in part.counters)] == [
        id(row) for kind in (model.Track, model.CounterTrack) for row in wanted if isinstance(row, kind)
    ]
    end = first + span
    inside = []
    for number, each in enumerate(own):
        for lane in range(each.depth):
            for index in range(*each.lane(lane).indices(len(each))):
                begin, over = int(each.start_ps[index]), int(each.end_ps[index])
                if begin < end and (over > first or begin == over >= first):
                    inside.append((begin, number, lane, index))
    chosen = select(part)
    found = zip(chosen.of_track.tolist(), chosen.lane.tolist(), chosen.index.tolist(), strict=True)
    assert list(found) == [event[1:] for event in sorted(inside)] and len(chosen) == len(inside)
    for number, summary in enumerate(summaries(part)):
        assert summary.events == sum(event[1] == number for event in inside)
        assert summary.busy_ps == model.busy_between(own[number], first, end)
        assert summary.busy_fraction == summary.busy_ps / span
        assert [op.self_ps for op in summary.top] == sorted((op.self_ps for op in summary.top), reverse=True)
        measured = measure(whole, first, end, [part.places[number]]).rows()
        assert sum(op.self_ps for op in summary.top) == sum(row.self_ps for row in measured)
    for (_, counter), said in zip(part.counters, counter_ranges(part), strict=True):
        pairs = list(zip(counter.time_ps.tolist(), counter.value.tolist(), strict=True))
        taken = [time for time, value in pairs if first <= time < end and not math.isnan(value)]
        assert (said.samples, said.first_ps, said.last_ps) == (
            len(taken),
            min(taken, default=None),
            max(taken, default=None),
        )
        held = [[value for time, value in pairs if time <= at][-1:] for at in range(first, end)]
        values = [value for known in held for value in known if not math.isnan(value)]
        assert (said.minimum, said.maximum) == (min(values, default=None), max(values, default=None))
        assert said.mean is None or said.mean == pytest.approx(sum(values) / len(values))


@given(timelines(), st.integers(0, 4))
def test_the_first_tracks_are_those_of_the_screen(whole: model.Timeline, limit: int) -> None:
    rows, lasting = track_rows(whole, limit), whole.last_ps - whole.first_ps
    all_ = [each for section in whole.sections for each in section.tracks]
    assert [row.track for row in rows] == all_[: limit or None]
    for row in rows:
        assert (row.events, row.busy_ps) == (len(row.track), row.track.busy_ps)
        assert row.busy_fraction == (row.busy_ps / lasting if lasting else None)


@given(st.lists(st.text("abc", min_size=1, max_size=300), min_size=1, max_size=9, unique=True))
def test_a_name_that_no_track_has_is_answered_by_the_nearest_ones(titles: list[str]) -> None:
    whole = timeline([track([(0, 0, 1, 0)], name=title) for title in titles])
    with pytest.raises(ProfileError) as caught:
        part_of(whole, Interval(track=f"{titles[0]}~"))
    shown = [each.strip().removesuffix("…") for each in caught.value.hint.partition(": ")[2].split("Chip 0 / ") if each]
    assert len(shown) == min(3, len(titles)) and len(caught.value.hint) < 3 * 220
    assert any(titles[0].startswith(each.rstrip(", ")) for each in shown)


@given(st.integers(1, 10**14))
def test_times_have_as_many_decimals_as_a_thousandth_takes(span: int) -> None:
    decimals = time_decimals(7, 7 + span)
    unit = 10 ** (9 - decimals)
    assert 3 <= decimals <= 9 and (unit * 1000 <= span or decimals == 9) and (span < 10_000 * unit or decimals == 3)
    assert time_decimals(7, 7) == 3


SOURCES: tuple[model.ClockSource, ...] = ("axis", "collectives", "start times", "none")
CLOCKS = st.builds(model.Clock, st.sampled_from(SOURCES), st.just(0), st.integers(1, 9), st.none() | st.integers(1, 9))


@given(st.lists(st.none() | CLOCKS, max_size=6))
def test_hosts_of_one_kind_of_clock_are_told_together_with_the_worst_of_them(clocks: list[model.Clock | None]) -> None:
    parts = [model.HostPart(f"host{number}", "", 0, 0, clock) for number, clock in enumerate(clocks)]
    said = clocks_sentence(replace(timeline(), hosts=tuple(parts)))
    told = [part for part in parts if part.clock is not None and part.clock.source != "axis"]
    kinds = list(dict.fromkeys((part.clock.source, part.clock.error_ps is None) for part in told if part.clock))
    words = []
    for kind in kinds:
        same = [part for part in told if part.clock and (part.clock.source, part.clock.error_ps is None) == kind]
        least = min(part.clock.collectives for part in same if part.clock)
        error = max((part.clock.error_ps or 0 for part in same if part.clock), default=0)
        worst = model.Clock(kind[0], 0, least, None if kind[1] else error)
        whose = same[0].host if len(same) == 1 else f"{len(same)} hosts"
        words.append(f"clocks{f' of {whose}' * (len(kinds) > 1)} {clock_words(worst)}")
    assert said == "; ".join(words)


@given(st.lists(st.integers(0, 20), max_size=6), st.integers(-1, 25))
def test_the_step_at_an_instant_is_the_last_that_began_and_has_not_ended(begins: list[int], at: int) -> None:
    steps = [model.StepSpan(str(number), begin, begin + 3) for number, begin in enumerate(sorted(begins))]
    begun = [number for number, step in enumerate(steps) if step.start_ps <= at]
    whole = timeline(steps=steps)
    assert whole.step_begun(at) == (begun[-1] if begun else None)
    assert whole.step_at(at) == (begun[-1] if begun and at < steps[begun[-1]].end_ps else None)
