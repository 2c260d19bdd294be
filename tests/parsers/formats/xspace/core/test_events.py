"""Decoding the plain fields of events, on both cores."""

from __future__ import annotations

import random

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.parsers.formats.xspace.core.fuzz_core import damaged, field, random_event, varint
from tests.parsers.formats.xspace.core.test_split import Broken, read_one, read_varint
from tpuprof.parsers.formats.proto.xplane_pb2 import XEvent
from tpuprof.parsers.formats.xspace.core import numpy_core, words
from tpuprof.parsers.formats.xspace.core.types import EVENT_MALFORMED, HAS_OCCURRENCES, HAS_OFFSET, Core

Decoded = tuple[int, int, int, int]  # metadata id, offset or occurrences, duration, flags


def signed(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def reference(body: bytes) -> Decoded:
    """An event as `decode_events` has it, one field after the other."""
    values = {1: 0, 2: 0, 3: 0}
    flags, at = 0, 0
    try:
        while at < len(body):
            number, wire, begin, at = read_one(body, at)
            if at > len(body):
                raise Broken
            if wire == 0 and number in {1, 2, 3, 5}:
                values[2 if number == 5 else number] = signed(read_varint(body, begin, 10)[0])
                flags = {2: HAS_OFFSET, 5: HAS_OCCURRENCES}.get(number, flags)
    except Broken:
        flags |= EVENT_MALFORMED
    return values[1], values[2], values[3], flags


def by_protobuf(body: bytes) -> Decoded:
    event = XEvent.FromString(body)
    held = event.WhichOneof("data")
    flags = {None: 0, "offset_ps": HAS_OFFSET, "num_occurrences": HAS_OCCURRENCES}[held]
    return event.metadata_id, event.offset_ps or event.num_occurrences, event.duration_ps, flags


def in_one_buffer(bodies: list[bytes], gap: bytes) -> tuple[bytes, NDArray[np.int64], NDArray[np.int64]]:
    """Bodies with something between them, and where each begins and ends."""
    sizes = np.array([len(body) for body in bodies], np.int64)
    end = np.cumsum(len(gap) + sizes)
    return gap + b"".join(body + gap for body in bodies), end - sizes, end


def decode(core: Core, bodies: list[bytes], gap: bytes = b"") -> list[Decoded]:
    """Decodes bodies that lie in one buffer with something between them."""
    found = core.decode_events(*in_one_buffer(bodies, gap))
    columns = (found.metadata_id, found.offset_ps, found.duration_ps, found.flags)
    assert [column.dtype for column in columns] == [np.int64, np.int64, np.int64, np.uint8]
    return list(zip(*(column.tolist() for column in columns), strict=True))


NUMBER = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 300), st.sampled_from([0, -1, (1 << 63) - 1, -(1 << 63)])
)
PADDING = st.sampled_from([0, 0, 0, 1, 4, 9])
VARINT = st.builds(varint, NUMBER, PADDING)
STAT = st.binary(max_size=8).map(lambda name: field(1, 0, b"\x07") + field(5, 2, name))
PART = st.one_of(
    st.builds(field, st.sampled_from([1, 2, 3, 5]), st.just(0), VARINT, PADDING),
    st.builds(field, st.just(4), st.just(2), STAT, PADDING),
    st.builds(field, st.integers(6, 1 << 20), st.just(0), VARINT, PADDING),
    st.builds(field, st.integers(6, 1 << 20), st.just(2), st.binary(max_size=150), PADDING),
    # known numbers with wire types that are not theirs are unknown fields
    st.builds(field, st.integers(1, 5), st.just(1), st.binary(min_size=8, max_size=8), PADDING),
    st.builds(field, st.integers(1, 5), st.just(5), st.binary(min_size=4, max_size=4), PADDING),
    st.builds(field, st.sampled_from([1, 2, 3, 5]), st.just(2), st.binary(max_size=9), PADDING),
    st.builds(field, st.just(4), st.just(0), VARINT, PADDING),
)
BODY = st.lists(PART, max_size=8).map(b"".join)


@pytest.fixture(params=["alone", "together"])
def copies(request: pytest.FixtureRequest) -> int:
    """How often to repeat what is decoded: the numpy core has a way for few events and one for many."""
    return {"alone": 1, "together": numpy_core._FEW + 2}[request.param]


class TestAgainstProtobuf:
    @given(body=BODY, gap=st.sampled_from([b"", b"\x80", b"\xff" * 20, b"\x01" * 20]))
    def test_one_event(self, core: Core, body: bytes, gap: bytes) -> None:
        assert decode(core, [body], gap) == [by_protobuf(body)]

    @given(body=BODY, gap=st.sampled_from([b"", b"\x80", b"\xff" * 20, b"\x01" * 20]))
    def test_many_alike(self, core: Core, body: bytes, gap: bytes) -> None:
        assert decode(core, [body] * 40, gap) == [by_protobuf(body)] * 40

    @given(st.lists(BODY, min_size=1, max_size=6))
    def test_many_different(self, core: Core, bodies: list[bytes]) -> None:
        assert decode(core, bodies * 40) == [by_protobuf(body) for body in bodies] * 40

    def test_more_than_a_block(self, core: Core) -> None:
        rng = random.Random(4)
        bodies = [random_event(rng) for _ in range(numpy_core._BLOCK + 100)]
        assert decode(core, bodies) == [by_protobuf(body) for body in bodies]


