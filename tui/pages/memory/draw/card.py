"""The card of the buffer under the cursor, or of a group: what it takes, why, where from, and for how long."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.memory.model import Buffer, SpaceMemory
from tpuprof.parsers.memory.modules.groups import BufferGroup
from tpuprof.tui.draw.buffers import words as buffer_words
from tpuprof.tui.draw.buffers.words import NAMED, PADDED, WASTED, expansion_style
from tpuprof.tui.draw.format import UNKNOWN, binary_size, count, percent
from tpuprof.tui.draw.pen import Card, Pen
from tpuprof.tui.draw.spans import Line, Span, StyleKey
from tpuprof.tui.pages.memory.fields.module import SMALL

COMPARED = 256  # buffers of one size among which those of one shape are looked for
_BAR = 16


def buffer_card(page: SpaceMemory, row: int, pen: Pen, point: int, owner: str | None = None) -> list[Line]:
    """Everything about one buffer, what matters most first.

    Args:
        row: of `page.live_ranges`.
        point: where to count buffers of the same shape; where the buffer is not in memory then, the peak or its birth.
        owner: whose it is, by the account of memory; None where that is not known (yet).
    """
    card, buffer = Card(pen), page.buffers[row]
    card.head(buffer.name, (buffer_words.CATEGORY_PHRASES[buffer.category], buffer.opcode or "opcode unknown"))
    _sizes(card, page, buffer)
    card.known("whose", owner, "strong")
    card.known("shape", buffer.shape, "strong")
    _alike(card, page, row, buffer, _counted_at(page, row, point))
    card.known("op", (buffer.framework_op or "").rstrip(":"))
    buffer_words.source_entry(card, buffer)
    _stay(card, page, int(page.live_ranges.born[row]), int(page.live_ranges.dies[row]))
    _place(card, page, row, buffer)
    return card.lines


def group_card(page: SpaceMemory, group: BufferGroup, pen: Pen) -> list[Line]:
    """A group: its size, its padding, when any of it is in memory, and its largest buffers."""
    live_ranges, rows = page.live_ranges, group.rows
    number = len(rows)
    card = Card(pen)
    card.head(group.name, (counted(number, "buffer"),))
    _size_entry(card, page, group.size_bytes)
    if group.padding_bytes > 0:
        elements = group.size_bytes - group.padding_bytes
        style = expansion_style(group.size_bytes / elements if elements > 0 else WASTED)
        style = "dim" if group.padding_bytes < SMALL * page.peak_bytes else style
        card.entry("padding", f"{binary_size(group.padding_bytes)} of that", style)
    else:
        card.entry("padding", "none", "dim")
    _stay(card, page, int(live_ranges.born[rows].min()), int(live_ranges.dies[rows].max()))
    largest = rows[np.argsort(-live_ranges.size_bytes[rows], kind="stable")[:NAMED]]
    for place, row in enumerate(largest.tolist()):
        buffer = page.buffers[row]
        size = binary_size(int(live_ranges.size_bytes[row]))
        words = f"{size} {buffer_words.short_shape(buffer.shape)} {buffer.name}"
        card.entry("" if place else "largest", words)
    if number > NAMED:
        card.entry("", f"and {count(number - NAMED)} more", "dim")
    return card.lines


def _sizes(card: Card, page: SpaceMemory, buffer: Buffer) -> None:
    _size_entry(card, page, buffer.size_bytes)
    padding, expansion = buffer.padding_bytes, buffer.expansion
    if not padding:
        why = "unknown: the size of its elements is unknown" if padding is None else "none"
        card.entry("padding", why, "dim")
        return
    is_little = expansion is None or expansion < PADDED or padding < SMALL * page.peak_bytes
    key: StyleKey = "text" if is_little else expansion_style(expansion)
    buffer_words.padding_entry(card, buffer, key)


def _size_entry(card: Card, page: SpaceMemory, size_bytes: int) -> None:
    share = percent(100 * size_bytes / page.peak_bytes) if page.peak_bytes > 0 else UNKNOWN
    card.entry("size", f"{binary_size(size_bytes)}, as much as {share} of the peak", "strong")


def _counted_at(page: SpaceMemory, row: int, point: int) -> int:
    """The point given or the peak, where the buffer is in memory then; else where it is born."""
    born, dies = int(page.live_ranges.born[row]), int(page.live_ranges.dies[row])
    return next(
        (known for known in (point, page.peak_position) if born <= known < dies), min(max(born, 0), page.points - 1)
    )


def _alike(card: Card, page: SpaceMemory, row: int, buffer: Buffer, point: int) -> None:
    if not buffer.shape:
        return
    live_ranges, rows = page.live_ranges, page.at(point)
    same = rows[(live_ranges.size_bytes[rows] == live_ranges.size_bytes[row]) & (rows != row)]
    number = sum(page.buffers[other].shape == buffer.shape for other in same[:COMPARED].tolist())
    where = "at the peak" if point == page.peak_position else f"at point {count(point)}"
    more = "more than " if len(same) > COMPARED else ""
    buffer_words.alike_entry(card, number, int(live_ranges.size_bytes[row]) * (number + 1), where, more)


def _stay(card: Card, page: SpaceMemory, born: int, dies: int) -> None:
    if page.points == 1:
        card.entry("in memory", "throughout; the module has no heap trace of temporaries", "dim")
        return
    if born <= 0 and dies >= page.points:
        card.entry("in memory", "throughout the program")
        return
    first, last = max(born, 0), min(dies, page.points)
    length = max(0, last - first)
    words = f"{count(length)} of {count(page.points)} points, {percent(100 * length / page.points, 0)}"
    card.entry("in memory", words)
    pen, room = card.pen, min(_BAR * 2, card.pen.width - card.label - 1)
    if room >= _BAR:  # a small picture of where in the program it is in memory
        before = min(room - 1, int(first / page.points * room))
        cells = min(max(1, round((last / page.points - first / page.points) * room)), room - before)
        light = "." if pen.glyphs.is_ascii else pen.glyphs.horizontal
        bar: list[Span] = [(light * before, "rule"), (pen.glyphs.full * cells, "class.compute")]
        card.lines.append(pen.fit([(" " * card.label, "text"), *bar, (light * (room - before - cells), "rule")]))
    came, gone = "at the program's beginning", "stays to the program's end"
    card.entry("born", _event_words(page, first) if first else came)
    card.entry("dies", gone if dies >= page.points else _event_words(page, last))


def _event_words(page: SpaceMemory, point: int) -> str:
    """``point 1,203, with fusion.12``; nothing for what lies before the program."""
    name = page.instructions[point - 1] if 0 < point <= len(page.instructions) else None
    return (f"point {count(point)}" + (f", with {name}" if name else "")) if point > 0 else ""


def _place(card: Card, page: SpaceMemory, row: int, buffer: Buffer) -> None:
    allocation, offset = int(page.live_ranges.allocation[row]), buffer.offset_bytes
    kind = f" ({buffer.allocation_type})" if buffer.allocation_type else ""
    words = f"{allocation}{kind}" if allocation >= 0 else f"unknown{kind}"
    if offset is not None:
        words += f", from {binary_size(offset)} on" if offset > 0 else ", from its start"
    card.entry("allocated", words)
    card.known("buffer", None if buffer.logical_buffer is None else str(buffer.logical_buffer), "dim")
    card.known("label", buffer.label, "dim")
