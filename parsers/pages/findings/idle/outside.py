"""Programs that are compiled while steps go on, what lies outside of whole steps, and long times without an op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import sentence_name, share, time
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.host_events.activity import Compilation
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, Steps, detects
from tpuprof.parsers.pages.findings.claims import joined
from tpuprof.parsers.pages.findings.finding import STEPS, Evidence, Finding, JumpTarget, Kind
from tpuprof.parsers.pages.findings.idle.meanwhile import is_wait, main_activity, of_launcher, titled, working
from tpuprof.parsers.pages.findings.idle.waiting import IDLE, waits_for_the_last
from tpuprof.parsers.pages.findings.when import When, when
from tpuprof.parsers.steps.boundaries.outside import Outside

_FAR = 1 << 60

LEAST_COMPILING = 0.01
"""A steady step never compiles, so compilation counts from this small share on."""

COMPILATION = Kind(
    "compilation",
    "compilation during steps",
    advice="Keep shapes, dtypes and static arguments steady, and compile ahead of the loop.",
    rank=5,
    owners=("compile",),
    needs=(STEPS,),
)


@detects(COMPILATION)
def compiling(budget: Budget) -> Claimed:
    """Programs that the host compiled between the first complete step and the last while the device was idle."""
    stalls, steps = _stalls(budget.evidence.compilations), budget.steps
    if steps is not None:
        first = steps.grid.start_ps
        last = first + np.clip(steps.longest_ps, 0, _FAR).astype(np.int64)
        clipped = (_clipped(stall, int(first.min()), int(last.max())) for stall in stalls)
        stalls = [stall for stall in clipped if stall is not None]
        claim = joined(budget.take_all("compile"), waits_for_the_last(budget, steps.of("compile")))
    idle = sum(stall.idle_ps for stall in stalls)
    if steps is None:
        claim = budget.take_mean(("between_ops",), idle)
    worth = claim.worth_ps
    if not stalls or worth < LEAST_COMPILING * budget.whole_ps:
        return NOTHING
    worst = max(stalls, key=lambda stall: stall.idle_ps)
    took = sum(stall.duration_ps for stall in stalls)
    where, step, timing = "capture", None, None
    if steps is not None:
        where, timing, at = "steps", _when_compiling(stalls, steps), _step_at(worst.start_ps, steps)
        step = steps.names[at] if at >= 0 else None
    times = counted(len(stalls), "time")
    title = f"The host compiles during the {where} ({times})"
    if timing is not None and timing.is_regular:
        title = f"The host compiles {timing.words} ({times})"
    return budget.finding(
        COMPILATION,
        claim,
        title,
        "Time without any op while the host traced, lowered or compiled a program"
        + (", and other cores' waits for it, mean over cores and steps." if steps is not None else "."),
        [
            f"{counted(len(stalls), 'compilation')} took {time(took)}; meanwhile the device was idle for {time(idle)}.",
            f"The worst is {sentence_name(worst.name)}, {time(worst.duration_ps)}"
            f"{'' if step is None else f', in step {step}'}.",
            "" if timing is None or not timing.is_regular else timing.sentence("the device is idle meanwhile for"),
            "A steady program compiles nothing: look for shapes, dtypes or static arguments that change.",
        ],
        JumpTarget("timeline", step),
    )


def _clipped(stall: Compilation, begin_ps: int, end_ps: int) -> Compilation | None:
    """The part of a compilation that lies in a span; None for one outside.

    What began ahead of the steps may cost the first of them.
    """
    start, end = max(stall.start_ps, begin_ps), min(stall.end_ps, end_ps)
    if start >= end:
        return None
    return Compilation(stall.name, start, end - start, min(stall.idle_ps, end - start))


def _when_compiling(stalls: Sequence[Compilation], steps: Steps) -> When:
    idle = np.zeros(1 + len(steps))
    for stall in stalls:
        idle[1 + _step_at(stall.start_ps, steps)] += stall.idle_ps
    return when(idle[1:], steps.names, LEAST_COMPILING * float(steps.longest_ps.mean()))


_ONE_COMPILE = 0.05
"""A program is traced, lowered and compiled with less than this share of that between one and the next."""


def _stalls(compilations: Sequence[Compilation]) -> list[Compilation]:
    """Joins the compilations that cost idle time and overlap or follow each other: all of them are of one program.

    The longest one gives the name, the one with the most idle time that time. Figures of a damaged profile are cut.
    """
    costly = [compiled for compiled in compilations if compiled.idle_ps > 0 and compiled.duration_ps > 0]
    costly.sort(key=lambda compiled: (compiled.start_ps, -compiled.duration_ps))
    stalls: list[Compilation] = []
    longest = 0
    for compiled in costly:
        name, start, length = compiled.name, max(-_FAR, min(compiled.start_ps, _FAR)), min(compiled.duration_ps, _FAR)
        end, idle = start + length, min(compiled.idle_ps, length)
        if stalls and start <= stalls[-1].end_ps + _ONE_COMPILE * stalls[-1].duration_ps:
            before = stalls.pop()
            name = name if length > longest else before.name
            idle = max(idle, before.idle_ps) if start <= before.end_ps else idle + before.idle_ps
            start, end = before.start_ps, max(end, before.end_ps)
            length = max(length, longest)
        stalls.append(Compilation(name, start, end - start, min(idle, end - start)))
        longest = length
    return stalls


def _step_at(time_ps: int, steps: Steps) -> int:
    """The first step that holds a time; -1 for none."""
    inside = (steps.grid.start_ps <= time_ps) & (time_ps < steps.grid.start_ps + steps.longest_ps)
    return int(inside.argmax()) if inside.any() else -1


# --- what lies outside of steps ------------------------------------------------------------------------------------

LARGE = 0.25
"""From this share of the profile on it is a finding."""

_TOLD = 0.05
"""What happened then is told from this share of the time on."""


def longest_outside(summaries: Sequence[HostSummary]) -> tuple[Outside, ...]:
    """What lies outside of the steps of the host where that is longest, before them and after them."""
    sides = [[of for summary in summaries for of in summary.outside if of.is_before == side] for side in (True, False)]
    return tuple(max(of_side, key=lambda of: of.span_ps) for of_side in sides if of_side)


def outside_words(of: Outside) -> str:
    """``The first whole step starts 6.65 s into 8.30 s: compiling takes 6.02 s``."""
    where = "first whole step starts {} into" if of.is_before else "last whole step ends {} before the end of"
    doing = [
        (of.compiling_ps, f"compiling takes {time(of.compiling_ps)}"),
        (of.running_ps, f"programs take {time(of.running_ps)}"),
    ]
    rest = of_launcher(of.rest)
    activity = main_activity(rest) or next((each for each in working(rest) if not each.marks_step), None)
    activity = activity or next((each for each in rest.activities if is_wait(each.name)), None)
    if activity is not None:
        thread = sentence_name(activity.thread) or "a host thread"
        thread = thread if "thread" in thread else f"thread {thread}"
        name, spent = sentence_name(activity.name), time(activity.overlap_ps)
        doing.append((activity.overlap_ps, f"{thread} spends {spent} in {name}"))
    told = [words for ps, words in sorted(doing, key=lambda part: -part[0]) if ps >= _TOLD * of.span_ps]
    parts = ", ".join(told) or "what the host did then was not traced"
    return f"The {where.format(time(of.span_ps))} {time(of.whole_ps)}: {parts}"


def _is_compiling(of: Outside) -> bool:
    """Whether the host compiles for most of that time."""
    return 2 * of.compiling_ps >= of.span_ps


def outside_steps(evidence: Evidence) -> Finding | None:
    """Much of the profile lies outside of the whole steps."""
    of = max(evidence.outside, key=lambda each: each.span_ps, default=None)
    if of is None or of.span_ps < LARGE * of.whole_ps:
        return None
    compiles = _is_compiling(of)
    observed = None if compiles or long_silence(evidence) is None else evidence.observed
    if observed is not None and 2 * observed.silence.gap_ps >= of.span_ps:
        return None  # that says already that no op ran
    kind, where = COMPILATION if compiles else IDLE, "before the first" if of.is_before else "after the last"
    activity = main_activity(of_launcher(of.rest))
    doing = f", in {sentence_name(activity.name)}" if activity is not None else ""
    doing = ", mostly compiling" if compiles else doing if 2 * of.rest.gap_ps >= of.span_ps else ", running programs"
    return kind.of_unknown_worth(
        f"{share(of.span_ps / of.whole_ps)} of the profile lies {where} whole step{doing}",
        "step",
        "No step has this time, so no step is faster without it; a long run has it once.",
        (f"{outside_words(of)}.",),
        JumpTarget("timeline"),
    )


SILENCE = Kind(
    "silence",
    "a long time of the capture without an op",
    advice="Capture while the program is at work, or see what the host does in that time: it is not part of the steps.",
    rank=3,
    page="timeline",
    of_capture=True,
)

_LEAST_SILENCE = 0.1
"""A silence is worth a sentence from this share of the capture on."""
_LONG_PS = 1_000_000_000_000
"""And from a second on where the host's events do not say why: a profiler takes a while to start and to stop."""


