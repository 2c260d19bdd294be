"""Findings about an idle device: it waits for input, for the host, or for the compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, covered, median, no_ints, union
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.ops.host.activity import Compilation
from tpuprof.parsers.pages.findings.budget import Budget, Claim, StepTimes
from tpuprof.parsers.pages.findings.finding import Evidence, Finding, GapActivity, Place
from tpuprof.parsers.pages.words import ordinal, sentence_name, share, short, time

LEAST_INPUT = 0.05
"""XProf calls a program moderately input-bound from this share of step time on."""

LEAST_PATTERN = 0.01
"""A regular pattern of waits is no chance, so it counts from this smaller share on."""

_PATTERN_REPEATS = 3  # two equal distances: fewer may be chance
_QUIET = 0.25  # the other steps wait less than this share of those of the pattern

LEAST_IDLE = 0.03
"""XProf speaks of idle time from this share of step time on, waiting for input aside."""

_EXPLAINS = 0.5
"""The title names a host event that fills at least this share of the gaps; less may be a coincidence."""

_IN_FLIGHT = 0.5
"""An asynchronous op causes the gaps if it is under way for at least this share of them."""

_STANDS_OUT = 1.1  # multiple of the mean from which on a core or a step is named

_ELSEWHERE = 1.5
"""Gaps that are longer than this multiple of the idle time in steps lie outside of the steps."""

_UNEVEN = 1.5  # multiple of the median step's idle time from which on a step is named

_WAITING = re.compile(r"wait|sleep|acquire|until_?ready|futex|\b(poll|select|join|park)\b", re.IGNORECASE)
"""Names of host events in which a thread itself waits; they explain nothing."""

LEAST_COMPILING = 0.01
"""A steady step never compiles, so compilation counts from this small share on."""

_MOST_NAMED = 3
_FAR = float(1 << 60)


def waiting_for_input(evidence: Evidence, budget: Budget) -> Claim:
    """The device waits for input often, or in a regular pattern.

    Where cores wait for different times, the mean counts, and the time that the others wait for the last one.
    """
    steps = budget.steps
    if steps is None:
        return Claim(_infeed_of_capture(evidence, budget))
    collective, idle = _for_the_last(steps)
    waits = steps.input_by_step + collective + idle
    worth = float(waits.mean())
    pattern = _pattern(waits, budget.whole_ps)
    if worth < (LEAST_PATTERN if pattern is not None else LEAST_INPUT) * budget.whole_ps:
        return Claim()
    most = int(waits.argmax())
    is_host = steps.grid.input_source == "host"
    measured = "idle device time while the host waited for input or sent it" if is_host else "time in infeed ops"
    stands_out = float(waits[most]) >= _STANDS_OUT * worth
    longest = f"; {time(float(waits[most]))} in step {steps.names[most]}" if stands_out else ""
    mean = "mean over steps" if len(steps.input_ps) < 2 else "mean over cores and steps"
    sentences = [
        f"The device waits for input {budget.amount(worth)}, {mean}{longest}.",
        "" if pattern is None else pattern.words(waits),
        _worst_core(steps, budget),
        "The program has no infeed ops, so this is inferred from what the host did meanwhile." if is_host else "",
    ]
    for_others = float(collective.mean() + idle.mean())
    others = f", and what they wait for the last of them ({time(for_others)})" if for_others >= 1 else ""
    finding = budget.finding(
        "input",
        _input_title(waits, pattern),
        worth,
        f"Mean over cores and complete steps of {measured}{others}.",
        sentences,
        Place("input", steps.names[most]),
        is_estimate=is_host,
    )
    return Claim(finding, float(collective.mean()), float(idle.mean()))


def _for_the_last(steps: StepTimes) -> tuple[Floats, Floats]:
    """float64[steps], twice: time in collectives, and idle time, of waiting for the core that gets its input last.

    These are means over cores of how much more they have than that core, up to how much longer it waits for input.
    """
    last, every = steps.input_ps.argmax(axis=0), np.arange(len(steps.names))
    longer = steps.input_ps[last, every] - steps.input_by_step
    collective, gaps = steps.class_ps[:, :, OP_CLASSES.index("collective")], steps.gaps
    in_collectives = np.clip(collective.mean(axis=0) - collective[last, every], 0.0, longer)
    in_gaps = np.clip(gaps.mean(axis=0) - gaps[last, every], 0.0, longer - in_collectives)
    return in_collectives, in_gaps


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Every `period`-th step waits, beginning with step `first`."""

    first: int
    period: int

    def words(self, waits: Floats) -> str:
        chosen = np.zeros(len(waits), np.bool_)
        chosen[self.first :: self.period] = True
        return (
            f"Every {ordinal(self.period)} step waits {time(float(waits[chosen].mean()))}, "
            f"the others {time(float(waits[~chosen].mean()))}."
        )


