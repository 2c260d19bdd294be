"""Small modules with what the larger ones have few of: products, convolutions, branches, calls, custom calls."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tests.parsers.formats.hlo.test_matrix import convolution, dot
from tpuprof.parsers.formats.proto.hlo_pb2 import HloComputationProto, HloInstructionProto, HloProto


def modules() -> Iterator[HloProto]:
    """Each of them once."""
    yield _branches()
    yield from products()


def products() -> Iterator[HloProto]:
    """One product each: a dot, convolutions of images, and those that stand for dots of batches."""
    yield dot([4, 64, 32], [4, 32, 16], [[2], [1], [0], [0]])
    yield convolution([32, 28, 28, 64], [3, 3, 64, 128], [32, 28, 28, 128], [(3, 1, 1, 1, 1)] * 2)
    for window in ((8, 7, 0, 1, 8), (8, 8, 7, 1, 7), (8, 1, 0, 7, 8), (8, 1, 4, 1, 1)):
        yield convolution([5, 8, 7], [8, 7, 9], [5, 8, 9], [window])
    yield convolution([5, 1, 7], [8, 7, 9], [5, 8, 9], [(8, 1, 7, 1, 1)])
    yield convolution([5, 8, 7], [8, 7, 9], [5, 1, 9], [(8, 1, 0, 1, 1)])


def _branches() -> HloProto:
    """A conditional with two branches, a call and a custom call with computations."""
    proto = HloProto()
    module = proto.hlo_module
    module.name, module.entry_computation_id, module.entry_computation_name = b"jit_branches", 4, b"main"
    for number in (1, 2, 3):
        computation = module.computations.add(id=number, name=b"branch_%d" % number)
        first = _add(computation, 10 * number, b"parameter")
        computation.root_id = _add(computation, 10 * number + 1, b"negate", (first.id,)).id
    main = module.computations.add(id=4, name=b"main")
    argument, choice = _add(main, 40, b"parameter"), _add(main, 41, b"parameter")
    choice.parameter_number = 1
    branches = _add(main, 42, b"conditional", (choice.id, argument.id, argument.id), (1, 2))
    called = _add(main, 43, b"call", (branches.id,), (3,))
    custom = _add(main, 44, b"custom-call", (called.id,), (1, 2))
    custom.custom_call_target = b"target"
    sent = _add(main, 45, b"send", (custom.id,))
    sent.is_host_transfer, sent.channel_id = True, 3
    compared = _add(main, 46, b"compare", (called.id, custom.id))
    compared.comparison_direction = b"LT"
    main.root_id = _add(main, 47, b"tuple", (custom.id, compared.id)).id
    return proto


def _add(
    computation: HloComputationProto,
    number: int,
    opcode: bytes,
    operands: Sequence[int] = (),
    called: Sequence[int] = (),
) -> HloInstructionProto:
    made = computation.instructions.add(id=number, name=opcode + b".%d" % number, opcode=opcode)
    made.operand_ids.extend(operands)
    made.called_computation_ids.extend(called)
    made.shape.element_type = 11
    made.shape.dimensions.extend((8, 128))
    made.shape.layout.minor_to_major.extend((1, 0))
    return made


def with_changed_heap(rng: random.Random, data: bytes) -> bytes:
    """A module whose heap's events take, free and share other buffers than they did."""
    proto = HloProto.FromString(data)
    events = [event for trace in proto.buffer_assignment.heap_simulator_traces for event in trace.events]
    for event in rng.sample(events, min(len(events), rng.choice((1, 5, 60)))):
        other = rng.choice(events)
        event.kind = rng.choice((0, 1, 2, 2, 7))
        event.buffer_id = rng.choice((event.buffer_id, other.buffer_id, 1 << 40))
        event.share_with_canonical_id = rng.choice((other.buffer_id, 0, 1 << 50))
    for buffer in proto.buffer_assignment.logical_buffers[:200]:
        how = rng.randrange(200)
        if how < 4:
            buffer.size = rng.choice((0, 1, (1 << 62), -1))
        elif how == 4:
            buffer.defined_at.shape_index.append(rng.choice((0, 99, -1)))
        elif how == 5:
            buffer.defined_at.instruction_id = 1 << 40
    instructions = [one for part in proto.hlo_module.computations for one in part.instructions]
    for one in rng.sample(instructions, min(len(instructions), 6)):
        one.shape.element_type = rng.choice((14, 17, 13, 0))  # opaque, a token, a tuple, none
    return proto.SerializeToString()
