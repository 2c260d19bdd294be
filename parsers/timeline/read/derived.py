"""Tracks that follow from a core's HLO ops: framework name scopes, framework ops, source lines, offloads to the host.

XProf makes the same rows (`derived_timeline.cc`). Ops that follow one another and have a scope, an op or a line in
common make one event, which so may span the gaps between them, but never two steps.

Two things differ on purpose. XProf cuts events of equal spans by 1 ns a level, so that its viewer stacks them in order;
lanes do not need that, so times stay true. And where an op lies in no step, XProf bridges a gap of up to twice the time
that it has merged so far, gaps included, which grows without end; here the limit is twice the op before the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals, is_sorted, nesting_order, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import lane_bounds, lane_order, lanes, runs, self_sums
from tpuprof.parsers.formats.xspace.core.types import KeyedSpans, LanedEvents, Runs
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource
from tpuprof.parsers.timeline.durations import Durations
from tpuprof.parsers.timeline.model import CLASSES, EventNames, Track, TrackKind, small_keys

_SCOPES_ID, _FRAMEWORK_OPS_ID, _SOURCE_ID, _OFFLOAD_ID = (0xDEADBEEF + position for position in (2, 3, 7, 8))
"""Ids by which XProf sorts the derived rows, below all others. It has an offload row for every lane."""

MOST_LEVELS = 64
"""How many scopes inside each other are kept apart; deeper ones are part of the last one."""

OFFLOAD_NAME = "Host Offload Ops"

_GAP = 2
"""Outside of steps two ops still merge over a gap of at most this many times the first one's duration."""


@dataclass(eq=False)
class DerivedNames(EventNames):
    """Names of derived events.

    Attributes:
        long_names: of the keys: a framework op's full name.
        parents: of the keys: the scope around each scope, -1 for none. Either this or `long_names` is empty.
    """

    long_names: Sequence[str] = ()
    parents: Sequence[int] = ()

    def long_name(self, key: int) -> str:
        """The full name of a framework op, or of a scope with the scopes around it; empty where `name` is all."""
        if self.long_names:
            return self.long_names[key]
        if not self.parents or self.parents[key] < 0:
            return ""
        parts = []
        while key >= 0:
            parts.append(self.texts[key])
            key = self.parents[key]
        return "/".join(reversed(parts))


class _Labels(NamedTuple):
    """What the metadata says about each key's op.

    Attributes:
        path, op, source: int32[keys]; index of the scopes, the framework op and the source line, -1 for none.
        scopes: int32[paths, levels]; the scopes of each path from the outermost on, -1 behind the last.
        scope_names, parents: of the scopes, and the scope that each lies in, -1 for none.
        op_names, full_names: of the framework ops: as shown, and in full.
        source_names: ``file:line``.
    """

    path: NDArray[np.int32]
    op: NDArray[np.int32]
    source: NDArray[np.int32]
    scopes: NDArray[np.int32]
    scope_names: tuple[str, ...]
    parents: tuple[int, ...]
    op_names: tuple[str, ...]
    full_names: tuple[str, ...]
    source_names: tuple[str, ...]


def derived_tracks(names: EventNames, ops: LanedEvents, grouping: Track | None) -> tuple[Track, ...]:
    """The tracks that follow from the ops of a core, without those that would be empty.

    Args:
        names: of the ops' keys.
        ops: the core's HLO ops, in picoseconds.
        grouping: the core's steps, or else its module runs. No derived event spans two of them.
    """
    source = names.source
    if not len(ops.start) or source is None:
        return ()
    labels, groups = _labels(source, len(names)), _groups(grouping)
    spent = partial(_spent, names.classes, self_sums(ops, len(names)))
    op_classes = _most(spent(labels.op, len(labels.op_names)))
    op_names = DerivedNames(None, labels.op_names, op_classes, long_names=labels.full_names)
    source_names = DerivedNames(None, labels.source_names, _most(spent(labels.source, len(labels.source_names))))
    copied, copies = _offloads(source, *ops[:3])
    ops = _empty_first(ops)
    copy_names = DerivedNames(None, copied, np.full(len(copied), CLASSES.index("copy"), np.uint8))

    def merged(label: NDArray[np.int32]) -> KeyedSpans:
        return KeyedSpans(*runs(ops, label, groups, _GAP, nests=False)[:3])

    tracks = (  # the runs of each are gone before those of the next are made
        _scope_track(runs(ops, labels.path, groups, _GAP, nests=True), labels, spent(labels.path, len(labels.scopes))),
        _track("Framework Ops", "framework_ops", _FRAMEWORK_OPS_ID, op_names, merged(labels.op)),
        _track("Source code", "source", _SOURCE_ID, source_names, merged(labels.source)),
        _track(OFFLOAD_NAME, "async", _OFFLOAD_ID, copy_names, copies),
    )
    return tuple(track for track in tracks if track is not None)


