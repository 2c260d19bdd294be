"""The input pipeline page as plain values; times are picoseconds until they are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.ops.host_events.input_events import InputCategory, XprofCategory
from tpuprof.parsers.pages.overview.model import Bottleneck
from tpuprof.parsers.steps.model import StepTime

if TYPE_CHECKING:
    from tpuprof.parsers.steps.aligned import InputSource


NO_CORE_WAITS = "no core waited for input in these steps"

Category = XprofCategory | InputCategory

FROM_SOURCE = "Read from source"
"""What Grain's sources do: a profile does not say whether they read files."""
_GRAIN_SOURCE = pattern(r"\w*Source\w*(?:Map|Iter)?Dataset\w*\.")

InputOpGroup = Literal["input_op", "device_feed"]
"""input_op: an op as XProf lists them. device_feed: an event that hands input to the device, known by its name."""


@dataclass(frozen=True, slots=True)
class InfeedPercent:
    """Share of step time spent waiting for input over the steps, each with the core that waits most; 0-100.

    The standard deviation is of the sample (n - 1), 0 for one step.
    """

    average: float
    standard_deviation: float
    median: float
    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class StepWait:
    """How one step waits for input; all but name and duration are `None` where it is unknown.

    Attributes:
        name: the step's name.
        duration_ps: duration on its slowest core.
        wait_ps: waiting on the core that waits most.
        percent_average, percent_minimum, percent_maximum: share of the step's duration, over cores; 0-100.
        core: the core that waits most as ``host:ordinal``; `None` too where no core waits.
    """

    name: str
    duration_ps: int
    wait_ps: int | None = None
    percent_average: float | None = None
    percent_minimum: float | None = None
    percent_maximum: float | None = None
    core: str | None = None


@dataclass(frozen=True, slots=True)
class InputOp:
    """One row of the op table.

    Attributes:
        name, category: the op's name and category.
        group: whether XProf lists it.
        stage_id: number of a pipeline stage, else 0.
        occurrences: how often it ran.
        total_ps, self_ps: time over all threads and hosts; total includes the ops inside.
        total_percent, self_percent: share of the self time of its group's rows; above 100 where ops nest.
    """

    name: str
    category: Category
    group: InputOpGroup
    stage_id: int
    occurrences: int
    total_ps: int
    self_ps: int
    total_percent: float
    self_percent: float

    @property
    def kind(self) -> str:
        """The category; of Grain's sources, which XProf takes for files whatever they read from, without the file."""
        return (
            FROM_SOURCE if self.category == "Demanded file read" and _GRAIN_SOURCE.match(self.name) else self.category
        )


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """A row of the op table in its place in the pipeline.

    Attributes:
        op: index of the row.
        label: the op's name without that of the stage around it.
        depth: how many stages of the table are around it.
        parent: index in `stages` of the innermost stage around it, -1 for none.
    """

    op: int
    label: str
    depth: int
    parent: int


@dataclass(frozen=True, slots=True)
class InputBreakdown:
    """Where the host's input time goes, in picoseconds.

    Enqueue is its self time. The others are self time scaled so that enqueue keeps the share of time that infeed
    enqueues take; without infeed they are plain self time.
    """

    enqueue_ps: float
    demanded_file_read_ps: float
    advanced_file_read_ps: float
    preprocessing_ps: float
    unclassified_ps: float


@dataclass(frozen=True, slots=True)
class InputPipelinePage:
    """The whole page.

    Attributes:
        hosts: names of the hosts that the figures cover.
        step_time: as on the overview; `None` where there are no steps.
        source: what the time that steps wait for input is measured by.
        infeed_percent: summary of the waiting; `None` where it is unknown.
        steps: the steps in order of time.
        breakdown: `None` where the host ran no input op.
        ops: XProf's input ops, then the others; each by self time, then name.
        stages: the same rows as a forest (`stages_of`).
        bottleneck: as on the overview.
        next_steps: what to do about the input, most useful first.
        unknown: dotted JSON key to the reason why the figure is `None`.
        warnings: plain sentences about the profile itself.
    """

    hosts: tuple[str, ...]
    step_time: StepTime | None
    source: InputSource | None
    infeed_percent: InfeedPercent | None
    steps: tuple[StepWait, ...]
    breakdown: InputBreakdown | None
    ops: tuple[InputOp, ...]
    stages: tuple[PipelineStage, ...]
    bottleneck: Bottleneck
    next_steps: tuple[str, ...]
    unknown: Mapping[str, str]
    warnings: tuple[str, ...]

    @property
    def has_input_events(self) -> bool:
        """Whether anything in the profile is about input: infeed on the device, or an event of the host."""
        return bool(self.ops) or self.source is not None

    @property
    def worst_step(self) -> int | None:
        """The step with the largest share of waiting; `None` where none waits."""
        shares = [step.percent_maximum or 0.0 for step in self.steps]
        return shares.index(max(shares)) if any(shares) else None

    def totals(self) -> Mapping[Category, int]:
        """Self time of the ops of each category."""
        sums: Counter[Category] = Counter()
        for op in self.ops:
            sums[op.category] += op.self_ps
        return sums
