"""Collectives in cells: the strip of a step, and all about one row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.collectives.host_sums import DCN
from tpuprof.parsers.pages.collectives.model import NEVER_SEEN, CollectivesPage, Rows
from tpuprof.parsers.pages.collectives.rows import above_peak, why_unknown
from tpuprof.parsers.pages.collectives.slices import SliceCollective
from tpuprof.tui.draw.axis import equal_runs
from tpuprof.tui.draw.format import UNKNOWN, duration, share
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey
from tpuprof.tui.pages.collectives.fields import PAYLOAD, RATE, CollectiveRows, parts_signs
from tpuprof.tui.pages.collectives.figures import required_rate, slice_table
from tpuprof.tui.report.declared import Section
from tpuprof.tui.report.units import BYTES

_LEAST_STRIP = 20
_LEAST_SHARE = 8.0  # of 255, from which on a cell shows a transfer
_NAME = 10
_MOST_SLICES = 3
_MOST_COPIES = 10
_FEW_STEPS = 3


def strip_lines(page: CollectivesPage, step: int | None, pen: Pen) -> list[Line]:
    """A step of the first core from its begin to its end: work above, transfers below; without a step the mean."""
    strips = page.strips
    if not strips.size or not strips[1].any():
        return []
    title = "mean" if step is None else f"step {page.step_names[step]}" if page.has_steps else "profile"
    title = pen.text(title) if page.has_steps else "profile"
    side = max(len(title), len("transfers"))
    room = pen.width - side - 6
    if room < _LEAST_STRIP:
        return []
    cells = strips.mean(axis=1) if step is None else strips[:, step]
    borders = np.linspace(0, cells.shape[1], room + 1).astype(np.int64)
    starts = np.minimum(borders[:-1], cells.shape[1] - 1)
    sizes = np.maximum(np.diff(np.append(starts, cells.shape[1])), 1)
    shown = np.add.reduceat(cells.astype(np.float64), starts, axis=1) / sizes
    signs = " .-=#" if pen.glyphs.is_ascii else " ░▒▓█"
    bar = "|" if pen.glyphs.is_ascii else "▏"
    first: list[Span] = [(f" {title:<{side}} {bar}", "dim"), (_shades(shown[0], signs), "class.compute"), (bar, "dim")]
    moving = _transfers(shown[1], shown[2], pen.glyphs)
    second: list[Span] = [(f" {'transfers':<{side}} {bar}", "dim"), *moving, (bar, "dim")]
    return [pen.fit(first), pen.fit(second)]


def _shades(shares: NDArray[np.float64], signs: str) -> str:
    levels = np.clip(np.ceil(shares / 255 * (len(signs) - 1)), 0, len(signs) - 1).astype(np.int64)
    return "".join(signs[level] for level in levels.tolist())


def _transfers(under_way: NDArray[np.float64], exposed: NDArray[np.float64], glyphs: Glyphs) -> list[Span]:
    """Cells with transfers: light where the core is mostly in collectives' own ops, full where it is not."""
    hidden_sign, exposed_sign, nothing = parts_signs(glyphs)
    kind = np.where(under_way < _LEAST_SHARE, 0, np.where(exposed > under_way / 2, 2, 1))
    looks: tuple[Span, ...] = ((nothing, "dim"), (hidden_sign, "class.collective"), (exposed_sign, "bad"))
    runs = ((looks[int(kind[begin])], end - begin) for begin, end in equal_runs(kind))
    return [(sign * cells, key) for (sign, key), cells in runs]


