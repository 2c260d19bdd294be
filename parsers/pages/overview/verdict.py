"""The verdict on a program: what most of a step that is not ideal goes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.words import sentence_name, share, time
from tpuprof.parsers.ops.host_events.activity import IdleTime, is_of_program
from tpuprof.parsers.ops.roofline import Rates
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.cores.collectives import COLLECTIVE
from tpuprof.parsers.pages.findings.cores.late import STRAGGLER
from tpuprof.parsers.pages.findings.finding import Finding
from tpuprof.parsers.pages.findings.idle.meanwhile import main_activity, of_launcher
from tpuprof.parsers.pages.findings.idle.outside import COMPILATION
from tpuprof.parsers.pages.findings.idle.waiting import IDLE, INPUT
from tpuprof.parsers.pages.findings.ops.bandwidth import MEMORY_BOUND
from tpuprof.parsers.pages.findings.ops.moving import COPY
from tpuprof.parsers.steps.accounts.owners import OWNER_GROUPS, OWNERS, WAITS, Owner, owner_index
from tpuprof.parsers.steps.step_account import Account, late_one

VerdictKind = Literal[
    "input-bound",
    "host-bound",
    "compiling",
    "waiting",
    "collective-bound",
    "transfer-bound",
    "copy-bound",
    "idle",
    "uncounted",
    "memory-bound",
    "compute-bound",
    "untraced",
    "unknown",
]
"""What most of a step that is not ideal goes to."""

LEAST_BOUND = 0.05
"""A cause is the verdict from this share of the step on; below it a step is bound by its ops."""

_CAUSES: dict[VerdictKind, tuple[Owner, ...]] = {
    "input-bound": OWNER_GROUPS["input"],
    "host-bound": OWNER_GROUPS["host"],
    "compiling": ("compile",),
    "waiting": OWNER_GROUPS["waiting"],
    "collective-bound": OWNER_GROUPS["collective"],
    "transfer-bound": OWNER_GROUPS["transfer"],
    "copy-bound": OWNER_GROUPS["copy"],
    "idle": OWNER_GROUPS["idle"],
    "uncounted": ("uncounted",),
}
"""The owners that a verdict counts together. What is left, `loss` and `ideal`, is bound by memory or by compute."""

WAITS_FOR_HOST: frozenset[VerdictKind] = frozenset({"input-bound", "host-bound", "compiling"})
"""Verdicts on steps that wait for the host."""

_WORDS: dict[VerdictKind, str] = {
    "input-bound": "Waiting for input takes",
    "host-bound": "Waiting for the host, without a program, takes",
    "compiling": "Waiting while the host compiles takes",
    "waiting": "Waiting for other cores takes",
    "collective-bound": "Collectives that nothing hides take",
    "transfer-bound": "Transfers to and from the host take",
    "copy-bound": "Moving data within the device takes",
    "idle": "Time without an op, although a program runs, takes",
    "uncounted": "Ops of unknown work, so of unknown roof, take",
}

_NEXT_STEP: dict[VerdictKind, str] = {
    "input-bound": INPUT.advice,
    "host-bound": IDLE.advice,
    "compiling": COMPILATION.advice,
    "waiting": STRAGGLER.advice,
    "collective-bound": COLLECTIVE.advice,
    "transfer-bound": "Find which arrays move to the host and back, and keep on the device what each step needs.",
    "copy-bound": COPY.advice,
    "idle": "On the timeline, look at what happens in the gaps between its ops.",
    "uncounted": "Look at the largest ops first.",
    "memory-bound": MEMORY_BOUND.advice,
    "compute-bound": "Look at the largest ops first: the op profile shows how close each is to its roof.",
}

_LEAST_WAITED = 0.005
"""Cores wait for one of them from this share of a step on; steps vary by as much."""

_CAUSED: Mapping[str, VerdictKind] = {
    "input": "input-bound",
    "host": "host-bound",
    "serving": "host-bound",
    "compilation": "compiling",
    "slow-core": "waiting",
    "straggler": "waiting",
    "imbalance": "waiting",
}
"""Findings that one core, host or file causes and others wait for: all that they claim is of this one cause."""

_OF_UNKNOWN = 0.5
"""Ops whose work nobody counted may be at their roof: they are the verdict where they take twice as long as a cause."""

_LEAST_CHARGED = 0.05
"""What is charged to a cause from other owners is named from this share of it on."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What bounds the program.

    Attributes:
        kind: the largest cause of a step that is not ideal.
        fraction: its part of the step, 0-1; of a program bound by memory or compute the part at the roof. None where
            the verdict is unknown.
        by: who or what causes it: the core or host that others wait for, or what the host does; empty where unknown.
        statement: a sentence or two.
        next_step: what to try first; empty where the verdict is unknown.
        input_fraction: the part that waits for input, with what other cores wait for those, 0-1.
    """

    kind: VerdictKind
    fraction: float | None
    by: str
    statement: str
    next_step: str
    input_fraction: float = 0.0


def verdict_of(
    of: Account, table: OpTable, rates: Rates, idle: IdleTime | None, found: Sequence[Finding] = ()
) -> Verdict:
    """The cause with most of the step, or what bounds the ops where none has `LEAST_BOUND` of it, or they lose more.

    Cores that wait for a core that waits for input wait for input too: what a finding in `_CAUSED` claims is charged to
    its cause, whoever owns the time. Where much lies between steps, the time from a step to the next is divided: a
    program that is idle between its steps is as slow as one that is idle in them.

    Args:
        idle: what the host did in the gaps of the core that is idle most.
        found: the findings about these steps, with their claims.
    """
    whole = of.mean_whole_ps
    words = "the time from a step to the next" if of.steps_lie_apart else "a step"
    mean = of.mean_ps + of.mean_between_ps * of.steps_lie_apart
    charged = _charged(found)
    for owner_ps in charged.values():
        mean = np.maximum(mean - owner_ps, 0.0)
    times = {kind: _of(mean, *owners) + float(charged.get(kind, _NOTHING).sum()) for kind, owners in _CAUSES.items()}
    loss, ideal = _of(mean, "loss") / whole, _of(mean, "ideal") / whole
    kind = max(times, key=lambda kind: times[kind] * (_OF_UNKNOWN if kind == "uncounted" else 1.0))
    fraction, of_input = times[kind] / whole, times["input-bound"] / whole
    if fraction < max(LEAST_BOUND, loss):
        return replace(_of_ops(table, rates, ideal, _of(of.mean_ps, "loss") / whole, words), input_fraction=of_input)
    late = waited_for(of)
    by = late if kind == "waiting" else _host_event(idle) if kind in ("host-bound", "idle") else ""
    because = f"; {'the cores wait for' if kind == 'waiting' else 'the host is in'} {sentence_name(by)}" if by else ""
    statement = f"{_WORDS[kind]} {share(fraction)} of {words} ({time(times[kind])} of {time(whole)}){because}."
    waits = 0.0 if kind == "waiting" else _of(charged.get(kind, _NOTHING), *WAITS)
    if waits >= _LEAST_CHARGED * times[kind]:
        statement += f" Other cores wait {time(waits)} of this time for {late or 'late cores'}."
    longer = times[kind] - _of(of.mean_ps, *WAITS) if kind == "waiting" else 0.0
    if longer >= _LEAST_CHARGED * times[kind]:
        statement += f" {time(longer)} of this time is the extra time of the late cores."
    return Verdict(kind, fraction, by, statement, _advice(kind, found), of_input)


def _advice(kind: VerdictKind, found: Sequence[Finding]) -> str:
    """What to try first: as the finding says that explains most of it, where kinds of finding share that cause."""
    owners = _CAUSES[kind] if kind in ("waiting", "transfer-bound") else ()
    claimed = {_NEXT_STEP[kind]: 0.0}
    for finding in (each for each in found if _CAUSED.get(each.kind, kind) == kind):
        claimed[finding.advice] = sum(claim.time_ps for claim in finding.claims if claim.owner in owners)
    return max(claimed, key=lambda advice: claimed[advice])


_NOTHING: Floats = np.zeros(len(OWNERS))


def _charged(found: Sequence[Finding]) -> Mapping[VerdictKind, Floats]:
    """What findings of one cause claim, by cause: float64[len(OWNERS)], means over cores and steps.

    Time at the roof is left out: it is spent on work.
    """
    out: dict[VerdictKind, Floats] = {}
    for finding in found:
        if finding.kind in _CAUSED:
            of_cause = out.setdefault(_CAUSED[finding.kind], np.zeros(len(OWNERS)))
            for claim in finding.claims:
                of_cause[owner_index(claim.owner)] += claim.time_ps * (claim.owner != "ideal")
    return out


def _of(owner_ps: Floats, *owners: Owner) -> float:
    return float(sum(owner_ps[owner_index(owner)] for owner in owners))


def _of_ops(table: OpTable, rates: Rates, ideal: float, loss: float, whole: str) -> Verdict:
    """The verdict on a program that does little but compute.

    Args:
        ideal, loss: parts of `whole`, a step or the time from one to the next.
    """
    if not ideal + loss:
        return Verdict("unknown", None, "", "No op of the steps has a known roof.", "")
    weight = np.maximum(table.self_ps, 0).astype(np.float64)
    in_compute, in_memory = float(weight[rates.bound_by == 0].sum()), float(weight[rates.bound_by > 0].sum())
    kind: VerdictKind = "memory-bound" if in_memory > in_compute else "compute-bound"
    what = "memory bandwidth" if kind == "memory-bound" else "peak FLOP/s"
    statement = (
        f"Compute ops take {share(ideal + loss)} of {whole} and would take {share(ideal)} at their roof. "
        f"Most of their time is bound by {what}."
    )
    return Verdict(kind, ideal, "", statement, _NEXT_STEP[kind])


def waited_for(of: Account) -> str:
    """The host or core that the others wait for; empty where there is no such one, or they hardly wait."""
    waits = of.of(*WAITS).mean(axis=1)
    return late_one(of.core_names, waits) if waits.mean() >= _LEAST_WAITED * of.mean_step_ps else ""


def _host_event(idle: IdleTime | None) -> str:
    """What the host did for most of the idle time; empty where no event of the program says so."""
    activity = None if idle is None else main_activity(of_launcher(idle))
    return activity.name if activity is not None and is_of_program(activity.name) else ""
