"""The chunks of a Riegeli/records file, and where to go on behind damaged ones.

https://github.com/google/riegeli/blob/master/doc/riegeli_records_file_format.md specifies the format. A header of 24
bytes stands at every 64 KiB and interrupts whatever chunk is there. Only a search for the next chunk reads it.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.formats.xspace.core.api import hash_packets
from tpuprof.parsers.formats.xspace.riegeli.codecs import STEP
from tpuprof.parsers.formats.xspace.source import ByteSource

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


BLOCK = 1 << 16
BLOCK_HEADER = 24
CHUNK_HEADER = 40
_USABLE = BLOCK - BLOCK_HEADER

_DAMAGED = "damaged"

_SIMPLE, _TRANSPOSED = b"r", b"t"
_WITHOUT_RECORDS = (b"s", b"p", b"m")
"""Chunk types to pass over: signature, padding, and metadata that describe the records."""


def position(begin: int, length: int) -> int:
    """Where `length` bytes of a chunk from `begin` on, with the block headers among them, end in the file."""
    headers = (length + (begin + _USABLE - 1) % BLOCK) // _USABLE
    return begin + length + headers * BLOCK_HEADER


def chunk_end(begin: int, data_size: int, records: int) -> int:
    """Where a chunk ends: it takes a byte a record at least, and neither ends inside nor just behind a block header."""
    least = begin + records
    least += max(0, -least % BLOCK - _USABLE + 1)
    return max(position(begin, CHUNK_HEADER + data_size), least)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk whose header is intact.

    Attributes:
        source, begin, end: where it lies in the file.
        kind: its type, one byte.
        size: bytes of its data.
        records: how many it holds.
        decoded_size: bytes of all records together.
    """

    source: ByteSource
    begin: int
    end: int
    kind: bytes
    size: int
    data_hash: int
    records: int
    decoded_size: int

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the data; fewer where it ends."""
        return b"".join(self.pieces(offset, min(length, self.size - offset)))

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        return _pieces(self.source, self.begin, CHUNK_HEADER + offset, length)

    def is_intact(self) -> bool:
        return highway_hash(self.pieces(0, self.size)) == self.data_hash


@dataclass(slots=True)
class Losses:
    """What could not be read of a file.

    Attributes:
        chunks: how many were left out, by what is wrong with them.
        bytes: how many the damaged ones, and stretches without a chunk, take in the file.
        headers: chunks whose header is intact.
        cut: bytes of a chunk that the end of the file cuts off.
    """

    chunks: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    headers: int = 0
    cut: int = 0

    def add(self, size: int) -> None:
        """A damaged chunk, or a stretch without one, of so many bytes."""
        self.chunks[_DAMAGED] += 1
        self.bytes += size

    def note(self) -> str:
        """A sentence without its full stop; empty where nothing was lost."""
        if not self.headers:
            return "none of its bytes read as a chunk"
        parts = []
        for wrong, count in self.chunks.items():
            size = f" ({self.bytes:,} bytes)" if wrong == _DAMAGED else ""
            parts.append(f"{counted(count, 'chunk is', 'chunks are')} {wrong} and left out{size}")
        if self.cut:
            parts.append(f"it is cut off in a chunk, and {self.cut:,} bytes of that are left out")
        return "; ".join(parts)


def chunks(source: ByteSource, losses: Losses) -> Iterator[Chunk]:
    """The chunks with records, in order, as far as their headers are intact; counts what it passes over."""
    begin = 0
    while begin < source.size:
        chunk = _chunk_at(source, begin)
        if chunk is None:
            found = _next_chunk(source, begin)
            if found is None and source.size - begin < CHUNK_HEADER:
                losses.cut += source.size - begin
            else:
                losses.add((found or source.size) - begin)
            if found is None:
                return
            begin = found
            continue
        losses.headers += 1
        if chunk.end > source.size:
            losses.cut += source.size - begin
            return
        if chunk.kind == _SIMPLE:
            yield chunk
        elif chunk.kind == _TRANSPOSED:
            losses.chunks["transposed, as no profiler writes them,"] += 1
        elif chunk.kind not in _WITHOUT_RECORDS and chunk.records:
            losses.add(chunk.end - begin)
        begin = chunk.end


def _chunk_at(source: ByteSource, begin: int) -> Chunk | None:
    """The chunk that begins here; None where its header is damaged, or cut."""
    header = b"".join(_pieces(source, begin, 0, CHUNK_HEADER))
    if len(header) < CHUNK_HEADER:
        return None
    header_hash, size, data_hash, kind_and_records, decoded_size = struct.unpack("<5Q", header)
    if highway_hash([header[8:]]) != header_hash:
        return None
    kind, records = kind_and_records & 0xFF, kind_and_records >> 8
    end = chunk_end(begin, size, records)
    return Chunk(source, begin, end, bytes([kind]), size, data_hash, records, decoded_size)


def _next_chunk(source: ByteSource, behind: int) -> int | None:
    """Where the first chunk behind a damaged place begins according to a block header; None where no header says so."""
    for block in range(behind - behind % BLOCK, source.size, BLOCK):
        header = source.read(block, BLOCK_HEADER)
        if len(header) < BLOCK_HEADER:
            return None
        header_hash, previous, following = struct.unpack("<3Q", header)
        if highway_hash([header[8:]]) == header_hash:
            begin: int
            for begin in (block - previous, block + following):
                if behind < begin < source.size:
                    return begin
    return None


def _pieces(source: ByteSource, begin: int, offset: int, length: int) -> Iterator[bytes]:
    """Bytes of the chunk that begins at `begin`, from its `offset`-th on, without block headers; some at a time."""
    at, end = position(begin, offset), position(begin, offset + length)
    while at < end:
        data = source.read(at, min(end - at, STEP - at % BLOCK))
        if not data:
            return
        first = -at % BLOCK  # where the first header stands in these bytes
        view = memoryview(data)
        parts = [view[:first]]
        parts += [view[header + BLOCK_HEADER : header + BLOCK] for header in range(first, len(data), BLOCK)]
        yield b"".join(parts)
        at += len(data)
