"""The runs of kernels (custom calls) on a core, and what the spans inside them say: waits for copies, and bodies.

A kernel's scopes lie on the line ``XLA TraceMe`` of its core. Pallas names those of its pipeline, an ``ep_`` before
each: in a grid step it starts the copies of the next blocks (``ep_copy_in``), waits for those of this one
(``ep_wait_in``, an operand after the other), runs the body (``ep_run_kernel``, with the author's own scopes inside),
starts to copy a block out (``ep_copy_out``), and waits for the one before it (``ep_wait_out``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s, grouped, no_ints, union_length
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.xspace.events import Events
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane
from tpuprof.parsers.ops.core import ops
from tpuprof.parsers.ops.device import CUSTOM_CALL, is_kernel
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource

SpanKind = Literal["wait in", "wait out", "body", "copies", "scope"]
"""What a span inside a kernel is: it waits for blocks to come, or for results to be written; it runs the body of a grid
step; it starts copies; or it is a scope that the author named."""

_COUNTS = ("flops", "bytes_accessed")
_BODY = "ep_run_kernel"
_DRAINS = "ep_finalize"
_WAIT = pattern(r"(?:^|_)wait(?:_|$)|^dma_wait")
_NAMES = (b"ep_wait", b"ep_run_kernel", b"dma_wait")
_COPIES = pattern(r"^ep_(?:copy|initialize)")
_MOST_PARTS = 60
_MOST_STEP_SPANS = 200


def span_kind(name: str) -> SpanKind:
    """What a span of that name is. At a kernel's end (`ep_finalize`) Pallas waits for its last results."""
    if name == _BODY:
        return "body"
    if name == _DRAINS or (_WAIT.search(name) and "out" in name):
        return "wait out"
    if _WAIT.search(name):
        return "wait in"
    return "copies" if _COPIES.match(name) else "scope"


@dataclass(frozen=True, slots=True)
class CallPart:
    """Spans of one name inside the runs of a kernel: how many, and how long together."""

    name: str
    count: int
    total_ps: int

    @property
    def kind(self) -> SpanKind:
        return span_kind(self.name)


@dataclass(frozen=True, slots=True)
class StepSpan:
    """A span of one grid step, from the end of the body before it on; `depth` counts the spans around it."""

    name: str
    start_ps: int
    end_ps: int
    depth: int


@dataclass(frozen=True, slots=True)
class CallRuns:
    """The runs of one kernel, over some cores.

    Attributes:
        program_id, name: which op it is.
        duration_ps: int64[runs], in the order of the file, core after core.
        flops, hbm_bytes: of a run by the compiler's count, the mean over runs; NaN where nobody counted, which the
            count 0 says too.
        traced_ps: time of the runs that have spans inside, all together; 0 where none has.
        wait_in_ps, wait_out_ps, body_ps: time of these in the runs, spans that overlap counted once.
        waits_in_ps: the time of the waits for blocks by their place in a grid step, which is that of the operand; ()
            where steps differ in how many they have.
        grid_steps: bodies in a run; 0 where none is known, or runs differ.
        parts: spans by name, those that take longest first.
        step: the spans of one grid step, that of the middle length, of one run; () without bodies.
    """

    program_id: int
    name: str
    duration_ps: Int64s
    flops: float
    hbm_bytes: float
    traced_ps: int
    wait_in_ps: int
    wait_out_ps: int
    body_ps: int
    waits_in_ps: tuple[int, ...]
    grid_steps: int
    parts: tuple[CallPart, ...]
    step: tuple[StepSpan, ...]

    def part(self, ps: int) -> float | None:
        """Some time inside, of that of the runs that have spans (0-1); None where none has."""
        return ps / self.traced_ps if self.traced_ps else None

    @property
    def wait_places(self) -> tuple[float, ...]:
        """Of the waits for blocks the part (0-1) at each place of a grid step; () where unknown."""
        return tuple(ps / self.wait_in_ps for ps in self.waits_in_ps) if self.wait_in_ps else ()


