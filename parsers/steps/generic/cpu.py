"""The host's CPU in a profile without a device: steps by the annotations of the program, and what they were made of.

As in XProf, a step is a group of host events (`parsers.steps.groups.groups`), and lasts as long as the event that it
begins with, such as a `StepTraceAnnotation`. Within it time counts for the ops that XLA ran on the host's CPU, on any
thread; else for waiting for input, compiling and what else the step's thread did (`parsers.steps.generic.step_events`).

Different from XProf: it knows nothing of the ops, which run on threads of their own, so that a step that waits for them
is other time there; and it leaves out steps in which nothing but their annotation was traced. What waits for input
while a program is compiled is compiling.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Intervals, distinct, is_among, subtract
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.host.activity import compiling
from tpuprof.parsers.ops.host.events import HostEvents
from tpuprof.parsers.ops.streams.devices import CPU, StreamDevice
from tpuprof.parsers.steps.accounts.cpu import CpuAccount
from tpuprof.parsers.steps.generic.cpu_account import cpu_account, ops_of, runs_after
from tpuprof.parsers.steps.generic.step_events import (
    EventType,
    GenericStep,
    GenericSummary,
    StepEvents,
    during,
    generic_steps,
    host_step_events,
    is_marker,
    without_ends,
)
from tpuprof.parsers.steps.groups.groups import EventGroups, event_groups, is_grouped
from tpuprof.parsers.steps.requests.spans import Spans

ASYNCHRONOUS = (
    "the annotations of the steps end before their ops run: the program launches them and does not wait for them "
    "(jax.block_until_ready inside a step shows its time)"
)


def cpu_summary(trace: Trace, host: HostEvents, cpu: StreamDevice | None, waits: Intervals) -> GenericSummary | None:
    """Summarises a host without a device; None where it has neither steps nor ops.

    Args:
        host: decoded with `GROUP_STATS`.
        cpu: the ops that ran on it; None for none.
        waits: disjoint intervals in order in which the host waited for input.
    """
    groups = event_groups(host, (), grouped=is_grouped(trace))
    markers = _markers(host, groups)
    if not len(markers) and cpu is None:
        return None
    numbers = distinct(markers.group)
    longest = markers.take(np.lexsort((markers.end - markers.start, markers.group)))
    last = np.searchsorted(longest.group, numbers, side="right") - 1
    begin, stop = longest.start[last], longest.end[last]
    of_host = host_step_events(host, groups, launches=False)
    waits = subtract(*waits, *compiling(host))
    step_events = [
        of_host.take(is_among(of_host.group, numbers)),
        during(waits, numbers, begin, stop, EventType.WAIT_INPUT),
        during(ops_of(cpu, is_collective=True), numbers, begin, stop, EventType.COLLECTIVE),
        during(ops_of(cpu, is_collective=False), numbers, begin, stop, EventType.HOST_OPS),
    ]
    steps, _ = generic_steps(StepEvents.joined(step_events), begin, stop, numbers, groups.roots)
    if _ends_before_its_ops(host, cpu, steps, groups):
        return GenericSummary(0, CPU, (), 0, 0, 0, None, why_no_steps=ASYNCHRONOUS)
    kept = without_ends(steps)
    account = _account(trace, host, cpu, waits, kept, groups)
    return GenericSummary(0, CPU, kept, len(steps) - len(kept), 0, 0, None, account=account)


def _ends_before_its_ops(
    host: HostEvents, cpu: StreamDevice | None, steps: Sequence[GenericStep], groups: EventGroups
) -> bool:
    """Whether the annotations of the steps end before the steps' ops run."""
    most, chosen = _of_one_thread(steps, groups)
    start = np.array([step.start_ps for step in chosen], np.int64)
    end = start + np.array([step.duration_ps for step in chosen], np.int64)
    return bool(chosen) and runs_after(host, cpu, start, end, host.threads[most])


def _of_one_thread(steps: Sequence[GenericStep], groups: EventGroups) -> tuple[int, list[GenericStep]]:
    """The thread that has most of the steps, and its steps in the order of time; no steps where none has any."""
    threads = [groups.roots[step.group_id].thread for step in steps if 0 <= step.group_id < len(groups.roots)]
    if not threads:
        return 0, []
    most = max(set(threads), key=threads.count)
    chosen = [step for step, thread in zip(steps, threads, strict=True) if thread == most]
    return most, sorted(chosen, key=lambda step: step.start_ps)


def _account(
    trace: Trace,
    host: HostEvents,
    cpu: StreamDevice | None,
    waits: Intervals,
    steps: Sequence[GenericStep],
    groups: EventGroups,
) -> CpuAccount | None:
    """Whose the time of the steps is; None without steps. Steps are those of the thread that has most of them."""
    most, chosen = _of_one_thread(steps, groups)
    if not chosen:
        return None
    start = np.array([step.start_ps for step in chosen], np.int64)
    end = start + np.array([step.duration_ps for step in chosen], np.int64)
    names, thread = [step.name for step in chosen], host.threads[most]
    marks = {thread.metadata_id[row] for row in thread.stat("step_num").rows.tolist()}
    marks |= set(host.ids_named(is_marker).tolist())
    modules, ids = HloModules.of(trace), np.array(sorted(marks), np.int64)
    return cpu_account(host, cpu, modules, waits, names, start, end, ids, thread)


def _markers(host: HostEvents, groups: EventGroups) -> Spans:
    """What steps begin with: the roots of groups, and events whose names mark steps."""
    named = host.ids_named(is_marker)
    spans = [
        Spans(
            *(
                np.array([getattr(root, name) for root in groups.roots], np.int64)
                for name in ("group", "start_ps", "end_ps")
            )
        )
    ]
    for thread, line in zip(host.threads, groups.threads, strict=True):
        rows = thread.rows_of(named)
        spans.append(Spans.of(thread, line.of_events(), rows))
    joined = Spans.joined(spans)
    return joined.take((joined.group >= 0) & (joined.end > joined.start))
