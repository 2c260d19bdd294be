"""The events of a line, with and without the compiled loops, against the format as plainly as it can be read."""

from __future__ import annotations

import random
from types import ModuleType

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.formats.xspace.core.fuzz_core import damaged, field, random_bytes, random_event, random_line, varint
from tests.parsers.formats.xspace.core.plain import event_of, fields_of, stats_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XEvent
from tpuprof.parsers.formats.xspace.core.types import (
    EVENT_MALFORMED,
    EVERY_EVENT,
    FULL,
    HAS_OCCURRENCES,
    HAS_OFFSET,
    HAS_TEXT,
    INCOMPLETE,
    OK,
    WIDE_ID,
    EventColumns,
)

WANTED = np.array([0, 1, 3], np.int64)


def room(capacity: int, stats: int = 3, wide: bool = True, places: bool = True) -> EventColumns:
    shape, placed = (stats, capacity), capacity if places else 0
    return EventColumns(
        metadata_id=np.zeros(capacity, np.int64) if wide else np.zeros(capacity, np.int32),
        offset_ps=np.zeros(capacity, np.int64),
        duration_ps=np.zeros(capacity, np.int64),
        flags=np.zeros(capacity, np.uint8),
        begin=np.zeros(placed, np.int64),
        length=np.zeros(placed, np.uint32),
        kind=np.zeros(shape, np.uint8),
        value=np.zeros(shape, np.int64),
        stat_length=np.zeros(shape, np.uint32),
    )


def check(core: ModuleType, data: bytes, base: int = 0) -> None:
    """What a scan writes is what each event says."""
    spans, following, status = fields_of(data)
    spans = [span for span in spans if span[:2] == (4, 2)]
    if spans and spans[-1][3] > len(data):
        spans, status, following = spans[:-1], INCOMPLETE, -1
    bodies = [data[begin:end] for *_, begin, end in spans]
    columns = room(len(data) + 1)
    found = core.scan_events(data, base, 0, WANTED, columns, 0, EVERY_EVENT)
    n = found.count
    plain_columns = (columns.metadata_id, columns.offset_ps, columns.duration_ps, columns.flags)
    events = [event_of(body) for body in bodies]
    assert list(zip(*(column[:n].tolist() for column in plain_columns), strict=True)) == events
    assert columns.begin[:n].tolist() == [begin + base for *_, begin, _ in spans]
    assert columns.length[:n].tolist() == [len(body) for body in bodies]
    seen = 0
    for at, body in enumerate(bodies):
        seen |= events[at][3]
        for row, (kind, value) in enumerate(stats_of(body, 4, WANTED.tolist())):
            assert columns.kind[row, at] == kind
            number, length = int(columns.value[row, at]), int(columns.stat_length[row, at])
            if isinstance(value, bytes):
                assert data[number - base : number - base + length] == value and length == len(value)
                seen |= HAS_TEXT
            else:
                assert (number, length) == (value, 0)
    assert (found.status, found.seen) == (status, seen)
    assert following in (-1, found.next)


@given(st.integers(0, 2**32), st.integers(0, 1 << 40))
@settings(max_examples=2 * EXAMPLES)
def test_a_scan_is_what_each_event_says(core: ModuleType, seed: int, base: int) -> None:
    rng = random.Random(seed)
    check(core, random_line(rng, rng.randrange(12)), base)
    check(core, random_bytes(rng), base)
    check(core, damaged(rng, random_line(rng, 5)), base)


@given(st.integers(0, 2**32), st.lists(st.booleans(), min_size=1, max_size=9), st.integers(1, 9), st.booleans())
@settings(max_examples=2 * EXAMPLES)
def test_a_scan_of_some_ids_writes_their_events_alone(
    core: ModuleType, seed: int, ids: list[bool], capacity: int, wide: bool
) -> None:
    rng, chosen = random.Random(seed), np.array(ids, np.bool_)
    line = random_line(rng, rng.randrange(12))
    for data in (line, damaged(rng, line)):
        every = room(len(data) + 1)
        whole = core.scan_events(data, 5, 0, WANTED, every, 0, EVERY_EVENT)
        of = every.metadata_id[: whole.count]
        kept = np.flatnonzero((of >= 0) & (of < len(ids)) & chosen[np.clip(of, 0, len(ids) - 1)])
        some, start, count, status = room(capacity, wide=wide), 0, 0, FULL
        while status == FULL:
            found = core.scan_events(data, 5, start, WANTED, some, 0, chosen)
            mine = kept[count : count + found.count]
            for name in (*("metadata_id", "offset_ps", "duration_ps", "flags"), *("begin", "length")):
                assert np.array_equal(getattr(some, name)[: found.count], getattr(every, name)[mine])
            for name in ("kind", "value"):
                there = every.kind[:, mine] >= 2
                assert np.array_equal(
                    getattr(some, name)[:, : found.count][there], getattr(every, name)[:, mine][there]
                )
            assert np.array_equal(some.kind[:, : found.count], every.kind[:, mine])
            start, count, status = found.next, count + found.count, found.status
            some = room(capacity, wide=wide)
        assert (count, status, start) == (len(kept), whole.status, whole.next)


