"""The step-time graph: one column a step, stacked by where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tpuprof.parsers.pages.overview_page import Step
from tpuprof.tui.draw.format import duration, significant
from tpuprof.tui.draw.layout import clean, fit
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey

Part = tuple[StyleKey, float]
"""A part of a step: its style and its picoseconds."""

SLOW = 1.15
"""A step is called slow from this multiple of the median on."""

MARKED = 6
"""At most so many slow steps are named below the graph."""

AXIS = 9
"""Cells left of the columns."""

WIDEST = 14
"""Cells of the widest column, gap included."""

PART_WORD: dict[StyleKey, str] = {
    "busy": "busy",
    "class.collective": "all-reduce",
    "class.host": "input",
    "class.idle": "idle",
}
_PART_LETTER: dict[StyleKey, str] = {"busy": "B", "class.collective": "N", "class.host": "H", "class.idle": "."}


def step_parts(step: Step) -> list[Part]:
    """A step's time by part, from the bottom of its column up; what the profile does not break down is busy."""
    parts = step.breakdown
    if parts is None:
        return [("busy", float(step.duration_ps))]
    reduced = min(parts.all_reduce_compute_ps + parts.all_reduce_sync_ps, parts.compute_ps)
    found: list[Part] = [
        ("busy", parts.compute_ps - reduced),
        ("class.collective", reduced),
        ("class.host", parts.infeed_ps + parts.outfeed_ps + parts.host_transfer_ps),
        ("class.idle", parts.idle_ps),
    ]
    return [part for part in found if part[1] > 0]


def _cell(parts: Sequence[Part], low: float, high: float) -> tuple[StyleKey, float]:
    """The part that fills most of the stretch from `low` to `high`, and how much of it is filled at all (0-1)."""
    best: Part = ("busy", 0.0)
    at, filled = 0.0, 0.0
    for key, size in parts:
        inside = max(0.0, min(at + size, high) - max(at, low))
        filled += inside
        if inside > best[1]:
            best = (key, inside)
        at += size
    return best[0], filled / (high - low) if high > low else 0.0


def _column(step: Step, tallest: float, height: int, width: int, glyphs: Glyphs) -> list[Span]:
    """The cells of one step's column, from the top down."""
    parts = step_parts(step)
    whole = sum(size for _, size in parts)
    scaled: list[Part] = [(key, size * step.duration_ps / whole) for key, size in parts] if whole else []
    cells: list[Span] = []
    for row in range(height, 0, -1):
        key, filled = _cell(scaled, tallest * (row - 1) / height, tallest * row / height)
        if glyphs.letters:
            drawn = filled >= 0.5 or (row == 1 and filled > 0)
            cells.append(((_PART_LETTER[key] if drawn else " ") * width, key))
        else:
            eighths = max(1, round(filled * 8)) if filled > 0 else 0
            cells.append((glyphs.column[eighths] * width, key))
    return cells


