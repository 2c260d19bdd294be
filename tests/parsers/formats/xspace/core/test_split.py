"""Splitting a message into its fields, on both cores."""

from __future__ import annotations

import random
from dataclasses import fields as fields_of

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.formats.xspace.core.fuzz_core import damaged, field, random_bytes, random_event, random_line, varint
from tpuprof.parsers.formats.xspace.core import numpy_core, split
from tpuprof.parsers.formats.xspace.core.types import INCOMPLETE, MALFORMED, OK, Core, Fields

Span = tuple[int, int, int, int]  # number, wire type, begin, end
MAX_INT64 = (1 << 63) - 1


class Broken(Exception):
    """Carries the status."""


def read_varint(data: bytes, at: int, most: int) -> tuple[int, int]:
    value, shift = 0, 0
    for _ in range(most):
        if at == len(data):
            raise Broken(INCOMPLETE)
        value += (data[at] % 128) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at
    raise Broken(MALFORMED)


def read_one(data: bytes, at: int) -> Span:
    """One field, written as plainly as the format allows."""
    tag, at = read_varint(data, at, 5)
    number, wire = divmod(tag, 8)
    if number == 0 or number >= 1 << 29 or wire in {3, 4, 6, 7}:
        raise Broken(MALFORMED)
    if wire == 2:
        length, at = read_varint(data, at, 10)
        if at + length > MAX_INT64:
            raise Broken(MALFORMED)
        return number, wire, at, at + length
    end = read_varint(data, at, 10)[1] if wire == 0 else at + {1: 8, 5: 4}[wire]
    if end > len(data):
        raise Broken(INCOMPLETE)
    return number, wire, at, end


def reference(data: bytes, at: int = 0) -> tuple[list[Span], int, int]:
    """Spans, next and status, as `split_fields` has them."""
    spans = []
    try:
        while at < len(data):
            spans.append(read_one(data, at))
            at = spans[-1][3]
    except Broken as broken:
        return spans, at, int(broken.args[0])
    return spans, at, OK


def plain(fields: Fields) -> tuple[list[Span], int, int]:
    columns = (fields.number, fields.wire, fields.begin, fields.end)
    assert [column.dtype for column in columns] == [np.uint32, np.uint8, np.int64, np.int64]
    return list(zip(*(column.tolist() for column in columns), strict=True)), fields.next, fields.status


def check(core: Core, data: bytes, start: int = 0) -> Fields:
    """Compares with the reference, and gives the result."""
    found = core.split_fields(data, start)
    assert plain(found) == reference(data, start)
    return found


def assert_same(one: object, other: object) -> None:
    """Two results of the same class hold the same."""
    for attribute in fields_of(one):  # type: ignore[arg-type]
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
def test_fields_are_found_as_they_were_written(core: Core, written: list[tuple[int, tuple[int, bytes], int]]) -> None:
    data, expected = b"", []
    for number, (wire, payload), padding in written:
        data += field(number, wire, payload, padding, longest=10)
        expected.append((number, wire, len(data) - len(payload), len(data)))
    assert plain(core.split_fields(data)) == (expected, len(data), OK)


def test_truncation_at_every_byte(core: Core) -> None:
    statuses = [check(core, SAMPLE[:n]).status for n in range(len(SAMPLE) + 1)]
    assert statuses[0] == OK
    assert set(statuses) == {OK, INCOMPLETE}


def test_every_start(core: Core) -> None:
    for start in range(len(SAMPLE) + 1):
        check(core, SAMPLE, start)


@given(st.binary(max_size=80))
def test_any_bytes(core: Core, data: bytes) -> None:
    check(core, data)


