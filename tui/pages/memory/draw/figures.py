"""All figures of a memory space as words, for reports and for the screen."""

from __future__ import annotations

from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.tui.draw.buffers.sizes import binary_size, limit_size
from tpuprof.tui.draw.format import UNKNOWN, percent


def figures(space: SpaceMemory) -> list[tuple[str, str]]:
    """Name and value of each figure of a memory space."""
    capacity = f"{UNKNOWN}: {space.unknown['capacity']}" if "capacity" in space.unknown else UNKNOWN
    if space.capacity is not None:
        capacity = f"{limit_size(space.capacity.size_bytes)} ({space.capacity.source})"
    shared = f" ({binary_size(space.aliased_bytes)} of them donated arguments)" if space.aliased_bytes else ""
    rows = [
        ("peak", _of(space.peak_bytes, space)),
        ("unpadded peak", binary_size(space.peak_unpadded_bytes)),
        ("capacity", capacity),
        ("headroom", binary_size(space.headroom_bytes)),
        ("arguments", binary_size(space.arguments_bytes)),
        ("outputs", binary_size(space.outputs_bytes) + shared),
        ("temporaries at the peak", binary_size(space.temporaries_bytes)),
        ("constants", binary_size(space.constants_bytes)),
        ("padding at the peak", binary_size(space.padding_bytes)),
        ("all allocations", binary_size(space.total_allocation_bytes)),
        ("fragmentation", UNKNOWN if space.fragmentation is None else percent(100 * space.fragmentation)),
    ]
    if space.scoped_bytes is not None:
        rows.append(("largest scoped allocation", f"{binary_size(space.scoped_bytes)} by {space.scoped_instruction}"))
    if space.peak_instruction is not None:
        rows.append(("peak at", f"point {space.peak_position:,} of {space.points - 1:,}: {space.peak_instruction}"))
    return rows


def _of(size: int, space: SpaceMemory) -> str:
    if space.capacity is None or not space.capacity.size_bytes:
        return binary_size(size)
    return f"{binary_size(size)} ({percent(100 * size / space.capacity.size_bytes)} of the capacity)"
