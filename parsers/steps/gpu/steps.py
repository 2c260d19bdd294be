"""GPUs: steps, where their time went, and the ops that ran, as XProf gives them for profiles without TPUs.

A GPU's plane has a line a stream. Its events belong to the step whose root launched them
(`parsers.steps.groups.groups`); one that no step launched belongs to the step of the event before it on that GPU. A
step's span on a GPU is a run of events of one group; the longest on any GPU is the step's. Within it each moment counts
for the most important thing that some GPU did: compute with 16 bits, with 32 bits, copies to the host, copies on and
between devices, collectives, copies from the host, in this order; the rest is other time. Of more than `_FEW` steps the
first and the last are left out, as the profile may hold only a part of them.

XProf counts nothing of the host where there are GPUs: of the nine parts that it prints of a step those of the host are
0, and what the host did is other time. Sources: `derived_timeline.cc`, `xplane_to_step_events.cc`, `event_span.cc`,
`step_events_to_steps_db.cc`. Different here: an event of no length counts for nothing, while in XProf's sweep it may
claim all time after it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Columns, Int64s, no_ints, opens, union_length
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.formats.xspace.metadata import KIND_REF, KIND_STR
from tpuprof.parsers.formats.xspace.source import ByteSource
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.ops.device import device_ordinal, is_gpu
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.host.events import HostEvents, HostThread, read_threads
from tpuprof.parsers.steps.gpu.ops import OP_STATS, GpuOp, gpu_ops
from tpuprof.parsers.steps.groups.groups import GROUP_STATS, Groups, Root, event_groups, is_grouped, recorded_groups
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.parsers.steps.requests.spans import Spans

STREAM_STATS = tuple(dict.fromkeys((*GROUP_STATS, *OP_STATS, "shape")))

_STEPS_LINE = 0xDEADBEEF
"""Low 32 bits of the id of the line that holds steps in a profile which has them already."""

# What a GPU does, by importance.
_FROM_HOST, _COLLECTIVE, _BETWEEN, _TO_HOST, _COMPUTE_32, _COMPUTE_16 = range(6)
_KINDS = 6
_COPIES = {"MemcpyHToD": _FROM_HOST, "MemcpyDToH": _TO_HOST, "MemcpyDToD": _BETWEEN}

_FEW = 5

_STREAM = "Stream "
"""What the names of lines with the events of streams begin with; others derive from these."""

_READ_BYTES = 1 << 23


@dataclass(frozen=True, slots=True)
class GpuStep:
    """One step.

    Attributes:
        name: the root's name and step number, else the group's number, which XProf always prints.
        group_id: the group's number.
        start_ps, duration_ps: the step's longest span on a GPU.
        breakdown: where the duration went; XProf's generic step, without the parts that are always 0.
    """

    name: str
    group_id: int
    start_ps: int
    duration_ps: int
    breakdown: GenericBreakdown


@dataclass(frozen=True, slots=True)
class GpuBusy:
    """How long some stream of a GPU ran something, and the time from the first to the last of that; 0 without any."""

    number: int
    busy_ps: int
    span_ps: int


@dataclass(frozen=True, slots=True)
class GpuSummary:
    """What a host's GPUs did.

    Attributes:
        device_count: number of GPU planes.
        device_type: the first GPU as XProf names it, such as ``AMD GPU - gfx942``; ``GPU`` where nothing tells.
        steps: the steps with compute, by group.
        dropped: number of steps left out at both ends.
        compute_16bit_ps, compute_32bit_ps: time of all groups with a span on a GPU; 16-bit compute hides the other.
        ops: framework ops by self time, then name.
        busy: each GPU's time.
    """

    device_count: int
    device_type: str
    steps: tuple[GpuStep, ...]
    dropped: int
    compute_16bit_ps: int
    compute_32bit_ps: int
    ops: tuple[GpuOp, ...]
    busy: tuple[GpuBusy, ...] = ()


def gpu_summary(trace: Trace, host: HostEvents | None, on_chunk: ChunkDone | None = None) -> GpuSummary | None:
    """Summarises the GPUs of a profile; None where it has none, or TPUs beside them, which alone count then.

    Args:
        host: the host's threads, decoded with `GROUP_STATS`, or None for a profile without them.
    """
    planes = [plane for plane in trace.planes if is_gpu(plane)]
    if not planes or any(plane.name.startswith("/device:TPU:") for plane in trace.planes):
        return None
    streams = [list(read_threads(plane, STREAM_STATS, on_chunk)) for plane in planes]
    every = [stream for of_plane in streams for stream in of_plane]
    grouped = is_grouped(trace)
    groups = Groups((), (), None, recorded_groups(every)) if host is None else event_groups(host, (), every, grouped)
    of_events = iter([line.of_events() for line in groups.streams])
    gpus = [
        _gpu(plane, of_plane, [next(of_events) for _ in of_plane], not grouped)
        for plane, of_plane in zip(planes, streams, strict=True)
    ]
    events, spans = _Events.joined([events for events, _ in gpus]), Spans.joined([spans for _, spans in gpus])
    steps, whole = _steps(events, spans, groups.roots)
    kept = steps[1:-1] if len(steps) > _FEW else steps
    return GpuSummary(
        device_count=len(planes),
        device_type=gpu_type(planes[0]),
        steps=kept,
        dropped=len(steps) - len(kept),
        compute_16bit_ps=int(whole[_COMPUTE_16]),
        compute_32bit_ps=int(whole[_COMPUTE_32]),
        ops=gpu_ops(list(zip(planes, streams, strict=True)), HloModules.of(trace)),
        busy=tuple(_busy(plane, of_plane) for plane, of_plane in zip(planes, streams, strict=True)),
    )


def _busy(plane: Plane, streams: Sequence[HostThread]) -> GpuBusy:
    mine = [stream for stream in streams if stream.line.name.startswith(_STREAM)]
    start = np.concatenate([no_ints(), *(stream.start_ps for stream in mine)])
    end = np.concatenate([no_ints(), *(stream.end_ps for stream in mine)])
    whole = int(end.max()) - int(start.min()) if len(start) else 0
    return GpuBusy(device_ordinal(plane), union_length(start, end), whole)


_NVIDIA = (
    ((2, 0), "Fermi"),
    ((3, 0), "Kepler"),
    ((5, 0), "Maxwell"),
    ((6, 0), "Pascal"),
    ((7, 0), "Volta"),
    ((7, 5), "Turing"),
    ((8, 0), "Ampere"),
    ((8, 9), "Ada Lovelace"),
    ((9, 0), "Hopper"),
    ((10, 0), "Blackwell"),
)
_AMD = {(9, 4): "gfx942", (9, 5): "gfx950"}
_AMD_SERIES = {9: "gfx-9XX series", 10: "gfx-10XX series", 11: "gfx-11XX series"}


def gpu_type(plane: Plane) -> str:
    """XProf's name of a GPU, from vendor, device name and compute capability in the plane's stats."""
    stats = plane.stats
    major, minor = (
        value if isinstance(value := stats.get(f"compute_cap_{part}"), int) else 0 for part in ("major", "minor")
    )
    if stats.get("device_vendor") == "Nvidia":
        named = [name for lowest, name in _NVIDIA if lowest[0] == major and lowest[1] <= minor]
        return f"Nvidia GPU ({named[-1]})" if named else "Nvidia GPU"
    if stats.get("device_vendor") == "AMD":
        name = stats.get("gpu_device_name")
        if not (isinstance(name, str) and re.fullmatch("gfx[0-9a-fA-F]{3,}", name)):  # the architecture: gfx90a
            name = _AMD.get((major, minor)) or _AMD_SERIES.get(major)
        return f"AMD GPU - {name}" if name else "AMD GPU"
    return "GPU"


@dataclass(frozen=True, slots=True)
class _Events(Columns):
    """The events of GPUs that count for steps: int64[n] each; `kind` is one of `_FROM_HOST` and following."""

    group: Int64s
    start: Int64s
    end: Int64s
    kind: Int64s


def _gpu(plane: Plane, streams: Sequence[HostThread], groups: Sequence[Int64s], derives: bool) -> tuple[_Events, Spans]:
    """Reads what one GPU did for steps: its events that count for steps, and its steps' spans.

    Args:
        groups: the groups of each stream's events.
        derives: whether to fill gaps between groups and to find spans, because the profile has no groups yet.
    """
    every = Spans.joined(
        [Spans(group, line.start_ps, line.end_ps) for line, group in zip(streams, groups, strict=True)]
    )
    group, spans = every.group, _recorded_spans(plane)
    if derives:
        order = np.lexsort((every.end, every.start))  # of events that start together XProf takes the shorter one first
        group[order] = _filled(group[order])
        spans = Spans.joined([spans, _runs(every.take(order))])
    kinds, launched = [no_ints()], [np.zeros(0, np.bool_)]
    for stream in streams:
        number, has = stream.stat("correlation_id").integers_at(np.arange(len(stream)))
        launched.append(has & (number >= 0))
        kinds.append(_kinds(plane, stream))
    events = _Events(group, every.start, every.end, np.concatenate(kinds))
    events = events.take(np.concatenate(launched) & (group >= 0) & np.isin(group, spans.group))
    return events, spans.take(np.isin(spans.group, events.group))


def _filled(group: Int64s) -> Int64s:
    """The last group before each event that has none."""
    last = np.maximum.accumulate(np.where(group >= 0, np.arange(len(group)), -1))
    return np.where(last >= 0, group[last], -1)


def _runs(events: Spans) -> Spans:
    """The runs of events of one group; the events are in order, and from one on all have groups."""
    events = events.take(events.group >= 0)
    first = np.flatnonzero(opens(events.group))
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


def _kinds(plane: Plane, stream: HostThread) -> Int64s:
    """What each event of a stream is, by its name and the shapes of the tensors that it works on."""
    table = plane.event_metadata
    ids, which = np.unique(stream.metadata_id, return_inverse=True)
    rows = table.rows(ids.astype(np.int64)).tolist()
    kind = np.array([_kind_of(table.name(row) if row >= 0 else "") for row in rows], np.int64)[which]
    stat = stream.stat("shape")
    computes = np.flatnonzero(kind[stat.rows] >= _COMPUTE_32)
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
    kind[stat.rows[computes[filled]]] = np.where(half[filled], _COMPUTE_16, _COMPUTE_32)
    return kind


def _kind_of(name: str) -> int:
    """What an event of this name is; compute with 16 bits where the name says so."""
    copy = _COPIES.get(parse_framework_op(name).type) if name[:6].lower() == "memcpy" else None
    if copy is not None:
        return copy
    if name[:4].lower() == "nccl":
        return _COLLECTIVE
    return _COMPUTE_16 if "half" in name or "fp16" in name else _COMPUTE_32


def _holding(source: ByteSource, word: bytes, begin: Int64s, length: Int64s) -> Bools:
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


def _steps(events: _Events, spans: Spans, roots: Sequence[Root]) -> tuple[tuple[GpuStep, ...], Int64s]:
    """The steps of all GPUs together, and the time of each kind in all groups, also outside of steps."""
    groups, step = np.unique(events.group, return_inverse=True)
    begin, stop = _longest(spans, groups)
    inside, whole = sweep(step.astype(np.int64), events.start, events.end, events.kind, begin, stop)
    does_compute = (events.kind >= _COMPUTE_32) & (events.end > events.start)
    computes = np.bincount(step[does_compute], minlength=len(groups)) > 0
    out = []
    for row in np.flatnonzero(computes & (stop > begin)).tolist():
        number, spent, duration = int(groups[row]), inside[row].tolist(), int(stop[row] - begin[row])
        breakdown = GenericBreakdown(
            device_compute_ps=float(spent[_COMPUTE_16] + spent[_COMPUTE_32]),
            device_to_device_ps=float(spent[_BETWEEN]),
            device_collectives_ps=float(spent[_COLLECTIVE]),
            input_ps=float(spent[_FROM_HOST]),
            output_ps=float(spent[_TO_HOST]),
            all_other_ps=float(max(0, duration - sum(spent))),
        )
        out.append(GpuStep(_name(number, roots), number, int(begin[row]), duration, breakdown))
    return tuple(out), whole


def _longest(spans: Spans, groups: Int64s) -> tuple[Int64s, Int64s]:
    """Start and end of the longest span of each group; the first of equally long ones counts."""
    spans = spans.take(np.lexsort((-np.arange(len(spans)), spans.end - spans.start, spans.group)))
    last = np.searchsorted(spans.group, groups, side="right") - 1
    return spans.start[last], spans.end[last]


def _name(group: int, roots: Sequence[Root]) -> str:
    if not 0 <= group < len(roots):
        return str(group)
    root = roots[group]
    return f"{root.name} {group if root.step_num is None else root.step_num}"


def sweep(step: Int64s, start: Int64s, end: Int64s, kind: Int64s, begin: Int64s, stop: Int64s) -> tuple[Int64s, Int64s]:
    """Time by step and most important kind.

    Args:
        step, start, end, kind: of each event.
        begin, stop: of each step.

    Returns:
        int64[steps, _KINDS], what lies within the steps, and int64[_KINDS], with what lies outside of them.
    """
    times = np.concatenate([start, end])
    steps, kinds = np.tile(step, 2), np.tile(kind, 2)
    change = np.repeat(np.array([1, -1], np.int32), len(step))
    order = np.lexsort((times, steps))
    times, steps, kinds, change = times[order], steps[order], kinds[order], change[order]
    top = np.full(len(order), -1, np.int64)
    for number in range(_KINDS):  # every step's changes add up to 0, so one sum runs over all of them
        top[np.cumsum(np.where(kinds == number, change, 0)) > 0] = number
    chosen = np.flatnonzero((steps[1:] == steps[:-1]) & (top[:-1] >= 0) & (times[1:] > times[:-1]))
    of, cell = steps[chosen], steps[chosen] * _KINDS + top[chosen]
    since, until = times[chosen], times[chosen + 1]
    within = np.maximum(np.minimum(until, stop[of]) - np.maximum(since, begin[of]), 0)
    inside = sum_by_key(cell, within, len(begin) * _KINDS).reshape(len(begin), _KINDS)
    return inside, sum_by_key(top[chosen], until - since, _KINDS)
