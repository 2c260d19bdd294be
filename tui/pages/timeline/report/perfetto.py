"""A timeline as a Chrome trace in JSON, which Perfetto and chrome://tracing open.

Processes, threads, names, times and arguments are those of XProf's trace viewer (`xplane_to_trace_container.cc`,
`trace_events_to_json.h`): stats that only serve the profiler are hidden, bytes too, and integers that a double can't
hold are written as text. Where XProf would put events that overlap into one row, or two lines with one id, they get
rows of their own: readers take the slices of a row to nest. The text is written piece by piece, the same for the same
profile.

Arrows are XProf's. A launch leads to what it launched, and other flows lead on: by an id at both slices (``bind_id``).

Of several hosts each one's processes come after the other's, numbered from the next 10,000 on, and are named as XProf
names them, ``host1 /device:TPU:0``. Times are on the axis that the hosts share. An id means something within a host
alone, so those of the second host and on are mixed with its number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, ranges
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.timeline.model import CounterTrack, Section, Timeline, Track
from tpuprof.parsers.timeline.read.derived import OFFLOAD_NAME
from tpuprof.parsers.timeline.read.stat_chunks import CHUNK_EVENTS, stat_chunks
from tpuprof.tui.pages.timeline.report import perfetto_args
from tpuprof.tui.report.output import Write

HIDDEN_EVENTS = frozenset(
    {
        *("MemoryAllocation", "MemoryDeallocation", "PrefetchProduce", "PrefetchConsume"),
        *("ParallelInterleaveProduce", "ParallelInterleaveConsume", "ParallelInterleaveInitializedInput"),
        *("ParallelMapProduce", "ParallelMapConsume", "MapAndBatchProduce", "MapAndBatchConsume"),
        *("ParseExampleProduce", "ParseExampleConsume"),
    }
)
"""Events that XProf's trace viewer does not show."""

_FIRST_DEVICE, _LAST_DEVICE, _FIRST_CUSTOM, _HOST, _OTHERS = 1, 500, 501, 701, 1001
_HOST_PLANE, _DEVICES, _CUSTOM = "/host:CPU", ("/device:TPU:", "/device:GPU:"), "/device:CUSTOM:"
_UINT32 = (1 << 32) - 1
_A_HOST = 10_000  # process ids that a host has for itself
_FIRST_OWN_ROW = 1 << 30  # ids from here on are given to rows whose own id is taken
_MICRO = 1_000_000
_HEADS_KEPT = 1 << 25  # characters of rendered names and shared arguments that are kept
_PIECE = 1 << 18


class _Row(NamedTuple):
    """A row of slices: of some lanes of a track, all in one another, `lanes` being the first and the one behind."""

    track: Track
    lanes: tuple[int, int]
    tid: int
    name: str


class _Process(NamedTuple):
    pid: int
    section: Section
    plane: Plane | None
    rows: tuple[_Row, ...]


class _HostTrace(NamedTuple):
    """A host to be written.

    Attributes:
        timeline: with its times on the axis.
        trace: the profile that it was read from, open, for the events' stats.
        number: which of the hosts it is, counted from 0 on.
    """

    timeline: Timeline
    trace: Trace
    number: int


def write_hosts(
    hosts: Iterable[tuple[Timeline, Trace]],
    metadata: Mapping[str, object],
    write: Write,
    start_ps: int | None = None,
    end_ps: int | None = None,
) -> None:
    """Writes the timelines of hosts as Chrome trace JSON, one host after the other.

    Args:
        hosts: the timeline of each with its times on the axis, and the profile that it was read from, open, for the
            events' stats; each is used before the next one is asked for.
        metadata: what the trace says of itself; where it names `hosts`, so do its processes.
        write: takes the text piece by piece, in order.
        start_ps, end_ps: only events that reach into this time, whole; None for no bound.
    """
    known = "".join(f",{perfetto_args.json_text(name)}:{json.dumps(value)}" for name, value in metadata.items())
    pieces = [f'{{"displayTimeUnit":"ns","metadata":{{"highres-ticks":true{known}}},"traceEvents":[\n']
    size, separator = 0, ""
    for host in (_HostTrace(*each, number) for number, each in enumerate(hosts)):
        first = host.timeline.first_ps if start_ps is None else start_ps
        last = host.timeline.last_ps if end_ps is None else end_ps
        name = f"{host.timeline.host} " if "hosts" in metadata else ""
        for line in _lines(host, _processes(host, name), first, last):
            pieces += (separator, line)
            separator = ",\n"
            size += len(line)
            if size > _PIECE:
                write("".join(pieces).encode("ascii"))
                pieces, size = [], 0
    write("".join([*pieces, "\n]}\n"]).encode("ascii"))


