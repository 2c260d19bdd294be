"""The timeline as plain text: its tracks by section, or what ran in an interval and its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.timeline.model import Section
from tpuprof.tui.draw.bars import small_bar
from tpuprof.tui.draw.format import count, duration, share
from tpuprof.tui.draw.layout import clean, cut_middle, fit, note_lines, rule, wrap
from tpuprof.tui.draw.spans import Glyphs, Line, Span
from tpuprof.tui.draw.table import Column, chosen_columns, header_line, row_lines
from tpuprof.tui.pages.timeline.report.fields import (
    BAR_WIDTH,
    EVENTS,
    INSTANT_COLUMN,
    NAME_SEEN,
    NAME_WIDTH,
    SUMMARY,
    TRACKS,
    at_ms,
    counter_words,
    rate_words,
)
from tpuprof.tui.pages.timeline.report.part import (
    Content,
    CounterFigure,
    RateFigure,
    counter_figures,
    event_rows,
    rate_figures,
    summaries,
    time_decimals,
    track_rows,
)
from tpuprof.tui.report.fields import Source, Table, screen_columns
from tpuprof.tui.report.page import Asked
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render


def tracks_text(content: Content, asked: Asked) -> str:
    """The tracks by section, with rates and counters below each, under a line that names run and host."""
    width, glyphs = max(asked.look.width, LEAST_WIDTH), asked.look.glyphs
    timeline = content.part.timeline
    rows = track_rows(timeline, asked.most_rows)
    rates, counters = rate_figures(content.part), counter_figures(content.part)
    columns = _columns(TRACKS, rows, timeline.first_ps, timeline.last_ps, width, glyphs)
    lines = _head_lines(content, asked, width, glyphs)
    first = 0
    for section in timeline.sections:
        title = clean(section.title[:NAME_SEEN], glyphs.is_ascii)
        lines.append(rule(title, width, glyphs, _plane(section, glyphs)))
        shown = range(first, min(len(rows), first + len(section.tracks)))
        first = shown.stop
        if shown:
            lines += [header_line(columns, width, glyphs), *row_lines(columns, shown, None, width, glyphs)]
        lines += _more(len(section.tracks) - len(shown), width, glyphs)
        lines += _figure_lines(
            [rate for rate in rates if rate.section is section],
            [counter for counter in counters if counter.section is section],
            width,
            glyphs,
        )
    return render(lines, asked.look.color)


def events_text(content: Content, asked: Asked) -> Iterator[str]:
    """What ran by track, then the events in order of time, line by line."""
    part, color = content.part, asked.look.color
    width, glyphs = max(asked.look.width, LEAST_WIDTH), asked.look.glyphs
    lines = _head_lines(content, asked, width, glyphs)
    tracks = summaries(part)
    busy = [row for row in tracks if row.events]
    if busy:
        quiet = len(tracks) - len(busy)
        right = f"{counted(quiet, 'more track')} with nothing" if quiet else ""
        columns = chosen_columns(screen_columns(SUMMARY, busy, glyphs), width)
        lines += [rule("What ran", width, glyphs, right), header_line(columns, width, glyphs)]
        lines += row_lines(columns, range(len(busy)), None, width, glyphs)
    lines += _figure_lines(rate_figures(part), counter_figures(part), width, glyphs, with_section=True)
    number = len(content.selection or ())
    yield render([*lines, rule("Events", width, glyphs, count(number))], color)
    has_header = False
    for events in event_rows(content):
        columns = _columns(EVENTS, events, part.start_ps, part.end_ps, width, glyphs)
        if not has_header:
            yield render([header_line(columns, width, glyphs)], color)
            has_header = True
        yield from (render([line], color) for line in row_lines(columns, range(len(events)), None, width, glyphs))
    yield from (render([line], color) for line in _more(number - content.shown, width, glyphs))


def _columns(
    table: Table[Source], source: Source, start_ps: int, end_ps: int, width: int, glyphs: Glyphs
) -> list[Column]:
    """The columns that fit, those of instants as wide as a time takes."""
    instant = 3 + len(at_ms(end_ps, time_decimals(start_ps, end_ps)))
    columns = screen_columns(table, source, glyphs)
    return chosen_columns(
        [replace(column, width=instant) if column.key == INSTANT_COLUMN else column for column in columns], width
    )


def _head_lines(content: Content, asked: Asked, width: int, glyphs: Glyphs) -> list[Line]:
    """What a report begins with: run and host, what it covers, the warnings."""
    lines = [heading(f"Timeline of {asked.run.name}", content.part.timeline.host, width, glyphs)]
    lines += wrap(covered(content), width, "strong", glyphs, [(" ", "text")])
    return lines + note_lines(content.warnings, (), width, glyphs)


def _plane(section: Section, glyphs: Glyphs) -> str:
    """A section's plane, where its title is another one."""
    return clean(section.plane[:40], glyphs.is_ascii) if section.plane != section.title else ""


