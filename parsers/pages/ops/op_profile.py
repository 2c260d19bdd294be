"""The op profile: trees of the cores' time by program, by category, by framework scope and by line of code.

XProf's page is `op_profile_builder.cc`. It differs on purpose in these points:

- A node's time is the self time of everything under it. So children always add up to their parent; in XProf the self
  time of ops that hold others (`while`, `call`) is in its program but in none of its categories.
- A node's utilization is its work over its time, at the nominal clock. XProf divides the work of the root and of
  programs by times that leave idle out or count inner ops twice.
- Ops named ``region…`` and ops without ids stand in the tree; XProf drops them.
- Duplicates are grouped within a program. XProf's tree by category also takes ops for duplicates that merely have one
  name in several programs.
- Missing counts are NaN, not 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s, coded
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.words import NO_FLOPS_OR_BYTES, share
from tpuprof.parsers.formats.hlo.shapes import is_in_host_memory
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.roofline import WORK_COUNT, Rates, clock_scale, rates, summed_rows, uncounted, work_of
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.shared.key import PageKey, PageSession

Grouping = Literal["program", "category", "provenance", "source"]
GROUPINGS: tuple[Grouping, ...] = ("program", "category", "provenance")
"""Those of the page; `parsers.pages.ops.sources` has the other one."""

NodeKind = Literal["root", "program", "category", "scope", "file", "line", "duplicates", "op", "idle"]

SortBy = Literal["time", "wasted", "FLOPS", "HBM", "average", "count"]

UNKNOWN_CATEGORY = "unknown category"
NO_SOURCE = "no source line"
"""The node of the ops that name none, in the tree by source."""

_OF_ROW: tuple[NodeKind, ...] = ("line", "duplicates", "op")
IDLE = "IDLE"
MUCH_IDLE = 0.2
"""Idle time is what to look at first from this share on, unless one op wastes more."""

MOST_SCOPES = 200
"""How many framework scopes around an op have nodes of their own."""

MOST = 0.9
"""The share of a node's time that its children shown under "top 90 %" make up."""


