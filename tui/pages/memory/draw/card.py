"""The card of the buffer under the cursor, or of a group: what it takes, why, where from, and for how long."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.memory.model import Buffer, SpaceMemory
from tpuprof.parsers.memory.modules.groups import Group
from tpuprof.tui.draw.bars import small_bar
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.buffers.words import (
    CATEGORY_PHRASES,
    LABEL,
    NAMED,
    PADDED,
    WASTED,
    alike_entry,
    entry,
    expansion_style,
    padding_entry,
    short_shape,
    source_entry,
)
from tpuprof.tui.draw.format import UNKNOWN, count, percent
from tpuprof.tui.draw.layout import clean, fit, wrap
from tpuprof.tui.draw.spans import Glyphs, Line, StyleKey
from tpuprof.tui.pages.memory.fields.module import SMALL

COMPARED = 256
"""Buffers of one size among which those of one shape are looked for."""

_BAR = 16


def buffer_card(page: SpaceMemory, row: int, width: int, glyphs: Glyphs, point: int | None = None) -> list[Line]:
    """Everything about one buffer, what matters most first.

    Args:
        row: of `page.stays`.
        point: where to count buffers of the same shape; the peak, or where the buffer is born, without it.
    """
    if not 0 <= row < len(page.stays):
        return [fit([("no buffer", "dim")], width, glyphs)]
    ascii_only, buffer = glyphs.is_ascii, page.buffers[row]
    kind = f"{CATEGORY_PHRASES[buffer.category]} {glyphs.dot} {clean(buffer.opcode or 'opcode unknown', ascii_only)}"
    lines = [*wrap(buffer.name, width, "strong", glyphs), fit([(kind, "dim")], width, glyphs)]
    lines += _sizes(page, buffer, width, glyphs)
    if buffer.shape:
        lines += entry("shape", buffer.shape, width, glyphs, "strong")
    lines += _alike(page, row, buffer, _counted_at(page, row, point), width, glyphs)
    if buffer.framework_op:
        lines += entry("op", buffer.framework_op.rstrip(":"), width, glyphs)
    lines += source_entry(buffer, width, glyphs)
    lines += _lifetime(page, row, width, glyphs)
    return lines + _place(page, row, buffer, width, glyphs)


def group_card(page: SpaceMemory, group: Group, width: int, glyphs: Glyphs) -> list[Line]:
    """A group: its size, its padding, when any of it is in memory, and its largest buffers."""
    stays, rows = page.stays, group.rows
    number = len(rows)
    lines = wrap(group.name, width, "strong", glyphs)
    lines.append(fit([(counted(number, "buffer"), "dim")], width, glyphs))
    share = percent(100 * group.size_bytes / page.peak_bytes) if page.peak_bytes > 0 else UNKNOWN
    lines += entry("size", f"{binary_size(group.size_bytes)}, as much as {share} of the peak", width, glyphs, "strong")
    if group.padding_bytes > 0:
        elements = group.size_bytes - group.padding_bytes
        style = expansion_style(group.size_bytes / elements if elements > 0 else WASTED)
        is_small = group.padding_bytes < SMALL * page.peak_bytes
        lines += entry(
            "padding", f"{binary_size(group.padding_bytes)} of that", width, glyphs, "dim" if is_small else style
        )
    elif number:
        lines += entry("padding", "none", width, glyphs, "dim")
    if not number:
        return lines
    born, dies = int(stays.born[rows].min()), int(stays.dies[rows].max())
    lines += _stay_lines(page, born, dies, width, glyphs)
    largest = rows[np.argsort(-stays.size_bytes[rows], kind="stable")[:NAMED]]
    for place, row in enumerate(largest.tolist()):
        buffer = page.buffers[row]
        words = f"{binary_size(int(stays.size_bytes[row]))} {short_shape(buffer.shape)} {buffer.name}"
        lines += entry("" if place else "largest", words, width, glyphs)
    if number > NAMED:
        lines += entry("", f"and {count(number - NAMED)} more", width, glyphs, "dim")
    return lines


# --- parts ---------------------------------------------------------------------------------------------------------


def _sizes(page: SpaceMemory, buffer: Buffer, width: int, glyphs: Glyphs) -> list[Line]:
    """What it takes, of that the elements, and what padding adds."""
    share = percent(100 * buffer.size_bytes / page.peak_bytes) if page.peak_bytes > 0 else UNKNOWN
    words = f"{binary_size(buffer.size_bytes)}, as much as {share} of the peak"
    lines = entry("size", words, width, glyphs, "strong")
    if buffer.unpadded_bytes is None:
        return lines + entry("padding", "unknown: the size of its elements is not known", width, glyphs, "dim")
    padding, expansion = buffer.padding_bytes or 0, buffer.expansion
    if padding <= 0:
        return lines + entry("padding", "none", width, glyphs, "dim")
    is_little = expansion is None or expansion < PADDED or padding < SMALL * page.peak_bytes
    key: StyleKey = "text" if is_little else expansion_style(expansion)
    return lines + padding_entry(buffer, key, width, glyphs)


def _counted_at(page: SpaceMemory, row: int, point: int | None) -> int:
    """The point given or the peak, where the buffer is in memory then; else where it is born."""
    born, dies = int(page.stays.born[row]), int(page.stays.dies[row])
    for candidate in (point, page.peak_position):
        if candidate is not None and born <= candidate < dies:
            return candidate
    return min(max(born, 0), page.points - 1)


def _alike(page: SpaceMemory, row: int, buffer: Buffer, point: int, width: int, glyphs: Glyphs) -> list[Line]:
    """How many buffers of its shape are in memory with it."""
    if not buffer.shape:
        return []
    stays, rows = page.stays, page.at(point)
    same = rows[(stays.size_bytes[rows] == stays.size_bytes[row]) & (rows != row)]
    number = sum(page.buffers[other].shape == buffer.shape for other in same[:COMPARED].tolist())
    where = "at the peak" if point == page.peak_position else f"at point {count(point)}"
    more = "more than " if len(same) > COMPARED else ""
    return alike_entry(number, int(stays.size_bytes[row]) * (number + 1), where, width, glyphs, more)


def _lifetime(page: SpaceMemory, row: int, width: int, glyphs: Glyphs) -> list[Line]:
    return _stay_lines(page, int(page.stays.born[row]), int(page.stays.dies[row]), width, glyphs)


def _stay_lines(page: SpaceMemory, born: int, dies: int, width: int, glyphs: Glyphs) -> list[Line]:
    """When it comes, when it goes, and how much of the program that is."""
    if page.points == 1:
        return entry("in memory", "throughout; the module has no heap trace of what is not", width, glyphs, "dim")
    if born <= 0 and dies >= page.points:
        return entry("in memory", "throughout the program", width, glyphs)
    first, last = max(born, 0), min(dies, page.points)
    length = max(0, last - first)
    words = f"{count(length)} of {count(page.points)} points, {percent(100 * length / page.points, 0)}"
    lines = entry("in memory", words, width, glyphs)
    room = min(_BAR * 2, width - LABEL - 1)
    if room >= _BAR:
        lines.append(_stay_bar(first / page.points, last / page.points, room, width, glyphs))
    lines += entry("born", _event_words(page, first, "at the program's beginning"), width, glyphs)
    gone = "stays to the program's end" if dies >= page.points else _event_words(page, last, "")
    return lines + entry("dies", gone, width, glyphs)


def _stay_bar(begin: float, end: float, room: int, width: int, glyphs: Glyphs) -> Line:
    """A small picture of where in the program it is in memory."""
    first = min(room - 1, int(begin * room))
    cells = max(1, round((end - begin) * room))
    cells = min(cells, room - first)
    filled = small_bar(1.0, cells, glyphs)[0]
    light = "." if glyphs.is_ascii else glyphs.horizontal
    spans = [
        (" " * LABEL, "text"),
        (light * first, "rule"),
        (filled, "class.compute"),
        (light * (room - first - cells), "rule"),
    ]
    return fit(spans, width, glyphs)  # type: ignore[arg-type]


def _event_words(page: SpaceMemory, point: int, begin: str) -> str:
    """``point 1,203, with fusion.12``."""
    if point <= 0:
        return begin
    name = page.instructions[point - 1] if point <= len(page.instructions) else None
    return f"point {count(point)}" + (f", with {name}" if name else "")


def _place(page: SpaceMemory, row: int, buffer: Buffer, width: int, glyphs: Glyphs) -> list[Line]:
    """Its allocation, where in it, and its number."""
    allocation, offset = int(page.stays.allocation[row]), buffer.offset_bytes
    kind = f" ({buffer.allocation_type})" if buffer.allocation_type else ""
    words = f"{allocation}{kind}" if allocation >= 0 else f"unknown{kind}"
    if offset is not None:
        words += f", from {binary_size(offset)} on" if offset > 0 else ", from its beginning on"
    lines = entry("allocated", words, width, glyphs)
    labels = (
        ("buffer", None if buffer.logical_buffer is None else str(buffer.logical_buffer)),
        ("label", buffer.label),
    )
    for label, text in labels:
        if text:
            lines += entry(label, text, width, glyphs, "dim")
    return lines
