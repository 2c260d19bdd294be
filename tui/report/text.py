"""Pages as plain text, drawn by the functions that draw the screen; colours only where they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

from tpuprof.parsers.base.text import counted
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ClassStyle, Glyphs, Key, Line, OnClassStyle, StyleKey, plain
from tpuprof.tui.report.page import TextLook

LEAST_WIDTH = 60  # narrower than this no table makes sense; lines are left to the terminal to wrap
SIMULATED = "SIMULATED: the times of this profile are not measured"

# Of the terminal's own 16 colours, those that are seen on black and on white: no one asks what it has.
_SGR: dict[StyleKey, str] = {
    **{"strong": "1", "title": "1", "key": "1", "mark": "1", "dim": "2", "rule": "2", "cursor": "7"},
    **{"busy": "94", "warn": "1", "bad": "1;4", "badge": "30;43"},
    **dict(zip(get_args(ClassStyle), ("94", "91", "35", "95", "31", "90", "90"), strict=True)),
    **dict(
        zip(get_args(OnClassStyle), ("97;104", "30;101", "97;45", "30;105", "97;41", "30;100", "30;100"), strict=True)
    ),
}


def page_text(lines: Callable[[Pen], Sequence[Line]], look: TextLook) -> str:
    """A page as text; `lines` draws it."""
    return render(lines(Pen(max(look.width, LEAST_WIDTH), look.glyphs)), look.color)


def covered(hosts: Sequence[str]) -> str:
    """The hosts that a page covers by name, or how many these are."""
    return counted(len(hosts), "host") if len(hosts) > 3 else ", ".join(hosts)


def titled_text(title: str, right: str, draw: Callable[[Pen], Sequence[Line]], look: TextLook) -> str:
    """A page as text under a heading; `draw` draws it."""
    return page_text(lambda pen: [heading(title, right, pen), *draw(pen)], look)


def heading(title: str, right: str, pen: Pen) -> Line:
    """The first line of a report: its title and, at the other end, what it covers; never wider than the line."""
    right = cut_name(pen.text(right), pen.width // 3, pen.glyphs)
    title = cut_name(pen.text(title), pen.width - len(right) - 6, pen.glyphs)
    bar = pen.glyphs.horizontal * (pen.width - len(title) - len(right) - 6)
    ends = pen.glyphs.horizontal
    return (f"{ends} ", "rule"), (title, "title"), (f" {bar} ", "rule"), (right, "dim"), (f" {ends}", "rule")


def cut_name(text: str, cells: int, glyphs: Glyphs) -> str:
    """The text, its middle left out where it is longer: names differ at their ends."""
    if len(text) <= cells:
        return text
    tail = (cells - 1) // 2
    return text[: cells - 1 - tail] + glyphs.ellipsis + text[len(text) - tail :]


def render(lines: Sequence[Line], color: bool) -> str:
    """Lines as text, with ANSI colours or without; blanks at the end of a line without colours are dropped."""
    if color:
        return "".join("".join(_painted(text, key) for text, key in line) + "\n" for line in lines)
    return "".join(plain(line).rstrip() + "\n" for line in lines)


def _painted(text: str, key: Key) -> str:
    code = _SGR.get(key) if isinstance(key, str) else None
    return f"\x1b[{code}m{text}\x1b[0m" if code else text
