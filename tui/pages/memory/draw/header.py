"""The head of the memory tab: which module and memory, the peak against what there is, and what the peak is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.memory.model import CATEGORIES, SpaceMemory
from tpuprof.tui.draw.buffers.fills import FILL, HELD, LETTER, PADDING, USED, sign_of
from tpuprof.tui.draw.buffers.sizes import binary_short, binary_size, limit_size
from tpuprof.tui.draw.format import UNKNOWN, percent
from tpuprof.tui.draw.layout import NARROW, clean, cut_middle, fit
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width

TIGHT = 0.05
"""Headroom below this share of the capacity is a warning."""

NEARLY = 0.1
"""Headroom below this share of the capacity is little."""

LEAST_SHOWN = 0.001
"""A part of the bar with this share of it or more has a cell."""

_LEAST_BAR = 16
_MOST_BAR = 80


def header_lines(page: SpaceMemory, title: str, width: int, glyphs: Glyphs) -> list[Line]:
    """Three lines: the module and the memory, the peak with a bar, and the figures."""
    return [
        _title_line(page, title, width, glyphs),
        _peak_line(page, width, glyphs),
        _figures_line(page, width, glyphs),
    ]


def headroom_style(page: SpaceMemory) -> StyleKey:
    """Red where the peak does not fit, a warning where it hardly does."""
    headroom = page.headroom_bytes
    if headroom is None or page.capacity is None:
        return "dim"
    if headroom < 0:
        return "bad"
    return "warn" if headroom < TIGHT * page.capacity.size_bytes else "good"


def _title_line(page: SpaceMemory, title: str, width: int, glyphs: Glyphs) -> Line:
    ascii_only = glyphs.is_ascii
    name, space = clean(title or str(page.module), ascii_only), clean(page.name, ascii_only)
    size = "unknown" if page.capacity is None else limit_size(page.capacity.size_bytes)
    note = clean(page.unknown.get("capacity", "") if page.capacity is None else page.capacity.source, ascii_only)
    room = width - 4 - len(name)
    long = f"{space}: capacity {size}"
    right = long if len(long) <= room else f"{space} {size}"
    if page.capacity is None and len(right) < room - 2:
        note = cut_middle(note, room - len(right) - 3, glyphs)
    tail = f" ({note})" if note and len(right) + len(note) + 3 <= room else ""
    shown = cut_middle(name, max(8, width - 4 - len(right)), glyphs)
    gap = width - 2 - len(shown) - len(right) - len(tail)
    spans: list[Span] = [(" ", "text"), (shown, "strong"), (" " * max(1, gap), "text"), (right, "text"), (tail, "dim")]
    return fit(spans, width, glyphs)


def _peak_line(page: SpaceMemory, width: int, glyphs: Glyphs) -> Line:
    """Peak, its share of the capacity, headroom; and a bar of what the peak is made of, against the capacity."""
    capacity, headroom = page.capacity, page.headroom_bytes
    spans: list[Span] = [(" peak ", "dim"), (binary_size(page.peak_bytes), "strong")]
    key = headroom_style(page)
    if capacity is not None and capacity.size_bytes > 0:
        spans.append(
            (f" ({percent(100 * page.peak_bytes / capacity.size_bytes, 0)})", key if key != "good" else "text")
        )
    spans.append(("  headroom ", "dim"))
    spans.append((binary_size(headroom) if headroom is not None else UNKNOWN, key))
    if headroom is not None and headroom < 0:
        spans.append((" does not fit: x says what to do", "bad"))
    elif headroom is not None and capacity is not None and headroom < NEARLY * capacity.size_bytes:
        spans.append((" nearly full: x says what to do", key if key != "good" else "warn"))
    room = min(_MOST_BAR, width - line_width(tuple(spans)) - 4)
    if room >= _LEAST_BAR:
        spans += [("  ", "text"), *composition_bar(page, room, glyphs)]
    return fit(spans, width, glyphs)


def composition(page: SpaceMemory) -> tuple[int, int, int]:
    """Bytes at the peak: elements of what is there throughout, elements of temporaries, padding."""
    stays = page.stays
    rows = page.at(page.peak_position)
    elements = np.where(stays.unpadded_bytes[rows] < 0, stays.size_bytes[rows], stays.unpadded_bytes[rows])
    is_temporary = stays.category[rows] >= CATEGORIES.index("temporary")
    temporary, held = int(elements[is_temporary].sum()), int(elements[~is_temporary].sum())
    return max(0, held), max(0, temporary), max(0, page.peak_bytes - held - temporary)


def composition_bar(page: SpaceMemory, width: int, glyphs: Glyphs) -> list[Span]:
    """What is there throughout, temporaries and padding; the rest up to the capacity is blank, between edges.

    A peak beyond the capacity fills the whole bar; a sign then stands where the capacity ends.
    """
    parts = composition(page)
    capacity = page.capacity.size_bytes if page.capacity is not None else 0
    whole = max(sum(parts), capacity, 1)
    cells = width - 2
    borders, total = [0], 0
    for part in parts:
        total += part
        least = borders[-1] + (part >= whole * LEAST_SHOWN)
        borders.append(min(cells, max(round(total / whole * cells), least)))
    spans: list[Span] = []
    for area, begin, end in zip((HELD, USED, PADDING), borders[:-1], borders[1:], strict=True):
        if end > begin:
            text = (LETTER[area] if glyphs.letters else " ") * (end - begin)
            spans.append((text, ("words", FILL[area])))
    free = cells - borders[-1]
    if capacity:
        over = sum(parts) > capacity
        edge: list[Span] = [(glyphs.vertical, "bad" if over else "dim")]
        if over:
            spans = _parted(spans, round(capacity / whole * cells), (glyphs.vertical, "bad"))
        return [(glyphs.vertical, "dim"), *spans, (" " * free, "text"), *([] if over else edge)]
    return [(glyphs.vertical, "dim"), *spans, (" " * (free + 1), "text")]


def _parted(spans: Sequence[Span], cells_left: int, sign: Span) -> list[Span]:
    """The spans with a sign after `at` cells."""
    out: list[Span] = []
    for text, key in spans:
        if 0 <= cells_left < len(text):
            out += [(text[:cells_left], key), sign, (text[cells_left:], key)]
            cells_left = -1
        else:
            out.append((text, key))
            cells_left -= len(text)
    return [*out, sign] if cells_left >= 0 else out


def _figures_line(page: SpaceMemory, width: int, glyphs: Glyphs) -> Line:
    """What the peak is made of, the most important first, as far as there is room."""
    sized = binary_size if width >= NARROW else binary_short
    fixed: list[tuple[str, str, int | None]] = [
        ("arguments", sized(page.arguments_bytes), HELD),
        ("temporaries", sized(page.temporaries_bytes), USED),
        ("padding", sized(page.padding_bytes), PADDING),
    ]
    share = None if page.fragmentation is None else 100 * page.fragmentation
    outputs = sized(max(0, page.outputs_bytes - page.aliased_bytes))
    if page.aliased_bytes > 0:
        outputs += f" (+{sized(page.aliased_bytes)} donated)"
    more: list[tuple[str, str, int | None]] = [("fragmentation", percent(share, 1), None), ("outputs", outputs, None)]
    for name, value in (("constants", page.constants_bytes), ("thread-local", page.thread_local_bytes)):
        if value:
            more.append((name, sized(value), None))
    if page.scoped_bytes is not None:
        more.append(("scoped", sized(page.scoped_bytes), None))
    spans: list[Span] = []
    for name, words, area in [*fixed, *more]:
        entry: list[Span] = []
        if area is not None:
            entry += [sign_of(area, glyphs), (" ", "text")]
        entry += [(f"{name} ", "dim"), (words, "text")]
        if line_width(tuple(spans)) + line_width(tuple(entry)) + 2 > width:
            continue
        spans += [("  " if spans else " ", "text"), *entry]
    return fit(spans, width, glyphs)
