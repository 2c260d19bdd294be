"""The time that findings divide among themselves: that of a mean step, or of the whole capture without steps.

Step times are means over cores. So the classes of a step add up, and no finding counts a wait twice: the time that one
core waits for another is in the other's time as well. Time by op is that in steps, where the profile has any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats, is_among
from tpuprof.parsers.base.op_class import OP_CLASSES, OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import sentence_name, share, tail, time
from tpuprof.parsers.pages.findings.finding import (
    ADVICE,
    NEVER_SEEN,
    UNSEEN,
    Evidence,
    Finding,
    FindingKind,
    JumpTarget,
)
from tpuprof.parsers.steps.accounts.owners import OpOwners, op_owners
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.ledger import Ledger
from tpuprof.parsers.steps.times import HOST_TRANSFER, INFEED

Rows = NDArray[np.intp]

IDLE = OP_CLASSES.index("idle")


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Times of the complete steps; damaged figures are cut to what a step can hold.

    Attributes:
        grid: the steps that the times are of.
        longest_ps: float64[steps], duration on the slowest core.
        class_ps: float64[cores, steps, len(OP_CLASSES)], time by class. Idle time is below 0 where an op reaches into
            the next step, whose idle time is larger by as much.
        input_ps: float64[cores, steps], waiting for input; it is part of class host (infeed ops) or of idle.
        host_transfer_ps: float64[cores, steps], time in ops that send to the host or receive from it.
    """

    grid: AlignedSteps
    longest_ps: Floats
    class_ps: Floats
    input_ps: Floats
    host_transfer_ps: Floats

    def __len__(self) -> int:
        return len(self.longest_ps)

    def of(self, *classes: OpClass) -> Floats:
        """float64[cores, steps]: time in some classes."""
        total: Floats = self.class_ps[:, :, [OP_CLASSES.index(name) for name in classes]].sum(axis=2)
        return total

    @property
    def gaps(self) -> Floats:
        """float64[cores, steps]: idle time that is not waiting for input; below 0 as in `class_ps`."""
        return self.of("idle") - self.input_ps if self.grid.input_source == "host" else self.of("idle")

    def core(self, index: int) -> str:
        """Name of a core."""
        return self.grid.core_names[index] if index < len(self.grid.core_names) else str(index)


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding about a cause, and the time that it costs elsewhere; no other finding counts that time.

    Attributes:
        finding: the finding; None where there is none.
        collective_ps, idle_ps: time that cores wait because of it, by class, as means over all cores.
    """

    finding: Finding | None = None
    collective_ps: float = 0.0
    idle_ps: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """The time that findings divide.

    Attributes:
        evidence: what is known of the program.
        whole_ps: mean step time (slowest core of each step) with the idle time up to the next one, or a core's mean
            time in the capture. Above 0.
        between_ps: the mean idle time between a step and the next; it is part of `whole_ps` and of class idle.
        class_ps: mean time by class, over cores and steps.
        steps: the single steps; None where the time is of the capture.
        op_time_ps: float64[ops], self time of the table's ops: in steps where there are any, else in the capture.
        rows: rows of the op table by class, most of that time first; with steps only ops that ran in them.
        scale: factor from that time to time in the budget, by class.
        owners: whose the time of each op is.
    """

    evidence: Evidence
    whole_ps: float
    class_ps: Mapping[OpClass, float]
    steps: StepTimes | None
    op_time_ps: Floats
    rows: Mapping[OpClass, Rows]
    scale: Mapping[OpClass, float]
    owners: OpOwners
    between_ps: float = 0.0

    @property
    def per(self) -> Literal["step", "capture"]:
        """What the time is of."""
        return "capture" if self.steps is None else "step"

    def op_ps(self, rows: Rows, op_class: OpClass) -> Floats:
        """float64[rows]: time of some ops of a class in the budget."""
        of_class: Floats = self.op_time_ps[rows] * self.scale[op_class]
        return of_class

    def ops(self, *classes: OpClass) -> tuple[Rows, Floats]:
        """The rows of some classes, one class behind the other, and float64[rows], their time in the budget."""
        parts = [(self.rows[name], self.op_ps(self.rows[name], name)) for name in classes]
        rows, times = (np.concatenate(column) for column in zip(*parts, strict=True))
        return rows, times

    def losing_ops(self) -> tuple[Rows, Floats]:
        """The same of computing ops whose work is counted: those that may take longer than at their roof."""
        rows, times = self.ops("compute", "vector")
        loses = self.owners.are("loss")[rows]
        return rows[loses], times[loses]

    def amount(self, ps: float) -> str:
        """A time with its share: ``3.10 ms a step (12.3%)``."""
        return f"{time(ps)}{' a step' if self.steps is not None else ''} ({share(ps / self.whole_ps)})"

    def described(self, row: int) -> str:
        """An op for a sentence: its name, and where it comes from as far as known (framework op, source line)."""
        table = self.evidence.table
        source = table.texts("source", np.array([row]))[0]
        origin = [tail(part) for part in (table.framework_op[row].rstrip(":"), source) if part]
        return sentence_name(table.name[row]) + (f" ({', '.join(origin)})" if origin else "")

    def largest(self, row: int, ps: float, which: str = "The largest") -> str:
        """A sentence on the op that a finding is about most."""
        return f"{which} is {self.described(row)}, {self.amount(ps)}."

    def finding(
        self,
        kind: FindingKind,
        title: str,
        worth_ps: float,
        basis: str,
        evidence: Sequence[str],
        place: JumpTarget,
        is_estimate: bool = False,
        advice: str = "",
    ) -> Finding | None:
        """A finding, its evidence without empty sentences; None where it is worth nothing."""
        if not worth_ps > 0:
            return None
        worth = min(float(worth_ps), self.whole_ps)
        return Finding(
            kind,
            title,
            worth,
            self.per,
            worth / self.whole_ps,
            self.whole_ps - worth,
            is_estimate,
            f"{basis} {NEVER_SEEN}" if kind in UNSEEN else basis,
            tuple(filter(None, evidence)),
            advice or ADVICE[kind],
            place,
        )

    def without(self, rows: Rows) -> Budget:
        """The same without some ops, because a finding counts their time."""
        return replace(self, rows={name: of[~is_among(of, rows)] for name, of in self.rows.items()})


def budget(evidence: Evidence, account: Ledger | None) -> Budget | None:
    """Adds up the time to divide; None where there is none.

    Args:
        account: of the evidence's steps; None without any.
    """
    table, steps = evidence.table, None if evidence.grid is None else _step_times(evidence.grid)
    classes = np.array([OP_CLASSES.index(name) for name in table.classes()], np.int64)
    self_ps = np.maximum(table.self_ps.astype(np.float64), 0.0)
    between = 0.0
    if steps is not None:
        parts = steps.class_ps.shape[0] * len(steps)
        whole = float(steps.longest_ps.mean())
        class_ps = np.maximum(steps.class_ps.mean(axis=1), 0.0).mean(axis=0)
        if account is not None:
            between = account.mean_whole_ps - account.mean_step_ps
            whole, class_ps[IDLE] = whole + between, class_ps[IDLE] + between
        in_steps = np.maximum(table.in_steps_ps.astype(np.float64), 0.0)
        ran = table.occurrences >= len(steps) / 2  # what ran before the steps only is not part of them
        self_ps = in_steps if in_steps.any() else np.where(ran, self_ps, 0.0)
        most = class_ps  # the capture is more than the steps, so ops get at most their class's time
    elif evidence.core_count > 0 and evidence.total_ps > 0:
        parts = evidence.core_count
        whole = float(evidence.total_ps) / parts
        class_ps = np.bincount(classes, self_ps, minlength=len(OP_CLASSES)) / parts
        class_ps[IDLE] = max(0.0, whole - float(class_ps.sum()))
        most = np.full(len(OP_CLASSES), np.inf)
    else:
        return None
    order = np.argsort(-self_ps, kind="stable")
    order = order[self_ps[order] > 0]
    rows = {name: order[classes[order] == index] for index, name in enumerate(OP_CLASSES)}
    scale = {
        name: min(1 / parts, float(limit) / float(self_ps[rows[name]].sum())) if len(rows[name]) else 0.0
        for name, limit in zip(OP_CLASSES, most, strict=True)
    }
    classes_ps = dict(zip(OP_CLASSES, class_ps.tolist(), strict=True))
    owners = op_owners(table, evidence.peaks, lambda: evidence.modules)
    return Budget(evidence, whole, classes_ps, steps, self_ps, rows, scale, owners, between)


def _step_times(grid: AlignedSteps) -> StepTimes | None:
    if not len(grid) or not len(grid.duration_ps):
        return None
    duration = np.maximum(grid.duration_ps.astype(np.float64), 0.0)
    longest = duration.max(axis=0)
    if not longest.sum() > 0:
        return None
    most = duration.sum(axis=1)[:, None, None]  # an op may be longer than the step in which it starts
    class_ps = np.clip(grid.class_ps.astype(np.float64), 0.0, most)
    class_ps[:, :, IDLE] = duration - np.delete(class_ps, IDLE, axis=2).sum(axis=2)
    parts = np.clip(grid.part_ps.astype(np.float64), 0.0, most)
    waits = parts[:, :, INFEED] if grid.input_source is not None else np.zeros_like(duration)
    return StepTimes(grid, longest, class_ps, waits, parts[:, :, HOST_TRANSFER])
