"""What the page on a run's hosts consists of; `parsers.pages.hosts.hosts` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.pages.words import percent_of
from tpuprof.parsers.steps.model import StepTime

Part = Literal["compute", "input", "output", "transfer", "collective", "wait", "idle"]
"""What a core does in a step.

compute: ops, all that is not listed here. input: in infeed ops, or idle while the host waits for input. output: in
outfeed ops. transfer: in ops that send to the host or receive from it. collective: in collectives (sends and receives
between cores too), as long as the core that is least in them. wait: in collectives, longer than that. idle: no op.
"""

PARTS: tuple[Part, ...] = get_args(Part)
"""They add up to the step."""

Verdict = Literal["straggler", "even", "uneven", "unknown"]


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host; figures that its profile cannot tell are None, and `HostsPage.unknown` says why.

    Attributes:
        host: its name.
        device_type: as the profile names it.
        cores: TensorCores or GPUs.
        step_time: over the host's own steps, each with its slowest core; None where it has none.
        not_compared: why it takes no part in the comparison though it may have steps, such as ``its file is cut off``;
            empty for a host that may take part.
        common_steps: how many of them all hosts share; what follows is over these.
        own_ps: mean time of a step that the slowest core does not wait in collectives.
        slowest_in: in how many steps its own time is longer than every other host's.
        cost_ps: mean over all shared steps of how much longer its own time is than the next slowest host's.
        parts_ps: mean of its cores' step by `PARTS`; what it says of input is worth nothing where `input_percent` is
            None, and what it says of idle then includes the waiting for input.
        idle_percent: share of the cores' whole time in the capture without any op (as on the overview).
        input_percent, collective_percent, wait_percent: share of the step time of `parts_ps`; input is None where
            nothing tells.
        duty_percent: duty cycle of its chips.
        mxu_percent, hbm_percent: hardware counters.
        profile_duration_ps: see `HostSummary`.
        problems: what is wrong with its file, or missing in it.
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

    @property
    def step_idle_percent(self) -> float | None:
        """Share of a mean step without any op and without waiting for input, as the bars show it."""
        if self.parts_ps is None:
            return None
        return percent_of(self.parts_ps[PARTS.index("idle")], sum(self.parts_ps))

    @property
    def known_parts_ps(self) -> tuple[float | None, ...] | None:
        """`parts_ps` with None for input where nothing tells of it."""
        if self.parts_ps is None or self.input_percent is not None:
            return self.parts_ps
        return tuple(None if part == "input" else value for part, value in zip(PARTS, self.parts_ps, strict=True))


@dataclass(frozen=True, slots=True)
class HostSteps:
    """The steps that all hosts share, in picoseconds.

    Attributes:
        names: one a step.
        rows: the hosts that take part, as indices into `HostsPage.rows`.
        core_names: ``host:ordinal``; core_hosts: int64[cores], index into `rows` of each core's host.
        parts_ps: int64[cores, steps, len(PARTS)]; adds up to the duration.
        duration_ps, own_ps: int64[hosts, steps]; of the slowest core.
        slowest: int64[steps], index into `rows` of the host with the longest own time; the first of equals.
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    core_names: tuple[str, ...]
    core_hosts: Int64s
    parts_ps: Int64s
    duration_ps: Int64s
    own_ps: Int64s
    slowest: Int64s

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A host whose profile cannot be read, and why, one sentence."""

    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class HostsPage:
    """The hosts of a run compared.

    Attributes:
        rows: one a host, in the order of the run.
        steps: what they share; None where there is nothing to compare steps by.
        verdict: what kind of sentence `statement` is; straggler: index into `rows` of the host that it names, or None.
        statement: whether one host holds up the others.
        left_out: hosts of the run that could not be read.
        unknown: dotted JSON key to the reason why a figure is None.
        warnings: about the profiles.
    """

    rows: tuple[HostRow, ...]
    steps: HostSteps | None
    verdict: Verdict
    statement: str
    straggler: int | None
    left_out: tuple[LeftOut, ...]
    unknown: Mapping[str, str]
    warnings: tuple[str, ...]
