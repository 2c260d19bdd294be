"""All runs of a log folder as a series: what a step takes in each, and where that changed beyond the noise.

A series needs a few figures of each run's overview. The user's cache keeps them: the next look opens no file.

A run is compared with the level before it: the runs since the last change, pooled. It changed where the difference is
beyond the noise of `diff` (`parsers.session.diff.noise`), which is that of the steps, and beyond how much runs differ
from one to the next, which the steps of one run do not show; that takes six runs. As many runs are compared, both are
for all of them together (Bonferroni). A single run that differs, after which the
level goes on, is called odd and starts no level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

from tpuprof.parsers.base.errors import ProfileError, one_part
from tpuprof.parsers.base.intervals import totals
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.pages.overview.model_use.page import MODEL_USE
from tpuprof.parsers.pages.shared.kept_by_run import KeptByRun
from tpuprof.parsers.pages.shared.summaries import read
from tpuprof.parsers.session.diff.noise import CONFIDENCE, MeanEstimate, estimate_steady, noise_floor, student
from tpuprof.parsers.session.diff.regression import Regression, noisy, slower
from tpuprof.parsers.steps.accounts.owners import Owner

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session

Verdict = Literal["first", "noise", "slower", "faster", "odd", "other program", "unknown"]
"""What a run is against the level before it."""

_COLLECTIVES: tuple[Owner, ...] = ("collective_wait", "collective_transfer")


@dataclass(frozen=True, slots=True)
class KindWorth:
    """What all findings of a kind save per step."""

    kind: str
    worth_ps: float


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """What a series needs of a run.

    Attributes:
        hosts: that could be read.
        program: name of the module with most op time, without its id; None where no op names one.
        group: the number of the group of cores that all figures are of; None where all cores are one group.
        step_ps, error_ps, freedom: the mean of the steps that are not odd by chance (`estimate_steady`), its standard
            error, and the degrees of freedom of that; None, None and 0 where unknown.
        step_count: how many steps there are; mean_step_ps: the mean of all of them.
        roof_fraction: the part of the mean step at the roof (0-1); collective_ps: exposed collectives in it.
        mfu: of the peak by the compiler's count (0-1).
        idle_percent: time of the capture in which a core ran no op.
        memory_bytes: most in use in the fullest device memory.
        worths: what findings save per step, by kind, most first.
        why_no_step: empty where the step time is known.
    """

    hosts: tuple[str, ...]
    program: str | None
    group: int | None
    step_ps: float | None
    error_ps: float | None
    freedom: int
    step_count: int
    mean_step_ps: float | None
    roof_fraction: float | None
    collective_ps: float | None
    idle_percent: float | None
    memory_bytes: int | None
    worths: tuple[KindWorth, ...]
    why_no_step: str
    mfu: float | None

    @property
    def estimate(self) -> MeanEstimate | None:
        return None if self.step_ps is None else MeanEstimate(self.step_ps, self.error_ps, self.freedom)


class KnownPoints(KeptByRun[TrendPoint]):
    """The figures of the runs of a folder: one whose files are as they were at the last look isn't read again.

    Args:
        cache: where they are kept; None to keep none.
        place: the path of the folder.
    """

    def __init__(self, cache: HostCache | None, place: str) -> None:
        super().__init__(cache, "trend", place, TrendPoint)

    def point(self, run: Run, session: Callable[[Run], Session]) -> TrendPoint | str:
        """The figures of a run, or why it can't be read."""
        try:
            with one_part(f"read the run {printable(run.name)}"):
                return self.value(run, lambda: point(session(run)))
        except ProfileError as error:
            return error.sentence


