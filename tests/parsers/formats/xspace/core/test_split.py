"""Splitting a message into its fields, with and without the compiled loops."""

from __future__ import annotations

import random
from dataclasses import fields as members
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.formats.xspace.core.fuzz_core import damaged, field, random_bytes, random_line, varint
from tests.parsers.formats.xspace.core.plain import MAX_INT64, Span, fields_of
from tpuprof.parsers.formats.xspace.core.types import INCOMPLETE, MALFORMED, OK, Fields


def plain(fields: Fields) -> tuple[list[Span], int, int]:
    columns = (fields.number, fields.wire, fields.begin, fields.end)
    assert [column.dtype for column in columns] == [np.uint32, np.uint8, np.int64, np.int64]
    return list(zip(*(column.tolist() for column in columns), strict=True)), fields.next, fields.status


def check(core: ModuleType, data: bytes, start: int = 0) -> Fields:
    """Compares with the reference, and gives the result."""
    found: Fields = core.split_fields(data, start)
    assert plain(found) == fields_of(data, start)
    return found


def assert_same(one: object, other: object) -> None:
    """Two results of the same class hold the same."""
    for attribute in members(one):  # type: ignore[arg-type]
        left, right = getattr(one, attribute.name), getattr(other, attribute.name)
        assert np.array_equal(left, right), attribute.name
        assert getattr(left, "dtype", None) == getattr(right, "dtype", None)


SAMPLE = (
    field(1, 0, varint(-1))
    + field(4, 2, bytes(200))
    + field(2, 1, bytes(8), padding=1)
    + field(3000, 5, bytes(4))
    + field((1 << 29) - 1, 2, b"abc", padding=3)
    + field(4, 2, b"")
)

WIRES = st.one_of(
    st.tuples(st.just(0), st.builds(varint, st.integers(0, (1 << 64) - 1), st.integers(0, 9))),
    st.tuples(st.just(1), st.binary(min_size=8, max_size=8)),
    st.tuples(st.just(2), st.binary(max_size=200)),
    st.tuples(st.just(5), st.binary(min_size=4, max_size=4)),
)
NUMBERS = st.one_of(st.integers(1, 20), st.integers(1, (1 << 29) - 1))
FIELDS = st.lists(st.tuples(NUMBERS, WIRES, st.integers(0, 9)), max_size=60)


@given(FIELDS)
def test_fields_are_found_as_they_were_written(
    core: ModuleType, written: list[tuple[int, tuple[int, bytes], int]]
) -> None:
    data, expected = b"", []
    for number, (wire, payload), padding in written:
        data += field(number, wire, payload, padding, longest=10)
        expected.append((number, wire, len(data) - len(payload), len(data)))
    assert plain(core.split_fields(data)) == (expected, len(data), OK)


def test_truncation_at_every_byte(core: ModuleType) -> None:
    statuses = [check(core, SAMPLE[:n]).status for n in range(len(SAMPLE) + 1)]
    assert statuses[0] == OK
    assert set(statuses) == {OK, INCOMPLETE}


def test_every_start(core: ModuleType) -> None:
    for start in range(len(SAMPLE) + 1):
        check(core, SAMPLE, start)


@given(st.binary(max_size=80))
def test_any_bytes(core: ModuleType, data: bytes) -> None:
    check(core, data)


def test_damaged_lines(core: ModuleType) -> None:
    rng = random.Random(5)
    statuses = set()
    for _ in range(200):
        statuses.add(check(core, random_bytes(rng)).status)
        data = random_line(rng, 60)
        data = damaged(rng, data)
        statuses.add(check(core, data, rng.randint(0, len(data)) if rng.random() < 0.3 else 0).status)
    assert statuses == {OK, INCOMPLETE, MALFORMED}


@pytest.mark.parametrize(
    ("field_bytes", "status"),
    [
        (b"\x0b", MALFORMED),  # wire types 3 and 7
        (b"\x0f", MALFORMED),
        (b"\x00\x01", MALFORMED),  # field number 0
        (b"\x80\x00", MALFORMED),
        (b"\xf8\xff\xff\xff\x0f\x01", OK),  # the greatest field number
        (b"\x80\x80\x80\x80\x10\x01", MALFORMED),  # one more
        (b"\x88\x80\x80\x80\x80\x00\x01", MALFORMED),  # a tag of six bytes
        (b"\x88\x80\x80\x80", INCOMPLETE),
        (b"\x08" + b"\xff" * 9 + b"\x7f", OK),  # ten bytes
        (b"\x08" + b"\xff" * 10 + b"\x00", MALFORMED),  # eleven
        (b"\x08" + b"\xff" * 9, INCOMPLETE),
        (b"\x08", INCOMPLETE),
        (b"\x09" + bytes(7), INCOMPLETE),
        (b"\x22\x80", INCOMPLETE),
        (b"\x22" + varint(MAX_INT64 - (1 << 20)), OK),  # a payload far past the end
        (b"\x22" + varint(MAX_INT64), MALFORMED),  # would end beyond the greatest offset
        (b"\x22" + varint(1 << 63), MALFORMED),
        (b"\x22" + b"\x81" + b"\x80" * 8 + b"\x00", OK),  # length 1 in ten bytes
        (b"\x22" + b"\x81" + b"\x80" * 8 + b"\x02", MALFORMED),  # bit 64
        (b"\x22" + b"\x80" * 10, MALFORMED),
    ],
)
@pytest.mark.parametrize("before", [0, 3, 200])
def test_what_is_no_field(core: ModuleType, field_bytes: bytes, status: int, before: int) -> None:
    """Alone, behind fields, and between them."""
    head = field(4, 2, bytes(20)) * before
    for tail in (b"", head) if before and status != INCOMPLETE else (b"",):
        found = check(core, head + field_bytes + tail)
        if not tail:
            assert found.status == status
            assert len(found.number) == before + (status == OK)


def test_long_fields(core: ModuleType) -> None:
    """Lengths of two bytes, varints of nine, and more fields than the first columns have room for."""
    rng = random.Random(2)
    check(core, b"".join(field(4, 2, rng.randbytes(rng.randrange(300))) for _ in range(500)))
    check(core, b"".join(field(rng.choice((4, 40)), 0, varint(rng.getrandbits(62))) for _ in range(2000)))
    check(core, b"".join(field(4, 2, bytes(rng.randrange(2000))) for _ in range(200)))


def test_kinds_of_buffers(core: ModuleType) -> None:
    expected = core.split_fields(SAMPLE)
    array = np.frombuffer(SAMPLE, np.uint8)
    for buf in (bytearray(SAMPLE), memoryview(SAMPLE), array, array.copy(), memoryview(b"x" + SAMPLE)[1:]):
        assert_same(core.split_fields(buf), expected)
    for empty in (b"", bytearray(), memoryview(b""), array[:0]):
        assert plain(core.split_fields(empty)) == ([], 0, OK)


@pytest.mark.parametrize("start", [-1, len(SAMPLE) + 1, -(1 << 63), 1 << 70])
def test_a_start_outside_is_refused(core: ModuleType, start: int) -> None:
    with pytest.raises(ValueError):
        core.split_fields(SAMPLE, start)


def test_what_is_no_row_of_bytes_is_refused(core: ModuleType) -> None:
    for buf in (np.zeros(4, np.int64), np.zeros((2, 2), np.uint8), np.zeros(8, np.uint8)[::2], memoryview(SAMPLE)[::2]):
        with pytest.raises(ValueError):
            core.split_fields(buf)
