"""Stats and breakdowns read without protobuf say what protobuf says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.formats.xspace.core.fuzz_core import field, varint
from tests.support.build import PlaneBuilder, present
from tpuprof.parsers.formats.proto.xplane_pb2 import MemoryAccessBreakdown, XSpace, XStat
from tpuprof.parsers.formats.xspace.metadata import decode_stat
from tpuprof.parsers.ops.op_metadata import TRAFFIC, MetadataStats, OpSource

numbers = st.integers(-(1 << 63), (1 << 64) - 1) | st.integers(0, 300)


@st.composite
def stat_bytes(draw: st.DrawFn) -> bytes:
    """Fields of a stat in any order and number, some unknown, some cut."""
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        number = draw(st.integers(1, 9))
        wire = draw(st.sampled_from([0, 1, 2, 5, *([{2: 1, 5: 2, 6: 2, 8: 2}.get(number, 0)] * 4)]))
        payload = varint(draw(numbers)) if wire == 0 else draw(st.binary(min_size=8, max_size=8))
        parts.append(field(number, wire, payload[:4] if wire == 5 else payload))
    whole = b"".join(parts)
    return whole[: len(whole) - draw(st.sampled_from([0, 0, 0, 1, 3]))]


@given(stat_bytes())
@settings(max_examples=3 * EXAMPLES)
def test_a_stat_is_what_protobuf_reads(data: bytes) -> None:
    try:
        expected = XStat.FromString(data)
    except DecodeError:
        assert decode_stat(data) is None
        return
    found = present(decode_stat(data))
    which = expected.WhichOneof("value")
    assert found[:2] == (expected.metadata_id, XStat.DESCRIPTOR.fields_by_name[which].number if which else 0)
    value = getattr(expected, which) if which else 0
    assert found[2] == value or (math.isnan(value) and math.isnan(found[2]))  # type: ignore[arg-type]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 1 << 40)), max_size=5), max_size=6
    ),
    st.sets(st.integers(0, 5)),
)
def test_traffic_is_what_the_breakdowns_say(ops: list[list[tuple[int, int, int]]], damaged: set[int]) -> None:
    plane = PlaneBuilder(XSpace(), "/device:TPU:0", 1)
    for number, accesses in enumerate(ops):
        message = MemoryAccessBreakdown()
        for operation, memory, size in accesses:
            message.memory_accessed.add(operation_type=operation, memory_space=memory, bytes_accessed=size)
        raw = message.SerializeToString() + (b"\x0a\x05\x08" if number in damaged else b"")
        plane.event_id(f"op.{number}", memory_access_breakdown=raw)
    core = plane.read()
    source = OpSource(core.event_metadata, core.stat_metadata)
    rows = core.event_metadata.rows(np.array(sorted(plane.plane.event_metadata), np.int64))
    found = MetadataStats(source, rows, ("memory_access_breakdown",)).memory_access()
    for number, accesses in enumerate(ops):
        if number in damaged:
            assert np.isnan(found[number]).all()
            continue
        expected = dict.fromkeys(TRAFFIC, 0)
        for operation, memory, size in accesses:
            way = {1: "read", 2: "write"}.get(operation)
            names = ["hbm"] if memory == 1 else [f"on_chip_{way}"] if way else []
            names += [f"{'cmem' if memory == 2 else 'vmem'}_{way}"] if way and memory in (2, 3) else []
            for name in names:
                expected[name] += size
        assert found[number].tolist() == pytest.approx(list(expected.values()))
