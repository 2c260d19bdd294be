"""Decodes protobuf wire bytes into columns, in C where the compiled module is there, else in numpy.

Both cores give the same answers. `TPUPROF_CORE=c` or `TPUPROF_CORE=numpy` in the environment forces one; it is read at
the first use.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals
from tpuprof.parsers.formats.xspace.core.types import (
    EVERY_EVENT,
    Buffer,
    CellSums,
    Core,
    EventColumns,
    EventFields,
    Fields,
    KeyedSpans,
    LanedEvents,
    Nesting,
    Runs,
    Scan,
    StatFields,
    StepCells,
)

if TYPE_CHECKING:
    from tpuprof.parsers.formats.xspace.core.op_pass import OpPass

_FEW_LANES = 4

VARIABLE = "TPUPROF_CORE"


@lru_cache(maxsize=1)
def _core() -> tuple[Literal["c", "numpy"], Core]:
    """The core in use and its name."""
    wish = os.environ.get(VARIABLE, "")
    if wish not in {"", "c", "numpy"}:
        raise ProfileError("usage", f"{VARIABLE}={wish} names no core.", "Use c or numpy.", EXIT_USAGE)
    if wish != "numpy":
        try:
            from tpuprof.parsers.formats.xspace.core import c_core  # noqa: PLC0415 - the compiled module may be absent

            return "c", c_core
        except ImportError as error:
            if wish == "c":
                raise ProfileError(
                    "no_compiled_core",
                    f"{VARIABLE}=c, but the compiled core can't be imported: {error}.",
                    f"Install again with a C compiler at hand, or unset {VARIABLE}.",
                    EXIT_USAGE,
                ) from error
    from tpuprof.parsers.formats.xspace.core import numpy_core  # noqa: PLC0415 - not needed beside the compiled one

    return "numpy", numpy_core


def core_name() -> Literal["c", "numpy"]:
    """The name of the core that does the work.

    Raises:
        ProfileError: `TPUPROF_CORE` asks for a core that does not exist.
    """
    return _core()[0]


def split_fields(buf: Buffer, start: int = 0) -> Fields:
    """Walks the fields of one message body in `buf[start:]`.

    Fields may come in any order. The payload of the last one may reach past the end of `buf`. It returns everything
    before the first unreadable bytes, whatever the status.

    Raises:
        ValueError: `start` lies outside `buf`.
    """
    return _core()[1].split_fields(buf, start)


def decode_events(buf: Buffer, begin: Int64s, end: Int64s) -> EventFields:
    """Decodes the plain fields of the XEvent bodies `buf[begin[i]:end[i]]`; it skips stats.

    As in protobuf, the last occurrence of a field counts, `offset_ps` and `num_occurrences` exclude each other, and a
    known field with a foreign wire type is an unknown field.

    Raises:
        ValueError: a span lies outside `buf`.
    """
    return _core()[1].decode_events(buf, begin, end)


def stat_columns(buf: Buffer, begin: Int64s, end: Int64s, stats_field: int, wanted: Int64s) -> StatFields:
    """Picks stats out of the message bodies `buf[begin[i]:end[i]]`.

    Args:
        buf: the bytes.
        begin, end: where the messages lie.
        stats_field: the field number of `repeated XStat stats`: 4 in XEvent, 5 in XEventMetadata, 6 in XPlane.
        wanted: stat metadata ids, distinct.

    A message's first stat with a wanted id counts, and the last value in a stat. It leaves out malformed stats, and
    ends at a break in the message.

    Raises:
        ValueError: a span lies outside `buf`, or a wanted id comes twice.
    """
    return _core()[1].stat_columns(buf, begin, end, stats_field, wanted)


def scan_events(
    buf: Buffer,
    base: int,
    start: int,
    wanted: Int64s,
    columns: EventColumns,
    place: int,
    chosen: Bools = EVERY_EVENT,
) -> Scan:
    """Decodes the events in `buf[start:]`, a stretch of an XLine's body, into columns from `place` on.

    It does in one pass what `split_fields`, `decode_events` and `stat_columns` do in three. It skips fields that are no
    events, and ends before an event that is incomplete in the bytes.

    Args:
        buf: the bytes.
        base: where they lie in the file; added to the places of events and of text.
        start: a field of the line begins here.
        wanted: ids of the stats that `columns` has rows for, distinct.
        columns: where to write; consistent lengths.
        place: first place to write.
        chosen: bool[ids], which events to decode by their metadata ids, without those of other ids; empty for all.

    Raises:
        ValueError: columns that do not fit together, a wanted id that comes twice, or a place outside.
    """
    return _core()[1].scan_events(buf, base, start, wanted, columns, place, chosen)


def nest(start: Int64s, end: Int64s) -> Nesting:
    """Nests the events of one line by time, as XProf does.

    An event's parent is the latest event before it that starts no later and ends no earlier. So an identical span is a
    child, and so is a zero-length event at the very end of another.

    Args:
        start, end: sorted by start ascending, then end descending; any one unit.

    Raises:
        ValueError: not sorted, or of different lengths.
    """
    return _core()[1].nest(start, end)


def self_times(start: Int64s, end: Int64s) -> Int64s:
    """int64[n]: each event's duration minus that of its children, and 0 where these overlap one another.

    Args and errors as for `nest`.
    """
    own = nest(start, end).self_ps
    return np.maximum(own, 0) if len(own) and int(own.min()) < 0 else own


def lanes(start: Int64s, end: Int64s) -> NDArray[np.int32]:
    """Puts the events of one line into lanes in which they do not overlap: int32[n], the lane of each.

    Each event gets the lowest lane that is free at its start. An event of no duration takes its lane for one unit, so
    that it is alone at its instant; at the largest int64 there is no such unit, and every event gets lane 0. Where
    events nest, the lane is the depth of `nest`, but for empty events at the very end of another.

    Args and errors as for `nest`.
    """
    return _core()[1].lanes(start, end)


def lane_bounds(lane: NDArray[np.int32]) -> Int64s:
    """int64[lanes + 1]: where each lane begins when events are put lane by lane."""
    depth = int(lane.max()) + 1 if len(lane) else 0
    few = depth <= _FEW_LANES  # then it is faster to count each
    sizes = [int(np.count_nonzero(lane == number)) for number in range(depth)] if few else np.bincount(lane)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def by_lane(lane: NDArray[np.int32], bounds: Int64s, *columns: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Puts the rows of a table lane by lane, within a lane in the order given.

    Args:
        lane: int32[n], the lane of each event, see `lanes`.
        bounds: int64[lanes + 1], where each lane is to begin.
        columns: int32, uint32 or int64[n], at most eight.

    Raises:
        ValueError: lengths that differ, or lanes that do not fit the bounds.
    """
    return _core()[1].by_lane(lane, bounds, *columns)


