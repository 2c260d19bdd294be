"""A comparison of two runs as plain values.

Run A is before, run B after. Times are picoseconds per step and core (see `Basis`) until they are drawn. A figure that
one of the profiles does not provide is `None`, and `Diff.unknown` says why under its dotted JSON key.

Accounting, exact but for rounding:

- mean step time = typical step + odd steps (`StepTimeChanges.odd`)
- mean step = its owners' times (`OwnerChange.mean`); typical step = theirs in typical steps (`OwnerChange.typical`)
- typical step = the sum over the ops + that of the owners of moments without an op
- without steps, all time = the classes' times, idle among them; that of another class = the sum over its ops, as that
  of a category is
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.session.diff.noise import MeanEstimate, estimate, noise_floor
from tpuprof.parsers.steps.accounts.owners import Owner
from tpuprof.parsers.steps.model import StepTime

Basis = Literal["step", "module run", "capture"]
"""What times are divided by, besides the number of cores: steps (marked or inferred), runs of the module with the most
time, or nothing. Always the same for both runs."""

Mark = Literal["same", "more", "less", "new", "gone", "other", "unknown"]
"""What a change is: within the noise, beyond it, on one side alone, another text, or unknown."""

MatchedBy = Literal["name", "text", "origin", "none"]
"""How an op of A was found in B: by its program and name; by its HLO text although it has another name; by category,
shape and framework op; or not at all."""


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of both runs.

    Attributes:
        before, after: the figures of A and B; None where unknown, or where a run does not have the op.
        noise: half-width of the interval that the difference of two equal runs stays in; None where unknown.
        mark: what the change is.
    """

    before: float | None
    after: float | None
    noise: float | None
    mark: Mark

    @property
    def delta(self) -> float | None:
        """After minus before, where a run without the op counts as 0. None where a figure is unknown."""
        if self.mark == "unknown" and (self.before is None or self.after is None):
            return None
        return (self.after or 0.0) - (self.before or 0.0)

    @property
    def relative(self) -> float | None:
        """The change as a fraction of the figure before; None where that is 0 or unknown."""
        return self.delta / self.before if self.delta is not None and self.before else None

    @property
    def is_beyond_noise(self) -> bool:
        return self.mark not in ("same", "unknown")


UNKNOWN_CHANGE = Change(None, None, None, "unknown")


def change(before: float | None, after: float | None, noise: float | None = None) -> Change:
    """The change of a figure; where its noise is unknown, a difference means nothing."""
    if before is None or after is None:
        return Change(before, after, None, "unknown")
    delta = after - before
    if not delta:
        mark: Mark = "same"
    elif noise is None:
        mark = "unknown"
    else:
        mark = "same" if abs(delta) <= noise else "more" if delta > 0 else "less"
    return Change(before, after, noise, mark)


def change_of(before: MeanEstimate, after: MeanEstimate, comparisons: int = 1) -> Change:
    """The change of a time that both runs have."""
    return change(before.mean, after.mean, noise_floor(before, after, comparisons))


def change_of_launches(
    sides: Sequence[Sequence[Floats]], of: Callable[[Floats], float] = np.mean, comparisons: int = 1
) -> Change:
    """The change of what `of` makes of the steps of a launch, float64[steps]; of each side its mean over launches."""
    values = (np.array([of(steps) for steps in side]) for side in sides)
    before, after = (estimate(each, np.ones(len(each)), True) for each in values)
    return change_of(before, after, comparisons)


def change_of_either(before: MeanEstimate | None, after: MeanEstimate | None, comparisons: int = 1) -> Change:
    """The change of a time that may be in one run only; it is no change where there is no time in typical steps."""
    if before is not None and after is not None:
        return change_of(before, after, comparisons)
    there = before or after
    if there is None:
        return UNKNOWN_CHANGE
    nothing = MeanEstimate(0.0, None if there.error is None else 0.0, max(1, there.freedom))
    mark: Mark = "same" if not there.mean else "gone" if after is None else "new"
    means = (there.mean, None) if after is None else (None, there.mean)
    return Change(means[0], means[1], noise_floor(there, nothing, comparisons), mark)


