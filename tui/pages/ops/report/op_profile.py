"""The report on the op profile: its tree by program for people, all three trees in JSON, a node on a line of its own.

In `unknown` a key such as ``by_program.children[].flops`` stands for all nodes below the root, however deep. The
instructions inside fusions are children of their ops in `by_program`; in the other trees, where they would be the same
again, `hidden_children` counts them.

A file can nest scopes as deeply as it likes. Trees are written without recursion, and no deeper than most JSON readers
can read them: what lies below is counted in `hidden_children`, and a warning says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from json import JSONEncoder
from operator import attrgetter

import numpy as np

from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.modules import Instruction
from tpuprof.parsers.formats.hlo.programs import HloModules, module_of
from tpuprof.parsers.pages.ops.op_profile import GROUPINGS, OP_PROFILE, OpProfilePage, OpTree
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.shared.key import MODULES
from tpuprof.tui.draw.format import share
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.fields.common import DEVICE, OP_COUNT, SIMULATED, WHOLE_TIME, time_metrics
from tpuprof.tui.pages.ops.fields.op_profile import NODES, OP_TEXTS, UNTIMED, WALKED, Nodes, WalkedNodes, node_unknown
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.pages.ops.tree import whole_tree
from tpuprof.tui.report import fields
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, Values, declared, drawn_by
from tpuprof.tui.report.fields import NO_REASON, RowColumns, attribute, columns, records
from tpuprof.tui.report.json import Written
from tpuprof.tui.report.markdown import not_shown, rows_table
from tpuprof.tui.report.page import ReportRequest
from tpuprof.tui.report.units import TEXT, Value

PATH_SEPARATOR = " / "
INDENT = "\u00a0\u00a0"  # what a browser does not fold
HEADLINE = attribute("headline", TEXT, "the conclusion, in a sentence")

MOST_LEVELS = 100  # Levels of nodes below a root; JSON nests twice as deep, and common readers stop at 256.
MOST_INSTRUCTIONS = 500_000
"""Instructions inside fusions after which no more fusions are searched: many ops can share one large computation."""

INSIDE_A_FUSION = "instructions inside a fusion have no time or work of their own"
ONLY_OPS = "only ops have one"

_TEXTS = OP_TEXTS.json
_NOTHING: dict[str, Value] = dict.fromkeys(_TEXTS)
_NONE = np.zeros(0, np.int64)

_source_trees = drawn_by("tpuprof.parsers.pages.ops.sources:source_trees")
Fused = Callable[[int], "Sequence[Instruction]"]
"""The instructions inside an op, given its row in the ops page; none for an op that is no fusion."""

_Keys = Collection[str]
_dump = JSONEncoder(ensure_ascii=False, allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class OpProfile:
    """The page, and what says what is inside fusions."""

    page: OpProfilePage
    fused: Fused = lambda _: ()


def read(request: ReportRequest) -> OpProfile:
    """Reads the page."""
    session = request.session(request.run)
    page, modules = session.page(OP_PROFILE, request.host), session.page(MODULES, request.host)
    return OpProfile(page, lambda row: fused(page.ops, modules, row))


def fused(ops: OpsPage, modules: Sequence[HloModules], row: int) -> Sequence[Instruction]:
    """The instructions inside a fusion, none where it is no fusion or the profile lacks its module."""
    if not (ops.table.category[row] or "").endswith("fusion"):
        return ()
    module = module_of(modules, int(ops.table.program_id[row]))
    return () if module is None else module.fused(ops.table.name[row])


def walk(nodes: Nodes, limit: int = 0) -> WalkedNodes:
    """Goes through the nodes below the root, depth first, at most `limit` children each (0: all)."""
    tree = nodes.tree
    rows: list[tuple[int, int, str, int]] = []
    stack = [(child, 0, "") for child in tree.top_children(0, limit=limit)[0][::-1].tolist()]
    while stack:
        node, depth, above = stack.pop()
        path = f"{above}{PATH_SEPARATOR}{tree.name[node]}" if above else tree.name[node]
        children, hidden = tree.top_children(node, limit=limit)
        rows.append((node, depth, path, hidden))
        stack += [(child, depth + 1, path) for child in children[::-1].tolist()]
    return WalkedNodes(nodes, *(map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])))


def declare(profile: OpProfile, request: ReportRequest) -> Declared:
    """The three trees in JSON, the one by program elsewhere; at most `limit` children a node."""
    page, most = profile.page, request.most_rows
    ops, rates = page.ops, page.by_program.rates
    walked, by = walk(Nodes(ops, page.by_program), most), request.options.get("by")
    grouped = walked if by is None else walk(Nodes(ops, _tree_by(page, by)))
    return Declared(
        common.head("Op profile", ops, request),
        statement=page.headline,
        metrics=lambda: [
            *common.time_rows(ops),
            ("FLOPS utilization, of peak", share(float(rates.flops_utilization[0]))),
            ("HBM bandwidth utilization, of peak", share(float(rates.bandwidth_utilization[0, 0]))),
        ],
        parts=(
            Metrics((*time_metrics(ops), SIMULATED, *DEVICE, OP_COUNT), ops),
            Metrics((HEADLINE,), page),
            Block(lambda: _trees(profile, most), lambda: _indented(page.by_program, walked, most)),
        ),
        csv=Section(WALKED, grouped),
        text=lambda pen: _text(page, most, pen),
        unknown=common.worth_saying(ops.unknown),
        reasons={},
    )


def _tree_by(page: OpProfilePage, by: str) -> OpTree:
    if by == "source":
        tree: OpTree = _source_trees(page.ops).with_idle
        return tree
    return page.tree(next(each for each in GROUPINGS if each == by))


def _indented(tree: OpTree, walked: WalkedNodes, limit: int) -> list[str]:
    """The tree as Markdown shows it: nodes are indented, and idle time has no occurrences and no work."""
    cells = fields.markdown_rows(WALKED, walked, range(len(walked)))
    work = [WALKED.markdown.index(key) for key in ("occurrences", "flops_utilization", "bandwidth_utilization.hbm")]
    for node, depth, row in zip(walked.node, walked.depth, cells, strict=True):
        row[0] = INDENT * depth + row[0]
        for place in work if tree.kind[node] == "idle" else ():
            row[place] = ""
    left_out = tree.top_children(0, limit=limit)[1]
    return [*rows_table("Op profile by program", WALKED, cells), *not_shown(left_out)]


def _text(page: OpProfilePage, limit: int, pen: Pen) -> list[Line]:
    said = pen.wrap(page.headline, "strong")
    tree = whole_tree(page, page.by_program, pen, limit)
    return common.text_lines(page.ops, [*said, *tree], page.ops.unknown, pen)


@dataclass(slots=True)
class _Fused:
    """What is inside fusions, each looked up and, where it is shown, written once."""

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


def _trees(profile: OpProfile, limit: int) -> Values:
    """The three trees as JSON text; at most `limit` children a node, 0 for all, and how many are hidden."""
    ops, inside = profile.page.ops, _Fused(profile.fused)
    found = columns(OP_TEXTS, ops, range(len(ops)))
    texts = records({key: list(map(_printable, found[key])) for key in _TEXTS})
    trees = [_tree(ops, profile.page.tree(by), texts, inside, limit) for by in GROUPINGS]
    warnings = []
    if any(is_cut for _, is_cut in trees):
        warnings.append(f"scopes nest deeper than {MOST_LEVELS} levels; deeper levels are left out")
    if inside.left < 0:
        warnings.append(f"fusions hold more than {MOST_INSTRUCTIONS:,} instructions; not all were searched")
    return Values({f"by_{by}": tree for by, (tree, _) in zip(GROUPINGS, trees, strict=True)}, warnings=warnings)


def _tree(
    ops: OpsPage, tree: OpTree, texts: Sequence[Mapping[str, object]], inside: _Fused, limit: int
) -> tuple[Written, bool]:
    """Writes a tree from the root down, children below their parents, without recursion.

    Returns:
        The tree with why something of it is null, and whether it is deeper than `MOST_LEVELS`.
    """
    found = columns(NODES, Nodes(ops, tree), range(len(tree.name)))
    found |= {key: list(map(_printable, found[key])) for key in ("name", "category")}
    nodes = records(found)
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
    others = frozenset(_TEXTS if len(of_ops) < len(below) else ())
    of_texts = frozenset(key for key in _TEXTS if any(texts[rows[node]][key] is None for node in of_ops))
    of_instructions = inside.nulls if tree.by == "program" else frozenset()
    in_root, in_nodes = _nulls(found, [0]), _nulls(found, below) | others
    unknown = _explained(f"by_{tree.by}", ops.unknown, in_root, in_nodes, of_texts, of_instructions)
    return Written("".join(out), unknown), is_cut


def _explained(
    name: str, page: Mapping[str, str], root: _Keys, nodes: _Keys, ops: _Keys, instructions: _Keys
) -> dict[str, str]:
    """Why something of a tree is null, each cause once: keys that are null in the root, and below it in what."""
    by_key = fields.reasons((*OP_TEXTS.fields, *NODES.fields), name, node_unknown(page), "ops[]")

    def why(key: str) -> str:
        return by_key.get(f"{name}.{key}", NO_REASON)

    unknown = {f"{name}.{key}": ONLY_OPS if key in _TEXTS else why(key) for key in sorted({*root, *_TEXTS})}
    found = [(key, ONLY_OPS if key in _TEXTS else why(key)) for key in sorted(nodes)]
    found += [(key, why(key)) for key in sorted(ops)]
    found += [(key, why(key) if key in _TEXTS else INSIDE_A_FUSION) for key in sorted(instructions)]
    causes: dict[str, dict[str, None]] = {}
    for key, cause in found:
        causes.setdefault(key, {})[cause] = None
    return unknown | {f"{name}.children[].{key}": "; ".join(of_key) for key, of_key in causes.items()}


def _nulls(columns: RowColumns, nodes: Sequence[int]) -> frozenset[str]:
    return frozenset(key for key, values in columns.items() if any(values[node] is None for node in nodes))


def _printable(value: Value) -> Value:
    return printable(value) if isinstance(value, str) else value


def _instructions(inside: Sequence[Instruction]) -> RowColumns:
    """Instructions inside a fusion with the keys of nodes; their category is their opcode, their layout their shape."""

    def texts(name: str) -> list[Value]:
        return [_printable(getattr(one, name) or None) for one in inside]

    return {
        "name": [printable(one.name) for one in inside],
        "kind": ["instruction"] * len(inside),
        "category": texts("opcode"),
        **{key: [None] * len(inside) for key in UNTIMED},
        **{name: texts(name) for name in ("expression", "framework_op", "source")},
        "above_peak_why": [None] * len(inside),
        "layout": texts("shape"),
    }


METRICS = (*WHOLE_TIME, *DEVICE, SIMULATED, OP_COUNT, HEADLINE)
REPORT = declared("op-profile", read, declare, (WALKED,), METRICS, warnings=attrgetter("page.ops.warnings"))
