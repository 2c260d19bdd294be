"""The quantities of HLO ops, in their own table and in the one under the roofline."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.tui.draw.layout import clean, cut_middle
from tpuprof.tui.draw.spans import Glyphs, Span
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.pages.ops.fields.common import (
    CATEGORY_WIDTH,
    LEADING,
    MEMORIES,
    NAME_WIDTH,
    NO_BYTES,
    NO_CATEGORY,
    NO_EXPRESSION,
    NO_FLOPS,
    NO_FRAMEWORK_OP,
    NO_PROGRAM,
    NO_SHAPE,
    NO_SOURCE,
    PEOPLES_RATES,
    PROGRAM,
    SHARES,
    STALL,
    TIMES,
    WORK_RATES,
    Names,
    divide,
    name_fields,
    picked,
    rate_fields,
    short_program,
)
from tpuprof.tui.report.fields import Field, OnScreen, Table
from tpuprof.tui.report.units import FLAG, NUMBER, TEXT, WHOLE


def _op_names(page: OpsPage) -> Names:
    table = page.table
    return Names(
        table.name,
        page.op_class,
        table.occurrences,
        table.total_ps,
        table.self_ps,
        page.self_fraction,
        page.cumulative_fraction,
    )


def _program_cells(page: OpsPage, glyphs: Glyphs) -> Cells:
    def program(row: int) -> Span:
        return cut_middle(clean(short_program(page.program[row], glyphs), glyphs.name == "ascii"), 24, glyphs), "text"

    return each(program)


def _work(name: str, meaning: str, null: str) -> Field[OpsPage]:
    return Field(name, WHOLE, lambda page, rows: getattr(page.table, name)[rows], meaning, null)


HLO_FIELDS: tuple[Field[OpsPage], ...] = (
    *name_fields(_op_names, NAME_WIDTH),
    Field(
        "program",
        PROGRAM,
        lambda page, rows: picked(page.program, rows),
        "the HLO module that the op belongs to, with its program id",
        null=NO_PROGRAM,
        heading="program",
        screen=OnScreen("program", "program", 24, cells=_program_cells),
        filter=("program",),
    ),
    Field(
        "program_id",
        NUMBER,
        lambda page, rows: [number or None for number in page.table.program_id[rows].tolist()],
        "the id of that module",
        null=NO_PROGRAM,
    ),
    Field(
        "category",
        TEXT,
        lambda page, rows: picked(page.table.category, rows),
        "the HLO category, as the compiler gives it",
        null=NO_CATEGORY,
        heading="category",
        screen=OnScreen("category", "HLO category", CATEGORY_WIDTH),
        filter=("category",),
    ),
    Field(
        "framework_op",
        TEXT,
        lambda page, rows: picked(page.table.framework_op, rows),
        "the framework op that it stems from",
        null=NO_FRAMEWORK_OP,
        heading="framework op",
        screen=OnScreen("framework", "framework op", 40),
        filter=("framework_op",),
    ),
    Field(
        "dma_stall_percent",
        STALL,
        lambda page, rows: divide(100 * page.table.dma_stall_ps[rows], page.table.total_ps[rows]),
        "time that the op waited for DMA, of its total time",
        null="no event of these ops says how long it waited for DMA, or they took no time",
        screen=OnScreen("stall", "stall", 6),
    ),
    _work("flops", "FLOPs over all occurrences", NO_FLOPS),
    _work("model_flops", "FLOPs that the model asks for, over all occurrences", NO_FLOPS),
    _work("bytes_accessed", "bytes read and written in all memories, over all occurrences", NO_BYTES),
    _work("hbm_bytes", "bytes read from and written to HBM, over all occurrences", NO_BYTES),
    *rate_fields(lambda page: page.rates),
    Field(
        "remat",
        FLAG,
        lambda page, rows: [page.table.is_rematerialized(row) for row in rows],
        "whether the op is computed a second time to save memory, told by its names as XProf does",
        screen=OnScreen("remat", "remat", 5),
    ),
    Field(
        "source",
        TEXT,
        lambda page, rows: page.table.texts("source", np.asarray(rows)),
        "the source file and line that it stems from",
        null=NO_SOURCE,
        filter=("source",),
    ),
    Field(
        "shape",
        TEXT,
        lambda page, rows: page.table.texts("shape_with_layout", np.asarray(rows)),
        "the shape of its result, with its layout",
        null=NO_SHAPE,
    ),
    Field(
        "expression",
        TEXT,
        lambda page, rows: [page.table.expression(int(row)) for row in rows],
        "the op's HLO text",
        null=NO_EXPRESSION,
    ),
)

_OP = ("name", "program", "program_id", "category", "class", "framework_op")
_HLO_JSON = (
    *_OP,
    *TIMES,
    *SHARES,
    "dma_stall_percent",
    "flops",
    "model_flops",
    "bytes_accessed",
    "hbm_bytes",
    *WORK_RATES,
    "model_gflops_per_second",
    "gigabytes_per_second",
    *(f"bandwidth_gigabytes_per_second.{name}" for name in MEMORIES.values()),
    "source",
    "shape",
    "expression",
)

HLO_OPS: Table[OpsPage] = Table(
    "ops",
    HLO_FIELDS,
    len,
    json=_HLO_JSON,
    csv=("rank", *_HLO_JSON),
    markdown=(
        "rank",
        "name",
        "category",
        "class",
        "self_time_percent",
        "self_time_ps",
        "occurrences",
        "average_self_time_ps",
        *PEOPLES_RATES,
        "program",
        "framework_op",
    ),
    screen=(
        *LEADING,
        "flops_utilization",
        "hbm_bandwidth_utilization",
        "self_time_ps",
        "occurrences",
        "bound_by",
        "average_self_time_ps",
        "category",
        "bandwidth_gigabytes_per_second.hbm",
        "gflops_per_second",
        "operational_intensity",
        "roofline_efficiency",
        "cumulative_percent",
        "total_time_ps",
        "model_gflops_per_second",
        "gigabytes_per_second",
        "bandwidth_gigabytes_per_second.cmem_read",
        "bandwidth_gigabytes_per_second.cmem_write",
        "bandwidth_gigabytes_per_second.sram_read",
        "bandwidth_gigabytes_per_second.sram_write",
        "dma_stall_percent",
        "remat",
        "program",
        "framework_op",
    ),
)

_ROOFLINE_JSON = (
    *_OP,
    *TIMES,
    "self_time_percent",
    "flops",
    "bytes_accessed",
    "hbm_bytes",
    *WORK_RATES,
    "hbm_gigabytes_per_second",
)

ROOFLINE_OPS: Table[OpsPage] = Table(
    "ops",
    (
        Field("kind", TEXT, lambda _, rows: ["op"] * len(rows), "what a row is of: program, average step, step or op"),
        *HLO_FIELDS,
    ),
    len,
    json=_ROOFLINE_JSON,
    csv=("kind", *_ROOFLINE_JSON),
    markdown=("name", "category", "class", "self_time_percent", "self_time_ps", *PEOPLES_RATES),
    screen=(
        *LEADING,
        "operational_intensity",
        "gflops_per_second",
        "roofline_efficiency",
        "bound_by",
        "flops_utilization",
        "hbm_bandwidth_utilization",
        "self_time_ps",
        "hbm_gigabytes_per_second",
    ),
)
