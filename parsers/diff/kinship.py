"""Whether two runs are runs of one program at all: of different ones, step times are no comparison."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.diff.match import Pair
from tpuprof.parsers.diff.measure import Measured, Op
from tpuprof.parsers.pages.ops.ops import UNKNOWN_PROGRAM

LEAST_AKIN = 0.2
"""Share of the time of a run's ops that must be akin to the other run for the two to be one program."""

_LEAST_KNOWN = 0.01
"""Share of a run's time in ops with a framework op from which on the profile knows of them at all."""

_NO_NAME = frozenset({UNKNOWN_PROGRAM, "program"})
"""What programs are called whose names the profile does not tell."""


def different_programs(before: Measured, after: Measured, pairs: Sequence[Pair]) -> str:
    """Why A and B are no runs of one program, as a sentence without its end; empty where they may be.

    They are different where in *both* runs less than `LEAST_AKIN` of the time of the ops that tell anything is akin to
    the other run. The time of an op is akin where any of these holds:

    - its program has no name, or a name that a program of the other run has, or at least that share of the other run is
      of programs without a name: a program that was changed, compiled anew or given another batch keeps its name, even
      if none of its ops is as it was;
    - it was matched with an op of the other run, be it in a program of another name;
    - the other run has an op from the same framework op, but for the first part, that names the program
      (``jit(step)/``): a program keeps these when it is renamed *and* compiled for another batch or fused otherwise;
    - the other run has an op of its name and category, where either profile knows framework ops of less than
      `_LEAST_KNOWN` of the time. Else ops without a framework op tell nothing: any two programs have a ``copy.1``.

    So a wrong alarm takes a program that was renamed and of which, besides, hardly any framework op is left. Different
    programs of one name, such as ``jit_step``, are not found; nor is there anything to find in runs without ops.
    """
    runs = (before, after)
    if not all(run.means.sum() > 0 for run in runs):
        return ""
    found = {pair.before for pair in pairs if pair.after is not None}
    others = {pair.after for pair in pairs if pair.before is not None}
    shares = _akin(before, after, found), _akin(after, before, others)
    if max(shares) >= LEAST_AKIN:
        return ""
    names = [printable(_main_program(run)) for run in runs]
    most = f"less than {100 * LEAST_AKIN:g}% of the time of each is in ops that the other has"
    return f"these are different programs: A ran mostly {names[0]}, B mostly {names[1]}, and {most}"


def _akin(run: Measured, other: Measured, matched: set[int | None]) -> float:
    """The share of a run's time in ops that are akin to the other run."""
    if _share(other, [op.program in _NO_NAME for op in other.ops]) >= LEAST_AKIN:
        return 1.0
    programs = {op.program for op in other.ops} | _NO_NAME
    knows_origins = all(_share(one, [bool(op.framework_op) for op in one.ops]) >= _LEAST_KNOWN for one in (run, other))
    known = {key for op in other.ops if (key := _key(op, knows_origins)) is not None}
    keys = [_key(op, knows_origins) for op in run.ops]
    akin = [at in matched or op.program in programs or keys[at] in known for at, op in enumerate(run.ops)]
    tells = [is_akin or keys[at] is not None for at, is_akin in enumerate(akin)]
    telling = _share(run, tells)
    return _share(run, akin) / telling if telling > 0 else 0.0


def _key(op: Op, by_origin: bool) -> Hashable | None:
    """What makes ops of other programs akin; None for one that tells nothing."""
    if not by_origin:
        return op.category, op.name
    return (op.framework_op.partition("/")[2] or op.framework_op) if op.framework_op else None


def _share(run: Measured, rows: Sequence[bool]) -> float:
    """Of a run's time, that of some of its ops."""
    means = run.means
    return float(means[np.array(rows, np.bool_)].sum() / means.sum())


def _main_program(run: Measured) -> str:
    """The program with the most time."""
    times: dict[str, float] = {}
    for op, mean in zip(run.ops, run.means.tolist(), strict=True):
        times[op.program] = times.get(op.program, 0.0) + mean
    return max(times, key=lambda name: (times[name], name))
