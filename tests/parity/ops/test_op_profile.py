"""The op profile against XProf's: every node of the three trees, with and without idle time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.parity.oracle import op_fields
from tests.parity.oracle.fields import Agrees, Comparison, Difference, compare
from tests.parity.oracle.golden import RUNS, files_of, golden_answer
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.ops.roofline import work_of
from tpuprof.parsers.pages.ops.op_profile import GROUPINGS, Grouping, OpTree, op_profile_page
from tpuprof.parsers.pages.ops.ops import OpsPage, ops_page

COUNTS = "XProf counts occurrences at categories and below only"
HELD = "ops that hold others (while, call) have self time of their own; XProf leaves them out of the tree"
REGION = "XProf leaves ops named region… out of its trees"
INNER = "the time of ops inside others counts twice in XProf's divisor here, idle time not at all"
CAPPED = "XProf caps utilizations at 1; more than 1 says that work and time do not belong together"
MAIN = "XProf calls a program main that no HLO proto names; ours has its name, or its id"
NO_TIME = "XProf multiplies a bandwidth by the time: what took none moved nothing"
ROUNDED = "XProf cuts the time at the nominal clock of each event to whole picoseconds"
WORDS = "our own wording, with the number of clones"
KIND = "XProf says TPU or GPU here, and which one on other pages"
NO_SCALE = "no op event has a Time Scale Multiplier: XProf calls that 1, or 0 without ops"
IDLE_CLOCK = "idle time has no clock to scale to: XProf shows 0, our tree its time"
FUSED = "instructions of a fusion are no nodes of our trees; they are read from the HLO module when asked for"
GROUP = "our groups say what their longest op says; XProf's have no provenance"
TIED = "several ops of the group take the same time: ours shows the first by name"
PROGRAMS = "XProf takes ops of several programs for duplicates where they merely have one name"

WRAPPED = "XProf shows the insides of fusions alone; ours show those of calls and asynchronous ops too"
WRAPPERS = ("async-start", "async-done", "async-update", "call")

NO_LAYOUT: Any = {"dimensions": []}
MARK = " and its duplicate(s)"
METRICS = ("flops", "uncappedFlops", "rawTime", "rawFlops", "bf16Flops", "occurrences", "avgTimePs", "normalizedTimePs")
MEMORIES = ("hbm", "on-chip read", "on-chip write")
XLA = ("op", "computationPrimitiveSize", "fingerprint", "xprofKernelMetadata")
"""What XProf has of an op and our pages have not; empty in all profiles but for custom calls."""


@dataclass(frozen=True)
class Nodes:
    """A tree as fields by node.

    Attributes:
        rows: fields of each node, by key.
        kind: of each node, as in `OpTree`.
    """

    rows: dict[str, op_fields.Cells]
    kind: dict[str, str]


def xprof_nodes(tree: Any) -> Nodes:
    """XProf's tree as fields; the instructions below an op are a field of it, by name."""
    found: list[tuple[str, str, op_fields.Cells]] = []
    for key, kind, node in _walk(tree, depth=int("xla" in tree)):  # idle time alone has no root above it
        fields = _xprof_fields(node)
        if kind == "op":
            fields["fused"] = " ".join(sorted({child["name"] for child in _descendants(node)}))
        found.append((key, kind, fields))
    return _nodes(found)


def _walk(node: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str, Any]]:
    """Nodes with a key that our tree has too: programs by id, ops by program and name, whatever group they are in."""
    kind = _kind(node, depth)
    if kind == "op":
        yield f"{path}/{node['xla']['programId']}:{node['name']}", kind, node
        return
    if kind == "duplicates":
        members = sorted(f"{child['xla']['programId']}:{child['name']}" for child in node["children"])
        yield f"{path}/{'+'.join(members)}", kind, node
        below = path
    else:
        name = next(iter(_programs(node))) if kind == "program" else node["name"]
        below = f"{path}/{name}" if depth else ""
        yield below or "root", kind, node
    for child in node["children"]:
        yield from _walk(child, below, depth + 1)


