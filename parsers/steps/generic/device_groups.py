"""Which GPUs of a host, or devices of its CPU, depend on each other, and which threads launch their programs.

Devices that run programs together, as those of a collective do, are one group. So are devices whose programs one thread
launches: that runs one after the other. Two threads that each launch a program of their own, on devices of their own,
are two programs that share a process, such as a trainer and its rollout.

No event numbers the runs of GPUs. So these are one group too where their collectives run at the same time, a step of
the host launched kernels on both, or their runs begin together; and where nothing shows that they are apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, distinct, is_among, no_ints, overlap
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.device import device_ordinal, is_gpu
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.ops.streams.devices import StreamDevice
from tpuprof.parsers.steps.boundaries.core_groups import JoinedCores, begin_together, runs_often
from tpuprof.parsers.steps.boundaries.runs import MINIMUM_RUNS
from tpuprof.parsers.steps.generic.cpu import cpu_summary
from tpuprof.parsers.steps.generic.gpu import gpu_summary
from tpuprof.parsers.steps.generic.host_on_cpu import devices_of
from tpuprof.parsers.steps.generic.lost_kernels import LAUNCH
from tpuprof.parsers.steps.generic.op_events import COLLECTIVE, COMPUTES, NO_RUN, OpEvents, op_events
from tpuprof.parsers.steps.generic.programs import runs_on
from tpuprof.parsers.steps.generic.step_events import GenericSummary
from tpuprof.parsers.steps.groups.groups import event_groups, is_grouped
from tpuprof.parsers.steps.launches import LaunchedRuns, Launches

_CALL = pattern(r"P\w+Function\((?P<name>.*)\)\Z")
"""How JAX names a call of a compiled function."""


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Some GPUs of a host, or devices of its CPU, that depend on each other.

    Attributes:
        numbers: their ordinals.
        devices: the GPUs, or the CPU with what these devices ran.
        threads: numbers of the threads that launch programs on the CPU; none where no event says it.
        joined: their places among all devices, and how many devices their collectives need.
        runs, busy_ps: of each: the runs of programs, and how long it ran something.
    """

    numbers: tuple[int, ...]
    devices: tuple[StreamDevice, ...]
    threads: frozenset[int]
    joined: JoinedCores
    runs: Mapping[int, LaunchedRuns]
    busy_ps: Mapping[int, int]


def cpu_groups(host: HostEvents, cpu: StreamDevice, modules: HloModules) -> list[DeviceGroup]:
    """The groups of the devices of a host's CPU: first the one whose threads mark steps, then those with most time."""
    ops = op_events(cpu)
    numbers = distinct(ops.device).tolist()
    threads = [_launching(host, _programs(cpu, ops, modules, number)) for number in numbers]
    runs = [distinct(ops.run[(ops.device == number) & (ops.run != NO_RUN)]) for number in numbers]
    groups = _united(range(len(numbers)), lambda a, b: _are_joined(runs[a], runs[b], threads[a], threads[b]))
    marking = {number for number, thread in enumerate(host.threads) if len(thread.stat("step_num").rows)}
    made = [
        _group(places, numbers, cpu, ops, modules, frozenset.union(*(threads[at] for at in places)))
        for places in groups
    ]
    return sorted(made, key=lambda of: (not of.threads & marking, -sum(of.busy_ps.values())))


def _united(places: Iterable[int], are_joined: Callable[[int, int], bool]) -> list[list[int]]:
    """The groups of places of which some are joined in pairs."""
    groups: list[list[int]] = []
    for place in places:
        mine = [of for of in groups if any(are_joined(place, at) for at in of)]
        groups = [of for of in groups if of not in mine]
        groups.append(sorted([place, *(at for of in mine for at in of)]))
    return groups


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
    return DeviceGroup(own, (cpu.only(own),), threads, JoinedCores(tuple(places), devices), runs, busy)


