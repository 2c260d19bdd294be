"""What custom calls use of each unit, as a whole and by scope: the compiler's count of their instructions.

With `--xla_xprof_register_llo_debug_info` in `LIBTPU_INIT_ARGS` a core has ``% util`` of each unit from one trace point
of a kernel to the next, and the kernel's scopes on its line ``XLA TraceMe``. With another flag,
`--xla_xprof_enable_custom_call_tracing`, it has a line a unit, ``VALU Instructions``, whose events carry their
``llo_scopes`` (docs/custom_call_profiling.md and `llo_parser.py` of XProf).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s, grouped, intersect, union, union_length
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.xspace.trace import Line, Plane
from tpuprof.parsers.ops.core.ops import event_spans
from tpuprof.parsers.ops.counters.placed import CustomCall, CustomCalls
from tpuprof.parsers.ops.counters.samples import UNIT_LINE, UTILIZATION, Sampled, by_id
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource

_SCOPES = "llo_scopes"
SEEN = 0.01
"""A unit that was sampled for less than this part of the time that others were is not known."""

_MOST_SCOPES = 100
"""How many scopes of a kernel are kept apart, those that take longest."""


@dataclass(frozen=True, slots=True)
class ScopeUse:
    """What a custom call, or a scope of it, used of one unit, over the runs of one core.

    Attributes:
        program_id, symbol_id: of the op, 0 where unknown; name: the op's.
        scope: empty for the whole call.
        unit: as the profile calls it.
        runs: of the call; time_ps: of the call or of the scope in these.
        busy_ps: time in which the unit worked; sampled_ps: time that is known of.
    """

    program_id: int
    symbol_id: int
    name: str
    scope: str
    unit: str
    runs: int
    time_ps: int
    busy_ps: float
    sampled_ps: float


Spans = tuple[Int64s, Int64s]


@dataclass(frozen=True, slots=True, eq=False)
class _Busy:
    """How long a unit worked, and was watched, until any time: both grow from time to time in straight lines."""

    time_ps: Int64s
    busy_ps: Floats
    watched_ps: Floats

    def within(self, spans: Spans) -> tuple[float, float]:
        start, end = spans
        return tuple(
            float((np.interp(end, self.time_ps, known) - np.interp(start, self.time_ps, known)).sum())
            for known in (self.busy_ps, self.watched_ps)
        )  # type: ignore[return-value]


def busy_of(start: Int64s, end: Int64s, value: Floats) -> _Busy:
    """The busy time of a unit that was used by `value` percent in each span; spans may overlap."""
    times = np.concatenate([start, end])
    order = np.argsort(times, kind="stable")
    time = times[order]
    slopes = np.stack([np.concatenate([value / 100, -value / 100]), np.repeat([1.0, -1.0], len(start))])[:, order]
    step = np.diff(time, append=time[-1:])
    grown = np.cumsum(np.cumsum(slopes, axis=1) * step, axis=1)
    busy, watched = np.concatenate([np.zeros((2, 1)), grown[:, :-1]], axis=1)
    return _Busy(time, busy, watched)


def scope_uses(core: CustomCalls, tracks: Sequence[Sampled]) -> Iterator[ScopeUse]:
    """What each custom call of a core used of its units; nothing where the profile does not record it.

    Args:
        tracks: of `placed.placed_tracks`.
    """
    lanes = {
        track.event: busy_of(track.start_ps, track.end_ps, track.value)
        for track in tracks
        if track.stat == UTILIZATION and track.lasts
    }
    lines = [(match.group(1), line) for line in core.plane.lines if (match := UNIT_LINE.match(line.name))]
    if not (lanes or lines):
        return
    scopes = core.scopes() if lanes else {}
    traced = [(unit, *_instructions(core.plane, line)) for unit, line in lines]
    for call in core.calls:
        if lanes:
            yield from _of_lanes(call, lanes, scopes)
        for unit, spans, by_scope in traced:
            yield from _of_instructions(call, unit, spans, by_scope)


def merged_uses(kernels: list[ScopeUse]) -> tuple[ScopeUse, ...]:
    """The rows of several cores as one: times add up. Ops in the order of their first row, as are scopes and units."""

    def key(row: ScopeUse) -> tuple[int, int, str, str, str]:
        return row.program_id, row.symbol_id, row.name, row.scope, row.unit

    place: dict[tuple[object, ...], int] = {}
    for row in kernels:  # an op, a scope and a unit each where they are met first
        of = key(row)
        for part in (of[:3], of[:4], of):
            place.setdefault(part, len(place))

    def order(row: ScopeUse) -> tuple[int, ...]:
        of = key(row)
        return tuple(place[part] for part in (of[:3], of[:4], of))

    out = []
    for _, rows in groupby(sorted(kernels, key=order), key):
        first, *others = rows
        out.append(
            replace(
                first,
                runs=first.runs + sum(row.runs for row in others),
                time_ps=first.time_ps + sum(row.time_ps for row in others),
                busy_ps=first.busy_ps + sum(row.busy_ps for row in others),
                sampled_ps=first.sampled_ps + sum(row.sampled_ps for row in others),
            )
        )
    return tuple(out)


def _use(call: CustomCall, scope: str, unit: str, time_ps: int, busy_ps: float, sampled_ps: float) -> ScopeUse:
    return ScopeUse(call.program_id, call.symbol_id, call.name, scope, unit, call.runs, time_ps, busy_ps, sampled_ps)


def _length(spans: Spans) -> int:
    return int((spans[1] - spans[0]).sum())


def _of_lanes(call: CustomCall, lanes: Mapping[str, _Busy], scopes: Mapping[str, Spans]) -> Iterator[ScopeUse]:
    """The call as a whole, then its scopes by their time, by ``% util``."""
    inside = {scope: intersect(*call.spans, *spans) for scope, spans in scopes.items()}
    longest = sorted(inside, key=lambda scope: _length(inside[scope]), reverse=True)[:_MOST_SCOPES]
    parts = {"": call.spans, **{scope: inside[scope] for scope in longest if _length(inside[scope])}}
    for scope, spans in parts.items():
        for unit, lane in lanes.items():
            busy, watched = lane.within(spans)
            if watched > SEEN * _length(spans):
                yield _use(call, scope, unit, _length(spans), busy, watched)


def _instructions(plane: Plane, line: Line) -> tuple[Spans, dict[str, Spans]]:
    """When the instructions of a unit ran, and when those of each scope."""
    events = line.events((_SCOPES,), places=False)
    start, end = event_spans(line, events)
    known, of_event = np.unique(events.metadata_id.astype(np.int64), return_inverse=True)
    rows = plane.event_metadata.rows(known)
    metadata = MetadataStats(OpSource(plane.event_metadata, plane.stat_metadata), rows, (_SCOPES,))
    key, texts = of_event.astype(np.int64), metadata.texts(_SCOPES)
    if _SCOPES in events.stats:
        column = events.stats[_SCOPES]
        own = np.flatnonzero(column.kind)
        _, first, text_of = np.unique(column.value[own], return_index=True, return_inverse=True)
        key[own] = len(texts) + text_of
        texts = [*texts, *plane.texts(column.take(own[first]))]
    by_scope = grouped((_scope(texts[number]), chosen) for number, chosen in by_id(key))
    joined = {scope: np.concatenate(rows) for scope, rows in by_scope.items() if scope}
    return union(start, end), {scope: union(start[rows], end[rows]) for scope, rows in joined.items()}


def _scope(text: str | None) -> str:
    """Scopes as one text, the outermost first; they are written as a list of JSON."""
    if not text or text == "[]":
        return ""
    try:
        parts = json.loads(text)
    except ValueError:
        return text
    return " / ".join(map(str, parts)) if isinstance(parts, list) else text


def _of_instructions(call: CustomCall, unit: str, spans: Spans, by_scope: Mapping[str, Spans]) -> Iterator[ScopeUse]:
    """The call as a whole, then its scopes, by the instructions of one unit: of the time of the whole call."""
    whole = _length(call.spans)
    for scope, times in {"": spans, **by_scope}.items():
        busy = union_length(*intersect(*call.spans, *times))
        if busy:
            yield _use(call, scope, unit, whole, float(busy), float(whole))
