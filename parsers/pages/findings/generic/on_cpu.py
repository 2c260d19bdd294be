"""Findings about programs on the host's CPU: they wait for input, compile, run the host's code, or wait for a process.

They rest on the account of the steps (`parsers.steps.step_account`) and on what the step's own thread was in
meanwhile: with the Python tracer that is a function of the program and its line, without it nothing is known of most
functions, and a finding says so in place of a guess. On GPUs a host is late, or else a GPU, and the others wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from tpuprof.parsers.base.errors import behind_wall
from tpuprof.parsers.base.intervals import Bools, Floats
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import sentence_name, share, shortened, time
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.pages.findings.claims import COLLECTIVE_OWNERS
from tpuprof.parsers.pages.findings.cores.collectives import COLLECTIVE
from tpuprof.parsers.pages.findings.cores.late import STRAGGLER
from tpuprof.parsers.pages.findings.figures import with_figures
from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget, Kind, OwnerClaim, with_own_figures
from tpuprof.parsers.pages.findings.idle.outside import COMPILATION, LEAST_COMPILING
from tpuprof.parsers.pages.findings.idle.waiting import HOST, IDLE, INPUT
from tpuprof.parsers.pages.findings.subject import subject_of_hosts
from tpuprof.parsers.pages.findings.when import When, when
from tpuprof.parsers.steps.accounts.cpu import HostFunction, HostOnCpu, HostPart
from tpuprof.parsers.steps.accounts.owners import OWNERS, WAITS, Owner, owner_index
from tpuprof.parsers.steps.step_account import Account, late_one

LEAST = 0.05
"""A cause is named from this share of a step on."""

_MOVE_LESS = (
    "Send less, or less often. CPU devices share the host's cores: with more devices than cores they wait for each "
    "other, which says nothing about a TPU."
)

_DELAYS: tuple[Owner, ...] = ("host", "input", "compile", "dispatch", "uncounted")
"""What may make one process later than the others."""

_HOLDS = 0.5
"""A function is named in a title if it has this share of the time."""

TRACE_PYTHON = (
    "Capture with the Python tracer, which names the function and its line: tpuprof-tui capture --python-tracer-level "
    "1, in JAX jax.profiler.ProfileOptions().python_tracer_level = 1; or put jax.profiler.TraceAnnotation around code."
)
LAUNCH_LESS = "Compile the step as one program (jax.jit around all of it), so that the host launches it once."
FIND_THE_WAIT = (
    "Find what it waits for. Where these are requests, there is room for more of them; where it is anything else, let "
    "steps go on meanwhile."
)
CALL_BACK_LESS = (
    "Compute that in JAX, or call back less often; what the step need not wait for can run on a thread of its own, on "
    "values that the program returns."
)
LEAVE_INTERPRETER = (
    "Move that thread's work to a process of its own (multiprocessing), or to code that releases the interpreter, such "
    "as NumPy: one thread at a time runs Python."
)
NOT_TRACED = "not traced"
_BASIS = "Mean over steps{hosts} of the time in which no op ran on the CPU"


@dataclass(frozen=True, slots=True)
class OnCpu:
    """What the findings rest on.

    Attributes:
        account: the account of the steps.
        hosts: name and steps of each host that the account is of, in its order.
        has_ops: whether XLA's ops were traced: where they were not, time without one says nothing.
    """

    account: Account
    hosts: tuple[tuple[str, HostOnCpu], ...]
    has_ops: bool = True

    @property
    def whole_ps(self) -> float:
        """What shares are of."""
        return self.account.mean_whole_ps

    def cells(self) -> Floats:
        """float64[hosts, len(OWNERS)]: the mean step of each host, with the time to the next where steps lie apart."""
        of, count = self.account, max(len(self.account) - 1, 1)
        cells: Floats = of.owner_ps.mean(axis=1) + of.between_ps.sum(axis=1) / count * of.steps_lie_apart
        return cells

    def untraced_ps(self) -> Floats:
        """float64[hosts]: the part of `host` in it that no event says anything of."""
        out = []
        for _, steps in self.hosts:
            between = float(steps.untraced_between_ps[:-1].sum()) / max(len(steps) - 1, 1)
            out.append(float(steps.untraced_ps.mean()) + between * self.account.steps_lie_apart)
        untraced: Floats = np.minimum(np.array(out), self.cells()[:, owner_index("host")])
        return untraced

    def amount(self, ps: float) -> str:
        """``3.10 ms a step (12.3%)``."""
        words = f"{time(ps)} a step ({share(ps / self.whole_ps)})"
        return with_figures(words, (ps / 1e9, "ms"), (ps / self.whole_ps, "fraction"))

    def parts_ps(self, cause: Literal["callback", "interpreter"]) -> Floats:
        """float64[hosts]: the part of `host` that has this cause (`HostPart`)."""
        out = np.zeros(len(self.hosts))
        for row, (_, steps) in enumerate(self.hosts):
            for part in steps.parts:
                between = float(part.between_ps[:-1].sum()) / max(len(steps) - 1, 1)
                of_step = float(part.step_ps.mean()) + between * self.account.steps_lie_apart
                out[row] += of_step if part.cause == cause else 0.0
        return np.minimum(out, self.cells()[:, owner_index("host")])


def _claimed(left: Floats, chosen: Bools, owners: Sequence[Owner]) -> Floats:
    claim = np.zeros_like(left)
    for owner in owners:
        at = owner_index(owner)
        claim[chosen, at] = left[chosen, at]
    return claim


def _finding(
    of: OnCpu,
    kind: Kind,
    title: str,
    claim: Floats,
    least: float,
    basis: str,
    evidence: Sequence[str],
    place: JumpTarget,
    advice: str = "",
    is_estimate: bool = False,
) -> tuple[Finding | None, Floats]:
    by_owner = claim.mean(axis=0)
    worth = min(float(by_owner.sum()), of.whole_ps)
    if worth <= 0 or worth < least * of.whole_ps:
        return None, np.zeros_like(claim)
    hosts = "" if len(of.hosts) < 2 else " and processes"
    finding = Finding(
        kind=kind.name,
        title=title,
        worth_ps=worth,
        per="step",
        worth_fraction=worth / of.whole_ps,
        after_ps=of.whole_ps - worth,
        is_estimate=is_estimate,
        basis=basis.format(hosts=hosts),
        evidence=tuple(filter(None, evidence)),
        advice=advice or kind.advice,
        place=place,
        claims=tuple(OwnerClaim(name, ps) for name, ps in zip(OWNERS, by_owner.tolist(), strict=True) if ps > 0),
        subject=subject_of_hosts([name for name, _ in of.hosts], claim.sum(axis=1)),
    )
    return finding, claim


def _most(of: OnCpu, claim: Floats) -> tuple[str, HostOnCpu, float]:
    """The host with most of a claim, and how much that is."""
    most = int(claim.sum(axis=1).argmax())
    return (*of.hosts[most], float(claim[most].sum()))


def _longest_step(of: OnCpu, *owners: Owner) -> str:
    return of.account.names[int(of.account.of(*owners).mean(axis=0).argmax())]


def _when(of: OnCpu, *owners: Owner) -> When:
    """In which steps some owners have their time."""
    return when(of.account.of(*owners).mean(axis=0).astype(np.float64), of.account.names, LEAST * of.whole_ps)


def _inside(of: OnCpu, claim: Floats, *owners: Owner) -> tuple[HostOnCpu, str, list[str]]:
    """The host with most of a claim, the function that has most of it, for a title, and sentences on both."""
    host, steps, most = _most(of, claim)
    name, sentences = _named(steps, steps.functions_of(*owners), most)
    return steps, name, [f"The largest part is on {host}."] * (len(of.hosts) > 1) + sentences


def _named(steps: HostOnCpu, functions: Sequence[HostFunction], ps: float) -> tuple[str, list[str]]:
    """The same of some functions."""
    total = ps * len(steps)
    if not functions:
        if not steps.is_traced:
            return NOT_TRACED, ["Its functions are not traced: no event shows which one it is in."]
        return "", []
    sentences = []
    for function in functions[:2]:
        if function is not functions[0] and function.time_ps < LEAST * total:
            break
        inside = f", most of it in {sentence_name(function.inside)}" if function.inside else ""
        each = f"{time(function.time_ps / len(steps))} a step ({counted(function.occurrences, 'time')})"
        who = sentence_name(function.thread) or "The step's thread"
        sentences.append(f"{who} is in {sentence_name(function.name)} for {each}{inside}.")
    if not steps.is_traced:
        sentences.append("Its Python functions are not traced: the Python tracer was off.")
    named = functions[0].name if functions[0].time_ps >= _HOLDS * total else ""
    return sentence_name(named), sentences


def _input(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    claim = _claimed(left, np.ones(len(left), np.bool_), ("input",))
    _, name, sentences = _inside(of, claim, "input")
    words = [f"The step's thread waits for, makes or sends input for {of.amount(float(claim.mean(axis=0).sum()))}."]
    title = f"Steps wait for input{_when(of, 'input').after}" + (f" in {name}" if name and name != NOT_TRACED else "")
    basis = f"{_BASIS}, and the step's thread waited for input or made it."
    return _finding(
        of, INPUT, title, claim, LEAST, basis, [*words, *sentences], JumpTarget("input", _longest_step(of, "input"))
    )


def _compiling(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    claim = _claimed(left, np.ones(len(left), np.bool_), ("compile",))
    compiling = int((of.account.of("compile").sum(axis=0) > 0).sum())
    steps, name, sentences = _inside(of, claim, "compile")
    what = f" {shortened(steps.compiled[0])}" if steps.compiled else ""
    where = "Each step" if compiling == len(of.account) else f"{compiling} of {counted(len(of.account), 'step')}"
    verb = "compile" if 1 < compiling < len(of.account) else "compiles"
    called = f", called in {name}" if name and name != NOT_TRACED else ""
    return _finding(
        of,
        COMPILATION,
        f"{where} {verb}{what}{called}",
        claim,
        LEAST_COMPILING,
        f"{_BASIS}, and the step's thread traced, lowered or compiled a program.",
        [
            f"{where} {verb} for {of.amount(float(claim.mean(axis=0).sum()))}, mean over all steps.",
            *sentences,
            "A steady program compiles nothing: look for shapes, dtypes or static arguments that change.",
        ],
        JumpTarget("timeline", _longest_step(of, "compile")),
    )


def _host(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    claim = _claimed(left, np.ones(len(left), np.bool_), ("host", "dispatch"))
    claim[:, owner_index("host")] = np.maximum(claim[:, owner_index("host")] - untraced, 0.0)
    steps, name, sentences = _inside(of, claim, "host", "dispatch")
    launches = float(claim[:, owner_index("dispatch")].sum()) >= _HOLDS * float(claim.sum())
    longest = next(iter(steps.functions_of("host", "dispatch")), None)
    is_named = bool(name) and name != NOT_TRACED
    waits = is_named and longest is not None and longest.waits
    what = "launches programs" if launches else "waits" if waits else "works"
    words = [f"For {of.amount(float(claim.mean(axis=0).sum()))} the step's thread {what} and no op runs."]
    timing = _when(of, "host", "dispatch")
    doing = what if launches or waits or not is_named else "is"
    title = f"{timing.first} no op runs" if timing.words else "No op runs"
    title += f": the host {doing}" + f" in {name}" * is_named
    return _finding(
        of, HOST, title, claim, LEAST, f"{_BASIS}, and the step's thread ran the program's code or launched ops.",
        [*words, timing.sentence("has no op for") if timing.is_regular else "", *sentences],
        JumpTarget("timeline", _longest_step(of, "host", "dispatch")),
        LAUNCH_LESS if launches else FIND_THE_WAIT if waits else "", is_estimate=waits,
    )  # fmt: skip


def _callbacks(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    """Ops call functions of the host's Python, and no other op runs meanwhile."""
    claim, ps, part, name, sentences = _part(of, left, "callback")
    if part is None:
        return None, claim
    ops = part.ops[0] if part.ops else "an op"
    called = name if name and name != NOT_TRACED else shortened(ops)
    more = f" and {counted(len(part.ops) - 1, 'other op')}" if len(part.ops) > 1 else ""
    return _finding(
        of, HOST, f"The program calls back to the host's Python: {called}", claim, LEAST,
        "Mean over steps{hosts} of the time in which an op called a function of Python, and no other op ran.",
        [f"{sentence_name(ops)}{more} {'call' if more else 'calls'} Python for {of.amount(ps)}.", *sentences],
        JumpTarget("timeline", part.ops[0].partition(" (")[0] if part.ops else None), CALL_BACK_LESS,
    )  # fmt: skip


