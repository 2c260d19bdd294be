"""Which ops are behind each owner of a step's time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.ops.groups import groups_of
from tpuprof.parsers.steps.accounts.owners import OWNERS, OpOwners, Owner

_MOST_OPS = 8
_MOST_GROUPED = 500
"""How many ops of an owner are grouped with their clones, the largest ones; the rest of them take little time."""


@dataclass(frozen=True, slots=True)
class OwnerOp:
    """An op with its clones.

    Attributes:
        label: what to call them: ``fusion.7``, ``gather (60 ops)``.
        name: HLO name of the longest of them, under which other tabs find it.
        time_ps: self time that the owner has of it, over the capture and all cores; `fraction`: of the owner's, 0-1.
    """

    label: str
    name: str
    time_ps: float
    fraction: float


@dataclass(frozen=True, slots=True)
class OwnerOps:
    """The ops of an owner: how many there are, their self time over the capture and all cores, and the largest."""

    count: int
    time_ps: float
    largest: tuple[OwnerOp, ...]


NO_OPS = OwnerOps(0, 0.0, ())


def owner_ops(table: OpTable, owners: OpOwners) -> Mapping[Owner, OwnerOps]:
    """The ops of each owner that has any, over the capture: also of ops that ran between steps.

    Of a computing op `ideal` has the part at the roof, and `loss` the rest. Waiting in collectives shows only beside
    other cores, so that their ops stand for both, `collective_transfer` and `collective_wait`.

    Args:
        table: over all cores.
        owners: whose the time of each of these ops is.
    """
    ideal = owners.ideal
    self_ps = np.maximum(table.self_ps, 0).astype(np.float64)
    found: dict[Owner, OwnerOps] = {}
    for owner in OWNERS:
        of_owner = owners.are("loss" if owner == "ideal" else owner)
        times = self_ps * (ideal if owner == "ideal" else 1.0 - ideal) * of_owner
        rows = np.flatnonzero(times > 0)
        whole = float(times.sum())
        if len(rows):
            rows = rows[np.argsort(-times[rows], kind="stable")][:_MOST_GROUPED]
            groups = groups_of(table, rows, times[rows])[:_MOST_OPS]
            tops = tuple(OwnerOp(each.label, table.name[each.first], each.ps, each.ps / whole) for each in groups)
            found[owner] = OwnerOps(int((times > 0).sum()), whole, tops)
    if "collective_transfer" in found:
        found["collective_wait"] = found["collective_transfer"]
    return found
