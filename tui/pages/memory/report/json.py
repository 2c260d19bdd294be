"""The memory page as JSON: the modules, and one memory space of one of them."""

from __future__ import annotations

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.memory.model import MemoryPage, SpaceMemory
from tpuprof.tui.pages.memory.report.rows import (
    BUFFER_REASONS,
    buffer_record,
    module_record,
    ordered_rows,
    page_warnings,
)
from tpuprof.tui.report.json import document, head

_NO_MODULE = "no module of the run has figures"
_OWN_REASONS = {
    "peak_instruction": "the module has no heap trace of this memory space",
    "modules[].program_id": "the module is from a file that does not tell",
    "capacity_bytes": "the capacity of this memory is not known",
    "headroom_bytes": "the capacity of this memory is not known",
    "capacity_source": "the capacity of this memory is not known",
    "scoped_bytes": "no instruction says that it uses scoped memory",
    "scoped_instruction": "no instruction says that it uses scoped memory",
}


def memory_json(page: MemoryPage, space: SpaceMemory | None, problem: str | None, run: Run, limit: int = 0) -> str:
    """The modules and a memory space as JSON text; at most `limit` buffers, 0 for all.

    Args:
        space: None where no module has figures; `problem` or the page says why.
    """
    body: dict[str, object] = {
        "device_type": page.device_type,
        "modules": [module_record(module) for module in page.modules],
        **(_space(space, limit) if space is not None else dict.fromkeys(_SPACE_KEYS)),
    }
    why = problem or page.why_no_modules or _NO_MODULE
    reasons = {
        "device_type": "the profile does not tell the device",
        **(_OWN_REASONS if space is not None else dict.fromkeys(_SPACE_KEYS, why)),
        **{key: reason for key, reason in _OWN_REASONS.items() if key.startswith("modules")},
        **(dict(space.unknown) if space is not None else {}),
        **{f"buffers[].{key}": reason for key, reason in BUFFER_REASONS.items()},
    }
    if space is not None and "capacity" in space.unknown:
        reasons |= dict.fromkeys(("capacity_bytes", "headroom_bytes", "capacity_source"), space.unknown["capacity"])
    return document(head("memory", run, page.hosts, page_warnings(page, space)), body, reasons)


_SPACE_KEYS = (
    "module",
    "memory_space",
    "capacity_bytes",
    "capacity_source",
    "headroom_bytes",
    "peak_bytes",
    "peak_unpadded_bytes",
    "peak_position",
    "peak_instruction",
    "total_allocation_bytes",
    "arguments_bytes",
    "outputs_bytes",
    "aliased_bytes",
    "temporaries_bytes",
    "constants_bytes",
    "thread_local_bytes",
    "padding_bytes",
    "fragmentation",
    "scoped_bytes",
    "scoped_instruction",
    "buffer_count",
    "heap_bytes",
    "heap_unpadded_bytes",
    "buffers",
)


def _space(space: SpaceMemory, limit: int) -> dict[str, object]:
    values: tuple[object, ...] = (
        str(space.module),
        space.name,
        space.capacity.size_bytes if space.capacity is not None else None,
        space.capacity.source if space.capacity is not None else None,
        space.headroom_bytes,
        space.peak_bytes,
        space.peak_unpadded_bytes,
        space.peak_position,
        space.peak_instruction,
        space.total_allocation_bytes,
        space.arguments_bytes,
        space.outputs_bytes,
        space.aliased_bytes,
        space.temporaries_bytes,
        space.constants_bytes,
        space.thread_local_bytes,
        space.padding_bytes,
        space.fragmentation,
        space.scoped_bytes,
        space.scoped_instruction,
        len(space.stays),
        space.heap_bytes.tolist(),
        space.heap_unpadded_bytes.tolist(),
        [buffer_record(space.buffers[row]) for row in ordered_rows(space, limit)],
    )
    return dict(zip(_SPACE_KEYS, values, strict=True))
