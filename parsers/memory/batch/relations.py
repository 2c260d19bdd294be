"""What each HLO instruction says of its axes: which of its result's are its operands'.

An instruction that is not known relates dimensions of one place and length where the arrays have as many of them: that
holds for all that works element by element, for slices, updates and pads along other dimensions, for collectives, and
for what most kernels of one's own do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.batch.axes import Axes, Leaf

_MOST_PAIRS = 4096  # of operands and results of one instruction that are compared

_Leaves = tuple[Leaf, ...]


class _Op(NamedTuple):
    """An instruction with the arrays of its operands and of its result."""

    axes: Axes
    hlo: HloModule
    instruction: hlo_pb2.HloInstructionProto
    operands: Sequence[_Leaves]
    results: _Leaves


def relate(hlo: HloModule) -> Axes:
    """All axes of a module with what its instructions say of them."""
    axes = Axes(hlo)
    for computation in hlo.proto.hlo_module.computations:
        for instruction in computation.instructions:
            operands = [axes.leaves.get(operand, ()) for operand in instruction.operand_ids]
            op = _Op(axes, hlo, instruction, operands, axes.leaves[instruction.id])
            _RELATIONS.get(instruction.opcode, _alike)(op)
    return axes


def _nothing(_: _Op) -> None:
    """What has no operands, or none whose axes are its own."""


def _alike(op: _Op) -> None:
    given = [leaf for leaves in op.operands for leaf in leaves if leaf.dims]
    if len(given) == len(op.results) > 1:
        for operand, result in zip(given, op.results, strict=True):
            op.axes.join_all(operand, result)
    elif len(given) * len(op.results) <= _MOST_PAIRS:
        for result in op.results:
            for operand in given:
                op.axes.join_all(operand, result)


def _shards(op: _Op) -> None:
    """What chips gather, scatter or slice: one side has a dimension of all of them, the other one of a shard."""
    for operand in op.operands[:_MOST_PAIRS]:
        for result in op.results[:_MOST_PAIRS]:
            for leaf in operand[:1]:
                op.axes.join_parts(leaf, result)


def _flow(axes: Axes, given: Sequence[Leaf], taken: Sequence[Leaf]) -> None:
    """The same arrays under two names."""
    for one, other in zip(given, taken, strict=False):
        axes.join_all(one, other)


def _tuple(op: _Op) -> None:
    _flow(op.axes, [leaf for leaves in op.operands for leaf in leaves], op.results)


def _element(op: _Op) -> None:
    whole = op.hlo.instruction_by_id(op.instruction.operand_ids[0]) if op.instruction.operand_ids else None
    if whole is not None and op.operands:
        _flow(op.axes, op.axes.element(whole, op.instruction.tuple_index), op.results)


def _called(op: _Op) -> None:
    """A fusion, a call or an asynchronous operation: its operands are parameters, its result what is inside."""
    inside = op.hlo.wrapped(op.instruction)
    if inside is None:
        _alike(op)
        return
    if op.instruction.opcode not in (b"async-update", b"async-done"):
        _enter(op.axes, inside, op.operands)
    taken = op.results[sum(map(len, op.operands)) :] if op.instruction.opcode == b"async-start" else op.results
    if op.instruction.opcode in (b"async-start", b"async-update"):
        _tuple(op)
    if op.instruction.opcode != b"async-update":
        _flow(op.axes, op.axes.leaves.get(inside.root_id, ()), taken)


def _enter(axes: Axes, computation: hlo_pb2.HloComputationProto, operands: Sequence[_Leaves]) -> None:
    for number, leaves in axes.parameters.get(computation.id, ()):
        if 0 <= number < len(operands):
            _flow(axes, operands[number], leaves)


def _while(op: _Op) -> None:
    for number in op.instruction.called_computation_ids:
        computation = op.hlo.computation(number)
        if computation is not None:
            _enter(op.axes, computation, op.operands[:1])
            root = op.axes.leaves.get(computation.root_id, ())
            if len(root) == len(op.results):  # of the condition it is one truth value
                _flow(op.axes, root, op.results)
    for leaves in op.operands[:1]:
        _flow(op.axes, leaves, op.results)


def _branches(op: _Op) -> None:
    for number, given in zip(op.instruction.called_computation_ids, op.operands[1:], strict=False):
        computation = op.hlo.computation(number)
        if computation is not None:
            _enter(op.axes, computation, [given])
            _flow(op.axes, op.axes.leaves.get(computation.root_id, ()), op.results)


def _rearranged(op: _Op) -> None:
    """A broadcast, a transpose, a reshape or a bitcast of one array."""
    if not (op.operands and op.operands[0] and op.results):
        return
    operand, result, instruction = op.operands[0][0], op.results[0], op.instruction
    if instruction.opcode == b"broadcast":
        op.axes.join(operand, result, enumerate(instruction.dimensions))
    elif instruction.opcode == b"transpose":
        op.axes.join(result, operand, enumerate(instruction.dimensions))
    else:
        op.axes.regroup(operand, result, is_physical=instruction.opcode == b"bitcast")


def _reduce(op: _Op) -> None:
    gone = set(op.instruction.dimensions)
    for operand in op.operands[: len(op.operands) // 2]:
        for leaf in operand:
            kept = [number for number in range(len(leaf.dims)) if number not in gone]
            for result in op.results:
                op.axes.join(leaf, result, zip(kept, range(len(kept)), strict=True))


def _dot(op: _Op) -> None:
    if len(op.operands) < 2 or not (op.operands[0] and op.operands[1] and op.results):
        return
    left, right, result = op.operands[0][0], op.operands[1][0], op.results[0]
    numbers = op.instruction.dot_dimension_numbers
    lefts, rights = list(numbers.lhs_batch_dimensions), list(numbers.rhs_batch_dimensions)
    ones, others = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    op.axes.join(left, right, zip([*lefts, *ones], [*rights, *others], strict=False))
    free = [number for number in range(len(left.dims)) if number not in {*lefts, *ones}]
    op.axes.join(left, result, ((number, place) for place, number in enumerate([*lefts, *free])))
    begin = len(lefts) + len(free)
    free = [number for number in range(len(right.dims)) if number not in {*rights, *others}]
    op.axes.join(right, result, ((number, begin + place) for place, number in enumerate(free)))


def _convolution(op: _Op) -> None:
    """A convolution, which most matrix products are by now: what they contract or keep may be spatial dimensions."""
    if len(op.operands) < 2 or not (op.operands[0] and op.operands[1] and op.results):
        return
    left, kernel, result = op.operands[0][0], op.operands[1][0], op.results[0]
    numbers = op.instruction.convolution_dimension_numbers
    op.axes.join(left, result, [(numbers.input_batch_dimension, numbers.output_batch_dimension)])
    op.axes.join(left, kernel, [(numbers.input_feature_dimension, numbers.kernel_input_feature_dimension)])
    op.axes.join(kernel, result, [(numbers.kernel_output_feature_dimension, numbers.output_feature_dimension)])
    spatial = zip(
        numbers.input_spatial_dimensions,
        numbers.kernel_spatial_dimensions,
        numbers.output_spatial_dimensions,
        op.instruction.window.dimensions,
        strict=False,
    )
    for one, two, three, window in spatial:
        if not (0 <= one < len(left.dims) and 0 <= two < len(kernel.dims) and 0 <= three < len(result.dims)):
            continue
        length, size, made = left.dims[one], kernel.dims[two], result.dims[three]
        if size == 1 or length == made != size:
            op.axes.join(left, result, [(one, three)])
        elif length == size == made and window.base_dilation == length:  # a batch of products
            op.axes.join(left, result, [(one, three)])
            op.axes.join(kernel, result, [(two, three)])
        elif made == 1:
            op.axes.join(left, kernel, [(one, two)])
        elif length == 1:
            op.axes.join(kernel, result, [(two, three)])


def _gather(op: _Op) -> None:
    """The result leads with the dimensions of the indices, and ends in those of the pieces."""
    if len(op.operands) == 2 and op.operands[0] and op.operands[1] and op.results:
        _picked(op.axes, op.operands[0][0], op.operands[1][0], op.results[0])


def _scatter(op: _Op) -> None:
    if len(op.operands) == 3 and all(op.operands) and op.results:
        op.axes.join_all(op.operands[0][0], op.results[0])
        _picked(op.axes, op.operands[0][0], op.operands[1][0], op.operands[2][0])


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


_RELATIONS: Mapping[bytes, Callable[[_Op], None]] = {
    **dict.fromkeys((b"parameter", b"constant", b"iota", b"partition-id", b"replica-id", b"after-all"), _nothing),
    **dict.fromkeys((b"tuple", b"optimization-barrier"), _tuple),
    **dict.fromkeys((b"fusion", b"call", b"async-start", b"async-update", b"async-done"), _called),
    **dict.fromkeys((b"all-gather", b"all-gather-start", b"reduce-scatter", b"dynamic-slice"), _shards),
    **dict.fromkeys((b"broadcast", b"transpose", b"reshape", b"bitcast"), _rearranged),
    b"get-tuple-element": _element,
    b"while": _while,
    b"conditional": _branches,
    b"reduce": _reduce,
    b"bitcast-convert": _alike,
    b"dot": _dot,
    b"convolution": _convolution,
    b"gather": _gather,
    b"scatter": _scatter,
}
