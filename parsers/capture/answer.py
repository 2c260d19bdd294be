"""Reads what a profiler server sent, without copying or decoding the profile in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.text import examples
from tpuprof.parsers.formats.xspace.core.api import split_fields
from tpuprof.parsers.formats.xspace.core.types import OK
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.formats.xspace.walk import LEN, VARINT, varint

PROFILE_TOOL = "xplane.pb"
"""Name of the profile among the results of a TensorFlow before 2.5, which sends it where it is asked for."""

_TOOL_DATA, _EMPTY_TRACE, _XSPACE = 6, 7, 8  # fields of ProfileResponse
_NAME, _DATA = 1, 2  # fields of ProfileToolData
_DEVICE = "/device:"
_MOST_TOLD = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """A ProfileResponse.

    Attributes:
        profile: the bytes of the XSpace, a part of the response's; empty where it holds none.
        is_empty: the server says that it traced nothing.
    """

    profile: memoryview
    is_empty: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What a profile says without being decoded.

    Attributes:
        hostname: name of the host, as the server says; empty where it doesn't.
        notes: sentences on what the profile lacks.
    """

    hostname: str
    notes: tuple[str, ...]


def read_answer(response: bytes) -> Answer | None:
    """The parts of a serialized ProfileResponse; None for bytes that are none.

    Of several profiles the largest counts: no server sends more than one.
    """
    view = memoryview(response)
    fields = split_fields(view)
    if fields.status != OK or fields.next != len(view):
        return None
    found, is_empty = view[:0], False
    for number, wire, begin, end in zip(fields.number, fields.wire, fields.begin, fields.end, strict=True):
        payload = view[begin:end]
        if number == _EMPTY_TRACE and wire == VARINT:
            is_empty = varint(bytes(payload)) != 0
        elif number == _TOOL_DATA and wire == LEN:
            payload = _tool_data(payload)
        if number in (_TOOL_DATA, _XSPACE) and wire == LEN and len(payload) > len(found):
            found = payload
    return Answer(found, is_empty)


def _tool_data(message: memoryview) -> memoryview:
    """The profile in a ProfileToolData; nothing where it is something else."""
    fields = split_fields(message)
    parts = {}
    for wanted in (_NAME, _DATA):
        for at in np.flatnonzero((fields.number == wanted) & (fields.wire == LEN)):
            parts[wanted] = message[int(fields.begin[at]) : int(fields.end[at])]
    is_profile = bytes(parts.get(_NAME, b"")[:100]) == PROFILE_TOOL.encode()
    return parts.get(_DATA, message[:0]) if is_profile else message[:0]


def look_at(profile: memoryview | bytes) -> Look | None:
    """What there is to say of a profile; None for bytes that are none."""
    try:
        trace = Trace(MemorySource(profile, "the answer"))
    except ProfileError:
        return None
    if not trace.planes:
        return None
    notes = []
    if not any(plane.name.startswith(_DEVICE) for plane in trace.planes):
        notes.append("holds no device plane: no accelerator there, or nothing ran on it")
    told = [*trace.errors, *trace.warnings]
    if told:
        notes.append(f"the profiler says: {examples([line[:200] for line in told], _MOST_TOLD)}")
    return Look(trace.hostnames[0] if trace.hostnames else "", tuple(notes))
