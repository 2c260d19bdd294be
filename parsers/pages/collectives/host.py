"""What one host adds to the page of collectives: sums by collective or copy, by core and step, never events.

They come out of the pass over its ops that gives the host's summary, and are a summary with more in it.

An op between cores of a slice counts where the tables of ops class it as a collective; a collective between slices is
the four ops of a rendezvous. Waiting for other cores is separated from the transfer as in the findings: of the cores'
times in the ops of a collective in a step the shortest is the transfer, and what the others take longer is waiting.
That needs no clock that several hosts share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, coded, distinct, positions
from tpuprof.parsers.base.op_class import COLLECTIVE_KINDS
from tpuprof.parsers.base.record import dataclass, fields, replace
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.hosts.core_summary import OfCore
from tpuprof.parsers.hosts.op_summary import of_file
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.hosts.summary import SUMMARY_OF_HOST, HostSummary, needed_bytes, summarise
from tpuprof.parsers.ops import device as devices
from tpuprof.parsers.ops.core.ops import as_interval
from tpuprof.parsers.ops.core.sums import CoreSums
from tpuprof.parsers.ops.core.traced import OTHER, TRACED, WORK, OpRoles, Roles, TracedEvents
from tpuprof.parsers.ops.device import HOST_TRANSFER, depends_on_name, op_class
from tpuprof.parsers.ops.framework_op import pass_of
from tpuprof.parsers.ops.op_metadata import MetadataStats
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.collectives import host_sums
from tpuprof.parsers.pages.collectives.host_sums import CoreCollectives, Windows, summed
from tpuprof.parsers.pages.collectives.instruction import (
    PARTITION_ID,
    CollectiveInstruction,
    read_instruction,
    read_slice_transfer,
)
from tpuprof.parsers.pages.collectives.slices import (
    COLLECTIVE_INFO,
    SliceCollective,
    SliceOp,
    group_size,
    slice_transfers,
)
from tpuprof.parsers.pages.collectives.streams import stream_collectives
from tpuprof.parsers.pages.collectives.transfers import TimeUntil, TransferOverlap, Transfers, paired
from tpuprof.parsers.pages.shared.copies import is_copy_half, route, served
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.boundaries.markers import CoreSteps
from tpuprof.parsers.steps.boundaries.replica_groups import ReplicaGroups

_WORKS = ("compute", "vector", "copy", "unknown")
"""Classes of ops that are work; which of these it is may depend on counts that only events have."""
_LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class CollectivesSummary(HostSummary):
    """What all pages of a profile need of one host, and its collectives and asynchronous copies.

    Attributes:
        collectives, copies: those in its steps; None where it has no steps.
        all_collectives, all_copies: all of them, each core's whole time counted as one step; GPUs, and devices of the
            host's CPU, are cores here, and have no copies.
    """

    collectives: host_sums.HostCollectives | None
    all_collectives: host_sums.HostCollectives
    copies: host_sums.HostCollectives | None
    all_copies: host_sums.HostCollectives


def _reduce(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> CollectivesSummary:
    modules = HloModules.of(trace)
    known: dict[tuple[int, str], CollectiveInstruction] = {}  # all cores run the same programs
    read: dict[int, _OfCore] = {}  # by the plane's place: in a damaged file two planes may have one number

    def on_core(plane: Plane, steps: CoreSteps, sums: CoreSums) -> None:
        read[plane.index] = _read_core(steps, sums, modules, known, trace)

    roles = OpRoles(_role_of_category, partial(_roles, modules=modules))
    summary = summarise(trace, file.host, on_chunk, threads, OfCore(roles, on_core), file.part)
    planes = devices.tensor_cores(trace)
    names = [core_label(file.host, devices.device_ordinal(plane)) for plane in planes]
    cores, copies = ([read[plane.index][which] for plane in planes] for which in range(2))
    named = names
    if not planes:
        of_devices = stream_collectives(trace, file.host, lambda *_: on_chunk(0, 0))  # their bytes are counted already
        named, cores = [*of_devices], [*of_devices.values()]
    made = CollectivesSummary(
        **{field.name: getattr(summary, field.name) for field in fields(summary)},
        collectives=_in_steps(file.host, summary.steps, named, cores),
        all_collectives=_in_whole(file.host, named, cores),
        copies=_in_steps(file.host, summary.steps, names, copies),
        all_copies=_in_whole(file.host, names, copies),
    )
    return of_file(made, file)


COLLECTIVES_OF_HOST = Reduction(
    "collectives", CollectivesSummary, needed_bytes, _reduce, tables=("table",), includes=SUMMARY_OF_HOST
)
"""What all pages need of a host, and its collectives and copies."""


def _in_steps(
    host: str, grid: AlignedSteps | None, names: Sequence[str], cores: Sequence[CoreCollectives]
) -> host_sums.HostCollectives | None:
    """The collectives, or the copies, in the steps that the cores of a host share; None where they share none."""
    if grid is None:
        return None
    chosen = [cores[names.index(name)] for name in grid.core_names]
    starts = zip(chosen, grid.core_start_ps, strict=True)
    windows = [core.steps.take(positions(start, core.steps.span[0])) for core, start in starts]
    return _sums(host, grid.core_names, chosen, windows, grid.duration_ps)


def _in_whole(host: str, names: Sequence[str], cores: Sequence[CoreCollectives]) -> host_sums.HostCollectives:
    """All collectives, each core's whole time counted as one step."""
    windows = [core.whole for core in cores]
    lengths = np.array([of.span[1] - of.span[0] for of in windows], np.int64).reshape(-1, 1)
    return _sums(host, tuple(names), cores, windows, lengths)