@dataclass(frozen=True, slots=True)
class OpTree(Sized):
    """A tree as columns over its m nodes; node 0 is the root.

    Attributes:
        by: what the tree groups by.
        kind, name: kind and name of each node. A group of duplicates is named after its longest op and the number of
            the others, a file after its path, a line ``file:line``; the ops without either are a line `NO_SOURCE`.
        parent: int64[m], -1 for the root.
        row: int64[m]; for an op its row in the ops page, for duplicates and lines that of their longest op, else -1.
        time_ps: int64[m]; self time of all ops under the node; of the root the cores' whole time, idle included.
        occurrences: int64[m].
        work: float64[m, WORK_COUNT]; of all ops under it that hold no others, NaN where none has a count.
        rates: over `time_ps`.
        time_fraction: float64[m] of the root's time (0-1), NaN without any time.
        wasted_fraction: float64[m] of the root's time; of an op its time fraction times what is left of the nearer
            limit of the matrix unit's peak and the HBM's, NaN where neither is known; of other nodes the sum over their
            ops. Idle time is wasted whole. (XProf takes a node's mean utilization, so that a part may waste more than
            all.)
        order: int64[m]; nodes by parent, then by time (longest first), then by name.
        begin, end: int64[m]; the children of node i are `order[begin[i]:end[i]]`.
    """

    sized_by = "name"
    by: Grouping
    kind: tuple[NodeKind, ...]
    name: tuple[str, ...]
    parent: Int64s
    row: Int64s
    time_ps: Int64s
    occurrences: Int64s
    work: Floats
    rates: Rates
    time_fraction: Floats
    wasted_fraction: Floats
    order: Int64s
    begin: Int64s
    end: Int64s

    def child_count(self, node: int) -> int:
        return int(self.end[node] - self.begin[node])

    def children(self, node: int, sort: SortBy = "time", is_reversed: bool = False) -> Int64s:
        """All children, the largest first, or the smallest if reversed; those of an unknown figure come last."""
        nodes = self.order[self.begin[node] : self.end[node]]
        figures = {"wasted": self.wasted_fraction, "FLOPS": self.rates.flops_utilization, "count": self.occurrences}
        values = figures.get(sort, self.time_ps)[nodes].astype(np.float64)
        if sort == "HBM":
            values = self.rates.bandwidth_utilization[nodes, 0]
        elif sort == "average":
            values /= np.maximum(1, self.occurrences[nodes])
        return nodes[np.argsort(np.where(np.isnan(values), np.inf, values if is_reversed else -values), kind="stable")]

    def top_children(
        self, node: int, sort: SortBy = "time", limit: int = 0, most: bool = False, is_reversed: bool = False
    ) -> tuple[Int64s, int]:
        """The first `limit` children (0: all); with `most`, only as many as make up 90 % of the node's time.

        Returns:
            The children, and how many it leaves out.
        """
        nodes = self.children(node, sort, is_reversed)
        kept = len(nodes)
        if most:
            whole = self.time_ps[node] * MOST
            kept = min(kept, int(np.searchsorted(np.cumsum(self.time_ps[nodes]), whole)) + 1)
        if limit:
            kept = min(kept, limit)
        return nodes[:kept], len(nodes) - kept

    def ops_under(self, node: int) -> Int64s:
        """Rows in the ops page of all ops under a node, or of the op that it is."""
        rows, stack = [], [node]
        while stack:
            at = stack.pop()
            if self.kind[at] == "op":
                rows.append(int(self.row[at]))
            stack += self.order[self.begin[at] : self.end[at]].tolist()
        return np.array(rows, np.int64)

    def path(self, node: int) -> list[int]:
        """The node's ancestors from the root down, and itself."""
        way = [node]
        while self.parent[way[-1]] >= 0:
            way.append(int(self.parent[way[-1]]))
        return way[::-1]


@dataclass(frozen=True, slots=True)
class OpProfilePage:
    """The op profile.

    Attributes:
        ops: the ops that the trees are made of.
        by_program, by_category, by_provenance: the trees.
        headline: what to look at first, in a sentence or two.
    """

    ops: OpsPage
    by_program: OpTree
    by_category: OpTree
    by_provenance: OpTree
    headline: str

    def tree(self, by: Grouping) -> OpTree:
        trees: dict[Grouping, OpTree]
        trees = {"program": self.by_program, "category": self.by_category, "provenance": self.by_provenance}
        return trees[by]


def op_profile_page(ops: OpsPage, with_idle: bool = True) -> OpProfilePage:
    """Makes the trees over some ops; without idle time all fractions are of the ops' self time."""
    duplicates = ops.table.texts("deduplicated_name")
    trees = {by: op_tree(ops, by, duplicates, with_idle) for by in GROUPINGS}
    return OpProfilePage(
        ops, trees["program"], trees["category"], trees["provenance"], headline(trees["program"], ops, with_idle)
    )


class SourceLocation(NamedTuple):
    """A place in code; line is None where the profile gives a file alone."""

    file: str
    line: int | None


def source_location(source: str) -> SourceLocation:
    """The place that a text such as ``model.py:62`` names; a column behind the line is left out."""
    found = _PLACE.fullmatch(source)
    return SourceLocation(source, None) if found is None else SourceLocation(found[1], int(found[2]))


_PLACE = pattern(r"(.+?):(\d{1,9})(?::\d{1,9})?", re.DOTALL)


def provenance_parts(framework_op: str) -> list[str]:
    """The scopes of a framework op, outermost first: ``jit(f)/mlp/dot_general:`` gives three.

    It does not split at slashes within parentheses or brackets, and cuts off the type behind the last colon.
    """
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(framework_op):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth = max(0, depth - 1)
        elif character == "/" and not depth:
            parts.append(framework_op[begin:place])
            begin = place + 1
    parts.append(framework_op[begin:].partition(":")[0])
    return [part for part in parts if part]


