"""What each HLO instruction says of its axes: which of its result's are its operands'.

An instruction that is not known relates dimensions of one place and length where the arrays have as many of them: that
holds for all that works element by element, for slices, updates and pads along other dimensions, for collectives, and
for what most kernels of one's own do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.batch.axes import Axes, Leaf

_MOST_PAIRS = 4096  # of operands and results of one instruction that are compared

_Instruction = hlo_pb2.HloInstructionProto
_Leaves = tuple[Leaf, ...]


def relate(hlo: HloModule) -> Axes:
    """All axes of a module with what its instructions say of them."""
    axes = Axes(hlo)
    for computation in hlo.proto.hlo_module.computations:
        for instruction in computation.instructions:
            operands = [axes.leaves.get(operand, ()) for operand in instruction.operand_ids]
            relation = _RELATIONS.get(instruction.opcode, _alike)
            relation(axes, hlo, instruction, operands, axes.leaves[instruction.id])
    return axes


def _nothing(_: Axes, __: HloModule, ___: _Instruction, ____: Sequence[_Leaves], _____: _Leaves) -> None:
    """What has no operands, or none whose axes are its own."""


def _alike(axes: Axes, _: HloModule, __: _Instruction, operands: Sequence[_Leaves], results: _Leaves) -> None:
    given = [leaf for leaves in operands for leaf in leaves if leaf.dims]
    if len(given) == len(results) > 1:
        for operand, result in zip(given, results, strict=True):
            axes.join_all(operand, result)
    elif len(given) * len(results) <= _MOST_PAIRS:
        for result in results:
            for operand in given:
                axes.join_all(operand, result)


def _shards(axes: Axes, _: HloModule, __: _Instruction, operands: Sequence[_Leaves], results: _Leaves) -> None:
    """What chips gather, scatter or slice: one side has a dimension of all of them, the other one of a shard."""
    for operand in operands[:_MOST_PAIRS]:
        for result in results[:_MOST_PAIRS]:
            for leaf in operand[:1]:
                axes.join_parts(leaf, result)


def _flow(axes: Axes, given: Sequence[Leaf], taken: Sequence[Leaf]) -> None:
    """The same arrays under two names."""
    for one, other in zip(given, taken, strict=False):
        axes.join_all(one, other)


def _tuple(axes: Axes, _: HloModule, __: _Instruction, operands: Sequence[_Leaves], results: _Leaves) -> None:
    _flow(axes, [leaf for leaves in operands for leaf in leaves], results)


def _element(
    axes: Axes, hlo: HloModule, instruction: _Instruction, operands: Sequence[_Leaves], results: _Leaves
) -> None:
    whole = hlo.instruction_by_id(instruction.operand_ids[0]) if instruction.operand_ids else None
    if whole is not None and operands:
        _flow(axes, axes.element(whole, instruction.tuple_index), results)


def _called(
    axes: Axes, hlo: HloModule, instruction: _Instruction, operands: Sequence[_Leaves], results: _Leaves
) -> None:
    """A fusion, a call or an asynchronous operation: its operands are parameters, its result what is inside."""
    inside = hlo.wrapped(instruction)
    if inside is None:
        _alike(axes, hlo, instruction, operands, results)
        return
    is_start = instruction.opcode in (b"async-start", b"async-update")
    if instruction.opcode not in (b"async-update", b"async-done"):
        _enter(axes, inside, operands)
    taken = results[sum(map(len, operands)) :] if instruction.opcode == b"async-start" else results
    if is_start:
        _flow(axes, [leaf for leaves in operands for leaf in leaves], results)
    if instruction.opcode != b"async-update":
        _flow(axes, axes.leaves.get(inside.root_id, ()), taken)


def _enter(axes: Axes, computation: hlo_pb2.HloComputationProto, operands: Sequence[_Leaves]) -> None:
    for number, leaves in axes.parameters.get(computation.id, ()):
        if 0 <= number < len(operands):
            _flow(axes, operands[number], leaves)


def _while(
    axes: Axes, hlo: HloModule, instruction: _Instruction, operands: Sequence[_Leaves], results: _Leaves
) -> None:
    for number in instruction.called_computation_ids:
        computation = hlo.computation(number)
        if computation is not None:
            _enter(axes, computation, operands[:1])
            root = axes.leaves.get(computation.root_id, ())
            _flow(axes, root, results if len(root) == len(results) else ())  # of the condition it is one truth value
    for leaves in operands[:1]:
        _flow(axes, leaves, results)


def _branches(
    axes: Axes, hlo: HloModule, instruction: _Instruction, operands: Sequence[_Leaves], results: _Leaves
) -> None:
    for number, given in zip(instruction.called_computation_ids, operands[1:], strict=False):
        computation = hlo.computation(number)
        if computation is not None:
            _enter(axes, computation, [given])
            _flow(axes, axes.leaves.get(computation.root_id, ()), results)


def _broadcast(
    axes: Axes, _: HloModule, instruction: _Instruction, operands: Sequence[_Leaves], results: _Leaves
) -> None:
    if operands and operands[0] and results:
        axes.join(operands[0][0], results[0], enumerate(instruction.dimensions))


def _transpose(
    axes: Axes, _: HloModule, instruction: _Instruction, operands: Sequence[_Leaves], results: _Leaves
) -> None:
    if operands and operands[0] and results:
        axes.join(results[0], operands[0][0], enumerate(instruction.dimensions))


def _reduce(axes: Axes, _: HloModule, instruction: _Instruction, operands: Sequence[_Leaves], results: _Leaves) -> None:
    gone = set(instruction.dimensions)
    for operand in operands[: len(operands) // 2]:
        for leaf in operand:
            kept = [number for number in range(len(leaf.dims)) if number not in gone]
            for result in results:
                axes.join(leaf, result, zip(kept, range(len(kept)), strict=True))


def _reshape(axes: Axes, _: HloModule, __: _Instruction, operands: Sequence[_Leaves], results: _Leaves) -> None:
    if operands and operands[0] and results:
        axes.regroup(operands[0][0], results[0], is_physical=False)


def _bitcast(axes: Axes, _: HloModule, __: _Instruction, operands: Sequence[_Leaves], results: _Leaves) -> None:
    if operands and operands[0] and results:
        axes.regroup(operands[0][0], results[0], is_physical=True)


def _dot(axes: Axes, _: HloModule, instruction: _Instruction, operands: Sequence[_Leaves], results: _Leaves) -> None:
    if len(operands) < 2 or not (operands[0] and operands[1] and results):
        return
    left, right, result = operands[0][0], operands[1][0], results[0]
    numbers = instruction.dot_dimension_numbers
    lefts, rights = list(numbers.lhs_batch_dimensions), list(numbers.rhs_batch_dimensions)
    ones, others = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    axes.join(left, right, zip([*lefts, *ones], [*rights, *others], strict=False))
    free = [number for number in range(len(left.dims)) if number not in {*lefts, *ones}]
    axes.join(left, result, ((number, place) for place, number in enumerate([*lefts, *free])))
    begin = len(lefts) + len(free)
    free = [number for number in range(len(right.dims)) if number not in {*rights, *others}]
    axes.join(right, result, ((number, begin + place) for place, number in enumerate(free)))


def _convolution(
    axes: Axes, _: HloModule, instruction: _Instruction, operands: Sequence[_Leaves], results: _Leaves
) -> None:
    """A convolution, which most matrix products are by now: what they contract or keep may be spatial dimensions."""
    if len(operands) < 2 or not (operands[0] and operands[1] and results):
        return
    left, kernel, result = operands[0][0], operands[1][0], results[0]
    numbers = instruction.convolution_dimension_numbers
    axes.join(left, result, [(numbers.input_batch_dimension, numbers.output_batch_dimension)])
    axes.join(left, kernel, [(numbers.input_feature_dimension, numbers.kernel_input_feature_dimension)])
    axes.join(kernel, result, [(numbers.kernel_output_feature_dimension, numbers.output_feature_dimension)])
    spatial = zip(
        numbers.input_spatial_dimensions,
        numbers.kernel_spatial_dimensions,
        numbers.output_spatial_dimensions,
        instruction.window.dimensions,
        strict=False,
    )
    for one, two, three, window in spatial:
        if max(one - len(left.dims), two - len(kernel.dims), three - len(result.dims)) >= 0:
            continue
        length, size, made = left.dims[one], kernel.dims[two], result.dims[three]
        if size == 1 or length == made != size:
            axes.join(left, result, [(one, three)])
        elif length == size == made and window.base_dilation == length:  # a batch of products
            axes.join(left, result, [(one, three)])
            axes.join(kernel, result, [(two, three)])
        elif made == 1:
            axes.join(left, kernel, [(one, two)])
        elif length == 1:
            axes.join(kernel, result, [(two, three)])


def _gather(axes: Axes, _: HloModule, __: _Instruction, operands: Sequence[_Leaves], results: _Leaves) -> None:
    """The result leads with the dimensions of the indices, and ends in those of the pieces."""
    if len(operands) == 2 and operands[0] and operands[1] and results:
        _picked(axes, operands[0][0], operands[1][0], results[0])


def _scatter(axes: Axes, _: HloModule, __: _Instruction, operands: Sequence[_Leaves], results: _Leaves) -> None:
    if len(operands) == 3 and all(operands) and results:
        axes.join_all(operands[0][0], results[0])
        _picked(axes, operands[0][0], operands[1][0], operands[2][0])


def _picked(axes: Axes, whole: Leaf, indices: Leaf, pieces: Leaf) -> None:
    place = 0
    for number, length in enumerate(indices.dims):
        if place < len(pieces.dims) and pieces.dims[place] == length:
            axes.join(indices, pieces, [(number, place)])
            place += 1
    for back in range(1, min(len(whole.dims), len(pieces.dims) - place) + 1):
        if whole.dims[-back] != pieces.dims[-back]:
            break
        axes.join(whole, pieces, [(len(whole.dims) - back, len(pieces.dims) - back)])


_Relation = Callable[[Axes, HloModule, _Instruction, Sequence[_Leaves], _Leaves], None]
_RELATIONS: Mapping[bytes, _Relation] = {
    **dict.fromkeys((b"parameter", b"constant", b"iota", b"partition-id", b"replica-id", b"after-all"), _nothing),
    **dict.fromkeys((b"tuple", b"optimization-barrier"), _tuple),
    **dict.fromkeys((b"fusion", b"call", b"async-start", b"async-update", b"async-done"), _called),
    **dict.fromkeys((b"all-gather", b"all-gather-start", b"reduce-scatter", b"dynamic-slice"), _shards),
    b"get-tuple-element": _element,
    b"while": _while,
    b"conditional": _branches,
    b"broadcast": _broadcast,
    b"transpose": _transpose,
    b"reduce": _reduce,
    b"reshape": _reshape,
    b"bitcast": _bitcast,
    b"bitcast-convert": _alike,
    b"dot": _dot,
    b"convolution": _convolution,
    b"gather": _gather,
    b"scatter": _scatter,
}
