"""How much memory a TPU has for programs, by the type that profiles and runtimes give.

The figures are limits that the compiler enforces, found by compiling programs that just do not fit for each chip (jax
0.10.2, libtpu 0.0.42) and reading its errors: ``Used 15.75G of 15.75G hbm``, ``reserved 258.00M``, ``Used 192.00M of
127.94M vmem``, ``would exceed memory (size=1048576) … space=smem``. HBM limits hold to within 10 KiB.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpuprof.parsers.memory.model import HBM, SMEM, VMEM, Capacity

_KIB, _MIB = 2**10, 2**20

_TYPE = re.compile(r"tpu[ _-]?v?(\d{1,2})[ _-]?(litepod|lite|[a-z]?)(?:[ _-]chip)?", re.ASCII)

_GENERATIONS = {
    **{"2": "TPU v2", "3": "TPU v3", "4": "TPU v4", "7x": "TPU7x"},
    **{"5lite": "TPU v5e", "5litepod": "TPU v5e", "5e": "TPU v5e", "6lite": "TPU v6e", "6e": "TPU v6e"},
    **{"5": "TPU v5p", "5p": "TPU v5p"},  # runtimes call a v5p just v5
}

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


def generation_of(device_type: str | None) -> str | None:
    """The usual name of a TPU generation: ``TPU v5e`` of ``TPU v5 lite``; None for others, GPUs and unknown types.

    ``TPU v5`` alone is a v5p: so its runtime calls it.
    """
    match = _TYPE.fullmatch(" ".join((device_type or "").lower().split()))
    return None if match is None else _GENERATIONS.get(match[1] + match[2])


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
