"""What makes two runs hard to compare, in sentences; above all, that they are runs of different programs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import totals
from tpuprof.parsers.base.text import counted, examples, printable
from tpuprof.parsers.formats.hlo.programs import module_name
from tpuprof.parsers.pages.ops.ops import UNKNOWN_PROGRAM
from tpuprof.parsers.session.diff.match import OpPair
from tpuprof.parsers.session.diff.measure import BatchedTimes, Op
from tpuprof.parsers.session.diff.model import Basis, Side
from tpuprof.parsers.session.diff.noise import FEW_STEPS

LEAST_AKIN = 0.2
"""Share of the time of a run's ops that must be akin to the other run for the two to be one program."""

_LEAST_KNOWN = 0.01
"""Share of a run's time in ops with a framework op from which on the profile knows of them at all."""

_NO_NAME = frozenset({UNKNOWN_PROGRAM, "program"})
"""What programs are called whose names the profile does not record."""


def cautions(sides: Sequence[Side], basis: Basis, pairs: Sequence[OpPair], different: bool) -> tuple[str, ...]:
    """Sentences on devices, cores, steps and programs that differ between A and B.

    Args:
        different: whether the runs are of different programs, see `different_programs`.
    """
    a, b = sides
    sentences: list[str] = []
    if a.device_type != b.device_type:
        kinds = [side.device_type or "no device" for side in sides]
        sentences.append(f"the devices differ: A ran on {kinds[0]}, B on {kinds[1]}")
    if a.core_count != b.core_count:
        cores = f"A has {counted(a.core_count, 'core')}, B has {counted(b.core_count, 'core')}"
        sentences.append(f"{cores}: times are those of the mean core, whatever its share of the work")
    if a.simulated != b.simulated:
        which = "A" if a.simulated else "B"
        sentences.append(f"the times of {which} are simulated, those of the other run are measured")
    return (*sentences, *_about_units(sides, basis), *_about_programs(sides, pairs, different))


def _about_units(sides: Sequence[Side], basis: Basis) -> list[str]:
    a, b = sides
    if basis == "step":
        sentences = []
        few = [(name, len(side.step_ps)) for name, side in zip("AB", sides, strict=True)]
        few = [(name, number) for name, number in few if number < FEW_STEPS]
        if few:
            words = " and ".join(f"{name} has {counted(number, 'step')}" for name, number in few)
            alone = any(number < 2 for _, number in few)
            sentences.append(f"{words}: how much of a change is noise is {'unknown' if alone else 'a rough guess'}")
        if a.unit_name != b.unit_name:
            sentences.append(f"a step is not the same thing in both: a {a.unit_name} in A, a {b.unit_name} in B")
        elif a.unit_name != "step":
            sentences.append(f"no step markers: a step is a {a.unit_name}")
        return sentences
    missing = " and ".join(name for name, side in zip("AB", sides, strict=True) if side.why_no_steps)
    what = "runs of the module with the most time" if basis == "module run" else "whole captures"
    sentences = [
        f"the steps of {missing} are unknown: {what} are compared, and how much of a change is noise is unknown"
    ]
    if basis == "module run" and a.unit_name != b.unit_name:
        sentences.append(f"the module with the most time is not the same: {a.unit_name} in A, {b.unit_name} in B")
    return sentences


def _about_programs(sides: Sequence[Side], pairs: Sequence[OpPair], different: bool) -> list[str]:
    names = [{module_name(program) for program in side.programs} - {UNKNOWN_PROGRAM} for side in sides]
    if not all(len(side.table) for side in sides):
        return []
    if not any(pair.before is not None and pair.after is not None for pair in pairs):
        why = "these are different programs" if different else "every op is new or gone"
        return [f"no op of A was found in B: {why}"]
    if names[0] and names[1] and not names[0] & names[1]:
        shown = [examples(sorted(part)) for part in names]
        return [f"no program has the same name in both: A ran {shown[0]}, B ran {shown[1]}"]
    return []


def different_programs(before: BatchedTimes, after: BatchedTimes, pairs: Sequence[OpPair]) -> str:
    """Why A and B are no runs of one program, as a sentence without its end; empty where they may be.

    They are different where in *both* runs less than `LEAST_AKIN` of the time of the ops that can be compared is akin
    to the other run. The time of an op is akin where any of these holds:

    - its program has no name, or a name that a program of the other run has, or at least that share of the other run is
      of programs without a name: a program that was changed, compiled anew or given another batch keeps its name, even
      if none of its ops is as it was;
    - it was matched with an op of the other run, be it in a program of another name;
    - the other run has an op from the same framework op, but for the first part, that names the program
      (``jit(step)/``): a program keeps these when it is renamed *and* compiled for another batch or fused otherwise;
    - the other run has an op of its name and category, where either profile knows framework ops of less than
      `_LEAST_KNOWN` of the time. Else ops without a framework op cannot be compared: any two programs have a
      ``copy.1``.

    So a wrong alarm takes a program that was renamed and of which, besides, hardly any framework op is left. Different
    programs of one name, such as ``jit_step``, are not found; nor is there anything to find in runs without ops.
    """
    runs = (before, after)
    if not all(run.means.sum() > 0 for run in runs):
        return ""
    matched_before = {pair.before for pair in pairs if pair.after is not None}
    matched_after = {pair.after for pair in pairs if pair.before is not None}
    shares = _akin(before, after, matched_before), _akin(after, before, matched_after)
    if max(shares) >= LEAST_AKIN:
        return ""
    names = [printable(_main_program(run)) for run in runs]
    most = f"less than {100 * LEAST_AKIN:g}% of the time of each is in ops that the other has"
    return f"these are different programs: A ran mostly {names[0]}, B mostly {names[1]}, and {most}"


def _akin(run: BatchedTimes, other: BatchedTimes, matched: set[int | None]) -> float:
    """The share of a run's time in ops that are akin to ops of the other run."""
    if _share(other, [op.program in _NO_NAME for op in other.ops]) >= LEAST_AKIN:
        return 1.0
    programs = {op.program for op in other.ops} | _NO_NAME
    shares = (_share(side, [bool(op.framework_op) for op in side.ops]) for side in (run, other))
    knows_origins = min(shares) >= _LEAST_KNOWN
    known = {key for op in other.ops if (key := _key(op, knows_origins)) is not None}
    keys = [_key(op, knows_origins) for op in run.ops]
    akin = [index in matched or op.program in programs or keys[index] in known for index, op in enumerate(run.ops)]
    tells = [is_akin or keys[index] is not None for index, is_akin in enumerate(akin)]
    telling = _share(run, tells)
    return _share(run, akin) / telling if telling > 0 else 0.0


def _key(op: Op, by_origin: bool) -> Hashable | None:
    """The key that makes ops of two programs akin; None for an op that cannot be compared."""
    if not by_origin:
        return op.category, op.name
    return (op.framework_op.partition("/")[2] or op.framework_op) if op.framework_op else None


def _share(run: BatchedTimes, rows: Sequence[bool]) -> float:
    """The share of a run's time in some of its ops."""
    means = run.means
    return float(means[np.array(rows, np.bool_)].sum() / means.sum())


def _main_program(run: BatchedTimes) -> str:
    """The program with the most time."""
    times = totals(zip((op.program for op in run.ops), run.means.tolist(), strict=True))
    return max(times, key=lambda name: (times[name], name))
