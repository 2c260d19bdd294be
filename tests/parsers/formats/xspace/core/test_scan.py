"""`scan_events` against the three functions that it replaces, on both cores."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.formats.xspace.core.fuzz_core import damaged, field, random_bytes, random_event, random_line, varint
from tpuprof.parsers.formats.xspace.core import numpy_core
from tpuprof.parsers.formats.xspace.core.types import (
    EVERY_EVENT,
    FULL,
    HAS_TEXT,
    INCOMPLETE,
    MALFORMED,
    OK,
    WIDE_ID,
    Core,
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


def check(core: Core, data: bytes, base: int = 0) -> None:
    """What a scan writes is what splitting, decoding and picking stats give."""
    fields = numpy_core.split_fields(data)
    chosen = (fields.number == 4) & (fields.wire == 2) & (fields.end <= len(data))
    begin, end = fields.begin[chosen], fields.end[chosen]
    events = numpy_core.decode_events(data, begin, end)
    stats = numpy_core.stat_columns(data, begin, end, 4, WANTED)
    columns = room(len(data) + 1)
    found = core.scan_events(data, base, 0, WANTED, columns, 0, EVERY_EVENT)
    n = found.count
    assert n == len(begin)
    assert np.array_equal(columns.metadata_id[:n], events.metadata_id)
    assert np.array_equal(columns.offset_ps[:n], events.offset_ps)
    assert np.array_equal(columns.duration_ps[:n], events.duration_ps)
    assert np.array_equal(columns.flags[:n], events.flags)
    assert np.array_equal(columns.begin[:n], begin + base)
    assert np.array_equal(columns.length[:n], end - begin)
    assert np.array_equal(columns.kind[:, :n], stats.kind)
    textual = np.isin(stats.kind, (5, 6, 8))
    there = stats.kind >= 2
    expected = np.where(textual, stats.value + base, stats.value)
    assert np.array_equal(columns.value[:, :n][there], expected[there])
    assert np.array_equal(columns.stat_length[:, :n], stats.length)
    assert bool(found.seen & HAS_TEXT) == bool(textual.any())
    assert found.seen & ~HAS_TEXT == (int(np.bitwise_or.reduce(events.flags)) if n else 0)
    cut_event = len(fields.end) and fields.end[-1] > len(data) and fields.number[-1] == 4 and fields.wire[-1] == 2
    assert found.status == (INCOMPLETE if cut_event else fields.status)
    if not cut_event:
        assert found.next == fields.next


@given(st.integers(0, 2**32), st.integers(0, 1 << 40))
@settings(max_examples=2 * EXAMPLES)
def test_a_scan_is_split_decode_and_stats_in_one(core: Core, seed: int, base: int) -> None:
    rng = random.Random(seed)
    check(core, random_line(rng, rng.randrange(12)), base)
    check(core, random_bytes(rng), base)
    check(core, damaged(rng, random_line(rng, 5)), base)


@given(st.integers(0, 2**32), st.lists(st.booleans(), min_size=1, max_size=9), st.integers(1, 9), st.booleans())
@settings(max_examples=2 * EXAMPLES)
def test_a_scan_of_some_ids_writes_their_events_alone(
    core: Core, seed: int, ids: list[bool], capacity: int, wide: bool
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


def test_every_cut_of_a_line(core: Core) -> None:
    data = random_line(random.Random(3), 6)
    for size in range(len(data) + 1):
        check(core, data[:size])


def test_full_columns_stop_before_the_next_event_and_go_on(core: Core) -> None:
    data = random_line(random.Random(4), 9)
    whole, parts = room(9), room(9)
    assert core.scan_events(data, 0, 0, WANTED, whole, 0, EVERY_EVENT).status == OK
    start, count = 0, 0
    for capacity in (2, 5, 9):
        small = room(capacity)
        for name in ("metadata_id", "offset_ps", "duration_ps"):
            getattr(small, name)[:count] = getattr(parts, name)[:count]
        found = core.scan_events(data, 0, start, WANTED, small, count, EVERY_EVENT)
        count, start = count + found.count, found.next
        assert (count, found.status) == (capacity, FULL if capacity < 9 else OK)
        for name in ("metadata_id", "offset_ps", "duration_ps"):
            getattr(parts, name)[:count] = getattr(small, name)[:count]
    assert np.array_equal(parts.offset_ps, whole.offset_ps)
    assert np.array_equal(parts.metadata_id, whole.metadata_id)


@pytest.mark.parametrize("wide", [1 << 31, -(1 << 31) - 1, 1 << 62, -(1 << 63)])
def test_an_id_beyond_32_bits_asks_for_wide_columns(core: Core, wide: int) -> None:
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


def test_nonsense_stops_the_scan_where_it_begins(core: Core) -> None:
    event = field(4, 2, random_event(random.Random(1)))
    found = core.scan_events(event + b"\x07" + event, 0, 0, WANTED, room(4), 0, EVERY_EVENT)
    assert (found.count, found.next, found.status) == (1, len(event), MALFORMED)


def test_columns_that_do_not_fit_together_are_refused(core: Core) -> None:
    data = random_line(random.Random(4), 2)
    columns = room(4)
    for wrong in (room(4, stats=2), EventColumns(**{**fields_of(columns), "flags": np.zeros(3, np.uint8)})):
        with pytest.raises(ValueError, match="length"):
            core.scan_events(data, 0, 0, WANTED, wrong, 0, EVERY_EVENT)
    for start, at in ((-1, 0), (len(data) + 1, 0), (0, -1), (0, 5)):
        with pytest.raises(ValueError, match="outside"):
            core.scan_events(data, 0, start, WANTED, columns, at, EVERY_EVENT)
    with pytest.raises(ValueError, match="distinct"):
        core.scan_events(data, 0, 0, np.array([1, 1, 2]), columns, 0, EVERY_EVENT)


def fields_of(columns: EventColumns) -> dict[str, np.ndarray]:
    return {name: getattr(columns, name) for name in EventColumns.__dataclass_fields__}