def point(session: Session) -> TrendPoint:
    """The figures of one run; where its cores form several groups, all are of the one whose steps are shown."""
    group = session.page(OVERVIEW).group
    session = session if group is None else session.of_core(f"group {group}")
    page, ops = session.page(OVERVIEW), session.page(OPS)
    memory = [used for summary in read(session, None).summaries if (used := summary.memory) is not None]
    durations = np.array([step.duration_ps for step in page.steps], np.float64)
    step = estimate_steady(durations) if len(durations) else None
    account = page.account
    time = totals(zip(ops.program, ops.table.self_ps.tolist(), strict=True))
    program = max(time, key=time.__getitem__, default="")
    why = "" if step is not None else page.unknown.get("performance.step_time_ms", "the profile has no steps")
    return TrendPoint(
        hosts=page.hosts,
        program=program.partition("(")[0] if any(ops.table.program_id) else None,
        group=group,
        step_ps=None if step is None else step.mean,
        error_ps=None if step is None else step.error,
        freedom=0 if step is None else step.freedom,
        step_count=len(durations),
        mean_step_ps=float(durations.mean()) if len(durations) else None,
        roof_fraction=None if account is None else account.fraction("ideal"),
        collective_ps=None if account is None else account.fraction(*_COLLECTIVES) * account.step_ps,
        idle_percent=page.performance.device_idle_percent,
        memory_bytes=max((used for used, _ in memory), default=None),
        worths=_worths(page),
        why_no_step=why,
        mfu=session.page(MODEL_USE).mfu,
    )


def _worths(page: Overview) -> tuple[KindWorth, ...]:
    of_step = (finding for finding in page.findings if finding.per == "step")
    found = totals((finding.kind, finding.worth_ps) for finding in of_step if finding.worth_ps is not None)
    return tuple(KindWorth(kind, worth) for kind, worth in sorted(found.items(), key=lambda pair: -pair[1]))


# --- the series


@dataclass(frozen=True, slots=True)
class Judged:
    """A run against the level before it.

    Attributes:
        verdict: what it is.
        level: number of the level that it is part of, from 0 on; None where its step time is unknown, or it is odd.
        before_ps: the step of the level before it; None for the first run, and for another program.
        change: the difference, as a fraction of that; noise: what is noise, likewise. None where unknown.
    """

    verdict: Verdict
    level: int | None = None
    before_ps: float | None = None
    change: float | None = None
    noise: float | None = None


Found = Sequence[TrendPoint | str | None]
"""The figures of runs, the oldest first; a sentence for one that can't be read, None for one that is not read yet."""


def judged(points: Found) -> tuple[Judged, ...]:
    """Each run against the level before it."""
    series = _Series.of(points)
    found = [Judged("unknown")] * len(points)
    level = earlier = _NO_LEVEL
    number = -1
    for at in series.known:
        if not level or series.programs[at] != series.programs[level.last]:
            earlier, level, number = _NO_LEVEL, series.level(at), number + 1
            found[at] = Judged("other program" if number else "first", number)
            continue
        here = series.against(level, at)
        if level.count == 1 and earlier and here.verdict != "noise":
            back = series.against(earlier, at)
            if back.verdict == "noise":  # the run between them was odd, and the level goes on
                found[level.last] = replace(found[level.last], verdict="odd", level=None)
                level, earlier, number = series.level(at, earlier), _NO_LEVEL, number - 1
                found[at] = replace(back, level=number)
                continue
        if here.verdict in ("slower", "faster"):
            earlier, level, number = level, series.level(at), number + 1
        else:
            level = series.level(at, level)
        found[at] = replace(here, level=number)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Level:
    """Some runs together, as sums over them: a series of thousands is judged in one pass.

    Attributes:
        count: how many; last: the number of the last one.
        mean_ps, square_ps: sums of their means and, of those whose error is known (`errors`), of its square.
        freedom: of these errors together.
    """

    count: int
    last: int
    mean_ps: float
    errors: int
    square_ps: float
    freedom: int

    def __bool__(self) -> bool:
        return self.count > 0

    @property
    def pooled(self) -> MeanEstimate:
        """The mean of the runs, with the error that their steps show."""
        mean = self.mean_ps / self.count
        if not self.errors:
            return MeanEstimate(mean)
        return MeanEstimate(mean, math.sqrt(self.square_ps / self.errors / self.count), self.freedom)


_NO_LEVEL = _Level(0, -1, 0.0, 0, 0.0, 0)


