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
        "diffusion-group-norm-kernel-at-8-percent-and-text-attention-in-hbm",
        "diffusion-losses-printed-and-norms-in-f32",
        "diffusion-text-attention-in-hbm",
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
        "many-small-products-in-f32-highest-v5p",
        "moe-capacity-of-160",
        "moe-one-favourite-and-capacity-of-160",
        "moe-one-shard-of-experts-busier",
        "moe-one-shard-of-experts-busier-and-router-in-f32",
        "no-device-compiled-all-the-time-v5p",
        "onset-compiles-in-the-first-step",
        "onset-loader-slows-from-step-7-and-compiles-in-the-first-step",
        "onset-scan-kernel-in-all-steps",
        "pipeline-bubbles-of-4",
        "pipeline-bubbles-of-8-and-chip-of-the-6th-stage",
        "pipeline-last-stage-has-the-vocabulary",
        "pipeline-of-8-v6e",
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
        "straggler-extra-work-v5e",
        "unrolled-histograms-written-each-step-and-sums-on-one-core",
        "unrolled-sums-on-one-core",
        "vision-healthy-v6e-all-done-well",
    )
)
"""Cases that were held back, and are shown since: those that the findings missed, and as many that they got right."""

SPLIT = halves(CASES)
"""The half that each case was in at first."""

HALF_OF: dict[str, Half] = {**SPLIT, **dict.fromkeys(SHOWN, "tuned")}