def _kind(node: Any, depth: int) -> str:
    if not depth:
        return "root"
    if "xla" not in node:
        first = next(iter(node["children"]))
        programs = depth == 1 and _kind(first, depth + 1) not in ("op", "duplicates")
        return "program" if programs else "inner"
    if node["name"] == "IDLE" and depth == 1:
        return "idle"
    return "duplicates" if node["name"].endswith(MARK) else "op"


def _programs(node: Any) -> set[str]:
    """Ids of the programs whose ops stand under a node."""
    if "xla" in node and not node["name"].endswith(MARK):
        return {node["xla"]["programId"]}
    return set().union(*map(_programs, node["children"]))


def _descendants(node: Any) -> Iterator[Any]:
    for child in node["children"]:
        yield child
        yield from _descendants(child)


def _nodes(found: Iterable[tuple[str, str, op_fields.Cells]]) -> Nodes:
    found = list(found)
    keys = op_fields.keyed(key for key, _, _ in found)
    return Nodes(
        {key: fields for key, (_, _, fields) in zip(keys, found, strict=True)},
        {key: kind for key, (_, kind, _) in zip(keys, found, strict=True)},
    )


def _xprof_fields(node: Any) -> op_fields.Cells:
    metrics = node["metrics"]
    fields: op_fields.Cells = {name: metrics[name] for name in METRICS}
    for at, memory in enumerate(MEMORIES):
        fields[f"{memory} utilization"] = metrics["bandwidthUtils"][at]
        fields[f"{memory} bytes"] = metrics["rawBytesAccessedArray"][at]
    fields |= {"name": node["name"], "numChildren": node["numChildren"]}
    if "xla" in node:
        xla = dict(node["xla"])
        fields |= {f"source.{key}": value for key, value in xla.pop("sourceInfo").items()}
        fields |= {key: value for key, value in xla.items() if value != NO_LAYOUT}
    return fields


def rows_under(tree: OpTree) -> list[list[int]]:
    """The rows of the ops page that stand under each node."""
    under: list[list[int]] = [[] for _ in tree.name]
    for node, kind in enumerate(tree.kind):
        if kind == "op":
            for above in tree.path(node):
                under[above].append(int(tree.row[node]))
    return under


def fused_names(module: HloModule, name: str) -> set[str]:
    """Names of all that an op wraps, but tuples, which XProf leaves out."""
    found = module.fused(name)
    inner = (fused_names(module, instruction.name) for instruction in found if instruction.is_fusion)
    return {instruction.name for instruction in found if instruction.opcode != "tuple"}.union(*inner)


def our_nodes(tree: OpTree, page: OpsPage, modules: HloModules) -> tuple[Nodes, dict[str, int]]:
    """Our tree in XProf's fields; and the node of each key."""
    under = rows_under(tree)
    sources, stacks = page.table.texts("source"), page.table.texts("source_stack")
    found: list[tuple[str, str, op_fields.Cells]] = []
    order: list[int] = []
    for node, kind, key in _our_walk(tree, page, under):
        fields = _our_fields(tree, page, node, under[node])
        if kind in ("op", "duplicates", "idle"):
            row = int(tree.row[node])
            fields |= _our_xla(page, row, sources[row], stacks[row]) if row >= 0 else _idle_xla()
            if kind == "op":
                module = modules.module(int(page.table.program_id[row]))
                fields["fused"] = " ".join(sorted(fused_names(module, tree.name[node]))) if module else ""
        found.append((key, kind, fields))
        order.append(node)
    nodes = _nodes(found)
    return nodes, dict(zip(nodes.rows, order, strict=True))


def _our_walk(tree: OpTree, page: OpsPage, under: list[list[int]]) -> Iterator[tuple[int, str, str]]:
    ids = page.table.program_id
    stack = [(0, "")]
    while stack:
        node, path = stack.pop()
        kind, below = str(tree.kind[node]), path
        if kind == "op":
            yield node, kind, f"{path}/{ids[tree.row[node]]}:{tree.name[node]}"
        elif kind == "duplicates":
            members = sorted(f"{ids[row]}:{page.table.name[row]}" for row in under[node])
            yield node, kind, f"{path}/{'+'.join(members)}"
        else:
            if node:
                below = f"{path}/{ids[under[node][0]] if kind == 'program' else tree.name[node]}"
            yield node, "inner" if kind in ("category", "scope") else kind, below or "root"
        stack += [(child, below) for child in reversed(tree.children(node).tolist())]


