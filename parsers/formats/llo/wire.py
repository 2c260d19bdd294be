"""Fields of the messages that a schedule is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.errors import Damaged
from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.formats.xspace.metadata import Messages, split_all
from tpuprof.parsers.formats.xspace.walk import varints


def columns(messages: Sequence[bytes]) -> Messages:
    """The fields of messages of one kind.

    Raises:
        Damaged: one of them breaks off, or holds something that is not a field.
    """
    borders = np.zeros(len(messages) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)), out=borders[1:])
    fields = split_all(b"".join(messages), borders[:-1], borders[1:])
    if not fields.kept.all():
        raise Damaged("a message in it is cut or damaged")
    return fields


def packed(data: bytes) -> Int64s:
    """The numbers of a packed list, the low 63 bits of each."""
    raw = np.frombuffer(data, np.uint8)
    last = np.flatnonzero(raw < 0x80) + 1
    begin = np.concatenate([[0], last[:-1]]) if len(last) else last
    return varints(data, begin.astype(np.int64), np.minimum(last, begin + 9).astype(np.int64))


def signed(values: Int64s) -> Int64s:
    """Numbers that have their sign in the lowest bit."""
    return (values >> 1) ^ -(values & 1)
