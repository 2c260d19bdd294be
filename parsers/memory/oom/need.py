"""What advice stands on: from an out-of-memory error, or from one memory space of a compiled module."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.memory.model import CATEGORIES, SpaceMemory, space_name
from tpuprof.parsers.memory.oom.model import Need, OomReport

MOST_BUFFERS = 2_000
"""Buffers of a module that advice looks at, the largest ones; what is beyond them is small change."""

_TEMPORARY = tuple(CATEGORIES.index(name) for name in ("temporary", "scoped"))


def need_of_report(report: OomReport) -> Need:
    """What an error's text tells; the buffers are the ones that it lists."""
    used = report.used_bytes
    if used is None and report.kind == "compile":
        used = report.requested_bytes  # one allocation that is larger than the memory
    capacity = report.capacity_bytes
    if capacity is None and used is not None and report.exceeded_bytes is not None:
        capacity = max(0, used - report.exceeded_bytes)
    return Need(
        memory_space=(report.memory_space or "hbm").lower(),
        used_bytes=used,
        capacity_bytes=capacity,
        arguments_bytes=report.arguments_bytes,
        outputs_bytes=report.output_bytes,
        aliased_bytes=report.shared_bytes,
        temporaries_bytes=report.hlo_temp_bytes,
        fragmentation_bytes=report.fragmentation_bytes,
        buffers=report.buffers,
        is_whole=False,
        kind=report.kind,
        program=report.program,
        requested_bytes=report.requested_bytes,
        free_bytes=report.free_bytes,
        exceeded_bytes=report.exceeded_bytes,
        is_scoped_limit="scoped" in report.sentence.lower() and "limit" in report.sentence.lower(),
    )


def need_of_memory(page: SpaceMemory, point: int | None = None) -> Need:
    """What is in memory at a point of a compiled module, the largest buffers first.

    Args:
        point: from 0 to `page.points` - 1, others are taken as the nearest of these; the peak if left out.
    """
    at = page.peak_position if point is None else point
    at = min(max(at, 0), page.points - 1)
    rows = page.at(at)
    sizes = page.stays.size_bytes[rows]
    largest = rows[np.argsort(-sizes, kind="stable")[:MOST_BUFFERS]]
    temporary = np.isin(page.stays.category[rows], _TEMPORARY)
    return Need(
        memory_space=space_name(page.space).lower(),
        used_bytes=int(page.heap_bytes[at]),
        capacity_bytes=None if page.capacity is None else page.capacity.size_bytes,
        arguments_bytes=page.arguments_bytes,
        outputs_bytes=page.outputs_bytes,
        aliased_bytes=page.aliased_bytes,
        temporaries_bytes=int(sizes[temporary].sum()),
        fragmentation_bytes=max(0, page.total_allocation_bytes - page.peak_bytes),
        buffers=tuple(page.buffers[int(row)] for row in largest),
        is_whole=len(largest) == len(rows),
        program=page.module.name,
    )