# --- what the metadata says


def _labels(source: OpSource, keys: int) -> _Labels:
    """Reads scopes, framework op and source line of every key."""
    columns = MetadataStats(source, np.arange(len(source.events), dtype=np.int64), ("tf_op", "source"))
    path, op, line = (np.full(keys, -1, np.int32) for _ in range(3))
    op_index: dict[str, int] = {}
    path_index: dict[tuple[int, ...], int] = {}
    op_names: list[str] = []
    op_paths: list[int] = []
    scopes: dict[tuple[int, str], int] = {}
    for row, full_name in enumerate(columns.texts("tf_op")):
        if not full_name:
            continue
        index = op_index.setdefault(full_name, len(op_index))
        if index == len(op_names):
            parsed = parse_framework_op(full_name)
            op_names.append(parsed.type or full_name.rstrip() or full_name)
            # a name without a type is none of a framework's, and has no scopes
            inside = _scopes_around(parsed.name, scopes) if parsed.name != full_name else ()
            op_paths.append(path_index.setdefault(inside, len(path_index)) if inside else -1)
        op[row], path[row] = index, op_paths[index]
    lines: dict[str, int] = {}
    for row, where in enumerate(columns.texts("source")):
        if where:
            line[row] = lines.setdefault(where, len(lines))
    table = np.full((len(path_index), max(map(len, path_index), default=0)), -1, np.int32)
    for inside, index in path_index.items():
        table[index, : len(inside)] = inside
    names, parents = tuple(name for _, name in scopes), tuple(parent for parent, _ in scopes)
    return _Labels(path, op, line, table, names, parents, tuple(op_names), tuple(op_index), tuple(lines))


def _scopes_around(name: str, known: dict[tuple[int, str], int]) -> tuple[int, ...]:
    """The scopes of a framework op, the outermost first; the last part of the name is the op itself.

    `known` numbers scopes by the scope around each and its own name, and gets the new ones.
    """
    scopes: list[int] = []
    for part in name.rpartition("/")[0].split("/", MOST_LEVELS - 1) if "/" in name else ():
        scopes.append(known.setdefault((scopes[-1] if scopes else -1, part), len(known)))
    return tuple(scopes)


def _spent(classes: NDArray[np.uint8], own_ps: Int64s, label: NDArray[np.int32], labels: int) -> Floats:
    """float64[labels, classes]: picoseconds by label (-1 for none), from the class, own time and label of each key."""
    keys = np.flatnonzero(label >= 0)
    cells = label[keys].astype(np.int64) * len(CLASSES) + classes[keys]
    # a key that takes no time still determines the class where no other does
    spent = np.bincount(cells, own_ps[keys] + 1e-3, labels * len(CLASSES))
    return spent.reshape(labels, len(CLASSES)).astype(np.float64)


def _most(spent: Floats) -> NDArray[np.uint8]:
    """uint8[n]: the class with the most time in each row."""
    most: NDArray[np.uint8] = spent.argmax(axis=1).astype(np.uint8)
    return most


# --- the ops


def _nesting(events: KeyedSpans) -> KeyedSpans:
    """Events of several lanes in order of time, outer before inner; of equal spans those of the earlier lane first."""
    if not is_sorted(events.start):
        order = np.argsort(events.start, kind="stable")  # each lane is in order: it merges them
        events = events.take(order)
    tied = nesting_order(events.start, events.end)
    return events if tied is None else events.take(tied)


