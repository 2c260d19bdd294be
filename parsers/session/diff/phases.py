"""The programs of two runs apart, each against its counterpart: prefill, decode, a train step, an evaluation.

A step that runs several programs is a mixture of them, and its mean moves when only their numbers do. So each program
is also compared by itself: the time of its runs, and its ops divided by its runs instead of steps. Counterparts have
the same name; what is left goes by where its ops were found again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.hlo.programs import module_name
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.session.diff.groups import categories, classes, op_changes, op_groups
from tpuprof.parsers.session.diff.match import OpPair
from tpuprof.parsers.session.diff.measure import BatchedTimes, of_program, rows_of
from tpuprof.parsers.session.diff.model import UNKNOWN_CHANGE, Diff, Mark, Phase, change, change_of_either, plain_change
from tpuprof.parsers.session.diff.noise import EVERY_STEP, estimate_steps, typical_bounds, within

MOST_PHASES = 8
_LEAST_SHARE = 0.005
"""The share of the time of all ops that a program takes to be a phase."""

_LEAST_MATCHED = 0.2
"""Share of either program's time in ops of the other, of another name, for the two to be counterparts."""

_NOTHING = BatchedTimes((), np.zeros((0, 1)), np.zeros(0), np.zeros(1), np.ones(1), {})


@dataclass(frozen=True, slots=True)
class PhaseSide:
    """What phases need of one run.

    Attributes:
        steps: its ops in typical steps; whole: in the whole capture, made when it is asked for.
        summaries: its hosts; table: what the rows of its ops refer to.
    """

    steps: BatchedTimes
    whole: Callable[[], BatchedTimes]
    summaries: Sequence[HostSummary]
    table: OpTable

    def share(self, program: str) -> float:
        """The share of a program in the time of all ops of the capture."""
        times: Floats = self.whole().means
        mine = float(times[[op.program == program for op in self.whole().ops]].sum())
        return mine / float(times.sum()) if mine else 0.0

    def run_ps(self, program: str) -> Floats:
        """float64[n]: how long each run of a program took on its slowest core, of all hosts, host by host."""
        found = [
            module.duration_ps
            for summary in self.summaries
            for module in summary.requests.modules
            if module_name(module.name) == program
        ]
        return np.concatenate(found).astype(np.float64) if found else np.zeros(0)


def phases(sides: tuple[PhaseSide, PhaseSide], pairs: Sequence[OpPair], diff: Diff) -> tuple[Phase, ...]:
    """The main programs of both, the one with the most time first.

    Args:
        pairs: which op of `PhaseSide.steps` is which; those of the whole capture are the same ops.
        diff: the comparison without phases.
    """
    names = [{name for name in side.steps.runs if side.share(name) >= _LEAST_SHARE} for side in sides]
    shares = {name: max(side.share(name) for side in sides) for name in sorted(names[0] | names[1])}
    both = [(name, name) for name in shares if all(len(side.run_ps(name)) for side in sides)]
    left = [part - {name for pair in both for name in pair} for part in names]
    both += _renamed(sides, pairs, left)
    found = {name for pair in both for name in pair}
    alone = [(name, None) for name in left[0] - found] + [(None, name) for name in left[1] - found]
    order = sorted([*both, *alone], key=lambda pair: -max(shares.get(name or "", 0.0) for name in pair))
    kept = order[:MOST_PHASES]
    return tuple(_phase(sides, pairs, diff, old, new, len(kept)) for old, new in kept)


def _renamed(
    sides: tuple[PhaseSide, PhaseSide], pairs: Sequence[OpPair], left: Sequence[set[str]]
) -> list[tuple[str, str]]:
    """Programs of A and B without a namesake that share most ops, by time."""
    before, after = (side.whole() for side in sides)
    shared: defaultdict[tuple[str, str], Floats] = defaultdict(lambda: np.zeros(2))
    for pair in pairs:
        if pair.before is not None and pair.after is not None:
            names = before.ops[pair.before].program, after.ops[pair.after].program
            if names[0] in left[0] and names[1] in left[1]:
                shared[names] += before.means[pair.before], after.means[pair.after]
    found: list[tuple[str, str]] = []
    totals = before.means.sum(), after.means.sum()
    for names, times in sorted(shared.items(), key=lambda item: (-item[1].max(), sorted(item[0]))):
        whole = [side.share(name) * total for side, name, total in zip(sides, names, totals, strict=True)]
        if (times >= _LEAST_MATCHED * np.array(whole)).any() and not any({*names} & {*pair} for pair in found):
            found.append(names)
    return found


