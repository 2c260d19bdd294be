"""How much memory a TPU has for programs, by the type that profiles and runtimes give.

The figures are limits that the compiler enforces, found by compiling programs that just do not fit for each chip (jax
0.10.2, libtpu 0.0.42) and reading its errors: ``Used 15.75G of 15.75G hbm``, ``reserved 258.00M``, ``Used 192.00M of
127.94M vmem``, ``would exceed memory (size=1048576) … space=smem``. HBM limits hold to within 10 KiB.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpuprof.parsers.base.tpus import generation_of
from tpuprof.parsers.memory.model import HBM, SMEM, VMEM, Capacity

_KIB, _MIB = 2**10, 2**20

_LIMITS: Mapping[str, Mapping[int, int]] = {
    # HBM is what the device has less what is reserved on it, of a program that runs on all the device's cores.
    "TPU v2": {HBM: (8 * 1024 - 530) * _MIB, VMEM: 16 * _MIB, SMEM: 16 * _KIB},
    "TPU v3": {HBM: (16 * 1024 - 530) * _MIB, VMEM: 16 * _MIB, SMEM: 16 * _KIB},
    "TPU v4": {HBM: (32 * 1024 - 1283) * _MIB, VMEM: 16 * _MIB, SMEM: _MIB},
    "TPU v5e": {HBM: (16 * 1024 - 258) * _MIB, VMEM: 128 * _MIB, SMEM: _MIB},
    "TPU v5p": {HBM: (96 * 1024 - 263) * _MIB, VMEM: 64 * _MIB - 64 * _KIB, SMEM: _MIB},
    "TPU v6e": {HBM: (32 * 1024 - 512 - 260) * _MIB, VMEM: 128 * _MIB - 64 * _KIB, SMEM: _MIB},
    "TPU7x": {HBM: (96 * 1024 - 1024 - 260) * _MIB, VMEM: 64 * _MIB, SMEM: _MIB},
}

_BOTH_CORES = ("TPU v4", "TPU v5p")
"""Chips whose two cores a program usually has as one device; with a program for each core it is half as much."""


def capacity_of(device_type: str | None, space: int) -> Capacity | None:
    """How much of a memory space programs have on a device of a type, such as ``TPU v6 Lite``.

    None for unknown types, and for memory spaces whose limit is not known.
    """
    generation = generation_of(device_type) or ""
    limit = _LIMITS.get(generation, {}).get(space)
    if limit is None:
        return None
    of_both = ", both cores as one device" if space == HBM and generation in _BOTH_CORES else ""
    return Capacity(limit, f"{generation}: limit in the compiler's errors{of_both}")
