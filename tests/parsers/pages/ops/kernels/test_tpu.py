"""The page of a TPU's kernels, by arithmetic over made profiles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from tests.parsers.pages.ops.kernels.made import FLOPS, SPEC
from tests.support.build import session_at, write_run
from tests.support.files.kernels import TARGET, US, KernelRun, with_kernels
from tpuprof.parsers.formats.mosaic.spec import KernelSpec
from tpuprof.parsers.formats.mosaic.work import Amount
from tpuprof.parsers.pages.counters.page import COUNTERS, CountersPage
from tpuprof.parsers.pages.ops.kernels import tpu
from tpuprof.parsers.pages.ops.kernels.call_units import call_units_in
from tpuprof.parsers.pages.ops.kernels.page import CALLS_OF_HOST
from tpuprof.parsers.pages.ops.kernels.parameters import parameters
from tpuprof.parsers.pages.ops.kernels.variants import variants
from tpuprof.parsers.pages.ops.kernels.witnesses import Figure, use, work
from tpuprof.parsers.pages.ops.key import OPS

RUN = KernelRun(steps=16, wait_y_ps=3 * US, body_ps=900_000, flops=FLOPS // 8)


def page(folder: Path, kernels: Sequence[KernelRun], spec: KernelSpec | None = None, **how: bool) -> tpu.TpuKernelsPage:
    """The page of a profile of two cores, whose kernels all have one module."""
    session = session_at(write_run(folder, host0=with_kernels(kernels, cores=2, **how)))
    calls = chain.from_iterable(summary.calls for summary in session.reduced(CALLS_OF_HOST).summaries)
    counters: CountersPage = session.page(COUNTERS)
    return tpu.tpu_kernels_page(session.page(OPS), list(calls), counters.kernels, lambda _, __: spec)


def one(folder: Path, run: KernelRun, spec: KernelSpec | None = None) -> tpu.TpuKernel:
    """The only kernel of such a profile."""
    (kernel,) = page(folder, [run], spec).kernels
    return kernel


def test_a_use_of_the_matrix_units_below_what_the_shapes_need_is_refused(tmp_path: Path) -> None:
    idle = replace(RUN, body_ps=1_000)  # so that samples of it are next to nothing
    kernel = one(tmp_path, idle, SPEC)
    trace = kernel.matrix.statements[-1]
    assert trace.witness == "trace points" and "of what the shapes need" in trace.refused
    assert kernel.matrix.witness == "shapes"


def test_the_card_of_an_op_refuses_the_uses_that_the_page_of_counters_refuses(tmp_path: Path) -> None:
    needy = replace(RUN, flops=2 * FLOPS)  # of which the samples show a fifth
    session = session_at(write_run(tmp_path, host0=with_kernels([needy])))
    counters: CountersPage = session.page(COUNTERS)
    assert [row.refused != "" for row in counters.kernels if row.use.scope == "" and row.use.unit == "MXU"] == [True]
    assert call_units_in(session.run.files(None), session.page(OPS)) == counters.kernels


def test_calls_of_one_kernel_are_one_row(tmp_path: Path) -> None:
    layers = [replace(RUN, op=f"matmul.{at}") for at in range(3)]
    kernel = page(tmp_path, layers).kernels[0]
    assert kernel.ops == ("matmul.0", "matmul.1", "matmul.2") and kernel.runs.runs == 3 * 2 * RUN.runs


def test_operands_once_where_nobody_counted(tmp_path: Path) -> None:
    kernel = one(tmp_path, replace(RUN, flops=None))
    assert (kernel.bytes.value, kernel.bytes.witness) == (4 * 2048 * (1024 + 1024 + 2048), "operands")
    assert kernel.flops.value is None and "nobody counted it" in kernel.flops.reason


PAGED = KernelRun(
    op="RPA-bq_32-bkvp_64-p_64-.1",
    framework_op="jit(step)/jit(attn)/shard_map/jit(ragged_paged_attention)/RPA-bq_32-bkvp_64-p_64-/pallas_call",
    text=f"bf16[64,128]{{1,0}} custom-call(s32[256]{{0}} %p, bf16[7007,64,8,128]{{3,2,1,0}} %kv){TARGET}",
)


def test_a_paged_kernel_has_its_name_and_no_made_up_bytes(tmp_path: Path) -> None:
    kernel = one(tmp_path, PAGED)
    assert kernel.kernel == "ragged_paged_attention"
    assert kernel.bytes.value is None and "paged and ragged" in kernel.bytes.reason
    assert kernel.block_sizes == "bq 32, bkvp 64, p 64"


def test_sizes_in_names() -> None:
    assert tpu.sizes_in_name("RPA-bq_32-bkvp_64-p_64-.1") == "bq 32, bkvp 64, p 64"
    assert tpu.sizes_in_name("matmul_optimized.1") == ""
    assert tpu.without_sizes("RPA-bq_32-bkvp_64-p_64-") == "RPA" and tpu.without_sizes("-bq_32-") == "-bq_32-"


def test_sizes_behind_an_equals_sign_are_no_part_of_a_name() -> None:
    assert tpu.without_sizes("flash_mha_bwd_dq_block_q_major=128_block_k=256") == "flash_mha_bwd_dq"
    assert tpu.without_sizes("mm_block_=x") == "mm_block_=x"


def test_what_the_author_says_of_a_kernel(tmp_path: Path) -> None:
    splash = json.dumps({"xprof_metadata": json.dumps({"block_q": 128, "use_fused": False, "layout": "{"})})
    said = one(tmp_path, RUN, replace(SPEC, metadata=(("kernel_metadata", splash), ("note", "{no JSON"))))
    assert said.parameters == "block_q 128, use_fused false, layout {, note {no JSON"
    assert parameters([("a", '{"b":' * 2000)]).startswith("a ") and parameters([]) == ""


def test_kernels_that_differ_by_what_their_author_says_are_variants(tmp_path: Path) -> None:
    kernel = one(tmp_path, RUN, SPEC)
    made = [replace(kernel, spec=replace(SPEC, metadata=(("block_kv", size),))) for size in ("128", "256")]
    assert len(variants(made)) == 2 and variants([made[0], made[0]]) == ()


@pytest.mark.parametrize(
    ("flops", "moved", "products", "nearest"),
    [
        (0.1, 0.3, 1, ("HBM", 0.3)),
        (0.3, 0.1, 1, ("compute", 0.3)),
        (None, 0.3, None, None),  # its products may take longer
        (None, 0.6, None, ("HBM", 0.6)),
        (None, 0.3, 0, ("HBM", 0.3)),  # it has none
        (0.3, None, 1, None),
        (None, None, None, None),
    ],
)
def test_what_is_unknown_may_be_what_bounds_it(
    flops: float | None, moved: float | None, products: int | None, nearest: tuple[str, float] | None, tmp_path: Path
) -> None:
    kernel = one(tmp_path, RUN, SPEC)
    seconds = (kernel.mean_ps or 0) / 1e12

    def figure(used: float | None, peak: float | None) -> Figure:
        return work([("count", None if used is None else used * (peak or 0) * seconds)], None, "nobody counted")

    spec = replace(SPEC, matrix_flops=Amount(products))
    peaks = kernel.peaks
    of = replace(
        kernel,
        spec=spec,
        traced=None,
        flops=figure(flops, peaks.flops_per_second),
        bytes=figure(moved, peaks.hbm),
        matrix=use([], ""),
    )
    assert of.bound == (None if nearest is None else nearest[0])
    assert of.roof == (None if nearest is None else pytest.approx(nearest[1]))
    if flops is None and moved is not None:
        assert replace(of, matrix=use([("trace points", 0.1)], "")).roof == pytest.approx(moved)


def test_kernels_with_blocks_of_one_size_are_no_variants(tmp_path: Path) -> None:
    assert variants(page(tmp_path, [RUN, replace(RUN, op="matmul.2", program=8)], SPEC).kernels) == ()