def row_card(page: CollectivesPage, rows: Rows, row: int, steps: int, pen: Pen) -> list[Line]:
    """All about one row, in sentences; the rows are the mean of so many steps."""

    def line(name: str, words: str, style: StyleKey = "text") -> list[Line]:
        return pen.wrap(words, style, [(f" {name:<{_NAME}}", "dim")])

    def time(values: NDArray[np.float64]) -> str:
        return duration(float(values[row]), pen.glyphs.is_ascii)

    title = f" {rows.name[row]}"
    if int(rows.collectives[row]) > 1:
        title += f", {int(rows.collectives[row]):,} ops"
    lines = [pen.fit([(title, "strong"), (f"  {_where(rows, row, pen.glyphs)}", "dim")])]
    per = "a step" if page.has_steps else "in all"
    parts = f"{time(rows.span_ps)} {per}: hidden {time(rows.hidden_ps)} ({share(float(rows.hidden_share[row]))}), "
    parts += f"exposed {time(rows.exposed_ps)}, neither {time(rows.stalled_ps)}"
    lines += line("transfer", parts)
    if rows.waiting_ps[row] > 0:
        words = f"{time(rows.waiting_ps)} of the exposed time is waiting for the last core"
        late = rows.late[row]
        if late is not None:
            number = f"{int(rows.late_steps[row]):,} of {counted(steps, 'step')}" if steps > 1 else "this step"
            words += f": {late} is late by {time(rows.late_ps)} in {number}"
        lines += line("waiting", words, "warn" if late is not None else "text")
    data = f"{PAYLOAD.words(float(rows.payload[row]), pen.glyphs.is_ascii)} {per}; "
    rates = (RATE.words(float(of[row]), pen.glyphs.is_ascii) for of in (rows.algorithm_rate, rows.bus_rate))
    data += "at least " if rows.is_async[row] else ""
    data += "algbw {}, busbw {} GB/s".format(*rates)
    peak = share(float(rows.peak_share[row]))
    lines += line("data", data + (f", {peak} of the links' peak" if peak != UNKNOWN else ""))
    if rows.network[row] == DCN:
        names = {page.collectives[at].name for at in np.flatnonzero(np.isin(page.group, rows.members[row])).tolist()}
        names = {rows.name[row]} & names or names  # one of them, or all of a group
        for each in [each for each in slice_table(page) if each.rendezvous in names][:_MOST_SLICES]:
            lines += line("slices", slice_words(each, pen.glyphs))
        lines += line("", NEVER_SEEN, "dim")
    return lines


def slice_words(each: SliceCollective, glyphs: Glyphs) -> str:
    """A collective between slices in a sentence."""

    def mean(total: int) -> str:
        return duration(total / each.occurrences, glyphs.is_ascii)

    words = f"{each.rendezvous}: slack {mean(each.slack_ps)}, observed {mean(each.observed_ps)}, "
    words += f"stall {mean(each.stall_ps)}"
    if each.network_bytes is not None:
        words += f"; {BYTES.words(each.network_bytes, glyphs.is_ascii)}"
    rate = required_rate(each)
    return words + (f", needs {RATE.words(rate, False)} GB/s" if rate is not None else "")


def _where(rows: Rows, row: int, glyphs: Glyphs) -> str:
    groups = rows.groups[row].replace("×", glyphs.times)
    axis = rows.axis[row]
    along = f"along {axis}" if axis and not axis.startswith("id+") else axis if axis else ""
    pieces = (groups and f"groups {groups}", along, rows.pass_name[row], rows.network[row])
    kind = rows.kind[row] if rows.kind[row] != rows.name[row] else ""
    return f" {glyphs.dot} ".join(filter(None, (kind, *pieces)))


def report_lines(
    page: CollectivesPage, groups: Section[CollectiveRows], copies: Section[CollectiveRows], pen: Pen
) -> list[Line]:
    """The answer, groups, copies, those between slices, and strips of the first steps."""
    slices = slice_table(page)
    out = pen.wrap(page.statement, "text", [(" ", "text")])
    if len(groups.source):
        out += groups.lines(pen, "exposed")
    if len(copies.source):
        out += [pen.rule(copies.title), *pen.wrap(page.of_copies.statement, "text", [(" ", "text")])]
        out += replace(copies, limit=copies.limit or _MOST_COPIES).lines(pen, "exposed")
    if slices:
        out.append(pen.rule("Between slices (DCN)"))
        for each in slices:
            out += pen.wrap(slice_words(each, pen.glyphs), "text", [(" ", "text")])
    strips = [line for step in range(min(_FEW_STEPS, len(page.step_names))) for line in strip_lines(page, step, pen)]
    if strips:
        out += [pen.rule(f"What core {page.cores[0]} did"), *strips]
    unknown = why_unknown(page, groups.source.rows).items()
    return [*out, *pen.notes((*page.warnings, *page.notes, *above_peak(groups.source.rows)), unknown)]
