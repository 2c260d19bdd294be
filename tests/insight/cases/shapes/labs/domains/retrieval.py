"""What is asked for: a server that reuses prefixes, encoders that are compared token by token, speech in beams."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import Sizes
from tests.insight.cases.shapes.labs.domains.domain import Domain
from tests.insight.cases.shapes.labs.domains.models import encodes, extends, listens
from tests.insight.cases.shapes.labs.domains.parts import OnAxis
from tests.insight.cases.shapes.shape import Plant
from tests.insight.simulator.code import V5P, V6E, V7X
from tests.insight.simulator.parts import Activations, Callback, VectorProduct
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Taken
from tests.insight.simulator.stack import Gemms

PREFIXES = Domain(
    "prefixes",
    {
        "sglang-4-cores-v6e": Scene(
            (extends(256, 5120, 14_336, 12, 144, 4),), V6E, seed=921, steps=30, marks=False,
            chips=Chips(jitter=0.012),
            loop=Loop(
                fetch="", call="", annotate=False, launch_ps=0.07 * MS,
                reading="$schedule_batch.py:1410 resolve_batch_result",
            ),
        ),
    },
    {
        "prefixes-matched-between-steps": (
            "sglang-4-cores-v6e",
            Plant(
                "serving", ("match_prefix", "get_next_batch_to_run"), ("host", "idle"), loop={"ahead": 0},
                chores=chore("$radix_cache.py:207 match_prefix", 0.7, before=True,
                inside="$scheduler.py:640 get_next_batch_to_run"),
            ),
        ),
        "pages-of-prefixes-taken-row-by-row": (
            "sglang-4-cores-v6e",
            Plant(
                "latency-bound", ("token_to_kv_pool", "memory_pool.py"),
                part=Taken(
                    rows=700, table=131_072, width=512, ns_a_row=44, scope="layers/token_to_kv_pool/take",
                    source="memory_pool.py:388", base="gather_convert_fusion",
                ),
                into="each",
            ),
        ),
        "chunks-of-new-sizes-compiled-every-5th-step": (
            "sglang-4-cores-v6e",
            Plant(
                "compilation", ("ompil",), every=5,
                chores=chore(
                    "$compiler.py:474 compile_or_get_cached", 11, every=5, offset=3, before=True,
                    inside="$model_runner.py:330 jitted_run_model",
                ),
            ),
        ),
    },
    (("prefixes-matched-between-steps", "pages-of-prefixes-taken-row-by-row"),),
)  # fmt: skip

OF_PASSAGES = Sizes(8192, 1024, 4096, 8, 1024)
PASSAGES = Gemms(
    ((0, 0, 4096), (0, 4096, 0)) * 5, "passage_encoder/dense/dot_general", "train_colbert.py:120", "fusion"
)
LATE = Domain(
    "late-interaction",
    {
        "colbert-4-by-2-cores-of-2-hosts-v5p": Scene(
            (encodes(OF_PASSAGES, 5, 2, once=(PASSAGES,)),), V5P, hosts=2, cores=4, seed=922, steps=14,
            chips=Chips(jitter=0.009),
            loop=Loop(
                fetch="$triples.py:58 __next__", call="", batch_ps=1.2 * MS, put_ps=0.2 * MS, launch_ps=0.12 * MS,
            ),
        ),
    },
    {
        "negatives-gathered-ahead-of-passages": (
            "colbert-4-by-2-cores-of-2-hosts-v5p",
            Plant(
                "collective", ("all-gather", "in_batch_negatives", "train_colbert.py:141"),
                part=OnAxis(
                    "all-gather", 28_672, 2, False, (PASSAGES,), True, scope="in_batch_negatives/all_gather",
                    source="train_colbert.py:141",
                ),
            ),
        ),
        "best-matches-by-multiply-and-sum": (
            "colbert-4-by-2-cores-of-2-hosts-v5p",
            Plant(
                "vector-work", ("max_sim", "scoring.py"),
                part=VectorProduct(m=8192, k=128, n=4096, scope="max_sim/reduce_sum", source="scoring.py:19"),
            ),
        ),
        "vectors-normalized-in-f32": (
            "colbert-4-by-2-cores-of-2-hosts-v5p",
            Plant(
                "memory-bound", ("l2_normalize", "scoring.py:44"), ("precision", "unfused"),
                Activations(
                    rows=524_288, width=128, count=16, base="multiply_rsqrt_fusion", scope="l2_normalize/mul",
                    source="scoring.py:44",
                ),
            ),
        ),
    },
    (("vectors-normalized-in-f32", "negatives-gathered-ahead-of-passages"),),
)  # fmt: skip

SPEECH = Domain(
    "beam-search",
    {
        "squeezeformer-2-cores-v7x": Scene(
            (listens(16_384, 2048, 10),), V7X, cores=2, seed=923, steps=15, chips=Chips(jitter=0.01),
            loop=Loop(fetch="$service_dataset.py:310 next", call="", batch_ps=9 * MS, put_ps=0.3 * MS),
        ),
    },
    {
        "beams-rescored-by-a-callback": (
            "squeezeformer-2-cores-v7x",
            Plant(
                "host-offload", ("pure_callback", "recv", "kenlm_rescore.py"), ("host",),
                Callback(us=4200, scope="beam_search/pure_callback", source="kenlm_rescore.py:33"),
            ),
        ),
        "audio-decoded-too-slowly-by-the-data-service": (
            "squeezeformer-2-cores-v7x", Plant("input", ("input",), loop={"batch_ps": 29 * MS}),
        ),
    },
    (),
)  # fmt: skip

DOMAINS = (PREFIXES, LATE, SPEECH)
