"""What one instruction of a compiled program moves between HBM and the chip, at least: its arrays, each once.

Arrays in other memories (``S(1)`` is VMEM) are not HBM's. A slice or a gather reads what it takes, an update in place
writes its slice alone, inside a fusion too. A fusion may carry along an asynchronous collective, whose arrays are
those of the op that begins it. An asynchronous gather or scatter, which runs on a SparseCore, is known by what its
computations hold at any depth.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.op_class import COLLECTIVE_KINDS
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_type, shape_of_proto
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.formats.xspace.walk import text

if TYPE_CHECKING:
    from tpuprof.parsers.formats.mosaic.spec import KernelSpec

_HBM, _HOST, _DEEPEST = 0, 5, 64
_TAKES = frozenset((b"slice", b"dynamic-slice", b"gather"))
_UPDATES = {b"dynamic-update-slice": 1, b"scatter": 2}
"""What changes its first operand in place, and which operand has the values that it writes."""

COLLECTIVES = tuple(kind.encode() for kind in COLLECTIVE_KINDS)
_BEGINS, _ENDS = b"AsyncCollectiveStart", b"AsyncCollectiveDone"
"""The custom calls that stand for a collective inside the fusions that begin it and wait for it."""

_ASYNCHRONOUS = frozenset((b"async-start", b"async-update"))
_PARTS = frozenset((*_TAKES, *_UPDATES, b"custom-call"))

_Callers = tuple[tuple[int, "hlo_pb2.HloInstructionProto"], ...]


class Read(NamedTuple):
    """An operand as an instruction reads it: its name and place, the bytes read of it, padding included, and how often.

    `streams` is how often they come from HBM: as often as tiles need them, and 0 where they lie on the chip.
    """

    name: str
    number: int
    bytes: int
    streams: int


def begins(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> bool:
    """Whether an instruction only begins what then runs beside others."""
    root = _origin(module, proto, (b"fusion",))
    is_start = proto.opcode.endswith(b"-start") or proto.opcode == b"async-update"
    return is_start or (root is not None and root.custom_call_target == _BEGINS)


def touches_host(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> bool:
    """Whether an instruction reads or writes an array in the host's memory."""
    shapes = [operand.shape for operand in module.operand_protos(proto) if operand is not None] + [proto.shape]
    return any(part.layout.memory_space == _HOST for shape in shapes for part in (shape, *shape.tuple_shapes))


