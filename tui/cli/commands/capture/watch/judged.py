"""What a look at a program shows: whether a step is slow or none ends, on which host, and why."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.findings.finding import KIND_OWNERS
from tpuprof.parsers.session import pages
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.steps.accounts.owners import OWNERS, WAITS, Owner

if TYPE_CHECKING:
    from tpuprof.parsers.pages.findings.finding import Finding
    from tpuprof.parsers.pages.overview.model import Overview
    from tpuprof.parsers.steps.ledger import Ledger

_REMEMBERED = 64
"""Steps that the running median is of: few enough that a lasting change becomes the new normal in minutes."""

_LEAST = 4
"""Steps that it takes for one of them to stand out."""

_STALLED = 3.0
"""So many times the running median without the end of a step is a stall."""

_OWN_PART = 0.25
"""The host is named whose core has at least this share of what the step takes longer, without waiting for others."""

_APART = 1.25
"""And so many times what the core in the middle has, where there are several hosts."""

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
    ledger: Ledger | None


@dataclass(frozen=True, slots=True)
class Event:
    """A step that is slow, or the time in which none ended; None for what is unknown, with the reason in `unknown`.

    Attributes:
        kind: which of both; ``stall over`` follows a stall as soon as steps end again.
        step: name of the slowest step.
        step_ps: how long it takes, or how long no step ended: in a stall so far, and after it, at least this long.
        usual_ps: the running median.
        slow_steps: how many were slow, of `steps` in the look.
        host, core, owner: where most of the excess is that is no waiting for others, and whose time that is.
        why: the first reason; worth_ps: what that costs, a mean over the steps of the look.
        lasts: most steps of the look are slow: this is the new normal, and told once.
    """

    kind: Kind
    step: str | None
    step_ps: float | None
    usual_ps: float | None
    slow_steps: int
    steps: int
    host: str | None
    core: str | None
    owner: Owner | None
    why: str | None
    worth_ps: float | None
    lasts: bool
    unknown: Mapping[str, str]


def read(run_path: str) -> Look:
    """Reads a run.

    Raises:
        ProfileError: it can't be read.
    """
    session = Session(open_logdir(run_path).find_run(None))
    return Look(session.page(pages.OVERVIEW), session.page(pages.LEDGER))


class Usual:
    """The running median of a program's steps."""

    def __init__(self) -> None:
        self._steps: deque[float] = deque(maxlen=_REMEMBERED)

    def median_ps(self, others: Iterable[float] = ()) -> float | None:
        """Of the steps before or, where these are few, with others; None of fewer than it takes."""
        steps = list(self._steps)
        if len(steps) < _LEAST:
            steps += others
        return median(steps) if len(steps) >= _LEAST else None

    def add(self, steps: Iterable[float]) -> None:
        """Takes note of steps."""
        self._steps.extend(steps)

    def forget(self) -> None:
        """Begins anew, as with another program."""
        self._steps.clear()


def judge(look: Look, usual: Usual, slower: float) -> Event | None:
    """The slowest step of a look where it is slow, or a stall; None where all is as usual. Its steps are remembered.

    Args:
        slower: from how many times the running median on a step is slow.
    """
    times = [float(step.duration_ps) for step in look.page.steps]
    usual_ps = usual.median_ps(times)
    if not times:
        return _stall(look, usual_ps, max(slower, _STALLED))
    slow = [] if usual_ps is None else [time for time in times if time > slower * usual_ps]
    lasts = 2 * len(slow) > len(times)
    if lasts:
        usual.forget()
    usual.add(times)
    return _slow(look, times, usual_ps, len(slow), lasts) if slow and usual_ps is not None else None


def nothing_ran(look_ps: float, usual: Usual, slower: float) -> Event | None:
    """A stall of which not even a profile came, as nothing ran; None where a step may take that long."""
    usual_ps = usual.median_ps()
    if usual_ps is None or look_ps < max(slower, _STALLED) * usual_ps:
        return None
    why = "the servers traced nothing: no program ran, and the host did nothing that is traced"
    unknown = {**dict.fromkeys(("step", "host", "core", "owner", "worth_ms"), why), "profile": why}
    return Event("stall", None, look_ps, usual_ps, 0, 0, None, None, None, "nothing ran", None, False, unknown)


def none_since(look: Look, since_ps: float, usual: Usual, slower: float) -> Event | None:
    """A stall of servers that keep their last steps, where the newest is that of the look before."""
    usual_ps = usual.median_ps()
    if usual_ps is None or since_ps < max(slower, _STALLED) * usual_ps:
        return None
    return _stalled(look, since_ps, usual_ps, "no step ended since the look before")


