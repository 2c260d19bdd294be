"""Which hardware counters measure what of a TPU's units: their numbers, and what a unit can do in a cycle.

A counter's number is the address of its register. The registers of a core stand in a block, at the same distances from
its begin in each core of a generation. The addresses, and how counters make the use of a unit, are facts that XProf's
source states for TPU v6e and v7x (`xprof/utils/tpu_counter_ids_*.h`, `xprof/convert/tpu_generic_utilization_utils.cc`
and `xplane_to_utilization_viewer.cc`). For other generations it states none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Literal

from tpuprof.parsers.base.record import dataclass

Group = Literal["scalar", "vector", "matrix", "load/store", "cross-lane", "memory", "interconnect", "sparse", "clock"]
"""What a unit is of, in the order of the screen."""

Measure = Literal["instructions", "cycles", "bytes", "ps"]

Core = Literal["TensorCore", "SparseCore", "chip"]

CYCLES = "CYCLES"
"""The register that counts a core's cycles."""

_HBM_BEAT, _ICI_FLIT = 32, 128
"""Bytes that a beat of HBM and a flit of the interconnect move."""

_ICI_PER_CYCLE = 294.947368421
"""Bytes that XProf takes the interconnect to move in a cycle, each way: 560.4 GB/s at the 1.9 GHz of TPU v7x.

It has the same figure for TPU v6e.
"""

_GIB = float(1 << 30)
_TILES = 16


