"""The account of steps: every picosecond of every step has one owner, on TPUs, on GPUs and on the host's CPU.

It puts the accounts of cores together. Only beside each other do they show what a core waits for in collectives, and
what it has left of a step when its own part is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s, distinct
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.files.core_names import core_label, host_of
from tpuprof.parsers.steps.accounts.core import scaled_down
from tpuprof.parsers.steps.accounts.cpu import HostOnCpu
from tpuprof.parsers.steps.accounts.owners import OWNERS, WAITS, Owner, owner_index
from tpuprof.parsers.steps.aligned import AlignedSteps

LEAST_BETWEEN = 0.05
"""Steps lie apart where this share of the time from a step to the next is between them."""

_FAR_PS = 1 << 60
"""Clocks that are further apart, by days, are as good as this far apart."""

_MET = 0.02
"""A collective ends on all GPUs at a time, within this share of a step."""

_NAMED_WAIT = 0.25
"""A core is the one that others wait for if it waits for less than this share of what cores wait on average."""

_MEETING = [owner_index(owner) for owner in ("collective_transfer", *WAITS)]
"""Cores meet where some time is of these owners."""

AccountRows = Literal["step", "core", "host"]
"""What an account has a row for."""


@dataclass(frozen=True, slots=True)
class AccountRow:
    """The mean account of one step, core, host or op: its time, and each owner's (in the order of `OWNERS`)."""

    name: str
    time_ps: float
    owner_ps: tuple[float, ...]


def account_rows(names: Sequence[str], owner_ps: Floats) -> tuple[AccountRow, ...]:
    """Rows of these names; float64[rows, len(OWNERS)]."""
    columns = zip(names, owner_ps.sum(axis=1).tolist(), owner_ps.tolist(), strict=True)
    return tuple(AccountRow(name, ps, tuple(row)) for name, ps, row in columns)


@dataclass(frozen=True, slots=True)
class Account(Sized):
    """The account of some steps, by core, step and owner.

    Attributes:
        names: of the steps.
        core_names: ``host:ordinal`` of each core, or what else there is an account of.
        step_ps: int64[steps], duration of each step on its slowest core.
        owner_ps: int64[cores, steps, len(OWNERS)], none negative; each core's row adds up to `step_ps`.
        between_ps: int64[cores, steps, len(OWNERS)], none negative; the time from each step to the next, of each core's
            own.
    """

    names: tuple[str, ...]
    core_names: tuple[str, ...]
    step_ps: Int64s
    owner_ps: Int64s
    between_ps: Int64s

    @property
    def hosts(self) -> Int64s:
        """int64[cores]: the number of each core's host."""
        names = [host_of(name) for name in self.core_names]
        number = {name: at for at, name in enumerate(dict.fromkeys(names))}
        return np.array([number[name] for name in names], np.int64)

    def rows(self, by: AccountRows) -> tuple[AccountRow, ...]:
        """Each step as a mean over cores, or each core or host as a mean over steps."""
        if by == "step":
            return account_rows(self.names, self.owner_ps.mean(axis=0))
        of_core = self.owner_ps.mean(axis=1)
        if by == "core":
            return account_rows(self.core_names, of_core)
        names, hosts = tuple(dict.fromkeys(map(host_of, self.core_names))), self.hosts
        of_host = [of_core[hosts == number].mean(axis=0) for number in range(len(names))]
        return account_rows(names, np.array(of_host))

    @property
    def periods(self) -> tuple[AccountRow, ...]:
        """Each step but the last with the time up to the next one, as a mean over cores."""
        return account_rows(self.names[:-1], (self.owner_ps + self.between_ps).mean(axis=0)[:-1])

    @property
    def mean_step_ps(self) -> float:
        return float(self.step_ps.mean())

    @property
    def mean_period_ps(self) -> float:
        """The mean time from a step to the next."""
        return self.mean_step_ps + float(self.mean_between_ps.sum())

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
        return float(self.mean_between_ps.sum()) >= LEAST_BETWEEN * self.mean_period_ps

    @property
    def mean_whole_ps(self) -> float:
        """What shares are of: the mean step, with the time up to the next one where `steps_lie_apart`."""
        return self.mean_period_ps if self.steps_lie_apart else self.mean_step_ps

    def of(self, *owners: Owner) -> Int64s:
        total: Int64s = self.owner_ps[:, :, [owner_index(owner) for owner in owners]].sum(axis=2)
        return total


