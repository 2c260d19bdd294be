"""What large runs need besides their model: optimizers in shards, quantization, compression, stages."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import Sizes
from tests.insight.cases.shapes.labs.domains.domain import Domain
from tests.insight.cases.shapes.labs.domains.models import AQT, OLMO, SPLIT, compressed, piped, trains
from tests.insight.cases.shapes.labs.domains.parts import OneByOne, Rotations, Rounded
from tests.insight.cases.shapes.rhythms import PAUSES
from tests.insight.cases.shapes.shape import Plant, throttled
from tests.insight.simulator.code import V4, V5E, V5P, V7X
from tests.insight.simulator.parts import Barrier, Callback, Prefetch
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.schedules import AcrossSlices
from tests.insight.simulator.stack import Beside, Gemms
from tests.insight.simulator.tensors import Sort

OF_SHARDS = Sizes(8192, 4096, 11_264, 32)
SHARDS = Domain(
    "optimizer-shards",
    {
        "shampoo-16-cores-of-2-hosts-v5p": Scene(
            (trains(OLMO, OF_SHARDS, 2, 16_384, model="OLMo", name="jit_zero1_step", source="olmo.py:300"),), V5P,
            hosts=2, cores=8, seed=931, steps=7, chips=Chips(jitter=0.012, speed=((3, 1.004), (9, 1.006))),
            loop=Loop(fetch="$memmap_dataset.py:120 __getitem__", call="", batch_ps=3 * MS),
        ),
    },
    {
        "roots-by-rotations": (
            "shampoo-16-cores-of-2-hosts-v5p",
            Plant(
                "tiny-loop", ("inverse_root", "preconditioner.py"),
                part=Rotations(sweeps=5, pairs=255, us=1.4, side=2048),
            ),
        ),
        "parameters-gathered-ahead-of-the-first-layer": (
            "shampoo-16-cores-of-2-hosts-v5p",
            Plant(
                "collective", ("all-gather", "gather_params", "zero.py"),
                part=Beside(
                    "all-gather", 6144, (Gemms(((0, 0, 11_264),) * 3, "embed/mixing/dot_general", "olmo.py:88"),), True,
                    "zero1/gather_params/all_gather", "zero.py:44",
                ),
                into="first",
            ),
        ),
        "chip-of-host-1": ("shampoo-16-cores-of-2-hosts-v5p", Plant("slow-core", ("host-1",), **throttled(12, 1.17))),
    },
    (("chip-of-host-1", "roots-by-rotations"),),
)  # fmt: skip

OF_BITS = Sizes(8192, 4096, 11_264, 32)
BITS = Domain(
    "quantization",
    {
        "aqt-2-cores-v7x": Scene(
            (trains(AQT, OF_BITS, 3, 32_768, model="Quantized", name="jit_qat_step", source="aqt_flax.py:290"),), V7X,
            cores=2, seed=932, steps=9, chips=Chips(jitter=0.01),
            loop=Loop(
                fetch="$array_record.py:88 __next__", call="", chores=chore("$metric_writer.py:70 write_scalars", 2),
            ),
        ),
    },
    {
        "weights-rounded-step-by-step": (
            "aqt-2-cores-v7x",
            Plant(
                "unfused", ("fake_quant", "quantizer.py"), ("memory-bound",), Rounded(rows=16_384, count=6), into="each"
            ),
        ),
        "ranges-printed": (
            "aqt-2-cores-v7x",
            Plant(
                "debug-print", ("debug_print", "recv", "observer.py"), ("host", "host-offload"),
                Callback(us=2100, scope="observer/debug_print", source="observer.py:52"),
            ),
        ),
        "scales-fetched-late": (
            "aqt-2-cores-v7x",
            Plant(
                "copy-wait", ("copy-done", "copy-start"),
                part=Prefetch(
                    rows=8192, width=4096, count=7, slowness=5, scope="decoder/layers/scales/prefetch",
                    source="aqt_flax.py:171",
                ),
                into="each",
            ),
        ),
    },
    (("weights-rounded-step-by-step", "ranges-printed"),),
)  # fmt: skip

OF_FACTORS = Sizes(4096, 3072, 8192, 24)
FACTORS = Domain(
    "compression",
    {
        "powersgd-2-slices-of-2-hosts-v5e": Scene(
            (compressed(OF_FACTORS, 2, 16),), V5E, hosts=4, cores=2, seed=933, steps=16, marks=False,
            chips=Chips(jitter=0.007),
            loop=Loop(
                fetch="$webdataset.py:402 __iter__", call="", ahead=0, launch_ps=0.09 * MS, put_ps=0.09 * MS,
                batch_ps=4 * MS,
            ),
        ),
    },
    {
        "whole-gradients-sent-between-slices-at-the-end": (
            "powersgd-2-slices-of-2-hosts-v5e",
            Plant(
                "dcn", ("recv", "slice", "DCN", "megascale", "uncompressed"), ("collective",),
                AcrossSlices(128, bad=True, scope="uncompressed/psum", source="powersgd.py:177"), instead=(),
            ),
        ),
        "largest-entries-by-sorting": (
            "powersgd-2-slices-of-2-hosts-v5e",
            Plant(
                "latency-bound", ("top_k_gradients", "sparsify.py"),
                part=Sort(
                    length=1 << 20, times=3, kind="f32", scope="top_k_gradients/sort", source="sparsify.py:61",
                ),
            ),
        ),
        "host-1-collects-garbage-every-4th-step": (
            "powersgd-2-slices-of-2-hosts-v5e",
            Plant(
                "straggler", ("host-1",), PAUSES, every=4,
                chores=chore("$gc.py:31 collect_generation_2", 55, every=4, offset=2, hosts=(1,)),
            ),
        ),
    },
    (("whole-gradients-sent-between-slices-at-the-end", "largest-entries-by-sorting"),),
)  # fmt: skip

STAGES = Domain(
    "stage-scan",
    {
        "gpipe-6-stages-of-3-hosts-v4": Scene(
            (piped(Sizes(2048, 3072, 12_288, 24), 18),), V4, hosts=3, cores=2, seed=934, steps=8,
            chips=Chips(jitter=0.005), loop=Loop(fetch="$indexed_dataset.py:44 __next__", call=""),
        ),
    },
    {
        "stages-wait-for-microbatches": (
            "gpipe-6-stages-of-3-hosts-v4",
            Plant(
                "pipeline", ("ppermute", "collective-permute", "pipeline", "gpipe", "stage"), ("imbalance",),
                work={"bubbles": True},
            ),
        ),
        "barrier-ahead-of-the-update": (
            "gpipe-6-stages-of-3-hosts-v4", Plant("barrier", ("barrier",), part=Barrier(us=9500)),
        ),
    },
    (),
)  # fmt: skip

LEGACY = Domain(
    "pmapped",
    {
        "gpt-2-hosts-v4": Scene(
            (trains(SPLIT, Sizes(2048, 2048, 8192, 16), 3, 8192, model="GPT", name="pmap_update_fn", numbered="h_{}"),),
            V4, hosts=2, cores=4, seed=935, steps=18, marks=False, chips=Chips(jitter=0.02),
            loop=Loop(
                fetch="$prefetch.py:19 __next__", call="", launcher="PmapFunction({})", batch_ps=1 * MS,
                put_ps=0.3 * MS, launch_ps=0.4 * MS, reading="$jax_utils.py:60 unreplicate",
            ),
        ),
    },
    {
        "gradients-summed-one-by-one": (
            "gpt-2-hosts-v4",
            Plant(
                "collective", ("all-reduce", "tree_map/pmean", "legacy_train.py"),
                part=OneByOne(
                    90, parts=(Gemms(((0, 0, 8192),) * 2, "wte/attend/dot_general", "gpt.py:160"),),
                    scope="tree_map/pmean", source="legacy_train.py:71",
                ),
            ),
        ),
        "batches-cut-for-each-core-on-the-host": (
            "gpt-2-hosts-v4",
            Plant(
                "input", ("device_put", "input"), ("host", "idle"), loop={"ahead": 0, "put_ps": 4.5 * MS},
            ),
        ),
    },
    (("batches-cut-for-each-core-on-the-host", "gradients-summed-one-by-one"),),
)  # fmt: skip

DOMAINS = (SHARDS, BITS, FACTORS, STAGES, LEGACY)
