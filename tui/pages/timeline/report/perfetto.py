"""A timeline as a Chrome trace in JSON, which Perfetto and chrome://tracing open.

Processes, threads, names, times and arguments are those of XProf's trace viewer (`xplane_to_trace_container.cc`,
`trace_events_to_json.h`): stats that only serve the profiler are hidden, bytes too, and integers that a double can't
hold are written as text. Where XProf would put events that overlap into one row, or two lines with one id, they get
rows of their own: readers take the slices of a row to nest. The text is written piece by piece, the same for the same
profile.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, ranges
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.metadata import KIND_DOUBLE, KIND_INT64, KIND_REF, KIND_STR, KIND_UINT64
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.timeline.model import CounterTrack, Section, Timeline, Track
from tpuprof.parsers.timeline.read.derived import OFFLOAD_NAME
from tpuprof.parsers.timeline.read.stat_chunks import CHUNK_EVENTS, StatChunk, stat_chunks

Write = Callable[[bytes], object]

LONGEST_TEXT = 10_000
"""Characters after which a text is cut; XProf cuts an op's long name there, and lets others grow."""

HIDDEN_EVENTS = frozenset(
    {
        *("MemoryAllocation", "MemoryDeallocation", "PrefetchProduce", "PrefetchConsume"),
        *("ParallelInterleaveProduce", "ParallelInterleaveConsume", "ParallelInterleaveInitializedInput"),
        *("ParallelMapProduce", "ParallelMapConsume", "MapAndBatchProduce", "MapAndBatchConsume"),
        *("ParseExampleProduce", "ParseExampleConsume"),
    }
)
"""Events that XProf's trace viewer does not show."""

PRODUCER, CONSUMER, FLOW, IS_ASYNC, STEP_NAME = ("_pt", "_p"), ("_ct", "_c"), "flow", "_a", "step_name"
_CORRELATION = "correlation_id"
_HIDDEN = frozenset({*PRODUCER, *CONSUMER, "_r", "flops", "program_id", "symbol_id", "kernel_details"})
_EXACT = 1 << 53
_FLOW_BITS, _CATEGORY_BITS = 56, 6
_GPU_LAUNCH = 9
_CATEGORIES = (
    *("", "", "tf_exec", "tfrt_exec", "batch_sched", "PjRt", "as_batch_sched", "tfrt_rt", "tpu_embed"),
    *("gpu_launch", "batcher", "tpu_stream", "tpu_launch", "pathways_exec", "pjrt_library_call", "threadpool_event"),
)
_TEXTS_KEPT = 1 << 14

_FIRST_DEVICE, _LAST_DEVICE, _FIRST_CUSTOM, _HOST, _OTHERS = 1, 500, 501, 701, 1001
_HOST_PLANE, _DEVICES, _CUSTOM = "/host:CPU", ("/device:TPU:", "/device:GPU:"), "/device:CUSTOM:"
_UINT32 = (1 << 32) - 1
_FIRST_OWN_ROW = 1 << 30
"""Ids from here on are given to rows whose own id is taken."""

_MICRO = 1_000_000
_HEADS_KEPT = 1 << 25
"""Characters of rendered names and shared arguments that are kept."""

_PIECE = 1 << 18


class _Row(NamedTuple):
    """A row of slices: of some lanes of a track, all in one another, `lanes` being the first and the one behind."""

    track: Track
    lanes: tuple[int, int]
    tid: int
    name: str


class _Process(NamedTuple):
    """A section as a process."""

    pid: int
    section: Section
    plane: Plane | None
    rows: tuple[_Row, ...]


def write_perfetto(
    timeline: Timeline, trace: Trace, write: Write, start_ps: int | None = None, end_ps: int | None = None
) -> None:
    """Writes a timeline as Chrome trace JSON.

    Args:
        trace: the profile that the timeline was read from, open, for the events' stats.
        write: takes the text piece by piece, in order.
        start_ps, end_ps: only events that reach into this time, whole; None for no bound.
    """
    first = timeline.first_ps if start_ps is None else start_ps
    last = timeline.last_ps if end_ps is None else end_ps
    head = f'{{"displayTimeUnit":"ns","metadata":{{"highres-ticks":true,"host":{json_text(timeline.host)}}},'
    pieces, size, separator = [head + '"traceEvents":[\n'], 0, ""
    for line in _lines(_processes(timeline, trace), trace, first, last):
        pieces += (separator, line)
        separator = ",\n"
        size += len(line)
        if size > _PIECE:
            write("".join(pieces).encode("ascii"))
            pieces, size = [], 0
    write("".join([*pieces, "\n]}\n"]).encode("ascii"))


