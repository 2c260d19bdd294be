"""Harder cases: problems in loops over layers, beside others as large, on many hosts, in profiles that hold less."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.case import Case, fine, part_problem, problem
from tests.insight.cases.scenes import (
    ALONE,
    DECODE_V5E,
    DECODE_V6E,
    EXPOSED_V5P,
    FSDP_V5P,
    PREFILL,
    SCANNED_V6E,
    SHORT_V5E,
    SHORT_V5P,
    SMALL,
    SMALL_TRAIN,
    TRAIN_2_HOSTS,
    TRAIN_V4,
    TRAIN_V5E,
    TRAIN_V6E,
    chore,
)
from tests.insight.simulator.code import V4, V5E, V5P
from tests.insight.simulator.parts import (
    BetweenSlices,
    Chain,
    Experts,
    Kernel,
    Lookup,
    OnSome,
    Prefetch,
    Products,
    Relayouts,
    TinyLoop,
    VectorProduct,
)
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Memory, Scene
from tests.insight.simulator.workloads import Decode, Pipeline, Small, Train

BLOCKING = Loop(ahead=0)
SCANNED_V5E = Scene((Train(scanned=True, layers=5, once=SMALL),), V5E, seed=101)
BARE_V4 = replace(TRAIN_V4, hosts=1, cores=4, scopes=False, hlo=False, seed=102)
BARE_V6E = replace(TRAIN_V6E, scopes=False, hlo=False, seed=103)
POD_V5P = Scene(
    (Train(tokens=8192, width=4096, hidden=14_336, layers=2, once=SMALL),),
    V5P,
    hosts=4,
    cores=4,
    seed=104,
    steps=8,
    chips=Chips(jitter=0.02),
)
SAMPLED = Scene(
    (
        Decode(model_parallel=False, layers=4, name="jit_step_fun"),
        Small(45, "jit_compute_logits"),
        Small(70, "jit_sample"),
    ),
    V5E,
    cores=1,
    seed=105,
    steps=20,
    loop=ALONE,
    marks=False,
    turns=((0, 1, 2),),
)
SLOW_INPUT = {"slow_every": 3, "slow_ps": 260 * MS, "slow_hosts": (3,)}

PROBLEMS = (
    part_problem(
        "gather-in-scanned-layers-v6e",
        "latency-bound",
        SCANNED_V6E,
        Lookup(rows=24_000),
        ["token_embed", "embedding.py"],
        field="each",
    ),
    part_problem(
        "scatter-without-scopes-v4",
        "latency-bound",
        BARE_V4,
        Lookup(opcode="scatter", rows=40_000, ns_a_row=75, base="scatter_custom_fusion"),
        ["token_embed"],
    ),
    part_problem(
        "kernel-in-scanned-layers-v5e",
        "slow-kernel",
        SCANNED_V5E,
        Kernel(0.03, flops=0.02e12, base="ring_step", scope="ring/pallas_call"),
        ["ring"],
        field="each",
    ),
    part_problem(
        "kernel-at-15-percent-without-scopes-v4",
        "slow-kernel",
        BARE_V4,
        Kernel(0.15, flops=0.25e12, times=6, base="mega_norm", scope="norms/pallas_call"),
        ["mega_norm"],
    ),
    part_problem(
        "columns-of-160-in-scanned-layers-v5e",
        "padding",
        SCANNED_V5E,
        Products(16_384, 512, 160, count=120, on_chip=True, scope="lora/dot_general", source="lora.py:28"),
        ["lora"],
        field="each",
    ),
    part_problem(
        "contraction-of-264-v6e",
        "padding",
        TRAIN_V6E,
        Products(4096, 264, 4096, count=80, on_chip=True, scope="mixer/dot_general", source="mixer.py:14"),
        ["mixer"],
        field="each",
    ),
    problem(
        "scanned-mlp-in-f32-high-v6e",
        "precision",
        SCANNED_V6E,
        ["mlp"],
        work={"mlp_kind": "f32", "mlp_precision": "high"},
    ),
    part_problem(
        "many-small-products-in-f32-highest-v5p",
        "precision",
        SHORT_V5P,
        Products(
            1024,
            512,
            512,
            kind="f32",
            precision="highest",
            count=150,
            on_chip=True,
            scope="kalman/dot_general",
            source="kalman.py:81",
        ),
        ["kalman"],
        field="each",
    ),
    problem("remat-with-gathered-weights-v5p", "recomputation", FSDP_V5P, ["remat"], work={"remat": "full"}),
    problem(
        "remat-without-marks-v5e", "recomputation", replace(SCANNED_V5E, marks=False), ["remat"], work={"remat": "mlp"}
    ),
    problem(
        "all-gather-half-hidden-v5p",
        "collective",
        replace(FSDP_V5P, chips=Chips(jitter=0.01)),
        ["all-gather"],
        work={"gather_short": True},
    ),
    problem(
        "reduce-scatter-exposed-2-hosts-v5e",
        "collective",
        replace(TRAIN_2_HOSTS, work=(Train(tokens=4096, layers=3, exchange="reduce-scatter", once=SMALL),)),
        ["reduce-scatter"],
        work={"overlap": False},
    ),
    problem("hot-chip-in-matrix-products-v4", "slow-core", TRAIN_V4, ["host-2"], chips={"matrix_speed": ((5, 1.22),)}),
    problem("hot-chip-among-16-v5p", "slow-core", POD_V5P, ["host-3"], chips={"speed": ((13, 1.14),)}),
    part_problem(
        "work-of-one-host-v5e",
        "straggler",
        TRAIN_2_HOSTS,
        OnSome((0, 0, 0, 0, 1, 1, 1, 1), shared=False, m=16_384, n=16_384),
        ["host-1", "aux_loss"],
        ["imbalance"],
    ),
    problem("input-of-one-host-now-and-then-v4", "input", TRAIN_V4, ["host-3"], ["straggler"], loop=SLOW_INPUT),
    part_problem(
        "experts-in-scanned-layers-v6e",
        "imbalance",
        SCANNED_V6E,
        Experts((2.0, 1.4, 1.2, 1.0, 0.8, 0.7, 0.5, 0.4), hidden=32_768, tokens=4096),
        ["all-to-all", "expert", "moe"],
        field="each",
    ),
    part_problem(
        "loops-of-300-turns-v5e",
        "tiny-loop",
        TRAIN_V5E,
        TinyLoop(trips=300, us=2.6, scope="newton/while", source="newton.py:30"),
        ["newton"],
        field="each",
    ),
    part_problem(
        "large-fetches-once-v6e", "copy-wait", TRAIN_V6E, Prefetch(count=12, rows=24_576, slowness=2.2), ["copy-done"]
    ),
    part_problem(
        "transposes-without-scopes-v6e",
        "copy",
        BARE_V6E,
        Relayouts(count=3, rows=16_384),
        ["attention/transpose"],
        field="each",
    ),
    part_problem(
        "three-steps-unfused-v5e",
        "unfused",
        TRAIN_V5E,
        Chain(count=3, rows=32_768, width=4096, scope="rope/mul", source="rope.py:21"),
        ["rope"],
        field="each",
    ),
    part_problem(
        "products-by-multiply-in-scanned-layers-v5e",
        "vector-work",
        SCANNED_V5E,
        VectorProduct(m=16_384, k=512, n=512, scope="gate/reduce_sum", source="gate.py:11"),
        ["gate"],
        field="each",
    ),
    problem(
        "batches-sent-while-the-device-waits-v5e",
        "input",
        replace(SHORT_V5E, loop=BLOCKING),
        ["input", "device_put"],
        ["host", "idle"],
        loop={"put_ps": 5 * MS},
    ),
    problem(
        "logs-every-other-step-v5p",
        "host",
        SHORT_V5P,
        ["write_text"],
        ["idle", "slow-step"],
        loop={"chores": chore("$logging.py:71 write_text", 17, every=2, reads="np.asarray(jax.Array)")},
    ),
    problem(
        "nobody-knows-what-the-host-does-v5e",
        "idle",
        replace(SHORT_V5E, python=False, loop=BLOCKING),
        [],
        ["host"],
        loop={"chores": chore("$nameless.py:1 work", 4.5, before=True)},
    ),
    problem(
        "serving-samples-on-the-host-v5e",
        "serving",
        SAMPLED,
        ["sample_on_host", "jit_step_fun", "jit_sample"],
        ["host", "idle"],
        loop={"ahead": 0, "chores": chore("$sampler.py:40 sample_on_host", 1.9)},
    ),
    part_problem(
        "dcn-in-each-layer-2-slices-v5p",
        "dcn",
        replace(POD_V5P, hosts=2),
        BetweenSlices(mib=48),
        ["recv", "slice", "DCN", "megascale"],
        field="each",
    ),
    problem(
        "pipeline-of-2-v5e",
        "pipeline",
        Scene((Pipeline(3, False, width=2048),), V5E, cores=2, seed=106),
        ["ppermute", "collective-permute", "pipeline", "stage"],
        work={"bubbles": True},
    ),
    part_problem(
        "kernel-beside-exposed-collectives-v5p",
        "slow-kernel",
        replace(EXPOSED_V5P, chips=Chips(jitter=0.02)),
        Kernel(0.07, flops=0.3e12, base="block_topk", scope="topk/pallas_call"),
        ["topk"],
    ),
    problem(
        "traces-in-each-step-v4",
        "compilation",
        replace(TRAIN_V4, loop=BLOCKING),
        ["trace_to_jaxpr", "compil"],
        loop={"chores": chore("trace_to_jaxpr_dynamic", 7, before=True)},
    ),
    problem(
        "memory-full-of-programs-v6e", "memory-full", TRAIN_V6E, ["memory", "HBM"], scene={"memory": Memory(0.5, 0.485)}
    ),
    problem(
        "a-late-third-step-v6e",
        "slow-step",
        replace(TRAIN_V6E, steps=16, marks=True),
        ["103"],
        chips={"slow_steps": ((3, 2.4),)},
    ),
)

HEALTHY = (
    fine("healthy-16-cores-v5p", POD_V5P),
    fine("healthy-without-scopes-v4", BARE_V4),
    fine("healthy-without-scopes-v6e", BARE_V6E),
    fine("healthy-decode-without-scopes-v5e", replace(DECODE_V5E, scopes=False, hlo=False, python=False)),
    fine("healthy-scanned-layers-v5e", SCANNED_V5E),
    fine("healthy-without-python-trace-v5e", replace(TRAIN_2_HOSTS, python=False, seed=107)),
    fine("healthy-serving-samples-on-the-device-v5e", SAMPLED),
    fine(
        "healthy-scanned-fsdp-v5p",
        Scene(
            (
                Train(
                    width=4096,
                    hidden=14_336,
                    layers=4,
                    scanned=True,
                    fsdp=True,
                    exchange="reduce-scatter",
                    remat="norms",
                ),
            ),
            V5P,
            cores=8,
            steps=6,
            seed=108,
        ),
    ),
    fine("healthy-optimizer-heavy-v4", replace(SMALL_TRAIN, device=V4, seed=109)),
    fine(
        "healthy-experts-a-little-uneven-v6e",
        replace(
            SCANNED_V6E,
            seed=110,
            work=(
                Train(
                    tokens=16_384,
                    layers=4,
                    each=(Experts((1.04, 1.0, 0.98, 1.02, 0.97, 1.0, 0.99, 1.0), rotates=True, hidden=8192),),
                ),
            ),
        ),
    ),
    fine(
        "healthy-prefill-and-decode-v5p",
        Scene(
            (Decode(model_parallel=False, name="jit_decode"), PREFILL),
            V5P,
            cores=1,
            seed=111,
            steps=18,
            loop=ALONE,
            marks=False,
            turns=((1,), (0,), (0,)),
        ),
    ),
    fine(
        "healthy-decode-kernels-at-70-percent-v6e",
        replace(
            DECODE_V6E,
            seed=112,
            work=(
                Decode(
                    model_parallel=False,
                    cache_mib=64,
                    batch=96,
                    each=(Kernel(good=0.72, bad=False, flops=1e9, size=24 << 20, base="kv_update"),),
                ),
            ),
        ),
    ),
)


def _harder(case: Case) -> Case:
    return replace(case, harder=True)


CASES = tuple(map(_harder, (*PROBLEMS, *HEALTHY)))
