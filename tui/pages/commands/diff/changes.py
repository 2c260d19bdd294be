"""The views of a comparison, and their rows: ops, categories, where time goes, memory, figures, phases, setup."""

from __future__ import annotations

from typing import Literal, get_args

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.session.diff.model import Change, Diff, OpChange, OpGroupChange, Phase
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, Owner
from tpuprof.tui.pages.commands.diff.words import QuantityKind

ViewName = Literal["ops", "categories", "time", "steps", "memory", "figures", "phases", "setup"]
VIEWS: tuple[ViewName, ...] = get_args(ViewName)

HIDING: tuple[ViewName, ...] = ("ops", "categories", "setup")
"""Views in which what is the same can be hidden; the rows of the others add up, or are few."""

OF_PHASE: tuple[ViewName, ...] = ("ops", "categories", "time")  # views that a phase has of its own


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A row.

    Attributes:
        kind: what its figures count.
        op_class: for its letter; None for what is of no class.
        op: the op that it is of, or what a group of ops adds up to; None for what is of none.
        group: the group of several ops that it is of; None for what is of none.
        note: words on it: a category, what a sum is of, why it is unknown.
        phase: the program that it is of; None for what is of none.
        texts: what a setting is in A and B; None for what is of figures.
        owner: whose part of a step it is; None for what is of none.
    """

    name: str
    change: Change
    kind: QuantityKind = "time"
    op_class: OpClass | None = None
    op: OpChange | None = None
    note: str = ""
    group: OpGroupChange | None = None
    phase: Phase | None = None
    texts: tuple[str | None, str | None] | None = None
    owner: Owner | None = None


def entries(diff: Diff, view: ViewName, apart: bool = False) -> tuple[ChangeRow, ...]:
    """The rows of a view, in their own order, each clone of an op as a row of its own if `apart`; none of steps."""
    if view == "ops":
        groups = [None] * len(diff.ops) if apart else [group if group.members[1:] else None for group in diff.groups]
        ops = diff.ops if apart else [group.change for group in diff.groups]
        return tuple(
            ChangeRow(op.name, op.time, "time", op.op_class, op, op.category or "unknown", group)
            for op, group in zip(ops, groups, strict=True)
        )
    if view == "categories":
        return tuple(ChangeRow(item.name, item.time, "time", item.op_class) for item in diff.categories)
    if view == "time":
        return _time(diff)
    if view == "memory":
        return _memory(diff)
    if view == "figures":
        figures = (ChangeRow(item.label, item.change, "percent", note=_why(diff, item.key)) for item in diff.figures)
        work = (ChangeRow("FLOPs", diff.work, "flops"), ChangeRow("HBM traffic", diff.traffic, "bytes"))
        return (*figures, *(row for row in work if {row.change.before, row.change.after} != {None}))
    if view == "phases":
        return tuple(ChangeRow(phase.name, phase.time, note=phase_words(phase), phase=phase) for phase in diff.phases)
    if view == "setup":
        changes = (Change(None, None, None, one.mark) for one in diff.settings)
        return tuple(
            ChangeRow(one.name, change, "text", note=one.kind, texts=(one.before, one.after))
            for one, change in zip(diff.settings, changes, strict=True)
        )
    return ()


def phase_words(phase: Phase) -> str:
    """How often a program ran, and its share of the time of all ops: one figure, or that of A and that of B."""
    runs = [f"{value:.0f}" for value in (phase.runs.before, phase.runs.after) if value is not None]
    shares = [f"{value:.0f}" for value in (phase.share.before, phase.share.after) if value is not None]
    number = "/".join(dict.fromkeys(runs))
    return f"{number} run{'' if number == '1' else 's'}, {'/'.join(dict.fromkeys(shares))}%"


def part_of(diff: Diff, name: ViewName, phase: str) -> Diff:
    """What a view shows: the whole comparison, or that of one phase."""
    found = [one.ops for one in diff.phases if one.name == phase] if phase and name in OF_PHASE else []
    return found[0] if found else diff


def has_clones(diff: Diff) -> bool:
    """Whether a row of ops is of several."""
    return len(diff.groups) < len(diff.ops)


def _time(diff: Diff) -> tuple[ChangeRow, ...]:
    """The owners of the mean step, the largest first as in its account, ideal last; the classes without owners."""
    if diff.steps is None:
        rows = [ChangeRow(item.name, item.time, "time", item.op_class) for item in diff.classes]
        return (*rows, ChangeRow("all time", diff.total, note="all classes, on the mean core")) if rows else ()
    owners = sorted(
        diff.owners, key=lambda of: (of.owner == "ideal", -max(of.mean.before or 0.0, of.mean.after or 0.0))
    )
    return (
        *(ChangeRow(OWNER_TITLES[each.owner], each.mean, owner=each.owner) for each in owners),
        ChangeRow("mean step", diff.steps.mean, note="all of the above" if owners else "typical and odd steps"),
        ChangeRow("odd steps", diff.steps.odd, note="their effect on the mean"),
        ChangeRow("typical step", diff.steps.typical, note="the mean without odd steps"),
    )


def _memory(diff: Diff) -> tuple[ChangeRow, ...]:
    rows: list[ChangeRow] = []
    for module in diff.modules:
        note = module.problem or "peak HBM"
        rows.append(ChangeRow(f"{module.name} peak", module.peak, "bytes", note=note))
        if module.peak.before is not None or module.peak.after is not None:
            rows.append(ChangeRow(f"{module.name} arguments", module.arguments, "bytes", note="HBM of parameters"))
            rows.append(ChangeRow(f"{module.name} temporaries", module.temporaries, "bytes", note="of the peak"))
    return tuple(rows)


def _why(diff: Diff, key: str) -> str:
    reasons = [diff.unknown.get(f"figures.{key}.{side}", "") for side in ("before", "after")]
    return "; ".join(f"{name}: {why}" for name, why in zip("AB", reasons, strict=True) if why)


def step_changes(diff: Diff) -> tuple[ChangeRow, ...]:
    """The step times; none where they are unknown."""
    steps = diff.steps
    if steps is None:
        return ()
    changes = (steps.typical, steps.median, steps.mean, steps.minimum, steps.maximum)
    return tuple(map(ChangeRow, ("typical", "median", "mean", "shortest", "longest"), changes))
