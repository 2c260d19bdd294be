"""The views of a comparison, and their rows: ops, categories, where the time of a step goes, memory, key figures."""

from __future__ import annotations

from typing import Literal, get_args

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.diff.model import Change, Diff, OpChange, OpGroup
from tpuprof.tui.pages.diff.words import Kind

ViewName = Literal["ops", "categories", "time", "steps", "memory", "figures"]
VIEWS: tuple[ViewName, ...] = get_args(ViewName)

HIDING: tuple[ViewName, ...] = ("ops", "categories")
"""Views in which what is the same can be hidden, and that can be sorted; the rows of the others add up, or are few."""

Sort = Literal["change", "slower", "faster", "relative", "before", "after", "name"]
SORTS: tuple[Sort, ...] = get_args(Sort)

SORT_WORDS: dict[Sort, str] = {
    "change": "size of the change",
    "slower": "slower first",
    "faster": "faster first",
    "relative": "relative change",
    "before": "time before",
    "after": "time after",
    "name": "name",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A row.

    Attributes:
        name: what changed.
        change: how.
        kind: what its figures count.
        op_class: for its letter; None for what is of no class.
        op: the op that it is of, or what a group of ops adds up to; None for what is of none.
        group: the group of several ops that it is of; None for what is of none.
        note: words on it: a category, what a sum is of, why it is unknown.
    """

    name: str
    change: Change
    kind: Kind = "time"
    op_class: OpClass | None = None
    op: OpChange | None = None
    note: str = ""
    group: OpGroup | None = None


def entries(diff: Diff, view: ViewName, apart: bool = False) -> tuple[Entry, ...]:
    """The rows of a view, in their own order; none of the steps.

    Args:
        apart: whether each clone of an op is a row of its own.
    """
    if view == "ops":
        groups = [None] * len(diff.ops) if apart else [group if group.members[1:] else None for group in diff.groups]
        ops = diff.ops if apart else [group.change for group in diff.groups]
        return tuple(
            Entry(op.name, op.time, "time", op.op_class, op, op.category or "unknown", group)
            for op, group in zip(ops, groups, strict=True)
        )
    if view == "categories":
        return tuple(Entry(item.name, item.time, "time", item.op_class) for item in diff.categories)
    if view == "time":
        return _time(diff)
    if view == "memory":
        return _memory(diff)
    if view == "figures":
        return tuple(Entry(item.label, item.change, "percent", note=_why(diff, item.key)) for item in diff.figures)
    return ()


def has_clones(diff: Diff) -> bool:
    """Whether a row of ops is of several."""
    return len(diff.groups) < len(diff.ops)


def _time(diff: Diff) -> tuple[Entry, ...]:
    """The classes, and how they add up to the step."""
    rows = [Entry(item.name, item.time, "time", item.op_class) for item in diff.classes]
    if diff.steps is None:
        return (*rows, Entry("all time", diff.total, note="all classes, on the mean core")) if rows else ()
    if rows:
        rows.append(Entry("slowest core", diff.between_cores, note="beyond the mean core"))
    rows.append(Entry("typical step", diff.steps.typical, note="all of the above" if diff.classes else ""))
    rows.append(Entry("odd steps", diff.steps.odd, note="what they add to the mean"))
    return (*rows, Entry("mean step", diff.steps.mean, note="typical and odd steps"))


def _memory(diff: Diff) -> tuple[Entry, ...]:
    rows: list[Entry] = []
    for module in diff.modules:
        rows.append(Entry(f"{module.name} peak", module.peak, "bytes", note=module.problem or "HBM at once, at most"))
        if module.peak.before is not None or module.peak.after is not None:
            rows.append(Entry(f"{module.name} arguments", module.arguments, "bytes", note="HBM of parameters"))
            rows.append(Entry(f"{module.name} temporaries", module.temporaries, "bytes", note="of the peak"))
    return tuple(rows)


def _why(diff: Diff, key: str) -> str:
    reasons = [diff.unknown.get(f"figures.{key}.{side}", "") for side in ("before", "after")]
    return "; ".join(f"{name}: {why}" for name, why in zip("AB", reasons, strict=True) if why)


def step_changes(diff: Diff) -> tuple[Entry, ...]:
    """The step times; none where they are unknown."""
    steps = diff.steps
    if steps is None:
        return ()
    changes = (steps.typical, steps.median, steps.mean, steps.minimum, steps.maximum)
    return tuple(map(Entry, ("typical", "median", "mean", "shortest", "longest"), changes))