def _pattern(waits: Floats, step_ps: float) -> _Pattern | None:
    """The regular pattern in which steps wait, from the first steps to the last; None where there is none."""
    waiting = np.flatnonzero(waits >= LEAST_INPUT * step_ps)
    if len(waiting) < _PATTERN_REPEATS:
        return None
    distances = np.diff(waiting)
    period = int(distances[0])
    if period < 2 or (distances != period).any() or waiting[0] >= period or waiting[-1] + period < len(waits):
        return None
    others = np.delete(waits, waiting)
    return _Pattern(int(waiting[0]), period) if others.mean() <= _QUIET * waits[waiting].mean() else None


def _input_title(waits: Floats, pattern: _Pattern | None) -> str:
    if pattern is not None:
        return f"Every {ordinal(pattern.period)} step waits for input"
    if len(waits) > 2 and median(waits) <= _QUIET * waits.mean():  # most steps do not wait at all
        long = int((waits >= waits.mean()).sum())
        return f"{long} of {counted(len(waits), 'step')} {'waits' if long == 1 else 'wait'} for input"
    return "Steps wait for input"


def _worst_core(steps: StepTimes, budget: Budget) -> str:
    means = steps.input_ps.mean(axis=1)
    worst = int(means.argmax())
    if len(means) < 2 or means[worst] < _STANDS_OUT * means.mean():
        return ""
    return f"Core {steps.core(worst)} waits most, {budget.amount(float(means[worst]))}."


def _infeed_of_capture(evidence: Evidence, budget: Budget) -> Finding | None:
    """Waiting for input in a capture without steps, which only infeed ops tell."""
    table = evidence.table
    rows = np.array([row for row in budget.rows["host"] if table.category[row] == "infeed"], np.intp)
    worth = float(budget.op_ps(table, rows, "host").sum())
    if worth < LEAST_INPUT * budget.whole_ps:
        return None
    return budget.finding(
        "input",
        "The device waits for input",
        worth,
        "Time in infeed ops in the whole capture, mean over cores: it has no steps.",
        [f"Infeed ops take {budget.amount(worth)}, most of all {sentence_name(table.name[rows[0]])}."],
        Place("input"),
    )