def _our_fields(tree: OpTree, page: OpsPage, node: int, rows: list[int]) -> op_fields.Cells:
    """What our tree says of a node."""
    rates, fraction = tree.rates, float(tree.time_fraction[node])
    used = rates.flops_utilization[node]
    time, count = int(tree.time_ps[node]), int(tree.occurrences[node])
    fields: op_fields.Cells = {
        "flops": op_fields.known(min(used, 1.0) * fraction),
        "uncappedFlops": op_fields.known(used * fraction),
        "rawTime": time,
        "rawFlops": op_fields.known(tree.work[node, 1]),
        "bf16Flops": op_fields.known(tree.work[node, 0]),
        "occurrences": count,
        "avgTimePs": time / count if count else 0.0,
        "normalizedTimePs": truth(page, rows, 1, time)["normalizedTimePs"],
        "name": tree.name[node] or f"by_{tree.by}",
        "numChildren": tree.child_count(node),
    }
    for at, memory in enumerate(MEMORIES):
        fields[f"{memory} utilization"] = op_fields.known(rates.bandwidth_utilization[node, at])
        fields[f"{memory} bytes"] = op_fields.known(tree.work[node, 3 + at])
    return fields


def _our_xla(page: OpsPage, row: int, source: str, stack: str) -> op_fields.Cells:
    file, _, line = source.rpartition(":")
    return {
        "expression": page.table.expression(row),
        "provenance": page.table.framework_op[row],
        "category": page.table.category[row],
        "programId": str(page.table.program_id[row]),
        "source.fileName": file,
        "source.lineNumber": int(line or 0),
        "source.stackFrame": stack,
        **dict.fromkeys(XLA),
    }


def _idle_xla() -> op_fields.Cells:
    texts = ("expression", "provenance", "source.fileName", "source.stackFrame")
    return {
        **dict.fromkeys(texts, ""),
        "category": "IDLE",
        "programId": "0",
        "source.lineNumber": 0,
        **dict.fromkeys(XLA),
    }


def truth(page: OpsPage, rows: list[int], whole: float, time: float | None = None) -> op_fields.Cells:
    """A node's metrics from first principles: sums over the rows of the table, work over time over peak.

    Args:
        time: of the node, where that is not just the rows' self time.
    """
    table, peaks = page.table, page.peaks
    own = float(table.self_ps[rows].sum())
    elapsed = own if time is None else time
    scale = np.divide(table.normalized_ps, table.total_ps, out=np.ones(len(table)), where=table.total_ps > 0)
    normalized = float((table.self_ps * scale)[rows].sum()) + elapsed - own
    work = work_of(table)[rows]
    flops, model, hbm, reads, writes = (
        float(np.nansum(work[:, at])) if np.isfinite(work[:, at]).any() else None for at in (0, 1, 3, 4, 5)
    )
    count = int(table.occurrences[rows].sum())

    def used(amount: float | None, peak: float | None, during: float) -> float | None:
        return None if amount is None or peak is None or not during else amount / (during / 1e12) / peak

    flops_used = used(flops, peaks.flops_per_second, normalized)
    share = elapsed / whole if whole else 0.0
    return {
        "flops": None if flops_used is None else min(flops_used, 1.0) * share,
        "uncappedFlops": None if flops_used is None else flops_used * share,
        "rawTime": elapsed,
        "rawFlops": model,
        "bf16Flops": flops,
        "occurrences": count,
        "avgTimePs": elapsed / count if count else 0.0,
        "normalizedTimePs": normalized,
        "hbm bytes": hbm,
        "on-chip read bytes": reads,
        "on-chip write bytes": writes,
        "hbm utilization": used(hbm, peaks.hbm, elapsed),
        "on-chip read utilization": used(reads, peaks.on_chip_read, elapsed),
        "on-chip write utilization": used(writes, peaks.on_chip_write, elapsed),
    }


