"""A compiled kernel in a profile: its module and its schedule beside made runs, in every page that shows its work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.parsers.formats.mosaic.compiled import archive
from tests.support.build import PlaneBuilder, StatInput, session_at, write_run
from tests.support.files.kernels import TARGET, US, KernelRun, with_kernels
from tpuprof.parsers.formats.hlo.programs import METADATA_PLANE
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.ops.kernels.page import TPU_KERNELS
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW

M, N, K = 2048, 2048, 1024
FLOPS = 2 * M * N * K
STEPS = 16 * 16 * 8
COPIED = 2 * (STEPS * 128 * 128 * 2 + 16 * 16 * 128 * 128)
"""Bytes of bfloat16: a block of each operand in a step, and a block of the result for each pair of outer indices."""

TEXT = f"bf16[{M},{N}]{{1,0}} custom-call(bf16[{M},{K}]{{1,0}} %x.1, bf16[{K},{N}]{{1,0}} %y.1){TARGET}"
RUN = KernelRun(op="mm.1", program=1, text=TEXT, steps=STEPS, wait_y_ps=100_000, body_ps=US // 2, flops=FLOPS // STEPS)


def profile(*, with_schedule: bool = True) -> bytes:
    """A profile that holds the kernel's program, and the compiler's schedule of it."""
    space = XSpace.FromString(with_kernels([RUN], is_traced=False))
    plane = PlaneBuilder(space, METADATA_PLANE, 90)
    stats: dict[str, StatInput] = {"Hlo Proto": archive.program("matmul").proto.SerializeToString(), "program_id": 1}
    plane.event_id("jit_step(1)", "", **stats)
    if with_schedule:
        plane.event_id("jit_step(0)::mm.1", llo_proto=archive.stored("v6e-matmul.llo_module.pb"))
    return space.SerializeToString()


def test_the_sizes_are_those_of_the_compiled_program(tmp_path: Path) -> None:
    (kernel,) = session_at(write_run(tmp_path, host0=profile())).page(TPU_KERNELS).kernels
    assert kernel.spec is not None and kernel.spec.steps == STEPS
    assert (kernel.flops.value, kernel.flops.witness) == (FLOPS, "shapes")
    assert (kernel.bytes.value, kernel.bytes.witness) == (COPIED, "shapes")
    assert [(row.name, row.words) for row in kernel.blocks[:2]] == [
        ("x", "128x128 bf16, 2 buffers"),
        ("y", "128x128 bf16, 2 buffers"),
    ]
    assert kernel.refusals[0].endswith(f"it counts 1 of {STEPS:,} grid steps.")


def test_every_page_has_the_work_of_the_shapes(tmp_path: Path) -> None:
    session = session_at(write_run(tmp_path, host0=profile()))
    ops, overview = session.page(OPS), session.page(OVERVIEW)
    (row,) = np.flatnonzero(np.array(ops.table.name) == "mm.1").tolist()
    assert ops.table.flops[row] == RUN.runs * FLOPS and ops.table.hbm_bytes[row] == RUN.runs * COPIED
    used = FLOPS / (RUN.time_ps / 1e12) / 918e12
    assert ops.rates.flops_utilization[row] == pytest.approx(used)
    account = overview.account
    assert account is not None
    ideal = next(each.time_ps for each in account.owners if each.owner == "ideal")
    roof = max(FLOPS / 918e12, COPIED / 1640e9) * 1e12
    assert ideal == pytest.approx(roof, rel=0.01)


def test_the_schedule_stands_beside_the_runs(tmp_path: Path) -> None:
    (kernel,) = session_at(write_run(tmp_path / "with", host0=profile())).page(TPU_KERNELS).kernels
    assert kernel.static is not None
    said = archive.said("v6e-matmul")
    assert kernel.static.bundles == said.bundles and kernel.static.regions
    (without,) = session_at(write_run(tmp_path / "no", host0=profile(with_schedule=False))).page(TPU_KERNELS).kernels
    assert without.static is None and without.spec is not None
