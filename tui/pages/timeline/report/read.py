"""Reads what a report of the timeline is about: one host, or all of them on one time axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import Any

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.timeline import part as timeline_part
from tpuprof.parsers.timeline.hosts.joined import HostRead, clocks_sentence, cut, joined
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.tui.pages.timeline.report import fields
from tpuprof.tui.report.page import ReportRequest, ShownPage

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
    warnings = (*warnings, *_beyond(part))
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
