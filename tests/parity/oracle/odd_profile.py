"""Profiles with what the demo has not: a scaled clock, DMA stalls, custom calls, work of loops, ops named region,
energies, code that the host runs in the middle; and ops that are offloaded to SparseCores.
"""

from __future__ import annotations

from tests.support.build import PlaneBuilder, StatInput
from tests.support.made.op_pages import traffic
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

US = 1_000_000
STEP = 1000 * US

PEAKS = {
    "peak_teraflops_per_second": 100.0,
    "peak_hbm_bw_gigabytes_per_second": 1000.0,
    "peak_sram_rd_bw_gigabytes_per_second": 5000.0,
    "peak_sram_wr_bw_gigabytes_per_second": 4000.0,
    "peak_vmem_rd_bw_gigabytes_per_second": 9000.0,
    "peak_vmem_wr_bw_gigabytes_per_second": 8000.0,
}


OPS: dict[str, tuple[str, dict[str, StatInput]]] = {
    "while.1": ("while", {"flops": 123_456_789, "bytes_accessed": 99_999}),
    "fusion.1": (
        "convolution fusion",
        {
            "flops": 2_000_000_000,
            "model_flops": 1_900_000_000,
            "bytes_accessed": 60_000_000,
            "memory_access_breakdown": traffic(
                (1, 1, 20_000_000), (2, 1, 10_000_000), (1, 2, 9_000_000), (2, 2, 1_000_000), (1, 3, 15_000_000)
            ),
            "tf_op": "jit(f)/a/dot_general:",
            "source": "a.py:3",
            "source_stack": "a.py:3\nb.py:4",
        },
    ),
    "fusion.2": ("loop fusion", {"deduplicated_name": "fusion.2", "tf_op": "jit(f)/a/add:"}),
    "fusion.3": ("loop fusion", {"deduplicated_name": "fusion.2", "tf_op": "jit(f)/a/add:"}),
    "call.1": (
        "custom-call",
        {
            "flops": 5_000_000,
            "bytes_accessed": 70_000,
            "memory_access_breakdown": traffic((1, 1, 70_000)),
            "tf_op": "jit(f)/custom:",
        },
    ),
    "call.2": ("custom-call", {}),
    "region_0.5": ("non-fusion elementwise", {"flops": 10}),
    "infeed.1": ("infeed", {}),
    "multiply.1": (
        "loop fusion",
        {
            "program_id": 9,
            "flops": 77,
            "bytes_accessed": 1_000_000,
            "memory_access_breakdown": traffic((2, 1, 1_000_000)),
            "tf_op": "jit(g)/x[y=2]/mul:Mul",
        },
    ),
    "copy.remat": (
        "copy",
        {
            "bytes_accessed": 500,
            "memory_access_breakdown": traffic((2, 1, 500)),
            "tf_op": "jit(f)/rematted_computation/add:",
        },
    ),
    "bitcast.3": ("data formatting", {"memory_access_breakdown": traffic((1, 5, 700), (2, 4, 300))}),
    "outfeed.1": ("outfeed", {}),
    "send-done.1": ("host send-done", {"tf_op": "jit(f)/io/send:"}),
    "add.9": ("non-fusion elementwise", {"tf_op": "outside/Recv:XlaRecvFromHost"}),
    "call-start.1": ("async-start", {"tf_op": "jit(f)/embed/gather:"}),
    "call-start.2": ("async-start", {"tf_op": "jit(f)/embed/scatter:"}),
    "gather_fusion.1": ("loop fusion", {"bytes_accessed": 4096, "tf_op": "jit(f)/embed/gather:"}),
    "sc_add.2": ("non-fusion elementwise", {"flops": 16}),
}
"""Category and stats of each op; program 7 unless they say otherwise."""