def _other_python(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    """Another thread runs Python while the step's thread has to."""
    claim, ps, part, name, sentences = _part(of, left, "interpreter")
    if part is None or ps < _HOLDS * float(left[:, owner_index("host")].mean()):
        return None, np.zeros_like(claim)
    where = f", in {name}" if name and name != NOT_TRACED else ""
    return _finding(
        of, HOST, f"No op runs: another thread holds the interpreter{where}", claim, LEAST,
        f"{_BASIS}, the step's thread did not wait by itself, and another thread was in Python code.",
        [f"For {of.amount(ps)} no op runs, and another thread runs Python.", *sentences],
        JumpTarget("timeline", _longest_step(of, "host")), LEAVE_INTERPRETER, is_estimate=True,
    )  # fmt: skip


def _part(
    of: OnCpu, left: Floats, cause: Literal["callback", "interpreter"]
) -> tuple[Floats, float, HostPart | None, str, list[str]]:
    """What a part of the host's time may claim, how much that is, and of the host with most of it: which functions."""
    claim, at = np.zeros_like(left), owner_index("host")
    claim[:, at] = np.minimum(of.parts_ps(cause), left[:, at])
    _, steps, most = _most(of, claim)
    part = next((part for part in steps.parts if part.cause == cause), None)
    name, sentences = ("", []) if part is None else _named(steps, part.functions, most)
    return claim, float(claim[:, at].mean()), part, name, sentences


def _untraced(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    claim, at = np.zeros_like(left), owner_index("host")
    claim[:, at] = np.minimum(untraced, left[:, at])
    ps = float(claim.mean(axis=0).sum())
    return _finding(
        of,
        IDLE,
        f"No op runs, and what the host does is {NOT_TRACED}",
        claim,
        LEAST,
        f"{_BASIS}, and no event says what the step's thread did.",
        [
            f"For {of.amount(ps)} no op runs, and the step's thread has no event.",
            "It may wait for input or another process, or run the program's own code: the profile does not show which.",
        ],
        JumpTarget("timeline", _longest_step(of, "host")),
        TRACE_PYTHON,
    )


def late_process(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    """Processes whose profiles are there wait for one of them."""
    waits = left[:, [owner_index(owner) for owner in WAITS]].sum(axis=1)
    if len(of.hosts) < 2 or waits.max() < LEAST * of.whole_ps:
        return None, np.zeros_like(left)
    late = int(waits.argmin())
    others = np.arange(len(left)) != late
    claim = _claimed(left, others, WAITS)
    room = float(waits[others].mean())
    longer: list[tuple[Owner, float]] = []
    for owner in _DELAYS:
        at = owner_index(owner)
        more = min(max(0.0, float(left[late, at] - left[others, at].max())), room)
        room -= more
        claim[late, at] = more
        longer += [(owner, more)] * (more > 0)
    name, steps = of.hosts[late]
    first, more = max(longer, key=lambda pair: pair[1], default=("host", 0.0))
    function, sentences = (
        _named(steps, steps.functions_of(first), more) if first != "uncounted" else ("", ["Its ops take longer."])
    )
    waiting = [host for (host, _), is_other in zip(of.hosts, others.tolist(), strict=True) if is_other]
    who = waiting[0] if len(waiting) == 1 else f"{len(waiting)} processes"
    where = f", which is in {function}" if function and function != NOT_TRACED else ""
    where = f", which is {NOT_TRACED}" if function == NOT_TRACED else where
    return _finding(
        of,
        STRAGGLER,
        f"{who} {'waits' if len(waiting) == 1 else 'wait'} for {name}{where}",
        claim,
        LEAST,
        "Mean over steps and processes of two times: what processes spend in collectives beyond the time on the "
        "process that comes last, and what that process does longer than the others.",
        [
            f"{who} {'waits' if len(waiting) == 1 else 'wait'} {time(float(waits[others].mean()))} a step for {name}.",
            f"{name} takes {time(more)} longer than the others: {_DOES[first]}." if more > 0 else "",
            *sentences,
        ],
        JumpTarget("timeline", of.account.names[0]),
        f"See what {name} does longer than the others, and give it less of that.",
    )


def late_device(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    """One device of a host computes for longer than the others, which wait for it in collectives."""
    claim, at = np.zeros_like(left), owner_index("uncounted")
    late: dict[int, tuple[int, float, float, float]] = {}
    for row, (_, steps) in enumerate(of.hosts):
        times = steps.of_devices
        if times is None:
            continue
        waits, own = times.waits_ps.mean(axis=1), times.compute_ps.mean(axis=1)
        labels = [core_label("", number) for number in times.numbers]
        name = late_one(labels, waits)
        if name in labels:
            place = labels.index(name)
            waiting, usual = float(np.delete(waits, place).mean()), float(np.median(np.delete(own, place)))
            claim[row, at] = min(waiting, max(0.0, float(own[place]) - usual), float(left[row, at]))
            late[row] = times.numbers[place], waiting, float(own[place]), usual
    if not late:
        return None, claim
    most = max(late, key=lambda row: float(claim[row, at]))
    number, waiting, own_ps, usual = late[most]
    name, steps = of.hosts[most]
    which = f"device {number}" + f" of {name}" * (len(of.hosts) > 1)
    others = len(steps.of_devices.numbers) - 1 if steps.of_devices is not None else 0
    longest = steps.collective_names[int(steps.collective_ps.sum(axis=0).argmax())] if steps.collective_names else ""
    return _finding(
        of, STRAGGLER, f"{counted(others, 'device')} {'waits' if others == 1 else 'wait'} for {which}", claim, LEAST,
        "Mean over steps{hosts} of the time that the others wait in collectives for it, up to what it computes longer.",
        [
            f"{which} computes for {time(own_ps)} a step, and half of the others for {time(usual)} at most.",
            f"They wait {time(waiting)} a step for it, in {sentence_name(longest)}." if longest else "",
        ],
        JumpTarget("timeline", longest or None),
        f"Give each device the same work: see which ops {which} runs longer or more often.",
    )  # fmt: skip


_DOES: dict[Owner, str] = {
    "host": "its own thread works, or waits, while no op runs",
    "input": "it waits for input or makes it",
    "compile": "it compiles",
    "dispatch": "it launches ops",
    "uncounted": "its ops run",
}


def _collectives(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    """What is left of the time in collectives while no op computes: moving data, and waiting for other devices."""
    claim = _claimed(left, np.ones(len(left), np.bool_), COLLECTIVE_OWNERS)
    host, steps, _ = _most(of, claim)
    if not steps.collective_names:
        return None, np.zeros_like(left)
    longest = steps.collective_names[int(steps.collective_ps.sum(axis=0).argmax())]
    devices = f" over {steps.devices:,} devices" if steps.devices else ""
    return _finding(
        of,
        COLLECTIVE,
        f"No op computes during collectives, {shortened(longest)} above all",
        claim,
        LEAST,
        "Mean over steps{hosts} of the time in which a collective ran on some thread, and no op that computes.",
        [
            f"For {of.amount(float(claim.mean(axis=0).sum()))} collectives run and no op computes.",
            f"{sentence_name(longest)}{devices} takes most of this time{f' on {host}' * (len(of.hosts) > 1)}.",
        ],
        JumpTarget("timeline", longest),
        _MOVE_LESS,
    )


def _other_processes(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    """Collectives over processes whose profiles are not there."""
    partners = np.array([steps.has_partners for _, steps in of.hosts])
    if len(of.hosts) > 1 or not partners.any():
        return None, np.zeros_like(left)
    claim = _claimed(left, partners, ("collective_wait",))
    _, steps = of.hosts[0]
    longest = steps.collective_names[int(steps.collective_ps.sum(axis=0).argmax())]
    return _finding(
        of,
        STRAGGLER,
        f"Steps wait for another process in {shortened(longest)}",
        claim,
        LEAST,
        "Mean over steps of the time in collectives beyond 1 ms a run and 100 MB a second: a transfer takes no longer.",
        [
            f"{sentence_name(longest)} is a collective over {steps.devices} devices, of which this profile has "
            f"{steps.local_devices}; no op computes meanwhile.",
            "Only the profiles of all processes together show which one is late: capture them in one run.",
        ],
        JumpTarget("timeline", longest),
        "Capture the other processes too, as hosts of one run, with a different name for each file.",
        is_estimate=True,
    )


_Look = Callable[[OnCpu, Floats, Floats], tuple[Finding | None, Floats]]

_DETECTORS: tuple[tuple[Kind, _Look], ...] = (
    (STRAGGLER, late_process),
    (STRAGGLER, _other_processes),
    (STRAGGLER, late_device),
    (COLLECTIVE, _collectives),
    (COMPILATION, _compiling),
    (INPUT, _input),
    (HOST, _callbacks),
    (HOST, _other_python),
    (HOST, _host),
    (IDLE, _untraced),
)

KINDS_ON_CPU = frozenset(kind.name for kind, _ in _DETECTORS)
"""The kinds that are looked for on the CPU."""


def findings_on_cpu(of: OnCpu, failed: list[str]) -> tuple[Finding, ...]:
    """Why the program is slow, what is worth most first.

    Args:
        failed: gets a sentence on each detector that fails.
    """
    left = of.cells()
    found: list[Finding] = []
    untraced = of.untraced_ps()
    for kind, look in _DETECTORS if of.has_ops else ((INPUT, _input), (COMPILATION, _compiling)):
        untraced = np.minimum(untraced, left[:, owner_index("host")])
        claimed = behind_wall(kind.search, partial(look, of, left, untraced), failed)
        finding, claim = claimed or (None, left)
        if finding is not None:
            found.append(finding)
            left = np.maximum(left - claim, 0.0)
    return tuple(map(with_own_figures, sorted(found, key=lambda finding: -(finding.worth_ps or 0.0))))


KINDS_ON_GPUS = frozenset({STRAGGLER.name})
"""The kinds that are looked for on GPUs."""


def findings_on_gpus(of: OnCpu, failed: list[str]) -> tuple[Finding, ...]:
    """Why a program is slow on the GPUs of some hosts.

    Args:
        failed: gets a sentence where that can't be looked for.
    """
    for look in (late_process, late_device):
        found = behind_wall(STRAGGLER.search, partial(look, of, of.cells(), np.zeros(len(of.hosts))), failed)
        if found is not None and found[0] is not None:
            return (with_own_figures(found[0]),)
    return ()
