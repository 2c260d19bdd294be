"""What one host adds to the pages of ops: sums by op. Its other threads, steps and idle times are left alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.base.intervals import no_ints
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.thread_pool import ThreadPool
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.ops.core.kernel_work import KernelWorks
from tpuprof.parsers.ops.core.ops import MODULES_LINE, OPS_LINE, STEPS_LINE, as_interval, line_spans, time_span
from tpuprof.parsers.ops.core.sums import ModuleHoles, OpSums, joined_holes, op_sums
from tpuprof.parsers.ops.device import (
    ENVIRONMENT_PLANE,
    HOLDS_OPS,
    DeviceInfo,
    device_info,
    is_gpu,
    is_sparse_core,
    is_tensor_core,
    merge_devices,
    tensor_cores,
)
from tpuprof.parsers.ops.offload import offloaded_ops
from tpuprof.parsers.ops.table import OpTable, merge_tables

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.programs import HloModules
    from tpuprof.parsers.ops.streams.devices import StreamDevice
    from tpuprof.parsers.ops.streams.kernels import Kernel
    from tpuprof.parsers.steps.boundaries.recorded import Recorded

_FILLED = 0.99  # runs of a module whose ops have so much of their time lack none

_MODULE_NAME = pattern(r"(.*)\((\d{1,20})\)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OpSummary:
    """What the pages of ops need of one host.

    Attributes:
        host: name of the host.
        core_count, sparse_core_count, gpu_count: numbers of TensorCore, SparseCore and GPU planes.
        thread_count: host threads that ran HLO ops, in a profile without a device; else 0.
        device: the device as the cores' planes describe it, or the host's CPU where its threads ran ops; else None.
        table: time by op over the host's cores, GPUs or threads.
        offloaded: time by op over the SparseCores beside them, for the ops of the cores (`OpTable.parent`).
        op_events: number of op events over these.
        self_ps: self time of all ops.
        total_ps: the cores' whole time, idle time included; see `CoreTotals`.
        span_ps, ran_ps: the cores' whole time, and how much of it ops ran, whatever was recorded: XProf's. Of streams
            that run side by side they are the time from the first event to the last, and that of their ops added up.
        holes: modules with runs that lost their ops, over all cores.
        kernels: of GPUs, most time first.
        programs: program id to the name of its HLO module.
        modules: of ops whose program's name alone is known, as in traces: symbol id to that name.
        simulated: whether the profile says that its times are not measured.
        warnings: messages of the profiler itself.
        remarks: sentences on odd devices.
        problems: what is wrong with the file.
    """

    host: str
    core_count: int
    sparse_core_count: int
    gpu_count: int
    thread_count: int
    device: DeviceInfo | None
    table: OpTable
    offloaded: OpTable
    op_events: int
    self_ps: int
    total_ps: int
    span_ps: int
    ran_ps: int
    holes: tuple[ModuleHoles, ...]
    kernels: tuple[Kernel, ...]
    programs: Mapping[int, str]
    modules: Mapping[int, str]
    simulated: bool
    warnings: tuple[str, ...]
    remarks: tuple[str, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class CoreTotals:
    """One TensorCore's totals.

    Attributes:
        table: time by op, without runs of programs that lost ops; op_events: the number of op events.
        total_ps: the time from the first to the last op or step, by the device's clock; 0 without any op or step. Where
            runs lost ops, the part that stands for the others: their share of the busy time of all. So idle time takes
            the same share of it as of the whole. All of it where it is unknown how busy the core was.
        span_ps, ran_ps: the time from the first to the last, and self time of all ops, whatever was recorded.
        modules: how many runs each module has, and how many of them lost ops; empty where no core has such runs.
    """

    table: OpTable
    op_events: int
    total_ps: int
    span_ps: int
    ran_ps: int
    modules: tuple[ModuleHoles, ...]


def op_summary(
    trace: Trace,
    host: str,
    infos: Sequence[DeviceInfo],
    cores: Sequence[CoreTotals],
    modules: Iterable[str],
    streams: Sequence[StreamDevice] = (),
) -> OpSummary:
    """Puts a host's cores together, or its GPUs.

    Args:
        infos: each core's device.
        modules: names of the modules that ran, ``jit_step(7)``.
        streams: GPUs, or the host's CPU; none where there are cores.
    """
    core_count = len(cores)
    infos = [*infos, *(device.info for device in streams)]
    sums = [device.sums() for device in streams]
    own = [(each.total_ps, each.span_ps, int(each.table.self_ps.sum())) for each in sums]
    span_ps = sum(max(core.span_ps, core.ran_ps) for core in cores) + sum(of.span_ps for of in sums)
    cores = [*cores, *(CoreTotals(each.table, each.op_events, *of, ()) for each, of in zip(sums, own, strict=True))]
    device, remarks = merge_devices(infos)
    environment = trace.plane(ENVIRONMENT_PLANE)
    self_ps = [int(core.table.self_ps.sum()) for core in cores]
    matches = map(_MODULE_NAME.match, modules)
    return OpSummary(
        host=host,
        core_count=core_count,
        sparse_core_count=sum(map(is_sparse_core, trace.planes)),
        gpu_count=sum(map(is_gpu, trace.planes)),
        thread_count=sum(len(device.streams) for device in streams if device.is_host),
        device=device,
        table=merge_tables([core.table for core in cores]),
        offloaded=offloaded_ops(trace.planes),
        op_events=sum(core.op_events for core in cores),
        self_ps=sum(self_ps),
        total_ps=sum(max(core.total_ps, own) for core, own in zip(cores, self_ps, strict=True)),
        span_ps=span_ps,
        ran_ps=sum(core.ran_ps for core in cores),
        holes=joined_holes(of for core in cores for of in core.modules),
        kernels=added_kernels(kernel for device in streams for kernel in device.kernels()),
        programs={**_program_names(trace, streams), **{int(match[2]): match[1] for match in matches if match}},
        modules={op.symbol: op.module for device in streams for op in device.attribution.ops if op.symbol},
        simulated=environment is not None and bool(environment.stats.get("tpuprof_simulated")),
        warnings=(*trace.errors, *trace.warnings),
        remarks=remarks,
        problems=trace.problems,
    )


def added_kernels(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Kernels of several GPUs or hosts as one list, most time first."""
    parts = list(kernels)
    if not parts:
        return ()
    from tpuprof.parsers.ops.streams.kernels import merged_kernels  # noqa: PLC0415 - for GPUs only

    return merged_kernels(parts)


