"""Which blocks of an array the steps of a grid see, and so how much of it is copied."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.mosaic.follow import OpBudget, State, TooLong, Walk
from tpuprof.parsers.formats.mosaic.kernel import Kernel, Window
from tpuprof.parsers.formats.mosaic.scalars import Number


@dataclass(frozen=True, slots=True)
class Visits:
    """How the steps of a grid go over the blocks of an array.

    Attributes:
        is_constant: whether each step sees the same block; None where it is not known.
        fetches: how often a step sees another block than the step before, the first one counted; None where unknown.
        copied: elements of these blocks, what reaches over the array's end left out; None where unknown.
    """

    is_constant: bool | None = None
    fetches: int | None = None
    copied: int | None = None


class VisitsOf:
    """The visits of the windows of one kernel; windows with the same function ask it once."""

    def __init__(self, kernel: Kernel, budget: OpBudget) -> None:
        self._kernel, self._budget = kernel, budget
        self._blocks: dict[str, list[Number] | None] = {}
        self._walk: Walk | None = None

    def of(self, window: Window, array: Sequence[int] | None) -> Visits:
        """How a window goes over its array, whose dimensions are None where they are not known."""
        name, bounds = window.index_map, window.bounds
        if name is None or bounds is None:
            return Visits()
        if name not in self._blocks:
            self._blocks[name] = self._block_of_step(name)
        block = self._blocks[name]
        if block is None or len(block) != len(bounds):
            return Visits()
        if self._walk is not None and self._walk.steps == 0:
            return Visits(True, 0, 0)
        fixed, walk = self._is_constant(block), self._walk
        known = [each for each in block if each is not None]
        steps = 1 if fixed else None if walk is None else walk.steps
        if len(known) < len(block) or steps is None:
            return Visits(fixed)
        try:
            if not fixed:
                self._budget.spend(len(block) * steps)
        except TooLong:
            return Visits(False)
        of_step = [np.broadcast_to(np.ravel(each)[:steps], steps) for each in known]
        return Visits(fixed, *_fetched(np.array(of_step, np.int64).reshape(-1, steps), bounds, array))

    def _is_constant(self, block: list[Number]) -> bool | None:
        if any(isinstance(each, np.ndarray) and len(each) and np.any(each != each[0]) for each in block):
            return False
        return None if any(each is None for each in block) else True

    def _block_of_step(self, name: str) -> list[Number] | None:
        """The block of each step of the grid; None where the function is not there, or takes too long to follow."""
        body = self._kernel.functions.get(name)
        if body is None:
            return None
        try:
            self._walk = self._walk or Walk(self._kernel.entries, self._kernel.grid, self._budget)
            return self._walk.run(body, self._walk.indices, State(None, self._walk.steps))
        except TooLong:
            return None


def _fetched(block: Int64s, bounds: Sequence[int], array: Sequence[int] | None) -> tuple[int, int | None]:
    """Fetches and copied elements, see `Visits`, of the block of each step: an array of dimensions times steps."""
    changed = np.any(np.diff(block, axis=1) != 0, axis=0)
    fetched = np.flatnonzero(np.concatenate([[True], changed]))
    elements = _elements(block, bounds, array)
    return len(fetched), None if elements is None else int(elements[fetched].sum())


def _elements(block: Int64s, bounds: Sequence[int], array: Sequence[int] | None) -> Int64s | None:
    """Elements of blocks that lie in the array."""
    if array is None or len(array) != len(bounds) or prod(array) >= 1 << 62:
        return None
    size = np.array(bounds, np.int64)[:, None]
    inside = np.clip(np.array(array, np.int64)[:, None] - block * size, 0, size)
    elements: Int64s = np.prod(inside, axis=0, dtype=np.int64)
    return elements
