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
        "accumulation-weights-cast-each-time",
        "all-gather-half-hidden-v5p",
        "diffusion-group-norm-kernel-at-8-percent-and-text-attention-in-hbm",
        "diffusion-text-attention-in-hbm",
        "fleet-host-2-pauses-every-5th-step",
        "fleet-host-2-pauses-every-5th-step-and-chip-of-host-2-throttles-from-step-8",
        "fsdp-chip-at-85-percent-and-gates-in-f32",
        "fsdp-gradients-scattered-late",
        "host-blocks-each-step-v5e",
        "host-reads-loss-each-step-v4",
        "hosts-embeddings-row-by-row",
        "hosts-host-1-collects-garbage-every-4th-step-and-embeddings-row-by-row",
        "hosts-images-transposed",
        "hot-chip-in-matrix-products-v4",
        "kernel-at-6-percent-decode-v5e",
        "many-small-products-in-f32-highest-v5p",
        "moe-capacity-of-160",
        "moe-one-favourite-and-capacity-of-160",
        "no-device-compiled-all-the-time-v5p",
        "onset-compiles-in-the-first-step",
        "onset-loader-slows-from-step-7-and-compiles-in-the-first-step",
        "pipeline-bubbles-of-4",
        "pipeline-bubbles-of-8-and-chip-of-the-6th-stage",
        "pipeline-of-8-v6e",
        "recurrence-of-2000-turns-v5e",
        "rhythm-recompiles-every-5th-step-and-evaluates-every-4th-step",
        "ring-blocks-sent-late",
        "ring-blocks-sent-late-and-rotary-in-passes",
        "rl-advantages-in-f32",
        "rl-weights-synced-by-the-host",
        "rl-weights-synced-by-the-host-and-advantages-in-f32",
        "scanned-scores-in-hbm",
        "straggler-extra-work-v5e",
        "unrolled-histograms-written-each-step-and-sums-on-one-core",
        "unrolled-sums-on-one-core",
    )
)
"""Cases that were held back, and are shown since: those that the findings missed, and as many that they got right."""

SPLIT = halves(CASES)
"""The half that each case was in at first."""

HALF_OF: dict[str, Half] = {**SPLIT, **dict.fromkeys(SHOWN, "tuned")}
