"""Modules and schedules of kernels, as their readers give them."""

from __future__ import annotations

from dataclasses import replace

from tpuprof.parsers.formats.mosaic.spec import KernelBuffer, KernelSpec
from tpuprof.parsers.formats.mosaic.work import Amount

MIB = 1 << 20
FLOPS = 2 * 2048 * 1024 * 2048
COPIED = 64 * MIB


def buffer(role: str, number: int | None, block: tuple[int, ...], buffers: int, name: str = "") -> KernelBuffer:
    """A buffer of float32 in VMEM; of an array that stays where it is with 0 buffers."""
    size = 4 * block[0] * block[1]
    return KernelBuffer(
        role=role,
        number=number,
        is_output=role == "output" or name == "out",
        name=name,
        array=None,
        block=block,
        element="f32",
        space="vmem" if buffers else "any",
        buffers=buffers,
        bytes=size,
    )


SPEC = KernelSpec(
    metadata=(),
    grid=(),
    buffers=(
        replace(buffer("input", 0, (2048, 1024), 0, "x"), copied_bytes=16 * MIB),
        replace(buffer("input", 1, (1024, 2048), 0, "y"), copied_bytes=32 * MIB),
        replace(buffer("output", 0, (2048, 2048), 0), copied_bytes=16 * MIB),
        buffer("pipeline", 0, (512, 512), 2, "x"),
        buffer("pipeline", 1, (512, 1024), 1, "y"),
        buffer("pipeline", 0, (512, 1024), 2, "out"),
    ),
    used_vmem_bytes=9 * MIB,
    vmem_limit_bytes=None,
    matrix_flops=Amount(FLOPS),
)
"""A matrix product in blocks, of which those of `y` have one buffer."""
