"""The timeline in every format: its tracks, or the events of an interval or of some tracks.

Reports come as pieces of text, for the events of a trace may be more than memory holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from json import JSONEncoder, dumps
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.parsers.timeline.part import (
    Content,
    CounterRange,
    Interval,
    MeanRate,
    TimelinePart,
    counter_ranges,
    event_rows,
    mean_rates,
    part_of,
    select,
    summaries,
    time_decimals,
    track_rows,
)
from tpuprof.tui.draw.bars import small_bar
from tpuprof.tui.draw.format import count, duration, share
from tpuprof.tui.draw.layout import cut_middle
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Line, Span
from tpuprof.tui.draw.table import Column, chosen_columns, header_line, more_lines, row_lines
from tpuprof.tui.pages.timeline.report import fields
from tpuprof.tui.report.csv import row_texts
from tpuprof.tui.report.csv import table as csv_table
from tpuprof.tui.report.fields import (
    Item,
    Source,
    Table,
    columns,
    markdown_rows,
    metric_values,
    reasons,
    screen_columns,
    table_records,
)
from tpuprof.tui.report.json import document, head, laid_out, safe
from tpuprof.tui.report.markdown import escaped, fields_table, joined, not_shown, rows_table
from tpuprof.tui.report.output import Produce, Write
from tpuprof.tui.report.page import Format, Report, ReportRequest, Writer
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render

HELP = "tpuprof-tui report --help"

MOST_EVENTS = 10_000  # events that a report shows where no limit is given


def read(request: ReportRequest) -> Content:
    """Reads the timeline of one host, and picks what is asked for.

    Raises:
        ProfileError: no track has such a name; exit code 3. While the pieces are read: the file can't be read again.
    """
    timeline = request.session(request.run).timeline(request.host, with_steps=False)
    interval = interval_of(request.options)
    part = part_of(timeline, interval)
    warnings = (*timeline.lost, *timeline.warnings, *host_notes(timeline, request.run, request.host))
    if request.form == "perfetto":
        return Content(part, None, 0, warnings)
    warnings = (*warnings, *_beyond(part))
    if interval.is_everything:
        return Content(part, None, 0, warnings)
    selection = select(part)
    shown = min(len(selection), MOST_EVENTS if request.limit is None else request.limit or len(selection))
    if shown < len(selection):
        found = counted(len(selection), "event")
        warnings = (*warnings, f"{shown:,} of {found} are shown, the first ones; --limit 0 shows all")
    return Content(part, selection, shown, warnings)


def interval_of(options: Mapping[str, Any]) -> Interval:
    """Which part of the timeline the options ask for."""
    return Interval(options.get("from_ps"), options.get("to_ps"), options.get("track") or "")


# --- formats


def _tracks_json(content: Content, request: ReportRequest) -> str:
    """What the trace covers, its tracks, rates and counters."""
    body = {
        **metric_values(fields.TRACE, content.part.timeline),
        "tracks": _records(fields.TRACKS, track_rows(content.part.timeline, request.most_rows)),
        **_rates_and_counters(content.part),
    }
    return document(_head(content, request), body, _reasons(fields.TRACKS, fields.RATES, fields.COUNTERS))


def _events_json(content: Content, request: ReportRequest) -> Iterator[str]:
    """The interval, a summary by track, rates, counters, and the events, piece by piece."""
    body = {
        **_head(content, request),
        **metric_values(fields.INTERVAL, content),
        "summary": _records(fields.SUMMARY, summaries(content.part)),
        **_rates_and_counters(content.part),
    }
    unknown: dict[str, str] = {}
    why = _reasons(fields.SUMMARY, fields.RATES, fields.COUNTERS)
    first = {key: safe(value, key, why, unknown) for key, value in body.items()}
    dump = JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    with closing(Trace.open(content.part.timeline.path)) as trace:
        yield laid_out(first).removesuffix("\n}\n") + ',\n  "events": ['
        lead = "\n    "
        for events in event_rows(content, trace):
            for event, record in zip(events, _records(fields.EVENTS, events), strict=True):
                yield lead + dump(record)
                lead = ",\n    "
                names = (name for name, value in event.args.items() if value is None)
                unknown |= {f"events[].args.{name}": fields.NO_ARGUMENT for name in names}
    end = laid_out({"unknown": unknown}).removeprefix("{\n")
    yield ("\n  " if content.shown else "") + f"],\n{end}"


def _records(table: Table[Sequence[Item]], rows: Sequence[Item]) -> list[dict[str, object]]:
    return table_records(table, rows, range(len(rows)))


def _cells(table: Table[Sequence[Item]], rows: Sequence[Item]) -> list[list[str]]:
    return markdown_rows(table, rows, range(len(rows)))


def _head(content: Content, request: ReportRequest) -> dict[str, object]:
    return head("timeline", request.run, [content.part.timeline.host], content.warnings)


def _rates_and_counters(part: TimelinePart) -> dict[str, object]:
    """Rates, counters, and what the file lacks."""
    return {
        "rates": _records(fields.RATES, mean_rates(part)),
        "counters": _records(fields.COUNTERS, counter_ranges(part)),
        "lost": list(part.timeline.lost),
    }


def _reasons(*tables: Table[Any]) -> dict[str, str]:
    """Why values in the rows of some tables are null."""
    return {key: why for table in tables for key, why in reasons(table.fields, f"{table.key}[]", {}).items()}


def _tracks_csv(content: Content, request: ReportRequest) -> str:
    """A row a track."""
    rows = track_rows(content.part.timeline, request.most_rows)
    shown = columns(fields.TRACKS, rows, range(len(rows)))
    shown["is_derived"] = [str(value).lower() for value in shown["is_derived"]]
    return csv_table(tuple(shown), zip(*shown.values(), strict=True))


def _events_csv(content: Content, _: ReportRequest) -> Iterator[str]:
    """The events line by line, their arguments as JSON in one cell."""
    with closing(Trace.open(content.part.timeline.path)) as trace:
        yield from row_texts([fields.EVENTS.json])
        for events in event_rows(content, trace):
            shown = columns(fields.EVENTS, events, range(len(events)))
            shown["args"] = [dumps(event.args, ensure_ascii=False) for event in events]
            yield from row_texts(zip(*shown.values(), strict=True))


def _tracks_markdown(content: Content, request: ReportRequest) -> str:
    """What the trace covers, its tracks, rates and counters."""
    timeline = content.part.timeline
    rows = track_rows(timeline, request.most_rows)
    tracks = fields_table(fields.TRACKS, _cells(fields.TRACKS, rows))
    left_out = sum(len(section.tracks) for section in timeline.sections) - len(rows)
    head = _markdown_head(content, request)
    return joined([*head, "", "## Tracks", "", *tracks, *not_shown(left_out), *_figures_markdown(content.part)])


def _events_markdown(content: Content, request: ReportRequest) -> Iterator[str]:
    """The interval, what ran in it, rates and counters, then the events line by line."""
    busy = [row for row in summaries(content.part) if row.events]
    ran = rows_table("What ran", fields.SUMMARY, _cells(fields.SUMMARY, busy))
    yield joined([*_markdown_head(content, request), *ran, *_figures_markdown(content.part)])
    if not content.shown:
        return
    yield "\n".join(["", "## Events", "", *fields_table(fields.EVENTS, ()), ""])
    for events in event_rows(content):
        _, _, *lines = fields_table(fields.EVENTS, _cells(fields.EVENTS, events))
        yield from (f"{line}\n" for line in lines)
    yield from (f"{line}\n" for line in not_shown(len(content.selection or ()) - content.shown))


def _markdown_head(content: Content, request: ReportRequest) -> list[str]:
    lines = [f"# Timeline of {escaped(request.run.name)}", "", f"- host: {escaped(content.part.timeline.host)}"]
    return [*lines, f"- {escaped(covered(content))}", *(f"- warning: {escaped(text)}" for text in content.warnings)]


def _figures_markdown(part: TimelinePart) -> list[str]:
    """Tables of rates and counters, where there are any."""
    rates = rows_table("Rates", fields.RATES, _cells(fields.RATES, mean_rates(part)))
    return rates + rows_table("Counters", fields.COUNTERS, _cells(fields.COUNTERS, counter_ranges(part)))


# --- plain text


def _tracks_text(content: Content, request: ReportRequest) -> str:
    """The tracks by section, with rates and counters below each, under a line that names run and host."""
    width, glyphs = max(request.look.width, LEAST_WIDTH), request.look.glyphs
    timeline = content.part.timeline
    rows = track_rows(timeline, request.most_rows)
    metrics = _figure_spans(content.part, glyphs)
    columns = _columns(fields.TRACKS, rows, timeline.first_ps, timeline.last_ps, Pen(width, glyphs))
    lines = _head_lines(content, request, Pen(width, glyphs))
    first = 0
    for section in timeline.sections:
        plane = section.plane[:40] if section.plane != section.title else ""
        lines.append(Pen(width, glyphs).rule(section.title[: fields.NAME_SEEN], plane))
        shown = range(first, min(len(rows), first + len(section.tracks)))
        first = shown.stop
        if shown:
            lines += [header_line(columns, Pen(width, glyphs)), *row_lines(columns, shown, None, Pen(width, glyphs))]
        lines += more_lines(len(section.tracks) - len(shown), Pen(width, glyphs))
        own = ((figure.name, spans) for figure, spans in metrics if figure.section is section)
        lines += [_figure_line(name, spans, Pen(width, glyphs)) for name, spans in own]
    return render(lines, request.look.color)


def _events_text(content: Content, request: ReportRequest) -> Iterator[str]:
    """What ran by track, then the events in order of time, line by line."""
    part, color = content.part, request.look.color
    width, glyphs = max(request.look.width, LEAST_WIDTH), request.look.glyphs
    lines = _head_lines(content, request, Pen(width, glyphs))
    tracks = summaries(part)
    busy = [row for row in tracks if row.events]
    if busy:
        quiet = len(tracks) - len(busy)
        right = f"{counted(quiet, 'more track')} with nothing" if quiet else ""
        columns = chosen_columns(screen_columns(fields.SUMMARY, busy, glyphs), width)
        lines += [Pen(width, glyphs).rule("What ran", right), header_line(columns, Pen(width, glyphs))]
        lines += row_lines(columns, range(len(busy)), None, Pen(width, glyphs))
    for figure, spans in _figure_spans(part, glyphs):
        lines.append(_figure_line(f"{figure.section.title} / {figure.name}", spans, Pen(width, glyphs)))
    number = len(content.selection or ())
    yield render([*lines, Pen(width, glyphs).rule("Events", count(number))], color)
    for page, events in enumerate(event_rows(content)):
        columns = _columns(fields.EVENTS, events, part.start_ps, part.end_ps, Pen(width, glyphs))
        if not page:
            yield render([header_line(columns, Pen(width, glyphs))], color)
        yield from (render([line], color) for line in row_lines(columns, range(len(events)), None, Pen(width, glyphs)))
    yield from (render([line], color) for line in more_lines(number - content.shown, Pen(width, glyphs)))


def _columns(table: Table[Source], source: Source, start_ps: int, end_ps: int, pen: Pen) -> list[Column]:
    """The columns that fit, those of instants as wide as a time takes."""
    instant = 3 + len(fields.at_ms(end_ps, time_decimals(start_ps, end_ps)))
    columns = screen_columns(table, source, pen.glyphs)
    return chosen_columns(
        [replace(column, width=instant) if column.key == fields.INSTANT_COLUMN else column for column in columns],
        pen.width,
    )


def _head_lines(content: Content, request: ReportRequest, pen: Pen) -> list[Line]:
    """What a report begins with: run and host, what it covers, the warnings."""
    lines = [heading(f"Timeline of {request.run.name}", content.part.timeline.host, pen)]
    lines += pen.wrap(covered(content), "strong", [(" ", "text")])
    return lines + pen.notes(content.warnings, ())


def _figure_line(name: str, spans: Sequence[Span], pen: Pen) -> Line:
    label = cut_middle(name[: fields.NAME_SEEN], fields.NAME_WIDTH, pen.glyphs)
    return pen.fit([(f" {label:<{fields.NAME_WIDTH}}", "strong"), *spans])


def _figure_spans(part: TimelinePart, glyphs: Glyphs) -> list[tuple[MeanRate | CounterRange, Sequence[Span]]]:
    """What there is to say of each rate and of each counter."""
    said: list[tuple[MeanRate | CounterRange, Sequence[Span]]] = []
    for rate in mean_rates(part):
        average, peak = (fields.rate_words(amount, rate.unit) for amount in (rate.per_second, rate.peak))
        words = f"{average} of {peak}" if rate.peak else f"{average}, peak unknown"
        filled, empty = small_bar(rate.use_fraction or 0.0, fields.BAR_WIDTH, glyphs)
        use = f" {share(rate.use_fraction):>6} "
        said.append((rate, ((use, "text"), (filled, "busy"), (empty, "dim"), (f" {words}", "dim"))))
    for counter in counter_ranges(part):
        low, high, mean = map(fields.counter_words, (counter.minimum, counter.maximum, counter.mean))
        words = f" on average; {low} to {high}, {counted(counter.samples, 'value')}"
        unit = counter.unit
        said.append((counter, ((f" {mean} {unit}".rstrip(), "text"), (words, "dim"))))
    return said


def covered(content: Content) -> str:
    """What the report covers: the whole trace, or an interval of it."""
    part, timeline = content.part, content.part.timeline
    if content.selection is not None:
        begin, end, what = part.start_ps, part.end_ps, ""
        events, tracks = len(content.selection), len(part.places)
    else:
        begin, end, what = timeline.first_ps, timeline.last_ps, " of trace"
        events, tracks = timeline.event_count, sum(not track.is_derived for *_, track in timeline.tracks())
    times = " to ".join(instants(begin, end))
    return f"{duration(end - begin)}{what}, {times} ms: {counted(events, 'event')} on {counted(tracks, 'track')}"


def instants(start_ps: int, end_ps: int) -> tuple[str, str]:
    """Both ends of an interval in milliseconds."""
    decimals = time_decimals(start_ps, end_ps)
    return fields.at_ms(start_ps, decimals), fields.at_ms(end_ps, decimals)


# --- others


def perfetto(content: Content, request: ReportRequest) -> Produce:
    """What writes the timeline, or an interval of it, as Chrome trace JSON."""
    timeline, interval = content.part.timeline, interval_of(request.options)

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


def _beyond(part: TimelinePart) -> Sequence[str]:
    """That the interval lies outside of the trace."""
    timeline = part.timeline
    if part.start_ps <= timeline.last_ps and part.end_ps > timeline.first_ps:
        return ()
    begin, end = instants(timeline.first_ps, timeline.last_ps)
    return (f"the interval lies outside of the trace, which is from {begin} to {end} ms",)


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
    tracks: Callable[[Content, ReportRequest], str], events: Callable[[Content, ReportRequest], Iterator[str]]
) -> Writer[Content]:
    """Writes the tracks as a whole, or the events piece by piece."""
    return lambda content, request: (
        (tracks(content, request),) if content.selection is None else events(content, request)
    )


REPORT = Report(
    read=read,
    writers={
        "json": _either(_tracks_json, _events_json),
        "csv": _either(_tracks_csv, _events_csv),
        "md": _either(_tracks_markdown, _events_markdown),
        "text": _either(_tracks_text, _events_text),
        "perfetto": perfetto,
    },
    tables=(fields.TRACKS, fields.EVENTS, fields.SUMMARY, fields.TOP_OPS, fields.RATES, fields.COUNTERS),
    metrics=(*fields.TRACE, fields.LOST, *(figure for figure in fields.INTERVAL if figure.key != "event_count")),
    csv_table=fields.TRACKS,
    warnings=lambda content: content.warnings,
    check=check,
)