def mixed_groups(theirs: Nodes) -> set[str]:
    """Groups of duplicates with ops of several programs."""
    groups = (key for key, kind in theirs.kind.items() if kind == "duplicates")
    return {key for key in groups if len({member.partition(":")[0] for member in _members(key)}) > 1}


def _members(key: str) -> list[str]:
    return key.rpartition("/")[2].split("+")


def dropped_by_xprof(page: OpsPage) -> NDArray[np.bool_]:
    """bool[n]: ops that its tree leaves out: those with ops inside, those named ``region…``, those without ids."""
    table = page.table
    region = np.array([name.startswith("region") for name in table.name], np.bool_)
    dropped: NDArray[np.bool_] = (table.self_ps != table.total_ps) | region | ~table.has_ids
    return dropped


def differences(
    theirs: Nodes, ours: Nodes, where: Mapping[str, int], tree: OpTree, page: OpsPage
) -> dict[str, Difference]:
    """In what our tree differs from XProf's, and what it must say instead."""
    out: dict[str, Difference] = {}
    under = rows_under(tree)
    holding = dropped_by_xprof(page)
    mixed = mixed_groups(theirs)
    for key, fields in theirs.rows.items():
        if key in mixed:
            out |= {f"{key}: {name}": Difference(None, PROGRAMS) for name in fields}
        if key not in where:
            continue
        node, kind, mine = where[key], theirs.kind[key], ours.rows[key]
        rows = under[node]
        true = truth(page, rows, float(tree.time_ps[0]), float(tree.time_ps[node]))
        stated: dict[str, Difference] = {}
        if kind in ("root", "program") or (kind == "inner" and fields["occurrences"] == 0):
            stated |= {name: Difference(true[name], COUNTS) for name in ("occurrences", "avgTimePs")}
        if kind in ("root", "program"):
            names = ("flops", "uncappedFlops", "normalizedTimePs")
            stated |= {name: Difference(true[name], INNER) for name in names}
        if kind == "inner" and holding[rows].any():
            stated |= {name: Difference(value, HELD) for name, value in true.items()}
        if kind in ("root", "program") and any(page.table.name[row].startswith("region") for row in rows):
            stated |= {name: Difference(value, REGION) for name, value in true.items()}
        if holding[rows].any():
            stated["numChildren"] = Difference(tree.child_count(node), HELD)
        elif any(group.startswith(f"{key}/") for group in mixed):
            stated["numChildren"] = Difference(tree.child_count(node), PROGRAMS)
        if kind == "program" and fields["name"] == "main":
            stated["name"] = Difference(page.program[rows[0]], MAIN)
        if kind == "duplicates":
            stated["name"] = Difference(_group_name(page, rows), WORDS)
            stated["provenance"] = Difference(page.table.framework_op[min(rows)], GROUP)
            if np.unique(page.table.self_ps[rows][:2]).size == 1:
                stated |= {name: Difference(mine[name], TIED) for name in ("expression", "source.stackFrame")}
        if kind == "op":
            stated["numChildren"] = Difference(0, FUSED)
            if not fields["fused"] and mine["category"] in WRAPPERS:
                stated["fused"] = Difference(mine["fused"], WRAPPED)
        if kind == "idle":
            stated["normalizedTimePs"] = Difference(fields["rawTime"], IDLE_CLOCK)
        if kind in ("op", "duplicates", "idle"):
            stated |= {name: Difference(None, op_fields.NOT_HELD) for name in XLA}
        if not fields["rawTime"]:
            stated |= {f"{memory} bytes": Difference(true[f"{memory} bytes"], NO_TIME) for memory in MEMORIES}
        for name, value in fields.items():
            if value == 1 and name.endswith("utilization"):
                stated[name] = Difference(true[name], CAPPED)
            if value == 0 and mine[name] is None and name in true:
                stated[name] = Difference(None, op_fields.ABSENT)
        out |= {f"{key}: {name}": difference for name, difference in stated.items()}
    return out


def _group_name(page: OpsPage, rows: list[int]) -> str:
    longest = min(rows)  # rows stand by self time
    others = len(rows) - 1
    return f"{page.table.name[longest]} and {others} clone{'s' * (others != 1)}"


