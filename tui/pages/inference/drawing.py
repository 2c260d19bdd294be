"""The inference page in cells: how long a session takes, what of it is host, device and transfer, and by module."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.pages.inference import NO_RUNS, PERCENTILES, InferencePage, Latency, Percentile
from tpuprof.tui.draw.bars import whole_cells
from tpuprof.tui.draw.format import UNKNOWN, count, duration, percent, significant
from tpuprof.tui.draw.layout import WIDE, beside, clean, cut_middle, fit, note_lines, rule, wrap
from tpuprof.tui.draw.spans import BLOCK, Glyphs, Line, Span, StyleKey
from tpuprof.tui.pages.inference.fields import BEFORE_ROWS
from tpuprof.tui.report.fields import markdown_rows, short_names
from tpuprof.tui.report.quantities import LATENCIES, latencies

_FIGURE = 10
_LEAST_BAR = 8

_PARTS: tuple[tuple[str, str, str, StyleKey], ...] = (
    ("host_ps", "host", "H", "class.host"),
    ("queued_ps", "queued", "Q", "class.idle"),
    ("device_ps", "device", "D", "class.compute"),
    ("communication_ps", "transfer", "T", "class.copy"),
)
"""Attribute, heading, letter and style of each part of a latency, in the order of the bars."""


def inference(page: InferencePage, width: int, glyphs: Glyphs = BLOCK) -> list[Line]:
    """The whole page."""
    lines = [*_headline(page, width, glyphs), fit([], width, glyphs), *_about(page, width, glyphs)]
    if page.average is not None:
        title = "Session latency" if page.source == "requests" else "Latency of a run"
        lines += _latencies(title, page.average, page.percentiles, width, glyphs)
    if page.launches is not None:
        known = f"{count(page.launches.count)} of {count(page.launches.of)} runs"
        title = "From launch to end"
        lines += _latencies(title, page.launches.average, page.launches.percentiles, width, glyphs, known)
    if page.rows:
        lines += _rows(page, width, glyphs)
    names = short_names(BEFORE_ROWS)
    unknown = ((names[key], why) for key, why in page.unknown.items() if key in names and why != NO_RUNS)
    notes = note_lines(page.warnings, unknown, width, glyphs)
    if notes:
        lines += [rule("Notes, and what this profile cannot tell", width, glyphs), *notes]
    return [fit(line, width, glyphs) for line in lines]


def _headline(page: InferencePage, width: int, glyphs: Glyphs) -> list[Line]:
    """Rows of cards: label, figure, and what it is of."""
    total_ps = {each.percentile: each.latency.total_ps for each in page.percentiles}
    spread = UNKNOWN
    if page.minimum_ps is not None:
        spread = (
            f"{duration(page.minimum_ps, glyphs.is_ascii)} {glyphs.dash} {duration(page.maximum_ps, glyphs.is_ascii)}"
        )
    unit = "requests" if page.source == "requests" else "runs"
    cards: list[tuple[str, str, str]] = [
        ("MEDIAN", duration(total_ps.get(50.0), glyphs.is_ascii, 4), "50%" if 50.0 in total_ps else ""),
        ("99%", duration(total_ps.get(99.0), glyphs.is_ascii, 4), _times(total_ps, glyphs)),
        ("AVERAGE", duration(page.average.total_ps if page.average else None, glyphs.is_ascii, 4), spread),
        ("SESSIONS", count(page.sessions), unit if page.source else ""),
        ("PER SECOND", _rate(page.sessions_per_second), "first to last" if page.sessions_per_second else ""),
    ]
    rooms = [width // 6, width // 6, width // 4, width // 6]
    rooms.append(width - sum(rooms))
    blocks = []
    for (label, figure, note), room in zip(cards, rooms, strict=True):
        key: StyleKey = "dim" if figure == UNKNOWN else "strong"
        rows: list[list[Span]] = [[(f" {label}", "dim")], [(f" {figure}", key)], [(f" {note}", "dim")]]
        blocks.append([fit(row, room, glyphs) for row in rows])
    return beside(blocks, rooms)


def _times(total_ps: dict[float, float], glyphs: Glyphs) -> str:
    """How many times the median the slow ones take."""
    return f"{significant(total_ps[99.0] / total_ps[50.0])}{glyphs.times} median" if total_ps.get(50.0) else ""


def _rate(per_second: float | None) -> str:
    if per_second is None:
        return UNKNOWN
    return significant(per_second) if per_second < 1e6 else f"{per_second:.3g}"


def _about(page: InferencePage, width: int, glyphs: Glyphs) -> list[Line]:
    """What a session is here."""
    signs = {"requests": "REQUESTS", "module runs": "NO REQUESTS"}
    sign = "TRAINING" if page.is_training else signs.get(page.source or "", "NO SESSIONS")
    key: StyleKey = "good" if sign == "REQUESTS" else "warn"
    return wrap(page.note, width, "text", glyphs, [(f" {sign} ", key)], indent=1)


def _latencies(
    title: str, average: Latency, percentiles: Sequence[Percentile], width: int, glyphs: Glyphs, right: str = ""
) -> list[Line]:
    """A heading, and a row for each percentile and the average: figures and a bar of their parts."""
    rows = latencies(percentiles, average)
    every = [row.latency for row in rows]
    parts = [part for part in _PARTS if any(getattr(latency, part[0]) is not None for latency in every)]
    longest = max(latency.total_ps for latency in every)
    head = f" {'':<8}{'total':>{_FIGURE}}" + "".join(f"{part[1]:>{_FIGURE}}" for part in parts)
    room = width - len(head) - 3
    lines = [_with_legend(title, right, parts, width, glyphs), fit([(head, "dim")], width, glyphs)]
    for (name,), latency in zip(markdown_rows(LATENCIES, rows, range(len(rows)), ("percentile",)), every, strict=True):
        figures = "".join(f"{_figure(getattr(latency, part[0]), glyphs):>{_FIGURE}}" for part in parts)
        bar = _bar(latency, parts, longest, room, glyphs) if room >= _LEAST_BAR else []
        row: list[Span] = [(f" {name:<8}", "dim"), (f"{_figure(latency.total_ps, glyphs):>{_FIGURE}}", "strong")]
        lines.append(fit([*row, (figures, "text"), ("  ", "text"), *bar], width, glyphs))
    return lines


def _figure(ps: float | None, glyphs: Glyphs) -> str:
    return duration(ps, glyphs.is_ascii)


def _with_legend(
    title: str, right: str, parts: Sequence[tuple[str, str, str, StyleKey]], width: int, glyphs: Glyphs
) -> Line:
    legend: list[Span] = []
    for _, name, letter, key in parts:
        legend += [(f" {letter if glyphs.letters else glyphs.full}", key), (f" {name} ", "dim")]
    room = width - sum(len(text) for text, _ in legend)
    if room < len(title) + len(right) + 8:
        return rule(title, width, glyphs, right)
    return (*rule(title, room, glyphs, right), *legend)


def _bar(
    latency: Latency, parts: Sequence[tuple[str, str, str, StyleKey]], longest: float, width: int, glyphs: Glyphs
) -> list[Span]:
    """A bar as long as the latency is of the longest; its parts by whole cells, what is not zero has one."""
    if longest <= 0 or latency.total_ps <= 0:
        return []
    cells = max(1, round(width * min(1.0, latency.total_ps / longest)))
    shown = [(getattr(latency, part[0]) or 0.0, part[2], part[3]) for part in parts]
    rest = latency.total_ps - sum(size for size, _, _ in shown)
    if rest > latency.total_ps * 1e-9:
        shown.append((rest, "?", "class.unknown"))
    shown = [part for part in shown if part[0] > 0]
    return [
        ((letter if glyphs.letters else glyphs.full) * size, key)
        for (_, letter, key), size in zip(shown, whole_cells([part[0] for part in shown], cells), strict=True)
    ]


def _rows(page: InferencePage, width: int, glyphs: Glyphs) -> list[Line]:
    """A heading and a row for each model or module."""
    is_module = page.source == "module runs"
    kind = "module" if is_module else "model"
    shown = [place for place, percentile in enumerate(PERCENTILES) if width >= WIDE or percentile in (50.0, 99.0)]
    heads = ["average", *(f"{PERCENTILES[place]:g}%" for place in shown), "longest"]
    head = f" {'share':>6}  {'runs':>9}" + "".join(f"{name:>{_FIGURE}}" for name in heads)
    head += f"{'cores':>7}" if is_module and width >= WIDE else ""
    title = f"{kind.capitalize()}s"
    heading = rule(title, width, glyphs, f"{count(len(page.rows))}, by time")
    lines = [heading, fit([(f"{head}  {kind}", "dim")], width, glyphs)]
    short = [row.name.partition("(")[0] for row in page.rows]
    for row, name in zip(page.rows, short, strict=True):
        sizes = [row.average_ps, *(row.percentiles_ps[place] for place in shown), row.maximum_ps]
        figures = f" {percent(100 * row.fraction):>6}  {count(row.runs):>9}"
        figures += "".join(f"{_figure(size, glyphs):>{_FIGURE}}" for size in sizes)
        figures += f"{count(row.cores):>7}" if is_module and width >= WIDE else ""
        # a program's id matters where another one has the same name
        shown_name = name if is_module and name and short.count(name) == 1 else row.name
        shown_name = cut_middle(clean(shown_name, glyphs.is_ascii), max(1, width - len(figures) - 2), glyphs)
        lines.append(fit([(f"{figures}  ", "text"), (shown_name, "strong")], width, glyphs))
    return lines