def less(whole: Change, part: Change) -> Change:
    """A time without one of its parts, with the noise of the whole."""
    if whole.before is None or whole.after is None or part.before is None or part.after is None:
        return UNKNOWN_CHANGE
    return change(whole.before - part.before, whole.after - part.after, whole.noise)


def plain_change(before: float | None, after: float | None) -> Change:
    """The change of a figure without a spread, such as bytes: any difference is one."""
    return change(before, after, 0.0)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs.

    Attributes:
        name, path: the run's name and path.
        hosts: the hosts that the figures cover.
        device_type, core_count: None and 0 without a device.
        units: how many steps, or module runs, times are divided by; 1 for a whole capture.
        unit_name: what a unit is: ``step``, ``period of jit_step``.
        step_ps: the steps' times in order, each on its slowest core; empty without steps.
        typical: whether each step is typical.
        step_time: the overview's summary of the steps.
        why_no_steps: why there are no steps; empty where there are some.
        table: the ops that rows refer to, with their texts.
        programs: the program of each row of the table, ``jit_step(7)``.
        warnings: sentences on the profile itself.
        simulated: whether the profile says that its times are not measured.
    """

    name: str
    path: str
    hosts: tuple[str, ...]
    device_type: str | None
    core_count: int
    units: int
    unit_name: str
    step_ps: tuple[int, ...]
    typical: tuple[bool, ...]
    step_time: StepTime | None
    why_no_steps: str
    table: OpTable
    programs: tuple[str, ...]
    warnings: tuple[str, ...]
    simulated: bool

    @property
    def odd_count(self) -> int:
        """Steps that are not typical."""
        return len(self.typical) - sum(self.typical)


@dataclass(frozen=True, slots=True)
class StepTimeChanges:
    """Step times of both, on each step's slowest core.

    Attributes:
        typical: mean over the typical steps: what the verdict is about.
        mean, median: over all steps.
        minimum, maximum: without a noise.
        odd: what the odd steps add to the mean.
    """

    typical: Change
    mean: Change
    median: Change
    minimum: Change
    maximum: Change
    odd: Change


@dataclass(frozen=True, slots=True)
class OpChange:
    """An op of both runs, or of one.

    Attributes:
        name: the op's name in B, or in A where B does not have it.
        old_name: its name in A where that is another one.
        program: the program's name, without its id.
        category, op_class, framework_op: those of the run that `name` is from.
        time: change of the self time.
        count: change of the occurrences.
        matched_by: how the two ops were matched.
        text_changed: whether the HLO texts differ by more than numbers in names.
        rows: row in each side's table with the most time of this op, None where it does not have it.
    """

    name: str
    old_name: str | None
    program: str
    category: str | None
    op_class: OpClass
    framework_op: str
    time: Change
    count: Change
    matched_by: MatchedBy
    text_changed: bool
    rows: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class OpGroupChange:
    """An op with its clones: copies of it, and the same op of other layers (`parsers.ops.table.clone_keys`).

    Attributes:
        change: their times and occurrences added up; the rest is that of the op with the most time, whose name it has
            with the number of ops.
        members: numbers of the ops in `Diff.ops`, the one with the largest change first.
    """

    change: OpChange
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """An owner's time in the account of a step (`parsers.steps.step_account`), the mean over cores.

    Attributes:
        mean: over all steps, as on the page of the account; over all owners it adds up to the mean step.
        typical: over the typical steps; over all owners it adds up to the typical step.
        has_ops: whether ops take a part of its time, so that the changes of ops show it too.
    """

    owner: Owner
    mean: Change
    typical: Change
    has_ops: bool


@dataclass(frozen=True, slots=True)
class NamedChange:
    """The time of a class of ops, or of an HLO category (``unknown`` for those without one); with its class.

    Attributes:
        count: how often its ops run, a step or whatever the comparison is of; unknown of idle time.
    """

    name: str
    op_class: OpClass
    time: Change
    count: Change


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A version, flag or option of both runs, as texts; None on a side that does not record it.

    Attributes:
        kind: ``version``, ``flag``, ``program``, ``profiler`` or ``other``.
        mark: same, other, new or gone.
    """

    kind: str
    name: str
    before: str | None
    after: str | None
    mark: Mark


