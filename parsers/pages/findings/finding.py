"""Findings, and the evidence that they rest on: sums by step, by op and by name, never single events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.host.activity import Compilation, IdleTime
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
    """Where to look: a tab, and the HLO op or step to jump to there by name; None for the tab itself."""

    tab: Tab
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why the program is slow.

    Times are means over cores. No two findings count the same time, unless the `basis` says so.

    Attributes:
        kind: the kind of reason.
        title: a few words, without a full stop.
        worth_ps: time that it costs the program, as mean per complete step or, without steps, in the whole capture. The
            most that can be won. Above 0.
        per: whether `worth_ps` is of a step or of the capture.
        worth_fraction: the same as a fraction (0-1] of step time, or of the capture.
        is_estimate: whether a model or rule of thumb gives `worth_ps`; otherwise it is measured.
        basis: a sentence on how `worth_ps` was computed.
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
        compilations: what the host compiled during the capture.
        modules: compiled programs, for the shapes of matrix products; only those of large matrix ops are parsed.
    """

    grid: StepGrid | None
    table: OpTable
    rates: Rates
    peaks: Peaks
    device_type: str | None
    total_ps: int
    core_count: int
    gaps: IdleTime | None = None
    compilations: tuple[Compilation, ...] = ()
    modules: Sequence[HloModules] = ()