def busy(start: Int64s, end: Int64s, bounds: Int64s) -> int:
    """The time that at least one event covers, of events in lanes: each between two of the bounds, and in order."""
    return _core()[1].busy(start, end, bounds)


def in_order(ops: LanedEvents) -> LanedEvents:
    """The same events as the core goes through them fastest in `runs` and `self_sums`: numpy wants them in one lane."""
    return _core()[1].in_order(ops)


def runs(ops: LanedEvents, label: NDArray[np.int32], groups: Intervals, gap: int, nests: bool) -> Runs:
    """Merges events in a row that have one label, passing over those without one.

    No two merge that begin in different groups. Those that begin in none merge where the gap between them is at most so
    many times as long as the first: from the latest end of those that merge so far or, where labels lie in one another,
    of all events so far.

    Args:
        label: int32[keys], by the events' keys; -1 for none.
        groups: starts and ends, in order, not overlapping.
        gap: how many times.
        nests: whether labels lie in one another.

    Raises:
        ValueError: a key outside of the labels, or lanes that do not fit.
    """
    return _core()[1].runs(ops, label, groups, gap, nests)


def self_sums(ops: LanedEvents, keys: int) -> Int64s:
    """int64[keys]: the sums of `self_times` by key.

    Raises:
        ValueError: a key outside, lanes that do not fit, or events not in the order that `nest` wants.
    """
    return _core()[1].self_sums(ops, keys)