@dataclass(frozen=True, slots=True)
class Phase:
    """A program of the runs by itself, such as prefill beside decode: its runs against those of its counterpart.

    Attributes:
        name: of the module in B, without its id; in A where B does not run it. Programs of one name are one phase.
        old_name: its name in A where that is another one.
        time: a typical run on its slowest core; its noise is that of the runs of both.
        runs: how many there are.
        share: of the time of all ops, in percent.
        in_steps: whether the ops are those within steps; else those of the whole capture, without a noise.
        ops: its ops, groups, categories and classes, all a run of the module on the mean core. Idle time is the rest
            of the run, which the slowest core may have waited for.
    """

    name: str
    old_name: str | None
    time: Change
    runs: Change
    share: Change
    in_steps: bool
    ops: Diff


@dataclass(frozen=True, slots=True)
class KeyMetric:
    """A figure of the overview, in percent; its noise is not known."""

    key: str
    label: str
    change: Change


@dataclass(frozen=True, slots=True)
class ModuleMemory:
    """HBM of a compiled module, in bytes.

    Attributes:
        name: of the module, without its id.
        peak, arguments, temporaries: None on a side that does not have it.
        problem: why there are no figures; empty where there are.
    """

    name: str
    peak: Change
    arguments: Change
    temporaries: Change
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """One of several runs of a side.

    Attributes:
        name, path: of the run.
        captured: when, in seconds since 1970.
        step_count: how many steps it has.
        time_ps: of its typical step; without steps of a module run, or of the whole capture.
        error_ps: its standard error, by the launch's own steps; None where unknown.
    """

    name: str
    path: str
    captured: float
    step_count: int
    time_ps: float
    error_ps: float | None


@dataclass(frozen=True, slots=True)
class Launches:
    """The launches of both sides, where either has several: then all noise is that between launches.

    Attributes:
        before, after: of each side, at least one.
        spreads: standard deviation from launch to launch on each side, None of a single one; inside: of the mean of a
            launch, by its steps, the median of all; None where unknown.
        detect: the size of a change that is to be found, as a fraction of the time before.
        needed: how many more launches of each side find such a change; 0 for none, None where unknown
            (`noise.launches_needed`).
        order: why a drift of the machine may look like the change; empty where it does not.
    """

    before: tuple[Launch, ...]
    after: tuple[Launch, ...]
    spreads: tuple[float | None, float | None]
    inside: float | None
    detect: float
    needed: int | None
    order: str


@dataclass(frozen=True, slots=True)
class Diff:
    """The whole comparison.

    Attributes:
        before, after: the runs, A and B.
        basis: what times are divided by besides cores.
        steps: None without steps in both.
        owners: those with time in steps of either run, in the order of `OWNERS`; none without steps in both.
        ops: largest change of self time first.
        groups: each op with its clones, largest change first.
        categories: HLO categories, largest change first; classes: in the order of `OP_CLASSES`, idle last;
            none where there are owners.
        total: all owners of a typical step together; without steps all classes, idle too, on the mean core.
        phases: the main programs, the one with the most time first; none where no run of a module is recorded.
        settings: the versions and flags that the profiles record, by kind and name.
        figures: of the overview.
        traffic: bytes that ops move to and from HBM in a step, or another unit of `basis`, on the mean core.
        work: FLOPs of ops, the same way.
        modules: those that took the most time.
        unknown: dotted JSON key to the reason why something is `None`.
        warnings: what makes the runs hard to compare; what is wrong with a profile is with its side.
        different: why these are different programs, so that their step times cannot be compared; empty where they may
            be the same (see `cautions.different_programs`).
        launches: of both sides; None where each is one run.
    """

    before: Side
    after: Side
    basis: Basis
    steps: StepTimeChanges | None
    owners: tuple[OwnerChange, ...]
    ops: tuple[OpChange, ...]
    groups: tuple[OpGroupChange, ...]
    categories: tuple[NamedChange, ...]
    classes: tuple[NamedChange, ...]
    total: Change
    phases: tuple[Phase, ...]
    settings: tuple[SettingChange, ...]
    figures: tuple[KeyMetric, ...]
    traffic: Change
    work: Change
    modules: tuple[ModuleMemory, ...]
    unknown: Mapping[str, str]
    warnings: tuple[str, ...]
    different: str
    launches: Launches | None = None
