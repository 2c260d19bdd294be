"""What a module's arrays are for, by what its instructions do with them, whatever they are called.

- *Weights* are arguments that reach a product, a gather or a kernel with nothing but casts, moves and element-wise
  arithmetic on the way. Where the program trains, the new value of each is an output of its type.
- *State* of an optimizer has the dimensions of weights and a new value, and reaches no product.
- *Scores* of attention are the result of a product of two arrays with axes in common (batch, heads), are exponentiated,
  and summed over one of the axes that the product made.
- *Logits* are exponentiated and summed over an axis of weights, the vocabulary.
- *Caches* are other arguments of a program that does not train which are updated in part, and have a new value.
- *Layers* are weights of the same dimensions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.modules import KERNEL_TARGET, HloModule
from tpuprof.parsers.formats.hlo.shapes import element_type
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.memory.batch.axes import Axes, Leaf, arrays_of
from tpuprof.parsers.memory.batch.relations import relate

LONG = 256  # from this length on two axes of one product are those of attention, not of heads or of a small matrix
VOCABULARY = 4096  # from this length on an axis of weights may be a vocabulary
_PRODUCTS = (b"dot", b"convolution", b"gather", b"ragged-dot")
_STOPS = (*_PRODUCTS, b"reduce", b"exponential", b"rsqrt", b"scatter", b"sort", b"iota", b"constant", b"compare")
_COMPUTED = frozenset((*_PRODUCTS, b"reduce", b"exponential", b"scatter"))
_UPDATES = (b"dynamic-update-slice", b"scatter")
_OPERANDS = {
    **dict.fromkeys((b"dot", b"convolution", *_UPDATES), 2),
    **dict.fromkeys((b"gather", b"reduce", b"exponential"), 1),
}
"""How many an instruction needs to be looked at: the text of a dump may lack them."""
_BACKWARD = (b"transpose(", b"gradients/", b"gradient_tape/")
_MOSTLY = 0.5
_CACHE_RANK = 3
_LEAST_LAYERS = 3

_Place = tuple[int, int]
"""An instruction's id, and the number of one of its arrays."""

_Roots = list[list[int]]
"""Axes of some arrays, by their roots."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An array that the program is given: where, its name, axes and element type."""

    place: _Place
    name: str
    leaf: Leaf
    element: str

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return self.element.startswith(("f", "bf"))


@dataclass(frozen=True, slots=True)
class Structure:
    """What arrays are for.

    Attributes:
        axes: of the module.
        weights, states, caches, others: arguments; `others` are inputs, and what nothing is known of.
        scores: pairs of axes, by their roots, that scores of attention have.
        vocabularies: axes, by their roots, that logits of a loss have.
        layers: how many layers there are, by weights of the same dimensions; 0 where no two are alike.
    """

    axes: Axes
    weights: tuple[Argument, ...]
    states: tuple[Argument, ...]
    caches: tuple[Argument, ...]
    others: tuple[Argument, ...]
    scores: frozenset[tuple[int, int]]
    vocabularies: frozenset[int]
    layers: int


def structure_of(hlo: HloModule) -> Structure:
    """Looks for all of these."""
    axes = relate(hlo)
    entry = hlo.computation(hlo.proto.hlo_module.entry_computation_id)
    every = [
        each
        for part in hlo.proto.hlo_module.computations
        for each in part.instructions
        if len(each.operand_ids) >= _OPERANDS.get(each.opcode, 0)
    ]
    arguments = {} if entry is None else _arguments(axes, entry)
    sources = _Sources(hlo, axes)
    products = [each for each in every if each.opcode in (b"dot", b"convolution")]
    used, tables = _used(sources, every), _operands(sources, every, b"gather")
    powers, sums = _exponentiated(axes, every)
    trains = any(word in each.metadata.op_name for each in every for word in _BACKWARD)
    root = None if entry is None else hlo.instruction_by_id(entry.root_id)
    outputs = () if root is None else arrays_of(root.shape)
    made = Counter((tuple(each.dimensions), element_type(each)) for each in outputs)
    kept = {place for place, each in arguments.items() if made[each.leaf.dims, each.element]}
    weights = {*arguments} & (used & kept if trains else tables | _multiplied(sources, products))
    dims = {arguments[place].leaf.dims for place in weights}
    states = {place for place in kept - used if trains and arguments[place].leaf.dims in dims}
    caches = {
        place
        for place in (kept & _operands(sources, every, *_UPDATES)) - weights - states
        if not trains and len(arguments[place].leaf.dims) >= _CACHE_RANK
    }

    def chosen(places: set[_Place]) -> tuple[Argument, ...]:
        return tuple(each for place, each in arguments.items() if place in places)

    return Structure(
        axes=axes,
        weights=chosen(weights),
        states=chosen(states),
        caches=chosen(caches),
        others=chosen(arguments.keys() - weights - states - caches),
        scores=_scores(axes, products, powers, sums),
        vocabularies=_vocabularies(axes, products, powers, sums, sources, weights),
        layers=_layers(arguments[place].leaf for place in weights - tables),
    )


