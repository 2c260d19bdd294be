"""The quantities of memory over time: allocators, their timelines, and what was in use at the peak of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.memory.allocators.model import AllocatorProfile, MemoryProfilePage
from tpuprof.tui.draw.format import binary_size, duration, percent
from tpuprof.tui.draw.pen import cut
from tpuprof.tui.draw.spans import StyleKey
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Rows, Table, attribute, in_order, object_table, of_each
from tpuprof.tui.report.units import BYTES, COUNT, PERCENT, SHARE, VERBATIM, Unit, Value, plain

UNNAMED = "(not named)"  # stands for the op where the runtime names none


def _known_sizes(values: Sequence[int] | NDArray[Any]) -> list[Value]:
    return [None if value < 0 else value for value in plain(values)]  # type: ignore[operator]


SIZE = Unit("bytes", _known_sizes, lambda value, _: binary_size(None if value < 0 else value))
"""Sizes that are -1 where they are unknown."""
_INSTANT = Unit("ps", plain, lambda value, ascii_only: duration(value, ascii_only, digits=4))
_OP = replace(VERBATIM, words=lambda value, _: value or UNNAMED)
_DETAIL = replace(VERBATIM, words=lambda value, _: value or "-")

WHY_EMPTY: Metric[MemoryProfilePage] = attribute(
    "why_empty", VERBATIM, "why there are no allocators", null="there are allocators"
)

# --- allocators and their timelines

_IN_PIECES = "the share of free memory outside its largest piece: 1 - largest free piece / all free memory"
_OF_EVENTS = (
    ("stack_bytes", SIZE, "stack", "memory reserved for loaded programs", "what is reserved"),
    ("heap_bytes", SIZE, "heap", "memory allocated for arrays", "what is allocated"),
    ("free_bytes", SIZE, "", "what is free", "what is free"),
    ("fragmentation", SHARE, "fragmentation", _IN_PIECES, "how fragmented memory is"),
)
"""What an event says: key, unit, heading, meaning, and how it is called where it is left out."""


def _at_peak(key: str) -> Callable[[AllocatorProfile], Any]:
    return lambda allocator: plain(getattr(allocator, key)[[allocator.peak_index]])[0]


def _of_timeline(key: str) -> Callable[[AllocatorProfile, Rows], Any]:
    return lambda allocator, rows: getattr(allocator, key)[rows]


def _peak(allocator: AllocatorProfile) -> int | None:
    return None if "peak_bytes" in allocator.unknown else allocator.peak_bytes


def fragmentation_words(allocator: AllocatorProfile) -> str | None:
    """What fragmentation means at the peak, a sentence; None where the profile records none."""
    share = float(allocator.fragmentation[allocator.peak_index])
    largest, free = allocator.largest_free_bytes, int(allocator.free_bytes[allocator.peak_index])
    if math.isnan(share):
        return None
    if largest is None:
        return f"Fragmentation: {percent(100 * share)} of the free memory at the peak is outside its largest piece."
    if not share:
        return f"Fragmentation: none, all {binary_size(free)} free at the peak are contiguous."
    whole = f"{percent(100 * share)} of the {binary_size(free)} free at the peak"
    contiguous = f"; {binary_size(largest)} is contiguous" if binary_size(largest) != binary_size(free) else ""
    return f"Fragmentation: {whole}{contiguous}."


_LIFETIME = "the most of the heap in use since the process began"
_LARGEST = "the largest piece of free memory at the peak: free x (1 - fragmentation)"
_NO_LARGEST = "the event at the peak does not give free memory or fragmentation"
_ROWS_LACK, _ADDS_UP = (
    "allocations that are missing from the rows at the peak",
    ("the rows at the peak add up to the memory in use"),
)
_MOVES = "memory in use changes, which needs no explanation"
ALLOCATORS: Table[Sequence[AllocatorProfile]] = object_table(
    "allocators",
    (
        attribute("id", VERBATIM, "as the profile names it"),
        attribute("label", VERBATIM, "its common name", "allocator"),
        attribute("host", VERBATIM, "the host of this memory or of its device"),
        attribute("capacity_bytes", BYTES, "stack, heap and free memory at the peak", "capacity"),
        Metric("peak_bytes", BYTES, _peak, "the most of stack and heap in use at the same time", heading="peak"),
        attribute("peak_time_ps", _INSTANT, "when that was, on the trace's clock", "at"),
        attribute("lifetime_peak_bytes", BYTES, _LIFETIME, "lifetime peak of the heap"),
        *(
            Metric(
                key, unit, _at_peak(key), f"{meaning}, at the peak", f"the event at the peak does not say {name}", title
            )
            for key, unit, title, meaning, name in _OF_EVENTS
        ),
        attribute("largest_free_bytes", BYTES, _LARGEST, "largest free piece", null=_NO_LARGEST),
        attribute("allocations", COUNT, "allocation events", "allocations"),
        attribute("deallocations", COUNT, "deallocation events", "freed"),
        attribute("flat", VERBATIM, "why a flat line is normal", null=_MOVES),
        Metric("at_peak_lacks", VERBATIM, lambda allocator: allocator.unknown.get("at_peak"), _ROWS_LACK, _ADDS_UP),
    ),
    markdown=(
        *("label", "peak_bytes", "peak_time_ps", "capacity_bytes", "lifetime_peak_bytes", "stack_bytes", "heap_bytes"),
        *("fragmentation", "largest_free_bytes", "allocations", "deallocations"),
    ),
)

TIMELINE: Table[AllocatorProfile] = Table(
    "timeline",
    (
        Field("time_ps", _INSTANT, _of_timeline("time_ps"), "when the event was, on the trace's clock"),
        *(
            Field(key, unit, _of_timeline(key), f"{meaning}, after the event", f"this event does not say {name}")
            for key, unit, _, meaning, name in _OF_EVENTS
        ),
    ),
    lambda allocator: len(allocator.time_ps),
    places=("allocators[].timeline[]",),
)

# --- what was in use at the peak


def _dim(value: str | None) -> StyleKey:
    return "text" if value else "dim"


def _detail(key: str, title: str, width: int, meaning: str) -> Field[AllocatorProfile]:
    look: ColumnSpec[AllocatorProfile] = ColumnSpec(title, width, _dim, cut=cut)
    null = "the runtime does not say this about these allocations"
    return Field(key, _DETAIL, of_each(key, "at_peak"), meaning, null, title, look, filter=(key,))


def _shares(allocator: AllocatorProfile, rows: Rows) -> list[float]:
    return [100 * allocator.at_peak[row].total_bytes / max(allocator.peak_bytes, 1) for row in rows]


def _number(
    key: str, unit: Unit, meaning: str, title: str, width: int, style: StyleKey = "text"
) -> Field[AllocatorProfile]:
    screen: ColumnSpec[AllocatorProfile] = ColumnSpec(title, width, lambda _: style)
    return Field(key, unit, of_each(key, "at_peak"), meaning, heading=title, screen=screen)


_TITLE = "in use at the peak"
_OP_LOOK: ColumnSpec[AllocatorProfile] = ColumnSpec(_TITLE, 28, _dim, fixed=True, grows=True)
_SHARE_LOOK: ColumnSpec[AllocatorProfile] = ColumnSpec("%", 6)
_ALLOCATION = in_order("framework_op occurrences allocated_bytes requested_bytes region data_type shape")

AT_PEAK: Table[AllocatorProfile] = Table(
    "at_peak",
    (
        Field("host", VERBATIM, lambda allocator, rows: [allocator.host] * len(rows), "the allocator's host"),
        Field("allocator", VERBATIM, lambda allocator, rows: [allocator.id] * len(rows), "the allocator's id"),
        replace(_detail("framework_op", _TITLE, 28, "the op that allocated it"), unit=_OP, screen=_OP_LOOK),
        _number("total_bytes", BYTES, "the total size of equal allocations", "total", 9, "strong"),
        Field("share_percent", PERCENT, _shares, "the same as a share of the peak", heading="%", screen=_SHARE_LOOK),
        _number("occurrences", COUNT, "how many equal ones there are", "count", 7),
        _number("allocated_bytes", BYTES, "bytes given to each", "size", 9),
        _number("requested_bytes", BYTES, "bytes requested by each", "requested", 9),
        _detail("region", "region", 10, "the part of memory: temp, output, persist/dynamic"),
        _detail("data_type", "type", 8, "the type of the elements"),
        _detail("shape", "shape", 22, "the shape of the array"),
    ),
    lambda allocator: len(allocator.at_peak),
    json=_ALLOCATION,
    csv=("host", "allocator", *_ALLOCATION),
    markdown=in_order("framework_op total_bytes occurrences allocated_bytes region data_type shape"),
    screen=in_order("framework_op total_bytes share_percent occurrences allocated_bytes region data_type shape"),
    places=("allocators[].at_peak[]",),
)

SEARCHED = ("framework_op", "region", "data_type", "shape")  # what a search looks at
