"""A made-up out-of-memory error, as the parsers hand it to a front end."""

from __future__ import annotations

from dataclasses import replace

from tpuprof.parsers.memory.account.need import Need
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.model import Advice, OomLog, OomReport, Toggle, WhatIfEstimate
from tpuprof.parsers.memory.oom.triage import Triage, Trial, parts_of_report

GIB = 1 << 30
MIB = 1 << 20

SCOPE = "jit(train_step)/jit(main)/jvp(Model)"


def gib(value: float) -> int:
    """Bytes."""
    return round(value * GIB)


def buffer(
    size: float,
    shape: str,
    op: str | None = None,
    source: str | None = None,
    expansion: float = 1.0,
    label: str = "fusion.1 = fusion(param.1)",
) -> Buffer:
    """A temporary; size in GiB."""
    return Buffer(
        name=label.partition(" ")[0],
        category="temporary",
        size_bytes=gib(size),
        unpadded_bytes=round(gib(size) / expansion),
        shape=shape,
        framework_op=op,
        source=source,
        allocation_type="HLO temp",
        label=label,
    )


def attention(layer: int) -> Buffer:
    """The attention logits of a layer."""
    return buffer(
        4.0,
        "f32[64,4,2048,2048]{2,3,1,0:T(8,128)}",
        f"{SCOPE}/layer_{layer}/attention/sub",
        "train/models.py:53",
        label=f"fusion.{800 + layer}.remat3 = fusion(get-tuple-element.667, get-tuple-element.668), kind=kOutput",
    )


BUFFERS = (
    buffer(7.81, "f32[64,2047,16000]{2,1,0:T(8,128)}", f"{SCOPE}/log_softmax/sub", "train/models.py:64"),
    attention(0),
    attention(1),
    attention(2),
    buffer(3.91, "bf16[64,2047,16000]{2,1,0:T(8,128)(2,1)}", f"{SCOPE}/logits/dot_general", "train/models.py:63"),
    buffer(2.0, "s32[4194304,8,4]{2,1,0:T(8,128)}", f"{SCOPE}/data/floor", "loader.py:88", expansion=32.0),
    *(
        buffer(0.25, "bf16[64,2048,1024]{2,1,0:T(8,128)(2,1)}", f"{SCOPE}/layer_{layer}/mlp/dot_general", "m.py:55")
        for layer in range(4)
    ),
    buffer(0.125, "f32[32,4096,128]{2,1,0:T(8,128)}", label="broadcast.666 = broadcast(constant.766), dimensions={}"),
)

REPORT = OomReport(
    kind="compile",
    memory_space="hbm",
    sentence="RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm.",
    at_line=41822,
    count=3,
    program="jit_train_step",
    used_bytes=gib(31.81),
    capacity_bytes=gib(15.75),
    exceeded_bytes=gib(16.06),
    reserved_bytes=258 * MIB,
    program_bytes=gib(26.81),
    arguments_bytes=gib(5.0),
    global_bytes=round(1.53 * MIB),
    hlo_temp_bytes=gib(26.81),
    padding_bytes=gib(1.94),
    utilization=1.0,
    fragmentation=0.009,
    buffers=BUFFERS,
    unknown={"scoped_bytes": "the text does not say"},
)

NEED = Need("hbm", REPORT.used_bytes, REPORT.capacity_bytes, gib(5.0), None, None, gib(26.81), None, BUFFERS, False)

ADVICE = (
    Advice(
        "remat",
        gib(8.0),
        "3 layers keep their attention logits f32[64,4,2048,2048] for the backward pass",
        "Wrap the attention block in jax.checkpoint, or use a flash attention kernel that never makes them.",
        "3 x 4.00 GiB, of which one stays: 8.00 GiB",
        "train/models.py:53",
        (1, 2, 3),
    ),
    Advice(
        "bf16",
        gib(3.9),
        "log_softmax works on f32[64,2047,16000]",
        "Keep the logits in bf16 and reduce in f32.",
        "64 x 2047 x 16000 x 4 B = 7.81 GiB; at 2 B: 3.90 GiB",
        "train/models.py:64",
        (0,),
    ),
    Advice(
        "padding",
        gib(1.94),
        "s32[4194304,8,4] takes 32.0 times its size in tiles of (8,128)",
        "Put a long axis last.",
        "2.00 GiB - 64.0 MiB = 1.94 GiB",
        "loader.py:88",
        (5,),
    ),
)

