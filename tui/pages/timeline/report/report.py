"""The timeline in every format: its tracks, or the events of an interval or of some tracks.

Reports come as pieces of text, for the events of a trace may be more than memory holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, Problem, ProfileError
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.tui.pages.timeline.report import events, tracks
from tpuprof.tui.pages.timeline.report.rows import Interval, Part, Selection, part_of, select
from tpuprof.tui.pages.timeline.report.tracks import at_ms, time_decimals
from tpuprof.tui.report.output import Produce, Write
from tpuprof.tui.report.page import Asked, Format, Report

HELP = "tpuprof-tui report --help"

MOST_EVENTS = 10_000
"""Events that a report shows where no limit is given."""


@dataclass(frozen=True, slots=True)
class TimelinePart:
    """The part of a timeline that is asked for.

    Attributes:
        part: what of it.
        selection: its events; None where the report is on the tracks as a whole.
        shown: how many of the events are printed.
        warnings: what there is to warn of.
    """

    part: Part
    selection: Selection | None
    shown: int
    warnings: Sequence[str]


def read(asked: Asked) -> TimelinePart:
    """Reads the timeline of one host, and picks what is asked for.

    Raises:
        ProfileError: no track has such a name; exit code 3. While the pieces are read: the file can't be read again.
    """
    run, limit = asked.run, asked.limit
    timeline = asked.session(run).timeline(asked.host, with_steps=False)
    interval = interval_of(asked.options)
    warnings = (*timeline.lost, *timeline.warnings, *host_notes(timeline, run, asked.host))
    if asked.form == "perfetto":
        return TimelinePart(part_of(timeline, interval), None, 0, warnings)
    part = part_of(timeline, interval)
    warnings = (*warnings, *_beyond(part))
    if interval.is_everything:
        return TimelinePart(part, None, 0, warnings)
    selection = select(part)
    shown = min(len(selection), MOST_EVENTS if limit is None else limit or len(selection))
    return TimelinePart(part, selection, shown, (*warnings, *_cut_note(len(selection), shown)))


def interval_of(options: Mapping[str, Any]) -> Interval:
    """Which part of the timeline the options ask for."""
    return Interval(options.get("from_ps"), options.get("to_ps"), options.get("track") or "")


def json(content: TimelinePart, asked: Asked) -> Iterable[str]:
    """Tracks or events as JSON."""
    part, run, selection = content.part, asked.run, content.selection
    if selection is None:
        return (tracks.tracks_json(part, run, content.warnings, asked.most_rows),)
    return events.events_json(part, selection, run, content.warnings, content.shown)


def csv(content: TimelinePart, asked: Asked) -> Iterable[str]:
    """Tracks or events as CSV."""
    if content.selection is None:
        return (tracks.tracks_csv(content.part.timeline, asked.most_rows),)
    return events.events_csv(content.part, content.selection, content.shown)


def markdown(content: TimelinePart, asked: Asked) -> Iterable[str]:
    """Tracks or events as Markdown."""
    part, run, selection = content.part, asked.run, content.selection
    if selection is None:
        return (tracks.tracks_markdown(part, run, content.warnings, asked.most_rows),)
    return events.events_markdown(part, selection, run, content.warnings, content.shown)


def text(content: TimelinePart, asked: Asked) -> Iterable[str]:
    """Tracks or events as plain text."""
    part, run, selection = content.part, asked.run, content.selection
    if selection is None:
        return (tracks.tracks_text(part, run, asked.look, content.warnings, asked.most_rows),)
    return events.events_text(part, selection, run, asked.look, content.warnings, content.shown)


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


def perfetto(content: TimelinePart, asked: Asked) -> Produce:
    """What writes the timeline, or an interval of it, as Chrome trace JSON."""
    timeline, interval = content.part.timeline, interval_of(asked.options)

    def produce(write: Write) -> None:
        from tpuprof.tui.pages.timeline.report.perfetto import write_perfetto  # noqa: PLC0415

        with closing(Trace.open(timeline.path)) as trace:
            write_perfetto(timeline, trace, write, interval.from_ps, interval.to_ps)

    return produce


def check(options: Mapping[str, Any], form: Format, limit: int | None) -> None:
    """Sees that the interval is one, and that the options go with the format."""
    interval = interval_of(options)
    if interval.from_ps is not None and interval.to_ps is not None and interval.from_ps >= interval.to_ps:
        raise ProfileError("usage", "The interval is empty: --to must be later than --from.", HELP, EXIT_USAGE)
    if form != "perfetto":
        return
    if options.get("track") is not None or limit:
        option = "--limit" if options.get("track") is None else "--track"
        sentence = f"{option} does not go with --format perfetto, which is of all events of an interval."
        raise ProfileError("usage", sentence, "--from and --to", EXIT_USAGE)


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text, "perfetto": perfetto},
    warnings=lambda content: content.warnings,
    check=check,
)
