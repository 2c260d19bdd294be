"""The axes of all arrays of a module, and which of them are the same: what one of them is, the others are too.

Every dimension of every array that an instruction makes is an axis. Instructions relate the axes of their results to
those of their operands (see `relations`): most are equal, such as those of a sum; a reshape makes several of one, or
one of several. Where some axes are the batch, so are all that these relations reach, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import prod

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_bits
from tpuprof.parsers.formats.proto import hlo_pb2

_TUPLE, _BUFFER = 13, 34
_MAX_RANK = 64


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array that an instruction makes, alone or as a part of a tuple.

    Attributes:
        first: number of its first axis; the others follow.
        dims: its dimensions.
        minor_to_major: how they lie in memory; empty where that is not stated.
        bits: of an element; 0 where unknown.
        tiles: of its layout.
    """

    first: int
    dims: tuple[int, ...]
    minor_to_major: tuple[int, ...]
    bits: int
    tiles: tuple[tuple[int, ...], ...]

    @property
    def axes(self) -> range:
        return range(self.first, self.first + len(self.dims))


@dataclass(frozen=True, slots=True)
class Share:
    """How an axis holds the batch: it is so many times ``extent`` times ``stride`` long.

    Attributes:
        stride: product of what lies inside of the batch on this axis, such as the tokens of a sequence; 1 for nothing.
        extent: how much of the batch it is: all of it, or a part where a reshape split the batch.
    """

    stride: int
    extent: int


@dataclass(frozen=True, slots=True)
class Factor:
    """A part of an axis: every ``stride``-th place of it, ``length`` of them."""

    axis: int
    length: int
    stride: int


