"""GPUs: steps and where their time went, as XProf gives them for profiles without TPUs.

A GPU's plane has a line a stream. Its events belong to the step whose root launched them
(`parsers.steps.groups.groups`); one that no step launched belongs to the step of the event before it on that GPU. A
step's span on a GPU is a run of events of one group; the longest on any GPU is the step's. What its moments count for
is described in `parsers.steps.generic.step_events`. Sources: `derived_timeline.cc`, `xplane_to_step_events.cc`,
`event_span.cc`, `step_events_to_steps_db.cc`.

Different from XProf: where the program marks no step, the runs of its programs on the GPU with most of them do, as on
other devices; what a framework begins, which XProf takes, comes after them.

CUDA's profiler names copies `MemcpyH2D`, `MemcpyD2H` and so on. XProf knows only the long forms (`MemcpyHtoD`), and
takes the short ones for compute with 32 bits; here they are copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpuprof.parsers.base import intervals
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.metadata import KIND_REF, KIND_STR
from tpuprof.parsers.formats.xspace.source import ByteSource
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.ops.device import ENVIRONMENT_PLANE, capture_start_ns, device_ordinal
from tpuprof.parsers.ops.host_events.events import HostEvents, HostThread
from tpuprof.parsers.ops.host_events.ops import IS_EAGER
from tpuprof.parsers.ops.streams.attribution import copy_kind
from tpuprof.parsers.ops.streams.devices import StreamDevice
from tpuprof.parsers.steps.accounts.core import scaled_down, where_known
from tpuprof.parsers.steps.accounts.cpu import HostOnCpu
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner, owner_index
from tpuprof.parsers.steps.boundaries.markers import CoreSteps
from tpuprof.parsers.steps.generic.lost_kernels import launches_for, lost_in_steps, lost_launches
from tpuprof.parsers.steps.generic.op_events import COLLECTIVE, OpEvents, device_times, op_events
from tpuprof.parsers.steps.generic.programs import NOT_MARKED, runs_on
from tpuprof.parsers.steps.generic.step_events import (
    DeviceBusy,
    EventType,
    GenericStep,
    GenericSummary,
    StepEvents,
    during,
    generic_steps,
    host_step_events,
    is_marker,
    spans_of,
    step_name,
    without_ends,
)
from tpuprof.parsers.steps.groups.groups import GROUP_STATS, EventGroups, event_groups, is_grouped, recorded_groups
from tpuprof.parsers.steps.requests.inferred import steps_of_programs
from tpuprof.parsers.steps.requests.spans import Spans

STREAM_STATS = (*GROUP_STATS, IS_EAGER, "shape")
"""Stats to read of the streams' events, besides those that name their ops."""

_COPIES = {
    "memcpy host to device": EventType.FROM_HOST,
    "memcpy device to host": EventType.TO_HOST,
    "memcpy device to device": EventType.BETWEEN,
    "memcpy peer to peer": EventType.BETWEEN,
    "memcpy": EventType.BETWEEN,
    "nccl": EventType.COLLECTIVE,
}

_STEPS_LINE = 0xDEADBEEF
"""Low 32 bits of the id of the line that holds steps in a profile which has them already."""

_READ_BYTES = 1 << 23

NOT_LAUNCHING = "no step that the host marks launched a kernel of these GPUs"


