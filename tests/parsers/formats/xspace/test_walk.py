"""What stands before a message gives its size."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.formats.xspace.core.fuzz_core import varint
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.walk import message_at, sizes_before

SIZES = st.sampled_from([0, 1, 127, 128, 200, 16_383, 16_384, 70_000])


@given(st.lists(st.tuples(SIZES, st.integers(0, 4), st.sampled_from([4, 200]), st.sampled_from([0, 0x7F, 0xFF]))))
def test_messages_between_any_bytes(messages: list[tuple[int, int, int, int]]) -> None:
    data, places = bytearray(), []
    for size, more, number, filled in messages:
        data += varint(number << 3 | 2) + varint(size, more)
        places.append(len(data))
        data += bytes([filled]) * size
    found = sizes_before(bytes(data), np.array(places, np.int64))
    assert found.tolist() == [size for size, *_ in messages]
    source = MemorySource(bytes(data))
    for (size, _, _, filled), place in zip(messages, places, strict=True):
        assert message_at(source, place) == bytes([filled]) * size
