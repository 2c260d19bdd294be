"""The head of the memory tab: which module, whether it fits, whose the bytes are, and what to do or how far it goes."""

from __future__ import annotations

from itertools import pairwise

from tpuprof.parsers.memory.account.owners import MemoryAccount
from tpuprof.parsers.memory.model import Capacity, SpaceMemory
from tpuprof.parsers.memory.summary import SpaceSummary
from tpuprof.tui.draw.buffers.fills import FILL, HELD, LETTER, PADDING, USED, sign_of
from tpuprof.tui.draw.buffers.owners import area_of, fit_words, notable, owner_words
from tpuprof.tui.draw.format import UNKNOWN, binary_short, binary_size, limit_size, percent
from tpuprof.tui.draw.pen import Pen, cut_middle, cut_words, joined
from tpuprof.tui.draw.spans import Line, Span, StyleKey, line_width

TIGHT, NEARLY = 0.05, 0.1  # headroom below these shares of the capacity is a warning, and little
LEAST_SHOWN = 0.001  # a part of the bar with this share of it or more has a cell
_LEAST_BAR = 16
_LONG_NAMES = 104  # cells from which on owners have their long names
_MOST_BAR = 80


def header_lines(page: SpaceMemory, title: str, pen: Pen, summary: SpaceSummary | None = None) -> list[Line]:
    """Four lines: the module and the memory, whether it fits, whose the bytes are, and what to do or how far it goes.

    Args:
        summary: None while it is not known; its lines are empty then.
    """
    account = None if summary is None else summary.account
    lines = [_title_line(page, title, pen), _peak_line(page, account, pen), _owners_line(account, pen)]
    return [*lines, _plan_line(page, summary, pen)]


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
        note = cut_words(note, room - len(right) - 3, pen.glyphs)
    tail = f" ({note})" if note and len(right) + len(note) + 3 <= room else ""
    shown = cut_middle(name, max(8, pen.width - 4 - len(right)), pen.glyphs)
    gap = pen.width - 2 - len(shown) - len(right) - len(tail)
    spans: list[Span] = [(" ", "text"), (shown, "strong"), (" " * max(1, gap), "text"), (right, "text"), (tail, "dim")]
    return pen.fit(spans)


def _peak_line(page: SpaceMemory, account: MemoryAccount | None, pen: Pen) -> Line:
    """Whether it fits and by how much; and a bar of what the peak is made of, against the capacity."""
    capacity, headroom, key = page.capacity, page.headroom_bytes, headroom_style(page)
    spans: list[Span] = []
    if capacity is None or headroom is None or not capacity.size_bytes:
        spans = [(" peak ", "dim"), (binary_size(page.peak_bytes), "strong"), ("  headroom ", "dim"), (UNKNOWN, key)]
    else:
        words = (
            f" does not fit: {binary_size(-headroom)} over" if headroom < 0 else f" fits: {binary_size(headroom)} free"
        )
        share = percent(100 * page.needed_bytes / capacity.size_bytes, 0)
        of = f"{limit_size(page.needed_bytes)} of {limit_size(capacity.size_bytes)} ({share})"
        spans = [(words, key), ("  needs ", "dim"), (of, "strong")]
        if page.inside_bytes:
            spans.append((f", {binary_size(page.inside_bytes)} of that inside {page.scoped_instruction}", "text"))
    room = min(_MOST_BAR, pen.width - line_width(tuple(spans)) - 4)
    if room >= _LEAST_BAR and account is not None:
        spans += [("  ", "text"), *composition_bar(account, page.capacity, pen.at(room))]
    return pen.fit(spans)


def composition(account: MemoryAccount) -> tuple[int, int, int]:
    """Bytes at the peak by owners: what is there throughout, what comes and goes, and padding."""
    areas = dict.fromkeys((HELD, USED, PADDING), 0)
    for owner, size in account.owners.items():
        areas[area_of(owner)] += size
    return areas[HELD], areas[USED], areas[PADDING]


def composition_bar(account: MemoryAccount, limit: Capacity | None, pen: Pen) -> list[Span]:
    """What is there throughout, temporaries and padding; the rest up to the capacity is blank, between edges.

    A peak beyond the capacity fills the whole bar; a sign then stands where the capacity ends.
    """
    parts = composition(account)
    capacity = limit.size_bytes if limit is not None else 0
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


def _owners_line(account: MemoryAccount | None, pen: Pen) -> Line:
    """Whose the bytes at the peak are, the largest first, as far as there is room; the rest together."""
    if account is None:
        return pen.fit([])
    is_short = pen.width < _LONG_NAMES
    sized = binary_short if is_short else binary_size
    spans: list[Span] = []
    left, owners = account.total_bytes, notable(account)
    for number, (owner, size) in enumerate(owners, 1):
        sign: list[Span] = [("  " if spans else " ", "text"), sign_of(area_of(owner), pen.glyphs), (" ", "text")]
        entry: list[Span] = [*sign, (f"{owner_words(owner, is_short)} ", "dim"), (sized(size), "text")]
        rest = f"  others {sized(left - size)}" if left > size else ""
        if line_width((*spans, *entry)) + (len(rest) if number < len(owners) else 0) > pen.width:
            break
        spans, left = [*spans, *entry], left - size
    if left > account.total_bytes * LEAST_SHOWN:
        spans += [("  others ", "dim"), (sized(left), "text")]
    return pen.fit(spans)


def _plan_line(page: SpaceMemory, summary: SpaceSummary | None, pen: Pen) -> Line:
    """What to do where it does not fit; else how large the batch may be."""
    if summary is None:
        return pen.fit([])
    headroom = page.headroom_bytes
    if summary.plan is not None:
        spans: list[Span] = [(" plan: ", "strong"), (summary.plan.sentence, "good" if summary.plan.fits else "warn")]
    elif headroom is not None and headroom < 0:
        spans = [(" a shows what to do", "bad")]
    else:
        long = fit_words(summary.fit)
        words = long if len(long) + 2 <= pen.width else fit_words(summary.fit, is_short=True)
        spans = [(f" {words}", "dim" if summary.fit.unknown else "text")]
    return pen.fit([(cut_words(text, pen.width, pen.glyphs), style) for text, style in spans])
