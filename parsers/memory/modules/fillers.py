"""Which op fills a buffer that a loop writes slice by slice: by the HLO's uses, since nothing says so where it is made.

What `lax.scan` keeps of each iteration lies in one array. The compiler sets it aside empty, as a custom call without
any op, and each iteration puts its slice there (``dynamic-update-slice``, mostly inside a fusion). These are different
values at one address: the logical buffers that the buffer assignment puts at the same offset of the same allocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.modules.assignment import LogicalBuffers

_UPDATE = b"dynamic-update-slice"
_MOVES = frozenset(
    (b"bitcast", b"bitcast-convert", b"broadcast", b"convert", b"copy", b"reshape", b"slice", b"transpose", b"pad")
)
_MOST_STEPS = 12

_Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Filler:
    """What a loop puts into a buffer.

    Attributes:
        instruction: that computes a slice, as far as the HLO shows.
        slices: how many there are: the buffer's leading dimension.
    """

    instruction: hlo_pb2.HloInstructionProto
    slices: int


class Fillers:
    """The ops that fill buffers, found when the first one is asked for."""

    def __init__(self, hlo: HloModule, buffers: LogicalBuffers) -> None:
        self._hlo = hlo
        self._buffers = buffers
        self._by_place: dict[_Place, Filler] | None = None

    def of(self, row: int) -> Filler | None:
        """What fills the place of a logical buffer, by row; None where no loop does."""
        if self._by_place is None:
            self._by_place = {}
            for other, proto in enumerate(self._buffers.protos):
                found = self._filler(proto)
                if found is not None:
                    self._by_place.setdefault(self._place(other), found)
        return self._by_place.get(self._place(row))

    def _place(self, row: int) -> _Place:
        buffers = self._buffers
        return int(buffers.allocation[row]), int(buffers.offset_bytes[row]), int(buffers.size_bytes[row])

    def _filler(self, proto: hlo_pb2.LogicalBufferProto) -> Filler | None:
        """What a logical buffer is filled with, where it is the result of an update of a slice."""
        made = self._hlo.instruction_by_id(proto.defined_at.instruction_id)
        if made is None or made.opcode not in (_UPDATE, b"fusion"):
            return None
        fusion = made if made.opcode == b"fusion" else None
        update = made if fusion is None else self._updated(made, proto.defined_at.shape_index)
        piece = self._hlo.instruction_by_id(update.operand_ids[1]) if update and len(update.operand_ids) > 1 else None
        if update is None or piece is None:
            return None
        whole, part = list(update.shape.dimensions), list(piece.shape.dimensions)
        if len(whole) < 2 or part != [1, *whole[1:]]:
            return None
        source = next((each for each in self._sources(piece, fusion) if each.metadata.op_name), update)
        return Filler(source, whole[0])

    def _updated(self, made: hlo_pb2.HloInstructionProto, index: Iterable[int]) -> hlo_pb2.HloInstructionProto | None:
        """The update of a slice that is a fusion's result, or an element of it; None where that is something else."""
        inside = self._hlo.wrapped(made)
        if inside is None or not any(each.opcode == _UPDATE for each in inside.instructions):
            return None
        root = self._hlo.instruction_by_id(inside.root_id)
        for place in index:
            if root is None or root.opcode != b"tuple" or place >= len(root.operand_ids):
                return None
            root = self._hlo.instruction_by_id(root.operand_ids[place])
        while root is not None and root.opcode in _MOVES and root.operand_ids:
            root = self._hlo.instruction_by_id(root.operand_ids[0])
        return root if root is not None and root.opcode == _UPDATE else None

    def _sources(
        self, piece: hlo_pb2.HloInstructionProto, fusion: hlo_pb2.HloInstructionProto | None
    ) -> Iterator[hlo_pb2.HloInstructionProto]:
        """What computes a slice, the first that is more than a move, a cast or a reshape; then what is on the way."""
        way = []
        current: hlo_pb2.HloInstructionProto | None = piece
        for _ in range(_MOST_STEPS):
            if current is None:
                break
            if (
                current.opcode == b"parameter"
                and fusion is not None
                and current.parameter_number < len(fusion.operand_ids)
            ):
                current, fusion = self._hlo.instruction_by_id(fusion.operand_ids[current.parameter_number]), None
                continue
            way.append(current)
            if current.opcode == b"get-tuple-element" or current.opcode in _MOVES:
                current = self._hlo.instruction_by_id(current.operand_ids[0]) if current.operand_ids else None
                continue
            break
        yield from reversed(way)
