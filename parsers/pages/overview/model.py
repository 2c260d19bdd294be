"""The overview page as plain values.

Times are picoseconds and sizes bytes until they are drawn. A figure that the profile does not provide is `None`, and
`Overview.unknown` says why under the figure's dotted JSON key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from tpuprof.parsers.base.errors import Damage
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.pages.shared.key import Later, PageKey

if TYPE_CHECKING:  # for types only: an overview starts sooner without them
    from tpuprof.parsers.pages.findings.finding import Finding
    from tpuprof.parsers.pages.overview.accounts_of_ops import OpAccounts
    from tpuprof.parsers.pages.overview.ledger import MeanStep
    from tpuprof.parsers.pages.shared.groups import CoreGroup
    from tpuprof.parsers.pages.shared.latencies import InferencePage
    from tpuprof.parsers.steps.model import GenericBreakdown, SparseCoreTime, StepTime
    from tpuprof.parsers.steps.step_account import Account
    from tpuprof.parsers.steps.xprof_view import XprofBreakdown


HIGHLY_INPUT_BOUND = 20.0
MODERATELY_INPUT_BOUND = 5.0
"""Percent of the steps' time spent waiting for input, from which on XProf calls a program so."""

Classification = Literal["host", "device", "both", "unknown"]
"""What the steps wait for."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where and how the program ran.

    Attributes:
        host_count: profile files with at least one readable plane.
        task_count: hosts with a device plane, at least 1.
        device_type: as the profile names it, such as ``TPU v6 Lite``; `None` for a profile without a device.
        device_core_count: TensorCore (or GPU) planes over all hosts.
        is_training: whether an op's framework name comes from a gradient; `None` where no op has a framework name.
        profile_duration_ps: how long was profiled: the longest of all hosts.
        simulated: the profile says of itself that its times were composed, not measured.
        profile_start_ns: when the first host's profiler began, in nanoseconds since 1970; `None` where none says so.
        first_op_ps, last_op_ps: when the first op of all cores or GPUs starts and the last one ends, counted from where
            the capture of their host began; `None` where none ran.
        silence_ps, busy_between_percent: see `parsers.steps.boundaries.observed.WhenRan`.
        damage: what is wrong with the file of each host of which a part could not be read.
    """

    host_count: int
    task_count: int
    device_type: str | None
    device_core_count: int
    is_training: bool | None
    profile_duration_ps: int | None
    simulated: bool
    profile_start_ns: int | None = None
    first_op_ps: int | None = None
    last_op_ps: int | None = None
    silence_ps: int | None = None
    busy_between_percent: float | None = None
    damage: tuple[Damage, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its marker's name, its number in the window, its start and its slowest core's duration.

    `sparse_core` is `None` without SparseCores; their time runs beside that of the TensorCores.
    """

    name: str
    group_id: int
    start_ps: int
    duration_ps: int
    breakdown: XprofBreakdown | GenericBreakdown | None
    sparse_core: SparseCoreTime | None = None


def percent_of_steps(steps: Sequence[Step], *fields: str) -> float:
    """What some parts of the steps' breakdowns take of the time of all steps, in percent; 0 where that has no time.

    Args:
        fields: of the breakdown, such as ``input_ps``; all steps that have one have one of the same kind.
    """
    total = math.fsum(step.duration_ps for step in steps)
    parts = [step.breakdown for step in steps if step.breakdown is not None]
    return 100.0 * math.fsum(getattr(part, field) for part in parts for field in fields) / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Share:
    """Self time of one class of ops (or idle), summed over cores, and its fraction (0-1) of the cores' whole time."""

    op_class: OpClass
    time_ps: int
    fraction: float


@dataclass(frozen=True, slots=True)
class TopOp:
    """One row of the top ten: ops of one framework name together, or one HLO op where it has none.

    Attributes:
        name: framework op (``jit(step)/dot_general``), else the HLO op's name.
        category: framework op type, ``Unknown`` where the op has no framework name (as XProf shows it).
        op_class: class of the HLO category that most of the row's time belongs to.
        hlo_category: that HLO category, or `None`.
        self_time_percent, cumulative_percent: of the self time of all ops, idle left out.
        self_time_ps: summed over cores.
        occurrences: summed over cores.
        gflops_per_second: FLOPs over total time; `None` where the profile has no flops for it.
        clones: how many of these ops the row adds up, which differ only by numbers; names and category are then those
            of the longest, class and HLO category those of its longest HLO op.
    """

    name: str
    category: str
    op_class: OpClass
    hlo_category: str | None
    self_time_percent: float
    cumulative_percent: float
    self_time_ps: int
    occurrences: int
    gflops_per_second: float | None
    clones: int = 1


@dataclass(frozen=True, slots=True)
class StepPart:
    """A part of the steps' breakdown over the steps.

    Attributes:
        name: that of the breakdown's attribute without ``_ps``: ``infeed``.
        average_ps, standard_deviation_ps: mean, and deviation of the sample (0 for one step).
        fraction: the mean as part of the mean step, 0-1; parts may overlap, see `XprofBreakdown`.
    """

    name: str
    average_ps: float
    standard_deviation_ps: float
    fraction: float


@dataclass(frozen=True, slots=True)
class Performance:
    """Headline figures; percentages are 0-100, `None` where the profile does not provide them (see
    `Overview.unknown`).
    """

    step_time: StepTime | None
    device_duty_cycle_percent: float | None
    device_idle_percent: float | None
    xprof_duty_cycle_percent: float | None
    xprof_idle_percent: float | None
    host_idle_percent: float | None
    mxu_utilization_percent: float | None
    hbm_utilization_percent: float | None
    flops_utilization_percent: float | None
    roofline_efficiency_percent: float | None
    memory_bandwidth_utilization_percent: float | None
    host_op_percent: float | None
    device_op_percent: float | None
    eager_host_percent: float | None
    eager_device_percent: float | None
    bits16_percent: float | None
    bits32_percent: float | None


PERFORMANCE_KEYS = {
    "step_time": "step_time_ms",
    "host_op_percent": "op_placement.host_percent",
    "device_op_percent": "op_placement.device_percent",
    "eager_host_percent": "eager_percent.host",
    "eager_device_percent": "eager_percent.device",
    "bits16_percent": "compute_precision.bits16_percent",
    "bits32_percent": "compute_precision.bits32_percent",
}
"""The key in JSON of each figure that has another one than its name."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What limits the program.

    Attributes:
        classification: `host` where the steps wait for input or for the host for 20 % of their time or more, `both`
            where they do for 5 %, else `device`; `unknown` where much of their time is not traced.
        input_percent, output_percent, idle_percent: shares of the steps' time, or of the time from a step to the next
            where `steps_lie_apart`; `None` where unknown. Input has what other cores wait for those that wait for it.
        statement: the verdict in one or two sentences.
        next_steps: what to do, most useful first.
    """

    classification: Classification
    input_percent: float | None
    output_percent: float | None
    idle_percent: float | None
    statement: str
    next_steps: tuple[str, ...]
    steps_lie_apart: bool = False

    @property
    def is_input_bound(self) -> bool | None:
        """Whether the steps wait for input for 5 % of their time or more; None where nothing shows it."""
        if self.input_percent is not None:
            return self.input_percent >= MODERATELY_INPUT_BOUND
        is_busy = self.idle_percent is not None and self.idle_percent < MODERATELY_INPUT_BOUND
        return False if is_busy else None  # it waits for at most the time in which it is idle


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole page.

    Attributes:
        hosts: names of the hosts that the figures cover.
        shares: one per class with time, in `OP_CLASSES` order, adding up to 1; empty without device ops.
        steps: in order of time.
        findings: why it is slow: what to know first, then what is worth most; the overview itself shows the first.
        undetectable: kinds of findings that cannot be detected in this profile, and why.
        top_ops: at most ten, most self time first.
        inference: latencies of requests or runs of modules; `None` without any.
        op_count: distinct HLO ops seen; op_event_count: events they come from.
        unknown: dotted JSON key to the reason why the figure is `None`.
        warnings: plain sentences about the profile itself (salvaged file, dropped steps, simulated times).
        step_parts: where the time of the mean step goes; empty where steps are not broken down.
        account: where the mean step goes, by owner, and the verdict; `None` without steps.
        groups: the groups of cores that depend on each other, where there are several; the steps, the account and the
            findings are those of one, which a warning names; group: the number of that one, None where there is one.
        infers: whether latencies matter: the program does not train, or serves requests; where it is unknown whether it
            trains, the names of its modules do.
    """

    hosts: tuple[str, ...]
    environment: Environment
    performance: Performance
    shares: tuple[Share, ...]
    steps: tuple[Step, ...]
    findings: tuple[Finding, ...]
    top_ops: tuple[TopOp, ...]
    bottleneck: Bottleneck
    inference: InferencePage | None
    op_count: int
    op_event_count: int
    unknown: Mapping[str, str]
    warnings: tuple[str, ...]
    undetectable: Mapping[str, str] = field(default_factory=dict)
    step_parts: tuple[StepPart, ...] = ()
    infers: bool = True
    account: MeanStep | None = None
    groups: tuple[CoreGroup, ...] = ()
    group: int | None = None

    @property
    def serves(self) -> bool:
        """Whether latencies say more of the program than steps: requests were seen, or it has no steps."""
        time = self.performance.step_time
        has_steps = time is not None and time.source != "modules"
        source = self.inference.source if self.inference is not None else None
        return self.infers and source is not None and (source == "requests" or not has_steps)


_MAKERS = "tpuprof.parsers.pages.overview.overview:"
OVERVIEW: PageKey[Overview] = PageKey(
    Later(f"{_MAKERS}overview_of_run"), Later(f"{_MAKERS}overview_as_read"), is_held=True, cached_as="overview"
)
LEDGER: PageKey[Account | None] = PageKey(Later(f"{_MAKERS}ledger_of_run"))
OP_ACCOUNTS: PageKey[OpAccounts | None] = PageKey(Later(f"{_MAKERS}op_accounts_of_run"))