def account_of_cores(
    names: Sequence[str],
    core_names: Sequence[str],
    own_ps: Int64s,
    owner_ps: Int64s,
    between_ps: Int64s,
    waits_ps: Int64s,
    meet: bool = True,
) -> Account | None:
    """Puts the accounts of cores together; None without steps that take any time.

    What a core waits in collectives is no transfer. The step of all is over when that of the slowest core is; what is
    left of it on another core is time from its step to the next one, and is in the step instead. Where cores meet, they
    are at a barrier then; where nothing shows that they do, none waits for another, and this time has the owners that
    it has between steps.

    Args:
        own_ps: int64[cores, steps], the duration of each core's own step.
        owner_ps, between_ps: int64[cores, steps, len(OWNERS)], of each core's own steps, and from these to the next.
        waits_ps: int64[cores, steps], how long each core waits in collectives, as far as it is in any.
        meet: whether the cores meet, in collectives, in transfers from one to another, or at barriers.
    """
    longest = own_ps.max(axis=0, initial=0)
    if not int(longest.sum()):
        return None
    moving, waiting = owner_index("collective_transfer"), owner_index("collective_wait")
    owner_ps = owner_ps.copy()
    waits_ps = np.minimum(waits_ps, owner_ps[:, :, moving])
    owner_ps[:, :, moving] -= waits_ps
    owner_ps[:, :, waiting] += waits_ps
    left = np.maximum(between_ps.sum(axis=2) - (longest - own_ps), 0)
    left[:, -1] = 0
    later_ps = scaled_down(between_ps.reshape(-1, len(OWNERS)), left.ravel()).reshape(between_ps.shape)
    if not meet:
        owner_ps[:, :-1] += (between_ps - later_ps)[:, :-1]
    owner_ps[:, :, owner_index("barrier" if meet else "host")] += longest - owner_ps.sum(axis=2)
    return Account(tuple(names), tuple(core_names), longest, owner_ps, later_ps)


def tpu_account(grid: AlignedSteps | None) -> Account | None:
    """The account of steps on TPUs; None without steps that take any time, and where ops of all of them were lost."""
    if grid is None or grid.are_lost:
        return None
    waits = collective_waits(grid.collective_ps, grid.hops)
    meet = bool(grid.owner_ps[:, :, _MEETING].any() or grid.between_ps[:, :, _MEETING].any())
    return account_of_cores(grid.names, grid.core_names, grid.duration_ps, grid.owner_ps, grid.between_ps, waits, meet)


def collective_waits(collective_ps: Int64s, hops: Int64s | None = None) -> Int64s:
    """int64[cores, steps]: how much longer each core is in collectives than they take.

    All cores of a collective end it together, and the last to come waits for none: what it takes there is the transfer.
    Cores without a collective do not take part in it.

    Stages of a pipeline wait one after the other, for a stage that runs ops of its own or in other turns of a loop.
    There the transfer is the shortest one of its size, if most of the time is longer.

    Args:
        collective_ps: int64[cores, steps, collectives], self time.
        hops: int64[cores, 3, collectives], see `AlignedSteps`; None where nothing is sent along stages.
    """
    waits = np.zeros(collective_ps.shape[:2], np.int64)
    for each in _waits(collective_ps, hops):  # thousands of cores have many, and memory no room for all of them twice
        waits += each
    return waits


def waits_by_collective(collective_ps: Int64s, hops: Int64s | None = None) -> Int64s:
    """int64[cores, steps, collectives]: the same of each collective; see `collective_waits`."""
    waits = np.zeros_like(collective_ps)
    for each, of in enumerate(_waits(collective_ps, hops)):
        waits[:, :, each] = of
    return waits


def _waits(collective_ps: Int64s, hops: Int64s | None) -> Iterator[Int64s]:
    """int64[cores, steps] of each collective."""
    never, transfers = np.iinfo(np.int64).max, None if hops is None or len(hops) < 2 else _transfers(hops)
    for each in range(collective_ps.shape[2]):
        took = collective_ps[:, :, each]
        waits = np.maximum(took - took.min(axis=0, initial=never, where=took > 0), 0)
        if transfers is not None and (transfers[:, each] >= 0).any():
            between = np.maximum(took - transfers[:, each, None], 0)
            waits = between if 2 * between.sum() >= took.sum() else waits
        yield waits


