"""Follows a kernel through all steps of its grid, and counts what it computes and copies.

Only integers are followed (`scalars.py`), and vectors by their shapes: what is counted follows from shapes, the grid
and constants. What depends on numbers that the program gets when it runs is counted at most, and not as certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.mosaic.bytecode import Block, Op, Value
from tpuprof.parsers.formats.mosaic.entries import PREFIX, Entries
from tpuprof.parsers.formats.mosaic.scalars import SAME, Number, compared, folded, selected

_ELEMENTS_A_UNIT = 64
_MOST_STEPS = 1 << 16


class TooLong(Exception):
    """A kernel takes more steps than are followed."""


class OpBudget:
    """How much of a kernel may be followed, so that a hostile one ends."""

    def __init__(self, ops: int = 200_000) -> None:
        self.left = ops

    def spend(self, elements: int) -> None:
        """Counts one op on so many steps at a time."""
        self.left -= 1 + elements // _ELEMENTS_A_UNIT
        if self.left < 0:
            raise TooLong


@dataclass(slots=True, eq=False)
class State:
    """Where the walk is.

    Attributes:
        mask: in which steps of the grid; None in all.
        steps: how many these are; None where a bound of the grid is not known.
        is_certain: whether it is known that these ops run.
        is_bounded: whether it is known how often they run at most.
    """

    mask: Int64s | None
    steps: int | None
    is_certain: bool = True
    is_bounded: bool = True


class Walk:
    """Runs ops for all steps of a grid at a time; what is counted is added up by `seen`, which a subclass has.

    Attributes:
        entries: of the kernel's module.
        steps: of the grid; None where a bound of it is not known, and then one step stands for all.
        values: numbers that are known, by what makes them.
    """

    def __init__(self, entries: Entries, grid: Sequence[int | None], budget: OpBudget) -> None:
        self.entries, self.budget, self.grid = entries, budget, grid
        bounds = [bound for bound in grid if bound is not None]
        self.steps = prod(bounds) if len(bounds) == len(grid) else None
        is_short = self.steps is not None and self.steps <= _MOST_STEPS
        self.indices = _indices(bounds, prod(bounds)) if is_short else [None] * len(grid)
        self.values: dict[Value, Number] = {}

    def seen(self, name: str, op: Op, state: State) -> None:
        """Called for each op that is not about integers alone."""

    def run(self, block: Block, arguments: Sequence[Number], state: State) -> list[Number]:
        self.budget.spend(0)
        self.values.update(zip(block.arguments, arguments, strict=False))
        for op in block.ops:
            name = op.name.removeprefix(PREFIX)
            if name in ("scf.yield", "func.return", "tpu.yield"):
                return [self.number(value) for value in op.operands]
            self._op(name, op, state)
        return []

    def number(self, value: Value | None) -> Number:
        """A number that an op takes; None where it is not known."""
        return None if value is None else self.values.get(value)

    def _op(self, name: str, op: Op, state: State) -> None:
        operands = [self.number(value) for value in op.operands]
        self.budget.spend(sum(map(_length, operands)))
        dialect, _, own = name.partition(".")
        if dialect == "arith" and op.results:
            self.values[op.results[0]] = self._arithmetic(own, op, operands)
        elif name == "tpu.iteration_bound" and op.results:
            dimension = self.entries.integer(self.entries.dictionary(op.attributes).get("dim"))
            known = dimension is not None and 0 <= dimension < len(self.grid)
            self.values[op.results[0]] = self.grid[dimension] if known and dimension is not None else None
        elif name == "scf.if":
            self._if(op, operands, state)
        elif name == "scf.for":
            self._for(op, operands, state)
        elif op.regions:
            is_plain = name == "tpu.region" and all(len(region) == 1 for region in op.regions)
            self._regions(op, state if is_plain else State(state.mask, state.steps, False, False))
        self.seen(name, op, state)

    def _arithmetic(self, name: str, op: Op, operands: list[Number]) -> Number:
        if name == "constant":
            return self.entries.integer(self.entries.dictionary(op.attributes).get("value"))
        if name in SAME and len(operands) == 1:
            return operands[0]
        if name == "cmpi" and len(operands) == 2:
            predicate = self.entries.integer(self.entries.dictionary(op.attributes).get("predicate"))
            return compared(predicate, *operands)
        if name == "select" and len(operands) == 3:
            return selected(*operands)
        return folded(name, *operands) if len(operands) == 2 else None

    def _regions(self, op: Op, state: State) -> None:
        """Regions that run once or not at all, or that nothing is known of."""
        for region in op.regions:
            for block in region:
                unknown: list[Number] = [None] * len(block.arguments)
                yielded = self.run(block, unknown, state)
                self.values.update(zip(op.results, yielded if state.is_bounded else unknown, strict=False))

    def _if(self, op: Op, operands: list[Number], state: State) -> None:
        condition = operands[0] if operands else None
        blocks = [region[0] if region else None for region in op.regions[:2]]
        yielded: list[list[Number]] = []
        for is_else, block in enumerate(blocks):
            inside = self._under(state, condition, bool(is_else))
            yielded.append(self.run(block, [], inside) if block is not None and inside is not None else [])
        chosen = yielded + [[]] * (2 - len(yielded))
        for index, result in enumerate(op.results):
            a, b = (each[index] if index < len(each) else None for each in chosen)
            self.values[result] = selected(condition, a, b)

    def _for(self, op: Op, operands: list[Number], state: State) -> None:
        """A loop: each of its turns where its bounds are known; else its body once, and not as certain."""
        block = op.regions[0][0] if op.regions and op.regions[0] else None
        if block is None or len(operands) < 3:
            return
        (lower, upper, step), carried = operands[:3], operands[3:]
        if not isinstance(lower, int) or upper is None or not isinstance(step, int) or step <= 0:
            self.run(block, [None] * len(block.arguments), State(state.mask, state.steps, False, False))
            carried = []
        elif isinstance(upper, int):
            for turn in range(lower, upper, step):
                carried = self.run(block, [turn, *carried], state)
        else:  # each step of the grid turns another number of times
            carried = [None] * len(carried)
            for turn in range(lower, int(upper.max(initial=lower)), step):
                inside = self._under(state, (upper > turn).astype(np.int64), False)
                if inside is not None:
                    self.run(block, [turn, *carried], inside)
        self.values.update(zip(op.results, carried or [None] * len(op.results), strict=False))

    def _under(self, state: State, condition: Number, is_else: bool) -> State | None:
        """Where a branch runs; None where it runs nowhere."""
        if isinstance(condition, int):
            return state if bool(condition) != is_else else None
        if condition is None:
            return State(state.mask, state.steps, False, state.is_bounded)
        self.budget.spend(_length(condition))
        mask = (condition != 0) != is_else
        mask = mask if state.mask is None else mask & (state.mask != 0)
        steps = int(np.count_nonzero(mask))
        return State(mask.astype(np.int64), steps, state.is_certain, state.is_bounded) if steps else None


def _length(number: Number) -> int:
    return len(number) if isinstance(number, np.ndarray) else 0


def _indices(bounds: Sequence[int], steps: int) -> list[Number]:
    """The index of each dimension in each step: the last one changes fastest."""
    number, stride = np.arange(steps, dtype=np.int64), steps
    indices: list[Number] = []
    for bound in bounds:
        stride //= max(bound, 1)
        indices.append(number // max(stride, 1) % bound if bound > 1 else 0)
    return indices
