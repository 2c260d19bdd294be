"""Which devices of a host's CPU depend on each other, and which threads of the host launch their programs.

Devices that run programs together, as those of a collective do, are one group. So are devices whose programs one thread
launches: that runs one after the other. Two threads that each launch a program of their own, on devices of their own,
are two programs that share a process, such as a trainer and its rollout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, distinct
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.device import is_gpu
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.ops.streams.devices import StreamDevice
from tpuprof.parsers.steps.boundaries.core_groups import JoinedCores
from tpuprof.parsers.steps.boundaries.runs import MINIMUM_RUNS
from tpuprof.parsers.steps.generic.cpu import cpu_summary
from tpuprof.parsers.steps.generic.gpu import gpu_summary
from tpuprof.parsers.steps.generic.host_on_cpu import devices_of
from tpuprof.parsers.steps.generic.op_events import COLLECTIVE, COMPUTES, NO_RUN, OpEvents, op_events
from tpuprof.parsers.steps.generic.programs import runs_on
from tpuprof.parsers.steps.generic.step_events import GenericSummary
from tpuprof.parsers.steps.launches import LaunchedRuns, Launches

_CALL = pattern(r"P\w+Function\((?P<name>.*)\)\Z")
"""How JAX names a call of a compiled function."""


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Some devices of a host's CPU that depend on each other.

    Attributes:
        numbers: their ordinals.
        cpu: the CPU with what these devices ran.
        threads: numbers of the threads that launch their programs; none where no event says it.
        joined: their places among all devices, and how many devices their collectives need.
        runs, busy_ps: of each: the runs of programs, and how long it ran something.
    """

    numbers: tuple[int, ...]
    cpu: StreamDevice
    threads: frozenset[int]
    joined: JoinedCores
    runs: Mapping[int, LaunchedRuns]
    busy_ps: Mapping[int, int]


def device_groups(host: HostEvents, cpu: StreamDevice, modules: HloModules) -> list[DeviceGroup]:
    """The groups of the devices of a host's CPU: first the one whose threads mark steps, then those with most time."""
    ops = op_events(cpu)
    numbers = distinct(ops.device).tolist()
    threads = [_launching(host, _programs(cpu, ops, modules, number)) for number in numbers]
    runs = [distinct(ops.run[(ops.device == number) & (ops.run != NO_RUN)]) for number in numbers]
    groups: list[list[int]] = []
    for place in range(len(numbers)):
        mine = [
            of for of in groups if any(_are_joined(runs[place], runs[at], threads[place], threads[at]) for at in of)
        ]
        groups = [of for of in groups if of not in mine]
        groups.append(sorted([place, *(at for of in mine for at in of)]))
    marking = {number for number, thread in enumerate(host.threads) if len(thread.stat("step_num").rows)}
    made = [
        _group(places, numbers, cpu, ops, modules, frozenset.union(*(threads[at] for at in places)))
        for places in groups
    ]
    return sorted(made, key=lambda of: (not of.threads & marking, -sum(of.busy_ps.values())))


def _are_joined(first: Int64s, second: Int64s, launch_first: frozenset[int], launch_second: frozenset[int]) -> bool:
    """Whether two devices run programs together, or one thread launches for both, as far as events say who does."""
    if len(launch_first) == 1 and launch_first == launch_second:
        return True
    if not len(first) or not len(second):
        return True
    shared = len(np.intersect1d(first, second))
    return shared >= min(MINIMUM_RUNS, len(first), len(second))


def _group(
    places: Sequence[int],
    numbers: Sequence[int],
    cpu: StreamDevice,
    ops: OpEvents,
    modules: HloModules,
    threads: frozenset[int],
) -> DeviceGroup:
    own = tuple(numbers[place] for place in places)
    moving = distinct(ops.op[(ops.kind == COLLECTIVE) & np.isin(ops.device, own)]).tolist()
    devices = max((devices_of(modules, cpu.attribution.ops[op]) for op in moving), default=None)
    parts = {number: cpu.only((number,)) for number in own}
    runs = {number: Launches.of(None).of_runs(runs_on(of, modules, op_events(of))) for number, of in parts.items()}
    ran = {number: ops.take(ops.device == number).when(COMPUTES, COLLECTIVE) for number in own}
    busy = {number: int((end - start).sum()) for number, (start, end) in ran.items()}
    return DeviceGroup(own, cpu.only(own), threads, JoinedCores(tuple(places), devices), runs, busy)


def _programs(cpu: StreamDevice, ops: OpEvents, modules: HloModules, device: int) -> set[str]:
    """What the functions are called whose programs a device ran: ``train_step`` of ``jit_train_step``."""
    ran = (cpu.attribution.ops[op] for op in distinct(ops.op[ops.device == device]).tolist())
    names = {op.module or modules.names.get(op.program) or "" for op in ran}
    return {name.partition("(")[0].partition("_")[2] for name in names} - {""}


def _launching(host: HostEvents, programs: set[str]) -> frozenset[int]:
    """The threads that call functions of these names."""
    ids = host.ids_named(
        lambda name: (call := _CALL.match(name)) is not None and re.sub(r"\W", "_", call["name"]) in programs
    )
    return frozenset(number for number, thread in enumerate(host.threads) if len(thread.rows_of(ids)))


def generic_of_groups(
    trace: Trace,
    streams: Sequence[StreamDevice],
    host: HostEvents | None,
    waits: Intervals,
    on_cpu: Sequence[DeviceGroup],
) -> list[GenericSummary | None]:
    """The steps as streams show them, or the host alone, of each group of devices; None without any."""
    if any(is_gpu(plane) for plane in trace.planes):
        return [gpu_summary(trace, host, streams, waits)]
    if host is None:
        return [None]
    if len(on_cpu) <= 1 and not trace.devices:
        return [cpu_summary(trace, host, next(iter(streams), None), waits)]
    found = [cpu_summary(trace, host, group.cpu, waits, group.threads) for group in on_cpu]
    busy = sorted((of for each in found if each is not None for of in each.busy), key=lambda of: of.number)
    return [None if each is None else replace(each, busy=tuple(busy)) for each in found] or [None]
