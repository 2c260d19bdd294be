"""The quantities of HLO ops, in their own table and under the roofline, and of the program and its steps there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.words import NO_CATEGORY, NO_FRAMEWORK_OP
from tpuprof.parsers.ops.roofline import above_peak
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.tui.draw.format import share
from tpuprof.tui.draw.pen import cut_middle
from tpuprof.tui.draw.spans import Glyphs, Span
from tpuprof.tui.draw.table import by_row
from tpuprof.tui.pages.ops.fields import common
from tpuprof.tui.pages.ops.fields.common import LEADING, READABLE_RATES, SHARES, TIMES, WORK_RATES, known_program
from tpuprof.tui.report.fields import ColumnSpec, Field, Reader, Rows, Table, column, in_order, of_each_row
from tpuprof.tui.report.units import COUNT, FLAG, JOULES, MAYBE, NUMBER, TEXT, TIME_PS, WHOLE, Unit, plain

if TYPE_CHECKING:
    from tpuprof.parsers.base.intervals import Floats, Int64s
    from tpuprof.parsers.pages.ops.roofline import RooflinePoints


def _program_cell(page: OpsPage, glyphs: Glyphs, row: int) -> Span:
    return cut_middle(common.short_program(page.program[row], glyphs), 24, glyphs), "text"


def text_of(stat: str) -> Reader[OpsPage]:
    """Reads a text of the ops' event metadata."""
    return lambda page, rows: page.table.texts(stat, np.asarray(rows))


def _core_types(page: OpsPage, rows: Rows) -> list[str | None]:
    own = TENSOR_CORE if page.core_count and page.runs_on == "core" else None
    return [SPARSE_CORE if page.table.parent[row] else own for row in rows]


def _sides(page: OpsPage, rows: Rows) -> list[str]:
    """Where each op ran, in the words of the filter ``side:``."""
    if page.runs_on == "host thread":
        return ["host"] * len(rows)
    return [f"device {core or ''}".rstrip() for core in _core_types(page, rows)]


def _ranks(page: OpsPage, rows: Rows) -> list[int | None]:
    return [None if page.table.parent[row] else int(row) + 1 for row in rows]


def _above_peak(page: OpsPage, rows: Rows) -> list[str | None]:
    return above_peak(page.table, page.rates, rows)


expressions = of_each_row("table.expression")  # the HLO texts of ops, unescaped

TENSOR_CORE, SPARSE_CORE = "TensorCore", "SparseCore"

_LOOKS: dict[str, ColumnSpec[OpsPage]] = {
    "program": ColumnSpec("program", 24, cells=by_row(_program_cell)),
    "category": ColumnSpec("HLO category", 20),
    "framework_op": ColumnSpec("framework op", 40),
    "dma_stall_percent": ColumnSpec("stall", 6),
    "remat": ColumnSpec("remat", 5),
    "outside_compilation": ColumnSpec("outside", 7),
    "autotuned": ColumnSpec("autotuned", 9),
    "core_type": ColumnSpec("core", 10),
    "parent_op": ColumnSpec("parent op", 16),
    "energy_joules": ColumnSpec("energy", 8),
}
_field = partial(common.shown_field, _LOOKS)


def _name(key: str, stored: str, meaning: str, null: str, unit: Unit = TEXT) -> Field[OpsPage]:
    return _field(key, unit, stored, meaning, null, key.replace("_", " "), filter=(key,))


def _work(key: str, meaning: str, null: str) -> Field[OpsPage]:
    return _field(key, WHOLE, f"table.{key}", meaning, null)


def _own_times(page: OpsPage) -> Floats:
    """float64[n]: self time, unknown where it is none of the cores' time: what SparseCores ran comes last."""
    own: Floats = page.table.self_ps.astype(np.float64)
    return np.where([bool(parent) for parent in page.table.parent], np.nan, own) if any(page.table.parent) else own


_RANKED, *_NAMED = common.name_fields("table.", "", 26)
_PROGRAM = "the HLO module that the op belongs to, with its program id"
_NO_SHARE = f"{common.NO_TIME}, or a SparseCore ran these ops beside the cores"
_OF_SHARES: dict[str, dict[str, Any]] = {key: {"null": _NO_SHARE} for key in SHARES}
_OF_SHARES["self_time_percent"]["sort"] = _own_times
PROGRAM = Unit("text", lambda values: list(map(known_program, values)), lambda value, _: value, is_text=True)
"""Names of programs; null for machines where a program is not known."""

