"""Profiles with performance counters, composed as XProf's source has them: none of hardware is at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.build import PlaneBuilder, StatInput
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.counters.chips import Chip, chip_of

US = 1_000_000
MS = 1_000 * US
SECOND = 1_000 * MS

CYCLES = {"TPU v6 Lite": 2_100_000_000, "TPU v7x": 2_280_000_000}
"""1.2 seconds of each."""

_CLOCKS = ("CYCLES", "CYCLE_COUNT", "SCT_CYCLES", "SCS_CYCLES")

_PARTS = {
    "MXU_BUSY_0": 0.5,
    "MXU_BUSY_1": 0.18,
    "MXU_BUSY_2": 0.32,
    "XLU_BUSY_0": 0.9,
    "XLU_BUSY_1": 0.08,
    "XLU_BUSY_2": 0.02,
    "VST_INSTRUCTION": 0.22,
    "VLD_INSTRUCTION_0": 0.5,
    "VLD_INSTRUCTION_1": 0.26,
}
"""Of the cycles, on the first chip: what a kernel might do."""

_KINDS = {
    "MATMUL_VREG_BF16": 0.051,
    "MATMUL": 0.0,
    "MATPUSH": 0.06,
    "SCALAR_ALU": 0.2,
    "VECTOR_ALU": 0.12,
    "VPU": 0.03,
    "HBM": 0.0,
}


def register_values(chip: Chip, busy: float = 1.0) -> dict[int, int]:
    """A value for each register: cycles are all alike, the rest some part of them, `busy` times that of a busy core."""
    cycles = CYCLES[chip.device_type]
    values: dict[int, int] = {}
    for node in chip.nodes:
        for name, numbers in node.registers.items():
            kind = next((part for start, part in _KINDS.items() if name.startswith(start)), 0.02)
            part = 1.0 if name in _CLOCKS else busy * _PARTS.get(name, kind)
            if name.startswith(("HBM", "ICI")):  # some channels, together some part of the peak
                part = busy * {"HBM_READ": 17.0, "HBM_WRITE": 6.5}.get(name, 0.4) / len(numbers)
            for number in numbers:
                values.setdefault(number, int(cycles * part) + (0 if name in _CLOCKS else number % 97))
    return values


def add_reading(
    plane: PlaneBuilder,
    values: Mapping[int, int],
    line: str = "counters_0",
    at_ps: int = 3 * SECOND,
    number_in_metadata: bool = False,
) -> None:
    """A line with one value of each register."""
    events = plane.line(line)
    for number, value in values.items():
        of_metadata: dict[str, StatInput] = {"performance_counter_id": number} if number_in_metadata else {}
        name = plane.event_id(f"VF_CHIP_REGISTER_{number:X}", "", **of_metadata)  # XProf goes by the number
        stats: dict[str, StatInput] = {} if number_in_metadata else {"performance_counter_id": number}
        stats |= {"performance_counter_description": f"register {number:x}", "performance_counter_sets": "issue"}
        plane.event(events, name, at_ps, 0, counter_value=value, **stats)


def device(space: XSpace, ordinal: int, device_type: str) -> PlaneBuilder:
    """A TensorCore's plane, with what XProf wants of it."""
    plane = PlaneBuilder(space, f"/device:TPU:{ordinal}", ordinal + 1)
    plane.stat("device_type_string", device_type)
    plane.stat("device_id", ordinal)
    plane.stat("global_chip_id", ordinal)
    plane.stat("peak_teraflops_per_second", 918.0)
    plane.stat("peak_hbm_bw_gigabytes_per_second", 1640.0)
    return plane