def _arguments(axes: Axes, entry: hlo_pb2.HloComputationProto) -> dict[_Place, Argument]:
    return {
        (each.id, number): Argument(
            (each.id, number), text(each.metadata.op_name) or text(each.name), leaf, element_type(shape)
        )
        for each in entry.instructions
        if each.opcode == b"parameter"
        for number, (leaf, shape) in enumerate(zip(axes.leaves.get(each.id, ()), arrays_of(each.shape), strict=False))
        if leaf.dims
    }


class _Sources:
    """From what arrays are made without being computed anew: by casts, moves and element-wise arithmetic."""

    def __init__(self, hlo: HloModule, axes: Axes) -> None:
        self._hlo, self._axes = hlo, axes
        self._callers: dict[int, list[hlo_pb2.HloInstructionProto]] = {}
        self._inside: dict[int, int] = {}
        for computation in hlo.proto.hlo_module.computations:
            for each in computation.instructions:
                self._inside[each.id] = computation.id
                for called in each.called_computation_ids:
                    self._callers.setdefault(called, []).append(each)

    def reached(self, places: Iterable[_Place]) -> tuple[set[_Place], bool]:
        """All that some arrays are made of, themselves included; whether a part of that is computed."""
        waiting, is_computed = list(places), False
        found = set(waiting)
        while waiting:
            place = waiting.pop()
            each = self._hlo.instruction_by_id(place[0])
            if each is None or each.opcode in _STOPS or each.custom_call_target == KERNEL_TARGET:
                is_computed |= each is not None and (each.opcode in _COMPUTED or each.opcode == b"custom-call")
                continue
            fresh = set(self._sources(each, place[1])) - found
            found |= fresh
            waiting += fresh
        return found, is_computed

    def _sources(self, each: hlo_pb2.HloInstructionProto, number: int) -> Iterator[_Place]:
        operands = each.operand_ids
        if each.opcode == b"parameter":
            for caller in self._callers.get(self._inside[each.id], ()):
                yield from self._given(caller, each.parameter_number, number)
        elif not operands:
            return
        elif each.opcode == b"get-tuple-element":
            whole = self._hlo.instruction_by_id(operands[0])
            if whole is not None:
                first = len(self._axes.leaves[whole.id]) - len(self._axes.element(whole, each.tuple_index))
                yield whole.id, first + number
        elif each.opcode in (b"tuple", b"optimization-barrier"):
            for operand in operands:
                count = len(self._axes.leaves.get(operand, ()))
                if number < count:
                    yield operand, number
                    break
                number -= count
        elif each.called_computation_ids and each.opcode != b"all-reduce":
            roots = (self._hlo.computation(called) for called in each.called_computation_ids)
            yield from ((part.root_id, number) for part in roots if part is not None)
            yield from ((operand, number) for operand in operands if each.opcode == b"while")
        else:
            yield from ((operand, 0) for operand in (operands[:1] if each.opcode == b"dynamic-slice" else operands))

    def _given(self, caller: hlo_pb2.HloInstructionProto, parameter: int, number: int) -> Iterator[_Place]:
        if caller.opcode == b"while" and caller.operand_ids:
            yield caller.operand_ids[0], number
            body = self._hlo.computation(caller.called_computation_ids[0])
            if body is not None and len(self._axes.leaves.get(body.root_id, ())) > number:
                yield body.root_id, number
        elif parameter < len(caller.operand_ids) and caller.opcode not in _STOPS:
            yield caller.operand_ids[parameter], number


def _used(sources: _Sources, every: Iterable[hlo_pb2.HloInstructionProto]) -> set[_Place]:
    """What reaches a product, a gather or a kernel."""
    products = (each for each in every if each.opcode in _PRODUCTS or each.custom_call_target == KERNEL_TARGET)
    return sources.reached((operand, 0) for each in products for operand in each.operand_ids)[0]


def _operands(sources: _Sources, every: Iterable[hlo_pb2.HloInstructionProto], *opcodes: bytes) -> set[_Place]:
    """What the first operands are made of: of gathers what rows are taken from, of updates what is written in part."""
    return sources.reached((each.operand_ids[0], 0) for each in every if each.opcode in opcodes)[0]