@dataclass(frozen=True, slots=True)
class _Series:
    """The runs with a step time.

    Attributes:
        known: their numbers.
        steps, programs: of these, by number.
        spread: standard deviation of a run's step time from run to run, as a fraction of it, by the smaller
            differences of neighbours, which changes do not move; None of fewer than `_LEAST_DIFFERENCES`.
    """

    known: tuple[int, ...]
    steps: Mapping[int, MeanEstimate]
    programs: Mapping[int, tuple[str | None, int | None]]
    spread: float | None

    @classmethod
    def of(cls, points: Found) -> _Series:
        read = {at: of for at, of in enumerate(points) if isinstance(of, TrendPoint)}
        steps = {at: of.estimate for at, of in read.items() if of.estimate is not None}
        programs = {at: (of.program, of.group) for at, of in read.items()}
        known = tuple(steps)
        pairs = [(a, b) for a, b in pairwise(known) if programs[a] == programs[b] and steps[a].mean > 0]
        apart = np.array([abs(steps[b].mean - steps[a].mean) / steps[a].mean for a, b in pairs], np.float64)
        spread = None
        if len(apart) >= _LEAST_DIFFERENCES:
            spread = float(np.quantile(apart, _SMALL_ONES)) / (
                NormalDist().inv_cdf(0.5 + _SMALL_ONES / 2) * math.sqrt(2)
            )
        return cls(known, steps, programs, spread)

    def level(self, at: int, before: _Level = _NO_LEVEL) -> _Level:
        """A run together with those before it."""
        own = self.steps[at]
        known = own.error is not None
        return _Level(
            before.count + 1,
            at,
            before.mean_ps + own.mean,
            before.errors + known,
            before.square_ps + (own.error or 0.0) ** 2,
            before.freedom + (own.freedom if known else 0),
        )

    def against(self, level: _Level, at: int) -> Judged:
        before, own = level.pooled, self.steps[at]
        change = (own.mean - before.mean) / before.mean if before.mean else None
        floor = noise_floor(before, own, len(self.known))
        if floor is None:
            return Judged("unknown", None, before.mean, change)
        floor = math.hypot(floor, self._between(level.count, before.mean))
        is_noise = abs(own.mean - before.mean) <= floor
        verdict: Verdict = "noise" if is_noise else "slower" if own.mean > before.mean else "faster"
        return Judged(verdict, None, before.mean, change, floor / before.mean if before.mean else None)

    def _between(self, runs: int, mean: float) -> float:
        """How far a further run may be from the mean of some, by how much runs differ from one to the next."""
        if self.spread is None:
            return 0.0
        confidence = 1 - (1 - CONFIDENCE) / len(self.known)
        return self.spread * mean * math.sqrt(1 + 1 / runs) * student(confidence, len(self.known) - 1)


_LEAST_DIFFERENCES = 5
_SMALL_ONES = 0.35
"""This share of the differences of neighbours is taken for noise alone: an odd run makes two others, a change one.

Simulated, 0 to 11% of series of 6 to 100 equal runs are found to change somewhere, most where runs differ by ten times
what their steps show.
"""


def checked(points: Found, of: Sequence[Judged], allowed: float) -> Regression:
    """Whether the newest run is slower than the level before it, by more than is allowed and beyond the noise."""
    newest = len(points) - 1
    last, here = (points[newest], of[newest]) if points else (None, Judged("unknown"))
    if not isinstance(last, TrendPoint) or last.estimate is None:
        why = last.why_no_step if isinstance(last, TrendPoint) else (last or "no run was read").rstrip(".")
        return Regression(allowed, "unknown", f"The newest run's step time is unknown: {why}.")
    if here.verdict in ("first", "other program"):
        return Regression(allowed, "unknown", "No run before the newest one has its program: nothing can be compared.")
    if here.verdict == "unknown" or here.change is None or here.noise is None:
        return Regression(allowed, "unknown", "A run with one step says nothing about the noise: nothing can be said.")
    if here.verdict == "slower" and here.change > allowed:
        return slower("typical", "in the runs before", here.change, allowed)
    if here.verdict == "noise" and here.noise > allowed > 0:
        return noisy(here.noise, allowed)
    return Regression(allowed, "passed", "")
