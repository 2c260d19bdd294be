"""The quantities of GPU kernels."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.ops.streams.attribution import kernel_name
from tpuprof.parsers.pages.ops.kernels import KernelsPage
from tpuprof.tui.draw.bars import CLASS_STYLE, small_bar
from tpuprof.tui.draw.spans import Glyphs, Span
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.pages.ops.fields.common import BAR_WIDTH
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Table, column, in_order
from tpuprof.tui.report.shared.quantities import RANK
from tpuprof.tui.report.units import BYTES, COUNT, FLAG, SHARE, SHARE_PERCENT, TEXT, TIME_PS, Unit

if TYPE_CHECKING:
    from tpuprof.tui.report.fields import Rows

_NO_LAUNCH = "the launch does not tell it"
_NO_OP = "nothing tells which framework op launched these kernels"

YES_NO = Unit(
    FLAG.name, FLAG.machine, lambda value, _: "n/a" if value is None else "yes" if value else "no", is_text=True
)


def _of(name: str) -> Callable[[KernelsPage, Rows], list[Any]]:
    read = attrgetter(name)
    return lambda page, rows: [read(page.kernels[row]) for row in rows]


def _short(name: str, _: bool) -> str:
    return kernel_name(name)


def _bars(page: KernelsPage, glyphs: Glyphs) -> Cells:
    """Bars of the share of time, the longest one the full width; coloured by whether the kernel uses tensor cores."""
    most = float(page.fraction[0]) if len(page) else 1.0

    def bar(row: int) -> Span:
        filled = small_bar(float(page.fraction[row]) / most if most > 0 else 0.0, BAR_WIDTH, glyphs)[0]
        return filled, CLASS_STYLE["compute" if page.kernels[row].uses_tensor_cores else "vector"]

    return each(bar)


def _averages(page: KernelsPage, rows: Rows) -> list[float]:
    return [page.kernels[row].total_ps / page.kernels[row].occurrences for row in rows]


_FIELDS: tuple[Field[KernelsPage], ...] = (
    Field("rank", RANK.unit, RANK.read, "the row's place by time"),
    Field(
        "name",
        TEXT,
        _of("name"),
        "its name, as the driver gives it; the screen leaves out namespaces, template arguments and parameters",
        heading="kernel",
        screen=ColumnSpec(
            "name", "kernel", 26, lambda _: "strong", lambda name, _: kernel_name(name), fixed=True, grows=True
        ),
        filter=("name",),
    ),
    Field(
        "self_time_percent",
        SHARE_PERCENT,
        column("fraction"),
        "total time, of the time of all kernels",
        "no kernel took any time",
        "share",
        ColumnSpec("self", "time", 6, fixed=True),
        attrgetter("total_ps"),
    ),
    Field(
        "time_bar",
        SHARE,
        column("fraction"),
        "total time as a bar; that of the first kernel is the longest",
        screen=ColumnSpec("", "", BAR_WIDTH, cells=_bars, is_left=True, fixed=True, keeps_style=True),
    ),
    Field("cumulative_percent", SHARE_PERCENT, column("cumulative"), "total time of the kernel and of all before it"),
    Field(
        "framework_op",
        TEXT,
        _of("framework_op"),
        "the framework op that launched it",
        _NO_OP,
        "framework op",
        ColumnSpec("framework_op", "framework op", 24),
        filter=("framework_op",),
    ),
    Field(
        "op",
        TEXT,
        _of("op"),
        "the op that it belongs to; the first met, where it is part of several",
        "these kernels belong to no op",
        screen=ColumnSpec("op", "op", 20),
        filter=("program",),
    ),
    Field(
        "occurrences",
        COUNT,
        _of("occurrences"),
        "launches, over all GPUs",
        "",
        "count",
        ColumnSpec("count", "count", 7),
    ),
    Field(
        "total_time_ps",
        TIME_PS,
        _of("total_ps"),
        "time over all launches",
        "",
        "total time",
        ColumnSpec("total", "total", 9),
    ),
    Field("self_time_ps", TIME_PS, column("total_ps"), "the same: nothing runs inside a kernel"),
    Field("average_time_ps", TIME_PS, _averages, "time by launch", "", "average", ColumnSpec("average", "average", 9)),
    Field("minimum_time_ps", TIME_PS, _of("minimum_ps"), "the shortest", "", "least", ColumnSpec("least", "least", 9)),
    Field("maximum_time_ps", TIME_PS, _of("maximum_ps"), "the longest", "", "most", ColumnSpec("most", "most", 9)),
    Field(
        "registers_per_thread",
        COUNT,
        _of("registers"),
        "registers that a thread uses",
        f"{_NO_LAUNCH}: AMD's profiler never does",
        "registers",
        ColumnSpec("registers", "regs", 5),
    ),
    Field(
        "shared_memory_bytes",
        BYTES,
        _of("shared_bytes"),
        "shared memory that a block uses, static and dynamic",
        _NO_LAUNCH,
        "shared memory",
        ColumnSpec("shared", "shared", 8),
    ),
    Field(
        "block",
        TEXT,
        _of("block"),
        "threads of a block, in three dimensions",
        _NO_LAUNCH,
        "block",
        ColumnSpec("block", "block", 10),
    ),
    Field(
        "grid",
        TEXT,
        _of("grid"),
        "blocks of the grid, in three dimensions",
        _NO_LAUNCH,
        "grid",
        ColumnSpec("grid", "grid", 12),
    ),
    Field(
        "occupancy_percent",
        SHARE_PERCENT,
        _of("occupancy"),
        "theoretical occupancy: the part of a multiprocessor's threads that the launch can fill",
        "the profiler gives no occupancy, or 0, which it writes where it can't compute one",
        "occupancy",
        ColumnSpec("occupancy", "occup.", 6),
    ),
    Field(
        "uses_tensor_cores",
        FLAG,
        _of("uses_tensor_cores"),
        "whether the kernel uses tensor cores (AMD: matrix cores), told by its name as XProf does",
        heading="tensor cores",
        screen=ColumnSpec("tensor", "tensor", 6),
    ),
    Field(
        "is_tensor_core_eligible",
        YES_NO,
        _of("is_eligible"),
        "whether tensor cores could do its framework op, told by the op's name as XProf does",
        _NO_OP,
        "could use them",
        ColumnSpec("could", "could", 5),
    ),
)

KERNELS: Table[KernelsPage] = Table(
    "kernels",
    _FIELDS,
    len,
    json=(
        _JSON := in_order(
            "name framework_op op occurrences total_time_ps average_time_ps minimum_time_ps maximum_time_ps",
            "self_time_percent cumulative_percent registers_per_thread shared_memory_bytes block grid",
            "occupancy_percent uses_tensor_cores is_tensor_core_eligible",
        )
    ),
    csv=("rank", *_JSON),
    markdown=in_order(
        "rank name framework_op self_time_percent total_time_ps occurrences average_time_ps minimum_time_ps",
        "maximum_time_ps registers_per_thread shared_memory_bytes block grid occupancy_percent uses_tensor_cores",
        "is_tensor_core_eligible",
    ),
    screen=in_order(
        "self_time_percent time_bar name total_time_ps occurrences average_time_ps uses_tensor_cores",
        "is_tensor_core_eligible occupancy_percent framework_op block grid registers_per_thread shared_memory_bytes",
        "minimum_time_ps maximum_time_ps op",
    ),
)

KERNEL_COUNT: Metric[KernelsPage] = Metric("kernel_count", COUNT, len, "kernels before any limit")
KERNEL_TIME: Metric[KernelsPage] = Metric(
    "kernel_time_ps",
    TIME_PS,
    lambda page: int(page.total_ps.sum()) if len(page) else None,
    "time of all kernels, over all GPUs",
    "no kernel ran on a GPU",
)
TENSOR_TIME: Metric[KernelsPage] = Metric(
    "tensor_core_time_percent",
    SHARE_PERCENT,
    lambda page: (
        sum(kernel.total_ps for kernel in page.kernels if kernel.uses_tensor_cores) / int(page.total_ps.sum())
        if int(page.total_ps.sum())
        else None
    ),
    "time of kernels that use tensor cores, of the time of all kernels",
    "no kernel took any time",
    "in kernels that use tensor cores",
)
