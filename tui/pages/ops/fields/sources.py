"""The quantities of a line of code."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.pages.ops.op_profile import source_location
from tpuprof.parsers.pages.ops.sources import SourcesPage, short_names
from tpuprof.tui.draw.pen import cut_begin
from tpuprof.tui.draw.spans import Glyphs, Span
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.pages.ops.fields import common
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Rows, Table, attribute, in_order, of_each
from tpuprof.tui.report.shared.quantities import RANK
from tpuprof.tui.report.units import COUNT, NUMBER, SHARE, SHARE_PERCENT, TEXT, TIME_PS

BETWEEN = " > "  # stands between the calls of a stack, outermost first
UNNAMED = "these ops name no line of code"

_NO_STACK = f"{UNNAMED}, or the profile has no call stacks"
_NO_TIME = "no op took any time"


def _names(page: SourcesPage, glyphs: Glyphs, cells: int = 0) -> Cells:
    """``model.py:62``, with as many folders as distinguish files of one name, in at most so many cells."""
    short = short_names([source_location(text).file for text in page.source])

    def name(row: int) -> Span:
        file, line = source_location(page.source[row])
        words = f"{short[file]}{'' if line is None else f':{line}'}" if file else "no source line"
        return cut_begin(words, cells or _NAME_CELLS, glyphs), "strong" if file else "dim"

    return each(name)


def whole_names(page: SourcesPage, glyphs: Glyphs) -> dict[str, dict[str, Any]]:
    """How the columns look where no name of a line is cut."""
    names = (len(text) for text, _ in _names(page, glyphs, _LONGEST_NAME)(range(len(page))))
    whole = {"width": max((_NAME_CELLS, *names)), "cells": partial(_names, cells=_LONGEST_NAME)}
    return {key: whole if key == "source" else {} for key in SOURCES.screen}


_NAME_CELLS, _LONGEST_NAME = 30, 1 << 12
_LONGEST_STACK = of_each(lambda stacks: BETWEEN.join(stacks[0].calls) if stacks else "", "stacks")
_FILE = of_each(lambda text: source_location(text).file, "source")
_LINE = of_each(lambda text: source_location(text).line, "source")


def _longest(page: SourcesPage, rows: Rows) -> list[str]:
    return [page.ops.table.name[op] for op in page.main[rows].tolist()]


def _kind(page: SourcesPage, row: int) -> OpClass:
    """What the line's longest op does, which colours its bar."""
    return page.ops.op_class[int(page.main[row])]


_LOOKS: dict[str, ColumnSpec[SourcesPage]] = {
    "source": ColumnSpec("line", _NAME_CELLS, cells=_names, is_left=True, fixed=True),
    "function": ColumnSpec("function", 20),
    "scope": ColumnSpec("scope", 16),
    "op_count": ColumnSpec("ops", 5),
    "occurrences": ColumnSpec("count", 8),
    "self_time_ps": ColumnSpec("self time", 9),
    "op_time_percent": ColumnSpec("time", 6, fixed=True),
    "op_time_bar": common.bars("op_fraction", _kind, lambda page: page.op_fraction.max(initial=0.0)),
    "cumulative_op_time_percent": ColumnSpec("cumul.", 6),
    "longest_op": ColumnSpec("longest op", 24),
    "called_from": ColumnSpec("called from", 24, cut=cut_begin),
}
_field = partial(common.shown_field, _LOOKS)
_SOURCE = "the file and line, as the profile writes them; for a fusion the same line as in XProf"
_FUNCTION = "the function that the line is in, as call stacks name it"
_SCOPE = "the innermost framework scope, or else the jitted function, in which most of its time is"
_SELF_TIME = "self time of its ops, summed over all occurrences and cores"
_CUMULATIVE = "self time of the line and of all before it, of the self time of all ops"
_OF_OPS = "self time, of the self time of all ops"
_OF_WHOLE = "self time, of the cores' whole time, idle time included"
_CALLED = "for a line in an installed package, the nearest call outside of such packages"
_NOT_CALLED = "the line is in no installed package, or no call stack leads out of it"