def environment(space: XSpace, captured_ps: int = 3 * SECOND) -> None:
    """How long the capture took."""
    plane = PlaneBuilder(space, "Task Environment", 99)
    plane.stat("profile_start_time", 1_700_000_000_000_000_000)
    plane.stat("profile_stop_time", 1_700_000_000_000_000_000 + captured_ps // 1000)


def with_readings(device_type: str, busy: Callable[[int], float] = lambda core: 1.0 - 0.25 * core) -> bytes:
    """Two chips whose registers were read once at the end."""
    space, chip = XSpace(), chip_of(device_type)
    assert chip is not None
    for ordinal in (0, 1):
        plane = device(space, ordinal, device_type)
        add_reading(plane, register_values(chip, busy(ordinal)), number_in_metadata=bool(ordinal))
    environment(space)
    return space.SerializeToString()


LANES = {"MXU": 72.0, "Vector ALU": 12.0, "Scalar ALU": 30.0, "Vector Load": 55.0}
"""Percent of each unit in the runs of the custom call."""


def with_custom_calls(runs: int = 3, windows: int = 40) -> bytes:
    """A core that runs a Pallas kernel now and then in 100 ms, with the use of its units by the microsecond, and power.

    The first half of each run is the scope ``acc``, where the matrix unit works twice as much as on average.
    """
    space = XSpace()
    plane = device(space, 0, "TPU v6 Lite")
    call = plane.event_id(
        "%attention.1 = f32[8] custom-call()", "attention.1", hlo_category="custom-call", program_id=7, symbol_id=11
    )
    other = plane.event_id(
        "%fusion.2 = f32[8] fusion()", "fusion.2", hlo_category="loop fusion", program_id=7, symbol_id=12
    )
    ops, module, counters, scopes = (
        plane.line(name) for name in ("XLA Ops", "XLA Modules", "_counters_", "XLA TraceMe")
    )
    plane.event(module, plane.event_id("jit_step(7)"), 0, 100 * MS)
    for run in range(runs):
        begin = (10 + 30 * run) * MS
        plane.event(ops, call, begin, windows * US)
        plane.event(ops, other, begin + windows * US, 5 * MS)
        plane.event(scopes, plane.event_id("acc"), begin, windows * US // 2)
        plane.event(scopes, plane.event_id("ep_wait_in"), begin + windows * US // 2, windows * US // 4)
        for window in range(windows):
            for unit, use in LANES.items():
                half = 1.25 if unit == "MXU" and window < windows // 2 else 0.75 if unit == "MXU" else 1.0
                stats: dict[str, StatInput] = {"% util": use * half}
                plane.event(counters, plane.event_id(unit), begin + window * US, US, **stats)
        plane.event(counters, plane.event_id("Vector Spills"), begin, US, spills=4 * run)
    for at in range(11):
        plane.event(counters, plane.event_id("HBM FW Power Meter PL2(W)"), at * 10 * MS, 0, power=60.0 + at)
    environment(space, 100 * MS)
    return space.SerializeToString()


def with_periodic() -> bytes:
    """A TPU v7x core whose registers were sampled each 10 microseconds in the middle of a capture."""
    space = XSpace()
    plane = device(space, 0, "TPU v7x")
    line = plane.line("_counters_")
    growth = {"CYCLES": 1.0, "MXU_BUSY_0": 0.4, "MXU_BUSY_1": 0.2, "MXU_BUSY_2": 0.4, "VECTOR_ALU_INSTRUCTION_0": 0.5}
    for sample in range(101):
        for name, part in growth.items():
            value = int(19_000 * sample * part) + 5
            plane.event(line, plane.event_id(f"COUNT_{name}"), (1_000 + 10 * sample) * US, 0, value=value)
    environment(space, 10 * MS)
    return space.SerializeToString()


def with_instructions() -> bytes:
    """A core whose custom call has a line of instructions a unit, with their scopes."""
    space = XSpace()
    plane = device(space, 0, "TPU v6 Lite")
    call = plane.event_id(
        "%kernel.1 = f32[8] custom-call()", "kernel.1", hlo_category="custom-call", program_id=7, symbol_id=11
    )
    plane.event(plane.line("XLA Ops"), call, 100 * US, 10 * US)
    for unit, spans in {"VALU": ((0, 4), (6, 2)), "MXU0": ((2, 6),)}.items():
        line = plane.line(f"{unit} Instructions")
        for place, (begin, lasting) in enumerate(spans):
            scope = '["kernel", "dot"]' if place == 0 else '["kernel", "store"]'
            plane.event(line, plane.event_id(f"v{unit}"), (100 + begin) * US, lasting * US, llo_scopes=scope)
    return space.SerializeToString()
