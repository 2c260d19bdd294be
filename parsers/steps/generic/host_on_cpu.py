"""Whose the time of steps on the host's CPU is, and in which functions of the program the step's own thread spent it.

The ops of XLA:CPU run on threads of their own, and the thread that marks the steps launches them and waits for them. A
moment counts for an op that computes, on any thread; else for a collective; else for the time between the ops of one
run of a program; else for what the step's thread does: it compiles, waits for input or makes it, launches, or runs the
program's own code. Where none of its events says what it does, the host has the time too, and `untraced_ps` says how
much that is: without the Python tracer a function that sleeps, reads or logs leaves no event.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base import intervals
from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals, no_ints
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.hlo.shapes import shapes_in
from tpuprof.parsers.ops.host_events.activity import compiling
from tpuprof.parsers.ops.host_events.events import HostEvents, HostThread
from tpuprof.parsers.ops.streams.attribution import StreamOp
from tpuprof.parsers.ops.streams.devices import DEVICE, RUN, StreamDevice
from tpuprof.parsers.steps.accounts.cpu import HostFunction, HostOnCpu
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner, owner_index
from tpuprof.parsers.steps.generic import functions, step_events
from tpuprof.parsers.steps.generic.functions import callbacks, other_python, part_of
from tpuprof.parsers.steps.generic.op_events import COLLECTIVE, COMPUTES, NO_RUN, OpEvents, device_times
from tpuprof.parsers.steps.generic.programs import bounds
from tpuprof.parsers.steps.generic.step_events import GenericStep
from tpuprof.parsers.steps.requests.inferred import ids_of_requests

LATENCY_PS, SLOWEST_BYTES, PS_PER_SECOND = 1_000_000_000, 100_000_000, 10**12
"""A collective between processes moves its bytes at this many a second at least, after a millisecond: what it takes
beyond that is waiting for the other process. A rule of thumb: one process alone cannot show when the others came."""

_OWN: tuple[Owner, ...] = ("compile", "input", "dispatch", "host")
"""Whose time the step's thread can explain."""


