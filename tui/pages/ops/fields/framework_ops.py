"""The quantities of framework ops."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage, FrameworkTypes, above_peak_of_ops, framework_types
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.tui.pages.ops.fields import common
from tpuprof.tui.pages.ops.fields.common import known_program, name_fields, rate_fields, shown_field
from tpuprof.tui.report.fields import ColumnSpec, Field, Rows, Table, in_order
from tpuprof.tui.report.units import COUNT, TEXT


@dataclass(frozen=True, slots=True)
class FrameworkOps(Sized):
    """The framework ops, and the HLO ops that they were made of, for the names of main ops."""

    page: FrameworkOpsPage
    ops: OpsPage


@dataclass(frozen=True, slots=True)
class TypesOfOps(FrameworkOps):
    """The types of framework ops: `page` has a row a type."""

    types: FrameworkTypes

    @classmethod
    def of(cls, page: FrameworkOpsPage, ops: OpsPage) -> TypesOfOps:
        types = framework_types(page, ops)
        return cls(types.page, ops, types)


def _sides(source: FrameworkOps, rows: Rows) -> list[str]:
    ran = "host" if source.ops.runs_on == "host thread" else "device"
    return ["host" if is_host else ran for is_host in source.page.is_host[rows].tolist()]


def _main_ops(source: FrameworkOps, rows: Rows) -> list[str | None]:
    return [None if row < 0 else source.ops.table.name[row] for row in source.page.main_op[rows].tolist()]


def _main_programs(source: FrameworkOps, rows: Rows) -> list[str | None]:
    return [None if row < 0 else known_program(source.ops.program[row]) for row in source.page.main_op[rows].tolist()]


def _above(source: FrameworkOps, rows: Rows) -> list[str | None]:
    return above_peak_of_ops(source.page, source.ops, np.asarray(rows))


_NO_HLO_OP = "host ops come from no HLO op"

_LOOKS: dict[str, ColumnSpec[Any]] = {
    "type": ColumnSpec("type", 18),
    "side": ColumnSpec("side", 6),
    "op_count": ColumnSpec("ops", 6),
}
_field = partial(shown_field, _LOOKS)

_TYPE_MEANING = "the op's type, as the framework names it"
_NO_TYPE = "the profile does not say the type of these ops"
_WHERE = "where it ran: on the device or on the host, where XLA ran ops on its CPU too"
_WHY = "why its utilization of the device's FLOPS, or of a memory's peak, is above 1, and the HLO op that this is of"
_NO_MODULE = f"{_NO_HLO_OP}, or the profile does not say which program it belongs to"

_SIDE = _field("side", TEXT, _sides, _WHERE, sort=attrgetter("page.is_host"))
_OWN: tuple[Field[FrameworkOps], ...] = (
    _field("type", TEXT, "page.type", _TYPE_MEANING, _NO_TYPE, "type", filter=("category",)),
    _SIDE,
    *rate_fields("page.rates", lambda source, row: source.page.op_class[row]),
    _field("above_peak_why", TEXT, _above, _WHY, "no utilization of these ops is above 1"),
    _field("main_op", TEXT, _main_ops, "the longest HLO op that comes from it", _NO_HLO_OP, "longest HLO op"),
    _field("main_op_program", TEXT, _main_programs, "the HLO module of that op", _NO_MODULE),
)

HOST_OP_COLUMNS = in_order(
    "name type class self_time_percent cumulative_percent self_time_ps total_time_ps occurrences"
)
"""What Markdown shows of framework ops on the host, for which no work is counted."""

FRAMEWORK_OPS: Table[FrameworkOps] = Table(
    "ops",
    (*name_fields("page.", "page.", 36, ("name", "framework_op")), *_OWN),
    len,
    json=in_order(
        "name type side class", common.TIMES, common.SHARES, common.WORK_RATES, "above_peak_why main_op main_op_program"
    ),
    markdown=(*HOST_OP_COLUMNS, *common.READABLE_RATES, "main_op"),
    screen=in_order(
        common.LEADING,
        "flops_utilization hbm_bandwidth_utilization self_time_ps occurrences side bound_by type gflops_per_second",
        "cumulative_percent total_time_ps average_time_ps average_self_time_ps",
    ),
    adds=common.SUMMED,
)

_OP_COUNT = _field("op_count", COUNT, "types.op_count", "how many framework ops of the type there are", heading="ops")
_FILTER = ("name", "framework_op", "category")
_NAME: Field[Any] = FRAMEWORK_OPS.by_key["name"]
_TYPE_NAME = replace(_NAME, key="type", meaning=_TYPE_MEANING, heading="type", filter=_FILTER)
_OF_ONE_OP = ("name", "type", "side", "above_peak_why")
_OF_TYPES_TOO = [quantity for quantity in FRAMEWORK_OPS.fields if quantity.key not in _OF_ONE_OP]
_OF_TYPES = in_order("side class op_count", common.TIMES, common.SHARES, common.WORK_RATES)

FRAMEWORK_TYPES: Table[Any] = Table(
    "types",
    (_TYPE_NAME, _OP_COUNT, replace(_SIDE, heading="side"), *_OF_TYPES_TOO),
    len,
    json=("type", *_OF_TYPES),
    markdown=in_order("type side op_count self_time_percent self_time_ps occurrences", common.READABLE_RATES),
    screen=in_order(
        "class self_time_percent self_time_bar type op_count flops_utilization hbm_bandwidth_utilization self_time_ps",
        "occurrences side bound_by gflops_per_second cumulative_percent total_time_ps",
    ),
)
"""Types of framework ops; each stands for the framework ops that have it on one side."""
