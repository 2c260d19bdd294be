"""What one host adds to the page of collectives: sums by collective, core and step, never events.

An op between cores of a slice counts where the tables of ops class it as a collective; a collective between slices is
the four ops of a rendezvous. Waiting for other cores is separated from the transfer as in the findings: of the cores'
times in the ops of a collective in a step the shortest is the transfer, and what the others take longer is waiting.
That needs no clock that several hosts share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals, place, union
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.collectives.groups import ReplicaGroups
from tpuprof.parsers.collectives.instruction import (
    KINDS,
    CollectiveInstruction,
    read_instruction,
    read_slice_transfer,
)
from tpuprof.parsers.collectives.slices import COLLECTIVE_INFO, SliceCollective, SliceOp, group_size, slice_transfers
from tpuprof.parsers.collectives.transfers import (
    COLLECTIVE,
    OTHER,
    WORK,
    InnermostOpTime,
    TimeUntil,
    Transfers,
    overlap_times,
    paired,
    shares,
    sum_in,
)
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.hosts.plan import on_threads
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.ops import device as devices
from tpuprof.parsers.ops.core.ops import CoreOps, core_ops
from tpuprof.parsers.ops.framework_op import pass_of
from tpuprof.parsers.ops.op_metadata import MetadataStats
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.steps.aligned import AlignedSteps

ICI, DCN = "ICI", "DCN"
"""Links between the chips of a slice; the data centre's network between slices."""

CELLS = 160
"""How many cells a step's strip has to show what the core did."""

MOST_STRIPS = 256
"""How many steps have a strip."""

COUNT, HIDDEN, EXPOSED, STALLED, WAITING = range(5)
PARTS = 5
"""Columns of the sums: occurrences, the three parts of the time (see `transfers`), and the waiting in `EXPOSED`."""

