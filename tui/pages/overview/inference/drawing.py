"""The inference page in cells: how long a session takes, what of it is host, device and transfer, and by module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import significant
from tpuprof.parsers.pages.shared.latencies import (
    NO_RUNS,
    PERCENTILES,
    Bin,
    InferencePage,
    Latency,
    LatencyRow,
    Percentile,
)
from tpuprof.tui.draw.columns import AXIS, ComposedGraph, Cursor, GraphColumns, graph_lines, rows_from
from tpuprof.tui.draw.format import UNKNOWN, count, duration, percent
from tpuprof.tui.draw.pen import NARROW, TALL, WIDE, Canvas, Pen, cut, cut_middle, hstack
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, whole_cells
from tpuprof.tui.pages.overview.inference.fields import BEFORE_ROWS
from tpuprof.tui.report.fields import markdown_rows, short_names
from tpuprof.tui.report.shared.quantities import LATENCIES, NamedLatency, latencies

_FIGURE, _LEAST_BAR, _PHASE = 10, 8, 8  # cells of a duration, of the narrowest bar, and of a module's phase

_FEW_LATENCIES, _ROWS_IN_FULL, _MOST_DIGITS = 4, 5, 6
"""Latencies on a screen that is not tall, rows of a histogram among details, and digits of a histogram's ends."""

_IMPORTANCE = (50.0, 99.0, 90.0, 75.0, 99.9)
"""Percentiles in the order in which there is room for them; the average comes after the first two."""

_PARTS: tuple[tuple[str, str, str, StyleKey], ...] = (
    ("host_ps", "host", "H", "class.host"),
    ("queued_ps", "queued", "Q", "class.idle"),
    ("device_ps", "device", "D", "class.compute"),
    ("communication_ps", "transfer", "T", "class.copy"),
)
"""Attribute, heading, letter and style of each part of a latency, in the order of the bars."""

MEANINGS: Mapping[str, str] = {
    "Session": "a request, or, if the profile has none, a run of the module with the most time. The page says which.",
    "50%, 99%": "that share of the sessions takes no longer. A row shows the session at that rank and its parts.",
    "host": "time that is neither device time nor transfer; from a launch on, the time until the core could start.",
    "queued": "time from a launch on in which the core was busy with earlier runs.",
    "device": "runs of modules; transfer: to the device and from it.",
    "Per second": "sessions over the time from a host's first start to its last end. Tokens a second are unknown: "
    "no event counts tokens.",
    "Histogram": "requests by latency, or runs of the module under the cursor, in bins of equal width, or of equal "
    "ratio (log scale) where the longest takes more than ten times the shortest. Below: the percentiles.",
    "share": "of a module: of the time of all modules over all cores, each core's runs added up. Of a model: of "
    "latencies.",
    "phase": "prefill, decode or sampling, where the module's name says so.",
    "s32[8,1]": "arguments that show the batch: arrays of integers, and arguments that differ from the module's "
    "other shapes.",
    "n/a": "unknown: the notes (W) say why. Unknown is never shown as 0.",
}
"""What the figures are called and mean."""


def compose(page: InferencePage, pen: Pen, height: int | None, cursor: Cursor) -> ComposedGraph:
    """Puts the page together, for a screen of some height or (None) a report; the latter part may lie below its end."""
    tall = height is None or height >= TALL
    lines = [*_headline(page, pen), *([pen.fit([])] if tall else [])]
    about = _about(page, pen)
    lines += about if tall else pen.cut_after(about, 1, "W")
    lines += session_latencies(page, pen, None if tall else _FEW_LATENCIES)
    rows = 5 if tall else 2
    if page.source == "module runs" and cursor.op is not None:
        lines += _runs_histogram(page.modules[min(cursor.op, len(page.modules) - 1)], pen, rows)
    else:
        lines += histogram(page, pen, rows)
    listed = rows_from(len(lines) + 2, "ops", range(len(page.modules)))
    if page.modules:
        lines += module_rows(page.modules, pen, cursor.op)
    if page.source == "requests":
        lines += _model_rows(page.rows, pen)
    if page.launches is not None:
        known = f"{count(page.launches.count)} of {count(page.launches.of)} runs"
        title = "From launch to end"
        lines += _latencies(title, page.launches.average, page.launches.percentiles, pen, known)
    names = short_names(BEFORE_ROWS)
    unknown = ((names[key], why) for key, why in page.unknown.items() if key in names and why != NO_RUNS)
    notes = pen.notes(page.warnings, unknown)
    lines += [pen.rule("Notes, and what this profile cannot show"), *notes] if notes else []
    return ComposedGraph(tuple(pen.fit(line) for line in lines), -1, -1, listed)