def idle_gaps(evidence: Evidence, budget: Budget, claimed_ps: float) -> Finding | None:
    """Gaps between ops that are not waiting for input.

    Args:
        claimed_ps: idle time that other findings count.
    """
    steps, gaps = budget.steps, evidence.gaps or GapActivity()
    idle = budget.class_ps["idle"] if steps is None else float(steps.core_gaps.mean()) / len(steps.names)
    worth = idle - claimed_ps
    if worth < LEAST_IDLE * budget.whole_ps:
        return None
    inside = max(1.0, budget.class_ps["idle"] if steps is None else float(steps.core_gaps.max()))
    everything = float(gaps.gap_ps or inside)
    if max(everything, float(gaps.longest_ps or 0)) > _ELSEWHERE * inside:
        gaps = GapActivity()  # what the long gaps outside of the steps are for says nothing here
    by_step = None if steps is None else steps.gaps.mean(axis=0)
    step = None if steps is None or by_step is None else steps.names[int(by_step.argmax())]
    title, place = _gap_title(gaps, everything, step)
    other = "" if claimed_ps < 1 else f"; {time(claimed_ps)} that other findings count is left out"
    without_input = steps is not None and steps.grid.input_source == "host"
    return budget.finding(
        "idle",
        title,
        worth,
        f"Mean over cores{'' if steps is None else ' and complete steps'} of time without any op"
        f"{' and without waiting for input' if without_input else ''}{other}.",
        [
            f"Between its ops the device is idle for {budget.amount(worth)}, other than for input.",
            _longest(gaps),
            "" if by_step is None or step is None else _idlest(by_step, step),
            _in_flight(gaps, everything),
            *_meanwhile(gaps, everything),
        ],
        place,
    )


def _gap_title(gaps: GapActivity, everything: float, step: str | None) -> tuple[str, Place]:
    if gaps.async_op and gaps.async_ps >= _IN_FLIGHT * everything:
        return f"Device idle while {short(gaps.async_op)} is under way", Place("timeline", gaps.async_op)
    place = Place("timeline", step)
    working = [activity for activity in gaps.activities if not _WAITING.search(activity.name)]
    if working and working[0].overlap_ps >= _EXPLAINS * everything:
        return f"Device idle while the host runs {short(working[0].name)}", place
    return "Device idle between its ops", place


def _longest(gaps: GapActivity) -> str:
    if gaps.longest_ps is None or gaps.count <= 0:
        return ""
    return f"{counted(gaps.count, 'long gap')} on the core that is idle most, the longest {time(gaps.longest_ps)}."


def _idlest(by_step: Floats, step: str) -> str:
    """A sentence on the step with the longest gaps, where it stands out."""
    most, usual = float(by_step.max()), median(by_step)
    return f"Step {step} has {time(most)} of it, the median step {time(usual)}." if most >= _UNEVEN * usual else ""


def _in_flight(gaps: GapActivity, everything: float) -> str:
    if not gaps.async_op or gaps.async_ps <= 0:
        return ""
    part = share(min(1.0, gaps.async_ps / everything))
    return f"Asynchronous op {sentence_name(gaps.async_op)} is under way for {part} of the idle time."


def _meanwhile(gaps: GapActivity, everything: float) -> list[str]:
    """Sentences on what the host did; work comes before waiting."""
    if not gaps.activities:
        return []
    working = [activity for activity in gaps.activities if not _WAITING.search(activity.name)]
    named = working or list(gaps.activities)
    sentences = [
        f"Meanwhile {sentence_name(activity.thread) or 'a host thread'} is in "
        f"{sentence_name(activity.name)} for {share(min(1.0, activity.overlap_ps / everything))} of the "
        f"idle time ({counted(activity.occurrences, 'time')})."
        for activity in named[:_MOST_NAMED]
    ]
    return sentences if working else [*sentences, "The host's threads only wait, so its events do not say why."]