def reads_of(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> tuple[Read, ...]:
    """The operands of an instruction, each once. Of a custom call that gets numbers none: they may choose parts."""
    found: dict[int, Read] = {}
    most = _most_of_parts(module, proto) if proto.opcode in _ASYNCHRONOUS else None
    for number, operand in enumerate(module.operand_protos(proto)):
        if operand is None or operand.id in found or operand.opcode == b"tuple" or operand.opcode in _ASYNCHRONOUS:
            continue
        if proto.opcode == b"custom-call" and element_type(operand.shape) in ("s32", "u32"):
            return ()
        whole = size_of(operand.shape)
        size = min(whole, _of_user(module, proto, number, whole, ()) if most is None else most)
        streams = int(operand.shape.layout.memory_space == _HBM)
        found[operand.id] = Read(printable(text(operand.name)), number, size, streams)
    return tuple(found.values())


def _of_user(module: HloModule, user: hlo_pb2.HloInstructionProto, place: int, whole: int, callers: _Callers) -> int:
    """Bytes that an instruction reads of one of its operands, by what it does with it.

    Args:
        callers: the fusions that it is in, the innermost last, each with the id of its root.
    """
    if user.opcode.removesuffix(b"-start") in _TAKES and place == 0:
        is_begun = user.opcode.endswith(b"-start") and len(user.shape.tuple_shapes) > 1  # its result is the second part
        return size_of(user.shape.tuple_shapes[1] if is_begun else user.shape)
    if user.opcode in _UPDATES and place == 0:
        return 0
    if user.custom_call_target == _ENDS or (user.opcode == b"tuple" and callers):
        return 0  # it is handed on
    if user.opcode == b"bitcast" and callers:
        return _used(module, user, whole, callers)
    if user.opcode.startswith(COLLECTIVES) and callers:
        return whole if _used(module, user, whole, callers) else 0
    inside = module.wrapped(user) if user.opcode == b"fusion" and len(callers) < _DEEPEST else None
    for each in inside.instructions if inside is not None else ():
        if each.opcode == b"parameter" and each.parameter_number == place and inside is not None:
            return _used(module, each, whole, (*callers, (inside.root_id, user)))
    return whole


def _used(module: HloModule, value: hlo_pb2.HloInstructionProto, whole: int, callers: _Callers) -> int:
    """Bytes that the users of a value in a fusion read of it; of what the fusion makes, the users of that."""
    (root, fusion), total = callers[-1], 0
    if value.id == root:
        total = _used(module, fusion, whole, callers[:-1]) if len(callers) > 1 else whole
    for user in module.users(value.id):
        for place, operand in enumerate(user.operand_ids):
            if operand == value.id and total < whole:
                total += _of_user(module, user, place, whole, callers)
    return total


def kernel_traffic(
    module: HloModule, proto: hlo_pb2.HloInstructionProto, spec: KernelSpec
) -> tuple[tuple[Read, ...], tuple[int, ...]]:
    """The same of a Mosaic kernel, by the blocks that its grid copies: what it reads, and bytes of each result.

    Of what it copies in a way that is not known before it runs nothing counts.
    """
    operands, results = module.operand_protos(proto), proto.shape.tuple_shapes or (proto.shape,)
    copied = grouped(((each.is_output, each.number), each.copied_bytes or 0) for each in spec.buffers)
    reads = dict[int, Read]()
    for number, operand in enumerate(operands):
        size = sum(copied.get((False, number), ()))
        if operand is not None and size and operand.id not in reads:
            once, is_here = min(size, size_of(operand.shape)), operand.shape.layout.memory_space == _HBM
            streams = size // once if is_here and once else 0
            reads[operand.id] = Read(printable(text(operand.name)), number, once, streams)
    written = [sum(copied.get((True, number), ())) for number in range(len(results))]
    places = zip(results, written, strict=True)
    return tuple(reads.values()), tuple(size if shape.layout.memory_space == _HBM else 0 for shape, size in places)


def writes_of(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> tuple[int, ...]:
    """Bytes of each array that an instruction writes to HBM, 0 for one elsewhere.

    Of an update in place that is its slice, of what a fusion hands on nothing.
    """
    root = _origin(module, proto, (b"fusion", b"bitcast"))
    parts = [(shape, root) for shape in proto.shape.tuple_shapes or (proto.shape,)]
    if root is not None and root.opcode == b"tuple":
        through = (b"fusion", b"bitcast", b"get-tuple-element")
        made = [_origin(module, operand, through) for operand in module.operand_protos(root)]
        parts = list(zip(proto.shape.tuple_shapes, made, strict=True))
    is_new = [shape.layout.memory_space == _HBM for shape, _ in parts]
    if begins(module, proto) and len(parts) > 1:  # one part is its result, the others are what it is given
        is_first = not any(_result_bytes(start) for start in _asynchronous_operands(module, proto))
        is_new = [is_here and place == result_part(proto) and is_first for place, is_here in enumerate(is_new)]
    most = _most_of_parts(module, proto) if proto.opcode in _ASYNCHRONOUS else None
    sizes = (_written(module, made, size_of(shape), is_fused=root is not proto) for shape, made in parts)
    sizes = (size if most is None else min(size, most) for size in sizes)
    return tuple(size if is_here else 0 for size, is_here in zip(sizes, is_new, strict=True))


def _most_of_parts(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> int | None:
    """Bytes that an asynchronous operation moves of an array at most, where it takes parts of it; else None.

    A gather reads no more of each operand than it gives, a scatter moves no more than its smaller operands have.
    """
    waiting, entered, opcodes = [*module.inside(proto)], {proto.id}, set[bytes]()
    while waiting:
        each = waiting.pop()
        opcodes.add(each.opcode)
        if each.id not in entered:
            entered.add(each.id)
            for number in each.called_computation_ids:
                computation = module.computation(number)
                waiting += () if computation is None else computation.instructions
    if not opcodes & _PARTS:
        return None
    begun = _asynchronous_operands(module, proto)
    given = [size_of(one.shape) for one in module.operand_protos(proto) if one is not None and one not in begun]
    return sum(given) - max(given, default=0) if opcodes & {*_UPDATES} else _result_bytes(proto)


def _asynchronous_operands(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> list[hlo_pb2.HloInstructionProto]:
    """The operands that are asynchronous operations: the start, of one that is begun without operands and updated."""
    return [one for one in module.operand_protos(proto) if one is not None and one.opcode in _ASYNCHRONOUS]


def result_part(proto: hlo_pb2.HloInstructionProto) -> int:
    """Which part of the tuple of what begins an asynchronous operation is its result."""
    return 0 if proto.opcode == b"copy-start" else 1


def _result_bytes(proto: hlo_pb2.HloInstructionProto) -> int:
    """The size of an asynchronous operation's result, which stands behind what it is given."""
    parts = proto.shape.tuple_shapes
    return size_of(parts[1]) if len(parts) > 1 else 0


def _written(module: HloModule, made: hlo_pb2.HloInstructionProto | None, whole: int, *, is_fused: bool) -> int:
    """Bytes that are written of an array by what makes it."""
    if made is not None and (made.opcode == b"parameter" or made.custom_call_target == _ENDS):
        return 0
    if made is None or made.opcode not in _UPDATES:
        return whole
    base, values = (module.operand_protos(made)[place] for place in (0, _UPDATES[made.opcode]))
    base = _origin(module, base, (b"bitcast", *_UPDATES))
    is_made_here = is_fused and (base is None or base.opcode != b"parameter")
    return whole if values is None or is_made_here else min(whole, size_of(values.shape))


def _origin(
    module: HloModule, value: hlo_pb2.HloInstructionProto | None, through: Collection[bytes]
) -> hlo_pb2.HloInstructionProto | None:
    """Where a value comes from, past instructions of some kinds."""
    for _ in range(_DEEPEST):
        if value is None or value.opcode not in through:
            break
        inside = module.wrapped(value)
        value = module.instruction_by_id(value.operand_ids[0] if inside is None else inside.root_id)
    return value


def size_of(proto: hlo_pb2.ShapeProto) -> int:
    """Bytes of an array in memory, padding included where it is known; of a tuple those of its arrays."""
    return _encoded_size(proto.SerializeToString())


@lru_cache(1 << 12)
def _encoded_size(encoded: bytes) -> int:
    """The same of an encoded shape: few shapes make up a module, and to encode one is quicker than to size it."""
    proto = hlo_pb2.ShapeProto.FromString(encoded)
    shape = shape_of_proto(proto)
    whole = 0 if shape is None else shape.memory_bytes or 0
    return whole + sum(map(size_of, proto.tuple_shapes))