class Axes:
    """All axes of a module, which nothing relates until that is added.

    Attributes:
        leaves: the arrays of each instruction, by its id.
        parameters: number and arrays of each parameter of a computation, by its id.
    """

    def __init__(self, hlo: HloModule) -> None:
        self.leaves: dict[int, tuple[Leaf, ...]] = {}
        self.parameters: dict[int, list[tuple[int, tuple[Leaf, ...]]]] = {}
        self._begins: dict[int, list[int]] = {}
        self._size: list[int] = []
        for computation in hlo.proto.hlo_module.computations:
            given = self.parameters.setdefault(computation.id, [])
            for instruction in computation.instructions:
                if instruction.id not in self.leaves:
                    self.leaves[instruction.id] = tuple(map(self._leaf, arrays_of(instruction.shape)))
                if instruction.opcode == b"parameter":
                    given.append((instruction.parameter_number, self.leaves[instruction.id]))
        self._same = list(range(len(self._size)))
        self._groups: list[tuple[list[Factor], list[Factor]]] = []

    def _leaf(self, shape: hlo_pb2.ShapeProto) -> Leaf:
        dims = tuple(shape.dimensions) if len(shape.dimensions) <= _MAX_RANK else ()
        layout = shape.layout
        tiles = tuple(tuple(tile.dimensions) for tile in layout.tiles)
        leaf = Leaf(len(self._size), dims, tuple(layout.minor_to_major), element_bits(shape), tiles)
        self._size += dims
        return leaf

    def element(self, whole: hlo_pb2.HloInstructionProto, number: int) -> tuple[Leaf, ...]:
        """The arrays of an element of an instruction's tuple, and those of the elements behind it."""
        begins = self._begins.get(whole.id)
        if begins is None:
            counts = (len(arrays_of(part)) for part in whole.shape.tuple_shapes)
            begins = self._begins[whole.id] = list(accumulate(counts, initial=0))
        return self.leaves[whole.id][begins[number] :] if 0 <= number < len(begins) else ()

    def length(self, axis: int) -> int:
        """How long an axis is."""
        return self._size[axis]

    def root(self, axis: int) -> int:
        """The axis that stands for all that are equal to this one."""
        same = self._same
        while same[axis] != axis:
            same[axis] = same[same[axis]]
            axis = same[axis]
        return axis

    def join(self, first: Leaf, second: Leaf, pairs: Iterable[tuple[int, int]]) -> None:
        """Two arrays' dimensions, by number, are equal, as far as they are as long; those of length 1 say nothing."""
        for one, other in pairs:
            if (
                0 <= one < len(first.dims)
                and 0 <= other < len(second.dims)
                and first.dims[one] == second.dims[other] > 1
            ):
                self._union(first.first + one, second.first + other)

    def join_all(self, first: Leaf, second: Leaf) -> None:
        """Two arrays' dimensions are equal one by one; nothing where they have not as many."""
        if len(first.dims) == len(second.dims):
            self.join(first, second, ((number, number) for number in range(len(first.dims))))

    def join_parts(self, first: Leaf, second: Leaf) -> None:
        """As `join_all`; where one dimension is a multiple of the other, the shorter one is the inner part of it."""
        self.join_all(first, second)
        if len(first.dims) != len(second.dims):
            return
        for one, other in zip(first.axes, second.axes, strict=True):
            short, long = sorted((self._size[one], self._size[other]))
            if 1 < short < long and long % short == 0:
                self._groups.append(([Factor(one, short, 1)], [Factor(other, short, 1)]))

    def regroup(self, first: Leaf, second: Leaf, is_physical: bool) -> None:
        """One array's elements are the other's in the same order: as dimensions count, or as they lie in memory."""
        if prod(first.dims) != prod(second.dims) or first.bits != second.bits:
            return
        ones, others = _factors(first), _factors(second)
        if is_physical:
            ones, others = _in_memory(first, ones), _in_memory(second, others)
            if not _is_tiled_alike(first, second, ones, others):
                ones, others = _tiled(first, ones), _tiled(second, others)
        self._regroup(ones, others)

    def _regroup(self, ones: list[Factor], others: list[Factor]) -> None:
        """Takes two lists of factors apart where products of both are equal."""
        begin = place = one = other = 0
        left = right = 1
        while one < len(ones) or other < len(others):
            if left <= right and one < len(ones):
                left, one = left * ones[one].length, one + 1
            elif other < len(others):
                right, other = right * others[other].length, other + 1
            else:
                return
            if left == right:
                self._regrouped(ones[begin:one], others[place:other])
                begin, place, left, right = one, other, 1, 1

    def _regrouped(self, ones: list[Factor], others: list[Factor]) -> None:
        if len(ones) == len(others) == 1 and all(self._size[each.axis] == each.length for each in (*ones, *others)):
            self._union(ones[0].axis, others[0].axis)
        elif ones and others:
            self._groups.append((ones, others))

    def _union(self, one: int, other: int) -> None:
        first, second = self.root(one), self.root(other)
        if first != second:
            self._same[max(first, second)] = min(first, second)

    def batch_axes(self, seeds: Mapping[int, Share]) -> dict[int, Share]:
        """Every axis, by its root, that is the batch if these are: those that are equal, or made of them."""
        found = {self.root(axis): share for axis, share in seeds.items()}
        factors = ((factor, number) for number, group in enumerate(self._groups) for side in group for factor in side)
        users = grouped((self.root(factor.axis), number) for factor, number in factors)
        waiting = list(found)
        while waiting:
            root = waiting.pop()
            for number in users.get(root, ()):
                ones, others = self._groups[number]
                for here, there in ((ones, others), (others, ones)):
                    moved = self._moved(here, there, root, found[root])
                    if moved is not None and (reached := self.root(moved[0])) not in found:
                        found[reached] = moved[1]
                        waiting.append(reached)
        return found

    def _moved(
        self, here: Sequence[Factor], there: Sequence[Factor], root: int, share: Share
    ) -> tuple[int, Share] | None:
        """Where a share of one side's axis lies on the other side: of several places the outermost."""
        inside, best = 1, None
        for factor in reversed(here):
            begin = max(share.stride, factor.stride)
            end = min(share.stride * share.extent, factor.stride * factor.length)
            if self.root(factor.axis) == root and begin < end and begin % factor.stride == 0 and end % begin == 0:
                first = inside * (begin // factor.stride)
                best = _at(there, first, first * (end // begin)) or best
            inside *= factor.length
        return best


def _at(factors: Sequence[Factor], first: int, last: int) -> tuple[int, Share] | None:
    """The axis of the outermost factor that has a part of a range of strides, and that part."""
    inside, best = 1, None
    for factor in reversed(factors):
        begin, end = max(first, inside), min(last, inside * factor.length)
        if begin < end and begin % inside == 0 and end % begin == 0:
            best = (factor.axis, Share(factor.stride * (begin // inside), end // begin))
        inside *= factor.length
    return best


def _factors(leaf: Leaf) -> list[Factor]:
    """An array's dimensions as factors, the outermost first."""
    return [Factor(axis, length, 1) for axis, length in zip(leaf.axes, leaf.dims, strict=True) if length > 1]


def _in_memory(leaf: Leaf, factors: list[Factor]) -> list[Factor]:
    """The same in the order of the layout, where that is stated."""
    if sorted(leaf.minor_to_major) != list(range(len(leaf.dims))):
        return factors
    by_axis = {factor.axis: factor for factor in factors}
    order = [leaf.first + number for number in leaf.minor_to_major[::-1]]
    return [by_axis[axis] for axis in order if axis in by_axis]


def _is_tiled_alike(first: Leaf, second: Leaf, ones: Sequence[Factor], others: Sequence[Factor]) -> bool:
    """Whether tiles are of the same innermost dimensions, so that they change nothing."""
    if first.tiles != second.tiles:
        return False
    count = len(first.tiles[0]) if first.tiles else 0
    return [one.length for one in ones[len(ones) - count :]] == [one.length for one in others[len(others) - count :]]


def _tiled(leaf: Leaf, factors: list[Factor]) -> list[Factor]:
    """The factors as they lie in memory once tiles take the innermost ones apart; nothing where tiles are not full."""
    for tile in leaf.tiles:
        inner = factors[max(0, len(factors) - len(tile)) :]
        sizes = tile[len(tile) - len(inner) :]
        if any(size <= 0 or factor.length % size for factor, size in zip(inner, sizes, strict=True)):
            return []
        outer = [
            Factor(factor.axis, factor.length // size, factor.stride * size)
            for factor, size in zip(inner, sizes, strict=True)
        ]
        places = [Factor(factor.axis, size, factor.stride) for factor, size in zip(inner, sizes, strict=True)]
        factors = [*factors[: len(factors) - len(inner)], *outer, *places]
    return [factor for factor in factors if factor.length > 1]


def arrays_of(shape: hlo_pb2.ShapeProto) -> list[hlo_pb2.ShapeProto]:
    """A shape's arrays, of a tuple those of its parts in order; tokens count as arrays without dimensions."""
    if shape.element_type not in (_TUPLE, _BUFFER):
        return [shape]
    return [array for part in shape.tuple_shapes for array in arrays_of(part)]


def leaf_at(shape: hlo_pb2.ShapeProto, index: Sequence[int]) -> int | None:
    """Which of `arrays_of` a part of a tuple is, by its index, one number a level; None for a tuple, or for no part."""
    count = 0
    for number in index:
        if shape.element_type not in (_TUPLE, _BUFFER) or not 0 <= number < len(shape.tuple_shapes):
            return None
        count += sum(len(arrays_of(part)) for part in shape.tuple_shapes[:number])
        shape = shape.tuple_shapes[number]
    return None if shape.element_type in (_TUPLE, _BUFFER) else count