def _empty_first(ops: LanedEvents) -> LanedEvents:
    """The ops in an order in which one of no time comes before one that begins with it: it has ended by then."""
    empty = ops.start == ops.end
    if not len(ops.lane) or not empty[ops.bounds[1] :].any():
        return ops
    of_place = np.empty(len(ops.lane), np.intp)
    of_place[np.argsort(ops.lane, kind="stable")] = np.arange(len(ops.lane))
    return ops._replace(lane=ops.lane[np.lexsort((~empty[of_place], ops.start[of_place]))])


def _groups(grouping: Track | None) -> Intervals:
    """The steps or module runs, in order.

    A time at which one ends and another begins belongs to the later one; XProf counts it for the earlier.
    """
    if grouping is None or not grouping.depth:
        return no_ints(), no_ints()
    lane = grouping.lane(0)
    return grouping.start_ps[lane], grouping.end_ps[lane]


# --- the tracks


def _scope_track(runs: Runs, labels: _Labels, spent: Floats) -> Track | None:
    """The name scopes, one level inside the other, from runs of ops with one path.

    `spent` is the time of each path by class.

    An event of a level ends where an op comes whose scopes down to that level differ. So it covers the runs from one at
    which this level or one around it begins, up to the next such run.
    """
    if not len(runs.label):
        return None
    same = _shared_levels(labels.scopes, runs)
    start, end, path = runs.start, runs.end, runs.label
    of_level: list[tuple[Int64s, Int64s, NDArray[np.int32]]] = []
    for level in reversed(range(labels.scopes.shape[1])):
        borders = np.flatnonzero(same <= level)
        end = np.maximum.reduceat(end, borders)
        start, path, same = start[borders], path[borders], same[borders]
        scope = labels.scopes[path, level]
        of_level.insert(0, (start[scope >= 0], end[scope >= 0], scope[scope >= 0]))
    names = DerivedNames(None, labels.scope_names, _scope_classes(labels, spent), parents=labels.parents)
    events = KeyedSpans(*(np.concatenate(column) for column in zip(*of_level, strict=True)))
    return _track("Framework Name Scope", "scopes", _SCOPES_ID, names, events, [len(s) for s, *_ in of_level])


def _shared_levels(scopes: NDArray[np.int32], runs: Runs) -> NDArray[np.int32]:
    """int32[r]: how many of its scopes each run shares with the one before it; 0 where nothing may be merged."""
    same = np.zeros(len(runs.label), np.int32)
    left = np.flatnonzero(~runs.apart)
    for level in range(scopes.shape[1]):
        scope = scopes[runs.label[left], level]
        left = left[(scope >= 0) & (scope == scopes[runs.label[left - 1], level])]
        if not len(left):
            break
        same[left] = level + 1
    return same


def _scope_classes(labels: _Labels, of_path: Floats) -> NDArray[np.uint8]:
    """uint8[scopes]: the class that takes most of the time in each scope, the scopes inside it included."""
    out = np.zeros((len(labels.scope_names), len(CLASSES)))
    for scope in labels.scopes.T:
        inside = np.flatnonzero(scope >= 0)
        np.add.at(out, scope[inside], of_path[inside])
    return _most(out)


def _track(
    name: str, kind: TrackKind, sort_id: int, names: EventNames, events: KeyedSpans, lane_sizes: Sequence[int] = ()
) -> Track | None:
    """A derived track; None without events.

    Args:
        lane_sizes: how many of the events each lane would have, if none overlap in it. Else the events nest by time,
            those of an earlier lane outside.
    """
    start, end, key = events
    if not len(start):
        return None
    sizes = [size for size in lane_sizes if size] or [len(start)]
    bounds = np.cumsum([0, *sizes]).astype(np.int64)
    together = (start[1:] < end[:-1]) | (start[1:] == start[:-1])
    together[bounds[1:-1] - 1] = False
    if together.any():
        nested = _nesting(events)
        lane = lanes(nested.start, nested.end)
        bounds = lane_bounds(lane)
        start, end, key = nested.take(lane_order(lane))
    lasting = Durations.of(end - start)
    return Track(name, kind, names, start, lasting, small_keys(key), bounds, sort_id=sort_id, is_derived=True)