_WORKS = ("compute", "vector", "copy", "unknown")
_NO_COLLECTIVE = "partition-id"
_LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of a program: one op, the start and done of an asynchronous one, or a rendezvous of slices.

    Attributes:
        program_id: 0 between slices; name: of its op, of an asynchronous one that starts it.
        network: `ICI` or `DCN`.
        kind: ``all-gather``.
        groups: None where unknown.
        pass_name: ``forward``, ``backward``, ``recomputed``; empty where unknown.
        is_async: whether it is a start and a done.
        payload: bytes of its data as nccl-tests count them (`bandwidth.payload_bytes`); None where unknown.
        framework_op: empty where unknown.
    """

    program_id: int
    name: str
    network: str
    kind: str
    groups: ReplicaGroups | None
    pass_name: str
    is_async: bool
    payload: int | None
    framework_op: str

    @property
    def group(self) -> tuple[str, str, str, str, str, bool]:
        """What it shares with the collectives that it is summed with."""
        label, axis = (self.groups.label, self.groups.axis) if self.groups is not None else ("", "")
        return self.network, self.kind, axis, label, self.pass_name, self.is_async


@dataclass(frozen=True, slots=True)
class HostCollectives:
    """The collectives of one host.

    Attributes:
        host: its name; cores: ``host:2``, those that have collectives or steps.
        collectives: in no particular order; group: int64[n], which of `groups` each is of.
        groups: one collective of each group.
        sums: int64[PARTS, groups, cores, steps].
        payload: float64[groups, cores, steps], bytes; NaN where a collective's are unknown.
        of_collective: int64[PARTS, n], over all cores and steps.
        shortest_ps: int64[n, steps], the shortest time over the cores in the collective's own ops; the largest int64
            where no core ran it.
        totals: int64[3, cores, steps]: of the time in which any transfer was under way, each instant once, what was
            hidden, in a collective's ops, and beside (`transfers`).
        step_ps: int64[cores, steps].
        strips: uint8[3, steps, CELLS], of the first core: the share of each cell (0-255) in which it computed, in which
            a transfer was under way, and in which it was in a collective's ops; no cells where there are many steps.
        slices: collectives between slices on the first core.
        unpaired: halves of asynchronous ones without the other half; outside: transfers outside of all steps.
    """

    host: str
    cores: tuple[str, ...]
    collectives: tuple[Collective, ...]
    group: Int64s
    groups: tuple[Collective, ...]
    sums: Int64s
    payload: Floats
    of_collective: Int64s
    shortest_ps: Int64s
    totals: Int64s
    step_ps: Int64s
    strips: np.ndarray
    slices: tuple[SliceCollective, ...]
    unpaired: int
    outside: int


@dataclass(frozen=True, slots=True)
class StepsOrWhole:
    """The collectives of one host, over its steps and over its whole time.

    Attributes:
        in_steps: those in its steps; None where it has none.
        whole: all of them, each core's whole time counted as one step; None where some are in its steps.
    """

    in_steps: HostCollectives | None
    whole: HostCollectives | None


@dataclass(frozen=True, slots=True)
class _Core:
    """Transfers of one core, their collectives numbered as in `collectives`."""

    collectives: tuple[Collective, ...]
    transfers: Transfers
    work: TimeUntil
    communication: TimeUntil
    slices: tuple[SliceCollective, ...]
    unpaired: int
    span: tuple[int, int]


def needed_bytes(trace: Trace) -> int:
    """Bytes of the lines that `host_collectives` decodes."""
    cores = [plane for plane in trace.planes if devices.is_tensor_core(plane)]
    return sum(line.size for plane in cores for line in plane.lines if line.name == "XLA Ops")


def host_collectives(
    trace: Trace, host: str, grid: AlignedSteps | None, on_chunk: ChunkDone | None = None, threads: int = 1
) -> StepsOrWhole:
    """Reads the collectives of a host.

    Args:
        grid: the host's steps that count; None where it has none.
    """
    planes = [plane for plane in trace.planes if devices.is_tensor_core(plane)]
    named = {f"{host}:{devices.device_ordinal(plane)}": plane for plane in planes}
    modules = HloModules.of(trace)
    known: dict[tuple[int, str], CollectiveInstruction] = {}  # all cores run the same programs
    cores: dict[str, _Core] = {}

    def made(names: Sequence[str], grid: AlignedSteps | None) -> HostCollectives:
        missing = [name for name in names if name not in cores]
        read = on_threads(lambda name: _read_core(named[name], modules, known, on_chunk), missing, threads)
        cores.update(zip(missing, read, strict=True))
        chosen = [cores[name] for name in names]
        windows = [_windows(grid, name, core) for name, core in zip(names, chosen, strict=True)]
        return _sums(host, tuple(names), chosen, windows)

    in_steps = made([name for name in grid.core_names if name in named], grid) if grid is not None else None
    is_enough = in_steps is not None and in_steps.of_collective[COUNT].any()
    return StepsOrWhole(in_steps, None if is_enough else made(list(named), None))


def _reduce(trace: Trace, file: HostFile, grid: AlignedSteps | None, on_chunk: ChunkDone, threads: int) -> StepsOrWhole:
    return host_collectives(trace, file.host, grid, on_chunk, threads)


COLLECTIVES_OF_HOST = Reduction("collectives", StepsOrWhole, needed_bytes, _reduce)
"""The collectives of a host; it is given the host's steps that count, as `host_collectives` is."""


def _windows(grid: AlignedSteps | None, name: str, core: _Core) -> tuple[Int64s, Int64s, Int64s]:
    """Start and end of a core's steps on the trace's clock, and their durations by the device's."""
    if grid is None:
        first, last = (np.array([at], np.int64) for at in core.span)
        return first, last, last - first
    row = grid.core_names.index(name)
    return grid.core_start_ps[row], grid.core_end_ps[row], grid.duration_ps[row]


# --- one core


