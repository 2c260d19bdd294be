"""The quantities of a line of code."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from tpuprof.parsers.pages.ops.op_profile import source_location
from tpuprof.parsers.pages.ops.sources import SourcesPage, short_names
from tpuprof.tui.draw.bars import CLASS_STYLE, small_bar
from tpuprof.tui.draw.layout import cut_begin
from tpuprof.tui.draw.spans import Glyphs, Span
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.pages.ops.fields import common
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Table, attribute, column, in_order, take
from tpuprof.tui.report.shared.quantities import RANK
from tpuprof.tui.report.units import COUNT, NUMBER, SHARE, SHARE_PERCENT, TEXT, TIME_PS

if TYPE_CHECKING:
    from tpuprof.tui.report.fields import Rows

BETWEEN = " > "
"""Stands between the calls of a stack, outermost first."""

UNNAMED = "these ops name no line of code"

_NO_STACK = f"{UNNAMED}, or the profile has no call stacks"
_NO_TIME = "no op took any time"


def _bars(page: SourcesPage, glyphs: Glyphs) -> Cells:
    """Bars of the share of time, the longest one the full width, coloured as the line's longest op."""
    most = float(page.op_fraction.max(initial=0.0)) or 1.0

    def bar(row: int) -> Span:
        kind = page.ops.op_class[int(page.main[row])]
        return small_bar(float(page.op_fraction[row]) / most, common.BAR_WIDTH, glyphs)[0], CLASS_STYLE[kind]

    return each(bar)


def _names(page: SourcesPage, glyphs: Glyphs) -> Cells:
    """``model.py:62``, with as many folders as distinguish files of one name."""
    short = short_names([source_location(text).file for text in page.source])

    def name(row: int) -> Span:
        file, line = source_location(page.source[row])
        words = f"{short[file]}{'' if line is None else f':{line}'}" if file else "no source line"
        return cut_begin(words, _NAME_CELLS, glyphs), "strong" if file else "dim"

    return each(name)


_NAME_CELLS = 30


def _stacks(page: SourcesPage, rows: Rows) -> list[str]:
    return [BETWEEN.join(page.stacks[row][0].calls) if page.stacks[row] else "" for row in rows]


_FIELDS: tuple[Field[SourcesPage], ...] = (
    Field("rank", RANK.unit, RANK.read, "the row's place by self time; ops that name no line come last"),
    Field(
        "source",
        TEXT,
        column("source"),
        "the file and line, as the profile writes them; of a fusion the one that XProf names too",
        UNNAMED,
        "line",
        ColumnSpec("source", "line", _NAME_CELLS, cells=_names, is_left=True, fixed=True),
        filter=("source",),
    ),
    Field(
        "file", TEXT, lambda page, rows: [source_location(page.source[row]).file for row in rows], "the file", UNNAMED
    ),
    Field(
        "line",
        NUMBER,
        lambda page, rows: [source_location(page.source[row]).line for row in rows],
        "the number of the line, from 1",
        f"{UNNAMED}, or a file alone",
    ),
    Field(
        "function",
        TEXT,
        column("function"),
        "the function that the line is in, as call stacks name it",
        f"{_NO_STACK}, or these name no functions",
        "function",
        ColumnSpec("function", "function", 20),
    ),
    Field(
        "scope",
        TEXT,
        column("scope"),
        "the innermost framework scope, or else the jitted function, in which most of its time is",
        f"{UNNAMED}, or no framework op",
        "scope",
        ColumnSpec("scope", "scope", 16),
    ),
    Field(
        "op_count", COUNT, column("op_count"), "HLO ops of the line", heading="ops", screen=ColumnSpec("ops", "ops", 5)
    ),
    Field(
        "occurrences",
        COUNT,
        column("occurrences"),
        "how often these ran, over all cores",
        heading="count",
        screen=ColumnSpec("count", "count", 8),
    ),
    Field(
        "self_time_ps",
        TIME_PS,
        column("self_ps"),
        "self time of its ops, summed over all occurrences and cores",
        heading="self time",
        screen=ColumnSpec("self_time", "self time", 9),
    ),
    Field(
        "op_time_percent",
        SHARE_PERCENT,
        column("op_fraction"),
        "self time, of the self time of all ops",
        _NO_TIME,
        "of op time",
        ColumnSpec("self", "time", 6, fixed=True),
        attrgetter("self_ps"),
    ),
    Field(
        "op_time_bar",
        SHARE,
        column("op_fraction"),
        "the same as a bar; that of the largest is the longest",
        screen=ColumnSpec("", "", common.BAR_WIDTH, cells=_bars, is_left=True, fixed=True, keeps_style=True),
    ),
    Field(
        "cumulative_op_time_percent",
        SHARE_PERCENT,
        column("cumulative_fraction"),
        "self time of the line and of all before it, of the self time of all ops",
        _NO_TIME,
        "cumulative",
        ColumnSpec("cumulative", "cumul.", 6),
    ),
    Field(
        "self_time_percent",
        SHARE_PERCENT,
        column("self_fraction"),
        "self time, of the cores' whole time, idle time included",
        common.NO_TIME,
    ),
    common.work_field("flops", "flops", "FLOPs over all occurrences", common.NO_FLOPS),
    common.work_field("bytes_accessed", "bytes_accessed", "bytes read and written in all memories", common.NO_BYTES),
    common.work_field("hbm_bytes", "hbm", "bytes read from and written to HBM", common.NO_HBM_BYTES),
    *(replace(quantity, filter=()) for quantity in common.rate_fields("rates")),
    Field(
        "longest_op",
        TEXT,
        lambda page, rows: take(page.ops.table.name, page.main[rows].tolist()),
        "its op with most self time",
        heading="longest op",
        screen=ColumnSpec("longest", "longest op", 24),
    ),
    Field(
        "called_from",
        TEXT,
        column("caller"),
        "of a line in an installed package, the nearest call outside of these",
        "the line is in no installed package, or no call stack leads out of it",
        screen=ColumnSpec("called", "called from", 24, cut=cut_begin),
    ),
    Field("stack", TEXT, _stacks, "the calls that led to most of its time, outermost first", _NO_STACK),
    Field(
        "stack_count",
        COUNT,
        lambda page, rows: [len(page.stacks[row]) for row in rows],
        "distinct call stacks that lead to it",
    ),
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
