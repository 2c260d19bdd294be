"""Arguments that every step casts to a narrower type, although no program of the profile changes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.words import sentence_name, size
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_type
from tpuprof.parsers.pages.findings.budget import Budget
from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget
from tpuprof.parsers.pages.findings.ops.arrays import ModuleArrays, OpArrays, argument_of, donated
from tpuprof.parsers.pages.findings.ops.groups import NOTHING, Claimed, CloneGroup, code_name, named, op_finding
from tpuprof.parsers.pages.findings.ops.needless.repeated import MOVING, is_cast

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

LEAST_CASTS = 0.02
"""From this share of the time on it pays to keep a narrow copy of the arguments."""

_ADVICE = (
    "Cast them once, outside of the step, and give it the narrow copy: frozen weights, and weights that only serve, "
    "need no others. Where they are a batch, send it in the narrow type."
)

_Kind = tuple[str, tuple[int, ...]]
"""Element type and dimensions of an array."""


def cast_arguments(budget: Budget, programs: Sequence[ModuleArrays]) -> Claimed:
    """Arguments that a program casts to a narrower type by an op that does nothing else, and does not change.

    Weights in training are cast anew after each update, and that is as it should be: then the program, or another one
    of the profile, gives back an array like them, or takes their memory for its results.

    Args:
        programs: what the large ops read and write.
    """
    table = budget.evidence.table
    rows, times = budget.ops(*MOVING)
    own = dict(zip(rows.tolist(), times.tolist(), strict=True))
    parts = [program.of(own.keys()) for program in programs]
    cast = {of.row: (part.module, of) for part in parts for of in part.ops.values() if is_cast(part.module, of)}
    if sum(own[row] for row in cast) < LEAST_CASTS * budget.whole_ps:
        return NOTHING
    given_back = {kind for program in programs for kind in _results(program.module)}
    steady = {row for row, (module, of) in cast.items() if _is_steady(module, of, given_back)}
    saved = np.array([own[row] if row in steady else 0.0 for row in rows.tolist()])
    if float(saved.sum()) < LEAST_CASTS * budget.whole_ps:
        return NOTHING

    def make(groups: list[CloneGroup], worth: float) -> Finding | None:
        first = groups[0].first
        read = cast[first][1].reads[0]
        return budget.finding(
            "memory-bound",
            f"Each {'step' if budget.steps is not None else 'run'} casts arguments that it does not change: "
            f"{code_name(table, groups[0].rows)}",
            worth,
            "Time of these casts: arguments in the narrow type need none.",
            [
                f"They take {budget.amount(sum(group.ps for group in groups))}: {named(groups)}.",
                f"{budget.described(first)} casts {size(read.bytes)} of {sentence_name(_name(*cast[first]))}, which is "
                "neither donated nor given back with new values.",
            ],
            JumpTarget("op-profile", table.name[first]),
            is_estimate=True,
            advice=_ADVICE,
        )

    return op_finding(budget, rows, saved, make, goes_away=True)


def _is_steady(module: HloModule, of: OpArrays, given_back: set[_Kind]) -> bool:
    """Whether all that a cast reads are arguments that no program writes; `given_back`: what programs return."""
    if of.computation != module.proto.hlo_module.entry_computation_id:
        return False
    taken = donated(module)
    for array in of.reads:
        number, element = array.key
        argument, made = argument_of(module, number), module.instruction_by_id(number)
        if argument is None or made is None:
            return False
        kinds = [_kind(shape) for shape in made.shape.tuple_shapes[element : element + 1] or [made.shape]]
        if (*argument, *([element] if element >= 0 else [])) in taken or not given_back.isdisjoint(kinds):
            return False
    return True


def _results(module: HloModule) -> Iterator[_Kind]:
    """The arrays that a program gives back."""
    entry = module.computation(module.proto.hlo_module.entry_computation_id)
    root = None if entry is None else module.instruction_by_id(entry.root_id)
    if root is not None:
        yield from map(_kind, root.shape.tuple_shapes or [root.shape])


def _kind(shape: hlo_pb2.ShapeProto) -> _Kind:
    return element_type(shape), tuple(shape.dimensions)


def _name(module: HloModule, of: OpArrays) -> str:
    """What the program calls the argument that a cast reads, else its own name."""
    made = module.instruction_by_id(of.reads[0].key[0])
    if made is None:
        return "an argument"
    return (made.metadata.op_name or made.name).decode("utf-8", "replace")
