"""Builds tracks and timelines by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from tpuprof.parsers.timeline.durations import Durations
from tpuprof.parsers.timeline.model import CLASSES, EventNames, Section, StepSpan, Timeline, Track, TrackKind

LaneEvent = tuple[int, int, int, int]
"""Lane, start, end and key of an event."""

NAMES = ("alpha", "beta", "gamma", "delta")


def names(texts: Sequence[str] = NAMES) -> EventNames:
    """Names that no profile's metadata stands behind."""
    return EventNames(None, tuple(texts), np.full(len(texts), CLASSES.index("compute"), np.uint8))


def track(
    events: Sequence[LaneEvent],
    texts: Sequence[str] = NAMES,
    kind: TrackKind = "thread",
    name: str = "main",
    is_derived: bool = False,
    of: EventNames | None = None,
) -> Track:
    """A track of these events, sorted as a track's are."""
    ordered = sorted(events, key=lambda event: event[:3])
    depth = max((lane for lane, *_ in ordered), default=-1) + 1
    lanes = np.array([lane for lane, *_ in ordered], np.int64)
    start, end = (np.array([event[of] for event in ordered], np.int64) for of in (1, 2))
    return Track(
        name=name,
        kind=kind,
        names=of or names(texts),
        start_ps=start,
        lasting=Durations.of(end - start),
        key=np.array([key for *_, key in ordered], np.int32),
        lanes=np.concatenate([[0], np.cumsum(np.bincount(lanes, minlength=depth))]).astype(np.int64),
        is_derived=is_derived,
    )


def timeline(*sections: Sequence[Track], steps: Sequence[StepSpan] = ()) -> Timeline:
    """A timeline with a section for each of the sequences of tracks."""
    spans = [one.span for tracks in sections for one in tracks if len(one)]
    return Timeline(
        host="host0",
        path="host0.xplane.pb",
        sections=tuple(
            Section(f"Chip {at}", f"/device:TPU:{at}", "core", tuple(tracks)) for at, tracks in enumerate(sections)
        ),
        first_ps=min((first for first, _ in spans), default=0),
        last_ps=max((last for _, last in spans), default=0),
        steps=tuple(steps),
    )


def _nested(draw: st.DrawFn, lane: int, start: int, end: int, out: list[LaneEvent]) -> None:
    """Fills [start, end) with disjoint events, and each of these with deeper ones."""
    borders = sorted(draw(st.lists(st.integers(start, end), max_size=6)))
    instant = end  # no event of no duration shares its instant
    for first, last in zip(borders[::2], borders[1::2], strict=False):
        if first != instant and not first == last == end:
            instant = first if first == last else end
            out.append((lane, first, last, draw(st.integers(0, len(NAMES) - 1))))
            if lane < 3 and last > first:
                _nested(draw, lane + 1, first, last, out)


@st.composite
def nested_events(draw: st.DrawFn) -> list[LaneEvent]:
    """Events that nest properly, some of no duration; each alone at its instants in its lane."""
    out: list[LaneEvent] = []
    _nested(draw, 0, 0, 60, out)
    return out


@st.composite
def loose_events(draw: st.DrawFn) -> list[LaneEvent]:
    """Events whose lanes have nothing to do with one another."""
    out: list[LaneEvent] = []
    for lane in range(draw(st.integers(0, 3))):
        borders = sorted(draw(st.lists(st.integers(0, 60), max_size=12)))
        for first, last in zip(borders[::2], borders[1::2], strict=False):
            out.append((lane, first, last, draw(st.integers(0, len(NAMES) - 1))))
    kept = _alone(out)
    used = sorted({lane for lane, *_ in kept})  # no lane is empty
    return [(used.index(lane), start, end, key) for lane, start, end, key in kept]


def _alone(events: Sequence[LaneEvent]) -> list[LaneEvent]:
    """The events without those of no duration that share their instant with another one of their lane."""
    kept: list[LaneEvent] = []
    seen: set[tuple[int, int]] = set()
    for lane, start, end, key in events:
        instants = {(lane, at) for at in range(start, max(end, start + 1))}
        if not instants & seen:
            seen |= instants
            kept.append((lane, start, end, key))
    return kept