# --- one core

_OfCore = tuple[CoreCollectives, CoreCollectives]
"""The collectives of a core, and its asynchronous copies."""


def _role_of_category(category: str | None) -> int | None:
    """What all ops of a category count as; None where their names or texts decide."""
    if category is not None and (HOST_TRANSFER.search(category) or depends_on_name(category)):
        return None
    return _role(category, "")


def _role(category: str | None, name: str) -> int:
    of = op_class(category, name)
    if of == "collective":
        return OTHER if category == PARTITION_ID else TRACED
    if is_copy_half(category, name):
        return TRACED
    return WORK if of in _WORKS else OTHER


def _roles(table: OpTable, modules: HloModules) -> Roles:
    """What the ops of a core count as; those that move data to other cores or slices, or copy beside, are traced."""
    out = np.array([_role(*of) for of in zip(table.category, table.name, strict=True)], np.uint8)
    out[_across_slices(table, range(len(table)), modules)] = TRACED
    return out


def _across_slices(table: OpTable, rows: Iterable[int], modules: HloModules) -> list[int]:
    """Those of some rows of a table that send to other slices or receive from them."""
    return [row for row in rows if table.is_across_slices(row, lambda: [modules])]


def _read_core(
    steps: CoreSteps,
    sums: CoreSums,
    modules: HloModules,
    known: dict[tuple[int, str], CollectiveInstruction],
    trace: Trace,
) -> _OfCore:
    table, events = sums.table, sums.traced
    assert events is not None, "the pass was asked for them"
    rows = distinct(events.row).tolist()
    copying = {row for row in rows if is_copy_half(table.category[row], table.name[row])}
    across_slices = _across_slices(table, rows, modules)
    within_slice = [row for row in rows if row not in copying and row not in across_slices]
    ours, of_row, halves = _collectives(table, within_slice, modules, known)
    within, unpaired = _transfers(events, of_row, halves)
    found = trace.optional(
        "read collectives between slices", lambda: _across(events, _slice_ops(table, across_slices, modules))
    )
    slices, across, lost = found or _across(events, {})
    shifted = Transfers(across.op + len(ours), across.begin_ps, across.end_ps, across.own_ps, across.at_ps)
    transfers = Transfers.joined([*within, shifted])
    del within, across, shifted
    numbered = (*ours, *map(_between_slices, slices))
    windows = (steps.start_ps, steps.end_ps), as_interval(sums.own_span or (0, 0))
    in_copies = np.isin(events.row, np.array(sorted(copying), np.int64))  # no op lies inside of one
    work, waits = TimeUntil(events.work), TimeUntil.within(events.start_ps[in_copies], events.end_ps[in_copies])
    overlap = TransferOverlap(transfers, work, TimeUntil(events.within, waits))
    collectives = summed(numbered, transfers, overlap, *windows, slices, unpaired + lost)
    copies, of_row, halves = _copies(table, sorted(copying), modules, known)
    copied, unpaired = _transfers(events, of_row, halves)
    transfers = Transfers.joined(copied)
    return collectives, summed(copies, transfers, TransferOverlap(transfers, work, waits), *windows, unpaired=unpaired)


