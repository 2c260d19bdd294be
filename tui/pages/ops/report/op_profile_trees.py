"""The op profile as JSON: its three trees, a node on a line of its own.

In `unknown` a key such as ``by_program.children[].flops`` stands for all nodes below the root, however deep. The
instructions inside fusions are children of their ops in `by_program`; in the other trees, where they would be the same
again, `hidden_children` counts them.

A file can nest scopes as deeply as it likes. Trees are written without recursion, and no deeper than most JSON readers
can read them: what lies below is counted in `hidden_children`, and a warning says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.ops.op_profile import GROUPINGS, OpProfilePage, OpTree
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.tui.pages.ops.fields.device import DEVICE, OP_COUNT, SIMULATED, WHOLE_TIME, time_figures
from tpuprof.tui.pages.ops.fields.op_profile import NODES, OP_TEXTS, UNTIMED, Nodes, node_unknown
from tpuprof.tui.report.fields import (
    NO_REASON,
    RowColumns,
    columns,
    figure_reasons,
    figure_values,
    reasons,
    records,
)
from tpuprof.tui.report.json import head, laid_out, safe
from tpuprof.tui.report.units import Value

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import Instruction

MOST_LEVELS = 100
"""Levels of nodes below a root; JSON nests twice as deep, and common readers stop at 256."""

MOST_INSTRUCTIONS = 500_000
"""Instructions inside fusions after which no more fusions are looked into: many ops can share one large computation."""

INSIDE_A_FUSION = "instructions inside a fusion have no time or work of their own"
ONLY_OPS = "only ops have one"

_TEXTS = OP_TEXTS.json
_NOTHING: dict[str, Value] = dict.fromkeys(_TEXTS)

Fused = Callable[[int], "Sequence[Instruction]"]
"""The instructions inside an op, given its row in the ops page; none for an op that is no fusion."""


@dataclass(slots=True)
class _Fused:
    """What is inside fusions, each looked up and written once."""

    look: Fused
    left: int = MOST_INSTRUCTIONS
    texts: dict[int, tuple[int, list[str]]] = field(default_factory=dict)
    nulls: set[str] = field(default_factory=set)

    def of(self, row: int, limit: int) -> tuple[int, list[str]]:
        """How many instructions an op has inside, and the first of them as JSON."""
        if row not in self.texts:
            inside = self.look(row) if self.left >= 0 else ()
            kept = min(len(inside), limit or len(inside), max(0, self.left))
            self.left -= len(inside)
            self.texts[row] = len(inside), self._written(inside[:kept]) if kept else []
        return self.texts[row]

    def _written(self, inside: Sequence[Instruction]) -> list[str]:
        columns = _instructions(inside)
        self.nulls |= _nulls(columns, range(len(inside)))
        return [_dump({**node, "hidden_children": 0, "children": []}) for node in records(columns)]


def op_profile_json(page: OpProfilePage, run: Run, limit: int = 0, fused: Fused = lambda _: ()) -> str:
    """The op profile as JSON text; at most `limit` children a node, 0 for all."""
    ops = page.ops
    inside = _Fused(fused)
    unknown: dict[str, str] = {}
    texts = _row_texts(ops)
    trees: dict[str, str] = {}
    depths = []
    for by in GROUPINGS:
        tree = page.tree(by)
        written = _tree(ops, tree, texts, inside, limit)
        trees[f"by_{by}"] = written.text
        depths.append(written.is_cut)
        _explain(f"by_{by}", ops.unknown, written, inside.nulls if by == "program" else set(), unknown)
    warnings = list(ops.warnings)
    if any(depths):
        warnings.append(f"scopes nest deeper than {MOST_LEVELS} levels; what lies below is left out")
    if inside.left < 0:
        warnings.append(f"fusions hold more than {MOST_INSTRUCTIONS:,} instructions; not all were looked into")
    body = {
        **head("op-profile", run, ops.hosts, warnings),
        **figure_values((*WHOLE_TIME, SIMULATED, *DEVICE, OP_COUNT), ops),
        "headline": page.headline,
    }
    known: dict[str, str] = {}
    why_null = figure_reasons((*time_figures(ops), *DEVICE))
    before = laid_out({key: safe(value, key, why_null, known) for key, value in body.items()})
    after = laid_out({"unknown": {key: printable(why) for key, why in {**known, **unknown}.items()}})
    middle = "".join(f'  "{key}": {text},\n' for key, text in trees.items())
    return f"{before[:-3]},\n{middle}{after[2:]}"


@dataclass(frozen=True, slots=True)
class _Written:
    """A tree as text.

    Attributes:
        is_cut: it is deeper than `MOST_LEVELS`.
        root_nulls, nulls: keys that are null in the root, and in a node below it; `op_nulls` in ops of them.
    """

    text: str
    is_cut: bool
    root_nulls: frozenset[str]
    nulls: frozenset[str]
    op_nulls: frozenset[str]


def _tree(ops: OpsPage, tree: OpTree, texts: Sequence[Mapping[str, Value]], inside: _Fused, limit: int) -> _Written:
    """Writes a tree from the root down, children below their parents, without recursion."""
    node_columns = _node_columns(ops, tree)
    nodes = records(node_columns)
    rows = [row if kind == "op" else -1 for kind, row in zip(tree.kind, tree.row.tolist(), strict=True)]
    out: list[str] = []
    shown: list[int] = []
    is_cut = False
    stack: list[tuple[int, int, str]] = [(0, 1, "")]  # node, depth and what stands before; -1 for an end
    while stack:
        node, depth, before = stack.pop()
        out.append(before)
        if node < 0:
            continue
        shown.append(node)
        children, hidden = tree.top_children(node, limit=limit) if tree.end[node] > tree.begin[node] else (_NONE, 0)
        if len(children) and depth > MOST_LEVELS:
            children, hidden, is_cut = _NONE, hidden + len(children), True
        instructions: list[str] = []
        if rows[node] >= 0:
            number, instructions = inside.of(rows[node], limit)
            instructions = instructions if tree.by == "program" else []
            hidden = number - len(instructions)
        own = texts[rows[node]] if rows[node] >= 0 else _NOTHING
        out.append(_dump({**nodes[node], **own, "hidden_children": hidden})[:-1])
        out.append(', "children": [')
        gap = "\n" + "  " * (depth + 1)
        out.append(gap + ("," + gap).join(instructions) if instructions else "")
        stack.append((-1, 0, f"{gap[:-2]}]}}" if len(children) or instructions else "]}"))
        for index, child in enumerate(children[::-1].tolist(), 1):
            stack.append((child, depth + 1, gap if index == len(children) else "," + gap))
    below, of_ops = shown[1:], [node for node in shown if rows[node] >= 0]
    return _Written(
        text="".join(out),
        is_cut=is_cut,
        root_nulls=_nulls(node_columns, [0]) | frozenset(_TEXTS),
        nulls=_nulls(node_columns, below) | frozenset(_TEXTS if len(of_ops) < len(below) else ()),
        op_nulls=frozenset(key for key in _TEXTS if any(texts[rows[node]][key] is None for node in of_ops)),
    )


_NONE = np.zeros(0, np.int64)


def _explain(
    name: str, page: Mapping[str, str], written: _Written, of_instructions: Iterable[str], unknown: dict[str, str]
) -> None:
    """Notes why something of a tree is null: each cause that there is one of."""
    why_null = reasons((*OP_TEXTS.fields, *NODES.fields), name, node_unknown(page), "ops[]")
    for key in sorted(written.root_nulls):
        unknown[f"{name}.{key}"] = ONLY_OPS if key in _TEXTS else why_null.get(f"{name}.{key}", NO_REASON)
    found: dict[str, list[str]] = {}
    for key in sorted(written.nulls):
        found.setdefault(key, []).append(ONLY_OPS if key in _TEXTS else why_null.get(f"{name}.{key}", NO_REASON))
    for key in sorted(written.op_nulls):
        found.setdefault(key, []).append(why_null.get(f"{name}.{key}", NO_REASON))
    for key in sorted(of_instructions):
        why = why_null.get(f"{name}.{key}", NO_REASON) if key in _TEXTS else INSIDE_A_FUSION
        if why not in found.setdefault(key, []):
            found[key].append(why)
    for key, causes in found.items():
        unknown[f"{name}.children[].{key}"] = "; ".join(causes)


def _nulls(columns: RowColumns, nodes: Sequence[int]) -> frozenset[str]:
    """Keys of the columns that are null in one of the nodes."""
    return frozenset(key for key, values in columns.items() if any(values[node] is None for node in nodes))


def _row_texts(ops: OpsPage) -> list[dict[str, Value]]:
    """The texts of each op, fit to print."""
    found = columns(OP_TEXTS, ops, range(len(ops)))
    safe_columns = [[_text(value) for value in found[key]] for key in _TEXTS]
    return [dict(zip(_TEXTS, row, strict=True)) for row in zip(*safe_columns, strict=True)]


def _node_columns(ops: OpsPage, tree: OpTree) -> RowColumns:
    """The nodes of a tree, without the texts that ops alone have; their names fit to print."""
    found = columns(NODES, Nodes(ops, tree), range(len(tree.name)))
    return {**found, **{key: [_text(value) for value in found[key]] for key in ("name", "category")}}


def _text(value: Value) -> Value:
    return printable(value) if isinstance(value, str) else value


def _instructions(inside: Sequence[Instruction]) -> RowColumns:
    """Instructions inside a fusion with the keys of nodes; their category is their opcode, their layout their shape."""
    return {
        "name": [_text(quantity.name) for quantity in inside],
        "kind": ["instruction"] * len(inside),
        "category": [_text(quantity.opcode or None) for quantity in inside],
        **{key: [None] * len(inside) for key in UNTIMED},
        "expression": [_text(quantity.expression or None) for quantity in inside],
        "framework_op": [_text(quantity.framework_op or None) for quantity in inside],
        "source": [_text(quantity.source or None) for quantity in inside],
        "layout": [_text(quantity.shape or None) for quantity in inside],
    }


_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
