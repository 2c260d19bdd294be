"""The number of tokens or samples in a step of a training program, by the arguments of its compiled program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_type

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

NO_PROGRAM = "the profile does not hold the compiled program of the step"
NO_TRAINING = "only a training step's arguments show them, and no op belongs to a backward pass"
NO_INPUT = "no argument of the compiled program looks like tokens or pictures"
NO_DIVISION = "the compiled program does not say how its input is divided over the cores"

_INTEGERS = frozenset(("s32", "u32", "s64", "u64", "s16", "u16", "u8", "s8"))
_TILES = 3
_MOST_CHANNELS = 4


@dataclass(frozen=True, slots=True)
class Samples:
    """The number of tokens or samples in a step, over all cores."""

    count: float
    kind: Literal["tokens", "samples"]


def samples_of(hlo: HloModule, has_attention: bool, cores: int) -> Samples | str:
    """Tokens or samples of a step, or why they are unknown.

    Pictures, recognised by their few channels, are samples. Else the largest array of integers with a batch is the
    input: with attention each number is a token, without it each row is a sample.

    Args:
        has_attention: whether the model has attention.
        cores: how many run the program.
    """
    entry = hlo.computation(hlo.proto.hlo_module.entry_computation_id)
    arguments = [] if entry is None else [each for each in entry.instructions if each.opcode == b"parameter"]
    numbers = [
        each for each in arguments if element_type(each.shape) in _INTEGERS and len(each.shape.dimensions) in (2, 3)
    ]
    pictures = [each for each in arguments if _is_of_pictures(each)]
    kind: Literal["tokens", "samples"] = "samples"
    if pictures:
        chosen, count = pictures[0], pictures[0].shape.dimensions[0]
    elif numbers:
        chosen = max(numbers, key=lambda each: math.prod(each.shape.dimensions))
        dims = chosen.shape.dimensions
        kind, count = ("tokens", math.prod(dims)) if has_attention else (kind, dims[0])
    else:
        return NO_INPUT
    parts = _parts(chosen, cores)
    if isinstance(parts, str):
        return parts
    return Samples(float(count * parts), kind)


def _is_of_pictures(proto: hlo_pb2.HloInstructionProto) -> bool:
    dims = proto.shape.dimensions
    return len(dims) == 4 and 1 <= dims[3] <= _MOST_CHANNELS and dims[1] > _MOST_CHANNELS and dims[2] > _MOST_CHANNELS


def _parts(proto: hlo_pb2.HloInstructionProto, cores: int) -> int | str:
    """Into how many different parts an argument is divided over the cores."""
    if cores == 1:
        return 1
    if not proto.HasField("sharding"):
        return NO_DIVISION
    sharding = proto.sharding
    if sharding.type != _TILES:
        return 1
    tiles = list(sharding.tile_assignment_dimensions)[: len(proto.shape.dimensions)]
    return math.prod(tiles) if tiles and min(tiles) > 0 else NO_DIVISION