def duration_sums(spans: KeyedSpans, classes: NDArray[np.uint8], count: int, block: int) -> Int64s:
    """int64[blocks, count]: how long the events of each block last, by the classes of their keys.

    Args:
        classes: uint8[keys], below `count`.
        block: events in a block.

    Raises:
        ValueError: a key or class outside.
    """
    return _core()[1].duration_sums(spans, classes, count, block)


def work_sums(key: NDArray[np.int32], work: Floats, block: int) -> Floats:
    """float64[blocks]: the work of the events of each block, added up in their order.

    Args:
        work: float64[keys].

    Raises:
        ValueError: a key outside.
    """
    return _core()[1].work_sums(key, work, block)


def cell_sums(cells: StepCells, kind: Int64s, kinds: int, weight: Floats, steps: int, by_op: bool) -> CellSums:
    """Sums by step of what is known by step and op, in one pass over the cells.

    Args:
        kind: int64[ops], in [0, kinds).
        weight: float64[ops].
        by_op: whether the events are wanted by op too.

    Raises:
        ValueError: a step, op or kind outside, or lengths that differ.
    """
    return _core()[1].cell_sums(cells, kind, kinds, weight, steps, by_op)


def subtract(start: Int64s, end: Int64s, less_start: Int64s, less_end: Int64s) -> Intervals:
    """Takes some intervals away from others; all are disjoint, not empty and in order, and so is the result.

    Raises:
        ValueError: intervals that are not so.
    """
    return _core()[1].subtract(start, end, less_start, less_end)


def until(times: Int64s, intervals: Int64s) -> Int64s:
    """int64[n]: the time of weighted intervals up to each of some instants; it wraps around where int64 ends.

    Args:
        times: int64[n], in any order.
        intervals: int64[m, 3], start, end and weight (1 or -1) of each; those of one weight in order of start. It is
            fastest where these do not overlap.
    """
    return _core()[1].until(times, intervals)


def trim() -> None:
    """Gives freed memory back to the system, where the C library can; else the process keeps much of it.

    It takes some milliseconds: call it after large columns were freed.
    """
    _core()[1].trim()


def op_pass(
    off_duty: Bools,
    code: NDArray[np.uint8],
    step_start: Int64s,
    step_end: Int64s,
    times: Int64s,
    room: int,
    spans: bool,
    time_span: Int64s | None = None,
) -> OpPass | None:
    """A pass over the op events of a line, see `OpPass`; None without the compiled core."""
    made = _core()[1].op_pass(off_duty, code, step_start, step_end, times, room, spans, time_span)
    return cast("OpPass | None", made)


def sum_by_key(keys: NDArray[np.integer], values: Int64s, k: int) -> Int64s:
    """Exact sums of the values of each key in [0, k), int64[k]; they wrap around where int64 ends.

    Raises:
        ValueError: a key outside [0, k), or lengths that differ.
    """
    return _core()[1].sum_by_key(keys, values, k)


def min_by_key(keys: NDArray[np.integer], values: Int64s, k: int) -> Int64s:
    """Smallest value of each key in [0, k), int64[k]; the largest int64 for keys that don't occur.

    Raises:
        ValueError: a key outside [0, k), or lengths that differ.
    """
    return _core()[1].min_by_key(keys, values, k)


def hash_packets(data: Buffer, state: NDArray[np.uint64]) -> None:
    """Takes whole packets of 32 bytes into the state of a HighwayHash; see `riegeli.hashing`.

    Args:
        data: the packets, one after the other.
        state: uint64[16], changed: v0, v1, mul0 and mul1 of the four lanes.

    Raises:
        ValueError: bytes that are no whole packets, or another state.
    """
    _core()[1].hash_packets(data, state)
