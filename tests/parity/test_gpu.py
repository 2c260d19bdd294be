"""GPUs and hosts without a device against the XProf that is installed: kernels, ops, framework ops and the overview.

Two real profiles (BERT in TensorFlow on V100s, JAX on MI300s), and made ones with kernels of all kinds of names and of
JAX on the CPU. Skipped where XProf is not installed, as `tests.parity.test_live`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import pytest

from tests.parity.ops.test_framework_ops import compare_framework_ops
from tests.parity.ops.test_op_profile import compare_op_profile
from tests.parity.ops.test_ops import ROW as OP_ROW
from tests.parity.ops.test_ops import our_rows as op_rows
from tests.parity.ops.test_roofline import ROW as ROOFLINE_ROW
from tests.parity.ops.test_roofline import our_device, xprof_device
from tests.parity.ops.test_roofline import our_rows as roofline_rows
from tests.parity.oracle.fields import Agrees, Difference, Value, compare
from tests.parity.oracle.golden import GPUS as GOLDEN
from tests.parity.oracle.golden import files_of, golden_answer
from tests.parity.oracle.live import ask
from tests.parity.oracle.op_fields import (
    ABSENT,
    NOT_HELD,
    Cells,
    absent,
    by_key,
    columns,
    explained,
    flat,
    modules_of,
    outcome,
    rows_of,
    summaries_of,
    table_fields,
)
from tests.parity.pages.test_overview import PRINTED
from tests.parity.pages.test_overview import xprof_fields as all_of_overview
from tests.support.build import PlaneBuilder
from tests.support.gpus import cpu_profile
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import HostSummary, summarise
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.streams.kernels import Kernel, merged_kernels
from tpuprof.parsers.pages.ops.framework_ops import framework_ops_page
from tpuprof.parsers.pages.ops.op_profile import GROUPINGS, Grouping
from tpuprof.parsers.pages.ops.ops import OpsPage, ops_page
from tpuprof.parsers.pages.ops.roofline import roofline_page
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.steps.model import GenericBreakdown

COST = "events of GPUs tell no FLOPs or bytes, so these are unknown; XProf estimates them with XLA's cost model"
NO_OP = (
    "what belongs to no op, a copy or a library's kernel, is a row here; XProf leaves it out and calls its time idle"
)
TEXTS = "our HLO text names operands without their types; places of calls have functions, and no columns"
ANNOTATED = "older profiles name ops in annotations, which XProf does not read: it knows no op of these GPUs"
SHARED_MEMORY = "XProf does not read how AMD's profiler and older ones write shared memory"
UNKNOWN_OP = "no framework op is known, so whether tensor cores could do it is unknown; XProf says no"
COPIES = "XProf takes MemcpyH2D for compute: it knows only names such as MemcpyHtoD"
HOST = "XProf counts nothing of the host where there are GPUs: its time is other time there"
WORDS = "our own wording"
NO_STEPS = "XProf prints 0.0 for step times that are unknown"
TRAINING = "told by the framework ops' names; XProf looks at compiled modules alone, and this profile has none"
NO_EAGER = "no event says whether its op ran eagerly, so this is unknown; XProf prints 0.0%"
NO_MODULES = "XProf lists ops of compiled modules alone, and this profile has none"
PEAKS = "of a GPU the profile gives the bandwidth of its memory: XProf works other peaks out from its clock and SMs"
NUMBERED = "XProf numbers the steps; ours are as the program named them"
OPS = "XProf does not know which ops run on other threads: the time of a step that waits for them is other time"

OVERLAP_PS = 94_240_000
"""For so long streams of the V100s ran side by side; XProf takes the time from first to last for the whole even so."""

KERNEL_ROW = "{kernel_name}/{op_name}/{grid_dim}/{block_dim}"
COPIED = ("deviceToDevice", "infeed", "outfeed")
PARTS = {
    "deviceComputeTimeMs": ("device_compute",),
    "deviceToDeviceTimeMs": ("device_to_device",),
    "deviceCollectivesTimeMs": ("device_collectives",),
    "hostComputeTimeMs": ("host_compute", "host_ops"),
    "kernelLaunchTimeMs": ("kernel_launch",),
    "infeedTimeMs": ("input",),
    "outfeedTimeMs": ("output",),
    "compileTimeMs": ("compile",),
    "otherTimeMs": ("all_other",),
}
"""XProf's parts of a step, and ours."""


@dataclass(frozen=True)
class Case:
    """A profile, XProf's answers about it, and what we make of it."""

    name: str
    answers: dict[str, Any]
    summaries: list[HostSummary]

    @property
    def ops(self) -> OpsPage:
        return ops_page(self.summaries)


