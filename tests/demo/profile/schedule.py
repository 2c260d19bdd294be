"""One run of a module on several cores: which op events there are, and how long each takes.

Order and nesting are the compiler's schedule; durations are its cycle estimates over the clock, or where it gives none
the time that FLOPs, bytes and links need at the device's peaks. Cores wait for each other in collectives, and for their
own asynchronous copies where these are awaited.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from tests.demo.profile import hlo_cost
from tests.demo.profile.hlo_cost import Instruction
from tests.demo.profile.hlo_module import Module, elements, leaves, shape_bytes
from tests.demo.profile.noise import Noise

Times = npt.NDArray[np.int64]
Kind = Literal["run", "sync", "start", "done", "enter", "leave"]

QUANTUM_PS = 1 << 14
"""Every time on a core is a multiple of this (16 ns): the two low bytes of such a varint are empty, and compress."""

GAP_PS = QUANTUM_PS
ISSUE_PS = 4 * QUANTUM_PS
FLOOR_PS = 24 * QUANTUM_PS
LAUNCH_PS = 140 * QUANTUM_PS
LINK_LATENCY_PS = 120 * QUANTUM_PS
STEADY_PS = 3_000 * QUANTUM_PS
"""Ops shorter than this take the same time in every run."""


@dataclass(frozen=True, slots=True)
class Device:
    """Peaks of a chip, per second; the vector memory's follow from three loads and one store of 4 KiB a cycle."""

    kind: str = "TPU v5 Lite"
    clock_hz: float = 1.5e9
    flops: float = 197e12
    hbm_bytes: float = 819e9
    vmem_read_bytes: float = 1.5e9 * 3 * 4096
    vmem_write_bytes: float = 1.5e9 * 4096
    link_bytes: float = 45e9
    hbm_capacity: int = int(15.75 * 2**30)


V5E = Device()


@dataclass(frozen=True, slots=True)
class Op:
    """An instruction that leaves events.

    Attributes:
        duration_ps: of one undisturbed run; floor_ps: what the device's peaks allow at best.
        transfer_ps: time on the wire or the copy engine (collectives, asynchronous ops).
        is_estimate: the duration is the compiler's.
        groups: cores that take part in a collective together.
    """

    instruction: Instruction
    category: str
    flops: int
    traffic: hlo_cost.Traffic
    duration_ps: int
    floor_ps: int
    transfer_ps: int
    is_estimate: bool
    groups: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """A step of the simulation: what happens with op number `op`; `event` is the number of the event it leaves, and
    `other` that of the event it belongs to (a loop's own, an asynchronous op's start)."""

    kind: Kind
    op: int
    event: int
    other: int = -1


@dataclass(slots=True)
class Template:
    """The events of one run of a module, in the order they begin; `event_ops` has each event's op."""

    module: Module
    ops: list[Op] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    event_ops: list[int] = field(default_factory=list)
    pairs: list[tuple[int, int]] = field(default_factory=list)


_SYNCHRONOUS = {b"all-reduce", b"all-gather", b"all-to-all", b"reduce-scatter"}


def template(module: Module, device: Device = V5E) -> Template:
    """Walks a module's schedule, loops unrolled."""
    out = Template(module)
    numbers: dict[int, int] = {}

    def number(instruction: Instruction) -> int:
        if instruction.id not in numbers:
            numbers[instruction.id] = len(out.ops)
            out.ops.append(_op(module, instruction, device))
        return numbers[instruction.id]

    def event(op: int) -> int:
        out.event_ops.append(op)
        return len(out.event_ops) - 1

    def walk(instructions: list[Instruction]) -> None:
        open_starts: dict[bytes, int] = {}
        for instruction in instructions:
            if not _leaves_events(instruction):
                continue
            op = number(instruction)
            mine = event(op)
            partner = _partner(module, instruction)
            if instruction.opcode == b"while":
                out.actions.append(Action("enter", op, mine))
                for _ in range(module.trip_count(instruction)):
                    walk(module.scheduled(module.body(instruction)))
                out.actions.append(Action("leave", op, mine))
            elif partner is not None and partner in open_starts:
                start = open_starts.pop(partner)
                out.pairs.append((start, mine))
                out.actions.append(Action("done", op, mine, start))
            elif _is_start(instruction):
                open_starts[instruction.name] = mine
                out.actions.append(Action("start", op, mine))
            elif out.ops[op].groups:
                out.actions.append(Action("sync", op, mine))
            else:
                out.actions.append(Action("run", op, mine))

    walk(module.scheduled(module.entry))
    return out


def _leaves_events(instruction: Instruction) -> bool:
    if instruction.opcode in hlo_cost.FREE or instruction.opcode == b"partition-id":
        return False
    if instruction.opcode == b"custom-call":
        return instruction.custom_call_target not in (b"AllocateBuffer", b"ConcatBitcast")
    # Scalars are worked on beside the vector unit, between the ops that a profile shows.
    alone = max((elements(leaf) for leaf in leaves(instruction.shape)), default=0) <= 1
    return not alone or instruction.opcode in (b"fusion", b"while") or instruction.opcode in _SYNCHRONOUS


def _is_start(instruction: Instruction) -> bool:
    return instruction.opcode.endswith(b"-start") or instruction.name.startswith(b"async-collective-start")


def _partner(module: Module, instruction: Instruction) -> bytes | None:
    if instruction.name.startswith(b"async-collective-done"):
        return instruction.name.replace(b"-done", b"-start")
    return module.operands(instruction)[0].name if instruction.opcode.endswith(b"-done") else None