EVENTS: tuple[tuple[str, int, int, dict[str, StatInput]], ...] = (
    ("while.1", 0, 500, {}),
    ("fusion.1", 10, 100, {"Time Scale Multiplier": 0.8, "dma_stall_duration_ps": 7 * US}),
    ("fusion.2", 150, 50, {"Time Scale Multiplier": 0.5}),
    ("fusion.3", 210, 60, {}),
    ("call.1", 300, 40, {}),
    ("call.2", 350, 20, {}),
    ("region_0.5", 380, 5, {}),
    ("infeed.1", 510, 30, {}),
    ("multiply.1", 550, 70, {}),
    ("copy.remat", 630, 10, {}),
    ("bitcast.3", 650, 10, {"dma_stall_duration_ps": 2 * US}),
    ("outfeed.1", 700, 9, {}),
    ("send-done.1", 720, 5, {"vdd_energy_j": 0.25}),
    ("add.9", 730, 5, {"vdd_energy_j": 1.5}),
)
"""What happens in each step: op, start and duration in microseconds, stats of the event."""

OFFLOADS: tuple[tuple[str, int, int, dict[str, StatInput]], ...] = (
    ("gather_fusion.1", 0, 20, {"vdd_energy_j": 0.5}),
    ("sc_add.2", 5, 4, {}),
)
"""What a SparseCore runs for each call: op, start in it and duration in microseconds, stats of the event."""


def _op(plane: PlaneBuilder, name: str) -> int:
    category, of_op = OPS[name]
    known: dict[str, StatInput] = {"program_id": 7, "symbol_id": list(OPS).index(name) + 1, **of_op}
    attributes = ", is_host_transfer=true" if name.startswith("send-done") else ""
    return plane.event_id(f"%{name} = f32[8] {name}(){attributes}", name, hlo_category=category, **known)


def odd_profile() -> bytes:
    """Two cores, three steps."""
    space = XSpace()
    for core in range(2):
        plane = PlaneBuilder(space, f"/device:TPU:{core}", core + 1)
        plane.stat("device_type_string", "TPU v5 lite")
        for name, value in PEAKS.items():
            plane.stat(name, value)
        steps, ops = plane.line("Steps"), plane.line("XLA Ops")
        for step in range(3):
            plane.event(steps, plane.event_id(str(step)), step * STEP, STEP)
            for name, begin, length, stats in EVENTS:
                metadata = _op(plane, name)
                # an op that starts where a step ends is the next step's here, and both steps' in XProf
                start = step * STEP + begin * US + 10
                plane.event(ops, metadata, start, (length + core + step * (name == "fusion.1")) * US, **stats)
    return space.SerializeToString()


def offload_profile(chips: int = 1, runs: int = 1) -> bytes:
    """Chips with a SparseCore beside their core, which runs the ops of two calls of the core, and one op of nobody.

    Args:
        runs: how often the core makes both calls. Of several runs or chips XProf shows what the first has begun.
    """
    space = XSpace()
    for chip in range(chips):
        core = PlaneBuilder(space, f"/device:TPU:{chip}", chip + 1)
        beside = PlaneBuilder(space, f"/device:TPU:{chip} SparseCore 0", chip + 11)
        for name, value in PEAKS.items():
            core.stat(name, value)
        ops = core.line("XLA Ops")
        modules, sparse_ops = beside.line("Sparse Core Modules"), beside.line("Sparse Core Ops")
        core.event(ops, _op(core, "fusion.1"), 0, 100 * US)
        for run, call in enumerate(("call-start.1", "call-start.2") * runs):
            begin, number = (100 + 200 * run) * US, 1000 + run
            started: dict[str, StatInput] = {"offload_core_id": 0, "tc_offload_start_id": number}
            core.event(ops, _op(core, call), begin, 2 * US, **started)
            beside.event(modules, beside.event_id("jit_sparse(9)"), begin + US, 40 * US, **started)
            for stat in modules.events[-1].stats:  # XProf reads these as unsigned, those of the core's op as signed
                stat.uint64_value = stat.int64_value
            for name, late, length, stats in OFFLOADS:
                beside.event(sparse_ops, _op(beside, name), begin + (2 + late) * US, (length + run) * US, **stats)
        beside.event(sparse_ops, _op(beside, "sc_add.2"), 90 * US, US)
    return space.SerializeToString()
