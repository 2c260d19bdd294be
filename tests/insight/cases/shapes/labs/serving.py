"""Engines that make tokens, and jobs that score texts."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.codebases.parts import Losses
from tests.insight.cases.shapes.dialects.models import Sizes
from tests.insight.cases.shapes.labs.lab import Lab
from tests.insight.cases.shapes.labs.models import scores, serves
from tests.insight.cases.shapes.shape import Plant
from tests.insight.simulator.code import V5E, V7X
from tests.insight.simulator.parts import Slices
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.stack import Beside

ENGINE = Lab(
    "tpu-inference",
    {
        "qwen3-4-cores-v7x": Scene(
            (serves(256, 8192, 28_672, 6, 384, 4),), V7X, seed=811, steps=24, marks=False, chips=Chips(jitter=0.006),
            loop=Loop(fetch="", call="", annotate=False, launch_ps=0.09 * MS,
            reading="$tpu_runner.py:1420 _device_get"),
        ),
    },
    {
        "batches-prepared-between-steps": (
            "qwen3-4-cores-v7x",
            Plant(
                "serving", ("_prepare_inputs",), ("host", "idle"), loop={"ahead": 0},
                chores=chore("$tpu_runner.py:980 _prepare_inputs", 0.8, before=True),
            ),
        ),
        "logits-gathered-ahead-of-sampling": (
            "qwen3-4-cores-v7x",
            Plant(
                "collective", ("all-gather", "sampler.py:51"),
                part=Beside("all-gather", 1184, bad=True, scope="sample/logits_all_gather", source="sampler.py:51"),
                instead=(),
            ),
        ),
        "slots-written-one-by-one": (
            "qwen3-4-cores-v7x",
            Plant(
                "latency-bound", ("kv_cache_update", "kv_cache_manager.py"),
                part=Slices(
                    count=16, width=2048, us=5.5, opcode="dynamic-update-slice", source="kv_cache_manager.py:144",
                    scope="model.layers/kv_cache_update/dynamic_update_slice",
                ),
                into="each",
            ),
        ),
    },
    (("batches-prepared-between-steps", "slots-written-one-by-one"),),
)  # fmt: skip

EVALUATION = Lab(
    "lm-eval",
    {
        "llama-2-hosts-v5e": Scene(
            (scores(Sizes(8192, 4096, 14_336, 32), 3),), V5E, hosts=2, cores=2, seed=812, steps=14, marks=False,
            loop=Loop(fetch="", call="", ahead=0, annotate=False, launch_ps=0.12 * MS),
        ),
    },
    {
        "requests-tokenized-between-batches": (
            "llama-2-hosts-v5e",
            Plant(
                "host", ("tok_batch_encode",), ("idle", "input", "serving"),
                chores=chore("$huggingface.py:870 tok_batch_encode", 25, before=True,
                inside="$api_model.py:640 loglikelihood"),
            ),
        ),
        "log-softmax-through-f32": (
            "llama-2-hosts-v5e",
            Plant(
                "unfused", ("log_softmax", "eval_harness.py"), ("memory-bound", "precision"),
                Losses(tokens=4096, outputs=128_256, scope="log_softmax", source="eval_harness.py:233"),
            ),
        ),
    },
    (("requests-tokenized-between-batches", "log-softmax-through-f32"),),
)  # fmt: skip

LABS = (ENGINE, EVALUATION)
