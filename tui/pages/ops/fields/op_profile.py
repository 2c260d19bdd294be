"""The quantities of a node of the op profile, and the texts that ops alone have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.base.words import NO_FRAMEWORK_OP
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import WORK
from tpuprof.parsers.pages.ops.op_profile import GROUPINGS, OpTree
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.tui.draw.format import count
from tpuprof.tui.pages.ops.fields import common
from tpuprof.tui.pages.ops.fields.common import MEMORIES, memory_words
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS, PROGRAM, expressions, text_of
from tpuprof.tui.report.fields import Field, Rows, Table, column, in_order, take
from tpuprof.tui.report.units import COUNT, GFLOPS, NUMBER, SHARE, TEXT, TIME_PS, WHOLE, Unit, plain

NODE_MEMORIES = ("hbm", "on_chip_read", "on_chip_write")  # the memories that the op profile distinguishes
NO_NODE_CATEGORY = "programs, scopes and idle time have none, and so have ops without one in the profile"


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a tree, and the ops that it was made of."""

    page: OpsPage
    tree: OpTree

    def __len__(self) -> int:
        return len(self.tree.name)

    def categories(self, rows: Rows) -> list[str | None]:
        """HLO categories of ops, and the names of nodes that stand for one."""
        tree, known = self.tree, self.page.table.category
        return [
            known[tree.row[node]] if tree.row[node] >= 0 else tree.name[node] if tree.kind[node] == "category" else None
            for node in rows
        ]

    def occurrences(self, rows: Rows) -> list[int | None]:
        """Those of all ops under each node, the root as well; None for idle time."""
        tree = self.tree
        under = [int(self.page.table.occurrences.sum()), *tree.occurrences[1:].tolist()]
        return [None if tree.kind[node] == "idle" else under[node] for node in rows]


def _node_times(nodes: Nodes, rows: Rows) -> list[int | None]:
    times: NDArray[np.int64] = nodes.tree.time_ps
    return [int(times[node]) or None if node == 0 else int(times[node]) for node in rows]


def _node_names(nodes: Nodes, rows: Rows) -> list[str]:
    return [nodes.tree.name[node] if node else f"by_{nodes.tree.by}" for node in rows]


def _used(memory: str) -> Field[Nodes]:
    key = f"bandwidth_utilization.{MEMORIES[memory]}"
    meaning = f"traffic a second over the peak: {memory_words(memory)}"
    read = column("tree.rates.bandwidth_utilization", TRAFFIC.index(memory))
    return Field(key, SHARE, read, meaning, common.NO_BANDWIDTH, "HBM" if memory == "hbm" else "")


def _moved(memory: str) -> Field[Nodes]:
    key, null = f"bytes.{MEMORIES[memory]}", common.NO_BYTES if memory == "hbm" else common.NO_BREAKDOWN
    return Field(key, WHOLE, column("tree.work", WORK.index(memory)), f"bytes moved: {memory_words(memory)}", null)


_NAME = "the node's name; the root's says what the tree is grouped by"
_WASTED = (
    "its share of all time, times the unused part of the matrix unit or of HBM, whichever is used more; idle "
    "time is all wasted"
)
_OCCURRENCES = "how often the ops under it ran, over all cores"
_TIME, _FLOPS = "self time of all ops under it, over all cores", "FLOP/s over the device's peak"
_RATE = "FLOPs over the self time"
_NO_PEAK = f"{common.NO_FLOPS}, or the peak is unknown"
_NO_WASTE = f"{common.NO_BOUND}; or there is no time at all"

_FIELDS: tuple[Field[Nodes], ...] = (
    Field("name", TEXT, _node_names, _NAME, heading="name"),
    Field("kind", TEXT, column("tree.kind"), "root, program, category, scope, op or idle", heading="kind"),
    Field("category", TEXT, Nodes.categories, "the HLO category", NO_NODE_CATEGORY),
    Field("occurrences", COUNT, Nodes.occurrences, _OCCURRENCES, "idle time has none", "count"),
    Field("time_ps", TIME_PS, _node_times, _TIME, common.NO_TIME, "self time"),
    Field("time_fraction", SHARE, column("tree.time_fraction"), "its share of the tree's time", common.NO_TIME, "time"),
    Field("flops_utilization", SHARE, column("tree.rates.flops_utilization"), _FLOPS, _NO_PEAK, "FLOPS"),
    *map(_used, NODE_MEMORIES),
    Field("gflops_per_second", GFLOPS, column("tree.rates.flops_per_second"), _RATE, common.NO_FLOPS, "FLOP/s"),
    Field("flops", WHOLE, column("tree.work", WORK.index("flops")), "FLOPs of all ops under it", common.NO_FLOPS),
    *map(_moved, NODE_MEMORIES),
    Field("wasted_fraction", SHARE, column("tree.wasted_fraction"), _WASTED, _NO_WASTE, "wasted"),
)

