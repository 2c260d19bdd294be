"""Evidence made by hand: steps by class of op, ops with their texts and counts, and what the host did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tests.support.build import PlaneBuilder, StatInput, trace_of
from tpuprof.parsers.base.op_class import OP_CLASSES, OpClass
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.formats.proto.xplane_pb2 import MemoryAccessBreakdown
from tpuprof.parsers.ops.core.sums import op_sums
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.roofline import WORK_COUNT, table_rates
from tpuprof.parsers.ops.table import EMPTY_TABLE, OpTable
from tpuprof.parsers.pages.findings.budget import budget
from tpuprof.parsers.pages.findings.finding import Evidence, Finding
from tpuprof.parsers.pages.findings.why_slow import look_for_findings
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner, op_owners
from tpuprof.parsers.steps.aligned import AlignedSteps, InputSource
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.step_account import tpu_account
from tpuprof.parsers.steps.times import HOST_TRANSFER, INFEED, PART_COUNT

US = 1_000_000  # picoseconds
PEAKS = Peaks(flops_per_second=100e12, hbm=1000e9)
PROGRAM = 7

Times = float | Sequence[float] | NDArray[np.float64]
"""Microseconds: for all, by step, or by core and step."""


def grid(
    classes: Mapping[OpClass, Times],
    cores: int = 2,
    steps: int = 10,
    waits: Times = 0,
    input_source: InputSource | None = None,
    host_transfer: Times = 0,
    hosts: int = 1,
    source: StepSource = "steps",
    all_reduce: Sequence[Sequence[tuple[int, int, int]]] | None = None,
    collectives: Mapping[str, Times] | None = None,
    barriers: Times = 0,
) -> AlignedSteps:
    """Steps one after the other, as long as their classes together.

    Args:
        all_reduce: step, id and duration by core.
        collectives: those with a name; all others are one.
        barriers: the part of idle time in which cores wait at barriers.
    """

    def cells(times: Times) -> NDArray[np.int64]:
        return np.broadcast_to(np.asarray(times, np.float64) * US, (cores, steps)).astype(np.int64)

    class_ps = np.stack([cells(classes.get(name, 0)) for name in OP_CLASSES], axis=2)
    part_ps = np.zeros((cores, steps, PART_COUNT), np.int64)
    part_ps[:, :, INFEED], part_ps[:, :, HOST_TRANSFER] = cells(waits), cells(host_transfer)
    duration = class_ps.sum(axis=2)
    nothing = np.zeros((cores, steps, WORK_COUNT))
    named = [cells(of) for of in (collectives or {}).values()]
    rest = np.maximum(cells(classes.get("collective", 0)) - sum(named, np.zeros((cores, steps), np.int64)), 0)
    times = np.stack([*named, np.maximum(rest, 1) if rest.any() else rest], axis=2)  # the last to come takes part too
    reduces = all_reduce or [[] for _ in range(cores)]
    start = np.append(0, np.cumsum(duration.max(axis=0))[:-1])
    return AlignedSteps(
        names=tuple(str(step) for step in range(steps)),
        source=source,
        is_numbered=source == "steps",
        start_ps=start,
        core_start_ps=np.tile(start, (cores, 1)),
        core_end_ps=start + duration,
        duration_ps=duration,
        part_ps=part_ps,
        class_ps=class_ps,
        owner_ps=_owners(class_ps, part_ps, input_source, cells(barriers)),
        between_ps=np.zeros((cores, steps, len(OWNERS)), np.int64),
        work=nothing,
        feed_work=nothing,
        all_reduce=tuple(
            tuple(np.array([entry[at] for entry in one], np.int64) for at in range(3))  # type: ignore[misc]
            for one in reduces
        ),
        collective_names=(*(collectives or {}), ""),
        collective_ps=times,
        hops=np.zeros((cores, 3, times.shape[2]), np.int64),
        slow_ops=(),
        core_names=tuple(f"host{core * hosts // cores}:{core}" for core in range(cores)),
        hosts=np.arange(cores) * hosts // cores,
        input_source=input_source,
        sparse_core=None,
        dropped=0,
        incomplete=(),
        lost=(),
        are_lost=False,
    )


_OWNER_OF: Mapping[str, Owner] = {
    "compute": "loss",
    "vector": "loss",
    "unknown": "uncounted",
    "copy": "copy",
    "collective": "collective_transfer",
    "host": "host_transfer",
    "idle": "between_ops",
}


def _owners(
    class_ps: NDArray[np.int64],
    part_ps: NDArray[np.int64],
    source: InputSource | None,
    barriers: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The account of these steps, in which computing ops are all loss."""
    out = np.zeros((*class_ps.shape[:2], len(OWNERS)), np.int64)
    for column, name in enumerate(OP_CLASSES):
        out[:, :, OWNERS.index(_OWNER_OF[name])] += class_ps[:, :, column]
    out[:, :, OWNERS.index("barrier")] += barriers
    out[:, :, OWNERS.index("between_ops")] -= barriers
    holder = OWNERS.index("between_ops" if source == "host" else "host_transfer")
    waits = np.minimum(part_ps[:, :, INFEED], out[:, :, holder])
    out[:, :, holder] -= waits
    out[:, :, OWNERS.index("input")] += waits
    return out


