"""The collectives of one host: sums by collective, core and step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats, Int64s, Intervals, interval_index
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.ops.framework_op import scope_end
from tpuprof.parsers.pages.collectives.slices import SliceCollective
from tpuprof.parsers.pages.collectives.transfers import TransferOverlap, Transfers
from tpuprof.parsers.steps.boundaries.replica_groups import ReplicaGroups

ICI, DCN, DEVICES, DMA = "ICI", "DCN", "devices", "DMA"
"""Links between the chips of a slice; the data centre's network between slices; what else lies between devices; and a
core's own engines, which copy from memory to memory."""

COUNT, HIDDEN, EXPOSED, STALLED, WAITING = range(5)
PARTS = 5
"""Columns of the sums: occurrences, the three parts of the time (see `transfers`), and the waiting in `EXPOSED`."""


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of a program: one op, the start and done of an asynchronous one, or a rendezvous of slices.

    An asynchronous copy between memories is one too, so that it is hidden and exposed as collectives are.

    Attributes:
        program_id: 0 between slices; name: of its op, of an asynchronous one that starts it.
        network: `ICI`, `DCN`, or `DEVICES` of GPUs and of the host's CPU; `DMA` of a copy.
        kind: ``all-gather``, ``copy``, ``slice``.
        groups: None where unknown.
        pass_name: ``forward``, ``backward``, ``recomputed``; empty where unknown.
        is_async: whether it is a start and a done.
        payload: bytes of its data as nccl-tests count them (`bandwidth.payload_bytes`); None where unknown.
        framework_op: the op that it comes from, or that a copy is for; empty where unknown.
        route: of a copy, ``HBM to VMEM``.
        done: the op that ends it; empty where that is its own op.
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
    route: str = ""
    done: str = ""

    @property
    def group(self) -> tuple[str, str, str, str, str, bool]:
        """What it shares with the collectives that it is summed with; of a copy also its route and what it is for."""
        label, axis = (self.groups.label, self.groups.axis) if self.groups is not None else ("", "")
        if self.network == DMA:
            label, axis = scope_end(self.framework_op), self.route
        return self.network, self.kind, axis, label, self.pass_name, self.is_async


@dataclass(frozen=True, slots=True)
class Sums:
    """Collectives, and their sums over occurrences.

    Attributes:
        collectives: in no particular order; group: int64[n], which of `groups` each is of.
        groups: one collective of each group.
        sums: int64[PARTS, groups, cores, steps].
        payload: float64[groups, cores, steps], bytes; NaN where a collective's are unknown.
        of_collective: int64[PARTS, n, steps], over all cores; of a page int64[PARTS, n], over all steps too.
    """

    collectives: tuple[Collective, ...]
    group: Int64s
    groups: tuple[Collective, ...]
    sums: Int64s
    payload: Floats
    of_collective: Int64s


@dataclass(frozen=True, slots=True)
class HostCollectives(Sums):
    """The collectives of one host.

    Attributes:
        host: its name; cores: ``host:2``, those that have collectives or steps.
        shortest_ps: int64[n, steps], the shortest time over the cores in the collective's own ops; the largest int64
            where no core ran it.
        totals: int64[3, cores, steps]: of the time in which any transfer was in flight, each instant once, what was
            hidden, in a collective's ops, and beside (`transfers`).
        step_ps: int64[cores, steps].
        slices: collectives between slices on the first core.
        unpaired: halves of asynchronous ones without the other half; transfers: how many there are, in steps or not.
    """

    host: str
    cores: tuple[str, ...]
    shortest_ps: Int64s
    totals: Int64s
    step_ps: Int64s
    slices: tuple[SliceCollective, ...]
    unpaired: int
    transfers: int

    @property
    def outside(self) -> int:
        """How many transfers are outside of all steps."""
        return self.transfers - int(self.of_collective[COUNT].sum())

    def take(self, steps: NDArray[np.intp]) -> HostCollectives:
        return replace(
            self,
            sums=self.sums[..., steps],
            payload=self.payload[..., steps],
            of_collective=self.of_collective[..., steps],
            shortest_ps=self.shortest_ps[:, steps],
            totals=self.totals[..., steps],
            step_ps=self.step_ps[:, steps],
        )


@dataclass(frozen=True, slots=True)
class Windows:
    """One core's transfers by what they are summed within: its steps, or its whole time as one.

    Attributes:
        span: start and end of each window on the trace's clock.
        sums: int64[WAITING, n, windows], of the core's collectives; columns as of `PARTS`.
        totals: int64[3, windows], see `HostCollectives`.
    """

    span: Intervals
    sums: Int64s
    totals: Int64s

    def take(self, rows: Int64s) -> Windows:
        span = self.span[0][rows], self.span[1][rows]
        return Windows(span, self.sums[..., rows], self.totals[:, rows])


@dataclass(frozen=True, slots=True)
class CoreCollectives:
    """The collectives of one core, and `count` transfers."""

    collectives: tuple[Collective, ...]
    count: int
    steps: Windows
    whole: Windows
    slices: tuple[SliceCollective, ...]
    unpaired: int


def summed(
    collectives: Sequence[Collective],
    transfers: Transfers,
    overlap: TransferOverlap,
    steps: Intervals,
    whole: Intervals,
    slices: tuple[SliceCollective, ...] = (),
    unpaired: int = 0,
) -> CoreCollectives:
    """The sums of a core's transfers in its steps, and in its whole time, where all of them count."""
    times = _by_window(steps, transfers, overlap, len(collectives))
    sums = times[..., :-1], times.sum(axis=2, keepdims=True)[..., : len(whole[0])]
    in_steps, in_whole = (
        Windows(span, of, overlap.within(span)) for span, of in zip((steps, whole), sums, strict=True)
    )
    return CoreCollectives(tuple(collectives), len(transfers), in_steps, in_whole, slices, unpaired)


def _by_window(windows: Intervals, transfers: Transfers, overlap: TransferOverlap, count: int) -> Int64s:
    """int64[WAITING, count, windows + 1]: sums of a core's transfers; the last ones are of those in no window."""
    columns = len(windows[0]) + 1
    window = interval_index(transfers.at_ps, *windows)
    cell = transfers.op * columns + np.where(window < 0, columns - 1, window)
    parts = (np.ones(len(transfers), np.int64), *overlap.parts)
    return np.stack([sum_by_key(cell, part, count * columns) for part in parts]).reshape(WAITING, count, columns)
