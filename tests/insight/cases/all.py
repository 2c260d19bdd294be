"""All cases, and which half each is in."""

from __future__ import annotations

from tests.insight.cases.case import Half, halves
from tests.insight.cases.cores import CASES as CORES
from tests.insight.cases.harder import CASES as HARDER
from tests.insight.cases.healthy import CASES as HEALTHY
from tests.insight.cases.matrix import CASES as MATRIX
from tests.insight.cases.memory import CASES as MEMORY
from tests.insight.cases.needless import CASES as NEEDLESS
from tests.insight.cases.shapes.all import CASES as SHAPES
from tests.insight.cases.waiting import CASES as WAITING

CASES = (*WAITING, *CORES, *MATRIX, *MEMORY, *HEALTHY, *HARDER, *NEEDLESS, *SHAPES)

SHOWN = frozenset(
    (
        "accumulation-few-rows-a-time-and-clipped-in-passes",
        "accumulation-moments-in-passes-and-weights-promoted-each-time",
        "accumulation-weights-cast-each-time",
        "all-gather-half-hidden-v5p",
        "conformer-ctc-loss-by-scan-and-positions-of-64-features",
        "convolutions-expansions-of-24-channels-and-batch-norms-in-passes",
        "diffusion-group-norm-kernel-at-8-percent-and-text-attention-in-hbm",
        "diffusion-losses-printed-and-norms-in-f32",
        "diffusion-text-attention-in-hbm",
        "embeddings-interactions-by-multiply-and-sum-and-vectors-exchanged-ahead-of-dense-layers",
        "embeddings-rows-of-tables-added-one-by-one",
        "embeddings-rows-of-tables-added-one-by-one-and-vectors-exchanged-ahead-of-dense-layers",
        "embeddings-vectors-exchanged-ahead-of-dense-layers",
        "engine-answers-detokenized-between-steps-and-pages-looked-up-row-by-row",
        "engine-cache-written-by-select",
        "engine-pages-looked-up-row-by-row",
        "engine-weights-unpacked-in-each-step",
        "engine-weights-unpacked-in-each-step-and-pages-looked-up-row-by-row",
        "experts-gates-in-f32-at-highest",
        "experts-tokens-exchanged-ahead-of-experts-and-gates-in-f32-at-highest",
        "experts-tokens-taken-row-by-row-and-tokens-exchanged-ahead-of-experts",
        "fleet-chip-of-host-5-at-86-percent-and-logits-turned",
        "fleet-host-2-pauses-every-5th-step",
        "fleet-host-2-pauses-every-5th-step-and-chip-of-host-2-throttles-from-step-8",
        "fleet-host-4-swaps-every-4th-step-and-slices-wait-for-gradients",
        "fleet-logits-turned",
        "fsdp-chip-at-85-percent-and-gates-in-f32",
        "fsdp-gradients-scattered-late",
        "fsdp-healthy-v5p-all-done-well",
        "host-blocks-each-step-v5e",
        "host-reads-loss-each-step-v4",
        "hosts-embeddings-row-by-row",
        "hosts-host-1-collects-garbage-every-4th-step-and-embeddings-row-by-row",
        "hosts-images-transposed",
        "hosts-positions-taken-row-by-row",
        "hot-chip-in-matrix-products-v4",
        "kernel-at-6-percent-decode-v5e",
        "long-context-keys-gathered-ahead-of-projections",
        "long-context-later-tokens-attend-to-more",
        "long-context-residuals-on-the-host",
        "long-context-residuals-on-the-host-and-keys-gathered-ahead-of-projections",
        "lora-adapters-in-products-of-their-own",
        "lora-adapters-in-products-of-their-own-and-dropout-of-adapters-by-threefry",
        "lora-dropout-of-adapters-by-threefry",
        "lora-frozen-weights-unpacked-to-hbm",
        "lora-frozen-weights-unpacked-to-hbm-and-dropout-of-adapters-by-threefry",
        "many-small-products-in-f32-highest-v5p",
        "messages-neighbours-taken-row-by-row-and-features-turned",
        "microbatches-gradients-added-in-passes",
        "microbatches-healthy-easydel-v7x",
        "moe-capacity-of-160",
        "moe-one-favourite-and-capacity-of-160",
        "moe-one-shard-of-experts-busier",
        "moe-one-shard-of-experts-busier-and-router-in-f32",
        "no-device-compiled-all-the-time-v5p",
        "onset-compiles-in-the-first-step",
        "onset-loader-slows-from-step-7-and-compiles-in-the-first-step",
        "onset-scan-kernel-in-all-steps",
        "optimizer-moments-read-from-the-host-and-averages-in-passes",
        "optimizer-moments-read-from-the-host-and-newton-schulz-in-f32",
        "optimizer-newton-schulz-in-f32",
        "outer-steps-healthy-diloco-2-hosts-v5e",
        "outer-steps-losses-through-f32-logits-and-hosts-meet-before-each-step",
        "outer-steps-slices-synced-every-5th-step",
        "pipeline-bubbles-of-4",
        "pipeline-bubbles-of-8-and-chip-of-the-6th-stage",
        "pipeline-last-stage-has-the-vocabulary",
        "pipeline-of-8-v6e",
        "pod-checkpoints-awaited-every-6th-step",
        "pod-checkpoints-awaited-every-6th-step-and-chip-of-host-3-throttled-from-step-7",
        "pod-checkpoints-awaited-every-6th-step-and-host-2-launches-late",
        "policy-log-probabilities-through-f32-and-longest-answers-on-core-2",
        "policy-longest-answers-on-core-2",
        "policy-prompts-compiled-every-4th-step-and-log-probabilities-through-f32",
        "recommender-clicks-scattered-row-by-row",
        "recommender-examples-parsed-too-slowly",
        "recommender-items-added-row-by-row-and-negatives-by-multiply-and-sum",
        "recurrence-of-2000-turns-v5e",
        "rhythm-compiles-every-4th-step",
        "rhythm-recompiles-every-5th-step-and-evaluates-every-4th-step",
        "rhythm-writes-shards-every-6th-step",
        "rhythm-writes-shards-every-6th-step-and-validates-every-3rd-step",
        "ring-blocks-sent-late",
        "ring-blocks-sent-late-and-rotary-in-passes",
        "ring-projections-computed-twice",
        "rl-advantages-in-f32",
        "rl-weights-synced-by-the-host",
        "rl-weights-synced-by-the-host-and-advantages-in-f32",
        "scanned-residuals-turned",
        "scanned-scores-in-hbm",
        "scanned-softmax-of-queries-in-f32-and-residuals-turned",
        "server-answers-encoded-between-steps-and-cache-written-slice-by-slice",
        "server-cache-written-slice-by-slice",
        "server-healthy-engine-v5p",
        "server-healthy-engine-v5p-all-done-well",
        "server-kernel-at-10-percent-and-cache-transposed",
        "speculative-accepted-tokens-by-sorting-and-draft-cache-not-donated",
        "speculative-drafts-proposed-in-python",
        "speculative-drafts-proposed-in-python-and-draft-cache-not-donated",
        "straggler-extra-work-v5e",
        "torch-xla-compiles-for-each-new-length-and-keys-expanded-for-all-heads",
        "torch-xla-keys-expanded-for-all-heads",
        "torch-xla-loss-item-in-each-step-and-keys-expanded-for-all-heads",
        "unrolled-histograms-written-each-step-and-sums-on-one-core",
        "unrolled-sums-on-one-core",
        "video-frames-between-channels-first-and-last",
        "video-scheduler-steps-on-the-host-and-frames-between-channels-first-and-last",
        "vision-healthy-v6e-all-done-well",
    )
)
"""Cases that were held back, and are shown since: those that the findings missed, and as many that they got right."""

SPLIT = halves(CASES)
"""The half that each case was in at first."""

HALF_OF: dict[str, Half] = {**SPLIT, **dict.fromkeys(SHOWN, "tuned")}
