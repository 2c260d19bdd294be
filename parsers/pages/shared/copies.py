"""Asynchronous copies: which ops start and end them, between which memories they go, and what they are for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tpuprof.parsers.formats.hlo.shapes import MOST_TEXT, shapes_in
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.memory.model import SPACE_NAMES
from tpuprof.parsers.ops.device import op_class

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import HloModule
    from tpuprof.parsers.formats.proto import hlo_pb2

TO_HOST, FROM_HOST, WITHIN_HBM = "HBM to host", "host to HBM", "HBM to HBM"
_HANDS_ON = frozenset((b"bitcast", b"get-tuple-element", b"tuple", b"opt-barrier"))
_MOST_READERS = 32  # that are looked at


def is_copy_half(category: str | None, name: str) -> bool:
    """Whether an op starts an asynchronous copy or waits for the end of one."""
    return (category or "").endswith(("-start", "-done")) and op_class(category, name) == "copy"


def route(expression: str) -> str:
    """Between which memories a copy goes, ``HBM to VMEM``, by the text of the op that ends it; empty without one.

    The first of the arrays in it is the result, and one of the others is what is copied.
    """
    spaces = [found.shape.memory_space for found in shapes_in(expression[:MOST_TEXT]) if found.shape.dimensions]
    if not spaces:
        return ""
    source = next((space for space in spaces if space != spaces[0]), spaces[0])
    return " to ".join(SPACE_NAMES.get(space, f"memory space {space}") for space in (source, spaces[0]))


def served(module: HloModule | None, done: str) -> str:
    """The framework op that a copy is for: that of what reads its result, else of what made the array.

    Empty where the profile does not hold the program, or the program does not say.

    Args:
        done: the op that ends the copy.
    """
    proto = None if module is None else module.instruction_proto(done)
    if module is None or proto is None:
        return ""
    made = next((each for each in module.operand_protos(proto) if each is not None), proto)
    makers = (each for each in module.operand_protos(made) if each is not None and each.opcode != b"parameter")
    found = (text(each.metadata.op_name) for each in (*_readers(module, proto), *makers))
    return next(filter(None, found), "")


def _readers(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> Iterator[hlo_pb2.HloInstructionProto]:
    """What reads a result, also behind instructions that only hand it on."""
    known, left = {proto.id}, [proto]
    while left and len(known) < _MOST_READERS:
        for user in module.users(left.pop(0).id):
            if user.id not in known:
                known.add(user.id)
                if user.opcode in _HANDS_ON:
                    left.append(user)
                else:
                    yield user
