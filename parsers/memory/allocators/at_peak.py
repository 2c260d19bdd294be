"""What an allocator had handed out at its peak, by what asked for it."""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.memory.allocators.events import AllocatorEvents, distinct_texts, stats_at
from tpuprof.parsers.memory.allocators.model import ActiveAllocation

STACK, EARLIER = "stack", "allocated before the capture"
"""Stand for what is reserved for programs, and for what is on the heap though no allocation accounts for it."""

MOST_ROWS, REST = 10_000, "smaller allocations"
"""Different allocations that are listed, and what stands for the rest of them, which is one row."""

_TEXTS = ("tf_op", "region_type", "shape")

# TensorFlow's numbers of data types (DataType in its types.proto), 1 and on; 0 says that there is none.
_DATA_TYPES = (
    *("float", "double", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8", "quint8"),
    *("qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "half", "resource", "variant", "uint32"),
    *("uint64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int4"),
    "uint4",
)
_REF_TYPES = 100
"""A reference to a variable has the type's number plus this."""


class Descriptions(NamedTuple):
    """What some events say of themselves, as columns.

    Attributes:
        texts: each once, and at their end None.
        op, region, shape: int32[n], indices into `texts`; -1 where the event does not say.
        data_type: int64[n], TensorFlow's number; 0 where the event does not say.
    """

    texts: tuple[str | None, ...]
    op: NDArray[np.int32]
    region: NDArray[np.int32]
    shape: NDArray[np.int32]
    data_type: Int64s


def data_type_name(number: int) -> str | None:
    """``float`` of 1, ``half`` of 19; None for 0 and ``type 77`` for a number without a name."""
    if number == 0:
        return None
    base, suffix = (number - _REF_TYPES, "_ref") if number > _REF_TYPES else (number, "")
    return f"{_DATA_TYPES[base - 1]}{suffix}" if 0 < base <= len(_DATA_TYPES) else f"type {number}"


def describe(plane: Plane, events: AllocatorEvents) -> Descriptions:
    """Reads what events say of themselves."""
    known: dict[str, int] = {}
    columns = {name: np.full(len(events), -1, np.int32) for name in _TEXTS}
    data_type = np.zeros(len(events), np.int64)
    for rows, stats, body in stats_at(plane, events.begin, events.length, (*_TEXTS, "data_type")):
        for name in _TEXTS:
            if name in stats:
                texts, which = distinct_texts(plane, stats[name], body)
                index = [known.setdefault(text, len(known)) if text else -1 for text in texts]
                columns[name][rows] = np.array([*index, -1], np.int32)[which]
        if "data_type" in stats:
            data_type[rows] = stats["data_type"].integers()
    return Descriptions((*known, None), columns["tf_op"], columns["region_type"], columns["shape"], data_type)


def live_at(events: AllocatorEvents, last: int) -> Int64s:
    """Rows of the allocations up to event `last` that nothing has freed by then, ascending.

    An address's last event decides: an allocation there is live, whatever was at that address before.

    Args:
        events: of one allocator, in order of time.
    """
    rows = np.flatnonzero(events.has_address[: last + 1])
    address = events.address[rows]
    order = np.argsort(address, kind="stable")
    is_last = np.append(address[order][1:] != address[order][:-1], True)[: len(order)]
    rows = rows[order[is_last]]
    live: Int64s = np.sort(rows[events.is_allocation[rows]]).astype(np.int64)
    return live


def in_use_at(plane: Plane, events: AllocatorEvents, peak: int) -> tuple[tuple[ActiveAllocation, ...], str]:
    """What is in use after an event, summed up by equal allocations.

    Args:
        events: of one allocator, in order of time.

    Returns:
        The allocations, the largest total first, and what they leave out, a phrase; empty where they add up.
    """
    live = live_at(events, peak)
    sized = live[events.allocated_bytes[live] >= 0]
    heap, stack = int(events.heap_bytes[peak]), max(int(events.stack_bytes[peak]), 0)
    rows, accounted = _merged(plane, events.take(sized))
    if heap > accounted:
        rows.append(ActiveAllocation(EARLIER, 1, heap - accounted, heap - accounted))
    if stack:
        rows.append(ActiveAllocation(STACK, 1, stack, stack, STACK))
    rows.sort(key=lambda row: -row.total_bytes)  # equal ones stay in order
    return tuple(rows), _lacks(events, peak, len(live) - len(sized), heap, accounted)


def _lacks(events: AllocatorEvents, peak: int, unsized: int, heap: int, accounted: int) -> str:
    lacks = []
    if unsized:
        lacks.append(f"{counted(unsized, 'allocation')} without a size (stat allocation_bytes)")
    if homeless := int((~events.has_address[: peak + 1]).sum()):
        lacks.append(f"{counted(homeless, 'event')} without an address (stat addr)")
    if heap < 0:
        lacks.append("what was allocated before the capture, because the size of the heap is unknown")
    elif accounted > heap:
        lacks.append(f"some deallocations, because the rows are {accounted - heap:,} bytes more than the heap")
    return "; ".join(lacks)


def _merged(plane: Plane, events: AllocatorEvents) -> tuple[list[ActiveAllocation], int]:
    """Equal allocations as one, by total, then size, then texts; and how many bytes they are together."""
    if not len(events):
        return [], 0
    texts, op, region, shape, data_type = describe(plane, events)
    columns = (events.allocated_bytes, events.requested_bytes, op, region, data_type, shape)
    order = np.lexsort(columns)
    differs = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    first = np.flatnonzero(np.append(True, differs))
    rows, count = order[first], np.diff(np.append(first, len(order)))
    sizes = events.allocated_bytes[rows]
    ranked = np.lexsort((-sizes, -count * sizes.astype(np.float64)))  # the product may be beyond 64 bits
    accounted = _product_sum(count, sizes)
    allocations = [
        ActiveAllocation(
            framework_op=texts[op[row]],
            occurrences=int(number),
            allocated_bytes=int(size),
            requested_bytes=int(events.requested_bytes[row] if events.requested_bytes[row] >= 0 else size),
            region=texts[region[row]],
            data_type=data_type_name(int(data_type[row])),
            shape=texts[shape[row]],
        )
        for row, number, size in zip(*(column[ranked[:MOST_ROWS]] for column in (rows, count, sizes)), strict=True)
    ]
    allocations.sort(key=_order)
    rest = _product_sum(count[ranked[MOST_ROWS:]], sizes[ranked[MOST_ROWS:]])
    if rest:
        allocations.append(ActiveAllocation(REST, 1, rest, rest))
    return allocations, accounted


def _product_sum(count: NDArray[np.intp], sizes: Int64s) -> int:
    """Exact, whatever the sizes."""
    return sum(map(operator.mul, count.tolist(), sizes.tolist()))


def _order(row: ActiveAllocation) -> tuple[int, int, int, list[str]]:
    """By total, then size, then what was asked for, then texts."""
    texts = [text or "" for text in (row.framework_op, row.region, row.data_type, row.shape)]
    return -row.total_bytes, -row.allocated_bytes, -row.requested_bytes, texts
