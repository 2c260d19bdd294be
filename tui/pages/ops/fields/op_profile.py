"""The quantities of a node of the op profile, and the texts that ops alone have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import WORK
from tpuprof.parsers.pages.ops.op_profile import GROUPINGS, OpTree
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.tui.draw.format import count
from tpuprof.tui.pages.ops.fields.common import (
    MEMORIES,
    NO_BANDWIDTH,
    NO_BOUND,
    NO_BREAKDOWN,
    NO_BYTES,
    NO_EXPRESSION,
    NO_FLOPS,
    NO_FRAMEWORK_OP,
    NO_PROGRAM,
    NO_SHAPE,
    NO_SOURCE,
    NO_TIME,
    PROGRAM,
    memory_words,
    picked,
)
from tpuprof.tui.report.fields import Field, Table
from tpuprof.tui.report.units import COUNT, NUMBER, SHARE, TEXT, TIME_PS, WHOLE, Unit, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tpuprof.tui.report.fields import Rows

NODE_MEMORIES = ("hbm", "on_chip_read", "on_chip_write")
"""The memories that the op profile tells apart."""

NO_CATEGORY = "programs, scopes and idle time have none, nor have ops of which the profile tells none"


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


def _tree(name: str) -> Callable[[Nodes, Rows], NDArray[np.float64]]:
    """Reads a column of the tree."""
    return lambda nodes, rows: getattr(nodes.tree, name)[rows]


def _used(memory: str) -> Field[Nodes]:
    column = TRAFFIC.index(memory)
    return Field(
        f"bandwidth_utilization.{MEMORIES[memory]}",
        SHARE,
        lambda nodes, rows: nodes.tree.rates.bandwidth_utilization[rows, column],
        f"traffic a second over the peak: {memory_words(memory)}",
        null=NO_BANDWIDTH,
        heading="HBM" if memory == "hbm" else "",
    )


def _moved(memory: str) -> Field[Nodes]:
    column = WORK.index(memory)
    return Field(
        f"bytes.{MEMORIES[memory]}",
        WHOLE,
        lambda nodes, rows: nodes.tree.work[rows, column],
        f"bytes moved: {memory_words(memory)}",
        null=NO_BYTES if memory == "hbm" else NO_BREAKDOWN,
    )


def _node_times(nodes: Nodes, rows: Rows) -> list[int | None]:
    times: NDArray[np.int64] = nodes.tree.time_ps
    return [int(times[node]) or None if node == 0 else int(times[node]) for node in rows]


def _node_names(nodes: Nodes, rows: Rows) -> list[str]:
    return [nodes.tree.name[node] if node else f"by_{nodes.tree.by}" for node in rows]


NODES: Table[Nodes] = Table(
    "children",
    (
        Field(
            "name",
            TEXT,
            _node_names,
            "the node's name; the root's says what the tree is grouped by",
            heading="by program",
        ),
        Field(
            "kind",
            TEXT,
            lambda nodes, rows: picked(nodes.tree.kind, rows),
            "root, program, category, scope, op or idle",
            heading="kind",
        ),
        Field("category", TEXT, lambda nodes, rows: nodes.categories(rows), "the HLO category", null=NO_CATEGORY),
        Field(
            "occurrences",
            COUNT,
            lambda nodes, rows: nodes.occurrences(rows),
            "how often the ops under it ran, over all cores",
            null="idle time has none",
            heading="count",
        ),
        Field(
            "time_ps",
            TIME_PS,
            _node_times,
            "self time of all ops under it, over all cores",
            null=NO_TIME,
            heading="self time",
        ),
        Field(
            "time_fraction", SHARE, _tree("time_fraction"), "its time, of the tree's time", null=NO_TIME, heading="time"
        ),
        Field(
            "flops_utilization",
            SHARE,
            lambda nodes, rows: nodes.tree.rates.flops_utilization[rows],
            "FLOP/s over the device's peak",
            null=f"{NO_FLOPS}, or the peak is unknown",
            heading="FLOPS",
        ),
        *map(_used, NODE_MEMORIES),
        Field(
            "flops",
            WHOLE,
            lambda nodes, rows: nodes.tree.work[rows, WORK.index("flops")],
            "FLOPs of all ops under it",
            null=NO_FLOPS,
        ),
        *map(_moved, NODE_MEMORIES),
        Field(
            "wasted_fraction",
            SHARE,
            _tree("wasted_fraction"),
            "its share of all time, times what is left of the better used of matrix unit and HBM; idle is wasted whole",
            null=f"{NO_BOUND}; or there is no time at all",
            heading="wasted",
        ),
    ),
    len,
    json=(
        "name",
        "kind",
        "category",
        "occurrences",
        "time_ps",
        "time_fraction",
        "flops_utilization",
        *(f"bandwidth_utilization.{MEMORIES[name]}" for name in NODE_MEMORIES),
        "flops",
        *(f"bytes.{MEMORIES[name]}" for name in NODE_MEMORIES),
        "wasted_fraction",
    ),
    markdown=(
        "name",
        "kind",
        "time_fraction",
        "time_ps",
        "occurrences",
        "flops_utilization",
        "bandwidth_utilization.hbm",
        "wasted_fraction",
    ),
)


def _texts(stat: str) -> Callable[[OpsPage, Rows], list[str]]:
    return lambda page, rows: page.table.texts(stat, np.asarray(rows))


OP_TEXTS: Table[OpsPage] = Table(
    "ops",
    (
        Field(
            "program",
            PROGRAM,
            lambda page, rows: picked(page.program, rows),
            "the HLO module",
            null=NO_PROGRAM,
        ),
        Field(
            "expression",
            TEXT,
            lambda page, rows: [page.table.expression(int(row)) for row in rows],
            "the HLO text",
            null=NO_EXPRESSION,
        ),
        Field(
            "framework_op",
            TEXT,
            lambda page, rows: picked(page.table.framework_op, rows),
            "the framework op",
            null=NO_FRAMEWORK_OP,
        ),
        Field("source", TEXT, _texts("source"), "the source file and line", null=NO_SOURCE),
        Field("layout", TEXT, _texts("shape_with_layout"), "the shape of the result, with its layout", null=NO_SHAPE),
    ),
    len,
    json=("program", "expression", "framework_op", "source", "layout"),
)
"""The texts of nodes that are ops."""


TREES = tuple(f"by_{grouping}" for grouping in GROUPINGS)
"""Keys of the trees in JSON."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The nodes of a tree below its root in the order in which they are listed, those of a closed node left out.

    Attributes:
        node: of each row; depth: 0 for the root's children; path: the names on the way to it.
        hidden: how many of its children are left out.
    """

    nodes: Nodes
    node: Sequence[int]
    depth: Sequence[int]
    path: Sequence[str]
    hidden: Sequence[int]

    def __len__(self) -> int:
        return len(self.node)


def _walked(quantity: Field[Nodes]) -> Field[Walk]:
    """A field of nodes, read in the order of a walk."""
    return Field(
        quantity.key,
        quantity.unit,
        lambda walk, rows: quantity.read(walk.nodes, picked(walk.node, rows)),
        quantity.meaning,
        quantity.null,
        quantity.heading,
    )


MORE = Unit("count", plain, lambda hidden, _: f"+ {count(hidden)} more" if hidden else "")

WALKED: Table[Walk] = Table(
    "children",
    (
        Field("path", TEXT, lambda walk, rows: picked(walk.path, rows), "names of the nodes on the way to it"),
        Field("depth", NUMBER, lambda walk, rows: picked(walk.depth, rows), "levels below the root's children"),
        *map(_walked, NODES.fields),
        Field(
            "hidden_children",
            MORE,
            lambda walk, rows: picked(walk.hidden, rows),
            "children that are not listed, of fusions the instructions inside",
            heading="not shown",
        ),
        *(
            Field(
                quantity.key,
                quantity.unit,
                lambda walk, rows: [None] * len(rows),
                f"{quantity.meaning}, of ops alone",
                quantity.null,
            )
            for quantity in OP_TEXTS.fields
        ),
    ),
    len,
    json=(*NODES.json, *OP_TEXTS.json, "hidden_children"),
    csv=("path", "depth", *NODES.json, "hidden_children"),
    markdown=(*NODES.markdown, "hidden_children"),
    places=(*TREES, *(f"{tree}.children[]" for tree in TREES)),
)
"""A tree as rows."""

UNTIMED = NODES.json[NODES.json.index("occurrences") :]
"""What instructions inside fusions lack."""


def node_unknown(unknown: Mapping[str, str]) -> dict[str, str]:
    """What a page says of unknown figures of ops, by the keys of nodes."""
    hbm = unknown.get("ops[].hbm_bandwidth_utilization")
    return {**unknown, "ops[].bandwidth_utilization.hbm": hbm} if hbm else dict(unknown)
