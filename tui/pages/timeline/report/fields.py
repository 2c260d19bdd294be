"""The quantities of the timeline's reports: its tracks, rates and counters, and the events of an interval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.words import significant
from tpuprof.parsers.timeline.measure import MeasuredRow
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.parsers.timeline.part import MOST_TOP_OPS, CounterRange, EventRow, MeanRate, TimelineContent, TrackRow
from tpuprof.tui.draw.format import UNKNOWN, byte_rate, duration, with_unit
from tpuprof.tui.draw.pen import cut, cut_middle
from tpuprof.tui.draw.spans import CLASS_LETTER, CLASS_STYLE, Glyphs, Key, Span, small_bar
from tpuprof.tui.draw.table import Cells, by_item
from tpuprof.tui.report.fields import ALL_FIELDS, ColumnSpec, Field, Metric, Table, table_records
from tpuprof.tui.report.units import COUNT, FLAG, NUMBER, SHARE, TEXT, TIME_PS, Unit, plain

Row = TypeVar("Row")

DERIVED = "derived"

NAME_SEEN = 300  # characters of a name that text and Markdown have room for
BAR_WIDTH = 10
NAME_WIDTH = 26
_PLACE = 20
_TOP_SHOWN = 3
_DEEPEST = 8  # depth of an event from which on its name is indented no further
_PS_PER_MS = 10**9

NO_TIME = "the interval has no duration"
NO_PEAK = "the profile does not give the peak of this core"
NO_USE = f"{NO_PEAK}, or {NO_TIME}"
NO_CORE = "the section does not belong to a core"
NO_UNIT = "the profile does not name the unit"
NO_VALUE = "the counter has no value in the interval"
NO_NUMBER = "the counter has no value in the interval that is a number"
NO_DEVICE_CLOCK = "the event is no run, step or op of a core whose ops have the device's time"
NO_EVENT = "no event reaches into the interval"
NO_STEP = "no step of its core is marked then, or the section does not belong to a core"
NO_UNIX_TIME = "the profile does not record when the capture began"
NO_ARGUMENT = "the stat has no value, or its value is not a finite number"

# --- units and their words


def at_ms(ps: int, decimals: int) -> str:
    """An instant in milliseconds, as `--from` and `--to` take it; cut, never rounded, and without float's errors."""
    sign, size = ("-" if ps < 0 else ""), abs(ps)
    whole, rest = divmod(size, _PS_PER_MS)
    return f"{sign}{whole}.{rest:09d}"[: len(sign) + len(str(whole)) + 1 + decimals]


def rate_words(amount: float | None, unit: str) -> str:
    """A rate with its unit: ``72.5 TFLOP/s``, ``184 GB/s``."""
    if amount is None:
        return UNKNOWN
    is_bytes = unit.startswith("bytes")
    return with_unit(byte_rate(amount), "B/s" if is_bytes else unit)  # FLOPs have the same prefixes


def counter_words(value: float | None) -> str:
    """A counter's value."""
    if value is None:
        return UNKNOWN
    if value and not 1e-3 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return significant(value, 4)


def _top_words(top: Sequence[MeasuredRow], ascii_only: bool) -> str:
    """The names with most self time, and that time."""
    return ", ".join(f"{op.name[:NAME_SEEN]} {duration(op.self_ps, ascii_only)}" for op in top[:_TOP_SHOWN])


def _firsts(pairs: Iterable[Any]) -> list[Any]:
    return [first for first, _ in pairs]


def _printed(pairs: Iterable[Any]) -> list[Any]:
    return list(map(printable, _firsts(pairs)))