class _Builder:
    """Grows a tree level by level; each level puts every op under a node."""

    def __init__(self, ops: OpsPage) -> None:
        table = ops.table
        self.kinds: list[NodeKind] = ["root"]
        self.names: list[str] = [""]
        self.parents: list[Int64s] = [np.array([-1], np.int64)]
        self.rows: list[Int64s] = [np.array([-1], np.int64)]
        self._self_ps = table.self_ps
        self._occurrences = table.occurrences
        self._work = work_of(table)
        self._normalized = table.self_ps * clock_scale(table)
        self._wasted = _wasted_ps(self._work, table.self_ps.astype(np.float64), self._normalized, ops.peaks)
        everything = np.zeros(len(table), np.int64)
        self.time_ps = [sum_by_key(everything, table.self_ps, 1)]
        self.occurrences = [table.occurrences.sum(keepdims=True)]
        self.normalized = [np.array([self._normalized.sum()])]
        self.work = [summed_rows(self._work, everything, 1)]
        self.wasted = [summed_rows(self._wasted, everything, 1)]
        self.node = everything
        """int64[n]: the node under which each op stands so far."""

    def level(self, kind: NodeKind, code: Int64s, name: Callable[[int], str], chosen: Int64s | None = None) -> None:
        """Adds a node for each (node so far, code) of the chosen ops (rows); `name` takes the first op of each."""
        rows = np.arange(len(self.node)) if chosen is None else chosen
        if not len(rows):
            return
        keys = self.node[rows] * (int(code.max(initial=0)) + 1) + code[rows]
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        leaders = rows[first]
        self.parents.append(self.node[leaders])
        self.rows.append(leaders if kind in _OF_ROW else np.full(len(leaders), -1, np.int64))
        base = len(self.names)
        self.kinds += [kind] * len(leaders)
        self.names += map(name, leaders.tolist())
        count = len(leaders)
        self.time_ps.append(sum_by_key(inverse, self._self_ps[rows], count))
        self.occurrences.append(sum_by_key(inverse, self._occurrences[rows], count))
        self.normalized.append(np.bincount(inverse, self._normalized[rows], minlength=count))
        self.work.append(summed_rows(self._work[rows], inverse, count))
        self.wasted.append(summed_rows(self._wasted[rows], inverse, count))
        self.node[rows] = base + inverse

    def idle(self, time_ps: int) -> None:
        self.kinds.append("idle")
        self.names.append(IDLE)
        self.parents.append(np.zeros(1, np.int64))
        self.rows.append(np.full(1, -1, np.int64))
        time_ps = min(time_ps, 2**63 - 1 - int(self.time_ps[0][0]))  # only a damaged profile has more
        self.time_ps.append(np.array([time_ps], np.int64))
        self.time_ps[0] = self.time_ps[0] + time_ps
        self.occurrences.append(np.zeros(1, np.int64))
        self.normalized.append(np.array([float(time_ps)]))
        self.normalized[0] = self.normalized[0] + time_ps
        self.work.append(np.zeros((1, WORK_COUNT)))
        self.wasted.append(np.array([[float(time_ps)]]))
        self.wasted[0] = np.nan_to_num(self.wasted[0]) + time_ps


def _wasted_ps(work: Floats, self_ps: Floats, normalized_ps: Floats, peaks: Peaks) -> Floats:
    """float64[n, 1]: self time of each op times the unused share of its better used peak; NaN where unknown."""
    of_ops = rates(work, self_ps, normalized_ps, peaks)
    used = np.stack([of_ops.flops_utilization, of_ops.bandwidth_utilization[:, 0]], axis=1)
    best = np.where(np.isfinite(used).any(axis=1), np.minimum(np.nan_to_num(used).max(axis=1), 1.0), np.nan)
    return np.asarray(self_ps * (1.0 - best))[:, None]