def gpu_summary(
    trace: Trace, host: HostEvents | None, gpus: Sequence[StreamDevice], waits: intervals.Intervals
) -> GenericSummary | None:
    """Summarises the GPUs of a profile; None where there are none.

    Args:
        host: the host's threads, decoded with `GROUP_STATS`, or None for a profile without them.
        gpus: decoded with `STREAM_STATS`.
        waits: disjoint intervals in order in which the host waited for input.
    """
    if not gpus:
        return None
    every = [stream for gpu in gpus for stream in gpu.streams]
    grouped = is_grouped(trace)
    groups = (
        EventGroups((), (), None, recorded_groups(every)) if host is None else event_groups(host, (), every, grouped)
    )
    marking = {root.group for root in groups.roots if root.step_num is not None or is_marker(root.name)}
    launching = {group for line in groups.streams for group in intervals.distinct(line.of_events()).tolist()}
    ops, why = [op_events(gpu) for gpu in gpus], NOT_LAUNCHING if marking else NOT_MARKED
    found, beside = None, OpEvents.joined(ops)
    if not grouped and not marking & launching:
        runs = [runs_on(gpu, HloModules.of(trace), of) for gpu, of in zip(gpus, ops, strict=True)]
        found = steps_of_programs([max(runs, key=lambda of: int(of.module_ps.sum()))], host, why)
    lost = lost_launches(trace, host, gpus)
    kinds = [[_kinds(gpu.plane, stream) for stream in gpu.streams] for gpu in gpus]
    if found is None:
        steps, whole = _of_groups(gpus, kinds, host, groups, waits, not grouped)
        holed = np.concatenate(
            [intervals.no_ints(), *(of.of_events()[at] for of, at in zip(groups.threads, lost.rows, strict=True))]
        )
    else:
        steps, whole = _of_spans(gpus, kinds, beside, host, found.of_cores[0], waits)
        holed = intervals.interval_index(lost.start_ps, found.of_cores[0].start_ps, found.of_cores[0].end_ps)
    start, end = spans_of(steps)
    follow = bool((start[1:] >= end[:-1]).all())  # those of several threads overlap
    lost_ps = [
        lost_in_steps(gpu, of, start, end) if follow else np.zeros_like(start)
        for gpu, of in zip(gpus, ops, strict=True)
    ]
    are_lost = np.any([of > 0 for of in lost_ps], axis=0)
    are_lost |= intervals.is_among(np.array([step.group_id for step in steps], np.int64), intervals.distinct(holed))
    lacking = {step.group_id for step, is_lost in zip(steps, are_lost.tolist(), strict=True) if is_lost}
    without = set(holed[holed >= 0].tolist()) - {step.group_id for step in steps}
    if trace.source.origin or not (whole[EventType.COMPUTE_16] or any(len(of.stat("shape").rows) for of in every)):
        whole = np.zeros_like(whole)  # nothing tells the types of the tensors; of a trace of events nothing does
    kept = without_ends(steps) if found is None else steps
    recorded = tuple(step for step in kept if step.group_id not in lacking)
    began_ns = capture_start_ns(trace.plane(ENVIRONMENT_PLANE))
    lost_before = np.searchsorted(sorted(lacking | without), [step.group_id for step in recorded])
    follows = np.diff(lost_before, prepend=0) == 0
    return GenericSummary(
        device_count=len(gpus),
        device_type=gpus[0].info.device_type or "GPU",
        steps=recorded,
        dropped=len(steps) - len(kept),
        compute_16bit_ps=int(whole[EventType.COMPUTE_16]),
        compute_32bit_ps=int(whole[EventType.COMPUTE_32]),
        eager_ps=_eager(gpus),
        busy=tuple(
            DeviceBusy.of(device_ordinal(gpu.plane), of.start, of.end, None if lost.are_many else int(ps.sum()))
            for gpu, of, ps in zip(gpus, ops, lost_ps, strict=True)
        ),
        why_no_steps="" if recorded or not kept else "kernels of every step are lost",
        account=account_on_gpus(recorded, beside, follows, began_ns) if recorded else None,
        launches=lost.launches,
        lost_launches=len(lost),
        lost_steps=len(kept) - len(recorded) + len(without),
        source="steps" if found is None else found.source,
        note="" if found is None else found.note,
    )


