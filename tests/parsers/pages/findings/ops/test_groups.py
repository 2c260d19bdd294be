"""Findings about groups of ops: kernels, precision, recomputation, copies, gathers. What is found, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parsers.pages.findings.build import (
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
from tpuprof.parsers.ops.table import kernel_name
from tpuprof.parsers.pages.findings.finding import Evidence
from tpuprof.parsers.pages.findings.ops.groups import groups_of

PALLAS = "jit(_attn)/shard_map/jit({0})/{0}-bq_32/pallas_call"


def kernels(name: str, percent: float, count: int = 4, flops: int = 0, hbm: int = 0, text: str = "") -> list[Op]:
    """Calls of a Pallas kernel in so many layers, so much of a step of 100 microseconds together."""
    scope = PALLAS.format(name)
    time = 20 * percent / count
    calls = (f"{name}.{n}" for n in range(count))
    return [Op(call, "custom-call", time, flops=flops, hbm=hbm, scope=scope, text=text) for call in calls]


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


def gathers(used: float, micros: float = 10.0) -> Evidence:
    moved = round(micros * 1e-6 * used * 1000e9)
    count = round(400 / micros)
    ops = [Op("gather_fusion.1", "custom fusion", 400, occurrences=count, hbm=moved, scope="embed/gather")]
    return evidence(grid({"vector": 100}), ops)


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


def test_a_kernel_that_hardly_waits_has_no_such_finding() -> None:
    assert found("kernel-wait", waiting(evidence(grid({"unknown": 100}), kernels("gmm", 20)), 0.15)) is None
