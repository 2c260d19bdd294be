"""What the program says of profiles that nobody planted anything in, compared with arithmetic over their raw events.

One is a TPU's, from a program that somebody ran: each of its reasons and figures is compared. The other
is the demo, whose ops are a compiler's: what occurs there is compared as far as there is an arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median

import pytest

from tests.insight.raw import (
    RawCore,
    RawOp,
    cores_of,
    mean_over,
    moving_and_waiting_ms,
    read,
    slow_steps,
    step_ms,
    without_op_ms,
)
from tests.support.build import present
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.overview.model import LEDGER, OVERVIEW, Overview
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.steps.accounts.owners import Owner
from tpuprof.tui.demo import demo_path

MEASURED, ESTIMATED = 0.01, 0.2
"""How far a figure may be from the raw events', as a share."""

REACHED_BY_MEMORY, HELD_UP_BY_MEMORY, USUAL = 0.8, 0.4, 0.75
"""Shares of the roof: of HBM's peak, what large ops reach, and what an op has to reach that HBM holds up; and what ops
usually reach."""

Cores = Sequence[RawCore]


@dataclass(frozen=True)
class Profile:
    """A profile: where it lies, where in it the host's file is, and whether a program ran for it."""

    logdir: Path
    file: Path
    is_real: bool = True

    def session(self) -> Session:
        """Reads it as the program does."""
        return Session(open_logdir(str(self.logdir)).find_run(None))


@pytest.fixture(params=[pytest.param("tpu-v6e-inference", marks=pytest.mark.shared), "demo"])
def profile(request: pytest.FixtureRequest) -> Profile:
    """A real profile of TPUs, and the demo."""
    if request.param == "demo":
        return Profile(Path(demo_path()), Path(demo_path()), is_real=False)
    return _of(request.getfixturevalue("shared"), request.param)


def _of(shared: Path, name: str) -> Profile:
    logdir = shared / "profiles" / name
    (file,) = logdir.rglob("*.xplane.pb")
    return Profile(logdir, file)


@cache
def _cores(file: Path) -> Cores:
    return cores_of(read(file))


def _overview(profile: Profile) -> Overview:
    return profile.session().page(OVERVIEW)


# ---- worths ----------------------------------------------------------------------------------------------------------


def _held_up(cores: Cores) -> Callable[[RawOp], bool]:
    """Whether an op has no matrix product and no scores, and its bytes take some of its time at HBM's peak."""
    (first, *_) = cores
    names = frozenset(
        op.name
        for op, times in first.by_op.items()
        if op.computes
        and not op.multiplies
        and not op.has_scores
        and first.is_bound_by_memory(op)
        and first.roof_ps(op) * len(times) >= HELD_UP_BY_MEMORY * sum(times)
    )
    return lambda op: op.name in names


def _beyond_the_median(cores: Cores) -> float:
    times = step_ms(cores)
    return sum(times[step] - median(times) for step in slow_steps(cores)) / len(times)


def _of_no_known_reason(cores: Cores) -> float:
    held_up = _held_up(cores)

    def is_left(op: RawOp) -> bool:
        return op.computes and not op.has_scores and not held_up(op)

    return mean_over(cores, lambda core: core.above_ms(USUAL, is_left))


def _around_scores(cores: Cores) -> float:
    """What ops on scores take above their FLOPs, at what ops usually reach: the scores need not move at all."""
    return mean_over(cores, lambda core: core.above_flops_ms(USUAL, lambda op: op.has_scores))


def _above_what_memory_allows(cores: Cores) -> float:
    held_up = _held_up(cores)
    return mean_over(cores, lambda core: core.above_ms(REACHED_BY_MEMORY, held_up))


WORTH: Mapping[str, Callable[[Cores], float]] = {
    "host-offload": lambda cores: mean_over(cores, lambda core: core.self_ms(lambda op: op.is_of_host_memory)),
    "collective": lambda cores: mean_over(cores, lambda core: core.self_ms(lambda op: op.is_collective)),
    "memory-bound": _above_what_memory_allows,
    "slow-step": _beyond_the_median,
    "unfused": _around_scores,
}
"""Milliseconds a step, by kind of reason: each kind that claims time of a real profile needs its arithmetic here."""


def test_each_reason_is_worth_what_the_raw_events_say(profile: Profile) -> None:
    cores = _cores(profile.file)
    claims = [finding for finding in _overview(profile).findings if finding.worth_ps is not None]
    assert {finding.kind for finding in claims if profile.is_real} <= WORTH.keys()
    known = [finding for finding in claims if finding.kind in WORTH]
    assert len(known) >= (1 if profile.is_real else 4)
    for finding in known:
        assert finding.per == "step"
        said = present(finding.worth_ps) / 1e9
        tolerance = ESTIMATED if finding.is_estimate else MEASURED
        assert said == pytest.approx(WORTH[finding.kind](cores), rel=tolerance), finding.kind
        assert present(finding.worth_fraction) == pytest.approx(said / fmean(step_ms(cores)), rel=MEASURED)