def compiling(evidence: Evidence, budget: Budget) -> tuple[Finding | None, float]:
    """Programs that the host compiled between the first complete step and the last while the device was idle.

    Returns:
        The finding, and how much of the idle time in steps it counts.
    """
    if not evidence.compilations:
        return None, 0.0
    stalls = _Stalls.of(evidence.compilations)
    steps = budget.steps
    if steps is None:
        worth, inside, step = float(stalls.idle_ps.sum()), float(stalls.idle_ps.sum()), None
    else:
        first, last = steps.grid.start_ps, steps.grid.start_ps + np.clip(steps.longest_ps, 0, _FAR).astype(np.int64)
        stalls = stalls.take((stalls.start_ps >= first.min()) & (stalls.start_ps < last.max()))
        worth = float(stalls.idle_ps.sum()) / len(steps.names)
        spans = union(first, last)
        shared = covered(stalls.end_ps, *spans) - covered(stalls.start_ps, *spans)
        inside = float(np.minimum(stalls.idle_ps, shared).sum()) / len(steps.names)
        step = _step_of(stalls, steps)
    if worth < LEAST_COMPILING * budget.whole_ps or not len(stalls.names):
        return None, 0.0
    worst, number = int(stalls.idle_ps.argmax()), len(stalls.names)
    finding = budget.finding(
        "compilation",
        f"The host compiles during the {'capture' if steps is None else 'steps'} ({counted(number, 'time')})",
        worth,
        "Time without any op on any core while the host traced, lowered or compiled a program"
        f"{'' if steps is None else ', divided by the number of steps'}.",
        [
            f"{counted(number, 'compilation')} took {time(float(stalls.length_ps.sum()))}; "
            f"meanwhile the device was idle for {time(float(stalls.idle_ps.sum()))}.",
            f"The worst is {sentence_name(stalls.names[worst])}, {time(float(stalls.length_ps[worst]))}"
            f"{'' if step is None else f', in step {step}'}.",
            "A steady program compiles nothing: look for shapes, dtypes or static arguments that change.",
        ],
        Place("timeline", step),
    )
    return finding, min(inside, budget.class_ps["idle"])


@dataclass(frozen=True, slots=True)
class _Stalls:
    """Compilations; those that overlap count as one, because several threads may work on one program.

    Attributes:
        names: name of the longest compilation of each.
        start_ps, end_ps: int64[n].
        idle_ps: float64[n]; the most idle time that one of the compilations overlaps.
    """

    names: tuple[str, ...]
    start_ps: Int64s
    end_ps: Int64s
    idle_ps: Floats

    @property
    def length_ps(self) -> Floats:
        return (self.end_ps - self.start_ps).astype(np.float64)

    def take(self, chosen: Bools) -> _Stalls:
        rows = np.flatnonzero(chosen).tolist()
        names = tuple(self.names[row] for row in rows)
        return _Stalls(names, self.start_ps[rows], self.end_ps[rows], self.idle_ps[rows])

    @classmethod
    def of(cls, compilations: tuple[Compilation, ...]) -> _Stalls:
        """Joins the compilations that cost idle time."""
        costly = [
            compilation for compilation in compilations if compilation.idle_ps > 0 and compilation.duration_ps > 0
        ]
        costly.sort(key=lambda compilation: (compilation.start_ps, -compilation.duration_ps))
        if not costly:
            none = no_ints()
            return cls((), none, none, np.zeros(0))
        start = np.clip([float(compilation.start_ps) for compilation in costly], -_FAR, _FAR).astype(np.int64)
        length = np.clip([float(compilation.duration_ps) for compilation in costly], 1, _FAR).astype(np.int64)
        idle = np.minimum([float(compilation.idle_ps) for compilation in costly], length.astype(np.float64))
        begin, end = union(start, start + length)
        of = np.searchsorted(begin, start, side="right") - 1
        first = np.searchsorted(of, np.arange(len(begin)))
        longest = [int(a + length[a:b].argmax()) for a, b in zip(first, [*first[1:], len(of)], strict=True)]
        names = tuple(costly[index].name for index in longest)
        return cls(names, begin, end, np.maximum.reduceat(idle, first))


def _step_of(stalls: _Stalls, steps: StepTimes) -> str | None:
    """The step in which the costliest compilation began."""
    if not len(stalls.names):
        return None
    began = int(stalls.start_ps[stalls.idle_ps.argmax()])
    inside = np.flatnonzero((steps.grid.start_ps <= began) & (began < steps.grid.start_ps + steps.longest_ps))
    return steps.names[int(inside[0])] if len(inside) else None