def _lines(processes: Sequence[_Process], trace: Trace, first: int, last: int) -> Iterator[str]:
    """Every event of the trace as JSON."""
    for process in processes:
        yield from _metadata(process)
    for process in processes:
        args = PlaneArgs(process.plane) if process.plane is not None else None
        for row in process.rows:
            yield from _slices(_Heads(process.pid, row, args), trace, first, last)
        for counter in process.section.counters:
            yield from _counter(process.pid, counter, first, last)


# --- processes and threads


def _processes(timeline: Timeline, trace: Trace) -> list[_Process]:
    """Numbers the sections and their rows, by process id."""
    pids = _Ids(_OTHERS)
    hosts = sorted({section.plane for section in timeline.sections if section.plane.startswith(_HOST_PLANE)})
    out = []
    for section in timeline.sections:
        plane, wanted = _plane_of(section, trace), _OTHERS
        number = plane.id if plane is not None else 0
        if section.plane in hosts:
            wanted = _HOST + hosts.index(section.plane)
        elif section.plane.startswith(_DEVICES):
            wanted = _FIRST_DEVICE + (number if 0 <= number <= _LAST_DEVICE - _FIRST_DEVICE else 0)
        elif section.plane.startswith(_CUSTOM) and plane is not None and 0 <= number < _HOST - _FIRST_CUSTOM:
            wanted = _FIRST_CUSTOM + number
        out.append(_Process(pids.take(wanted), section, plane, tuple(_rows(section, plane))))
    return sorted(out, key=lambda process: process.pid)


class _Ids:
    """Hands out ids, another one where the wanted one is taken."""

    def __init__(self, first_own: int) -> None:
        self._next = first_own
        self._taken: set[int] = set()

    def take(self, wanted: int) -> int:
        """The wanted id, or the next free one."""
        while wanted in self._taken:
            wanted = self._next
            self._next += 1
        self._taken.add(wanted)
        return wanted


def _plane_of(section: Section, trace: Trace) -> Plane | None:
    # the file may be another one by now, with fewer planes
    of_tracks = (trace.planes[t.plane_index] for t in section.tracks if 0 <= t.plane_index < len(trace.planes))
    return next(of_tracks, None) or next((plane for plane in trace.planes if plane.name == section.plane), None)


def _rows(section: Section, plane: Plane | None) -> Iterator[_Row]:
    """The rows of a section's tracks: one a track, but one for each set of lanes that lie in one another."""
    ids = _Ids(_FIRST_OWN_ROW)
    overlaps = plane is not None and len(plane.stat_ids((FLOW, IS_ASYNC))) > 1  # such events lie on no thread
    tracks = [track for track in section.tracks if len(track)]
    firsts = [ids.take(track.sort_id & _UINT32) for track in tracks]
    for track, first in zip(tracks, firsts, strict=True):
        is_one = overlaps and track.kind == "async" and not track.is_derived
        for number, lanes in enumerate([(0, track.depth)] if is_one else _parts(track)):
            tid = ids.take((track.sort_id + number) & _UINT32) if number else first
            many = number or (track.is_derived and track.name == OFFLOAD_NAME)
            yield _Row(track, lanes, tid, f"{track.name} row {number}" if many else track.name)


def _parts(track: Track) -> list[tuple[int, int]]:
    """Stretches of lanes, each of whose events lie in events of the lane before it."""
    borders = [0]
    for lane in range(1, track.depth):
        above, here = track.lane(lane - 1), track.lane(lane)
        position = np.searchsorted(track.start_ps[above], track.start_ps[here], side="right") - 1
        if len(position) and (int(position[0]) < 0 or bool((track.end_ps[above][position] < track.end_ps[here]).any())):
            borders.append(lane)
    return list(zip(borders, [*borders[1:], track.depth], strict=True))


def _metadata(process: _Process) -> Iterator[str]:
    """Names and places of a process and its threads."""
    pid = process.pid

    def event(what: str, args: str, tid: int | None = None) -> str:
        thread = "" if tid is None else f',"tid":{tid}'
        return f'{{"ph":"M","pid":{pid}{thread},"name":"{what}","args":{{{args}}}}}'

    yield event("process_name", f'"name":{json_text(process.section.plane)}')
    yield event("process_sort_index", f'"sort_index":{pid}')
    for row in process.rows:
        yield event("thread_name", f'"name":{json_text(row.name)}', row.tid)
        yield event("thread_sort_index", f'"sort_index":{row.tid}', row.tid)


