"""The events of a part of the timeline as columns: each is made when it is asked for, track by track."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.timeline.model import CLASSES, Section, Timeline, Track
from tpuprof.parsers.timeline.part import TimelineContent, summaries, track_rows
from tpuprof.parsers.timeline.read.device_clock import durations_of
from tpuprof.tui.pages.timeline.report import fields
from tpuprof.tui.pages.timeline.report.read import Traces, limited
from tpuprof.tui.report.declared import Section as Rows
from tpuprof.tui.report.fields import Field, Table
from tpuprof.tui.report.page import Listed, ReportRequest
from tpuprof.tui.report.units import COUNT, TEXT, TIME_PS, VERBATIM, Unit

Texts = NDArray[np.object_]
OfTrack = Callable[[Timeline, int, Track, Int64s], Any]
"""What some events of a track of a section have: an entry each, or one for all."""


def _names(_: Timeline, __: int, track: Track, events: Int64s) -> Texts:
    keys, which = np.unique(track.key[events], return_inverse=True)
    return np.array([track.names.name(key) for key in keys.tolist()], object)[which]


def _classes(_: Timeline, __: int, track: Track, events: Int64s) -> Texts:
    return np.array(CLASSES, object)[track.names.classes[track.key[events]]]


def _steps(timeline: Timeline, section: int, track: Track, events: Int64s) -> Texts:
    """The names of the steps of a core in which events begin; None outside."""
    steps = next((each for each in timeline.sections[section].tracks if each.kind == "steps" and len(each)), None)
    out = np.full(len(events), None, object)
    if steps is not None:
        outer, start = steps.lane(0), track.start_ps[events]
        at = np.searchsorted(steps.start_ps[outer], start, side="right") - 1
        inside = (at >= 0) & (start < steps.end_ps[outer][at])
        names = np.array([steps.label(index) for index in range(outer.start, outer.stop)], object)
        out[inside] = names[at[inside]]
    return out


def _of_section(read: Callable[[Section], str]) -> OfTrack:
    return lambda timeline, section, _, __: read(timeline.sections[section])


def _by_track(read: OfTrack) -> Callable[[TimelineContent, Any], Texts]:
    """Reads a column of some events."""

    def column(content: TimelineContent, rows: Any) -> Texts:  # noqa: ANN401 - places of rows
        part, selection, places = content.part, content.selection, np.asarray(rows, np.int64)
        assert selection is not None, "the report is of events"
        of_track, index, out = selection.of_track[places], selection.index[places], np.empty(len(places), object)
        for number in np.unique(of_track).tolist():
            mine, place = np.flatnonzero(of_track == number), part.places[number]
            out[mine] = read(part.timeline, place[0], part.timeline.track(place), index[mine])
        return out

    return column


def _device_ps(content: TimelineContent, rows: Any) -> list[int | None]:  # noqa: ANN401 - places of rows
    part, selection, places = content.part, content.selection, np.asarray(rows, np.int64)
    assert selection is not None, "the report is of events"
    with Traces() as traces:
        of_track, index = selection.of_track[places], selection.index[places]
        return durations_of(part.timeline, part.places, of_track, index, traces.at)


def _lanes(content: TimelineContent, rows: Any) -> Any:  # noqa: ANN401 - places of rows, an array
    assert content.selection is not None, "the report is of events"
    return content.selection.lane[np.asarray(rows, np.int64)].astype(np.int64)


def _of_rows(key: str, unit: Unit, read: Any) -> Field[TimelineContent]:  # noqa: ANN401 - a `Reader`
    of_rows = fields.EVENTS.by_key[key]
    return Field(key, unit, read, of_rows.meaning, of_rows.null, of_rows.heading)


_STEP = "the step in which it begins, by the marks on its core's track of steps"
_UNIX = "when it began by its host's clock, in nanoseconds since 1970"
_FIELDS: tuple[Field[TimelineContent], ...] = (
    _of_rows("name", VERBATIM, _by_track(_names)),
    _of_rows("section", VERBATIM, _by_track(_of_section(lambda section: section.label))),
    _of_rows("core", TEXT, _by_track(_of_section(lambda section: section.core))),
    _of_rows("plane", VERBATIM, _by_track(_of_section(lambda section: section.plane))),
    _of_rows("track", VERBATIM, _by_track(lambda _, __, track, ___: track.name)),
    Field("step", TEXT, _by_track(_steps), _STEP, fields.NO_STEP, "step"),
    _of_rows("start_ps", TIME_PS, _by_track(lambda _, __, track, events: track.start_ps[events])),
    Field(
        "start_unix_ns",
        COUNT,
        _by_track(lambda timeline, section, track, events: timeline.unix_ns(section, track.start_ps[events])),
        _UNIX,
        fields.NO_UNIX_TIME,
        "start, Unix ns",
    ),
    _of_rows(
        "duration_ps", TIME_PS, _by_track(lambda _, __, track, events: track.end_ps[events] - track.start_ps[events])
    ),
    _of_rows("device_duration_ps", TIME_PS, _device_ps),
    _of_rows("depth", COUNT, _lanes),
    _of_rows("class", VERBATIM, _by_track(_classes)),
)
EVENTS: Table[TimelineContent] = Table(
    "events", _FIELDS, lambda content: content.shown, json=tuple(field.key for field in _FIELDS)
)
"""The quantities of `fields.EVENTS` without the arguments, the step and the host's clock."""


def section_tables() -> tuple[Table[Any], ...]:
    """The tables that `sections` may have."""
    return fields.TRACKS, EVENTS, fields.SUMMARY


def sections(content: TimelineContent, request: ReportRequest) -> list[Listed]:
    """The tables of the page: its tracks, or the events of an interval and what ran on each track in it."""
    part = content.part
    if content.selection is None:
        return [Rows(fields.TRACKS, track_rows(part.timeline, request.most_rows))]
    return [Rows(EVENTS, limited(content, request)), Rows(fields.SUMMARY, summaries(part))]