def _read_core(
    plane: Plane, modules: HloModules, known: dict[tuple[int, str], CollectiveInstruction], on_chunk: ChunkDone | None
) -> _Core:
    ops = core_ops(plane, on_chunk)
    table, events = ops.table, ops.events
    classes = table.classes()
    rows = [row for row, name in enumerate(classes) if name == "collective" and table.category[row] != _NO_COLLECTIVE]
    ours, of_row, halves = _collectives(table, rows, modules, known)
    between = _slice_ops(table, modules)
    code = np.array([WORK if name in _WORKS else OTHER for name in classes] or [OTHER], np.int8)
    code[[*rows, *between]] = COLLECTIVE
    innermost = InnermostOpTime(events.start_ps, events.end_ps, code[events.key]) if len(events.key) else None
    transfers, unpaired = _transfers(ops, of_row, halves)
    slices, across, lost = _across(ops, between)
    numbered = [_between_slices(each) for each in slices]
    shifted = Transfers(across.op + len(ours), across.begin_ps, across.end_ps, across.own_ps, across.at_ps)
    nothing = np.zeros(0, np.int64)
    none = TimeUntil(nothing, nothing, nothing)
    return _Core(
        (*ours, *numbered),
        Transfers.joined([transfers, shifted]),
        none if innermost is None else innermost.until(WORK),
        none if innermost is None else innermost.until(COLLECTIVE),
        slices,
        unpaired + lost,
        (int(ops.event_start_ps.min()), int(ops.event_end_ps.max())) if len(events.key) else (0, 0),
    )


def _collectives(
    table: OpTable, rows: Sequence[int], modules: HloModules, known: dict[tuple[int, str], CollectiveInstruction]
) -> tuple[list[Collective], Int64s, dict[int, str]]:
    """The collectives of some rows of a core's table, which one each row is of (-1), and each row's role.

    Args:
        known: ops that are read already, by program and name; others are put there.
    """
    programs = table.program_id.tolist()
    read: dict[int, CollectiveInstruction] = {}
    for row in rows:
        op = programs[row], table.name[row]
        if op not in known:
            module = modules.module(programs[row])
            known[op] = read_instruction(table.category[row] or "", table.name[row], table.expression(row), module)
        read[row] = known[op]
    starts = {(programs[row], table.name[row]): row for row, each in read.items() if each.role == "start"}
    ours: list[Collective] = []
    of_row = np.full(max(len(table), 1), -1, np.int64)
    roles: dict[int, str] = {}
    for row, each in read.items():
        if each.role == "done":
            continue
        roles[row], of_row[row] = each.role, len(ours)
        ours.append(_collective(table, row, each, each.role == "start"))
    for row, each in read.items():
        if each.role != "done":
            continue
        roles[row] = "done"
        start = starts.get((programs[row], each.waits_for))
        if start is None:  # its start is not in the capture
            of_row[row] = len(ours)
            ours.append(_collective(table, row, each, True))
            continue
        of_row[row] = of_row[start]
        ours[of_row[row]] = _with_result(ours[of_row[row]], read[start], each)
    return ours, of_row, roles


def _collective(table: OpTable, row: int, read: CollectiveInstruction, is_async: bool) -> Collective:
    return Collective(
        int(table.program_id[row]),
        table.name[row],
        ICI,
        read.kind,
        read.groups,
        pass_of(table.framework_op[row], table.is_rematerialized(row)),
        is_async,
        read.payload,
        table.framework_op[row],
    )


def _with_result(start: Collective, first: CollectiveInstruction, done: CollectiveInstruction) -> Collective:
    """A collective of two ops: the second one has the result, and may be known better."""
    kind = first.kind if first.kind in KINDS else done.kind
    groups = first.groups or done.groups
    whole = CollectiveInstruction(kind, "", "", groups, done.result_bytes)
    return Collective(
        start.program_id, start.name, ICI, kind, groups, start.pass_name, True, whole.payload, start.framework_op
    )


def _transfers(ops: CoreOps, of_row: Int64s, roles: dict[int, str]) -> tuple[Transfers, int]:
    """The transfers within the slice, and how many halves lack the other half."""
    events = ops.events
    role = np.zeros(len(of_row), np.int8)
    for row, name in roles.items():
        role[row] = ("", "start", "done").index(name) + 1
    which = role[events.key] if len(events.key) else np.zeros(0, np.int8)

    def columns(chosen: Bools) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s]:
        key = of_row[events.key[chosen]]
        return key, events.start_ps[chosen], events.end_ps[chosen], events.self_ps[chosen], ops.event_start_ps[chosen]

    whole = Transfers(*columns(which == 1))
    halves = which > 1
    pairs, unpaired = paired(*columns(halves), which[halves] == 3)
    return Transfers.joined([whole, pairs]), unpaired