def host_on_cpu(
    host: HostEvents,
    cpu: StreamDevice | None,
    ops: OpEvents,
    modules: HloModules,
    waits: Intervals,
    steps: Sequence[GenericStep],
    thread: HostThread,
    unasked: Intervals,
    began_ns: int | None,
) -> HostOnCpu:
    """The steps on the CPU of one host, and whose their time is.

    Args:
        cpu, ops: what ran on it, and its events; None and none without ops.
        modules: the programs of the profile.
        waits: when the host waited for input or sent it, disjoint and in order.
        thread: the one that marks the steps.
        unasked: when a program that serves waits for requests: that is in no step, nor between them.
        began_ns: as of a `HostOnCpu`.
    """
    steps = sorted(steps, key=lambda step: step.start_ps)
    names, (start, end) = [step.name for step in steps], step_events.spans_of(steps)
    end = np.minimum(end, np.append(start[1:], end[-1:]))
    step, between = (start, end), (end, np.append(start[1:], end[-1:]))
    computing, moving = ops.when(COMPUTES), ops.when(COLLECTIVE)
    ids = functions.names_on(host, thread)
    of_requests = ids_of_requests(host) if len(unasked[0]) else no_ints()
    numbering = thread.metadata_id[thread.stat("step_num").rows].astype(np.int64)
    marks = intervals.distinct(np.concatenate([host.ids_named(step_events.is_marker), numbering, of_requests]))
    is_mark = intervals.is_among(thread.metadata_id, marks)
    launching = functions.spans_of(thread, functions.are_named(thread, ids, functions.launches))
    calls, others = callbacks(cpu), other_python(host, cpu, thread)
    causes: list[tuple[Owner, Intervals]] = [
        ("uncounted", computing),
        ("host", calls.during),
        ("collective_transfer", moving),
        ("between_ops", program_runs(host, ops)),
        ("compile", compiling(HostEvents(host.plane, (thread,)))),
        ("input", waits),
        ("host", others.during),
        ("dispatch", launching),
        ("host", functions.spans_of(thread, ~is_mark)),
    ]
    divided, left = list[Intervals](), intervals.subtract(*intervals.union_of((step, between)), *unasked)
    for _, of in causes:
        divided.append(intervals.intersect(*left, *of))
        left = intervals.subtract(*left, *divided[-1])
    columns = np.zeros((2, len(names), len(OWNERS)), np.int64)
    untraced = np.zeros((2, len(names)), np.int64)
    for which, spans in enumerate((step, between)):
        for (owner, _), of in zip(causes, divided, strict=True):
            columns[which, :, owner_index(owner)] += intervals.overlap(*spans, *of)
        untraced[which] = intervals.overlap(*spans, *left)
        columns[which, :, owner_index("host")] += untraced[which]
    own = {owner: of for (owner, _), of in zip(causes, divided, strict=True)}  # of the host's the last: its own code
    parts = [(calls, divided[1]), (others, divided[6])]
    collectives = _collectives(cpu, ops)
    alone = [
        intervals.overlap(*step, *intervals.subtract(*intervals.union(each.start, each.end), *computing))
        for each in collectives
    ]
    devices = max((devices_of(modules, each.op) for each in collectives), default=0)
    local = max((each.at_a_time for each in collectives), default=0)
    beyond = [each.beyond_transfer(*step, ps) for each, ps in zip(collectives, alone, strict=True)]
    waited = np.sum(beyond, axis=0, dtype=np.int64) if beyond and local < devices else np.zeros(len(names), np.int64)
    return HostOnCpu(
        names=tuple(names),
        start_ps=start,
        step_ps=end - start,
        owner_ps=columns[0],
        between_ps=columns[1],
        untraced_ps=untraced[0],
        untraced_between_ps=untraced[1],
        functions=tuple(each for owner in _OWN for each in _functions(host, thread, owner, own[owner], is_mark)),
        parts=tuple(part_of(host, thread, each, of, step, between) for each, of in parts if len(of[0])),
        compiled=functions.compiled_on(thread, ids, own["compile"]),
        collective_names=tuple(each.op.name for each in collectives),
        collective_ps=np.stack(alone, axis=1) if alone else np.zeros((len(names), 0), np.int64),
        waits_ps=np.minimum(waited, columns[0][:, owner_index("collective_transfer")]),
        devices=devices,
        local_devices=local,
        is_traced=any(name.startswith("$") for name in ids.values()),
        of_devices=device_times(ops, step, intervals.distinct(ops.device)),
        began_ns=began_ns,
    )


def _functions(
    host: HostEvents, thread: HostThread, owner: Owner, spans: Intervals, is_mark: Bools
) -> list[HostFunction]:
    """What the step's thread was in; for input that TensorFlow gets on a thread of its own, what that one was in."""
    if owner == "input":
        gets = host.ids_named(lambda name: functions.GETS_INPUT.match(name) is not None)
        times = [
            int(intervals.overlap(*spans, *functions.spans_of(each, intervals.is_among(each.metadata_id, gets))).sum())
            for each in host.threads
        ]
        most = host.threads[times.index(max(times))]
        if most is not thread and 2 * max(times) > int((spans[1] - spans[0]).sum()):
            found = functions.functions_in(host, most, owner, spans, np.zeros(len(most), np.bool_))
            return [replace(function, thread=f"Thread {most.line.name}") for function in found]
    return functions.functions_in(host, thread, owner, spans, is_mark)


# ---- ops -------------------------------------------------------------------------------------------------------------


