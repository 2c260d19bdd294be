"""Which GPUs of a host, or devices of its CPU, depend on each other, and which threads launch their programs.

Devices that run programs together, as those of a collective do, are one group. So are devices whose programs one thread
launches: that runs one after the other. Two threads that each launch a program of their own, on devices of their own,
are two programs that share a process, such as a trainer and its rollout.

No event numbers the runs of GPUs. So these are one group too where their collectives run at the same time, a step of
the host launched kernels on both, or their runs begin together; and where nothing shows that they are apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, distinct, overlap
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.device import device_ordinal, is_gpu
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.ops.streams.attribution import StreamOp
from tpuprof.parsers.ops.streams.devices import StreamDevice
from tpuprof.parsers.steps.boundaries.core_groups import begin_together, runs_often, united
from tpuprof.parsers.steps.boundaries.runs import MINIMUM_RUNS
from tpuprof.parsers.steps.generic.cpu import cpu_summary
from tpuprof.parsers.steps.generic.gpu import gpu_summary
from tpuprof.parsers.steps.generic.host_on_cpu import devices_of
from tpuprof.parsers.steps.generic.lost_kernels import launches_for
from tpuprof.parsers.steps.generic.op_events import COLLECTIVE, COMPUTES, NO_RUN, OpEvents, op_events
from tpuprof.parsers.steps.generic.programs import runs_on
from tpuprof.parsers.steps.generic.step_events import GenericSummary
from tpuprof.parsers.steps.groups.groups import event_groups, is_grouped
from tpuprof.parsers.steps.launches import LaunchedRuns, Launches

_CALL = pattern(r"P\w+Function\((?P<name>.*)\)\Z")
"""How JAX names a call of a compiled function."""


@dataclass(frozen=True, slots=True)
class GroupedDevice:
    """A GPU, or a device of a CPU.

    Attributes:
        number: its ordinal.
        device, ops, ran: what ran on it, the events of that, and the runs of programs.
    """

    number: int
    device: StreamDevice
    ops: OpEvents
    ran: LaunchedRuns

    @classmethod
    def of(cls, number: int, device: StreamDevice, modules: HloModules) -> GroupedDevice:
        ops = op_events(device)
        return cls(number, device, ops, Launches.of(None).of_runs(runs_on(device, modules, ops)))

    @property
    def busy_ps(self) -> int:
        start, end = self.ops.when(COMPUTES, COLLECTIVE)
        return int((end - start).sum())

    def moving(self) -> list[StreamOp]:
        """Its collectives."""
        return [self.device.attribution.ops[op] for op in distinct(self.ops.op[self.ops.kind == COLLECTIVE]).tolist()]


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Some GPUs of a host, or devices of its CPU, that depend on each other.

    Attributes:
        members: each of them.
        devices: how many devices their collectives need; see `parsers.hosts.step_summary.HostGroup`.
        threads: numbers of the threads that launch programs on the CPU; none where no event says it.
    """

    members: tuple[GroupedDevice, ...]
    devices: int | None
    threads: frozenset[int] = frozenset()

    @property
    def busy_ps(self) -> int:
        return sum(of.busy_ps for of in self.members)


def cpu_groups(host: HostEvents, cpu: StreamDevice, modules: HloModules) -> list[DeviceGroup]:
    """The groups of the devices of a host's CPU: first the one whose threads mark steps, then those with most time."""
    numbers = distinct(op_events(cpu).device).tolist()
    each = [GroupedDevice.of(number, cpu.only((number,)), modules) for number in numbers]
    threads = [_launching(host, modules, of.device) for of in each]
    runs = [distinct(of.ops.run[of.ops.run != NO_RUN]) for of in each]
    marking = {number for number, thread in enumerate(host.threads) if len(thread.stat("step_num").rows)}
    made = list[DeviceGroup]()
    for places in united(range(len(each)), lambda a, b: _are_joined(runs[a], runs[b], threads[a], threads[b])):
        own = tuple(each[place] for place in places)
        devices = max((devices_of(modules, op) for of in own for op in of.moving()), default=None)
        launching = frozenset.union(*(threads[at] for at in places))
        made.append(DeviceGroup(own, devices, launching))
    return sorted(made, key=lambda of: (not of.threads & marking, -of.busy_ps))


