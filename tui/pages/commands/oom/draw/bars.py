"""What memory is needed for: the verdict in one line, and the parts as bars, each beginning where the last one ended.

So the bars together are as long as the need, and the one that crosses the mark of the limit is where it is too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from tpuprof.parsers.memory.oom.triage import NeedPartName, Triage, Trial, part_of
from tpuprof.tui.draw.buffers.fills import HELD, PADDING, USED, sign_of
from tpuprof.tui.draw.format import binary_short, limit_size, percent
from tpuprof.tui.draw.pen import Pen, joined
from tpuprof.tui.draw.spans import Glyphs, Key, Line, Span, line_width

KIND_WORDS = {"compile": "compile time", "load": "program load", "runtime": "run time", "module": "at its peak"}
KIND_WORDS["cache"] = "a serving engine's KV cache"
"""When it was."""

LABEL, _SIZE = 13, 18  # cells of a bar's name, with the blank before it, and of a part's size and share behind its bar
# parts that are there throughout; the others come and go
_HELD: frozenset[NeedPartName] = frozenset(("reserved", "arguments", "outputs", "constants", "global"))
_SMALL = 0.01  # share of the scale below which a part is named, not drawn
_FAR = 4  # how many times the need a limit may be to be drawn beside it


class Bar(NamedTuple):
    """A part to draw, in bytes: where it begins, after all before it, how long it is, and what it is filled with."""

    label: str
    begin: int
    size: int
    area: int


class _Ruler(NamedTuple):
    """Where bars stand.

    Attributes:
        scale: bytes that the room stands for.
        limit: the cell of the limit, of `room` cells; None where it is none of them.
        whole: bytes that shares are of.
    """

    scale: int
    limit: int | None
    room: int
    whole: int


def holders_remark(triages: Sequence[Triage]) -> str:
    """What live arrays have to do with the errors of a log."""
    ran = next((triage for triage in triages if triage.kind != "compile"), None)
    if ran is None:
        return "The compiler counts only this program; other live arrays come on top."
    asked = [f"{limit_size(ran.requested_bytes)} asked for"] if ran.requested_bytes is not None else []
    free = [f"{limit_size(ran.free_bytes)} free"] if ran.free_bytes is not None else []
    return f"The error at {ran.where}: {', '.join((*asked, *free))}." if asked or free else ""


def verdict_line(triage: Triage, trial: Trial | None, pen: Pen) -> Line:
    """How much there is, how much is needed, and by how much that is too much; with toggles on, what they come to."""
    spans: list[Span] = [(f" {triage.space} ", "strong")]
    wanted, limit, over = triage.wanted_bytes, triage.limit_bytes, triage.over_bytes
    if triage.kind == "module" and limit is not None and over is not None:
        wanted = limit + over  # with the gaps between buffers, as what is free is counted
    if trial is not None and trial.chosen:
        was = f"was {limit_size(wanted)}" if wanted is not None else ""
        return with_right(spans + _tried(triage, trial), was, pen, 2)
    if triage.is_request:
        known = "free memory unknown" if limit is None else f"{limit_size(limit)} free"
        spans += [(f"{known}   asked for ", "text"), (limit_size(wanted), "strong"), ("   ", "text")]
        if over is not None:
            spans.append((f"SHORT BY {limit_size(over)}" if over > 0 else "FREE MEMORY IS IN PIECES", "bad"))
    else:
        spans.append(("limit unknown" if limit is None else limit_size(limit), "text"))
        if wanted is not None:
            spans += [("   needs ", "text"), (limit_size(wanted), "strong"), ("   ", "text")]
        spans += [] if over is None else [_over(over, limit)]
    beside = f"reserved {limit_size(triage.reserved_bytes)} more" if triage.reserved_bytes else ""
    return with_right(spans, beside, pen, 2)


def composition(triage: Triage, trial: Trial | None, pen: Pen, height: int | None) -> list[Line]:
    """The bars, and the mark of the limit below; parts that are too small, or too many for `height`, are named there.

    Each part is drawn as on the memory tab: what is there throughout, what comes and goes, and padding. `height` counts
    the line of the mark too; None is for as many lines as there are parts.
    """
    scale, limit = _scale(triage)
    if not scale or not triage.parts or (height is not None and height < 1):
        return []
    sizes, padding = _after(triage, trial), _padding(triage, trial)
    least, whole = scale * _SMALL, sum(sizes)
    bars = [
        Bar("in all" if part.name == "all" else part.name, begin, size, HELD if part.name in _HELD else USED)
        for part, begin, size in zip(triage.parts, accumulate(sizes, initial=0), sizes, strict=False)
    ]
    large = [index for index, part in enumerate(triage.parts) if part.size_bytes >= least]
    large.sort(key=lambda index: -sizes[index])
    most = len(large) if height is None else height - 1
    with_padding = padding >= least and (height is None or most > len(large))
    end = Bar("padding", whole - min(padding, whole), min(padding, whole), PADDING)
    room = max(8, pen.width - LABEL - _SIZE)
    ruler = _Ruler(scale, None if limit is None else limit * room // scale, room, triage.wanted_bytes or scale)
    if most == 1 and len(large) > 1:  # one bar of all says more than one part of it
        pieces = [bar for bar in (*bars, end) if bar.size >= least]
        named = sorted(((bar.label, bar.size) for bar in bars if bar.size >= least), key=lambda pair: -pair[1])
        named += [("padding", padding)] if padding >= least else []
        lines = [_bar_line("in all", whole, pieces, ruler, pen)]
    else:
        shown = set(large[:most])
        drawn = [bar for index, bar in enumerate(bars) if index in shown] + ([end] if with_padding else [])
        named = [(bar.label, bar.size) for index, bar in enumerate(bars) if index not in shown]
        named += [] if with_padding else [("padding", padding)]
        lines = [_bar_line(bar.label, bar.size, [bar], ruler, pen) for bar in drawn]
    return [*lines, _mark_line(triage, ruler, named, pen)]


def most_lines(triage: Triage) -> int:
    """Lines of `composition` where there is room for all parts."""
    scale, _ = _scale(triage)
    if not scale or not triage.parts:
        return 0
    sizes = [*(part.size_bytes for part in triage.parts), triage.padding_bytes or 0]
    return sum(size >= scale * _SMALL for size in sizes) + 1


def _over(over: int, limit: int | None) -> Span:
    if over > 0:
        share = f" (+{percent(100 * over / limit, 0 if over * 10 > limit else 1)})" if limit else ""
        return (f"OVER BY {limit_size(over)}{share}", "bad")
    full = f" ({percent(100 * (limit + over) / limit, 0)} full)" if limit and limit + over > 0 else ""
    return (f"FITS, {limit_size(-over)} free{full}", "warn" if limit and -over * 10 < limit else "good")


def _tried(triage: Triage, trial: Trial) -> list[Span]:
    used, limit = trial.estimate.used_bytes, triage.limit_bytes
    spans: list[Span] = [(limit_size(limit) if limit is not None else "limit unknown", "text"), ("   ", "text")]
    if used is None:
        return [*spans, (f"estimate: saves {limit_size(trial.estimate.saved_bytes)}", "warn")]
    spans += [(f"estimate {limit_size(used)}", "warn"), ("   ", "text")]
    if limit is None:
        return spans
    is_over = used > limit
    words = f"STILL OVER BY {limit_size(used - limit)}" if is_over else f"FITS, {limit_size(limit - used)} free"
    return [*spans, (words, "bad" if is_over else "good")]


def with_right(spans: list[Span], right: str, pen: Pen, apart: int = 1) -> Line:
    """The spans, and words at the right end where there is room for them, so many cells apart."""
    spans = list(pen.spans(spans))
    gap = pen.width - line_width(tuple(spans)) - len(right) - 1
    if right and gap >= apart:
        spans = [*spans, (" " * gap, "text"), (right, "dim")]
    return pen.fit(spans)


def _scale(triage: Triage) -> tuple[int, int | None]:
    """Bytes that the bars' room stands for, and the limit within; None where it is unknown or far beyond the need."""
    wanted, limit = triage.wanted_bytes or 0, triage.limit_bytes
    if limit is not None and 0 < _FAR * wanted < limit:
        return wanted, None
    return max(wanted, limit or 0), limit


