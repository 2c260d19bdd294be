"""Damages bytes in the ways that files get damaged, and in those that somebody would try on purpose."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable

Mutate = Callable[[random.Random, bytes], bytes]

_INTERESTING = (0, 1, 0x7F, 0x80, 0xFF)
_HUGE_VARINTS = (
    b"\xff" * 9 + b"\x01",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x10",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
)
_TEXTS = (
    b"\x1b[201~\n",
    b"\x1b]0;owned\x07",
    b"\x00",
    b"\r\n",
    "\u202e".encode(),
    b"\xff\xfe",
    b"9" * 400,
    b"-1",
    b"1e999",
    b"NaN",
    b"../../etc/passwd",
    b'"}]}{["',
    b"%s%n",
    b"\xf0\x9f\x92\xa9" * 50,
)


def _place(rng: random.Random, data: bytes) -> int:
    return rng.randrange(len(data) + 1)


def flip_bits(rng: random.Random, data: bytes) -> bytes:
    """A few bits the other way round."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def set_bytes(rng: random.Random, data: bytes) -> bytes:
    """Bytes at the edges of what a byte can be."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 4))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice(_INTERESTING)
    return bytes(changed)


def cut(rng: random.Random, data: bytes) -> bytes:
    """The end is missing."""
    return data[: _place(rng, data)]


def drop(rng: random.Random, data: bytes) -> bytes:
    """A piece is missing."""
    begin = _place(rng, data)
    return data[:begin] + data[begin + rng.choice((1, 2, 7, 64, 4096)) :]


def repeat(rng: random.Random, data: bytes) -> bytes:
    """A piece stands there many times."""
    begin = _place(rng, data)
    piece = data[begin : begin + rng.choice((1, 8, 100, 1000))]
    return data[:begin] + piece * rng.choice((2, 3, 50)) + data[begin:]


def swap(rng: random.Random, data: bytes) -> bytes:
    """Two pieces stand in each other's place."""
    a, b = sorted((_place(rng, data), _place(rng, data)))
    size = min(rng.choice((1, 8, 64)), b - a)
    return data[:a] + data[b : b + size] + data[a + size : b] + data[a : a + size] + data[b + size :]


def zero(rng: random.Random, data: bytes) -> bytes:
    """A block that never reached the disk."""
    begin = _place(rng, data)
    size = min(rng.choice((1, 16, 512, 4096)), len(data) - begin)
    return data[:begin] + bytes(size) + data[begin + size :]


def insert_varint(rng: random.Random, data: bytes) -> bytes:
    """A number that is too large, at times instead of one."""
    begin = _place(rng, data)
    return data[:begin] + rng.choice(_HUGE_VARINTS) + data[begin + rng.choice((0, 1, 2)) :]


def insert_text(rng: random.Random, data: bytes) -> bytes:
    """A text that a terminal, a shell or a parser would take for its own."""
    begin = _place(rng, data)
    return data[:begin] + rng.choice(_TEXTS) + data[begin:]


def replace_text(rng: random.Random, data: bytes) -> bytes:
    """The same, in the place of as many bytes, so that lengths hold."""
    text = rng.choice(_TEXTS)
    begin = _place(rng, data[: max(len(data) - len(text), 0)])
    return data[:begin] + text[: len(data) - begin] + data[begin + len(text) :]


def pack(_: random.Random, data: bytes) -> bytes:
    """The same, compressed with gzip."""
    return gzip.compress(data, 1, mtime=0)


ALL: tuple[Mutate, ...] = (
    flip_bits,
    set_bytes,
    cut,
    drop,
    repeat,
    swap,
    zero,
    insert_varint,
    insert_text,
    replace_text,
    replace_text,
)


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Some bytes damaged once to a few times; rarely noise alone, or packed afterwards."""
    if rng.random() < 0.02:
        return rng.randbytes(rng.randrange(200))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        data = rng.choice(ALL)(rng, data)
    return pack(rng, data) if rng.random() < 0.05 else data
