"""Images, speech, recommendations, servers, graphs, proteins and agents."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import LINEN, Sizes, reads, trained
from tests.insight.cases.shapes.jobs.job import Job
from tests.insight.cases.shapes.jobs.models import (
    LEVANTER,
    VISION,
    dit,
    engine,
    folds,
    graphs,
    hears,
    ranker,
    reducing,
)
from tests.insight.cases.shapes.shape import Plant, slow_kernel
from tests.insight.simulator.code import V4, V5E, V5P, V6E, V7X
from tests.insight.simulator.parts import Activations, Callback, OnSparseCore, Products, Rearranged
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Einsum, Taken, Turned
from tests.insight.simulator.stack import Beside
from tests.insight.simulator.tensors import Kept, Sort

LOOP = Loop(fetch="$input_pipeline.py:96 __next__", call="")
ALONE = Loop(fetch="", call="", annotate=False)

OF_IMAGES = Sizes(8192, 1152, 4304 // 16 * 16, 9, 256)
IMAGES = Job(
    "vision-job",
    {
        "siglip-v5e": Scene(
            (
                trained(
                    VISION, OF_IMAGES, 5, 1152, numbered="img/Transformer/encoderblock_{}", model="TwoTowers",
                    name="jit_update_fn",
                ),
            ),
            V5E, cores=8, seed=621, steps=10, loop=LOOP,
        ),
    },
    {
        "images-decoded-too-slowly": (
            "siglip-v5e", Plant("input", ("input",), loop={"batch_ps": 41 * MS}),
        ),
        "stem-of-48-channels": (
            "siglip-v5e",
            Plant(
                "padding",
                ("stem", "conv_stem.py"),
                part=Products(
                    200_704, 432, 48, count=20, on_chip=True, scope="img/stem/conv_general_dilated",
                    source="conv_stem.py:38",
                ),
                into="first",
            ),
        ),
        "norms-printed": (
            "siglip-v5e",
            Plant(
                "debug-print", ("debug_callback", "recv-done", "bv_optax.py"), ("host",),
                Callback(us=1300, scope="debug_callback", source="bv_optax.py:144"),
            ),
        ),
    },
    (("stem-of-48-channels", "norms-printed"),),
)  # fmt: skip

PICTURES = Job(
    "diffusion-job",
    {
        "flux-v6e": Scene((dit(8192, 3072, 4),), V6E, cores=1, seed=622, steps=14, loop=ALONE, marks=False),
    },
    {
        "modulation-kernel-at-9-percent": (
            "flux-v6e", slow_kernel("adaln_zero", 0.09, "adaln_zero.py:71", 48, scope="modulate"),
        ),
        "feature-maps-turned": (
            "flux-v6e",
            Plant(
                "copy",
                ("AutoencoderKL", "vae_flax.py"),
                ("shuffle",),
                Turned(
                    count=3, rows=131_072, width=1024, scope="AutoencoderKL/decoder/transpose", source="vae_flax.py:301"
                ),
            ),
        ),
    },
    (("feature-maps-turned", "modulation-kernel-at-9-percent"),),
)  # fmt: skip

RANKER = Job(
    "recommender-job",
    {
        "dlrm-2-hosts-v6e": Scene(
            (ranker(32_768, 8192),), V6E, hosts=2, seed=623, steps=14, marks=False,
            loop=Loop(fetch="$dataset.py:233 get_next", call="", batch_ps=0.8 * MS, put_ps=0.3 * MS),
        ),
    },
    {
        "lookups-longer-than-the-dense-layers": (
            "dlrm-2-hosts-v6e",
            Plant(
                "sparse-core",
                ("all-to-all", "sparse_embed", "embedding_layer.py"),
                part=OnSparseCore(
                    us=1500, opcode="all-to-all", rows=8192, scope="sparse_embed/lookup", source="embedding_layer.py:88"
                ),
                into="first",
            ),
        ),
        "history-summed-row-by-row": (
            "dlrm-2-hosts-v6e",
            Plant(
                "latency-bound",
                ("history_bag", "history.py"),
                part=Taken(
                    rows=9000, table=500_000, adds=True, ns_a_row=80, scope="history_bag/segment_sum/scatter-add",
                    source="history.py:49", base="scatter_fusion",
                ),
            ),
        ),
    },
    (("lookups-longer-than-the-dense-layers", "history-summed-row-by-row"),),
)  # fmt: skip

SMALL, MIDDLE, LARGE = (engine(batch, 4096, 4, 14_336, 2 * batch, variant=str(batch)) for batch in (32, 64, 128))
SERVER = Job(
    "server-job",
    {
        "vllm-v7x": Scene(
            (engine(128, 8192, 4, 14_336, 640), reads(Sizes(2048, 8192, 14_336, 64), 1, name="jit_prefill_fun")),
            V7X, cores=1, seed=624, steps=20, loop=ALONE, marks=False, turns=((0,), (0,), (0,), (0, 1), (0,)),
        ),
    },
    {
        "requests-scheduled-between-steps": (
            "vllm-v7x",
            Plant(
                "serving", ("schedule", "jit_step_fun"), ("host", "idle"), loop={"ahead": 0},
                chores=chore("$scheduler.py:188 schedule", 0.9),
            ),
        ),
        "cache-not-donated": (
            "vllm-v7x",
            Plant(
                "copy",
                ("kv_cache/insert", "cache_manager.py", "copy"),
                part=Kept(rows=262_144, width=1024, count=2),
            ),
        ),
        "top-p-by-sorting": (
            "vllm-v7x",
            Plant(
                "latency-bound",
                ("top_p", "sampler.py", "sort"),
                part=Sort(rows=128, length=32_000, kind="f32", scope="sample/top_p/sort", source="sampler.py:122"),
            ),
        ),
    },
    (("top-p-by-sorting", "cache-not-donated"),),
    suspects=(
        (
            "batch-that-grows",
            Scene(
                (SMALL, MIDDLE, LARGE), V6E, cores=1, seed=625, steps=18, loop=ALONE, marks=False,
                turns=(*((0,),) * 6, *((1,),) * 6, *((2,),) * 6),
            ),
        ),
    ),
)  # fmt: skip

SAMPLES = engine(
    64, 4096, 3, 14_336, 96, micro=16, over="generate/while", once=(), turn=engine(64, 4096, 1, 1, 1).once,
    name="jit_generate",
)  # fmt: skip
AGENTS = Job(
    "rl-job",
    {
        "grpo-2-hosts-v5p": Scene(
            (SAMPLES, reducing(LEVANTER, Sizes(8192, 4096, 14_336, 32), 2, 32_768, name="jit_grpo_update")),
            V5P, hosts=2, cores=2, seed=626, steps=8, turns=((0, 1),), marks=False,
            loop=Loop(fetch="", call="", ahead=0),
        ),
    },
    {
        "answers-checked-on-the-host": (
            "grpo-2-hosts-v5p",
            Plant("host", ("compute_rewards",), ("idle",), chores=chore("$math_verify.py:45 compute_rewards", 26)),
        ),
        "weights-resharded-for-each-rollout": (
            "grpo-2-hosts-v5p",
            Plant(
                "collective",
                ("all-gather", "reshard_params"),
                part=Beside(
                    "all-gather", 49_152, bad=True, scope="reshard_params/all_gather", source="rollout_sync.py:33"
                ),
                instead=(),
                into="first",
            ),
        ),
    },
    (("answers-checked-on-the-host", "weights-resharded-for-each-rollout"),),
)  # fmt: skip

SPEECH = Job(
    "speech-job",
    {
        "whisper-v5e": Scene(
            (hears(6144, 1280, 4, numbered="encoder/layers_{}"),), V5E, seed=627, steps=12, loop=LOOP
        ),
    },
    {
        "features-made-before-each-step": (
            "whisper-v5e",
            Plant(
                "host", ("log_mel_spectrogram",), ("idle", "input"), loop={"ahead": 0},
                chores=chore("$feature_extraction_whisper.py:98 log_mel_spectrogram", 12, before=True),
            ),
        ),
        "attention-to-the-encoder-in-hbm": (
            "whisper-v5e",
            Plant(
                "memory-bound",
                ("encoder_attn", "modeling_flax_whisper.py:288"),
                ("unfused",),
                Einsum(
                    heads=20, length=1536, depth=64, scope="encoder_attn", source="modeling_flax_whisper.py:288",
                ),
                into="each",
            ),
        ),
    },
    (("features-made-before-each-step", "attention-to-the-encoder-in-hbm"),),
)  # fmt: skip

GRAPHS = Job(
    "graph-job",
    {
        "jraph-v4": Scene(
            (graphs(16_384, 131_072, 512, 3),), V4, cores=2, seed=628, steps=16,
            loop=Loop(fetch="$graph_loader.py:58 __next__", call=""),
        ),
    },
    {
        "messages-summed-row-by-row": (
            "jraph-v4",
            Plant(
                "latency-bound",
                ("segment_sum", "aggregate.py"),
                part=Taken(
                    rows=40_000, table=16_384, width=256, adds=True, ns_a_row=70, base="scatter_fusion",
                    scope="segment_sum/scatter-add", source="aggregate.py:61",
                ),
                into="each",
            ),
        ),
        "compiled-again-every-4th-step": (
            "jraph-v4",
            Plant(
                "compilation", ("compil",), every=4, loop={"ahead": 0},
                chores=chore(
                    "$compiler.py:361 backend_compile_and_load", 60, every=4, offset=2, before=True,
                    inside="$pxla.py:2970 compile",
                ),
            ),
        ),
    },
    (("compiled-again-every-4th-step", "messages-summed-row-by-row"),),
)  # fmt: skip

FOLDING = Job(
    "folding-job",
    {
        "evoformer-v7x": Scene((folds(384, 512, 3),), V7X, seed=629, steps=10, loop=LOOP, marks=False),
    },
    {
        "outer-product-in-f32": (
            "evoformer-v7x",
            Plant(
                "precision",
                ("outer_product_mean", "modules.py:1650"),
                part=Products(
                    4096, 2048, 4096, kind="f32", precision="highest", count=2, scope="outer_product_mean/dot_general",
                    source="modules.py:1650", base="convert_reduce_fusion",
                ),
                into="each",
            ),
        ),
        "alignment-joined-anew": (
            "evoformer-v7x",
            Plant(
                "shuffle",
                ("create_msa_feat", "modules.py:301"),
                ("copy",),
                Rearranged(
                    rows=65_536, width=2048, count=3, scope="create_msa_feat/concatenate", source="modules.py:301"
                ),
                into="first",
            ),
        ),
        "template-norms-in-f32": (
            "evoformer-v7x",
            Plant(
                "memory-bound",
                ("template_embedding", "modules.py:2022"),
                ("precision", "unfused"),
                Activations(
                    rows=147_456, width=512, count=4, base="subtract_multiply_fusion",
                    scope="template_embedding/layer_norm/mul", source="modules.py:2022",
                ),
                into="each",
            ),
        ),
    },
    (("outer-product-in-f32", "alignment-joined-anew"),),
)  # fmt: skip

POLICY = trained(
    LINEN, Sizes(2048, 512, 1024, 4, 256), 4, 512, numbered="Dense_{}", model="ActorCritic", name="jit_update_epoch",
    rows=512,
)  # fmt: skip
AGENT = Job(
    "agent-job",
    {
        "impala-v5e": Scene(
            (
                reads(Sizes(2048, 512, 1024, 4, 256), 2, name="jit_vtrace_targets", model="ActorCritic"), POLICY,
                reads(Sizes(4096, 512, 1024, 4, 256), 1, name="jit_unroll_policy", model="ActorCritic"),
            ),
            V5E, cores=1, seed=630, steps=12, turns=((0, 1, 2),),
            loop=Loop(fetch="$actor.py:90 unroll", call="", batch_ps=0.2 * MS, put_ps=0.04 * MS, launch_ps=0.06 * MS),
        ),
    },
    {
        "calls-slower-than-programs": (
            "impala-v5e",
            Plant(
                "idle", ("PjitFunction", "Execute", "launch", "dispatch", "ParseArguments"), ("host",),
                loop={"launch_ps": 0.62 * MS},
            ),
        ),
    },
    (),
    suspects=(
        (
            "small-network",
            Scene(
                (POLICY,), V5E, cores=1, seed=631, steps=20,
                loop=Loop(fetch="", call="", launch_ps=0.12 * MS),
            ),
        ),
    ),
)  # fmt: skip

JOBS = (IMAGES, PICTURES, RANKER, SERVER, AGENTS, SPEECH, GRAPHS, FOLDING, AGENT)
