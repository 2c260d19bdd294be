"""Finds the fields of one long message with numpy.

Only the field before it shows where a field starts: fields form a chain. So it cuts the bytes into regions, and one
walker for each region steps through its fields, all walkers together. A walker does not know where the first field of
its region starts; it guesses by starting some fields early, since a walk from a wrong place mostly falls into step
soon. Then it joins the regions from the front: where a region's walk did not start at the true place, it follows the
true chain one field at a time until it meets the walk.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s
from tpuprof.parsers.formats.xspace.core import scalar
from tpuprof.parsers.formats.xspace.core.types import OK, Fields
from tpuprof.parsers.formats.xspace.core.words import FAULT, LEN, Words, read_fields

_BLOCK = 4 << 20
_HEADER = 16  # no tag with what follows it but a payload is longer
_SAMPLE = 48  # fields walked to learn their mean size
_FIELDS_A_REGION = 32
_FIELDS_EARLY = 3
_GUESS_STEPS = 32
_LEAST_WALKERS = 12  # fewer than this are slower together than one at a time
_LONG_FIELD = 1024

_TAG = np.arange(65536) & 0xFF
_SIZE = np.arange(65536) >> 8
_PLAIN_TAG = (_TAG >= 8) & (_TAG < 0x80)
# Size of a field by its first two bytes; 0 where two bytes are not enough.
_JUMP = np.select(
    [
        _PLAIN_TAG & (_TAG & 7 == 2) & (_SIZE < 0x80),
        _PLAIN_TAG & (_TAG & 7 == 0) & (_SIZE < 0x80),
        _PLAIN_TAG & (_TAG & 7 == 1),
        _PLAIN_TAG & (_TAG & 7 == 5),
    ],
    [_SIZE + 2, 2, 9, 5],
    0,
).astype(np.uint8)


def split(data: NDArray[np.uint8], start: int) -> Fields:
    """See `core.split_fields`."""
    words = Words(data)
    view = data.data
    parts: list[Int64s] = []
    offset = start
    safe = len(data) - _HEADER  # up to here every header is all there
    while offset < safe:
        block_stop = min(offset + _BLOCK, safe)
        starts, offset = _block(words, view, offset, block_stop)
        parts.append(starts)
        if offset < block_stop:
            break
    status = OK
    tail: list[int] = []
    while offset < len(data):
        field = scalar.step(view, offset, len(data))
        if field.status != OK:
            status = field.status
            break
        tail.append(offset)
        offset = field.end
    parts.append(np.array(tail, np.int64))
    return _fields(words, parts, offset, status)


def _block(words: Words, view: memoryview, start: int, stop: int) -> tuple[Int64s, int]:
    """Starts of the fields in [start, stop), and the start of the field after them or of the first unreadable one."""
    sample, offset = _follow(view, start, stop, _SAMPLE)
    if len(sample) < _SAMPLE:
        return np.array(sample, np.int64), offset
    mean = (offset - start) // _SAMPLE
    region = mean * _FIELDS_A_REGION
    walkers = (stop - offset) // region + 1
    if mean > _LONG_FIELD or walkers < _LEAST_WALKERS:
        rest, offset = _follow(view, offset, stop, stop)
        return np.array(sample + rest, np.int64), offset
    edge = np.minimum(offset + np.arange(walkers + 1, dtype=np.int64) * region, stop)
    usual = Counter(view[i] for i in sample).most_common(1)[0][0]
    entry = _guess(words.data, edge[:-1], usual, mean * _FIELDS_EARLY)
    seen = np.zeros(stop - offset, np.bool_)
    leave = _walk(words, entry, edge[1:], seen, offset)
    following = _join(view, entry, leave, edge, seen)
    return np.concatenate([np.array(sample, np.int64), np.flatnonzero(seen) + offset]), following


def _follow(view: memoryview, offset: int, stop: int, most: int) -> tuple[list[int], int]:
    """Starts of up to `most` fields before `stop`, one at a time, and where the next one would start."""
    starts: list[int] = []
    while offset < stop and len(starts) < most:
        following = _next(view, offset)
        if following < 0:
            break
        starts.append(offset)
        offset = following
    return starts, offset


def _next(view: memoryview, offset: int) -> int:
    """The start of the field after the one at `offset`; -1 when it is unreadable."""
    tag, size = view[offset], view[offset + 1]
    if tag & 0x87 == 2 and size < 0x80 and tag >= 8:
        return offset + 2 + size
    field = scalar.step(view, offset, len(view))
    return field.end if field.status == OK else -1


def _short_jump(data: NDArray[np.uint8], offsets: Int64s) -> Int64s:
    """Sizes of the fields at these offsets where their first two bytes determine them, else 0."""
    pair = data.take(offsets + 1).astype(np.int64)
    pair <<= 8
    pair |= data.take(offsets)
    return _JUMP.take(pair).astype(np.int64)


def _jump(words: Words, offsets: Int64s) -> Int64s:
    """Sizes of the fields at these offsets, 0 where there is none."""
    size = _short_jump(words.data, offsets)
    if not size.all():
        rest = np.flatnonzero(size == 0)
        step = read_fields(words, offsets[rest])
        longer = step.end - offsets[rest]
        size[rest] = longer if step.keys is None else np.where(step.keys == FAULT, 0, longer)
    return size


def _guess(data: NDArray[np.uint8], edge: Int64s, tag: int, early: int) -> Int64s:
    """Where the first field at or after each edge may start; the first edge is a field's start.

    Starts at the first byte equal to `tag` among the `early` bytes before an edge. That is mostly the tag of a field,
    or of one inside a field, which ends with its message, so that the next one is in step.
    """
    entry = edge.copy()
    index = np.flatnonzero(edge - early > edge[0])
    first = edge[index] - early
    windows = np.ndarray((len(data) - early + 1, early), np.uint8, data, strides=(1, 1))
    offsets = first + (windows[first] == tag).argmax(axis=1)
    for _ in range(_GUESS_STEPS):
        if not len(index):
            break
        size = _short_jump(data, offsets)
        offsets += np.maximum(size, 1)
        inside = offsets < edge[index]
        if not inside.all():
            entry[index[~inside]] = offsets[~inside]
            index, offsets = index[inside], offsets[inside]
    return entry


def _walk(words: Words, entry: Int64s, stop: Int64s, seen: Bools, base: int) -> Int64s:
    """Walks each region from `entry` to `stop`, sets `seen[offset - base]` at each field; returns where walks ended.

    A walk that ends before its `stop` met something that is no field, or gave up.
    """
    leave = entry.copy()
    index = np.flatnonzero(entry < stop)
    offsets, until = entry[index], stop[index]
    while len(index) >= _LEAST_WALKERS:
        size = _jump(words, offsets)
        stuck = size == 0
        seen[offsets - base] = True
        offsets += size
        done = offsets >= until
        done |= stuck
        if done.any():
            seen[offsets[stuck] - base] = False
            leave[index[done]] = offsets[done]
            go = ~done
            index, offsets, until = index[go], offsets[go], until[go]
    leave[index] = offsets
    return leave


def _join(view: memoryview, entry: Int64s, leave: Int64s, edge: Int64s, seen: Bools) -> int:
    """Follows the true chain through the regions and corrects `seen`; returns where the chain leaves them or breaks."""
    base, stop, region = int(edge[0]), int(edge[-1]), int(edge[1] - edge[0])
    # Up to the next of these, each region's walk starts where the one before it ended.
    gaps = np.append(np.flatnonzero(entry[1:] != leave[:-1]), len(entry) - 1).tolist()
    ends = leave.tolist()
    marks = seen.view(np.uint8).data
    offset = base
    while offset < stop:  # a true field start; what `seen` says before it is settled
        k = (offset - base) // region
        if marks[offset - base]:  # the region's walk comes by here, so from here on it is true
            last = gaps[bisect_left(gaps, k)]
            offset = ends[last]
            settled = int(edge[last + 1])
        else:
            following = _next(view, offset)
            if following < 0:
                seen[offset - base :] = False
                break
            seen[offset - base] = True
            settled = offset + 1
            offset = following
        if settled < offset:
            seen[settled - base : offset - base] = False
    return offset


def _fields(words: Words, parts: list[Int64s], following: int, status: int) -> Fields:
    """Reads the tags of the fields that start at these offsets, one after the other up to `following`."""
    count = sum(map(len, parts))
    number, wire = np.empty(count, np.uint32), np.empty(count, np.uint8)
    begin, end = np.empty(count, np.int64), np.empty(count, np.int64)
    end[-1:] = following
    low = 0
    for part in parts:
        high = low + len(part)
        end[max(low - 1, 0) : max(high - 1, 0)] = part[low == 0 :]  # a field ends where the next one starts
        begin[low:high] = _header(words, part, number[low:high], wire[low:high])
        low = high
    return Fields(number, wire, begin, end, following, status)


def _header(words: Words, offsets: Int64s, number: NDArray[np.uint32], wire: NDArray[np.uint8]) -> Int64s:
    """Sets numbers and wire types of complete, valid fields; returns where their values begin."""
    tag = words.data.take(offsets)
    np.right_shift(tag, 3, out=number)
    np.bitwise_and(tag, 7, out=wire)
    begin = offsets + 1
    is_len = wire == LEN
    begin += is_len
    long = np.flatnonzero((tag >= 0x80) | (is_len & (words.data.take(begin - 1) >= 0x80)))
    if len(long):
        step = read_fields(words, offsets[long])
        keys = np.int64(step.key) if step.keys is None else step.keys
        number[long], wire[long], begin[long] = keys >> 3, keys & 7, step.begin
    return begin