_PERCENT = Unit("percent", plain, lambda value, _: share(value / 100))
_STALLS = common.ratio("table.dma_stall_ps", "table.total_ps", 100)
_NO_STALL = "no event of these ops says how long it waited for DMA, or they took no time"
_WHY = "why its utilization of the device's FLOPS, or of a memory's peak, is above 1"
_REMAT = "whether the op is computed a second time to save memory, recognised by its names as in XProf"
_OUTSIDE = "whether the op hands work to the host in the middle of a program, recognised by its names as in XProf"
_AUTOTUNED = "whether the compiler autotuned its parameters"
_NEVER_TOLD = "no profile has it: XProf has the column and never fills it"
_CORE = "the core that ran it: TensorCore, or a SparseCore beside it"
_PARENT, _NO_PARENT = "the TensorCore's op that a SparseCore ran it for", "the ops of a TensorCore run for themselves"
_ENERGY = "energy at the core's supply (VDD) while it ran, over all occurrences"
_CLONES = "how many ops the row sums: clones, which differ only by numbers in name and framework op"
_SHAPE = "the shape of its result, with its layout"
_DUPLICATE = "the op that it is a copy of, according to the compiler: ops that share this name run the same code"

HLO_FIELDS: tuple[Field[OpsPage], ...] = (
    replace(_RANKED, read=_ranks, null="an op of a SparseCore has no rank among the ops of the cores"),
    *(replace(quantity, **_OF_SHARES.get(quantity.key, {})) for quantity in _NAMED),
    _name("program", "program", _PROGRAM, common.NO_PROGRAM, PROGRAM),
    _field("program_id", NUMBER, common.not_zero("table.program_id"), "the id of that module", common.NO_PROGRAM),
    _name("category", "table.category", "the HLO category, as the compiler gives it", NO_CATEGORY),
    _name("framework_op", "table.framework_op", "the framework op that it comes from", NO_FRAMEWORK_OP),
    _field("dma_stall_percent", _PERCENT, _STALLS, "time that the op waited for DMA, of its total time", _NO_STALL),
    _work("flops", "FLOPs over all occurrences", common.NO_FLOPS),
    _work("model_flops", "model FLOPs, over all occurrences", common.NO_FLOPS),
    _work("bytes_accessed", "bytes read and written in all memories, over all occurrences", common.NO_BYTES),
    _work("hbm_bytes", "bytes read from and written to HBM, over all occurrences", common.NO_HBM_BYTES),
    *common.rate_fields("rates", lambda page, row: page.op_class[row]),
    _field("above_peak_why", TEXT, _above_peak, _WHY, "no utilization of these ops is above 1"),
    _field("remat", FLAG, of_each_row("table.is_rematerialized"), _REMAT, filter=("remat",)),
    _field("outside_compilation", FLAG, of_each_row("table.is_outside_compilation"), _OUTSIDE),
    _field("autotuned", MAYBE, lambda _, rows: [None] * len(rows), _AUTOTUNED, _NEVER_TOLD),
    _field("core_type", TEXT, _core_types, _CORE, "only TPUs have cores of several types"),
    _field("side", TEXT, _sides, "where it ran, for the filter", filter=("side",)),
    _field("parent_op", TEXT, "table.parent", _PARENT, _NO_PARENT),
    _field("energy_joules", JOULES, "table.energy_j", _ENERGY, "no event of these ops has an energy (vdd_energy_j)"),
    _field("source", TEXT, text_of("source"), "its source file and line", common.NO_SOURCE, filter=("source",)),
    _field("deduplicated_name", TEXT, text_of("deduplicated_name"), _DUPLICATE, common.NO_DUPLICATE),
    _field("shape", TEXT, text_of("shape_with_layout"), _SHAPE, common.NO_SHAPE, filter=("shape",)),
    _field("expression", TEXT, expressions, "the op's HLO text", common.NO_EXPRESSION, filter=("expression",)),
)

_OP = "name program program_id category class framework_op"
_HLO_JSON = in_order(
    _OP,
    TIMES,
    SHARES,
    "dma_stall_percent flops model_flops bytes_accessed hbm_bytes",
    WORK_RATES,
    "above_peak_why model_gflops_per_second gigabytes_per_second",
    [f"bandwidth_gigabytes_per_second.{name}" for name in common.MEMORIES.values()],
    "core_type parent_op remat outside_compilation autotuned energy_joules",
    "source shape deduplicated_name expression",
)

