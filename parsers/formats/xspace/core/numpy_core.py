"""The wire-decoding core in numpy alone. See `core` for what the functions do.

It decodes many messages at a time: the first field of each, then the second of each, and so on. When few messages are
left, it finishes each by itself: field by field when it is short, through `split_fields` when it is long.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base import intervals
from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals, weighted_until
from tpuprof.parsers.formats.xspace.core import scalar, types
from tpuprof.parsers.formats.xspace.core.lanes import by_lane, check_keys, in_order, lanes, runs
from tpuprof.parsers.formats.xspace.core.nest import nest
from tpuprof.parsers.formats.xspace.core.scalar import MAX_FIELD_NUMBER
from tpuprof.parsers.formats.xspace.core.split import split
from tpuprof.parsers.formats.xspace.core.words import FAULT, FIXED64, LEN, VARINT, FieldBatch, Words, read_fields

__all__ = [
    "busy",
    "by_lane",
    "cell_sums",
    "decode_events",
    "duration_sums",
    "hash_packets",
    "in_order",
    "lanes",
    "min_by_key",
    "nest",
    "op_pass",
    "runs",
    "scan_events",
    "self_sums",
    "split_fields",
    "stat_columns",
    "subtract",
    "sum_by_key",
    "trim",
    "until",
    "work_sums",
]

_BLOCK = 16384  # messages decoded together: their arrays stay in the cache
_CHUNK_BLOCKS = 1 << 13  # blocks of events that are added up together
_FEW = 32  # messages left that are not worth decoding together
_LONG = 4096  # bytes of a message that are not worth decoding one field at a time

_LINE_EVENTS = 4  # field numbers: of a line's events, and of an event's stats
_EVENT_STATS = 4
_TEXT_KINDS = (5, 6, 8)
_UINT32_MAX = (1 << 32) - 1

_PACKET_WORDS = 4
_SHUFFLED = np.array([3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7])
_SHUFFLE = np.concatenate([_SHUFFLED, _SHUFFLED + 16])  # where each byte of two pairs of words comes from

# Key of a field: its row of the output, and the flag that it sets.
_EVENT_KEYS = {
    1 << 3 | VARINT: (0, 0),
    2 << 3 | VARINT: (1, types.HAS_OFFSET),
    3 << 3 | VARINT: (2, 0),
    5 << 3 | VARINT: (1, types.HAS_OCCURRENCES),
}
_STAT_ID = 1 << 3 | VARINT
_STAT_KEYS = (
    2 << 3 | FIXED64,
    3 << 3 | VARINT,
    4 << 3 | VARINT,
    5 << 3 | LEN,
    6 << 3 | LEN,
    7 << 3 | VARINT,
    8 << 3 | LEN,
)


def split_fields(buf: types.Buffer, start: int = 0) -> types.Fields:
    """See `core.split_fields`."""
    data = types.as_bytes(buf)
    types.check_start(len(data), start)
    return split(data, start)


# --- many messages at once ---


class _Together:
    """Walks the fields of a block of messages, one field of each at a time.

    Attributes:
        rows: the messages that it still walks, as indexes into the block.
        faulty: messages whose current field is unreadable; they are out from the next field on.
    """

    def __init__(self, words: Words, begin: Int64s, end: Int64s) -> None:
        self._words = words
        self._at, self._stop = begin, end
        self.rows: Int64s = np.arange(len(begin))
        self.faulty: Int64s = self.rows[:0]

    def steps(self, least: int) -> Iterator[FieldBatch]:
        """Yields the current fields as long as more than `least` messages have one."""
        self._keep(self._at < self._stop)
        while len(self.rows) > least:
            step = read_fields(self._words, self._at)
            past = step.end > self._stop
            faulty = bool(past.any())
            if faulty or step.keys is not None:
                keys = np.full(len(past), step.key, np.int64) if step.keys is None else step.keys
                keys[past] = FAULT
                step = step._replace(key=-1, keys=keys)
                past = keys == FAULT
                faulty = bool(past.any())
            if faulty:
                self.faulty = self.rows[past]
            yield step
            self._at = step.end
            more = step.end < self._stop
            self._keep(more & ~past if faulty else more)

    def _keep(self, more: Bools) -> None:
        self.faulty = self.rows[:0]
        if not more.all():
            self.rows, self._at, self._stop = self.rows[more], self._at[more], self._stop[more]


def _with_key(step: FieldBatch, key: int) -> Int64s | slice:
    """Which of the fields have this key."""
    if step.keys is None:
        return slice(None) if step.key == key else slice(0)
    return np.flatnonzero(step.keys == key)


def _blocks(n: int) -> Iterator[slice]:
    for low in range(0, n, _BLOCK):
        yield slice(low, min(low + _BLOCK, n))


def _fields_with(
    data: NDArray[np.uint8], start: int, stop: int, keys: frozenset[int]
) -> tuple[list[tuple[int, int, int]], bool]:
    """See `scalar.fields_with`; fit for long messages too."""
    if stop - start < _LONG:
        return scalar.fields_with(data.data, start, stop, keys)
    fields = split(data[start:stop], 0)
    past = fields.next > stop - start  # the last payload is
    key = fields.number.astype(np.int64) << 3 | fields.wire
    chosen = np.flatnonzero(np.isin(key[: len(key) - past], list(keys)))
    spans = (key[chosen], fields.begin[chosen] + start, fields.end[chosen] + start)
    return list(zip(*(column.tolist() for column in spans), strict=True)), past or fields.status != types.OK


def _number(data: NDArray[np.uint8], start: int, stop: int) -> int:
    """The varint at this offset as int64."""
    return scalar.to_int64(scalar.varint(data.data, start, stop)[0])


# --- events ---


def decode_events(buf: types.Buffer, begin: Int64s, end: Int64s) -> types.EventFields:
    """See `core.decode_events`."""
    data = types.as_bytes(buf)
    begin, end = types.as_int64(begin, "begin"), types.as_int64(end, "end")
    types.check_spans(len(data), begin, end)
    words = Words(data)
    n = len(begin)
    columns = (np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64))
    flags = np.zeros(n, np.uint8)
    for block in _blocks(n):
        _event_block(words, begin[block], end[block], tuple(column[block] for column in columns), flags[block])
    return types.EventFields(*columns, flags)


def _event_block(
    words: Words, begin: Int64s, end: Int64s, columns: tuple[Int64s, ...], flags: NDArray[np.uint8]
) -> None:
    """Fills the columns for one block of events."""
    together = _Together(words, begin, end)
    for step in together.steps(_FEW):
        whole = len(together.rows) == len(begin)
        for key, (row, flag) in _EVENT_KEYS.items():
            chosen = _with_key(step, key)
            rows = chosen if whole else together.rows[chosen]
            columns[row][rows] = step.value[chosen]
            if flag:
                flags[rows] = flag
        flags[together.faulty] |= types.EVENT_MALFORMED
    for i in together.rows.tolist():
        *values, flags[i] = _event(words.data, int(begin[i]), int(end[i]))
        for column, value in zip(columns, values, strict=True):
            column[i] = value


def _event(data: NDArray[np.uint8], start: int, stop: int) -> tuple[int, int, int, int]:
    """Metadata id, offset or occurrences, duration and flags of one event."""
    values = [0, 0, 0]
    flags = 0
    fields, broken = _fields_with(data, start, stop, frozenset(_EVENT_KEYS))
    for key, begin, end in fields:
        row, flag = _EVENT_KEYS[key]
        values[row] = _number(data, begin, end)
        flags = flag or flags
    return values[0], values[1], values[2], flags | (types.EVENT_MALFORMED if broken else 0)


# --- stats ---


def stat_columns(buf: types.Buffer, begin: Int64s, end: Int64s, stats_field: int, wanted: Int64s) -> types.StatFields:
    """See `core.stat_columns`."""
    data = types.as_bytes(buf)
    begin, end, wanted = types.as_int64(begin, "begin"), types.as_int64(end, "end"), types.as_int64(wanted, "wanted")
    types.check_spans(len(data), begin, end)
    types.check_wanted(wanted)
    shape = (len(wanted), len(begin))
    out = types.StatFields(np.zeros(shape, np.uint8), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    if not len(wanted) or not 1 <= stats_field <= MAX_FIELD_NUMBER:
        return out
    words = Words(data)
    for block in _blocks(len(begin)):
        part = types.StatFields(out.kind[:, block], out.value[:, block], out.length[:, block])
        _stat_block(words, begin[block], end[block], key=stats_field << 3 | LEN, wanted=wanted, out=part)
    return out


def _stat_block(words: Words, begin: Int64s, end: Int64s, *, key: int, wanted: Int64s, out: types.StatFields) -> None:
    """Fills the columns for one block of messages."""
    together = _Together(words, begin, end)
    for step in together.steps(_FEW):
        chosen = _with_key(step, key)
        rows = together.rows[chosen]
        if len(rows):
            _put_stats(_stats(words, step.begin[chosen], step.end[chosen]), rows, wanted, out)
    for i in together.rows.tolist():
        fields, _ = _fields_with(words.data, int(begin[i]), int(end[i]), frozenset({key}))
        spans = np.array(fields, np.int64).reshape(-1, 3)
        ids, kind, value, length = _stats(words, spans[:, 1].copy(), spans[:, 2].copy())
        for row, stat_id in enumerate(wanted.tolist()):
            for first in np.flatnonzero((ids == stat_id) & (kind != types.KIND_ABSENT))[:1]:
                out.kind[row, i], out.value[row, i], out.length[row, i] = kind[first], value[first], length[first]


_StatArrays = tuple[Int64s, NDArray[np.uint8], Int64s, Int64s]


def _put_stats(stats: _StatArrays, rows: Int64s, wanted: Int64s, out: types.StatFields) -> None:
    """Writes one stat of each of these messages where its id is wanted and has not come before."""
    ids, kind, value, length = stats
    for row, stat_id in enumerate(wanted.tolist()):
        chosen = np.flatnonzero(ids == stat_id)
        if len(chosen):
            to = rows[chosen]
            new = (out.kind[row, to] == types.KIND_ABSENT) & (kind[chosen] != types.KIND_ABSENT)
            if not new.all():
                chosen, to = chosen[new], to[new]
            out.kind[row, to] = kind[chosen]
            out.value[row, to] = value[chosen]
            out.length[row, to] = length[chosen]


def _stats(words: Words, begin: Int64s, end: Int64s) -> _StatArrays:
    """Ids, kinds (`KIND_ABSENT` where malformed), values and lengths of XStats."""
    n = len(begin)
    ids, value, length = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    kind = np.full(n, types.KIND_EMPTY, np.uint8)
    together = _Together(words, begin, end)
    for step in together.steps(_FEW):
        chosen = _with_key(step, _STAT_ID)
        ids[together.rows[chosen]] = step.value[chosen]
        for key in _STAT_KEYS:
            chosen = _with_key(step, key)
            rows = together.rows[chosen]
            if not len(rows):
                continue
            kind[rows] = key >> 3
            if key & 7 == LEN:
                value[rows] = step.begin[chosen]
                length[rows] = step.end[chosen] - step.begin[chosen]
            else:
                value[rows] = step.value[chosen]
                length[rows] = 0
        kind[together.faulty] = types.KIND_ABSENT
    for i in together.rows.tolist():
        ids[i], kind[i], value[i], length[i] = _stat(words.data, int(begin[i]), int(end[i]))
    return ids, kind, value, length


def _stat(data: NDArray[np.uint8], start: int, stop: int) -> tuple[int, int, int, int]:
    """Id, kind (`KIND_ABSENT` when malformed), value and length of one XStat."""
    stat_id, kind, value, length = 0, types.KIND_EMPTY, 0, 0
    fields, broken = _fields_with(data, start, stop, frozenset({_STAT_ID, *_STAT_KEYS}))
    for key, begin, end in fields:
        if key == _STAT_ID:
            stat_id = _number(data, begin, end)
            continue
        kind, value, length = key >> 3, begin, 0
        if key & 7 == LEN:
            length = end - begin
        elif key & 7 == VARINT:
            value = _number(data, begin, end)
        else:
            value = int.from_bytes(data[begin:end].tobytes(), "little", signed=True)
    return stat_id, types.KIND_ABSENT if broken else kind, value, length


# --- all at once ---


def scan_events(
    buf: types.Buffer, base: int, start: int, wanted: Int64s, columns: types.EventColumns, place: int, chosen: Bools
) -> types.Scan:
    """See `core.scan_events`; the work of `split_fields`, `decode_events` and `stat_columns`."""
    data, wanted = types.as_bytes(buf), types.as_int64(wanted, "wanted")
    types.check_start(len(data), start)
    types.check_wanted(wanted)
    types.check_columns(columns, len(wanted), place)
    fields = split_fields(data, start)
    begin, end, following, status = _whole_events(fields, start, len(data))
    if len(chosen):
        kept = np.isin(decode_events(data, begin, end).metadata_id, np.flatnonzero(chosen))
        begin, end = begin[kept], end[kept]
    if len(begin) > (room := len(columns.flags) - place):
        following, status = _tag_before(fields, start, int(begin[room])), types.FULL
        begin, end = begin[:room], end[:room]
    events = decode_events(data, begin, end)
    if columns.metadata_id.dtype == np.int32:
        wide = np.flatnonzero(events.metadata_id != events.metadata_id.astype(np.int32))
        if len(wide):
            first = int(wide[0])
            following, status = _tag_before(fields, start, int(begin[first])), types.WIDE_ID
            begin, end = begin[:first], end[:first]
            events = decode_events(data, begin, end)
    stats = stat_columns(data, begin, end, _EVENT_STATS, wanted)
    seen = _write(columns, place, base, begin, end, events, stats)
    return types.Scan(len(begin), following, status, seen)


def _whole_events(fields: types.Fields, start: int, size: int) -> tuple[Int64s, Int64s, int, int]:
    """The events that are complete; where to go on, and why to stop."""
    chosen = (fields.number == _LINE_EVENTS) & (fields.wire == LEN)
    following, status = fields.next, fields.status
    if len(chosen) and chosen[-1] and fields.end[-1] > size:
        following, status = _tag_before(fields, start, int(fields.begin[-1])), types.INCOMPLETE
        chosen[-1] = False
    return fields.begin[chosen], fields.end[chosen], following, status


def _tag_before(fields: types.Fields, start: int, begin: int) -> int:
    """The start of the field whose payload begins at `begin`."""
    index = int(np.searchsorted(fields.begin, begin))
    return int(fields.end[index - 1]) if index else start


def _write(
    columns: types.EventColumns,
    place: int,
    base: int,
    begin: Int64s,
    end: Int64s,
    events: types.EventFields,
    stats: types.StatFields,
) -> int:
    """Puts decoded events into the columns; returns the flags seen."""
    to = slice(place, place + len(begin))
    columns.metadata_id[to] = events.metadata_id
    columns.offset_ps[to] = events.offset_ps
    columns.duration_ps[to] = events.duration_ps
    columns.flags[to] = events.flags
    if len(columns.begin):
        columns.begin[to] = begin + base
        columns.length[to] = np.minimum(end - begin, _UINT32_MAX)
    columns.kind[:, to] = stats.kind
    textual = np.isin(stats.kind, _TEXT_KINDS)
    has_text = bool(textual.any())
    columns.value[:, to] = np.where(textual, stats.value + base, stats.value) if has_text else stats.value
    if has_text:
        columns.stat_length[:, to] = np.minimum(stats.length, _UINT32_MAX)
    seen = int(np.bitwise_or.reduce(events.flags)) if len(events.flags) else 0
    return seen | (types.HAS_TEXT if has_text else 0)


# --- intervals ---


def busy(start: Int64s, end: Int64s, bounds: Int64s) -> int:
    """See `core.busy`."""
    if len(bounds) < 3:
        return int((end - start).sum())
    return intervals.union_length(start, end)


def subtract(start: Int64s, end: Int64s, less_start: Int64s, less_end: Int64s) -> Intervals:
    """See `core.subtract`."""
    for begins, ends in ((start, end), (less_start, less_end)):
        if len(begins) != len(ends) or bool((begins >= ends).any()) or bool((begins[1:] < ends[:-1]).any()):
            raise ValueError("intervals must be disjoint, not empty and in order")
    return intervals.subtract(start, end, less_start, less_end)


def until(times: Int64s, intervals: Int64s) -> Int64s:
    """See `core.until`."""
    return weighted_until(times, intervals)


def trim() -> None:
    """See `core.trim`; numpy can't."""


