"""The graph of the events that matter for groups: which nest in which, and which link to which.

Its nodes are the events that groups begin with, the ends of links, and the grouping events of cores. All other events
of a host have the group of the node around them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, distinct, nesting_order, numbered, opens, shared
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import nest
from tpuprof.parsers.ops.host_events.events import Ends
from tpuprof.parsers.steps.groups.links import CoreLinks, LineLinks, by_key

MOST_ROUNDS = 64
"""How often values are passed on at most; it takes more than two rounds only where links and nesting cross."""

MOST_OF_BOTH = 64
"""In XProf a type and id with this many producers, and as many consumers, links nothing."""


def places(lines: Sequence[LineLinks]) -> list[int]:
    """The key of each line's first event, and the first free key. An event's key is that key plus its row."""
    return [0, *np.cumsum([len(line.start_ps) for line in lines], dtype=np.int64).tolist()]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the nodes of a line lie in the order of nesting.

    Attributes:
        rows: int64[k], ascending; the events of the line that are nodes.
        first: the number of the first of these nodes.
        order: int64[m], the events that nest, in order; None where all events nest and are in order.
        nested: int64[j]; the nodes (indices of `rows`) that nest, in order.
        begin, until: int64[j]; the events inside each node have the places from `begin` to before `until`.
        parent: int64[j]; index of the node around each, -1 for none.
    """

    rows: Int64s
    first: int
    order: Int64s | None
    nested: Int64s
    begin: Int64s
    until: Int64s
    parent: Int64s


@dataclass(frozen=True, slots=True)
class Graph:
    """What leads to what among the events that matter, the nodes: roots, ends of links and events of cores.

    Attributes:
        keys: int64[n], ascending; keys of the nodes.
        layouts: one a line.
        core_first: first node of each core, and the number of nodes.
        looped: int64; roots with a link to themselves.
        ways: the ancestors 1, 2, 4, … above each node in one or two forests. In the first, an event's parent is the
            event around it, or else the event that links to it; in the second it is the other way round.
        maker, maker_at: int64; the producers, ordered by link, and where each link's producers begin.
        link, user_at, user: int64; the links of each consumer, where each consumer's links begin, and the consumers.
    """

    keys: Int64s
    layouts: tuple[Layout, ...]
    core_first: tuple[int, ...]
    looped: Int64s
    ways: tuple[tuple[Int64s, ...], ...]
    maker: Int64s
    maker_at: Int64s
    link: Int64s
    user_at: Int64s
    user: Int64s


def graph_of(
    lines: Sequence[LineLinks], cores: Sequence[CoreLinks | None], roots: Int64s, made: Ends, used: Ends
) -> Graph:
    """Puts the nodes of all lines and cores together.

    Args:
        roots: keys of the events that groups begin with.
        made, used: producing and consuming ends of further links, by key.
    """
    first = places(lines)
    sizes = [0 if core is None else len(core.start_ps) for core in cores]
    core_keys = (first[-1] + np.cumsum([0, *sizes], dtype=np.int64)).tolist()
    known = [(core, key) for core, key in zip(cores, core_keys, strict=False) if core is not None]
    shift = [*first[:-1], *(key for _, key in known), 0]
    links = _Links.between(
        by_key([*(line.produced for line in lines), *(core.produced for core, _ in known), made], shift),
        by_key([*(line.consumed for line in lines), *(core.consumed for core, _ in known), used], shift),
    )
    keys = distinct(np.concatenate([roots, links.maker, links.user, np.arange(core_keys[0], core_keys[-1])]))
    borders = np.searchsorted(keys, first).tolist()
    layouts = tuple(
        _layout(line, keys[a:b] - key, a) for line, key, a, b in zip(lines, first, borders, borders[1:], strict=False)
    )
    every = np.arange(len(keys))
    holder, source = every.copy(), every.copy()
    for layout in layouts:
        inside = layout.parent >= 0
        holder[layout.first + layout.nested[inside]] = layout.first + layout.nested[layout.parent[inside]]
    maker, user = np.searchsorted(keys, links.maker), np.searchsorted(keys, links.user)
    by_user = np.argsort(user, kind="stable")
    user_at = np.flatnonzero(opens(user[by_user]))
    consumers, link = user[by_user][user_at], links.link[by_user]
    source[consumers] = maker[links.maker_at[link[user_at]]]
    ways = [_ancestors(np.where(holder != every, holder, source))]
    if ((holder != every) & (source != every)).any():
        ways.append(_ancestors(np.where(source != every, source, holder)))
    core_first = tuple(np.searchsorted(keys, core_keys).tolist())
    looped = _looped(links, maker, user, np.searchsorted(keys, roots), len(keys))
    return Graph(keys, layouts, core_first, looped, tuple(ways), maker, links.maker_at, link, user_at, consumers)


