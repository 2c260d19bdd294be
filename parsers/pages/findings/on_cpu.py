"""Findings about programs on the host's CPU: they wait for input, compile, run the host's code, or wait for a process.

They rest on the account of the steps (`parsers.steps.ledger.cpu_ledger`) and on what the step's own thread was in
meanwhile: with the Python tracer that is a function of the program and its line, without it nothing is known of most
functions, and a finding says so in place of a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import sentence_name, share, short, time
from tpuprof.parsers.pages.findings.figures import with_figures
from tpuprof.parsers.pages.findings.finding import ADVICE, Finding, FindingKind, JumpTarget, OwnerClaim, told
from tpuprof.parsers.pages.findings.subject import subject_of_hosts
from tpuprof.parsers.steps.accounts.cpu import CpuAccount, HostFunction
from tpuprof.parsers.steps.accounts.owners import OWNERS, WAITS, Owner, owner_index
from tpuprof.parsers.steps.ledger import Ledger

KINDS_ON_CPU: tuple[FindingKind, ...] = ("input", "compilation", "host", "idle", "straggler", "collective")
"""The kinds that are looked for on the CPU."""

LEAST = 0.05
"""A cause is named from this share of a step on."""

LEAST_COMPILING = 0.01
"""A steady step never compiles."""

_MOVES: tuple[Owner, ...] = ("collective_wait", "collective_transfer")
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
NOT_TRACED = "not traced"
_BASIS = "Mean over steps{hosts} of the time in which no op ran on the CPU"


@dataclass(frozen=True, slots=True)
class OnCpu:
    """What the findings rest on.

    Attributes:
        ledger: the account of the steps.
        hosts: name and account of each host that the ledger is of, in its order.
    """

    ledger: Ledger
    hosts: tuple[tuple[str, CpuAccount], ...]

    @property
    def whole_ps(self) -> float:
        """What shares are of."""
        return self.ledger.mean_whole_ps

    def cells(self) -> Floats:
        """float64[hosts, len(OWNERS)]: the mean step of each host, with the time to the next where steps lie apart."""
        of, count = self.ledger, max(len(self.ledger) - 1, 1)
        cells: Floats = of.owner_ps.mean(axis=1) + of.between_ps.sum(axis=1) / count * of.steps_lie_apart
        return cells

    def untraced_ps(self) -> Floats:
        """float64[hosts]: the part of `host` in it that no event says anything of."""
        out = []
        for _, account in self.hosts:
            between = float(account.untraced_between_ps[:-1].sum()) / max(len(account) - 1, 1)
            out.append(float(account.untraced_ps.mean()) + between * self.ledger.steps_lie_apart)
        untraced: Floats = np.minimum(np.array(out), self.cells()[:, owner_index("host")])
        return untraced

    def amount(self, ps: float) -> str:
        """``3.10 ms a step (12.3%)``."""
        words = f"{time(ps)} a step ({share(ps / self.whole_ps)})"
        return with_figures(words, (ps / 1e9, "ms"), (ps / self.whole_ps, "fraction"))


def functions_of(account: CpuAccount, *owners: Owner) -> list[HostFunction]:
    """What the step's thread was in, of some owners' time, most first."""
    return sorted((each for each in account.functions if each.owner in owners), key=lambda each: -each.time_ps)


def findings_on_cpu(of: OnCpu) -> tuple[Finding, ...]:
    """Why the program is slow, what is worth most first."""
    left = of.cells()
    found: list[Finding] = []
    untraced = of.untraced_ps()
    looks: list[Callable[[OnCpu, Floats, Floats], tuple[Finding | None, Floats]]] = [
        _late_process, _other_processes, _collectives, _compiling, _input, _host, _untraced
    ]  # fmt: skip
    for look in looks:
        finding, claim = look(of, left, untraced)
        if finding is not None:
            found.append(finding)
            untraced = (
                np.minimum(untraced, (left - claim)[:, owner_index("host")]) if look is _late_process else untraced
            )
            left = np.maximum(left - claim, 0.0)
    return tuple(map(told, sorted(found, key=lambda finding: -(finding.worth_ps or 0.0))))


def _claimed(of: OnCpu, left: Floats, chosen: Bools, owners: Sequence[Owner]) -> Floats:
    claim = np.zeros_like(left)
    for owner in owners:
        at = owner_index(owner)
        claim[chosen, at] = left[chosen, at]
    return claim


def _finding(
    of: OnCpu,
    kind: FindingKind,
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
        kind=kind,
        title=title,
        worth_ps=worth,
        per="step",
        worth_fraction=worth / of.whole_ps,
        after_ps=of.whole_ps - worth,
        is_estimate=is_estimate,
        basis=basis.format(hosts=hosts),
        evidence=tuple(filter(None, evidence)),
        advice=advice or ADVICE[kind],
        place=place,
        claims=tuple(OwnerClaim(name, ps) for name, ps in zip(OWNERS, by_owner.tolist(), strict=True) if ps > 0),
        subject=subject_of_hosts([name for name, _ in of.hosts], claim.sum(axis=1)),
    )
    return finding, claim


def _most(of: OnCpu, claim: Floats) -> tuple[str, CpuAccount, float]:
    """The host with most of a claim, and how much that is."""
    most = int(claim.sum(axis=1).argmax())
    return (*of.hosts[most], float(claim[most].sum()))


def _longest_step(of: OnCpu, *owners: Owner) -> str:
    return of.ledger.names[int(of.ledger.of(*owners).mean(axis=0).argmax())]


def _inside(of: OnCpu, account: CpuAccount, ps: float, *owners: Owner) -> tuple[str, list[str]]:
    """The function that has most of the time, for a title, and sentences on what the thread was in."""
    functions = functions_of(account, *owners)
    total = ps * len(account)
    if not functions:
        if not account.is_traced:
            return NOT_TRACED, ["Its functions are not traced: no event shows which one it is in."]
        return "", []
    sentences = []
    for function in functions[:2]:
        if function is not functions[0] and function.time_ps < LEAST * total:
            break
        inside = f", most of it in {sentence_name(function.inside)}" if function.inside else ""
        each = f"{time(function.time_ps / len(account))} a step ({counted(function.occurrences, 'time')})"
        sentences.append(f"The step's thread is in {sentence_name(function.name)} for {each}{inside}.")
    if not account.is_traced:
        sentences.append("Its Python functions are not traced: the Python tracer was off.")
    named = functions[0].name if functions[0].time_ps >= _HOLDS * total else ""
    return sentence_name(named), sentences


def _input(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    claim = _claimed(of, left, np.ones(len(left), np.bool_), ("input",))
    host, account, most = _most(of, claim)
    name, sentences = _inside(of, account, most, "input")
    words = [f"The step's thread waits for, makes or sends input for {of.amount(float(claim.mean(axis=0).sum()))}."]
    words += [f"The largest part is on {host}."] * (len(of.hosts) > 1)
    title = "Steps wait for input" + (f" in {name}" if name and name != NOT_TRACED else "")
    basis = f"{_BASIS}, and the step's thread waited for input or made it."
    return _finding(
        of, "input", title, claim, LEAST, basis, [*words, *sentences], JumpTarget("input", _longest_step(of, "input"))
    )


def _compiling(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    claim = _claimed(of, left, np.ones(len(left), np.bool_), ("compile",))
    _, account, most = _most(of, claim)
    compiling = int((of.ledger.of("compile").sum(axis=0) > 0).sum())
    name, sentences = _inside(of, account, most, "compile")
    what = f" {short(account.compiled[0])}" if account.compiled else ""
    where = "Each step" if compiling == len(of.ledger) else f"{compiling} of {counted(len(of.ledger), 'step')}"
    verb = "compile" if 1 < compiling < len(of.ledger) else "compiles"
    called = f", called in {name}" if name and name != NOT_TRACED else ""
    return _finding(
        of,
        "compilation",
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
    claim = _claimed(of, left, np.ones(len(left), np.bool_), ("host", "dispatch"))
    claim[:, owner_index("host")] = np.maximum(claim[:, owner_index("host")] - untraced, 0.0)
    host, account, most = _most(of, claim)
    name, sentences = _inside(of, account, most, "host", "dispatch")
    words = [f"For {of.amount(float(claim.mean(axis=0).sum()))} the step's thread works and no op runs."]
    words += [f"The largest part is on {host}."] * (len(of.hosts) > 1)
    launches = float(claim[:, owner_index("dispatch")].sum()) >= _HOLDS * float(claim.sum())
    what = "launches programs" if launches else "works"
    title = f"No op runs: the host {what}"
    if name and name != NOT_TRACED:
        title = f"{title} in {name}" if launches else f"No op runs: the host is in {name}"
    return _finding(
        of, "host", title, claim, LEAST, f"{_BASIS}, and the step's thread ran the program's code or launched ops.",
        [*words, *sentences], JumpTarget("timeline", _longest_step(of, "host", "dispatch")),
        LAUNCH_LESS if launches else "",
    )  # fmt: skip


def _untraced(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    claim = np.zeros_like(left)
    at = owner_index("host")
    claim[:, at] = np.minimum(untraced, left[:, at])
    ps = float(claim.mean(axis=0).sum())
    return _finding(
        of,
        "idle",
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


def _late_process(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    """Processes whose profiles are there wait for one of them."""
    waits = left[:, [owner_index(owner) for owner in WAITS]].sum(axis=1)
    if len(of.hosts) < 2 or waits.max() < LEAST * of.whole_ps:
        return None, np.zeros_like(left)
    late = int(waits.argmin())
    others = np.arange(len(left)) != late
    claim = _claimed(of, left, others, WAITS)
    room = float(waits[others].mean())
    longer: list[tuple[Owner, float]] = []
    for owner in _DELAYS:
        at = owner_index(owner)
        more = min(max(0.0, float(left[late, at] - left[others, at].max())), room)
        room -= more
        claim[late, at] = more
        longer += [(owner, more)] * (more > 0)
    name, account = of.hosts[late]
    first, more = max(longer, key=lambda pair: pair[1], default=("host", 0.0))
    function, sentences = _inside(of, account, more, first) if first != "uncounted" else ("", ["Its ops take longer."])
    waiting = [host for (host, _), is_other in zip(of.hosts, others.tolist(), strict=True) if is_other]
    who = waiting[0] if len(waiting) == 1 else f"{len(waiting)} processes"
    where = f", which is in {function}" if function and function != NOT_TRACED else ""
    where = f", which is {NOT_TRACED}" if function == NOT_TRACED else where
    return _finding(
        of,
        "straggler",
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
        JumpTarget("timeline", of.ledger.names[0]),
        f"See what {name} does longer than the others, and give it less of that.",
    )


_DOES: dict[Owner, str] = {
    "host": "its own thread works, or waits, while no op runs",
    "input": "it waits for input or makes it",
    "compile": "it compiles",
    "dispatch": "it launches ops",
    "uncounted": "its ops run",
}


def _collectives(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    """What is left of the time in collectives while no op computes: moving data, and waiting for other devices."""
    claim = _claimed(of, left, np.ones(len(left), np.bool_), _MOVES)
    host, account, _ = _most(of, claim)
    if not account.collective_names:
        return None, np.zeros_like(left)
    longest = account.collective_names[int(account.collective_ps.sum(axis=0).argmax())]
    devices = f" over {account.devices:,} devices" if account.devices else ""
    return _finding(
        of,
        "collective",
        f"No op computes during collectives, {short(longest)} above all",
        claim,
        LEAST,
        "Mean over steps{hosts} of the time in which a collective ran on some thread, and no op that computes.",
        [
            f"For {of.amount(float(claim.mean(axis=0).sum()))} collectives run and no op computes.",
            f"{sentence_name(longest)}{devices} has most of that{f' on {host}' * (len(of.hosts) > 1)}.",
        ],
        JumpTarget("timeline", longest),
        _MOVE_LESS,
    )


def _other_processes(of: OnCpu, left: Floats, untraced: Floats) -> tuple[Finding | None, Floats]:
    """Collectives over processes whose profiles are not there."""
    partners = np.array([account.has_partners for _, account in of.hosts])
    if len(of.hosts) > 1 or not partners.any():
        return None, np.zeros_like(left)
    claim = _claimed(of, left, partners, ("collective_wait",))
    _, account = of.hosts[0]
    longest = account.collective_names[int(account.collective_ps.sum(axis=0).argmax())]
    return _finding(
        of,
        "straggler",
        f"Steps wait for another process in {short(longest)}",
        claim,
        LEAST,
        "Mean over steps of the time in collectives beyond 1 ms a run and 100 MB a second: a transfer takes no longer.",
        [
            f"{sentence_name(longest)} is a collective over {account.devices} devices, of which this profile has "
            f"{account.local_devices}; no op computes meanwhile.",
            "Only the profiles of all processes together show which one is late: capture them in one run.",
        ],
        JumpTarget("timeline", longest),
        "Capture the other processes too, as hosts of one run, with a different name for each file.",
        is_estimate=True,
    )