# --- groups ---


def _check_keys(keys: NDArray[np.integer], values: Int64s, k: int) -> None:
    types.check_key_count(keys, values, k)
    check_keys(keys, k)


def duration_sums(spans: types.KeyedSpans, classes: NDArray[np.uint8], count: int, block: int) -> Int64s:
    """See `core.duration_sums`."""
    out = np.zeros((-(-len(spans.start) // block), count), np.int64)
    for first, events in _sum_blocks(len(spans.start), block):
        start, end, key = spans.start[events], spans.end[events], spans.key[events]
        _check_keys(key, start, len(classes))
        cell = np.arange(len(key)) // block * count + classes[key]
        blocks = -(-len(key) // block)
        sums = np.bincount(cell, end - start, blocks * count)  # exact: up to 2^53 ps, two and a half hours
        if len(sums) > blocks * count:
            raise ValueError(f"a class lies outside [0, {count})")
        out[first : first + blocks] = sums.astype(np.int64).reshape(blocks, count)
    return out


def work_sums(key: NDArray[np.int32], work: Floats, block: int) -> Floats:
    """See `core.work_sums`."""
    out = np.zeros(-(-len(key) // block))
    for first, events in _sum_blocks(len(key), block):
        part = key[events]
        _check_keys(part, part.astype(np.int64), len(work))
        sums = np.bincount(np.arange(len(part)) // block, work[part])
        out[first : first + len(sums)] = sums
    return out


def _sum_blocks(n: int, block: int) -> Iterator[tuple[int, slice]]:
    """Yields the number of a block and the events of it and some more, few enough that arrays on the way stay small."""
    for first in range(0, n, _CHUNK_BLOCKS * block):
        yield first // block, slice(first, first + _CHUNK_BLOCKS * block)


def cell_sums(
    cells: types.StepCells, kind: Int64s, kinds: int, weight: Floats, steps: int, by_op: bool
) -> types.CellSums:
    """See `core.cell_sums`."""
    step, row, ops = cells.step.astype(np.int64), cells.row, len(kind)
    _check_keys(row, step, ops)
    of_cell, place = kind[row], step * ops + row
    check_keys(of_cell, kinds)
    by_kind = sum_by_key(step * kinds + of_cell, cells.self_ps, steps * kinds).reshape(steps, kinds)
    weighted: Floats = np.bincount(step, cells.self_ps * weight[row], steps).astype(np.float64)
    counts: Floats | None = None
    if by_op:
        counts = np.bincount(place, cells.count, steps * ops).reshape(steps, ops).astype(np.float64)
    return types.CellSums(by_kind, weighted, sum_by_key(step, cells.count.astype(np.int64), steps), counts)


def sum_by_key(keys: NDArray[np.integer], values: Int64s, k: int) -> Int64s:
    """See `core.sum_by_key`."""
    keys, values = types.as_keys(keys), types.as_int64(values, "values")
    _check_keys(keys, values, k)
    out = np.zeros(k, np.int64)
    np.add.at(out, keys, values)
    return out


def self_sums(ops: types.LanedEvents, keys: int) -> Int64s:
    """See `core.self_sums`."""
    start, end, key, *_ = in_order(ops)
    return sum_by_key(key, np.maximum(nest(start, end).self_ps, 0), keys)


def min_by_key(keys: NDArray[np.integer], values: Int64s, k: int) -> Int64s:
    """See `core.min_by_key`."""
    keys, values = types.as_keys(keys), types.as_int64(values, "values")
    _check_keys(keys, values, k)
    out = np.full(k, np.iinfo(np.int64).max, np.int64)
    np.minimum.at(out, keys, values)
    return out


def hash_packets(data: types.Buffer, state: NDArray[np.uint64]) -> None:
    """See `core.hash_packets`. Some 5 MB/s: each packet hangs on the one before."""
    packed = types.as_bytes(data)
    if len(packed) % (8 * _PACKET_WORDS) or state.dtype != np.uint64 or state.shape != (4 * _PACKET_WORDS,):
        raise ValueError("the bytes are no whole packets, or the state is not 16 aligned words")
    v0, v1, mul0, mul1 = state.reshape(4, _PACKET_WORDS)
    v0_low, v0_high = v0.view("<u4")[::2], v0.view("<u4")[1::2]
    v1_low, v1_high = v1.view("<u4")[::2], v1.view("<u4")[1::2]
    v0_bytes, v1_bytes = v0.view(np.uint8), v1.view(np.uint8)
    product = np.empty(_PACKET_WORDS, np.uint64)
    shuffled = product.view(np.uint8)
    multiply, add, take = np.multiply, np.add, np.take
    for packet in packed.view("<u8").reshape(-1, _PACKET_WORDS):
        add(v1, mul0, v1)
        add(v1, packet, v1)
        multiply(v1_low, v0_high, product, dtype=np.uint64)
        np.bitwise_xor(mul0, product, mul0)
        add(v0, mul1, v0)
        multiply(v0_low, v1_high, product, dtype=np.uint64)
        np.bitwise_xor(mul1, product, mul1)
        take(v1_bytes, _SHUFFLE, out=shuffled, mode="clip")
        add(v0, product, v0)
        take(v0_bytes, _SHUFFLE, out=shuffled, mode="clip")
        add(v1, product, v1)


def op_pass(*_arguments: object) -> None:
    """See `core.op_pass`."""
