"""The tracks of a timeline in every format: what each holds, how busy it was, rates and counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.timeline.model import Section, Timeline, Track
from tpuprof.tui.draw.bars import small_bar
from tpuprof.tui.draw.format import UNKNOWN, byte_rate, count, duration, flop_rate, share, significant
from tpuprof.tui.draw.layout import clean, cut_middle, fit, rule, wrap
from tpuprof.tui.draw.spans import Glyphs, Line, Span
from tpuprof.tui.draw.table import Column, chosen_columns, each, header_line, row_lines
from tpuprof.tui.pages.timeline.report.rows import (
    CounterFigure,
    Part,
    RateFigure,
    busy_fraction,
    counter_figures,
    rate_figures,
)
from tpuprof.tui.report.csv import table as csv_table
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, joined
from tpuprof.tui.report.markdown import table as markdown_table
from tpuprof.tui.report.page import Look
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render

DERIVED = "derived"

NAME_SEEN = 300
"""Characters of a name that text and Markdown have room for."""

_BAR = 10
_NAME = 26
_PS_PER_MS = 10**9

NO_TIME = "the interval takes no time"
NO_PEAK = "the profile does not tell how much this core can do at most"
REASONS = {
    "tracks[].busy_fraction": "the trace takes no time",
    "summary[].busy_fraction": NO_TIME,
    "rates[].per_second": NO_TIME,
    "rates[].peak_per_second": NO_PEAK,
    "rates[].use_fraction": f"{NO_PEAK}, or {NO_TIME}",
    "counters[].unit": "the profile does not name the unit",
    "counters[].first_ps": "the counter has no value in the interval",
    "counters[].last_ps": "the counter has no value in the interval",
    "counters[].minimum": "the counter has no value in the interval that is a number",
    "counters[].maximum": "the counter has no value in the interval that is a number",
    "counters[].mean": "the counter has no value in the interval that is a number",
}

TrackRow = tuple[Section, Track]


def track_rows(timeline: Timeline) -> list[TrackRow]:
    """All tracks with the section of each, in the order of the screen."""
    return [(section, track) for section in timeline.sections for track in section.tracks]


# --- JSON


def tracks_json(part: Part, run: Run, warnings: Sequence[str], limit: int) -> str:
    """All tracks, at most `limit` of them or all for 0; rates; counters."""
    timeline = part.timeline
    rows = track_rows(timeline)
    body = {
        "first_ps": timeline.first_ps,
        "last_ps": timeline.last_ps,
        "event_count": timeline.event_count,
        "track_count": len(rows),
        "tracks": [_track(timeline, row) for row in _limited(rows, limit)],
        "rates": rates_json(rate_figures(part)),
        "counters": counters_json(counter_figures(part)),
        "lost": list(timeline.lost),
    }
    return document(head("timeline", run, [timeline.host], warnings), body, REASONS)


def _track(timeline: Timeline, row: TrackRow) -> dict[str, object]:
    section, track = row
    first, last = track.span
    return {
        "section": section.title,
        "plane": section.plane,
        "line": track.name,
        "kind": track.kind,
        "is_derived": track.is_derived,
        "events": len(track),
        "first_ps": first,
        "last_ps": last,
        "busy_ps": track.busy_ps,
        "busy_fraction": busy_fraction(timeline, track),
        "depth": track.depth,
        "lost_bytes": track.lost_bytes,
        "damaged_events": track.malformed,
    }


def rates_json(figures: Sequence[RateFigure]) -> list[dict[str, object]]:
    """The average rates as JSON objects."""
    return [
        {
            "section": one.section,
            "plane": one.plane,
            "name": one.name,
            "unit": one.unit,
            "per_second": one.per_second,
            "peak_per_second": one.peak,
            "use_fraction": one.use_fraction,
        }
        for one in figures
    ]


def counters_json(figures: Sequence[CounterFigure]) -> list[dict[str, object]]:
    """The counters as JSON objects."""
    return [
        {
            "section": one.section,
            "plane": one.plane,
            "name": one.name,
            "unit": one.unit or None,
            "samples": one.samples,
            "first_ps": one.first_ps,
            "last_ps": one.last_ps,
            "minimum": one.minimum,
            "maximum": one.maximum,
            "mean": one.mean,
        }
        for one in figures
    ]


def _limited(rows: Sequence[TrackRow], limit: int) -> Sequence[TrackRow]:
    return rows[:limit] if limit else rows


# --- CSV


def tracks_csv(timeline: Timeline, limit: int) -> str:
    """A row a track."""
    objects = [_track(timeline, row) for row in _limited(track_rows(timeline), limit)]
    header = tuple(_COLUMNS)
    return csv_table(header, ([_cell(one[key]) for key in header] for one in objects))


_COLUMNS = (
    "section",
    "plane",
    "line",
    "kind",
    "is_derived",
    "events",
    "first_ps",
    "last_ps",
    "busy_ps",
    "busy_fraction",
    "depth",
    "lost_bytes",
    "damaged_events",
)


def _cell(value: object) -> str | int | float | None:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str | int | float) else None


# --- Markdown


def tracks_markdown(part: Part, run: Run, warnings: Sequence[str], limit: int) -> str:
    """What the trace covers, a table of tracks, rates, counters, and the remarks."""
    timeline = part.timeline
    rows = track_rows(timeline)
    shown = _limited(rows, limit)
    decimals = time_decimals(timeline.first_ps, timeline.last_ps)
    lines = [f"# Timeline of {escaped(run.name)}", "", f"- host: {escaped(timeline.host)}"]
    lines += [f"- {escaped(covers(timeline))}", *(f"- warning: {escaped(warning)}" for warning in warnings)]
    lines += ["", "## Tracks", ""]
    cells = (
        (
            section.title[:NAME_SEEN],
            track.name[:NAME_SEEN] + (f" ({DERIVED})" if track.is_derived else ""),
            share(busy_fraction(timeline, track)),
            duration(track.busy_ps),
            count(len(track)),
            count(track.depth),
            *(at_ms(time, decimals) for time in track.span),
        )
        for section, track in shown
    )
    columns = ("section", "track", "busy", "time", "events", "depth", "first, ms", "last, ms")
    lines += markdown_table(columns, "llrrrrrr", cells)
    if len(shown) < len(rows):
        lines += ["", f"and {counted(len(rows) - len(shown), 'more track', 'more tracks')}"]
    return joined([*lines, "", *figures_markdown(rate_figures(part), counter_figures(part))])


def figures_markdown(rates: Sequence[RateFigure], counters: Sequence[CounterFigure]) -> Iterator[str]:
    """Tables of rates and counters, where there are any."""
    if rates:
        yield from ("## Rates", "")
        cells = ((one.section[:NAME_SEEN], one.name, share(one.use_fraction), _rate(one), _peak(one)) for one in rates)
        yield from markdown_table(("section", "rate", "use", "average", "peak"), "llrrr", cells)
    if counters:
        yield from ("", "## Counters", "")
        figures = (
            (
                one.section[:NAME_SEEN],
                one.name[:NAME_SEEN],
                *(_value(value) for value in (one.mean, one.minimum, one.maximum)),
                one.unit[:NAME_SEEN],
                count(one.samples),
            )
            for one in counters
        )
        columns = ("section", "counter", "mean", "least", "most", "unit", "values")
        yield from markdown_table(columns, "llrrrlr", figures)


# --- text


def tracks_text(part: Part, run: Run, look: Look, warnings: Sequence[str], limit: int) -> str:
    """The tracks by section, with rates and counters below each, under a line that names run and host."""
    width, glyphs = max(look.width, LEAST_WIDTH), look.glyphs
    timeline = part.timeline
    lines = list(head_lines(timeline, run, covers(timeline), warnings, width, glyphs))
    rates: dict[int, list[RateFigure]] = {}
    counters: dict[int, list[CounterFigure]] = {}
    for (section, _), rate in zip(part.rates, rate_figures(part), strict=True):
        rates.setdefault(id(section), []).append(rate)
    for (section, _), counter in zip(part.counters, counter_figures(part), strict=True):
        counters.setdefault(id(section), []).append(counter)
    left = limit or sum(len(section.tracks) for section in timeline.sections)
    for section in timeline.sections:
        lines.append(
            rule(clean(section.title[:NAME_SEEN], glyphs.name == "ascii"), width, glyphs, _right(section, glyphs))
        )
        shown = section.tracks[:left]
        left -= len(shown)
        columns = chosen_columns(_columns(timeline, shown, glyphs), width)
        lines += [header_line(columns, width, glyphs)] if shown else []
        lines += row_lines(columns, range(len(shown)), None, width, glyphs)
        if len(shown) < len(section.tracks):
            lines.append(fit([(f"  + {count(len(section.tracks) - len(shown))} more", "dim")], width, glyphs))
        lines += figure_lines(rates.get(id(section), ()), counters.get(id(section), ()), width, glyphs)
    return render(lines, look.color)


def head_lines(
    timeline: Timeline, run: Run, what: str, warnings: Sequence[str], width: int, glyphs: Glyphs
) -> Iterator[Line]:
    """What a text report begins with: run and host, what it covers, the warnings."""
    yield heading(f"Timeline of {run.name}", timeline.host, width, glyphs)
    yield from wrap(what, width, "strong", glyphs, [(" ", "text")])
    for warning in warnings:
        yield from wrap(warning, width, "text", glyphs, [(" ! ", "warn")])


def _right(section: Section, glyphs: Glyphs) -> str:
    return clean(section.plane[:40], glyphs.name == "ascii") if section.plane != section.title else ""


def _columns(timeline: Timeline, tracks: Sequence[Track], glyphs: Glyphs) -> list[Column]:
    ascii_only = glyphs.name == "ascii"
    decimals = time_decimals(timeline.first_ps, timeline.last_ps)
    times = 4 + decimals + len(str(abs(timeline.last_ps) // _PS_PER_MS))

    def name(row: int) -> Span:
        return clean(tracks[row].name[:NAME_SEEN], ascii_only), "dim" if tracks[row].is_derived else "strong"

    def bar(row: int) -> Span:
        return small_bar(busy_fraction(timeline, tracks[row]) or 0.0, _BAR, glyphs)[0], "busy"

    def busy(row: int) -> Span:
        return share(busy_fraction(timeline, tracks[row])), "text"

    def time(row: int) -> Span:
        return duration(tracks[row].busy_ps, ascii_only), "text"

    def kind(row: int) -> Span:
        return (DERIVED if tracks[row].is_derived else tracks[row].kind.replace("_", " ")), "dim"

    return [
        Column("name", "track", _NAME, each(name), right=False, fixed=True, grows=True),
        Column("busy", "busy", 6, each(busy), fixed=True),
        Column("", "", _BAR, each(bar), right=False, fixed=True),
        Column("time", "time", 8, each(time)),
        Column("events", "events", 10, each(lambda row: (count(len(tracks[row])), "text"))),
        Column("depth", "depth", 5, each(lambda row: (count(tracks[row].depth), "text"))),
        Column("first", "first, ms", times, each(lambda row: (at_ms(tracks[row].span[0], decimals), "dim"))),
        Column("last", "last, ms", times, each(lambda row: (at_ms(tracks[row].span[1], decimals), "dim"))),
        Column("kind", "kind", 13, each(kind), right=False),
    ]


def figure_lines(
    rates: Iterable[RateFigure], counters: Iterable[CounterFigure], width: int, glyphs: Glyphs, sections: bool = False
) -> Iterator[Line]:
    """A line for each rate and each counter.

    Args:
        sections: each line names its section too.
    """
    ascii_only = glyphs.name == "ascii"
    for rate in rates:
        words = f"{_rate(rate)} of {_peak(rate)}" if rate.peak else f"{_rate(rate)}, peak unknown"
        bar = small_bar(rate.use_fraction or 0.0, _BAR, glyphs)
        figures: tuple[Span, ...] = ((f" {share(rate.use_fraction):>6} ", "text"), (bar[0], "busy"), (bar[1], "dim"))
        yield _labelled(_name(rate, sections), (*figures, (f" {words}", "dim")), width, glyphs)
    for one in counters:
        values = f"{_value(one.minimum)} to {_value(one.maximum)}, {counted(one.samples, 'value')}"
        mean = f" {_value(one.mean)} {clean(one.unit, ascii_only)}".rstrip()
        yield _labelled(_name(one, sections), ((mean, "text"), (f" on average; {values}", "dim")), width, glyphs)


def _name(one: RateFigure | CounterFigure, with_section: bool) -> str:
    return f"{one.section} / {one.name}" if with_section else one.name


def _labelled(name: str, spans: Sequence[Span], width: int, glyphs: Glyphs) -> Line:
    label = cut_middle(clean(name[:NAME_SEEN], glyphs.name == "ascii"), _NAME, glyphs)
    return fit([(f" {label:<{_NAME}}", "strong"), *spans], width, glyphs)


# --- words


def covers(timeline: Timeline) -> str:
    """What the whole trace covers, in words."""
    tracks = sum(not track.is_derived for section in timeline.sections for track in section.tracks)
    decimals = time_decimals(timeline.first_ps, timeline.last_ps)
    begin, end = at_ms(timeline.first_ps, decimals), at_ms(timeline.last_ps, decimals)
    events = f"{counted(timeline.event_count, 'event')} on {counted(tracks, 'track')}"
    return f"{duration(timeline.last_ps - timeline.first_ps)} of trace, {begin} to {end} ms: {events}"


def time_decimals(start_ps: int, end_ps: int) -> int:
    """Decimals of milliseconds that tell a thousandth of an interval."""
    span = end_ps - start_ps
    return next((decimals for decimals in range(3, 9) if span >= 10 ** (12 - decimals)), 9) if span > 0 else 3


def at_ms(ps: int, decimals: int) -> str:
    """An instant in milliseconds, as `--from` and `--to` take it; cut, never rounded, and without float's errors."""
    sign, size = ("-" if ps < 0 else ""), abs(ps)
    whole, rest = divmod(size, _PS_PER_MS)
    return f"{sign}{whole}.{rest:09d}"[: len(sign) + len(str(whole)) + 1 + decimals]


def _rate(one: RateFigure) -> str:
    if one.per_second is None:
        return UNKNOWN
    return _amount(one, one.per_second)


def _peak(one: RateFigure) -> str:
    return UNKNOWN if one.peak is None else _amount(one, one.peak)


def _amount(one: RateFigure, value: float) -> str:
    """A rate with its unit: ``72.5 TFLOP/s``, ``184 GB/s``."""
    is_bytes = one.unit.startswith("bytes")
    text = byte_rate(value) if is_bytes else flop_rate(value / 1e9)
    figure, prefix = ("0", "") if text == "-" else (text[:-1], text[-1])
    return f"{figure} {prefix}{'B/s' if is_bytes else one.unit}"


def _value(value: float | None) -> str:
    """A counter's value."""
    if value is None:
        return UNKNOWN
    if value and not 1e-3 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return significant(value, 4)
