"""Reads a profile into the timeline's tracks: every line of every plane, each event once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple, get_args

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, nesting_order
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.core.api import lanes
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane, Trace
from tpuprof.parsers.ops.core_ops import ASYNC_OPS_LINE, MODULES_LINE, OPS_LINE, STEPS_LINE, Keys, event_spans
from tpuprof.parsers.ops.device import device_info, device_ordinal, is_gpu, is_sparse_core, is_tensor_core
from tpuprof.parsers.ops.host.events import HOST_PLANE
from tpuprof.parsers.timeline.model import (
    EventNames,
    RateTrack,
    Section,
    SectionKind,
    StepSpan,
    Timeline,
    Track,
    TrackKind,
)
from tpuprof.parsers.timeline.read.classes import PlaneKeys, event_names
from tpuprof.parsers.timeline.read.counters import counter_tracks
from tpuprof.parsers.timeline.read.derived import derived_tracks

_COUNTERS = "counters"

_BATCH = 1 << 18
"""A thread decodes so many bytes of short lines in one go."""

_MOST_DERIVED = 8
"""It derives tracks from so many lines of ops in a plane; sound profiles have one."""

_SEEN = 1000
"""It shows so many characters of a sentence, as names in it may have any length."""

_MOST_SAID = 50
"""It lists so many sentences of the profiler."""

_DROPPED = re.compile(r"(?i)drop|lost|overflow")

# What a profiler says when it could not keep all that it saw.
_LOSS = re.compile(r"(?i)drop|lost|loss|truncat|overflow|overwrit|discard|incomplete|exceed|too (many|large)|fail")
_KINDS: dict[str, TrackKind] = {
    STEPS_LINE: "steps",
    MODULES_LINE: "modules",
    OPS_LINE: "ops",
    ASYNC_OPS_LINE: "async",
    "XLA TraceMe": "traceme",
    "Sparse Core Steps": "steps",
    "Sparse Core Modules": "modules",
    "Sparse Core Ops": "ops",
}
_GPU_KINDS: dict[str, TrackKind] = {
    "Steps": "steps",
    "XLA Modules": "modules",
    "XLA Ops": "ops",
    "Name Scope": "scopes",
    "TensorFlow Ops": "framework_ops",
    "Framework Ops": "framework_ops",
    "Source code": "source",
}
"""Lines that the profiler derives from a GPU's streams, by the end of their names."""
_ORDER: tuple[TrackKind, ...] = get_args(TrackKind)
_SECTIONS: tuple[SectionKind, ...] = get_args(SectionKind)


class _Columns(NamedTuple):
    """The events of one line, by lane; see `Track`."""

    start_ps: Int64s
    end_ps: Int64s
    ids: Keys
    lanes: Int64s
    place: NDArray[np.uint32] | Int64s
    length: NDArray[np.uint32]
    malformed: int
    aggregated: int
    display_id: int
    display_name: str


def needed_bytes(trace: Trace) -> int:
    """Bytes of the lines that the timeline decodes."""
    return sum(plane.lines[index].size for plane, index in _event_lines(trace))


def read_timeline(
    trace: Trace,
    host: str,
    path: str,
    steps: Sequence[StepSpan] = (),
    steps_are_inferred: bool = False,
    on_chunk: ChunkDone | None = None,
    threads: int = 1,
) -> Timeline:
    """Decodes every line of a profile.

    Args:
        host, path: the host's name, and the path of its file.
        steps: the overview's steps.
        on_chunk: receives the progress, on any of the threads.
        threads: how many lines are decoded at once.
    """
    chosen = list(_event_lines(trace))
    batches = _batches([plane.lines[index] for plane, index in chosen])
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        done = pool.map(lambda lines: [_read_line(line, on_chunk) for line in lines], batches)
        columns = [line_columns for batch in done for line_columns in batch]
    by_plane: dict[int, list[tuple[int, _Columns]]] = {}
    for (plane, index), line_columns in zip(chosen, columns, strict=True):
        if len(line_columns.start_ps):
            by_plane.setdefault(plane.index, []).append((index, line_columns))
    with_counters = {plane.index for plane in trace.planes if any(_is_counter(line) for line in plane.lines)}
    planes = [plane for plane in trace.planes if plane.index in by_plane or plane.index in with_counters]
    sections = [_section(plane, by_plane.get(plane.index, ())) for plane in planes]
    sections = [section for section in sections if section.tracks or section.counters]
    sections.sort(key=lambda section: _SECTIONS.index(section.kind))
    first, last = _hull(sections)
    aggregated = sum(line_columns.aggregated for line_columns in columns)
    return Timeline(
        host=host,
        path=path,
        sections=tuple(sections),
        first_ps=first,
        last_ps=last,
        steps=tuple(steps),
        steps_are_inferred=steps_are_inferred,
        lost=tuple(dict.fromkeys((*_losses(trace, columns), *_dropped(sections)))),
        warnings=tuple(_remarks(trace, aggregated)),
    )


