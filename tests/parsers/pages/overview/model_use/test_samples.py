"""Tokens and samples of a step by the arguments of its program."""

from __future__ import annotations

import pytest

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.overview.model_use.samples import NO_DIVISION, NO_INPUT, Samples, samples_of

F32, S32, U8 = 11, 4, 6
TILES = 3


def program(*arguments: tuple[int, tuple[int, ...], tuple[int, ...] | None]) -> HloModule:
    """A program with arguments of some type and dimensions, divided into tiles over cores; None: it does not say."""
    proto = hlo_pb2.HloProto()
    computation = proto.hlo_module.computations.add(id=1, name=b"main")
    proto.hlo_module.entry_computation_id = 1
    for number, (kind, dims, tiles) in enumerate(arguments):
        each = computation.instructions.add(id=10 + number, opcode=b"parameter", name=f"p{number}".encode())
        each.shape.element_type = kind
        each.shape.dimensions.extend(dims)
        if tiles is not None:
            each.sharding.type = TILES if tiles else 0
            each.sharding.tile_assignment_dimensions.extend(tiles)
    return HloModule(proto)


@pytest.mark.parametrize(
    ("arguments", "has_attention", "cores", "found"),
    [
        ([(F32, (512, 512), None), (S32, (8, 128), None)], True, 1, Samples(1024, "tokens")),
        ([(S32, (8, 128), None)], False, 1, Samples(8, "samples")),
        ([(S32, (4, 8, 128), None)], True, 1, Samples(4096, "tokens")),
        ([(S32, (8, 128), (2, 1, 2))], True, 4, Samples(2048, "tokens")),
        ([(S32, (8, 128), (2, 2))], True, 4, Samples(4096, "tokens")),
        ([(S32, (8, 128), ())], True, 4, Samples(1024, "tokens")),
        ([(U8, (32, 224, 224, 3), (4, 1, 1, 1)), (S32, (32,), (4,))], True, 4, Samples(128, "samples")),
        ([(S32, (8, 128), None)], True, 4, NO_DIVISION),
        ([(S32, (8,), None), (F32, (512, 512), None)], True, 1, NO_INPUT),
        ([], True, 1, NO_INPUT),
    ],
)
def test_arguments(
    arguments: list[tuple[int, tuple[int, ...], tuple[int, ...] | None]],
    has_attention: bool,
    cores: int,
    found: Samples | str,
) -> None:
    assert samples_of(program(*arguments), has_attention, cores) == found


def test_a_program_without_an_entry_says_nothing() -> None:
    assert samples_of(HloModule(hlo_pb2.HloProto()), True, 1) == NO_INPUT
