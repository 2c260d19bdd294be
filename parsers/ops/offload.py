"""Ops that SparseCores ran for ops of the TensorCore beside them, such as the embeddings of an offloaded call.

The module runs of a SparseCore and the TensorCore ops that began them have the same two stats, a core and a number. As
in XProf (`xplane_to_op_metrics_db.cc`), an op belongs to the module run that it lies in. Different from XProf, which
shows what the first run of a TensorCore op on the first core began, all runs on all cores count; and numbers tell runs
apart on one chip only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, interval_index, nesting_order, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import self_times
from tpuprof.parsers.formats.xspace.trace import Line, Plane
from tpuprof.parsers.ops.core import ops as core_ops
from tpuprof.parsers.ops.device import device_ordinal, is_sparse_core, is_tensor_core
from tpuprof.parsers.ops.table import OpTable, merge_tables

STARTED_BY = ("offload_core_id", "tc_offload_start_id")
"""Stats that a module run of a SparseCore has in common with the TensorCore op that began it."""

_Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Marked:
    """The events of a line that have both stats: int64[n] each, in the order of their start."""

    metadata_id: Int64s
    start_ps: Int64s
    end_ps: Int64s
    core: Int64s
    number: Int64s

    def pairs(self) -> list[_Key]:
        """Both stats of each event."""
        return list(zip(self.core.tolist(), self.number.tolist(), strict=True))


def offloaded_ops(planes: Sequence[Plane]) -> OpTable:
    """Time and work of the ops that SparseCores ran for TensorCore ops (`OpTable.parent`); empty without such ops."""
    cores = [plane for plane in planes if is_tensor_core(plane) and len(plane.stat_ids(STARTED_BY)) == len(STARTED_BY)]
    sparse = [plane for plane in planes if is_sparse_core(plane)] if cores else []
    tables = []
    for core in cores:
        beside = [plane for plane in sparse if device_ordinal(plane) == device_ordinal(core)]
        parents = _parents(core) if beside else {}
        tables += [table for plane in beside for table in _tables(plane, parents)]
    return merge_tables(tables)


def sparse_ops(planes: Sequence[Plane]) -> OpTable:
    """Time and work of all ops of SparseCores; `OpTable.parent` is empty where it is unknown what each ran for."""
    cores = [plane for plane in planes if is_tensor_core(plane) and len(plane.stat_ids(STARTED_BY)) == len(STARTED_BY)]
    parents = {device_ordinal(core): _parents(core) for core in cores}
    beside = [plane for plane in planes if is_sparse_core(plane)]
    return merge_tables(
        [table for plane in beside for table in _tables(plane, parents.get(device_ordinal(plane), {}), with_all=True)]
    )


def _parents(core: Plane) -> dict[_Key, str]:
    """The name of the op that has each pair of stats."""
    metadata = core.event_metadata
    named: dict[int, str] = {}
    parents: dict[_Key, str] = {}
    for line in core.lines:
        marked = _marked(line) if line.name == core_ops.OPS_LINE else None
        for key, number in zip(marked.pairs(), marked.metadata_id.tolist(), strict=True) if marked is not None else ():
            if number not in named:
                row = metadata.row(number)
                named[number] = core_ops.op_name(metadata, -1 if row is None else row, number)
            parents.setdefault(key, named[number])
    return parents


def _marked(line: Line) -> _Marked:
    events = line.events(stats=(*core_ops.DEVICE_SPAN, *STARTED_BY), places=False)
    start, end = core_ops.device_spans(events, *core_ops.event_spans(line, events))
    columns = [events.stats.get(name) for name in STARTED_BY]
    both = np.zeros(len(events), np.bool_)
    if columns[0] is not None and columns[1] is not None:
        both = columns[0].is_number & columns[1].is_number
    chosen = np.flatnonzero(both)
    chosen = chosen[np.argsort(start[chosen], kind="stable")]
    values = [np.zeros(0, np.int64) if column is None else column.integers()[chosen] for column in columns]
    return _Marked(events.metadata_id[chosen].astype(np.int64), start[chosen], end[chosen], *values)


def _tables(plane: Plane, parents: dict[_Key, str], with_all: bool = False) -> list[OpTable]:
    """The ops of a SparseCore by the TensorCore op that they ran for.

    Args:
        with_all: whether to include, under an empty name, ops whose parent is unknown.
    """
    runs = [_marked(line) for line in plane.lines if line.name == core_ops.SPARSE_MODULES_LINE]
    if with_all:
        runs = [_joined(runs)]
    return [
        _table(plane, line, run, parents, with_all)
        for line in plane.lines
        for run in runs
        if line.name == core_ops.SPARSE_OPS_LINE and (with_all or len(run.start_ps))
    ]


def _joined(runs: Sequence[_Marked]) -> _Marked:
    """The events of several lines in order; nearly always there is just one."""
    columns = [np.concatenate([no_ints(), *(getattr(run, name) for run in runs)]) for name in _Marked.__slots__]
    order = np.argsort(columns[1], kind="stable")
    return _Marked(*(column[order] for column in columns))


def _table(plane: Plane, line: Line, runs: _Marked, parents: dict[_Key, str], with_all: bool) -> OpTable:
    """The ops of a line that lie in one of the module runs, or all of them."""
    stats = core_ops.event_stats(plane)
    events = line.events(stats=stats, places=False)
    start, end = core_ops.device_spans(events, *core_ops.event_spans(line, events))
    ids = events.metadata_id.astype(np.int64)
    order = nesting_order(start, end)
    if order is not None:
        ids, start, end = ids[order], start[order], end[order]
    found = [parents.get(pair) for pair in runs.pairs()]
    names = list(dict.fromkeys(name for name in found if name is not None))
    parent_of_run = np.array([-1 if name is None else names.index(name) for name in found], np.int64)
    run = interval_index(start, runs.start_ps, runs.end_ps)
    known = run >= 0
    known[known] &= (end[known] <= runs.end_ps[run[known]]) & (parent_of_run[run[known]] >= 0)
    parent = np.full(len(start), len(names), np.int64)
    parent[known] = parent_of_run[run[known]]
    names.append("")
    inside = np.ones_like(known) if with_all else known
    parent = parent[inside]
    pairs, key = np.unique(np.stack([parent, ids[inside]]), axis=1, return_inverse=True)
    stat_sums = {
        name: (column.floats() if order is None else column.floats()[order])[inside]
        for name, column in events.stats.items()
        if name not in core_ops.DEVICE_SPAN and name != core_ops.ALL_REDUCE_ID and column.is_number.any()
    }
    own = self_times(start[inside], end[inside])
    totals = core_ops.totals_of(key.reshape(-1), pairs[1], (end - start)[inside], own, stat_sums)
    return core_ops.op_table(plane, totals, tuple(names[number] for number in pairs[0].tolist()))
