"""The timeline in every format: its tracks, or the events of an interval or of some tracks.

Reports come as pieces of text, for the events of a trace may be more than memory holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from json import JSONEncoder, dumps
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.hosts.joined import clocks_sentence
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.parsers.timeline.part import (
    CounterRange,
    MeanRate,
    TimelineContent,
    TimelinePart,
    counter_ranges,
    event_rows,
    mean_rates,
    summaries,
    time_decimals,
    track_rows,
)
from tpuprof.tui.draw.format import count, duration, share
from tpuprof.tui.draw.pen import Pen, cut_middle
from tpuprof.tui.draw.spans import Glyphs, Line, Span, small_bar
from tpuprof.tui.draw.table import Column, chosen_columns, header_line, more_lines, row_lines
from tpuprof.tui.pages.timeline.report import fields
from tpuprof.tui.pages.timeline.report.read import Traces, instants, interval_of, limited, read
from tpuprof.tui.report.csv import row_texts
from tpuprof.tui.report.csv import table as csv_table
from tpuprof.tui.report.declared import Metrics, Section, drawn_by, values_of
from tpuprof.tui.report.fields import Source, Table, columns, markdown_rows, screen_columns, table_records
from tpuprof.tui.report.json import document, head, json_value, laid_out, left_out
from tpuprof.tui.report.markdown import fields_table, joined, not_shown, page_head
from tpuprof.tui.report.output import Produce, Write
from tpuprof.tui.report.page import Format, Head, Report, ReportRequest, TableOptions, Writer
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render

# --- formats


def _tracks_json(content: TimelineContent, request: ReportRequest) -> str:
    timeline = content.part.timeline
    rows = track_rows(timeline, request.most_rows)
    counts = {fields.TRACKS.key: (sum(len(section.tracks) for section in timeline.sections), len(rows))}
    head = {**_head(content, request), **left_out(counts, request.rest)}
    return document(head, *_body(content, Metrics(fields.TRACE, timeline), Section(fields.TRACKS, rows)))


def _events_json(content: TimelineContent, request: ReportRequest) -> Iterator[str]:
    summary = Section(fields.SUMMARY, summaries(content.part))
    body, why = _body(content, Metrics(fields.INTERVAL, content), summary)
    unknown: dict[str, str] = {}
    counts = left_out({"events": (len(content.selection or ()), content.shown)}, request.rest)
    values = {**_head(content, request), **counts, **body}
    first = {key: json_value(value, key, why, unknown) for key, value in values.items()}
    dump = JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    with Traces() as traces:
        yield laid_out(first).removesuffix("\n}\n") + ',\n  "events": ['
        lead = "\n    "
        for events in event_rows(content, traces.at):
            for event, record in zip(events, table_records(fields.EVENTS, events, range(len(events))), strict=True):
                yield lead + dump(record)
                lead = ",\n    "
                unknown |= {f"events[].{key}": why for key, why in _WHY_NULL.items() if record[key] is None}
                names = (name for name, value in event.args.items() if value is None)
                unknown |= {f"events[].args.{name}": fields.NO_ARGUMENT for name in names}
    end = laid_out({"unknown": unknown}).removeprefix("{\n")
    yield ("\n  " if content.shown else "") + f"],\n{end}"


_WHY_NULL = {"core": fields.NO_CORE, "device_duration_ps": fields.NO_DEVICE_CLOCK}


def _hosts(content: TimelineContent) -> list[str]:
    timeline = content.part.timeline
    return [part.host for part in timeline.hosts if not part.problem] or [timeline.host]


def _head(content: TimelineContent, request: ReportRequest) -> dict[str, object]:
    return head("timeline", request.run, _hosts(content), content.warnings)


def _body(content: TimelineContent, *first: Metrics[Any] | Section[Any]) -> tuple[dict[str, object], dict[str, str]]:
    """Some parts of JSON, the rates and counters, and what the file lacks; and why values in them are null."""
    made = values_of((*first, *_figures(content.part)))
    return {**made.values, "lost": list(content.part.timeline.lost)}, dict(made.reasons)


def _figures(part: TimelinePart) -> tuple[Section[Any], Section[Any]]:
    counters = Section(fields.COUNTERS, counter_ranges(part), "Counters")
    return Section(fields.RATES, mean_rates(part), "Rates"), counters


def _tracks_csv(content: TimelineContent, request: ReportRequest) -> str:
    rows = track_rows(content.part.timeline, request.most_rows)
    shown = columns(fields.TRACKS, rows, range(len(rows)))
    shown["is_derived"] = [str(value).lower() for value in shown["is_derived"]]
    return csv_table(tuple(shown), zip(*shown.values(), strict=True))


def _events_csv(content: TimelineContent, _: ReportRequest) -> Iterator[str]:
    """The events line by line, their arguments as JSON in one cell."""
    with Traces() as traces:
        yield from row_texts([fields.EVENTS.json])
        for events in event_rows(content, traces.at):
            shown = columns(fields.EVENTS, events, range(len(events)))
            shown["args"] = [dumps(event.args, ensure_ascii=False) for event in events]
            yield from row_texts(zip(*shown.values(), strict=True))


def _tracks_markdown(content: TimelineContent, request: ReportRequest) -> str:
    rows = track_rows(content.part.timeline, 0)
    return _markdown(content, request, Section(fields.TRACKS, rows, "Tracks", request.most_rows).markdown())


def _events_markdown(content: TimelineContent, request: ReportRequest) -> Iterator[str]:
    busy = [row for row in summaries(content.part) if row.events]
    yield _markdown(content, request, Section(fields.SUMMARY, busy, "What ran").markdown())
    if not content.shown:
        return
    yield "\n".join(["", "## Events", "", *fields_table(fields.EVENTS, ()), ""])
    for events in event_rows(content):
        _, _, *lines = fields_table(fields.EVENTS, markdown_rows(fields.EVENTS, events, range(len(events))))
        yield from (f"{line}\n" for line in lines)
    yield from (f"{line}\n" for line in not_shown(len(content.selection or ()) - content.shown))


def _markdown(content: TimelineContent, request: ReportRequest, main: Sequence[str]) -> str:
    """Title, host, what the report covers and the warnings; the main table; rates and counters, where there are any."""
    names = _hosts(content)
    whose = f"host: {names[0]}" if len(names) == 1 else f"hosts: {examples(names)}"
    facts = (whose, covered(content))
    lines = page_head(f"Timeline of {request.run.name}", (), warnings=content.warnings, facts=facts)
    return joined([*lines, *main, *(line for figures in _figures(content.part) for line in figures.markdown())])


# --- plain text


def _tracks_text(content: TimelineContent, request: ReportRequest) -> str:
    pen, timeline = _pen(request), content.part.timeline
    rows = track_rows(timeline, request.most_rows)
    metrics = _figure_spans(content.part, pen.glyphs)
    columns = _columns(fields.TRACKS, rows, timeline.first_ps, timeline.last_ps, pen)
    lines = _head_lines(content, request, pen)
    first = 0
    for section in timeline.sections:
        plane = section.plane[:40] if section.plane != section.title else ""
        plane = "  ".join(filter(None, (section.core[:40], plane)))
        lines.append(pen.rule(section.label[: fields.NAME_SEEN], plane))
        shown = range(first, min(len(rows), first + len(section.tracks)))
        first = shown.stop
        if shown:
            lines += [header_line(columns, pen), *row_lines(columns, shown, None, pen)]
        lines += more_lines(len(section.tracks) - len(shown), pen)
        lines += [_figure_line(figure.name, spans, pen) for figure, spans in metrics if figure.section is section]
    return render(lines, request.look.color)


def _events_text(content: TimelineContent, request: ReportRequest) -> Iterator[str]:
    part, color, pen = content.part, request.look.color, _pen(request)
    lines = _head_lines(content, request, pen)
    tracks = summaries(part)
    busy = [row for row in tracks if row.events]
    if busy:
        quiet = len(tracks) - len(busy)
        lines.append(pen.rule("What ran", f"{counted(quiet, 'more track')} with nothing" if quiet else ""))
        lines += Section(fields.SUMMARY, busy).lines(pen, "")
    for figure, spans in _figure_spans(part, pen.glyphs):
        lines.append(_figure_line(f"{figure.section.core or figure.section.label} / {figure.name}", spans, pen))
    number = len(content.selection or ())
    yield render([*lines, pen.rule("Events", count(number))], color)
    for page, events in enumerate(event_rows(content)):
        columns = _columns(fields.EVENTS, events, part.start_ps, part.end_ps, pen)
        if not page:
            yield render([header_line(columns, pen)], color)
        yield from (render([line], color) for line in row_lines(columns, range(len(events)), None, pen))
    yield from (render([line], color) for line in more_lines(number - content.shown, pen))


def _pen(request: ReportRequest) -> Pen:
    return Pen(max(request.look.width, LEAST_WIDTH), request.look.glyphs)


def _columns(table: Table[Source], source: Source, start_ps: int, end_ps: int, pen: Pen) -> list[Column]:
    looks: dict[str, dict[str, Any]] = {key: {} for key in table.screen}
    instant = 3 + len(fields.at_ms(end_ps, time_decimals(start_ps, end_ps)))
    looks |= {key: {"width": instant} for key in table.screen if table.by_key[key].unit is fields.INSTANT}
    return chosen_columns(screen_columns(table, source, pen.glyphs, looks), pen.width)


def _head_lines(content: TimelineContent, request: ReportRequest, pen: Pen) -> list[Line]:
    names = _hosts(content)
    whose = names[0] if len(names) == 1 else counted(len(names), "host")
    lines = [heading(f"Timeline of {request.run.name}", whose, pen)]
    return [*lines, *pen.wrap(covered(content), "strong", [(" ", "text")]), *pen.notes(content.warnings, ())]


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
        said.append((counter, ((f" {mean} {counter.unit}".rstrip(), "text"), (words, "dim"))))
    return said


def covered(content: TimelineContent) -> str:
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


def perfetto(content: TimelineContent, request: ReportRequest) -> Produce:
    """What writes the timeline, or an interval of it, as Chrome trace JSON."""
    timeline, interval = content.part.timeline, interval_of(request.options)

    def produce(write: Write) -> None:
        from tpuprof.tui.pages.timeline.report import perfetto  # noqa: PLC0415

        if timeline.hosts:
            known = {"hosts": _hosts(content), "clocks": clocks_sentence(timeline)}
            perfetto.write_hosts(_hosts_one_by_one(content, request), known, write, interval.from_ps, interval.to_ps)
            return
        with closing(Trace.open(timeline.path)) as trace:
            host = [(timeline, trace)]
            perfetto.write_hosts(host, {"host": timeline.host}, write, interval.from_ps, interval.to_ps)

    return produce


def _hosts_one_by_one(content: TimelineContent, request: ReportRequest) -> Iterator[tuple[Timeline, Trace]]:
    """The hosts that can be read, each with its file open as long as it is looked at."""
    session = request.session(request.run)
    readable = [part for part in content.part.timeline.hosts if not part.problem]
    for part in readable:
        timeline = session.host_timeline(part.host, with_steps=False).timeline
        assert timeline is not None, "a host without one is an error"
        with closing(Trace.open(part.path)) as trace:
            yield timeline, trace


def check(options: Mapping[str, Any], form: Format, limit: int | None) -> None:
    """Sees that the options go with the format."""
    if form != "perfetto":
        return
    if options.get("track") is not None or limit:
        option = "--limit" if options.get("track") is None else "--track"
        sentence = f"{option} does not work with --format perfetto, which writes all events of an interval."
        raise ProfileError("usage", sentence, "--from and --to", EXIT_USAGE)


def _either(
    tracks: Callable[[TimelineContent, ReportRequest], str],
    events: Callable[[TimelineContent, ReportRequest], Iterator[str]],
) -> Writer[TimelineContent]:
    """Writes the tracks as a whole, or the events piece by piece."""
    return lambda content, request: (
        (tracks(content, request),) if content.selection is None else events(limited(content, request), request)
    )


def choose(content: TimelineContent, request: ReportRequest, choice: TableOptions) -> str:
    """The tracks, or the events of an interval, that a call chooses, with the columns that it chooses."""
    rows = _sections(content, replace(request, limit=None))[0]
    head = Head(f"Timeline of {request.run.name}", request.run, _hosts(content), content.warnings)
    made: str = _report_of("timeline", head, rows, choice, request, lambda: fields.NO_EVENT)
    return made


_report_of = drawn_by("tpuprof.tui.report.choice:report_of")
_sections = drawn_by("tpuprof.tui.pages.timeline.report.read:sections")
"""Imported when they are called: for those who choose rows alone."""

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
    choose=choose,
    sections=_sections,
    section_tables=drawn_by("tpuprof.tui.pages.timeline.report.read:section_tables"),
    pictures=drawn_by("tpuprof.tui.pages.timeline.report.picture:pictures"),
)
