"""Problems of the matrix unit: precision, padding, kernels, work done twice or on the wrong unit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.insight.cases.case import Case, fine, part_problem, problem
from tests.insight.cases.scenes import (
    COPIES_V5E,
    DECODE_V5E,
    DECODE_V6E,
    EXPOSED_V5P,
    SCANNED_V6E,
    SHORT_V5E,
    SHORT_V5P,
    TRAIN_V4,
    TRAIN_V5E,
    TRAIN_V5P,
    TRAIN_V6E,
)
from tests.insight.simulator.code import V5P, V6E
from tests.insight.simulator.parts import Kernel, Products, VectorProduct
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.tensors import Piped
from tests.insight.simulator.workloads import Decode, Train

PRECISION = (
    problem(
        "mlp-in-f32-highest-v5p",
        "precision",
        Scene((Train(layers=3),), V5P, seed=51),
        ["mlp"],
        work={"mlp_kind": "f32", "mlp_precision": "highest"},
    ),
    part_problem(
        "scores-in-f32-highest-v5e",
        "precision",
        TRAIN_V5E,
        Products(
            2048,
            1024,
            2048,
            kind="f32",
            precision="highest",
            count=2,
            scope="loss/scores/dot_general",
            source="loss.py:33",
            base="fusion",
        ),
        ["scores", "heads.py"],
        field="each",
    ),
    part_problem(
        "distances-in-f32-high-v6e",
        "precision",
        TRAIN_V6E,
        Products(
            8192,
            2048,
            4096,
            kind="f32",
            precision="high",
            count=6,
            scope="knn/dot_general",
            source="knn.py:70",
            base="fusion",
        ),
        ["knn"],
    ),
    part_problem(
        "preconditioner-in-f32-highest-v4",
        "precision",
        TRAIN_V4,
        Products(
            2048,
            2048,
            2048,
            kind="f32",
            precision="highest",
            count=16,
            scope="shampoo/dot_general",
            source="shampoo.py:210",
            base="convolution_add_fusion",
        ),
        ["shampoo"],
    ),
)

PADDING = (
    part_problem(
        "heads-of-64-v5e",
        "padding",
        SHORT_V5E,
        Products(1024, 64, 1024, batch=32, count=24, on_chip=True, base="fusion", scope="attention/scores/dot_general"),
        ["scores", "heads.py"],
        field="each",
    ),
    part_problem(
        "heads-of-128-v6e",
        "padding",
        TRAIN_V6E,
        Products(
            1024,
            128,
            1024,
            batch=48,
            count=20,
            on_chip=True,
            base="fusion",
            scope="attention/scores/dot_general",
        ),
        ["scores", "heads.py"],
        field="each",
    ),
    part_problem(
        "capacity-of-136-in-60-clones-v5p",
        "padding",
        SHORT_V5P,
        Products(
            16_384,
            1024,
            136,
            count=60,
            on_chip=True,
            base="fusion",
            scope="experts/dot_general",
            source="moe.py:61",
        ),
        ["experts/dot_general", "moe.py"],
        field="once",
    ),
    part_problem(
        "classes-of-144-in-200-clones-v4",
        "padding",
        TRAIN_V4,
        Products(
            16_384,
            136,
            144,
            count=200,
            on_chip=True,
            base="fusion",
            scope="classifier/dot_general",
            source="head.py:9",
        ),
        ["classifier", "head.py"],
    ),
)

SLOW_KERNEL = (
    part_problem("kernel-at-5-percent-v6e", "slow-kernel", TRAIN_V6E, Kernel(0.05), ["custom_attention"]),
    part_problem(
        "kernel-at-10-percent-in-each-layer-v5e",
        "slow-kernel",
        TRAIN_V5E,
        Kernel(0.1, flops=0.08e12, base="fused_rope", scope="rope/pallas_call", source="rope.py:64"),
        ["rope"],
        field="each",
    ),
    part_problem(
        "kernel-at-4-percent-of-hbm-v5p",
        "slow-kernel",
        TRAIN_V5P,
        Kernel(
            0.04, flops=1e9, size=1 << 30, times=2, base="paged_copy", scope="pages/pallas_call", source="pages.py:31"
        ),
        ["pages", "paged_copy"],
    ),
    part_problem(
        "kernel-at-8-percent-12-times-v4",
        "slow-kernel",
        TRAIN_V4,
        Kernel(0.08, flops=0.02e12, times=12, base="block_sparse", scope="sparse/pallas_call", source="sparse.py:88"),
        ["sparse"],
    ),
    part_problem(
        "kernel-at-6-percent-decode-v5e",
        "slow-kernel",
        DECODE_V5E,
        Kernel(0.06, flops=1e9, size=24 << 20, base="dequantize", scope="quant/pallas_call", source="quant.py:17"),
        ["quant"],
        field="each",
    ),
)

RECOMPUTATION = (
    problem("remat-of-mlp-v5e", "recomputation", TRAIN_V5E, ["remat"], work={"remat": "mlp"}),
    problem("remat-of-layers-v5p", "recomputation", TRAIN_V5P, ["remat"], work={"remat": "full"}),
    problem("remat-of-scanned-layers-v6e", "recomputation", SCANNED_V6E, ["remat"], work={"remat": "full"}),
    problem("remat-by-the-compiler-v4", "recomputation", TRAIN_V4, ["remat"], work={"remat": "compiler"}),
)

VECTOR_WORK = (
    part_problem(
        "product-by-multiply-and-sum-v5e",
        "vector-work",
        TRAIN_V5E,
        VectorProduct(m=8192, k=1024, n=1024),
        ["similarity"],
    ),
    part_problem(
        "product-by-multiply-and-sum-in-layers-v5p",
        "vector-work",
        replace(TRAIN_V5P, marks=False),
        VectorProduct(m=16_384, k=1024, n=2048),
        ["similarity"],
        field="each",
    ),
)

BESIDE_OTHERS = (
    part_problem(
        "kernel-at-5-percent-beside-copies-v5e", "slow-kernel", COPIES_V5E, Kernel(0.05), ["custom_attention"]
    ),
    problem(
        "remat-beside-exposed-collectives-v5p",
        "recomputation",
        EXPOSED_V5P,
        ["remat"],
        work={"remat": "full"},
    ),
    part_problem(
        "f32-highest-beside-exposed-collectives-v5p",
        "precision",
        EXPOSED_V5P,
        Products(
            4096,
            4096,
            4096,
            kind="f32",
            precision="highest",
            count=8,
            scope="muon/dot_general",
            source="muon.py:48",
            base="convolution_add_fusion",
        ),
        ["muon"],
    ),
    part_problem(
        "heads-of-64-beside-copies-v5e",
        "padding",
        COPIES_V5E,
        Products(1024, 64, 1024, batch=32, count=60, on_chip=True, base="fusion", scope="attention/scores/dot_general"),
        ["scores", "heads.py"],
        field="each",
    ),
)

COUNTED = Kernel(bad=False, flops=6e12, base="quantized_matmul_kernel", scope="quant/pallas_call")

UNCOUNTED = (
    problem(
        "products-declare-no-cost-v6e",
        "uncounted",
        Scene((Train(tokens=16_384, layers=3, each=(COUNTED,)),), V6E, seed=53, marks=False),
        ["quantized_matmul_kernel"],
        work={"each": (replace(COUNTED, counted=False),)},
    ),
    problem(
        "paged-attention-declares-no-cost-v6e",
        "uncounted",
        replace(DECODE_V6E, work=(Decode(model_parallel=False, cache_mib=96, batch=128, attention="counted"),)),
        ["RPA"],
        work={"attention": "uncounted"},
    ),
)

CASES = (*BESIDE_OTHERS, *PRECISION, *PADDING, *SLOW_KERNEL, *RECOMPUTATION, *VECTOR_WORK, *UNCOUNTED)


MATMUL = Piped(256, 420, flops=0.3e12, times=4)
WRITES = Piped(
    1536,
    160,
    waits_out=True,
    flops=2e9,
    base="scatter_experts",
    scope="experts/combine/pallas_call",
    source="combine.py:52",
)
PROJECTS = Piped(16, 30, counted=False, base="w8a8_matmul", scope="qkv/pallas_call", source="quantized.py:88")
GATES = replace(PROJECTS, base="gated_silu", scope="gate/pallas_call", source="gated.py:23")
PAGES = Piped(24, 45, bad=False, base="paged_gather", scope="pages/pallas_call", source="paged.py:140")
SEVERAL = (replace(PROJECTS, bad=False), replace(GATES, bad=False))
DECODE_KERNELS = replace(DECODE_V5E, work=(Decode(model_parallel=False, each=SEVERAL),))

KERNEL_WAIT = (
    part_problem("matmul-kernel-with-one-buffer-v6e", "kernel-wait", TRAIN_V6E, MATMUL, ["matmul_kernel.py"]),
    part_problem(
        "one-kernel-of-three-waits-for-pages-v5e", "kernel-wait", DECODE_KERNELS, PAGES, ["paged_gather"], field="each"
    ),
    part_problem(
        "results-awaited-in-each-layer-v5p", "kernel-wait", TRAIN_V5P, WRITES, ["scatter_experts"], field="each"
    ),
)


def _healthy(name: str, scene: Scene, field: str, *parts: Piped) -> Case:
    """A scene with traced kernels that do well; split among themselves, so that no earlier case changes its half."""
    first: Any = scene.work[0]
    work = replace(first, **{field: (*getattr(first, field), *parts)})
    return replace(fine(name, replace(scene, work=(work, *scene.work[1:]))), later=" kernels")


HEALTHY_KERNELS = (
    _healthy("healthy-matmul-kernel-with-two-buffers-v6e", TRAIN_V6E, "once", replace(MATMUL, bad=False)),
    _healthy("healthy-three-traced-kernels-v5e", DECODE_KERNELS, "each", replace(PAGES, bad=False)),
    _healthy(
        "healthy-uncounted-pages-at-hbm-peak-wait-v5e",
        DECODE_KERNELS,
        "each",
        replace(PAGES, bad=False, body_us=8, counted=False),
    ),
    _healthy("healthy-kernel-at-hbm-peak-waits-v5p", TRAIN_V5P, "each", replace(WRITES, bad=False)),
)

TRACED = (*KERNEL_WAIT, *HEALTHY_KERNELS)
"""Kernels of which the profile shows what goes on inside."""
