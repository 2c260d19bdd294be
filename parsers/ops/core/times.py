"""How long the largest ops take on each core: the same op on the same work shows which cores differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.ops.table import OpTable

MOST_OPS = 96
"""How many ops of a host are kept by core; the others take little time each."""


@dataclass(frozen=True, slots=True)
class CoreOpTimes:
    """Self time of ops by core, summed over their occurrences.

    Attributes:
        cores: ``host:ordinal`` of each core.
        ops: program id and name of each op.
        self_ps, occurrences: int64[cores, ops]; 0 where a core did not run an op.
    """

    cores: tuple[str, ...]
    ops: tuple[tuple[int, str], ...]
    self_ps: Int64s
    occurrences: Int64s


def core_op_times(cores: Sequence[str], tables: Sequence[OpTable], merged: OpTable) -> CoreOpTimes:
    """The ops with most self time over some cores, by core.

    Args:
        tables: each core's ops.
        merged: the ops of all of them.
    """
    largest = np.argsort(-merged.self_ps, kind="stable")[:MOST_OPS]
    ops = tuple((int(merged.program_id[row]), merged.name[row]) for row in largest.tolist())
    number = {op: at for at, op in enumerate(ops)}
    out = np.zeros((2, len(tables), len(ops)), np.int64)
    for core, table in enumerate(tables):
        keys = zip(table.program_id.tolist(), table.name, strict=True)
        at = np.array([number.get(key, len(ops)) for key in keys], np.int64)
        for which, column in enumerate((table.self_ps, table.occurrences)):
            out[which, core] = sum_by_key(at, column, len(ops) + 1)[:-1]
    return CoreOpTimes(tuple(cores), ops, out[0], out[1])


def join_core_ops(parts: Sequence[CoreOpTimes]) -> CoreOpTimes:
    """The cores of several hosts; ops that some hosts do not list are left out."""
    if len(parts) == 1:
        return parts[0]
    shared = set(parts[0].ops).intersection(*(part.ops for part in parts[1:])) if parts else set()
    ops = tuple(op for op in parts[0].ops if op in shared) if parts else ()
    columns = [[part.ops.index(op) for op in ops] for part in parts]
    none = np.zeros((0, len(ops)), np.int64)
    return CoreOpTimes(
        tuple(core for part in parts for core in part.cores),
        ops,
        np.concatenate([none, *(part.self_ps[:, at] for part, at in zip(parts, columns, strict=True))]),
        np.concatenate([none, *(part.occurrences[:, at] for part, at in zip(parts, columns, strict=True))]),
    )