def has_waits(plane: Plane) -> bool:
    """Whether spans of kernels lie on a core's line, by the names of its events."""
    return plane.line(ops.TRACE_ME_LINE) is not None and any(name in plane.event_metadata.body for name in _NAMES)


def core_calls(plane: Plane, on_chunk: ChunkDone | None = None) -> Iterator[CallRuns]:
    """The kernels of a core, in the order of their metadata ids."""
    ids = _kernel_ids(plane)
    if not ids:
        return
    runs = _runs(plane, ids, on_chunk)
    scopes = _Scopes.of(plane.line(ops.TRACE_ME_LINE), plane) if runs else None
    counts = _of_metadata(plane, ids)
    for key, (start, end, duration, *of_events) in runs.items():
        known = zip(of_events, counts[key], strict=True)
        flops, moved = (_mean(own) if np.isfinite(own).any() else of_op for own, of_op in known)
        yield _call(CallRuns(*key, duration, flops, moved, 0, 0, 0, 0, (), 0, (), ()), start, end, scopes)


def _kernel_ids(plane: Plane) -> Mapping[int, tuple[int, str]]:
    """Program and name of each kernel, by metadata id."""
    metadata = plane.event_metadata
    if CUSTOM_CALL.encode() not in metadata.body and CUSTOM_CALL.encode() not in plane.stat_metadata.body:
        return {}
    every = np.arange(len(metadata), dtype=np.int64)
    stats = MetadataStats(OpSource(metadata, plane.stat_metadata), every, (ops.CATEGORY, "program_id"))
    chosen = np.flatnonzero(stats.is_one_of(ops.CATEGORY, (CUSTOM_CALL,))).tolist()
    programs, ids = stats.unsigned("program_id")[0], metadata.ids.tolist()
    rows = [row for row in chosen if is_kernel(metadata.name(row))]
    return {ids[row]: (int(programs[row]), ops.op_name(metadata, row, ids[row])) for row in rows}


def _of_metadata(plane: Plane, ids: Mapping[int, tuple[int, str]]) -> Mapping[tuple[int, str], tuple[float, float]]:
    """FLOPs and bytes of a run as the metadata of each kernel counts them; NaN for no count, and for one of 0."""
    numbers = np.array(list(ids), np.int64)
    rows = plane.event_metadata.rows(numbers)
    stats = MetadataStats(OpSource(plane.event_metadata, plane.stat_metadata), rows, _COUNTS)
    counted = (stats.number(name) for name in _COUNTS)
    columns = [np.where(each > 0, each, np.nan).tolist() for each in counted]
    return {ids[number]: counts for number, counts in zip(ids, zip(*columns, strict=True), strict=True)}


def _mean(values: Floats) -> float:
    """The mean of the counts that are known and not 0; NaN without any."""
    known = values[values > 0]
    return float(known.mean()) if len(known) else np.nan


def _runs(
    plane: Plane, ids: Mapping[int, tuple[int, str]], on_chunk: ChunkDone | None
) -> Mapping[tuple[int, str], _Columns]:
    """Start and end on the trace's clock, duration by the device's, FLOPs and bytes of the runs of each kernel."""
    found: dict[tuple[int, str], list[_Columns]] = {}
    wanted = np.array(sorted(ids), np.int64)
    stats = (*ops.DEVICE_SPAN, *_COUNTS)
    for line in plane.lines:
        if line.name != ops.OPS_LINE:
            continue
        names = tuple(plane.stat_ids(stats))
        for room in line.blocks(stats, on_chunk):
            events = room.events(names)
            mine = np.flatnonzero(np.isin(events.metadata_id, wanted))
            if not len(mine):
                continue
            start, end = ops.event_spans(line, events)
            begin, finish = ops.device_spans(events, start, end)
            own = [_counts(events, name) for name in _COUNTS]
            for number in np.unique(events.metadata_id[mine]).tolist():
                at = mine[events.metadata_id[mine] == number]
                found.setdefault(ids[number], []).append(
                    (start[at], end[at], finish[at] - begin[at], own[0][at], own[1][at])
                )
    return {key: _joined(parts) for key, parts in found.items()}


