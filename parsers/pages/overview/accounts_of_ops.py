"""The account of the mean step by op: which module, scope or op has the time of each owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, coded
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.roofline import Rates
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.ops.op_profile import provenance_parts
from tpuprof.parsers.steps.accounts.owners import OWNERS, OpOwners, Owner, owner_index
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.step_account import Account, AccountRow, waits_by_collective

OpGrouping = Literal["module", "scope", "op"]
"""What ops are put together by."""

NO_OP = "no op"
"""The row of the time that no op has."""

NO_SCOPE = "no scope"
"""The row of the ops without a framework name, and of those that are in no scope of it."""

NOT_IN_STEPS = "only the ops of TPUs are known by the step in which they run"

_OF_OPS: frozenset[Owner] = frozenset(
    ("collective_wait", "collective_transfer", "host_transfer", "copy", "loss", "uncounted", "ideal")
)
"""Owners of which all time is that of ops."""


@dataclass(frozen=True, slots=True)
class OpAccounts:
    """The mean step by op.

    Attributes:
        name, module, scope: of each op.
        owner_ps: float64[ops, len(OWNERS)], each owner's time of each op, mean over cores and steps; none negative.
        rest_ps: float64[len(OWNERS)], the time of each owner that no op has.
        flops_part: float64[ops], the part (0-1) of the time at the roof that an op's FLOPs take at the peak.
        model_part: float64[ops], the part (0-1) of these FLOPs that the model asks for.
        is_recomputed: bool[ops], whether it is computed a second time to save memory.
    """

    name: tuple[str, ...]
    module: tuple[str, ...]
    scope: tuple[str, ...]
    owner_ps: Floats
    rest_ps: Floats
    flops_part: Floats
    model_part: Floats
    is_recomputed: Bools

    def by(self, grouping: OpGrouping) -> tuple[AccountRow, ...]:
        """An account a module, scope or op, the longest first, and that of no op last; they add up to the mean step."""
        labels = self.module if grouping == "module" else self.scope if grouping == "scope" else self._unique_names
        group, names = coded(labels)
        owner_ps = np.zeros((len(names), len(OWNERS)))
        np.add.at(owner_ps, group, self.owner_ps)
        times = owner_ps.sum(axis=1)
        order = [row for row in np.argsort(-times, kind="stable").tolist() if times[row] > 0]
        found = [AccountRow(names[row], float(times[row]), tuple(owner_ps[row].tolist())) for row in order]
        rest = float(self.rest_ps.sum())
        return (*found, *([AccountRow(NO_OP, rest, tuple(self.rest_ps.tolist()))] if rest > 0 else []))

    @property
    def _unique_names(self) -> tuple[str, ...]:
        """The ops' names, with their module where several have ops of one name."""
        first: dict[str, int] = {}
        several = {name for row, name in enumerate(self.name) if first.setdefault(name, row) != row}
        pairs = zip(self.name, self.module, strict=True)
        return tuple(f"{name} in {module}" if name in several else name for name, module in pairs)


def op_accounts(
    of: Account, grid: AlignedSteps, table: OpTable, owners: OpOwners, rates: Rates, modules: Sequence[str]
) -> OpAccounts | None:
    """The account of the mean step by op; None where nobody knows what ops take in steps.

    What ops take in steps gives their shares alone: each owner's time is that of the ledger, which cuts ops at the end
    of their step. The waiting in a collective is that of the collective's name.

    Args:
        grid: the steps of the ledger.
        table, owners, rates: the ops over all cores, whose their time is, and how near they are to the peaks.
        modules: the module of each op.
    """
    in_steps = np.maximum(table.in_steps_ps, 0).astype(np.float64)
    if not in_steps.any():
        return None
    wanted = of.mean_ps
    shares = np.zeros((len(table), len(OWNERS)))
    shares[np.arange(len(table)), owners.owner] = in_steps
    ideal, loss = owner_index("ideal"), owner_index("loss")
    shares[:, ideal] = shares[:, loss] * owners.ideal
    shares[:, loss] -= shares[:, ideal]
    _part_waits(shares, grid, table.name)
    having, are_of_ops = shares.sum(axis=0), np.array([owner in _OF_OPS for owner in OWNERS])
    both = are_of_ops & (having > 0)
    usual = float(wanted[both].sum() / having[both].sum()) if both.any() else 0.0
    scale = np.divide(wanted, having, out=np.zeros(len(OWNERS)), where=having > 0)
    owner_ps = shares * np.where(are_of_ops, scale, np.minimum(scale, usual))
    scopes = {name: "/".join(provenance_parts(name)[:-1]) or NO_SCOPE for name in set(table.framework_op)}
    return OpAccounts(
        table.name,
        tuple(modules),
        tuple(map(scopes.__getitem__, table.framework_op)),
        owner_ps,
        np.where(both, 0.0, np.maximum(wanted - owner_ps.sum(axis=0), 0.0)),
        _part(rates.flops_utilization, np.minimum(rates.efficiency, 1.0), 0.0),
        _part(table.model_flops, table.flops, 1.0),
        np.array([table.is_rematerialized(row) for row in range(len(table))], np.bool_),
    )


def _part(of: Floats, whole: Floats, otherwise: float) -> Floats:
    """What one column is of another one, 0-1; something else where either is unknown, or the whole is nothing."""
    known = np.isfinite(of) & np.isfinite(whole) & (whole > 0)
    out: Floats = np.clip(np.divide(of, whole, out=np.full(len(of), otherwise), where=known), 0.0, 1.0)
    return out


def _part_waits(shares: Floats, grid: AlignedSteps, names: Sequence[str]) -> None:
    """Divides what collectives take, which stands under the transfers, into these and the waiting for other cores."""
    moving, waiting = owner_index("collective_transfer"), owner_index("collective_wait")
    column = {name: at for at, name in enumerate(grid.collective_names)}
    others = column.get("", -1)
    which: Int64s = np.array([column.get(name, others) for name in names], np.int64)
    took = grid.collective_ps.sum(axis=(0, 1)).astype(np.float64)
    waited = waits_by_collective(grid.collective_ps, grid.hops).sum(axis=(0, 1))
    part = np.append(np.divide(waited, took, out=np.zeros(len(took)), where=took > 0), 0.0)
    shares[:, waiting] = shares[:, moving] * part[which]
    shares[:, moving] -= shares[:, waiting]