# ---- figures of the sentences ----------------------------------------------------------------------------------------


def _op(cores: Cores, name: str) -> RawOp:
    (found,) = (op for op in cores[0].by_op if op.name == name)
    return found


def _self_ms(cores: Cores, belongs: Callable[[RawOp], bool]) -> float:
    return mean_over(cores, lambda core: core.self_ms(belongs))


def _percent(cores: Cores, ms: float) -> float:
    return 100 * ms / fmean(step_ms(cores))


def _time(cores: Cores, belongs: Callable[[RawOp], bool]) -> list[float]:
    """Milliseconds a step of these ops, and percent."""
    ms = _self_ms(cores, belongs)
    return [ms, _percent(cores, ms)]


def _largest(cores: Cores, name: str, belongs: Callable[[RawOp], bool]) -> list[float]:
    """The time of an op, which must be the one of all that takes most."""
    times = {op.name: _named(cores, op.name) for op in cores[0].by_op if belongs(op)}
    assert times[name] == max(times.values())
    return [times[name], _percent(cores, times[name])]


def _named(cores: Cores, name: str) -> float:
    return _self_ms(cores, lambda op: op.name == name)


def _rate(cores: Cores, name: str) -> list[float]:
    """Bytes that an op brings, and bytes a second."""
    op = _op(cores, name)
    runs = len(cores[0].by_op[op]) / len(cores[0].steps)
    seconds = _named(cores, name) / runs / 1e3
    return [op.array_bytes, op.array_bytes / seconds]


def _of_pass(cores: Cores, opcode: str, way: str) -> list[float]:
    """Collectives of one pass: how many ops, their time and percent."""

    def belongs(op: RawOp) -> bool:
        passes = "backward" if "transpose(" in op.scope else "forward" if "jvp(" in op.scope else ""
        kind = "reduce-scatter" if "all-reduce-scatter" in op.category else op.opcode.removesuffix("-done")
        return op.is_collective and kind == opcode and passes == way

    return [sum(map(belongs, cores[0].by_op)), *_time(cores, belongs)]


def _reached(core: RawCore, ops: Sequence[RawOp]) -> float:
    """Percent of their roof that ops reach."""
    whole = sum(sum(core.by_op[op]) for op in ops)
    return 100 * sum(core.roof_ps(op) * len(core.by_op[op]) for op in ops) / whole


N = r"~?(\d[\d.,]*(?: (?:ms|µs|GB/s|GB|MB))?)"
"""A figure with its unit."""


OPCODES = "all-reduce|reduce-scatter|all-gather|all-to-all"
Expected = Callable[[Cores, re.Match[str]], Sequence[float]]
FIGURES: Mapping[tuple[str, str], Expected] = {
    ("host-offload", r"memory, S\(5\), take # a step \(#%\)"): lambda cores, _: _time(
        cores, lambda op: op.is_of_host_memory
    ),
    ("host-offload", r"The largest is (?P<op>\S+), # a step \(#%\)"): lambda cores, found: _largest(
        cores, found["op"], lambda op: op.is_of_host_memory
    ),
    ("host-offload", r"(?P<op>\S+) moves # from the host at # at most:"): lambda cores, found: _rate(
        cores, found["op"]
    ),
    ("host-offload", r"Compute takes #,"): lambda cores, _: [_self_ms(cores, lambda op: op.computes)],
    ("collective", r"Collectives not hidden by compute cost # a step \(#%\)"): lambda cores, _: _time(
        cores, lambda op: op.is_collective
    ),
    ("collective", rf"# (?P<way>\w+) (?P<opcode>{OPCODES})e?s # a step \(#%\)"): lambda cores, found: (
        _of_pass(cores, found["opcode"], found["way"])
    ),
    ("collective", r"The largest of # collectives is (?P<op>\S+) \(.*\), # a step \(#%\)"): lambda cores, found: [
        sum(op.is_collective and "-done" not in op.name for op in cores[0].by_op),
        *_largest(cores, found["op"], lambda op: op.is_collective),
    ],
    ("collective", r"Cores wait # for the last core; the transfer, .*, takes #"): lambda cores, _: [
        *reversed(moving_and_waiting_ms(cores))
    ],
    ("memory-bound", r"# ops without matrix products take # a step \(#%\), limited by HBM"): lambda cores, _: [
        sum(map(_held_up(cores), cores[0].by_op)), *_time(cores, _held_up(cores))
    ],
    ("slow-step", r"takes # times the median step"): lambda cores, _: [max(step_ms(cores)) / median(step_ms(cores))],
    ("slow-step", r"takes # \(median #\); # of # steps is slow"): lambda cores, _: [
        max(step_ms(cores)), median(step_ms(cores)), len(slow_steps(cores)), len(step_ms(cores))
    ],
    ("slow-step", r"takes # longer than the median step, all in input wait"): lambda cores, _: [
        max(step_ms(cores)) - median(step_ms(cores))
    ],
    ("unfused", r"# ops on score arrays \(of up to #\) take # a step \(#%\)"): lambda cores, _: [
        sum(op.has_scores for op in cores[0].by_op),
        max(op.scores_bytes for op in cores[0].by_op),
        *_time(cores, lambda op: op.has_scores),
    ],
    ("unfused", r"The slowest matrix product is (?P<op>\S+) \(.*\), # a step \(#%\)"): lambda cores, found: [
        _named(cores, found["op"]), _percent(cores, _named(cores, found["op"]))
    ],
    ("unexplained", r"(?P<op>[\w.-]+): #% of a step, at #% of peak FLOP/s"): lambda cores, found: [
        _percent(cores, _named(cores, found["op"])), _reached(cores[0], [_op(cores, found["op"])])
    ],
    ("unexplained", r"compute ops lose # a step"): lambda cores, _: [_of_no_known_reason(cores)],
}  # fmt: skip
"""Sentences by kind and pattern, with `#` for a figure, and what the raw events say instead: one for each figure."""