NODES: Table[Nodes] = Table(
    "children",
    _FIELDS,
    len,
    markdown=in_order(
        "name kind time_fraction time_ps occurrences flops_utilization bandwidth_utilization.hbm wasted_fraction"
    ),
)

_TEXTS: tuple[Field[OpsPage], ...] = (
    Field("program", PROGRAM, column("program"), "the HLO module", common.NO_PROGRAM),
    Field("expression", TEXT, expressions, "the HLO text", common.NO_EXPRESSION),
    Field("framework_op", TEXT, column("table.framework_op"), "the framework op", NO_FRAMEWORK_OP),
    Field("source", TEXT, text_of("source"), "the source file and line", common.NO_SOURCE),
    HLO_OPS.by_key["above_peak_why"],
    Field("layout", TEXT, text_of("shape_with_layout"), "the shape of the result, with its layout", common.NO_SHAPE),
)
OP_TEXTS: Table[OpsPage] = Table("ops", _TEXTS, len)
"""The texts of nodes that are ops."""

TREES = tuple(f"by_{grouping}" for grouping in GROUPINGS)  # keys of the trees in JSON


@dataclass(frozen=True, slots=True)
class WalkedNodes(Sized):
    """The nodes of a tree below its root in the order in which they are listed, those of a closed node left out.

    Attributes:
        node: of each row; depth: 0 for the root's children; path: the names on the way to it.
        hidden: how many of its children are left out.
    """

    sized_by = "node"
    nodes: Nodes
    node: Sequence[int]
    depth: Sequence[int]
    path: Sequence[str]
    hidden: Sequence[int]


def _walked(quantity: Field[Nodes]) -> Field[WalkedNodes]:
    """A field of nodes, read in the order of a walk."""

    def read(walk: WalkedNodes, rows: Rows) -> Sequence[Any] | NDArray[Any]:
        return quantity.read(walk.nodes, take(walk.node, rows))

    return Field(quantity.key, quantity.unit, read, quantity.meaning, quantity.null, quantity.heading)


def _of_ops(quantity: Field[OpsPage]) -> Field[WalkedNodes]:
    meaning = f"{quantity.meaning}, of ops only"
    return Field(quantity.key, quantity.unit, lambda walk, rows: [None] * len(rows), meaning, quantity.null)


_MORE = Unit("count", plain, lambda hidden, _: f"+ {count(hidden)} more" if hidden else "")
_NOT_LISTED = "children that are not listed, of fusions the instructions inside"
_HIDDEN: Field[WalkedNodes] = Field("hidden_children", _MORE, column("hidden"), _NOT_LISTED, heading="not shown")

WALKED: Table[WalkedNodes] = Table(
    "children",
    (
        Field("path", TEXT, column("path"), "names of the nodes on the way to it"),
        Field("depth", NUMBER, column("depth"), "levels below the root's children"),
        *map(_walked, NODES.fields),
        _HIDDEN,
        *map(_of_ops, OP_TEXTS.fields),
    ),
    len,
    json=(*NODES.json, *OP_TEXTS.json, "hidden_children"),
    csv=("path", "depth", *NODES.json, "hidden_children"),
    markdown=(*NODES.markdown, "hidden_children"),
    places=(*TREES, *(f"{tree}.children[]" for tree in TREES)),
)
"""A tree as rows."""

UNTIMED = NODES.json[NODES.json.index("occurrences") :]  # what instructions inside fusions lack


def node_unknown(unknown: Mapping[str, str]) -> dict[str, str]:
    """What a page says of unknown figures of ops, by the keys of nodes."""
    hbm = unknown.get("ops[].hbm_bandwidth_utilization")
    return {**unknown, "ops[].bandwidth_utilization.hbm": hbm} if hbm else dict(unknown)