def _copies(
    table: OpTable, rows: Sequence[int], modules: HloModules, known: dict[tuple[int, str], CollectiveInstruction]
) -> tuple[list[host_sums.Collective], Int64s, dict[int, str]]:
    """The asynchronous copies of some rows of a core's table, as `_collectives`."""
    found, of_row, roles = _collectives(table, rows, None, known)
    copies = [replace(each, network=host_sums.DMA) for each in found]
    for row in (row for row, role in roles.items() if role == "done"):
        program, at = modules.module(int(table.program_id[row])), int(of_row[row])
        served_op = served(program, table.name[row]) or table.framework_op[row]
        of_pass = pass_of(served_op, False)
        where = route(table.expression(row))
        copies[at] = replace(copies[at], pass_name=of_pass, framework_op=served_op, route=where)
    return copies, of_row, roles


def _collectives(
    table: OpTable, rows: Sequence[int], modules: HloModules | None, known: dict[tuple[int, str], CollectiveInstruction]
) -> tuple[list[host_sums.Collective], Int64s, dict[int, str]]:
    """The collectives of some rows of a core's table, which one each row is of (-1), and each row's role.

    Args:
        known: ops that are read already, by program and name; others are put there.
    """
    programs = table.program_id.tolist()
    read: dict[int, CollectiveInstruction] = {}
    for row in rows:
        op = programs[row], table.name[row]
        if op not in known:
            module = None if modules is None else modules.module(programs[row])
            known[op] = read_instruction(table.category[row] or "", table.name[row], table.expression(row), module)
        read[row] = known[op]
    starts = {(programs[row], table.name[row]): row for row, each in read.items() if each.role == "start"}
    ours: list[host_sums.Collective] = []
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
        start = starts.get((programs[row], each.waits_for))
        roles[row] = "" if start is None and modules is not None else "done"
        if start is None:  # nothing shows when it began: only how long the core waited is known
            of_row[row] = len(ours)
            ours.append(_collective(table, row, each, True))
            continue
        of_row[row] = of_row[start]
        ours[of_row[row]] = replace(_with_result(ours[of_row[row]], read[start], each), done=table.name[row])
    return ours, of_row, roles


def _collective(table: OpTable, row: int, read: CollectiveInstruction, is_async: bool) -> host_sums.Collective:
    return host_sums.Collective(
        int(table.program_id[row]),
        table.name[row],
        host_sums.ICI,
        read.kind,
        read.groups,
        pass_of(table.framework_op[row], table.is_rematerialized(row)),
        is_async,
        read.payload,
        table.framework_op[row],
    )


def _with_result(
    start: host_sums.Collective, first: CollectiveInstruction, done: CollectiveInstruction
) -> host_sums.Collective:
    """A collective of two ops: the second one has the result, and may be known better."""
    kind = first.kind if first.kind in COLLECTIVE_KINDS else done.kind
    groups = first.groups or done.groups
    whole = CollectiveInstruction(kind, "", "", groups, done.result_bytes)
    return replace(start, kind=kind, groups=groups, payload=whole.payload)


def _transfers(events: TracedEvents, of_row: Int64s, roles: dict[int, str]) -> tuple[tuple[Transfers, Transfers], int]:
    """The transfers within the slice, of one op and of two, and how many halves lack the other half."""
    role = np.zeros(len(of_row), np.int8)
    for row, name in roles.items():
        role[row] = ("", "start", "done").index(name) + 1
    which = role[events.row]

    def columns(chosen: NDArray[np.intp]) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s]:
        key = of_row[events.row[chosen]]
        own = events.self_ps[chosen], events.own_start_ps[chosen]
        return key, events.start_ps[chosen], events.end_ps[chosen], *own

    whole = Transfers(*columns(np.flatnonzero(which == 1)))
    halves = np.flatnonzero(which > 1)
    pairs, unpaired = paired(*columns(halves), which[halves] == 3)
    return (whole, pairs), unpaired


def _slice_ops(table: OpTable, found: Sequence[int], modules: HloModules) -> dict[int, SliceOp]:
    """The ops of some rows of a table that send to other slices or receive from them."""
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


def _across(events: TracedEvents, between: Mapping[int, SliceOp]) -> tuple[tuple[SliceCollective, ...], Transfers, int]:
    """The collectives between slices of a core, see `slice_transfers`."""
    if not between:
        return (), Transfers.joined([]), 0
    number = np.full(max(between) + 1, -1, np.int64)
    number[list(between)] = np.arange(len(between))
    op = np.where(events.row < len(number), number[np.minimum(events.row, len(number) - 1)], -1)
    chosen = np.flatnonzero(op >= 0)
    spans = events.start_ps[chosen], events.end_ps[chosen], events.own_start_ps[chosen]
    return slice_transfers(list(between.values()), op[chosen], *spans)