def _slice_ops(table: OpTable, modules: HloModules) -> dict[int, SliceOp]:
    """The rows of a core's table that send to other slices or receive from them."""
    found = [row for row in range(len(table)) if table.is_across_slices(row, lambda: [modules])]
    if not found:
        return {}
    chosen = np.array(found, np.intp)
    infos = MetadataStats(table.sources[0], table.metadata_row[chosen], (COLLECTIVE_INFO,)).raw(COLLECTIVE_INFO)
    out: dict[int, SliceOp] = {}
    for row, info in zip(found, infos, strict=True):
        module = modules.module(int(table.program_id[row]))
        proto = None if module is None else module.instruction_proto(table.name[row])
        out[row] = SliceOp(table.name[row], read_slice_transfer(table.expression(row), proto), group_size(info))
    return out


def _across(ops: CoreOps, between: dict[int, SliceOp]) -> tuple[tuple[SliceCollective, ...], Transfers, int]:
    """The collectives between slices of a core, see `slice_transfers`."""
    events = ops.events
    number = np.full(max(len(ops.table), 1), -1, np.int64)
    number[list(between)] = np.arange(len(between))
    op = number[events.key] if len(events.key) else np.zeros(0, np.int64)
    chosen = np.flatnonzero(op >= 0)
    if not len(chosen):
        return (), Transfers.joined([]), 0
    spans = events.start_ps[chosen], events.end_ps[chosen], ops.event_start_ps[chosen]
    return slice_transfers(list(between.values()), op[chosen], *spans)


def _between_slices(each: SliceCollective) -> Collective:
    kind = each.transfer_type.lower().replace("_", "-") or "send/recv"
    return Collective(0, each.rendezvous, DCN, kind, None, "", True, each.network_bytes, "")


# --- all cores


def _sums(
    host: str, names: tuple[str, ...], cores: Sequence[_Core], windows: Sequence[tuple[Int64s, Int64s, Int64s]]
) -> HostCollectives:
    collectives, of_core = _numbered(cores)
    collectives = _with_axes(collectives)
    groups: dict[tuple[object, ...], int] = {}
    firsts: list[Collective] = []
    group = np.zeros(len(collectives), np.int64)
    for row, each in enumerate(collectives):
        group[row] = groups.setdefault(each.group, len(groups))
        if group[row] == len(firsts):
            firsts.append(each)
    count, steps = len(collectives), len(windows[0][0]) if windows else 0
    payload_of = np.array([np.nan if each.payload is None else each.payload for each in collectives], np.float64)
    sums = np.zeros((PARTS, len(firsts), len(cores), steps), np.int64)
    payload = np.zeros((len(firsts), len(cores), steps))
    of_collective = np.zeros((PARTS, count), np.int64)
    totals = np.zeros((3, len(cores), steps), np.int64)
    shortest = np.full((count, steps), _LARGEST, np.int64)
    outside, exposed_by_core = 0, []
    for at, (core, number, window) in enumerate(zip(cores, of_core, windows, strict=True)):
        step = place(core.transfers.at_ps, window[0], window[1])
        outside += int((step < 0).sum())
        inside = core.transfers.take(step >= 0)
        cell = number[inside.op] * steps + step[step >= 0]
        parts = overlap_times(inside, core.work)
        columns = (np.ones(len(inside), np.int64), parts.hidden_ps, parts.exposed_ps, parts.stalled_ps)
        by_cell = [sum_by_key(cell, column, count * steps).reshape(count, steps) for column in columns]
        exposed_by_core.append((by_cell[COUNT] > 0, by_cell[EXPOSED]))
        np.minimum(shortest, np.where(by_cell[COUNT] > 0, by_cell[EXPOSED], _LARGEST), out=shortest)
        for part, of_part in enumerate(by_cell):
            np.add.at(sums[part, :, at], group, of_part)
            of_collective[part] += of_part.sum(axis=1)
        with_bytes = np.where(by_cell[COUNT] > 0, by_cell[COUNT] * payload_of[:, None], 0.0)
        np.add.at(payload[:, at], group, with_bytes)
        spans = union(inside.begin_ps, inside.end_ps)
        totals[:, at] = _totals(window, spans, core)
    for at, (ran, exposed) in enumerate(exposed_by_core):
        waiting = np.where(ran, exposed - np.where(ran, shortest, 0), 0)
        np.add.at(sums[WAITING, :, at], group, waiting)
        of_collective[WAITING] += waiting.sum(axis=1)
    return HostCollectives(
        host=host,
        cores=names,
        collectives=collectives,
        group=group,
        groups=tuple(firsts),
        sums=sums,
        payload=payload,
        of_collective=of_collective,
        shortest_ps=shortest,
        totals=totals,
        step_ps=np.array([window[2] for window in windows], np.int64).reshape(len(cores), steps),
        strips=_strips(cores[0], windows[0]) if cores else np.zeros((3, 0, 0), np.uint8),
        slices=cores[0].slices if cores else (),
        unpaired=sum(core.unpaired for core in cores),
        outside=outside,
    )


