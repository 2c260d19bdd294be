"""Pictures, a notebook's network of convolutions, and rankings with tables on SparseCores."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.codebases.parts import Permuted
from tests.insight.cases.shapes.labs.lab import Lab
from tests.insight.cases.shapes.labs.models import pictures, ranks, residual
from tests.insight.cases.shapes.shape import Plant, slow_kernel
from tests.insight.simulator.code import V5E, V6E
from tests.insight.simulator.parts import Callback, OnSparseCore, Products, Rearranged
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.tensors import Sort

PICTURES = Lab(
    "stable-diffusion",
    {
        "xl-v5e": Scene(
            (pictures(16_384, 2, 6),), V5E, cores=1, seed=821, steps=8, marks=False, chips=Chips(jitter=0.01),
            loop=Loop(fetch="$generate_sdxl.py:144 tokenize", call="", annotate=False),
        ),
    },
    {
        "skips-concatenated": (
            "xl-v5e",
            Plant(
                "shuffle", ("up_blocks", "unet_2d_blocks.py"), ("copy", "memory-bound"),
                Rearranged(
                    rows=32_768, width=1280, count=4, fuses=True, scope="unet/up_blocks_0/concatenate",
                    source="unet_2d_blocks.py:288",
                ),
                into="each",
            ),
        ),
        "progress-printed": (
            "xl-v5e",
            Plant(
                "debug-print", ("debug_callback", "recv", "scheduling_euler.py"), ("host", "host-offload"),
                Callback(us=2900, scope="denoise/debug_callback", source="scheduling_euler.py:190"), into="turn",
            ),
        ),
        "upsampling-kernel-at-6-percent": (
            "xl-v5e",
            slow_kernel("nearest_upsample", 0.06, "upsample.py:31", 80, into="turn", scope="unet/up_blocks_1/upsample"),
        ),
    },
    (("progress-printed", "skips-concatenated"),),
)  # fmt: skip

NOTEBOOK = Lab(
    "notebook",
    {
        "resnet-v5e": Scene(
            (residual(1024, 2),), V5E, cores=1, seed=822, steps=24, chips=Chips(jitter=0.012), marks=False,
            loop=Loop(fetch="$dataloader.py:701 __next__", call="", batch_ps=3 * MS, put_ps=0.5 * MS, annotate=False),
        ),
    },
    {
        "accuracy-read-in-each-step": (
            "resnet-v5e",
            Plant(
                "host", ("update_progress_bar", "asarray"), ("idle",), loop={"ahead": 0},
                chores=chore("$std.py:1215 update_progress_bar", 0.9),
            ),
        ),
        "last-batch-of-another-shape-compiles": (
            "resnet-v5e",
            Plant(
                "compilation", ("ompil",), every=8,
                chores=chore("backend_compile_and_load", 55, every=8, offset=5, before=True,
                inside="$pjit.py:1560 _pjit_call_impl"),
            ),
        ),
        "images-augmented-in-python-from-step-12": (
            "resnet-v5e",
            Plant("input", ("input",), ("host",), since=12, loop={"slow_every": 1, "slow_ps": 14 * MS,
            "slow_since": 8}),
        ),
        "images-turned-to-channels-last": (
            "resnet-v5e",
            Plant(
                "copy", ("moveaxis", "<ipython-input-9>:55"), ("shuffle",),
                Permuted(rows=65_536, width=768, count=3, scope="moveaxis/transpose", source="<ipython-input-9>:55"),
                into="first",
            ),
        ),
    },
    (("accuracy-read-in-each-step", "images-turned-to-channels-last"),),
)  # fmt: skip

RANKINGS = Lab(
    "sparse-tables",
    {
        "dcn-v2-2-hosts-v6e": Scene(
            (ranks(32_768, 3584),), V6E, hosts=2, cores=2, seed=823, steps=16,
            loop=Loop(fetch="$criteo.py:210 preprocess_sparse_dense_matmul_input", call="", batch_ps=1.1 * MS),
        ),
    },
    {
        "lookups-outlast-the-dense-layers": (
            "dcn-v2-2-hosts-v6e",
            Plant(
                "sparse-core", ("all-to-all", "tpu_sparse_dense_matmul", "embedding.py"),
                part=OnSparseCore(
                    us=2600, opcode="all-to-all", rows=4096, scope="tpu_sparse_dense_matmul/backward",
                    source="embedding.py:730",
                ),
            ),
        ),
        "click-logs-parsed-too-slowly": ("dcn-v2-2-hosts-v6e", Plant("input", ("input",), loop={"batch_ps": 26 * MS})),
        "crosses-of-48-columns": (
            "dcn-v2-2-hosts-v6e",
            Plant(
                "padding", ("LowRankCross", "dlrm_model.py:96"),
                part=Products(
                    32_768, 1024, 48, count=20, on_chip=True, scope="DLRMDCNV2/LowRankCross/dot_general",
                    source="dlrm_model.py:96",
                ),
                into="each",
            ),
        ),
        "keys-deduplicated-by-sorting": (
            "dcn-v2-2-hosts-v6e",
            Plant(
                "latency-bound", ("unique", "sparse_ops.py"),
                part=Sort(length=1 << 19, times=2, scope="unique/sort", source="sparse_ops.py:39"),
                into="first",
            ),
        ),
    },
    (("lookups-outlast-the-dense-layers", "crosses-of-48-columns"),),
)  # fmt: skip

LABS = (PICTURES, NOTEBOOK, RANKINGS)