@dataclass(frozen=True, slots=True)
class HardwareUnit:
    """A figure that counters make.

    Attributes:
        name: as XProf calls it.
        group: what it is of.
        measure: what its counters count.
        terms: registers, and what one count of each adds to what was achieved.
        per_cycle: what the unit can do in a cycle.
        clock: the register that counts the cycles.
        meaning: one sentence.
        is_share: it is a part of the cycles or bytes, and no unit that has a peak.
    """

    name: str
    group: Group
    measure: Measure
    terms: tuple[tuple[str, float], ...]
    per_cycle: float
    clock: str
    meaning: str
    is_share: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A core of a chip, or what all of them share.

    Attributes:
        core, number: which one.
        registers: the numbers of the counters that each register stands for; their values add up.
        units: what these measure.
    """

    core: Core
    number: int
    registers: Mapping[str, tuple[int, ...]]
    units: tuple[HardwareUnit, ...]


@dataclass(frozen=True, slots=True)
class Chip:
    """A generation of TPUs whose counters are known.

    Attributes:
        device_type: as profiles name it.
        frequency_hz: nominal frequency of a TensorCore.
        nodes: of one chip.
    """

    device_type: str
    frequency_hz: float
    nodes: tuple[Node, ...]


def chip_of(device_type: str | None) -> Chip | None:
    """The generation that a profile names; None where its counters are not known."""
    return {"TPU v6 Lite": _v6e, "TPU v7x": _v7x}.get(device_type or "", lambda: None)()  # `pages.counters` names them


def register_names(chip: Chip | None) -> dict[int, str]:
    """The registers that are known, by their numbers, each with its core."""
    names: dict[int, str] = {}
    for node in chip.nodes if chip is not None else ():
        where = {"TensorCore": "TC", "SparseCore": "SC", "chip": "chip"}[node.core]
        for name, numbers in node.registers.items():
            names |= {number: f"{where} {node.number} {name}" for number in numbers if number not in names}
    return names


def tensor_units(chip: Chip) -> tuple[HardwareUnit, ...]:
    """The units of a TensorCore that its own registers measure, without those of memory."""
    first = next(node for node in chip.nodes if node.core == "TensorCore")
    return tuple(unit for unit in first.units if unit.group not in ("memory", "clock"))


# --- units


def _of(registers: Iterable[str]) -> tuple[tuple[str, float], ...]:
    return tuple((register, 1.0) for register in registers)


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}_{number}" for number in range(count)]


def _parallel(kind: str, group: Group, name: str, clock: str) -> list[HardwareUnit]:
    """How many of the two units of a kind were busy: none, one, both, and on average."""
    words = {"MXU": "matrix units", "XLU": "cross-lane units"}[kind]
    busy = _numbered(f"{kind}_BUSY", 3)
    shares = {
        f"No {kind} Busy": f"both {words} idled",
        f"1 {kind} Busy": f"one of the {words} worked",
        f"2 {kind}{name} Busy": f"both {words} worked",
    }
    units = [
        HardwareUnit(unit, group, "cycles", _of([register]), 1, clock, f"cycles in which {said}", True)
        for (unit, said), register in zip(shares.items(), busy, strict=True)
    ]
    average, both = ((busy[1], 0.5), (busy[2], 1.0)), f"cycles in which the {words} worked, on average of both"
    return [*units, HardwareUnit(f"Avg {kind} Busy", group, "cycles", average, 1, clock, both)]


_MATRIX_CYCLES = {
    "LMR_I4": 2,
    "LMR_I8": 2,
    "LMR_BF16": 4,
    "VREG_I4": 8,
    "VREG_I8": 8,
    "VREG_F8": 8,
    "VREG_BF16": 8,
    "VREG_F32": 4,
}
"""Cycles that a matrix unit takes for an instruction, by where its operand is and of which type."""


def _products(kinds: Iterable[str], units: Iterable[int]) -> tuple[tuple[str, float], ...]:
    return tuple((f"MATMUL_{kind}_MXU_{unit}", float(_MATRIX_CYCLES[kind])) for unit in units for kind in kinds)


def _tensor_core(clock: str, kinds: Mapping[str, tuple[str, ...]], cross_lane: int) -> tuple[HardwareUnit, ...]:
    """The units of a TensorCore.

    Args:
        kinds: instructions of the matrix units by type, as XProf sums them up.
        cross_lane: cycles that a cross-lane unit takes for an instruction.
    """
    return (*_scalar_and_vector(clock), *_matrix(clock, kinds), *_cross_lane(clock, cross_lane))


def _issued(name: str, group: Group, registers: Iterable[str], most: float, clock: str, words: str) -> HardwareUnit:
    """A unit that is measured by its instructions."""
    return HardwareUnit(name, group, "instructions", _of(registers), most, clock, words)


def _scalar_and_vector(clock: str) -> list[HardwareUnit]:
    operations = [
        name for kind in ("FADD", "FMUL", "MISC", "INT", "FMAC") for name in _numbered(f"VPU_VALU_{kind}_OPS", 4)
    ]
    by_operation = "operations of the vector units by what they do, of four a cycle"
    scalar, vector = _numbered("SCALAR_ALU_INSTRUCTION", 2), _numbered("VECTOR_ALU_INSTRUCTION", 4)
    stores, loads = ["VST_INSTRUCTION"], _numbered("VLD_INSTRUCTION", 2)
    return [
        _issued("Scalar Unit", "scalar", scalar, 2, clock, "scalar instructions, of two a cycle"),
        _issued("Vector ALUs", "vector", vector, 4, clock, "vector instructions, of four a cycle"),
        _issued("VPU Utilization", "vector", operations, 4, clock, by_operation),
        _issued("Vmem Stores", "load/store", stores, 1, clock, "stores to VMEM, of one a cycle"),
        _issued("Vmem Loads", "load/store", loads, 2, clock, "loads from VMEM, of two a cycle"),
    ]


def _matrix(clock: str, kinds: Mapping[str, tuple[str, ...]]) -> list[HardwareUnit]:
    every = tuple(kind for some in kinds.values() for kind in some)
    units = _parallel("MXU", "matrix", "", clock)
    for number in (0, 1):
        words = f"cycles that matrix unit {number} takes for its instructions"
        units.append(HardwareUnit(f"MXU{number}", "matrix", "cycles", _products(every, [number]), 1, clock, words))
    for name, some in kinds.items():
        words = f"cycles that both matrix units take for {name} products"
        units.append(HardwareUnit(f"MXU {name}", "matrix", "cycles", _products(some, (0, 1)), 2, clock, words))
    words = "cycles in which weights are pushed into the matrix units"
    pushes = _of(_numbered("MATPUSH_CYCLES_MXU", 2))
    return [*units, HardwareUnit("MXU matpush", "matrix", "cycles", pushes, 2, clock, words)]


def _cross_lane(clock: str, cycles: int) -> list[HardwareUnit]:
    kinds = ("PACKED_XLU", "ROTATE_PERMUTE_INSTRUCTION_XLU", "ROTATE_PERMUTE_SET_INSTRUCTION_XLU", "TRANSPOSE_XLU")
    units = _parallel("XLU", "cross-lane", "s", clock)
    for number in (0, 1):
        words = f"transposes, rotations and permutations of cross-lane unit {number}, of one in {cycles} cycles"
        registers = [f"{kind}_{number}" for kind in kinds]
        units.append(_issued(f"XLU{number}", "cross-lane", registers, 1 / cycles, clock, words))
    return units


def _memory(per_cycle: float) -> tuple[HardwareUnit, ...]:
    """HBM's bandwidth, and what of the traffic is reads and writes; `per_cycle` in bytes."""
    reads, writes = ("HBM_READ", float(_HBM_BEAT)), ("HBM_WRITE", float(_HBM_BEAT))
    words = "bytes read from HBM and written to it, of its bandwidth"
    return (
        HardwareUnit("HBM Rd+Wr", "memory", "bytes", (reads, writes), per_cycle, CYCLES, words),
        HardwareUnit("HBM Read Ratio", "memory", "bytes", (reads,), 0, "", "reads, of the traffic with HBM", True),
        HardwareUnit("HBM Write Ratio", "memory", "bytes", (writes,), 0, "", "writes, of the traffic with HBM", True),
    )


