"""The account of the steps that cores share: every picosecond of every step has one owner.

It puts the cores' own accounts together. Only beside each other do they show what a core waits for in collectives, and
what it has left of a step when its own part is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.core_names import core_label, host_of
from tpuprof.parsers.steps.accounts.core import scaled_down
from tpuprof.parsers.steps.accounts.cpu import CpuAccount
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner, owner_index
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.generic.step_events import GenericStep

LEAST_BETWEEN = 0.05
"""Steps lie apart where this share of the time from a step to the next is between them."""


_NAMED_WAIT = 0.25
"""A core is the one that others wait for if it waits for less than this share of what cores wait on average."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The account of some steps.

    Attributes:
        names: of the steps.
        core_names: ``host:ordinal`` of each core, or what else there is an account of.
        hosts: int64[cores], the host of each.
        step_ps: int64[steps], duration of each step on its slowest core.
        owner_ps: int64[cores, steps, len(OWNERS)], none negative; each core's row adds up to `step_ps`.
        between_ps: int64[cores, steps, len(OWNERS)], none negative; the time from each step to the next, of each core's
            own.
    """

    names: tuple[str, ...]
    core_names: tuple[str, ...]
    hosts: Int64s
    step_ps: Int64s
    owner_ps: Int64s
    between_ps: Int64s

    def __len__(self) -> int:
        return len(self.names)

    @property
    def mean_step_ps(self) -> float:
        """The mean duration of a step."""
        return float(self.step_ps.mean())

    @property
    def mean_ps(self) -> Floats:
        """float64[len(OWNERS)]: the mean over cores and steps, which adds up to the mean step."""
        out: Floats = self.owner_ps.mean(axis=(0, 1))
        return out

    @property
    def mean_between_ps(self) -> Floats:
        """float64[len(OWNERS)]: the mean time from a step to the next, over cores; 0 where there is one step."""
        out: Floats = self.between_ps.sum(axis=1).mean(axis=0) / max(len(self) - 1, 1)
        return out

    @property
    def steps_lie_apart(self) -> bool:
        """Whether so much lies between steps that shares are of the time from a step to the next."""
        between = float(self.mean_between_ps.sum())
        return between >= LEAST_BETWEEN * (self.mean_step_ps + between)

    @property
    def mean_whole_ps(self) -> float:
        """What shares are of: the mean step, with the time up to the next one where `steps_lie_apart`."""
        return self.mean_step_ps + float(self.mean_between_ps.sum()) * self.steps_lie_apart

    def of(self, *owners: Owner) -> Int64s:
        """int64[cores, steps]: the time of some owners."""
        total: Int64s = self.owner_ps[:, :, [owner_index(owner) for owner in owners]].sum(axis=2)
        return total


def ledger(grid: AlignedSteps | None) -> Ledger | None:
    """The account of some steps; None without steps that take any time."""
    if grid is None or not len(grid) or not len(grid.duration_ps) or not int(grid.longest_ps.sum()):
        return None
    return Ledger(grid.names, grid.core_names, grid.hosts, grid.longest_ps, step_owners(grid), _between(grid))


def _between(grid: AlignedSteps) -> Int64s:
    """int64[cores, steps, len(OWNERS)]: the time from the end of a step on its slowest core to the next step.

    A core that is done earlier waits until then, which is in the step already.
    """
    of_core = grid.between_ps.reshape(-1, grid.between_ps.shape[2])
    left = np.maximum(of_core.sum(axis=1) - (grid.longest_ps - grid.duration_ps).ravel(), 0)
    return scaled_down(of_core, left).reshape(grid.between_ps.shape)


def step_owners(grid: AlignedSteps) -> Int64s:
    """int64[cores, steps, len(OWNERS)]: the account of each core, which adds up to the step on the slowest core."""
    owner_ps = grid.owner_ps.copy()
    moving, waiting = owner_index("collective_transfer"), owner_index("collective_wait")
    waits = np.minimum(collective_waits(grid.collective_ps), owner_ps[:, :, moving])
    owner_ps[:, :, moving] -= waits
    owner_ps[:, :, waiting] += waits
    owner_ps[:, :, owner_index("barrier")] += grid.longest_ps - grid.duration_ps
    return owner_ps


def collective_waits(collective_ps: Int64s) -> Int64s:
    """int64[cores, steps]: how much longer each core is in collectives than they take.

    All cores of a collective end it together, and the last to come waits for none: what it takes there is the transfer.
    Cores without a collective do not take part in it.

    Args:
        collective_ps: int64[cores, steps, collectives], self time.
    """
    waits = np.zeros(collective_ps.shape[:2], np.int64)
    for each in range(collective_ps.shape[2]):  # thousands of cores have many, and memory no room for all of them twice
        waits += waits_by_collective(collective_ps[:, :, each : each + 1])[:, :, 0]
    return waits


def waits_by_collective(collective_ps: Int64s) -> Int64s:
    """int64[cores, steps, collectives]: the same of each collective; see `collective_waits`."""
    never = np.iinfo(np.int64).max
    least = collective_ps.min(axis=0, initial=never, where=collective_ps > 0)
    waits: Int64s = collective_ps - least
    return np.maximum(waits, 0, out=waits)


_OF_GENERIC: Mapping[str, Owner] = {
    "input_ps": "input",
    "compile_ps": "compile",
    "host_compute_ps": "host",
    "kernel_launch_ps": "dispatch",
    "device_collectives_ps": "collective_transfer",
    "output_ps": "host_transfer",
    "device_to_device_ps": "copy",
    "device_compute_ps": "uncounted",
    "host_ops_ps": "uncounted",
    "all_other_ps": "host",
}
"""Whose the parts of a step on GPUs, or on the host's CPU, are. Nobody counts the work of their ops. Where nothing is
traced, no op runs either: that is the host's time, whether or not Python's functions were traced.
"""


def generic_ledger(steps: Sequence[GenericStep], name: str) -> Ledger | None:
    """The account of steps on GPUs, or on the host's CPU, which are those of all devices of a host together.

    Args:
        name: of what the account is of.
    """
    duration = np.array([max(step.duration_ps, 0) for step in steps], np.int64)
    if not int(duration.sum()):
        return None
    owner_ps = np.zeros((1, len(steps), len(OWNERS)), np.int64)
    for part, owner in _OF_GENERIC.items():
        of_part = [max(getattr(step.breakdown, part), 0.0) for step in steps]
        owner_ps[0, :, owner_index(owner)] += np.rint(of_part).astype(np.int64)
    rest = duration - owner_ps[0].sum(axis=1)  # parts are rounded
    owner_ps[0, :, owner_index("host")] += np.maximum(rest, 0)
    owner_ps[0] = scaled_down(owner_ps[0], duration)
    names = tuple(step.name for step in steps)
    nothing = np.zeros_like(owner_ps)
    return Ledger(names, (name,), np.zeros(1, np.int64), duration, owner_ps, nothing)


def cpu_ledger(hosts: Sequence[tuple[str, CpuAccount]]) -> Ledger | None:
    """The account of steps on the CPUs of some hosts: of those that all of them have, else of the host with most steps.

    A process that is done before the others is at a barrier until then. Between processes whose profiles are there a
    collective takes what it takes on the one that comes last, and the others wait; one alone says how much is no
    transfer (`CpuAccount.waits_ps`).

    Args:
        hosts: names and accounts.
    """
    having = [(name, account) for name, account in hosts if len(account)]
    if not having:
        return None
    common = [name for name in having[0][1].names if all(name in account.names for _, account in having)]
    if not common:
        having = [max(having, key=lambda host: len(host[1]))]
        common = list(having[0][1].names)
    rows = [[account.names.index(name) for name in common] for _, account in having]
    own = np.stack([account.step_ps[row] for (_, account), row in zip(having, rows, strict=True)])
    longest = own.max(axis=0)
    if not int(longest.sum()):
        return None
    owner_ps = np.stack([account.owner_ps[row] for (_, account), row in zip(having, rows, strict=True)])
    between = np.stack([account.between_ps[row] for (_, account), row in zip(having, rows, strict=True)])
    moving, waiting = owner_index("collective_transfer"), owner_index("collective_wait")
    if len(having) == 1:
        waits = having[0][1].waits_ps[rows[0]][None]
    else:
        names = sorted({name for _, account in having for name in account.collective_names})
        waits = collective_waits(
            np.stack([_by_collective(account, names)[row] for (_, account), row in zip(having, rows, strict=True)])
        )
    waits = np.minimum(waits, owner_ps[:, :, moving])
    owner_ps[:, :, moving] -= waits
    owner_ps[:, :, waiting] += waits
    owner_ps[:, :, owner_index("barrier")] += longest - own
    left = np.maximum(between.sum(axis=2) - (longest - own), 0)
    between = scaled_down(between.reshape(-1, len(OWNERS)), left.ravel()).reshape(between.shape)
    between[:, -1] = 0
    core_names = tuple(core_label(name, 0) for name, _ in having)
    return Ledger(tuple(common), core_names, np.arange(len(having)), longest, owner_ps, between)


def _by_collective(account: CpuAccount, names: Sequence[str]) -> Int64s:
    """int64[steps, names]: the time of the collectives of these names."""
    out = np.zeros((len(account), len(names)), np.int64)
    for column, name in enumerate(account.collective_names):
        out[:, names.index(name)] += account.collective_ps[:, column]
    return out


def late_one(core_names: Sequence[str], waits_ps: Floats) -> str:
    """The core that the others wait for, or its host where all cores of that are late; empty where there is none.

    Args:
        core_names: ``host:ordinal`` of each core.
        waits_ps: float64[cores], how long each waits for others; the late one waits least.
    """
    if not len(waits_ps) or not waits_ps.any():
        return ""
    is_late = waits_ps <= _NAMED_WAIT * waits_ps.mean()
    least = int(waits_ps.argmin())
    if not is_late[least]:
        return ""
    hosts = [host_of(name) for name in core_names]
    mine = np.array([host == hosts[least] for host in hosts])
    return core_names[least] if mine.all() or not is_late[mine].all() else hosts[least]