# --- slices


class _Heads:
    """Names and shared arguments of a row's events, rendered once for each key."""

    def __init__(self, pid: int, row: _Row, args: PlaneArgs | None) -> None:
        self.row = row
        self.args = args
        self.ids = f'"pid":{pid},"tid":{row.tid}'
        self._known: dict[int, tuple[str, str, bool] | None] = {}
        self._size = 0

    def of(self, key: int) -> tuple[str, str, bool] | None:
        """Name as JSON, arguments as ``,"name":value``, whether asynchronous; None for a hidden event."""
        if key not in self._known:
            if self._size > _HEADS_KEPT:
                self._known.clear()
                self._size = 0
            head = self._known[key] = self._render(key)
            self._size += len(head[0]) + len(head[1]) if head else 0
        return self._known[key]

    def _render(self, key: int) -> tuple[str, str, bool] | None:
        names = self.row.track.names
        name, long_name = names.name(key), names.long_name(key)
        if (long_name or name) in HIDDEN_EVENTS:
            return None
        args = f',"long_name":{json_text(long_name)}' if long_name else ""
        if self.args is None or key >= names.metadata_rows:
            return json_text(name), args, False
        more, step_name, is_async = self.args.of_metadata(key)
        return json_text(step_name or name), args + more, is_async


def _slices(heads: _Heads, trace: Trace, first: int, last: int) -> Iterator[str]:
    """The events of a row that reach into a time."""
    track = heads.row.track
    events = _events_between(track, heads.row.lanes, first, last)
    if track.is_derived or heads.args is None:
        for position in range(0, len(events), CHUNK_EVENTS):
            chosen = events[position : position + CHUNK_EVENTS]
            yield from _rendered(heads, chosen, ChunkArgs([""] * len(chosen)))
    else:
        for chunk in stat_chunks(trace, track, events):
            yield from _rendered(heads, chunk.events, heads.args.of_events(chunk))


def _events_between(track: Track, lanes: tuple[int, int], first: int, last: int) -> NDArray[np.intp]:
    """Indices of the events of some lanes that overlap a time, or lie at its ends."""
    parts = [track.lane(number) for number in range(*lanes)]
    begins = [part.start + int(np.searchsorted(track.end_ps[part], first, side="left")) for part in parts]
    ends = [part.start + int(np.searchsorted(track.start_ps[part], last, side="right")) for part in parts]
    return ranges(np.array(begins, np.int64), np.array(ends, np.int64))[1].astype(np.intp)


def _rendered(heads: _Heads, events: NDArray[np.intp], args: ChunkArgs) -> Iterator[str]:
    """Some events as JSON. One without duration gets a picosecond, as readers take none for one without an end."""
    track, ids = heads.row.track, heads.ids
    start = track.start_ps[events]
    duration = np.maximum(track.end_ps[events] - start, 1)
    columns = zip(track.key[events].tolist(), _micros(start), _micros(duration), args.texts, strict=True)
    for place, (key, ts, dur, own) in enumerate(columns):
        head = heads.of(key)
        if head is None:
            continue
        name, shared, is_async = head
        name = args.names.get(place, name)
        texts = shared + own
        arguments = f',"args":{{{texts[1:]}}}' if texts else ""
        flow = args.flows.get(place)
        if flow is not None and (is_async or place in args.is_async) and (flow.begins or flow.ends):
            end = _micros(start[place : place + 1] + duration[place : place + 1])[0]
            yield from _async(f'{ids},"name":{name}', flow, ts, end, arguments)
        else:
            bound = "" if flow is None else _bound(flow)
            yield f'{{"ph":"X",{ids},"name":{name},"ts":{ts},"dur":{dur}{bound}{arguments}}}'


def _bound(flow: Flow) -> str:
    """The end of an arrow at a slice."""
    category = f',"cat":"{flow.category}"' if flow.category else ""
    out, into = ',"flow_out":true' if flow.begins else "", ',"flow_in":true' if flow.ends else ""
    return f',"bind_id":{flow.id}{category}{into}{out}' if out or into else ""


