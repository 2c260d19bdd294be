"""The single runs of a few ops on one device: when each began, and how long it took.

Pages of ops hold sums over all runs. Their spread needs the events, of which it keeps those of the ops alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.xspace.core.types import EVERY_EVENT
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane
from tpuprof.parsers.ops.core.ops import DEVICE_SPAN, OPS_LINE, device_spans, event_spans, op_name
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource

_LOST = "event "
_LOST_ID = pattern(rf"{_LOST}[0-9]{{1,18}}", re.ASCII)
"""What `op_name` calls an op whose metadata the file lacks."""

_MOST_IDS = 1 << 20

ProgramOp = tuple[int, str]
"""Program id and name of an op."""


@dataclass(frozen=True, slots=True)
class OpRuns:
    """The runs of some ops on one device, in the order of the file.

    Attributes:
        core: the device's name, ``host0:2``; that of the host where its processor ran them.
        start_ps: int64[n], on the trace's clock.
        duration_ps: int64[n], from begin to end, by the device's clock where the events have it.
    """

    core: str
    start_ps: Int64s
    duration_ps: Int64s


def core_runs(plane: Plane, core: str, wanted: frozenset[ProgramOp], on_chunk: ChunkDone | None = None) -> OpRuns:
    """The runs of the wanted ops on a TPU core: no other event of the XLA Ops line is decoded."""
    ids = _metadata_ids(plane, wanted)
    chosen = _chosen(ids)
    starts, durations = [no_ints()], [no_ints()]
    for line in plane.lines if len(ids) else ():
        if line.name != OPS_LINE:
            continue
        names = tuple(plane.stat_ids(DEVICE_SPAN))
        for room in line.blocks(DEVICE_SPAN, on_chunk, chosen):
            events = room.events(names)
            mine = np.flatnonzero(np.isin(events.metadata_id, ids))
            if len(mine):
                start, end = event_spans(line, events)
                begin, finish = device_spans(events, start, end)
                starts.append(start[mine])
                durations.append(finish[mine] - begin[mine])
    return OpRuns(core, np.concatenate(starts), np.concatenate(durations))


def _chosen(ids: NDArray[np.int64]) -> Bools:
    """See `core.api.scan_events`; every event where an id is too large for a table of ids."""
    if not len(ids) or int(ids.min()) < 0 or int(ids.max()) >= _MOST_IDS:
        return EVERY_EVENT
    chosen = np.zeros(int(ids.max()) + 1, np.bool_)
    chosen[ids] = True
    return chosen


def joined_runs(core: str, parts: Iterable[tuple[Int64s, Int64s]]) -> OpRuns:
    """The runs of several streams of one device, each given by starts and ends."""
    starts, ends = zip(*((no_ints(), no_ints()), *parts), strict=True)
    start, end = np.concatenate(starts), np.concatenate(ends)
    return OpRuns(core, start, end - start)


def _metadata_ids(plane: Plane, wanted: frozenset[ProgramOp]) -> NDArray[np.int64]:
    """The metadata ids of the wanted ops; there may be several of one op."""
    metadata = plane.event_metadata
    lost = [int(name.removeprefix(_LOST)) for program, name in wanted if not program and _LOST_ID.fullmatch(name)]
    source = OpSource(metadata, plane.stat_metadata)
    programs, _ = MetadataStats(source, np.arange(len(metadata)), ("program_id",)).unsigned("program_id")
    of_program = np.isin(programs, np.array(sorted({program for program, _ in wanted}), np.uint64))
    rows = np.flatnonzero(of_program).tolist()
    ids = metadata.ids.tolist()
    chosen = [ids[row] for row in rows if (int(programs[row]), op_name(metadata, row, ids[row])) in wanted]
    known = set(ids)
    return np.array([*chosen, *(number for number in lost if number not in known)], np.int64)
