"""Where the time of a step went, moment by moment: each counts for the most important thing that goes on (`EventType`).

The order is XProf's (`event_span.h`) for what GPUs do: compute with 16 bits, with 32 bits, copies to the host, copies
on and between devices, collectives, copies from the host. XProf counts nothing of the host where there are GPUs: its
rows for kernel launches, host compute and compilation are 0, and that time is other time. Here the time in which no GPU
does anything counts for what the host does meanwhile: it waits for input, launches kernels, compiles or does something
else in the step; the rest is other time. So what GPUs do is as in XProf, and the host's parts are what XProf calls
other time.

In a profile without a device XProf has the host's parts alone. Here the ops that XLA ran on the host's CPU come first.

Different here: an event of no length counts for nothing, while in XProf's sweep it may claim all time after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from tpuprof.parsers.base.intervals import Columns, Int64s, Intervals, is_among, ranges, union
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.ops.host_events.activity import is_compilation
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.steps.accounts.cpu import HostOnCpu
from tpuprof.parsers.steps.boundaries.observed import Ran
from tpuprof.parsers.steps.groups.groups import Root
from tpuprof.parsers.steps.groups.links import PROCESS
from tpuprof.parsers.steps.model import GenericBreakdown, StepSource

FEW = 5
"""Of more steps the first and the last are left out, as the profile may hold only a part of them."""


class EventType(IntEnum):
    """What an event of a step is, by importance: where several go on at a time, the most important one counts."""

    HOST_COMPUTE = 0
    COMPILE = 1
    LAUNCH = 2
    WAIT_INPUT = 3
    FROM_HOST = 4
    COLLECTIVE = 5
    BETWEEN = 6
    TO_HOST = 7
    COMPUTE_32 = 8
    COMPUTE_16 = 9
    HOST_OPS = 10


@dataclass(frozen=True, slots=True)
class StepEvents(Columns):
    """Events that count for steps, by group: int64[n] each; `kind` is a `EventType`."""

    group: Int64s
    start: Int64s
    end: Int64s
    kind: Int64s


@dataclass(frozen=True, slots=True)
class GenericStep:
    """One step.

    Attributes:
        name: the root's name and step number, else the group's number, which XProf always prints for GPUs.
        group_id: the group's number.
        start_ps, duration_ps: the step's longest span on a GPU, or its annotation's on the host.
        breakdown: where the duration went; XProf's generic step.
    """

    name: str
    group_id: int
    start_ps: int
    duration_ps: int
    breakdown: GenericBreakdown


@dataclass(frozen=True, slots=True)
class DeviceBusy:
    """How long a GPU, or a device of the host's CPU, ran something on any stream or thread, and when.

    Attributes:
        lost_ps: how long more it ran what was not recorded; None where that is unknown.
    """

    number: int
    busy_ps: int
    ran: Ran | None
    lost_ps: int | None

    @classmethod
    def of(cls, number: int, start: Int64s, end: Int64s, lost_ps: int | None = 0) -> DeviceBusy:
        """Of the events on all its streams or threads, int64[n] each."""
        busy = union(start, end)
        return cls(number, int((busy[1] - busy[0]).sum()), Ran.of(busy), lost_ps)


@dataclass(frozen=True, slots=True)
class GenericSummary:
    """What a host's GPUs did, or its CPU in a profile without a device.

    Attributes:
        device_count: number of GPU planes; 0 for the host's CPU.
        device_type: the first GPU as XProf names it, such as ``AMD GPU - gfx942``, else ``GPU``; or ``CPU``.
        steps: by group; of GPUs those with compute.
        dropped: number of steps left out at both ends.
        compute_16bit_ps, compute_32bit_ps: time of all groups with a span on a GPU; 16-bit compute hides the other.
            Both are 0 where no event tells the types of its tensors, by their shapes or by its name.
        eager_ps: time of the GPUs' ops that ran eagerly; None where no event records it.
        busy: the time of each GPU, or of each device of the CPU that ran ops.
        account: whose the time of the steps is, on the GPUs together or on the host's CPU; None without steps.
        why_no_steps: why the steps that the program marks are left out; empty where they are not.
        source: where the steps come from; note: what to say of steps that no annotation of the program marks.
        launches: how many kernels the host launched; lost_launches: how many of these are not in the profile.
        lost_steps: the steps that launched such a kernel, or ran then; they are left out.
    """

    device_count: int
    device_type: str
    steps: tuple[GenericStep, ...]
    dropped: int = 0
    compute_16bit_ps: int = 0
    compute_32bit_ps: int = 0
    eager_ps: int | None = None
    busy: tuple[DeviceBusy, ...] = ()
    account: HostOnCpu | None = None
    why_no_steps: str = ""
    source: StepSource = "steps"
    note: str = ""
    launches: int = 0
    lost_launches: int = 0
    lost_steps: int = 0

    @property
    def cpu_steps(self) -> Intervals:
        """Start and end of the steps on the host's CPU; none for GPUs."""
        return spans_of(() if self.device_count else self.steps)


_NOT_COMPUTE = ("EagerExecute", "EagerLocalExecute", "EagerKernelExecute", "FunctionRun")
_MARKERS = ("train", "test", "TraceContext")


def is_marker(name: str) -> bool:
    """Whether a host event marks a step by its name (`IsExplicitHostStepMarker`)."""
    return name.startswith(_MARKERS) and "/" not in name


