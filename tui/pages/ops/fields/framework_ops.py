"""The quantities of framework ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.tui.pages.ops.fields.common import (
    LEADING,
    PEOPLES_RATES,
    SCOPE_WIDTH,
    SHARES,
    TIMES,
    WORK_RATES,
    Names,
    known_program,
    name_fields,
    picked,
    rate_fields,
)
from tpuprof.tui.report.fields import Field, OnScreen, Table
from tpuprof.tui.report.units import (
    TEXT,
)

if TYPE_CHECKING:
    from tpuprof.tui.report.fields import Rows


@dataclass(frozen=True, slots=True)
class FrameworkOps:
    """The framework ops, and the HLO ops that they were made of, for the names of main ops."""

    page: FrameworkOpsPage
    ops: OpsPage

    def __len__(self) -> int:
        return len(self.page)

    def main_ops(self, rows: Rows, names: Sequence[str]) -> list[str | None]:
        """For some rows the name of their longest HLO op, or of its program; None for host ops."""
        main = self.page.main_op[rows].tolist()
        return [None if row < 0 else names[row] for row in main]


def _framework_names(source: FrameworkOps) -> Names:
    page = source.page
    return Names(
        page.name,
        page.op_class,
        page.occurrences,
        page.total_ps,
        page.self_ps,
        page.self_fraction,
        page.cumulative_fraction,
    )


_FRAMEWORK_JSON = (
    "name",
    "type",
    "side",
    "class",
    *TIMES,
    *SHARES,
    *WORK_RATES,
    "main_op",
    "main_op_program",
)

HOST_OP_COLUMNS = (
    "name",
    "type",
    "class",
    "self_time_percent",
    "cumulative_percent",
    "self_time_ps",
    "total_time_ps",
    "occurrences",
)
"""What Markdown shows of framework ops on the host, for which no work is counted."""

FRAMEWORK_OPS: Table[FrameworkOps] = Table(
    "ops",
    (
        *name_fields(_framework_names, SCOPE_WIDTH, ("name", "framework_op")),
        Field(
            "type",
            TEXT,
            lambda source, rows: picked(source.page.type, rows),
            "the op's type, as the framework names it",
            null="the profile does not tell the type of these ops",
            heading="type",
            screen=OnScreen("type", "type", 18),
            filter=("category",),
        ),
        Field(
            "side",
            TEXT,
            lambda source, rows: ["host" if is_host else "device" for is_host in source.page.is_host[rows].tolist()],
            "where it ran: on the device or on the host",
            screen=OnScreen("side", "side", 6),
            sort=lambda source: source.page.is_host,
        ),
        *rate_fields(lambda source: source.page.rates),
        Field(
            "main_op",
            TEXT,
            lambda source, rows: source.main_ops(rows, source.ops.table.name),
            "the longest HLO op that stems from it",
            null="host ops stem from no HLO op",
            heading="longest HLO op",
        ),
        Field(
            "main_op_program",
            TEXT,
            lambda source, rows: [
                None if program is None else known_program(program)
                for program in source.main_ops(rows, source.ops.program)
            ],
            "the HLO module of that op",
            null="host ops stem from no HLO op, or the profile does not say which program it belongs to",
        ),
    ),
    len,
    json=_FRAMEWORK_JSON,
    markdown=(*HOST_OP_COLUMNS, *PEOPLES_RATES, "main_op"),
    screen=(
        *LEADING,
        "flops_utilization",
        "hbm_bandwidth_utilization",
        "self_time_ps",
        "occurrences",
        "side",
        "bound_by",
        "type",
        "gflops_per_second",
        "cumulative_percent",
        "total_time_ps",
    ),
)