def _with_ops(steps: AlignedSteps, rows: OpTable) -> AlignedSteps:
    """The same, the time of each class divided among owners as that of its ops is."""
    owners, out = op_owners(rows, PEAKS), steps.owner_ps.copy()
    kinds, self_ps = np.array(rows.classes()), rows.self_ps.astype(np.float64)
    for name in set(kinds.tolist()) - {"idle"}:
        holder, ps = OWNERS.index(_OWNER_OF[name]), self_ps * (kinds == name) * ~owners.are("input")
        if ps.sum():
            left = np.minimum(steps.class_ps[:, :, OP_CLASSES.index(name)], out[:, :, holder])
            of_owner = np.bincount(owners.owner, ps * (1 - owners.ideal), len(OWNERS))
            of_owner[OWNERS.index("ideal")] += float((ps * owners.ideal).sum())
            parts = np.rint(left[:, :, None] * of_owner / of_owner.sum()).astype(np.int64)
            parts[:, :, int(of_owner.argmax())] += left - parts.sum(axis=2)
            out[:, :, holder] -= left
            out += parts
    return replace(steps, owner_ps=out)


@dataclass(frozen=True)
class Op:
    """One row of an op table: time in microseconds over all occurrences, work of one occurrence."""

    name: str
    category: str
    time: float
    occurrences: int = 20
    flops: int = 0
    hbm: int = 0
    text: str = ""
    scope: str = ""
    duplicate: str = ""


def table(ops: Sequence[Op]) -> OpTable:
    """An op table read from a plane with such ops."""
    if not ops:
        return EMPTY_TABLE
    plane = PlaneBuilder.alone("/device:TPU:0")
    line = plane.line("XLA Ops")
    at = 0
    for number, op in enumerate(ops):
        traffic = MemoryAccessBreakdown()
        traffic.memory_accessed.add(operation_type=1, memory_space=1, bytes_accessed=op.hbm)
        stats: dict[str, StatInput] = {
            "program_id": PROGRAM,
            "symbol_id": number + 1,
            "hlo_category": op.category,
            "flops": op.flops,
            "bytes_accessed": op.hbm,
            "tf_op": f"jit(step)/{op.scope or op.name}:",
            "source": "model.py:1",
            "memory_access_breakdown": traffic.SerializeToString(),
        }
        if op.duplicate:
            stats["deduplicated_name"] = op.duplicate
        metadata = plane.event_id(op.text or f"%{op.name} = f32[8] op()", op.name, **stats)
        for _ in range(op.occurrences):
            plane.event(line, metadata, at, round(op.time * US / op.occurrences))
            at += round(op.time * US / op.occurrences)
    return op_sums(plane.read()).table


def product(m: int, k: int, n: int, kind: int = 16, precision: int = 0) -> bytes:
    """A program with one product, ``dot.1``; types 16 bf16, 11 f32."""
    proto = hlo_pb2.HloProto()
    main = proto.hlo_module.computations.add(name=b"main", id=1)
    for number, dims in ((1, (m, k)), (2, (k, n))):
        shape = hlo_pb2.ShapeProto(element_type=kind, dimensions=dims)
        main.instructions.add(name=b"p.%d" % number, opcode=b"parameter", id=number, shape=shape)
    shape = hlo_pb2.ShapeProto(element_type=kind, dimensions=(m, n))
    one = main.instructions.add(name=b"dot.1", opcode=b"dot", id=3, operand_ids=[1, 2], shape=shape)
    one.dot_dimension_numbers.lhs_contracting_dimensions[:] = [1]
    one.dot_dimension_numbers.rhs_contracting_dimensions[:] = [0]
    one.precision_config.operand_precision[:] = [precision, precision]
    return proto.SerializeToString()


def modules(proto: bytes) -> HloModules:
    """The programs of a profile that holds one, `PROGRAM`."""
    plane = PlaneBuilder.alone("/host:metadata")
    stats: dict[str, StatInput] = {"Hlo Proto": proto, "program_id": PROGRAM}
    plane.event_id(f"jit_step({PROGRAM})", "", **stats)
    return HloModules.of(trace_of(plane.space))


def with_program(of: Evidence, fused: str, array: str, *lines: str) -> Evidence:
    """The same with its program: what an op fuses, and the lines of the entry, whose products are of plain matrices."""
    entry = (f"ENTRY %main (x: {array}) -> {array} {{", *(f"  {line}" for line in lines), "}")
    proto = read_module_text("jit_step", "\n".join(("HloModule jit_step", fused, *entry)).splitlines())
    for computation in proto.hlo_module.computations:
        for each in computation.instructions:
            if each.opcode == b"dot":
                each.dot_dimension_numbers.lhs_contracting_dimensions[:] = [1]
                each.dot_dimension_numbers.rhs_contracting_dimensions[:] = [0]
    return replace(of, modules=(modules(proto.SerializeToString()),))


def evidence(steps: AlignedSteps | None, ops: Sequence[Op] = (), total: float = 1000.0, cores: int = 2) -> Evidence:
    """Evidence of steps and ops; the rest by `dataclasses.replace`. ``total``: a core's time in microseconds."""
    rows = table(ops)
    return Evidence(
        grid=_with_ops(steps, rows) if steps is not None and len(rows) else steps,
        table=rows,
        rates=table_rates(rows, PEAKS),
        peaks=PEAKS,
        device_type="TPU v5p",
        total_ps=round(total * US * cores),
        core_count=cores,
    )


def findings(evidence: Evidence) -> tuple[Finding, ...]:
    """What is found, by detectors none of which fails."""
    looked = look_for_findings(evidence, budget(evidence, tpu_account(evidence.grid)))
    assert not looked.failed
    return looked.found


def found(kind: str, evidence: Evidence) -> Finding | None:
    """The finding of a kind."""
    return next((finding for finding in findings(evidence) if finding.kind == kind), None)


def the(kind: str, evidence: Evidence) -> Finding:
    """The finding of a kind, which must be there."""
    finding = found(kind, evidence)
    assert finding is not None, [one.kind for one in findings(evidence)]
    return finding


def with_(evidence: Evidence, **fields: object) -> Evidence:
    """The same with other fields."""
    return replace(evidence, **fields)  # type: ignore[arg-type]