def op_tree(ops: OpsPage, by: Grouping, duplicates: Sequence[str], with_idle: bool = True) -> OpTree:
    """One tree over all ops.

    Args:
        duplicates: the `deduplicated_name` of each op, empty where it has none.
        with_idle: whether idle time is a node and part of the root's time.
    """
    table = ops.table
    builder = _Builder(ops)
    category = [name or UNKNOWN_CATEGORY for name in table.category]
    if by == "source":
        sources = [source or NO_SOURCE for source in table.texts("source")]
        files = [source_location(source).file for source in sources]
        named = np.flatnonzero([source != NO_SOURCE for source in sources])
        builder.level("file", coded(files)[0], files.__getitem__, named)
        builder.level("line", coded(sources)[0], sources.__getitem__)
    elif by != "category":
        builder.level("program", coded(ops.program)[0], ops.program.__getitem__)
    if by == "provenance":
        _scopes(builder, table.framework_op)
    if by != "source":
        builder.level("category", coded(category)[0], category.__getitem__)
    _group_duplicates(builder, ops, duplicates)
    builder.level("op", np.arange(len(table)), table.name.__getitem__)
    if with_idle and ops.total_ps:
        builder.idle(ops.idle_ps)
    return _finished(builder, by, ops)


def _scopes(builder: _Builder, framework_ops: Sequence[str]) -> None:
    """Adds a level for each depth of framework scope; ops with fewer scopes stay where they are."""
    which, names = coded(framework_ops)
    parts = [provenance_parts(name)[:MOST_SCOPES] for name in names]
    depths = np.array(list(map(len, parts)), np.int64)
    for depth in range(int(depths.max(initial=0))):
        alive = np.flatnonzero(depths > depth)
        here = {int(number_of_path): parts[number_of_path][depth] for number_of_path in alive.tolist()}
        code = np.zeros(len(parts), np.int64)
        code[alive] = coded(here.values())[0]
        rows = np.flatnonzero((depths > depth)[which])
        builder.level("scope", code[which], lambda row, here=here: here[int(which[row])], rows)  # type: ignore[misc]


def _group_duplicates(builder: _Builder, ops: OpsPage, duplicates: Sequence[str]) -> None:
    """Adds a level for ops that are copies of one another: same program, same node so far, same deduplicated name."""
    names = [duplicate or own for duplicate, own in zip(duplicates, ops.table.name, strict=True)]
    code, _ = coded(zip(ops.program, names, strict=True))
    if not len(code):
        return
    _, inverse, counts = np.unique(builder.node * (int(code.max()) + 1) + code, return_inverse=True, return_counts=True)
    size = counts[inverse]

    def name(row: int) -> str:
        others = int(size[row]) - 1
        return f"{ops.table.name[row]} and {others} clone{'s' * (others != 1)}"

    builder.level("duplicates", code, name, np.flatnonzero(size > 1))


def _finished(builder: _Builder, by: Grouping, ops: OpsPage) -> OpTree:
    parent, time_ps = np.concatenate(builder.parents), np.concatenate(builder.time_ps)
    work, normalized = np.concatenate(builder.work), np.concatenate(builder.normalized)
    kinds = builder.kinds
    of_nodes = rates(work, time_ps.astype(np.float64), normalized, ops.peaks)
    whole = int(time_ps[0])
    fraction = time_ps / whole if whole else np.full(len(time_ps), np.nan)
    rank = np.empty(len(kinds), np.int64)
    rank[sorted(range(len(kinds)), key=builder.names.__getitem__)] = np.arange(len(kinds))
    order = np.lexsort((rank, -time_ps, parent)).astype(np.int64)
    nodes = np.arange(len(kinds))
    return OpTree(
        by=by,
        kind=tuple(kinds),
        name=tuple(builder.names),
        parent=parent,
        row=np.concatenate(builder.rows),
        time_ps=time_ps,
        occurrences=np.concatenate(builder.occurrences),
        work=work,
        rates=of_nodes,
        time_fraction=fraction,
        wasted_fraction=np.concatenate(builder.wasted)[:, 0] / (whole or np.nan),
        order=order,
        begin=np.searchsorted(parent[order], nodes, side="left").astype(np.int64),
        end=np.searchsorted(parent[order], nodes, side="right").astype(np.int64),
    )


