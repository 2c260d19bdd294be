"""Reads what a report of the timeline is about, one host or all of them on one time axis, and its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.intervals import Int64s, interval_index
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.timeline import part as timeline_part
from tpuprof.parsers.timeline.hosts.joined import HostRead, clocks_sentence, cut, joined
from tpuprof.parsers.timeline.model import CLASSES, Section, Timeline, Track
from tpuprof.parsers.timeline.part import TimelineContent, summaries, track_rows
from tpuprof.parsers.timeline.read.device_clock import durations_of
from tpuprof.parsers.timeline.search import Matches, events_of
from tpuprof.tui.pages.timeline.report import fields
from tpuprof.tui.report.declared import Section as Rows
from tpuprof.tui.report.fields import Field, Table
from tpuprof.tui.report.page import Listed, ReportRequest, ShownPage
from tpuprof.tui.report.units import COUNT, TEXT, TIME_PS, VERBATIM, Unit

MOST_EVENTS = 10_000  # events that the file of a screen has


class Traces(ExitStack):
    """Opens the profiles that events are read from, each when it is asked for first, and closes them all."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, Trace] = {}

    def at(self, path: str) -> Trace:
        if path not in self._open:
            self._open[path] = self.enter_context(closing(Trace.open(path)))
        return self._open[path]


def read(request: ReportRequest) -> timeline_part.TimelineContent:
    """Reads the timeline, and picks what is asked for.

    Raises:
        ProfileError: no track has such a name; exit code 3. While the pieces are read: the file can't be read again.
    """
    interval = interval_of(request.options)
    timeline, notes = _read(request, interval)
    part = timeline_part.part_of(timeline, interval)
    warnings = (*timeline.lost, *timeline.warnings, *notes, *request.run.warnings)
    if request.form == "perfetto":
        return timeline_part.TimelineContent(part, None, 0, warnings)
    warnings = (*warnings, *_beyond(part), *timeline_part.without_host(timeline))
    if interval.is_everything:
        return timeline_part.TimelineContent(part, None, 0, warnings)
    selection = timeline_part.select(part)
    return timeline_part.TimelineContent(part, selection, len(selection), warnings)


def limited(content: timeline_part.TimelineContent, request: ReportRequest) -> timeline_part.TimelineContent:
    """The same with the first events that the limit of a call allows."""
    return replace(content, shown=min(content.shown, request.limit or content.shown))


def interval_of(options: Mapping[str, Any]) -> timeline_part.Interval:
    """Which part of the timeline the options ask for."""
    return timeline_part.Interval(options.get("from_ps"), options.get("to_ps"), options.get("track") or "")


def _read(request: ReportRequest, interval: timeline_part.Interval) -> tuple[Timeline, Sequence[str]]:
    """The timeline of a host, or as much as the report needs of those of all, and what to say of the hosts."""
    run, session = request.run, request.session(request.run)
    files = run.files(request.host)
    if len(files) < 2:
        return session.timeline(request.host, with_steps=False), ()
    is_export = request.form == "perfetto"  # which reads them one by one as it writes them
    hosts = [_read_host(session, file.host, file.path, interval, is_export) for file in files]
    failed = [(host.host, problem) for host, problem in hosts if problem is not None]
    if len(failed) == len(hosts):
        raise failed[0][1]
    timeline = joined([host for host, _ in hosts])
    notes = [clocks_sentence(timeline)]
    notes += (
        [f"{counted(len(failed), 'host')} can't be read: {examples([host for host, _ in failed])}"] if failed else []
    )
    return timeline, [*filter(None, notes), *dict.fromkeys(problem.sentence for _, problem in failed)]


def _read_host(
    session: Session, host: str, path: str, interval: timeline_part.Interval, is_export: bool
) -> tuple[HostRead, ProfileError | None]:
    """A host without what the report does not need; with the error where it can't be read."""
    try:
        found = session.host_timeline(host, with_steps=False, only_first=is_export)
    except ProfileError as error:
        return HostRead(host, path, problem=error.sentence), error
    made = found.timeline
    if made is not None and is_export:
        made = cut(made, None, None, lambda *_: False)
    elif made is not None and not interval.is_everything:
        made = cut(made, interval.from_ps, interval.to_ps, timeline_part.is_wanted(interval))
    return found._replace(timeline=made), None


def shown_page(timeline: Timeline, interval: tuple[int, int], wanted: str) -> ShownPage | None:
    """The events of a timeline in an interval, as the report has them; None where no track has the wanted name.

    At most 10,000 events: each is read again for its arguments.
    """
    try:
        part = timeline_part.part_of(timeline, timeline_part.Interval(*interval, wanted))
    except ProfileError:
        return None
    return ShownPage("timeline", partial(_shown_events, part))


