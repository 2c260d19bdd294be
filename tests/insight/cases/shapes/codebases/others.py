"""Images, recommendations, graphs and speech."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.shapes.codebases.codebase import Codebase
from tests.insight.cases.shapes.codebases.models import LAZY, TF, convolved, embeds, hears, passes
from tests.insight.cases.shapes.codebases.parts import Permuted
from tests.insight.cases.shapes.dialects.models import Sizes, attention
from tests.insight.cases.shapes.shape import Plant
from tests.insight.simulator.code import V4, V5E, V5P, V6E
from tests.insight.simulator.parts import Products, TinyLoop, VectorProduct
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Again, Passes, Taken
from tests.insight.simulator.stack import Beside
from tests.insight.simulator.tensors import Sort

EPOCHS = Loop(fetch="$epoch_iterator.py:180 __next__", call="")
IMAGES = Codebase(
    "convolutions",
    {
        "efficientnet-v5e": Scene(
            (convolved(200_704, 2),), V5E, seed=721, steps=9, loop=EPOCHS,
        ),
    },
    {
        "expansions-of-24-channels": (
            "efficientnet-v5e",
            Plant(
                "padding", ("block1a_expand_conv", "base_conv.py:240"),
                part=Products(
                    200_704, 144, 24, count=40, on_chip=True, base="convolution_fusion",
                    scope="efficientnetv2/block1a_expand_conv/conv_general_dilated", source="base_conv.py:240",
                ),
                into="first",
            ),
        ),
        "batch-norms-in-passes": (
            "efficientnet-v5e",
            Plant(
                "unfused", ("stem_bn", "batch_normalization.py"), ("memory-bound",),
                Passes(
                    rows=401_408, width=96, kind="bf16", scope="efficientnetv2/stem_bn/sub",
                    source="batch_normalization.py:301",
                    bases=("subtract_fusion", "multiply_fusion", "rsqrt_multiply_fusion", "add_maximum_fusion"),
                ),
                into="each",
            ),
        ),
        "batches-put-slowly": (
            "efficientnet-v5e", Plant("input", ("input", "device_put"), ("host",), loop={"put_ps": 30 * MS}),
        ),
    },
    (("expansions-of-24-channels", "batch-norms-in-passes"),),
    suspects=(
        (
            "shards-opened-every-4th-step-ahead-of-time",
            Scene(
                (convolved(200_704, 2),), V5E, seed=725, steps=12,
                loop=replace(EPOCHS, slow_every=4, slow_ps=28 * MS),
            ),
        ),
    ),
)  # fmt: skip

RANKER = Codebase(
    "embeddings",
    {
        "torchrec-2-hosts-v5p": Scene(
            (embeds(16_384),), V5P, hosts=2, cores=2, seed=722, steps=16, loop=LAZY, marks=False,
        ),
    },
    {
        "rows-of-tables-added-one-by-one": (
            "torchrec-2-hosts-v5p",
            Plant(
                "latency-bound", ("aten__index_add", "embedding_modules.py:140"),
                part=Taken(
                    rows=30_000, table=1_000_000, width=64, adds=True, ns_a_row=65, base="scatter_fusion",
                    scope="aten__index_add", source="embedding_modules.py:140",
                ),
            ),
        ),
        "vectors-exchanged-ahead-of-dense-layers": (
            "torchrec-2-hosts-v5p",
            Plant(
                "collective", ("all-to-all", "all_to_all"),
                part=Beside("all-to-all", 65_536, bad=True, scope="xla__all_to_all", source="dist_data.py:388"),
                instead=(), into="first",
            ),
        ),
        "interactions-by-multiply-and-sum": (
            "torchrec-2-hosts-v5p",
            Plant(
                "vector-work", ("aten__sum", "dlrm.py:180"),
                part=VectorProduct(m=16_384, k=256, n=561, scope="aten__sum", source="dlrm.py:180"),
            ),
        ),
        "logs-read-slowly-for-a-while": (
            "torchrec-2-hosts-v5p",
            Plant(
                "input", ("input",), since=7,
                loop={"slow_every": 1, "slow_ps": 25 * MS, "slow_since": 5, "slow_until": 11},
            ),
        ),
    },
    (
        ("interactions-by-multiply-and-sum", "vectors-exchanged-ahead-of-dense-layers"),
        ("rows-of-tables-added-one-by-one", "vectors-exchanged-ahead-of-dense-layers"),
    ),
)  # fmt: skip

GRAPHS = Codebase(
    "messages",
    {
        "pyg-v6e": Scene((passes(32_768, 131_072, 512, 3),), V6E, cores=1, seed=723, steps=14, loop=LAZY),
    },
    {
        "neighbours-taken-row-by-row": (
            "pyg-v6e",
            Plant(
                "latency-bound", ("aten__gather", "utils.py:66"),
                part=Taken(
                    rows=50_000, table=32_768, width=512, ns_a_row=50, scope="aten__gather", source="utils.py:66"
                ),
                into="each",
            ),
        ),
        "edges-sorted-in-each-layer": (
            "pyg-v6e",
            Plant(
                "latency-bound", ("aten__sort", "sort_edge_index.py"),
                part=Sort(length=131_072, scope="aten__sort", source="sort_edge_index.py:84"), into="each",
            ),
        ),
        "features-turned": (
            "pyg-v6e",
            Plant(
                "copy", ("aten__permute", "transforms.py"), ("shuffle",),
                Permuted(rows=131_072, width=2048, count=2, source="transforms.py:51"),
            ),
        ),
    },
    (("neighbours-taken-row-by-row", "features-turned"),),
)  # fmt: skip

OF_SPEECH = Sizes(8192, 1024, 4096, 16)
SPEECH = Codebase(
    "conformer",
    {
        "flax-v4": Scene(
            (hears(OF_SPEECH, 3, numbered="conformer_block_{}"),), V4, cores=4, seed=724, steps=9,
            loop=Loop(fetch="$dataset.py:3601 get_next", call=""),
        ),
    },
    {
        "ctc-loss-by-scan": (
            "flax-v4",
            Plant(
                "tiny-loop", ("ctc_loss", "_classification.py"),
                part=TinyLoop(trips=1500, us=1.4, scope="ctc_loss/while", source="_classification.py:470"),
            ),
        ),
        "attention-computed-again": (
            "flax-v4",
            Plant(
                "recomputation", ("remat",),
                part=Again((attention(TF, replace(OF_SPEECH, heads=96)),), scope="checkpoint/rematted_computation",
                           source="conformers.py:120"),
                into="back",
            ),
        ),
        "positions-of-64-features": (
            "flax-v4",
            Plant(
                "padding", ("relative_position_bias", "conformers.py:330"),
                part=Products(
                    1024, 64, 1024, batch=32, count=18, on_chip=True, scope="relative_position_bias/dot_general",
                    source="conformers.py:330",
                ),
                into="each",
            ),
        ),
    },
    (("ctc-loss-by-scan", "positions-of-64-features"),),
)  # fmt: skip

CODEBASES = (IMAGES, RANKER, GRAPHS, SPEECH)