def test_every_cut_of_a_line(core: ModuleType) -> None:
    data = random_line(random.Random(3), 6)
    for size in range(len(data) + 1):
        check(core, data[:size])


@pytest.mark.parametrize("wide", [1 << 31, -(1 << 31) - 1, 1 << 62, -(1 << 63)])
def test_an_id_beyond_32_bits_asks_for_wide_columns(core: ModuleType, wide: int) -> None:
    events = [field(1, 0, varint(value)) for value in (5, -(1 << 31), (1 << 31) - 1, wide, 7)]
    data = b"".join(field(4, 2, event) for event in events)
    narrow = room(9, wide=False, places=False)
    found = core.scan_events(data, 0, 0, WANTED, narrow, 0, EVERY_EVENT)
    assert (found.count, found.status) == (3, WIDE_ID)
    assert narrow.metadata_id[:3].tolist() == [5, -(1 << 31), (1 << 31) - 1]
    columns = room(9)
    again = core.scan_events(data, 0, found.next, WANTED, columns, 3, EVERY_EVENT)
    assert (again.count, again.status) == (2, OK)
    assert columns.metadata_id[3:5].tolist() == [wide, 7]


def test_columns_that_do_not_fit_together_are_refused(core: ModuleType) -> None:
    data = random_line(random.Random(4), 2)
    columns = room(4)
    for wrong in (room(4, stats=2), EventColumns(**{**columns_of(columns), "flags": np.zeros(3, np.uint8)})):
        with pytest.raises(ValueError, match="length"):
            core.scan_events(data, 0, 0, WANTED, wrong, 0, EVERY_EVENT)
    for start, at in ((-1, 0), (len(data) + 1, 0), (0, -1), (0, 5)):
        with pytest.raises(ValueError, match="outside"):
            core.scan_events(data, 0, start, WANTED, columns, at, EVERY_EVENT)
    with pytest.raises(ValueError, match="distinct"):
        core.scan_events(data, 0, 0, np.array([1, 1, 2]), columns, 0, EVERY_EVENT)


def columns_of(columns: EventColumns) -> dict[str, np.ndarray]:
    return {name: getattr(columns, name) for name in EventColumns.__dataclass_fields__}


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


@given(st.lists(st.lists(PART, max_size=8).map(b"".join), max_size=6))
def test_events_are_what_protobuf_reads(core: ModuleType, bodies: list[bytes]) -> None:
    columns = room(len(bodies))
    data = b"".join(field(4, 2, body) for body in bodies)
    assert core.scan_events(data, 0, 0, WANTED, columns, 0).count == len(bodies)
    for at, body in enumerate(bodies):
        event = XEvent.FromString(body)
        flag = {None: 0, "offset_ps": HAS_OFFSET, "num_occurrences": HAS_OCCURRENCES}[event.WhichOneof("data")]
        expected = event.metadata_id, event.offset_ps or event.num_occurrences, event.duration_ps, flag
        found = (columns.metadata_id, columns.offset_ps, columns.duration_ps, columns.flags)
        assert tuple(int(column[at]) for column in found) == expected


def test_what_is_malformed_protobuf_refuses_too(core: ModuleType) -> None:
    rng = random.Random(11)
    bodies = [damaged(rng, random_event(rng)) for _ in range(1000)]
    columns = room(len(bodies))
    core.scan_events(b"".join(field(4, 2, body) for body in bodies), 0, 0, WANTED, columns, 0)
    refused = 0
    for body, flags in zip(bodies, columns.flags.tolist(), strict=True):
        has_group = any(byte & 7 in {3, 4} for byte in body)  # protobuf knows groups, which no profile has
        if flags & EVENT_MALFORMED and not has_group:
            refused += 1
            with pytest.raises(DecodeError):
                XEvent.FromString(body)
    assert refused > 30