def stall_over(stalled_ps: float, usual: Usual) -> Event:
    """What is told once steps end again."""
    why = "steps end again"
    unknown = dict.fromkeys(("step", "host", "core", "owner", "why", "worth_ms", "profile"), why)
    usual_ps = usual.median_ps()
    if usual_ps is None:
        unknown |= dict.fromkeys(("usual_ms", "times"), "fewer steps were seen than a median needs")
    return Event("stall over", None, stalled_ps, usual_ps, 0, 0, None, None, None, None, None, False, unknown)


def _stall(look: Look, usual_ps: float | None, times: float) -> Event | None:
    length = look.page.environment.profile_duration_ps
    if usual_ps is None or length is None or length < times * usual_ps:
        return None
    return _stalled(look, float(length), usual_ps, "no step ended")


def _stalled(look: Look, length_ps: float, usual_ps: float, none: str) -> Event:
    reason = _reason(look.page.findings, None, None)
    unknown = dict.fromkeys(("step", "host", "core", "owner"), none)
    if reason is None:
        unknown |= dict.fromkeys(("why", "worth_ms"), "no finding explains it")
    why, worth = (None, None) if reason is None else (reason.title, reason.worth_ps)
    return Event("stall", None, length_ps, usual_ps, 0, 0, None, None, None, why, worth, False, unknown)


def _slow(look: Look, times: Sequence[float], usual_ps: float, slow: int, lasts: bool) -> Event:
    index = max(range(len(times)), key=times.__getitem__)
    name = look.page.steps[index].name
    host, core, owner, why_no_host = _place(look.ledger, name, times[index] - usual_ps, lasts)
    reason = _reason(look.page.findings, name, owner)
    unknown = {key: why_no_host for key, value in (("host", host), ("core", core), ("owner", owner)) if value is None}
    if reason is None:
        unknown |= dict.fromkeys(("why", "worth_ms"), "no finding explains it")
    elif reason.worth_ps is None:
        unknown["worth_ms"] = reason.basis
    return Event(
        kind="slow step",
        step=name,
        step_ps=times[index],
        usual_ps=usual_ps,
        slow_steps=slow,
        steps=len(times),
        host=host,
        core=core,
        owner=owner,
        why=None if reason is None else reason.title,
        worth_ps=None if reason is None else reason.worth_ps,
        lasts=lasts,
        unknown=unknown,
    )


def _place(
    of: Ledger | None, name: str, more_ps: float, lasts: bool
) -> tuple[str | None, str | None, Owner | None, str]:
    """Host, core and owner of most of what a step takes longer than the others of its look; why they are unknown."""
    if of is None or name not in of.names:
        return None, None, None, "the profile has no account of its steps"
    if lasts or len(of) < _LEAST:
        return (
            None,
            None,
            None,
            "the other steps of the look are slow too, or too few to compare with",
        )
    index = of.names.index(name)
    excess = of.owner_ps[:, index, :] - np.median(of.owner_ps, axis=1)
    own = np.maximum(excess, 0.0)
    own[:, [OWNERS.index(owner) for owner in _NOBODYS]] = 0.0
    by_core = own.sum(axis=1)
    core = int(by_core.argmax())
    owner = OWNERS[int(own[core].argmax())]
    hosts = set(of.hosts.tolist())
    several = "all hosts take longer by the same amount"
    if by_core[core] < _OWN_PART * more_ps:
        return None, None, None, "most of it is not the own time of a core"
    if len(hosts) > 1 and by_core[core] < _APART * float(np.median(by_core)):
        return None, None, owner, several
    label = of.core_names[core]
    host = label.rpartition(":")[0]
    alone = len(by_core) == 1 or by_core[core] >= _APART * float(np.median(by_core))
    return host, label if alone else None, owner, "all cores of the host take longer by the same amount"


def _reason(findings: Sequence[Finding], step: str | None, owner: Owner | None) -> Finding | None:
    """The first reason about that step, else about the owner, else of all."""
    of_step = (each for each in findings if step is not None and each.subject.step == step)
    of_owner = (each for each in findings if owner is not None and owner in KIND_OWNERS.get(each.kind, ()))
    slow = (each for each in findings if step is not None and each.kind == "slow-step")
    return next(of_step, None) or next(of_owner, None) or next(slow, None) or next(iter(findings), None)