def _multiplied(sources: _Sources, products: Iterable[hlo_pb2.HloInstructionProto]) -> set[_Place]:
    """What is multiplied with something that is computed, but for batches of products."""
    found = set[_Place]()
    for each in products:
        if not _is_batched(each):
            left, right = (sources.reached([(operand, 0)]) for operand in each.operand_ids[:2])
            found |= (left[0] if right[1] and not left[1] else set()) | (
                right[0] if left[1] and not right[1] else set()
            )
    return found


def _is_batched(product: hlo_pb2.HloInstructionProto) -> bool:
    """Whether a product is one of two arrays with axes in common, such as batch and heads, that its result has too."""
    windows = product.window.dimensions
    return bool(product.dot_dimension_numbers.lhs_batch_dimensions) or any(
        each.size > 1 and each.base_dilation == each.size for each in windows
    )


def _free(axes: Axes, product: hlo_pb2.HloInstructionProto) -> tuple[list[int], list[int]]:
    """Axes of a product's result, by their roots, that the left and the right operand have alone."""
    leaves = [(axes.leaves.get(number) or (None,))[0] for number in (*product.operand_ids[:2], product.id)]
    left, right, result = leaves[0], leaves[1], leaves[-1]
    if left is None or right is None or result is None:
        return [], []
    if product.opcode == b"convolution":
        numbers = product.convolution_dimension_numbers
        places = ([numbers.output_batch_dimension], [numbers.output_feature_dimension])
    else:
        shared = len(product.dot_dimension_numbers.lhs_batch_dimensions)
        middle = len(left.dims) - len(product.dot_dimension_numbers.lhs_contracting_dimensions)
        places = (list(range(shared, middle)), list(range(middle, len(result.dims))))
    one, other = (
        [axes.root(result.first + place) for place in side if 0 <= place < len(result.dims)] for side in places
    )
    return one, other


def _exponentiated(axes: Axes, every: Iterable[hlo_pb2.HloInstructionProto]) -> tuple[_Roots, _Roots]:
    """The axes, by their roots, of what is exponentiated; and of what is summed, those last that the sum is over."""
    powers, sums = [], []
    for each in every:
        if each.opcode == b"exponential":
            powers += [roots_of(axes, leaf) for leaf in axes.leaves.get(each.id, ())[:1]]
        elif each.opcode == b"reduce":
            for leaf in axes.leaves.get(each.operand_ids[0], ())[:1]:
                roots = roots_of(axes, leaf)
                sums += [[*roots, roots[number]] for number in each.dimensions if 0 <= number < len(roots)]
    return powers, sums


def roots_of(axes: Axes, leaf: Leaf) -> list[int]:
    """An array's axes by their roots."""
    return [axes.root(axis) for axis in leaf.axes]


def has_both(roots: Sequence[int], pair: tuple[int, int]) -> bool:
    """Whether an array has two axes; where these are equal, twice."""
    one, other = pair
    return roots.count(one) > 1 if one == other else one in roots and other in roots


def _scores(
    axes: Axes, products: Iterable[hlo_pb2.HloInstructionProto], powers: _Roots, sums: _Roots
) -> frozenset[tuple[int, int]]:
    found = {
        (min(one, other), max(one, other))
        for each in products
        if _is_batched(each)
        for lefts, rights in [_free(axes, each)]
        for one in lefts
        for other in rights
        if min(axes.length(one), axes.length(other)) >= LONG
    }
    return frozenset(
        pair
        for pair in found
        if any(has_both(roots, pair) for roots in powers)
        and any(has_both(roots[:-1], pair) and roots[-1] in pair for roots in sums)
    )


def _vocabularies(
    axes: Axes,
    products: Iterable[hlo_pb2.HloInstructionProto],
    powers: _Roots,
    sums: _Roots,
    sources: _Sources,
    weights: set[_Place],
) -> frozenset[int]:
    wanted = {root for roots in powers for root in roots if axes.length(root) >= VOCABULARY}
    wanted &= {roots[-1] for roots in sums}
    found = set[int]()
    for each in products:
        if not _is_batched(each):
            for operand, side in zip(each.operand_ids, _free(axes, each), strict=False):
                if not wanted.isdisjoint(side):
                    made_of, is_computed = sources.reached([(operand, 0)])
                    found |= wanted.intersection(side) if not is_computed and made_of & weights else set()
    return frozenset(found)


def _layers(weights: Iterable[Leaf]) -> int:
    """Into how many equal parts most of the weights fall; 0 where they do not."""
    counts = Counter(leaf.dims for leaf in weights if len(leaf.dims) > 1)
    sizes = {dims: count * math.prod(dims) for dims, count in counts.items()}

    def is_most(layers: int) -> bool:
        return sum(size for dims, size in sizes.items() if counts[dims] % layers == 0) >= _MOSTLY * sum(sizes.values())

    return max((count for count in counts.values() if count >= _LEAST_LAYERS and is_most(count)), default=0)
