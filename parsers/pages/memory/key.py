"""The keys of the pages of memory: whoever asks for one imports nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.pages.shared.key import Later, PageKey

if TYPE_CHECKING:
    from tpuprof.parsers.memory.allocators.model import DeviceModuleRuns, MemoryProfilePage
    from tpuprof.parsers.pages.memory.compiled import CompiledModules

MEMORY: PageKey[CompiledModules] = PageKey(Later("tpuprof.parsers.pages.memory.of_run:memory_of_run"), is_held=True)
_MAKERS = "tpuprof.parsers.pages.memory.over_time:"
MEMORY_PROFILE: PageKey[MemoryProfilePage] = PageKey(Later(f"{_MAKERS}memory_profile_of_run"))
MODULE_RUNS: PageKey[tuple[DeviceModuleRuns, ...]] = PageKey(Later(f"{_MAKERS}module_runs"))