_TURNS = 1.5
"""A loop has turns in a step from this mean number on: the capture may hold a little more than the steps."""


def _transfers(hops: Int64s) -> Int64s:
    """int64[cores, collectives]: what transfers between stages take a step; -1 where each core has its part in one."""
    shortest, a_step, size = hops.transpose(1, 0, 2)
    there = shortest > 0
    is_stage = there & ((a_step >= _TURNS * shortest) | (np.count_nonzero(there, axis=0) < 2))
    known = np.where(size > 0, size, -1 - np.arange(size.shape[1]))  # of an unknown size each is like no other
    least = np.array(shortest, np.float64)
    for each in distinct(known[is_stage]).tolist():
        alike = there & (known == each)
        least[alike] = shortest[alike].min()
    return np.where(is_stage, np.rint(a_step * (least / np.maximum(shortest, 1))), -1).astype(np.int64)


def cpu_account(hosts: Sequence[tuple[str, HostOnCpu]]) -> Account | None:
    """The account of steps on the CPUs or GPUs of hosts that keep step, else of the host whose steps take longest.

    Between processes whose profiles are there a collective takes what it takes on the one that comes last, and the
    others wait; one alone says how much is no transfer (`HostOnCpu.waits_ps`).

    Args:
        hosts: names and steps.
    """
    having = [(name, host) for name, host in hosts if len(host)]
    if not having:
        return None
    common = steps_kept([host for _, host in having])
    if not common:
        having = [max(having, key=lambda host: float(host[1].step_ps.mean()))]
        common = having[0][1].names
    rows = [(host, host.rows(common)) for _, host in having]
    if len(having) == 1:
        waits = having[0][1].waits_ps[rows[0][1]][None]
    else:
        names = sorted({name for host, _ in rows for name in host.collective_names})
        waits = collective_waits(np.stack([_by_collective(host, names)[row] for host, row in rows]))
    return account_of_cores(
        common,
        [core_label(name, 0) for name, _ in having],
        np.stack([host.step_ps[row] for host, row in rows]),
        np.stack([host.owner_ps[row] for host, row in rows]),
        np.stack([host.between_ps[row] for host, row in rows]),
        waits,
    )


def steps_kept(hosts: Sequence[HostOnCpu]) -> tuple[str, ...]:
    """The names of the steps that all hosts run together; none where nothing joins them.

    Processes of one program meet in collectives. Those of programs of their own do not, whatever their steps are
    called; nor do steps of one name that go on at other times. No event says how many GPUs a collective is of: there
    the last ones of a step end together by the hosts' clocks.
    """
    common = [name for name in hosts[0].names if all(name in host.names for host in hosts)]
    if not common or not all(host.meets_others for host in hosts):
        return ()
    clocks = [host.began_ns for host in hosts if host.began_ns is not None]
    are_gpus = all(host.met_ps is not None for host in hosts)
    if are_gpus and len(hosts) > len(clocks):
        return ()
    if len(clocks) == len(hosts):
        starts, ends, met = list[Int64s](), list[Int64s](), list[Int64s]()
        for host, clock in zip(hosts, clocks, strict=True):
            rows = host.rows(common)
            later_ps = min(1000 * (clock - min(clocks)), _FAR_PS)
            starts.append(host.start_ps[rows] + later_ps)
            ends.append(starts[-1] + host.step_ps[rows])
            met.append(ends[-1] if host.met_ps is None else host.met_ps[rows] + later_ps)
        begin, end, first, last = np.max(starts, axis=0), np.min(ends, axis=0), np.min(met, axis=0), np.max(met, axis=0)
        together = begin < end
        if are_gpus:
            together &= (first > begin) & (last - first <= _MET * (end - begin))
        if 2 * int(np.count_nonzero(together)) < len(common):
            return ()
    return tuple(common)


def _by_collective(host: HostOnCpu, names: Sequence[str]) -> Int64s:
    """int64[steps, names]: the time of the collectives of these names."""
    out = np.zeros((len(host), len(names)), np.int64)
    for column, name in enumerate(host.collective_names):
        out[:, names.index(name)] += host.collective_ps[:, column]
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