def _links(clock: str) -> tuple[HardwareUnit, ...]:
    """Traffic over the interconnect of the chip."""
    return tuple(
        HardwareUnit(
            f"ICI ({way})",
            "interconnect",
            "bytes",
            ((f"ICI_{way.upper()}", float(_ICI_FLIT)),),
            _ICI_PER_CYCLE,
            clock,
            f"bytes of {way.lower()}s over the chip's interconnect; the peak is XProf's, one for both generations",
        )
        for way in ("Read", "Write")
    )


_SCALAR_SLOTS, _VECTOR_SLOTS = ("S0", "S1", "Smisc"), ("V0", "V1", "V2", "VLD", "VST", "VEX", "VRES")


def _sparse_core() -> tuple[HardwareUnit, ...]:
    """The units of a SparseCore: scalar and vector slots of its tiles, and its sequencer."""
    of_tiles = [
        ("TEC Scalar Issue", "TEC_SCALAR_ISSUE", "scalar instructions of the tiles"),
        *(
            (
                f"TEC Scalar Issue: {slot} slot",
                f"TEC_{slot}_INSTRUCTION",
                f"instructions in the tiles' scalar slot {slot}",
            )
            for slot in _SCALAR_SLOTS
        ),
        ("SC Vector Issue", "VECTOR_ISSUE", "vector instructions of the tiles"),
        *(
            (f"SC Vector Issue: {slot} Slot", f"{slot}_INSTRUCTION", f"instructions in the tiles' vector slot {slot}")
            for slot in _VECTOR_SLOTS
        ),
    ]
    of_sequencer = [
        ("SCS Scalar Issue", "SCALAR_ISSUE", "scalar instructions of the sequencer"),
        *(
            (f"SCS: {slot} Slot", f"{slot}_INSTRUCTION", f"instructions in the sequencer's slot {slot}")
            for slot in _SCALAR_SLOTS
        ),
    ]
    clocks = ((of_tiles, _TILES, "SCT_CYCLES", "cycle and tile"), (of_sequencer, 1, "SCS_CYCLES", "cycle"))
    return tuple(
        HardwareUnit(name, "sparse", "instructions", _of([register.upper()]), most, clock, f"{said}, of one a {each}")
        for units, most, clock, each in clocks
        for name, register, said in units
    )


# --- registers


