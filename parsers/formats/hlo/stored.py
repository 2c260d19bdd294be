"""Reads a compiled module out of the bytes of a profile."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2


def read_stored(body: bytes, begin: int, length: int, label: str) -> HloModule | str:
    """The module, or a sentence that says why there is none.

    Args:
        body: holds the encoded `HloProto`, `length` bytes from `begin` on.
        label: how the sentence calls the program.
    """
    try:
        proto = hlo_pb2.HloProto.FromString(body[begin : begin + length])
    except DecodeError:
        return f"The compiled HLO of {label} is damaged: its {length:,} bytes do not read as an HloProto."
    if not proto.hlo_module.computations:
        return f"The compiled HLO of {label} is empty: it has no computations."
    return HloModule(proto)