def test_the_last_of_the_oneof_counts(core: Core, copies: int) -> None:
    offset, occurrences = field(2, 0, varint(11)), field(5, 0, varint(22))
    assert decode(core, [offset + occurrences] * copies) == [(0, 22, 0, HAS_OCCURRENCES)] * copies
    assert decode(core, [occurrences + offset] * copies) == [(0, 11, 0, HAS_OFFSET)] * copies
    assert decode(core, [b""] * copies) == [(0, 0, 0, 0)] * copies


def test_truncation_at_every_byte(core: Core, copies: int) -> None:
    body = (
        field(4, 2, b"abc")
        + field(1, 0, varint(-3))
        + field(5, 0, varint(300), 2)
        + field(3, 0, varint(9))
        + field(7, 5, b"1234")
    )
    for n in range(len(body) + 1):
        for gap in (b"", b"\x01" * 20, b"\xff" * 20):
            assert decode(core, [body[:n]] * copies, gap) == [reference(body[:n])] * copies


def test_values_before_a_break_are_kept(core: Core, copies: int) -> None:
    good = field(1, 0, varint(5)) + field(2, 0, varint(6))
    cut = (b"\x18", b"\x18\x80", b"\x22\x05abc", b"\x19" + bytes(7))
    for bad in (*cut, b"\x0b", b"\x00\x00", b"\x22" + varint(1 << 63)):
        body = good + bad
        assert decode(core, [body] * copies, b"\x01" * 20) == [(5, 6, 0, HAS_OFFSET | EVENT_MALFORMED)] * copies


@given(st.lists(st.binary(max_size=60), max_size=50))
def test_any_bytes(core: Core, bodies: list[bytes]) -> None:
    assert decode(core, bodies) == [reference(body) for body in bodies]


def test_what_is_malformed_protobuf_refuses_too(core: Core) -> None:
    rng = random.Random(11)
    bodies = [damaged(rng, random_event(rng)) for _ in range(3000)]
    found = decode(core, bodies)
    assert found == [reference(body) for body in bodies]
    refused = 0
    for body, (*_, flags) in zip(bodies, found, strict=True):
        has_group = any(byte & 7 in {3, 4} for byte in body)  # protobuf knows groups, which no profile has
        if flags & EVENT_MALFORMED and not has_group:
            refused += 1
            with pytest.raises(DecodeError):
                XEvent.FromString(body)
    assert refused > 100


def test_long_events(core: Core) -> None:
    """Longer than what the numpy core decodes one field at a time."""
    rng = random.Random(8)
    body = b"".join(random_event(rng) for _ in range(300))
    for tail in (b"", b"\x0b", b"\x22\x7fabc", field(2, 0, varint(-1 << 40))):
        assert len(body) > numpy_core._LONG
        assert decode(core, [body + tail]) == [reference(body + tail)]
        assert decode(core, [body + tail] * 40) == [reference(body + tail)] * 40


def test_numpy_reads_usual_events_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte by byte only what doesn't fit into one: varints of eight bytes and more."""
    calls: list[int] = []
    slow = words._read_long

    def counted(words: words.Words, at: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        calls.append(len(at))
        return slow(words, at)

    monkeypatch.setattr(words, "_read_long", counted)
    usual = (
        field(1, 0, varint(300)) + field(2, 0, varint(1 << 48)) + field(3, 0, varint(70_000)) + field(4, 2, bytes(150))
    )
    long = field(2, 0, varint(1 << 49))
    assert decode(numpy_core, [usual] * 1000 + [long] * 3)[-1] == (0, 1 << 49, 0, HAS_OFFSET)
    assert sum(calls) == 3


def test_spans_may_lie_anywhere_in_the_bytes(core: Core) -> None:
    rng = random.Random(6)
    data = b"".join(random_event(rng) for _ in range(10))
    begin = np.array([rng.randint(0, len(data)) for _ in range(300)])
    end = np.array([rng.randint(at, len(data)) for at in begin.tolist()])
    found = core.decode_events(data, begin, end)
    expected = [reference(data[a:b]) for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
    columns = (found.metadata_id, found.offset_ps, found.duration_ps, found.flags)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


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
def test_spans_outside_the_bytes_are_refused(core: Core, begin: list[int], end: list[int]) -> None:
    with pytest.raises(ValueError):
        core.decode_events(b"\x08\x01\x10", np.array(begin, np.int64), np.array(end, np.int64))
    with pytest.raises(ValueError):
        core.stat_columns(b"\x08\x01\x10", np.array(begin, np.int64), np.array(end, np.int64), 4, np.array([1]))


def test_spans_that_are_no_integers_are_refused(core: Core) -> None:
    with pytest.raises(ValueError):
        core.decode_events(b"\x08\x01", np.array([0.0]), np.array([2.0]))


def test_no_events(core: Core) -> None:
    assert decode(core, []) == []