def _block(base: int, offsets: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    return {name: (base + offset,) for name, offset in offsets.items()}


def _spread(bases: Iterable[int], offsets: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Registers that several blocks have, added up."""
    places = list(bases)
    return {name: tuple(base + offset for base in places) for name, offset in offsets.items()}


def _run(first: int, names: Iterable[str]) -> dict[str, int]:
    """Registers one after the other, 8 bytes each."""
    return {name: first + 8 * place for place, name in enumerate(names)}


def _pairs(first: int, names: Iterable[str]) -> dict[str, int]:
    return _run(first, (f"{name}_{unit}" for name in names for unit in (0, 1)))


_COMMON = {
    CYCLES: 0x8,
    **_pairs(0x58, ["SCALAR_ALU_INSTRUCTION"]),
    **_run(0x100, _numbered("VECTOR_ALU_INSTRUCTION", 4)),
    "VST_INSTRUCTION": 0x120,
    **_pairs(0x130, ["VLD_INSTRUCTION"]),
    **_pairs(0x188, ["MATMUL_VREG_F32_MXU", "MATMUL_VREG_BF16_MXU", "MATMUL_VREG_F8_MXU"]),
    **_run(
        0x6A0,
        (name for kind in ("FADD", "FMUL", "MISC", "INT", "FMAC") for name in _numbered(f"VPU_VALU_{kind}_OPS", 4)),
    ),
}
_LATE = ("ROTATE_PERMUTE_INSTRUCTION_XLU", "ROTATE_PERMUTE_SET_INSTRUCTION_XLU", "TRANSPOSE_XLU", "PACKED_XLU")


def _late(shift: int) -> dict[str, int]:
    """The registers behind those of the matrix units' instructions, whose number differs by generation."""
    return {
        **_run(0x1C8 + shift, _numbered("MXU_BUSY", 3)),
        **_pairs(0x1F0 + shift, ["MATPUSH_CYCLES_MXU"]),
        **_pairs(0x210 + shift, _LATE),
        **_run(0x250 + shift, _numbered("XLU_BUSY", 3)),
    }


_HBM_READS, _HBM_WRITES = (0x38, 0x40), (0x18, 0x20, 0x28, 0x30)


def _channels(bases: Iterable[int]) -> dict[str, tuple[int, ...]]:
    """Responses to reads, and whole and partial writes, of the pseudo channels of HBM."""
    places = list(bases)
    ways = (("HBM_READ", _HBM_READS), ("HBM_WRITE", _HBM_WRITES))
    return {name: tuple(base + offset for base in places for offset in offsets) for name, offsets in ways}


_TEC = _run(0x10, ["TEC_SCALAR_ISSUE", "", "TEC_S0_INSTRUCTION", "TEC_S1_INSTRUCTION", "TEC_SMISC_INSTRUCTION"])
_TAC = _run(
    0x10, ["VECTOR_ISSUE", *(f"{slot}_INSTRUCTION" for slot in ("V0", "V1", "V2", "VLD", "VST", "VRES", "VEX"))]
)
_SCS = {
    "SCS_CYCLES": 0x8,
    "SCALAR_ISSUE": 0x10,
    **_run(0x20, ["S0_INSTRUCTION", "S1_INSTRUCTION", "SMISC_INSTRUCTION"]),
}


def _shifted(offsets: Mapping[str, int], by: int) -> dict[str, int]:
    return {name: offset + by for name, offset in offsets.items() if name}


@cache
def _v6e() -> Chip:
    frequency = 1.75e9
    kinds = {
        "BF16": ("LMR_BF16", "VREG_F8", "VREG_BF16", "VREG_F32"),
        "I8": ("LMR_I8", "VREG_I8"),
        "I4": ("LMR_I4", "VREG_I4"),
    }
    more = ["MATMUL_VREG_I8_MXU", "MATMUL_VREG_I4_MXU", "MATMUL_LMR_BF16_MXU", "MATMUL_LMR_I8_MXU", "MATMUL_LMR_I4_MXU"]
    core = _block(0xC2290000, {**_COMMON, **_pairs(0x1B8, more), **_late(0x40)})
    hbm = _channels(0xB4014000 + 0x200000 * channel for channel in range(32))
    ici = {"ICI_READ": (0xB00720B0, 0xB00720E8), "ICI_WRITE": (0xB0072120, 0xB0072158)}
    units = (*_tensor_core(CYCLES, kinds, 4), *_memory(1525.5 * _GIB / frequency))
    nodes = [
        Node("TensorCore", 0, {**core, **hbm}, units),
        Node("chip", 0, {**ici, CYCLES: core[CYCLES]}, _links(CYCLES)),
    ]
    for number in (0, 1):
        tiles = [0xD0080000 + 0x2A00000 * number + 0x200000 * tile for tile in range(_TILES)]
        of_tiles = _spread(tiles, {**_shifted(_TEC, 0x1D8), **_shifted(_TAC, 0x3B0)})
        clock = {"SCT_CYCLES": (tiles[0] + 0x8,)}
        sequencer = _block(0xD2890000 + 0x2A00000 * number, _SCS)
        nodes.append(Node("SparseCore", number, {**of_tiles, **clock, **sequencer}, _sparse_core()))
    return Chip("TPU v6 Lite", frequency, tuple(nodes))


_DIE = 0x20000000
"""From the registers of a chip's first die to those of its second."""

_THROTTLE = {
    "CYCLE_COUNT": 0x8,
    "CLOCKS_SKIPPED": 0x10,
    "EXT_THROTTLE_CLOCKS_SKIPPED": 0x28,
    "LDIDT_DROOP_CLOCKS_SKIPPED": 0x40,
}


@cache
def _v7x() -> Chip:
    frequency, clock = 1.9e9, "CYCLE_COUNT"
    kinds = {"BF16": ("LMR_BF16", "VREG_BF16", "VREG_F32"), "E4M3 + E5M2": ("VREG_F8",)}
    reasons = {
        "Clocks Skipped": "cycles that the core's clock skipped",
        "Ext Throttle Clocks Skipped": "cycles skipped because of external throttling",
        "LDIDT Droop Clocks Skipped": "cycles skipped because the voltage drooped",
    }
    skipped = tuple(
        HardwareUnit(name, "clock", "cycles", _of([name.upper().replace(" ", "_")]), 1, clock, said, True)
        for name, said in reasons.items()
    )
    units = (*_tensor_core(clock, kinds, 1), *_memory(3433.0 * _GIB / frequency), *skipped)
    nodes: list[Node] = []
    for die in (0, 1):
        core = _block(0xA668A000 + _DIE * die, {**_COMMON, **_pairs(0x1B8, ["MATMUL_LMR_BF16_MXU"]), **_late(0)})
        throttle = _block(0xA9B94000 + _DIE * die, _THROTTLE)
        hbm = _channels(0xA1461400 + _DIE * die + 0x20000 * channel for channel in range(64))
        nodes.append(Node("TensorCore", die, {**core, **throttle, **hbm}, units))
    ici = {
        name: tuple(0xC1065000 + 0x8000 * link + offset for link in (1, 2, 3, 4))
        for name, offset in (("ICI_READ", 0x120), ("ICI_WRITE", 0x158))
    }
    nodes.append(Node("chip", 0, {**ici, clock: nodes[0].registers[clock]}, _links(clock)))
    for die in (0, 1):
        for number in (0, 1):
            place = _DIE * die + 0x1A00000 * number
            scalar = [0xA6726000 + place + 0x100000 * tile for tile in range(_TILES)]
            vector = [0xA7724000 + place + 0x80000 * tile for tile in range(_TILES)]
            registers = {**_spread(scalar, _shifted(_TEC, 0)), **_spread(vector, _shifted(_TAC, 0))}
            registers |= {"SCT_CYCLES": (scalar[0] + 0x8,), **_block(0xA7F61000 + place, _SCS)}
            nodes.append(Node("SparseCore", 2 * die + number, registers, _sparse_core()))
    return Chip("TPU v7x", frequency, tuple(nodes))