def _shown_events(part: timeline_part.TimelinePart) -> tuple[timeline_part.TimelineContent, str]:
    """The events of a part, and how many these are."""
    selection = timeline_part.select(part)
    shown, found = min(len(selection), MOST_EVENTS), counted(len(selection), "event")
    left_out = (f"{shown:,} of {found} are shown, the first ones",) if shown < len(selection) else ()
    content = timeline_part.TimelineContent(
        part, selection, shown, (*part.timeline.lost, *part.timeline.warnings, *left_out)
    )
    return content, f"{shown:,} of {found}" if left_out else found


def found_events(timeline: Timeline, matches: Matches, most: int) -> list[timeline_part.EventRow]:
    """The events that match a text, by their begin; of very many the `most` longest."""
    decimals = timeline_part.time_decimals(timeline.first_ps, timeline.last_ps)
    found = [events_of(each, number) for number, each in enumerate(matches.tracks)]
    of_track, index, start, end = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.sort(np.argsort(start - end, kind="stable")[:most])
    order = order[np.argsort(start[order], kind="stable")]
    columns, rows = [column[order].tolist() for column in (of_track, index, start, end)], []
    for number, event, begin, last in zip(*columns, strict=True):
        each = matches.tracks[number]
        of = timeline.sections[each.place[0]], each.track, event, each.track.lane_of(event)
        rows.append(timeline_part.EventRow(*of, begin, last, decimals, None, {}, each.place))
    return rows


def _beyond(part: timeline_part.TimelinePart) -> Sequence[str]:
    timeline = part.timeline
    if part.start_ps <= timeline.last_ps and part.end_ps > timeline.first_ps:
        return ()
    begin, end = instants(timeline.first_ps, timeline.last_ps)
    return (f"the interval lies outside of the trace, which is from {begin} to {end} ms",)


def instants(start_ps: int, end_ps: int) -> tuple[str, str]:
    """Both ends of an interval in milliseconds."""
    decimals = timeline_part.time_decimals(start_ps, end_ps)
    return fields.at_ms(start_ps, decimals), fields.at_ms(end_ps, decimals)


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
        outer = steps.lane(0)
        at = interval_index(track.start_ps[events], steps.start_ps[outer], steps.end_ps[outer])
        names = np.array([steps.label(index) for index in range(outer.start, outer.stop)], object)
        out[at >= 0] = names[at[at >= 0]]
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


def _args(content: TimelineContent, rows: Any) -> list[timeline_part.Args]:  # noqa: ANN401 - places of rows
    selection, places = content.selection, np.asarray(rows, np.int64)
    assert selection is not None, "the report is of events"
    with Traces() as traces:
        read = timeline_part.readers(content.part, traces.at)
        return list(map(read, selection.of_track[places].tolist(), selection.index[places].tolist()))


def _lanes(content: TimelineContent, rows: Any) -> Any:  # noqa: ANN401 - places of rows, an array
    assert content.selection is not None, "the report is of events"
    return content.selection.lane[np.asarray(rows, np.int64)].astype(np.int64)


def _of_rows(key: str, unit: Unit, read: Any) -> Field[TimelineContent]:  # noqa: ANN401 - a `Reader`
    of_rows = fields.EVENTS.by_key[key]
    return Field(key, unit, read, of_rows.meaning, of_rows.null, of_rows.heading)


_ARGUMENTS = "args"
_STEP = (
    "the step in which it begins, by the marks on its core's track of steps; SQL takes the overview's where it has none"
)
_END = "when it ended, on the trace's clock"
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
    Field("end_ps", TIME_PS, _by_track(lambda _, __, track, events: track.end_ps[events]), _END, heading="end"),
    _of_rows("device_duration_ps", TIME_PS, _device_ps),
    _of_rows("depth", COUNT, _lanes),
    _of_rows("class", VERBATIM, _by_track(_classes)),
    _of_rows(_ARGUMENTS, fields.EVENTS.by_key[_ARGUMENTS].unit, _args),
)
EVENTS: Table[TimelineContent] = Table(
    "events", _FIELDS, lambda content: content.shown, json=tuple(f.key for f in _FIELDS if f.key != _ARGUMENTS)
)
"""The quantities of `fields.EVENTS`, the step and the host's clock; arguments for those who name their column."""


def section_tables() -> tuple[Table[Any], ...]:
    """The tables that `sections` may have."""
    return fields.TRACKS, EVENTS, fields.SUMMARY


def sections(content: TimelineContent, request: ReportRequest) -> list[Listed]:
    """The tables of the page: its tracks, or the events of an interval and what ran on each track in it."""
    part = content.part
    if content.selection is None:
        return [Rows(fields.TRACKS, track_rows(part.timeline, request.most_rows))]
    return [Rows(EVENTS, limited(content, request)), Rows(fields.SUMMARY, summaries(part))]
