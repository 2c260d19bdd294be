"""Groups: which events of a host's threads and cores belong to one step, as XProf numbers them (`group_events.cc`).

Some host events are roots: a step's annotation, a session's run. A root's group holds the events inside it on its
thread, the events that these cause on other threads and on the cores, the events inside those, and so on. Roots are
numbered by level, high ones first, then by start; each takes the events that no root before it has taken. A root that
another root of its level leads to begins no group.

A root also takes everything behind an event that it takes. So an event's group is that of the first root that leads to
it: roots pass on their numbers to all that they lead to, and the smallest number counts.

This module leaves out what nothing needs in practice: other planes than the host's, the cores' and the GPUs', and host
events behind cores' events that are numbered in lock step (see `EventGroups.cores`). Where links and nesting cross
again and again it does not follow them to their end (`graph.MOST_ROUNDS`). Where roots have more than `MOST_LEVELS`
levels, the lowest count as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, distinct, is_among, no_ints, opens
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.formats.xspace.trace import Line, Plane, Trace
from tpuprof.parsers.ops.core.ops import MODULES_LINE, STEPS_LINE, TRACE_ME_LINE
from tpuprof.parsers.ops.device import is_tensor_core
from tpuprof.parsers.ops.host_events.events import HOST_PLANE, Ends, HostEvents, HostThread, SparseStat
from tpuprof.parsers.steps.boundaries.sparse_core import SPARSE_STEPS_LINE
from tpuprof.parsers.steps.groups import links
from tpuprof.parsers.steps.groups.graph import Graph, Layout, graph_of, least_upstream, places

GROUP_STATS = (*links.LINK_STATS, "step_num", "group_id")
"""Stats to read of host events."""

MOST_LEVELS = 64
_NONE = np.int64(1 << 62)

_STEP_LINES = (STEPS_LINE, SPARSE_STEPS_LINE)
_MODULE_LINES = (MODULES_LINE, "Sparse Core Modules")
_LINKED_LINES = (*_STEP_LINES, *_MODULE_LINES, TRACE_ME_LINE)
_ROOM_OF_HEADER = 1 << 10

_HOST_PLANES = (
    *(HOST_PLANE, "Host CPUs", "Syscalls", "/host:metadata", "/host:tfstreamz", "/host:__ScopeRangeCallStack__"),
)
_DEVICE_PLANES = ("/device:", "/virtualdevice:", "#Chip")


@dataclass(frozen=True, slots=True)
class Root:
    """The event that a group begins with.

    Attributes:
        group: the group's number.
        name: the event's name, such as ``train``.
        step_num: the number that the program gave the step (`iter_num`, else `step_num`), or None.
        thread: index of the event's thread.
        start_ps, end_ps: the event's span.
    """

    group: int
    name: str
    step_num: int | None
    thread: int
    start_ps: int
    end_ps: int


@dataclass(frozen=True, slots=True)
class LineGroups:
    """The groups of a line's events, packed: those of its nodes, which apply to all events before the next border.

    Attributes:
        thread: the events, some with groups that the profile gives them, which count where there are no other.
        layout: where the nodes of the line lie; None without nodes.
        group: int64[k], the group of each node, -1 for none.
    """

    thread: HostThread
    layout: Layout | None = None
    group: Int64s = field(default_factory=no_ints)

    def of_events(self) -> Int64s:
        """int64[n]: group of each event, -1 for none."""
        out = np.full(len(self.thread), -1, np.int64)
        if self.layout is not None and len(self.group):
            self._spread(self.layout, out)
        stat = self.thread.stat("group_id")
        kept = out[stat.rows] < 0
        out[stat.rows[kept]] = stat.values.integers(-1)[kept]
        return out

    def _spread(self, layout: Layout, out: Int64s) -> None:
        """Writes the groups of the nodes, and of the events inside them, to `out`."""
        opened = self.group[layout.nested]
        ends, outermost = np.unique(layout.until, return_index=True)
        around = layout.parent[outermost]
        closed = np.where(around >= 0, opened[around], -1)
        borders = np.concatenate([ends, layout.begin])
        by_place = np.argsort(borders, kind="stable")  # where one ends and another begins, the other counts
        places = slice(None) if layout.order is None else layout.order
        count = len(out) if layout.order is None else len(layout.order)
        groups = np.append(-1, np.concatenate([closed, opened])[by_place])
        out[places] = np.repeat(groups, np.diff(borders[by_place], prepend=0, append=count))
        out[layout.rows] = self.group


@dataclass(frozen=True, slots=True)
class EventGroups:
    """The groups of one host's trace.

    Attributes:
        roots: the root of each group; the index is the group's number.
        threads: the groups of each host thread, packed (`LineGroups.of_events`).
        cores: the groups of each core's grouping events in file order, -1 for none; empty for a core without a grouping
            line. None where no TensorCore's event has a group: XProf then numbers the events of each core from 0 on, in
            lock step.
        streams: the groups of each line of GPUs, packed.
    """

    roots: tuple[Root, ...]
    threads: tuple[LineGroups, ...]
    cores: tuple[Int64s, ...] | None
    streams: tuple[LineGroups, ...]


def grouping_line(plane: Plane) -> Line | None:
    """The line that groups a core's events: its steps, else its modules; None where neither has events."""
    for names in (_STEP_LINES, _MODULE_LINES):
        line = next((line for line in reversed(plane.lines) if line.name in names), None)
        if line is not None and (line.size > _ROOM_OF_HEADER or len(line.events(places=False))):
            return line
    return None