def runs_after(host: HostEvents, ops: OpEvents, start: Int64s, end: Int64s, thread: HostThread) -> bool:
    """Whether the ops of some steps run for longer after the last step than within all of them.

    The thread that marks steps may launch programs without waiting for them. What runs between the last step and the
    next launch was launched by the steps; with more of it than they hold, they do not show when their ops ran.

    Args:
        start, end: the steps, all that the profile has of this thread.
        thread: the one that marks them.
    """
    if not len(start) or not len(ops):
        return False
    last = int(end.max())
    later = thread.start_ps[
        functions.are_named(thread, functions.names_on(host, thread), functions.launches) & (thread.start_ps >= last)
    ]
    until = int(later.min()) if len(later) else np.iinfo(np.int64).max
    ran = ops.when(COMPUTES, COLLECTIVE)
    within = intervals.overlap(*intervals.union(start, end), *ran).sum()
    after = intervals.overlap(np.array([last]), np.array([max(until, last)]), *ran).sum()
    return bool(after > within)


def launching_thread(host: HostEvents, among: frozenset[int]) -> int:
    """The number of the thread that launches most programs, of some threads or (none) of all; 0 where none does."""
    ids = host.ids_named(functions.launches)
    counts = [len(of.rows_of(ids)) * (not among or at in among) for at, of in enumerate(host.threads)]
    return counts.index(max(counts)) if max(counts, default=0) else 0


def program_runs(host: HostEvents, ops: OpEvents) -> Intervals:
    """When some run of these ops was going on: from the first event that names it (`run_id`) to the last.

    TensorFlow gives all runs the id -1, which names none: taken for one run it would last for the whole capture.

    Returns:
        Start and end of disjoint intervals in order.
    """
    columns: list[tuple[Int64s, Int64s, Int64s, Int64s]] = []
    for thread in host.threads:
        stat = thread.stat(RUN)
        device, is_known = thread.stat(DEVICE).integers_at(stat.rows)
        is_own = intervals.is_among(np.maximum(device, 0), intervals.distinct(ops.device)) | ~is_known
        run = np.where(is_own | (len(ops) == 0), stat.values.integers(), NO_RUN)
        columns.append((run, device, thread.start_ps[stat.rows], thread.end_ps[stat.rows]))
    if not columns:
        return no_ints(), no_ints()
    run, device, start, end = (np.concatenate(column) for column in zip(*columns, strict=True))
    run, device, start, end = (column[run != NO_RUN] for column in (run, device, start, end))
    return intervals.union(*bounds(intervals.numbered(run, device), start, end))


@dataclass(frozen=True, slots=True)
class _Collective:
    """A collective and its runs on all threads: int64[n] each."""

    op: StreamOp
    start: Int64s
    end: Int64s

    @property
    def at_a_time(self) -> int:
        """On how many threads it ran at a time at most: all devices of a process are in it before it goes on."""
        times = np.concatenate([self.start, self.end])
        change = np.repeat(np.array([1, -1]), len(self.start))
        return int(np.cumsum(change[np.lexsort((change, times))]).max(initial=0))

    def beyond_transfer(self, begin: Int64s, stop: Int64s, alone_ps: Int64s) -> Int64s:
        """int64[steps]: the part of the time of each step that moving the data does not take."""
        first = np.sort(self.start)
        runs = np.searchsorted(first, stop) - np.searchsorted(first, begin)
        sizes = (found.shape.unpadded_bytes for found in shapes_in(self.op.shape))
        each_ps = LATENCY_PS + sum(filter(None, sizes)) * PS_PER_SECOND // SLOWEST_BYTES
        return np.maximum(alone_ps - runs * each_ps, 0)


def _collectives(cpu: StreamDevice | None, ops: OpEvents) -> list[_Collective]:
    moving = ops.take(ops.kind == COLLECTIVE)
    numbers = [] if cpu is None else intervals.distinct(moving.op).tolist()
    of_ops = [(number, moving.take(moving.op == number)) for number in numbers]
    return [_Collective(cpu.attribution.ops[number], of.start, of.end) for number, of in of_ops if cpu is not None]


def devices_of(modules: HloModules, op: StreamOp) -> int:
    """How many devices the program of an op runs on; 0 where the profile does not say."""
    module = modules.module(op.program)
    if module is None:
        return 0
    assigned = module.proto.hlo_module.device_assignment
    return max(0, assigned.replica_count) * max(0, assigned.computation_count)