def _looped(links: _Links, maker: Int64s, user: Int64s, roots: Int64s, nodes: int) -> Int64s:
    """The roots that produce and consume one and the same link."""
    is_root = np.zeros(nodes, np.bool_)
    is_root[roots] = True
    produced = np.repeat(np.arange(len(links.maker_at)), np.diff(links.maker_at, append=len(maker)))
    makes, uses = is_root[maker], is_root[user]
    both: Int64s = shared(produced[makes] * nodes + maker[makes], links.link[uses] * nodes + user[uses])
    return both % max(nodes, 1)


@dataclass(frozen=True, slots=True)
class _Links:
    """Links with both ends: `link[i]` leads to the event `user[i]`; its producers are in `maker` from `maker_at` on."""

    maker: Int64s
    maker_at: Int64s
    link: Int64s
    user: Int64s

    @classmethod
    def between(cls, produced: Ends, consumed: Ends) -> _Links:
        both = Ends.joined([produced, consumed])
        number = numbered(both.kind, both.id)
        by, to = number[: len(produced)], number[len(produced) :]
        makers, users = (np.bincount(ends, minlength=int(number.max(initial=-1)) + 1) for ends in (by, to))
        live = (makers > 0) & (users > 0) & ((makers < MOST_OF_BOTH) | (users < MOST_OF_BOTH))
        renumbered = np.cumsum(live) - 1
        chosen = np.flatnonzero(live[by])
        chosen = chosen[np.argsort(by[chosen], kind="stable")]
        maker_at = np.cumsum(makers[live]) - makers[live]
        kept = live[to]
        return cls(produced.rows[chosen], maker_at, renumbered[to[kept]], consumed.rows[kept])


def _ancestors(parent: Int64s) -> tuple[Int64s, ...]:
    """The ancestors 1, 2, 4, … above each node; a node without ancestors is its own."""
    out = [parent]
    for _ in range(len(parent).bit_length()):
        above = parent[parent]
        if np.array_equal(above, parent):
            break
        out.append(above)
        parent = above
    return tuple(out)


def _layout(line: LineLinks, rows: Int64s, first: int) -> Layout:
    """Finds how the nodes of a line nest. Events between nodes may part them, so all events count."""
    if not len(rows):
        return Layout(rows, first, None, rows, rows, rows, rows)
    start, end, order = line.start_ps, line.end_ps, None
    if line.apart is not None and line.apart.any():
        order = np.flatnonzero(~line.apart).astype(np.int64)
        start, end = start[order], end[order]
    by_time = nesting_order(start, end)
    if by_time is not None:
        end = end[by_time]
        order = by_time.astype(np.int64) if order is None else order[by_time]
    nested, begin = np.arange(len(rows)), rows
    if order is not None:
        place = np.full(len(line.start_ps), -1, np.int64)
        place[order] = np.arange(len(order))
        begin = place[rows]
        nested = np.flatnonzero(begin >= 0)
        nested = nested[np.argsort(begin[nested])]
        begin = begin[nested]
    until = first_greater(end, begin)
    return Layout(rows, first, order, nested, begin, until, nest(begin, until).parent)


def first_greater(values: Int64s, places: Int64s) -> Int64s:
    """The first place behind each place that has a greater value; the number of values where there is none.

    It climbs a pyramid of maxima from a place until one is greater, and then goes down to the first value that is.
    """
    maxima = [values]
    while len(maxima[-1]) > 1:
        below = maxima[-1]
        pairs = len(below) // 2
        above = np.maximum(below[: 2 * pairs : 2], below[1 : 2 * pairs : 2])
        maxima.append(np.append(above, below[-1:]) if len(below) % 2 else above)
    limit, out = values[places], np.full(len(places), len(values), np.int64)
    open_, index = np.arange(len(places)), places + 1
    hits: list[tuple[Int64s, Int64s]] = []
    for highest in maxima:
        inside = index < len(highest)
        open_, index = open_[inside], index[inside]
        hit = (index % 2 == 1) & (highest[index] > limit[open_])
        hits.append((open_[hit], index[hit]))
        open_, index = open_[~hit], (index[~hit] + 1) // 2
    which, where = hits[-1]
    for level in range(len(maxima) - 2, -1, -1):
        where = 2 * where
        where += maxima[level][where] <= limit[which]
        which, where = np.concatenate([which, hits[level][0]]), np.concatenate([where, hits[level][1]])
    out[which] = where
    return out


def least_upstream(graph: Graph, values: Int64s) -> Int64s:
    """int64[n]: the smallest value of each node and of the nodes that lead to it."""
    for _ in range(MOST_ROUNDS):
        before = values
        for way in graph.ways:
            for above in way:
                values = np.minimum(values, values[above])
        if not len(graph.user):
            break
        least = np.minimum.reduceat(values[graph.maker], graph.maker_at)
        reached = np.minimum(values[graph.user], np.minimum.reduceat(least[graph.link], graph.user_at))
        values = values.copy()
        values[graph.user] = reached
        if np.array_equal(values, before):
            break
    return values
