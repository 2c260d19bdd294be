"""Picking stats out of messages, with and without the compiled loops."""

from __future__ import annotations

import random
import struct
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.parsers.formats.xspace.core.fuzz_core import damaged, field, random_event, random_stat, varint
from tests.parsers.formats.xspace.core.plain import WIRE, Cell, stats_by_protobuf, stats_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XEvent, XEventMetadata, XPlane
from tpuprof.parsers.formats.xspace.core.types import KIND_ABSENT


def in_one_buffer(bodies: list[bytes], gap: bytes) -> tuple[bytes, NDArray[np.int64], NDArray[np.int64]]:
    """Bodies with something between them, and where each begins and ends."""
    sizes = np.array([len(body) for body in bodies], np.int64)
    end = np.cumsum(len(gap) + sizes)
    return gap + b"".join(body + gap for body in bodies), end - sizes, end


def pick(
    core: ModuleType, bodies: list[bytes], stats_field: int, wanted: list[int], gap: bytes = b""
) -> list[list[Cell]]:
    """Cells of each body; they lie in one buffer with something between them."""
    buf, begin, end = in_one_buffer(bodies, gap)
    found = core.stat_columns(buf, begin, end, stats_field, np.array(wanted, np.int64))
    assert [column.dtype for column in (found.kind, found.value, found.length)] == [np.uint8, np.int64, np.int64]
    assert found.kind.shape == found.value.shape == found.length.shape == (len(wanted), len(bodies))
    table = []
    for i in range(len(bodies)):
        row: list[Cell] = []
        for kind, value, length in zip(found.kind[:, i], found.value[:, i], found.length[:, i], strict=True):
            if WIRE.get(int(kind)) == 2:
                assert begin[i] <= value <= value + length <= end[i]
                row.append((int(kind), bytes(buf[value : value + length])))
            else:
                assert length == 0
                row.append((int(kind), int(value)))
        table.append(row)
    return table


PADDING = st.sampled_from([0, 0, 1, 9])
NUMBER = st.one_of(st.integers(0, 5), st.integers(-(1 << 63), (1 << 64) - 1))
PART = st.one_of(
    st.builds(field, st.just(1), st.just(0), st.builds(varint, st.one_of(st.integers(0, 3), NUMBER), PADDING), PADDING),
    st.builds(field, st.sampled_from([3, 4, 7, 11]), st.just(0), st.builds(varint, NUMBER, PADDING), PADDING),
    st.builds(field, st.sampled_from([2, 12]), st.just(1), st.binary(min_size=8, max_size=8), PADDING),
    st.builds(field, st.sampled_from([5, 6, 8, 13]), st.just(2), st.binary(max_size=140), PADDING),
    # wire types that are not the field's
    st.builds(field, st.integers(1, 8), st.just(5), st.binary(min_size=4, max_size=4), PADDING),
    st.builds(field, st.sampled_from([2, 5, 6, 8]), st.just(0), st.builds(varint, NUMBER), PADDING),
    st.builds(field, st.sampled_from([1, 2, 3, 4, 7]), st.just(2), st.binary(max_size=4), PADDING),
)
STAT = st.lists(PART, max_size=4).map(b"".join)
BODY = st.lists(
    st.one_of(
        st.builds(field, st.just(4), st.just(2), STAT, PADDING),
        st.builds(field, st.sampled_from([1, 2, 3, 5]), st.just(0), st.builds(varint, NUMBER), PADDING),
        st.builds(field, st.just(9), st.just(2), st.binary(max_size=20), PADDING),
    ),
    max_size=6,
).map(b"".join)
WANTED = st.lists(st.one_of(st.integers(0, 5), st.integers(-(1 << 63), (1 << 63) - 1)), max_size=5, unique=True)


def without_nan_bits(cells: list[list[Cell]]) -> list[list[Cell]]:
    """Not-a-numbers may lose their payload bits on their way through Python's float."""

    def plain(cell: Cell) -> Cell:
        kind, value = cell
        if kind == 2 and isinstance(value, int) and np.isnan(np.array([value], np.int64).view(np.float64)[0]):
            return kind, -1
        return cell

    return [[plain(cell) for cell in row] for row in cells]


