"""The time that findings divide among themselves: that of a mean step, or of the whole capture without steps.

Step times are means over cores. So the classes of a step add up, and no finding counts a wait twice: the time that one
core waits for another is in the other's time as well. Time by op is known only for the capture; it is scaled to steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s
from tpuprof.parsers.base.op_class import OP_CLASSES, OpClass
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.finding import Evidence, Finding, Kind, Place
from tpuprof.parsers.pages.words import sentence_name, share, tail, time
from tpuprof.parsers.steps.grid import StepGrid
from tpuprof.parsers.steps.times import HOST_TRANSFER, INFEED

Rows = NDArray[np.intp]

IDLE = OP_CLASSES.index("idle")


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Times of the complete steps; damaged figures are cut to what a step can hold.

    Attributes:
        names: name of each step.
        longest_ps: float64[steps], duration on the slowest core.
        class_ps: float64[cores, steps, len(OP_CLASSES)], time by class. Idle time is below 0 where an op reaches into
            the next step, whose idle time is larger by as much.
        input_ps: float64[cores, steps], waiting for input; it is part of class host (infeed ops) or of idle.
        host_transfer_ps: float64[cores, steps], time in ops that send to the host or receive from it.
        grid: the steps that the times are of.
    """

    names: tuple[str, ...]
    longest_ps: Floats
    class_ps: Floats
    input_ps: Floats
    host_transfer_ps: Floats
    grid: StepGrid

    def by_step(self, op_class: OpClass) -> Floats:
        """float64[steps]: mean time of a class over cores."""
        means: Floats = self.class_ps[:, :, OP_CLASSES.index(op_class)].mean(axis=0)
        return means

    @property
    def input_by_step(self) -> Floats:
        """float64[steps]: mean time of waiting for input over cores."""
        means: Floats = self.input_ps.mean(axis=0)
        return means

    @property
    def gaps(self) -> Floats:
        """float64[cores, steps]: idle time that is not waiting for input; below 0 as in `class_ps`."""
        idle: Floats = self.class_ps[:, :, IDLE]
        if self.grid.input_source != "host":
            return idle
        other: Floats = idle - self.input_ps
        return other

    @property
    def core_gaps(self) -> Floats:
        """float64[cores]: the same summed over all steps, at least 0."""
        together: Floats = np.maximum(self.gaps.sum(axis=1), 0.0)
        return together

    def core(self, index: int) -> str:
        """Name of a core."""
        return self.grid.core_names[index] if index < len(self.grid.core_names) else str(index)


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding about some cores, and the time that it costs the others; no other finding counts that time.

    Attributes:
        finding: the finding; None where there is none.
        collective_ps, idle_ps: the others' time by class, as means over all cores.
    """

    finding: Finding | None = None
    collective_ps: float = 0.0
    idle_ps: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """The time that findings divide.

    Attributes:
        whole_ps: mean step time (slowest core of each step), or a core's mean time in the capture. Above 0.
        per: whether the time is of a step or of the capture.
        class_ps: mean time by class, over cores and steps.
        steps: the single steps; None where the time is of the capture.
        rows: rows of the op table by class, most self time first; with steps only ops that ran in most of them.
        scale: factor from self time in the table to time in the budget, by class.
    """

    whole_ps: float
    per: Literal["step", "capture"]
    class_ps: Mapping[OpClass, float]
    steps: StepTimes | None
    rows: Mapping[OpClass, Rows]
    scale: Mapping[OpClass, float]

    def op_ps(self, table: OpTable, rows: Rows, op_class: OpClass) -> Floats:
        """float64[rows]: time of some ops of a class in the budget."""
        return np.maximum(table.self_ps[rows].astype(np.float64), 0.0) * self.scale[op_class]

    @property
    def of(self) -> str:
        """Words for what fractions are of."""
        return "step time" if self.per == "step" else "the capture"

    def amount(self, ps: float) -> str:
        """A time with its share: ``3.10 ms a step (12.3%)``."""
        return f"{time(ps)}{' a step' if self.per == 'step' else ''} ({share(ps / self.whole_ps)})"

    def finding(
        self,
        kind: Kind,
        title: str,
        worth_ps: float,
        basis: str,
        evidence: Sequence[str],
        place: Place,
        is_estimate: bool = False,
    ) -> Finding | None:
        """A finding; None where it is worth nothing."""
        if not worth_ps > 0:
            return None
        worth = min(float(worth_ps), self.whole_ps)
        return Finding(
            kind,
            title,
            worth,
            self.per,
            worth / self.whole_ps,
            is_estimate,
            basis,
            tuple(filter(None, evidence)),
            place,
        )


def budget(evidence: Evidence) -> Budget | None:
    """Adds up the time to divide; None where there is none."""
    steps = None if evidence.grid is None else _step_times(evidence.grid)
    classes = np.array([OP_CLASSES.index(name) for name in evidence.table.classes()], np.int64)
    self_ps = np.maximum(evidence.table.self_ps.astype(np.float64), 0.0)
    if steps is not None:
        cores, count, _ = steps.class_ps.shape
        class_ps = np.maximum(steps.class_ps.mean(axis=1), 0.0).mean(axis=0)
        usual = evidence.table.occurrences >= count / 2  # what ran before the steps only is not part of them
        rows = _rows(classes, self_ps, usual)
        scale = {
            name: _scale(float(self_ps[rows[name]].sum()), float(class_ps[index]), cores * count)
            for index, name in enumerate(OP_CLASSES)
        }
        whole = float(steps.longest_ps.mean())
        return Budget(whole, "step", _by_class(class_ps), steps, rows, scale)
    if evidence.core_count <= 0 or evidence.total_ps <= 0:
        return None
    whole = float(evidence.total_ps) / evidence.core_count
    class_ps = np.bincount(classes, self_ps, minlength=len(OP_CLASSES)) / evidence.core_count
    class_ps[IDLE] = max(0.0, whole - float(class_ps.sum()))
    rows = _rows(classes, self_ps, np.ones(len(classes), np.bool_))
    return Budget(whole, "capture", _by_class(class_ps), None, rows, dict.fromkeys(OP_CLASSES, 1 / evidence.core_count))


def _by_class(class_ps: Floats) -> dict[OpClass, float]:
    return dict(zip(OP_CLASSES, class_ps.tolist(), strict=True))


def _rows(classes: Int64s, self_ps: Floats, usual: Bools) -> dict[OpClass, Rows]:
    order = np.argsort(-self_ps, kind="stable")
    order = order[usual[order] & (self_ps[order] > 0)]
    return {name: order[classes[order] == index] for index, name in enumerate(OP_CLASSES)}


def _scale(in_table: float, in_step: float, cells: int) -> float:
    """The factor from table to step. The capture is more than the steps, so ops get at most their class's time."""
    return min(1 / cells, in_step / in_table) if in_table > 0 else 0.0


def _step_times(grid: StepGrid) -> StepTimes | None:
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
    return StepTimes(grid.names, longest, class_ps, waits, parts[:, :, HOST_TRANSFER], grid)


def described(table: OpTable, row: int) -> str:
    """An op for a sentence: its name, and where it comes from as far as known (framework op, source line)."""
    source = table.texts("source", np.array([row]))[0]
    origin = [tail(part) for part in (table.framework_op[row].rstrip(":"), source) if part]
    return sentence_name(table.name[row]) + (f" ({', '.join(origin)})" if origin else "")
