"""Which cores take longer for the same ops: all of them show a slow chip, some of them uneven work."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Floats, medians
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import sentence_name, time
from tpuprof.parsers.ops.device import CUSTOM_CALL
from tpuprof.parsers.pages.findings.budget import Budget
from tpuprof.parsers.pages.findings.claims import COMPUTING, Rows
from tpuprof.parsers.steps.accounts.owners import Owner

BUSY: tuple[OpClass, ...] = ("compute", "vector", "copy", "unknown")
"""What a core does by itself: it waits for no other core in it."""

BUSY_OWNERS: tuple[Owner, ...] = (*COMPUTING, "uncounted", "copy")
"""Who has the time of these ops in the account."""

SLOWER = 1.02
"""A core is slower than the others from this multiple on, if it is so at ops that take nearly all of the time."""

_MUCH_SLOWER = 1.05
"""From this multiple on another core would delay the rest if the slowest one did not."""

_NEARLY_ALL = 0.9
_LEAST_OPS = 5
_LEAST_CORES = 3
_UNLIKE = 0.03
"""Times of an op over a whole capture vary by far less than this share where its work is the same."""

_MOSTLY = 0.5


@dataclass(frozen=True, slots=True)
class SlowerCore:
    """A core that is slower at the same ops: which, by what factor, at how many of how many ops.

    `what` these ops are: all, or matrix products alone, as where the matrix unit's clock is held down. `too`: other
    cores that are much slower at them, with their factors, the slowest first.
    """

    core: int
    factor: float
    at: int
    ops: int
    what: str
    too: tuple[tuple[int, float], ...] = ()


def _same_ops(budget: Budget, products: bool = False) -> tuple[Rows, Floats]:
    """The ops that all cores run equally often, as columns of `core_ops`, and float64[cores, ops], their self time.

    Args:
        products: of these only matrix products; kernels do other things beside them.
    """
    known = budget.evidence.core_ops
    if known is None or not len(known.cores):
        return np.zeros(0, np.intp), np.zeros((0, 0))
    table = budget.evidence.table
    keys = zip(table.program_id.tolist(), table.name, strict=True)
    kinds = dict(zip(keys, zip(table.classes(), table.category, strict=True), strict=True))
    of_ops = [kinds.get(op, ("idle", None)) for op in known.ops]
    works = np.array(
        [(kind == "compute" and category != CUSTOM_CALL) if products else kind in BUSY for kind, category in of_ops],
        np.bool_,
    )
    chosen = works & (known.self_ps > 0).all(axis=0) & (known.occurrences == known.occurrences[0]).all(axis=0)
    return np.flatnonzero(chosen), known.self_ps[:, chosen].astype(np.float64)


def slower_core(budget: Budget) -> SlowerCore | None:
    """The core that takes longer than the others for nearly all ops, or for nearly all products; None without one."""
    return _slower_at(budget, products=False) or _slower_at(budget, products=True)


def _slower_at(budget: Budget, products: bool) -> SlowerCore | None:
    """The core that takes longer than the others for ops with nearly all of the time of all, or of products."""
    known, steps = budget.evidence.core_ops, budget.steps
    if known is None or steps is None or len(known.cores) < 3:
        return None
    _, times = _same_ops(budget, products)
    if times.shape[1] < _LEAST_OPS:
        return None
    usual = medians(times)
    factors = times / usual
    # weighted by time: what a core takes longer in all
    overall = times.sum(axis=1) / usual.sum()
    is_slower = factors >= 1 + (overall[:, None] - 1) / 2
    # ops that take no time, such as loops beside their bodies, tell nothing
    of_time = (is_slower * usual).sum(axis=1) / usual.sum()
    place = {known.cores.index(name): place for place, name in enumerate(steps.grid.core_names) if name in known.cores}
    core = int(overall.argmax())
    if overall[core] < SLOWER or of_time[core] < _NEARLY_ALL or core not in place:
        return None
    order = [row for row in np.argsort(-overall, kind="stable").tolist() if row != core and row in place]
    too = [row for row in order if overall[row] >= _MUCH_SLOWER and of_time[row] >= _NEARLY_ALL]
    also = tuple((place[row], float(overall[row])) for row in too)
    what = "matrix product" if products else "op"
    return SlowerCore(place[core], float(overall[core]), int(is_slower[core].sum()), times.shape[1], what, also)


def differs_on_all(budget: Budget) -> bool:
    """Whether ops that take longest on one core take unlike times on the others too.

    Alike chips take alike times for the same work. So what varies there is the work, which could be divided evenly; a
    core that does more than the others, which do the same, has work of its own.
    """
    _, times = _same_ops(budget)
    if times.shape[0] < _LEAST_CORES or not times.size:
        return False
    more = times.max(axis=0) - times.mean(axis=0)
    ordered = np.sort(times, axis=0)
    unlike = ordered[-2] - ordered[0] >= _UNLIKE * ordered[0]
    return bool(more[unlike].sum() > _MOSTLY * more.sum())


def uneven_op(budget: Budget) -> str:
    """A sentence on the op in which the cores differ most; empty where none makes most of what they differ in."""
    (columns, times), known = _same_ops(budget), budget.evidence.core_ops
    if known is None or not times.size:
        return ""
    more = times.max(axis=0) - times.mean(axis=0)
    most = int(more.argmax())
    if more[most] <= 0 or more[most] < _MOSTLY * more.sum():
        return ""
    name = known.ops[int(columns[most])][1]
    runs = int(known.occurrences[0, columns[most]])  # not of steps alone, and in each as often as the program says
    longest, shortest = float(times[:, most].max()) / runs, float(times[:, most].min()) / runs
    return (
        f"They differ most in {sentence_name(name)}: a run takes {time(longest)} on the busiest core, {time(shortest)} "
        f"on the core with the least of it."
    )
