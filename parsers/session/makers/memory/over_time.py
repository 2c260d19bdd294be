"""How the page of memory over time is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.formats.xspace.trace import ChunkDone, Trace
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.memory.allocators.model import DeviceModuleRuns, MemoryProfilePage
from tpuprof.parsers.memory.allocators.profile import HostMemory, host_memory, needed_bytes
from tpuprof.parsers.ops.device import device_numbers
from tpuprof.parsers.pages.memory import memory_profile_page

if TYPE_CHECKING:
    from tpuprof.parsers.files.places import HostFile
    from tpuprof.parsers.session.session import Session


def _reduce(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> HostMemory:
    return host_memory(trace, file.label, on_chunk, device_numbers(trace) if file.core else None)


MEMORY_OF_HOST = Reduction("memory", HostMemory, needed_bytes, _reduce)
"""What the allocators of a host reported."""


def memory_profile(session: Session, host: str | None) -> MemoryProfilePage:
    """The memory that the allocators reported."""
    found = session.reduced(MEMORY_OF_HOST, host)
    parts = found.summaries
    return memory_profile_page(
        [part.allocators for part in parts],
        [part.host for part in parts],
        [part.why_empty for part in parts],
        [*found.left_out, *session.only_shown],
    )


def module_runs(session: Session, host: str | None) -> tuple[DeviceModuleRuns, ...]:
    """Runs of compiled modules on the devices, one entry for each host, to lay over the memory profile."""
    return tuple(part.runs for part in session.reduced(MEMORY_OF_HOST, host).summaries)