def visible_steps(count: int, width: int, cursor: int | None) -> tuple[int, int]:
    """First step and number of steps that fit, one column each, with the cursor among them."""
    room = max(1, width - AXIS)
    if count <= room:
        return 0, count
    first = 0 if cursor is None else min(max(0, cursor - room // 2), count - room)
    return first, room


def step_graph(steps: Sequence[Step], width: int, height: int, glyphs: Glyphs, cursor: int | None = None) -> list[Line]:
    """The graph over `height` rows and a row of step names below.

    The axis starts at 0, so that the height of a column is the step's time. Where there are more steps than columns the
    graph shows those around the cursor and says which.
    """
    if not steps:
        return [fit([(" no steps in this profile", "dim")], width, glyphs)]
    first, shown = visible_steps(len(steps), width, cursor)
    chosen = steps[first : first + shown]
    pitch = max(1, min(WIDEST, (width - AXIS) // len(chosen)))
    bar = pitch if pitch < 3 else pitch - 1
    tallest = float(max(step.duration_ps for step in chosen))
    columns = [_column(step, tallest, height, bar, glyphs) for step in chosen]
    lines = []
    for row in range(height):
        label = duration(tallest, glyphs.name == "ascii") if row == 0 else ("0" if row == height - 1 else "")
        line: list[Span] = [(f"{label:>{AXIS - 2}} ", "dim"), (glyphs.vertical, "rule")]
        for column in columns:
            line += [column[row], (" " * (pitch - bar), "text")]
        lines.append(fit(line, width, glyphs))
    lines.append(_names(steps, (first, shown), pitch, width, glyphs, cursor))
    return lines


def _names(
    steps: Sequence[Step], window: tuple[int, int], pitch: int, width: int, glyphs: Glyphs, cursor: int | None
) -> Line:
    """Names below the columns: the cursor's, those of the slowest, the first and the last, as far as they fit."""
    first, shown = window
    room = width - AXIS
    cells = [" "] * room
    keys: list[StyleKey] = ["dim"] * room
    for at, key in _wanted_names(steps, first, first + shown, cursor):
        sign = "" if key == "dim" else glyphs.up
        text = sign + clean(steps[at].name, glyphs.name == "ascii")
        begin = max(0, min((at - first) * pitch, room - len(text)))
        around = cells[max(0, begin - 1) : begin + len(text) + 1]
        if len(text) <= room and all(cell == " " for cell in around):
            cells[begin : begin + len(text)] = text
            keys[begin : begin + len(text)] = [key] * len(text)
    spans: list[Span] = [(f"{'step':>{AXIS - 2}} ", "dim"), (glyphs.vertical, "rule")]
    if shown < len(steps):
        spans = [(f"{first}{glyphs.dash}{first + shown - 1}"[:AXIS].ljust(AXIS), "warn")]
    return fit([*spans, *zip(cells, keys, strict=True)], width, glyphs)


def _wanted_names(steps: Sequence[Step], first: int, last: int, cursor: int | None) -> list[tuple[int, StyleKey]]:
    """Steps to name, the most important first, and the style of their names."""
    middle = median(step.duration_ps for step in steps)
    slow = [at for at in range(first, last) if steps[at].duration_ps >= SLOW * middle]
    slow.sort(key=lambda at: -steps[at].duration_ps)
    wanted: list[tuple[int, StyleKey]] = [(cursor, "cursor")] if cursor is not None and first <= cursor < last else []
    wanted += [(at, "bad") for at in slow[:MARKED]]
    return [*wanted, (first, "dim"), (last - 1, "dim")]


def step_detail(steps: Sequence[Step], cursor: int | None, width: int, glyphs: Glyphs) -> Line:
    """One line on the step under the cursor, else on the slowest one."""
    if not steps:
        return fit([], width, glyphs)
    ascii_only = glyphs.name == "ascii"
    middle = median(step.duration_ps for step in steps)
    at = cursor if cursor is not None else max(range(len(steps)), key=lambda n: steps[n].duration_ps)
    step = steps[at]
    times = step.duration_ps / middle if middle else 1.0
    name = clean(step.name, ascii_only)
    ratio = f"{significant(times)}{glyphs.times}"
    if cursor is None and times < SLOW:
        return fit([(f" steady: the slowest step, {name}, takes {ratio} the median", "dim")], width, glyphs)
    spans: list[Span] = [
        (" step " if cursor is not None else " slowest: step ", "dim"),
        (name, "strong"),
        (f"  {duration(step.duration_ps, ascii_only)}", "strong"),
        (f", {ratio} median", "bad" if times >= SLOW else "dim"),
    ]
    for key, size in _by_excess(steps, at) if step.breakdown is not None else ():
        spans += [("  ", "text"), (PART_WORD[key], key), (f" {duration(size, ascii_only)}", "text")]
    return fit(spans, width, glyphs)


def _by_excess(steps: Sequence[Step], at: int) -> list[Part]:
    """The parts of a step, first what it has most above the median step."""
    sizes = [dict(step_parts(step)) for step in steps]
    usual = {key: median(part.get(key, 0.0) for part in sizes) for key in PART_WORD}
    return sorted(sizes[at].items(), key=lambda part: usual[part[0]] - part[1])


def parts_legend(glyphs: Glyphs) -> Line:
    """What the colours of the columns mean, from the bottom up."""
    spans: list[Span] = []
    for key, letter in _PART_LETTER.items():
        spans += [(letter if glyphs.letters else glyphs.full, key), (f" {PART_WORD[key]}  ", "dim")]
    return tuple(spans)
