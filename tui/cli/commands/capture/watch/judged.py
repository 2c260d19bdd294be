"""What a look at a program shows: whether a step is slow or none ends, on which host, and why."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Literal

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.core_names import host_of
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.findings.finding import Finding
from tpuprof.parsers.pages.findings.why_slow import KINDS
from tpuprof.parsers.pages.overview.model import LEDGER, OVERVIEW, Overview
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.steps.accounts.owners import OWNERS, WAITS, Owner
from tpuprof.parsers.steps.step_account import Account

_REMEMBERED = 64
"""Steps that the running median is of: few enough that a lasting change becomes the new normal in minutes."""

_LEAST = 4
"""The least number of steps among which one can stand out."""

_STALLED = 3.0
"""If no step ends for this many times the running median, it is a stall."""

_OWN_PART = 0.25
"""A host is named if one of its cores, waits for others aside, causes at least this share of the excess."""

_APART = 1.25
"""With several hosts, that core also has to cause this many times as much as the median core."""

_NOBODYS: tuple[Owner, ...] = (*WAITS, "between_ops")
"""Owners of time in which a core may have waited for another one."""

Kind = Literal["slow step", "stall", "stall over"]


@dataclass(frozen=True, slots=True)
class Look:
    """What is read of one look.

    Attributes:
        page: the overview.
        ledger: the account of its steps by core; None without steps.
    """

    page: Overview
    ledger: Account | None


@dataclass(frozen=True, slots=True)
class Event:
    """A slow step, or a time in which no step ended; what is unknown is None, with the reason in `unknown`.

    Attributes:
        kind: ``stall over`` follows a stall as soon as steps end again.
        step_ps: how long the slowest step takes, or how long no step has ended: after a stall, at least this long.
        usual_ps: the running median.
        step: name of the slowest step.
        slow_steps: how many were slow, of `steps` in the look.
        host, core, owner: where most of the excess is, waits for others aside, and whose time that is.
        why: the first reason; worth_ps: its cost, a mean over the steps of the look.
        lasts: most steps of the look are slow: this is the new normal, and reported once.
    """

    kind: Kind
    step_ps: float
    usual_ps: float | None
    unknown: Mapping[str, str]
    step: str | None = None
    slow_steps: int = 0
    steps: int = 0
    host: str | None = None
    core: str | None = None
    owner: Owner | None = None
    why: str | None = None
    worth_ps: float | None = None
    lasts: bool = False


def read(run_path: str) -> Look:
    """Reads a run.

    Raises:
        ProfileError: it can't be read.
    """
    session = Session(open_logdir(run_path).find_run(None))
    return Look(session.page(OVERVIEW), session.page(LEDGER))


class Usual:
    """The running median of a program's steps."""

    def __init__(self) -> None:
        self._steps: deque[float] = deque(maxlen=_REMEMBERED)

    def median_ps(self, others: Iterable[float] = ()) -> float | None:
        """Of the steps before, and of others if these are too few; None if all together are too few."""
        steps = list(self._steps)
        if len(steps) < _LEAST:
            steps += others
        return median(steps) if len(steps) >= _LEAST else None

    def add(self, steps: Iterable[float]) -> None:
        """Adds steps; the oldest are forgotten."""
        self._steps.extend(steps)

    def forget(self) -> None:
        self._steps.clear()


def judge(look: Look, usual: Usual, slower: float) -> Event | None:
    """The slowest step of a look if it is slow, or a stall; None if all is as usual. Its steps are remembered.

    Args:
        slower: a step is slow at this multiple of the running median.
    """
    times = [float(step.duration_ps) for step in look.page.steps]
    usual_ps = usual.median_ps(times)
    if not times:
        return _stalled(look, usual_ps, slower)
    slow = [] if usual_ps is None else [time for time in times if time > slower * usual_ps]
    lasts = 2 * len(slow) > len(times)
    if lasts:
        usual.forget()
    usual.add(times)
    return _slow(look, times, usual_ps, len(slow), lasts) if slow and usual_ps is not None else None


def nothing_ran(look_ps: float, usual: Usual, slower: float) -> Event | None:
    """A stall without a profile, because nothing ran; None where a step may take that long."""
    usual_ps = usual.median_ps()
    if usual_ps is None or not _is_stall(look_ps, usual_ps, slower):
        return None
    why = "the servers traced nothing: no program ran, and the host did nothing that is traced"
    unknown = {**dict.fromkeys(("step", "host", "core", "owner", "worth_ms"), why), "profile": why}
    return Event("stall", look_ps, usual_ps, unknown, why="nothing ran")


