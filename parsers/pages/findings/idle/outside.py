"""What lies before the first whole step and after the last one, and long times of the capture without an op."""

from __future__ import annotations

from tpuprof.parsers.base.words import sentence_name, share, time
from tpuprof.parsers.pages.findings.finding import Evidence, Finding, JumpTarget, Kind
from tpuprof.parsers.pages.findings.idle.meanwhile import main_activity, of_launcher, titled, working
from tpuprof.parsers.pages.findings.idle.waiting import COMPILATION, IDLE
from tpuprof.parsers.steps.boundaries.outside import Outside

LARGE = 0.25
"""From this share of the profile on it is a finding."""

_TOLD = 0.05
"""What happened then is told from this share of the time on."""


def outside_words(of: Outside) -> str:
    """``6.65 s of 8.30 s lie before the first whole step: the host compiles for 6.02 s``."""
    where = "before the first" if of.is_before else "after the last"
    doing = [
        (of.compiling_ps, f"the host compiles for {time(of.compiling_ps)}"),
        (of.running_ps, f"programs run for {time(of.running_ps)}"),
    ]
    rest = of_launcher(of.rest)
    activity = main_activity(rest) or next((each for each in working(rest) if not each.marks_step), None)
    if activity is not None:
        thread = sentence_name(activity.thread) or "a host thread"
        name, spent = sentence_name(activity.name), time(activity.overlap_ps)
        doing.append((activity.overlap_ps, f"{thread} is in {name} for {spent}"))
    told = [words for ps, words in sorted(doing, key=lambda part: -part[0]) if ps >= _TOLD * of.span_ps]
    parts = ", ".join(told) or "what the host did then was not traced"
    return f"{time(of.span_ps)} of {time(of.whole_ps)} lie {where} whole step: {parts}"


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
                for each in silence.activities[:1]
            ),
        ),
        JumpTarget("timeline"),
    )
