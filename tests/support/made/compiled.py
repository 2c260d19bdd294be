"""Compiled modules for tests of the memory page: the demo's own, as a host's profile would hold them."""

from __future__ import annotations

from functools import cache

import numpy as np

from tests.demo.profile.hlo_module import Module
from tests.support.build import PlaneBuilder
from tpuprof.parsers.formats.hlo.programs import METADATA_PLANE, HloModules
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.memory.allocators.model import ActiveAllocation, AllocatorProfile, MemoryProfilePage
from tpuprof.parsers.pages.memory.compiled import CompiledModules, ModuleSource


def add_modules(space: XSpace, **modules: bytes) -> None:
    """Adds a metadata plane with protos, named as profiles name them: ``jit_train_step(1)``, ids from 1 on."""
    plane = PlaneBuilder(space, METADATA_PLANE, 90)
    for number, (name, proto) in enumerate(modules.items(), 1):
        label = f"{name}({number})"
        entry = plane.plane.event_metadata[plane.event_id(label)]
        plane.fill(entry.stats.add(), "Hlo Proto", proto)
        plane.fill(entry.stats.add(), "program_id", number)


@cache
def demo_modules() -> HloModules:
    """``jit_train_step(1)`` and ``jit_eval_step(2)``."""
    space = XSpace()
    add_modules(space, **{name: Module(name).proto_bytes for name in ("jit_train_step", "jit_eval_step")})
    return HloModules.of(Trace.from_bytes(space.SerializeToString()))


def compiled_modules() -> CompiledModules:
    """Both modules, of one host."""
    return CompiledModules([ModuleSource("host0", demo_modules(), (), "TPU v5e", "TPU")])


def memory_over_time() -> MemoryProfilePage:
    """One device of 8 GiB: heap and stack grow, peak at 3 ms with two ops' memory in use, and shrink."""
    sizes = np.array([1, 2, 5, 3, 1], np.int64) << 30
    allocator = AllocatorProfile(
        id="0",
        label="HBM of device 0",
        host="host0",
        allocations=3,
        deallocations=2,
        time_ps=np.array([1, 2, 3, 4, 5], np.int64) * 10**9,
        stack_bytes=np.full(5, 1 << 30, np.int64),
        heap_bytes=sizes,
        free_bytes=(7 << 30) - sizes,
        fragmentation=np.full(5, 0.25),
        is_allocation=np.array([True, True, True, False, False]),
        peak_index=2,
        capacity_bytes=8 << 30,
        lifetime_peak_bytes=6 << 30,
        at_peak=(
            ActiveAllocation("batched_device_put", 2, 2 << 30, 2 << 30, "output", "float", "[16384,32768]"),
            ActiveAllocation("stack", 1, 1 << 30, 1 << 30, "stack", None, None),
            ActiveAllocation("jit(train_step)", 1, 1 << 30, (1 << 30) - 512, None, None, None),
        ),
    )
    return MemoryProfilePage(("host0",), (allocator,))
