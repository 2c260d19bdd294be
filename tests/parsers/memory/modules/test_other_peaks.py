"""The peak that JAX gives for a module, where it is another one than that of HBM: a module that the compiler made."""

from __future__ import annotations

import gzip

from tests.support.imports import ROOT
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.model import HBM, VMEM, ModuleLabel
from tpuprof.parsers.memory.modules.space_memory import space_memory

DATA = ROOT / "tests/bench/oom_proof/data"
PEAK_MEMORY_IN_BYTES = 27_048_960
"""What `memory_analysis()` gave for it (jax 0.10.2, libtpu 0.0.52): 26 MiB, of which HBM has 7."""


def test_jax_adds_what_is_in_vmem_to_what_lasts_in_hbm() -> None:
    """Sums over a padded array, whose temporaries are all in VMEM."""
    module = HloModule(hlo_pb2.HloProto.FromString(gzip.decompress((DATA / "sums_in_vmem.pb.gz").read_bytes())))
    label = ModuleLabel("jit_f3", None, "test")
    hbm, vmem = space_memory(module, label, HBM, None), space_memory(module, label, VMEM, None)
    lasting = hbm.arguments_bytes + hbm.outputs_bytes + hbm.constants_bytes
    assert lasting + vmem.peak_bytes == PEAK_MEMORY_IN_BYTES and hbm.peak_bytes < 8 << 20
    assert any("27,048,960 bytes as this module's peak" in warning for warning in hbm.warnings)
    assert not any("memory_analysis" in warning for warning in vmem.warnings)