_NAME = Unit("text", lambda names: list(map(printable, names)), lambda name, _: name[:NAME_SEEN], is_text=True)
"""A name of the profile, which may be empty."""
_MARKED_NAME = Unit(
    "text", _printed, lambda track, _: track[0][:NAME_SEEN] + (f" ({DERIVED})" if track[1] else ""), is_text=True
)
"""Stored as a track's name and whether it is derived."""
_SECTION_NAME = Unit("text", _printed, lambda pair, _: (pair[1] or pair[0])[:NAME_SEEN], is_text=True)
"""Stored as a section's label and the name of its core, by which people find it on the other pages."""
_UNIT = Unit("text", plain, lambda unit, _: (unit or "")[:NAME_SEEN], is_text=True)
INSTANT = Unit("ps", _firsts, lambda instant, _: at_ms(*instant))
"""Stored as picoseconds and decimals of milliseconds that people need."""
_RATE = Unit("what `unit` says", _firsts, lambda rate, _: rate_words(*rate))  # stored as a figure and its unit
_VALUE = Unit("what `unit` says", plain, lambda value, _: counter_words(value))
_TOP = Unit(
    "objects", lambda tops: [table_records(TOP_OPS, top, range(len(top))) for top in tops], _top_words, is_text=True
)
_ARGUMENTS = Unit("object", plain, lambda args, _: str(args), is_text=True)


# --- how rows are read and drawn


def _field(
    key: str,
    unit: Unit,
    read: Callable[[Row], object],
    meaning: str,
    shown: str | ColumnSpec[Sequence[Row]] = "",
    heading: str = "",
    null: str = "",
) -> Field[Sequence[Row]]:
    """A quantity that is read row by row; `shown` is its heading, or its column, whose title is its heading then."""
    screen = None if isinstance(shown, str) else shown
    heading = heading or (shown if isinstance(shown, str) else shown.title)
    return Field(
        *(key, unit, lambda source, rows: [read(source[row]) for row in rows], meaning, null, heading, screen),
        filter=("name",) if key == "name" else (),
    )


def _column(
    title: str,
    width: int,
    style: Key = "text",
    cells: Callable[[Sequence[Row], Glyphs], Cells] | None = None,
    *,
    is_left: bool = False,
    fixed: bool = False,
    grows: bool = False,
) -> ColumnSpec[Sequence[Row]]:
    """A column that can't be sorted by, with texts cut at their end; one that grows always shows."""
    cutting = cut_middle if grows else cut
    return ColumnSpec(title, width, lambda _: style, None, cells, cutting, is_left, fixed or grows, grows)


def _texts(text: Callable[[Row], str], style: Key) -> Callable[[Sequence[Row], Glyphs], Cells]:
    """Draws texts that are made from rows."""
    return by_item(lambda row, glyphs: (text(row), style))


def _full_name(row: TrackRow) -> str:
    return f"{(row.section.core or row.section.label)[:NAME_SEEN]} / {row.track.name[:NAME_SEEN]}"


def _kind(row: TrackRow) -> str:
    return DERIVED if row.track.is_derived else row.track.kind.replace("_", " ")


def _indented_name(event: EventRow) -> str:
    return min(event.lane, _DEEPEST) * " " + event.track.label(event.number)[:NAME_SEEN]


def _place(row: MeasuredRow, glyphs: Glyphs) -> Span:
    return cut_middle(f"{row.section[:NAME_SEEN]}, {row.track[:NAME_SEEN]}", _PLACE, glyphs), "dim"


def _bar(row: TrackRow, glyphs: Glyphs) -> Span:
    return small_bar(row.busy_fraction or 0.0, BAR_WIDTH, glyphs)[0], "busy"


_SECTION: Field[Any] = _field(
    "section",
    _SECTION_NAME,
    lambda row: (row.section.label, row.section.core),
    "which core or host threads; with several hosts, after the host's name",
    _column("section", 22, "dim"),
)
_OF_CORE = "the core that the section is of, as all pages have it, host:2"
_CORE: Field[Any] = _field("core", TEXT, lambda row: row.section.core or None, _OF_CORE, null=NO_CORE)
_PLANE: Field[Any] = _field("plane", _NAME, lambda row: row.section.plane, "the section's plane in the profile")
_DEPTH: ColumnSpec[Any] = _column("depth", 5)
_TIME: ColumnSpec[Any] = _column("time", 8)
_BUSY: ColumnSpec[Any] = _column("busy", 6, fixed=True)
_SIGN: ColumnSpec[Any] = ColumnSpec(
    "", 1, CLASS_STYLE.__getitem__, lambda name, _: CLASS_LETTER[name], fixed=True, keeps_style=True
)

# --- tracks