# --- copies between a device and its host's memory

_HOST_MEMORY = b"S(5)"
_ENDS = (b"-start", b"-done")
_OFFLOADS = tuple(what + end for what in (b"copy", b"dynamic-slice", b"dynamic-update-slice") for end in _ENDS)


def _offloads(
    source: OpSource, start: Int64s, end: Int64s, key: NDArray[np.int32]
) -> tuple[tuple[str, ...], KeyedSpans]:
    """Pairs the ops that start copies with those that wait for them, as XProf does (`host_offload_utils.cc`).

    Where several copies of one name are under way, the first to begin is the first to end.

    Returns:
        Names, such as ``offload-copy.2``; then of the copies by start, longer ones first: int64[m] starts and ends,
        and int32[m], index of each one's name.
    """
    names, of_key, starts = _copies(source)
    if not names:
        return names, KeyedSpans(no_ints(), no_ints(), np.zeros(0, np.int32))
    is_copy = np.zeros(max(len(of_key), int(key.max(initial=-1)) + 1), np.bool_)
    is_copy[: len(of_key)] = of_key >= 0
    ops = np.flatnonzero(is_copy[key])
    # a copy of no time ends where it begins; the op that starts it comes first all the same
    ops = ops[np.lexsort((~starts[key[ops]], start[ops], of_key[key[ops]]))]
    label = of_key[key[ops]]
    first, last = _paired(label, starts[key[ops]])
    begins = start[ops[first]]
    ends = np.maximum(begins, end[ops[last]])
    order = np.lexsort((-ends, begins))
    return names, KeyedSpans(begins[order], ends[order], label[first][order])


def _copies(source: OpSource) -> tuple[tuple[str, ...], NDArray[np.int32], Bools]:
    """Names of the copies, which of them each row's op is part of (-1 for none), and whether it starts it."""
    table = source.events
    of_row, starts = np.full(len(table), -1, np.int32), np.zeros(len(table), np.bool_)
    index: dict[bytes, int] = {}
    for row in np.flatnonzero(table.display_end > table.display_begin).tolist():
        name = table.body[table.display_begin[row] : table.display_end[row]]
        is_copy = any(word in name for word in _OFFLOADS)
        if not is_copy or table.body.find(_HOST_MEMORY, table.name_begin[row], table.name_end[row]) < 0:
            continue
        starts[row] = _ENDS[0] in name
        number = name.rpartition(b".")[2] if b"." in name else b"0"
        stem = name.partition(_ENDS[0] if starts[row] else _ENDS[1])[0]
        of_row[row] = index.setdefault(b"offload-%b.%b" % (stem, number), len(index))
    return tuple(text(name) for name in index), of_row, starts


def _paired(label: NDArray[np.int32], is_start: Bools) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs the starts and ends of each label, first come, first served; leaves out ends that nothing started.

    It takes labels in order, each one's events in order of time, and returns the places of the starts and of the ends.
    """
    if not len(label):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    is_new = np.append(False, label[1:] != label[:-1])
    opens, of = np.append(0, np.flatnonzero(is_new)), np.cumsum(is_new)
    under_way = np.cumsum(np.where(is_start, 1, -1))
    under_way -= np.append(0, under_way)[opens][of]
    # an end that takes the count to a new low had no start; each label far below the one before keeps lows apart
    floor = -of * (2 * len(label) + 2)
    depth = under_way + floor
    lowest = np.minimum(np.append(0, np.minimum.accumulate(depth)[:-1]), floor)
    ends = np.flatnonzero(~is_start & (depth >= lowest))
    begins = np.flatnonzero(is_start)
    rank = np.arange(len(ends)) - np.searchsorted(ends, opens)[of[ends]]
    return begins[np.searchsorted(begins, opens)[of[ends]] + rank], ends