def gpu_groups(
    trace: Trace, host: HostEvents | None, gpus: Sequence[StreamDevice], modules: HloModules
) -> list[DeviceGroup]:
    """The groups of a host's GPUs, the largest first, of these the one with most time; idle GPUs go with that."""
    ops = [op_events(gpu) for gpu in gpus]
    ran = [Launches.of(None).of_runs(runs_on(gpu, modules, of)) for gpu, of in zip(gpus, ops, strict=True)]
    moving = [of.when(COLLECTIVE) for of in ops]
    launching = [_launching_kernels(host, gpu) for gpu in gpus]
    known = [at for at, of in enumerate(ran) if runs_often(of.runs)]

    def are_joined(first: int, second: int) -> bool:
        is_one_launch = not launching[first].isdisjoint(launching[second])
        return (
            is_one_launch or _meet(moving[first], moving[second]) or begin_together(ran[first].runs, ran[second].runs)
        )

    groups = _united(known, are_joined)
    if len(groups) > 1 and host is not None and not is_grouped(trace):
        lines = iter(event_groups(host, (), [stream for gpu in gpus for stream in gpu.streams]).streams)
        steps = [{of for _ in gpu.streams for of in next(lines).of_events().tolist() if of >= 0} for gpu in gpus]
        groups = _united(known, lambda a, b: are_joined(a, b) or not steps[a].isdisjoint(steps[b]))
    busy = [int((end - start).sum()) for start, end in (of.when(COMPUTES, COLLECTIVE) for of in ops)]
    groups.sort(key=lambda of: (-len(of), -sum(busy[at] for at in of)))
    unknown = [at for at in range(len(gpus)) if at not in known]
    groups = [sorted([*of, *(unknown if not place else [])]) for place, of in enumerate(groups or [[]])]
    numbers = [device_ordinal(gpu.plane) for gpu in gpus]
    return [
        DeviceGroup(
            tuple(numbers[at] for at in of),
            tuple(gpus[at] for at in of),
            frozenset(),
            JoinedCores(tuple(of), 0 if any(len(moving[at][0]) for at in of) else None),
            {numbers[at]: ran[at] for at in of},
            {numbers[at]: busy[at] for at in of},
        )
        for of in groups
    ]


def _meet(first: Intervals, second: Intervals) -> bool:
    """Whether collectives of two GPUs run at the same time, for longer than by chance."""
    lengths = [int((end - start).sum()) for start, end in (first, second)]
    if not min(lengths):
        return False
    span = max(first[1][-1], second[1][-1]) - min(first[0][0], second[0][0])
    return bool(2 * overlap(*first, *second).sum() >= min(lengths) * (1 + max(lengths) / span))


def _launching_kernels(host: HostEvents | None, gpu: StreamDevice) -> set[int]:
    """The threads that launched kernels of a GPU."""
    numbers = distinct(np.concatenate([no_ints(), *(of.stat(LAUNCH).values.integers() for of in gpu.streams)]))
    threads = () if host is None else host.threads
    return {at for at, of in enumerate(threads) if is_among(of.stat(LAUNCH).values.integers(), numbers).any()}


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
    groups: Sequence[DeviceGroup],
) -> list[GenericSummary | None]:
    """The steps as streams show them, or the host alone, of each group of devices; None without any."""
    if any(is_gpu(plane) for plane in trace.planes):
        found = [gpu_summary(trace, host, group.devices, waits) for group in groups]
    elif host is None:
        return [None]
    elif len(groups) <= 1 and not trace.devices:
        return [cpu_summary(trace, host, next(iter(streams), None), waits)]
    else:
        found = [cpu_summary(trace, host, group.devices[0], waits, group.threads) for group in groups]
    busy = sorted((of for each in found if each is not None for of in each.busy), key=lambda of: of.number)
    count = sum(each.device_count for each in found if each is not None)
    return [None if each is None else replace(each, busy=tuple(busy), device_count=count) for each in found] or [None]