_NAMED = "the track's name, which is its line's in the profile"
_LINE: ColumnSpec[Any] = ColumnSpec(
    *("track", NAME_WIDTH, lambda track: "dim" if track[1] else "strong", lambda track, _: track[0][:NAME_SEEN]),
    fixed=True,
    grows=True,
)
_TRACK = _column("track", 34, cells=_texts(_full_name, "strong"), grows=True)
_BARS = _column("", BAR_WIDTH, cells=by_item(_bar), is_left=True, fixed=True)
_KIND = _column("kind", 13, cells=_texts(_kind, "dim"))


def _track_fields(no_time: str, events_width: int) -> tuple[Field[Sequence[TrackRow]], ...]:
    """The quantities of a track over the whole trace, or in an interval.

    Args:
        no_time: why its share of that time may be unknown.
        events_width: cells of the column of events.
    """
    first: ColumnSpec[Any] = _column("first ms", 9, "dim")
    last: ColumnSpec[Any] = _column("last ms", 9, "dim")
    events: ColumnSpec[Any] = _column("events", events_width)
    most = f"the names with most self time, at most {MOST_TOP_OPS}"
    return (
        _SECTION,
        _CORE,
        _PLANE,
        _field("line", _MARKED_NAME, lambda row: (row.track.name, row.track.is_derived), _NAMED, _LINE),
        _field("track", _NAME, lambda row: row.track.name, _NAMED, _TRACK),
        _field("kind", TEXT, lambda row: row.track.kind, "the kind of the track's contents", _KIND),
        _field("is_derived", FLAG, lambda row: row.track.is_derived, "made from other tracks, as scopes are from ops"),
        _field("events", COUNT, lambda row: row.events, "events that reach into the time", events),
        _field("first_ps", INSTANT, lambda row: (row.track.span[0], row.decimals), "begin of its first event", first),
        _field("last_ps", INSTANT, lambda row: (row.track.span[1], row.decimals), "end of its last event", last),
        _field("busy_ps", TIME_PS, lambda row: row.busy_ps, "time in which any event of the track ran", _TIME),
        _field(
            "busy_fraction", SHARE, lambda row: row.busy_fraction, "busy time over the whole time", _BUSY, null=no_time
        ),
        _field("busy_bar", SHARE, lambda row: row.busy_fraction, "the busy fraction as a bar", _BARS),
        _field("depth", COUNT, lambda row: row.track.depth, "lanes: the most events that nest or overlap", _DEPTH),
        _field(
            "lost_bytes", COUNT, lambda row: row.track.lost_bytes, "bytes of its line that are missing from the file"
        ),
        _field("damaged_events", COUNT, lambda row: row.track.malformed, "events with damaged bytes"),
        _field("top_ops", _TOP, lambda row: row.top, most, _column("most self time", 36, "dim")),
    )


TRACKS: Table[Sequence[TrackRow]] = Table(
    "tracks",
    _track_fields("the trace has no duration", 10),
    len,
    json=(
        *("section", "core", "plane", "line", "kind", "is_derived", "events", "first_ps", "last_ps"),
        *("busy_ps", "busy_fraction", "depth", "lost_bytes", "damaged_events"),
    ),
    markdown=("section", "line", "busy_fraction", "busy_ps", "events", "depth", "first_ps", "last_ps"),
    screen=("line", "busy_fraction", "busy_bar", "busy_ps", "events", "depth", "first_ps", "last_ps", "kind"),
)

SUMMARY: Table[Sequence[TrackRow]] = Table(
    "summary",
    _track_fields(NO_TIME, 9),
    len,
    json=("section", "core", "plane", "track", "kind", "is_derived", "events", "busy_ps", "busy_fraction", "top_ops"),
    markdown=("section", "track", "busy_fraction", "busy_ps", "events", "top_ops"),
    screen=("track", "busy_fraction", "busy_bar", "busy_ps", "events", "top_ops"),
)

_OF_SEVERAL = "the name of the events, which may belong to several programs"
_SIDE = "asynchronous ops run side by side"
_TIMES: ColumnSpec[Any] = _column("count", 7)
_SELF: ColumnSpec[Any] = _column("self", 9, fixed=True)

