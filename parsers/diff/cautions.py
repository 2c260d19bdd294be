"""What makes two runs hard to compare, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.diff.match import Pair
from tpuprof.parsers.diff.measure import program_name
from tpuprof.parsers.diff.model import Basis, Side
from tpuprof.parsers.diff.noise import FEW_STEPS
from tpuprof.parsers.pages.ops.ops import UNKNOWN_PROGRAM


def cautions(sides: Sequence[Side], basis: Basis, pairs: Sequence[Pair], different: bool) -> tuple[str, ...]:
    """Devices, cores, steps and programs that are not the same kind of thing in A and B.

    Args:
        different: the runs are of different programs, see `kinship`.
    """
    a, b = sides
    found: list[str] = []
    if a.device_type != b.device_type:
        kinds = [side.device_type or "no device" for side in sides]
        found.append(f"the devices differ: A ran on {kinds[0]}, B on {kinds[1]}")
    if a.core_count != b.core_count:
        cores = f"A has {counted(a.core_count, 'core')}, B has {counted(b.core_count, 'core')}"
        found.append(f"{cores}: times are those of the mean core, of whatever share of the work it has")
    if a.simulated != b.simulated:
        found.append(f"the times of {'A' if a.simulated else 'B'} are simulated, those of the other run are measured")
    return (*found, *_about_units(sides, basis), *_about_programs(sides, pairs, different))


def _about_units(sides: Sequence[Side], basis: Basis) -> list[str]:
    a, b = sides
    if basis == "step":
        return [*_few_steps(sides), *_kinds_of_step(a, b)]
    missing = " and ".join(name for name, side in zip("AB", sides, strict=True) if side.why_no_steps)
    what = "runs of the module with the most time" if basis == "module run" else "whole captures"
    found = [f"the steps of {missing} are unknown: {what} are compared, and what of a change is noise is unknown"]
    if basis == "module run" and a.unit_name != b.unit_name:
        found.append(f"the module with the most time is not the same: {a.unit_name} in A, {b.unit_name} in B")
    return found


def _few_steps(sides: Sequence[Side]) -> list[str]:
    few = [(name, len(side.step_ps)) for name, side in zip("AB", sides, strict=True) if len(side.step_ps) < FEW_STEPS]
    if not few:
        return []
    words = " and ".join(f"{name} has {counted(number, 'step')}" for name, number in few)
    alone = any(number < 2 for _, number in few)
    return [f"{words}: what of a change is noise " + ("is unknown" if alone else "is a rough guess")]


def _kinds_of_step(a: Side, b: Side) -> list[str]:
    if a.unit_name != b.unit_name:
        return [f"a step is not the same thing in both: a {a.unit_name} in A, a {b.unit_name} in B"]
    return [] if a.unit_name == "step" else [f"there are no markers of steps: a step is a {a.unit_name}"]


def _about_programs(sides: Sequence[Side], pairs: Sequence[Pair], different: bool) -> list[str]:
    names = [{program_name(program) for program in side.programs} - {UNKNOWN_PROGRAM} for side in sides]
    if not all(len(side.table) for side in sides):
        return []
    if not any(pair.before is not None and pair.after is not None for pair in pairs):
        why = "these are different programs" if different else "every op is new or gone"
        return [f"no op of A was found in B: {why}"]
    if names[0] and names[1] and not names[0] & names[1]:
        shown = [examples(sorted(part)) for part in names]
        return [f"no program has the same name in both: A ran {shown[0]}, B ran {shown[1]}"]
    return []
