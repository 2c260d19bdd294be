"""What lies in one memory space of a compiled module: what is there throughout, and what its heap trace shows.

The compiler lays out temporary buffers by simulating a heap over the program's schedule and leaves the trace of it:
events that allocate a buffer, free one, or let one share the place of another. A place is in use as long as one of
those that share it is; who shares a place that was freed before takes it up again.

The trace does not record as sharing what works in place in VMEM: the result is allocated at its operands' address
before they are freed. Bytes at one address are counted once here, and are the result's: the stays of the buffers whose
places it covers end where its own begins, and its own lasts until it and they are freed. XProf counts both, which can
come to more memory than the allocation, or the chip, has.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.model import CATEGORIES, LiveRanges, space_name
from tpuprof.parsers.memory.modules.assignment import Assignment

ALLOCATE, FREE, SHARE = range(3)

MOST_BYTES = 2**62
"""What a simulation does not go beyond, so that every figure fits an int64."""

_IN_MEMORY = "allocation of a buffer that is in memory already"

_Number = TypeVar("_Number", np.int64, np.bool_)


@dataclass(frozen=True, slots=True)
class SpaceHeap:
    """What lies in one memory space of a module, at each point of its heap trace.

    Attributes:
        live_ranges: what is there throughout, then what the trace shows, in program order.
        heap_bytes, heap_unpadded_bytes: int64[points], see `SpaceMemory`.
        trace: that was run; None where the space has none.
        warnings: what is odd, a sentence each.
    """

    live_ranges: LiveRanges
    heap_bytes: Int64s
    heap_unpadded_bytes: Int64s
    trace: hlo_pb2.HeapSimulatorTrace | None
    warnings: tuple[str, ...]


def space_heap(assignment: Assignment, space: int) -> SpaceHeap:
    """Everything that lies in a memory space, and the heap at each point.

    Allocations of parameters, outputs and constants are there throughout; thread-local ones take no memory. The trace
    shows the use of the temporary ones that its buffers lie in, several if need be. A temporary allocation that it does
    not cover (another trace does, or none) counts with its whole size throughout: the memory is set aside for the
    whole program, and two traces have no clock in common by which their heaps could be added up.
    """
    ran = _Ran.of(assignment, space)
    live_ranges, heap = _live_ranges(assignment, ran), ran.run.heap_bytes
    elements = np.where(live_ranges.unpadded_bytes < 0, live_ranges.size_bytes, live_ranges.unpadded_bytes)
    steps = np.zeros(len(heap) + 1, np.int64)
    np.add.at(steps, live_ranges.born, elements)
    np.subtract.at(steps, live_ranges.dies, elements)
    unpadded = np.cumsum(steps)[: len(heap)]
    return SpaceHeap(live_ranges, heap, unpadded, ran.trace, tuple(_sentences(assignment, space, ran)))


def peak_bytes(assignment: Assignment, space: int) -> int:
    """Most that is in a memory space at once; the largest of `space_heap`, for less work."""
    return int(_Ran.of(assignment, space).run.heap_bytes.max())


def choose_trace(assignment: Assignment, space: int) -> hlo_pb2.HeapSimulatorTrace | None:
    """The heap trace of a memory space, as XProf chooses it; None where it has none.

    That is the trace of the first temporary allocation that has one. A trace belongs to the allocation that its first
    event's buffer lies in (what it says about that itself can't be trusted), of several the last one does. Where no
    temporary allocation has one, it is the trace with most events about buffers of the space.
    """
    allocations, buffers = assignment.allocations, assignment.buffers
    firsts = ((buffers.rows.get(trace.events[0].buffer_id, -1), trace) for trace in assignment.traces if trace.events)
    owned = {int(buffers.allocation[row]): trace for row, trace in firsts if row >= 0}
    for allocation in np.flatnonzero((allocations.space == space) & allocations.is_temporary).tolist():
        if allocation in owned:
            return owned[allocation]
    best, most = None, 0
    for trace in assignment.traces:
        rows = np.array([buffers.rows.get(event.buffer_id, -1) for event in trace.events], np.int64)
        count = int(np.count_nonzero(buffers.space[rows[rows >= 0]] == space))
        if count > most:
            best, most = trace, count
    return best


@dataclass(frozen=True, slots=True)
class _Ran:
    """A memory space with its trace run.

    Attributes:
        traced: int64, rows of the allocations that the trace covers.
        untraced: int64, rows of the temporary allocations that it does not cover.
        fixed: int64, rows of the allocations that are there throughout, these among them.
        fixed_bytes: int64, what each counts.
        odd: what is odd about events, those that were not run included, to how many it is.
    """

    trace: hlo_pb2.HeapSimulatorTrace | None
    traced: Int64s
    untraced: Int64s
    fixed: Int64s
    fixed_bytes: Int64s
    run: HeapRun
    odd: Counter[str]

    @classmethod
    def of(cls, assignment: Assignment, space: int) -> _Ran:
        """Chooses the trace; runs it without events of other spaces, and of allocations that are there throughout."""
        allocations, buffers = assignment.allocations, assignment.buffers
        trace = choose_trace(assignment, space)
        events = () if trace is None else trace.events
        rows = np.array([buffers.rows.get(event.buffer_id, -1) for event in events], np.int64)
        owner = _at(buffers.allocation, rows, -1)
        elsewhere = (rows >= 0) & (_at(buffers.space, rows, space) != space)
        throughout = ~elsewhere & (owner >= 0) & ~_at(allocations.is_temporary, owner, True)
        left_out = {
            "about a logical buffer that the buffer assignment lacks": rows < 0,
            "about a buffer in another memory space": elsewhere,
            "about a buffer in no temporary allocation": throughout,
        }
        is_run = ~np.any(list(left_out.values()), axis=0)
        traced = np.unique(owner[is_run & (owner >= 0)])
        here = allocations.space == space
        is_untraced = here & allocations.is_temporary & (allocations.size_bytes > 0)
        is_untraced[traced] = False
        untraced = np.flatnonzero(is_untraced)
        fixed = np.concatenate([np.flatnonzero(here & allocations.is_lasting), untraced])
        sizes = allocations.size_bytes[fixed]
        sizes = np.where(np.cumsum(sizes, dtype=np.float64) <= MOST_BYTES / 2, sizes, 0)
        run = run_heap(
            [event.kind for event in events],
            np.where(is_run, rows, -1).tolist(),
            [buffers.rows.get(event.share_with_canonical_id, -1) if event.kind == SHARE else -1 for event in events],
            Addresses(buffers.allocation.tolist(), buffers.offset_bytes.tolist(), buffers.size_bytes.tolist()),
            int(sizes.sum()),
        )
        odd = Counter({what: int(mask.sum()) for what, mask in left_out.items()}) + run.odd
        return cls(trace, traced, untraced, fixed, sizes, run, odd)


def _live_ranges(assignment: Assignment, ran: _Ran) -> LiveRanges:
    """A row for each allocation that is there throughout, and for each stay that the trace shows."""
    allocations, buffers, run = assignment.allocations, assignment.buffers, ran.run
    shown = allocations.largest[ran.fixed]
    whole = _at(buffers.size_bytes, shown, -1) == allocations.size_bytes[ran.fixed]
    shown = np.where(allocations.is_temporary[ran.fixed] & ~whole, -1, shown)  # of many, none stands for the rest
    root, none = np.concatenate([shown, run.root]), np.zeros(len(ran.fixed), np.int64)
    temporary = np.full(len(run.root), CATEGORIES.index("temporary"), np.int64)
    return LiveRanges(
        logical_buffer=_at(buffers.ids, np.concatenate([shown, run.buffer]), -1),
        category=np.concatenate([allocations.category[ran.fixed], temporary]),
        size_bytes=np.concatenate([ran.fixed_bytes, buffers.size_bytes[run.root]]),
        unpadded_bytes=np.array([-1 if row < 0 else assignment.unpadded_bytes(row) for row in root.tolist()], np.int64),
        allocation=_at(allocations.index, np.concatenate([ran.fixed, buffers.allocation[run.root]]), -1),
        offset_bytes=np.concatenate([none, buffers.offset_bytes[run.root]]),
        born=np.concatenate([none, run.born]),
        dies=np.concatenate([none + len(run.heap_bytes), run.dies]),
    )


def _sentences(assignment: Assignment, space: int, ran: _Ran) -> Iterator[str]:
    """What is odd about a space: allocations without a trace, a trace that does not fit, events that can't be true."""
    sizes, name, events = assignment.allocations.size_bytes, space_name(space), len(ran.run.heap_bytes) - 1
    untraced, traced = sizes[ran.untraced].tolist(), sizes[ran.traced].tolist()
    if untraced:
        what = f"{counted(len(untraced), 'temporary allocation')} ({sum(untraced):,} bytes)"
        why = "the heap trace says nothing about" if ran.trace is not None else "there is no heap trace of"
        yield f"{name}: {why} {what}; all of that counts as in memory throughout."
    most = int(ran.run.heap_bytes.max() - ran.run.heap_bytes[0])
    if traced and most > sum(traced):
        yield f"{name}: the heap trace comes to {most:,} bytes in allocations of {sum(traced):,} bytes."
    for what, count in ran.odd.items():
        yield f"Heap trace of {name}, odd events: {count:,} of {events:,} ({what})."