TOP_OPS: Table[Sequence[MeasuredRow]] = Table(
    "top_ops",
    (
        _field("name", _NAME, lambda row: row.name, _OF_SEVERAL, _column("name", 22, grows=True)),
        _field("class", TEXT, lambda row: row.op_class, "class of the first of them", _SIGN),
        _field("section", _NAME, lambda row: row.section, "which core or host threads, or how many tracks"),
        _field("track", _NAME, lambda row: row.track, _NAMED, _column("track", _PLACE, cells=by_item(_place))),
        _field("occurrences", COUNT, lambda row: row.occurrences, "events that reach into the interval", _TIMES),
        _field("self_time_ps", TIME_PS, lambda row: row.self_ps, "their time there without nested events", _SELF),
        _field(
            "share", SHARE, lambda row: row.share, "self time over its tracks' time", _column("share", 7), null=_SIDE
        ),
        _field("total_time_ps", TIME_PS, lambda row: row.total_ps, "their time in the interval", _column("total", 9)),
        _field("average_time_ps", TIME_PS, lambda row: row.average_ps, "total over count", _column("average", 9)),
    ),
    len,
    json=("name", "class", "occurrences", "self_time_ps", "total_time_ps"),
    places=("summary[].top_ops[]",),
)
"""The names with most self time on a track."""

RAN = replace(
    TOP_OPS,
    key="ran",
    json=ALL_FIELDS,
    screen=("class", "name", "self_time_ps", "share", "occurrences", "track", "total_time_ps", "average_time_ps"),
)
"""What ran in an interval, by name."""

BUSY = replace(SUMMARY, key="busy", screen=("track", "busy_fraction", "busy_bar", "busy_ps", "events"))
"""What ran in an interval, by track."""

# --- rates and counters

_AVERAGE = "the average that the ops need by the compiler's count, each op spread over its time"

RATES: Table[Sequence[MeanRate]] = Table(
    "rates",
    (
        _SECTION,
        _CORE,
        _PLANE,
        _field("name", _NAME, lambda row: row.name, "what the ops use: FLOPS or HBM", "rate"),
        _field("unit", _NAME, lambda row: row.unit, "FLOP/s or bytes/s"),
        _field("per_second", _RATE, lambda row: (row.per_second, row.unit), _AVERAGE, "average", null=NO_TIME),
        _field(
            "peak_per_second", _RATE, lambda row: (row.peak, row.unit), "the peak of the core", "peak", null=NO_PEAK
        ),
        _field("use_fraction", SHARE, lambda row: row.use_fraction, "average over peak", "use", null=NO_USE),
    ),
    len,
    json=("section", "core", "plane", "name", "unit", "per_second", "peak_per_second", "use_fraction"),
    markdown=("section", "name", "use_fraction", "per_second", "peak_per_second"),
)
"""What the ops of each core ask for, on average."""

COUNTERS: Table[Sequence[CounterRange]] = Table(
    "counters",
    (
        _SECTION,
        _CORE,
        _PLANE,
        _field("name", _NAME, lambda row: row.name, "the counter's name", "counter"),
        _field("unit", _UNIT, lambda row: row.unit or None, "as the profile names it", "unit", null=NO_UNIT),
        _field("samples", COUNT, lambda row: row.samples, "values in the interval", "values"),
        _field("first_ps", TIME_PS, lambda row: row.first_ps, "when the first of them was taken", null=NO_VALUE),
        _field("last_ps", TIME_PS, lambda row: row.last_ps, "when the last of them was taken", null=NO_VALUE),
        _field("minimum", _VALUE, lambda row: row.minimum, "the least value that held", "least", null=NO_NUMBER),
        _field("maximum", _VALUE, lambda row: row.maximum, "the greatest value that held", "most", null=NO_NUMBER),
        _field("mean", _VALUE, lambda row: row.mean, "each value counts as long as it held", "mean", null=NO_NUMBER),
    ),
    len,
    json=("section", "core", "plane", "name", "unit", "samples", "first_ps", "last_ps", "minimum", "maximum", "mean"),
    markdown=("section", "name", "mean", "minimum", "maximum", "unit", "samples"),
)

# --- events

