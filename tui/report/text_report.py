"""Pages as plain text, drawn by the functions that draw the screen; colours only where they are asked for."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.draw.format import UNKNOWN, duration, size
from tpuprof.tui.draw.layout import cut
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, Key, Line, StyleKey, plain
from tpuprof.tui.pages.overview.drawing import overview as draw_overview
from tpuprof.tui.report.values import local_minute

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts

LEAST_WIDTH = 60
"""Narrower than this no table makes sense; lines are left to the terminal to wrap."""

# Of the terminal's own 16 colours: they follow its theme, light or dark.
_SGR: dict[StyleKey, str] = {
    "dim": "2",
    "strong": "1",
    "title": "1",
    "rule": "2",
    "good": "32",
    "warn": "33",
    "bad": "31",
    "key": "1",
    "cursor": "7",
    "mark": "1",
    "badge": "30;43",
    "busy": "32",
    "class.compute": "32",
    "class.vector": "36",
    "class.copy": "33",
    "class.collective": "35",
    "class.host": "31",
    "class.idle": "2",
    "class.unknown": "37",
    "on.compute": "30;42",
    "on.vector": "30;46",
    "on.copy": "30;43",
    "on.collective": "30;45",
    "on.host": "30;41",
    "on.idle": "2",
    "on.unknown": "30;47",
}


def glyphs_for(ascii_only: bool, color: bool) -> Glyphs:
    """The characters to draw with; without colours areas are told apart by letters."""
    return ASCII if ascii_only else BLOCK if color else PLAIN


def overview_text(page: Overview, run: Run, width: int, glyphs: Glyphs, color: bool = False) -> str:
    """The whole overview page under a line that names the run and its hosts; `width` is in cells."""
    width = max(width, LEAST_WIDTH)
    hosts = counted(len(page.hosts), "host") if len(page.hosts) > 3 else ", ".join(page.hosts)
    head = heading(f"Overview of {run.name}", hosts, width, glyphs)
    return render([head, *draw_overview(page, width, None, glyphs)], color)


def runs_text(
    logdir: Logdir,
    runs: Sequence[Run],
    width: int,
    glyphs: Glyphs,
    color: bool = False,
    facts: Mapping[str, RunFacts] | None = None,
) -> str:
    """A table of the runs, newest first, with the problems of each below its row.

    Args:
        width: in cells.
        facts: by path of the run, for further columns as far as there is room.
    """
    width = max(width, LEAST_WIDTH)
    lines = [heading(f"Runs in {logdir.query}", counted(len(runs), "run"), width, glyphs)]
    names = [_cells(run.name, glyphs) for run in runs]
    room = max(8, min(max(map(len, names), default=3), width - 38))
    left = width - room - 38
    head = "" if facts is None else _cut_end(f"  {'step':>8}  {'device':<16}  modules", left, glyphs)
    lines.append(((f" {'run':<{room}}  {'modified':<16}  {'hosts':>5}  {'size':>8}{head}", "dim"),))
    for run, name in zip(runs, names, strict=True):
        more = "" if facts is None else _cut_end(_facts_words(facts.get(run.path), glyphs), left, glyphs)
        figures = f"  {local_minute(run.modified):<16}  {len(run.hosts):>5}  {size(run.size_bytes):>8}{more}"
        lines.append(((f" {_cut(name, room, glyphs):<{room}}", "strong"), (figures, "text")))
        for problem in run.problems:
            lines += _remark(problem.sentence, width, glyphs)
    for problem in logdir.problems:
        lines += _remark(problem.sentence, width, glyphs)
    return render(lines, color)


def _facts_words(facts: RunFacts | None, glyphs: Glyphs) -> str:
    """Step time (``~`` where it was inferred), device and modules; ``n/a`` where unknown."""
    time = None if facts is None else facts.step_time_ps
    inferred = "~" if facts is not None and facts.step_source == "modules" and time is not None else ""
    device = facts.device_type if facts is not None and facts.device_type else UNKNOWN
    modules = ", ".join(facts.modules) if facts is not None and facts.modules else UNKNOWN
    step = inferred + duration(time, glyphs.name == "ascii")
    return f"  {step:>8}  {_cut(_cells(device, glyphs), 16, glyphs):<16}  {_cells(modules, glyphs)}"


def _cut_end(text: str, width: int, glyphs: Glyphs) -> str:
    """The columns that fit: whole, but for the last one."""
    step, device = 10, 28  # cells up to the end of each
    if width >= device + 12:
        return cut(text, width, glyphs)
    return text[: device if width >= device else step if width >= step else 0]


def heading(title: str, right: str, width: int, glyphs: Glyphs) -> Line:
    """The first line of a report: its title and, at the other end, what it covers; never wider than the line."""
    right = _cut(_cells(right, glyphs), width // 3, glyphs)
    title = _cut(_cells(title, glyphs), width - len(right) - 6, glyphs)
    bar = glyphs.horizontal * (width - len(title) - len(right) - 6)
    return (
        (f"{glyphs.horizontal} ", "rule"),
        (title, "title"),
        (f" {bar} ", "rule"),
        (right, "dim"),
        (f" {glyphs.horizontal}", "rule"),
    )


def _remark(sentence: str, width: int, glyphs: Glyphs) -> list[Line]:
    """A sentence under a row, marked and wrapped."""
    pieces = textwrap.wrap(_cells(sentence, glyphs), width - 5) or [""]
    first: Line = (("   ! ", "warn"), (pieces[0], "text"))
    return [first, *((("     " + piece, "text"),) for piece in pieces[1:])]


def _cells(text: str, glyphs: Glyphs) -> str:
    """Text of which every character takes one cell; what would not shows as ``?``."""
    text = printable(text)
    if text.isascii():
        return text
    return "".join(char if _is_one_cell(char, glyphs) else "?" for char in text)


def _is_one_cell(char: str, glyphs: Glyphs) -> bool:
    if char.isascii():
        return True
    wide = unicodedata.east_asian_width(char) in "WF"
    return glyphs.name != "ascii" and not wide and not unicodedata.combining(char)


def _cut(text: str, width: int, glyphs: Glyphs) -> str:
    """The text, its middle left out where it is longer: names differ at their ends."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + glyphs.ellipsis + text[len(text) - tail :]


def render(lines: Sequence[Line], color: bool) -> str:
    """Lines as text, with ANSI colours or without; blanks at the end of a line without colours are dropped."""
    if color:
        return "".join("".join(_painted(text, key) for text, key in line) + "\n" for line in lines)
    return "".join(plain(line).rstrip() + "\n" for line in lines)


def _painted(text: str, key: Key) -> str:
    code = _SGR.get(key) if isinstance(key, str) else None
    return f"\x1b[{code}m{text}\x1b[0m" if code else text
