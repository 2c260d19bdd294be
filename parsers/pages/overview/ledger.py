"""Where a step goes: the account of the steps as the pages show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.words import time
from tpuprof.parsers.ops.host_events.activity import IdleTime
from tpuprof.parsers.ops.roofline import Rates
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.finding import Finding
from tpuprof.parsers.pages.findings.ops.losses import Loss
from tpuprof.parsers.pages.findings.when import when
from tpuprof.parsers.pages.overview.owner_ops import OwnerOps, owner_ops
from tpuprof.parsers.pages.overview.verdict import Verdict, verdict_of, waited_for
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, WITHOUT_OPS, OpOwners, Owner
from tpuprof.parsers.steps.step_account import LEAST_BETWEEN, Account, AccountRow

_LEAST_TIMED = 0.001
"""A step has an owner from this share of the mean step on, where it is told in which steps that is."""


@dataclass(frozen=True, slots=True)
class OwnerTime:
    """An owner's time: means over cores and steps.

    Attributes:
        time_ps: in a step; fraction: of the step, 0-1.
        between_ps: between a step and the next, in none.
        worst_step, worst_step_ps: where it has most, mean over cores.
        worst_core, worst_core_ps: the core that has most, mean over steps.
        timing: in which steps it is: ``every 4th step``, ``from step 106 on``, ``in 2 of 23 steps``; empty where it is
            in most of them, or nothing distinguishes these from the others.
        timing_ps, elsewhere_ps: what it has in these steps, and in the others; both are 0 where that is empty.
        claimed_ps: what findings claim of its time in a step, and up to the next one where steps lie apart.
        unclaimed_ps: the rest of that time.
    """

    owner: Owner
    time_ps: float
    fraction: float
    between_ps: float
    worst_step: str
    worst_step_ps: float
    worst_core: str
    worst_core_ps: float
    timing: str = ""
    timing_ps: float = 0.0
    elsewhere_ps: float = 0.0
    claimed_ps: float = 0.0
    unclaimed_ps: float = 0.0

    @property
    def is_regular(self) -> bool:
        """Whether it comes at a rhythm, or from some step on: neither may be chance."""
        return self.timing.startswith(("every", "from"))


@dataclass(frozen=True, slots=True)
class MeanStep:
    """Where the mean step goes.

    Attributes:
        step_ps: the mean duration of a step on its slowest core.
        period_ps: the same with the time up to the next step.
        owners: all that have time in or between steps, in the order of `OWNERS`; in steps they add up to `step_ps`.
        steps: each step, as a mean over cores; periods: each but the last, with the time up to the next one; cores,
            hosts: each one, as a mean over steps.
        verdict: what bounds the program.
        ops: the ops of each owner that has any, over the capture.
        waited_for: the core or host that the others wait for; empty where there is no such one.
        losses: why ops take longer than at their roof, by cause; they add up to the owner `loss`. Empty where no device
            was traced whose peaks are known.
    """

    step_ps: float
    period_ps: float
    owners: tuple[OwnerTime, ...]
    steps: tuple[AccountRow, ...]
    periods: tuple[AccountRow, ...]
    cores: tuple[AccountRow, ...]
    hosts: tuple[AccountRow, ...]
    verdict: Verdict
    ops: Mapping[Owner, OwnerOps]
    waited_for: str = ""
    losses: tuple[Loss, ...] = ()

    def fraction(self, *owners: Owner) -> float:
        """The part of the mean step that some owners have, 0-1."""
        return sum(each.fraction for each in self.owners if each.owner in owners)

    def share(self, *owners: Owner) -> float:
        """The part of what shares are of that some owners have, 0-1: of the step, or up to the next one."""
        mine = [each for each in self.owners if each.owner in owners]
        between = sum(each.between_ps for each in mine) if self.steps_lie_apart else 0.0
        whole = self.period_ps if self.steps_lie_apart else self.step_ps
        return (sum(each.time_ps for each in mine) + between) / whole if whole else 0.0

    @property
    def steps_lie_apart(self) -> bool:
        """Whether shares are of `period_ps` (`Account.steps_lie_apart`)."""
        return self.period_ps - self.step_ps >= LEAST_BETWEEN * self.period_ps

    @property
    def no_op_fraction(self) -> float:
        """The part of the mean step in which no op ran, 0-1: input counts where no op waited for it."""
        return self.fraction(*WITHOUT_OPS, *(() if "input" in self.ops else ("input",)))


def mean_step(
    of: Account,
    table: OpTable,
    rates: Rates,
    of_ops: OpOwners,
    idle: IdleTime | None = None,
    found: Sequence[Finding] = (),
) -> MeanStep:
    """The account as pages show it.

    Args:
        table, rates: the ops over all cores: they show whether memory or compute bounds the work.
        of_ops: whose the time of each of these ops is.
        idle: what the host did in the gaps of the core that is idle most.
        found: the findings about these steps, which the verdict is held against.
    """
    mean, between = of.mean_ps, of.mean_between_ps
    step_ps = of.mean_step_ps
    by_step, by_core = of.owner_ps.mean(axis=0), of.owner_ps.mean(axis=1)
    owners = []
    for column, owner in enumerate(OWNERS):
        if not mean[column] and not between[column]:
            continue
        step, core = int(by_step[:, column].argmax()), int(by_core[:, column].argmax())
        timing = when(by_step[:, column], of.names, _LEAST_TIMED * step_ps)
        owners.append(
            OwnerTime(
                owner,
                float(mean[column]),
                float(mean[column]) / step_ps,
                float(between[column]),
                of.names[step],
                float(by_step[step, column]),
                of.core_names[core],
                float(by_core[core, column]),
                timing=timing.words,
                timing_ps=timing.inside_ps if timing.words else 0.0,
                elsewhere_ps=timing.outside_ps if timing.words else 0.0,
                unclaimed_ps=float(mean[column]) + float(between[column]) * of.steps_lie_apart,
            )
        )
    return MeanStep(
        step_ps=step_ps,
        period_ps=of.mean_period_ps,
        owners=tuple(owners),
        steps=of.rows("step"),
        periods=of.periods,
        cores=of.rows("core"),
        hosts=of.rows("host"),
        verdict=verdict_of(of, table, rates, idle, found),
        ops=owner_ops(table, of_ops),
        waited_for=waited_for(of),
    )


def of_group_shown(of: MeanStep, label: str) -> MeanStep:
    """The account of one group of cores, whose verdict says so."""
    return replace(of, verdict=replace(of.verdict, statement=f"Of {label}: {of.verdict.statement}"))


def with_claims(of: MeanStep, found: Sequence[Finding]) -> MeanStep:
    """An account with what the findings about its steps claim of each owner."""
    claimed: dict[Owner, float] = dict.fromkeys(OWNERS, 0.0)
    for claim in (claim for finding in found for claim in finding.claims):
        claimed[claim.owner] += claim.time_ps
    owners = (
        replace(each, claimed_ps=claimed[each.owner], unclaimed_ps=max(0.0, each.unclaimed_ps - claimed[each.owner]))
        for each in of.owners
    )
    return replace(of, owners=tuple(owners))


def explained(of: MeanStep) -> str:
    """A sentence on how much of what is not at the roof findings claim, and whose most of the rest is."""
    lost = [each for each in of.owners if each.owner != "ideal"]
    claimed, left = sum(each.claimed_ps for each in lost), sum(each.unclaimed_ps for each in lost)
    if claimed + left < 1:
        return ""
    rest, words = max(lost, key=lambda each: each.unclaimed_ps), ""
    if rest.unclaimed_ps >= _LEAST_REST * (claimed + left):
        what = "ops below their roof" if rest.owner == "loss" else OWNER_TITLES[rest.owner]
        words = f"; {time(rest.unclaimed_ps)} of the rest is {what}"
    return f"Findings explain {time(claimed)} of the {time(claimed + left)} not at the roof{words}."


_LEAST_REST = 0.01
"""An owner's part of what no finding explains is named from this share of all that is not at the roof on."""
