"""What a kernel must do at least: the FLOPs of its matrix products, and the bytes that it copies itself.

FLOPs of a product are 2 m n k, by the shapes of its vectors, for each step of the grid and turn of a loop that runs it.
Where a condition or a loop depends on numbers that the program gets when it runs, they are not known.
"""

from __future__ import annotations

from math import prod

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.mosaic.bytecode import Op, Value
from tpuprof.parsers.formats.mosaic.entries import Shaped
from tpuprof.parsers.formats.mosaic.follow import OpBudget, State, TooLong, Walk
from tpuprof.parsers.formats.mosaic.kernel import Kernel
from tpuprof.parsers.formats.mosaic.sizes import elements, unpadded_bytes

_ON_CHIP = ("vmem", "smem")
_CONDITION = "a part of it runs only on a condition that is known at run time"
_UNBOUNDED = "a loop's trip count is known only at run time"
_GRID = "its grid is known only at run time"
_SHAPES = "one of its shapes is known only at run time"
_LONG = "the kernel has more steps than are followed"
_MOST = 1 << 62
_MOST_VIEWS = 16
_LIST = pattern(r"\[([0-9, ]{0,256})\]")
_MAP = pattern(r"\(([d0-9, ]{0,256})\) -> \(([d0-9, ]{0,256})\)")


@dataclass(frozen=True, slots=True)
class Amount:
    """How much a kernel does of something in one call.

    Attributes:
        value: None where it is not known.
        reason: why `value` is None; empty where it is not.
    """

    value: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """What one call of a kernel does at least, by shapes, grid and constants.

    Attributes:
        matrix_flops: of matrix products, 2 m n k each; 0 where it has none.
        copied: bytes that it copies itself of each of its arguments, to or from the chip (`pltpu.make_async_copy`,
            `pltpu.emit_pipeline`), apart from the blocks of its grid; the indices of its grid are left out of their
            numbers.
        buffer: which argument is copied to or from what an op of the kernel allocates.
        runs: how often vector ops run in one call, by the calls that they come from, the innermost first: each number
            once, in order. Ops of which that is not known are left out, with those that come from the same calls.
    """

    matrix_flops: Amount
    copied: dict[int, Amount]
    buffer: dict[Op, int]
    runs: dict[tuple[str, ...], tuple[int, ...]]


class _Count:
    """Adds up one amount."""

    def __init__(self) -> None:
        self.sum = 0
        self.reasons: list[str] = []

    def add(self, each: int | None, state: State) -> None:
        times = state.steps
        if each is None or times is None:
            self.reasons.append(_SHAPES if each is None else _GRID)
        elif each and times and state.is_certain:
            self.sum += each * times
        elif each and times:
            self.reasons.append(_CONDITION if state.is_bounded else _UNBOUNDED)

    @property
    def amount(self) -> Amount:
        if self.sum >= _MOST:
            return Amount(None, _SHAPES)
        return Amount(None, self.reasons[0]) if self.reasons else Amount(self.sum)