def session_latencies(page: InferencePage, pen: Pen, most: int | None) -> list[Line]:
    """Latency at percentiles and on average, at most so many of these rows, taken apart; nothing without sessions."""
    if page.average is None:
        return []
    title = {"requests": "Session latency", "annotated spans": "Latency of a span"}.get(
        page.source or "", "Latency of a run"
    )
    return _latencies(title, page.average, page.percentiles, pen, _session_words(page), most)


def _session_words(page: InferencePage) -> str:
    if page.source == "requests":
        return counted(page.sessions, "request")
    if page.source == "annotated spans":
        return f"{counted(page.sessions, 'span')} of {page.subject}"
    return f"{counted(page.sessions, 'run')} of {page.subject.partition('(')[0]}"


def histogram(page: InferencePage, pen: Pen, height: int) -> list[Line]:
    """A heading, the sessions by latency over so many rows, and where the percentiles lie; nothing for one bin."""
    places = {each.percentile: each.latency.total_ps for each in page.percentiles}
    return _histogram(page.histogram, places, _session_words(page), pen, height) if len(page.histogram) > 1 else []


def _runs_histogram(row: LatencyRow, pen: Pen, height: int) -> list[Line]:
    """The same of the runs of a module; a sentence and blank lines for one bin, so that nothing below moves."""
    words = f"{counted(row.runs, 'run')} of {row.name.partition('(')[0]}"
    if len(row.histogram) > 1:
        places = dict(zip(PERCENTILES, row.percentiles_ps, strict=True))
        return _histogram(row.histogram, places, words, pen, height)
    alike = pen.fit([(f" {duration(row.average_ps, pen.glyphs.is_ascii)}{' each' * (row.runs > 1)}", "text")])
    return [pen.rule("Histogram", words), alike, *[pen.fit([])] * height]


def _histogram(bins: Sequence[Bin], places: Mapping[float, float], of: str, pen: Pen, height: int) -> list[Line]:
    """A heading, the bins over so many rows, and where the percentiles lie."""
    is_log = bins[-1].high_ps - bins[-1].low_ps > 2 * (bins[0].high_ps - bins[0].low_ps)
    columns, most = GraphColumns(tuple(range(len(bins))), 1, 0), max(each.count for each in bins)

    def cell(index: int, row: int) -> Span:
        eighths = 8 * (bins[index].count / most * height - (height - 1 - row))
        least = 1 if row == height - 1 and bins[index].count else 0
        return pen.glyphs.column[max(least, min(8, round(eighths)))], "class.compute"

    graph = graph_lines(columns, height, count(most), cell, pen)
    right = f"{of}, by latency{', log scale' * is_log}"
    return [pen.rule("Histogram", right), *graph, _marks(bins, places, columns, pen)]