_STATS = "its stats and those of its metadata, by name; in SQL their JSON: args->>'size'"
_ON_TRACK = "its track: XLA Ops, Async XLA Ops, XLA Modules, Steps, Sparse Core Ops, or the name of a host thread"
_CALLED = "the event's name; for an HLO op its name, not its text"
_CLASS = "what runs: compute (matrix unit), vector, copy, collective, host, idle or unknown"
_LABEL = _column("event", 30, cells=_texts(_indented_name, "strong"), grows=True)
_BEGAN = "when it began, on the trace's clock"
_LASTED = "how long it took on the trace's clock, which the profiler realigns with the host's now and then"
_DEVICE = "how long it took by the device's clock, as pages of steps and ops measure"
_START: ColumnSpec[Any] = _column("start ms", 9, "dim", fixed=True)
_TAKES: ColumnSpec[Any] = _column("duration", 8, fixed=True)

EVENTS: Table[Sequence[EventRow]] = Table(
    "events",
    (
        _field("name", _NAME, lambda row: row.track.label(row.number), _CALLED, _LABEL, "name"),
        _SECTION,
        _CORE,
        _PLANE,
        _field("track", _NAME, lambda row: row.track.name, _ON_TRACK, _column("track", 18)),
        _field("start_ps", INSTANT, lambda row: (row.start_ps, row.decimals), _BEGAN, _START),
        _field("duration_ps", TIME_PS, lambda row: row.end_ps - row.start_ps, _LASTED, _TAKES),
        _field("device_duration_ps", TIME_PS, lambda row: row.device_ps, _DEVICE, null=NO_DEVICE_CLOCK),
        _field("depth", NUMBER, lambda row: row.lane, "its lane: in how many events it nests", _DEPTH),
        _field("class", TEXT, lambda row: row.track.event_class(row.number), _CLASS, _SIGN, "class"),
        _field("args", _ARGUMENTS, lambda row: row.args, _STATS, null=NO_ARGUMENT),
    ),
    len,
    json=(
        *("name", "section", "core", "plane", "track", "start_ps", "duration_ps", "device_duration_ps"),
        *("depth", "class", "args"),
    ),
    markdown=("start_ps", "duration_ps", "class", "name", "section", "track", "depth"),
    screen=("start_ps", "duration_ps", "class", "name", "track", "depth", "section"),
)
"""Events, some at a time: those of an interval may be more than memory holds."""

_BEGIN: ColumnSpec[Any] = _column("start ms", 14, "dim", fixed=True)
_EVENT: ColumnSpec[Any] = _column("event", 22, grows=True)
FOUND = replace(
    EVENTS,
    key="found",
    fields=(
        *EVENTS.fields,
        replace(EVENTS.by_key["start_ps"], screen=_BEGIN, sort=lambda source: [row.start_ps for row in source]),
        replace(EVENTS.by_key["name"], screen=_EVENT),
    ),
    json=("name", "section", "core", "plane", "track", "start_ps", "duration_ps", "depth", "class"),
    screen=("start_ps", "duration_ps", "class", "name", "track", "section"),
)
"""Events that a search has found."""

# --- figures

_COUNTED = "events that reach into the interval, or all but derived ones"
TRACE: tuple[Metric[Timeline], ...] = (
    Metric("first_ps", TIME_PS, lambda trace: trace.first_ps, "begin of the first event, on the trace's clock"),
    Metric("last_ps", TIME_PS, lambda trace: trace.last_ps, "end of the last event, on the trace's clock"),
    Metric("event_count", COUNT, lambda trace: trace.event_count, _COUNTED),
    Metric("track_count", COUNT, lambda trace: sum(len(section.tracks) for section in trace.sections), "all tracks"),
)

_LACKS = "what is missing from the capture or the file, in sentences"
LOST: Metric[Timeline] = Metric("lost[]", TEXT, lambda trace: trace.lost, _LACKS)

INTERVAL: tuple[Metric[TimelineContent], ...] = (
    Metric("interval.from_ps", TIME_PS, lambda content: content.part.start_ps, "begin of the interval"),
    Metric("interval.to_ps", TIME_PS, lambda content: content.part.end_ps, "the end of the interval, exclusive"),
    Metric("interval.duration_ps", TIME_PS, lambda of: of.part.end_ps - of.part.start_ps, "how long it lasts"),
    Metric("event_count", COUNT, lambda content: len(content.selection or ()), "events that reach into it"),
)
