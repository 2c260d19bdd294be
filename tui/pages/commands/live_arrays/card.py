"""All about what was made at one place, with its stack; what the numbers mean; and a summary for a chat."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tpuprof.parsers.base.words import percent_of
from tpuprof.parsers.files.source_lines import SourceExcerpt, source_excerpt
from tpuprof.parsers.formats.pprof.messages import Frame
from tpuprof.parsers.memory.live_arrays import Allocation, AllocationGroup, By, LiveArrays, is_library, short_device
from tpuprof.tui.draw.format import binary_size, count, percent
from tpuprof.tui.draw.pen import Card, Pen, cut_begin
from tpuprof.tui.draw.spans import Line, Span, StyleKey
from tpuprof.tui.pages.commands.live_arrays.fields import GROUPS, totals_words
from tpuprof.tui.report.fields import help_rows
from tpuprof.tui.report.shared.holders import group_name

_MOST_LISTED = 12  # stacks, sizes and devices that a card lists
_MOST_EXCERPTS = 6  # calls of the user's own that show a line of code
_MOST_FRAMES = 200

excerpt_of = cache(source_excerpt)


def group_card(page: LiveArrays, group: AllocationGroup, by: By, pen: Pen) -> list[Line]:
    """Everything about a group."""
    card = Card(pen)
    card.head(group_name(group, by))
    share = percent(percent_of(group.total.size_bytes, page.total.size_bytes))
    card.entry("size", f"{binary_size(group.total.size_bytes)}, {share} of all", "strong")
    card.entry("count", count(group.total.count))
    card.entry("kind", group.kind or "unknown: the file does not say")
    card.known("devices", ", ".join(group.devices))
    members = [page.allocations[member] for member in group.members]
    if len(members) > 1:
        card.title("By stack, size and device")
        card.lines += [_member_line(one, pen) for one in members[:_MOST_LISTED]]
        card.more(len(members) - _MOST_LISTED)
    largest = " of the largest" if len(members) > 1 else ""
    card.title(f"The stack{largest}, the innermost call first")
    return card.lines + stack_lines(members[0], pen)


def _member_line(one: Allocation, pen: Pen) -> Line:
    each = count(one.count)
    each += "" if one.each_bytes is None else f" {pen.glyphs.times} {binary_size(one.each_bytes)}"
    where = short_device(one.device) if one.device else one.kind or ""
    callers = " < ".join(frame.function or "?" for frame in one.stack[one.own : one.own + 4])
    text = f"{each:<16} {where:<10} {callers}"
    return pen.fit([(f"{binary_size(one.size_bytes):>9}  ", "strong"), (text, "text")])


def stack_lines(one: Allocation, pen: Pen) -> list[Line]:
    """A stack, a call a line; under the user's own calls the line of code, where the file is here."""
    if not one.stack:
        return pen.wrap("The program kept no traceback for it.", "dim")
    lines: list[Line] = []
    shown = 0
    for place, frame in enumerate(one.stack[:_MOST_FRAMES]):
        is_own = place == one.own
        lines.append(_frame_line(frame, is_own, pen))
        if is_own or (not is_library(frame) and shown < _MOST_EXCERPTS):
            excerpt: SourceExcerpt | None = excerpt_of(frame.place, 2 if is_own else 0)
            if excerpt is not None:
                lines += pen.excerpt(excerpt)
                shown += 1
    if len(one.stack) > _MOST_FRAMES:
        lines.append(pen.fit([(f"and {len(one.stack) - _MOST_FRAMES:,} more calls", "dim")]))
    return lines


def _frame_line(frame: Frame, is_own: bool, pen: Pen) -> Line:
    key: StyleKey = "strong" if is_own else "dim" if is_library(frame) else "text"
    function = pen.text(frame.function or "(unknown)")
    place = frame.place or "(file unknown)"
    mark: Span = (f"{pen.glyphs.mark} " if is_own else "  ", "mark")
    room = max(12, pen.width - 4 - min(len(function), 30))
    return pen.fit([mark, (cut_begin(place, room, pen.glyphs), key), (f"  {function}", key)])


# --- help, and a summary

_COPIED = 8  # rows of a summary

_MEANING = (
    "A device memory profile lists what is alive when it is written: the buffers of arrays, and compiled programs "
    "(executables). jax.profiler.save_device_memory_profile writes it. An array has a buffer on each device that holds "
    "a shard of it, and is counted there.",
    "The temporaries that a program needs while it runs are not alive between two steps, and not in the file: the "
    "memory tab of a profile, or the log of an out-of-memory error, shows them.",
    "The line of code is the innermost one on the stack outside installed packages and Python's own library. If "
    "there is none, it is the innermost one outside JAX.",
)


def meaning_lines(pen: Pen) -> list[Line]:
    """What the columns and the numbers mean."""
    card = Card(pen)
    card.title("What the columns mean")
    for title, words in help_rows(GROUPS, "size"):
        card.lines += pen.wrap(words, "text", [(f"{title:<10}", "strong")])
    card.title("What the numbers mean")
    card.paragraphs(*_MEANING)
    return card.lines


def summary(page: LiveArrays, groups: Sequence[AllocationGroup]) -> str:
    """The matter in one line of a few parts: the sentence, and the largest groups."""
    parts = [page.name, totals_words(page)]
    for group in groups[:_COPIED]:
        name = group_name(group, "source", False)
        parts.append(f"{binary_size(group.total.size_bytes)} in {group.total.count:,} {name}")
    return " | ".join(parts)
