"""Which intervals belong to which requests: the runs and transfers of their groups, and of groups behind them.

A request leads to the batch that it is part of, which is a group of its own.

Transfers are as in XProf (`inference_stats.cc`, `BuildTPUDeviceEvents`): host events of five names, and what the TPU's
runtime does from the event that issues a transfer to the one that says it is done, which have one id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from tpuprof.parsers.base import intervals
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import nest
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core.ops import MODULES_LINE, event_spans
from tpuprof.parsers.ops.host_events.events import Ends, HostEvents, HostThread
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns
from tpuprof.parsers.steps.groups.graph import MOST_OF_BOTH
from tpuprof.parsers.steps.groups.groups import EventGroups, grouping_line

Way = Literal["To", "From"]
WAYS: tuple[Way, ...] = get_args(Way)
"""To the device and from it."""

_TRANSFERS: Mapping[Way, tuple[str, ...]] = {
    "To": ("WriteHbm", "TransferH2DRequest", "TransferPreprocessedH2DRequest"),
    "From": ("ReadHbm", "TransferD2HRequest"),
}

_LONGEST = 1 << 61
"""All requests' spans laid end to end are cut to this length, so that they stay within 64 bits."""


@dataclass(frozen=True, slots=True)
class Spans(intervals.Columns):
    """Intervals, each with the number of what it belongs to: int64[n] each."""

    group: intervals.Int64s
    start: intervals.Int64s
    end: intervals.Int64s

    @classmethod
    def of(cls, thread: HostThread, group: intervals.Int64s, rows: intervals.Int64s) -> Spans:
        """Some events of a thread, given the groups of all its events."""
        return cls(group[rows], thread.start_ps[rows], thread.end_ps[rows])


@dataclass(frozen=True, slots=True)
class Membership:
    """Which groups are requests, and which other groups these lead to.

    Attributes:
        found: int64[n], ascending; the groups of requests. A request's index in it is its number.
        request, child: int64[m] each; pairs of a request's number and another group, such as a batch's.
    """

    found: intervals.Int64s
    request: intervals.Int64s
    child: intervals.Int64s

    def of(self, spans: Spans) -> Spans:
        """Turns groups' intervals into requests' intervals; those of a batch belong to each request in it."""
        own = intervals.positions(spans.group, self.found)
        mine = np.flatnonzero(own >= 0)
        order = np.argsort(self.child, kind="stable")
        first, last = (np.searchsorted(self.child[order], spans.group, side) for side in ("left", "right"))
        span, pair = intervals.ranges(first.astype(np.int64), last.astype(np.int64))
        shared = Spans(self.request[order][pair], spans.start[span], spans.end[span])
        return Spans.joined([Spans(own[mine], spans.start[mine], spans.end[mine]), shared])


def grouped_threads(host: HostEvents, groups: EventGroups) -> Iterator[tuple[HostThread, intervals.Int64s]]:
    """Each thread with the groups of its events, unpacked one at a time."""
    for thread, packed in zip(host.threads, groups.threads, strict=False):
        yield thread, packed.of_events()


def ids_named(host: HostEvents, names: Sequence[str], prefix: str = "") -> intervals.Int64s:
    """Metadata ids of events by name or its beginning; it reads names only where their bytes occur at all."""
    body = host.plane.event_metadata.body
    if not any(text.encode() in body for text in (*names, prefix) if text):
        return intervals.no_ints()
    wanted = frozenset(names)
    return host.ids_named(lambda name: name in wanted or (bool(prefix) and name.startswith(prefix)))


# --- what requests lead to -----------------------------------------------------------------------------------------


def membership(host: HostEvents, groups: EventGroups, requests: intervals.Int64s) -> Membership:
    """Which other groups requests lead to: one of their events starts one of such a group, or holds it on its thread.

    Args:
        requests: int64[n], ascending; the groups that are requests.
    """
    produced, consumed, pairs = [], [], []
    for thread, group in grouped_threads(host, groups):
        request = intervals.positions(group, requests)
        produced.append(_of_groups(thread.producers(), request))
        consumed.append(_of_groups(thread.consumers(), group))
        if (request >= 0).any():
            pairs.append(_held(thread, request, group))
    pairs.append(_linked(Ends.joined(produced), Ends.joined(consumed)))
    request, group = np.unique(np.stack([np.concatenate(column) for column in zip(*pairs, strict=True)]), axis=1)
    others = requests[request] != group
    return Membership(requests, request[others], group[others])


def _of_groups(ends: Ends, groups: intervals.Int64s) -> Ends:
    """The ends of events that have a group, with the group in place of the event's row."""
    return Ends(groups[ends.rows], ends.kind, ends.id).take(groups[ends.rows] >= 0)


def _linked(produced: Ends, consumed: Ends) -> tuple[intervals.Int64s, intervals.Int64s]:
    """Pairs each producer's number with the group of each consumer of its type and id."""
    both = Ends.joined([produced, consumed])
    number, border = intervals.numbered(both.kind, both.id), len(produced)
    starts = np.unique(np.stack([number[:border], produced.rows]), axis=1)
    ends = np.unique(np.stack([number[border:], consumed.rows]), axis=1)
    first, last = (np.searchsorted(ends[0], starts[0], side) for side in ("left", "right"))
    crowded = (np.bincount(starts[0])[starts[0]] >= MOST_OF_BOTH) & (last - first >= MOST_OF_BOTH)
    chosen, end = intervals.ranges(first.astype(np.int64), np.where(crowded, first, last).astype(np.int64))
    return starts[1][chosen], ends[1][end]


