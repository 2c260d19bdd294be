"""Runs a heap trace: which buffer is in memory from which point to which, and how much that makes at each point.

The compiler lays out temporary buffers by simulating a heap over the program's schedule and leaves the trace of it:
events that allocate a buffer, free one, or let one share the place of another. A place is in use as long as one of
those that share it is; who shares a place that was freed before takes it up again.

What works in place in VMEM, the trace does not tell as sharing: the result is allocated at its operands' address
before they are freed. Bytes at one address are counted once here, and are the result's: the stays of the buffers whose
places it covers end where its own begins, and its own lasts until it and they are freed. XProf counts both, which can
come to more memory than the allocation, or the chip, has.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tpuprof.parsers.memory.model import Int64s
from tpuprof.parsers.memory.modules.assignment import LogicalBuffers

ALLOCATE, FREE, SHARE = range(3)

MOST_BYTES = 2**62
"""What a simulation does not go beyond, so that every figure fits an int64."""

_NEVER = "sharing the place of a buffer that was not in memory before"
_NO_PLACE = "sharing the place of a buffer that the buffer assignment lacks"
_IN_MEMORY = "allocation of a buffer that is in memory already"
_NOT_IN_MEMORY = "free of a buffer that is not in memory"
_ODD_KIND = "neither allocation, free nor sharing"
_TOO_MUCH = "allocation of more memory than there can be"


@dataclass(frozen=True, slots=True)
class HeapRun:
    """What a heap trace comes to.

    Attributes:
        heap_bytes: int64[events + 1], in use before the first event and after each.
        buffer: int64, a row for each stay in memory, in program order: row of the logical buffer that it shows.
        root: int64, row of the logical buffer that its place was allocated for, and with that its size.
        born, dies: int64, points: in memory at point p when born <= p < dies.
        odd: what is odd about events, to how many it is.
    """

    heap_bytes: Int64s
    buffer: Int64s
    root: Int64s
    born: Int64s
    dies: Int64s
    odd: Counter[str]


def run_heap(
    kinds: Sequence[int], buffers: Sequence[int], shared: Sequence[int], addresses: Addresses, base: int = 0
) -> HeapRun:
    """Runs a trace. Never raises: an event that can't be true changes nothing; odd ones are counted in `odd`.

    Args:
        kinds: of each event; `ALLOCATE`, `FREE` or `SHARE`.
        buffers: row of its buffer; below 0 for an event to pass over.
        shared: row of the buffer whose place an event shares; -1 where that is not known: it gets its own place.
        addresses: of all buffers.
        base: bytes in memory throughout.
    """
    heap = _Heap(addresses, base)
    sums, odd = [base], Counter[str]()
    for point, (kind, buffer, other) in enumerate(zip(kinds, buffers, shared, strict=True), 1):
        if buffer < 0:
            problem = None
        elif kind == FREE:
            problem = heap.free(buffer, point)
        elif kind == ALLOCATE:
            problem = heap.allocate(buffer, point)
        elif kind == SHARE:
            problem = heap.share(buffer, other, point)
        else:
            problem = _ODD_KIND
        if problem is not None:
            odd[problem] += 1
        sums.append(heap.now)
    dies = np.array(heap.dies, np.int64)
    return HeapRun(
        heap_bytes=np.array(sums, np.int64),
        buffer=np.array(heap.buffer, np.int64),
        root=np.array(heap.root, np.int64),
        born=np.array(heap.born, np.int64),
        dies=np.where(dies < 0, len(sums), dies),
        odd=odd,
    )


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where buffers lie, by row: plain lists, for a loop over events.

    Attributes:
        allocation: row of its allocation; -1 for none.
        offset_bytes: in that allocation; -1 for none.
        size_bytes: none below 0.
    """

    allocation: Sequence[int]
    offset_bytes: Sequence[int]
    size_bytes: Sequence[int]

    @classmethod
    def of(cls, buffers: LogicalBuffers) -> Addresses:
        """Those of a module's logical buffers."""
        return cls(buffers.allocation.tolist(), buffers.offset_bytes.tolist(), buffers.size_bytes.tolist())


