"""HighwayHash-64, the checksum of Riegeli/records: https://arxiv.org/abs/1612.06257.

The core takes whole packets of 32 bytes; here are the state they go into, the rest of the bytes, and the end.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.formats.xspace.core.api import hash_packets

_Words = NDArray[np.uint64]

RIEGELI_KEY = np.frombuffer(b"Riegeli/records\n" * 2, "<u8").astype(np.uint64)
"""uint64[4]: the key of all hashes in a file."""

_PACKET = 32
_PERMUTATIONS = 4
_MUL0 = np.array([0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3], np.uint64)
_MUL1 = np.array([0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377], np.uint64)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def _swapped(words: _Words) -> _Words:
    """Words with their halves exchanged."""
    return words >> _HALF | words << _HALF


def highway_hash(pieces: Iterable[bytes], key: _Words = RIEGELI_KEY) -> int:
    """The 64-bit hash of bytes that come in pieces of any length."""
    state = np.concatenate([_MUL0 ^ key, _MUL1 ^ _swapped(key), _MUL0, _MUL1])
    rest = b""
    for piece in pieces:
        data = rest + piece if rest else piece
        whole = len(data) - len(data) % _PACKET
        hash_packets(memoryview(data)[:whole], state)
        rest = data[whole:]
    if rest:
        _take_rest(rest, state)
    v0, v1, mul0, mul1 = state.reshape(4, 4)
    for _ in range(_PERMUTATIONS):
        hash_packets(_swapped(v0[[2, 3, 0, 1]]).astype("<u8").tobytes(), state)
    return sum(int(lane[0]) for lane in (v0, v1, mul0, mul1)) & (1 << 64) - 1


def _take_rest(rest: bytes, state: _Words) -> None:
    """Takes the last bytes, fewer than a packet, together with how many they are."""
    size = len(rest)
    v0, v1 = state[:4], state[4:8]
    v0 += np.uint64(size << 32 | size)
    low, high, by = v1 & _LOW, v1 >> _HALF, np.uint64(size)
    low, high = ((half << by | half >> (_HALF - by)) & _LOW for half in (low, high))
    v1[:] = high << _HALF | low
    packet = bytearray(_PACKET)
    whole, odd = size & ~3, size & 3
    packet[:whole] = rest[:whole]
    if size & 16:
        packet[28:] = rest[size - 4 :]
    elif odd:
        packet[16:19] = bytes((rest[whole], rest[whole + (odd >> 1)], rest[-1]))
    hash_packets(packet, state)
