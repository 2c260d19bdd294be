"""The head of the memory tab: which module and memory, the peak against what there is, and what the peak is made of."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tpuprof.parsers.memory.model import CATEGORIES, SpaceMemory
from tpuprof.tui.draw.buffers.fills import FILL, HELD, LETTER, PADDING, USED, sign_of
from tpuprof.tui.draw.buffers.sizes import binary_short, binary_size, limit_size
from tpuprof.tui.draw.format import percent
from tpuprof.tui.draw.layout import NARROW, cut_middle, joined
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, Span, StyleKey, line_width

TIGHT, NEARLY = 0.05, 0.1  # headroom below these shares of the capacity is a warning, and little
LEAST_SHOWN = 0.001  # a part of the bar with this share of it or more has a cell
_LEAST_BAR = 16
_MOST_BAR = 80


def header_lines(page: SpaceMemory, title: str, pen: Pen) -> list[Line]:
    """Three lines: the module and the memory, the peak with a bar, and the figures."""
    return [_title_line(page, title, pen), _peak_line(page, pen), _figures_line(page, pen)]


def headroom_style(page: SpaceMemory) -> StyleKey:
    """Red where the peak does not fit, a warning where it hardly does."""
    headroom = page.headroom_bytes
    if headroom is None or page.capacity is None:
        return "dim"
    if headroom < 0:
        return "bad"
    return "warn" if headroom < TIGHT * page.capacity.size_bytes else "good"


def _title_line(page: SpaceMemory, title: str, pen: Pen) -> Line:
    name, space = pen.text(title or str(page.module)), pen.text(page.name)
    size = "unknown" if page.capacity is None else limit_size(page.capacity.size_bytes)
    note = pen.text(page.unknown.get("capacity", "") if page.capacity is None else page.capacity.source)
    room = pen.width - 4 - len(name)
    long = f"{space}: capacity {size}"
    right = long if len(long) <= room else f"{space} {size}"
    if page.capacity is None and len(right) < room - 2:
        note = cut_middle(note, room - len(right) - 3, pen.glyphs)
    tail = f" ({note})" if note and len(right) + len(note) + 3 <= room else ""
    shown = cut_middle(name, max(8, pen.width - 4 - len(right)), pen.glyphs)
    gap = pen.width - 2 - len(shown) - len(right) - len(tail)
    spans: list[Span] = [(" ", "text"), (shown, "strong"), (" " * max(1, gap), "text"), (right, "text"), (tail, "dim")]
    return pen.fit(spans)


def _peak_line(page: SpaceMemory, pen: Pen) -> Line:
    """Peak, its share of the capacity, headroom; and a bar of what the peak is made of, against the capacity."""
    capacity, headroom, key = page.capacity, page.headroom_bytes, headroom_style(page)
    spans: list[Span] = [(" peak ", "dim"), (binary_size(page.peak_bytes), "strong")]
    if capacity is not None and capacity.size_bytes > 0:
        share = percent(100 * page.peak_bytes / capacity.size_bytes, 0)
        spans.append((f" ({share})", key if key != "good" else "text"))
    if pen.width >= NARROW:
        spans += [("  unpadded ", "dim"), (binary_size(page.peak_unpadded_bytes), "text")]
    spans += [("  headroom ", "dim"), (binary_size(headroom), key)]
    if headroom is not None and headroom < 0:
        spans.append((pen.glyphs.keyed(" does not fit: `x` says what to do"), "bad"))
    elif headroom is not None and capacity is not None and headroom < NEARLY * capacity.size_bytes:
        spans.append((pen.glyphs.keyed(" nearly full: `x` says what to do"), key if key != "good" else "warn"))
    room = min(_MOST_BAR, pen.width - line_width(tuple(spans)) - 4)
    if room >= _LEAST_BAR:
        spans += [("  ", "text"), *composition_bar(page, pen.at(room))]
    return pen.fit(spans)


def composition(page: SpaceMemory) -> tuple[int, int, int]:
    """Bytes at the peak: elements of what is there throughout, elements of temporaries, padding."""
    live_ranges = page.live_ranges
    rows = page.at(page.peak_position)
    unpadded = live_ranges.unpadded_bytes[rows]
    elements = np.where(unpadded < 0, live_ranges.size_bytes[rows], unpadded)
    is_temporary = live_ranges.category[rows] >= CATEGORIES.index("temporary")
    temporary, held = int(elements[is_temporary].sum()), int(elements[~is_temporary].sum())
    return max(0, held), max(0, temporary), max(0, page.peak_bytes - held - temporary)


def composition_bar(page: SpaceMemory, pen: Pen) -> list[Span]:
    """What is there throughout, temporaries and padding; the rest up to the capacity is blank, between edges.

    A peak beyond the capacity fills the whole bar; a sign then stands where the capacity ends.
    """
    parts = composition(page)
    capacity = page.capacity.size_bytes if page.capacity is not None else 0
    whole = max(sum(parts), capacity, 1)
    cells = pen.width - 2
    borders, total = [0], 0
    for part in parts:
        total += part
        least = borders[-1] + (part >= whole * LEAST_SHOWN)
        borders.append(min(cells, max(round(total / whole * cells), least)))
    cell_spans: list[Span] = []
    for area, (begin, end) in zip((HELD, USED, PADDING), pairwise(borders), strict=True):
        cell_spans += [(LETTER[area] if pen.glyphs.letters else " ", ("words", FILL[area]))] * (end - begin)
    cell_spans += [(" ", "text")] * (cells - borders[-1])
    if not capacity:
        cell_spans.append((" ", "text"))
    elif sum(parts) > capacity:
        cell_spans.insert(round(capacity / whole * cells), (pen.glyphs.vertical, "bad"))
    else:
        cell_spans.append((pen.glyphs.vertical, "dim"))
    return [(pen.glyphs.vertical, "dim"), *joined(cell_spans)]


def _figures_line(page: SpaceMemory, pen: Pen) -> Line:
    """What the peak is made of, the most important first, as far as there is room."""
    sized = binary_size if pen.width >= NARROW else binary_short
    share = None if page.fragmentation is None else 100 * page.fragmentation
    donated = f" (+{sized(page.aliased_bytes)} donated)" if page.aliased_bytes > 0 else ""
    metrics = (
        ("arguments", sized(page.arguments_bytes), HELD),
        ("temporaries", sized(page.temporaries_bytes), USED),
        ("padding", sized(page.padding_bytes), PADDING),
        ("fragmentation", percent(share), None),
        ("outputs", sized(max(0, page.outputs_bytes - page.aliased_bytes)) + donated, None),
        ("constants", sized(page.constants_bytes) if page.constants_bytes else "", None),
        ("thread-local", sized(page.thread_local_bytes) if page.thread_local_bytes else "", None),
        ("scoped", sized(page.scoped_bytes) if page.scoped_bytes is not None else "", None),
    )
    spans: list[Span] = []
    for name, words, area in metrics:
        sign: list[Span] = [] if area is None else [sign_of(area, pen.glyphs), (" ", "text")]
        entry: list[Span] = [*sign, (f"{name} ", "dim"), (words, "text")]
        if words and line_width((*spans, *entry)) + 2 <= pen.width:
            spans += [("  " if spans else " ", "text"), *entry]
    return pen.fit(spans)