def _is_counter(line: Line) -> bool:
    return line.name.strip("_").startswith(_COUNTERS)


def _event_lines(trace: Trace) -> Iterator[tuple[Plane, int]]:
    """Yields the lines whose events are drawn as slices: the plane, and the line's index in it."""
    for plane in trace.planes:
        for index, line in enumerate(plane.lines):
            if line.size and not _is_counter(line):
                yield plane, index


def _batches(lines: Sequence[Line]) -> list[list[Line]]:
    """Puts short lines together, because handing a short line to a thread takes longer than reading it."""
    out: list[list[Line]] = []
    room = 0
    for line in lines:
        if line.size > room:
            out.append([])
            room = _BATCH
        out[-1].append(line)
        room -= line.size
    return out


def _read_line(line: Line, on_chunk: ChunkDone | None) -> _Columns:
    """Decodes a line and sorts its events into lanes."""
    events = line.events((), on_chunk)
    tail = line.tail(events)
    start, end = event_spans(line, events)
    kept: NDArray[np.intp] | slice = slice(None)
    if events.num_occurrences is not None:
        kept = np.flatnonzero(events.num_occurrences == 0)
        start, end = start[kept], end[kept]
    order = nesting_order(start, end)
    if order is not None:
        start, end = start[order], end[order]
        kept = order if isinstance(kept, slice) else kept[order]
    lane = lanes(start, end)
    depth = int(lane.max()) + 1 if len(lane) else 0
    if depth > 1:
        by_lane = np.argsort(lane, kind="stable")
        start, end = start[by_lane], end[by_lane]
        kept = by_lane if isinstance(kept, slice) else kept[by_lane]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(lane, minlength=depth))]).astype(np.int64)
    place: NDArray[np.uint32] | Int64s = events.begin - line.begin
    if line.size < 1 << 32:
        place = place.astype(np.uint32)
    ids, length = events.metadata_id[kept], events.length[kept]
    if isinstance(kept, slice):  # the decoder's arrays have room for more
        start, ids, length = start.copy(), ids.copy(), length.copy()
    display_id = tail.display_id or line.id
    aggregated = len(events) - len(start)
    return _Columns(
        *(start, end, ids, bounds, place[kept], length),
        *(events.malformed, aggregated, display_id, tail.display_name),
    )


def _section(plane: Plane, lines: Sequence[tuple[int, _Columns]]) -> Section:
    """Makes a plane's tracks, and those that derive from its ops."""
    kind = _section_kind(plane)
    keys = PlaneKeys(plane)
    event_keys = [keys.of(columns.ids) for _, columns in lines]
    names = event_names(plane, kind, keys.lost_names())
    tracks = [
        _track(plane, index, columns, key, names, kind) for (index, columns), key in zip(lines, event_keys, strict=True)
    ]
    rates: tuple[RateTrack, ...] = ()
    if kind == "core":
        groupings = (track for wanted in ("steps", "modules") for track in tracks if track.kind == wanted)
        grouping = next(groupings, None)
        for ops in [track for track in tracks if track.kind == "ops"][:_MOST_DERIVED]:
            tracks += derived_tracks(ops, grouping)
            rates = rates or _rates(plane, ops)
    tracks.sort(key=lambda track: (_ORDER.index(track.kind), track.sort_id))
    return Section(_title(plane, kind), plane.name, kind, tuple(tracks), rates, counter_tracks(plane))


def _track(
    plane: Plane, index: int, columns: _Columns, key: NDArray[np.int32], names: EventNames, kind: SectionKind
) -> Track:
    line = plane.lines[index]
    return Track(
        name=columns.display_name or line.name or f"line {line.id}",
        kind=_kind_of(line.name, kind),
        names=names,
        start_ps=columns.start_ps,
        end_ps=columns.end_ps,
        key=key,
        lanes=columns.lanes,
        plane_index=plane.index,
        line_index=index,
        place=columns.place,
        length=columns.length,
        lost_bytes=line.lost_bytes,
        malformed=columns.malformed,
        sort_id=columns.display_id,
    )