def _async(head: str, flow: Flow, ts: str, end: str, arguments: str) -> Iterator[str]:
    """An asynchronous event: its begin, its end, or both."""
    link = f'"id":{flow.id},"cat":"{flow.category or "async"}"'
    if flow.begins:
        yield f'{{"ph":"b",{head},{link},"ts":{ts}{arguments}}}'
    if flow.ends:
        yield f'{{"ph":"e",{head},{link},"ts":{end if flow.begins else ts}{"" if flow.begins else arguments}}}'


def _micros(times: Int64s) -> list[str]:
    """Picoseconds as microseconds, to the last digit."""
    if not len(times) or int(times.min()) >= 0:
        return [f"{time // _MICRO}.{time % _MICRO:06d}" for time in times.tolist()]
    return [f"{'-' if time < 0 else ''}{abs(time) // _MICRO}.{abs(time) % _MICRO:06d}" for time in times.tolist()]


# --- counters


def _counter(pid: int, counter: CounterTrack, first: int, last: int) -> Iterable[str]:
    """A counter's values in a time, and the one that holds where it begins."""
    begin = max(0, int(np.searchsorted(counter.time_ps, first, side="right")) - 1)
    end = int(np.searchsorted(counter.time_ps, last, side="right"))
    label = json_text(counter.unit or "value")
    head = f'{{"ph":"C","pid":{pid},"name":{json_text(counter.name)},"ts":'
    values = counter.value[begin:end].tolist()
    for ts, value in zip(_micros(counter.time_ps[begin:end]), values, strict=True):
        yield f'{head}{ts},"args":{{{label}:{json_number(value)}}}}}'


# --- arguments, flows and asynchronous ids


def json_text(value: str) -> str:
    """A JSON string in ASCII: no byte of it can end the string, whatever the text. Long texts are cut."""
    return json.dumps(value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}...<truncated>")


def json_number(value: float) -> str:
    """An integer, or a double; as text where JSON or a reader's double has no room for it."""
    if isinstance(value, int):
        return str(value) if -_EXACT <= value <= _EXACT else f'"{value}"'
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


class Flow(NamedTuple):
    """One end of an arrow, or an asynchronous event.

    Attributes:
        id: the same at both ends, no larger than a double holds.
        category: of XProf's contexts, such as ``tpu_launch``; may be empty.
        begins, ends: which end it is, or both.
    """

    id: int
    category: str
    begins: bool
    ends: bool


def stat_flow(value: int) -> Flow:
    """The flow that a stat `flow` packs: two bits of direction, 56 of id, six of category."""
    value &= (1 << 64) - 1
    number = (value >> 2) & ((1 << _FLOW_BITS) - 1)
    number = number if number < _EXACT else _mixed(-1, number)
    return Flow(number, _category(value >> (64 - _CATEGORY_BITS)), bool(value & 2), bool(value & 1))


def _category(kind: int) -> str:
    return _CATEGORIES[kind] if 0 <= kind < len(_CATEGORIES) else ""


def _mixed(kind: int, number: int) -> int:
    """A number below 2^53 for a link's type and id; as good as never the same for two."""
    mask = (1 << 64) - 1
    mixed = (number ^ (kind * 0x9E3779B97F4A7C15)) & mask
    for multiplier in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        mixed = ((mixed ^ (mixed >> 30)) * multiplier) & mask
    return (mixed ^ (mixed >> 31)) >> 11


@dataclass(slots=True)
class ChunkArgs:
    """The arguments of a chunk's events.

    Attributes:
        texts: of each event: ``,"name":value`` one after the other.
        flows: by place in the chunk.
        is_async: places of the asynchronous events.
        names: by place: names that take the place of the event's own.
    """

    texts: list[str]
    flows: dict[int, Flow] = field(default_factory=dict)
    is_async: set[int] = field(default_factory=set)
    names: dict[int, str] = field(default_factory=dict)