def _at(column: NDArray[_Number], rows: Int64s, other: int) -> NDArray[_Number]:
    """Entries of a column by row, `other` for a row below 0."""
    if not len(column):
        return np.full(len(rows), other, column.dtype)
    return np.where(rows >= 0, column[rows], np.array(other, column.dtype))


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
            problem = "neither allocation, free nor sharing"
        if problem is not None:
            odd[problem] += 1
        sums.append(heap.now)
    columns = (sums, heap.buffer, heap.root, heap.born, heap.dies)
    heap_bytes, buffer_rows, root, born, dies = (np.array(column, np.int64) for column in columns)
    return HeapRun(heap_bytes, buffer_rows, root, born, np.where(dies < 0, len(sums), dies), odd)


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


class _Heap:
    """The buffers that are live in a heap while its trace is run. Each method does what an event says, and returns what
    is odd about it.

    Attributes:
        now: bytes in memory.
        buffer, root, born, dies: of each stay, see `HeapRun`; -1 in `dies` of one that goes on.
    """

    def __init__(self, addresses: Addresses, base: int) -> None:
        self.now = base
        self.buffer, self.root, self.born, self.dies = list[int](), list[int](), list[int](), list[int]()
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
        return _IN_MEMORY if self._is_in_memory[buffer] else self._begin(buffer, buffer, point)

    def share(self, buffer: int, other: int, point: int) -> str | None:
        """The buffer joins another one, or takes its place up again."""
        if other < 0:
            return self.allocate(buffer, point) or "sharing the place of a buffer that the buffer assignment lacks"
        if self._is_in_memory[buffer]:
            return _IN_MEMORY
        root = self._root_of[other]
        last = self._last_stay[root]
        if last < 0:
            never = "sharing the place of a buffer that was not in memory before"
            return self._begin(buffer, root, point) or never
        stay = self._last_heir(last)
        if not self._users[stay]:
            return self._begin(buffer, root, point)
        self._users[stay] += 1
        self._stay[buffer], self._root_of[buffer], self._is_in_memory[buffer] = stay, root, True
        return None

    def free(self, buffer: int, point: int) -> str | None:
        """The buffer leaves its place, which is free when nobody else is there."""
        if not self._is_in_memory[buffer]:
            return "free of a buffer that is not in memory"
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
            return "allocation of more memory than there can be"
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
        self._live_ranges: list[int] = []

    def take(self, begin: int, end: int, stay: int) -> list[int]:
        """Puts a stay in a range, and returns those that lie in it, which are taken out.

        Where another one reaches beyond the range, that is no work in place: nothing changes.
        """
        first, last = bisect_right(self._ends, begin), bisect_left(self._begins, end)
        covered = self._live_ranges[first:last]
        if not covered:
            self._begins.insert(first, begin)
            self._ends.insert(first, end)
            self._live_ranges.insert(first, stay)
        elif self._begins[first] >= begin and self._ends[last - 1] <= end:
            self._begins[first:last], self._ends[first:last], self._live_ranges[first:last] = [begin], [end], [stay]
        else:
            return []
        return covered

    def leave(self, begin: int, stay: int) -> None:
        place = bisect_left(self._begins, begin)
        if place < len(self._live_ranges) and self._live_ranges[place] == stay:
            del self._begins[place], self._ends[place], self._live_ranges[place]