TOGGLES = (
    Toggle("bf16", "bf16", "large f32 arrays in bf16", (0, 1, 2, 3)),
    Toggle("padding", "padding", "no padding", (5,)),
    Toggle("batch", "batch", "batch 64 -> 32", tuple(range(10))),
)

_FACTORS = {"batch": 0.5, "bf16": 0.5, "padding": 1 / 32}


def made_up_trial(triage: Triage, chosen: frozenset[str]) -> Trial:
    """Halves what batch and bf16 are about."""
    alone = {toggle.key: _estimate(triage, [toggle]).saved_bytes for toggle in triage.toggles}
    return Trial(chosen, _estimate(triage, [toggle for toggle in triage.toggles if toggle.key in chosen]), alone)


def _estimate(triage: Triage, toggles: list[Toggle]) -> WhatIfEstimate:
    sizes = [item.size_bytes for item in triage.need.buffers]
    saved: dict[str, int] = {}
    for toggle in toggles:
        before = sum(sizes)
        for at in toggle.buffers:
            sizes[at] = round(sizes[at] * _FACTORS[toggle.key])
        saved[toggle.key] = before - sum(sizes)
    total = sum(saved.values())
    used = triage.need.used_bytes
    return WhatIfEstimate(None if used is None else used - total, total, saved, tuple(sizes))


def triage_of(report: OomReport, need: Need | None = None) -> Triage:
    parts, reserved = parts_of_report(report)
    space = (report.memory_space or "hbm").lower()
    sizes = (report.used_bytes, report.capacity_bytes, report.arguments_bytes, None, None, report.hlo_temp_bytes, None)
    return Triage(
        kind=report.kind,
        title=report.program,
        where=f"train.log:{report.at_line}",
        sentence=report.sentence,
        need=need or Need(space, *sizes, report.buffers, False),
        parts=parts,
        padding_bytes=report.padding_bytes,
        reserved_bytes=reserved,
        requested_bytes=report.requested_bytes,
        free_bytes=report.free_bytes,
        exceeded_bytes=report.exceeded_bytes,
        count=report.count,
        code=report.code,
        device=report.device,
        is_cut=report.is_cut,
        unknown=report.unknown,
    )


def made_up_triage() -> Triage:
    """An error of a training step that needs twice the memory that there is, with advice."""
    return replace(triage_of(REPORT, NEED), advice=ADVICE, toggles=TOGGLES)


LOAD = OomReport(
    kind="load",
    memory_space="hbm",
    sentence="Error loading program 'jit__identity_fn': Attempting to reserve 13.50G at the bottom of memory.",
    at_line=12,
    program="jit__identity_fn",
    requested_bytes=gib(13.5),
    free_bytes=gib(7.48),
)


def load_triage() -> Triage:
    """A program that could not be loaded: one request, and no buffers."""
    return triage_of(LOAD)


def log_of(*reports: OomReport) -> OomLog:
    return OomLog(reports, (), 50_000, 4_000_000)


MESSAGE = """\
I1121 10:00:00.123456 1234 train.py:88] step 0
jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space \
hbm. Used 27.81G of 15.75G hbm. Exceeded hbm capacity by 12.06G.

Total hbm usage >= 28.06G:
    reserved        258.00M
    program          27.81G
    arguments            0B

Output size 0B; shares 0B with arguments.

Program hbm requirement 27.81G:
    global            1.53M
    HLO temp         27.81G (100.0% utilization: Unpadded (27.55G) Padded (27.55G), 0.9% fragmentation (259.92M))

  Largest program allocations in hbm:

  1. Size: 7.81G
     Operator: op_name="jit(train_step)/jit(main)/jvp(log_softmax)/sub" source_file="train/models.py" source_line=64
     Shape: f32[64,2047,16000]{2,1,0:T(8,128)}
     Unpadded size: 7.81G
     XLA label: fusion.35 = fusion(fusion.729, copy-done.210), kind=kLoop, calls=fused_computation.12
     Allocation type: HLO temp
     ==========================

  2. Size: 4.00G
     Operator: op_name="jit(train_step)/jit(main)/jvp(layer_0)/attention/sub" source_file="train/models.py" \
source_line=53
     Shape: f32[64,4,2048,2048]{2,3,1,0:T(8,128)}
     Unpadded size: 4.00G
     XLA label: fusion.806 = fusion(get-tuple-element.667), kind=kOutput, calls=async_collective_fusion.806
     Allocation type: HLO temp
     ==========================

"""