def headline(tree: OpTree, ops: OpsPage, with_idle: bool = True) -> str:
    """Says how well the program uses the device, and what to look at first: idle time, or the op that wastes most."""
    if not len(ops):
        return f"No ops: {ops.unknown.get('ops', 'the profile holds none')}."
    # clones of one layer are one thing to look at: duplicates count together
    in_group = np.array([kind == "duplicates" for kind in tree.kind], np.bool_)
    leaves = np.array([kind == "op" for kind in tree.kind], np.bool_) & ~in_group[np.maximum(tree.parent, 0)]
    leaves |= in_group
    wasted = np.where(leaves, np.nan_to_num(tree.wasted_fraction), 0.0)
    worst = int(wasted.argmax())
    idle = ops.idle_ps / ops.total_ps if with_idle and ops.total_ps else 0.0
    if idle > max(MUCH_IDLE, float(wasted[worst])):
        return f"{_overall(tree, ops)} Look first at the idle time: {share(idle)} of the {ops.runs_on}s' time."
    unknown = np.where(leaves & np.isnan(tree.wasted_fraction), np.nan_to_num(tree.time_fraction), 0.0)
    if unknown.max(initial=0.0) > wasted[worst]:
        worst = int(unknown.argmax())
    elif not wasted[worst]:
        return _overall(tree, ops)
    bound, reached = tree.rates.bound_name(worst), share(float(tree.rates.efficiency[worst]))
    counted = np.nan_to_num(tree.rates.flops_per_second[worst]) > 0
    missing = "its roof is unknown" if counted else NO_FLOPS_OR_BYTES
    why = missing if bound == "unknown" else f"at {reached} of {tree.rates.peak_name(worst)}"
    if _is_host_transfer(int(tree.row[worst]), ops.table):
        why = "moving data to or from the host"
    part = share(float(tree.time_fraction[worst]))
    return f"{_overall(tree, ops)} Look first at {tree.name[worst]}: {part} of all time, {why}."


def _is_host_transfer(row: int, table: OpTable) -> bool:
    """Whether an op moves data from or to the host: no peak of the device bounds it. A negative row is no op."""
    op_class = table.classes()[row] if row >= 0 else ""
    return op_class == "host" or (op_class == "copy" and is_in_host_memory(table.expression(row)))


_MUCH_UNCOUNTED = 0.01


def _overall(tree: OpTree, ops: OpsPage) -> str:
    flops, hbm = float(tree.rates.flops_utilization[0]), float(tree.rates.bandwidth_utilization[0, 0])
    parts = [f"{what} {share(value)}" for value, what in ((flops, "FLOPS"), (hbm, "HBM")) if np.isfinite(value)]
    if not parts and ops.runs_on == "host thread":
        return "The host's CPU ran these ops, as there is no device."
    if not parts:
        return "No peaks are known." if ops.peaks.hbm is None else "No FLOPs or bytes are counted."
    everything = int(ops.table.self_ps.sum())
    missing = int(ops.table.self_ps[uncounted(ops.table)].sum()) / max(everything, 1)
    counted = f", counted for {share(1 - missing)} of the ops' time" if missing >= _MUCH_UNCOUNTED else ""
    return f"{', '.join(parts)} of peak{counted}."


def op_profile_of_run(session: PageSession, host: str | None, with_idle: bool) -> OpProfilePage:
    """The op profile's trees, with idle time or without."""
    return op_profile_page(session.page(OPS, host), with_idle)


OP_PROFILE = PageKey(partial(op_profile_of_run, with_idle=True))
OP_PROFILE_WITHOUT_IDLE = PageKey(partial(op_profile_of_run, with_idle=False))