def is_grouped(trace: Trace) -> bool:
    """Whether a profile has groups already; XProf groups no profile whose host and device planes all have the stat."""
    planes = [plane for plane in trace.planes if plane.name in _HOST_PLANES or plane.name.startswith(_DEVICE_PLANES)]
    return bool(planes) and all(plane.stat_ids(("group_id",)) for plane in planes)


def has_step_numbers(host: HostEvents) -> bool:
    """Whether annotations of a host, decoded with `GROUP_STATS`, number the program's steps."""
    return any(len(thread.stat("step_num").rows) for thread in host.threads)


def event_groups(
    host: HostEvents, cores: Sequence[Plane], streams: Sequence[HostThread] = (), grouped: bool = False
) -> EventGroups:
    """Groups the events of a host, its cores and its GPUs.

    Args:
        host: decoded with `GROUP_STATS`.
        cores: planes of TPU cores.
        streams: lines of GPU planes, decoded with `GROUP_STATS`.
        grouped: whether the profile has groups already (`is_grouped`); then it adds nothing to them.
    """
    names = links.known_names(host)
    lines = [links.thread_links(thread, names) for thread in host.threads]
    lines += [links.thread_links(thread, {}) for thread in streams]
    threads, count = (*host.threads, *streams), len(host.threads)
    starts = _starts(host, lines, names)
    if not len(starts.keys) or links.has_loop_ops(names) or grouped:
        packed = recorded_groups(threads)
        return EventGroups((), packed[:count], _own_groups(cores) if grouped else None, packed[count:])
    on_cores = [_of_core(plane) for plane in cores]
    graph = graph_of(lines, on_cores, starts.keys, *_other_ends(host, streams, lines, names, starts))
    roots, group = _taken(graph, starts)
    packed = tuple(
        LineGroups(thread, layout, group[layout.first : layout.first + len(layout.rows)])
        for thread, layout in zip(threads, graph.layouts, strict=True)
    )
    table = _root_table(host, lines, starts.keys[roots])
    return EventGroups(table, packed[:count], _of_cores(cores, on_cores, graph, group), packed[count:])


def recorded_groups(threads: Sequence[HostThread]) -> tuple[LineGroups, ...]:
    """The groups that the profile itself gives to the events of lines, decoded with `GROUP_STATS`."""
    return tuple(map(LineGroups, threads))


def _of_core(plane: Plane) -> links.CoreLinks | None:
    """The links of a core; None for one without a grouping line."""
    line = grouping_line(plane)
    if line is None:
        return None
    others = [other for other in plane.lines if other.name in _LINKED_LINES and other is not line]
    return links.core_links(plane, line, others)


@dataclass(frozen=True, slots=True)
class _Starts:
    """The roots, in the order in which they take their groups.

    Attributes:
        keys: int64[r], keys of the events.
        level: int64[r].
        free: bool[r]; the roots that may begin a group. A root of tf.data may not, nor may the roots behind it.
        parts: int64[p] and int64[p]; keys of further events of an iteration, and their roots. Only where the roots are
            iterations of TensorFlow's loops; then each has a number of its own.
    """

    keys: Int64s
    level: Int64s
    free: Bools
    parts: tuple[Int64s, Int64s] | None = None


def _starts(host: HostEvents, lines: Sequence[links.LineLinks], names: links.Names) -> _Starts:
    """Finds the roots of a host and puts them in order."""
    first = places(lines)
    of_data = links.tf_data_steps(host.threads, names)
    loops = links.loop_iterations(host.threads, names, of_data)
    if loops is not None:
        of_thread, rows, root = loops
        keys, leads = np.array(first)[of_thread] + rows, opens(root)
        ones = np.ones(int(leads.sum()), np.int64)
        return _Starts(keys[leads], ones, ones > 0, (keys[~leads], root[~leads]))
    parts = [(no_ints(),) * 5]
    for key, thread, line in zip(first, host.threads, lines, strict=False):
        rows = line.roots
        step, has = thread.stat("id").integers_at(rows)
        free = ~(has & is_among(step, of_data))
        parts.append((rows + key, line.level, line.start_ps[rows], line.end_ps[rows], free.astype(np.int64)))
    keys, level, start, end, free = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-end, start, -level))
    return _Starts(keys[order], level[order], free[order] > 0)


