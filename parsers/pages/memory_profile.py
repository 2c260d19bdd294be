"""The page of memory over time: the allocators of some hosts of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tpuprof.parsers.memory.allocators.model import AllocatorProfile, MemoryProfilePage


def memory_profile_page(
    parts: Sequence[tuple[AllocatorProfile, ...]],
    hosts: Sequence[str],
    reasons: Sequence[str | None] = (),
    warnings: Sequence[str] = (),
) -> MemoryProfilePage:
    """The allocators of all hosts, host by host.

    Args:
        parts: of each host, as `memory_profile_of` gives them.
        hosts: their names.
        reasons: why hosts have none (`why_empty`); the first one stands for the page that has no allocators at all.
        warnings: about the profile itself, a sentence each.
    """
    found = [allocator for part in parts for allocator in part]
    if len(hosts) > 1:
        found = [replace(one, label=f"{one.label}, {one.host}") for one in found]
    why = next((reason for reason in reasons if reason), "This profile has no allocator events.")
    return MemoryProfilePage(tuple(hosts), tuple(found), None if found else why, tuple(warnings))