class _Heap:
    """Who is where in a heap that is being run. Each method does what an event says, and tells what is odd about it.

    Attributes:
        now: bytes in memory.
        buffer, root, born, dies: of each stay, see `HeapRun`; -1 in `dies` of one that goes on.
    """

    def __init__(self, addresses: Addresses, base: int) -> None:
        self.now = base
        self.buffer: list[int] = []
        self.root: list[int] = []
        self.born: list[int] = []
        self.dies: list[int] = []
        self._addresses = addresses
        self._sizes = addresses.size_bytes
        self._is_in_memory = [False] * len(self._sizes)
        self._stay = [-1] * len(self._sizes)  # of a buffer in memory: the stay that it became part of
        self._root_of = list(range(len(self._sizes)))  # of a buffer: whose place it has or had
        self._last_stay = [-1] * len(self._sizes)  # at the place of a root
        self._users: list[int] = []  # of a stay: how many buffers
        self._heir: list[int] = []  # of a stay: which one took its place over, or itself
        self._taken: dict[int, _Taken] = {}

    def allocate(self, buffer: int, point: int) -> str | None:
        """The buffer takes its place."""
        return _IN_MEMORY if self._is_in_memory[buffer] else self._begin(buffer, buffer, point)

    def share(self, buffer: int, other: int, point: int) -> str | None:
        """The buffer joins another one, or takes its place up again."""
        if other < 0:
            return self.allocate(buffer, point) or _NO_PLACE
        if self._is_in_memory[buffer]:
            return _IN_MEMORY
        root = self._root_of[other]
        last = self._last_stay[root]
        if last < 0:
            return self._begin(buffer, root, point) or _NEVER
        stay = self._last_heir(last)
        if not self._users[stay]:
            return self._begin(buffer, root, point)
        self._users[stay] += 1
        self._stay[buffer], self._root_of[buffer], self._is_in_memory[buffer] = stay, root, True
        return None

    def free(self, buffer: int, point: int) -> str | None:
        """The buffer leaves its place, which is free when nobody else is there."""
        if not self._is_in_memory[buffer]:
            return _NOT_IN_MEMORY
        self._is_in_memory[buffer] = False
        stay = self._last_heir(self._stay[buffer])
        self._users[stay] -= 1
        if not self._users[stay]:
            root = self.root[stay]
            self.dies[stay] = point
            self.now -= self._sizes[root]
            taken = self._taken.get(self._addresses.allocation[root])
            if taken is not None:
                taken.leave(self._addresses.offset_bytes[root], stay)
        return None

    def _begin(self, buffer: int, root: int, point: int) -> str | None:
        """A stay at the place of `root`; the stays that it covers end."""
        size, users, stay = self._sizes[root], 1, len(self.born)
        if self.now + size > MOST_BYTES:
            return _TOO_MUCH
        allocation, offset = self._addresses.allocation[root], self._addresses.offset_bytes[root]
        if allocation >= 0 and offset >= 0 and size:
            taken = self._taken.setdefault(allocation, _Taken())
            for old in taken.take(offset, offset + size, stay):
                self.dies[old] = point
                self.now -= self._sizes[self.root[old]]
                self._heir[old] = stay
                users += self._users[old]
        self.buffer.append(buffer)
        self.root.append(root)
        self.born.append(point)
        self.dies.append(-1)
        self._users.append(users)
        self._heir.append(stay)
        self._stay[buffer] = self._last_stay[root] = stay
        self._root_of[buffer] = root
        self._is_in_memory[buffer] = True
        self.now += size
        return None

    def _last_heir(self, stay: int) -> int:
        """Who has the place of a stay now; ways that were gone are made shorter."""
        heir = self._heir
        while heir[stay] != stay:
            heir[stay] = heir[heir[stay]]
            stay = heir[stay]
        return stay


class _Taken:
    """What is taken of an allocation: the places of stays, none of which lies in another or crosses it."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._stays: list[int] = []

    def take(self, begin: int, end: int, stay: int) -> list[int]:
        """Puts a stay in a range, and returns those that lie in it, which are taken out.

        Where another one reaches beyond the range, that is no work in place: nothing changes.
        """
        first, last = bisect_right(self._ends, begin), bisect_left(self._begins, end)
        covered = self._stays[first:last]
        if not covered:
            self._begins.insert(first, begin)
            self._ends.insert(first, end)
            self._stays.insert(first, stay)
        elif self._begins[first] >= begin and self._ends[last - 1] <= end:
            self._begins[first:last], self._ends[first:last], self._stays[first:last] = [begin], [end], [stay]
        else:
            return []
        return covered

    def leave(self, begin: int, stay: int) -> None:
        """Takes a stay out if it is there."""
        at = bisect_left(self._begins, begin)
        if at < len(self._stays) and self._stays[at] == stay:
            del self._begins[at], self._ends[at], self._stays[at]