def stall_over(stalled_ps: float, usual: Usual) -> Event:
    """The event that follows a stall once steps end again."""
    why = "steps end again"
    unknown = dict.fromkeys(("step", "host", "core", "owner", "why", "worth_ms", "profile"), why)
    usual_ps = usual.median_ps()
    if usual_ps is None:
        unknown |= dict.fromkeys(("usual_ms", "times"), "fewer steps were seen than a median needs")
    return Event("stall over", stalled_ps, usual_ps, unknown)


def _is_stall(length_ps: float, usual_ps: float, slower: float) -> bool:
    return length_ps >= max(slower, _STALLED) * usual_ps


def _stalled(look: Look, usual_ps: float | None, slower: float) -> Event | None:
    length_ps = look.page.environment.profile_duration_ps
    if length_ps is None or usual_ps is None or not _is_stall(length_ps, usual_ps, slower):
        return None
    why, worth, unknown = _explained(_reason(look.page.findings, None, None))
    unknown |= dict.fromkeys(("step", "host", "core", "owner"), "no step ended")
    return Event("stall", float(length_ps), usual_ps, unknown, why=why, worth_ps=worth)


def _slow(look: Look, times: Sequence[float], usual_ps: float, slow: int, lasts: bool) -> Event:
    index = max(range(len(times)), key=times.__getitem__)
    name = look.page.steps[index].name
    host, core, owner, why_no_host = _place(look.ledger, name, times[index] - usual_ps, lasts)
    why, worth, unknown = _explained(_reason(look.page.findings, name, owner))
    unknown |= {key: why_no_host for key, value in (("host", host), ("core", core), ("owner", owner)) if value is None}
    return Event(
        kind="slow step",
        step_ps=times[index],
        usual_ps=usual_ps,
        unknown=unknown,
        step=name,
        slow_steps=slow,
        steps=len(times),
        host=host,
        core=core,
        owner=owner,
        why=why,
        worth_ps=worth,
        lasts=lasts,
    )


def _place(
    of: Account | None, name: str, more_ps: float, lasts: bool
) -> tuple[str | None, str | None, Owner | None, str]:
    """Host, core and owner of most of the excess of a step over the others of its look; why they are unknown."""
    if of is None or name not in of.names:
        return None, None, None, "the profile has no account of its steps"
    if lasts or len(of) < _LEAST:
        return None, None, None, "the other steps of the look are slow too, or too few to compare with"
    index = of.names.index(name)
    excess = of.owner_ps[:, index, :] - np.median(of.owner_ps, axis=1)
    own = np.maximum(excess, 0.0)
    own[:, [OWNERS.index(owner) for owner in _NOBODYS]] = 0.0
    by_core = own.sum(axis=1)
    core = int(by_core.argmax())
    owner = OWNERS[int(own[core].argmax())]
    hosts = set(of.hosts.tolist())
    if by_core[core] < _OWN_PART * more_ps:
        return None, None, None, "no core causes a quarter of it without waits"
    if len(hosts) > 1 and by_core[core] < _APART * float(np.median(by_core)):
        return None, None, owner, "all hosts take longer by the same amount"
    label = of.core_names[core]
    host = host_of(label)
    alone = len(by_core) == 1 or by_core[core] >= _APART * float(np.median(by_core))
    return host, label if alone else None, owner, "all cores of the host take longer by the same amount"


def _explained(reason: Finding | None) -> tuple[str | None, float | None, dict[str, str]]:
    """What an event says of a reason: why, its cost, and why these are unknown."""
    if reason is None:
        return None, None, dict.fromkeys(("why", "worth_ms"), "no finding explains it")
    return reason.title, reason.worth_ps, {"worth_ms": reason.basis} if reason.worth_ps is None else {}


def _reason(findings: Sequence[Finding], step: str | None, owner: Owner | None) -> Finding | None:
    """The first reason about that step, else about the owner, else of all."""
    of_step = (each for each in findings if step is not None and each.subject.step == step)
    of_owner = (each for each in findings if owner is not None and owner in KINDS[each.kind].owners)
    slow = (each for each in findings if step is not None and each.kind == "slow-step")
    return next(of_step, None) or next(of_owner, None) or next(slow, None) or next(iter(findings), None)
