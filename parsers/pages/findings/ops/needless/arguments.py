"""Arguments that every step casts to a narrower type, although no program of the profile changes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.words import sentence_name, size
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_type
from tpuprof.parsers.pages.findings.budget import Budget, Claimed, detects
from tpuprof.parsers.pages.findings.ops.arrays import ModuleArrays, OpArrays, donated, large_arrays
from tpuprof.parsers.pages.findings.ops.bandwidth import MEMORY_BOUND
from tpuprof.parsers.pages.findings.ops.groups import code_name, worthwhile
from tpuprof.parsers.pages.findings.ops.needless.repeated import MOVING, is_cast

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

LEAST_CASTS = 0.02
"""From this share of the time on it pays to keep a narrow copy of the arguments."""

_ADVICE = (
    "Cast them once, outside the step, and pass the narrow copy: frozen weights, and weights for inference, need "
    "no other. If they are a batch, send it in the narrow type."
)

_Kind = tuple[str, tuple[int, ...]]
"""Element type and dimensions of an array."""


@detects(MEMORY_BOUND)
def cast_arguments(budget: Budget) -> Claimed:
    """Arguments that a program casts to a narrower type by an op that does nothing else, and does not change.

    Weights in training are cast anew after each update, and that is as it should be: then the program, or another one
    of the profile, gives back an array like them, or takes their memory for its results.
    """
    table, programs = budget.evidence.table, budget.once(large_arrays)
    rows, times = budget.ops(*MOVING)
    own = dict(zip(rows.tolist(), times.tolist(), strict=True))
    given_back = {kind for program in programs for kind in _results(program.module)}
    cast = {
        of.row: (program.module, of)
        for program in programs
        for of in _of_arguments(program.of(own.keys()), given_back)
        if is_cast(program.module, of)
    }
    saved = np.array([own[row] if row in cast else 0.0 for row in rows.tolist()])
    budget.needs(float(saved.sum()), LEAST_CASTS)

    losing = worthwhile(budget, rows, saved, goes_away=True)
    first = losing.first
    read = cast[first][1].reads[0]
    return losing.finding(
        MEMORY_BOUND,
        f"Each {'step' if budget.steps is not None else 'run'} casts arguments that it does not change: "
        f"{code_name(table, losing.groups[0].rows)}",
        "Time of these casts: arguments in the narrow type need none.",
        [
            losing.words(),
            f"{budget.described(first)} casts {size(read.bytes)} of {sentence_name(_name(*cast[first]))}, "
            "which is neither donated nor returned with new values.",
        ],
        advice=_ADVICE,
    )


def _of_arguments(program: ModuleArrays, given_back: set[_Kind]) -> Iterator[OpArrays]:
    """The ops of a program that read nothing large but arguments that no program changes.

    Args:
        given_back: what the programs of the profile return.
    """
    module, taken = program.module, donated(program.module)
    entry = module.computation(module.proto.hlo_module.entry_computation_id)
    made = {each.id: each for each in entry.instructions if each.opcode == b"parameter"} if entry is not None else {}
    for of in program.ops.values():
        keys = [array.key for array in of.reads]
        if not all(number in made and (made[number].parameter_number, *_index(at)) not in taken for number, at in keys):
            continue
        shapes = [
            (made[number].shape.tuple_shapes[at : at + 1] if at >= 0 else [made[number].shape]) for number, at in keys
        ]
        if given_back.isdisjoint(_kind(shape) for each in shapes for shape in each):
            yield of


def _index(element: int) -> tuple[int, ...]:
    return () if element < 0 else (element,)


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