def _numbered(cores: Sequence[_Core]) -> tuple[tuple[Collective, ...], list[Int64s]]:
    """The distinct collectives of some cores, and the number of each of a core's among them."""
    number: dict[tuple[int, str, str], int] = {}
    distinct: list[Collective] = []
    of_core = []
    for core in cores:
        mine = []
        for each in core.collectives:
            at = number.setdefault((each.program_id, each.name, each.network), len(distinct))
            if at == len(distinct):
                distinct.append(each)
            mine.append(at)
        of_core.append(np.array(mine, np.int64))
    return tuple(distinct), of_core


def _with_axes(collectives: tuple[Collective, ...]) -> tuple[Collective, ...]:
    """Gives groups the names of the mesh axes that other collectives with the same groups have."""
    named: dict[tuple[int, int, int | None], ReplicaGroups] = {
        (groups.count, groups.size, groups.distance): groups
        for each in collectives
        if (groups := each.groups) is not None and groups.axes and groups.distance is not None
    }
    if not named:
        return collectives

    def known(each: Collective) -> Collective:
        groups = each.groups
        if groups is None or groups.axes or groups.are_pairs:
            return each
        return replace(each, groups=named.get((groups.count, groups.size, groups.distance), groups))

    return tuple(map(known, collectives))


def _totals(window: tuple[Int64s, Int64s, Int64s], spans: Intervals, core: _Core) -> Int64s:
    """int64[3, steps]: see `HostCollectives.totals`."""
    within = window[0], window[1]
    any_time = sum_in(within, spans, None)
    hidden = np.clip(sum_in(within, spans, core.work), 0, any_time)
    communicating = np.clip(sum_in(within, spans, core.communication), 0, any_time - hidden)
    return np.stack([hidden, communicating, any_time - hidden - communicating])


def _strips(core: _Core, window: tuple[Int64s, Int64s, Int64s]) -> np.ndarray:
    """uint8[3, steps, cells]: see `HostCollectives.strips`."""
    start, end = window[0], window[1]
    if not 0 < len(start) <= MOST_STRIPS:
        return np.zeros((3, len(start), 0), np.uint8)
    spans = union(core.transfers.begin_ps, core.transfers.end_ps)
    out = np.zeros((3, len(start), CELLS), np.uint8)
    for step, (first, last) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        borders = first + (last - first) * np.arange(CELLS + 1) // CELLS
        everything = np.array([first], np.int64), np.array([last], np.int64)
        out[0, step] = shares(borders, everything, core.work)
        out[1, step] = shares(borders, spans)
        out[2, step] = shares(borders, everything, core.communication)
    return out
