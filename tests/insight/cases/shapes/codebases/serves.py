"""Servers, samplers and agents: tokens, drafts and answers, with the host in between."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.codebases.codebase import Codebase
from tests.insight.cases.shapes.codebases.models import NNX, decodes, denoises
from tests.insight.cases.shapes.codebases.parts import Losses, Permuted, Selected
from tests.insight.cases.shapes.dialects.models import Sizes, reads
from tests.insight.cases.shapes.jobs.models import reducing
from tests.insight.cases.shapes.shape import Plant
from tests.insight.simulator.code import V5E, V5P, V6E, V7X
from tests.insight.simulator.parts import Activations, Kernel
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Taken
from tests.insight.simulator.stack import Uneven
from tests.insight.simulator.tensors import Kept, Sort

ALONE = Loop(fetch="", call="", annotate=False, launch_ps=0.06 * MS)

PACKED = decodes(96, 5120, 3, 13_824, 384, packed=True)
ENGINE = Codebase(
    "engine",
    {
        "maxengine-v6e": Scene(
            (decodes(96, 5120, 3, 13_824, 384),), V6E, cores=1, seed=711, steps=20, loop=ALONE, marks=False,
        ),
    },
    {
        "weights-unpacked-in-each-step": (
            "maxengine-v6e",
            Plant(
                "memory-bound", ("dequantize", "qarray.py"), ("unfused",),
                work={"each": PACKED.each},
            ),
        ),
        "cache-written-by-select": (
            "maxengine-v6e",
            Plant(
                "memory-bound", ("kv_cache", "kvcache.py"), ("copy", "unfused"),
                Selected(slots=96, length=1024, width=1024), into="each",
            ),
        ),
        "pages-looked-up-row-by-row": (
            "maxengine-v6e",
            Plant(
                "latency-bound", ("page_manager", "page_manager.py"),
                part=Taken(
                    rows=6144, table=65_536, width=1024, ns_a_row=60, scope="layers/page_manager/take",
                    source="page_manager.py:402",
                ),
                into="each",
            ),
        ),
        "answers-detokenized-between-steps": (
            "maxengine-v6e",
            Plant(
                "serving", ("detokenize",), ("host", "idle"), loop={"ahead": 0},
                chores=chore("$orchestrator.py:830 detokenize", 1.3),
            ),
        ),
    },
    (
        ("weights-unpacked-in-each-step", "pages-looked-up-row-by-row"),
        ("answers-detokenized-between-steps", "pages-looked-up-row-by-row"),
    ),
)  # fmt: skip

SPECULATIVE = Codebase(
    "speculative",
    {
        "eagle-v5p": Scene(
            (
                decodes(32, 2048, 2, 8192, 160, name="jit_draft_step", model="EagleDraft", once=()),
                decodes(160, 8192, 3, 22_016, 384, name="jit_verify_step", model="LlamaForCausalLM"),
            ),
            V5P, cores=1, seed=712, steps=14, turns=((0, 0, 0, 0, 1),), loop=ALONE, marks=False,
        ),
    },
    {
        "accepted-tokens-by-sorting": (
            "eagle-v5p",
            Plant(
                "latency-bound", ("rejection_sampler", "sort"),
                part=Sort(
                    rows=64, length=32_768, kind="f32", scope="rejection_sampler/sort",
                    source="rejection_sampler.py:270",
                ),
                program=1,
            ),
        ),
        "draft-cache-not-donated": (
            "eagle-v5p",
            Plant(
                "copy", ("draft_cache", "eagle.py", "copy"),
                part=Kept(rows=65_536, width=1024, count=2, scope="draft_cache/update", source="eagle.py:301"),
            ),
        ),
        "drafts-proposed-in-python": (
            "eagle-v5p",
            Plant(
                "serving", ("propose", "eagle.py"), ("host", "idle"), loop={"ahead": 0},
                chores=chore("$eagle.py:88 propose", 2.1, before=True),
            ),
        ),
    },
    (
        ("accepted-tokens-by-sorting", "draft-cache-not-donated"),
        ("drafts-proposed-in-python", "draft-cache-not-donated"),
    ),
)  # fmt: skip

VIDEO = Codebase(
    "video",
    {
        "wan-v7x": Scene((denoises(8192, 3072, 3),), V7X, cores=2, seed=713, steps=10, loop=ALONE, marks=False),
    },
    {
        "scheduler-steps-on-the-host": (
            "wan-v7x",
            Plant(
                "host", ("scheduling_unipc",), ("idle",), loop={"ahead": 0},
                chores=chore("$scheduling_unipc_multistep_flax.py:640 step", 4.5),
            ),
        ),
        "frames-between-channels-first-and-last": (
            "wan-v7x",
            Plant(
                "copy", ("AutoencoderKLWan", "autoencoder_kl_wan.py"), ("shuffle",),
                Permuted(
                    rows=65_536, width=1536, count=3, scope="AutoencoderKLWan/transpose",
                    source="autoencoder_kl_wan.py:512",
                ),
            ),
        ),
        "norms-of-frames-in-f32": (
            "wan-v7x",
            Plant(
                "memory-bound", ("FP32LayerNorm", "normalization_flax.py"), ("precision", "unfused"),
                Activations(
                    rows=8192, width=3072, count=8, base="multiply_subtract_fusion", scope="FP32LayerNorm/mul",
                    source="normalization_flax.py:77",
                ),
                into="each",
            ),
        ),
    },
    (
        ("scheduler-steps-on-the-host", "frames-between-channels-first-and-last"),
        ("norms-of-frames-in-f32", "frames-between-channels-first-and-last"),
    ),
)  # fmt: skip

SAMPLED = decodes(
    64, 4096, 2, 11_008, 64, name="jit__decode_fn", model="Sampler", micro=12, over="while", once=(),
)  # fmt: skip
OF_POLICY = Sizes(4096, 4096, 11_008, 32)
POLICY = Codebase(
    "policy",
    {
        "tunix-2-hosts-v5e": Scene(
            (
                SAMPLED, reads(OF_POLICY, 2, name="jit_compute_per_token_logps", model="Reference"),
                reducing(NNX, OF_POLICY, 1, 32_768, name="jit__train_step", model="Policy"),
            ),
            V5E, hosts=2, cores=2, seed=714, steps=12, turns=((0, 1, 2),), marks=False,
            loop=Loop(fetch="$rl_cluster.py:320 generate", call="", ahead=0),
        ),
    },
    {
        "log-probabilities-through-f32": (
            "tunix-2-hosts-v5e",
            Plant(
                "unfused", ("selective_log_softmax", "common.py"), ("memory-bound", "precision"),
                Losses(tokens=4096, outputs=128_256, scope="selective_log_softmax", source="common.py:140"),
                program=1,
            ),
        ),
        "longest-answers-on-core-2": (
            "tunix-2-hosts-v5e",
            Plant(
                "imbalance", ("sample_tail", "sampler.py", "host-1", "reduce-scatter"), ("straggler",),
                Uneven(
                    (0.8, 0.7, 1.7, 0.8),
                    Kernel(
                        bad=False, counted=False, good=0.8, flops=1e12, size=8 << 30, base="paged_tail",
                        scope="sample_tail/pallas_call", source="sampler.py:690",
                    ),
                ),
            ),
        ),
        "prompts-compiled-every-4th-step": (
            "tunix-2-hosts-v5e",
            Plant(
                "compilation", ("ompil",), every=4,
                chores=chore(
                    "$compiler.py:474 compile_or_get_cached", 150, every=4, offset=2, before=True,
                    inside="$sampler.py:580 __call__",
                ),
            ),
        ),
    },
    (
        ("log-probabilities-through-f32", "longest-answers-on-core-2"),
        ("prompts-compiled-every-4th-step", "log-probabilities-through-f32"),
    ),
)  # fmt: skip

CODEBASES = (ENGINE, SPECULATIVE, VIDEO, POLICY)
