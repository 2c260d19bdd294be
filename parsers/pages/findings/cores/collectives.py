"""Findings about collectives: time in which a core does nothing but move data to others, or wait for them.

A collective takes as long on each core as that core waits for the last one to arrive, and then for the transfer. So
of the cores' times for one collective in one step the shortest is the transfer; what the others take longer is waiting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Floats, grouped
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import multiple, sentence_name, shortened, time
from tpuprof.parsers.ops.device import STAGES, kind_by_name
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.claims import COLLECTIVE_OWNERS, Rows, joined
from tpuprof.parsers.pages.findings.cores.same_ops import BUSY_OWNERS, differs_on_all, uneven_op
from tpuprof.parsers.pages.findings.finding import CORES, STEPS, JumpTarget, Kind
from tpuprof.parsers.pages.findings.ops.groups import CloneGroup, module_of, named, of_pass, worthwhile
from tpuprof.parsers.pages.findings.ops.kernels import uncounted_ps
from tpuprof.parsers.pages.findings.when import When, when
from tpuprof.parsers.steps.accounts.owners import WAITS, owner_index
from tpuprof.parsers.steps.boundaries.replica_groups import lacking_partners
from tpuprof.parsers.steps.step_account import collective_waits, waits_by_collective

LEAST_COLLECTIVE = 0.05
"""Every program waits a little for other cores; less than this share is rarely worth hiding. It is of the
time that can be judged: kernels of unknown work say nothing of what is worth hiding."""

LEAST_AHEAD = 0.03
"""Gathers, sends and exchanges count from this smaller share on, where they have most of the time: what they bring is
there before it is needed, and can be cut in parts that run beside the computation. What is reduced has only just been
computed, and behind the last of it there may be nothing to hide it."""

LEAST_WAITING = 0.02
"""Waiting for cores that have more to do counts from this smaller share on: jitter alone makes less."""

_MOSTLY = 0.5
"""A part goes into the title from this share of the finding on."""

_LEAST_BEHIND = 0.05
"""Waiting behind the end of a core's programs is named from this share of the waiting in collectives on."""

_NEARLY_ALL = 0.95
"""A title names one group alone from this share of the time on."""

_EXPERTS = pattern(r"expert|moe|rout(?:ed|er|ing)", re.IGNORECASE)
_BALANCE_EXPERTS = "Balance the tokens per expert: an auxiliary loss, a lower capacity factor, other routing."
_NEARLY = 0.25  # share by which what varies may differ from all that is waited for other slices

_HARDLY = 0.01  # share of waiting in collectives that is nothing
_TO_ALL = pattern(r"all-to-all")
_AHEAD = pattern(r"^(all-gather|(ragged-)?all-to-all|collective-permute|send|recv)")


@dataclass(frozen=True, slots=True)
class CollectiveWaits:
    """Collectives that a finding is about.

    Attributes:
        rows: rows of the op table.
        ps: mean time over cores, a step.
        waiting_ps: the part of it in which a core waits for another; 0 where that is unknown.
        wait_ps: float64[cores, steps], the same on each core in each step; None where that is unknown.
    """

    rows: Rows
    ps: float
    waiting_ps: float = 0.0
    wait_ps: Floats | None = None

    @property
    def transfer_ps(self) -> float:
        """The rest of it."""
        return self.ps - self.waiting_ps


def waits_in(budget: Budget, pattern: re.Pattern[str] | None = None) -> CollectiveWaits:
    """Time in collectives whose category matches, and how much of it is waiting for other cores."""
    table, steps = budget.evidence.table, budget.steps
    rows = budget.rows["collective"]
    if pattern is not None:
        rows = np.array([row for row in rows.tolist() if pattern.search(kind_of(budget, row))], np.intp)
    ps = float(budget.op_ps(rows).sum())
    if steps is None or steps.core_count < 2 or steps.grid.is_partial:
        return CollectiveWaits(rows, ps)
    mine = {table.name[row] for row in rows.tolist()}
    columns = [at for at, name in enumerate(steps.grid.collective_names) if name in mine]
    if not columns:
        return CollectiveWaits(rows, ps)
    of_grid = steps.grid.collective_ps[:, :, columns], steps.grid.hops[:, :, columns]
    wait_ps = collective_waits(*of_grid).astype(np.float64)
    return CollectiveWaits(rows, ps, min(float(wait_ps.mean()), ps), wait_ps)


