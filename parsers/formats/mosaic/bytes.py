"""Numbers of MLIR's bytecode: integers of variable length, each checked against the end of what holds them."""

from __future__ import annotations

from tpuprof.parsers.base.errors import Damaged

_WORD = (1 << 64) - 1


class Reader:
    """Walks over `data` from `at` to `end`; whatever would pass the end raises `Damaged`."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    @property
    def left(self) -> int:
        """Bytes before the end."""
        return self.end - self.at

    def byte(self) -> int:
        if self.at >= self.end:
            raise Damaged("it ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """An unsigned integer: the zeros below the lowest set bit of the first byte say how many bytes follow."""
        first = self.byte()
        if first & 1:
            return first >> 1
        more = (first & -first).bit_length() - 1 if first else 8
        begin = self.at
        self.skip(more)
        if not first:
            return int.from_bytes(self.data[begin : self.at], "little")
        return int.from_bytes(self.data[begin - 1 : self.at], "little") >> (more + 1)

    def signed(self) -> int:
        """A signed integer, with its sign in the lowest bit."""
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def count(self) -> int:
        """How many elements follow: each takes a byte at least, so there are no more than bytes left."""
        value = self.number()
        if value > self.left:
            raise Damaged("it claims more than its bytes can hold")
        return value

    def numbers(self) -> list[int]:
        return [self.number() for _ in range(self.count())]

    def skip(self, size: int) -> None:
        if size > self.left:
            raise Damaged("it ends too early")
        self.at += size

    def part(self, size: int) -> Reader:
        """A reader of the next `size` bytes, which this one passes over."""
        begin = self.at
        self.skip(size)
        return Reader(self.data, begin, self.at)

    def integer(self, bits: int) -> int | None:
        """An integer of a width: one byte up to 8 bits, up to 64 a signed one; None, and no step, beyond that."""
        if bits <= 8:
            value = self.byte()
            return value - (1 << bits) if bits > 1 and value >> (bits - 1) & 1 else value
        if bits > 64:
            return None
        value = self.signed() & _WORD
        value &= (1 << bits) - 1
        return value - (1 << bits) if value >> (bits - 1) & 1 else value
