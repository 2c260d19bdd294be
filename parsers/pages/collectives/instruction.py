"""What the compiler says of a collective op: its kind, its groups, how much data it has.

An op's text in a profile has most of it. A fusion of a collective does not, nor its halves when it is asynchronous:
there the compiled HLO is asked, where the profile holds it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from tpuprof.parsers.base.op_class import COLLECTIVE_KINDS
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.shapes import shape_text, shapes_in
from tpuprof.parsers.ops.device import kind_by_name
from tpuprof.parsers.pages.collectives.bandwidth import payload_bytes
from tpuprof.parsers.steps.boundaries.replica_groups import ALL, ReplicaGroups, groups_in, groups_of

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import HloModule
    from tpuprof.parsers.formats.proto import hlo_pb2

PARTITION_ID = "partition-id"
"""The category of ops that `op_class` takes for collectives although they move nothing."""

_SUMMED_AND_CUT = "all-reduce-scatter"
_OPCODE = pattern(r" ([a-z][a-z0-9-]*)\(")
_OPERAND = pattern(r"%([^\s,)]+)")
_HALF = pattern(r"-(start|done|update)(\.|\Z)")

_RENDEZVOUS = "_xla_host_transfer_rendezvous"
_TRANSFER_TYPE = "_xla_megascale_transfer_type"


@dataclass(frozen=True, slots=True)
class CollectiveInstruction:
    """A collective op as the compiler wrote it.

    Attributes:
        kind: ``all-gather``; of what is fused, what it fuses, where that is known.
        role: ``start`` or ``done`` for a half of an asynchronous one; empty for a whole one.
        waits_for: the op that a ``done`` ends; empty where unknown.
        groups: None where unknown.
        result_bytes: of its result's arrays; None where unknown.
    """

    kind: str
    role: str
    waits_for: str
    groups: ReplicaGroups | None
    result_bytes: int | None

    @property
    def payload(self) -> int | None:
        if self.result_bytes is None or (self.kind == "reduce-scatter" and not (self.groups and self.groups.count)):
            return None
        return payload_bytes(self.kind, self.result_bytes, self.groups.size if self.groups else 0)


def read_instruction(category: str, name: str, text: str, module: HloModule | None) -> CollectiveInstruction:
    """Reads a collective op.

    Args:
        text: its HLO text.
        module: its program, where the profile holds it.
    """
    head, _, rest = text.partition(" = ")
    name = head.lstrip("%") if rest else name
    match = _OPCODE.search(f" {rest}" if rest else "")
    opcode = match[1] if match is not None else ""
    half = _HALF.search(opcode) or _HALF.search(name)
    role = half[1] if half is not None and half[1] != "update" else ""
    kind = _HALF.sub("", opcode)
    groups, inner, waits_for = groups_in(rest), None, ""
    if module is not None and (kind not in COLLECTIVE_KINDS or groups is None or role == "done"):
        proto = module.instruction_proto(name)
        start = _started(module, proto) if proto is not None and role == "done" else proto
        waits_for = start.name.decode(errors="replace") if start is not None and start is not proto else ""
        inner = _collective(module, start) or _collective(module, proto)
        if inner is not None:
            kind, groups = _HALF.sub("", inner.opcode.decode(errors="replace")), groups_of(inner) or groups
    if role == "done" and not waits_for:
        after = _OPERAND.search(rest, match.end() - 1) if match is not None and opcode != "fusion" else None
        waits_for = after[1] if after is not None else name.replace("-done", "-start")
    if kind not in COLLECTIVE_KINDS:
        kind = kind_by_name(category, name)
    if groups is None and role != "done" and "replica_groups={}" in rest:
        groups = ALL
    # the result of a whole op or of the end of one is the data; that of a start holds buffers and flags besides
    shape = rest[: match.start()] if match is not None and role != "start" else ""
    if inner is not None and not role and opcode == "fusion":
        shape = shape_text(inner.shape)
    result = _bytes(shape)
    if category.startswith(_SUMMED_AND_CUT):
        # an all-reduce of which each device keeps its part; it is carried out as a reduce-scatter
        size = groups.size if groups is not None and groups.count else 0
        kind, result = "reduce-scatter", result // size if result is not None and inner is not None and size else None
    return CollectiveInstruction(kind, role, waits_for, groups, result)


@lru_cache(maxsize=1024)
def _bytes(shape: str) -> int | None:
    arrays = (found.shape for found in shapes_in(shape))
    sizes = [array.unpadded_bytes for array in arrays if array.element_type != "token"]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _started(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> hlo_pb2.HloInstructionProto | None:
    """The op whose end this one is: the first of what it reads, through the elements of tuples, that starts one."""
    for operand in module.operand_protos(proto):
        source = operand
        while source is not None and source.opcode == b"get-tuple-element":
            source = next(iter(module.operand_protos(source)), None)
        if source is not None and b"-start" in source.name + source.opcode:
            return source
    return None


def _collective(module: HloModule, proto: hlo_pb2.HloInstructionProto | None) -> hlo_pb2.HloInstructionProto | None:
    """The collective that an instruction is or wraps; None where it has none, or several kinds."""
    if proto is None:
        return None
    if _kind(proto) in COLLECTIVE_KINDS:
        return proto
    inside = module.wrapped(proto)
    found = [] if inside is None else [each for each in inside.instructions if _kind(each) in COLLECTIVE_KINDS]
    return found[0] if len(set(map(_kind, found))) == 1 else None


def _kind(proto: hlo_pb2.HloInstructionProto) -> str:
    return _HALF.sub("", proto.opcode.decode(errors="replace"))


# --- between slices


@dataclass(frozen=True, slots=True)
class SliceTransfer:
    """A send or receive between slices, one of the four ops of a collective over the data centre's network.

    Attributes:
        opcode: ``send``, ``send-done``, ``recv``, ``recv-done``.
        rendezvous: the collective's name; empty where only the channel identifies it.
        channel: 0 where it has none.
        transfer_type: as megascale writes it, ``ALL_REDUCE``; empty where it is not recorded.
        buffer_bytes: bytes of the op's result, of a tuple those of all its parts; 0 where unknown, as in XProf.
    """

    opcode: str
    rendezvous: str
    channel: int
    transfer_type: str
    buffer_bytes: int


def read_slice_transfer(text: str, proto: hlo_pb2.HloInstructionProto | None) -> SliceTransfer:
    """Reads one, from its compiled instruction where there is one, else from its text."""
    if proto is None:
        shape = text.partition(" = ")[2]
        match = _OPCODE.search(f" {shape}")
        channel = re.search(r"channel_id=(\d{1,18})", text)
        named = re.search(rf'{_RENDEZVOUS}="?([^",}}]{{1,400}})', text)
        kind = re.search(rf'{_TRANSFER_TYPE}="?([A-Z_]{{1,40}})', text)
        return SliceTransfer(
            match[1] if match is not None else "",
            named[1] if named is not None else "",
            int(channel[1]) if channel is not None else 0,
            kind[1] if kind is not None else "",
            (_bytes(shape[: match.start()]) or 0) if match is not None else 0,
        )
    attributes = proto.frontend_attributes.map

    def attribute(key: str) -> str:
        return attributes[key].decode(errors="replace") if key in attributes else ""

    return SliceTransfer(
        proto.opcode.decode(errors="replace"),
        attribute(_RENDEZVOUS),
        proto.channel_id,
        attribute(_TRANSFER_TYPE),
        _bytes(shape_text(proto.shape)) or 0,
    )
