"""What a finding says, and what it is found from: sums by step, by op and by name, never single events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.host.activity import Activity, Compilation
from tpuprof.parsers.ops.roofline import Rates
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.steps.grid import StepGrid

Kind = Literal[
    "input",
    "collective",
    "idle",
    "compilation",
    "straggler",
    "slow-step",
    "host-offload",
    "copy",
    "padding",
    "memory-bound",
]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds; of findings that are worth the same the one whose kind comes first here comes first."""

Tab = Literal["overview", "input", "op-profile", "timeline", "memory"]

MOST_FINDINGS = 7


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look: a tab, and what to jump to there, the name of an HLO op or of a step; None for the tab itself."""

    tab: Tab
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why the program is slow.

    Times are means over cores. No two findings count the same time, but one that does says so in its `basis`.

    Attributes:
        kind: what it is about.
        title: a few words, without a full stop.
        worth_ps: time that the program takes for it, per complete step (mean) or, without steps, of the whole capture:
            at most this can be won. Above 0.
        per: which of the two.
        worth_fraction: the same as a fraction (0-1] of step time, or of the capture.
        is_estimate: `worth_ps` is computed from a model, or by rules of thumb; else it is measured time.
        basis: one sentence, how `worth_ps` was computed.
        evidence: sentences with figures.
        place: where to look.
    """

    kind: Kind
    title: str
    worth_ps: float
    per: Literal["step", "capture"]
    worth_fraction: float
    is_estimate: bool
    basis: str
    evidence: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class GapActivity:
    """What happened in the long gaps of the core that is idle most, those aside in which the host waited for input.

    Attributes:
        gap_ps: all of these gaps together, of which the other times are parts; 0 where that is not known.
        activities: what the host did, the most first.
        longest_ps: the longest gap, None where there is none.
        count: how many.
        async_op: the asynchronous op that was under way for most of it, None without any; async_ps: for how much.
    """

    activities: tuple[Activity, ...] = ()
    longest_ps: int | None = None
    count: int = 0
    async_op: str | None = None
    async_ps: int = 0
    gap_ps: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What findings are looked for in.

    Attributes:
        grid: the steps that all cores share; None without steps.
        table: time by op over all cores and the whole capture.
        rates: rates of its rows.
        peaks: what one core can do at most.
        device_type: such as ``TPU v5p``; None where unknown.
        total_ps: the cores' whole time, idle included, summed over cores.
        core_count: cores that `total_ps` and `table` cover.
        gaps: what happened in the cores' gaps; None where they were not looked at.
        compilations: what the host compiled inside the capture.
        modules: compiled programs, for the shapes of matrix products; only those of large matrix ops are parsed.
    """

    grid: StepGrid | None
    table: OpTable
    rates: Rates
    peaks: Peaks
    device_type: str | None
    total_ps: int
    core_count: int
    gaps: GapActivity | None = None
    compilations: tuple[Compilation, ...] = ()
    modules: Sequence[HloModules] = ()