def _after(triage: Triage, trial: Trial | None) -> list[int]:
    """Size of each part, with the chosen toggles where some are on: what buffers lose is their part's loss."""
    sizes = [part.size_bytes for part in triage.parts]
    if trial is None or not trial.chosen:
        return sizes
    names = [part.name for part in triage.parts]
    for buffer, after in zip(triage.need.buffers, trial.estimate.sizes, strict=False):
        name = part_of(buffer.category, triage.parts)
        index = names.index(name) if name is not None else max(range(len(sizes)), key=sizes.__getitem__)
        sizes[index] -= buffer.size_bytes - after
    return [max(0, size) for size in sizes]


def _padding(triage: Triage, trial: Trial | None) -> int:
    """Padding, with the chosen toggles what that of the listed buffers shrinks by less; 0 where it is unknown."""
    padding = triage.padding_bytes or 0
    if trial is None or not trial.chosen:
        return padding
    chosen = [toggle for toggle in triage.toggles if toggle.key in trial.chosen]
    mended = {index for toggle in chosen if toggle.key.startswith("padding") for index in toggle.buffers}
    for index, (buffer, after) in enumerate(zip(triage.need.buffers, trial.estimate.sizes, strict=False)):
        before = buffer.padding_bytes or 0
        padding -= before if index in mended else before - before * after // max(1, buffer.size_bytes)
    return max(0, padding)


