"""The column at the left: what each row is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tpuprof.tui.draw.layout import clean, cut, cut_middle
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width

RowKind = Literal["section", "track", "lane", "graph"]

_SEEN = 200
"""Characters of a name that are looked at."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a row is called.

    Attributes:
        kind: a section's heading, the first row of a track, another lane of it, or a graph.
        text: title or name; for a lane its number.
        is_open: a section or a track of several lanes is open, or closed; None for what can't be opened.
        is_pinned: the track stands on top.
        is_current: the cursor is on the row.
        note: a figure for the right side, such as ``93%`` or ``61–143 W``; given up for want of room.
    """

    kind: RowKind
    text: str
    is_open: bool | None = None
    is_pinned: bool = False
    is_current: bool = False
    note: str = ""


def gutter_line(label: Label, width: int, glyphs: Glyphs) -> Line:
    """The label in exactly `width` cells, the last of which is a rule; names are cut in the middle."""
    if width <= 0:
        return ()
    ascii_only = glyphs.name == "ascii"
    pin = "*" if ascii_only else "◆"
    head: list[Span] = [(glyphs.mark if label.is_current else " ", "mark")]
    fold = "" if label.is_open is None else (glyphs.open if label.is_open else glyphs.closed) + " "
    name_key: StyleKey = "strong" if label.is_current else "text"
    if label.kind == "section":
        head.append((fold, "key"))
        name_key = "title"
    else:
        head.append((pin if label.is_pinned else " ", "key"))
        head.append((fold or "  ", "key"))
    if label.kind == "lane":
        head.append(("  ", "text"))
        name_key = "strong" if label.is_current else "dim"
    head_width = min(line_width(tuple(head)), width - 1)
    room = width - 1 - head_width
    text = clean(label.text[:_SEEN], ascii_only)
    note = clean(label.note[:_SEEN], ascii_only)
    if note and len(note) + 1 + min(len(text), 8) > room:
        note = ""
    name_room = room - (len(note) + 1 if note else 0)
    name = (cut if label.kind == "section" else cut_middle)(text, name_room, glyphs)
    spans: list[Span] = [*_clipped(head, head_width), (f"{name:<{name_room}}", name_key)]
    if note:
        spans.append((f" {note}", "dim"))
    spans.append((glyphs.vertical, "rule"))
    return tuple(span for span in spans if span[0])


def _clipped(spans: list[Span], width: int) -> list[Span]:
    """As many cells of the spans."""
    out: list[Span] = []
    for text, key in spans:
        out.append((text[:width], key))
        width -= len(text[:width])
    return out
