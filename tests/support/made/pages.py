"""Hand-made pages with known figures, for tests of drawing and reports."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from tests.support.build import PlaneBuilder, summary_of
from tests.support.made.serving import five_requests, modules_profile, read_requests, serving_profile
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.table import EMPTY_TABLE
from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget
from tpuprof.parsers.pages.overview.ledger import MeanStep, mean_step
from tpuprof.parsers.pages.overview.model import (
    PERFORMANCE_KEYS,
    Bottleneck,
    Environment,
    Overview,
    Performance,
    Share,
    Step,
    TopOp,
)
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.pages.shared.latencies import latencies
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner, op_owners, owner_index
from tpuprof.parsers.steps.model import StepTime
from tpuprof.parsers.steps.step_account import Account
from tpuprof.parsers.steps.xprof_view import XprofBreakdown

MS = 1_000_000_000  # picoseconds


MODULE_STEPS = "no Steps line; periods of jit_f, which takes 98% of module time, are taken as steps"


def _step_time(average: float, deviation: float, median: float, least: float, most: float, *of: Any) -> StepTime:
    """In milliseconds; `of` are number, source and note."""
    return StepTime(average * MS, deviation * MS, median * MS, least * MS, most * MS, *of)


def _performance(**known: Any) -> Performance:
    """What is given is known, and nothing else."""
    return Performance(**{**dict.fromkeys(Performance.__dataclass_fields__), **known})


def training_steps() -> Account:
    """The steps of `training_overview`: 212 ms, of which 32.5 wait for input, nearly all in one step."""
    names = tuple(map(str, range(100, 106)))
    step_ps = np.array([181, 182, 183, 361, 182, 183], np.int64) * MS
    owner_ps = np.zeros((4, 6, len(OWNERS)), np.int64)
    parts: dict[Owner, int] = {"collective_transfer": 18, "collective_wait": 4, "copy": 11, "uncounted": 2, "loss": 50}
    for owner, time in parts.items():
        owner_ps[:, :, owner_index(owner)] = time * MS
    owner_ps[:, :, owner_index("input")] = np.array([3, 3, 3, 180, 3, 3]) * MS
    owner_ps[:, :, owner_index("ideal")] = 83 * MS
    owner_ps[:, :, owner_index("host")] = step_ps - owner_ps.sum(axis=2)
    cores = tuple(f"demo-vm:{core}" for core in range(4))
    return Account(names, cores, step_ps, owner_ps, np.zeros_like(owner_ps))


def training_account() -> MeanStep:
    """The account of these steps."""
    of = training_steps()
    return mean_step(of, EMPTY_TABLE, table_rates(EMPTY_TABLE, Peaks()), op_owners(EMPTY_TABLE, Peaks()), None)


def _breakdown(duration: int) -> XprofBreakdown:
    infeed = 3 * MS if duration < 200 * MS else 180 * MS
    return XprofBreakdown(
        compute_ps=150.0 * MS,
        active_ps=152.0 * MS,
        infeed_ps=float(infeed),
        outfeed_ps=0.5 * MS,
        idle_ps=float(duration - 150.5 * MS - infeed),
        host_transfer_ps=0.0,
        all_reduce_compute_ps=18.0 * MS,
        all_reduce_sync_ps=4.0 * MS,
        sparse_core_ps=0.0,
        infeed_percent_average=100.0 * infeed / duration,
        infeed_percent_minimum=90.0 * infeed / duration,
        infeed_percent_maximum=100.0 * infeed / duration,
    )


def training_overview() -> Overview:
    """Six marked steps on 4 cores, the fourth slow because of input."""
    durations = [181 * MS, 182 * MS, 183 * MS, 361 * MS, 182 * MS, 183 * MS]
    starts = accumulate(durations, initial=0)
    steps = (
        Step(str(100 + number), number, start, duration, _breakdown(duration))
        for number, (start, duration) in enumerate(zip(starts, durations, strict=False))
    )
    ops: list[tuple[str, str, OpClass, str | None, float]] = [
        ("jit(train_step)/jvp(Model)/layer_0/mlp/dot_general", "dot_general", "compute", "convolution fusion", 41.2),
        ("jit(train_step)/transpose(jvp(Model))/layer_0/mlp/dot_general", "dot_general", "compute", "fusion", 17.5),
        ("all-reduce.7", "Unknown", "collective", "all-reduce", 12.25),
        ("jit(train_step)/jvp(Model)/layer_0/attention/softmax/exp", "exp", "vector", "loop fusion", 7.75),
        ("copy.812", "Unknown", "copy", "copy", 6.0),
        ("infeed.1", "Unknown", "host", "infeed", 4.0),
        ("jit(train_step)/adam/mul", "mul", "vector", "loop fusion", 3.5),
        ("all-gather.3", "Unknown", "collective", "all-gather", 2.0),
        ("custom-call.9", "Unknown", "unknown", None, 1.5),
        ("\x1b[31mred\x1b[0m", "mul", "vector", "loop fusion", 0.5),
    ]
    top = (
        TopOp(*op, total, int(op[-1] * 50 * MS), 24, 57142.857142857145 if op[2] == "compute" else None)
        for op, total in zip(ops, accumulate(op[-1] for op in ops), strict=True)
    )
    account = training_account()
    return Overview(
        hosts=("demo-vm",),
        environment=Environment(
            host_count=1,
            task_count=1,
            device_type="TPU v5 lite",
            device_core_count=4,
            is_training=True,
            profile_duration_ps=1_300 * MS,
            simulated=True,
        ),
        performance=_performance(
            step_time=_step_time(212.0, 73.0, 182.5, 181.0, 361.0, 6, "steps"),
            device_duty_cycle_percent=73.25,
            device_idle_percent=21.5,
            xprof_duty_cycle_percent=74.5,
            xprof_idle_percent=20.5,
            flops_utilization_percent=31.4,
            roofline_efficiency_percent=44.1,
            memory_bandwidth_utilization_percent=44.1,
        ),
        shares=(
            Share("compute", 460 * MS, 0.46),
            Share("vector", 85 * MS, 0.085),
            Share("copy", 60 * MS, 0.06),
            Share("collective", 140 * MS, 0.14),
            Share("host", 30 * MS, 0.03),
            Share("unknown", 10 * MS, 0.01),
            Share("idle", 215 * MS, 0.215),
        ),
        steps=tuple(steps),
        findings=two_findings(),
        top_ops=tuple(top),
        bottleneck=Bottleneck(
            classification="both",
            input_percent=16.4,
            output_percent=0.2,
            idle_percent=10.9,
            statement=account.verdict.statement if account.verdict else "",
            next_steps=(account.verdict.next_step,) if account.verdict else (),
        ),
        inference=None,
        op_count=1656,
        op_event_count=132_480,
        unknown={
            "performance.mxu_utilization_percent": "the host recorded no matrix unit counters",
            "performance.hbm_utilization_percent": "the host recorded no HBM counters",
            "performance.host_idle_percent": "the host recorded no framework op events",
        },
        account=account,
        warnings=("times are simulated: composed from compiler output, not measured",),
    )


def two_findings() -> tuple[Finding, ...]:
    """Steps that wait for input, measured, and a copy whose worth is an estimate."""
    return (
        Finding(
            kind="input",
            title="1 of 6 steps waits for input",
            worth_ps=30.0 * MS,
            per="step",
            worth_fraction=0.1415,
            after_ps=182.0 * MS,
            is_estimate=False,
            basis="The mean over steps and cores of the time in which a core waited for input.",
            evidence=("Step 103 waited 180 ms, half of its time.", "The other steps waited 3 ms."),
            advice="Prefetch more batches.",
            place=JumpTarget("input", "103"),
        ),
        Finding(
            kind="copy",
            title="copy.44 changes a layout",
            worth_ps=12.5 * MS,
            per="step",
            worth_fraction=0.059,
            after_ps=199.5 * MS,
            is_estimate=True,
            basis="Self time of copies a step.",
            evidence=("It takes 6.0% of op time.",),
            advice="Let producer and consumer agree on a layout.",
            place=JumpTarget("op-profile", "copy.44"),
        ),
    )


def inference_overview() -> Overview:
    """No step markers: step time inferred from module periods, no bottleneck statement."""
    page = training_overview()
    return Overview(
        hosts=("host0",),
        environment=Environment(1, 1, "TPU v6 Lite", 4, False, 98_000 * MS, False),
        performance=_performance(
            step_time=_step_time(842.0, 12.0, 841.0, 801.0, 990.0, 99, "modules", MODULE_STEPS),
            device_duty_cycle_percent=86.5,
            device_idle_percent=13.4,
            xprof_duty_cycle_percent=86.5,
            xprof_idle_percent=13.4,
            flops_utilization_percent=0.02,
            roofline_efficiency_percent=1.6,
            memory_bandwidth_utilization_percent=1.6,
        ),
        shares=(Share("copy", 960 * MS, 0.96), Share("idle", 40 * MS, 0.04)),
        steps=tuple(Step(str(n), n, n * 842 * MS, (842 + n % 5) * MS, None) for n in range(99)),
        findings=(),
        top_ops=page.top_ops[:4],
        bottleneck=Bottleneck(
            *("unknown", None, None, None),
            statement="No step markers, so waiting for input cannot be told from other idle time.",
            next_steps=("Mark steps with jax.profiler.StepTraceAnnotation.",),
        ),
        inference=None,
        op_count=23,
        op_event_count=6013,
        unknown={"bottleneck.input_percent": "no Steps line in this profile"},
        warnings=(),
    )


def serving_overview() -> Overview:
    """A server of tokens without request events: 40 runs of a decode module in two shapes, and 6 of prefill."""
    small, large = "jit_decode(7)", "jit_decode(8)"
    runs = [
        (small if at % 3 else large, 1000 * at, 1000 * at + 300 + 7 * (at % 5) + 90 * (at % 11 == 0))
        for at in range(1, 41)
    ]
    runs += [("jit_prefill(9)", 50_000 + 2000 * at, 50_000 + 2000 * at + 1500 + at) for at in range(6)]
    inputs = {small: ("tokens s32[8,1]",), large: ("tokens s32[16,1]",), "jit_prefill(9)": ("tokens s32[1,512]",)}
    page = latencies([read_requests(modules_profile([runs, runs]))], ["host0"], is_training=False)
    modules = tuple(replace(row, inputs=inputs[row.name]) for row in page.modules)
    return replace(inference_overview(), inference=replace(page, modules=modules, rows=modules))


def annotated_overview() -> Overview:
    """Of a program on the CPU that marks no steps, and annotates what answers requests."""
    host = PlaneBuilder.alone("/host:CPU")
    thread = host.line("python")
    for name, count, duration in (("request", 27, 60), ("health", 9, 10)):
        for at in range(count):
            begin = 100 * at + (70 if name == "health" else 0)
            host.event(thread, host.event_id(name), begin * 10**6, duration * 10**6)
            launch = host.event_id("PjitFunction(forward)")
            host.event(thread, launch, (begin + 2) * 10**6, 5 * 10**6)
            host.event(thread, host.event_id("dot.1"), (begin + 3) * 10**6, 2 * 10**6, hlo_op="dot.1", program_id=1)
    return overview([summary_of(host.space)])


def requests_overview() -> Overview:
    """A server with five request events of two models."""
    page = latencies([read_requests(serving_profile(five_requests()))], ["host0"], is_training=False)
    return replace(inference_overview(), inference=page)


def device_less_overview() -> Overview:
    """A CPU-only profile: nearly everything unknown, each with its reason."""
    reason = "no device plane in this profile"
    return Overview(
        hosts=("fv-az1373-146",),
        environment=Environment(1, 1, None, 0, None, 7_044 * MS, False),
        performance=_performance(),
        shares=(),
        steps=(),
        findings=(),
        top_ops=(),
        bottleneck=Bottleneck("unknown", None, None, None, "No device plane: nothing ran on an accelerator.", ()),
        inference=None,
        op_count=0,
        op_event_count=0,
        unknown={f"performance.{PERFORMANCE_KEYS.get(name, name)}": reason for name in Performance.__dataclass_fields__}
        | {f"bottleneck.{name}_percent": reason for name in ("input", "output", "idle")}
        | {"environment.device_type": reason, "environment.is_training": reason},
        warnings=("no device plane: the profile was taken on a CPU, or the device tracer was off",),
    )