class TestAgainstProtobuf:
    @given(st.lists(BODY, min_size=1, max_size=6), WANTED, st.sampled_from([b"", b"\xff" * 20, b"\x01" * 20]))
    def test_messages(self, core: ModuleType, bodies: list[bytes], wanted: list[int], gap: bytes) -> None:
        expected = [stats_by_protobuf(XEvent.FromString(body), wanted) for body in bodies]
        assert without_nan_bits(pick(core, bodies, 4, wanted, gap)) == without_nan_bits(expected)

    @pytest.mark.parametrize(("kind", "stats_field"), [(XEventMetadata, 5), (XPlane, 6)])
    def test_stats_of_metadata_and_planes(
        self, core: ModuleType, kind: type[XEventMetadata | XPlane], stats_field: int
    ) -> None:
        message = kind(id=3, name=b"x")
        for stat_id in range(5):
            message.stats.add(metadata_id=stat_id, str_value=b"v" * stat_id)
        message.stats.add(metadata_id=7, double_value=2.5)
        body = message.SerializeToString()
        expected = stats_by_protobuf(message, [7, 3, 9])
        assert expected[0][0] == 2
        assert pick(core, [body], stats_field, [7, 3, 9]) == [expected]
        assert pick(core, [body] * 50, stats_field, [7, 3, 9]) == [expected] * 50


def test_truncation_at_every_byte(core: ModuleType) -> None:
    stats = [field(1, 0, b"\x05") + field(3, 0, b"\x81\x01"), field(1, 0, b"\x06") + field(5, 2, b"abc", 1)]
    body = field(4, 2, stats[0]) + field(1, 0, varint(-1)) + field(4, 2, stats[1])
    for n in range(len(body) + 1):
        for gap in (b"", b"\x01" * 20):
            assert pick(core, [body[:n]], 4, [5, 6], gap) == [stats_of(body[:n], 4, [5, 6])]


def test_damaged_messages(core: ModuleType) -> None:
    rng = random.Random(3)
    wanted = [0, 1, 2, 3, 4, -1]
    bodies = [damaged(rng, random_event(rng)) for _ in range(1000)]
    found = pick(core, bodies, 4, wanted, b"\x22\x03\x08")
    assert found == [stats_of(body, 4, wanted) for body in bodies]
    assert {cell[0] for row in found for cell in row} == set(range(9))


@given(st.lists(st.binary(max_size=60), max_size=40), st.sampled_from([1, 4, 20]))
def test_any_bytes(core: ModuleType, bodies: list[bytes], stats_field: int) -> None:
    wanted = [0, 1, 2, -1]
    assert pick(core, bodies, stats_field, wanted) == [stats_of(body, stats_field, wanted) for body in bodies]


def test_messages_with_many_stats(core: ModuleType) -> None:
    rng = random.Random(8)
    wanted = [4, 1, 77]
    many = b"".join(field(4, 2, random_stat(rng)) for _ in range(600)) + field(4, 2, field(1, 0, varint(77)))
    long_stat = field(4, 2, field(4, 0, b"\x05") * 2100 + field(1, 0, varint(77)) + field(7, 0, b"\x06"))
    for body in (many, many + b"\x0b", many + b"\x22\x7fabc", long_stat, long_stat[:-1]):
        assert pick(core, [body], 4, wanted) == [stats_of(body, 4, wanted)]
    for value in (field(2, 1, struct.pack("<d", -1.5)), field(6, 2, b"abc"), field(3, 0, varint(-1))):
        body = field(4, 2, field(1, 0, varint(77)) + value)
        assert pick(core, [body], 4, wanted) == [stats_of(body, 4, wanted)]


@pytest.mark.parametrize("stats_field", [0, -1, 1 << 29, 1 << 61, -(1 << 63)])
def test_a_field_that_cannot_be(core: ModuleType, stats_field: int) -> None:
    assert pick(core, [field(4, 2, field(1, 0, b"\x05"))], stats_field, [5]) == [[(KIND_ABSENT, 0)]]


def test_an_id_wanted_twice_is_refused(core: ModuleType) -> None:
    with pytest.raises(ValueError):
        pick(core, [b"\x22\x00"], 4, [1, 1])


OUTSIDE: list[tuple[list[int], list[int]]] = [
    ([-1], [2]),
    ([0], [5]),
    ([3], [2]),
    ([5], [5]),
    ([-(1 << 63)], [4]),
    ([0], [(1 << 63) - 1]),
    ([0, 1], [1]),
    ([], [1]),
]


@pytest.mark.parametrize(("begin", "end"), OUTSIDE)
def test_spans_outside_the_bytes_are_refused(core: ModuleType, begin: list[int], end: list[int]) -> None:
    with pytest.raises(ValueError):
        core.stat_columns(b"\x08\x01\x10", np.array(begin, np.int64), np.array(end, np.int64), 4, np.array([1]))


def test_spans_that_are_no_integers_are_refused(core: ModuleType) -> None:
    with pytest.raises(ValueError):
        core.stat_columns(b"\x08\x01", np.array([0.0]), np.array([2.0]), 4, np.array([1]))
