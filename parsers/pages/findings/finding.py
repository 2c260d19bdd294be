"""Findings, and the evidence that they rest on: sums by step, by op and by name, never single events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass, field, replace
from tpuprof.parsers.base.words import NO_PEAK_HBM
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.ops.core.calls import CallRuns
from tpuprof.parsers.ops.core.times import CoreOpTimes
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.host_events.activity import Compilation, IdleTime
from tpuprof.parsers.ops.roofline import Rates
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.figures import of_unit, other_figures, without_figures
from tpuprof.parsers.pages.findings.subject import NOTHING, Subject
from tpuprof.parsers.steps.accounts.owners import Owner
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.boundaries.outside import Outside
from tpuprof.parsers.steps.permutes import SlowLink

Tab = Literal["input", "op-profile", "timeline", "memory"]


@dataclass(frozen=True, slots=True)
class JumpTarget:
    """Where to look.

    Attributes:
        tab: which tab.
        target: the HLO op or step to jump to there by name; None for the tab itself.
        view: the view of that tab, by the name of its page; empty for the first view that has the target.
    """

    tab: Tab
    target: str | None = None
    view: Literal["", "kernels"] = ""


@dataclass(frozen=True, slots=True)
class OwnerClaim:
    """Time of an owner in the account that a finding is about: a mean over cores, and steps where there are any."""

    owner: Owner
    time_ps: float


@dataclass(frozen=True, slots=True)
class Unit:
    """What a reason of a program that serves is told of in place of a step.

    Attributes:
        name: ``request``, or ``run of jit_decode``.
        per_step: how many of them a step has, on average.
    """

    name: str
    per_step: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why the program is slow, or one thing to know before looking for reasons.

    Times are means over cores. No two findings count the same time, unless the `basis` says so.

    Attributes:
        kind: the name of the kind of reason.
        title: a few words, without a full stop.
        worth_ps: time that it costs the program, as mean per complete step or, without steps, in the whole capture. The
            most that can be won. Above 0; None where it is unknown what can be won.
        per: whether `worth_ps` is of a step or of the capture.
        worth_fraction: the same as a fraction (0-1] of step time, or of the capture; None where that is.
        after_ps: the time that a step (or the capture) would take without it; None where `worth_ps` is.
        is_estimate: whether a model or rule of thumb gives `worth_ps`; otherwise it is measured.
        basis: a sentence on how `worth_ps` was computed, or on why it is unknown.
        evidence: sentences with figures.
        advice: a sentence on what to try.
        place: where to look.
        claims: whose time in the account it is about, in the order of `OWNERS`; they add up to `worth_ps`, and no two
            findings claim the same time. Empty where `worth_ps` is None.
        subject: what it is about as data: ops, hosts, cores, the worst step, figures.
        unit: what its sentences and its worth are told of in words, if not a step; all times here are of a step.
    """

    kind: str
    title: str
    worth_ps: float | None
    per: Literal["step", "capture"]
    worth_fraction: float | None
    after_ps: float | None
    is_estimate: bool
    basis: str
    evidence: tuple[str, ...]
    advice: str
    place: JumpTarget
    claims: tuple[OwnerClaim, ...] = ()
    subject: Subject = NOTHING
    unit: Unit | None = None

    def told_ps(self, ps: float) -> float:
        """A time of a step as it is told."""
        return ps if self.unit is None else ps / self.unit.per_step

    def told_of(self, units: Mapping[int, Unit]) -> Finding:
        """The same, told of requests or of runs of the program of its ops, while its sentences still carry figures."""
        programs = {op.program_id or 0 for op in self.subject.ops}
        unit = units.get(-1) or (units.get(programs.pop()) if len(programs) == 1 else None)
        if unit is None or self.per != "step":
            return self
        sentences = tuple(of_unit(sentence, unit.name, unit.per_step) for sentence in self.evidence)
        return replace(self, evidence=sentences, unit=unit)


def names_of(findings: Sequence[Finding]) -> tuple[str, ...]:
    """What the findings of a run are called: by their kind, with a number behind it where several are of one kind."""
    of_kind, seen, names = Counter(finding.kind for finding in findings), Counter[str](), []
    for finding in findings:
        seen[finding.kind] += 1
        names.append(finding.kind if of_kind[finding.kind] == 1 else f"{finding.kind}-{seen[finding.kind]}")
    return tuple(names)


def with_own_figures(finding: Finding) -> Finding:
    """A finding whose sentences are for people alone: each figure in them is among those of its subject."""
    title, advice = (without_figures(text)[0] for text in (finding.title, finding.advice))
    basis, of_basis = without_figures(finding.basis)
    evidence = [without_figures(sentence) for sentence in finding.evidence]
    figures = dict.fromkeys((*(figure for _, found in evidence for figure in found), *of_basis))
    words = tuple(sentence for sentence, _ in evidence)
    exact = (*figures, *finding.subject.figures)
    subject = replace(finding.subject, figures=(*exact, *other_figures(words, (title, basis), exact)))
    return replace(finding, title=title, basis=basis, evidence=words, advice=advice, subject=subject)


@dataclass(frozen=True, slots=True)
class InCapture:
    """When a host's cores ran ops in its capture; times count from where the capture began.

    Attributes:
        captured_ps: how long was captured.
        ops: from the first op of all cores to the end of the last.
        busy: the share of the capture in which a core ran an op, mean over those that ran any, 0-1.
        core: the one that ran nothing for longest, and `silence`: when, and what the host did meanwhile.
    """

    captured_ps: int
    ops: tuple[int, int]
    busy: float
    core: str
    silence: IdleTime


