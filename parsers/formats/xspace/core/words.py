"""One protobuf field of each of many messages at a time, in numpy: the inner step of the numpy core.

It reads a tag and what follows as one 64-bit word, since nearly all fields have a tag of one byte and a varint of up to
seven. It reads the few others byte by byte, all of them together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s
from tpuprof.parsers.formats.xspace.core.scalar import MAX_INT64, MAX_TAG_BYTES, MAX_VARINT_BYTES

VARINT, FIXED64, LEN, FIXED32 = 0, 1, 2, 5
FAULT = 0
"""Key of an unreadable field; no tag is 0."""

_U64 = np.uint64
_BYTE = _U64(0xFF)
_EIGHT = _U64(8)
_TOP_BITS = _U64(0x8080808080808080)
_LOW_BITS = _U64(0x7F7F7F7F7F7F7F7F)
_PAIRS = ((_U64(0x007F007F007F007F), _U64(0x7F007F007F007F00), _U64(1)),)
_QUADS = ((_U64(0x00003FFF00003FFF), _U64(0x3FFF00003FFF0000), _U64(2)),)
_HALVES = ((_U64(0x000000000FFFFFFF), _U64(0x0FFFFFFF00000000), _U64(4)),)
_FOLDS = _PAIRS + _QUADS + _HALVES
_NOT_ENDED = 8

_WIRE = np.arange(256) & 7
_BAD_TAG = (np.arange(256) < 8) | np.isin(_WIRE, (3, 4, 6, 7))
_HAS_VARINT = np.isin(_WIRE, (VARINT, LEN))


class Words:
    """Bytes, to be read as little-endian 64-bit words at any offset; words past their end read as 0."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self.data = data
        padded = data if len(data) >= 8 else np.concatenate([data, np.zeros(8 - len(data), np.uint8)])
        self._last = len(padded) - 8
        self._view: NDArray[np.uint64] = np.ndarray((self._last + 1,), np.dtype("<u8"), padded, strides=(1,))

    def load(self, offsets: Int64s) -> NDArray[np.uint64]:
        """The words at these offsets, none of which is negative."""
        if int(offsets.max(initial=0)) <= self._last:
            return self._view[offsets]
        missing = np.maximum(offsets - self._last, 0)
        shift = np.minimum(missing, 8).astype(_U64) * _EIGHT
        word: NDArray[np.uint64] = self._view[offsets - missing]
        word >>= shift  # numpy gives 0 for a shift by 64
        return word


class FieldBatch(NamedTuple):
    """The fields at the current offset of many messages.

    Attributes:
        key: field number * 8 + wire type where it is the same for all, else -1.
        keys: the same for each; `FAULT` where there is no valid field. None when `key` holds for all.
        value: the 64 bits of varints and eight-byte values; undefined for other wire types.
        begin, end: where the value lies; `end` may be past the message, or the bytes: the caller must look.
    """

    key: int
    keys: Int64s | None
    value: Int64s
    begin: Int64s
    end: Int64s


def split_varint(word: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Int64s]:
    """Value and length of the varints in the low seven bytes; length 8 and no value where one is longer."""
    last = ~word & _TOP_BITS  # one bit for each byte that could be the last
    last &= -last  # ... the first of them
    length = (last >> _U64(7)).astype(np.float64).view(np.int64)
    length >>= 55  # the exponent is 1023 + 8 (length - 1); 1023 = 8 * 127 + 7
    length -= 126
    last |= last - _U64(1)
    last &= _LOW_BITS
    last &= word
    for keep, move, shift in _FOLDS:
        moved = last & move
        moved >>= shift
        last &= keep
        last |= moved
    return last, length


def read_fields(words: Words, offsets: Int64s) -> FieldBatch:
    """Reads the field at each offset. It needs at least one offset; offsets may lie at the end of the bytes."""
    word = words.load(offsets)
    tag = word & _BYTE
    key = int(tag[0])
    if key < 0x80 and not _BAD_TAG[key] and bool((tag == tag[0]).all()):
        step = _read_alike(words, offsets, word, key)
        if step:
            return step
    return _read_mixed(words, offsets, word, tag.view(np.int64))