def _between_slices(each: SliceCollective) -> host_sums.Collective:
    kind = each.transfer_type.lower().replace("_", "-") or "send/recv"
    return host_sums.Collective(0, each.rendezvous, host_sums.DCN, kind, None, "", True, each.network_bytes, "")


# --- all cores


def _sums(
    host: str, names: tuple[str, ...], cores: Sequence[CoreCollectives], windows: Sequence[Windows], step_ps: Int64s
) -> host_sums.HostCollectives:
    collectives, of_core = _numbered(cores)
    collectives = _with_axes(collectives)
    group, _ = coded(each.group for each in collectives)
    firsts = [collectives[row] for row in np.unique(group, return_index=True)[1].tolist()]
    count, steps = len(collectives), step_ps.shape[1]
    payload_of = np.array([np.nan if each.payload is None else each.payload for each in collectives], np.float64)
    sums = np.zeros((host_sums.PARTS, len(firsts), len(cores), steps), np.int64)
    payload = np.zeros((len(firsts), len(cores), steps))
    of_collective = np.zeros((host_sums.PARTS, count, steps), np.int64)
    shortest = np.full((count, steps), _LARGEST, np.int64)
    exposed_by_core = []
    order = np.argsort(group, kind="stable")
    borders = np.searchsorted(group[order], np.arange(len(firsts)))

    def by_group(cells: Int64s) -> Int64s:
        """Sums over the collectives of each group, the last axis but one."""
        return np.add.reduceat(cells[..., order, :], borders, axis=-2) if count else cells

    for at, (number, window) in enumerate(zip(of_core, windows, strict=True)):
        by_cell = np.zeros((host_sums.WAITING, count, steps), np.int64)
        for row, of in enumerate(number.tolist()):
            by_cell[:, of] += window.sums[:, row]
        exposed_by_core.append((by_cell[host_sums.COUNT] > 0, by_cell[host_sums.EXPOSED]))
        np.minimum(shortest, np.where(by_cell[host_sums.COUNT] > 0, by_cell[host_sums.EXPOSED], _LARGEST), out=shortest)
        sums[: host_sums.WAITING, :, at] = by_group(by_cell)
        of_collective[: host_sums.WAITING] += by_cell
        with_bytes = np.where(by_cell[host_sums.COUNT] > 0, by_cell[host_sums.COUNT] * payload_of[:, None], 0.0)
        np.add.at(payload[:, at], group, with_bytes)
    for at, (ran, exposed) in enumerate(exposed_by_core):
        waiting = np.where(ran, exposed - np.where(ran, shortest, 0), 0)
        sums[host_sums.WAITING, :, at] = by_group(waiting)
        of_collective[host_sums.WAITING] += waiting
    return host_sums.HostCollectives(
        host=host,
        cores=names,
        collectives=collectives,
        group=group,
        groups=tuple(firsts),
        sums=sums,
        payload=payload,
        of_collective=of_collective,
        shortest_ps=shortest,
        totals=np.array([window.totals for window in windows], np.int64).reshape(-1, 3, steps).swapaxes(0, 1),
        step_ps=step_ps,
        slices=cores[0].slices if cores else (),
        unpaired=sum(core.unpaired for core in cores),
        transfers=sum(core.count for core in cores),
    )


def _numbered(cores: Sequence[CoreCollectives]) -> tuple[tuple[host_sums.Collective, ...], list[Int64s]]:
    """The distinct collectives of some cores, and the number of each of a core's among them."""
    number: dict[tuple[int, str, str], int] = {}
    distinct: list[host_sums.Collective] = []
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


def _with_axes(collectives: tuple[host_sums.Collective, ...]) -> tuple[host_sums.Collective, ...]:
    """Gives groups the names of the mesh axes that other collectives with the same groups have."""
    named: dict[tuple[int, int, int | None], ReplicaGroups] = {
        (groups.count, groups.size, groups.distance): groups
        for each in collectives
        if (groups := each.groups) is not None and groups.axes and groups.distance is not None
    }
    if not named:
        return collectives

    def known(each: host_sums.Collective) -> host_sums.Collective:
        groups = each.groups
        if groups is None or groups.axes or groups.are_pairs:
            return each
        return replace(each, groups=named.get((groups.count, groups.size, groups.distance), groups))

    return tuple(map(known, collectives))
