"""Collectives in cells: the page as text, and all about one row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.collectives.host_sums import DCN, DMA
from tpuprof.parsers.pages.collectives.model import NEVER_SEEN, CollectivesPage, Rows
from tpuprof.parsers.pages.collectives.rows import above_peak, why_unknown
from tpuprof.parsers.pages.collectives.slices import SliceCollective
from tpuprof.tui.draw.format import UNKNOWN, duration, share
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Line, StyleKey
from tpuprof.tui.pages.collectives.fields import PAYLOAD, RATE, CollectiveRows
from tpuprof.tui.pages.collectives.figures import required_rate, slice_table
from tpuprof.tui.report.declared import Section
from tpuprof.tui.report.units import BYTES, words_of_key

_NAME = 10
_MOST_SLICES = 3
_MOST_COPIES = 10


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
    peak, whose = share(float(rows.peak_share[row])), "HBM's" if rows.network[row] == DMA else "the links'"
    lines += line("data", data + (f", {peak} of {whose} peak" if peak != UNKNOWN else ""))
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
    """The answer, groups, copies, and those between slices."""
    slices = slice_table(page)
    out = pen.wrap(page.statement, "text", [(" ", "text")])
    if len(groups.source):
        out += groups.lines(pen, "exposed")
    if len(copies.source):
        out += [pen.rule(copies.title), *pen.wrap(page.of_copies.statement, "text", [(" ", "text")])]
        out += replace(copies, limit=copies.limit or _MOST_COPIES).lines(pen, "exposed")
    if slices:
        words = (slice_words(each, pen.glyphs) for each in slices)
        out += [pen.rule("Between slices (DCN)"), *pen.wrap_all(words, "text", [(" ", "text")])]
    unknown = ((words_of_key(key), why) for key, why in why_unknown(page, groups.source.rows).items())
    return [*out, *pen.notes((*page.warnings, *page.notes, *above_peak(groups.source.rows)), unknown)]
