"""The quantities of GPU kernels."""

from __future__ import annotations

from functools import partial
from operator import attrgetter

from tpuprof.parsers.ops.streams.attribution import kernel_name
from tpuprof.parsers.pages.ops.kernels.gpu import KernelsPage
from tpuprof.tui.pages.ops.fields.common import bars, shown_field
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Table, in_order, of_each
from tpuprof.tui.report.shared.quantities import RANK
from tpuprof.tui.report.units import BYTES, COUNT, FLAG, MAYBE, SHARE, SHARE_PERCENT, TEXT, TIME_PS, Unit

_NO_LAUNCH = "launches differ (--by shape), or the launch event does not say it"
_NO_OP = "several framework ops launched these kernels, or the profile does not say which"

_LOOKS: dict[str, ColumnSpec[KernelsPage]] = {
    "name": ColumnSpec("kernel", 26, lambda _: "strong", lambda name, _: kernel_name(name), fixed=True, grows=True),
    "self_time_percent": ColumnSpec("time", 6, fixed=True),
    "time_bar": bars("fraction", lambda page, row: "compute" if page.kernels[row].uses_tensor_cores else "vector"),
    "framework_op": ColumnSpec("framework op", 24),
    "op": ColumnSpec("op", 20),
    "occurrences": ColumnSpec("count", 7),
    "total_time_ps": ColumnSpec("total", 9),
    "average_time_ps": ColumnSpec("average", 9),
    "minimum_time_ps": ColumnSpec("least", 9),
    "maximum_time_ps": ColumnSpec("most", 9),
    "registers_per_thread": ColumnSpec("regs", 5),
    "shared_memory_bytes": ColumnSpec("shared", 8),
    "block": ColumnSpec("block", 10),
    "grid": ColumnSpec("grid", 12),
    "occupancy_percent": ColumnSpec("occup.", 6),
    "uses_tensor_cores": ColumnSpec("tensor", 6),
    "is_tensor_core_eligible": ColumnSpec("could", 5),
}
"""Bars are coloured by whether the kernel uses tensor cores."""

_field = partial(shown_field, _LOOKS)


def _of(
    key: str, unit: Unit, meaning: str, heading: str = "", null: str = "", name: str = "", filter: tuple[str, ...] = ()
) -> Field[KernelsPage]:
    """What an attribute of each kernel says, with the name of its key or another one."""
    return _field(key, unit, of_each(name or key, "kernels"), meaning, null, heading, filter=filter)


_AVERAGES = of_each(lambda kernel: kernel.total_ps / kernel.occurrences, "kernels")
_NAME = "its name, as the driver gives it; the screen leaves out namespaces, template arguments and parameters"
_OCCUPANCY = "theoretical occupancy: the part of a multiprocessor's threads that the launch can fill"
_NO_OCCUPANCY = "the profiler gives no occupancy, or 0, which it writes where it can't compute one"
_USES = "whether the kernel uses tensor cores (AMD: matrix cores), recognised by its name as in XProf"
_ELIGIBLE = "whether its framework op could use tensor cores, recognised by the op's name as in XProf"
_OP, _NO_PART = "the op that it belongs to; the first one, if it is part of several", "these kernels belong to no op"
_SHARE, _NO_KERNEL = "total time, of the time of all kernels", "no kernel took any time"
_REGISTERS = f"{_NO_LAUNCH}: AMD's profiler never does"
_SHARED = "shared memory that a block uses, static and dynamic"

_FIELDS: tuple[Field[KernelsPage], ...] = (
    _field("rank", RANK.unit, RANK.read, "the row's place by time"),
    _of("name", TEXT, _NAME, "kernel", filter=("name",)),
    _field("self_time_percent", SHARE_PERCENT, "fraction", _SHARE, _NO_KERNEL, "share", attrgetter("total_ps")),
    _field("time_bar", SHARE, "fraction", "total time as a bar; that of the first kernel is the longest"),
    _field("cumulative_percent", SHARE_PERCENT, "cumulative", "total time of the kernel and of all before it"),
    _of("framework_op", TEXT, "the framework op that launched it", "framework op", _NO_OP, filter=("framework_op",)),
    _of("op", TEXT, _OP, "", _NO_PART, filter=("program",)),
    _of("occurrences", COUNT, "launches, over all GPUs", "count"),
    _of("total_time_ps", TIME_PS, "time over all launches", "total time", name="total_ps"),
    _field("self_time_ps", TIME_PS, "total_ps", "the same: nothing runs inside a kernel"),
    _field("average_time_ps", TIME_PS, _AVERAGES, "time by launch", "", "average"),
    _of("minimum_time_ps", TIME_PS, "the shortest", "least", name="minimum_ps"),
    _of("maximum_time_ps", TIME_PS, "the longest", "most", name="maximum_ps"),
    _of("registers_per_thread", COUNT, "registers that a thread uses", "registers", _REGISTERS, "registers"),
    _of("shared_memory_bytes", BYTES, _SHARED, "shared memory", _NO_LAUNCH, "shared_bytes"),
    _of("block", TEXT, "threads of a block, in three dimensions", "block", _NO_LAUNCH),
    _of("grid", TEXT, "blocks of the grid, in three dimensions", "grid", _NO_LAUNCH),
    _of("occupancy_percent", SHARE_PERCENT, _OCCUPANCY, "occupancy", _NO_OCCUPANCY, "occupancy"),
    _of("uses_tensor_cores", FLAG, _USES, "tensor cores"),
    _of("is_tensor_core_eligible", MAYBE, _ELIGIBLE, "could use them", _NO_OP, "is_eligible"),
)

_JSON = in_order(
    "name framework_op op occurrences total_time_ps average_time_ps minimum_time_ps maximum_time_ps self_time_percent",
    "cumulative_percent registers_per_thread shared_memory_bytes block grid occupancy_percent uses_tensor_cores",
    "is_tensor_core_eligible",
)

KERNELS: Table[KernelsPage] = Table(
    "kernels",
    _FIELDS,
    len,
    json=_JSON,
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

KERNEL_COUNT: Metric[KernelsPage] = Metric("kernel_count", COUNT, len, "on GPUs: kernels before any limit")
KERNEL_TIME: Metric[KernelsPage] = Metric(
    "kernel_time_ps",
    TIME_PS,
    lambda page: int(page.total_ps.sum()) if len(page) else None,
    "on GPUs: time of all kernels",
    "no kernel ran on a GPU",
    "time of all kernels",
)
TENSOR_TIME: Metric[KernelsPage] = Metric(
    "tensor_core_time_percent",
    SHARE_PERCENT,
    lambda page: (
        sum(kernel.total_ps for kernel in page.kernels if kernel.uses_tensor_cores) / int(page.total_ps.sum())
        if int(page.total_ps.sum())
        else None
    ),
    "on GPUs: time of kernels that use tensor cores, of the time of all kernels",
    _NO_KERNEL,
    "in kernels that use tensor cores",
)