def _read_alike(words: Words, offsets: Int64s, word: NDArray[np.uint64], key: int) -> FieldBatch | None:
    """Reads fields that all have the tag `key`, of one byte. None when a varint is longer than seven bytes."""
    wire = key & 7
    begin = offsets + 1
    if wire in {FIXED64, FIXED32}:
        fixed = words.load(begin) if wire == FIXED64 else word
        return FieldBatch(key, None, fixed.view(np.int64), begin, begin + (8 if wire == FIXED64 else 4))
    word >>= _EIGHT
    if wire == LEN:
        size = word & _BYTE
        if int(size.max()) < 0x80:
            begin += 1
            return FieldBatch(key, None, size.view(np.int64), begin, begin + size.view(np.int64))
    unsigned, length = split_varint(word)
    if int(length.max()) == _NOT_ENDED:
        word <<= _EIGHT
        word |= _U64(key)
        return None
    value = unsigned.view(np.int64)
    end = begin + length
    return FieldBatch(key, None, value, end, end + value) if wire == LEN else FieldBatch(key, None, value, begin, end)


def _read_mixed(words: Words, offsets: Int64s, word: NDArray[np.uint64], tag: Int64s) -> FieldBatch:
    unsigned, length = split_varint(word >> _EIGHT)
    value = unsigned.view(np.int64)
    wire = tag & 7
    begin = offsets + 1
    end = begin + length
    is_len = np.flatnonzero(wire == LEN)
    begin[is_len] = end[is_len]
    end[is_len] += value[is_len]
    for fixed, size in ((FIXED64, 8), (FIXED32, 4)):
        rows = np.flatnonzero(wire == fixed)
        if len(rows):
            end[rows] = begin[rows] + size
            if fixed == FIXED64:
                value[rows] = words.load(begin[rows]).view(np.int64)
    keys = tag.copy()
    keys[_BAD_TAG[tag]] = FAULT
    long = np.flatnonzero((tag >= 0x80) | (_HAS_VARINT[tag] & (length == _NOT_ENDED)))
    if len(long):
        keys[long], value[long], begin[long], end[long] = _read_long(words, offsets[long])
    return FieldBatch(-1, keys, value, begin, end)


def _read_long(words: Words, offsets: Int64s) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Keys, values, begins and ends of fields with tags or varints of any length."""
    tag, begin, _ = _long_varint(words, offsets, MAX_TAG_BYTES)
    wire = (tag & _U64(7)).astype(np.int64)
    fault = (begin < 0) | (tag < _EIGHT) | (tag > _U64(0xFFFFFFFF)) | _BAD_TAG[wire + 8]
    begin = np.maximum(begin, 0)
    unsigned, after, top = _long_varint(words, begin, MAX_VARINT_BYTES)
    fault |= _HAS_VARINT[wire] & (after < 0)
    value = unsigned.view(np.int64)
    is_len = wire == LEN
    # A length beyond 63 bits, or one that passes the largest offset.
    fault |= is_len & (top | (value < 0) | (value > MAX_INT64 - np.maximum(after, 0)))
    end = np.select([wire == FIXED64, wire == FIXED32], [begin + 8, begin + 4], after)
    eight = np.flatnonzero(wire == FIXED64)
    value[eight] = words.load(begin[eight]).view(np.int64)
    begin = np.where(is_len, after, begin)
    end = np.where(is_len & ~fault, after + np.where(fault, 0, value), end)
    return np.where(fault, FAULT, tag.view(np.int64)), value, begin, end


def _long_varint(words: Words, offsets: Int64s, limit: int) -> tuple[NDArray[np.uint64], Int64s, Bools]:
    """Values (modulo 2^64), following offsets (-1 where longer than `limit`), and whether a tenth byte is not 0."""
    value = np.zeros(len(offsets), _U64)
    after = np.full(len(offsets), -1, np.int64)
    top = np.zeros(len(offsets), np.bool_)
    for i in range(limit):
        byte = words.load(offsets + i) & _BYTE
        value |= np.where(after < 0, (byte & _U64(0x7F)) << _U64(7 * i), _U64(0))
        ended = (after < 0) & (byte < _U64(0x80))
        if i == MAX_VARINT_BYTES - 1:
            top = ended & (byte != 0)
        after[ended] = offsets[ended] + i + 1
        if bool((after >= 0).all()):
            break
    return value, after, top
