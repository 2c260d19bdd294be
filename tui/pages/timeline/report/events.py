"""The events of an interval or of some tracks in every format, after a summary of what ran.

An interval may hold millions of events, so the reports come as an iterator of pieces of text: no more than one event's
are in memory at a time.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TypedDict

from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.model import Section, Track
from tpuprof.tui.draw.bars import CLASS_STYLE, small_bar
from tpuprof.tui.draw.format import count, duration, share
from tpuprof.tui.draw.layout import clean, fit, rule
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Span
from tpuprof.tui.draw.table import Column, chosen_columns, each, header_line, row_lines
from tpuprof.tui.pages.timeline.report.rows import (
    Args,
    Part,
    Selection,
    TopOp,
    TrackSummary,
    argument_reader,
    counter_figures,
    rate_figures,
    summaries,
)
from tpuprof.tui.pages.timeline.report.tracks import (
    NAME_SEEN,
    REASONS,
    at_ms,
    counters_json,
    figure_lines,
    figures_markdown,
    head_lines,
    rates_json,
    time_decimals,
)
from tpuprof.tui.report.csv import cell
from tpuprof.tui.report.json import head, laid_out, safe
from tpuprof.tui.report.markdown import escaped, joined
from tpuprof.tui.report.markdown import table as markdown_table
from tpuprof.tui.report.page import Look
from tpuprof.tui.report.text import LEAST_WIDTH, render

_ROWS_AT_ONCE = 500
"""Rows of events that are drawn together."""

_COLUMNS = ("name", "section", "plane", "track", "start_ps", "duration_ps", "depth", "class", "args")
_ARGS_REASON = "the stat has no value, or one that is no finite number"
_CHUNK = 1000
_TOP_SHOWN = 3
_BAR = 10
_NAME = 30
_TRACK = 18


# "class" is no name of a field, so the keys stand in a table
_Event = TypedDict(
    "_Event",
    {
        "name": str,
        "section": str,
        "plane": str,
        "track": str,
        "start_ps": int,
        "duration_ps": int,
        "depth": int,
        "class": str,
        "args": Args,
    },
)


def section_and_track(part: Part, number: int) -> tuple[Section, Track]:
    """One of the part's tracks and its section."""
    at, item = part.places[number]
    section = part.timeline.sections[at]
    return section, section.tracks[item]


def _events(part: Part, selection: Selection, shown: int) -> Iterator[tuple[int, int, int]]:
    """Track, event and lane of the first `shown` events."""
    columns = (selection.of_track[:shown], selection.index[:shown], selection.lane[:shown])
    for begin in range(0, shown, _CHUNK):
        pieces = [column[begin : begin + _CHUNK].tolist() for column in columns]
        yield from zip(*pieces, strict=True)


# --- JSON


def events_json(part: Part, selection: Selection, run: Run, warnings: Sequence[str], shown: int) -> Iterator[str]:
    """The interval, a summary by track, rates, counters, and the first `shown` events."""
    body: dict[str, object] = {
        "interval": {"from_ps": part.start_ps, "to_ps": part.end_ps, "duration_ps": part.end_ps - part.start_ps},
        "event_count": len(selection),
        "shown_count": shown,
        "summary": [_summary(part, one) for one in summaries(part)],
        "rates": rates_json(rate_figures(part)),
        "counters": counters_json(counter_figures(part)),
        "lost": list(part.timeline.lost),
    }
    unknown: dict[str, str] = {}
    first = {**head("timeline", run, [part.timeline.host], warnings), **body}
    document = {key: safe(value, key, REASONS, unknown) for key, value in first.items()}
    dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    with closing(Trace.open(part.timeline.path)) as trace:
        yield laid_out(document).removesuffix("\n}\n") + ',\n  "events": ['
        lead = "\n    "
        for one in _objects(part, selection, trace, shown):
            yield lead + dump(one)
            lead = ",\n    "
            for name, value in one["args"].items():
                if value is None:
                    unknown[f"events[].args.{name}"] = _ARGS_REASON
    end = laid_out({"unknown": unknown}).removeprefix("{\n")
    yield ("\n  " if shown else "") + f"],\n{end}"


def _objects(part: Part, selection: Selection, trace: Trace, shown: int) -> Iterator[_Event]:
    """The events with their arguments, all texts printable."""
    rows = [section_and_track(part, number) for number in range(len(part.places))]
    read = argument_reader(trace, [track for _, track in rows])
    for number, index, lane in _events(part, selection, shown):
        section, track = rows[number]
        start = int(track.start_ps[index])
        yield {
            "name": printable(track.label(index)),
            "section": printable(section.title),
            "plane": printable(section.plane),
            "track": printable(track.name),
            "start_ps": start,
            "duration_ps": int(track.end_ps[index]) - start,
            "depth": lane,
            "class": track.event_class(index),
            "args": read(number, index),
        }