class PlaneArgs:
    """Renders the stats of one plane's events and event metadata."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._is_device = plane.name.startswith("/device:")
        self._labels: dict[int, str] = {}
        self._references: dict[int, str | None] = {}
        self._texts: dict[bytes, str] = {}

    def of_metadata(self, row: int) -> tuple[str, str | None, bool]:
        """Arguments that all events of a metadata row share, the name that takes the place of theirs, and whether they
        are asynchronous.
        """
        try:
            message = self._plane.event_metadata.message(row)
        except DecodeError:
            return "", None, False
        texts, step_name, is_async = [], None, False
        for stat in message.stats:
            name, value = self._plane.stat_name(stat.metadata_id), self._plane.stat_value(stat)
            if name == STEP_NAME and isinstance(value, str) and value:
                step_name = value
            is_async |= name == IS_ASYNC
            if name not in (*_HIDDEN, IS_ASYNC, FLOW) and value is not None and not isinstance(value, bytes):
                shown = json_text(value) if isinstance(value, str) else json_number(value)
                texts.append(f",{json_text(name)}:{shown}")
        return "".join(texts), step_name, is_async

    def of_events(self, chunk: StatChunk) -> ChunkArgs:
        """Arguments of a chunk's events."""
        count = len(chunk.events)
        out = ChunkArgs([""] * count)
        links: dict[str, dict[int, int]] = {}
        for index, number in enumerate(chunk.ids.tolist()):
            name = self._plane.stat_name(number)
            if name in (*PRODUCER, *CONSUMER, FLOW, IS_ASYNC, _CORRELATION):
                links[name] = _integers(chunk, index)
            if name in _HIDDEN or name in (FLOW, IS_ASYNC):
                continue
            label = self._labels.setdefault(number, f",{json_text(name)}:")
            texts = out.texts
            for place, shown in self._shown(chunk, index):
                texts[place] += label + shown
                if name == STEP_NAME:
                    out.names[place] = shown
        out.is_async |= links.get(IS_ASYNC, {}).keys()
        self._add_flows(out, links)
        return out

    def _shown(self, chunk: StatChunk, index: int) -> Iterator[tuple[int, str]]:
        """Place and JSON of each value of one stat."""
        kind = chunk.stats.kind[index]
        for code in np.unique(kind).tolist():
            rows = np.flatnonzero(kind == code)
            places, raw = rows.tolist(), chunk.stats.value[index][rows]
            if code in (KIND_INT64, KIND_UINT64, KIND_DOUBLE):
                values = raw.view({KIND_UINT64: np.uint64, KIND_DOUBLE: np.float64}.get(code, np.int64)).tolist()
                is_plain = code != KIND_DOUBLE and all(-_EXACT <= value <= _EXACT for value in values)
                yield from zip(places, map(str if is_plain else json_number, values), strict=True)
            elif code == KIND_REF:
                for place, reference in zip(places, raw.tolist(), strict=True):
                    shown = self._reference(reference)
                    if shown is not None:
                        yield place, shown
            elif code == KIND_STR:
                lengths = chunk.stats.length[index][rows].tolist()
                for place, begin, length in zip(places, raw.tolist(), lengths, strict=True):
                    yield place, self._text(chunk.body[begin : begin + length])

    def _reference(self, number: int) -> str | None:
        if number not in self._references:
            row = self._plane.stat_metadata.row(number)
            self._references[number] = None if row is None else json_text(self._plane.stat_metadata.name(row))
        return self._references[number]

    def _text(self, raw: bytes) -> str:
        found = self._texts.get(raw)
        if found is None:
            found = json_text(text(raw))
            if len(raw) < LONGEST_TEXT and len(self._texts) < _TEXTS_KEPT:
                self._texts[raw] = found
        return found

    def _add_flows(self, out: ChunkArgs, links: dict[str, dict[int, int]]) -> None:
        """Finds the flows of a chunk's events. Of several that an event has, the last in XProf's order counts."""
        for place, packed in links.get(FLOW, {}).items():
            out.flows[place] = stat_flow(packed)
        for place, number in links.get(_CORRELATION, {}).items():
            out.flows[place] = Flow(_mixed(-2, number), _category(_GPU_LAUNCH), not self._is_device, self._is_device)
        for (kind_name, id_name), begins in ((PRODUCER, True), (CONSUMER, False)):
            kinds = links.get(kind_name, {})
            for place, number in links.get(id_name, {}).items():
                if place in kinds:
                    out.flows[place] = Flow(_mixed(kinds[place], number), _category(kinds[place]), begins, not begins)


def _integers(chunk: StatChunk, index: int) -> dict[int, int]:
    """The integers of one stat, by place."""
    kind = chunk.stats.kind[index]
    places = np.flatnonzero((kind == KIND_INT64) | (kind == KIND_UINT64))
    values: Sequence[int] = chunk.stats.value[index][places].tolist()
    return dict(zip(places.tolist(), values, strict=True))
