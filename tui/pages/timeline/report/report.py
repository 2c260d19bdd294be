"""The timeline in every format: its tracks, or the events of an interval or of some tracks.

Reports come as pieces of text, for the events of a trace may be more than memory holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from json import JSONEncoder, dumps
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.tui.draw.format import count
from tpuprof.tui.pages.timeline.report.fields import (
    COUNTERS,
    EVENTS,
    INTERVAL,
    LOST,
    NO_ARGUMENT,
    RATES,
    SUMMARY,
    TOP_OPS,
    TRACE,
    TRACKS,
)
from tpuprof.tui.pages.timeline.report.part import (
    Content,
    Interval,
    Part,
    counter_figures,
    event_rows,
    part_of,
    rate_figures,
    select,
    summaries,
    track_rows,
)
from tpuprof.tui.pages.timeline.report.text import covered, events_text, instants, tracks_text
from tpuprof.tui.report.csv import row_texts
from tpuprof.tui.report.csv import table as csv_table
from tpuprof.tui.report.fields import Table, columns, figure_values, markdown_rows, reasons, table_records
from tpuprof.tui.report.json import document, head, laid_out, safe
from tpuprof.tui.report.markdown import escaped, fields_table, joined, rows_table
from tpuprof.tui.report.output import Produce, Write
from tpuprof.tui.report.page import Asked, Format, Report, Writer

HELP = "tpuprof-tui report --help"

MOST_EVENTS = 10_000
"""Events that a report shows where no limit is given."""


def read(asked: Asked) -> Content:
    """Reads the timeline of one host, and picks what is asked for.

    Raises:
        ProfileError: no track has such a name; exit code 3. While the pieces are read: the file can't be read again.
    """
    run, limit = asked.run, asked.limit
    timeline = asked.session(run).timeline(asked.host, with_steps=False)
    interval = interval_of(asked.options)
    warnings = (*timeline.lost, *timeline.warnings, *host_notes(timeline, run, asked.host))
    if asked.form == "perfetto":
        return Content(part_of(timeline, interval), None, 0, warnings)
    part = part_of(timeline, interval)
    warnings = (*warnings, *_beyond(part))
    if interval.is_everything:
        return Content(part, None, 0, warnings)
    selection = select(part)
    shown = min(len(selection), MOST_EVENTS if limit is None else limit or len(selection))
    return Content(part, selection, shown, (*warnings, *_cut_note(len(selection), shown)))


def interval_of(options: Mapping[str, Any]) -> Interval:
    """Which part of the timeline the options ask for."""
    return Interval(options.get("from_ps"), options.get("to_ps"), options.get("track") or "")


# --- formats


def _tracks_json(content: Content, asked: Asked) -> str:
    """What the trace covers, its tracks, rates and counters."""
    rows = track_rows(content.part.timeline, asked.most_rows)
    body = {
        **figure_values(TRACE, content.part.timeline),
        "tracks": table_records(TRACKS, rows, range(len(rows))),
        **_rates_and_counters(content.part),
    }
    return document(_head(content, asked), body, _reasons(TRACKS, RATES, COUNTERS))


def _events_json(content: Content, asked: Asked) -> Iterator[str]:
    """The interval, a summary by track, rates, counters, and the events, piece by piece."""
    tracks = summaries(content.part)
    body = {
        **figure_values(INTERVAL, content),
        "summary": table_records(SUMMARY, tracks, range(len(tracks))),
        **_rates_and_counters(content.part),
    }
    unknown: dict[str, str] = {}
    why = _reasons(SUMMARY, RATES, COUNTERS)
    first = {key: safe(value, key, why, unknown) for key, value in {**_head(content, asked), **body}.items()}
    dump = JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    with closing(Trace.open(content.part.timeline.path)) as trace:
        yield laid_out(first).removesuffix("\n}\n") + ',\n  "events": ['
        lead = "\n    "
        for events in event_rows(content, trace):
            for event, record in zip(events, table_records(EVENTS, events, range(len(events))), strict=True):
                yield lead + dump(record)
                lead = ",\n    "
                for name, value in event.args.items():
                    if value is None:
                        unknown[f"events[].args.{name}"] = NO_ARGUMENT
    end = laid_out({"unknown": unknown}).removeprefix("{\n")
    yield ("\n  " if content.shown else "") + f"],\n{end}"


def _head(content: Content, asked: Asked) -> dict[str, object]:
    return head("timeline", asked.run, [content.part.timeline.host], content.warnings)


def _rates_and_counters(part: Part) -> dict[str, object]:
    """Rates, counters, and what the file lacks."""
    rates, counters = rate_figures(part), counter_figures(part)
    return {
        "rates": table_records(RATES, rates, range(len(rates))),
        "counters": table_records(COUNTERS, counters, range(len(counters))),
        "lost": list(part.timeline.lost),
    }


def _reasons(*tables: Table[Any]) -> dict[str, str]:
    """Why values in the rows of some tables are null."""
    return {key: why for table in tables for key, why in reasons(table.fields, f"{table.key}[]", {}).items()}


def _tracks_csv(content: Content, asked: Asked) -> str:
    """A row a track."""
    rows = track_rows(content.part.timeline, asked.most_rows)
    shown = columns(TRACKS, rows, range(len(rows)))
    shown["is_derived"] = [str(value).lower() for value in shown["is_derived"]]
    return csv_table(tuple(shown), zip(*shown.values(), strict=True))


def _events_csv(content: Content, _: Asked) -> Iterator[str]:
    """The events line by line, their arguments as JSON in one cell."""
    with closing(Trace.open(content.part.timeline.path)) as trace:
        yield from row_texts([EVENTS.json])
        for events in event_rows(content, trace):
            shown = columns(EVENTS, events, range(len(events)))
            shown["args"] = [dumps(event.args, ensure_ascii=False) for event in events]
            yield from row_texts(zip(*shown.values(), strict=True))


def _tracks_markdown(content: Content, asked: Asked) -> str:
    """What the trace covers, its tracks, rates and counters."""
    timeline = content.part.timeline
    rows = track_rows(timeline, asked.most_rows)
    cells = markdown_rows(TRACKS, rows, range(len(rows)))
    lines = [*_markdown_head(content, asked), "", "## Tracks", "", *fields_table(TRACKS, cells)]
    left_out = sum(len(section.tracks) for section in timeline.sections) - len(rows)
    lines += ["", f"and {counted(left_out, 'more track', 'more tracks')}"] if left_out else []
    return joined([*lines, *_figures_markdown(content.part)])


def _events_markdown(content: Content, asked: Asked) -> Iterator[str]:
    """The interval, what ran in it, rates and counters, then the events line by line."""
    busy = [row for row in summaries(content.part) if row.events]
    lines = _markdown_head(content, asked)
    lines += rows_table("What ran", SUMMARY, markdown_rows(SUMMARY, busy, range(len(busy))))
    yield joined([*lines, *_figures_markdown(content.part)])
    if not content.shown:
        return
    yield "\n".join(["", "## Events", "", *fields_table(EVENTS, ()), ""])
    for events in event_rows(content):
        _, _, *lines = fields_table(EVENTS, markdown_rows(EVENTS, events, range(len(events))))
        yield from (f"{line}\n" for line in lines)
    left_out = len(content.selection or ()) - content.shown
    if left_out:
        yield f"\nand {count(left_out)} more\n"


def _markdown_head(content: Content, asked: Asked) -> list[str]:
    lines = [f"# Timeline of {escaped(asked.run.name)}", "", f"- host: {escaped(content.part.timeline.host)}"]
    return [*lines, f"- {escaped(covered(content))}", *(f"- warning: {escaped(text)}" for text in content.warnings)]


def _figures_markdown(part: Part) -> list[str]:
    """Tables of rates and counters, where there are any."""
    rates, counters = rate_figures(part), counter_figures(part)
    return [
        *rows_table("Rates", RATES, markdown_rows(RATES, rates, range(len(rates)))),
        *rows_table("Counters", COUNTERS, markdown_rows(COUNTERS, counters, range(len(counters)))),
    ]


def perfetto(content: Content, asked: Asked) -> Produce:
    """What writes the timeline, or an interval of it, as Chrome trace JSON."""
    timeline, interval = content.part.timeline, interval_of(asked.options)

    def produce(write: Write) -> None:
        from tpuprof.tui.pages.timeline.report.perfetto import write_perfetto  # noqa: PLC0415

        with closing(Trace.open(timeline.path)) as trace:
            write_perfetto(timeline, trace, write, interval.from_ps, interval.to_ps)

    return produce


def host_notes(timeline: Timeline, run: Run, host: str | None) -> Sequence[str]:
    """Which of several hosts the timeline is of, and what is wrong with the others."""
    notes = []
    names = [file.host for file in run.hosts]
    if host is None and len(names) > 1:
        notes.append(f"this is {timeline.host}, one of {len(names):,} hosts; --host shows another one")
        before = names[: names.index(timeline.host)] if timeline.host in names else []
        if before:
            notes.append(f"{counted(len(before), 'host')} can't be read: {examples(before)}")
    return [*notes, *(problem.sentence for problem in run.problems)]


def _beyond(part: Part) -> Sequence[str]:
    """That the interval lies outside of the trace."""
    timeline = part.timeline
    if part.start_ps <= timeline.last_ps and part.end_ps > timeline.first_ps:
        return ()
    begin, end = instants(timeline.first_ps, timeline.last_ps)
    return (f"the interval lies outside of the trace, which is from {begin} to {end} ms",)


def _cut_note(found: int, shown: int) -> Sequence[str]:
    if shown == found:
        return ()
    return (f"{shown:,} of {counted(found, 'event')} are shown, the first ones; --limit 0 shows all",)


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


def _either(
    tracks: Callable[[Content, Asked], str], events: Callable[[Content, Asked], Iterator[str]]
) -> Writer[Content]:
    """Writes the tracks as a whole, or the events piece by piece."""
    return lambda content, asked: (tracks(content, asked),) if content.selection is None else events(content, asked)


REPORT = Report(
    read=read,
    writers={
        "json": _either(_tracks_json, _events_json),
        "csv": _either(_tracks_csv, _events_csv),
        "md": _either(_tracks_markdown, _events_markdown),
        "text": _either(tracks_text, events_text),
        "perfetto": perfetto,
    },
    tables=(TRACKS, EVENTS, SUMMARY, TOP_OPS, RATES, COUNTERS),
    figures=(*TRACE, LOST, *(figure for figure in INTERVAL if figure.key != "event_count")),
    csv_table=TRACKS,
    warnings=lambda content: content.warnings,
    check=check,
)