_UNITS = {"ms": 1.0, "µs": 1e-3, "GB": 1e9, "GB/s": 1e9, "MB": 1e6}


def _number(text: str) -> tuple[float, float]:
    """A figure with its unit, and what one in its last digit is."""
    figure, _, unit = text.partition(" ")
    plain = figure.rstrip(".,").replace(",", "")
    digits = len(plain.partition(".")[2])
    return float(plain) * _UNITS.get(unit, 1.0), 10.0**-digits * _UNITS.get(unit, 1.0)


def test_figures_of_reasons_are_those_of_the_raw_events(profile: Profile) -> None:
    cores = _cores(profile.file)
    compared = 0
    for finding in _overview(profile).findings:
        for sentence in (finding.title, *finding.evidence, finding.advice):
            found = [
                (match, expected(cores, match))
                for (kind, pattern), expected in FIGURES.items()
                if kind == finding.kind
                for match in re.finditer(pattern.replace("#", N), sentence)
            ]
            for match, values in found:
                names = match.re.groupindex.values()
                said = [text for at, text in enumerate(match.groups(), 1) if at not in names]
                tolerance = ESTIMATED if re.search(r"lose|score", match[0]) else MEASURED
                compared += len(said)
                for text, value in zip(said, values, strict=True):
                    number, last_digit = _number(text)
                    assert number == pytest.approx(value, rel=tolerance, abs=last_digit / 2), sentence
            if profile.is_real and sentence in finding.evidence and re.search(r"\d (ms|µs|GB|MB)\b|\d%", sentence):
                assert found, f"nothing is compared with this: {sentence}"
    assert compared >= (9 if profile.is_real else 25)


# ---- the account -----------------------------------------------------------------------------------------------------

OWNED: Mapping[tuple[Owner, ...], Callable[[Cores], float]] = {
    ("host_transfer",): WORTH["host-offload"],
    ("collective_transfer",): lambda cores: moving_and_waiting_ms(cores)[0],
    ("collective_wait",): lambda cores: moving_and_waiting_ms(cores)[1],
    ("copy",): lambda cores: _self_ms(
        cores, lambda op: not (op.computes or op.is_collective or op.is_of_host_memory or op.is_loop)
    ),
    ("loss", "ideal", "uncounted"): lambda cores: _self_ms(cores, lambda op: op.computes or op.is_loop),
    ("ideal",): lambda cores: _self_ms(cores, lambda op: op.computes) - _below_the_roof(cores),
}
"""Owners of a step's time, and milliseconds of what is theirs."""


def _below_the_roof(cores: Cores) -> float:
    return mean_over(cores, lambda core: core.above_ms(1.0, lambda op: op.computes))


def test_owners_of_a_step_have_what_the_raw_events_say(profile: Profile) -> None:
    cores = _cores(profile.file)
    ledger = present(profile.session().page(LEDGER))
    for owners, of_raw in OWNED.items():
        assert float(ledger.of(*owners).mean()) / 1e9 == pytest.approx(of_raw(cores), rel=MEASURED, abs=1e-3), owners


def test_what_no_op_takes_is_waiting_of_some_kind(profile: Profile) -> None:
    """Cores that end a step before others are waiting too: as long as these are, on top of what no op takes."""
    cores = _cores(profile.file)
    ledger = present(profile.session().page(LEDGER))
    said = float(ledger.of("input", "compile", "host", "dispatch", "barrier", "between_ops").mean()) / 1e9
    longest = fmean(max(times) for times in zip(*(core.step_ps for core in cores), strict=True)) / 1e9
    before_others = longest - fmean(step_ms(cores))
    assert said == pytest.approx(mean_over(cores, without_op_ms) + before_others, rel=MEASURED)
