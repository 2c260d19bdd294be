"""Which event leads to which: a launch on the host to the module on the core, an asynchronous op's start to its done.

The stats that group a trace's events name producers and consumers (`parsers.steps.groups.links`). Kernels of a GPU
refer to their launches by ids. The stat ``flow`` holds other flows, as XProf's trace viewer draws them
(`xplane_to_trace_container.cc`).
The two ops of an asynchronous one, and its span, are put together by their names (module `async_ops`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, distinct, no_ints, numbered, opens
from tpuprof.parsers.base.record import Sized, dataclass, field
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Trace
from tpuprof.parsers.ops.core.ops import MODULES_LINE
from tpuprof.parsers.ops.device import is_gpu, is_tensor_core
from tpuprof.parsers.ops.host_events.events import Ends, HostEvents, HostThread, SparseStat
from tpuprof.parsers.steps.groups.links import LINK_STATS, Names, core_links, correlated, known_names, thread_links
from tpuprof.parsers.timeline.model import Timeline, Track, TrackId
from tpuprof.parsers.timeline.read.async_ops import latest, op_pairs, span_ends

FlowKind = Literal["launch", "async", "flow"]
"""From a host to a device; from the start of an asynchronous op over its span to its done; any other."""

_KINDS: tuple[FlowKind, ...] = get_args(FlowKind)
_ASYNC = _KINDS.index("async")

_DEVICE_STATS = ("_pt", "_p", "_ct", "_c", "_a", "flow", "correlation_id", "hlo_op")
_ENDS = (
    *(("_pt", "_p"), ("_ct", "_c"), ("flow",), ("correlation_id",), ("hlo_op",)),
    *(("run_id", "queue_id"), ("id", "iter_num"), ("request_id", "queue_addr")),
)
"""Stats that together make an end of a flow."""

_IN, _OUT = 1, 2  # the low bits of the stat `flow`; the next 56 are its id, the rest its category
_ID_BITS = np.uint64((1 << 56) - 1)
_CHUNK = 1 << 18

_MOST_LINES = 8
"""How many lines of ops, and of asynchronous ops, it pairs up in a plane; sound profiles have one each."""


class Flow(NamedTuple):
    """A link between an event and another one.

    Attributes:
        direction: ``in`` if the other event leads to it, ``out`` if it leads to the other event.
        kind: see `FlowKind`.
        section, track, event: the other event: index of its section, of its track in that, and its own in the track.
    """

    direction: Literal["in", "out"]
    kind: FlowKind
    section: int
    track: int
    event: int


@dataclass(frozen=True, slots=True, eq=False)
class Flows(Sized):
    """All flows of a timeline. Only events with flows take room.

    Attributes:
        places: section and track of each track that may have flows, ascending.
        first: int64[n + 1]; the events of each of these tracks are `events` from its entry to the next.
        events: int64[e]; the events with flows, their indices ascending in each track.
        source, target: int32[m]; flow i leads from `events[source[i]]` to `events[target[i]]`. By source, and within
            one by the targets' starts.
        kind: uint8[m]; index in the values of `FlowKind`.
        by_target: int32[m]; the flows by target, and within one by the sources' starts.
    """

    sized_by = "source"
    places: tuple[tuple[int, int], ...]
    first: Int64s
    events: Int64s
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    kind: NDArray[np.uint8]
    by_target: NDArray[np.int32]

    def of(self, section: int, track: int, event: int, limit: int | None = None) -> tuple[Flow, ...]:
        """The flows of an event: those that lead to it, then those that lead on, each in order of time.

        Args:
            limit: how many of each at most; None for all.
        """
        own = self._events_of(section, track)
        node = own.start + int(np.searchsorted(self.events[own], event))
        if node == own.stop or self.events[node] != event:
            return ()
        ends = np.array([node, node + 1], np.int32)  # of the columns' type, or they would be copied
        comes = slice(*np.searchsorted(self.target, ends, sorter=self.by_target).tolist())
        goes = range(*np.searchsorted(self.source, ends).tolist())
        return (
            *(self._flow("in", int(self.source[flow]), flow) for flow in self.by_target[comes][:limit].tolist()),
            *(self._flow("out", int(self.target[flow]), flow) for flow in goes[:limit]),
        )

    def _events_of(self, section: int, track: int) -> slice:
        place = bisect_left(self.places, (section, track))
        is_known = self.places[place : place + 1] == ((section, track),)
        return slice(*self.first[place : place + 2].tolist()) if is_known else slice(0, 0)

    def _flow(self, direction: Literal["in", "out"], other: int, flow: int) -> Flow:
        place = self.places[int(np.searchsorted(self.first, other, side="right")) - 1]
        return Flow(direction, _KINDS[int(self.kind[flow])], *place, int(self.events[other]))


class _Source(NamedTuple):
    """A track and the line that it comes from; `first` is the number of its first event over all tracks."""

    place: TrackId
    track: Track
    line: Line
    is_host: bool
    first: int


_Half = list[tuple[Int64s, Int64s, Int64s, Int64s]]
"""One side of links, line by line: numbers of the events, their starts, and type and id of the link."""


def _add(half: _Half, source: _Source, ends: Ends, places: Int64s) -> None:
    """Adds ends of a line; `places` are of all its events."""
    if len(ends.rows):
        index = event_indices(source.track, places[ends.rows])
        known = index >= 0
        index = index[known]
        half.append((index + source.first, source.track.start_ps[index], ends.kind[known], ends.id[known]))


def _columns(half: _Half) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """The columns, each in one piece."""
    event, start, kind, number = (np.concatenate(column) for column in zip((no_ints(),) * 4, *half, strict=True))
    return event, start, kind, number


@dataclass(frozen=True, slots=True)
class _Found:
    """What the lines contain.

    Attributes:
        producers, consumers: sides of links, by the types and ids of `parsers.steps.groups.links`.
        outs, ins: sides of flows; their type is 1 for asynchronous events, else 0.
        done_names: names of the ops that end a track's events, by key; by the number of the track's first event.
    """

    producers: _Half = field(default_factory=list)
    consumers: _Half = field(default_factory=list)
    outs: _Half = field(default_factory=list)
    ins: _Half = field(default_factory=list)
    done_names: dict[int, dict[int, str]] = field(default_factory=dict)


def flows_of(timeline: Timeline, on_chunk: ChunkDone | None = None) -> Flows:
    """All flows of a timeline, whose file is opened again; see `read_flows`."""
    with closing(Trace.open(timeline.path)) as trace:
        return read_flows(trace, timeline, on_chunk)


def read_flows(trace: Trace, timeline: Timeline, on_chunk: ChunkDone | None = None) -> Flows:
    """Finds all flows of a timeline. It decodes all lines again that can have flows, so run it in the background.

    A consumer comes from the last producer of its type and id that began by then, or else from the first one. A
    producer without a consumer leads to the first consumer that does not begin earlier.

    Args:
        trace: what the timeline was read from.
        on_chunk: progress; what it raises ends the work.
    """
    sources = _sources(trace, timeline)
    found, names = _Found(), dict[int, Names]()
    may_link = {plane.index: any(len(plane.stat_ids(ends)) == len(ends) for ends in _ENDS) for plane in trace.planes}
    for source in sources:
        plane = source.line.plane
        if not may_link[plane.index]:
            continue
        if source.is_host and plane.index not in names:
            names[plane.index] = known_names(HostEvents(plane, ()))
        _read_line(source, names.get(plane.index, {}), found, on_chunk)
    *others, of_async = (*_by_context(found), *_by_flow(found))
    pairs = [(*pair, _kinds(sources, *pair)) for pair in others]
    pairs += [
        (*pair, np.full(len(pair[0]), _ASYNC, np.uint8)) for pair in (of_async, *_by_op(sources, found.done_names))
    ]
    source_of, target_of, kinds = (np.concatenate(column) for column in zip(*pairs, strict=True))
    del others, of_async, pairs, found  # which take as much again
    return _flows(sources, source_of, target_of, kinds)


def event_indices(track: Track, places: Int64s) -> Int64s:
    """int64[m]: the events of a track that lie at some places of its line, -1 where none does.

    A track is sorted by lane, so it goes through all places, some at a time.
    """
    wanted = distinct(places)
    out = np.full(len(wanted), -1, np.int64)
    for first in range(0, len(track) if len(wanted) else 0, _CHUNK):
        chunk = track.place[first : first + _CHUNK].astype(np.int64)
        nearest = np.minimum(np.searchsorted(wanted, chunk), len(wanted) - 1)
        hit = np.flatnonzero(wanted[nearest] == chunk)
        out[nearest[hit]] = first + hit
    return out[np.searchsorted(wanted, places)]


def _sources(trace: Trace, timeline: Timeline) -> list[_Source]:
    """The tracks that stand for lines of the trace."""
    out, first = [], 0
    for place, section, track in timeline.tracks():
        if not track.is_derived and len(track) and len(track.place) == len(track):
            line = trace.planes[track.plane_index].lines[track.line_index]
            out.append(_Source(place, track, line, section.kind == "host", first))
            first += len(track)
    return out


def _read_line(source: _Source, names: Names, found: _Found, on_chunk: ChunkDone | None) -> None:
    line, track = source.line, source.track
    plane = line.plane
    is_modules = line.name == MODULES_LINE and is_tensor_core(plane)
    wanted = (*LINK_STATS, "flow") if source.is_host else _DEVICE_STATS
    if track.kind == "ops" and not any(c.kind.any() for c in line.events(wanted, places=False).stats.values()):
        return  # many events and, as a rule, no flow: where they lie need not be known then
    events = line.events(wanted, on_chunk)
    thread = HostThread.of(line, events)
    if not thread.stats and not is_modules:
        return
    links = thread_links(thread, names)
    places = events.begin - line.begin
    _add(found.producers, source, links.produced, places)
    _add(found.consumers, source, core_links(plane, line, ()).consumed if is_modules else links.consumed, places)
    if source.is_host or is_gpu(plane):
        _add(found.producers if source.is_host else found.consumers, source, correlated(thread), places)
    outs, ins = _flow_ends(thread)
    _add(found.outs, source, outs, places)
    _add(found.ins, source, ins, places)
    if "hlo_op" in thread.stats:
        found.done_names[source.first] = _done_names(source, thread.stats["hlo_op"], places)


def _flow_ends(thread: HostThread) -> tuple[Ends, Ends]:
    """Events from which flows lead out, and events into which they lead; asynchronous ones have a category."""
    rows, raw = thread.stat("flow").rows, thread.stat("flow").values.integers().view(np.uint64)
    _, is_async = thread.stat("_a").integers_at(rows)
    number = np.where(is_async, raw >> np.uint64(2), (raw >> np.uint64(2)) & _ID_BITS).view(np.int64)
    way = (raw & np.uint64(3)).astype(np.int64)
    ends = Ends(rows, is_async.astype(np.int64), number)
    needs_another = ~(is_async & (way == (_IN | _OUT)))  # one that begins and ends in a single event does not
    return ends.take((way & _OUT > 0) & needs_another), ends.take((way & _IN > 0) & needs_another)


def _done_names(source: _Source, stat: SparseStat, places: Int64s) -> dict[int, str]:
    """Names of the ops that end a track's events, by key; a key's first event gives it for all."""
    index = event_indices(source.track, places[stat.rows])
    known = np.flatnonzero(index >= 0)
    key = source.track.key[index[known]]
    order = np.argsort(key, kind="stable")
    firsts = order[opens(key[order])]
    texts = source.line.plane.texts(stat.values.take(known[firsts]))
    return {int(of_key): text for of_key, text in zip(key[firsts], texts, strict=True) if text}


def _by_context(found: _Found) -> Iterator[tuple[Int64s, Int64s]]:
    """Links between producers and consumers."""
    maker, made, *of_maker = _columns(found.producers)
    user, used, *of_user = _columns(found.consumers)
    group = numbered(np.concatenate([of_maker[0], of_user[0]]), np.concatenate([of_maker[1], of_user[1]]))
    by, to = group[: len(maker)], group[len(maker) :]
    partner = latest(by, made, to, used)
    partner = np.where(partner >= 0, partner, latest(by, -made, to, -used))
    yield maker[partner[partner >= 0]], user[partner >= 0]
    rest = np.ones(len(maker), np.bool_)
    rest[partner[partner >= 0]] = False
    maker, made, by = maker[rest], made[rest], by[rest]
    partner = latest(to, -used, by, -made)
    yield maker[partner >= 0], user[partner[partner >= 0]]


def _by_flow(found: _Found) -> Iterator[tuple[Int64s, Int64s]]:
    """Links each event of a flow with the last one before it; first other events, then asynchronous ones."""
    out, began, *of_out = _columns(found.outs)
    into, begins, *of_in = _columns(found.ins)
    group = numbered(np.concatenate([of_out[0], of_in[0]]), np.concatenate([of_out[1], of_in[1]]))
    # an event of the middle is in both, and is to follow another one
    rank = numbered(np.concatenate([began, begins]), np.concatenate([out, into]))
    partner = latest(group[: len(out)], rank[: len(out)], group[len(out) :], rank[len(out) :] - 1)
    for is_async in (0, 1):
        chosen = np.flatnonzero((partner >= 0) & (of_in[0] == is_async))
        yield out[partner[chosen]], into[chosen]


def _by_op(sources: Sequence[_Source], done_names: Mapping[int, Mapping[int, str]]) -> Iterator[tuple[Int64s, Int64s]]:
    """Links between the ops at the ends of asynchronous ones, and their spans."""
    planes: dict[int, list[_Source]] = {}
    for source in sources:
        planes.setdefault(source.track.plane_index, []).append(source)
    for own in planes.values():
        all_spans = [source for source in own if source.track.kind == "async"][:_MOST_LINES]
        for ops in [source for source in own if source.track.kind == "ops"][:_MOST_LINES]:
            starts, dones = op_pairs(ops.track)
            yield starts + ops.first, dones + ops.first
            for spans in all_spans:
                begins, ends = span_ends(spans.track, ops.track, done_names.get(spans.first, {}))
                yield begins[0] + ops.first, begins[1] + spans.first
                yield ends[0] + spans.first, ends[1] + ops.first
                # what begins and ends one span
                _, first, last = np.intersect1d(begins[1], ends[0], return_indices=True)
                yield begins[0][first] + ops.first, ends[1][last] + ops.first


def _kinds(sources: Sequence[_Source], source: Int64s, target: Int64s) -> NDArray[np.uint8]:
    """uint8[n]: whether links lead from a host to a device."""
    first = np.array([track_source.first for track_source in sources], np.int64)
    is_host = np.array([track_source.is_host for track_source in sources], np.bool_)
    from_host, to_host = (is_host[np.searchsorted(first, events, side="right") - 1] for events in (source, target))
    return np.where(from_host & ~to_host, np.uint8(_KINDS.index("launch")), np.uint8(_KINDS.index("flow")))


def _flows(sources: Sequence[_Source], source: Int64s, target: Int64s, kind: NDArray[np.uint8]) -> Flows:
    """Puts links in order, each once and with its first kind; drops links from an event to itself."""
    differ = np.flatnonzero(source != target)
    order = differ[np.lexsort((kind[differ], target[differ], source[differ]))]
    source, target, kind = source[order], target[order], kind[order]
    first = opens(source, target)
    source, target, kind = source[first], target[first], kind[first]
    is_end = np.zeros(sources[-1].first + len(sources[-1].track) if sources else 0, np.bool_)
    is_end[source] = is_end[target] = True
    events = np.flatnonzero(is_end).astype(np.int64)
    borders = np.searchsorted(events, np.array([track_source.first for track_source in sources], np.int64))
    borders = np.append(borders, len(events)).astype(np.int64)
    node = np.cumsum(is_end, dtype=np.int32)
    node -= 1
    leaves, leads_to = node[source], node[target]
    del is_end, node, source, target, order
    start = np.zeros(len(events), np.int64)
    for track_source, a, b in zip(sources, borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        if a < b:
            events[a:b] -= track_source.first
            start[a:b] = track_source.track.start_ps[events[a:b]]
    order = np.lexsort((start[leads_to], leaves))
    leaves, leads_to, kind = leaves[order], leads_to[order], kind[order]
    by_target = np.lexsort((start[leaves], leads_to)).astype(np.int32)
    return Flows(tuple(one.place for one in sources), borders, events, leaves, leads_to, kind, by_target)