def compare_tree(
    answer: Any, tree: OpTree, page: OpsPage, modules: HloModules, rules: Sequence[tuple[OpTree, OpsPage]] = ()
) -> Comparison:
    """All nodes of one of XProf's trees against ours; `rules` are the trees by XProf's rules."""
    theirs = xprof_nodes(answer)
    ours, where = our_nodes(tree, page, modules)
    stated = differences(theirs, ours, where, tree, page)
    dropped, under = dropped_by_xprof(page), rows_under(tree)
    mixed = mixed_groups(theirs)
    in_mixed = {(group.rpartition("/")[0], member) for group in mixed for member in _members(group)}
    kept: dict[str, op_fields.Cells] = {key: dict.fromkeys(theirs.rows[key]) for key in mixed}
    for key, row in ours.rows.items():
        path = key.rpartition("/")[0]
        part = ours.kind[key] == "duplicates" and all((path, member) in in_mixed for member in _members(key))
        no_root = key == "root" and key not in theirs.rows
        if key in theirs.rows or not (part or no_root or dropped[under[where[key]]].all()):
            kept[key] = row
    for by_rule in rules:
        rule = our_nodes(*by_rule, modules)[0].rows
        _cut(rule, theirs.rows)
        stated |= op_fields.explained(
            op_fields.flat(theirs.rows), op_fields.flat(kept), op_fields.flat(rule), f"{op_fields.RULES}; {ROUNDED}"
        )
    return op_fields.outcome(op_fields.flat(theirs.rows), op_fields.flat(kept), stated)


def _cut(rows: Mapping[str, op_fields.Cells], theirs: Mapping[str, op_fields.Cells]) -> None:
    """Cuts times at the nominal clock as XProf did, where that is less than a picosecond an event."""
    for key in rows.keys() & theirs.keys():
        exact, cut = (float(row["normalizedTimePs"] or 0) for row in (rows[key], theirs[key]))
        if 0 < cut < exact < cut + float(rows[key]["occurrences"] or 0):
            rows[key]["normalizedTimePs"] = cut
            rows[key] |= {name: float(rows[key][name] or 0) * exact / cut for name in ("flops", "uncappedFlops")}


def compare_op_profile(
    answers: Mapping[Grouping, Any], page: OpsPage, modules: HloModules, rules: Sequence[OpsPage] = ()
) -> Comparison:
    """All trees, with and without idle time."""
    total = Comparison()
    for with_idle in (True, False):
        profile = op_profile_page(page, with_idle)
        for by, answer in answers.items():
            name = f"by{by.capitalize()}{'' if with_idle else 'ExcludeIdle'}"
            by_rules = [(op_profile_page(rule, with_idle).tree(by), rule) for rule in rules]
            part = compare_tree(answer[name], profile.tree(by), page, modules, by_rules)
            part.unexplained = [f"{name}{line}" for line in part.unexplained]
            total.add(part)
    for answer in answers.values():
        theirs = {key: answer[key] for key in ("deviceType", "aggDvfsTimeScaleMultiplier")}
        ours: op_fields.Cells = {"deviceType": page.device_type, "aggDvfsTimeScaleMultiplier": page.time_scale}
        stated = {"deviceType": Difference(page.device_type, KIND)}
        if page.time_scale is None:
            stated["aggDvfsTimeScaleMultiplier"] = Difference(None, NO_SCALE)
        total.add(compare(theirs, ours, stated))
    return total


@pytest.mark.shared
@pytest.mark.parametrize("name", RUNS)
def test_every_node_is_xprofs_or_differs_for_a_reason(shared: Path, name: str, agrees: Agrees) -> None:
    answers: dict[Grouping, Any] = {by: golden_answer(shared, name, f"op_profile.*{by}") for by in GROUPINGS}
    modules = op_fields.modules_of(next(iter(files_of(shared, name).values())))
    rules = [ops_page(op_fields.rules_of(shared, name, of_sums)) for of_sums in (False, True)]
    result = compare_op_profile(answers, ops_page(op_fields.summaries_of(shared, name)), modules, rules)
    assert result.compared > 500
    agrees(result, "op profile")