def named_kernels() -> bytes:
    """A GPU of NVIDIA, with kernels named after tensor cores, of ops that these can do and of others."""
    plane = PlaneBuilder.alone("/device:GPU:0")
    plane.stat("device_vendor", "Nvidia")
    line, at = plane.line("Stream #1(Kernel)"), 0
    for name in ("volta_h884gemm", "ampere_s16816", "xmma_gemm_f16", "add_kernel", "mfma", "gemm_fusion_dot"):
        for op in ("jit(f)/dot_general", "jit(f)/add", "a/Conv2D", "a/BatchMatMulV2", "MatMul", "a/MatMul"):
            details = "regs:32 static_shared:64 dynamic_shared:1024 grid:80,1,1 block:256,2,1 occ_pct:62.5"
            event = plane.event_id(name)
            plane.event(line, event, at, 1_000_000 + at // 10, kernel_details=details, tf_op=f"{op}:", correlation_id=1)
            at += 3_000_000 + at // 1_000_000 * 100_000
    PlaneBuilder(plane.space, "/host:CPU", 2)
    return plane.space.SerializeToString()


PROFILES = {
    "V100": "profiles/gpu-v100-bert/plugins/profile/run/worker0.xplane.pb",
    "MI300": "profiles/gpu-mi300-jax/plugins/profile/run/tw003.xplane.pb",
}


def case_of(name: str, shared: Path, folder: Path) -> Case:
    if name == GOLDEN:
        tools = ("kernel_stats", "hlo_stats", "framework_op_stats", "overview_page", "input_pipeline_analyzer")
        return Case(name, {tool: golden_answer(shared, name, tool) for tool in tools}, summaries_of(shared, name))
    data = (shared / PROFILES[name]).read_bytes() if name in PROFILES else named_kernels()
    return Case(name, ask(data, folder), [summarise(Trace.from_bytes(data), "host0")])


@pytest.fixture(scope="module", params=[*PROFILES, "names", GOLDEN])
def case(request: pytest.FixtureRequest, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """One of the profiles of GPUs, with XProf's answers."""
    return case_of(request.param, shared, tmp_path_factory.mktemp("xprof"))


# --- kernels


def our_kernels(kernels: tuple[Kernel, ...]) -> dict[str, Cells]:
    """Our rows in XProf's columns and units; it rounds averages down to nanoseconds."""
    rows: list[Cells] = [
        {
            "rank": rank,
            "kernel_name": kernel.name,
            "registers_per_thread": kernel.registers,
            "shmem_bytes": kernel.shared_bytes,
            "block_dim": kernel.block,
            "grid_dim": kernel.grid,
            "occupancy_pct": None if kernel.occupancy is None else 100 * kernel.occupancy,
            "is_op_tensor_core_eligible": kernel.is_eligible,
            "is_kernel_using_tensor_core": kernel.uses_tensor_cores,
            "op_name": kernel.framework_op,
            "occurrences": kernel.occurrences,
            "total_duration_us": kernel.total_ps / 1e6,
            "avg_duration_us": kernel.total_ps // 1000 // kernel.occurrences / 1e3,
            "min_duration_us": kernel.minimum_ps / 1e6,
            "max_duration_us": kernel.maximum_ps / 1e6,
        }
        for rank, kernel in enumerate(kernels, 1)
    ]
    return by_key(rows, KERNEL_ROW)


def test_kernels(case: Case, agrees: Agrees) -> None:
    kernels = tuple(
        sorted((kernel for host in case.summaries for kernel in host.kernels), key=lambda row: -row.total_ps)
    )
    if case.name == "V100":  # XProf does not know their ops, so that it has one row where we have one for each op
        kernels = merged_kernels(replace(kernel, framework_op="", is_eligible=None) for kernel in kernels)
    theirs, ours = flat(by_key(rows_of(case.answers["kernel_stats"]), KERNEL_ROW)), flat(our_kernels(kernels))
    stated = absent(theirs, ours)
    for key, value in ours.items():
        if key.endswith("shmem_bytes") and value and not theirs.get(key):
            stated[key] = Difference(value, SHARED_MEMORY)
        if key.endswith("_eligible") and value is None:
            stated[key] = Difference(None, UNKNOWN_OP)
    result = outcome(theirs, ours, stated)
    assert result.compared == 15 * len(kernels) > 200
    agrees(result, f"kernels, GPU {case.name}")


# --- ops


def of_ops(page: OpsPage) -> OpsPage:
    """The page with the ops that XProf knows; the time of the others is idle time."""
    table = page.table
    rows = np.flatnonzero((table.program_id > 0) | np.array([bool(op) for op in table.framework_op], np.bool_))
    kept = table.take(rows)
    share = kept.self_ps / page.total_ps
    return replace(
        page,
        table=kept,
        program=tuple(page.program[row] for row in rows),
        op_class=kept.classes(),
        rates=table_rates(kept, page.peaks),
        self_fraction=share,
        cumulative_fraction=np.cumsum(share),
        idle_ps=page.total_ps - int(kept.self_ps.sum()),
    )


def estimated(theirs: Mapping[str, Value], ours: Mapping[str, Value]) -> dict[str, Difference]:
    """What XProf estimates and we leave unknown."""
    names = ("model_flop_rate", "normalized_flop_rate", "measured_flop_rate", "measured_memory_bw", "hbm_bw")
    stated = {
        key: Difference(ours[key], COST)
        for key in theirs
        if key.rpartition(": ")[2] in (*names, "operational_intensity") and key in ours
    }
    return stated | columns(theirs, ("bound_by",), Difference("Unknown", COST))


def test_hlo_ops(case: Case, agrees: Agrees) -> None:
    if case.name in NO_OPS:
        assert case.answers["hlo_stats"]["rows"] == [] and len(case.ops) == NO_OPS[case.name]
        return
    page = of_ops(case.ops)
    theirs, ours = flat(by_key(rows_of(case.answers["hlo_stats"]), OP_ROW)), flat(op_rows(page))
    ours = {key: None if key.endswith(": core_type") else value for key, value in ours.items()}  # of TPUs alone
    nothing = columns(theirs, ("core_type", "autotuned"), Difference(None, NOT_HELD))
    stated = nothing | estimated(theirs, ours) | absent(theirs, ours)
    for key in theirs:
        if key.endswith((": hlo_op_expression", ": source_info")) and key in ours:
            stated[key] = Difference(ours[key], TEXTS)
    result = outcome(theirs, ours, stated)
    assert result.compared == 29 * len(page) > 500
    assert len(case.ops) - len(page) == (case.name == "MI300")  # NO_OP
    agrees(result, f"HLO ops, GPU {case.name}")


def without_ops(page: OpsPage, overlap_ps: int = 0) -> OpsPage:
    """The page of a profile of which XProf knows no op."""
    none, total = np.zeros(0), page.total_ps - overlap_ps
    page = replace(page, table=page.table.take(none.astype(np.intp)), self_fraction=none, cumulative_fraction=none)
    rates = table_rates(page.table, page.peaks)
    return replace(page, rates=rates, op_class=(), program=(), total_ps=total, idle_ps=total)


def test_op_profile_and_roofline_without_ops(shared: Path, agrees: Agrees) -> None:
    summaries = summaries_of(shared, GOLDEN)
    ops = without_ops(ops_page(summaries))
    trees: dict[Grouping, Any] = {by: golden_answer(shared, GOLDEN, f"op_profile.{by}") for by in GROUPINGS}
    modules = modules_of(next(iter(files_of(shared, GOLDEN).values())))
    agrees(compare_op_profile(trees, ops, modules), f"op profile, GPU {GOLDEN}")
    table, diagnostics = golden_answer(shared, GOLDEN, "roofline_model")
    theirs = (
        xprof_device(table) | flat(by_key(rows_of(table), ROOFLINE_ROW)) | {"diagnostics": len(diagnostics["rows"])}
    )
    rows = our_device(ops) | {"diagnostics": 0}
    for with_infeed in (True, False):
        rows |= flat(roofline_rows(roofline_page(ops, summaries, with_infeed), ops.core_count))
    ours = {key: rows.get(key) for key in theirs}
    unknown = [key for key, value in ours.items() if value is None]
    stated = {key: Difference(None, PEAKS if key.startswith("device") else NO_MODULES) for key in unknown}
    agrees(compare(theirs, ours, stated), f"roofline, GPU {GOLDEN}")


def test_framework_ops(case: Case, agrees: Agrees) -> None:
    whole = case.ops
    ops = of_ops(whole)
    if case.name in NO_OPS:
        ops = without_ops(whole, OVERLAP_PS if case.name == "V100" else 0)
    page = framework_ops_page(ops, [host.host_ops for host in case.summaries])
    result = compare_framework_ops(case.answers["framework_op_stats"], page, ops, more=estimated)
    assert result.compared > (30 if case.name == GOLDEN else 250)
    agrees(result, f"framework ops, GPU {case.name}")


# --- the overview


def our_overview(page: Overview) -> dict[str, Value]:
    """What XProf's page of GPUs and CPUs says, out of ours."""
    performance, env = page.performance, page.environment
    steps = [(step, step.breakdown) for step in page.steps if isinstance(step.breakdown, GenericBreakdown)]
    fields: dict[str, Value] = {
        "device_compute_16bit_percent": performance.bits16_percent,
        "device_compute_32bit_percent": performance.bits32_percent,
        "device_op_time_eager_percent": performance.eager_device_percent,
        "host_op_time_eager_percent": performance.eager_host_percent,
        "device_tf_op_percent": performance.device_op_percent,
        "host_tf_op_percent": performance.host_op_percent,
        "device_type": env.device_type,
        "device_core_count": str(env.device_core_count),
        "is_training": str(bool(env.is_training)).lower(),
        "host_count": str(env.host_count),
        "input_conclusion": page.bottleneck.statement,
    }
    time = performance.step_time
    for name in ("average", "standard_deviation", "minimum", "maximum"):
        fields[f"steptime_ms_{name}"] = None if time is None else getattr(time, f"{name}_ps") / 1e9
    for row, (step, spent) in enumerate(steps):
        fields[f"step.{row}.stepnum"] = step.name
        fields[f"step.{row}.stepTimeMs"] = step.duration_ps / 1e9
        for column, parts in PARTS.items():
            fields[f"step.{row}.{column}"] = sum(getattr(spent, f"{part}_ps") for part in parts) / 1e9
    for row, op in enumerate(page.top_ops):
        fields[f"top.{row}.operation"], fields[f"top.{row}.category"] = op.name, op.category
        fields[f"top.{row}.selfTimePercent"] = op.self_time_percent / 100
    return fields


def means_of(fields: Mapping[str, Value]) -> dict[str, Value]:
    """Mean and standard deviation of each part over the steps."""
    found: dict[str, Value] = {}
    for column in PARTS:
        times = [float(value or 0) for key, value in fields.items() if key.endswith(f".{column}")]
        name = re.sub("([A-Z])", lambda capital: f"_{capital[0].lower()}", column)
        found[f"{name}_avg"] = sum(times) / len(times) if times else 0.0
        found[f"{name}_sdv"] = stdev(times) if len(times) > 1 else 0.0
    return found


def xprofs_overview(answer: Any, ours: Mapping[str, Value]) -> dict[str, Value]:
    """The same fields of XProf's page; what it prints beside them is constant, or sums of these."""
    fields = table_fields(answer[0], "top") | table_fields(answer[1], "step") | answer[2]["p"]
    kept = {key: value for key, value in fields.items() if key in ours}
    assert {key for key in fields if key.startswith("step.")} - set(kept) == {
        key for key in fields if key.endswith(".tooltip")
    }
    return with_numbers(kept)


def with_numbers(fields: Mapping[str, Value]) -> dict[str, Value]:
    """Times of steps as numbers."""
    return {key: float(str(at)) if key.startswith("step.") and "Ms" in key else at for key, at in fields.items()}


def both_pages(answers: Mapping[str, Any]) -> dict[str, Value]:
    """Every field of XProf's overview and of its page of the input, which have one table of steps."""
    fields = all_of_overview(answers["overview_page"])
    for prefix, table in zip(
        ("max", "step", "op", "advice", "diagnostic"), answers["input_pipeline_analyzer"], strict=True
    ):
        again = table_fields(table, prefix)
        assert all(fields.get(key, value) == value for key, value in again.items())
        fields |= again
    return with_numbers(fields)


NO_OPS = {"V100": 1356, GOLDEN: 18}
"""The profiles of which XProf knows no op (`ANNOTATED`, `NO_MODULES`), and how many we know."""

STATED: dict[str, dict[str, str]] = {
    "V100": {
        "device_tf_op_percent": ANNOTATED,
        "host_tf_op_percent": ANNOTATED,
        "is_training": TRAINING,
        "step.0.deviceComputeTimeMs": COPIES,
        "step.0.kernelLaunchTimeMs": HOST,
        "step.0.infeedTimeMs": HOST,
        "step.0.outfeedTimeMs": COPIES,
        "step.0.otherTimeMs": HOST,
        "input_conclusion": WORDS,
    },
    "MI300": {
        "device_op_time_eager_percent": NO_EAGER,
        "host_op_time_eager_percent": NO_EAGER,
        "device_compute_16bit_percent": NO_STEPS,
        "device_compute_32bit_percent": NO_STEPS,
        **{f"steptime_ms_{name}": NO_STEPS for name in ("average", "standard_deviation", "minimum", "maximum")},
        "input_conclusion": WORDS,
    },
    GOLDEN: {
        "device_op_time_eager_percent": NO_EAGER,
        "host_op_time_eager_percent": NO_EAGER,
        "device_tf_op_percent": NO_MODULES,
        "host_tf_op_percent": NO_MODULES,
        **{f"step.{row}.stepnum": NUMBERED for row in range(4)},
        "input_conclusion": WORDS,
    },
}


def copies_as_compute(ours: Mapping[str, Value]) -> dict[str, Value]:
    """The overview by XProf's rules: copies are compute, and what the host does is other time."""
    found: dict[str, Value] = {}
    whole = own = 0.0
    for key, value in ours.items():
        step, _, column = key.rpartition(".")
        if column == "deviceComputeTimeMs":
            part = {name: float(ours[f"{step}.{name}TimeMs"] or 0) for name in (*COPIED, "kernelLaunch", "other")}
            found |= {f"{step}.{name}TimeMs": 0.0 for name in (*COPIED, "kernelLaunch")}
            found[key] = float(value or 0) + sum(part[name] for name in COPIED)
            found[f"{step}.otherTimeMs"] = part["other"] + part["kernelLaunch"]
            whole, own = whole + float(found[key] or 0), own + float(value or 0)
    bits16 = float(ours["device_compute_16bit_percent"] or 0) * own / (whole or 1)
    found |= means_of({**ours, **found})
    return found | {"device_compute_16bit_percent": bits16, "device_compute_32bit_percent": 100 - bits16}


@pytest.mark.parametrize("name", [*PROFILES, GOLDEN])
def test_overview(name: str, shared: Path, tmp_path: Path, agrees: Agrees) -> None:
    case = case_of(name, shared, tmp_path)
    page = overview(case.summaries)
    if name == "MI300":  # NO_OP
        kept = [op for op in page.top_ops if op.name != "__amd_rocclr_copyBuffer"]
        whole = sum(op.self_time_ps for op in kept)
        kept = [replace(op, self_time_percent=100 * op.self_time_ps / whole) for op in kept]
        page = replace(page, top_ops=tuple(kept))
    ours = our_overview(page)
    theirs = xprofs_overview(case.answers["overview_page"], ours)
    if name == GOLDEN:
        theirs = both_pages(case.answers)
        ours = dict.fromkeys(theirs) | ours | means_of(ours)
        ours["latencies"] = int(page.inference is not None)
        ours["task_count"] = f"{page.environment.task_count} (num tasks per host = 1)"
    stated = explained(theirs, ours, copies_as_compute(ours), f"{COPIES}; {HOST}") if name == GOLDEN else {}
    for key in (key for key, value in ours.items() if value is None and key in theirs):
        is_count = key.endswith(("_us", "_utilization_percent", "diagnostics"))
        stated[key] = Difference(None, ABSENT if is_count else PRINTED)
    stated |= {key: Difference(ours[key], why) for key, why in STATED[name].items()}
    result = compare(theirs, ours, stated)
    assert not result.needless
    assert result.compared > 20
    agrees(result, f"overview, GPU {name}")


def test_a_host_without_a_device(tmp_path: Path, agrees: Agrees) -> None:
    inside = [("load", 5, 30), ("IteratorGetNext", 45, 60), ("PjitFunction(step)", 60, 90)]
    data = cpu_profile(8, inside, [("dot.1", 70, 85), ("add.2", 85, 95)]).SerializeToString()
    answers = ask(data, tmp_path)
    page = overview([summarise(Trace.from_bytes(data), "host0")])
    ours = our_overview(page)
    theirs = xprofs_overview(answers["overview_page"], ours)
    names = ("device_tf_op", "host_tf_op", "device_op_time_eager", "host_op_time_eager")
    none = (*(f"{name}_percent" for name in names), "device_compute_16bit_percent", "device_compute_32bit_percent")
    stated = {key: Difference(None, ABSENT) for key in none}
    stated["input_conclusion"] = Difference(page.bottleneck.statement, WORDS)
    for row in range(6):
        for column in ("hostComputeTimeMs", "otherTimeMs"):
            stated[f"step.{row}.{column}"] = Difference(ours[f"step.{row}.{column}"], OPS)
        assert ours[f"step.{row}.hostComputeTimeMs"] == pytest.approx(0.06)
    result = compare(theirs, ours, stated)
    assert len(page.steps) == 6 and result.compared > 70
    assert answers["hlo_stats"]["rows"] == [] and len(page.top_ops) == 2
    agrees(result, "overview, live host without a device")
