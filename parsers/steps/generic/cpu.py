"""The host's CPU in a profile without a device: steps by the annotations of the program, and what they were made of.

As in XProf, a step is a group of host events (`parsers.steps.groups.groups`), and lasts as long as the event that it
begins with, such as a `StepTraceAnnotation`. Where the program begins no group itself, its other annotations with the
number of a step count, such as those of Keras; else the periods of its busiest program, as on devices; else what XProf
takes: the groups that a framework begins, such as `FunctionRun` of TensorFlow.

Within a step time counts for the ops that XLA ran on the host's CPU, on any thread; else for waiting for input,
compiling and what else the step's thread did (`parsers.steps.generic.step_events`).

Different from XProf: it knows nothing of the ops, which run on threads of their own, so that a step that waits for them
is other time there; and it leaves out steps in which nothing but their annotation was traced. What waits for input
while a program is compiled is compiling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, distinct, interval_index, is_among, no_ints, subtract
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.device import ENVIRONMENT_PLANE, capture_start_ns
from tpuprof.parsers.ops.host_events.activity import compiling
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.ops.streams.devices import CPU, StreamDevice
from tpuprof.parsers.steps.boundaries.runs import NEARLY_ALL, ModuleRuns
from tpuprof.parsers.steps.generic import step_events
from tpuprof.parsers.steps.generic.functions import callbacks
from tpuprof.parsers.steps.generic.host_on_cpu import host_on_cpu, launching_thread, runs_after
from tpuprof.parsers.steps.generic.op_events import COLLECTIVE, COMPUTES, OpEvents, op_events
from tpuprof.parsers.steps.generic.programs import NOT_MARKED, calls_on, runs_on
from tpuprof.parsers.steps.groups.groups import EventGroups, event_groups, is_grouped
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.requests.inferred import steps_of_programs
from tpuprof.parsers.steps.requests.spans import Spans

ASYNCHRONOUS = (
    "the annotations of the steps end before their ops run: the program launches them and does not wait for them "
    "(jax.block_until_ready inside a step shows its time)"
)

OF_OTHERS = "the annotations of the host (StepTraceAnnotation) mark the steps of other devices"


@dataclass(frozen=True, slots=True)
class _Marked:
    """What marks steps on one thread.

    Attributes:
        thread: number of the thread.
        numbers, begin, stop: int64[steps]: number, ascending, and span of each step.
        names: of the steps.
        groups: int64[events] of each thread: the number of the step that it is of, -1 for none.
        source, note: as of a `GenericSummary`.
        are_whole: whether the profile surely holds all of them whole.
        unasked: when a program that serves waits for requests, which is in no step.
    """

    thread: int
    numbers: Int64s
    begin: Int64s
    stop: Int64s
    names: tuple[str, ...]
    groups: Sequence[Int64s]
    source: StepSource = "steps"
    note: str = ""
    are_whole: bool = False
    unasked: Intervals = (no_ints(), no_ints())


def cpu_summary(
    trace: Trace, host: HostEvents, cpu: StreamDevice | None, waits: Intervals, threads: frozenset[int] | None = None
) -> step_events.GenericSummary | None:
    """Summarises a host without a device; None where it has neither steps nor ops.

    Steps are those that annotations of the program mark, else runs of its programs, else what a framework marks.

    Args:
        host: decoded with `GROUP_STATS`.
        cpu: the ops that ran on it; None for none.
        waits: disjoint intervals in order in which the host waited for input.
        threads: those that launch what ran on it, where it is but some of the CPU's devices: steps are theirs. Where
            nothing shows who does, steps are those that each have as many runs of programs.
    """
    modules, groups = HloModules.of(trace), event_groups(host, (), grouped=is_grouped(trace))
    ops = op_events(cpu)
    found, why = _rooted(host, groups, annotated=True) or _numbered(host), ""
    runs = calls_on(host) if cpu is None else runs_on(cpu, modules, ops)
    if found is not None and threads is not None:
        is_its_own = found.thread in threads if threads else _keep_step(runs, found)
        found, why = (found, "") if is_its_own else (None, OF_OTHERS)
    if found is not None and runs_after(host, ops, found.begin, found.stop, host.threads[found.thread]):
        found, why = None, ASYNCHRONOUS
    found = found or _of_programs(host, runs, why or NOT_MARKED, threads or frozenset())
    if not why and not threads:
        found = found or _rooted(host, groups, annotated=False)
    if found is None:
        return None if cpu is None else step_events.GenericSummary(0, CPU, (), busy=_busy(ops), why_no_steps=why)
    waits = subtract(*subtract(*waits, *compiling(host)), *callbacks(cpu).during)
    spans = found.numbers, found.begin, found.stop
    of_host = step_events.host_step_events(host, found.groups, launches=False)
    of_threads = [
        of_host.take(is_among(of_host.group, found.numbers)),
        step_events.during(waits, *spans, step_events.EventType.WAIT_INPUT),
        step_events.during(ops.when(COLLECTIVE), *spans, step_events.EventType.COLLECTIVE),
        step_events.during(ops.when(COMPUTES), *spans, step_events.EventType.HOST_OPS),
    ]
    steps, _ = step_events.generic_steps(
        step_events.StepEvents.joined(of_threads), found.begin, found.stop, found.numbers, found.names
    )
    kept = steps if found.are_whole else step_events.without_ends(steps)
    began_ns = capture_start_ns(trace.plane(ENVIRONMENT_PLANE))
    return step_events.GenericSummary(
        device_count=0,
        device_type=CPU,
        steps=kept,
        dropped=len(steps) - len(kept),
        busy=_busy(ops),
        account=host_on_cpu(host, cpu, ops, modules, waits, kept, host.threads[found.thread], found.unasked, began_ns)
        if kept
        else None,
        source=found.source,
        note=found.note,
    )


def _keep_step(runs: ModuleRuns, steps: _Marked) -> bool:
    """Whether nearly all of some steps have as many runs of programs."""
    of_run = interval_index(runs.start_ps, steps.begin, steps.stop)
    count = np.sort(np.bincount(of_run[of_run >= 0], minlength=len(steps.begin)))
    usual = count[len(count) // 2]
    return bool(usual and np.count_nonzero(count == usual) >= NEARLY_ALL * len(count))


def _busy(ops: OpEvents) -> tuple[step_events.DeviceBusy, ...]:
    """The time of each device that ran ops, but for calls of the host; without ops, one of which nothing is known."""
    ran = ops.take(np.isin(ops.kind, (COMPUTES, COLLECTIVE)))
    of_devices = [(number, ran.take(ran.device == number)) for number in distinct(ran.device).tolist()]
    return tuple(step_events.DeviceBusy.of(number, of.start, of.end) for number, of in of_devices) or (
        step_events.DeviceBusy(0, 0, None, None),
    )


# ---- what marks steps ------------------------------------------------------------------------------------------------


def _rooted(host: HostEvents, groups: EventGroups, annotated: bool) -> _Marked | None:
    """Groups of events that begin on one thread, the one with most of them; None without any.

    Args:
        annotated: whether the program itself marks what they begin with: by the number of a step, or by the name.
    """
    markers, threads = _markers(host, groups)
    of_root = {root.group: root.thread for root in groups.roots}
    thread_of = {
        group: of_root.get(group, thread) for group, thread in zip(markers.group.tolist(), threads, strict=True)
    }
    if annotated:
        marked = {root.group for root in groups.roots if root.step_num is not None or step_events.is_marker(root.name)}
        thread_of = {group: thread for group, thread in thread_of.items() if group in marked or group not in of_root}
    if not thread_of:
        return None
    counts = Counter(thread_of.values())
    most = max(counts, key=lambda thread: counts[thread])
    numbers = np.array(sorted(group for group, thread in thread_of.items() if thread == most), np.int64)
    longest = markers.take(np.lexsort((markers.end - markers.start, markers.group)))
    last = np.searchsorted(longest.group, numbers, side="right") - 1
    names = tuple(step_events.step_name(number, groups.roots) for number in numbers.tolist())
    of_events = [line.of_events() for line in groups.threads]
    return _Marked(most, numbers, longest.start[last], longest.end[last], names, of_events)


def _markers(host: HostEvents, groups: EventGroups) -> tuple[Spans, list[int]]:
    """What steps begin with: the roots of groups, and events whose names mark steps. And the thread of each."""
    named = host.ids_named(step_events.is_marker)
    spans, threads = [], [root.thread for root in groups.roots]
    keys = ("group", "start_ps", "end_ps")
    spans.append(Spans(*(np.array([getattr(root, key) for root in groups.roots], np.int64) for key in keys)))
    for number, (thread, line) in enumerate(zip(host.threads, groups.threads, strict=True)):
        rows = thread.rows_of(named)
        spans.append(Spans.of(thread, line.of_events(), rows))
        threads += [number] * len(rows)
    joined = Spans.joined(spans)
    kept = np.flatnonzero((joined.group >= 0) & (joined.end > joined.start))
    return joined.take(kept), [threads[row] for row in kept.tolist()]


def _numbered(host: HostEvents) -> _Marked | None:
    """Events that number steps and begin no group, such as those of Keras: the ones with most steps of a name."""
    best: tuple[tuple[int, int], int, Int64s] | None = None
    for number, thread in enumerate(host.threads):
        rows = thread.stat("step_num").rows
        for of in distinct(thread.metadata_id[rows].astype(np.int64)).tolist():
            mine = rows[(thread.metadata_id[rows] == of) & (thread.end_ps > thread.start_ps)[rows]]
            size = len(mine), int((thread.end_ps - thread.start_ps)[mine].sum())
            if len(mine) and (best is None or size > best[0]):
                best = size, number, mine
    if best is None:
        return None
    _, number, rows = best
    thread = host.threads[number]
    rows = rows[np.argsort(thread.start_ps[rows], kind="stable")]
    begin = thread.start_ps[rows]
    stop = np.minimum(thread.end_ps[rows], np.append(begin[1:], thread.end_ps[rows[-1:]]))
    step, _ = thread.stat("step_num").integers_at(rows)
    name = host.name(int(thread.metadata_id[rows[0]]))
    return _during(host, number, begin, stop, [f"{name} {of}" for of in step.tolist()])


def _of_programs(host: HostEvents, runs: ModuleRuns, why: str, threads: frozenset[int]) -> _Marked | None:
    found = steps_of_programs([runs], host, why)
    if found is None:
        return None
    steps = found.of_cores[0]
    marked = _during(host, launching_thread(host, threads), steps.start_ps, steps.end_ps, steps.names)
    return replace(marked, source=found.source, note=found.note, are_whole=True, unasked=found.unasked)


def _during(host: HostEvents, thread: int, begin: Int64s, stop: Int64s, names: Sequence[str]) -> _Marked:
    """Steps of these spans: the events of this thread belong to the one in which they start."""
    groups = [np.full(len(each), -1, np.int64) for each in host.threads]
    groups[thread] = interval_index(host.threads[thread].start_ps, begin, stop)
    return _Marked(thread, np.arange(len(begin)), begin, stop, tuple(names), groups)