def _are_joined(first: Int64s, second: Int64s, launch_first: frozenset[int], launch_second: frozenset[int]) -> bool:
    """Whether two devices run programs together, or one thread launches for both, as far as events say who does."""
    if len(launch_first) == 1 and launch_first == launch_second:
        return True
    if not len(first) or not len(second):
        return True
    shared = len(np.intersect1d(first, second))
    return shared >= min(MINIMUM_RUNS, len(first), len(second))


def gpu_groups(
    trace: Trace, host: HostEvents | None, gpus: Sequence[StreamDevice], modules: HloModules
) -> list[DeviceGroup]:
    """The groups of a host's GPUs, the largest first, of these the one with most time; idle GPUs go with that."""
    each = [GroupedDevice.of(device_ordinal(gpu.plane), gpu, modules) for gpu in gpus]
    moving = [of.ops.when(COLLECTIVE) for of in each]
    launched = [launches_for(host, (gpu,)) > 0 for gpu in gpus]
    known = [at for at, of in enumerate(each) if runs_often(of.ran.runs)]

    def are_joined(first: int, second: int) -> bool:
        return (
            bool((launched[first] & launched[second]).any())
            or _meet(moving[first], moving[second])
            or begin_together(each[first].ran.runs, each[second].ran.runs)
        )

    groups = united(known, are_joined)
    if len(groups) > 1 and host is not None and not is_grouped(trace):
        lines = iter(event_groups(host, (), [stream for gpu in gpus for stream in gpu.streams]).streams)
        steps = [{of for _ in gpu.streams for of in next(lines).of_events().tolist() if of >= 0} for gpu in gpus]
        groups = united(known, lambda a, b: are_joined(a, b) or not steps[a].isdisjoint(steps[b]))
    groups = groups or [[]]
    groups.sort(key=lambda of: (-len(of), -sum(each[at].busy_ps for at in of)))
    groups[0] = sorted([*groups[0], *(at for at in range(len(gpus)) if at not in known)])
    needed = [0 if any(len(moving[at][0]) for at in of) else None for of in groups]
    return [DeviceGroup(tuple(each[at] for at in of), devices) for of, devices in zip(groups, needed, strict=True)]


def _meet(first: Intervals, second: Intervals) -> bool:
    """Whether collectives of two GPUs run at the same time, for longer than by chance."""
    lengths = [int((end - start).sum()) for start, end in (first, second)]
    if not min(lengths):
        return False
    span = max(first[1][-1], second[1][-1]) - min(first[0][0], second[0][0])
    return bool(2 * overlap(*first, *second).sum() >= min(lengths) * (1 + max(lengths) / span))


def _launching(host: HostEvents, modules: HloModules, device: StreamDevice) -> frozenset[int]:
    """The threads that call the functions whose programs a device ran: ``train_step`` of ``jit_train_step``."""
    names = {op.module or modules.names.get(op.program) or "" for op in device.attribution.ops}
    programs = {name.partition("(")[0].partition("_")[2] for name in names} - {""}
    ids = host.ids_named(
        lambda name: (call := _CALL.match(name)) is not None and re.sub(r"\W", "_", call["name"]) in programs
    )
    return frozenset(number for number, thread in enumerate(host.threads) if len(thread.rows_of(ids)))


def generic_of_groups(
    trace: Trace,
    streams: Sequence[StreamDevice],
    host: HostEvents | None,
    waits: Intervals,
    groups: Sequence[DeviceGroup],
) -> list[GenericSummary | None]:
    """The steps as streams show them, or the host alone, of each group of devices; None without any."""
    if any(is_gpu(plane) for plane in trace.planes):
        found = [gpu_summary(trace, host, [of.device for of in group.members], waits) for group in groups]
    elif host is None:
        return [None]
    elif len(groups) <= 1 and not trace.devices:
        return [cpu_summary(trace, host, next(iter(streams), None), waits)]
    else:
        numbers = [[of.number for of in group.members] for group in groups]
        cpus = [streams[0].only(of) for of in numbers]
        found = [cpu_summary(trace, host, cpu, waits, of.threads) for cpu, of in zip(cpus, groups, strict=True)]
    busy = sorted((of for each in found if each is not None for of in each.busy), key=lambda of: of.number)
    count = sum(each.device_count for each in found if each is not None)
    return [None if each is None else replace(each, busy=tuple(busy), device_count=count) for each in found] or [None]