def kind_of(budget: Budget, row: int) -> str:
    """What a collective does, see `kind_by_name`."""
    return kind_by_name(budget.evidence.table.category[row] or "", budget.evidence.table.name[row])


COLLECTIVE = Kind(
    "collective",
    "exposed collectives",
    advice="Overlap collectives with compute, shard another axis, or send less (bfloat16) in fewer, larger transfers.",
    rank=16,
    owners=COLLECTIVE_OWNERS,
    page="collectives",
    can_overlap=True,
)


@detects(COLLECTIVE)
def exposed_collectives(budget: Budget) -> Claimed:
    """Collectives on the XLA Ops line, during which nothing else ran on the core."""
    claim, claimed_ps = budget.take_all(*COLLECTIVE_OWNERS), budget.claimed(*COLLECTIVE_OWNERS)
    worth, rows, table = claim.worth_ps, budget.rows["collective"], budget.evidence.table
    ahead = np.array([row for row in rows.tolist() if _AHEAD.match(kind_of(budget, row))], np.intp)
    mostly_ahead = float(budget.op_ps(ahead).sum()) >= _MOSTLY * float(budget.op_ps(rows).sum()) > 0
    is_rest = claimed_ps > worth  # what is left of collectives that another finding is about
    least = LEAST_AHEAD if mostly_ahead and not is_rest else LEAST_COLLECTIVE
    if worth < least * (budget.whole_ps - uncounted_ps(budget)):
        return NOTHING
    waits, kinds = waits_in(budget), _kinds(budget, rows)
    timing = None if claimed_ps >= 1 else _when_exposed(budget)
    title, place = "Collectives are not hidden by compute", JumpTarget("timeline")
    if len(rows):
        group = kinds[0]
        verb = "are" if len(group.rows) > 1 else "is"
        title, place = f"{group.name} {verb} not hidden by compute", JumpTarget("timeline", table.name[group.first])
        if claim.of("collective_wait") >= _MOSTLY * worth:
            title = f"Cores wait for each other in {group.name}"
        elif group.ps < _NEARLY_ALL * sum(kind.ps for kind in kinds):
            title = f"Exposed collectives: {_in_short(group.name)} and others"
    title += timing.after if timing is not None and timing.is_regular else ""
    rest = f"; {time(claimed_ps)} of waiting counted by other findings is left out" if claimed_ps >= 1 else ""
    return budget.finding(
        COLLECTIVE,
        claim,
        title,
        f"Mean self time of collectives, waits for asynchronous ones included, on the cores' XLA Ops lines{rest}.",
        [
            f"Collectives not hidden by compute cost {budget.amount(worth + claimed_ps)}.",
            timing.sentence("they exceed those of the fastest step by")
            if timing is not None and timing.is_regular
            else "",
            *_largest(budget, rows, kinds),
            arrival(budget, waits),
        ],
        place,
    )


def _when_exposed(budget: Budget) -> When | None:
    """In which steps collectives take longer than in the others."""
    if budget.steps is None:
        return None
    times = budget.steps.of(*COLLECTIVE_OWNERS).mean(axis=0)
    return when(np.maximum(times - times.min(), 0.0), budget.steps.grid.names, LEAST_COLLECTIVE * budget.whole_ps)


def _in_short(name: str) -> str:
    """``5 backward all-reduces`` of ``5 all-reduces of the backward pass``, for a title that a narrow screen cuts."""
    what, of, which = name.removesuffix(" pass").partition(" of the ")
    number, _, kind = what.rpartition(" ")
    return f"{number} {which} {kind}".strip() if of else name


def arrival(budget: Budget, waits: CollectiveWaits) -> str:
    """A sentence on how much of the time is waiting for other cores; empty where the program has one core."""
    lacking = lacking_partners(budget.evidence.table, budget.evidence.core_count)
    if lacking:
        return f"{lacking[0].upper()}{lacking[1:]}."
    if waits.wait_ps is None or waits.ps <= 0:
        return ""
    if waits.waiting_ps < _HARDLY * waits.ps:
        return "The cores arrive together: none waits for another, and all of the time is transfer."
    return (
        f"Cores wait {time(waits.waiting_ps)} for the last core; the transfer, timed on the core that waits least, "
        f"takes {time(waits.transfer_ps)}."
    )