def _kind_of(name: str, kind: SectionKind) -> TrackKind:
    """The kind of a line with that name on a plane of that kind."""
    if kind in ("core", "sparse_core"):
        return _KINDS.get(name, "other")
    if kind == "gpu":
        return next((derived for ending, derived in _GPU_KINDS.items() if name.endswith(ending)), "stream")
    return "thread" if kind == "host" else "other"


def _section_kind(plane: Plane) -> SectionKind:
    if is_tensor_core(plane):
        return "core"
    if is_sparse_core(plane):
        return "sparse_core"
    if is_gpu(plane):
        return "gpu"
    return "host" if plane.name.startswith(HOST_PLANE) else "other"


def _title(plane: Plane, kind: SectionKind) -> str:
    """Returns ``Chip 2: TPU core 1`` where the plane tells it, else a title from the plane's name."""
    if kind == "host":
        return "Host threads"
    if kind not in ("core", "sparse_core"):
        return plane.name
    details = plane.stats.get("core_details")
    what = "TPU core" if kind == "core" else "SparseCore"
    with suppress(DecodeError):
        if isinstance(details, bytes):
            core = xplane_pb2.CoreDetails.FromString(details)
            return f"Chip {core.global_chip_id or core.local_chip_id}: {what} {core.core_num}"
    return f"TPU {device_ordinal(plane)}" if kind == "core" else plane.name.removeprefix("/device:")


def _rates(plane: Plane, ops: Track) -> tuple[RateTrack, ...]:
    """The use of the matrix unit and of HBM, where the profile counts the ops' work."""
    peaks = device_info(plane).peaks
    uses = (("MXU", ops.names.flops, peaks.flops_per_second), ("HBM", ops.names.hbm_bytes, peaks.hbm))
    return tuple(RateTrack(name, ops, np.nan_to_num(work), peak) for name, work, peak in uses if work is not None)


def _hull(sections: Sequence[Section]) -> tuple[int, int]:
    """From the first event or counter value to the last."""
    spans = [track.span for section in sections for track in section.tracks if len(track)]
    times = [track.time_ps for section in sections for track in section.counters if len(track.time_ps)]
    spans += [(int(time[0]), int(time[-1])) for time in times]
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else (0, 0)


def _losses(trace: Trace, columns: Sequence[_Columns]) -> Iterator[str]:
    """What the file or the capture lacks."""
    yield from (printable(problem.sentence[:_SEEN]) for problem in trace.problems)
    yield from _said(text for text in (*trace.errors, *trace.warnings) if _LOSS.search(text))
    malformed = sum(line_columns.malformed for line_columns in columns)
    if malformed:
        yield f"{malformed:,} events are damaged; what could be read of them is shown"


def _said(texts: Iterable[str]) -> Iterator[str]:
    """Yields sentences of the profiler, fit to print, up to `_MOST_SAID`."""
    for number, text in enumerate(texts):
        if number == _MOST_SAID:
            yield "the profiler says more than is listed here"
            return
        yield printable(text[:_SEEN])


def _dropped(sections: Sequence[Section]) -> Iterator[str]:
    """Sentences on trace entries that the cores' runtimes could not keep; events on their track record them."""
    tracks = [(section, track) for section in sections for track in section.tracks if track.kind == "traceme"]
    for section, track in tracks:
        keys = [key for key in np.flatnonzero(track.counts).tolist() if _DROPPED.search(track.names.name(key))]
        if keys:
            rows = np.flatnonzero(np.isin(track.key, keys))
            first, lasting = int(track.start_ps[rows].min()), int((track.end_ps - track.start_ps)[rows].sum())
            yield (
                f"{section.title} dropped trace entries {counted(len(rows), 'time')}, first at "
                f"{first / 1e9:,.3f} ms, for {lasting / 1e9:,.3f} ms in all; they are marked on {track.name}"
            )


def _remarks(trace: Trace, aggregated: int) -> Iterator[str]:
    """What else the profiler says, and what is not drawn."""
    yield from _said(text for text in (*trace.errors, *trace.warnings) if not _LOSS.search(text))
    if aggregated:
        yield f"{aggregated:,} aggregated events have no place in time and are left out"
