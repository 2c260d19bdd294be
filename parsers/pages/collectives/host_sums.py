"""The collectives of one host: sums by collective, core and step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats, Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.framework_op import scope_end
from tpuprof.parsers.pages.collectives.slices import SliceCollective
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
