"""Findings about groups of ops: kernels, precision, recomputation, copies, gathers. What is found, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parsers.pages.findings.build import (
    PEAKS,
    US,
    Op,
    evidence,
    findings,
    found,
    grid,
    modules,
    product,
    the,
    with_,
)
from tpuprof.parsers.ops.core.calls import CallRuns
from tpuprof.parsers.ops.roofline import table_rates, uncounted
from tpuprof.parsers.ops.table import kernel_name
from tpuprof.parsers.pages.findings.finding import Evidence, JumpTarget
from tpuprof.parsers.pages.findings.ops.groups import groups_of
from tpuprof.parsers.pages.overview.performance import counted_words

PALLAS = "jit(_attn)/shard_map/jit({0})/{0}-bq_32/pallas_call"


def kernels(name: str, percent: float, count: int = 4, flops: int = 0, hbm: int = 0, text: str = "") -> list[Op]:
    """Calls of a Pallas kernel in so many layers, so much of a step of 100 microseconds together."""
    scope = PALLAS.format(name)
    time = 20 * percent / count
    calls = (f"{name}.{n}" for n in range(count))
    return [Op(call, "custom-call", time, flops=flops, hbm=hbm, scope=scope, text=text) for call in calls]


def vllm() -> Evidence:
    """A decode step as vLLM's: mostly Pallas kernels that nobody counted, and a collective of 6 %."""
    ops = [
        *kernels("ragged_paged_attention", 32),
        *kernels("quantized_matmul", 38),
        Op("all-reduce.1", "all-reduce", 120),
    ]
    fusion = Op("fusion.1", "loop fusion", 480, hbm=round(24e-6 * 0.8 * 1000e9))
    return evidence(grid({"unknown": 70, "vector": 24, "collective": 6}), [*ops, fusion])


def test_where_the_time_is_comes_first_although_no_saving_is_known() -> None:
    first, second = findings(vllm())
    assert first.kind == "uncounted"
    assert first.title == ("Kernels of unknown work take 70.0%: quantized_matmul 38.0%, ragged_paged_attention 32.0%")
    assert (first.worth_ps, first.worth_fraction, first.after_ps) == (None, None, None)
    assert first.evidence[1].startswith("quantized_matmul takes 38.0 µs a step (38.0%), in 4 calls of the program")
    assert first.place == JumpTarget("op-profile", "quantized_matmul.0", "kernels")
    assert second.kind == "collective"
    assert second.worth_fraction == pytest.approx(0.06)


def test_a_large_known_saving_comes_before_few_uncounted_kernels() -> None:
    ops = [*kernels("quant", 20), Op("all-reduce.1", "all-reduce", 600)]
    kinds = [of.kind for of in findings(evidence(grid({"unknown": 20, "vector": 50, "collective": 30}), ops))]
    assert kinds == ["collective", "uncounted"]


def test_uncounted_work_is_unknown_and_not_zero() -> None:
    table = vllm().table
    calls = uncounted(table)
    assert calls.sum() == 8
    rates = table_rates(table, PEAKS)
    for values in (table.flops, table.bytes_accessed, table.hbm_bytes, rates.flops_utilization, rates.efficiency):
        assert np.isnan(values[calls]).all()
    assert {rates.bound_name(row) for row in np.flatnonzero(calls).tolist()} == {"unknown"}
    assert counted_words(table) == (
        "FLOPs and bytes are counted for 30.0% of the ops' time: kernels (custom calls) that nobody counted are left "
        "out of rates and utilizations, which are lower bounds",
    )


def test_counted_kernels_far_below_the_roof_are_found_as_one() -> None:
    slow = kernels("attention", 20, flops=round(5e-6 * 0.05 * 100e12), hbm=1000)
    finding = the("slow-kernel", evidence(grid({"compute": 100}), slow))
    assert finding.title == "Kernel attention runs at 5.0% of the roof"
    assert finding.worth_ps == pytest.approx(20 * (1 - 0.05 / 0.75) * US, rel=1e-3)
    fast = kernels("attention", 20, flops=round(5e-6 * 0.6 * 100e12))
    assert found("slow-kernel", evidence(grid({"compute": 100}), fast)) is None