def _marks(bins: Sequence[Bin], places: Mapping[float, float], columns: GraphColumns, pen: Pen) -> Line:
    """The line below the histogram: its ends, and the percentiles that fit between them."""
    pitch, room = columns.pitch(pen.width), pen.width - AXIS
    row, whole = Canvas(room, key="dim"), pitch * len(bins)
    first, last = _ends(bins[0].low_ps, bins[-1].high_ps, pen.glyphs)
    row.put(0, 0, first, "dim")
    row.put(0, whole - len(last), last, "dim")
    for percentile in _IMPORTANCE:
        place = next((at for at, each in enumerate(bins) if places[percentile] < each.high_ps), len(bins) - 1) * pitch
        text = f"{pen.glyphs.up}{percentile:g}%"
        begin = max(0, min(place, whole - len(text)))
        if all(cell == " " for cell in row.cells[0][max(0, begin - 1) : begin + len(text) + 1]):
            row.put(0, begin, text, "text")
    head: list[Span] = [(f"{'time':>{AXIS - 2}} ", "dim"), (pen.glyphs.vertical, "rule")]
    return pen.fit([*head, *zip(row.cells[0], row.keys[0], strict=True)])


def _headline(page: InferencePage, pen: Pen) -> list[Line]:
    """Rows of cards: label, figure, and what it is of."""
    total_ps = {each.percentile: each.latency.total_ps for each in page.percentiles}
    spread = UNKNOWN
    if page.minimum_ps is not None:
        least, most = (duration(ps, pen.glyphs.is_ascii) for ps in (page.minimum_ps, page.maximum_ps))
        spread = f"{least} {pen.glyphs.dash} {most}"
    unit = {"requests": "requests", "annotated spans": "spans"}.get(page.source or "", "runs")
    median = total_ps.get(50.0)
    times = f"{significant(total_ps[99.0] / median)}{pen.glyphs.times} median" if median else ""
    cards: list[tuple[str, str, str]] = [
        ("MEDIAN", duration(total_ps.get(50.0), pen.glyphs.is_ascii, 4), "p50" if 50.0 in total_ps else ""),
        ("p99", duration(total_ps.get(99.0), pen.glyphs.is_ascii, 4), times),
        ("AVERAGE", duration(page.average.total_ps if page.average else None, pen.glyphs.is_ascii, 4), spread),
        ("SESSIONS", count(page.sessions), unit if page.source else ""),
        ("PER SECOND", _rate(page.sessions_per_second), "first to last" if page.sessions_per_second else ""),
    ]
    rooms = [pen.width // 6, pen.width // 6, pen.width // 4, pen.width // 6]
    rooms.append(pen.width - sum(rooms))
    blocks = []
    for (label, figure, note), room in zip(cards, rooms, strict=True):
        key: StyleKey = "dim" if figure == UNKNOWN else "strong"
        rows: list[list[Span]] = [[(f" {label}", "dim")], [(f" {figure}", key)], [(f" {note}", "dim")]]
        blocks.append([pen.at(room).fit(row) for row in rows])
    return hstack(blocks, rooms)


def _rate(per_second: float | None) -> str:
    if per_second is None:
        return UNKNOWN
    return significant(per_second) if per_second < 1e6 else f"{per_second:.3g}"


def _about(page: InferencePage, pen: Pen) -> list[Line]:
    signs = {"requests": "REQUESTS", "annotated spans": "ANNOTATED", "module runs": "NO REQUESTS"}
    sign = "TRAINING" if page.is_training else signs.get(page.source or "", "NO SESSIONS")
    key: StyleKey = "good" if sign == "REQUESTS" else "warn"
    return pen.wrap(page.note, "text", [(f" {sign} ", key)], indent=1)


def _ends(low_ps: float, high_ps: float, glyphs: Glyphs) -> tuple[str, str]:
    """Two durations with as many digits as it takes to distinguish them, up to a limit."""
    for digits in range(3, _MOST_DIGITS + 1):
        low, high = (duration(ps, glyphs.is_ascii, digits) for ps in (low_ps, high_ps))
        if low != high:
            break
    return low, high


def _most_important(rows: Sequence[Percentile | NamedLatency], most: int | None) -> list[Percentile | NamedLatency]:
    """So many of the rows, in their order."""
    order: tuple[float | str, ...] = (*_IMPORTANCE[:2], "average", *_IMPORTANCE[2:])
    kept = sorted(rows, key=lambda row: order.index(row.percentile))[:most]
    return [row for row in rows if row in kept]


def _latencies(
    title: str, average: Latency, percentiles: Sequence[Percentile], pen: Pen, right: str = "", most: int | None = None
) -> list[Line]:
    """A heading, and a row for each percentile and the average, at most so many: figures and a bar of their parts."""
    rows = _most_important(latencies(percentiles, average), most)
    every = [row.latency for row in rows]
    parts = [part for part in _PARTS if any(getattr(latency, part[0]) is not None for latency in every)]
    longest = max(latency.total_ps for latency in every)
    head = f" {'':<8}{'total':>{_FIGURE}}" + "".join(f"{part[1]:>{_FIGURE}}" for part in parts)
    room = pen.width - len(head) - 3
    lines = [_with_legend(title, right, parts, pen), pen.fit([(head, "dim")])]
    for (name,), latency in zip(markdown_rows(LATENCIES, rows, range(len(rows)), ("percentile",)), every, strict=True):
        metrics = "".join(f"{duration(getattr(latency, part[0]), pen.glyphs.is_ascii):>{_FIGURE}}" for part in parts)
        bar = _bar(latency, parts, longest, pen.at(room)) if room >= _LEAST_BAR else []
        total = f"{duration(latency.total_ps, pen.glyphs.is_ascii):>{_FIGURE}}"
        row: list[Span] = [(f" {name:<8}", "dim"), (total, "strong")]
        lines.append(pen.fit([*row, (metrics, "text"), ("  ", "text"), *bar]))
    return lines


def _with_legend(title: str, right: str, parts: Sequence[tuple[str, str, str, StyleKey]], pen: Pen) -> Line:
    legend: list[Span] = []
    for _, name, letter, key in parts:
        legend += [(f" {letter if pen.glyphs.letters else pen.glyphs.full}", key), (f" {name} ", "dim")]
    room = pen.width - sum(len(text) for text, _ in legend)
    if room < len(title) + len(right) + 8:
        return pen.rule(title, right)
    return (*pen.at(room).rule(title, right), *legend)


def _bar(latency: Latency, parts: Sequence[tuple[str, str, str, StyleKey]], longest: float, pen: Pen) -> list[Span]:
    """A bar as long as the latency is of the longest; its parts by whole cells, what is not zero has one."""
    if longest <= 0 or latency.total_ps <= 0:
        return []
    cells = max(1, round(pen.width * min(1.0, latency.total_ps / longest)))
    shown = [(getattr(latency, part[0]) or 0.0, part[2], part[3]) for part in parts]
    rest = latency.total_ps - sum(size for size, _, _ in shown)
    if rest > latency.total_ps * 1e-9:
        shown.append((rest, "?", "class.unknown"))
    shown = [part for part in shown if part[0] > 0]
    return [
        ((letter if pen.glyphs.letters else pen.glyphs.full) * size, key)
        for (_, letter, key), size in zip(shown, whole_cells([part[0] for part in shown], cells), strict=True)
    ]


def module_rows(rows: Sequence[LatencyRow], pen: Pen, cursor: int | None = None) -> list[Line]:
    """A heading and a row for each module: share, runs, latencies, what it does, its name and what shows its batch."""
    cores = max(row.cores or 0 for row in rows)
    with_average = pen.width >= WIDE or (pen.width >= NARROW and not any(row.inputs for row in rows))
    phases = pen.width >= NARROW and any(row.phase for row in rows)
    head = f"{'cores':>7}" * (pen.width >= WIDE) + f"  {'phase':<{_PHASE}}" * phases
    heading = pen.rule("Modules", f"{count(len(rows))}, by time over {counted(cores, 'core')}")
    lines = [heading, pen.fit([(f"{_row_head(pen.width, with_average)}{head}  module", "dim")])]
    short = [row.name.partition("(")[0] for row in rows]
    for at, (row, name) in enumerate(zip(rows, short, strict=True)):
        metrics = _row_figures(row, pen, with_average) + f"{count(row.cores):>7}" * (pen.width >= WIDE)
        metrics += f"  {cut(row.phase or '', _PHASE, pen.glyphs):<{_PHASE}}" * phases
        # a program's id matters where another one has the same name, and nothing else distinguishes them
        is_told = bool(name) and (short.count(name) == 1 or bool(row.inputs))
        room = max(1, pen.width - len(metrics) - 4)
        named = name if is_told else row.name
        inputs = cut(", ".join(row.inputs), max(room // 3, room - len(named) - 1), pen.glyphs) if row.inputs else ""
        shown = cut_middle(named, room - len(inputs) - 1, pen.glyphs)
        keys: Sequence[StyleKey] = ("cursor",) * 3 if at == cursor else ("text", "strong", "dim")
        texts = metrics, f"  {shown}", f" {inputs}"
        lines.append(pen.fit([(pen.glyphs.mark if at == cursor else " ", "mark"), *zip(texts, keys, strict=True)]))
    return lines


def _shown_percentiles(width: int) -> list[int]:
    return [place for place, percentile in enumerate(PERCENTILES) if width >= WIDE or percentile in (50.0, 99.0)]


def _row_head(width: int, with_average: bool) -> str:
    """The headings of what the rows of modules and those of models have."""
    heads = ["average"] * with_average + [f"{PERCENTILES[at]:g}%" for at in _shown_percentiles(width)]
    heads += ["longest"] * (width >= WIDE)
    return f" {'share':>6} {'runs':>7}" + "".join(f"{name:>{_FIGURE - 1}}" for name in heads)


def _row_figures(row: LatencyRow, pen: Pen, with_average: bool) -> str:
    sizes = [row.average_ps] * with_average + [row.at(at) for at in _shown_percentiles(pen.width)]
    sizes += [row.maximum_ps] * (pen.width >= WIDE)
    metrics = f"{percent(100 * row.fraction):>6} {count(row.runs):>7}"
    return metrics + "".join(f"{duration(size, pen.glyphs.is_ascii):>{_FIGURE - 1}}" for size in sizes)


def _model_rows(rows: Sequence[LatencyRow], pen: Pen) -> list[Line]:
    lines = [pen.rule("Models", f"{count(len(rows))}, by time")]
    lines.append(pen.fit([(f"{_row_head(pen.width, pen.width >= NARROW)}  model", "dim")]))
    for row in rows:
        metrics = f" {_row_figures(row, pen, pen.width >= NARROW)}  "
        name = cut_middle(row.name, max(1, pen.width - len(metrics)), pen.glyphs)
        lines.append(pen.fit([(metrics, "text"), (name, "strong")]))
    return lines


def module_details(row: LatencyRow, pen: Pen) -> list[Line]:
    """All that the page knows of a module."""
    ascii_only = pen.glyphs.is_ascii
    rows = [
        ("share", f"{percent(100 * row.fraction)} of the modules' time over all cores"),
        ("runs", f"{count(row.runs)}, on {counted(row.cores or 0, 'core')}"),
        ("average", duration(row.average_ps, ascii_only)),
        *((f"{at:g}%", duration(ps, ascii_only)) for at, ps in zip(PERCENTILES, row.percentiles_ps, strict=False)),
        ("shortest, longest", f"{duration(row.minimum_ps, ascii_only)}, {duration(row.maximum_ps, ascii_only)}"),
        ("phase", row.phase or f"{UNKNOWN}: its name does not say"),
        ("inputs", ", ".join(row.inputs) or f"{UNKNOWN}: no argument in the profile's HLO shows its batch"),
    ]
    lines = [*pen.wrap(row.name, "strong"), pen.fit([]), *pen.labelled(rows)]
    return [*lines, *(_runs_histogram(row, pen, _ROWS_IN_FULL) if len(row.histogram) > 1 else [])]
