"""Several timelines as one: every event once, at its own time plus the shift; and what is cut out of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.timeline.build import loose_events, nested_events, timeline, track
from tests.support.composed.aligned_hosts import MS
from tests.support.made.timelines import two_cores
from tpuprof.parsers.timeline.hosts.joined import HostRead, cut, joined, shifted
from tpuprof.parsers.timeline.measure import measure
from tpuprof.parsers.timeline.model import Clock, Timeline
from tpuprof.parsers.timeline.part import Interval, is_wanted, part_of, select

Events = list[tuple[int, int, int, int]]


def read(name: str, made: Timeline | None, clock: Clock | None = None, problem: str = "") -> HostRead:
    clock = clock or Clock()
    made = None if made is None else shifted(made, clock.shift_ps)
    return HostRead(name, f"{name}.pb", made, None if made is None else clock, made is not None, problem)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(nested_events() | loose_events(), st.integers(-(10**12), 10**12)), min_size=1, max_size=5))
def test_every_event_of_every_host_is_there_once_and_shifted(hosts: list[tuple[Events, int]]) -> None:
    single = [timeline([track(events)]) for events, _ in hosts]
    reads = [
        read(f"host{number}", made, Clock("collectives", shift, 3, 1))
        for number, (made, (_, shift)) in enumerate(zip(single, hosts, strict=True))
    ]
    whole = joined(reads)
    assert whole.event_count == sum(made.event_count for made in single)
    for number, (part, made) in enumerate(zip(whole.hosts, single, strict=True)):
        assert (part.first, part.last, part.host) == (number, number + 1, f"host{number}")
        assert whole.sections[number].label.startswith(f"host{number} / ")
        assert whole.path_of(number) == f"host{number}.pb"
        ours, its = whole.sections[number].tracks[0], made.sections[0].tracks[0]
        shift = hosts[number][1]
        assert ours.start_ps.tolist() == (its.start_ps + shift).tolist()
        assert ours.end_ps[:].tolist() == (its.end_ps[:] + shift).tolist()
        assert ours.key is its.key and ours.lanes is its.lanes
    spans = [(made.first_ps + shift, made.last_ps + shift) for made, (_, shift) in zip(single, hosts, strict=True)]
    spans = [span for span in spans if span[0] < span[1]]
    if spans:
        assert (whole.first_ps, whole.last_ps) == (min(a for a, _ in spans), max(b for _, b in spans))


def test_rates_counters_and_steps_are_shifted_too() -> None:
    made = two_cores()
    moved = shifted(made, 5 * MS)
    assert moved.steps[0].start_ps == made.steps[0].start_ps + 5 * MS
    assert moved.sections[0].rates[0].ops is moved.sections[0].tracks[2]
    assert shifted(made, 0) is made


def test_a_step_is_as_long_as_on_all_hosts_that_have_it() -> None:
    made = two_cores()
    later = replace(made, steps=made.steps[1:])
    whole = joined([read("a", made), read("b", later, Clock("collectives", 2 * MS, 9, 1))])
    assert [step.name for step in whole.steps] == [step.name for step in made.steps]
    assert whole.steps[0] == made.steps[0]
    assert (whole.steps[1].start_ps, whole.steps[1].end_ps) == (made.steps[1].start_ps, made.steps[1].end_ps + 2 * MS)


def test_a_host_that_cannot_be_read_and_one_that_is_not_read_yet_have_no_sections() -> None:
    whole = joined([read("a", None, problem="a.pb is empty."), read("b", two_cores()), read("c", None)])
    assert [(part.first, part.last, part.problem) for part in whole.hosts] == [
        (0, 0, "a.pb is empty."),
        (0, 3, ""),
        (3, 3, ""),
    ]
    assert whole.host == "b" and whole.part_of(0) is whole.hosts[1] and whole.part_of(3) is None


def test_what_hosts_lack_stands_behind_their_names_where_not_all_do() -> None:
    made = two_cores()
    whole = joined(
        [read(name, replace(made, lost=("cut off",) if name == "b" else (), warnings=("made",))) for name in "ab"]
    )
    assert (whole.lost, whole.warnings) == (("b: cut off",), ("made",))


@settings(max_examples=EXAMPLES, deadline=None)
@given(nested_events() | loose_events(), st.integers(-5, 65), st.integers(0, 65))
def test_what_is_cut_out_answers_as_the_whole_does(events: Events, start: int, length: int) -> None:
    made = timeline([track(events), track(events, name="other")])
    for interval in (Interval(start, start + length + 1), Interval(start), Interval(None, start + 1, "main")):
        part = cut(made, interval.from_ps, interval.to_ps, is_wanted(interval))
        whole, less = part_of(made, interval), part_of(part, interval)
        assert (whole.start_ps, whole.end_ps, whole.places) == (less.start_ps, less.end_ps, less.places)
        chosen, found = select(whole), select(less)
        assert np.array_equal(chosen.lane, found.lane) and np.array_equal(chosen.of_track, found.of_track)
        times = [
            [
                int(of.timeline.track(of.places[at]).start_ps[index])
                for at, index in zip(by.of_track, by.index, strict=True)
            ]
            for of, by in ((whole, chosen), (less, found))
        ]
        assert times[0] == times[1]
        measured = [measure(of.timeline, of.start_ps, of.end_ps, of.places) for of in (whole, less)]
        assert [share.busy_ps for share in measured[0].tracks] == [share.busy_ps for share in measured[1].tracks]
        assert measured[0].self_ps.tolist() == measured[1].self_ps.tolist()