@pytest.mark.parametrize(
    ("op", "scope", "name"),
    [
        ("gmm.1", "jit(f)/jit(gmm)/pallas_call", "gmm"),
        ("tpu_custom_call.12", "x", "tpu_custom_call"),
        ("transpose_jvp_jit_tgmm___.2", "jit(f)/transpose(jvp(jit(tgmm)))/pallas_call", "tgmm"),
        (
            "splash_mha_dq_no_residuals.1",
            "jit(f)/transpose(jvp(static_sparsity_splash))/jit(_splash_attention)/splash_mha_dq_no_residuals/"
            "splash_mha_dq_no_residuals/pallas_call",
            "splash_mha_dq_no_residuals",
        ),
        (
            "flash_mha_bwd_dq_block_q_128.1",
            "jit(f)/transpose(jvp(jit(flash_attention)))/flash_mha_bwd_dq_block_q=128/pallas_call",
            "flash_mha_bwd_dq_block_q=128",
        ),
        (
            "ragged_paged_attention_kernel.1",
            "jit(f)/jit(ragged_paged_attention)/ragged_paged_attention_kernel/pallas_call",
            "ragged_paged_attention",
        ),
        (
            "RPA-bq_32-p_64-.3",
            "jit(f)/jit(ragged_paged_attention)/RPA-bq_32-p_64-/pallas_call",
            "ragged_paged_attention",
        ),
        ("gmm.7", "jit(f)/jit(gmm)/layer_0/pallas_call", "gmm"),
    ],
)
def test_kernels_of_one_function_have_their_own_names(op: str, scope: str, name: str) -> None:
    """As JAX 0.10.2 compiles `jax.experimental.pallas.ops.tpu` for a v5e, and as vLLM's kernels are in its profiles."""
    assert kernel_name(evidence(None, [Op(op, "custom-call", 10, scope=scope)]).table, 0) == name


def test_clones_of_a_layer_are_one_group() -> None:
    ops = [Op(f"fusion.{n}", "loop fusion", 10, scope=f"layer_{n}/mlp/add") for n in range(60)]
    ops += [Op("fusion.90", "loop fusion", 5, scope="head/add"), Op("copy.1", "copy", 1, scope="x/b")]
    ops += [Op("slice.2", "copy", 1, scope="x/b", duplicate="copy.1"), Op("copy.3", "copy", 1, scope="y/b")]
    table = evidence(None, ops).table
    groups = groups_of(table, np.arange(len(table)), table.self_ps.astype(float))
    assert [(group.label, len(group.rows)) for group in groups] == [
        ("mlp/add (60 ops)", 60), ("fusion.90", 1), ("x/b (2 ops)", 2), ("copy.3", 1)
    ]  # fmt: skip


# --- products ------------------------------------------------------------------------------------------------------


def multiplied(kind: int, precision: int, speed: float) -> Evidence:
    op = Op("dot.1", "convolution fusion", 800, flops=round(40e-6 * speed * 100e12))
    return with_(
        evidence(grid({"compute": 40, "vector": 60}), [op]), modules=[modules(product(512, 256, 256, kind, precision))]
    )


def test_products_at_the_highest_precision_are_found() -> None:
    finding = the("precision", multiplied(11, 2, 0.15))
    assert finding.title == "dot.1 runs in f32 at the highest precision, not in bfloat16"
    assert finding.worth_ps == pytest.approx(40 * (1 - 0.15 / 0.75) * US)
    assert finding.evidence[-1].endswith(
        "multiplies f32 by f32 at the highest precision, six passes, at 15.0% of the peak."
    )


@pytest.mark.parametrize(("kind", "precision", "speed"), [(16, 2, 0.15), (11, 0, 0.7), (11, 2, 0.7)])
def test_products_that_cost_nothing_more_are_none(kind: int, precision: int, speed: float) -> None:
    assert found("precision", multiplied(kind, precision, speed)) is None


# --- the rest ------------------------------------------------------------------------------------------------------


def test_recomputation_says_what_it_costs_and_whether_memory_needs_it() -> None:
    scope = "transpose(jvp(layer))/rematted_computation/dot"
    ops = [Op("fusion.1", "loop fusion", 200, scope=scope), Op("fusion.2.remat", "convolution fusion", 100)]
    proof = evidence(grid({"vector": 60, "compute": 40}), ops)
    finding = the("recomputation", with_(proof, memory=(60 << 30, 64 << 30)))
    assert finding.worth_ps == 15 * US
    assert finding.evidence[-1] == "4.3 GB of 68.7 GB of HBM are free at the peak: the memory is needed."
    roomy = the("recomputation", with_(proof, memory=(32 << 30, 64 << 30)))
    assert roomy.evidence[-1].endswith("there may be room to save more activations.")
    assert "unknown" in the("recomputation", proof).evidence[-1]


def test_waits_for_prefetches_are_found_and_host_transfers_left_to_others() -> None:
    text = "%copy-done.{} = bf16[256,256]{{1,0:T(8,128)(2,1)S(1)}} copy-done(%copy-start)"
    ops = [Op(f"copy-done.{n}", "copy-done", 20, text=text.format(n)) for n in range(10)]
    finding = the("copy-wait", evidence(grid({"copy": 10, "vector": 90}), ops))
    assert (finding.title, finding.worth_ps) == ("The core waits for 10 copies that should run ahead", 10 * US)
    assert found("copy", evidence(grid({"copy": 10, "vector": 90}), ops)) is None


