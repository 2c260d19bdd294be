"""Healthy scenes that problems are planted in: each trains or serves well, with small losses as every program has."""

from __future__ import annotations

from tests.insight.simulator.code import V4, V5E, V5P, V6E
from tests.insight.simulator.parts import Chain, Kernel, Lookup, Relayouts
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.workloads import Decode, Train

SMALL = (
    Relayouts(count=1, rows=2048, scope="loss/transpose", source="loss.py:18"),
    Lookup(rows=1500, scope="labels/gather", source="loss.py:12", base="gather_custom_fusion"),
    Chain(count=2, rows=2048, scope="metrics/mul", source="metrics.py:9"),
)
"""What every program has a little of; together less than 1 % of a step."""

ROUGH = Chips(jitter=0.015)
UNMARKED = Loop(annotate=False)

TRAIN_V5E = Scene((Train(once=SMALL),), V5E, seed=11)
TRAIN_V6E = Scene((Train(tokens=16_384, attention="uncounted", once=SMALL),), V6E, seed=12, marks=False)
TRAIN_V5P = Scene(
    (Train(tokens=8192, width=4096, hidden=14_336, layers=3, once=SMALL),), V5P, cores=8, seed=13, steps=9
)
TRAIN_V4 = Scene((Train(tokens=4096, once=SMALL),), V4, hosts=4, cores=2, seed=14, chips=ROUGH)
TRAIN_2_HOSTS = Scene((Train(tokens=8192, layers=3, once=SMALL),), V5E, hosts=2, cores=4, seed=15)
FSDP_V5P = Scene(
    (Train(width=4096, hidden=14_336, layers=3, fsdp=True, exchange="reduce-scatter", once=SMALL),),
    V5P,
    cores=8,
    seed=16,
    steps=8,
)
SCANNED_V6E = Scene((Train(tokens=16_384, layers=6, scanned=True, once=SMALL),), V6E, cores=8, seed=17, steps=8)
SHORT_V5E = Scene((Train(tokens=2048, once=SMALL),), V5E, seed=19)
SHORT_V5P = Scene((Train(tokens=2048, width=4096, hidden=8192, layers=3, once=SMALL),), V5P, seed=20)
COPIES_V5E = Scene((Train(each=(Relayouts(count=4, rows=4096),)),), V5E, seed=25)
EXPOSED_V5P = Scene((Train(width=4096, hidden=8192, layers=3, overlap=False),), V5P, seed=26)
"""Programs that lose some percent to layout copies, or to exposed collectives, with and without what is planted."""

SMALL_TRAIN = Scene(
    (Train(tokens=2048, width=1024, hidden=4096, layers=3, vocab=8192),),
    V5E,
    cores=1,
    seed=18,
    steps=20,
    loop=Loop(put_ps=0.06 * MS),
)
"""Steps of a few milliseconds on one core."""

UNCOUNTED_V6E = Scene(
    (
        Train(
            tokens=16_384,
            layers=3,
            attention="uncounted",
            each=(
                Kernel(counted=False, bad=False, flops=6e12, base="quantized_matmul_kernel", scope="quant/pallas_call"),
            ),
        ),
    ),
    V6E,
    seed=24,
    marks=False,
)
"""More than half of the time is in kernels that declare no work."""

ALONE = Loop(fetch="", call="step_fun", annotate=False)
DECODE_V5E = Scene((Decode(model_parallel=False),), V5E, cores=1, seed=21, steps=24, loop=ALONE, marks=False)
DECODE_V6E = Scene(
    (Decode(model_parallel=False, cache_mib=96, batch=128),), V6E, cores=1, seed=22, steps=20, loop=ALONE, marks=False,
)  # fmt: skip
PREFILL = Train(
    tokens=4096, width=4096, hidden=14_336, layers=2, trains=False, attention="uncounted", name="jit_prefill"
)
SERVING = Scene(
    (Decode(model_parallel=False, name="jit_decode"), PREFILL), V6E, cores=1, seed=23, steps=24, loop=ALONE,
    marks=False,
    turns=((0,), (0,), (1,), (0,)),
)  # fmt: skip
