"""The page on a run's hosts as plain values; `parsers.pages.hosts.hosts` makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.base.words import percent_of
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.steps.model import StepTime

StepPartName = Literal["compute", "input", "output", "transfer", "collective", "wait", "idle"]
"""What a core does in a step, put together from the owners of its time (`parsers.steps.accounts.owners`).

compute: computing ops and copies within the device. input: in infeed ops, or idle while the host waits for input.
output: in outfeed ops. transfer: in ops that send to the host or receive from it, and in copies of host memory.
collective: in collectives, as long as the same one takes on the core that waits least. wait: longer than that, at
barriers, and for cores whose step ends later. idle: no op.
"""

PARTS: tuple[StepPartName, ...] = get_args(StepPartName)
"""All parts; they add up to the step."""

WAIT = PARTS.index("wait")

Verdict = Literal["straggler", "even", "uneven", "independent", "unknown"]
"""Hosts are independent where their cores form several groups that do not wait for each other."""


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host, or one core of it. Figures that its profile does not provide are None, and `HostsPage` says why.

    Attributes:
        host: the host's name.
        device_type: the device as the profile names it.
        cores: number of TensorCores or GPUs.
        step_time: over the host's own steps, each with its slowest core; None where it has none.
        not_compared: why it takes no part in the comparison, such as ``its file is cut off``; empty where it may.
        common_steps: how many of its steps all hosts share; the figures below cover these.
        own_ps: mean time of a step that the slowest core does not wait for other cores.
        slowest_in: in how many steps its own time is longer than every other host's.
        cost_ps: mean over all shared steps of how much longer its own time is than the next slowest host's.
        parts_ps: mean of its cores' steps by `PARTS`, adding up to the mean step. Where `input_percent` is None, the
            part for input means nothing, and idle time includes waiting for input.
        idle_percent: share of the capture in which its cores ran no op (as on the overview).
        input_percent, collective_percent, wait_percent: shares of the step time of `parts_ps`; input is None where
            it is unknown.
        duty_percent: duty cycle of its chips, over the capture.
        mxu_percent, hbm_percent: hardware counters.
        profile_duration_ps: see `HostSummary`.
        problems: what is wrong with its file, or missing in it.
        core: the number of a core or GPU; None for a host. A core is compared with all cores, and what only a host or a
            chip has is None.
        chip: the number of its chip; None for a host, and where the profile does not record it.
        noun: what a core is called, ``core`` or ``GPU``.
        lost_steps: steps that are left out since this core lost ops in them.
        group: the number of the group of cores that a core depends on (`parsers.pages.shared.groups`). A host has a row
            for each group that has some of its cores.
        of_several: whether the cores of the run form several groups.
    """

    host: str
    device_type: str | None
    cores: int
    step_time: StepTime | None
    not_compared: str
    common_steps: int
    own_ps: float | None
    slowest_in: int | None
    cost_ps: float | None
    parts_ps: tuple[float, ...] | None
    idle_percent: float | None
    input_percent: float | None
    collective_percent: float | None
    wait_percent: float | None
    duty_percent: float | None
    mxu_percent: float | None
    hbm_percent: float | None
    profile_duration_ps: int | None
    problems: tuple[str, ...]
    core: int | None = None
    chip: int | None = None
    noun: str = "core"
    lost_steps: tuple[str, ...] = ()
    group: int = 1
    of_several: bool = False

    @property
    def label(self) -> str:
        """``host``, or ``host, group 2`` where it is of one of several groups, or ``host:2`` for a core."""
        if self.core is not None:
            return core_label(self.host, self.core)
        return f"{self.host}, group {self.group}" if self.of_several else self.host

    @property
    def busy_percent(self) -> float | None:
        """Share of the cores' whole time in the capture with an op."""
        return None if self.idle_percent is None else 100.0 - self.idle_percent

    @property
    def step_idle_percent(self) -> float | None:
        """Share of a mean step without any op and without waiting for input, as the bars show it."""
        if self.parts_ps is None:
            return None
        return percent_of(self.parts_ps[PARTS.index("idle")], sum(self.parts_ps))

    @property
    def known_parts_ps(self) -> tuple[float | None, ...] | None:
        """`parts_ps` with None for input where that is unknown."""
        if self.parts_ps is None or self.input_percent is not None:
            return self.parts_ps
        return tuple(None if part == "input" else value for part, value in zip(PARTS, self.parts_ps, strict=True))


