"""What advice stands on: from an error and from a compiled module."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.parsers.memory.oom.advice.needs import GIB, buffer
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.model import Capacity, ModuleLabel, SpaceMemory
from tpuprof.parsers.memory.modules.space_memory import space_memory
from tpuprof.parsers.memory.oom.model import OomReport
from tpuprof.parsers.memory.oom.triage import need_of_report

MODULES = Path(__file__).parents[4] / "demo" / "modules"


def module(name: str, capacity: int | None = None) -> SpaceMemory:
    """HBM of one of the demo's compiled programs."""
    packed = (MODULES / f"{name}.hlo_proto.pb.gz").read_bytes()
    hlo = HloModule(hlo_pb2.HloProto.FromString(gzip.decompress(packed)))
    limit = None if capacity is None else Capacity(capacity, "a test")
    return space_memory(hlo, ModuleLabel(name, None, "a file"), 0, limit)


def test_of_a_report() -> None:
    report = OomReport(
        kind="compile",
        memory_space="hbm",
        sentence="Ran out of memory in memory space hbm.",
        at_line=3,
        program="jit_f",
        used_bytes=10 * GIB,
        exceeded_bytes=GIB,
        arguments_bytes=GIB,
        output_bytes=2 * GIB,
        shared_bytes=3,
        hlo_temp_bytes=9 * GIB,
        fragmentation_bytes=5,
        buffers=(buffer("f32[8,128]{1,0:T(8,128)}"),),
    )
    need = need_of_report(report)
    assert (need.memory_space, need.kind, need.program) == ("hbm", "compile", "jit_f")
    assert (need.used_bytes, need.capacity_bytes, need.exceeded_bytes) == (10 * GIB, 9 * GIB, GIB)
    assert (need.arguments_bytes, need.outputs_bytes, need.aliased_bytes) == (GIB, 2 * GIB, 3)
    assert (need.temporaries_bytes, need.fragmentation_bytes) == (9 * GIB, 5)
    assert need.buffers == report.buffers
    assert not need.is_whole
    assert not need.is_scoped_limit