def _kinds(budget: Budget, rows: Rows) -> list[CloneGroup]:
    """Collectives by kind and pass, those with most time first: ``12 reduce-scatters of the backward pass``.

    The start and the done of an asynchronous one count as one.
    """
    table = budget.evidence.table
    members = grouped(((kind_of(budget, row), of_pass(table, np.array([row]))), row) for row in rows.tolist())
    groups = []
    for (kind, of), rows_of in members.items():
        chosen = np.array(rows_of, np.intp)
        count = max(sum("-done" not in table.name[row] for row in rows_of), 1)
        what = shortened(table.name[rows_of[0]]) if len(rows_of) == 1 else counted(count, kind)
        name = f"{what} of the {of} pass" if of in ("forward", "backward") else what
        groups.append(CloneGroup(chosen, float(budget.op_ps(chosen).sum()), name))
    return sorted(groups, key=lambda group: -group.ps)


def _largest(budget: Budget, rows: Rows, kinds: Sequence[CloneGroup]) -> Iterator[str]:
    if not len(rows):
        return
    if len(kinds) > 1 or len(rows) > 1:
        yield f"Most of it: {', '.join(f'{_in_short(group.name)} {budget.amount(group.ps)}' for group in kinds[:3])}."
    names = budget.evidence.table.name
    name, begun = sentence_name(names[rows[0]]), sum("-done" not in names[row] for row in rows.tolist()) or len(rows)
    which = "The largest of " + counted(begun, "collective") if begun > 1 else "The only one"
    yield budget.largest(int(rows[0]), float(budget.op_ps(rows[:1])[0]), which)
    if "-done" in name:
        yield f"{name} waits for an asynchronous transfer: too little compute runs beside it."


# --- causes --------------------------------------------------------------------------------------------------------


IMBALANCE = Kind(
    "imbalance",
    "uneven work",
    advice="Give each core as much to compute: as many tokens, as many layers, or as much of a causal mask (zigzag).",
    rank=12,
    owners=WAITS,
    needs=(CORES, STEPS),
    page="cores",
)


@detects(IMBALANCE)
def imbalance(budget: Budget) -> Claimed:
    """Cores that wait for others because these have more to compute, as with uneven experts or a causal mask.

    They wait in all-to-alls, or in any collectives where the busiest core waits least, if it sends along a ring, or if
    the other cores differ in the same ops too. Then they wait for it in the other collectives as well.
    """
    steps, others, uneven = budget.steps, _uneven(budget), uneven_op(budget)
    waits, kind = waits_in(budget, _TO_ALL), "All-to-alls"
    if others is not None and others.waiting_ps > waits.waiting_ps:
        waits, kind = others, "Collectives"
    if steps is None or waits.wait_ps is None:
        return NOTHING
    claim = budget.take(COLLECTIVE_OWNERS, waits.wait_ps)
    waited = claim.worth_ps
    if waited < LEAST_WAITING * budget.whole_ps or waited < _MOSTLY * waits.ps:
        return NOTHING
    busy = steps.of(*BUSY_OWNERS)
    # the busiest core's programs may outlast those of others too, which are over then
    longer = np.maximum(busy.max(axis=0) - busy - claim.cells.sum(axis=2), 0.0)
    behind = budget.take(("barrier",), longer)
    is_behind = behind.worth_ps >= _LEAST_BEHIND * waited
    claim = joined(claim, behind) if is_behind else claim
    worth = claim.worth_ps
    most, mean = busy.max(axis=0), busy.mean(axis=0)
    core = steps.core(int(busy.mean(axis=1).argmax()))
    name = budget.evidence.table.name[waits.rows[0]]
    return budget.finding(
        IMBALANCE,
        claim,
        f"Cores wait for the busiest in {_together(budget, waits.rows)}: work is uneven",
        f"Time in {kind[0].lower()}{kind[1:]} above the shortest time of any core in each step: waiting, not transfer"
        + (", plus the time of cores that finish before the busiest one." if is_behind else "."),
        [
            f"{kind} take {budget.amount(waits.ps)}: {time(waited)} is waiting for the last core, "
            f"{time(waits.transfer_ps)} is transfer.",
            f"For another {time(behind.worth_ps)}, cores have finished and idle until the busiest one has."
            if is_behind
            else "",
            f"The busiest core of a step computes for {time(float(most.mean()))}, the mean core for "
            f"{time(float(mean.mean()))}; the busiest is most often {shortened(core)}."
            if worth > 0
            else "",
            uneven,
            budget.largest(int(waits.rows[0]), float(budget.op_ps(waits.rows[:1])[0])),
        ],
        JumpTarget("timeline", name),
        advice=_BALANCE_EXPERTS if _EXPERTS.search(uneven + budget.described(int(waits.rows[0]))) else "",
    )


