"""The timeline in every format: its tracks, or the events of an interval or of some tracks.

Reports come as pieces of text, for the events of a trace may be more than memory holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.tui.pages.timeline.report import events, tracks
from tpuprof.tui.pages.timeline.report.rows import Asked, Part, part_of, select
from tpuprof.tui.pages.timeline.report.tracks import at_ms, time_decimals
from tpuprof.tui.report.output import Produce, Write
from tpuprof.tui.report.render import Format, Look

MOST_EVENTS = 10_000
"""Events that a report shows where no limit is given."""


def timeline_report(
    timeline: Timeline,
    run: Run,
    asked: Asked,
    form: Format,
    look: Look,
    limit: int | None = None,
    host: str | None = None,
) -> tuple[Iterable[str], tuple[str, ...]]:
    """The report as pieces of text, and the warnings that go with it.

    Args:
        asked: for events; all of the timeline for a report on its tracks.
        limit: rows of the main table, 0 for all. Where it is None all tracks are shown, and `MOST_EVENTS` events.
        host: the one that was asked for.

    Raises:
        ProfileError: no track has such a name; exit code 3. While the pieces are read: the file can't be read again.
    """
    part = part_of(timeline, asked)
    warnings = (*timeline.lost, *timeline.warnings, *host_notes(timeline, run, host), *_beyond(part))
    if asked.is_everything:
        if form == "json":
            return (tracks.tracks_json(part, run, warnings, limit or 0),), warnings
        if form == "csv":
            return (tracks.tracks_csv(timeline, limit or 0),), warnings
        if form == "md":
            return (tracks.tracks_markdown(part, run, warnings, limit or 0),), warnings
        return (tracks.tracks_text(part, run, look, warnings, limit or 0),), warnings
    selection = select(part)
    shown = min(len(selection), MOST_EVENTS if limit is None else limit or len(selection))
    warnings = (*warnings, *_cut_note(len(selection), shown))
    if form == "json":
        return events.events_json(part, selection, run, warnings, shown), warnings
    if form == "csv":
        return events.events_csv(part, selection, shown), warnings
    if form == "md":
        return events.events_markdown(part, selection, run, warnings, shown), warnings
    return events.events_text(part, selection, run, look, warnings, shown), warnings


def host_notes(timeline: Timeline, run: Run, host: str | None) -> Sequence[str]:
    """Which of several hosts the timeline is of, and what is wrong with the others."""
    notes = []
    names = [file.host for file in run.hosts]
    if host is None and len(names) > 1:
        notes.append(f"this is {timeline.host}, one of {len(names):,} hosts; --host shows another one")
        before = names[: names.index(timeline.host)] if timeline.host in names else []
        if before:
            notes.append(f"{counted(len(before), 'host')} can't be read: {examples(before)}")
    return [*notes, *_sentences(run.problems)]


def _beyond(part: Part) -> Sequence[str]:
    """That the interval lies outside of the trace."""
    timeline = part.timeline
    if part.start_ps <= timeline.last_ps and part.end_ps > timeline.first_ps:
        return ()
    decimals = time_decimals(timeline.first_ps, timeline.last_ps)
    begin, end = at_ms(timeline.first_ps, decimals), at_ms(timeline.last_ps, decimals)
    return (f"the interval lies outside of the trace, which is from {begin} to {end} ms",)


def _sentences(problems: Iterable[Problem]) -> list[str]:
    return [problem.sentence for problem in problems]


def _cut_note(found: int, shown: int) -> Sequence[str]:
    if shown == found:
        return ()
    return (f"{shown:,} of {counted(found, 'event')} are shown, the first ones; --limit 0 shows all",)


def perfetto(timeline: Timeline, asked: Asked) -> Produce:
    """What writes the timeline, or an interval of it, as Chrome trace JSON."""

    def produce(write: Write) -> None:
        from tpuprof.tui.pages.timeline.report.perfetto import write_perfetto  # noqa: PLC0415

        with closing(Trace.open(timeline.path)) as trace:
            write_perfetto(timeline, trace, write, asked.from_ps, asked.to_ps)

    return produce