def _lines(host: _HostTrace, processes: Sequence[tuple[str, _Process]], first: int, last: int) -> Iterator[str]:
    """Every event of a host as JSON; processes come with their names."""
    for name, process in processes:
        yield from _metadata(process, name)
    for _, process in processes:
        args = perfetto_args.PlaneArgs(process.plane) if process.plane is not None else None
        for row in process.rows:
            yield from _slices(_Heads(process.pid, row, args, host.number), host.trace, first, last)
        for counter in process.section.counters:
            yield from _counter(process.pid, counter, first, last)


# --- processes and threads


def _processes(host: _HostTrace, name: str) -> list[tuple[str, _Process]]:
    """Numbers the sections and their rows, by process id; `name` comes before that of each."""
    timeline, trace, base = host.timeline, host.trace, host.number * _A_HOST
    pids = _Ids(base + _OTHERS)
    hosts = sorted({section.plane for section in timeline.sections if section.plane.startswith(_HOST_PLANE)})
    out = []
    for section in timeline.sections:
        plane, wanted = _plane_of(section, trace), _OTHERS
        number = plane.id if plane is not None else 0
        if section.plane in hosts:
            wanted = _HOST + hosts.index(section.plane)
        elif section.plane.startswith(_DEVICES) and 0 <= number <= _LAST_DEVICE - _FIRST_DEVICE:
            wanted = _FIRST_DEVICE + number
        elif section.plane.startswith(_CUSTOM) and plane is not None and 0 <= number < _HOST - _FIRST_CUSTOM:
            wanted = _FIRST_CUSTOM + number
        out.append(_Process(pids.take(base + wanted), section, plane, tuple(_rows(section, plane))))
    return [(name + process.section.plane, process) for process in sorted(out, key=lambda process: process.pid)]


class _Ids:
    """Hands out ids, another one where the wanted one is taken."""

    def __init__(self, first_own: int) -> None:
        self._next = first_own
        self._taken: set[int] = set()

    def take(self, wanted: int) -> int:
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
    overlaps = (
        plane is not None and len(plane.stat_ids((perfetto_args.FLOW, perfetto_args.IS_ASYNC))) > 1
    )  # such events lie on no thread
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


def _metadata(process: _Process, name: str) -> Iterator[str]:
    pid = process.pid

    def event(what: str, args: str, tid: int | None = None) -> str:
        thread = "" if tid is None else f',"tid":{tid}'
        return f'{{"ph":"M","pid":{pid}{thread},"name":"{what}","args":{{{args}}}}}'

    yield event("process_name", f'"name":{perfetto_args.json_text(name)}')
    yield event("process_sort_index", f'"sort_index":{pid}')
    for row in process.rows:
        yield event("thread_name", f'"name":{perfetto_args.json_text(row.name)}', row.tid)
        yield event("thread_sort_index", f'"sort_index":{row.tid}', row.tid)


# --- slices


class _Heads:
    """Names and shared arguments of a row's events, rendered once for each key."""

    def __init__(self, pid: int, row: _Row, args: perfetto_args.PlaneArgs | None, host: int) -> None:
        self.row = row
        self.args = args
        self._host = host
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

    def link(self, flow: perfetto_args.PerfettoFlow) -> int:
        return perfetto_args.mixed_id(-3 - self._host, flow.id) if self._host else flow.id

    def _render(self, key: int) -> tuple[str, str, bool] | None:
        names = self.row.track.names
        name, long_name = names.name(key), names.long_name(key)
        if (long_name or name) in HIDDEN_EVENTS:
            return None
        args = f',"long_name":{perfetto_args.json_text(long_name)}' if long_name else ""
        if self.args is None or key >= names.metadata_rows:
            return perfetto_args.json_text(name), args, False
        more, step_name, is_async = self.args.of_metadata(key)
        return perfetto_args.json_text(step_name or name), args + more, is_async