def gathers(used: float, micros: float = 10.0) -> Evidence:
    moved = round(micros * 1e-6 * used * 1000e9)
    count = round(400 / micros)
    ops = [Op("gather_fusion.1", "custom fusion", 400, occurrences=count, hbm=moved, scope="embed/gather")]
    return evidence(grid({"vector": 100}), ops)


def test_gathers_at_a_few_percent_of_the_bandwidth_are_found() -> None:
    finding = the("latency-bound", gathers(0.03))
    assert finding.worth_ps == pytest.approx(20 * (1 - 0.03 / 0.75) * US, rel=1e-3)
    assert finding.evidence[-1] == "It moves 300.0 KB each time: the single accesses limit it, not the bytes."


def test_fast_or_tiny_gathers_are_none() -> None:
    assert found("latency-bound", gathers(0.5)) is None
    assert found("latency-bound", gathers(0.03, micros=2.0)) is None


@pytest.mark.parametrize(("used", "is_full"), [(62, True), (56, False)])
def test_memory_that_is_nearly_full_costs_no_time_and_comes_last(used: int, is_full: bool) -> None:
    proof = with_(evidence(grid({"idle": 20, "vector": 80})), memory=(used << 30, 64 << 30))
    assert [finding.kind for finding in findings(proof)] == ["idle", *["memory-full"] * is_full]


def waiting(shown: Evidence, wait_in: float, wait_out: float = 0.0) -> Evidence:
    """The same where spans show that kernels wait for copies, so much of their time; their bodies run in the rest."""
    table = shown.table
    calls = []
    for row in np.flatnonzero(np.array(table.category) == "custom-call").tolist():
        time = int(table.total_ps[row])
        into, out = round(wait_in * time), round(wait_out * time)
        key = int(table.program_id[row]), table.name[row]
        duration = np.array([time], np.int64)
        calls.append(CallRuns(*key, duration, np.nan, np.nan, time, into, out, time - into - out, (), 0, (), ()))
    return with_(shown, calls=calls)


def test_kernels_that_wait_for_copies_are_a_reason_of_their_own() -> None:
    ops = kernels("attention", 20, count=1, flops=round(20e-6 * 0.01 * 100e12), hbm=round(20e-6 * 0.3 * 1e12))
    shown = waiting(evidence(grid({"compute": 100}), ops), 0.7, 0.1)
    finding = the("kernel-wait", shown)
    assert finding.title == "Kernel attention waits for copies in 80.0% of its time"
    # 30 % of HBM's peak need 40 % of the time at 75 % of it: 60 % can go, less than it waits
    assert finding.worth_ps == pytest.approx(20 * 0.6 * US, rel=1e-3)
    assert finding.evidence[1] == (
        "It waits for blocks to come in 70.0% of that, for results to be written in 10.0%; its body runs in 20.0%."
    )
    assert finding.evidence[2] == "Meanwhile it moves 300.0 GB/s, 30.0% of HBM's peak."
    assert found("slow-kernel", shown) is None


def test_of_a_kernel_whose_bytes_nobody_counted_it_is_unknown_what_can_be_saved() -> None:
    shown = waiting(evidence(grid({"unknown": 100}), kernels("gmm", 20, count=1)), 0.5)
    finding = the("kernel-wait", shown)
    assert finding.title == "Kernel gmm waits for copies in 50.0% of its time"
    assert (finding.worth_ps, finding.claims) == (None, ())
    assert "does not count their bytes" in finding.basis
    # half of 20 us
    assert finding.evidence[0].startswith("These custom calls wait for copies for 10.0 µs a step (10.0%)")
    assert not any("HBM's peak" in sentence for sentence in finding.evidence)


def test_a_kernel_is_shown_among_the_kernels_and_another_custom_call_among_the_ops() -> None:
    own, of_compiler = (
        kernels("gmm", 20, count=1, text=f'f32[8]{{0}} custom-call(), custom_call_target="{target}"')
        for target in ("tpu_custom_call", "ConcatBitcast")
    )
    for ops, view in ((own, "kernels"), (of_compiler, "")):
        place = the("uncounted", evidence(grid({"unknown": 100}), ops)).place
        assert (place.tab, place.view) == ("op-profile", view)


def test_a_kernel_that_hardly_waits_has_no_such_finding() -> None:
    assert found("kernel-wait", waiting(evidence(grid({"unknown": 100}), kernels("gmm", 20)), 0.15)) is None


def test_a_kernel_whose_bytes_nobody_counted_has_no_share_of_the_bandwidth() -> None:
    ops = kernels("attention", 20, flops=round(5e-6 * 0.05 * 100e12))
    finding = the("slow-kernel", evidence(grid({"compute": 100}), ops))
    assert finding.evidence[0].endswith("at 5.0% of the peak FLOP/s.")
