"""The time axis: round ticks with one unit, and a line of steps, marks and the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.pen import Canvas, clean
from tpuprof.tui.draw.spans import Glyphs, Line

if TYPE_CHECKING:  # reports of memory have an axis and no timeline
    from tpuprof.parsers.timeline.model import StepSpan

_UNITS = ((12, "s"), (9, "ms"), (6, "µs"), (3, "ns"), (0, "ps"))  # power of ten of picoseconds, and the unit's name
_LEAST_APART = 12  # cells between two ticks
_MOST_DIGITS = 6  # digits of a label; ticks that need more are counted from an offset
_STEPS_NAMED = 400  # steps in a window up to which their borders are drawn


@dataclass(frozen=True, slots=True)
class Ticks:
    """Round instants of a window.

    Attributes:
        at_ps: on the trace's clock, ascending.
        labels: of each, all with the same unit and decimals; a plain ``0`` for the base.
        offset: what is to be added to the labels, such as ``+12.3456 s``; empty for nothing.
    """

    at_ps: tuple[int, ...]
    labels: tuple[str, ...]
    offset: str = ""


def ticks(start_ps: int, end_ps: int, base_ps: int, cells: int, ascii_only: bool = False) -> Ticks:
    """Ticks for a window, 1, 2 or 5 times a power of ten picoseconds apart.

    Args:
        base_ps: the instant that counts as zero.
        cells: width of the window; labels stand right of their ticks without touching the next one.
    """
    start_ps, end_ps, base_ps = int(start_ps), int(end_ps), int(base_ps)
    span = max(end_ps - start_ps, 1)
    power = len(str(max(1, span * _LEAST_APART // max(cells, 1)))) - 1
    while True:
        for digit in (1, 2, 5):
            apart = digit * 10**power
            if apart * cells < span * _LEAST_APART:
                continue
            made = _ticks_apart(start_ps, end_ps, base_ps, apart, power, ascii_only)
            widest = max(map(len, made.labels), default=0)
            if apart > span or apart * cells >= span * (widest + 3):
                return made
        power += 1


def _ticks_apart(start_ps: int, end_ps: int, base_ps: int, apart: int, power: int, ascii_only: bool) -> Ticks:
    """Ticks so far apart; `power` is how many zeros that number has."""
    first = -((base_ps - start_ps) // apart)  # rounded up
    last = (end_ps - base_ps - 1) // apart
    values = [number * apart for number in range(first, last + 1)]
    if not values:
        return Ticks((), ())
    largest = max(abs(values[0]), abs(values[-1]))
    exponent, unit = _unit(largest)
    offset = 0
    if len(str(largest // 10**exponent)) + max(0, exponent - power) > _MOST_DIGITS:
        round_to = 10 ** len(str(end_ps - start_ps))
        offset = (start_ps - base_ps) // round_to * round_to
        exponent, unit = _unit(max(abs(value - offset) for value in values))
    decimals = max(0, exponent - power)
    labels = (_label(value - offset, exponent, unit, decimals, ascii_only) for value in values)
    return Ticks(tuple(value + base_ps for value in values), tuple(labels), _offset_label(offset, ascii_only))


def _unit(ps: int) -> tuple[int, str]:
    return next(((power, name) for power, name in _UNITS if ps >= 10**power), _UNITS[-1])


def _label(ps: int, exponent: int, unit: str, decimals: int, ascii_only: bool) -> str:
    """A time in a unit, exactly: integers all the way."""
    if ps == 0:
        return "0"
    whole, rest = divmod(abs(ps), 10**exponent)
    digits = f"{rest:0{exponent}}"[:decimals] if exponent and decimals else ""
    unit = unit.replace("µ", "u") if ascii_only else unit
    return f"{'-' if ps < 0 else ''}{whole}{'.' if digits else ''}{digits} {unit}"


def _offset_label(ps: int, ascii_only: bool) -> str:
    """``+12.3456 s``; empty for none."""
    if not ps:
        return ""
    exponent, unit = _unit(abs(ps))
    number, _, unit = _label(abs(ps), exponent, unit, exponent, ascii_only).partition(" ")
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return f"{'-' if ps < 0 else '+'}{number} {unit}"


def tick_line(marked: Ticks, edges: Int64s, glyphs: Glyphs, with_offset: bool = True) -> Line:
    """The labels, each right of its tick.

    Args:
        edges: int64[cells + 1], the borders of the cells.
        with_offset: the offset stands at the left, in place of the labels there; else it is up to the caller.
    """
    row = Canvas(len(edges) - 1)
    blocked = 0
    if with_offset and marked.offset:
        row.put(0, 0, f"{marked.offset} ", "strong")
        blocked = len(marked.offset) + 1
    for cell, label in zip(cells_at(edges, marked.at_ps), marked.labels, strict=True):
        if cell < blocked:
            continue
        row.put(0, cell, glyphs.vertical, "rule")
        if cell + 1 + len(label) <= row.width:
            row.put(0, cell + 1, label, "dim")
    return row.lines()[0]


def mark_line(
    edges: Int64s,
    glyphs: Glyphs,
    *,
    cursor_ps: int | None = None,
    marks: Sequence[int] = (),
    steps: Sequence[StepSpan] = (),
) -> Line:
    """Where steps begin and end, what is marked, and the column of the cursor.

    Args:
        marks: none, the first of two, or both.
        steps: those in the window or all, in order; the names of those with room for it are shown.
    """
    block = glyphs.name == "block"
    row = Canvas(len(edges) - 1, 1, glyphs.horizontal, "rule")
    low, high = int(edges[0]), int(edges[-1])
    shown = [step for step in steps if step.end_ps > low and step.start_ps < high]
    for step in shown if len(shown) <= _STEPS_NAMED else ():
        _draw_step(row, edges, step, glyphs)
    if len(marks) == 2:
        first, last = min(marks), max(marks)
        begin, end = cells_at(edges, (max(first, low), min(last, high - 1)))
        if last >= low and first < high:
            row.put(0, begin, ("═" if block else "=") * (end - begin + 1), "mark")
    for mark, cell in zip(marks, cells_at(edges, marks), strict=True):
        if low <= mark < high:
            row.put(0, cell, "m", "mark")
    if cursor_ps is not None and low <= cursor_ps < high:
        row.put(0, cells_at(edges, (cursor_ps,))[0], glyphs.down, "strong")
    return row.lines()[0]


def _draw_step(row: Canvas, edges: Int64s, step: StepSpan, glyphs: Glyphs) -> None:
    low, high = int(edges[0]), int(edges[-1])
    begin, end = cells_at(edges, (max(step.start_ps, low), min(step.end_ps, high - 1)))
    sign = "┬" if glyphs.name == "block" else "+"
    if step.start_ps >= low:
        row.put(0, begin, sign, "dim")
    if step.end_ps < high:
        row.put(0, end, sign, "dim")
    name = clean(step.name[:40], glyphs.is_ascii)
    for text in (f" step {name} ", f" {name} "):
        if step.name and len(text) <= end - begin - 1:
            row.put(0, begin + 1, text, "dim")
            return


def cells_at(edges: Int64s, instants: Sequence[int]) -> list[int]:
    """The cells of some instants; those beyond the window are in its first or last cell."""
    low, high = int(edges[0]), int(edges[-1])
    inside = np.array([max(low, min(int(instant), high - 1)) for instant in instants], np.int64)
    found: list[int] = (np.searchsorted(edges, inside, side="right") - 1).tolist()
    return found


def equal_runs(code: NDArray[np.integer]) -> list[tuple[int, int]]:
    """Begin and end of each run of cells of equal values."""
    borders = [0, *(np.flatnonzero(code[1:] != code[:-1]) + 1).tolist(), len(code)]
    return list(pairwise(borders)) if len(code) else []