def _summary(part: Part, one: TrackSummary) -> dict[str, object]:
    place = one.share.place
    section = part.timeline.sections[place[0]]
    track = section.tracks[place[1]]
    return {
        "section": section.title,
        "plane": section.plane,
        "track": track.name,
        "kind": track.kind,
        "is_derived": track.is_derived,
        "events": one.share.events,
        "busy_ps": one.share.busy_ps,
        "busy_fraction": one.share.busy_fraction,
        "top_ops": [_top_op(op) for op in one.top],
    }


def _top_op(op: TopOp) -> dict[str, object]:
    return {
        "name": op.name,
        "class": op.op_class,
        "occurrences": op.occurrences,
        "self_time_ps": op.self_ps,
        "total_time_ps": op.total_ps,
    }


# --- CSV


def events_csv(part: Part, selection: Selection, shown: int) -> Iterator[str]:
    """A row an event; its arguments are JSON in one cell."""
    with closing(Trace.open(part.timeline.path)) as trace:
        yield _csv_row(_COLUMNS)
        for one in _objects(part, selection, trace, shown):
            yield _csv_row([*list(one.values())[:-1], json.dumps(one["args"], ensure_ascii=False)])


def _csv_row(cells: Sequence[object]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(
        [cell(value) if isinstance(value, str | int | float) else value for value in cells]
    )
    return out.getvalue()


# --- Markdown


def events_markdown(part: Part, selection: Selection, run: Run, warnings: Sequence[str], shown: int) -> Iterator[str]:
    """The interval, a table of what ran, rates and counters, and a table of the events."""
    timeline = part.timeline
    lines = [f"# Timeline of {escaped(run.name)}", "", f"- host: {escaped(timeline.host)}"]
    lines.append(f"- {covered(part, selection)}")
    lines += [f"- warning: {escaped(warning)}" for warning in warnings]
    busy = [one for one in summaries(part) if one.share.events]
    if busy:
        cells = (
            (
                one.share.section[:NAME_SEEN],
                one.share.track[:NAME_SEEN],
                share(one.share.busy_fraction),
                duration(one.share.busy_ps),
                count(one.share.events),
                ", ".join(f"{op.name[:NAME_SEEN]} {duration(op.self_ps)}" for op in one.top[:_TOP_SHOWN]),
            )
            for one in busy
        )
        titles = ("section", "track", "busy", "time", "events", "most self time")
        lines += ["", "## What ran", "", *markdown_table(titles, "llrrrl", cells)]
    lines += ["", *figures_markdown(rate_figures(part), counter_figures(part))]
    yield joined(lines)
    if not shown:
        return
    columns = ("start, ms", "duration", "class", "name", "section", "track", "depth")
    yield "\n".join(["", "## Events", "", *markdown_table(columns, "rrllllr", ()), ""])
    decimals = time_decimals(part.start_ps, part.end_ps)
    for number, index, lane in _events(part, selection, shown):
        section, track = section_and_track(part, number)
        start = int(track.start_ps[index])
        row = (
            at_ms(start, decimals),
            duration(int(track.end_ps[index]) - start),
            track.event_class(index),
            track.label(index)[:NAME_SEEN],
            section.title[:NAME_SEEN],
            track.name[:NAME_SEEN],
            str(lane),
        )
        yield "\n".join([*markdown_table(columns, "rrllllr", [row])[2:], ""])
    if shown < len(selection):
        yield f"\nand {count(len(selection) - shown)} more\n"


# --- text


def events_text(
    part: Part, selection: Selection, run: Run, look: Look, warnings: Sequence[str], shown: int
) -> Iterator[str]:
    """What ran by track, then the events in order of time."""
    width, glyphs = max(look.width, LEAST_WIDTH), look.glyphs
    lines = list(head_lines(part.timeline, run, covered(part, selection), warnings, width, glyphs))
    found = summaries(part)
    busy = [one for one in found if one.share.events]
    if busy:
        quiet = len(found) - len(busy)
        right = f"{counted(quiet, 'more track')} with nothing" if quiet else ""
        columns = chosen_columns(_summary_columns(busy, glyphs), width)
        lines += [rule("What ran", width, glyphs, right), header_line(columns, width, glyphs)]
        lines += row_lines(columns, range(len(busy)), None, width, glyphs)
    lines += figure_lines(rate_figures(part), counter_figures(part), width, glyphs, sections=True)
    yield render([*lines, rule("Events", width, glyphs, count(len(selection)))], look.color)
    yield from _event_lines(part, selection, shown, width, glyphs, look.color)


def _event_lines(
    part: Part, selection: Selection, shown: int, width: int, glyphs: Glyphs, color: bool
) -> Iterator[str]:
    """The table of events."""
    columns = _event_columns(part, selection, glyphs)
    columns = chosen_columns(columns, width)
    if shown:
        yield render([header_line(columns, width, glyphs)], color)
    for first in range(0, shown, _ROWS_AT_ONCE):
        rows = range(first, min(shown, first + _ROWS_AT_ONCE))
        yield from (render([line], color) for line in row_lines(columns, rows, None, width, glyphs))
    if shown < len(selection):
        yield render([fit([(f"  + {count(len(selection) - shown)} more", "dim")], width, glyphs)], color)


def _summary_columns(busy: Sequence[TrackSummary], glyphs: Glyphs) -> list[Column]:
    ascii_only = glyphs.name == "ascii"

    def name(row: int) -> Span:
        one = busy[row].share
        return clean(f"{one.section[:NAME_SEEN]} / {one.track[:NAME_SEEN]}", ascii_only), "strong"

    def top(row: int) -> Span:
        rows = busy[row].top[:_TOP_SHOWN]
        words = ", ".join(f"{one.name[:100]} {duration(one.self_ps, ascii_only)}" for one in rows)
        return clean(words, ascii_only), "dim"

    def bar(row: int) -> Span:
        return small_bar(busy[row].share.busy_fraction or 0.0, _BAR, glyphs)[0], "busy"

    return [
        Column("track", "track", 34, each(name), right=False, fixed=True, grows=True),
        Column("busy", "busy", 6, each(lambda row: (share(busy[row].share.busy_fraction), "text")), fixed=True),
        Column("", "", _BAR, each(bar), right=False),
        Column("time", "time", 8, each(lambda row: (duration(busy[row].share.busy_ps, ascii_only), "text"))),
        Column("events", "events", 9, each(lambda row: (count(busy[row].share.events), "text"))),
        Column("top", "most self time", 36, each(top), right=False),
    ]


def _event_columns(part: Part, selection: Selection, glyphs: Glyphs) -> list[Column]:
    ascii_only = glyphs.name == "ascii"
    decimals = time_decimals(part.start_ps, part.end_ps)
    times = 3 + decimals + len(at_ms(part.end_ps, 0))

    def of(row: int) -> tuple[Section, Track, int]:
        return (*section_and_track(part, int(selection.of_track[row])), int(selection.index[row]))

    def start(row: int) -> Span:
        _, track, index = of(row)
        return at_ms(int(track.start_ps[index]), decimals), "dim"

    def took(row: int) -> Span:
        _, track, index = of(row)
        return duration(int(track.end_ps[index]) - int(track.start_ps[index]), ascii_only), "text"

    def letter(row: int) -> Span:
        _, track, index = of(row)
        kind = track.event_class(index)
        return CLASS_LETTER[kind], CLASS_STYLE[kind]

    def name(row: int) -> Span:
        _, track, index = of(row)
        lane = int(selection.lane[row])
        return clean(f"{min(lane, 8) * ' '}{track.label(index)[:NAME_SEEN]}", ascii_only), "strong"

    def where(row: int) -> Span:
        _, track, _ = of(row)
        return clean(track.name[:NAME_SEEN], ascii_only), "text"

    def section(row: int) -> Span:
        return clean(of(row)[0].title[:NAME_SEEN], ascii_only), "dim"

    return [
        Column("start", "start, ms", times, each(start), fixed=True),
        Column("took", "duration", 8, each(took), fixed=True),
        Column("", "", 1, each(letter), fixed=True, keeps_style=True),
        Column("name", "event", _NAME, each(name), right=False, fixed=True, grows=True),
        Column("track", "track", _TRACK, each(where), right=False),
        Column("depth", "depth", 5, each(lambda row: (str(int(selection.lane[row])), "text"))),
        Column("section", "section", 22, each(section), right=False),
    ]


def covered(part: Part, selection: Selection) -> str:
    """What the report covers, in words."""
    decimals = time_decimals(part.start_ps, part.end_ps)
    begin, end = at_ms(part.start_ps, decimals), at_ms(part.end_ps, decimals)
    events = f"{counted(len(selection), 'event')} on {counted(len(part.places), 'track')}"
    return f"{duration(part.end_ps - part.start_ps)}, {begin} to {end} ms: {events}"