_FIELDS: tuple[Field[SourcesPage], ...] = (
    Field("rank", RANK.unit, RANK.read, "the row's place by self time; ops that name no line come last"),
    _field("source", TEXT, "source", _SOURCE, UNNAMED, "line", filter=("source",)),
    _field("file", TEXT, _FILE, "the file", UNNAMED),
    _field("line", NUMBER, _LINE, "the number of the line, from 1", f"{UNNAMED}, or a file alone"),
    _field("function", TEXT, "function", _FUNCTION, f"{_NO_STACK}, or these name no functions", "function"),
    _field("scope", TEXT, "scope", _SCOPE, f"{UNNAMED}, or no framework op", "scope"),
    _field("op_count", COUNT, "op_count", "HLO ops of the line", heading="ops"),
    _field("occurrences", COUNT, "occurrences", "how often these ran, over all cores", heading="count"),
    _field("self_time_ps", TIME_PS, "self_ps", _SELF_TIME, heading="self time"),
    _field("op_time_percent", SHARE_PERCENT, "op_fraction", _OF_OPS, _NO_TIME, "of op time", attrgetter("self_ps")),
    _field("op_time_bar", SHARE, "op_fraction", "the same as a bar; the largest line has the longest bar"),
    _field("cumulative_op_time_percent", SHARE_PERCENT, "cumulative_fraction", _CUMULATIVE, _NO_TIME, "cumulative"),
    _field("self_time_percent", SHARE_PERCENT, "self_fraction", _OF_WHOLE, common.NO_TIME),
    common.work_field("flops", "flops", "FLOPs over all occurrences", common.NO_FLOPS),
    common.work_field("bytes_accessed", "bytes_accessed", "bytes read and written in all memories", common.NO_BYTES),
    common.work_field("hbm_bytes", "hbm", "bytes read from and written to HBM", common.NO_HBM_BYTES),
    *(replace(quantity, filter=()) for quantity in common.rate_fields("rates", _kind)),
    _field("longest_op", TEXT, _longest, "its op with most self time", heading="longest op"),
    _field("called_from", TEXT, "caller", _CALLED, _NOT_CALLED),
    _field("stack", TEXT, _LONGEST_STACK, "the calls that led to most of its time, outermost first", _NO_STACK),
    _field("stack_count", COUNT, of_each(len, "stacks"), "distinct call stacks that lead to it"),
)

_JSON = in_order(
    "source file line function scope op_count occurrences self_time_ps op_time_percent cumulative_op_time_percent",
    "self_time_percent flops bytes_accessed hbm_bytes",
    common.WORK_RATES,
    "longest_op called_from stack stack_count",
)

SOURCES: Table[SourcesPage] = Table(
    "lines",
    _FIELDS,
    len,
    json=_JSON,
    csv=("rank", *_JSON),
    markdown=in_order(
        "rank source scope op_time_percent self_time_ps op_count occurrences", common.READABLE_RATES, "longest_op"
    ),
    screen=in_order(
        "op_time_percent op_time_bar source scope self_time_ps flops_utilization hbm_bandwidth_utilization",
        "roofline_efficiency bound_by op_count occurrences cumulative_op_time_percent gflops_per_second function",
        "longest_op called_from",
    ),
    adds=("op_count", *common.SUMMED),
)

LINE_COUNT: Metric[SourcesPage] = Metric(
    "line_count", COUNT, lambda page: sum(map(bool, page.source)), "lines of code before any limit"
)
UNSOURCED: Metric[SourcesPage] = Metric(
    "unsourced_op_time_percent",
    SHARE_PERCENT,
    lambda page: (
        sum(ps for text, ps in zip(page.source, page.self_ps.tolist(), strict=True) if not text) / page.self_ps.sum()
        if page.self_ps.sum()
        else None
    ),
    "self time of the ops that name no line, of the self time of all ops",
    _NO_TIME,
)
HEADLINE: Metric[SourcesPage] = attribute("headline", TEXT, "what costs most, in a sentence")
