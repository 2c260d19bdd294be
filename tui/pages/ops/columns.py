"""The columns of the op tables: HLO ops, framework ops and the ops under the roofline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tpuprof.tui.draw.bars import CLASS_STYLE, small_bar
from tpuprof.tui.draw.format import UNKNOWN, byte_rate, count, duration, flop_rate, intensity, share
from tpuprof.tui.draw.layout import clean, cut_middle
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Span, StyleKey
from tpuprof.tui.draw.table import Column, each

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tpuprof.parsers.base.op_class import OpClass
    from tpuprof.parsers.ops.roofline import Rates
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.ops.ops import OpsPage

NAME_WIDTH = 26
SCOPE_WIDTH = 36
"""For names of framework ops, whose ends tell them apart."""

CATEGORY_WIDTH = 20
BAR_WIDTH = 6

_HBM, _ON_CHIP_READ, _ON_CHIP_WRITE, _CMEM_READ, _CMEM_WRITE = range(5)


IMPLAUSIBLE = 1.05
"""Utilization from which on an op's work can't have been done in its time: it runs asynchronously."""


def used(utilization: float) -> str:
    """A utilization; of an asynchronous op, whose work and time do not belong together, no more than that it is."""
    return ">100%" if utilization > IMPLAUSIBLE else share(utilization)


def flops_style(utilization: float) -> StyleKey:
    """Green from half of the peak on, red below a fifth: XProf's meaning (a busy matrix unit is good)."""
    if not math.isfinite(utilization) or utilization > IMPLAUSIBLE:
        return "dim"
    return "good" if utilization >= 0.5 else "bad" if utilization < 0.2 else "warn"


def bandwidth_style(utilization: float) -> StyleKey:
    """Red from two thirds of the peak on, green below a third: XProf's meaning (busy memory holds an op up)."""
    if not math.isfinite(utilization) or utilization > IMPLAUSIBLE:
        return "dim"
    return "bad" if utilization >= 2 / 3 else "good" if utilization < 1 / 3 else "warn"


def hlo_op_columns(page: OpsPage, glyphs: Glyphs) -> list[Column]:
    """Every column of the table of HLO ops, the most important first."""
    ascii_only = glyphs.name == "ascii"
    table, rates = page.table, page.rates
    most = float(page.self_fraction[0]) if len(page) else 1.0

    def time(values: NDArray[np.int64]) -> Callable[[int], Span]:
        return lambda row: (duration(int(values[row]), ascii_only), "text")

    def average(row: int) -> Span:
        return duration(int(table.self_ps[row]) / max(1, int(table.occurrences[row])), ascii_only), "text"

    def words(values: Sequence[str | None], width: int) -> Callable[[int], Span]:
        return lambda row: (cut_middle(clean(values[row] or UNKNOWN, ascii_only), width, glyphs), "text")

    def program(row: int) -> Span:
        return cut_middle(clean(short_program(page.program[row], glyphs), ascii_only), 24, glyphs), "text"

    return [
        *_leading(page.op_class, page.self_fraction, most, glyphs),
        _name_column(table.name, glyphs),
        *_rate_columns(rates),
        Column("self", "self time", 9, each(time(table.self_ps))),
        Column("count", "count", 8, each(lambda row: (count(int(table.occurrences[row])), "text"))),
        Column("bound", "bound by", 10, each(lambda row: _bound(rates, row)), right=False),
        Column("average", "average", 9, each(average)),
        Column("category", "HLO category", CATEGORY_WIDTH, each(words(table.category, CATEGORY_WIDTH)), right=False),
        Column("hbm_rate", "HBM B/s", 7, each(lambda row: (byte_rate(float(rates.bandwidth[row, _HBM])), "text"))),
        Column(
            "flops_rate", "FLOP/s", 7, each(lambda row: (flop_rate(float(rates.flops_per_second[row]) / 1e9), "text"))
        ),
        Column(
            "intensity", "FLOP/B", 7, each(lambda row: (intensity(float(rates.operational_intensity[row])), "text"))
        ),
        Column("roof", "of roof", 7, each(lambda row: (used(float(rates.efficiency[row])), "text"))),
        Column("cumulative", "cumul.", 6, each(lambda row: (share(float(page.cumulative_fraction[row])), "text"))),
        Column("total", "total time", 10, each(time(table.total_ps))),
        Column("model_rate", "model/s", 7, each(lambda row: (_giga(rates.model_flops_per_second[row]), "text"))),
        Column("all_rate", "bytes/s", 7, each(lambda row: (byte_rate(float(rates.bytes_per_second[row])), "text"))),
        Column(
            "cmem_read", "CMEM rd", 7, each(lambda row: (byte_rate(float(rates.bandwidth[row, _CMEM_READ])), "text"))
        ),
        Column(
            "cmem_write", "CMEM wr", 7, each(lambda row: (byte_rate(float(rates.bandwidth[row, _CMEM_WRITE])), "text"))
        ),
        Column(
            "chip_read", "chip rd", 7, each(lambda row: (byte_rate(float(rates.bandwidth[row, _ON_CHIP_READ])), "text"))
        ),
        Column(
            "chip_write",
            "chip wr",
            7,
            each(lambda row: (byte_rate(float(rates.bandwidth[row, _ON_CHIP_WRITE])), "text")),
        ),
        Column("stall", "stall", 6, each(lambda row: _stall(page, row))),
        Column(
            "remat",
            "remat",
            5,
            each(lambda row: ("yes" if is_rematerialized(page, row) else "no", "text")),
            right=False,
        ),
        Column("program", "program", 24, each(program), right=False),
        Column("framework", "framework op", 40, each(words(table.framework_op, 40)), right=False),
    ]