_OWNER_OF: Mapping[str, Owner] = {
    "input_ps": "input",
    "compile_ps": "compile",
    "host_compute_ps": "host",
    "kernel_launch_ps": "dispatch",
    "device_collectives_ps": "collective_transfer",
    "output_ps": "host_transfer",
    "device_to_device_ps": "copy",
    "device_compute_ps": "uncounted",
    "host_ops_ps": "uncounted",
    "all_other_ps": "host",
}
"""Whose the parts of a step on GPUs are. Nobody counts the work of their ops. Where nothing is traced, no op runs
either: that is the host's time, whether or not Python's functions were traced.
"""


def account_on_gpus(
    steps: Sequence[GenericStep], ops: OpEvents, follows: intervals.Bools, began_ns: int | None = None
) -> HostOnCpu:
    """The steps on the GPUs of one host, all of them together, as those on a CPU.

    Args:
        ops: the events on all GPUs.
        follows: bool[steps], whether no step that lacks kernels lies between the one before and it. Where one does,
            what else lies between them counts as between the others.
        began_ns: as of a `HostOnCpu`.
    """
    (start, end), owner_ps = spans_of(steps), np.zeros((len(steps), len(OWNERS)), np.int64)
    duration, none = np.maximum(end - start, 0), np.zeros(len(steps), np.int64)
    for part, owner in _OWNER_OF.items():
        of_part = [max(getattr(step.breakdown, part), 0.0) for step in steps]
        owner_ps[:, owner_index(owner)] += np.rint(of_part).astype(np.int64)
    owner_ps[:, owner_index("host")] += np.maximum(duration - owner_ps.sum(axis=1), 0)  # parts are rounded
    owner_ps, between_ps = scaled_down(owner_ps, duration), np.zeros_like(owner_ps)
    between_ps[:-1, owner_index("host")] = np.maximum(start[1:] - (start + duration)[:-1], 0)
    in_steps = intervals.interval_index(ops.start, start, start + duration) >= 0
    ends = ops.when(COLLECTIVE)[1]
    met = np.append(-1, ends)[np.searchsorted(ends, end, side="right")]
    return HostOnCpu(
        names=tuple(step.name for step in steps),
        start_ps=start,
        step_ps=duration,
        owner_ps=owner_ps,
        between_ps=where_known(between_ps, np.roll(follows, -1)),
        untraced_ps=none,
        untraced_between_ps=none,
        collective_names=("",),  # all of them together
        collective_ps=owner_ps[:, [owner_index("collective_transfer")]],
        waits_ps=none,
        of_devices=device_times(ops, (start, end), intervals.distinct(ops.device[in_steps])),
        began_ns=began_ns,
        met_ps=np.where(met > start, met, -1),
    )


_Steps = tuple[tuple[GenericStep, ...], intervals.Int64s]
"""Steps, and the time of each kind of event in and outside of them; 0 where no event tells the types of its tensors."""

_Kinds = Sequence[Sequence[intervals.Int64s]]
"""What each event of the streams of each GPU is."""


def _of_groups(
    gpus: Sequence[StreamDevice],
    kinds: _Kinds,
    host: HostEvents | None,
    groups: EventGroups,
    waits: intervals.Intervals,
    derives: bool,
) -> _Steps:
    """The steps whose roots launched what the GPUs ran: those with compute."""
    of_events = iter([line.of_events() for line in groups.streams])
    parts = [
        _gpu(gpu, of_streams, [next(of_events) for _ in gpu.streams], derives)
        for gpu, of_streams in zip(gpus, kinds, strict=True)
    ]
    step_events, spans = StepEvents.joined([part for part, _ in parts]), Spans.joined([part for _, part in parts])
    numbers = intervals.distinct(step_events.group)
    begin, stop = _longest(spans, numbers)
    beside = [during(waits, numbers, begin, stop, EventType.WAIT_INPUT)]
    if host is not None:
        of_host = host_step_events(host, [line.of_events() for line in groups.threads], launches=True)
        beside.append(of_host.take(intervals.is_among(of_host.group, numbers)))
    names = [step_name(number, groups.roots) for number in numbers.tolist()]
    steps, whole = generic_steps(StepEvents.joined([step_events, *beside]), begin, stop, numbers, names)
    computes = (step_events.kind >= EventType.COMPUTE_32) & (step_events.end > step_events.start)
    computing = set(step_events.group[computes].tolist())
    return tuple(step for step in steps if step.group_id in computing), whole


