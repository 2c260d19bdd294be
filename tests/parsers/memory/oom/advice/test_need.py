"""What advice stands on: from an error and from a compiled module."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.parsers.memory.oom.advice.needs import GIB, MIB, buffer
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.account.need import need_of_memory
from tpuprof.parsers.memory.model import Capacity, ModuleLabel, SpaceMemory
from tpuprof.parsers.memory.modules.space_memory import space_memory
from tpuprof.parsers.memory.oom.advice.advice import advise
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


def test_advice_on_a_training_step() -> None:
    found = advise(need_of_memory(module("jit_train_step", 8 * GIB)))
    assert [advice.kind for advice in found] == ["remat", "batch", "remat", "bf16", "duplicates", "optimizer", "bf16"]
    remat, batch, attention, _, cast, optimizer, gradients = found
    assert remat.sentence.startswith("activations kept for backward, 3 of 3 layers: 6 x bf16[3,8,1024,8192]")
    assert remat.source == "model.py:56"
    assert "8 on each device" in batch.sentence
    assert "f32[3,8,16,1024,1024]" in attention.sentence
    assert attention.saving_bytes is not None and 2600 * MIB < attention.saving_bytes < 2700 * MIB
    assert attention.arithmetic.endswith("then another moment is the peak, 2.57 GiB lower")
    assert optimizer.sentence == "optimizer state['square'], state['mean'] in f32, 16 arrays"
    assert gradients.sentence.startswith("gradients of all 3 layers in f32: ")
    assert cast.sentence.startswith("weights cast to bf16, all 3 layers at once: ")
    assert not any(advice.arithmetic.endswith("(of the listed buffers)") for advice in found)


def test_advice_on_an_evaluation() -> None:
    found = advise(need_of_memory(module("jit_eval_step")))
    assert sorted(advice.kind for advice in found) == ["batch", "bf16", "duplicates", "remat"]
    assert any(advice.sentence == "attention logits f32[8,16,1024,1024]" for advice in found)
    assert not any("backward" in advice.sentence for advice in found)