_Columns = tuple[Int64s, Int64s, Int64s, Floats, Floats]


def _joined(parts: Sequence[_Columns]) -> _Columns:
    starts, ends, durations, flops, moved = (np.concatenate(column) for column in zip(*parts, strict=True))
    return starts, ends, durations, flops, moved


def _counts(events: Events, name: str) -> Floats:
    """float64[events]: what each counts of itself; NaN where it does not."""
    column = events.stats.get(name)
    return np.full(len(events.metadata_id), np.nan) if column is None else column.floats()


@dataclass(frozen=True, slots=True, eq=False)
class _Scopes:
    """The spans of a core by their start: name numbers, starts and ends."""

    names: tuple[str, ...]
    name: Int64s
    start: Int64s
    end: Int64s

    @classmethod
    def of(cls, line: Line | None, plane: Plane) -> _Scopes | None:
        """Those of a line; spans of one name are one, whatever their metadata ids."""
        if line is None:
            return None
        events = line.events(places=False)
        start, end = ops.event_spans(line, events)
        order = np.lexsort((-end, start))
        known, number = np.unique(events.metadata_id, return_inverse=True)
        labels = [plane.event_metadata.label(int(each)) for each in known]
        names = tuple(dict.fromkeys(labels))
        place = {label: at for at, label in enumerate(names)}
        of_id = np.array([place[label] for label in labels], np.int64)
        name = of_id[number] if len(known) else no_ints()
        return cls(names, name[order], start[order], end[order])

    def inside(self, start: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
        """Rows of the spans that lie in one of some disjoint runs, which are in order; and the run of each."""
        run = np.searchsorted(start, self.start, "right") - 1
        fits = (run >= 0) & (self.end <= end[np.maximum(run, 0)])
        rows = np.flatnonzero(fits)
        return rows, run[rows]

    def is_a(self, *kinds: SpanKind) -> np.ndarray:
        """bool[names]: which names are of some kinds."""
        return np.array([span_kind(name) in kinds for name in self.names], np.bool_)


def _call(none: CallRuns, start: Int64s, end: Int64s, scopes: _Scopes | None) -> CallRuns:
    """One kernel of a core with the spans inside its runs, given one without."""
    if scopes is None:
        return none
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    rows, run = scopes.inside(start, end)
    if not len(rows):
        return none
    number, begin, finish = scopes.name[rows], scopes.start[rows], scopes.end[rows]
    traced = np.unique(run)

    def length(*kinds: SpanKind) -> int:
        chosen = scopes.is_a(*kinds)[number]
        return union_length(begin[chosen], finish[chosen])

    body = scopes.is_a("body")[number]
    bodies = np.bincount(run[body], minlength=len(start))[traced]
    is_even = bool(len(bodies)) and bool((bodies == bodies[0]).all())
    return replace(
        none,
        traced_ps=int((end - start)[traced].sum()),
        wait_in_ps=length("wait in"),
        wait_out_ps=length("wait out"),
        body_ps=length("body"),
        waits_in_ps=_by_place(run, begin, finish, scopes.is_a("wait in")[number], body),
        grid_steps=int(bodies[0]) if is_even else 0,
        parts=_parts(scopes, number, begin, finish),
        step=_middle_step(scopes, number, begin, finish, body, run),
    )


def _parts(scopes: _Scopes, number: Int64s, begin: Int64s, finish: Int64s) -> tuple[CallPart, ...]:
    found = []
    for each in np.unique(number).tolist():
        mine = number == each
        found.append(CallPart(scopes.names[each], int(mine.sum()), union_length(begin[mine], finish[mine])))
    return tuple(sorted(found, key=lambda part: (-part.total_ps, part.name))[:_MOST_PARTS])


def _by_place(run: Int64s, begin: Int64s, finish: Int64s, waits: np.ndarray, body: np.ndarray) -> tuple[int, ...]:
    """Time of the waits by their place in a grid step; () where steps have different numbers of them."""
    if not waits.any() or not body.any():
        return ()
    step = np.searchsorted(begin[body], begin[waits])  # spans are in order: the body that comes next
    group, first, count = np.unique(step, return_index=True, return_counts=True)
    if len(group) < 2 or not (count == count[0]).all():
        return ()
    place = np.arange(len(step)) - np.repeat(first, count)
    lasted = (finish - begin)[waits]
    return tuple(int(lasted[place == at].sum()) for at in range(int(count[0])))


def _middle_step(
    scopes: _Scopes, number: Int64s, begin: Int64s, finish: Int64s, body: np.ndarray, run: Int64s
) -> tuple[StepSpan, ...]:
    """The spans from the end of a body to that of the next one, for the step of the middle length."""
    at = np.flatnonzero(body)
    same = np.flatnonzero(run[at][1:] == run[at][:-1])
    if not len(same):
        return ()
    lasted = finish[at[same + 1]] - finish[at[same]]
    chosen = same[np.argsort(lasted, kind="stable")[len(same) // 2]]
    since, until = int(finish[at[chosen]]), int(finish[at[chosen + 1]])
    rows = np.flatnonzero((begin >= since) & (finish <= until))[:_MOST_STEP_SPANS]
    spans, around = [], list[int]()
    for row in rows.tolist():
        around = [end for end in around if end > begin[row]]
        name = scopes.names[int(number[row])]
        spans.append(StepSpan(name, int(begin[row]) - since, int(finish[row]) - since, len(around)))
        around.append(int(finish[row]))
    return tuple(spans)


def merged_calls(calls: Iterable[CallRuns]) -> tuple[CallRuns, ...]:
    """Adds up the kernels of several cores or hosts, those with most time first; ties go by name."""
    groups = grouped(((call.program_id, call.name), call) for call in calls)
    made = [joined_calls(group) for group in groups.values()]
    return tuple(sorted(made, key=lambda call: (-int(call.duration_ps.sum()), call.name, call.program_id)))


def joined_calls(calls: Sequence[CallRuns]) -> CallRuns:
    """Several calls as one, which has the name of the first."""
    if len(calls) == 1:
        return calls[0]
    parts: dict[str, CallPart] = {}
    for part in (part for call in calls for part in call.parts):
        known = parts.get(part.name, CallPart(part.name, 0, 0))
        parts[part.name] = CallPart(part.name, known.count + part.count, known.total_ps + part.total_ps)
    traced = [call for call in calls if call.traced_ps]
    places = {len(call.waits_in_ps) for call in traced}
    steps = {call.grid_steps for call in traced}
    return CallRuns(
        program_id=calls[0].program_id,
        name=calls[0].name,
        duration_ps=np.concatenate([call.duration_ps for call in calls]),
        flops=_mean(np.array([call.flops for call in calls])),
        hbm_bytes=_mean(np.array([call.hbm_bytes for call in calls])),
        traced_ps=sum(call.traced_ps for call in calls),
        wait_in_ps=sum(call.wait_in_ps for call in calls),
        wait_out_ps=sum(call.wait_out_ps for call in calls),
        body_ps=sum(call.body_ps for call in calls),
        waits_in_ps=tuple(map(sum, zip(*(call.waits_in_ps for call in traced), strict=True)))
        if len(places) == 1
        else (),
        grid_steps=steps.pop() if len(steps) == 1 else 0,
        parts=tuple(sorted(parts.values(), key=lambda part: (-part.total_ps, part.name))[:_MOST_PARTS]),
        step=next((call.step for call in calls if call.step), ()),
    )