def _more(number: int, width: int, glyphs: Glyphs) -> list[Line]:
    """How many rows are left out, if any."""
    return [fit([(f"  + {count(number)} more", "dim")], width, glyphs)] if number > 0 else []


def _figure_lines(
    rates: Iterable[RateFigure],
    counters: Iterable[CounterFigure],
    width: int,
    glyphs: Glyphs,
    with_section: bool = False,
) -> Iterator[Line]:
    """A line for each rate and each counter.

    Args:
        with_section: each line names its section too.
    """
    ascii_only = glyphs.is_ascii

    def line(figure: RateFigure | CounterFigure, spans: Sequence[Span]) -> Line:
        name = f"{figure.section.title} / {figure.name}" if with_section else figure.name
        label = cut_middle(clean(name[:NAME_SEEN], ascii_only), NAME_WIDTH, glyphs)
        return fit([(f" {label:<{NAME_WIDTH}}", "strong"), *spans], width, glyphs)

    for rate in rates:
        average, peak = (rate_words(amount, rate.unit) for amount in (rate.per_second, rate.peak))
        words = f"{average} of {peak}" if rate.peak else f"{average}, peak unknown"
        filled, empty = small_bar(rate.use_fraction or 0.0, BAR_WIDTH, glyphs)
        use = f" {share(rate.use_fraction):>6} "
        yield line(rate, ((use, "text"), (filled, "busy"), (empty, "dim"), (f" {words}", "dim")))
    for counter in counters:
        values = (
            f"{counter_words(counter.minimum)} to {counter_words(counter.maximum)}, {counted(counter.samples, 'value')}"
        )
        mean = f" {counter_words(counter.mean)} {clean(counter.unit, ascii_only)}".rstrip()
        yield line(counter, ((mean, "text"), (f" on average; {values}", "dim")))


# --- words


def covered(content: Content) -> str:
    """What the report covers: the whole trace, or an interval of it."""
    part, timeline = content.part, content.part.timeline
    if content.selection is not None:
        begin, end = instants(part.start_ps, part.end_ps)
        events = f"{counted(len(content.selection), 'event')} on {counted(len(part.places), 'track')}"
        return f"{duration(part.duration_ps)}, {begin} to {end} ms: {events}"
    tracks = sum(not track.is_derived for section in timeline.sections for track in section.tracks)
    begin, end = instants(timeline.first_ps, timeline.last_ps)
    events = f"{counted(timeline.event_count, 'event')} on {counted(tracks, 'track')}"
    return f"{duration(timeline.last_ps - timeline.first_ps)} of trace, {begin} to {end} ms: {events}"


def instants(start_ps: int, end_ps: int) -> tuple[str, str]:
    """Both ends of an interval in milliseconds."""
    decimals = time_decimals(start_ps, end_ps)
    return at_ms(start_ps, decimals), at_ms(end_ps, decimals)
