"""Work on the chips that is slow for one of several reasons that look alike: experts, gathers, SparseCores, padding."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import Sizes, towers, trained
from tests.insight.cases.shapes.jobs.models import ranker, routed
from tests.insight.cases.shapes.labs.domains.trials.trial import Trial
from tests.insight.cases.shapes.labs.models import PARALLEL
from tests.insight.cases.shapes.shape import Plant, harmless
from tests.insight.simulator.code import V5E, V5P, V6E
from tests.insight.simulator.parts import Experts, Lookup, OnSparseCore, Prefetch, Products, Relayouts
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Again, Taken
from tests.insight.simulator.stack import Beside, Gemms

ROUTED = routed(4096, 2048, 16_384, 2, name="jit_moe_train_step")
EXPERTS = Trial(
    "expert-parallel",
    {
        "deepseek-8-cores-v5p": Scene(
            (ROUTED,), V5P, cores=8, seed=1021, steps=10, chips=Chips(jitter=0.009),
            loop=Loop(fetch="$loader.py:70 __next__", call=""),
        ),
    },
    {
        "tokens-exchanged-with-nothing-beside": (
            "deepseek-8-cores-v5p",
            Plant(
                "collective", ("all-to-all", "shuffle_tokens", "router.py"),
                part=Beside(
                    "all-to-all", 61_440, (Gemms(((0, 0, 8192),) * 8, "dense_expert/dot_general", "router.py:140"),),
                    True, "shuffle_tokens/all_to_all", "router.py:131",
                ),
                into="each",
            ),
        ),
        "one-expert-has-most-tokens": (
            "deepseek-8-cores-v5p",
            Plant(
                "imbalance",
                ("gmm", "second_moe", "host-0:5", "core 5", "all-to-all"),
                ("straggler",),
                Experts((0.85, 0.85, 0.85, 0.85, 0.85, 2.05, 0.85, 0.85), scope="second_moe", tokens=4096,
                        hidden=12_288, source="second_moe.py:15"),
                into="once",
            ),
        ),
        "gates-of-3-passes": (
            "deepseek-8-cores-v5p",
            Plant(
                "precision", ("gate/dot_general", "router.py:44"),
                part=Products(
                    4096, 2048, 2048, kind="f32", precision="high", count=4, base="fusion",
                    scope="gate/dot_general", source="router.py:44",
                ),
                into="each",
            ),
        ),
    },
    (("tokens-exchanged-with-nothing-beside", "one-expert-has-most-tokens"),),
)  # fmt: skip

LOOKED_UP = towers(16_384, name="jit_retrieval_step")
TABLES = Trial(
    "gathers",
    {
        "two-towers-v5e": Scene(
            (LOOKED_UP,), V5E, seed=1022, steps=18, chips=Chips(jitter=0.012),
            loop=Loop(fetch="$tfrecord.py:51 __next__", call="", batch_ps=2 * MS, put_ps=0.1 * MS),
        ),
    },
    {
        "histories-taken-row-by-row": (
            "two-towers-v5e",
            Plant(
                "latency-bound", ("HistoryTower", "history.py"),
                part=Taken(rows=49_152, table=1_000_000, ns_a_row=48, scope="HistoryTower/Embed_1/take",
                           source="history.py:28"),
                into="first",
            ),
        ),
        "features-turned": (
            "two-towers-v5e",
            Plant(
                "copy", ("stack_features", "features.py"), ("shuffle",),
                Relayouts(count=6, rows=12_288, width=2048, scope="stack_features/transpose", source="features.py:19"),
            ),
        ),
        "vectors-of-40-features": (
            "two-towers-v5e",
            Plant(
                "padding", ("pairwise", "interactions.py"),
                part=Products(
                    40, 40, 40, batch=8192, count=12, on_chip=True, scope="pairwise/dot_general",
                    source="interactions.py:77",
                ),
            ),
        ),
    },
    (("histories-taken-row-by-row", "features-turned"),),
    {
        "tables-read-at-the-roof": (
            "two-towers-v5e",
            harmless(
                part=Taken(bad=False, rows=1_048_576, table=2_000_000, scope="CandidateTower/Embed_0/take",
                           source="candidates.py:20"),
                into="first",
            ),
        ),
    },
)  # fmt: skip

SPARSE = Trial(
    "sparse-cores",
    {
        "dlrm-v5p": Scene(
            (ranker(16_384, 4096, name="jit_train_ranker"),), V5P, cores=4, seed=1023, steps=15,
            chips=Chips(jitter=0.01), loop=Loop(fetch="$criteo.py:90 __next__", call="", put_ps=0.3 * MS),
        ),
    },
    {
        "second-lookup-waits-for-sparse-cores": (
            "dlrm-v5p",
            Plant(
                "sparse-core", ("all-to-all", "user_history", "lookup.py"), ("collective",),
                OnSparseCore(us=1900, opcode="all-to-all", rows=2048, scope="user_history/lookup",
                             source="lookup.py:64"),
                into="first",
            ),
        ),
        "clicks-parsed-in-python": (
            "dlrm-v5p", Plant("input", ("input", "make_batch", "criteo"), loop={"batch_ps": 14 * MS}),
        ),
        "metrics-read-in-each-step": (
            "dlrm-v5p",
            Plant("host", ("auc_update", "asarray"), ("idle",), loop={"ahead": 0},
                  chores=chore("$metrics.py:31 auc_update", 2.4)),
        ),
    },
    (("metrics-read-in-each-step", "second-lookup-waits-for-sparse-cores"),),
)  # fmt: skip

OF_REMAT = Sizes(8192, 3072, 12_288, 24)
REMATTED = trained(PARALLEL, OF_REMAT, 2, 16_384, scanned=True, name="jit_scanned_step", model="Decoder")
SCANNED = Trial(
    "remat-in-scan",
    {
        "gptj-v6e": Scene(
            (REMATTED,), V6E, cores=4, seed=1024, steps=12, marks=False, chips=Chips(jitter=0.008),
            loop=Loop(fetch="$mds.py:12 __next__", call="", put_ps=0.1 * MS),
        ),
    },
    {
        "mlp-computed-again": (
            "gptj-v6e",
            Plant(
                "recomputation", ("remat",),
                part=Again(REMATTED.each[4:], scope="checkpoint/rematted_computation", source="gptj.py:201"),
                into="back",
            ),
        ),
        "weights-of-the-next-layer-arrive-late": (
            "gptj-v6e",
            Plant(
                "copy-wait", ("copy-done", "copy-start"),
                part=Prefetch(rows=12_288, width=3072, count=4, slowness=4, scope="next_layer/prefetch",
                              source="gptj.py:88"),
                into="each",
            ),
        ),
        "positions-gathered-one-by-one": (
            "gptj-v6e",
            Plant(
                "latency-bound", ("rotary_table", "rotary.py"),
                part=Lookup(rows=24_000, times=1, ns_a_row=70, scope="rotary_table/gather", source="rotary.py:12"),
                into="each",
            ),
        ),
    },
    (("mlp-computed-again", "weights-of-the-next-layer-arrive-late"),),
)  # fmt: skip

TRIALS = (EXPERTS, TABLES, SPARSE, SCANNED)