def _bar_line(label: str, size: int, bars: Sequence[Bar], ruler: _Ruler, pen: Pen) -> Line:
    """Bars in one line, later ones over earlier; the line of the limit, where there is more than that, crosses them."""
    cells = [" "] * ruler.room
    keys: list[Key] = ["text"] * ruler.room
    for number, bar in enumerate(bars, 1):
        before, filled = _filled(bar, ruler, pen.glyphs, number < len(bars))
        for cell, glyph in enumerate(filled, before):
            cells[cell], keys[cell] = glyph, sign_of(bar.area, pen.glyphs)[1]
    limit = ruler.room if ruler.limit is None else ruler.limit
    if limit < ruler.room and (cells[limit] == " " or ruler.room - cells.count(" ") > 1):  # one cell is not hidden
        cells[limit], keys[limit] = pen.glyphs.vertical, "bad"
    metrics = f"{limit_size(size):>11} {percent(100 * size / ruler.whole, 0):>5}"
    label = f" {label:<{LABEL - 1}}"
    return pen.fit([(label, "dim"), *joined(zip(cells, keys, strict=True)), (metrics, "text")])


def _filled(bar: Bar, ruler: _Ruler, glyphs: Glyphs, in_cells: bool) -> tuple[int, str]:
    """Blank cells before a bar, and its glyphs, whole cells where another follows; what is there has one at least."""
    room, scale = ruler.room, ruler.scale
    first = min(room - 1, round(bar.begin * room / scale))
    eighths = max(1, round((bar.begin + bar.size) * room * 8 / scale) - first * 8) if bar.size > 0 else 0
    eighths = min(eighths, (room - first) * 8)
    full, rest = divmod(eighths, 8)
    if glyphs.letters or in_cells:
        return first, sign_of(bar.area, glyphs)[0] * max(full + (rest >= 4), eighths > 0)
    return first, glyphs.full * full + (glyphs.bar[rest] if rest else "")


def _mark_line(triage: Triage, ruler: _Ruler, left_out: list[tuple[str, int]], pen: Pen) -> Line:
    """The mark of the limit under the bars, and the parts that have none."""
    named = [f"{name} {binary_short(size)}" for name, size in left_out if size > 0]
    rest = "  ".join(named)
    if ruler.limit is None:
        return pen.fit([(f" {rest}", "dim")])
    mark = min(ruler.limit, ruler.room - 1) + LABEL
    word = f"{'free' if triage.is_request else 'limit'} {limit_size(triage.limit_bytes)}"
    if mark + 2 + len(word) <= pen.width:
        begin, text = mark, f"{pen.glyphs.up} {word}"
    else:
        begin, text = mark - len(word) - 1, f"{word} {pen.glyphs.up}"
    if rest and pen.width - (begin + len(text)) - 3 >= len(rest):
        gap = pen.width - begin - len(text) - len(rest) - 1
        return pen.fit([(" " * begin, "text"), (text, "warn"), (" " * gap, "text"), (rest, "dim")])
    left, right = begin - 3, pen.width - begin - len(text) - 3
    while named and len(rest) > max(left, right):
        named.pop()
        rest = "  ".join([*named, pen.glyphs.ellipsis])
    rest = rest if named else ""
    if right > left:
        return pen.fit([(" " * begin, "text"), (text, "warn"), (f"  {rest}", "dim")])
    return pen.fit([(f" {rest}".ljust(begin), "dim"), (text, "warn")])