def _programs(trace: Trace) -> HloModules:
    from tpuprof.parsers.formats.hlo.programs import HloModules  # noqa: PLC0415 - for GPUs and programs with kernels

    return HloModules.of(trace)


def _program_names(trace: Trace, streams: Sequence[StreamDevice]) -> Mapping[int, str]:
    """The names of the programs whose ops streams ran, which have no line of modules."""
    if not streams:
        return {}
    ops = [op for device in streams for op in device.attribution.ops]
    ran = {op.program for op in ops}
    if any(not op.program and not op.expression for op in ops):
        ran -= {0}  # stands for no program as well
    held = {program: name for program, name in _programs(trace).names.items() if name and program in ran}
    return {op.program: op.module for op in ops if op.module and op.program} | held


def core_totals(plane: Plane, table: OpTable, sums: OpSums, recorded: Recorded | None = None) -> CoreTotals:
    """One core's totals, by the ops of all its runs and what was recorded of these; None where none lacks ops."""
    spans = [] if sums.span is None else [as_interval(sums.span)]
    spans += line_spans(plane, STEPS_LINE, device=True)
    first, last = time_span(spans)
    total_ps = span_ps = last - first
    ran_ps, modules = int(table.self_ps.sum()), () if recorded is None else recorded.modules
    if recorded is not None and recorded.holes.any() and (recorded.is_known or not ran_ps):
        table = recorded.whole(table)
        first, last = time_span([*spans, recorded.span()])
        total_ps = (last - first) * int(table.self_ps.sum()) // (ran_ps + int(recorded.lost_ps.sum()))
    return CoreTotals(table, sums.op_events, total_ps, span_ps, ran_ps, modules)


