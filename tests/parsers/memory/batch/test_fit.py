"""The largest batch that fits: what the compiler says of it, sizes in tiles, and when it is unknown."""

from __future__ import annotations

import functools
import gzip
from dataclasses import replace

import pytest

from tests.bench.oom_proof.fits import FITTING, FitScore, fit_of, kept
from tests.support.imports import ROOT
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import Shape, parse_shape
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.batch.fit import BatchFit, batch_fit
from tpuprof.parsers.memory.batch.growth import growth_of, resized
from tpuprof.parsers.memory.model import HBM, VMEM, ModuleLabel, SpaceMemory
from tpuprof.parsers.memory.modules.capacity import capacity_of
from tpuprof.parsers.memory.modules.space_memory import space_memory

LEAST_LARGEST, LEAST_RIGHT, LEAST_NEAR = 22, 21, 18
"""Of the bench's programs: the largest batch that is said to fit does; and what is said of the next one holds; and the
peak at the largest is within 5 %. Only ever bettered."""

_fit = functools.cache(fit_of)


def test_the_compiler_agrees() -> None:
    answers = [(answer, _fit(answer.case)) for answer in kept()]
    assert [answer.case for answer, _ in answers] == [case.name for case in FITTING]
    score = FitScore.of(answers)
    assert score.largest >= LEAST_LARGEST and score.right >= LEAST_RIGHT and score.near >= LEAST_NEAR, score


@pytest.mark.parametrize("case", [case.name for case in FITTING])
def test_at_its_own_batch_a_program_needs_its_peak(case: str) -> None:
    fit, answer = _fit(case), next(answer for answer in kept() if answer.case == case)
    assert fit.batch == answer.batch
    assert fit.used_bytes == answer.compiled[0].peak_bytes and fit.growing_bytes


def _module(name: str) -> HloModule:
    packed = (ROOT / "tests/demo/modules" / f"{name}.hlo_proto.pb.gz").read_bytes()
    return HloModule(hlo_pb2.HloProto.FromString(gzip.decompress(packed)))


def _memory(hlo: HloModule, space: int = HBM, device: str | None = "TPU v5e") -> SpaceMemory:
    return space_memory(hlo, ModuleLabel("module", None, "test"), space, capacity_of(device, space))


def _fit_of(hlo: HloModule, memory: SpaceMemory) -> BatchFit:
    return batch_fit(memory, growth_of(hlo, memory))


def test_what_is_not_known_is_said() -> None:
    hlo = _module("jit_train_step")
    assert _fit_of(hlo, _memory(hlo, VMEM)).unknown.startswith("The compiler chooses what it keeps outside HBM")
    assert _fit_of(hlo, _memory(hlo, device=None)).unknown == "The size of the HBM is unknown."
    memory = _memory(hlo)
    nothing = replace(memory, live_ranges=replace(memory.live_ranges, size_bytes=0 * memory.live_ranges.size_bytes))
    assert _fit_of(hlo, nothing).unknown.startswith("Nothing that lies in HBM grows")
    named = _renamed(
        _module("jit_train_step"), {b"batch['tokens']": b"params['a']", b"batch['targets']": b"params['b']"}
    )
    assert _fit_of(named, _memory(named)).unknown.startswith("No argument has a batch dimension")
    twice = _module("jit_train_step")
    first, second, *_ = twice.proto.hlo_module.computations[0].instructions
    first.id = second.id
    assert _fit_of(twice, memory).unknown.startswith("Several instructions of the module have one id")


def _renamed(hlo: HloModule, names: dict[bytes, bytes]) -> HloModule:
    for computation in hlo.proto.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.metadata.op_name = names.get(instruction.metadata.op_name, instruction.metadata.op_name)
    return hlo


@pytest.mark.parametrize(
    ("shape", "grown", "after", "times"),
    [
        ("f32[8,1024]{1,0:T(8,128)}", (0,), 12, 2.0),  # rows come in tiles of eight
        ("f32[8,1024]{1,0:T(8,128)}", (0,), 16, 2.0),
        ("f32[8,4,1024]{2,1,0:T(4,128)}", (0,), 12, 1.5),
        ("s32[2,1024]{1,0:T(2,128)}", (0,), 9, 8.0),  # a tile of two rows becomes one of eight
        ("f32[4,1024,8]{0,2,1:T(8,128)}", (0,), 8, 1.0),  # the batch in the lanes is padded to 128
        ("f32[4,1024]{1,0}", (0,), 5, 1.25),
    ],
)
def test_sizes_grow_in_whole_tiles(shape: str, grown: tuple[int, ...], after: int, times: float) -> None:
    read = parse_shape(shape)
    assert isinstance(read, Shape) and read.padded_bytes is not None
    size, before = read.padded_bytes, read.dimensions[0]
    assert resized(size, read, grown, before, after) == int(size * times)
    assert resized(size, read, grown, before, before) == size


def test_a_buffer_without_a_shape_grows_in_proportion() -> None:
    assert resized(100, None, (0,), 8, 12) == 150