def _phase(
    sides: tuple[PhaseSide, PhaseSide],
    pairs: Sequence[OpPair],
    diff: Diff,
    old: str | None,
    new: str | None,
    comparisons: int,
) -> Phase:
    names = (old, new)
    runs = [np.zeros(0) if name is None else side.run_ps(name) for side, name in zip(sides, names, strict=True)]
    bounds = typical_bounds(*runs) if all(map(len, runs)) else (EVERY_STEP, EVERY_STEP)
    usual = [values[within(values, each)] for values, each in zip(runs, bounds, strict=True)]
    times = [estimate_steps(of) if len(of) else None for of in usual]
    shares = [None if name is None else 100 * side.share(name) for side, name in zip(sides, names, strict=True)]
    in_steps = diff.basis == "step" and all(
        name is None or of_program(side.steps, name) is not None for side, name in zip(sides, names, strict=True)
    )
    counts = [float(len(values)) if len(values) else None for values in runs]
    mark: Mark | None = "new" if old is None else "gone" if new is None else None
    numbers, portions = plain_change(*counts), change(*shares)
    return Phase(
        name=new or old or "",
        old_name=old if new is not None and old != new else None,
        time=change_of_either(times[0], times[1], comparisons),
        runs=replace(numbers, mark=mark or numbers.mark),
        share=replace(portions, mark=mark or portions.mark),
        in_steps=in_steps,
        ops=_ops(sides, pairs, diff, names, (len(runs[0]), len(runs[1])), in_steps),
    )


def _ops(
    sides: tuple[PhaseSide, PhaseSide],
    pairs: Sequence[OpPair],
    diff: Diff,
    names: tuple[str | None, str | None],
    counts: tuple[int, int],
    in_steps: bool,
) -> Diff:
    """The ops of a phase, by its runs, as a comparison of its own."""
    every = [side.steps if in_steps else side.whole() for side in sides]
    before, after = (of_program(run, name) or _NOTHING for run, name in zip(every, names, strict=True))
    # of an op of the run, its number among the program's ops
    rows = (rows_of(run, name) for run, name in zip(every, names, strict=True))
    place = [{row: number for number, row in enumerate(each)} for each in rows]
    mine = [pair for each in pairs if (pair := _inside(each, place)) is not None]
    # a run of the phase has to be there for each op of a pair
    kept = [of for of in mine if (of.before is None or before.ops) and (of.after is None or after.ops)]
    ops = op_changes(kept, before, after)
    has_both = bool(before.ops and after.ops)
    whole = [None if run is _NOTHING else run.whole for run in (before, after)]
    sides_of = [
        replace(side, units=max(1, count), unit_name=f"run of {name or names[0] or names[1]}")
        for side, count, name in zip((diff.before, diff.after), counts, names, strict=True)
    ]
    return replace(
        diff,
        before=sides_of[0],
        after=sides_of[1],
        basis="module run",
        steps=None,
        owners=(),
        ops=tuple(op for op, _ in ops),
        groups=op_groups(ops, before, after, (sides[0].table, sides[1].table)),
        categories=categories(before, after),
        classes=classes(before, after) if has_both else (),
        total=change_of_either(whole[0], whole[1]),
        phases=(),
        figures=(),
        traffic=UNKNOWN_CHANGE,
        work=UNKNOWN_CHANGE,
        modules=(),
        unknown={},
        warnings=(),
    )


def _inside(pair: OpPair, place: Sequence[dict[int, int]]) -> OpPair | None:
    """A pair by the numbers of ops within the phase; None for ops of other programs."""
    before = None if pair.before is None else place[0].get(pair.before)
    after = None if pair.after is None else place[1].get(pair.after)
    if before is None and after is None:
        return None
    by = pair.by if before is not None and after is not None else "none"
    return OpPair(before, after, by, pair.text_changed and by != "none")
