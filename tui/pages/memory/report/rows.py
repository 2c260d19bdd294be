"""What the reports of the memory page share: the order of its buffers, and each as a record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.memory.model import SPACE_NAMES, Buffer, MemoryPage, ModulePeaks, SpaceMemory, space_name
from tpuprof.parsers.pages.memory import CompiledModules, first_space
from tpuprof.tui.draw.buffers.keys import shared_record

NO_SHAPE = "the buffer has no shape that the module tells"

BUFFER_REASONS = {
    "unpadded_bytes": "the size of its elements is unknown",
    "expansion": "the size of its elements is unknown, or there are none",
    "padding_bytes": "the size of its elements is unknown",
    "shape": NO_SHAPE,
    "framework_op": "the compiler does not say where it comes from",
    "source": "the compiler does not say where it comes from",
    "opcode": "no instruction of the module defines it",
    "logical_buffer": "the allocation has no logical buffer",
    "offset_bytes": "the allocation has no logical buffer",
    "allocation_type": "the buffer assignment does not say",
    "born": "unknown",
    "dies": "unknown",
}
"""Why a buffer's figure is null, by its key."""


def asked_space(
    page: MemoryPage, compiled: CompiledModules, module: str | None, space: str | None
) -> tuple[SpaceMemory | None, str | None]:
    """The memory space that is asked for, or None and why there is none.

    Args:
        module: name, or name(program id); None for the one with the largest peak.
        space: in lower case; None for HBM, or the first that the module uses where it uses none.

    Raises:
        ProfileError: there is no such module.
    """
    if not page.modules:
        return None, page.why_no_modules
    label = (page.first or page.modules[0]).module if module is None else compiled.find(module)
    found = compiled.peaks(label)
    if found.problem is not None:
        return None, found.problem
    numbers = {name.lower(): number for number, name in SPACE_NAMES.items()}
    try:
        return compiled.space(label, first_space(found.peaks) if space is None else numbers[space]), None
    except ProfileError as error:
        return None, error.sentence


def ordered_rows(page: SpaceMemory, limit: int = 0) -> Sequence[int]:
    """Rows of `page.stays`: those in memory at the peak first, then by size; at most `limit`, 0 for all."""
    stays, at = page.stays, page.peak_position
    at_peak = (stays.born <= at) & (at < stays.dies)
    order = np.lexsort((np.arange(len(stays)), -stays.size_bytes, ~at_peak))
    rows: list[int] = (order[:limit] if limit else order).tolist()
    return rows


def buffer_record(buffer: Buffer) -> dict[str, object]:
    """A buffer with the keys of JSON."""
    return {
        **shared_record(buffer),
        "opcode": buffer.opcode,
        "logical_buffer": buffer.logical_buffer,
    }


BUFFER_KEYS = tuple(buffer_record(Buffer("", "temporary", 0)))
"""The keys of a buffer's record, in order."""


def module_record(module: ModulePeaks) -> dict[str, object]:
    """A module of the picker with the keys of JSON."""
    return {
        "name": module.module.name,
        "program_id": module.module.program_id,
        "origin": module.module.origin,
        "peak_bytes": {space_name(space): peak for space, peak in sorted(module.peaks.items())},
        "problems": [module.problem] if module.problem else [],
    }


def page_warnings(page: MemoryPage, space: SpaceMemory | None) -> tuple[str, ...]:
    """What is wrong with the run's modules, and with the one that is shown."""
    return (*page.warnings, *(space.warnings if space is not None else ()))