@dataclass(frozen=True, slots=True)
class SharedSteps(Sized):
    """The steps that all hosts share, in picoseconds.

    Attributes:
        names: name of each step.
        rows: the hosts that take part, as indices into `HostsPage.rows`.
        core_names: each core as ``host:ordinal``.
        core_hosts: int64[cores], index into `rows` of each core's host.
        parts_ps: int64[cores, steps, len(PARTS)]; of each core the parts add up to the step on the slowest core of all.
        core_duration_ps: int64[cores, steps], how long each core's own part of the step takes.
        duration_ps, done_ps: int64[hosts, steps]; times of the slowest core, the latter as `core_done_ps`.
        slowest: int64[steps], index into `rows` of the host with the longest own time; the first of equals.
        group: the number of the group whose hosts and cores share them.
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    core_names: tuple[str, ...]
    core_hosts: Int64s
    parts_ps: Int64s
    core_duration_ps: Int64s
    duration_ps: Int64s
    done_ps: Int64s
    slowest: Int64s
    group: int = 1

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        rows: Sequence[int],
        core_names: Sequence[str],
        core_hosts: Int64s,
        parts_ps: Int64s,
        core_duration_ps: Int64s,
    ) -> SharedSteps:
        of_cores = parts_ps.sum(axis=2) - parts_ps[:, :, WAIT], core_duration_ps
        of_hosts = [[times[core_hosts == host].max(axis=0) for host in range(len(rows))] for times in of_cores]
        done_ps, duration_ps = (np.stack(times) for times in of_hosts)
        of_all = tuple(names), tuple(rows), tuple(core_names)
        return cls(*of_all, core_hosts, parts_ps, core_duration_ps, duration_ps, done_ps, done_ps.argmax(axis=0))

    @property
    def own_ps(self) -> Int64s:
        """int64[hosts, steps]: as `core_own_ps`, of the slowest core."""
        return np.minimum(self.done_ps, self.duration_ps)

    @property
    def core_done_ps(self) -> Int64s:
        """int64[cores, steps]: `core_own_ps` where cores meet; where they never do, none is done before another."""
        done: Int64s = self.parts_ps.sum(axis=2) - self.parts_ps[:, :, WAIT]
        return done

    @property
    def core_own_ps(self) -> Int64s:
        """int64[cores, steps]: the time of each core's steps that it does not wait for other cores."""
        return np.minimum(self.core_done_ps, self.core_duration_ps)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A host whose profile cannot be read, and a sentence that says why."""

    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class HostsPage:
    """The hosts of a run compared.

    Attributes:
        rows: one row a host, or a host and group of its cores, in the order of the run.
        cores: one row a core, or GPU, host by host.
        slowest_core: index into `cores` of the one that is slowest; None where that makes no difference, or is unknown.
        cores_statement: whether one core delays the others.
        steps: the steps that the hosts share; None where there are no steps to compare. Where cores form several
            groups, these are the steps of the largest; other_steps: those of the others.
        verdict: what kind of sentence `statement` is.
        statement: whether one host delays the others.
        straggler: index into `rows` of the host that `statement` names, or None.
        left_out: hosts of the run that could not be read.
        unknown: dotted JSON key to the reason why a figure is None; cores_unknown: the same of the cores.
        warnings: sentences on the profiles.
    """

    rows: tuple[HostRow, ...]
    cores: tuple[HostRow, ...]
    slowest_core: int | None
    cores_statement: str
    steps: SharedSteps | None
    verdict: Verdict
    statement: str
    straggler: int | None
    left_out: tuple[LeftOut, ...]
    unknown: Mapping[str, str]
    cores_unknown: Mapping[str, str]
    warnings: tuple[str, ...]
    other_steps: tuple[SharedSteps, ...] = ()

    @property
    def every_step(self) -> tuple[SharedSteps, ...]:
        """The steps of each group that has some, the largest group's first."""
        return self.other_steps if self.steps is None else (self.steps, *self.other_steps)

    def steps_of(self, row: HostRow) -> SharedSteps | None:
        """The steps of the group of a host or a core."""
        return next((steps for steps in self.every_step if steps.group == row.group), None)

    @property
    def host_count(self) -> int:
        return len({row.host for row in self.rows})

    @property
    def group_count(self) -> int:
        """How many groups of cores there are that do not wait for each other."""
        return max((row.group for row in self.cores), default=0)
