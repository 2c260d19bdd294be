"""Mosaic modules and schedules of kernels: compiled ones, and ones whose parts say something else."""

from __future__ import annotations

import base64
import json
import random
from functools import cache
from pathlib import Path

from tests.fuzz.structure import wire
from tests.fuzz.trial import Outcome, asked
from tests.parsers.formats.mosaic.compiled.archive import program, stored
from tests.parsers.formats.mosaic.made import Kernel
from tests.support.files import mlir
from tpuprof.parsers.base.errors import Damaged
from tpuprof.parsers.formats.llo import module
from tpuprof.parsers.formats.mosaic.executed import executed
from tpuprof.parsers.formats.mosaic.spec import KernelSpec

_NUMBERS = (0, 1, 2, 3, 7, 128, 1 << 15, 1 << 31, (1 << 62) - 1, -1, mlir.DYNAMIC)
_SCHEDULES = ("v5e-gather", "v5e-wait", "v6e-matmul")


@cache
def modules() -> tuple[bytes, ...]:
    names = ("matmul", "causal", "gather", "wait", "pipeline", "ragged")
    found = [each for name in names for each in program(name).proto.hlo_module.computations[0].instructions]
    configs = [json.loads(each.backend_config) for each in found if each.opcode == b"custom-call"]
    return tuple(base64.b64decode(each["custom_call_config"]["body"]) for each in configs)


def read_module(_: Path, data: bytes, rng: random.Random) -> Outcome:
    """A kernel of a program whose operands may or may not be its own."""
    operands = ["f32[64,128]", "bf16[1024,128]{1,0:T(8,128)(2,1)S(1)}", "s32[]"][: rng.randrange(4)]

    def read() -> bool:
        (spec,) = mlir.kernels(mlir.program(data, operands, "f32[64,128]"))
        _ = (spec.steps, spec.bytes_in("vmem"), spec.bytes_in("smem"), repr(spec))
        return not spec.reason

    return asked(read)


def made_module(rng: random.Random) -> bytes:
    """A kernel of any grid, blocks, conditions, loops and copies."""
    kernel = Kernel([rng.choice(_NUMBERS) for _ in range(rng.randrange(4))])
    for _ in range(rng.randrange(4)):
        kernel.argument(*_shape(rng), rng.choice(("vmem", "smem", "any", "")))
        if kernel.grid and rng.random() < 0.8:
            op, made = kernel.constant(rng.choice(_NUMBERS[:6]))
            kernel.window([abs(rng.choice(_NUMBERS)) for _ in range(2)], [op], [rng.choice(kernel.indices), made])
    kernel.scratch = rng.choice((0, 0, 1, 5))
    _fill(rng, kernel, kernel, 0)
    data = kernel.module()
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :] if rng.random() < 0.3 else data


def _shape(rng: random.Random) -> tuple[list[int], str]:
    dimensions = [rng.choice(_NUMBERS) for _ in range(rng.randrange(4))]
    return dimensions, rng.choice(("f32", "bf16", "i8", "i4", "dma_semaphore", "i99999"))


def _fill(rng: random.Random, kernel: Kernel, into: Kernel, depth: int) -> None:
    writer = kernel.writer
    numbers = [*kernel.indices, into.number(rng.choice(_NUMBERS[:8])), into.number(rng.choice(_NUMBERS[:8]))]
    for _ in range(rng.randrange(6)):
        how = rng.randrange(6)
        a, b = rng.choice(numbers), rng.choice(numbers)
        if how == 0:
            name = rng.choice(("addi", "muli", "divsi", "remsi", "subi", "andi", "ceildivsi"))
            numbers.append(into.add(f"arith.{name}", [a, b], writer.integer_type(32)))
        elif how == 1:
            into.product(*(abs(rng.choice(_NUMBERS)) for _ in range(3)))
        elif how == 2 and kernel.arguments:
            ends = [rng.choice(kernel.arguments) for _ in range(rng.randrange(4))]
            into.add("tpu.enqueue_dma", ends)
        elif how == 3 and depth < 4:
            inside = kernel.inside()
            _fill(rng, kernel, inside, depth + 1)
            into.loop(a, b, rng.choice(numbers), inside)
        elif how == 4 and depth < 4:
            inside = kernel.inside()
            _fill(rng, kernel, inside, depth + 1)
            into.under(into.compared(rng.randrange(12), a, b), inside)
        else:
            into.add("memref.alloca", [], writer.memref(*_shape(rng)))


@cache
def schedules() -> tuple[bytes, ...]:
    """The schedules of compiled kernels."""
    return tuple(stored(f"{name}.llo_module.pb") for name in _SCHEDULES)


@cache
def _spec() -> KernelSpec:
    return mlir.kernels(program("wait"))[0]


def read_schedule(_: Path, data: bytes, __: random.Random) -> Outcome:
    """A schedule, and all that is asked of it."""

    def read() -> bool:
        try:
            schedule = module.read_schedule(data)
        except Damaged:
            return False
        _ = (schedule.shares(), schedule.owner, schedule.spill_bytes, executed(schedule, _spec()))
        return True

    return asked(read)


def made_schedule(rng: random.Random) -> bytes:
    """A schedule some of whose messages say something else."""
    return wire.changed(rng, rng.choice(schedules()), 6)