def _of_spans(
    gpus: Sequence[StreamDevice],
    kinds: _Kinds,
    events: OpEvents,
    host: HostEvents | None,
    steps: CoreSteps,
    waits: intervals.Intervals,
) -> _Steps:
    """What went on at some times, on all GPUs and on the thread of the host that launches most kernels."""
    numbers, begin, stop = np.arange(len(steps)), steps.start_ps, steps.end_ps
    kind = np.concatenate([intervals.no_ints(), *(kind for of in kinds for kind in of)])
    parts = [during(waits, numbers, begin, stop, EventType.WAIT_INPUT)]
    for each in intervals.distinct(kind).tolist():
        ran = intervals.union(events.start[kind == each], events.end[kind == each])
        parts.append(during(ran, numbers, begin, stop, EventType(each)))
    if host is not None:
        groups = [np.full(len(each), -1) for each in host.threads]
        if groups:
            most = int(launches_for(host, gpus).argmax())
            groups[most] = intervals.interval_index(host.threads[most].start_ps, begin, stop)
        parts.append(host_step_events(host, groups, launches=True))
    return generic_steps(StepEvents.joined(parts), begin, stop, numbers, steps.names)


def _eager(gpus: Sequence[StreamDevice]) -> int | None:
    """The time of ops that ran eagerly; None where no event says whether its op did."""
    known = [stream for gpu in gpus for stream in gpu.streams if len(stream.stat(IS_EAGER).rows)]
    eager = [stream.integers(IS_EAGER, 0) != 0 for stream in known]
    times = [(stream.end_ps - stream.start_ps)[is_eager] for stream, is_eager in zip(known, eager, strict=True)]
    return sum(int(time.sum()) for time in times) if known else None


def _gpu(
    gpu: StreamDevice, of_streams: Sequence[intervals.Int64s], groups: Sequence[intervals.Int64s], derives: bool
) -> tuple[StepEvents, Spans]:
    """Reads what one GPU did for steps: its events that count for steps, and its steps' spans.

    Args:
        of_streams, groups: what each stream's events are, and their groups.
        derives: whether to fill gaps between groups and to find spans, because the profile has no groups yet.
    """
    every = Spans.joined(
        [Spans(group, line.start_ps, line.end_ps) for line, group in zip(gpu.streams, groups, strict=True)]
    )
    group, spans = every.group, _recorded_spans(gpu.plane)
    if derives:
        order = np.lexsort((every.end, every.start))  # of events that start together XProf takes the shorter one first
        group[order] = _filled(group[order])
        spans = Spans.joined([spans, _runs(every.take(order))])
    launched = [np.zeros(0, np.bool_)]
    for stream in gpu.streams:
        number, has = stream.stat("correlation_id").integers_at(np.arange(len(stream)))
        launched.append(has & (number >= 0))
    events = StepEvents(group, every.start, every.end, np.concatenate([intervals.no_ints(), *of_streams]))
    events = events.take(np.concatenate(launched) & (group >= 0) & np.isin(group, spans.group))
    return events, spans.take(np.isin(spans.group, events.group))


def _filled(group: intervals.Int64s) -> intervals.Int64s:
    """The last group before each event that has none."""
    last = np.maximum.accumulate(np.where(group >= 0, np.arange(len(group)), -1))
    return np.where(last >= 0, group[last], -1)


def _runs(events: Spans) -> Spans:
    """The runs of events of one group; the events are in order, and from one on all have groups."""
    events = events.take(events.group >= 0)
    first = np.flatnonzero(intervals.opens(events.group))
    stop = np.maximum.reduceat(events.end, first) if len(first) else events.end
    return Spans(events.group[first], events.start[first], stop)


