"""What the allocators of a run reported over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Trace
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.memory.allocators.model import AllocatorProfile, DeviceModuleRuns, MemoryProfilePage
from tpuprof.parsers.memory.allocators.profile import HostMemory, host_memory, needed_bytes
from tpuprof.parsers.ops.device import device_numbers
from tpuprof.parsers.pages.shared.key import PageSession

if TYPE_CHECKING:
    from tpuprof.parsers.files.places import HostFile


def memory_profile_page(
    parts: Sequence[tuple[AllocatorProfile, ...]],
    hosts: Sequence[str],
    reasons: Sequence[str | None] = (),
    warnings: Sequence[str] = (),
) -> MemoryProfilePage:
    """The allocators of all hosts, host by host.

    Args:
        parts: each host's allocators.
        hosts: the hosts' names.
        reasons: why a host has no allocators; where no host has any, the page shows the first reason.
        warnings: sentences on the profile itself.
    """
    allocators = [allocator for part in parts for allocator in part]
    if len(hosts) > 1:
        allocators = [replace(profile, label=f"{profile.label}, {profile.host}") for profile in allocators]
    why = next((reason for reason in reasons if reason), "This profile has no allocator events.")
    return MemoryProfilePage(tuple(hosts), tuple(allocators), None if allocators else why, tuple(warnings))


def _reduce(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> HostMemory:
    return host_memory(trace, file.label, on_chunk, device_numbers(trace) if file.core else None)


MEMORY_OF_HOST = Reduction("memory", HostMemory, needed_bytes, _reduce)
"""What the allocators of a host reported."""


def memory_profile_of_run(session: PageSession, host: str | None) -> MemoryProfilePage:
    """The memory that the allocators reported."""
    found = session.reduced(MEMORY_OF_HOST, host)
    parts = found.summaries
    return memory_profile_page(
        [part.allocators for part in parts],
        [part.host for part in parts],
        [part.why_empty for part in parts],
        [*found.left_out, *session.problems, *session.only_shown],
    )


def module_runs(session: PageSession, host: str | None) -> tuple[DeviceModuleRuns, ...]:
    """Runs of compiled modules on the devices, one entry for each host, to lay over the memory profile."""
    return tuple(part.runs for part in session.reduced(MEMORY_OF_HOST, host).summaries)