def _held(
    thread: HostThread, request: intervals.Int64s, group: intervals.Int64s
) -> tuple[intervals.Int64s, intervals.Int64s]:
    """Requests whose events directly hold events of other groups, and these groups."""
    rows = np.flatnonzero(group >= 0)
    start, end, inside = intervals.in_nesting_order(thread.start_ps[rows], thread.end_ps[rows], rows)
    parent = nest(start, end).parent
    holder = inside[np.maximum(parent, 0)]
    holds = (parent >= 0) & (request[holder] >= 0) & (group[holder] != group[inside])
    return request[holder[holds]], group[inside[holds]]


# --- runs and transfers --------------------------------------------------------------------------------------------


def run_spans(groups: EventGroups, cores: Sequence[Plane], runs: Sequence[ModuleRuns]) -> Spans:
    """Module runs of all cores with their groups: their own, or that of the step in which they begin."""
    out = []
    for plane, of_core, group in zip(cores, runs, groups.cores or (), strict=False):
        line = grouping_line(plane)
        if line is None:
            continue
        start, end = event_spans(line, line.events(places=False))
        if len(start) == len(group):
            own = Spans(group, start, end)
            out.append(own if line.name == MODULES_LINE else _within_steps(of_core, own))
    spans = Spans.joined(out)
    return spans.take(spans.group >= 0)


def _within_steps(runs: ModuleRuns, steps: Spans) -> Spans:
    if not len(steps):
        return steps
    steps = steps.take(np.argsort(steps.start, kind="stable"))
    step = intervals.interval_index(runs.start_ps, steps.start, steps.end)
    return Spans(np.where(step >= 0, steps.group[step], -1), runs.start_ps, runs.end_ps)


def transfer_spans(host: HostEvents, groups: EventGroups, way: Way) -> Spans:
    """Transfers to the device or from it, with their groups."""
    issue = f"tpu::System::Transfer{way}Device=>IssueEvent"
    ids, issued, done = (ids_named(host, names) for names in (_TRANSFERS[way], (issue,), (f"{issue}=>Done",)))
    events, issues, dones = [], [], []
    for thread, group in grouped_threads(host, groups) if len(ids) or len(issued) else ():
        rows = thread.rows_of(ids)
        events.append(Spans.of(thread, group, rows[group[rows] >= 0]))
        issues.append(_linked_events(thread, group, issued))
        dones.append(_linked_events(thread, group, done))
    return Spans.joined([*events, _from_issue_to_done(_Linked.joined(issues), _Linked.joined(dones))])


@dataclass(frozen=True, slots=True)
class _Linked(intervals.Columns):
    """Events with a link: the link's id, and group and span."""

    id: intervals.Int64s
    group: intervals.Int64s
    start: intervals.Int64s
    end: intervals.Int64s


def _linked_events(thread: HostThread, group: intervals.Int64s, ids: intervals.Int64s) -> _Linked:
    """Events of these names that have a group and a link."""
    stat = thread.stat("_c")
    rows = stat.rows
    linked = _Linked(stat.values.integers(), group[rows], thread.start_ps[rows], thread.end_ps[rows])
    return linked.take(intervals.is_among(thread.metadata_id[rows], ids) & (linked.group >= 0))


def _from_issue_to_done(issues: _Linked, dones: _Linked) -> Spans:
    """Each transfer's span: the last issue of an id, to the end of the last event that says it is done."""
    if not len(issues) or not len(dones):
        return Spans.joined([])
    issues = issues.take(np.argsort(issues.id, kind="stable"))
    issues = issues.take(np.append(intervals.opens(issues.id)[1:], True))
    dones = dones.take(np.lexsort((dones.start, dones.id)))
    last = np.searchsorted(dones.id, issues.id, side="right") - 1
    end = np.maximum(last, 0)
    meets = (last >= 0) & (dones.id[end] == issues.id) & (dones.start[end] > issues.start)
    return Spans(issues.group, issues.start, dones.end[end]).take(meets)


def exclusive(start: intervals.Int64s, end: intervals.Int64s, kinds: Sequence[Spans]) -> list[intervals.Int64s]:
    """Time of each request in intervals of each kind, int64[n]; what two kinds share counts for the first.

    Requests may overlap, so they are laid end to end, each with its intervals, and one union serves all.

    Args:
        start, end: int64[n] of the requests.
        kinds: intervals by the numbers of requests; what lies outside of a request does not count.
    """
    room = np.clip(end - start, 0, _LONGEST // max(1, len(start)))
    base = np.cumsum(room + 1) - (room + 1)
    begins, ends = [intervals.no_ints()], [intervals.no_ints()]
    before = np.zeros(len(start), np.int64)
    out: list[intervals.Int64s] = []
    for spans in kinds:
        of = spans.group
        begins.append(base[of] + np.clip(spans.start - start[of], 0, room[of]))
        ends.append(base[of] + np.clip(spans.end - start[of], 0, room[of]))
        both = intervals.union(np.concatenate(begins), np.concatenate(ends))
        time = intervals.overlap(base, base + room, *both)
        out.append(time - before)
        before = time
    return out
