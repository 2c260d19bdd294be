"""How full a device's memory was at most, by the allocator's events among those of the host."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import is_among
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.host_events.events import HostEvents, HostThread

_ALLOCATION = "MemoryAllocation"
_DEVICE = "index_on_host"
_PARTS = ("bytes_reserved", "bytes_allocated", "bytes_available")
_MOST = 1 << 50  # bytes; no device has more, such a figure is damage


def memory_stats(plane: Plane) -> tuple[str, ...]:
    """Stats to read of the host's events; none where no allocator left any."""
    return (_DEVICE, *_PARTS) if plane.event_metadata.find_names((_ALLOCATION,)) else ()


def fullest_memory(host: HostEvents | None) -> tuple[int, int] | None:
    """Bytes in use in the memory that was fullest, and its capacity; None where no event records them.

    Args:
        host: decoded with `memory_stats`.
    """
    if host is None:
        return None
    ids = list(host.plane.event_metadata.find_names((_ALLOCATION,)).values())
    found = [most for thread in host.threads if (most := _of_thread(thread, ids)) is not None]
    return max(found, key=lambda use: use[0] / use[1], default=None)


def _of_thread(thread: HostThread, ids: list[int]) -> tuple[int, int] | None:
    rows = thread.stat(_DEVICE).rows
    rows = rows[is_among(thread.metadata_id[rows], ids)]
    if not len(rows):
        return None
    reserved, allocated, available = (np.clip(thread.integers(name, -1)[rows], -1, _MOST) for name in _PARTS)
    used = reserved + allocated
    known = (reserved >= 0) & (allocated >= 0) & (available >= 0) & (used + available > 0)
    if not known.any():
        return None
    used, capacity = used[known], (used + available)[known]
    fullest = int((used / capacity).argmax())
    return int(used[fullest]), int(capacity[fullest])
