"""What one host adds to the pages of ops: sums by op. Its other threads, steps and idle times are left alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TypeVar

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.places import only_shown
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.hosts.plan import on_threads
from tpuprof.parsers.hosts.progress import Watch
from tpuprof.parsers.ops.core_ops import MODULES_LINE, OPS_LINE, STEPS_LINE, as_interval, hull, line_spans
from tpuprof.parsers.ops.core_sums import OpSums, op_sums
from tpuprof.parsers.ops.device import (
    ENVIRONMENT_PLANE,
    DeviceInfo,
    device_info,
    is_gpu,
    is_tensor_core,
    merge_devices,
    open_host,
)
from tpuprof.parsers.ops.offload import offloaded_ops
from tpuprof.parsers.ops.table import OpTable, merge_tables

_MODULE_NAME = re.compile(r"(.*)\((\d{1,20})\)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OpSummary:
    """What the pages of ops need of one host.

    Attributes:
        host: name of the host.
        core_count, gpu_count: numbers of TensorCore and GPU planes.
        device: the device as the cores' planes describe it; None without a device plane.
        table: time by op over the host's cores.
        offloaded: time by op over the SparseCores beside them, for the ops of the cores (`OpTable.parent`).
        op_events: number of op events over the host's cores.
        self_ps: self time of all ops.
        total_ps: the cores' whole time, idle time included.
        programs: program id to the name of its HLO module.
        simulated: whether the profile says that its times are not measured.
        warnings: messages of the profiler itself.
        remarks: sentences on odd devices.
        problems: what is wrong with the file.
    """

    host: str
    core_count: int
    gpu_count: int
    device: DeviceInfo | None
    table: OpTable
    offloaded: OpTable
    op_events: int
    self_ps: int
    total_ps: int
    programs: Mapping[int, str]
    simulated: bool
    warnings: tuple[str, ...]
    remarks: tuple[str, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class CoreTotals:
    """One TensorCore's totals: time by op, the number of op events, and the time from the first to the last op or step.

    The whole time is by the device's clock, in picoseconds; 0 without any op or step.
    """

    table: OpTable
    op_events: int
    total_ps: int


def op_summary(
    trace: Trace, host: str, infos: Sequence[DeviceInfo], cores: Sequence[CoreTotals], modules: Iterable[str]
) -> OpSummary:
    """Puts a host's cores together.

    Args:
        infos: each core's device.
        modules: names of the modules that ran, ``jit_step(7)``.
    """
    device, remarks = merge_devices(infos)
    environment = trace.plane(ENVIRONMENT_PLANE)
    self_ps = [int(core.table.self_ps.sum()) for core in cores]
    matches = map(_MODULE_NAME.match, modules)
    return OpSummary(
        host=host,
        core_count=len(cores),
        gpu_count=sum(is_gpu(plane) for plane in trace.planes),
        device=device,
        table=merge_tables([core.table for core in cores]),
        offloaded=offloaded_ops(trace.planes),
        op_events=sum(core.op_events for core in cores),
        self_ps=sum(self_ps),
        total_ps=sum(max(core.total_ps, own) for core, own in zip(cores, self_ps, strict=True)),
        programs={int(match[2]): match[1] for match in matches if match},
        simulated=environment is not None and bool(environment.stats.get("tpuprof_simulated")),
        warnings=(*trace.errors, *trace.warnings),
        remarks=remarks,
        problems=trace.problems,
    )


def whole_time(plane: Plane, sums: OpSums) -> int:
    """See `CoreTotals.total_ps`."""
    ops = [] if sums.span is None else [as_interval(sums.span)]
    first, last = hull([*ops, *line_spans(plane, STEPS_LINE, device=True)])
    return last - first


def summarise_ops(path: str, host: str, watch: Watch, threads: int, core: str = "") -> OpSummary:
    """Reads a host's file, or one core of it, and returns its ops; workers call this."""
    with closing(open_host(path, host, core)) as trace:
        planes = [plane for plane in trace.planes if is_tensor_core(plane)]
        watch.opened(sum(line.size for plane in planes for line in plane.lines if line.name == OPS_LINE))

        def totals(plane: Plane) -> CoreTotals:
            sums = op_sums(plane, watch.chunk)
            return CoreTotals(sums.table, sums.op_events, whole_time(plane, sums))

        cores = on_threads(totals, planes, threads)
        modules = {name for plane in planes for name in _module_names(plane)}
        return of_core(op_summary(trace, host, list(map(device_info, planes)), cores, modules), core)


Summary = TypeVar("Summary", bound=OpSummary)


def of_core(summary: Summary, core: str) -> Summary:
    """A summary of one core that says so; of a whole host, for an empty `core`, it stays as it is."""
    if not core:
        return summary
    label = f"{summary.host}:{core}"
    return replace(summary, host=label, remarks=(*summary.remarks, only_shown(label)))


def _module_names(plane: Plane) -> list[str]:
    """Names of the modules that ran on a core."""
    lines = [line for line in plane.lines if line.name == MODULES_LINE]
    ids = {number for line in lines for number in line.events(places=False).metadata_id.tolist()}
    return [plane.event_metadata.label(number) for number in ids]
