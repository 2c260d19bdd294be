"""The work of kernels by their shapes, where the profile's count is none or too small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.parsers.formats.mosaic.test_spec import copy
from tests.parsers.ops.counters.test_samples import plane_of
from tests.parsers.pages.ops.kernels.made import COPIED, FLOPS, SPEC, buffer
from tests.support.files.kernels import KernelRun, with_kernels
from tests.support.files.mlir import program
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.mosaic.work import Amount
from tpuprof.parsers.ops.core.kernel_work import KernelWork, KernelWorks, with_works, work_of_spec
from tpuprof.parsers.ops.core.sums import op_sums
from tpuprof.parsers.ops.table import OpTable

RUN = KernelRun(flops=FLOPS // 8)


def table(*kernels: KernelRun) -> OpTable:
    return op_sums(plane_of(with_kernels(kernels or (RUN,)))).table


def test_a_count_that_is_too_small_gives_way() -> None:
    before = table()
    found = with_works(before, {0: KernelWork(FLOPS, COPIED)})
    assert before.flops.tolist() == [3 * FLOPS // 8] and np.isnan(before.hbm_bytes).all()
    assert found.flops.tolist() == found.model_flops.tolist() == [3.0 * FLOPS]
    assert found.hbm_bytes.tolist() == found.bytes_accessed.tolist() == [3.0 * COPIED]


def test_a_larger_count_stays() -> None:
    counted = table(KernelRun(flops=2 * FLOPS))
    assert with_works(counted, {0: KernelWork(FLOPS, None)}).flops.tolist() == [6.0 * FLOPS]
    rounded = table(KernelRun(flops=int(0.97 * FLOPS)))
    assert with_works(rounded, {0: KernelWork(FLOPS, None)}).flops.tolist() == rounded.flops.tolist()


def test_without_the_program_nothing_changes() -> None:
    before = table()
    after = KernelWorks(lambda: HloModules({})).applied(before)
    assert after.flops.tolist() == pytest.approx(before.flops.tolist())


def test_calls_of_one_kernel_whose_operands_lie_elsewhere_copy_other_bytes() -> None:
    hlo = program(copy().module(), ["f32[32,128]", "f32[32,128]{1,0:T(8,128)S(1)}"], "f32[32,128]")
    first = hlo.instruction_proto("kernel.7")
    assert first is not None
    second = hlo.proto.hlo_module.computations[0].instructions.add()
    second.CopyFrom(first)
    first.operand_ids[:], second.operand_ids[:], second.id, second.name = [0], [1], 100, b"kernel.8"
    programs = HloModules({RUN.program: ("m", lambda _: HloModule(hlo.proto))})
    runs = (replace(RUN, op="kernel.7"), replace(RUN, op="kernel.8"))
    found = KernelWorks(lambda: programs).applied(table(*runs))
    bytes_of = dict(zip(found.name, found.hbm_bytes.tolist(), strict=True))
    array = 32 * 128 * 4
    assert bytes_of == {"kernel.7": 3.0 * 2 * array, "kernel.8": 3.0 * array}  # of the second one's, the result alone


def test_work_of_a_module() -> None:
    assert work_of_spec(SPEC) == KernelWork(FLOPS, COPIED)
    unknown = replace(SPEC, buffers=(*SPEC.buffers, buffer("input", 2, (8, 128), 2, "z")))
    assert work_of_spec(unknown) == KernelWork(FLOPS, None)
    conditional = replace(SPEC, matrix_flops=Amount(None, "numbers decide"))
    assert work_of_spec(conditional).flops is None
    assert work_of_spec(replace(SPEC, reason="it cannot be read")).hbm_bytes is None