_COLUMNS: tuple[str, ...] = (
    *("flops_utilization", "hbm_bandwidth_utilization", "self_time_ps", "occurrences", "bound_by"),
    *("average_self_time_ps", "category", "bandwidth_gigabytes_per_second.hbm", "gflops_per_second"),
    *("operational_intensity", "roofline_efficiency", "cumulative_percent", "total_time_ps", "average_time_ps"),
    *("model_gflops_per_second", "gigabytes_per_second", "bandwidth_gigabytes_per_second.cmem_read"),
    *("bandwidth_gigabytes_per_second.cmem_write", "bandwidth_gigabytes_per_second.sram_read"),
    *("bandwidth_gigabytes_per_second.sram_write", "dma_stall_percent", "remat", "program", "framework_op"),
    *("core_type", "parent_op", "outside_compilation", "autotuned", "energy_joules"),
)
"""Fields that the screen shows beside the first ones, in their order."""

HLO_OPS: Table[OpsPage] = Table(
    "ops",
    HLO_FIELDS,
    len,
    json=_HLO_JSON,
    csv=("rank", *_HLO_JSON),
    markdown=in_order(
        "rank name category class self_time_percent self_time_ps occurrences average_self_time_ps",
        READABLE_RATES,
        "program framework_op",
    ),
    screen=(*LEADING, *_COLUMNS),
    adds=common.SUMMED,
)


OPS_OF_SEVERAL_KINDS = replace(HLO_OPS, screen=(*LEADING, *dict.fromkeys(("core_type", *_COLUMNS))))
"""The same where SparseCores ran some of the ops: which kind of core ran each comes first."""


def grouped_ops(op_count: Int64s) -> Table[OpsPage]:
    """The table of a page whose rows are groups of ops, on the screen.

    Args:
        op_count: int64[n]; how many ops each row adds up.
    """
    look: ColumnSpec[OpsPage] = ColumnSpec("ops", 5)
    number = Field("ops", COUNT, lambda _, rows: op_count[np.asarray(rows)], _CLONES, "", "", look, lambda _: op_count)
    return Table("ops", (number, *HLO_FIELDS), len, (), screen=(*LEADING, "ops", *_COLUMNS))


def clone_rows(op_count: Int64s) -> Table[OpsPage]:
    """The same in reports; `op_count` as of `grouped_ops`."""
    readable = tuple(key for key in HLO_OPS.markdown if key != "rank")
    return replace(grouped_ops(op_count), json=(*_HLO_JSON, "ops"), markdown=(*readable, "ops"))


_ROOFLINE_WORK = ("flops bytes_accessed hbm_bytes", WORK_RATES, "hbm_gigabytes_per_second")
_ROOFLINE_JSON = in_order(_OP, TIMES, "self_time_percent", *_ROOFLINE_WORK, "above_peak_why")
_KIND: Field[OpsPage] = Field(
    "kind", TEXT, lambda _, rows: ["op"] * len(rows), "the subject of a row: program, average step, step or op"
)

ROOFLINE_OPS: Table[OpsPage] = Table(
    "ops",
    (_KIND, *HLO_FIELDS),
    len,
    json=_ROOFLINE_JSON,
    csv=("kind", *_ROOFLINE_JSON),
    markdown=in_order("name category class self_time_percent self_time_ps", READABLE_RATES),
    screen=in_order(
        LEADING,
        "operational_intensity gflops_per_second roofline_efficiency bound_by",
        "flops_utilization hbm_bandwidth_utilization self_time_ps hbm_gigabytes_per_second",
    ),
)

_WHOLE_TIME = "time over all cores"
_BYTES, _HBM = "bytes that its ops read and write in all memories", "bytes that its ops read from and write to HBM"

ROOFLINE_POINTS: Table[RooflinePoints] = Table(
    "steps",
    (
        Field("name", TEXT, column("name"), "the program, or the step's name"),
        Field("total_time_ps", TIME_PS, common.not_zero("total_ps"), _WHOLE_TIME, common.NO_TIME, _WHOLE_TIME),
        common.work_field("flops", "flops", "FLOPs of all its ops", common.NO_FLOPS),
        common.work_field("bytes_accessed", "bytes_accessed", _BYTES, common.NO_BYTES),
        common.work_field("hbm_bytes", "hbm", _HBM, common.NO_HBM_BYTES),
        *common.rate_fields("rates"),
    ),
    len,
    json=in_order("name total_time_ps", *_ROOFLINE_WORK),
    markdown=in_order("name total_time_ps", READABLE_RATES),
    places=("program", "average_step", "steps[]"),
)
