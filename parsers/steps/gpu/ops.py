"""The ops that GPUs ran: kernels added up by HLO op, and HLO ops by framework op (XProf's device op database).

A kernel belongs to the HLO op that its stat `hlo_op` names in program `program_id`. As in XProf, a kernel whose program
is not in the profile is left out. Without that stat it belongs to the op that its stat `tf_op` names. An op that stems
from no framework op stands for itself. (XProf counts kernels of several programs that follow each other in one step for
the first program where their HLO ops have the same name; here each keeps its own.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, numbered
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.ops.framework_op import UNKNOWN_TYPE, parse_framework_op
from tpuprof.parsers.ops.host.events import HostThread, SparseStat

_HLO_OP, _PROGRAM, _FRAMEWORK_OP = OP_STATS = ("hlo_op", "program_id", "tf_op")

_INSIDE = "::"
"""Separates HLO ops that hold one another; the innermost comes last."""


@dataclass(frozen=True, slots=True)
class GpuOp:
    """A framework op, or an HLO op that stems from none.

    Attributes:
        name: such as ``jit(step)/dot_general``.
        type: such as ``dot_general``; `UNKNOWN_TYPE` for an HLO op.
        occurrences: how often its most frequent HLO op occurs on all GPUs, as XProf counts.
        self_ps: self time over all GPUs.
    """

    name: str
    type: str
    occurrences: int
    self_ps: int


@dataclass(frozen=True, slots=True)
class _Op:
    """An op that a kernel names; `framework_op` is its full name, empty for an HLO op without one."""

    program: int
    name: str
    framework_op: str


def gpu_ops(gpus: Sequence[tuple[Plane, Sequence[HostThread]]], modules: HloModules) -> tuple[GpuOp, ...]:
    """Ops of GPUs by self time; ties go by name.

    Args:
        gpus: each GPU with its streams, decoded with `OP_STATS`.
    """
    counts: Counter[_Op] = Counter()
    times: Counter[_Op] = Counter()
    for plane, streams in gpus:
        for stream in streams:
            for op, count, time in (*_of_hlo(plane, stream, modules), *_of_framework(plane, stream)):
                counts[op] += count
                times[op] += time
    rows: dict[str, GpuOp] = {}
    for op, count in counts.items():
        parsed = parse_framework_op(op.framework_op) if op.framework_op else None
        name, kind = (parsed.name, parsed.type) if parsed else (op.name, UNKNOWN_TYPE)
        known = rows.get(name, GpuOp(name, kind or UNKNOWN_TYPE, 0, 0))
        rows[name] = GpuOp(name, known.type, max(known.occurrences, count), known.self_ps + times[op])
    return tuple(sorted(rows.values(), key=lambda row: (-row.self_ps, row.name)))


def _of_hlo(plane: Plane, stream: HostThread, modules: HloModules) -> Iterator[tuple[_Op, int, int]]:
    """Ops, occurrences and times of the kernels of HLO ops."""
    stat = stream.stat(_HLO_OP)
    number, names = _distinct(plane, stat)
    program, has = stream.stat(_PROGRAM).integers_at(stat.rows)
    programs, which = np.unique(program[has], return_inverse=True)
    for key, count, time in _summed(stream, stat.rows[has], number[has] * len(programs) + which):
        name = names[key // len(programs)].rsplit(_INSIDE, 1)[-1]
        of_program = int(programs[key % len(programs)])
        module = modules.module(of_program) if name else None
        proto = module.instruction_proto(name) if module is not None else None
        if proto is not None:
            framework_op = text(proto.metadata.op_name)
            full_name = f"{framework_op}:{text(proto.metadata.op_type)}" if framework_op else ""
            yield _Op(of_program, name, full_name), count, time


def _of_framework(plane: Plane, stream: HostThread) -> Iterator[tuple[_Op, int, int]]:
    """Ops, occurrences and times of the kernels that name a framework op, but no HLO op."""
    stat, by_hlo = stream.stat(_FRAMEWORK_OP), stream.stat(_HLO_OP)
    number, names = _distinct(plane, stat)
    of_hlo, hlo_names = _distinct(plane, by_hlo)
    is_hlo = np.isin(stat.rows, by_hlo.rows[np.array([*map(bool, hlo_names)], np.bool_)[of_hlo]])
    chosen = ~is_hlo & np.array([*map(bool, names)], np.bool_)[number]
    kernels, which = np.unique(stream.metadata_id[stat.rows[chosen]], return_inverse=True)
    for key, count, time in _summed(stream, stat.rows[chosen], number[chosen] * len(kernels) + which):
        full_name = names[key // len(kernels)]
        row = plane.event_metadata.row(int(kernels[key % len(kernels)]))
        kernel = plane.event_metadata.name(row) if row is not None else ""
        yield _Op(0, f"{parse_framework_op(full_name).name}/{kernel}", full_name), count, time


def _distinct(plane: Plane, stat: SparseStat) -> tuple[Int64s, list[str]]:
    """The text of each event as a number, and the texts; each reference is resolved once."""
    column = stat.values
    number = numbered(column.kind, column.value, *([column.length] if len(column.length) else []))
    first = np.unique(number, return_index=True)[1].astype(np.int64)
    return number, [value or "" for value in plane.texts(column.take(first))]


def _summed(stream: HostThread, rows: Int64s, keys: Int64s) -> list[tuple[int, int, int]]:
    """Keys, occurrences and times of events."""
    distinct_keys, which = np.unique(keys, return_inverse=True)
    times = sum_by_key(which, (stream.end_ps - stream.start_ps)[rows], len(distinct_keys))
    counts = np.bincount(which, minlength=len(distinct_keys))
    return list(zip(distinct_keys.tolist(), counts.tolist(), times.tolist(), strict=True))