def _op(module: Module, instruction: Instruction, device: Device) -> Op:
    category = hlo_cost.category(module, instruction)
    transfer = _transfer_ps(module, instruction, device)
    moves = transfer > 0 or instruction.opcode.endswith(b"-done") or instruction.name.startswith(b"async-coll")
    is_loop = instruction.opcode == b"while"
    flops = 0 if is_loop else hlo_cost.flops(module, instruction)
    # What an asynchronous op moves while others run is no traffic of the moment in which it is issued or awaited.
    is_async = _is_start(instruction) or _partner(module, instruction) is not None
    traffic = hlo_cost.Traffic() if is_loop or is_async else hlo_cost.traffic(module, instruction)
    floor = max(flops / device.flops, traffic.hbm / device.hbm_bytes) * 1e12
    cycles = hlo_cost.estimated_cycles(instruction)
    if cycles and not moves:
        duration = cycles / device.clock_hz * 1e12
    else:
        duration = ISSUE_PS if moves or is_loop else max(floor, FLOOR_PS)
    return Op(
        instruction=instruction,
        category=category,
        flops=flops,
        traffic=traffic,
        duration_ps=round(max(duration, floor)),
        floor_ps=int(np.ceil(floor)),
        transfer_ps=transfer,
        is_estimate=bool(cycles) and not moves,
        groups=_groups(module, instruction),
    )


def _groups(module: Module, instruction: Instruction) -> tuple[tuple[int, ...], ...]:
    source = instruction
    if instruction.opcode == b"fusion" and b"all-reduce-scatter" in module.called(instruction)[0].name:
        (source,) = (i for i in module.called(instruction)[0].instructions if i.opcode == b"all-reduce")
    elif instruction.opcode not in _SYNCHRONOUS:
        return ()
    return tuple(tuple(group) for group in module.replica_groups(source))


def _transfer_ps(module: Module, instruction: Instruction, device: Device) -> int:
    """Time on links between chips or on the copy engine; 0 of an op that moves nothing of the kind."""
    largest = max((shape_bytes(leaf) for leaf in leaves(instruction.shape)), default=0)
    groups = _groups(module, instruction)
    if groups:
        members = len(groups[0])
        sent = (members - 1) / members
        size = sum(shape_bytes(leaf) for leaf in leaves(instruction.shape))
        if instruction.opcode == b"all-reduce":
            size *= 2
        elif instruction.opcode == b"fusion":
            size *= members
        return round(size * sent / device.link_bytes * 1e12) + LINK_LATENCY_PS
    if instruction.name.startswith(b"async-collective-start"):
        return round(largest / 2 / device.link_bytes * 1e12) + LINK_LATENCY_PS
    if instruction.opcode == b"collective-permute-start":
        return round(largest / device.link_bytes * 1e12) + LINK_LATENCY_PS
    if instruction.opcode in (b"copy-start", b"async-start"):
        moved = [leaf for leaf in leaves(instruction.shape) if shape_bytes(leaf) > 8]
        return round(shape_bytes(moved[-1]) / (0.85 * device.hbm_bytes) * 1e12) + FLOOR_PS
    return 0


@dataclass(frozen=True, slots=True)
class Runs:
    """Simulated runs.

    Attributes:
        start, duration: of every event, [event, run, core], in picoseconds since the module began on that core.
        total: how long each run takes; skew: how much later than the first a core may begin; [run, core].
    """

    start: Times
    duration: Times
    total: Times
    skew: Times


def simulate(plan: Template, core_speed: npt.NDArray[np.float64], skew: Times, noise: Noise) -> Runs:
    """Plays a module on several cores.

    Args:
        core_speed: factor on every duration of a core; a slow one has more than 1.
        skew: when each core begins in each run, [run, core], in picoseconds.
    """
    runs, cores = skew.shape
    events = len(plan.event_ops)
    start = np.zeros((events, runs, cores), np.int64)
    duration = np.zeros_like(start)
    now = skew + LAUNCH_PS
    ready = np.zeros_like(start)
    engines = {"copy": now.copy(), "link": now.copy()}
    mood = noise.normals(1.0, 0.003, (runs, 1))
    for action in plan.actions:
        op = plan.ops[action.op]
        here = action.event
        if action.kind == "leave":
            duration[here] = now - start[here]
            continue
        start[here] = now
        if action.kind == "enter":
            now = now + ISSUE_PS
            continue
        if action.kind == "start":
            engine = "link" if op.category.startswith(("collective", "custom")) else "copy"
            ready[here] = np.maximum(engines[engine], now) + op.transfer_ps
            engines[engine] = ready[here]
        length = _length(op, (runs, cores), core_speed, mood, noise)
        if action.kind == "sync":
            length = _meet(now, op, cores) - now + round(op.transfer_ps * 1.02)
        elif action.kind == "done":
            length = np.maximum(ready[action.other] - now, 0) + ISSUE_PS
        duration[here] = -(-length // QUANTUM_PS) * QUANTUM_PS
        now = now + duration[here] + GAP_PS
    return Runs(start - skew, duration, now - skew, skew)


def _length(
    op: Op, shape: tuple[int, int], speed: npt.NDArray[np.float64], mood: npt.NDArray[np.float64], noise: Noise
) -> Times:
    if op.duration_ps < STEADY_PS:
        return np.full(shape, max(op.duration_ps, op.floor_ps), np.int64)
    length = op.duration_ps * noise.normals(1.0, 0.002, shape) * mood * speed
    return np.maximum(length, op.floor_ps).astype(np.int64)


def _meet(now: Times, op: Op, cores: int) -> Times:
    """When the last core of each group arrives; groups repeat for every block of chips of the module."""
    size = sum(len(group) for group in op.groups)
    arrived = now.copy()
    for block in range(0, cores, size):
        for group in op.groups:
            members = [block + core for core in group if block + core < cores]
            if members:
                arrived[:, members] = now[:, members].max(axis=1, keepdims=True)
    return arrived
