"""Which intervals belong to which requests: the runs and transfers of their groups, and of groups behind them.

A request leads to the batch that it is part of, which is a group of its own.

Transfers are as in XProf (`inference_stats.cc`, `BuildTPUDeviceEvents`): host events of five names, and what the TPU's
runtime does from the event that issues a transfer to the one that says it is done, which have one id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import (
    Bools,
    Int64s,
    covered,
    nesting_order,
    no_ints,
    place,
    positions,
    ranges,
    union,
)
from tpuprof.parsers.formats.xspace.core.api import nest
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core_ops import MODULES_LINE, event_spans
from tpuprof.parsers.ops.host.events import HostEvents, HostThread, integers_at
from tpuprof.parsers.steps.groups.groups import Groups, grouping_line

_TRANSFERS = (
    ("WriteHbm", "TransferH2DRequest", "TransferPreprocessedH2DRequest"),
    ("ReadHbm", "TransferD2HRequest"),
)
_ISSUED = tuple(f"tpu::System::Transfer{way}Device=>IssueEvent" for way in ("To", "From"))
_DONE = tuple(f"{name}=>Done" for name in _ISSUED)

_LONGEST = 1 << 61
"""All requests' spans laid end to end are cut to this length, so that they stay within 64 bits."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Intervals, each with the number of what it belongs to: int64[n] each."""

    group: Int64s
    start: Int64s
    end: Int64s

    def take(self, rows: NDArray[np.intp] | Bools) -> Spans:
        """Some of the intervals."""
        return Spans(self.group[rows], self.start[rows], self.end[rows])


@dataclass(frozen=True, slots=True)
class Membership:
    """Which groups are requests, and which other groups these lead to.

    Attributes:
        found: int64[n], ascending; the groups of requests. A request's index in it is its number.
        request, child: int64[m] each; pairs of a request's number and another group, such as a batch's.
    """

    found: Int64s
    request: Int64s
    child: Int64s

    def of(self, spans: Spans) -> Spans:
        """Turns groups' intervals into requests' intervals; those of a batch belong to each request in it."""
        own = positions(spans.group, self.found)
        mine = np.flatnonzero(own >= 0)
        parts = [Spans(own[mine], spans.start[mine], spans.end[mine])]
        if len(self.request):
            order = np.argsort(self.child, kind="stable")
            first, last = (np.searchsorted(self.child[order], spans.group, side) for side in ("left", "right"))
            span, pair = ranges(first.astype(np.int64), last.astype(np.int64))
            parts.append(Spans(self.request[order][pair], spans.start[span], spans.end[span]))
        return joined(parts)


def joined(spans: Sequence[Spans]) -> Spans:
    """Joins the intervals of several lines."""
    columns = (np.concatenate([no_ints(), *(getattr(span, name) for span in spans)]) for name in Spans.__slots__)
    return Spans(*columns)


def grouped_threads(host: HostEvents, groups: Groups) -> Iterator[tuple[HostThread, Int64s]]:
    """Each thread with the groups of its events, unpacked one at a time."""
    for thread, packed in zip(host.threads, groups.threads, strict=False):
        yield thread, packed.of_events()


def ids_named(host: HostEvents, names: Sequence[str], prefix: str = "") -> Int64s:
    """Metadata ids of events by name or its beginning; it reads names only where their bytes occur at all."""
    body = host.plane.event_metadata.body
    if not any(text.encode() in body for text in (*names, *([prefix] if prefix else []))):
        return no_ints()
    wanted = frozenset(names)
    return host.ids_named(lambda name: name in wanted or (bool(prefix) and name.startswith(prefix)))


# --- what requests lead to -----------------------------------------------------------------------------------------

_MOST_OF_BOTH = 64
"""A type and id with so many producers and as many consumers links nothing in XProf."""

_Ends: TypeAlias = list[tuple[Int64s, Int64s, Int64s]]
"""Type, id and number or group of what is linked."""