def test_damaged_lines(core: Core) -> None:
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
        (b"\x0b", MALFORMED),  # wire types 3, 4, 6, 7
        (b"\x0c", MALFORMED),
        (b"\x0e", MALFORMED),
        (b"\x0f", MALFORMED),
        (b"\x00\x01", MALFORMED),  # field number 0
        (b"\x02\x01a", MALFORMED),
        (b"\x80\x00", MALFORMED),
        (b"\xf8\xff\xff\xff\x0f\x01", OK),  # the greatest field number
        (b"\x80\x80\x80\x80\x10\x01", MALFORMED),  # one more
        (b"\x88\x80\x80\x80\x80\x00\x01", MALFORMED),  # a tag of six bytes
        (b"\x88\x80\x80\x80", INCOMPLETE),
        (b"\x08" + b"\xff" * 9 + b"\x7f", OK),  # ten bytes
        (b"\x08" + b"\xff" * 10 + b"\x00", MALFORMED),  # eleven
        (b"\x08" + b"\xff" * 10, MALFORMED),
        (b"\x08" + b"\xff" * 9, INCOMPLETE),
        (b"\x08", INCOMPLETE),
        (b"\x09" + bytes(7), INCOMPLETE),
        (b"\x0d" + bytes(3), INCOMPLETE),
        (b"\x22", INCOMPLETE),
        (b"\x22\x80", INCOMPLETE),
        (b"\x22" + varint(MAX_INT64 - (1 << 20)), OK),  # a payload far past the end
        (b"\x22" + varint(MAX_INT64), MALFORMED),  # would end beyond the greatest offset
        (b"\x22" + varint(1 << 63), MALFORMED),
        (b"\x22" + b"\x81" + b"\x80" * 8 + b"\x00", OK),  # length 1 in ten bytes
        (b"\x22" + b"\x81" + b"\x80" * 8 + b"\x02", MALFORMED),  # bit 64
        (b"\x22" + b"\x80" * 10, MALFORMED),
    ],
)
@pytest.mark.parametrize("before", [0, 3, 2000])
def test_what_is_no_field(core: Core, field_bytes: bytes, status: int, before: int) -> None:
    """Alone, behind a few fields, and far inside the bytes where the numpy core works on many fields at once."""
    head = field(4, 2, bytes(20)) * before
    for tail in (b"", field(4, 2, bytes(20)) * 2000) if before == 2000 and status != INCOMPLETE else (b"",):
        found = check(core, head + field_bytes + tail)
        if not tail:
            assert found.status == status
            assert len(found.number) == before + (status == OK)


def test_the_last_payload_may_pass_the_end(core: Core) -> None:
    found = check(core, b"\x08\x01\x22" + varint(5 << 30) + b"abc")
    assert (found.end[-1], found.next, found.status) == (8 + (5 << 30), 8 + (5 << 30), OK)


@pytest.mark.parametrize("seed", range(3))
def test_lines_longer_than_a_block(core: Core, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(split, "_BLOCK", 10_000)
    rng = random.Random(seed)
    assert len(check(core, random_line(rng, 1500)).number) == 1503
    for size in (150, 2500, 15_000, 35_000):  # one payload over regions and blocks
        middle = field(9, 2, rng.randbytes(size))
        check(core, random_line(rng, 600) + middle + random_line(rng, 600))


def test_nested_look_alikes(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """Payloads that are lines themselves keep a walk from a wrong place going."""
    rng = random.Random(9)
    inner = random_line(rng, 300)
    monkeypatch.setattr(split, "_FIELDS_A_REGION", 8)
    check(core, b"".join(field(4, 2, rng.choice((inner, inner[3:], random_event(rng)))) for _ in range(600)))
    two_bytes = bytes([0x08, 0x08]) * 20_000
    check(core, two_bytes + b"\x22\x01" * 9000)
    check(core, b"\x22\x01\x22" * 9000)


def test_long_fields(core: Core) -> None:
    """Lengths of two bytes, varints of nine, and of more than the numpy core walks together."""
    rng = random.Random(2)
    check(core, b"".join(field(4, 2, rng.randbytes(rng.randrange(300))) for _ in range(1500)))
    check(core, b"".join(field(rng.choice((4, 40)), 0, varint(rng.getrandbits(62))) for _ in range(3000)))
    check(core, b"".join(field(4, 2, bytes(rng.randrange(3000))) for _ in range(200)))


def test_numpy_follows_few_fields_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    one = split._next

    def counted(view: memoryview, at: int) -> int:
        calls.append(at)
        return one(view, at)

    monkeypatch.setattr(split, "_next", counted)
    assert len(numpy_core.split_fields(random_line(random.Random(1), 3000) * 10).number) == 30_030
    assert len(calls) < 3000


def test_kinds_of_buffers(core: Core) -> None:
    expected = core.split_fields(SAMPLE)
    array = np.frombuffer(SAMPLE, np.uint8)
    for buf in (bytearray(SAMPLE), memoryview(SAMPLE), array, array.copy(), memoryview(b"x" + SAMPLE)[1:]):
        assert_same(core.split_fields(buf), expected)
    for empty in (b"", bytearray(), memoryview(b""), array[:0]):
        assert plain(core.split_fields(empty)) == ([], 0, OK)


@pytest.mark.parametrize("start", [-1, len(SAMPLE) + 1, -(1 << 63), 1 << 70])
def test_a_start_outside_is_refused(core: Core, start: int) -> None:
    with pytest.raises(ValueError):
        core.split_fields(SAMPLE, start)


def test_what_is_no_row_of_bytes_is_refused(core: Core) -> None:
    for buf in (np.zeros(4, np.int64), np.zeros((2, 2), np.uint8), np.zeros(8, np.uint8)[::2], memoryview(SAMPLE)[::2]):
        with pytest.raises(ValueError):
            core.split_fields(buf)  # type: ignore[arg-type]