def host_step_events(host: HostEvents, groups: Sequence[Int64s], *, launches: bool) -> StepEvents:
    """What the host did in groups, but for waiting for input: launching, compiling, computing (`ClassifyCpuEvent`).

    Args:
        groups: of each thread's events, -1 for none.
        launches: whether there are GPUs, for which the host launches kernels.
    """
    skipped = host.ids_named(lambda name: is_marker(name) or name.startswith(_NOT_COMPUTE))
    compiles, processes = host.ids_named(is_compilation), host.ids_named(lambda name: name.startswith(PROCESS))
    parts = []
    for thread, group in zip(host.threads, groups, strict=True):
        counts = (group >= 0) & (thread.end_ps > thread.start_ps) & ~is_among(thread.metadata_id, skipped)
        counts[thread.stat("_r").rows] = False
        kind = np.full(len(thread), EventType.HOST_COMPUTE, np.int64)
        kind[is_among(thread.metadata_id, compiles)] = EventType.COMPILE
        if launches:
            launched = thread.integers("correlation_id", -1) >= 0
            kind[launched | is_among(thread.metadata_id, processes)] = EventType.LAUNCH
        parts.append(StepEvents(group, thread.start_ps, thread.end_ps, kind).take(counts))
    return StepEvents.joined(parts)


def during(spans: Intervals, group: Int64s, begin: Int64s, stop: Int64s, kind: EventType) -> StepEvents:
    """What goes on at some times, whatever group it is of, in the steps that these times fall in.

    Args:
        spans: disjoint intervals in order.
        group, begin, stop: number and span of each step.
    """
    first = np.searchsorted(spans[1], begin, side="right")
    last = np.searchsorted(spans[0], stop, side="left")
    step, place = ranges(first, last)
    start, end = np.maximum(spans[0][place], begin[step]), np.minimum(spans[1][place], stop[step])
    return StepEvents(group[step], start, end, np.full(len(step), kind, np.int64))


def generic_steps(
    step_events: StepEvents, begin: Int64s, stop: Int64s, groups: Int64s, names: Sequence[str]
) -> tuple[tuple[GenericStep, ...], Int64s]:
    """Steps with where their time went, and the time of each kind in all groups, outside of steps too.

    Args:
        groups, begin, stop, names: number, ascending, span and name of each step.
    """
    of = np.searchsorted(groups, step_events.group)
    inside, whole = sweep(of, step_events.start, step_events.end, step_events.kind, begin, stop)
    steps = []
    columns = (groups.tolist(), names, begin.tolist(), stop.tolist(), inside.tolist())
    for number, name, start, end, spent in zip(*columns, strict=True):
        if end > start:
            steps.append(GenericStep(name, number, start, end - start, _breakdown(end - start, spent)))
    return tuple(steps), whole


def _breakdown(duration: int, spent: Sequence[int]) -> GenericBreakdown:
    times = dict(zip(EventType, map(float, spent), strict=True))
    return GenericBreakdown(
        device_compute_ps=times[EventType.COMPUTE_16] + times[EventType.COMPUTE_32],
        device_to_device_ps=times[EventType.BETWEEN],
        device_collectives_ps=times[EventType.COLLECTIVE],
        input_ps=times[EventType.FROM_HOST] + times[EventType.WAIT_INPUT],
        output_ps=times[EventType.TO_HOST],
        all_other_ps=float(max(0, duration - sum(spent))),
        device_compute_16bit_ps=times[EventType.COMPUTE_16],
        host_ops_ps=times[EventType.HOST_OPS],
        host_compute_ps=times[EventType.HOST_COMPUTE],
        kernel_launch_ps=times[EventType.LAUNCH],
        compile_ps=times[EventType.COMPILE],
    )


def spans_of(steps: Sequence[GenericStep]) -> Intervals:
    """Start and end of each step."""
    start = np.array([step.start_ps for step in steps], np.int64)
    return start, start + np.array([step.duration_ps for step in steps], np.int64)


def step_name(group: int, roots: Sequence[Root]) -> str:
    """The name of the step of a group: that of its root, with its number."""
    if not 0 <= group < len(roots):
        return str(group)
    root = roots[group]
    return f"{root.name} {group if root.step_num is None else root.step_num}"


def without_ends(steps: tuple[GenericStep, ...]) -> tuple[GenericStep, ...]:
    """The steps that the profile surely holds whole."""
    return steps[1:-1] if len(steps) > FEW else steps


def sweep(step: Int64s, start: Int64s, end: Int64s, kind: Int64s, begin: Int64s, stop: Int64s) -> tuple[Int64s, Int64s]:
    """Time by step and most important kind.

    Args:
        step, start, end, kind: of each event.
        begin, stop: of each step.

    Returns:
        int64[steps, len(Kind)], what lies within the steps, and int64[len(Kind)], with what lies outside of them.
    """
    kinds = len(EventType)
    times = np.concatenate([start, end])
    steps, which = np.tile(step, 2), np.tile(kind, 2)
    change = np.repeat(np.array([1, -1], np.int32), len(step))
    order = np.lexsort((times, steps))
    times, steps, which, change = times[order], steps[order], which[order], change[order]
    top = np.full(len(order), -1, np.int64)
    for number in range(kinds):  # every step's changes add up to 0, so one sum runs over all of them
        top[np.cumsum(np.where(which == number, change, 0)) > 0] = number
    chosen = np.flatnonzero((steps[1:] == steps[:-1]) & (top[:-1] >= 0) & (times[1:] > times[:-1]))
    of, cell = steps[chosen], steps[chosen] * kinds + top[chosen]
    since, until = times[chosen], times[chosen + 1]
    within = np.maximum(np.minimum(until, stop[of]) - np.maximum(since, begin[of]), 0)
    inside = sum_by_key(cell, within, len(begin) * kinds).reshape(len(begin), kinds)
    return inside, sum_by_key(top[chosen], until - since, kinds)