def _slices(heads: _Heads, trace: Trace, first: int, last: int) -> Iterator[str]:
    """The events of a row that reach into a time."""
    track = heads.row.track
    events = _events_between(track, heads.row.lanes, first, last)
    if track.is_derived or heads.args is None:
        for position in range(0, len(events), CHUNK_EVENTS):
            chosen = events[position : position + CHUNK_EVENTS]
            yield from _rendered(heads, chosen, perfetto_args.ChunkArgs([""] * len(chosen)))
    else:
        for chunk in stat_chunks(trace, track, events):
            yield from _rendered(heads, chunk.events, heads.args.of_events(chunk))


def _events_between(track: Track, lanes: tuple[int, int], first: int, last: int) -> NDArray[np.intp]:
    """Indices of the events of some lanes that overlap a time, or lie at its ends."""
    parts = [track.lane(number) for number in range(*lanes)]
    begins = [int(track.first_until(part, np.array([first]))[0]) for part in parts]
    ends = [part.start + int(np.searchsorted(track.start_ps[part], last, side="right")) for part in parts]
    return ranges(np.array(begins, np.int64), np.array(ends, np.int64))[1].astype(np.intp)


def _rendered(heads: _Heads, events: NDArray[np.intp], args: perfetto_args.ChunkArgs) -> Iterator[str]:
    """Some events as JSON. One without duration gets a picosecond, as readers take none for one without an end."""
    track, ids = heads.row.track, heads.ids
    start = track.start_ps[events]
    duration = np.maximum(track.lasting[events], 1)
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
            yield from _async(f'{ids},"name":{name}', flow, heads.link(flow), ts, end, arguments)
        else:
            bound = "" if flow is None else _bound(flow, heads.link(flow))
            yield f'{{"ph":"X",{ids},"name":{name},"ts":{ts},"dur":{dur}{bound}{arguments}}}'


def _bound(flow: perfetto_args.PerfettoFlow, link: int) -> str:
    """The end of an arrow at a slice."""
    category = f',"cat":"{flow.category}"' if flow.category else ""
    out, into = ',"flow_out":true' if flow.begins else "", ',"flow_in":true' if flow.ends else ""
    return f',"bind_id":{link}{category}{into}{out}' if out or into else ""


def _async(head: str, flow: perfetto_args.PerfettoFlow, id_: int, ts: str, end: str, arguments: str) -> Iterator[str]:
    """An asynchronous event: its begin, its end, or both."""
    link = f'"id":{id_},"cat":"{flow.category or "async"}"'
    if flow.begins:
        yield f'{{"ph":"b",{head},{link},"ts":{ts}{arguments}}}'
    if flow.ends:
        yield f'{{"ph":"e",{head},{link},"ts":{end if flow.begins else ts}{"" if flow.begins else arguments}}}'


def _micros(times: Int64s) -> list[str]:
    """Picoseconds as microseconds, to the last digit."""
    if not len(times) or int(times.min()) >= 0:
        return [f"{time // _MICRO}.{time % _MICRO:06d}" for time in times.tolist()]
    return [f"{'-' if time < 0 else ''}{abs(time) // _MICRO}.{abs(time) % _MICRO:06d}" for time in times.tolist()]


def _counter(pid: int, counter: CounterTrack, first: int, last: int) -> Iterable[str]:
    """A counter's values in a time, and the one that holds where it begins."""
    begin = max(0, int(np.searchsorted(counter.time_ps, first, side="right")) - 1)
    end = int(np.searchsorted(counter.time_ps, last, side="right"))
    label = perfetto_args.json_text(counter.unit or "value")
    head = f'{{"ph":"C","pid":{pid},"name":{perfetto_args.json_text(counter.name)},"ts":'
    values = counter.value[begin:end].tolist()
    for ts, value in zip(_micros(counter.time_ps[begin:end]), values, strict=True):
        if math.isnan(value):  # nothing is known from then on, for which the format has no word
            continue
        yield f'{head}{ts},"args":{{{label}:{perfetto_args.json_number(value)}}}}}'