class _Counter(Walk):
    """Counts while it follows a kernel."""

    def __init__(self, kernel: Kernel, budget: OpBudget) -> None:
        super().__init__(kernel.entries, kernel.grid, budget)
        self.flops = _Count()
        ahead = len(kernel.body.arguments) - len(kernel.arguments)
        self.arguments = {value: index for index, value in enumerate(kernel.body.arguments[ahead:])}
        self.copied: dict[int, _Count] = {}
        self.buffer: dict[Op, int] = {}
        self.ran: dict[Op, int | None] = {}

    def seen(self, name: str, op: Op, state: State) -> None:
        if self._is_vector(op):
            before, steps = self.ran.get(op, 0), state.steps if state.is_certain else None
            self.ran[op] = None if before is None or steps is None else before + steps
        if name == "tpu.matmul":
            self.flops.add(self._product(op), state)
        elif name == "vector.contract":
            self.flops.add(self._contraction(op), state)
        elif name == "tpu.enqueue_dma":
            self._copy(op, state)

    def _is_vector(self, op: Op) -> bool:
        made = self._shape(op, -1) if op.results else None
        return (made is not None and made.kind == "vector") or op.name.endswith("vector_store")

    def runs(self) -> dict[tuple[str, ...], tuple[int, ...]]:
        found: dict[tuple[str, ...], set[int | None]] = {}
        for op, count in self.ran.items():
            places = self.entries.places(op.location)
            if places:
                found.setdefault(places, set()).add(count)
        return {
            places: tuple(sorted(count for count in counts if count is not None))
            for places, counts in found.items()
            if None not in counts
        }

    def _shape(self, op: Op, operand: int) -> Shaped | None:
        """The shape of an operand; of the result for -1."""
        values = op.results if operand < 0 else op.operands
        value = values[0 if operand < 0 else operand] if len(values) > max(operand, 0) else None
        return None if value is None else self.entries.shaped(value.type)

    def _product(self, op: Op) -> int | None:
        """Contracted dimensions of the left side are named by `dimension_numbers`, else the last one is."""
        attributes = self.entries.dictionary(op.attributes)
        left, result = self._shape(op, 0), self._shape(op, -1)
        if left is None or result is None or not left.dimensions:
            return None
        lists = _LIST.findall(self.entries.dialect_text(attributes.get("dimension_numbers")))
        if lists:
            contracted = [int(number) for number in lists[0].split(",") if number.strip()]
        else:
            contracted = [len(left.dimensions) - (2 if self.entries.integer(attributes.get("transpose_lhs")) else 1)]
        if not all(0 <= number < len(left.dimensions) for number in contracted):
            return None
        count = elements(result.dimensions)
        return None if count is None else 2 * count * prod(left.dimensions[number] for number in contracted)

    def _contraction(self, op: Op) -> int | None:
        """All dimensions that its maps of indices name, multiplied."""
        maps = self.entries.items(self.entries.dictionary(op.attributes).get("indexing_maps"))
        sizes: dict[str, int] = {}
        for operand, each in enumerate(maps[:2]):
            shape, found = self._shape(op, operand), _MAP.search(self.entries.dialect_text(each))
            if shape is None or found is None:
                return None
            sizes |= zip((name.strip() for name in found.group(2).split(",")), shape.dimensions, strict=False)
        return 2 * prod(sizes.values()) if len(maps) >= 2 and all(size >= 0 for size in sizes.values()) else None

    def _copy(self, op: Op, state: State) -> None:
        """A copy: its first two operands that are no semaphores are where from and where to."""
        values = [(value, self.entries.shaped(value.type)) for value in op.operands if value is not None]
        ends = [
            (value, shape)
            for value, shape in values
            if shape is not None and shape.kind == "memref" and "sem" not in shape.element
        ]
        if len(ends) < 2 or (ends[0][1].space in _ON_CHIP) == (ends[1][1].space in _ON_CHIP):
            return
        (source, shape), (target, other) = ends[:2]
        size = unpadded_bytes(shape.dimensions, shape.element)
        ends_on_chip = other.space in _ON_CHIP
        array, buffer = (_root(each) for each in ((source, target) if ends_on_chip else (target, source)))
        number = self.arguments.get(array)
        if number is not None:
            self.copied.setdefault(number, _Count()).add(size, state)
            if buffer.op is not None:
                self.buffer.setdefault(buffer.op, number)


def _root(value: Value) -> Value:
    """The memory that a value is a part of: slices and views of it take it first."""
    for _ in range(_MOST_VIEWS):
        op = value.op
        if op is None or not op.operands or op.operands[0] is None:
            break
        value = op.operands[0]
    return value


def work_of(kernel: Kernel, budget: OpBudget) -> Work:
    """What one call does; every amount is unknown where the kernel takes too many steps to follow."""
    counter = _Counter(kernel, budget)
    ahead = len(kernel.body.arguments) - len(kernel.arguments)
    try:
        counter.run(kernel.body, counter.indices[:ahead], State(None, counter.steps))
    except TooLong:
        return Work(Amount(None, _LONG), {}, counter.buffer, {})
    copied = {number: count.amount for number, count in counter.copied.items()}
    return Work(counter.flops.amount, copied, counter.buffer, counter.runs())