@dataclass(frozen=True, slots=True)
class Evidence:
    """What findings rest on.

    Attributes:
        grid: the steps that all cores share; None without steps.
        table: time by op over all cores and the whole capture.
        rates: rates of the table's rows.
        peaks: the peaks of one core.
        device_type: such as ``TPU v5p``; None where unknown.
        total_ps: the cores' whole time, idle time included, summed over cores.
        core_count: how many cores `total_ps` and `table` cover.
        gaps: what happened in the gaps of the core that is idle most; None where unknown.
        host_gaps: the same for each host, of the core of that host that is idle most.
        runs: starts and durations, int64[n] each, of the runs of each module on the first host with steps, by name.
        ran_on: the share of that host's cores that ran it, by name; all where it is missing.
        barriers: how long each core waited for others at barriers, by name; empty where no core records it.
        offloaders: names of the ops that began work on a SparseCore.
        compilations: what the host compiled during the capture.
        modules: compiled programs, for the shapes of matrix products; only those of large ops are parsed.
        core_ops: time of the largest ops by core; None where it is unknown.
        memory: bytes of HBM that the fullest allocator had in use at most, and its capacity; None where unknown.
        calls: kernels of which the profile has the spans inside, over all hosts.
        serves: for a program that does not train, the modules that it runs: name, runs, and the median time of one.
        outside: what lies before the first whole step and after the last one, on the host where that is longest.
        units: what reasons of a program that serves are told of, by program id; under -1 for all programs.
        slow_link: the link between cores of a host that is slower than the others and costs most; None without any.
        no_device: why there are no device events; empty where there are.
        observed: of the host with the longest silence; None where none is long, or it is unknown.
    """

    grid: AlignedSteps | None
    table: OpTable
    rates: Rates
    peaks: Peaks
    device_type: str | None
    total_ps: int
    core_count: int
    gaps: IdleTime | None = None
    host_gaps: Mapping[str, IdleTime] = field(default_factory=dict)
    runs: Mapping[str, tuple[Int64s, Int64s]] = field(default_factory=dict)
    ran_on: Mapping[str, float] = field(default_factory=dict)
    barriers: Mapping[str, int] = field(default_factory=dict)
    offloaders: frozenset[str] = frozenset()
    compilations: tuple[Compilation, ...] = ()
    modules: Sequence[HloModules] = ()
    core_ops: CoreOpTimes | None = None
    memory: tuple[int, int] | None = None
    calls: Sequence[CallRuns] = ()
    serves: tuple[tuple[str, int, float], ...] = ()
    outside: tuple[Outside, ...] = ()
    units: Mapping[int, Unit] = field(default_factory=dict)
    slow_link: SlowLink | None = None
    no_device: str = ""
    observed: InCapture | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """What a profile must have before findings of some kinds can be detected in it.

    Attributes:
        why: why they can't be detected where it lacks that.
        is_met: whether it has it.
    """

    why: str
    is_met: Callable[[Evidence], bool]


DEVICE = Need("the profile has no device events", lambda of: len(of.table) > 0)
STEPS = Need("the profile has no steps that all cores share", lambda of: of.grid is not None)
CORES = Need("the run has one core, which waits for no other", lambda of: of.core_count >= 2)
PEAKS = Need(NO_PEAK_HBM, lambda of: of.peaks.hbm is not None)
HLO = Need(
    "the profile holds no HLO (enable_hlo_proto may be off)", lambda of: any(of_host.names for of_host in of.modules)
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding.

    Attributes:
        name: what commands and reports call it.
        title: what is looked for.
        advice: what to try, unless a finding has its own.
        rank: its place in lists of kinds, and among findings that are worth the same.
        owners: whose time its findings are about, and nothing else; empty where they are about parts of an owner's.
        needs: what a profile must have, in the order in which a lack is named. All but findings about the capture
            need a device too.
        unless: names of kinds that explain what it would be about; where one of them was found, nobody looks for it.
        page: the page that shows more; empty where that is the op, or the step, that a finding is about.
        of_capture: whether it is about the capture, and not about the program.
        can_overlap: whether its findings are about what could run beside the computation.
        on_hardware: whether it was found in a profile of hardware, and not in composed ones alone.
    """

    name: str
    title: str
    advice: str
    rank: int
    owners: tuple[Owner, ...] = ()
    needs: tuple[Need, ...] = ()
    unless: tuple[str, ...] = ()
    page: str = ""
    of_capture: bool = False
    can_overlap: bool = False
    on_hardware: bool = True

    @property
    def search(self) -> str:
        """The search for it in words that follow ``could not``; see `behind_wall`."""
        return f"look for {self.title}"

    def lacks(self, evidence: Evidence) -> str:
        """Why findings of this kind can't be detected; empty where they can."""
        needs = self.needs if self.of_capture else (DEVICE, *self.needs)
        return next((need.why for need in needs if not need.is_met(evidence)), "")

    def of_unknown_worth(
        self,
        title: str,
        per: Literal["step", "capture"],
        basis: str,
        evidence: Sequence[str],
        place: JumpTarget,
        subject: Subject = NOTHING,
    ) -> Finding:
        """A finding of which nobody knows what it costs, its evidence without empty sentences."""
        words = tuple(filter(None, evidence))
        return Finding(self.name, title, None, per, None, None, False, basis, words, self.advice, place, (), subject)