def membership(host: HostEvents, groups: Groups, requests: Int64s) -> Membership:
    """Which other groups requests lead to: an event of theirs starts one of such a group, or holds it on its thread.

    Args:
        requests: int64[n], ascending; the groups that are requests.
    """
    produced: _Ends = []
    consumed: _Ends = []
    pairs = [(no_ints(), no_ints())]
    for thread, group in grouped_threads(host, groups):
        request = positions(group, requests)
        produced.append(_ends(thread, "_pt", "_p", request))
        consumed.append(_ends(thread, "_ct", "_c", group))
        if (request >= 0).any():
            pairs.append(_held(thread, request, group))
    pairs += _linked(produced, consumed)
    request, group = np.unique(np.stack([np.concatenate(column) for column in zip(*pairs, strict=True)]), axis=1)
    others = requests[request] != group
    return Membership(requests, request[others], group[others])


def _ends(thread: HostThread, kind: str, number: str, of: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Links of the events that belong to something."""
    stat = thread.stats.get(kind)
    if stat is None:
        return no_ints(), no_ints(), no_ints()
    ids, has = integers_at(thread.stats.get(number), stat.rows)
    rows = np.flatnonzero(has & (of[stat.rows] >= 0))
    return stat.values.integers()[rows], ids[rows], of[stat.rows[rows]]


def _linked(produced: _Ends, consumed: _Ends) -> list[tuple[Int64s, Int64s]]:
    """Pairs each producer's number with the group of each consumer of its type and id."""
    kind, ids, of = (np.concatenate(column) for column in zip(*produced, strict=True))
    other_kind, other_ids, other_of = (np.concatenate(column) for column in zip(*consumed, strict=True))
    out = []
    for common in np.intersect1d(kind, other_kind).tolist():
        mine, theirs = np.flatnonzero(kind == common), np.flatnonzero(other_kind == common)
        starts = np.unique(np.stack([ids[mine], of[mine]]), axis=1)
        ends = np.unique(np.stack([other_ids[theirs], other_of[theirs]]), axis=1)
        first, last = (np.searchsorted(ends[0], starts[0], side) for side in ("left", "right"))
        _, which, producers = np.unique(starts[0], return_inverse=True, return_counts=True)
        crowded = (producers[which] >= _MOST_OF_BOTH) & (last - first >= _MOST_OF_BOTH)
        chosen, end = ranges(first.astype(np.int64), np.where(crowded, first, last).astype(np.int64))
        out.append((starts[1][chosen], ends[1][end]))
    return out


def _held(thread: HostThread, request: Int64s, group: Int64s) -> tuple[Int64s, Int64s]:
    """Requests whose events directly hold events of other groups, and these groups."""
    rows = np.flatnonzero(group >= 0)
    start, end = thread.start_ps[rows], thread.end_ps[rows]
    order = nesting_order(start, end)
    if order is not None:
        rows, start, end = rows[order], start[order], end[order]
    parent = nest(start, end).parent
    holder, inside = rows[np.maximum(parent, 0)], rows
    holds = (parent >= 0) & (request[holder] >= 0) & (group[holder] != group[inside])
    return request[holder[holds]], group[inside[holds]]


# --- runs and transfers --------------------------------------------------------------------------------------------


def run_spans(groups: Groups, cores: Sequence[Plane]) -> Spans:
    """Module runs of all cores with their groups: their own, or that of the step in which they begin."""
    out = []
    for plane, group in zip(cores, groups.cores or (), strict=False):
        line = grouping_line(plane)
        if line is None:
            continue
        start, end = event_spans(line, line.events(places=False))
        if len(start) == len(group):
            own = Spans(group, start, end)
            out.append(own if line.name == MODULES_LINE else _within_steps(plane, own))
    runs = joined(out)
    return runs.take(runs.group >= 0)


def _within_steps(plane: Plane, steps: Spans) -> Spans:
    steps = steps.take(np.argsort(steps.start, kind="stable"))
    out = []
    for line in plane.lines:
        if line.name == MODULES_LINE and len(steps.group):
            start, end = event_spans(line, line.events(places=False))
            step = place(start, steps.start, steps.end)
            out.append(Spans(np.where(step >= 0, steps.group[step], -1), start, end))
    return joined(out)


def transfer_spans(host: HostEvents, groups: Groups) -> tuple[Spans, Spans]:
    """Transfers to the device and from it, with their groups."""
    to_device, from_device = (_transfers(host, groups, way) for way in (0, 1))
    return to_device, from_device


def _transfers(host: HostEvents, groups: Groups, way: int) -> Spans:
    ids, issued, done = (ids_named(host, names) for names in (_TRANSFERS[way], (_ISSUED[way],), (_DONE[way],)))
    events, issues, dones = [], [], []
    for thread, group in grouped_threads(host, groups) if len(ids) or len(issued) else ():
        rows = np.flatnonzero(np.isin(thread.metadata_id, ids) & (group >= 0))
        events.append(Spans(group[rows], thread.start_ps[rows], thread.end_ps[rows]))
        issues.append(_linked_events(thread, group, issued))
        dones.append(_linked_events(thread, group, done))
    return joined([*events, _from_issue_to_done(issues, dones)])


_Numbered: TypeAlias = tuple[Int64s, Spans]


def _linked_events(thread: HostThread, group: Int64s, ids: Int64s) -> _Numbered:
    """Events of these names that have a group and a link: the link's id, and group and span."""
    stat = thread.stats.get("_c")
    if stat is None or not len(ids):
        return no_ints(), joined([])
    linked = stat.rows[np.isin(thread.metadata_id[stat.rows], ids) & (group[stat.rows] >= 0)]
    return integers_at(stat, linked)[0], Spans(group[linked], thread.start_ps[linked], thread.end_ps[linked])


def _from_issue_to_done(issues: Sequence[_Numbered], dones: Sequence[_Numbered]) -> Spans:
    """Each transfer's span: the last issue of an id, to the end of the last event that says it is done."""
    link, issue = np.concatenate([no_ints(), *(ids for ids, _ in issues)]), joined([span for _, span in issues])
    done_link, done = np.concatenate([no_ints(), *(ids for ids, _ in dones)]), joined([span for _, span in dones])
    if not len(link) or not len(done_link):
        return joined([])
    order = np.argsort(link, kind="stable")
    last = order[np.append(link[order][1:] != link[order][:-1], True)]
    by_link = np.lexsort((done.start, done_link))
    latest = np.searchsorted(done_link[by_link], link[last], side="right") - 1
    end = by_link[np.maximum(latest, 0)]
    meets = (latest >= 0) & (done_link[end] == link[last]) & (done.start[end] > issue.start[last])
    last, end = last[meets], end[meets]
    return Spans(issue.group[last], issue.start[last], done.end[end])


def exclusive(start: Int64s, end: Int64s, kinds: Sequence[Spans]) -> list[Int64s]:
    """Time of each request in intervals of each kind, int64[n]; what two kinds share counts for the first.

    Requests may overlap, so they are laid end to end, each with its intervals, and one union serves all.

    Args:
        start, end: int64[n] of the requests.
        kinds: intervals by the numbers of requests; what lies outside of a request does not count.
    """
    room = np.clip(end - start, 0, _LONGEST // max(1, len(start)))
    base = np.cumsum(room + 1) - (room + 1)
    begins, ends = [no_ints()], [no_ints()]
    before = np.zeros(len(start), np.int64)
    out: list[Int64s] = []
    for spans in kinds:
        of = spans.group
        begins.append(base[of] + np.clip(spans.start - start[of], 0, room[of]))
        ends.append(base[of] + np.clip(spans.end - start[of], 0, room[of]))
        both = union(np.concatenate(begins), np.concatenate(ends))
        time = covered(base + room, *both) - covered(base, *both)
        out.append(time - before)
        before = time
    return out