def _other_ends(
    host: HostEvents,
    streams: Sequence[HostThread],
    lines: Sequence[links.LineLinks],
    names: links.Names,
    starts: _Starts,
) -> tuple[Ends, Ends]:
    """Ends of further links: TensorFlow's executors and iterators, an iteration's events, a launch and its kernel."""
    first, count = places(lines), len(host.threads)
    pairs = [links.executor_ends(thread, names) for thread in host.threads]
    made = [links.last_of_each(links.by_key([made for made, _ in pairs], first[:count]))]
    used = [links.by_key([used for _, used in pairs], first[:count])]
    if streams:
        made.append(links.last_of_each(links.by_key(map(links.correlated, host.threads), first[:count])))
        used.append(links.by_key(map(links.correlated, streams), first[count:-1]))
    if starts.parts is not None:
        rows, root = starts.parts
        made.append(Ends(starts.keys, np.full(len(starts.keys), links.ITERATION), np.arange(len(starts.keys))))
        used.append(Ends(rows, np.full(len(rows), links.ITERATION), root))
    return Ends.joined(made), Ends.joined(used)


def _taken(graph: Graph, starts: _Starts) -> tuple[Int64s, Int64s]:
    """Lets the roots take the events that they lead to, in their order.

    Returns:
        int64[g], index of each group's root in `starts`; int64[n], group of each node, -1 for none.
    """
    nodes = np.searchsorted(graph.keys, starts.keys)
    rank, are_loops = np.arange(len(nodes)), starts.parts is not None
    free = starts.free & (are_loops | ~is_among(nodes, graph.looped))  # and that no other of their level leads to
    levels = distinct(starts.level)[::-1][:MOST_LEVELS]
    low = None
    for level in [] if are_loops else levels.tolist():
        peers = rank[(starts.level <= level) if level == levels[-1] else (starts.level == level)]
        if len(peers) > 1:
            values = np.full(len(graph.keys), _NONE)
            values[nodes[peers]] = peers
            low = least_upstream(graph, values)
            values = np.where(values < _NONE, -values, _NONE)
            high = -least_upstream(graph, values)
            free[peers] &= (low[nodes[peers]] == peers) & (high[nodes[peers]] == peers)
    if low is None or len(levels) > 1 or not free.all():
        values = np.full(len(graph.keys), _NONE)
        values[nodes[free]] = rank[free]
        low = least_upstream(graph, values)
    leads = np.ones(len(nodes), np.bool_) if are_loops else free & (low[nodes] == rank)
    number = np.append(np.cumsum(leads) - 1, -1)
    return np.flatnonzero(leads).astype(np.int64), number[np.minimum(low, len(nodes))]


def _of_cores(
    cores: Sequence[Plane], on_cores: Sequence[links.CoreLinks | None], graph: Graph, group: Int64s
) -> tuple[Int64s, ...] | None:
    """The groups of each core's grouping events; None where no TensorCore's has one."""
    of_cores, grouped = [], False
    for plane, core, (first, last) in zip(cores, on_cores, pairwise(graph.core_first), strict=True):
        of_events = group[first:last]
        grouped |= is_tensor_core(plane) and bool((of_events >= 0).any())
        of_cores.append(of_events if core is None else np.where(of_events < 0, core.own, of_events))
    return tuple(of_cores) if grouped else None


def _own_groups(cores: Sequence[Plane]) -> tuple[Int64s, ...] | None:
    """The groups that the profile itself gives to grouping events; None where no event has one."""
    own_groups = tuple(no_ints() if (core := _of_core(plane)) is None else core.own for plane in cores)
    return own_groups if any((own >= 0).any() for own in own_groups) else None


def _numbers(thread: HostThread, name: str) -> SparseStat:
    """A stat of the events where it is a number."""
    stat = thread.stat(name)
    chosen = np.flatnonzero(stat.values.is_number)
    return SparseStat(stat.rows[chosen], stat.values.take(chosen))


def _root_table(host: HostEvents, lines: Sequence[links.LineLinks], keys: Int64s) -> tuple[Root, ...]:
    """What each group begins with, by the keys of the events."""
    first = places(lines)
    of_thread = np.searchsorted(first, keys, side="right") - 1
    out: list[Root | None] = [None] * len(keys)
    for index in distinct(of_thread).tolist():
        thread = host.threads[index]
        groups = np.flatnonzero(of_thread == index)
        rows = keys[groups] - first[index]
        iteration, has_iteration = _numbers(thread, "iter_num").integers_at(rows)
        step, has_step = _numbers(thread, "step_num").integers_at(rows)
        known, step_num = has_iteration | has_step, np.where(has_iteration, iteration, step)
        names = {event: host.name(event) for event in distinct(thread.metadata_id[rows]).tolist()}
        columns = (groups, thread.metadata_id[rows], step_num, known, thread.start_ps[rows], thread.end_ps[rows])
        for group, event, number, is_known, begin, end in zip(*(column.tolist() for column in columns), strict=True):
            out[group] = Root(group, names[event], number if is_known else None, index, begin, end)
    return tuple(root for root in out if root is not None)