def short_program(name: str, glyphs: Glyphs) -> str:
    """A program's name with the last digits of its id alone: ``jit_step(…9734)``."""
    module, bracket, number = name.rpartition("(")
    if not bracket or len(number) <= 9 or not number[:-1].isdigit():
        return name
    return f"{module}({glyphs.ellipsis}{number[-5:]}"


def is_rematerialized(page: OpsPage, row: int) -> bool:
    """Whether the compiler or JAX computes the op a second time to save memory, told by its names as XProf does."""
    return ".remat" in page.table.name[row] or "rematted_computation" in page.table.framework_op[row]


def framework_op_columns(page: FrameworkOpsPage, glyphs: Glyphs) -> list[Column]:
    """Every column of the table of framework ops, the most important first."""
    ascii_only = glyphs.name == "ascii"
    rates = page.rates
    most = max((float(value) for value in page.self_fraction[:1]), default=1.0)

    def words(values: tuple[str, ...], width: int) -> Callable[[int], Span]:
        return lambda row: (cut_middle(clean(values[row] or UNKNOWN, ascii_only), width, glyphs), "text")

    return [
        *_leading(page.op_class, page.self_fraction, most, glyphs),
        _name_column(page.name, glyphs, SCOPE_WIDTH),
        *_rate_columns(rates),
        Column("self", "self time", 9, each(lambda row: (duration(int(page.self_ps[row]), ascii_only), "text"))),
        Column("count", "count", 8, each(lambda row: (count(int(page.occurrences[row])), "text"))),
        Column("side", "side", 6, each(lambda row: ("host" if page.is_host[row] else "device", "text")), right=False),
        Column("bound", "bound by", 10, each(lambda row: _bound(rates, row)), right=False),
        Column("type", "type", 18, each(words(page.type, 18)), right=False),
        Column("flops_rate", "FLOP/s", 7, each(lambda row: (_giga(rates.flops_per_second[row]), "text"))),
        Column("cumulative", "cumul.", 6, each(lambda row: (share(float(page.cumulative_fraction[row])), "text"))),
        Column("total", "total time", 10, each(lambda row: (duration(int(page.total_ps[row]), ascii_only), "text"))),
    ]


def roofline_columns(page: OpsPage, glyphs: Glyphs) -> list[Column]:
    """The columns of the table below the roofline plot."""
    ascii_only = glyphs.name == "ascii"
    rates, table = page.rates, page.table
    most = float(page.self_fraction[0]) if len(page) else 1.0
    return [
        *_leading(page.op_class, page.self_fraction, most, glyphs),
        _name_column(table.name, glyphs),
        Column(
            "intensity", "FLOP/B", 7, each(lambda row: (intensity(float(rates.operational_intensity[row])), "text"))
        ),
        Column("flops_rate", "FLOP/s", 7, each(lambda row: (_giga(rates.flops_per_second[row]), "text"))),
        Column("roof", "of roof", 7, each(lambda row: (used(float(rates.efficiency[row])), "text"))),
        Column("bound", "bound by", 10, each(lambda row: _bound(rates, row)), right=False),
        *_rate_columns(rates),
        Column("self", "self time", 9, each(lambda row: (duration(int(table.self_ps[row]), ascii_only), "text"))),
        Column("hbm_rate", "HBM B/s", 7, each(lambda row: (byte_rate(float(rates.bandwidth[row, _HBM])), "text"))),
    ]


def _leading(classes: Sequence[OpClass], fraction: NDArray[np.float64], most: float, glyphs: Glyphs) -> list[Column]:
    """The class's letter, the share of time, and a bar of it."""

    def letter(row: int) -> Span:
        return CLASS_LETTER[classes[row]], CLASS_STYLE[classes[row]]

    def bar(row: int) -> Span:
        part = float(fraction[row])
        filled = small_bar(part / most if most > 0 else 0.0, BAR_WIDTH, glyphs)[0] if math.isfinite(part) else ""
        return filled, CLASS_STYLE[classes[row]]

    return [
        Column("", "", 1, each(letter), fixed=True, keeps_style=True),
        Column("self", "time", 6, each(lambda row: (share(float(fraction[row])), "text")), fixed=True),
        Column("", "", BAR_WIDTH, each(bar), right=False, fixed=True, keeps_style=True),
    ]


def _name_column(names: tuple[str, ...], glyphs: Glyphs, width: int = NAME_WIDTH) -> Column:
    ascii_only = glyphs.name == "ascii"

    def name(row: int) -> Span:
        return clean(names[row], ascii_only), "strong"

    return Column("name", "op", width, each(name), right=False, fixed=True, grows=True)


def _rate_columns(rates: Rates) -> list[Column]:
    def flops(row: int) -> Span:
        value = float(rates.flops_utilization[row])
        return used(value), flops_style(value)

    def hbm(row: int) -> Span:
        value = float(rates.bandwidth_utilization[row, _HBM])
        return used(value), bandwidth_style(value)

    return [Column("flops", "FLOPS", 6, each(flops)), Column("hbm", "HBM", 6, each(hbm))]


def _bound(rates: Rates, row: int) -> Span:
    name = rates.bound_name(row)
    if float(rates.efficiency[row]) > IMPLAUSIBLE:
        return "async", "dim"
    return name, "dim" if name == "unknown" else "text"


def _giga(value: float) -> str:
    return flop_rate(float(value) / 1e9)


def _stall(page: OpsPage, row: int) -> Span:
    total = int(page.table.total_ps[row])
    return share(float(page.table.dma_stall_ps[row]) / total if total else None), "text"