def _recorded_spans(plane: Plane) -> Spans:
    """The steps that the profile has already."""
    spans = []
    for line in plane.lines:
        if line.id & 0xFFFFFFFF == _STEPS_LINE:
            events = HostThread.of(line, line.events(("group_id",), places=False))
            group = events.stat("group_id")
            spans.append(Spans(group.values.integers(), events.start_ps[group.rows], events.end_ps[group.rows]))
    return Spans.joined(spans)


def _kinds(plane: Plane, stream: HostThread) -> intervals.Int64s:
    """What each event of a stream is, by its name and the shapes of the tensors that it works on."""
    table = plane.event_metadata
    ids, which = np.unique(stream.metadata_id, return_inverse=True)
    rows = table.rows(ids.astype(np.int64)).tolist()
    kind = np.array([_kind_of(table.name(row) if row >= 0 else "") for row in rows], np.int64)[which]
    stat = stream.stat("shape")
    computes = np.flatnonzero(kind[stat.rows] >= EventType.COMPUTE_32)
    column = stat.values.take(computes)
    filled, half = np.zeros(len(computes), np.bool_), np.zeros(len(computes), np.bool_)
    is_ref = np.flatnonzero(column.kind == KIND_REF)
    _, first, of = np.unique(column.value[is_ref], return_index=True, return_inverse=True)
    texts = plane.texts(column.take(is_ref[first]))
    filled[is_ref] = np.array([bool(text) for text in texts], np.bool_)[of]
    half[is_ref] = np.array(["half" in (text or "") for text in texts], np.bool_)[of]
    is_text = np.flatnonzero((column.kind == KIND_STR) & (column.length > 0 if len(column.length) else False))
    filled[is_text] = True
    half[is_text] = _holding(plane.source, b"half", column.value[is_text], column.length[is_text].astype(np.int64))
    kind[stat.rows[computes[filled]]] = np.where(half[filled], EventType.COMPUTE_16, EventType.COMPUTE_32)
    return kind


def _kind_of(name: str) -> int:
    """What an event of this name is; compute with 16 bits where the name says so."""
    computes = EventType.COMPUTE_16 if "half" in name or "fp16" in name else EventType.COMPUTE_32
    return _COPIES.get(copy_kind(name), computes)


def _holding(source: ByteSource, word: bytes, begin: intervals.Int64s, length: intervals.Int64s) -> intervals.Bools:
    """Which of the texts at these places of a file hold a word. It reads the file in pieces, in order of place."""
    out = np.zeros(len(begin), np.bool_)
    order = np.argsort(begin, kind="stable")
    done = 0
    while done < len(order):
        place = int(begin[order[done]])
        inside = int(np.searchsorted(begin[order], place + _READ_BYTES, side="right"))
        chosen = order[done : max(inside, done + 1)]
        done += len(chosen)
        stop = min(int((begin[chosen] + length[chosen]).max()), place + 2 * _READ_BYTES)
        data = np.frombuffer(source.read(place, stop - place), np.uint8)
        count = max(0, len(data) - len(word) + 1)
        is_word = np.ones(count, np.bool_)
        for shift, letter in enumerate(word):
            is_word &= data[shift : shift + count] == letter
        places = place + np.flatnonzero(is_word)
        first = np.searchsorted(places, begin[chosen])
        last = np.searchsorted(places, begin[chosen] + length[chosen] - len(word), side="right")
        out[chosen] = last > first
    return out


def _longest(spans: Spans, groups: intervals.Int64s) -> tuple[intervals.Int64s, intervals.Int64s]:
    """Start and end of the longest span of each group; the first of equally long ones counts."""
    spans = spans.take(np.lexsort((-np.arange(len(spans)), spans.end - spans.start, spans.group)))
    last = np.searchsorted(spans.group, groups, side="right") - 1
    return spans.start[last], spans.end[last]