def _uneven(budget: Budget) -> CollectiveWaits | None:
    """Collectives, with the time of all of them, where the busiest core waits least in them because work is uneven.

    Stages of a pipeline wait all alike: none of them is what the others wait for.
    """
    steps, waits = budget.steps, waits_in(budget, STAGES)
    if waits.wait_ps is None and differs_on_all(budget):
        waits = waits_in(budget)
    if steps is None or waits.wait_ps is None:
        return None
    times = steps.of(*COLLECTIVE_OWNERS)
    by_core, busy = times.mean(axis=1), steps.of(*BUSY_OWNERS).mean(axis=1)
    if by_core.argmin() != busy.argmax() or waits.ps < _MOSTLY * float(by_core.mean()):
        return None
    wait_ps = np.maximum(times - times[by_core.argmin()], 0.0)
    return replace(waits, ps=float(by_core.mean()), waiting_ps=float(wait_ps.mean()), wait_ps=wait_ps)


def _together(budget: Budget, rows: Rows) -> str:
    kinds = _kinds(budget, rows)
    are = {kind_of(budget, row) for row in rows.tolist()}
    return kinds[0].name if len(kinds) == 1 else counted(len(rows), are.pop() if len(are) == 1 else "collective")


PIPELINE = Kind(
    "pipeline",
    "pipeline bubbles",
    advice="Use more micro-batches per step, or an interleaved schedule, and stages of equal length.",
    rank=13,
    needs=(CORES, STEPS),
    page="cores",
)


@detects(PIPELINE)
def pipeline_bubbles(budget: Budget) -> Claimed:
    """Stages of a pipeline that wait for what the stage before or behind them sends."""
    steps, waits = budget.steps, waits_in(budget, STAGES)
    if steps is None or waits.wait_ps is None:
        return NOTHING
    claim, rows = budget.take(("collective_wait",), waits.wait_ps), waits.rows
    worth = claim.worth_ps
    if worth < LEAST_WAITING * budget.whole_ps or worth < _MOSTLY * waits.ps:
        return NOTHING
    by_core = waits.wait_ps.mean(axis=1)
    longest, least = steps.core(int(by_core.argmax())), steps.core(int(by_core.argmin()))
    differ = by_core.max() - by_core.min() >= _HARDLY * by_core.max()
    return budget.finding(
        PIPELINE,
        claim,
        f"Pipeline stages wait for each other in {_together(budget, rows)}",
        "Time in sends between stages, above the time of the shortest send.",
        [
            f"Cores wait for other stages for {budget.amount(worth)}; sending alone takes {time(waits.transfer_ps)}.",
            f"Core {shortened(longest)} waits most, {time(float(by_core.max()))} a step, {shortened(least)} least, "
            f"{time(float(by_core.min()))}."
            if differ
            else "",
            budget.largest(int(rows[0]), float(budget.op_ps(rows[:1])[0])),
        ],
        JumpTarget("timeline", budget.evidence.table.name[rows[0]]),
    )


# --- other slices --------------------------------------------------------------------------------------------------


DCN = Kind(
    "dcn",
    "transfers between slices",
    advice=(
        "Send less between slices: reduce within a slice first, compress gradients, or overlap with the backward pass."
    ),
    rank=14,
    owners=("collective_transfer",),
    needs=(CORES,),
    page="collectives",
    can_overlap=True,
)