def long_silence(evidence: Evidence) -> Finding | None:
    """A core ran nothing for long: before its first op, after its last one, or between two."""
    observed = evidence.observed
    if observed is None or observed.silence.gap_ps < _LEAST_SILENCE * observed.captured_ps:
        return None
    if any(_is_compiling(of) and of.span_ps >= LARGE * of.whole_ps for of in evidence.outside):
        return None  # `outside_steps` says already that no op ran
    silence, (start, stop) = observed.silence, observed.silence.longest
    host = main_activity(silence)
    if host is None and silence.gap_ps < _LONG_PS:
        return None
    meanwhile = "" if host is None else f" while the host runs {titled(host.name)}"
    return SILENCE.of_unknown_worth(
        f"No op for {time(silence.gap_ps)} of {time(observed.captured_ps)} captured{meanwhile}",
        "capture" if evidence.grid is None else "step",
        "How much of that time belongs to the program is unknown.",
        (
            f"Ops run from {time(observed.ops[0])} to {time(observed.ops[1])} of the capture, in "
            f"{share(observed.busy)} of it.",
            f"From {time(start)} to {time(stop)} {observed.core} runs none.",
            *(
                f"Meanwhile {sentence_name(each.thread) or 'a host thread'} is in {sentence_name(each.name)} for "
                f"{time(each.overlap_ps)}."
                for each in ([host] if host is not None else silence.activities[:1])
            ),
        ),
        JumpTarget("timeline"),
    )