def needed_bytes(trace: Trace) -> int:
    """Bytes of the lines that `summarise_ops` decodes."""
    planes = [plane for plane in trace.planes if is_tensor_core(plane)]
    if planes:
        return sum(line.size for plane in planes for line in plane.lines if line.name == OPS_LINE)
    from tpuprof.parsers.ops.streams import devices  # noqa: PLC0415 - for profiles without TPUs only

    host = devices.runs_on_cpu(trace)
    streams = devices.gpu_planes(trace) if host is None else [host]
    return sum(line.size for plane in streams for line in plane.lines)


def summarise_ops(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> OpSummary:
    """The ops of a host, or of one core of it; see `Reduction.reduce`."""
    planes = tensor_cores(trace)

    works = KernelWorks(lambda: _programs(trace))

    def totals(plane: Plane) -> CoreTotals:
        sums = op_sums(plane, on_chunk)
        return core_totals(plane, works.applied(sums.table), sums)

    with ThreadPool(threads) as pool:
        cores, runs = pool.map(totals, planes), list(map(_module_runs, planes))
        counts = {sum(count for count, _ in of.values()) for of, _ in runs}
        lack_ops = (_may_lack_ops(of, core.table) for (of, _), core in zip(runs, cores, strict=True))
        if file.part is None and (len(counts) > 1 or any(skips for _, skips in runs) or any(lack_ops)):
            from tpuprof.parsers.steps.times import recorded_on_all  # noqa: PLC0415 - where something may be lost

            found = zip(planes, cores, recorded_on_all(planes, pool), strict=True)
            cores = [core_totals(plane, core.table, *of) for plane, core, of in found]
    modules = {name for of, _ in runs for name in of}
    streams: tuple[StreamDevice, ...] = ()
    if not planes:
        from tpuprof.parsers.ops.streams.devices import streams_of  # noqa: PLC0415 - for profiles without TPUs only

        streams = streams_of(trace, on_chunk)
    made = op_summary(trace, file.host, list(map(device_info, planes)), cores, modules, streams)
    return of_file(made, file)


OPS_OF_HOST = Reduction(
    "ops",
    OpSummary,
    needed_bytes,
    summarise_ops,
    tables=("table",),
    given_by=("framework-ops", "summary", "collectives", "steps"),
)
"""What the pages of ops need of a host."""

Summary = TypeVar("Summary", bound=OpSummary)


def of_file(summary: Summary, file: HostFile) -> Summary:
    """A summary of one core, or of a part of the capture, that says so; of all of a host, it stays as it is."""
    only = file.only_shown
    return replace(summary, host=file.label, remarks=(*summary.remarks, *only)) if only else summary


def _may_lack_ops(modules: Mapping[str, tuple[int, int]], table: OpTable) -> bool:
    """Whether runs of a module of a core may lack ops: it has none, or some ran less often than it did.

    What runs several times in each, as in a loop, need not have run so often where ops beside those that hold others
    do not fill the runs.
    """
    for name, (runs, run_ps) in modules.items():
        match = _MODULE_NAME.match(name)
        mine = np.flatnonzero(table.program_id == int(match[2])) if match else no_ints()
        occurrences = table.occurrences[mine]
        self_ps = sum(int(table.self_ps[op]) for op in mine.tolist() if table.category[op] not in HOLDS_OPS)
        if not len(mine) or int(occurrences.min()) < runs:
            return True
        if self_ps < _FILLED * run_ps and int(occurrences.max()) > runs:
            return True
    return False


def _module_runs(plane: Plane) -> tuple[dict[str, tuple[int, int]], bool]:
    """How often each module ran on a core, and how long, and whether ids of runs leave some out.

    `steps.boundaries.runs` brings in the side of the host.
    """
    found: dict[str, tuple[int, int]] = {}
    skips = False
    for line in (line for line in plane.lines if line.name == MODULES_LINE):
        events = line.events(("run_id",), places=False)
        ids = events.stats["run_id"].integers(-1) if "run_id" in events.stats else no_ints()
        skips |= len(ids) > 0 and int(ids.max()) - int(ids.min()) >= len(ids)
        for number in sorted(set(events.metadata_id.tolist())):
            mine, name = events.metadata_id == number, plane.event_metadata.label(number)
            count, ps = found.get(name, (0, 0))
            found[name] = count + int(mine.sum()), ps + int(events.duration_ps[mine].sum())
    return found, skips