@detects(DCN)
def across_slices(budget: Budget) -> Claimed:
    """Collectives between slices, which the hosts carry over the data centre's network: sends and receives.

    The compiler names the runtime that carries them (``xla_megascale_runtime``); without HLO their framework op does.
    """
    known = budget.evidence
    sent = budget.rows["host"].tolist()
    rows = np.array([row for row in sent if known.table.is_across_slices(row, lambda: known.modules)], np.intp)
    times, timing = budget.op_ps(rows), _when_exposed(budget)
    explained = _explained(budget, rows, float(times.sum()))
    waited_ps = explained * float(times.sum())

    losing = worthwhile(budget, rows, times * (1 - explained))
    first = losing.groups[0]
    count, worth = len(rows), losing.claim.worth_ps
    # Collectives within a slice may be what varies. What the steps of a rhythm have is a mean over all steps.
    mean_ps = 0.0 if timing is None else timing.inside_ps * float(timing.steps.mean())
    is_it = timing is not None and timing.is_regular and abs(mean_ps - worth) <= _NEARLY * worth
    module = module_of(known, first.first) if is_it else None
    which = f"{timing.first} the" if timing is not None and is_it else "The"
    return budget.finding(
        DCN,
        losing.claim,
        f"{which} cores wait for other slices in {shortened(known.table.name[first.first])}"
        + (f" and {count - 1} more" if count > 1 else ""),
        "Mean time in sends to and receives from other slices on the cores' XLA Ops lines"
        + (f"; {time(waited_ps)} of waiting counted by other findings is left out." if waited_ps >= 1 else "."),
        [
            f"Collectives over the data centre's network (DCN) take {budget.amount(losing.claim.worth_ps + waited_ps)}"
            + (f", {time(waited_ps)} of it waiting for late cores" if waited_ps >= 1 else "")
            + f": {named(losing.groups)}.",
            timing.sentence("they exceed those of the fastest step by") if timing is not None and is_it else "",
            f"They are part of {sentence_name(module.name)}." if module is not None and module.name else "",
            budget.largest(first.first, float(times[rows == first.first][0])),
            "They go through the hosts, and are far slower than collectives within a slice (ICI).",
        ],
        JumpTarget("timeline", known.table.name[first.first]),
    )


def _explained(budget: Budget, rows: Rows, ps: float) -> float:
    """The part (0-1) of some collectives' time that findings about late cores have: of what these explain of all
    waiting in collectives, in each step on each core as much as these collectives have of it.

    Args:
        ps: the time of these collectives.
    """
    steps, at = budget.steps, [owner_index("collective_wait")]
    if steps is None or ps <= 0:
        return 0.0
    claimed = (budget.whole_cells - budget.cells)[:, :, at].sum(axis=2)
    if not claimed.any():
        return 0.0
    mine = {budget.evidence.table.name[row] for row in rows.tolist()}
    columns = [column for column, name in enumerate(steps.grid.collective_names) if name in mine]
    waits = waits_by_collective(steps.grid.collective_ps, steps.grid.hops)
    of_all = waits.sum(axis=2)
    part = np.divide(waits[:, :, columns].sum(axis=2), of_all, out=np.zeros(of_all.shape), where=of_all > 0)
    return min(1.0, float((claimed * part).mean()) / ps)


# --- a slow link: a ring waits for it as a whole --------------------------------------------------------------------


SLOW_LINK = Kind(
    "slow-link",
    "a slow link between cores",
    advice="Let neighbours of the mesh be neighbours of the torus (mesh_utils.create_device_mesh). If these two are, "
    "run another program on them: a link that is slow there too is broken, and the host should be replaced.",
    rank=12,
    needs=(CORES, STEPS),
    page="collectives",
)


@detects(SLOW_LINK)
def slow_link(budget: Budget) -> Claimed:
    """What goes over one link of a collective-permute arrives later than over the others."""
    link, steps = budget.evidence.slow_link, budget.steps
    rows = [row for row in budget.rows["collective"].tolist() if kind_of(budget, row).startswith("collective-permute")]
    if link is None or steps is None or not rows:
        return NOTHING
    waiting = float(budget.op_ps(np.array(rows, np.intp)).sum())
    claim = budget.take_mean(COLLECTIVE_OWNERS, min(waiting, link.excess_ps / len(steps)))
    budget.needs(claim.worth_ps, LEAST_WAITING)
    factor = link.link_ps / max(link.others_ps, 1.0)
    source, target = sentence_name(link.source), sentence_name(link.target)
    return budget.finding(
        SLOW_LINK,
        claim,
        f"What {source} sends to {target} takes {multiple(factor)} times as long as between other cores",
        "Time in collective-permutes, at most what transfers over this link take longer than over the others.",
        [
            f"{counted(link.count, 'transfer')} from {source} to {target} arrived after {time(link.link_ps)} each, "
            f"those ahead of them included; the same between other cores after {time(link.others_ps)}.",
            f"All cores that pass on what they get wait for that: collective-permutes cost {budget.amount(waiting)}.",
            budget.largest(rows[0], float(budget.op_ps(np.array(rows[:1], np.intp))[0])),
        ],
        JumpTarget("timeline", budget.evidence.table.name[rows[0]]),
        is_estimate=True,
    )
